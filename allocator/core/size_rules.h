// size_rules.h: the size rules of the allocator (allocator.md §sizes): how a request is rounded, which pool it goes to, how large a
// segment is made for it. Pure functions; replay uses them too.
#ifndef VR_CORE_SIZE_RULES_H
#define VR_CORE_SIZE_RULES_H

#include "config/rounding.h"

#define VR_SMALL_LIMIT      (1 * VR_MIB) // largest rounded size of the small pool
#define VR_SMALL_SEGMENT    (2 * VR_MIB) // every segment of the small pool; also its expandable page
#define VR_MADE_TO_MEASURE  (10 * VR_MIB)
#define VR_SEGMENT_ROUNDING (2 * VR_MIB)
#define VR_ALIGNED_FROM     (2 * VR_MIB) // requests whose block's begin base_addr_aligned_kb concerns
#define VR_REQUEST_LIMIT    ((uint64_t)1 << 60)

VR_INLINE bool vr_is_small(uint64_t rounded) { return rounded <= VR_SMALL_LIMIT; }

// The large segment's size where sums are made with it. No request is larger, so that they stay in their range.
VR_INLINE uint64_t vr_large_segment(const struct vr_options *options) {
    return options->large_segment_bytes < VR_REQUEST_LIMIT ? options->large_segment_bytes : VR_REQUEST_LIMIT;
}

// What cudaMalloc is asked for (allocator.md §sizes).
VR_INLINE uint64_t vr_segment_size(const struct vr_options *options, uint64_t rounded) {
    if (vr_is_small(rounded)) return VR_SMALL_SEGMENT;
    if (rounded < VR_MADE_TO_MEASURE) return vr_large_segment(options);
    return vr_round_up(rounded, VR_SEGMENT_ROUNDING);
}

// Where a block for a request in an expandable segment begins, of a free block at `address` (allocator.md §splitting): at the next multiple
// of the alignment where `size` bytes have room for that.
VR_INLINE uint64_t vr_aligned_address(const struct vr_options *options, uint64_t address, uint64_t size, uint64_t rounded) {
    const uint64_t alignment = (uint64_t)options->base_alignment_kib * 1024;
    if (alignment == 0 || rounded < VR_ALIGNED_FROM || address % alignment == 0) return address;
    const uint64_t below = alignment - address % alignment;
    return below <= size - rounded ? address + below : address;
}

#endif
