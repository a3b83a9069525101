// Makes each what-if replay only once, and tries one setting on recordings.
#include "replay/script.h"

#include "base/base.h"
#include "replay/stage.h"

enum vram_status vr_player_open(struct vr_player *player, const struct vram_recording *recording, uint32_t device, size_t replays,
                                struct vram_error *error) {
    player->error = error;
    player->allowed = replays;
    player->paused = false;
    if (!player->is_open) VR_TRY(vr_script_init(&player->script, recording, true, device, error));
    player->is_open = true;
    return VRAM_OK;
}

static const struct vram_whatif_result *find_played(const struct vr_player *player, const struct vram_whatif_options *options) {
    for (size_t i = 0; i < player->count; i++) {
        const struct vram_whatif_result *played = player->played[i];
        const bool same = played->memory_bytes == options->memory_bytes && played->start == options->start;
        if (same && strcmp(played->conf, options->conf) == 0) return played;
    }
    return NULL;
}

enum vram_status vr_player_play(struct vr_player *player, const struct vram_whatif_options *options,
                                const struct vram_whatif_result **result) {
    *result = find_played(player, options);
    if (*result != NULL) return VRAM_OK;
    player->paused = player->allowed == 0;
    if (player->paused) return VRAM_LIMIT;
    player->allowed--;
    VR_TRY(vr_grow((void **)&player->played, &player->capacity, player->count + 1, sizeof *player->played));
    VR_TRY(vr_script_play(&player->script, options, false, &player->played[player->count], player->error));
    *result = player->played[player->count++];
    return VRAM_OK;
}

void vr_player_close(struct vr_player *player) {
    for (size_t i = 0; i < player->count; i++) vram_whatif_result_destroy(player->played[i]);
    free(player->played);
    if (player->is_open) vr_script_release(&player->script);
    player->played = NULL;
    player->count = player->capacity = 0;
    player->is_open = false;
}

// The smallest step of the search is a page of expandable segments.
#define STEP (2 * VR_MIB)
// More than any device has, whatever a failed request asked for.
#define MEMORY_MOST (2 * VR_STAGE_SPACING)

struct trial {
    const struct vr_trial_ground *ground;
    struct vram_tune_setting *setting;
    uint64_t runs, devices, contradictions;
    // A run with `completed_with` bytes of memory reserved at most `held` bytes and completed; so does a run with any memory in between,
    // see completes().
    bool infers;
    uint64_t held, completed_with;
    struct vram_error *error;
};

uint64_t vr_memory_calls(const struct vram_whatif_device *device) {
    static const char *const names[] = {"cuMemAlloc", "cuMemFree", "cuMemCreate", "cuMemRelease", "cuMemMap", "cuMemUnmap"};
    uint64_t sum = 0;
    for (size_t i = 0; i < device->call_count; i++) {
        for (size_t n = 0; n < VR_COUNT_OF(names); n++) {
            if (strcmp(device->calls[i].name, names[n]) == 0) sum += device->calls[i].count;
        }
    }
    return sum;
}

// The result of one run over all recordings.
struct trial_outcome {
    bool completed;
    uint64_t peak_active, peak_reserved, calls, time_ns, retries, devices, contradictions, recorded_ooms;
};

static void add_trial_device(struct trial_outcome *outcome, const struct vram_whatif_device *device) {
    if (device->contradiction) {
        outcome->contradictions++;
        return;
    }
    outcome->devices++;
    outcome->completed = outcome->completed && !device->out_of_memory;
    if (device->peak_active_bytes > outcome->peak_active) outcome->peak_active = device->peak_active_bytes;
    if (device->peak_reserved_bytes > outcome->peak_reserved) outcome->peak_reserved = device->peak_reserved_bytes;
    outcome->calls += vr_memory_calls(device);
    outcome->time_ns += device->driver_time_ns;
    outcome->retries += device->retries;
    outcome->recorded_ooms += device->recorded_ooms;
}

// Runs over all recordings; memory_bytes 0 means ample memory. With only_fits, stops at the first recording that does not complete.
static enum vram_status run_trial(struct trial *trial, uint64_t memory_bytes, bool only_fits, struct trial_outcome *outcome) {
    *outcome = (struct trial_outcome){.completed = true};
    for (size_t i = 0; i < trial->ground->count && (outcome->completed || !only_fits); i++) {
        const struct vram_whatif_options options = {.conf = trial->setting->today ? NULL : trial->setting->conf,
                                                    .memory_bytes = memory_bytes,
                                                    .start = trial->ground->start,
                                                    .profile = trial->ground->profile};
        struct vram_whatif_result *own = NULL;
        const struct vram_whatif_result *result = NULL;
        VR_TRY(trial->ground->play != NULL ? trial->ground->play(trial->ground->player, &options, &result)
                                           : vr_script_play(&trial->ground->scripts[i], &options, true, &own, trial->error));
        if (result == NULL) result = own;
        for (size_t d = 0; d < result->device_count; d++) add_trial_device(outcome, &result->devices[d]);
        vram_whatif_result_destroy(own);
        trial->runs++;
    }
    return VRAM_OK;
}

// Returns whether the amount of memory matters only for requests that the driver refuses. It does for these options; expandable segments
// and pages reserve by the amount of memory. Garbage collection depends on the allocator's limit, which a replay does not have; pools lend
// when the driver refuses.
static bool ignores_memory(const char *conf) {
    static const char *const options[] = {
        "max_split_size_mb:", "roundup_power2_divisions:", "garbage_collection_threshold:", "reclaim_streams:", "share_live_pools:"};
    for (const char *at = conf; *at != '\0'; at += strcspn(at, ","), at += *at == ',') {
        size_t i = 0;
        while (i < VR_COUNT_OF(options) && strncmp(at, options[i], strlen(options[i])) != 0) i++;
        if (i == VR_COUNT_OF(options)) return false;
    }
    return true;
}

static bool all_ignore_memory(const struct trial *trial) {
    if (!trial->setting->today) return ignores_memory(trial->setting->conf);
    size_t i = 0;
    while (i < trial->ground->count && ignores_memory(vr_text_string(&trial->ground->scripts[i].conf))) i++;
    return i == trial->ground->count;
}

// Determines whether the trial completes in this memory. With less memory than a run that completed, but not less than that run reserved,
// nothing changes: what the driver granted still fits, and what it refused still does not. Ample memory refuses nothing.
static enum vram_status completes(struct trial *trial, uint64_t memory_bytes, bool *completed) {
    struct trial_outcome outcome;
    *completed = trial->infers && memory_bytes >= trial->held && memory_bytes <= trial->completed_with;
    if (*completed) return VRAM_OK;
    VR_TRY(run_trial(trial, memory_bytes, true, &outcome));
    *completed = outcome.completed;
    if (outcome.completed) {
        trial->held = outcome.peak_reserved;
        trial->completed_with = memory_bytes;
    }
    return VRAM_OK;
}

// Finds a memory in which the trial completes: the bytes reserved with ample memory, or more if the recording has failed requests.
static enum vram_status find_enough(struct trial *trial, uint64_t held, uint64_t *enough) {
    bool completed = false;
    *enough = 0;
    uint64_t memory = vr_round_up(held == 0 ? STEP : held, STEP);
    for (int attempt = 0; attempt < 48 && memory <= MEMORY_MOST; attempt++) {
        VR_TRY(completes(trial, memory, &completed));
        if (completed) {
            *enough = memory;
            return VRAM_OK;
        }
        memory += vr_round_up(memory / 16 + STEP, STEP);
    }
    return VRAM_OK;
}

static enum vram_status bisect_memory(struct trial *trial, uint64_t low, uint64_t high, uint64_t *needed) {
    bool completed = false;
    const uint64_t precision = high / 1024 > STEP ? high / 1024 : STEP;
    while (high - low > precision) {
        const uint64_t middle = low + vr_round_up((high - low) / 2, STEP);
        if (middle >= high) break;
        VR_TRY(completes(trial, middle, &completed));
        if (completed)
            high = middle;
        else
            low = middle;
    }
    *needed = high;
    return VRAM_OK;
}

static enum vram_status find_needed(struct trial *trial, const struct trial_outcome *spare, uint64_t *needed) {
    bool completed = false;
    uint64_t enough;
    trial->infers = all_ignore_memory(trial);
    trial->held = spare->peak_reserved;
    // A request that failed in the recorded program is replayed only if the memory is limited.
    trial->completed_with = spare->completed && spare->recorded_ooms == 0 ? UINT64_MAX : 0;
    VR_TRY(find_enough(trial, spare->peak_reserved, &enough));
    if (enough == 0) {
        *needed = 0;
        return VRAM_OK;
    }
    const uint64_t least = vr_round_up(spare->peak_active == 0 ? 1 : spare->peak_active, STEP);
    if (least < enough) {
        VR_TRY(completes(trial, least, &completed));
        if (completed) {
            *needed = least;
            return VRAM_OK;
        }
    }
    return bisect_memory(trial, least < enough ? least : 0, enough, needed);
}

// Runs in the given memory. If memory matters only for refusals and nothing is refused, the result is that with ample memory.
static enum vram_status run_within(struct trial *trial, const struct trial_outcome *spare, struct trial_outcome *within) {
    const uint64_t memory_bytes = trial->ground->memory_bytes;
    const bool same = spare->completed && spare->recorded_ooms == 0 && spare->contradictions == 0 && trial->infers;
    *within = *spare;
    within->completed = true;
    if (memory_bytes == 0 || (same && memory_bytes >= spare->peak_reserved)) return VRAM_OK;
    return run_trial(trial, memory_bytes, false, within);
}

static enum vram_status measure_trial(struct trial *trial) {
    struct trial_outcome spare, within;
    VR_TRY(run_trial(trial, 0, false, &spare));
    trial->devices = spare.devices;
    trial->contradictions = spare.contradictions;
    if (spare.devices == 0) return VRAM_OK;
    uint64_t needed = 0;
    VR_TRY(find_needed(trial, &spare, &needed));
    VR_TRY(run_within(trial, &spare, &within));
    const uint64_t memory_bytes = trial->ground->memory_bytes;
    trial->setting->fits = within.completed;
    trial->setting->fits_with_room = within.completed && (memory_bytes == 0 || (needed != 0 && needed <= memory_bytes - memory_bytes / 16));
    trial->setting->needed_bytes = needed;
    trial->setting->peak_active_bytes = spare.peak_active;
    trial->setting->peak_reserved_bytes = spare.peak_reserved;
    trial->setting->driver_calls = within.calls;
    trial->setting->driver_time_ns = within.time_ns;
    trial->setting->retries = within.retries;
    return VRAM_OK;
}

enum vram_status vr_trial_run(const struct vr_trial_ground *ground, struct vram_tune_setting *setting, uint64_t *runs, uint64_t *devices,
                              uint64_t *contradictions, struct vram_error *error) {
    struct trial trial = {.ground = ground, .setting = setting, .error = error};
    const enum vram_status status = measure_trial(&trial);
    *runs = trial.runs;
    *devices = trial.devices;
    *contradictions = trial.contradictions;
    return status;
}
