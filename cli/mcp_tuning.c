// Adds what would have saved memory, in the report's words: paged memory and changes to the program. Part of the answers of `why` and
// `cure`.

#include <cjson/cJSON.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "mcp.h"
#include "vram/demand.h"
#include "vram/oom.h"
#include "vram/replay.h"
#include "vram/report.h"

#define BYTES(bytes) mcp_bytes((bytes), (char[MCP_BYTES_CAPACITY]){0})
// Time limit of these replays, in addition to the time that the tool itself waits.
#define PATIENCE_NS (MCP_PATIENCE_NS / 4 * 3)

void mcp_say_remedies(struct mcp_answer *answer, const struct vram_report_demand *demand, size_t most) {
    if (demand == NULL) return;
    for (size_t i = 0; i < demand->remedy_count && i < most; i++) {
        const struct vram_report_remedy *remedy = &demand->remedies[i];
        mcp_line(answer, "%zu. %s", i + 1, remedy->text);
        mcp_line(answer, "   exactly %s less, %s in total; %s", BYTES(remedy->saved_bytes), BYTES(remedy->left_bytes), remedy->basis);
    }
}

static bool keep_text(void *user, const char *bytes, size_t length) {
    char *text = user;
    const size_t used = strlen(text), room = MCP_ANSWER_BYTES / 2 - used - 1, kept = length < room ? length : room;
    memcpy(text + used, bytes, kept);
    text[used + kept] = '\0';
    return true;
}

static void say_paged_saving(struct mcp_answer *answer, const struct vram_paged_saving *saving) {
    char text[MCP_ANSWER_BYTES / 2] = "";
    if (vram_paged_saving_text(saving, keep_text, text) == VRAM_OK && text[0] != '\0') mcp_line(answer, "%s", text);
}

void mcp_say_saving(struct mcp_answer *answer, const struct mcp_recording *open, int64_t device) {
    struct vram_paged_savings *savings = NULL;
    const size_t devices = open->report->device_count == 0 ? 1 : open->report->device_count;
    if (vram_paged_savings_find(open->recording, open->report, PATIENCE_NS / devices, &savings, NULL) != VRAM_OK) return;
    for (size_t i = 0; i < savings->count; i++) {
        if (device < 0 || savings->savings[i].device == device) say_paged_saving(answer, &savings->savings[i]);
    }
    vram_paged_savings_destroy(savings);
}

// Tools cure and tune: which settings would have helped. Replays take time in proportion to the history, so an answer does not wait for all
// of them.

#define NUMBER(number)        mcp_number((number), (char[MCP_BYTES_CAPACITY]){0})
#define COUNTED(number, noun) mcp_counted((number), (noun), (char[MCP_BYTES_CAPACITY]){0})

// Wait for the full cure of `vram report`, which takes a second for most recordings.
#define CURE_PATIENCE_NS UINT64_C(10000000000)

enum { SHOWN_SETTINGS = 6 };

static const struct vram_report_demand *demand_of(const struct vram_report *report, uint32_t device) {
    for (size_t i = 0; i < report->device_count; i++) {
        const struct vram_report_device *found = &report->devices[i];
        if (found->device == device) return found->oom_count == 0 ? found->demand : found->ooms[found->oom_count - 1].demand;
    }
    return NULL;
}

static void say_cure(struct mcp_answer *answer, const struct vram_cure *cure, unsigned id) {
    mcp_line(answer, "device %" PRIu32 ", out of memory at event %" PRIu64 "; %s replayed", cure->device, cure->event,
             COUNTED(cure->tried, "setting"));
    if (cure->room_bytes == 0)
        mcp_line(answer, "the recording does not say how much memory was available");
    else
        mcp_line(answer, "%s was available; at most %s was live at once, the failed requests included", BYTES(cure->room_bytes),
                 BYTES(cure->demand_bytes));
    switch (cure->verdict) {
    case VRAM_CURE_SETTING:
        mcp_line(answer, "cure: %s=%s", cure->variable, cure->conf);
        if (cure->from_recorded_start) mcp_line(answer, "replayed from the memory state at the start of the recording");
        mcp_line(answer, "with it, the history fits: it holds at most %s%s%s", BYTES(cure->held_bytes),
                 cure->needed_bytes == 0 ? "" : " and needs ", cure->needed_bytes == 0 ? "" : BYTES(cure->needed_bytes));
        mcp_next(answer, "tune {\"file\": \"r%u\"} - all settings, with driver calls and time", id);
        return;
    case VRAM_CURE_DEMAND:
        mcp_line(answer, "no setting can help: %s more was needed at once than was available",
                 BYTES(cure->demand_bytes > cure->room_bytes ? cure->demand_bytes - cure->room_bytes : 0));
        mcp_next(answer, "peak {\"file\": \"r%u\", \"by\": \"role\"} - which kind of memory is worth saving", id);
        return;
    case VRAM_CURE_NONE: mcp_line(answer, "none of the settings tried fits, although less was live than was available"); break;
    case VRAM_CURE_NOT_REPRODUCED:
        mcp_line(answer, "the replay does not run out of memory with the recorded setting, so it cannot tell which setting helps");
        break;
    case VRAM_CURE_LIMIT: mcp_line(answer, "cure: raise the limit of the process to at least %s", BYTES(cure->limit_to_bytes)); break;
    case VRAM_CURE_GROWTH: mcp_line(answer, "no setting was tried: memory that grows with every step fills any device"); break;
    case VRAM_CURE_NO_REPLAY: mcp_line(answer, "the history cannot be replayed"); break;
    default: mcp_line(answer, "no setting was found within the time limit; `vram report` has no time limit"); break;
    }
    if (cure->usual != NULL) mcp_line(answer, "not proven, but this usually helps after such a failure: %s", cure->usual);
    mcp_next(answer, "why {\"file\": \"r%u\"}", id);
}

// Prints that the peak does not fit on the card that was asked for. The recording itself contains no out-of-memory error.
static void say_for_card(struct mcp_answer *answer, const struct mcp_recording *open, int64_t wanted, uint64_t memory) {
    const struct vram_report_options options = {.memory_bytes = memory};
    struct vram_report *report = NULL;
    if (vram_report_create(open->recording, &options, &report, NULL) != VRAM_OK) return;
    for (size_t i = 0; i < report->device_count; i++) {
        const struct vram_report_demand *demand = report->devices[i].demand;
        if (demand == NULL || !demand->room_is_named || (wanted >= 0 && report->devices[i].device != wanted)) continue;
        mcp_line(answer, "device %" PRIu32 ": %s is live at the peak (event %" PRId64 "), %s more than %s", report->devices[i].device,
                 BYTES(demand->wanted_bytes), demand->event, BYTES(demand->wanted_bytes - demand->room_bytes), BYTES(memory));
        mcp_line(answer, "why: %s", demand->text);
        mcp_say_remedies(answer, demand, SIZE_MAX);
        mcp_next(answer, "tune {\"file\": \"r%u\", \"memory\": \"%" PRIu64 "B\"} - does the rest also fit, and with which setting",
                 open->id, memory);
    }
    vram_report_destroy(report);
}

// Adds the cures. The device of the answer comes last, because its line suggests the next question.
static void say_cures(struct mcp_answer *answer, const struct mcp_recording *open, const struct vram_cures *cures, int64_t wanted) {
    const struct vram_report_device *worst = vram_report_worst_device(open->report);
    const int64_t about = wanted >= 0 || worst == NULL ? wanted : (int64_t)worst->device;
    if (open->report->device_count > 1 && about >= 0) mcp_about(answer, (uint32_t)about);
    for (int last = wanted >= 0; last < 2; last++) {
        for (size_t i = 0; i < cures->count; i++) {
            const struct vram_cure *cure = &cures->cures[i];
            if ((cure->device == about) != (last != 0)) continue;
            say_cure(answer, cure, open->id);
            if (cure->verdict != VRAM_CURE_SETTING) mcp_say_remedies(answer, demand_of(open->report, cure->device), SIZE_MAX);
        }
    }
}

void mcp_tool_cure(struct mcp_server *server, const cJSON *arguments, struct mcp_answer *answer) {
    struct vram_cures *cures = NULL;
    struct vram_error error;
    const struct mcp_recording *open = mcp_recording(server, arguments, "file", answer);
    if (open == NULL) return;
    int64_t wanted = -1;
    uint64_t memory = 0;
    if (!mcp_count(arguments, "device", 0, UINT32_MAX, &wanted, answer) || !mcp_size(arguments, "memory", &memory, answer)) return;
    if (vram_cures_find_within(open->recording, open->report, CURE_PATIENCE_NS, &cures, &error) != VRAM_OK) {
        mcp_fail(answer, "%s", error.message);
        return;
    }
    say_cures(answer, open, cures, wanted);
    if (answer->length == 0 && memory != 0) say_for_card(answer, open, wanted, memory);
    if (answer->length == 0) {
        mcp_line(answer, "no request failed%s: there is nothing to cure", wanted < 0 ? "" : " on this device");
        mcp_next(answer, "tune {\"file\": \"r%u\"} - would other settings need less", open->id);
    }
    mcp_say_saving(answer, open, wanted);
    vram_cures_destroy(cures);
}

// --- tune --------------------------------------------------------------------------------------------------------------------------------

// A search that continues between calls. There is at most one. Its recording stays open.
struct mcp_tuning {
    pthread_t thread;
    char *path;
    uint64_t memory_bytes, file_bytes, stamp_ns;
    const struct vram_recording *recording; // borrowed; mcp_recording.held keeps it open
    unsigned id;
    struct vram_tune_result *result;
    struct vram_error error;
    enum vram_status status;
    _Atomic uint64_t done, total;
    _Atomic bool ended;
};

static void note_progress(uint64_t done, uint64_t total, void *user) {
    struct mcp_tuning *tuning = user;
    atomic_store(&tuning->total, total);
    atomic_store(&tuning->done, done);
}

static void *search_settings(void *user) {
    struct mcp_tuning *tuning = user;
    const struct vram_recording *const one = tuning->recording;
    const struct vram_tune_options options = {.memory_bytes = tuning->memory_bytes, .progress = note_progress, .user = tuning};
    tuning->status = vram_tune(&one, 1, &options, &tuning->result, &tuning->error);
    atomic_store(&tuning->ended, true);
    return NULL;
}

void mcp_tuning_end(struct mcp_server *server) {
    struct mcp_tuning *tuning = server->tuning;
    if (tuning == NULL) return;
    server->tuning = NULL;
    // A search cannot be interrupted. The process is about to exit, so leave it running.
    if (!atomic_load(&tuning->ended)) return;
    (void)pthread_join(tuning->thread, NULL);
    for (size_t i = 0; i < MCP_OPEN_MOST; i++) server->open[i].held = server->open[i].held && server->open[i].id != tuning->id;
    vram_tune_result_destroy(tuning->result);
    free(tuning->path);
    free(tuning);
}

static bool is_of(const struct mcp_tuning *tuning, const struct mcp_recording *open, uint64_t memory) {
    return strcmp(tuning->path, open->path) == 0 && tuning->memory_bytes == memory && tuning->file_bytes == open->file_bytes &&
           tuning->stamp_ns == open->stamp_ns;
}

static bool start_search(struct mcp_server *server, struct mcp_recording *open, uint64_t memory, struct mcp_answer *answer) {
    struct mcp_tuning *tuning = calloc(1, sizeof *tuning);
    if (tuning != NULL) tuning->path = strdup(open->path);
    if (tuning == NULL || tuning->path == NULL) {
        mcp_fail(answer, "%s", vram_status_text(VRAM_NO_HOST_MEMORY));
        free(tuning);
        return false;
    }
    tuning->recording = open->recording;
    tuning->id = open->id;
    tuning->memory_bytes = memory;
    tuning->file_bytes = open->file_bytes;
    tuning->stamp_ns = open->stamp_ns;
    if (pthread_create(&tuning->thread, NULL, search_settings, tuning) != 0) {
        mcp_fail(answer, "cannot start a thread");
        free(tuning->path);
        free(tuning);
        return false;
    }
    open->held = true;
    server->tuning = tuning;
    return true;
}

static uint64_t now_ns(void) {
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

static void wait_a_little(const struct mcp_tuning *tuning) {
    const struct timespec step = {.tv_nsec = 2000000};
    const uint64_t begun = now_ns();
    while (now_ns() - begun < MCP_PATIENCE_NS && !atomic_load(&tuning->ended)) (void)nanosleep(&step, NULL);
}

static void say_setting(struct mcp_answer *answer, const struct vram_tune_setting *setting, const char *mark) {
    mcp_line(answer, "%s%s%s: needs %s, holds %s with memory to spare, %s driver calls, %.1f ms of the driver's time%s", mark,
             setting->conf[0] == '\0' ? "the defaults" : setting->conf,
             setting->today    ? " (today's)"
             : setting->beyond ? " (with vram's allocator instead of PyTorch's, which lacks this option)"
                               : "",
             setting->needed_bytes == 0 ? "(not found)" : BYTES(setting->needed_bytes), BYTES(setting->peak_reserved_bytes),
             NUMBER(setting->driver_calls), (double)setting->driver_time_ns / 1e6, setting->fits ? "" : "; does not fit");
}

static int by_need(const void *a, const void *b) {
    const struct vram_tune_setting *first = *(const struct vram_tune_setting *const *)a,
                                   *second = *(const struct vram_tune_setting *const *)b;
    if (first->needed_bytes == 0 || second->needed_bytes == 0) return (first->needed_bytes == 0) - (second->needed_bytes == 0);
    return (first->needed_bytes > second->needed_bytes) - (first->needed_bytes < second->needed_bytes);
}

static void say_result(struct mcp_answer *answer, const struct vram_tune_result *result, unsigned id) {
    const struct vram_tune_setting *best = &result->settings[result->best];
    mcp_line(answer, "%zu settings in %s replays; needs: the smallest memory in which the recorded requests succeed", result->setting_count,
             NUMBER(result->runs));
    if (result->memory_bytes != 0)
        mcp_line(answer, "%s in %s %s", best->fits ? "fits" : "does not fit", BYTES(result->memory_bytes),
                 !best->fits   ? "with any of them"
                 : best->today ? "with today's setting: nothing to change"
                               : "with the best one, not with today's");
    mcp_line(answer, "%s is live at the peak: no setting goes below that", BYTES(result->live_bytes));
    say_setting(answer, best, best->fits ? "best: " : "nearest: ");
    if (result->holds_less != VRAM_TUNE_NONE) say_setting(answer, &result->settings[result->holds_less], "holds the least: ");
    if (result->cheaper != VRAM_TUNE_NONE) say_setting(answer, &result->settings[result->cheaper], "nearly as little, less driver time: ");
    const struct vram_tune_setting **sorted = malloc(result->setting_count * sizeof(const struct vram_tune_setting *));
    for (size_t i = 0; sorted != NULL && i < result->setting_count; i++) sorted[i] = &result->settings[i];
    if (sorted != NULL) qsort(sorted, result->setting_count, sizeof(const struct vram_tune_setting *), by_need);
    size_t shown = 0;
    for (size_t i = 0; sorted != NULL && i < result->setting_count; i++) {
        const bool always = sorted[i]->today || sorted[i]->beyond;
        if (sorted[i] != best && (always || shown++ < SHOWN_SETTINGS)) say_setting(answer, sorted[i], "  ");
    }
    free(sorted);
    mcp_next(answer, "peak {\"file\": \"r%u\", \"by\": \"role\"} - memory that no setting can save", id);
}

void mcp_tool_tune(struct mcp_server *server, const cJSON *arguments, struct mcp_answer *answer) {
    uint64_t memory = 0;
    struct mcp_recording *open = mcp_recording(server, arguments, "file", answer);
    if (open == NULL || !mcp_size(arguments, "memory", &memory, answer)) return;
    if (server->tuning != NULL && !is_of(server->tuning, open, memory)) {
        if (!atomic_load(&server->tuning->ended)) {
            mcp_fail(answer, "another search is running (%s); ask again when it has ended", server->tuning->path);
            return;
        }
        mcp_tuning_end(server);
    }
    if (server->tuning == NULL && !start_search(server, open, memory, answer)) return;
    struct mcp_tuning *tuning = server->tuning;
    wait_a_little(tuning);
    if (!atomic_load(&tuning->ended)) {
        mcp_line(answer, "running: %s of %s settings tried", NUMBER(atomic_load(&tuning->done)), NUMBER(atomic_load(&tuning->total)));
        mcp_next(answer, "tune with the same arguments in a few seconds");
    } else if (tuning->status != VRAM_OK) {
        mcp_fail(answer, "%s", tuning->error.message);
        mcp_tuning_end(server);
    } else {
        say_result(answer, tuning->result, open->id);
    }
}
