// sim_streams.h: queues of work on the virtual clock, the events that mark points in them, and the work itself: a piece of it is done at
// once by a stream, or becomes a node of the graph that the stream captures.
#ifndef VR_SIM_STREAMS_SIM_STREAMS_H
#define VR_SIM_STREAMS_SIM_STREAMS_H

#include <stdlib.h>

#include "sim/sim.h"

// In manual completion: work of a stream up to `at` cannot be complete before work `target_work` of stream `target`.
struct vr_sim_edge {
    uint64_t at;
    uint64_t target_work;
    uint32_t target;
};

// A list of handles of graph nodes.
struct vr_sim_nodes {
    uint64_t *items;
    size_t count, items_capacity;
};

#define VR_SIM_GREATEST_PRIORITY (-5) // of every device since Volta; the least is 0

// A value that a stream waits for (sim_memory_ops.h).
struct vr_sim_hold {
    uint64_t address, value;
    uint32_t test;  // VR_CU_STREAM_WAIT_VALUE_*
    uint32_t width; // 4 or 8; 0: it waits for none
};

enum vr_sim_stream_kind { VR_SIM_STREAM_BLOCKING, VR_SIM_STREAM_NON_BLOCKING, VR_SIM_STREAM_LEGACY };

#define VR_SIM_STREAM_ATTRIBUTES 4 // that are kept

// A queue of work. Work is numbered from 1; all that is known of the work before is when it ends.
struct vr_sim_stream {
    struct vr_sim_slot slot;
    uint64_t context;
    uint64_t serial; // of the stream in the instance, from 1 up, never used again
    enum vr_sim_stream_kind kind;
    bool user;                                              // made by cuStreamCreate, not a default stream
    uint64_t green;                                         // handle of the green context that it was made in, 0 for none
    unsigned char attributes[VR_SIM_STREAM_ATTRIBUTES][64]; // CUstreamAttrValue, as set
    int priority;                                           // as asked for: 0 down to VR_SIM_GREATEST_PRIORITY; nothing is ordered by it
    uint64_t tail_ns;                                       // when the last work ends
    uint64_t work;                                          // number of the last work
    struct vr_sim_hold hold;                                // that its work comes after
    uint64_t callback;                                      // number of the last entry of sim_callbacks.h that its work comes after
    uint64_t done_work;                                     // manual completion: number of the last work that is complete
    struct vr_sim_edge *edges;                              // manual completion: open edges, `at` rising
    size_t edge_count, edges_capacity;
    uint32_t references;               // manual completion: events and edges that name it; it outlives its handle until they are gone
    uint64_t capture;                  // handle of the capture that it takes part in, 0 for none
    struct vr_sim_nodes frontier;      // in a capture: what the next node comes after
    struct vr_cu_edge_data *edge_data; // zeros, for who asks with the frontier
    size_t edge_data_capacity;
    struct vr_sim_waited { // what its next work comes after, because the program let it wait for an event: one entry per stream
        uint64_t serial, work;
    } * waited;
    size_t waited_count, waited_capacity;
};

// Recorded on a stream, or in a capture, or neither.
struct vr_sim_event {
    struct vr_sim_slot slot;
    uint64_t context;
    unsigned flags;
    uint64_t capture;             // handle of the capture that it was recorded in, which may be over; 0 for none
    struct vr_sim_nodes frontier; // that it was recorded after
    uint64_t ticket;              // of the handle that other processes may have; 0: none
    bool recorded;                // on a stream; the rest is of that record
    uint64_t complete_ns;         // when the work before the record ends
    uint32_t stream;              // manual completion: slot of the stream of the record
    uint64_t work;                // manual completion: number of the record in that stream
    uint64_t serial;              // of the stream of the record
    uint64_t callback;            // of the stream at the record
    struct vr_sim_hold hold;      // the same
};

// One piece of work. The fields that its type does not name are 0.
struct vr_sim_work {
    int type;        // VR_CU_GRAPH_NODE_TYPE_*
    uint32_t device; // whose access to memory counts
    // Copies and sets: planes of rows of bytes, each row width_bytes long.
    uint64_t to, from; // the first byte; a set has no `from`
    uint64_t width_bytes, rows, planes;
    uint64_t to_pitch, to_plane, from_pitch, from_plane; // bytes from row to row and from plane to plane
    bool to_device, from_device;                         // only memory that devices reach, not any of the host's
    uint32_t value, element_bytes;                       // sets: what each element becomes; 1, 2 or 4 bytes
    // Kernels and host functions. The function may be NULL: work that takes time and does nothing.
    vr_cu_host_function *function;
    void *argument;
    uint64_t cost_ns;               // on the device
    uint64_t event;                 // records and waits: its handle
    uint32_t child;                 // graphs: slot of the graph, which belongs to the node
    uint32_t memory;                // requests and frees of memory: slot of the graph's memory
    struct vr_sim_payload *payload; // what else a node of its type keeps; NULL: nothing
};

// What nodes, steps and copies of them share and never change: a struct that begins with this, in one piece of host memory.
struct vr_sim_payload {
    uint32_t references;
};
VR_INLINE void vr_sim_payload_keep(struct vr_sim_payload *payload) {
    if (payload != NULL) payload->references++;
}
VR_INLINE void vr_sim_payload_drop(struct vr_sim_payload *payload) {
    if (payload != NULL && --payload->references == 0) free(payload);
}

// --- sim_stream.c ----------------------------------------------------------------------------------------------------

// Lists of nodes. add: false when the host has no memory. copy: `to` becomes `from`, or is untouched when that fails.
bool vr_sim_nodes_add(struct vr_sim_nodes *nodes, uint64_t node);
bool vr_sim_nodes_copy(struct vr_sim_nodes *to, const struct vr_sim_nodes *from);
void vr_sim_nodes_free(struct vr_sim_nodes *nodes);
// Takes a node out; false when it is not in.
bool vr_sim_nodes_remove(struct vr_sim_nodes *nodes, uint64_t node);
// The same by its place in the list.
void vr_sim_nodes_remove_at(struct vr_sim_nodes *nodes, size_t at);
// Room for `more` nodes; false when the host has no memory.
bool vr_sim_nodes_reserve(struct vr_sim_nodes *nodes, size_t more);

// --- sim_stream.c ---------------------------------------------------------------------------------------------------

// Does a clock or queue that stands at from_ns, or at the present if that is later, have room for more_ns?
bool vr_sim_fits_in_time(const struct vr_sim *sim, uint64_t from_ns, uint64_t more_ns);
// The stream in a slot.
VR_INLINE struct vr_sim_stream *vr_sim_stream_at(const struct vr_sim *sim, uint32_t index) {
    return (struct vr_sim_stream *)(void *)vr_sim_slots_item(&sim->streams, index);
}
// Gives back what the stream's object holds, not the object.
void vr_sim_stream_free(struct vr_sim_stream *stream);
vr_cu_result vr_sim_stream_make(struct vr_sim *sim, uint64_t context, enum vr_sim_stream_kind kind, uint32_t *index);
// The stream that `handle` means for the calling thread in its current context: 0 and 1 legacy, 2 per thread, or one that was created.
vr_cu_result vr_sim_stream_find(struct vr_sim *sim, uint64_t handle, struct vr_sim_stream **stream);
// The same in a given, live context, for callers that have none current.
vr_cu_result vr_sim_stream_in(struct vr_sim *sim, uint64_t context, uint64_t handle, struct vr_sim_stream **stream);
// Appends work_ns of work. *end_ns (may be NULL): when it ends.
vr_cu_result vr_sim_enqueue(struct vr_sim *sim, struct vr_sim_stream *stream, uint64_t work_ns, uint64_t *end_ns);
// Appends a wait for a recorded event.
vr_cu_result vr_sim_enqueue_wait(struct vr_sim *sim, struct vr_sim_stream *stream, const struct vr_sim_event *event);
// Manual completion: is work `work` of the stream in slot `stream` complete?
bool vr_sim_work_complete(const struct vr_sim *sim, uint32_t stream, uint64_t work);
// These move the clock to the end of the work and complete it.
void vr_sim_wait_work(struct vr_sim *sim, uint32_t stream, uint64_t work, uint64_t end_ns);
void vr_sim_complete_stream(struct vr_sim *sim, struct vr_sim_stream *stream);
void vr_sim_wait_stream(struct vr_sim *sim, struct vr_sim_stream *stream); // as the program's synchronization does
void vr_sim_wait_context(struct vr_sim *sim, uint64_t context);
void vr_sim_wait_device(struct vr_sim *sim, uint32_t device);
void vr_sim_wait_all(struct vr_sim *sim);
// Makes `event` the record of the work of `stream` so far, which ends at end_ns; what it was a record of before is forgotten.
void vr_sim_event_set(struct vr_sim *sim, struct vr_sim_event *event, const struct vr_sim_stream *stream, uint64_t end_ns);
void vr_sim_event_forget(struct vr_sim *sim, struct vr_sim_event *event);
// The context of a stream, and the streams that wait for it, learn of its last host function.
void vr_sim_note_callback(struct vr_sim *sim, const struct vr_sim_stream *stream);
// Is the work of the stream complete? Of the legacy stream: that of all blocking streams, too.
bool vr_sim_stream_is_idle(const struct vr_sim *sim, const struct vr_sim_stream *stream);
// Takes the object away once neither a handle nor an event nor an edge names it.
void vr_sim_stream_collect(struct vr_sim *sim, uint32_t index);

// --- sim_stream_calls.c, sim_event.c --------------------------------------------------------------------------------

// A stream of the program's, in `context`: what cuStreamCreate makes in the current one.
vr_cu_result vr_sim_stream_create_in(struct vr_sim *sim, uint64_t context, enum vr_sim_stream_kind kind, uint64_t *stream);
// cuStreamCreateWithPriority: a priority out of the range becomes the nearest in it. cuStreamGetPriority tells it again.
// --- sim_event.c ---------------------------------------------------------------------------------------------

// An event after all that the streams of a live context have; of those in a green context, unless that is 0.
vr_cu_result vr_sim_context_record(struct vr_sim *sim, uint64_t context, uint64_t green, uint64_t event);
// Lets what these streams do next come after an event.
vr_cu_result vr_sim_context_wait(struct vr_sim *sim, uint64_t context, uint64_t green, uint64_t event);

vr_cu_result vr_sim_stream_create_with_priority(struct vr_sim *sim, uint64_t *stream, unsigned flags, int priority);
vr_cu_result vr_sim_stream_get_priority(struct vr_sim *sim, uint64_t stream, int *priority);
// End what lives in the context; events first.
void vr_sim_end_events(struct vr_sim *sim, uint64_t context);
void vr_sim_end_streams(struct vr_sim *sim, uint64_t context);

// --- sim_work.c -----------------------------------------------------------------------------------------------------

// May `device` read (write) [address, address + size_bytes)? What no device address ever lay near is taken for host memory; *host
// (may be NULL): it is.
bool vr_sim_is_memory(const struct vr_sim *sim, uint64_t address, uint64_t size_bytes, uint32_t device, bool write, bool *host);
// Does that lie in host memory that the driver knows, so that devices can use it where it lies?
bool vr_sim_is_pinned(const struct vr_sim *sim, uint64_t address, uint64_t size_bytes);
// May `device` read (write) it where it lies: memory of devices, or of the host that the driver knows?
bool vr_sim_is_reached(const struct vr_sim *sim, uint64_t address, uint64_t size_bytes, uint32_t device, bool write);
// A row of bytes to copy or to set.
struct vr_sim_work vr_sim_copy_work(uint64_t to, uint64_t from, uint64_t size_bytes);
struct vr_sim_work vr_sim_set_work(uint64_t address, uint8_t value, uint64_t size_bytes);
// Does the memory that the work names lie where its device may use it, and is it there? True of work that names none.
bool vr_sim_work_is_valid(const struct vr_sim *sim, const struct vr_sim_work *work);
// Moves the bytes or calls the function. The work must be valid. OUT_OF_MEMORY when the host has none for bytes that are kept.
vr_cu_result vr_sim_work_do(struct vr_sim *sim, const struct vr_sim_work *work);

// --- sim_stream.c -----------------------------------------------------------------------------------------------------

bool vr_sim_hold_is_over(const struct vr_sim *sim, const struct vr_sim_hold *hold);
// Waits for real until the value is there; the lock is given up meanwhile.
void vr_sim_hold_wait(struct vr_sim *sim, const struct vr_sim_hold *hold);

// --- sim_stream_calls.c ---------------------------------------------------------------------------------------------------

// Gives work to a stream that vr_sim_stream_for_work() allowed: done now, on the stream's time; or, when the stream captures, a node.
vr_cu_result vr_sim_submit(struct vr_sim *sim, struct vr_sim_stream *stream, const struct vr_sim_work *work);

// --- sim_copy.c ----------------------------------------------------------------------------------------------

// The work of a copy in three dimensions, but for its device: INVALID_VALUE where it leaves an array, INVALID_HANDLE where there is none.
vr_cu_result vr_sim_copy_shape(struct vr_sim *sim, const struct vr_cu_memcpy3d *copy, struct vr_sim_work *work);

// --- sim_stream.c ------------------------------------------------------------------------------------------------

// How long it takes on the device: what it says or, of copies and sets where work takes time, what its bytes do.
uint64_t vr_sim_work_cost_ns(const struct vr_sim *sim, const struct vr_sim_work *work);

#endif
