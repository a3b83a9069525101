#include "analyze/forecast_runs.h"

#include "vram/report.h"

// Runs of one program allocate at least this part of what is live at a peak at call sites that the other runs have, too.
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

// The part of what is live at a run's moment that is allocated where every other run allocates, too.
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
        return vr_fail(
            error, VRAM_INVALID_ARGUMENT, VRAM_NO_OFFSET,
            "these are not runs of one program: of what is live at the peak of %s, %.0f %% comes from call sites that all of the runs have",
            asked->title[order[i]] == NULL ? "one of them" : asked->title[order[i]], 100 * part);
    }
    return VRAM_OK;
}

enum vram_status vr_forecast_runs_open(const struct vram_forecast *asked, const size_t *order, struct vr_forecast_runs *runs,
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

void vr_forecast_runs_close(struct vr_forecast_runs *runs) {
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

enum vram_status vr_forecast_runs_name(struct vr_forecast_runs *runs, size_t number, uint32_t row, const char **name) {
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
