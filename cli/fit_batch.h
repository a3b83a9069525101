// fit_batch.h: which smaller batch makes a program fit, and which of its arguments that is.
#ifndef CLI_FIT_BATCH_H
#define CLI_FIT_BATCH_H

#include "fit_settings.h"

// What a smaller batch may come to, where no setting was found. By roles: activations, temporaries and input go by it. By trying: what an
// argument that has "batch" in its name makes of the peak.
struct fit_batch {
    bool known;             // there are roles, or an argument was found
    bool tried;             // the bytes are of runs with half of an argument's value
    uint64_t fixed_bytes;   // that no batch makes less: parameters, gradients, states, caches
    uint64_t varying_bytes; // activations, temporaries, input
    double share;           // of that, for which there is room; 0: not even for the rest
    char argument[64];      // of the program's: "--batch-size"; "": none changed the peak
    uint64_t value, about;  // of that argument, and what may fit
};

// By the roles of the recording, without a run.
void fit_find_batch(const struct fit_verdict *verdict, const struct fit_setting *setting, struct fit_batch *batch);
// Then by a run for each argument that may be a batch, at most four, with half of its value: the one that lowers the peak most. `plan` has
// the memory in which none of them runs out.
void fit_try_batch(const struct fit_plan *plan, const struct fit_verdict *verdict, const struct fit_setting *setting,
                   struct fit_batch *batch);

#endif
