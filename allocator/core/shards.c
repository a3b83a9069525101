// Creates shards at the first use of a stream, with the settings of their pool and the options.
#include "core/device.h"
#include "core/source/source_ops.h"

static void set_source(struct vr_shard *shard) {
    const struct vr_device *device = shard->device;
    shard->source = vr_source_of(device, shard->owner);
    shard->expandable = shard->source->expandable;
    shard->whole = shard->owner != NULL && shard->owner->options.no_split;
}

void vr_pool_apply_options(const struct vram_pool *pool) {
    VR_ASSERT_ALL_LOCKED(pool->device);
    for (size_t i = 0; i < pool->shard_count; i++) set_source(pool->shards[i]);
}

static void init_shard(struct vr_shard *shard, struct vram_pool *owner, uint64_t stream) {
    shard->stream = stream;
    shard->owner = owner;
    shard->idle = false;
    set_source(shard);
    shard->vacant = false;
}

void vr_device_apply_options(struct vr_device *device, const struct vr_options *options) {
    device->options = *options;
    device->options.large_segment_bytes = vr_large_segment(options);
    device->options.request_padding_bytes += (uint32_t)device->allocator->front_redzone;
    const uint32_t count = atomic_load_explicit(&device->shards.count, memory_order_relaxed);
    for (uint32_t i = 0; i < count; i++) set_source(device->shards.items[i]);
    device->divisions = device->options.request_padding_bytes != 0;
    for (int i = 0; i < VR_ROUNDUP_BUCKETS; i++) device->divisions |= options->roundup_divisions[i] > 1;
    vr_device_gate(device, VR_GATE_ALIGNED, options->base_alignment_kib != 0);
    vr_device_gate(device, VR_GATE_COLLECT, options->garbage_collection_threshold > 0 && device->limit_bytes != VR_UNLIMITED);
}

static enum vram_status number_shard(struct vr_device *device, struct vr_shard *made) {
    struct vram_allocator *allocator = device->allocator;
    const uint32_t number = atomic_fetch_add_explicit(&allocator->shard_count, 1, memory_order_relaxed);
    if (number >= VR_MAX_SHARDS) {
        atomic_fetch_sub_explicit(&allocator->shard_count, 1, memory_order_relaxed);
        return VRAM_LIMIT;
    }
    made->number = number;
    allocator->shards[number] = made;
    return VRAM_OK;
}

// Makes a shard that readers cannot find yet: the caller publishes it by incrementing shards.count. Its memory is zero, so all its lists
// are empty. Under the device's mutex.
static enum vram_status make_shard_locked(struct vr_device *device, struct vr_shard **shard) {
    const uint32_t count = atomic_load_explicit(&device->shards.count, memory_order_relaxed);
    if (count >= VR_SHARDS_PER_DEVICE) return VRAM_LIMIT;
    VR_TRY(VR_GROW(&device->shards, items, count + 1));
    VR_TRY(VR_GROW(&device->shards, defaults, count + 1));
    void *memory = NULL;
    VR_TRY(vr_os_reserve(VR_SHARD_BYTES, &memory));
    struct vr_shard *made = (struct vr_shard *)(void *)((unsigned char *)memory + vr_shard_offset(count));
    made->device = device;
    const enum vram_status status = number_shard(device, made);
    if (status != VRAM_OK) {
        vr_os_unreserve(memory, VR_SHARD_BYTES);
        return status;
    }
    device->shards.items[count] = made;
    *shard = made;
    return VRAM_OK;
}

static enum vram_status make_default_shard_locked(struct vr_device *device, uint64_t stream, struct vr_shard **shard) {
    VR_TRY(make_shard_locked(device, shard));
    init_shard(*shard, NULL, stream);
    const uint32_t count = atomic_load_explicit(&device->shards.count, memory_order_relaxed);
    size_t at = VR_SHARD_HOME(stream);
    while (atomic_load_explicit(&device->shards.slots[at], memory_order_relaxed) != NULL) at = (at + 1) % VR_SHARD_SLOTS;
    device->shards.defaults[device->shards.default_count++] = *shard;
    atomic_store_explicit(&device->shards.slots[at], *shard, memory_order_release);
    atomic_store_explicit(&device->shards.count, count + 1, memory_order_release);
    return VRAM_OK;
}

struct vr_shard *vr_shard_find_in_pool(const struct vram_pool *pool, uint64_t stream) {
    VR_ASSERT_LOCKED(pool->device);
    size_t place;
    VR_LOWER_BOUND(place, i, 0, pool->shard_count, pool->shards[i]->stream < stream);
    return place < pool->shard_count && pool->shards[place]->stream == stream ? pool->shards[place] : NULL;
}

enum vram_status vr_shard_of_pool(struct vram_pool *pool, uint64_t stream, struct vr_shard **shard) {
    VR_ASSERT_ALL_LOCKED(pool->device);
    struct vr_device *device = pool->device;
    *shard = vr_shard_find_in_pool(pool, stream);
    if (*shard != NULL) return VRAM_OK;
    VR_TRY(VR_GROW(pool, shards, pool->shard_count + 1));
    if (device->shards.idle_count != 0) {
        *shard = device->shards.idle[--device->shards.idle_count];
    } else {
        VR_TRY(make_shard_locked(device, shard));
        atomic_fetch_add_explicit(&device->shards.count, 1, memory_order_release);
    }
    init_shard(*shard, pool, stream);
    // Keep the shards ordered by stream, the order in which a release visits them (allocator.md §release-of-the-cache).
    size_t at = pool->shard_count++;
    for (; at > 0 && pool->shards[at - 1]->stream > stream; at--) pool->shards[at] = pool->shards[at - 1];
    pool->shards[at] = *shard;
    return VRAM_OK;
}

enum vram_status vr_shard_make(struct vr_device *device, uint64_t stream, struct vr_shard **shard) {
    vr_mutex_lock(&device->mutex);
    enum vram_status status = VRAM_OK;
    *shard = vr_shard_find(device, stream);
    if (*shard == NULL) status = make_default_shard_locked(device, stream, shard);
    vr_mutex_unlock(&device->mutex);
    return status;
}

static int by_stream(const void *a, const void *b) {
    const uint64_t x = (*(struct vr_shard *const *)a)->stream, y = (*(struct vr_shard *const *)b)->stream;
    return VR_ORDER(x, y);
}

static bool has_free_block(const struct vr_shard *shard) {
    for (unsigned p = 0; p < VR_POOLS; p++)
        if (!vr_index_is_empty(&shard->pool[p].index)) return true;
    return false;
}

enum vram_status vr_device_shards_by_stream(const struct vr_device *device, bool only_releasable, struct vr_shard ***shards,
                                            size_t *count) {
    VR_ASSERT_ALL_LOCKED(device);
    const uint32_t all = device->shards.default_count;
    struct vr_shard **listed = malloc((all + 1) * sizeof *listed);
    if (listed == NULL) return VRAM_NO_HOST_MEMORY;
    *count = 0;
    for (uint32_t i = 0; i < all; i++) {
        struct vr_shard *shard = device->shards.defaults[i];
        if (only_releasable ? shard->may_release : has_free_block(shard)) listed[(*count)++] = shard;
    }
    qsort(listed, *count, sizeof *listed, by_stream);
    *shards = listed;
    return VRAM_OK;
}
