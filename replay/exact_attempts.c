// exact_attempts.c: a device's history is replayed more than once where a first replay differs and tells what was not recorded: ages, the
// device's memory, pools (replay.md §attempts).
#include <inttypes.h>
#include <stdio.h>

#include "analyze/device_view.h"
#include "replay/exact_replay.h"

// A device, with what was learned of it.
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

// The better one of both stands in *device.
static bool keep_better(struct vram_exact_device *device, struct vram_exact_device *again) {
    const bool better = is_better_attempt(again, device);
    vr_exact_release_device(better ? device : again);
    if (better) *device = *again;
    return better;
}

// --- hindsight ----------------------------------------------------------------------------------------------------------------------
// A replay that differs may tell more of the state that the history began with; then it is made once more, and again while that tells
// more. Once another one of several equal blocks was taken than here, all such choices are looked at.
static enum vram_status replay_attempt(struct subject *subject, struct vram_exact_device *device, struct vr_exact_lessons *lessons) {
    enum { ROUNDS = 24, ROUNDS_IN_VAIN = 4 };
    struct vr_hindsight *hindsight = &subject->hindsight;
    bool more = true;
    for (int i = 0, vain = 0; i < ROUNDS && more && vain < ROUNDS_IN_VAIN && (i == 0 || !vr_exact_verdict_agrees(device->verdict)); i++) {
        const size_t before = hindsight->lessons;
        struct vram_exact_device again = {0};
        struct vr_exact_lessons now = {0};
        const enum vram_status status = vr_exact_replay_once(&subject->recorded, subject->how, &again, &now, subject->error);
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
// Once more, without what may be of any pool. That makes no other choice differ: the best of all blocks is also the best of fewer. If
// the rest agrees, the unknown pools were the cause, and this is the result; otherwise the first one stands.
static enum vram_status replay_known_pools(struct subject *subject, struct vram_exact_device *device) {
    struct vram_exact_device known = {0};
    struct vr_exact_lessons lessons;
    subject->recorded.leave_out = true;
    vr_hindsight_release(&subject->hindsight); // what was told with all of them may be wrong
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
    snprintf(device->reason, sizeof device->reason,
             "%" PRIu64 " events (%" PRIu64 " allocations) were left out: they have no pool id, and the segments they were in, which a "
             "private pool may have had, are gone",
             subject->recorded.pools.unknown_events, subject->recorded.pools.unknown_allocations);
    return VRAM_OK;
}

// --- the device's memory -------------------------------------------------------------------------------------------------------------
// The least memory that the device has: what the program held and, at an out-of-memory event, what was free. What others held is not in it.
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

// Once more with this device's memory, which what expandable segments reserve is measured by; the better replay stands.
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

// The device's memory is not recorded. A history that differs is replayed once more with no more than it shows, and then with less and
// less, as far as a first difference tells that a reservation was too long (replay.md §the-room-at-the-end).
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
