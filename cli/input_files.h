// input_files.h: the recordings that a command line names, one after the other.
#ifndef CLI_INPUT_FILES_H
#define CLI_INPUT_FILES_H

#include <stdbool.h>

#include "output.h"
#include "input.h"

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

// One of them, read.
struct input_opened {
    const char *path;
    struct vram_recording *recording; // goes when its answer is made
    struct input_facts facts;
    struct answers *answers; // where the answer goes
};

// What a command does with each recording. `answer` makes and prints one answer and returns the exit code.
struct input_work {
    int (*answer)(const struct input_opened *opened, void *context);
    void *context;
    bool json;           // several answers are one array,
    const char *between; // else this is printed between two
    bool plain;          // machine code keeps its addresses: nothing is shown of it
};

// Reads every recording of the list, lets the work answer, and closes it; files that cannot be read are left out. Returns the highest exit
// code.
int input_files_run(const struct input_files *files, const struct input_work *work);
// The same for the recordings that the operands name: the tail of every command that answers for each of them.
int run_command(const struct input_work *work, char **operands, int count);

#endif
