// live_rows.h: what is live after any event, without walking the whole history: lists at checkpoints, and the births since.
#ifndef VR_EXPLORE_TABLES_LIVE_ROWS_H
#define VR_EXPLORE_TABLES_LIVE_ROWS_H

#include "analyze/lifetimes.h"
#include "analyze/view.h"

struct vr_live_rows;

// Checkpoints over the lifetimes (borrowed). They take at most 64 MiB, fewer of them where more is live. Given to the caller:
// vr_live_rows_destroy(). NO_HOST_MEMORY.
enum vram_status vr_live_rows_create(const struct vr_view *view, const struct vr_lifetimes *lifetimes, struct vr_live_rows **live);
// NULL is ignored.
void vr_live_rows_destroy(struct vr_live_rows *live);
// The rows live after `event` (-1: before event 0), ascending. *rows is given to the caller (free()). NO_HOST_MEMORY.
enum vram_status vr_live_rows_at(const struct vr_live_rows *live, int64_t event, uint32_t **rows, size_t *count);
// The first row born at or after `event`.
size_t vr_first_born(const struct vr_lifetimes *lifetimes, size_t event);
// Every checkpoint holds what is live then, ascending. Looks at all rows for each: for tests.
bool vr_live_rows_check(const struct vr_live_rows *live);

#endif
