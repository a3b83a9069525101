// fit_failure.h: how a program failed under `vram fit`: what, where, and which read of a value may be the cause.
#ifndef CLI_FIT_FAILURE_H
#define CLI_FIT_FAILURE_H

#include <stdbool.h>
#include <stddef.h>

struct vr_json;

struct fit_run;

// What the program's process told of itself: facts (adapters/fit/vram_fit_failure.py).
struct fit_failure {
    char what[420];    // "ValueError: ..."; "": no exception ended it, or none that is known
    char frames[4000]; // where it was raised, as of fit_place.h
};

// A line of facts; false: it is of something else.
bool fit_failure_fact(struct fit_failure *failure, const char *line);

// Whether what is known of the run ends where it failed or was interrupted.
bool fit_run_failed(const struct fit_run *run);
// Of the lowest rank that knows why it ended. NULL: none does.
const struct fit_failure *fit_failure_of(const struct fit_run *run);
// A sentence: "The program failed after 3 steps, at FILE:LINE:FUNCTION: ValueError: ...".
void fit_failure_text(const struct fit_run *run, char *text, size_t capacity);
// Of a program that failed just after it had read what a kernel would have computed: the option that gives the read another value, as words
// of a command line, and where it read. False: it did not.
bool fit_failure_try(const struct fit_run *run, char *option, size_t capacity, char *site, size_t site_capacity);

// The object `failure` of the answer, or null.
void fit_failure_json(struct vr_json *json, const struct fit_run *run);

#endif
