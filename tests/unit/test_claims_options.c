// Tests statements in PyTorch's guides about the allocator's options that no other test covers. tests/coverage.md lists every statement
// with its test.
#include "support/expect.h"
#include "vram/sim.h"

static uint64_t address_after_free(const char *conf, uint64_t cached_mib, uint64_t request_mib, uint64_t *cached) {
    struct vr_world world;
    expect_world(&world, conf, 0);
    *cached = expect_malloc(&world, cached_mib * VR_MIB, 0);
    expect_free(&world, *cached);
    const uint64_t found = expect_malloc(&world, request_mib * VR_MIB, 0);
    if (found == *cached) assert_int_equal(expect_size(&world, found), cached_mib * VR_MIB); // as a whole, not split
    expect_end(&world);
    return found;
}

// Which whole cached block serves a request for 512 MiB.
static void how_much_larger_a_whole_block_may_be(void **state) {
    static const struct {
        const char *conf;
        uint64_t cached_mib;
        bool used;
    } rows[] = {
        {"max_split_size_mb:256", 530, true},
        {"max_split_size_mb:256", 532, false},
        {"max_split_size_mb:256", 1024, false},
        {"max_split_size_mb:256,max_non_split_rounding_mb:1024", 512, true},
        {"max_split_size_mb:256,max_non_split_rounding_mb:1024", 1024, true},
        {"max_split_size_mb:256,max_non_split_rounding_mb:1024", 1534, true},
        {"max_split_size_mb:256,max_non_split_rounding_mb:1024", 1536, false},
    };
    (void)state;
    for (size_t i = 0; i < VR_COUNT_OF(rows); i++) {
        uint64_t cached = 0;
        const uint64_t found = address_after_free(rows[i].conf, rows[i].cached_mib, 512, &cached);
        if ((found == cached) != rows[i].used) fail_msg("%s: a block of %u MiB", rows[i].conf, (unsigned)rows[i].cached_mib);
    }
}

// The driver maps multiples of 2 MiB: an odd segment size is rounded up to an even one if it is the page size.
static void odd_pages_are_rounded_up(void **state) {
    (void)state;
    struct vr_world world;
    expect_world(&world, "expandable_segments:True,large_segment_size_mb:11", 0);
    const uint64_t block = expect_malloc(&world, 5 * VR_MIB, 0);
    EXPECT_CURRENT(&world, reserved_bytes, 12 * VR_MIB);
    expect_free(&world, block);
    expect_end(&world);
}

// Returns the unrequested share of allocated memory, over requests of every size between two powers of two.
static double waste(const char *conf) {
    struct vr_world world;
    uint64_t asked = 0, given = 0;
    expect_world(&world, conf, 0);
    for (uint64_t kib = 4097; kib <= 8192; kib += 37) {
        const uint64_t block = expect_malloc(&world, kib * VR_KIB, 0);
        asked += kib * VR_KIB;
        given += expect_size(&world, block);
        expect_free(&world, block);
        EXPECT_OK(vram_empty_cache(world.allocator));
    }
    expect_end(&world);
    return (double)(given - asked) / (double)given;
}

static void more_divisions_waste_less(void **state) {
    (void)state;
    const double two = waste("roundup_power2_divisions:2"), four = waste("roundup_power2_divisions:4"),
                 eight = waste("roundup_power2_divisions:8");
    assert_true(two > 0.12 && two < 0.16); // an eighth of the larger power of two
    assert_true(four > 0.06 && four < 0.09);
    assert_true(eight > 0.03 && eight < 0.05);
    assert_true(waste("") < 0.001);
    assert_true(waste("roundup_power2_divisions:1") < 0.001); // as PyTorch behaves, contrary to its guides
}

// --- expandable segments --------------------------------------------------------------------------------------------------------------

enum { LAYERS = 50, SMALLEST_BATCH = 16, LARGEST_BATCH = 24 };

// A job with many layers and a growing batch; what a layer keeps depends on both. Returns the batch that failed, or 0.
static uint64_t failing_batch(struct vr_world *world) {
    for (uint64_t batch = SMALLEST_BATCH; batch <= LARGEST_BATCH; batch++) {
        uint64_t kept[LAYERS] = {0};
        enum vram_status status = VRAM_OK;
        for (uint64_t layer = 0; layer < LAYERS && status == VRAM_OK; layer++) {
            const uint64_t size_bytes = batch * (1 + layer % 3) * 700 * VR_KIB;
            status = vram_malloc(world->allocator, 0, size_bytes, 0, &kept[layer]);
        }
        for (size_t layer = 0; layer < LAYERS; layer++) expect_free(world, kept[layer]);
        if (status != VRAM_OK) return batch;
    }
    return 0;
}

static void growing_batches_tile_in_one_segment(void **state) {
    // The needs of the largest batch, plus one percent.
    uint64_t needed = 0;
    for (uint64_t layer = 0; layer < LAYERS; layer++) needed += LARGEST_BATCH * (1 + layer % 3) * 700 * VR_KIB;
    (void)state;
    struct vr_world world;
    expect_world(&world, "expandable_segments:True", needed + needed / 100);
    assert_int_equal(failing_batch(&world), 0);
    EXPECT_SCALAR(&world, num_alloc_retries, 0);
    expect_end(&world);
    expect_world(&world, "", needed + needed / 100);
    (void)failing_batch(&world);
    assert_true(expect_stats(&world).num_alloc_retries > 0);
    expect_end(&world);
    // With all memory available, small pieces remain at the ends of segments.
    expect_world(&world, "", 0);
    assert_int_equal(failing_batch(&world), 0);
    assert_true((uint64_t)expect_stats(&world).reserved_bytes[VRAM_STAT_ALL].current > needed + needed / 20);
    expect_end(&world);
}

// Address space for 9/8 of the device's memory; pages of 2 and 20 MiB are mapped as needed, and free pages are unmapped one by one.
static void segments_reserve_more_than_they_map(void **state) {
    (void)state;
    struct vr_world world;
    expect_world(&world, "expandable_segments:True", 0);
    const uint64_t first = expect_malloc(&world, 3 * VR_MIB, world.stream[0][1]);
    EXPECT_CURRENT(&world, reserved_bytes, 20 * VR_MIB);
    const uint64_t second = expect_malloc(&world, 3 * VR_MIB, world.stream[0][2]);
    assert_int_equal(second - first, 90 * VR_GIB); // of 80
    (void)expect_malloc(&world, 100, world.stream[0][1]);
    EXPECT_CURRENT(&world, reserved_bytes, 42 * VR_MIB);
    assert_int_equal(vram_sim_memory_used(world.sim, 0), 42 * VR_MIB);
    const uint64_t large = expect_malloc(&world, 97 * VR_MIB, world.stream[0][1]);
    assert_int_equal(large, first + 3 * VR_MIB);
    assert_int_equal(vram_sim_memory_used(world.sim, 0), 122 * VR_MIB);
    expect_free(&world, large);
    EXPECT_OK(vram_empty_cache(world.allocator));
    assert_int_equal(vram_sim_memory_used(world.sim, 0), 42 * VR_MIB);
    expect_end(&world);
}

// --- the driver's own cache -----------------------------------------------------------------------------------------------------------

// The backend applies to all devices and ignores options that shape blocks.
static void the_drivers_cache_has_no_options(void **state) {
    static const char conf[] = "backend:cudaMallocAsync,max_split_size_mb:64,roundup_power2_divisions:4,garbage_collection_threshold:0.01,"
                               "expandable_segments:True";
    (void)state;
    struct vr_world world;
    const struct vr_world_options options = {.sim = {.device_count = 2}, .conf = conf};
    EXPECT_OK(vr_world_open(&world, &options));
    for (uint32_t device = 0; device < 2; device++) {
        uint64_t block = 0, other = 0;
        EXPECT_OK(vram_malloc(world.allocator, device, 1200 * VR_KIB, 0, &block));
        EXPECT_OK(vram_malloc(world.allocator, device, 100 * VR_MIB + 1, 0, &other));
        assert_int_equal(expect_size(&world, block), 1200 * VR_KIB);
        assert_int_equal(expect_size(&world, other), 100 * VR_MIB + 1);
        expect_free(&world, block);
        expect_free(&world, other);
    }
    assert_int_equal(vram_sim_calls(world.sim, "cuMemAlloc"), 0);
    assert_int_equal(vram_sim_calls(world.sim, "cuMemMap"), 0);
    EXPECT_SCALAR(&world, num_device_free, 0);
    expect_end(&world);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(how_much_larger_a_whole_block_may_be),
        cmocka_unit_test(more_divisions_waste_less),
        cmocka_unit_test(odd_pages_are_rounded_up),
        cmocka_unit_test(growing_batches_tile_in_one_segment),
        cmocka_unit_test(segments_reserve_more_than_they_map),
        cmocka_unit_test(the_drivers_cache_has_no_options),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
