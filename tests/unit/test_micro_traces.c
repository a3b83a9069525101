// Tests the worked examples of the specification (allocator.md §worked-examples) without private pools: records and statistics, step by
// step.
#include "support/expect.h"
#include "vram/sim.h"

#define SEGMENT_ALLOC VR_RECORD_SEGMENT_ALLOC
#define SEGMENT_FREE  VR_RECORD_SEGMENT_FREE
#define SEGMENT_MAP   VR_RECORD_SEGMENT_MAP
#define SEGMENT_UNMAP VR_RECORD_SEGMENT_UNMAP
#define ALLOC         VR_RECORD_ALLOC
#define REQUESTED     VR_RECORD_FREE_REQUESTED
#define COMPLETED     VR_RECORD_FREE_COMPLETED

static void a_small_blocks_split_and_merge(void **state) {
    (void)state;
    struct vr_world world;
    expect_world(&world, "", 0);
    const uint64_t first = expect_malloc(&world, 100, 0);
    EXPECT_RECORDS(&world, {SEGMENT_ALLOC, first, 2 * VR_MIB}, {ALLOC, first, 100});
    EXPECT_CURRENT(&world, segment, 1);
    EXPECT_CURRENT(&world, reserved_bytes, 2 * VR_MIB);
    EXPECT_CURRENT(&world, allocation, 1);
    EXPECT_CURRENT(&world, allocated_bytes, 512);
    EXPECT_CURRENT(&world, requested_bytes, 100);
    EXPECT_CURRENT(&world, inactive_split, 1);
    EXPECT_CURRENT(&world, inactive_split_bytes, 2 * VR_MIB - 512);

    const uint64_t second = expect_malloc(&world, 600, 0);
    assert_int_equal(second, first + 512);
    EXPECT_RECORDS(&world, {ALLOC, second, 600});
    EXPECT_CURRENT(&world, segment, 1);
    EXPECT_CURRENT(&world, inactive_split_bytes, 2 * VR_MIB - 512 - 1024);

    expect_free(&world, first);
    EXPECT_RECORDS(&world, {REQUESTED, first, 100}, {COMPLETED, first, 100});
    EXPECT_CURRENT(&world, inactive_split, 2);
    EXPECT_CURRENT(&world, inactive_split_bytes, 2 * VR_MIB - 1024);

    expect_free(&world, second);
    EXPECT_RECORDS(&world, {REQUESTED, second, 600}, {COMPLETED, second, 600});
    EXPECT_CURRENT(&world, inactive_split, 0);
    EXPECT_CURRENT(&world, inactive_split_bytes, 0);
    // The net change is applied once: two pieces were removed, none added.
    assert_int_equal(expect_stats(&world).inactive_split[VRAM_STAT_ALL].allocated, 2);
    assert_int_equal(expect_stats(&world).inactive_split[VRAM_STAT_ALL].freed, 2);

    EXPECT_OK(vram_empty_cache(world.allocator));
    EXPECT_RECORDS(&world, {SEGMENT_FREE, first, 2 * VR_MIB});
    EXPECT_SCALAR(&world, num_sync_all_streams, 1);
    EXPECT_SCALAR(&world, num_device_free, 1);
    EXPECT_CURRENT(&world, reserved_bytes, 0);
    expect_end(&world);
}

static void b_leftover_stays_inside_a_large_block(void **state) {
    (void)state;
    struct vr_world world;
    expect_world(&world, "", 0);
    const uint64_t low = expect_malloc(&world, 3 * VR_MIB, 0);
    EXPECT_RECORDS(&world, {SEGMENT_ALLOC, low, 20 * VR_MIB}, {ALLOC, low, 3 * VR_MIB});
    EXPECT_CURRENT(&world, inactive_split_bytes, 17 * VR_MIB);

    const uint64_t exact = expect_malloc(&world, 17 * VR_MIB, 0);
    assert_int_equal(exact, low + 3 * VR_MIB);
    EXPECT_CURRENT(&world, inactive_split, 0);
    EXPECT_CURRENT(&world, inactive_split_bytes, 0);
    expect_free(&world, exact);

    const uint64_t before = (uint64_t)expect_stats(&world).requested_bytes[VRAM_STAT_ALL].current;
    const uint64_t loose = expect_malloc(&world, 33 * VR_MIB / 2, 0);
    assert_int_equal(loose, exact);
    assert_int_equal(expect_size(&world, loose), 17 * VR_MIB);
    EXPECT_CURRENT(&world, allocated_bytes, 20 * VR_MIB);
    EXPECT_CURRENT(&world, requested_bytes, before + 33 * VR_MIB / 2);
    EXPECT_CURRENT(&world, segment, 1);
    expect_free(&world, loose);
    expect_free(&world, low);
    expect_end(&world);
}

static void c_other_streams_hold_a_block_back(void **state) {
    (void)state;
    struct vr_world world;
    expect_world(&world, "", 0);
    const uint64_t own = world.stream[0][1], other = world.stream[0][2], third = world.stream[0][3];
    const uint64_t block = expect_malloc(&world, 20 * VR_MIB, own);
    EXPECT_OK(vram_record_stream(world.allocator, block, other));
    expect_free(&world, block);
    EXPECT_RECORDS(&world, {SEGMENT_ALLOC, block, 20 * VR_MIB}, {ALLOC, block, 20 * VR_MIB}, {REQUESTED, block, 20 * VR_MIB});
    EXPECT_CURRENT(&world, allocation, 0);
    EXPECT_CURRENT(&world, active, 1);
    EXPECT_CURRENT(&world, requested_bytes, 20 * VR_MIB);

    const uint64_t fresh = expect_malloc(&world, 20 * VR_MIB, own);
    EXPECT_RECORDS(&world, {SEGMENT_ALLOC, fresh, 20 * VR_MIB}, {ALLOC, fresh, 20 * VR_MIB});

    // Any later allocation on the device sees the event, whatever its size and stream.
    EXPECT_OK(vr_world_complete(&world, 0, other));
    EXPECT_CURRENT(&world, active, 2);
    const uint64_t tiny = expect_malloc(&world, 1, third);
    EXPECT_RECORDS(&world, {COMPLETED, block, 20 * VR_MIB}, {SEGMENT_ALLOC, tiny, 2 * VR_MIB}, {ALLOC, tiny, 1});
    assert_int_equal(expect_malloc(&world, 20 * VR_MIB, own), block);
    expect_end(&world);
}

static void d_the_limit_fails_without_a_driver_call(void **state) {
    (void)state;
    struct vr_world world;
    expect_world(&world, "", 0);
    EXPECT_OK(vram_set_memory_limit(world.allocator, 0, 50 * VR_MIB));
    const uint64_t first = expect_malloc(&world, 20 * VR_MIB, 0), second = expect_malloc(&world, 20 * VR_MIB, 0);
    expect_free(&world, first);
    const uint64_t calls = vram_sim_calls(world.sim, "cuMemAlloc");
    vr_world_forget(&world);

    // Releases the cache (one wait for everything) and retries the request within the limit.
    const uint64_t third = expect_malloc(&world, 30 * VR_MIB, 0);
    EXPECT_RECORDS(&world, {SEGMENT_FREE, first, 20 * VR_MIB}, {SEGMENT_ALLOC, third, 30 * VR_MIB}, {ALLOC, third, 30 * VR_MIB});
    assert_int_equal(vram_sim_calls(world.sim, "cuMemAlloc"), calls + 1);
    EXPECT_SCALAR(&world, num_alloc_retries, 1);
    EXPECT_SCALAR(&world, num_sync_all_streams, 1);
    EXPECT_SCALAR(&world, num_ooms, 0);

    uint64_t none = 1;
    EXPECT_STATUS(OUT_OF_MEMORY, vram_malloc(world.allocator, 0, 12 * VR_MIB, 0, &none));
    assert_int_equal(none, 1);
    assert_int_equal(vram_sim_calls(world.sim, "cuMemAlloc"), calls + 1);
    EXPECT_SCALAR(&world, num_alloc_retries, 2);
    EXPECT_SCALAR(&world, num_ooms, 1);
    EXPECT_RECORDS(&world, {VR_RECORD_OOM, 80 * VR_GIB - 50 * VR_MIB, 12 * VR_MIB});
    expect_free(&world, second);
    expect_free(&world, third);
    expect_end(&world);
}

static void f_pages_are_mapped_behind_a_free_block(void **state) {
    (void)state;
    struct vr_world world;
    expect_world(&world, "expandable_segments:True", 80 * VR_GIB);
    const uint64_t first = expect_malloc(&world, 25 * VR_MIB, 0);
    EXPECT_RECORDS(&world, {SEGMENT_MAP, first, 40 * VR_MIB}, {ALLOC, first, 25 * VR_MIB});
    EXPECT_CURRENT(&world, reserved_bytes, 40 * VR_MIB);
    const uint64_t second = expect_malloc(&world, 30 * VR_MIB, 0);
    assert_int_equal(second, first + 25 * VR_MIB);
    EXPECT_RECORDS(&world, {SEGMENT_MAP, first + 40 * VR_MIB, 20 * VR_MIB}, {ALLOC, second, 30 * VR_MIB});
    EXPECT_CURRENT(&world, reserved_bytes, 60 * VR_MIB);
    EXPECT_CURRENT(&world, segment, 0);
    EXPECT_CURRENT(&world, inactive_split, 0);
    EXPECT_SCALAR(&world, num_device_alloc, 2);

    struct vram_block_info info;
    EXPECT_OK(vram_get_block_info(world.allocator, second, &info));
    assert_true(info.expandable);
    assert_int_equal(info.segment_address, first);
    assert_int_equal(info.segment_bytes, 60 * VR_MIB);

    expect_free(&world, first);
    vr_world_forget(&world);
    EXPECT_OK(vram_empty_cache(world.allocator));
    EXPECT_RECORDS(&world, {SEGMENT_UNMAP, first, 20 * VR_MIB});
    expect_free(&world, second);
    vr_world_forget(&world);
    EXPECT_OK(vram_empty_cache(world.allocator));
    EXPECT_RECORDS(&world, {SEGMENT_UNMAP, first + 20 * VR_MIB, 40 * VR_MIB});
    assert_int_equal(vram_sim_calls(world.sim, "cuMemAddressFree"), 1);
    expect_end(&world);
}

static void g_a_request_is_refused_before_any_driver_call(void **state) {
    (void)state;
    struct vr_world world;
    expect_world(&world, "per_process_memory_fraction:1.0,throw_on_cudamalloc_oom:True", VR_GIB);
    const uint64_t block = expect_malloc(&world, 600 * VR_MIB, 0);
    expect_free(&world, block);
    const uint64_t calls = vram_sim_calls(world.sim, "cuMemAlloc");
    vr_world_forget(&world);
    uint64_t none = 0;
    EXPECT_STATUS(REJECTED, vram_malloc(world.allocator, 0, 700 * VR_MIB, 0, &none));
    EXPECT_SCALAR(&world, num_oom_rejections, 1);
    EXPECT_SCALAR(&world, num_ooms, 0);
    EXPECT_SCALAR(&world, num_alloc_retries, 0);
    EXPECT_CURRENT(&world, reserved_bytes, 600 * VR_MIB); // nothing is released for it
    assert_int_equal(vram_sim_calls(world.sim, "cuMemAlloc"), calls);
    EXPECT_NO_RECORDS(&world);
    struct vram_oom oom;
    assert_true(vram_last_oom(&oom));
    assert_true(oom.rejected);
    assert_int_equal(oom.requested_bytes, 700 * VR_MIB);
    expect_end(&world);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_small_blocks_split_and_merge),         cmocka_unit_test(b_leftover_stays_inside_a_large_block),
        cmocka_unit_test(c_other_streams_hold_a_block_back),      cmocka_unit_test(d_the_limit_fails_without_a_driver_call),
        cmocka_unit_test(f_pages_are_mapped_behind_a_free_block), cmocka_unit_test(g_a_request_is_refused_before_any_driver_call),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
