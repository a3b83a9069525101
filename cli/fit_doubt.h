// fit_doubt.h: says why the answer of `vram fit` is not sure although the program did not fail.
#ifndef CLI_FIT_DOUBT_H
#define CLI_FIT_DOUBT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct fit_run;
struct fit_answer;

// A rank that showed less than another one until the time of --for had passed.
struct fit_behind {
    bool any, used_none; // used_none: no device
    uint64_t rank, steps;
    uint64_t other_rank, other_steps; // that ended the most
    uint64_t seconds;                 // since its last step ended, or since it began to use a device
};

// Finds such a rank and stores it in run->behind.
void fit_behind_find(struct fit_run *run);

// Returns whether a process or thread failed, but the program did not.
bool fit_part_failed(const struct fit_run *run);
// Returns whether the program went on after memory errors, so the memory that it finds decides what it does.
bool fit_adapts(const struct fit_run *run);
// Returns whether a rank did not show what it needs: it fell behind, or had ended before it used a device.
bool fit_lacks_rank(const struct fit_run *run);
// Returns whether the run shows what the whole program needs, on any card.
bool fit_is_general(const struct fit_run *run);
// Writes a sentence about what the program went on after, and returns `text`; NULL if nothing failed.
const char *fit_went_on_text(const struct fit_run *run, char *text, size_t capacity);
// Writes why it is not sure whether the program fits, and returns `text`: "a thread raised ValueError: no data, at FILE:LINE:FUNCTION".
// NULL: it is sure, or the program failed.
const char *fit_doubt_text(const struct fit_answer *answer, char *text, size_t capacity);

#endif
