// segment_ages.h: the relative ages of the initial state's segments, and what a replay that differs teaches the next one (replay.md §ages,
// replay.md §attempts).
#ifndef VR_REPLAY_SEGMENT_AGES_H
#define VR_REPLAY_SEGMENT_AGES_H

#include "base/hash.h"
#include "replay/initial_state.h"

// ---- The relative ages of the initial state's segments, as far as the history shows them (replay.md §ages). From PyTorch 2.13 on, the
// oldest segment is preferred among free blocks of equal size, and no snapshot records ages. For segments that existed before the first
// event, each choice between them shows a part of the order, as does the order of releases.

// Segments are identified by their base addresses.
struct vr_age_pair {
    uint64_t older;
    uint64_t younger;
};

struct vr_ages {
    struct vr_age_pair *pairs; // in the order of discovery
    size_t count;
    size_t capacity;
    struct vr_map known; // hash of both addresses -> 1 if the pair is known
};

void vr_ages_release(struct vr_ages *ages);
// Records that one segment is older than another. NO_HOST_MEMORY.
enum vram_status vr_ages_note(struct vr_ages *ages, uint64_t older, uint64_t younger);
// Assigns counters to the initial state's segments in an order that agrees with all pairs; segments without pairs are ordered by recorded
// counters and addresses. If pairs contradict each other, some are ignored. *inferred is the number of segments that pairs have moved.
// NO_HOST_MEMORY.
enum vram_status vr_ages_apply(const struct vr_ages *ages, struct vr_start *start, size_t *inferred);

// ---- What a replay that differs shows about the initial state, for the next replay (replay.md §attempts).

// A zeroed struct is empty.
struct vr_hindsight {
    struct vr_ages ages;
    bool asks_ages;     // learn from every choice between equal blocks; otherwise learn nothing from them
    struct vr_map ends; // base of a reservation of the initial state -> its latest possible end
    size_t lessons;     // number of facts learned
};

VR_INLINE void vr_hindsight_release(struct vr_hindsight *hindsight) {
    vr_ages_release(&hindsight->ages);
    vr_map_release(&hindsight->ends);
}
// Records that one segment is older than another. NO_HOST_MEMORY.
VR_INLINE enum vram_status vr_hindsight_age(struct vr_hindsight *hindsight, uint64_t older, uint64_t younger) {
    const size_t known = hindsight->ages.count;
    VR_TRY(vr_ages_note(&hindsight->ages, older, younger));
    hindsight->lessons += hindsight->ages.count - known;
    return VRAM_OK;
}
// Records that the reservation at `base` ends at `end` or before. NO_HOST_MEMORY.
VR_INLINE enum vram_status vr_hindsight_end(struct vr_hindsight *hindsight, uint64_t base, uint64_t end) {
    const uint64_t known = vr_map_get(&hindsight->ends, base);
    if (known != 0 && known <= end) return VRAM_OK;
    hindsight->lessons++;
    return vr_map_set(&hindsight->ends, base, end);
}

#endif
