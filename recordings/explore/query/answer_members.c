#include "explore/query/answer_members.h"

#include "analyze/lifetimes.h"

void vr_put_frame(struct vr_json *json, const struct vr_model *model, uint32_t frame, const char *fold) {
    vr_json_array(json, NULL);
    vr_json_string(json, NULL, vr_model_string(model, model->frames.name[frame]));
    vr_json_string(json, NULL, vr_model_string(model, model->frames.filename[frame]));
    vr_json_i64(json, NULL, model->frames.line[frame]);
    vr_json_string(json, NULL, fold);
    vr_json_array_end(json);
}

void vr_put_stack(struct vr_json *json, struct vr_sites *sites, uint32_t stack) {
    const struct vr_model *model = sites->model;
    const uint64_t first = model->stacks.offset[stack], end = model->stacks.offset[stack + 1];
    const uint32_t named = vr_sites_frame(sites, stack);
    uint64_t site = end;
    vr_json_u64(json, "stack", stack);
    vr_json_array(json, "frames");
    for (uint64_t i = first; i < end; i++) {
        const uint32_t frame = model->stacks.frame[i];
        vr_put_frame(json, model, frame, vr_frame_kind_word(vr_sites_kind(sites, frame)));
        if (site == end && frame == named) site = i;
    }
    vr_json_array_end(json);
    if (site != end) vr_json_u64(json, "site", site - first);
}

void vr_put_moment(struct vr_json *json, const struct vr_history *history, const char *event_key, const char *time_key, uint32_t event) {
    if (event == VR_NEVER) {
        vr_json_null(json, event_key);
        return;
    }
    vr_json_u64(json, event_key, event);
    if ((vr_entry_has(history, event) & VR_HAS_TIME) != 0) vr_json_i64(json, time_key, history->time_us[event]);
}

void vr_put_pool(struct vr_json *json, uint64_t first, uint64_t second) {
    vr_json_array(json, "pool");
    vr_json_u64(json, NULL, first);
    vr_json_u64(json, NULL, second);
    vr_json_array_end(json);
}

static void put_string_member(struct vr_json *json, const struct vr_model *model, const char *key, uint32_t id) {
    if (id != 0) vr_json_string(json, key, vr_model_string(model, id));
}

void vr_put_words(struct vr_json *json, const struct vr_model *model, const struct vr_history *history, size_t event) {
    if ((vr_entry_has(history, event) & VR_HAS_POOL_ID) != 0) vr_put_pool(json, history->pool_first[event], history->pool_second[event]);
    put_string_member(json, model, "category", history->tag[event]);
    put_string_member(json, model, "metadata", history->metadata[event]);
    put_string_member(json, model, "context", history->context[event]);
#define LATER_FIRST(column)
#define LATER_LATER(column) put_string_member(json, model, #column, history->column[event]);
#define VR_FIELD(...)
#define VR_NUMBER(...)
#define VR_TEXT(column, type, density, number, LOG, since, KEY) LATER_##since(column)
#include "model/entry_fields.def"
}
