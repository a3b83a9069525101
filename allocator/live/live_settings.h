// live_settings.h: the settings in force as `allocator_settings`.
#ifndef VR_LIVE_LIVE_SETTINGS_H
#define VR_LIVE_LIVE_SETTINGS_H

#include "config/recorded_options.h"
#include "live/live_model.h"
#include "model/builder.h"

// Calls visit(key, value as JSON text, length, user) for every setting until a call fails. Returns its status, or NO_HOST_MEMORY.
enum vram_status vr_settings_visit(const struct vr_copied *copied, vr_recorded_visitor visit, void *user);
// Visits the settings that an OOM adds, in the same way.
enum vram_status vr_settings_visit_oom(const struct vr_oom_facts *oom_facts, vr_recorded_visitor visit, void *user);
// Fills the model's table of settings, with all keys of PyTorch's. NO_HOST_MEMORY.
enum vram_status vr_live_model_settings(const struct vr_copied *copied, struct vr_builder *builder, struct vr_model *model);

#endif
