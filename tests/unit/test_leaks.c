// Tests leaks: loops that keep memory in every step or in some, with and without marks, and the verdicts.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "base/text.h"
#include "vram/profile.h"
#include "vram/recording.h"

static struct vram_recording *read_text(const struct vr_text *text) {
    struct vram_recording *recording = NULL;
    struct vram_error error;
    if (vram_recording_read_memory(text->bytes, text->length, "made", &recording, &error) != VRAM_OK) fail_msg("%s", error.message);
    return recording;
}

static bool append(void *user, const char *bytes, size_t length) {
    vr_text_append(user, bytes, length);
    return true;
}

static size_t leaks_of(const struct vram_recording *recording, const struct vram_profile_options *options, struct vr_text *text) {
    size_t leaks = 99;
    text->length = 0;
    assert_int_equal(vram_leaks_json(recording, options, "loop", append, text, &leaks, NULL), VRAM_OK);
    return leaks;
}

// The memory that a generated loop keeps: `bytes` in every `distance`-th step (0: a buffer grows when the step number is a power of two),
// some more each step, and `borrowed` buffers that each step allocates and frees.
struct keeping {
    size_t steps, distance, borrowed;
    uint64_t bytes, more;
    bool marked;
};

static bool keeps_in(const struct keeping *keeping, size_t step) {
    return keeping->distance == 0 ? (step & (step - 1)) == 0 : step % keeping->distance == keeping->distance - 1;
}

static void put_at(struct vr_text *text, const char *action, size_t address, uint64_t bytes, size_t time_us, size_t site) {
    vr_text_printf(text,
                   "%s{\"action\": \"%s\", \"addr\": %zu, \"size\": %llu, \"stream\": 0, \"time_us\": %zu, \"frames\": ["
                   "{\"filename\": \"model.py\", \"line\": %zu, \"name\": \"keep\"}]}",
                   text->bytes[text->length - 1] == '[' ? "" : ",", action, 4096 * address, (unsigned long long)bytes, time_us, site);
}

static struct vram_recording *keeping_loop(const struct keeping *keeping) {
    struct vr_text text = {0}, marks = {0};
    vr_text_puts(&text, "{\"segments\": [], \"device_traces\": [[");
    for (size_t step = 0; step < keeping->steps; step++) {
        const uint64_t bytes = keeping->distance == 0 ? keeping->bytes * step : keeping->bytes;
        vr_text_printf(&marks, "%s{\"stage\": \"STEP\", \"name\": \"step\", \"device\": 0, \"time_us\": %zu}", step == 0 ? "" : ",",
                       100 * step + 50);
        for (size_t i = 0; i < keeping->borrowed; i++) put_at(&text, "alloc", 1 + i, (i + 1) << 21, 100 * step + 60, 10 + i);
        if (keeping->bytes != 0 && keeps_in(keeping, step)) put_at(&text, "alloc", 1000 + step, bytes, 100 * step + 70, 3);
        if (keeping->more != 0) put_at(&text, "alloc", 2000 + step, keeping->more, 100 * step + 70, 4);
        for (size_t i = 0; i < keeping->borrowed; i++) put_at(&text, "free_requested", 1 + i, (i + 1) << 21, 100 * step + 80, 10 + i);
    }
    for (size_t step = 0; step < keeping->steps; step++) {
        const uint64_t bytes = keeping->distance == 0 ? keeping->bytes * step : keeping->bytes;
        if (keeping->bytes != 0 && keeps_in(keeping, step)) put_at(&text, "free_requested", 1000 + step, bytes, 100 * keeping->steps, 3);
        if (keeping->more != 0) put_at(&text, "free_requested", 2000 + step, keeping->more, 100 * keeping->steps, 4);
    }
    vr_text_printf(&text, "]], \"external_annotations\": [%s]}", keeping->marked ? vr_text_string(&marks) : "");
    struct vram_recording *recording = read_text(&text);
    vr_text_release(&text);
    vr_text_release(&marks);
    return recording;
}

// Makes steps that keep 255 KiB each and whose sizes repeat only after `cycle` steps (0: never).
static struct vram_recording *loop_of_lengths(size_t steps, size_t cycle) {
    struct vr_text text = {0};
    vr_text_puts(&text, "{\"segments\": [], \"device_traces\": [[");
    for (size_t step = 0; step < steps; step++) {
        const uint64_t length = 1 + (cycle == 0 ? 100 + (step * step * 37 + 11) % 101 : step * 3 % cycle);
        for (size_t i = 0; i < 6; i++) put_at(&text, "alloc", 1 + i, (i + 1) * length * 70000, 100 * step + 60, 10 + i);
        put_at(&text, "alloc", 1000 + step, 255 << 10, 100 * step + 70, 4);
        for (size_t i = 0; i < 6; i++) put_at(&text, "free_requested", 1 + i, (i + 1) * length * 70000, 100 * step + 80, 10 + i);
    }
    for (size_t step = 0; step < steps; step++) put_at(&text, "free_requested", 1000 + step, 255 << 10, 100 * steps, 4);
    vr_text_puts(&text, "]], \"external_annotations\": []}");
    struct vram_recording *recording = read_text(&text);
    vr_text_release(&text);
    return recording;
}

// A loop's steps are found even if its sizes repeat only after many of them.
static void sizes_may_change_from_step_to_step(void **state) {
    (void)state;
    static const size_t cycles[] = {1, 2, 3, 4, 5, 6, 7, 8, 0};
    const struct vram_profile_options options = {.device = -1};
    struct vr_text text = {0};
    for (size_t i = 0; i < VR_COUNT_OF(cycles); i++) {
        struct vram_recording *recording = loop_of_lengths(40, cycles[i]);
        assert_int_equal(leaks_of(recording, &options, &text), 1);
        assert_non_null(strstr(text.bytes, "\"steps_from\": \"repeated\""));
        assert_non_null(strstr(text.bytes, "\"steps\": 39"));
        vram_recording_destroy(recording);
    }
    vr_text_release(&text);
}

static void what_is_kept_in_every_few_steps_leaks(void **state) {
    (void)state;
    const struct {
        struct keeping keeping;
        size_t leaks;
    } cases[] = {
        {{.steps = 40, .distance = 4, .borrowed = 6, .bytes = 1 << 20, .marked = true}, 1},
        {{.steps = 100, .distance = 10, .borrowed = 6, .bytes = 10 << 20, .marked = true}, 1},
        {{.steps = 40, .distance = 0, .borrowed = 6, .bytes = 1 << 20, .marked = true}, 0},
        {{.steps = 40, .distance = 1, .borrowed = 6, .bytes = 255 << 10, .marked = true}, 1},
        // Steps of two to four allocations, without marks.
        {{.steps = 40, .distance = 1, .borrowed = 1, .bytes = 255 << 10}, 1},
        {{.steps = 40, .distance = 1, .borrowed = 3, .bytes = 255 << 10}, 1},
        {{.steps = 40, .borrowed = 2}, 0},
        {{.steps = 40, .borrowed = 4}, 0},
    };
    struct vr_text text = {0};
    const struct vram_profile_options options = {.device = -1};
    for (size_t i = 0; i < VR_COUNT_OF(cases); i++) {
        struct vram_recording *recording = keeping_loop(&cases[i].keeping);
        assert_int_equal(leaks_of(recording, &options, &text), cases[i].leaks);
        assert_null(strstr(text.bytes, "\"steps_from\": \"none\""));
        vram_recording_destroy(recording);
    }
    vr_text_release(&text);
}

// 40 steps that look like iterations of four, which may be a model's layers: there is no verdict on leaks, and no row looks like one.
static void no_verdict_contradicts_its_rows(void **state) {
    (void)state;
    const struct keeping keeping = {.steps = 40, .distance = 4, .borrowed = 0, .bytes = 1 << 20, .more = 4096};
    const struct vram_profile_options options = {.device = -1};
    struct vram_recording *recording = keeping_loop(&keeping);
    struct vr_text text = {0};
    size_t leaks = 99;
    assert_int_equal(vram_leaks_text(recording, &options, "made", NULL, append, &text, &leaks, NULL), VRAM_OK);
    assert_int_equal(leaks, 0);
    assert_non_null(strstr(vr_text_string(&text), "\ncannot tell: repeating allocations may be steps or the layers of one step"));
    assert_null(strstr(vr_text_string(&text), "per step"));
    vr_text_release(&text);
    vram_recording_destroy(recording);
}

// Makes a buffer that a larger one replaces in each step.
static struct vram_recording *growing_buffer(size_t steps) {
    struct vr_text text = {0};
    vr_text_puts(&text, "{\"segments\": [], \"device_traces\": [[");
    for (size_t step = 0; step < steps; step++) {
        put_at(&text, "alloc", 1000 + step, (step + 1) << 20, 100 * step + 60, 3);
        if (step != 0) put_at(&text, "free_requested", 999 + step, step << 20, 100 * step + 70, 3);
    }
    vr_text_puts(&text, "]], \"external_annotations\": [");
    for (size_t step = 0; step < steps; step++)
        vr_text_printf(&text, "%s{\"stage\": \"STEP\", \"name\": \"step\", \"device\": 0, \"time_us\": %zu}", step == 0 ? "" : ",",
                       100 * step + 50);
    vr_text_puts(&text, "]}");
    struct vram_recording *recording = read_text(&text);
    vr_text_release(&text);
    return recording;
}

static void a_verdict_has_its_word(void **state) {
    (void)state;
    const struct keeping keeping = {.steps = 40, .distance = 1, .borrowed = 2, .bytes = 4096, .marked = true};
    const struct {
        struct vram_recording *recording;
        const char *json, *row;
        size_t leaks;
    } cases[] = {{keeping_loop(&keeping), "\"verdict\": \"leak\"", "  leak  ", 1},
                 {growing_buffer(40), "\"verdict\": \"growth\"", "  growth  ", 0}};
    const struct vram_profile_options options = {.device = -1};
    struct vr_text text = {0};
    for (size_t i = 0; i < VR_COUNT_OF(cases); i++) {
        assert_int_equal(leaks_of(cases[i].recording, &options, &text), cases[i].leaks);
        assert_non_null(strstr(vr_text_string(&text), cases[i].json));
        text.length = 0;
        assert_int_equal(vram_leaks_text(cases[i].recording, &options, "made", NULL, append, &text, NULL, NULL), VRAM_OK);
        assert_non_null(strstr(vr_text_string(&text), cases[i].row));
        vram_recording_destroy(cases[i].recording);
    }
    vr_text_release(&text);
}

// Memory that no event frees is listed, with or without steps.
static void what_was_never_freed_is_pointed_to(void **state) {
    (void)state;
    static const char kept[] =
        "{\"segments\": [{\"device\": 0, \"address\": 4096, \"total_size\": 2097152, \"stream\": 0, \"blocks\": [{\"address\": 4096, "
        "\"size\": 2097152, \"requested_size\": 2097152, \"state\": \"active_allocated\"}]}], \"device_traces\": [[{\"action\": "
        "\"alloc\", \"addr\": 4096, \"size\": 2097152, \"stream\": 0}]]}";
    const struct vram_profile_options options = {.device = -1};
    struct vr_text json = {0}, text = {0};
    size_t leaks = 99;
    vr_text_puts(&json, kept);
    struct vram_recording *recording = read_text(&json);
    assert_int_equal(vram_leaks_text(recording, &options, "made", NULL, append, &text, &leaks, NULL), VRAM_OK);
    assert_non_null(strstr(vr_text_string(&text), "never freed: 2.0 MiB; `vram report --site --at end` shows what holds it\n"));
    vr_text_release(&json);
    vr_text_release(&text);
    vram_recording_destroy(recording);
}

// For an unknown name, lists the marks' names.
static void marks_are_listed_where_none_has_the_name(void **state) {
    (void)state;
    const struct keeping keeping = {.steps = 40, .distance = 1, .borrowed = 2, .bytes = 4096, .marked = true};
    struct vram_recording *recording = keeping_loop(&keeping);
    const struct vram_profile_options wrong = {.device = -1, .step = "train"}, right = {.device = -1, .step = "step"};
    struct vr_text text = {0};
    assert_int_equal(leaks_of(recording, &right, &text), 1);
    assert_int_equal(leaks_of(recording, &wrong, &text), 0);
    text.length = 0;
    assert_int_equal(vram_leaks_text(recording, &wrong, "made", NULL, append, &text, NULL, NULL), VRAM_OK);
    assert_non_null(strstr(vr_text_string(&text), "cannot tell: fewer than three marks have that name\n"));
    assert_non_null(strstr(vr_text_string(&text), "the recording's marks: step (40)\n"));
    vr_text_release(&text);
    vram_recording_destroy(recording);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sizes_may_change_from_step_to_step),       cmocka_unit_test(what_is_kept_in_every_few_steps_leaks),
        cmocka_unit_test(no_verdict_contradicts_its_rows),          cmocka_unit_test(what_was_never_freed_is_pointed_to),
        cmocka_unit_test(marks_are_listed_where_none_has_the_name), cmocka_unit_test(a_verdict_has_its_word),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
