// `allocation`: all that is known of one allocation.
#include <stdio.h>

#include "explore/query/answer_members.h"
#include "explore/query/segment_details.h"
#include "explore/query/selection.h"
#include "explore/query/shapes.h"
#include "explore/tables/labels.h"
#include "model/recording.h"

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
        return vr_fail(query->error, VRAM_INVALID_ARGUMENT, VRAM_NO_OFFSET, "allocation: 'row' or 'label' is needed");
    if (number < 0 && !vr_label_find(subject->allocated, 'b', label, row))
        return vr_fail(query->error, VRAM_INVALID_ARGUMENT, VRAM_NO_OFFSET, "the recording has no allocation '%.60s'", label);
    return VRAM_OK;
}

// What the event of the birth says.
static void put_birth(struct vr_json *json, const struct described_row *subject, uint32_t event) {
    const struct vr_history *history = subject->device->view->history;
    if (event == VR_BEFORE_TRACE) return;
    if ((vr_entry_has(history, event) & VR_HAS_STREAM) != 0) vr_json_i64(json, "stream", (int64_t)vr_entry_stream(history, event));
    if ((vr_entry_has(history, event) & VR_HAS_THREAD) != 0) vr_json_u64(json, "thread", history->thread[event]);
    vr_put_words(json, subject->model, history, event);
}

// What the final state adds about an allocation that was never freed.
static void put_final(struct vr_json *json, const struct described_row *subject, size_t row) {
    const struct vr_view *view = subject->device->view;
    const uint32_t block =
        subject->allocated->death[row] == VR_NEVER ? vr_map_get(&subject->allocated->final_blocks, subject->allocated->address[row]) : 0;
    if (block != 0) vr_json_u64(json, "block_bytes", subject->model->blocks.size_bytes[view->blocks[block - 1]]);
}

// Of a longer history roles take longer than who points at an allocation waits.
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
    if (vr_query_is_about_segment(query)) return vr_put_segment(query, subject.recording, subject.device);
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
