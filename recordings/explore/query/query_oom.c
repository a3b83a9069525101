// Answers why requests failed and what would have helped: `oom`, `cure` and `paged`.
#include "analyze/demand.h"
#include "analyze/report_parts.h"
#include "explore/explored/explored.h"
#include "explore/query/selection.h"
#include "present/shared_texts.h"

// ---- `oom`: why requests failed, as in the report.

// For longer histories, the demand takes too long for an interactive view.
enum { MOST_EVENTS_OF_A_DEMAND = 2000000 };

// If nothing failed, finds the main use at the peak, and what would lower it by a tenth, or below the given memory.
static enum vram_status find_demand(struct vr_explored_recording *recording, struct vr_explored_device *device, uint64_t memory_bytes,
                                    struct vr_arena *arena, struct vram_report_device *facts) {
    const struct vr_lifetimes *allocated = NULL;
    VR_TRY(vr_explored_lifetimes(device, VR_LIFETIME_ALLOCATED, &allocated));
    const uint64_t peak = allocated->peak.bytes, tenth_less = peak - peak / 10;
    const bool is_host = vr_model_is_host(device->view->model, device->view->device);
    if (facts->oom_count != 0 || is_host || peak == 0 || device->view->history->count > MOST_EVENTS_OF_A_DEMAND) return VRAM_OK;
    const struct vr_demand_question question = {.view = device->view,
                                                .sites = &recording->sites,
                                                .event = allocated->peak_event,
                                                .room_bytes = memory_bytes != 0 && memory_bytes < peak ? memory_bytes : tenth_less,
                                                .room_is_named = memory_bytes != 0 && memory_bytes < peak,
                                                .block_bytes = peak};
    return vr_demand_find(&question, arena, &facts->demand);
}

static enum vram_status explain_oom(const struct vr_query *query, struct vr_explored_recording *recording,
                                    struct vr_explored_device *device, uint64_t memory_bytes, struct vr_arena *arena,
                                    struct vram_report_device *facts) {
    const struct vr_lifetimes *allocated = NULL;
    VR_TRY(vr_explored_ooms(recording, device, memory_bytes, arena, facts));
    VR_TRY(find_demand(recording, device, memory_bytes, arena, facts));
    VR_TRY(vr_oom_sentences(arena, facts));
    VR_TRY(vr_explored_lifetimes(device, VR_LIFETIME_ALLOCATED, &allocated));
    vr_report_reserved(device->view, &facts->reserved, NULL, 0);
    struct vr_json *json = &query->answer->json;
    vr_report_json_ooms(json, facts);
    if (facts->demand != NULL) vr_demand_json(json, facts->demand);
    vr_json_u64(json, "peak_bytes", allocated->peak.bytes);
    vr_json_i64(json, "peak_event", allocated->peak_event);
    vr_json_i64(json, "reserved_peak_bytes", facts->reserved.peak_bytes);
    vr_json_i64(json, "reserved_peak_event", facts->reserved.peak_event);
    return VRAM_OK;
}

enum vram_status vr_query_oom(const struct vr_query *query) {
    struct vr_explored_recording *recording = NULL;
    struct vr_explored_device *device = NULL;
    int64_t memory = 0;
    VR_TRY(vr_select_device(query, &recording, &device));
    VR_TRY(vr_parameter_whole(query->parameters, "memory", 0, INT64_MAX, 0, &memory));
    struct vr_arena arena = {0};
    struct vram_report_device facts = {.device = device->view->device};
    const enum vram_status status = explain_oom(query, recording, device, (uint64_t)memory, &arena, &facts);
    vr_arena_release(&arena);
    return status;
}

// ---- `cure`: what would have made the last failed request fit, as in the report.

static void put_cure_member(const struct vram_cure *cure, uint64_t events, struct vr_json *json) {
    struct vr_text text = {0};
    if (cure->verdict == VRAM_CURE_UNFINISHED)
        vr_text_printf(&text, "A history of %s events takes too long to replay here; `vram report` searches for the cure.",
                       vr_count(events).text);
    else
        vr_cure_sentence(cure, &text);
    vr_json_string(json, "text", vr_text_string(&text));
    vr_text_release(&text);
}

enum vram_status vr_query_cure(const struct vr_query *query) {
    struct vr_explored_recording *recording = NULL;
    struct vr_explored_device *device = NULL;
    const struct vram_cure *cure = NULL;
    double share = 0;
    VR_TRY(vr_select_device(query, &recording, &device));
    VR_TRY(vr_explored_cure(recording, device, SIZE_MAX, &share, &cure, query->error));
    struct vr_json *json = &query->answer->json;
    if (cure == NULL) {
        vr_json_null(json, "cure");
        return VRAM_OK;
    }
    vr_json_object(json, "cure");
    vr_cure_json(cure, json);
    vr_json_object_end(json);
    put_cure_member(cure, device->view->history->count, json);
    return VRAM_OK;
}

// ---- `paged`: what paged memory would have saved, as in the report.

enum vram_status vr_query_paged(const struct vr_query *query) {
    struct vr_explored_recording *recording = NULL;
    struct vr_explored_device *device = NULL;
    const struct vram_paged_saving *saving = NULL;
    double share = 0;
    VR_TRY(vr_select_device(query, &recording, &device));
    VR_TRY(vr_explored_saving(recording, device, SIZE_MAX, &share, &saving, query->error));
    struct vr_json *json = &query->answer->json;
    if (saving == NULL) {
        vr_json_null(json, "paged");
        return VRAM_OK;
    }
    vr_json_object(json, "paged");
    vr_paged_json(saving, json);
    vr_json_object_end(json);
    return VRAM_OK;
}
