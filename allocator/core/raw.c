// Blocks that go straight to the driver while caching is off.
#include "core/raw.h"
#include "core/device.h"
#include "core/source/backend.h"

// Under the device's locks, so that a picture and the history agree.
static enum vram_status enter_raw(struct vr_device *device, struct vr_raw_block *block) {
    vr_device_lock(device);
    if (vr_has_listener(device)) block->stack = vr_current_stack;
    const enum vram_status status = vr_raw_remember(device->allocator, block);
    if (status == VRAM_OK) vr_notify_raw(device, VR_RECORD_ALLOC, block);
    vr_device_unlock(device);
    return status;
}

enum vram_status vr_raw_malloc(struct vr_device *device, uint64_t size_bytes, uint64_t stream, uint64_t *address) {
    struct vram_allocator *allocator = device->allocator;
    struct vr_context_guard guard;
    VR_TRY(vr_context_enter(device, &guard));
    struct vr_raw_block block = {.size = size_bytes, .stream = stream, .device = device->ordinal};
    const vr_cu_result result = vr_cu(allocator->driver, mem_alloc, &block.address, size_bytes);
    enum vram_status status = result == VR_CU_OUT_OF_MEMORY ? VRAM_OUT_OF_MEMORY : vr_driver_status(result);
    if (status == VRAM_OK) {
        status = enter_raw(device, &block);
        if (status != VRAM_OK) VR_CU_INSIST(allocator->driver, mem_free, block.address);
    }
    vr_context_leave(&guard);
    if (status == VRAM_OK) *address = block.address;
    return status;
}

static enum vram_status give_back_raw(struct vram_allocator *allocator, const struct vr_raw_block *block) {
    struct vr_device *device = vr_device_if_used(allocator, block->device);
    struct vr_context_guard guard;
    VR_TRY(vr_context_enter(device, &guard));
    const enum vram_status status = vr_driver_status(vr_cu(allocator->driver, mem_free, block->address));
    vr_context_leave(&guard);
    return status;
}

// The driver is called under the locks: nobody may be told of the next block at this address before the end of this one.
static enum vram_status free_direct(struct vr_device *device, uint64_t address) {
    struct vram_allocator *allocator = device->allocator;
    struct vr_raw_block block;
    vr_device_lock(device);
    // Another thread may have freed it since.
    enum vram_status status = vr_raw_find(allocator, address, &block) ? give_back_raw(allocator, &block) : VRAM_INVALID_POINTER;
    if (status == VRAM_OK) {
        vr_notify_raw(device, VR_RECORD_FREE_REQUESTED, &block);
        vr_notify_raw(device, VR_RECORD_FREE_COMPLETED, &block);
        vr_raw_forget(allocator, address);
    }
    vr_device_unlock(device);
    return status;
}

enum vram_status vr_raw_free(struct vram_allocator *allocator, uint64_t address) {
    if (allocator->backend->free != NULL) {
        const enum vram_status status = allocator->backend->free(allocator, address);
        if (status != VRAM_INVALID_POINTER) return status;
    }
    struct vr_raw_block block;
    if (!vr_raw_find(allocator, address, &block) || block.driver_pool) return VRAM_INVALID_POINTER;
    struct vr_device *device = vr_device_if_used(allocator, block.device);
    vr_gather(device, VR_LEVEL_ALL, 2);
    return free_direct(device, address);
}

void vr_raw_release(struct vram_allocator *allocator) {
    struct vr_raw *raw = &allocator->raw;
    for (size_t i = 0; i < raw->capacity; i++) {
        int tries = raw->slots[i].address == 0 ? VR_CU_TRIES : 0;
        while (tries < VR_CU_TRIES && give_back_raw(allocator, &raw->slots[i]) != VRAM_OK) tries++;
    }
    free(raw->slots);
    vr_mutex_destroy(&raw->mutex);
    *raw = (struct vr_raw){0};
}
