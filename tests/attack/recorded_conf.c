#include "attack/recorded_conf.h"

#include <stdio.h>

#include "attack/option_grammar.h"
#include "vram/export.h"
#include "vram/oom.h"
#include "vram/explorer.h"
#include "vram/replay.h"
#include "vram/report.h"

// A segment of 20 MiB with a block of 5 MiB, and a failed request, so that reports, replays and cures have work to do.
static const char before[] =
    "{\"segments\": [{\"device\": 0, \"address\": 1099511627776, \"total_size\": 20971520, \"allocated_size\": 5242880, \"active_size\": "
    "5242880,"
    " \"requested_size\": 5242880, \"stream\": 0, \"segment_type\": \"large\", \"segment_pool_id\": [0, 0], \"is_expandable\": false, "
    "\"frames\": [],"
    " \"blocks\": [{\"address\": 1099511627776, \"size\": 5242880, \"requested_size\": 5242880, \"state\": \"active_allocated\", "
    "\"frames\": []},"
    " {\"address\": 1099516870656, \"size\": 15728640, \"requested_size\": 0, \"state\": \"inactive\", \"frames\": []}]}], "
    "\"device_traces\": [["
    "{\"action\": \"segment_alloc\", \"addr\": 1099511627776, \"size\": 20971520, \"stream\": 0, \"frames\": [], \"time_us\": 0},"
    " {\"action\": \"alloc\", \"addr\": 1099511627776, \"size\": 5242880, \"stream\": 0, \"frames\": [], \"time_us\": 1},"
    " {\"action\": \"oom\", \"addr\": 1048576, \"size\": 1073741824, \"stream\": 0, \"frames\": [], \"time_us\": 2, \"device_free\": "
    "1048576}]],"
    " \"allocator_settings\": ";
static const char after[] = ", \"external_annotations\": []}";

static void require(bool holds, const char *what, const char *conf) {
    if (holds) return;
    fprintf(stderr, "%s: a recording with \"%s\"\n", what, conf);
    abort();
}

static bool append(void *user, const char *bytes, size_t length) {
    vr_text_append(user, bytes, length);
    return true;
}

static bool drop(void *user, const char *bytes, size_t length) {
    (void)user;
    (void)bytes;
    return length != 0;
}

static struct vram_recording *read_text(const struct vr_text *text, const char *conf) {
    struct vram_recording *recording = NULL;
    struct vram_error error = {.message = ""};
    const enum vram_status status = vram_recording_read_memory(text->bytes, text->length, NULL, &recording, &error);
    if (status != VRAM_OK) fprintf(stderr, "%s\n", error.message);
    require(status == VRAM_OK, "it cannot be read", conf);
    return recording;
}

static void report(const struct vram_recording *recording, const char *conf) {
    struct vram_report *made;
    struct vram_cures *cures;
    require(vram_report_create(recording, NULL, &made, NULL) == VRAM_OK, "no report", conf);
    require(vram_report_json(made, NULL, drop, NULL) == VRAM_OK && vram_report_text(made, NULL, NULL, drop, NULL) == VRAM_OK, "no text",
            conf);
    const enum vram_status status = vram_cures_find_within(recording, made, 20000000, &cures, NULL);
    require(status == VRAM_OK || status == VRAM_BAD_OPTION, "the search for a cure fails", conf);
    if (status == VRAM_OK) vram_cures_destroy(cures);
    vram_report_destroy(made);
}

static void require_answer(enum vram_status status, const char *what, const char *conf) {
    if (status != VRAM_OK && status != VRAM_BAD_OPTION && status != VRAM_LIMIT) fprintf(stderr, "%s: ", vram_status_name(status));
    require(status == VRAM_OK || status == VRAM_BAD_OPTION || status == VRAM_LIMIT, what, conf);
}

static void replay(const struct vram_recording *recording, const char *conf) {
    for (int given = 0; given < 2; given++) {
        const struct vram_exact_options exactly = {.conf = given ? conf : NULL};
        const struct vram_whatif_options otherwise = {.conf = given ? conf : NULL, .memory_bytes = (uint64_t)64 << 20};
        struct vram_exact_result *exact = NULL;
        struct vram_whatif_result *whatif = NULL;
        require_answer(vram_replay_exact(recording, &exactly, &exact, NULL), "the exact replay fails", conf);
        require_answer(vram_replay_whatif(recording, &otherwise, &whatif, NULL), "the replay fails", conf);
        vram_exact_result_destroy(exact);
        vram_whatif_result_destroy(whatif);
    }
}

static void tune(const struct vram_recording *recording, const char *conf) {
    const struct vram_tune_options options = {.threads = 1};
    struct vram_tune_result *result = NULL;
    require_answer(vram_tune(&recording, 1, &options, &result, NULL), "the search of settings fails", conf);
    vram_tune_result_destroy(result);
}

// Passes the recording to an explorer, as the viewer does.
static void explore(struct vram_recording *recording, size_t bytes, const char *conf) {
    struct vram_explorer *explorer;
    require(vram_explorer_create(&explorer) == VRAM_OK && vram_explorer_add(explorer, recording, "file", bytes, NULL) == VRAM_OK,
            "no explorer", conf);
    require(vram_explorer_ask(explorer, "settings", drop, NULL, NULL) == VRAM_OK, "its settings cannot be asked for", conf);
    require(vram_explorer_ask(explorer, "groups", drop, NULL, NULL) == VRAM_OK, "its groups cannot be asked for", conf);
    vram_explorer_destroy(explorer);
}

void recorded_conf_try(uint64_t *random, const char *conf, bool also_tune) {
    struct vr_text text = {0}, pickle = {0};
    vr_text_puts(&text, before);
    grammar_draw_settings(random, conf, &text);
    vr_text_puts(&text, after);
    struct vram_recording *recording = read_text(&text, conf);
    report(recording, conf);
    replay(recording, conf);
    if (also_tune) tune(recording, conf);
    require(vram_recording_write(recording, VRAM_FORMAT_PICKLE, append, &pickle, NULL) == VRAM_OK, "it cannot be written", conf);
    struct vram_recording *again = read_text(&pickle, conf);
    report(again, conf);
    explore(again, pickle.length, conf);
    vram_recording_destroy(recording);
    vr_text_release(&text);
    vr_text_release(&pickle);
}
