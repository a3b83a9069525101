// Segments of virtual memory that can sleep (sleepable:True, pools with a tag), of exactly the sizes requested from cuMemAlloc. Each is one
// physical allocation, whose handle is released once it is mapped: from then on, the mapping alone keeps the memory.
#include "core/device.h"
#include "core/source/source_ops.h"

static vr_cu_result map_new(struct vr_device *device, uint64_t address, uint64_t size) {
    struct vram_driver *driver = device->allocator->driver;
    const struct vr_cu_allocation_prop prop = vr_device_allocation_prop(device);
    uint64_t handle = 0;
    vr_cu_result result = vr_cu(driver, mem_create, &handle, size, &prop, 0);
    if (result != VR_CU_SUCCESS) return result;
    result = vr_cu(driver, mem_map, address, size, 0, handle, 0);
    vr_drop_handle(device, handle);
    return result;
}

static vr_cu_result open_to_all(struct vr_device *device, uint64_t address, uint64_t size) {
    struct vr_cu_access_desc access[VRAM_MAX_DEVICES];
    uint64_t count = 0;
    vr_access_list(device, access, &count);
    return vr_cu(device->allocator->driver, mem_set_access, address, size, access, count);
}

// The driver may refuse either call. It keeps a range while it keeps a mapping in it.
static enum vram_status give_range(struct vr_device *device, uint64_t address, uint64_t size) {
    const bool gone = vr_drop_mapping(device, address, size);
    vr_drop_range(device, address, size);
    return gone ? VRAM_OK : VRAM_DRIVER;
}

static vr_cu_result take_sleepable(struct vr_shard *shard, uint64_t size, uint64_t *address) {
    struct vr_device *device = shard->device;
    if (size % device->physical.granularity != 0) return VR_CU_NOT_SUPPORTED;
    uint64_t made = 0;
    vr_cu_result result = vr_cu(device->allocator->driver, mem_address_reserve, &made, size, 0, 0, 0);
    if (result != VR_CU_SUCCESS) return result;
    result = map_new(device, made, size);
    if (result != VR_CU_SUCCESS) {
        vr_drop_range(device, made, size);
        return result;
    }
    result = open_to_all(device, made, size);
    if (result != VR_CU_SUCCESS) {
        (void)give_range(device, made, size);
        return result;
    }
    *address = made;
    return VR_CU_SUCCESS;
}

static enum vram_status give_sleepable(struct vr_shard *shard, uint64_t address, uint64_t size) {
    return give_range(shard->device, address, size);
}

static void drop_sleepable(struct vr_device *device, struct vr_segment *segment) {
    if (segment->away == 0) {
        (void)give_range(device, segment->address, segment->size);
    } else {
        vr_drop_range(device, segment->address, segment->size);
    }
}

static enum vram_status allow_sleepable(struct vr_device *device, const struct vr_segment *segment, uint32_t peer) {
    const struct vr_cu_access_desc access = vr_access_of(peer);
    if (segment->away != 0) return VRAM_OK; // populate_sleepable() gives it access
    return vr_driver_status(vr_cu(device->allocator->driver, mem_set_access, segment->address, segment->size, &access, 1));
}

// --- sleep ----------------------------------------------------------------------------------------------------------------------------

static void count_asleep(struct vr_device *device, struct vr_segment *segment, bool asleep) {
    struct vr_shard *shard = device->allocator->shards[segment->shard];
    segment->away = asleep ? segment->size : 0;
    vr_reserved_add(shard, segment->small, asleep ? -(int64_t)segment->size : (int64_t)segment->size);
    *(asleep ? &device->stats.num_device_free : &device->stats.num_device_alloc) += 1;
    vr_notify_vacant(shard, asleep, segment, segment->address, segment->size);
}

static void vacate_sleepable(struct vr_device *device, struct vr_segment *segment, uint64_t *held) {
    if (segment->away != 0) return;
    if (vr_cu(device->allocator->driver, mem_unmap, segment->address, segment->size) == VR_CU_SUCCESS) {
        count_asleep(device, segment, true);
    } else {
        *held += segment->size;
        segment->uncertain = 1;
    }
}

static enum vram_status populate_sleepable(struct vr_device *device, struct vr_segment *segment, uint64_t address, uint64_t size) {
    (void)address;
    (void)size;
    if (segment->away == 0 && !segment->uncertain) return VRAM_OK;
    if (segment->away != 0) {
        const vr_cu_result result = map_new(device, segment->address, segment->size);
        if (result == VR_CU_OUT_OF_MEMORY) return VRAM_OUT_OF_MEMORY;
        VR_TRY(vr_driver_status(result));
        count_asleep(device, segment, false);
        segment->uncertain = 1;
    }
    VR_TRY(vr_driver_status(open_to_all(device, segment->address, segment->size)));
    segment->uncertain = 0;
    return VRAM_OK;
}

// For a sleeping segment without live blocks.
static void abandon_segment(struct vr_shard *shard, uint32_t number) {
    struct vr_device *device = shard->device;
    const struct vr_segment facts = *vr_segment_at(device->allocator, number);
    assert(facts.away == facts.size);
    vr_whole_count_gone(shard, &facts);
    vr_segment_forget(shard, number);
    vr_address_map_retire(&device->allocator->addresses, facts.address, facts.size, facts.small);
    vr_drop_range(device, facts.address, facts.size);
}

const struct vr_source_ops vr_source_sleepable = {
    .name = "sleepable segments",
    .sharing = VR_SHARING_NONE,
    .grow = vr_whole_grow,
    .returnable = vr_whole_returnable,
    .give_back = vr_whole_give_back,
    .abandon = abandon_segment,
    .drop = drop_sleepable,
    .allow = allow_sleepable,
    .take = take_sleepable,
    .give = give_sleepable,
    .vacate = vacate_sleepable,
    .populate = populate_sleepable,
};
