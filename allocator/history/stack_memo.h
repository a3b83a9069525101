// stack_memo.h: walks that are known by heart.
//
// Where a walk goes follows from where it begins, from the rules, and from the words of the stack that it reads: return addresses, and
// frame pointers that functions saved. A walk that begins as an earlier one did and finds the same words in the same places ends at the
// same stack, so the words alone are looked at: neither rules nor the table of stacks.
//
// One table for all threads, read without a lock: an entry has a stamp that is odd while somebody writes it and another one after that.
// Whoever finds it odd, a handler of a signal on top of the writer among them, walks.
#ifndef VR_HISTORY_STACK_MEMO_H
#define VR_HISTORY_STACK_MEMO_H

#include <stdatomic.h>

#include "base/base.h"

enum { VR_MEMO_WORDS = 128 };

// How a walk begins.
struct vr_memo_key {
    uint64_t pc, sp, frame; // of the caller, as stack.c has it
    uint64_t high, epoch;   // of the walk
    uint64_t table;         // serial of the table of stacks
    uint64_t skip;
    uint64_t bp; // last: it may not matter
};
enum { VR_MEMO_KEY_WORDS = sizeof(struct vr_memo_key) / sizeof(uint64_t) };

struct vr_memo {
    _Atomic uint32_t stamp;
    _Atomic uint32_t count;  // of words
    _Atomic uint32_t stack;  // where it ended; 0: nothing is known
    _Atomic uint32_t unsure; // it met code that may have been unloaded
    _Atomic uint64_t key[VR_MEMO_KEY_WORDS];
    _Atomic uint64_t bp_bits;              // of the key's that matter: all or none
    _Atomic uint32_t place[VR_MEMO_WORDS]; // eighths of what lies between sp and the word
    _Atomic uint64_t word[VR_MEMO_WORDS];
};

// The entry of walks that begin so. Never NULL.
struct vr_memo *vr_memo_of(const struct vr_memo_key *key);
// The stack that such a walk ends at; 0: not known. *unsure is the walk's.
uint32_t vr_memo_recall(struct vr_memo *memo, const struct vr_memo_key *key, bool *unsure);
// Takes the entry for a walk that is about to begin. False: somebody has it. vr_memo_keep() must follow.
bool vr_memo_begin(struct vr_memo *memo);
// The walk goes by the frame pointer that it began with.
VR_INLINE void vr_memo_need_bp(struct vr_memo *memo) { atomic_store_explicit(&memo->bp_bits, UINT64_MAX, memory_order_relaxed); }
// The walk goes by this word; `sp` is the key's.
VR_INLINE void vr_memo_note(struct vr_memo *memo, uint64_t sp, uint64_t address, uint64_t word) {
    const uint32_t at = atomic_load_explicit(&memo->count, memory_order_relaxed);
    if (at > VR_MEMO_WORDS) return;
    if (at < VR_MEMO_WORDS) {
        atomic_store_explicit(&memo->place[at], (uint32_t)((address - sp) / 8), memory_order_relaxed);
        atomic_store_explicit(&memo->word[at], word, memory_order_relaxed);
    }
    atomic_store_explicit(&memo->count, at + 1, memory_order_relaxed); // more than there is room for: it is not kept
}
// What was noted is not all that the walk went by.
VR_INLINE void vr_memo_spoil(struct vr_memo *memo) { atomic_store_explicit(&memo->count, VR_MEMO_WORDS + 1, memory_order_relaxed); }
// Where it ended; 0: that is not to be kept.
void vr_memo_keep(struct vr_memo *memo, const struct vr_memo_key *key, uint32_t stack, bool unsure);

#endif
