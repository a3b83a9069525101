// Tests the model: names, the builder's interning, and the check that finds every kind of damage.
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <cmocka.h>

#include "model/builder.h"
#include "model/columns.h"
#include "model/recording.h"

static uint32_t string_id(struct vr_builder *builder, const char *text) {
    uint32_t id = UINT32_MAX;
    assert_int_equal(vr_builder_string(builder, text, strlen(text), &id), VRAM_OK);
    return id;
}

static void names_are_pytorchs(void **state) {
    (void)state;
    assert_string_equal(vr_action_name(VR_ACTION_ALLOC), "alloc");
    assert_string_equal(vr_action_name(VR_ACTION_SEGMENT_UNMAP), "segment_unmap");
    assert_string_equal(vr_action_name((enum vr_action)250), "unknown");
    assert_string_equal(vr_block_state_name(VR_STATE_AWAITING_FREE), "active_awaiting_free");
    assert_string_equal(vr_block_state_name((enum vr_block_state)99), "unknown");
}

static void equal_things_have_one_id(void **state) {
    struct vr_builder builder;
    (void)state;
    assert_int_equal(vr_builder_init(&builder, UINT64_MAX), VRAM_OK);
    assert_int_equal(string_id(&builder, ""), 0);
    char name[16];
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < 5000; i++) {
            (void)snprintf(name, sizeof name, "%d", i);
            assert_int_equal(string_id(&builder, name), i + 1);
        }
    }
    uint32_t with_nul, plain, found;
    assert_int_equal(vr_builder_string(&builder, "a\0b", 3, &with_nul), VRAM_OK);
    assert_int_equal(vr_builder_string(&builder, "a", 1, &plain), VRAM_OK);
    assert_int_not_equal(with_nul, plain);
    assert_true(vr_builder_find_string(&builder, "a", 1, &found));
    assert_int_equal(found, plain);
    assert_false(vr_builder_find_string(&builder, "absent", 6, &found));
    vr_builder_release(&builder);
}

static void frames_and_stacks_are_interned(void **state) {
    struct vr_builder builder;
    struct vr_model model = {0};
    uint32_t frames[3], again, stack, same, longer, none = 7;
    (void)state;
    assert_int_equal(vr_builder_init(&builder, UINT64_MAX), VRAM_OK);
    for (int i = 0; i < 3; i++) {
        uint32_t file = string_id(&builder, i == 2 ? "b.py" : "a.py");
        assert_int_equal(vr_builder_frame(&builder, string_id(&builder, "f"), file, i, &frames[i]), VRAM_OK);
    }
    assert_int_equal(vr_builder_frame(&builder, string_id(&builder, "f"), string_id(&builder, "a.py"), 1, &again), VRAM_OK);
    assert_int_equal(again, frames[1]);
    assert_int_equal(vr_builder_stack(&builder, NULL, 0, &none), VRAM_OK);
    assert_int_equal(none, 0);
    assert_int_equal(vr_builder_stack(&builder, frames, 2, &stack), VRAM_OK);
    assert_int_equal(vr_builder_stack(&builder, frames, 3, &longer), VRAM_OK);
    assert_int_equal(vr_builder_stack(&builder, frames, 2, &same), VRAM_OK);
    assert_int_equal(stack, same);
    assert_int_not_equal(stack, longer);
    vr_builder_finish(&builder, &model);
    assert_int_equal(model.stacks.count, 3);
    assert_int_equal(model.stacks.offset[longer + 1] - model.stacks.offset[longer], 3);
    assert_string_equal(vr_model_string(&model, model.frames.filename[frames[2]]), "b.py");
    vr_model_release(&model);
}

static void a_budget_holds(void **state) {
    struct vr_builder builder;
    enum vram_status status = VRAM_OK;
    uint32_t id, count = 0;
    (void)state;
    assert_int_equal(vr_builder_init(&builder, 100000), VRAM_OK);
    for (; status == VRAM_OK; count++) {
        char name[16];
        (void)snprintf(name, sizeof name, "string %u", count);
        status = vr_builder_string(&builder, name, strlen(name), &id);
        assert_true(builder.budget.used_bytes <= 100000);
    }
    assert_int_equal(status, VRAM_LIMIT);
    assert_true(count > 1000);
    // Existing entries are still there.
    assert_true(vr_builder_find_string(&builder, "string 999", 10, &id));
    vr_builder_release(&builder);
    assert_int_equal(vr_builder_init(&builder, 8), VRAM_LIMIT);
}

static void utf8_is_told_from_other_bytes(void **state) {
    (void)state;
    assert_true(vr_utf8_valid("plain \xc3\xa9 \xf0\x9f\x98\x80 \xed\xa0\x80", 18));
    assert_true(vr_utf8_valid(NULL, 0));
    assert_false(vr_utf8_valid("\xff", 1));
    assert_false(vr_utf8_valid("\xc3", 1));
    assert_false(vr_utf8_valid("\xc0\x80", 2));
}

// A recording with one of everything.
static const char everything[] =
    "{\"segments\":[{\"device\":0,\"address\":4096,\"total_size\":1024,\"segment_type\":\"small\",\"frames\":[{\"name\":\"f\","
    "\"filename\":\"a.py\",\"line\":1}],\"blocks\":[{\"size\":512,\"state\":\"inactive\"},{\"size\":512,\"state\":\"active_allocated\"}]}],"
    "\"device_traces\":[[{\"action\":\"alloc\",\"addr\":4608,\"size\":500,\"stream\":0,\"frames\":[{\"name\":\"f\",\"filename\":\"a.py\","
    "\"line\":1}],\"compile_context\":\"c\",\"user_metadata\":\"m\"},{\"action\":\"strange\"}]],\"allocator_settings\":{\"a\":true},"
    "\"external_annotations\":[{\"name\":\"n\",\"stage\":\"START\",\"device\":0,"
    "\"time_us\":1}]}";

static struct vram_recording *read_everything(void) {
    struct vram_recording *recording = NULL;
    assert_int_equal(vram_recording_read_memory(everything, sizeof everything - 1, NULL, &recording, NULL), VRAM_OK);
    return recording;
}

static void expect_bad(const struct vr_model *model, const char *what) {
    struct vram_error error;
    assert_int_equal(vr_model_check(model, &error), VRAM_BAD_INPUT);
    assert_non_null(strstr(error.message, what));
}

// Damages one value, checks that the check names it, and restores it.
#define DAMAGE(value, wrong, what)                                                                                                         \
    do {                                                                                                                                   \
        __typeof__(value) kept_ = (value);                                                                                                 \
        (value) = (wrong);                                                                                                                 \
        expect_bad(model, (what));                                                                                                         \
        (value) = kept_;                                                                                                                   \
        assert_int_equal(vr_model_check(model, NULL), VRAM_OK);                                                                            \
    } while (0)

static void the_check_finds_every_damage(void **state) {
    (void)state;
    struct vram_recording *recording = read_everything();
    struct vr_model *model = &recording->model;
    assert_int_equal(vr_model_check(model, NULL), VRAM_OK);
    DAMAGE(model->strings.offset[2], model->strings.offset[3] + 1, "string's offset");
    DAMAGE(model->strings.bytes[model->strings.offset[3] - 1], 'x', "string's end");
    DAMAGE(model->frames.name[0], model->strings.count, "frame's name");
    DAMAGE(model->frames.filename[0], model->strings.count, "frame's filename");
    DAMAGE(model->stacks.frame[0], model->frames.count, "stack's frame");
    DAMAGE(model->stacks.offset[1], 1, "empty stack");
    DAMAGE(model->segments.stack[0], model->stacks.count, "segment's stack");
    DAMAGE(model->segments.kind[0], 3, "segment's kind");
    DAMAGE(model->segments.expandable[0], 2, "expandable");
    DAMAGE(model->segments.first_block[1], 3, "end of the blocks");
    DAMAGE(model->blocks.stack[1], 99, "block's stack");
    DAMAGE(model->blocks.state[1], VR_STATE_COUNT, "block's state");
    DAMAGE(model->histories[0].action[0], VR_ACTION_COUNT, "event's action");
    DAMAGE(model->histories[0].stack[0], 99, "event's stack");
    DAMAGE(model->histories[0].context[0], model->strings.count, "an event's context");
    DAMAGE(model->histories[0].metadata[0], model->strings.count, "metadata");
    DAMAGE(model->histories[0].unknown[0], model->strings.count, "action name");
    DAMAGE(model->annotations[0].name, model->strings.count, "annotation");
    DAMAGE(model->settings[0].value, model->strings.count, "setting");
    DAMAGE(model->top_level_keys[0], model->strings.count, "top-level key");
    vram_recording_destroy(recording);
}

static void settings_are_found_by_key(void **state) {
    (void)state;
    struct vram_recording *recording = read_everything();
    assert_string_equal(vr_model_setting(vr_recording_model(recording), "a"), "true");
    assert_null(vr_model_setting(vr_recording_model(recording), "b"));
    vram_recording_destroy(recording);
}

static void columns_grow_together(void **state) {
    struct vr_blocks blocks = {0};
    struct vr_budget budget = {.limit_bytes = 5000};
    size_t capacity = 0;
    (void)state;
    assert_int_equal(vr_columns_grow(&vr_block_columns, &blocks, &capacity, 100, &budget), VRAM_OK);
    assert_true(capacity >= 100);
    for (size_t i = 0; i < 100; i++) {
        blocks.address[i] = i;
        blocks.state[i] = (uint8_t)i;
    }
    assert_int_equal(vr_columns_grow(&vr_block_columns, &blocks, &capacity, 1000, &budget), VRAM_LIMIT);
    assert_int_equal(vr_columns_finish(&vr_block_columns, &blocks, 100), VRAM_OK);
    assert_int_equal(blocks.address[99], 99);
    assert_int_equal(blocks.state[99], 99);
    vr_columns_release(&vr_block_columns, &blocks);
    assert_null(blocks.address);
}

static void columns_without_a_value_are_one_array_of_zeros(void **state) {
    struct vr_history history = {0};
    struct vr_budget budget = {.limit_bytes = UINT64_MAX};
    size_t capacity = 0;
    (void)state;
    assert_int_equal(vr_columns_grow(&vr_history_columns, &history, &capacity, 1000, &budget), VRAM_OK);
    assert_null(history.context);
    history.thread = calloc(capacity, sizeof *history.thread);
    assert_non_null(history.thread);
    assert_int_equal(vr_columns_finish(&vr_history_columns, &history, 900), VRAM_OK);
    assert_ptr_equal(history.context, history.pool_first);
    assert_ptr_equal(history.context, history.unknown);
    assert_ptr_not_equal(history.context, history.thread);
    for (size_t i = 0; i < 900; i++) assert_int_equal(history.pool_first[i], 0);
    vr_columns_release(&vr_history_columns, &history);
    assert_null(history.pool_second);
    // A table without rows also has columns.
    assert_int_equal(vr_columns_finish(&vr_history_columns, &history, 0), VRAM_OK);
    assert_non_null(history.address);
    vr_columns_release(&vr_history_columns, &history);
}

// Rows that are 0, or equal the first, are not written; memory after the last row stays zero while the columns move.
static enum vram_status put_row(struct vr_history *history, size_t held, uint64_t stream, uint32_t thread) {
    const size_t row = history->count++;
    VR_COLUMN_PUT_ALIKE(history->stream, held, history->count, row, stream);
    VR_COLUMN_PUT_SPARSE(history->thread, held, row, thread);
    return VRAM_OK;
}

static void sparse_columns_keep_their_values(void **state) {
    enum { ROWS = 20000 };
    struct vr_history history = {0};
    struct vr_budget budget = {.limit_bytes = UINT64_MAX};
    size_t capacity = 0, held = 0;
    (void)state;
    for (uint32_t i = 0; i < ROWS; i++) {
        assert_int_equal(vr_columns_grow_ahead(&vr_history_columns, &history, &capacity, &held, i + 1, &budget), VRAM_OK);
        if (i == ROWS / 4) assert_true(history.stream.apart == NULL && history.thread == NULL);
        assert_int_equal(put_row(&history, held, i > ROWS / 4 && i % 1000 == 7 ? i : 77, i > ROWS / 3 && i % 3000 == 5 ? i : 0), VRAM_OK);
    }
    for (size_t i = ROWS; i < held; i++) assert_true(history.stream.apart[i] == 0 && history.thread[i] == 0);
    assert_int_equal(vr_columns_finish(&vr_history_columns, &history, ROWS), VRAM_OK);
    assert_false(vr_entries_alike(&history));
    for (uint32_t i = 0; i < ROWS; i++) {
        assert_int_equal(vr_entry_stream(&history, i), i > ROWS / 4 && i % 1000 == 7 ? i : 77);
        assert_int_equal(history.thread[i], i > ROWS / 3 && i % 3000 == 5 ? i : 0);
        assert_int_equal(vr_entry_has(&history, i), 0);
    }
    vr_columns_release(&vr_history_columns, &history);
}

// Expected rows are reserved, but neither charged to the budget nor usable.
static void a_table_grows_to_what_is_expected(void **state) {
    struct vr_blocks blocks = {0};
    struct vr_budget budget = {.limit_bytes = 1000 * vr_block_columns.row_bytes, .ahead = 10};
    size_t capacity = 0, held = 0;
    (void)state;
    assert_int_equal(vr_columns_grow_ahead(&vr_block_columns, &blocks, &capacity, &held, 100, &budget), VRAM_OK);
    assert_int_equal(capacity, 100);
    assert_in_range(held, 1000, 1020);
    assert_int_equal(budget.used_bytes, capacity * vr_block_columns.row_bytes);
    blocks.size_bytes[99] = 7;
    const void *before = blocks.size_bytes;
    assert_int_equal(vr_columns_grow_ahead(&vr_block_columns, &blocks, &capacity, &held, 900, &budget), VRAM_OK);
    assert_int_equal(capacity, 900);
    assert_ptr_equal(blocks.size_bytes, before);
    assert_int_equal(blocks.size_bytes[99], 7);
    assert_int_equal(vr_columns_grow_ahead(&vr_block_columns, &blocks, &capacity, &held, 1001, &budget), VRAM_LIMIT);
    assert_int_equal(capacity, 900);
    assert_int_equal(budget.used_bytes, capacity * vr_block_columns.row_bytes);
    // The given length of an input may be wrong.
    budget = (struct vr_budget){.limit_bytes = UINT64_MAX, .ahead = 1e18};
    assert_int_equal(vr_columns_grow_ahead(&vr_block_columns, &blocks, &capacity, &held, 1100, &budget), VRAM_OK);
    assert_in_range(held, 1100, 18000);
    vr_columns_release(&vr_block_columns, &blocks);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_are_pytorchs),
        cmocka_unit_test(equal_things_have_one_id),
        cmocka_unit_test(frames_and_stacks_are_interned),
        cmocka_unit_test(a_budget_holds),
        cmocka_unit_test(utf8_is_told_from_other_bytes),
        cmocka_unit_test(the_check_finds_every_damage),
        cmocka_unit_test(settings_are_found_by_key),
        cmocka_unit_test(columns_grow_together),
        cmocka_unit_test(columns_without_a_value_are_one_array_of_zeros),
        cmocka_unit_test(sparse_columns_keep_their_values),
        cmocka_unit_test(a_table_grows_to_what_is_expected),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
