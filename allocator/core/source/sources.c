// Which source a shard grows by.
#include "core/source/source_ops.h"

// Pages may serve others one day: not those of a pool that a graph knows, or that hands out whole segments.
static bool draws_on_pages(const struct vram_pool *owner) {
    return owner == NULL || !(owner->options.for_graph || owner->captured || owner->options.no_split);
}

const struct vr_source_ops *vr_source_of(const struct vr_device *device, const struct vram_pool *owner) {
    if (owner != NULL && owner->options.allocate != NULL) return &vr_source_user_functions;
    if (device->options.paged && device->physical.granularity != 0) return draws_on_pages(owner) ? &vr_source_paged : &vr_source_expandable;
    if (device->options.expandable_segments && device->physical.granularity != 0) return &vr_source_expandable;
    const bool sleeps = device->options.sleepable || (owner != NULL && owner->tag[0] != '\0');
    return sleeps && device->physical.granularity != 0 ? &vr_source_sleepable : &vr_source_cu_mem_alloc;
}
