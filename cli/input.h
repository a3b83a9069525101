// input.h: a file or standard input as a stream of bytes, with gzip, xz or zstd undone.
#ifndef CLI_INPUT_H
#define CLI_INPUT_H

#include <stdint.h>

#include "vram/recording.h"

// A recording and what was seen of its file.
struct input_facts {
    const char *name; // as messages call it: the path, or "standard input"
    uint64_t bytes;   // read, decompressed
};

// Opens `path` (or standard input for "-"), undoes compression told by content and reads one recording. *recording is given to the
// caller. On failure prints one line on standard error and returns the exit code; CLI_OK otherwise. Holds one buffer and the
// decompressor's window besides the recording.
int input_recording(const char *path, struct vram_recording **recording, struct input_facts *facts);

// What follows the last '/' of a path; the whole path where nothing does.
const char *input_base_name(const char *path);

#endif
