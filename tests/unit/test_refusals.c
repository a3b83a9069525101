// Tests that a driver refusing one call does not disable anything permanently: paged memory, a block used by a capture, a graph.
#include "support/captures.h"

#include "driver/abi.h"
#include "driver/fault/fault.h"
#include "vram/sim.h"

enum { MIB = 1 << 20 };

static void open_world(struct vr_world *world) {
    const struct vr_world_options options = {.conf = "paged:True", .faults = true};
    EXPECT_OK(vr_world_open(world, &options));
}

// Whether a device can map pages is queried once; if that fails, the next request queries again.
static void an_attribute_without_an_answer_is_asked_again(void **state) {
    (void)state;
    for (uint64_t nth = 1; nth <= 3; nth++) {
        struct vr_world world;
        uint64_t address = 0;
        open_world(&world);
        EXPECT_OK(vram_driver_fault_set(world.driver, "cuDeviceGetAttribute", nth, VR_CU_UNKNOWN));
        EXPECT_STATUS(DRIVER, vram_malloc(world.allocator, 0, 3 * MIB, 0, &address));
        address = expect_malloc(&world, 3 * MIB, 0);
        EXPECT_CURRENT(&world, reserved_bytes, 4 * MIB); // pages; cuMemAlloc would have allocated 20 MiB
        expect_free(&world, address);
        expect_end(&world);
    }
}

// A fence on a capturing stream would become part of the graph, and could not be waited for.
static void a_stream_without_an_answer_may_capture(void **state) {
    (void)state;
    struct vr_world world;
    open_world(&world);
    struct vram_pool *pool = expect_graph_pool(&world);
    const uint64_t stream = world.stream[0][1], block = expect_malloc(&world, 3 * MIB, world.stream[0][2]);
    EXPECT_OK(vram_record_stream(world.allocator, block, stream));
    begin(pool, stream, VRAM_CAPTURE_RELAXED);
    EXPECT_OK(vram_driver_fault_set(world.driver, "cuStreamIsCapturing", 1, VR_CU_UNKNOWN));
    expect_free(&world, block);
    for (uint64_t nth = 1; nth <= 3; nth++) {
        uint64_t address = 0;
        EXPECT_OK(vram_driver_fault_set(world.driver, "cuStreamIsCapturing", nth, VR_CU_UNKNOWN));
        if (vram_malloc(world.allocator, 0, 3 * MIB, world.stream[0][2], &address) == VRAM_OK) expect_free(&world, address);
    }
    EXPECT_OK(vram_driver_fault_set(world.driver, NULL, 0, 0));
    end(&world, pool, stream);
    EXPECT_OK(vram_empty_cache(world.allocator));
    EXPECT_CURRENT(&world, reserved_bytes, 0);
    vram_pool_release(pool);
    expect_end(&world);
}

// A use counts as captured, which ends with the capture and needs no fence, only if the driver says so.
static void a_use_without_an_answer_is_fenced(void **state) {
    (void)state;
    struct vr_world world;
    open_world(&world);
    struct vram_pool *pool = expect_graph_pool(&world);
    const uint64_t user = world.stream[0][2], block = expect_malloc(&world, 3 * MIB, world.stream[0][3]);
    begin(pool, world.stream[0][1], VRAM_CAPTURE_RELAXED);
    EXPECT_OK(vram_driver_fault_set(world.driver, "cuStreamIsCapturing", 1, VR_CU_UNKNOWN));
    EXPECT_OK(vram_record_stream(world.allocator, block, user));
    EXPECT_OK(vram_sim_busy(world.sim, 0, user, 5000000));
    expect_free(&world, block);
    end(&world, pool, world.stream[0][1]);
    const uint64_t other = expect_malloc(&world, 3 * MIB, world.stream[0][3]);
    assert_int_not_equal(other, block);
    expect_free(&world, other);
    vram_pool_release(pool);
    expect_end(&world);
}

// The second call ends the capture after the first was refused; its graph is destroyed.
static void a_graph_that_nobody_gets_is_destroyed(void **state) {
    (void)state;
    struct vr_world world;
    uint64_t graph = 0;
    open_world(&world);
    struct vram_pool *pool = expect_graph_pool(&world);
    begin(pool, world.stream[0][1], VRAM_CAPTURE_RELAXED);
    EXPECT_OK(vram_driver_fault_set(world.driver, "cuStreamEndCapture", 1, VR_CU_UNKNOWN));
    vr_fault_then(world.driver, 3, VR_CU_UNKNOWN); // the query for a capture, the second end, the graph
    EXPECT_STATUS(DRIVER, vram_capture_end(pool, world.stream[0][1], &graph, NULL));
    EXPECT_OK(vram_driver_fault_set(world.driver, NULL, 0, 0));
    vram_pool_release(pool);
    expect_end(&world);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_attribute_without_an_answer_is_asked_again),
        cmocka_unit_test(a_stream_without_an_answer_may_capture),
        cmocka_unit_test(a_use_without_an_answer_is_fenced),
        cmocka_unit_test(a_graph_that_nobody_gets_is_destroyed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
