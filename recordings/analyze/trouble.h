// trouble.h: which device of a recording an answer is about where none is named. The command, `vram mcp` and the page choose by it.
#ifndef VR_ANALYZE_TROUBLE_H
#define VR_ANALYZE_TROUBLE_H

#include "analyze/view.h"

// What is known of a device for the choice.
struct vr_trouble {
    uint64_t ooms;       // requests that failed
    uint64_t peak_bytes; // allocated
    uint64_t events;
    bool is_host;
};

// Why a device was chosen, in the order in which the reasons count.
enum vr_choice { VR_CHOICE_NAMED, VR_CHOICE_ONLY, VR_CHOICE_OOM, VR_CHOICE_PEAK, VR_CHOICE_EVENTS };

// More failed requests first; then a device before pinned host memory; then the higher peak; then more events. Of two equal ones neither.
bool vr_trouble_is_worse(const struct vr_trouble *a, const struct vr_trouble *b);

// The worst of the views, of which there is one at least: its place, and why. Peaks are worked out only where failed requests do not
// decide. LIMIT, NO_HOST_MEMORY.
enum vram_status vr_views_in_trouble(const struct vr_views *views, size_t *index, enum vr_choice *why);

#endif
