#include "analyze/ordered.h"

// One word more than needed, so that looking just past the last one is no mistake.
static size_t words_for(size_t limit) { return limit / 64 + 2; }

enum vram_status vr_ordered_init(struct vr_ordered *set, size_t limit) {
    struct vr_ordered made = {.levels = 0};
    for (size_t words = words_for(limit);; words = words_for(words)) {
        made.level[made.levels] = calloc(words, sizeof(uint64_t));
        if (made.level[made.levels] == NULL) {
            vr_ordered_release(&made);
            return VRAM_NO_HOST_MEMORY;
        }
        made.levels++;
        if (words <= 2 || made.levels == VR_ORDERED_LEVELS) break;
    }
    *set = made;
    return VRAM_OK;
}

void vr_ordered_release(struct vr_ordered *set) {
    for (unsigned level = 0; level < set->levels; level++) free(set->level[level]);
    *set = (struct vr_ordered){.levels = 0};
}

void vr_ordered_add(struct vr_ordered *set, size_t number) {
    for (unsigned level = 0; level < set->levels; level++, number /= 64) set->level[level][number / 64] |= (uint64_t)1 << (number % 64);
}

void vr_ordered_remove(struct vr_ordered *set, size_t number) {
    for (unsigned level = 0; level < set->levels; level++, number /= 64) {
        set->level[level][number / 64] &= ~((uint64_t)1 << (number % 64));
        if (set->level[level][number / 64] != 0) return;
    }
}

// From a member of a level down to the first (or last) member of the lowest one below it.
static size_t descend_level(const struct vr_ordered *set, unsigned level, size_t number, bool first) {
    while (level-- > 0) {
        const uint64_t word = set->level[level][number];
        number = number * 64 + (size_t)(first ? __builtin_ctzll(word) : 63 - __builtin_clzll(word));
    }
    return number;
}

size_t vr_ordered_next(const struct vr_ordered *set, size_t number) {
    for (unsigned level = 0; level < set->levels; level++) {
        const uint64_t rest = set->level[level][number / 64] >> (number % 64);
        if (rest != 0) return descend_level(set, level, number + (size_t)__builtin_ctzll(rest), true);
        if (level + 1 == set->levels && number / 64 == 0 && set->level[level][1] != 0)
            return descend_level(set, level, 64 + (size_t)__builtin_ctzll(set->level[level][1]), true);
        number = number / 64 + 1;
    }
    return SIZE_MAX;
}

size_t vr_ordered_previous(const struct vr_ordered *set, size_t number) {
    for (unsigned level = 0; level < set->levels; level++) {
        const uint64_t rest = set->level[level][number / 64] << (63 - number % 64);
        if (rest != 0) return descend_level(set, level, number - (size_t)__builtin_clzll(rest), false);
        if (number / 64 == 0) return SIZE_MAX;
        number = number / 64 - 1;
    }
    return SIZE_MAX;
}
