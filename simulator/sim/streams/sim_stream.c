// Streams as queues of work on the virtual clock, and the things they wait for.
#include "sim/streams/sim_checking.h"

// ---- Duration of work on the device.

// Bandwidth over the host's bus, and inside of a device, where a copy both reads and writes. About an A100's (PCIe 4.0 x16, HBM2e); the aim
// is only that large copies take long.
enum { BUS_BYTES_PER_NS = 25, DEVICE_BYTES_PER_NS = 700 };

static bool is_far(const struct vr_sim *sim, uint64_t address) {
    return !vr_sim_is_near(&sim->allocated, address) && !vr_sim_is_near(&sim->reserved, address);
}

uint64_t vr_sim_work_cost_ns(const struct vr_sim *sim, const struct vr_sim_work *work) {
    const bool copy = work->type == VR_CU_GRAPH_NODE_TYPE_MEMCPY;
    if (sim->options.kernel_ns == 0 || (!copy && work->type != VR_CU_GRAPH_NODE_TYPE_MEMSET)) return work->cost_ns;
    const bool bus = is_far(sim, work->to) || (copy && is_far(sim, work->from));
    uint64_t bytes;
    if (!vr_mul_u64(work->width_bytes, work->rows, &bytes) || !vr_mul_u64(bytes, work->planes, &bytes)) return work->cost_ns;
    return bytes / (bus ? BUS_BYTES_PER_NS : DEVICE_BYTES_PER_NS) + 1;
}

// ---- Lists of handles of graph nodes.

bool vr_sim_nodes_reserve(struct vr_sim_nodes *nodes, size_t more) { return VR_GROW(nodes, items, nodes->count + more) == VRAM_OK; }

bool vr_sim_nodes_add(struct vr_sim_nodes *nodes, uint64_t node) {
    if (!vr_sim_nodes_reserve(nodes, 1)) return false;
    nodes->items[nodes->count++] = node;
    return true;
}

bool vr_sim_nodes_copy(struct vr_sim_nodes *to, const struct vr_sim_nodes *from) {
    if (from->count > to->count && !vr_sim_nodes_reserve(to, from->count - to->count)) return false;
    if (from->count != 0) memcpy(to->items, from->items, from->count * sizeof *to->items);
    to->count = from->count;
    return true;
}

void vr_sim_nodes_free(struct vr_sim_nodes *nodes) {
    free(nodes->items);
    *nodes = (struct vr_sim_nodes){0};
}

void vr_sim_nodes_remove_at(struct vr_sim_nodes *nodes, size_t at) {
    nodes->count--;
    memmove(&nodes->items[at], &nodes->items[at + 1], (nodes->count - at) * sizeof *nodes->items);
}

bool vr_sim_nodes_remove(struct vr_sim_nodes *nodes, uint64_t node) {
    for (size_t i = 0; i < nodes->count; i++) {
        if (nodes->items[i] != node) continue;
        vr_sim_nodes_remove_at(nodes, i);
        return true;
    }
    return false;
}

// ---- Waits for values in memory.

#define NAP_NS 100000 // between checks for a value that another thread or process must write

// Reads the value. Returns false if no bytes back the address. Does not count as a read by the program.
static bool read_held_word(const struct vr_sim *constant, const struct vr_sim_hold *hold, uint64_t *value) {
    struct vr_sim *sim = (struct vr_sim *)(uintptr_t)constant; // the read's traces are removed below
    const struct vr_sim_range *range = vr_sim_ranges_holding(&sim->spaces, hold->address);
    const bool pinned = range == NULL && vr_sim_ranges_holding(&sim->hosts, hold->address) != NULL;
    if (range == NULL && !pinned) return false;
    if (range != NULL && range->kind == VR_SIM_RESERVATION && vr_sim_ranges_holding(&sim->mappings, hold->address) == NULL) return false;
    if (pinned || sim->options.backed) {
        memcpy(value, (const void *)(uintptr_t)hold->address, hold->width);
        return true;
    }
    const struct vr_sim_read before = sim->read;
    const bool kept = vr_sim_keeps(sim) && vr_sim_transfer_copy(sim, (uint64_t)(uintptr_t)value, hold->address, hold->width, true);
    sim->read = before;
    return kept;
}

// A value at an address without bytes never holds a stream.
bool vr_sim_hold_is_over(const struct vr_sim *sim, const struct vr_sim_hold *hold) {
    uint64_t found = 0, wanted = hold->value;
    if (hold->width == 0 || !read_held_word(sim, hold, &found)) return true;
    const bool wide = hold->width == 8;
    if (!wide) wanted &= UINT32_MAX;
    switch (hold->test) {
    case VR_CU_STREAM_WAIT_VALUE_EQ: return found == wanted;
    case VR_CU_STREAM_WAIT_VALUE_AND: return (found & wanted) != 0;
    case VR_CU_STREAM_WAIT_VALUE_NOR: return (~(found | wanted) & (wide ? UINT64_MAX : UINT32_MAX)) != 0;
    default: return wide ? (int64_t)(found - wanted) >= 0 : (int32_t)(uint32_t)(found - wanted) >= 0; // modulo 2^n, as CUDA compares
    }
}

// Polls for the value. Releases the lock in between: borrowed pointers become invalid.
void vr_sim_hold_wait(struct vr_sim *sim, const struct vr_sim_hold *hold) {
    const struct vr_sim_hold copy = *hold;
    struct vr_signal nobody;
    if (vr_sim_hold_is_over(sim, &copy)) return;
    vr_signal_init(&nobody);
    while (!vr_sim_hold_is_over(sim, &copy)) vr_sim_wait(sim, &nobody, NAP_NS);
    vr_signal_destroy(&nobody);
}

// ---- Streams as queues on the virtual clock. With the clock, all that matters about a stream's work is its end, tail_ns. With manual
// completion time has no meaning and work is numbered: work n of a stream is complete if done_work >= n. Edges store what must complete
// first, so that completing a stream also completes the work it waited for, and nothing else.

#define TIME_MAX ((uint64_t)1 << 62) // upper limit of any clock or queue in ns (146 years)

static uint64_t later_time(uint64_t a, uint64_t b) { return a > b ? a : b; }

static uint32_t index_of(const struct vr_sim *sim, const struct vr_sim_stream *stream) { return vr_sim_slots_index(&sim->streams, stream); }

vr_cu_result vr_sim_stream_make(struct vr_sim *sim, uint64_t context, enum vr_sim_stream_kind kind, uint32_t *index) {
    if (vr_sim_slots_take(&sim->streams, index) != VRAM_OK) return VR_CU_OUT_OF_MEMORY;
    struct vr_sim_stream *stream = vr_sim_stream_at(sim, *index);
    stream->context = context;
    stream->kind = kind;
    stream->serial = ++sim->last_stream_serial;
    if (VR_UNLIKELY(sim->checking != NULL)) vr_sim_checking_open(sim, stream);
    return VR_CU_SUCCESS;
}

// --- manual completion: edges ---------------------------------------------------------------------------------------

// Manual completion: adds a reference of an event to the stream in a slot.
static void sim_stream_reference(struct vr_sim *sim, uint32_t stream) { vr_sim_stream_at(sim, stream)->references++; }

void vr_sim_stream_free(struct vr_sim_stream *stream) {
    free(stream->edges);
    free(stream->edge_data);
    free(stream->waited);
    vr_sim_nodes_free(&stream->frontier);
}

// Frees the stream's slot once no handle, event or edge refers to it.
void vr_sim_stream_collect(struct vr_sim *sim, uint32_t index) {
    struct vr_sim_stream *stream = vr_sim_stream_at(sim, index);
    if (stream->slot.named || stream->references > 0 || stream->edge_count > 0) return;
    if (VR_UNLIKELY(sim->checking != NULL)) vr_check_stream_close(sim->checking->check, stream->serial);
    vr_sim_stream_free(stream);
    vr_sim_slots_give(&sim->streams, index);
}

static void sim_stream_unreference(struct vr_sim *sim, uint32_t stream) {
    vr_sim_stream_at(sim, stream)->references--;
    vr_sim_stream_collect(sim, stream);
}

// Makes the work of `stream` from `at` on wait for work `target_work` of `target`. Does nothing if that is complete or already noted.
static bool add_edge(struct vr_sim *sim, struct vr_sim_stream *stream, uint64_t at, uint32_t target, uint64_t target_work) {
    if (vr_sim_stream_at(sim, target)->done_work >= target_work || target == index_of(sim, stream)) return true;
    for (size_t i = stream->edge_count; i-- > 0;) {
        if (stream->edges[i].target != target) continue;
        if (stream->edges[i].target_work >= target_work) return true;
        break;
    }
    size_t needed = stream->edge_count + 1;
    if (VR_GROW(stream, edges, needed) != VRAM_OK) return false;
    stream->edges[stream->edge_count++] = (struct vr_sim_edge){at, target_work, target};
    sim_stream_reference(sim, target);
    return true;
}

// Adds the edges of the legacy default stream: its work comes after that of all blocking streams, and theirs after its own.
static bool add_default_edges(struct vr_sim *sim, struct vr_sim_stream *stream, const struct vr_sim_context *context) {
    uint64_t at = stream->work + 1;
    if (stream->kind == VR_SIM_STREAM_BLOCKING)
        return add_edge(sim, stream, at, context->legacy, vr_sim_stream_at(sim, context->legacy)->work);
    if (stream->kind == VR_SIM_STREAM_NON_BLOCKING) return true;
    for (uint32_t i = 0; i < sim->streams.used; i++) {
        struct vr_sim_stream *other = vr_sim_stream_at(sim, i);
        if (!other->slot.live || other->context != stream->context || other->kind != VR_SIM_STREAM_BLOCKING) continue;
        if (!add_edge(sim, stream, at, i, other->work)) return false;
    }
    return true;
}

// Completes the work that the complete work of a stream waited for. Returns true if any stream's done_work rose.
static bool follow_edges(struct vr_sim *sim, uint32_t index) {
    struct vr_sim_stream *stream = vr_sim_stream_at(sim, index);
    size_t followed = 0;
    bool rose = false;
    for (; followed < stream->edge_count && stream->edges[followed].at <= stream->done_work; followed++) {
        struct vr_sim_edge edge = stream->edges[followed];
        struct vr_sim_stream *target = vr_sim_stream_at(sim, edge.target);
        if (target->done_work < edge.target_work) {
            target->done_work = edge.target_work;
            rose = true;
        }
        target->references--; // settle_streams() frees it
    }
    if (followed == 0) return rose;
    stream->edge_count -= followed;
    memmove(stream->edges, stream->edges + followed, stream->edge_count * sizeof *stream->edges);
    return rose;
}

// Called after done_work of a stream rose: completes everything that must have come before, until nothing changes.
static void settle_streams(struct vr_sim *sim) {
    for (bool rose = true; rose;) {
        rose = false;
        for (uint32_t i = 0; i < sim->streams.used; i++)
            if (vr_sim_stream_at(sim, i)->slot.live) rose |= follow_edges(sim, i);
    }
    for (uint32_t i = 0; i < sim->streams.used; i++)
        if (vr_sim_stream_at(sim, i)->slot.live) vr_sim_stream_collect(sim, i);
}

// --- appending work -------------------------------------------------------------------------------------------------

vr_cu_result vr_sim_enqueue(struct vr_sim *sim, struct vr_sim_stream *stream, uint64_t work_ns, uint64_t *end_ns) {
    struct vr_sim_context *context = vr_sim_context_find(sim, stream->context);
    assert(context != NULL);
    if (sim->options.manual_completion && !add_default_edges(sim, stream, context)) return VR_CU_OUT_OF_MEMORY;
    uint64_t start_ns = later_time(sim->clock_ns, stream->tail_ns);
    if (stream->kind == VR_SIM_STREAM_LEGACY) start_ns = later_time(start_ns, context->blocking_tail_ns);
    if (stream->kind == VR_SIM_STREAM_BLOCKING) start_ns = later_time(start_ns, vr_sim_stream_at(sim, context->legacy)->tail_ns);
    if (stream->kind == VR_SIM_STREAM_LEGACY) stream->callback = later_time(stream->callback, context->blocking_callback);
    if (stream->kind == VR_SIM_STREAM_BLOCKING)
        stream->callback = later_time(stream->callback, vr_sim_stream_at(sim, context->legacy)->callback);
    stream->work++;
    stream->tail_ns = start_ns + work_ns;
    context->tail_ns = later_time(context->tail_ns, stream->tail_ns);
    if (stream->kind == VR_SIM_STREAM_BLOCKING) context->blocking_tail_ns = later_time(context->blocking_tail_ns, stream->tail_ns);
    struct vr_sim_device *device = &sim->devices[context->device];
    device->tail_ns = later_time(device->tail_ns, stream->tail_ns);
    if (end_ns != NULL) *end_ns = stream->tail_ns;
    return VR_CU_SUCCESS;
}

void vr_sim_note_callback(struct vr_sim *sim, const struct vr_sim_stream *stream) {
    struct vr_sim_context *context = vr_sim_context_find(sim, stream->context);
    if (stream->kind == VR_SIM_STREAM_BLOCKING) context->blocking_callback = later_time(context->blocking_callback, stream->callback);
}

// Notes an event that the stream's next work waits for. If the host is out of memory nothing is noted, and pools find less to reuse.
static void note_waited(struct vr_sim_stream *stream, const struct vr_sim_event *event) {
    size_t at = 0;
    while (at < stream->waited_count && stream->waited[at].serial != event->serial) at++;
    if (at == stream->waited_count) {
        if (VR_GROW(stream, waited, at + 1) != VRAM_OK) return;
        stream->waited[stream->waited_count++] = (struct vr_sim_waited){event->serial, 0};
    }
    if (stream->waited[at].work < event->work) stream->waited[at].work = event->work;
}

vr_cu_result vr_sim_enqueue_wait(struct vr_sim *sim, struct vr_sim_stream *stream, const struct vr_sim_event *event) {
    if (sim->options.manual_completion && !add_edge(sim, stream, stream->work + 1, event->stream, event->work)) return VR_CU_OUT_OF_MEMORY;
    if (sim->pools.live != 0) note_waited(stream, event);
    if (VR_UNLIKELY(sim->checking != NULL)) vr_check_wait(sim->checking->check, stream->serial, event->point);
    stream->tail_ns = later_time(stream->tail_ns, event->complete_ns);
    if (event->hold.width != 0 && !vr_sim_hold_is_over(sim, &event->hold)) stream->hold = event->hold;
    if (event->callback > stream->callback) {
        stream->callback = event->callback;
        vr_sim_note_callback(sim, stream);
    }
    return vr_sim_enqueue(sim, stream, 0, NULL);
}

// --- waiting --------------------------------------------------------------------------------------------------------

static bool is_idle(const struct vr_sim *sim, const struct vr_sim_stream *stream) {
    if (stream->callback > sim->callbacks.done || (stream->hold.width != 0 && !vr_sim_hold_is_over(sim, &stream->hold))) return false;
    return sim->options.manual_completion ? stream->done_work == stream->work : stream->tail_ns <= sim->clock_ns;
}

// The legacy stream is idle only if all blocking streams are idle too.
bool vr_sim_stream_is_idle(const struct vr_sim *sim, const struct vr_sim_stream *stream) {
    if (stream->kind != VR_SIM_STREAM_LEGACY || !is_idle(sim, stream)) return is_idle(sim, stream);
    const struct vr_sim_context *context = vr_sim_context_find(sim, stream->context);
    if (context->blocking_callback > sim->callbacks.done) return false;
    if (!sim->options.manual_completion) return context->blocking_tail_ns <= sim->clock_ns;
    for (uint32_t i = 0; i < sim->streams.used; i++) {
        const struct vr_sim_stream *other = vr_sim_stream_at(sim, i);
        bool counts = other->slot.live && other->context == stream->context && other->kind == VR_SIM_STREAM_BLOCKING;
        if (counts && !is_idle(sim, other)) return false;
    }
    return true;
}

bool vr_sim_work_complete(const struct vr_sim *sim, uint32_t stream, uint64_t work) {
    return vr_sim_stream_at(sim, stream)->done_work >= work;
}

void vr_sim_wait_work(struct vr_sim *sim, uint32_t stream, uint64_t work, uint64_t end_ns) {
    sim->clock_ns = later_time(sim->clock_ns, end_ns);
    if (!sim->options.manual_completion || vr_sim_work_complete(sim, stream, work)) return;
    vr_sim_stream_at(sim, stream)->done_work = work;
    settle_streams(sim);
}

void vr_sim_complete_stream(struct vr_sim *sim, struct vr_sim_stream *stream) {
    vr_sim_wait_work(sim, index_of(sim, stream), stream->work, stream->tail_ns);
}

// Waiting for the legacy stream counts as work on that stream, so it also waits for the blocking streams. If the host is out of memory,
// only its own work is completed.
void vr_sim_wait_stream(struct vr_sim *sim, struct vr_sim_stream *stream) {
    if (stream->kind == VR_SIM_STREAM_LEGACY) (void)vr_sim_enqueue(sim, stream, 0, NULL);
    vr_sim_complete_stream(sim, stream);
    if (VR_UNLIKELY(sim->checking != NULL)) vr_check_host_wait_stream(sim->checking->check, stream->serial);
}

// Completes the streams of `context` (0: all contexts) on `device` (UINT32_MAX: all devices).
static void complete_streams(struct vr_sim *sim, uint64_t context, uint32_t device) {
    if (!sim->options.manual_completion) return;
    for (uint32_t i = 0; i < sim->streams.used; i++) {
        struct vr_sim_stream *stream = vr_sim_stream_at(sim, i);
        if (!stream->slot.live || (context != 0 && stream->context != context)) continue;
        const struct vr_sim_context *owner = vr_sim_context_find(sim, stream->context);
        if (device != UINT32_MAX && (owner == NULL || owner->device != device)) continue;
        stream->done_work = stream->work;
    }
    settle_streams(sim);
}

void vr_sim_wait_context(struct vr_sim *sim, uint64_t context) {
    sim->clock_ns = later_time(sim->clock_ns, vr_sim_context_find(sim, context)->tail_ns);
    complete_streams(sim, context, UINT32_MAX);
    if (VR_UNLIKELY(sim->checking != NULL)) vr_check_host_wait_streams(sim->checking->check, UINT32_MAX, context);
}

void vr_sim_wait_device(struct vr_sim *sim, uint32_t device) {
    sim->clock_ns = later_time(sim->clock_ns, sim->devices[device].tail_ns);
    complete_streams(sim, 0, device);
    if (VR_UNLIKELY(sim->checking != NULL)) vr_check_host_wait_streams(sim->checking->check, device, 0);
}

void vr_sim_wait_all(struct vr_sim *sim) {
    for (uint32_t i = 0; i < sim->options.device_count; i++) sim->clock_ns = later_time(sim->clock_ns, sim->devices[i].tail_ns);
    complete_streams(sim, 0, UINT32_MAX);
}

// --- handles --------------------------------------------------------------------------------------------------------

// Returns the calling thread's default stream in a context, creating it on first use.
static vr_cu_result per_thread_stream(struct vr_sim *sim, uint64_t context, struct vr_sim_stream **stream) {
    struct vr_sim_thread *thread = vr_sim_this_thread(sim);
    if (thread == NULL) return VR_CU_OUT_OF_MEMORY;
    for (size_t i = 0; i < thread->stream_count; i++) {
        if (thread->streams[i].context != context) continue;
        *stream = vr_sim_stream_at(sim, thread->streams[i].stream);
        return VR_CU_SUCCESS;
    }
    size_t needed = thread->stream_count + 1;
    if (VR_GROW(thread, streams, needed) != VRAM_OK) return VR_CU_OUT_OF_MEMORY;
    uint32_t index;
    vr_cu_result result = vr_sim_stream_make(sim, context, VR_SIM_STREAM_BLOCKING, &index);
    if (result != VR_CU_SUCCESS) return result;
    thread->streams[thread->stream_count++] = (struct vr_sim_thread_stream){context, index};
    *stream = vr_sim_stream_at(sim, index);
    return VR_CU_SUCCESS;
}

vr_cu_result vr_sim_stream_in(struct vr_sim *sim, uint64_t context, uint64_t handle, struct vr_sim_stream **stream) {
    if (handle == 0 || handle == VR_CU_STREAM_LEGACY) {
        *stream = vr_sim_stream_at(sim, vr_sim_context_find(sim, context)->legacy);
        return VR_CU_SUCCESS;
    }
    if (handle == VR_CU_STREAM_PER_THREAD) return per_thread_stream(sim, context, stream);
    struct vr_sim_stream *found = vr_sim_slots_find(&sim->streams, handle);
    if (found == NULL) {
        if (VR_UNLIKELY(sim->checking != NULL))
            vr_check_used_handle(sim->checking->check, handle, vr_sim_checking_place(sim, "a call with a destroyed stream"));
        return VR_CU_INVALID_HANDLE;
    }
    *stream = found;
    return VR_CU_SUCCESS;
}

vr_cu_result vr_sim_stream_find(struct vr_sim *sim, uint64_t handle, struct vr_sim_stream **stream) {
    struct vr_sim_context *context;
    const vr_cu_result result = vr_sim_current(sim, &context);
    if (result != VR_CU_SUCCESS) return result;
    struct vr_sim_stream *named = vr_sim_slots_find(&sim->streams, handle);
    if (VR_UNLIKELY(named == NULL)) return vr_sim_stream_in(sim, vr_sim_context_handle(sim, context), handle, stream);
    *stream = named;
    return VR_CU_SUCCESS;
}

// --- time limits and records of events ------------------------------------------------------------------------------

bool vr_sim_fits_in_time(const struct vr_sim *sim, uint64_t from_ns, uint64_t more_ns) {
    if (from_ns < sim->clock_ns) from_ns = sim->clock_ns;
    return from_ns < TIME_MAX && more_ns <= TIME_MAX - from_ns;
}

void vr_sim_event_forget(struct vr_sim *sim, struct vr_sim_event *event) {
    if (event->recorded && sim->options.manual_completion) sim_stream_unreference(sim, event->stream);
    if (VR_UNLIKELY(event->point != NULL)) {
        vr_check_point_drop(event->point);
        event->point = NULL;
    }
    event->recorded = false;
    event->capture = 0;
    event->frontier.count = 0;
}

void vr_sim_event_set(struct vr_sim *sim, struct vr_sim_event *event, const struct vr_sim_stream *stream, uint64_t end_ns) {
    const uint32_t index = vr_sim_slots_index(&sim->streams, stream);
    const uint64_t work = stream->work;
    if (sim->options.manual_completion) sim_stream_reference(sim, index);
    vr_sim_event_forget(sim, event);
    event->recorded = true;
    event->complete_ns = end_ns;
    event->stream = index;
    event->work = work;
    event->serial = stream->serial;
    event->callback = stream->callback;
    event->hold = stream->hold;
    if (VR_LIKELY(sim->checking == NULL)) return;
    vr_check_mark(sim->checking->check, stream->serial, &event->point);
    if (event->key != 0) vr_check_share_event(sim->checking->check, event->key, event->point);
}
