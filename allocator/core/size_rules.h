// size_rules.h: the size rules (allocator.md §sizes): how a request is rounded, which pool it uses, and how large its segment is. Pure
// functions; replay uses them too.
#ifndef VR_CORE_SIZE_RULES_H
#define VR_CORE_SIZE_RULES_H

#include "config/rounding.h"

#define VR_SMALL_LIMIT      (1 * VR_MIB) // largest rounded size of the small pool
#define VR_SMALL_SEGMENT    (2 * VR_MIB) // every segment of the small pool; also its expandable page
#define VR_MADE_TO_MEASURE  (10 * VR_MIB)
#define VR_SEGMENT_ROUNDING (2 * VR_MIB)
#define VR_ALIGNED_FROM     (2 * VR_MIB) // smallest request that base_addr_aligned_kb aligns
#define VR_REQUEST_LIMIT    ((uint64_t)1 << 60)

VR_INLINE bool vr_is_small(uint64_t rounded) { return rounded <= VR_SMALL_LIMIT; }

// Returns the large segment size, limited so that sums with it do not overflow. No request is larger.
VR_INLINE uint64_t vr_large_segment(const struct vr_options *options) {
    return options->large_segment_bytes < VR_REQUEST_LIMIT ? options->large_segment_bytes : VR_REQUEST_LIMIT;
}

// Returns the size of the cudaMalloc call for a request (allocator.md §sizes).
VR_INLINE uint64_t vr_segment_size(const struct vr_options *options, uint64_t rounded) {
    if (vr_is_small(rounded)) return VR_SMALL_SEGMENT;
    if (rounded < VR_MADE_TO_MEASURE) return vr_large_segment(options);
    return vr_round_up(rounded, VR_SEGMENT_ROUNDING);
}

// Returns where a request's block begins within a free block at `address` in an expandable segment: at the next multiple of the
// alignment, if the block's `size` leaves room for that (allocator.md §splitting).
VR_INLINE uint64_t vr_aligned_address(const struct vr_options *options, uint64_t address, uint64_t size, uint64_t rounded) {
    const uint64_t alignment = (uint64_t)options->base_alignment_kib * 1024;
    if (alignment == 0 || rounded < VR_ALIGNED_FROM || address % alignment == 0) return address;
    const uint64_t below = alignment - address % alignment;
    return below <= size - rounded ? address + below : address;
}

#endif
