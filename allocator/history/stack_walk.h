// stack_walk.h: from frame to frame of the calling thread's machine code.
//
// For every return address the rule that leads to its caller is kept in one table of the process, read without a lock: a walk over
// known code takes no lock, calls nothing and reads nothing but the stack. Reads stay inside the thread's stack.
#ifndef VR_HISTORY_STACK_WALK_H
#define VR_HISTORY_STACK_WALK_H

#include "history/stack_memo.h"
#include "history/stack_modules.h"

// Blends a word into the hash of the words before it.
VR_INLINE uint64_t vr_stack_hash(uint64_t hash, uint64_t word) {
    hash = (hash ^ word) * 0x9e3779b97f4a7c15u;
    return hash ^ hash >> 32;
}

struct vr_walk {
    uint64_t pc;          // where the frame goes on; of the first one a return address
    uint64_t sp;          // its stack pointer there
    uint64_t bp;          // its frame pointer there
    uint64_t high;        // end of the stack
    uint64_t epoch;       // of the rules at the begin
    uint64_t link;        // aarch64: the link register, in a frame that a signal interrupted; else 0
    bool low;             // aarch64: sp is known to lie below the frame's, no more
    bool unsure;          // the walk met code that may have been unloaded
    uint64_t base;        // sp at the begin
    uint64_t bp_at;       // where bp was read; 0: it is the one from the begin
    struct vr_memo *memo; // where the words that are read are noted; NULL: nowhere
};

// Begins at a caller: its return address, stack pointer and frame pointer. False when the thread's stack is not known.
bool vr_walk_begin(struct vr_walk *walk, uint64_t pc, uint64_t sp, uint64_t bp);
// Leaves all frames that end at or below `address`, and the one that holds it. False when there was no caller to be found on the way.
bool vr_walk_leave(struct vr_walk *walk, uint64_t address);
// Moves to the caller. *word is the frame that walk->pc stood for, *cfa the end of its part of the stack. False when there is no caller
// that could be found; *word is set all the same.
bool vr_walk_next(struct vr_walk *walk, uint64_t *word, uint64_t *cfa);
// Walks to the end: writes the words of at most `limit` frames, blends them into *hash and returns how many there are.
size_t vr_walk_run(struct vr_walk *walk, uint64_t *words, size_t limit, uint64_t *hash);
// Whether a walk that is `unsure` was wrong: something was loaded or unloaded since its rules were made. They are made anew then, and the
// walk is to be done again.
bool vr_walk_outdated(const struct vr_walk *walk);

#endif
