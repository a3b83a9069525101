// repeated_bytes.h: recognizes what a pickle repeats byte for byte: whole lists of frames, and the keys of rows.
#ifndef VR_SNAPSHOT_REPEATED_BYTES_H
#define VR_SNAPSHOT_REPEATED_BYTES_H

#include "model/builder.h"
#include "snapshot/schema.h"

// ---- Lists of frames that repeat byte for byte. A training step has the same stacks as the previous one, in the same order, and Python
// writes each of them out again; such lists are most of a recording. The echo keeps the bytes of the lists it has seen and guesses the next
// list from the last two. If the guess is right, one comparison of bytes replaces reading the list.

enum { VR_ECHO_RUNS = 4096, VR_ECHO_GUESSES = 8192 };

// The bytes of one list from after its mark to its end, and its stack id.
struct vr_echo_run {
    uint32_t offset;
    uint32_t length;
    uint32_t stack;
};

// Valid until a memo slot is overwritten (`generation`).
struct vr_echo {
    unsigned char *bytes;
    size_t used, capacity;
    struct vr_echo_run *runs; // VR_ECHO_RUNS, or NULL
    uint32_t run_count;
    uint16_t *run_of; // by the hash of a stack id: run + 1
    uint16_t *guess;  // by the hash of the last two runs: run + 1
    uint32_t last, last_but_one;
    uint64_t generation;
    uint64_t hits, misses;
};

void vr_echo_release(struct vr_echo *echo, struct vr_budget *budget);
// Returns whether guessing is worthwhile: false if nearly every guess was wrong.
VR_INLINE bool vr_echo_listens(const struct vr_echo *echo) { return echo->misses < 4096 || echo->hits >= echo->misses / 4; }
// Returns the expected run if its bytes are at `bytes` (readable up to `end`), or NULL. Call vr_echo_hit() if it is used.
const struct vr_echo_run *vr_echo_guess(const struct vr_echo *echo, const unsigned char *bytes, const unsigned char *end);
// Records that `run` (from vr_echo_guess()) came.
void vr_echo_hit(struct vr_echo *echo, const struct vr_echo_run *run);
// Records that another list came, with these bytes and this stack. Returns true if it is new and could be kept.
bool vr_echo_miss(struct vr_echo *echo, const unsigned char *bytes, size_t length, uint32_t stack);
// Keeps the list last passed to vr_echo_miss(). Does nothing if the budget does not allow it.
void vr_echo_keep(struct vr_echo *echo, struct vr_budget *budget, const unsigned char *bytes, size_t length, uint32_t stack);
// Forgets everything if the memo's generation has changed.
void vr_echo_renew(struct vr_echo *echo, uint64_t generation);

// ---- Events, blocks and frames with the same keys as the previous one, byte for byte. PyTorch writes every event of a history, most
// blocks of segments and every frame with the same keys in the same order, as references into the memo; once the keys are known, such a
// dictionary is read directly into a row. Any deviation is left to the general machine, whose state is unchanged then.

enum { VR_SHAPE_FIELDS = 12 };

// The keys in their order: for each, the opcode that gets it from the memo, and its meaning. Valid until a memo slot is overwritten.
struct vr_shape {
    enum vr_tag kind; // VR_TAG_EVENT, VR_TAG_BLOCK or VR_TAG_FRAME
    struct {
        uint64_t key; // as loaded, with the bytes beyond its length masked
        uint64_t mask;
        uint8_t length;
        struct vr_field field;
    } fields[VR_SHAPE_FIELDS];
    size_t count;  // 0: no shape is known yet
    size_t misses; // number of dictionaries that a known shape did not fit
    uint64_t generation;
};

// Forgets the shape if the memo's generation has changed.
void vr_shape_renew(struct vr_shape *shape, uint64_t generation);
// Learns from the event, block or frame whose keys and values are the opcodes from `begin` to `end`, including its SETITEMS. Learns nothing
// if it has unusual opcodes.
void vr_shape_learn(struct vr_shape *shape, const struct vr_machine *machine, const unsigned char *begin, const unsigned char *end);
// Returns whether the dictionary at `next` may have the shape, by its first key. Returns false if no shape is known.
VR_INLINE bool vr_shape_begins(const struct vr_shape *shape, const unsigned char *next, const unsigned char *end) {
    uint64_t word;
    if (shape->count == 0 || end - next < (ptrdiff_t)sizeof word) return false;
    memcpy(&word, next, sizeof word);
    return (word & shape->fields[0].mask) == shape->fields[0].key;
}
// Reads the event, block or frame whose first key is at `next`; bytes up to `end` are in memory. Sets *container to its row and returns the
// address after its SETITEMS, or returns NULL without changing anything. The shape must have been learned (count not 0), because in most
// small files no shape is.
const unsigned char *vr_shape_read(const struct vr_shape *shape, struct vr_echo *echo, struct vr_machine *machine,
                                   const unsigned char *next, const unsigned char *end, uint64_t *container);

#endif
