// Answers queries about events, and text searches: `events`, `event` and `search`.
#include <stdio.h>

#include "analyze/text_search.h"
#include "explore/explored/state_at_event.h"
#include "explore/query/selection.h"
#include "explore/query/query.h"
#include "explore/tables/event_rows.h"
#include "model/recording.h"

// ---- `events`: rows of the list of events; `event`: everything about one event.

enum { MOST_ROWS = 65536 };

static void put_actions(struct vr_json *json) {
    vr_json_array(json, "actions");
    for (unsigned a = 0; a < VR_ACTION_COUNT; a++) vr_json_string(json, NULL, vr_action_name((enum vr_action)a));
    vr_json_array_end(json);
}

static bool is_segment(uint8_t action) {
    return action == VR_ACTION_SEGMENT_ALLOC || action == VR_ACTION_SEGMENT_FREE || action == VR_ACTION_SEGMENT_MAP ||
           action == VR_ACTION_SEGMENT_UNMAP;
}

// Finds the allocation that an event concerns, and the number in its label.
static enum vram_status row_and_version(struct vr_explored_device *device, size_t event, uint32_t *row, uint32_t *version) {
    size_t found = SIZE_MAX;
    VR_TRY(vr_explored_allocation_of(device, event, &found));
    *row = found == SIZE_MAX ? VR_NO_ROW : (uint32_t)found;
    *version = 0;
    if (found != SIZE_MAX) {
        const uint32_t *versions = NULL;
        VR_TRY(vr_explored_versions(device, &versions));
        *version = versions[found];
    } else if (is_segment(device->view->history->action[event])) {
        const struct vr_segment_labels *labels = NULL;
        VR_TRY(vr_explored_segment_labels(device, &labels));
        *version = vr_segment_version_of_event(labels, event);
    }
    return VRAM_OK;
}

// Numbers an answer's streams, because a stream is a 64-bit number.
struct stream_numbers {
    uint64_t value[256];
    size_t count;
};

static uint8_t stream_number(struct stream_numbers *streams, uint64_t value) {
    for (size_t i = 0; i < streams->count; i++) {
        if (streams->value[i] == value) return (uint8_t)i;
    }
    if (streams->count == VR_COUNT_OF(streams->value) - 1) return UINT8_MAX;
    streams->value[streams->count] = value;
    return (uint8_t)streams->count++;
}

static void put_streams(struct vr_json *json, const struct stream_numbers *streams) {
    vr_json_array(json, "streams");
    for (size_t i = 0; i < streams->count; i++) {
        char text[24];
        snprintf(text, sizeof text, "%lld", (long long)streams->value[i]);
        vr_json_string(json, NULL, text);
    }
    vr_json_array_end(json);
}

static enum vram_status put_rows(struct vr_answer *answer, struct vr_explored_device *device, const struct vr_event_selection *list,
                                 size_t first, size_t end) {
    const struct vr_history *history = device->view->history;
    struct stream_numbers streams = {.count = 0};
    const size_t event = vr_answer_column(answer, "event", VR_U32), action = vr_answer_column(answer, "action", VR_U8);
    const size_t address = vr_answer_halves(answer, "address_low", "address_high");
    const size_t bytes = vr_answer_column(answer, "bytes", VR_F64), stream = vr_answer_column(answer, "stream", VR_U8);
    const size_t time = vr_answer_column(answer, "time", VR_F64), rows = vr_answer_column(answer, "row", VR_U32);
    const size_t versions = vr_answer_column(answer, "version", VR_U32);
    for (size_t i = first; i < end; i++) {
        const size_t at = vr_event_selection_at(list, i);
        uint32_t row = 0, version = 0;
        VR_TRY(row_and_version(device, at, &row, &version));
        vr_answer_u32(answer, event, (uint32_t)at);
        vr_answer_u8(answer, action, history->action[at]);
        vr_answer_u64(answer, address, history->address[at]);
        vr_answer_f64(answer, bytes, (double)history->size_bytes[at]);
        vr_answer_u8(answer, stream, stream_number(&streams, vr_entry_stream(history, at)));
        vr_answer_f64(answer, time,
                      (vr_entry_has(history, at) & VR_HAS_TIME) != 0 ? (double)(history->time_us[at] - history->time_us[0]) : -1);
        vr_answer_u32(answer, rows, row);
        vr_answer_u32(answer, versions, version);
    }
    put_streams(&answer->json, &streams);
    return VRAM_OK;
}

enum vram_status vr_query_events(const struct vr_query *query) {
    struct vr_explored_recording *recording = NULL;
    struct vr_explored_device *device = NULL;
    struct vr_event_selection list;
    int64_t first = 0, count = 0, event = 0;
    VR_TRY(vr_select_device(query, &recording, &device));
    VR_TRY(vr_parameter_whole(query->parameters, "first", 0, INT64_MAX, 0, &first));
    VR_TRY(vr_parameter_whole(query->parameters, "count", 0, MOST_ROWS, 100, &count));
    VR_TRY(vr_parameter_whole(query->parameters, "event", -1, INT64_MAX, -1, &event));
    VR_TRY(vr_select_events(query, recording, device, &list));
    const size_t begin = (uint64_t)first < list.count ? (size_t)first : list.count;
    const size_t end = (uint64_t)count < list.count - begin ? begin + (size_t)count : list.count;
    vr_json_u64(&query->answer->json, "events", device->view->history->count);
    vr_json_u64(&query->answer->json, "total", list.count);
    vr_json_u64(&query->answer->json, "first", begin);
    vr_json_u64(&query->answer->json, "position", vr_event_selection_index(&list, event));
    put_actions(&query->answer->json);
    return put_rows(query->answer, device, &list, begin, end);
}

// --- one event ---------------------------------------------------------------------------------------------------------------
static void put_label(struct vr_answer *answer, const struct vr_history *history, size_t event, uint32_t row, uint32_t version) {
    const bool segment = is_segment(history->action[event]);
    if (history->action[event] == VR_ACTION_OOM || (!segment && row == VR_NO_ROW)) return;
    char label[48];
    snprintf(label, sizeof label, "%c%llx_%u", segment ? 's' : 'b', (unsigned long long)history->address[event], version);
    vr_json_string(&answer->json, "label", label);
    vr_answer_address(answer, "address", history->address[event]);
}

static void put_fields(struct vr_answer *answer, const struct vr_model *model, const struct vr_history *history, size_t event) {
    struct vr_json *json = &answer->json;
    const uint32_t has = vr_entry_has(history, event);
    const bool unknown = history->action[event] == VR_ACTION_UNKNOWN;
    vr_json_string(json, "action",
                   unknown ? vr_model_string(model, history->unknown[event]) : vr_action_name((enum vr_action)history->action[event]));
    vr_json_u64(json, "bytes", history->size_bytes[event]);
    if ((has & VR_HAS_STREAM) != 0) vr_json_i64(json, "stream", (int64_t)vr_entry_stream(history, event));
    if ((has & VR_HAS_TIME) != 0) vr_json_i64(json, "time_us", history->time_us[event]);
    if ((has & VR_HAS_THREAD) != 0) vr_json_u64(json, "thread", history->thread[event]);
    if (history->action[event] == VR_ACTION_OOM && (has & (VR_HAS_DEVICE_FREE | VR_HAS_ADDRESS)) != 0)
        vr_json_u64(json, "device_free_bytes", history->address[event]);
    vr_put_words(json, model, history, event);
}

static enum vram_status put_totals(struct vr_json *json, struct vr_explored_device *device, int64_t event) {
    static const char *const names[VR_CURVE_COUNT] = {"allocated_after", "active_after", "reserved_after"};
    for (unsigned kind = 0; kind < VR_CURVE_COUNT; kind++) {
        const struct vr_curve *curve = NULL;
        VR_TRY(vr_explored_curve(device, (enum vr_curve_kind)kind, &curve));
        vr_json_i64(json, names[kind], vr_curve_at(curve, event));
    }
    return VRAM_OK;
}

enum vram_status vr_query_event(const struct vr_query *query) {
    struct vr_explored_recording *recording = NULL;
    struct vr_explored_device *device = NULL;
    int64_t event = -1;
    uint32_t row = 0, version = 0;
    VR_TRY(vr_select_device(query, &recording, &device));
    const struct vr_history *history = device->view->history;
    VR_TRY(vr_parameter_whole(query->parameters, "event", 0, (int64_t)history->count - 1, -1, &event));
    if (event < 0) return vr_fail(query->error, VRAM_INVALID_ARGUMENT, VRAM_NO_OFFSET, "event: 'event' is required");
    const struct vr_model *model = vr_recording_model(recording->recording);
    VR_TRY(row_and_version(device, (size_t)event, &row, &version));
    vr_json_i64(&query->answer->json, "event", event);
    put_fields(query->answer, model, history, (size_t)event);
    put_label(query->answer, history, (size_t)event, row, version);
    if (row != VR_NO_ROW) vr_json_u64(&query->answer->json, "row", row);
    VR_TRY(put_totals(&query->answer->json, device, event));
    vr_put_stack(&query->answer->json, &recording->sites, history->stack[event]);
    return VRAM_OK;
}

// ---- `search`: the stacks and allocations that match a text.

// Adds bits as a column of bytes.
static void put_bits(struct vr_answer *answer, const char *name, const uint8_t *bits, size_t count) {
    const size_t column = vr_answer_column(answer, name, VR_U8);
    for (size_t i = 0; i < (count + 7) / 8; i++) vr_answer_u8(answer, column, bits[i]);
}

static void put_stacks(const struct vr_query *query, struct vr_search *search) {
    const uint32_t count = search->model->stacks.count;
    const size_t column = vr_answer_column(query->answer, "stack_bits", VR_U8);
    uint64_t found = 0;
    uint8_t bits = 0;
    for (uint32_t stack = 0; stack < count; stack++) {
        const bool matches = vr_search_stack(search, stack);
        found += matches;
        bits = (uint8_t)(bits | (matches ? 1u << stack % 8 : 0));
        if (stack % 8 != 7 && stack + 1 != count) continue;
        vr_answer_u8(query->answer, column, bits);
        bits = 0;
    }
    vr_json_u64(&query->answer->json, "stacks", found);
}

// Adds the totals of the matches that are live at the peak.
static void put_at_peak(const struct vr_query *query, const struct vr_lifetimes *lifetimes, const uint8_t *bits) {
    struct vram_report_sum live = {0};
    for (size_t row = 0; row < lifetimes->count; row++) {
        if ((bits[row / 8] >> row % 8 & 1) == 0 || !vr_lifetimes_live_at(lifetimes, row, lifetimes->peak_event)) continue;
        live.count++;
        live.bytes += lifetimes->size_bytes[row];
    }
    vr_json_u64(&query->answer->json, "peak_allocations", live.count);
    vr_json_u64(&query->answer->json, "peak_bytes", live.bytes);
}

static enum vram_status answer_search(const struct vr_query *query, struct vr_search *search, const struct vr_explored_device *device,
                                      const struct vr_lifetimes *lifetimes) {
    uint8_t *bits = calloc(lifetimes->count / 8 + 1, 1);
    if (bits == NULL) return VRAM_NO_HOST_MEMORY;
    struct vram_report_sum found = {0};
    vr_search_rows(search, device->view, lifetimes, bits, &found);
    vr_json_u64(&query->answer->json, "allocations", found.count);
    vr_json_u64(&query->answer->json, "bytes", found.bytes);
    put_at_peak(query, lifetimes, bits);
    put_stacks(query, search);
    put_bits(query->answer, "row_bits", bits, lifetimes->count);
    free(bits);
    return VRAM_OK;
}

enum vram_status vr_query_search(const struct vr_query *query) {
    struct vr_explored_recording *recording = NULL;
    struct vr_explored_device *device = NULL;
    const struct vr_lifetimes *lifetimes = NULL;
    enum vr_lifetime_kind kind = VR_LIFETIME_ALLOCATED;
    int64_t regex = 0;
    struct vr_search search;
    VR_TRY(vr_select_device(query, &recording, &device));
    VR_TRY(vr_select_lifetime_kind(query, &kind));
    VR_TRY(vr_parameter_whole(query->parameters, "regex", 0, 1, 0, &regex));
    const char *text = vr_parameter_text(query->parameters, "text");
    if (text == NULL) return vr_fail(query->error, VRAM_INVALID_ARGUMENT, VRAM_NO_OFFSET, "search: 'text' is required");
    VR_TRY(vr_explored_lifetimes(device, kind, &lifetimes));
    VR_TRY(vr_search_init(&search, vr_recording_model(recording->recording), text, regex == 1, query->error));
    const enum vram_status status = answer_search(query, &search, device, lifetimes);
    vr_search_release(&search);
    return status;
}
