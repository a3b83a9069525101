// fit_stake.h: measures the bytes that depend on counts found in data: nonzero(), masks, unique().
#ifndef CLI_FIT_STAKE_H
#define CLI_FIT_STAKE_H

#include "fit_run.h"

struct fit_stake {
    bool counts;              // the run read the result of such an operation
    bool tried, finished;     // a run in which all elements are found; it ended like the first one
    uint64_t allocated_bytes; // its peaks, for the largest holding
    uint64_t reserved_bytes;
};

// Runs the program again with all elements found, if `run` read such a result and `--nonzero` is not given (`decided`). Uses the memory of
// `plan` and keeps the user's own rules.
void fit_find_stake(const struct fit_plan *plan, const struct fit_run *run, bool decided, struct fit_stake *stake);

// Returns how much more the allocator of `highest` may need than in the run: the largest of the sizes without a source (one is live at a
// time), plus what masks may find.
uint64_t fit_stake_bytes(const struct fit_run *run, const struct fit_stake *stake, const struct fit_holding *highest);

#endif
