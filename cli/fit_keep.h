// fit_keep.h: keeps recordings of a run (`vram fit --output`).
#ifndef CLI_FIT_KEEP_H
#define CLI_FIT_KEEP_H

#include "fit_print.h"

// Copies the recording of the highest process to the file `output`, or, if that is a folder, the recordings of all processes to
// `output`/rank-RANK.pickle (.vram if made at driver level), with the kinds of ranks. Returns CLI_OK, or an exit code after a line on
// standard error.
int fit_keep(const struct fit_answer *answer, const char *output);

#endif
