// lanes.h: groups segments by the requests that they serve.
#ifndef VR_EXPLORE_TABLES_LANES_H
#define VR_EXPLORE_TABLES_LANES_H

#include "analyze/device_view.h"
#include "analyze/segment_lives.h"
#include "vram/report.h"

// ---- Whether a segment serves small or large requests, which a history does not record.

// Sets *kind to an array of enum vram_report_kind, by row of the segment lifetimes. The caller frees *kind. NO_HOST_MEMORY.
enum vram_status vr_segment_kinds(const struct vr_view *view, const struct vr_segment_lives *segments, uint8_t **kind);

// ---- Lanes: segments with the same pool, size class, stream and expandability; and the total of each lane at any moment.

// The last lane combines all lanes beyond the largest ones.
enum { VR_MOST_LANES = 24 };

struct vr_lane {
    uint64_t stream, pool_first, pool_second;
    enum vram_report_kind kind;
    bool expandable;
    bool pool_known;     // of at least one segment
    size_t others;       // for a last lane that combines others: their number; otherwise 0
    uint64_t peak_bytes; // largest total in the history
    // The total from each event on, by ascending event. Before the first one: start_bytes.
    uint32_t *event;
    uint64_t *total;
    size_t count, event_capacity, total_capacity;
    uint64_t start_bytes;
};

struct vr_lanes {
    struct vr_lane lane[VR_MOST_LANES]; // the default pool's first, then pool by pool; large before small; by stream
    size_t count;
    uint8_t *of;          // by row of the segment lifetimes
    bool several_streams; // lanes differ in their streams
};

// Builds the lanes. Borrows nothing. The caller owns *lanes: vr_lanes_destroy(). NO_HOST_MEMORY.
enum vram_status vr_lanes_create(const struct vr_view *view, const struct vr_segment_lives *segments, struct vr_lanes **lanes);
// NULL is ignored.
void vr_lanes_destroy(struct vr_lanes *lanes);
// Returns the largest total of a lane from before event `first` until after event `end` - 1. Looks at all changes in between.
uint64_t vr_lane_largest(const struct vr_lane *lane, size_t first, size_t end);
// Checks that every segment has a lane, no total exceeds its lane's peak, and the lanes' final totals add up to the live bytes. Looks at
// all changes.
bool vr_lanes_check(const struct vr_lanes *lanes, const struct vr_segment_lives *segments);

#endif
