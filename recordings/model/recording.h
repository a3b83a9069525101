// recording.h: the public handle around a model.
#ifndef VR_MODEL_RECORDING_H
#define VR_MODEL_RECORDING_H

#include "model/model.h"
#include "vram/recording.h"

struct vram_recording {
    struct vr_model model;
};

// Returns the model inside; borrowed and immutable.
VR_INLINE const struct vr_model *vr_recording_model(const struct vram_recording *recording) { return &recording->model; }

// Returns an event as vram_recording_event() does. `i` must be below the history's count.
struct vram_recorded_event vr_recorded_event(const struct vr_model *model, const struct vr_history *history, size_t i);

// Wraps *model, taking it over (and zeroing it) on success. NO_HOST_MEMORY.
enum vram_status vr_recording_create(struct vr_model *model, struct vram_recording **recording);

#endif
