// input.h: reads recordings from a file or standard input, decompressing gzip, xz and zstd.
#ifndef CLI_INPUT_H
#define CLI_INPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "args.h"
#include "vram/recording.h"

// Facts about the file of a recording.
struct input_facts {
    const char *name; // for messages: the path, or "standard input"
    uint64_t bytes;   // read, decompressed
};

// The limit for unpacking a compressed file, in bytes. 0 (the default): the larger of 1 GiB and 200 times the file; the size of a pipe is
// what has been read of it. Process-wide; set by the option below before anything is read.
extern uint64_t input_max_unpacked;

// The option for every command that reads recordings.
#define INPUT_OPTION                                                                                                                       \
    {                                                                                                                                      \
        .name = "max-unpacked", .kind = ARGS_SIZE, .value = "SIZE",                                                                        \
        .help = "decompress files to at most this size (default: 1 GiB, or 200 times the file)", .target = &input_max_unpacked             \
    }

// Set by --skip: a regular expression for the file:line:function of frames that are not call sites; NULL: none.
extern const char *input_skip;

// The option for commands that name call sites.
#define SKIP_OPTION                                                                                                                        \
    {                                                                                                                                      \
        .name = "skip", .kind = ARGS_STRING, .value = "REGEX",                                                                             \
        .help = "frames that are never call sites, such as your own wrappers, by file:line:function", .target = &input_skip                \
    }

// Reads one recording from `path` ("-": standard input). Detects compression by content. A page of `vram view` or a ZIP archive is accepted
// for the recording in it; FILE#NAME or FILE#NUMBER (from 1) chooses one of several. The caller owns *recording. Returns CLI_OK, or an exit
// code after a line on standard error. Needs one buffer and the decompressor's window in addition to the recording.
int input_recording(const char *path, struct vram_recording **recording, struct input_facts *facts);

// Applies --skip to a recording. Returns CLI_USAGE, after a line on standard error, if it is not a valid expression.
int input_skip_frames(struct vram_recording *recording);

// Reads a recording as input_recording() does and names machine code by this machine's modules. If memory for names runs out, the code
// stays unnamed.
int input_named_recording(const char *path, struct vram_recording **recording, struct input_facts *facts);

// Calls visit with the name of each recording in a page of `vram view` or a ZIP archive. Returns false, without a call, for other files and
// for files that cannot be read.
bool input_names(const char *path, void (*visit)(void *context, const char *name), void *context);
// Returns the length of the file's part of a path: up to #NAME, or all of it.
size_t input_file_length(const char *path);

// Returns whether a file is named like a recording: .pickle, .pkl, .json, .html, .vram, also compressed.
bool input_is_recording_name(const char *name);

// Returns the part of a path after its last '/', or all of it.
const char *input_base_name(const char *path);

#endif
