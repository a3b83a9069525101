#include "explore/explored/bundles.h"

#include "config/rounding.h"

static size_t segment_end(const struct vr_moment *moment, size_t segment) {
    return segment + 1 < moment->segment_count ? moment->segments[segment + 1].first_block : moment->block_count;
}

// Where the bundle that begins with a block ends.
static size_t bundle_end(const struct vr_moment *moment, size_t first, size_t end, uint64_t grain) {
    const struct vr_moment_block *block = moment->blocks;
    size_t next = first + 1;
    if (block[first].size_bytes >= grain) return next;
    while (next < end && block[next].size_bytes < grain && block[next].address + block[next].size_bytes - block[first].address <= grain)
        next++;
    return next;
}

// How many bundles of a grain there are; they are written where `bundle` is not NULL.
static size_t gather_bundle(const struct vr_moment *moment, uint64_t grain, struct vr_bundle *bundle) {
    size_t count = 0;
    for (size_t s = 0; s < moment->segment_count; s++) {
        const size_t end = segment_end(moment, s);
        for (size_t first = moment->segments[s].first_block; first < end; count++) {
            const size_t next = bundle_end(moment, first, end, grain);
            if (bundle != NULL) bundle[count] = (struct vr_bundle){first, next};
            first = next;
        }
    }
    return count;
}

// The finest grain that gives few enough bundles, by doubling; there is always one per segment with blocks.
static uint64_t grain_for(const struct vr_moment *moment, size_t most) {
    const struct vr_moment_sums *sums = &moment->sums;
    const uint64_t all = sums->reserved_bytes + sums->outside_bytes;
    if (moment->block_count <= most) return 0;
    uint64_t grain = all / most / 4 + VR_MIN_BLOCK;
    while (grain < all && gather_bundle(moment, grain, NULL) > most) grain *= 2;
    return grain;
}

enum vram_status vr_bundles_all(const struct vr_moment *moment, size_t most, struct vr_bundles *bundles) {
    const uint64_t grain = grain_for(moment, most);
    const size_t count = gather_bundle(moment, grain, NULL);
    struct vr_bundle *made = malloc((count + 1) * sizeof *made);
    if (made == NULL) return VRAM_NO_HOST_MEMORY;
    (void)gather_bundle(moment, grain, made);
    *bundles = (struct vr_bundles){.bundle = made, .count = count, .grain_bytes = grain, .end_segment = moment->segment_count};
    return VRAM_OK;
}

enum vram_status vr_bundles_page(const struct vr_moment *moment, size_t first, size_t most, struct vr_bundles *bundles) {
    const size_t left = first < moment->block_count ? moment->block_count - first : 0, count = left < most ? left : most;
    struct vr_bundle *made = malloc((count + 1) * sizeof *made);
    if (made == NULL) return VRAM_NO_HOST_MEMORY;
    for (size_t i = 0; i < count; i++) made[i] = (struct vr_bundle){first + i, first + i + 1};
    *bundles = (struct vr_bundles){.bundle = made, .count = count};
    VR_LOWER_BOUND(bundles->first_segment, s, 0, moment->segment_count, segment_end(moment, s) <= first);
    VR_LOWER_BOUND(bundles->end_segment, s, 0, moment->segment_count, moment->segments[s].first_block < first + count);
    if (bundles->end_segment < bundles->first_segment) bundles->end_segment = bundles->first_segment;
    return VRAM_OK;
}

void vr_bundles_release(struct vr_bundles *bundles) {
    free(bundles->bundle);
    *bundles = (struct vr_bundles){.bundle = NULL};
}

struct vr_bundle_sums vr_bundle_sum(const struct vr_moment *moment, const struct vr_bundle *bundle) {
    assert(bundle->first < bundle->end && bundle->end <= moment->block_count);
    const struct vr_moment_block *block = moment->blocks;
    const struct vr_moment_block *last = &block[bundle->end - 1];
    struct vr_bundle_sums sums = {.largest = bundle->first, .span_bytes = last->address + last->size_bytes - block[bundle->first].address};
    uint64_t pending = 0;
    uint8_t estimated = 0;
    for (size_t b = bundle->first; b < bundle->end; b++) {
        sums.bytes += block[b].size_bytes;
        sums.requested_bytes += block[b].requested_bytes;
        pending += (block[b].flags & VR_BLOCK_PENDING) != 0 ? block[b].size_bytes : 0;
        estimated |= block[b].flags & VR_BLOCK_ESTIMATED;
        if (block[b].size_bytes > block[sums.largest].size_bytes) sums.largest = b;
    }
    sums.flags = (uint8_t)((block[sums.largest].flags & VR_BLOCK_BEFORE) | estimated | (pending > sums.bytes / 2 ? VR_BLOCK_PENDING : 0));
    return sums;
}
