// test_replay.c: recordings made by ourselves, replayed; and what must be told of recordings that lie.
#include "support/expect.h"

#include <stdio.h>

#include "model/recording.h"
#include "replay/selfmade.h"
#include "support/apart.h"
#include "support/random.h"
#include "vram/replay.h"

static const char *const confs[] = {
    "",
    "expandable_segments:True",
    "max_split_size_mb:32",
    "roundup_power2_divisions:4",
    "expandable_segments:True,roundup_power2_divisions:8",
    "expandable_segments:True,max_split_size_mb:32",
    "max_split_size_mb:64,roundup_power2_divisions:4",
    "large_segment_size_mb:32",
    "expandable_segments:True,large_segment_size_mb:32,max_split_size_mb:48",
    "expandable_segments:True,release_lock_on_cudamalloc:True",
    "expandable_segments:True,large_segment_size_mb:11", // pages of 12 MiB
    "expandable_segments:True,large_segment_size_mb:25,max_split_size_mb:48",
};

static struct vram_recording *read_text(const struct vr_text *json) {
    struct vram_recording *recording = NULL;
    struct vram_error error = {0};
    if (vram_recording_read_memory(json->bytes, json->length, "test", &recording, &error) != VRAM_OK) fail_msg("%s", error.message);
    return recording;
}

static struct vram_recording *read_string(const char *json) {
    const struct vr_text text = {.bytes = (char *)(uintptr_t)json, .length = strlen(json)};
    return read_text(&text);
}

static struct vram_recording *recording_of(const struct selfmade *made, size_t cut) {
    struct vr_text json = {0};
    selfmade_json(made, cut, &json);
    struct vram_recording *recording = read_text(&json);
    vr_text_release(&json);
    return recording;
}

static bool to_stderr(void *user, const char *bytes, size_t length) {
    (void)user;
    return fwrite(bytes, 1, length, stderr) == length;
}

static struct vram_exact_result *exact(const struct vram_recording *recording) {
    struct vram_exact_result *result = NULL;
    struct vram_error error = {0};
    if (vram_replay_exact(recording, NULL, &result, &error) != VRAM_OK) fail_msg("%s", error.message);
    return result;
}

static enum vram_exact_verdict verdict_of(const char *json) {
    struct vram_recording *recording = read_string(json);
    struct vram_exact_result *result = exact(recording);
    assert_int_equal(result->device_count, 1);
    const enum vram_exact_verdict verdict = result->devices[0].verdict;
    vram_exact_result_destroy(result);
    vram_recording_destroy(recording);
    return verdict;
}

// --- what we record is what we replay -----------------------------------------------------------------------------------------
// How many ages of segments it took.
static uint64_t replay_from(const struct selfmade *made, size_t cut, uint64_t seed) {
    struct vram_recording *recording = recording_of(made, cut);
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
    for (size_t c = 0; c < VR_COUNT_OF(confs); c++) {
        for (uint64_t seed = 1; seed <= 6; seed++) {
            struct selfmade made;
            const struct selfmade_options options = {.conf = confs[c],
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

// The start state has to be found by undoing what is left.
static void cut_histories_of_small_blocks_are_exact(void **state) {
    (void)state;
    replay_selfmade(80 * VR_GIB, true, 6);
}

// Real drivers give addresses that went back again, and new ones above or below the others. How old a segment was that the history began
// with no recording says, nor where a reservation began or ended.
static void cut_histories_are_exact_wherever_segments_lie(void **state) {
    (void)state;
    static const enum vram_sim_addresses addresses[] = {VRAM_SIM_FALLING, VRAM_SIM_REUSE, VRAM_SIM_DRIVER, VRAM_SIM_WINDOWS};
    uint64_t inferred = 0;
    for (size_t play = 0; play < 4 * VR_COUNT_OF(addresses) * VR_COUNT_OF(confs); play++) {
        struct selfmade made;
        const struct selfmade_options options = {.conf = confs[play % VR_COUNT_OF(confs)],
                                                 .seed = 300 + play,
                                                 .memory_bytes = play % 3 == 0 ? 400 * VR_MIB : 80 * VR_GIB,
                                                 .operations = 1200,
                                                 .streams = 1 + (unsigned)(play % 3),
                                                 .small_sizes = true,
                                                 .addresses = addresses[play / VR_COUNT_OF(confs) % VR_COUNT_OF(addresses)]};
        selfmade_run(&made, &options);
        for (size_t part = 1; part <= 4; part++) inferred += replay_from(&made, made.count * part / 5, options.seed);
        selfmade_release(&made);
    }
    assert_true(inferred > 100);
}

// Blocks of the large pool may be up to 1 MiB longer than asked for; where neither a neighbour nor the final picture tells, the
// shortest is assumed. That can only show in the picture of what the history frees, so placements agree all the same.
static void cut_histories_of_large_blocks_are_placed(void **state) {
    (void)state;
    uint64_t allocations = 0, placed = 0;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        struct selfmade made;
        const struct selfmade_options options = {
            .conf = "", .seed = seed, .memory_bytes = 80 * VR_GIB, .operations = 1500, .streams = 1 + (unsigned)(seed % 3)};
        selfmade_run(&made, &options);
        struct vram_recording *recording = recording_of(&made, made.count / 3);
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
        struct vram_recording *recording = recording_of(&made, 0);
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

// --- what differs is found ---------------------------------------------------------------------------------------------------
static const struct selfmade_options plain = {.conf = "", .seed = 7, .memory_bytes = 80 * VR_GIB, .operations = 1500, .streams = 2};

// Where the pages of a nearly full device come and go, a free block at the end of an expandable segment competes with one before a hole:
// which has more room to grow depends on the device's memory, which the history tells where it ran out.
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

// A request in need gives back a part of its own private pool's cache; a pool that ends, all of it.
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

// Pools that do not split show it in the history alone: every block begins a segment, and some segments would have been split.
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

// A failing request reserves address space by what room the free blocks of its segment leave: they are not to be held out of its way.
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

// With max_split_size_mb a request searches the cache, fails, has a part or all of the cache given back, and does not search again: pieces
// of a large free block whose other pages were unmapped would serve it now. What goes back first is the request's own pool's.
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

// Segments that change streams go and come in the history; and the whole cache has that of pools that are held.
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

// A request that its reservation has no room for fails on a new one; what is mapped next may be in the old one all the same. How long
// reservations are stands in the settings, follows from an out of memory, or from where the program reserved another.
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

// What begins off the pages of the range before it is of another reservation. The one before ends with its last page, which does not reach
// it.
static void ranges_off_each_others_pages_are_of_two_reservations(void **state) {
    (void)state;
    assert_int_equal(
        verdict_of("{\"segments\": [{\"device\": 0, \"address\": 1073741824, \"total_size\": 104857600, \"stream\": 0, "
                   "\"segment_type\": \"large\", \"is_expandable\": true,"
                   " \"blocks\": [{\"size\": 104857600, \"requested_size\": 104857600, \"state\": \"active_allocated\"}]},"
                   "{\"device\": 0, \"address\": 3263168512, \"total_size\": 20971520, \"stream\": 0, " // 2,088 MiB behind it
                   "\"segment_type\": \"large\", \"is_expandable\": true,"
                   " \"blocks\": [{\"size\": 12582912, \"requested_size\": 12582912, \"state\": \"active_allocated\"},"
                   " {\"size\": 8388608, \"requested_size\": 0, \"state\": \"inactive\"}]}],"
                   "\"device_traces\": [[{\"action\": \"alloc\", \"addr\": 3263168512, \"size\": 12582912, \"stream\": 0}]],"
                   "\"allocator_settings\": {\"PYTORCH_CUDA_ALLOC_CONF\": \"expandable_segments:True,expandable_segments_reserve:0.2\"}}"),
        VRAM_EXACT_EQUAL);
}

// Where segments come at falling addresses the rules differ. Pool ids of events are keys of about 2.12 and later.
static void rules_are_inferred(void **state) {
    (void)state;
    static const struct {
        const char *played;
        bool pool_ids;
        const char *pytorch;
        enum vram_rules_source source;
    } rows[] = {
        {"pytorch:2.6", false, "2.6", VRAM_RULES_BY_KEYS},
        {"pytorch:2.6", true, "2.11", VRAM_RULES_BY_EVENTS},
        {"pytorch:2.12", true, "2.12", VRAM_RULES_BY_EVENTS},
        {"", false, "2.15", VRAM_RULES_BY_EVENTS},
        {"", true, "2.15", VRAM_RULES_BY_KEYS},
    };
    for (size_t i = 0; i < VR_COUNT_OF(rows); i++) {
        for (int addresses = 0; addresses < 2; addresses++) {
            struct selfmade made;
            const struct selfmade_options options = {.conf = rows[i].played,
                                                     .seed = 11,
                                                     .memory_bytes = 80 * VR_GIB,
                                                     .operations = 3000,
                                                     .streams = 1,
                                                     .addresses = addresses == 0 ? VRAM_SIM_FALLING : VRAM_SIM_REUSE};
            selfmade_run(&made, &options);
            made.conf = ""; // recordings tell no version
            made.events_without_pools = !rows[i].pool_ids;
            struct vram_recording *recording = recording_of(&made, 0);
            struct vram_exact_result *result = exact(recording);
            assert_true(result->agrees);
            assert_string_equal(result->pytorch, rows[i].pytorch);
            assert_int_equal(result->pytorch_by, rows[i].source);
            vram_exact_result_destroy(result);
            const struct vram_exact_options wrong = {.conf = rows[i].played[0] == '\0' ? "pytorch:2.6" : "pytorch:2.13"};
            assert_int_equal(vram_replay_exact(recording, &wrong, &result, NULL), VRAM_OK);
            assert_false(result->agrees);
            assert_true(result->recorded_conf);
            assert_string_equal(result->conf, wrong.conf);
            assert_int_equal(result->pytorch_by, VRAM_RULES_BY_CONF);
            vram_exact_result_destroy(result);
            vram_recording_destroy(recording);
            selfmade_release(&made);
        }
    }
}

// A version alone leaves the recorded settings as they are.
static void a_version_is_added_to_the_settings(void **state) {
    (void)state;
    struct selfmade made;
    struct selfmade_options options = plain;
    options.conf = "expandable_segments:True";
    selfmade_run(&made, &options);
    struct vram_recording *recording = recording_of(&made, 0);
    struct vram_exact_result *result = NULL;
    struct vram_whatif_result *run = NULL;
    const struct vram_exact_options version = {.conf = "pytorch:2.6"};
    assert_int_equal(vram_replay_exact(recording, &version, &result, NULL), VRAM_OK);
    assert_true(result->agrees);
    assert_string_equal(result->conf, "expandable_segments:True,pytorch:2.6");
    assert_string_equal(result->pytorch, "2.6");
    vram_exact_result_destroy(result);
    const struct vram_whatif_options what = {.conf = "pytorch:2.6"};
    assert_int_equal(vram_replay_whatif(recording, &what, &run, NULL), VRAM_OK);
    assert_true(run->recorded_conf);
    assert_string_equal(run->conf, "expandable_segments:True,pytorch:2.6");
    vram_whatif_result_destroy(run);
    vram_recording_destroy(recording);
    selfmade_release(&made);
}

// Ascend's torch_npu gives 32 bytes more than was asked for, rounded up: 1,024 bytes have 1,536.
static void histories_of_npus_are_recognised(void **state) {
    (void)state;
    static const struct {
        const char *played, *recorded, *found;
        uint64_t memory_bytes;
    } rows[] = {
        {"request_padding_bytes:32", "", "request_padding_bytes:32", 80 * VR_GIB},
        {"request_padding_bytes:32", "", "request_padding_bytes:32", 400 * VR_MIB},
        {"expandable_segments:True,request_padding_bytes:32", "expandable_segments:True",
         "expandable_segments:True,request_padding_bytes:32", 80 * VR_GIB},
        {"roundup_power2_divisions:4,request_padding_bytes:32", "roundup_power2_divisions:4", NULL, 80 * VR_GIB},
        {"", "", "", 80 * VR_GIB},
    };
    for (size_t i = 0; i < VR_COUNT_OF(rows); i++) {
        struct selfmade made;
        struct selfmade_options options = plain;
        options.conf = rows[i].played;
        options.memory_bytes = rows[i].memory_bytes;
        selfmade_run(&made, &options);
        made.conf = rows[i].recorded;
        struct vram_recording *recording = recording_of(&made, 0);
        struct vram_exact_result *result = exact(recording);
        assert_true(result->agrees && result->recorded_conf);
        assert_int_equal(result->devices[0].oom_events, made.stats.num_ooms);
        if (rows[i].found != NULL) assert_string_equal(result->conf, rows[i].found);
        vram_exact_result_destroy(result);
        if (i == 0) {
            struct vram_whatif_result *run = NULL;
            assert_int_equal(vram_replay_whatif(recording, NULL, &run, NULL), VRAM_OK);
            assert_int_equal(run->devices[0].peak_allocated_bytes, made.stats.allocated_bytes[VRAM_STAT_ALL].peak);
            vram_whatif_result_destroy(run);
            const struct vram_exact_options cuda = {.conf = ""};
            assert_int_equal(vram_replay_exact(recording, &cuda, &result, NULL), VRAM_OK);
            assert_false(result->agrees);
            vram_exact_result_destroy(result);
        }
        vram_recording_destroy(recording);
        selfmade_release(&made);
    }
}

// The keys of torch.xpu.memory's snapshots are those of torch.cuda's, but that there are fewer; MTIA's are dictionaries like these, too.
static void snapshots_of_other_devices_are_read(void **state) {
    (void)state;
    static const char *const snapshots[] = {
        "{\"segments\":[{\"address\":4194304,\"total_size\":2097152,\"stream\":94550107,\"segment_type\":\"small\","
        "\"allocated_size\":512,\"active_size\":1024,\"blocks\":["
        "{\"size\":512,\"requested_size\":100,\"address\":4194304,\"state\":\"active_allocated\",\"frames\":[]},"
        "{\"size\":512,\"requested_size\":200,\"address\":4194816,\"state\":\"active_awaiting_free\",\"frames\":[]},"
        "{\"size\":2096128,\"requested_size\":0,\"address\":4195328,\"state\":\"inactive\",\"frames\":[]}]}],"
        "\"device_traces\":[[{\"action\":\"segment_alloc\",\"addr\":4194304,\"size\":2097152,\"stream\":94550107,\"frames\":[]},"
        "{\"action\":\"alloc\",\"addr\":4194304,\"size\":100,\"stream\":94550107,\"frames\":[]},"
        "{\"action\":\"alloc\",\"addr\":4194816,\"size\":200,\"stream\":94550107,\"frames\":[]},"
        "{\"action\":\"free_requested\",\"addr\":4194816,\"size\":200,\"stream\":94550107,\"frames\":[]},"
        "{\"action\":\"oom\",\"device_free\":1048576,\"size\":104857600,\"stream\":94550107,\"frames\":[]}]],"
        "\"allocator_settings\":{\"expandable_segments\":false,\"last_allocator_settings\":\"max_split_size_mb:32\"}}",
    };
    for (size_t i = 0; i < VR_COUNT_OF(snapshots); i++) {
        struct vram_recording *recording = read_string(snapshots[i]);
        struct vram_exact_result *result = exact(recording);
        assert_true(result->agrees);
        assert_string_equal(result->conf, "max_split_size_mb:32");
        assert_int_equal(result->devices[0].oom_events_agreeing, 1);
        vram_exact_result_destroy(result);
        vram_recording_destroy(recording);
    }
}

static void expandable_segments_without_settings_are_inferred(void **state) {
    (void)state;
    struct selfmade made;
    struct selfmade_options options = plain;
    options.conf = "expandable_segments:True";
    selfmade_run(&made, &options);
    made.without_settings = true;
    struct vram_recording *recording = recording_of(&made, made.count / 3);
    struct vram_exact_result *result = exact(recording);
    assert_true(result->recorded_conf && result->inferred_conf);
    assert_string_equal(result->conf, "expandable_segments:True");
    assert_true(result->devices[0].allocations > 100);
    assert_int_equal(result->devices[0].at_recorded_address, result->devices[0].allocations);
    vram_exact_result_destroy(result);
    struct vram_whatif_result *run = NULL;
    assert_int_equal(vram_replay_whatif(recording, NULL, &run, NULL), VRAM_OK);
    assert_true(run->recorded_conf && run->inferred_conf);
    assert_string_equal(run->conf, "expandable_segments:True");
    vram_whatif_result_destroy(run);
    // Settings of the caller's say otherwise; those that a recording has are believed.
    const struct vram_exact_options defaults = {.conf = ""};
    assert_int_equal(vram_replay_exact(recording, &defaults, &result, NULL), VRAM_OK);
    assert_false(result->agrees || result->recorded_conf || result->inferred_conf);
    vram_exact_result_destroy(result);
    const struct vram_exact_options wrong = {.conf = "nonsense"};
    assert_int_equal(vram_replay_exact(recording, &wrong, &result, NULL), VRAM_BAD_OPTION);
    vram_recording_destroy(recording);
    made.without_settings = false;
    recording = recording_of(&made, 0);
    result = exact(recording);
    assert_true(result->agrees && result->recorded_conf && !result->inferred_conf);
    vram_exact_result_destroy(result);
    vram_recording_destroy(recording);
    selfmade_release(&made);
}

static void other_settings_differ(void **state) {
    (void)state;
    static const char *const wrong[] = {"roundup_power2_divisions:4", "expandable_segments:True", "large_segment_size_mb:32"};
    struct selfmade made;
    selfmade_run(&made, &plain);
    for (size_t i = 0; i < VR_COUNT_OF(wrong); i++) {
        made.conf = wrong[i];
        struct vram_recording *recording = recording_of(&made, 0);
        struct vram_exact_result *result = exact(recording);
        assert_int_equal(result->devices[0].verdict, VRAM_EXACT_DIFFERENT);
        assert_false(result->agrees);
        assert_true(result->devices[0].difference_count > 0);
        assert_true(result->devices[0].differences_kept > 0 && result->devices[0].differences_kept <= 16);
        vram_exact_result_destroy(result);
        vram_recording_destroy(recording);
    }
    selfmade_release(&made);
}

// Two releases change places: placements stay as they are, the order does not.
static void order_of_releases_differs(void **state) {
    (void)state;
    struct selfmade made;
    selfmade_run(&made, &plain);
    size_t at = 0;
    while (at + 1 < made.count &&
           (made.records[at].action != VR_RECORD_SEGMENT_FREE || made.records[at + 1].action != VR_RECORD_SEGMENT_FREE))
        at++;
    assert_true(at + 1 < made.count);
    const struct vr_record swapped = made.records[at];
    made.records[at] = made.records[at + 1];
    made.records[at + 1] = swapped;
    struct vram_recording *recording = recording_of(&made, 0);
    struct vram_exact_result *result = exact(recording);
    assert_int_equal(result->devices[0].verdict, VRAM_EXACT_DIFFERENT);
    assert_int_equal(result->devices[0].at_recorded_address, result->devices[0].allocations);
    assert_int_equal(result->devices[0].releases - result->devices[0].releases_agreeing, 2);
    assert_int_equal(result->devices[0].differences[0].kind, VRAM_DIFFERENT_RELEASE);
    assert_int_equal(result->devices[0].differences[0].event_index, at);
    vram_exact_result_destroy(result);
    vram_recording_destroy(recording);
    selfmade_release(&made);
}

#define SEGMENT(blocks)                                                                                                                    \
    "{\"segments\":[{\"device\":0,\"address\":4194304,\"total_size\":2097152,\"stream\":0,\"segment_type\":\"small\",\"blocks\":[" blocks  \
    "]}],"
#define BLOCK(address, size, state) "{\"address\":" #address ",\"size\":" #size ",\"requested_size\":" #size ",\"state\":\"" state "\"}"
#define TRACE(events)               "\"device_traces\":[[" events "]]}"
#define EVENT(name, address, size)  "{\"action\":\"" name "\",\"addr\":" #address ",\"size\":" #size ",\"stream\":0}"
#define WHOLE_FREE                  BLOCK(4194304, 2097152, "inactive")
#define ONE_USED                    BLOCK(4194304, 1024, "active_allocated") "," BLOCK(4195328, 2096128, "inactive")

static void one_block_of_the_picture_differs(void **state) {
    (void)state;
    assert_int_equal(verdict_of(SEGMENT(ONE_USED) TRACE(EVENT("segment_alloc", 4194304, 2097152) "," EVENT("alloc", 4194304, 1024))),
                     VRAM_EXACT_EQUAL);
    assert_int_equal(verdict_of(SEGMENT(WHOLE_FREE) TRACE("")), VRAM_EXACT_NO_HISTORY);
    // 1,000 bytes make a block of 1,024: one of 1,536 is another allocator's.
    assert_int_equal(verdict_of(SEGMENT(BLOCK(4194304, 1536, "active_allocated") "," BLOCK(4195840, 2095616, "inactive"))
                                    TRACE(EVENT("segment_alloc", 4194304, 2097152) "," EVENT("alloc", 4194304, 1000))),
                     VRAM_EXACT_DIFFERENT);
    // A free block cut in two.
    assert_int_equal(verdict_of(SEGMENT(BLOCK(4194304, 1048576, "inactive") "," BLOCK(5242880, 1048576, "inactive")) TRACE("")),
                     VRAM_EXACT_DIFFERENT);
}

// The segment comes without its request / the request without its segment / another size.
static void segments_that_differ(void **state) {
    (void)state;
    assert_int_equal(verdict_of(SEGMENT(WHOLE_FREE) TRACE(EVENT("segment_alloc", 4194304, 2097152))), VRAM_EXACT_EQUAL);
    assert_int_equal(verdict_of(SEGMENT(ONE_USED) TRACE(EVENT("alloc", 4194304, 1024))), VRAM_EXACT_EQUAL);
    // A cached segment would have served the second allocation.
    assert_int_equal(
        verdict_of(
            "{\"segments\":["
            "{\"device\":0,\"address\":4194304,\"total_size\":2097152,\"stream\":0,\"segment_type\":\"small\",\"blocks\":[" ONE_USED "]},"
            "{\"device\":0,\"address\":8388608,\"total_size\":2097152,\"stream\":0,\"segment_type\":\"small\",\"blocks\":[" BLOCK(
                8388608, 512, "active_allocated") "," BLOCK(8389120, 2096640,
                                                            "inactive") "]}]," TRACE(EVENT("segment_alloc", 8388608,
                                                                                           2097152) "," EVENT("alloc", 8388608, 512))),
        VRAM_EXACT_DIFFERENT);
}

// With release_lock_on_cudamalloc another thread's events may stand between a segment and the allocation it was made for.
static void events_of_other_threads_stand_between(void **state) {
    (void)state;
#define TWO_SEGMENTS                                                                                                                       \
    "{\"segments\":[{\"device\":0,\"address\":4194304,\"total_size\":2097152,\"stream\":0,\"segment_type\":\"small\",\"blocks\":"          \
    "[" WHOLE_FREE "]},"                                                                                                                   \
    "{\"device\":0,\"address\":33554432,\"total_size\":20971520,\"stream\":0,\"segment_type\":\"large\",\"blocks\":[" BLOCK(               \
        33554432, 1572864, "active_allocated") "," BLOCK(35127296, 19398656, "inactive") "]}],"
#define BETWEEN                                                                                                                            \
    EVENT("segment_alloc", 33554432, 20971520)                                                                                             \
    "," EVENT("free_requested", 4194304, 1024) "," EVENT("free_completed", 4194304, 1024) "," EVENT("alloc", 33554432, 1572864)
    assert_int_equal(verdict_of(TWO_SEGMENTS "\"allocator_settings\":{\"release_lock_on_cudamalloc\":true}," TRACE(BETWEEN)),
                     VRAM_EXACT_EQUAL);
}

// --- histories that cannot be -------------------------------------------------------------------------------------------------
static void contradictions_are_told(void **state) {
    (void)state;
    static const char *const histories[] = {
        SEGMENT(WHOLE_FREE) TRACE(EVENT("alloc", 4194304, 1024)),             // neither freed nor there
        SEGMENT(ONE_USED) TRACE(EVENT("free_completed", 4194304, 1024)),      // freed but there
        SEGMENT(ONE_USED) TRACE(EVENT("free_requested", 4194304, 1024)),      // the same
        SEGMENT(WHOLE_FREE) TRACE(EVENT("segment_alloc", 16777216, 2097152)), // a segment that vanished
        SEGMENT(WHOLE_FREE) TRACE(EVENT("segment_alloc", 4194304, 20971520)), // of another size
        SEGMENT(WHOLE_FREE) TRACE(EVENT("segment_free", 4194304, 2097152)),   // given back but there
        SEGMENT(WHOLE_FREE) TRACE(EVENT("segment_map", 4194304, 2097152)),    // mapped but not expandable
        SEGMENT(ONE_USED) TRACE(EVENT("free_requested", 4194816, 512) "," EVENT("free_completed", 4194816, 512)), // inside another block
        SEGMENT(WHOLE_FREE) TRACE(EVENT("free_requested", 512, 512) "," EVENT("free_completed", 512, 512)),       // outside all
        SEGMENT(WHOLE_FREE) TRACE(EVENT("alloc", 512, 512) "," EVENT("free_requested", 512, 512) "," EVENT("free_completed", 512, 512)),
        SEGMENT(BLOCK(4194304, 4194304, "active_allocated")) TRACE(""), // longer than its segment
        "{\"segments\":[{\"device\":0,\"address\":4194304,\"total_size\":20971520,\"stream\":0,\"segment_type\":\"large\",\"blocks\":"
        "[" BLOCK(4194304, 512, "active_allocated") "]}]," TRACE(""), // too small for the large pool
        SEGMENT(BLOCK(4194304, 1000, "active_allocated")) TRACE(""),  // no size a block can have
    };
    for (size_t i = 0; i < VR_COUNT_OF(histories); i++) {
        struct vram_recording *recording = read_string(histories[i]);
        struct vram_exact_result *result = exact(recording);
        if (result->devices[0].verdict != VRAM_EXACT_CONTRADICTION)
            fail_msg("history %zu: %s", i, vram_exact_verdict_name(result->devices[0].verdict));
        assert_false(result->agrees);
        assert_true(strlen(result->devices[0].reason) > 20);
        vram_exact_result_destroy(result);
        struct vram_whatif_result *run = NULL;
        assert_int_equal(vram_replay_whatif(recording, NULL, &run, NULL), VRAM_OK);
        assert_false(run->finished);
        vram_whatif_result_destroy(run);
        vram_recording_destroy(recording);
    }
}

static void a_private_pool_without_ids_on_events(void **state) {
    (void)state;
    struct vram_recording *recording =
        read_string("{\"segments\":[{\"device\":0,\"address\":4194304,\"total_size\":2097152,\"stream\":0,\"segment_type\":\"small\","
                    "\"segment_pool_id\":[1,0],"
                    "\"blocks\":[" ONE_USED "]}]," TRACE(EVENT("segment_alloc", 4194304, 2097152) "," EVENT("alloc", 4194304, 1024)));
    struct vram_exact_result *result = exact(recording);
    assert_int_equal(result->devices[0].verdict, VRAM_EXACT_EQUAL);
    assert_int_equal(result->devices[0].private_allocations, 1);
    assert_int_equal(result->devices[0].allocations, 1);
    assert_true(result->agrees);
    vram_exact_result_destroy(result);
    vram_recording_destroy(recording);
}

// --- what if --------------------------------------------------------------------------------------------------------------------
static struct vram_whatif_result *whatif(const struct vram_recording *recording, const struct vram_whatif_options *options) {
    struct vram_whatif_result *result = NULL;
    struct vram_error error = {0};
    if (vram_replay_whatif(recording, options, &result, &error) != VRAM_OK) fail_msg("%s", error.message);
    assert_int_equal(result->device_count, 1);
    return result;
}

// With the settings it ran with, a program needs what it needed.
static void own_settings_give_own_peaks(void **state) {
    (void)state;
    for (size_t c = 0; c < VR_COUNT_OF(confs); c++) {
        struct selfmade made;
        struct selfmade_options options = plain;
        options.conf = confs[c];
        selfmade_run(&made, &options);
        struct vram_recording *recording = recording_of(&made, 0);
        for (int start = 0; start < 2; start++) {
            const struct vram_whatif_options run = {.start = start == 0 ? VRAM_WHATIF_COLD : VRAM_WHATIF_RECORDED};
            struct vram_whatif_result *result = whatif(recording, &run);
            assert_true(result->finished && result->recorded_conf);
            assert_int_equal(result->devices[0].peak_reserved_bytes, made.stats.reserved_bytes[VRAM_STAT_ALL].peak);
            assert_int_equal(result->devices[0].peak_allocated_bytes, made.stats.allocated_bytes[VRAM_STAT_ALL].peak);
            assert_int_equal(result->devices[0].peak_active_bytes, made.stats.active_bytes[VRAM_STAT_ALL].peak);
            assert_int_equal(result->devices[0].final_reserved_bytes, made.stats.reserved_bytes[VRAM_STAT_ALL].current);
            vram_whatif_result_destroy(result);
        }
        vram_recording_destroy(recording);
        selfmade_release(&made);
    }
}

// A recording has the settings of its end: what came about by others is no difference of the allocator's.
static void settings_that_changed_are_told(void **state) {
    (void)state;
    static const struct {
        const char *json;
        const char *reason; // NULL: there is no proof, so that it differs
    } rows[] = {
        {"{\"segments\": [" // an ordinary segment of 20 MiB beside a range of 20 MiB, which has a block that was split by the other rule
         "{\"device\": 0, \"address\": 1073741824, \"total_size\": 20971520, \"stream\": 0, \"segment_type\": \"large\", "
         "\"is_expandable\": false,"
         " \"blocks\": [{\"size\": 20971520, \"requested_size\": 20971520, \"state\": \"active_allocated\"}]},"
         "{\"device\": 0, \"address\": 2147483648, \"total_size\": 20971520, \"stream\": 0, \"segment_type\": \"large\", "
         "\"is_expandable\": true,"
         " \"blocks\": [{\"size\": 20971520, \"requested_size\": 0, \"state\": \"inactive\"}]}],"
         "\"device_traces\": [[{\"action\": \"segment_alloc\", \"addr\": 1073741824, \"size\": 20971520, \"stream\": 0},"
         " {\"action\": \"alloc\", \"addr\": 1073741824, \"size\": 20971520, \"stream\": 0}]],"
         "\"allocator_settings\": {\"PYTORCH_CUDA_ALLOC_CONF\": \"expandable_segments:True\", \"expandable_segments\": true}}",
         "ordinary segments and expandable ones"},
        {"{\"segments\": [{\"device\": 0, \"address\": 1073741824, \"total_size\": 2097152, \"stream\": 0, \"segment_type\": \"small\","
         " \"blocks\": [{\"size\": 2048, \"requested_size\": 1200, \"state\": \"active_allocated\"},"
         " {\"size\": 2095104, \"requested_size\": 0, \"state\": \"inactive\"}]}],"
         "\"device_traces\": [[{\"action\": \"segment_alloc\", \"addr\": 1073741824, \"size\": 2097152, \"stream\": 0},"
         " {\"action\": \"alloc\", \"addr\": 1073741824, \"size\": 1200, \"stream\": 0}]],"
         "\"allocator_settings\": {\"PYTORCH_CUDA_ALLOC_CONF\": \"\"}}",
         NULL},
        {"{\"segments\": [{\"device\": 0, \"address\": 1073741824, \"total_size\": 4194304, \"stream\": 0, \"segment_type\": \"small\","
         " \"blocks\": [{\"size\": 1536, \"requested_size\": 1200, \"state\": \"active_allocated\"},"
         " {\"size\": 4192768, \"requested_size\": 0, \"state\": \"inactive\"}]}],"
         "\"device_traces\": [[{\"action\": \"segment_alloc\", \"addr\": 1073741824, \"size\": 4194304, \"stream\": 0},"
         " {\"action\": \"alloc\", \"addr\": 1073741824, \"size\": 1200, \"stream\": 0}]],"
         "\"allocator_settings\": {\"PYTORCH_CUDA_ALLOC_CONF\": \"\"}}",
         NULL},
    };
    for (size_t i = 0; i < VR_COUNT_OF(rows); i++) {
        struct vram_recording *recording = read_string(rows[i].json);
        struct vram_exact_result *result = exact(recording);
        assert_false(result->agrees);
        assert_int_equal(result->devices[0].verdict, rows[i].reason == NULL ? VRAM_EXACT_DIFFERENT : VRAM_EXACT_UNTOLD);
        assert_true(rows[i].reason == NULL || strstr(result->devices[0].reason, rows[i].reason) != NULL);
        vram_exact_result_destroy(result);
        vram_recording_destroy(recording);
    }
}

static uint64_t calls_of(const struct vram_whatif_device *device, const char *name) {
    for (size_t i = 0; i < device->call_count; i++) {
        if (strcmp(device->calls[i].name, name) == 0) return device->calls[i].count;
    }
    return 0;
}

static void less_memory_runs_out_at_the_right_event(void **state) {
    (void)state;
    struct selfmade made;
    struct selfmade_options options = plain;
    options.streams = 1;
    selfmade_run(&made, &options);
    struct vram_recording *recording = recording_of(&made, 0);
    struct vram_whatif_result *unlimited = whatif(recording, NULL);
    const uint64_t active = unlimited->devices[0].peak_active_bytes;
    assert_true(calls_of(&unlimited->devices[0], "cuMemAlloc") > 0);
    assert_true(unlimited->devices[0].driver_time_ns > 0);

    // Less than what is in use at the peak: it must fail, and with the whole cache released.
    const struct vram_whatif_options tight = {.memory_bytes = active - VR_MIB};
    struct vram_whatif_result *result = whatif(recording, &tight);
    assert_false(result->finished);
    assert_true(result->devices[0].out_of_memory);
    assert_int_equal(made.records[result->devices[0].oom_event].action, VR_RECORD_ALLOC);
    assert_int_equal(result->devices[0].oom.requested_bytes, made.records[result->devices[0].oom_event].size_bytes);
    assert_int_equal(result->devices[0].events, result->devices[0].oom_event + 1);
    assert_true(result->devices[0].peak_reserved_bytes <= tight.memory_bytes);
    assert_true(result->devices[0].retries > 0);
    vram_whatif_result_destroy(result);

    // As much as was reserved at the peak: it must not.
    const struct vram_whatif_options enough = {.memory_bytes = unlimited->devices[0].peak_reserved_bytes};
    result = whatif(recording, &enough);
    assert_true(result->finished);
    assert_int_equal(result->devices[0].retries, 0);
    vram_whatif_result_destroy(result);
    vram_whatif_result_destroy(unlimited);
    vram_recording_destroy(recording);
    selfmade_release(&made);
}

// The request that failed in the recorded program is tried where the memory is given.
static void a_recorded_oom_is_tried_again(void **state) {
    (void)state;
    struct vram_recording *recording =
        read_string(SEGMENT(WHOLE_FREE) TRACE("{\"action\":\"oom\",\"device_free\":1048576,\"size\":104857600,\"stream\":0}"));
    static const uint64_t memories[] = {0, 64 * VR_MIB, 128 * VR_MIB};
    for (size_t i = 0; i < VR_COUNT_OF(memories); i++) {
        const struct vram_whatif_options options = {.memory_bytes = memories[i]};
        struct vram_whatif_result *result = whatif(recording, &options);
        assert_int_equal(result->devices[0].recorded_ooms, 1);
        assert_int_equal(result->devices[0].recorded_ooms_served, memories[i] == 128 * VR_MIB);
        assert_int_equal(result->devices[0].out_of_memory, memories[i] == 64 * VR_MIB);
        assert_int_equal(result->devices[0].peak_reserved_bytes, memories[i] == 128 * VR_MIB ? 100 * VR_MIB : 0);
        vram_whatif_result_destroy(result);
    }
    vram_recording_destroy(recording);
}

static void a_start_that_does_not_fit(void **state) {
    (void)state;
    struct vram_recording *recording = read_string(SEGMENT(ONE_USED) TRACE(
        EVENT("alloc", 4195328, 512) "," EVENT("free_requested", 4195328, 512) "," EVENT("free_completed", 4195328, 512)));
    for (int start = 0; start < 2; start++) {
        const struct vram_whatif_options options = {.start = start == 0 ? VRAM_WHATIF_COLD : VRAM_WHATIF_RECORDED, .memory_bytes = VR_MIB};
        struct vram_whatif_result *result = whatif(recording, &options);
        assert_true(result->devices[0].out_of_memory);
        assert_int_equal(result->devices[0].oom_event, VRAM_NO_OFFSET);
        assert_int_equal(result->devices[0].events, 0);
        vram_whatif_result_destroy(result);
    }
    vram_recording_destroy(recording);
}

static void wrong_options_are_refused(void **state) {
    (void)state;
    struct vram_recording *recording = read_string(SEGMENT(WHOLE_FREE) TRACE(""));
    struct vram_whatif_result *result = NULL;
    struct vram_exact_result *exact_result = NULL;
    struct vram_error error = {0};
    const struct vram_whatif_options options = {.conf = "expandable_segment:True"};
    assert_int_equal(vram_replay_whatif(recording, &options, &result, &error), VRAM_BAD_OPTION);
    assert_true(strlen(error.message) > 0);
    assert_null(result);
    assert_int_equal(vram_replay_whatif(NULL, NULL, &result, &error), VRAM_INVALID_ARGUMENT);
    assert_int_equal(vram_replay_exact(NULL, NULL, &exact_result, NULL), VRAM_INVALID_ARGUMENT);
    assert_int_equal(vram_replay_exact(recording, NULL, NULL, NULL), VRAM_INVALID_ARGUMENT);
    vram_recording_destroy(recording);
}

// --- strangers -------------------------------------------------------------------------------------------------------------------
static uint64_t random_state;
static uint64_t random_below(uint64_t bound) { return vr_random_below(&random_state, bound); }

// One value of the history becomes another: a neighbour's, a little more or less, or anything at all.
static void damage(struct vr_history *history) {
    const size_t at = random_below(history->count), from = random_below(history->count);
    const uint64_t wild = random_below(4) == 0 ? vr_mix64(random_state) : (uint64_t)1 << random_below(64);
    const uint64_t near = 512 * (random_below(9) - 4);
    switch (random_below(8)) {
    case 0: history->action[at] = (uint8_t)random_below(VR_ACTION_COUNT); break;
    case 1: history->address[at] = history->address[from]; break;
    case 2: history->address[at] += near; break;
    case 3: history->address[at] = wild; break;
    case 4: history->size_bytes[at] = history->size_bytes[from]; break;
    case 5: history->size_bytes[at] += near; break;
    case 6: history->size_bytes[at] = wild; break;
    default: set_stream(history, at, random_below(2) == 0 ? wild : vr_entry_stream(history, from)); break;
    }
}

static void damaged_histories_do_no_harm(void **state) {
    (void)state;
    unsigned different = 0, contradictions = 0;
    for (uint64_t seed = 1; seed <= 400; seed++) {
        struct selfmade made;
        random_state = seed;
        const struct selfmade_options options = {.conf = confs[seed % VR_COUNT_OF(confs)],
                                                 .seed = seed,
                                                 .memory_bytes = 80 * VR_GIB,
                                                 .operations = 200,
                                                 .streams = 2,
                                                 .small_sizes = seed % 2 == 0};
        selfmade_run(&made, &options);
        struct vram_recording *recording = recording_of(&made, seed % 5 == 0 ? made.count / 2 : 0);
        open_apart(&recording->model.histories[0]);
        for (uint64_t i = 0; i <= seed % 4; i++) damage(&recording->model.histories[0]);
        struct vram_exact_result *result = exact(recording);
        different += result->devices[0].verdict == VRAM_EXACT_DIFFERENT;
        contradictions += result->devices[0].verdict == VRAM_EXACT_CONTRADICTION;
        vram_exact_result_destroy(result);
        for (int start = 0; start < 2; start++) {
            struct vram_whatif_result *run = NULL;
            struct vram_error error = {0};
            const struct vram_whatif_options what = {.start = start == 0 ? VRAM_WHATIF_COLD : VRAM_WHATIF_RECORDED,
                                                     .memory_bytes = seed % 3 == 0 ? VR_GIB : 0};
            if (vram_replay_whatif(recording, &what, &run, &error) != VRAM_OK)
                fail_msg("seed %llu: %s", (unsigned long long)seed, error.message);
            vram_whatif_result_destroy(run);
        }
        vram_recording_destroy(recording);
        selfmade_release(&made);
    }
    // Most damage is noticed; some changes nothing (the size of a snapshot event, a neighbour's equal size).
    assert_true(different > 20);
    assert_true(contradictions > 150);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whole_histories_are_exact),
        cmocka_unit_test(cut_histories_of_small_blocks_are_exact),
        cmocka_unit_test(cut_histories_are_exact_wherever_segments_lie),
        cmocka_unit_test(cut_histories_of_large_blocks_are_placed),
        cmocka_unit_test(histories_with_ooms_are_exact),
        cmocka_unit_test(full_devices_with_expandable_segments_are_exact),
        cmocka_unit_test(full_devices_with_pools_are_exact),
        cmocka_unit_test(parts_of_private_pools_are_exact),
        cmocka_unit_test(whole_pools_without_live_blocks_are_exact),
        cmocka_unit_test(searches_before_a_release_are_exact),
        cmocka_unit_test(options_beyond_pytorch_are_exact),
        cmocka_unit_test(used_up_reservations_are_exact),
        cmocka_unit_test(ranges_off_each_others_pages_are_of_two_reservations),
        cmocka_unit_test(rules_are_inferred),
        cmocka_unit_test(a_version_is_added_to_the_settings),
        cmocka_unit_test(histories_of_npus_are_recognised),
        cmocka_unit_test(snapshots_of_other_devices_are_read),
        cmocka_unit_test(expandable_segments_without_settings_are_inferred),
        cmocka_unit_test(other_settings_differ),
        cmocka_unit_test(order_of_releases_differs),
        cmocka_unit_test(one_block_of_the_picture_differs),
        cmocka_unit_test(segments_that_differ),
        cmocka_unit_test(events_of_other_threads_stand_between),
        cmocka_unit_test(contradictions_are_told),
        cmocka_unit_test(settings_that_changed_are_told),
        cmocka_unit_test(a_private_pool_without_ids_on_events),
        cmocka_unit_test(own_settings_give_own_peaks),
        cmocka_unit_test(less_memory_runs_out_at_the_right_event),
        cmocka_unit_test(a_recorded_oom_is_tried_again),
        cmocka_unit_test(a_start_that_does_not_fit),
        cmocka_unit_test(wrong_options_are_refused),
        cmocka_unit_test(damaged_histories_do_no_harm),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
