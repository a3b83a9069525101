// recorded_pools.c: see recorded_pools.h.
#include "replay/recorded_pools.h"

#include "replay/mapped.h"

// Every pool costs the allocator tables, and every operation on a device takes the locks of all of them.
enum { POOLS_MAX = 1024 };

static int id_order(const void *left, const void *right) {
    const struct vram_pool_id *a = left, *b = right;
    if (a->first != b->first) return VR_ORDER(a->first, b->first);
    return VR_ORDER(a->second, b->second);
}

static bool same_id(struct vram_pool_id a, struct vram_pool_id b) { return a.first == b.first && a.second == b.second; }
static bool is_default(struct vram_pool_id id) { return id.first == 0 && id.second == 0; }

static bool has_id(const struct vr_history *history, size_t event) { return (vr_entry_has(history, event) & VR_HAS_POOL_ID) != 0; }
static struct vram_pool_id id_of(const struct vr_history *history, size_t event) {
    return (struct vram_pool_id){history->pool_first[event], history->pool_second[event]};
}

void vr_pools_release(struct vr_pools *pools) {
    free(pools->ids);
    free(pools->of_event);
    free(pools->used);
    free(pools->memory);
    *pools = (struct vr_pools){0};
}

uint32_t vr_pools_number(const struct vr_pools *pools, struct vram_pool_id id) {
    if (is_default(id)) return 0;
    const struct vram_pool_id *found = bsearch(&id, pools->ids, pools->count, sizeof id, id_order);
    return found == NULL ? 0 : (uint32_t)(found - pools->ids);
}

// --- the ids ------------------------------------------------------------------------------------------------------------------
// Doubles come out after sorting; neighbours, which most are, are not even put in.
static enum vram_status add_id(struct vr_pools *pools, size_t *capacity, struct vram_pool_id id) {
    if (is_default(id) || (pools->count > 0 && same_id(pools->ids[pools->count - 1], id))) return VRAM_OK;
    VR_TRY(vr_grow((void **)&pools->ids, capacity, pools->count + 1, sizeof id));
    pools->ids[pools->count++] = id;
    return VRAM_OK;
}

static enum vram_status collect_ids(struct vr_pools *pools, const struct vr_history *history, const struct vr_pool_segment *segments,
                                    size_t segment_count) {
    size_t capacity = 0, kept = 1;
    VR_TRY(vr_grow((void **)&pools->ids, &capacity, 1, sizeof *pools->ids));
    pools->ids[pools->count++] = (struct vram_pool_id){0, 0};
    for (size_t i = 0; i < segment_count; i++) VR_TRY(add_id(pools, &capacity, segments[i].id));
    for (size_t event = 0; event < history->count; event++) {
        if (has_id(history, event)) VR_TRY(add_id(pools, &capacity, id_of(history, event)));
    }
    qsort(pools->ids, pools->count, sizeof *pools->ids, id_order);
    for (size_t i = 1; i < pools->count; i++) {
        if (!same_id(pools->ids[i], pools->ids[kept - 1])) pools->ids[kept++] = pools->ids[i];
    }
    pools->count = kept;
    return VRAM_OK;
}

// --- the events -----------------------------------------------------------------------------------------------------------------
#define NEARBY_BYTES (4 * VR_GIB)

// What the ranges' pools stand for here.
static const enum vr_mapped_pool EXPANDABLE = VR_MAPPED_UNKNOWN, CUDA_MALLOC = VR_MAPPED_LARGE;

// Walks the history backwards with the segments of the moment; a range's owner is its pool.
struct attribution {
    struct vr_pools *pools;
    const struct vr_history *history;
    struct vr_mapped held;
};

// What a stranger's recording contradicts is told by whoever undoes the history; here it only stays unknown.
static enum vram_status tolerate_limit(enum vram_status status) { return status == VRAM_INVALID_ARGUMENT ? VRAM_OK : status; }

// A range of memory that the pool had.
static void note_memory(const struct attribution *work, uint32_t pool, bool expandable) {
    if (pool != VR_POOL_UNKNOWN) work->pools->memory[pool] |= expandable ? VR_POOL_EXPANDABLE : VR_POOL_SEGMENTS;
}

static enum vram_status hold_pool(struct attribution *work, uint64_t address, uint64_t size, uint64_t stream, bool expandable,
                                  uint32_t pool) {
    struct vr_mapped_range range = {address, 0, stream, expandable ? EXPANDABLE : CUDA_MALLOC, pool};
    note_memory(work, pool, expandable);
    if (!vr_add_u64(address, size, &range.end)) return VRAM_OK;
    return tolerate_limit(vr_mapped_join(&work->held, &range));
}

// Addresses in no segment are a contradiction, whatever their pool.
static uint32_t pool_at(const struct attribution *work, uint64_t address) {
    const struct vr_mapped_range *range = vr_mapped_before(&work->held, address);
    return range != NULL && address < range->end ? range->owner : 0;
}

// How far a range of the same stream is away; NEARBY_BYTES and more for what cannot be of the same address range.
static uint64_t distance_to(const struct vr_mapped_range *range, uint64_t start, uint64_t end, uint64_t stream) {
    if (range == NULL || range->stream != stream || range->pool != EXPANDABLE) return NEARBY_BYTES;
    return range->start >= end ? range->start - end : start - range->end;
}

// A range that was unmapped beside mapped ones of its stream was of their segment: those of other segments are about a device's memory
// away.
static uint32_t pool_beside(const struct attribution *work, size_t event) {
    const uint64_t start = work->history->address[event], stream = vr_entry_stream(work->history, event);
    uint64_t end = 0;
    if (!vr_add_u64(start, work->history->size_bytes[event], &end)) return VR_POOL_UNKNOWN;
    const struct vr_mapped_range *before = vr_mapped_before(&work->held, start), *after = vr_mapped_after(&work->held, start);
    if (before != NULL && before->end > start) return before->owner; // a contradiction, which is told later
    const uint64_t below = distance_to(before, start, end, stream), above = distance_to(after, start, end, stream);
    if (below >= NEARBY_BYTES && above >= NEARBY_BYTES) return VR_POOL_UNKNOWN;
    return below <= above ? before->owner : after->owner;
}

static uint32_t pool_of_event(const struct attribution *work, size_t event) {
    if (has_id(work->history, event)) return vr_pools_number(work->pools, id_of(work->history, event));
    switch ((enum vr_action)work->history->action[event]) {
    case VR_ACTION_ALLOC:
    case VR_ACTION_FREE_REQUESTED:
    case VR_ACTION_FREE_COMPLETED:
    case VR_ACTION_FREE:
    case VR_ACTION_SEGMENT_ALLOC:
    case VR_ACTION_SEGMENT_MAP: return pool_at(work, work->history->address[event]);
    case VR_ACTION_SEGMENT_UNMAP: return pool_beside(work, event);
    case VR_ACTION_SEGMENT_FREE:
    case VR_ACTION_OOM: return VR_POOL_UNKNOWN;
    default: return 0;
    }
}

static enum vram_status step_back(struct attribution *work, size_t event) {
    const uint64_t address = work->history->address[event], size = work->history->size_bytes[event];
    const enum vr_action action = work->history->action[event];
    const bool expandable = action == VR_ACTION_SEGMENT_MAP || action == VR_ACTION_SEGMENT_UNMAP;
    const uint32_t pool = pool_of_event(work, event);
    work->pools->of_event[event] = pool;
    if (pool == VR_POOL_UNKNOWN) work->pools->unknown_events++;
    switch (action) {
    case VR_ACTION_ALLOC:
        if (pool == VR_POOL_UNKNOWN) {
            work->pools->unknown_allocations++;
        } else if (work->pools->used[pool] == 0) {
            work->pools->used[pool] = event + 1;
        }
        return VRAM_OK;
    case VR_ACTION_SEGMENT_ALLOC:
    case VR_ACTION_SEGMENT_MAP: {
        uint64_t end = 0;
        note_memory(work, pool, expandable);
        return vr_add_u64(address, size, &end) ? tolerate_limit(vr_mapped_cut(&work->held, address, end)) : VRAM_OK;
    }
    case VR_ACTION_SEGMENT_FREE:
    case VR_ACTION_SEGMENT_UNMAP: return hold_pool(work, address, size, vr_entry_stream(work->history, event), expandable, pool);
    default: return VRAM_OK;
    }
}

static enum vram_status attribute(struct attribution *work, const struct vr_pool_segment *segments, size_t segment_count) {
    for (size_t i = 0; i < segment_count; i++) {
        const uint32_t pool = vr_pools_number(work->pools, segments[i].id);
        VR_TRY(hold_pool(work, segments[i].address, segments[i].size, segments[i].stream, segments[i].expandable, pool));
    }
    for (size_t event = work->history->count; event-- > 0;) VR_TRY(step_back(work, event));
    return VRAM_OK;
}

enum vram_status vr_pools_find(struct vr_pools *pools, const struct vr_history *history, const struct vr_pool_segment *segments,
                               size_t segment_count, struct vram_error *error) {
    *pools = (struct vr_pools){0};
    VR_TRY(collect_ids(pools, history, segments, segment_count));
    if (pools->count > POOLS_MAX) {
        return vr_fail(error, VRAM_BAD_INPUT, VRAM_NO_OFFSET, "more than %d private pools on one device: too many for a replay", POOLS_MAX);
    }
    if (pools->count == 1) return VRAM_OK;
    struct attribution work = {.pools = pools, .history = history};
    pools->of_event = calloc(history->count + 1, sizeof *pools->of_event);
    pools->used = calloc(pools->count, sizeof *pools->used);
    pools->memory = calloc(pools->count, sizeof *pools->memory);
    if (pools->of_event == NULL || pools->used == NULL || pools->memory == NULL) return VRAM_NO_HOST_MEMORY;
    const enum vram_status status = attribute(&work, segments, segment_count);
    vr_mapped_release(&work.held);
    return status;
}
