#include "history/stack_memo.h"

enum { ENTRIES = 256, BP = VR_MEMO_KEY_WORDS - 1 };
_Static_assert(offsetof(struct vr_memo_key, bp) == BP * sizeof(uint64_t), "the last word of a key");
static struct vr_memo memos[ENTRIES];

struct vr_memo *vr_memo_of(const struct vr_memo_key *key) {
    const uint64_t hash = (key->pc ^ key->sp << 20) * 0x9e3779b97f4a7c15u;
    return &memos[hash >> 56];
}
_Static_assert(ENTRIES == 1 << (64 - 56), "the hash gives an entry");

VR_UNSANITIZED VR_INLINE bool begins_so(struct vr_memo *memo, const struct vr_memo_key *key) {
    const uint64_t *wanted = (const void *)key;
    uint64_t differ = 0;
    for (size_t i = 0; i < BP; i++) differ |= atomic_load_explicit(&memo->key[i], memory_order_relaxed) ^ wanted[i];
    const uint64_t bits = atomic_load_explicit(&memo->bp_bits, memory_order_relaxed);
    return (differ | ((atomic_load_explicit(&memo->key[BP], memory_order_relaxed) ^ wanted[BP]) & bits)) == 0;
}

// The entry may be in the middle of a write, so nothing outside the stack is read for it.
VR_UNSANITIZED VR_INLINE bool reads_so(struct vr_memo *memo, const struct vr_memo_key *key, uint32_t count) {
    const volatile uint64_t *const stack = (const volatile uint64_t *)(uintptr_t)key->sp;
    const uint64_t most = (key->high - key->sp) / 8;
    for (uint32_t i = 0; i < count; i++) {
        const uint64_t place = atomic_load_explicit(&memo->place[i], memory_order_relaxed);
        if (place >= most || stack[place] != atomic_load_explicit(&memo->word[i], memory_order_relaxed)) return false;
    }
    return true;
}

VR_UNSANITIZED uint32_t vr_memo_recall(struct vr_memo *memo, const struct vr_memo_key *key, bool *unsure) {
    const uint32_t stamp = atomic_load_explicit(&memo->stamp, memory_order_acquire);
    if ((stamp & 1) != 0 || (key->sp & 7) != 0 || !begins_so(memo, key)) return 0;
    const uint32_t count = atomic_load_explicit(&memo->count, memory_order_relaxed);
    const uint32_t stack = atomic_load_explicit(&memo->stack, memory_order_relaxed);
    if (stack == 0 || count > VR_MEMO_WORDS || !reads_so(memo, key, count)) return 0;
    *unsure = atomic_load_explicit(&memo->unsure, memory_order_relaxed) != 0;
    atomic_thread_fence(memory_order_acquire);
    return atomic_load_explicit(&memo->stamp, memory_order_relaxed) == stamp ? stack : 0;
}

bool vr_memo_begin(struct vr_memo *memo) {
    uint32_t stamp = atomic_load_explicit(&memo->stamp, memory_order_relaxed);
    if ((stamp & 1) != 0) return false;
    if (!atomic_compare_exchange_strong_explicit(&memo->stamp, &stamp, stamp + 1, memory_order_acquire, memory_order_relaxed)) return false;
    atomic_thread_fence(memory_order_release); // a reader that sees the following writes must not see the old stamp
    atomic_store_explicit(&memo->stack, 0, memory_order_relaxed);
    atomic_store_explicit(&memo->count, 0, memory_order_relaxed);
    atomic_store_explicit(&memo->bp_bits, 0, memory_order_relaxed);
    return true;
}

void vr_memo_keep(struct vr_memo *memo, const struct vr_memo_key *key, uint32_t stack, bool unsure) {
    const uint64_t *words = (const void *)key;
    const bool fits = atomic_load_explicit(&memo->count, memory_order_relaxed) <= VR_MEMO_WORDS;
    for (size_t i = 0; i < VR_MEMO_KEY_WORDS; i++) atomic_store_explicit(&memo->key[i], words[i], memory_order_relaxed);
    atomic_store_explicit(&memo->stack, fits ? stack : 0, memory_order_relaxed);
    atomic_store_explicit(&memo->unsure, unsure, memory_order_relaxed);
    atomic_store_explicit(&memo->stamp, atomic_load_explicit(&memo->stamp, memory_order_relaxed) + 1, memory_order_release);
}
