// fit_folder.h: what the processes of a run left: recordings, and facts about them (adapters/fit/vram_fit.py, adapters/preload).
#ifndef CLI_FIT_FOLDER_H
#define CLI_FIT_FOLDER_H

#include <dirent.h>

#include "fit_run.h"

// Makes a folder of this user's alone and puts its path into run->folder. False with errno.
bool fit_folder_make(struct fit_run *run);
// The next file whose name ends so; *entries is NULL before the first, and after the last, when it returns false.
bool fit_folder_next(const struct fit_run *run, const char *end, DIR **entries, char *name, size_t capacity);
// Fills the processes and holdings. The exit code.
int fit_folder_read(struct fit_run *run);
// Removes what is in the folder, and it.
void fit_folder_remove(struct fit_run *run);

#endif
