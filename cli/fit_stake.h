// fit_stake.h: how many bytes depend on what operations find that count: nonzero(), masks, unique().
#ifndef CLI_FIT_STAKE_H
#define CLI_FIT_STAKE_H

#include "fit_run.h"

struct fit_stake {
    bool counts;              // such an operation's result was read
    bool tried, finished;     // a run in which they find all; it ended as the other one did
    uint64_t allocated_bytes; // its peaks, of the holding that has the most
    uint64_t reserved_bytes;
};

// Runs the program once more, with all found, where `run` has read such a result and `decided` (of `--nonzero`) is false. The run with the
// memory that `plan` has; what the user's own rules give stays.
void fit_find_stake(const struct fit_plan *plan, const struct fit_run *run, bool decided, struct fit_stake *stake);

// By how much the allocator of `highest` may need more than in the run: the largest of the sizes without a source, for one is there at a
// time, and what masks may find.
uint64_t fit_stake_bytes(const struct fit_run *run, const struct fit_stake *stake, const struct fit_holding *highest);

#endif
