// sim_graphs.h: graphs, executable graphs, captures, memory of graphs, and the user objects that they hold.
#ifndef VR_SIM_GRAPHS_SIM_GRAPHS_H
#define VR_SIM_GRAPHS_SIM_GRAPHS_H

#include "sim/sim.h"
#include "sim/streams/sim_streams.h"

// Invariant: references is the sum of the program's and all holdings' references; at 0 the object is destroyed.
struct vr_sim_user_object {
    struct vr_sim_slot slot;
    void *object;
    vr_cu_host_function *destroy;
    uint64_t references;
};

// References of a graph or executable graph to user objects.
struct vr_sim_holdings {
    struct vr_sim_holding {
        uint64_t object;
        uint64_t count;
    } * items;
    size_t count, items_capacity;
};

// Drops all references; calls the destructors of objects that have no other owner.
void vr_sim_holdings_release(struct vr_sim *sim, struct vr_sim_holdings *holdings);
// Adds as many references to each object as `from` has. Returns false if the host is out of memory; references added so far stay.
bool vr_sim_holdings_add(struct vr_sim *sim, struct vr_sim_holdings *to, const struct vr_sim_holdings *from);

// ---- Captured graphs: graphs of nodes; executable graphs, which are lists of steps with their dependencies; and memory of graphs.

#define VR_SIM_MAX_DEPTH 64 // levels of nested graphs; bounds every recursion over them

struct vr_sim_node {
    struct vr_sim_slot slot;
    uint32_t graph;    // its slot
    uint32_t place;    // index in the graph's list
    uint64_t mark;     // number of the last walk that visited it
    uint64_t original; // of a clone: handle of the node it was copied from
    struct vr_sim_work work;
    struct vr_sim_nodes dependencies; // nodes of the same graph, each once
};

// Invariant: node i of `nodes` has place i and belongs to this graph; dependencies are live nodes of the same graph.
struct vr_sim_graph {
    struct vr_sim_slot slot;
    uint64_t capture;          // handle of the capture that fills it, or 0
    struct vr_sim_nodes nodes; // in order of creation
    uint32_t depth;            // 1, or one more than that of the deepest child graph
    struct vr_sim_holdings holdings;
    uint32_t parent; // slot of the graph that contains it in a node, plus one; or 0
    bool owned;      // owned by a node: accessible by its handle, destroyed with the node
};

#define VR_SIM_CONDITION_SWITCH 2 // CUgraphConditionalNodeType

// Payload of a conditional node. The node owns the bodies; steps and queries read their handles here.
struct vr_sim_condition_payload {
    struct vr_sim_payload head;
    uint64_t handle;
    int32_t type;
    uint32_t size;
    uint64_t value; // initial value of a launch: the handle's default
    uint64_t bodies[];
};

// A value that conditional nodes of a graph test. Kernels do not run, so it keeps its initial value.
struct vr_sim_condition {
    struct vr_sim_slot slot;
    uint64_t graph;
    uint64_t value;
};

// A step of an executable graph. Steps come after all of their dependencies.
struct vr_sim_step {
    struct vr_sim_work work; // never of type GRAPH: child graphs are expanded
    uint64_t node;           // handle of the node it was made from, or 0
    bool disabled;           // does nothing and takes no time
    size_t exit;             // of a child graph node: index of the step after the child's steps, which follow this one; else 0
    size_t first_dependency; // index in the executable graph's list
    size_t dependency_count;
};

struct vr_sim_exec {
    struct vr_sim_slot slot;
    struct vr_sim_step *steps;
    size_t step_count, steps_capacity;
    size_t *dependencies; // indices of earlier steps
    size_t dependency_count, dependencies_capacity;
    uint64_t *ends_ns;               // one per step: scratch memory of a launch
    bool claimed;                    // it has claimed its graph's memory
    struct vr_sim_holdings holdings; // of the graph and its child graphs at instantiation
    bool calls;                      // contains host functions
    uint64_t flags;                  // from the program
    bool auto_free;                  // a launch frees allocations left by the previous launch
    struct vr_sim_event launch;      // end of the last launch; not an event of the program
    uint32_t device;                 // of driver_bytes
    uint64_t driver_bytes;           // that the driver takes for it
};

// A capture in progress. Its streams are those whose `capture` is its handle.
struct vr_sim_capture {
    struct vr_sim_slot slot;
    uint64_t id;     // id that programs see; from 1, never reused
    uint64_t graph;  // handle of the graph that it fills
    uint64_t thread; // number of the thread that began it
    uint32_t origin; // slot of the stream on which it began
    int mode;
    bool invalidated;
    bool borrowed;               // the graph belongs to the program
    struct vr_sim_nodes orphans; // frontiers of streams destroyed during the capture
};

// Memory of a graph: created by a captured allocation, freed when no graph or executable graph refers to it and it is not live.
struct vr_sim_graph_memory {
    struct vr_sim_slot slot;
    uint32_t device;
    uint32_t references; // nodes and steps that allocate it
    uint64_t address, span, size_bytes;
    bool live;       // allocated by a launch and not freed since
    bool freed_here; // a node of its own graph frees it
    bool busy;       // claimed by an executable graph
};

// Adds the nodes that the list does not contain yet. Returns false if the host is out of memory.
bool vr_sim_nodes_merge(struct vr_sim *sim, struct vr_sim_nodes *to, const uint64_t *nodes, size_t count);
struct vr_sim_node *vr_sim_node_find(const struct vr_sim *sim, uint64_t node);
struct vr_sim_graph *vr_sim_graph_at(const struct vr_sim *sim, uint32_t index);
vr_cu_result vr_sim_graph_make(struct vr_sim *sim, uint32_t *index);
// Marks the graph as owned by a node.
void vr_sim_graph_own(struct vr_sim *sim, uint32_t index);
// Destroys the graph, its nodes and their child graphs.
void vr_sim_graph_end(struct vr_sim *sim, uint32_t index);
// Adds a node after `dependencies`, which must be nodes of the graph, each once. The node takes over a child graph of the work.
vr_cu_result vr_sim_node_add(struct vr_sim *sim, uint32_t graph, const struct vr_sim_work *work, const uint64_t *dependencies, size_t count,
                             uint64_t *node);
// vr_sim_bodies_end() destroys a conditional node's bodies; vr_sim_body_to_run() gets the one that a launch runs, or returns false.
void vr_sim_bodies_end(struct vr_sim *sim, struct vr_sim_payload *payload);
bool vr_sim_body_to_run(const struct vr_sim *sim, const struct vr_sim_payload *payload, uint32_t *graph);
// Copies a graph, including its child graphs.
vr_cu_result vr_sim_graph_copy(struct vr_sim *sim, uint32_t from, uint32_t *copy);
// Returns whether these are live nodes of the graph, each once. nodes may be NULL if count is 0.
bool vr_sim_are_nodes_of(struct vr_sim *sim, uint32_t graph, const uint64_t *nodes, size_t count);
// Sets a new mark, *mark, on `nodes` and all nodes before them. Returns false if the host is out of memory.
bool vr_sim_mark_past(struct vr_sim *sim, const struct vr_sim_nodes *nodes, uint64_t *mark);
// Returns whether the graph contains memory nodes. Such graphs cannot be cloned or nested.
bool vr_sim_graph_has_memory(const struct vr_sim *sim, uint32_t graph);

// --- sim_exec.c -----------------------------------------------------------------------------------------------------

void vr_sim_exec_end(struct vr_sim *sim, struct vr_sim_exec *exec);

// --- sim_exec_memory.c ----------------------------------------------------------------------------------------------

// Takes the memory that the driver needs for an executable graph. Returns false if the device has too little.
bool vr_sim_exec_take_memory(struct vr_sim *sim, struct vr_sim_exec *exec);
void vr_sim_exec_give_memory(struct vr_sim *sim, struct vr_sim_exec *exec);
// Returns the sum over a device's executable graphs.
uint64_t vr_sim_exec_memory_bytes(const struct vr_sim *sim, uint32_t device);

// --- sim_graph.c ----------------------------------------------------------------------------------------------------

// Makes memory for a graph at a new address. It has no references yet, so the next vr_sim_graph_memory_unreference() may free it.
// OUT_OF_MEMORY.
vr_cu_result vr_sim_graph_memory_make(struct vr_sim *sim, uint32_t device, uint64_t size_bytes, uint32_t *index, uint64_t *address);
// Returns the graph memory that starts at an address, or NULL.
struct vr_sim_graph_memory *vr_sim_graph_memory_at(const struct vr_sim *sim, uint64_t address);
// These add and drop the reference of a node or step that allocates.
void vr_sim_graph_memory_reference(struct vr_sim *sim, const struct vr_sim_work *work);
void vr_sim_graph_memory_unreference(struct vr_sim *sim, const struct vr_sim_work *work);
// Claims the memory that an executable graph allocates; each graph memory has at most one claimant. NOT_SUPPORTED if any of it is already
// claimed. Each successful claim needs one vr_sim_exec_disclaim().
vr_cu_result vr_sim_exec_claim(struct vr_sim *sim, const struct vr_sim_exec *exec);
void vr_sim_exec_disclaim(struct vr_sim *sim, const struct vr_sim_exec *exec);
// Allocates everything for a launch: INVALID_VALUE if an earlier launch's memory is still live, OUT_OF_MEMORY. vr_sim_exec_free() then does
// the frees of its nodes.
vr_cu_result vr_sim_exec_allocate(struct vr_sim *sim, const struct vr_sim_exec *exec);
void vr_sim_exec_free(struct vr_sim *sim, const struct vr_sim_exec *exec);
bool vr_sim_exec_has_memory(const struct vr_sim_exec *exec);
// Frees graph memory outside of a capture. INVALID_VALUE if no launch allocated it or if its own graph frees it.
vr_cu_result vr_sim_graph_memory_free(struct vr_sim *sim, uint64_t address);
// Returns the bytes that live graph memory takes on a device.
uint64_t vr_sim_graph_memory_bytes(const struct vr_sim *sim, uint32_t device);

// --- sim_capture.c --------------------------------------------------------------------------------------------------

struct vr_sim_capture *vr_sim_capture_find(const struct vr_sim *sim, uint64_t capture);
// Adds captured work as a node; the stream's next node comes after it.
vr_cu_result vr_sim_capture_add(struct vr_sim *sim, struct vr_sim_stream *stream, const struct vr_sim_work *work);
// Checks a call that is unsafe during a capture: SUCCESS, or STREAM_CAPTURE_UNSUPPORTED after invalidating the captures it would harm. The
// modes of the thread and of the captures decide.
vr_cu_result vr_sim_unsafe(struct vr_sim *sim);
// Finds a handle's stream for work. STREAM_CAPTURE_IMPLICIT for the legacy stream while a blocking stream captures, whose capture is
// invalidated; STREAM_CAPTURE_INVALIDATED.
vr_cu_result vr_sim_stream_for_work(struct vr_sim *sim, uint64_t handle, struct vr_sim_stream **stream);
vr_cu_result vr_sim_may_work(struct vr_sim *sim, const struct vr_sim_stream *stream);
// Finds a stream to wait for or to query, which fails if it captures.
vr_cu_result vr_sim_stream_for_waiting(struct vr_sim *sim, uint64_t handle, struct vr_sim_stream **stream);
// Fails if any stream of the context captures.
vr_cu_result vr_sim_context_for_waiting(struct vr_sim *sim, uint64_t context);
// Removes the stream from its capture for good. The capture ends if the stream is its origin.
void vr_sim_capture_leave(struct vr_sim *sim, struct vr_sim_stream *stream);
// Ends a capture and destroys its graph; its streams can be used again.
void vr_sim_capture_end(struct vr_sim *sim, struct vr_sim_capture *capture);
// Returns zeros, one entry for each node of the stream's frontier, owned by the stream; NULL if the host is out of memory.
const struct vr_cu_edge_data *vr_sim_capture_edges(struct vr_sim_stream *stream);

// Do cuMemAllocAsync and cuMemFreeAsync on a capturing stream.
vr_cu_result vr_sim_capture_alloc(struct vr_sim *sim, struct vr_sim_stream *stream, uint32_t device, uint64_t size_bytes,
                                  uint64_t *address);
vr_cu_result vr_sim_capture_free(struct vr_sim *sim, struct vr_sim_stream *stream, uint64_t address);

// Records an event on a capturing stream: the event gets the frontier or, with the external flag, its own node.
vr_cu_result vr_sim_capture_record(struct vr_sim *sim, struct vr_sim_stream *stream, uint64_t event, unsigned flags);
// Makes a stream wait for an event if the stream captures or the event was recorded in a capture.
vr_cu_result vr_sim_capture_wait(struct vr_sim *sim, struct vr_sim_stream *stream, uint64_t event, unsigned flags);
// Checks that an event may be queried: CAPTURED_EVENT after invalidating its capture, or the result of vr_sim_unsafe().
vr_cu_result vr_sim_event_for_waiting(struct vr_sim *sim, const struct vr_sim_event *event);

// ---- Conversion between the parameters of nodes, as programs pass them, and work.

// Payload of a copy node: the parameters of the call.
struct vr_sim_copy_payload {
    struct vr_sim_payload head;
    struct vr_cu_memcpy_node params;
};

// Makes the work of a node, with a reference to its payload that the caller drops. NOT_SUPPORTED for kinds that are not simulated. Child
// graphs, allocations and conditions have their own functions.
vr_cu_result vr_sim_params_work(struct vr_sim *sim, const struct vr_cu_node_params *params, struct vr_sim_work *work);
// Gets the parameters of a node.
vr_cu_result vr_sim_params_of(struct vr_sim *sim, const struct vr_sim_node *node, struct vr_cu_node_params *params);

// --- sim_graph_nodes.c ----------------------------------------------------------------------------------------------

// Makes a conditional node's payload with its bodies, which belong to no node yet. SUCCESS, INVALID_VALUE, OUT_OF_MEMORY.
vr_cu_result vr_sim_condition_make(struct vr_sim *sim, uint64_t graph, const struct vr_cu_conditional_node *params,
                                   struct vr_sim_payload **made);

#endif
