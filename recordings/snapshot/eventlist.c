#include "snapshot/eventlist.h"

#include "snapshot/vramstate.h"

// The picture of a log in which nothing is freed takes this much more than the log.
enum { PICTURE_FACTOR = 9 };

enum vram_status vr_event_list_init(struct vr_event_list *list, struct vr_input *input) {
    memset(list, 0, sizeof *list);
    VR_TRY(vr_builder_init(&list->builder, VR_BUDGET_BASE));
    vr_input_set_budget(input, &list->builder.budget);
    return VRAM_OK;
}

void vr_event_list_release(struct vr_event_list *list, struct vr_input *input) {
    vr_input_set_budget(input, NULL);
    for (size_t i = 0; i < list->lane_count; i++) vr_columns_release(&vr_history_columns, &list->lanes[i].history);
    free(list->lanes);
    free(list->annotations);
    vr_builder_release(&list->builder);
}

static enum vram_status find_lane(struct vr_event_list *list, uint32_t device, struct vr_event_lane **lane) {
    if (device >= list->lane_count) {
        struct vr_event_lane *lanes = realloc(list->lanes, ((size_t)device + 1) * sizeof *lanes);
        if (lanes == NULL) return VRAM_NO_HOST_MEMORY;
        memset(lanes + list->lane_count, 0, ((size_t)device + 1 - list->lane_count) * sizeof *lanes);
        list->lanes = lanes;
        list->lane_count = (size_t)device + 1;
    }
    *lane = &list->lanes[device];
    return VRAM_OK;
}

// Of the sparse columns, a list holds the thread only.
static enum vram_status grow_lane(struct vr_event_list *list, struct vr_event_lane *lane) {
    struct vr_history *history = &lane->history;
    if (history->thread == NULL) {
        // Growing passes over sparse columns that are not there.
        history->thread = calloc(1, sizeof *history->thread);
        if (history->thread == NULL) return VRAM_NO_HOST_MEMORY;
    }
    return vr_columns_grow_ahead(&vr_history_columns, history, &lane->capacity, &lane->held, history->count + 1, &list->builder.budget);
}

enum vram_status vr_event_list_add(struct vr_event_list *list, uint32_t device, const struct vr_event_row *row) {
    assert(device < VR_EVENTLIST_DEVICES);
    struct vr_event_lane *lane;
    VR_TRY(find_lane(list, device, &lane));
    struct vr_history *history = &lane->history;
    if (history->count == lane->capacity) VR_TRY(grow_lane(list, lane));
    const size_t i = history->count++;
    history->action[i] = (uint8_t)row->action;
    history->address[i] = row->address;
    history->size_bytes[i] = row->size_bytes;
    VR_COLUMN_PUT_ALIKE(history->stream, lane->held, history->count, i, row->stream);
    history->time_us[i] = row->time_us;
    history->stack[i] = row->stack;
    history->thread[i] = row->thread;
    VR_COLUMN_PUT_ALIKE(history->has, lane->held, history->count, i, row->has);
    return VRAM_OK;
}

enum vram_status vr_event_list_mark(struct vr_event_list *list, int64_t device, const char *stage, uint32_t name, int64_t time_us) {
    uint32_t word;
    void *marks = list->annotations;
    VR_TRY(vr_builder_string(&list->builder, stage, strlen(stage), &word));
    const enum vram_status status =
        vr_budget_grow(&list->builder.budget, &marks, &list->annotation_capacity, list->annotation_count + 1, sizeof *list->annotations);
    list->annotations = marks;
    VR_TRY(status);
    list->annotations[list->annotation_count++] = (struct vr_annotation){name, word, device, time_us};
    return VRAM_OK;
}

static enum vram_status finish_keys(struct vr_event_list *list, struct vr_model *model) {
    static const char *const keys[] = {"segments", "device_traces", "external_annotations"};
    model->top_level_keys = malloc(VR_COUNT_OF(keys) * sizeof *model->top_level_keys);
    if (model->top_level_keys == NULL) return VRAM_NO_HOST_MEMORY;
    for (; model->top_level_key_count < VR_COUNT_OF(keys); model->top_level_key_count++) {
        const char *key = keys[model->top_level_key_count];
        VR_TRY(vr_builder_string(&list->builder, key, strlen(key), &model->top_level_keys[model->top_level_key_count]));
    }
    return VRAM_OK;
}

static enum vram_status finish_event_list(struct vr_event_list *list, struct vr_model *model, struct vram_error *error) {
    const struct vr_picture_marks none = {.count = 0};
    VR_TRY(finish_keys(list, model));
    model->histories = calloc(list->lane_count + 1, sizeof *model->histories);
    model->segments.first_block = calloc(1, sizeof *model->segments.first_block);
    if (model->histories == NULL || model->segments.first_block == NULL) return VRAM_NO_HOST_MEMORY;
    for (; model->history_count < list->lane_count; model->history_count++) {
        struct vr_history *history = &model->histories[model->history_count];
        *history = list->lanes[model->history_count].history;
        memset(&list->lanes[model->history_count], 0, sizeof *list->lanes);
        // Counted before it is finished, so that a failure releases it with the model.
        const enum vram_status status = vr_columns_finish(&vr_history_columns, history, history->count);
        if (status != VRAM_OK) {
            model->history_count++;
            return status;
        }
    }
    model->annotations = list->annotations;
    model->annotation_count = list->annotation_count;
    list->annotations = NULL;
    struct vr_budget budget = list->builder.budget;
    vr_builder_finish(&list->builder, model);
    VR_TRY(vr_model_check(model, error));
    VR_TRY(vr_picture_advance(model, &none, &budget));
    // Nobody said what kind these segments are.
    for (size_t i = 0; i < model->segments.count; i++) {
        model->segments.kind[i] = VR_KIND_UNKNOWN;
        model->segments.has[i] &= ~(uint32_t)VR_HAS_SEGMENT_TYPE;
    }
    return VRAM_OK;
}

enum vram_status vr_event_list_finish(struct vr_event_list *list, const struct vr_input *input, struct vr_model *model,
                                      struct vram_error *error) {
    list->builder.budget.limit_bytes += PICTURE_FACTOR * vr_input_offset(input);
    const enum vram_status status = finish_event_list(list, model, error);
    if (status != VRAM_OK) vr_model_release(model);
    return status;
}
