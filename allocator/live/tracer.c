#include "live/tracer.h"

#include "core/state.h"
#include "model/model.h"
#include "os/once.h"

static void end_tracer(void *value);
// Destroyed last, because extensions destroyed before may write the history.
static const struct vr_extension_kind extension_kind = {.destroy = end_tracer, .order = 2};

struct vr_tracer *vr_tracer_of(struct vram_allocator *allocator) {
    return vr_extension_find(&allocator->extensions, &extension_kind);
}

// --- time -----------------------------------------------------------------------------------------------------------------------------

// Reads both clocks close together: takes the best of a few tries, so that an interruption between them does not count.
struct vr_instant vr_instant_now(void) {
    struct vr_instant best = {0, 0};
    uint64_t least = UINT64_MAX;
    for (int i = 0; i < 4; i++) {
        const uint64_t before = vr_os_ticks(), epoch_ns = vr_os_epoch_ns(), after = vr_os_ticks();
        if (after - before >= least) continue;
        least = after - before;
        best = (struct vr_instant){before + least / 2, epoch_ns};
    }
    return best;
}

uint64_t vr_instant_ns(const struct vr_instant *from, const struct vr_instant *to, uint64_t ticks) {
    if (to->ticks <= from->ticks || ticks <= from->ticks || to->epoch_ns <= from->epoch_ns) return from->epoch_ns;
    const double share = (double)(ticks - from->ticks) / (double)(to->ticks - from->ticks);
    return from->epoch_ns + (uint64_t)(share * (double)(to->epoch_ns - from->epoch_ns));
}

// --- recording --------------------------------------------------------------------------------------------------------------------------

static const uint8_t actions[] = {
    [VR_RECORD_ALLOC] = VR_ACTION_ALLOC,
    [VR_RECORD_FREE_REQUESTED] = VR_ACTION_FREE_REQUESTED,
    [VR_RECORD_FREE_COMPLETED] = VR_ACTION_FREE_COMPLETED,
    [VR_RECORD_SEGMENT_ALLOC] = VR_ACTION_SEGMENT_ALLOC,
    [VR_RECORD_SEGMENT_FREE] = VR_ACTION_SEGMENT_FREE,
    [VR_RECORD_SEGMENT_MAP] = VR_ACTION_SEGMENT_MAP,
    [VR_RECORD_SEGMENT_UNMAP] = VR_ACTION_SEGMENT_UNMAP,
    [VR_RECORD_OOM] = VR_ACTION_OOM,
    [VR_RECORD_SNAPSHOT] = VR_ACTION_SNAPSHOT,
    [VR_RECORD_ANNOTATE] = VR_ACTION_ANNOTATE,
};
_Static_assert(sizeof actions == VR_RECORD_COUNT, "an action for each record");

enum vr_action vr_tracer_action(enum vr_record_action action) {
    assert((unsigned)action < VR_RECORD_COUNT);
    return (enum vr_action)actions[action];
}

VR_INLINE void make_event(const struct vr_record *record, uint32_t flags, uint64_t ticks, struct vr_event *event) {
    struct vr_event_origin *origin = &vr_thread_text.origin;
    if (VR_UNLIKELY(origin->thread == 0)) origin->thread = (uint32_t)vr_os_thread_id();
    event->ticks = ticks;
    event->address = record->address;
    event->size_bytes = record->size_bytes;
    event->stream = record->stream;
    event->pool = record->pool.second != 0 ? record->pool.second << 1 | 1 : record->pool.first << 1;
    event->origin = *origin;
    event->stack = (flags & VR_TRACER_STACKS) != 0 ? record->stack : 0;
    event->action = actions[record->action];
    if ((flags & VR_TRACER_CONTEXTS) == 0) event->origin.context = 0;
    if (VR_UNLIKELY(record->action == VR_RECORD_ANNOTATE)) event->origin.metadata = record->words;
}

// Writes one event into the file, or both halves of a completed free.
VR_NOINLINE static void put_in_file(struct vr_tracer *tracer, struct vr_stream *stream, uint32_t number, const struct vr_record *record) {
    const uint32_t flags = atomic_load_explicit(&tracer->flags, memory_order_relaxed);
    const bool first = (flags >> record->action & 1) == 0;
    const bool second = record->completed && (flags >> VR_RECORD_FREE_COMPLETED & 1) == 0;
    if (!first && !second) return;
    struct vr_event event;
    make_event(record, flags, 0, &event);
    if (!first) event.action = VR_ACTION_FREE_COMPLETED;
    vr_stream_event(stream, tracer->stacks, number, &event, first && second);
}

// Stores in the ring when it wraps or has no memory yet, or when some actions are skipped. Called with the ring's lock held.
VR_NOINLINE static void store_otherwise(struct vr_ring *ring, const struct vr_record *record, uint32_t flags, uint64_t ticks) {
    const bool first = (flags >> record->action & 1) == 0;
    const bool second = record->completed && (flags >> VR_RECORD_FREE_COMPLETED & 1) == 0;
    struct vr_event *slot = first ? vr_ring_next_locked(ring) : NULL;
    if (slot != NULL) make_event(record, flags, ticks, slot);
    struct vr_event *next = second ? vr_ring_next_locked(ring) : NULL;
    if (next == NULL) return;
    make_event(record, flags, ticks, next);
    next->action = VR_ACTION_FREE_COMPLETED;
}

// Stores the event in the ring.
VR_NOINLINE static void put_in_ring(const struct vr_record *record, const struct vr_tracer *tracer, struct vr_ring *ring) {
    const uint64_t ticks = vr_os_ticks();
    const uint32_t flags = atomic_load_explicit(&tracer->flags, memory_order_relaxed), second = (uint32_t)record->completed;
    vr_ring_lock(ring);
    struct vr_event *slot = (flags & VR_TRACER_SKIPS) == 0 ? vr_ring_room_locked(ring, 1 + second) : NULL;
    if (VR_UNLIKELY(slot == NULL)) {
        store_otherwise(ring, record, flags, ticks);
    } else {
        make_event(record, flags, ticks, slot);
        if (second != 0) {
            slot[1] = slot[0];
            slot[1].action = VR_ACTION_FREE_COMPLETED;
        }
    }
    vr_ring_unlock(ring);
}

VR_INLINE void notify_followers(struct vr_tracer *tracer, const struct vr_record *record, uint32_t number) {
    assert(number < VR_TRACER_RINGS && record->action < VR_RECORD_COUNT);
    struct vr_stream *stream = atomic_load_explicit(&tracer->streams[number], memory_order_acquire);
    if (VR_UNLIKELY(stream != NULL)) {
        put_in_file(tracer, stream, number, record);
    } else {
        put_in_ring(record, tracer, &tracer->rings[number]);
    }
}

void vr_tracer_notify(struct vr_tracer *tracer, uint32_t number, const struct vr_record *record) {
    notify_followers(tracer, record, number);
}

// Records a time span during which a pool has no device memory: its addresses do not change, and its blocks stay live. Without host
// memory, records no span.
VR_NOINLINE static void mark_vacant(struct vr_tracer *tracer, const struct vr_record *record) {
    const bool begins = record->action == VR_RECORD_SEGMENT_UNMAP;
    struct vr_mark mark = {.ticks = vr_os_ticks(), .stage = begins ? VR_STAGE_START : VR_STAGE_END, .device = (uint8_t)record->device};
    struct vr_text name = {0};
    vr_text_printf(&name, "asleep: pool (%llu, %llu)", (unsigned long long)record->pool.first, (unsigned long long)record->pool.second);
    const bool named = vr_text_status(&name) == VRAM_OK && vr_thread_text_number(vr_text_string(&name), &mark.name) == VRAM_OK;
    vr_text_release(&name);
    if (!named || record->device >= VRAM_MAX_DEVICES) return;
    struct vr_stream *stream = atomic_load_explicit(&tracer->streams[record->device], memory_order_acquire);
    if (stream != NULL) {
        (void)!vr_stream_mark(stream, &mark);
        return;
    }
    vr_mutex_lock(&tracer->marks_mutex);
    (void)!vr_marks_keep(&tracer->marks, tracer->max_entries, &mark);
    vr_mutex_unlock(&tracer->marks_mutex);
}

static void listen_to_record(const struct vr_record *record, void *user) {
    if (VR_LIKELY(!record->vacant)) {
        notify_followers(user, record, record->device);
    } else if (record->address == 0) {
        mark_vacant(user, record);
    }
}

// Skips one frame more than the core's own: this function's.
static uint32_t gather_stack(uint32_t skip, enum vr_level need, void *user) {
    (void)need;
    struct vr_tracer *tracer = user;
    const enum vram_stack_kind kind = (enum vram_stack_kind)atomic_load_explicit(&tracer->kind, memory_order_relaxed);
    const uint32_t stack = vram_stack_take(tracer->stacks, kind, skip + 1);
    VR_NO_TAIL_CALL();
    return stack;
}

// --- lifetime ------------------------------------------------------------------------------------------------------------------------

// All tracers of the process: the child of a fork must not write into its parent's files.
static struct vr_tracer *all;
static struct vr_mutex all_mutex;
static struct vr_once prepared;

// With a stream's mutex and its tracer's held, no thread is inside its log.
static void before_fork(void) {
    vr_mutex_lock(&all_mutex);
    for (struct vr_tracer *tracer = all; tracer != NULL; tracer = tracer->next) {
        vr_mutex_lock(&tracer->mutex);
        if (tracer->stream != NULL) vr_mutex_lock(&tracer->stream->mutex);
    }
}

static void after_fork_in_parent(void) {
    for (struct vr_tracer *tracer = all; tracer != NULL; tracer = tracer->next) {
        if (tracer->stream != NULL) vr_mutex_unlock(&tracer->stream->mutex);
        vr_mutex_unlock(&tracer->mutex);
    }
    vr_mutex_unlock(&all_mutex);
}

// Gives the child its own file. Without one it records nothing; the listener stays until the history is stopped, because its locks may be
// held by threads that the child does not have.
static void leave_file(struct vr_tracer *tracer) {
    struct vr_stream *own = NULL;
    vr_stream_leave(tracer->stream, &own);
    tracer->stream = own;
    for (int i = 0; i < VR_TRACER_RINGS; i++) atomic_store_explicit(&tracer->streams[i], own, memory_order_relaxed);
    if (own != NULL) return;
    atomic_store_explicit(&tracer->flags, VR_TRACER_SKIPS, memory_order_relaxed);
    atomic_store_explicit(&tracer->listener.level, VR_LEVEL_NEVER, memory_order_relaxed);
    atomic_store_explicit(&tracer->recording, false, memory_order_relaxed);
}

static void after_fork_in_child(void) {
    for (struct vr_tracer *tracer = all; tracer != NULL; tracer = tracer->next) {
        if (tracer->stream != NULL) leave_file(tracer);
        vr_mutex_unlock(&tracer->mutex);
    }
    vr_mutex_unlock(&all_mutex);
}

// Registered after the tables of stacks: handlers of forks run in the reverse order of their registration, and an event being written into
// a file uses the tables with the stream's lock held.
static void prepare_tracer(void) {
    vr_mutex_init(&all_mutex);
    vr_os_at_fork(before_fork, after_fork_in_parent, after_fork_in_child);
}

static void enter_tracer(struct vr_tracer *tracer) {
    vr_once(&prepared, prepare_tracer);
    vr_mutex_lock(&all_mutex);
    tracer->next = all;
    all = tracer;
    vr_mutex_unlock(&all_mutex);
}

static void leave_tracer(struct vr_tracer *tracer) {
    vr_mutex_lock(&all_mutex);
    struct vr_tracer **at = &all;
    while (*at != tracer) at = &(*at)->next;
    *at = tracer->next;
    vr_mutex_unlock(&all_mutex);
}

void vr_tracer_set_pattern(struct vr_tracer *tracer, const char *pattern) {
    vr_mutex_lock(&tracer->mutex);
    if (tracer->stream != NULL) {
        const size_t size = strlen(pattern) + 1;
        char *copy = malloc(size);
        if (copy != NULL) memcpy(copy, pattern, size);
        free(tracer->stream->pattern);
        tracer->stream->pattern = copy;
    }
    vr_mutex_unlock(&tracer->mutex);
}

static struct vr_tracer *create_tracer(struct vram_allocator *allocator, uint32_t max_frames) {
    const size_t size = (sizeof(struct vr_tracer) + 63) / 64 * 64;
    struct vr_tracer *made = aligned_alloc(64, size);
    if (made == NULL) return NULL;
    memset(made, 0, size);
    const struct vram_stack_options options = {.max_frames = max_frames};
    if (vram_stacks_create(&options, &made->stacks) != VRAM_OK) {
        free(made);
        return NULL;
    }
    made->allocator = allocator;
    made->listener.record = listen_to_record;
    made->listener.gather = gather_stack;
    made->listener.pairs = true;
    made->listener.user = made;
    made->origin = vr_instant_now();
    for (int i = 0; i < VR_TRACER_RINGS; i++) made->rings[i].capacity = VR_RING_MOST;
    vr_mutex_init(&made->mutex);
    vr_mutex_init(&made->marks_mutex);
    enter_tracer(made);
    return made;
}

enum vram_status vr_tracer_make(struct vram_allocator *allocator, uint32_t max_frames, struct vr_tracer **tracer) {
    vr_mutex_lock(&allocator->mutex);
    struct vr_tracer *found = vr_tracer_of(allocator);
    enum vram_status status = VRAM_OK;
    if (found == NULL) {
        found = create_tracer(allocator, max_frames);
        status = found == NULL ? VRAM_NO_HOST_MEMORY : vr_extension_attach(&allocator->extensions, &extension_kind, found);
    }
    vr_mutex_unlock(&allocator->mutex);
    assert(status != VRAM_LIMIT);
    if (status == VRAM_OK) *tracer = found;
    return status;
}

// A file that could not be finished can still be read up to its last event.
static void end_tracer(void *value) {
    struct vr_tracer *tracer = value;
    if (tracer->stop != NULL) (void)!tracer->stop(tracer->allocator);
    assert(!atomic_load_explicit(&tracer->recording, memory_order_relaxed) && tracer->stream == NULL);
    leave_tracer(tracer);
    vram_stacks_destroy(tracer->stacks);
    vr_mutex_destroy(&tracer->mutex);
    vr_mutex_destroy(&tracer->marks_mutex);
    free(tracer);
}
