// stack_walk.h: walks the machine code frames of the calling thread.
//
// The rule that leads from each return address to its caller is cached in one table of the process, read without a lock. A walk over known
// code takes no lock, calls nothing and reads only the stack. Reads stay inside the thread's stack.
#ifndef VR_HISTORY_STACK_WALK_H
#define VR_HISTORY_STACK_WALK_H

#include "history/stack_memo.h"
#include "history/stack_modules.h"

// Adds a word to the hash of the words before it.
VR_INLINE uint64_t vr_stack_hash(uint64_t hash, uint64_t word) {
    hash = (hash ^ word) * 0x9e3779b97f4a7c15u;
    return hash ^ hash >> 32;
}

struct vr_walk {
    uint64_t pc;          // where the frame continues; for the first frame a return address
    uint64_t sp;          // its stack pointer there
    uint64_t bp;          // its frame pointer there
    uint64_t high;        // end of the stack
    uint64_t epoch;       // epoch of the unwind rules when the walk started
    uint64_t link;        // aarch64: the link register, in a frame that a signal interrupted; else 0
    bool low;             // aarch64: sp is only known to be below the frame's
    bool unsure;          // the walk met code that may have been unloaded
    uint64_t base;        // sp at the start
    uint64_t bp_at;       // where bp was read from; 0: still the initial one
    struct vr_memo *memo; // notes the words that are read; NULL: no notes
};

// Begins at a caller: its return address, stack pointer and frame pointer. Returns false if the thread's stack is unknown.
bool vr_walk_begin(struct vr_walk *walk, uint64_t pc, uint64_t sp, uint64_t bp);
// Skips all frames that end at or below `address`, and the one that contains it. Returns false if a caller could not be found on the way.
bool vr_walk_leave(struct vr_walk *walk, uint64_t address);
// Moves to the caller. *word is the frame of walk->pc, *cfa the end of its part of the stack. Returns false if no caller was found; *word
// is set in any case.
bool vr_walk_next(struct vr_walk *walk, uint64_t *word, uint64_t *cfa);
// Walks to the end: writes the words of at most `limit` frames, adds them to *hash and returns their number.
size_t vr_walk_run(struct vr_walk *walk, uint64_t *words, size_t limit, uint64_t *hash);
// Returns whether an `unsure` walk was wrong: something was loaded or unloaded since its rules were made. The rules are then remade, and
// the walk must be repeated.
bool vr_walk_outdated(const struct vr_walk *walk);

#endif
