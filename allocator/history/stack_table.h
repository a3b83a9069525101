// stack_table.h: distinct stacks: each is a number and a row of words (frames; stack_modules.h and stack_python.h define words).
//
// Readers take no lock: they probe a table of (hash, number) whose slots are written once, and compare words that never change. New stacks
// are added under the table's lock. Memory that a reader may still use is kept until the table is destroyed. base/hash.h's index would not
// do, because only one thread at a time may use it; these hashes begin with a secret, too.
#ifndef VR_HISTORY_STACK_TABLE_H
#define VR_HISTORY_STACK_TABLE_H

#include <stdatomic.h>

#include "base/hash.h"
#include "history/stack_walk.h"
#include "os/os.h"
#include "vram/stack.h"

// A stack. `words` is in a chunk and never moves.
struct vr_stack {
    const uint64_t *words;
    uint32_t count;
    uint32_t log_id; // its id in the current log; 0: not written yet
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

// A distinct frame, present once a stack that contains it was added.
struct vr_frame_row {
    uint64_t word;
    uint32_t log_id; // in the current log, plus one; 0: not written yet
    uint32_t first;  // index in vr_names.frames, once resolved
    uint32_t count;  // 0: not resolved yet
};

struct vr_names;

enum { VR_STACK_LEVELS = 22, VR_STACK_FIRST = 1024, VR_STACK_MAX_FRAMES = 1024 };

struct vram_stacks {
    uint32_t max_frames;
    uint64_t secret;       // start of every stack's hash
    uint64_t serial;       // of the table in the process, never reused
    _Atomic bool deep;     // a stack had an unusual number of frames
    struct vr_mutex mutex; // taken before the lock of modules
    _Atomic(struct vr_stack_slots *) slots;
    // Stack `id` is levels[n][id + FIRST - (FIRST << n)], with n such that levels double: rows never move.
    _Atomic(struct vr_stack *) levels[VR_STACK_LEVELS];
    _Atomic uint32_t count; // stacks, including number 0
    _Atomic uint64_t frame_count;
    _Atomic uint64_t bytes;

    // Guarded by the lock.
    struct vr_chunk *chunk;
    struct vr_frame_row *frames;
    size_t frames_capacity;
    struct vr_map frame_rows; // word -> row + 1
    struct vram_log *log;
    uint32_t *log_modules; // row of module -> id + 1
    size_t log_module_count;
    struct vr_names *names;
    struct vram_stacks *next; // in the list of tables, for forks
};

// Returns the number of the stack of `count` words (at least 1); 0 if the host is out of memory. `hash` is vr_stack_hash() over them,
// starting from the table's secret.
uint32_t vr_stacks_intern(struct vram_stacks *stacks, const uint64_t *words, size_t count, uint64_t hash);
// Returns the stack of a number, or NULL.
struct vr_stack *vr_stacks_get(struct vram_stacks *stacks, uint32_t id);
// Returns whether every stack is found by its words, and each of its frames has a row. Takes the lock.
bool vr_stacks_check(struct vram_stacks *stacks);
// Returns the row of a frame of an added stack. Called with the lock held.
struct vr_frame_row *vr_stacks_frame_locked(struct vram_stacks *stacks, uint64_t word);

#endif
