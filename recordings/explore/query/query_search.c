// `search`: which stacks and allocations have to do with a text.
#include "analyze/search.h"
#include "explore/query/query.h"
#include "explore/query/selection.h"
#include "model/recording.h"

// Bits as a column of bytes.
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

// What of it is live at the peak.
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
    if (text == NULL) return vr_fail(query->error, VRAM_INVALID_ARGUMENT, VRAM_NO_OFFSET, "search: 'text' is needed");
    VR_TRY(vr_explored_lifetimes(device, kind, &lifetimes));
    VR_TRY(vr_search_init(&search, vr_recording_model(recording->recording), text, regex == 1, query->error));
    const enum vram_status status = answer_search(query, &search, device, lifetimes);
    vr_search_release(&search);
    return status;
}
