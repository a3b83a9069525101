// past.h: what of a captured graph lies before what a stream does next. Under all locks of the device.
#ifndef VR_CORE_CAPTURE_PAST_H
#define VR_CORE_CAPTURE_PAST_H

#include "base/map.h"

struct vr_device;

// The nodes before a stream's next one, found by walking dependencies backwards. What was found stays until the capture is over: nodes and
// dependencies of a graph under capture only come, so that a later walk ends where an earlier one has been.
struct vr_past {
    uint64_t stream, capture; // the driver's id of the capture
    struct vr_map nodes;      // a node: 1, or 2 where the stream's next node would have depended on it when it was last asked
    size_t ends;              // those with 2
};

struct vr_pasts {
    struct vr_past *items;
    size_t count, items_capacity;
};

// The past of a stream that captures, as it is now; borrowed until the next call. NO_HOST_MEMORY; DRIVER.
enum vram_status vr_past_of(const struct vr_device *device, struct vr_pasts *pasts, uint64_t stream, const struct vr_past **past);
VR_INLINE bool vr_is_past(const struct vr_past *past, uint64_t node) { return vr_map_get(&past->nodes, node) != 0; }
void vr_pasts_release(struct vr_pasts *pasts);

#endif
