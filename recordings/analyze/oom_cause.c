// Finds why a request failed: the layout of memory at that moment, the blocks that fragment it, and one cause of a closed list.
#include "analyze/oom_cause.h"

// Large segments and mapped ranges have at least this size; small ones are 2 MiB pieces.
#define LEAST_LARGE_BYTES (10 * VR_MIB)

// A claim that a range is mapped or not mapped at the moment, unless an earlier claim covers the same address.
struct layout_claim {
    struct vr_layout_range range;
    bool mapped;
};

static bool is_segment_action(uint8_t action) {
    return action == VR_ACTION_SEGMENT_ALLOC || action == VR_ACTION_SEGMENT_MAP || action == VR_ACTION_SEGMENT_FREE ||
           action == VR_ACTION_SEGMENT_UNMAP;
}

static void add_claim(struct layout_claim *claims, size_t *count, struct layout_claim claim, uint64_t size_bytes) {
    if (size_bytes == 0 || !vr_add_u64(claim.range.address, size_bytes, &claim.range.end)) return;
    claims[(*count)++] = claim;
}

static size_t collect_claims(const struct vr_view *view, size_t first, struct layout_claim *claims) {
    const struct vr_history *history = view->history;
    const struct vr_segments *segments = &view->model->segments;
    size_t count = 0;
    for (size_t i = first; i < history->count; i++) {
        if (!is_segment_action(history->action[i])) continue;
        const uint64_t size = history->size_bytes[i];
        const struct layout_claim claim = {
            .range = {.address = history->address[i],
                      .stream = vr_entry_stream(history, i),
                      .pool_first = history->pool_first[i],
                      .pool_second = history->pool_second[i],
                      .kind = size < LEAST_LARGE_BYTES ? VRAM_REPORT_KIND_SMALL : VRAM_REPORT_KIND_LARGE,
                      .expandable = history->action[i] == VR_ACTION_SEGMENT_MAP || history->action[i] == VR_ACTION_SEGMENT_UNMAP},
            // Undo: segments freed later existed; segments allocated later did not.
            .mapped = history->action[i] == VR_ACTION_SEGMENT_FREE || history->action[i] == VR_ACTION_SEGMENT_UNMAP,
        };
        add_claim(claims, &count, claim, size);
    }
    for (size_t i = 0; i < view->segment_count; i++) {
        const size_t row = view->segments[i];
        const struct layout_claim claim = {.range = {.address = segments->address[row],
                                                     .stream = segments->stream[row],
                                                     .pool_first = segments->pool_first[row],
                                                     .pool_second = segments->pool_second[row],
                                                     .kind = (enum vram_report_kind)segments->kind[row],
                                                     .expandable = segments->expandable[row] != 0},
                                           .mapped = true};
        add_claim(claims, &count, claim, segments->total_bytes[row]);
    }
    return count;
}

static size_t find_edge(const uint64_t *edges, size_t count, uint64_t value) {
    const uint64_t *found = bsearch(&value, edges, count, sizeof *edges, vr_order_u64);
    return (size_t)(found - edges);
}

// Returns the first unclaimed cell at or after `cell`. next[] is a forest with path halving.
static size_t unclaimed(size_t *next, size_t cell) {
    while (next[cell] != cell) {
        next[cell] = next[next[cell]];
        cell = next[cell];
    }
    return cell;
}

static bool same_owner(const struct vr_layout_range *a, const struct vr_layout_range *b) {
    return a->stream == b->stream && a->kind == b->kind && a->pool_first == b->pool_first && a->pool_second == b->pool_second;
}

// The cells between adjacent edges, each owned by the first claim that covers it.
struct cells {
    uint64_t *edges;
    size_t *next;
    uint32_t *owner; // 1 + claim
    size_t count;    // number of edges
};

static void release_cells(struct cells *cells) {
    free(cells->edges);
    free(cells->next);
    free(cells->owner);
}

static enum vram_status paint_claims(const struct layout_claim *claims, size_t claim_count, struct cells *cells) {
    cells->edges = malloc((2 * claim_count + 1) * sizeof *cells->edges);
    cells->next = malloc((2 * claim_count + 1) * sizeof *cells->next);
    cells->owner = calloc(2 * claim_count + 1, sizeof *cells->owner);
    if (cells->edges == NULL || cells->next == NULL || cells->owner == NULL) return VRAM_NO_HOST_MEMORY;
    for (size_t i = 0; i < claim_count; i++) {
        cells->edges[2 * i] = claims[i].range.address;
        cells->edges[2 * i + 1] = claims[i].range.end;
    }
    qsort(cells->edges, 2 * claim_count, sizeof *cells->edges, vr_order_u64);
    for (size_t i = 0; i < 2 * claim_count; i++) {
        if (cells->count == 0 || cells->edges[cells->count - 1] != cells->edges[i]) cells->edges[cells->count++] = cells->edges[i];
    }
    for (size_t i = 0; i <= cells->count; i++) cells->next[i] = i;
    for (size_t i = 0; i < claim_count; i++) {
        const size_t end = find_edge(cells->edges, cells->count, claims[i].range.end);
        size_t cell = unclaimed(cells->next, find_edge(cells->edges, cells->count, claims[i].range.address));
        for (; cell < end; cell = unclaimed(cells->next, cell)) {
            cells->owner[cell] = (uint32_t)i + 1;
            cells->next[cell] = cell + 1;
        }
    }
    return VRAM_OK;
}

// Joins adjacent cells of one claim, and adjacent pages of one owner, into ranges.
static size_t gather_ranges(const struct layout_claim *claims, const struct cells *cells, struct vr_layout_range *ranges) {
    size_t count = 0;
    uint32_t last = 0;
    for (size_t cell = 0; cell + 1 < cells->count; cell++) {
        const uint32_t owner = cells->owner[cell];
        if (owner == 0 || !claims[owner - 1].mapped) continue;
        const struct vr_layout_range *range = &claims[owner - 1].range;
        const struct vr_layout_range *before = count == 0 ? NULL : &ranges[count - 1];
        const bool touches = before != NULL && before->end == cells->edges[cell];
        const bool pages = touches && before->expandable && range->expandable && same_owner(before, range);
        if (!touches || (owner != last && !pages)) {
            ranges[count] = *range;
            ranges[count++].address = cells->edges[cell];
        }
        ranges[count - 1].end = cells->edges[cell + 1];
        last = owner;
    }
    return count;
}

enum vram_status vr_layout_at(const struct vr_view *view, int64_t event, struct vr_layout_range **ranges, size_t *count) {
    const size_t first = (size_t)(event + 1);
    size_t capacity = view->segment_count;
    for (size_t i = first; i < view->history->count; i++) capacity += is_segment_action(view->history->action[i]);
    if (capacity > UINT32_MAX / 4) return VRAM_NO_HOST_MEMORY;

    struct layout_claim *claims = malloc((capacity + 1) * sizeof *claims);
    struct vr_layout_range *found = malloc((2 * capacity + 1) * sizeof *found);
    struct cells cells = {0};
    enum vram_status status = claims == NULL || found == NULL ? VRAM_NO_HOST_MEMORY : VRAM_OK;
    if (status == VRAM_OK) {
        const size_t claim_count = collect_claims(view, first, claims);
        status = paint_claims(claims, claim_count, &cells);
        if (status == VRAM_OK) *count = gather_ranges(claims, &cells, found);
    }
    release_cells(&cells);
    free(claims);
    if (status != VRAM_OK) {
        free(found);
        return status;
    }
    *ranges = found;
    return VRAM_OK;
}

// ---- The few blocks that fragment free memory.

// A segment (or mapped range) with its live bytes.
struct holder {
    uint64_t size_bytes;
    uint64_t live_bytes;
    size_t first, end; // range of its blocks
};

static uint64_t length_of(const struct vr_live_block *block) { return block->end - block->address; }

static bool is_better_pin(const struct vr_pins *found, const struct vr_pins *best) {
    if (found->blocks == 0) return false;
    if (best->blocks == 0 || found->bytes != best->bytes) return best->blocks == 0 || found->bytes < best->bytes;
    return found->blocks < best->blocks;
}

static uint32_t largest_of(const struct vr_live_block *blocks, size_t first, size_t end) {
    size_t largest = first;
    for (size_t i = first; i < end; i++) {
        if (length_of(&blocks[i]) > length_of(&blocks[largest])) largest = i;
    }
    return blocks[largest].stack;
}

// Finds the cheapest run of adjacent blocks in a range whose removal makes room for the request: a sliding window.
static void weigh_windows(const struct vr_layout_range *range, const struct holder *holder, const struct vr_live_block *blocks,
                          uint64_t size_bytes, struct vr_pins *best) {
    struct vr_pins found = {0};
    size_t end = holder->first, from = 0, until = 0;
    for (size_t first = holder->first; first < holder->end; first++) {
        const uint64_t low = first == holder->first ? range->address : blocks[first - 1].end;
        // Blocks overlap in recordings that contradict themselves.
        while (end < holder->end && (blocks[end].address < low || blocks[end].address - low < size_bytes)) {
            found.bytes += length_of(&blocks[end++]);
            found.blocks++;
        }
        const uint64_t high = end < holder->end ? blocks[end].address : range->end;
        if (high < low || high - low < size_bytes) break;
        if (is_better_pin(&found, best)) {
            *best = found;
            from = first;
            until = end;
        }
        if (end == first) {
            end++;
        } else {
            found.bytes -= length_of(&blocks[first]);
            found.blocks--;
        }
    }
    if (until > from) best->stack = largest_of(blocks, from, until);
}

static int by_use(const void *a, const void *b) {
    const struct holder *x = a, *y = b;
    const double first = (double)x->live_bytes / (double)x->size_bytes, second = (double)y->live_bytes / (double)y->size_bytes;
    if (first != second) return VR_ORDER(first, second);
    return VR_ORDER(x->first, y->first);
}

// Takes the least used segments until they amount to what a new segment lacked.
static void weigh_segments(struct holder *holders, size_t count, const struct vr_live_block *blocks,
                           const struct vr_failed_request *request, struct vr_pins *best) {
    struct vr_pins found = {0};
    uint64_t gained = 0, largest = 0;
    if (count != 0) qsort(holders, count, sizeof *holders, by_use);
    for (size_t i = 0; i < count && gained < request->driver_bytes; i++) {
        gained += holders[i].size_bytes;
        found.bytes += holders[i].live_bytes;
        found.blocks += holders[i].end - holders[i].first;
        for (size_t b = holders[i].first; b < holders[i].end; b++) {
            if (length_of(&blocks[b]) <= largest) continue;
            largest = length_of(&blocks[b]);
            found.stack = blocks[b].stack;
        }
    }
    if (gained >= request->driver_bytes && is_better_pin(&found, best)) *best = found;
}

static struct holder measure_holder(const struct vr_layout_range *range, const struct vr_live_block *blocks, size_t block_count,
                                    size_t *next) {
    while (*next < block_count && blocks[*next].address < range->address) ++*next;
    struct holder holder = {.size_bytes = range->end - range->address, .first = *next};
    for (; *next < block_count && blocks[*next].address < range->end; ++*next) holder.live_bytes += length_of(&blocks[*next]);
    holder.end = *next;
    return holder;
}

enum vram_status vr_pins_find(const struct vr_layout_range *ranges, size_t range_count, const struct vr_live_block *blocks,
                              size_t block_count, const struct vr_failed_request *request, struct vr_pins *pins) {
    struct holder *segments = malloc((range_count + 1) * sizeof *segments);
    if (segments == NULL) return VRAM_NO_HOST_MEMORY;
    *pins = (struct vr_pins){0};
    size_t next = 0, count = 0;
    for (size_t r = 0; r < range_count; r++) {
        const struct vr_layout_range *range = &ranges[r];
        const struct holder holder = measure_holder(range, blocks, block_count, &next);
        if (range->pool_first != request->pool_first || range->pool_second != request->pool_second) continue;
        if (range->stream == request->stream && range->kind == request->kind)
            weigh_windows(range, &holder, blocks, request->size_bytes, pins);
        if (!range->expandable && holder.size_bytes != 0) segments[count++] = holder;
    }
    weigh_segments(segments, count, blocks, request, pins);
    free(segments);
    return VRAM_OK;
}

// ---- Finds why a request failed: one cause of a fixed list.

// A few blocks pin large free memory if together they are at most this part of the request.
#define PIN_PART 8u
// Memory outside the allocator is the cause only above this part of the device, because every process has a context.
#define OUTSIDE_PART 8u

static uint64_t driver_free(const struct vram_report_oom *oom) { return oom->has_device_free ? oom->device_free_bytes : 0; }

static bool is_limited(const struct vram_report_oom *oom) {
    if (oom->has_device_free && oom->device_free_bytes >= oom->segment_bytes) return true;
    // The process's limit is the bound: held plus free bytes reach it, except for rounding.
    return oom->limit_bytes != 0 && oom->room_bytes >= oom->limit_bytes - oom->limit_bytes / 64;
}

static bool is_pinned(const struct vram_report_oom *oom) { return oom->pin_blocks != 0 && oom->pin_bytes <= oom->size_bytes / PIN_PART; }

// Chooses among the free memory out of reach: the kind with the most bytes, if all kinds together would have sufficed. Otherwise OUTSIDE or
// FULL.
static enum vram_report_oom_cause out_of_reach(const struct vram_report_oom *oom, uint64_t missing) {
    const struct {
        enum vram_report_oom_cause cause;
        uint64_t bytes;
    } shares[] = {{VRAM_OOM_PENDING, oom->pending_bytes},
                  {VRAM_OOM_OTHER_STREAMS, oom->other_stream_bytes},
                  {VRAM_OOM_OTHER_POOLS, oom->other_pool_bytes},
                  {VRAM_OOM_PRIVATE_POOLS, oom->private_pool_bytes}};
    size_t largest = 0;
    uint64_t sum = 0;
    for (size_t i = 0; i < VR_COUNT_OF(shares); i++) {
        sum += shares[i].bytes;
        if (shares[i].bytes > shares[largest].bytes) largest = i;
    }
    if (sum >= missing && sum != 0) return shares[largest].cause;
    if (sum + oom->outside_bytes >= missing && oom->outside_bytes > oom->device_total_bytes / OUTSIDE_PART) return VRAM_OOM_OUTSIDE;
    return VRAM_OOM_FULL;
}

// Finds the cause for pinned host memory: the system has no more, or a limit of a container, the process or the driver refuses it.
static enum vram_report_oom_cause host_cause(const struct vram_report_oom *oom) {
    if (vr_oom_host_is_known(oom) && oom->device_free_bytes >= oom->size_bytes) return VRAM_OOM_LIMIT;
    const uint64_t pinned = oom->allocated_bytes + oom->pending_bytes, without_others = oom->device_free_bytes + oom->outside_bytes;
    return oom->outside_bytes > pinned && oom->size_bytes <= without_others ? VRAM_OOM_OUTSIDE : VRAM_OOM_FULL;
}

// Returns whether the room is unknown, as in a log that has only requests: nothing is known about the device's memory, or the request would
// have fitted according to what is known.
static bool is_room_unknown(const struct vram_report_oom *oom) {
    const uint64_t held = oom->reserved_bytes != 0 ? oom->reserved_bytes : oom->allocated_bytes + oom->pending_bytes;
    if (oom->has_device_free || oom->limit_bytes != 0) return false;
    return oom->room_bytes == 0 || (oom->room_bytes > held && oom->room_bytes - held >= oom->size_bytes);
}

enum vram_report_oom_cause vr_oom_cause(const struct vram_report_oom *oom) {
    if (!oom->has_picture) return VRAM_OOM_UNKNOWN;
    if (oom->is_host) return host_cause(oom);
    if (oom->usable_largest_bytes >= oom->size_bytes) return VRAM_OOM_CONTRADICTORY;
    if (is_limited(oom)) return VRAM_OOM_LIMIT;
    const uint64_t in_reach = driver_free(oom) + oom->usable_bytes;
    if (in_reach >= oom->size_bytes && oom->usable_bytes != 0) return is_pinned(oom) ? VRAM_OOM_PINNED : VRAM_OOM_FRAGMENTED;
    const uint64_t wanted = in_reach >= oom->size_bytes ? oom->segment_bytes : oom->size_bytes;
    const uint64_t missing = wanted > in_reach ? wanted - in_reach : 1;
    if (oom->driver_pool_bytes >= missing) return VRAM_OOM_DRIVER_POOLS;
    const enum vram_report_oom_cause cause = out_of_reach(oom, missing);
    return cause == VRAM_OOM_FULL && is_room_unknown(oom) ? VRAM_OOM_ROOM_UNKNOWN : cause;
}
