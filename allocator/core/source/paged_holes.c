// Free bytes behind windows, as a sorted array: looked at by the slow way only, and short.
#include "core/source/paged.h"

size_t vr_paged_hole_position(const struct vr_paged_shard *own, uint64_t address) {
    size_t above;
    VR_LOWER_BOUND(above, i, 0, own->hole_count, own->holes[i].low <= address);
    return above;
}

static void insert_at(struct vr_paged_shard *own, size_t at, uint64_t low, uint64_t high) {
    assert(own->hole_count < own->holes_capacity);
    memmove(&own->holes[at + 1], &own->holes[at], (own->hole_count - at) * sizeof *own->holes);
    own->holes[at] = (struct vr_paged_range){low, high};
    own->hole_count++;
}

static void erase_at(struct vr_paged_shard *own, size_t at) {
    own->hole_count--;
    memmove(&own->holes[at], &own->holes[at + 1], (own->hole_count - at) * sizeof *own->holes);
}

void vr_paged_hole_cut(struct vr_paged_shard *own, uint64_t low, uint64_t high) {
    const size_t at = vr_paged_hole_position(own, low) - 1;
    struct vr_paged_range *hole = &own->holes[at];
    assert(at < own->hole_count && hole->low <= low && high <= hole->high);
    const uint64_t end = hole->high;
    if (hole->low == low && end == high) {
        erase_at(own, at);
    } else if (hole->low == low) {
        hole->low = high;
    } else {
        hole->high = low;
        if (end != high) insert_at(own, at + 1, high, end);
    }
}

void vr_paged_hole_add(struct vr_paged_shard *own, uint64_t low, uint64_t high) {
    const size_t at = vr_paged_hole_position(own, low);
    struct vr_paged_range *below = at == 0 ? NULL : &own->holes[at - 1], *above = at == own->hole_count ? NULL : &own->holes[at];
    assert((below == NULL || below->high <= low) && (above == NULL || high <= above->low));
    const bool joins_below = below != NULL && below->high == low, joins_above = above != NULL && above->low == high;
    if (joins_below && joins_above) {
        below->high = above->high;
        erase_at(own, at);
    } else if (joins_below) {
        below->high = high;
    } else if (joins_above) {
        above->low = low;
    } else {
        insert_at(own, at, low, high);
    }
}

const struct vr_paged_range *vr_paged_hole_fit(const struct vr_paged_shard *own, uint64_t size) {
    const struct vr_paged_range *best = NULL;
    uint64_t least = UINT64_MAX;
    for (size_t i = 0; i < own->hole_count; i++) {
        const uint64_t length = own->holes[i].high - own->holes[i].low;
        if (length < size || length >= least) continue;
        best = &own->holes[i];
        least = length;
    }
    return best;
}

const struct vr_paged_range *vr_paged_hole_before(const struct vr_paged_shard *own, uint64_t address) {
    const size_t above = vr_paged_hole_position(own, address);
    return above != 0 && own->holes[above - 1].high == address ? &own->holes[above - 1] : NULL;
}
