// segment_kinds.h: whether segments serve small or large requests, which a history does not say.
#ifndef VR_EXPLORE_TABLES_SEGMENT_KINDS_H
#define VR_EXPLORE_TABLES_SEGMENT_KINDS_H

#include "analyze/segment_lives.h"
#include "analyze/view.h"
#include "vram/report.h"

// By row of the segment lives: enum vram_report_kind. *kind is given to the caller (free()). NO_HOST_MEMORY.
enum vram_status vr_segment_kinds(const struct vr_view *view, const struct vr_segment_lives *segments, uint8_t **kind);

#endif
