// test_replay.c: replays generated recordings (selfmade.h), whole and truncated, exactly.
#include "replay/replaying.h"
#include "replay/selfmade.h"
#include "vram/sim.h"

// Returns how many ages of segments it used.
static uint64_t replay_from(const struct selfmade *made, size_t cut, uint64_t seed) {
    struct vram_recording *recording = selfmade_recording(made, cut);
    struct vram_exact_result *result = exact(recording);
    if (!result->agrees) {
        (void)!vram_exact_text(result, "self-made", NULL, to_stderr, NULL);
        fail_msg("conf '%s' seed %llu cut %zu", made->conf, (unsigned long long)seed, cut);
    }
    assert_int_equal(result->devices[0].final_blocks_equal, made->block_count);
    const uint64_t ages = result->devices[0].start_ages_inferred;
    vram_exact_result_destroy(result);
    vram_recording_destroy(recording);
    return ages;
}

static void replay_selfmade(uint64_t memory_bytes, bool small_sizes, unsigned cuts) {
    for (size_t c = 0; c < SELFMADE_CONFS; c++) {
        for (uint64_t seed = 1; seed <= 6; seed++) {
            struct selfmade made;
            const struct selfmade_options options = {.conf = selfmade_confs[c],
                                                     .seed = seed,
                                                     .memory_bytes = memory_bytes,
                                                     .operations = 1500,
                                                     .streams = 1 + (unsigned)(seed % 4),
                                                     .small_sizes = small_sizes};
            selfmade_run(&made, &options);
            for (unsigned i = 0; i <= cuts; i++) replay_from(&made, made.count * i / (cuts + 1), seed);
            selfmade_release(&made);
        }
    }
}

static void whole_histories_are_exact(void **state) {
    (void)state;
    replay_selfmade(80 * VR_GIB, false, 0);
    replay_selfmade(80 * VR_GIB, true, 0);
}

// The initial state must be found by undoing the remaining events.
static void cut_histories_of_small_blocks_are_exact(void **state) {
    (void)state;
    replay_selfmade(80 * VR_GIB, true, 6);
}

// Real drivers reuse addresses, and assign new ones above or below others. No recording contains the age of a segment from before the
// history, or the bounds of a reservation.
static void cut_histories_are_exact_wherever_segments_lie(void **state) {
    (void)state;
    static const enum vram_sim_addresses addresses[] = {VRAM_SIM_FALLING, VRAM_SIM_REUSE, VRAM_SIM_DRIVER, VRAM_SIM_WINDOWS};
    uint64_t inferred = 0;
    for (size_t play = 0; play < 4 * VR_COUNT_OF(addresses) * SELFMADE_CONFS; play++) {
        struct selfmade made;
        const struct selfmade_options options = {.conf = selfmade_confs[play % SELFMADE_CONFS],
                                                 .seed = 300 + play,
                                                 .memory_bytes = play % 3 == 0 ? 400 * VR_MIB : 80 * VR_GIB,
                                                 .operations = 1200,
                                                 .streams = 1 + (unsigned)(play % 3),
                                                 .small_sizes = true,
                                                 .addresses = addresses[play / SELFMADE_CONFS % VR_COUNT_OF(addresses)]};
        selfmade_run(&made, &options);
        for (size_t part = 1; part <= 4; part++) inferred += replay_from(&made, made.count * part / 5, options.seed);
        selfmade_release(&made);
    }
    assert_true(inferred > 100);
}

// Blocks of the large pool may be up to 1 MiB longer than requested; if neither a neighbour nor the final state gives the length, the
// shortest is assumed. That only affects the final state of memory that the history frees, so placements still agree.
static void cut_histories_of_large_blocks_are_placed(void **state) {
    (void)state;
    uint64_t allocations = 0, placed = 0;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        struct selfmade made;
        const struct selfmade_options options = {
            .conf = "", .seed = seed, .memory_bytes = 80 * VR_GIB, .operations = 1500, .streams = 1 + (unsigned)(seed % 3)};
        selfmade_run(&made, &options);
        struct vram_recording *recording = selfmade_recording(&made, made.count / 3);
        struct vram_exact_result *result = exact(recording);
        assert_int_not_equal(result->devices[0].verdict, VRAM_EXACT_CONTRADICTION);
        allocations += result->devices[0].allocations;
        placed += result->devices[0].at_recorded_address;
        vram_exact_result_destroy(result);
        vram_recording_destroy(recording);
        selfmade_release(&made);
    }
    assert_true(allocations > 5000);
    assert_true(placed * 1000 >= allocations * 995);
}

// A device too small for the program: retries that wait for other streams, partial releases, and out of memory.
static void histories_with_ooms_are_exact(void **state) {
    (void)state;
    uint64_t ooms = 0;
    for (uint64_t seed = 1; seed <= 10; seed++) {
        struct selfmade made;
        const struct selfmade_options options = {.conf = seed % 2 == 0 ? "" : "max_split_size_mb:32",
                                                 .seed = seed,
                                                 .memory_bytes = 256 * VR_MIB,
                                                 .operations = 1500,
                                                 .streams = 2};
        selfmade_run(&made, &options);
        assert_true(made.stats.num_alloc_retries > 0);
        struct vram_recording *recording = selfmade_recording(&made, 0);
        struct vram_exact_result *result = exact(recording);
        if (!result->agrees) (void)!vram_exact_text(result, "self-made", NULL, to_stderr, NULL);
        assert_true(result->agrees);
        assert_int_equal(result->devices[0].oom_events, made.stats.num_ooms);
        ooms += result->devices[0].oom_events;
        vram_exact_result_destroy(result);
        vram_recording_destroy(recording);
        selfmade_release(&made);
    }
    assert_true(ooms > 50);
}

// On a nearly full device, a free block at the end of an expandable segment competes with one before a hole: which has more room to grow
// depends on the device's memory, which the history reveals where it ran out.
static void full_devices_with_expandable_segments_are_exact(void **state) {
    (void)state;
    static const uint64_t seeds[] = {5, 6, 7, 35};
    for (size_t i = 0; i < VR_COUNT_OF(seeds); i++) {
        struct selfmade made;
        const struct selfmade_options options = {
            .conf = "expandable_segments:True", .seed = seeds[i], .memory_bytes = 700 * VR_MIB, .operations = 3000, .streams = 1};
        selfmade_run(&made, &options);
        replay_from(&made, 0, seeds[i]);
        selfmade_release(&made);
    }
}

// A request short of memory releases part of its private pool's cache; a pool that ends releases all of it.
static void parts_of_private_pools_are_exact(void **state) {
    (void)state;
    static const uint64_t seeds[] = {3, 7, 21, 22, 26, 30};
    for (size_t i = 0; i < VR_COUNT_OF(seeds); i++) {
        struct selfmade made;
        const struct selfmade_options options = {
            .conf = "max_split_size_mb:32", .seed = seeds[i], .memory_bytes = 600 * VR_MIB, .operations = 2500, .streams = 2, .pools = 2};
        selfmade_run(&made, &options);
        replay_from(&made, 0, seeds[i]);
        selfmade_release(&made);
    }
}

// Pools that do not split are recognizable by their history: every block begins a segment, and some segments would have been split.
static void whole_pools_without_live_blocks_are_exact(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= 8; seed++) {
        struct selfmade made;
        const struct selfmade_options options = {.conf = "",
                                                 .seed = seed,
                                                 .memory_bytes = 80 * VR_GIB,
                                                 .operations = 1500,
                                                 .streams = 2,
                                                 .pools = 3,
                                                 .no_split = seed % 4 != 0,
                                                 .ends_empty = true};
        selfmade_run(&made, &options);
        replay_from(&made, 0, seed);
        replay_from(&made, made.count / 3, seed);
        selfmade_release(&made);
    }
}

// A failing request reserves address space depending on its segment's free blocks, so these must not be withheld from it.
static void full_devices_with_pools_are_exact(void **state) {
    (void)state;
    static const uint64_t seeds[] = {3, 12, 27, 33};
    for (size_t i = 0; i < VR_COUNT_OF(seeds); i++) {
        struct selfmade made;
        const struct selfmade_options options = {.conf = "expandable_segments:True",
                                                 .seed = seeds[i],
                                                 .memory_bytes = 300 * VR_MIB,
                                                 .operations = 3000,
                                                 .streams = 1,
                                                 .pools = 2};
        selfmade_run(&made, &options);
        replay_from(&made, 0, seeds[i]);
        selfmade_release(&made);
    }
}

// With max_split_size_mb a request searches the cache, fails, and releases part or all of the cache. It does not search again, although
// pieces of a large free block whose other pages were unmapped would now serve it. Its own pool's memory is released first.
static void searches_before_a_release_are_exact(void **state) {
    (void)state;
    static const struct selfmade_options plays[] = {
        {.conf = "expandable_segments:True,max_split_size_mb:48",
         .seed = 27,
         .memory_bytes = 300 * VR_MIB,
         .streams = 1,
         .addresses = VRAM_SIM_FALLING},
        {.conf = "expandable_segments:True,max_split_size_mb:48",
         .seed = 41,
         .memory_bytes = 600 * VR_MIB,
         .streams = 2,
         .addresses = VRAM_SIM_FALLING},
        {.conf = "expandable_segments:True,max_split_size_mb:48",
         .seed = 111,
         .memory_bytes = 1200 * VR_MIB,
         .streams = 3,
         .addresses = VRAM_SIM_FALLING},
        {.conf = "expandable_segments:True,max_split_size_mb:48", .seed = 29, .memory_bytes = 300 * VR_MIB, .streams = 3, .pools = 2},
        {.conf = "max_split_size_mb:32", .seed = 38, .memory_bytes = 300 * VR_MIB, .streams = 1, .pools = 2},
        {.conf = "max_split_size_mb:32", .seed = 84, .memory_bytes = 600 * VR_MIB, .streams = 1, .pools = 2},
        {.conf = "max_split_size_mb:32", .seed = 73, .memory_bytes = 600 * VR_MIB, .streams = 3, .pools = 1, .addresses = VRAM_SIM_FALLING},
    };
    for (size_t i = 0; i < VR_COUNT_OF(plays); i++) {
        struct selfmade made;
        struct selfmade_options options = plays[i];
        options.operations = 2500;
        selfmade_run(&made, &options);
        replay_from(&made, 0, options.seed);
        selfmade_release(&made);
    }
}

// Segments that change streams are released and allocated in the history, and the whole cache includes that of referenced pools.
static void options_beyond_pytorch_are_exact(void **state) {
    (void)state;
    static const char *const beyond[] = {"reclaim_streams:True", "max_split_size_mb:32,reclaim_streams:True", "share_live_pools:True",
                                         "max_split_size_mb:64,expandable_segments:True,expandable_segments_reuse_oversize:True"};
    for (size_t i = 0; i < VR_COUNT_OF(beyond); i++) {
        for (uint64_t seed = 1; seed <= 6; seed++) {
            struct selfmade made;
            const struct selfmade_options options = {.conf = beyond[i],
                                                     .seed = seed,
                                                     .memory_bytes = (seed % 3 + 1) * 300 * VR_MIB,
                                                     .operations = 1500,
                                                     .streams = 4,
                                                     .pools = (unsigned)(seed % 3)};
            selfmade_run(&made, &options);
            replay_from(&made, 0, seed);
            selfmade_release(&made);
        }
    }
}

// A request without room in its reservation fails in a new one; the next mapping may still be in the old one. The length of reservations is
// in the settings, or follows from an out-of-memory error, or from the place of another reservation.
static void used_up_reservations_are_exact(void **state) {
    (void)state;
    static const struct {
        const char *conf;
        uint64_t memory_mib;
        uint64_t seeds[6];
        size_t cut; // parts of 100
    } plays[] = {
        {"expandable_segments:True", 300, {5, 6, 7, 13, 41, 43}, 0},
        {"expandable_segments:True", 600, {18, 26, 97, 1, 2, 3}, 0},
        {"expandable_segments:True,expandable_segments_reserve:100MiB", 300, {1, 2, 3, 4, 5, 6}, 0},
        {"expandable_segments:True,expandable_segments_reserve:60MiB", 2000, {1, 2, 3, 4, 5, 6}, 0},
        {"expandable_segments:True,expandable_segments_reserve:0.4", 300, {1, 2, 3, 4, 5, 6}, 0},
        {"expandable_segments:True,expandable_segments_reserve:0.2", 2000, {1, 2, 3, 4, 5, 6}, 0},
        {"expandable_segments:True,expandable_segments_reserve:100MiB", 2000, {1, 2, 3, 5, 6, 7}, 33},
    };
    for (size_t i = 0; i < VR_COUNT_OF(plays); i++) {
        for (size_t k = 0; k < VR_COUNT_OF(plays[i].seeds); k++) {
            struct selfmade made;
            const struct selfmade_options options = {.conf = plays[i].conf,
                                                     .seed = plays[i].seeds[k],
                                                     .memory_bytes = plays[i].memory_mib * VR_MIB,
                                                     .operations = 3000,
                                                     .streams = 1};
            selfmade_run(&made, &options);
            replay_from(&made, made.count * plays[i].cut / 100, plays[i].seeds[k]);
            selfmade_release(&made);
        }
    }
}

// A range not aligned to the previous range's pages belongs to another reservation. The previous one ends with its last page, before this
// range.
static void ranges_off_each_others_pages_are_of_two_reservations(void **state) {
    (void)state;
    assert_int_equal(
        verdict_of_string(
            "{\"segments\": [{\"device\": 0, \"address\": 1073741824, \"total_size\": 104857600, \"stream\": 0, "
            "\"segment_type\": \"large\", \"is_expandable\": true,"
            " \"blocks\": [{\"size\": 104857600, \"requested_size\": 104857600, \"state\": \"active_allocated\"}]},"
            "{\"device\": 0, \"address\": 3263168512, \"total_size\": 20971520, \"stream\": 0, " // 2,088 MiB after it
            "\"segment_type\": \"large\", \"is_expandable\": true,"
            " \"blocks\": [{\"size\": 12582912, \"requested_size\": 12582912, \"state\": \"active_allocated\"},"
            " {\"size\": 8388608, \"requested_size\": 0, \"state\": \"inactive\"}]}],"
            "\"device_traces\": [[{\"action\": \"alloc\", \"addr\": 3263168512, \"size\": 12582912, \"stream\": 0}]],"
            "\"allocator_settings\": {\"PYTORCH_CUDA_ALLOC_CONF\": \"expandable_segments:True,expandable_segments_reserve:0.2\"}}"),
        VRAM_EXACT_EQUAL);
}

#define RANGE(address, total, blocks)                                                                                                      \
    "{\"device\":0,\"address\":" #address ",\"total_size\":" #total ",\"stream\":0,\"segment_type\":\"large\",\"is_expandable\":true,"     \
    "\"blocks\":[" blocks "]}"
#define SETTINGS(conf) "\"allocator_settings\":{\"PYTORCH_CUDA_ALLOC_CONF\":\"" conf "\"},"

// Ranges of one stream aligned to each other's pages belong to one reservation, however long it then is: there is room between them.
static void ranges_on_each_others_pages_are_of_one_reservation(void **state) {
    (void)state;
    // 20 MiB, 15 GiB mapped after them, and 20 MiB that start 20 GiB after the first; otherwise a reservation has about 10 GiB.
    assert_int_equal(
        verdict_of_string("{\"segments\":[" RANGE(
            1073741824, 16127098880,
            BLOCK(1073741824, 20971520, "active_allocated") "," BLOCK(
                1094713344, 16106127360,
                "active_allocated")) "," RANGE(22548578304, 20971520,
                                               BLOCK(22548578304, 20971520,
                                                     "active_allocated")) "]," SETTINGS("expandable_segments:True,expandable_segments_"
                                                                                        "reserve:0.01")
                              TRACE(EVENT("segment_map", 1094713344, 16106127360) "," EVENT("alloc", 1094713344, 16106127360))),
        VRAM_EXACT_EQUAL);
}

// A reservation without mapped memory has released its addresses, however often it grew: another one that begins 60 MiB after it does not
// bound its length.
static void reservations_that_ended_bound_none(void **state) {
    (void)state;
#define OF(stream, name, address, size) "{\"action\":\"" name "\",\"addr\":" #address ",\"size\":" #size ",\"stream\":" #stream "}"
#define GONE(address, size)             OF(7, "free_requested", address, size) "," OF(7, "free_completed", address, size)
    assert_int_equal(
        verdict_of_string(
            "{\"segments\":[" RANGE(1136656384, 314572800,
                                    BLOCK(1136656384, 20971520, "active_allocated") "," BLOCK(
                                        1157627904, 293601280, "active_allocated")) "]," SETTINGS("expandable_segments:True")
                TRACE(OF(7, "segment_map", 1073741824, 20971520) "," OF(7, "alloc", 1073741824, 20971520) "," OF(7, "segment_map", 1094713344, 20971520) "," OF(
                    7, "alloc", 1094713344,
                    20971520) "," GONE(1073741824,
                                       20971520) "," GONE(1094713344,
                                                          20971520) "," OF(7, "segment_unmap", 1073741824,
                                                                           41943040) "," EVENT("segment_map", 1136656384,
                                                                                               20971520) "," EVENT("alloc", 1136656384,
                                                                                                                   20971520) "," EVENT("seg"
                                                                                                                                       "men"
                                                                                                                                       "t_"
                                                                                                                                       "ma"
                                                                                                                                       "p",
                                                                                                                                       1157627904,
                                                                                                                                       293601280) "," EVENT("alloc",
                                                                                                                                                            1157627904,
                                                                                                                                                            293601280))),
        VRAM_EXACT_EQUAL);
}

// A released segment and a later one at its address are two: the later one's age says nothing about the first.
static void an_address_has_two_segments_of_two_ages(void **state) {
    (void)state;
#define FREED(address) EVENT("free_requested", address, 12582912) "," EVENT("free_completed", address, 12582912)
#define SEGMENT_AT(address, used)                                                                                                          \
    "{\"device\":0,\"address\":" #address                                                                                                  \
    ",\"total_size\":12582912,\"stream\":0,\"segment_type\":\"large\",\"blocks\":[" BLOCK(address, 12582912, used) "]}"
    assert_int_equal(
        verdict_of_string("{\"segments\":[" SEGMENT_AT(67108864, "active_allocated") "," SEGMENT_AT(134217728, "inactive") "]," TRACE(
            EVENT("alloc", 134217728, 12582912) "," // the older one
            EVENT("alloc", 67108864, 12582912) "," FREED(134217728) "," EVENT("segment_free", 134217728, 12582912) "," EVENT(
                "segment_alloc", 134217728,
                12582912) "," EVENT("alloc", 134217728,
                                    12582912) "," FREED(67108864) "," FREED(134217728) "," EVENT("alloc", 67108864,
                                                                                                 12582912))), // now this is the older one
        VRAM_EXACT_EQUAL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whole_histories_are_exact),
        cmocka_unit_test(cut_histories_of_small_blocks_are_exact),
        cmocka_unit_test(cut_histories_are_exact_wherever_segments_lie),
        cmocka_unit_test(cut_histories_of_large_blocks_are_placed),
        cmocka_unit_test(histories_with_ooms_are_exact),
        cmocka_unit_test(full_devices_with_expandable_segments_are_exact),
        cmocka_unit_test(parts_of_private_pools_are_exact),
        cmocka_unit_test(whole_pools_without_live_blocks_are_exact),
        cmocka_unit_test(full_devices_with_pools_are_exact),
        cmocka_unit_test(searches_before_a_release_are_exact),
        cmocka_unit_test(options_beyond_pytorch_are_exact),
        cmocka_unit_test(used_up_reservations_are_exact),
        cmocka_unit_test(ranges_off_each_others_pages_are_of_two_reservations),
        cmocka_unit_test(ranges_on_each_others_pages_are_of_one_reservation),
        cmocka_unit_test(reservations_that_ended_bound_none),
        cmocka_unit_test(an_address_has_two_segments_of_two_ages),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
