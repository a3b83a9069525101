// input_files.h: finds the recordings that a command line names, and runs a command on each.
#ifndef CLI_INPUT_FILES_H
#define CLI_INPUT_FILES_H

#include <stdbool.h>

#include "output.h"
#include "input.h"

// Paths of recordings. A folder is replaced by the recordings in it (such as the ranks of one job), a page of `vram view` with several
// recordings by PAGE#NAME for each.
struct input_files {
    char **paths; // "-" is standard input
    int count;
    bool had_folder;
};

// Lists the recordings of `count` operands. In a folder these are the files, except hidden ones, that end in .pickle, .pkl, .json, .html or
// .vram, optionally with .gz, .zst or .xz. They are sorted by name, with numbers by value; folders inside it are not entered. Recordings of
// a page with the same name become PAGE#NUMBER. Returns CLI_OK, or an exit code after a line on standard error.
int input_files_open(char **operands, int count, struct input_files *files);
void input_files_close(struct input_files *files);

// A recording from the list.
struct input_opened {
    const char *path;
    struct vram_recording *recording; // destroyed after its answer
    struct input_facts facts;
    struct answers *answers; // where to print the answer
};

// A command's work on each recording. `answer` prints one answer and returns an exit code.
struct input_work {
    int (*answer)(const struct input_opened *opened, void *context);
    void *context;
    bool json;           // print several answers as one array
    const char *between; // text between two answers if not JSON
    bool plain;          // keeps machine code as addresses, because none is shown
};

// Reads each recording, calls work->answer, and closes it. Skips files that cannot be read. Returns the highest exit code.
int input_files_run(const struct input_files *files, const struct input_work *work);
// Lists the operands and calls input_files_run(), for commands that answer about each recording. Skips folders that cannot be listed or
// hold no recording.
int run_command(const struct input_work *work, char **operands, int count);

#endif
