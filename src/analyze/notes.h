// notes.h: remarks about the recording itself: which generation wrote it, what it lacks, what does not fit together.
#ifndef VR_NOTES_H
#define VR_NOTES_H

#include "analyze/arena.h"
#include "model/model.h"
#include "vram/report.h"

// The generation of what is no snapshot: events alone, read from a log or a profiler's trace.
#define VR_EVENTS_ALONE "events"
// The generation and the PyTorch versions that write it, by the keys alone. Static texts.
void vr_report_generation(const struct vr_model *model, const char **generation, const char **era);
// Does the recording tell the settings of an allocator? Files that were written event by event have no keys at the top.
bool vr_report_has_settings(const struct vr_model *model);
// Fills report->notes from the devices, which must be complete. NO_HOST_MEMORY.
enum vram_status vr_report_notes(const struct vr_model *model, struct vr_arena *arena, struct vram_report *report);

#endif
