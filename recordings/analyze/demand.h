// demand.h: what uses the memory when a request does not fit, and what would lower the need (vram/demand.h).
#ifndef VR_ANALYZE_DEMAND_H
#define VR_ANALYZE_DEMAND_H

#include "analyze/arena.h"
#include "analyze/lifetimes.h"
#include "analyze/roles.h"
#include "analyze/sites.h"
#include "vram/demand.h"

// ---- Live bytes over a history, which can be changed to those of a modified program, and their maximum. Position 0 is before the first
// event, position e + 1 after event e. A row is live at the positions [birth + 1, death + 1).

struct vr_live_curve {
    int64_t *delta; // change at each position, plus one more element
    size_t length;  // number of positions
};

// Sums of rows below this are exact; no real recording reaches it.
#define VR_LIVE_CURVE_MOST ((uint64_t)1 << 60)

// Initializes an empty curve. NO_HOST_MEMORY.
enum vram_status vr_live_curve_init(struct vr_live_curve *curve, size_t length);
void vr_live_curve_release(struct vr_live_curve *curve);
// Copies a curve to another one of the same length.
void vr_live_curve_copy(struct vr_live_curve *curve, const struct vr_live_curve *from);
// Adds `bytes` (may be negative) at the positions [from, to); `to` may be beyond the end.
void vr_live_curve_add(struct vr_live_curve *curve, size_t from, size_t to, int64_t bytes);
uint64_t vr_live_curve_peak(const struct vr_live_curve *curve);

VR_INLINE size_t vr_row_from(const struct vr_lifetimes *lifetimes, size_t row) {
    return lifetimes->birth[row] == VR_BEFORE_TRACE ? 0 : (size_t)lifetimes->birth[row] + 1;
}
VR_INLINE size_t vr_row_to(const struct vr_lifetimes *lifetimes, size_t row) {
    return lifetimes->death[row] == VR_NEVER ? SIZE_MAX : (size_t)lifetimes->death[row] + 1;
}

// ---- What uses the memory when a request does not fit, and what would lower the need (vram/demand.h).

// The question: the moment of a failed request, or the peak compared with a given room.
struct vr_demand_question {
    const struct vr_view *view;
    struct vr_sites *sites;
    int64_t event;
    const struct vram_report_oom *oom; // the failed request at that event; NULL: none
    uint64_t room_bytes;
    bool room_is_named;   // given by a failure or by the caller; false: assumed to be a tenth below the peak
    uint64_t block_bytes; // block bytes in use at that moment, including rounding and pending frees
};

// Computes the demand, except its texts, in the arena. Leaves *demand unchanged if there is no answer: nothing in use, or sizes that are
// impossible on a device. NO_HOST_MEMORY, LIMIT.
enum vram_status vr_demand_find(const struct vr_demand_question *question, struct vr_arena *arena,
                                const struct vram_report_demand **demand);

// --- shared by the demand's files --------------------------------------------------------------------------------------------------------

struct vr_demand_work {
    const struct vr_demand_question *question;
    const struct vr_view *view;
    struct vr_lifetimes all;              // the lifetimes of VR_LIFETIME_ALLOCATED, all of them: a report keeps only those of a few moments
    const struct vr_lifetimes *lifetimes; // points to `all`
    struct vr_roles roles;
    struct vr_arena *arena;
    struct vr_live_curve curve;   // of all rows and the failed request
    struct vr_live_curve changed; // scratch for a changed curve
    uint64_t peak_bytes;          // maximum of `curve`
    size_t peak_row_end;          // rows born until the moment
    uint8_t *stands_out;          // by row
    enum vr_role_pass pass;       // pass in progress at the moment
    bool has_pass;                // some forward or backward pass occurred until the moment
    bool has_backward, has_step;  // occurred before the moment
    uint64_t missing_bytes;       // bytes that must be freed for the request to fit; at least 1
    struct vram_report_demand *made;
};

enum { VR_MOST_REMEDIES = 16 };

// Returns whether a row is live at the moment.
VR_INLINE bool vr_demand_live(const struct vr_demand_work *work, size_t row) {
    return vr_lifetimes_live_at(work->lifetimes, row, work->question->event);
}
// Adds a remedy, unless it saves less than a fiftieth of the peak; `left` is the maximum of the changed curve.
void vr_remedy_add(struct vr_demand_work *work, struct vram_report_remedy remedy, uint64_t left);

#define VR_SAME_MOMENT (-2) // for vram_report_remedy.next_event
// Adds a remedy whose curve is `changed`; computes `left` and next_event from it.
void vr_remedy_add_curve(struct vr_demand_work *work, struct vram_report_remedy remedy);

// advice.c: finds all remedies whose grounds hold, in the report's order. NO_HOST_MEMORY.
enum vram_status vr_remedies_find(struct vr_demand_work *work);
// Finds the call whose activations are best recomputed. NO_HOST_MEMORY.
enum vram_status vr_recompute_find(struct vr_demand_work *work);

#endif
