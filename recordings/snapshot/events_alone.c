// Recordings that consist of events only, and the final segments and blocks derived from events.
#include "snapshot/events_alone.h"

#include "base/hash.h"
#include "model/columns.h"

// Block sizes are multiples of this; events have the requested size.
enum { ROUNDING = 512 };
// Expandable segments map and unmap multiples of this, and may unmap other ranges than they mapped.
#define PAGE_BYTES    (2 * VR_MIB)
#define PAGED_AT_MOST (64 * VR_GIB)
#define SEGMENT_HAS                                                                                                                        \
    (VR_HAS_DEVICE | VR_HAS_ADDRESS | VR_HAS_TOTAL_SIZE | VR_HAS_ALLOCATED_SIZE | VR_HAS_ACTIVE_SIZE | VR_HAS_REQUESTED_SIZE |             \
     VR_HAS_STREAM | VR_HAS_SEGMENT_TYPE | VR_HAS_POOL_ID | VR_HAS_EXPANDABLE | VR_HAS_FRAMES | VR_HAS_BLOCKS)
#define BLOCK_HAS (VR_HAS_ADDRESS | VR_HAS_SIZE | VR_HAS_REQUESTED_SIZE | VR_HAS_STATE | VR_HAS_FRAMES)

// A segment or a block. A row that is no longer alive stays, to be reused for the next one at its address.
struct live_row {
    uint64_t address;
    uint64_t size_bytes;
    uint64_t requested_bytes;
    uint64_t stream;
    uint64_t pool_first;
    uint64_t pool_second;
    uint32_t stack;
    uint8_t state; // a block's enum vr_block_state; a segment's enum vr_segment_kind
    bool expandable;
    bool alive;
};

// Rows indexed by address.
struct live_rows {
    struct live_row *rows;
    size_t count;
    size_t capacity;
    struct vr_map index; // address -> row + 1
};

struct advance {
    struct vr_budget *budget;
    struct live_rows ranges; // of the current device
    struct live_rows blocks;
    struct vr_segments made_segments; // of all devices so far
    struct vr_blocks made_blocks;
    size_t segment_capacity;
    size_t block_capacity;
    size_t first_block_capacity;
};

enum vram_status vr_picture_marks_set(struct vr_picture_marks *marks, size_t count) {
    size_t *device = realloc(marks->device, (count + 1) * sizeof *device);
    if (device == NULL) return VRAM_NO_HOST_MEMORY;
    marks->device = device;
    marks->count = count;
    return VRAM_OK;
}

static void release_book(struct live_rows *book) {
    free(book->rows);
    vr_map_release(&book->index);
    memset(book, 0, sizeof *book);
}

// Returns the live row at the address, or NULL.
static struct live_row *find_live_row(const struct live_rows *book, uint64_t address) {
    const uint64_t row = vr_map_get(&book->index, address);
    return row == 0 || !book->rows[row - 1].alive ? NULL : &book->rows[row - 1];
}

static enum vram_status add_live_row(struct live_rows *book, struct vr_budget *budget, uint64_t address) {
    if (book->count >= UINT32_MAX - 1) return VRAM_LIMIT;
    VR_TRY(vr_budget_charge(budget, vr_map_growth_bytes(&book->index), 1));
    VR_TRY(vr_map_reserve(&book->index, 1));
    void *rows = book->rows;
    enum vram_status status = vr_budget_grow(budget, &rows, &book->capacity, book->count + 1, sizeof *book->rows);
    book->rows = rows;
    return status != VRAM_OK ? status : vr_map_set(&book->index, address, ++book->count);
}

static enum vram_status put_live_row(struct live_rows *book, struct vr_budget *budget, const struct live_row *row) {
    if (vr_map_get(&book->index, row->address) == 0) VR_TRY(add_live_row(book, budget, row->address));
    struct live_row *at = &book->rows[vr_map_get(&book->index, row->address) - 1];
    *at = *row;
    at->alive = true;
    return VRAM_OK;
}

// Adds a mapped range as pages, so that parts of it can be unmapped.
static enum vram_status put_range(struct advance *picture, const struct live_row *range) {
    struct live_row page = *range;
    if (!range->expandable || range->size_bytes % PAGE_BYTES != 0 || range->size_bytes > PAGED_AT_MOST) {
        return put_live_row(&picture->ranges, picture->budget, range);
    }
    page.size_bytes = PAGE_BYTES;
    for (uint64_t done = 0; done < range->size_bytes; done += PAGE_BYTES) {
        page.address = range->address + done;
        VR_TRY(put_live_row(&picture->ranges, picture->budget, &page));
    }
    return VRAM_OK;
}

static void take_range(struct advance *picture, uint64_t address, uint64_t size_bytes) {
    struct live_row *row;
    for (uint64_t done = 0; (row = find_live_row(&picture->ranges, address + done)) != NULL;) {
        row->alive = false;
        done += row->size_bytes;
        if (row->size_bytes == 0 || done >= size_bytes) break;
    }
}

// ---- the present state, and the events applied to it

static enum vram_status load_picture(struct advance *picture, const struct vr_model *model, uint32_t device) {
    const struct vr_segments *segments = &model->segments;
    const struct vr_blocks *blocks = &model->blocks;
    for (size_t i = 0; i < segments->count; i++) {
        if (segments->device[i] != device) continue;
        struct live_row range = {.address = segments->address[i], .size_bytes = segments->total_bytes[i], .stream = segments->stream[i]};
        range.pool_first = segments->pool_first[i];
        range.pool_second = segments->pool_second[i];
        range.stack = segments->stack[i];
        range.state = segments->kind[i];
        range.expandable = segments->expandable[i];
        VR_TRY(put_range(picture, &range));
        for (uint64_t b = segments->first_block[i]; b < segments->first_block[i + 1]; b++) {
            if (!vr_state_active(blocks->state[b])) continue;
            struct live_row block = {.address = blocks->address[b], .size_bytes = blocks->size_bytes[b], .stream = range.stream};
            block.requested_bytes = blocks->requested_bytes[b];
            block.pool_first = range.pool_first;
            block.pool_second = range.pool_second;
            block.stack = blocks->stack[b];
            block.state = blocks->state[b];
            VR_TRY(put_live_row(&picture->blocks, picture->budget, &block));
        }
    }
    return VRAM_OK;
}

static enum vram_status apply_recorded_event(struct advance *picture, const struct vr_history *history, size_t i) {
    struct live_row row = {.address = history->address[i], .size_bytes = history->size_bytes[i], .stream = vr_entry_stream(history, i)};
    struct live_row *found;
    row.pool_first = history->pool_first[i];
    row.pool_second = history->pool_second[i];
    row.stack = history->stack[i];
    switch (history->action[i]) {
    case VR_ACTION_ALLOC:
        row.requested_bytes = row.size_bytes;
        row.size_bytes = row.size_bytes > UINT64_MAX - ROUNDING ? row.size_bytes : vr_round_up(row.size_bytes, ROUNDING);
        row.state = VR_STATE_ALLOCATED;
        return put_live_row(&picture->blocks, picture->budget, &row);
    case VR_ACTION_FREE_REQUESTED:
        found = find_live_row(&picture->blocks, row.address);
        if (found != NULL) found->state = VR_STATE_PENDING_FREE;
        return VRAM_OK;
    case VR_ACTION_FREE:
    case VR_ACTION_FREE_COMPLETED:
        found = find_live_row(&picture->blocks, row.address);
        if (found != NULL) found->alive = false;
        return VRAM_OK;
    case VR_ACTION_SEGMENT_MAP: row.expandable = true; return put_range(picture, &row);
    case VR_ACTION_SEGMENT_ALLOC: return put_range(picture, &row);
    case VR_ACTION_SEGMENT_UNMAP:
    case VR_ACTION_SEGMENT_FREE: take_range(picture, row.address, row.size_bytes); return VRAM_OK;
    default: return VRAM_OK;
    }
}

// ---- the new picture

static int live_rows_by_address(const void *left, const void *right) {
    const struct live_row *a = left, *b = right;
    return VR_ORDER(a->address, b->address);
}

// Keeps the live rows only, sorted by address. Afterwards the rows can no longer be searched.
static void settle_live_rows(struct live_rows *book) {
    size_t kept = 0;
    for (size_t i = 0; i < book->count; i++) {
        if (book->rows[i].alive && book->rows[i].size_bytes != 0) book->rows[kept++] = book->rows[i];
    }
    book->count = kept;
    if (kept != 0) qsort(book->rows, kept, sizeof *book->rows, live_rows_by_address);
}

static bool rows_join(const struct live_row *a, const struct live_row *b) {
    return a->expandable && b->expandable && a->address + a->size_bytes == b->address && a->stream == b->stream &&
           a->pool_first == b->pool_first && a->pool_second == b->pool_second;
}

// Joins consecutive pages into one segment.
static void join_ranges(struct live_rows *ranges) {
    size_t kept = 0;
    for (size_t i = 0; i < ranges->count; i++) {
        if (kept != 0 && rows_join(&ranges->rows[kept - 1], &ranges->rows[i]))
            ranges->rows[kept - 1].size_bytes += ranges->rows[i].size_bytes;
        else
            ranges->rows[kept++] = ranges->rows[i];
    }
    ranges->count = kept;
}

static enum vram_status add_picture_block(struct advance *picture, uint64_t address, uint64_t size_bytes, const struct live_row *block) {
    struct vr_blocks *made = &picture->made_blocks;
    VR_TRY(vr_columns_grow(&vr_block_columns, made, &picture->block_capacity, made->count + 1, picture->budget));
    size_t row = made->count++;
    made->address[row] = address;
    made->size_bytes[row] = size_bytes;
    made->requested_bytes[row] = block == NULL ? 0 : block->requested_bytes;
    made->stack[row] = block == NULL ? 0 : block->stack;
    made->state[row] = block == NULL ? VR_STATE_INACTIVE : block->state;
    made->has[row] = BLOCK_HAS;
    return VRAM_OK;
}

static enum vram_status begin_segment(struct advance *picture, uint32_t device, const struct live_row *range) {
    struct vr_segments *made = &picture->made_segments;
    VR_TRY(vr_columns_grow(&vr_segment_columns, made, &picture->segment_capacity, made->count + 1, picture->budget));
    size_t row = made->count++;
    made->device[row] = device;
    made->address[row] = range->address;
    made->total_bytes[row] = range->size_bytes;
    made->allocated_bytes[row] = made->active_bytes[row] = made->requested_bytes[row] = made->counter[row] = 0;
    made->stream[row] = range->stream;
    made->pool_first[row] = range->pool_first;
    made->pool_second[row] = range->pool_second;
    made->stack[row] = range->stack;
    // Segments of the small pool always have 2 MiB; segments of the large pool never do.
    made->kind[row] = range->state != VR_KIND_UNKNOWN ? range->state : range->size_bytes == PAGE_BYTES ? VR_KIND_SMALL : VR_KIND_LARGE;
    made->expandable[row] = range->expandable;
    made->has[row] = SEGMENT_HAS;
    return VRAM_OK;
}

static void book_block(struct vr_segments *made, uint64_t size_bytes, const struct live_row *block) {
    size_t row = made->count - 1;
    made->active_bytes[row] += size_bytes;
    made->requested_bytes[row] += block->requested_bytes;
    if (block->state == VR_STATE_ALLOCATED) made->allocated_bytes[row] += size_bytes;
}

// Adds the range with the blocks from *next on that begin in it, and the free blocks between them.
static enum vram_status add_picture_range(struct advance *picture, uint32_t device, const struct live_row *range, size_t *next) {
    const struct live_rows *blocks = &picture->blocks;
    uint64_t at = range->address, end = range->size_bytes > UINT64_MAX - at ? UINT64_MAX : at + range->size_bytes;
    VR_TRY(begin_segment(picture, device, range));
    for (; *next < blocks->count && blocks->rows[*next].address < end; ++*next) {
        const struct live_row *block = &blocks->rows[*next];
        uint64_t room = (*next + 1 < blocks->count && block[1].address < end ? block[1].address : end) - block->address;
        uint64_t size_bytes = block->size_bytes < room ? block->size_bytes : room;
        if (block->address > at) VR_TRY(add_picture_block(picture, at, block->address - at, NULL));
        VR_TRY(add_picture_block(picture, block->address, size_bytes, block));
        book_block(&picture->made_segments, size_bytes, block);
        at = block->address + size_bytes;
    }
    if (at < end) VR_TRY(add_picture_block(picture, at, end - at, NULL));
    void *first = picture->made_segments.first_block;
    enum vram_status status =
        vr_budget_grow(picture->budget, &first, &picture->first_block_capacity, picture->made_segments.count + 1, sizeof(uint64_t));
    picture->made_segments.first_block = first;
    VR_TRY(status);
    picture->made_segments.first_block[picture->made_segments.count] = picture->made_blocks.count;
    return VRAM_OK;
}

// Makes a block outside every segment a segment of its own, which ends where the next block or segment begins.
static enum vram_status add_lone_block(struct advance *picture, uint32_t device, uint64_t limit, size_t *next) {
    struct live_row range = picture->blocks.rows[*next];
    if (*next + 1 < picture->blocks.count && range.address < picture->blocks.rows[*next + 1].address &&
        picture->blocks.rows[*next + 1].address < limit) {
        limit = picture->blocks.rows[*next + 1].address;
    }
    if (range.size_bytes > limit - range.address) range.size_bytes = limit - range.address;
    range.state = VR_KIND_UNKNOWN;
    range.expandable = false;
    return add_picture_range(picture, device, &range, next);
}

static enum vram_status add_picture_device(struct advance *picture, uint32_t device) {
    struct live_rows *ranges = &picture->ranges, *blocks = &picture->blocks;
    size_t next = 0;
    settle_live_rows(ranges);
    settle_live_rows(blocks);
    join_ranges(ranges);
    for (size_t i = 0; i <= ranges->count; i++) {
        uint64_t limit = i == ranges->count ? UINT64_MAX : ranges->rows[i].address;
        while (next < blocks->count && blocks->rows[next].address < limit) VR_TRY(add_lone_block(picture, device, limit, &next));
        if (i < ranges->count) VR_TRY(add_picture_range(picture, device, &ranges->rows[i], &next));
    }
    return VRAM_OK;
}

static enum vram_status make_picture(struct advance *picture, const struct vr_model *model, const struct vr_picture_marks *marks) {
    void *first = NULL;
    VR_TRY(vr_budget_grow(picture->budget, &first, &picture->first_block_capacity, 1, sizeof(uint64_t)));
    picture->made_segments.first_block = first;
    picture->made_segments.first_block[0] = 0;
    for (size_t device = 0; device < model->history_count; device++) {
        const struct vr_history *history = &model->histories[device];
        size_t from = vr_model_is_host(model, device) ? marks->host : device < marks->count ? marks->device[device] : 0;
        VR_TRY(load_picture(picture, model, (uint32_t)device));
        for (size_t i = from; i < history->count; i++) VR_TRY(apply_recorded_event(picture, history, i));
        VR_TRY(add_picture_device(picture, (uint32_t)device));
        release_book(&picture->ranges);
        release_book(&picture->blocks);
    }
    return VRAM_OK;
}

enum vram_status vr_picture_advance(struct vr_model *model, const struct vr_picture_marks *marks, struct vr_budget *budget) {
    struct advance picture = {.budget = budget};
    enum vram_status status = make_picture(&picture, model, marks);
    release_book(&picture.ranges);
    release_book(&picture.blocks);
    // Allocate at least one row, so that no column of an empty picture is NULL.
    if (status == VRAM_OK) status = vr_columns_grow(&vr_segment_columns, &picture.made_segments, &picture.segment_capacity, 1, budget);
    if (status == VRAM_OK) status = vr_columns_grow(&vr_block_columns, &picture.made_blocks, &picture.block_capacity, 1, budget);
    struct vr_segments segments = picture.made_segments;
    struct vr_blocks blocks = picture.made_blocks;
    if (status == VRAM_OK) {
        picture.made_segments = model->segments;
        picture.made_blocks = model->blocks;
        model->segments = segments;
        model->blocks = blocks;
        model->tenant_count = 0;
    }
    vr_columns_release(&vr_segment_columns, &picture.made_segments);
    free(picture.made_segments.first_block);
    vr_columns_release(&vr_block_columns, &picture.made_blocks);
    return status;
}

// The picture of a log that frees nothing needs this many times the memory of the log.
enum { PICTURE_FACTOR = 9 };

enum vram_status vr_event_list_init(struct vr_event_list *list, struct vr_input *input) {
    memset(list, 0, sizeof *list);
    VR_TRY(vr_builder_init(&list->builder, VR_BUDGET_BASE));
    vr_input_set_budget(input, &list->builder.budget);
    return VRAM_OK;
}

void vr_event_list_release(struct vr_event_list *list, struct vr_input *input) {
    vr_input_set_budget(input, NULL);
    for (size_t i = 0; i < list->lane_count; i++) vr_columns_release(&vr_history_columns, &list->lanes[i].history);
    free(list->lanes);
    free(list->annotations);
    vr_builder_release(&list->builder);
}

static enum vram_status find_lane(struct vr_event_list *list, uint32_t device, struct vr_event_lane **lane) {
    if (device >= list->lane_count) {
        struct vr_event_lane *lanes = realloc(list->lanes, ((size_t)device + 1) * sizeof *lanes);
        if (lanes == NULL) return VRAM_NO_HOST_MEMORY;
        memset(lanes + list->lane_count, 0, ((size_t)device + 1 - list->lane_count) * sizeof *lanes);
        list->lanes = lanes;
        list->lane_count = (size_t)device + 1;
    }
    *lane = &list->lanes[device];
    return VRAM_OK;
}

// Makes room for one more event. An event list uses only one of the sparse columns, the thread.
static enum vram_status grow_lane(struct vr_event_list *list, struct vr_event_lane *lane) {
    struct vr_history *history = &lane->history;
    if (history->thread == NULL) {
        // Growing skips sparse columns that are NULL.
        history->thread = calloc(1, sizeof *history->thread);
        if (history->thread == NULL) return VRAM_NO_HOST_MEMORY;
    }
    return vr_columns_grow_ahead(&vr_history_columns, history, &lane->capacity, &lane->held, history->count + 1, &list->builder.budget);
}

enum vram_status vr_event_list_add(struct vr_event_list *list, uint32_t device, const struct vr_event_row *row) {
    assert(device < VR_EVENTLIST_DEVICES);
    struct vr_event_lane *lane;
    VR_TRY(find_lane(list, device, &lane));
    struct vr_history *history = &lane->history;
    if (history->count == lane->capacity) VR_TRY(grow_lane(list, lane));
    const size_t i = history->count++;
    history->action[i] = (uint8_t)row->action;
    history->address[i] = row->address;
    history->size_bytes[i] = row->size_bytes;
    VR_COLUMN_PUT_ALIKE(history->stream, lane->held, history->count, i, row->stream);
    history->time_us[i] = row->time_us;
    history->stack[i] = row->stack;
    history->thread[i] = row->thread;
    VR_COLUMN_PUT_ALIKE(history->has, lane->held, history->count, i, row->has);
    return VRAM_OK;
}

enum vram_status vr_event_list_mark(struct vr_event_list *list, int64_t device, const char *stage, uint32_t name, int64_t time_us) {
    uint32_t word;
    void *marks = list->annotations;
    VR_TRY(vr_builder_string(&list->builder, stage, strlen(stage), &word));
    const enum vram_status status =
        vr_budget_grow(&list->builder.budget, &marks, &list->annotation_capacity, list->annotation_count + 1, sizeof *list->annotations);
    list->annotations = marks;
    VR_TRY(status);
    list->annotations[list->annotation_count++] = (struct vr_annotation){name, word, device, time_us};
    return VRAM_OK;
}

static enum vram_status finish_keys(struct vr_event_list *list, struct vr_model *model) {
    static const char *const keys[] = {"segments", "device_traces", "external_annotations"};
    model->top_level_keys = malloc(VR_COUNT_OF(keys) * sizeof *model->top_level_keys);
    if (model->top_level_keys == NULL) return VRAM_NO_HOST_MEMORY;
    for (; model->top_level_key_count < VR_COUNT_OF(keys); model->top_level_key_count++) {
        const char *key = keys[model->top_level_key_count];
        VR_TRY(vr_builder_string(&list->builder, key, strlen(key), &model->top_level_keys[model->top_level_key_count]));
    }
    return VRAM_OK;
}

static enum vram_status finish_event_list(struct vr_event_list *list, struct vr_model *model, struct vram_error *error) {
    const struct vr_picture_marks none = {.count = 0};
    VR_TRY(finish_keys(list, model));
    model->histories = calloc(list->lane_count + 1, sizeof *model->histories);
    model->segments.first_block = calloc(1, sizeof *model->segments.first_block);
    if (model->histories == NULL || model->segments.first_block == NULL) return VRAM_NO_HOST_MEMORY;
    for (; model->history_count < list->lane_count; model->history_count++) {
        struct vr_history *history = &model->histories[model->history_count];
        *history = list->lanes[model->history_count].history;
        memset(&list->lanes[model->history_count], 0, sizeof *list->lanes);
        // Count the history before finishing it, so that it is released with the model on failure.
        const enum vram_status status = vr_columns_finish(&vr_history_columns, history, history->count);
        if (status != VRAM_OK) {
            model->history_count++;
            return status;
        }
    }
    model->annotations = list->annotations;
    model->annotation_count = list->annotation_count;
    list->annotations = NULL;
    struct vr_budget budget = list->builder.budget;
    vr_builder_finish(&list->builder, model);
    VR_TRY(vr_model_check(model, error));
    VR_TRY(vr_picture_advance(model, &none, &budget));
    // The kind of these segments was not recorded.
    for (size_t i = 0; i < model->segments.count; i++) {
        model->segments.kind[i] = VR_KIND_UNKNOWN;
        model->segments.has[i] &= ~(uint32_t)VR_HAS_SEGMENT_TYPE;
    }
    return VRAM_OK;
}

enum vram_status vr_event_list_finish(struct vr_event_list *list, const struct vr_input *input, struct vr_model *model,
                                      struct vram_error *error) {
    list->builder.budget.limit_bytes += PICTURE_FACTOR * vr_input_offset(input);
    const enum vram_status status = finish_event_list(list, model, error);
    if (status != VRAM_OK) vr_model_release(model);
    return status;
}
