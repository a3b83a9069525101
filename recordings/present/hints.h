// hints.h: advice that needs no failed request: what a recording shows to be held in vain, and what gives it back.
#ifndef VR_PRESENT_HINTS_H
#define VR_PRESENT_HINTS_H

#include "analyze/arena.h"
#include "vram/report.h"

// Sets the report's advice; the rows VR_HINT of analyze/advice.def whose grounds are there. NO_HOST_MEMORY.
enum vram_status vr_report_hints(struct vr_arena *arena, struct vram_report *report);

#endif
