// Assigns a model's rows to devices, and chooses the device to report on if none is named.
#include "analyze/device_view.h"

#include <inttypes.h>
#include <stdio.h>

#include "analyze/frame_kinds.h"
#include "analyze/lifetimes.h"
#include "model/platform.h"
#include "vram/report.h"

// ---- The rows of each device.

// CUDA ordinals are below 128 in every known recorder; a file with more devices than this is damaged.
#define MAX_DEVICES 256

static enum vram_status too_many(struct vram_error *error) {
    return vr_fail(error, VRAM_LIMIT, VRAM_NO_OFFSET, "segments and histories name more than %d devices", MAX_DEVICES);
}

static void sort_devices(uint32_t *devices, size_t count) {
    for (size_t i = 1; i < count; i++) {
        for (size_t j = i; j > 0 && devices[j] < devices[j - 1]; j--) {
            const uint32_t swapped = devices[j];
            devices[j] = devices[j - 1];
            devices[j - 1] = swapped;
        }
    }
}

static enum vram_status find_devices(const struct vr_model *model, uint32_t *devices, size_t *count, struct vram_error *error) {
    size_t found = 0;
    for (size_t d = 0; d < model->history_count; d++) {
        if (model->histories[d].count == 0) continue;
        if (found == MAX_DEVICES) return too_many(error);
        devices[found++] = (uint32_t)d;
    }
    for (size_t i = 0; i < model->segments.count; i++) {
        size_t d = 0;
        while (d < found && devices[d] != model->segments.device[i]) d++;
        if (d < found) continue;
        if (found == MAX_DEVICES) return too_many(error);
        devices[found++] = model->segments.device[i];
    }
    sort_devices(devices, found);
    *count = found;
    return VRAM_OK;
}

// Fills in the view, with its row lists at *free_rows, and advances that.
static void fill_view(struct vr_view *view, size_t **free_rows) {
    static const struct vr_history no_history;
    const struct vr_model *model = view->model;
    view->history = view->device < model->history_count ? &model->histories[view->device] : &no_history;
    size_t *rows = *free_rows;
    view->segments = rows;
    for (size_t i = 0; i < model->segments.count; i++) {
        if (model->segments.device[i] == view->device) *rows++ = i;
    }
    view->segment_count = (size_t)(rows - view->segments);
    view->blocks = rows;
    for (size_t i = 0; i < view->segment_count; i++) {
        const size_t segment = view->segments[i];
        for (uint64_t row = model->segments.first_block[segment]; row < model->segments.first_block[segment + 1]; row++)
            *rows++ = (size_t)row;
    }
    view->block_count = (size_t)(rows - view->blocks);
    *free_rows = rows;
}

static bool has_python(const struct vr_model *model) {
    for (uint32_t i = 0; i < model->frames.count; i++) {
        if (vr_frame_is_python(model, i, false)) return true;
    }
    return false;
}

enum vram_status vr_views_build(const struct vr_model *model, struct vr_views *views, struct vram_error *error) {
    uint32_t devices[MAX_DEVICES];
    size_t count = 0;
    VR_TRY(find_devices(model, devices, &count, error));
    struct vr_view *view = calloc(count + 1, sizeof *view);
    size_t *rows = malloc((model->segments.count + model->blocks.count + 1) * sizeof *rows);
    if (view == NULL || rows == NULL) {
        free(view);
        free(rows);
        return VRAM_NO_HOST_MEMORY;
    }
    *views = (struct vr_views){view, count, rows};
    const bool python = has_python(model), windows = vr_platform_is_windows(model);
    const enum vr_platform platform = vr_platform_of(model);
    for (size_t d = 0; d < count; d++) {
        view[d].model = model;
        view[d].device = devices[d];
        view[d].python = python;
        view[d].windows = windows;
        view[d].platform = platform;
        fill_view(&view[d], &rows);
    }
    return VRAM_OK;
}

struct vr_device_name vr_device_name(uint32_t device, bool is_host) {
    struct vr_device_name name = {"pinned host memory"};
    if (!is_host) (void)snprintf(name.text, sizeof name.text, "device %" PRIu32, device);
    return name;
}

void vr_views_release(struct vr_views *views) {
    free(views->view);
    free(views->rows);
    memset(views, 0, sizeof *views);
}

// ---- The device to report on if none is named.

// Returns whether `a` is in more trouble than `b`: by failed requests, then a device before pinned host memory, then by the higher peak,
// then by events. Returns false if they are equal.
static bool trouble_is_worse(const struct vr_trouble *a, const struct vr_trouble *b) {
    if (a->ooms != b->ooms) return a->ooms > b->ooms;
    if (a->is_host != b->is_host) return b->is_host;
    if (a->peak_bytes != b->peak_bytes) return a->peak_bytes > b->peak_bytes;
    return a->events > b->events;
}

static struct vr_trouble trouble_of(const struct vr_view *view) {
    struct vr_trouble trouble = {.events = view->history->count, .is_host = vr_model_is_host(view->model, view->device)};
    for (size_t i = 0; i < view->history->count; i++) trouble.ooms += view->history->action[i] == VR_ACTION_OOM;
    return trouble;
}

static enum vram_status read_peak(const struct vr_view *view, struct vr_trouble *trouble) {
    struct vr_lifetimes lifetimes;
    VR_TRY(vr_lifetimes_build(view, VR_LIFETIME_ALLOCATED, NULL, 0, &lifetimes));
    trouble->peak_bytes = lifetimes.peak.bytes;
    vr_lifetimes_release(&lifetimes);
    return VRAM_OK;
}

// Returns whether the peaks decide between the two: both have the same number of failed requests, and both or neither are host memory.
static bool needs_peaks(const struct vr_trouble *a, const struct vr_trouble *b) { return a->ooms == b->ooms && a->is_host == b->is_host; }

static enum vr_choice choice_reason(const struct vr_trouble *worst, const struct vr_trouble *second, size_t count) {
    if (count == 1) return VR_CHOICE_ONLY;
    if (worst->ooms != 0) return VR_CHOICE_OOM;
    return worst->peak_bytes == second->peak_bytes && worst->is_host == second->is_host ? VR_CHOICE_EVENTS : VR_CHOICE_PEAK;
}

enum vram_status vr_views_in_trouble(const struct vr_views *views, size_t *index, enum vr_choice *why) {
    struct vr_trouble worst = trouble_of(&views->view[0]), second = {.is_host = true};
    bool has_peak = false;
    *index = 0;
    for (size_t d = 1; d < views->count; d++) {
        struct vr_trouble other = trouble_of(&views->view[d]);
        if (needs_peaks(&worst, &other)) {
            if (!has_peak) VR_TRY(read_peak(&views->view[*index], &worst));
            VR_TRY(read_peak(&views->view[d], &other));
        }
        const bool worse = trouble_is_worse(&other, &worst);
        has_peak = needs_peaks(&worst, &other) || (has_peak && !worse);
        if (worse || trouble_is_worse(&other, &second)) second = worse ? worst : other;
        if (!worse) continue;
        worst = other;
        *index = d;
    }
    *why = choice_reason(&worst, &second, views->count);
    return VRAM_OK;
}

const struct vram_report_device *vram_report_worst_device(const struct vram_report *report) {
    const struct vram_report_device *worst = NULL;
    struct vr_trouble of_worst = {0};
    for (size_t i = 0; report != NULL && i < report->device_count; i++) {
        const struct vram_report_device *device = &report->devices[i];
        const struct vr_trouble trouble = {device->oom_count, device->allocated.peak.bytes, device->events, device->is_host};
        if (worst != NULL && !trouble_is_worse(&trouble, &of_worst)) continue;
        worst = device;
        of_worst = trouble;
    }
    return worst;
}
