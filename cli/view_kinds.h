// view_kinds.h: the kinds of ranks of a folder that `vram fit -o FOLDER/` wrote, for the page's table of them.
#ifndef CLI_VIEW_KINDS_H
#define CLI_VIEW_KINDS_H

#include "input_files.h"
#include "vram/status.h"

// Reads the kinds in the folder of the first recording. Returns JSON text, which the caller frees; NULL if there are none, or after a line
// on standard error if the file is damaged.
char *view_kinds_read(const struct input_files *files);
// Writes the kinds into the page; does nothing if `kinds` is NULL. Returns an exit code.
int view_kinds_put(const char *kinds, vram_write write, void *user);

#endif
