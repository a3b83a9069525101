// Tests recorded accounts of other users of a device: their division of the memory outside the allocator, even in forged files.
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "analyze/report_parts.h"
#include "live/live_accounts.h"
#include "model/builder.h"
#include "vram/accounts.h"
#include "vram/recording.h"

#define M *VR_MIB

// A model that contains only settings "vram_accounts_<slot>".
struct told {
    struct vr_model model;
    struct vr_arena arena;
};

static void tell(struct told *told, const char *const *values, size_t count) {
    struct vr_builder builder;
    *told = (struct told){0};
    assert_int_equal(vr_builder_init(&builder, UINT64_MAX), VRAM_OK);
    told->model.settings = calloc(count, sizeof *told->model.settings);
    assert_non_null(told->model.settings);
    for (size_t i = 0; i < count; i++) {
        char key[32];
        (void)snprintf(key, sizeof key, "vram_accounts_%zu", i);
        assert_int_equal(vr_builder_string(&builder, key, strlen(key), &told->model.settings[i].key), VRAM_OK);
        assert_int_equal(vr_builder_string(&builder, values[i], strlen(values[i]), &told->model.settings[i].value), VRAM_OK);
        told->model.setting_count++;
    }
    vr_builder_finish(&builder, &told->model);
    vr_builder_release(&builder);
}

static void forget(struct told *told) {
    vr_arena_release(&told->arena);
    vr_model_release(&told->model);
}

// Finds the accounts of an event with 100 MiB outside the 10 MiB reserved.
static const struct vram_report_accounts *find(struct told *told, int64_t time_us, bool is_last) {
    const struct vr_view view = {.model = &told->model, .device = 1};
    const struct vram_report_oom oom = {.has_time = true, .time_us = time_us, .reserved_bytes = 10 M, .outside_bytes = 100 M};
    const struct vram_report_accounts *accounts = NULL;
    assert_int_equal(vr_accounts_find(&view, &oom, is_last, false, &told->arena, &accounts), VRAM_OK);
    if (accounts != NULL) {
        const uint64_t sum = accounts->context_bytes + accounts->module_bytes + accounts->driver_bytes + accounts->other_bytes;
        assert_int_equal(sum + accounts->unknown_bytes, 100 M);
    }
    return accounts;
}

static const struct vram_report_accounts *find_one(struct told *told, const char *value) {
    tell(told, &value, 1);
    return find(told, 7, true);
}

static void what_was_written_is_read(void **state) {
    (void)state;
    struct vram_processes processes = {.count = 2, .has_self = true, .self_bytes = 45 M, .left_out = 3};
    processes.others[0] = (struct vram_process){.id = 12, .name = "a\"b\\c", .bytes = 20 M};
    processes.others[1] = (struct vram_process){.id = 13, .bytes = VRAM_NOT_KNOWN};
    const struct vram_accounts written = {
        .device = 1, .time_us = -5, .context_bytes = 20 M, .module_bytes = VRAM_NOT_KNOWN, .at_start_bytes = 22 M, .processes = &processes};
    struct vr_text text = {0};
    struct told told;
    vr_accounts_text(&written, &text);
    const char *const values[] = {"{\"device\": 0, \"time_us\": -5}", vr_text_string(&text)};
    tell(&told, values, 2);
    assert_null(find(&told, 5, true));
    const struct vram_report_accounts *read = find(&told, -5, false);
    assert_non_null(read);
    assert_true(read->has_context && !read->has_modules && read->has_self && read->has_processes && read->apart);
    assert_int_equal(read->context_bytes, 20 M);
    assert_int_equal(read->driver_bytes, 15 M);
    assert_int_equal(read->other_bytes, 20 M);
    assert_int_equal(read->at_start_bytes, 22 M);
    assert_int_equal(read->left_out, 3);
    assert_int_equal(read->process_count, 2);
    assert_string_equal(read->processes[0].name, "a\"b\\c");
    assert_int_equal(read->processes[1].bytes, UINT64_MAX);
    forget(&told);
    vr_text_release(&text);
}

static void without_a_time_they_are_of_the_last_event(void **state) {
    (void)state;
    struct told told;
    assert_non_null(find_one(&told, "{\"device\":1,\"why\":\"\\u001b[31m no\\n\\\"library\\\"\"}"));
    const struct vram_report_accounts *accounts = find(&told, 7, true);
    assert_false(accounts->has_processes || accounts->has_self || accounts->has_context);
    assert_string_equal(accounts->why, "?[31m no?\"library\"");
    assert_int_equal(accounts->unknown_bytes, 100 M);
    assert_null(find(&told, 7, false));
    forget(&told);
}

static void members_stand_in_any_order(void **state) {
    (void)state;
    struct told told;
    const struct vram_report_accounts *accounts = find_one(&told, "{\"processes\":[{\"bytes\":5,\"name\":\"a\",\"pid\":1},7,{\"pid\":2,"
                                                                  "\"more\":{\"bytes\":9},\"bytes\":7}],\"more\":[[1]],\"device\":1}");
    assert_non_null(accounts);
    assert_int_equal(accounts->process_count, 2);
    assert_int_equal(accounts->processes[0].bytes, 5);
    assert_string_equal(accounts->processes[0].name, "a");
    assert_int_equal(accounts->processes[1].bytes, 7);
    assert_string_equal(accounts->processes[1].name, "");
    forget(&told);
}

static void nobody_gets_more_than_there_is(void **state) {
    (void)state;
    static const char *const values[] = {
        ("{\"device\":1,\"context_bytes\":999999999999,\"module_bytes\":999999999999,\"self_bytes\":999999999999,\"has_self\":true,"
         "\"processes\":[{\"pid\":1,\"bytes\":999999999999}]}"),
        "{\"device\":1,\"processes\":[{\"pid\":1,\"bytes\":99999999999999999999999},{\"pid\":2,\"bytes\":-4},{\"pid\":3,\"bytes\":1e5}]}",
        "{\"device\":1,\"self_bytes\":0,\"has_self\":true,\"processes\":[]}"};
    for (size_t i = 0; i < VR_COUNT_OF(values); i++) {
        struct told told;
        assert_non_null(find_one(&told, values[i])); // find() checks the sum
        forget(&told);
    }
}

static void what_is_no_account_is_none(void **state) {
    (void)state;
    static const char *const values[] = {"",
                                         "null",
                                         "\"device\":1",
                                         "{}",
                                         "{\"device\"",
                                         "{\"device\":",
                                         "{\"device\":2}",
                                         "{\"device\":\"1\"}",
                                         "{\"other\":{\"device\":1}}",
                                         "{\"device\":1} {}",
                                         "{\"device\":1,\"time_us\":}",
                                         "{\"device\":99999999999999999999}"};
    for (size_t i = 0; i < VR_COUNT_OF(values); i++) {
        struct told told;
        assert_null(find_one(&told, values[i]));
        forget(&told);
    }
}

// Reads every prefix of a value, as in a truncated or forged file.
static void beginnings_do_no_harm(void **state) {
    (void)state;
    static const char whole[] =
        "{\"device\":1,\"has_self\": true,\"why\":\"a\\\"\\u00e9\\\\\",\"processes\" : [ {\"pid\":1,\"name\":\"\\\\\\\"\","
        "\"bytes\":null}, {\"bytes\":5,\"pid\"";
    for (size_t length = 0; length < sizeof whole; length++) {
        char value[sizeof whole];
        struct told told;
        memcpy(value, whole, length);
        value[length] = '\0';
        (void)find_one(&told, value);
        forget(&told);
    }
}

static void a_long_list_is_cut(void **state) {
    (void)state;
    struct vr_text text = {0};
    struct told told;
    vr_text_puts(&text, "{\"device\":1,\"has_self\":true,\"processes\":[");
    for (int i = 0; i < 5000; i++) vr_text_puts(&text, "{\"pid\":5,\"name\":\"x\",\"bytes\":1},");
    vr_text_puts(&text, "{}]}");
    const struct vram_report_accounts *accounts = find_one(&told, vr_text_string(&text));
    assert_non_null(accounts);
    assert_int_equal(accounts->process_count, VRAM_MOST_PROCESSES);
    forget(&told);
    vr_text_release(&text);
}

// Checks a program that has 100 of 1000 MiB, of which `free_bytes` are free, and asks for 400 more.
static void expect_cause(uint64_t free_bytes, const char *accounts, enum vram_report_oom_cause cause, const char *text,
                         const char *advice) {
    char json[1024];
    struct vram_recording *recording = NULL;
    struct vram_report *report = NULL;
    struct vram_error error = {.message = ""};
    (void)snprintf(json, sizeof json,
                   "{\"segments\": [], \"allocator_settings\": {\"vram_run_process\": 7, \"vram_device_0_total_bytes\": 1048576000, "
                   "\"vram_accounts_9\": {\"device\": 0, %s}}, \"device_traces\": [["
                   "{\"action\": \"alloc\", \"addr\": 1048576000, \"size\": 104857600, \"stream\": 0},"
                   "{\"action\": \"oom\", \"device_free\": %llu, \"size\": 419430400, \"stream\": 0}]]}",
                   accounts, (unsigned long long)free_bytes);
    if (vram_recording_read_memory(json, strlen(json), NULL, &recording, &error) != VRAM_OK) fail_msg("%s", error.message);
    assert_int_equal(vram_report_create(recording, NULL, &report, NULL), VRAM_OK);
    const struct vram_report_oom *oom = &report->devices[0].ooms[0];
    assert_int_equal(oom->cause, cause);
    assert_string_equal(oom->text, text);
    assert_string_equal(oom->advice, advice);
    vram_report_destroy(report);
    vram_recording_destroy(recording);
}

static void the_cause_names_whose_it_was(void **state) {
    (void)state;
    expect_cause(100 M, "\"why\": \"\"", VRAM_OOM_OUTSIDE, "800.0 MiB of the device was held outside the recording; its owner is not known",
                 "`nvidia-smi` lists other processes");
    expect_cause(100 M,
                 "\"has_self\": true, \"self_bytes\": null, \"processes\": [{\"pid\": 4711, \"name\": \"x\\ny\", \"bytes\": 629145600}]",
                 VRAM_OOM_OUTSIDE, "process 4711 (x?y) held 600.0 MiB of the device",
                 "end the other processes, or give this process its own device");
    expect_cause(
        100 M,
        "\"context_bytes\": 104857600, \"has_self\": true, \"processes\": [{\"pid\": 1, \"bytes\": 104857600}, {\"pid\": 2, \"bytes\": "
        "1048576}]",
        VRAM_OOM_OUTSIDE,
        "800.0 MiB of the device was held outside the recording: 101.0 MiB by other processes, 100.0 MiB by the driver for this process, "
        "599.0 MiB by an unknown owner",
        "`nvidia-smi` lists other processes");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_written_is_read),   cmocka_unit_test(without_a_time_they_are_of_the_last_event),
        cmocka_unit_test(members_stand_in_any_order), cmocka_unit_test(nobody_gets_more_than_there_is),
        cmocka_unit_test(what_is_no_account_is_none), cmocka_unit_test(beginnings_do_no_harm),
        cmocka_unit_test(a_long_list_is_cut),         cmocka_unit_test(the_cause_names_whose_it_was),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
