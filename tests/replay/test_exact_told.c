// test_exact_told.c: tests what an exact replay reports about recordings that follow other rules, differ, are inconsistent or damaged.
#include "replay/replaying.h"
#include "replay/selfmade.h"

#include "model/recording.h"
#include "support/apart.h"
#include "support/random.h"
#include "vram/sim.h"

// If segments come at decreasing addresses, the rules differ. Events have pool ids since about 2.12.
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
            made.conf = ""; // recordings do not contain a version
            made.events_without_pools = !rows[i].pool_ids;
            struct vram_recording *recording = selfmade_recording(&made, 0);
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

// Setting only a version keeps the recorded settings.
static void a_version_is_added_to_the_settings(void **state) {
    (void)state;
    struct selfmade made;
    struct selfmade_options options = selfmade_plain;
    options.conf = "expandable_segments:True";
    selfmade_run(&made, &options);
    struct vram_recording *recording = selfmade_recording(&made, 0);
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

// Ascend's torch_npu allocates 32 bytes more than requested, rounded up: 1,024 bytes take 1,536.
static void histories_of_npus_are_recognised(void **state) {
    (void)state;
    static const struct {
        const char *played, *recorded, *found;
        uint64_t memory_bytes;
    } rows[] = {
        {"request_padding_bytes:32", "", "request_padding_bytes:32,base_addr_aligned_kb:16", 80 * VR_GIB},
        {"request_padding_bytes:32", "", "request_padding_bytes:32,base_addr_aligned_kb:16", 400 * VR_MIB},
        {"expandable_segments:True,request_padding_bytes:32", "expandable_segments:True",
         "expandable_segments:True,request_padding_bytes:32", 80 * VR_GIB},
        {"expandable_segments:True,request_padding_bytes:32,base_addr_aligned_kb:16", "expandable_segments:True",
         "expandable_segments:True,request_padding_bytes:32,base_addr_aligned_kb:16", 80 * VR_GIB},
        {"roundup_power2_divisions:4,request_padding_bytes:32", "roundup_power2_divisions:4", NULL, 80 * VR_GIB},
        {"", "", "", 80 * VR_GIB},
    };
    for (size_t i = 0; i < VR_COUNT_OF(rows); i++) {
        struct selfmade made;
        struct selfmade_options options = selfmade_plain;
        options.conf = rows[i].played;
        options.memory_bytes = rows[i].memory_bytes;
        selfmade_run(&made, &options);
        made.conf = rows[i].recorded;
        struct vram_recording *recording = selfmade_recording(&made, 0);
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

// One device has expandable segments with Ascend's padding and alignment, another has ordinary ones without padding.
static void settings_are_inferred_for_each_device(void **state) {
    (void)state;
    static const char snapshot[] =
        "{\"segments\":["
        "{\"device\":0,\"address\":1073741824,\"total_size\":20971520,\"stream\":0,\"segment_type\":\"large\",\"is_expandable\":true,"
        "\"blocks\":[{\"size\":1573376,\"requested_size\":1572864,\"address\":1073741824,\"state\":\"active_allocated\"},"
        "{\"size\":15872,\"requested_size\":0,\"address\":1075315200,\"state\":\"inactive\"},"
        "{\"size\":2097664,\"requested_size\":2097152,\"address\":1075331072,\"state\":\"active_allocated\"},"
        "{\"size\":17284608,\"requested_size\":0,\"address\":1077428736,\"state\":\"inactive\"}]},"
        "{\"device\":1,\"address\":4194304,\"total_size\":2097152,\"stream\":0,\"segment_type\":\"small\",\"is_expandable\":false,"
        "\"blocks\":[{\"size\":512,\"requested_size\":512,\"address\":4194304,\"state\":\"active_allocated\"},"
        "{\"size\":2096640,\"requested_size\":0,\"address\":4194816,\"state\":\"inactive\"}]}],"
        "\"device_traces\":[[{\"action\":\"segment_map\",\"addr\":1073741824,\"size\":20971520,\"stream\":0},"
        "{\"action\":\"alloc\",\"addr\":1073741824,\"size\":1572864,\"stream\":0},"
        "{\"action\":\"alloc\",\"addr\":1075331072,\"size\":2097152,\"stream\":0}],"
        "[{\"action\":\"segment_alloc\",\"addr\":4194304,\"size\":2097152,\"stream\":0},"
        "{\"action\":\"alloc\",\"addr\":4194304,\"size\":512,\"stream\":0}]]}";
    struct vram_recording *recording = read_string(snapshot);
    struct vram_exact_result *result = NULL;
    assert_int_equal(vram_replay_exact(recording, NULL, &result, NULL), VRAM_OK);
    assert_true(result->inferred_conf);
    assert_string_equal(result->conf, "expandable_segments:True,request_padding_bytes:32,base_addr_aligned_kb:16");
    assert_int_equal(result->device_count, 2);
    for (size_t i = 0; i < 2; i++) assert_int_equal(result->devices[i].verdict, VRAM_EXACT_EQUAL);
    vram_exact_result_destroy(result);
    struct vram_whatif_result *run = NULL;
    assert_int_equal(vram_replay_whatif(recording, NULL, &run, NULL), VRAM_OK);
    assert_int_equal(run->devices[0].peak_reserved_bytes, 20 * VR_MIB);
    assert_int_equal(run->devices[1].peak_allocated_bytes, 512);
    vram_whatif_result_destroy(run);
    vram_recording_destroy(recording);
}

// torch.xpu.memory's snapshots have a subset of torch.cuda's keys; MTIA's are similar dictionaries.
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
    struct selfmade_options options = selfmade_plain;
    options.conf = "expandable_segments:True";
    selfmade_run(&made, &options);
    made.without_settings = true;
    struct vram_recording *recording = selfmade_recording(&made, made.count / 3);
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
    // The caller's settings contradict them; a recording's own settings are believed.
    const struct vram_exact_options defaults = {.conf = ""};
    assert_int_equal(vram_replay_exact(recording, &defaults, &result, NULL), VRAM_OK);
    assert_false(result->agrees || result->recorded_conf || result->inferred_conf);
    vram_exact_result_destroy(result);
    const struct vram_exact_options wrong = {.conf = "nonsense"};
    assert_int_equal(vram_replay_exact(recording, &wrong, &result, NULL), VRAM_BAD_OPTION);
    vram_recording_destroy(recording);
    made.without_settings = false;
    recording = selfmade_recording(&made, 0);
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
    selfmade_run(&made, &selfmade_plain);
    for (size_t i = 0; i < VR_COUNT_OF(wrong); i++) {
        made.conf = wrong[i];
        struct vram_recording *recording = selfmade_recording(&made, 0);
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

// Two releases in another order: placements stay the same, the order does not.
static void order_of_releases_differs(void **state) {
    (void)state;
    struct selfmade made;
    selfmade_run(&made, &selfmade_plain);
    size_t at = 0;
    while (at + 1 < made.count &&
           (made.records[at].action != VR_RECORD_SEGMENT_FREE || made.records[at + 1].action != VR_RECORD_SEGMENT_FREE))
        at++;
    assert_true(at + 1 < made.count);
    const struct vr_record swapped = made.records[at];
    made.records[at] = made.records[at + 1];
    made.records[at + 1] = swapped;
    struct vram_recording *recording = selfmade_recording(&made, 0);
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

static void one_block_of_the_picture_differs(void **state) {
    (void)state;
    assert_int_equal(verdict_of_string(SEGMENT(ONE_USED) TRACE(EVENT("segment_alloc", 4194304, 2097152) "," EVENT("alloc", 4194304, 1024))),
                     VRAM_EXACT_EQUAL);
    assert_int_equal(verdict_of_string(SEGMENT(WHOLE_FREE) TRACE("")), VRAM_EXACT_NO_HISTORY);
    // 1,000 bytes make a block of 1,024; one of 1,536 belongs to another allocator.
    assert_int_equal(verdict_of_string(SEGMENT(BLOCK(4194304, 1536, "active_allocated") "," BLOCK(4195840, 2095616, "inactive"))
                                           TRACE(EVENT("segment_alloc", 4194304, 2097152) "," EVENT("alloc", 4194304, 1000))),
                     VRAM_EXACT_DIFFERENT);
    // A free block split in two.
    assert_int_equal(verdict_of_string(SEGMENT(BLOCK(4194304, 1048576, "inactive") "," BLOCK(5242880, 1048576, "inactive")) TRACE("")),
                     VRAM_EXACT_DIFFERENT);
}

// Checks the segment without its request, the request without its segment, and another size.
static void segments_that_differ(void **state) {
    (void)state;
    assert_int_equal(verdict_of_string(SEGMENT(WHOLE_FREE) TRACE(EVENT("segment_alloc", 4194304, 2097152))), VRAM_EXACT_EQUAL);
    assert_int_equal(verdict_of_string(SEGMENT(ONE_USED) TRACE(EVENT("alloc", 4194304, 1024))), VRAM_EXACT_EQUAL);
    // A cached segment would have served the second allocation.
    assert_int_equal(
        verdict_of_string(
            "{\"segments\":["
            "{\"device\":0,\"address\":4194304,\"total_size\":2097152,\"stream\":0,\"segment_type\":\"small\",\"blocks\":[" ONE_USED "]},"
            "{\"device\":0,\"address\":8388608,\"total_size\":2097152,\"stream\":0,\"segment_type\":\"small\",\"blocks\":[" BLOCK(
                8388608, 512, "active_allocated") "," BLOCK(8389120, 2096640,
                                                            "inactive") "]}]," TRACE(EVENT("segment_alloc", 8388608,
                                                                                           2097152) "," EVENT("alloc", 8388608, 512))),
        VRAM_EXACT_DIFFERENT);
}

// With release_lock_on_cudamalloc, another thread's events may be between a segment and its allocation.
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
    assert_int_equal(verdict_of_string(TWO_SEGMENTS "\"allocator_settings\":{\"release_lock_on_cudamalloc\":true}," TRACE(BETWEEN)),
                     VRAM_EXACT_EQUAL);
}

// A request placed elsewhere than recorded is undone, with its segment, so that the next is judged separately.
static void a_difference_costs_no_later_match(void **state) {
    (void)state;
    struct vram_recording *recording = read_string(
        "{\"segments\":[{\"device\":0,\"address\":33554432,\"total_size\":20971520,\"stream\":0,\"segment_type\":\"large\",\"blocks\":"
        "[" BLOCK(33554432, 2097152, "active_allocated") "," BLOCK(35651584, 2097152, "active_allocated") "," BLOCK(
            37748736, 16777216,
            "inactive") "]}]," TRACE(EVENT("segment_alloc", 33554432, 20971520) "," EVENT("alloc", 35651584,
                                                                                          2097152) "," EVENT("alloc", 33554432, 2097152)));
    struct vram_exact_result *result = exact(recording);
    assert_int_equal(result->devices[0].verdict, VRAM_EXACT_DIFFERENT);
    assert_int_equal(result->devices[0].allocations, 2);
    assert_int_equal(result->devices[0].at_recorded_address, 1);
    assert_int_equal(result->devices[0].difference_count, 1);
    vram_exact_result_destroy(result);
    vram_recording_destroy(recording);
}

// If nearly everything differs, a replay stops and says so, because more would not add information.
static void too_many_differences_end_a_replay(void **state) {
    (void)state;
    enum { MOST = 100000 };
    struct vr_text json = {0};
    vr_text_puts(&json, SEGMENT(WHOLE_FREE) "\"device_traces\":[[");
    for (int i = 0; i <= MOST; i++) // our allocator uses the beginning of the segment
        vr_text_printf(&json, "%s%s", i == 0 ? "" : ",", EVENT("alloc", 4194816, 512) "," EVENT("free", 4194816, 512));
    vr_text_puts(&json, "]]}");
    struct vram_recording *recording = read_bytes(json.bytes, json.length);
    struct vram_exact_result *result = exact(recording);
    assert_int_equal(result->devices[0].verdict, VRAM_EXACT_DIFFERENT);
    assert_in_range(result->devices[0].difference_count, MOST, MOST + 10); // the final state also differs
    assert_string_equal(result->devices[0].reason, "stopped at event 199998: too many differences");
    vram_exact_result_destroy(result);
    vram_recording_destroy(recording);
    vr_text_release(&json);
}

// --- impossible histories -----------------------------------------------------------------------------------------------------
static void contradictions_are_told(void **state) {
    (void)state;
    static const char *const histories[] = {
        SEGMENT(WHOLE_FREE) TRACE(EVENT("alloc", 4194304, 1024)),             // neither freed nor present
        SEGMENT(ONE_USED) TRACE(EVENT("free_completed", 4194304, 1024)),      // freed but present
        SEGMENT(ONE_USED) TRACE(EVENT("free_requested", 4194304, 1024)),      // likewise
        SEGMENT(WHOLE_FREE) TRACE(EVENT("segment_alloc", 16777216, 2097152)), // a segment that vanished
        SEGMENT(WHOLE_FREE) TRACE(EVENT("segment_alloc", 4194304, 20971520)), // of another size
        SEGMENT(WHOLE_FREE) TRACE(EVENT("segment_free", 4194304, 2097152)),   // released but present
        SEGMENT(WHOLE_FREE) TRACE(EVENT("segment_map", 4194304, 2097152)),    // mapped but not expandable
        SEGMENT(ONE_USED) TRACE(EVENT("free_requested", 4194816, 512) "," EVENT("free_completed", 4194816, 512)), // inside another block
        SEGMENT(WHOLE_FREE) TRACE(EVENT("free_requested", 512, 512) "," EVENT("free_completed", 512, 512)),       // outside all
        SEGMENT(WHOLE_FREE) TRACE(EVENT("alloc", 512, 512) "," EVENT("free_requested", 512, 512) "," EVENT("free_completed", 512, 512)),
        SEGMENT(BLOCK(4194304, 4194304, "active_allocated")) TRACE(""), // longer than its segment
        "{\"segments\":[{\"device\":0,\"address\":4194304,\"total_size\":20971520,\"stream\":0,\"segment_type\":\"large\",\"blocks\":"
        "[" BLOCK(4194304, 512, "active_allocated") "]}]," TRACE(""), // too small for the large pool
        SEGMENT(BLOCK(4194304, 1000, "active_allocated")) TRACE(""),  // not a possible block size
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

// A recording has the settings of its end: effects of earlier ones are not differences of the allocator.
static void settings_that_changed_are_told(void **state) {
    (void)state;
    static const struct {
        const char *json;
        const char *reason; // NULL: no proof, so it differs
    } rows[] = {
        {"{\"segments\": [" // an ordinary segment of 20 MiB and a range of 20 MiB, which has a block split by the other rule
         "{\"device\": 0, \"address\": 1073741824, \"total_size\": 20971520, \"stream\": 0, \"segment_type\": \"large\", "
         "\"is_expandable\": false,"
         " \"blocks\": [{\"size\": 20971520, \"requested_size\": 20971520, \"state\": \"active_allocated\"}]},"
         "{\"device\": 0, \"address\": 2147483648, \"total_size\": 20971520, \"stream\": 0, \"segment_type\": \"large\", "
         "\"is_expandable\": true,"
         " \"blocks\": [{\"size\": 20971520, \"requested_size\": 0, \"state\": \"inactive\"}]}],"
         "\"device_traces\": [[{\"action\": \"segment_alloc\", \"addr\": 1073741824, \"size\": 20971520, \"stream\": 0},"
         " {\"action\": \"alloc\", \"addr\": 1073741824, \"size\": 20971520, \"stream\": 0}]],"
         "\"allocator_settings\": {\"PYTORCH_CUDA_ALLOC_CONF\": \"expandable_segments:True\", \"expandable_segments\": true}}",
         "both ordinary and expandable segments"},
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

// --- changed values --------------------------------------------------------------------------------------------------------------
static uint64_t random_state;
static uint64_t random_below(uint64_t bound) { return vr_random_below(&random_state, bound); }

// Replaces one value of the history: by a neighbour's, a slightly larger or smaller one, or any.
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
        const struct selfmade_options options = {.conf = selfmade_confs[seed % SELFMADE_CONFS],
                                                 .seed = seed,
                                                 .memory_bytes = 80 * VR_GIB,
                                                 .operations = 200,
                                                 .streams = 2,
                                                 .small_sizes = seed % 2 == 0};
        selfmade_run(&made, &options);
        struct vram_recording *recording = selfmade_recording(&made, seed % 5 == 0 ? made.count / 2 : 0);
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
    // Most damage is detected; some has no effect (the size of a snapshot event, a neighbour's equal size).
    assert_true(different > 20);
    assert_true(contradictions > 150);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rules_are_inferred),
        cmocka_unit_test(a_version_is_added_to_the_settings),
        cmocka_unit_test(histories_of_npus_are_recognised),
        cmocka_unit_test(settings_are_inferred_for_each_device),
        cmocka_unit_test(snapshots_of_other_devices_are_read),
        cmocka_unit_test(expandable_segments_without_settings_are_inferred),
        cmocka_unit_test(other_settings_differ),
        cmocka_unit_test(order_of_releases_differs),
        cmocka_unit_test(one_block_of_the_picture_differs),
        cmocka_unit_test(segments_that_differ),
        cmocka_unit_test(events_of_other_threads_stand_between),
        cmocka_unit_test(a_difference_costs_no_later_match),
        cmocka_unit_test(too_many_differences_end_a_replay),
        cmocka_unit_test(contradictions_are_told),
        cmocka_unit_test(a_private_pool_without_ids_on_events),
        cmocka_unit_test(settings_that_changed_are_told),
        cmocka_unit_test(damaged_histories_do_no_harm),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
