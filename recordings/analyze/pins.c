// Which few blocks keep large free memory apart.
#include "analyze/oom_cause.h"

// A segment (or mapped range) with what is in use of it.
struct holder {
    uint64_t size_bytes;
    uint64_t live_bytes;
    size_t first, end; // its blocks
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

// The cheapest run of neighbouring blocks of one range with room for the request once they are gone: two bounds that only move up.
static void weigh_windows(const struct vr_layout_range *range, const struct holder *holder, const struct vr_live_block *blocks,
                          uint64_t size_bytes, struct vr_pins *best) {
    struct vr_pins found = {0};
    size_t end = holder->first, from = 0, until = 0;
    for (size_t first = holder->first; first < holder->end; first++) {
        const uint64_t low = first == holder->first ? range->address : blocks[first - 1].end;
        // Blocks that overlap come from recordings that contradict themselves.
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

// The least used segments, until they are what a new segment lacked.
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
