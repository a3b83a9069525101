// frame_labels.h: frames of several recordings as numbers that are the same for the same function, so that stacks can be laid on each
// other.
#ifndef VR_ANALYZE_FRAME_LABELS_H
#define VR_ANALYZE_FRAME_LABELS_H

#include "base/map.h"
#include "model/model.h"

// All-zero is an empty table. One thread at a time.
struct vr_frame_labels {
    struct vr_frame_label {
        const struct vr_model *model; // borrowed: where the frame was seen first
        uint32_t frame;
    } * label;
    size_t count, capacity;
    struct vr_map map;  // a hash -> 1 + label
    bool without_lines; // lines differ between versions of a program: file and function alone tell frames apart
};

void vr_frame_labels_release(struct vr_frame_labels *labels);
// The number of a frame's text. NO_HOST_MEMORY.
enum vram_status vr_frame_labels_number(struct vr_frame_labels *labels, const struct vr_model *model, uint32_t frame, uint32_t *number);

#endif
