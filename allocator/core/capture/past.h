// past.h: what of a captured graph lies before what a stream does next. Under all locks of the device.
#ifndef VR_CORE_CAPTURE_PAST_H
#define VR_CORE_CAPTURE_PAST_H

#include "base/hash.h"

struct vr_device;

struct vr_deferred;

// The nodes before a stream's next one, found by walking dependencies backwards. What was found stays until the capture is over: nodes and
// dependencies of a graph under capture only come, so that a later walk ends where an earlier one has been.
//
// And the stream's frees that wait for nodes, each in one chain: of a node that it waits for, or of those that are to be looked at. So that
// a request looks at those alone whose node came.
struct vr_past {
    uint64_t stream, capture;  // the driver's id of the capture
    struct vr_map nodes;       // enum vr_past_node; larger: not before it, and the address of the first free that waits for it
    size_t ends;               // those with VR_PAST_END
    struct vr_deferred *fresh; // the chain of those that are to be looked at
    struct vr_deferred *due;   // the first of each chain whose node came
    size_t waiting;            // in all chains
    bool unchained;            // what the chains say is not true any more: all are to be looked at
};

// END: the stream's next node would have depended on it when it was last asked.
enum vr_past_node { VR_PAST_NODE = 1, VR_PAST_END };

struct vr_pasts {
    struct vr_past *items;
    size_t count, items_capacity;
    struct vr_map places; // of a stream: 1 + place
};

// What is known of a stream's past; NULL: nothing. The same, made where nothing is: `unchained`. NO_HOST_MEMORY. Borrowed until one is
// made.
struct vr_past *vr_past_of(const struct vr_pasts *pasts, uint64_t stream);
enum vram_status vr_past_make(struct vr_pasts *pasts, uint64_t stream, struct vr_past **past);
// Brings the past of a stream that captures up to date. DRIVER where it does not say what the stream depends on: all stays as it was. Where
// the walk fails (DRIVER, NO_HOST_MEMORY) nothing is known any more, and it is `unchained`.
enum vram_status vr_past_go_on(const struct vr_device *device, struct vr_past *past);
VR_INLINE bool vr_is_past(const struct vr_past *past, uint64_t node) {
    const uint64_t known = vr_map_get(&past->nodes, node);
    return known == VR_PAST_NODE || known == VR_PAST_END;
}
void vr_pasts_release(struct vr_pasts *pasts);

#endif
