// start_sizes.c: where the blocks of the start state lie and how large they were (replay.md §block-sizes).
#include "core/size_rules.h"
#include "replay/start.h"

uint64_t vr_start_round(const struct vr_options *options, uint64_t requested) {
    if (requested == 0) return VR_MIN_BLOCK;
    return requested < VR_REQUEST_LIMIT ? vr_round_request(options, requested) : requested;
}

// How many bytes beyond its rounded request a block of unknown size may have: 0 where every remainder is split off, any where none is.
static uint64_t possible_leftover(const struct vr_recorded_device *recorded, const struct vr_start_segment *segment, uint64_t rounded) {
    const struct vr_options *options = recorded->options;
    if (recorded->no_split != NULL && recorded->no_split[segment->pool] && !segment->expandable) return UINT64_MAX;
    if (segment->small || segment->expandable) return 0;
    if (options->expandable_segments && !vr_recorded_device_has_functions(recorded, segment->pool)) return 0;
    return rounded < options->max_split_bytes ? VR_MIB : options->max_non_split_rounding_bytes;
}

static void place_blocks(struct vr_start *start) {
    for (size_t i = 1; i < start->segment_count; i++) {
        const struct vr_start_segment *before = &start->segments[i - 1];
        if (before->size > start->segments[i].address - before->address) vr_start_anomaly(start, VR_ANOMALY_SEGMENT_OVERLAP, SIZE_MAX);
    }
    for (size_t i = 0; i < start->block_count; i++) {
        struct vr_start_block *block = &start->blocks[i];
        size_t above;
        VR_LOWER_BOUND(above, k, 0, start->segment_count, start->segments[k].address <= block->address);
        if (above == 0 || block->address - start->segments[above - 1].address >= start->segments[above - 1].size) {
            vr_start_anomaly(start, VR_ANOMALY_BLOCK_OUTSIDE, SIZE_MAX);
            continue;
        }
        block->segment = (uint32_t)(above - 1);
    }
}

// Where block i must end at the latest: at its segment's end or at the next start block.
static uint64_t room_of(const struct vr_start *start, size_t i) {
    const struct vr_start_block *block = &start->blocks[i];
    const struct vr_start_segment *segment = &start->segments[block->segment];
    const uint64_t room = segment->address + segment->size - block->address;
    if (i + 1 == start->block_count) return room;
    const uint64_t distance = start->blocks[i + 1].address - block->address;
    return distance < room ? distance : room;
}

// Narrows the room of unknown blocks by what was allocated behind them while they lived. limit[i] is bytes from the block's address.
static void look_at_allocations(const struct vr_recorded_device *recorded, const struct vr_start *start, uint64_t *limit) {
    const struct vr_history *history = recorded->history;
    for (size_t event = 0; event < history->count; event++) {
        if (history->action[event] != VR_ACTION_ALLOC || vr_recorded_device_leaves_out(recorded, event)) continue;
        size_t above;
        VR_LOWER_BOUND(above, i, 0, start->block_count, start->blocks[i].address <= history->address[event]);
        if (above == 0 || start->blocks[above - 1].size_known || event >= start->blocks[above - 1].death) continue;
        const uint64_t distance = history->address[event] - start->blocks[above - 1].address;
        if (distance < limit[above - 1]) limit[above - 1] = distance;
    }
}

static void settle_size(const struct vr_recorded_device *recorded, struct vr_start *start, size_t i, uint64_t limit) {
    struct vr_start_block *block = &start->blocks[i];
    if (!block->size_known) {
        const uint64_t rounded = vr_start_round(recorded->options, block->requested);
        const uint64_t leftover = possible_leftover(recorded, &start->segments[block->segment], rounded);
        block->size = rounded;
        start->sizes_unknown++;
        if (leftover > 0 && limit > rounded && limit - rounded <= leftover) {
            block->size = limit;
            start->sizes_from_neighbour++;
        }
    }
    if (!start->segments[block->segment].small && vr_is_small(block->size)) vr_start_anomaly(start, VR_ANOMALY_BLOCK_WRONG_POOL, SIZE_MAX);
    if (block->size > limit || block->size % VR_MIN_BLOCK != 0) vr_start_anomaly(start, VR_ANOMALY_BLOCK_OVERLAP, SIZE_MAX);
}

// --- allocations outside all segments -------------------------------------------------------------------------------------------
// An address range [start, end) that a segment had.
struct reserved_span {
    uint64_t start;
    uint64_t end;
};

static int span_order(const void *left, const void *right) {
    const uint64_t a = ((const struct reserved_span *)left)->start, b = ((const struct reserved_span *)right)->start;
    return VR_ORDER(a, b);
}

// Every range of addresses that was reserved at some time, joined and ascending.
static size_t reserved_spans(const struct vr_recorded_device *recorded, const struct vr_start *start, struct reserved_span *spans) {
    const struct vr_history *history = recorded->history;
    size_t count = 0, joined = 0;
    for (size_t i = 0; i < start->segment_count; i++) {
        spans[count++] = (struct reserved_span){start->segments[i].address, start->segments[i].address + start->segments[i].size};
    }
    for (size_t event = 0; event < history->count; event++) {
        uint64_t end = 0;
        if (history->action[event] != VR_ACTION_SEGMENT_ALLOC && history->action[event] != VR_ACTION_SEGMENT_MAP) continue;
        if (vr_recorded_device_leaves_out(recorded, event) || !vr_add_u64(history->address[event], history->size_bytes[event], &end))
            continue;
        spans[count++] = (struct reserved_span){history->address[event], end};
    }
    if (count > 1) qsort(spans, count, sizeof *spans, span_order);
    for (size_t i = 0; i < count; i++) {
        if (joined > 0 && spans[i].start <= spans[joined - 1].end) {
            if (spans[i].end > spans[joined - 1].end) spans[joined - 1].end = spans[i].end;
        } else {
            spans[joined++] = spans[i];
        }
    }
    return joined;
}

static enum vram_status find_strays(const struct vr_recorded_device *recorded, struct vr_start *start) {
    const struct vr_history *history = recorded->history;
    struct reserved_span *spans = malloc((start->segment_count + history->count + 1) * sizeof *spans);
    if (spans == NULL) return VRAM_NO_HOST_MEMORY;
    const size_t count = reserved_spans(recorded, start, spans);
    for (size_t event = history->count; event-- > 0;) {
        if (history->action[event] != VR_ACTION_ALLOC || vr_recorded_device_leaves_out(recorded, event)) continue;
        const uint64_t address = history->address[event];
        size_t above;
        VR_LOWER_BOUND(above, i, 0, count, spans[i].start <= address);
        if (above == 0 || address >= spans[above - 1].end) vr_start_anomaly(start, VR_ANOMALY_ALLOC_OUTSIDE, event);
    }
    free(spans);
    return VRAM_OK;
}

enum vram_status vr_start_fit(const struct vr_recorded_device *recorded, struct vr_start *start) {
    place_blocks(start);
    VR_TRY(find_strays(recorded, start));
    if (start->block_count == 0 || start->anomaly_total > 0) return VRAM_OK;
    uint64_t *limit = malloc(start->block_count * sizeof *limit);
    if (limit == NULL) return VRAM_NO_HOST_MEMORY;
    for (size_t i = 0; i < start->block_count; i++) limit[i] = room_of(start, i);
    look_at_allocations(recorded, start, limit);
    for (size_t i = 0; i < start->block_count; i++) settle_size(recorded, start, i, limit[i]);
    free(limit);
    return VRAM_OK;
}
