// Starts and stops a history; annotations and marks.
#include "core/alloc.h"
#include "live/live_host.h"
#include "model/model.h"

// --- options ----------------------------------------------------------------------------------------------------------------------------

static const char *action_name(uint32_t action) { return vr_action_name(vr_tracer_action((enum vr_record_action)action)); }

static enum vram_status read_skipped(const struct vram_history_options *options, uint32_t *skipped, struct vram_error *error) {
    uint32_t bits = 0;
    for (size_t i = 0; i < options->skip_count; i++) {
        uint32_t action = 0;
        while (action < VR_RECORD_COUNT && strcmp(options->skip_actions[i], action_name(action)) != 0) action++;
        if (action == VR_RECORD_COUNT) {
            return vr_fail(error, VRAM_INVALID_ARGUMENT, VRAM_NO_OFFSET, "unknown action \"%s\"", options->skip_actions[i]);
        }
        bits |= 1u << action;
    }
    *skipped = bits;
    return VRAM_OK;
}

static enum vr_level level_of(enum vram_history_level context) {
    static const enum vr_level levels[] = {VR_LEVEL_ALL, VR_LEVEL_ALLOC, VR_LEVEL_STATE, VR_LEVEL_NEVER};
    return levels[context];
}

static enum vram_stack_kind kind_of(enum vram_history_stacks stacks) {
    static const enum vram_stack_kind kinds[] = {VRAM_STACK_ALL, VRAM_STACK_PYTHON, VRAM_STACK_C};
    return kinds[stacks];
}

static void forget_events(struct vr_tracer *tracer) {
    for (int i = 0; i < VR_TRACER_RINGS; i++) vr_ring_clear(&tracer->rings[i]);
    vr_mutex_lock(&tracer->marks_mutex);
    free(tracer->marks.items);
    tracer->marks = (struct vr_marks){0};
    vr_mutex_unlock(&tracer->marks_mutex);
}

static enum vram_status resize_rings(struct vr_tracer *tracer, uint64_t max_entries) {
    for (int i = 0; i < VR_TRACER_RINGS; i++) VR_TRY(vr_ring_resize(&tracer->rings[i], max_entries));
    vr_mutex_lock(&tracer->marks_mutex); // memory goes away meanwhile
    const enum vram_status status = vr_marks_resize(&tracer->marks, max_entries);
    if (status == VRAM_OK) tracer->max_entries = max_entries;
    vr_mutex_unlock(&tracer->marks_mutex);
    return status;
}

// --- files ------------------------------------------------------------------------------------------------------------------------------

// A change of the stream to which rings send their events.
struct stream_change {
    struct vr_tracer *tracer;
    struct vr_stream *stream;
};

static void change_ring(const struct stream_change *change, uint32_t ring) {
    atomic_store_explicit(&change->tracer->streams[ring], change->stream, memory_order_release);
}

// Called under all locks of the device, so the previous file has the device's last event. A history that ends is detached from the device
// here.
static void change_device(struct vr_device *device, const struct vr_picture *picture, void *user) {
    (void)picture;
    change_ring(user, device->ordinal);
    if (device->allocator->listener == NULL) vr_device_listen(device);
}

static void change_host(void *user) { change_ring(user, VR_TRACER_HOST); }

// Called with the allocator's mutex held, so no device is set up meanwhile.
static enum vram_status copy_devices_locked(struct vr_copied *copied, struct stream_change *change) {
    for (uint32_t i = 0; i < VRAM_MAX_DEVICES; i++) {
        struct vr_device *device = vr_device_if_used(copied->tracer->allocator, i);
        if (device == NULL) {
            change_ring(change, i);
            continue;
        }
        struct vr_copied_device *made = &copied->devices[copied->device_count++];
        made->ordinal = i;
        VR_TRY(vr_picture_take(device, NULL, &made->picture, change_device, change));
    }
    return VRAM_OK;
}

// Copies the state of each device and of pinned memory at the moment when its events change their destination.
static enum vram_status copy_last_state(struct vr_copied *copied, struct stream_change *change) {
    struct vram_allocator *allocator = copied->tracer->allocator;
    VR_TRY(vr_copy_settings(allocator, copied));
    vr_mutex_lock(&allocator->mutex);
    const enum vram_status status = copy_devices_locked(copied, change);
    vr_mutex_unlock(&allocator->mutex);
    VR_TRY(status);
    return copied->tracer->host == NULL ? VRAM_OK : vr_copy_host_state(copied, change_host, change);
}

// Writes settings and state into the file if memory allows: without them, a reader derives the state from the events.
static void finish_file(struct vr_tracer *tracer, struct vr_stream *stream, struct stream_change *change) {
    struct vr_copied *copied = calloc(1, sizeof *copied);
    if (copied == NULL) return;
    copied->tracer = tracer;
    if (copy_last_state(copied, change) == VRAM_OK) (void)!vr_stream_state(stream, copied);
    vr_copied_release(copied);
    free(copied);
}

// Writes settings at the beginning of a file, so that the file of a killed program has them. Without memory they are written only at the
// end.
static void begin_file(struct vr_tracer *tracer, struct vr_stream *stream) {
    struct vr_copied *copied = calloc(1, sizeof *copied);
    if (copied == NULL) return;
    copied->tracer = tracer;
    if (vr_copy_settings(tracer->allocator, copied) == VRAM_OK) (void)!vr_stream_settings(stream, copied);
    vr_copied_release(copied);
    free(copied);
}

// Sends events to `stream` (NULL: the rings) from now on. Returns the previous file, or NULL. The previous file has its last state and must
// be closed once no thread can be inside it.
static struct vr_stream *change_file(struct vr_tracer *tracer, struct vr_stream *stream) {
    struct stream_change change = {tracer, stream};
    struct vr_stream *old = tracer->stream;
    tracer->stream = stream;
    if (old != NULL) finish_file(tracer, old, &change);
    for (uint32_t i = 0; i < VR_TRACER_RINGS; i++) change_ring(&change, i);
    return old;
}

// --- start and stop ---------------------------------------------------------------------------------------------------------------------

// Puts the options into force. After vr_allocator_set_listener() no thread uses the old stream.
static enum vram_status apply_options(struct vr_tracer *tracer, const struct vram_history_options *options, uint32_t skipped,
                                      struct vr_stream *stream) {
    const bool only_state = options->enabled == VRAM_HISTORY_STATE;
    if (options->clear_history) forget_events(tracer);
    VR_TRY(resize_rings(tracer, only_state ? 1 : options->max_entries == 0 ? VR_RING_MOST : options->max_entries));
    const enum vr_level level = level_of(options->context);
    atomic_store_explicit(&tracer->kind, kind_of(options->stacks), memory_order_relaxed);
    const uint32_t flags = skipped | (level >= VR_LEVEL_ALLOC ? VR_TRACER_STACKS : 0) | (options->compile_context ? VR_TRACER_CONTEXTS : 0);
    atomic_store_explicit(&tracer->flags, flags, memory_order_relaxed);
    atomic_store_explicit(&tracer->marks_of, options->own_annotations_only ? (uint32_t)vr_os_thread_id() : 0, memory_order_relaxed);
    atomic_store_explicit(&tracer->listener.level, level, memory_order_relaxed);
    struct vr_stream *old = change_file(tracer, stream);
    const uint64_t devices = options->no_device_memory ? 0 : options->devices == 0 ? UINT64_MAX : options->devices;
    atomic_store_explicit(&tracer->recording, true, memory_order_relaxed);
    vr_allocator_set_listener(tracer->allocator, &tracer->listener, devices);
    vr_tracer_record_host(tracer, options->host);
    return old == NULL ? VRAM_OK : vr_stream_close(old);
}

static bool are_known(const struct vram_history_options *options) {
    return (unsigned)options->enabled <= VRAM_HISTORY_NONE && (unsigned)options->context <= VRAM_HISTORY_NONE &&
           (unsigned)options->stacks <= VRAM_HISTORY_STACKS_C;
}

static enum vram_status start_history(struct vram_allocator *allocator, const struct vram_history_options *options,
                                      struct vram_error *error) {
    uint32_t skipped = 0;
    if (!are_known(options)) return vr_fail(error, VRAM_INVALID_ARGUMENT, VRAM_NO_OFFSET, "a history option has an invalid value");
    VR_TRY(read_skipped(options, &skipped, error));
    if (options->enabled == VRAM_HISTORY_NONE) return vram_history_stop(allocator);
    struct vr_tracer *tracer = NULL;
    enum vram_status status = vr_tracer_make(allocator, options->max_frames, &tracer);
    struct vr_stream *stream = NULL;
    if (status == VRAM_OK && options->file != NULL) status = vr_stream_open(options, &stream, error);
    if (status != VRAM_OK) return status;
    if (stream != NULL) begin_file(tracer, stream);
    vr_mutex_lock(&tracer->mutex);
    tracer->stop = vram_history_stop;
    status = apply_options(tracer, options, skipped, stream);
    vr_mutex_unlock(&tracer->mutex);
    return status;
}

enum vram_status vram_history_start(struct vram_allocator *allocator, const struct vram_history_options *options,
                                    struct vram_error *error) {
    VR_REQUIRE_OR_FAIL(error, allocator);
    static const struct vram_history_options defaults;
    vr_error_clear(error);
    return vr_error_complete(error, start_history(allocator, options == NULL ? &defaults : options, error));
}

static void stop_listening(struct vram_allocator *allocator) {
    vr_mutex_lock(&allocator->mutex);
    allocator->listener = NULL;
    vr_mutex_unlock(&allocator->mutex);
}

static enum vram_status stop_locked(struct vr_tracer *tracer) {
    atomic_store_explicit(&tracer->recording, false, memory_order_relaxed);
    stop_listening(tracer->allocator);
    struct vr_stream *old = change_file(tracer, NULL);
    vr_tracer_record_host(tracer, NULL);
    atomic_store_explicit(&tracer->listener.level, VR_LEVEL_NEVER, memory_order_relaxed);
    vr_allocator_set_listener(tracer->allocator, NULL, 0);
    forget_events(tracer);
    return old == NULL ? VRAM_OK : vr_stream_close(old);
}

enum vram_status vram_history_stop(struct vram_allocator *allocator) {
    VR_REQUIRE(allocator);
    struct vr_tracer *tracer = vr_tracer_of(allocator);
    if (tracer == NULL) return VRAM_OK;
    vr_mutex_lock(&tracer->mutex);
    const enum vram_status status = stop_locked(tracer);
    vr_mutex_unlock(&tracer->mutex);
    return status;
}

enum vram_status vr_history_at_oom(struct vram_allocator *allocator, const struct vr_oom_facts *facts) {
    struct vr_tracer *tracer = vr_tracer_of(allocator);
    if (tracer == NULL) return VRAM_OK;
    vr_mutex_lock(&tracer->mutex);
    const enum vram_status status = tracer->stream == NULL ? VRAM_OK : vr_stream_oom(tracer->stream, facts);
    vr_mutex_unlock(&tracer->mutex);
    return status;
}

void vram_get_history_counts(struct vram_allocator *allocator, struct vram_history_counts *counts) {
    if (allocator == NULL || counts == NULL) return;
    struct vr_tracer *tracer = vr_tracer_of(allocator);
    *counts = (struct vram_history_counts){0};
    if (tracer == NULL) return;
    vr_mutex_lock(&tracer->mutex);
    for (int i = 0; i < VR_TRACER_RINGS; i++) {
        struct vr_ring *ring = &tracer->rings[i];
        vr_ring_lock(ring);
        counts->events += ring->stored + ring->lost;
        counts->kept += vr_ring_count_locked(ring);
        counts->lost += ring->lost;
        vr_ring_unlock(ring);
    }
    const struct vr_stream *stream = tracer->stream;
    if (stream != NULL) {
        counts->events += atomic_load_explicit(&stream->events, memory_order_relaxed);
        counts->lost += atomic_load_explicit(&stream->lost, memory_order_relaxed);
    }
    counts->recording = atomic_load_explicit(&tracer->recording, memory_order_relaxed);
    vr_mutex_unlock(&tracer->mutex);
}

// --- marks ---------------------------------------------------------------------------------------------------------------------------

static enum vram_status mark_device(struct vram_allocator *allocator, uint32_t device, enum vr_annotation_stage stage, const char *name) {
    struct vr_tracer *tracer = vr_tracer_of(allocator);
    if (tracer == NULL || !atomic_load_explicit(&tracer->recording, memory_order_relaxed)) return VRAM_OK;
    const uint32_t only = atomic_load_explicit(&tracer->marks_of, memory_order_relaxed);
    if (only != 0 && only != (uint32_t)vr_os_thread_id()) return VRAM_OK;
    if (device >= VRAM_MAX_DEVICES) return VRAM_INVALID_ARGUMENT;
    struct vr_mark made = {.ticks = vr_os_ticks(), .stage = (uint8_t)stage, .device = (uint8_t)device};
    VR_TRY(vr_thread_text_number(name, &made.name));
    vr_mutex_lock(&tracer->mutex);
    struct vr_stream *stream = tracer->stream;
    enum vram_status status = VRAM_OK;
    if (stream != NULL) {
        status = vr_stream_mark(stream, &made);
    } else {
        vr_mutex_lock(&tracer->marks_mutex);
        status = vr_marks_keep(&tracer->marks, tracer->max_entries, &made);
        vr_mutex_unlock(&tracer->marks_mutex);
    }
    vr_mutex_unlock(&tracer->mutex);
    return status;
}

enum vram_status vram_annotation_begin(struct vram_allocator *allocator, uint32_t device, const char *name) {
    VR_REQUIRE(allocator && name);
    return mark_device(allocator, device, VR_STAGE_START, name);
}
enum vram_status vram_annotation_end(struct vram_allocator *allocator, uint32_t device, const char *name) {
    VR_REQUIRE(allocator && name);
    return mark_device(allocator, device, VR_STAGE_END, name);
}
enum vram_status vram_step(struct vram_allocator *allocator, uint32_t device, const char *name) {
    VR_REQUIRE(allocator && name);
    return mark_device(allocator, device, VR_STAGE_STEP, name);
}

// Returns false for text that cannot be a line of the mark, or a key that every annotation already has.
static bool is_pair(const struct vram_pair *pair) {
    if (pair->key == NULL || pair->value == NULL || pair->key[0] == '\0') return false;
    if (strcmp(pair->key, "device") == 0 || strcmp(pair->key, "time_us") == 0) return false;
    for (const char *at = pair->key; *at != '\0'; at++)
        if ((unsigned char)*at < ' ') return false;
    for (const char *at = pair->value; *at != '\0'; at++)
        if ((unsigned char)*at < ' ') return false;
    return true;
}

enum vram_status vram_annotation_pairs(struct vram_allocator *allocator, uint32_t device, const struct vram_pair *pairs, size_t count) {
    VR_REQUIRE(allocator && pairs);
    struct vr_text text = {0};
    bool good = count != 0;
    for (size_t i = 0; i < count && good; i++) {
        good = is_pair(&pairs[i]);
        if (good) vr_text_printf(&text, "%s%s\t%s", i == 0 ? "" : "\n", pairs[i].key, pairs[i].value);
    }
    enum vram_status status = good ? vr_text_status(&text) : VRAM_INVALID_ARGUMENT;
    if (status == VRAM_OK) status = mark_device(allocator, device, VR_STAGE_PAIRS, vr_text_string(&text));
    vr_text_release(&text);
    return status;
}

// --- names of blocks -----------------------------------------------------------------------------------------------------------------

enum vram_status vram_annotate(struct vram_allocator *allocator, uint64_t address, const char *text) {
    VR_REQUIRE(allocator);
    uint32_t words = 0;
    VR_TRY(vr_thread_text_number(text, &words));
    struct vr_shard *shard = NULL;
    uint32_t block = vr_find_and_lock(allocator, address, &shard);
    if (block == 0) return VRAM_INVALID_POINTER;
    struct vr_device *device = shard->device;
    vr_device_unlock_short(shard->device);
    vr_gather(device, VR_LEVEL_ALLOC, 0);
    block = vr_find_and_lock(allocator, address, &shard);
    if (block == 0) return VRAM_INVALID_POINTER;
    struct vr_block *item = vr_block_at(allocator, block);
    item->words = words;
    vr_notify_block(shard, VR_RECORD_ANNOTATE, item);
    vr_device_unlock_short(shard->device);
    return VRAM_OK;
}
