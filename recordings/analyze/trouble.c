// Which device an answer is about where none is named.
#include "analyze/trouble.h"

#include "analyze/lifetimes.h"
#include "vram/report.h"

bool vr_trouble_is_worse(const struct vr_trouble *a, const struct vr_trouble *b) {
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

// Whether failed requests and being host memory leave the two equal, so that the peaks decide.
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
        const bool worse = vr_trouble_is_worse(&other, &worst);
        has_peak = needs_peaks(&worst, &other) || (has_peak && !worse);
        if (worse || vr_trouble_is_worse(&other, &second)) second = worse ? worst : other;
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
        if (worst != NULL && !vr_trouble_is_worse(&trouble, &of_worst)) continue;
        worst = device;
        of_worst = trouble;
    }
    return worst;
}
