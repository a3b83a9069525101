#include "analyze/live_curve.h"

enum vram_status vr_live_curve_init(struct vr_live_curve *curve, size_t length) {
    int64_t *delta = calloc(length + 1, sizeof *delta);
    if (delta == NULL) return VRAM_NO_HOST_MEMORY;
    *curve = (struct vr_live_curve){.delta = delta, .length = length};
    return VRAM_OK;
}

void vr_live_curve_release(struct vr_live_curve *curve) {
    free(curve->delta);
    *curve = (struct vr_live_curve){.delta = NULL};
}

void vr_live_curve_copy(struct vr_live_curve *curve, const struct vr_live_curve *from) {
    memcpy(curve->delta, from->delta, (from->length + 1) * sizeof *from->delta);
}

void vr_live_curve_add(struct vr_live_curve *curve, size_t from, size_t to, int64_t bytes) {
    const size_t first = from < curve->length ? from : curve->length, end = to < curve->length ? to : curve->length;
    if (first >= end) return;
    curve->delta[first] += bytes;
    curve->delta[end] -= bytes;
}

uint64_t vr_live_curve_peak_at(const struct vr_live_curve *curve, size_t *position) {
    int64_t level = 0, most = 0;
    *position = 0;
    for (size_t i = 0; i < curve->length; i++) {
        level += curve->delta[i];
        if (level <= most) continue;
        most = level;
        *position = i;
    }
    return (uint64_t)most;
}

uint64_t vr_live_curve_peak(const struct vr_live_curve *curve) {
    size_t position;
    return vr_live_curve_peak_at(curve, &position);
}
