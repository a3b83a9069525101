// generation.h: which generation of files a recording is of.
#ifndef VR_ANALYZE_GENERATION_H
#define VR_ANALYZE_GENERATION_H

#include "model/model.h"

// The generation of what is no snapshot: events alone, read from a log or a profiler's trace.
#define VR_EVENTS_ALONE "events"
// The generation and the PyTorch versions that write it, by the keys alone. Static texts.
void vr_report_generation(const struct vr_model *model, const char **generation, const char **era);
// "dict" or "segment_list". Static.
const char *vr_report_form(const struct vr_model *model);
// Does the recording tell the settings of an allocator? Files that were written event by event have no keys at the top.
bool vr_report_has_settings(const struct vr_model *model);

#endif
