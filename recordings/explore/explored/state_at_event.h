// state_at_event.h: segments and blocks as they were after any event of a device's history.
#ifndef VR_EXPLORE_EXPLORED_STATE_AT_EVENT_H
#define VR_EXPLORE_EXPLORED_STATE_AT_EVENT_H

#include "explore/explored/explored.h"
#include "explore/tables/block_sizes.h"
#include "vram/report.h"

// ---- Segments and blocks as they were after any event of a device's history.
// What was reserved and what was live are rows of lifetimes, found from checkpoints; here they are put together by address. By the rules
// for damaged histories a block in no known segment gets one of its own, and no block reaches over the next.

enum { VR_NO_ROW = UINT32_MAX };

struct vr_moment_segment {
    uint64_t address, end;
    uint32_t row;         // of the segment lives: the piece at its beginning; VR_NO_ROW: nothing says that this was reserved
    uint32_t first_block; // of the moment's blocks; the next segment's ends them
    uint64_t stream;
    uint64_t pool_first, pool_second;
    bool pool_known, expandable;
    enum vram_report_kind kind;
};

enum { VR_BLOCK_PENDING = 1, VR_BLOCK_ESTIMATED = 2, VR_BLOCK_BEFORE = 4 };

struct vr_moment_block {
    uint64_t address;
    uint64_t size_bytes; // given
    uint64_t requested_bytes;
    uint32_t row;       // of the active lifetimes
    uint32_t allocated; // of the allocated ones; VR_NO_ROW where only active ones have it
    uint32_t stack;
    uint8_t flags;
};

// Bytes of all segments together: reserved = allocated + pending + free.
struct vr_moment_sums {
    uint64_t reserved_bytes, allocated_bytes, pending_bytes, free_bytes;
    uint64_t requested_bytes; // in allocated blocks
    uint64_t largest_free_bytes, free_pieces;
    uint64_t cached_bytes;       // of free_bytes: in segments without a block
    uint64_t largest_hole_bytes; // of the free pieces in the other segments
    uint64_t outside_bytes;      // blocks in no known segment, counted nowhere else
};

// Segments do not overlap, every block lies in one of them, and no block reaches over the next: vr_moment_check().
struct vr_moment {
    struct vr_moment_segment *segments; // by address
    size_t segment_count, segments_capacity;
    struct vr_moment_block *blocks; // by address
    size_t block_count;
    struct vr_moment_sums sums;
};

struct vr_moments;
// Which lifetimes blocks are: the active ones, except where a recording leaves completions out: a block is free when it was given back,
// then.
enum vr_lifetime_kind vr_moment_lifetime_kind(const struct vr_history *history);
// NULL is ignored.
void vr_moments_destroy(struct vr_moments *moments);
// After `event` (-1: before event 0). LIMIT, NO_HOST_MEMORY; else given to the caller: vr_moment_release().
enum vram_status vr_moment_at(struct vr_explored_device *device, int64_t event, struct vr_moment *moment);
void vr_moment_release(struct vr_moment *moment);
// What is said of a moment and its sums.
bool vr_moment_check(const struct vr_moment *moment);
// The same a piece at a time: looks at up to `most` further rows or events. *share: how much of the work is done, 1 when it is all. As
// above.
enum vram_status vr_explored_moments_go_on(struct vr_explored_device *device, size_t most, double *share);

// ---- The blocks of a moment as an answer has them: each for itself, or, where there are more than anybody can see, neighbours that are
// too small to be seen put together.

// Blocks [first, end) of the moment, all of one segment.
struct vr_bundle {
    size_t first, end;
};

struct vr_bundles {
    struct vr_bundle *bundle;
    size_t count;
    uint64_t grain_bytes;              // neighbours below this, that reach over no more than this, are one bundle; 0: each block is one
    size_t first_segment, end_segment; // the segments of the moment that they lie in, those without a block among them
};

// All blocks, in about `most` bundles at most: three for each grain of memory, and what segments add. NO_HOST_MEMORY; else given to the
// caller: vr_bundles_release().
enum vram_status vr_bundles_all(const struct vr_moment *moment, size_t most, struct vr_bundles *bundles);
// At most `most` blocks from `first` on, each for itself. As above.
enum vram_status vr_bundles_page(const struct vr_moment *moment, size_t first, size_t most, struct vr_bundles *bundles);
void vr_bundles_release(struct vr_bundles *bundles);

// What a bundle comes to. The flags are those of its largest block, but VR_BLOCK_PENDING is set where most of the bytes are pending, and
// VR_BLOCK_ESTIMATED where any size is an estimate.
struct vr_bundle_sums {
    uint64_t bytes, requested_bytes; // given, and asked for
    uint64_t span_bytes;             // from its first byte to its last
    size_t largest;                  // block of the moment
    uint8_t flags;
};
struct vr_bundle_sums vr_bundle_sum(const struct vr_moment *moment, const struct vr_bundle *bundle);

#endif
