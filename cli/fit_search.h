// fit_search.h: the answers for all variants of a program (`vram fit --search`): which fit, which does the most work, and how far the
// search got. It runs nothing itself.
//
// A variant's answer comes from its own run, or from that of an equal command line. No answer is concluded from another variant's.
#ifndef CLI_FIT_SEARCH_H
#define CLI_FIT_SEARCH_H

#include <stdio.h>
#include <time.h>

#include "fit_print.h"
#include "fit_vary.h"

// X(constant, JSON name)
#define FIT_OUTCOMES(X)                                                                                                                    \
    X(FIT_NOT_RUN, not_run)        /* the time was over before it ran, or while it ran */                                                  \
    X(FIT_SURELY, fits)            /* on every requested card, or within the limit */                                                      \
    X(FIT_PERHAPS, not_sure)       /* data-dependent sizes decide */                                                                       \
    X(FIT_TOO_LARGE, does_not_fit) /* on one of the cards */                                                                               \
    X(FIT_WITHOUT_ANSWER, failed)  /* the program failed, or used no device memory */

enum fit_outcome {
#define FIT_OUTCOME(constant, name) constant,
    FIT_OUTCOMES(FIT_OUTCOME)
#undef FIT_OUTCOME
        FIT_OUTCOME_COUNT
};
extern const char *const fit_outcome_names[FIT_OUTCOME_COUNT];

struct fit_point {
    const struct fit_variant *variant;
    const struct fit_point *same; // an earlier variant with the same command line; NULL: none
    enum fit_outcome outcome;
    uint64_t fits_on; // bit set of the requested models' numbers
    uint64_t need_bytes, allocated_bytes, reserved_bytes;
    bool ran_out; // need_bytes is the memory of the card that was too small
    bool has_work;
    double work;
    char *failure;             // a sentence; NULL: none
    double seconds;            // of its run
    uint64_t ranks_run, ranks; // different if some ranks ran for all
    bool checked;              // ran again with all of its ranks
    char *noted;               // which of its ranks are alike (fit_fold_noted()); NULL: not known
    bool is_frontier;          // no other that fits has as much work in less memory, or more work in as much
};

struct fit_search {
    const struct fit_vary *vary;
    const struct fit_variants *variants;
    const char *work, *printed; // --work and --printed; NULL: not given
    uint64_t asked;             // bit set of models
    uint64_t limit_bytes;       // UINT64_MAX: none
    uint64_t budget_seconds;    // 0: none
    struct timespec begin;
    struct fit_point *points; // in the order of their runs
    size_t count;
    bool interrupted;
    double seconds; // of the whole search
};

// Prepares the points: the largest work first, if it is known before the runs. Returns false, with the reason in `wrong`. Release with
// fit_search_release().
bool fit_search_begin(struct fit_search *search, char wrong[FIT_VARY_WRONG]);
void fit_search_release(struct fit_search *search);
// Returns the seconds since the search began.
double fit_search_passed(const struct fit_search *search);
// Returns the seconds that are left; UINT64_MAX without a budget.
uint64_t fit_search_left(const struct fit_search *search);

// Returns what was noted about the ranks of an earlier variant, if those of this point are probably alike in the same way; else NULL.
const char *fit_search_guess(const struct fit_search *search, const struct fit_point *point);
// Keeps what was noted about the point's ranks. Owns it.
void fit_point_take_noted(struct fit_point *point, char *noted);
// Returns whether a run has no answer, because it was interrupted or the search's time ended it. `search` may be NULL.
bool fit_search_cuts(struct fit_search *search, const struct fit_run *run);

// Take a run's answer.
void fit_point_take(struct fit_point *point, const struct fit_answer *answer, uint64_t asked);
// Takes the answer of a run in which the largest requested card was too small.
void fit_point_take_oom(struct fit_point *point, const struct fit_run *run, const struct fit_fold *fold, uint64_t card_bytes);
void fit_point_take_failure(struct fit_point *point, const struct fit_run *run, const struct fit_fold *fold);
// Computes the work of a point that ran.
void fit_search_measure(const struct fit_search *search, struct fit_point *point, const struct fit_run *run);
// Ends the search: copies the answers of equal command lines, and finds the frontier.
void fit_search_end(struct fit_search *search);

// Returns the point with the most work, then the least memory, that fits on a model, or within the limit; NULL if none does.
const struct fit_point *fit_search_best(const struct fit_search *search, uint32_t model);
size_t fit_search_count(const struct fit_search *search, enum fit_outcome outcome);
// Returns whether variants that differ in this argument only ran, and all have the same peaks.
bool fit_search_lacks_effect(const struct fit_search *search, size_t argument);
// Returns whether the memory that the point needs is known.
bool fit_point_is_known(const struct fit_point *point);
// Orders points by work, the most first, then by memory, then as --vary does.
int fit_point_order(const struct fit_point *one, const struct fit_point *other);

#define FIT_CARDS_CAPACITY 400
// Writes the requested cards in a bit set of models, or the limit. Returns text.
const char *fit_search_cards(const struct fit_search *search, uint64_t cards, char text[FIT_CARDS_CAPACITY]);
// Writes a time as "12 s" or "3 min 4 s". Returns text.
const char *fit_search_time(double seconds, char text[32]);

int fit_search_print(const struct fit_search *search);
int fit_search_json(const struct fit_search *search, struct answers *answers);

#endif
