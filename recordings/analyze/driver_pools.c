// See driver_pools.h.
#include "analyze/driver_pools.h"

#include "analyze/report_parts.h"

// Addresses of what `vram run` saw the pools hold begin here (guides/run.md).
#define POOLS UINT64_C(0x6800000000000000)

static uint64_t held_by_pools(const struct vr_history *history, int64_t event) {
    uint64_t held = 0;
    for (size_t i = 0; i < history->count && (int64_t)i <= event; i++) {
        if (history->address[i] < POOLS) continue;
        if (history->action[i] == VR_ACTION_SEGMENT_MAP)
            held += history->size_bytes[i];
        else if (history->action[i] == VR_ACTION_SEGMENT_UNMAP && history->size_bytes[i] <= held)
            held -= history->size_bytes[i];
    }
    return held;
}

uint64_t vr_driver_pools_free(const struct vr_view *view, const struct vr_lifetimes *allocated, int64_t event) {
    if (!vr_is_whole_program(view)) return 0;
    const uint64_t held = held_by_pools(view->history, event);
    uint64_t used = 0;
    for (size_t i = 0; i < allocated->count && held != 0; i++) {
        if (allocated->birth[i] == VR_BEFORE_TRACE || !vr_lifetimes_live_at(allocated, i, event)) continue;
        const bool of_pool = strcmp(vr_model_string(view->model, view->history->tag[allocated->birth[i]]), "async") == 0;
        if (of_pool) used += allocated->size_bytes[i];
    }
    return held > used ? held - used : 0;
}
