#include "base/hash.h"

#include <stdatomic.h>

static _Atomic uint64_t process_seed;

void vr_hash_seed(uint64_t seed) { atomic_fetch_xor_explicit(&process_seed, vr_mix64(seed), memory_order_relaxed); }

uint64_t vr_hash_secret(const void *where) {
    const uint64_t image = (uint64_t)(uintptr_t)&process_seed, seed = atomic_load_explicit(&process_seed, memory_order_relaxed);
    return vr_mix64(vr_mix64((uint64_t)(uintptr_t)where ^ seed) + vr_mix64(image + seed));
}
