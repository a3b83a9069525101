// random.h: the tests' random number generator, which gives the same numbers on every machine.
#ifndef VR_TEST_RANDOM_H
#define VR_TEST_RANDOM_H

#include "base/base.h"

// Returns the next number; *state may be any seed.
VR_INLINE uint64_t vr_random_next(uint64_t *state) { return vr_mix64(*state += 0x9e3779b97f4a7c15u); }
// Returns a number below `limit`, which must not be 0.
VR_INLINE uint64_t vr_random_below(uint64_t *state, uint64_t limit) { return vr_random_next(state) % limit; }

// Inverts vr_mix64(), to construct addresses that would collide in a table without a secret.
VR_INLINE uint64_t vr_unmix64(uint64_t mixed) {
    mixed ^= mixed >> 31 ^ mixed >> 62;
    mixed *= 0x319642b2d24d8ec3u;
    mixed ^= mixed >> 27 ^ mixed >> 54;
    mixed *= 0x96de1b173f119089u;
    return mixed ^ mixed >> 30 ^ mixed >> 60;
}

#endif
