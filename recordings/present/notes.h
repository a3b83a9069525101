// notes.h: remarks about the recording itself: which generation wrote it, what it lacks, what does not fit together.
#ifndef VR_PRESENT_NOTES_H
#define VR_PRESENT_NOTES_H

#include "analyze/arena.h"
#include "model/model.h"
#include "vram/report.h"

// Fills report->notes from the devices, which must be complete. NO_HOST_MEMORY.
enum vram_status vr_report_notes(const struct vr_model *model, struct vr_arena *arena, struct vram_report *report);

#endif
