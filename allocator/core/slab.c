#include "core/block.h"

enum { LEAST_CAPACITY = 1024 };

// Reserves as many items as address space allows, at most `capacity`. If that is scarce, reserves half of what fits, because the tables
// made later need some too.
static enum vram_status reserve_what_fits(struct vr_slab *slab, uint32_t capacity, void **base) {
    enum vram_status status = VRAM_NO_HOST_MEMORY;
    for (slab->capacity = capacity; slab->capacity >= LEAST_CAPACITY; slab->capacity /= 2) {
        status = vr_os_reserve((size_t)slab->capacity * slab->item_bytes, base);
        if (status == VRAM_OK) break;
    }
    if (status != VRAM_OK || slab->capacity == capacity || slab->capacity / 2 < LEAST_CAPACITY) return status;
    vr_os_unreserve(*base, (size_t)slab->capacity * slab->item_bytes);
    slab->capacity /= 2;
    return vr_os_reserve((size_t)slab->capacity * slab->item_bytes, base);
}

enum vram_status vr_slab_init(struct vr_slab *slab, size_t item_bytes, uint32_t capacity) {
    *slab = (struct vr_slab){.item_bytes = item_bytes, .used = 1};
    void *base = NULL;
    VR_TRY(reserve_what_fits(slab, capacity, &base));
    vr_os_prefer_large_pages(base, (size_t)slab->capacity * item_bytes);
    slab->items = base;
    slab->cut = slab->capacity < capacity;
    vr_mutex_init(&slab->mutex);
    return VRAM_OK;
}

void vr_slab_release(struct vr_slab *slab) {
    if (slab->items == NULL) return;
    const uint32_t used = atomic_load_explicit(&slab->used, memory_order_relaxed);
    vr_os_unreserve_touched(slab->items, (size_t)slab->capacity * slab->item_bytes, (size_t)used * slab->item_bytes);
    free(slab->spare);
    vr_mutex_destroy(&slab->mutex);
    *slab = (struct vr_slab){0};
}

static enum vram_status take_items_locked(struct vr_slab *slab, uint32_t count, uint32_t *ids) {
    const uint32_t used = atomic_load_explicit(&slab->used, memory_order_relaxed);
    const uint32_t from_spare = slab->spare_count < count ? (uint32_t)slab->spare_count : count;
    if (count - from_spare > slab->capacity - used) return slab->cut ? VRAM_NO_HOST_MEMORY : VRAM_LIMIT;
    for (uint32_t i = 0; i < from_spare; i++) ids[i] = slab->spare[--slab->spare_count];
    for (uint32_t i = from_spare; i < count; i++) ids[i] = used + (i - from_spare);
    atomic_store_explicit(&slab->used, used + (count - from_spare), memory_order_release);
    return VRAM_OK;
}

enum vram_status vr_slab_take(struct vr_slab *slab, uint32_t count, uint32_t *ids) {
    vr_mutex_lock(&slab->mutex);
    const enum vram_status status = take_items_locked(slab, count, ids);
    vr_mutex_unlock(&slab->mutex);
    return status;
}

void vr_slab_give_many(struct vr_slab *slab, uint32_t count, const uint32_t *ids) {
    vr_mutex_lock(&slab->mutex);
    void *spare = slab->spare;
    if (vr_grow(&spare, &slab->spare_capacity, slab->spare_count + count, sizeof *slab->spare) == VRAM_OK) {
        slab->spare = spare;
        for (uint32_t i = 0; i < count; i++) slab->spare[slab->spare_count++] = ids[i];
    }
    vr_mutex_unlock(&slab->mutex);
}

void vr_slab_give(struct vr_slab *slab, uint32_t id) { vr_slab_give_many(slab, 1, &id); }
