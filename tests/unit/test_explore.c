// Tests the explorer: queries, answers, and the totals in a window against a second method.
#include "base/text.h"
#include "explore/tables/event_rows.h"
#include "explore/tables/picture_rows.h"
#include "support/answers.h"

enum { EVENTS = 3000, ADDRESSES = 40 };

// A recording of one device with random allocations and frees, and what is live after each event.
struct made {
    struct vr_text json;
    double live[EVENTS];
};

static void make(struct made *made, uint64_t seed) {
    uint64_t size[ADDRESSES] = {0}, state = seed, live = 0;
    memset(made, 0, sizeof *made);
    vr_text_puts(&made->json, "{\"segments\": [], \"device_traces\": [[], [");
    for (size_t i = 0; i < EVENTS; i++) {
        state = vr_mix64(state + i + 1);
        const size_t a = state % ADDRESSES;
        const bool frees = size[a] != 0;
        if (!frees) size[a] = 512 + (state >> 20) % 100000;
        live += frees ? 0 - size[a] : size[a];
        vr_text_printf(&made->json,
                       "%s{\"action\": \"%s\", \"addr\": %zu, \"size\": %llu, \"stream\": 0, \"time_us\": %zu, \"frames\": []}",
                       i == 0 ? "" : ",", frees ? "free_requested" : "alloc", 4096 * (a + 1), (unsigned long long)size[a], 100 + i / 3 * 7);
        if (frees) size[a] = 0;
        made->live[i] = (double)live;
    }
    vr_text_puts(&made->json, "]]}");
}

// Returns the numbers of a column of doubles, and their count.
static const double *numbers_of(const struct bytes *answer, const char *name, size_t *count) {
    static double numbers[20000];
    const struct column column = column_of(answer, name);
    assert_string_equal(column.type, "f64");
    memcpy(numbers, column.bytes, column.count * sizeof(double));
    *count = column.count;
    return numbers;
}

static void the_curve_has_every_low_and_high(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        struct made made;
        make(&made, seed);
        struct vram_explorer *explorer = open_text(made.json.bytes);
        for (unsigned trial = 0; trial < 40; trial++) {
            const uint64_t dice = vr_mix64(seed * 100 + trial);
            const size_t from = dice % (EVENTS - 1), to = from + 1 + (dice >> 20) % (EVENTS - from), pixels = 1 + (dice >> 40) % 50;
            char question[120];
            snprintf(question, sizeof question, "curve?device=1&from=%zu&to=%zu&pixels=%zu", from, to, pixels);
            struct bytes answer = ask(explorer, question);
            size_t count = 0;
            double low[64], high[64];
            memcpy(low, numbers_of(&answer, "allocated_low", &count), pixels * sizeof *low);
            assert_int_equal(count, pixels);
            memcpy(high, numbers_of(&answer, "allocated_high", &count), pixels * sizeof *high);
            for (size_t p = 0, i = from; p < pixels; p++) {
                const double edge = (double)from + (double)(to - from) * (double)(p + 1) / (double)pixels;
                // Without final blocks, every remaining allocation is dropped when the history is undone, so totals start at 0 or above.
                double expected_low = i == 0 ? 0 : made.live[i - 1], expected_high = expected_low;
                for (; i < EVENTS && (double)i < edge; i++) {
                    if (made.live[i] < expected_low) expected_low = made.live[i];
                    if (made.live[i] > expected_high) expected_high = made.live[i];
                }
                assert_true(low[p] == expected_low && high[p] == expected_high);
            }
            free(answer.bytes);
        }
        vram_explorer_destroy(explorer);
        vr_text_release(&made.json);
    }
}

static void time_is_an_axis_too(void **state) {
    (void)state;
    struct made made;
    make(&made, 7);
    struct vram_explorer *explorer = open_text(made.json.bytes);
    struct bytes answer = ask(explorer, "curve?axis=time&from=70&to=77&pixels=1");
    size_t count = 0;
    // Events 30, 31 and 32 have the time 70 after the first.
    assert_true(*numbers_of(&answer, "event", &count) == 30);
    double expected = made.live[29];
    for (size_t i = 30; i < 33; i++) expected = made.live[i] > expected ? made.live[i] : expected;
    assert_true(*numbers_of(&answer, "allocated_high", &count) == expected);
    free(answer.bytes);
    vram_explorer_destroy(explorer);
    vr_text_release(&made.json);
}

static const char story[] =
    "{\"segments\": [{\"device\": 0, \"address\": 8192, \"total_size\": 4096, \"blocks\": [{\"address\": 8192, \"size\": 1024, "
    "\"requested_size\": 1000,"
    "\"state\": \"active_allocated\", \"frames\": []}, {\"address\": 9216, \"size\": 3072, \"state\": \"inactive\", \"frames\": []}]}],"
    "\"device_traces\": [[{\"action\": \"alloc\", \"addr\": 8192, \"size\": 700, \"stream\": 3, \"time_us\": 10, \"pool_id\": [0, 2],"
    "\"frames\": [{\"name\": \"f\", \"filename\": \"a.py\", \"line\": 5}]},"
    "{\"action\": \"free_requested\", \"addr\": 8192, \"size\": 700, \"stream\": 3, \"time_us\": 20},"
    "{\"action\": \"free_completed\", \"addr\": 8192, \"size\": 700, \"stream\": 3, \"time_us\": 30},"
    "{\"action\": \"oom\", \"device_free\": 77, \"size\": 99, \"stream\": 3, \"time_us\": 40},"
    "{\"action\": \"alloc\", \"addr\": 8192, \"size\": 1000, \"stream\": 3, \"time_us\": 50}]],"
    "\"external_annotations\": [{\"name\": \"step\", \"stage\": \"START\", \"device\": 0, \"time_us\": 15},"
    "{\"name\": \"step\", \"stage\": \"START\", \"device\": 0, \"time_us\": 16}, {\"name\": \"step\", \"stage\": \"END\", \"device\": 0, "
    "\"time_us\": 30},"
    "{\"name\": \"step\", \"stage\": \"END\", \"device\": 0, \"time_us\": 55}, {\"name\": \"ProfilerStep#3\", \"stage\": \"START\", "
    "\"device\": 0, \"time_us\": 20}]}";

static void allocations_and_marks_tell_their_story(void **state) {
    (void)state;
    struct vram_explorer *explorer = open_text(story);
    expect_text(explorer, "allocation?row=0",
                "\"label\": \"b2000_0\", \"address\": \"0x2000\", \"bytes\": 700, \"birth_event\": 0, \"birth_time_us\": 10, "
                "\"death_event\": 1, \"death_time_us\": 20, \"completed_event\": 2, \"completed_time_us\": 30, "
                "\"total_after\": 700, \"stream\": 3, \"pool\": [0, 2]");
    expect_text(explorer, "allocation?row=0", "\"frames\": [[\"f\", \"a.py\", 5, \"\"]], \"site\": 0");
    expect_text(explorer, "allocation?label=b2000_1", "\"row\": 1, \"label\": \"b2000_1\"");
    expect_text(explorer, "allocation?label=0x2000", "\"row\": 0,");
    expect_text(explorer, "allocation?row=1", "\"death_event\": null, \"completed_event\": null, \"total_after\": 1000");
    expect_text(explorer, "allocation?row=1", "\"block_bytes\": 1024");
    expect_text(explorer, "marks", "{\"kind\": \"oom\", \"event\": 3, \"time\": 30, \"name\": \"\", \"bytes\": 99, \"free_bytes\": 77}");
    expect_text(explorer, "marks",
                "{\"kind\": \"annotation\", \"event\": 1, \"time\": 10, \"name\": \"step\", \"end_event\": 5, \"end_time\": 45}");
    expect_text(explorer, "marks",
                "{\"kind\": \"annotation\", \"event\": 1, \"time\": 10, \"name\": \"step\", \"end_event\": 2, \"end_time\": 20}");
    expect_text(explorer, "marks", "{\"kind\": \"step\", \"event\": 1, \"time\": 10, \"name\": \"ProfilerStep#3\"}");
    struct bytes none = {0};
    struct vram_error error = {0};
    assert_int_equal(vram_explorer_ask(explorer, "allocation?label=b2000_2", keep, &none, &error), VRAM_INVALID_ARGUMENT);
    assert_non_null(strstr(error.message, "allocation 'b2000_2' is not in the recording"));
    vram_explorer_destroy(explorer);
}

// Random lifetimes without a history: one row per event, and some from before.
struct lives {
    struct vr_lifetimes lifetimes;
    struct vr_history history;
    struct vr_view view;
    uint64_t size[600];
    uint32_t birth[600], death[600];
};

static void make_lives(struct lives *lives, uint64_t seed, size_t start, size_t events) {
    memset(lives, 0, sizeof *lives);
    lives->history.count = events;
    lives->view.history = &lives->history;
    struct vr_lifetimes *l = &lives->lifetimes;
    *l = (struct vr_lifetimes){
        .size_bytes = lives->size, .birth = lives->birth, .death = lives->death, .start_count = start, .count = start};
    for (size_t e = 0; e < events; e += 2) l->count++;
    l->start.count = start;
    l->peak.count = l->count;
    for (size_t i = 0; i < l->count; i++) {
        const uint64_t dice = vr_mix64(seed * 1000 + i);
        lives->size[i] = 1 + dice % 1000;
        lives->birth[i] = i < start ? VR_BEFORE_TRACE : (uint32_t)(2 * (i - start));
        const size_t lived = (i < start ? 0 : lives->birth[i]) + 1 + 2 * ((dice >> 20) % 40);
        lives->death[i] = lived < events && (dice >> 40) % 5 != 0 ? (uint32_t)lived : VR_NEVER;
    }
}

static void what_is_live_is_found_from_checkpoints(void **state) {
    (void)state;
    struct lives lives;
    for (uint64_t seed = 1; seed <= 30; seed++) {
        make_lives(&lives, seed, seed % 7, 400);
        struct vr_live_rows *live = NULL;
        assert_int_equal(VRAM_OK, vr_live_rows_create(&lives.view, &lives.lifetimes, &live));
        assert_true(vr_live_rows_check(live));
        for (int64_t event = -1; event < 405; event++) {
            uint32_t *rows = NULL;
            size_t count = 0, found = 0;
            assert_int_equal(VRAM_OK, vr_live_rows_at(live, event, &rows, &count));
            for (size_t i = 0; i < lives.lifetimes.count; i++) {
                if (!vr_lifetimes_live_at(&lives.lifetimes, i, event < 400 ? event : 399)) continue;
                assert_true(found < count && rows[found] == i);
                found++;
            }
            assert_int_equal(found, count);
            free(rows);
        }
        vr_live_rows_destroy(live);
    }
}

// Returns the base of a shape after an event, from its steps; UINT64_MAX before the first.
static uint64_t base_at(const struct vr_stacking *stacking, size_t shape, size_t event) {
    uint64_t base = UINT64_MAX;
    for (size_t s = stacking->first_step[shape]; s < stacking->first_step[shape + 1]; s++) {
        if (stacking->step[s].event <= event) base = stacking->step[s].base_bytes;
    }
    return base;
}

static void shapes_lie_on_each_other(void **state) {
    (void)state;
    struct lives lives;
    for (uint64_t seed = 1; seed <= 60; seed++) {
        make_lives(&lives, seed, seed % 9, 300);
        const struct vr_lifetimes *l = &lives.lifetimes;
        const size_t first = vr_mix64(seed) % 250, end = first + 1 + vr_mix64(seed + 99) % (300 - first);
        uint32_t rows[600];
        size_t count = 0;
        for (size_t i = 0; i < l->count; i++) {
            const bool in = (l->birth[i] == VR_BEFORE_TRACE || l->birth[i] < end) && (l->death[i] == VR_NEVER || l->death[i] >= first);
            if (in && (seed % 3 == 0 || vr_mix64(seed * 1000 + i) % 4 != 0)) rows[count++] = (uint32_t)i;
        }
        struct vr_stacking stacking;
        const struct vr_stack_window window = {.first = first, .end = end, .most_steps = 1000000};
        assert_int_equal(VRAM_OK, vr_stacking_build(l, rows, count, &window, &stacking));
        assert_true(vr_stacking_check(&stacking));
        assert_int_equal(stacking.count, count);
        for (size_t event = first; event < end; event++) {
            uint64_t base = 0;
            for (size_t s = 0; s < stacking.count; s++) {
                if (s != 0) assert_true(stacking.row[s] > stacking.row[s - 1]);
                if (!vr_lifetimes_live_at(l, stacking.row[s], (int64_t)event)) continue;
                assert_int_equal(base_at(&stacking, s, event), base);
                base += l->size_bytes[stacking.row[s]];
            }
        }
        vr_stacking_release(&stacking);
    }
}

static void bad_questions_are_answered_with_a_sentence(void **state) {
    (void)state;
    static const struct {
        const char *question, *text;
    } cases[] = {
        {"", "unknown query ''"},
        {"nothing?x=1", "unknown query 'nothing'"},
        {"curve?device", "has no value"},
        {"curve?device=9", "no device 9"},
        {"curve?device=x", "'device' must be a whole number"},
        {"curve?rec=1", "'rec' must be a whole number from 0 to 0"},
        {"curve?from=5&to=5", "'to' must be greater"},
        {"curve?from=nan", "'from' must be a number"},
        {"curve?pixels=0", "'pixels' must be a whole number from 1"},
        {"curve?axis=length", "'axis' must be one of event, time"},
    };
    struct made made;
    make(&made, 3);
    struct vram_explorer *explorer = open_text(made.json.bytes);
    for (size_t i = 0; i < VR_COUNT_OF(cases); i++) {
        struct bytes answer = {0};
        struct vram_error error = {0};
        assert_int_equal(vram_explorer_ask(explorer, cases[i].question, keep, &answer, &error), VRAM_INVALID_ARGUMENT);
        if (strstr(error.message, cases[i].text) == NULL) fail_msg("'%s' gave '%s'", cases[i].question, error.message);
        assert_null(answer.bytes);
    }
    vram_explorer_destroy(explorer);
    vr_text_release(&made.json);
}

static void a_query_says_which_frames_name_no_site(void **state) {
    (void)state;
    static const char text[] =
        "{\"segments\": [], \"device_traces\": [[{\"action\": \"alloc\", \"addr\": 4096, \"size\": 512, \"stream\": 0, \"frames\": ["
        "{\"filename\": \"wrap.py\", \"line\": 1, \"name\": \"alloc\"}, {\"filename\": \"model.py\", \"line\": 2, \"name\": \"f\"}, "
        "{\"filename\": \"main.py\", \"line\": 3, \"name\": \"main\"}]}]]}";
    struct vram_explorer *explorer = open_text(text);
    struct vram_error error;
    struct bytes none = {0};
    expect_text(explorer, "groups", "wrap.py:1:alloc");
    expect_text(explorer, "groups?skip=wrap", "model.py:2:f");
    expect_text(explorer, "groups?skip=wrap%7Cmodel", "main.py:3:main");
    expect_text(explorer, "allocation?row=0&skip=wrap", "\"site\": 1");
    assert_int_equal(vram_explorer_ask(explorer, "groups?skip=%28", keep, &none, &error), VRAM_INVALID_ARGUMENT);
    assert_true(strlen(error.message) > 10 && none.length == 0);
    expect_text(explorer, "groups", "wrap.py:1:alloc");
    // The skip pattern also applies to a recording added later; frames skipped before stay skipped.
    struct vram_recording *second = NULL;
    assert_int_equal(vram_recording_read_memory(text, strlen(text), "second", &second, &error), VRAM_OK);
    assert_int_equal(vram_recording_skip_frames(second, "wrap", &error), VRAM_OK);
    expect_text(explorer, "groups?skip=model", "wrap.py:1:alloc");
    assert_int_equal(vram_explorer_add(explorer, second, "second", 0, &error), VRAM_OK);
    expect_text(explorer, "groups?rec=1&skip=model", "main.py:3:main");
    expect_text(explorer, "groups?rec=1", "model.py:2:f");
    vram_explorer_destroy(explorer);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_curve_has_every_low_and_high),
        cmocka_unit_test(time_is_an_axis_too),
        cmocka_unit_test(allocations_and_marks_tell_their_story),
        cmocka_unit_test(what_is_live_is_found_from_checkpoints),
        cmocka_unit_test(shapes_lie_on_each_other),
        cmocka_unit_test(bad_questions_are_answered_with_a_sentence),
        cmocka_unit_test(a_query_says_which_frames_name_no_site),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
