// test_whatif.c: replays generated recordings (selfmade.h) with other settings and less memory.
#include "replay/replaying.h"
#include "replay/selfmade.h"

// Replayed with its own settings, a program needs as much memory as when it was recorded.
static void own_settings_give_own_peaks(void **state) {
    (void)state;
    for (size_t c = 0; c < SELFMADE_CONFS; c++) {
        struct selfmade made;
        struct selfmade_options options = selfmade_plain;
        options.conf = selfmade_confs[c];
        selfmade_run(&made, &options);
        struct vram_recording *recording = selfmade_recording(&made, 0);
        for (int start = 0; start < 2; start++) {
            const struct vram_whatif_options run = {.start = start == 0 ? VRAM_WHATIF_COLD : VRAM_WHATIF_RECORDED};
            struct vram_whatif_result *result = whatif(recording, &run);
            assert_true(result->finished && result->recorded_conf);
            assert_int_equal(result->devices[0].events, made.count);
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

static uint64_t calls_of(const struct vram_whatif_device *device, const char *name) {
    for (size_t i = 0; i < device->call_count; i++) {
        if (strcmp(device->calls[i].name, name) == 0) return device->calls[i].count;
    }
    return 0;
}

static void less_memory_runs_out_at_the_right_event(void **state) {
    (void)state;
    struct selfmade made;
    struct selfmade_options options = selfmade_plain;
    options.streams = 1;
    selfmade_run(&made, &options);
    struct vram_recording *recording = selfmade_recording(&made, 0);
    struct vram_whatif_result *unlimited = whatif(recording, NULL);
    const uint64_t active = unlimited->devices[0].peak_active_bytes;
    assert_true(calls_of(&unlimited->devices[0], "cuMemAlloc") > 0);
    assert_true(unlimited->devices[0].driver_time_ns > 0);

    // Less than the bytes in use at the peak: it must fail, with the whole cache released.
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

    // As much as was reserved at the peak: it must succeed.
    const struct vram_whatif_options enough = {.memory_bytes = unlimited->devices[0].peak_reserved_bytes};
    result = whatif(recording, &enough);
    assert_true(result->finished);
    assert_int_equal(result->devices[0].retries, 0);
    vram_whatif_result_destroy(result);
    vram_whatif_result_destroy(unlimited);
    vram_recording_destroy(recording);
    selfmade_release(&made);
}

// The request that failed in the recorded program is retried with the given memory.
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

// The recorded start fits in memory as large as its segments, and in no less.
static void a_start_fits_to_the_byte(void **state) {
    (void)state;
    struct vram_recording *recording = read_string(SEGMENT(ONE_USED) TRACE(
        EVENT("alloc", 4195328, 512) "," EVENT("free_requested", 4195328, 512) "," EVENT("free_completed", 4195328, 512)));
    struct vram_whatif_options options = {.start = VRAM_WHATIF_RECORDED, .memory_bytes = 2 * VR_MIB};
    struct vram_whatif_result *result = whatif(recording, &options);
    assert_true(result->finished);
    assert_false(result->devices[0].out_of_memory);
    assert_int_equal(result->devices[0].events, 3);
    vram_whatif_result_destroy(result);

    options.memory_bytes = 2 * VR_MIB - 1;
    result = whatif(recording, &options);
    assert_true(result->devices[0].out_of_memory);
    assert_int_equal(result->devices[0].oom.requested_bytes, 2 * VR_MIB);
    assert_int_equal(result->devices[0].oom.allocated_bytes, 1024);
    vram_whatif_result_destroy(result);
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

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(own_settings_give_own_peaks),   cmocka_unit_test(less_memory_runs_out_at_the_right_event),
        cmocka_unit_test(a_recorded_oom_is_tried_again), cmocka_unit_test(a_start_that_does_not_fit),
        cmocka_unit_test(a_start_fits_to_the_byte),      cmocka_unit_test(wrong_options_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
