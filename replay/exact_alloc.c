// exact_alloc.c: replays one allocation of a recorded history (replay.md §segments-and-allocations).
#include "config/size_rules.h"
#include "replay/exact_replay.h"
#include "vram/sim.h"

enum { DEVICE = 0 };

static uint64_t address_of(const struct vr_exact *exact, size_t event) { return exact->recorded->history->address[event]; }
static uint64_t event_size(const struct vr_exact *exact, size_t event) { return exact->recorded->history->size_bytes[event]; }
// Returns the replay's stream for the event's.
static uint64_t stream_of(struct vr_exact *exact, size_t event) {
    return vr_stage_stream(&exact->stage, vr_entry_stream(exact->recorded->history, event));
}

static enum vram_status note_placement(struct vr_exact *exact, size_t event, uint64_t address) {
    struct vram_exact_device *device = exact->device;
    device->allocations++;
    if (vr_recorded_device_pool(exact->recorded, event) != 0) device->private_allocations++;
    if (address == address_of(exact, event)) device->at_recorded_address++;
    if (!exact->options->keep_placements) return VRAM_OK;
    VR_TRY(vr_grow((void **)&device->placements, &exact->placement_capacity, device->placement_count + 1, sizeof *device->placements));
    device->placements[device->placement_count++] = (struct vram_placement){event, address};
    return VRAM_OK;
}

// --- after a difference -------------------------------------------------------------------------------------------------------
// Creates the recorded segment or range as free memory, whatever the allocator's state. A failure is part of the difference that was
// already counted.
static enum vram_status make_recorded(struct vr_exact *exact, size_t event) {
    const uint64_t address = address_of(exact, event), size = event_size(exact, event), stream = stream_of(exact, event);
    const bool small = size == 2 * VR_MIB;
    uint64_t made = 0;
    if (size == 0 || (address | size) % VR_MIN_BLOCK != 0) return VRAM_INVALID_ARGUMENT;
    VR_TRY(vr_exact_enter(exact, event));
    if (exact->recorded->history->action[event] == VR_ACTION_SEGMENT_ALLOC) {
        VR_TRY(vram_sim_queue_address(exact->stage.driver, address));
        return vr_drive_add_segment(exact->stage.allocator, DEVICE, stream, small, size, &made);
    }
    if (vr_drive_map(exact->stage.allocator, address, size) == VRAM_OK) return VRAM_OK;
    VR_TRY(vram_sim_queue_reservation(exact->stage.driver, address));
    const uint64_t reserve = size > exact->reserve_bytes ? size : exact->reserve_bytes;
    VR_TRY(vr_drive_add_expandable(exact->stage.allocator, DEVICE, stream, small, reserve, &made));
    return vr_drive_map(exact->stage.allocator, address, size);
}

enum vram_status vr_exact_add_pending(struct vr_exact *exact, size_t event) {
    VR_TRY(vr_grow((void **)&exact->pending, &exact->pending_capacity, exact->pending_count + 1, sizeof *exact->pending));
    exact->pending[exact->pending_count++] = (uint32_t)event;
    exact->device->segment_events++;
    return VRAM_OK;
}

enum vram_status vr_exact_flush_pending(struct vr_exact *exact) {
    enum vram_status status = VRAM_OK;
    for (size_t i = 0; i < exact->pending_count && !vr_exact_is_fatal(status); i++) {
        status = make_recorded(exact, exact->pending[i]);
        if (status == VRAM_OK) {
            exact->device->segment_events_agreeing++;
        } else if (!vr_exact_is_fatal(status)) {
            const struct vram_difference difference = vr_exact_difference(exact, VRAM_DIFFERENT_SEGMENT, exact->pending[i]);
            status = vr_exact_differ(exact, &difference);
        }
    }
    exact->pending_count = 0;
    if (vr_exact_is_fatal(status)) return status;
    return vram_sim_clear_queues(exact->stage.driver);
}

// Creates the segments of a difference without counting them as agreeing.
static enum vram_status make_pending(struct vr_exact *exact) {
    enum vram_status status = VRAM_OK;
    for (size_t i = 0; i < exact->pending_count && !vr_exact_is_fatal(status); i++) status = make_recorded(exact, exact->pending[i]);
    exact->pending_count = 0;
    if (vr_exact_is_fatal(status)) return status;
    return vram_sim_clear_queues(exact->stage.driver);
}

// Puts the block at its recorded address, so that later events are judged independently.
static enum vram_status put_at_recorded(struct vr_exact *exact, size_t event) {
    const uint64_t address = address_of(exact, event), size = event_size(exact, event);
    const uint64_t rounded = vr_start_round(exact->recorded->options, size);
    VR_TRY(vr_exact_enter(exact, event));
    enum vram_status status = vram_malloc_at(exact->stage.allocator, DEVICE, size, stream_of(exact, event), address);
    if (status == VRAM_OK || vr_exact_is_fatal(status)) return status;
    status = vr_drive_malloc_at(exact->stage.allocator, DEVICE, stream_of(exact, event), rounded <= VR_MIB, address, rounded, size);
    if (status == VRAM_OK || vr_exact_is_fatal(status)) return status;
    return vr_map_set(&exact->lost, address, 1);
}

static enum vram_status misplaced(struct vr_exact *exact, size_t event, enum vram_difference_kind kind, uint64_t ours) {
    struct vram_difference difference = vr_exact_difference(exact, kind, event);
    difference.our_address = ours;
    VR_TRY(vr_exact_differ(exact, &difference));
    VR_TRY(note_placement(exact, event, ours));
    VR_TRY(make_pending(exact));
    return put_at_recorded(exact, event);
}

// --- hiding cached blocks ----------------------------------------------------------------------------------------------------
enum vram_status vr_exact_hide(struct vr_exact *exact, size_t event, struct vr_exact_hiders *hiders) {
    struct vram_allocator *allocator = exact->stage.allocator;
    for (hiders->count = 0; hiders->count < VR_EXACT_HIDERS; hiders->count++) {
        uint64_t found = 0;
        VR_TRY(vr_drive_peek(allocator, DEVICE, vr_exact_request(exact, event), stream_of(exact, event), &found));
        if (found == 0) break;
        VR_TRY(vram_malloc(allocator, DEVICE, vr_exact_request(exact, event), stream_of(exact, event), &hiders->addresses[hiders->count]));
    }
    return VRAM_OK;
}

// Frees in reverse order, so that every split is undone.
enum vram_status vr_exact_unhide(struct vr_exact *exact, struct vr_exact_hiders *hiders) {
    enum vram_status status = VRAM_OK;
    while (hiders->count > 0 && status == VRAM_OK) {
        const uint64_t address = hiders->addresses[--hiders->count];
        status = vr_drive_free_request(exact->stage.allocator, address);
        if (status == VRAM_OK) status = vr_drive_free_complete(exact->stage.allocator, address);
    }
    return status;
}

// The pending segment events that belong to one allocation.
struct exact_claim {
    size_t first;
    size_t count;
};

// --- what the first difference shows about the device's memory -------------------------------------------------------------------------
// Records that the reservation at `base` is at most `longest` bytes long. The beginning of a reservation of the initial state is uncertain,
// so this bounds only its own end; any other reservation bounds the length of all, which depends on the memory. Does this only before the
// first difference, because afterwards nothing is certain.
static enum vram_status bound_length(struct vr_exact *exact, uint64_t base, bool small, uint64_t longest) {
    const struct vr_options *options = exact->recorded->options;
    const double fraction = options->expandable_reserve.fraction > 0 ? options->expandable_reserve.fraction : 1.125;
    if (exact->device->difference_count != 0) return VRAM_OK;
    if (vr_map_get(&exact->stage.began_with, base) != 0) return vr_hindsight_end(exact->hindsight, base, base + longest);
    if (options->expandable_reserve.bytes != 0) return VRAM_OK;
    exact->memory_bound = (uint64_t)((double)vr_round_down(longest, vr_recorded_device_page(options, small)) / fraction);
    return VRAM_OK;
}

// Applies when this allocator found room in a reservation and the recorded program made another one.
static enum vram_status bound_by_room(struct vr_exact *exact, size_t event, uint64_t address, struct exact_claim claim) {
    const uint64_t rounded = vr_start_round(exact->recorded->options, event_size(exact, event));
    struct vram_block_info found;
    if (vram_get_block_info(exact->stage.allocator, address, &found) != VRAM_OK || !found.expandable) return VRAM_OK;
    if (found.segment_address == address_of(exact, exact->pending[claim.first])) return VRAM_OK; // this allocator made it, too
    return bound_length(exact, found.segment_address, vr_is_small(rounded), found.address - found.segment_address + rounded - 1);
}

// Two free blocks of expandable segments: this allocator's choice, and the recorded one.
struct rivals {
    uint64_t ours;
    uint64_t theirs;
    uint64_t our_segment;
    uint64_t their_segment;
    uint64_t our_end; // address of the block after `ours`; 0: `ours` is the last of its reservation
    bool last;        // `theirs` is the last of its reservation
    bool small;
};

static bool look_at_rivals(const struct vram_block_view *view, void *user) {
    struct rivals *rivals = user;
    const uint64_t address = view->block.address, segment = view->block.expandable ? view->block.segment_address : 0;
    if (segment != 0 && segment == rivals->our_segment && rivals->our_end == 0) rivals->our_end = address;
    if (segment != 0 && segment == rivals->their_segment) rivals->last = false;
    if (address == rivals->ours) rivals->our_segment = segment;
    if (address == rivals->theirs) {
        rivals->their_segment = segment;
        rivals->last = true;
        rivals->small = view->small_pool;
    }
    return true;
}

// Bounds the length of the reservation that the recorded program chose. The allocator prefers the free block with less room to grow
// (allocator.md §expandable-segments). So `theirs`, at the end of its reservation, has no more room than `ours` has before the next mapped
// page.
static enum vram_status bound_by_choice(struct vr_exact *exact, size_t event, uint64_t found) {
    struct rivals rivals = {.ours = found, .theirs = address_of(exact, event)};
    if (exact->device->difference_count != 0) return VRAM_OK; // vram_walk() below visits all blocks
    if (vram_walk(exact->stage.allocator, DEVICE, look_at_rivals, &rivals) != VRAM_OK) return VRAM_OK;
    if (rivals.their_segment == 0 || rivals.our_end == 0 || !rivals.last) return VRAM_OK;
    return bound_length(exact, rivals.their_segment, rivals.small, rivals.our_end - found + rivals.theirs - rivals.their_segment);
}

// --- the two sources of an allocation --------------------------------------------------------------------------------------------
// Replays an allocation that this allocator serves by a cached block.
static enum vram_status from_cache(struct vr_exact *exact, size_t event, uint64_t found) {
    if (vr_exact_is_asking(exact)) {
        // The recorded program asked the driver, so the recorded address belongs to another block even if the two addresses are equal.
        return misplaced(exact, event, VRAM_DIFFERENT_CACHE_HIT, found == address_of(exact, event) ? 0 : found);
    }
    VR_TRY(vr_exact_learn_choice(exact, event));
    if (found != address_of(exact, event)) {
        VR_TRY(vr_exact_look_for_tie(exact, event));
        VR_TRY(bound_by_choice(exact, event, found));
        return misplaced(exact, event, VRAM_DIFFERENT_ADDRESS, found);
    }
    uint64_t address = 0;
    VR_TRY(vram_malloc(exact->stage.allocator, DEVICE, event_size(exact, event), stream_of(exact, event), &address));
    return note_placement(exact, event, address);
}

// Returns all pending segment events, unless the lock was released around cudaMalloc: then the oldest one of the event's stream and pool at
// its address. Pages are always mapped under the lock, so those of the allocation came last.
static struct exact_claim claim_pending(struct vr_exact *exact, size_t event) {
    if (!exact->recorded->options->release_lock_on_malloc) return (struct exact_claim){0, exact->pending_count};
    size_t first = exact->pending_count;
    while (first > 0 && vr_exact_is_map(exact, exact->pending[first - 1])) first--;
    if (first < exact->pending_count) return (struct exact_claim){first, exact->pending_count - first};
    for (size_t i = 0; i < exact->pending_count; i++) {
        const uint32_t candidate = exact->pending[i];
        const uint64_t start = address_of(exact, candidate);
        if (stream_of(exact, candidate) != stream_of(exact, event) || address_of(exact, event) != start) continue;
        if (vr_recorded_device_pool(exact->recorded, candidate) != vr_recorded_device_pool(exact->recorded, event)) continue;
        return (struct exact_claim){i, 1};
    }
    return (struct exact_claim){0, 0};
}

static bool record_agrees(struct vr_exact *exact, const struct vr_record *record, size_t event) {
    const struct vr_history *history = exact->recorded->history;
    const enum vr_record_action wanted =
        history->action[event] == VR_ACTION_SEGMENT_ALLOC ? VR_RECORD_SEGMENT_ALLOC : VR_RECORD_SEGMENT_MAP;
    return record->action == wanted && record->address == history->address[event] && record->size_bytes == history->size_bytes[event] &&
           record->stream == stream_of(exact, event);
}

static const struct vr_record *next_segment_record(const struct vr_exact *exact, size_t *at) {
    while (*at < exact->heard.count) {
        const struct vr_record *record = &exact->heard.records[(*at)++];
        if (record->action == VR_RECORD_SEGMENT_ALLOC || record->action == VR_RECORD_SEGMENT_MAP) return record;
    }
    return NULL;
}

// Compares the allocator's requests to the driver with the claimed segment events, in order.
static enum vram_status compare_segments(struct vr_exact *exact, size_t event, struct exact_claim claim) {
    const uint32_t *claimed = exact->pending + claim.first;
    size_t at = 0;
    for (size_t i = 0;; i++) {
        const struct vr_record *record = next_segment_record(exact, &at);
        if (record == NULL && i >= claim.count) return VRAM_OK;
        if (record != NULL && i < claim.count && record_agrees(exact, record, claimed[i])) {
            exact->device->segment_events_agreeing++;
            continue;
        }
        struct vram_difference difference = vr_exact_difference(exact, VRAM_DIFFERENT_SEGMENT, i < claim.count ? claimed[i] : event);
        if (record != NULL) {
            difference.our_address = record->address;
            difference.our_size_bytes = record->size_bytes;
        }
        VR_TRY(vr_exact_differ(exact, &difference));
    }
}

static void drop_claimed(struct vr_exact *exact, struct exact_claim claim) {
    uint32_t *claimed = exact->pending + claim.first;
    exact->pending_count -= claim.count;
    memmove(claimed, claimed + claim.count, (exact->pending_count - claim.first) * sizeof *claimed);
}

static enum vram_status queue_addresses(struct vr_exact *exact, struct exact_claim claim) {
    const struct vr_history *history = exact->recorded->history;
    const uint32_t *claimed = exact->pending + claim.first;
    struct vram_driver *driver = exact->stage.driver;
    for (size_t i = 0; i < claim.count; i++) {
        const uint32_t event = claimed[i];
        if (history->action[event] == VR_ACTION_SEGMENT_ALLOC) VR_TRY(vram_sim_queue_address(driver, address_of(exact, event)));
    }
    // A new reservation is mapped at its base first.
    if (vr_exact_is_map(exact, claimed[0])) VR_TRY(vram_sim_queue_reservation(driver, address_of(exact, claimed[0])));
    return VRAM_OK;
}

// Undoes an allocation that went wrong, with the segments that it made. Ignores statuses: leftovers only cost later agreement.
static void take_back(struct vr_exact *exact, uint64_t address) {
    struct vram_allocator *allocator = exact->stage.allocator;
    if (address == 0 || vr_drive_free_request(allocator, address) != VRAM_OK) return;
    if (vr_drive_free_complete(allocator, address) != VRAM_OK) return;
    const size_t count = exact->heard.count;
    for (size_t i = 0; i < count; i++) {
        const struct vr_record record = exact->heard.records[i];
        if (record.action == VR_RECORD_SEGMENT_ALLOC) (void)!vr_drive_release(allocator, record.address);
    }
}

// Allocates for an event without searching the cache.
static enum vram_status malloc_past_cache(struct vr_exact *exact, size_t event, uint64_t *address) {
    return vr_drive_malloc_past_cache(exact->stage.allocator, DEVICE, event_size(exact, event), stream_of(exact, event), address);
}

// Replays an allocation for which no cached block fits although the recorded program did not ask the driver: with max_split_size_mb, an
// expandable segment grows into its own free memory, which the cache refuses.
static enum vram_status from_mapped(struct vr_exact *exact, size_t event) {
    uint64_t address = 0;
    VR_TRY(vr_drive_peek_mapped(exact->stage.allocator, DEVICE, event_size(exact, event), stream_of(exact, event), &address));
    if (address == 0) return misplaced(exact, event, VRAM_DIFFERENT_CACHE_MISS, 0);
    if (address != address_of(exact, event)) return misplaced(exact, event, VRAM_DIFFERENT_ADDRESS, address);
    VR_TRY(malloc_past_cache(exact, event, &address));
    return note_placement(exact, event, address);
}

// Replays an allocation by the driver, which returns the recorded addresses: no cached block fits, or only one that became free after the
// request's search, during a wait for other streams or by unmapping pages.
static enum vram_status from_driver(struct vr_exact *exact, size_t event, bool searched) {
    const struct exact_claim claim = claim_pending(exact, event);
    if (claim.count == 0) return from_mapped(exact, event);
    uint64_t address = 0;
    enum vram_status status = queue_addresses(exact, claim);
    if (status == VRAM_OK) {
        status = searched ? malloc_past_cache(exact, event, &address)
                          : vram_malloc(exact->stage.allocator, DEVICE, event_size(exact, event), stream_of(exact, event), &address);
    }
    VR_TRY(vram_sim_clear_queues(exact->stage.driver));
    if (vr_exact_is_fatal(status)) return status;
    if (status == VRAM_OK && address != address_of(exact, event)) VR_TRY(bound_by_room(exact, event, address, claim));
    VR_TRY(compare_segments(exact, event, claim));
    if (status == VRAM_OK && address == address_of(exact, event)) {
        drop_claimed(exact, claim);
        return note_placement(exact, event, address);
    }
    take_back(exact, address);
    return misplaced(exact, event, VRAM_DIFFERENT_ADDRESS, address);
}

enum vram_status vr_exact_alloc(struct vr_exact *exact, size_t event) {
    uint64_t found = 0;
    VR_TRY(vr_exact_enter(exact, event));
    const enum vram_status status =
        vr_drive_peek(exact->stage.allocator, DEVICE, event_size(exact, event), stream_of(exact, event), &found);
    if (vr_exact_is_fatal(status)) return status;
    const bool asking = exact->pending_count > 0;
    const bool searched = exact->waits.searched == event
                              ? asking || found != address_of(exact, event)
                              : asking && (exact->waits.waited || (exact->waits.completed && exact->waits.released));
    exact->waits = (struct vr_waits){.last_request = SIZE_MAX, .searched = SIZE_MAX};
    if (status != VRAM_OK) return misplaced(exact, event, VRAM_DIFFERENT_ADDRESS, 0);
    if (found != 0 && !searched) return from_cache(exact, event, found);
    return from_driver(exact, event, found != 0 || (searched && exact->recorded->options->reclaim_streams));
}
