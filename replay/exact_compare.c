// Compares an exact replay with the recording: counts differing events, and compares the final state block by block.
#include "replay/exact_replay.h"

// ---- Differences.

enum { KEEP_BY_DEFAULT = 16 };

enum vram_status vr_exact_differ(struct vr_exact *exact, const struct vram_difference *difference) {
    struct vram_exact_device *device = exact->device;
    const size_t keep = exact->options->keep_differences == 0 ? KEEP_BY_DEFAULT : exact->options->keep_differences;
    device->difference_count++;
    if (device->differences_kept >= keep) return VRAM_OK;
    VR_TRY(vr_grow((void **)&device->differences, &exact->difference_capacity, device->differences_kept + 1, sizeof *difference));
    struct vram_difference *kept = &device->differences[device->differences_kept++];
    *kept = *difference;
    if (kept->our_address >= VR_STAGE_HIGH) kept->our_address = 0;
    return VRAM_OK;
}

struct vram_difference vr_exact_difference(const struct vr_exact *exact, enum vram_difference_kind kind, size_t event) {
    const struct vr_history *history = exact->recorded->history;
    return (struct vram_difference){.kind = kind,
                                    .event_index = event,
                                    .stream = vr_entry_stream(history, event),
                                    .size_bytes = history->size_bytes[event],
                                    .recorded_address = history->address[event]};
}

// ---- The final state, block by block: address, size, state and pool.

enum { DEVICE = 0 };

struct views {
    struct vram_block_view *items;
    size_t count;
    size_t capacity;
    bool failed;
};

static bool keep_view(const struct vram_block_view *view, void *user) {
    struct views *views = user;
    views->failed = vr_grow((void **)&views->items, &views->capacity, views->count + 1, sizeof *views->items) != VRAM_OK;
    if (views->failed) return false;
    views->items[views->count++] = *view;
    return true;
}

static bool state_agrees(enum vram_block_state ours, uint8_t recorded) {
    switch (ours) {
    case VRAM_BLOCK_ALLOCATED: return recorded == VR_STATE_ALLOCATED;
    case VRAM_BLOCK_PENDING: return recorded == VR_STATE_PENDING_FREE || recorded == VR_STATE_AWAITING_FREE;
    default: return recorded == VR_STATE_INACTIVE;
    }
}

static enum vram_status differ_in_block(struct vr_exact *exact, const struct vram_block_view *view, uint64_t address, uint64_t size,
                                        uint64_t stream) {
    struct vram_difference difference = {.kind = VRAM_DIFFERENT_FINAL_BLOCK,
                                         .event_index = VRAM_NO_OFFSET,
                                         .stream = stream,
                                         .size_bytes = size,
                                         .recorded_address = address};
    if (view != NULL) {
        difference.our_address = view->block.address;
        difference.our_size_bytes = view->block.size_bytes;
    }
    return vr_exact_differ(exact, &difference);
}

// Counts this allocator's blocks below `address` as extra.
static enum vram_status pass_extra(struct vr_exact *exact, const struct views *views, size_t *at, uint64_t address) {
    for (; *at < views->count && views->items[*at].block.address < address; ++*at) {
        exact->device->final_blocks_extra++;
        VR_TRY(differ_in_block(exact, &views->items[*at], 0, 0, views->items[*at].block.stream));
    }
    return VRAM_OK;
}

static bool pool_agrees(const struct vr_exact *exact, struct vram_pool_id ours, uint32_t pool) {
    const struct vram_pool_id wanted = pool == 0 ? (struct vram_pool_id){0, 0} : vram_get_pool_id(exact->stage.pools[pool]);
    return ours.first == wanted.first && ours.second == wanted.second;
}

static enum vram_status compare_block(struct vr_exact *exact, const struct views *views, size_t *at, size_t row, uint32_t segment) {
    const struct vr_blocks *blocks = &exact->recorded->model->blocks;
    VR_TRY(pass_extra(exact, views, at, blocks->address[row]));
    exact->device->final_blocks++;
    const struct vram_block_view *view =
        *at < views->count && views->items[*at].block.address == blocks->address[row] ? &views->items[*at] : NULL;
    if (view != NULL) ++*at;
    if (view != NULL && view->block.size_bytes == blocks->size_bytes[row] && state_agrees(view->state, blocks->state[row]) &&
        pool_agrees(exact, view->block.pool, vr_recorded_device_segment_pool(exact->recorded, segment))) {
        exact->device->final_blocks_equal++;
        return VRAM_OK;
    }
    return differ_in_block(exact, view, blocks->address[row], blocks->size_bytes[row], exact->recorded->model->segments.stream[segment]);
}

static enum vram_status compare_views(struct vr_exact *exact, const struct views *views) {
    const struct vr_segments *segments = &exact->recorded->model->segments;
    size_t at = 0;
    for (size_t i = 0; i < exact->recorded->segment_count; i++) {
        const uint32_t segment = exact->recorded->segments[i];
        for (uint64_t row = segments->first_block[segment]; row < segments->first_block[segment + 1]; row++) {
            VR_TRY(compare_block(exact, views, &at, row, segment));
        }
    }
    return pass_extra(exact, views, &at, UINT64_MAX);
}

enum vram_status vr_exact_picture(struct vr_exact *exact) {
    struct views views = {0};
    enum vram_status status = vram_walk(exact->stage.allocator, DEVICE, keep_view, &views);
    if (status == VRAM_OK && views.failed) status = VRAM_NO_HOST_MEMORY;
    if (status == VRAM_OK) status = compare_views(exact, &views);
    free(views.items);
    return status;
}
