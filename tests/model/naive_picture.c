// The naive model: queries, and its consistency check.
#include "model/naive_inside.h"

#include <stdlib.h>

const struct vram_stats *naive_stats(const struct naive *naive, uint32_t device) { return &naive->device[device].stats; }
uint64_t naive_memory_used(const struct naive *naive, uint32_t device) { return naive->device[device].used_bytes; }
const struct vram_oom *naive_oom(const struct naive *naive) { return &naive->oom; }

struct vr_record *naive_records(struct naive *naive, size_t *count) {
    *count = naive->record_count;
    return naive->records;
}

void naive_forget_records(struct naive *naive) { naive->record_count = 0; }

// Calls `each` for every stat of the device.
static void for_each_stat(struct vram_stats *stats, void (*each)(struct vram_stat *stat)) {
#define EACH_POOL(name, is_bytes, text)                                                                                                    \
    for (int pool = 0; pool < VRAM_STAT_POOLS; pool++) each(&stats->name[pool]);
    VRAM_STAT_FAMILIES(EACH_POOL)
#undef EACH_POOL
    each(&stats->oversize_allocations);
    each(&stats->oversize_segments);
}

static void reset_peak(struct vram_stat *stat) { stat->peak = stat->current; }
static void reset_sums(struct vram_stat *stat) { stat->allocated = stat->freed = 0; }

// Calls `each` for every stat of the private pools of the device.
static void for_each_pool_stat(struct naive *naive, uint32_t device, void (*each)(struct vram_stat *stat)) {
    for (size_t i = 0; i < naive->pool_count; i++) {
        if (naive->pools[i]->device != device) continue;
        for (int pool = 0; pool < VRAM_STAT_POOLS; pool++) each(&naive->pools[i]->reserved[pool]);
    }
}

void naive_reset_peak(struct naive *naive, uint32_t device) {
    for_each_stat(&naive->device[device].stats, reset_peak);
    for_each_pool_stat(naive, device, reset_peak);
}

void naive_reset_accumulated(struct naive *naive, uint32_t device) {
    struct vram_stats *stats = &naive->device[device].stats;
    for_each_stat(stats, reset_sums);
    for_each_pool_stat(naive, device, reset_sums);
    stats->num_alloc_retries = stats->num_ooms = stats->num_sync_all_streams = 0;
    stats->num_device_alloc = stats->num_device_free = stats->num_oom_rejections = 0;
}

static int by_address(const void *left, const void *right) {
    const uint64_t a = ((const struct vram_block_view *)left)->block.address, b = ((const struct vram_block_view *)right)->block.address;
    return a < b ? -1 : a > b;
}

static uint64_t mapped_bytes(const struct naive_segment *segment) {
    uint64_t bytes = 0;
    for (const struct naive_block *block = segment->first; block; block = block->next)
        if (block->state != NAIVE_UNMAPPED) bytes += block->size_bytes;
    return bytes;
}

const struct vram_block_view *naive_picture(struct naive *naive, uint32_t ordinal, size_t *count) {
    static const enum vram_block_state states[] = {
        [NAIVE_FREE] = VRAM_BLOCK_FREE, [NAIVE_ALLOCATED] = VRAM_BLOCK_ALLOCATED, [NAIVE_PENDING] = VRAM_BLOCK_PENDING};
    const struct naive_device *device = &naive->device[ordinal];
    *count = 0;
    for (size_t i = 0; i < device->segment_count; i++) {
        const struct naive_segment *segment = device->segments[i];
        const uint64_t segment_bytes = mapped_bytes(segment);
        for (const struct naive_block *block = segment->first; block; block = block->next) {
            if (block->state == NAIVE_UNMAPPED) continue;
            naive_make_room((void **)&naive->picture, &naive->picture_capacity, *count + 1, sizeof *naive->picture);
            naive->picture[(*count)++] = (struct vram_block_view){
                .block = {.address = block->address,
                          .size_bytes = block->size_bytes,
                          .requested_bytes = block->state == NAIVE_FREE ? 0 : block->requested_bytes,
                          .segment_address = segment->address,
                          .segment_bytes = segment_bytes,
                          .stream = segment->stream,
                          .device = ordinal,
                          .expandable = segment->page_bytes != 0,
                          .pool = segment->pool ? segment->pool->id : (struct vram_pool_id){0, 0}},
                .state = states[block->state],
                .small_pool = segment->small,
            };
        }
    }
    for (size_t i = 0; i < naive->direct_count; i++) {
        const struct naive_direct *direct = &naive->direct[i];
        if (direct->device != ordinal) continue;
        naive_make_room((void **)&naive->picture, &naive->picture_capacity, *count + 1, sizeof *naive->picture);
        naive->picture[(*count)++] = (struct vram_block_view){
            .block = {.address = direct->address,
                      .size_bytes = direct->size_bytes,
                      .requested_bytes = direct->size_bytes,
                      .segment_address = direct->address,
                      .segment_bytes = direct->size_bytes,
                      .stream = direct->stream,
                      .device = ordinal},
            .state = VRAM_BLOCK_ALLOCATED,
        };
    }
    if (*count) qsort(naive->picture, *count, sizeof *naive->picture, by_address);
    return naive->picture;
}

// --- consistency check -----------------------------------------------------------------------------------------------------

static void add(struct vram_stat *stat, bool small, uint64_t by) {
    stat[VRAM_STAT_ALL].current += (int64_t)by;
    stat[small ? VRAM_STAT_SMALL_POOL : VRAM_STAT_LARGE_POOL].current += (int64_t)by;
}

static const char *count_block(const struct naive_block *block, struct vram_stats *counted) {
    const struct naive_segment *segment = block->segment;
    const bool small = segment->small;
    if (block->next && (block->next->prev != block || block->next->address != block->address + block->size_bytes)) return "neighbours part";
    if (block->state == NAIVE_UNMAPPED) return NULL;
    add(counted->reserved_bytes, small, block->size_bytes);
    if (block->state == NAIVE_FREE) {
        if (!segment->page_bytes && (block->prev || block->next)) {
            add(counted->inactive_split, small, 1);
            add(counted->inactive_split_bytes, small, block->size_bytes);
        }
        return NULL;
    }
    add(counted->active, small, 1);
    add(counted->active_bytes, small, block->size_bytes);
    add(counted->requested_bytes, small, block->requested_bytes);
    if (block->state == NAIVE_PENDING) return (block->events > 0) != block->deferred ? NULL : "pending without a reason";
    add(counted->allocation, small, 1);
    add(counted->allocated_bytes, small, block->size_bytes);
    return NULL;
}

const char *naive_check(struct naive *naive, uint32_t ordinal) {
    const struct naive_device *device = &naive->device[ordinal];
    struct vram_stats counted = {0};
    for (size_t i = 0; i < device->segment_count; i++) {
        const struct naive_segment *segment = device->segments[i];
        if (!segment->page_bytes) add(counted.segment, segment->small, 1);
        uint64_t bytes = 0;
        for (const struct naive_block *block = segment->first; block; block = block->next) {
            const char *wrong = count_block(block, &counted);
            if (wrong) return wrong;
            bytes += block->size_bytes;
        }
        if (bytes != segment->size_bytes || segment->first->address != segment->address) return "blocks do not cover their segment";
    }
#define COMPARE(name, is_bytes, text)                                                                                                      \
    for (int pool = 0; pool < VRAM_STAT_POOLS; pool++)                                                                                     \
        if (counted.name[pool].current != device->stats.name[pool].current)                                                                \
            return "wrong " #name;                                                                                                         \
        else if (device->stats.name[pool].peak < counted.name[pool].current)                                                               \
            return "peak too low: " #name;
    VRAM_STAT_FAMILIES(COMPARE)
#undef COMPARE
    return (uint64_t)counted.reserved_bytes[VRAM_STAT_ALL].current == device->held_bytes ? NULL : "wrong held bytes";
}
