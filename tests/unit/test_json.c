// Tests JSON recordings: Python's output, what Python tolerates, and all malformed input.
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <cmocka.h>

#include "model/recording.h"
#include "snapshot/literals.h"

static struct vram_error error;

static struct vram_recording *read_text(const char *text) {
    struct vram_recording *recording = NULL;
    enum vram_status status = vram_recording_read_memory(text, strlen(text), NULL, &recording, &error);
    if (status != VRAM_OK) fail_msg("%s", error.message);
    assert_int_equal(vr_model_check(vr_recording_model(recording), NULL), VRAM_OK);
    return recording;
}

// Checks how the model stores `value` as a setting.
static void expect_setting(const char *value, const char *wanted) {
    char text[1024];
    (void)snprintf(text, sizeof text, " { \"segments\" : [ ] , \"allocator_settings\" : { \"k\" : %s } } \n", value);
    struct vram_recording *recording = read_text(text);
    assert_string_equal(vram_recording_setting(recording, "k"), wanted);
    vram_recording_destroy(recording);
}

static void expect_refused(const char *text, enum vram_status status, uint64_t offset, const char *what) {
    struct vram_recording *recording = NULL;
    assert_int_equal(vram_recording_read_memory(text, strlen(text), NULL, &recording, &error), status);
    if (strstr(error.message, what) == NULL) fail_msg("%s", error.message);
    if (offset != VRAM_NO_OFFSET) assert_int_equal(error.offset, offset);
}

static void values_are_read(void **state) {
    (void)state;
    expect_setting("null", "null");
    expect_setting("true", "true");
    expect_setting("false", "false");
    expect_setting("NaN", "{\"$float\": \"nan\"}");
    expect_setting("-Infinity", "{\"$float\": \"-inf\"}");
    expect_setting("Infinity", "{\"$float\": \"inf\"}");
    expect_setting("-0", "0");
    expect_setting("-1", "-1");
    expect_setting("18446744073709551615", "18446744073709551615");
    expect_setting("-9223372036854775808", "-9223372036854775808");
    expect_setting("0.8", "0.8");
    expect_setting("18446744073709551616", "18446744073709551616");
    expect_setting("-340282366920938463463374607431768211455", "-340282366920938463463374607431768211455");
    expect_setting("1e-3", "0.001");
    expect_setting("123456789.25", "123456789.25");
    expect_setting("[]", "[]");
    expect_setting("{}", "{}");
    expect_setting("[1,[2,{\"x\":[3]}]]", "[1, [2, {\"x\": [3]}]]");
    expect_setting("\"\"", "\"\"");
    expect_setting("\"plain\"", "\"plain\"");
    expect_setting("\"\\\" \\\\ \\/ \\b\\f\\n\\r\\t\"", "\"\\\" \\\\ / \\b\\f\\n\\r\\t\"");
    expect_setting("\"\\u00e9\\u20AC\\ud83d\\ude00\"", "\"\\u00e9\\u20ac\\ud83d\\ude00\"");
    expect_setting("\"\\ud83d\"", "\"\\ud83d\"");
    expect_setting("\"a\\u0000b\"", "\"a\\u0000b\"");
}

static void whole_numbers_may_be_floats(void **state) {
    (void)state;
    struct vram_recording *recording =
        read_text("{\"device_traces\": [[{\"action\": \"alloc\", \"addr\": 1.2e3, \"size\": 5.0, \"stream\": -1, \"time_us\": null}]]}");
    const struct vr_history *history = &vr_recording_model(recording)->histories[0];
    assert_int_equal(history->address[0], 1200);
    assert_int_equal(history->size_bytes[0], 5);
    assert_int_equal(vr_entry_stream(history, 0), UINT64_MAX);
    assert_int_equal(vr_entry_has(history, 0), VR_HAS_ACTION | VR_HAS_ADDRESS | VR_HAS_SIZE | VR_HAS_STREAM);
    vram_recording_destroy(recording);
}

static void times_may_be_fractions(void **state) {
    (void)state;
    struct vram_recording *recording = read_text("{\"device_traces\": [[{\"action\": \"alloc\", \"time_us\": 1760000000000000.75},"
                                                 "{\"action\": \"alloc\", \"time_us\": -0.5}]]}");
    const struct vr_history *history = &vr_recording_model(recording)->histories[0];
    assert_int_equal(history->time_us[0], 1760000000000000);
    assert_int_equal(history->time_us[1], -1);
    vram_recording_destroy(recording);
    expect_refused("{\"device_traces\": [[{\"action\": \"alloc\", \"time_us\": 1e300}]]}", VRAM_BAD_INPUT, VRAM_NO_OFFSET,
                   "`time_us` is a floating-point number; expected a 64-bit integer");
}

// A block's address: `address`, else `addr` (which other tools write), else the end of the previous block; for the first block, the
// segment's address.
static void blocks_say_where_they_are_in_two_ways(void **state) {
    (void)state;
    struct vram_recording *recording =
        read_text("{\"segments\": [{\"address\": 1000, \"blocks\": [{\"size\": 8, \"state\": \"inactive\"},"
                  "{\"size\": 8, \"state\": \"inactive\"}, {\"addr\": 5000, \"size\": 8, \"state\": \"inactive\"},"
                  "{\"size\": 8, \"state\": \"inactive\"}, {\"addr\": 1, \"address\": 7000, \"size\": 8, \"state\": \"inactive\"}]}]}");
    const struct vr_blocks *blocks = &vr_recording_model(recording)->blocks;
    const uint64_t addresses[] = {1000, 1008, 5000, 5008, 7000};
    assert_int_equal(blocks->count, VR_COUNT_OF(addresses));
    for (size_t i = 0; i < VR_COUNT_OF(addresses); i++) assert_int_equal(blocks->address[i], addresses[i]);
    vram_recording_destroy(recording);
}

static void long_lists_and_dictionaries_are_read(void **state) {
    (void)state;
    enum { EVENTS = 2500, SETTINGS = 2500 };
    char *text = malloc(EVENTS * 64 + SETTINGS * 32 + 256), *at = text;
    at += sprintf(at, "{\"device_traces\": [[");
    for (int i = 0; i < EVENTS; i++) at += sprintf(at, "%s{\"action\": \"alloc\", \"size\": %d, \"frames\": []}", i == 0 ? "" : ", ", i);
    at += sprintf(at, "]], \"allocator_settings\": {");
    for (int i = 0; i < SETTINGS; i++) at += sprintf(at, "%s\"k%d\": %d", i == 0 ? "" : ", ", i, i);
    (void)sprintf(at, "}}");
    struct vram_recording *recording = read_text(text);
    const struct vr_model *model = vr_recording_model(recording);
    assert_int_equal(model->histories[0].count, EVENTS);
    for (int i = 0; i < EVENTS; i++) assert_int_equal(model->histories[0].size_bytes[i], i);
    assert_int_equal(model->setting_count, SETTINGS);
    assert_string_equal(vr_model_setting(model, "k2499"), "2499");
    vram_recording_destroy(recording);
    free(text);
}

static void malformed_text_is_refused_with_its_place(void **state) {
    (void)state;
    expect_refused("{", VRAM_BAD_INPUT, 1, "unexpected end of the JSON; expected a key in quotes");
    expect_refused("{\"a\"", VRAM_BAD_INPUT, 4, "unexpected end of the JSON; expected ':'");
    expect_refused("{\"a\" 1}", VRAM_BAD_INPUT, 5, "unexpected '1' in the JSON; expected ':'");
    expect_refused("{\"a\":1,}", VRAM_BAD_INPUT, 7, "unexpected '}' in the JSON; expected a key");
    expect_refused("[1,]", VRAM_BAD_INPUT, 3, "unexpected ']' in the JSON; expected a value");
    expect_refused("[1 2]", VRAM_BAD_INPUT, 3, "unexpected '2' in the JSON; expected ',' or ']'");
    expect_refused("[1}", VRAM_BAD_INPUT, 2, "unexpected '}' in the JSON; expected ',' or ']'");
    expect_refused("{\"a\":1]", VRAM_BAD_INPUT, 6, "unexpected ']' in the JSON; expected ',' or '}'");
    expect_refused("[\"abc", VRAM_BAD_INPUT, 1, "ends inside a string");
    expect_refused("[\"\\", VRAM_BAD_INPUT, 1, "ends inside a string");
    expect_refused("[\"\\x\"]", VRAM_BAD_INPUT, 1, "malformed escape");
    expect_refused("[\"\\u12g4\"]", VRAM_BAD_INPUT, 1, "malformed escape");
    expect_refused("[\"\\u12\"]", VRAM_BAD_INPUT, 1, "malformed escape");
    expect_refused("[\"\xff\"]", VRAM_BAD_INPUT, 1, "not UTF-8");
    expect_refused("[nul]", VRAM_BAD_INPUT, 1, "unexpected 'n' in the JSON; expected a value");
    expect_refused("[\x01]", VRAM_BAD_INPUT, 1, "byte 0x01");
    expect_refused("[1.2.3]", VRAM_BAD_INPUT, 1, "number is malformed");
    expect_refused("[] x", VRAM_BAD_INPUT, 3, "unexpected 'x' in the JSON; expected the end of the file");
    expect_refused("{\"segments\": [{\"a\": 1}]}", VRAM_BAD_INPUT, VRAM_NO_OFFSET,
                   "element 0 of `segments` is a dictionary, not a segment");
    expect_refused("{\"device_traces\": [[{\"a\": 1}]]}", VRAM_BAD_INPUT, VRAM_NO_OFFSET, "is a dictionary, not an event");
}

static void nesting_has_an_end(void **state) {
    (void)state;
    enum { DEPTH = 100000 };
    char *text = malloc(DEPTH + 1);
    memset(text, '[', DEPTH);
    text[DEPTH] = '\0';
    expect_refused(text, VRAM_LIMIT, 500, "nests deeper than 500");
    free(text);
}

static double parse(const char *text) {
    struct vr_numeral number = {0};
    assert_true(vr_numeral_parse(text, strlen(text), &number));
    assert_int_equal(number.kind, VR_NUMERAL_FLOAT);
    return number.real;
}

static void floats_are_what_the_c_library_reads(void **state) {
    static const char *const texts[] = {
        "0.0",   "0.1",    "-2.5",     "3.14159265358979",  "1e22", "1e-22", "123456.789e3", "1e300", "1e-300", "4.9e-324",
        "1e400", "-1e400", "0.000e50", "9007199254740993.0"};
    (void)state;
    for (size_t i = 0; i < VR_COUNT_OF(texts); i++) {
        double ours = parse(texts[i]), theirs = strtod(texts[i], NULL);
        bool close = ours == theirs || (ours - theirs < 1e-15 * theirs && theirs - ours < 1e-15 * theirs);
        if (!close) fail_msg("%s: %.17g, not %.17g", texts[i], ours, theirs);
    }
    static const char *const bad[] = {"", "-", ".", "e5", "1e", "1e+", "1x", "--1", "0x10"};
    struct vr_numeral number;
    for (size_t i = 0; i < VR_COUNT_OF(bad); i++) assert_false(vr_numeral_parse(bad[i], strlen(bad[i]), &number));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_are_read),
        cmocka_unit_test(whole_numbers_may_be_floats),
        cmocka_unit_test(times_may_be_fractions),
        cmocka_unit_test(blocks_say_where_they_are_in_two_ways),
        cmocka_unit_test(long_lists_and_dictionaries_are_read),
        cmocka_unit_test(malformed_text_is_refused_with_its_place),
        cmocka_unit_test(nesting_has_an_end),
        cmocka_unit_test(floats_are_what_the_c_library_reads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
