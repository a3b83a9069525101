// fit_failure.h: how a program failed under `vram fit`: what, where, which read of a value may be the cause, and which modules found no
// device.
#ifndef CLI_FIT_FAILURE_H
#define CLI_FIT_FAILURE_H

#include <stdbool.h>
#include <stddef.h>

// Places in programs, as `vram fit` reads and writes them.
//
// A stack is text, a frame a line, innermost first: "FUNCTION at FILE:LINE". A call site is "FILE:LINE:FUNCTION".

#define FIT_FRAME_CAPACITY 512

struct fit_frame {
    char function[FIT_FRAME_CAPACITY], file[FIT_FRAME_CAPACITY];
    unsigned line; // 0: it is not of that form, and all of it is in `function`
};

// The innermost frame of the program's own, else the innermost one of all. False where there is none.
bool fit_frame_own(const char *stack, struct fit_frame *frame);
// Its call site; of a frame of another form, what it says.
void fit_frame_site(const struct fit_frame *frame, char *site, size_t capacity);
// A call site, or a file, without the folders of its file but the last. Points into `site`.
const char *fit_site_short(const char *site);

// How a program failed under `vram fit`: what, where, and which read of a value may be the cause.

struct vr_json;

struct fit_run;

// What the program's process told of itself: facts (adapters/fit/vram_fit_failure.py).
struct fit_failure {
    char what[420];    // "ValueError: ..."; "": no exception ended it, or none that is known
    char frames[4000]; // where it was raised, as text of frames
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

// Parts of a program that found no device, because NVIDIA's runtime is linked into them.

// What is said of the first such module of a run; false where there is none. `whole`: the program used no device memory at all.
bool fit_unreached_text(const struct fit_run *run, bool whole, char *text, size_t capacity);
// That module's file; NULL where there is none. Borrowed from the run.
const char *fit_unreached_module(const struct fit_run *run);

#endif
