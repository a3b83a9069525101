// stack_table.h: distinct stacks, each a number and a row of words (frames: stack_modules.h and stack_python.h say what a word is).
//
// Readers take no lock: they probe a table of (hash, number) whose slots are written once, compare words that never change, and are done.
// A new stack is added under the table's lock. What a reader may still be in is kept until the table is destroyed. That is why stacks are
// not found by base/hash_index.h, which takes one thread at a time; their hashes begin with a secret all the same.
#ifndef VR_HISTORY_STACK_TABLE_H
#define VR_HISTORY_STACK_TABLE_H

#include <stdatomic.h>

#include "base/hash.h"
#include "history/stack_walk.h"
#include "os/os.h"
#include "vram/stack.h"

// A stack. `words` lies in a chunk and never moves.
struct vr_stack {
    const uint64_t *words;
    uint32_t count;
    uint32_t log_id; // what the log in use calls it; 0: not written yet
};

struct vr_stack_slots {
    size_t count; // a power of two
    struct vr_stack_slots *outgrown;
    _Atomic uint64_t slot[]; // upper half of the hash, number; 0: free
};

struct vr_chunk {
    struct vr_chunk *older;
    size_t used; // words
    size_t capacity;
    uint64_t words[];
};

// A distinct frame, known once the stack that has it was added.
struct vr_frame_row {
    uint64_t word;
    uint32_t log_id; // of the log in use, plus one; 0: not written yet
    uint32_t first;  // in vr_names.frames, once resolved
    uint32_t count;  // 0: not resolved yet
};

struct vr_names;

enum { VR_STACK_LEVELS = 22, VR_STACK_FIRST = 1024, VR_STACK_MAX_FRAMES = 1024 };

struct vram_stacks {
    uint32_t max_frames;
    uint64_t secret;       // what the hash of every stack begins with
    uint64_t serial;       // of the table in the process, never used again
    _Atomic bool deep;     // a stack had more frames than most
    struct vr_mutex mutex; // taken before the lock of modules
    _Atomic(struct vr_stack_slots *) slots;
    // Stack `id` is levels[n][id + FIRST - (FIRST << n)], n chosen so that levels double: rows never move.
    _Atomic(struct vr_stack *) levels[VR_STACK_LEVELS];
    _Atomic uint32_t count; // stacks, number 0 included
    _Atomic uint64_t frame_count;
    _Atomic uint64_t bytes;

    // Under the lock.
    struct vr_chunk *chunk;
    struct vr_frame_row *frames;
    size_t frames_capacity;
    struct vr_map frame_rows; // word -> row + 1
    struct vram_log *log;
    uint32_t *log_modules; // row of module -> id + 1
    size_t log_module_count;
    struct vr_names *names;
    struct vram_stacks *next; // of the list of tables, for forks
};

// The number of the stack of `count` words (at least 1); 0 when there is no memory. `hash` is vr_stack_hash() over them,
// from the table's secret on.
uint32_t vr_stacks_intern(struct vram_stacks *stacks, const uint64_t *words, size_t count, uint64_t hash);
// The stack of a number, or NULL.
struct vr_stack *vr_stacks_get(struct vram_stacks *stacks, uint32_t id);
// Every stack is found by its words, and each of its frames has a row. Takes the lock.
bool vr_stacks_check(struct vram_stacks *stacks);
// The row of a frame whose stack was added. Under the lock.
struct vr_frame_row *vr_stacks_frame_locked(struct vram_stacks *stacks, uint64_t word);

#endif
