// Functions shared by the exporters.
#include "analyze/lifetimes.h"
#include "export/export.h"

enum { PIECE_BYTES = 1 << 16 };

static bool pass_on(struct vr_output *out) {
    if (!out->refused && out->text.length != 0) out->refused = !out->write(out->user, out->text.bytes, out->text.length);
    out->text.length = 0;
    return !out->refused;
}

bool vr_output_flow(struct vr_output *out) {
    assert(out->write != NULL);
    if (out->text.failed) return false;
    return out->text.length < PIECE_BYTES ? !out->refused : pass_on(out);
}

enum vram_status vr_output_end(struct vr_output *out) {
    if (out->text.failed) return VRAM_NO_HOST_MEMORY;
    return pass_on(out) ? VRAM_OK : VRAM_IO;
}

uint32_t vr_export_actions(const struct vr_history *history) {
    uint32_t actions = 0;
    _Static_assert(VR_ACTION_COUNT <= 32, "a bit for each action");
    for (size_t i = 0; i < history->count; i++) actions |= 1u << history->action[i];
    return actions;
}

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
