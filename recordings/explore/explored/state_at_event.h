// state_at_event.h: segments and blocks as they were after any event of a device's history.
#ifndef VR_EXPLORE_EXPLORED_STATE_AT_EVENT_H
#define VR_EXPLORE_EXPLORED_STATE_AT_EVENT_H

#include "explore/explored/explored.h"
#include "explore/tables/block_sizes.h"
#include "vram/report.h"

// ---- Segments and blocks as they were after any event of a device's history. Reserved and live memory are rows of lifetimes, found from
// checkpoints and merged here by address. By the rules for damaged histories, a block outside every known segment gets its own, and no
// block extends over the next one.

enum { VR_NO_ROW = UINT32_MAX };

struct vr_moment_segment {
    uint64_t address, end;
    uint32_t row;         // row of the segment lifetimes: the piece at the beginning; VR_NO_ROW: not known to have been reserved
    uint32_t first_block; // index in the moment's blocks; the segment's blocks end at the next segment's first one
    uint64_t stream;
    uint64_t pool_first, pool_second;
    bool pool_known, expandable;
    enum vram_report_kind kind;
};

enum { VR_BLOCK_PENDING = 1, VR_BLOCK_ESTIMATED = 2, VR_BLOCK_BEFORE = 4 };

struct vr_moment_block {
    uint64_t address;
    uint64_t size_bytes; // block size
    uint64_t requested_bytes;
    uint32_t row;       // row of the active lifetimes
    uint32_t allocated; // row of the allocated lifetimes; VR_NO_ROW if only the active ones have it
    uint32_t stack;
    uint8_t flags;
};

// Totals of all segments: reserved = allocated + pending + free.
struct vr_moment_sums {
    uint64_t reserved_bytes, allocated_bytes, pending_bytes, free_bytes;
    uint64_t requested_bytes; // of allocated blocks
    uint64_t largest_free_bytes, free_pieces;
    uint64_t cached_bytes;       // part of free_bytes: in segments without a block
    uint64_t largest_hole_bytes; // largest free piece in the other segments
    uint64_t outside_bytes;      // blocks outside every known segment, not counted elsewhere
};

// Segments do not overlap, every block is in a segment, and no block extends over the next: vr_moment_check().
struct vr_moment {
    struct vr_moment_segment *segments; // sorted by address
    size_t segment_count, segments_capacity;
    struct vr_moment_block *blocks; // sorted by address
    size_t block_count;
    struct vr_moment_sums sums;
};

struct vr_moments;
// Returns the lifetimes to show as blocks: the active ones, or the allocated ones if the recording has no completions of frees, so that a
// block is free from the request on.
enum vr_lifetime_kind vr_moment_lifetime_kind(const struct vr_history *history);
// NULL is ignored.
void vr_moments_destroy(struct vr_moments *moments);
// Rebuilds the moment after `event` (-1: before event 0). LIMIT, NO_HOST_MEMORY; on success the caller owns it: vr_moment_release().
enum vram_status vr_moment_at(struct vr_explored_device *device, int64_t event, struct vr_moment *moment);
void vr_moment_release(struct vr_moment *moment);
// Checks the invariants of a moment and its sums.
bool vr_moment_check(const struct vr_moment *moment);
// Prepares the tables for moments in pieces: processes up to `most` more rows or events. *share is the completed share of the work; 1 when
// complete. LIMIT, NO_HOST_MEMORY.
enum vram_status vr_explored_moments_go_on(struct vr_explored_device *device, size_t most, double *share);

// ---- The blocks of a moment for an answer: individually, or, if there are too many to see, with small neighbours combined.

// Blocks [first, end) of the moment, all in one segment.
struct vr_bundle {
    size_t first, end;
};

struct vr_bundles {
    struct vr_bundle *bundle;
    size_t count;
    uint64_t grain_bytes; // adjacent blocks smaller than this that together span at most this form one bundle; 0: every block is its own
    size_t first_segment, end_segment; // the moment's segments that the bundles are in, including segments without blocks in between
};

// Gets all blocks in at most about `most` bundles: three per grain of memory, plus those that segment boundaries add. NO_HOST_MEMORY; on
// success the caller owns them: vr_bundles_release().
enum vram_status vr_bundles_all(const struct vr_moment *moment, size_t most, struct vr_bundles *bundles);
// Gets at most `most` blocks from `first` on, each as its own bundle. Status and ownership are as for vr_bundles_all().
enum vram_status vr_bundles_page(const struct vr_moment *moment, size_t first, size_t most, struct vr_bundles *bundles);
void vr_bundles_release(struct vr_bundles *bundles);

// The totals of a bundle. The flags are those of its largest block, except that VR_BLOCK_PENDING is set if most of the bytes are pending,
// and VR_BLOCK_ESTIMATED if any size is an estimate.
struct vr_bundle_sums {
    uint64_t bytes, requested_bytes; // block sizes, and requested sizes
    uint64_t span_bytes;             // from its first byte to its last
    size_t largest;                  // index in the moment's blocks
    uint8_t flags;
};
struct vr_bundle_sums vr_bundle_sum(const struct vr_moment *moment, const struct vr_bundle *bundle);

#endif
