// oom_report.h: describes a failed request and notifies the observers.
#ifndef VR_CORE_OOM_REPORT_H
#define VR_CORE_OOM_REPORT_H

#include "core/alloc.h"

// Fills *oom with the current state of the device. Under all locks, with the device's context current. segment_bytes: the size of the
// request to the driver.
void vr_oom_describe(const struct vr_alloc_request *request, uint64_t segment_bytes, bool rejected, bool limit_hit, struct vram_oom *oom);
// Stores *oom for vram_last_oom() and calls the observers. Called without any lock.
void vr_oom_announce(struct vram_allocator *allocator, const struct vram_oom *oom);

#endif
