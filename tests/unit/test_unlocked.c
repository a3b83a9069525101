// Tests changes while a request has released the locks: callbacks close its route and end its pool, settings change, another thread begins
// a capture during a driver call.
#include <semaphore.h>

#include "driver/driver.h"
#include "os/os.h"
#include "support/expect.h"
#include "vram/pool.h"
#include "vram/sim.h"

static struct vram_pool *expect_pool(struct vr_world *world) {
    struct vram_pool *pool = NULL;
    EXPECT_OK(vram_pool_create(world->allocator, 0, NULL, &pool));
    return pool;
}

static struct vram_block_info expect_info(struct vr_world *world, uint64_t address) {
    struct vram_block_info info;
    EXPECT_OK(vram_get_block_info(world->allocator, address, &info));
    return info;
}

// --- a route closed during a request ----------------------------------------------------------------------------------------------------

static const struct vram_route by_thread = {.kind = VRAM_ROUTE_THREAD};

// Ends the pool that the request is routed to, and makes another one serve another stream.
struct closing {
    struct vr_world *world;
    struct vram_pool *pool;
    struct vram_pool *next;
    uint64_t taken;
};

static bool close_route(uint32_t device, uint64_t size_bytes, void *user) {
    struct closing *closing = user;
    (void)device, (void)size_bytes;
    if (closing->pool == NULL) return false;
    struct vram_pool *pool = closing->pool;
    closing->pool = NULL;
    EXPECT_OK(vram_pool_end(pool, &by_thread));
    vram_pool_release(pool);
    closing->next = expect_pool(closing->world);
    EXPECT_OK(vram_pool_malloc(closing->next, 100, closing->world->stream[0][2], &closing->taken));
    return false;
}

static void a_request_is_not_served_by_a_pool_that_is_gone(void **state) {
    struct vr_world world;
    (void)state;
    expect_world(&world, "", 0);
    struct closing closing = {.world = &world, .pool = expect_pool(&world)};
    EXPECT_OK(vram_pool_begin(closing.pool, &by_thread));
    EXPECT_OK(vram_add_free_callback(world.allocator, close_route, &closing));
    const uint64_t address = expect_malloc(&world, 100, world.stream[0][1]);
    const struct vram_block_info info = expect_info(&world, address);
    assert_int_equal(info.stream, world.stream[0][1]);
    assert_int_equal(info.pool.second, 0);
    assert_int_equal(expect_info(&world, closing.taken).stream, world.stream[0][2]);
    expect_free(&world, address);
    expect_free(&world, closing.taken);
    vram_pool_release(closing.next);
    EXPECT_OK(vram_empty_cache(world.allocator));
    EXPECT_CURRENT(&world, reserved_bytes, 0);
    expect_end(&world);
}

// --- another device --------------------------------------------------------------------------------------------------------------------

static bool use_other_device(uint32_t device, uint64_t size_bytes, void *user) {
    const struct vr_world *world = user;
    (void)device, (void)size_bytes;
    assert_int_equal(vr_cu(world->sim, ctx_set_current, world->context[1]), VR_CU_SUCCESS);
    return false;
}

// A callback that leaves another device current does not affect where memory comes from.
static void a_callback_does_not_choose_the_device(void **state) {
    static const char *const confs[] = {"", "expandable_segments:True", "backend:cudaMallocAsync"};
    (void)state;
    for (size_t i = 0; i < VR_COUNT_OF(confs); i++) {
        struct vr_world world;
        const struct vr_world_options options = {.sim = {.device_count = 2, .memory_bytes = VR_GIB}, .conf = confs[i]};
        EXPECT_OK(vr_world_open(&world, &options));
        EXPECT_OK(vram_add_free_callback(world.allocator, use_other_device, &world));
        uint64_t address = 0;
        EXPECT_OK(vram_malloc(world.allocator, 0, 900 * VR_MIB, 0, &address));
        assert_int_equal(vram_sim_memory_used(world.sim, 1), 0);
        EXPECT_STATUS(OUT_OF_MEMORY, vram_malloc(world.allocator, 0, 900 * VR_MIB, 0, &(uint64_t){0}));
        assert_int_equal(vram_sim_memory_used(world.sim, 1), 0);
        expect_free(&world, address);
        assert_int_equal(vr_cu(world.sim, ctx_set_current, world.context[0]), VR_CU_SUCCESS);
        expect_end(&world);
    }
}

// --- a capture begun during a request ---------------------------------------------------------------------------------------------------

// The driver's table with one function replaced: before it returns, another thread begins a capture that forbids such calls.
static struct {
    struct vr_world *world;
    const struct vr_driver_calls *before;
    struct vr_driver_calls calls;
    struct vram_pool *pool;
    struct vr_thread thread;
    sem_t began, go_on;
    enum vram_status begin, end;
    uint64_t graph;
} meddling;

static void capture(void *argument) {
    const uint64_t stream = meddling.world->stream[0][1];
    (void)argument;
    meddling.begin = vram_capture_begin(meddling.pool, stream, VRAM_CAPTURE_GLOBAL, NULL);
    assert_int_equal(sem_post(&meddling.began), 0);
    assert_int_equal(sem_wait(&meddling.go_on), 0);
    meddling.end = vram_capture_end(meddling.pool, stream, &meddling.graph, NULL);
}

static vr_cu_result meddled_alloc(struct vram_driver *self, uint64_t *address, uint64_t size) {
    self->calls = meddling.before;
    EXPECT_OK(vr_thread_start(&meddling.thread, capture, NULL));
    assert_int_equal(sem_wait(&meddling.began), 0);
    return vr_cu(self, mem_alloc, address, size);
}

static void a_call_without_the_lock_does_not_spoil_a_capture(void **state) {
    struct vr_world world;
    (void)state;
    expect_world(&world, "release_lock_on_cudamalloc:True", 0);
    assert_int_equal(sem_init(&meddling.began, 0, 0), 0);
    assert_int_equal(sem_init(&meddling.go_on, 0, 0), 0);
    meddling.world = &world;
    meddling.pool = expect_pool(&world);
    meddling.before = world.sim->calls;
    meddling.calls = *world.sim->calls;
    meddling.calls.mem_alloc = meddled_alloc;
    world.sim->calls = &meddling.calls;
    uint64_t address = 0;
    const enum vram_status status = vram_malloc(world.allocator, 0, 100, world.stream[0][2], &address);
    assert_int_equal(sem_post(&meddling.go_on), 0);
    vr_thread_join(&meddling.thread);
    EXPECT_OK(status);
    EXPECT_OK(meddling.begin);
    EXPECT_OK(meddling.end);
    int mode = VR_CU_STREAM_CAPTURE_MODE_GLOBAL;
    assert_int_equal(vr_cu(world.sim, thread_exchange_capture_mode, &mode), VR_CU_SUCCESS);
    assert_int_equal(mode, VR_CU_STREAM_CAPTURE_MODE_GLOBAL); // as before the call
    assert_int_equal(vr_cu(world.sim, graph_destroy, meddling.graph), VR_CU_SUCCESS);
    expect_free(&world, address);
    vram_pool_release(meddling.pool);
    assert_int_equal(sem_destroy(&meddling.began), 0);
    assert_int_equal(sem_destroy(&meddling.go_on), 0);
    expect_end(&world);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_request_is_not_served_by_a_pool_that_is_gone),
        cmocka_unit_test(a_callback_does_not_choose_the_device),
        cmocka_unit_test(a_call_without_the_lock_does_not_spoil_a_capture),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
