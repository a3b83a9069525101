// view.h: one device of a model: its events, and which segments and blocks are its own.
#ifndef VR_VIEW_H
#define VR_VIEW_H

#include "model/model.h"

// Borrows everything.
struct vr_view {
    const struct vr_model *model;
    uint32_t device;
    const struct vr_history *history; // never NULL; may have no events
    const size_t *segments;           // rows of model->segments, ascending
    size_t segment_count;
    const size_t *blocks; // rows of model->blocks, of those segments in order
    size_t block_count;
};

// The first event of run p when `events` are divided into point_count equal runs; p may be point_count (the end).
VR_INLINE size_t vr_point_first(size_t events, size_t point_count, size_t p) {
    return events / point_count * p + events % point_count * p / point_count;
}

#endif
