// Tests private pools and captures with threads: resting shards that wake, and others' captures that begin and end meanwhile.
#include <stdatomic.h>

#include "driver/driver.h"
#include "os/os.h"
#include "support/expect.h"
#include "support/random.h"
#include "vram/pool.h"
#include "vram/sim.h"

enum { THREADS = 4, ROUNDS = 3000, HELD = 16 };

struct worker {
    struct vr_world *world;
    struct vram_pool *pool; // NULL: the default pools
    uint32_t device;
    uint64_t stream, other;
    uint64_t seed;
    int failures;
};

static uint64_t draw(struct worker *worker, uint64_t limit) { return vr_random_below(&worker->seed, limit); }

static enum vram_status get(struct worker *worker, uint64_t size_bytes, uint64_t *address) {
    if (worker->pool != NULL) return vram_pool_malloc(worker->pool, size_bytes, worker->stream, address);
    return vram_malloc(worker->world->allocator, worker->device, size_bytes, worker->stream, address);
}

static void work(void *argument) {
    struct worker *worker = argument;
    struct vram_allocator *allocator = worker->world->allocator;
    uint64_t held[HELD] = {0};
    for (int i = 0; i < ROUNDS; i++) {
        uint64_t *slot = &held[draw(worker, HELD)];
        if (*slot != 0 && worker->other != 0 && draw(worker, 4) == 0) {
            worker->failures += vram_record_stream(allocator, *slot, worker->other) != VRAM_OK;
        }
        worker->failures += vram_free(allocator, *slot) != VRAM_OK;
        worker->failures += get(worker, 1 + draw(worker, 3 * VR_MIB), slot) != VRAM_OK;
        if (worker->pool != NULL && draw(worker, 500) == 0) worker->failures += vram_pool_empty_cache(worker->pool) != VRAM_OK;
    }
    for (int i = 0; i < HELD; i++) worker->failures += vram_free(allocator, held[i]) != VRAM_OK;
}

static void run(struct worker workers[THREADS]) {
    struct vr_thread threads[THREADS];
    for (int i = 0; i < THREADS; i++) EXPECT_OK(vr_thread_start(&threads[i], work, &workers[i]));
    for (int i = 0; i < THREADS; i++) {
        vr_thread_join(&threads[i]);
        assert_int_equal(workers[i].failures, 0);
    }
}

// Two threads share a pool, one has its own, and one uses the default pools, all on one device.
static void pools_are_filled_and_emptied_at_once(void **state) {
    (void)state;
    struct vr_world world;
    const struct vr_world_options options = {.without_record = true};
    EXPECT_OK(vr_world_open(&world, &options));
    struct vram_pool *shared = NULL, *own = NULL;
    EXPECT_OK(vram_pool_create(world.allocator, 0, NULL, &shared));
    EXPECT_OK(vram_pool_create(world.allocator, 0, NULL, &own));
    struct vram_pool *const pools[THREADS] = {shared, shared, own, NULL};
    struct worker workers[THREADS];
    for (uint32_t i = 0; i < THREADS; i++) {
        workers[i] = (struct worker){.world = &world, .pool = pools[i], .stream = world.stream[0][i == 1 ? 0 : i], .seed = i};
    }
    run(workers);
    EXPECT_CURRENT(&world, allocation, 0);
    EXPECT_CURRENT(&world, allocated_bytes, 0);
    EXPECT_CURRENT(&world, requested_bytes, 0);
    const struct vram_stats stats = expect_stats(&world);
    assert_true(stats.allocation[VRAM_STAT_ALL].peak <= THREADS * HELD);
    assert_int_equal(stats.allocation[VRAM_STAT_ALL].allocated, THREADS * ROUNDS);
    vram_pool_release(shared);
    vram_pool_release(own);
    EXPECT_OK(vram_empty_cache(world.allocator));
    EXPECT_CURRENT(&world, reserved_bytes, 0);
    expect_end(&world);
}

struct capturer {
    struct vr_world *world;
    struct vram_pool *pool;
    _Atomic bool stop;
    int captures;
    int failures;
};

// Captures on a stream of device 0, one after another.
static void capture(void *argument) {
    struct capturer *capturer = argument;
    struct vram_driver *sim = capturer->world->sim;
    const uint64_t stream = capturer->world->stream[0][3];
    capturer->failures += vr_cu(sim, ctx_set_current, capturer->world->context[0]) != VR_CU_SUCCESS;
    while (!atomic_load(&capturer->stop)) {
        uint64_t graph = 0, block = 0;
        capturer->failures += vram_capture_enter(capturer->pool, stream) != VRAM_OK;
        capturer->failures += vr_cu(sim, stream_begin_capture, stream, VR_CU_STREAM_CAPTURE_MODE_GLOBAL) != VR_CU_SUCCESS;
        capturer->failures += vram_malloc(capturer->world->allocator, 0, VR_MIB, stream, &block) != VRAM_OK;
        vr_os_yield();
        capturer->failures += vram_free(capturer->world->allocator, block) != VRAM_OK;
        capturer->failures += vr_cu(sim, stream_end_capture, stream, &graph) != VR_CU_SUCCESS;
        capturer->failures += vr_cu(sim, graph_destroy, graph) != VR_CU_SUCCESS;
        capturer->failures += vram_capture_leave(capturer->pool, stream) != VRAM_OK;
        capturer->captures++;
    }
}

// Captures stay valid while events are constantly recorded and queried on this device and another.
static void captures_go_on_in_parallel(void **state) {
    (void)state;
    struct vr_world world;
    const struct vr_world_options options = {.sim = {.device_count = 2}, .without_record = true};
    EXPECT_OK(vr_world_open(&world, &options));
    struct capturer capturer = {.world = &world};
    EXPECT_OK(vram_pool_create(world.allocator, 0, &(struct vram_pool_options){.for_graph = true}, &capturer.pool));
    struct worker workers[THREADS];
    for (uint32_t i = 0; i < THREADS; i++) {
        const uint32_t device = i / 2, own = 1 + i % 2;
        workers[i] = (struct worker){
            .world = &world, .device = device, .stream = world.stream[device][own], .other = world.stream[device][3 - own], .seed = i};
    }
    struct vr_thread thread;
    EXPECT_OK(vr_thread_start(&thread, capture, &capturer));
    run(workers);
    atomic_store(&capturer.stop, true);
    vr_thread_join(&thread);
    assert_int_equal(capturer.failures, 0);
    EXPECT_OK(vram_sim_complete_all(world.sim));
    vram_pool_release(capturer.pool);
    EXPECT_OK(vram_empty_cache(world.allocator));
    EXPECT_CURRENT(&world, active, 0);
    EXPECT_CURRENT(&world, reserved_bytes, 0);
    expect_end(&world);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pools_are_filled_and_emptied_at_once),
        cmocka_unit_test(captures_go_on_in_parallel),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
