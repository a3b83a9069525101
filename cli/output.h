// output.h: what a command writes: a file, compressed as its name says, which takes the place of an older one when it is complete;
// and answers on standard output.
#ifndef CLI_OUTPUT_H
#define CLI_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "base/json.h"
#include "vram/status.h"

// Where a command writes a file: compressed as its name says, and in place of an older file only when it is complete.

struct output;

// Opens `path` ("-": standard output) for writing. The bytes go to a new file in its folder, which takes its place in output_close(); what
// is no plain file (a pipe, /dev/null) is written directly. A name that ends in .gz, .zst or .xz is compressed. On failure prints one line
// on standard error and returns NULL.
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

// The answers of a command on standard output, for people or as JSON: where there can be several, one array of them.

// An answer that ends before its first byte leaves no trace: what separates it from the one before is printed with that byte.
struct answers {
    bool json, is_array;
    const char *between; // of answers for people
    uint64_t begun;      // answers of which something was printed
    bool due;            // the next byte is the first of an answer
};

// `between` is printed between two answers for people. An array is opened; answers_close() closes it, also where it is empty.
void answers_open(struct answers *answers, bool json, bool is_array, const char *between);
void answers_close(struct answers *answers);

// Another answer follows. Its bytes go through answers_write(), or through stdout after answers_begin().
void answers_expect(struct answers *answers);
// A vram_write whose user is the answers.
bool answers_write(void *answers, const char *bytes, size_t length);
// Prints what separates the expected answer from the one before.
void answers_begin(struct answers *answers);

// One value of JSON in the making. answer_json_end() prints it, as the expected answer or (answers NULL) as a line of its own, and returns
// the exit code: CLI_BAD_INPUT, with a line on standard error, without host memory for it.
struct answer_json {
    struct vr_text text;
    struct vr_json json;
};
struct vr_json *answer_json_begin(struct answer_json *answer);
// A number with so many digits behind the point at most.
void answer_json_decimal(struct vr_json *json, const char *key, double value, int digits);
int answer_json_end(struct answer_json *answer, struct answers *answers);

#endif
