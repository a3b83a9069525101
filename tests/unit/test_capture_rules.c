// Tests which requests a capture affects: since PyTorch 2.13 those of streams that take part, before that all requests of its device.
#include "support/captures.h"

// A machine of 64 MiB with a pool for graphs; streams a and b capture, c does not.
struct scene {
    struct vr_world world;
    struct vram_pool *pool;
    uint64_t a, b, c;
    bool streams_capture; // the rules since 2.13
};

static const char *const confs[] = {"", "pytorch:2.13", "pytorch:2.12", "pytorch:2.6"};

static void open_scene(struct scene *scene, size_t conf) {
    expect_world(&scene->world, confs[conf], 64 * VR_MIB);
    scene->pool = expect_graph_pool(&scene->world);
    scene->a = scene->world.stream[0][1];
    scene->b = scene->world.stream[0][2];
    scene->c = scene->world.stream[0][3];
    scene->streams_capture = conf < 2;
}

static void close_scene(struct scene *scene) {
    end(&scene->world, scene->pool, scene->a);
    vram_pool_release(scene->pool);
    expect_end(&scene->world);
}

// A retry releases the cache, but not for a request in the capture.
static void a_request_during_a_capture_empties_the_cache(void **state) {
    (void)state;
    for (size_t i = 0; i < VR_COUNT_OF(confs); i++) {
        struct scene scene;
        struct vram_stats stats;
        uint64_t address = 0;
        open_scene(&scene, i);
        struct vram_allocator *allocator = scene.world.allocator;
        expect_free(&scene.world, expect_malloc(&scene.world, 30 * VR_MIB, scene.c));
        begin(scene.pool, scene.a, VRAM_CAPTURE_GLOBAL);
        EXPECT_STATUS(OUT_OF_MEMORY, vram_malloc(allocator, 0, 40 * VR_MIB, scene.a, &address));
        EXPECT_OK(vram_get_stats(allocator, 0, &stats));
        assert_int_equal(stats.num_alloc_retries, 0);
        const enum vram_status status = vram_malloc(allocator, 0, 40 * VR_MIB, scene.c, &address);
        assert_int_equal(status, scene.streams_capture ? VRAM_OK : VRAM_OUT_OF_MEMORY);
        EXPECT_OK(vram_get_stats(allocator, 0, &stats));
        assert_int_equal(stats.num_alloc_retries, scene.streams_capture);
        if (status == VRAM_OK) expect_free(&scene.world, address);
        close_scene(&scene);
    }
}

// A free postponed by the capture is completed by the next request outside it, once the streams that used the block have passed.
static void a_request_during_a_capture_looks_at_events(void **state) {
    (void)state;
    for (size_t i = 0; i < VR_COUNT_OF(confs); i++) {
        struct scene scene;
        open_scene(&scene, i);
        struct vr_world *world = &scene.world;
        const uint64_t d = new_stream(world);
        const uint64_t before = expect_malloc(world, VR_MIB, scene.c), during = expect_malloc(world, VR_MIB, scene.c);
        EXPECT_OK(vram_record_stream(world->allocator, before, d));
        EXPECT_OK(vram_record_stream(world->allocator, during, d));
        expect_free(world, before);
        begin(scene.pool, scene.a, VRAM_CAPTURE_GLOBAL);
        expect_free(world, during);
        EXPECT_OK(vr_world_complete(world, 0, d));
        uint64_t first = expect_malloc(world, VR_MIB, scene.c);
        assert_int_equal(first == before, scene.streams_capture);
        EXPECT_OK(vr_world_complete(world, 0, d));
        uint64_t second = expect_malloc(world, VR_MIB, scene.c);
        assert_int_equal(second == during, scene.streams_capture);
        expect_free(world, first);
        expect_free(world, second);
        close_scene(&scene);
    }
}

// A block with a captured use waits for the capture's end, for any request: an event on that stream would become a node of the graph.
static void captured_uses_wait_for_the_end(void **state) {
    (void)state;
    for (size_t i = 0; i < VR_COUNT_OF(confs); i++) {
        struct scene scene;
        open_scene(&scene, i);
        struct vr_world *world = &scene.world;
        const uint64_t block = expect_malloc(world, VR_MIB, scene.c);
        begin(scene.pool, scene.a, VRAM_CAPTURE_RELAXED);
        expect_wait_stream(world, scene.b, scene.a);
        EXPECT_OK(vram_record_stream(world->allocator, block, scene.b));
        expect_free(world, block);
        for (int n = 0; n < 3; n++) {
            const uint64_t other = expect_malloc(world, VR_MIB, scene.c);
            assert_int_not_equal(other, block);
            expect_free(world, other);
        }
        expect_wait_stream(world, scene.a, scene.b);
        end(world, scene.pool, scene.a);
        const uint64_t again = expect_malloc(world, VR_MIB, scene.c);
        assert_int_equal(again, block);
        expect_free(world, again);
        begin(scene.pool, scene.a, VRAM_CAPTURE_GLOBAL);
        close_scene(&scene);
    }
}

// Pages of a stream that does not capture are unmapped; waiting for a capturing one would invalidate the capture.
static void pages_outside_a_capture_are_unmapped(void **state) {
    (void)state;
    struct vr_world world;
    struct vram_stats stats;
    expect_world(&world, "expandable_segments:True", 80 * VR_MIB);
    struct vram_pool *pool = expect_graph_pool(&world);
    const uint64_t a = world.stream[0][1], c = world.stream[0][3];
    expect_free(&world, expect_malloc(&world, 20 * VR_MIB, a));
    expect_free(&world, expect_malloc(&world, 20 * VR_MIB, c));
    begin(pool, a, VRAM_CAPTURE_GLOBAL);
    const uint64_t other = world.stream[0][2], block = expect_malloc(&world, 60 * VR_MIB, other);
    EXPECT_OK(vram_get_stats(world.allocator, 0, &stats));
    assert_int_equal(stats.reserved_bytes[VRAM_STAT_ALL].current, 80 * VR_MIB); // the memory of stream a stays
    expect_free(&world, block);
    end(&world, pool, a);
    vram_pool_release(pool);
    expect_end(&world);
}

// A capture may begin and end with any context current, or none, and keeps it.
static void captures_leave_the_current_context(void **state) {
    (void)state;
    struct vr_world world;
    const struct vr_world_options options = {.sim = {.device_count = 2}, .conf = ""};
    EXPECT_OK(vr_world_open(&world, &options));
    struct vram_pool *pool = expect_graph_pool(&world);
    const uint64_t contexts[] = {0, world.context[0], world.context[1]};
    for (size_t i = 0; i < VR_COUNT_OF(contexts); i++) {
        uint64_t current = 0, graph = 0;
        assert_int_equal(vr_cu(world.sim, ctx_set_current, contexts[i]), VR_CU_SUCCESS);
        begin(pool, world.stream[0][1], VRAM_CAPTURE_GLOBAL);
        assert_int_equal(vr_cu(world.sim, ctx_get_current, &current), VR_CU_SUCCESS);
        assert_int_equal(current, contexts[i]);
        expect_free(&world, expect_malloc(&world, VR_MIB, world.stream[0][1]));
        EXPECT_OK(vram_capture_end(pool, world.stream[0][1], &graph, NULL));
        assert_int_equal(vr_cu(world.sim, ctx_get_current, &current), VR_CU_SUCCESS);
        assert_int_equal(current, contexts[i]);
        // A refused end keeps it, too.
        EXPECT_STATUS(INVALID_ARGUMENT, vram_capture_end(pool, world.stream[0][1], &graph, NULL));
        assert_int_equal(vr_cu(world.sim, ctx_get_current, &current), VR_CU_SUCCESS);
        assert_int_equal(current, contexts[i]);
        assert_int_equal(vr_cu(world.sim, graph_destroy, graph), VR_CU_SUCCESS);
    }
    vram_pool_release(pool);
    expect_end(&world);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_request_during_a_capture_empties_the_cache),
        cmocka_unit_test(a_request_during_a_capture_looks_at_events),
        cmocka_unit_test(captured_uses_wait_for_the_end),
        cmocka_unit_test(pages_outside_a_capture_are_unmapped),
        cmocka_unit_test(captures_leave_the_current_context),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
