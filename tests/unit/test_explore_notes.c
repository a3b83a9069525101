// Checks that the explorer's remarks about a recording are those of the report.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <cmocka.h>

#include "base/text.h"
#include "vram/explorer.h"
#include "vram/report.h"

static bool keep(void *user, const char *bytes, size_t length) {
    vr_text_append(user, bytes, length);
    return true;
}

// Checks that every remark of the report is in the answer, in the report's order.
static void same_notes(const char *json) {
    struct vram_recording *recording = NULL;
    struct vram_explorer *explorer = NULL;
    struct vram_report *report = NULL;
    struct vram_error error;
    if (vram_recording_read_memory(json, strlen(json), "made", &recording, &error) != VRAM_OK) fail_msg("%s", error.message);
    assert_int_equal(VRAM_OK, vram_report_create(recording, NULL, &report, NULL));
    assert_int_equal(VRAM_OK, vram_explorer_create(&explorer));
    assert_int_equal(VRAM_OK, vram_explorer_add(explorer, recording, "made", strlen(json), NULL));
    struct vr_text answer = {0};
    assert_int_equal(VRAM_OK, vram_explorer_ask(explorer, "notes", keep, &answer, NULL));
    vr_text_append(&answer, "", 1);
    const char *at = answer.bytes + 8;
    assert_true(report->note_count != 0);
    assert_non_null(strstr(at, report->generation));
    for (size_t i = 0; i < report->note_count; i++) {
        at = strstr(at, report->notes[i].text);
        if (at == NULL) fail_msg("no remark '%s'", report->notes[i].text);
    }
    assert_null(strstr(at + 1, "\"code\""));
    vr_text_release(&answer);
    vram_report_destroy(report);
    vram_explorer_destroy(explorer);
}

static void a_history_without_stacks_and_times(void **state) {
    (void)state;
    same_notes("{\"segments\": [], \"device_traces\": [[{\"action\": \"alloc\", \"addr\": 4096, \"size\": 512, \"stream\": 0}]]}");
}

static void a_history_that_contradicts_itself(void **state) {
    (void)state;
    same_notes(
        "{\"segments\": [], \"device_traces\": [[{\"action\": \"alloc\", \"addr\": 4096, \"size\": 512, \"stream\": 0, \"time_us\": 5},"
        "{\"action\": \"alloc\", \"addr\": 4096, \"size\": 1024, \"stream\": 0, \"time_us\": 3}]]}");
}

static void only_a_final_state(void **state) {
    (void)state;
    same_notes("[{\"address\": 4096, \"total_size\": 2097152, \"blocks\": [{\"size\": 2097152, \"state\": \"inactive\"}]}]");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_history_without_stacks_and_times),
        cmocka_unit_test(a_history_that_contradicts_itself),
        cmocka_unit_test(only_a_final_state),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
