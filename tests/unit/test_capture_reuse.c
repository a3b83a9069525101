// Captures random programs with graph_capture_record_stream_reuse, and checks every reuse of memory against the graph by brute force: each
// earlier kernel on those bytes must precede the first kernel of the next block.
#include <string.h>

#include "support/captures.h"
#include "support/random.h"

enum { MAX_STREAMS = 4, MAX_NODES = 512, MAX_BLOCKS = 160, MAX_USES = 24 };

// --- random programs ----------------------------------------------------------------------------------------------------------------

struct piece {
    uint64_t address, size_bytes, stream;
    uint64_t nodes[MAX_USES]; // kernels that used it, the first one first
    size_t node_count;
    bool foreign; // one of them is on another stream
    bool live;
};

struct program {
    struct vr_world world;
    struct vram_pool *pool;
    uint64_t random;
    uint64_t streams[MAX_STREAMS];
    size_t stream_count;
    struct piece pieces[MAX_BLOCKS]; // in order of their requests
    size_t piece_count;
    size_t node_count;
};

static uint64_t draw(struct program *program, uint64_t limit) { return vr_random_below(&program->random, limit); }

static bool is_capturing(struct program *program, uint64_t stream) {
    int status = 0;
    assert_int_equal(vr_cu(program->world.sim, stream_is_capturing, stream, &status), VR_CU_SUCCESS);
    return status == VR_CU_STREAM_CAPTURE_STATUS_ACTIVE;
}

// Adds a kernel on the stream that uses the piece. The program is correct: the kernel follows the allocation, and the use is recorded.
static void touch(struct program *program, struct piece *piece, uint64_t stream) {
    if (piece->node_count == MAX_USES || program->node_count == MAX_NODES) return;
    if (stream != piece->stream) {
        expect_wait_stream(&program->world, stream, piece->stream);
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
    if (from != to && is_capturing(program, from)) expect_wait_stream(&program->world, to, from);
}

static void open_program(struct program *program, uint64_t seed, const char *conf) {
    memset(program, 0, sizeof *program);
    program->random = seed * 1000003;
    expect_world(&program->world, conf, 0);
    program->pool = expect_graph_pool(&program->world);
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
        if (is_capturing(program, program->streams[i])) expect_wait_stream(&program->world, origin, program->streams[i]);
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

// Checks that every kernel on the earlier piece precedes the first kernel of the later one.
static void expect_safe(const struct reach *reach, const struct piece *earlier, const struct piece *later) {
    const size_t first = index_of(reach, later->nodes[0]);
    for (size_t i = 0; i < earlier->node_count; i++)
        if (!reach->after[index_of(reach, earlier->nodes[i])][first])
            fail_msg("0x%llx is used again while kernel %zu of its last owner may run", (unsigned long long)later->address, i);
}

// Returns the number of pieces at an address that another stream had used.
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

// A program may remove a dependency from its stream's next work: what preceded it no longer does.
static void a_past_that_is_left_behind(void **state) {
    (void)state;
    struct vr_world world;
    expect_world(&world, "graph_capture_record_stream_reuse:True", VR_GIB);
    struct vram_pool *pool = expect_graph_pool(&world);
    const uint64_t stream = world.stream[0][1], side = world.stream[0][2], never = world.stream[0][3];
    begin(pool, stream, VRAM_CAPTURE_RELAXED);
    const uint64_t block = expect_malloc(&world, 4096, stream), waits = expect_malloc(&world, 12 * VR_MIB, stream);
    kernel(&world, stream);
    uint64_t id = 0, graph = 0, count = 0, first = 0;
    const uint64_t *ends = NULL;
    int status = 0;
    assert_int_equal(vr_cu(world.sim, stream_get_capture_info, stream, &status, &id, &graph, &ends, &count), VR_CU_SUCCESS);
    assert_int_equal(count, 1);
    first = ends[0];
    expect_wait_stream(&world, side, stream);
    expect_wait_stream(&world, never, stream);
    kernel(&world, side);
    kernel(&world, never);
    EXPECT_OK(vram_record_stream(world.allocator, block, side));
    EXPECT_OK(vram_record_stream(world.allocator, waits, never));
    expect_free(&world, waits); // for a stream that does not join, so each request examines the graph
    expect_wait_stream(&world, stream, side);
    const uint64_t other = expect_malloc(&world, 4096, stream); // the side stream's kernel precedes it
    assert_int_not_equal(other, block);
    assert_int_equal(vr_cu(world.sim, stream_update_capture_dependencies, stream, &first, 1, VR_CU_STREAM_SET_CAPTURE_DEPENDENCIES),
                     VR_CU_SUCCESS);
    expect_free(&world, block);
    const uint64_t apart = expect_malloc(&world, 4096, stream); // no longer
    assert_int_not_equal(apart, block);
    expect_wait_stream(&world, stream, side);
    assert_int_equal(expect_malloc(&world, 4096, stream), block); // and again
    expect_wait_stream(&world, stream, never);
    end(&world, pool, stream);
    vram_pool_release(pool);
    (void)vr_world_close(&world);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reuse_in_a_capture_is_safe),
        cmocka_unit_test(without_the_option_nothing_is_reused),
        cmocka_unit_test(a_past_that_is_left_behind),
    };
    return cmocka_run_group_tests_name("capture_reuse", tests, NULL, NULL);
}
