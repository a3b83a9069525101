#include "host/host_bins.h"

static uint64_t power_of_2(uint64_t size) { return size <= 1 ? 1 : (uint64_t)1 << (vr_log2_floor(size - 1) + 1); }

static uint64_t round_large(uint64_t size_bytes) {
    const uint64_t step = power_of_2(size_bytes) / 16;
    return vr_round_up(size_bytes, step < VR_HOST_LARGEST_STEP ? step : VR_HOST_LARGEST_STEP);
}

uint64_t vr_host_round(const struct vr_options *options, uint64_t size_bytes) {
    const uint64_t threshold = options->pinned_max_round_threshold_bytes;
    if (size_bytes > options->pinned_max_cached_bytes) return size_bytes; // it will not be cached
    if (threshold != VR_UNLIMITED && size_bytes > threshold) return size_bytes;
    if (threshold == VR_UNLIMITED && size_bytes > VR_HOST_ROUND_LIMIT) return round_large(size_bytes);
    return power_of_2(size_bytes);
}

unsigned vr_host_bin(uint64_t size) {
    const unsigned log = vr_log2_floor(size);
    return log * 8 + (log < 3 ? 0 : (unsigned)(size >> (log - 3)) & 7);
}

unsigned vr_host_bucket(uint64_t size) { return vr_log2_floor(power_of_2(size)); }

void vr_host_list_push(struct vr_host_block **list, struct vr_host_block *block) {
    block->previous = NULL;
    block->next = *list;
    if (*list != NULL) (*list)->previous = block;
    *list = block;
}

void vr_host_list_remove(struct vr_host_block **list, struct vr_host_block *block) {
    if (block->previous == NULL)
        *list = block->next;
    else
        block->previous->next = block->next;
    if (block->next != NULL) block->next->previous = block->previous;
    block->previous = block->next = NULL;
}

void vr_host_bins_insert(struct vr_host_block *block) {
    block->state = VR_HOST_FREE;
    vr_host_list_push(&block->pool->bins[vr_host_bin(block->size)], block);
}

void vr_host_bins_remove(struct vr_host_block *block) { vr_host_list_remove(&block->pool->bins[vr_host_bin(block->size)], block); }

// A power of two has its bin almost to itself, so the first bin usually has the answer.
struct vr_host_block *vr_host_bins_find(const struct vram_host_pool *pool, uint64_t size) {
    const uint64_t limit = vr_host_slack_limit(size);
    struct vr_host_block *best = NULL;
    for (unsigned bin = vr_host_bin(size); bin <= vr_host_bin(limit) && best == NULL; bin++) {
        for (struct vr_host_block *block = pool->bins[bin]; block != NULL; block = block->next) {
            if (block->size < size || block->size > limit) continue;
            if (best == NULL || block->size < best->size) best = block;
            if (block->size == size) break;
        }
    }
    return best;
}

struct vr_host_block *vr_host_bins_find_large(const struct vram_host_pool *pool) {
    struct vr_host_block *best = NULL;
    for (unsigned bin = vr_host_bin(VR_HOST_ROUND_LIMIT); bin < VR_HOST_BINS && best == NULL; bin++) {
        for (struct vr_host_block *block = pool->bins[bin]; block != NULL; block = block->next) {
            if (block->size <= VR_HOST_ROUND_LIMIT || block->origin == VRAM_HOST_RESERVED) continue;
            if (best == NULL || block->size < best->size) best = block;
        }
    }
    return best;
}
