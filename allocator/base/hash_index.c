#include "base/hash_index.h"

enum { FIRST_SLOTS = 64 };

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

static void put(struct vr_hash_index *index, uint64_t slot) {
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
        if (index->slots[i] != 0) put(&larger, index->slots[i]);
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
        // Nothing free lies between where it belongs and where it is.
        for (size_t at = VR_HASH_INDEX_HOME(index, index->slots[i]); at != i; at = (at + 1) & index->mask) {
            if (index->slots[at] == 0) return false;
        }
    }
    return count == index->count && (index->slots == NULL || count <= (index->mask + 1) / 8 * 5);
}
