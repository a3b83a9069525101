// stack_memo.h: remembers walks and their stacks, so that an equal walk need not be repeated.
//
// The course of a walk follows from its start, from the rules, and from the words of the stack that it reads: return addresses and saved
// frame pointers. A walk that starts like an earlier one and finds the same words in the same places ends at the same stack. So only these
// words are compared, without rules or the table of stacks.
//
// One table serves all threads and is read without a lock. An entry has a stamp that is odd during a write and new after it. A reader that
// finds it odd, such as a signal handler that interrupted the writer, walks.
#ifndef VR_HISTORY_STACK_MEMO_H
#define VR_HISTORY_STACK_MEMO_H

#include <stdatomic.h>

#include "base/base.h"

enum { VR_MEMO_WORDS = 128 };

// The start of a walk.
struct vr_memo_key {
    uint64_t pc, sp, frame; // of the caller, as in stack.c
    uint64_t high, epoch;   // of the walk
    uint64_t table;         // serial of the table of stacks
    uint64_t skip;
    uint64_t bp; // last, because it may not matter
};
enum { VR_MEMO_KEY_WORDS = sizeof(struct vr_memo_key) / sizeof(uint64_t) };

struct vr_memo {
    _Atomic uint32_t stamp;
    _Atomic uint32_t count;  // number of words
    _Atomic uint32_t stack;  // the resulting stack; 0: nothing known
    _Atomic uint32_t unsure; // the walk met code that may have been unloaded
    _Atomic uint64_t key[VR_MEMO_KEY_WORDS];
    _Atomic uint64_t bp_bits;              // mask of the key's bp bits that matter: all or none
    _Atomic uint32_t place[VR_MEMO_WORDS]; // offset of the word from sp, in units of 8 bytes
    _Atomic uint64_t word[VR_MEMO_WORDS];
};

// Returns the entry for walks with this start. Never NULL.
struct vr_memo *vr_memo_of(const struct vr_memo_key *key);
// Returns the stack of such a walk, and its `unsure`; 0 if unknown.
uint32_t vr_memo_recall(struct vr_memo *memo, const struct vr_memo_key *key, bool *unsure);
// Claims the entry for a walk that is about to begin; vr_memo_keep() must follow. Returns false if another thread has claimed it.
bool vr_memo_begin(struct vr_memo *memo);
// Notes that the walk depends on the frame pointer that it began with.
VR_INLINE void vr_memo_need_bp(struct vr_memo *memo) { atomic_store_explicit(&memo->bp_bits, UINT64_MAX, memory_order_relaxed); }
// Notes that the walk depends on this word; `sp` is the key's.
VR_INLINE void vr_memo_note(struct vr_memo *memo, uint64_t sp, uint64_t address, uint64_t word) {
    const uint32_t at = atomic_load_explicit(&memo->count, memory_order_relaxed);
    if (at > VR_MEMO_WORDS) return;
    if (at < VR_MEMO_WORDS) {
        atomic_store_explicit(&memo->place[at], (uint32_t)((address - sp) / 8), memory_order_relaxed);
        atomic_store_explicit(&memo->word[at], word, memory_order_relaxed);
    }
    atomic_store_explicit(&memo->count, at + 1, memory_order_relaxed); // a count beyond the room makes vr_memo_keep() drop the walk
}
// Makes vr_memo_keep() drop the walk, because it depends on something that the memo does not hold.
VR_INLINE void vr_memo_spoil(struct vr_memo *memo) { atomic_store_explicit(&memo->count, VR_MEMO_WORDS + 1, memory_order_relaxed); }
// Stores the walk's stack; 0: stores nothing.
void vr_memo_keep(struct vr_memo *memo, const struct vr_memo_key *key, uint32_t stack, bool unsure);

#endif
