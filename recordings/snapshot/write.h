// write.h: a model as a pickle or JSON of PyTorch's dictionaries.
#ifndef VR_SNAPSHOT_WRITE_H
#define VR_SNAPSHOT_WRITE_H

#include "model/model.h"
#include "vram/export.h"

// Writes the model, which is borrowed and must satisfy vr_model_check(). As vram_recording_write(). IO, NO_HOST_MEMORY; *error may be NULL.
enum vram_status vr_model_write(const struct vr_model *model, enum vram_recording_format format, vram_write write, void *user,
                                struct vram_error *error);

#endif
