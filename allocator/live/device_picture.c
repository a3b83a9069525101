#include "live/device_picture.h"

#include "core/alloc.h"
#include "core/source/source_ops.h"

static enum vram_status add_segment(struct vr_picture *picture, const struct vram_allocator *allocator, const struct vr_segment *segment,
                                    uint64_t address) {
    VR_TRY(VR_GROW(picture, segments, picture->segment_count + 1));
    const struct vr_shard *shard = allocator->shards[segment->shard];
    picture->segments[picture->segment_count++] = (struct vr_picture_segment){
        .address = address,
        .stream = shard->stream,
        .counter = segment->counter,
        .pool = shard->owner == NULL ? (struct vram_pool_id){0, 0} : shard->owner->id,
        .stack = vr_history_stack(segment->stack),
        .small = segment->small != 0,
        .expandable = segment->expandable != 0,
        .vacant = segment->vacant != 0,
        .first_block = picture->block_count,
    };
    return VRAM_OK;
}

static enum vram_status add_block(struct vr_picture *picture, const struct vr_block *block) {
    VR_TRY(VR_GROW(picture, blocks, picture->block_count + 1));
    const bool free = vr_is_cached(block->state);
    picture->blocks[picture->block_count++] = (struct vr_picture_block){
        .address = block->address,
        .size = block->size,
        .requested = free ? 0 : block->requested,
        .stack = free ? 0 : vr_history_stack(block->stack),
        .words = free ? 0 : block->words,
        .state = free ? VR_FREE : block->state,
    };
    picture->segments[picture->segment_count - 1].size += block->size;
    if (!free) picture->active_bytes += block->size;
    return VRAM_OK;
}

static enum vram_status add_pictured(struct vr_picture *picture, const struct vr_device *device, const struct vr_segment *segment) {
    struct vr_block *blocks = NULL;
    size_t count = 0;
    bool inside = false;
    VR_TRY(segment->source->blocks(device, segment, &blocks, &count));
    enum vram_status status = VRAM_OK;
    for (size_t i = 0; i < count && status == VRAM_OK; i++) {
        const bool hole = blocks[i].state == VR_HOLE;
        if (!hole && !inside) status = add_segment(picture, device->allocator, segment, blocks[i].address);
        if (!hole && status == VRAM_OK) status = add_block(picture, &blocks[i]);
        inside = !hole;
    }
    free(blocks);
    return status;
}

static enum vram_status add_runs(struct vr_picture *picture, const struct vr_device *device, const struct vr_segment *segment) {
    const struct vram_allocator *allocator = device->allocator;
    if (segment->source->blocks != NULL) return add_pictured(picture, device, segment);
    bool inside = false;
    for (uint32_t at = segment->first; at != 0; at = vr_block_at(allocator, at)->next) {
        const struct vr_block *block = vr_block_at(allocator, at);
        if (block->state == VR_HOLE) {
            inside = false;
            continue;
        }
        if (!inside) VR_TRY(add_segment(picture, allocator, segment, block->address));
        inside = true;
        VR_TRY(add_block(picture, block));
    }
    return VRAM_OK;
}

// A block outside of the pools is a segment of its own.
static enum vram_status add_raw(struct vr_picture *picture, const struct vr_raw_block *block) {
    VR_TRY(VR_GROW(picture, segments, picture->segment_count + 1));
    VR_TRY(VR_GROW(picture, blocks, picture->block_count + 1));
    picture->segments[picture->segment_count++] = (struct vr_picture_segment){.address = block->address,
                                                                              .size = block->size,
                                                                              .stream = block->stream,
                                                                              .pool = block->pool,
                                                                              .stack = vr_history_stack(block->stack),
                                                                              .first_block = picture->block_count};
    picture->blocks[picture->block_count++] = (struct vr_picture_block){.address = block->address,
                                                                        .size = block->size,
                                                                        .requested = block->size,
                                                                        .stack = vr_history_stack(block->stack),
                                                                        .state = block->postponed ? VR_PENDING : VR_ALLOCATED};
    picture->active_bytes += block->size;
    return VRAM_OK;
}

// Adds the segments and the blocks outside the pools, merged by ascending address.
static enum vram_status add_all(const struct vr_device *device, const struct vram_pool *only, const struct vr_raw_block *raw, size_t count,
                                struct vr_picture *picture) {
    const struct vram_allocator *allocator = device->allocator;
    size_t next = 0;
    for (uint32_t number = vr_segment_first(device); number != 0; number = vr_segment_after(device, number)) {
        const struct vr_segment *segment = vr_segment_at(allocator, number);
        if (only != NULL && allocator->shards[segment->shard]->owner != only) continue;
        while (next < count && raw[next].address < segment->address) VR_TRY(add_raw(picture, &raw[next++]));
        VR_TRY(add_runs(picture, device, segment));
    }
    while (next < count) VR_TRY(add_raw(picture, &raw[next++]));
    return VRAM_OK;
}

static enum vram_status take_picture_locked(const struct vr_device *device, const struct vram_pool *only, struct vr_picture *picture) {
    struct vr_raw_block *raw = NULL;
    size_t count = 0;
    VR_TRY(vr_raw_copy(device, only, &raw, &count));
    const enum vram_status status = add_all(device, only, raw, count, picture);
    free(raw);
    return status;
}

enum vram_status vr_picture_take(struct vr_device *device, const struct vram_pool *only, struct vr_picture *picture,
                                 void (*at)(struct vr_device *device, const struct vr_picture *picture, void *user), void *user) {
    vr_device_lock(device);
    const enum vram_status status = take_picture_locked(device, only, picture);
    if (status == VRAM_OK && at != NULL) at(device, picture, user);
    vr_device_unlock(device);
    return status;
}

void vr_picture_release(struct vr_picture *picture) {
    free(picture->segments);
    free(picture->blocks);
    *picture = (struct vr_picture){0};
}
