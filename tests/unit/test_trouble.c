// Tests which device an answer is about if none is named: one rule for reports, profiles, leaks, comparisons and queries.
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "vram/explorer.h"
#include "vram/profile.h"
#include "vram/recording.h"
#include "vram/report.h"

#define MIB (1ull << 20)

static bool collect(void *user, const char *bytes, size_t length) {
    vr_text_append(user, bytes, length);
    return true;
}

struct device {
    unsigned events; // pairs of small allocations and frees
    unsigned mib;    // size of one allocation that stays
    unsigned ooms;
};

static struct vram_recording *recording_of(const struct device *devices, size_t count) {
    struct vr_text json = {0};
    struct vram_recording *recording = NULL;
    struct vram_error error = {.status = VRAM_OK};
    vr_text_puts(&json, "{\"segments\": [], \"device_traces\": [");
    for (size_t d = 0; d < count; d++) {
        vr_text_printf(&json, "%s[{\"action\": \"alloc\", \"addr\": 4096, \"size\": %llu, \"stream\": 0}", d == 0 ? "" : ", ",
                       devices[d].mib * MIB);
        for (unsigned i = 0; i < devices[d].events; i++) {
            static const char *const actions[] = {"alloc", "free_requested", "free_completed"};
            for (size_t a = 0; a < 3; a++)
                vr_text_printf(&json, ", {\"action\": \"%s\", \"addr\": 1099511627776, \"size\": 512, \"stream\": 0}", actions[a]);
        }
        for (unsigned i = 0; i < devices[d].ooms; i++)
            vr_text_puts(&json, ", {\"action\": \"oom\", \"size\": 1073741824, \"stream\": 0, \"device_free\": 0}");
        // A program that ends frees everything.
        vr_text_printf(
            &json,
            ", {\"action\": \"free_requested\", \"addr\": 4096, \"size\": %llu, \"stream\": 0}, {\"action\": \"free_completed\", "
            "\"addr\": 4096, \"size\": %llu, \"stream\": 0}]",
            devices[d].mib * MIB, devices[d].mib * MIB);
    }
    vr_text_puts(&json, "]}");
    if (vram_recording_read_memory(json.bytes, json.length, "devices", &recording, &error) != VRAM_OK) fail_msg("%s", error.message);
    vr_text_release(&json);
    return recording;
}

// Returns the value of "device" in a piece of JSON.
static uint32_t device_in(const struct vr_text *json) {
    const char *at = strstr(json->bytes, "\"device\":");
    assert_non_null(at);
    return (uint32_t)strtoul(at + strlen("\"device\":"), NULL, 10);
}

static void assert_answers_are_about(struct vram_recording *recording, uint32_t device, const char *named) {
    const struct vram_profile_options options = {.device = -1};
    struct vram_report *report = NULL;
    struct vr_text text = {0}, json = {0}, leaks = {0}, flame = {0}, answer = {0};
    assert_int_equal(VRAM_OK, vram_report_create(recording, NULL, &report, NULL));
    assert_int_equal(vram_report_worst_device(report)->device, device);
    assert_int_equal(VRAM_OK, vram_profile_text(recording, &options, "x", NULL, collect, &text, NULL));
    assert_non_null(strstr(vr_text_string(&text), named));
    assert_int_equal(VRAM_OK, vram_profile_json(recording, &options, "x", collect, &json, NULL));
    assert_int_equal(device_in(&json), device);
    assert_int_equal(VRAM_OK, vram_leaks_json(recording, &options, "x", collect, &leaks, NULL, NULL));
    assert_int_equal(device_in(&leaks), device);
    assert_int_equal(VRAM_OK, vram_flame_svg(recording, NULL, &options, "x", collect, &flame, NULL));
    assert_non_null(strstr(vr_text_string(&flame), named));
    struct vram_explorer *explorer = NULL;
    assert_int_equal(VRAM_OK, vram_explorer_create(&explorer));
    assert_int_equal(VRAM_OK, vram_explorer_add(explorer, recording, "x", 0, NULL));
    char query[64];
    struct vr_text by_number = {0};
    (void)snprintf(query, sizeof query, "groups?by=site&device=%u", (unsigned)device);
    assert_int_equal(VRAM_OK, vram_explorer_ask(explorer, "groups?by=site", collect, &answer, NULL));
    assert_int_equal(VRAM_OK, vram_explorer_ask(explorer, query, collect, &by_number, NULL));
    assert_int_equal(answer.length, by_number.length);
    assert_memory_equal(answer.bytes, by_number.bytes, answer.length);
    vr_text_release(&by_number);
    vram_explorer_destroy(explorer);
    vram_report_destroy(report);
    struct vr_text *const texts[] = {&text, &json, &leaks, &flame, &answer};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) vr_text_release(texts[i]);
}

// The explorer takes ownership of the recording.
static void trouble_comes_first(void **state) {
    (void)state;
    static const struct {
        struct device devices[3];
        uint32_t wanted;
        const char *named;
    } cases[] = {
        {{{.events = 50, .mib = 1}, {.events = 1, .mib = 10}, {.events = 2, .mib = 5}}, 1, "device 1 (highest peak)"},
        {{{.events = 50, .mib = 90}, {.events = 1, .mib = 10}, {.events = 2, .mib = 5, .ooms = 1}}, 2, "device 2 (out of memory)"},
        {{{.events = 5, .mib = 90, .ooms = 1}, {.events = 1, .mib = 10, .ooms = 3}, {.events = 2, .mib = 5}},
         1,
         "device 1 (out of memory)"},
        {{{.events = 5, .mib = 10, .ooms = 1}, {.events = 1, .mib = 5, .ooms = 1}, {.events = 2, .mib = 70, .ooms = 1}},
         2,
         "device 2 (out of memory)"},
        {{{.events = 5, .mib = 10}, {.events = 9, .mib = 10}, {.events = 2, .mib = 10}}, 1, "device 1 (most events)"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_answers_are_about(recording_of(cases[i].devices, 3), cases[i].wanted, cases[i].named);
}

static void the_only_device_has_no_reason(void **state) {
    (void)state;
    const struct device one = {.events = 3, .mib = 4, .ooms = 1};
    assert_answers_are_about(recording_of(&one, 1), 0, "device 0, ");
}

// Both sides of a comparison are about one device, which ran out of memory on either side.
static void a_comparison_is_about_one_device(void **state) {
    (void)state;
    const struct device failed[] = {{.events = 3, .mib = 90}, {.events = 3, .mib = 10, .ooms = 1}},
                        mended[] = {{.events = 3, .mib = 90}, {.events = 3, .mib = 5}};
    for (unsigned first = 0; first < 2; first++) {
        struct vram_recording *sides[] = {recording_of(failed, 2), recording_of(mended, 2)};
        const struct vram_diff diff = {
            .recording = {sides[first], sides[1 - first]}, .title = {"a", "b"}, .options = {{.device = -1}, {.device = -1}}};
        struct vr_text text = {0};
        struct vram_diff_result result;
        assert_int_equal(VRAM_OK, vram_diff_text(&diff, NULL, collect, &text, &result, NULL));
        assert_int_equal(result.bytes[first], 10 * MIB + 512);
        assert_int_equal(result.bytes[1 - first], 5 * MIB + 512);
        assert_null(strstr(vr_text_string(&text), "device 0"));
        assert_non_null(strstr(vr_text_string(&text), first == 0 ? "change  -5.0 MiB, -50.0 %\n" : "change  +5.0 MiB, +100.0 %\n"));
        vr_text_release(&text);
        for (unsigned i = 0; i < 2; i++) vram_recording_destroy(sides[i]);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(trouble_comes_first),
        cmocka_unit_test(the_only_device_has_no_reason),
        cmocka_unit_test(a_comparison_is_about_one_device),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
