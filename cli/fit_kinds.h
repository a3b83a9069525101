// fit_kinds.h: the kinds of ranks in the answer of `vram fit --fold auto`: how many ranks each has, and what the ranks that ran hold.
#ifndef CLI_FIT_KINDS_H
#define CLI_FIT_KINDS_H

#include <stdio.h>

#include "fit_print.h"

struct vr_json;

// Prints the table of kinds, which of them needs the most and why, and the host memory of a machine.
void fit_kinds_print(FILE *page, const struct fit_answer *answer);
void fit_kinds_json(struct vr_json *json, const char *name, const struct fit_answer *answer);
// Writes which kind needs the most and what it holds at its peak that the smallest does not; "" if that is not known.
void fit_kinds_reason(const struct fit_answer *answer, char *text, size_t capacity);
// Like fit_kinds_reason(), but returns the text, or NULL if it is not known.
static inline const char *fit_kinds_text(const struct fit_answer *answer, char *text, size_t capacity) {
    fit_kinds_reason(answer, text, capacity);
    return text[0] == '\0' ? NULL : text;
}

// The file of a folder of recordings from which `vram view` makes the page's table of kinds.
#define FIT_KINDS_FILE "kinds.jsonl"

// Writes that file into the folder, if there are kinds. Returns an exit code, after a line on standard error on failure.
int fit_kinds_keep(const struct fit_answer *answer, const char *folder);

#endif
