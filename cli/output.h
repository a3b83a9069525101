// output.h: where a command writes a file: compressed as its name says, and in place of an older file only when it is complete.
#ifndef CLI_OUTPUT_H
#define CLI_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "vram/status.h"

struct output;

// Opens `path` ("-": standard output) for writing. The bytes go to a new file beside it, which takes its place in output_close(); what is
// no plain file (a pipe, /dev/null) is written directly. A name that ends in .gz, .zst or .xz is compressed. On failure prints one line on
// standard error and returns NULL.
struct output *output_open(const char *path);
// A vram_write(): `user` is the output.
bool output_write(void *user, const char *bytes, size_t length);
// Completes the file, or, with `keep` false, leaves everything as it was before. Prints one line on standard error when that fails. The
// exit code; CLI_OK also for NULL.
int output_close(struct output *output, bool keep);
// The same with what a function of the library returned that wrote into it: keeps the file for VRAM_OK. A status that is not of the writing
// is said of `name`; what could not be written was the output's to say.
int output_end(struct output *output, enum vram_status status, const char *name, const struct vram_error *error);
// Opens a file of others' for adding at its end (GitHub's summary of a job). The caller closes it. NULL when it can't be opened.
FILE *output_append(const char *path);
// Makes the folders that the path's file shall be in. Prints one line on standard error when that fails.
bool output_folder(const char *path);
// Whether the path is that of a folder: there is one, or it ends with a slash.
bool output_is_folder(const char *path);
// The part of a path's name that says what it holds: without .gz, .zst and .xz. Its length.
size_t output_plain_length(const char *path);
// Whether both paths name the same existing file.
bool output_is_input(const char *output, const char *input);

#endif
