// `timeline`: the allocations of a window, stacked.
#include "explore/query/selection.h"
#include "explore/query/stacked.h"

enum vram_status vr_query_timeline(const struct vr_query *query) {
    struct vr_shapes shapes;
    enum vr_lifetime_kind kind = VR_LIFETIME_ALLOCATED;
    VR_TRY(vr_select_lifetime_kind(query, &kind));
    VR_TRY(vr_shapes_init(query, &shapes));
    enum vram_status status = vr_stacked_answer(&shapes, (enum vr_shape_kind)kind, (enum vr_curve_kind)kind);
    if (status == VRAM_OK) status = vr_shapes_put_keys(&shapes);
    vr_shapes_release(&shapes);
    return status;
}
