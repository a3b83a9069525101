// verifier.h: the seam to the sanitizer of the option verify:True (allocator/verify). Without one, vram_allocator.verifier is NULL and no
// call on the hot path looks at it: VR_GATE_VERIFY, which is only set with a verifier, sends requests and frees to the slow path.
#ifndef VR_CORE_VERIFIER_H
#define VR_CORE_VERIFIER_H

#include "core/state.h"

// Bytes added to each request, and put in front of each segment of cuMemAlloc and each raw block. A multiple of the alignment of blocks.
#define VR_REDZONE_BYTES 512

struct vr_verifier {
    // A request got this block. Called without locks.
    void (*handed_out)(struct vr_verifier *verifier, struct vr_device *device, uint64_t address);
    // Frees the block for vram_free() and returns its statuses. device: the device of the pools' block at this address; NULL: no block is
    // there. Called without locks.
    enum vram_status (*free)(struct vr_verifier *verifier, struct vr_device *device, uint64_t address);
    // Reports that vram_record_stream() got an address that is not a live block. Called without locks.
    void (*refused)(struct vr_verifier *verifier, uint64_t address);
    // Poisons new memory for the shard's stream. Returns whether all of it then holds the poison. Under all locks, context current.
    bool (*poison)(struct vr_verifier *verifier, struct vr_shard *shard, uint64_t address, uint64_t size);
    // Checks the device's quarantined blocks and makes them reusable: all, or those of one pool (NULL: of the default pools). Under all
    // locks.
    void (*release)(struct vr_verifier *verifier, struct vr_device *device, bool all, const struct vram_pool *only);
};

// Returns the bytes of a live block that the program may use. With a verifier these are the requested bytes, because a redzone follows.
VR_INLINE uint64_t vr_usable_size(const struct vram_allocator *allocator, const struct vr_block *block) {
    return allocator->verifier != NULL && !vr_is_cached(block->state) ? block->requested : block->size;
}

// Stops checking the redzones in all segments of a pool (NULL: of the default pools), because graphs write to its free memory or its bytes
// were lost. Under all locks.
VR_INLINE void vr_pool_give_up_check(struct vr_device *device, const struct vram_pool *pool) {
    for (uint32_t number = 0; (number = vr_segment_of_pool_after(device, pool, number)) != 0;)
        vr_segment_at(device->allocator, number)->unverified = true;
}

#endif
