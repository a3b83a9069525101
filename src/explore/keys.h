// keys.h: what an allocation is grouped by, as a number that is the same for all of a group, and as a name.
#ifndef VR_EXPLORE_KEYS_H
#define VR_EXPLORE_KEYS_H

#include "explore/explorer.h"

enum vr_by { VR_BY_SITE, VR_BY_STACK, VR_BY_CATEGORY, VR_BY_POOL, VR_BY_STREAM, VR_BY_THREAD, VR_BY_CONTEXT, VR_BY_METADATA, VR_BY_SIZE };

struct vr_keys {
    enum vr_by by;
    struct vr_seen_recording *recording;
    const struct vr_view *view;
    const struct vr_lifetimes *lifetimes;
    const struct vr_segment_lives *segments; // for pools and streams, which not every event names
};

// The parameter `by` (site where it is not there) for the lifetimes given. INVALID_ARGUMENT, LIMIT, NO_HOST_MEMORY.
enum vram_status vr_ask_keys(const struct vr_ask *ask, struct vr_seen_recording *recording, struct vr_seen_device *device,
                             const struct vr_lifetimes *lifetimes, struct vr_keys *keys);
// The group of a row.
uint64_t vr_key(const struct vr_keys *keys, size_t row);
// Appends a group's name.
void vr_key_name(const struct vr_keys *keys, uint64_t key, struct vr_text *text);
// "(0, 1)"; "default pool" for (0, 0).
void vr_pool_name(uint64_t first, uint64_t second, struct vr_text *text);

#endif
