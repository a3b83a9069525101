#include "core/source/source_ops.h"

// Process-wide, so that ages compare across devices and allocators as in PyTorch.
static _Atomic uint64_t registrations;

void vr_reserved_add(struct vr_shard *shard, bool small, int64_t bytes) {
    struct vr_device *device = shard->device;
    const enum vram_stat_pool view = vr_stat_view(small);
    vr_stat_add(&device->reserved[VRAM_STAT_ALL], bytes);
    vr_stat_add(&device->reserved[view], bytes);
    if (shard->owner == NULL) return;
    vr_stat_add(&shard->owner->reserved[VRAM_STAT_ALL], bytes);
    vr_stat_add(&shard->owner->reserved[view], bytes);
}

static void count_segment(struct vr_shard *shard, const struct vr_segment *segment, int64_t sign) {
    struct vr_device *device = shard->device;
    vr_stat_add(&device->segment[VRAM_STAT_ALL], sign);
    vr_stat_add(&device->segment[vr_stat_view(segment->small)], sign);
    vr_reserved_add(shard, segment->small, sign * (int64_t)segment->size);
    if (segment->oversize) vr_stat_add(&device->oversize_segments, sign);
    if (shard->owner != NULL) shard->owner->segments += (uint32_t)sign;
}

// Where in the device's array the first segment above `address` stands.
static size_t position_above(const struct vr_device *device, uint64_t address) {
    size_t above;
    VR_LOWER_BOUND(above, i, 0, device->segment_count, vr_segment_at(device->allocator, device->segments[i])->address <= address);
    return above;
}

static enum vram_status enlist(struct vr_device *device, uint32_t segment, uint64_t address) {
    void *segments = device->segments;
    const enum vram_status status = vr_grow(&segments, &device->segment_capacity, device->segment_count + 1, sizeof *device->segments);
    device->segments = segments;
    VR_TRY(status);
    uint32_t *at = device->segments + position_above(device, address);
    memmove(at + 1, at, (size_t)(device->segments + device->segment_count - at) * sizeof *at);
    *at = segment;
    device->segment_count++;
    return VRAM_OK;
}

static void delist(struct vr_device *device, uint32_t segment) {
    uint32_t *at = device->segments + position_above(device, vr_segment_at(device->allocator, segment)->address) - 1;
    assert(*at == segment);
    device->segment_count--;
    memmove(at, at + 1, (size_t)(device->segments + device->segment_count - at) * sizeof *at);
}

uint32_t vr_block_containing(const struct vr_device *device, uint64_t address) {
    const struct vram_allocator *allocator = device->allocator;
    const size_t above = position_above(device, address);
    if (above == 0) return 0;
    const struct vr_segment *segment = vr_segment_at(allocator, device->segments[above - 1]);
    if (address - segment->address >= segment->size) return 0;
    uint32_t at = segment->first;
    while (address - vr_block_at(allocator, at)->address >= vr_block_at(allocator, at)->size) at = vr_block_at(allocator, at)->next;
    return at;
}

enum vram_status vr_segment_register(struct vr_shard *shard, bool small, const struct vr_segment *facts, uint32_t *segment) {
    struct vram_allocator *allocator = shard->device->allocator;
    VR_TRY(vr_shard_reserve_records(shard, 1));
    uint32_t made = 0;
    VR_TRY(vr_slab_take(&allocator->segments, 1, &made));
    const enum vram_status status = enlist(shard->device, made, facts->address);
    if (status != VRAM_OK) {
        vr_slab_give(&allocator->segments, made);
        return status;
    }
    struct vr_segment *entry = vr_segment_at(allocator, made);
    *entry = *facts;
    entry->counter = atomic_fetch_add_explicit(&registrations, 1, memory_order_relaxed);
    entry->shard = shard->number;
    entry->device = shard->device->ordinal;
    entry->small = small;
    entry->first = shard->spare[--shard->spare_count];
    struct vr_block *block = vr_block_at(allocator, entry->first);
    *block =
        (struct vr_block){.address = facts->address, .size = facts->size, .segment = made, .small = small, .expandable = facts->expandable};
    atomic_store_explicit(&block->shard, shard->number, memory_order_relaxed);
    block->state = facts->expandable ? VR_HOLE : VR_FREE;
    *segment = made;
    return VRAM_OK;
}

void vr_segment_forget(struct vr_shard *shard, uint32_t segment) {
    struct vram_allocator *allocator = shard->device->allocator;
    struct vr_segment *entry = vr_segment_at(allocator, segment);
    delist(shard->device, segment);
    vr_shard_recycle(shard, entry->first);
    *entry = (struct vr_segment){0};
    vr_slab_give(&allocator->segments, segment);
}

static vr_cu_result ask(struct vr_shard *shard, uint64_t size, uint64_t *address) {
    const struct vr_device *device = shard->device;
    if (shard->owner == NULL || shard->owner->options.allocate == NULL) return vr_cu(device->allocator->driver, mem_alloc, address, size);
    const struct vram_pool_options *own = &shard->owner->options;
    *address = own->allocate(size, device->ordinal, shard->stream, own->user);
    return *address == 0 ? VR_CU_OUT_OF_MEMORY : VR_CU_SUCCESS;
}

// The one driver call that the option release_lock_on_cudamalloc takes out of the locks: everything else of the device may change
// meanwhile, so only locals are used after it, and a capture may begin, which the call must not spoil. A private pool could die meanwhile:
// it keeps the locks.
static vr_cu_result ask_driver(struct vr_shard *shard, uint64_t size, uint64_t *address) {
    if (!shard->device->options.release_lock_on_malloc || shard->owner != NULL) return ask(shard, size, address);
    struct vram_driver *driver = shard->device->allocator->driver;
    int mode = VR_CU_STREAM_CAPTURE_MODE_RELAXED;
    const bool relaxed = vr_cu(driver, thread_exchange_capture_mode, &mode) == VR_CU_SUCCESS;
    vr_device_unlock(shard->device);
    const vr_cu_result result = ask(shard, size, address);
    vr_device_lock(shard->device);
    if (relaxed) (void)vr_cu(driver, thread_exchange_capture_mode, &mode);
    return result;
}

// Memory goes back the way it came. What the driver refuses is tried again later.
static enum vram_status give(struct vr_shard *shard, uint64_t address, uint64_t size) {
    struct vr_device *device = shard->device;
    const struct vram_pool *owner = shard->owner;
    if (owner != NULL && owner->options.allocate != NULL) {
        owner->options.deallocate(address, size, device->ordinal, shard->stream, owner->options.user);
        return VRAM_OK;
    }
    if (vr_cu(device->allocator->driver, mem_free, address) == VR_CU_SUCCESS) return VRAM_OK;
    const struct vr_orphan orphan = {.kind = VR_ORPHAN_MEMORY, .handle = address};
    vr_orphan_add(device, &orphan);
    return VRAM_DRIVER;
}

static enum vram_status enter_books(struct vr_shard *shard, bool small, uint64_t address, uint64_t size, uint32_t *block) {
    struct vram_allocator *allocator = shard->device->allocator;
    // Functions of a user may return anything.
    if (address % VR_MIN_BLOCK != 0 || size > UINT64_MAX - address) return VRAM_UNSUPPORTED;
    VR_TRY(vr_address_map_prepare(&allocator->addresses, address, size, small));
    uint32_t segment = 0;
    const bool oversize = size >= shard->device->options.max_split_bytes;
    const struct vr_segment facts = {.address = address, .size = size, .mapped = size, .oversize = oversize};
    const enum vram_status status = vr_segment_register(shard, small, &facts, &segment);
    if (status != VRAM_OK) {
        vr_address_map_retire(&allocator->addresses, address, size, small);
        return status;
    }
    *block = vr_segment_at(allocator, segment)->first;
    return VRAM_OK;
}

enum vram_status vr_segment_make(struct vr_shard *shard, bool small, uint64_t segment_bytes, uint32_t *block) {
    struct vr_device *device = shard->device;
    uint64_t address = 0;
    const vr_cu_result result = ask_driver(shard, segment_bytes, &address);
    if (result == VR_CU_OUT_OF_MEMORY) return VRAM_OUT_OF_MEMORY;
    VR_TRY(vr_driver_status(result));
    const enum vram_status status = enter_books(shard, small, address, segment_bytes, block);
    if (status != VRAM_OK) {
        (void)give(shard, address, segment_bytes);
        return status;
    }
    device->num_device_alloc++;
    struct vr_segment *made = vr_segment_at(device->allocator, vr_block_at(device->allocator, *block)->segment);
    count_segment(shard, made, 1);
    if (vr_has_listener(device)) made->stack = vr_current_stack;
    vr_notify_range(shard, VR_RECORD_SEGMENT_ALLOC, made, address, segment_bytes);
    return VRAM_OK;
}

enum vram_status vr_segment_free(struct vr_shard *shard, uint32_t block) {
    struct vr_device *device = shard->device;
    struct vram_allocator *allocator = device->allocator;
    const uint32_t segment = vr_block_at(allocator, block)->segment;
    const struct vr_segment facts = *vr_segment_at(allocator, segment);
    vr_pool_remove(shard, block);
    vr_notify_range(shard, VR_RECORD_SEGMENT_FREE, &facts, facts.address, facts.size);
    device->num_device_free++;
    count_segment(shard, &facts, -1);
    vr_segment_forget(shard, segment);
    vr_address_map_retire(&allocator->addresses, facts.address, facts.size, facts.small);
    return give(shard, facts.address, facts.size);
}

void vr_segment_drop(struct vr_shard *shard, uint64_t address, uint64_t size) { (void)give(shard, address, size); }

// --- orphans -------------------------------------------------------------------------------------------------------------

void vr_orphan_add(struct vr_device *device, const struct vr_orphan *orphan) {
    void *orphans = device->orphans;
    const enum vram_status status = vr_grow(&orphans, &device->orphan_capacity, device->orphan_count + 1, sizeof *device->orphans);
    device->orphans = orphans;
    if (status == VRAM_OK) device->orphans[device->orphan_count++] = *orphan;
}

static vr_cu_result give_back(struct vram_driver *driver, const struct vr_orphan *orphan) {
    switch (orphan->kind) {
    case VR_ORPHAN_HANDLE: return vr_cu(driver, mem_release, orphan->handle);
    case VR_ORPHAN_RANGE: return vr_cu(driver, mem_address_free, orphan->handle, orphan->size);
    default: return vr_cu(driver, mem_free, orphan->handle);
    }
}

void vr_orphans_retry(struct vr_device *device) {
    size_t kept = 0;
    for (size_t i = 0; i < device->orphan_count; i++) {
        if (give_back(device->allocator->driver, &device->orphans[i]) != VR_CU_SUCCESS) device->orphans[kept++] = device->orphans[i];
    }
    device->orphan_count = kept;
}
