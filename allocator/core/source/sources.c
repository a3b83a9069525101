// Chooses the source of a shard, and calls the source that has data for a shard or device.
#include "core/source/source_ops.h"

// Pages may be moved to other pools later, so pools that a graph uses, or that hand out whole segments, do not use them.
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

// --- data of sources --------------------------------------------------------------------------------------------------------------------

bool vr_source_must_grow(struct vr_shard *shard, uint64_t rounded) {
    return shard->device->kept == NULL || shard->device->kept->source->must_grow(shard, rounded);
}

enum vram_status vr_source_settle(struct vr_device *device) {
    return device->kept == NULL ? VRAM_OK : device->kept->source->settle(device);
}

enum vram_status vr_source_give_back_free(struct vr_device *device, uint64_t enough) {
    return device->kept == NULL ? VRAM_OK : device->kept->source->give_back_free(device, enough);
}

enum vram_status vr_source_give_back_of_pool(struct vram_pool *pool) {
    return pool->device->kept == NULL ? VRAM_OK : pool->device->kept->source->give_back_of_pool(pool);
}

void vr_source_hand_over(struct vram_pool *pool) {
    if (pool->device->kept != NULL) pool->device->kept->source->hand_over(pool);
}

void vr_source_park(struct vr_shard *shard) {
    if (shard->kept != NULL) shard->kept->source->park(shard);
}

void vr_source_count_free(struct vr_device *device, uint64_t *bytes, uint64_t *largest) {
    if (device->kept != NULL) device->kept->source->count_free(device, bytes, largest);
}

void vr_source_count_held(const struct vr_device *device, const struct vram_pool *only, struct vr_held_bytes *held) {
    *held = (struct vr_held_bytes){.there = {0}};
    if (device->kept != NULL) device->kept->source->count_held(device, only, held);
}

enum vram_status vr_source_each_slot(const struct vr_device *device, const struct vram_pool *only, vr_slot_visitor visit, void *user) {
    return device->kept == NULL ? VRAM_OK : device->kept->source->each_slot(device, only, visit, user);
}

enum vram_status vr_source_check_device(struct vr_device *device, struct vram_error *error) {
    return device->kept == NULL ? VRAM_OK : device->kept->source->check_device(device, error);
}

void vr_source_end_threads(struct vr_device *device) {
    if (device->kept != NULL) device->kept->source->end_threads(device);
}

void vr_source_close(struct vr_device *device) {
    if (device->kept != NULL) device->kept->source->close(device);
}
