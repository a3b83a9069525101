// file.h: a file that appears whole or not at all.
#ifndef VR_LIVE_FILE_H
#define VR_LIVE_FILE_H

#include <stdio.h>

#include "base/base.h"
#include "vram/export.h"

enum { VR_PATH_BYTES = 4096 };

struct vr_file {
    FILE *stream;
    char path[VR_PATH_BYTES];
    char partial[VR_PATH_BYTES + 32]; // name during the write
};

// Expands the pattern and opens a new file next to the path. A path that is not a regular file (a terminal, a pipe) is written directly.
// INVALID_ARGUMENT, IO.
enum vram_status vr_file_open(struct vr_file *file, const char *pattern, struct vram_error *error);
// Returns the format that the end of the path implies.
enum vram_recording_format vr_file_format(const struct vr_file *file);
// A vram_write whose user is the struct vr_file.
bool vr_file_write(void *user, const char *bytes, size_t length);
// Renames the file to its final name if status is OK, otherwise removes it. Returns the first failure. IO.
enum vram_status vr_file_close(struct vr_file *file, enum vram_status status, struct vram_error *error);

#endif
