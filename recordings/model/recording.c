#include "model/recording.h"

enum vram_status vr_recording_create(struct vr_model *model, struct vram_recording **recording) {
    struct vram_recording *made = malloc(sizeof *made);
    if (made == NULL) return VRAM_NO_HOST_MEMORY;
    made->model = *model;
    memset(model, 0, sizeof *model);
    *recording = made;
    return VRAM_OK;
}

void vram_recording_destroy(struct vram_recording *recording) {
    if (recording == NULL) return;
    vr_model_release(&recording->model);
    free(recording);
}

enum vram_recording_form vram_get_recording_form(const struct vram_recording *recording) {
    if (recording == NULL) return VRAM_RECORDING_DICT;
    return recording->model.form == VR_FORM_DICT ? VRAM_RECORDING_DICT : VRAM_RECORDING_SEGMENT_LIST;
}

enum vram_recording_ending vram_get_recording_ending(const struct vram_recording *recording) {
    if (recording == NULL) return VRAM_RECORDING_WHOLE;
    static const enum vram_recording_ending endings[] = {
        [VR_ENDING_WHOLE] = VRAM_RECORDING_WHOLE, [VR_ENDING_OPEN] = VRAM_RECORDING_OPEN, [VR_ENDING_CUT] = VRAM_RECORDING_CUT};
    return endings[recording->model.ending];
}

bool vram_recording_device_is_host(const struct vram_recording *recording, uint32_t device) {
    if (recording == NULL) return false;
    return vr_model_is_host(&recording->model, device);
}

uint32_t vram_recording_device_count(const struct vram_recording *recording) {
    if (recording == NULL) return 0;
    const struct vr_model *model = &recording->model;
    uint32_t count = 0;
    for (size_t i = 0; i < model->history_count; i++) {
        if (model->histories[i].count != 0) count = (uint32_t)i + 1;
    }
    for (size_t i = 0; i < model->segments.count; i++) {
        if (model->segments.device[i] >= count) count = model->segments.device[i] + 1;
    }
    return count;
}

uint64_t vram_recording_event_count(const struct vram_recording *recording, uint32_t device) {
    if (recording == NULL) return 0;
    const struct vr_model *model = &recording->model;
    if (device != VRAM_ALL_DEVICES) return device < model->history_count ? model->histories[device].count : 0;
    uint64_t count = 0;
    for (size_t i = 0; i < model->history_count; i++) count += model->histories[i].count;
    return count;
}

uint64_t vram_recording_segment_count(const struct vram_recording *recording) {
    if (recording == NULL) return 0;
    return recording->model.segments.count;
}

uint64_t vram_recording_block_count(const struct vram_recording *recording) {
    if (recording == NULL) return 0;
    return recording->model.blocks.count;
}

const char *vram_recording_setting(const struct vram_recording *recording, const char *key) {
    if (recording == NULL || key == NULL) return NULL;
    return vr_model_setting(&recording->model, key);
}
