#include "fit_remedies.h"
#include "base/json_rows.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/json.h"
#include "fit_failure.h"
#include "fit_page.h"
#include "ui.h"
#include "vram/demand.h"
#include "vram/recording.h"
#include "vram/replay.h"
#include "vram/report.h"
#include "vram/roles.h"

enum { MOST_PRINTED = 3 };

void fit_find_remedies(const struct fit_verdict *verdict, const struct fit_setting *setting, struct fit_remedies *remedies) {
    const struct fit_holding *highest = verdict->highest;
    const struct vram_report_options options = {.top = 4, .memory_bytes = setting->room_bytes};
    *remedies = (struct fit_remedies){.report = NULL};
    if (!setting->any || setting->found || setting->room_bytes == 0 || highest->process->whole_program) return;
    if (vram_report_create(verdict->recording, &options, &remedies->report, NULL) != VRAM_OK) return;
    for (size_t i = 0; i < remedies->report->device_count; i++) {
        const struct vram_report_device *device = &remedies->report->devices[i];
        if (device->device == highest->device && !device->is_host) remedies->demand = device->demand;
    }
}

void fit_remedies_release(struct fit_remedies *remedies) {
    vram_report_destroy(remedies->report);
    *remedies = (struct fit_remedies){.report = NULL};
}

bool fit_remedies_know_passes(const struct fit_remedies *remedies) {
    static const char *const phases[] = {"forward", "backward", "optimizer"};
    for (size_t i = 0; remedies->demand != NULL && i < sizeof phases / sizeof *phases; i++)
        if (strcmp(remedies->demand->phase, phases[i]) == 0) return true;
    return false;
}

// Prints the sentence with the call site's path shortened to its folder and file.
static void print_sentence(FILE *page, const struct vram_report_remedy *remedy) {
    char text[2000];
    const char *site = remedy->site[0] == '\0' ? NULL : strstr(remedy->text, remedy->site);
    if (site == NULL)
        (void)snprintf(text, sizeof text, "%s", remedy->text);
    else
        (void)snprintf(text, sizeof text, "%.*s%s%s", (int)(site - remedy->text), remedy->text, fit_site_short(remedy->site),
                       site + strlen(remedy->site));
    ui_wrap(page, text, FIT_TEXT_COLUMN, UINT_MAX);
    fprintf(page, "\n");
}

void fit_remedies_print(FILE *page, const struct fit_remedies *remedies, bool batch_printed) {
    size_t printed = 0;
    for (size_t i = 0; remedies->demand != NULL && i < remedies->demand->remedy_count && printed < MOST_PRINTED; i++) {
        const struct vram_report_remedy *remedy = &remedies->demand->remedies[i];
        if (batch_printed && remedy->remedy == VRAM_REMEDY_BATCH) continue;
        fprintf(page, "  %-*s", FIT_TEXT_COLUMN - 2, printed++ == 0 ? "Or change" : "");
        print_sentence(page, remedy);
    }
}

#define FIT_REMEDY_FACTS(X)                                                                                                                \
    X(TEXT, "remedy", vram_remedy_name(it->remedy), ALWAYS, "kind of remedy, as in the report")                                            \
    X(BOOL, "fits", it->fits, ALWAYS, "it makes the program fit")                                                                          \
    X(U64, "saved_bytes", it->saved_bytes, ALWAYS, "reduction of the highest demand")                                                      \
    X(U64, "left_bytes", it->left_bytes, ALWAYS, "highest demand afterwards")                                                              \
    X(TEXT, "site", it->site, ALWAYS, "place of the change; empty: no single place")                                                       \
    X(TEXT, "text", it->text, ALWAYS, "the remedy and its effect, as a sentence")

void fit_remedies_json(struct vr_json *json, const char *key, const struct fit_remedies *remedies) {
    vr_json_array(json, key);
    for (size_t i = 0; i < remedies->demand->remedy_count; i++) {
        const struct vram_report_remedy *it = &remedies->demand->remedies[i];
        vr_json_object(json, NULL);
        FIT_REMEDY_FACTS(VR_FACT_JSON)
        vr_json_object_end(json);
    }
    vr_json_array_end(json);
}

#define MOST_EVENTS 200000 // a search replays them hundreds of times

// Returns the next card by memory below the smallest that the program fits on.
static const struct fit_card *next_smaller(const struct fit_verdict *verdict) {
    const struct fit_card *card = NULL;
    for (size_t i = 0; i < verdict->card_count && &verdict->cards[i] != verdict->smallest_card; i++)
        if (fit_is_old(&verdict->cards[i].model) == fit_is_old(&verdict->ran_on) && fit_is_offered(&verdict->cards[i]))
            card = &verdict->cards[i];
    return card;
}

static void search_setting(const struct fit_verdict *verdict, struct fit_setting *setting) {
    const struct vram_recording *recording = verdict->recording;
    const struct vram_tune_options options = {.memory_bytes = setting->room_bytes};
    struct vram_tune_result *result;
    if (vram_tune(&recording, 1, &options, &result, NULL) != VRAM_OK) return;
    const struct vram_tune_setting *best = &result->settings[result->best];
    setting->tried = true;
    setting->found = best->fits && best->needed_bytes != 0;
    setting->needed_bytes = best->needed_bytes;
    (void)snprintf(setting->conf, sizeof setting->conf, "%s", best->conf);
    vram_tune_result_destroy(result);
}

// Tries each usual setting with one replay in the card's room. Takes the first with which the program completes.
static void try_usual(const struct fit_verdict *verdict, struct fit_setting *setting) {
    static const char *const usual[] = {"expandable_segments:True", "max_split_size_mb:128", "max_split_size_mb:256",
                                        "max_split_size_mb:64",     "max_split_size_mb:512", "garbage_collection_threshold:0.8"};
    for (size_t i = 0; i < sizeof usual / sizeof *usual && !setting->found; i++) {
        const struct vram_whatif_options options = {
            .conf = usual[i], .memory_bytes = setting->room_bytes, .one_device = true, .device = verdict->highest->device};
        struct vram_whatif_result *result;
        if (vram_replay_whatif(verdict->recording, &options, &result, NULL) != VRAM_OK) continue;
        setting->tried = true;
        setting->found = result->finished;
        setting->needed_bytes = setting->room_bytes;
        (void)snprintf(setting->conf, sizeof setting->conf, "%s", usual[i]);
        vram_whatif_result_destroy(result);
    }
}

// Returns the largest requested card that the program does not fit on. If it fits on all, the next smaller card.
static const struct fit_card *card_to_reach(const struct fit_verdict *verdict, bool *asked) {
    const struct fit_card *card = NULL;
    for (size_t i = 0; i < verdict->card_count; i++)
        if (verdict->cards[i].asked && !verdict->cards[i].fits && fit_is_old(&verdict->cards[i].model) == fit_is_old(&verdict->ran_on))
            card = &verdict->cards[i];
    *asked = card != NULL;
    return card != NULL ? card : next_smaller(verdict);
}

// Chooses the goal: the limit, or a card. Returns false if the goal is met or there is none.
static bool aim_setting(const struct fit_verdict *verdict, uint64_t limit_bytes, struct fit_setting *setting) {
    const uint64_t outside_bytes = verdict->highest->outside_bytes + verdict->others_bytes;
    *setting = (struct fit_setting){.card = NULL};
    if (limit_bytes != UINT64_MAX) {
        if (verdict->smallest_bytes <= limit_bytes) return false;
        setting->any = setting->asked = true;
        setting->room_bytes = limit_bytes > outside_bytes ? limit_bytes - outside_bytes : 0;
        return true;
    }
    setting->card = card_to_reach(verdict, &setting->asked);
    setting->any = setting->card != NULL;
    setting->room_bytes = setting->any ? setting->card->room_bytes : 0;
    return setting->any;
}

void fit_find_setting(const struct fit_verdict *verdict, uint64_t limit_bytes, struct fit_setting *setting) {
    const struct fit_holding *highest = verdict->highest;
    if (!aim_setting(verdict, limit_bytes, setting) || highest->process->whole_program || highest->allocated_bytes > setting->room_bytes)
        return;
    if (vram_recording_event_count(verdict->recording, VRAM_ALL_DEVICES) <= MOST_EVENTS)
        search_setting(verdict, setting);
    else
        try_usual(verdict, setting);
}

#define MOST_TRIED 4

// An argument that may be a batch.
struct candidate {
    char name[64];
    int place;   // index of its value among the program's words
    bool joined; // to its name
    uint64_t value;
};

static bool names_batch(const char *name, size_t length) {
    if (length == 2 && strncmp(name, "-b", 2) == 0) return true;
    for (size_t i = 0; i + 5 <= length; i++)
        if (strncasecmp(name + i, "batch", 5) == 0) return true;
    return false;
}

static bool is_count(const char *text, uint64_t *value) {
    char *end;
    if (text == NULL || text[0] < '1' || text[0] > '9') return false;
    *value = strtoull(text, &end, 10);
    return *end == '\0' && *value < 1000000000;
}

// Finds arguments whose value can be halved: "--batch-size 16", "--batch_size=16", "train.batch_size=16", "-b 16".
static size_t find_candidates(char *const *program, struct candidate *found) {
    size_t count = 0;
    for (int i = 1; program[0] != NULL && program[i] != NULL && count < MOST_TRIED; i++) {
        struct candidate *one = &found[count];
        const size_t length = strcspn(program[i], "=");
        *one = (struct candidate){.joined = program[i][length] == '='};
        if (length >= sizeof one->name || !names_batch(program[i], length)) continue;
        if (!one->joined && program[i][0] != '-') continue; // a file of that name
        if (!is_count(one->joined ? program[i] + length + 1 : program[i + 1], &one->value) || one->value < 2) continue;
        one->place = one->joined ? i : i + 1;
        (void)snprintf(one->name, sizeof one->name, "%.*s", (int)length, program[i]);
        count++;
    }
    return count;
}

void fit_find_batch(const struct fit_verdict *verdict, const struct fit_setting *setting, struct fit_batch *batch) {
    static const enum vram_role varying[] = {VRAM_ROLE_ACTIVATIONS, VRAM_ROLE_RECOMPUTED, VRAM_ROLE_INPUT};
    const struct vram_roles_options options = {.device = verdict->highest->device};
    struct vram_roles *roles;
    *batch = (struct fit_batch){.known = false};
    if (!setting->any || setting->found || verdict->highest->process->whole_program) return;
    if (vram_roles_create(verdict->recording, &options, &roles, NULL) != VRAM_OK) return;
    for (size_t i = 0; i < sizeof varying / sizeof *varying; i++) batch->varying_bytes += roles->at_peak[varying[i]].bytes;
    // If there is almost none of these, the temporaries belong to the optimizer.
    if (batch->varying_bytes > verdict->highest->allocated_bytes / 100) batch->varying_bytes += roles->at_peak[VRAM_ROLE_TEMPORARIES].bytes;
    vram_roles_destroy(roles);
    const uint64_t allocated = verdict->highest->allocated_bytes, room = setting->room_bytes;
    batch->varying_bytes = batch->varying_bytes < allocated ? batch->varying_bytes : allocated;
    batch->fixed_bytes = allocated - batch->varying_bytes;
    batch->known = batch->varying_bytes > 0;
    if (!batch->known || batch->fixed_bytes >= room) return;
    // Assume that reserved bytes grow in proportion to live bytes.
    const double held = (double)verdict->highest->reserved_bytes / (double)allocated;
    batch->share = ((double)room / held - (double)batch->fixed_bytes) / (double)batch->varying_bytes;
    if (batch->share < 0) batch->share = 0;
    if (batch->share > 0.99) batch->share = 0.99;
}

// --- by trying ----------------------------------------------------------------------------------------------------------------------

// Returns the peak with another value of the argument. 0 if the run did not get as far.
static uint64_t peak_with(const struct fit_plan *plan, const struct candidate *one, uint64_t value) {
    struct fit_plan other = *plan;
    struct fit_run run;
    char text[100];
    uint64_t peak_bytes = 0;
    size_t count = 0;
    while (plan->program[count] != NULL) count++;
    char **words = calloc(count + 1, sizeof *words);
    if (words == NULL) return 0;
    memcpy(words, plan->program, count * sizeof *words);
    (void)snprintf(text, sizeof text, "%s%s%" PRIu64, one->joined ? one->name : "", one->joined ? "=" : "", value);
    words[one->place] = text;
    other.program = words;
    other.quiet = true;
    ui_say("vram fit: running again with %s=%" PRIu64 ", to see whether the peak scales with it", one->name, value);
    if (fit_run(&other, &run) == CLI_OK) {
        for (size_t i = 0; !fit_run_failed(&run) && i < run.holding_count; i++)
            if (run.holdings[i].allocated_bytes > peak_bytes) peak_bytes = run.holdings[i].allocated_bytes;
        fit_run_release(&run);
    }
    free(words);
    return peak_bytes;
}

// Fits a line through two points: the peak, and the peak with half the value.
static void settle_batch(const struct candidate *one, uint64_t half_bytes, const struct fit_holding *highest, uint64_t room_bytes,
                         struct fit_batch *batch) {
    const double steps = (double)(one->value - one->value / 2), each = (double)(highest->allocated_bytes - half_bytes) / steps;
    const double fixed = (double)highest->allocated_bytes - each * (double)one->value;
    const double held = (double)highest->reserved_bytes / (double)highest->allocated_bytes; // ratio of reserved to live bytes
    const double most = ((double)room_bytes / held - fixed) / each;
    batch->known = batch->tried = true;
    batch->fixed_bytes = fixed > 0 ? (uint64_t)fixed : 0;
    batch->varying_bytes = highest->allocated_bytes - batch->fixed_bytes;
    (void)snprintf(batch->argument, sizeof batch->argument, "%s", one->name);
    batch->value = one->value;
    batch->about = most < 1 ? 0 : most < (double)one->value ? (uint64_t)most : one->value - 1;
    batch->share = (double)batch->about / (double)one->value;
}

void fit_try_batch(const struct fit_plan *plan, const struct fit_verdict *verdict, const struct fit_setting *setting,
                   struct fit_batch *batch) {
    struct candidate candidates[MOST_TRIED];
    const struct fit_holding *highest = verdict->highest;
    const struct candidate *best = NULL;
    uint64_t least_bytes = highest->allocated_bytes - highest->allocated_bytes / 100; // a peak below this counts as a change
    if (!setting->asked || setting->found) return;
    const size_t count = find_candidates(plan->program, candidates);
    for (size_t i = 0; i < count; i++) {
        const uint64_t bytes = peak_with(plan, &candidates[i], candidates[i].value / 2);
        if (bytes == 0 || bytes >= least_bytes) continue;
        least_bytes = bytes;
        best = &candidates[i];
    }
    if (best != NULL) settle_batch(best, least_bytes, highest, setting->room_bytes, batch);
}
