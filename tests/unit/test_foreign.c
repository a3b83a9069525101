// Tests logs of RMM and traces of PyTorch's profiler as recordings, and the rows of a recording as plain structs.
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <cmocka.h>

#include "model/recording.h"
#include "vram/recording.h"
#include "vram/report.h"

static struct vram_error error;

static struct vram_recording *read_text(const char *text) {
    struct vram_recording *recording = NULL;
    if (vram_recording_read_memory(text, strlen(text), NULL, &recording, &error) != VRAM_OK) fail_msg("%s", error.message);
    assert_int_equal(vr_model_check(vr_recording_model(recording), NULL), VRAM_OK);
    return recording;
}

static void refused(const char *text, const char *message) {
    struct vram_recording *recording = NULL;
    assert_int_equal(vram_recording_read_memory(text, strlen(text), "f", &recording, &error), VRAM_BAD_INPUT);
    if (strstr(error.message, message) == NULL) fail_msg("%s", error.message);
}

static void expect_event(const struct vram_recording *recording, uint32_t device, uint64_t index, const char *action, uint64_t address,
                         uint64_t size_bytes, int64_t time_us) {
    struct vram_recorded_event event;
    assert_true(vram_recording_event(recording, device, index, &event));
    assert_string_equal(event.action, action);
    assert_int_equal(event.address, address);
    assert_int_equal(event.size_bytes, size_bytes);
    assert_true(event.has_time);
    assert_int_equal(event.time_us, time_us);
}

// --- memory timelines

static void timeline_rows_become_events(void **state) {
    (void)state;
    // Two parameters made before the recording, a gradient that becomes optimizer state, and two equal blocks, the newer freed first.
    struct vram_recording *recording =
        read_text("[[-1, 1, 4096, 0],\n [-1,1,512,0], [2000000, 2, 1024, 5], [3000000, 3, -1024, 5], [3000000, 3, 1024, 1],"
                  " [4000000, 2, 64, 4], [5000000, 2, 64, 4], [6000000, 4, -64, 4], [7000000, 4, -1024, 1]]");
    struct vram_recorded_event event, made;
    assert_int_equal(vram_recording_event_count(recording, 0), 9);
    assert_true(vram_recording_event(recording, 0, 0, &event));
    assert_false(event.has_time);
    assert_int_equal(event.size_bytes, 4096);
    assert_true(vram_recording_event(recording, 0, 2, &made));
    assert_int_equal(made.time_us, 2000);
    assert_true(vram_recording_event(recording, 0, 4, &made)); // the second of 64 bytes
    assert_true(vram_recording_event(recording, 0, 5, &event));
    assert_string_equal(event.action, "free_requested");
    assert_int_equal(event.address, made.address);
    assert_true(vram_recording_event(recording, 0, 2, &made));
    assert_true(vram_recording_event(recording, 0, 7, &event));
    assert_int_equal(event.address, made.address);
    struct vram_report *report;
    assert_int_equal(vram_report_create(recording, NULL, &report, &error), VRAM_OK);
    assert_int_equal(report->devices[0].allocated.peak.bytes, 4096 + 512 + 1024 + 64 + 64);
    assert_string_equal(report->devices[0].allocated.sites[0].name, ":0:parameter");
    vram_report_destroy(report);
    vram_recording_destroy(recording);
}

static void timelines_that_are_none(void **state) {
    (void)state;
    refused("[[1, 2, 64, 4], [2, 4, -128, 4]]", "a row that frees live memory");
    refused("[[1, 2, 64, 4], [2, 4, -64, 5]]", "a row that frees live memory");
    refused("[[1, 2, 64, 4], [2, 3, -64, 4]]", "the second row of a new version");
    refused("[[1, 2, 64, 4], [2, 3, -64, 4], [2, 3, 32, 1]]", "two rows with equal bytes for a new version");
    refused("[[1, 5, 64, 4]]", "a row with an action from 1 to 4");
    refused("[[1, 2, 64, 8]]", "a category from 0 to 7");
    refused("[[1, 2, 64.5, 4]]", "a whole number");
    refused("[[1, 2, 64]]", "four numbers per row");
    refused("[[1, 2, 64, 4, 5]]", "the end of a row");
    refused("[[1, 2, 64, 4]] x", "the end of the file");
    refused("[[1, 2, 1152921504606846976, 4]]", "less than 2^60 bytes in total");
}

// --- RMM

#define HEAD "Thread,Time,Action,Pointer,Size,Stream\n"
#define DAY  ((int64_t)86400000000)

static void rmm_rows_become_events(void **state) {
    (void)state;
    struct vram_recording *recording = read_text(HEAD "7,23:59:59.900000,allocate,0x7f0000000000,1000,0x0\n"
                                                      "7,23:59:59:950001,allocate,0x7f0000001000,24,0xff\r\n"
                                                      "8,00:00:00.100000,free,0x7f0000000000,1000,0x0\n\n"
                                                      "7,23:59:59.990000,allocate failure,(nil),99999999999,0x0\n"
                                                      "7,00:00:01,allocate,4096,1,2");
    assert_int_equal(vram_recording_event_count(recording, 0), 6);
    expect_event(recording, 0, 0, "alloc", 0x7f0000000000, 1000, DAY - 100000);
    expect_event(recording, 0, 1, "alloc", 0x7f0000001000, 24, DAY - 49999);
    expect_event(recording, 0, 2, "free_requested", 0x7f0000000000, 1000, DAY + 100000);
    expect_event(recording, 0, 3, "free_completed", 0x7f0000000000, 1000, DAY + 100000);
    // A thread that was late still has the previous day.
    expect_event(recording, 0, 4, "oom", 0, 99999999999, DAY - 10000);
    expect_event(recording, 0, 5, "alloc", 4096, 1, DAY + 1000000);
    struct vram_recorded_event event;
    assert_true(vram_recording_event(recording, 0, 1, &event));
    assert_int_equal(event.thread, 7);
    assert_int_equal(event.stream, 0xff);
    assert_false(vram_recording_event(recording, 0, 6, &event));
    assert_false(vram_recording_event(recording, 1, 0, &event));
    // The memory live at the end makes the final state.
    struct vram_recorded_segment segment;
    struct vram_recorded_block block;
    assert_int_equal(vram_recording_segment_count(recording), 2);
    assert_true(vram_recording_segment(recording, 1, &segment));
    assert_int_equal(segment.address, 0x7f0000001000);
    assert_int_equal(segment.size_bytes, 512);
    assert_string_equal(segment.kind, "");
    assert_true(vram_recording_block(recording, segment.first_block, &block));
    assert_int_equal(block.requested_bytes, 24);
    assert_string_equal(block.state, "active_allocated");
    assert_false(vram_recording_segment(recording, 2, &segment));
    vram_recording_destroy(recording);
}

static void rmm_times_may_be_seconds_since_the_epoch(void **state) {
    (void)state;
    struct vram_recording *recording = read_text(HEAD "1,1603143034.25,allocate,0x1000,8,0x0\n"
                                                      "1,1603143035,free,0x1000,8,0x0\n"
                                                      "1,1603143035.123456789,allocate,0x2000,8,0x0\n");
    expect_event(recording, 0, 0, "alloc", 0x1000, 8, 1603143034250000);
    expect_event(recording, 0, 2, "free_completed", 0x1000, 8, 1603143035000000);
    expect_event(recording, 0, 3, "alloc", 0x2000, 8, 1603143035123456);
    vram_recording_destroy(recording);
    refused(HEAD "1,1603143034.2x,allocate,0x1,2,0\n", "is not a valid time");
    refused(HEAD "1,.5,allocate,0x1,2,0\n", "is not a valid time");
    refused(HEAD "1,1234567890123,allocate,0x1,2,0\n", "is not a valid time");
    refused(HEAD "1,,allocate,0x1,2,0\n", "is not a valid time");
}

static void rmm_devices(void **state) {
    (void)state;
    struct vram_recording *recording = read_text("Thread,Time,Action,Pointer,Size,Stream,Device\n"
                                                 "1,00:00:01.000000,allocate,0x1000,8,0x0,3\n");
    assert_int_equal(vram_recording_device_count(recording), 4);
    expect_event(recording, 3, 0, "alloc", 0x1000, 8, 1000000);
    vram_recording_destroy(recording);
}

static void rmm_mistakes_name_their_line(void **state) {
    (void)state;
    refused("Thread,Time,Action,Pointer,Size,Stream,Colour\n",
            "f: line 1 of the RMM log: 'Thread,Time,Action,Pointer,Size,Stream,C' is no");
    refused(HEAD "1,00:00:01,allocate,0x1,2\n", "line 2 of the RMM log: '1,00:00:01,allocate,0x1,2' is not a valid row");
    refused(HEAD "1,00:00:01,allocate,0x1,2,0,0\n", "is not a valid row");
    refused(HEAD "\nx,00:00:01,allocate,0x1,2,0\n", "line 3 of the RMM log: 'x' is not a valid thread");
    refused(HEAD "1,24:00:01,allocate,0x1,2,0\n", "'24:00:01' is not a valid time");
    refused(HEAD "1,00:60:01,allocate,0x1,2,0\n", "is not a valid time");
    refused(HEAD "1,00:00:01.x,allocate,0x1,2,0\n", "is not a valid time");
    refused(HEAD "1,00:00:01,alloc,0x1,2,0\n", "'alloc' is not a valid action");
    refused(HEAD "1,00:00:01,allocate,0x12345678123456781,2,0\n", "is not a valid pointer");
    refused(HEAD "1,00:00:01,allocate,0xg,2,0\n", "'0xg' is not a valid pointer");
    refused(HEAD "1,00:00:01,allocate,0x1,-2,0\n", "'-2' is not a valid size");
    refused(HEAD "1,00:00:01,allocate,0x1,99999999999999999999,0\n", "is not a valid size");
    refused(HEAD "1,00:00:01,allocate,0x1,2,zero\n", "'zero' is not a valid stream");
    refused("Thread,Time,Action,Pointer,Size,Stream,Device\n1,00:00:01,allocate,0x1,2,0,1024\n", "'1024' is not a valid device");
    char *line = malloc(6001 + sizeof HEAD);
    assert_non_null(line);
    memcpy(line, HEAD, sizeof HEAD - 1);
    memset(line + sizeof HEAD - 1, '1', 6000);
    line[sizeof HEAD - 1 + 6000] = '\0';
    refused(line, "it is too long");
    free(line);
}

static bool has_note(const struct vram_report *report, const char *code) {
    for (size_t i = 0; i < report->note_count; i++) {
        if (strcmp(report->notes[i].code, code) == 0) return true;
    }
    return false;
}

static bool has_note_of(const char *text, const char *code) {
    struct vram_recording *recording = read_text(text);
    struct vram_report *report = NULL;
    assert_int_equal(vram_report_create(recording, NULL, &report, &error), VRAM_OK);
    const bool has = has_note(report, code);
    vram_report_destroy(report);
    vram_recording_destroy(recording);
    return has;
}

// A log of a crashed program, and the words of RMM's guide.
static void rmm_logs_may_end_in_a_row(void **state) {
    (void)state;
    const char *const cut = HEAD "1,00:00:01,allocate,0x1000,3000,0\n1,00:00:02,deallocate,0x1000,3000,0\n1,00:00:03,alloc";
    struct vram_recording *recording = read_text(cut);
    assert_int_equal(vram_recording_event_count(recording, 0), 3);
    expect_event(recording, 0, 1, "free_requested", 0x1000, 3000, 2000000);
    vram_recording_destroy(recording);
    assert_true(has_note_of(cut, "cut"));
    assert_false(has_note_of(HEAD "1,00:00:01,allocate,0x1000,3000,0", "cut"));
    refused(HEAD "1,00:00:01,alloc\n1,00:00:02,allocate,0x1000,3000,0\n", "line 2 of the RMM log");
}

// A log of requests does not describe the device: the available memory is known only if the caller gives it.
static void the_room_of_a_failure_is_not_made_up(void **state) {
    (void)state;
    static const struct {
        uint64_t memory_bytes;
        enum vram_report_oom_cause cause;
        uint64_t room_bytes;
        const char *says;
    } rows[] = {
        {0, VRAM_OOM_ROOM_UNKNOWN, 0, "does not say how much memory the device had"},
        {80 * VR_GIB, VRAM_OOM_ROOM_UNKNOWN, 80 * VR_GIB, "1.0 GiB of the device's 80.0 GiB was live, which leaves room for the request"},
        {8 * VR_GIB, VRAM_OOM_FULL, 8 * VR_GIB, "memory was full: 1.0 GiB of 8.0 GiB was live"},
    };
    struct vram_recording *recording = read_text(HEAD "1,10:00:00.000001,allocate,0x7f0000000000,1073741824,0x1\n"
                                                      "1,10:00:00.000002,allocate failure,0x0,8589934592,0x1\n"
                                                      "1,10:00:00.000003,free,0x7f0000000000,1073741824,0x1\n");
    for (size_t i = 0; i < VR_COUNT_OF(rows); i++) {
        struct vram_report *report;
        const struct vram_report_options options = {.memory_bytes = rows[i].memory_bytes};
        assert_int_equal(vram_report_create(recording, &options, &report, &error), VRAM_OK);
        assert_int_equal(report->devices[0].oom_count, 1);
        assert_int_equal(report->devices[0].ooms[0].cause, rows[i].cause);
        assert_int_equal(report->devices[0].ooms[0].room_bytes, rows[i].room_bytes);
        if (strstr(report->devices[0].ooms[0].text, rows[i].says) == NULL) fail_msg("%s", report->devices[0].ooms[0].text);
        vram_report_destroy(report);
    }
    vram_recording_destroy(recording);
}

static void a_log_is_not_called_contradictory(void **state) {
    (void)state;
    struct vram_recording *recording = read_text(HEAD "1,00:00:01,allocate,0x1000,3000,0\n1,00:00:02,allocate,0x8000,5000,0\n"
                                                      "1,00:00:03,free,0x1000,3000,0\n");
    struct vram_report *report = NULL;
    assert_int_equal(vram_report_create(recording, NULL, &report, &error), VRAM_OK);
    assert_int_equal(report->devices[0].allocated.peak.bytes, 8000);
    assert_true(has_note(report, "no_segments"));
    for (size_t i = 0; i < report->note_count; i++) assert_int_equal(report->notes[i].kind, VRAM_NOTE_MISSING);
    vram_report_destroy(report);
    vram_recording_destroy(recording);
}

// --- the profiler

#define TRACE(events) "{\"schemaVersion\": 1, \"traceEvents\": [" events "], \"baseTimeNanoseconds\": 1000000}"
#define MEMORY(ts, tid, bytes, device)                                                                                                     \
    "{\"ph\": \"i\", \"name\": \"[memory]\", \"pid\": 1, \"tid\": " tid ", \"ts\": " ts ", \"args\": {\"Bytes\": " bytes                   \
    ", \"Addr\": 4096, \"Device Id\": " device ", \"Device Type\": 1, \"Total Allocated\": 5}}"
#define SLICE(category, name, tid, ts, duration)                                                                                           \
    "{\"ph\": \"X\", \"cat\": \"" category "\", \"name\": \"" name "\", \"pid\": 1, \"tid\": " tid ", \"ts\": " ts ", \"dur\": " duration  \
    "}"

static void expect_stack(const struct vram_recording *recording, uint64_t index, const char *const *names, size_t count) {
    struct vram_recorded_event event;
    uint64_t depth;
    assert_true(vram_recording_event(recording, 0, index, &event));
    const uint32_t *frames = vram_recording_stack(recording, event.stack, &depth);
    assert_int_equal(depth, count);
    for (size_t i = 0; i < count; i++) {
        struct vram_frame frame;
        assert_true(vram_recording_frame(recording, frames[i], &frame));
        assert_string_equal(frame.name, names[i]);
    }
}

static void memory_events_have_the_operators_around_them(void **state) {
    (void)state;
    // Not in order of time; operators of other threads, and completed ones, do not enclose the event.
    struct vram_recording *recording = read_text(TRACE(
        MEMORY("20.5", "1", "512", "0") "," MEMORY("90", "1", "-512", "0") "," SLICE("cpu_op", "aten::empty", "1", "20", "1") "," SLICE(
            "cpu_op", "aten::linear", "1", "10",
            "50") "," SLICE("cpu_op", "other", "2", "0", "100") "," SLICE("cpu_op", "before", "1", "15",
                                                                          "2") "," SLICE("kernel", "gemm", "1", "0",
                                                                                         "100") "," SLICE("user_annotation",
                                                                                                          "ProfilerStep#3", "1", "5",
                                                                                                          "95") ", 7, \"x\""));
    static const char *const inside[] = {"aten::empty", "aten::linear", "ProfilerStep#3"}, *const after[] = {"ProfilerStep#3"};
    assert_int_equal(vram_recording_event_count(recording, 0), 3);
    expect_event(recording, 0, 0, "alloc", 4096, 512, 1020);
    expect_event(recording, 0, 1, "free_requested", 4096, 512, 1090);
    expect_event(recording, 0, 2, "free_completed", 4096, 512, 1090);
    expect_stack(recording, 0, inside, 3);
    expect_stack(recording, 1, after, 1);
    struct vram_recorded_annotation mark;
    assert_true(vram_recording_annotation(recording, 0, &mark));
    assert_string_equal(mark.name, "ProfilerStep#3");
    assert_string_equal(mark.stage, "START");
    assert_int_equal(mark.time_us, 1005);
    assert_true(vram_recording_annotation(recording, 1, &mark));
    assert_string_equal(mark.stage, "END");
    assert_int_equal(mark.time_us, 1100);
    assert_false(vram_recording_annotation(recording, 2, &mark));
    vram_recording_destroy(recording);
}

static void host_memory_of_a_trace_is_left_out(void **state) {
    (void)state;
    struct vram_recording *recording =
        read_text(TRACE("{\"name\": \"[memory]\", \"ts\": 1, \"args\": {\"Bytes\": 64, \"Device Id\": -1, \"Device Type\": 0}},"
                        "{\"name\": \"[OutOfMemory]\", \"ts\": 2, \"args\": {\"Bytes\": 1024, \"Device Id\": 1, \"Device Type\": 1}}"));
    assert_int_equal(vram_recording_event_count(recording, VRAM_ALL_DEVICES), 1);
    expect_event(recording, 1, 0, "oom", 0, 1024, 1002);
    vram_recording_destroy(recording);
}

static void traces_that_are_none(void **state) {
    (void)state;
    refused(TRACE(""), "f: the trace has no memory events of a device; make it with torch.profiler.profile(profile_memory=True)");
    refused(TRACE("{\"ph\": }"), "unexpected data in the JSON; expected a value (at byte 44)");
    refused(TRACE("{\"ph\": 1"), "expected ','");
    refused(TRACE("{\"ph\" 1}"), "expected ':'");
    refused(TRACE("{1: 1}"), "expected a key in quotes");
    refused(TRACE("1 2"), "expected ',' or ']'");
    refused(TRACE("01x"), "expected a value");
    refused("{\"traceEvents\": [\"abc", "the JSON ends inside a string");
    refused("{\"traceEvents\": [\"\\q\"", "malformed escape");
    refused("{\"traceEvents\": [{\"a\": [1, ", "unexpected end of the JSON; expected a value");
    refused(TRACE(MEMORY("1", "1", "1", "0")) " {", "expected the end of the file");
    refused(TRACE(MEMORY("1", "1", "1", "1024")), "expected a memory event with a valid device");
}

static void deep_traces_are_refused(void **state) {
    (void)state;
    char text[1024] = "{\"traceEvents\": ";
    struct vram_recording *recording = NULL;
    memset(text + strlen(text), '[', 600);
    assert_int_equal(vram_recording_read_memory(text, strlen(text), NULL, &recording, &error), VRAM_LIMIT);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(timeline_rows_become_events),
        cmocka_unit_test(timelines_that_are_none),
        cmocka_unit_test(rmm_rows_become_events),
        cmocka_unit_test(rmm_times_may_be_seconds_since_the_epoch),
        cmocka_unit_test(rmm_devices),
        cmocka_unit_test(rmm_mistakes_name_their_line),
        cmocka_unit_test(rmm_logs_may_end_in_a_row),
        cmocka_unit_test(the_room_of_a_failure_is_not_made_up),
        cmocka_unit_test(a_log_is_not_called_contradictory),
        cmocka_unit_test(memory_events_have_the_operators_around_them),
        cmocka_unit_test(host_memory_of_a_trace_is_left_out),
        cmocka_unit_test(traces_that_are_none),
        cmocka_unit_test(deep_traces_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
