#include "live/live_model.h"

#include "base/json.h"
#include "live/live_settings.h"
#include "model/columns.h"

// Maps numbers of the tracer's tables to ids of the model: 0 means unknown, else id + 1.
struct translation {
    uint32_t *ids;
    size_t ids_capacity;
};

struct filler {
    const struct vr_copied *copied;
    struct vr_model *model;
    struct vr_builder builder;
    struct translation stacks;
    struct translation words;
    struct vram_frame *frames;
    uint32_t *frame_ids;
    size_t frame_capacity;
    uint32_t no_context; // string "N/A"
    uint32_t name_key;   // string "user_metadata"
    size_t extra_capacity;
    size_t block_count; // rows filled so far
};

static enum vram_status intern_text(struct filler *filler, const char *text, uint32_t *id) {
    const size_t length = strlen(text);
    if (vr_utf8_valid(text, length)) return vr_builder_string(&filler->builder, text, length, id);
    struct vr_text shown = {0};
    vr_text_printable(&shown, text, length);
    enum vram_status status = vr_text_status(&shown);
    if (status == VRAM_OK) status = vr_builder_string(&filler->builder, vr_text_string(&shown), shown.length, id);
    vr_text_release(&shown);
    return status;
}

// --- stacks and words ----------------------------------------------------------------------------------------------------------------

static enum vram_status make_room(struct translation *table, uint32_t number) {
    const size_t before = table->ids_capacity;
    VR_TRY(VR_GROW(table, ids, (size_t)number + 1));
    if (table->ids_capacity > before) memset(table->ids + before, 0, (table->ids_capacity - before) * sizeof *table->ids);
    return VRAM_OK;
}

static enum vram_status frames_of(struct filler *filler, uint32_t stack, size_t *count) {
    struct vram_stacks *stacks = filler->copied->tracer->stacks;
    *count = vram_stack_frames(stacks, stack, filler->frames, filler->frame_capacity);
    if (*count <= filler->frame_capacity) return VRAM_OK;
    const size_t wanted = *count;
    struct vram_frame *frames = realloc(filler->frames, wanted * sizeof *frames);
    if (frames == NULL) return VRAM_NO_HOST_MEMORY;
    filler->frames = frames;
    uint32_t *ids = realloc(filler->frame_ids, wanted * sizeof *ids);
    if (ids == NULL) return VRAM_NO_HOST_MEMORY;
    filler->frame_ids = ids;
    filler->frame_capacity = wanted;
    *count = vram_stack_frames(stacks, stack, filler->frames, wanted);
    return VRAM_OK;
}

static enum vram_status add_stack(struct filler *filler, uint32_t stack, uint32_t *id) {
    size_t count = 0;
    VR_TRY(frames_of(filler, stack, &count));
    for (size_t i = 0; i < count; i++) {
        uint32_t name = 0, filename = 0;
        VR_TRY(intern_text(filler, filler->frames[i].name, &name));
        VR_TRY(intern_text(filler, filler->frames[i].filename, &filename));
        VR_TRY(vr_builder_frame(&filler->builder, name, filename, filler->frames[i].line, &filler->frame_ids[i]));
    }
    return vr_builder_stack(&filler->builder, filler->frame_ids, count, id);
}

static enum vram_status stack_id(struct filler *filler, uint32_t stack, uint32_t *id) {
    *id = 0;
    if (stack == 0) return VRAM_OK;
    if (stack >= filler->stacks.ids_capacity) VR_TRY(make_room(&filler->stacks, stack));
    if (filler->stacks.ids[stack] == 0) {
        VR_TRY(add_stack(filler, stack, id));
        filler->stacks.ids[stack] = *id + 1;
    }
    *id = filler->stacks.ids[stack] - 1;
    return VRAM_OK;
}

static enum vram_status word_id(struct filler *filler, uint32_t word, uint32_t *id) {
    *id = 0;
    if (word == 0) return VRAM_OK;
    if (word >= filler->words.ids_capacity) VR_TRY(make_room(&filler->words, word));
    if (filler->words.ids[word] == 0) {
        struct vr_text text = {0};
        vr_thread_text_append(word, &text);
        enum vram_status status = vr_text_status(&text);
        if (status == VRAM_OK) status = vr_builder_string(&filler->builder, vr_text_string(&text), text.length, id);
        vr_text_release(&text);
        VR_TRY(status);
        filler->words.ids[word] = *id + 1;
    }
    *id = filler->words.ids[word] - 1;
    return VRAM_OK;
}

// --- segments and blocks -------------------------------------------------------------------------------------------------------------

static uint8_t model_state(uint8_t state) {
    return state == VR_FREE ? VR_STATE_INACTIVE : state == VR_PENDING ? VR_STATE_PENDING_FREE : VR_STATE_ALLOCATED;
}

// Adds an extra key to a row, with JSON as its value; "": the row lacks the key.
static enum vram_status add_json(struct filler *filler, enum vr_owner owner, size_t row, uint32_t key, const char *value) {
    struct vr_model *model = filler->model;
    uint32_t id = 0;
    VR_TRY(intern_text(filler, value, &id));
    void *extras = model->extras;
    const enum vram_status status = vr_grow(&extras, &filler->extra_capacity, model->extra_count + 1, sizeof *model->extras);
    model->extras = extras;
    if (status == VRAM_OK)
        model->extras[model->extra_count++] = (struct vr_extra){.owner = (uint8_t)owner, .row = row, .key = key, .value = id};
    return status;
}

// Adds an extra key with a string; value NULL: the row lacks the key.
static enum vram_status add_extra(struct filler *filler, enum vr_owner owner, size_t row, uint32_t key, const char *value, size_t length) {
    struct vr_text text = {0};
    struct vr_json json;
    vr_json_init(&json, &text, false);
    if (value != NULL) vr_json_string_bytes(&json, NULL, value, length);
    enum vram_status status = vr_text_status(&text);
    if (status == VRAM_OK) status = add_json(filler, owner, row, key, vr_text_string(&text));
    vr_text_release(&text);
    return status;
}

// Marks vacant segments by a further key, because PyTorch's tools show them like others. Called before any block is added, because extras
// are sorted by their owners.
static enum vram_status mark_vacant(struct filler *filler) {
    const struct vr_copied *copied = filler->copied;
    uint32_t key = 0;
    for (size_t i = 0, row = 0; i < copied->device_count; i++) {
        const struct vr_picture *picture = &copied->devices[i].picture;
        for (size_t s = 0; s < picture->segment_count; s++, row++) {
            if (!picture->segments[s].vacant) continue;
            VR_TRY(intern_text(filler, "asleep", &key));
            VR_TRY(add_json(filler, VR_OWNER_SEGMENT, row, key, "true"));
        }
    }
    return VRAM_OK;
}

// Adds the name that the program gave the block, as an extra key.
static enum vram_status add_name(struct filler *filler, size_t row, uint32_t words) {
    if (words == 0) return VRAM_OK;
    struct vr_text text = {0};
    vr_thread_text_append(words, &text);
    enum vram_status status = vr_text_status(&text);
    if (status == VRAM_OK) status = add_extra(filler, VR_OWNER_BLOCK, row, filler->name_key, vr_text_string(&text), text.length);
    vr_text_release(&text);
    return status;
}

static enum vram_status fill_block(struct filler *filler, const struct vr_picture_block *from) {
    struct vr_blocks *blocks = &filler->model->blocks;
    const size_t row = filler->block_count++;
    blocks->address[row] = from->address;
    blocks->size_bytes[row] = from->size;
    blocks->requested_bytes[row] = from->requested;
    blocks->state[row] = model_state(from->state);
    blocks->has[row] = VR_HAS_ADDRESS | VR_HAS_SIZE | VR_HAS_REQUESTED_SIZE | VR_HAS_STATE | VR_HAS_FRAMES;
    VR_TRY(stack_id(filler, from->stack, &blocks->stack[row]));
    return add_name(filler, row, from->words);
}

static enum vram_status fill_segment(struct filler *filler, uint32_t device, const struct vr_picture *picture, size_t index) {
    const struct vr_picture_segment *from = &picture->segments[index];
    const size_t end = index + 1 < picture->segment_count ? from[1].first_block : picture->block_count;
    struct vr_segments *segments = &filler->model->segments;
    const size_t row = segments->count++;
    uint64_t allocated = 0, active = 0, requested = 0;
    segments->first_block[row] = filler->block_count;
    for (size_t i = from->first_block; i < end; i++) {
        const struct vr_picture_block *block = &picture->blocks[i];
        if (block->state == VR_ALLOCATED) allocated += block->size;
        if (block->state != VR_FREE) active += block->size, requested += block->requested;
        VR_TRY(fill_block(filler, block));
    }
    segments->device[row] = device;
    segments->address[row] = from->address;
    segments->total_bytes[row] = from->size;
    segments->allocated_bytes[row] = allocated;
    segments->active_bytes[row] = active;
    segments->requested_bytes[row] = requested;
    segments->stream[row] = from->stream;
    segments->pool_first[row] = from->pool.first;
    segments->pool_second[row] = from->pool.second;
    segments->counter[row] = from->counter;
    segments->kind[row] = from->small ? VR_KIND_SMALL : VR_KIND_LARGE;
    segments->expandable[row] = from->expandable;
    segments->has[row] = VR_HAS_DEVICE | VR_HAS_ADDRESS | VR_HAS_TOTAL_SIZE | VR_HAS_ALLOCATED_SIZE | VR_HAS_ACTIVE_SIZE |
                         VR_HAS_REQUESTED_SIZE | VR_HAS_STREAM | VR_HAS_SEGMENT_TYPE | VR_HAS_POOL_ID | VR_HAS_EXPANDABLE | VR_HAS_COUNTER |
                         VR_HAS_FRAMES | VR_HAS_BLOCKS;
    return stack_id(filler, from->stack, &segments->stack[row]);
}

static enum vram_status fill_segments(struct filler *filler) {
    const struct vr_copied *copied = filler->copied;
    struct vr_model *model = filler->model;
    size_t segments = 0, blocks = 0, capacity = 0;
    for (size_t i = 0; i < copied->device_count; i++) {
        segments += copied->devices[i].picture.segment_count;
        blocks += copied->devices[i].picture.block_count;
    }
    VR_TRY(vr_columns_grow(&vr_segment_columns, &model->segments, &capacity, segments + 1, &filler->builder.budget));
    capacity = 0;
    VR_TRY(vr_columns_grow(&vr_block_columns, &model->blocks, &capacity, blocks + 1, &filler->builder.budget));
    model->segments.first_block = calloc(segments + 1, sizeof *model->segments.first_block);
    if (model->segments.first_block == NULL) return VRAM_NO_HOST_MEMORY;
    VR_TRY(mark_vacant(filler));
    for (size_t i = 0; i < copied->device_count; i++) {
        const struct vr_copied_device *device = &copied->devices[i];
        for (size_t s = 0; s < device->picture.segment_count; s++) VR_TRY(fill_segment(filler, device->ordinal, &device->picture, s));
    }
    model->blocks.count = filler->block_count;
    model->segments.first_block[model->segments.count] = filler->block_count;
    return VRAM_OK;
}

// --- events --------------------------------------------------------------------------------------------------------------------------

static int64_t time_us(const struct filler *filler, uint64_t ticks) {
    const struct vr_copied *copied = filler->copied;
    return (int64_t)(vr_instant_ns(&copied->tracer->origin, &copied->now, ticks) / 1000);
}

static enum vram_status fill_event(struct filler *filler, struct vr_history *history, const struct vr_event *from) {
    const size_t row = history->count++;
    const bool oom = from->action == VR_ACTION_OOM, user = (from->pool & 1) != 0;
    history->action[row] = (uint8_t)from->action;
    history->address[row] = from->address;
    history->size_bytes[row] = from->size_bytes;
    history->stream.apart[row] = from->stream;
    history->time_us[row] = time_us(filler, from->ticks);
    history->pool_first[row] = user ? 0 : from->pool >> 1;
    history->pool_second[row] = user ? from->pool >> 1 : 0;
    history->thread[row] = from->origin.thread;
    history->unknown[row] = 0;
    history->context[row] = filler->no_context;
    if (from->origin.context != 0) VR_TRY(word_id(filler, from->origin.context, &history->context[row]));
    VR_TRY(word_id(filler, from->origin.metadata, &history->metadata[row]));
    VR_TRY(word_id(filler, from->origin.tag, &history->tag[row]));
    VR_TRY(stack_id(filler, from->stack, &history->stack[row]));
    history->has.apart[row] = VR_HAS_ACTION | (oom ? VR_HAS_DEVICE_FREE : VR_HAS_ADDRESS) | VR_HAS_SIZE | VR_HAS_STREAM | VR_HAS_TIME |
                              VR_HAS_COMPILE_CONTEXT | VR_HAS_USER_METADATA | VR_HAS_POOL_ID | VR_HAS_THREAD |
                              (from->origin.tag != 0 ? VR_HAS_CATEGORY : 0) | (from->stack != 0 ? VR_HAS_FRAMES : 0);
    return VRAM_OK;
}

// Allocates every column, including the sparse ones, which growing leaves out.
static enum vram_status make_columns(struct filler *filler, struct vr_history *history, size_t count) {
    size_t capacity = 0;
    VR_TRY(vr_columns_grow(&vr_history_columns, history, &capacity, count + 1, &filler->builder.budget));
    for (size_t i = 0; i < vr_history_columns.count; i++) {
        if (vr_column_pointer(&vr_history_columns, history, i) != NULL) continue;
        void *column = calloc(count + 1, vr_history_columns.column[i].item_bytes);
        if (column == NULL) return VRAM_NO_HOST_MEMORY;
        vr_column_set(&vr_history_columns, history, i, column);
    }
    return VRAM_OK;
}

static enum vram_status fill_histories(struct filler *filler) {
    const struct vr_copied *copied = filler->copied;
    struct vr_model *model = filler->model;
    model->histories = calloc(copied->history_count + 1, sizeof *model->histories);
    if (model->histories == NULL) return VRAM_NO_HOST_MEMORY;
    model->history_count = copied->history_count;
    for (size_t h = 0; h < model->history_count; h++) {
        const struct vr_copied_device *device = copied->devices;
        while (device < copied->devices + copied->device_count && device->ordinal != h) device++;
        const size_t count = device == copied->devices + copied->device_count ? 0 : device->event_count;
        VR_TRY(make_columns(filler, &model->histories[h], count));
        for (size_t i = 0; i < count; i++) VR_TRY(fill_event(filler, &model->histories[h], &device->events[i]));
    }
    return VRAM_OK;
}

// Fills a column of a mark made of pairs: stage and name have columns, other pairs become extra keys.
static enum vram_status fill_column(struct filler *filler, size_t row, const char *pairs, const char *key, uint32_t *column) {
    size_t length = 0;
    const char *value = vr_pairs_find(pairs, key, &length);
    uint32_t id = 0;
    if (value != NULL) return vr_builder_string(&filler->builder, value, length, column);
    VR_TRY(intern_text(filler, key, &id));
    return add_extra(filler, VR_OWNER_ANNOTATION, row, id, NULL, 0);
}

static enum vram_status fill_pairs(struct filler *filler, size_t row, const char *pairs) {
    struct vr_annotation *made = &filler->model->annotations[row];
    VR_TRY(fill_column(filler, row, pairs, "stage", &made->stage));
    VR_TRY(fill_column(filler, row, pairs, "name", &made->name));
    for (const char *line = pairs; *line != '\0';) {
        const size_t size = strcspn(line, "\n"), tab = strcspn(line, "\t");
        const bool column = (tab == 5 && strncmp(line, "stage", 5) == 0) || (tab == 4 && strncmp(line, "name", 4) == 0);
        uint32_t key = 0;
        if (!column) VR_TRY(vr_builder_string(&filler->builder, line, tab, &key));
        if (!column) VR_TRY(add_extra(filler, VR_OWNER_ANNOTATION, row, key, line + tab + 1, size - tab - 1));
        line += size + (line[size] == '\n');
    }
    return VRAM_OK;
}

static enum vram_status fill_mark_of_pairs(struct filler *filler, size_t row, uint32_t word) {
    struct vr_text text = {0};
    vr_thread_text_append(word, &text);
    enum vram_status status = vr_text_status(&text);
    if (status == VRAM_OK) status = fill_pairs(filler, row, vr_text_string(&text));
    vr_text_release(&text);
    return status;
}

static enum vram_status fill_annotations(struct filler *filler) {
    const struct vr_copied *copied = filler->copied;
    struct vr_model *model = filler->model;
    model->annotations = calloc(copied->mark_count + 1, sizeof *model->annotations);
    if (model->annotations == NULL) return VRAM_NO_HOST_MEMORY;
    for (size_t i = 0; i < copied->mark_count; i++) {
        const struct vr_mark *mark = &copied->marks[i];
        struct vr_annotation *made = &model->annotations[i];
        *made = (struct vr_annotation){.device = mark->device, .time_us = time_us(filler, mark->ticks)};
        if (mark->stage == VR_STAGE_PAIRS) {
            VR_TRY(fill_mark_of_pairs(filler, i, mark->name));
        } else {
            VR_TRY(word_id(filler, mark->name, &made->name));
            VR_TRY(intern_text(filler, vr_annotation_stage_name(mark->stage), &made->stage));
        }
        model->annotation_count++;
    }
    return VRAM_OK;
}

static enum vram_status fill_keys(struct filler *filler) {
    static const char *const keys[] = {"segments",      "device_traces", "allocator_settings", "external_annotations",
                                       "host_segments", "host_traces"};
    const size_t count = VR_COUNT_OF(keys) - (filler->copied->has_host ? 0 : 2);
    struct vr_model *model = filler->model;
    model->top_level_keys = calloc(VR_COUNT_OF(keys), sizeof *model->top_level_keys);
    if (model->top_level_keys == NULL) return VRAM_NO_HOST_MEMORY;
    for (size_t i = 0; i < count; i++) VR_TRY(intern_text(filler, keys[i], &model->top_level_keys[model->top_level_key_count++]));
    return VRAM_OK;
}

static enum vram_status fill_all(struct filler *filler) {
    const struct vr_copied *copied = filler->copied;
    filler->model->host_count = copied->has_host ? 1 : 0;
    filler->model->form = copied->segments_only ? VR_FORM_SEGMENT_LIST : VR_FORM_DICT;
    VR_TRY(intern_text(filler, "N/A", &filler->no_context));
    VR_TRY(intern_text(filler, "user_metadata", &filler->name_key));
    VR_TRY(fill_segments(filler));
    VR_TRY(fill_histories(filler));
    VR_TRY(fill_annotations(filler));
    if (copied->segments_only) return VRAM_OK;
    VR_TRY(vr_live_model_settings(copied, &filler->builder, filler->model));
    return fill_keys(filler);
}

enum vram_status vr_live_model(const struct vr_copied *copied, struct vr_model *model) {
    assert(copied->device_count <= VR_COUNT_OF(copied->devices) && model->segments.count == 0 && model->history_count == 0);
    assert(!copied->has_history || copied->tracer != NULL);
    struct filler filler = {.copied = copied, .model = model};
    VR_TRY(vr_builder_init(&filler.builder, UINT64_MAX));
    const enum vram_status status = fill_all(&filler);
    if (status == VRAM_OK) {
        vr_builder_finish(&filler.builder, model);
    } else {
        vr_builder_release(&filler.builder);
    }
    free(filler.stacks.ids);
    free(filler.words.ids);
    free(filler.frames);
    free(filler.frame_ids);
    return status;
}
