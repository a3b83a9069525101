// addresses.c: see addresses.h.
#include "replay/addresses.h"

enum { FIRST_SLOTS = 64 };

void vr_addresses_release(struct vr_addresses *map) {
    free(map->slots);
    *map = (struct vr_addresses){0};
}

static size_t home_of(const struct vr_addresses *map, uint64_t address) { return (size_t)vr_mix64(address) & map->mask; }

// The slot of `address`, or the empty slot where it would go. The map has slots and at least one empty one.
static size_t find(const struct vr_addresses *map, uint64_t address) {
    size_t at = home_of(map, address);
    while (map->slots[at].value != VR_ABSENT && map->slots[at].address != address) at = (at + 1) & map->mask;
    return at;
}

static enum vram_status grow(struct vr_addresses *map) {
    const size_t old_count = map->slots == NULL ? 0 : map->mask + 1;
    const size_t count = old_count == 0 ? FIRST_SLOTS : old_count * 2;
    if (count > SIZE_MAX / sizeof(struct vr_address_slot)) return VRAM_NO_HOST_MEMORY;
    struct vr_addresses wider = {.slots = malloc(count * sizeof(struct vr_address_slot)), .mask = count - 1, .used = map->used};
    if (wider.slots == NULL) return VRAM_NO_HOST_MEMORY;
    for (size_t i = 0; i < count; i++) wider.slots[i].value = VR_ABSENT;
    for (size_t i = 0; i < old_count; i++) {
        if (map->slots[i].value != VR_ABSENT) wider.slots[find(&wider, map->slots[i].address)] = map->slots[i];
    }
    free(map->slots);
    *map = wider;
    return VRAM_OK;
}

uint32_t vr_addresses_get(const struct vr_addresses *map, uint64_t address) {
    return map->slots == NULL ? VR_ABSENT : map->slots[find(map, address)].value;
}

enum vram_status vr_addresses_put(struct vr_addresses *map, uint64_t address, uint32_t value) {
    if (map->slots == NULL || (map->used + 1) * 2 > map->mask + 1) VR_TRY(grow(map));
    struct vr_address_slot *slot = &map->slots[find(map, address)];
    if (slot->value == VR_ABSENT) map->used++;
    *slot = (struct vr_address_slot){.address = address, .value = value};
    return VRAM_OK;
}

uint32_t vr_addresses_remove(struct vr_addresses *map, uint64_t address) {
    if (map->slots == NULL) return VR_ABSENT;
    size_t hole = find(map, address);
    const uint32_t removed = map->slots[hole].value;
    if (removed == VR_ABSENT) return VR_ABSENT;
    for (size_t at = (hole + 1) & map->mask; map->slots[at].value != VR_ABSENT; at = (at + 1) & map->mask) {
        const size_t home = home_of(map, map->slots[at].address);
        // An entry may move back into the hole unless its home lies cyclically after the hole.
        if (((at - home) & map->mask) < ((at - hole) & map->mask)) continue;
        map->slots[hole] = map->slots[at];
        hole = at;
    }
    map->slots[hole].value = VR_ABSENT;
    map->used--;
    return removed;
}
