// address_map.h: from an address to the block that starts there, without a lock.
//
// A table with a slot per MiB of address space. An allocated block of the large pool is longer than 1 MiB, so at most one
// starts in any MiB and the slot names it. MiB that hold small-pool memory, or that a segment covers only in part, have a map
// with an entry per 512 bytes instead. Which of the two a MiB has is settled when a segment is made, never while blocks in it
// live. An entry is written under the device's lock before the address is handed out; it is not erased at the free,
// so a reader must verify, under that lock, that the block has this address and is allocated.
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
    uint32_t low, high;                     // slots of memory that was ever prepared; others are 0. Guarded by the map's mutex
};

// Where a region is found. Its number is here as well, so that a search looks at one line of the cache less.
struct vr_region_place {
    uint64_t number;                    // address >> VR_REGION_SHIFT; there before the region is
    _Atomic(struct vr_region *) region; // NULL: none
};

// A power of two in size: the hot path finds the next by a shift.
struct vr_mib_map {
    _Atomic uint32_t entry[VR_MAP_ENTRIES];
};

struct vr_address_map {
    uint64_t secret;       // odd; slots of regions go by it: in a replay the addresses are those of a file
    struct vr_mutex mutex; // guards making and retiring regions and maps; a leaf lock
    struct vr_region_place *regions;
    uint32_t region_count;
    struct vr_slab maps;
    uint32_t *segments; // how many segments need each map; reserved, guarded by `mutex`
};

#define VR_SLOT_MAP 0x80000000u

enum vram_status vr_address_map_init(struct vr_address_map *map);
void vr_address_map_release(struct vr_address_map *map);
// Before a segment (or a newly mapped range) is used. small: of the small pool. NO_HOST_MEMORY or LIMIT leave nothing behind.
enum vram_status vr_address_map_prepare(struct vr_address_map *map, uint64_t address, uint64_t size, bool small);
// After all its memory is gone. The same range and kind as was prepared.
void vr_address_map_retire(struct vr_address_map *map, uint64_t address, uint64_t size, bool small);

// Whether every region is found by its number, and every slot that has a map one that segments need.
bool vr_address_map_check(const struct vr_address_map *map);

// The search for a region begins at the high bits of a product with the secret: one multiplication.
VR_INLINE struct vr_region *vr_address_map_region(const struct vr_address_map *map, uint64_t address) {
    const uint64_t number = address >> VR_REGION_SHIFT;
    for (size_t at = (size_t)((number * map->secret) >> (64 - VR_REGION_BITS));; at = (at + 1) % VR_REGIONS) {
        struct vr_region *region = atomic_load_explicit(&map->regions[at].region, memory_order_acquire);
        if (region == NULL || map->regions[at].number == number) return region;
    }
}

// Where a block that begins at an address of the region is noted. The range was prepared, or the place is 0.
VR_INLINE _Atomic uint32_t *vr_address_map_place(const struct vr_address_map *map, struct vr_region *region, uint64_t address) {
    _Atomic uint32_t *slot = &region->slot[(address >> 20) & (VR_REGION_SLOTS - 1)];
    const uint32_t value = atomic_load_explicit(slot, memory_order_acquire);
    if ((value & VR_SLOT_MAP) == 0) return slot;
    struct vr_mib_map *maps = (struct vr_mib_map *)(void *)map->maps.items;
    return &maps[value & ~VR_SLOT_MAP].entry[(address >> 9) & (VR_MAP_ENTRIES - 1)];
}

// The block that was last handed out at `address`, or something else; see above. 0 when certainly none. Any thread, no lock.
VR_INLINE uint32_t vr_address_map_find(const struct vr_address_map *map, uint64_t address) {
    struct vr_region *region = vr_address_map_region(map, address);
    return VR_LIKELY(region != NULL) ? atomic_load_explicit(vr_address_map_place(map, region, address), memory_order_acquire) : 0;
}

// The range was prepared. Under the lock of the block's device.
VR_INLINE void vr_address_map_set(const struct vr_address_map *map, uint64_t address, uint32_t block) {
    atomic_store_explicit(vr_address_map_place(map, vr_address_map_region(map, address), address), block, memory_order_release);
}

#endif
