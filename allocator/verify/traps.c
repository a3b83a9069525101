// traps.c: removes access to the pages of quarantined blocks, so that the device itself stops a late read or write.
#include "core/device.h"
#include "verify/verify.h"

// Gets the range of whole pages inside a block. Returns false if there are none, or if the segment is not made of pages.
static bool find_pages(const struct vr_device *device, const struct vr_block *item, uint64_t *low, uint64_t *high) {
    const struct vr_segment *segment = vr_segment_at(device->allocator, item->segment);
    if (segment->pages == NULL || segment->page_size == 0 || segment->exported != NULL) return false;
    const uint64_t begin = item->address - segment->address, end = begin + item->size;
    *low = segment->address + vr_round_up(begin, segment->page_size);
    *high = segment->address + end / segment->page_size * segment->page_size;
    return *low < *high;
}

static vr_cu_result set_access(const struct vr_device *device, uint64_t low, uint64_t high, int32_t flags) {
    struct vr_cu_access_desc access[VRAM_MAX_DEVICES];
    uint64_t count = 0;
    vr_access_list(device, access, &count);
    for (uint64_t i = 0; i < count; i++) access[i].flags = flags;
    return vr_cu(device->allocator->driver, mem_set_access, low, high - low, access, count);
}

void vr_trap_set(const struct vr_device *device, struct vr_verified_block *block, const struct vr_block *item) {
    uint64_t low, high;
    if (!find_pages(device, item, &low, &high)) return;
    // The poison must be there first.
    if (vr_cu(device->allocator->driver, stream_synchronize, block->stream) != VR_CU_SUCCESS) return;
    if (set_access(device, low, high, VR_CU_MEM_ACCESS_FLAGS_PROT_NONE) != VR_CU_SUCCESS) return;
    block->trap_low = low;
    block->trap_high = high;
}

void vr_trap_clear(const struct vr_device *device, struct vr_verified_block *block) {
    for (int tries = 0; tries < VR_CU_TRIES && block->trap_low != block->trap_high; tries++) {
        if (set_access(device, block->trap_low, block->trap_high, VR_CU_MEM_ACCESS_FLAGS_PROT_READWRITE) == VR_CU_SUCCESS)
            block->trap_low = block->trap_high = 0;
    }
}
