// Segments, and the tables that shapes are picked from, each made when it is first asked for.
#include "explore/explored/explored.h"
#include "explore/tables/lanes.h"

void vr_explored_release_shapes(struct vr_explored_device *device) {
    if (device->has_segments) vr_segment_lives_release(&device->segments);
    vr_live_rows_destroy(device->live_segments);
    vr_lanes_destroy(device->lanes);
    for (size_t kind = 0; kind < VR_COUNT_OF(device->largest); kind++) {
        for (size_t axis = 0; axis < VR_COUNT_OF(device->largest[kind]); axis++) vr_largest_destroy(device->largest[kind][axis]);
    }
    vr_coverage_destroy(device->coverage);
    vr_segment_labels_destroy(device->segment_labels);
}

enum vram_status vr_explored_segments(struct vr_explored_device *device, const struct vr_segment_lives **segments) {
    if (!device->has_segments) {
        VR_TRY(vr_segment_lives_build(device->view, &device->segments));
        device->has_segments = true;
    }
    *segments = &device->segments;
    return VRAM_OK;
}

enum vram_status vr_explored_shape_rows(struct vr_explored_device *device, enum vr_shape_kind kind, const struct vr_lifetimes **lifetimes) {
    if (kind != VR_SHAPES_SEGMENTS) return vr_explored_lifetimes(device, (enum vr_lifetime_kind)kind, lifetimes);
    const struct vr_segment_lives *segments = NULL;
    VR_TRY(vr_explored_segments(device, &segments));
    *lifetimes = &segments->lifetimes;
    return VRAM_OK;
}

enum vram_status vr_explored_shapes_live(struct vr_explored_device *device, enum vr_shape_kind kind, int64_t event, uint32_t **rows,
                                         size_t *count) {
    if (kind != VR_SHAPES_SEGMENTS) return vr_explored_live(device, (enum vr_lifetime_kind)kind, event, rows, count);
    const struct vr_lifetimes *lifetimes = NULL;
    VR_TRY(vr_explored_shape_rows(device, kind, &lifetimes));
    if (device->live_segments == NULL) VR_TRY(vr_live_rows_create(device->view, lifetimes, &device->live_segments));
    return vr_live_rows_at(device->live_segments, event, rows, count);
}

enum vram_status vr_explored_largest(struct vr_explored_device *device, enum vr_shape_kind kind, const struct vr_axis_span *axis,
                                     const struct vr_largest **largest) {
    struct vr_largest **made = &device->largest[kind][axis->time_us != NULL];
    const struct vr_lifetimes *lifetimes = NULL;
    VR_TRY(vr_explored_shape_rows(device, kind, &lifetimes));
    if (*made == NULL) VR_TRY(vr_largest_create(lifetimes, axis, made));
    *largest = *made;
    return VRAM_OK;
}

static enum vram_status begin_coverage(struct vr_explored_device *device) {
    const struct vr_segment_lives *segments = NULL;
    const struct vr_lifetimes *lifetimes = NULL;
    const struct vr_event_rows *rows = NULL;
    VR_TRY(vr_explored_segments(device, &segments));
    VR_TRY(vr_explored_lifetimes(device, VR_LIFETIME_ALLOCATED, &lifetimes));
    VR_TRY(vr_explored_rows(device, VR_LIFETIME_ALLOCATED, &rows));
    return vr_coverage_begin(device->view, segments, lifetimes, rows, &device->coverage);
}

enum vram_status vr_explored_coverage_go_on(struct vr_explored_device *device, size_t events, double *share) {
    if (device->coverage == NULL) VR_TRY(begin_coverage(device));
    const enum vram_status status = vr_coverage_go_on(device->coverage, events, share);
    if (status == VRAM_OK) return VRAM_OK;
    vr_coverage_destroy(device->coverage);
    device->coverage = NULL;
    return status;
}

enum vram_status vr_explored_coverage(struct vr_explored_device *device, const struct vr_coverage **coverage) {
    double share = 0;
    VR_TRY(vr_explored_coverage_go_on(device, SIZE_MAX, &share));
    *coverage = device->coverage;
    return VRAM_OK;
}

enum vram_status vr_explored_segment_labels(struct vr_explored_device *device, const struct vr_segment_labels **labels) {
    const struct vr_segment_lives *segments = NULL;
    VR_TRY(vr_explored_segments(device, &segments));
    if (device->segment_labels == NULL)
        VR_TRY(vr_segment_labels_create(device->view->history, &segments->lifetimes, &device->segment_labels));
    *labels = device->segment_labels;
    return VRAM_OK;
}
