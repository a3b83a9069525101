// segment_sums.h: what the blocks of one final segment add up to.
#ifndef VR_ANALYZE_SEGMENT_SUMS_H
#define VR_ANALYZE_SEGMENT_SUMS_H

#include "model/model.h"

// Sums over the blocks of a segment (a row of the model).
struct vr_segment_sums {
    uint64_t allocated_bytes, pending_bytes, free_bytes, rounding_bytes, largest_free_bytes;
    size_t blocks;
};
struct vr_segment_sums vr_segment_sum(const struct vr_model *model, size_t row);

#endif
