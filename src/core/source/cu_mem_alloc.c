// Segments by cuMemAlloc: what cudaMalloc is in PyTorch.
#include "core/device.h"
#include "core/source/source_ops.h"

static vr_cu_result ask(struct vr_shard *shard, uint64_t size, uint64_t *address) {
    return vr_cu(shard->device->allocator->driver, mem_alloc, address, size);
}

// The one driver call that the option release_lock_on_cudamalloc takes out of the locks: everything else of the device may change
// meanwhile, so only locals are used after it, and a capture may begin, which the call must not spoil. A private pool could die meanwhile:
// it keeps the locks.
static vr_cu_result take(struct vr_shard *shard, uint64_t size, uint64_t *address) {
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

// What the driver refuses is tried again later.
static enum vram_status give(struct vr_shard *shard, uint64_t address, uint64_t size) {
    struct vr_device *device = shard->device;
    (void)size;
    if (vr_cu(device->allocator->driver, mem_free, address) == VR_CU_SUCCESS) return VRAM_OK;
    const struct vr_orphan orphan = {.kind = VR_ORPHAN_MEMORY, .handle = address};
    vr_orphan_add(device, &orphan);
    return VRAM_DRIVER;
}

const struct vr_source_ops vr_source_cu_mem_alloc = {
    .name = "cuMemAlloc",
    .sharing = VR_SHARING_SEGMENT,
    .grow = vr_whole_grow,
    .returnable = vr_whole_returnable,
    .give_back = vr_whole_give_back,
    .drop = vr_whole_drop,
    .take = take,
    .give = give,
};
