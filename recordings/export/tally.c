#include "export/tally.h"

#include "analyze/lifetimes.h"

enum vram_status vr_tally_stacks(const struct vr_view *view, struct vr_tally **tallies) {
    struct vr_lifetimes lifetimes;
    struct vr_tally *made = calloc(view->model->stacks.count, sizeof *made);
    if (made == NULL) return VRAM_NO_HOST_MEMORY;
    const enum vram_status status = vr_lifetimes_build(view, VR_LIFETIME_ALLOCATED, NULL, 0, &lifetimes);
    if (status != VRAM_OK) {
        free(made);
        return status;
    }
    for (size_t i = 0; i < lifetimes.count; i++) {
        assert(lifetimes.stack[i] < view->model->stacks.count);
        struct vr_tally *tally = &made[lifetimes.stack[i]];
        const uint64_t bytes = lifetimes.size_bytes[i];
        if (lifetimes.birth[i] != VR_BEFORE_TRACE) tally->allocated_count++, tally->allocated_bytes += bytes;
        if (lifetimes.death[i] == VR_NEVER) tally->end_count++, tally->end_bytes += bytes;
        if (vr_lifetimes_live_at(&lifetimes, i, lifetimes.peak_event)) tally->peak_count++, tally->peak_bytes += bytes;
    }
    vr_lifetimes_release(&lifetimes);
    *tallies = made;
    return VRAM_OK;
}
