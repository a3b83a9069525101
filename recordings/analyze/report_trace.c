// Reports facts about a history's events that do not need to follow addresses.
#include "analyze/report_parts.h"

static int by_value(const void *a, const void *b) {
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return VR_ORDER(x, y);
}

// A small set of streams; a program has few, but a damaged file may have as many as events.
struct trace_streams {
    int64_t *values;
    size_t count;
    size_t capacity;
    int64_t last;
    struct vr_map known;
};

static enum vram_status add_stream(struct trace_streams *streams, uint64_t stream) {
    if (streams->count != 0 && streams->last == (int64_t)stream) return VRAM_OK;
    streams->last = (int64_t)stream;
    if (vr_map_get(&streams->known, stream) != 0) return VRAM_OK;
    VR_TRY(vr_map_set(&streams->known, stream, 1));
    VR_TRY(vr_grow((void **)&streams->values, &streams->capacity, streams->count + 1, sizeof *streams->values));
    streams->values[streams->count++] = (int64_t)stream;
    return VRAM_OK;
}

static enum vram_status keep_streams(struct trace_streams *streams, struct vr_arena *arena, const int64_t **values, size_t *count) {
    void *room;
    VR_TRY(vr_arena_array(arena, streams->count, sizeof *streams->values, &room));
    if (streams->count != 0) {
        qsort(streams->values, streams->count, sizeof *streams->values, by_value);
        memcpy(room, streams->values, streams->count * sizeof *streams->values);
    }
    *values = room;
    *count = streams->count;
    return VRAM_OK;
}

static enum vram_status collect_streams(const struct vr_view *view, struct vr_arena *arena, struct vram_report_device *out,
                                        struct trace_streams *trace, struct trace_streams *segments) {
    // If all events are alike, one of them suffices.
    const size_t events = vr_entries_alike(view->history) && view->history->count != 0 ? 1 : view->history->count;
    for (size_t i = 0; i < events; i++) {
        if ((vr_entry_has(view->history, i) & VR_HAS_STREAM) != 0) VR_TRY(add_stream(trace, vr_entry_stream(view->history, i)));
    }
    for (size_t i = 0; i < view->segment_count; i++) {
        const size_t row = view->segments[i];
        if ((view->model->segments.has[row] & VR_HAS_STREAM) != 0) VR_TRY(add_stream(segments, view->model->segments.stream[row]));
    }
    VR_TRY(keep_streams(trace, arena, &out->trace_streams, &out->trace_stream_count));
    return keep_streams(segments, arena, &out->segment_streams, &out->segment_stream_count);
}

static int traced_by_name(const void *a, const void *b) {
    const struct vram_report_group *x = a, *y = b;
    return strcmp(x->name, y->name);
}

// Actions unknown to this library, by their own names.
struct unknown {
    struct vram_report_group *groups;
    size_t count;
    size_t capacity;
    struct vr_map rows; // 1 + string id -> 1 + row
};

static enum vram_status count_unknown(struct unknown *unknown, const struct vr_view *view, size_t event, uint64_t bytes) {
    const uint32_t id = view->history->unknown[event];
    uint32_t row = vr_map_get(&unknown->rows, id);
    if (row == 0) {
        VR_TRY(vr_grow((void **)&unknown->groups, &unknown->capacity, unknown->count + 1, sizeof *unknown->groups));
        unknown->groups[unknown->count] = (struct vram_report_group){.name = vr_model_string(view->model, id)};
        row = (uint32_t)++unknown->count;
        VR_TRY(vr_map_set(&unknown->rows, id, row));
    }
    unknown->groups[row - 1].count++;
    unknown->groups[row - 1].bytes += bytes;
    return VRAM_OK;
}

static enum vram_status collect_actions(const struct vr_view *view, struct vr_arena *arena, struct vram_report_device *out,
                                        struct unknown *unknown) {
    struct vram_report_group known[VR_ACTION_COUNT] = {{0}};
    const struct vr_history *history = view->history;
    const bool sized = vr_entries_alike(history) && (history->has.common & VR_HAS_SIZE) != 0;
    for (size_t i = 0; i < history->count; i++) {
        const uint64_t bytes = sized || (vr_entry_has(history, i) & VR_HAS_SIZE) != 0 ? history->size_bytes[i] : 0;
        if (history->action[i] == VR_ACTION_UNKNOWN) {
            VR_TRY(count_unknown(unknown, view, i, bytes));
            continue;
        }
        known[history->action[i]].count++;
        known[history->action[i]].bytes += bytes;
    }
    void *room;
    VR_TRY(vr_arena_array(arena, VR_ACTION_COUNT + unknown->count, sizeof(struct vram_report_group), &room));
    struct vram_report_group *actions = room;
    for (size_t a = 0; a < VR_ACTION_COUNT; a++) {
        known[a].name = vr_action_name((enum vr_action)a);
        if (known[a].count != 0) actions[out->action_count++] = known[a];
    }
    for (size_t i = 0; i < unknown->count; i++) {
        struct vram_report_group *action = &actions[out->action_count++];
        *action = unknown->groups[i];
        VR_TRY(vr_arena_copy(arena, action->name, strlen(action->name), &action->name));
    }
    qsort(actions, out->action_count, sizeof *actions, traced_by_name);
    out->actions = actions;
    return VRAM_OK;
}

// Returns whether every event has the same keys, including a time.
static bool all_have_times(const struct vr_history *history) {
    uint32_t apart = 0;
    for (size_t i = 0; i < history->count && !vr_entries_alike(history); i++) apart |= history->has.apart[i];
    return apart == 0 && (history->has.common & VR_HAS_TIME) != 0 && history->count != 0;
}

static void collect_times(const struct vr_history *history, struct vram_report_device *out) {
    out->times_monotonic = true;
    if (all_have_times(history)) { // nearly always true
        size_t falls = 0;
        for (size_t i = 1; i < history->count; i++) falls += history->time_us[i] < history->time_us[i - 1];
        out->has_times = true;
        out->times_monotonic = falls == 0;
        out->first_time_us = history->time_us[0];
        out->last_time_us = history->time_us[history->count - 1];
        return;
    }
    for (size_t i = 0; i < history->count; i++) {
        if ((vr_entry_has(history, i) & VR_HAS_TIME) == 0) continue;
        if (!out->has_times) out->first_time_us = history->time_us[i];
        if (out->has_times && history->time_us[i] < out->last_time_us) out->times_monotonic = false;
        out->has_times = true;
        out->last_time_us = history->time_us[i];
    }
}

// Bits per stack: whether it has frames, and whether an event has it. Long histories have few stacks.
enum { HAS_FRAMES = 1, IS_MET = 2 };

static enum vram_status count_frames(const struct vr_view *view, struct vram_report_device *out) {
    const struct vr_history *history = view->history;
    const struct vr_stacks *stacks = &view->model->stacks;
    uint8_t *facts = malloc((size_t)stacks->count + 1);
    if (facts == NULL) return VRAM_NO_HOST_MEMORY;
    for (uint32_t s = 0; s < stacks->count; s++) facts[s] = stacks->offset[s + 1] != stacks->offset[s] ? HAS_FRAMES : 0;
    for (size_t i = 0; i < history->count; i++) {
        uint8_t *fact = &facts[history->stack[i]];
        out->events_with_frames += *fact & HAS_FRAMES;
        *fact |= IS_MET;
    }
    for (uint32_t s = 0; s < stacks->count; s++) {
        const uint64_t frames = stacks->offset[s + 1] - stacks->offset[s];
        if ((facts[s] & IS_MET) != 0 && frames > out->max_frames) out->max_frames = frames;
    }
    free(facts);
    return VRAM_OK;
}

enum vram_status vr_report_trace(const struct vr_view *view, struct vr_arena *arena, struct vram_report_device *out) {
    out->is_host = vr_model_is_host(view->model, view->device);
    out->whole_program = vr_is_whole_program(view);
    out->python = view->python;
    out->windows = view->windows;
    out->platform = vr_platform_name(view->platform);
    const struct vr_history *history = view->history;
    out->events = history->count;
    VR_TRY(count_frames(view, out));
    collect_times(history, out);

    struct unknown unknown = {0};
    enum vram_status status = collect_actions(view, arena, out, &unknown);
    free(unknown.groups);
    vr_map_release(&unknown.rows);
    if (status != VRAM_OK) return status;

    struct trace_streams trace = {0}, segments = {0};
    status = collect_streams(view, arena, out, &trace, &segments);
    free(trace.values);
    free(segments.values);
    vr_map_release(&trace.known);
    vr_map_release(&segments.known);
    return status;
}

void vr_report_reserved(const struct vr_view *view, struct vram_report_reserved *reserved, struct vram_report_point *points,
                        size_t point_count) {
    const struct vr_history *history = view->history;
    uint64_t total = 0;
    for (size_t i = 0; i < view->segment_count; i++) total += view->model->segments.total_bytes[view->segments[i]];
    for (size_t i = 0; i < history->count; i++) total -= vr_reserved_delta(history, i);
    *reserved = (struct vram_report_reserved){.start_bytes = (int64_t)total, .peak_bytes = (int64_t)total, .peak_event = -1};
    int64_t low = (int64_t)total;
    for (size_t p = 0, i = 0; p < (point_count == 0 ? 1 : point_count); p++) {
        const size_t next = point_count == 0 ? history->count : vr_point_first(history->count, point_count, p + 1);
        int64_t largest = (int64_t)total;
        for (; i < next; i++) {
            total += vr_reserved_delta(history, i);
            if ((int64_t)total > largest) largest = (int64_t)total;
            if ((int64_t)total < low) low = (int64_t)total;
            if ((int64_t)total <= reserved->peak_bytes) continue;
            reserved->peak_bytes = (int64_t)total;
            reserved->peak_event = (int64_t)i;
        }
        if (point_count != 0) points[p].reserved_bytes = largest;
    }
    reserved->end_bytes = (int64_t)total;
    reserved->consistent = low >= 0;
}
