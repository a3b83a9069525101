// Replays one device's history event by event, and again if a first replay reveals something that was not recorded
// (replay.md §what-is-compared, replay.md §attempts).
#include "replay/exact_replay.h"

#include <inttypes.h>
#include <stdio.h>

#include "analyze/device_view.h"
#include "vram/sim.h"

// ---- One replay of a device's history. See exact_replay.h and replay.md §what-is-compared.

enum { DEVICE = 0, OPEN_CLAIMS_MAX = 1024 };

// Each difference costs a search for the recorded place; after this many, a replay shows nothing new.
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
// Updates the waits before the event is replayed. Segments do not end a wait, because they belong to the following allocation.
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

// Builds the initial state and runs. If it cannot be built, that is a verdict, not an error.
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

// Finds the initial state, and applies the known ages of its segments.
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

// Replays the history once from the initial state. If that cannot be built, that is a verdict, not an error.
static enum vram_status exact_replay_once(const struct vr_recorded_device *recorded, const struct vr_exact_rules *how,
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

// ---- Repeated replays: if the first one differs, it may reveal what was not recorded: ages, the device's memory, pools
// (replay.md §attempts).

// A device, and what replays have shown about it.
struct subject {
    struct vr_recorded_device recorded;
    const struct vr_exact_rules *how;
    struct vr_hindsight hindsight;
    struct vram_error *error;
};

void vr_exact_release_device(struct vram_exact_device *device) {
    free(device->differences);
    free(device->placements);
    *device = (struct vram_exact_device){0};
}

static bool is_better_attempt(const struct vram_exact_device *again, const struct vram_exact_device *device) {
    return again->verdict != VRAM_EXACT_CONTRADICTION &&
           (device->verdict == VRAM_EXACT_CONTRADICTION || again->difference_count < device->difference_count);
}

// Keeps the better result in *device.
static bool keep_better(struct vram_exact_device *device, struct vram_exact_device *again) {
    const bool better = is_better_attempt(again, device);
    vr_exact_release_device(better ? device : again);
    if (better) *device = *again;
    return better;
}

// --- hindsight ----------------------------------------------------------------------------------------------------------------------
// Replays; a replay that differs may reveal more about the initial state, so replays again while it does. Once a replay chooses a different
// one of several equal blocks, considers all such choices.
static enum vram_status replay_attempt(struct subject *subject, struct vram_exact_device *device, struct vr_exact_lessons *lessons) {
    enum { ROUNDS = 24, ROUNDS_IN_VAIN = 4 };
    struct vr_hindsight *hindsight = &subject->hindsight;
    bool more = true;
    for (int i = 0, vain = 0; i < ROUNDS && more && vain < ROUNDS_IN_VAIN && (i == 0 || !vr_exact_verdict_agrees(device->verdict)); i++) {
        const size_t before = hindsight->lessons;
        struct vram_exact_device again = {0};
        struct vr_exact_lessons now = {0};
        const enum vram_status status = exact_replay_once(&subject->recorded, subject->how, &again, &now, subject->error);
        if (status != VRAM_OK) {
            vr_exact_release_device(&again);
            return status;
        }
        if (i == 0) *device = again;
        const bool better = i == 0 || keep_better(device, &again);
        if (better) *lessons = now;
        vain = better ? 0 : vain + 1;
        const bool asks = !hindsight->asks_ages && now.ties && subject->how->pytorch >= VR_PYTORCH_OLDEST_FIRST;
        hindsight->asks_ages = hindsight->asks_ages || asks;
        more = asks || hindsight->lessons != before;
    }
    return VRAM_OK;
}

// --- unknown pools ------------------------------------------------------------------------------------------------------------------
// Replays again without the events that may be of any pool. This makes no other choice differ, because the best of all blocks is also the
// best of fewer. If the rest agrees, the unknown pools were the cause, and this is the result; otherwise keeps the first result.
static enum vram_status replay_known_pools(struct subject *subject, struct vram_exact_device *device) {
    struct vram_exact_device known = {0};
    struct vr_exact_lessons lessons;
    subject->recorded.leave_out = true;
    vr_hindsight_release(&subject->hindsight); // what was inferred with all pools may be wrong
    subject->hindsight = (struct vr_hindsight){0};
    const enum vram_status status = replay_attempt(subject, &known, &lessons);
    if (status != VRAM_OK || !vr_exact_verdict_agrees(known.verdict)) {
        vr_exact_release_device(&known);
        return status;
    }
    vr_exact_release_device(device);
    *device = known;
    device->verdict = VRAM_EXACT_PARTIAL;
    device->left_out_allocations = subject->recorded.pools.unknown_allocations;
    snprintf(
        device->reason, sizeof device->reason,
        "%" PRIu64 " events (%" PRIu64
        " allocations) were left out: they have no pool id, and their segments, which may have belonged to a private pool, no longer exist",
        subject->recorded.pools.unknown_events, subject->recorded.pools.unknown_allocations);
    return VRAM_OK;
}

// --- the device's memory -------------------------------------------------------------------------------------------------------------
// Returns the least memory that the device can have: the program's reserved bytes plus, at an out-of-memory event, the free bytes. Does not
// include memory of other processes.
static uint64_t capacity_of(const struct vr_recorded_device *recorded) {
    const struct vr_history *history = recorded->history;
    uint64_t held = 0, capacity = 0;
    for (size_t i = 0; i < recorded->segment_count; i++) held += recorded->model->segments.total_bytes[recorded->segments[i]];
    for (size_t event = history->count; event-- > 0;) {
        const bool tells = history->action[event] == VR_ACTION_OOM && (vr_entry_has(history, event) & VR_HAS_DEVICE_FREE);
        const uint64_t least = held + (tells ? history->address[event] : 0);
        if (least > capacity) capacity = least;
        held -= vr_reserved_delta(history, event);
    }
    return capacity;
}

// Replays again with the given device memory, which determines the length of reservations of expandable segments. Keeps the better result.
static enum vram_status replay_with_memory(struct subject *subject, uint64_t memory_bytes, struct vram_exact_device *device,
                                           uint64_t *memory_bound) {
    struct vram_exact_device again = {0};
    struct vr_exact_lessons lessons = {0};
    const uint64_t before = subject->recorded.capacity_bytes;
    subject->recorded.capacity_bytes = memory_bytes;
    const enum vram_status status = replay_attempt(subject, &again, &lessons);
    if (status != VRAM_OK)
        vr_exact_release_device(&again);
    else if (!keep_better(device, &again))
        subject->recorded.capacity_bytes = before;
    *memory_bound = lessons.memory_bound;
    return status;
}

// The device's memory is not recorded. Replays a history that differs with the least possible memory, and then with less and less, as long
// as the first difference shows that a reservation was too long (replay.md §the-room-at-the-end).
static enum vram_status replay_with_memories(struct subject *subject, uint64_t memory_bound, struct vram_exact_device *device) {
    enum { ATTEMPTS = 24 };
    const uint64_t capacity = capacity_of(&subject->recorded);
    uint64_t unused = 0;
    if (capacity != 0) VR_TRY(replay_with_memory(subject, capacity, device, &unused));
    for (int i = 0; i < ATTEMPTS && memory_bound != 0 && !vr_exact_verdict_agrees(device->verdict); i++) {
        const uint64_t memory_bytes = memory_bound;
        VR_TRY(replay_with_memory(subject, memory_bytes, device, &memory_bound));
        if (memory_bound >= memory_bytes) break;
    }
    return VRAM_OK;
}

enum vram_status vr_exact_replay_device(const struct vr_model *model, const struct vr_options *settings, uint32_t ordinal,
                                        const struct vr_exact_rules *how, struct vram_exact_device *device, struct vram_error *error) {
    struct subject subject = {.how = how, .error = error};
    struct vr_exact_lessons lessons = {0};
    VR_TRY(vr_recorded_device_init(&subject.recorded, model, settings, ordinal, error));
    subject.recorded.hindsight = &subject.hindsight;
    enum vram_status status = replay_attempt(&subject, device, &lessons);
    if (status == VRAM_OK && !vr_exact_verdict_agrees(device->verdict) && settings->expandable_segments) {
        status = replay_with_memories(&subject, lessons.memory_bound, device);
    }
    if (status == VRAM_OK && subject.recorded.pools.unknown_events > 0 && !vr_exact_verdict_agrees(device->verdict)) {
        status = replay_known_pools(&subject, device);
    }
    vr_hindsight_release(&subject.hindsight);
    vr_recorded_device_release(&subject.recorded);
    return status;
}
