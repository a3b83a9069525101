#include "vram/recording.h"

#include "model/recording.h"

struct vram_recorded_event vr_recorded_event(const struct vr_model *model, const struct vr_history *history, size_t i) {
    assert(i < history->count);
    const enum vr_action action = (enum vr_action)history->action[i];
    return (struct vram_recorded_event){
        .action = action == VR_ACTION_UNKNOWN ? vr_model_string(model, history->unknown[i]) : vr_action_name(action),
        .address = history->address[i],
        .size_bytes = history->size_bytes[i],
        .stream = vr_entry_stream(history, i),
        .time_us = history->time_us[i],
        .pool = {history->pool_first[i], history->pool_second[i]},
        .stack = history->stack[i],
        .thread = history->thread[i],
        .has_time = (vr_entry_has(history, i) & VR_HAS_TIME) != 0,
        .category = vr_model_string(model, history->tag[i]),
        .context = vr_model_string(model, history->context[i]),
        .metadata = vr_model_string(model, history->metadata[i]),
#define LATER_FIRST(column)
#define LATER_LATER(column) .column = vr_model_string(model, history->column[i]),
#define VR_FIELD(...)
#define VR_TEXT(column, type, density, number, LOG, since, KEY) LATER_##since(column)
#include "model/entry_fields.def"
    };
}

bool vram_recording_event(const struct vram_recording *recording, uint32_t device, uint64_t index, struct vram_recorded_event *row) {
    if (recording == NULL || row == NULL) return false;
    const struct vr_model *model = &recording->model;
    if (device >= model->history_count || index >= model->histories[device].count) return false;
    *row = vr_recorded_event(model, &model->histories[device], (size_t)index);
    return true;
}

bool vram_recording_segment(const struct vram_recording *recording, uint64_t index, struct vram_recorded_segment *row) {
    if (recording == NULL || row == NULL) return false;
    static const char *const kinds[] = {[VR_KIND_UNKNOWN] = "", [VR_KIND_SMALL] = "small", [VR_KIND_LARGE] = "large"};
    const struct vr_segments *segments = &recording->model.segments;
    if (index >= segments->count) return false;
    const size_t i = (size_t)index;
    *row = (struct vram_recorded_segment){
        .address = segments->address[i],
        .size_bytes = segments->total_bytes[i],
        .allocated_bytes = segments->allocated_bytes[i],
        .active_bytes = segments->active_bytes[i],
        .requested_bytes = segments->requested_bytes[i],
        .stream = segments->stream[i],
        .first_block = segments->first_block[i],
        .block_count = segments->first_block[i + 1] - segments->first_block[i],
        .pool = {segments->pool_first[i], segments->pool_second[i]},
        .device = segments->device[i],
        .stack = segments->stack[i],
        .kind = kinds[segments->kind[i]],
        .expandable = segments->expandable[i] != 0,
    };
    return true;
}

bool vram_recording_block(const struct vram_recording *recording, uint64_t index, struct vram_recorded_block *row) {
    if (recording == NULL || row == NULL) return false;
    const struct vr_blocks *blocks = &recording->model.blocks;
    if (index >= blocks->count) return false;
    const size_t i = (size_t)index;
    *row = (struct vram_recorded_block){
        .address = blocks->address[i],
        .size_bytes = blocks->size_bytes[i],
        .requested_bytes = blocks->requested_bytes[i],
        .stack = blocks->stack[i],
        .state = vr_block_state_name((enum vr_block_state)blocks->state[i]),
    };
    return true;
}

bool vram_recording_annotation(const struct vram_recording *recording, uint64_t index, struct vram_recorded_annotation *row) {
    if (recording == NULL || row == NULL) return false;
    const struct vr_model *model = &recording->model;
    if (index >= model->annotation_count) return false;
    const struct vr_annotation *mark = &model->annotations[index];
    *row = (struct vram_recorded_annotation){vr_model_string(model, mark->name), vr_model_string(model, mark->stage), mark->device,
                                             mark->time_us};
    return true;
}

bool vram_recording_setting_at(const struct vram_recording *recording, uint64_t index, const char **key, const char **value) {
    if (recording == NULL || key == NULL || value == NULL) return false;
    const struct vr_model *model = &recording->model;
    if (index >= model->setting_count) return false;
    *key = vr_model_string(model, model->settings[index].key);
    *value = vr_model_string(model, model->settings[index].value);
    return true;
}

uint32_t vram_recording_stack_count(const struct vram_recording *recording) {
    if (recording == NULL) return 0;
    return recording->model.stacks.count;
}

uint32_t vram_recording_frame_count(const struct vram_recording *recording) {
    if (recording == NULL) return 0;
    return recording->model.frames.count;
}

const uint32_t *vram_recording_stack(const struct vram_recording *recording, uint32_t stack, uint64_t *count) {
    if (recording == NULL || count == NULL) return NULL;
    const struct vr_stacks *stacks = &recording->model.stacks;
    *count = stack < stacks->count ? stacks->offset[stack + 1] - stacks->offset[stack] : 0;
    return *count == 0 ? NULL : stacks->frame + stacks->offset[stack];
}

bool vram_recording_frame(const struct vram_recording *recording, uint32_t frame, struct vram_frame *row) {
    if (recording == NULL || row == NULL) return false;
    const struct vr_model *model = &recording->model;
    if (frame >= model->frames.count) return false;
    // PyTorch writes an unknown line as -1.
    const int64_t line = model->frames.line[frame];
    *row = (struct vram_frame){vr_model_string(model, model->frames.name[frame]), vr_model_string(model, model->frames.filename[frame]),
                               line > 0 ? line : 0};
    return true;
}
