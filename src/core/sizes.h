// sizes.h: the size rules of the allocator (allocator-behaviour 1): how a request is rounded, which pool it goes to, how large a
// segment is made for it. Pure functions; replay uses them too.
#ifndef VR_CORE_SIZES_H
#define VR_CORE_SIZES_H

#include "config/options.h"

enum { VR_MIN_BLOCK = 512 };
#define VR_SMALL_LIMIT      (1 * VR_MIB) // largest rounded size of the small pool
#define VR_SMALL_SEGMENT    (2 * VR_MIB) // every segment of the small pool; also its expandable page
#define VR_MADE_TO_MEASURE  (10 * VR_MIB)
#define VR_SEGMENT_ROUNDING (2 * VR_MIB)
#define VR_REQUEST_LIMIT    ((uint64_t)1 << 60)

VR_INLINE uint64_t vr_round_plain(uint64_t size_bytes) { return (size_bytes + VR_MIN_BLOCK - 1) & ~(uint64_t)(VR_MIN_BLOCK - 1); }

// Up to the next multiple of 1/divisor of the power of two below. divisor: a power of two, at least 2.
VR_INLINE uint64_t vr_round_divided(uint64_t size_bytes, uint32_t divisor) {
    if (vr_is_power_of_2(size_bytes)) return size_bytes;
    const uint64_t floor = (uint64_t)1 << vr_log2_floor(size_bytes), step = floor >> vr_log2_floor(divisor);
    return step == 0 ? floor << 1 : (size_bytes + step - 1) & ~(step - 1);
}

// The block size that answers a request of size_bytes in [1, VR_REQUEST_LIMIT) (1.3).
VR_INLINE uint64_t vr_round_request(const struct vr_options *options, uint64_t size_bytes) {
    if (size_bytes < VR_MIN_BLOCK) return VR_MIN_BLOCK;
    const uint32_t divisor = vr_options_divisor(options, size_bytes);
    return divisor > 1 && size_bytes > (uint64_t)VR_MIN_BLOCK * divisor ? vr_round_divided(size_bytes, divisor)
                                                                        : vr_round_plain(size_bytes);
}

VR_INLINE bool vr_is_small(uint64_t rounded) { return rounded <= VR_SMALL_LIMIT; }

// What cudaMalloc is asked for (1.6).
VR_INLINE uint64_t vr_segment_size(const struct vr_options *options, uint64_t rounded) {
    if (vr_is_small(rounded)) return VR_SMALL_SEGMENT;
    if (rounded < VR_MADE_TO_MEASURE) return options->large_segment_bytes;
    return vr_round_up(rounded, VR_SEGMENT_ROUNDING);
}

#endif
