// map.h: device address -> small number, for the passes over a history.
//
// Open addressing with linear probing and backward-shift deletion: the table stays as small as what is live, whatever passed through
// it. The hash is keyed by where the table lies, so that a file cannot be made to collide.
#ifndef VR_ANALYZE_MAP_H
#define VR_ANALYZE_MAP_H

#include "base/base.h"

struct vr_map_slot {
    uint64_t address;
    uint32_t value; // 0 = free slot
};

// All-zero is an empty map. One thread at a time.
struct vr_map {
    struct vr_map_slot *slots;
    size_t mask; // capacity - 1, or 0 without slots
    size_t count;
    uint64_t key;
};

void vr_map_release(struct vr_map *map);
// Forgets every entry; keeps the table.
void vr_map_clear(struct vr_map *map);
// The value of `address`, 0 if it has none.
uint32_t vr_map_get(const struct vr_map *map, uint64_t address);
// Sets the value (not 0). NO_HOST_MEMORY.
enum vram_status vr_map_set(struct vr_map *map, uint64_t address, uint32_t value);
// Removes the entry and returns its value, 0 if there was none.
uint32_t vr_map_take(struct vr_map *map, uint64_t address);

#endif
