// past.h: the nodes of a captured graph that precede a stream's next node. Call everything under all locks of the device.
#ifndef VR_CORE_CAPTURE_PAST_H
#define VR_CORE_CAPTURE_PAST_H

#include "base/hash.h"

struct vr_device;

struct vr_deferred;

// The nodes that precede a stream's next one, found by following dependencies backwards. They stay known until the capture ends: a graph
// under capture only gains nodes and dependencies, so a later walk stops at nodes that an earlier one visited.
//
// Also the stream's deferred frees that wait for nodes. Each is in one chain: that of a node it waits for, or that of frees to be examined.
// A request then examines only the frees whose node was reached.
struct vr_past {
    uint64_t stream, capture;  // the driver's id of the capture
    struct vr_map nodes;       // node -> enum vr_past_node; a larger value: not reached, the address of the first free that waits for it
    size_t ends;               // the number of nodes with VR_PAST_END
    struct vr_deferred *fresh; // the chain of frees to be examined
    struct vr_deferred *due;   // the first free of each chain whose node was reached
    size_t waiting;            // frees in all chains
    bool unchained;            // the chains are out of date: every free must be examined
};

// END: at the last query, the stream's next node would have depended on this node.
enum vr_past_node { VR_PAST_NODE = 1, VR_PAST_END };

struct vr_pasts {
    struct vr_past *items;
    size_t count, items_capacity;
    struct vr_map places; // stream -> 1 + index in items
};

// vr_past_of() returns the known past of a stream, or NULL. vr_past_make() makes a missing one, `unchained`; NO_HOST_MEMORY. Both pointers
// are valid until the next one is made.
struct vr_past *vr_past_of(const struct vr_pasts *pasts, uint64_t stream);
enum vram_status vr_past_make(struct vr_pasts *pasts, uint64_t stream, struct vr_past **past);
// Updates the past of a capturing stream. DRIVER if the driver does not report the stream's dependencies; the past is then unchanged. If
// the walk fails (DRIVER, NO_HOST_MEMORY), the past becomes empty and `unchained`.
enum vram_status vr_past_go_on(const struct vr_device *device, struct vr_past *past);
VR_INLINE bool vr_is_past(const struct vr_past *past, uint64_t node) {
    const uint64_t known = vr_map_get(&past->nodes, node);
    return known == VR_PAST_NODE || known == VR_PAST_END;
}
void vr_pasts_release(struct vr_pasts *pasts);

#endif
