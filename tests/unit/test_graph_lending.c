// Tests lend_graph_pools: free memory of captured pools serves requests of the default pools between launches.
#include "driver/abi.h"
#include "driver/driver.h"
#include "support/captures.h"
#include "vram/stats.h"

// The thread sanitizer's shadow memory is at the device addresses.
#if defined(__SANITIZE_THREAD__)
enum { THREAD_SANITIZER = 1 };
#else
enum { THREAD_SANITIZER = 0 };
#endif

#define MIB VR_MIB

enum { PIECES = 4 };

// A graph with four blocks of 50 MiB, three of which were freed in its capture, on a device of 300 MiB.
struct scene {
    struct vr_world world;
    struct vram_graph *graph;
    uint64_t kept;       // the block that the capture did not free
    uint64_t own, other; // the stream of the capture, and another one
};

static void open_scene_on(struct scene *scene, const char *conf, bool timed) {
    const struct vr_world_options options = {.sim = {.memory_bytes = 300 * MIB, .manual_completion = !timed}, .conf = conf, .faults = true};
    EXPECT_OK(vr_world_open(&scene->world, &options));
    scene->own = scene->world.stream[0][1];
    scene->other = scene->world.stream[0][2];
    uint64_t piece[PIECES];
    EXPECT_OK(vram_graph_begin(scene->world.allocator, 0, scene->own, NULL, &scene->graph, NULL));
    for (int i = 0; i < PIECES; i++) piece[i] = expect_malloc(&scene->world, 50 * MIB, scene->own);
    kernel(&scene->world, scene->own);
    for (int i = 1; i < PIECES; i++) expect_free(&scene->world, piece[i]);
    EXPECT_OK(vram_graph_end(scene->graph, NULL));
    scene->kept = piece[0];
}

static void open_scene(struct scene *scene, const char *conf) { open_scene_on(scene, conf, false); }

static void close_scene(struct scene *scene) {
    vram_graph_destroy(scene->graph);
    expect_free(&scene->world, scene->kept);
    EXPECT_OK(vram_empty_cache(scene->world.allocator));
    EXPECT_CURRENT(&scene->world, reserved_bytes, 0);
    expect_end(&scene->world);
}

static struct vram_pool_id pool_of(struct scene *scene, uint64_t address) {
    struct vram_block_info info;
    EXPECT_OK(vram_get_block_info(scene->world.allocator, address, &info));
    return info.pool;
}

static bool is_lent(struct scene *scene, uint64_t address) {
    return pool_of(scene, address).first == vram_get_pool_id(vram_graph_pool(scene->graph)).first;
}

static uint64_t all_calls(struct scene *scene) {
    uint64_t calls = 0, sum = 0;
    for (uint32_t i = 0; vram_sim_call_at(scene->world.sim, i, NULL, &calls, NULL); i++) sum += calls;
    return sum;
}

static uint64_t calls_of_launch(struct scene *scene, uint64_t stream) {
    const uint64_t before = all_calls(scene);
    EXPECT_OK(vram_graph_launch(scene->graph, stream, NULL));
    return all_calls(scene) - before;
}

static const char *const confs[] = {"lend_graph_pools:True", "lend_graph_pools:True,expandable_segments:True",
                                    "lend_graph_pools:True,paged:True", "lend_graph_pools:True,sleepable:True"};

// --- requests ------------------------------------------------------------------------------------------------------------------------

static void free_memory_of_a_graph_serves(void **state) {
    (void)state;
    for (size_t c = 0; c < VR_COUNT_OF(confs); c++) {
        for (int elsewhere = 0; elsewhere < 2; elsewhere++) {
            struct scene scene;
            open_scene(&scene, confs[c]);
            const uint64_t stream = elsewhere ? scene.other : scene.own;
            const uint64_t first = expect_malloc(&scene.world, 80 * MIB, stream), second = expect_malloc(&scene.world, 40 * MIB, stream);
            assert_false(is_lent(&scene, first)); // the driver's memory comes first
            assert_true(is_lent(&scene, second));
            EXPECT_SCALAR(&scene.world, moved_bytes, 40 * MIB);
            expect_free(&scene.world, first);
            expect_free(&scene.world, second);
            EXPECT_OK(vram_graph_launch(scene.graph, scene.own, NULL));
            close_scene(&scene);
        }
    }
}

static void without_the_option_it_does_not(void **state) {
    static const char *const without[] = {"", "expandable_segments:True", "share_live_pools:True", "lend_graph_pools:False"};
    (void)state;
    for (size_t c = 0; c < VR_COUNT_OF(without); c++) {
        struct scene scene;
        uint64_t refused = 0;
        open_scene(&scene, without[c]);
        const uint64_t first = expect_malloc(&scene.world, 80 * MIB, scene.own);
        EXPECT_STATUS(OUT_OF_MEMORY, vram_malloc(scene.world.allocator, 0, 40 * MIB, scene.own, &refused));
        expect_free(&scene.world, first);
        close_scene(&scene);
    }
}

// Launches before the option may not have been announced.
static void an_earlier_capture_lends_nothing(void **state) {
    (void)state;
    struct scene scene;
    uint64_t refused = 0;
    open_scene(&scene, "");
    const uint64_t first = expect_malloc(&scene.world, 80 * MIB, scene.own);
    EXPECT_OK(vram_configure(scene.world.allocator, "lend_graph_pools:True", NULL));
    EXPECT_STATUS(OUT_OF_MEMORY, vram_malloc(scene.world.allocator, 0, 40 * MIB, scene.own, &refused));
    expect_free(&scene.world, first);
    close_scene(&scene);
}

static void a_capture_borrows_nothing(void **state) {
    (void)state;
    struct scene scene;
    open_scene(&scene, confs[0]);
    const uint64_t first = expect_malloc(&scene.world, 80 * MIB, scene.other);
    struct vram_pool *pool = expect_graph_pool(&scene.world);
    uint64_t refused = 0;
    begin(pool, scene.other, VRAM_CAPTURE_GLOBAL);
    EXPECT_STATUS(OUT_OF_MEMORY, vram_malloc(scene.world.allocator, 0, 40 * MIB, scene.other, &refused));
    EXPECT_STATUS(OUT_OF_MEMORY, vram_malloc(scene.world.allocator, 0, 40 * MIB, scene.world.stream[0][3], &refused));
    end(&scene.world, pool, scene.other);
    expect_free(&scene.world, expect_malloc(&scene.world, 40 * MIB, scene.other));
    vram_pool_release(pool);
    expect_free(&scene.world, first);
    close_scene(&scene);
}

// --- launches ------------------------------------------------------------------------------------------------------------------------

static void a_launch_is_refused_while_a_loan_lives(void **state) {
    (void)state;
    for (size_t c = 0; c < VR_COUNT_OF(confs); c++) {
        struct scene scene;
        struct vram_error error;
        open_scene(&scene, confs[c]);
        const uint64_t first = expect_malloc(&scene.world, 80 * MIB, scene.other),
                       loan = expect_malloc(&scene.world, 40 * MIB, scene.other);
        EXPECT_STATUS(LENT, vram_graph_launch(scene.graph, scene.own, &error));
        assert_non_null(strstr(error.message, "41943040 bytes"));
        EXPECT_STATUS(LENT, vram_pool_launch_begin(vram_graph_pool(scene.graph), scene.own, &error));
        EXPECT_STATUS(LENT, vram_graph_launch(scene.graph, scene.own, NULL));
        expect_free(&scene.world, loan);
        EXPECT_OK(vram_graph_launch(scene.graph, scene.own, NULL));
        const uint64_t again = expect_malloc(&scene.world, 40 * MIB, scene.other);
        assert_true(is_lent(&scene, again));
        expect_free(&scene.world, again);
        expect_free(&scene.world, first);
        close_scene(&scene);
    }
}

// A launch pays for loans on another stream once: two events and waits, from the borrower's stream to the block's and from there to its
// own.
static void a_launch_makes_no_further_call(void **state) {
    (void)state;
    struct scene scene, plain;
    open_scene(&plain, "");
    open_scene(&scene, confs[0]);
    const uint64_t usual = calls_of_launch(&plain, plain.own), third = scene.world.stream[0][3];
    assert_int_equal(calls_of_launch(&scene, scene.own), usual);
    const uint64_t first = expect_malloc(&scene.world, 80 * MIB, scene.own);
    expect_free(&scene.world, expect_malloc(&scene.world, 40 * MIB, scene.own));
    assert_int_equal(calls_of_launch(&scene, scene.own), usual); // it follows on its own stream
    assert_int_equal(calls_of_launch(&scene, scene.own), usual);
    expect_free(&scene.world, expect_malloc(&scene.world, 40 * MIB, scene.other));
    const uint64_t waits = vram_sim_calls(scene.world.sim, "cuStreamWaitEvent"), records = vram_sim_calls(scene.world.sim, "cuEventRecord");
    assert_true(calls_of_launch(&scene, third) > usual);
    assert_int_equal(vram_sim_calls(scene.world.sim, "cuStreamWaitEvent") - waits, 2);
    assert_int_equal(vram_sim_calls(scene.world.sim, "cuEventRecord") - records, 1); // the fence is there already
    assert_int_equal(calls_of_launch(&scene, third), usual);
    expect_free(&scene.world, first);
    close_scene(&scene);
    close_scene(&plain);
}

static void expect_done_after(struct scene *scene, uint64_t stream, uint64_t wait_ns) {
    uint64_t event = 0;
    assert_int_equal(vr_cu(scene->world.sim, event_create, &event, VR_CU_EVENT_DISABLE_TIMING), VR_CU_SUCCESS);
    assert_int_equal(vr_cu(scene->world.sim, event_record, event, stream), VR_CU_SUCCESS);
    assert_int_equal(vr_cu(scene->world.sim, event_query, event), VR_CU_NOT_READY);
    EXPECT_OK(vram_sim_advance(scene->world.sim, wait_ns));
    assert_int_equal(vr_cu(scene->world.sim, event_query, event), VR_CU_SUCCESS);
    assert_int_equal(vr_cu(scene->world.sim, event_destroy, event), VR_CU_SUCCESS);
}

// The borrower waits for the launch on a third stream, and the next launch for the borrower.
static void work_is_ordered(void **state) {
    enum { LONG = 1000 * 1000 * 1000 };
    (void)state;
    struct scene scene;
    open_scene_on(&scene, confs[0], true);
    const uint64_t third = scene.world.stream[0][3], first = expect_malloc(&scene.world, 80 * MIB, scene.other);
    EXPECT_OK(vram_sim_busy(scene.world.sim, 0, third, LONG));
    EXPECT_OK(vram_graph_launch(scene.graph, third, NULL));
    const uint64_t loan = expect_malloc(&scene.world, 40 * MIB, scene.other);
    expect_done_after(&scene, scene.other, LONG);
    EXPECT_OK(vram_sim_busy(scene.world.sim, 0, scene.other, LONG));
    expect_free(&scene.world, loan);
    EXPECT_OK(vram_graph_launch(scene.graph, third, NULL));
    expect_done_after(&scene, third, LONG);
    expect_free(&scene.world, first);
    close_scene(&scene);
}

struct pattern {
    uint64_t address;
    int byte;
};

static void fill(void *argument) {
    const struct pattern *pattern = argument;
    memset((void *)(uintptr_t)pattern->address, pattern->byte, 40 * MIB);
}

static bool holds(const struct pattern *pattern) {
    const unsigned char *bytes = (const unsigned char *)(uintptr_t)pattern->address;
    for (size_t i = 0; i < 40 * MIB; i += 4096)
        if (bytes[i] != pattern->byte) return false;
    return true;
}

// A graph's kernel fills memory that its capture freed. A loan there keeps its bytes for as long as it lives.
static void a_loan_keeps_its_bytes(void **state) {
    (void)state;
    if (THREAD_SANITIZER) skip();
    struct vr_world world;
    const struct vr_world_options options = {.sim = {.memory_bytes = 64 * MIB, .backed = true}, .conf = confs[0]};
    EXPECT_OK(vr_world_open(&world, &options));
    const uint64_t stream = world.stream[0][1];
    struct vram_graph *graph = NULL;
    EXPECT_OK(vram_graph_begin(world.allocator, 0, stream, NULL, &graph, NULL));
    struct pattern written = {expect_malloc(&world, 40 * MIB, stream), 0xaa};
    EXPECT_OK(vram_sim_launch(world.sim, 0, stream, fill, &written, 1000));
    expect_free(&world, written.address);
    EXPECT_OK(vram_graph_end(graph, NULL));
    for (int round = 0; round < 20; round++) {
        EXPECT_OK(vram_graph_launch(graph, stream, NULL));
        assert_true(holds(&written));
        struct pattern loan = {expect_malloc(&world, 40 * MIB, world.stream[0][2]), round};
        assert_int_equal(loan.address, written.address);
        fill(&loan);
        EXPECT_STATUS(LENT, vram_graph_launch(graph, stream, NULL));
        assert_true(holds(&loan));
        expect_free(&world, loan.address);
    }
    vram_graph_destroy(graph);
    expect_end(&world);
}

// While a launch is announced, nothing is lent. A graph that becomes part of another one bars its pool for good.
static void announced_launches(void **state) {
    (void)state;
    struct scene scene;
    uint64_t refused = 0;
    open_scene(&scene, confs[0]);
    struct vram_pool *pool = vram_graph_pool(scene.graph);
    const uint64_t first = expect_malloc(&scene.world, 80 * MIB, scene.own);
    EXPECT_STATUS(INVALID_ARGUMENT, vram_pool_launch_begin(NULL, scene.own, NULL));
    EXPECT_OK(vram_pool_launch_begin(pool, scene.own, NULL));
    EXPECT_OK(vram_pool_launch_begin(pool, scene.other, NULL));
    vram_pool_launch_end(pool);
    EXPECT_STATUS(OUT_OF_MEMORY, vram_malloc(scene.world.allocator, 0, 40 * MIB, scene.own, &refused));
    vram_pool_launch_end(pool);
    vram_pool_launch_end(NULL);
    expect_free(&scene.world, expect_malloc(&scene.world, 40 * MIB, scene.own));
    EXPECT_OK(vram_graph_launch(scene.graph, scene.own, NULL));
    struct vram_pool *parent = expect_graph_pool(&scene.world);
    begin(parent, scene.own, VRAM_CAPTURE_GLOBAL);
    EXPECT_OK(vram_graph_launch(scene.graph, scene.own, NULL));
    end(&scene.world, parent, scene.own);
    EXPECT_STATUS(OUT_OF_MEMORY, vram_malloc(scene.world.allocator, 0, 40 * MIB, scene.own, &refused));
    vram_pool_release(parent);
    expect_free(&scene.world, first);
    close_scene(&scene);
}

static void a_capture_forbids_the_wait(void **state) {
    (void)state;
    struct scene scene;
    struct vram_error error;
    open_scene(&scene, confs[0]);
    const uint64_t first = expect_malloc(&scene.world, 80 * MIB, scene.other), third = scene.world.stream[0][3];
    expect_free(&scene.world, expect_malloc(&scene.world, 40 * MIB, scene.other));
    struct vram_pool *pool = expect_graph_pool(&scene.world);
    begin(pool, third, VRAM_CAPTURE_RELAXED);
    EXPECT_STATUS(LENT, vram_graph_launch(scene.graph, scene.own, &error));
    assert_non_null(strstr(error.message, "capture"));
    end(&scene.world, pool, third);
    EXPECT_OK(vram_graph_launch(scene.graph, scene.own, NULL));
    vram_pool_release(pool);
    expect_free(&scene.world, first);
    close_scene(&scene);
}

// --- checkpoints ---------------------------------------------------------------------------------------------------------------------

static void a_loan_is_not_part_of_a_checkpoint(void **state) {
    (void)state;
    struct scene scene;
    struct vram_checkpoint *checkpoint = NULL;
    bool equal = false;
    open_scene(&scene, confs[0]);
    struct vram_pool *pool = vram_graph_pool(scene.graph);
    const uint64_t first = expect_malloc(&scene.world, 80 * MIB, scene.other), loan = expect_malloc(&scene.world, 40 * MIB, scene.other);
    EXPECT_OK(vram_pool_checkpoint(pool, &checkpoint));
    EXPECT_OK(vram_pool_holds_exactly(pool, &scene.kept, 1, &equal));
    assert_true(equal);
    EXPECT_STATUS(LENT, vram_pool_restore(pool, checkpoint, NULL));
    assert_int_equal(expect_size(&scene.world, loan), 40 * MIB);
    expect_free(&scene.world, loan);
    EXPECT_OK(vram_pool_restore(pool, checkpoint, NULL));
    assert_int_equal(expect_size(&scene.world, scene.kept), 50 * MIB);
    vram_checkpoint_destroy(checkpoint);
    expect_free(&scene.world, first);
    close_scene(&scene);
}

// --- ends ----------------------------------------------------------------------------------------------------------------------------

static void a_loan_outlives_its_graph(void **state) {
    (void)state;
    for (size_t c = 0; c < VR_COUNT_OF(confs); c++) {
        struct scene scene;
        open_scene(&scene, confs[c]);
        const uint64_t first = expect_malloc(&scene.world, 80 * MIB, scene.other),
                       loan = expect_malloc(&scene.world, 40 * MIB, scene.other);
        vram_graph_destroy(scene.graph);
        scene.graph = NULL;
        EXPECT_OK(vram_empty_cache(scene.world.allocator));
        assert_int_equal(expect_size(&scene.world, loan), 40 * MIB);
        expect_free(&scene.world, loan);
        expect_free(&scene.world, first);
        close_scene(&scene);
    }
}

// A live block keeps a segment of a graph that is gone. The rest of the segment serves, for as long as it is needed.
static void a_graph_that_is_gone_lends(void **state) {
    (void)state;
    struct scene scene;
    open_scene(&scene, confs[0]);
    struct vram_graph *graph = NULL;
    EXPECT_OK(vram_graph_begin(scene.world.allocator, 0, scene.own, NULL, &graph, NULL));
    const uint64_t kept = expect_malloc(&scene.world, 4 * MIB, scene.own);
    EXPECT_OK(vram_graph_end(graph, NULL));
    vram_graph_destroy(graph);
    const uint64_t first = expect_malloc(&scene.world, 80 * MIB, scene.other), loan = expect_malloc(&scene.world, 16 * MIB, scene.other);
    assert_int_equal(loan, kept + 4 * MIB);
    EXPECT_OK(vram_graph_launch(scene.graph, scene.own, NULL)); // of another pool
    expect_free(&scene.world, kept);
    EXPECT_OK(vram_empty_cache(scene.world.allocator));
    expect_free(&scene.world, loan);
    expect_free(&scene.world, first);
    close_scene(&scene);
}

static void streams_may_end(void **state) {
    (void)state;
    struct scene scene;
    open_scene(&scene, confs[0]);
    const uint64_t gone = new_stream(&scene.world), borrower = new_stream(&scene.world);
    EXPECT_OK(vram_graph_launch(scene.graph, gone, NULL));
    assert_int_equal(vr_cu(scene.world.sim, stream_destroy, gone), VR_CU_SUCCESS);
    const uint64_t first = expect_malloc(&scene.world, 80 * MIB, scene.other), loan = expect_malloc(&scene.world, 40 * MIB, borrower);
    assert_int_equal(vr_cu(scene.world.sim, stream_destroy, borrower), VR_CU_SUCCESS);
    expect_free(&scene.world, loan);
    EXPECT_OK(vram_graph_launch(scene.graph, scene.own, NULL));
    expect_free(&scene.world, first);
    close_scene(&scene);
}

// --- failures ------------------------------------------------------------------------------------------------------------------------

// Borrows on another stream, frees and launches. Returns false at the first failure.
static bool round_trip(struct scene *scene) {
    uint64_t loan = 0;
    if (vram_malloc(scene->world.allocator, 0, 40 * MIB, scene->other, &loan) != VRAM_OK) return false;
    const bool refused = vram_graph_launch(scene->graph, scene->own, NULL) == VRAM_LENT;
    const bool freed = vram_free(scene->world.allocator, loan) == VRAM_OK;
    if (!freed) expect_free(&scene->world, loan);
    return vram_graph_launch(scene->graph, scene->world.stream[0][3], NULL) == VRAM_OK && refused && freed;
}

// Lets each driver call of the round trip fail once. Nothing stays lent, and the next round trip succeeds.
static void every_call_may_fail(void **state) {
    (void)state;
    uint64_t nth = 1;
    for (bool done = false; !done; nth++) {
        struct scene scene;
        struct vram_error error = {0};
        open_scene(&scene, confs[0]);
        const uint64_t first = expect_malloc(&scene.world, 80 * MIB, scene.other);
        EXPECT_OK(vram_graph_launch(scene.graph, scene.own, NULL));
        EXPECT_OK(vram_driver_fault_set(scene.world.driver, NULL, nth, VR_CU_UNKNOWN));
        done = round_trip(&scene) && vram_driver_fault_count(scene.world.driver) == 0;
        EXPECT_OK(vram_driver_fault_set(scene.world.driver, NULL, 0, VR_CU_UNKNOWN));
        if (vram_check(scene.world.allocator, &error) != VRAM_OK) fail_msg("call %u: %s", (unsigned)nth, error.message);
        assert_true(round_trip(&scene));
        expect_free(&scene.world, first);
        close_scene(&scene);
    }
    assert_in_range(nth, 20, 200);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(free_memory_of_a_graph_serves),
        cmocka_unit_test(without_the_option_it_does_not),
        cmocka_unit_test(an_earlier_capture_lends_nothing),
        cmocka_unit_test(a_capture_borrows_nothing),
        cmocka_unit_test(a_launch_is_refused_while_a_loan_lives),
        cmocka_unit_test(a_launch_makes_no_further_call),
        cmocka_unit_test(work_is_ordered),
        cmocka_unit_test(a_loan_keeps_its_bytes),
        cmocka_unit_test(announced_launches),
        cmocka_unit_test(a_capture_forbids_the_wait),
        cmocka_unit_test(a_loan_is_not_part_of_a_checkpoint),
        cmocka_unit_test(a_loan_outlives_its_graph),
        cmocka_unit_test(a_graph_that_is_gone_lends),
        cmocka_unit_test(streams_may_end),
        cmocka_unit_test(every_call_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
