// demand.h: what the memory in use is made of when there is too little of it, and what would lower it (vram/demand.h).
#ifndef VR_ANALYZE_DEMAND_H
#define VR_ANALYZE_DEMAND_H

#include "analyze/arena.h"
#include "analyze/lifetimes.h"
#include "analyze/roles.h"
#include "analyze/sites.h"
#include "vram/demand.h"

// ---- Live bytes over a history, to be changed as another program would have it, and its highest point.
// Position 0 is before the first event, position e + 1 after event e. A row is live at the positions [birth + 1, death + 1).

struct vr_live_curve {
    int64_t *delta; // what changes at each position, and one more
    size_t length;  // positions
};

// Sums of rows below this are exact here; nothing real reaches it.
#define VR_LIVE_CURVE_MOST ((uint64_t)1 << 60)

// Of nothing. NO_HOST_MEMORY.
enum vram_status vr_live_curve_init(struct vr_live_curve *curve, size_t length);
void vr_live_curve_release(struct vr_live_curve *curve);
// The same once more, into a curve of the same length.
void vr_live_curve_copy(struct vr_live_curve *curve, const struct vr_live_curve *from);
// `bytes` (may be negative) more at [from, to); `to` may lie beyond the end.
void vr_live_curve_add(struct vr_live_curve *curve, size_t from, size_t to, int64_t bytes);
uint64_t vr_live_curve_peak(const struct vr_live_curve *curve);

VR_INLINE size_t vr_row_from(const struct vr_lifetimes *lifetimes, size_t row) {
    return lifetimes->birth[row] == VR_BEFORE_TRACE ? 0 : (size_t)lifetimes->birth[row] + 1;
}
VR_INLINE size_t vr_row_to(const struct vr_lifetimes *lifetimes, size_t row) {
    return lifetimes->death[row] == VR_NEVER ? SIZE_MAX : (size_t)lifetimes->death[row] + 1;
}

// ---- What the memory in use is made of when there is too little of it, and what would lower it (vram/demand.h).

// What is asked: the moment when a request failed, or the peak beside a room that the caller names.
struct vr_demand_question {
    const struct vr_view *view;
    struct vr_sites *sites;
    int64_t event;
    const struct vram_report_oom *oom; // of that event; NULL: none
    uint64_t room_bytes;
    bool room_is_named;   // by a failure, or by the caller; else a tenth less than the peak is looked for
    uint64_t block_bytes; // of what is live then, rounding and what waits included
};

// All but the texts, in the arena. *demand stays untouched where there is nothing to say: nothing in use, or sizes that no device has.
// NO_HOST_MEMORY, LIMIT.
enum vram_status vr_demand_find(const struct vr_demand_question *question, struct vr_arena *arena,
                                const struct vram_report_demand **demand);

// --- between the files of it -------------------------------------------------------------------------------------------------------------

struct vr_demand_work {
    const struct vr_demand_question *question;
    const struct vr_view *view;
    struct vr_lifetimes all;              // VR_LIFETIME_ALLOCATED: a report keeps only those of a few moments
    const struct vr_lifetimes *lifetimes; // these
    struct vr_roles roles;
    struct vr_arena *arena;
    struct vr_live_curve curve;   // of all rows, with the failed request
    struct vr_live_curve changed; // room for another one
    uint64_t peak_bytes;          // of the curve
    size_t peak_row_end;          // rows born by the moment
    uint8_t *stands_out;          // by row
    enum vr_role_pass pass;       // that was under way at the moment
    bool has_pass;                // a forward or a backward pass, by the moment
    bool has_backward, has_step;  // before the moment
    uint64_t missing_bytes;       // what must go so that the request fits; at least 1
    struct vram_report_demand *made;
};

enum { VR_MOST_REMEDIES = 16 };

// Live at the moment?
VR_INLINE bool vr_demand_live(const struct vr_demand_work *work, size_t row) {
    return vr_lifetimes_live_at(work->lifetimes, row, work->question->event);
}
// One more remedy, unless it saves less than a fiftieth of the peak; `left` is the highest point of the changed curve.
void vr_remedy_add(struct vr_demand_work *work, struct vram_report_remedy remedy, uint64_t left);

#define VR_SAME_MOMENT (-2) // of vram_report_remedy.next_event
// The same where `changed` is the curve with the remedy: `left` is its highest point, and next_event the moment of that.
void vr_remedy_add_curve(struct vr_demand_work *work, struct vram_report_remedy remedy);

// advice.c: all of those whose grounds are there, in the order of the report. NO_HOST_MEMORY.
enum vram_status vr_remedies_find(struct vr_demand_work *work);
// The call whose activations are best made again. NO_HOST_MEMORY.
enum vram_status vr_recompute_find(struct vr_demand_work *work);

#endif
