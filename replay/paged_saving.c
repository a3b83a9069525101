// Finds what paged memory would have saved on one device, a few replays at a time.
#include "replay/cure.h"

#include "model/recording.h"
#include "os/os.h"
#include "replay/option_strings.h"
#include "replay/script.h"

// Limits for a report that must not take much longer: this many events are replayed two or three times in less than a second, and an eighth
// of the most about fifty times.
enum { MOST_EVENTS_NEEDED = 25000, CONF_BYTES = 512, REPLAYS_OF_SEARCH = 45 };
#define LEAST_WASTE (64 * VR_MIB)

struct vr_paged_search {
    const struct vram_recording *recording; // borrowed
    struct vr_player player;
    uint64_t events;
    uint64_t least_bytes; // peak of live requested bytes: no setting needs less
    uint64_t end_ns;      // monotonic time at which the search ends; 0: no end
    bool late;            // the search ended because of the time
    bool done;
    struct vram_paged_saving saving;
};

// --- replays ------------------------------------------------------------------------------------------------------------------
static enum vram_status play_side(void *user, const struct vram_whatif_options *options, const struct vram_whatif_result **result) {
    struct vr_paged_search *search = user;
    struct vram_whatif_options timed = *options;
    const uint64_t now_ns = search->end_ns == 0 ? 0 : vr_os_monotonic_ns();
    search->late = search->end_ns != 0 && now_ns >= search->end_ns;
    if (search->late) return VRAM_LIMIT;
    if (search->end_ns != 0) timed.most_ns = search->end_ns - now_ns;
    const enum vram_status status = vr_player_play(&search->player, &timed, result);
    search->late = status == VRAM_LIMIT && !search->player.paused && search->end_ns != 0;
    return status;
}

static enum vram_status ask_room(struct vr_paged_search *search, const char *conf, bool *fits) {
    const struct vram_whatif_options options = {.conf = conf, .memory_bytes = search->saving.room_bytes};
    const struct vram_whatif_result *result = NULL;
    *fits = true;
    if (search->saving.room_bytes == 0) return VRAM_OK;
    VR_TRY(play_side(search, &options, &result));
    *fits = result->device_count != 0 && !result->devices[0].contradiction && !result->devices[0].out_of_memory;
    return VRAM_OK;
}

// Replays with ample memory. *side stays unknown if the history contradicts itself.
static enum vram_status run_once(struct vr_paged_search *search, const char *conf, struct vram_paged_side *side) {
    const struct vram_whatif_options options = {.conf = conf};
    const struct vram_whatif_result *result = NULL;
    VR_TRY(play_side(search, &options, &result));
    const struct vram_whatif_device *device = result->devices;
    if (result->device_count == 0 || device->contradiction || device->out_of_memory) return VRAM_OK;
    *side = (struct vram_paged_side){.known = true,
                                     .held_bytes = device->peak_reserved_bytes,
                                     .driver_calls = vr_memory_calls(device),
                                     .driver_time_ns = device->driver_time_ns};
    search->saving.live_bytes = device->peak_active_bytes;
    return ask_room(search, conf, &side->fits);
}

static enum vram_status find_needed(struct vr_paged_search *search, char *conf, struct vram_paged_side *side) {
    const struct vr_trial_ground ground = {.scripts = &search->player.script, .count = 1, .play = play_side, .player = search};
    struct vram_tune_setting setting = {.conf = conf};
    uint64_t runs, devices, contradictions;
    if (!side->known || search->events > MOST_EVENTS_NEEDED) return VRAM_OK;
    VR_TRY(vr_trial_run(&ground, &setting, &runs, &devices, &contradictions, search->player.error));
    side->needed_bytes = setting.needed_bytes;
    return VRAM_OK;
}

// --- the comparison -------------------------------------------------------------------------------------------------------------
static uint64_t paged_size_of_side(const struct vram_paged_side *side) {
    return side->needed_bytes == 0 ? side->held_bytes : side->needed_bytes;
}

static bool is_less(const struct vram_paged_saving *saving) {
    const struct vram_paged_side *today = &saving->today, *paged = &saving->paged;
    if (saving->room_bytes != 0 && paged->fits != today->fits) return paged->fits;
    if ((today->needed_bytes == 0) != (paged->needed_bytes == 0)) return false;
    return paged_size_of_side(paged) < paged_size_of_side(today) - paged_size_of_side(today) / 100;
}

// Returns whether the gap between the least that any setting needs and the need of today's setting is too small to report.
static bool has_nothing_to_gain(const struct vr_paged_search *search) {
    const uint64_t today = paged_size_of_side(&search->saving.today);
    return search->saving.room_bytes != 0 ? search->saving.today.fits : today - today / 100 <= search->least_bytes;
}

// Determines whether paged:True may save enough to report. For most histories one replay decides: if it does not complete in 1 % less
// memory than today's setting needs, it does not need less.
static enum vram_status try_paged(struct vr_paged_search *search, const char *conf, bool *may_gain) {
    struct vram_paged_saving *saving = &search->saving;
    const struct vram_whatif_result *result = NULL;
    const uint64_t needed = saving->today.needed_bytes;
    *may_gain = true;
    if (saving->room_bytes != 0) return ask_room(search, conf, may_gain);
    if (needed == 0) return VRAM_OK;
    const struct vram_whatif_options options = {.conf = conf, .memory_bytes = needed - needed / 100 - 1};
    VR_TRY(play_side(search, &options, &result));
    *may_gain = result->device_count != 0 && !result->devices[0].contradiction && !result->devices[0].out_of_memory;
    return VRAM_OK;
}

// Compares the sides in the order in which they can end the comparison, so that later ones need not be replayed.
static enum vram_status compare_sides(struct vr_paged_search *search, char confs[3][CONF_BYTES], bool has_expandable) {
    struct vram_paged_saving *saving = &search->saving;
    bool may_gain = false;
    VR_TRY(run_once(search, confs[0], &saving->today));
    if (!saving->today.known) return VRAM_OK;
    saving->verdict = VRAM_PAGED_AS_MUCH;
    if (has_nothing_to_gain(search)) return VRAM_OK;
    VR_TRY(find_needed(search, confs[0], &saving->today));
    if (has_nothing_to_gain(search)) return VRAM_OK;
    VR_TRY(try_paged(search, confs[2], &may_gain));
    if (!may_gain) return VRAM_OK;
    VR_TRY(run_once(search, confs[2], &saving->paged));
    if (!saving->paged.known) {
        saving->verdict = VRAM_PAGED_NO_REPLAY;
        return VRAM_OK;
    }
    VR_TRY(find_needed(search, confs[2], &saving->paged));
    if (!is_less(saving)) return VRAM_OK;
    if (has_expandable) {
        VR_TRY(run_once(search, confs[1], &saving->expandable));
        VR_TRY(find_needed(search, confs[1], &saving->expandable));
    }
    saving->verdict = VRAM_PAGED_LESS;
    return VRAM_OK;
}

static enum vram_status compare_paged(struct vr_paged_search *search) {
    char confs[3][CONF_BYTES];
    const char *today = vr_text_string(&search->player.script.conf);
    search->saving.verdict = VRAM_PAGED_ALREADY;
    if (strstr(today, "paged:True") != NULL) return VRAM_OK;
    search->saving.verdict = VRAM_PAGED_NO_REPLAY;
    if (strlen(today) >= CONF_BYTES || strstr(today, "backend:cudaMallocAsync") != NULL) return VRAM_OK;
    memcpy(confs[0], today, strlen(today) + 1);
    const bool has_expandable = vr_option_string_with(today, "expandable_segments:True", confs[1], CONF_BYTES);
    if (!vr_option_string_with(today, "paged:True", confs[2], CONF_BYTES)) return VRAM_OK;
    return compare_sides(search, confs, has_expandable);
}

// --- the search as an object --------------------------------------------------------------------------------------------------
// Returns the verdict that the report alone justifies; LONG if replays must decide.
static enum vram_paged_verdict judge_unplayed(const struct vram_recording *recording, const struct vram_report_device *device) {
    const int64_t held = device->reserved.peak_bytes;
    const uint64_t live = device->active.peak.bytes;
    if (vr_model_setting(vr_recording_model(recording), "vram_run_process") != NULL || device->events == 0) return VRAM_PAGED_NO_REPLAY;
    if (device->windows) return VRAM_PAGED_WINDOWS;
    if (device->oom_count != 0 && device->ooms[device->oom_count - 1].cause == VRAM_OOM_GROWTH) return VRAM_PAGED_LITTLE;
    const uint64_t waste = held > 0 && (uint64_t)held > live ? (uint64_t)held - live : 0;
    const bool little = waste <= (uint64_t)held / 20 || waste <= LEAST_WASTE;
    return device->oom_count == 0 && little ? VRAM_PAGED_LITTLE : VRAM_PAGED_LONG;
}

enum vram_status vr_paged_search_begin(const struct vram_recording *recording, const struct vram_report_device *device, uint64_t end_ns,
                                       struct vr_paged_search **search) {
    struct vr_paged_search *made = calloc(1, sizeof *made);
    if (made == NULL) return VRAM_NO_HOST_MEMORY;
    made->recording = recording;
    made->events = device->events;
    made->least_bytes = device->active.peak.bytes;
    made->end_ns = end_ns;
    made->saving =
        (struct vram_paged_saving){.device = device->device, .verdict = judge_unplayed(recording, device), .events = device->events};
    if (device->oom_count != 0) made->saving.room_bytes = device->ooms[device->oom_count - 1].room_bytes;
    made->done = made->saving.verdict != VRAM_PAGED_LONG || device->events > VRAM_PAGED_MOST_EVENTS;
    *search = made;
    return VRAM_OK;
}

enum vram_status vr_paged_search_go_on(struct vr_paged_search *search, size_t replays, double *share, struct vram_error *error) {
    enum vram_status status = VRAM_OK;
    if (!search->done && replays != 0) {
        status = vr_player_open(&search->player, search->recording, search->saving.device, replays, error);
        if (status == VRAM_OK) status = compare_paged(search);
        const bool paused = search->player.paused;
        if (paused || search->late) status = VRAM_OK;
        search->done = status == VRAM_OK && !paused;
        if (paused || search->late || status != VRAM_OK) search->saving.verdict = VRAM_PAGED_LONG;
        if (search->done || status != VRAM_OK) vr_player_close(&search->player);
    }
    const size_t most = REPLAYS_OF_SEARCH, played = search->player.count < most ? search->player.count : most - 1;
    *share = search->done ? 1 : (double)played / (double)most;
    return status;
}

const struct vram_paged_saving *vr_paged_search_so_far(const struct vr_paged_search *search) { return &search->saving; }

void vr_paged_search_end(struct vr_paged_search *search) {
    if (search == NULL) return;
    vr_player_close(&search->player);
    free(search);
}

// --- all devices --------------------------------------------------------------------------------------------------------------
static enum vram_status find_saving(const struct vram_recording *recording, const struct vram_report_device *device, uint64_t most_ns,
                                    struct vram_paged_saving *saving, struct vram_error *error) {
    struct vr_paged_search *search = NULL;
    double share = 0;
    uint64_t end_ns = 0;
    if (most_ns != 0 && !vr_add_u64(vr_os_monotonic_ns(), most_ns, &end_ns)) end_ns = UINT64_MAX;
    VR_TRY(vr_paged_search_begin(recording, device, end_ns, &search));
    const enum vram_status status = vr_paged_search_go_on(search, SIZE_MAX, &share, error);
    if (status == VRAM_OK) *saving = search->saving;
    vr_paged_search_end(search);
    return status;
}

const char *vram_paged_verdict_name(enum vram_paged_verdict verdict) {
    static const char *const names[] = {
#define VERDICT_NAME(constant, name) #name,
        VRAM_PAGED_VERDICTS(VERDICT_NAME)
#undef VERDICT_NAME
    };
    return (size_t)verdict < VR_COUNT_OF(names) ? names[verdict] : "unknown";
}

enum vram_status vram_paged_savings_find(const struct vram_recording *recording, const struct vram_report *report, uint64_t most_ns,
                                         struct vram_paged_savings **savings, struct vram_error *error) {
    if (recording == NULL || report == NULL || savings == NULL)
        return vr_fail(error, VRAM_INVALID_ARGUMENT, VRAM_NO_OFFSET, "recording, report and savings must not be NULL");
    struct vram_paged_savings *made = calloc(1, sizeof *made);
    enum vram_status status = made == NULL ? VRAM_NO_HOST_MEMORY : VRAM_OK;
    if (status == VRAM_OK) made->savings = calloc(report->device_count + 1, sizeof *made->savings);
    if (status == VRAM_OK && made->savings == NULL) status = VRAM_NO_HOST_MEMORY;
    for (size_t d = 0; d < report->device_count && status == VRAM_OK; d++) {
        if (report->devices[d].is_host) continue;
        status = find_saving(recording, &report->devices[d], most_ns, &made->savings[made->count++], error);
    }
    if (status != VRAM_OK) {
        vram_paged_savings_destroy(made);
        return status == VRAM_NO_HOST_MEMORY ? vr_fail(error, status, VRAM_NO_OFFSET, "not enough host memory for the comparison") : status;
    }
    *savings = made;
    return VRAM_OK;
}

void vram_paged_savings_destroy(struct vram_paged_savings *savings) {
    if (savings == NULL) return;
    free(savings->savings);
    free(savings);
}
