// Recordings of whole programs: the libraries that requested memory, its kinds, and the free bytes of the driver's pools.
#include "analyze/report_parts.h"

// ---- Recordings of whole programs: the libraries that requested memory, and its kinds.

struct tally {
    uint32_t name; // string id
    uint64_t bytes, count;
};

static int libraries_by_bytes(const void *a, const void *b) {
    const struct tally *x = a, *y = b;
    if (x->bytes != y->bytes) return VR_ORDER(y->bytes, x->bytes);
    return VR_ORDER(x->name, y->name);
}

static size_t move_used_to_front(struct tally *tallies, size_t count) {
    size_t used = 0;
    for (size_t i = 0; i < count; i++) {
        if (tallies[i].count != 0) tallies[used++] = tallies[i];
    }
    return used;
}

// Groups the allocations live after an event by a column of string ids of their alloc events.
static enum vram_status group_by(const struct vr_view *view, const struct vr_lifetimes *lifetimes, const uint32_t *column, int64_t event,
                                 struct vr_arena *arena, const struct vram_report_group **groups, size_t *group_count) {
    const struct vr_model *model = view->model;
    struct tally *tallies = calloc(model->strings.count, sizeof *tallies);
    if (tallies == NULL) return VRAM_NO_HOST_MEMORY;
    for (size_t i = 0; i < lifetimes->count; i++) {
        if (lifetimes->birth[i] == VR_BEFORE_TRACE || !vr_lifetimes_live_at(lifetimes, i, event)) continue;
        struct tally *tally = &tallies[column[lifetimes->birth[i]]];
        tally->name = column[lifetimes->birth[i]];
        tally->bytes += lifetimes->size_bytes[i];
        tally->count++;
    }
    const size_t used = move_used_to_front(tallies, model->strings.count);
    qsort(tallies, used, sizeof *tallies, libraries_by_bytes);
    void *room = NULL;
    enum vram_status status = vr_arena_array(arena, used, sizeof(struct vram_report_group), &room);
    struct vram_report_group *made = room;
    for (size_t i = 0; i < used && status == VRAM_OK; i++) {
        made[i].bytes = tallies[i].bytes;
        made[i].count = tallies[i].count;
        status =
            vr_arena_copy(arena, vr_model_string(model, tallies[i].name), vr_model_string_length(model, tallies[i].name), &made[i].name);
    }
    free(tallies);
    VR_TRY(status);
    *groups = made;
    *group_count = used;
    return VRAM_OK;
}

bool vr_is_whole_program(const struct vr_view *view) { return vr_model_setting(view->model, "vram_run_process") != NULL; }

enum vram_status vr_libraries_at(const struct vr_view *view, const struct vr_lifetimes *allocated, int64_t event, struct vr_arena *arena,
                                 const struct vram_report_group **libraries, size_t *count) {
    if (!vr_is_whole_program(view)) return VRAM_OK;
    return group_by(view, allocated, view->history->metadata, event, arena, libraries, count);
}

enum vram_status vr_report_libraries(const struct vr_view *view, const struct vr_lifetimes *allocated, struct vr_arena *arena,
                                     struct vram_report_device *out) {
    // In other recordings, the two columns have other meanings.
    if (!vr_is_whole_program(view)) return VRAM_OK;
    out->whole_program = true;
    VR_TRY(group_by(view, allocated, view->history->metadata, allocated->peak_event, arena, &out->libraries, &out->library_count));
    return group_by(view, allocated, view->history->tag, allocated->peak_event, arena, &out->kinds, &out->kind_count);
}

// First address of the events with which `run` records the bytes held by pools (guides/run.md).
#define POOLS UINT64_C(0x6800000000000000)

static uint64_t held_by_pools(const struct vr_history *history, int64_t event) {
    uint64_t held = 0;
    for (size_t i = 0; i < history->count && (int64_t)i <= event; i++) {
        if (history->address[i] < POOLS) continue;
        if (history->action[i] == VR_ACTION_SEGMENT_MAP)
            held += history->size_bytes[i];
        else if (history->action[i] == VR_ACTION_SEGMENT_UNMAP && history->size_bytes[i] <= held)
            held -= history->size_bytes[i];
    }
    return held;
}

uint64_t vr_driver_pools_free(const struct vr_view *view, const struct vr_lifetimes *allocated, int64_t event) {
    if (!vr_is_whole_program(view)) return 0;
    const uint64_t held = held_by_pools(view->history, event);
    uint64_t used = 0;
    for (size_t i = 0; i < allocated->count && held != 0; i++) {
        if (allocated->birth[i] == VR_BEFORE_TRACE || !vr_lifetimes_live_at(allocated, i, event)) continue;
        const bool of_pool = strcmp(vr_model_string(view->model, view->history->tag[allocated->birth[i]]), "async") == 0;
        if (of_pool) used += allocated->size_bytes[i];
    }
    return held > used ? held - used : 0;
}
