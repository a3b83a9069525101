// marks.h: annotations and steps of a history, the newest of them.
#ifndef VR_LIVE_MARKS_H
#define VR_LIVE_MARKS_H

#include "base/base.h"

enum vr_annotation_stage { VR_STAGE_START, VR_STAGE_END, VR_STAGE_STEP, VR_STAGE_PAIRS, VR_STAGE_COUNT };
VR_INLINE const char *vr_annotation_stage_name(enum vr_annotation_stage stage) {
    return stage == VR_STAGE_START ? "START" : stage == VR_STAGE_END ? "END" : "STEP";
}

// The name of a PAIRS mark is the text of its pairs, one per line: key, tab, value.
struct vr_mark {
    uint64_t ticks;
    uint32_t name; // number of a text
    uint8_t stage; // enum vr_annotation_stage
    uint8_t device;
};

// The newest marks. While the array is not full, items[0] is the oldest; then items[next] is. Guarded by the tracer's marks_mutex.
struct vr_marks {
    struct vr_mark *items;
    size_t count;
    size_t items_capacity;
    size_t next;
};

// Returns the value of `key` in the text of a PAIRS mark and sets *length to its length; NULL if the key is not there. The value ends with
// its line, without a NUL.
const char *vr_pairs_find(const char *pairs, const char *key, size_t *length);

// Adds a mark; if there are `most`, it replaces the oldest. Called under marks_mutex. Returns NO_HOST_MEMORY if the array cannot grow.
enum vram_status vr_marks_keep(struct vr_marks *marks, uint64_t most, const struct vr_mark *mark);
// Keeps the newest `most` marks, oldest first. Called under marks_mutex. Returns NO_HOST_MEMORY, leaving the marks unchanged, if it cannot.
enum vram_status vr_marks_resize(struct vr_marks *marks, uint64_t most);
// Returns whether the order is as described above and every mark has a valid stage and device. Called under marks_mutex.
bool vr_marks_check(const struct vr_marks *marks);

#endif
