// Compares columns of a recording with its rows.
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <cmocka.h>

#include "vram/columns.h"

static const char file[] =
    "{\"segments\": [{\"device\": 1, \"address\": 4096, \"total_size\": 2048, \"segment_type\": \"small\", \"stream\": 7, \"blocks\": ["
    "{\"size\": 512, \"state\": \"active_allocated\", \"frames\": [{\"name\": \"f\", \"filename\": \"x.py\", \"line\": 3}]},"
    "{\"size\": 1536, \"state\": \"inactive\"}]}],"
    "\"device_traces\": [[], [{\"action\": \"segment_alloc\", \"addr\": 4096, \"size\": 2048, \"stream\": 7, \"time_us\": 5},"
    "{\"action\": \"alloc\", \"addr\": 4096, \"size\": 500, \"stream\": 7, \"time_us\": 6, \"frames\": [{\"name\": \"f\", \"filename\": "
    "\"x.py\", "
    "\"line\": 3}]}, {\"action\": \"something\", \"addr\": 1, \"size\": 2, \"stream\": 0, \"time_us\": 7}]]}";

static struct vram_recording *read_it(void) {
    struct vram_recording *recording = NULL;
    struct vram_error error;
    if (vram_recording_read_memory(file, sizeof file - 1, "f", &recording, &error) != VRAM_OK) fail_msg("%s", error.message);
    return recording;
}

static struct vram_column find(const struct vram_recording *recording, enum vram_rows table, const char *name) {
    struct vram_column column;
    for (uint32_t i = 0; vram_recording_column(recording, table, 1, i, &column); i++) {
        if (strcmp(column.name, name) == 0) return column;
    }
    fail_msg("no column %s", name);
    return column;
}

static uint64_t value(const struct vram_column *column, uint64_t row) {
    assert_true(row < column->count);
    switch (column->type) {
    case VRAM_COLUMN_UINT8: return ((const uint8_t *)column->values)[row] ^ column->common;
    case VRAM_COLUMN_UINT32: return ((const uint32_t *)column->values)[row] ^ column->common;
    case VRAM_COLUMN_INT64: return (uint64_t)((const int64_t *)column->values)[row] ^ column->common;
    default: return ((const uint64_t *)column->values)[row] ^ column->common;
    }
}

static void events_are_their_rows(void **state) {
    (void)state;
    struct vram_recording *recording = read_it();
    const struct vram_column action = find(recording, VRAM_ROWS_EVENTS, "action"), size = find(recording, VRAM_ROWS_EVENTS, "size_bytes"),
                             stream = find(recording, VRAM_ROWS_EVENTS, "stream"), time = find(recording, VRAM_ROWS_EVENTS, "time_us"),
                             other = find(recording, VRAM_ROWS_EVENTS, "unknown_action"),
                             stack = find(recording, VRAM_ROWS_EVENTS, "stack");
    struct vram_recorded_event row;
    assert_int_equal(action.count, 3);
    for (uint64_t i = 0; vram_recording_event(recording, 1, i, &row); i++) {
        uint64_t length;
        const char *word = vram_column_word(action.meaning, (uint32_t)value(&action, i));
        if (value(&other, i) != 0) word = vram_recording_string(recording, (uint32_t)value(&other, i), &length);
        assert_string_equal(word, row.action);
        assert_int_equal(value(&size, i), row.size_bytes);
        assert_int_equal(value(&stream, i), row.stream);
        assert_int_equal((int64_t)value(&time, i), row.time_us);
        assert_int_equal(value(&stack, i), row.stack);
    }
    vram_recording_destroy(recording);
}

static void pictures_and_stacks(void **state) {
    (void)state;
    struct vram_recording *recording = read_it();
    const struct vram_column kind = find(recording, VRAM_ROWS_SEGMENTS, "kind"), state_of = find(recording, VRAM_ROWS_BLOCKS, "state"),
                             first = find(recording, VRAM_ROWS_STACKS, "first_frame"),
                             frame = find(recording, VRAM_ROWS_STACK_FRAMES, "frame"), stack = find(recording, VRAM_ROWS_BLOCKS, "stack"),
                             line = find(recording, VRAM_ROWS_FRAMES, "line"), filename = find(recording, VRAM_ROWS_FRAMES, "filename");
    uint64_t length = 0;
    assert_string_equal(vram_column_word(kind.meaning, (uint32_t)value(&kind, 0)), "small");
    assert_string_equal(vram_column_word(state_of.meaning, (uint32_t)value(&state_of, 1)), "inactive");
    const uint64_t number = value(&stack, 0);
    assert_int_equal(value(&first, number + 1) - value(&first, number), 1);
    const uint64_t innermost = value(&frame, value(&first, number));
    assert_int_equal(value(&line, innermost), 3);
    assert_string_equal(vram_recording_string(recording, (uint32_t)value(&filename, innermost), &length), "x.py");
    assert_int_equal(length, 4);
    assert_int_equal(first.count, vram_recording_stack_count(recording) + 1);
    vram_recording_destroy(recording);
}

static void what_is_not_there(void **state) {
    (void)state;
    struct vram_recording *recording = read_it();
    struct vram_column column = {.name = "kept"};
    uint64_t length = 99;
    assert_false(vram_recording_column(recording, VRAM_ROWS_EVENTS, 2, 0, &column));
    assert_false(vram_recording_column(recording, VRAM_ROWS_BLOCKS, 0, 99, &column));
    assert_false(vram_recording_column(recording, VRAM_ROWS_TABLES, 0, 0, &column));
    assert_string_equal(column.name, "kept");
    assert_null(vram_recording_string(recording, vram_recording_string_count(recording), &length));
    assert_int_equal(length, 99);
    assert_null(vram_column_word(VRAM_COLUMN_ACTION, 1000));
    assert_null(vram_column_word(VRAM_COLUMN_STATE, 1000));
    assert_null(vram_column_word(VRAM_COLUMN_KIND, 1000));
    assert_null(vram_column_word(VRAM_COLUMN_NUMBER, 0));
    // A device without events has columns without rows.
    assert_true(vram_recording_column(recording, VRAM_ROWS_EVENTS, 0, 0, &column));
    assert_int_equal(column.count, 0);
    assert_non_null(column.values);
    vram_recording_destroy(recording);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(events_are_their_rows),
        cmocka_unit_test(pictures_and_stacks),
        cmocka_unit_test(what_is_not_there),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
