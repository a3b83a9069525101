// changed_settings.c: see changed_settings.h. Private pools may have functions of their own: only the default pools are looked at.
#include "replay/changed_settings.h"

// Ordinary segments, expandable ones.
struct kinds {
    bool ordinary;
    bool expandable;
};

static struct kinds kinds_in_picture(const struct vr_recorded_device *recorded) {
    const struct vr_segments *segments = &recorded->model->segments;
    struct kinds kinds = {false, false};
    for (size_t i = 0; i < recorded->segment_count; i++) {
        const uint32_t row = recorded->segments[i];
        if (vr_recorded_device_segment_pool(recorded, row) != 0) continue;
        kinds.ordinary = kinds.ordinary || segments->expandable[row] == 0;
        kinds.expandable = kinds.expandable || segments->expandable[row] != 0;
    }
    return kinds;
}

static void look_at_history(const struct vr_recorded_device *recorded, struct kinds *kinds) {
    const struct vr_history *history = recorded->history;
    for (size_t event = 0; event < history->count; event++) {
        const enum vr_action action = history->action[event];
        if (recorded->pools.of_event != NULL && recorded->pools.of_event[event] != 0) continue;
        kinds->ordinary = kinds->ordinary || action == VR_ACTION_SEGMENT_ALLOC || action == VR_ACTION_SEGMENT_FREE;
        kinds->expandable = kinds->expandable || action == VR_ACTION_SEGMENT_MAP || action == VR_ACTION_SEGMENT_UNMAP;
    }
}

const char *vr_changed_settings(const struct vr_recorded_device *recorded) {
    struct kinds kinds = kinds_in_picture(recorded);
    look_at_history(recorded, &kinds);
    return kinds.ordinary && kinds.expandable ? "the default pools had ordinary segments and expandable ones" : NULL;
}
