// bundles.h: the blocks of a moment as an answer has them: each for itself, or, where there are more than anybody can see, neighbours
// that are too small to be seen put together.
#ifndef VR_EXPLORE_EXPLORED_BUNDLES_H
#define VR_EXPLORE_EXPLORED_BUNDLES_H

#include "explore/explored/moment.h"

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
