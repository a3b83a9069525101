// Tests what a program can observe of the allocator's rules (docs/internals/allocator.md), one test per rule, except for captures and
// private pools.
#include "support/expect.h"
#include "vram/sim.h"

// Allocates on an empty cache and checks the sizes of the block and its segment.
static void expect_sizes(const char *conf, uint64_t request, uint64_t block_bytes, uint64_t segment_bytes) {
    struct vr_world world;
    expect_world(&world, conf, 0);
    const uint64_t address = expect_malloc(&world, request, 0);
    if (expect_size(&world, address) != block_bytes) print_error("request %llu with \"%s\":\n", (unsigned long long)request, conf);
    assert_int_equal(expect_size(&world, address), block_bytes);
    EXPECT_CURRENT(&world, allocated_bytes, block_bytes);
    EXPECT_CURRENT(&world, reserved_bytes, segment_bytes);
    EXPECT_CURRENT(&world, inactive_split, block_bytes < segment_bytes ? 1 : 0);
    const bool small = block_bytes <= VR_MIB;
    assert_int_equal(expect_stats(&world).segment[small ? VRAM_STAT_SMALL_POOL : VRAM_STAT_LARGE_POOL].current, 1);
    expect_end(&world);
}

static void item_1_small_sizes(void **state) {
    (void)state;
    expect_sizes("", 1, 512, 2 * VR_MIB);
    expect_sizes("", 512, 512, 2 * VR_MIB);
    expect_sizes("", 513, 1024, 2 * VR_MIB);
    expect_sizes("", VR_MIB, VR_MIB, 2 * VR_MIB);
    expect_sizes("", VR_MIB + 1, VR_MIB + 512, 20 * VR_MIB);
}

static void item_2_large_sizes(void **state) {
    (void)state;
    expect_sizes("", 10 * VR_MIB - 512, 10 * VR_MIB - 512, 20 * VR_MIB);
    expect_sizes("", 10 * VR_MIB, 10 * VR_MIB, 10 * VR_MIB);
    expect_sizes("", 10 * VR_MIB + 512, 10 * VR_MIB + 512, 12 * VR_MIB); // 2 MiB - 512 left: split
    expect_sizes("", 11 * VR_MIB, 12 * VR_MIB, 12 * VR_MIB);             // exactly 1 MiB left: kept
    expect_sizes("", 11 * VR_MIB - 512, 11 * VR_MIB - 512, 12 * VR_MIB);
}

static void item_3_neighbours_merge(void **state) {
    (void)state;
    struct vr_world world;
    expect_world(&world, "", 0);
    uint64_t block[3];
    for (size_t i = 0; i < 3; i++) block[i] = expect_malloc(&world, 4 * VR_MIB, 0);
    expect_free(&world, block[0]);
    expect_free(&world, block[2]); // merges with the rest of the segment
    EXPECT_CURRENT(&world, inactive_split, 2);
    expect_free(&world, block[1]);
    EXPECT_CURRENT(&world, inactive_split, 0);
    assert_int_equal(expect_malloc(&world, 20 * VR_MIB, 0), block[0]);
    expect_end(&world);
}

static void tie(const char *conf, enum vram_tie_break tie_break, uint64_t older_address, uint64_t newer_address, bool older_wins) {
    struct vr_world world;
    const struct vr_world_options options = {.conf = conf, .tie_break = tie_break};
    EXPECT_OK(vr_world_open(&world, &options));
    EXPECT_OK(vram_sim_queue_address(world.sim, older_address));
    EXPECT_OK(vram_sim_queue_address(world.sim, newer_address));
    const uint64_t older = expect_malloc(&world, 30 * VR_MIB, 0), newer = expect_malloc(&world, 30 * VR_MIB, 0);
    assert_int_equal(older, older_address);
    assert_int_equal(newer, newer_address);
    expect_free(&world, newer);
    expect_free(&world, older);
    assert_int_equal(expect_malloc(&world, 30 * VR_MIB, 0), older_wins ? older : newer);
    expect_end(&world);
}

static void item_4_equal_sizes(void **state) {
    (void)state;
    const uint64_t low = 0x500000000000, high = 0x600000000000;
    static const struct {
        const char *conf;
        enum vram_tie_break tie_break;
        bool oldest;
    } rows[] = {
        {"", VRAM_TIE_AS_PYTORCH, true},
        {"pytorch:2.15", VRAM_TIE_AS_PYTORCH, true},
        {"pytorch:2.13", VRAM_TIE_AS_PYTORCH, true},
        {"pytorch:2.11", VRAM_TIE_AS_PYTORCH, false},
        {"pytorch:2.12", VRAM_TIE_AS_PYTORCH, true},
        {"pytorch:2.6", VRAM_TIE_AS_PYTORCH, false},
        {"", VRAM_TIE_LOWEST_ADDRESS, false},
        {"pytorch:2.6", VRAM_TIE_OLDEST_SEGMENT, true},
    };
    for (size_t i = 0; i < VR_COUNT_OF(rows); i++) {
        tie(rows[i].conf, rows[i].tie_break, low, high, true);
        tie(rows[i].conf, rows[i].tie_break, high, low, rows[i].oldest);
    }
}

// PyTorch 2.12 uses its block records: the front of a split is a new one, and a merged block keeps that of the freed block.
static void item_4_records_of_2_12(void **state) {
    (void)state;
    static const struct {
        const char *conf;
        bool by_records;
    } rows[] = {{"pytorch:2.11", false}, {"pytorch:2.12", true}, {"pytorch:2.13", false}};
    for (size_t i = 0; i < VR_COUNT_OF(rows); i++) {
        struct vr_world world;
        expect_world(&world, rows[i].conf, VR_GIB);
        uint64_t blocks[7];
        for (size_t k = 0; k < VR_COUNT_OF(blocks); k++) blocks[k] = expect_malloc(&world, 4096, 0);
        expect_free(&world, blocks[1]);
        expect_free(&world, blocks[2]);
        assert_int_equal(expect_malloc(&world, 4096, 0), blocks[1]); // the front of the merged block: a new record
        assert_int_equal(expect_malloc(&world, 4096, 0), blocks[2]);
        expect_free(&world, blocks[4]);
        expect_free(&world, blocks[1]);
        assert_int_equal(expect_malloc(&world, 4096, 0), rows[i].by_records ? blocks[4] : blocks[1]);
        expect_end(&world);
    }
}

// Addresses of the simulator that do not only increase: the older of two free blocks is above, or at a reused address.
static void tie_of_addresses(const char *conf, enum vram_sim_addresses addresses, bool older_wins) {
    struct vr_world world;
    const struct vr_world_options options = {.conf = conf, .sim = {.addresses = addresses}};
    EXPECT_OK(vr_world_open(&world, &options));
    const uint64_t first = expect_malloc(&world, 32 * VR_MIB, 0), older = expect_malloc(&world, 32 * VR_MIB, 0);
    expect_free(&world, first);
    EXPECT_OK(vram_empty_cache(world.allocator)); // a reused address is lower, but belongs to the younger segment
    const uint64_t newer = expect_malloc(&world, 32 * VR_MIB, 0);
    assert_true(newer < older);
    expect_free(&world, newer);
    expect_free(&world, older);
    assert_int_equal(expect_malloc(&world, 32 * VR_MIB, 0), older_wins ? older : newer);
    expect_end(&world);
}

static void item_4_addresses_that_fall(void **state) {
    (void)state;
    tie_of_addresses("", VRAM_SIM_FALLING, true);
    tie_of_addresses("pytorch:2.6", VRAM_SIM_FALLING, false);
    tie_of_addresses("", VRAM_SIM_REUSE, true);
    tie_of_addresses("pytorch:2.6", VRAM_SIM_REUSE, false);
}

static void item_5_streams(void **state) {
    (void)state;
    struct vr_world world;
    expect_world(&world, "", 0);
    const uint64_t one = world.stream[0][1], two = world.stream[0][2];
    const uint64_t block = expect_malloc(&world, 10 * VR_MIB, one);
    expect_free(&world, block);
    assert_int_not_equal(expect_malloc(&world, 10 * VR_MIB, two), block);
    assert_int_equal(expect_malloc(&world, 10 * VR_MIB, one), block);

    EXPECT_OK(vram_record_stream(world.allocator, block, two));
    EXPECT_OK(vram_record_stream(world.allocator, block, two)); // recording twice has no further effect
    EXPECT_OK(vram_record_stream(world.allocator, block, one)); // its own stream is ignored
    const uint64_t events = vram_sim_calls(world.sim, "cuEventRecord");
    expect_free(&world, block);
    assert_int_equal(vram_sim_calls(world.sim, "cuEventRecord"), events + 1);
    EXPECT_CURRENT(&world, active, 2);
    EXPECT_CURRENT(&world, allocation, 1);
    (void)expect_malloc(&world, 1, one);
    EXPECT_CURRENT(&world, active, 3);
    EXPECT_OK(vram_sim_complete_all(world.sim));
    EXPECT_CURRENT(&world, active, 3); // the event has not been checked yet
    (void)expect_malloc(&world, 1, one);
    EXPECT_CURRENT(&world, active, 3);
    EXPECT_CURRENT(&world, allocation, 3);
    expect_end(&world);
}

static void item_6_max_split_size(void **state) {
    (void)state;
    struct vr_world world;
    expect_world(&world, "max_split_size_mb:32", 0);
    const uint64_t big = expect_malloc(&world, 40 * VR_MIB, 0);
    EXPECT_SCALAR(&world, max_split_size, 32 * VR_MIB);
    assert_int_equal(expect_stats(&world).oversize_allocations.current, 1);
    assert_int_equal(expect_stats(&world).oversize_segments.current, 1);
    expect_free(&world, big);
    const uint64_t middle = expect_malloc(&world, 24 * VR_MIB, 0);
    assert_int_not_equal(middle, big);
    EXPECT_CURRENT(&world, reserved_bytes, 64 * VR_MIB);
    // 40 MiB serve 33 MiB as a whole.
    assert_int_equal(expect_malloc(&world, 33 * VR_MIB, 0), big);
    assert_int_equal(expect_size(&world, big), 40 * VR_MIB);
    expect_free(&world, big);
    // 60 MiB is too large for a request of 40, one page less is not.
    const uint64_t sixty = expect_malloc(&world, 60 * VR_MIB, 0), nearly = expect_malloc(&world, 58 * VR_MIB, 0);
    const uint64_t keep = expect_malloc(&world, 40 * VR_MIB, 0);
    assert_int_equal(keep, big);
    expect_free(&world, sixty);
    const uint64_t fresh = expect_malloc(&world, 40 * VR_MIB, 0);
    assert_int_not_equal(fresh, sixty);
    expect_free(&world, nearly);
    assert_int_equal(expect_malloc(&world, 40 * VR_MIB, 0), nearly);
    assert_int_equal(expect_size(&world, nearly), 58 * VR_MIB);
    expect_end(&world);
}

static void item_7_out_of_memory(void **state) {
    (void)state;
    struct vr_world world;
    expect_world(&world, "", VR_MIB);
    uint64_t none = 7;
    EXPECT_STATUS(OUT_OF_MEMORY, vram_malloc(world.allocator, 0, 1, 0, &none));
    assert_int_equal(none, 7);
    EXPECT_SCALAR(&world, num_alloc_retries, 1);
    EXPECT_SCALAR(&world, num_ooms, 1);
    struct vram_oom oom;
    assert_true(vram_last_oom(&oom));
    assert_int_equal(oom.requested_bytes, 1);
    assert_int_equal(oom.rounded_bytes, 512);
    assert_int_equal(oom.segment_bytes, 2 * VR_MIB);
    assert_false(oom.limit_hit);
    EXPECT_RECORDS(&world, {VR_RECORD_OOM, VR_MIB, 512});
    expect_end(&world);
}

static void item_8_memory_fraction(void **state) {
    (void)state;
    struct vr_world world;
    expect_world(&world, "", 100 * VR_MIB);
    EXPECT_OK(vram_set_memory_fraction(world.allocator, 0, 0.5));
    const uint64_t cached = expect_malloc(&world, 30 * VR_MIB, 0);
    expect_free(&world, cached);
    const uint64_t calls = vram_sim_calls(world.sim, "cuMemAlloc");
    const uint64_t whole = expect_malloc(&world, 50 * VR_MIB, 0); // exactly the limit, after the cache was released
    assert_int_equal(vram_sim_calls(world.sim, "cuMemAlloc"), calls + 1);
    assert_int_equal(vram_sim_calls(world.sim, "cuMemFree"), 1);
    uint64_t none = 0;
    EXPECT_STATUS(OUT_OF_MEMORY, vram_malloc(world.allocator, 0, 1, 0, &none));
    assert_int_equal(vram_sim_calls(world.sim, "cuMemAlloc"), calls + 1);
    struct vram_oom oom;
    assert_true(vram_last_oom(&oom));
    assert_true(oom.limit_hit);
    assert_int_equal(oom.limit_bytes, 50 * VR_MIB);
    expect_free(&world, whole);
    EXPECT_OK(vram_set_memory_fraction(world.allocator, 0, 1.0));
    (void)expect_malloc(&world, 100 * VR_MIB, 0);
    expect_end(&world);
}

// Limit 100 MiB, threshold 80 MiB. Of two cached segments, the one unused for longer than the average is released.
static void item_9_garbage_collection(void **state) {
    (void)state;
    struct vr_world world;
    expect_world(&world, "garbage_collection_threshold:0.8", 200 * VR_MIB);
    EXPECT_OK(vram_set_memory_fraction(world.allocator, 0, 0.5));
    (void)expect_malloc(&world, 3 * VR_MIB, 0); // keeps its 20 MiB segment split
    uint64_t block[4];
    for (size_t i = 0; i < 4; i++) block[i] = expect_malloc(&world, 18 * VR_MIB, 0);
    expect_free(&world, block[0]);
    for (size_t i = 0; i < 3; i++) expect_free(&world, expect_malloc(&world, 2 * VR_MIB, 0));
    expect_free(&world, block[1]);
    vr_world_forget(&world);
    EXPECT_CURRENT(&world, reserved_bytes, 92 * VR_MIB);
    const uint64_t fresh = expect_malloc(&world, 24 * VR_MIB, 0);
    EXPECT_RECORDS(&world, {VR_RECORD_SEGMENT_FREE, block[0], 18 * VR_MIB}, {VR_RECORD_SEGMENT_ALLOC, fresh, 24 * VR_MIB},
                   {VR_RECORD_ALLOC, fresh, 24 * VR_MIB});
    EXPECT_SCALAR(&world, num_alloc_retries, 0);
    EXPECT_SCALAR(&world, num_sync_all_streams, 0);
    assert_int_equal(expect_malloc(&world, 18 * VR_MIB, 0), block[1]);
    expect_end(&world);
}

static void item_10_expandable_pages(void **state) {
    (void)state;
    struct vr_world world;
    expect_world(&world, "expandable_segments:True", 0);
    const uint64_t first = expect_malloc(&world, 8 * VR_MIB, 0), second = expect_malloc(&world, 8 * VR_MIB, 0);
    assert_int_equal(second, first + 8 * VR_MIB);
    EXPECT_CURRENT(&world, reserved_bytes, 20 * VR_MIB);
    EXPECT_CURRENT(&world, segment, 0);
    EXPECT_SCALAR(&world, num_device_alloc, 1);
    expect_free(&world, first);
    EXPECT_OK(vram_empty_cache(world.allocator));
    EXPECT_CURRENT(&world, reserved_bytes, 20 * VR_MIB);
    assert_int_equal(vram_sim_calls(world.sim, "cuMemUnmap"), 0);
    expect_free(&world, second);
    EXPECT_OK(vram_empty_cache(world.allocator));
    EXPECT_CURRENT(&world, reserved_bytes, 0);
    assert_int_equal(vram_sim_calls(world.sim, "cuMemUnmap"), 1);
    assert_int_equal(vram_sim_calls(world.sim, "cuMemAddressFree"), 1);
    assert_int_equal(vram_sim_memory_used(world.sim, 0), 0);
    expect_end(&world);
}

static void item_11_power_of_2_divisions(void **state) {
    (void)state;
    static const char list[] = "roundup_power2_divisions:[256:1,512:2,1024:4,>:8]";
    expect_sizes(list, 300 * VR_MIB + 1, 300 * VR_MIB + 512, 302 * VR_MIB);
    expect_sizes(list, 600 * VR_MIB, 768 * VR_MIB, 768 * VR_MIB);
    expect_sizes(list, 1100 * VR_MIB, 1280 * VR_MIB, 1280 * VR_MIB);
    expect_sizes(list, 5000 * VR_MIB, 5120 * VR_MIB, 5120 * VR_MIB);
    expect_sizes("roundup_power2_divisions:4", 1200, 1536, 2 * VR_MIB); // divisions do not apply below 512 * 4 bytes
    expect_sizes("roundup_power2_divisions:4", 2049, 2560, 2 * VR_MIB);
    expect_sizes("roundup_power2_divisions:4", 1200 * 1024, 1280 * 1024, 20 * VR_MIB);
    expect_sizes("roundup_power2_divisions:1", 5 * VR_MIB + 1, 5 * VR_MIB + 512, 20 * VR_MIB); // one division means none
    // Sizes between two keys keep plain rounding.
    static const char holes[] = "roundup_power2_divisions:[64:8,256:4,1024:4,>:1]";
    expect_sizes(holes, 130 * VR_MIB + 1, 130 * VR_MIB + 512, 132 * VR_MIB);
    expect_sizes(holes, 65 * VR_MIB, 72 * VR_MIB, 72 * VR_MIB);
    expect_sizes(holes, 520 * VR_MIB + 1, 520 * VR_MIB + 512, 522 * VR_MIB);
}

static void item_12_an_empty_string_resets_some_options(void **state) {
    (void)state;
    struct vr_world world;
    expect_world(&world, "expandable_segments:True,max_split_size_mb:32,roundup_power2_divisions:4", 0);
    uint64_t block = expect_malloc(&world, 1200 * 1024, 0);
    assert_int_equal(expect_size(&world, block), 1280 * 1024);
    expect_free(&world, block);
    EXPECT_OK(vram_configure(world.allocator, "", NULL));
    block = expect_malloc(&world, 1200 * 1024, 0);
    assert_int_equal(expect_size(&world, block), 1200 * 1024);
    struct vram_block_info info;
    EXPECT_OK(vram_get_block_info(world.allocator, block, &info));
    assert_true(info.expandable);
    const uint64_t big = expect_malloc(&world, 40 * VR_MIB, 0);
    assert_int_equal(expect_stats(&world).oversize_allocations.allocated, 0);
    EXPECT_SCALAR(&world, max_split_size, 32 * VR_MIB); // reported once, when the device was set up
    expect_free(&world, big);
    expect_end(&world);
}

static void item_13_a_wrong_value_is_an_error(void **state) {
    (void)state;
    struct vr_world world;
    expect_world(&world, "max_split_size_mb:32", 0);
    struct vram_error error = {0};
    EXPECT_STATUS(BAD_OPTION, vram_configure(world.allocator, "expandable_segments:sometimes", &error));
    assert_int_equal(error.status, VRAM_BAD_OPTION);
    assert_int_equal(error.offset, strlen("expandable_segments:"));
    assert_true(strlen(error.message) > 0);
    char conf[64];
    assert_int_equal(vram_configuration(world.allocator, conf, sizeof conf), strlen("max_split_size_mb:32"));
    assert_string_equal(conf, "max_split_size_mb:32");
    expect_end(&world);
}

static void item_18_resets_leave_each_other_alone(void **state) {
    (void)state;
    struct vr_world world;
    expect_world(&world, "", 0);
    const uint64_t keep = expect_malloc(&world, VR_MIB, 0), gone = expect_malloc(&world, 4 * VR_MIB, 0);
    expect_free(&world, gone);
    EXPECT_OK(vram_empty_cache(world.allocator));
    struct vram_stat before = expect_stats(&world).allocated_bytes[VRAM_STAT_ALL];
    assert_int_equal(before.peak, 5 * VR_MIB);
    EXPECT_OK(vram_reset_peak_stats(world.allocator, 0));
    struct vram_stat after = expect_stats(&world).allocated_bytes[VRAM_STAT_ALL];
    assert_int_equal(after.peak, VR_MIB);
    assert_int_equal(after.current, before.current);
    assert_int_equal(after.allocated, before.allocated);
    assert_int_equal(after.freed, before.freed);
    EXPECT_SCALAR(&world, num_device_free, 1);
    (void)expect_malloc(&world, 1, 0);
    before = expect_stats(&world).allocated_bytes[VRAM_STAT_ALL];
    EXPECT_OK(vram_reset_accumulated_stats(world.allocator, 0));
    after = expect_stats(&world).allocated_bytes[VRAM_STAT_ALL];
    assert_int_equal(after.current, before.current);
    assert_int_equal(after.peak, before.peak);
    assert_int_equal(after.allocated, 0);
    assert_int_equal(after.freed, 0);
    EXPECT_SCALAR(&world, num_device_alloc, 0);
    EXPECT_SCALAR(&world, num_device_free, 0);
    EXPECT_SCALAR(&world, num_sync_all_streams, 0);
    EXPECT_SCALAR(&world, max_split_size, -1);
    expect_free(&world, keep);
    expect_end(&world);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(item_1_small_sizes),
        cmocka_unit_test(item_2_large_sizes),
        cmocka_unit_test(item_3_neighbours_merge),
        cmocka_unit_test(item_4_equal_sizes),
        cmocka_unit_test(item_4_records_of_2_12),
        cmocka_unit_test(item_4_addresses_that_fall),
        cmocka_unit_test(item_5_streams),
        cmocka_unit_test(item_6_max_split_size),
        cmocka_unit_test(item_7_out_of_memory),
        cmocka_unit_test(item_8_memory_fraction),
        cmocka_unit_test(item_9_garbage_collection),
        cmocka_unit_test(item_10_expandable_pages),
        cmocka_unit_test(item_11_power_of_2_divisions),
        cmocka_unit_test(item_12_an_empty_string_resets_some_options),
        cmocka_unit_test(item_13_a_wrong_value_is_an_error),
        cmocka_unit_test(item_18_resets_leave_each_other_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
