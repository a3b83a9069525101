// map.h: a number -> a number, for tables as long as a history: addresses, nodes, identities.
//
// Open addressing with linear probing and backward-shift deletion: the table stays as small as what is live, whatever passed through
// it. Keys fall by a secret of the table (base/hash.h), so that a file cannot be made to collide.
#ifndef VR_BASE_MAP_H
#define VR_BASE_MAP_H

#include "base/hash.h"

struct vr_map_slot {
    uint64_t key;
    uint64_t value; // 0: the slot is free
};

// All-zero is an empty map. One thread at a time.
struct vr_map {
    struct vr_map_slot *slots;
    size_t mask; // capacity - 1, or 0 without slots
    size_t count;
    uint64_t secret;
};

void vr_map_release(struct vr_map *map);
// Forgets every entry; keeps the table.
void vr_map_clear(struct vr_map *map);
// Room for `more` further keys, so that setting them cannot fail. NO_HOST_MEMORY, all untouched.
enum vram_status vr_map_reserve(struct vr_map *map, size_t more);
// The bytes by which vr_map_reserve(map, 1) would make the table grow: for those who keep a budget.
size_t vr_map_growth_bytes(const struct vr_map *map);
// Sets the value (not 0). NO_HOST_MEMORY, all untouched.
enum vram_status vr_map_set(struct vr_map *map, uint64_t key, uint64_t value);
// Removes the entry and returns its value, 0 if there was none.
uint64_t vr_map_take(struct vr_map *map, uint64_t key);
// Visits every entry, in no order that may be shown to anyone: begin with *at = 0; false after the last. The map must not change.
bool vr_map_next(const struct vr_map *map, size_t *at, struct vr_map_slot *entry);
// Every entry is found from its key, `count` are there, and a quarter of the slots is free.
bool vr_map_check(const struct vr_map *map);

// The slot of `key`, or the free slot where it would go. The map has slots; it is never full.
VR_INLINE struct vr_map_slot *vr_map_slot_of(const struct vr_map *map, uint64_t key) {
    size_t at = (size_t)vr_mix64(key ^ map->secret) & map->mask;
    while (map->slots[at].value != 0 && map->slots[at].key != key) at = (at + 1) & map->mask;
    return &map->slots[at];
}
// The value of `key`, 0 if it has none.
VR_INLINE uint64_t vr_map_get(const struct vr_map *map, uint64_t key) { return map->slots == NULL ? 0 : vr_map_slot_of(map, key)->value; }

#endif
