// Answers queries about a window's axis: `curve`, `translate` and `marks`.
#include "explore/query/query.h"
#include "explore/query/selection.h"
#include "model/recording.h"

// ---- `curve`: the totals along a window, with a minimum and a maximum per pixel.

enum { MOST_PIXELS = 16384 };

struct curve_columns {
    size_t event, low[VR_CURVE_COUNT], high[VR_CURVE_COUNT];
};

static void add_columns(struct vr_answer *answer, struct curve_columns *columns) {
    static const char *const low[VR_CURVE_COUNT] = {"allocated_low", "active_low", "reserved_low"};
    static const char *const high[VR_CURVE_COUNT] = {"allocated_high", "active_high", "reserved_high"};
    columns->event = vr_answer_column(answer, "event", VR_F64);
    for (size_t k = 0; k < VR_CURVE_COUNT; k++) {
        columns->low[k] = vr_answer_column(answer, low[k], VR_F64);
        columns->high[k] = vr_answer_column(answer, high[k], VR_F64);
    }
}

// Adds one pixel: the extremes of the value before its events and the values after each of them.
static void add_pixel(struct vr_answer *answer, const struct curve_columns *columns, const struct vr_curve *const *curves, size_t first,
                      size_t end) {
    vr_answer_f64(answer, columns->event, (double)first);
    for (size_t k = 0; k < VR_CURVE_COUNT; k++) {
        int64_t low, high;
        vr_curve_extremes(curves[k], first, end, &low, &high);
        vr_answer_f64(answer, columns->low[k], (double)low);
        vr_answer_f64(answer, columns->high[k], (double)high);
    }
}

enum vram_status vr_query_curve(const struct vr_query *query) {
    struct vr_explored_recording *recording = NULL;
    struct vr_explored_device *device = NULL;
    struct vr_window window;
    int64_t pixels = 0;
    VR_TRY(vr_select_device(query, &recording, &device));
    VR_TRY(vr_select_window(query, device, &window));
    VR_TRY(vr_parameter_whole(query->parameters, "pixels", 1, MOST_PIXELS, 1024, &pixels));
    const struct vr_curve *curves[VR_CURVE_COUNT] = {NULL};
    for (size_t k = 0; k < VR_CURVE_COUNT; k++) VR_TRY(vr_explored_curve(device, (enum vr_curve_kind)k, &curves[k]));
    struct curve_columns columns;
    add_columns(query->answer, &columns);
    size_t first = vr_window_event(&window, device, window.from);
    for (int64_t p = 0; p < pixels; p++) {
        const double edge = window.from + (window.to - window.from) * (double)(p + 1) / (double)pixels;
        const size_t end = vr_window_event(&window, device, edge);
        add_pixel(query->answer, &columns, curves, first, end);
        first = end;
    }
    vr_json_double(&query->answer->json, "from", window.from);
    vr_json_double(&query->answer->json, "to", window.to);
    return VRAM_OK;
}

// ---- `translate`: the window's position on the other axis.

// Converts a position among the events to a position on the time axis, interpolating between two events.
static double time_of(const struct vr_window *time, size_t events, double position) {
    if (position <= 0) return 0;
    if (position >= (double)events) return vr_window_position(time, events - 1) + 1;
    const size_t event = (size_t)position;
    const double at = vr_window_position(time, event), next = event + 1 < events ? vr_window_position(time, event + 1) : at + 1;
    return at + (next - at) * (position - (double)event);
}

enum vram_status vr_query_translate(const struct vr_query *query) {
    struct vr_explored_recording *recording = NULL;
    struct vr_explored_device *device = NULL;
    struct vr_window window;
    VR_TRY(vr_select_device(query, &recording, &device));
    VR_TRY(vr_select_window(query, device, &window));
    double from = window.from, to = window.to;
    if (window.by_time) {
        from = (double)vr_window_event(&window, device, window.from);
        to = (double)vr_window_event(&window, device, window.to);
    } else if (vr_explored_has_times(device)) {
        struct vr_window time = {.by_time = true};
        VR_TRY(vr_explored_times(device, &time.time_us));
        from = time_of(&time, device->view->history->count, window.from);
        to = time_of(&time, device->view->history->count, window.to);
    }
    vr_json_double(&query->answer->json, "from", from);
    vr_json_double(&query->answer->json, "to", to > from ? to : from + 1);
    return VRAM_OK;
}

// ---- `marks`: named moments and spans of a device's history: out of memory, annotations, steps, snapshots.

enum { MOST_MARKS = 20000 };

struct marks {
    const struct vr_model *model;
    struct vr_explored_device *device;
    const int64_t *time_us; // NULL if the history has no times
    struct vr_json *json;
    size_t count;
    size_t left_out;
};

static bool begin_mark(struct marks *marks, const char *kind, size_t event) {
    if (marks->count == MOST_MARKS) {
        marks->left_out++;
        return false;
    }
    marks->count++;
    vr_json_object(marks->json, NULL);
    vr_json_string(marks->json, "kind", kind);
    vr_json_u64(marks->json, "event", event);
    if (marks->time_us != NULL && marks->device->view->history->count != 0) {
        const size_t last = marks->device->view->history->count - 1, at = event < last ? event : last;
        vr_json_i64(marks->json, "time", marks->time_us[at] - marks->time_us[0]);
    }
    return true;
}

// Returns the mark kind of an action; NULL for actions that are not marks.
static const char *action_mark_kind(enum vr_action action) {
    switch (action) {
    case VR_ACTION_OOM: return "oom";
    case VR_ACTION_SNAPSHOT: return "snapshot";
    case VR_ACTION_USER_DEFINED: return "user";
    case VR_ACTION_ANNOTATE: return "label";
    default: return NULL;
    }
}

// Returns a mark's name. torch 2.4 stored annotations in the history: one frame with the text as its file name.
static const char *mark_name(const struct marks *marks, const struct vr_history *history, size_t event) {
    const struct vr_model *model = marks->model;
    const uint64_t first = model->stacks.offset[history->stack[event]];
    if (history->action[event] == VR_ACTION_USER_DEFINED && first < model->stacks.offset[history->stack[event] + 1])
        return vr_model_string(model, model->frames.filename[model->stacks.frame[first]]);
    return vr_model_string(model, history->metadata[event]);
}

static void add_events(struct marks *marks) {
    const struct vr_history *history = marks->device->view->history;
    for (size_t i = 0; i < history->count; i++) {
        const char *kind = action_mark_kind((enum vr_action)history->action[i]);
        if (kind == NULL || !begin_mark(marks, kind, i)) continue;
        vr_json_string(marks->json, "name", mark_name(marks, history, i));
        if (history->action[i] == VR_ACTION_OOM || history->action[i] == VR_ACTION_ANNOTATE)
            vr_json_u64(marks->json, "bytes", history->size_bytes[i]);
        if ((vr_entry_has(history, i) & VR_HAS_DEVICE_FREE) != 0) vr_json_u64(marks->json, "free_bytes", history->address[i]);
        vr_json_object_end(marks->json);
    }
}

// Returns the first event at or after a time.
static size_t mark_event_at(const struct marks *marks, int64_t time_us) {
    size_t first;
    VR_LOWER_BOUND(first, i, 0, marks->device->view->history->count, marks->time_us[i] < time_us);
    return first;
}

// Returns the END that matches a START, counting nested spans of the same name.
static size_t annotation_end(const struct vr_model *model, size_t start, uint32_t end_stage) {
    const struct vr_annotation *annotations = model->annotations;
    size_t open = 1;
    for (size_t i = start + 1; i < model->annotation_count && i - start < MOST_MARKS; i++) {
        if (annotations[i].name != annotations[start].name) continue;
        open += annotations[i].stage == end_stage ? (size_t)-1 : annotations[i].stage == annotations[start].stage ? 1 : 0;
        if (open == 0) return i;
    }
    return SIZE_MAX;
}

static bool stage_is(const struct vr_model *model, const struct vr_annotation *annotation, const char *stage) {
    return strcmp(vr_model_string(model, annotation->stage), stage) == 0;
}

static uint32_t stage_id(const struct vr_model *model, const char *stage) {
    for (size_t i = 0; i < model->annotation_count; i++) {
        if (stage_is(model, &model->annotations[i], stage)) return model->annotations[i].stage;
    }
    return UINT32_MAX;
}

static void add_annotations(struct marks *marks) {
    const struct vr_model *model = marks->model;
    if (marks->time_us == NULL || marks->device->view->history->count == 0) return;
    const uint32_t end_stage = stage_id(model, "END");
    for (size_t i = 0; i < model->annotation_count; i++) {
        const struct vr_annotation *annotation = &model->annotations[i];
        if (annotation->stage == end_stage || (annotation->device >= 0 && annotation->device != (int64_t)marks->device->view->device))
            continue;
        const char *name = vr_model_string(model, annotation->name);
        const bool step = stage_is(model, annotation, "STEP") || strncmp(name, "ProfilerStep#", 13) == 0;
        if (!begin_mark(marks, step ? "step" : "annotation", mark_event_at(marks, annotation->time_us))) continue;
        vr_json_string(marks->json, "name", name);
        const size_t end = stage_is(model, annotation, "START") ? annotation_end(model, i, end_stage) : SIZE_MAX;
        if (end != SIZE_MAX) {
            vr_json_u64(marks->json, "end_event", mark_event_at(marks, model->annotations[end].time_us));
            vr_json_i64(marks->json, "end_time", model->annotations[end].time_us - marks->time_us[0]);
        }
        vr_json_object_end(marks->json);
    }
}

enum vram_status vr_query_marks(const struct vr_query *query) {
    struct vr_explored_recording *recording = NULL;
    struct vr_explored_device *device = NULL;
    VR_TRY(vr_select_device(query, &recording, &device));
    struct marks marks = {.model = vr_recording_model(recording->recording), .device = device, .json = &query->answer->json};
    if (vr_explored_has_times(device)) VR_TRY(vr_explored_times(device, &marks.time_us));
    vr_json_array(marks.json, "marks");
    add_events(&marks);
    add_annotations(&marks);
    vr_json_array_end(marks.json);
    vr_json_u64(marks.json, "left_out", marks.left_out);
    return VRAM_OK;
}
