// cure.c: finds the smallest change to the settings with which a history that ran out of memory fits.
#include "replay/cure.h"

#include <stdio.h>

#include "model/platform.h"
#include "model/recording.h"
#include "os/os.h"
#include "replay/option_strings.h"
#include "replay/script.h"
#include "replay/stage.h"

enum { MOST_FITTING = 64, REPLAYS_OF_TRIAL = 40, REPLAYS_OF_SEARCH = 80 };

// The search is one deterministic walk that depends only on the outcomes of replays. The walk stops at the first replay whose outcome is
// unknown and that may not be made now. The next walk starts over, with the outcomes known by then.
struct vr_cure_search {
    const struct vram_recording *recording; // borrowed
    struct vr_player player;                // of the device
    bool done;                              // the cure is known
    struct vram_cure cure;
    const char *today;                            // option string in force
    enum vram_whatif_start start;                 // of the replays
    bool limited;                                 // a limit of the process refused the request
    bool in_pieces;                               // the free memory was fragmented
    char fitting[MOST_FITTING][VR_CONF_CAPACITY]; // the settings that fit, in the order of the list
    uint64_t held_bytes[MOST_FITTING];            // peak of reserved bytes with each
    size_t fitting_count;
    uint64_t end_ns;     // monotonic time at which the search ends; 0: no end
    uint64_t longest_ns; // duration of the longest replay so far
    bool late;           // the search ended because of the time
};

// --- one replay ---------------------------------------------------------------------------------------------------------------
static enum vram_status play_trial(void *player, const struct vram_whatif_options *options, const struct vram_whatif_result **result) {
    return vr_player_play(player, options, result);
}

struct cure_outcome {
    bool replayed; // the history is consistent
    bool fits;
    bool failed_at_start; // before the first event
    uint64_t peak_active_bytes;
    uint64_t peak_reserved_bytes;
};

// If there is not enough time for the replay, replays nothing and sets search->late.
static enum vram_status replay_with_cure(struct vr_cure_search *search, const char *conf, uint64_t memory_bytes,
                                         struct cure_outcome *outcome) {
    const uint64_t start_ns = search->end_ns == 0 ? 0 : vr_os_monotonic_ns();
    const struct vram_whatif_options options = {
        .conf = conf, .memory_bytes = memory_bytes, .start = search->start, .most_ns = search->end_ns - start_ns};
    const struct vram_whatif_result *result = NULL;
    *outcome = (struct cure_outcome){0};
    search->late = search->late || start_ns > search->end_ns || search->end_ns - start_ns < search->longest_ns;
    if (search->late) return VRAM_OK;
    const enum vram_status status = vr_player_play(&search->player, &options, &result);
    const uint64_t end_ns = search->end_ns == 0 ? 0 : vr_os_monotonic_ns();
    search->late = !search->player.paused && status == VRAM_LIMIT && end_ns > search->end_ns;
    if (search->late) return VRAM_OK;
    VR_TRY(status);
    if (end_ns - start_ns > search->longest_ns) search->longest_ns = end_ns - start_ns;
    if (result->device_count != 0 && !result->devices[0].contradiction) {
        *outcome =
            (struct cure_outcome){.replayed = true,
                                  .fits = !result->devices[0].out_of_memory,
                                  .failed_at_start = result->devices[0].out_of_memory && result->devices[0].oom_event == VRAM_NO_OFFSET,
                                  .peak_active_bytes = result->devices[0].peak_active_bytes,
                                  .peak_reserved_bytes = result->devices[0].peak_reserved_bytes};
    }
    return VRAM_OK;
}

// --- the search -----------------------------------------------------------------------------------------------------------------
static enum vram_status try_conf(void *context, const char *conf) {
    struct vr_cure_search *search = context;
    struct cure_outcome outcome;
    VR_TRY(replay_with_cure(search, conf, search->cure.room_bytes, &outcome));
    if (search->late) return VRAM_OK;
    search->cure.tried++;
    if (!outcome.fits || search->fitting_count == MOST_FITTING) return VRAM_OK;
    search->held_bytes[search->fitting_count] = outcome.peak_reserved_bytes;
    (void)snprintf(search->fitting[search->fitting_count++], VR_CONF_CAPACITY, "%s", conf);
    return VRAM_OK;
}

// Measures the first few settings that fit: the memory needed, and the bytes reserved with ample memory. *count is the number measured in
// the available time.
static enum vram_status measure_cures(struct vr_cure_search *search, struct vram_tune_setting settings[VR_MOST_COMPARED], size_t *count) {
    const struct vr_trial_ground ground = {.scripts = &search->player.script,
                                           .count = 1,
                                           .memory_bytes = search->cure.room_bytes,
                                           .start = search->start,
                                           .play = play_trial,
                                           .player = &search->player};
    for (*count = 0; *count < search->fitting_count && *count < VR_MOST_COMPARED; ++*count) {
        if (search->end_ns != 0 && vr_os_monotonic_ns() + REPLAYS_OF_TRIAL * search->longest_ns > search->end_ns) return VRAM_OK;
        uint64_t runs, devices, contradictions;
        settings[*count] = (struct vram_tune_setting){.conf = search->fitting[*count]};
        VR_TRY(vr_trial_run(&ground, &settings[*count], &runs, &devices, &contradictions, search->player.error));
    }
    return VRAM_OK;
}

// Chooses among the settings that fit, like tuning (option_strings.h). If time ran out before any was measured, chooses the first one that
// fits, and its need is unknown.
static enum vram_status choose_cure(struct vr_cure_search *search, size_t *choice) {
    struct vram_tune_setting settings[VR_MOST_COMPARED];
    size_t rows[VR_MOST_COMPARED], measured = 0, count = 0;
    struct cure_outcome today;
    VR_TRY(measure_cures(search, settings, &measured));
    VR_TRY(replay_with_cure(search, search->today, 0, &today));
    for (size_t i = 0; i < measured; i++) {
        if (settings[i].needed_bytes != 0) rows[count++] = i;
    }
    *choice = 0;
    if (count == 0) return VRAM_OK;
    *choice = rows[vr_choose_setting(settings, rows, count, today.replayed ? today.peak_reserved_bytes : UINT64_MAX)];
    search->cure.needed_bytes = settings[*choice].needed_bytes;
    return VRAM_OK;
}

static enum vram_status take_setting(struct vr_cure_search *search) {
    size_t choice = 0;
    VR_TRY(choose_cure(search, &choice));
    const size_t size = strlen(search->fitting[choice]) + 1;
    char *conf = malloc(size);
    if (conf == NULL) return VRAM_NO_HOST_MEMORY;
    memcpy(conf, search->fitting[choice], size);
    search->cure.conf = conf;
    search->cure.held_bytes = search->held_bytes[choice];
    search->cure.from_recorded_start = search->start == VRAM_WHATIF_RECORDED;
    search->cure.verdict = VRAM_CURE_SETTING;
    return VRAM_OK;
}

// Replays with the settings in force. If no request fails from an empty cache, the ring may have lost the beginning: replays again from the
// recorded memory state at its beginning.
static enum vram_status replay_today(struct vr_cure_search *search, struct cure_outcome *outcome) {
    VR_TRY(replay_with_cure(search, search->today, search->cure.room_bytes, outcome));
    search->cure.tried = search->late ? 0 : 1;
    if (search->late || !outcome->fits) return VRAM_OK;
    search->start = VRAM_WHATIF_RECORDED;
    VR_TRY(replay_with_cure(search, search->today, search->cure.room_bytes, outcome));
    // If even the initial allocations do not fit, this proves nothing.
    outcome->fits = outcome->fits || outcome->failed_at_start || !outcome->replayed;
    return VRAM_OK;
}

// Searches for a setting that fits. The verdict is UNFINISHED until it is known.
static enum vram_status find_setting(struct vr_cure_search *search) {
    struct cure_outcome outcome;
    // Measure the live bytes without the remainders that large segments do not split off.
    VR_TRY(replay_with_cure(search, VR_EXPANDABLE, VR_STAGE_SPACING, &outcome));
    search->cure.verdict = search->late ? VRAM_CURE_UNFINISHED : VRAM_CURE_NO_REPLAY;
    if (!outcome.replayed || !outcome.fits) return VRAM_OK;
    search->cure.demand_bytes = outcome.peak_active_bytes;
    search->cure.verdict = VRAM_CURE_DEMAND;
    if (search->cure.demand_bytes > search->cure.room_bytes) return VRAM_OK;
    VR_TRY(replay_today(search, &outcome));
    search->cure.verdict = search->late ? VRAM_CURE_UNFINISHED : outcome.fits ? VRAM_CURE_NOT_REPRODUCED : VRAM_CURE_NONE;
    if (search->late || outcome.fits) return VRAM_OK;
    VR_TRY(vr_each_single_change(search->today, search->cure.windows, try_conf, search));
    if (search->fitting_count == 0) VR_TRY(vr_each_double_change(search->today, search->cure.windows, try_conf, search));
    if (search->fitting_count != 0) return take_setting(search);
    // A recorded initial state has the same holes with any setting. If no setting fits, that therefore proves nothing.
    if (search->start == VRAM_WHATIF_RECORDED) search->cure.verdict = VRAM_CURE_NOT_REPRODUCED;
    if (search->late) search->cure.verdict = VRAM_CURE_UNFINISHED;
    return VRAM_OK;
}

// If no setting helps, raising a limit is the cure. For fragmented memory, suggests the setting that usually helps if a replay cannot
// decide.
static void judge_beyond_settings(struct vr_cure_search *search) {
    struct vram_cure *cure = &search->cure;
    const bool helpless = cure->verdict == VRAM_CURE_DEMAND || cure->verdict == VRAM_CURE_NONE ||
                          cure->verdict == VRAM_CURE_NOT_REPRODUCED || cure->verdict == VRAM_CURE_NO_REPLAY;
    if (search->limited && helpless) {
        cure->verdict = VRAM_CURE_LIMIT;
        return;
    }
    const bool unknown = cure->verdict == VRAM_CURE_NOT_REPRODUCED || cure->verdict == VRAM_CURE_NO_REPLAY;
    const bool on = search->today != NULL && strstr(search->today, VR_EXPANDABLE) != NULL;
    if (unknown && search->in_pieces && !on && !cure->windows) cure->usual = VR_EXPANDABLE;
}

// Judges a recording of a whole program. Its requests to the driver have no settings: only the live bytes count.
static void judge_driver(const struct vram_report_oom *oom, struct vram_cure *cure) {
    cure->demand_bytes = oom->allocated_bytes + oom->pending_bytes + oom->size_bytes;
    if (cure->room_bytes != 0 && cure->demand_bytes > cure->room_bytes) cure->verdict = VRAM_CURE_DEMAND;
}

// --- the search as an object --------------------------------------------------------------------------------------------------
static enum vram_status walk_cures(struct vr_cure_search *search) {
    search->cure.verdict = VRAM_CURE_NO_REPLAY;
    search->cure.demand_bytes = search->cure.needed_bytes = 0;
    search->cure.tried = 0;
    search->fitting_count = 0;
    search->player.paused = false;
    search->start = VRAM_WHATIF_COLD;
    VR_TRY(find_setting(search));
    judge_beyond_settings(search);
    return VRAM_OK;
}

enum vram_status vr_cure_begin(const struct vram_recording *recording, uint32_t device, const struct vram_report_oom *oom, uint64_t end_ns,
                               struct vr_cure_search **search) {
    struct vr_cure_search *made = calloc(1, sizeof *made);
    if (made == NULL) return VRAM_NO_HOST_MEMORY;
    made->recording = recording;
    made->end_ns = end_ns;
    made->cure = (struct vram_cure){.device = device,
                                    .event = oom->event,
                                    .verdict = VRAM_CURE_UNFINISHED,
                                    .room_bytes = oom->room_bytes < VR_STAGE_SPACING ? oom->room_bytes : VR_STAGE_SPACING,
                                    .conf = "",
                                    .windows = vr_platform_is_windows(vr_recording_model(recording)),
                                    .limit_bytes = oom->limit_bytes,
                                    .driver_free_bytes = oom->has_device_free ? oom->device_free_bytes : 0,
                                    .variable = vr_platform_variable(vr_platform_of(vr_recording_model(recording)))};
    const bool driver_level = vr_model_setting(vr_recording_model(recording), "vram_run_process") != NULL;
    made->cure.limit_from_bytes = driver_level ? oom->allocated_bytes + oom->pending_bytes : oom->reserved_bytes;
    made->cure.limit_to_bytes = made->cure.limit_from_bytes + oom->segment_bytes;
    made->limited = oom->cause == VRAM_OOM_LIMIT && !oom->is_host && !oom->of_own_pool;
    made->in_pieces = !driver_level && (oom->cause == VRAM_OOM_PINNED || oom->cause == VRAM_OOM_FRAGMENTED);
    if (oom->cause == VRAM_OOM_GROWTH) {
        made->cure.verdict = VRAM_CURE_GROWTH;
        made->done = true;
    } else if (driver_level || made->cure.room_bytes == 0) {
        made->cure.verdict = VRAM_CURE_NO_REPLAY;
        judge_driver(oom, &made->cure);
        judge_beyond_settings(made);
        made->done = true;
    }
    *search = made;
    return VRAM_OK;
}

enum vram_status vr_cure_start(const struct vram_recording *recording, uint32_t device, const struct vram_report_oom *oom,
                               enum vram_whatif_start *start, struct vram_error *error) {
    struct vr_cure_search *search = NULL;
    struct cure_outcome outcome = {.fits = true};
    VR_TRY(vr_cure_begin(recording, device, oom, 0, &search));
    enum vram_status status = search->done ? VRAM_OK : vr_player_open(&search->player, recording, device, SIZE_MAX, error);
    if (status == VRAM_OK && !search->done) {
        search->today = vr_text_string(&search->player.script.conf);
        search->start = VRAM_WHATIF_COLD;
        status = replay_today(search, &outcome);
    }
    if (status == VRAM_OK) *start = outcome.fits ? VRAM_WHATIF_COLD : search->start;
    vr_cure_end(search);
    return status;
}

enum vram_status vr_cure_go_on(struct vr_cure_search *search, size_t replays, double *share, struct vram_error *error) {
    enum vram_status status = VRAM_OK;
    if (!search->done && replays != 0) {
        status = vr_player_open(&search->player, search->recording, search->cure.device, replays, error);
        if (status == VRAM_OK) search->today = vr_text_string(&search->player.script.conf);
        if (status == VRAM_OK) status = walk_cures(search);
        if (search->player.paused) status = VRAM_OK;
        search->done = status == VRAM_OK && !search->player.paused;
        if (!search->done) search->cure.verdict = VRAM_CURE_UNFINISHED;
        if (search->done || status != VRAM_OK) vr_player_close(&search->player);
    }
    const size_t most = REPLAYS_OF_SEARCH, played = search->player.count < most ? search->player.count : most - 1;
    *share = search->done ? 1 : (double)played / (double)most;
    return status;
}

const struct vram_cure *vr_cure_so_far(const struct vr_cure_search *search) { return &search->cure; }

void vr_cure_end(struct vr_cure_search *search) {
    if (search == NULL) return;
    vr_player_close(&search->player);
    if (search->cure.verdict == VRAM_CURE_SETTING) free((void *)(uintptr_t)search->cure.conf);
    free(search);
}

// --- all devices --------------------------------------------------------------------------------------------------------------
// end_ns: monotonic time at which the search ends; 0: no end.
static enum vram_status find_cure(const struct vram_recording *recording, const struct vram_report_device *device, uint64_t end_ns,
                                  struct vram_cure *cure, struct vram_error *error) {
    struct vr_cure_search *search = NULL;
    double share = 0;
    VR_TRY(vr_cure_begin(recording, device->device, &device->ooms[device->oom_count - 1], end_ns, &search));
    const enum vram_status status = vr_cure_go_on(search, SIZE_MAX, &share, error);
    if (status == VRAM_OK) {
        *cure = search->cure;
        search->cure.verdict = VRAM_CURE_UNFINISHED; // the caller owns its text now
    }
    vr_cure_end(search);
    return status;
}

const char *vram_cure_verdict_name(enum vram_cure_verdict verdict) {
    static const char *const names[] = {
#define VERDICT_NAME(constant, name) #name,
        VRAM_CURE_VERDICTS(VERDICT_NAME)
#undef VERDICT_NAME
    };
    return (size_t)verdict < VR_COUNT_OF(names) ? names[verdict] : "unknown";
}

enum vram_status vram_cures_find(const struct vram_recording *recording, const struct vram_report *report, struct vram_cures **cures,
                                 struct vram_error *error) {
    return vram_cures_find_within(recording, report, 0, cures, error);
}

enum vram_status vram_cures_find_within(const struct vram_recording *recording, const struct vram_report *report, uint64_t most_ns,
                                        struct vram_cures **cures, struct vram_error *error) {
    if (recording == NULL || report == NULL || cures == NULL)
        return vr_fail(error, VRAM_INVALID_ARGUMENT, VRAM_NO_OFFSET, "recording, report and cures must not be NULL");
    uint64_t end_ns = 0;
    if (most_ns != 0 && !vr_add_u64(vr_os_monotonic_ns(), most_ns, &end_ns)) end_ns = UINT64_MAX;
    struct vram_cures *made = calloc(1, sizeof *made);
    enum vram_status status = made == NULL ? VRAM_NO_HOST_MEMORY : VRAM_OK;
    if (status == VRAM_OK) made->cures = calloc(report->device_count + 1, sizeof *made->cures);
    if (status == VRAM_OK && made->cures == NULL) status = VRAM_NO_HOST_MEMORY;
    for (size_t d = 0; d < report->device_count && status == VRAM_OK; d++) {
        if (report->devices[d].oom_count == 0) continue;
        status = find_cure(recording, &report->devices[d], end_ns, &made->cures[made->count++], error);
    }
    if (status != VRAM_OK) {
        vram_cures_destroy(made);
        return status == VRAM_NO_HOST_MEMORY ? vr_fail(error, status, VRAM_NO_OFFSET, "not enough host memory for the search for a cure")
                                             : status;
    }
    *cures = made;
    return VRAM_OK;
}

void vram_cures_destroy(struct vram_cures *cures) {
    if (cures == NULL) return;
    for (size_t i = 0; cures->cures != NULL && i < cures->count; i++) {
        if (cures->cures[i].verdict == VRAM_CURE_SETTING) free((void *)(uintptr_t)cures->cures[i].conf);
    }
    free(cures->cures);
    free(cures);
}
