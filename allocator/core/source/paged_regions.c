// Regions: reserved addresses, and the page that each window shows.
#include "core/device.h"
#include "core/hole_runs.h"
#include "core/source/paged.h"
#include "core/source/source_ops.h"

#define PRIVATE_FIRST (4 * VR_GIB)

size_t vr_paged_table_bytes(const struct vr_paged_device *device, uint64_t size) {
    const size_t bytes = (size_t)(size / device->unit) * sizeof(uint32_t);
    return vr_is_power_of_2(bytes) ? bytes : (size_t)2 << vr_log2_floor(bytes);
}

struct vr_paged_region *vr_paged_region_of(const struct vr_paged_shard *own, uint64_t address) {
    for (size_t i = own->region_count; i-- > 0;) {
        if (address - own->regions[i].address < own->regions[i].size) return &own->regions[i];
    }
    return NULL;
}

struct vr_paged_region *vr_paged_region_of_segment(const struct vr_device *device, const struct vr_segment *segment,
                                                   struct vr_paged_shard **own) {
    struct vr_paged_shard *near = vr_paged_of(device->allocator->shards[segment->shard]);
    if (near != NULL && segment->small) near = near->small;
    struct vr_paged_region *region = near == NULL ? NULL : vr_paged_region_of(near, segment->address);
    for (struct vr_paged_shard *at = vr_paged_device(device)->shards; region == NULL; at = at->next) {
        region = vr_paged_region_of(at, segment->address);
        near = at;
    }
    *own = near;
    return region;
}

uint32_t vr_paged_page_of(const struct vr_paged_device *device, const struct vr_paged_region *region, uint64_t address, uint64_t *base) {
    const uint64_t last = (address - region->address) / device->unit, most = VR_PAGED_LARGEST / device->unit;
    for (uint64_t at = last + 1; at-- > 0 && last - at < most;) {
        if (region->units[at] == 0) continue;
        *base = region->address + at * device->unit;
        const uint32_t page = region->units[at] - 1;
        return address - *base < vr_paged_page_at(device, page)->size ? page : 0;
    }
    return 0;
}

// Returns how much address space to reserve: twice the device's memory. Private pools, of which there may be many, start smaller and double
// with each region.
static uint64_t region_bytes(const struct vr_paged_shard *own, uint64_t least) {
    const uint64_t full = own->device->device->total_bytes * 2;
    uint64_t size = own->shard->owner == NULL ? full : PRIVATE_FIRST;
    for (size_t i = 0; i < own->region_count && size < full; i++) size *= 2;
    if (size > full) size = full;
    return vr_round_up(size > least * 2 ? size : least * 2, own->device->unit);
}

static enum vram_status add_region(struct vr_paged_shard *own, uint64_t least) {
    struct vr_device *device = own->device->device;
    VR_TRY(VR_GROW(own, regions, own->region_count + 1));
    struct vr_segment facts = {.page_size = own->device->unit, .source = own->kept.source};
    facts.size = region_bytes(own, least);
    void *units = NULL;
    VR_TRY(vr_os_reserve(vr_paged_table_bytes(own->device, facts.size), &units));
    const vr_cu_result result = vr_cu(device->allocator->driver, mem_address_reserve, &facts.address, facts.size, 0, 0, 0);
    enum vram_status status = result == VR_CU_OUT_OF_MEMORY ? VRAM_OUT_OF_MEMORY : vr_driver_status(result);
    uint32_t segment = 0;
    if (status == VRAM_OK) {
        status = facts.address % VR_MIB == 0 ? vr_segment_register(own->shard, own->is_small, &facts, &segment) : VRAM_UNSUPPORTED;
        if (status != VRAM_OK) vr_drop_range(device, facts.address, facts.size);
    }
    if (status != VRAM_OK) {
        vr_os_unreserve(units, vr_paged_table_bytes(own->device, facts.size));
        return status;
    }
    if (own->is_small) vr_hole_insert(own->shard, vr_segment_at(device->allocator, segment)->first);
    own->regions[own->region_count++] =
        (struct vr_paged_region){.segment = segment, .address = facts.address, .size = facts.size, .end = facts.address, .units = units};
    return VRAM_OK;
}

enum vram_status vr_paged_addresses(struct vr_paged_shard *own, uint64_t size, bool gap, uint64_t *address) {
    const uint64_t unit = own->device->unit, before = gap ? unit : 0;
    const struct vr_paged_region *last = own->region_count == 0 ? NULL : &own->regions[own->region_count - 1];
    // The last unit of a region stays empty, so that no run continues into another region.
    if (last == NULL || last->end + before + size + unit > last->address + last->size) {
        VR_TRY(add_region(own, size + 2 * unit));
        *address = own->regions[own->region_count - 1].address;
        return VRAM_OK;
    }
    *address = last->end + before;
    return VRAM_OK;
}
