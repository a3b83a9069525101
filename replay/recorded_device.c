// Describes one device of a recording for replays.
#include "replay/recorded_device.h"

#include "base/hash.h"
#include "config/size_rules.h"
#include "replay/mapped_ranges.h"

// Every pool costs the allocator tables, and every operation on a device takes the locks of all pools.
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

static void pools_release(struct vr_pools *pools) {
    free(pools->ids);
    free(pools->of_event);
    free(pools->used);
    free(pools->memory);
    *pools = (struct vr_pools){0};
}

// Returns the number of a known pool; 0 for any other id.
static uint32_t pools_number(const struct vr_pools *pools, struct vram_pool_id id) {
    if (is_default(id)) return 0;
    const struct vram_pool_id *found = bsearch(&id, pools->ids, pools->count, sizeof id, id_order);
    return found == NULL ? 0 : (uint32_t)(found - pools->ids);
}

// --- the ids ------------------------------------------------------------------------------------------------------------------
// Adds an id; skips consecutive duplicates, which are most. The caller removes the others after sorting.
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

// The meaning of the ranges' pools in this file.
static const enum vr_mapped_pool EXPANDABLE = VR_MAPPED_UNKNOWN, CUDA_MALLOC = VR_MAPPED_LARGE;

// Walks the history backwards with the segments of the current moment; a range's owner is its pool.
struct attribution {
    struct vr_pools *pools;
    const struct vr_history *history;
    struct vr_mapped held;
};

// Ignores contradictions, which are reported where the history is undone; the pool stays unknown.
static enum vram_status tolerate_limit(enum vram_status status) { return status == VRAM_INVALID_ARGUMENT ? VRAM_OK : status; }

// Records that the pool had memory of this kind.
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

// Returns the pool at an address; 0 outside of all segments, which is a contradiction anyway.
static uint32_t pool_at(const struct attribution *work, uint64_t address) {
    const struct vr_mapped_range *range = vr_mapped_before(&work->held, address);
    return range != NULL && address < range->end ? range->owner : 0;
}

// Returns the distance to a range of the same stream; at least NEARBY_BYTES for a range that cannot be of the same address range.
static uint64_t distance_to(const struct vr_mapped_range *range, uint64_t start, uint64_t end, uint64_t stream) {
    if (range == NULL || range->stream != stream || range->pool != EXPANDABLE) return NEARBY_BYTES;
    return range->start >= end ? range->start - end : start - range->end;
}

// Returns the pool of an unmapped range by mapped ranges of its stream near it, which are of the same segment: other segments are about a
// device's memory away.
static uint32_t pool_near(const struct attribution *work, size_t event) {
    const uint64_t start = work->history->address[event], stream = vr_entry_stream(work->history, event);
    uint64_t end = 0;
    if (!vr_add_u64(start, work->history->size_bytes[event], &end)) return VR_POOL_UNKNOWN;
    const struct vr_mapped_range *before = vr_mapped_before(&work->held, start), *after = vr_mapped_after(&work->held, start);
    if (before != NULL && before->end > start) return before->owner; // a contradiction, which the comparison reports
    const uint64_t below = distance_to(before, start, end, stream), above = distance_to(after, start, end, stream);
    if (below >= NEARBY_BYTES && above >= NEARBY_BYTES) return VR_POOL_UNKNOWN;
    return below <= above ? before->owner : after->owner;
}

static uint32_t pool_of_event(const struct attribution *work, size_t event) {
    if (has_id(work->history, event)) return pools_number(work->pools, id_of(work->history, event));
    switch ((enum vr_action)work->history->action[event]) {
    case VR_ACTION_ALLOC:
    case VR_ACTION_FREE_REQUESTED:
    case VR_ACTION_FREE_COMPLETED:
    case VR_ACTION_FREE:
    case VR_ACTION_SEGMENT_ALLOC:
    case VR_ACTION_SEGMENT_MAP: return pool_at(work, work->history->address[event]);
    case VR_ACTION_SEGMENT_UNMAP: return pool_near(work, event);
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
        const uint32_t pool = pools_number(work->pools, segments[i].id);
        VR_TRY(hold_pool(work, segments[i].address, segments[i].size, segments[i].stream, segments[i].expandable, pool));
    }
    for (size_t event = work->history->count; event-- > 0;) VR_TRY(step_back(work, event));
    return VRAM_OK;
}

// Numbers the pools and attributes the events. The segments are those of the device. BAD_INPUT for more pools than a replay can hold;
// NO_HOST_MEMORY. Call pools_release() even after a failure.
static enum vram_status pools_find(struct vr_pools *pools, const struct vr_history *history, const struct vr_pool_segment *segments,
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

static const struct vr_history no_history;

static struct vram_pool_id id_of_row(const struct vr_segments *segments, size_t row) {
    return (struct vram_pool_id){segments->pool_first[row], segments->pool_second[row]};
}

bool vr_recorded_device_has_functions(const struct vr_recorded_device *recorded, uint32_t pool) {
    return pool != 0 && recorded->options->expandable_segments && recorded->pools.memory[pool] == VR_POOL_SEGMENTS;
}

uint32_t vr_recorded_device_segment_pool(const struct vr_recorded_device *recorded, uint32_t row) {
    return recorded->pools.count == 1 ? 0 : pools_number(&recorded->pools, id_of_row(&recorded->model->segments, row));
}

enum vram_status vr_recorded_device_devices(const struct vr_model *model, uint32_t **devices, size_t *count) {
    bool known[VRAM_MAX_DEVICES] = {false};
    const size_t host = model->host_count == 0 ? SIZE_MAX : model->history_count - 1;
    for (size_t row = 0; row < model->segments.count; row++) {
        if (model->segments.device[row] < VRAM_MAX_DEVICES && model->segments.device[row] != host)
            known[model->segments.device[row]] = true;
    }
    for (size_t device = 0; device < model->history_count && device < VRAM_MAX_DEVICES; device++) {
        if (model->histories[device].count > 0 && device != host) known[device] = true;
    }
    uint32_t *list = calloc(VRAM_MAX_DEVICES, sizeof *list);
    if (list == NULL) return VRAM_NO_HOST_MEMORY;
    *count = 0;
    for (uint32_t device = 0; device < VRAM_MAX_DEVICES; device++) {
        if (known[device]) list[(*count)++] = device;
    }
    *devices = list;
    return VRAM_OK;
}

// A segment row with its address, to be sorted by address; the struct has both because qsort() passes no context.
struct keyed_row {
    uint64_t address;
    uint32_t row;
};

static int recorded_by_address(const void *left, const void *right) {
    const uint64_t a = ((const struct keyed_row *)left)->address, b = ((const struct keyed_row *)right)->address;
    return VR_ORDER(a, b);
}

static void collect_rows(struct vr_recorded_device *recorded, struct keyed_row *keyed) {
    const struct vr_segments *segments = &recorded->model->segments;
    size_t count = 0;
    for (size_t row = 0; row < segments->count; row++) {
        if (segments->device[row] == recorded->device) keyed[count++] = (struct keyed_row){segments->address[row], (uint32_t)row};
    }
    qsort(keyed, count, sizeof *keyed, recorded_by_address);
    for (size_t i = 0; i < count; i++) recorded->segments[i] = keyed[i].row;
    recorded->segment_count = count;
}

static enum vram_status collect_pools(struct vr_recorded_device *recorded, struct vram_error *error) {
    const struct vr_segments *segments = &recorded->model->segments;
    struct vr_pool_segment *list = malloc((recorded->segment_count + 1) * sizeof *list);
    if (list == NULL) return VRAM_NO_HOST_MEMORY;
    for (size_t i = 0; i < recorded->segment_count; i++) {
        const uint32_t row = recorded->segments[i];
        list[i] = (struct vr_pool_segment){segments->address[row], segments->total_bytes[row], segments->stream[row],
                                           id_of_row(segments, row), segments->expandable[row] != 0};
    }
    const enum vram_status status = pools_find(&recorded->pools, recorded->history, list, recorded->segment_count, error);
    free(list);
    return status;
}

// Returns whether a block of this size would have been split for the request (allocator.md §splitting). `expandable` comes from the
// segment, not the settings: a pool with its own functions has ordinary segments.
static bool would_split(const struct vr_options *options, bool expandable, uint64_t requested, uint64_t size) {
    if (requested == 0 || requested >= VR_REQUEST_LIMIT) return false;
    const uint64_t rounded = vr_round_request(options, requested);
    if (rounded >= size) return false;
    if (vr_is_small(rounded) || expandable) return size - rounded >= VR_MIN_BLOCK;
    return rounded < options->max_split_bytes && size - rounded > VR_SMALL_LIMIT;
}

// A private pool's way of allocating blocks, as far as it is known.
enum handing { HANDS_WHOLE = 1, HANDS_PARTS = 2 };

// Looks for a live block that fills a segment although it would have been split, and for two blocks in an ordinary segment.
static void look_at_picture(const struct vr_recorded_device *recorded, uint8_t *handing) {
    const struct vr_segments *segments = &recorded->model->segments;
    const struct vr_blocks *blocks = &recorded->model->blocks;
    for (size_t i = 0; i < recorded->segment_count; i++) {
        const uint32_t row = recorded->segments[i], pool = vr_recorded_device_segment_pool(recorded, row);
        const uint64_t block = segments->first_block[row], count = segments->first_block[row + 1] - block;
        const bool expandable = segments->expandable[row] != 0;
        if (count > 1 && !expandable) handing[pool] |= HANDS_PARTS;
        if (count != 1 || blocks->state[block] == VR_STATE_INACTIVE || blocks->size_bytes[block] != segments->total_bytes[row]) continue;
        if (would_split(recorded->options, expandable, blocks->requested_bytes[block], blocks->size_bytes[block]))
            handing[pool] |= HANDS_WHOLE;
    }
}

// Collects the address and size of every cudaMalloc segment that existed at any time. Skips segments of size 0, which a recording may have.
static enum vram_status collect_bases(const struct vr_recorded_device *recorded, struct vr_map *bases) {
    const struct vr_segments *segments = &recorded->model->segments;
    const struct vr_history *history = recorded->history;
    for (size_t i = 0; i < recorded->segment_count; i++) {
        const uint32_t row = recorded->segments[i];
        if (segments->expandable[row] == 0 && segments->total_bytes[row] != 0)
            VR_TRY(vr_map_set(bases, segments->address[row], segments->total_bytes[row]));
    }
    for (size_t event = 0; event < history->count; event++) {
        const enum vr_action action = history->action[event];
        if ((action != VR_ACTION_SEGMENT_ALLOC && action != VR_ACTION_SEGMENT_FREE) || history->size_bytes[event] == 0) continue;
        VR_TRY(vr_map_set(bases, history->address[event], history->size_bytes[event]));
    }
    return VRAM_OK;
}

// Looks at the history in the same way: a pool that splits allocates blocks that are not at the beginning of a segment. If there are no
// such blocks although segments would have been split, no remainder was ever used, so the pool may as well not split.
static enum vram_status look_at_history(const struct vr_recorded_device *recorded, uint8_t *handing) {
    const struct vr_history *history = recorded->history;
    struct vr_map bases = {0};
    const enum vram_status status = collect_bases(recorded, &bases);
    for (size_t event = 0; status == VRAM_OK && event < history->count; event++) {
        const enum vr_action action = history->action[event];
        const uint32_t pool = vr_recorded_device_pool(recorded, event);
        if (pool == 0 || (action != VR_ACTION_ALLOC && action != VR_ACTION_FREE_REQUESTED)) continue;
        if ((recorded->pools.memory[pool] & VR_POOL_EXPANDABLE) != 0) continue; // blocks of such a pool need not begin a segment
        const uint64_t size = vr_map_get(&bases, history->address[event]);
        if (size == 0)
            handing[pool] |= HANDS_PARTS;
        else if (would_split(recorded->options, false, history->size_bytes[event], size))
            handing[pool] |= HANDS_WHOLE;
    }
    vr_map_release(&bases);
    return status;
}

// PyTorch's MemPool(no_split=True) is not recorded in snapshots (replay.md §pools).
static enum vram_status find_whole_pools(struct vr_recorded_device *recorded) {
    if (recorded->pools.count == 1) return VRAM_OK;
    uint8_t *handing = calloc(recorded->pools.count, sizeof *handing);
    recorded->no_split = calloc(recorded->pools.count, sizeof *recorded->no_split);
    enum vram_status status = handing == NULL || recorded->no_split == NULL ? VRAM_NO_HOST_MEMORY : VRAM_OK;
    if (status == VRAM_OK) {
        look_at_picture(recorded, handing);
        status = look_at_history(recorded, handing);
    }
    for (uint32_t pool = 1; status == VRAM_OK && pool < recorded->pools.count; pool++)
        recorded->no_split[pool] = handing[pool] == HANDS_WHOLE;
    free(handing);
    return status;
}

static enum vram_status add_stream(struct vr_recorded_device *recorded, struct vr_map *known, size_t *capacity, uint64_t stream) {
    if (vr_map_get(known, stream) != 0) return VRAM_OK;
    VR_TRY(vr_map_set(known, stream, 1));
    VR_TRY(vr_grow((void **)&recorded->streams, capacity, recorded->stream_count + 1, sizeof *recorded->streams));
    recorded->streams[recorded->stream_count++] = stream;
    return VRAM_OK;
}

static enum vram_status collect_streams(struct vr_recorded_device *recorded, struct vr_map *known) {
    const struct vr_history *history = recorded->history;
    size_t capacity = 0;
    VR_TRY(add_stream(recorded, known, &capacity, 0));
    for (size_t i = 0; i < recorded->segment_count; i++) {
        VR_TRY(add_stream(recorded, known, &capacity, recorded->model->segments.stream[recorded->segments[i]]));
    }
    for (size_t event = 0; event < history->count; event++) {
        if (event > 0 && vr_entry_stream(history, event) == vr_entry_stream(history, event - 1)) continue;
        VR_TRY(add_stream(recorded, known, &capacity, vr_entry_stream(history, event)));
    }
    qsort(recorded->streams, recorded->stream_count, sizeof *recorded->streams, vr_order_u64);
    return VRAM_OK;
}

enum vram_status vr_recorded_device_init(struct vr_recorded_device *recorded, const struct vr_model *model,
                                         const struct vr_options *options, uint32_t device, struct vram_error *error) {
    *recorded = (struct vr_recorded_device){.model = model, .options = options, .device = device, .history = &no_history};
    if (device < model->history_count) recorded->history = &model->histories[device];
    if (recorded->history->count >= UINT32_MAX - 1 || model->segments.count >= UINT32_MAX - 1) {
        return vr_fail(error, VRAM_BAD_INPUT, VRAM_NO_OFFSET, "device %u has too many events or segments for a replay", device);
    }
    const size_t rows = model->segments.count + 1;
    struct keyed_row *keyed = malloc(rows * sizeof *keyed);
    recorded->segments = malloc(rows * sizeof *recorded->segments);
    enum vram_status status = keyed == NULL || recorded->segments == NULL ? VRAM_NO_HOST_MEMORY : VRAM_OK;
    if (status == VRAM_OK) collect_rows(recorded, keyed);
    free(keyed);
    if (status == VRAM_OK) status = collect_pools(recorded, error);
    if (status == VRAM_OK) status = find_whole_pools(recorded);
    struct vr_map known = {0};
    if (status == VRAM_OK) status = collect_streams(recorded, &known);
    vr_map_release(&known);
    if (status != VRAM_OK) vr_recorded_device_release(recorded);
    return status;
}

void vr_recorded_device_release(struct vr_recorded_device *recorded) {
    free(recorded->segments);
    pools_release(&recorded->pools);
    free(recorded->streams);
    free(recorded->no_split);
    *recorded = (struct vr_recorded_device){0};
}

bool vr_action_is_ignored(enum vr_action action) {
    switch (action) {
    case VR_ACTION_ALLOC:
    case VR_ACTION_FREE_REQUESTED:
    case VR_ACTION_FREE_COMPLETED:
    case VR_ACTION_FREE:
    case VR_ACTION_SEGMENT_ALLOC:
    case VR_ACTION_SEGMENT_FREE:
    case VR_ACTION_SEGMENT_MAP:
    case VR_ACTION_SEGMENT_UNMAP:
    case VR_ACTION_OOM: return false;
    default: return true;
    }
}
