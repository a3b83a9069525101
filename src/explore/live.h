// live.h: what is live after any event, without walking the whole history: lists at checkpoints, and the births since.
#ifndef VR_EXPLORE_LIVE_H
#define VR_EXPLORE_LIVE_H

#include "analyze/lifetimes.h"
#include "analyze/view.h"

struct vr_live;

// Checkpoints over the lifetimes (borrowed). They take at most 64 MiB, fewer of them where more is live. Given to the caller:
// vr_live_destroy(). NO_HOST_MEMORY.
enum vram_status vr_live_create(const struct vr_view *view, const struct vr_lifetimes *lifetimes, struct vr_live **live);
// NULL is ignored.
void vr_live_destroy(struct vr_live *live);
// The rows live after `event` (-1: before event 0), ascending. *rows is given to the caller (free()). NO_HOST_MEMORY.
enum vram_status vr_live_at(const struct vr_live *live, int64_t event, uint32_t **rows, size_t *count);
// The first row born at or after `event`.
size_t vr_first_born(const struct vr_lifetimes *lifetimes, size_t event);

#endif
