// recorded_device.c: see recorded_device.h.
#include "replay/recorded_device.h"

#include "base/map.h"
#include "core/size_rules.h"

static const struct vr_history no_history;

static struct vram_pool_id id_of_row(const struct vr_segments *segments, size_t row) {
    return (struct vram_pool_id){segments->pool_first[row], segments->pool_second[row]};
}

bool vr_recorded_device_has_functions(const struct vr_recorded_device *recorded, uint32_t pool) {
    return pool != 0 && recorded->options->expandable_segments && recorded->pools.memory[pool] == VR_POOL_SEGMENTS;
}

uint32_t vr_recorded_device_segment_pool(const struct vr_recorded_device *recorded, uint32_t row) {
    return recorded->pools.count == 1 ? 0 : vr_pools_number(&recorded->pools, id_of_row(&recorded->model->segments, row));
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

// Segment rows are sorted through their addresses; a struct carries both because qsort() has no context.
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
    const enum vram_status status = vr_pools_find(&recorded->pools, recorded->history, list, recorded->segment_count, error);
    free(list);
    return status;
}

// Whether a block of the size would have been split for the request (allocator.md §splitting). The segment says whether it is expandable,
// not the settings: a pool with functions of its own has ordinary ones.
static bool would_split(const struct vr_options *options, bool expandable, uint64_t requested, uint64_t size) {
    if (requested == 0 || requested >= VR_REQUEST_LIMIT) return false;
    const uint64_t rounded = vr_round_request(options, requested);
    if (rounded >= size) return false;
    if (vr_is_small(rounded) || expandable) return size - rounded >= VR_MIN_BLOCK;
    return rounded < options->max_split_bytes && size - rounded > VR_SMALL_LIMIT;
}

// What is known of how a private pool hands out blocks.
enum handing { HANDS_WHOLE = 1, HANDS_PARTS = 2 };

// A live block that fills a segment which would have been split; two blocks in an ordinary segment.
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

// Where every segment of cudaMalloc begins that was there at some time, with its size. A recording may say that one has none.
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

// The same by the history alone: a pool that splits hands out blocks that begin no segment. Where none does although segments would have
// been split, nothing was ever made of the rests: then it may as well be one that does not.
static enum vram_status look_at_history(const struct vr_recorded_device *recorded, uint8_t *handing) {
    const struct vr_history *history = recorded->history;
    struct vr_map bases = {0};
    const enum vram_status status = collect_bases(recorded, &bases);
    for (size_t event = 0; status == VRAM_OK && event < history->count; event++) {
        const enum vr_action action = history->action[event];
        const uint32_t pool = vr_recorded_device_pool(recorded, event);
        if (pool == 0 || (action != VR_ACTION_ALLOC && action != VR_ACTION_FREE_REQUESTED)) continue;
        if ((recorded->pools.memory[pool] & VR_POOL_EXPANDABLE) != 0) continue; // whose blocks need not begin a segment
        const uint64_t size = vr_map_get(&bases, history->address[event]);
        if (size == 0)
            handing[pool] |= HANDS_PARTS;
        else if (would_split(recorded->options, false, history->size_bytes[event], size))
            handing[pool] |= HANDS_WHOLE;
    }
    vr_map_release(&bases);
    return status;
}

// PyTorch's MemPool(no_split=True) stands nowhere in a snapshot (replay.md §pools).
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
        return vr_fail(error, VRAM_BAD_INPUT, VRAM_NO_OFFSET, "device %u has more events or segments than a replay can number", device);
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
    vr_pools_release(&recorded->pools);
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
