// vramfile.h: recording files of our own (.vram, docs/reference/formats/recording.md): read into a model, and a model written as one.
#ifndef VR_SNAPSHOT_VRAMFILE_H
#define VR_SNAPSHOT_VRAMFILE_H

#include "model/model.h"
#include "snapshot/input.h"
#include "vram/status.h"

// The first bytes of every recording file.
#define VR_VRAMFILE_MAGIC        "\x89VRAM\r\n\x1a"
#define VR_VRAMFILE_MAGIC_LENGTH 8

// Reads a file of our own into *model, which is zeroed when it fails. A file that ends in the middle, or that its program did not close, is
// read as far as it goes: model->ending says so. BAD_INPUT, LIMIT, IO, NO_HOST_MEMORY; *error says what.
enum vram_status vr_vramfile_read(struct vr_input *input, struct vr_model *model, struct vram_error *error);

// Writes the model, which is borrowed, as a complete file into `write` (false from it: IO). Every table, has-bit and order comes back when
// it is read. *error may be NULL. IO, NO_HOST_MEMORY. Any thread.
enum vram_status vr_log_write_model(const struct vr_model *model, vram_write write, void *user, struct vram_error *error);

#endif
