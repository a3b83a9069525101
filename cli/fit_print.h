// fit_print.h: the answer of `vram fit`, for people and as JSON.
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
    const struct fit_run *failed; // an earlier run, which ran out of memory on the device itself; NULL: none
    struct fit_setting setting;
    struct fit_batch batch;
    struct fit_remedies remedies;
    struct fit_serving serving;
    bool dummy_weights; // that option was given
    struct fit_stake stake;
    const struct fit_fold *fold;
    const char *unrunnable; // a card that PyTorch has no kernels for, on which it was to run; NULL: none
    const char *varied;     // the argument of the program that was replaced, as it is now; NULL: none
    uint64_t limit_bytes;   // UINT64_MAX: none
    uint64_t stake_bytes;   // how much more it may need: library sizes without a source, results of masks
    bool fits;              // on every card that was asked for, and within the limit
    bool unsure;            // that it fits: the program failed, or what is at stake decides
};

// What the device would have in use at most: what the allocator held, context, libraries.
uint64_t fit_need_bytes(const struct fit_verdict *verdict);

// "53.3 to 60.1 GiB": what it needs, and what it may need with what is at stake.
void fit_print_need(const struct fit_answer *answer);
void fit_print_headline(const struct fit_answer *answer);

// On standard output. The exit code.
int fit_print_text(const struct fit_answer *answer);
// Of a program that left no recording.
void fit_print_nothing(const struct fit_run *run, const char *varied);

// The same as JSON (keys: docs/reference/json.md), as the expected answer.
int fit_json_answer(const struct fit_answer *answer, struct answers *answers);
int fit_json_nothing(const struct fit_run *run, const char *varied, struct answers *answers);

#endif
