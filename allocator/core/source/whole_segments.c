// Segments that are allocated and freed whole: the common part of such sources, and the two simplest: cuMemAlloc, and a private pool's user
// functions.
#include "core/device.h"
#include "core/source/source_ops.h"
#include "core/verifier.h"

static void count_segment(struct vr_shard *shard, const struct vr_segment *segment, int64_t sign) {
    struct vr_device *device = shard->device;
    vr_stat_add(&device->stats.segment[VRAM_STAT_ALL], sign);
    vr_stat_add(&device->stats.segment[vr_stat_view(segment->small)], sign);
    vr_reserved_add(shard, segment->small, sign * (int64_t)segment->size);
    if (segment->oversize) vr_stat_add(&device->stats.oversize_segments, sign);
    if (shard->owner != NULL) shard->owner->segments += (uint32_t)sign;
}

void vr_whole_count_gone(struct vr_shard *shard, const struct vr_segment *segment) {
    vr_reserved_add(shard, segment->small, (int64_t)segment->away);
    count_segment(shard, segment, -1);
}

static enum vram_status enter_books(struct vr_shard *shard, bool small, const struct vr_segment *facts, uint32_t *block) {
    struct vram_allocator *allocator = shard->device->allocator;
    // User functions may return anything.
    if (facts->address % VR_MIN_BLOCK != 0 || facts->size > UINT64_MAX - facts->address) return VRAM_UNSUPPORTED;
    VR_TRY(vr_address_map_prepare(&allocator->addresses, facts->address, facts->size, small));
    uint32_t segment = 0;
    const enum vram_status status = vr_segment_register(shard, small, facts, &segment);
    if (status != VRAM_OK) {
        vr_address_map_retire(&allocator->addresses, facts->address, facts->size, small);
        return status;
    }
    *block = vr_segment_at(allocator, segment)->first;
    return VRAM_OK;
}

// Poisons a new segment, with the redzone in front of it.
static void poison_segment(struct vr_shard *shard, struct vr_segment *segment) {
    struct vr_verifier *verifier = shard->device->allocator->verifier;
    const uint64_t front = segment->source == &vr_source_cu_mem_alloc ? VR_REDZONE_BYTES : 0;
    segment->front = front != 0;
    segment->poisoned = verifier->poison(verifier, shard, segment->address - front, segment->size + front);
}

enum vram_status vr_whole_make(struct vr_shard *shard, const struct vr_source_ops *source, bool small, uint64_t segment_bytes,
                               uint32_t *block) {
    struct vr_device *device = shard->device;
    struct vr_segment facts = {.size = segment_bytes, .mapped = segment_bytes, .source = source};
    const vr_cu_result result = source->take(shard, segment_bytes, &facts.address);
    if (result == VR_CU_OUT_OF_MEMORY) return VRAM_OUT_OF_MEMORY;
    VR_TRY(vr_driver_status(result));
    facts.oversize = segment_bytes >= device->options.max_split_bytes;
    const enum vram_status status = enter_books(shard, small, &facts, block);
    if (status != VRAM_OK) {
        (void)source->give(shard, facts.address, segment_bytes);
        return status;
    }
    device->stats.num_device_alloc++;
    struct vr_segment *made = vr_segment_at(device->allocator, vr_block_at(device->allocator, *block)->segment);
    count_segment(shard, made, 1);
    if (device->allocator->verifier != NULL) poison_segment(shard, made);
    if (vr_has_listener(device)) made->stack = vr_current_stack_kept();
    vr_notify_range(shard, VR_RECORD_SEGMENT_ALLOC, made, facts.address, segment_bytes);
    return VRAM_OK;
}

enum vram_status vr_whole_grow(struct vr_shard *shard, bool small, uint64_t rounded, uint32_t *block) {
    return vr_whole_make(shard, shard->source, small, vr_segment_size(&shard->device->options, rounded), block);
}

bool vr_whole_returnable(const struct vr_block *block) { return vr_is_unsplit(block); }

enum vram_status vr_whole_give_back(struct vr_shard *shard, uint32_t block) {
    struct vr_device *device = shard->device;
    struct vram_allocator *allocator = device->allocator;
    const uint32_t segment = vr_block_at(allocator, block)->segment;
    const struct vr_segment facts = *vr_segment_at(allocator, segment);
    assert(vr_is_free(allocator, block) && vr_is_unsplit(vr_block_at(allocator, block)) && !facts.expandable);
    vr_pool_remove(shard, block);
    vr_notify_range(shard, VR_RECORD_SEGMENT_FREE, &facts, facts.address, facts.size);
    device->stats.num_device_free++;
    count_segment(shard, &facts, -1);
    vr_segment_forget(shard, segment);
    vr_address_map_retire(&allocator->addresses, facts.address, facts.size, facts.small);
    return facts.source->give(shard, facts.address, facts.size);
}

void vr_whole_drop(struct vr_device *device, struct vr_segment *segment) {
    (void)segment->source->give(device->allocator->shards[segment->shard], segment->address, segment->size);
}

// --- cuMemAlloc: the counterpart of PyTorch's cudaMalloc ---------------------------------------------------------------------------------

static vr_cu_result ask_driver(struct vr_shard *shard, uint64_t size, uint64_t *address) {
    const uint64_t front = shard->device->allocator->front_redzone;
    uint64_t base = 0;
    const vr_cu_result result = vr_cu(shard->device->allocator->driver, mem_alloc, &base, size + front);
    if (result == VR_CU_SUCCESS) *address = base + front;
    return result;
}

// The option release_lock_on_cudamalloc makes this driver call without the locks. Everything else of the device may change meanwhile, so
// only locals are used afterwards. A capture may begin too, and the call must not invalidate it. A private pool keeps the locks, because it
// could be destroyed meanwhile.
static vr_cu_result take_cu_memory(struct vr_shard *shard, uint64_t size, uint64_t *address) {
    if (!shard->device->options.release_lock_on_malloc || shard->owner != NULL) return ask_driver(shard, size, address);
    struct vram_driver *driver = shard->device->allocator->driver;
    int mode = VR_CU_STREAM_CAPTURE_MODE_RELAXED;
    const bool relaxed = vr_cu(driver, thread_exchange_capture_mode, &mode) == VR_CU_SUCCESS;
    vr_device_unlock(shard->device);
    const vr_cu_result result = ask_driver(shard, size, address);
    vr_device_lock(shard->device);
    if (relaxed) VR_CU_INSIST(driver, thread_exchange_capture_mode, &mode);
    return result;
}

static vr_cu_result give_memory(struct vram_driver *driver, uint64_t address, uint64_t size) {
    (void)size;
    return vr_cu(driver, mem_free, address);
}

static enum vram_status give_cu_memory(struct vr_shard *shard, uint64_t address, uint64_t size) {
    const uint64_t front = shard->device->allocator->front_redzone;
    return vr_give_back(shard->device, &(struct vr_driver_memory){give_memory, address - front, size + front});
}

const struct vr_source_ops vr_source_cu_mem_alloc = {
    .name = "cuMemAlloc",
    .sharing = VR_SHARING_SEGMENT,
    VR_WHOLE_SEGMENTS,
    .take = take_cu_memory,
    .give = give_cu_memory,
};

// --- a private pool's user functions -------------------------------------------------------------------------------------------------

static vr_cu_result take_from_user(struct vr_shard *shard, uint64_t size, uint64_t *address) {
    const struct vram_pool_options *own = &shard->owner->options;
    *address = own->allocate(size, shard->device->ordinal, shard->stream, own->user);
    return *address == 0 ? VR_CU_OUT_OF_MEMORY : VR_CU_SUCCESS;
}

static enum vram_status give_to_user(struct vr_shard *shard, uint64_t address, uint64_t size) {
    const struct vram_pool_options *own = &shard->owner->options;
    own->deallocate(address, size, shard->device->ordinal, shard->stream, own->user);
    return VRAM_OK;
}

const struct vr_source_ops vr_source_user_functions = {
    .name = "functions of the user",
    .sharing = VR_SHARING_NONE,
    VR_WHOLE_SEGMENTS,
    .take = take_from_user,
    .give = give_to_user,
};
