// exact_replay.h: the state of one device's exact replay, shared by its files.
#ifndef VR_REPLAY_EXACT_REPLAY_H
#define VR_REPLAY_EXACT_REPLAY_H

#include "base/hash.h"
#include "core/record.h"
#include "replay/segment_ages.h"
#include "replay/stage.h"
#include "vram/replay.h"

// The allocator's records since the current event began: only those of segments and OOMs.
struct vr_exact_records {
    struct vr_record *records;
    size_t count;
    size_t capacity;
    bool failed; // out of host memory: records are missing
};

// Evidence in the last events for a wait. An allocation that fails at first waits for other streams, which completes earlier frees,
// releases the cache, and asks the driver again; it does not search the cache again (allocator.md §release-of-the-cache). So memory that
// became free just before cannot serve it. A completion directly after its own request looks the same with or without a wait.
struct vr_waits {
    bool waited;         // the last events, except releases, were completions, not all directly after their requests
    bool completed;      // the last events, except releases, were completions
    bool released;       // releases came after them
    size_t last_request; // the previous event if it was a free_requested; otherwise SIZE_MAX
    size_t searched;     // an allocation that no cached block served before a release that may have freed one; SIZE_MAX: none
};

struct vr_exact {
    const struct vr_recorded_device *recorded;
    const struct vram_exact_options *options;
    const struct vr_start *start; // borrowed
    struct vr_replay_stage stage;
    struct vr_exact_records heard;
    struct vram_exact_device *device; // the result
    uint64_t reserve_bytes;           // length of a reservation that is made only after a difference
    uint64_t memory_bound;            // most memory that avoids the first difference; 0: unknown
    size_t difference_capacity;
    size_t placement_capacity;
    uint32_t *pending; // segment_alloc and segment_map events not yet claimed by an alloc
    size_t pending_count;
    size_t pending_capacity;
    struct vr_waits waits;
    size_t walked;                  // blocks visited to classify releases with max_split_size
    bool *freeable;                 // by pool: the recording showed that it has no owner any more
    struct vr_map lost;             // recorded live addresses that this allocator could not be made to hold
    struct vr_map gone;             // addresses of released segments
    struct vr_hindsight *hindsight; // the recorded device's
    bool ties;                      // a different one of several equal blocks was chosen or released first
};

// The rules of a replay.
struct vr_exact_rules {
    const struct vram_exact_options *options;
    const char *conf;
    uint32_t pytorch; // PyTorch version, unless conf names one
};

// Lessons from a replay that differs, for the next attempt.
struct vr_exact_lessons {
    uint64_t memory_bound; // vr_exact.memory_bound
    bool ties;             // vr_exact.ties
};

VR_INLINE bool vr_exact_verdict_agrees(enum vram_exact_verdict verdict) {
    return verdict == VRAM_EXACT_EQUAL || verdict == VRAM_EXACT_NO_HISTORY;
}
// Replays one device as often as necessary; *device is the best result. Call vr_exact_release_device() even after a failure.
enum vram_status vr_exact_replay_device(const struct vr_model *model, const struct vr_options *settings, uint32_t ordinal,
                                        const struct vr_exact_rules *how, struct vram_exact_device *device, struct vram_error *error);
void vr_exact_release_device(struct vram_exact_device *device);

// Counts a difference; stores it if there is room. NO_HOST_MEMORY.
enum vram_status vr_exact_differ(struct vr_exact *exact, const struct vram_difference *difference);
// Returns the difference at an event, with the fields common to all kinds filled in.
struct vram_difference vr_exact_difference(const struct vr_exact *exact, enum vram_difference_kind kind, size_t event);
VR_INLINE bool vr_exact_is_map(const struct vr_exact *exact, size_t event) {
    return exact->recorded->history->action[event] == VR_ACTION_SEGMENT_MAP;
}
// Returns whether the recorded program has just asked the driver, so that the next event must be its allocation. With
// release_lock_on_cudamalloc, events of other threads may come between a segment and its allocation, but not after pages were mapped.
VR_INLINE bool vr_exact_is_asking(const struct vr_exact *exact) {
    if (exact->pending_count == 0) return false;
    return !exact->recorded->options->release_lock_on_malloc || vr_exact_is_map(exact, exact->pending[exact->pending_count - 1]);
}
// Returns the requested bytes of an alloc or oom event; oom events record the rounded size.
VR_INLINE uint64_t vr_exact_request(const struct vr_exact *exact, size_t event) {
    const uint64_t size = exact->recorded->history->size_bytes[event], padding = exact->recorded->options->request_padding_bytes;
    return exact->recorded->history->action[event] == VR_ACTION_OOM && size > padding ? size - padding : size;
}
// Directs requests to the event's pool.
VR_INLINE enum vram_status vr_exact_enter(struct vr_exact *exact, size_t event) {
    return vr_stage_enter(&exact->stage, vr_recorded_device_pool(exact->recorded, event));
}
// Replays an alloc event with the segment events that belong to it.
enum vram_status vr_exact_alloc(struct vr_exact *exact, size_t event);
// Keeps a segment_alloc or segment_map event for the alloc that it belongs to.
enum vram_status vr_exact_add_pending(struct vr_exact *exact, size_t event);
// Turns segment events without an alloc into free memory (replay.md §segments-and-allocations).
enum vram_status vr_exact_flush_pending(struct vr_exact *exact);
// Replays the run of segment_free and segment_unmap events that begins at `event`; *next is the first event after the replayed ones.
enum vram_status vr_exact_release(struct vr_exact *exact, size_t event, size_t *next);
enum vram_status vr_exact_oom(struct vr_exact *exact, size_t event);
// Hides every cached block that would serve the request by allocating it; vr_exact_unhide() frees them.
#define VR_EXACT_HIDERS 64
struct vr_exact_hiders {
    uint64_t addresses[VR_EXACT_HIDERS];
    size_t count;
};
enum vram_status vr_exact_hide(struct vr_exact *exact, size_t event, struct vr_exact_hiders *hiders);
enum vram_status vr_exact_unhide(struct vr_exact *exact, struct vr_exact_hiders *hiders);
// Infers ages of segments from the choice of an alloc event that the cache serves.
enum vram_status vr_exact_learn_choice(struct vr_exact *exact, size_t event);
// For an alloc event that differs: checks whether the chosen block is as large as the first sufficient one.
enum vram_status vr_exact_look_for_tie(struct vr_exact *exact, size_t event);
// Infer ages from the releases [event, end), which are everything that was cached; record that their segments no longer belong to the
// initial state.
enum vram_status vr_exact_learn_releases(struct vr_exact *exact, size_t event, size_t end);
enum vram_status vr_exact_note_gone(struct vr_exact *exact, size_t event, size_t end);
// Compares the final state block by block.
enum vram_status vr_exact_picture(struct vr_exact *exact);

// Returns whether a status ends the replay. Any other failure is due to the recording and becomes a difference.
VR_INLINE bool vr_exact_is_fatal(enum vram_status status) { return status == VRAM_NO_HOST_MEMORY; }

#endif
