// fit_print.h: prints the answer of `vram fit` as text and as JSON.
#ifndef CLI_FIT_PRINT_H
#define CLI_FIT_PRINT_H

#include "fit_remedies.h"
#include "fit_cards.h"
#include "fit_fold.h"
#include "fit_stake.h"

struct answers;

struct fit_answer {
    const struct fit_run *run;
    const struct fit_verdict *verdict;
    const struct fit_run *failed; // an earlier run that ran out of memory on the device itself; NULL if there was none
    struct fit_setting setting;
    struct fit_batch batch;
    struct fit_remedies remedies;
    struct fit_serving serving;
    bool dummy_weights; // the option was given
    struct fit_stake stake;
    const struct fit_fold *fold;
    const char *unrunnable; // the requested card, if PyTorch has no kernels for it; NULL: none
    const char *varied;     // the replaced argument with its current value; NULL: none
    uint64_t limit_bytes;   // UINT64_MAX: none
    uint64_t stake_bytes;   // data-dependent bytes: library sizes without a source, results of masks
    bool fits;              // on every requested card, and within the limit
    bool unsure;            // it might not fit: the program failed, or the data-dependent bytes decide
};

// Returns the most device memory in use: reserved by the allocator, context and libraries.
uint64_t fit_need_bytes(const struct fit_verdict *verdict);

// Prints to standard output. Returns an exit code.
int fit_print_text(const struct fit_answer *answer);
// Answers for a program that left no recording.
void fit_print_nothing(const struct fit_run *run, const char *varied);

// Write the same answers as JSON (keys: docs/reference/json.md). Each is the answer that was announced with answers_expect().
int fit_json_answer(const struct fit_answer *answer, struct answers *answers);
int fit_json_nothing(const struct fit_run *run, const char *varied, struct answers *answers);

#endif
