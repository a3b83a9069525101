// sim_graphs.h: objects of the program that live as long as graphs need them.
#ifndef VR_SIM_GRAPHS_SIM_GRAPHS_H
#define VR_SIM_GRAPHS_SIM_GRAPHS_H

#include "sim/sim.h"
#include "sim/streams/sim_streams.h"

// Invariant: references is what the program has and what all holdings have of it; at 0 it is destroyed.
struct vr_sim_user_object {
    struct vr_sim_slot slot;
    void *object;
    vr_cu_host_function *destroy;
    uint64_t references;
};

// What a graph or an executable one has of objects.
struct vr_sim_holdings {
    struct vr_sim_holding {
        uint64_t object;
        uint64_t count;
    } * items;
    size_t count, items_capacity;
};

// Releases everything; calls the destructors of objects without another owner.
void vr_sim_holdings_release(struct vr_sim *sim, struct vr_sim_holdings *holdings);
// As many of each object as `from` has. False when the host has no memory; what was added stays.
bool vr_sim_holdings_add(struct vr_sim *sim, struct vr_sim_holdings *to, const struct vr_sim_holdings *from);

// ---- What streams capture: graphs of nodes, executable graphs, which are lists of such pieces of work with what each comes after, and the
// memory that graphs have.

#define VR_SIM_MAX_DEPTH 64 // graphs inside graphs; bounds every recursion over them

struct vr_sim_node {
    struct vr_sim_slot slot;
    uint32_t graph;    // its slot
    uint32_t place;    // in the graph's list
    uint64_t mark;     // number of the last walk that came by
    uint64_t original; // of a clone: the node that it was made from
    struct vr_sim_work work;
    struct vr_sim_nodes dependencies; // of the same graph, none twice
};

// Invariant: node i of `nodes` has place i and this graph; dependencies are live nodes of the same graph.
struct vr_sim_graph {
    struct vr_sim_slot slot;
    uint64_t capture;          // handle of the capture that fills it, 0 when there is none
    struct vr_sim_nodes nodes; // in order of creation
    uint32_t depth;            // 1, or one more than the deepest graph inside
    struct vr_sim_holdings holdings;
    uint32_t parent; // slot of the graph whose node has it, plus one; 0: none
    bool owned;      // by a node: asked and filled by its handle, it ends with the node
};

#define VR_SIM_CONDITION_SWITCH 2 // CUgraphConditionalNodeType

// What a conditional node keeps. The bodies belong to the node; steps and questions read their handles here.
struct vr_sim_condition_payload {
    struct vr_sim_payload head;
    uint64_t handle;
    int32_t type;
    uint32_t size;
    uint64_t value; // that a launch starts with: the handle's default
    uint64_t bodies[];
};

// A value that conditional nodes of a graph look at. Nothing computes: it stays what it starts as.
struct vr_sim_condition {
    struct vr_sim_slot slot;
    uint64_t graph;
    uint64_t value;
};

// A step of an executable graph. Steps come after everything they depend on.
struct vr_sim_step {
    struct vr_sim_work work; // never of type GRAPH: graphs inside are taken apart
    uint64_t node;           // handle of the node that it was made of, 0: of none
    bool disabled;           // it does nothing, in no time
    size_t exit;             // of a node with a graph inside: the step behind that graph's, which follow this one; 0 for others
    size_t first_dependency; // in the executable graph's list
    size_t dependency_count;
};

struct vr_sim_exec {
    struct vr_sim_slot slot;
    struct vr_sim_step *steps;
    size_t step_count, steps_capacity;
    size_t *dependencies; // numbers of earlier steps
    size_t dependency_count, dependencies_capacity;
    uint64_t *ends_ns;               // one per step: scratch of a launch
    bool claimed;                    // it has the memory of its graph
    struct vr_sim_holdings holdings; // of the graph and those inside, at its making
    bool calls;                      // it has host functions
    uint64_t flags;                  // as the program gave them
    bool auto_free;                  // a launch frees what the one before left
    struct vr_sim_event launch;      // the end of the last launch; not an event of the program's
};

// A capture in progress. Its streams are those whose `capture` is its handle.
struct vr_sim_capture {
    struct vr_sim_slot slot;
    uint64_t id;     // as the program sees it; from 1 up, never used again
    uint64_t graph;  // handle of the graph that it fills
    uint64_t thread; // number of the thread that began it
    uint32_t origin; // slot of the stream that it began on
    int mode;
    bool invalidated;
    bool borrowed;               // the graph is the program's own
    struct vr_sim_nodes orphans; // frontiers of streams that were destroyed in it
};

// Memory of a graph: made by a captured request, released with the last graph, executable graph or life that needs it.
struct vr_sim_graph_memory {
    struct vr_sim_slot slot;
    uint32_t device;
    uint32_t references; // nodes and steps that allocate it
    uint64_t address, span, size_bytes;
    bool live;       // a launch has allocated it, nothing has freed it since
    bool freed_here; // its own graph frees it
    bool busy;       // an executable graph has it
};

// --- sim_graph.c ----------------------------------------------------------------------------------------------------

// Adds what is not there yet.
bool vr_sim_nodes_merge(struct vr_sim *sim, struct vr_sim_nodes *to, const uint64_t *nodes, size_t count);
struct vr_sim_node *vr_sim_node_find(const struct vr_sim *sim, uint64_t node);
struct vr_sim_graph *vr_sim_graph_at(const struct vr_sim *sim, uint32_t index);
vr_cu_result vr_sim_graph_make(struct vr_sim *sim, uint32_t *index);
// From now on it belongs to a node.
void vr_sim_graph_own(struct vr_sim *sim, uint32_t index);
// With all its nodes and what is inside them.
void vr_sim_graph_end(struct vr_sim *sim, uint32_t index);
// A new node after `dependencies`, which are nodes of the graph, none twice. A graph that the work names becomes the node's.
vr_cu_result vr_sim_node_add(struct vr_sim *sim, uint32_t graph, const struct vr_sim_work *work, const uint64_t *dependencies, size_t count,
                             uint64_t *node);
// The bodies of a conditional node's payload: their end; the one that a launch runs (false: none).
void vr_sim_bodies_end(struct vr_sim *sim, struct vr_sim_payload *payload);
bool vr_sim_body_to_run(const struct vr_sim *sim, const struct vr_sim_payload *payload, uint32_t *graph);
// A copy of a graph, of what is inside it, too.
vr_cu_result vr_sim_graph_copy(struct vr_sim *sim, uint32_t from, uint32_t *copy);
// Are these live nodes of the graph, none twice? count 0 needs no list.
bool vr_sim_are_nodes_of(struct vr_sim *sim, uint32_t graph, const uint64_t *nodes, size_t count);
// Gives every node that comes before one of `nodes`, and these themselves, a new mark, *mark. False when the host has no memory.
bool vr_sim_mark_past(struct vr_sim *sim, const struct vr_sim_nodes *nodes, uint64_t *mark);
// Such graphs can neither be cloned nor be part of another.
bool vr_sim_graph_has_memory(const struct vr_sim *sim, uint32_t graph);

// --- sim_exec.c -----------------------------------------------------------------------------------------------------

void vr_sim_exec_end(struct vr_sim *sim, struct vr_sim_exec *exec);

// --- sim_graph.c ---------------------------------------------------------------------------------------------

// Memory at a new address, for a graph; nothing refers to it yet, and the first vr_sim_graph_memory_unreference() may take it away.
// OUT_OF_MEMORY.
vr_cu_result vr_sim_graph_memory_make(struct vr_sim *sim, uint32_t device, uint64_t size_bytes, uint32_t *index, uint64_t *address);
// That starts at an address; NULL: none.
struct vr_sim_graph_memory *vr_sim_graph_memory_at(const struct vr_sim *sim, uint64_t address);
// A node or a step that allocates comes or goes.
void vr_sim_graph_memory_reference(struct vr_sim *sim, const struct vr_sim_work *work);
void vr_sim_graph_memory_unreference(struct vr_sim *sim, const struct vr_sim_work *work);
// Memory of a graph is for one executable graph at a time. claim: NOT_SUPPORTED when another has it. One disclaim for each claim.
vr_cu_result vr_sim_exec_claim(struct vr_sim *sim, const struct vr_sim_exec *exec);
void vr_sim_exec_disclaim(struct vr_sim *sim, const struct vr_sim_exec *exec);
// A launch: all that it allocates, or INVALID_VALUE (an earlier launch's memory lives), OUT_OF_MEMORY. Then what its nodes free.
vr_cu_result vr_sim_exec_allocate(struct vr_sim *sim, const struct vr_sim_exec *exec);
void vr_sim_exec_free(struct vr_sim *sim, const struct vr_sim_exec *exec);
bool vr_sim_exec_has_memory(const struct vr_sim_exec *exec);
// A free outside of any capture. INVALID_VALUE when no launch has allocated it, or when its graph frees it itself.
vr_cu_result vr_sim_graph_memory_free(struct vr_sim *sim, uint64_t address);
// Bytes that live memory of graphs takes of a device.
uint64_t vr_sim_graph_memory_bytes(const struct vr_sim *sim, uint32_t device);

// --- sim_capture.c --------------------------------------------------------------------------------------------------

struct vr_sim_capture *vr_sim_capture_find(const struct vr_sim *sim, uint64_t capture);
// The node of captured work; the stream's next one comes after it.
vr_cu_result vr_sim_capture_add(struct vr_sim *sim, struct vr_sim_stream *stream, const struct vr_sim_work *work);
// What a call that is not safe beside a capture says: SUCCESS, or STREAM_CAPTURE_UNSUPPORTED, and then the captures it would have
// harmed are invalidated. The thread's mode and those of the captures decide.
vr_cu_result vr_sim_unsafe(struct vr_sim *sim);
// The stream that a handle means, for work: STREAM_CAPTURE_IMPLICIT for the legacy stream beside a captured blocking stream, whose
// capture is invalidated then; STREAM_CAPTURE_INVALIDATED.
vr_cu_result vr_sim_stream_for_work(struct vr_sim *sim, uint64_t handle, struct vr_sim_stream **stream);
vr_cu_result vr_sim_may_work(struct vr_sim *sim, const struct vr_sim_stream *stream);
// The same for waiting for a stream or asking for its state, which no captured stream allows.
vr_cu_result vr_sim_stream_for_waiting(struct vr_sim *sim, uint64_t handle, struct vr_sim_stream **stream);
// No stream of the context may capture.
vr_cu_result vr_sim_context_for_waiting(struct vr_sim *sim, uint64_t context);
// The stream leaves its capture, for good. A capture whose origin leaves is over.
void vr_sim_capture_leave(struct vr_sim *sim, struct vr_sim_stream *stream);
// Ends a capture and its graph; its streams are free again.
void vr_sim_capture_end(struct vr_sim *sim, struct vr_sim_capture *capture);
// Zeros, one for each node of the stream's frontier, owned by the stream; NULL when the host has no memory.
const struct vr_cu_edge_data *vr_sim_capture_edges(struct vr_sim_stream *stream);

// --- sim_capture.c -------------------------------------------------------------------------------------------

// What cuMemAllocAsync and cuMemFreeAsync are on a stream that captures.
vr_cu_result vr_sim_capture_alloc(struct vr_sim *sim, struct vr_sim_stream *stream, uint32_t device, uint64_t size_bytes,
                                  uint64_t *address);
vr_cu_result vr_sim_capture_free(struct vr_sim *sim, struct vr_sim_stream *stream, uint64_t address);

// --- sim_capture.c --------------------------------------------------------------------------------------------

// Records an event on a capturing stream: it names the frontier, or, with the external flag, gets a node.
vr_cu_result vr_sim_capture_record(struct vr_sim *sim, struct vr_sim_stream *stream, uint64_t event, unsigned flags);
// A wait where the stream captures or the event was recorded in a capture.
vr_cu_result vr_sim_capture_wait(struct vr_sim *sim, struct vr_sim_stream *stream, uint64_t event, unsigned flags);
// What asking for the state of an event says: CAPTURED_EVENT, and its capture is invalidated; or what vr_sim_unsafe() says.
vr_cu_result vr_sim_event_for_waiting(struct vr_sim *sim, const struct vr_sim_event *event);

// ---- The parameters of nodes, as programs give and ask them, and the work that they mean.

// What a node of copies keeps: the call's own words.
struct vr_sim_copy_payload {
    struct vr_sim_payload head;
    struct vr_cu_memcpy_node params;
};

// The work of a node with such parameters, and with a reference of its payload that the caller drops. NOT_SUPPORTED for kinds that are not
// simulated; graphs, memory requests and conditions are made by their own functions.
vr_cu_result vr_sim_params_work(struct vr_sim *sim, const struct vr_cu_node_params *params, struct vr_sim_work *work);
// The parameters of a node.
vr_cu_result vr_sim_params_of(struct vr_sim *sim, const struct vr_sim_node *node, struct vr_cu_node_params *params);

// --- sim_graph_nodes.c ----------------------------------------------------------------------------------------------

// A conditional node's payload with its bodies, which belong to no node yet. SUCCESS, INVALID_VALUE, OUT_OF_MEMORY.
vr_cu_result vr_sim_condition_make(struct vr_sim *sim, uint64_t graph, const struct vr_cu_conditional_node *params,
                                   struct vr_sim_payload **made);

#endif
