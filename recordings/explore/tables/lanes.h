// lanes.h: segments apart by whom they serve.
#ifndef VR_EXPLORE_TABLES_LANES_H
#define VR_EXPLORE_TABLES_LANES_H

#include "analyze/device_view.h"
#include "analyze/segment_lives.h"
#include "vram/report.h"

// ---- Whether segments serve small or large requests, which a history does not say.

// By row of the segment lives: enum vram_report_kind. *kind is given to the caller (free()). NO_HOST_MEMORY.
enum vram_status vr_segment_kinds(const struct vr_view *view, const struct vr_segment_lives *segments, uint8_t **kind);

// ---- Segments apart by whom they serve: pool, size class, stream, and whether they are expandable; and how much each lane had at any
// moment.

// Lanes beyond the largest are the last one together.
enum { VR_MOST_LANES = 24 };

struct vr_lane {
    uint64_t stream, pool_first, pool_second;
    enum vram_report_kind kind;
    bool expandable;
    bool pool_known;     // of any segment
    size_t others;       // 0; of a last lane for all others: how many they are
    uint64_t peak_bytes; // the largest total of the whole history
    // Totals, by ascending event: what the lane has from `event` on. Before the first one: start_bytes.
    uint32_t *event;
    uint64_t *total;
    size_t count, event_capacity, total_capacity;
    uint64_t start_bytes;
};

struct vr_lanes {
    struct vr_lane lane[VR_MOST_LANES]; // the default pool's first, then pool by pool; large before small, by stream
    size_t count;
    uint8_t *of;          // by row of the segment lives
    bool several_streams; // whether a lane's stream tells anything
};

// Borrows nothing. Given to the caller: vr_lanes_destroy(). NO_HOST_MEMORY.
enum vram_status vr_lanes_create(const struct vr_view *view, const struct vr_segment_lives *segments, struct vr_lanes **lanes);
// NULL is ignored.
void vr_lanes_destroy(struct vr_lanes *lanes);
// The largest total of a lane from before event `first` until after event `end` - 1. Looks at all changes in between.
uint64_t vr_lane_largest(const struct vr_lane *lane, size_t first, size_t end);
// Every segment has a lane, no total is above its lane's peak, and together the lanes end with what is live. Looks at all changes.
bool vr_lanes_check(const struct vr_lanes *lanes, const struct vr_segment_lives *segments);

#endif
