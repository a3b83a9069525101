// Answers queries about allocations: `allocations`, a table, and `allocation`, all about one of them.
#include <math.h>
#include <stdio.h>

#include "explore/query/drawn_shapes.h"
#include "explore/query/query.h"
#include "explore/query/selection.h"
#include "explore/tables/event_rows.h"
#include "model/recording.h"

// ---- `allocations`: the largest allocations of a window as a table.

struct table {
    const struct vr_shapes *shapes;
    const struct vr_history *history;
    const struct vr_lifetimes *allocated;
    const uint32_t *versions;
};

static void put_time(const struct table *table, size_t column, uint32_t event) {
    const bool known = event != VR_NEVER && (vr_entry_has(table->history, event) & VR_HAS_TIME) != 0;
    vr_answer_f64(table->shapes->query->answer, column, known ? (double)table->history->time_us[event] : NAN);
}

// Adds the columns of the rows. Unknown events and times are NaN.
static void put_rows(const struct table *table) {
    const struct vr_shapes *shapes = table->shapes;
    struct vr_answer *answer = shapes->query->answer;
    const size_t address = vr_answer_halves(answer, "address_low", "address_high"), version = vr_answer_column(answer, "version", VR_U32);
    const size_t birth = vr_answer_column(answer, "birth", VR_F64), death = vr_answer_column(answer, "death", VR_F64);
    const size_t birth_time = vr_answer_column(answer, "birth_time", VR_F64), death_time = vr_answer_column(answer, "death_time", VR_F64);
    const size_t stream = vr_answer_halves(answer, "stream_low", "stream_high"), known = vr_answer_column(answer, "stream_known", VR_U8);
    for (size_t i = 0; i < shapes->count; i++) {
        const uint32_t row = shapes->row[i], born = shapes->lifetimes->birth[row], died = shapes->lifetimes->death[row];
        const size_t named = vr_other_row(shapes->lifetimes, table->allocated, row);
        const bool has_stream = born != VR_BEFORE_TRACE && (vr_entry_has(table->history, born) & VR_HAS_STREAM) != 0;
        vr_answer_u64(answer, address, shapes->lifetimes->address[row]);
        vr_answer_u32(answer, version, named == SIZE_MAX ? 0 : table->versions[named]);
        vr_answer_f64(answer, birth, born == VR_BEFORE_TRACE ? NAN : (double)born);
        vr_answer_f64(answer, death, died == VR_NEVER ? NAN : (double)died);
        put_time(table, birth_time, born); // VR_BEFORE_TRACE equals VR_NEVER
        put_time(table, death_time, died);
        vr_answer_u64(answer, stream, has_stream ? vr_entry_stream(table->history, born) : 0);
        vr_answer_u8(answer, known, has_stream);
    }
}

enum vram_status vr_query_allocations(const struct vr_query *query) {
    struct vr_shapes shapes;
    enum vr_lifetime_kind kind = VR_LIFETIME_ALLOCATED;
    VR_TRY(vr_select_lifetime_kind(query, &kind));
    VR_TRY(vr_shapes_init(query, &shapes));
    struct table table = {.shapes = &shapes, .history = shapes.device->view->history};
    VR_TRY(vr_explored_lifetimes(shapes.device, VR_LIFETIME_ALLOCATED, &table.allocated));
    VR_TRY(vr_explored_versions(shapes.device, &table.versions));
    enum vram_status status = vr_shapes_pick(&shapes, (enum vr_shape_kind)kind, 1);
    if (status == VRAM_OK) {
        status = vr_shapes_put(&shapes);
        put_rows(&table);
        if (status == VRAM_OK) status = vr_shapes_put_keys(&shapes);
    }
    vr_shapes_release(&shapes);
    return status;
}

// ---- `allocation` for a segment.

static enum vram_status put_segment_names(struct vr_json *json, const struct vr_segment_lives *segments,
                                          const struct vr_segment_labels *labels, size_t row) {
    char label[48];
    struct vr_text pool = {.bytes = NULL};
    snprintf(label, sizeof label, "s%llx_%u", (unsigned long long)segments->lifetimes.address[row],
             (unsigned)vr_segment_version(labels, row));
    vr_pool_name((segments->flags[row] & VR_SEGMENT_POOL_KNOWN) != 0, segments->pool_first[row], segments->pool_second[row], &pool);
    vr_json_u64(json, "row", row);
    vr_json_string(json, "label", label);
    vr_json_string(json, "kind", "segment");
    vr_json_string(json, "pool_name", vr_text_string(&pool));
    const enum vram_status status = vr_text_status(&pool);
    vr_text_release(&pool);
    return status;
}

static enum vram_status find_segment_row(const struct vr_query *query, const struct vr_lifetimes *rows, size_t *row) {
    const char *label = vr_parameter_text(query->parameters, "label");
    int64_t number = -1;
    VR_TRY(vr_parameter_whole(query->parameters, "segment", 0, (int64_t)rows->count - 1, -1, &number));
    if (number >= 0) *row = (size_t)number;
    if (number < 0 && (label == NULL || !vr_label_find(rows, 's', label, row)))
        return vr_fail(query->error, VRAM_INVALID_ARGUMENT, VRAM_NO_OFFSET, "segment '%.60s' is not in the recording",
                       label == NULL ? "" : label);
    return VRAM_OK;
}

// Returns whether a query is about a segment: it has a row (`segment`), or a label that begins with s.
static bool query_is_about_segment(const struct vr_query *query) {
    const char *label = vr_parameter_text(query->parameters, "label");
    return vr_parameter_text(query->parameters, "segment") != NULL || (label != NULL && *label == 's');
}

// Adds the segment's members. INVALID_ARGUMENT for an unknown segment, LIMIT, NO_HOST_MEMORY.
static enum vram_status put_segment(const struct vr_query *query, struct vr_explored_recording *recording,
                                    struct vr_explored_device *device) {
    struct vr_json *json = &query->answer->json;
    const struct vr_segment_lives *segments = NULL;
    const struct vr_segment_labels *labels = NULL;
    size_t row = 0;
    VR_TRY(vr_explored_segments(device, &segments));
    VR_TRY(vr_explored_segment_labels(device, &labels));
    const struct vr_lifetimes *rows = &segments->lifetimes;
    VR_TRY(find_segment_row(query, rows, &row));
    VR_TRY(put_segment_names(json, segments, labels, row));
    vr_answer_address(query->answer, "address", rows->address[row]);
    vr_json_u64(json, "bytes", rows->size_bytes[row]);
    vr_put_moment(json, device->view->history, "birth_event", "birth_time_us", rows->birth[row]); // VR_BEFORE_TRACE equals VR_NEVER
    vr_put_moment(json, device->view->history, "death_event", "death_time_us", rows->death[row]);
    vr_json_i64(json, "stream", (int64_t)segments->stream[row]);
    if ((segments->flags[row] & VR_SEGMENT_POOL_KNOWN) != 0) vr_put_pool(json, segments->pool_first[row], segments->pool_second[row]);
    vr_json_bool(json, "mapped", (segments->flags[row] & VR_SEGMENT_MAPPED) != 0);
    vr_put_stack(json, &recording->sites, rows->stack[row]);
    return VRAM_OK;
}

// ---- `allocation`: everything about one allocation.

struct described_row {
    const struct vr_model *model;
    struct vr_explored_recording *recording;
    struct vr_explored_device *device;
    const struct vr_lifetimes *allocated, *active;
};

static enum vram_status find_described_row(const struct vr_query *query, const struct described_row *subject, size_t *row) {
    const char *label = vr_parameter_text(query->parameters, "label");
    int64_t number = -1;
    VR_TRY(vr_parameter_whole(query->parameters, "row", 0, (int64_t)subject->allocated->count - 1, -1, &number));
    if (number >= 0) *row = (size_t)number;
    if (number < 0 && label == NULL)
        return vr_fail(query->error, VRAM_INVALID_ARGUMENT, VRAM_NO_OFFSET, "allocation: 'row' or 'label' is required");
    if (number < 0 && !vr_label_find(subject->allocated, 'b', label, row))
        return vr_fail(query->error, VRAM_INVALID_ARGUMENT, VRAM_NO_OFFSET, "allocation '%.60s' is not in the recording", label);
    return VRAM_OK;
}

// Adds the data of the birth event.
static void put_birth(struct vr_json *json, const struct described_row *subject, uint32_t event) {
    const struct vr_history *history = subject->device->view->history;
    if (event == VR_BEFORE_TRACE) return;
    if ((vr_entry_has(history, event) & VR_HAS_STREAM) != 0) vr_json_i64(json, "stream", (int64_t)vr_entry_stream(history, event));
    if ((vr_entry_has(history, event) & VR_HAS_THREAD) != 0) vr_json_u64(json, "thread", history->thread[event]);
    vr_put_words(json, subject->model, history, event);
}

// Adds the final block size of an allocation that was never freed.
static void put_final(struct vr_json *json, const struct described_row *subject, size_t row) {
    const struct vr_view *view = subject->device->view;
    const uint32_t block =
        subject->allocated->death[row] == VR_NEVER ? vr_map_get(&subject->allocated->final_blocks, subject->allocated->address[row]) : 0;
    if (block != 0) vr_json_u64(json, "block_bytes", subject->model->blocks.size_bytes[view->blocks[block - 1]]);
}

// For longer histories, roles take too long for a tooltip.
enum { MOST_EVENTS_OF_ROLES = 2000000 };

static enum vram_status put_role(struct vr_json *json, struct vr_explored_device *device, size_t row) {
    struct vr_roles *roles = NULL;
    if (device->view->history->count > MOST_EVENTS_OF_ROLES) return VRAM_OK;
    VR_TRY(vr_explored_roles(device, VR_LIFETIME_ALLOCATED, &roles));
    vr_json_string(json, "role", vram_role_word((enum vram_role)roles->role[row]));
    return VRAM_OK;
}

enum vram_status vr_query_allocation(const struct vr_query *query) {
    struct described_row subject = {.model = NULL};
    struct vr_json *json = &query->answer->json;
    size_t row = 0;
    VR_TRY(vr_select_device(query, &subject.recording, &subject.device));
    if (query_is_about_segment(query)) return put_segment(query, subject.recording, subject.device);
    subject.model = vr_recording_model(subject.recording->recording);
    VR_TRY(vr_explored_lifetimes(subject.device, VR_LIFETIME_ALLOCATED, &subject.allocated));
    VR_TRY(vr_explored_lifetimes(subject.device, VR_LIFETIME_ACTIVE, &subject.active));
    VR_TRY(find_described_row(query, &subject, &row));
    const struct vr_history *history = subject.device->view->history;
    const uint32_t birth = subject.allocated->birth[row];
    const size_t other = vr_other_row(subject.allocated, subject.active, row);
    char label[48];
    const uint32_t *versions = NULL;
    VR_TRY(vr_explored_versions(subject.device, &versions));
    snprintf(label, sizeof label, "b%llx_%u", (unsigned long long)subject.allocated->address[row], (unsigned)versions[row]);
    vr_json_u64(json, "row", row);
    vr_json_string(json, "label", label);
    vr_answer_address(query->answer, "address", subject.allocated->address[row]);
    vr_json_u64(json, "bytes", subject.allocated->size_bytes[row]);
    vr_put_moment(json, history, "birth_event", "birth_time_us", birth == VR_BEFORE_TRACE ? VR_NEVER : birth);
    vr_put_moment(json, history, "death_event", "death_time_us", subject.allocated->death[row]);
    if (other != SIZE_MAX) vr_put_moment(json, history, "completed_event", "completed_time_us", subject.active->death[other]);
    if (birth != VR_BEFORE_TRACE) {
        const struct vr_curve *curve = NULL;
        VR_TRY(vr_explored_curve(subject.device, VR_CURVE_ALLOCATED, &curve));
        vr_json_i64(json, "total_after", vr_curve_at(curve, birth));
    }
    put_birth(json, &subject, birth);
    put_final(json, &subject, row);
    VR_TRY(put_role(json, subject.device, row));
    vr_put_stack(json, &subject.recording->sites, subject.allocated->stack[row]);
    return VRAM_OK;
}
