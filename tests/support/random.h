// random.h: the one generator of random numbers of the tests: the same numbers everywhere, from a seed.
#ifndef VR_TEST_RANDOM_H
#define VR_TEST_RANDOM_H

#include "base/base.h"

// The next number; any value of *state is a seed.
VR_INLINE uint64_t vr_random_next(uint64_t *state) { return vr_mix64(*state += 0x9e3779b97f4a7c15u); }
// Below `limit`, which is not 0.
VR_INLINE uint64_t vr_random_below(uint64_t *state, uint64_t limit) { return vr_random_next(state) % limit; }

// The number that vr_mix64() makes `mixed` of: for addresses that a table without a secret would put into one slot.
VR_INLINE uint64_t vr_unmix64(uint64_t mixed) {
    mixed ^= mixed >> 31 ^ mixed >> 62;
    mixed *= 0x319642b2d24d8ec3u;
    mixed ^= mixed >> 27 ^ mixed >> 54;
    mixed *= 0x96de1b173f119089u;
    return mixed ^ mixed >> 30 ^ mixed >> 60;
}

#endif
