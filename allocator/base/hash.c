#include "base/hash.h"

#include <stdatomic.h>

enum { FIRST_SLOTS = 64 };

static _Atomic uint64_t process_seed;

void vr_hash_seed(uint64_t seed) { atomic_fetch_xor_explicit(&process_seed, vr_mix64(seed), memory_order_relaxed); }

uint64_t vr_hash_secret(const void *where) {
    const uint64_t image = (uint64_t)(uintptr_t)&process_seed, seed = atomic_load_explicit(&process_seed, memory_order_relaxed);
    return vr_mix64(vr_mix64((uint64_t)(uintptr_t)where ^ seed) + vr_mix64(image + seed));
}

void vr_hash_index_init(struct vr_hash_index *index) {
    *index = (struct vr_hash_index){0};
    index->secret = vr_hash_secret(index);
}

void vr_hash_index_release(struct vr_hash_index *index) {
    free(index->slots);
    *index = (struct vr_hash_index){0};
}

static size_t capacity_for_one_more(const struct vr_hash_index *index) {
    if (index->slots == NULL) return FIRST_SLOTS;
    return vr_hash_index_has_room(index) ? index->mask + 1 : 2 * (index->mask + 1);
}

size_t vr_hash_index_growth_bytes(const struct vr_hash_index *index) {
    const size_t before = index->slots == NULL ? 0 : index->mask + 1;
    return (capacity_for_one_more(index) - before) * sizeof *index->slots;
}

static void put_slot(struct vr_hash_index *index, uint64_t slot) {
    size_t at = VR_HASH_INDEX_HOME(index, slot);
    while (index->slots[at] != 0) at = (at + 1) & index->mask;
    index->slots[at] = slot;
}

enum vram_status vr_hash_index_reserve(struct vr_hash_index *index) {
    if (vr_hash_index_has_room(index)) return VRAM_OK;
    const size_t capacity = capacity_for_one_more(index);
    struct vr_hash_index larger = {.mask = capacity - 1, .count = index->count, .secret = index->secret};
    larger.slots = calloc(capacity, sizeof *larger.slots);
    if (larger.slots == NULL) return VRAM_NO_HOST_MEMORY;
    for (size_t i = 0; index->slots != NULL && i <= index->mask; i++) {
        if (index->slots[i] != 0) put_slot(&larger, index->slots[i]);
    }
    free(index->slots);
    *index = larger;
    return VRAM_OK;
}

bool vr_hash_index_check(const struct vr_hash_index *index) {
    size_t count = 0;
    for (size_t i = 0; index->slots != NULL && i <= index->mask; i++) {
        if (index->slots[i] == 0) continue;
        count++;
        // No slot between the entry's home and its slot is free.
        for (size_t at = VR_HASH_INDEX_HOME(index, index->slots[i]); at != i; at = (at + 1) & index->mask) {
            if (index->slots[at] == 0) return false;
        }
    }
    return count == index->count && (index->slots == NULL || count <= (index->mask + 1) / 8 * 5);
}

void vr_map_release(struct vr_map *map) {
    free(map->slots);
    *map = (struct vr_map){0};
}

void vr_map_clear(struct vr_map *map) {
    if (map->count != 0) memset(map->slots, 0, (map->mask + 1) * sizeof *map->slots);
    map->count = 0;
}

// Returns the capacity that `count` keys need; 0 if no table can hold them.
static size_t capacity_for(const struct vr_map *map, size_t count) {
    size_t capacity = map->slots == NULL ? FIRST_SLOTS : map->mask + 1;
    while (count > capacity / 4 * 3) {
        if (capacity > SIZE_MAX / 2 / sizeof *map->slots) return 0;
        capacity *= 2;
    }
    return capacity;
}

static enum vram_status resize_map(struct vr_map *map, size_t capacity) {
    struct vr_map grown = {.mask = capacity - 1, .count = map->count};
    grown.slots = calloc(capacity, sizeof *grown.slots);
    if (grown.slots == NULL) return VRAM_NO_HOST_MEMORY;
    grown.secret = vr_hash_secret(grown.slots);
    for (size_t i = 0; map->slots != NULL && i <= map->mask; i++) {
        if (map->slots[i].value == 0) continue;
        size_t at = (size_t)vr_mix64(map->slots[i].key ^ grown.secret) & grown.mask; // keys are unique
        while (grown.slots[at].value != 0) at = (at + 1) & grown.mask;
        grown.slots[at] = map->slots[i];
    }
    free(map->slots);
    *map = grown;
    return VRAM_OK;
}

enum vram_status vr_map_reserve(struct vr_map *map, size_t more) {
    if (more > SIZE_MAX - map->count) return VRAM_NO_HOST_MEMORY;
    const size_t capacity = capacity_for(map, map->count + more);
    if (capacity == 0) return VRAM_NO_HOST_MEMORY;
    return map->slots != NULL && capacity == map->mask + 1 ? VRAM_OK : resize_map(map, capacity);
}

size_t vr_map_growth_bytes(const struct vr_map *map) {
    const size_t before = map->slots == NULL ? 0 : map->mask + 1;
    return (capacity_for(map, map->count + 1) - before) * sizeof *map->slots;
}

enum vram_status vr_map_set(struct vr_map *map, uint64_t key, uint64_t value) {
    assert(value != 0);
    if (VR_UNLIKELY(map->slots == NULL || map->count + 1 > (map->mask + 1) / 4 * 3)) VR_TRY(vr_map_reserve(map, 1));
    struct vr_map_slot *slot = vr_map_slot_of(map, key);
    map->count += slot->value == 0;
    *slot = (struct vr_map_slot){.key = key, .value = value};
    return VRAM_OK;
}

uint64_t vr_map_take(struct vr_map *map, uint64_t key) {
    if (map->slots == NULL) return 0;
    size_t gap = (size_t)(vr_map_slot_of(map, key) - map->slots);
    const uint64_t value = map->slots[gap].value;
    if (value == 0) return 0;
    // Move back every later entry of the run unless that would put it before its home.
    for (size_t at = (gap + 1) & map->mask; map->slots[at].value != 0; at = (at + 1) & map->mask) {
        const size_t home = (size_t)vr_mix64(map->slots[at].key ^ map->secret) & map->mask;
        if (((at - home) & map->mask) < ((at - gap) & map->mask)) continue;
        map->slots[gap] = map->slots[at];
        gap = at;
    }
    map->slots[gap].value = 0;
    map->count--;
    return value;
}

bool vr_map_next(const struct vr_map *map, size_t *at, struct vr_map_slot *entry) {
    for (; map->slots != NULL && *at <= map->mask; ++*at) {
        if (map->slots[*at].value == 0) continue;
        *entry = map->slots[(*at)++];
        return true;
    }
    return false;
}

bool vr_map_check(const struct vr_map *map) {
    size_t count = 0, at = 0;
    struct vr_map_slot entry;
    while (vr_map_next(map, &at, &entry)) {
        count++;
        if (vr_map_slot_of(map, entry.key) != &map->slots[at - 1]) return false;
    }
    return count == map->count && (map->slots == NULL || count <= (map->mask + 1) / 4 * 3);
}
