#include "explore/tables/segment_kinds.h"

// Segments of the small pool, and the smallest ones of the large pool.
#define SMALL_SEGMENT (2 * VR_MIB)
#define LEAST_LARGE   (10 * VR_MIB)

// Kinds of the final segments at their own addresses.
static enum vram_status final_kinds(const struct vr_view *view, const struct vr_segment_lives *lives, uint8_t *kind) {
    const struct vr_segments *segments = &view->model->segments;
    const struct vr_lifetimes *rows = &lives->lifetimes;
    uint64_t(*order)[2] = malloc((view->segment_count + 1) * sizeof *order);
    if (order == NULL) return VRAM_NO_HOST_MEMORY;
    for (size_t i = 0; i < view->segment_count; i++) {
        order[i][0] = segments->address[view->segments[i]];
        order[i][1] = view->segments[i];
    }
    if (view->segment_count != 0) qsort(order, view->segment_count, sizeof *order, vr_order_u64_pair);
    size_t next = 0;
    for (size_t i = 0; i < rows->count; i++) {
        const uint32_t row = lives->by_address[i];
        while (next < view->segment_count && order[next][0] <= rows->address[row]) next++;
        if (next == 0 || rows->death[row] != VR_NEVER) continue;
        const size_t segment = (size_t)order[next - 1][1];
        if (rows->address[row] - segments->address[segment] < segments->total_bytes[segment]) kind[row] = (uint8_t)segments->kind[segment];
    }
    free(order);
    return VRAM_OK;
}

// Segments tell their pool by their size: small ones are 2 MiB, and small pages are mapped two MiB at a time.
enum vram_status vr_segment_kinds(const struct vr_view *view, const struct vr_segment_lives *segments, uint8_t **kind) {
    const struct vr_lifetimes *rows = &segments->lifetimes;
    uint8_t *made = malloc(rows->count + 1);
    if (made == NULL) return VRAM_NO_HOST_MEMORY;
    for (size_t row = 0; row < rows->count; row++) {
        const bool mapped = (segments->flags[row] & VR_SEGMENT_MAPPED) != 0;
        const bool small = mapped ? rows->size_bytes[row] < LEAST_LARGE : rows->size_bytes[row] == SMALL_SEGMENT;
        made[row] = small ? VRAM_REPORT_KIND_SMALL : VRAM_REPORT_KIND_LARGE;
    }
    const enum vram_status status = final_kinds(view, segments, made);
    if (status == VRAM_OK)
        *kind = made;
    else
        free(made);
    return status;
}
