// Tests the writers on handmade models, for cases that files' round trips cannot show.
#include <stdio.h>

#include "base/text.h"
#include "model/builder.h"
#include "model/columns.h"
#include "model/recording.h"
#include "snapshot/emit.h"
#include "support/apart.h"
#include "support/expect.h"

static bool append(void *user, const char *bytes, size_t length) {
    vr_text_append(user, bytes, length);
    return true;
}

// Makes a model of one device with `count` events that have only an action and an address.
static void make_model(struct vr_model *model, size_t count) {
    struct vr_builder builder;
    size_t capacity = 0;
    struct vr_budget budget = {.limit_bytes = UINT64_MAX};
    *model = (struct vr_model){.form = VR_FORM_DICT, .history_count = 1};
    EXPECT_OK(vr_builder_init(&builder, UINT64_MAX));
    vr_builder_finish(&builder, model);
    model->histories = calloc(2, sizeof *model->histories);
    model->segments.first_block = calloc(1, sizeof *model->segments.first_block);
    assert_non_null(model->histories);
    assert_non_null(model->segments.first_block);
    EXPECT_OK(vr_columns_grow(&vr_history_columns, model->histories, &capacity, count + 1, &budget));
    model->histories->count = count;
    open_apart(model->histories);
    for (size_t i = 0; i < count; i++) {
        set_has(model->histories, i, VR_HAS_ACTION | VR_HAS_ADDRESS);
        model->histories->action[i] = VR_ACTION_ALLOC;
        model->histories->address[i] = i;
    }
}

static struct vram_recording *written_and_read(const struct vr_model *model, enum vram_recording_format format, struct vr_text *text) {
    struct vram_recording *recording = NULL;
    *text = (struct vr_text){0};
    EXPECT_OK(vr_model_write(model, format, append, text, NULL));
    EXPECT_OK(vram_recording_read_memory(text->bytes, text->length, NULL, &recording, NULL));
    return recording;
}

// A model without a list of keys gets PyTorch's four.
static void a_model_without_keys_has_the_usual(void **state) {
    (void)state;
    struct vr_model model;
    struct vr_text text = {0};
    make_model(&model, 1);
    EXPECT_OK(vr_model_write(&model, VRAM_FORMAT_JSON, append, &text, NULL));
    assert_string_equal(vr_text_string(&text), "{\"segments\":[],\"device_traces\":[[{\"action\":\"alloc\",\"addr\":0}]],\"allocator_"
                                               "settings\":{},\"external_annotations\":[]}\n");
    vr_text_release(&text);
    EXPECT_OK(vr_model_write(&model, VRAM_FORMAT_JSON_ROWS, append, &text, NULL));
    assert_string_equal(vr_text_string(&text),
                        "{\n \"segments\":[],\n \"device_traces\":[\n  [\n   {\"action\":\"alloc\",\"addr\":0}\n  ]\n ],\n"
                        " \"allocator_settings\":{},\n \"external_annotations\":[]\n}\n");
    vr_text_release(&text);
    vr_model_release(&model);
}

// Batches of 1000, the limit that PyTorch's viewer surely reads, with a rest of zero, one and many.
static void long_lists_come_in_batches(void **state) {
    (void)state;
    static const size_t counts[] = {0, 1, 999, 1000, 1001, 2000, 70000};
    for (size_t i = 0; i < VR_COUNT_OF(counts); i++) {
        struct vr_model model;
        struct vr_text text;
        make_model(&model, counts[i]);
        struct vram_recording *recording = written_and_read(&model, VRAM_FORMAT_PICKLE, &text);
        assert_int_equal(vram_recording_event_count(recording, 0), counts[i]);
        const struct vr_history *history = vr_recording_model(recording)->histories;
        for (size_t e = 0; e < counts[i]; e++) assert_int_equal(history->address[e], e);
        vram_recording_destroy(recording);
        vr_text_release(&text);
        vr_model_release(&model);
    }
}

// Every length that a number can have, on both sides.
static void numbers_of_every_size_come_back(void **state) {
    (void)state;
    static const enum vram_recording_format formats[] = {VRAM_FORMAT_PICKLE, VRAM_FORMAT_JSON, VRAM_FORMAT_JSON_ROWS};
    struct vr_model model;
    make_model(&model, 4 * 64);
    struct vr_history *history = model.histories;
    for (unsigned i = 0; i < history->count; i++) {
        uint64_t number = ((uint64_t)1 << i / 4) - i % 2;
        set_has(history, i, vr_entry_has(history, i) | VR_HAS_STREAM);
        history->address[i] = i % 4 < 2 ? number : 0 - number;
        set_stream(history, i, history->address[i]);
    }
    for (size_t f = 0; f < VR_COUNT_OF(formats); f++) {
        struct vr_text text;
        struct vram_recording *recording = written_and_read(&model, formats[f], &text);
        const struct vr_history *again = vr_recording_model(recording)->histories;
        for (size_t i = 0; i < history->count; i++) {
            assert_true(again->address[i] == history->address[i]);
            assert_true(vr_entry_stream(again, i) == vr_entry_stream(history, i));
        }
        // Addresses are written as positive numbers and streams as signed ones, so no extra text is kept.
        assert_int_equal(vr_recording_model(recording)->extra_count, 0);
        vram_recording_destroy(recording);
        vr_text_release(&text);
    }
    vr_model_release(&model);
}

// Strings longer than a chunk, longer than a byte's length, with every kind of character, and the empty one.
static void strings_of_every_length_come_back(void **state) {
    (void)state;
    static const size_t lengths[] = {0, 1, 255, 256, VR_EMIT_CHUNK / 2 - 17, VR_EMIT_CHUNK / 2, VR_EMIT_CHUNK, 3 * VR_EMIT_CHUNK};
    static const char pattern[] = "a\"\\\n\x01\x7f\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80 ";
    for (unsigned format = VRAM_FORMAT_PICKLE; format <= VRAM_FORMAT_JSON; format++) {
        struct vr_model model;
        struct vr_builder builder;
        make_model(&model, VR_COUNT_OF(lengths));
        struct vr_history *history = model.histories;
        free(model.strings.bytes);
        free(model.strings.offset);
        free(model.stacks.frame);
        free(model.stacks.offset);
        free(model.frames.name);
        free(model.frames.filename);
        free(model.frames.line);
        model.strings = (struct vr_strings){0};
        model.stacks = (struct vr_stacks){0};
        model.frames = (struct vr_frames){0};
        EXPECT_OK(vr_builder_init(&builder, UINT64_MAX));
        history->metadata = calloc(history->count, sizeof *history->metadata);
        assert_non_null(history->metadata);
        for (size_t i = 0; i < history->count; i++) {
            char *string = malloc(lengths[i] + sizeof pattern);
            assert_non_null(string);
            size_t used = 0;
            while (used + sizeof pattern - 1 <= lengths[i]) {
                memcpy(string + used, pattern, sizeof pattern - 1);
                used += sizeof pattern - 1;
            }
            while (used < lengths[i]) string[used++] = 'x';
            EXPECT_OK(vr_builder_string(&builder, string, used, &history->metadata[i]));
            set_has(history, i, vr_entry_has(history, i) | VR_HAS_USER_METADATA);
            free(string);
        }
        vr_builder_finish(&builder, &model);
        struct vr_text text;
        struct vram_recording *recording = written_and_read(&model, (enum vram_recording_format)format, &text);
        const struct vr_model *again = vr_recording_model(recording);
        for (size_t i = 0; i < history->count; i++) {
            uint32_t wanted = history->metadata[i], found = again->histories->metadata[i];
            assert_int_equal(vr_model_string_length(again, found), lengths[i]);
            assert_memory_equal(vr_model_string(again, found), vr_model_string(&model, wanted), lengths[i]);
        }
        vram_recording_destroy(recording);
        vr_text_release(&text);
        vr_model_release(&model);
    }
}

struct stop {
    size_t calls;
    size_t stop_at;
};

static bool stop_at(void *user, const char *bytes, size_t length) {
    struct stop *stop = user;
    (void)bytes;
    (void)length;
    return ++stop->calls < stop->stop_at;
}

// A receiver that fails is not called again, at whichever piece it fails.
static void a_receiver_that_stops_is_left_alone(void **state) {
    (void)state;
    struct vr_model model;
    make_model(&model, 30000);
    for (unsigned format = VRAM_FORMAT_PICKLE; format <= VRAM_FORMAT_JSON_ROWS; format++) {
        struct stop all = {.stop_at = SIZE_MAX};
        EXPECT_OK(vr_model_write(&model, (enum vram_recording_format)format, stop_at, &all, NULL));
        assert_true(all.calls > 3);
        for (size_t at = 1; at <= all.calls; at++) {
            struct stop stop = {.stop_at = at};
            struct vram_error error = {.status = VRAM_OK};
            EXPECT_STATUS(IO, vr_model_write(&model, (enum vram_recording_format)format, stop_at, &stop, &error));
            assert_int_equal(error.status, VRAM_IO);
            assert_int_equal(stop.calls, at);
        }
    }
    vr_model_release(&model);
}

static void wrong_arguments_are_refused(void **state) {
    (void)state;
    struct vram_recording *recording = NULL;
    struct vr_text text = {0};
    struct vram_error error;
    static const char empty[] = "{\"segments\": []}";
    EXPECT_OK(vram_recording_read_memory(empty, sizeof empty - 1, NULL, &recording, NULL));
    EXPECT_STATUS(INVALID_ARGUMENT, vram_recording_write(NULL, VRAM_FORMAT_JSON, append, &text, &error));
    EXPECT_STATUS(INVALID_ARGUMENT, vram_recording_write(recording, VRAM_FORMAT_JSON, NULL, &text, &error));
    EXPECT_STATUS(INVALID_ARGUMENT, vram_recording_write(recording, VRAM_FORMAT_COUNT, append, &text, &error));
    EXPECT_OK(vram_recording_write(recording, VRAM_FORMAT_JSON, append, &text, NULL));
    assert_string_equal(vr_text_string(&text), "{\"segments\":[]}\n");
    vr_text_release(&text);
    vram_recording_destroy(recording);
}

// A setting's text may come from anyone. If it is not JSON it is written as a string, so that the output stays valid.
static void text_that_is_no_json_is_a_string(void **state) {
    (void)state;
    static const struct {
        const char *text, *written;
    } cases[] = {
        {"1.50", "1.5"},
        {"-0.0", "-0.0"},
        {" [1 , {\"a\":null}] ", "[1,{\"a\":null}]"},
        {"0.30000000000000004", "0.30000000000000004"},
        {"1e22", "1e+22"},
        {"18446744073709551615", "18446744073709551615"},
        {"-9223372036854775808", "-9223372036854775808"},
        {"\"\\u00e4\\n\"", "\"\\u00e4\\n\""},
        {"true", "true"},
        {"[1,]", "\"[1,]\""},
        {"[,1]", "\"[,1]\""},
        {"{1:2}", "\"{1:2}\""},
        {"{\"a\"}", "\"{\\\"a\\\"}\""},
        {"tru", "\"tru\""},
        {"1 2", "\"1 2\""},
        {"\"open", "\"\\\"open\""},
        {"\"\\x\"", "\"\\\"\\\\x\\\"\""},
        {"NaN", "\"NaN\""},
        {"[[", "\"[[\""},
        {"", "\"\""},
    };
    for (size_t i = 0; i < VR_COUNT_OF(cases); i++) {
        struct vr_model model;
        struct vr_emitter emitter;
        struct vr_text text = {0};
        make_model(&model, 0);
        EXPECT_OK(vr_emitter_init(&emitter, &vr_emit_json, &model, false, append, &text));
        vr_emit_text(&emitter, cases[i].text, strlen(cases[i].text));
        EXPECT_OK(vr_emitter_finish(&emitter));
        text.bytes[text.length - 1] = '\0';
        assert_string_equal(text.bytes, cases[i].written);
        vr_text_release(&text);
        vr_model_release(&model);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_model_without_keys_has_the_usual),  cmocka_unit_test(long_lists_come_in_batches),
        cmocka_unit_test(numbers_of_every_size_come_back),     cmocka_unit_test(strings_of_every_length_come_back),
        cmocka_unit_test(a_receiver_that_stops_is_left_alone), cmocka_unit_test(wrong_arguments_are_refused),
        cmocka_unit_test(text_that_is_no_json_is_a_string),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
