// Segments by cuMemAlloc: what cudaMalloc is in PyTorch.
#include "core/device.h"
#include "core/source/source_ops.h"

static vr_cu_result ask_driver(struct vr_shard *shard, uint64_t size, uint64_t *address) {
    return vr_cu(shard->device->allocator->driver, mem_alloc, address, size);
}

// The one driver call that the option release_lock_on_cudamalloc takes out of the locks: everything else of the device may change
// meanwhile, so only locals are used after it, and a capture may begin, which the call must not spoil. A private pool could die meanwhile:
// it keeps the locks.
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
    return vr_give_back(shard->device, &(struct vr_driver_memory){give_memory, address, size});
}

const struct vr_source_ops vr_source_cu_mem_alloc = {
    .name = "cuMemAlloc",
    .sharing = VR_SHARING_SEGMENT,
    VR_WHOLE_SEGMENTS,
    .take = take_cu_memory,
    .give = give_cu_memory,
};
