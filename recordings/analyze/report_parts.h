// report_parts.h: the parts of one device's report. Each function fills its own members of *out from the view; arrays go to the arena.
#ifndef VR_ANALYZE_REPORT_PARTS_H
#define VR_ANALYZE_REPORT_PARTS_H

#include "analyze/arena.h"
#include "analyze/device_view.h"
#include "analyze/lifetimes.h"
#include "analyze/sites.h"
#include "model/model.h"
#include "vram/report.h"

// ---- What a report says of the lifetimes of one device, found in one pass over its history that keeps few rows.
// A history of ten million events has millions of lifetimes (lifetimes.h), and a report looks at those that were live at a few moments and
// at the longest. Whether something was live before event 0 follows from the first event at its address, so that no pass backwards is
// needed, and totals are counted from the start, whatever it comes to.

enum { VR_LIFETIME_KINDS = 2 };

struct vr_report_lifetimes {
    // The rows that were live at the peak, at an out of memory or at the end, the `top` longest, and others that cost nothing to keep. In
    // the order of lifetimes.h; totals, anomalies and final blocks are those of all.
    struct vr_lifetimes rows;
    // Of all, by where the ends of their lives lie; and the largest that the history made.
    struct vram_report_sum born_and_freed, born_and_kept, inherited_and_freed, inherited_and_kept;
    uint64_t largest_bytes;
};

// found[kind] by enum vr_lifetime_kind; totals[kind] as vr_lifetimes_build() has them, both NULL where point_count is 0. LIMIT and
// NO_HOST_MEMORY as there; nothing is held then.
enum vram_status vr_report_lifetimes_find(const struct vr_view *view, size_t top, uint64_t *const totals[VR_LIFETIME_KINDS],
                                          size_t point_count, struct vr_report_lifetimes found[VR_LIFETIME_KINDS]);
// Zeroed ones are fine.
void vr_report_lifetimes_release(struct vr_report_lifetimes found[VR_LIFETIME_KINDS]);

// ---- The parts of one device's report. Each function fills its own members of *out from the view; arrays go to the arena. All of them
// return NO_HOST_MEMORY only, unless they say otherwise.

// report_trace.c: events by action, streams, times, frames.
enum vram_status vr_report_trace(const struct vr_view *view, struct vr_arena *arena, struct vram_report_device *out);
// report_trace.c: the reserved curve; points (point_count of them, may be 0) get the largest value of their runs.
void vr_report_reserved(const struct vr_view *view, struct vram_report_reserved *reserved, struct vram_report_point *points,
                        size_t point_count);
// report_picture.c: segments, blocks, states, sums, usage, pools.
enum vram_status vr_report_picture(const struct vr_view *view, struct vr_arena *arena, struct vram_report_device *out);
// One kind's facts from its lifetimes, those of the same `top`.
enum vram_status vr_report_live(const struct vr_view *view, struct vr_sites *sites, const struct vr_report_lifetimes *found, size_t top,
                                struct vr_arena *arena, struct vram_report_live *out);
// What was freed and waited for other streams when most did; live facts must be there. NO_HOST_MEMORY.
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

// ---- In recordings of whole programs, what the driver's own pools (cudaMallocAsync) hold free.

// After an event: what the pools had from the device, less what was allocated from them. 0 elsewhere.
uint64_t vr_driver_pools_free(const struct vr_view *view, const struct vr_lifetimes *allocated, int64_t event);

// ---- Who held what lies outside of what was recorded, at an out-of-memory event.

// What the recorded program held of the device. Where segments are not recorded, what is allocated is what is held.
VR_INLINE uint64_t vr_oom_held(const struct vram_report_oom *oom, bool driver_level) {
    return driver_level ? oom->allocated_bytes + oom->pending_bytes + oom->driver_pool_bytes : oom->reserved_bytes;
}

// The accounts that the recording has for this event of the view's device (formats/recording.md, `vram_accounts_<slot>`), shared out
// over oom->outside_bytes. *accounts is NULL without accounts. is_last: it is the last such event of the device. NO_HOST_MEMORY.
enum vram_status vr_accounts_find(const struct vr_view *view, const struct vram_report_oom *oom, bool is_last, bool driver_level,
                                  struct vr_arena *arena, const struct vram_report_accounts **accounts);

// Whether a setting of this key is not an allocator's, but what vram recorded of a process and its device: that is shown where it
// belongs.
bool vr_is_fact(const char *key);

// ---- What a report says, without its sentences: those are made in present.

struct vr_report_facts {
    struct vram_report report; // must be first: the public pointer is this one
    struct vr_arena arena;     // of all that the report points to
};

// Fills *facts, which is all-zero: everything but notes, and text and advice of out-of-memory events. The arena is the caller's to release,
// also after a failure. LIMIT, NO_HOST_MEMORY.
enum vram_status vr_report_facts_find(const struct vram_recording *recording, const struct vram_report_options *options,
                                      struct vr_report_facts *facts, struct vram_error *error);

// ---- Which generation of files a recording is of.

// The generation of what is no snapshot: events alone, read from a log or a profiler's trace.
#define VR_EVENTS_ALONE "events"
// The generation and the PyTorch versions that write it, by the keys alone. Static texts.
void vr_report_generation(const struct vr_model *model, const char **generation, const char **era);
// "dict" or "segment_list". Static.
const char *vr_report_form(const struct vr_model *model);
// Does the recording tell the settings of an allocator? Files that were written event by event have no keys at the top.
bool vr_report_has_settings(const struct vr_model *model);

#endif
