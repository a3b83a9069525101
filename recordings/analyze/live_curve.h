// live_curve.h: live bytes over a history, to be changed as another program would have it, and its highest point.
//
// Position 0 is before the first event, position e + 1 after event e. A row is live at the positions [birth + 1, death + 1).
#ifndef VR_ANALYZE_LIVE_CURVE_H
#define VR_ANALYZE_LIVE_CURVE_H

#include "analyze/lifetimes.h"

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
// The same, and the first position that reaches it.
uint64_t vr_live_curve_peak_at(const struct vr_live_curve *curve, size_t *position);

VR_INLINE size_t vr_row_from(const struct vr_lifetimes *lifetimes, size_t row) {
    return lifetimes->birth[row] == VR_BEFORE_TRACE ? 0 : (size_t)lifetimes->birth[row] + 1;
}
VR_INLINE size_t vr_row_to(const struct vr_lifetimes *lifetimes, size_t row) {
    return lifetimes->death[row] == VR_NEVER ? SIZE_MAX : (size_t)lifetimes->death[row] + 1;
}

#endif
