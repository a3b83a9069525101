// See cures.h.
#include "explore/explored/cures.h"

#include "analyze/report_parts.h"
#include "replay/cure.h"

// In WebAssembly an event takes about 300 ns: with so many each of up to 80 replays is a third of a second.
enum { MOST_EVENTS = 1000000 };

enum vram_status vr_explored_ooms(struct vr_explored_recording *recording, struct vr_explored_device *device, uint64_t memory_bytes,
                                  struct vr_arena *arena, struct vram_report_device *facts) {
    const struct vr_lifetimes *allocated = NULL, *active = NULL;
    VR_TRY(vr_explored_lifetimes(device, VR_LIFETIME_ALLOCATED, &allocated));
    VR_TRY(vr_explored_lifetimes(device, VR_LIFETIME_ACTIVE, &active));
    VR_TRY(vr_report_trace(device->view, arena, facts));
    return vr_report_ooms(device->view, &recording->sites, allocated, active, memory_bytes, arena, facts);
}

static enum vram_status begin_cure(struct vr_explored_recording *recording, struct vr_explored_device *device) {
    struct vr_arena arena = {0};
    struct vram_report_device facts = {.device = device->view->device};
    enum vram_status status = vr_explored_ooms(recording, device, 0, &arena, &facts);
    if (status == VRAM_OK) status = vr_cure_begin(recording->recording, facts.device, &facts.ooms[facts.oom_count - 1], 0, &device->cure);
    vr_arena_release(&arena);
    return status;
}

static bool ran_out(const struct vr_history *history) {
    return history->count != 0 && memchr(history->action, VR_ACTION_OOM, history->count) != NULL;
}

enum vram_status vr_explored_cure(struct vr_explored_recording *recording, struct vr_explored_device *device, size_t replays, double *share,
                                  const struct vram_cure **cure, struct vram_error *error) {
    const struct vr_history *history = device->view->history;
    *cure = NULL;
    *share = 1;
    if (!ran_out(history)) return VRAM_OK;
    if (device->cure == NULL) VR_TRY(begin_cure(recording, device));
    *cure = vr_cure_so_far(device->cure);
    return history->count > MOST_EVENTS ? VRAM_OK : vr_cure_go_on(device->cure, replays, share, error);
}
