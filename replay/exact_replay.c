// exact_replay.c: replays one device's history event by event. See exact_replay.h and replay.md §what-is-compared.
#include <inttypes.h>
#include <stdio.h>

#include "replay/exact_replay.h"
#include "vram/sim.h"

enum { DEVICE = 0, OPEN_CLAIMS_MAX = 1024 };

// Each difference costs a search for the recorded place: beyond this many a replay tells nothing new.
#define DIFFERENCES_MAX 100000

// --- bookkeeping ------------------------------------------------------------------------------------------------------------
static void listen_exact(const struct vr_record *record, void *user) {
    struct vr_exact_records *heard = user;
    if (record->action < VR_RECORD_SEGMENT_ALLOC) return;
    if (vr_grow((void **)&heard->records, &heard->capacity, heard->count + 1, sizeof *heard->records) != VRAM_OK) {
        heard->failed = true;
        return;
    }
    heard->records[heard->count++] = *record;
}

// --- frees ------------------------------------------------------------------------------------------------------------------
static enum vram_status replay_free(struct vr_exact *exact, size_t event, bool request, bool complete) {
    const uint64_t address = exact->recorded->history->address[event];
    if (vr_map_get(&exact->lost, address) != 0) {
        if (complete) (void)vr_map_take(&exact->lost, address);
        return VRAM_OK;
    }
    enum vram_status status = request ? vr_drive_free_request(exact->stage.allocator, address) : VRAM_OK;
    if (status == VRAM_OK && complete) status = vr_drive_free_complete(exact->stage.allocator, address);
    if (status == VRAM_OK || vr_exact_is_fatal(status)) return status;
    const struct vram_difference difference = vr_exact_difference(exact, VRAM_DIFFERENT_FREE, event);
    return vr_exact_differ(exact, &difference);
}

// --- one event --------------------------------------------------------------------------------------------------------------
// Keeps the waits up to date, before the event is replayed. Segments do not end a wait: they belong to the allocation after it.
static void look_for_wait(struct vr_exact *exact, size_t event, enum vr_action action) {
    const uint64_t *addresses = exact->recorded->history->address;
    struct vr_waits *waits = &exact->waits;
    const bool paired = waits->last_request != SIZE_MAX && addresses[waits->last_request] == addresses[event];
    waits->last_request = action == VR_ACTION_FREE_REQUESTED ? event : SIZE_MAX;
    switch (action) {
    case VR_ACTION_FREE_COMPLETED:
        waits->waited = waits->waited || !paired;
        waits->completed = true;
        break;
    case VR_ACTION_SEGMENT_FREE:
    case VR_ACTION_SEGMENT_UNMAP: waits->released = true; break;
    case VR_ACTION_FREE_REQUESTED:
    case VR_ACTION_FREE: waits->waited = waits->completed = waits->released = false; break;
    default: break;
    }
}

static enum vram_status replay_event(struct vr_exact *exact, size_t event, size_t *next) {
    const enum vr_action action = exact->recorded->history->action[event];
    *next = event + 1;
    exact->heard.count = 0;
    if (action == VR_ACTION_UNKNOWN) exact->device->ignored_events++;
    if (vr_action_is_ignored(action)) return VRAM_OK;
    if (vr_recorded_device_leaves_out(exact->recorded, event)) return VRAM_OK;
    look_for_wait(exact, event, action);
    if (action == VR_ACTION_SEGMENT_ALLOC || action == VR_ACTION_SEGMENT_MAP) {
        if (exact->pending_count > OPEN_CLAIMS_MAX) VR_TRY(vr_exact_flush_pending(exact));
        return vr_exact_add_pending(exact, event);
    }
    if (action == VR_ACTION_ALLOC) return vr_exact_alloc(exact, event);
    if (vr_exact_is_asking(exact) && action != VR_ACTION_OOM) VR_TRY(vr_exact_flush_pending(exact));
    switch (action) {
    case VR_ACTION_FREE_REQUESTED: return replay_free(exact, event, true, false);
    case VR_ACTION_FREE_COMPLETED: return replay_free(exact, event, false, true);
    case VR_ACTION_FREE: return replay_free(exact, event, true, true);
    case VR_ACTION_OOM: return vr_exact_oom(exact, event);
    default: return vr_exact_release(exact, event, next);
    }
}

static enum vram_status replay_events(struct vr_exact *exact) {
    const size_t count = exact->recorded->history->count;
    for (size_t event = 0; event < count;) {
        size_t next = 0;
        VR_TRY(replay_event(exact, event, &next));
        if (exact->heard.failed) return VRAM_NO_HOST_MEMORY;
        if (exact->device->difference_count >= DIFFERENCES_MAX) {
            snprintf(exact->device->reason, sizeof exact->device->reason, "stopped at event %zu: too many differences", event);
            return VRAM_OK;
        }
        event = next;
    }
    return vr_exact_flush_pending(exact);
}

// --- one device -------------------------------------------------------------------------------------------------------------
static enum vram_exact_verdict verdict_of(const struct vram_exact_device *device) {
    if (device->difference_count > 0) return VRAM_EXACT_DIFFERENT;
    return device->events == 0 ? VRAM_EXACT_NO_HISTORY : VRAM_EXACT_EQUAL;
}

static void contradict(struct vram_exact_device *device, const char *reason) {
    device->verdict = VRAM_EXACT_CONTRADICTION;
    snprintf(device->reason, sizeof device->reason, "%s", reason);
}

// Builds the start state and runs. A start state that cannot be built is a verdict, not a failure.
static enum vram_status run_exact(struct vr_exact *exact, const struct vr_start *start, const struct vr_exact_rules *how,
                                  struct vram_error *error) {
    uint64_t memory = 0;
    VR_TRY(vr_stage_spacing(exact->recorded, start, &memory));
    const struct vr_stage_options stage = {
        .conf = how->conf, .memory_bytes = memory, .profile = VRAM_SIM_FREE, .high_addresses = true, .pytorch = how->pytorch};
    VR_TRY(vr_stage_open(&exact->stage, exact->recorded, &stage, error));
    VR_TRY(vram_sim_set_memory(exact->stage.driver, DEVICE, VR_STAGE_ENDLESS));
    struct vram_error detail = {0};
    const enum vram_status status = vr_stage_build(&exact->stage, exact->recorded, start, &detail);
    if (status == VRAM_MISMATCH) {
        contradict(exact->device, detail.message);
        return VRAM_OK;
    }
    VR_TRY(status);
    exact->reserve_bytes = memory;
    vr_allocator_set_recorder(exact->stage.allocator, listen_exact, &exact->heard);
    VR_TRY(replay_events(exact));
    vr_allocator_set_recorder(exact->stage.allocator, NULL, NULL);
    VR_TRY(vr_exact_picture(exact));
    exact->device->verdict = verdict_of(exact->device);
    return VRAM_OK;
}

// The start state, with what is known of its segments' ages.
static enum vram_status find_start(const struct vr_recorded_device *recorded, struct vr_start *start, struct vram_exact_device *device) {
    size_t inferred = 0;
    VR_TRY(vr_start_find(recorded, start));
    const enum vram_status status = vr_ages_apply(&recorded->hindsight->ages, start, &inferred);
    if (status != VRAM_OK) vr_start_release(start);
    device->device = recorded->device;
    device->events = recorded->history->count;
    device->start_blocks = start->block_count;
    device->start_sizes_unknown = start->sizes_unknown;
    device->start_sizes_from_neighbour = start->sizes_from_neighbour;
    device->start_ages_inferred = inferred;
    return status;
}

enum vram_status vr_exact_replay_once(const struct vr_recorded_device *recorded, const struct vr_exact_rules *how,
                                      struct vram_exact_device *device, struct vr_exact_lessons *lessons, struct vram_error *error) {
    struct vr_start start;
    VR_TRY(find_start(recorded, &start, device));
    struct vr_exact exact = {.recorded = recorded,
                             .options = how->options,
                             .start = &start,
                             .device = device,
                             .hindsight = recorded->hindsight,
                             .waits = {.last_request = SIZE_MAX, .searched = SIZE_MAX}};
    exact.freeable = calloc(recorded->pools.count, sizeof *exact.freeable);
    enum vram_status status = exact.freeable == NULL ? VRAM_NO_HOST_MEMORY : VRAM_OK;
    if (status == VRAM_OK && start.anomaly_total > 0) {
        char reason[sizeof device->reason];
        vr_start_describe(&start, reason, sizeof reason);
        contradict(device, reason);
    } else if (status == VRAM_OK) {
        status = run_exact(&exact, &start, how, error);
    }
    *lessons = (struct vr_exact_lessons){exact.memory_bound, exact.ties};
    vr_stage_close(&exact.stage);
    vr_start_release(&start);
    free(exact.heard.records);
    free(exact.pending);
    free(exact.freeable);
    vr_map_release(&exact.lost);
    vr_map_release(&exact.gone);
    return status;
}
