// Reports the final state: segments and blocks, and the use of reserved bytes.
#include "analyze/report_parts.h"

enum { MISMATCH_ACTIVE, MISMATCH_ALLOCATED, MISMATCH_CONTIGUOUS, MISMATCH_REQUESTED, MISMATCH_TOTAL };

const char *vram_report_mismatch_name(size_t mismatch) {
    static const char *const names[VRAM_REPORT_MISMATCHES] = {"active_size", "allocated_size", "block_not_contiguous", "requested_size",
                                                              "total_size"};
    return mismatch < VRAM_REPORT_MISMATCHES ? names[mismatch] : NULL;
}

const char *vram_report_state_name(size_t state) {
    return state < VRAM_REPORT_STATES ? vr_block_state_name((enum vr_block_state)state) : NULL;
}

// Sums over the blocks of one segment.
struct picture_sums {
    uint64_t total, allocated, active, requested_active, requested_allocated, free;
    uint64_t free_blocks, largest_free;
    bool contiguous;
};

static struct picture_sums sum_blocks(const struct vr_model *model, size_t segment) {
    const struct vr_blocks *blocks = &model->blocks;
    struct picture_sums sums = {.contiguous = true};
    uint64_t expected = model->segments.address[segment];
    for (uint64_t row = model->segments.first_block[segment]; row < model->segments.first_block[segment + 1]; row++) {
        const uint64_t size = blocks->size_bytes[row];
        sums.contiguous = sums.contiguous && blocks->address[row] == expected;
        expected += size;
        sums.total += size;
        if (vr_state_allocated(blocks->state[row])) {
            sums.allocated += size;
            sums.requested_allocated += blocks->requested_bytes[row];
        }
        if (vr_state_active(blocks->state[row])) {
            sums.active += size;
            sums.requested_active += blocks->requested_bytes[row];
        }
        if (blocks->state[row] != VR_STATE_INACTIVE) continue;
        sums.free += size;
        sums.free_blocks++;
        if (size > sums.largest_free) sums.largest_free = size;
    }
    return sums;
}

static bool wholly_inactive(const struct vr_model *model, size_t segment) {
    for (uint64_t row = model->segments.first_block[segment]; row < model->segments.first_block[segment + 1]; row++) {
        if (model->blocks.state[row] != VR_STATE_INACTIVE) return false;
    }
    return true;
}

static void count_mismatches(const struct vr_segments *segments, size_t row, const struct picture_sums *sums, uint64_t *mismatches) {
    const uint32_t has = segments->has[row];
    mismatches[MISMATCH_TOTAL] += sums->total != segments->total_bytes[row];
    mismatches[MISMATCH_ALLOCATED] += (has & VR_HAS_ALLOCATED_SIZE) == 0 || sums->allocated != segments->allocated_bytes[row];
    mismatches[MISMATCH_ACTIVE] += (has & VR_HAS_ACTIVE_SIZE) == 0 || sums->active != segments->active_bytes[row];
    mismatches[MISMATCH_REQUESTED] += (has & VR_HAS_REQUESTED_SIZE) != 0 && sums->requested_active != segments->requested_bytes[row];
    mismatches[MISMATCH_CONTIGUOUS] += !sums->contiguous;
}

static void count_blocks(const struct vr_view *view, struct vram_report_device *out) {
    const struct vr_blocks *blocks = &view->model->blocks;
    out->blocks = view->block_count;
    for (size_t i = 0; i < view->block_count; i++) {
        const size_t row = view->blocks[i];
        struct vram_report_state *state = &out->states[blocks->state[row]];
        state->count++;
        state->bytes += blocks->size_bytes[row];
        state->requested_bytes += blocks->requested_bytes[row];
        if (blocks->state[row] == VR_STATE_INACTIVE && blocks->size_bytes[row] > out->largest_inactive_bytes) {
            out->largest_inactive_bytes = blocks->size_bytes[row];
        }
    }
    out->inactive = (struct vram_report_sum){out->states[VR_STATE_INACTIVE].count, out->states[VR_STATE_INACTIVE].bytes};
}

// Pages of expandable segments in the small and the large pool.
#define SMALL_PAGE_BYTES (2 * VR_MIB)
#define LARGE_PAGE_BYTES (20 * VR_MIB)

// Returns the bytes of an expandable segment's whole pages within free blocks. A mapped run begins at a page boundary.
static uint64_t free_page_bytes(const struct vr_model *model, size_t segment) {
    const struct vr_blocks *blocks = &model->blocks;
    const uint64_t page = model->segments.kind[segment] == VR_KIND_SMALL ? SMALL_PAGE_BYTES : LARGE_PAGE_BYTES;
    uint64_t pages = 0;
    for (uint64_t row = model->segments.first_block[segment]; row < model->segments.first_block[segment + 1]; row++) {
        if (blocks->state[row] != VR_STATE_INACTIVE || blocks->address[row] < model->segments.address[segment]) continue;
        const uint64_t begin = blocks->address[row] - model->segments.address[segment];
        const uint64_t first = begin / page + (begin % page != 0), end = (begin + blocks->size_bytes[row]) / page;
        if (end > first) pages += end - first;
    }
    return pages * page;
}

static void add_usage(struct vram_report_usage *usage, const struct picture_sums *sums, uint64_t segment_bytes, bool whole) {
    const uint64_t requested = sums->requested_allocated < sums->allocated ? sums->requested_allocated : sums->allocated;
    usage->reserved_bytes += segment_bytes;
    usage->requested_bytes += requested;
    usage->rounding_bytes += sums->allocated - requested;
    usage->pending_bytes += sums->total - sums->allocated - sums->free;
    if (whole) {
        usage->cached_bytes += sums->free;
    } else {
        usage->free_block_bytes += sums->free;
    }
    // Sizes of a damaged recording may wrap, which is harmless for unsigned numbers.
    usage->unaccounted_bytes = (int64_t)((uint64_t)usage->unaccounted_bytes + segment_bytes - sums->total);
    usage->free_blocks += sums->free_blocks;
    if (sums->largest_free > usage->largest_free_bytes) usage->largest_free_bytes = sums->largest_free;
}

static void add_pool(struct vram_report_pool *pool, const struct vr_segments *segments, size_t row, const struct picture_sums *sums,
                     bool whole) {
    pool->segments++;
    pool->expandable_segments += segments->expandable[row] != 0;
    pool->reserved_bytes += segments->total_bytes[row];
    pool->allocated_bytes += sums->allocated;
    pool->pending_bytes += sums->total - sums->allocated - sums->free;
    pool->free_bytes += sums->free;
    pool->free_blocks += sums->free_blocks;
    if (whole) pool->cached_bytes += sums->free;
    if (sums->largest_free > pool->largest_free_bytes) pool->largest_free_bytes = sums->largest_free;
}

static int by_pool(const void *a, const void *b) {
    const struct vram_report_pool *x = a, *y = b;
    if (x->pool_id[0] != y->pool_id[0]) return VR_ORDER(x->pool_id[0], y->pool_id[0]);
    if (x->pool_id[1] != y->pool_id[1]) return VR_ORDER(x->pool_id[1], y->pool_id[1]);
    if (x->stream != y->stream) return VR_ORDER(x->stream, y->stream);
    return VR_ORDER(x->kind, y->kind);
}

static int by_reserved(const void *a, const void *b) {
    const struct vram_report_pool *x = a, *y = b;
    if (x->reserved_bytes != y->reserved_bytes) return VR_ORDER(y->reserved_bytes, x->reserved_bytes);
    return by_pool(a, b);
}

// Merges rows of the same pool; returns the number of rows left.
static size_t merge_pools(struct vram_report_pool *pools, size_t count) {
    size_t kept = 0;
    qsort(pools, count, sizeof *pools, by_pool);
    for (size_t i = 0; i < count; i++) {
        struct vram_report_pool *into = &pools[kept == 0 ? 0 : kept - 1];
        if (kept == 0 || by_pool(into, &pools[i]) != 0) {
            pools[kept++] = pools[i];
            continue;
        }
        into->segments += pools[i].segments;
        into->expandable_segments += pools[i].expandable_segments;
        into->reserved_bytes += pools[i].reserved_bytes;
        into->allocated_bytes += pools[i].allocated_bytes;
        into->pending_bytes += pools[i].pending_bytes;
        into->free_bytes += pools[i].free_bytes;
        into->free_blocks += pools[i].free_blocks;
        into->cached_bytes += pools[i].cached_bytes;
        if (pools[i].largest_free_bytes > into->largest_free_bytes) into->largest_free_bytes = pools[i].largest_free_bytes;
    }
    return kept;
}

// Fills one row per segment, to be merged later.
static void fill_pools(const struct vr_view *view, struct vram_report_pool *pools, struct vram_report_device *out) {
    const struct vr_segments *segments = &view->model->segments;
    for (size_t i = 0; i < view->segment_count; i++) {
        const size_t row = view->segments[i];
        const struct picture_sums sums = sum_blocks(view->model, row);
        const bool whole = wholly_inactive(view->model, row);
        pools[i] = (struct vram_report_pool){.stream = (int64_t)segments->stream[row],
                                             .pool_id = {segments->pool_first[row], segments->pool_second[row]},
                                             .kind = (enum vram_report_kind)segments->kind[row]};
        add_pool(&pools[i], segments, row, &sums, whole);
        add_usage(&out->usage, &sums, segments->total_bytes[row], whole);
        if (!whole && segments->expandable[row] != 0) out->usage.page_bytes += free_page_bytes(view->model, row);
        count_mismatches(segments, row, &sums, out->mismatches);
        out->segments_of_kind[segments->kind[row]]++;
        out->expandable_segments += segments->expandable[row] != 0;
        if (!whole) continue;
        out->wholly_inactive.count++;
        out->wholly_inactive.bytes += segments->total_bytes[row];
        if (segments->pool_first[row] == 0 && segments->pool_second[row] == 0) continue;
        out->private_inactive.count++;
        out->private_inactive.bytes += segments->total_bytes[row];
    }
}

static enum vram_status collect_pool_ids(const struct vr_view *view, struct vr_arena *arena, struct vram_report_device *out) {
    const struct vr_segments *segments = &view->model->segments;
    uint64_t(*ids)[2] = malloc((view->segment_count + 1) * sizeof *ids);
    if (ids == NULL) return VRAM_NO_HOST_MEMORY;
    size_t count = 0, kept = 0;
    for (size_t i = 0; i < view->segment_count; i++) {
        const size_t row = view->segments[i];
        if ((segments->has[row] & VR_HAS_POOL_ID) == 0) continue;
        ids[count][0] = segments->pool_first[row];
        ids[count++][1] = segments->pool_second[row];
    }
    qsort(ids, count, sizeof *ids, vr_order_u64_pair);
    for (size_t i = 0; i < count; i++) {
        if (kept != 0 && vr_order_u64_pair(ids[kept - 1], ids[i]) == 0) continue;
        memmove(ids[kept++], ids[i], sizeof ids[i]);
    }
    void *room;
    const enum vram_status status = vr_arena_array(arena, kept, sizeof *ids, &room);
    if (status == VRAM_OK) {
        memcpy(room, ids, kept * sizeof *ids);
        out->pool_ids = room;
        out->pool_id_count = kept;
    }
    free(ids);
    return status;
}

enum vram_status vr_report_picture(const struct vr_view *view, struct vr_arena *arena, struct vram_report_device *out) {
    struct vram_report_pool *pools = calloc(view->segment_count + 1, sizeof *pools);
    if (pools == NULL) return VRAM_NO_HOST_MEMORY;
    out->segments = view->segment_count;
    fill_pools(view, pools, out);
    const size_t kept = merge_pools(pools, view->segment_count);
    qsort(pools, kept, sizeof *pools, by_reserved);
    void *room;
    const enum vram_status status = vr_arena_array(arena, kept, sizeof *pools, &room);
    if (status == VRAM_OK) {
        memcpy(room, pools, kept * sizeof *pools);
        out->pools = room;
        out->pool_count = kept;
    }
    free(pools);
    if (status != VRAM_OK) return status;
    count_blocks(view, out);
    return collect_pool_ids(view, arena, out);
}
