#include "analyze/layout.h"

// Large segments and mapped ranges are at least this large, small ones are 2 MiB pieces.
#define LEAST_LARGE_BYTES (10 * VR_MIB)

// One statement about a range: "mapped" or "not mapped" at the moment, unless an earlier statement covers the same address.
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
            // What is given back later was there; what is got later was not.
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

// The first cell at or after `cell` that nobody has claimed. next[] is a forest of short cuts, halved on the way.
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

// Cells between neighbouring edges, each given to the first claim that covers it.
struct cells {
    uint64_t *edges;
    size_t *next;
    uint32_t *owner; // 1 + claim
    size_t count;    // edges
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

// Neighbouring cells of one claim become one range again, and so do those of one owner's pages.
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
