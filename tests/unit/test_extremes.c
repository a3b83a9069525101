// Tests options at the largest values that their parser accepts: sums of sizes do not overflow, and a request is served or explains why
// not. Also tests options that change while blocks are live: every counted byte is subtracted again.
#include "support/expect.h"

#define MOST_MIB "17592186044415"

static void segments_beyond_all_memory(void **state) {
    static const char *const confs[] = {
        "large_segment_size_mb:" MOST_MIB,
        "large_segment_size_mb:99999999999999999",
        "large_segment_size_mb:" MOST_MIB ",expandable_segments:True",
        "large_segment_size_mb:1TB,expandable_segments:True",
        "large_segment_size_mb:" MOST_MIB ",throw_on_cudamalloc_oom:True",
        "large_segment_size_mb:" MOST_MIB ",per_process_memory_fraction:0.5",
        "large_segment_size_mb:" MOST_MIB ",per_process_memory_fraction:0.5,garbage_collection_threshold:0.5,expandable_segments:True",
    };
    (void)state;
    for (size_t i = 0; i < VR_COUNT_OF(confs); i++) {
        struct vr_world world;
        expect_world(&world, confs[i], 0);
        uint64_t address = 0;
        const uint64_t small = expect_malloc(&world, 100, 0);
        const enum vram_status status = vram_malloc(world.allocator, 0, 2 * VR_MIB, 0, &address);
        if (status != VRAM_OUT_OF_MEMORY && status != VRAM_REJECTED) fail_msg("%s: %s", confs[i], vram_status_name(status));
        expect_free(&world, small);
        EXPECT_OK(vram_empty_cache(world.allocator));
        EXPECT_CURRENT(&world, reserved_bytes, 0);
        expect_end(&world);
    }
}

// A bound beyond all sizes means no bound.
static void whole_blocks_of_any_size(void **state) {
    struct vr_world world;
    (void)state;
    expect_world(&world, "max_split_size_mb:32,max_non_split_rounding_mb:" MOST_MIB, 0);
    const uint64_t block = expect_malloc(&world, 640 * VR_MIB, 0);
    expect_free(&world, block);
    assert_int_equal(expect_malloc(&world, 64 * VR_MIB, 0), block);
    assert_int_equal(expect_size(&world, block), 640 * VR_MIB);
    expect_free(&world, block);
    expect_end(&world);
}

// --- settings that change ---------------------------------------------------------------------------------------------------------------

static void expect_oversize(struct vr_world *world, int64_t allocations, int64_t segments) {
    const struct vram_stats stats = expect_stats(world);
    assert_int_equal(stats.oversize_allocations.current, allocations);
    assert_int_equal(stats.oversize_segments.current, segments);
    struct vram_error error = {0};
    if (vram_check(world->allocator, &error) != VRAM_OK) fail_msg("%s", error.message);
}

// A block counts as oversize from its request to its free, by max_split_size_mb at the request; a segment likewise.
static void oversize_is_counted_out_as_it_was_counted_in(void **state) {
    struct vr_world world;
    (void)state;
    expect_world(&world, "max_split_size_mb:64", 0);
    const uint64_t first = expect_malloc(&world, 100 * VR_MIB, 0), second = expect_malloc(&world, 40 * VR_MIB, 0);
    expect_oversize(&world, 1, 1);
    EXPECT_OK(vram_configure(world.allocator, "max_split_size_mb:200", NULL));
    expect_free(&world, first);
    expect_oversize(&world, 0, 1);
    EXPECT_OK(vram_configure(world.allocator, "max_split_size_mb:32", NULL));
    expect_free(&world, second);
    expect_oversize(&world, 0, 1);
    const uint64_t third = expect_malloc(&world, 100 * VR_MIB, 0);
    EXPECT_OK(vram_configure(world.allocator, "", NULL));
    expect_oversize(&world, 1, 1);
    expect_free(&world, third);
    expect_oversize(&world, 0, 1);
    EXPECT_OK(vram_configure(world.allocator, "max_split_size_mb:32", NULL));
    EXPECT_OK(vram_empty_cache(world.allocator));
    expect_oversize(&world, 0, 0);
    assert_int_equal(expect_stats(&world).oversize_allocations.allocated, 2);
    assert_int_equal(expect_stats(&world).oversize_segments.freed, 1);
    expect_end(&world);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(segments_beyond_all_memory),
        cmocka_unit_test(whole_blocks_of_any_size),
        cmocka_unit_test(oversize_is_counted_out_as_it_was_counted_in),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
