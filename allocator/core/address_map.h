// address_map.h: finds the block that starts at an address, without a lock.
//
// A table with a slot per MiB of address space. An allocated block of the large pool exceeds 1 MiB, so at most one starts in any MiB, and
// the slot contains its number. A MiB with small-pool memory, or only partly covered by a segment, has a map with an entry per 512 bytes
// instead. Which of the two a MiB has is decided when a segment is made and does not change while it has live blocks. An entry is written
// under the device's lock before the address is handed out. Frees do not erase it, so a reader must verify, under that lock, that the block
// has this address and is allocated.
#ifndef VR_CORE_ADDRESS_MAP_H
#define VR_CORE_ADDRESS_MAP_H

#include "core/block.h"

enum {
    VR_REGION_SHIFT = 33, // a region is 8 GiB of address space
    VR_REGION_BITS = 14,
    VR_REGIONS = 1 << VR_REGION_BITS, // hash slots for regions
    VR_REGION_SLOTS = 1 << (VR_REGION_SHIFT - 20),
    VR_MAP_ENTRIES = 2048,
};

struct vr_region {
    _Atomic uint32_t slot[VR_REGION_SLOTS]; // 0, a block, or VR_SLOT_MAP | number of a map
    uint32_t low, high;                     // [low, high): slots of memory ever prepared; others are 0. Guarded by the map's mutex
};

// A slot of the hash table of regions. Repeats the region's number, so that a search touches one cache line less.
struct vr_region_place {
    uint64_t number;                    // address >> VR_REGION_SHIFT; written before `region`
    _Atomic(struct vr_region *) region; // NULL: the slot is empty
};

// Its size is a power of two, so that the hot path indexes maps by a shift.
struct vr_mib_map {
    _Atomic uint32_t entry[VR_MAP_ENTRIES];
};

struct vr_address_map {
    uint64_t secret;       // odd; the hash multiplier, because in a replay the addresses come from a file
    struct vr_mutex mutex; // guards creation and removal of regions and maps; a leaf lock
    struct vr_region_place *regions;
    uint32_t region_count;
    struct vr_slab maps;
    uint32_t *segments; // number of segments that need each map; reserved address space, guarded by `mutex`
};

#define VR_SLOT_MAP 0x80000000u

enum vram_status vr_address_map_init(struct vr_address_map *map);
void vr_address_map_release(struct vr_address_map *map);
// Call it before a segment, or a newly mapped range, is used. small: it is in the small pool. NO_HOST_MEMORY or LIMIT leave nothing behind.
enum vram_status vr_address_map_prepare(struct vr_address_map *map, uint64_t address, uint64_t size, bool small);
// Call it after all memory of the range is gone, with the same range and `small` as it was prepared.
void vr_address_map_retire(struct vr_address_map *map, uint64_t address, uint64_t size, bool small);

// Returns whether every region is found by its number, and every map is needed by a segment.
bool vr_address_map_check(const struct vr_address_map *map);

// Hashes the region's number to the high bits of its product with the secret: one multiplication.
VR_INLINE struct vr_region *vr_address_map_region(const struct vr_address_map *map, uint64_t address) {
    const uint64_t number = address >> VR_REGION_SHIFT;
    for (size_t at = (size_t)((number * map->secret) >> (64 - VR_REGION_BITS));; at = (at + 1) % VR_REGIONS) {
        struct vr_region *region = atomic_load_explicit(&map->regions[at].region, memory_order_acquire);
        if (region == NULL || map->regions[at].number == number) return region;
    }
}

// Returns the place that names the block starting at an address. If the range is not prepared, it contains 0 or is missing (NULL). A block
// is entered, with release order, under the lock of its device.
VR_INLINE _Atomic uint32_t *vr_address_map_place(const struct vr_address_map *map, uint64_t address) {
    struct vr_region *region = vr_address_map_region(map, address);
    if (VR_UNLIKELY(region == NULL)) return NULL;
    _Atomic uint32_t *slot = &region->slot[(address >> 20) & (VR_REGION_SLOTS - 1)];
    const uint32_t value = atomic_load_explicit(slot, memory_order_acquire);
    if ((value & VR_SLOT_MAP) == 0) return slot;
    struct vr_mib_map *maps = (struct vr_mib_map *)(void *)map->maps.items;
    return &maps[value & ~VR_SLOT_MAP].entry[(address >> 9) & (VR_MAP_ENTRIES - 1)];
}

// Returns the block last handed out at `address`, or a stale one, which the caller must detect as described above. 0: certainly no block.
// Any thread, without a lock.
VR_INLINE uint32_t vr_address_map_find(const struct vr_address_map *map, uint64_t address) {
    _Atomic uint32_t *place = vr_address_map_place(map, address);
    return VR_LIKELY(place != NULL) ? atomic_load_explicit(place, memory_order_acquire) : 0;
}

#endif
