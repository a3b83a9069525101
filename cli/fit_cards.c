#include "fit_cards.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "args.h"
#include "ui.h"
#include "vram/recording.h"
#include "vram/replay.h"
#include "vram/sim.h"

const char *const fit_method_names[FIT_METHOD_COUNT] = {
#define FIT_METHOD(constant, name) #name,
    FIT_METHODS(FIT_METHOD)
#undef FIT_METHOD
};

#define MIB ((uint64_t)1 << 20)

bool fit_model(const char *key, size_t length, struct vram_sim_model *model, uint32_t *number) {
    for (uint32_t i = 0; vram_sim_model_at(i, model); i++) {
        if (strlen(model->key) != length || memcmp(model->key, key, length) != 0) continue;
        *number = i;
        return true;
    }
    return false;
}

uint64_t fit_step_of(const struct vram_recording *recording, uint32_t device, uint64_t event) {
    struct vram_recorded_event row;
    struct vram_recorded_annotation mark;
    uint64_t step = 0;
    bool any = false;
    if (!vram_recording_event(recording, device, event, &row) || !row.has_time) return 0;
    for (uint64_t i = 0; vram_recording_annotation(recording, i, &mark); i++) {
        if (strcmp(mark.stage, "STEP") != 0 || mark.device != (int64_t)device) continue;
        any = true;
        step += mark.time_us < row.time_us; // a mark ends its step
    }
    return any ? step + 1 : 0;
}

void fit_site_of(const struct vram_recording *recording, uint32_t device, uint64_t event, char *site, size_t capacity) {
    struct vram_recorded_event row;
    struct vram_frame frame;
    site[0] = '\0';
    uint32_t *frames = calloc(vram_recording_stack_count(recording), sizeof *frames);
    if (frames != NULL && vram_recording_event(recording, device, event, &row) && vram_recording_sites(recording, frames) == VRAM_OK &&
        frames[row.stack] != VRAM_NO_FRAME && vram_recording_frame(recording, frames[row.stack], &frame))
        (void)snprintf(site, capacity, "%s:%u:%s", frame.filename, (unsigned)frame.line, frame.name);
    free(frames);
}

// Kernels differ most at compute capability 8.0, which introduced bfloat16 and flash attention.
bool fit_is_old(const struct vram_sim_model *model) { return model->compute_major < 8; }

bool fit_memory_is_estimated(const struct vram_sim_model *model) { return strchr(vram_sim_model_estimated(model->key), 'M') != NULL; }

// sm_ code runs on its own generation from its version up; compute_ code is compiled for any device at least as new.
bool fit_kernels_have(const char *built, const struct vram_sim_model *model) {
    bool any = false;
    for (const char *at = built; *at != '\0'; at += strcspn(at, " "), at += strspn(at, " ")) {
        const bool compiled = strncmp(at, "compute_", 8) == 0;
        const char *number = strchr(at, '_');
        const long capability = number == NULL ? 0 : strtol(number + 1, NULL, 10);
        if (capability == 0) continue;
        any = true;
        if (capability <= model->compute_major * 10 + model->compute_minor && (compiled || capability / 10 == model->compute_major))
            return true;
    }
    return !any;
}

// --- a replay -----------------------------------------------------------------------------------------------------------------------

struct outcome {
    bool fits;
    uint64_t retries;
    struct fit_oom oom;
};

static void describe_oom(const struct vram_recording *recording, const struct vram_whatif_device *device, uint64_t room,
                         struct fit_oom *oom) {
    *oom = (struct fit_oom){.known = true,
                            .requested_bytes = device->oom.requested_bytes,
                            .allocated_bytes = device->oom.allocated_bytes,
                            .cached_bytes = device->oom.cached_bytes,
                            .largest_free_bytes = device->oom.largest_free_bytes,
                            .room_bytes = room};
    if (device->oom_event == VRAM_NO_OFFSET) return;
    oom->step = fit_step_of(recording, device->device, device->oom_event);
    fit_site_of(recording, device->device, device->oom_event, oom->site, sizeof oom->site);
}

static enum vram_status replay_in_room(const struct vram_recording *recording, uint32_t device, uint64_t room, struct outcome *outcome,
                                       struct vram_error *error) {
    const struct vram_whatif_options options = {.memory_bytes = room, .one_device = true, .device = device};
    struct vram_whatif_result *result;
    const enum vram_status status = vram_replay_whatif(recording, &options, &result, error);
    if (status != VRAM_OK) return status;
    *outcome = (struct outcome){.fits = result->finished};
    if (result->device_count > 0) outcome->retries = result->devices[0].retries;
    if (result->device_count > 0 && result->devices[0].out_of_memory) describe_oom(recording, &result->devices[0], room, &outcome->oom);
    vram_whatif_result_destroy(result);
    return VRAM_OK;
}

// --- holdings -------------------------------------------------------------------------------------------------------------------------

static uint64_t subtract_saturated(uint64_t a, uint64_t b) { return a > b ? a - b : 0; }

// Returns the bytes outside the allocator except the context.
static uint64_t libraries_of(const struct fit_verdict *verdict, const struct fit_holding *holding) {
    return subtract_saturated(holding->outside_bytes, verdict->ran_on.context_bytes);
}

// Returns whether two processes may have used their devices at the same time. Two ranks of a job count as such even if they ran in turn
// here: in the real job they wait for each other.
static bool meet(const struct fit_process *one, const struct fit_process *other) {
    if (one->rank != other->rank) return true;
    const bool known = one->ended_us != 0 && other->ended_us != 0;
    return !known || (one->begun_us < other->ended_us && other->begun_us < one->ended_us);
}

// Returns what other processes hold of a holding's device on a card, and how many they are.
static uint64_t others_of(const struct fit_verdict *verdict, const struct fit_run *run, const struct fit_holding *holding,
                          const struct vram_sim_model *model, size_t *count) {
    uint64_t bytes = 0;
    *count = 0;
    for (size_t i = 0; i < run->holding_count; i++) {
        const struct fit_holding *other = &run->holdings[i];
        if (other == holding || other->ordinal != holding->ordinal || !meet(other->process, holding->process)) continue;
        bytes += other->reserved_bytes + libraries_of(verdict, other) + model->context_bytes;
        ++*count;
    }
    for (size_t i = 0; i < run->context_count; i++) {
        const struct fit_context *context = &run->contexts[i];
        if (context->ordinal != holding->ordinal || context->process == holding->process || !meet(context->process, holding->process))
            continue;
        bytes += subtract_saturated(context->outside_bytes, verdict->ran_on.context_bytes) + model->context_bytes;
        ++*count;
    }
    return bytes;
}

// Returns what a holding and the others of its device need on a card.
static uint64_t need_on(const struct fit_verdict *verdict, const struct fit_run *run, const struct fit_holding *holding,
                        const struct vram_sim_model *model) {
    size_t count;
    return holding->reserved_bytes + libraries_of(verdict, holding) + model->context_bytes +
           others_of(verdict, run, holding, model, &count);
}

// Returns the memory left for one holding's allocator on a card, after the other holdings of the same device.
static uint64_t room_for(const struct fit_verdict *verdict, const struct fit_run *run, const struct fit_holding *holding,
                         const struct vram_sim_model *model) {
    return subtract_saturated(model->memory_bytes, need_on(verdict, run, holding, model) - holding->reserved_bytes);
}

// Returns what the device holds besides the allocator of a holding.
static uint64_t rest_of(const struct fit_verdict *verdict, const struct fit_run *run, const struct fit_holding *holding) {
    size_t count;
    return holding->outside_bytes + others_of(verdict, run, holding, &verdict->ran_on, &count);
}

static bool is_like(const struct fit_verdict *verdict, const struct fit_run *run, const struct fit_holding *one,
                    const struct fit_holding *other) {
    return one->device == other->device && one->allocated_bytes == other->allocated_bytes && one->reserved_bytes == other->reserved_bytes &&
           one->outside_bytes == other->outside_bytes && rest_of(verdict, run, one) == rest_of(verdict, run, other);
}

// Returns whether an earlier holding has the same peaks, as ranks that are alike have.
static bool is_known(const struct fit_verdict *verdict, const struct fit_run *run, size_t number) {
    for (size_t i = 0; i < number; i++)
        if (is_like(verdict, run, &run->holdings[i], &run->holdings[number])) return true;
    return false;
}

// --- the least memory ---------------------------------------------------------------------------------------------------------------

// Bisects between the live peak, which is always needed, and the reserved peak, which is always enough.
// `rest`: bytes of the device besides the holding's allocator.
static enum vram_status bisect_room(const struct vram_recording *recording, const struct fit_holding *holding, uint64_t rest,
                                    struct fit_verdict *verdict, struct vram_error *error) {
    uint64_t low = holding->allocated_bytes / (2 * MIB), high = (holding->reserved_bytes + 2 * MIB - 1) / (2 * MIB), retries = 0;
    while (!holding->process->whole_program && low < high) {
        struct outcome outcome;
        const uint64_t middle = low + (high - low) / 2;
        const enum vram_status status = replay_in_room(recording, holding->device, middle == 0 ? MIB : middle * 2 * MIB, &outcome, error);
        if (status != VRAM_OK) return status;
        if (outcome.fits) {
            high = middle;
            retries = outcome.retries;
        } else {
            low = middle + 1;
        }
    }
    verdict->smallest_bytes = high * 2 * MIB + rest;
    verdict->smallest_retries = retries;
    return VRAM_OK;
}

// Raises the least memory to that of another holding, if this one does not complete in it.
static enum vram_status raise_smallest(const struct vram_recording *recording, const struct fit_holding *holding, uint64_t rest,
                                       struct fit_verdict *verdict, struct vram_error *error) {
    struct outcome outcome = {.fits = false};
    const uint64_t room = subtract_saturated(verdict->smallest_bytes, rest);
    enum vram_status status = VRAM_OK;
    if (!holding->process->whole_program && room >= holding->allocated_bytes)
        status = replay_in_room(recording, holding->device, room < MIB ? MIB : room, &outcome, error);
    if (status != VRAM_OK || outcome.fits) return status;
    return bisect_room(recording, holding, rest, verdict, error);
}

// Finds the least memory in which all holdings complete. The highest often has the most memory that it can do without.
static int find_smallest(const struct fit_run *run, struct fit_verdict *verdict) {
    struct vram_error error = {.status = VRAM_OK, .offset = VRAM_NO_OFFSET};
    if (bisect_room(verdict->recording, verdict->highest, rest_of(verdict, run, verdict->highest), verdict, &error) != VRAM_OK)
        return ui_error(verdict->highest->process->path, &error);
    for (size_t i = 0; i < run->holding_count; i++) {
        const struct fit_holding *holding = &run->holdings[i];
        const uint64_t rest = rest_of(verdict, run, holding);
        struct vram_recording *recording = verdict->recording;
        if (holding->reserved_bytes + rest <= verdict->smallest_bytes) continue;
        if (is_like(verdict, run, holding, verdict->highest) || is_known(verdict, run, i)) continue;
        int code = holding->process == verdict->highest->process ? CLI_OK : fit_run_recording(holding->process, &recording);
        if (code != CLI_OK) return code;
        const enum vram_status status = raise_smallest(recording, holding, rest, verdict, &error);
        if (recording != verdict->recording) vram_recording_destroy(recording);
        if (status != VRAM_OK) return ui_error(holding->process->path, &error);
    }
    return CLI_OK;
}

// --- a card -------------------------------------------------------------------------------------------------------------------------

// Judges a holding on a card: by its peaks if they decide, else by a replay. card->fits never returns to true.
static int judge_holding(const struct fit_verdict *verdict, const struct fit_run *run, const struct fit_holding *holding,
                         struct fit_card *card) {
    const uint64_t room = room_for(verdict, run, holding, &card->model);
    if (room < card->room_bytes) card->room_bytes = room;
    if (holding->reserved_bytes <= room) return CLI_OK;
    if (holding->process->whole_program) {
        card->fits = false;
        return CLI_OK;
    }
    struct vram_recording *recording = verdict->recording;
    struct vram_error error = {.status = VRAM_OK, .offset = VRAM_NO_OFFSET};
    struct outcome outcome;
    int code = CLI_OK;
    if (holding->process != verdict->highest->process) code = fit_run_recording(holding->process, &recording);
    if (code != CLI_OK) return code;
    const enum vram_status status = replay_in_room(recording, holding->device, room < MIB ? MIB : room, &outcome, &error);
    if (recording != verdict->recording) vram_recording_destroy(recording);
    if (status != VRAM_OK) return ui_error(holding->process->path, &error);
    card->method = FIT_BY_REPLAY;
    if (outcome.retries > card->retries) card->retries = outcome.retries;
    if (!outcome.fits && card->fits) card->oom = outcome.oom;
    card->fits = card->fits && outcome.fits;
    return CLI_OK;
}

static int judge_card(const struct fit_verdict *verdict, const struct fit_run *run, struct fit_card *card) {
    int code = CLI_OK;
    card->fits = true;
    card->room_bytes = UINT64_MAX;
    card->need_bytes = need_on(verdict, run, verdict->highest, &card->model);
    const bool ran = strcmp(card->model.key, verdict->ran_on.key) == 0;
    card->method = ran ? FIT_BY_RUN : FIT_BY_PEAK;
    for (size_t i = 0; i < run->holding_count && code == CLI_OK && card->fits; i++) {
        if (!is_known(verdict, run, i)) code = judge_holding(verdict, run, &run->holdings[i], card);
    }
    return code;
}

static int by_memory(const void *a, const void *b) {
    const struct fit_card *one = a, *other = b;
    if (one->model.memory_bytes != other->model.memory_bytes) return one->model.memory_bytes < other->model.memory_bytes ? -1 : 1;
    return strcmp(one->model.key, other->model.key);
}

static bool list_cards(struct fit_verdict *verdict, uint64_t asked) {
    struct vram_sim_model model;
    uint32_t count = 0;
    while (vram_sim_model_at(count, &model)) count++;
    verdict->cards = calloc(count, sizeof *verdict->cards);
    if (verdict->cards == NULL) return false;
    for (uint32_t i = 0; i < count; i++)
        if (vram_sim_model_at(i, &verdict->cards[i].model)) verdict->cards[i].asked = i < 64 && (asked >> i & 1) != 0;
    verdict->card_count = count;
    qsort(verdict->cards, count, sizeof *verdict->cards, by_memory);
    return true;
}

static int judge_all(const struct fit_run *run, uint64_t asked, struct fit_verdict *verdict) {
    int code = fit_run_recording(verdict->highest->process, &verdict->recording);
    if (code != CLI_OK) return code;
    verdict->library_bytes = libraries_of(verdict, verdict->highest);
    verdict->others_bytes = others_of(verdict, run, verdict->highest, &verdict->ran_on, &verdict->others_count);
    code = find_smallest(run, verdict);
    if (code != CLI_OK) return code;
    if (!list_cards(verdict, asked)) return CLI_BAD_INPUT;
    for (size_t i = 0; i < verdict->card_count && code == CLI_OK; i++) {
        code = judge_card(verdict, run, &verdict->cards[i]);
    }
    fit_find_smallest_card(verdict);
    return code;
}

// Returns whether one's device needs more than other's, or if both need the same, whether one itself does.
static bool needs_more(const struct fit_verdict *verdict, const struct fit_run *run, const struct fit_holding *one,
                       const struct fit_holding *other) {
    const uint64_t needs = need_on(verdict, run, one, &verdict->ran_on), others = need_on(verdict, run, other, &verdict->ran_on);
    if (needs != others) return needs > others;
    return one->reserved_bytes + one->outside_bytes > other->reserved_bytes + other->outside_bytes;
}

int fit_judge(const struct fit_run *run, const char *ran_on, uint64_t asked, struct fit_verdict *verdict) {
    uint32_t number;
    *verdict = (struct fit_verdict){.highest = &run->holdings[0]};
    if (!fit_model(ran_on, strlen(ran_on), &verdict->ran_on, &number)) return CLI_USAGE;
    verdict->ran_memory_bytes = run->memory_bytes != 0 ? run->memory_bytes : verdict->ran_on.memory_bytes;
    for (size_t i = 1; i < run->holding_count; i++)
        if (needs_more(verdict, run, &run->holdings[i], verdict->highest)) verdict->highest = &run->holdings[i];
    const int code = judge_all(run, asked, verdict);
    if (code != CLI_OK) fit_verdict_release(verdict);
    return code;
}

void fit_find_smallest_card(struct fit_verdict *verdict) {
    verdict->smallest_card = NULL;
    for (size_t i = 0; i < verdict->card_count && verdict->smallest_card == NULL; i++)
        if (verdict->cards[i].fits && !verdict->cards[i].unsure && fit_is_judged(verdict, &verdict->cards[i]) &&
            fit_is_offered(&verdict->cards[i]))
            verdict->smallest_card = &verdict->cards[i];
}

// Judges by the peaks; on a card that the run was replayed for, by the least memory the replay needs.
static bool has_room(const struct fit_verdict *verdict, const struct fit_card *card, uint64_t stake_bytes) {
    const uint64_t least_bytes = subtract_saturated(verdict->smallest_bytes, verdict->highest->outside_bytes + verdict->others_bytes);
    if (card->need_bytes + stake_bytes <= card->model.memory_bytes || card->method == FIT_BY_SHARE) return true;
    return fit_is_old(&card->model) == fit_is_old(&verdict->ran_on) && least_bytes + stake_bytes <= card->room_bytes;
}

void fit_doubt_cards(struct fit_verdict *verdict, bool failed, bool adapts, uint64_t stake_bytes) {
    for (size_t i = 0; i < verdict->card_count; i++) {
        struct fit_card *card = &verdict->cards[i];
        const bool differs = adapts && strcmp(card->model.key, verdict->ran_on.key) != 0;
        card->fits = card->fits || differs;
        card->unsure = card->fits && (failed || differs || (stake_bytes > 0 && !has_room(verdict, card, stake_bytes)));
    }
}

bool fit_is_judged(const struct fit_verdict *verdict, const struct fit_card *card) {
    return card->asked || !fit_is_old(&card->model) || fit_is_old(&verdict->ran_on);
}

bool fit_is_offered(const struct fit_card *card) {
    const bool jetson = card->model.compute_major == 8 && card->model.compute_minor == 7;
    return card->asked || (!jetson && !fit_memory_is_estimated(&card->model));
}

void fit_verdict_release(struct fit_verdict *verdict) {
    vram_recording_destroy(verdict->recording);
    free(verdict->cards);
    *verdict = (struct fit_verdict){.highest = NULL};
}
