#include "core/address_map.h"
#include "base/hash.h"

enum { MAP_LIMIT = 1 << 18 };

enum vram_status vr_address_map_init(struct vr_address_map *map) {
    *map = (struct vr_address_map){.secret = vr_hash_secret(map) | 1};
    void *regions = NULL, *segments = NULL;
    VR_TRY(vr_os_reserve(VR_REGIONS * sizeof *map->regions, &regions));
    enum vram_status status = vr_os_reserve(MAP_LIMIT * sizeof *map->segments, &segments);
    if (status == VRAM_OK) status = vr_slab_init(&map->maps, sizeof(struct vr_mib_map), MAP_LIMIT);
    if (status != VRAM_OK) {
        if (segments != NULL) vr_os_unreserve(segments, MAP_LIMIT * sizeof *map->segments);
        vr_os_unreserve(regions, VR_REGIONS * sizeof *map->regions);
        return status;
    }
    map->regions = regions;
    map->segments = segments;
    vr_mutex_init(&map->mutex);
    return VRAM_OK;
}

// Zeroes only the slots that were used, then unreserves the region. Streams far apart have one region each with few used slots.
static void release_region(struct vr_region *region) {
    if (region->low < region->high) memset(&region->slot[region->low], 0, (region->high - region->low) * sizeof region->slot[0]);
    region->low = region->high = 0;
    vr_os_unreserve_touched(region, sizeof *region, 0);
}

void vr_address_map_release(struct vr_address_map *map) {
    if (map->regions == NULL) return;
    for (uint32_t i = 0; i < VR_REGIONS; i++) {
        struct vr_region *region = atomic_load_explicit(&map->regions[i].region, memory_order_relaxed);
        if (region != NULL) release_region(region);
    }
    const uint32_t maps = atomic_load_explicit(&map->maps.used, memory_order_relaxed);
    vr_os_unreserve_touched(map->regions, VR_REGIONS * sizeof *map->regions, VR_REGIONS * sizeof *map->regions);
    vr_os_unreserve_touched(map->segments, MAP_LIMIT * sizeof *map->segments, maps * sizeof *map->segments);
    vr_slab_release(&map->maps);
    vr_mutex_destroy(&map->mutex);
    *map = (struct vr_address_map){0};
}

static enum vram_status ensure_region_locked(struct vr_address_map *map, uint64_t address) {
    if (vr_address_map_region(map, address) != NULL) return VRAM_OK;
    // One slot stays empty, to end every search.
    if (map->region_count + 1 >= VR_REGIONS) return VRAM_LIMIT;
    void *memory = NULL;
    VR_TRY(vr_os_reserve(sizeof(struct vr_region), &memory));
    struct vr_region *region = memory;
    region->low = VR_REGION_SLOTS;
    const uint64_t number = address >> VR_REGION_SHIFT;
    size_t at = (size_t)((number * map->secret) >> (64 - VR_REGION_BITS));
    while (atomic_load_explicit(&map->regions[at].region, memory_order_relaxed) != NULL) at = (at + 1) % VR_REGIONS;
    map->regions[at].number = number;
    atomic_store_explicit(&map->regions[at].region, region, memory_order_release);
    map->region_count++;
    return VRAM_OK;
}

// Notes that the slots of [mib, end), up to the end of `mib`'s region, may be written.
static void note_slots(struct vr_address_map *map, uint64_t mib, uint64_t end) {
    struct vr_region *region = vr_address_map_region(map, mib);
    const uint64_t region_end = ((mib >> VR_REGION_SHIFT) + 1) << VR_REGION_SHIFT, last = (end < region_end ? end : region_end) - 1;
    const uint32_t low = (uint32_t)((mib >> 20) & (VR_REGION_SLOTS - 1)), high = (uint32_t)((last >> 20) & (VR_REGION_SLOTS - 1)) + 1;
    if (low < region->low) region->low = low;
    if (high > region->high) region->high = high;
}

static _Atomic uint32_t *slot_of_mib(const struct vr_address_map *map, uint64_t address) {
    return &vr_address_map_region(map, address)->slot[(address >> 20) & (VR_REGION_SLOTS - 1)];
}

static uint32_t *segments_of(const struct vr_address_map *map, uint32_t slot_value) { return &map->segments[slot_value & ~VR_SLOT_MAP]; }

static bool needs_map(uint64_t mib, uint64_t address, uint64_t size, bool small) {
    return small || mib < address || mib + VR_MIB > address + size;
}

static enum vram_status add_map_locked(struct vr_address_map *map, uint64_t mib) {
    _Atomic uint32_t *slot = slot_of_mib(map, mib);
    const uint32_t value = atomic_load_explicit(slot, memory_order_relaxed);
    if ((value & VR_SLOT_MAP) != 0) {
        ++*segments_of(map, value);
        return VRAM_OK;
    }
    uint32_t made = 0;
    VR_TRY(vr_slab_take(&map->maps, 1, &made));
    *segments_of(map, made) = 1;
    atomic_store_explicit(slot, VR_SLOT_MAP | made, memory_order_release);
    return VRAM_OK;
}

// Keeps the old values of the entries: readers verify each block number.
static void drop_map_locked(struct vr_address_map *map, uint64_t mib) {
    _Atomic uint32_t *slot = slot_of_mib(map, mib);
    const uint32_t value = atomic_load_explicit(slot, memory_order_relaxed);
    assert((value & VR_SLOT_MAP) != 0);
    if (--*segments_of(map, value) != 0) return;
    atomic_store_explicit(slot, 0, memory_order_release);
    vr_slab_give(&map->maps, value & ~VR_SLOT_MAP);
}

static void retire_locked(struct vr_address_map *map, uint64_t address, uint64_t size, bool small, uint64_t until) {
    for (uint64_t mib = vr_round_down(address, VR_MIB); mib < until; mib += VR_MIB) {
        if (needs_map(mib, address, size, small)) drop_map_locked(map, mib);
        // In a large segment only the first and the last MiB can have a map.
        const uint64_t last = vr_round_down(address + size - 1, VR_MIB);
        if (!small && mib >= address && last > mib + VR_MIB) mib = last - VR_MIB;
    }
}

static enum vram_status prepare_locked(struct vr_address_map *map, uint64_t address, uint64_t size, bool small) {
    for (uint64_t mib = vr_round_down(address, VR_MIB); mib < address + size; mib += VR_MIB) {
        enum vram_status status = ensure_region_locked(map, mib);
        if (status == VRAM_OK) note_slots(map, mib, address + size);
        if (status == VRAM_OK && needs_map(mib, address, size, small)) status = add_map_locked(map, mib);
        if (status != VRAM_OK) {
            retire_locked(map, address, size, small, mib);
            return status;
        }
        // Whole MiB of a large segment need no map: skip to the next region or to the last MiB.
        if (!small && mib >= address) {
            const uint64_t region_end = ((mib >> VR_REGION_SHIFT) + 1) << VR_REGION_SHIFT;
            const uint64_t last = vr_round_down(address + size - 1, VR_MIB);
            const uint64_t jump = region_end < last ? region_end : last;
            if (jump > mib + VR_MIB) mib = jump - VR_MIB;
        }
    }
    return VRAM_OK;
}

enum vram_status vr_address_map_prepare(struct vr_address_map *map, uint64_t address, uint64_t size, bool small) {
    vr_mutex_lock(&map->mutex);
    const enum vram_status status = prepare_locked(map, address, size, small);
    vr_mutex_unlock(&map->mutex);
    return status;
}

void vr_address_map_retire(struct vr_address_map *map, uint64_t address, uint64_t size, bool small) {
    vr_mutex_lock(&map->mutex);
    retire_locked(map, address, size, small, address + size);
    vr_mutex_unlock(&map->mutex);
}

static bool check_region(const struct vr_address_map *map, uint64_t number, struct vr_region *region) {
    if (vr_address_map_region(map, number << VR_REGION_SHIFT) != region) return false;
    for (size_t i = 0; i < VR_REGION_SLOTS; i++) {
        const uint32_t value = atomic_load_explicit(&region->slot[i], memory_order_relaxed);
        if ((value & VR_SLOT_MAP) != 0 && *segments_of(map, value) == 0) return false;
        if (value != 0 && (i < region->low || i >= region->high)) return false;
    }
    return true;
}

bool vr_address_map_check(const struct vr_address_map *map) {
    uint32_t count = 0;
    for (size_t at = 0; at < VR_REGIONS; at++) {
        struct vr_region *region = atomic_load_explicit(&map->regions[at].region, memory_order_relaxed);
        if (region == NULL) continue;
        count++;
        if (!check_region(map, map->regions[at].number, region)) return false;
    }
    return count == map->region_count && count < VR_REGIONS;
}
