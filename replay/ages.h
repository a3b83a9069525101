// ages.h: which segments of the start state are older, as far as the history tells (replay.md §ages).
//
// From PyTorch 2.13 on the oldest segment is taken of several free blocks of one size, and no snapshot says how old a segment is. Of those
// that were there before the first event each choice between them tells a part of the order, and so does the order of releases.
#ifndef VR_REPLAY_AGES_H
#define VR_REPLAY_AGES_H

#include "base/map.h"
#include "replay/start.h"

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

#endif
