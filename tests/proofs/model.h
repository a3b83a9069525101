// model.h: replaces compiler functions in proofs by Frama-C, and makes arbitrary values of a range.
#ifndef VR_PROOFS_MODEL_H
#define VR_PROOFS_MODEL_H

#include <__fc_builtin.h>
#include <stdint.h>

// Return the number of zero bits above and below the ones; value is not 0.
static int model_clzll(unsigned long long value) {
    int count = 0;
    //@ assert value != 0;
    for (; (value & 0x8000000000000000u) == 0 && count < 63; value <<= 1) count++;
    return count;
}

static int model_ctzll(unsigned long long value) {
    int count = 0;
    //@ assert value != 0;
    for (; (value & 1) == 0 && count < 63; value >>= 1) count++;
    return count;
}

// Alignment does not matter here.
#define _Alignas(bytes)

#define __builtin_clzll                    model_clzll
#define __builtin_ctzll                    model_ctzll
#define __builtin_expect(condition, value) (condition)

// Sets arbitrary bytes.
static void model_any_bytes(unsigned char *bytes, unsigned count) {
    for (unsigned i = 0; i < count; i++) bytes[i] = (unsigned char)Frama_C_interval(0, 255);
}

static uint64_t model_any_u64(void) { return Frama_C_unsigned_long_interval(0, UINT64_MAX); }

#endif
