// Capturing streams: the work they capture, the events that join streams to a capture, and captured allocations.
#include "sim/graphs/sim_graphs.h"

// ---- Captures, and the calls that a capture forbids. A capture begins on one stream, its origin, and extends to every stream that waits
// for an event recorded in it. Each of its streams has a frontier: the dependencies of its next node. Where NVIDIA does not document
// whether a call is forbidden, it is forbidden here.

struct vr_sim_capture *vr_sim_capture_find(const struct vr_sim *sim, uint64_t capture) {
    return vr_sim_slots_find(&sim->captures, capture);
}

static struct vr_sim_capture *capture_at(const struct vr_sim *sim, uint32_t index) {
    return (struct vr_sim_capture *)(void *)vr_sim_slots_item(&sim->captures, index);
}

// --- forbidden calls ------------------------------------------------------------------------------------------------

// Returns whether an unsafe call by the thread invalidates this capture. It does not if either is in relaxed mode, or if another thread's
// capture is thread-local.
static bool capture_forbids(const struct vr_sim_capture *capture, const struct vr_sim_thread *thread) {
    if (thread->capture_mode == VR_CU_STREAM_CAPTURE_MODE_RELAXED) return false;
    if (capture->thread == thread->number) return capture->mode != VR_CU_STREAM_CAPTURE_MODE_RELAXED;
    return thread->capture_mode == VR_CU_STREAM_CAPTURE_MODE_GLOBAL && capture->mode == VR_CU_STREAM_CAPTURE_MODE_GLOBAL;
}

vr_cu_result vr_sim_unsafe(struct vr_sim *sim) {
    if (sim->captures.live == 0) return VR_CU_SUCCESS;
    const struct vr_sim_thread *thread = vr_sim_this_thread(sim);
    if (thread == NULL) return VR_CU_OUT_OF_MEMORY;
    vr_cu_result result = VR_CU_SUCCESS;
    for (uint32_t i = 0; i < sim->captures.used; i++) {
        struct vr_sim_capture *capture = capture_at(sim, i);
        if (!capture->slot.live || !capture_forbids(capture, thread)) continue;
        capture->invalidated = true;
        result = VR_CU_STREAM_CAPTURE_UNSUPPORTED;
    }
    return result;
}

// Returns whether a stream (or only a blocking one) of the context captures. Invalidates the captures if requested.
static bool any_captures(const struct vr_sim *sim, uint64_t context, bool blocking_only, bool invalidate) {
    bool any = false;
    for (uint32_t i = 0; i < sim->streams.used && sim->captures.live != 0; i++) {
        const struct vr_sim_stream *stream = vr_sim_stream_at(sim, i);
        if (!stream->slot.live || stream->context != context || stream->capture == 0) continue;
        if (blocking_only && stream->kind != VR_SIM_STREAM_BLOCKING) continue;
        any = true;
        if (invalidate) vr_sim_capture_find(sim, stream->capture)->invalidated = true;
    }
    return any;
}

static bool is_unusable(const struct vr_sim *sim, const struct vr_sim_stream *stream, bool invalidate) {
    return stream->kind == VR_SIM_STREAM_LEGACY && any_captures(sim, stream->context, true, invalidate);
}

vr_cu_result vr_sim_may_work(struct vr_sim *sim, const struct vr_sim_stream *stream) {
    if (sim->captures.live == 0) return VR_CU_SUCCESS;
    if (is_unusable(sim, stream, true)) return VR_CU_STREAM_CAPTURE_IMPLICIT;
    const bool lost = stream->capture != 0 && vr_sim_capture_find(sim, stream->capture)->invalidated;
    return lost ? VR_CU_STREAM_CAPTURE_INVALIDATED : VR_CU_SUCCESS;
}

vr_cu_result vr_sim_stream_for_work(struct vr_sim *sim, uint64_t handle, struct vr_sim_stream **stream) {
    const vr_cu_result result = vr_sim_stream_find(sim, handle, stream);
    return result == VR_CU_SUCCESS ? vr_sim_may_work(sim, *stream) : result;
}

vr_cu_result vr_sim_stream_for_waiting(struct vr_sim *sim, uint64_t handle, struct vr_sim_stream **stream) {
    const vr_cu_result result = vr_sim_stream_for_work(sim, handle, stream);
    if (result != VR_CU_SUCCESS) return result;
    if ((*stream)->capture == 0) return vr_sim_unsafe(sim);
    vr_sim_capture_find(sim, (*stream)->capture)->invalidated = true;
    return VR_CU_STREAM_CAPTURE_UNSUPPORTED;
}

vr_cu_result vr_sim_context_for_waiting(struct vr_sim *sim, uint64_t context) {
    const vr_cu_result result = vr_sim_unsafe(sim);
    return any_captures(sim, context, false, true) ? VR_CU_STREAM_CAPTURE_UNSUPPORTED : result;
}

// --- captured work --------------------------------------------------------------------------------------------------

vr_cu_result vr_sim_capture_add(struct vr_sim *sim, struct vr_sim_stream *stream, const struct vr_sim_work *work) {
    const struct vr_sim_capture *capture = vr_sim_capture_find(sim, stream->capture);
    const struct vr_sim_graph *graph = vr_sim_slots_find(&sim->graphs, capture->graph);
    struct vr_sim_nodes *frontier = &stream->frontier;
    if (VR_GROW(frontier, items, 1) != VRAM_OK) return VR_CU_OUT_OF_MEMORY;
    uint64_t node;
    const uint32_t index = vr_sim_slots_index(&sim->graphs, graph);
    const vr_cu_result result = vr_sim_node_add(sim, index, work, frontier->items, frontier->count, &node);
    if (result != VR_CU_SUCCESS) return result;
    frontier->items[0] = node;
    frontier->count = 1;
    return VR_CU_SUCCESS;
}

const struct vr_cu_edge_data *vr_sim_capture_edges(struct vr_sim_stream *stream) {
    const size_t needed = stream->frontier.count + 1;
    if (VR_GROW(stream, edge_data, needed) != VRAM_OK) return NULL;
    memset(stream->edge_data, 0, needed * sizeof *stream->edge_data);
    return stream->edge_data;
}

// --- begin and end --------------------------------------------------------------------------------------------------

// Finds a stream and checks that a capture may begin on it.
static vr_cu_result find_to_capture(struct vr_sim *sim, uint64_t stream, int mode, struct vr_sim_stream **found) {
    if (mode < VR_CU_STREAM_CAPTURE_MODE_GLOBAL || mode > VR_CU_STREAM_CAPTURE_MODE_RELAXED) return VR_CU_INVALID_VALUE;
    vr_cu_result result = vr_sim_stream_find(sim, stream, found);
    if (result != VR_CU_SUCCESS) return result;
    if ((*found)->kind == VR_SIM_STREAM_LEGACY) return VR_CU_STREAM_CAPTURE_UNSUPPORTED;
    result = vr_sim_may_work(sim, *found);
    if (result != VR_CU_SUCCESS) return result;
    return (*found)->capture != 0 ? VR_CU_ILLEGAL_STATE : VR_CU_SUCCESS;
}

// Begins a capture of a stream into a graph. The caller allocated the slot `index`.
static struct vr_sim_capture *begin_capture(struct vr_sim *sim, struct vr_sim_stream *stream, uint32_t index, uint32_t graph, int mode) {
    struct vr_sim_capture *capture = capture_at(sim, index);
    const uint64_t handle = vr_sim_slots_handle(&sim->captures, index);
    capture->id = ++sim->last_capture_id;
    capture->graph = vr_sim_slots_handle(&sim->graphs, graph);
    capture->thread = vr_sim_this_thread(sim)->number;
    capture->origin = vr_sim_slots_index(&sim->streams, stream);
    capture->mode = mode;
    vr_sim_graph_at(sim, graph)->capture = handle;
    stream->capture = handle;
    return capture;
}

vr_cu_result vr_sim_stream_begin_capture(struct vr_sim *sim, uint64_t stream, int mode) {
    struct vr_sim_stream *found;
    vr_cu_result result = find_to_capture(sim, stream, mode, &found);
    if (result != VR_CU_SUCCESS) return result;
    uint32_t index, graph;
    if (vr_sim_slots_take(&sim->captures, &index) != VRAM_OK) return VR_CU_OUT_OF_MEMORY;
    result = vr_sim_graph_make(sim, &graph);
    if (result == VR_CU_SUCCESS)
        (void)begin_capture(sim, found, index, graph, mode);
    else
        vr_sim_slots_give(&sim->captures, index);
    return result;
}

// Captures into the program's graph, which stays whatever happens to the capture. The first node comes after `dependencies`.
vr_cu_result vr_sim_stream_begin_capture_to_graph(struct vr_sim *sim, uint64_t stream, uint64_t graph, const uint64_t *dependencies,
                                                  const struct vr_cu_edge_data *edges, uint64_t count, int mode) {
    struct vr_sim_stream *found;
    (void)edges;
    vr_cu_result result = find_to_capture(sim, stream, mode, &found);
    if (result != VR_CU_SUCCESS) return result;
    const struct vr_sim_graph *into = vr_sim_slots_find(&sim->graphs, graph);
    if (into == NULL || into->capture != 0) return VR_CU_INVALID_VALUE;
    const uint32_t place = vr_sim_slots_index(&sim->graphs, into);
    uint32_t index;
    if (!vr_sim_are_nodes_of(sim, place, dependencies, (size_t)count)) return VR_CU_INVALID_VALUE;
    const struct vr_sim_nodes first = {.items = (uint64_t *)(uintptr_t)dependencies, .count = (size_t)count};
    if (!vr_sim_nodes_copy(&found->frontier, &first)) return VR_CU_OUT_OF_MEMORY;
    if (vr_sim_slots_take(&sim->captures, &index) != VRAM_OK) {
        found->frontier.count = 0;
        return VR_CU_OUT_OF_MEMORY;
    }
    begin_capture(sim, found, index, place, mode)->borrowed = true;
    return VR_CU_SUCCESS;
}

static void set_free(struct vr_sim_stream *stream) {
    stream->capture = 0;
    stream->frontier.count = 0;
}

// Ends a capture: frees its streams for other use and keeps the graph.
static void finish_capture(struct vr_sim *sim, struct vr_sim_capture *capture) {
    const uint64_t handle = vr_sim_slots_handle(&sim->captures, vr_sim_slots_index(&sim->captures, capture));
    for (uint32_t i = 0; i < sim->streams.used; i++)
        if (vr_sim_stream_at(sim, i)->slot.live && vr_sim_stream_at(sim, i)->capture == handle) set_free(vr_sim_stream_at(sim, i));
    struct vr_sim_graph *graph = vr_sim_slots_find(&sim->graphs, capture->graph);
    graph->capture = 0;
    vr_sim_nodes_free(&capture->orphans);
    vr_sim_slots_give(&sim->captures, vr_sim_slots_index(&sim->captures, capture));
}

void vr_sim_capture_end(struct vr_sim *sim, struct vr_sim_capture *capture) {
    const struct vr_sim_graph *graph = vr_sim_slots_find(&sim->graphs, capture->graph);
    const bool borrowed = capture->borrowed;
    finish_capture(sim, capture);
    if (!borrowed) vr_sim_graph_end(sim, vr_sim_slots_index(&sim->graphs, graph));
}

// If the host is out of memory to note the stream's frontier, the capture becomes invalid.
void vr_sim_capture_leave(struct vr_sim *sim, struct vr_sim_stream *stream) {
    if (stream->capture == 0) return;
    struct vr_sim_capture *capture = vr_sim_capture_find(sim, stream->capture);
    if (capture->origin == vr_sim_slots_index(&sim->streams, stream)) {
        vr_sim_capture_end(sim, capture);
        return;
    }
    if (!vr_sim_nodes_merge(sim, &capture->orphans, stream->frontier.items, stream->frontier.count)) capture->invalidated = true;
    set_free(stream);
}

static bool are_marked(const struct vr_sim *sim, const struct vr_sim_nodes *nodes, uint64_t mark) {
    for (size_t i = 0; i < nodes->count; i++)
        if (vr_sim_node_find(sim, nodes->items[i])->mark != mark) return false;
    return true;
}

// Returns whether the origin's next node comes after the work of every stream of the capture.
static vr_cu_result check_joined(struct vr_sim *sim, const struct vr_sim_capture *capture, uint64_t handle) {
    uint64_t mark;
    if (!vr_sim_mark_past(sim, &vr_sim_stream_at(sim, capture->origin)->frontier, &mark)) return VR_CU_OUT_OF_MEMORY;
    bool joined = are_marked(sim, &capture->orphans, mark);
    for (uint32_t i = 0; i < sim->streams.used && joined; i++) {
        const struct vr_sim_stream *stream = vr_sim_stream_at(sim, i);
        if (stream->slot.live && stream->capture == handle) joined = are_marked(sim, &stream->frontier, mark);
    }
    return joined ? VR_CU_SUCCESS : VR_CU_STREAM_CAPTURE_UNJOINED;
}

// Ends the capture, even if it yields no graph. A call on another stream than the capture's, or on another thread, does not end it.
vr_cu_result vr_sim_stream_end_capture(struct vr_sim *sim, uint64_t stream, uint64_t *graph) {
    if (graph == NULL) return VR_CU_INVALID_VALUE;
    struct vr_sim_stream *found;
    vr_cu_result result = vr_sim_stream_find(sim, stream, &found);
    if (result != VR_CU_SUCCESS) return result;
    if (found->capture == 0) return VR_CU_ILLEGAL_STATE;
    struct vr_sim_capture *capture = vr_sim_capture_find(sim, found->capture);
    if (capture->origin != vr_sim_slots_index(&sim->streams, found)) {
        capture->invalidated = true;
        return VR_CU_STREAM_CAPTURE_UNMATCHED;
    }
    const struct vr_sim_thread *thread = vr_sim_this_thread(sim);
    if (capture->mode != VR_CU_STREAM_CAPTURE_MODE_RELAXED && capture->thread != thread->number) return VR_CU_STREAM_CAPTURE_WRONG_THREAD;
    result = capture->invalidated ? VR_CU_STREAM_CAPTURE_INVALIDATED : check_joined(sim, capture, found->capture);
    if (result == VR_CU_SUCCESS) {
        *graph = capture->graph;
        finish_capture(sim, capture);
    } else {
        *graph = 0;
        vr_sim_capture_end(sim, capture);
    }
    return result;
}

// --- queries --------------------------------------------------------------------------------------------------------

// Finds the stream of a query, which invalidates nothing.
static vr_cu_result stream_in_question(struct vr_sim *sim, uint64_t handle, struct vr_sim_stream **stream) {
    const vr_cu_result result = vr_sim_stream_find(sim, handle, stream);
    if (result != VR_CU_SUCCESS) return result;
    return is_unusable(sim, *stream, false) ? VR_CU_STREAM_CAPTURE_IMPLICIT : VR_CU_SUCCESS;
}

static int status_of(const struct vr_sim_stream *stream, const struct vr_sim_capture *capture) {
    if (stream->capture == 0) return VR_CU_STREAM_CAPTURE_STATUS_NONE;
    return capture->invalidated ? VR_CU_STREAM_CAPTURE_STATUS_INVALIDATED : VR_CU_STREAM_CAPTURE_STATUS_ACTIVE;
}

vr_cu_result vr_sim_stream_is_capturing(struct vr_sim *sim, uint64_t stream, int *status) {
    return vr_sim_stream_get_capture_info(sim, stream, status, NULL, NULL, NULL, NULL);
}

vr_cu_result vr_sim_stream_get_capture_info(struct vr_sim *sim, uint64_t stream, int *status, uint64_t *id, uint64_t *graph,
                                            const uint64_t **dependencies, uint64_t *count) {
    if (status == NULL) return VR_CU_INVALID_VALUE;
    struct vr_sim_stream *found;
    const vr_cu_result result = stream_in_question(sim, stream, &found);
    if (result != VR_CU_SUCCESS) return result;
    const struct vr_sim_capture *capture = vr_sim_capture_find(sim, found->capture);
    *status = status_of(found, capture);
    if (*status != VR_CU_STREAM_CAPTURE_STATUS_ACTIVE) return VR_CU_SUCCESS;
    if (id != NULL) *id = capture->id;
    if (graph != NULL) *graph = capture->graph;
    if (dependencies != NULL) *dependencies = found->frontier.items;
    if (count != NULL) *count = found->frontier.count;
    return VR_CU_SUCCESS;
}

vr_cu_result vr_sim_thread_exchange_capture_mode(struct vr_sim *sim, int *mode) {
    if (mode == NULL || *mode < VR_CU_STREAM_CAPTURE_MODE_GLOBAL || *mode > VR_CU_STREAM_CAPTURE_MODE_RELAXED) return VR_CU_INVALID_VALUE;
    struct vr_sim_thread *thread = vr_sim_this_thread(sim);
    if (thread == NULL) return VR_CU_OUT_OF_MEMORY;
    const int before = thread->capture_mode;
    thread->capture_mode = *mode;
    *mode = before;
    return VR_CU_SUCCESS;
}

// ---- Events that extend captures to other streams.

static struct vr_sim_event *event_of(const struct vr_sim *sim, uint64_t event) { return vr_sim_slots_find(&sim->events, event); }

static void invalidate(struct vr_sim_capture *capture) {
    if (capture != NULL) capture->invalidated = true;
}

static vr_cu_result add_event_node(struct vr_sim *sim, struct vr_sim_stream *stream, int type, uint64_t event) {
    const struct vr_sim_work work = {.type = type, .event = event};
    return vr_sim_capture_add(sim, stream, &work);
}

vr_cu_result vr_sim_capture_record(struct vr_sim *sim, struct vr_sim_stream *stream, uint64_t event, unsigned flags) {
    if (flags == VR_CU_EVENT_RECORD_EXTERNAL) return add_event_node(sim, stream, VR_CU_GRAPH_NODE_TYPE_EVENT_RECORD, event);
    struct vr_sim_event *found = event_of(sim, event);
    struct vr_sim_nodes frontier = {0};
    if (!vr_sim_nodes_copy(&frontier, &stream->frontier)) return VR_CU_OUT_OF_MEMORY;
    vr_sim_event_forget(sim, found);
    vr_sim_nodes_free(&found->frontier);
    found->frontier = frontier;
    found->capture = stream->capture;
    return VR_CU_SUCCESS;
}

// Makes a stream that does not capture join the capture in which the event was recorded.
static vr_cu_result join_capture(struct vr_sim *sim, struct vr_sim_stream *stream, const struct vr_sim_event *event) {
    struct vr_sim_capture *capture = vr_sim_capture_find(sim, event->capture);
    if (capture == NULL) return VR_CU_CAPTURED_EVENT; // the capture has ended
    if (capture->invalidated) return VR_CU_INVALID_VALUE;
    if (stream->kind == VR_SIM_STREAM_LEGACY) {
        invalidate(capture);
        return VR_CU_STREAM_CAPTURE_UNSUPPORTED;
    }
    if (!vr_sim_nodes_copy(&stream->frontier, &event->frontier)) return VR_CU_OUT_OF_MEMORY;
    stream->capture = event->capture;
    return VR_CU_SUCCESS;
}

vr_cu_result vr_sim_capture_wait(struct vr_sim *sim, struct vr_sim_stream *stream, uint64_t event, unsigned flags) {
    const struct vr_sim_event *found = event_of(sim, event);
    if (flags == VR_CU_EVENT_WAIT_EXTERNAL) return add_event_node(sim, stream, VR_CU_GRAPH_NODE_TYPE_WAIT_EVENT, event);
    if (stream->capture == 0) return join_capture(sim, stream, found);
    if (found->capture == 0 && !found->recorded) return VR_CU_SUCCESS;
    struct vr_sim_capture *own = vr_sim_capture_find(sim, stream->capture);
    if (found->capture != stream->capture) {
        struct vr_sim_capture *other = vr_sim_capture_find(sim, found->capture);
        invalidate(own);
        invalidate(other);
        return other != NULL ? VR_CU_STREAM_CAPTURE_MERGE : VR_CU_STREAM_CAPTURE_ISOLATION;
    }
    const bool merged = vr_sim_nodes_merge(sim, &stream->frontier, found->frontier.items, found->frontier.count);
    return merged ? VR_CU_SUCCESS : VR_CU_OUT_OF_MEMORY;
}

vr_cu_result vr_sim_event_for_waiting(struct vr_sim *sim, const struct vr_sim_event *event) {
    if (event->capture == 0) return vr_sim_unsafe(sim);
    invalidate(vr_sim_capture_find(sim, event->capture));
    return VR_CU_CAPTURED_EVENT;
}

// ---- Allocations and frees by capturing streams, which become nodes of the graph.

vr_cu_result vr_sim_capture_alloc(struct vr_sim *sim, struct vr_sim_stream *stream, uint32_t device, uint64_t size_bytes,
                                  uint64_t *address) {
    uint32_t index;
    uint64_t made;
    vr_cu_result result = vr_sim_graph_memory_make(sim, device, size_bytes, &index, &made);
    if (result != VR_CU_SUCCESS) return result;
    const struct vr_sim_work work = {.type = VR_CU_GRAPH_NODE_TYPE_MEM_ALLOC, .device = device, .memory = index};
    vr_sim_graph_memory_reference(sim, &work);
    result = vr_sim_capture_add(sim, stream, &work); // the node adds its own reference
    vr_sim_graph_memory_unreference(sim, &work);     // frees the memory if the node was not added
    if (result == VR_CU_SUCCESS) *address = made;
    return result;
}

// Returns whether the stream's captured graph allocates this memory.
static bool is_of_capture(const struct vr_sim *sim, const struct vr_sim_stream *stream, uint64_t memory) {
    const struct vr_sim_graph *graph = vr_sim_slots_find(&sim->graphs, vr_sim_capture_find(sim, stream->capture)->graph);
    for (size_t i = 0; i < graph->nodes.count; i++) {
        const struct vr_sim_work *work = &vr_sim_node_find(sim, graph->nodes.items[i])->work;
        if (work->type == VR_CU_GRAPH_NODE_TYPE_MEM_ALLOC && work->memory == memory) return true;
    }
    return false;
}

// A graph may free only its own allocations, each once.
vr_cu_result vr_sim_capture_free(struct vr_sim *sim, struct vr_sim_stream *stream, uint64_t address) {
    struct vr_sim_graph_memory *memory = vr_sim_graph_memory_at(sim, address);
    if (memory == NULL || memory->freed_here) return VR_CU_INVALID_VALUE;
    const uint32_t index = vr_sim_slots_index(&sim->graph_memories, memory);
    if (!is_of_capture(sim, stream, index)) return VR_CU_INVALID_VALUE;
    const struct vr_sim_work work = {.type = VR_CU_GRAPH_NODE_TYPE_MEM_FREE, .device = memory->device, .memory = index};
    const vr_cu_result result = vr_sim_capture_add(sim, stream, &work);
    if (result == VR_CU_SUCCESS) memory->freed_here = true;
    return result;
}
