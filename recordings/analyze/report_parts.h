// report_parts.h: the parts of one device's report. Each function fills its own members of *out from the view; arrays go to the arena.
// All of them return NO_HOST_MEMORY only, unless they say otherwise.
#ifndef VR_ANALYZE_REPORT_PARTS_H
#define VR_ANALYZE_REPORT_PARTS_H

#include "analyze/arena.h"
#include "analyze/report_lifetimes.h"
#include "analyze/sites.h"
#include "analyze/view.h"
#include "vram/report.h"

// report_trace.c: events by action, streams, times, frames.
enum vram_status vr_report_trace(const struct vr_view *view, struct vr_arena *arena, struct vram_report_device *out);
// report_trace.c: the reserved curve; points (point_count of them, may be 0) get the largest value of their runs.
void vr_report_reserved(const struct vr_view *view, struct vram_report_reserved *reserved, struct vram_report_point *points,
                        size_t point_count);
// report_picture.c: segments, blocks, states, sums, usage, pools.
enum vram_status vr_report_picture(const struct vr_view *view, struct vr_arena *arena, struct vram_report_device *out);
// report_live.c: one notion's facts from its lifetimes, those of the same `top`.
enum vram_status vr_report_live(const struct vr_view *view, struct vr_sites *sites, const struct vr_report_lifetimes *found, size_t top,
                                struct vr_arena *arena, struct vram_report_live *out);
// waiting.c: what was freed and waited for other streams when most did; live facts must be there. NO_HOST_MEMORY.
enum vram_status vr_report_waiting(const struct vr_view *view, struct vr_sites *sites, struct vr_arena *arena,
                                   struct vram_report_device *out);
// report_libraries.c: whether the recording is one of `vram run`: what was asked of the driver, without an allocator between.
bool vr_is_whole_program(const struct vr_view *view);
// report_libraries.c: who asked for what was live at the peak; nothing where the recording is not one of a whole program.
enum vram_status vr_report_libraries(const struct vr_view *view, const struct vr_lifetimes *allocated, struct vr_arena *arena,
                                     struct vram_report_device *out);
// report_libraries.c: the same libraries of what was live after an event; *libraries is untouched where the recording is another.
enum vram_status vr_libraries_at(const struct vr_view *view, const struct vr_lifetimes *allocated, int64_t event, struct vr_arena *arena,
                                 const struct vram_report_group **libraries, size_t *count);
// report_oom.c: out-of-memory events; the lifetimes are those of both notions. memory_bytes: of the device, where the recording does not
// say; 0: not known. Needs out->reserved.
enum vram_status vr_report_ooms(const struct vr_view *view, struct vr_sites *sites, const struct vr_lifetimes *allocated,
                                const struct vr_lifetimes *active, uint64_t memory_bytes, struct vr_arena *arena,
                                struct vram_report_device *out);

#endif
