// See savings.h.
#include "explore/explored/savings.h"

#include "analyze/report_parts.h"
#include "explore/explored/cures.h"
#include "replay/paged_saving.h"

static enum vram_status begin_saving(struct vr_explored_recording *recording, struct vr_explored_device *device) {
    const struct vr_lifetimes *active = NULL;
    struct vr_arena arena = {0};
    struct vram_report_device facts = {.device = device->view->device};
    enum vram_status status = vr_explored_ooms(recording, device, 0, &arena, &facts);
    if (status == VRAM_OK) status = vr_explored_lifetimes(device, VR_LIFETIME_ACTIVE, &active);
    if (status == VRAM_OK) {
        vr_report_reserved(device->view, &facts.reserved, NULL, 0);
        facts.active.peak = active->peak;
        facts.events = device->view->history->count;
        status = vr_paged_search_begin(recording->recording, &facts, 0, &device->paged);
    }
    vr_arena_release(&arena);
    return status;
}

enum vram_status vr_explored_saving(struct vr_explored_recording *recording, struct vr_explored_device *device, size_t replays,
                                    double *share, const struct vram_paged_saving **saving, struct vram_error *error) {
    *saving = NULL;
    *share = 1;
    if (vr_model_is_host(device->view->model, device->view->device)) return VRAM_OK;
    if (device->paged == NULL) VR_TRY(begin_saving(recording, device));
    *saving = vr_paged_search_so_far(device->paged);
    return vr_paged_search_go_on(device->paged, replays, share, error);
}
