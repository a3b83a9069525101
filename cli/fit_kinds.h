// fit_kinds.h: the kinds of ranks in the answer of `vram fit --fold auto`: how many ranks each has, and what the ranks that ran hold.
#ifndef CLI_FIT_KINDS_H
#define CLI_FIT_KINDS_H

#include <stdio.h>

#include "fit_print.h"

struct vr_json;

// Prints the table of kinds, which of them needs the most and why, and the host memory of a machine.
void fit_kinds_print(FILE *page, const struct fit_answer *answer);
void fit_kinds_json(struct vr_json *json, const char *name, const struct fit_answer *answer);

#endif
