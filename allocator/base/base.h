// base.h: small helpers on the C library alone, for every other room.
#ifndef VR_BASE_BASE_H
#define VR_BASE_BASE_H

// Level of run-time checks: 0 none, 1 assertions (the default), 3 also the whole state after every operation.
#ifndef VRAM_CHECK
#define VRAM_CHECK 1
#endif
#if VRAM_CHECK == 0 && !defined(NDEBUG)
#define NDEBUG
#endif

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "vram/status.h"

#define VR_KIB ((uint64_t)1 << 10)
#define VR_MIB ((uint64_t)1 << 20)
#define VR_GIB ((uint64_t)1 << 30)

#define VR_COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

#if defined(__GNUC__) || defined(__clang__)
#define VR_LIKELY(condition)   __builtin_expect(!!(condition), 1)
#define VR_UNLIKELY(condition) __builtin_expect(!!(condition), 0)
#define VR_NOINLINE            __attribute__((noinline))
#define VR_INLINE              static inline __attribute__((always_inline, unused))
// For functions that read memory outside the program's objects, such as frames on a stack.
#define VR_UNSANITIZED __attribute__((no_sanitize("address", "thread", "undefined")))
#else
#define VR_UNSANITIZED
#define VR_LIKELY(condition)   (condition)
#define VR_UNLIKELY(condition) (condition)
#define VR_NOINLINE
#define VR_INLINE static inline
#endif

// Placed after a call, keeps it from becoming a tail call, so the caller stays on the stack while it runs.
#if defined(__GNUC__) || defined(__clang__)
#define VR_NO_TAIL_CALL() __asm__ volatile("")
#else
#define VR_NO_TAIL_CALL() ((void)0)
#endif

// Returns from the enclosing function if `expression` is not VRAM_OK.
#define VR_TRY(expression)                                                                                                                 \
    do {                                                                                                                                   \
        enum vram_status vr_try_status_ = (expression);                                                                                    \
        if (VR_UNLIKELY(vr_try_status_ != VRAM_OK)) return vr_try_status_;                                                                 \
    } while (0)

// Fills *error (may be NULL) and returns `status`. The message is cut to fit.
enum vram_status vr_fail(struct vram_error *error, enum vram_status status, uint64_t offset, const char *format, ...) VRAM_PRINTF(4, 5);
// For functions in which not every step reports why it failed. Clears *error (may be NULL) before the first step.
void vr_error_clear(struct vram_error *error);
// Called after the last step: gives a failure without a message the text of its status. Returns `status`.
enum vram_status vr_error_complete(struct vram_error *error, enum vram_status status);

// Checks the pointers that a public function requires, before anything else. `pointers` is a condition; if it is false, returns
// INVALID_ARGUMENT. With a struct vram_error, the message names the condition.
#define VR_REQUIRE(pointers) VR_TRY((pointers) ? VRAM_OK : VRAM_INVALID_ARGUMENT)
#define VR_REQUIRE_OR_FAIL(error, pointers)                                                                                                \
    VR_TRY((pointers) ? VRAM_OK                                                                                                            \
                      : vr_fail(error, VRAM_INVALID_ARGUMENT, VRAM_NO_OFFSET, "an argument is NULL; the function requires %s", #pointers))

// Checked arithmetic: return false, leaving *result unchanged, if the result does not fit.
VR_INLINE bool vr_add_u64(uint64_t a, uint64_t b, uint64_t *result) {
    if (a > UINT64_MAX - b) return false;
    *result = a + b;
    return true;
}
VR_INLINE bool vr_mul_u64(uint64_t a, uint64_t b, uint64_t *result) {
    if (b != 0 && a > UINT64_MAX / b) return false;
    *result = a * b;
    return true;
}

// `unit` need not be a power of two. value + unit must not overflow.
VR_INLINE uint64_t vr_round_up(uint64_t value, uint64_t unit) { return (value + unit - 1) / unit * unit; }
VR_INLINE uint64_t vr_round_down(uint64_t value, uint64_t unit) { return value / unit * unit; }
VR_INLINE bool vr_is_power_of_2(uint64_t value) { return value != 0 && (value & (value - 1)) == 0; }
// Returns floor(log2(value)); value must not be 0.
VR_INLINE unsigned vr_log2_floor(uint64_t value) { return 63u - (unsigned)__builtin_clzll(value); }

// A full-avalanche 64-bit mix (splitmix64's finalizer): for hash tables and test generators.
VR_INLINE uint64_t vr_mix64(uint64_t x) {
    x ^= x >> 30;
    x *= 0xbf58476d1ce4e5b9u;
    x ^= x >> 27;
    x *= 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

// vr_hash_step() adds a word to a hash, to be mixed at the end; vr_hash_bytes() returns the mixed hash of bytes.
VR_INLINE uint64_t vr_hash_step(uint64_t hash, uint64_t word) {
    hash = (hash ^ word) * 0x9e3779b97f4a7c15u;
    return hash ^ (hash >> 32);
}
VR_INLINE uint64_t vr_hash_bytes(uint64_t seed, const void *bytes, size_t length) {
    const unsigned char *p = bytes;
    uint64_t hash = seed ^ ((uint64_t)length * 0xc2b2ae3d27d4eb4fu), word;
    for (; length >= 8; p += 8, length -= 8) {
        memcpy(&word, p, 8);
        hash = vr_hash_step(hash, word);
    }
    if (length != 0) {
        word = 0;
        memcpy(&word, p, length);
        hash = vr_hash_step(hash, word);
    }
    return vr_mix64(hash);
}

// The result of a qsort() comparator for ascending order: -1, 0 or 1. Evaluates each argument twice.
#define VR_ORDER(a, b) (((a) > (b)) - ((a) < (b)))
// qsort() comparators of uint64_t, ascending; the second compares pairs, by the first number, then by the second.
int vr_order_u64(const void *a, const void *b);
int vr_order_u64_pair(const void *a, const void *b);

// Binary search: sets `place` to the first index of [begin, end) at which `comes_before`, an expression of `index`, is false, or to `end`.
// `comes_before` must be false from that index on.
#define VR_LOWER_BOUND(place, index, begin, end, comes_before)                                                                             \
    do {                                                                                                                                   \
        size_t vr_low_ = (begin), vr_high_ = (end);                                                                                        \
        while (vr_low_ < vr_high_) {                                                                                                       \
            const size_t index = vr_low_ + (vr_high_ - vr_low_) / 2;                                                                       \
            if (comes_before) {                                                                                                            \
                vr_low_ = index + 1;                                                                                                       \
            } else {                                                                                                                       \
                vr_high_ = index;                                                                                                          \
            }                                                                                                                              \
        }                                                                                                                                  \
        (place) = vr_low_;                                                                                                                 \
    } while (0)

// Grows *items, an array of items of item_bytes each, to a capacity of at least `needed`, by doubling. NO_HOST_MEMORY, with nothing
// changed.
enum vram_status vr_grow(void **items, size_t *capacity, size_t needed, size_t item_bytes);

// vr_grow() for an array in a struct, typed: makes owner->field an array of at least `needed` items and keeps its capacity in
// owner->field_capacity. Status of vr_grow().
#define VR_GROW(owner, field, needed)                                                                                                      \
    __extension__({                                                                                                                        \
        const size_t vr_needed_ = (needed);                                                                                                \
        enum vram_status vr_grown_ = VRAM_OK;                                                                                              \
        if (VR_UNLIKELY(vr_needed_ > (owner)->field##_capacity)) {                                                                         \
            void *vr_items_ = (owner)->field;                                                                                              \
            vr_grown_ = vr_grow(&vr_items_, &(owner)->field##_capacity, vr_needed_, sizeof *(owner)->field);                               \
            (owner)->field = vr_items_;                                                                                                    \
        }                                                                                                                                  \
        vr_grown_;                                                                                                                         \
    })

#endif
