// What was freed and still waited for other streams, at the moment when most of that waited.
#include "analyze/report_parts.h"

// By address: what waits there.
struct waiting_work {
    const struct vr_history *history;
    struct vr_map born;    // address -> 1 + event of its allocation
    struct vr_map waiting; // address -> 1 + event of free_requested
    struct vr_map by_site; // frame -> bytes
};

static uint64_t take_waiting(struct waiting_work *work, uint64_t address) {
    const uint64_t since = vr_map_take(&work->waiting, address);
    return since == 0 ? 0 : work->history->size_bytes[since - 1];
}

// Up to an event, the last one included. *most_event is the first at which most waits.
static enum vram_status walk_waiting(struct waiting_work *work, size_t end, size_t *most_event) {
    const struct vr_history *history = work->history;
    uint64_t bytes = 0, most = 0;
    for (size_t i = 0; i < end; i++) {
        const uint64_t address = history->address[i];
        const enum vr_action action = (enum vr_action)history->action[i];
        if (action == VR_ACTION_ALLOC) VR_TRY(vr_map_set(&work->born, address, i + 1));
        if (action == VR_ACTION_ALLOC || action == VR_ACTION_FREE_COMPLETED) bytes -= take_waiting(work, address);
        if (action != VR_ACTION_FREE_REQUESTED) continue;
        bytes -= take_waiting(work, address);
        VR_TRY(vr_map_set(&work->waiting, address, i + 1));
        bytes += history->size_bytes[i];
        if (bytes <= most) continue;
        most = bytes;
        *most_event = i;
    }
    return VRAM_OK;
}

static enum vram_status add_up(struct waiting_work *work, struct vr_sites *sites, struct vram_report_sum *sum, uint32_t *largest) {
    struct vr_map_slot entry;
    size_t at = 0;
    uint64_t most = 0;
    while (vr_map_next(&work->waiting, &at, &entry)) {
        const uint64_t born = vr_map_get(&work->born, entry.key), bytes = work->history->size_bytes[entry.value - 1];
        const uint32_t frame = vr_sites_frame(sites, work->history->stack[(born == 0 ? entry.value : born) - 1]);
        const uint64_t of_site = vr_map_get(&work->by_site, frame) + bytes;
        sum->count++;
        sum->bytes += bytes;
        if (of_site != 0) VR_TRY(vr_map_set(&work->by_site, frame, of_site));
        if (of_site <= most) continue;
        most = of_site;
        *largest = frame;
    }
    return VRAM_OK;
}

enum vram_status vr_report_waiting(const struct vr_view *view, struct vr_sites *sites, struct vr_arena *arena,
                                   struct vram_report_device *out) {
    struct waiting_work work = {.history = view->history};
    uint32_t largest = VR_NO_SITE;
    if (out->active.peak.bytes <= out->allocated.peak.bytes || out->active.peak_event < 0) return VRAM_OK;
    size_t most = 0, again;
    enum vram_status status = walk_waiting(&work, view->history->count, &most);
    vr_map_clear(&work.born);
    vr_map_clear(&work.waiting);
    if (status == VRAM_OK) status = walk_waiting(&work, most + 1, &again);
    out->waiting_event = most;
    if (status == VRAM_OK) status = add_up(&work, sites, &out->waiting, &largest);
    vr_map_release(&work.born);
    vr_map_release(&work.waiting);
    vr_map_release(&work.by_site);
    if (status != VRAM_OK || out->waiting.count == 0) return status;
    out->has_waited_for = out->trace_stream_count == 2;
    if (out->has_waited_for) out->waited_for = out->trace_streams[vr_entry_stream(view->history, 0) == (uint64_t)out->trace_streams[0]];
    return vr_sites_name(sites, largest, arena, &out->waiting_site);
}
