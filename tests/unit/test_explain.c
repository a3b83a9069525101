// Runs programs that exhaust memory for a known reason on the simulated driver: the report must name the reason, and the cure must work.
#include <stdio.h>

#include "present/shared_texts.h"
#include "driver/driver.h"
#include "support/history.h"
#include "vram/explorer.h"
#include "vram/oom.h"
#include "vram/pool.h"
#include "vram/recording.h"

#define M *VR_MIB

static const struct vram_history_options NO_STACKS = {.context = VRAM_HISTORY_NONE};

// A program up to the request that fails.
struct scene {
    const char *name;
    const char *conf;
    uint64_t memory_bytes;
    uint64_t told_bytes; // the device's memory passed to the report; 0: not passed
    uint64_t ring;       // events kept; 0: all
    void (*play)(struct vr_world *world);
    enum vram_report_oom_cause cause;
    enum vram_cure_verdict verdict;
};

static void fail_to_take(struct vr_world *world, uint64_t size_bytes, uint64_t stream) {
    uint64_t address;
    const enum vram_status status = vram_malloc(world->allocator, 0, size_bytes, stream, &address);
    if (status != VRAM_OUT_OF_MEMORY) fail_msg("the request was answered with status %d", (int)status);
}

// Leaves only `kept` in use, in the middle of a segment of 100 MiB.
static void hollow(struct vr_world *world, uint64_t kept, uint64_t stream) {
    give(world, take(world, 100 M, stream));
    const uint64_t rest = (100 M - kept) / 2;
    const uint64_t low = take(world, rest, stream);
    (void)take(world, kept, stream);
    const uint64_t high = take(world, rest, stream);
    give(world, low);
    give(world, high);
}

static void in_pieces(struct vr_world *world) {
    hollow(world, 20 M, 0);
    fail_to_take(world, 60 M, 0);
}

static void pinned(struct vr_world *world) {
    hollow(world, 4 M, 0);
    fail_to_take(world, 60 M, 0);
}

// Twenty segments, each with a block of 1.5 MiB: together they had room for a large segment.
static void pinned_segments(struct vr_world *world) {
    uint64_t large[20];
    for (size_t i = 0; i < 20; i++) {
        large[i] = take(world, 9 M, 0);
        (void)take(world, 512 * 1024 + 1 M, 0);
        give(world, take(world, 9 M, 0));
    }
    for (size_t i = 0; i < 20; i++) give(world, large[i]);
    fail_to_take(world, 300 M, 0);
}

static void on_another_stream(struct vr_world *world) {
    hollow(world, 20 M, world->stream[0][1]);
    fail_to_take(world, 60 M, 0);
}

static void in_the_small_pool(struct vr_world *world) {
    uint64_t blocks[100];
    for (size_t i = 0; i < 100; i++) blocks[i] = take(world, 1 M, 0);
    for (size_t i = 0; i < 100; i += 2) give(world, blocks[i]);
    fail_to_take(world, 60 M, 0);
}

static void at_the_limit(struct vr_world *world) {
    OK(vram_set_memory_limit(world->allocator, 0, 80 M));
    (void)take(world, 60 M, 0);
    fail_to_take(world, 40 M, 0);
}

static void taken_by_a_library(struct vr_world *world) {
    uint64_t address;
    assert_int_equal(vr_cu(world->driver, mem_alloc, &address, 140 M), 0);
    (void)take(world, 60 M, 0);
    fail_to_take(world, 100 M, 0);
    assert_int_equal(vr_cu(world->driver, mem_free, address), 0);
}

static void all_in_use(struct vr_world *world) {
    for (size_t i = 0; i < 5; i++) (void)take(world, 40 M, 0);
    fail_to_take(world, 100 M, 0);
}

static const struct scene scenes[] = {
    {"in pieces", "", 120 M, 0, 0, in_pieces, VRAM_OOM_FRAGMENTED, VRAM_CURE_SETTING},
    {"in pieces, the total told", "", 120 M, 120 M, 0, in_pieces, VRAM_OOM_FRAGMENTED, VRAM_CURE_SETTING},
    {"pinned by one block", "", 120 M, 0, 0, pinned, VRAM_OOM_PINNED, VRAM_CURE_SETTING},
    {"segments pinned by a block each", "", 440 M, 0, 0, pinned_segments, VRAM_OOM_PINNED, VRAM_CURE_SETTING},
    {"on another stream", "", 120 M, 0, 0, on_another_stream, VRAM_OOM_OTHER_STREAMS, VRAM_CURE_SETTING},
    {"in the small pool", "", 120 M, 0, 0, in_the_small_pool, VRAM_OOM_OTHER_POOLS, VRAM_CURE_NONE},
    {"at the limit", "", 256 M, 0, 0, at_the_limit, VRAM_OOM_LIMIT, VRAM_CURE_LIMIT},
    {"taken by a library", "", 256 M, 256 M, 0, taken_by_a_library, VRAM_OOM_OUTSIDE, VRAM_CURE_DEMAND},
    {"taken by a library, and nobody says so", "", 256 M, 0, 0, taken_by_a_library, VRAM_OOM_FULL, VRAM_CURE_DEMAND},
    {"all in use", "", 256 M, 0, 0, all_in_use, VRAM_OOM_FULL, VRAM_CURE_DEMAND},
    {"all in use, with expandable segments", "expandable_segments:True", 256 M, 0, 0, all_in_use, VRAM_OOM_FULL, VRAM_CURE_DEMAND},
    {"the ring kept the end only", "", 120 M, 0, 3, in_pieces, VRAM_OOM_FRAGMENTED, VRAM_CURE_NOT_REPRODUCED},
};

// The history must fit with the setting, and must not fit without it.
static void check_setting(const char *name, const struct vram_recording *recording, const struct vram_cure *cure) {
    const char *const confs[] = {cure->conf, NULL};
    for (size_t i = 0; i < 2; i++) {
        const struct vram_whatif_options options = {.conf = confs[i], .memory_bytes = cure->room_bytes};
        struct vram_whatif_result *result;
        OK(vram_replay_whatif(recording, &options, &result, NULL));
        if (result->finished != (i == 0)) fail_msg("%s: '%s' %s", name, result->conf, result->finished ? "fits" : "does not fit");
        if (i == 0) assert_int_equal(cure->held_bytes, result->devices[0].peak_reserved_bytes);
        vram_whatif_result_destroy(result);
    }
    assert_true(cure->needed_bytes <= cure->room_bytes);
}

static bool keep(void *user, const char *bytes, size_t length) {
    vr_text_append(user, bytes, length);
    return true;
}

static void check_words(const struct vram_report *report, const struct vram_cures *cures) {
    const struct vram_report_source source = {.cures = cures->cures, .cure_count = cures->count};
    struct vr_text text = {0}, json = {0};
    OK(vram_report_text(report, &source, NULL, keep, &text));
    OK(vram_report_json(report, &source, keep, &json));
    assert_non_null(strstr(text.bytes, "Out of memory"));
    assert_non_null(strstr(text.bytes, "    cure "));
    assert_non_null(strstr(json.bytes, vram_cure_verdict_name(cures->cures[0].verdict)));
    if (cures->cures[0].conf[0] != '\0') assert_non_null(strstr(text.bytes, cures->cures[0].conf));
    vr_text_release(&text);
    vr_text_release(&json);
}

static void ask(struct vram_explorer *explorer, const char *question, struct vr_text *answer) {
    vr_text_release(answer);
    OK(vram_explorer_ask(explorer, question, keep, answer, NULL));
}

// The page finds the same cure, one replay at a time. Takes ownership of the recording.
static void check_page(const char *name, struct vram_recording *recording, const struct vram_cure *cure) {
    enum { HEAD = 8, MOST_PIECES = 100 }; // HEAD: bytes before an answer; MOST_PIECES: pieces of a search
    struct vram_explorer *explorer;
    struct vr_text answer = {0}, wanted = {0}, sentence = {0};
    struct vr_json json;
    vr_json_init(&json, &wanted, false);
    vr_json_object(&json, NULL);
    vr_json_object(&json, "cure");
    vr_cure_json(cure, &json);
    vr_json_object_end(&json);
    vr_cure_sentence(cure, &sentence);
    vr_json_string(&json, "text", vr_text_string(&sentence));
    OK(vram_explorer_create(&explorer));
    OK(vram_explorer_add(explorer, recording, name, 0, NULL));
    size_t pieces = 0;
    do ask(explorer, "prepare?for=cure", &answer);
    while (strstr(answer.bytes + HEAD, "\"ready\": true") == NULL && ++pieces < MOST_PIECES);
    if (cure->tried > 1 && pieces < cure->tried) fail_msg("%s: %zu pieces for %u settings", name, pieces, cure->tried);
    ask(explorer, "cure", &answer);
    if (strncmp(answer.bytes + HEAD, wanted.bytes, wanted.length) != 0) fail_msg("%s: %s, not %s", name, answer.bytes + HEAD, wanted.bytes);
    vram_explorer_destroy(explorer);
    vr_text_release(&answer);
    vr_text_release(&wanted);
    vr_text_release(&sentence);
}

// Takes ownership of the recording.
static void check_scene(const struct scene *scene, struct vram_recording *recording) {
    const struct vram_report_options options = {.memory_bytes = scene->told_bytes};
    struct vram_report *report;
    struct vram_cures *cures;
    OK(vram_report_create(recording, &options, &report, NULL));
    assert_int_equal(report->devices[0].oom_count, 1);
    const struct vram_report_oom *oom = &report->devices[0].ooms[0];
    if (oom->cause != scene->cause) fail_msg("%s: cause %d, not %d: %s", scene->name, (int)oom->cause, (int)scene->cause, oom->text);
    OK(vram_cures_find(recording, report, &cures, NULL));
    assert_int_equal(cures->count, 1);
    const struct vram_cure *cure = &cures->cures[0];
    if (cure->verdict != scene->verdict)
        fail_msg("%s: cure %s, not %s", scene->name, vram_cure_verdict_name(cure->verdict), vram_cure_verdict_name(scene->verdict));
    if (cure->verdict == VRAM_CURE_SETTING) check_setting(scene->name, recording, cure);
    if (cure->verdict == VRAM_CURE_DEMAND) assert_true(cure->demand_bytes > cure->room_bytes);
    check_words(report, cures);
    if (scene->told_bytes == 0)
        check_page(scene->name, recording, cure);
    else
        vram_recording_destroy(recording);
    vram_cures_destroy(cures);
    vram_report_destroy(report);
}

static void causes_are_named_and_cured(void **state) {
    (void)state;
    for (size_t i = 0; i < VR_COUNT_OF(scenes); i++) {
        struct vr_world world;
        struct vram_history_options options = NO_STACKS;
        options.max_entries = scenes[i].ring;
        history_world(&world, scenes[i].conf, 1, scenes[i].memory_bytes);
        start(&world, &options);
        scenes[i].play(&world);
        struct vram_recording *recording = snap(&world, NULL);
        check_scene(&scenes[i], recording);
        history_end(&world);
    }
}

// Memory that a graph's pool keeps free.
static void private_pools_are_named(void **state) {
    (void)state;
    struct vr_world world;
    struct vram_pool *pool;
    history_world(&world, "", 1, 120 M);
    start(&world, &NO_STACKS);
    OK(vram_pool_create(world.allocator, 0, NULL, &pool));
    uint64_t whole, small;
    OK(vram_pool_malloc(pool, 96 M, 0, &whole));
    OK(vram_pool_malloc(pool, 2 M, 0, &small));
    give(&world, whole);
    fail_to_take(&world, 60 M, 0);
    struct vram_recording *recording = snap(&world, NULL);
    const struct scene scene = {.name = "in a private pool", .cause = VRAM_OOM_PRIVATE_POOLS, .verdict = VRAM_CURE_NONE};
    check_scene(&scene, recording);
    give(&world, small);
    vram_pool_release(pool);
    history_end(&world);
}

// --- recordings as others write them ------------------------------------------------------------------------------------------

static struct vram_recording *read_json(const char *json) {
    struct vram_recording *recording;
    struct vram_error error = {.message = ""};
    if (vram_recording_read_memory(json, strlen(json), NULL, &recording, &error) != VRAM_OK) fail_msg("%s in %s", error.message, json);
    return recording;
}

static void recordings_of_others(void **state) {
    (void)state;
    static const struct {
        struct scene scene;
        const char *json;
    } cases[] = {
        {{.name = "waiting for another stream", .cause = VRAM_OOM_PENDING, .verdict = VRAM_CURE_DEMAND},
         "{\"segments\": [{\"device\": 0, \"address\": 1048576000, \"total_size\": 104857600, \"stream\": 0, \"segment_type\": \"large\","
         "\"blocks\": [{\"address\": 1048576000, \"size\": 104857600, \"requested_size\": 104857600, \"state\": "
         "\"active_pending_free\"}]}],"
         "\"device_traces\": [[{\"action\": \"segment_alloc\", \"addr\": 1048576000, \"size\": 104857600, \"stream\": 0},"
         "{\"action\": \"alloc\", \"addr\": 1048576000, \"size\": 104857600, \"stream\": 0},"
         "{\"action\": \"free_requested\", \"addr\": 1048576000, \"size\": 104857600, \"stream\": 0},"
         "{\"action\": \"oom\", \"device_free\": 1048576, \"size\": 62914560, \"stream\": 0}]]}"},
        {{.name = "a program under a limit", .cause = VRAM_OOM_LIMIT, .verdict = VRAM_CURE_LIMIT},
         "{\"segments\": [], \"allocator_settings\": {\"vram_run_process\": 7, \"vram_run_limit_bytes\": 104857600}, \"device_traces\": [["
         "{\"action\": \"alloc\", \"addr\": 1048576000, \"size\": 94371840, \"stream\": 0},"
         "{\"action\": \"oom\", \"device_free\": 10485760, \"size\": 62914560, \"stream\": 0},"
         "{\"action\": \"free_requested\", \"addr\": 1048576000, \"size\": 94371840, \"stream\": 0},"
         "{\"action\": \"free_completed\", \"addr\": 1048576000, \"size\": 94371840, \"stream\": 0}]]}"},
        {{.name = "a free block that would have served", .cause = VRAM_OOM_CONTRADICTORY, .verdict = VRAM_CURE_NOT_REPRODUCED},
         "{\"segments\": [{\"device\": 0, \"address\": 1048576000, \"total_size\": 104857600, \"stream\": 0, \"segment_type\": \"large\","
         "\"blocks\": [{\"address\": 1048576000, \"size\": 104857600, \"requested_size\": 0, \"state\": \"inactive\"}]}],"
         "\"device_traces\": [[{\"action\": \"segment_alloc\", \"addr\": 1048576000, \"size\": 104857600, \"stream\": 0},"
         "{\"action\": \"oom\", \"device_free\": 1048576, \"size\": 62914560, \"stream\": 0}]]}"},
    };
    for (size_t i = 0; i < VR_COUNT_OF(cases); i++) {
        struct vram_recording *recording = read_json(cases[i].json);
        check_scene(&cases[i].scene, recording);
    }
}

static void nothing_to_cure(void **state) {
    (void)state;
    struct vram_recording *recording = read_json("{\"segments\": [], \"device_traces\": [[]]}");
    struct vram_report *report;
    struct vram_cures *cures = NULL;
    OK(vram_report_create(recording, NULL, &report, NULL));
    OK(vram_cures_find(recording, report, &cures, NULL));
    assert_int_equal(cures->count, 0);
    vram_cures_destroy(cures);
    vram_cures_destroy(NULL);
    assert_int_equal(vram_cures_find(NULL, report, &cures, NULL), VRAM_INVALID_ARGUMENT);
    vram_report_destroy(report);
    vram_recording_destroy(recording);
}

// Memory that a program of `vram run` still has at its end is recorded as segments, which are not an allocator's cache.
static void a_program_that_keeps_some(void **state) {
    (void)state;
    struct vram_recording *recording =
        read_json("{\"segments\": [{\"device\": 0, \"address\": 2097152000, \"total_size\": 5242880, \"stream\": 0, \"blocks\": ["
                  "{\"address\": 2097152000, \"size\": 5242880, \"requested_size\": 5242880, \"state\": \"active_allocated\"}]}],"
                  "\"allocator_settings\": {\"vram_run_process\": 7, \"vram_run_limit_bytes\": 10485760}, \"device_traces\": [["
                  "{\"action\": \"alloc\", \"addr\": 1048576000, \"size\": 3145728, \"stream\": 0},"
                  "{\"action\": \"alloc\", \"addr\": 2097152000, \"size\": 5242880, \"stream\": 0},"
                  "{\"action\": \"oom\", \"device_free\": 2097152, \"size\": 4194304, \"stream\": 0},"
                  "{\"action\": \"free_requested\", \"addr\": 1048576000, \"size\": 3145728, \"stream\": 0},"
                  "{\"action\": \"free_completed\", \"addr\": 1048576000, \"size\": 3145728, \"stream\": 0}]]}");
    struct vram_report *report;
    OK(vram_report_create(recording, NULL, &report, NULL));
    const struct vram_report_oom *oom = &report->devices[0].ooms[0];
    assert_int_equal(oom->cause, VRAM_OOM_LIMIT);
    assert_int_equal(oom->allocated_bytes, 8 M);
    assert_int_equal(oom->reserved_bytes, 0);
    assert_int_equal(oom->segment_bytes, 4 M); // the request to the driver, not a segment of PyTorch's
    assert_int_equal(oom->room_bytes, 10 M);
    assert_int_equal(oom->outside_bytes, 0);
    struct vr_text text = {0};
    OK(vram_report_text(report, NULL, NULL, keep, &text));
    assert_non_null(strstr(text.bytes, "less than the 4.0 MiB requested"));
    assert_null(strstr(text.bytes, "Settings")); // no settings were recorded, only facts of the process
    vr_text_release(&text);
    vram_report_destroy(report);
    vram_recording_destroy(recording);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(causes_are_named_and_cured), cmocka_unit_test(private_pools_are_named), cmocka_unit_test(recordings_of_others),
        cmocka_unit_test(a_program_that_keeps_some),  cmocka_unit_test(nothing_to_cure),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
