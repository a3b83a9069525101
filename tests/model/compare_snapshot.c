// Compares vram_snapshot() with the naive model: every block, and their segments.
#include "model/both.h"

#include <inttypes.h>

#include "model/recording.h"
#include "vram/snapshot.h"

struct walk {
    struct both *both;
    const struct vr_model *model;
    size_t segment, block; // next rows to compare
};

static bool wrong(const struct walk *walk, const char *what, uint64_t found, uint64_t expected) {
    both_differ(walk->both, "snapshot: %s: found 0x%" PRIx64 ", expected 0x%" PRIx64, what, found, expected);
    return false;
}
#define EQUAL(what, found, expected)                                                                                                       \
    if ((uint64_t)(found) != (uint64_t)(expected)) return wrong(walk, what, (uint64_t)(found), (uint64_t)(expected))

// Compares the facts of a segment that each of its blocks has.
static bool equal_segment(const struct walk *walk, const struct vram_block_view *view) {
    const struct vr_segments *segments = &walk->model->segments;
    const size_t row = walk->segment;
    EQUAL("device", segments->device[row], view->block.device);
    EQUAL("stream", segments->stream[row], view->block.stream);
    EQUAL("pool", segments->pool_first[row], view->block.pool.first);
    EQUAL("user's pool", segments->pool_second[row], view->block.pool.second);
    EQUAL("expandable", segments->expandable[row], view->block.expandable);
    EQUAL("kind", segments->kind[row], view->small_pool ? VR_KIND_SMALL : VR_KIND_LARGE);
    if (view->block.expandable) return true;
    EQUAL("segment", segments->address[row], view->block.segment_address);
    EQUAL("bytes of the segment", segments->total_bytes[row], view->block.segment_bytes);
    return true;
}

static bool equal_block(struct walk *walk, const struct vram_block_view *view) {
    static const uint8_t states[] = {
        [VRAM_BLOCK_FREE] = VR_STATE_INACTIVE, [VRAM_BLOCK_ALLOCATED] = VR_STATE_ALLOCATED, [VRAM_BLOCK_PENDING] = VR_STATE_PENDING_FREE};
    const struct vr_model *model = walk->model;
    const size_t row = walk->block++;
    if (row >= model->blocks.count) return wrong(walk, "number of blocks", model->blocks.count, row + 1);
    while (model->segments.first_block[walk->segment + 1] <= row) walk->segment++;
    EQUAL("address", model->blocks.address[row], view->block.address);
    EQUAL("size", model->blocks.size_bytes[row], view->block.size_bytes);
    EQUAL("requested bytes", model->blocks.requested_bytes[row], view->block.requested_bytes);
    EQUAL("state", model->blocks.state[row], states[view->state]);
    return equal_segment(walk, view);
}

// Checks that a segment's sums are those of its blocks, which cover it without gaps.
static bool equal_sums(const struct walk *walk, size_t row) {
    const struct vr_model *model = walk->model;
    uint64_t total = 0, allocated = 0, active = 0, requested = 0;
    for (uint64_t i = model->segments.first_block[row]; i < model->segments.first_block[row + 1]; i++) {
        const uint64_t size = model->blocks.size_bytes[i];
        EQUAL("place of a block", model->blocks.address[i], model->segments.address[row] + total);
        total += size;
        allocated += model->blocks.state[i] == VR_STATE_ALLOCATED ? size : 0;
        active += model->blocks.state[i] == VR_STATE_INACTIVE ? 0 : size;
        requested += model->blocks.requested_bytes[i];
    }
    EQUAL("total bytes", model->segments.total_bytes[row], total);
    EQUAL("allocated bytes", model->segments.allocated_bytes[row], allocated);
    EQUAL("active bytes", model->segments.active_bytes[row], active);
    EQUAL("requested bytes of a segment", model->segments.requested_bytes[row], requested);
    return true;
}

static bool equal_model(struct both *both, const struct vr_model *model) {
    struct walk all = {.both = both, .model = model}, *walk = &all;
    for (uint32_t device = 0; device < both->device_count; device++) {
        size_t count = 0;
        const struct vram_block_view *views = naive_picture(both->naive, device, &count);
        for (size_t i = 0; i < count; i++) {
            if (!equal_block(walk, &views[i])) return false;
        }
    }
    EQUAL("blocks", model->blocks.count, walk->block);
    for (size_t row = 0; row < model->segments.count; row++) {
        if (!equal_sums(walk, row)) return false;
    }
    return true;
}

bool both_compare_snapshot(struct both *both) {
    struct vram_recording *recording = NULL;
    const enum vram_status status = vram_snapshot(both->world.allocator, NULL, &recording, NULL);
    // The snapshot itself is recorded.
    vr_world_forget(&both->world);
    if (status != VRAM_OK) {
        both_differ(both, "vram_snapshot: %s", vram_status_name(status));
        return false;
    }
    const bool equal = equal_model(both, vr_recording_model(recording));
    vram_recording_destroy(recording);
    return equal;
}
