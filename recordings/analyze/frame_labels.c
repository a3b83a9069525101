#include "analyze/frame_labels.h"

void vr_frame_labels_release(struct vr_frame_labels *labels) {
    free(labels->label);
    vr_map_release(&labels->map);
    *labels = (struct vr_frame_labels){.label = NULL};
}

static uint64_t hash_string(uint64_t hash, const struct vr_model *model, uint32_t id) {
    return vr_hash_bytes(hash, vr_model_string(model, id), vr_model_string_length(model, id));
}

static uint64_t hash_frame(const struct vr_frame_labels *labels, const struct vr_model *model, uint32_t frame) {
    const struct vr_frames *frames = &model->frames;
    const uint64_t hash = hash_string(hash_string(0, model, frames->filename[frame]), model, frames->name[frame]);
    return labels->without_lines ? hash : vr_mix64(hash + (uint64_t)frames->line[frame]);
}

static bool same_label(const struct vr_frame_labels *labels, const struct vr_frame_label *label, const struct vr_model *model,
                       uint32_t frame) {
    const struct vr_frames *a = &label->model->frames, *b = &model->frames;
    if (!labels->without_lines && a->line[label->frame] != b->line[frame]) return false;
    return strcmp(vr_model_string(label->model, a->name[label->frame]), vr_model_string(model, b->name[frame])) == 0 &&
           strcmp(vr_model_string(label->model, a->filename[label->frame]), vr_model_string(model, b->filename[frame])) == 0;
}

enum vram_status vr_frame_labels_number(struct vr_frame_labels *labels, const struct vr_model *model, uint32_t frame, uint32_t *number) {
    // Different texts of one hash lie behind each other.
    uint64_t hash = hash_frame(labels, model, frame);
    uint32_t found = vr_map_get(&labels->map, hash);
    while (found != 0 && !same_label(labels, &labels->label[found - 1], model, frame)) found = vr_map_get(&labels->map, ++hash);
    if (found == 0) {
        VR_TRY(vr_grow((void **)&labels->label, &labels->capacity, labels->count + 1, sizeof *labels->label));
        VR_TRY(vr_map_set(&labels->map, hash, (uint32_t)labels->count + 1));
        labels->label[labels->count++] = (struct vr_frame_label){model, frame};
        found = (uint32_t)labels->count;
    }
    *number = found - 1;
    return VRAM_OK;
}
