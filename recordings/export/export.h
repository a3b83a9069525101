// export.h: what the writers of foreign formats share: an output in pieces, and one function per format.
#ifndef VR_EXPORT_EXPORT_H
#define VR_EXPORT_EXPORT_H

#include "analyze/view.h"
#include "base/text.h"
#include "vram/export.h"

// Text or bytes on their way out. A failed write is remembered: writers go on and ask vr_output_end().
struct vr_output {
    struct vr_text text; // not yet written
    vram_write write;
    void *user;
    bool refused; // write() returned false
};

// Passes on what has gathered, if it is much (or all of it, in the end). False when writing should stop.
bool vr_output_flow(struct vr_output *out);
// Writes the rest. IO, NO_HOST_MEMORY.
enum vram_status vr_output_end(struct vr_output *out);

// A model and its devices. Borrows all.
struct vr_exporting {
    const struct vram_recording *recording; // the model's
    const struct vr_model *model;
    const struct vr_views *views;
    const struct vram_export_options *options;
};

// One function per format. LIMIT, NO_HOST_MEMORY; a failure to write is the out's.
typedef enum vram_status vr_export_function(const struct vr_exporting *from, struct vr_output *out);
vr_export_function vr_export_rmm, vr_export_events, vr_export_perfetto, vr_export_folded, vr_export_pprof, vr_export_arrow;

// "time since the epoch in microseconds", or a count of events where the file has no times.
VR_INLINE int64_t vr_export_time_us(const struct vr_history *history, size_t event) {
    return (vr_entry_has(history, event) & VR_HAS_TIME) != 0 ? history->time_us[event] : (int64_t)event;
}
// Whether event i frees: free_requested where the device's history has any, else free_completed; and the older `free`. `actions` has the
// bit of every action that occurs.
VR_INLINE bool vr_export_frees(uint8_t action, uint32_t actions) {
    const bool requested = (actions & 1u << VR_ACTION_FREE_REQUESTED) != 0;
    return action == VR_ACTION_FREE || action == (requested ? VR_ACTION_FREE_REQUESTED : VR_ACTION_FREE_COMPLETED);
}
uint32_t vr_export_actions(const struct vr_history *history);

#endif
