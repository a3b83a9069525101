// repeated_bytes.h: what a pickle repeats byte for byte, recognized by comparing bytes: whole lists of frames, and the keys of rows.
#ifndef VR_SNAPSHOT_REPEATED_BYTES_H
#define VR_SNAPSHOT_REPEATED_BYTES_H

#include "model/builder.h"
#include "snapshot/schema.h"

// ---- Lists of frames that come again byte for byte. A training step has the stacks of the step before it, in the same order, and Python
// writes each of them out again; most of a recording is such lists. The echo keeps the bytes of the lists seen, guesses from the two lists
// before which comes next, and where the guess is right a comparison of bytes replaces reading it.

enum { VR_ECHO_RUNS = 4096, VR_ECHO_GUESSES = 8192 };

// The bytes of one list after its mark, its end included, and what it is.
struct vr_echo_run {
    uint32_t offset;
    uint32_t length;
    uint32_t stack;
};

// Valid as long as no memo slot changes its value (`generation`).
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
// Whether it is worth asking: not where nearly every guess was wrong.
VR_INLINE bool vr_echo_listens(const struct vr_echo *echo) { return echo->misses < 4096 || echo->hits >= echo->misses / 4; }
// The run that begins at `bytes` (readable up to `end`), if it is the one expected now, or NULL. When it is taken, call vr_echo_hit().
const struct vr_echo_run *vr_echo_guess(const struct vr_echo *echo, const unsigned char *bytes, const unsigned char *end);
// Says that `run` (of vr_echo_guess()) has come.
void vr_echo_hit(struct vr_echo *echo, const struct vr_echo_run *run);
// Says that another list has come, with these bytes and this stack. True where it is not known yet and could be kept.
bool vr_echo_miss(struct vr_echo *echo, const unsigned char *bytes, size_t length, uint32_t stack);
// Keeps the list that vr_echo_miss() has just been told of. Nothing happens when the budget does not allow it.
void vr_echo_keep(struct vr_echo *echo, struct vr_budget *budget, const unsigned char *bytes, size_t length, uint32_t stack);
// Forgets everything when the memo's generation is another than before.
void vr_echo_renew(struct vr_echo *echo, uint64_t generation);

// ---- Events, blocks and frames whose keys are those of the one before, byte for byte. PyTorch writes every event of a history, most
// blocks of segments and every frame with the same keys in the same order, as references into the memo; once that is known, they are read
// straight into a row. What deviates in any way is left to the general machine, which nothing was changed for.

enum { VR_SHAPE_FIELDS = 12 };

// The keys in their order: the bytes of the opcode that gets each from the memo, and what the key means. Valid as long as no memo slot
// changes its value.
struct vr_shape {
    enum vr_tag kind; // VR_TAG_EVENT, VR_TAG_BLOCK or VR_TAG_FRAME
    struct {
        uint64_t key; // as loaded, the bytes beyond its length masked away
        uint64_t mask;
        uint8_t length;
        struct vr_field field;
    } fields[VR_SHAPE_FIELDS];
    size_t count;  // 0: nothing is known yet
    size_t misses; // dictionaries that a known shape did not read
    uint64_t generation;
};

// Forgets the shape when the memo's generation is another than before.
void vr_shape_renew(struct vr_shape *shape, uint64_t generation);
// Learns from the event, block or frame whose keys and values are the opcodes from `begin` up to `end`, its SETITEMS included. Nothing is
// learned from one that holds other opcodes than usual.
void vr_shape_learn(struct vr_shape *shape, const struct vr_machine *machine, const unsigned char *begin, const unsigned char *end);
// Whether what begins at `next` may be of the shape: its first key is. False where nothing is known.
VR_INLINE bool vr_shape_begins(const struct vr_shape *shape, const unsigned char *next, const unsigned char *end) {
    uint64_t word;
    if (shape->count == 0 || end - next < (ptrdiff_t)sizeof word) return false;
    memcpy(&word, next, sizeof word);
    return (word & shape->fields[0].mask) == shape->fields[0].key;
}
// Reads the event, block or frame whose first key is at `next`; bytes up to `end` are at hand. Puts its row in *container and returns what
// follows its SETITEMS, or returns NULL and has changed nothing. The shape must have been learned (count not 0): most small files ask in
// vain.
const unsigned char *vr_shape_read(const struct vr_shape *shape, struct vr_echo *echo, struct vr_machine *machine,
                                   const unsigned char *next, const unsigned char *end, uint64_t *container);

#endif
