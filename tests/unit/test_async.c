// Tests backend:cudaMallocAsync on the simulated driver's pools.
#include "support/waits.h"

#include "driver/driver.h"
#include "vram/pool.h"
#include "vram/sim.h"

#define CHUNK (32 * VR_MIB) // growth step of the driver's pool

static const char backend[] = "backend:cudaMallocAsync";

static void open_world(struct vr_world *world, uint64_t memory_bytes, bool faults) {
    const struct vr_world_options options = {.sim = {.memory_bytes = memory_bytes}, .conf = backend, .faults = faults};
    EXPECT_OK(vr_world_open(world, &options));
}

static uint64_t get(struct vr_world *world, uint64_t size_bytes, uint64_t stream) {
    uint64_t address = 0;
    EXPECT_OK(vram_malloc(world->allocator, 0, size_bytes, stream, &address));
    return address;
}

static void expect_sound(struct vr_world *world) {
    struct vram_error error = {0};
    if (vram_check(world->allocator, &error) != VRAM_OK) fail_msg("%s", error.message);
}

static void blocks_are_the_drivers(void **state) {
    struct vr_world world;
    open_world(&world, VR_GIB, false);
    const uint64_t stream = world.stream[0][1];
    const uint64_t a = get(&world, 1000, stream), b = get(&world, 3 * VR_MIB, stream);
    EXPECT_CURRENT(&world, allocated_bytes, 1000 + 3 * VR_MIB);
    EXPECT_CURRENT(&world, active_bytes, 1000 + 3 * VR_MIB);
    EXPECT_CURRENT(&world, requested_bytes, 1000 + 3 * VR_MIB);
    EXPECT_CURRENT(&world, reserved_bytes, CHUNK);
    EXPECT_CURRENT(&world, allocation, 2);
    assert_int_equal(vram_allocated_size(world.allocator, a), 1000);
    struct vram_block_info info;
    EXPECT_OK(vram_find_block(world.allocator, b + VR_MIB, &info));
    assert_true(info.address == b && info.size_bytes == 3 * VR_MIB && info.stream == stream);
    EXPECT_OK(vram_free(world.allocator, a));
    EXPECT_STATUS(INVALID_POINTER, vram_free(world.allocator, a));
    EXPECT_STATUS(INVALID_POINTER, vram_free(world.allocator, b + 512));
    EXPECT_OK(vram_free(world.allocator, b));
    EXPECT_CURRENT(&world, allocated_bytes, 0);
    EXPECT_CURRENT(&world, reserved_bytes, CHUNK);
    // Each block has its own segment, so there are five records per block.
    assert_int_equal(world.record_count, 10);
    assert_int_equal(world.records[3].action, VR_RECORD_ALLOC);
    assert_int_equal(world.records[3].address, b);
    assert_int_equal(world.records[7].action, VR_RECORD_FREE_REQUESTED);
    assert_int_equal(world.records[8].action, VR_RECORD_FREE_COMPLETED);
    EXPECT_OK(vram_empty_cache(world.allocator));
    EXPECT_CURRENT(&world, reserved_bytes, 0);
    assert_int_equal(vram_sim_memory_used(world.sim, 0), 0);
    expect_sound(&world);
    expect_end(&world);
    (void)state;
}

static bool count_view(const struct vram_block_view *view, void *user) {
    assert_int_equal(view->state, VRAM_BLOCK_ALLOCATED);
    ++*(size_t *)user;
    return true;
}

static void live_blocks_can_be_walked(void **state) {
    struct vr_world world;
    open_world(&world, VR_GIB, false);
    const uint64_t a = get(&world, 1, 0), b = get(&world, 2, 0);
    size_t seen = 0;
    EXPECT_OK(vram_walk(world.allocator, 0, count_view, &seen));
    assert_int_equal(seen, 2);
    EXPECT_OK(vram_free(world.allocator, a));
    EXPECT_OK(vram_free(world.allocator, b));
    expect_end(&world);
    (void)state;
}

// A block used by another stream is reused only after that stream's work.
static void uses_are_waited_for(void **state) {
    struct vr_world world;
    open_world(&world, VR_GIB, false);
    const uint64_t one = world.stream[0][1], two = world.stream[0][2];
    const uint64_t a = get(&world, CHUNK, one);
    EXPECT_OK(vram_record_stream(world.allocator, a, one)); // its own stream: ignored
    EXPECT_OK(vram_record_stream(world.allocator, a, two));
    EXPECT_OK(vram_sim_busy(world.sim, 0, two, 1000000000));
    EXPECT_OK(vram_free(world.allocator, a));
    const uint64_t b = get(&world, CHUNK, one);
    if (b == a) { // in this case the driver made the stream wait
        assert_int_equal(vr_cu(world.sim, stream_query, one), VR_CU_NOT_READY);
    }
    EXPECT_OK(vram_free(world.allocator, b));
    EXPECT_STATUS(INVALID_POINTER, vram_record_stream(world.allocator, a + 1, two));
    expect_sound(&world);
    expect_end(&world);
    (void)state;
}

static void limits_and_the_end_of_memory(void **state) {
    struct vr_world world;
    open_world(&world, 256 * VR_MIB, false);
    struct vram_oom oom;
    uint64_t address = 7;
    EXPECT_OK(vram_set_memory_fraction(world.allocator, 0, 0.25));
    EXPECT_STATUS(OUT_OF_MEMORY, vram_malloc(world.allocator, 0, 65 * VR_MIB, 0, &address));
    assert_int_equal(address, 7);
    assert_true(vram_last_oom(&oom) && oom.limit_hit);
    EXPECT_OK(vram_set_memory_limit(world.allocator, 0, UINT64_MAX));
    const uint64_t a = get(&world, 200 * VR_MIB, 0);
    EXPECT_STATUS(OUT_OF_MEMORY, vram_malloc(world.allocator, 0, 100 * VR_MIB, 0, &address));
    assert_true(vram_last_oom(&oom) && !oom.limit_hit);
    assert_int_equal(oom.allocated_bytes, 200 * VR_MIB);
    EXPECT_OK(vram_free(world.allocator, a));
    EXPECT_OK(vram_free(world.allocator, get(&world, 250 * VR_MIB, world.stream[0][1])));
    expect_sound(&world);
    expect_end(&world);
    (void)state;
}

static void what_it_cannot_do_is_said(void **state) {
    struct vr_world world;
    open_world(&world, VR_GIB, false);
    struct vram_pool *pool;
    struct vram_checkpoint *checkpoint;
    struct vram_error error;
    const uint64_t a = get(&world, 1000, 0);
    EXPECT_STATUS(UNSUPPORTED, vram_malloc_at(world.allocator, 0, 1000, 0, a + 1024));
    EXPECT_OK(vram_pool_create(world.allocator, 0, NULL, &pool));
    EXPECT_STATUS(UNSUPPORTED, vram_pool_checkpoint(pool, &checkpoint));
    EXPECT_STATUS(BAD_OPTION, vram_configure(world.allocator, "backend:native", &error));
    EXPECT_OK(vram_configure(world.allocator, backend, &error));
    vram_pool_release(pool);
    // With caching off, requests go straight to cuMemAlloc; blocks remember how they were allocated.
    vram_set_caching(world.allocator, false);
    const uint64_t direct = get(&world, 1000, 0);
    vram_set_caching(world.allocator, true);
    EXPECT_CURRENT(&world, allocated_bytes, 1000);
    EXPECT_OK(vram_free(world.allocator, direct));
    EXPECT_OK(vram_free(world.allocator, a));
    expect_end(&world);
    (void)state;
}

// --- captures ---------------------------------------------------------------------------------------------------------------

static uint64_t end(struct vram_pool *pool, uint64_t stream) {
    uint64_t graph = 0;
    struct vram_error error = {0};
    if (vram_capture_end(pool, stream, &graph, &error) != VRAM_OK) fail_msg("%s", error.message);
    return graph;
}

// Two captures at once. Freeing an older block during a capture is postponed. A block of the capture, used by a forked stream that has
// joined, is freed by the graph, on a stream that joins again.
static void frees_in_captures(void **state) {
    struct vr_world world;
    open_world(&world, VR_GIB, false);
    const uint64_t one = world.stream[0][1], two = world.stream[0][2], three = world.stream[0][3];
    struct vram_pool *pool, *other;
    EXPECT_OK(vram_pool_create(world.allocator, 0, NULL, &pool));
    EXPECT_OK(vram_pool_create(world.allocator, 0, NULL, &other));
    const uint64_t before = get(&world, VR_MIB, one), elsewhere = get(&world, VR_MIB, 0);
    EXPECT_OK(vram_capture_begin(pool, one, VRAM_CAPTURE_THREAD_LOCAL, NULL));
    EXPECT_OK(vram_capture_begin(other, three, VRAM_CAPTURE_THREAD_LOCAL, NULL));
    const uint64_t a = get(&world, 2 * VR_MIB, one), kept = get(&world, 3 * VR_MIB, one), c = get(&world, VR_MIB, three);
    struct vram_block_info info;
    EXPECT_OK(vram_get_block_info(world.allocator, a, &info));
    assert_int_equal(info.pool.second, vram_get_pool_id(pool).second);
    EXPECT_OK(vram_free(world.allocator, elsewhere)); // its stream is not capturing: freed at once
    EXPECT_OK(vram_free(world.allocator, before));
    EXPECT_STATUS(INVALID_POINTER, vram_free(world.allocator, before));
    EXPECT_CURRENT(&world, allocation, 3);
    EXPECT_CURRENT(&world, active, 4);
    expect_wait_stream(&world, two, one);
    EXPECT_OK(vram_record_stream(world.allocator, a, two));
    EXPECT_OK(vram_sim_busy(world.sim, 0, two, 100));
    expect_wait_stream(&world, one, two);
    EXPECT_OK(vram_free(world.allocator, a));
    EXPECT_OK(vram_free(world.allocator, c));
    expect_sound(&world);
    const uint64_t graph = end(pool, one), second = end(other, three);
    expect_sound(&world);
    EXPECT_OK(vram_empty_cache(world.allocator)); // the postponed free happens now
    EXPECT_CURRENT(&world, active, 1);
    EXPECT_CURRENT(&world, reserved_bytes, 0);
    uint64_t exec = 0;
    assert_int_equal(vr_cu(world.sim, graph_instantiate, &exec, graph, 0), VR_CU_SUCCESS);
    assert_int_equal(vr_cu(world.sim, graph_launch, exec, one), VR_CU_SUCCESS);
    EXPECT_OK(vram_free(world.allocator, kept)); // allocated by the graph, freed outside
    assert_int_equal(vr_cu(world.sim, graph_launch, exec, one), VR_CU_SUCCESS);
    assert_int_equal(vr_cu(world.sim, mem_free_async, kept, one), VR_CU_SUCCESS);
    assert_int_equal(vr_cu(world.sim, graph_exec_destroy, exec), VR_CU_SUCCESS);
    assert_int_equal(vr_cu(world.sim, graph_destroy, graph), VR_CU_SUCCESS);
    assert_int_equal(vr_cu(world.sim, graph_destroy, second), VR_CU_SUCCESS);
    vram_pool_release(pool);
    vram_pool_release(other);
    expect_sound(&world);
    expect_end(&world);
    (void)state;
}

static uint64_t questions(const struct vr_world *world) {
    return vram_sim_calls(world->sim, "cuStreamGetCaptureInfo") + vram_sim_calls(world->sim, "cuStreamIsCapturing");
}

// Postponed frees cost a capture's requests nothing, and all happen at the first request afterwards.
static void many_frees_put_off(void **state) {
    enum { MANY = 500 };
    struct vr_world world;
    open_world(&world, VR_GIB, false);
    const uint64_t one = world.stream[0][1];
    uint64_t before[MANY], inside[MANY];
    struct vram_pool *pool;
    EXPECT_OK(vram_pool_create(world.allocator, 0, NULL, &pool));
    for (size_t i = 0; i < MANY; i++) before[i] = get(&world, 4096, one);
    EXPECT_OK(vram_capture_begin(pool, one, VRAM_CAPTURE_THREAD_LOCAL, NULL));
    for (size_t i = 0; i < MANY; i++) EXPECT_OK(vram_free(world.allocator, before[i]));
    const uint64_t asked = questions(&world);
    for (size_t i = 0; i < MANY; i++) inside[i] = get(&world, 4096, one);
    assert_in_range(questions(&world) - asked, MANY, 4 * MANY);
    EXPECT_CURRENT(&world, active, 2 * MANY);
    expect_sound(&world);
    assert_int_equal(vr_cu(world.sim, graph_destroy, end(pool, one)), VR_CU_SUCCESS);
    const uint64_t after = get(&world, 4096, one);
    EXPECT_CURRENT(&world, active, MANY + 1);
    expect_sound(&world);
    EXPECT_OK(vram_free(world.allocator, after));
    for (size_t i = 0; i < MANY; i++) EXPECT_OK(vram_free(world.allocator, inside[i]));
    EXPECT_CURRENT(&world, active, 0);
    vram_pool_release(pool);
    expect_sound(&world);
    expect_end(&world);
    (void)state;
}

// A failed capture leaves nothing behind: its allocations never existed.
static void abandoned_captures(void **state) {
    struct vr_world world;
    open_world(&world, VR_GIB, false);
    const uint64_t one = world.stream[0][1];
    struct vram_pool *pool;
    EXPECT_OK(vram_pool_create(world.allocator, 0, NULL, &pool));
    EXPECT_OK(vram_capture_begin(pool, one, VRAM_CAPTURE_THREAD_LOCAL, NULL));
    const uint64_t a = get(&world, VR_MIB, one), b = get(&world, VR_MIB, one);
    EXPECT_OK(vram_free(world.allocator, a));
    assert_int_equal(vr_cu(world.sim, stream_synchronize, one), VR_CU_STREAM_CAPTURE_UNSUPPORTED);
    uint64_t graph = 7, address;
    EXPECT_STATUS(DRIVER, vram_malloc(world.allocator, 0, VR_MIB, one, &address));
    EXPECT_STATUS(DRIVER, vram_capture_end(pool, one, &graph, NULL));
    EXPECT_OK(vram_free(world.allocator, b));
    EXPECT_OK(vram_free(world.allocator, get(&world, VR_MIB, one)));
    vram_pool_release(pool);
    expect_sound(&world);
    expect_end(&world);
    (void)state;
}

// --- faults -----------------------------------------------------------------------------------------------------------------

static bool fine(struct vr_world *world, enum vram_status status) {
    expect_sound(world);
    if (status != VRAM_OK) assert_true(status == VRAM_OUT_OF_MEMORY || status == VRAM_DRIVER);
    return status == VRAM_OK;
}

static void put(struct vr_world *world, uint64_t address) {
    if (!fine(world, vram_free(world->allocator, address))) (void)fine(world, vram_free(world->allocator, address));
}

static void workload(struct vr_world *world) {
    struct vram_allocator *allocator = world->allocator;
    const uint64_t one = world->stream[0][1], two = world->stream[0][2];
    uint64_t a = 0, b = 0, c = 0, d = 0, graph = 0;
    struct vram_pool *pool = NULL;
    (void)fine(world, vram_malloc(allocator, 0, 20 * VR_MIB, one, &a));
    (void)fine(world, vram_malloc(allocator, 0, 1000, two, &b));
    if (a != 0) (void)fine(world, vram_record_stream(allocator, a, two));
    put(world, a);
    if (fine(world, vram_pool_create(allocator, 0, NULL, &pool))) {
        if (fine(world, vram_capture_begin(pool, one, VRAM_CAPTURE_RELAXED, NULL))) {
            (void)fine(world, vram_malloc(allocator, 0, VR_MIB, one, &c));
            (void)fine(world, vram_malloc(allocator, 0, VR_MIB, one, &d));
            if (b != 0) (void)fine(world, vram_record_stream(allocator, b, one));
            put(world, b);
            b = 0;
            put(world, c);
            (void)fine(world, vram_capture_end(pool, one, &graph, NULL));
            if (graph != 0) (void)vr_cu(world->sim, graph_destroy, graph);
        }
        vram_pool_release(pool);
    }
    put(world, d);
    put(world, b);
    (void)fine(world, vram_empty_cache(allocator));
}

static void every_driver_call_fails_once(void **state) {
    static const int32_t results[] = {VR_CU_OUT_OF_MEMORY, VR_CU_UNKNOWN, VR_CU_INVALID_HANDLE};
    for (size_t i = 0; i < VR_COUNT_OF(results); i++) {
        bool fired = true;
        uint64_t nth = 1;
        for (; fired; nth++) {
            struct vr_world world;
            open_world(&world, 300 * VR_MIB, true);
            EXPECT_OK(vram_driver_fault_set(world.driver, NULL, nth, results[i]));
            workload(&world);
            fired = vram_driver_fault_count(world.driver) != 0;
            EXPECT_OK(vram_driver_fault_set(world.driver, NULL, 0, 0));
            if (vram_empty_cache(world.allocator) != VRAM_OK) fail_msg("call %llu: the cache stays", (unsigned long long)nth);
            const uint64_t all = get(&world, 200 * VR_MIB, world.stream[0][1]);
            EXPECT_OK(vram_free(world.allocator, all));
            EXPECT_OK(vram_empty_cache(world.allocator));
            EXPECT_CURRENT(&world, allocated_bytes, 0);
            EXPECT_CURRENT(&world, active_bytes, 0);
            EXPECT_CURRENT(&world, reserved_bytes, 0);
            if (vram_sim_memory_used(world.sim, 0) != 0) fail_msg("call %llu: memory was lost", (unsigned long long)nth);
            expect_end(&world);
        }
        assert_true(nth > 40);
    }
    (void)state;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(blocks_are_the_drivers),       cmocka_unit_test(live_blocks_can_be_walked),
        cmocka_unit_test(uses_are_waited_for),          cmocka_unit_test(limits_and_the_end_of_memory),
        cmocka_unit_test(what_it_cannot_do_is_said),    cmocka_unit_test(frees_in_captures),
        cmocka_unit_test(many_frees_put_off),           cmocka_unit_test(abandoned_captures),
        cmocka_unit_test(every_driver_call_fails_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
