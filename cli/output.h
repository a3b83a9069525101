// output.h: writes a command's files, compressed by their extension and replaced only when complete, and its answers on standard output.
#ifndef CLI_OUTPUT_H
#define CLI_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "base/json.h"
#include "vram/status.h"

// A file being written. It replaces an older file only when it is complete.

struct output;

// Opens `path` ("-": standard output) for writing. Writes to a new file in its folder, which output_close() renames; writes directly to
// what is not a plain file (a pipe, /dev/null). Compresses if the name ends in .gz, .zst or .xz. Returns NULL after a line on standard
// error.
struct output *output_open(const char *path);
// A vram_write(); `user` is the output.
bool output_write(void *user, const char *bytes, size_t length);
// Completes the file. If `keep` is false, leaves any older file unchanged. Accepts NULL. Returns CLI_OK, or an exit code after a line on
// standard error.
int output_close(struct output *output, bool keep);
// Closes the output after a library function wrote into it and returned `status`; keeps the file if it is VRAM_OK. Reports other failures
// of the function about `name`; the output reports failures of writing.
int output_end(struct output *output, enum vram_status status, const char *name, const struct vram_error *error);
// Opens another tool's existing file for appending (GitHub's summary of a job). The caller closes it. Returns NULL on failure.
FILE *output_append(const char *path);
// Creates the folders of the path's file. Prints one line on standard error on failure.
bool output_folder(const char *path);
// Returns whether a file can be made there, or if `folder`, files in that folder, which may have to be created. Otherwise sets errno.
bool output_can_write(const char *path, bool folder);
// Returns whether the path is a folder: one exists, or the path ends with a slash.
bool output_is_folder(const char *path);
// Returns the length of the path without .gz, .zst or .xz.
size_t output_plain_length(const char *path);
// Returns whether both paths name the same existing file.
bool output_is_input(const char *output, const char *input);

// A command's answers on standard output, as text or JSON; several may form one array. The separator is printed with an answer's first
// byte, so that an answer that fails before it leaves no trace.
struct answers {
    bool json, is_array;
    const char *between; // printed between two text answers
    uint64_t begun;      // number of answers with output
    bool due;            // the next byte begins an answer
};

// Opens an array if `is_array` and JSON. answers_close() closes it, even if it is empty. `between` separates text answers.
void answers_open(struct answers *answers, bool json, bool is_array, const char *between);
void answers_close(struct answers *answers);

// Announces another answer. Write it with answers_write(), or to stdout after answers_begin().
void answers_expect(struct answers *answers);
// A vram_write(); `answers` is the user.
bool answers_write(void *answers, const char *bytes, size_t length);
// Prints the separator before the expected answer.
void answers_begin(struct answers *answers);

// Builds one JSON value. answer_json_end() prints it, as the expected answer, or as its own line if `answers` is NULL. Returns an exit
// code: CLI_BAD_INPUT, after a line on standard error, if host memory runs out.
struct answer_json {
    struct vr_text text;
    struct vr_json json;
};
struct vr_json *answer_json_begin(struct answer_json *answer);
// Writes a number with at most `digits` decimals.
void answer_json_decimal(struct vr_json *json, const char *key, double value, int digits);
int answer_json_end(struct answer_json *answer, struct answers *answers);

#endif
