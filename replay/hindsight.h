// hindsight.h: what a replay that differs tells of the state that its history began with, for the next one (replay.md §attempts).
#ifndef VR_REPLAY_HINDSIGHT_H
#define VR_REPLAY_HINDSIGHT_H

#include "replay/ages.h"

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
