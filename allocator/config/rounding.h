// rounding.h: rounds a request to the size of a block (allocator.md §sizes). Pure functions of the settings, used by the allocator, replay
// and analysis.
#ifndef VR_CONFIG_ROUNDING_H
#define VR_CONFIG_ROUNDING_H

#include "config/options.h"

enum { VR_MIN_BLOCK = 512 };

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

#endif
