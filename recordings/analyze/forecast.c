// Forecasts the peak of a run of another size from two or three runs.
#include "analyze/forecast.h"

#include <math.h>

#include "vram/report.h"

// In runs of one program, at least this part of the bytes live at a peak comes from call sites that the other runs also have.
#define LEAST_SHARED 0.5

static enum vram_status find_reserved(const struct vram_recording *recording, struct vr_forecast_run *run, struct vram_error *error) {
    struct vram_report *report;
    VR_TRY(vram_report_create(recording, &(struct vram_report_options){.top = 1}, &report, error));
    for (size_t i = 0; i < report->device_count; i++) {
        const struct vram_report_device *device = &report->devices[i];
        const int64_t peak = device->reserved.peak_bytes;
        if (device->device == run->profile.view->device && peak > 0 && !device->whole_program) run->reserved = (uint64_t)peak;
    }
    vram_report_destroy(report);
    return VRAM_OK;
}

static enum vram_status open_run(const struct vram_forecast *asked, size_t side, struct vr_forecast_run *run, struct vram_error *error) {
    struct vram_profile_options by_site = asked->options;
    by_site.by = "site";
    VR_TRY(vr_profile_open(asked->recording[side], &asked->options, &run->profile, error));
    run->opened = true;
    VR_TRY(vr_profile_grouping(&run->profile, &asked->options, &run->grouping, error));
    run->grouped = true;
    VR_TRY(vr_profile_grouping(&run->profile, &by_site, &run->sites, error));
    run->by_sites = true;
    VR_TRY(vr_moments_find(run->profile.view, &run->profile.lifetimes, &run->moments));
    return find_reserved(asked->recording[side], run, error);
}

// Computes the part of the bytes live at a run's moment that comes from call sites of every run.
static enum vram_status shared_part(const struct vr_forecast_runs *runs, size_t number, double *part) {
    struct vr_forecast_run *run = (struct vr_forecast_run *)&runs->run[number];
    const uint32_t all = (1u << runs->count) - 1;
    double shared = 0, bytes = 0;
    for (size_t i = 0; i < run->profile.count; i++) {
        uint64_t key = 0;
        VR_TRY(vr_grouping_key(&run->sites, run->profile.rows[i], &key));
        const double size = (double)run->profile.lifetimes.size_bytes[run->profile.rows[i]];
        bytes += size;
        if (vr_shared_site_of(&runs->shared, number, key)->runs == all) shared += size;
    }
    *part = bytes > 0 ? shared / bytes : 1;
    return VRAM_OK;
}

static enum vram_status check_shared(const struct vram_forecast *asked, const size_t *order, const struct vr_forecast_runs *runs,
                                     struct vram_error *error) {
    for (size_t i = 0; i < runs->count; i++) {
        double part = 1;
        VR_TRY(shared_part(runs, i, &part));
        if (part >= LEAST_SHARED) continue;
        return vr_fail(error, VRAM_INVALID_ARGUMENT, VRAM_NO_OFFSET,
                       "the recordings are not runs of the same program: at the peak of %s, only %.0f %% of the memory is from call sites "
                       "that all runs share",
                       asked->title[order[i]] == NULL ? "one of them" : asked->title[order[i]], 100 * part);
    }
    return VRAM_OK;
}

// Opens the runs. order: the indices of the recordings in `asked`, by ascending size. INVALID_ARGUMENT with a message, also for recordings
// of different programs; BAD_INPUT, LIMIT, NO_HOST_MEMORY. Close the runs in any case.
static enum vram_status forecast_runs_open(const struct vram_forecast *asked, const size_t *order, struct vr_forecast_runs *runs,
                                           struct vram_error *error) {
    struct vr_grouping *sites[VRAM_FORECAST_MOST];
    *runs = (struct vr_forecast_runs){.count = asked->count};
    for (size_t i = 0; i < asked->count; i++) {
        VR_TRY(open_run(asked, order[i], &runs->run[i], error));
        runs->size[i] = asked->size[order[i]];
        sites[i] = &runs->run[i].sites;
    }
    VR_TRY(vr_shared_sites_build(sites, asked->count, &runs->shared));
    runs->has_shared = true;
    return check_shared(asked, order, runs, error);
}

static void forecast_runs_close(struct vr_forecast_runs *runs) {
    for (size_t i = 0; i < runs->count; i++) {
        struct vr_forecast_run *run = &runs->run[i];
        vr_moments_release(&run->moments);
        vr_map_release(&run->named);
        free(run->name);
        if (run->by_sites) vr_grouping_release(&run->sites);
        if (run->grouped) vr_grouping_release(&run->grouping);
        if (run->opened) vr_profile_close(&run->profile);
    }
    if (runs->has_shared) vr_shared_sites_release(&runs->shared);
    vr_arena_release(&runs->arena);
}

static enum vram_status name_group(struct vr_forecast_runs *runs, size_t number, uint64_t key, const char **name) {
    const struct vr_grouping *grouping = &runs->run[number].grouping;
    if (grouping->by == VR_GROUP_SITE) {
        *name = vr_shared_site_of(&runs->shared, number, key)->name;
        return VRAM_OK;
    }
    struct vr_text text = {0};
    vr_grouping_name(grouping, key, &text);
    enum vram_status status = vr_text_status(&text);
    if (status == VRAM_OK) status = vr_arena_copy(&runs->arena, vr_text_string(&text), text.length, name);
    vr_text_release(&text);
    return status;
}

// Sets *name to the name of a row's group, which is the same in every run. NO_HOST_MEMORY.
static enum vram_status forecast_runs_name(struct vr_forecast_runs *runs, size_t number, uint32_t row, const char **name) {
    struct vr_forecast_run *run = &runs->run[number];
    uint64_t key = 0;
    VR_TRY(vr_grouping_key(&run->grouping, row, &key));
    const uint64_t place = vr_map_get(&run->named, key);
    if (place != 0) {
        *name = run->name[place - 1];
        return VRAM_OK;
    }
    VR_TRY(VR_GROW(run, name, run->name_count + 1));
    VR_TRY(name_group(runs, number, key, name));
    run->name[run->name_count++] = *name;
    return vr_map_set(&run->named, key, run->name_count);
}

// Sizes of allocations are whole numbers of elements, so a group with linear growth may deviate slightly from a line: by this much for each
// allocation, plus this share.
#define ROUNDING_BYTES 512.0
#define SHARE          0.002
// Assumed maximum error of a curve for each doubling beyond the largest size: libraries change algorithms, limits are reached.
#define DOUBLING_SHARE 0.015
// Maximum error of the reserved bytes, relative to the allocated bytes, in eight real runs that were left out, rounded up
// (tests/cli/check_forecast.py).
#define HELD_SHARE 0.04
// Added to it: one segment of the size that PyTorch makes for requests of 1 to 10 MiB. In a small program this dominates.
#define HELD_BYTES (20.0 * (1 << 20))

// Number of moments considered in addition to the peaks of the runs: those that may become the highest.
enum { MOST_MOMENTS = 8 };

// An allocation live at a moment.
struct forecast_entry {
    const char *name;
    size_t run;
    uint64_t bytes,
        order; // order: its birth; allocations from before the history are ordered by size, because nothing else distinguishes them
};

// The forecast for one moment.
struct foreseen {
    struct vr_followed followed;
    struct vr_forecast_group *group;
    size_t count;
    uint64_t bytes, low, high;
};

struct forecasting {
    const struct vram_forecast *asked;
    struct vr_forecast_runs runs;
    struct forecast_entry *entry;
    size_t count, entry_capacity;
    struct vr_forecast forecast;
    struct foreseen best;
    uint64_t low, high; // maximum over all moments
};

static double lesser_double(double a, double b) { return a < b ? a : b; }
static double greater_double(double a, double b) { return a < b ? b : a; }

// --- the allocations live at a moment ----------------------------------------------------------------------------------------------------

static enum vram_status add_forecast_run(struct forecasting *making, size_t number, int64_t event) {
    const struct vr_lifetimes *lifetimes = &making->runs.run[number].profile.lifetimes;
    uint32_t *rows = NULL;
    size_t count = 0;
    VR_TRY(vr_rows_live_at(lifetimes, event, &rows, &count));
    enum vram_status status = VR_GROW(making, entry, making->count + count + 1);
    for (size_t i = 0; i < count && status == VRAM_OK; i++) {
        const uint64_t bytes = lifetimes->size_bytes[rows[i]];
        const bool is_older = lifetimes->birth[rows[i]] == VR_BEFORE_TRACE;
        struct forecast_entry *entry = &making->entry[making->count++];
        *entry = (struct forecast_entry){.run = number, .bytes = bytes, .order = is_older ? bytes >> 1 : UINT64_C(1) << 63 | rows[i]};
        status = forecast_runs_name(&making->runs, number, rows[i], &entry->name);
    }
    free(rows);
    return status;
}

static uint64_t whole_bytes(double bytes) { return bytes <= 0 ? 0 : bytes >= 0x1p62 ? UINT64_C(1) << 62 : (uint64_t)(bytes + 0.5); }

// Adds the forecast of `bytes`, one sum per run, to the group's. `count` is the number of allocations in the last run's sum.
static void foresee_bytes(const struct forecasting *making, const uint64_t *bytes, double count, struct vr_forecast_group *group) {
    struct vr_size_points points = {.count = making->runs.count, .single = count == 1};
    for (size_t i = 0; i < points.count; i++) {
        points.size[i] = making->runs.size[i];
        points.bytes[i] = (double)bytes[i];
    }
    points.slack = ROUNDING_BYTES * count + SHARE * points.bytes[points.count - 1];
    const struct vr_size_curve curve = vr_size_curve_at(&points, making->asked->wanted);
    if (curve.shape > group->shape) group->shape = curve.shape;
    group->forecast_bytes += whole_bytes(curve.value);
    group->low_bytes += whole_bytes(curve.low);
    group->high_bytes += whole_bytes(curve.high);
}

// Forecasts a group from its allocations, sorted by run, then order. If every run has the same number, forecasts each allocation by itself,
// because a call site may allocate several tensors of which some grow; otherwise forecasts their sum.
static void foresee_group(const struct forecasting *making, const struct forecast_entry *entry, struct vr_forecast_group *group) {
    const size_t runs = making->runs.count;
    const uint64_t each = group->count[0];
    bool alike = each != 0;
    for (size_t i = 1; i < runs; i++) alike = alike && group->count[i] == each;
    if (!alike) {
        foresee_bytes(making, group->bytes, (double)group->count[runs - 1], group);
        return;
    }
    for (uint64_t k = 0; k < each; k++) {
        uint64_t bytes[VRAM_FORECAST_MOST];
        for (size_t i = 0; i < runs; i++) bytes[i] = entry[i * each + k].bytes;
        foresee_bytes(making, bytes, 1, group);
    }
}

static int runs_by_name(const void *a, const void *b) {
    const struct forecast_entry *x = a, *y = b;
    const int names = strcmp(x->name, y->name);
    if (names != 0) return names;
    return x->run != y->run ? VR_ORDER(x->run, y->run) : VR_ORDER(x->order, y->order);
}

// Sums the groups. Widens the range by SHARE, and by more for a size further beyond the largest.
static void sum_up(const struct forecasting *making, struct foreseen *moment) {
    const double times = making->asked->wanted / making->runs.size[making->runs.count - 1];
    const double share = SHARE + (times > 1 ? DOUBLING_SHARE * log2(times) : 0);
    for (size_t i = 0; i < moment->count; i++) {
        moment->bytes += moment->group[i].forecast_bytes;
        moment->low += moment->group[i].low_bytes;
        moment->high += moment->group[i].high_bytes;
    }
    moment->low -= whole_bytes(lesser_double(share, 1) * (double)moment->low);
    moment->high += whole_bytes(share * (double)moment->high);
}

static enum vram_status foresee_moment(struct forecasting *making, const struct vr_followed *followed, struct foreseen *moment) {
    *moment = (struct foreseen){.followed = *followed};
    making->count = 0;
    for (size_t i = 0; i < making->runs.count; i++) VR_TRY(add_forecast_run(making, i, followed->event[i]));
    moment->group = calloc(making->count + 1, sizeof *moment->group);
    if (moment->group == NULL) return VRAM_NO_HOST_MEMORY;
    if (making->count != 0) qsort(making->entry, making->count, sizeof *making->entry, runs_by_name);
    for (size_t i = 0, end; i < making->count; i = end) {
        struct vr_forecast_group *group = &moment->group[moment->count++];
        group->name = making->entry[i].name;
        for (end = i; end < making->count && strcmp(making->entry[end].name, group->name) == 0; end++) {
            group->bytes[making->entry[end].run] += making->entry[end].bytes;
            group->count[making->entry[end].run]++;
        }
        foresee_group(making, &making->entry[i], group);
    }
    sum_up(making, moment);
    return VRAM_OK;
}

// --- all moments -------------------------------------------------------------------------------------------------------------------------

// Returns the largest peak of runs not larger than the wanted size: a larger run needs at least as much. Peaks at different moments do not
// show how either grows.
static uint64_t least_of_peaks(const struct forecasting *making, const struct vr_followed *followed) {
    uint64_t least = 0;
    for (size_t i = 0; i < making->runs.count; i++) {
        const bool is_smaller = making->runs.size[i] <= making->asked->wanted;
        if (is_smaller && followed->bytes[i] > least) least = followed->bytes[i];
    }
    return least;
}

// Tries a moment. The peak is the maximum of all moments; so are the ends of its range.
static enum vram_status try_moment(struct forecasting *making, const struct vr_followed *followed, bool is_one_moment) {
    struct foreseen moment;
    const enum vram_status status = foresee_moment(making, followed, &moment);
    if (status != VRAM_OK) {
        free(moment.group);
        return status;
    }
    if (!is_one_moment) moment.low = least_of_peaks(making, followed);
    if (moment.low > making->low) making->low = moment.low;
    if (moment.high > making->high) making->high = moment.high;
    if (making->best.group != NULL && moment.bytes <= making->best.bytes) {
        free(moment.group);
        return VRAM_OK;
    }
    free(making->best.group);
    making->best = moment;
    return VRAM_OK;
}

static bool is_a_peak(const struct forecasting *making, const struct vr_followed *followed) {
    for (size_t i = 0; i < making->runs.count; i++) {
        if (followed->event[i] == making->runs.run[i].profile.lifetimes.peak_event) return true;
    }
    return false;
}

// Tries the requested moments, or the runs' peaks, which may be different moments of the program.
static enum vram_status try_own_moments(struct forecasting *making, bool is_one_moment) {
    struct vr_followed followed = {.most = 0};
    for (size_t i = 0; i < making->runs.count; i++) {
        followed.event[i] = making->runs.run[i].profile.event;
        followed.bytes[i] = making->runs.run[i].profile.bytes;
    }
    return try_moment(making, &followed, is_one_moment);
}

static enum vram_status try_all(struct forecasting *making, const struct vr_followed_list *list) {
    size_t tried = 0;
    for (size_t i = 0; i < list->count; i++) {
        if (tried >= MOST_MOMENTS && !is_a_peak(making, &list->followed[i])) continue;
        VR_TRY(try_moment(making, &list->followed[i], true));
        tried++;
    }
    return VRAM_OK;
}

static enum vram_status follow_runs(struct forecasting *making) {
    const size_t runs = making->runs.count;
    struct vr_run_moments moments[VRAM_FORECAST_MOST];
    const struct vr_lifetimes *lifetimes[VRAM_FORECAST_MOST];
    struct vr_followed_list list = {.count = 0};
    if (making->asked->options.moment != VRAM_PROFILE_PEAK) return try_own_moments(making, true);
    for (size_t i = 0; i < runs; i++) {
        moments[i] = making->runs.run[i].moments;
        lifetimes[i] = &making->runs.run[i].profile.lifetimes;
    }
    VR_TRY(vr_moments_follow(moments, lifetimes, making->runs.size, runs, making->asked->wanted, &list));
    making->forecast.peaks_followed = list.peaks == (1u << runs) - 1;
    enum vram_status status = try_all(making, &list);
    free(list.followed);
    // Otherwise, the peak of some run is at a point that another run does not reach.
    if (status == VRAM_OK && !making->forecast.peaks_followed) status = try_own_moments(making, false);
    return status;
}

// --- the result --------------------------------------------------------------------------------------------------------------------------

// Forecasts reserved bytes. Their excess over the allocated bytes follows no curve, so it is extrapolated linearly. The range covers the
// excess of every run, in bytes and as a share, and is widened by HELD_SHARE and HELD_BYTES.
static void foresee_reserved(const struct vram_forecast *asked, struct vr_forecast *forecast) {
    struct vram_forecast_result *result = &forecast->result;
    const double allocated = (double)result->allocated_bytes;
    double x[2] = {0, 1}, gap[2] = {0}, least = INFINITY, most = 0;
    for (size_t i = 0; i < asked->count; i++) {
        const size_t side = forecast->order[i];
        if (forecast->reserved[side] < forecast->allocated[side]) return;
        const double over = (double)(forecast->reserved[side] - forecast->allocated[side]),
                     share = over / (double)forecast->allocated[side];
        x[i != 0] = asked->size[side], gap[i != 0] = over;
        least = lesser_double(least, lesser_double(over, share * allocated)),
        most = greater_double(most, greater_double(over, share * allocated));
    }
    const double next = greater_double(0, gap[0] + (gap[1] - gap[0]) * (asked->wanted - x[0]) / (x[1] - x[0]));
    result->reserved_bytes = result->allocated_bytes + whole_bytes(next);
    result->reserved_low_bytes =
        result->allocated_low_bytes + whole_bytes(greater_double(0, lesser_double(least, next) - HELD_SHARE * allocated - HELD_BYTES));
    result->reserved_high_bytes =
        result->allocated_high_bytes + whole_bytes(greater_double(most, next) + HELD_SHARE * allocated + HELD_BYTES);
}

// Converts the groups, which are by run, to the forecast's, which are by recording and own their names.
static enum vram_status keep_groups(struct forecasting *making) {
    struct vr_forecast *forecast = &making->forecast;
    forecast->group = making->best.group;
    forecast->count = making->best.count;
    making->best.group = NULL;
    for (size_t i = 0; i < forecast->count; i++) {
        struct vr_forecast_group *group = &forecast->group[i];
        const struct vr_forecast_group by_run = *group;
        bool everywhere = true;
        for (size_t k = 0; k < making->runs.count; k++) {
            group->bytes[forecast->order[k]] = by_run.bytes[k];
            group->count[forecast->order[k]] = by_run.count[k];
            everywhere = everywhere && by_run.count[k] != 0;
        }
        if (!everywhere) forecast->only_some_bytes += by_run.bytes[making->runs.count - 1];
        VR_TRY(vr_arena_copy(&forecast->arena, by_run.name, strlen(by_run.name), &group->name));
    }
    return VRAM_OK;
}

// Names the call site that allocates at the moment, in the largest run.
static enum vram_status name_moment(struct forecasting *making) {
    const size_t last = making->runs.count - 1;
    struct vr_forecast_run *run = &making->runs.run[last];
    const struct vr_lifetimes *lifetimes = &run->profile.lifetimes;
    const int64_t event = making->best.followed.event[last];
    size_t row;
    VR_LOWER_BOUND(row, i, lifetimes->start_count, lifetimes->count, (int64_t)lifetimes->birth[i] < event);
    if (event < 0 || row == lifetimes->count || (int64_t)lifetimes->birth[row] != event) return VRAM_OK;
    uint64_t key = 0;
    VR_TRY(vr_grouping_key(&run->sites, row, &key));
    const char *name = vr_shared_site_of(&making->runs.shared, last, key)->name;
    return vr_arena_copy(&making->forecast.arena, name, strlen(name), &making->forecast.moment_site);
}

static int by_forecast(const void *a, const void *b) {
    const struct vr_forecast_group *x = a, *y = b;
    if (x->forecast_bytes != y->forecast_bytes) return VR_ORDER(y->forecast_bytes, x->forecast_bytes);
    return strcmp(x->name, y->name);
}

static enum vram_status conclude_forecast(struct forecasting *making) {
    struct vr_forecast *forecast = &making->forecast;
    forecast->by = making->runs.run[0].grouping.by;
    for (size_t i = 0; i < making->runs.count; i++) {
        const size_t side = forecast->order[i];
        const struct vr_profile *profile = &making->runs.run[i].profile;
        forecast->allocated[side] = profile->bytes;
        forecast->event[side] = profile->event;
        forecast->reserved[side] = making->runs.run[i].reserved;
        forecast->moment[side] = making->best.followed.event[i];
        forecast->moment_bytes[side] = making->best.followed.bytes[i];
    }
    forecast->result.allocated_bytes = making->best.bytes;
    forecast->result.allocated_low_bytes = making->low;
    forecast->result.allocated_high_bytes = making->high;
    foresee_reserved(making->asked, forecast);
    VR_TRY(name_moment(making));
    VR_TRY(keep_groups(making));
    if (forecast->count != 0) qsort(forecast->group, forecast->count, sizeof *forecast->group, by_forecast);
    return VRAM_OK;
}

static enum vram_status check_question(const struct vram_forecast *asked, size_t *order, struct vram_error *error) {
    if (asked->count < 2 || asked->count > VRAM_FORECAST_MOST)
        return vr_fail(error, VRAM_INVALID_ARGUMENT, VRAM_NO_OFFSET, "expected two or three recordings");
    for (size_t i = 0; i < asked->count; i++) {
        if (!(asked->size[i] > 0) || !isfinite(asked->size[i]))
            return vr_fail(error, VRAM_INVALID_ARGUMENT, VRAM_NO_OFFSET, "sizes must be above 0");
        size_t at = i;
        for (; at != 0 && asked->size[order[at - 1]] > asked->size[i]; at--) order[at] = order[at - 1];
        order[at] = i;
    }
    for (size_t i = 1; i < asked->count; i++) {
        if (asked->size[order[i]] <= asked->size[order[i - 1]])
            return vr_fail(error, VRAM_INVALID_ARGUMENT, VRAM_NO_OFFSET, "two recordings have the same size (%g); sizes must differ",
                           asked->size[order[i]]);
    }
    if (asked->options.by != NULL && strcmp(asked->options.by, "stack") == 0)
        return vr_fail(error, VRAM_INVALID_ARGUMENT, VRAM_NO_OFFSET,
                       "stacks cannot be matched across recordings; group by site, function, role, ...");
    if (!(asked->wanted > 0) || !isfinite(asked->wanted))
        return vr_fail(error, VRAM_INVALID_ARGUMENT, VRAM_NO_OFFSET, "the requested size must be above 0");
    return VRAM_OK;
}

enum vram_status vr_forecast_make(const struct vram_forecast *asked, struct vr_forecast *forecast, struct vram_error *error) {
    struct forecasting making = {.asked = asked};
    VR_TRY(check_question(asked, making.forecast.order, error));
    enum vram_status status = forecast_runs_open(asked, making.forecast.order, &making.runs, error);
    if (status == VRAM_OK) status = follow_runs(&making);
    if (status == VRAM_OK) status = conclude_forecast(&making);
    forecast_runs_close(&making.runs);
    free(making.entry);
    free(making.best.group);
    if (status != VRAM_OK)
        vr_forecast_release(&making.forecast);
    else
        *forecast = making.forecast;
    return status;
}

void vr_forecast_release(struct vr_forecast *forecast) {
    free(forecast->group);
    vr_arena_release(&forecast->arena);
    *forecast = (struct vr_forecast){.group = NULL};
}
