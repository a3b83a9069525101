// tally.h: objects and bytes per call stack: allocated at all, live at the end, live at the peak.
#ifndef VR_EXPORT_TALLY_H
#define VR_EXPORT_TALLY_H

#include "analyze/view.h"

struct vr_tally {
    uint64_t allocated_count, allocated_bytes;
    uint64_t end_count, end_bytes;
    uint64_t peak_count, peak_bytes;
};

// One entry per stack of the model, for one device; the caller frees it. LIMIT, NO_HOST_MEMORY.
enum vram_status vr_tally_stacks(const struct vr_view *view, struct vr_tally **tallies);

#endif
