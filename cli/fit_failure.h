// fit_failure.h: describes how a program failed under `vram fit`: what, where, which read value may be the cause, and which modules found
// no device.
#ifndef CLI_FIT_FAILURE_H
#define CLI_FIT_FAILURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// A place in the program, as `vram fit` reads and writes it.
//
// A stack is text, one frame per line, innermost first: "FUNCTION at FILE:LINE". A call site is "FILE:LINE:FUNCTION".

#define FIT_FRAME_CAPACITY 512

struct fit_frame {
    char function[FIT_FRAME_CAPACITY], file[FIT_FRAME_CAPACITY];
    unsigned line; // 0: not in that form; `function` then contains all of it
};

// Finds the innermost frame of the program's own code, else the innermost of all. Returns false if the stack is empty.
bool fit_frame_own(const char *stack, struct fit_frame *frame);
// Stores the frame's call site, or its whole text if it is not in that form.
void fit_frame_site(const struct fit_frame *frame, char *site, size_t capacity);
// Finds the innermost frame of the program's own code. Returns false if there is no such frame.
bool fit_frame_of_program(const char *stack, struct fit_frame *frame);
#define FIT_SITE_MOST (2 * FIT_FRAME_CAPACITY + 20)
// Returns a call site or file with only the last folder of its path. Points into `site`.
const char *fit_site_short(const char *site);

struct vr_json;

struct fit_run;

// Facts the program's process wrote about its failure (adapters/fit/vram_fit_failure.py).
struct fit_failure {
    char what[420];    // "ValueError: ..."; "" if no known exception ended it
    char frames[4000]; // where it was raised, as a stack text
    int64_t time_us;   // when its process ended
    bool in_thread;    // it ended a thread, and the process went on
};

// Reads a line of facts. Returns false if it is about something else.
bool fit_failure_fact(struct fit_failure *failure, const char *line);

// Returns whether the run ends at a failure or an interrupt, so the rest is unknown.
bool fit_run_failed(const struct fit_run *run);
// Returns the failure of the rank that ended first, because those of other ranks may follow from it, or that of the rank that ended before
// it joined them; NULL if none recorded one.
const struct fit_failure *fit_failure_of(const struct fit_run *run);
// Stores the rank of the process that failed. Returns false if the program has no ranks but 0.
bool fit_failure_rank(const struct fit_run *run, const struct fit_failure *failure, uint64_t *rank);
// Stores the site of a failure without folders; "" if it is unknown or there is no failure.
void fit_failure_site(const struct fit_failure *failure, char *site, size_t capacity);
// Writes a sentence: "The program failed after 3 steps, at FILE:LINE:FUNCTION: ValueError: ...".
void fit_failure_text(const struct fit_run *run, char *text, size_t capacity);
// Returns the call site where the program first read how much memory is free; NULL: nowhere that is known.
const char *fit_free_read(const struct fit_run *run);
// For a program that failed just after it read what a kernel would have computed: stores the command-line option that gives the read
// another value, and the site of the read. Returns false otherwise.
bool fit_failure_try(const struct fit_run *run, char *option, size_t capacity, char *site, size_t site_capacity);

// Writes the member `failure` of the answer, an object or null.
void fit_failure_json(struct vr_json *json, const struct fit_run *run);

// Describes the run's first module that found no device because NVIDIA's runtime is linked into it. Returns false if there is none.
// `whole`: the program used no device memory at all.
bool fit_unreached_text(const struct fit_run *run, bool whole, char *text, size_t capacity);
// Returns that module's file, borrowed from the run; NULL if there is none.
const char *fit_unreached_module(const struct fit_run *run);

#endif
