// fit_program.h: answers `vram fit` for one command line of a program: runs it, again where that is needed, and judges the cards.
#ifndef CLI_FIT_PROGRAM_H
#define CLI_FIT_PROGRAM_H

#include "args.h"
#include "fit_fold.h"
#include "fit_requests.h"
#include "sim_environment.h"

struct answers;
struct fit_point;
struct fit_search;

// The user's question, and the state of the run that answers it.
struct fit_question {
    struct args_list devices;
    bool all, each, json, quiet, dummy_weights;
    const char *steps, *until, *seconds, *output, *more;
    uint64_t limit_bytes;
    uint64_t asked;   // bit set of model numbers
    char largest[32]; // key of the largest model asked for
    uint64_t most_seconds;
    uint64_t devices_asked; // --devices; 0: one for each rank that runs
    struct args_list vary, where;
    bool searches;              // --search
    const char *work, *printed; // --work, --printed
    const char *budget;
    uint64_t budget_seconds;
    struct sim_values values;
    const char *traffic;          // --requests; NULL: none
    struct fit_requests requests; // read from it
    const char *plan_folder;      // --write-plan; NULL: none
    const char *route;            // --route; NULL: none
    const char *folds;            // which ranks to run; NULL: all, or a few if there are very many

    // of the program that runs
    const char *varied; // the arguments of --vary, with their values; NULL without --vary
    struct fit_fold fold;
    uint64_t device_count;
    char unrunnable[32];       // the first choice of `largest`, if another model replaced it; else ""
    struct answers *answers;   // one, or several with --vary and --each
    struct fit_search *search; // takes the answers instead of printing them; NULL: none
    struct fit_point *point;   // of the search
};

// Runs the program and answers. Changes its words. Returns an exit code.
int fit_program(struct fit_question *question, char **program);
// Answers once for each requested card.
int fit_each_card(struct fit_question *question, char **program);
// Answers once for each variant of --vary, or by a search among them.
int fit_all_variants(struct fit_question *question, char **program);

#endif
