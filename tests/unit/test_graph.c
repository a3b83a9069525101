// Tests graphs in vram/pool.h: correct bytes through a thousand launches while other code allocates, the reported mistakes, and that
// nothing is left behind after any failure.
#include "driver/driver.h"
#include "support/expect.h"
#include "support/random.h"
#include "vram/host.h"
#include "vram/pool.h"
#include "vram/sim.h"

enum { VALUES = 1024, LAUNCHES = 1000, OTHERS = 64 };

static struct vram_graph *expect_begin(struct vr_world *world, uint64_t stream, struct vram_pool *pool) {
    const struct vram_graph_options options = {.pool = pool};
    struct vram_graph *graph = NULL;
    EXPECT_OK(vram_graph_begin(world->allocator, 0, stream, &options, &graph, NULL));
    return graph;
}

// Checks for a refusal whose message contains `word`.
#define EXPECT_REFUSED(status, word, expression)                                                                                           \
    do {                                                                                                                                   \
        struct vram_error error_ = {.message = ""};                                                                                        \
        EXPECT_STATUS(status, (expression));                                                                                               \
        if (strstr(error_.message, word) == NULL) fail_msg("\"%s\" does not say \"%s\"", error_.message, word);                            \
    } while (0)

// --- bytes ---------------------------------------------------------------------------------------------------------------------------

// A kernel: out[i] = a[i] * factor + b[i].
struct kernel {
    uint64_t out, a, b;
    uint32_t factor;
};

static uint32_t *at(uint64_t address) { return (uint32_t *)(uintptr_t)address; }

static void compute(void *argument) {
    const struct kernel *kernel = argument;
    for (int i = 0; i < VALUES; i++) at(kernel->out)[i] = at(kernel->a)[i] * kernel->factor + at(kernel->b)[i];
}

static void launch(struct vr_world *world, uint64_t stream, struct kernel *kernel) {
    EXPECT_OK(vram_sim_launch(world->sim, 0, stream, compute, kernel, 1000));
}

// Allocates and frees at random in the default pools, and overwrites what it gets.
static void disturb(struct vr_world *world, uint64_t *others, uint64_t *random) {
    uint64_t *slot = &others[vr_random_next(random) % OTHERS];
    if (*slot != 0) expect_free(world, *slot);
    const uint64_t size = (vr_random_next(random) % 8 == 0 ? 3 * VR_MIB : 4096) + vr_random_next(random) % 100000;
    *slot = expect_malloc(world, size, world->stream[0][vr_random_next(random) % 3]);
    assert_int_equal(vr_cu(world->sim, memset_d8, *slot, 0xee, 4096), VR_CU_SUCCESS);
    if (vr_random_next(random) % 50 == 0) EXPECT_OK(vram_empty_cache(world->allocator));
}

static bool can_be_backed(struct vr_world *world, const char *conf) {
    const struct vr_world_options options = {.sim = {.memory_bytes = VR_GIB, .backed = true, .manual_completion = true}, .conf = conf};
    EXPECT_OK(vr_world_open(world, &options));
    uint64_t probe = 0;
    const enum vram_status status = vram_malloc(world->allocator, 0, 4096, 0, &probe);
    if (status == VRAM_OK) expect_free(world, probe);
    return status == VRAM_OK;
}

// Two kernels with an intermediate, one of them on a stream that forks and joins; the input changes before every launch.
static void a_graph_computes_the_right_bytes(void **state) {
    static const char *const confs[] = {"", "expandable_segments:True", "graph_capture_record_stream_reuse:True"};
    (void)state;
    for (size_t c = 0; c < VR_COUNT_OF(confs); c++) {
        struct vr_world world;
        if (!can_be_backed(&world, confs[c])) {
            (void)vr_world_close(&world);
            skip();
        }
        const uint64_t stream = world.stream[0][1];
        const uint64_t input = expect_malloc(&world, VALUES * 4, 0);
        struct vram_graph *graph = expect_begin(&world, stream, NULL);
        const uint64_t middle = expect_malloc(&world, VALUES * 4, stream), output = expect_malloc(&world, VALUES * 4, stream);
        struct kernel first = {.out = middle, .a = input, .b = input, .factor = 3};
        struct kernel second = {.out = output, .a = middle, .b = input, .factor = 7};
        launch(&world, stream, &first);
        launch(&world, stream, &second);
        expect_free(&world, middle);
        EXPECT_OK(vram_graph_end(graph, NULL));
        EXPECT_OK(vram_graph_add_static(graph, input));
        uint64_t others[OTHERS] = {0};
        uint64_t random = 12345;
        for (uint32_t round = 0; round < LAUNCHES; round++) {
            for (uint32_t i = 0; i < VALUES; i++) at(input)[i] = round * 31 + i;
            for (int i = 0; i < 4; i++) disturb(&world, others, &random);
            EXPECT_OK(vram_graph_launch(graph, stream, NULL));
            EXPECT_OK(vram_sim_complete_all(world.sim));
            for (uint32_t i = 0; i < VALUES; i++) {
                const uint32_t x = round * 31 + i;
                if (at(output)[i] != (x * 3 + x) * 7 + x) fail_msg("launch %u: value %u is wrong", (unsigned)round, (unsigned)i);
            }
        }
        vram_graph_destroy(graph);
        expect_end(&world);
    }
}

// --- mistakes ------------------------------------------------------------------------------------------------------------------------

static void the_default_stream_is_refused(void **state) {
    (void)state;
    struct vr_world world;
    expect_world(&world, "", 0);
    struct vram_graph *graph = NULL;
    EXPECT_REFUSED(INVALID_ARGUMENT, "default stream", vram_graph_begin(world.allocator, 0, 0, NULL, &graph, &error_));
    EXPECT_REFUSED(INVALID_ARGUMENT, "default stream", vram_graph_capture_all(world.allocator, 0, 0, NULL, 0, 0, NULL, &error_));
    EXPECT_STATUS(INVALID_ARGUMENT, vram_graph_begin(world.allocator, 7, world.stream[0][1], NULL, &graph, NULL));
    assert_null(graph);
    expect_end(&world);
}

static void two_captures_at_once_are_refused(void **state) {
    (void)state;
    struct vr_world world;
    expect_world(&world, "", 0);
    struct vram_graph *graph = expect_begin(&world, world.stream[0][1], NULL), *other = NULL;
    EXPECT_REFUSED(INVALID_ARGUMENT, "in progress", vram_graph_begin(world.allocator, 0, world.stream[0][2], NULL, &other, &error_));
    EXPECT_REFUSED(INVALID_ARGUMENT, "not ready", vram_graph_launch(graph, world.stream[0][2], &error_));
    (void)expect_malloc(&world, 1000, world.stream[0][1]);
    EXPECT_OK(vram_graph_end(graph, NULL));
    EXPECT_REFUSED(INVALID_ARGUMENT, "not being captured", vram_graph_end(graph, &error_));
    vram_graph_destroy(graph);
    expect_end(&world);
}

static void a_call_that_waits_is_named(void **state) {
    (void)state;
    struct vr_world world;
    expect_world(&world, "", 0);
    const uint64_t stream = world.stream[0][1];
    struct vram_graph *graph = expect_begin(&world, stream, NULL);
    const uint64_t block = expect_malloc(&world, 5 * VR_MIB, stream);
    assert_int_not_equal(vr_cu(world.sim, stream_synchronize, stream), VR_CU_SUCCESS);
    EXPECT_REFUSED(DRIVER, "invalidated", vram_graph_end(graph, &error_));
    EXPECT_REFUSED(INVALID_ARGUMENT, "not ready", vram_graph_launch(graph, stream, &error_));
    vram_graph_destroy(graph);
    expect_free(&world, block);
    EXPECT_OK(vram_empty_cache(world.allocator));
    EXPECT_CURRENT(&world, reserved_bytes, 0);
    // The stream is still usable.
    graph = expect_begin(&world, stream, NULL);
    EXPECT_OK(vram_graph_end(graph, NULL));
    vram_graph_destroy(graph);
    expect_end(&world);
}

static void an_unjoined_stream_is_named(void **state) {
    (void)state;
    struct vr_world world;
    expect_world(&world, "", 0);
    const uint64_t stream = world.stream[0][1], side = world.stream[0][2];
    struct vram_graph *graph = expect_begin(&world, stream, NULL);
    uint64_t event = 0;
    assert_int_equal(vr_cu(world.sim, event_create, &event, VR_CU_EVENT_DISABLE_TIMING), VR_CU_SUCCESS);
    assert_int_equal(vr_cu(world.sim, event_record, event, stream), VR_CU_SUCCESS);
    assert_int_equal(vr_cu(world.sim, stream_wait_event, side, event, 0), VR_CU_SUCCESS);
    // A joined stream allocates from the graph's pool.
    const uint64_t block = expect_malloc(&world, 1000, side);
    struct vram_block_info info;
    EXPECT_OK(vram_get_block_info(world.allocator, block, &info));
    assert_int_equal(info.pool.first, vram_get_pool_id(vram_graph_pool(graph)).first);
    EXPECT_OK(vram_sim_launch(world.sim, 0, side, NULL, NULL, 10));
    EXPECT_REFUSED(DRIVER, "not joined back", vram_graph_end(graph, &error_));
    vram_graph_destroy(graph);
    assert_int_equal(vr_cu(world.sim, event_destroy, event), VR_CU_SUCCESS);
    expect_free(&world, block);
    expect_end(&world);
}

static void order_in_a_shared_pool(void **state) {
    (void)state;
    struct vr_world world;
    expect_world(&world, "", 0);
    const uint64_t stream = world.stream[0][1];
    struct vram_graph *graphs[3];
    for (int i = 0; i < 3; i++) {
        graphs[i] = expect_begin(&world, stream, i == 0 ? NULL : vram_graph_pool(graphs[0]));
        expect_free(&world, expect_malloc(&world, 1000, stream));
        EXPECT_OK(vram_graph_end(graphs[i], NULL));
    }
    assert_int_equal(vram_pool_references(vram_graph_pool(graphs[0])), 3);
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < 3; i++) EXPECT_OK(vram_graph_launch(graphs[i], stream, NULL));
    }
    EXPECT_REFUSED(INVALID_ARGUMENT, "order", vram_graph_launch(graphs[2], stream, &error_));
    EXPECT_REFUSED(INVALID_ARGUMENT, "order", vram_graph_launch(graphs[1], stream, &error_));
    EXPECT_OK(vram_graph_launch(graphs[0], stream, NULL));
    EXPECT_OK(vram_graph_launch(graphs[2], stream, NULL));
    EXPECT_REFUSED(INVALID_ARGUMENT, "order", vram_graph_launch(graphs[1], stream, &error_));
    for (int i = 0; i < 3; i++) vram_graph_destroy(graphs[i]);
    EXPECT_OK(vram_empty_cache(world.allocator));
    EXPECT_CURRENT(&world, reserved_bytes, 0);
    expect_end(&world);
}

// A launch that the driver refused does not count as one, so the same graph may be tried again.
static void a_refused_launch_may_be_repeated(void **state) {
    (void)state;
    struct vr_world world;
    const struct vr_world_options options = {.sim = {.manual_completion = true}, .faults = true};
    EXPECT_OK(vr_world_open(&world, &options));
    const uint64_t stream = world.stream[0][1];
    struct vram_graph *graphs[3];
    for (int i = 0; i < 3; i++) {
        graphs[i] = expect_begin(&world, stream, i == 0 ? NULL : vram_graph_pool(graphs[0]));
        expect_free(&world, expect_malloc(&world, 1000, stream));
        EXPECT_OK(vram_graph_end(graphs[i], NULL));
    }
    for (int i = 0; i < 3; i++) {
        EXPECT_OK(vram_driver_fault_set(world.driver, "cuGraphLaunch", 1, VR_CU_UNKNOWN));
        EXPECT_REFUSED(DRIVER, "refused to launch", vram_graph_launch(graphs[i], stream, &error_));
        EXPECT_OK(vram_graph_launch(graphs[i], stream, NULL));
        EXPECT_OK(vram_driver_fault_set(world.driver, "cuCtxGetCurrent", 1, VR_CU_UNKNOWN));
        EXPECT_STATUS(DRIVER, vram_graph_launch(graphs[0], stream, NULL));
    }
    EXPECT_REFUSED(INVALID_ARGUMENT, "order", vram_graph_launch(graphs[1], stream, &error_));
    for (int i = 0; i < 3; i++) vram_graph_destroy(graphs[i]);
    expect_end(&world);
}

static void static_memory_is_watched(void **state) {
    (void)state;
    struct vr_world world;
    expect_world(&world, "", 0);
    const uint64_t stream = world.stream[0][1], input = expect_malloc(&world, 5 * VR_MIB, 0);
    struct vram_graph *graph = expect_begin(&world, stream, NULL);
    EXPECT_OK(vram_graph_end(graph, NULL));
    EXPECT_OK(vram_graph_add_static(graph, input));
    EXPECT_STATUS(INVALID_POINTER, vram_graph_add_static(graph, input + 512));
    EXPECT_OK(vram_graph_launch(graph, stream, NULL));
    expect_free(&world, input);
    EXPECT_REFUSED(INVALID_ARGUMENT, "static", vram_graph_launch(graph, stream, &error_));
    assert_int_equal(expect_malloc(&world, 2 * VR_MIB, 0), input);
    EXPECT_REFUSED(INVALID_ARGUMENT, "static", vram_graph_launch(graph, stream, &error_));
    expect_free(&world, input);
    vram_graph_destroy(graph);
    expect_end(&world);
}

// A graph's pool keeps its memory while the graph exists.
static void memory_stays_while_a_graph_lives(void **state) {
    (void)state;
    struct vr_world world;
    expect_world(&world, "", 0);
    const uint64_t stream = world.stream[0][1];
    struct vram_graph *graph = expect_begin(&world, stream, NULL);
    expect_free(&world, expect_malloc(&world, 50 * VR_MIB, stream));
    EXPECT_OK(vram_graph_end(graph, NULL));
    EXPECT_OK(vram_empty_cache(world.allocator));
    EXPECT_OK(vram_pool_empty_cache(vram_graph_pool(graph)));
    EXPECT_CURRENT(&world, reserved_bytes, 50 * VR_MIB);
    EXPECT_OK(vram_graph_launch(graph, stream, NULL));
    vram_graph_destroy(graph);
    EXPECT_OK(vram_empty_cache(world.allocator));
    EXPECT_CURRENT(&world, reserved_bytes, 0);
    expect_end(&world);
}

// --- sequences -----------------------------------------------------------------------------------------------------------------------

struct region {
    struct vr_world *world;
    uint64_t output;
    uint32_t runs;
    bool fails;
};

static enum vram_status run_region(uint64_t stream, void *user) {
    struct region *region = user;
    uint64_t temporary = 0;
    if (region->output != 0) VR_TRY(vram_free(region->world->allocator, region->output));
    VR_TRY(vram_malloc(region->world->allocator, 0, 30 * VR_MIB, stream, &temporary));
    VR_TRY(vram_malloc(region->world->allocator, 0, 20 * VR_MIB, stream, &region->output));
    VR_TRY(vram_free(region->world->allocator, temporary));
    region->runs++;
    return region->fails && region->runs > 2 ? VRAM_MISMATCH : VRAM_OK;
}

static void callables_share_one_pool(void **state) {
    (void)state;
    struct vr_world world;
    expect_world(&world, "", 0);
    const uint64_t stream = world.stream[0][1];
    struct region regions[3] = {{.world = &world}, {.world = &world}, {.world = &world}};
    const struct vram_graph_callable callables[] = {{run_region, &regions[0]}, {run_region, &regions[1]}, {run_region, &regions[2]}};
    struct vram_graph *graphs[3];
    EXPECT_OK(vram_graph_capture_all(world.allocator, 0, stream, callables, 3, 2, graphs, NULL));
    for (int i = 0; i < 3; i++) assert_int_equal(regions[i].runs, 3);
    struct vram_pool_stats stats;
    EXPECT_OK(vram_get_pool_stats(vram_graph_pool(graphs[2]), &stats));
    // Three outputs, and one temporary that all of them use in turn.
    assert_int_equal(stats.reserved_bytes[VRAM_STAT_ALL].current, 90 * VR_MIB);
    for (int i = 0; i < 3; i++) EXPECT_OK(vram_graph_launch(graphs[i], stream, NULL));
    for (int i = 0; i < 3; i++) vram_graph_destroy(graphs[i]);
    for (int i = 0; i < 3; i++) expect_free(&world, regions[i].output);
    EXPECT_OK(vram_empty_cache(world.allocator));
    EXPECT_CURRENT(&world, reserved_bytes, 0);
    expect_end(&world);
}

static void a_failing_callable_ends_the_sequence(void **state) {
    (void)state;
    struct vr_world world;
    expect_world(&world, "", 0);
    struct region regions[2] = {{.world = &world}, {.world = &world, .fails = true}};
    const struct vram_graph_callable callables[] = {{run_region, &regions[0]}, {run_region, &regions[1]}};
    struct vram_graph *graphs[2];
    EXPECT_STATUS(MISMATCH, vram_graph_capture_all(world.allocator, 0, world.stream[0][1], callables, 2, 2, graphs, NULL));
    for (int i = 0; i < 2; i++) expect_free(&world, regions[i].output);
    EXPECT_OK(vram_empty_cache(world.allocator));
    EXPECT_CURRENT(&world, reserved_bytes, 0);
    expect_end(&world);
}

// --- failures ------------------------------------------------------------------------------------------------------------------------

static enum vram_status capture_and_launch(struct vr_world *world) {
    const uint64_t stream = world->stream[0][1];
    struct vram_graph *graph = NULL;
    VR_TRY(vram_graph_begin(world->allocator, 0, stream, NULL, &graph, NULL));
    uint64_t kept = 0, used = 0;
    enum vram_status status = vram_malloc(world->allocator, 0, 30 * VR_MIB, stream, &kept);
    if (status == VRAM_OK) status = vram_malloc(world->allocator, 0, 3 * VR_MIB, stream, &used);
    if (status == VRAM_OK) status = vram_record_stream(world->allocator, used, world->stream[0][2]);
    if (status == VRAM_OK) status = vram_free(world->allocator, used);
    const enum vram_status ended = vram_graph_end(graph, NULL);
    if (status == VRAM_OK) status = ended;
    if (status == VRAM_OK) status = vram_graph_launch(graph, stream, NULL);
    vram_graph_destroy(graph);
    // The second block is already freed if everything succeeded.
    const enum vram_status freed = vram_free(world->allocator, kept), again = vram_free(world->allocator, used);
    return status != VRAM_OK || again == VRAM_OK ? status : freed;
}

// Faults at every nth driver call, also during the capture: nothing leaks, and no pool is stuck.
static void every_driver_call_may_fail(void **state) {
    static const char *const confs[] = {"", "expandable_segments:True", "graph_capture_record_stream_reuse:True"};
    (void)state;
    for (size_t c = 0; c < VR_COUNT_OF(confs); c++) {
        uint64_t failed = 1;
        for (uint64_t nth = 1; failed != 0; nth++) {
            struct vr_world world;
            const struct vr_world_options options = {.sim = {.manual_completion = true}, .conf = confs[c], .faults = true};
            EXPECT_OK(vr_world_open(&world, &options));
            EXPECT_OK(vram_driver_fault_set(world.driver, NULL, nth, VR_CU_OUT_OF_MEMORY));
            (void)capture_and_launch(&world);
            failed = vram_driver_fault_count(world.driver);
            EXPECT_OK(vram_driver_fault_set(world.driver, NULL, 0, VR_CU_UNKNOWN));
            EXPECT_OK(vram_check(world.allocator, NULL));
            EXPECT_OK(capture_and_launch(&world));
            EXPECT_OK(vram_sim_complete_all(world.sim));
            EXPECT_OK(vram_empty_cache(world.allocator));
            if (expect_stats(&world).reserved_bytes[VRAM_STAT_ALL].current != 0)
                fail_msg("a pool is stuck after call %u failed", (unsigned)nth);
            vr_world_destroy_allocator(&world);
            (void)vr_world_close(&world);
        }
    }
}

// Empties the device's cache and the pinned cache before the capture, as torch.cuda.graph() does.
static void the_caches_are_emptied_before(void **state) {
    (void)state;
    struct vr_world world;
    expect_world(&world, "", 0);
    struct vram_host *host = NULL;
    const struct vram_host_create_info info = {.driver = world.driver, .conf = ""};
    EXPECT_OK(vram_host_create(&info, &host, NULL));
    void *pinned = NULL;
    EXPECT_OK(vram_host_malloc(host, 5000, 0, &pinned));
    EXPECT_OK(vram_host_free(host, pinned));
    expect_free(&world, expect_malloc(&world, 5000, 0));
    struct vram_graph *graph = NULL;
    const struct vram_graph_options options = {.host = host};
    EXPECT_OK(vram_graph_begin(world.allocator, 0, world.stream[0][1], &options, &graph, NULL));
    struct vram_host_stats stats;
    vram_get_host_stats(host, &stats);
    assert_int_equal(stats.allocated_bytes.current, 0);
    EXPECT_CURRENT(&world, reserved_bytes, 0);
    EXPECT_OK(vram_graph_end(graph, NULL));
    vram_graph_destroy(graph);
    vram_host_destroy(host);
    expect_end(&world);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_caches_are_emptied_before), cmocka_unit_test(a_graph_computes_the_right_bytes),
        cmocka_unit_test(the_default_stream_is_refused), cmocka_unit_test(two_captures_at_once_are_refused),
        cmocka_unit_test(a_call_that_waits_is_named),    cmocka_unit_test(an_unjoined_stream_is_named),
        cmocka_unit_test(order_in_a_shared_pool),        cmocka_unit_test(a_refused_launch_may_be_repeated),
        cmocka_unit_test(static_memory_is_watched),      cmocka_unit_test(memory_stays_while_a_graph_lives),
        cmocka_unit_test(callables_share_one_pool),      cmocka_unit_test(a_failing_callable_ends_the_sequence),
        cmocka_unit_test(every_driver_call_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
