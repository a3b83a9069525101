#include "analyze/segment_sums.h"

struct vr_segment_sums vr_segment_sum(const struct vr_model *model, size_t row) {
    const struct vr_blocks *blocks = &model->blocks;
    struct vr_segment_sums sums = {0};
    for (uint64_t b = model->segments.first_block[row]; b < model->segments.first_block[row + 1]; b++) {
        const uint64_t size = blocks->size_bytes[b];
        sums.blocks++;
        if (vr_state_allocated(blocks->state[b])) {
            sums.allocated_bytes += size;
            sums.rounding_bytes += size > blocks->requested_bytes[b] ? size - blocks->requested_bytes[b] : 0;
        } else if (vr_state_active(blocks->state[b])) {
            sums.pending_bytes += size;
        } else {
            sums.free_bytes += size;
            if (size > sums.largest_free_bytes) sums.largest_free_bytes = size;
        }
    }
    return sums;
}
