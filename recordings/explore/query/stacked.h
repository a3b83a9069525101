// stacked.h: what the answers with stacked shapes have in common.
#ifndef VR_EXPLORE_QUERY_STACKED_H
#define VR_EXPLORE_QUERY_STACKED_H

#include "explore/query/shapes.h"
#include "explore/tables/stacking.h"

// Stacks rows of the shapes' lifetimes (ascending), coarser and coarser until an answer can carry it. Released by vr_stacking_release().
// NO_HOST_MEMORY.
enum vram_status vr_stacked_build(const struct vr_shapes *shapes, const uint32_t *rows, size_t count, struct vr_stacking *stacking);
// All of an answer but its groups: shapes of a kind, picked and stacked, and the totals along the window. LIMIT, NO_HOST_MEMORY.
enum vram_status vr_stacked_answer(struct vr_shapes *shapes, enum vr_shape_kind shape_kind, enum vr_curve_kind kind);

#endif
