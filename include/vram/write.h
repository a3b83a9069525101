// vram/write.h: writes a recording as a file that others read.
//
// A pickle has exactly the dictionaries that PyTorch's _dump_snapshot() writes: pickle.load() gives back what the recording was read from,
// value by value, and PyTorch's own viewer reads it. It is written as a stream, with strings, frames and stacks shared, so that it is
// smaller than PyTorch's. JSON has the same keys; the viewer reads that too.
#ifndef VRAM_WRITE_H
#define VRAM_WRITE_H

#include "vram/output.h"
#include "vram/recording.h"

#ifdef __cplusplus
extern "C" {
#endif

enum vram_recording_format {
    VRAM_FORMAT_PICKLE,    // protocol 4
    VRAM_FORMAT_JSON,      // strict, pure ASCII, in one line; pairs become lists, NaN and infinities null
    VRAM_FORMAT_JSON_ROWS, // the same with a line for every segment, block, event and annotation
    VRAM_FORMAT_VRAM,      // vram's own recording file (docs/reference/formats/recording.md)
    VRAM_FORMAT_COUNT
};

// Writes the recording, which is borrowed, through `write` in pieces of about 64 KiB. Holds a few bytes per distinct string, frame and
// stack besides the recording. Any thread, and any number of writers of one recording at once. IO when `write` returns false,
// INVALID_ARGUMENT for a NULL recording or `write` and an unknown format, NO_HOST_MEMORY; *error (may be NULL) says what.
VRAM_API VRAM_NODISCARD enum vram_status vram_recording_write(const struct vram_recording *recording, enum vram_recording_format format,
                                                              vram_write write, void *user, struct vram_error *error);

#ifdef __cplusplus
}
#endif
#endif
