// echo.h: lists of frames that come again byte for byte. A training step has the stacks of the step before it, in the same order, and
// Python writes each of them out anew; most of a recording is such lists. The echo keeps the bytes of the lists seen, guesses from the
// two lists before which comes next, and where the guess is right a comparison of bytes replaces reading it.
#ifndef VR_SNAPSHOT_ECHO_H
#define VR_SNAPSHOT_ECHO_H

#include "model/builder.h"

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

#endif
