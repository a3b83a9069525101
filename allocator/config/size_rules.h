// size_rules.h: the size rules (allocator.md §sizes): how a request is rounded, which pool it uses, and how large its segment is. Pure
// functions of the settings, used by the allocator, replay and analysis.
#ifndef VR_CONFIG_SIZE_RULES_H
#define VR_CONFIG_SIZE_RULES_H

#include "config/options.h"

enum { VR_MIN_BLOCK = 512 };

#define VR_SMALL_LIMIT      (1 * VR_MIB) // largest rounded size of the small pool
#define VR_SMALL_SEGMENT    (2 * VR_MIB) // every segment of the small pool; also its expandable page
#define VR_MADE_TO_MEASURE  (10 * VR_MIB)
#define VR_SEGMENT_ROUNDING (2 * VR_MIB)
#define VR_ALIGNED_FROM     (2 * VR_MIB) // smallest request that base_addr_aligned_kb aligns
#define VR_REQUEST_LIMIT    ((uint64_t)1 << 60)

// --- the size of a block
// --------------------------------------------------------------------------------------------------------------------

VR_INLINE uint64_t vr_round_plain(uint64_t size_bytes) { return (size_bytes + VR_MIN_BLOCK - 1) & ~(uint64_t)(VR_MIN_BLOCK - 1); }

// Rounds up to the next multiple of 1/divisor of the power of two below. divisor: a power of two, at least 2.
VR_INLINE uint64_t vr_round_divided(uint64_t size_bytes, uint32_t divisor) {
    if (vr_is_power_of_2(size_bytes)) return size_bytes;
    const uint64_t floor = (uint64_t)1 << vr_log2_floor(size_bytes), step = floor >> vr_log2_floor(divisor);
    return step == 0 ? floor << 1 : (size_bytes + step - 1) & ~(step - 1);
}

// Returns the block size for a request of size_bytes in [1, VR_REQUEST_LIMIT) (allocator.md §sizes).
VR_INLINE uint64_t vr_round_request(const struct vr_options *options, uint64_t size_bytes) {
    size_bytes += options->request_padding_bytes;
    if (size_bytes < VR_MIN_BLOCK) return VR_MIN_BLOCK;
    const uint32_t divisor = vr_options_divisor(options, size_bytes);
    return divisor > 1 && size_bytes > (uint64_t)VR_MIN_BLOCK * divisor ? vr_round_divided(size_bytes, divisor)
                                                                        : vr_round_plain(size_bytes);
}

// --- its pool and segment
// ------------------------------------------------------------------------------------------------------------------

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
