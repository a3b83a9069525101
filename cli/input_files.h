// input_files.h: the recordings that a command line names, one after the other.
#ifndef CLI_INPUT_FILES_H
#define CLI_INPUT_FILES_H

#include <stdbool.h>

#include "answers.h"

// Paths of recordings: the operands, and in place of a folder (the ranks of one job, say) the recordings in it, in place of a page of
// `vram view` with several of them each, as PAGE#NAME.
struct input_files {
    char **paths; // "-" stands for standard input
    int count;
    bool had_folder;
};

// Lists what `count` operands name. Of a folder these are its files (not those of folders in it, and no hidden ones) that end in .pickle,
// .pkl, .json, .html or .vram, each also with .gz, .zst or .xz, by name, numbers in names by their value.
// Recordings of a page that have the same name are PAGE#NUMBER. On failure prints one line on
// standard error and returns the exit code.
int input_files_open(char **operands, int count, struct input_files *files);
void input_files_close(struct input_files *files);

// Works on one recording and prints its answer. The exit code.
typedef int input_visit(const char *path, struct answers *answers, void *context);
// Calls `visit` for every recording of the list; files that cannot be read are left out. With `json` several results are one array; else
// `between` is printed between two. Returns the highest exit code.
int input_files_each(const struct input_files *files, bool json, const char *between, input_visit *visit, void *context);
// The same for the recordings that the operands name.
int input_each(char **operands, int count, bool json, const char *between, input_visit *visit, void *context);

#endif
