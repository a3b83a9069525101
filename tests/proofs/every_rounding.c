// Checks every request up to a bound, and every one near a power of two beyond it, with every divisor. The block is not smaller than the
// request, a multiple of 512, and not smaller than the block of a smaller request. No rounding adds more than the divisor allows.
//   proof_rounding [MiB up to which every size is tried]
#include "proofs/every.h"

#include "config/size_rules.h"

static void check(const struct vr_options *options, uint32_t divisor, uint64_t size, uint64_t *before) {
    const uint64_t block = vr_round_request(options, size), asked = size + options->request_padding_bytes;
    every_require(block >= asked && block % VR_MIN_BLOCK == 0 && block >= *before, "a block is too small, or no multiple", size);
    // A step is a fraction of the power of two below, or 512 bytes.
    const uint64_t floor = (uint64_t)1 << vr_log2_floor(asked),
                   step = divisor > 1 && floor / divisor > VR_MIN_BLOCK ? floor / divisor : VR_MIN_BLOCK;
    every_require(block - asked < (step > VR_MIN_BLOCK ? step : VR_MIN_BLOCK), "a block is larger than its step allows", size);
    const uint64_t segment = vr_segment_size(options, block);
    every_require(vr_is_small(block) ? segment == VR_SMALL_SEGMENT : segment >= block || block < VR_MADE_TO_MEASURE,
                  "a segment is too small", size);
    *before = block;
}

int main(int argc, char **argv) {
    const uint64_t most = every_bound(argc, argv, 1) * VR_MIB;
    static const uint32_t padding[] = {0, 32, VR_PADDING_MAX};
    unsigned long long ran = 0;
    for (unsigned log = 0; log < 32; log++) {
        for (unsigned p = 0; p < VR_COUNT_OF(padding); p++) {
            struct vr_options options;
            uint64_t before = 0;
            vr_options_init(&options);
            options.request_padding_bytes = padding[p];
            for (unsigned i = 0; i < VR_ROUNDUP_BUCKETS; i++) options.roundup_divisions[i] = 1u << log;
            for (uint64_t size = 1; size <= most; size++, ran++) check(&options, 1u << log, size, &before);
            for (unsigned power = vr_log2_floor(most); power < 60; power++) {
                const uint64_t middle = (uint64_t)1 << power;
                for (uint64_t size = middle - 1500 > most ? middle - 1500 : most; size < middle + 1500 && size < VR_REQUEST_LIMIT;
                     size++, ran++)
                    check(&options, 1u << log, size, &before);
            }
        }
    }
    printf("rounding: %llu requests under 32 divisors and three paddings, every one up to %llu MiB\n", ran,
           (unsigned long long)(most / VR_MIB));
    return 0;
}
