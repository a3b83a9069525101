// tune.c: the search for settings, in rounds. First one option at a time, then what goes well with the best of them; the trials of a round
// do not depend on each other and run on several threads, so that the result does not depend on how many.
#include "vram/replay.h"

#include <stdatomic.h>
#include <stdio.h>

#include "model/platform.h"
#include "model/recording.h"
#include "os/os.h"
#include "replay/alike.h"
#include "replay/trial.h"

enum { MOST_THREADS = 64, TODAY = 0, DEFAULTS = 1 };

// What is known of a setting before it is tried.
struct candidate {
    struct vr_text key; // alike.h; "" where there is none
    size_t same;        // the first setting that plays alike: its own number, or that of one whose results it takes
};

struct tune_search {
    struct vr_trial_ground ground;
    struct vr_script *scripts; // the ground's
    const struct vram_tune_options *options;
    struct vram_tune_result *result;
    size_t capacity;
    struct candidate *candidates; // as many as settings, once a round begins
    size_t candidate_count, candidate_capacity;
    uint64_t expected; // trials in all, for the progress
    struct vr_mutex mutex;
    // Guarded by the mutex while threads run.
    size_t next; // setting to try next
    uint64_t done;
    enum vram_status status; // the first failure
    struct vram_error error;
};

// --- candidates ---------------------------------------------------------------------------------------------------------------
static enum vram_status add(struct tune_search *search, const char *conf, bool today) {
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

// conf with one more option.
static enum vram_status add_to(struct tune_search *search, const char *conf, const char *option) {
    char text[512];
    const int length = snprintf(text, sizeof text, "%s%s%s", conf, *conf == '\0' ? "" : ",", option);
    return length < 0 || (size_t)length >= sizeof text ? VRAM_OK : add(search, text, false);
}

static enum vram_status add_single_options(struct tune_search *search) {
    static const char *const options[] = {
        "expandable_segments:True", "max_split_size_mb:128",      "max_split_size_mb:21",        "max_split_size_mb:32",
        "max_split_size_mb:64",     "max_split_size_mb:256",      "max_split_size_mb:512",       "max_split_size_mb:1024",
        "max_split_size_mb:2048",   "roundup_power2_divisions:4", "roundup_power2_divisions:16", "garbage_collection_threshold:0.8",
    };
    for (size_t i = 0; i < VR_COUNT_OF(options); i++) VR_TRY(add(search, options[i], false));
    return VRAM_OK;
}

static bool has_key(const char *conf, const char *key) { return strstr(conf, key) != NULL; }

static enum vram_status add_partners(struct tune_search *search, const char *conf) {
    static const struct {
        const char *key, *option;
    } partners[] = {
        {"expandable_segments", "expandable_segments:True"},
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
        if (!has_key(conf, partners[i].key)) VR_TRY(add_to(search, conf, partners[i].option));
    }
    return VRAM_OK;
}

// Split sizes between those tried already.
static enum vram_status add_neighbours(struct tune_search *search, const char *conf) {
    const char *at = strstr(conf, "max_split_size_mb:");
    if (at == NULL) return VRAM_OK;
    const unsigned long size = strtoul(at + strlen("max_split_size_mb:"), NULL, 10);
    static const unsigned eighths[] = {6, 7, 10, 12};
    for (size_t i = 0; i < VR_COUNT_OF(eighths); i++) {
        char text[512];
        const char *rest = strchr(at, ',');
        const int length = snprintf(text, sizeof text, "%.*smax_split_size_mb:%lu%s", (int)(at - conf), conf, size * eighths[i] / 8,
                                    rest == NULL ? "" : rest);
        if (size * eighths[i] / 8 > 20 && length > 0 && (size_t)length < sizeof text) VR_TRY(add(search, text, false));
    }
    return VRAM_OK;
}

// What this allocator could do beside what was in force (differences.md §beyond-pytorch).
static enum vram_status add_beyond(struct tune_search *search) {
    static const struct {
        const char *option, *needs[2]; // keys without which it changes nothing
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

// A setting that plays like one before it need not be played.
static enum vram_status find_same(struct tune_search *search) {
    const struct vram_tune_setting *settings = search->result->settings;
    VR_TRY(vr_grow((void **)&search->candidates, &search->candidate_capacity, search->result->setting_count, sizeof *search->candidates));
    for (; search->candidate_count < search->result->setting_count; search->candidate_count++) {
        const size_t index = search->candidate_count;
        struct vr_text key = {0};
        const enum vram_status status = vr_alike_key(search->scripts, search->ground.count, search->ground.start,
                                                     settings[index].today ? NULL : settings[index].conf, &key);
        if (status != VRAM_OK) vr_text_release(&key);
        if (status != VRAM_OK && status != VRAM_BAD_OPTION) return status; // what no replay takes, its trial says
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
// Under the mutex. What need not be tried counts as done.
static void report_progress(struct tune_search *search) {
    const uint64_t total = search->done > search->expected ? search->done : search->expected;
    if (search->options->progress != NULL) search->options->progress(search->done, total, search->options->user);
}

// The next setting that must be tried. False: none is left, or one failed.
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

// A replay's allocator touches the pages of the one before it.
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
// Whether a is the better setting for somebody who has given a memory (fits; fits with room; then time, or without room what needs less),
// or asks for the least.
static bool better(const struct vram_tune_result *result, size_t a, size_t b) {
    const struct vram_tune_setting *x = &result->settings[a], *y = &result->settings[b];
    if ((x->needed_bytes == 0) != (y->needed_bytes == 0)) return x->needed_bytes != 0;
    if (x->fits != y->fits) return x->fits;
    if (x->fits_with_room != y->fits_with_room) return x->fits_with_room;
    if (result->memory_bytes != 0 && x->fits_with_room && x->driver_time_ns != y->driver_time_ns)
        return x->driver_time_ns < y->driver_time_ns;
    if (x->needed_bytes != y->needed_bytes) return x->needed_bytes < y->needed_bytes;
    if (x->peak_reserved_bytes != y->peak_reserved_bytes) return x->peak_reserved_bytes < y->peak_reserved_bytes;
    if (x->driver_time_ns != y->driver_time_ns) return x->driver_time_ns < y->driver_time_ns;
    return a < b;
}

static void choose(struct vram_tune_result *result) {
    result->best = 0;
    for (size_t i = 1; i < result->setting_count; i++) {
        if (!result->settings[i].beyond && better(result, i, result->best)) result->best = i;
    }
    const struct vram_tune_setting *best = &result->settings[result->best];
    result->cheaper = VRAM_TUNE_NONE;
    for (size_t i = 0; i < result->setting_count; i++) {
        const struct vram_tune_setting *setting = &result->settings[i];
        if (setting->beyond || setting->needed_bytes == 0 || setting->needed_bytes > best->needed_bytes + best->needed_bytes / 100)
            continue;
        const uint64_t least = result->cheaper == VRAM_TUNE_NONE ? best->driver_time_ns - best->driver_time_ns / 10
                                                                 : result->settings[result->cheaper].driver_time_ns;
        if (setting->driver_time_ns < least && setting->fits == best->fits) result->cheaper = i;
    }
}

static enum vram_status explore(struct tune_search *search) {
    VR_TRY(run_round(search)); // today's and the defaults
    if (search->result->devices == 0) {
        return vr_fail(&search->error, VRAM_BAD_INPUT, VRAM_NO_OFFSET,
                       "no device has a history that can be replayed: there is nothing to tune; vram replay says why");
    }
    VR_TRY(add_single_options(search));
    VR_TRY(run_round(search));
    for (int round = 0; round < 2; round++) {
        choose(search->result);
        const char *conf = search->result->settings[search->result->best].conf;
        VR_TRY(add_partners(search, conf));
        VR_TRY(add_neighbours(search, search->result->settings[search->result->best].conf));
        if (round == 0) VR_TRY(add_partners(search, "expandable_segments:True"));
        VR_TRY(run_round(search));
    }
    VR_TRY(add_beyond(search));
    VR_TRY(run_round(search));
    choose(search->result);
    return VRAM_OK;
}

static enum vram_status begin(struct tune_search *search, const struct vram_recording *const *recordings, size_t count) {
    search->ground.scripts = search->scripts = calloc(count, sizeof *search->scripts);
    if (search->scripts == NULL) return VRAM_NO_HOST_MEMORY;
    for (; search->ground.count < count; search->ground.count++) {
        const size_t i = search->ground.count;
        VR_TRY(vr_script_init(&search->scripts[i], recordings[i], false, 0, &search->error));
    }
    VR_TRY(add(search, vr_text_string(&search->scripts[0].conf), true));
    search->result->settings[TODAY].inferred = search->scripts[0].conf_inferred;
    return add(search, "", false);
}

static void end(struct tune_search *search) {
    for (size_t i = 0; i < search->ground.count; i++) vr_script_release(&search->scripts[i]);
    free(search->scripts);
    for (size_t i = 0; i < search->candidate_count; i++) vr_text_release(&search->candidates[i].key);
    free(search->candidates);
}

enum vram_status vram_tune(const struct vram_recording *const *recordings, size_t count, const struct vram_tune_options *options,
                           struct vram_tune_result **result, struct vram_error *error) {
    static const struct vram_tune_options defaults = {0};
    if (recordings == NULL || count == 0 || result == NULL)
        return vr_fail(error, VRAM_INVALID_ARGUMENT, VRAM_NO_OFFSET, "no recording or no result");
    if (options == NULL) options = &defaults;
    struct tune_search search = {.ground = {.memory_bytes = options->memory_bytes, .start = options->start, .profile = options->profile},
                                 .options = options,
                                 .expected = 43,
                                 .result = calloc(1, sizeof *search.result)};
    if (search.result == NULL) return vr_fail(error, VRAM_NO_HOST_MEMORY, VRAM_NO_OFFSET, "no host memory for the search");
    search.result->memory_bytes = options->memory_bytes;
    search.result->variable = vr_platform_variable(vr_platform_of(vr_recording_model(recordings[0])));
    vr_mutex_init(&search.mutex);
    enum vram_status status = begin(&search, recordings, count);
    if (status == VRAM_OK) status = explore(&search);
    end(&search);
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
