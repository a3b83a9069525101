// Tests settings in snapshots: their values, the defaults, and how a replay reads them.
#include <locale.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>

#include "config/recorded_options.h"
#include "model/recording.h"
#include "support/decimal_comma.h"
#include "vram/options.h"

static struct vr_options parsed(const char *text) {
    struct vr_options options;
    vr_options_init(&options);
    assert_int_equal(vr_options_parse(&options, text, NULL), VRAM_OK);
    return options;
}

// Makes a recording that has only settings: the members of a JSON object.
static struct vram_recording *recording_of(const char *settings) {
    struct vr_text text = {0};
    struct vram_recording *recording = NULL;
    vr_text_printf(&text, "{\"segments\": [], \"device_traces\": [[]], \"allocator_settings\": {%s}}", settings);
    assert_int_equal(vr_text_status(&text), VRAM_OK);
    assert_int_equal(vram_recording_read_memory(text.bytes, text.length, "settings", &recording, NULL), VRAM_OK);
    vr_text_release(&text);
    return recording;
}

static void assert_conf(const char *settings, const char *want) {
    struct vram_recording *recording = recording_of(settings);
    struct vr_text conf = {0};
    vr_recorded_conf(vr_recording_model(recording), &conf);
    assert_string_equal(vr_text_string(&conf), want);
    vr_text_release(&conf);
    vram_recording_destroy(recording);
}

static enum vram_status add_member(const char *key, const char *json, size_t length, void *user) {
    assert_int_equal(strlen(json), length);
    vr_text_printf(user, "%s\"%s\": %s", ((struct vr_text *)user)->length == 0 ? "" : ", ", key, json);
    return VRAM_OK;
}

// Every setting that affects placement is read back, by its recorded key or, without one, from the option string.
static void what_places_comes_back(void **state) {
    (void)state;
    static const char *const confs[] = {
        "",
        "max_split_size_mb:32",
        "large_segment_size_mb:32,max_split_size_mb:48,max_non_split_rounding_mb:64",
        "garbage_collection_threshold:0.8",
        "garbage_collection_threshold:0.000125",
        "roundup_power2_divisions:8",
        "roundup_power2_divisions:[64:8,256:4,1024:4,>:1]",
        "expandable_segments:True",
        "max_split_size_mb:32,roundup_power2_divisions:4,expandable_segments:True,release_lock_on_cudamalloc:True",
    };
    for (size_t i = 0; i < VR_COUNT_OF(confs); i++) {
        const struct vr_options options = parsed(confs[i]);
        struct vr_text settings = {0}, printed = {0};
        vr_options_print(&options, &printed);
        assert_int_equal(vr_recorded_visit(&options, add_member, &settings), VRAM_OK);
        vr_text_printf(&settings, ", \"PYTORCH_CUDA_ALLOC_CONF\": \"%s\"", confs[i]);
        assert_conf(settings.bytes, vr_text_string(&printed));
        vr_text_release(&settings);
        vr_text_release(&printed);
    }
}

static void structured_values_win(void **state) {
    (void)state;
    assert_conf("", "");
    assert_conf("\"PYTORCH_ALLOC_CONF\": \"max_split_size_mb:64,pinned_free_catch_all:True\"", "max_split_size_mb:64");
    assert_conf("\"PYTORCH_CUDA_ALLOC_CONF\": \"max_split_size_mb:64\", \"max_split_size\": -1", "");
    assert_conf("\"PYTORCH_CUDA_ALLOC_CONF\": \"max_split_size_mb:64\", \"max_split_size\": 9223372036854775807", "");
    assert_conf("\"PYTORCH_CUDA_ALLOC_CONF\": \"of_the_future:1\", \"expandable_segments\": true", "expandable_segments:True");
    assert_conf("\"PYTORCH_CUDA_ALLOC_CONF\": \"expandable_segments:True\", \"expandable_segments\": false", "");
    assert_conf("\"PYTORCH_CUDA_ALLOC_CONF\": \"expandable_segments:True\", \"expandable_segments\": null", "expandable_segments:True");
    assert_conf("\"roundup_power2_divisions\": {\"1\": 1, \"2\": 0}", "");
    assert_conf("\"roundup_power2_divisions\": {\"3\": 4}", "");
    assert_conf("\"garbage_collection_threshold\": 0.60000002384185791", "garbage_collection_threshold:0.6");
    assert_conf("\"garbage_collection_threshold\": 1.0", "");
    assert_conf("\"garbage_collection_threshold\": -0.5", "");
    assert_conf("\"garbage_collection_threshold\": 1.5, \"max_split_size\": [1]", "");
    assert_conf("\"garbage_collection_threshold\": \"half\", \"max_split_size\": 5", "");
}

static void usual_values_are_known(void **state) {
    (void)state;
    static const struct {
        const char *key, *value;
        bool usual;
    } rows[] = {
        {"PYTORCH_CUDA_ALLOC_CONF", "\"\"", true},
        {"PYTORCH_CUDA_ALLOC_CONF", "\"backend:native\"", false},
        {"max_split_size", "-1", true},
        {"max_split_size", "9223372036854775807", true},
        {"max_split_size", "33554432", false},
        {"max_split_size", "\"x\"", false},
        {"garbage_collection_threshold", "0.0", true},
        {"garbage_collection_threshold", "0", true},
        {"garbage_collection_threshold", "0.8", false},
        {"expandable_segments", "false", true},
        {"expandable_segments", "true", false},
        {"expandable_segments", "null", false},
        {"pinned_num_register_threads", "1", true},
        {"pinned_num_register_threads", "4", false},
        {"pinned_max_round_threshold", "0", false},
        {"roundup_power2_divisions", "{\"1\": 0, \"2\": 1}", true},
        {"roundup_power2_divisions", "{\"1\": 0, \"2\": 4}", false},
        {"trace_alloc_overflowed", "true", false},
        {"trace_alloc_max_entries", "9223372036854775807", true},
        {"of_the_future", "0", false},
    };
    for (size_t i = 0; i < VR_COUNT_OF(rows); i++)
        if (vr_recorded_is_usual(rows[i].key, rows[i].value) != rows[i].usual) fail_msg("%s: %s", rows[i].key, rows[i].value);
}

static enum vram_status is_known(const char *key, const char *json, size_t length, void *user) {
    struct vr_recorded_key known = {0};
    (void)length;
    (void)user;
    assert_true(vr_recorded_find(key, &known));
    assert_true(known.meaning != NULL && known.meaning[0] != '\0');
    assert_string_equal(known.usual, json);
    assert_true(vr_recorded_is_usual(key, json));
    return VRAM_OK;
}

static void defaults_are_usual(void **state) {
    (void)state;
    struct vr_options options;
    struct vr_recorded_key known = {.meaning = "untouched"};
    vr_options_init(&options);
    assert_int_equal(vr_recorded_visit(&options, is_known, NULL), VRAM_OK);
    assert_false(vr_recorded_find("max_split_size_mb", &known)); // the option's name, not the recorded one
    assert_string_equal(known.meaning, "untouched");
    assert_true(vr_recorded_find("last_allocator_settings", &known));
}

// A program may have set a locale with a decimal comma.
static void numbers_ignore_the_locale(void **state) {
    (void)state;
    if (!begin_decimal_comma()) skip();
    assert_conf("\"garbage_collection_threshold\": 0.75", "garbage_collection_threshold:0.75");
    assert_non_null(setlocale(LC_NUMERIC, "C"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_places_comes_back), cmocka_unit_test(structured_values_win),     cmocka_unit_test(usual_values_are_known),
        cmocka_unit_test(defaults_are_usual),     cmocka_unit_test(numbers_ignore_the_locale),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
