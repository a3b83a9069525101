// What `allocation` says of a segment.
#include "explore/query/segment_details.h"

#include <stdio.h>

#include "explore/query/answer_members.h"
#include "explore/query/shapes.h"
#include "explore/tables/labels.h"
#include "model/recording.h"

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
        return vr_fail(query->error, VRAM_INVALID_ARGUMENT, VRAM_NO_OFFSET, "the recording has no segment '%.60s'",
                       label == NULL ? "" : label);
    return VRAM_OK;
}

bool vr_query_is_about_segment(const struct vr_query *query) {
    const char *label = vr_parameter_text(query->parameters, "label");
    return vr_parameter_text(query->parameters, "segment") != NULL || (label != NULL && *label == 's');
}

enum vram_status vr_put_segment(const struct vr_query *query, struct vr_explored_recording *recording, struct vr_explored_device *device) {
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
    vr_put_moment(json, device->view->history, "birth_event", "birth_time_us", rows->birth[row]); // VR_BEFORE_TRACE is VR_NEVER
    vr_put_moment(json, device->view->history, "death_event", "death_time_us", rows->death[row]);
    vr_json_i64(json, "stream", (int64_t)segments->stream[row]);
    if ((segments->flags[row] & VR_SEGMENT_POOL_KNOWN) != 0) vr_put_pool(json, segments->pool_first[row], segments->pool_second[row]);
    vr_json_bool(json, "mapped", (segments->flags[row] & VR_SEGMENT_MAPPED) != 0);
    vr_put_stack(json, &recording->sites, rows->stack[row]);
    return VRAM_OK;
}
