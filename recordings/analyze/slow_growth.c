// Collects, window by window, what each group of allocations holds and how long its memory lives.
#include "analyze/slow_growth.h"

#define US_PER_SECOND 1000000

enum vram_status vr_slow_create(struct vr_slow **slow) {
    struct vr_slow *made = calloc(1, sizeof *made);
    if (made == NULL) return VRAM_NO_HOST_MEMORY;
    made->window_seconds = 1;
    *slow = made;
    return VRAM_OK;
}

static void destroy_group(struct vr_slow_group *group) {
    for (int c = 0; c < VR_SLOW_CLASSES; c++) free(group->freed_bytes[c]);
    free(group);
}

void vr_slow_destroy(struct vr_slow *slow) {
    if (slow == NULL) return;
    for (size_t i = 0; i < slow->count; i++) destroy_group(slow->group[i]);
    free(slow->group);
    vr_map_release(&slow->known);
    free(slow);
}

unsigned vr_slow_class(uint64_t seconds) {
    unsigned class = 0;
    while (seconds != 0 && class + 1 < VR_SLOW_CLASSES) {
        seconds >>= 1;
        class ++;
    }
    return class;
}

static uint64_t seconds_since(int64_t earlier_us, int64_t time_us) {
    return time_us <= earlier_us ? 0 : ((uint64_t)time_us - (uint64_t)earlier_us) / US_PER_SECOND;
}

static size_t window_of(const struct vr_slow *slow, int64_t time_us) {
    return (size_t)(seconds_since(slow->first_us, time_us) / slow->window_seconds);
}

uint64_t vr_slow_seconds(const struct vr_slow *slow) { return seconds_since(slow->first_us, slow->last_us); }

// ---- Windows merge in pairs when there would be too many.

#define MERGE_PAIRS(column, merge)                                                                                                         \
    for (size_t w = 0; w < VR_SLOW_WINDOWS; w++) {                                                                                         \
        const size_t a = 2 * w, b = a + 1;                                                                                                 \
        (column)[w] = a < VR_SLOW_WINDOWS ? (merge) : 0;                                                                                   \
    }

static void merge_windows_of(struct vr_slow_group *group, uint64_t window_seconds) {
    uint64_t *least = group->least_bytes;
    // Windows after the group's last event are not known yet.
    const size_t known = group->window;
    MERGE_PAIRS(least, b <= known && least[b] < least[a] ? least[b] : least[a])
    MERGE_PAIRS(group->stay_bytes, group->stay_bytes[a] + group->stay_bytes[b])
    MERGE_PAIRS(group->stay_blocks, group->stay_blocks[a] + group->stay_blocks[b])
    group->window /= 2;
    for (unsigned c = 1; c < VR_SLOW_CLASSES; c++) {
        uint64_t *births = group->freed_bytes[c];
        if (births == NULL) continue;
        uint64_t *deaths = births + VR_SLOW_WINDOWS;
        MERGE_PAIRS(births, births[a] + births[b])
        MERGE_PAIRS(deaths, deaths[a] + deaths[b])
        if (vr_slow_class_seconds(c) >= window_seconds) continue;
        free(births);
        group->freed_bytes[c] = NULL;
    }
}

int64_t vr_slow_pass(struct vr_slow *slow, int64_t time_us) {
    if (!slow->begun) slow->first_us = slow->last_us = time_us;
    slow->begun = true;
    if (time_us > slow->last_us) slow->last_us = time_us;
    while (window_of(slow, slow->last_us) >= VR_SLOW_WINDOWS) {
        slow->window_seconds *= 2;
        MERGE_PAIRS(slow->made, slow->made[a] + slow->made[b])
        for (size_t i = 0; i < slow->count; i++) merge_windows_of(slow->group[i], slow->window_seconds);
    }
    return slow->last_us;
}

// ---- Events.

// Brings `least` up to a window; nothing happened to the group in between.
static void reach(struct vr_slow_group *group, size_t window) {
    while (group->window < window) group->least_bytes[++group->window] = group->live_bytes;
}

static enum vram_status group_of(struct vr_slow *slow, uint64_t key, struct vr_slow_group **group) {
    uint64_t number = vr_map_get(&slow->known, key);
    if (number == 0) {
        VR_TRY(vr_grow((void **)&slow->group, &slow->capacity, slow->count + 1, sizeof(struct vr_slow_group *)));
        struct vr_slow_group *made = calloc(1, sizeof *made);
        if (made == NULL) return VRAM_NO_HOST_MEMORY;
        made->key = key;
        if (vr_map_set(&slow->known, key, (uint32_t)slow->count + 1) != VRAM_OK) {
            free(made);
            return VRAM_NO_HOST_MEMORY;
        }
        slow->group[slow->count++] = made;
        number = slow->count;
    }
    *group = slow->group[number - 1];
    return VRAM_OK;
}

enum vram_status vr_slow_alloc(struct vr_slow *slow, uint64_t key, uint64_t bytes) {
    struct vr_slow_group *group = NULL;
    VR_TRY(group_of(slow, key, &group));
    const size_t window = window_of(slow, slow->last_us);
    reach(group, window);
    group->live_bytes += bytes;
    group->stay_bytes[window] += bytes;
    group->stay_blocks[window]++;
    slow->made[window]++;
    return VRAM_OK;
}

enum vram_status vr_slow_free(struct vr_slow *slow, uint64_t key, int64_t born_us, uint64_t bytes) {
    struct vr_slow_group *group = NULL;
    VR_TRY(group_of(slow, key, &group));
    const size_t birth = window_of(slow, born_us), death = window_of(slow, slow->last_us);
    const unsigned class = vr_slow_class(seconds_since(born_us, slow->last_us));
    reach(group, death);
    group->live_bytes -= bytes;
    group->stay_bytes[birth] -= bytes;
    group->stay_blocks[birth]--;
    group->freed[class]++;
    if (group->live_bytes < group->least_bytes[death]) group->least_bytes[death] = group->live_bytes;
    if (class == 0 || vr_slow_class_seconds(class) < slow->window_seconds) return VRAM_OK;
    uint64_t **freed = &group->freed_bytes[class];
    if (*freed == NULL) *freed = calloc((size_t)2 * VR_SLOW_WINDOWS, sizeof **freed);
    if (*freed == NULL) return VRAM_NO_HOST_MEMORY;
    (*freed)[birth] += bytes;
    (*freed)[VR_SLOW_WINDOWS + death] += bytes;
    return VRAM_OK;
}
