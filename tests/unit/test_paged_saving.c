// Tests what paged memory would have saved: programs with known answers, on the simulated driver; the same from the page's engine, one
// replay at a time; and the sentences about it.
#include <stdio.h>

#include "driver/driver.h"
#include "present/shared_texts.h"
#include "support/history.h"
#include "vram/explorer.h"
#include "vram/report.h"

#define M *VR_MIB

static const struct vram_history_options NO_STACKS = {.context = VRAM_HISTORY_NONE};

struct paged_scene {
    const char *name;
    const char *conf;
    uint64_t memory_bytes;
    void (*play)(struct vr_world *world);
    enum vram_paged_verdict verdict;
    const char *says; // part of the sentences; "": none expected
};

// Segments of 100 MiB in which 4 MiB in the middle stay in use.
static void hollow(struct vr_world *world, size_t segments) {
    enum { MOST = 16 };
    uint64_t low[MOST], high[MOST];
    assert_true(segments <= MOST);
    for (size_t i = 0; i < segments; i++) {
        give(world, take(world, 100 M, 0));
        low[i] = take(world, 48 M, 0);
        (void)take(world, 4 M, 0);
        high[i] = take(world, 48 M, 0);
    }
    for (size_t i = 0; i < segments; i++) give(world, low[i]);
    for (size_t i = 0; i < segments; i++) give(world, high[i]);
}

// Free pages of one segment cannot serve a request larger than each of its holes.
static void hollow_many(struct vr_world *world) {
    hollow(world, 8);
    (void)take(world, 300 M, 0);
}

// A stream's free memory serves no other stream; each gets its own segments.
static void streams_take_turns(struct vr_world *world) {
    for (size_t i = 0; i < 6; i++) {
        for (uint64_t s = 0; s < 2; s++) {
            const uint64_t block = take(world, 400 M, world->stream[0][s]);
            (void)take(world, 2 M, world->stream[0][s]);
            give(world, block);
        }
    }
}

static void hollow_and_fail(struct vr_world *world) {
    uint64_t address;
    hollow(world, 4);
    assert_int_equal(vram_malloc(world->allocator, 0, 200 M, 0, &address), VRAM_OUT_OF_MEMORY);
}

static void all_in_use(struct vr_world *world) {
    for (size_t i = 0; i < 5; i++) (void)take(world, 40 M, 0);
}

static void fill_and_fail(struct vr_world *world) {
    uint64_t address;
    all_in_use(world);
    assert_int_equal(vram_malloc(world->allocator, 0, 100 M, 0, &address), VRAM_OUT_OF_MEMORY);
}

static const struct paged_scene scenes[] = {
    {"hollow segments", "", 4096 M, hollow_many, VRAM_PAGED_LESS,
     "expandable_segments:True: 800.0 MiB instead of 1.1 GiB, with PyTorch's own allocator; paged:True (vram's allocator only)"},
    {"hollow segments, expandable", "expandable_segments:True", 4096 M, hollow_many, VRAM_PAGED_AS_MUCH, ""},
    {"streams take turns", "", 4096 M, streams_take_turns, VRAM_PAGED_LESS, "paged:True (vram's allocator only): "},
    {"it would have completed", "", 440 M, hollow_and_fail, VRAM_PAGED_LESS, "paged:True (vram's allocator only) also fits"},
    {"all in use", "", 4096 M, all_in_use, VRAM_PAGED_LITTLE, ""},
    {"it was in force", "paged:True", 256 M, fill_and_fail, VRAM_PAGED_ALREADY, ""},
};

static bool keep(void *user, const char *bytes, size_t length) {
    vr_text_append(user, bytes, length);
    return true;
}

static void ask(struct vram_explorer *explorer, const char *question, struct vr_text *answer) {
    vr_text_release(answer);
    OK(vram_explorer_ask(explorer, question, keep, answer, NULL));
}

// The page finds the same saving, one replay at a time. Takes ownership of the recording.
static void check_page(const char *name, struct vram_recording *recording, const struct vram_paged_saving *saving) {
    enum { HEAD = 8, MOST_PIECES = 100 }; // HEAD: bytes before an answer; MOST_PIECES: pieces of a search
    struct vram_explorer *explorer;
    struct vr_text answer = {0}, wanted = {0};
    struct vr_json json;
    vr_json_init(&json, &wanted, false);
    vr_json_object(&json, NULL);
    vr_json_object(&json, "paged");
    vr_paged_json(saving, &json);
    vr_json_object_end(&json);
    OK(vram_explorer_create(&explorer));
    OK(vram_explorer_add(explorer, recording, name, 0, NULL));
    size_t pieces = 0;
    do ask(explorer, "prepare?for=paged", &answer);
    while (strstr(answer.bytes + HEAD, "\"ready\": true") == NULL && ++pieces < MOST_PIECES);
    if (saving->today.known && pieces < 3) fail_msg("%s: %zu pieces", name, pieces);
    ask(explorer, "paged", &answer);
    if (strncmp(answer.bytes + HEAD, wanted.bytes, wanted.length) != 0) fail_msg("%s: %s, not %s", name, answer.bytes + HEAD, wanted.bytes);
    vram_explorer_destroy(explorer);
    vr_text_release(&answer);
    vr_text_release(&wanted);
}

// If nothing failed, it completes in the reported need and reserves the reported amount.
static void check_side(const struct vram_recording *recording, const char *conf, const struct vram_paged_side *side) {
    for (int spare = 0; spare < 2; spare++) {
        const struct vram_whatif_options options = {.conf = conf, .memory_bytes = spare ? 0 : side->needed_bytes};
        struct vram_whatif_result *result;
        OK(vram_replay_whatif(recording, &options, &result, NULL));
        assert_true(result->finished);
        if (spare) assert_int_equal(result->devices[0].peak_reserved_bytes, side->held_bytes);
        vram_whatif_result_destroy(result);
    }
}

static void check_scene(const struct paged_scene *scene, struct vram_recording *recording) {
    struct vram_report *report;
    struct vram_paged_savings *savings;
    struct vr_text text = {0}, page = {0};
    OK(vram_report_create(recording, NULL, &report, NULL));
    OK(vram_paged_savings_find(recording, report, 0, &savings, NULL));
    assert_int_equal(savings->count, 1);
    const struct vram_paged_saving *saving = &savings->savings[0];
    if (saving->verdict != scene->verdict)
        fail_msg("%s: %s, not %s", scene->name, vram_paged_verdict_name(saving->verdict), vram_paged_verdict_name(scene->verdict));
    OK(vram_paged_saving_text(saving, keep, &text));
    const char *said = vr_text_string(&text);
    if (scene->says[0] == '\0' ? said[0] != '\0' : strstr(said, scene->says) == NULL) fail_msg("%s: %s", scene->name, said);
    const struct vram_report_source source = {.savings = savings->savings, .saving_count = savings->count};
    const struct vram_style wide = {.columns = 4000};
    OK(vram_report_text(report, &source, &wide, keep, &page));
    assert_non_null(strstr(vr_text_string(&page), said));
    if (saving->paged.known && saving->room_bytes == 0) {
        check_side(recording, "paged:True", &saving->paged);
        assert_true(saving->paged.needed_bytes >= saving->live_bytes);
    }
    if (saving->paged.known && saving->room_bytes != 0)
        assert_true(saving->paged.fits && !saving->today.fits && saving->paged.needed_bytes <= saving->room_bytes);
    check_page(scene->name, recording, saving);
    vr_text_release(&text);
    vr_text_release(&page);
    vram_paged_savings_destroy(savings);
    vram_report_destroy(report);
}

static void savings_are_known(void **state) {
    (void)state;
    for (size_t i = 0; i < VR_COUNT_OF(scenes); i++) {
        struct vr_world world;
        history_world(&world, scenes[i].conf, 1, scenes[i].memory_bytes);
        start(&world, &NO_STACKS);
        scenes[i].play(&world);
        check_scene(&scenes[i], snap(&world, NULL));
        history_end(&world);
    }
}

// A history in which paged:True saves much, compared within a time limit (0: none).
struct comparison {
    struct vr_world world;
    struct vram_recording *recording;
    struct vram_report *report;
    struct vram_paged_savings *savings;
};

static void compare_hollow(struct comparison *compared, uint64_t most_ns) {
    history_world(&compared->world, "", 1, 4096 M);
    start(&compared->world, &NO_STACKS);
    hollow_many(&compared->world);
    compared->recording = snap(&compared->world, NULL);
    OK(vram_report_create(compared->recording, NULL, &compared->report, NULL));
    OK(vram_paged_savings_find(compared->recording, compared->report, most_ns, &compared->savings, NULL));
}

static void end_comparison(struct comparison *compared) {
    vram_paged_savings_destroy(compared->savings);
    vram_report_destroy(compared->report);
    vram_recording_destroy(compared->recording);
    history_end(&compared->world);
}

// Without time the comparison is left out, and nothing is reported.
static void the_time_is_over(void **state) {
    (void)state;
    struct comparison compared;
    compare_hollow(&compared, 1);
    assert_int_equal(compared.savings->savings[0].verdict, VRAM_PAGED_LONG);
    vram_paged_savings_destroy(NULL);
    end_comparison(&compared);
}

// A history too long to compare is not compared, and the report says so.
static void long_histories_are_named(void **state) {
    (void)state;
    struct vr_text text = {0};
    const struct vram_paged_saving saving = {.verdict = VRAM_PAGED_LONG, .events = VRAM_PAGED_MOST_EVENTS + 1};
    OK(vram_paged_saving_text(&saving, keep, &text));
    assert_string_equal(
        vr_text_string(&text),
        "Not compared with paged:True: the history has 200,001 events, and a report replays at most 200,000. `vram tune` compares.");
    vr_text_release(&text);
}

// The text written when the replays began.
struct streamed {
    struct vr_text written;
    size_t calls;
    struct vram_report_source source;
};

static bool keep_streamed(void *user, const char *bytes, size_t length) {
    struct streamed *streamed = user;
    vr_text_append(&streamed->written, bytes, length);
    return true;
}

static const struct vram_report_source *begin_replays(void *user) {
    struct streamed *streamed = user;
    streamed->calls++;
    assert_non_null(strstr(vr_text_string(&streamed->written), "allocated"));
    assert_null(strstr(vr_text_string(&streamed->written), "expandable_segments"));
    return &streamed->source;
}

// The facts are written before a replay begins; its results follow.
static void facts_come_before_replays(void **state) {
    (void)state;
    struct comparison compared;
    compare_hollow(&compared, 0);
    struct streamed streamed = {.source = {.savings = compared.savings->savings, .saving_count = compared.savings->count}};
    const struct vram_report_source source = {.replay = begin_replays, .replay_user = &streamed};
    OK(vram_report_text(compared.report, &source, NULL, keep_streamed, &streamed));
    assert_int_equal(streamed.calls, 1);
    assert_non_null(strstr(vr_text_string(&streamed.written), "expandable_segments:True: 800.0 MiB instead of 1.1 GiB"));
    vr_text_release(&streamed.written);
    end_comparison(&compared);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(savings_are_known), cmocka_unit_test(the_time_is_over),
                                       cmocka_unit_test(long_histories_are_named), cmocka_unit_test(facts_come_before_replays)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
