// input.h: a file or standard input as a stream of bytes, with gzip, xz or zstd undone.
#ifndef CLI_INPUT_H
#define CLI_INPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "args.h"
#include "vram/recording.h"

// A recording and what was seen of its file.
struct input_facts {
    const char *name; // as messages call it: the path, or "standard input"
    uint64_t bytes;   // read, decompressed
};

// How many bytes a compressed file may unpack to; 0 (the default): the larger of 1 GiB and 200 times the file, of which a pipe counts as
// what was read of it until now. Of the process: the row of the options sets it, before anything is read.
extern uint64_t input_max_unpacked;

// The row of every command that reads recordings.
#define INPUT_OPTION                                                                                                                       \
    {                                                                                                                                      \
        .name = "max-unpacked", .kind = ARGS_SIZE, .value = "SIZE",                                                                        \
        .help = "unpack compressed files up to this (default: 1 GiB, or 200 times the file)", .target = &input_max_unpacked                \
    }

// Set by --skip: an expression over file:line:function of frames that are to name no call site; NULL: none.
extern const char *input_skip;

// The row of the commands that name call sites.
#define SKIP_OPTION                                                                                                                        \
    {                                                                                                                                      \
        .name = "skip", .kind = ARGS_STRING, .value = "REGEX",                                                                             \
        .help = "frames that name no call site: wrappers of your own, by file:line:function", .target = &input_skip                        \
    }

// Opens `path` (or standard input for "-"), undoes compression told by content and reads one recording. A page that `vram view` wrote, or a
// ZIP archive, stands for the recording in it; FILE#NAME or FILE#NUMBER (from 1) for one of several. *recording is given to the caller. On
// failure prints one line on standard error and returns the exit code; CLI_OK otherwise. Holds one buffer and the decompressor's window
// in addition to the recording.
int input_recording(const char *path, struct vram_recording **recording, struct input_facts *facts);

// What --skip says, done to a recording. CLI_USAGE with a line on standard error for what is no expression.
int input_skip_frames(struct vram_recording *recording);

// The same, with the names of machine code that this machine knows; without memory for them it stays as it is.
int input_named_recording(const char *path, struct vram_recording **recording, struct input_facts *facts);

// Steps through the recordings in a page of `vram view` or a ZIP archive and calls visit with the name of each. False (and no call) for any
// other file, also for what cannot be read.
bool input_names(const char *path, void (*visit)(void *context, const char *name), void *context);
// The length of the part of a path that names the file: what stands before #NAME, or all of it.
size_t input_file_length(const char *path);

// Whether a file is called like a recording: .pickle, .pkl, .json, .html, .vram, also compressed.
bool input_is_recording_name(const char *name);

// What follows the last '/' of a path; the whole path where nothing does.
const char *input_base_name(const char *path);

#endif
