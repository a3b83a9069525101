#include "analyze/map.h"

void vr_map_release(struct vr_map *map) {
    free(map->slots);
    *map = (struct vr_map){0};
}

void vr_map_clear(struct vr_map *map) {
    if (map->count != 0) memset(map->slots, 0, (map->mask + 1) * sizeof *map->slots);
    map->count = 0;
}

static size_t home(const struct vr_map *map, uint64_t address) { return (size_t)vr_mix64(address ^ map->key) & map->mask; }

// The slot of `address`, or the free slot where it would go. The table is never full.
static size_t find(const struct vr_map *map, uint64_t address) {
    size_t at = home(map, address);
    while (map->slots[at].value != 0 && map->slots[at].address != address) at = (at + 1) & map->mask;
    return at;
}

uint32_t vr_map_get(const struct vr_map *map, uint64_t address) { return map->slots == NULL ? 0 : map->slots[find(map, address)].value; }

static enum vram_status resize(struct vr_map *map, size_t capacity) {
    struct vr_map grown = {.mask = capacity - 1, .count = map->count};
    grown.slots = calloc(capacity, sizeof *grown.slots);
    if (grown.slots == NULL) return VRAM_NO_HOST_MEMORY;
    grown.key = vr_mix64((uint64_t)(uintptr_t)grown.slots);
    for (size_t i = 0; map->slots != NULL && i <= map->mask; i++) {
        if (map->slots[i].value != 0) grown.slots[find(&grown, map->slots[i].address)] = map->slots[i];
    }
    free(map->slots);
    *map = grown;
    return VRAM_OK;
}

enum vram_status vr_map_set(struct vr_map *map, uint64_t address, uint32_t value) {
    assert(value != 0);
    if (map->slots == NULL) VR_TRY(resize(map, 64));
    if ((map->count + 1) * 4 > (map->mask + 1) * 3) VR_TRY(resize(map, (map->mask + 1) * 2));
    struct vr_map_slot *slot = &map->slots[find(map, address)];
    map->count += slot->value == 0;
    *slot = (struct vr_map_slot){.address = address, .value = value};
    return VRAM_OK;
}

uint32_t vr_map_take(struct vr_map *map, uint64_t address) {
    if (map->slots == NULL) return 0;
    size_t hole = find(map, address);
    const uint32_t value = map->slots[hole].value;
    if (value == 0) return 0;
    // Every later entry of the run moves back unless it would come before its home.
    for (size_t at = (hole + 1) & map->mask; map->slots[at].value != 0; at = (at + 1) & map->mask) {
        const size_t start = home(map, map->slots[at].address);
        if (((at - start) & map->mask) < ((at - hole) & map->mask)) continue;
        map->slots[hole] = map->slots[at];
        hole = at;
    }
    map->slots[hole].value = 0;
    map->count--;
    return value;
}
