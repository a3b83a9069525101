// Tests captures that the allocator did not begin: announced, unannounced, and across several devices.
#include "driver/driver.h"
#include "support/waits.h"
#include "vram/pool.h"
#include "vram/sim.h"

static void two_devices(struct vr_world *world) {
    const struct vr_world_options options = {.sim = {.device_count = 2, .manual_completion = true}};
    EXPECT_OK(vr_world_open(world, &options));
}

static struct vram_pool *expect_pool(struct vr_world *world, uint32_t device) {
    const struct vram_pool_options options = {.for_graph = true};
    struct vram_pool *pool = NULL;
    EXPECT_OK(vram_pool_create(world->allocator, device, &options, &pool));
    return pool;
}

static uint64_t expect_malloc_on(struct vr_world *world, uint32_t device, uint64_t size_bytes, uint64_t stream) {
    uint64_t address = 0;
    EXPECT_OK(vram_malloc(world->allocator, device, size_bytes, stream, &address));
    return address;
}

static bool is_of_pool(struct vr_world *world, uint64_t address, const struct vram_pool *pool) {
    struct vram_block_info info;
    EXPECT_OK(vram_get_block_info(world->allocator, address, &info));
    return info.pool.first == vram_get_pool_id(pool).first && info.pool.second == vram_get_pool_id(pool).second;
}

static void driver_begin(struct vr_world *world, uint64_t stream, int mode) {
    assert_int_equal(vr_cu(world->sim, stream_begin_capture, stream, mode), VR_CU_SUCCESS);
}

static void driver_end(struct vr_world *world, uint64_t stream) {
    uint64_t graph = 0;
    assert_string_equal(vr_cu_result_name(vr_cu(world->sim, stream_end_capture, stream, &graph)), "CUDA_SUCCESS");
    assert_int_equal(vr_cu(world->sim, graph_destroy, graph), VR_CU_SUCCESS);
}

static void use_context(struct vr_world *world, uint32_t device) {
    assert_int_equal(vr_cu(world->sim, ctx_set_current, world->context[device]), VR_CU_SUCCESS);
}

// Makes `to` wait for the current work of `from`, a stream of `device`.
static void order(struct vr_world *world, uint32_t device, uint64_t from, uint64_t to) {
    use_context(world, device);
    expect_wait_stream(world, to, from);
    use_context(world, 0);
}

static size_t pending_on(struct vr_world *world, uint32_t device) { return expect_blocks_in(world, device, VRAM_BLOCK_PENDING); }

// Makes a request outside the capture, which completes the frees that can be completed.
static void look(struct vr_world *world, uint32_t device, uint64_t stream) {
    EXPECT_OK(vram_free(world->allocator, expect_malloc_on(world, device, 512, stream)));
}

// --- captures reported to the allocator -------------------------------------------------------------------------------------------------

static void it_is_as_if_we_had_begun_it(void **state) {
    (void)state;
    struct vr_world world;
    expect_world(&world, "", 0);
    const uint64_t a = world.stream[0][1], b = world.stream[0][2], c = world.stream[0][3];
    struct vram_pool *pool = expect_pool(&world, 0);
    expect_free(&world, expect_malloc(&world, 3 * VR_MIB, c)); // cached
    EXPECT_OK(vram_capture_enter(pool, a));
    assert_int_equal(vram_pool_references(pool), 2);
    driver_begin(&world, a, VR_CU_STREAM_CAPTURE_MODE_GLOBAL);
    const uint64_t block = expect_malloc(&world, 3 * VR_MIB, a);
    assert_true(is_of_pool(&world, block, pool));
    order(&world, 0, a, b);
    assert_true(is_of_pool(&world, expect_malloc(&world, 100, b), pool));
    EXPECT_OK(vram_record_stream(world.allocator, block, b));
    expect_free(&world, block);
    look(&world, 0, c);
    assert_int_equal(pending_on(&world, 0), 1);
    EXPECT_OK(vram_empty_cache(world.allocator)); // nothing is released now
    assert_true(expect_stats(&world).reserved_bytes[VRAM_STAT_ALL].current >= 40 * (int64_t)VR_MIB);
    order(&world, 0, b, a);
    driver_end(&world, a);
    EXPECT_OK(vram_capture_leave(pool, a));
    EXPECT_STATUS(INVALID_ARGUMENT, vram_capture_leave(pool, a));
    assert_int_equal(vram_pool_references(pool), 1);
    look(&world, 0, c);
    assert_int_equal(pending_on(&world, 0), 0);
    EXPECT_OK(vram_pool_empty_cache(pool)); // a graph contains its addresses
    struct vram_pool_stats stats;
    EXPECT_OK(vram_get_pool_stats(pool, &stats));
    assert_true(stats.free_bytes != 0);
    vram_pool_release(pool);
    expect_end(&world);
}

static void it_is_ended_by_who_began_it(void **state) {
    (void)state;
    struct vr_world world;
    struct vram_error error;
    uint64_t graph = 0;
    expect_world(&world, "", 0);
    const uint64_t a = world.stream[0][1];
    struct vram_pool *pool = expect_pool(&world, 0);
    EXPECT_STATUS(INVALID_ARGUMENT, vram_capture_enter(pool, 0));
    EXPECT_STATUS(INVALID_ARGUMENT, vram_capture_leave(pool, a));
    EXPECT_OK(vram_capture_enter(pool, a));
    EXPECT_STATUS(INVALID_ARGUMENT, vram_capture_end(pool, a, &graph, &error));
    EXPECT_OK(vram_capture_enter(pool, a)); // twice, because two graphs of one pool nest
    EXPECT_OK(vram_capture_leave(pool, a));
    EXPECT_OK(vram_capture_begin(pool, a, VRAM_CAPTURE_RELAXED, NULL));
    EXPECT_OK(vram_capture_leave(pool, a));
    EXPECT_STATUS(INVALID_ARGUMENT, vram_capture_leave(pool, a));
    EXPECT_OK(vram_capture_end(pool, a, &graph, &error));
    assert_int_equal(vr_cu(world.sim, graph_destroy, graph), VR_CU_SUCCESS);
    driver_begin(&world, a, VR_CU_STREAM_CAPTURE_MODE_RELAXED);
    EXPECT_STATUS(INVALID_ARGUMENT, vram_capture_begin(pool, a, VRAM_CAPTURE_RELAXED, &error));
    assert_string_equal(error.message, "this stream is already capturing");
    driver_end(&world, a);
    vram_pool_release(pool);
    expect_end(&world);
}

// --- captures not reported to the allocator ---------------------------------------------------------------------------------------------

static void a_fence_never_becomes_a_node(void **state) {
    (void)state;
    struct vr_world world;
    expect_world(&world, "", 0);
    const uint64_t a = world.stream[0][1], b = world.stream[0][2], c = world.stream[0][3];
    const uint64_t block = expect_malloc(&world, 3 * VR_MIB, a), other = expect_malloc(&world, 3 * VR_MIB, a);
    EXPECT_OK(vram_record_stream(world.allocator, block, b));
    EXPECT_OK(vram_record_stream(world.allocator, other, c));
    driver_begin(&world, b, VR_CU_STREAM_CAPTURE_MODE_RELAXED);
    expect_free(&world, block);
    expect_free(&world, other);
    assert_int_equal(pending_on(&world, 0), 2);
    EXPECT_OK(vram_sim_complete(world.sim, c));
    look(&world, 0, c);
    assert_int_equal(pending_on(&world, 0), 1); // the other needed only its fence
    uint64_t count = 0, graph = 0;
    assert_int_equal(vr_cu(world.sim, stream_end_capture, b, &graph), VR_CU_SUCCESS);
    assert_int_equal(vr_cu(world.sim, graph_get_nodes, graph, NULL, &count), VR_CU_SUCCESS);
    assert_int_equal(count, 0);
    assert_int_equal(vr_cu(world.sim, graph_destroy, graph), VR_CU_SUCCESS);
    look(&world, 0, c); // now it has a pending fence
    assert_int_equal(pending_on(&world, 0), 1);
    EXPECT_OK(vram_sim_complete(world.sim, b));
    look(&world, 0, c);
    assert_int_equal(pending_on(&world, 0), 0);
    EXPECT_OK(vram_empty_cache(world.allocator));
    EXPECT_CURRENT(&world, reserved_bytes, 0);
    expect_end(&world);
}

// --- several devices --------------------------------------------------------------------------------------------------------------------

static void every_device_that_takes_part_puts_frees_off(void **state) {
    (void)state;
    struct vr_world world;
    two_devices(&world);
    const uint64_t a = world.stream[0][1], far = world.stream[1][1], aside = world.stream[1][2];
    struct vram_pool *pool = expect_pool(&world, 0), *there = expect_pool(&world, 1);
    const uint64_t block = expect_malloc_on(&world, 1, 3 * VR_MIB, aside), mine = expect_malloc_on(&world, 0, 3 * VR_MIB, 0);
    look(&world, 1, far);
    EXPECT_OK(vram_capture_enter(there, a));
    EXPECT_OK(vram_capture_begin(pool, a, VRAM_CAPTURE_RELAXED, NULL));
    order(&world, 0, a, far);
    assert_true(is_of_pool(&world, expect_malloc_on(&world, 1, 100, far), there));
    assert_false(is_of_pool(&world, expect_malloc_on(&world, 1, 100, aside), there));
    EXPECT_OK(vram_record_stream(world.allocator, block, far));
    EXPECT_OK(vram_record_stream(world.allocator, mine, far));
    EXPECT_OK(vram_free(world.allocator, block));
    EXPECT_OK(vram_free(world.allocator, mine));
    look(&world, 1, aside);
    look(&world, 0, 0);
    assert_int_equal(pending_on(&world, 1), 1);
    assert_int_equal(pending_on(&world, 0), 1);
    EXPECT_OK(vram_empty_cache(world.allocator));
    order(&world, 1, far, a);
    uint64_t graph = 0;
    EXPECT_OK(vram_capture_end(pool, a, &graph, NULL)); // the capture was not invalidated
    EXPECT_OK(vram_capture_leave(there, a));
    assert_int_equal(vr_cu(world.sim, graph_destroy, graph), VR_CU_SUCCESS);
    look(&world, 0, 0);
    look(&world, 1, aside);
    assert_int_equal(pending_on(&world, 0), 0);
    assert_int_equal(pending_on(&world, 1), 0);
    vram_pool_release(pool);
    vram_pool_release(there);
    expect_end(&world);
}

// No pool was opened on the second device: its frees are still correct, and its cache stays while its streams take part.
static void a_device_that_was_forgotten_does_no_harm(void **state) {
    (void)state;
    struct vr_world world;
    two_devices(&world);
    const uint64_t a = world.stream[0][1], far = world.stream[1][1], aside = world.stream[1][2];
    struct vram_pool *pool = expect_pool(&world, 0);
    const uint64_t block = expect_malloc_on(&world, 1, 3 * VR_MIB, far);
    EXPECT_OK(vram_capture_begin(pool, a, VRAM_CAPTURE_RELAXED, NULL));
    order(&world, 0, a, far);
    EXPECT_OK(vram_record_stream(world.allocator, block, aside));
    EXPECT_OK(vram_free(world.allocator, block)); // its own stream captures
    EXPECT_OK(vram_empty_cache(world.allocator));
    assert_int_equal(pending_on(&world, 1), 1);
    order(&world, 1, far, a);
    uint64_t graph = 0;
    EXPECT_OK(vram_capture_end(pool, a, &graph, NULL));
    assert_int_equal(vr_cu(world.sim, graph_destroy, graph), VR_CU_SUCCESS);
    EXPECT_OK(vram_sim_complete_all(world.sim));
    EXPECT_OK(vram_empty_cache(world.allocator));
    struct vram_stats stats;
    EXPECT_OK(vram_get_stats(world.allocator, 1, &stats));
    assert_int_equal(stats.reserved_bytes[VRAM_STAT_ALL].current, 0);
    vram_pool_release(pool);
    expect_end(&world);
}

static void a_device_that_takes_no_part_goes_on(void **state) {
    (void)state;
    struct vr_world world;
    two_devices(&world);
    const uint64_t a = world.stream[0][1], far = world.stream[1][1], aside = world.stream[1][2];
    struct vram_pool *pool = expect_pool(&world, 0);
    EXPECT_OK(vram_capture_begin(pool, a, VRAM_CAPTURE_GLOBAL, NULL));
    // The device is set up only now.
    const uint64_t block = expect_malloc_on(&world, 1, 3 * VR_MIB, far);
    EXPECT_OK(vram_record_stream(world.allocator, block, aside));
    EXPECT_OK(vram_free(world.allocator, block));
    EXPECT_OK(vr_world_complete(&world, 1, aside));
    EXPECT_OK(vram_empty_cache_device(world.allocator, 1));
    struct vram_stats stats;
    EXPECT_OK(vram_get_stats(world.allocator, 1, &stats));
    assert_int_equal(stats.reserved_bytes[VRAM_STAT_ALL].current, 0);
    uint64_t graph = 0;
    EXPECT_OK(vram_capture_end(pool, a, &graph, NULL));
    assert_int_equal(vr_cu(world.sim, graph_destroy, graph), VR_CU_SUCCESS);
    vram_pool_release(pool);
    expect_end(&world);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_is_as_if_we_had_begun_it),
        cmocka_unit_test(it_is_ended_by_who_began_it),
        cmocka_unit_test(a_fence_never_becomes_a_node),
        cmocka_unit_test(every_device_that_takes_part_puts_frees_off),
        cmocka_unit_test(a_device_that_was_forgotten_does_no_harm),
        cmocka_unit_test(a_device_that_takes_no_part_goes_on),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
