// Tests the format of sizes, counts, tables and JSON.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <math.h>

#include "base/json.h"

static const struct vram_style plain = {.columns = 60};
static const struct vram_style rich = {.columns = 60, .colour = true, .unicode = true};

static void values(void **state) {
    (void)state;
    static const struct {
        uint64_t bytes;
        const char *text;
    } sizes[] = {{0, "0 B"},           {1023, "1023 B"},       {1024, "1.0 KiB"},          {1536, "1.5 KiB"},
                 {1048575, "1.0 MiB"}, {20971520, "20.0 MiB"}, {85899345920u, "80.0 GiB"}, {UINT64_MAX, "16.0 EiB"}};
    for (size_t i = 0; i < VR_COUNT_OF(sizes); i++) assert_string_equal(vr_bytes(sizes[i].bytes).text, sizes[i].text);
    assert_string_equal(vr_count(0).text, "0");
    assert_string_equal(vr_count(999).text, "999");
    assert_string_equal(vr_count(1000).text, "1,000");
    assert_string_equal(vr_count(UINT64_MAX).text, "18,446,744,073,709,551,615");
    assert_string_equal(vr_duration_ns(850).text, "850 ns");
    assert_string_equal(vr_duration_ns(71754000).text, "71.8 ms");
    assert_string_equal(vr_duration_ns(2038860000).text, "2.04 s");
    assert_string_equal(vr_duration_ns(192000000000).text, "3m 12s");
    assert_string_equal(vr_duration_ns(7500000000000).text, "2h 05m");
    assert_string_equal(vr_percent(1, 8).text, "12.5 %");
    assert_string_equal(vr_percent(1, 100000).text, "<0.1 %");
    assert_string_equal(vr_percent(1, 0).text, "-");
}

static void foreign_text_cannot_steer_a_terminal(void **state) {
    (void)state;
    struct vr_text text = {0};
    const char bytes[] = "a\033[31m\x7F\xC2\x9B\xFF\xED\xA0\x80z\xC3\xA4";
    vr_text_printable(&text, bytes, sizeof bytes - 1);
    assert_string_equal(vr_text_string(&text), "a?[31m??\xEF\xBF\xBD\xEF\xBF\xBDz\xC3\xA4");
    vr_text_release(&text);
}

// A right-to-left override and a line separator, which a terminal would obey.
static void foreign_text_cannot_change_the_order_of_what_is_read(void **state) {
    (void)state;
    struct vr_text text = {0};
    const char bytes[] = "a\xE2\x80\xAE"
                         "b\xE2\x80\xA8"
                         "c\xE2\x81\xA6"
                         "d\xD8\x9C\xE2\x80\x8B";
    vr_text_printable(&text, bytes, sizeof bytes - 1);
    assert_string_equal(vr_text_string(&text), "a\xE2\x9F\xA8U+202E\xE2\x9F\xA9"
                                               "b\xE2\x9F\xA8U+2028\xE2\x9F\xA9"
                                               "c\xE2\x9F\xA8U+2066\xE2\x9F\xA9"
                                               "d\xE2\x9F\xA8U+061C\xE2\x9F\xA9\xE2\x80\x8B");
    vr_text_release(&text);
}

static void bars(void **state) {
    (void)state;
    struct vr_text text = {0};
    vr_text_bar(&text, &plain, 1, 2, 4);
    vr_text_puts(&text, "|");
    vr_text_bar(&text, &rich, 3, 16, 2);
    vr_text_puts(&text, "|");
    vr_text_bar(&text, &plain, 1, 1000000, 3);
    vr_text_puts(&text, "|");
    vr_text_bar(&text, &plain, 5, 4, 2);
    assert_string_equal(vr_text_string(&text), "##  |▍ |#  |##");
    vr_text_release(&text);
}

static void table_aligns_and_cuts_the_flexible_column(void **state) {
    (void)state;
    static const struct vr_table_column columns[] = {{"bytes", VR_RIGHT, VR_PLAIN, false}, {"site", VR_LEFT, VR_PLAIN, true}};
    struct vr_table table;
    struct vr_text text = {0};
    vr_table_init(&table, columns, 2);
    vr_table_cell(&table, "%d", 7);
    vr_table_cell(&table, "short");
    vr_table_cell(&table, "%d", 1234567);
    vr_table_cell(&table, "%s", "0123456789012345678901234567890123456789012345678901234567890123");
    vr_table_print(&table, &text, &plain, 2);
    assert_string_equal(vr_text_string(&text), "    bytes  site\n"
                                               "        7  short\n"
                                               "  1234567  ...8901234567890123456789012345678901234567890123\n");
    vr_table_release(&table);
    vr_text_release(&text);
}

static void json_nests_and_escapes(void **state) {
    (void)state;
    struct vr_text text = {0};
    struct vr_json json;
    vr_json_init(&json, &text, false);
    vr_json_object(&json, NULL);
    vr_json_u64(&json, "max", UINT64_MAX);
    vr_json_i64(&json, "min", INT64_MIN);
    vr_json_array(&json, "list");
    vr_json_array(&json, NULL);
    vr_json_array_end(&json);
    vr_json_bool(&json, NULL, true);
    vr_json_null(&json, NULL);
    vr_json_array_end(&json);
    vr_json_string_bytes(&json, "s", "a\"\\\n\x01/\xC3\xA4\xF0\x9F\x98\x80\xED\xA0\x80\xFF\0z", 18);
    vr_json_string(&json, "none", NULL);
    vr_json_raw(&json, "raw", "{}");
    vr_json_object_end(&json);
    assert_string_equal(vr_text_string(&text), "{\"max\": 18446744073709551615, \"min\": -9223372036854775808, \"list\": [[], true, null], "
                                               "\"s\": \"a\\\"\\\\\\n\\u0001/\\u00e4\\ud83d\\ude00\\ud800\\ufffd\\u0000z\", "
                                               "\"none\": null, \"raw\": {}}");
    assert_int_equal(vr_text_status(&text), VRAM_OK);
    vr_text_release(&text);
}

static void json_doubles_read_back(void **state) {
    (void)state;
    static const double doubles[] = {0.0, 0.1, 1.0 / 3.0, 1e300, 5e-324, -2.5, 123456789012345680.0, 0.30000000000000004};
    for (size_t i = 0; i < VR_COUNT_OF(doubles); i++) {
        struct vr_text text = {0};
        struct vr_json json;
        vr_json_init(&json, &text, true);
        vr_json_double(&json, NULL, doubles[i]);
        assert_true(strtod(vr_text_string(&text), NULL) == doubles[i]);
        vr_text_release(&text);
    }
    struct vr_text text = {0};
    struct vr_json json;
    vr_json_init(&json, &text, true);
    vr_json_array(&json, NULL);
    vr_json_double(&json, NULL, 0.1);
    vr_json_double(&json, NULL, (double)INFINITY);
    vr_json_double(&json, NULL, (double)NAN);
    vr_json_array_end(&json);
    assert_string_equal(vr_text_string(&text), "[\n 0.1,\n null,\n null\n]");
    vr_text_release(&text);
}

static void the_width_of_a_line(void **state) {
    (void)state;
    assert_int_equal(vr_style_columns(&(struct vram_style){0}), 100);
    assert_int_equal(vr_style_columns(&(struct vram_style){.columns = 10}), 60);
    assert_int_equal(vr_style_columns(&(struct vram_style){.columns = 81}), 81);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_width_of_a_line),
        cmocka_unit_test(values),
        cmocka_unit_test(foreign_text_cannot_steer_a_terminal),
        cmocka_unit_test(foreign_text_cannot_change_the_order_of_what_is_read),
        cmocka_unit_test(bars),
        cmocka_unit_test(table_aligns_and_cuts_the_flexible_column),
        cmocka_unit_test(json_nests_and_escapes),
        cmocka_unit_test(json_doubles_read_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
