// exact_replay.h: the state of one device's exact replay, shared by the files that make it.
#ifndef VR_REPLAY_EXACT_REPLAY_H
#define VR_REPLAY_EXACT_REPLAY_H

#include "base/hash.h"
#include "core/record.h"
#include "replay/segment_ages.h"
#include "replay/stage.h"
#include "vram/replay.h"

// What the allocator told since the event being replayed began: segment records and OOMs only.
struct vr_exact_records {
    struct vr_record *records;
    size_t count;
    size_t capacity;
    bool failed; // host memory ran out: records are missing
};

// What an allocation does that failed at first: it waits for other streams, which completes earlier frees, releases the cache, and
// asks the driver again; it does not search the cache a second time (allocator.md §release-of-the-cache). So what became free just before
// does not count for it. Completions that directly follow their own request look alike whether waited for or not.
struct vr_waits {
    bool waited;         // completions without their requests came last, but for releases
    bool completed;      // completions came last, but for releases
    bool released;       // and releases after them
    size_t last_request; // the event before, if it was a free_requested; SIZE_MAX otherwise
    size_t searched;     // the allocation that no cached block served before a release, whose pieces may serve it; SIZE_MAX: none
};

struct vr_exact {
    const struct vr_recorded_device *recorded;
    const struct vram_exact_options *options;
    const struct vr_start *start; // borrowed
    struct vr_replay_stage stage;
    struct vr_exact_records heard;
    struct vram_exact_device *device; // the result
    uint64_t reserve_bytes;           // of an expandable segment that only a difference makes
    uint64_t memory_bound;            // the most memory for which the first difference would not be; 0: it does not tell
    size_t difference_capacity;
    size_t placement_capacity;
    uint32_t *pending; // segment_alloc and segment_map events that no alloc has claimed yet
    size_t pending_count;
    size_t pending_capacity;
    struct vr_waits waits;
    size_t walked;                  // blocks looked at to tell the releases of max_split_size apart
    bool *freeable;                 // by pool: the recording showed that nobody holds it any more
    struct vr_map lost;             // recorded live addresses that this allocator could not be made to hold
    struct vr_map gone;             // addresses of segments that went
    struct vr_hindsight *hindsight; // the recorded device's
    bool ties;                      // another of several equal blocks was chosen, or released first
};

// What a replay goes by.
struct vr_exact_rules {
    const struct vram_exact_options *options;
    const char *conf;
    uint32_t pytorch; // whose rules, where conf names none
};

// What a replay that differs tells those who try again.
struct vr_exact_lessons {
    uint64_t memory_bound; // vr_exact.memory_bound
    bool ties;             // vr_exact.ties
};

VR_INLINE bool vr_exact_verdict_agrees(enum vram_exact_verdict verdict) {
    return verdict == VRAM_EXACT_EQUAL || verdict == VRAM_EXACT_NO_HISTORY;
}
// One device, as often as it takes: the best replay is the result. vr_exact_release_device() also after a failure.
enum vram_status vr_exact_replay_device(const struct vr_model *model, const struct vr_options *settings, uint32_t ordinal,
                                        const struct vr_exact_rules *how, struct vram_exact_device *device, struct vram_error *error);
void vr_exact_release_device(struct vram_exact_device *device);

// Books a difference; keeps it while there is room. NO_HOST_MEMORY.
enum vram_status vr_exact_differ(struct vr_exact *exact, const struct vram_difference *difference);
// The difference that an event makes, with what both sides have in common filled in.
struct vram_difference vr_exact_difference(const struct vr_exact *exact, enum vram_difference_kind kind, size_t event);
VR_INLINE bool vr_exact_is_map(const struct vr_exact *exact, size_t event) {
    return exact->recorded->history->action[event] == VR_ACTION_SEGMENT_MAP;
}
// Whether the recorded program has just been to the driver, and the next event must be what came of it. With release_lock_on_cudamalloc
// other threads' events may stand between a segment and its allocation, but not after pages were mapped.
VR_INLINE bool vr_exact_is_asking(const struct vr_exact *exact) {
    if (exact->pending_count == 0) return false;
    return !exact->recorded->options->release_lock_on_malloc || vr_exact_is_map(exact, exact->pending[exact->pending_count - 1]);
}
// What was asked for by an alloc or oom event; of the latter the rounded size is recorded.
VR_INLINE uint64_t vr_exact_request(const struct vr_exact *exact, size_t event) {
    const uint64_t size = exact->recorded->history->size_bytes[event], padding = exact->recorded->options->request_padding_bytes;
    return exact->recorded->history->action[event] == VR_ACTION_OOM && size > padding ? size - padding : size;
}
// From now on requests are of the event's pool.
VR_INLINE enum vram_status vr_exact_enter(struct vr_exact *exact, size_t event) {
    return vr_stage_enter(&exact->stage, vr_recorded_device_pool(exact->recorded, event));
}
// One alloc event, with the segment events that belong to it.
enum vram_status vr_exact_alloc(struct vr_exact *exact, size_t event);
// A segment_alloc or segment_map event: waits for the alloc it belongs to.
enum vram_status vr_exact_add_pending(struct vr_exact *exact, size_t event);
// Segment events that no alloc followed: they become free memory (replay.md §segments-and-allocations).
enum vram_status vr_exact_flush_pending(struct vr_exact *exact);
// The run of segment_free and segment_unmap events that starts at `event`; *next is the first event after what was replayed.
enum vram_status vr_exact_release(struct vr_exact *exact, size_t event, size_t *next);
enum vram_status vr_exact_oom(struct vr_exact *exact, size_t event);
// Hides every cached block that would serve the request by allocating it; vr_exact_unhide() gives them back.
#define VR_EXACT_HIDERS 64
struct vr_exact_hiders {
    uint64_t addresses[VR_EXACT_HIDERS];
    size_t count;
};
enum vram_status vr_exact_hide(struct vr_exact *exact, size_t event, struct vr_exact_hiders *hiders);
enum vram_status vr_exact_unhide(struct vr_exact *exact, struct vr_exact_hiders *hiders);
// What the choice of an alloc event that the cache serves tells of the ages of segments.
enum vram_status vr_exact_learn_choice(struct vr_exact *exact, size_t event);
// The same of one that differs: whether the block that was taken is as large as the first that would do.
enum vram_status vr_exact_look_for_tie(struct vr_exact *exact, size_t event);
// What the releases [event, end) tell, which are all that was cached / that their segments are not of the start state any more.
enum vram_status vr_exact_learn_releases(struct vr_exact *exact, size_t event, size_t end);
enum vram_status vr_exact_note_gone(struct vr_exact *exact, size_t event, size_t end);
// Compares the final picture, block by block.
enum vram_status vr_exact_picture(struct vr_exact *exact);

// Statuses that end a replay: everything else is the recording's fault and becomes a difference.
VR_INLINE bool vr_exact_is_fatal(enum vram_status status) { return status == VRAM_NO_HOST_MEMORY; }

#endif
