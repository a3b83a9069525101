// initial_state.h: the state of one device before its first recorded event, found by undoing the history from the final state, by the rules
// of replay.md §the-start-state. Free blocks are not stored: they are the gaps between active blocks, because adjacent free blocks are
// always merged.
#ifndef VR_REPLAY_INITIAL_STATE_H
#define VR_REPLAY_INITIAL_STATE_H

#include "replay/mapped_ranges.h"
#include "replay/recorded_device.h"

#define VR_NEVER UINT32_MAX

// Contradictions: what cannot have happened. X(CONSTANT, sentence)
#define VR_ANOMALIES(X)                                                                                                                    \
    X(ALLOC_NOT_LIVE, "an allocation that is neither freed later nor in the final state")                                                  \
    X(FREE_STILL_LIVE, "a free of a block that is still live afterwards")                                                                  \
    X(ALLOC_OUTSIDE, "an allocation at an address outside every segment")                                                                  \
    X(SEGMENT_MISSING, "a new segment that is neither released later nor in the final state")                                              \
    X(SEGMENT_STILL_THERE, "a released segment that still exists afterwards")                                                              \
    X(RANGE_MISSING, "a mapped range that is neither unmapped later nor in the final state")                                               \
    X(RANGE_STILL_THERE, "an unmapped range that is still mapped afterwards")                                                              \
    X(BLOCK_OUTSIDE, "a block outside every segment")                                                                                      \
    X(BLOCK_OVERLAP, "a block that overlaps another block or the end of its segment")                                                      \
    X(BLOCK_WRONG_POOL, "a block of at most 1 MiB in a segment for larger blocks")                                                         \
    X(SEGMENT_OVERLAP, "segments that overlap or have impossible sizes")

enum vr_anomaly {
#define VR_ANOMALY_ENUM(name, sentence) VR_ANOMALY_##name,
    VR_ANOMALIES(VR_ANOMALY_ENUM)
#undef VR_ANOMALY_ENUM
        VR_ANOMALY_COUNT
};

// A cudaMalloc segment, or a mapped range of an expandable one.
struct vr_start_segment {
    uint64_t address;
    uint64_t size;
    uint64_t stream;
    uint64_t counter; // the recording's registration counter; 0 if absent
    uint32_t pool;    // index in the recorded device's pools
    bool small;
    bool expandable;
};

struct vr_start_block {
    uint64_t address;
    uint64_t size;      // bytes; a multiple of 512
    uint64_t requested; // bytes
    uint32_t death;     // the event that makes it reusable, or VR_NEVER
    uint32_t segment;   // index in segments
    bool pending;       // freed before the first event, but not yet reusable
    bool size_known;    // from the final state; otherwise inferred
};

struct vr_start {
    struct vr_start_segment *segments; // ascending by address
    size_t segment_count;
    struct vr_start_block *blocks; // active blocks, ascending by address
    size_t block_count;
    size_t sizes_unknown;
    size_t sizes_from_neighbour;
    bool counters; // the recording has registration counters
    uint64_t anomalies[VR_ANOMALY_COUNT];
    uint64_t anomaly_total;
    size_t first_anomaly_event; // of anomalies at an event; SIZE_MAX: no such anomaly
    enum vr_anomaly first_anomaly;
};

// Undoes the history. Anomalies are counted and are not errors: if anomaly_total > 0, do not build the state. NO_HOST_MEMORY.
enum vram_status vr_start_find(const struct vr_recorded_device *recorded, struct vr_start *start);
void vr_start_release(struct vr_start *start);
// Describes the anomalies in one line, cut to capacity.
void vr_start_describe(const struct vr_start *start, char *text, size_t capacity);

// Returns the rounded size of a request (allocator.md §sizes).
uint64_t vr_start_round(const struct vr_options *options, uint64_t requested);

#endif
