// Tests corner cases of uses on other streams: the stream is destroyed before the free, or a pool is restored meanwhile.
#include "driver/driver.h"
#include "support/expect.h"
#include "vram/pool.h"
#include "vram/sim.h"

enum { MILLISECOND = 1000000 };

// Opens a machine whose work ends by the clock, not by hand. Without a listener, most frees take only their own stream's lock.
static void timed_world(struct vr_world *world, uint32_t devices) {
    const struct vr_world_options options = {.sim = {.device_count = devices}, .without_record = true};
    EXPECT_OK(vr_world_open(world, &options));
}

static uint64_t new_stream(struct vr_world *world) {
    uint64_t stream = 0;
    assert_int_equal(vr_cu(world->sim, stream_create, &stream, VR_CU_STREAM_NON_BLOCKING), VR_CU_SUCCESS);
    return stream;
}

static void destroy_stream(struct vr_world *world, uint64_t stream) {
    assert_int_equal(vr_cu(world->sim, stream_destroy, stream), VR_CU_SUCCESS);
}

static void a_stream_that_is_gone_is_waited_for(void **state) {
    (void)state;
    struct vr_world world;
    timed_world(&world, 1);
    const uint64_t own = world.stream[0][1], other = world.stream[0][2], gone = new_stream(&world);
    const uint64_t block = expect_malloc(&world, 3 * VR_MIB, own);
    EXPECT_OK(vram_record_stream(world.allocator, block, other));
    EXPECT_OK(vram_record_stream(world.allocator, block, gone));
    EXPECT_OK(vram_sim_busy(world.sim, 0, gone, 50 * MILLISECOND));
    destroy_stream(&world, gone);
    EXPECT_OK(vram_free(world.allocator, block));
    assert_true(vram_sim_clock_ns(world.sim) >= 50 * MILLISECOND); // the stream's work is done
    EXPECT_CURRENT(&world, active, 0);
    assert_int_equal(expect_malloc(&world, 3 * VR_MIB, own), block);
    expect_end(&world);
}

static void also_on_another_device(void **state) {
    (void)state;
    struct vr_world world;
    timed_world(&world, 2);
    assert_int_equal(vr_cu(world.sim, ctx_set_current, world.context[1]), VR_CU_SUCCESS);
    const uint64_t gone = new_stream(&world);
    assert_int_equal(vr_cu(world.sim, ctx_set_current, world.context[0]), VR_CU_SUCCESS);
    const uint64_t block = expect_malloc(&world, 3 * VR_MIB, world.stream[0][1]);
    EXPECT_OK(vram_record_stream(world.allocator, block, gone));
    EXPECT_OK(vram_sim_busy(world.sim, 1, gone, 50 * MILLISECOND));
    destroy_stream(&world, gone);
    EXPECT_OK(vram_free(world.allocator, block));
    assert_true(vram_sim_clock_ns(world.sim) >= 50 * MILLISECOND);
    EXPECT_CURRENT(&world, active, 0);
    expect_end(&world);
}

// Waiting would invalidate the capture, so the free is postponed.
static void not_while_a_capture_is_under_way(void **state) {
    (void)state;
    struct vr_world world;
    timed_world(&world, 1);
    const uint64_t captured = world.stream[0][1], own = world.stream[0][2], gone = new_stream(&world);
    struct vram_pool *pool = NULL;
    EXPECT_OK(vram_pool_create(world.allocator, 0, &(struct vram_pool_options){.for_graph = true}, &pool));
    const uint64_t block = expect_malloc(&world, 3 * VR_MIB, own);
    EXPECT_OK(vram_record_stream(world.allocator, block, gone));
    destroy_stream(&world, gone);
    EXPECT_OK(vram_capture_enter(pool, captured)); // as if begun by another thread
    assert_int_equal(vr_cu(world.sim, stream_begin_capture, captured, VR_CU_STREAM_CAPTURE_MODE_RELAXED), VR_CU_SUCCESS);
    EXPECT_OK(vram_free(world.allocator, block));
    EXPECT_CURRENT(&world, active, 1);
    uint64_t graph = 0;
    assert_int_equal(vr_cu(world.sim, stream_end_capture, captured, &graph), VR_CU_SUCCESS);
    assert_int_equal(vr_cu(world.sim, graph_destroy, graph), VR_CU_SUCCESS);
    EXPECT_OK(vram_capture_leave(pool, captured));
    EXPECT_OK(vram_empty_cache(world.allocator));
    EXPECT_CURRENT(&world, active, 0);
    EXPECT_CURRENT(&world, reserved_bytes, 0);
    vram_pool_release(pool);
    expect_end(&world);
}

// Returns whether all present work of `stream` is done.
static bool is_idle(struct vr_world *world, uint64_t stream) { return vr_cu(world->sim, stream_query, stream) == VR_CU_SUCCESS; }

static void a_restore_waits_for_other_streams(void **state) {
    (void)state;
    struct vr_world world;
    timed_world(&world, 1);
    const uint64_t own = world.stream[0][1], other = world.stream[0][2], third = world.stream[0][3];
    struct vram_pool *pool = NULL;
    struct vram_checkpoint *empty = NULL;
    uint64_t block = 0, again = 0;
    EXPECT_OK(vram_pool_create(world.allocator, 0, NULL, &pool));
    EXPECT_OK(vram_pool_checkpoint(pool, &empty));
    EXPECT_OK(vram_pool_malloc(pool, 3 * VR_MIB, own, &block));
    EXPECT_OK(vram_record_stream(world.allocator, block, other));
    EXPECT_OK(vram_record_stream(world.allocator, block, third));
    EXPECT_OK(vram_sim_busy(world.sim, 0, other, 50 * MILLISECOND));
    const uint64_t before = vram_sim_clock_ns(world.sim);
    EXPECT_OK(vram_pool_restore(pool, empty, NULL));
    assert_true(vram_sim_clock_ns(world.sim) < before + 50 * MILLISECOND); // the host does not wait
    EXPECT_CURRENT(&world, active, 0);
    EXPECT_OK(vram_pool_malloc(pool, 3 * VR_MIB, own, &again));
    assert_int_equal(again, block);
    assert_false(is_idle(&world, own)); // the new owner's work follows the other stream's
    EXPECT_OK(vram_sim_advance(world.sim, 51 * MILLISECOND));
    assert_true(is_idle(&world, own));
    EXPECT_OK(vram_record_stream(world.allocator, again, other));
    EXPECT_OK(vram_free(world.allocator, again));
    vram_checkpoint_destroy(empty);
    vram_pool_release(pool);
    expect_end(&world);
}

// A freed, pending block does not prevent a restore: its own stream takes over the wait, and the others' order stays.
static void a_restore_while_blocks_wait(void **state) {
    (void)state;
    struct vr_world world;
    timed_world(&world, 1);
    const uint64_t own = world.stream[0][1], other = world.stream[0][2];
    struct vram_pool *pool = NULL;
    struct vram_checkpoint *one = NULL;
    uint64_t block = 0, kept = expect_malloc(&world, 2 * VR_MIB, own);
    EXPECT_OK(vram_pool_create(world.allocator, 0, NULL, &pool));
    EXPECT_OK(vram_pool_malloc(pool, 3 * VR_MIB, own, &block));
    EXPECT_OK(vram_pool_checkpoint(pool, &one));
    EXPECT_OK(vram_sim_busy(world.sim, 0, other, 50 * MILLISECOND));
    EXPECT_OK(vram_record_stream(world.allocator, kept, other));
    EXPECT_OK(vram_record_stream(world.allocator, block, other));
    expect_free(&world, kept);
    expect_free(&world, block);
    assert_int_equal(expect_blocks_in(&world, 0, VRAM_BLOCK_PENDING), 2);
    const uint64_t before = vram_sim_clock_ns(world.sim);
    struct vram_checkpoint *now = NULL;
    bool equal = false;
    EXPECT_OK(vram_pool_checkpoint(pool, &now)); // a pending block is not live
    EXPECT_OK(vram_pool_holds_exactly(pool, NULL, 0, &equal));
    assert_true(equal);
    EXPECT_OK(vram_pool_restore(pool, one, NULL));
    assert_true(vram_sim_clock_ns(world.sim) < before + 50 * MILLISECOND); // the host does not wait
    assert_int_equal(expect_size(&world, block), 3 * VR_MIB);
    assert_int_equal(expect_blocks_in(&world, 0, VRAM_BLOCK_PENDING), 1); // the one of another pool
    assert_false(is_idle(&world, own));
    EXPECT_OK(vram_sim_advance(world.sim, 51 * MILLISECOND));
    assert_true(is_idle(&world, own));
    EXPECT_OK(vram_pool_restore(pool, now, NULL));
    assert_int_equal(expect_size(&world, block), 0);
    vram_checkpoint_destroy(one);
    vram_checkpoint_destroy(now);
    vram_pool_release(pool);
    expect_end(&world);
}

static void a_restore_in_a_capture_is_refused(void **state) {
    (void)state;
    struct vr_world world;
    timed_world(&world, 1);
    const uint64_t own = world.stream[0][1], other = world.stream[0][2];
    struct vram_pool *pool = NULL;
    struct vram_checkpoint *empty = NULL;
    uint64_t block = 0;
    EXPECT_OK(vram_pool_create(world.allocator, 0, NULL, &pool));
    EXPECT_OK(vram_pool_checkpoint(pool, &empty));
    EXPECT_OK(vram_pool_malloc(pool, 3 * VR_MIB, own, &block));
    EXPECT_OK(vram_record_stream(world.allocator, block, other));
    assert_int_equal(vr_cu(world.sim, stream_begin_capture, other, VR_CU_STREAM_CAPTURE_MODE_RELAXED), VR_CU_SUCCESS);
    EXPECT_STATUS(INVALID_ARGUMENT, vram_pool_restore(pool, empty, NULL));
    assert_int_equal(expect_size(&world, block), 3 * VR_MIB);
    uint64_t graph = 0;
    assert_int_equal(vr_cu(world.sim, stream_end_capture, other, &graph), VR_CU_SUCCESS);
    assert_int_equal(vr_cu(world.sim, graph_destroy, graph), VR_CU_SUCCESS);
    EXPECT_OK(vram_pool_restore(pool, empty, NULL));
    assert_int_equal(expect_size(&world, block), 0);
    vram_checkpoint_destroy(empty);
    vram_pool_release(pool);
    expect_end(&world);
}

static void a_restore_after_the_stream_is_gone(void **state) {
    (void)state;
    struct vr_world world;
    timed_world(&world, 1);
    const uint64_t own = world.stream[0][1], gone = new_stream(&world);
    struct vram_pool *pool = NULL;
    struct vram_checkpoint *empty = NULL;
    uint64_t block = 0;
    EXPECT_OK(vram_pool_create(world.allocator, 0, NULL, &pool));
    EXPECT_OK(vram_pool_checkpoint(pool, &empty));
    EXPECT_OK(vram_pool_malloc(pool, 3 * VR_MIB, own, &block));
    EXPECT_OK(vram_record_stream(world.allocator, block, gone));
    EXPECT_OK(vram_sim_busy(world.sim, 0, gone, 50 * MILLISECOND));
    destroy_stream(&world, gone);
    EXPECT_OK(vram_pool_restore(pool, empty, NULL));
    assert_true(vram_sim_clock_ns(world.sim) >= 50 * MILLISECOND);
    vram_checkpoint_destroy(empty);
    vram_pool_release(pool);
    expect_end(&world);
}

// Queues are checked again only if something may have passed since; then all of them are, before the request.
static void fences_are_looked_at_once(void **state) {
    (void)state;
    enum { STREAMS = 40, PAIRS = 50 };
    struct vr_world world;
    const struct vr_world_options free_calls = {.sim = {.profile = VRAM_SIM_FREE}}; // otherwise each query advances the clock
    EXPECT_OK(vr_world_open(&world, &free_calls));
    const uint64_t own = world.stream[0][1];
    uint64_t blocks[STREAMS], least = UINT64_MAX;
    for (int i = 0; i < STREAMS; i++) {
        const uint64_t stream = new_stream(&world);
        blocks[i] = expect_malloc(&world, 1024, own);
        EXPECT_OK(vram_sim_busy(world.sim, 0, stream, (uint64_t)(i + 1) * MILLISECOND));
        EXPECT_OK(vram_record_stream(world.allocator, blocks[i], stream));
        if (blocks[i] < least) least = blocks[i];
    }
    for (int i = 0; i < STREAMS; i++) EXPECT_OK(vram_free(world.allocator, blocks[i]));
    const uint64_t before = vram_sim_calls(world.sim, "cuEventQuery");
    for (int i = 0; i < PAIRS; i++) {
        const uint64_t block = expect_malloc(&world, 1024, own);
        assert_true(block > least);
        EXPECT_OK(vram_free(world.allocator, block));
    }
    assert_int_equal(vram_sim_calls(world.sim, "cuEventQuery") - before, STREAMS);
    EXPECT_CURRENT(&world, active, STREAMS);
    EXPECT_OK(vram_sim_advance(world.sim, MILLISECOND)); // the first block's stream is done
    assert_int_equal(expect_malloc(&world, 1024, own), least);
    assert_int_equal(vram_sim_calls(world.sim, "cuEventQuery") - before, 2 * STREAMS);
    EXPECT_CURRENT(&world, active, STREAMS);
    EXPECT_OK(vram_free(world.allocator, least));
    EXPECT_OK(vram_sim_complete_all(world.sim));
    assert_int_equal(expect_malloc(&world, 1024, own), least);
    EXPECT_CURRENT(&world, active, 1);
    expect_end(&world);
}

// Each stream counts as one use, however often it is recorded, and gets one fence.
static void a_block_of_many_streams(void **state) {
    (void)state;
    enum { STREAMS = 500 };
    struct vr_world world;
    timed_world(&world, 1);
    static uint64_t streams[STREAMS];
    const uint64_t own = world.stream[0][1], block = expect_malloc(&world, 3 * VR_MIB, own);
    for (int i = 0; i < STREAMS; i++) streams[i] = new_stream(&world);
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < STREAMS; i++) EXPECT_OK(vram_record_stream(world.allocator, block, streams[(i * 7 + round) % STREAMS]));
    }
    for (int i = 0; i < STREAMS; i++) EXPECT_OK(vram_sim_busy(world.sim, 0, streams[i], MILLISECOND));
    const uint64_t before = vram_sim_calls(world.sim, "cuEventRecord");
    EXPECT_OK(vram_free(world.allocator, block));
    assert_int_equal(vram_sim_calls(world.sim, "cuEventRecord") - before, STREAMS);
    assert_true(expect_malloc(&world, 3 * VR_MIB, own) != block);
    EXPECT_OK(vram_sim_advance(world.sim, MILLISECOND));
    assert_int_equal(expect_malloc(&world, 3 * VR_MIB, own), block);
    expect_end(&world);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_stream_that_is_gone_is_waited_for),
        cmocka_unit_test(also_on_another_device),
        cmocka_unit_test(not_while_a_capture_is_under_way),
        cmocka_unit_test(a_restore_waits_for_other_streams),
        cmocka_unit_test(a_restore_while_blocks_wait),
        cmocka_unit_test(a_restore_in_a_capture_is_refused),
        cmocka_unit_test(a_restore_after_the_stream_is_gone),
        cmocka_unit_test(fences_are_looked_at_once),
        cmocka_unit_test(a_block_of_many_streams),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
