// oom_report.h: the report of a failed request, and who is told.
#ifndef VR_CORE_OOM_REPORT_H
#define VR_CORE_OOM_REPORT_H

#include "core/alloc.h"

// Fills *oom with the device's state as it is. Under all locks, with the device's context current. segment_bytes: what the driver was
// to be asked for.
void vr_oom_describe(const struct vr_alloc_request *request, uint64_t segment_bytes, bool rejected, bool limit_hit, struct vram_oom *oom);
// Keeps it for vram_last_oom() and calls the observers. Without any lock.
void vr_oom_announce(struct vram_allocator *allocator, const struct vram_oom *oom);

#endif
