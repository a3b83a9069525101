// report_parts.h: the parts of one device's report. Each function fills its members of *out from the view; arrays are in the arena.
#ifndef VR_ANALYZE_REPORT_PARTS_H
#define VR_ANALYZE_REPORT_PARTS_H

#include "analyze/arena.h"
#include "analyze/device_view.h"
#include "analyze/lifetimes.h"
#include "analyze/sites.h"
#include "model/model.h"
#include "vram/report.h"

// ---- The lifetimes that a report needs, found in one pass over a device's history that keeps few rows. A history of ten million events
// has millions of lifetimes (lifetimes.h), and a report needs those live at a few moments, and the longest. Whether an allocation was live
// before event 0 follows from the first event at its address, so no backward pass is needed; totals are relative to the start, whatever
// that is.

enum { VR_LIFETIME_KINDS = 2 };

struct vr_report_lifetimes {
    // The rows that were live at the peak, at an out-of-memory error or at the end, the `top` longest, and perhaps others. In the order of
    // lifetimes.h; totals, anomalies and final blocks include all rows.
    struct vr_lifetimes rows;
    // Totals by whether lifetimes begin and end in the history, and the largest allocation of the history.
    struct vram_report_sum born_and_freed, born_and_kept, inherited_and_freed, inherited_and_kept;
    uint64_t largest_bytes;
};

// Finds found[kind] by enum vr_lifetime_kind; totals[kind] as for vr_lifetimes_build(), both NULL if point_count is 0. LIMIT and
// NO_HOST_MEMORY as there; nothing is then allocated.
enum vram_status vr_report_lifetimes_find(const struct vr_view *view, size_t top, uint64_t *const totals[VR_LIFETIME_KINDS],
                                          size_t point_count, struct vr_report_lifetimes found[VR_LIFETIME_KINDS]);
// Accepts zeroed structs.
void vr_report_lifetimes_release(struct vr_report_lifetimes found[VR_LIFETIME_KINDS]);

// ---- The parts of one device's report. Each function fills its members of *out from the view; arrays are in the arena. All functions
// return only NO_HOST_MEMORY, unless they say otherwise.

// report_trace.c: reports the events by action, streams, times and frames.
enum vram_status vr_report_trace(const struct vr_view *view, struct vr_arena *arena, struct vram_report_device *out);
// report_trace.c: reports the curve of reserved bytes; points (point_count of them, may be 0) receive the maxima of their runs.
void vr_report_reserved(const struct vr_view *view, struct vram_report_reserved *reserved, struct vram_report_point *points,
                        size_t point_count);
// report_picture.c: reports segments, blocks, states, sums, usage and pools.
enum vram_status vr_report_picture(const struct vr_view *view, struct vr_arena *arena, struct vram_report_device *out);
// report_lifetimes.c: reports one kind of lifetime from what was found with the same `top`.
enum vram_status vr_report_live(const struct vr_view *view, struct vr_sites *sites, const struct vr_report_lifetimes *found, size_t top,
                                struct vr_arena *arena, struct vram_report_live *out);
// report_lifetimes.c: reports the most memory that was freed and waited for other streams; needs the live facts. NO_HOST_MEMORY.
enum vram_status vr_report_waiting(const struct vr_view *view, struct vr_sites *sites, struct vr_arena *arena,
                                   struct vram_report_device *out);
// report_libraries.c: returns whether the recording is of `vram run`: requests to the driver, without an allocator in between.
bool vr_is_whole_program(const struct vr_view *view);
// report_libraries.c: reports the libraries of the memory live at the peak; reports nothing unless the recording is of a whole program.
enum vram_status vr_report_libraries(const struct vr_view *view, const struct vr_lifetimes *allocated, struct vr_arena *arena,
                                     struct vram_report_device *out);
// report_libraries.c: lists the libraries of the memory live after an event; *libraries is unchanged unless the recording is of a whole
// program.
enum vram_status vr_libraries_at(const struct vr_view *view, const struct vr_lifetimes *allocated, int64_t event, struct vr_arena *arena,
                                 const struct vram_report_group **libraries, size_t *count);
// report_oom.c: reports the out-of-memory events; needs the lifetimes of both kinds, and out->reserved. memory_bytes: of the device, if the
// recording does not have it; 0: unknown.
enum vram_status vr_report_ooms(const struct vr_view *view, struct vr_sites *sites, const struct vr_lifetimes *allocated,
                                const struct vr_lifetimes *active, uint64_t memory_bytes, struct vr_arena *arena,
                                struct vram_report_device *out);

// ---- In recordings of whole programs, the free bytes of the driver's own pools (cudaMallocAsync).

// Returns the free bytes in the driver's pools after an event: what the pools got from the device minus what was allocated from them. 0 for
// other recordings.
uint64_t vr_driver_pools_free(const struct vr_view *view, const struct vr_lifetimes *allocated, int64_t event);

// ---- What used the memory outside the recorded program, at an out-of-memory event.

// Returns the bytes that the recorded program held: allocated bytes if segments are not recorded.
VR_INLINE uint64_t vr_oom_held(const struct vram_report_oom *oom, bool driver_level) {
    return driver_level ? oom->allocated_bytes + oom->pending_bytes + oom->driver_pool_bytes : oom->reserved_bytes;
}

// Finds the recording's accounts for this event of the view's device (formats/recording.md, `vram_accounts_<slot>`), and distributes
// oom->outside_bytes. *accounts is NULL if there are none. is_last: it is the device's last such event. NO_HOST_MEMORY.
enum vram_status vr_accounts_find(const struct vr_view *view, const struct vram_report_oom *oom, bool is_last, bool driver_level,
                                  struct vr_arena *arena, const struct vram_report_accounts **accounts);

// Returns whether a setting is not an allocator's, but a fact that vram recorded about the process and its device, which is shown
// elsewhere.
bool vr_is_fact(const char *key);

// ---- A report without its sentences, which present adds.

struct vr_report_facts {
    struct vram_report report; // must be first: the public pointer points to it
    struct vr_arena arena;     // owns everything that the report points to
};

// Fills *facts, which must be zeroed, except for notes, and for the text and advice of out-of-memory events. The caller releases the arena,
// even after a failure. LIMIT, NO_HOST_MEMORY.
enum vram_status vr_report_facts_find(const struct vram_recording *recording, const struct vram_report_options *options,
                                      struct vr_report_facts *facts, struct vram_error *error);

// ---- The generation of a recording's file.

// The generation of a recording that is not a snapshot: events only, read from a log or a profiler's trace.
#define VR_EVENTS_ALONE "events"
// Sets *generation, and *era to the PyTorch versions that write it, by the keys alone. Static texts.
void vr_report_generation(const struct vr_model *model, const char **generation, const char **era);
// Returns "dict" or "segment_list". Static.
const char *vr_report_form(const struct vr_model *model);
// Returns whether the recording has an allocator's settings. Files written event by event have no top-level keys.
bool vr_report_has_settings(const struct vr_model *model);

#endif
