// marks.h: annotations and steps of a history, the newest of them.
#ifndef VR_LIVE_MARKS_H
#define VR_LIVE_MARKS_H

#include "base/base.h"

enum vr_annotation_stage { VR_STAGE_START, VR_STAGE_END, VR_STAGE_STEP, VR_STAGE_PAIRS, VR_STAGE_COUNT };
VR_INLINE const char *vr_annotation_stage_name(enum vr_annotation_stage stage) {
    return stage == VR_STAGE_START ? "START" : stage == VR_STAGE_END ? "END" : "STEP";
}

// The name of a PAIRS mark has all its pairs, one per line: key, tab, value.
struct vr_mark {
    uint64_t ticks;
    uint32_t name; // number of a text
    uint8_t stage; // enum vr_annotation_stage
    uint8_t device;
};

// The newest marks; once full, the oldest is at `next`. Guarded by the tracer's marks_mutex.
struct vr_marks {
    struct vr_mark *items;
    size_t count;
    size_t items_capacity;
    size_t next;
};

// Returns the value of a key in such a text, which ends with the line; NULL without the key. *length: of the value.
const char *vr_pairs_find(const char *pairs, const char *key, size_t *length);

// Adds a mark, replacing the oldest if there are `most`. Called with marks_mutex held. NO_HOST_MEMORY.
enum vram_status vr_marks_keep(struct vr_marks *marks, uint64_t most, const struct vr_mark *mark);
// Changes `most`: the newest marks stay, oldest first. Called with marks_mutex held. NO_HOST_MEMORY, with nothing changed.
enum vram_status vr_marks_resize(struct vr_marks *marks, uint64_t most);
// Checks the rules above, and that every mark has a stage and a device. Called with marks_mutex held.
bool vr_marks_check(const struct vr_marks *marks);

#endif
