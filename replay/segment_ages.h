// segment_ages.h: which segments of the initial state are older, and what a replay that differs tells for the next one
// (replay.md §ages, replay.md §attempts).
#ifndef VR_REPLAY_SEGMENT_AGES_H
#define VR_REPLAY_SEGMENT_AGES_H

#include "base/hash.h"
#include "replay/initial_state.h"

// ---- Which segments of the start state are older, as far as the history tells (replay.md §ages).
// From PyTorch 2.13 on the oldest segment is taken of several free blocks of one size, and no snapshot says how old a segment is. Of those
// that were there before the first event each choice between them tells a part of the order, and so does the order of releases.

// Segments are named by where they begin.
struct vr_age_pair {
    uint64_t older;
    uint64_t younger;
};

struct vr_ages {
    struct vr_age_pair *pairs; // in the order in which they were told
    size_t count;
    size_t capacity;
    struct vr_map known; // of a mix of both addresses: that the pair is there
};

void vr_ages_release(struct vr_ages *ages);
// That one segment is older than another one. NO_HOST_MEMORY.
enum vram_status vr_ages_note(struct vr_ages *ages, uint64_t older, uint64_t younger);
// Gives the start's segments counters in an order that agrees with all pairs; what none tells goes by the recorded counters and by address.
// Of pairs that contradict each other some do not hold. *inferred: how many segments stand elsewhere than they would without.
// NO_HOST_MEMORY.
enum vram_status vr_ages_apply(const struct vr_ages *ages, struct vr_start *start, size_t *inferred);

// ---- What a replay that differs tells of the state that its history began with, for the next one (replay.md §attempts).

// All-zero knows nothing.
struct vr_hindsight {
    struct vr_ages ages;
    bool asks_ages;     // every choice between equal blocks is looked at; else nothing is noted of them
    struct vr_map ends; // of reservations of the start: where one begins -> where it ends at the latest
    size_t lessons;     // how often something became known
};

VR_INLINE void vr_hindsight_release(struct vr_hindsight *hindsight) {
    vr_ages_release(&hindsight->ages);
    vr_map_release(&hindsight->ends);
}
// That one segment is older than another one. NO_HOST_MEMORY.
VR_INLINE enum vram_status vr_hindsight_age(struct vr_hindsight *hindsight, uint64_t older, uint64_t younger) {
    const size_t known = hindsight->ages.count;
    VR_TRY(vr_ages_note(&hindsight->ages, older, younger));
    hindsight->lessons += hindsight->ages.count - known;
    return VRAM_OK;
}
// That the reservation at `base` ends there or before. NO_HOST_MEMORY.
VR_INLINE enum vram_status vr_hindsight_end(struct vr_hindsight *hindsight, uint64_t base, uint64_t end) {
    const uint64_t known = vr_map_get(&hindsight->ends, base);
    if (known != 0 && known <= end) return VRAM_OK;
    hindsight->lessons++;
    return vr_map_set(&hindsight->ends, base, end);
}

#endif
