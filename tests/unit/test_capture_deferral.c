// Frees that captures put off. Random programs are captured with graph_capture_record_stream_reuse, and every second use of memory is
// checked against the graph itself, by brute force: each earlier kernel on those bytes comes before the first kernel of the next block.
// Then: uses outside of the capture, captures that are given up, a thread that captures beside one that does not.
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "driver/driver.h"
#include "support/expect.h"
#include "vram/pool.h"

enum { MAX_STREAMS = 4, MAX_NODES = 512, MAX_BLOCKS = 160, MAX_USES = 24 };

static struct vram_pool *expect_pool(struct vr_world *world) {
    const struct vram_pool_options options = {.for_graph = true};
    struct vram_pool *pool = NULL;
    EXPECT_OK(vram_pool_create(world->allocator, 0, &options, &pool));
    return pool;
}

static void kernel(struct vr_world *world, uint64_t stream) { EXPECT_OK(vram_sim_launch(world->sim, 0, stream, NULL, NULL, 10)); }

// `to` waits for what `from` has now.
static void order(struct vr_world *world, uint64_t from, uint64_t to) {
    uint64_t event = 0;
    assert_int_equal(vr_cu(world->sim, event_create, &event, VR_CU_EVENT_DISABLE_TIMING), VR_CU_SUCCESS);
    assert_int_equal(vr_cu(world->sim, event_record, event, from), VR_CU_SUCCESS);
    assert_int_equal(vr_cu(world->sim, stream_wait_event, to, event, 0), VR_CU_SUCCESS);
    assert_int_equal(vr_cu(world->sim, event_destroy, event), VR_CU_SUCCESS);
}

static uint64_t new_stream(struct vr_world *world) {
    uint64_t stream = 0;
    assert_int_equal(vr_cu(world->sim, stream_create, &stream, VR_CU_STREAM_NON_BLOCKING), VR_CU_SUCCESS);
    return stream;
}

static void begin(struct vram_pool *pool, uint64_t stream, enum vram_capture_mode mode) {
    EXPECT_OK(vram_capture_begin(pool, stream, mode, NULL));
}

static void end(struct vr_world *world, struct vram_pool *pool, uint64_t stream) {
    uint64_t graph = 0;
    EXPECT_OK(vram_capture_end(pool, stream, &graph, NULL));
    assert_int_equal(vr_cu(world->sim, graph_destroy, graph), VR_CU_SUCCESS);
}

static void expect_lost(struct vram_pool *pool, uint64_t stream) {
    uint64_t graph = 7;
    EXPECT_STATUS(DRIVER, vram_capture_end(pool, stream, &graph, NULL));
    assert_int_equal(graph, 0);
}

// The blocks of device 0 in a state.
struct count {
    enum vram_block_state state;
    size_t blocks;
};

static bool count_one(const struct vram_block_view *view, void *user) {
    struct count *count = user;
    count->blocks += view->state == count->state;
    return true;
}

static size_t blocks_in(struct vr_world *world, enum vram_block_state state) {
    struct count count = {.state = state};
    EXPECT_OK(vram_walk(world->allocator, 0, count_one, &count));
    return count.blocks;
}

// --- random programs ----------------------------------------------------------------------------------------------------------------

struct piece {
    uint64_t address, size_bytes, stream;
    uint64_t nodes[MAX_USES]; // the kernels that touched it, its first one first
    size_t node_count;
    bool foreign; // one of them on another stream
    bool live;
};

struct program {
    struct vr_world world;
    struct vram_pool *pool;
    uint64_t random;
    uint64_t streams[MAX_STREAMS];
    size_t stream_count;
    struct piece pieces[MAX_BLOCKS]; // in the order of their requests
    size_t piece_count;
    size_t node_count;
};

static uint64_t draw(struct program *program, uint64_t limit) {
    program->random += 0x9e3779b97f4a7c15u;
    return vr_mix64(program->random) % limit;
}

static bool is_capturing(struct program *program, uint64_t stream) {
    int status = 0;
    assert_int_equal(vr_cu(program->world.sim, stream_is_capturing, stream, &status), VR_CU_SUCCESS);
    return status == VR_CU_STREAM_CAPTURE_STATUS_ACTIVE;
}

// A kernel on the stream that touches the piece. The program is right: the kernel comes after the piece was made, and the allocator knows.
static void touch(struct program *program, struct piece *piece, uint64_t stream) {
    if (piece->node_count == MAX_USES || program->node_count == MAX_NODES) return;
    if (stream != piece->stream) {
        order(&program->world, piece->stream, stream);
        EXPECT_OK(vram_record_stream(program->world.allocator, piece->address, stream));
        piece->foreign = true;
    }
    kernel(&program->world, stream);
    int status = 0;
    uint64_t id = 0, graph = 0, count = 0;
    const uint64_t *frontier = NULL;
    assert_int_equal(vr_cu(program->world.sim, stream_get_capture_info, stream, &status, &id, &graph, &frontier, &count), VR_CU_SUCCESS);
    assert_int_equal(count, 1);
    piece->nodes[piece->node_count++] = frontier[0];
    program->node_count++;
}

static uint64_t draw_stream(struct program *program) { return program->streams[draw(program, program->stream_count)]; }

static void make_piece(struct program *program) {
    const uint64_t sizes[] = {1000, 700 * VR_KIB, 3 * VR_MIB, 7 * VR_MIB, 12 * VR_MIB};
    const uint64_t stream = draw_stream(program), size = sizes[draw(program, VR_COUNT_OF(sizes))];
    if (!is_capturing(program, stream) || program->piece_count == MAX_BLOCKS || program->node_count == MAX_NODES) return;
    struct piece *piece = &program->pieces[program->piece_count++];
    *piece = (struct piece){.size_bytes = size, .stream = stream, .live = true};
    piece->address = expect_malloc(&program->world, size, stream);
    touch(program, piece, stream);
}

static struct piece *draw_live(struct program *program) {
    if (program->piece_count == 0) return NULL;
    struct piece *piece = &program->pieces[draw(program, program->piece_count)];
    return piece->live ? piece : NULL;
}

static void use_piece(struct program *program) {
    struct piece *piece = draw_live(program);
    if (piece) touch(program, piece, draw_stream(program));
}

static void free_piece(struct program *program) {
    struct piece *piece = draw_live(program);
    if (!piece) return;
    expect_free(&program->world, piece->address);
    piece->live = false;
}

static void fork_or_join(struct program *program) {
    const uint64_t from = draw_stream(program), to = draw_stream(program);
    if (from != to && is_capturing(program, from)) order(&program->world, from, to);
}

static void open_program(struct program *program, uint64_t seed, const char *conf) {
    memset(program, 0, sizeof *program);
    program->random = seed * 1000003;
    expect_world(&program->world, conf, 0);
    program->pool = expect_pool(&program->world);
    program->stream_count = 2 + draw(program, MAX_STREAMS - 1);
    for (size_t i = 0; i < program->stream_count; i++) program->streams[i] = new_stream(&program->world);
}

static uint64_t capture_program(struct program *program, size_t operations) {
    const uint64_t origin = program->streams[0];
    begin(program->pool, origin, VRAM_CAPTURE_RELAXED);
    for (size_t i = 0; i < operations; i++) {
        const uint64_t what = draw(program, 100);
        if (what < 30)
            make_piece(program);
        else if (what < 50)
            use_piece(program);
        else if (what < 80)
            free_piece(program);
        else
            fork_or_join(program);
    }
    for (size_t i = 1; i < program->stream_count; i++)
        if (is_capturing(program, program->streams[i])) order(&program->world, program->streams[i], origin);
    uint64_t graph = 0;
    EXPECT_OK(vram_capture_end(program->pool, origin, &graph, NULL));
    return graph;
}

static void close_program(struct program *program, uint64_t graph) {
    assert_int_equal(vr_cu(program->world.sim, graph_destroy, graph), VR_CU_SUCCESS);
    for (size_t i = 0; i < program->piece_count; i++)
        if (program->pieces[i].live) expect_free(&program->world, program->pieces[i].address);
    vram_pool_release(program->pool);
    EXPECT_OK(vram_empty_cache(program->world.allocator));
    EXPECT_CURRENT(&program->world, reserved_bytes, 0);
    for (size_t i = 0; i < program->stream_count; i++)
        assert_int_equal(vr_cu(program->world.sim, stream_destroy, program->streams[i]), VR_CU_SUCCESS);
    expect_end(&program->world);
}

// --- the graph, by brute force ----------------------------------------------------------------------------------------------------------

struct reach {
    uint64_t nodes[MAX_NODES];
    uint64_t count;
    bool after[MAX_NODES][MAX_NODES]; // [i][j]: a path leads from i to j
};

static size_t index_of(const struct reach *reach, uint64_t node) {
    size_t at = 0;
    while (at < reach->count && reach->nodes[at] != node) at++;
    assert_true(at < reach->count);
    return at;
}

static void find_paths(struct vr_world *world, uint64_t graph, struct reach *reach) {
    static uint64_t from[MAX_NODES * MAX_STREAMS], to[MAX_NODES * MAX_STREAMS];
    uint64_t edges = VR_COUNT_OF(from);
    memset(reach, 0, sizeof *reach);
    reach->count = MAX_NODES;
    assert_int_equal(vr_cu(world->sim, graph_get_nodes, graph, reach->nodes, &reach->count), VR_CU_SUCCESS);
    assert_int_equal(vr_cu(world->sim, graph_get_edges, graph, NULL, NULL, &edges), VR_CU_SUCCESS);
    assert_true(edges <= VR_COUNT_OF(from));
    assert_int_equal(vr_cu(world->sim, graph_get_edges, graph, from, to, &edges), VR_CU_SUCCESS);
    for (uint64_t i = 0; i < edges; i++) reach->after[index_of(reach, from[i])][index_of(reach, to[i])] = true;
    for (size_t middle = 0; middle < reach->count; middle++)
        for (size_t i = 0; i < reach->count; i++)
            for (size_t j = 0; j < reach->count && reach->after[i][middle]; j++)
                reach->after[i][j] = reach->after[i][j] || reach->after[middle][j];
}

static bool overlap(const struct piece *a, const struct piece *b) {
    return a->address < b->address + b->size_bytes && b->address < a->address + a->size_bytes;
}

// Every kernel on the earlier piece comes before the first kernel of the later one.
static void expect_safe(const struct reach *reach, const struct piece *earlier, const struct piece *later) {
    const size_t first = index_of(reach, later->nodes[0]);
    for (size_t i = 0; i < earlier->node_count; i++)
        if (!reach->after[index_of(reach, earlier->nodes[i])][first])
            fail_msg("0x%llx is used again while kernel %zu of its last owner may run", (unsigned long long)later->address, i);
}

// Returns how many pieces lie where one lay that another stream had used.
static size_t check_program(struct program *program, uint64_t graph) {
    static struct reach reach;
    find_paths(&program->world, graph, &reach);
    size_t foreign = 0;
    for (size_t later = 0; later < program->piece_count; later++) {
        for (size_t earlier = 0; earlier < later; earlier++) {
            const struct piece *a = &program->pieces[earlier], *b = &program->pieces[later];
            if (!overlap(a, b)) continue;
            assert_false(a->live);
            foreign += a->foreign;
            expect_safe(&reach, a, b);
        }
    }
    return foreign;
}

static size_t run_programs(const char *conf, uint64_t seeds) {
    static struct program program;
    size_t foreign = 0;
    for (uint64_t seed = 1; seed <= seeds; seed++) {
        open_program(&program, seed, conf);
        const uint64_t graph = capture_program(&program, 60 + 20 * (seed % 16));
        foreign += check_program(&program, graph);
        close_program(&program, graph);
    }
    return foreign;
}

static void reuse_in_a_capture_is_safe(void **state) {
    (void)state;
    assert_true(run_programs("graph_capture_record_stream_reuse:True", 150) > 300);
    assert_true(run_programs("graph_capture_record_stream_reuse:True,expandable_segments:True", 50) > 100);
}

static void without_the_option_nothing_is_reused(void **state) {
    (void)state;
    assert_int_equal(run_programs("", 60), 0);
    assert_int_equal(run_programs("expandable_segments:True", 30), 0);
}

// --- uses outside of the capture --------------------------------------------------------------------------------------------------------

static const char *const confs[] = {"", "graph_capture_record_stream_reuse:True"};

// The block waits for `stream` alone.
static void expect_waits_for(struct vr_world *world, uint64_t block, uint64_t stream) {
    const uint64_t own = world->stream[0][1];
    const uint64_t other = expect_malloc(world, 30 * VR_MIB, own);
    assert_int_not_equal(other, block);
    assert_int_equal(blocks_in(world, VRAM_BLOCK_PENDING), 1);
    EXPECT_OK(vr_world_complete(world, 0, stream));
    const uint64_t more = expect_malloc(world, 1, own);
    assert_int_equal(blocks_in(world, VRAM_BLOCK_PENDING), 0);
    expect_free(world, other);
    expect_free(world, more);
}

// The graph does not order what a stream did before it took part.
static void uses_before_the_capture_are_waited_for(void **state) {
    (void)state;
    for (size_t c = 0; c < VR_COUNT_OF(confs); c++) {
        struct vr_world world;
        expect_world(&world, confs[c], 0);
        const uint64_t a = world.stream[0][1], b = world.stream[0][2];
        struct vram_pool *pool = expect_pool(&world);
        uint64_t block = 0, again = 0;
        EXPECT_OK(vram_pool_malloc(pool, 30 * VR_MIB, a, &block));
        EXPECT_OK(vram_record_stream(world.allocator, block, b));
        kernel(&world, b);
        begin(pool, a, VRAM_CAPTURE_GLOBAL);
        order(&world, a, b);
        EXPECT_OK(vram_record_stream(world.allocator, block, b));
        expect_free(&world, block);
        order(&world, b, a);
        again = expect_malloc(&world, 30 * VR_MIB, a);
        assert_int_not_equal(again, block);
        end(&world, pool, a);
        expect_waits_for(&world, block, b);
        expect_free(&world, again);
        vram_pool_release(pool);
        expect_end(&world);
    }
}

// Also not what a stream does that takes no part.
static void uses_beside_the_capture_are_waited_for(void **state) {
    (void)state;
    for (size_t c = 0; c < VR_COUNT_OF(confs); c++) {
        struct vr_world world;
        expect_world(&world, confs[c], 0);
        const uint64_t a = world.stream[0][1], b = world.stream[0][2];
        struct vram_pool *pool = expect_pool(&world);
        begin(pool, a, VRAM_CAPTURE_RELAXED);
        const uint64_t block = expect_malloc(&world, 30 * VR_MIB, a);
        kernel(&world, b);
        EXPECT_OK(vram_record_stream(world.allocator, block, b));
        expect_free(&world, block);
        end(&world, pool, a);
        expect_waits_for(&world, block, b);
        vram_pool_release(pool);
        expect_end(&world);
    }
}

// A use that one capture recorded does not hide a later one outside from the next capture.
static void uses_between_captures_are_waited_for(void **state) {
    (void)state;
    for (size_t c = 0; c < VR_COUNT_OF(confs); c++) {
        struct vr_world world;
        expect_world(&world, confs[c], 0);
        const uint64_t a = world.stream[0][1], b = world.stream[0][2];
        struct vram_pool *pool = expect_pool(&world);
        begin(pool, a, VRAM_CAPTURE_GLOBAL);
        const uint64_t block = expect_malloc(&world, 30 * VR_MIB, a);
        order(&world, a, b);
        EXPECT_OK(vram_record_stream(world.allocator, block, b));
        order(&world, b, a);
        end(&world, pool, a);
        kernel(&world, b);
        EXPECT_OK(vram_record_stream(world.allocator, block, b));
        begin(pool, a, VRAM_CAPTURE_GLOBAL);
        expect_free(&world, block);
        end(&world, pool, a);
        expect_waits_for(&world, block, b);
        vram_pool_release(pool);
        expect_end(&world);
    }
}

// --- captures that are given up ---------------------------------------------------------------------------------------------------------

// A free is put off, then something happens to the capture.
static uint64_t half_a_capture(struct vr_world *world, struct vram_pool *pool, uint64_t a, uint64_t b) {
    begin(pool, a, VRAM_CAPTURE_GLOBAL);
    const uint64_t block = expect_malloc(world, 30 * VR_MIB, a);
    order(world, a, b);
    kernel(world, b);
    EXPECT_OK(vram_record_stream(world->allocator, block, b));
    expect_free(world, block);
    assert_int_equal(blocks_in(world, VRAM_BLOCK_PENDING), 1);
    return block;
}

// Nothing waits any more, requests go to the default pool, and the pool gives everything back.
static void expect_as_before(struct vr_world *world, struct vram_pool *pool, uint64_t stream) {
    const uint64_t block = expect_malloc(world, 100, stream);
    struct vram_block_info info;
    EXPECT_OK(vram_block_info(world->allocator, block, &info));
    assert_int_equal(info.pool.first, 0);
    assert_int_equal(blocks_in(world, VRAM_BLOCK_PENDING), 0);
    assert_int_equal(vram_pool_references(pool), 1);
    expect_free(world, block);
    vram_pool_release(pool);
    EXPECT_OK(vram_empty_cache(world->allocator));
    EXPECT_CURRENT(world, reserved_bytes, 0);
    expect_end(world);
}

static void an_invalid_capture_leaves_nothing(void **state) {
    (void)state;
    for (size_t c = 0; c < VR_COUNT_OF(confs); c++) {
        struct vr_world world;
        expect_world(&world, confs[c], 0);
        const uint64_t a = world.stream[0][1], b = world.stream[0][2];
        struct vram_pool *pool = expect_pool(&world);
        (void)half_a_capture(&world, pool, a, b);
        assert_int_not_equal(vr_cu(world.sim, stream_synchronize, a), VR_CU_SUCCESS);
        // Requests and frees go on while nobody has noticed.
        const uint64_t block = expect_malloc(&world, 3 * VR_MIB, a);
        EXPECT_OK(vram_record_stream(world.allocator, block, b));
        expect_free(&world, block);
        EXPECT_OK(vram_empty_cache(world.allocator));
        expect_lost(pool, a);
        EXPECT_STATUS(INVALID_ARGUMENT, vram_capture_end(pool, a, &(uint64_t){0}, NULL));
        expect_as_before(&world, pool, a);
    }
}

static void a_fork_without_join_leaves_nothing(void **state) {
    (void)state;
    for (size_t c = 0; c < VR_COUNT_OF(confs); c++) {
        struct vr_world world;
        expect_world(&world, confs[c], 0);
        const uint64_t a = world.stream[0][1], b = world.stream[0][2];
        struct vram_pool *pool = expect_pool(&world);
        (void)half_a_capture(&world, pool, a, b);
        expect_lost(pool, a);
        expect_as_before(&world, pool, a);
    }
}

static void a_destroyed_stream_leaves_nothing(void **state) {
    (void)state;
    for (size_t c = 0; c < VR_COUNT_OF(confs); c++) {
        struct vr_world world;
        expect_world(&world, confs[c], 0);
        const uint64_t a = new_stream(&world), b = new_stream(&world);
        struct vram_pool *pool = expect_pool(&world);
        (void)half_a_capture(&world, pool, a, b);
        assert_int_equal(vr_cu(world.sim, stream_destroy, a), VR_CU_SUCCESS);
        assert_int_equal(vr_cu(world.sim, stream_destroy, b), VR_CU_SUCCESS);
        expect_lost(pool, a);
        expect_as_before(&world, pool, world.stream[0][1]);
    }
}

// A stream that was used outside and is gone: there is nothing left to record a fence on, and requests must not fail of it.
static void a_use_on_a_destroyed_stream_holds_nobody_up(void **state) {
    (void)state;
    for (size_t c = 0; c < VR_COUNT_OF(confs); c++) {
        struct vr_world world;
        expect_world(&world, confs[c], 0);
        const uint64_t a = world.stream[0][1], b = new_stream(&world);
        struct vram_pool *pool = expect_pool(&world);
        begin(pool, a, VRAM_CAPTURE_RELAXED);
        const uint64_t block = expect_malloc(&world, 30 * VR_MIB, a);
        kernel(&world, b);
        EXPECT_OK(vram_record_stream(world.allocator, block, b));
        expect_free(&world, block);
        assert_int_equal(vr_cu(world.sim, stream_destroy, b), VR_CU_SUCCESS);
        end(&world, pool, a);
        expect_as_before(&world, pool, a);
    }
}

// Nobody ends the capture: the allocator goes, and nothing is left.
static void the_end_of_all_during_a_capture(void **state) {
    (void)state;
    struct vr_world world;
    expect_world(&world, "", 0);
    const uint64_t a = new_stream(&world), b = new_stream(&world);
    struct vram_pool *pool = expect_pool(&world);
    (void)half_a_capture(&world, pool, a, b);
    assert_int_equal(vr_cu(world.sim, stream_destroy, a), VR_CU_SUCCESS);
    assert_int_equal(vr_cu(world.sim, stream_destroy, b), VR_CU_SUCCESS);
    assert_int_equal(vr_world_close(&world), 0);
}

// Unmapping waits for a stream: not while one captures.
static void a_release_does_not_disturb_a_capture(void **state) {
    (void)state;
    struct vr_world world;
    expect_world(&world, "expandable_segments:True", 0);
    const uint64_t a = world.stream[0][1];
    struct vram_pool *gone = expect_pool(&world), *pool = expect_pool(&world);
    uint64_t block = 0;
    EXPECT_OK(vram_pool_malloc(gone, 30 * VR_MIB, a, &block));
    expect_free(&world, block);
    vram_pool_release(gone);
    begin(pool, a, VRAM_CAPTURE_GLOBAL);
    EXPECT_OK(vram_empty_cache(world.allocator));
    kernel(&world, a);
    end(&world, pool, a);
    EXPECT_OK(vram_empty_cache(world.allocator));
    EXPECT_CURRENT(&world, reserved_bytes, 0);
    vram_pool_release(pool);
    expect_end(&world);
}

// Frees that a capture put off are no obstacle after it: not to a trim, not to a checkpoint.
static void a_trim_sees_what_a_capture_put_off(void **state) {
    (void)state;
    for (int checkpoint = 0; checkpoint < 2; checkpoint++) {
        struct vr_world world;
        expect_world(&world, "", 0);
        const uint64_t a = world.stream[0][1], b = world.stream[0][2];
        struct vram_pool *beside = expect_pool(&world), *pool = expect_pool(&world);
        uint64_t block = 0;
        EXPECT_OK(vram_pool_malloc(beside, 30 * VR_MIB, a, &block));
        begin(pool, a, VRAM_CAPTURE_GLOBAL);
        order(&world, a, b);
        EXPECT_OK(vram_record_stream(world.allocator, block, b));
        expect_free(&world, block);
        struct vram_checkpoint *saved = NULL;
        EXPECT_STATUS(INVALID_ARGUMENT, vram_pool_checkpoint(beside, &saved));
        EXPECT_OK(vram_pool_trim(beside));
        EXPECT_CURRENT(&world, reserved_bytes, 30 * VR_MIB);
        order(&world, b, a);
        end(&world, pool, a);
        if (checkpoint) EXPECT_OK(vram_pool_checkpoint(beside, &saved));
        EXPECT_OK(vram_pool_trim(beside));
        EXPECT_CURRENT(&world, reserved_bytes, 0);
        vram_checkpoint_destroy(saved);
        vram_pool_release(beside);
        vram_pool_release(pool);
        expect_end(&world);
    }
}

// --- two threads ------------------------------------------------------------------------------------------------------------------------

enum { CAPTURES = 200, STEPS = 30 };

struct neighbour {
    struct vr_world *world;
    atomic_bool over;
    unsigned failures; // read after the thread ended
};

static void *allocate_beside(void *user) {
    struct neighbour *neighbour = user;
    struct vr_world *world = neighbour->world;
    const uint64_t own = world->stream[0][3];
    uint64_t live[8] = {0};
    for (uint64_t i = 0; !atomic_load(&neighbour->over); i++) {
        uint64_t *slot = &live[i % VR_COUNT_OF(live)];
        neighbour->failures += vram_free(world->allocator, *slot) != VRAM_OK;
        *slot = 0;
        neighbour->failures += vram_malloc(world->allocator, 0, 1000 + i % 7 * VR_MIB, own, slot) != VRAM_OK;
        if (i % 3 == 0) neighbour->failures += vram_record_stream(world->allocator, *slot, 0) != VRAM_OK;
        if (i % 100 == 99) neighbour->failures += vram_empty_cache(world->allocator) != VRAM_OK;
    }
    for (size_t i = 0; i < VR_COUNT_OF(live); i++) neighbour->failures += vram_free(world->allocator, live[i]) != VRAM_OK;
    return NULL;
}

static void capture_beside(struct vr_world *world) {
    const uint64_t a = world->stream[0][1], b = world->stream[0][2];
    for (int capture = 0; capture < CAPTURES; capture++) {
        struct vram_pool *pool = expect_pool(world);
        begin(pool, a, VRAM_CAPTURE_THREAD_LOCAL);
        order(world, a, b);
        for (int step = 0; step < STEPS; step++) {
            const uint64_t block = expect_malloc(world, (uint64_t)(1 + step % 5) * VR_MIB, a);
            struct vram_block_info info;
            EXPECT_OK(vram_block_info(world->allocator, block, &info));
            assert_int_equal(info.pool.first, vram_pool_id(pool).first);
            EXPECT_OK(vram_record_stream(world->allocator, block, b));
            kernel(world, b);
            expect_free(world, block);
            if (step % 4 == 0) order(world, b, a);
        }
        order(world, b, a);
        end(world, pool, a);
        vram_pool_release(pool);
    }
}

static void one_thread_captures_beside_another(void **state) {
    (void)state;
    for (size_t c = 0; c < VR_COUNT_OF(confs); c++) {
        struct vr_world world;
        const struct vr_world_options options = {.conf = confs[c], .without_record = true};
        EXPECT_OK(vr_world_open(&world, &options));
        struct neighbour neighbour = {.world = &world};
        pthread_t thread;
        assert_int_equal(pthread_create(&thread, NULL, allocate_beside, &neighbour), 0);
        capture_beside(&world);
        atomic_store(&neighbour.over, true);
        assert_int_equal(pthread_join(thread, NULL), 0);
        assert_int_equal(neighbour.failures, 0);
        EXPECT_OK(vram_empty_cache(world.allocator));
        EXPECT_CURRENT(&world, reserved_bytes, 0);
        EXPECT_CURRENT(&world, active, 0);
        expect_end(&world);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reuse_in_a_capture_is_safe),
        cmocka_unit_test(without_the_option_nothing_is_reused),
        cmocka_unit_test(uses_before_the_capture_are_waited_for),
        cmocka_unit_test(uses_beside_the_capture_are_waited_for),
        cmocka_unit_test(uses_between_captures_are_waited_for),
        cmocka_unit_test(an_invalid_capture_leaves_nothing),
        cmocka_unit_test(a_fork_without_join_leaves_nothing),
        cmocka_unit_test(a_destroyed_stream_leaves_nothing),
        cmocka_unit_test(a_use_on_a_destroyed_stream_holds_nobody_up),
        cmocka_unit_test(the_end_of_all_during_a_capture),
        cmocka_unit_test(a_release_does_not_disturb_a_capture),
        cmocka_unit_test(a_trim_sees_what_a_capture_put_off),
        cmocka_unit_test(one_thread_captures_beside_another),
    };
    return cmocka_run_group_tests_name("capture_deferral", tests, NULL, NULL);
}
