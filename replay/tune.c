// Searches for settings in rounds: first changes single options, then combines the best with others. The trials of a round are independent
// and run on several threads, so the result does not depend on the number of threads.
#include <stdatomic.h>
#include <stdio.h>

#include "config/size_rules.h"
#include "model/platform.h"
#include "model/recording.h"
#include "os/os.h"
#include "replay/cure.h"
#include "replay/option_strings.h"
#include "replay/script.h"
#include "vram/replay.h"
#include "vram/report.h"

// Returns an upper bound for the size of a segment made for one request, with any rounding.
static uint64_t largest_segment(const struct vr_options *options, uint64_t request_bytes) {
    uint64_t rounded = vr_round_plain(request_bytes + options->request_padding_bytes);
    for (int i = 0; i < VR_ROUNDUP_BUCKETS; i++) {
        if (options->roundup_divisions[i] > 1 && !vr_is_power_of_2(rounded)) rounded = (uint64_t)2 << vr_log2_floor(rounded);
    }
    const uint64_t made = vr_round_up(rounded, VR_SEGMENT_ROUNDING);
    return made > vr_large_segment(options) ? made : vr_large_segment(options);
}

// Normalizes options that have no effect: cudaMalloc segments neither grow nor join, and there must be another stream or pool to take free
// memory from.
static void drop_what_nothing_meets(const struct vr_script *script, struct vr_options *options) {
    uint64_t request_bytes = 0;
    size_t streams = 0, pools = 0;
    for (size_t i = 0; i < script->device_count; i++) {
        const struct vr_script_device *device = &script->devices[i];
        if (device->largest_request_bytes > request_bytes) request_bytes = device->largest_request_bytes;
        if (device->recorded.stream_count > streams) streams = device->recorded.stream_count;
        if (device->recorded.pools.count > pools) pools = device->recorded.pools.count;
    }
    if (streams <= 1) options->reclaim_streams = false;
    if (pools <= 1) options->share_live_pools = false;
    if (request_bytes >= VR_REQUEST_LIMIT / 4) return; // will be refused
    if (!options->expandable_segments && largest_segment(options, request_bytes) < options->max_split_bytes)
        options->max_split_bytes = VR_UNLIMITED;
    if (options->max_split_bytes == VR_UNLIMITED) options->max_non_split_rounding_bytes = options->large_segment_bytes;
}

static enum vram_status add_script(const struct vr_script *script, enum vram_whatif_start start, const char *conf, struct vr_text *key) {
    struct vr_text selection = {0};
    struct vr_options options;
    (void)vr_choose_conf(vr_text_string(&script->conf), conf, &selection);
    vr_options_init(&options);
    options.pytorch = vr_recorded_rules(script->model).likely;
    enum vram_status status = vr_text_status(&selection);
    if (status == VRAM_OK) status = vr_options_parse(&options, vr_text_string(&selection), NULL);
    vr_text_release(&selection);
    VR_TRY(status);
    // Garbage collection depends on the allocator's limit, which a replay does not have.
    options.garbage_collection_threshold = 0;
    // Options are not dropped for a recorded initial state, which may have segments of any kind and size, nor if all streams share pages.
    if (start == VRAM_WHATIF_COLD && !options.paged && !options.sleepable) drop_what_nothing_meets(script, &options);
    vr_options_print(&options, key);
    vr_text_puts(key, "\n");
    return vr_text_status(key);
}

// Appends a key that is equal for two option strings only if every replay of the scripts with them has the same result in any memory: the
// settings in force, without those that cannot affect these requests. conf NULL: each recording's own. BAD_OPTION for an invalid string;
// NO_HOST_MEMORY.
static enum vram_status alike_key(const struct vr_script *scripts, size_t count, enum vram_whatif_start start, const char *conf,
                                  struct vr_text *key) {
    for (size_t i = 0; i < count; i++) VR_TRY(add_script(&scripts[i], start, conf, key));
    return VRAM_OK;
}

// ---- The search for settings.

enum { MOST_THREADS = 64, TODAY = 0 };

// Facts about a setting before its trial.
struct candidate {
    struct vr_text key; // from alike_key(); "" if the string is invalid
    size_t same;        // index of the first setting with the same key, whose results apply; its own index if it is the first
};

struct tune_search {
    struct vr_trial_ground ground;
    struct vr_script *scripts; // of `ground`
    const struct vram_tune_options *options;
    struct vram_tune_result *result;
    size_t capacity;
    struct candidate *candidates; // one per setting, once a round begins
    size_t candidate_count, candidate_capacity;
    bool windows;      // recorded on Windows, where PyTorch ignores expandable segments
    uint64_t expected; // total number of trials, for the progress
    struct vr_mutex mutex;
    // Guarded by the mutex while threads run.
    size_t next; // next setting to try
    uint64_t done;
    enum vram_status status; // first failure
    struct vram_error error;
};

// --- candidates ---------------------------------------------------------------------------------------------------------------
static enum vram_status add_setting(struct tune_search *search, const char *conf, bool today) {
    struct vram_tune_result *result = search->result;
    for (size_t i = 0; i < result->setting_count; i++) {
        if (!today && !result->settings[i].today && strcmp(result->settings[i].conf, conf) == 0) return VRAM_OK;
    }
    VR_TRY(vr_grow((void **)&result->settings, &search->capacity, result->setting_count + 1, sizeof *result->settings));
    const size_t length = strlen(conf) + 1;
    char *copy = malloc(length);
    if (copy == NULL) return VRAM_NO_HOST_MEMORY;
    memcpy(copy, conf, length);
    result->settings[result->setting_count++] = (struct vram_tune_setting){.conf = copy, .today = today};
    return VRAM_OK;
}

// Adds a setting: conf with one more option.
static enum vram_status add_to(struct tune_search *search, const char *conf, const char *option) {
    char text[512];
    const int length = snprintf(text, sizeof text, "%s%s%s", conf, *conf == '\0' ? "" : ",", option);
    return length < 0 || (size_t)length >= sizeof text ? VRAM_OK : add_setting(search, text, false);
}

static enum vram_status add_candidate(void *context, const char *conf) { return add_setting(context, conf, false); }

static bool has_key(const char *conf, const char *key) { return strstr(conf, key) != NULL; }

static enum vram_status add_partners(struct tune_search *search, const char *conf) {
    static const struct {
        const char *key, *option;
    } partners[] = {
        {"expandable_segments", VR_EXPANDABLE},
        {"max_split_size_mb", "max_split_size_mb:128"},
        {"max_split_size_mb", "max_split_size_mb:512"},
        {"roundup_power2_divisions", "roundup_power2_divisions:2"},
        {"roundup_power2_divisions", "roundup_power2_divisions:4"},
        {"roundup_power2_divisions", "roundup_power2_divisions:8"},
        {"roundup_power2_divisions", "roundup_power2_divisions:16"},
        {"garbage_collection_threshold", "garbage_collection_threshold:0.6"},
        {"garbage_collection_threshold", "garbage_collection_threshold:0.9"},
    };
    for (size_t i = 0; i < VR_COUNT_OF(partners); i++) {
        if (search->windows && strcmp(partners[i].option, VR_EXPANDABLE) == 0) continue;
        if (!has_key(conf, partners[i].key)) VR_TRY(add_to(search, conf, partners[i].option));
    }
    return VRAM_OK;
}

// Adds the settings in force with one option that PyTorch does not have (differences.md §beyond-pytorch).
static enum vram_status add_beyond(struct tune_search *search) {
    static const struct {
        const char *option, *needs[2]; // keys without which the option changes nothing
    } beyond[] = {
        {"reclaim_streams:True", {"", ""}},
        {"share_live_pools:True", {"", ""}},
        {"paged:True", {"", ""}},
        {"expandable_segments_reuse_oversize:True", {"expandable_segments:True", "max_split_size_mb:"}},
    };
    for (size_t i = 0; i < VR_COUNT_OF(beyond); i++) {
        const char *conf = search->result->settings[TODAY].conf;
        const size_t before = search->result->setting_count;
        if (!has_key(conf, beyond[i].needs[0]) || !has_key(conf, beyond[i].needs[1])) continue;
        VR_TRY(add_to(search, conf, beyond[i].option));
        if (search->result->setting_count != before) search->result->settings[before].beyond = true;
    }
    return VRAM_OK;
}

// Finds settings that replay like an earlier one and need no trial.
static enum vram_status find_same(struct tune_search *search) {
    const struct vram_tune_setting *settings = search->result->settings;
    VR_TRY(vr_grow((void **)&search->candidates, &search->candidate_capacity, search->result->setting_count, sizeof *search->candidates));
    for (; search->candidate_count < search->result->setting_count; search->candidate_count++) {
        const size_t index = search->candidate_count;
        struct vr_text key = {0};
        const enum vram_status status = alike_key(search->scripts, search->ground.count, search->ground.start,
                                                  settings[index].today ? NULL : settings[index].conf, &key);
        if (status != VRAM_OK) vr_text_release(&key);
        if (status != VRAM_OK && status != VRAM_BAD_OPTION) return status; // the trial reports an invalid string
        size_t same = key.length == 0 ? index : 0;
        while (same < index && strcmp(vr_text_string(&search->candidates[same].key), vr_text_string(&key)) != 0) same++;
        search->candidates[index] = (struct candidate){.key = key, .same = same};
    }
    return VRAM_OK;
}

static void take_results(struct tune_search *search, size_t first) {
    for (size_t i = first; i < search->result->setting_count; i++) {
        const struct vram_tune_setting own = search->result->settings[i];
        if (search->candidates[i].same == i) continue;
        search->result->settings[i] = search->result->settings[search->candidates[i].same];
        search->result->settings[i].conf = own.conf;
        search->result->settings[i].today = own.today;
        search->result->settings[i].inferred = own.inferred;
        search->result->settings[i].beyond = own.beyond;
    }
}

// --- trials -------------------------------------------------------------------------------------------------------------------
// Called with the mutex locked. Settings that need no trial count as done.
static void report_progress(struct tune_search *search) {
    const uint64_t total = search->done > search->expected ? search->done : search->expected;
    if (search->options->progress != NULL) search->options->progress(search->done, total, search->options->user);
}

// Returns the next setting to try. Returns false if none is left or a trial failed.
static bool next_setting(struct tune_search *search, size_t *index) {
    vr_mutex_lock(&search->mutex);
    while (search->next < search->result->setting_count && search->candidates[search->next].same != search->next) {
        search->next++;
        search->done++;
        report_progress(search);
    }
    *index = search->next;
    const bool more = search->next < search->result->setting_count && search->status == VRAM_OK;
    search->next += more;
    vr_mutex_unlock(&search->mutex);
    return more;
}

static void try_settings_left(struct tune_search *search) {
    for (size_t index; next_setting(search, &index);) {
        struct vram_error error = {0};
        uint64_t runs = 0, devices = 0, contradictions = 0;
        const enum vram_status status =
            vr_trial_run(&search->ground, &search->result->settings[index], &runs, &devices, &contradictions, &error);
        vr_mutex_lock(&search->mutex);
        if (status != VRAM_OK && search->status == VRAM_OK) {
            search->status = status;
            search->error = error;
        }
        search->result->runs += runs;
        search->result->devices = devices;
        search->result->contradictions = contradictions;
        search->done++;
        report_progress(search);
        vr_mutex_unlock(&search->mutex);
    }
}

// Keeps pages between trials, because a replay's allocator uses the pages of the previous one.
static void try_settings(void *argument) {
    vr_os_keep_begin();
    try_settings_left(argument);
    vr_os_keep_end();
}

// Tries all settings that have not been tried.
static enum vram_status run_round(struct tune_search *search) {
    struct vr_thread threads[MOST_THREADS];
    unsigned wanted = search->options->threads == 0 ? vr_os_processors() : search->options->threads, started = 0;
    const size_t first = search->next, left = search->result->setting_count - first;
    VR_TRY(find_same(search));
    if (wanted > MOST_THREADS) wanted = MOST_THREADS;
    if (wanted > left) wanted = (unsigned)left;
    while (started + 1 < wanted && vr_thread_start(&threads[started], try_settings, search) == VRAM_OK) started++;
    try_settings(search);
    while (started > 0) vr_thread_join(&threads[--started]);
    take_results(search, first);
    return search->status;
}

// --- the choice -----------------------------------------------------------------------------------------------------------------
// A change must save more than one part in this many of the memory needed, of the memory reserved if it saves nothing else, or of the time.
enum { LEAST_NEED_GAIN = 100, LEAST_HOLD_GAIN = 10, LEAST_TIME_GAIN = 10 };

// Returns whether a setting needs and reserves no more than today's.
static bool is_no_worse(const struct vram_tune_setting *setting, const struct vram_tune_setting *today) {
    if (setting->beyond || setting->needed_bytes == 0) return false;
    return today->needed_bytes == 0 ||
           (setting->needed_bytes <= today->needed_bytes && setting->peak_reserved_bytes <= today->peak_reserved_bytes);
}

// Lists the settings to choose from, in the order of their trials, most common first. With a given memory, the first few that fit, as for a
// cure; otherwise all that are no worse than today's. `rows` has room for all.
static size_t list_eligible(const struct vram_tune_result *result, size_t *rows) {
    const size_t most = result->memory_bytes == 0 ? result->setting_count : VR_MOST_COMPARED;
    size_t count = 0;
    for (size_t i = 0; i < result->setting_count && count < most; i++) {
        const struct vram_tune_setting *setting = &result->settings[i];
        const bool fits = setting->fits && setting->needed_bytes != 0 && !setting->beyond;
        if (result->memory_bytes == 0 ? is_no_worse(setting, &result->settings[TODAY]) : fits) rows[count++] = i;
    }
    return count;
}

// If nothing fits, returns the setting that comes closest.
static size_t nearest_setting(const struct vram_tune_result *result) {
    size_t best = TODAY;
    for (size_t i = 0; i < result->setting_count; i++) {
        const struct vram_tune_setting *setting = &result->settings[i];
        if (setting->beyond || setting->needed_bytes == 0) continue;
        if (result->settings[best].needed_bytes == 0 || setting->needed_bytes < result->settings[best].needed_bytes) best = i;
    }
    return best;
}

// Returns the row that reserves the least, to 1 %, if that is at least a tenth less than today's.
static size_t holds_less(const struct vram_tune_result *result, const size_t *rows, size_t count) {
    const uint64_t today = result->settings[TODAY].peak_reserved_bytes;
    uint64_t least = UINT64_MAX;
    for (size_t i = 0; i < count; i++) {
        if (result->settings[rows[i]].peak_reserved_bytes < least) least = result->settings[rows[i]].peak_reserved_bytes;
    }
    if (result->memory_bytes != 0 || count == 0 || least > today - today / LEAST_HOLD_GAIN) return VRAM_TUNE_NONE;
    size_t i = 0;
    while (result->settings[rows[i]].peak_reserved_bytes > least + least / LEAST_NEED_GAIN) i++;
    return rows[i];
}

// Returns the row with the least driver time among those that need hardly more than the best.
static size_t cheaper_settings(const struct vram_tune_result *result, const size_t *rows, size_t count) {
    const struct vram_tune_setting *best = &result->settings[result->best];
    size_t found = VRAM_TUNE_NONE;
    uint64_t least_ns = best->driver_time_ns - best->driver_time_ns / LEAST_TIME_GAIN;
    for (size_t i = 0; i < count; i++) {
        const struct vram_tune_setting *setting = &result->settings[rows[i]];
        if (setting->needed_bytes > best->needed_bytes + best->needed_bytes / LEAST_NEED_GAIN || setting->fits != best->fits) continue;
        if (setting->driver_time_ns >= least_ns) continue;
        found = rows[i];
        least_ns = setting->driver_time_ns;
    }
    return found == TODAY ? VRAM_TUNE_NONE : found;
}

static enum vram_status choose_setting(struct vram_tune_result *result) {
    size_t *rows = malloc(result->setting_count * sizeof *rows);
    if (rows == NULL) return VRAM_NO_HOST_MEMORY;
    const struct vram_tune_setting *today = &result->settings[TODAY];
    const size_t count = list_eligible(result, rows);
    const bool stays = result->memory_bytes != 0 && today->fits && today->needed_bytes != 0;
    const uint64_t most_held = today->needed_bytes == 0 ? UINT64_MAX : today->peak_reserved_bytes;
    result->best = stays ? TODAY : count == 0 ? nearest_setting(result) : rows[vr_choose_setting(result->settings, rows, count, most_held)];
    result->cheaper = cheaper_settings(result, rows, count);
    result->holds_less = holds_less(result, rows, count);
    free(rows);
    return VRAM_OK;
}

// --- the search -----------------------------------------------------------------------------------------------------------------
static bool anything_fits(const struct vram_tune_result *result) {
    for (size_t i = 0; i < result->setting_count; i++) {
        if (result->settings[i].fits && result->settings[i].needed_bytes != 0 && !result->settings[i].beyond) return true;
    }
    return false;
}

// Searches for the least need: combines the best of the single changes with other options, twice.
static enum vram_status search_for_less(struct tune_search *search) {
    for (int round = 0; round < 2; round++) {
        VR_TRY(choose_setting(search->result));
        VR_TRY(add_partners(search, search->result->settings[search->result->best].conf));
        if (round == 0 && !search->windows) VR_TRY(add_partners(search, VR_EXPANDABLE));
        VR_TRY(run_round(search));
    }
    return VRAM_OK;
}

// If no setting so far fits, tries today's settings with two options changed.
static enum vram_status search_for_room(struct tune_search *search, const char *today) {
    if (anything_fits(search->result)) return VRAM_OK;
    VR_TRY(vr_each_double_change(today, search->windows, add_candidate, search));
    return run_round(search);
}

static enum vram_status explore_settings(struct tune_search *search) {
    VR_TRY(run_round(search)); // today's and the defaults
    const struct vram_tune_result *result = search->result;
    if (result->devices == 0) {
        return vr_fail(&search->error, VRAM_BAD_INPUT, VRAM_NO_OFFSET,
                       "nothing to tune: no device has a history that can be replayed; `vram replay` says why");
    }
    const char *today = vr_text_string(&search->scripts[0].conf);
    if (result->memory_bytes == 0 || !result->settings[TODAY].fits) {
        VR_TRY(vr_each_single_change(today, search->windows, add_candidate, search));
        VR_TRY(run_round(search));
        VR_TRY(result->memory_bytes == 0 ? search_for_less(search) : search_for_room(search, today));
    }
    VR_TRY(add_beyond(search));
    VR_TRY(run_round(search));
    return choose_setting(search->result);
}

// Chooses the replays' start: the recorded initial state if a request failed and an empty cache does not reproduce that.
static enum vram_status find_start(struct tune_search *search, const struct vram_recording *recording) {
    struct vram_report *report = NULL;
    VR_TRY(vram_report_create(recording, NULL, &report, &search->error));
    enum vram_status status = VRAM_OK;
    for (size_t d = 0; d < report->device_count && status == VRAM_OK; d++) {
        const struct vram_report_device *device = &report->devices[d];
        if (device->is_host || device->oom_count == 0 || search->ground.start != VRAM_WHATIF_COLD) continue;
        status = vr_cure_start(recording, device->device, &device->ooms[device->oom_count - 1], &search->ground.start, &search->error);
    }
    for (size_t d = 0; d < report->device_count; d++) {
        const struct vram_report_device *device = &report->devices[d];
        if (device->is_host) continue;
        if (device->allocated.peak.bytes > search->result->live_bytes) search->result->live_bytes = device->allocated.peak.bytes;
        if (device->active.peak.bytes > search->result->active_bytes) search->result->active_bytes = device->active.peak.bytes;
    }
    vram_report_destroy(report);
    return status;
}

static enum vram_status begin_tuning(struct tune_search *search, const struct vram_recording *const *recordings, size_t count) {
    search->ground.scripts = search->scripts = calloc(count, sizeof *search->scripts);
    if (search->scripts == NULL) return VRAM_NO_HOST_MEMORY;
    for (; search->ground.count < count; search->ground.count++) {
        const size_t i = search->ground.count;
        VR_TRY(vr_script_init(&search->scripts[i], recordings[i], false, 0, &search->error));
    }
    VR_TRY(add_setting(search, vr_text_string(&search->scripts[0].conf), true));
    search->result->settings[TODAY].inferred = search->scripts[0].conf_inferred;
    search->windows = vr_platform_is_windows(vr_recording_model(recordings[0]));
    for (size_t i = 0; i < count; i++) VR_TRY(find_start(search, recordings[i]));
    search->result->start = search->ground.start;
    return add_setting(search, "", false);
}

static void end_tuning(struct tune_search *search) {
    for (size_t i = 0; i < search->ground.count; i++) vr_script_release(&search->scripts[i]);
    free(search->scripts);
    for (size_t i = 0; i < search->candidate_count; i++) vr_text_release(&search->candidates[i].key);
    free(search->candidates);
}

enum vram_status vram_tune(const struct vram_recording *const *recordings, size_t count, const struct vram_tune_options *options,
                           struct vram_tune_result **result, struct vram_error *error) {
    static const struct vram_tune_options defaults = {0};
    if (recordings == NULL || count == 0 || result == NULL)
        return vr_fail(error, VRAM_INVALID_ARGUMENT, VRAM_NO_OFFSET, "recording and result must not be NULL");
    if (options == NULL) options = &defaults;
    struct tune_search search = {.ground = {.memory_bytes = options->memory_bytes, .start = options->start, .profile = options->profile},
                                 .options = options,
                                 .expected = 35,
                                 .result = calloc(1, sizeof *search.result)};
    if (search.result == NULL) return vr_fail(error, VRAM_NO_HOST_MEMORY, VRAM_NO_OFFSET, "not enough host memory for the search");
    search.result->memory_bytes = options->memory_bytes;
    search.result->variable = vr_platform_variable(vr_platform_of(vr_recording_model(recordings[0])));
    vr_mutex_init(&search.mutex);
    enum vram_status status = begin_tuning(&search, recordings, count);
    if (status == VRAM_OK) status = explore_settings(&search);
    end_tuning(&search);
    vr_mutex_destroy(&search.mutex);
    if (status == VRAM_OK) {
        *result = search.result;
        return VRAM_OK;
    }
    vram_tune_result_destroy(search.result);
    if (search.error.status == VRAM_OK) return vr_fail(error, status, VRAM_NO_OFFSET, "%s", vram_status_text(status));
    if (error != NULL) *error = search.error;
    return status;
}

void vram_tune_result_destroy(struct vram_tune_result *result) {
    if (result == NULL) return;
    for (size_t i = 0; i < result->setting_count; i++) free(result->settings[i].conf);
    free(result->settings);
    free(result);
}
