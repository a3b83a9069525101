// Creates, finds and frees private pools.
#include "core/capture/private.h"
#include "core/device.h"
#include "core/source/source_ops.h"

// vr_pool_apply_options() selects the source again, which depends on `captured`. If lend_graph_pools is turned on only later, launches may
// have been missed.
void vr_private_mark_captured(struct vram_pool *pool) {
    VR_ASSERT_ALL_LOCKED(pool->device);
    if (pool->captured) return;
    pool->captured = true;
    pool->lending.barred = !pool->device->options.lend_graph_pools;
    vr_pool_apply_options(pool);
}

void vr_private_retain(struct vram_pool *pool) {
    VR_ASSERT_ALL_LOCKED(pool->device);
    if (pool->references++ == 0) pool->device->unheld_pools--;
}
void vr_private_drop(struct vram_pool *pool) {
    VR_ASSERT_ALL_LOCKED(pool->device);
    assert(pool->references != 0);
    if (--pool->references == 0) pool->device->unheld_pools++;
}

// Keeps the shard for a later pool. Its lists are empty.
static void retire_shard(struct vr_device *device, struct vr_shard *shard) {
    struct vr_shards *shards = &device->shards;
    shard->owner = NULL;
    shard->idle = true;
    shard->lends = false;
    if (VR_GROW(shards, idle, shards->idle_count + 1) == VRAM_OK) shards->idle[shards->idle_count++] = shard;
}

// Releases reservations without a mapped page, which a failed growth leaves behind.
static void drop_empty_reservations(struct vr_shard *shard) {
    const struct vram_allocator *allocator = shard->device->allocator;
    for (int p = 0; p < VR_POOLS; p++) {
        while (shard->pool[p].holes != 0) {
            const uint32_t segment = vr_block_at(allocator, shard->pool[p].holes)->segment;
            vr_segment_at(allocator, segment)->source->abandon(shard, segment);
        }
    }
}

// Returns whether the pool can be freed. Hands paged memory over first, except for pages that a graph may refer to: vr_release_pool()
// releases those after it has waited for the streams.
static bool is_dead(struct vram_pool *pool) {
    if (pool->references == 0 && pool->segments != 0 && !pool->captured) vr_source_hand_over(pool);
    return pool->references == 0 && pool->segments == 0;
}

// --- ids ------------------------------------------------------------------------------------------------------------------------------

static uint64_t key_of_id(struct vram_pool_id id) { return vr_mix64(id.first) ^ id.second; }

static struct vr_known_pool *first_of_key(const struct vr_known_pools *known, uint64_t key) {
    return (struct vr_known_pool *)(uintptr_t)vr_map_get(&known->by_key, key);
}

static struct vr_known_pool *find_known(const struct vr_known_pools *known, struct vram_pool_id id) {
    struct vr_known_pool *found = first_of_key(known, key_of_id(id));
    while (found != NULL && (found->id.first != id.first || found->id.second != id.second)) found = found->next;
    return found;
}

static enum vram_status make_known(struct vr_known_pools *known, struct vram_pool_id id, struct vr_known_pool **made) {
    const uint64_t key = key_of_id(id);
    *made = calloc(1, sizeof **made);
    if (*made == NULL) return VRAM_NO_HOST_MEMORY;
    (*made)->id = id;
    (*made)->next = first_of_key(known, key);
    const enum vram_status status = vr_map_set(&known->by_key, key, (uintptr_t)*made);
    if (status != VRAM_OK) free(*made);
    known->count += status == VRAM_OK;
    return status;
}

// Removes an entry. Other entries of its key stay in the map, so this needs no memory.
static void forget_known(struct vr_known_pools *known, struct vr_known_pool *gone) {
    const uint64_t key = key_of_id(gone->id);
    struct vr_known_pool *first = first_of_key(known, key);
    if (first != gone) {
        while (first->next != gone) first = first->next;
        first->next = gone->next;
    } else if (gone->next != NULL) {
        vr_map_slot_of(&known->by_key, key)->value = (uintptr_t)gone->next;
    } else {
        (void)vr_map_take(&known->by_key, key);
    }
    known->count--;
    free(gone);
}

struct vr_known_pool *vr_known_pool_after(const struct vr_known_pools *known, const struct vr_known_pool *last, size_t *at) {
    struct vr_map_slot slot = {0};
    if (last != NULL && last->next != NULL) return last->next;
    return vr_map_next(&known->by_key, at, &slot) ? (struct vr_known_pool *)(uintptr_t)slot.value : NULL;
}

struct vram_pool *vr_private_by_id(const struct vr_device *device, struct vram_pool_id id) {
    VR_ASSERT_ALL_LOCKED(device);
    const struct vr_known_pool *known = find_known(&device->known, id);
    return known != NULL ? known->pool : NULL;
}

enum vram_status vr_private_enlist(struct vram_pool *pool) {
    VR_ASSERT_ALL_LOCKED(pool->device);
    struct vr_device *device = pool->device;
    struct vr_known_pool *known = find_known(&device->known, pool->id);
    if (known != NULL && known->pool != NULL) return VRAM_INVALID_ARGUMENT;
    if (known == NULL) {
        VR_TRY(make_known(&device->known, pool->id, &known));
    } else {
        memcpy(pool->reserved, known->reserved, sizeof pool->reserved);
        pool->counted = true;
    }
    known->pool = pool;
    pool->known = known;
    pool->next = device->pools;
    if (pool->next != NULL) pool->next->previous = pool;
    device->pools = pool;
    return VRAM_OK;
}

static void delist_pool(struct vram_pool *pool) {
    struct vr_device *device = pool->device;
    *(pool->previous != NULL ? &pool->previous->next : &device->pools) = pool->next;
    if (pool->next != NULL) pool->next->previous = pool->previous;
    device->unheld_pools--;
}

// --- freeing ----------------------------------------------------------------------------------------------------------------------------

// Keeps the statistics of an ended pool with its id, unless the id never held driver memory.
static void keep_stats(const struct vram_pool *pool) {
    if (!pool->counted) {
        forget_known(&pool->device->known, pool->known);
        return;
    }
    pool->known->pool = NULL;
    memcpy(pool->known->reserved, pool->reserved, sizeof pool->reserved);
}

static void bury_pool(struct vram_pool *pool) {
    delist_pool(pool);
    keep_stats(pool);
    vr_vacant_forget(pool->device, pool);
    for (size_t i = 0; i < pool->shard_count; i++) {
        vr_source_park(pool->shards[i]);
        drop_empty_reservations(pool->shards[i]);
        retire_shard(pool->device, pool->shards[i]);
    }
    vr_extensions_end(&pool->extensions);
    free(pool->lending.launched);
    free(pool->shards);
    free(pool);
}

void vr_private_bury(struct vr_device *device) {
    VR_ASSERT_ALL_LOCKED(device);
    if (device->unheld_pools == 0) return;
    for (struct vram_pool *pool = device->pools, *next; pool != NULL; pool = next) {
        next = pool->next;
        if (is_dead(pool)) bury_pool(pool);
    }
}

void vr_private_bury_one(struct vram_pool *pool) {
    VR_ASSERT_ALL_LOCKED(pool->device);
    struct vr_device *device = pool->device;
    if (!is_dead(pool)) return;
    bury_pool(pool);
    if (device->kept != NULL) vr_private_bury(device);
}

void vr_private_release_all(struct vr_device *device) {
    while (device->pools != NULL) {
        struct vram_pool *next = device->pools->next;
        vr_extensions_end(&device->pools->extensions);
        free(device->pools->lending.launched);
        free(device->pools->shards);
        free(device->pools);
        device->pools = next;
    }
    struct vr_known_pools *known = &device->known;
    size_t at = 0;
    for (struct vr_known_pool *item = vr_known_pool_after(known, NULL, &at), *next; item != NULL; item = next) {
        next = vr_known_pool_after(known, item, &at);
        free(item);
    }
    vr_map_release(&known->by_key);
}
