// exact_replay.c: replays one device's history event by event; the public entry. See exact_replay.h and replay.md §what-is-compared.
#include <inttypes.h>
#include <stdio.h>

#include "model/recording.h"
#include "analyze/view.h"
#include "config/recorded_options.h"
#include "config/values.h"
#include "replay/exact_replay.h"
#include "replay/recorded_rules.h"

enum { DEVICE = 0, OPEN_CLAIMS_MAX = 1024 };

// Each difference costs a search for the recorded place: beyond this many a replay tells nothing new.
#define DIFFERENCES_MAX 100000

// --- bookkeeping ------------------------------------------------------------------------------------------------------------
static void listen(const struct vr_record *record, void *user) {
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

// What a replay goes by.
struct in_force {
    const struct vram_exact_options *options;
    const char *conf;
    uint32_t pytorch; // whose rules, where conf names none
};

// Builds the start state and runs. A start state that cannot be built is a verdict, not a failure.
static enum vram_status run(struct vr_exact *exact, const struct vr_start *start, const struct in_force *how, struct vram_error *error) {
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
    vr_allocator_set_recorder(exact->stage.allocator, listen, &exact->heard);
    VR_TRY(replay_events(exact));
    vr_allocator_set_recorder(exact->stage.allocator, NULL, NULL);
    VR_TRY(vr_exact_picture(exact));
    exact->device->verdict = verdict_of(exact->device);
    return VRAM_OK;
}

// *memory_bound becomes vr_exact.memory_bound; NULL where nobody asks.
static enum vram_status replay_subject(const struct vr_recorded_device *recorded, const struct in_force *how,
                                       struct vram_exact_device *device, uint64_t *memory_bound, struct vram_error *error) {
    struct vr_start start;
    VR_TRY(vr_start_find(recorded, &start));
    struct vr_exact exact = {
        .recorded = recorded, .options = how->options, .device = device, .waits = {.last_request = SIZE_MAX, .searched = SIZE_MAX}};
    exact.freeable = calloc(recorded->pools.count, sizeof *exact.freeable);
    if (exact.freeable == NULL) {
        vr_start_release(&start);
        return VRAM_NO_HOST_MEMORY;
    }
    device->device = recorded->device;
    device->events = recorded->history->count;
    device->start_blocks = start.block_count;
    device->start_sizes_unknown = start.sizes_unknown;
    device->start_sizes_from_neighbour = start.sizes_from_neighbour;
    enum vram_status status = VRAM_OK;
    if (start.anomaly_total > 0) {
        char reason[sizeof device->reason];
        vr_start_describe(&start, reason, sizeof reason);
        contradict(device, reason);
    } else {
        status = run(&exact, &start, how, error);
    }
    if (memory_bound != NULL) *memory_bound = exact.memory_bound;
    vr_stage_close(&exact.stage);
    vr_start_release(&start);
    free(exact.heard.records);
    free(exact.pending);
    free(exact.freeable);
    vr_map_release(&exact.lost);
    return status;
}

static void release_device(struct vram_exact_device *device) {
    free(device->differences);
    free(device->placements);
    *device = (struct vram_exact_device){0};
}

static bool agrees(enum vram_exact_verdict verdict) { return verdict == VRAM_EXACT_EQUAL || verdict == VRAM_EXACT_NO_HISTORY; }

// Once more, without what may be of any pool. That makes no other choice differ: the best of all blocks is also the best of fewer. If
// the rest agrees, the unknown pools were the cause, and this is the result; otherwise the first one stands.
static enum vram_status replay_known_pools(struct vr_recorded_device *recorded, const struct in_force *how,
                                           struct vram_exact_device *device, struct vram_error *error) {
    struct vram_exact_device known = {0};
    recorded->leave_out = true;
    const enum vram_status status = replay_subject(recorded, how, &known, NULL, error);
    if (status != VRAM_OK || !agrees(known.verdict)) {
        release_device(&known);
        return status;
    }
    release_device(device);
    *device = known;
    device->verdict = VRAM_EXACT_PARTIAL;
    device->left_out_allocations = recorded->pools.unknown_allocations;
    snprintf(device->reason, sizeof device->reason,
             "%" PRIu64 " events (%" PRIu64 " allocations) were left out: they have no pool id, and the segments they were in, which a "
             "private pool may have had, are gone",
             recorded->pools.unknown_events, recorded->pools.unknown_allocations);
    return VRAM_OK;
}

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
static enum vram_status replay_with_memory(struct vr_recorded_device *recorded, const struct in_force *how, uint64_t memory_bytes,
                                           struct vram_exact_device *device, uint64_t *memory_bound, struct vram_error *error) {
    struct vram_exact_device again = {0};
    const uint64_t before = recorded->capacity_bytes;
    recorded->capacity_bytes = memory_bytes;
    const enum vram_status status = replay_subject(recorded, how, &again, memory_bound, error);
    const bool better = status == VRAM_OK && again.verdict != VRAM_EXACT_CONTRADICTION &&
                        (device->verdict == VRAM_EXACT_CONTRADICTION || again.difference_count < device->difference_count);
    if (!better) recorded->capacity_bytes = before;
    release_device(better ? device : &again);
    if (better) *device = again;
    return status;
}

// The device's memory is not recorded. A history that differs is replayed once more with no more than it shows, and then with less and
// less, as far as a first difference tells that a reservation was too long (replay.md §the-room-at-the-end).
static enum vram_status replay_with_memories(struct vr_recorded_device *recorded, const struct in_force *how, uint64_t memory_bound,
                                             struct vram_exact_device *device, struct vram_error *error) {
    enum { ATTEMPTS = 24 };
    const uint64_t capacity = capacity_of(recorded);
    if (capacity != 0) VR_TRY(replay_with_memory(recorded, how, capacity, device, NULL, error));
    for (int i = 0; i < ATTEMPTS && memory_bound != 0 && !agrees(device->verdict); i++) {
        const uint64_t memory_bytes = memory_bound;
        VR_TRY(replay_with_memory(recorded, how, memory_bytes, device, &memory_bound, error));
        if (memory_bound >= memory_bytes) break;
    }
    return VRAM_OK;
}

static enum vram_status replay_device(const struct vr_model *model, const struct vr_options *settings, uint32_t ordinal,
                                      const struct in_force *how, struct vram_exact_device *device, struct vram_error *error) {
    struct vr_recorded_device recorded;
    uint64_t memory_bound = 0;
    VR_TRY(vr_recorded_device_init(&recorded, model, settings, ordinal, error));
    enum vram_status status = replay_subject(&recorded, how, device, &memory_bound, error);
    if (status == VRAM_OK && !agrees(device->verdict) && settings->expandable_segments) {
        status = replay_with_memories(&recorded, how, memory_bound, device, error);
    }
    if (status == VRAM_OK && recorded.pools.unknown_events > 0 && !agrees(device->verdict)) {
        status = replay_known_pools(&recorded, how, device, error);
    }
    vr_recorded_device_release(&recorded);
    return status;
}

// --- the whole recording ------------------------------------------------------------------------------------------------------
static enum vram_status replay_all(const struct vr_model *model, const struct in_force *how, struct vram_exact_result *result,
                                   struct vram_error *error) {
    struct vr_options settings;
    vr_options_init(&settings);
    VR_TRY(vr_options_parse(&settings, how->conf, error));
    uint32_t *devices = NULL;
    size_t count = 0;
    VR_TRY(vr_recorded_device_devices(model, &devices, &count));
    enum vram_status status = VRAM_OK;
    result->devices = calloc(count + 1, sizeof *result->devices);
    if (result->devices == NULL) status = VRAM_NO_HOST_MEMORY;
    result->agrees = true;
    for (size_t i = 0; i < count && status == VRAM_OK; i++) {
        result->device_count = i + 1;
        status = replay_device(model, &settings, devices[i], how, &result->devices[i], error);
        result->agrees = result->agrees && agrees(result->devices[i].verdict);
    }
    free(devices);
    return status;
}

static void release_devices(struct vram_exact_result *result) {
    for (size_t i = 0; i < result->device_count; i++) release_device(&result->devices[i]);
    free(result->devices);
    result->devices = NULL;
    result->device_count = 0;
}

static uint64_t differences_of(const struct vram_exact_result *result) {
    uint64_t sum = 0;
    for (size_t i = 0; i < result->device_count; i++) {
        sum += result->devices[i].difference_count + (result->devices[i].verdict == VRAM_EXACT_CONTRADICTION ? DIFFERENCES_MAX : 0);
    }
    return sum;
}

static void note_rules(struct vram_exact_result *result, uint32_t pytorch, enum vram_rules_source source) {
    snprintf(result->pytorch, sizeof result->pytorch, "%u.%u", pytorch / 100 % 100, pytorch % 100);
    result->pytorch_by = source;
}

// Once more, with other rules or settings: what has fewer differences stays in *result.
static enum vram_status replay_otherwise(const struct vr_model *model, const struct in_force *how, struct vram_exact_result *result,
                                         bool *better, struct vram_error *error) {
    struct vram_exact_result other = {.devices = NULL};
    const enum vram_status status = replay_all(model, how, &other, error);
    *better = status == VRAM_OK && differences_of(&other) < differences_of(result);
    if (*better) {
        const struct vram_exact_result first = *result;
        result->devices = other.devices;
        result->device_count = other.device_count;
        result->agrees = other.agrees;
        other = first;
    }
    release_devices(&other);
    return status;
}

// Whose rules the recorded program followed: those that its keys tell, or, where its events differ from them, those that they differ from
// less.
static enum vram_status replay_by_rules(const struct vr_model *model, const struct vram_exact_options *options,
                                        struct vram_exact_result *result, struct vram_error *error) {
    const struct vr_recorded_rules rules = vr_recorded_rules(model);
    const uint32_t named = vr_conf_rules(result->conf);
    struct in_force how = {options, result->conf, named != 0 ? named : rules.likely};
    note_rules(result, how.pytorch, named != 0 ? VRAM_RULES_BY_CONF : VRAM_RULES_BY_KEYS);
    VR_TRY(replay_all(model, &how, result, error));
    if (named != 0 || result->agrees) return VRAM_OK;
    for (size_t i = 0; i < VR_COUNT_OF(rules.others) && rules.others[i] != 0 && !result->agrees; i++) {
        how.pytorch = rules.others[i];
        bool better = false;
        VR_TRY(replay_otherwise(model, &how, result, &better, error));
        if (better) note_rules(result, rules.others[i], VRAM_RULES_BY_EVENTS);
    }
    return VRAM_OK;
}

// Where no live block tells whether requests were padded, the events may: if with the padding all of them agree.
static enum vram_status replay_padded(const struct vr_model *model, const struct vram_exact_options *options,
                                      struct vram_exact_result *result, struct vram_error *error) {
    struct vr_options settings;
    uint32_t padding_bytes = 0;
    vr_options_init(&settings);
    if (result->agrees || !result->recorded_conf || vr_options_parse(&settings, result->conf, NULL) != VRAM_OK) return VRAM_OK;
    if (!vr_recorded_may_pad(model, &settings, &padding_bytes)) return VRAM_OK;
    struct vr_text conf = {0};
    struct vram_exact_result padded = {.recorded_conf = true, .inferred_conf = result->inferred_conf};
    settings.request_padding_bytes = padding_bytes;
    vr_options_print_places(&settings, &conf);
    enum vram_status status = vr_text_copy(&conf, &padded.conf);
    if (status == VRAM_OK) status = replay_by_rules(model, options, &padded, error);
    if (status == VRAM_OK && padded.agrees) {
        const struct vram_exact_result first = *result;
        *result = padded;
        padded = first;
    }
    release_devices(&padded);
    free(padded.conf);
    vr_text_release(&conf);
    return status;
}

static enum vram_status choose_conf(const struct vr_model *model, const struct vram_exact_options *options,
                                    struct vram_exact_result *result) {
    struct vr_text recorded = {0}, conf = {0};
    const bool inferred = vr_recorded_conf(model, &recorded);
    result->recorded_conf = vr_choose_conf(vr_text_string(&recorded), options->conf, &conf);
    result->inferred_conf = result->recorded_conf && inferred;
    enum vram_status status = vr_text_status(&recorded);
    if (status == VRAM_OK) status = vr_text_copy(&conf, &result->conf);
    vr_text_release(&recorded);
    vr_text_release(&conf);
    return status;
}

enum vram_status vram_replay_exact(const struct vram_recording *recording, const struct vram_exact_options *options,
                                   struct vram_exact_result **result, struct vram_error *error) {
    VR_REQUIRE_OR_FAIL(error, recording && result);
    static const struct vram_exact_options defaults = {0};
    const struct vr_model *model = vr_recording_model(recording);
    if (options == NULL) options = &defaults;
    struct vram_exact_result *made = calloc(1, sizeof *made);
    enum vram_status status = made == NULL ? VRAM_NO_HOST_MEMORY : choose_conf(model, options, made);
    if (status == VRAM_OK) status = replay_by_rules(model, options, made, error);
    if (status == VRAM_OK) status = replay_padded(model, options, made, error);
    if (status != VRAM_OK) {
        vram_exact_result_destroy(made);
        return status == VRAM_NO_HOST_MEMORY ? vr_fail(error, status, VRAM_NO_OFFSET, "no host memory for the replay") : status;
    }
    *result = made;
    return VRAM_OK;
}

void vram_exact_result_destroy(struct vram_exact_result *result) {
    if (result == NULL) return;
    release_devices(result);
    free(result->conf);
    free(result);
}
