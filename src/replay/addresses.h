// addresses.h: a hash map from device addresses to small numbers, for tables as long as a history.
#ifndef VR_REPLAY_ADDRESSES_H
#define VR_REPLAY_ADDRESSES_H

#include "base/base.h"

#define VR_ABSENT UINT32_MAX

// Open addressing with linear probing, at most half full; removal shifts back, so there are no tombstones. All-zero is empty.
struct vr_addresses {
    struct vr_address_slot *slots;
    size_t mask; // slot count - 1; the count is 0 or a power of two
    size_t used;
};

struct vr_address_slot {
    uint64_t address;
    uint32_t value; // VR_ABSENT: the slot is empty
};

void vr_addresses_release(struct vr_addresses *map);
// VR_ABSENT when the map has no such address.
uint32_t vr_addresses_get(const struct vr_addresses *map, uint64_t address);
// Adds or overwrites. value must not be VR_ABSENT. NO_HOST_MEMORY leaves the map as it was.
enum vram_status vr_addresses_put(struct vr_addresses *map, uint64_t address, uint32_t value);
// Returns what was removed, VR_ABSENT if nothing was there.
uint32_t vr_addresses_remove(struct vr_addresses *map, uint64_t address);

#endif
