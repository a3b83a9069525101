// Streams events into a recording file as they come (vram/log.h).
#include "live/file.h"
#include "live/live_settings.h"

static enum vram_status open_file(const char *path, uint64_t max_bytes, struct vr_stream **stream, struct vram_error *error) {
    struct vr_stream *made = calloc(1, sizeof *made);
    if (made == NULL) return VRAM_NO_HOST_MEMORY;
    const struct vram_log_options log = {.max_bytes = max_bytes, .producer = "vram_history", .replace = true};
    const enum vram_status status = vram_log_create(path, &log, &made->log, error);
    if (status != VRAM_OK) {
        free(made);
        return status;
    }
    made->max_bytes = max_bytes;
    vr_mutex_init(&made->mutex);
    *stream = made;
    return VRAM_OK;
}

enum vram_status vr_stream_open(const struct vram_history_options *options, struct vr_stream **stream, struct vram_error *error) {
    return open_file(options->file, options->max_file_bytes, stream, error);
}

static void release_stream(struct vr_stream *stream) {
    vr_mutex_destroy(&stream->mutex);
    free(stream->pattern);
    free(stream->words);
    free(stream);
}

enum vram_status vr_stream_close(struct vr_stream *stream) {
    const enum vram_status status = vram_log_close(stream->log);
    release_stream(stream);
    return status;
}

// Opens a child's own file. A pattern without the process id would name the parent's file.
static enum vram_status open_own(struct vr_stream *parent, struct vr_stream **stream) {
    char path[VR_PATH_BYTES];
    size_t length = 0;
    if (parent->pattern == NULL || strstr(parent->pattern, "%p") == NULL) return VRAM_UNSUPPORTED;
    VR_TRY(vram_expand_path(parent->pattern, path, sizeof path, &length));
    if (length >= sizeof path) return VRAM_LIMIT;
    VR_TRY(open_file(path, parent->max_bytes, stream, NULL));
    (*stream)->pattern = parent->pattern;
    parent->pattern = NULL;
    return VRAM_OK;
}

void vr_stream_leave(struct vr_stream *stream, struct vr_stream **made) {
    if (open_own(stream, made) != VRAM_OK) *made = NULL;
    vram_log_abandon(stream->log);
    vr_mutex_unlock(&stream->mutex);
    release_stream(stream);
}

static enum vram_status ask_string(struct vr_stream *stream, uint32_t word, uint32_t *id) {
    struct vr_text text = {0};
    vr_thread_text_append(word, &text);
    enum vram_status status = vr_text_status(&text);
    if (status == VRAM_OK) status = vram_log_string(stream->log, vr_text_string(&text), text.length, id);
    vr_text_release(&text);
    return status;
}

// Gets the log's id for a text of the process's table; the text must not be empty.
VR_NOINLINE static enum vram_status find_string(struct vr_stream *stream, uint32_t word, uint32_t *id) {
    if (word >= stream->word_capacity) {
        const size_t capacity = (size_t)word * 2 + 64;
        uint32_t *words = realloc(stream->words, capacity * sizeof *words);
        if (words == NULL) return VRAM_NO_HOST_MEMORY;
        memset(words + stream->word_capacity, 0, (capacity - stream->word_capacity) * sizeof *words);
        stream->words = words;
        stream->word_capacity = capacity;
    }
    if (stream->words[word] == 0) VR_TRY(ask_string(stream, word, &stream->words[word]));
    *id = stream->words[word];
    return VRAM_OK;
}

VR_INLINE enum vram_status string_of(struct vr_stream *stream, uint32_t word, uint32_t *id) {
    *id = 0;
    return VR_LIKELY(word == 0) ? VRAM_OK : find_string(stream, word, id);
}

static uint32_t log_action(uint32_t action) {
    static const uint8_t same[] = {
        [VR_ACTION_ALLOC] = VRAM_LOG_ALLOC,
        [VR_ACTION_FREE_REQUESTED] = VRAM_LOG_FREE_REQUESTED,
        [VR_ACTION_FREE_COMPLETED] = VRAM_LOG_FREE_COMPLETED,
        [VR_ACTION_FREE] = VRAM_LOG_FREE,
        [VR_ACTION_SEGMENT_ALLOC] = VRAM_LOG_SEGMENT_ALLOC,
        [VR_ACTION_SEGMENT_FREE] = VRAM_LOG_SEGMENT_FREE,
        [VR_ACTION_SEGMENT_MAP] = VRAM_LOG_SEGMENT_MAP,
        [VR_ACTION_SEGMENT_UNMAP] = VRAM_LOG_SEGMENT_UNMAP,
        [VR_ACTION_SNAPSHOT] = VRAM_LOG_SNAPSHOT,
        [VR_ACTION_OOM] = VRAM_LOG_OOM,
        [VR_ACTION_USER_DEFINED] = VRAM_LOG_USER_DEFINED,
        [VR_ACTION_ANNOTATE] = VRAM_LOG_ANNOTATE,
    };
    assert(action < VR_COUNT_OF(same));
    return same[action];
}

static enum vram_status append_locked(struct vr_stream *stream, struct vram_stacks *stacks, uint32_t ring, const struct vr_event *event,
                                      bool completes) {
    struct vram_log_event made = {
        .address = event->address,
        .size_bytes = event->size_bytes,
        .stream = event->stream,
        .time_ns = vr_os_epoch_ns(),
        .pool = {(event->pool & 1) != 0 ? 0 : event->pool >> 1, (event->pool & 1) != 0 ? event->pool >> 1 : 0},
        .device = ring == VR_TRACER_HOST ? VRAM_LOG_HOST : ring,
        .action = log_action(event->action),
        .thread = event->origin.thread,
    };
    VR_TRY(string_of(stream, event->origin.context, &made.context));
    VR_TRY(string_of(stream, event->origin.metadata, &made.metadata));
    VR_TRY(string_of(stream, event->origin.tag, &made.tag));
    if (event->stack != 0) VR_TRY(vram_stack_log(stacks, event->stack, stream->log, &made.stack));
    return completes ? vram_log_append_free(stream->log, &made) : vram_log_append(stream->log, &made, 1);
}

void vr_stream_event(struct vr_stream *stream, struct vram_stacks *stacks, uint32_t ring, const struct vr_event *event, bool completes) {
    const uint64_t count = completes ? 2 : 1;
    vr_mutex_lock(&stream->mutex);
    const enum vram_status status = append_locked(stream, stacks, ring, event, completes);
    vr_mutex_unlock(&stream->mutex);
    atomic_fetch_add_explicit(&stream->events, count, memory_order_relaxed);
    if (status != VRAM_OK) atomic_fetch_add_explicit(&stream->lost, count, memory_order_relaxed);
}

// Writes the pairs of a mark for which the file has columns.
static enum vram_status log_pairs(struct vr_stream *stream, const struct vr_mark *mark, const char *pairs) {
    struct vr_text stage = {0}, name = {0};
    size_t length = 0;
    const char *value = vr_pairs_find(pairs, "stage", &length);
    if (value != NULL) vr_text_append(&stage, value, length);
    value = vr_pairs_find(pairs, "name", &length);
    if (value != NULL) vr_text_append(&name, value, length);
    enum vram_status status = vr_text_status(&stage);
    if (status == VRAM_OK) status = vr_text_status(&name);
    if (status == VRAM_OK) status = vram_log_annotation(stream->log, mark->device, vr_text_string(&stage), vr_text_string(&name), 0);
    vr_text_release(&stage);
    vr_text_release(&name);
    return status;
}

enum vram_status vr_stream_mark(struct vr_stream *stream, const struct vr_mark *mark) {
    struct vr_text name = {0};
    vr_thread_text_append(mark->name, &name);
    enum vram_status status = vr_text_status(&name);
    if (status == VRAM_OK && mark->stage == VR_STAGE_PAIRS)
        status = log_pairs(stream, mark, vr_text_string(&name));
    else if (status == VRAM_OK)
        status = vram_log_annotation(stream->log, mark->device, vr_annotation_stage_name(mark->stage), vr_text_string(&name), 0);
    vr_text_release(&name);
    return status;
}

// --- state ---------------------------------------------------------------------------------------------------------------------------

static enum vram_status put_setting(const char *key, const char *json, size_t length, void *user) {
    struct vr_stream *stream = user;
    (void)length;
    return vram_log_setting(stream->log, key, json);
}

enum vram_status vr_stream_settings(struct vr_stream *stream, const struct vr_copied *copied) {
    return vr_settings_visit(copied, put_setting, stream);
}

static uint32_t view_state(uint8_t state) {
    return state == VR_FREE ? VRAM_BLOCK_FREE : state == VR_PENDING ? VRAM_BLOCK_PENDING : VRAM_BLOCK_ALLOCATED;
}

static enum vram_status list_blocks(struct vr_stream *stream, struct vram_stacks *stacks, const struct vr_picture *picture,
                                    struct vram_log_block *blocks) {
    for (size_t i = 0; i < picture->block_count; i++) {
        const struct vr_picture_block *from = &picture->blocks[i];
        blocks[i] = (struct vram_log_block){
            .address = from->address, .size_bytes = from->size, .requested_bytes = from->requested, .state = view_state(from->state)};
        if (from->stack != 0) VR_TRY(vram_stack_log(stacks, from->stack, stream->log, &blocks[i].stack));
    }
    return VRAM_OK;
}

// number: of the device in the file.
static enum vram_status list_segments(struct vr_stream *stream, struct vram_stacks *stacks, uint32_t number,
                                      const struct vr_picture *picture, const struct vram_log_block *blocks,
                                      struct vram_log_segment *segments) {
    for (size_t i = 0; i < picture->segment_count; i++) {
        const struct vr_picture_segment *from = &picture->segments[i];
        const size_t end = i + 1 < picture->segment_count ? from[1].first_block : picture->block_count;
        segments[i] = (struct vram_log_segment){
            .address = from->address,
            .size_bytes = from->size,
            .stream = from->stream,
            .counter = from->counter,
            .pool = from->pool,
            .device = number,
            .small = from->small,
            .expandable = from->expandable,
            .blocks = blocks + from->first_block,
            .block_count = end - from->first_block,
        };
        if (from->stack != 0) VR_TRY(vram_stack_log(stacks, from->stack, stream->log, &segments[i].stack));
    }
    return VRAM_OK;
}

static enum vram_status put_state(struct vr_stream *stream, const struct vr_copied *copied, struct vram_log_segment *segments,
                                  struct vram_log_block *blocks) {
    size_t segment_count = 0, block_count = 0;
    for (size_t i = 0; i < copied->device_count; i++) {
        const struct vr_copied_device *device = &copied->devices[i];
        VR_TRY(list_blocks(stream, copied->tracer->stacks, &device->picture, blocks + block_count));
        const bool host = copied->has_host && i + 1 == copied->device_count;
        const uint32_t number = host ? VRAM_LOG_HOST : device->ordinal;
        VR_TRY(list_segments(stream, copied->tracer->stacks, number, &device->picture, blocks + block_count, segments + segment_count));
        segment_count += device->picture.segment_count;
        block_count += device->picture.block_count;
    }
    return vram_log_state(stream->log, segments, segment_count);
}

enum vram_status vr_stream_state(struct vr_stream *stream, const struct vr_copied *copied) {
    size_t segments = 0, blocks = 0;
    for (size_t i = 0; i < copied->device_count; i++) {
        segments += copied->devices[i].picture.segment_count;
        blocks += copied->devices[i].picture.block_count;
    }
    VR_TRY(vr_stream_settings(stream, copied));
    struct vram_log_segment *listed = calloc(segments + 1, sizeof *listed);
    struct vram_log_block *pieces = calloc(blocks + 1, sizeof *pieces);
    enum vram_status status = VRAM_NO_HOST_MEMORY;
    if (listed != NULL && pieces != NULL) status = put_state(stream, copied, listed, pieces);
    free(listed);
    free(pieces);
    return status;
}

enum vram_status vr_stream_oom(struct vr_stream *stream, const struct vr_oom_facts *facts) {
    return vr_settings_visit_oom(facts, put_setting, stream);
}
