// Finds the state of a device before its first recorded event by undoing the history, last event first.
#include "replay/initial_state.h"

#include <stdio.h>

#include "base/hash.h"
#include "config/size_rules.h"

// ---- Contradictions in a history, counted and described.

static void start_anomaly(struct vr_start *start, enum vr_anomaly anomaly, size_t event) {
    start->anomalies[anomaly]++;
    start->anomaly_total++;
    // The undo walks backwards, so the anomaly found last is the first in the history.
    if (event != SIZE_MAX || start->anomaly_total == 1) {
        start->first_anomaly = anomaly;
        start->first_anomaly_event = event;
    }
}

void vr_start_describe(const struct vr_start *start, char *text, size_t capacity) {
    static const char *const sentences[] = {
#define SENTENCE(name, sentence) sentence,
        VR_ANOMALIES(SENTENCE)
#undef SENTENCE
    };
    const char *sentence = sentences[start->first_anomaly];
    if (start->first_anomaly_event == SIZE_MAX) {
        snprintf(text, capacity, "the history contradicts the final state in %llu places, e.g. %s",
                 (unsigned long long)start->anomaly_total, sentence);
    } else {
        snprintf(text, capacity, "the history contradicts the final state in %llu places, first at event %zu: %s",
                 (unsigned long long)start->anomaly_total, start->first_anomaly_event, sentence);
    }
}

// ---- Positions and sizes of the blocks of the initial state (replay.md §block-sizes).

uint64_t vr_start_round(const struct vr_options *options, uint64_t requested) {
    if (requested == 0) return VR_MIN_BLOCK;
    return requested < VR_REQUEST_LIMIT ? vr_round_request(options, requested) : requested;
}

// Returns how many bytes beyond its rounded request a block of unknown size may have: 0 if every remainder is split off, unlimited if none
// is.
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
        if (before->size > start->segments[i].address - before->address) start_anomaly(start, VR_ANOMALY_SEGMENT_OVERLAP, SIZE_MAX);
    }
    for (size_t i = 0; i < start->block_count; i++) {
        struct vr_start_block *block = &start->blocks[i];
        size_t above;
        VR_LOWER_BOUND(above, k, 0, start->segment_count, start->segments[k].address <= block->address);
        if (above == 0 || block->address - start->segments[above - 1].address >= start->segments[above - 1].size) {
            start_anomaly(start, VR_ANOMALY_BLOCK_OUTSIDE, SIZE_MAX);
            continue;
        }
        block->segment = (uint32_t)(above - 1);
    }
}

// Returns the room of block i: up to its segment's end or the next block of the initial state.
static uint64_t room_of(const struct vr_start *start, size_t i) {
    const struct vr_start_block *block = &start->blocks[i];
    const struct vr_start_segment *segment = &start->segments[block->segment];
    const uint64_t room = segment->address + segment->size - block->address;
    if (i + 1 == start->block_count) return room;
    const uint64_t distance = start->blocks[i + 1].address - block->address;
    return distance < room ? distance : room;
}

// Narrows the room of blocks of unknown size by allocations after them during their lifetimes. limit[i] is in bytes from the block's
// address.
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
    if (!start->segments[block->segment].small && vr_is_small(block->size)) start_anomaly(start, VR_ANOMALY_BLOCK_WRONG_POOL, SIZE_MAX);
    if (block->size > limit || block->size % VR_MIN_BLOCK != 0) start_anomaly(start, VR_ANOMALY_BLOCK_OVERLAP, SIZE_MAX);
}

// --- allocations outside all segments -------------------------------------------------------------------------------------------
// The address range [start, end) of a segment.
struct reserved_span {
    uint64_t start;
    uint64_t end;
};

static int span_order(const void *left, const void *right) {
    const uint64_t a = ((const struct reserved_span *)left)->start, b = ((const struct reserved_span *)right)->start;
    return VR_ORDER(a, b);
}

// Collects all address ranges that were reserved at any time, joined and ascending.
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
        if (above == 0 || address >= spans[above - 1].end) start_anomaly(start, VR_ANOMALY_ALLOC_OUTSIDE, event);
    }
    free(spans);
    return VRAM_OK;
}

// The second part of vr_start_find(): finds every block's segment, and the sizes of blocks of unknown size (replay.md §block-sizes).
static enum vram_status start_fit(const struct vr_recorded_device *recorded, struct vr_start *start) {
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

// ---- Undoes a history, last event first. See initial_state.h.

#define NEARBY_BYTES (64 * VR_MIB)
#define NO_ROW       UINT32_MAX // a map's value for an unknown address, minus one

// More than any device has. Tables grow with the replayed memory, most of all those of small blocks: a small file that claims petabytes
// must not exhaust the host's memory.
#define SEGMENT_BYTES_MAX (4096 * VR_GIB)
#define SMALL_BYTES_MAX   (32 * VR_GIB)

// The undo in progress: growing tables with dead rows, and maps from addresses to rows.
struct undo {
    const struct vr_recorded_device *recorded;
    struct vr_start *start;
    struct vr_map live;     // address -> 1 + row of the block
    struct vr_map reserved; // address -> 1 + row of the segment
    struct vr_mapped mapped;
    size_t block_capacity;
    size_t segment_capacity;
};

void vr_start_release(struct vr_start *start) {
    free(start->segments);
    free(start->blocks);
    *start = (struct vr_start){0};
}

static enum vram_status add_start_block(struct undo *undo, const struct vr_start_block *block, uint32_t *row) {
    struct vr_start *start = undo->start;
    if (start->block_count >= NO_ROW) return VRAM_LIMIT;
    VR_TRY(vr_grow((void **)&start->blocks, &undo->block_capacity, start->block_count + 1, sizeof *start->blocks));
    *row = (uint32_t)start->block_count;
    VR_TRY(vr_map_set(&undo->live, block->address, (uint64_t)*row + 1));
    start->blocks[start->block_count++] = *block;
    return VRAM_OK;
}

static enum vram_status add_start_segment(struct undo *undo, const struct vr_start_segment *segment) {
    struct vr_start *start = undo->start;
    if (start->segment_count >= NO_ROW) return VRAM_LIMIT;
    VR_TRY(vr_grow((void **)&start->segments, &undo->segment_capacity, start->segment_count + 1, sizeof *start->segments));
    VR_TRY(vr_map_set(&undo->reserved, segment->address, (uint64_t)start->segment_count + 1));
    start->segments[start->segment_count++] = *segment;
    return VRAM_OK;
}

// Returns whether a block or segment has a valid range: a multiple of 512 bytes.
static bool valid_extent(uint64_t address, uint64_t size) {
    uint64_t end = 0;
    return size > 0 && vr_add_u64(address, size, &end) && (address | size) % VR_MIN_BLOCK == 0;
}

// --- the final state ----------------------------------------------------------------------------------------------------
static enum vram_status load_blocks(struct undo *undo, uint32_t row) {
    const struct vr_segments *segments = &undo->recorded->model->segments;
    const struct vr_blocks *blocks = &undo->recorded->model->blocks;
    for (uint64_t b = segments->first_block[row]; b < segments->first_block[row + 1]; b++) {
        if (!vr_state_active(blocks->state[b])) continue;
        const struct vr_start_block block = {.address = blocks->address[b],
                                             .size = blocks->size_bytes[b],
                                             .requested = blocks->requested_bytes[b],
                                             .death = VR_NEVER,
                                             .pending = !vr_state_allocated(blocks->state[b]),
                                             .size_known = true};
        uint32_t added = 0;
        if (vr_map_get(&undo->live, block.address) != 0) {
            start_anomaly(undo->start, VR_ANOMALY_BLOCK_OVERLAP, SIZE_MAX);
            continue;
        }
        VR_TRY(add_start_block(undo, &block, &added));
    }
    return VRAM_OK;
}

static enum vram_status load_segment(struct undo *undo, uint32_t row) {
    const struct vr_segments *segments = &undo->recorded->model->segments;
    const struct vr_start_segment segment = {.address = segments->address[row],
                                             .size = segments->total_bytes[row],
                                             .stream = segments->stream[row],
                                             .counter = segments->counter[row],
                                             .pool = vr_recorded_device_segment_pool(undo->recorded, row),
                                             .small = segments->kind[row] == VR_KIND_SMALL ||
                                                      (segments->kind[row] == VR_KIND_UNKNOWN && segments->total_bytes[row] <= 2 * VR_MIB),
                                             .expandable = segments->expandable[row] != 0};
    if ((segments->has[row] & VR_HAS_COUNTER) != 0) undo->start->counters = true;
    enum vram_status status = VRAM_INVALID_ARGUMENT;
    if (valid_extent(segment.address, segment.size)) {
        if (segment.expandable) {
            const struct vr_mapped_range range = {segment.address, segment.address + segment.size, segment.stream,
                                                  segment.small ? VR_MAPPED_SMALL : VR_MAPPED_LARGE, segment.pool};
            status = vr_mapped_add(&undo->mapped, &range);
        } else if (vr_map_get(&undo->reserved, segment.address) == 0) {
            status = add_start_segment(undo, &segment);
        }
    }
    if (status == VRAM_INVALID_ARGUMENT) start_anomaly(undo->start, VR_ANOMALY_SEGMENT_OVERLAP, SIZE_MAX);
    return status == VRAM_INVALID_ARGUMENT ? VRAM_OK : status;
}

// --- one event back -------------------------------------------------------------------------------------------------------
static void undo_alloc(struct undo *undo, size_t event, uint64_t address) {
    const uint32_t row = (uint32_t)vr_map_take(&undo->live, address) - 1;
    if (row == NO_ROW) {
        start_anomaly(undo->start, VR_ANOMALY_ALLOC_NOT_LIVE, event);
    } else {
        undo->start->blocks[row].size = 0; // marks the row as dead: a live block of known size has more than 0 bytes
        undo->start->blocks[row].size_known = true;
    }
}

// Undoes a free: before its completion the block was pending, before its request allocated.
static enum vram_status undo_free(struct undo *undo, size_t event, uint64_t address, uint64_t size, bool completed) {
    const uint32_t row = (uint32_t)vr_map_get(&undo->live, address) - 1;
    if (row == NO_ROW) {
        const struct vr_start_block block = {
            .address = address, .requested = size, .death = completed ? (uint32_t)event : VR_NEVER, .pending = completed};
        uint32_t added = 0;
        const bool small = vr_start_round(undo->recorded->options, size) <= VR_MIB;
        vr_mapped_settle(&undo->mapped, address, small ? VR_MAPPED_SMALL : VR_MAPPED_LARGE);
        return add_start_block(undo, &block, &added);
    }
    if (completed || !undo->start->blocks[row].pending) {
        start_anomaly(undo->start, VR_ANOMALY_FREE_STILL_LIVE, event);
    } else {
        undo->start->blocks[row].pending = false;
    }
    return VRAM_OK;
}

static void undo_segment_alloc(struct undo *undo, size_t event, uint64_t address, uint64_t size) {
    const uint32_t row = (uint32_t)vr_map_get(&undo->reserved, address) - 1;
    if (row == NO_ROW || undo->start->segments[row].size != size) {
        start_anomaly(undo->start, VR_ANOMALY_SEGMENT_MISSING, event);
        return;
    }
    (void)vr_map_take(&undo->reserved, address);
    undo->start->segments[row].size = 0; // marks the row as dead
}

static enum vram_status undo_segment_free(struct undo *undo, size_t event, uint64_t address, uint64_t size) {
    const struct vr_start_segment segment = {.address = address,
                                             .size = size,
                                             .stream = vr_entry_stream(undo->recorded->history, event),
                                             .pool = vr_recorded_device_pool(undo->recorded, event),
                                             .small = size == 2 * VR_MIB};
    if (vr_map_get(&undo->reserved, address) != 0 || !valid_extent(address, size)) {
        start_anomaly(undo->start, VR_ANOMALY_SEGMENT_STILL_THERE, event);
        return VRAM_OK;
    }
    return add_start_segment(undo, &segment);
}

static bool same_owner(const struct vr_mapped_range *a, const struct vr_mapped_range *b) {
    return a->stream == b->stream && a->owner == b->owner;
}

// Returns the pool of a range that touches the unmapped one: adjacent ranges of an owner belong to the same segment, and so to the same
// pool.
static enum vr_mapped_pool pool_of_neighbours(const struct undo *undo, const struct vr_mapped_range *range) {
    const struct vr_mapped_range *before = vr_mapped_before(&undo->mapped, range->start);
    const struct vr_mapped_range *after = vr_mapped_after(&undo->mapped, range->start);
    if (before != NULL && same_owner(before, range) && before->end == range->start) return before->pool;
    if (after != NULL && same_owner(after, range) && after->start == range->end) return after->pool;
    return VR_MAPPED_UNKNOWN;
}

static enum vram_status undo_unmap(struct undo *undo, size_t event, uint64_t address, uint64_t size) {
    enum vram_status status = VRAM_INVALID_ARGUMENT;
    if (valid_extent(address, size)) {
        struct vr_mapped_range range = {.start = address,
                                        .end = address + size,
                                        .stream = vr_entry_stream(undo->recorded->history, event),
                                        .owner = vr_recorded_device_pool(undo->recorded, event)};
        range.pool = pool_of_neighbours(undo, &range);
        status = vr_mapped_join(&undo->mapped, &range);
    }
    if (status == VRAM_INVALID_ARGUMENT) start_anomaly(undo->start, VR_ANOMALY_RANGE_STILL_THERE, event);
    return status == VRAM_INVALID_ARGUMENT ? VRAM_OK : status;
}

static enum vram_status undo_map(struct undo *undo, size_t event, uint64_t address, uint64_t size) {
    enum vram_status status = VRAM_INVALID_ARGUMENT;
    if (valid_extent(address, size)) status = vr_mapped_cut(&undo->mapped, address, address + size);
    if (status == VRAM_INVALID_ARGUMENT) start_anomaly(undo->start, VR_ANOMALY_RANGE_MISSING, event);
    return status == VRAM_INVALID_ARGUMENT ? VRAM_OK : status;
}

static enum vram_status undo_event(struct undo *undo, size_t event) {
    const struct vr_history *history = undo->recorded->history;
    const uint64_t address = history->address[event], size = history->size_bytes[event];
    switch ((enum vr_action)history->action[event]) {
    case VR_ACTION_ALLOC: undo_alloc(undo, event, address); return VRAM_OK;
    case VR_ACTION_FREE_COMPLETED: return undo_free(undo, event, address, size, true);
    case VR_ACTION_FREE_REQUESTED: return undo_free(undo, event, address, size, false);
    case VR_ACTION_FREE: VR_TRY(undo_free(undo, event, address, size, true)); return undo_free(undo, event, address, size, false);
    case VR_ACTION_SEGMENT_ALLOC: undo_segment_alloc(undo, event, address, size); return VRAM_OK;
    case VR_ACTION_SEGMENT_FREE: return undo_segment_free(undo, event, address, size);
    case VR_ACTION_SEGMENT_MAP: return undo_map(undo, event, address, size);
    case VR_ACTION_SEGMENT_UNMAP: return undo_unmap(undo, event, address, size);
    default: return VRAM_OK;
    }
}

// --- the result -------------------------------------------------------------------------------------------------------------
static int segment_order(const void *left, const void *right) {
    const uint64_t a = ((const struct vr_start_segment *)left)->address, b = ((const struct vr_start_segment *)right)->address;
    return VR_ORDER(a, b);
}

static int block_order(const void *left, const void *right) {
    const uint64_t a = ((const struct vr_start_block *)left)->address, b = ((const struct vr_start_block *)right)->address;
    return VR_ORDER(a, b);
}

// Returns the distance to other memory of the same owner, or NEARBY_BYTES if it is farther away and may belong to another segment:
// reservations are longer, but the small pool rarely has that much mapped.
static uint64_t distance_to(const struct vr_mapped_range *range, const struct vr_mapped_range *other) {
    if (other == NULL || !same_owner(other, range) || other->pool == VR_MAPPED_UNKNOWN) return NEARBY_BYTES;
    const uint64_t distance = other->start < range->start ? range->start - other->end : other->start - range->end;
    return distance < NEARBY_BYTES ? distance : NEARBY_BYTES;
}

// Guesses the pool of a range that no block identified: small if it is not a multiple of large pages, otherwise the pool of the nearest
// memory.
static enum vr_mapped_pool guess_pool(const struct undo *undo, const struct vr_mapped_range *range) {
    const struct vr_mapped_range *before = range->start == 0 ? NULL : vr_mapped_before(&undo->mapped, range->start - 1);
    const struct vr_mapped_range *after = vr_mapped_after(&undo->mapped, range->start);
    const uint64_t below = distance_to(range, before), above = distance_to(range, after);
    if ((range->end - range->start) % vr_recorded_device_page(undo->recorded->options, false) != 0) return VR_MAPPED_SMALL;
    if (below == NEARBY_BYTES && above == NEARBY_BYTES) return VR_MAPPED_LARGE;
    return below <= above ? before->pool : after->pool;
}

// Converts the ranges to segments; joins those that touch, because blocks may have identified their pools only later.
static enum vram_status collect_ranges(struct undo *undo) {
    struct vr_start *start = undo->start;
    const size_t first = start->segment_count;
    const struct vr_mapped_range *range = vr_mapped_before(&undo->mapped, 0);
    if (range == NULL) range = vr_mapped_after(&undo->mapped, 0);
    for (; range != NULL; range = vr_mapped_after(&undo->mapped, range->start)) {
        if (range->pool == VR_MAPPED_UNKNOWN) vr_mapped_settle(&undo->mapped, range->start, guess_pool(undo, range));
        struct vr_start_segment *last = start->segment_count > first ? &start->segments[start->segment_count - 1] : NULL;
        const struct vr_start_segment segment = {.address = range->start,
                                                 .size = range->end - range->start,
                                                 .stream = range->stream,
                                                 .pool = range->owner,
                                                 .small = range->pool == VR_MAPPED_SMALL,
                                                 .expandable = true};
        if (last != NULL && last->address + last->size == segment.address && last->stream == segment.stream && last->pool == segment.pool &&
            last->small == segment.small) {
            last->size += segment.size;
            continue;
        }
        VR_TRY(vr_grow((void **)&start->segments, &undo->segment_capacity, start->segment_count + 1, sizeof *start->segments));
        start->segments[start->segment_count++] = segment;
    }
    return VRAM_OK;
}

// Drops dead rows, adds the mapped ranges, and sorts by address.
static enum vram_status collect_start(struct undo *undo) {
    struct vr_start *start = undo->start;
    size_t kept = 0;
    for (size_t i = 0; i < start->block_count; i++) {
        if (start->blocks[i].size != 0 || !start->blocks[i].size_known) start->blocks[kept++] = start->blocks[i];
    }
    start->block_count = kept;
    kept = 0;
    for (size_t i = 0; i < start->segment_count; i++) {
        if (start->segments[i].size != 0) start->segments[kept++] = start->segments[i];
    }
    start->segment_count = kept;
    VR_TRY(collect_ranges(undo));
    if (start->segment_count > 1) qsort(start->segments, start->segment_count, sizeof *start->segments, segment_order);
    if (start->block_count > 1) qsort(start->blocks, start->block_count, sizeof *start->blocks, block_order);
    return VRAM_OK;
}

static enum vram_status walk_back(struct undo *undo) {
    const struct vr_recorded_device *recorded = undo->recorded;
    for (size_t i = 0; i < recorded->segment_count; i++) {
        VR_TRY(load_segment(undo, recorded->segments[i]));
        VR_TRY(load_blocks(undo, recorded->segments[i]));
    }
    for (size_t event = recorded->history->count; event-- > 0;) {
        if (!vr_recorded_device_leaves_out(recorded, event)) VR_TRY(undo_event(undo, event));
    }
    return collect_start(undo);
}

static void check_totals(struct vr_start *start) {
    uint64_t total = 0, small = 0;
    for (size_t i = 0; i < start->segment_count; i++) {
        const struct vr_start_segment *segment = &start->segments[i];
        const bool fits = segment->size <= SEGMENT_BYTES_MAX - total && (!segment->small || segment->size <= SMALL_BYTES_MAX - small);
        if (!fits) {
            start_anomaly(start, VR_ANOMALY_SEGMENT_OVERLAP, SIZE_MAX);
            return;
        }
        total += segment->size;
        small += segment->small ? segment->size : 0;
    }
}

enum vram_status vr_start_find(const struct vr_recorded_device *recorded, struct vr_start *start) {
    *start = (struct vr_start){.first_anomaly_event = SIZE_MAX};
    struct undo undo = {.recorded = recorded, .start = start};
    enum vram_status status = walk_back(&undo);
    if (status == VRAM_OK) check_totals(start);
    if (status == VRAM_OK) status = start_fit(recorded, start);
    vr_map_release(&undo.live);
    vr_map_release(&undo.reserved);
    vr_mapped_release(&undo.mapped);
    if (status != VRAM_OK) vr_start_release(start);
    return status;
}
