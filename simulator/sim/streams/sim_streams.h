// sim_streams.h: queues of work on the virtual clock, events that mark points in them, and the work itself. A stream does its work at once,
// or turns it into a node of the graph that it captures.
#ifndef VR_SIM_STREAMS_SIM_STREAMS_H
#define VR_SIM_STREAMS_SIM_STREAMS_H

#include <stdlib.h>

#include "sim/sim.h"

// Manual completion: work of a stream from `at` on comes after work `target_work` of stream `target`.
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

#define VR_SIM_GREATEST_PRIORITY (-5) // on every device since Volta; the least priority is 0

// A value in memory that a stream waits for (sim_memory_ops.h).
struct vr_sim_hold {
    uint64_t address, value;
    uint32_t test;  // VR_CU_STREAM_WAIT_VALUE_*
    uint32_t width; // 4 or 8 bytes; 0: no wait
};

enum vr_sim_stream_kind { VR_SIM_STREAM_BLOCKING, VR_SIM_STREAM_NON_BLOCKING, VR_SIM_STREAM_LEGACY };

#define VR_SIM_STREAM_ATTRIBUTES 4 // attributes that a stream keeps

// A queue of work, numbered from 1. Of earlier work only the end is known.
struct vr_sim_stream {
    struct vr_sim_slot slot;
    uint64_t context;
    uint64_t serial; // of the stream in the instance, from 1; never reused
    enum vr_sim_stream_kind kind;
    bool user;                                              // created by cuStreamCreate, not a default stream
    uint64_t green;                                         // handle of the green context it was created in, or 0
    unsigned char attributes[VR_SIM_STREAM_ATTRIBUTES][64]; // CUstreamAttrValue as set
    int priority;                                           // as requested, 0 down to VR_SIM_GREATEST_PRIORITY; does not affect the order
    uint64_t tail_ns;                                       // end of the last work
    uint64_t work;                                          // number of the last work
    struct vr_sim_hold hold;                                // value that the stream's work waits for
    uint64_t callback;                                      // number of the last entry of sim_callbacks.h that its work comes after
    uint64_t done_work;                                     // manual completion: number of the last complete work
    struct vr_sim_edge *edges;                              // manual completion: open edges, in rising order of `at`
    size_t edge_count, edges_capacity;
    uint32_t references;               // manual completion: events and edges that refer to it; they keep it alive after its handle
    uint64_t capture;                  // handle of the capture that it takes part in, or 0
    struct vr_sim_nodes frontier;      // in a capture: dependencies of the next node
    struct vr_cu_edge_data *edge_data; // zeros, returned with the frontier
    size_t edge_data_capacity;
    struct vr_sim_waited { // waits for events that the program made for its next work, one entry per stream
        uint64_t serial, work;
    } * waited;
    size_t waited_count, waited_capacity;
};

// An event: recorded on a stream, recorded in a capture, or not recorded.
struct vr_sim_event {
    struct vr_sim_slot slot;
    uint64_t context;
    unsigned flags;
    uint64_t capture;             // handle of the capture that it was recorded in, which may have ended; or 0
    struct vr_sim_nodes frontier; // nodes that it was recorded after
    uint64_t ticket;              // of its IPC handle; 0: not exported
    uint64_t key;                 // by which all processes know it (check/check.h); 0: it is of this process only
    bool recorded;                // on a stream; the fields below belong to that record
    uint64_t complete_ns;         // end of the work before the record
    uint32_t stream;              // manual completion: slot of the stream of the record
    uint64_t work;                // manual completion: number of the record in that stream
    uint64_t serial;              // of the stream of the record
    uint64_t callback;            // of the stream at the time of the record
    struct vr_sim_hold hold;      // of the stream at the time of the record
    struct vr_check_point *point; // position of the record, for the checker; or NULL
};

// One piece of work. Fields that its type does not use are 0.
struct vr_sim_work {
    int type;        // VR_CU_GRAPH_NODE_TYPE_*
    uint32_t device; // the device that accesses the memory
    // Copies and sets: `planes` planes of `rows` rows of width_bytes each.
    uint64_t to, from; // first byte; `from` is 0 for a set
    uint64_t width_bytes, rows, planes;
    uint64_t to_pitch, to_plane, from_pitch, from_plane; // distance between rows and between planes
    bool to_device, from_device;                         // must be memory that devices can access, not pageable host memory
    uint32_t value, element_bytes;                       // sets: value and size (1, 2 or 4 bytes) of each element
    // Kernels and host functions. A NULL function is work that only takes time.
    vr_cu_host_function *function;
    void *argument;
    uint64_t cost_ns;               // on the device
    uint64_t event;                 // records and waits: handle of the event
    uint32_t child;                 // graphs: slot of the child graph, owned by the node
    uint32_t memory;                // allocations and frees: slot of the graph's memory
    struct vr_sim_payload *payload; // further data of the node's type, or NULL
    uint32_t stack;                 // of a node, for the checker: of the call that made it
    uint64_t lives;                 // the same: vr_check_lives() then
};

// Immutable data shared by nodes, steps and their copies. Structs of one allocation start with it.
struct vr_sim_payload {
    uint32_t references;
};
VR_INLINE void vr_sim_payload_keep(struct vr_sim_payload *payload) {
    if (payload != NULL) payload->references++;
}
VR_INLINE void vr_sim_payload_drop(struct vr_sim_payload *payload) {
    if (payload != NULL && --payload->references == 0) free(payload);
}

// Lists of nodes. add returns false if the host is out of memory. copy makes `to` equal to `from`, or leaves it unchanged on failure.
bool vr_sim_nodes_add(struct vr_sim_nodes *nodes, uint64_t node);
bool vr_sim_nodes_copy(struct vr_sim_nodes *to, const struct vr_sim_nodes *from);
void vr_sim_nodes_free(struct vr_sim_nodes *nodes);
// Removes a node. Returns false if the list does not contain it.
bool vr_sim_nodes_remove(struct vr_sim_nodes *nodes, uint64_t node);
// Removes the node at an index.
void vr_sim_nodes_remove_at(struct vr_sim_nodes *nodes, size_t at);
// Reserves room for `more` nodes. Returns false if the host is out of memory.
bool vr_sim_nodes_reserve(struct vr_sim_nodes *nodes, size_t more);

// --- sim_stream.c ---------------------------------------------------------------------------------------------------

// Returns whether more_ns can be added to a clock or queue at from_ns (or at the present, if later) without overflow.
bool vr_sim_fits_in_time(const struct vr_sim *sim, uint64_t from_ns, uint64_t more_ns);
// Returns the stream in a slot.
VR_INLINE struct vr_sim_stream *vr_sim_stream_at(const struct vr_sim *sim, uint32_t index) {
    return (struct vr_sim_stream *)(void *)vr_sim_slots_item(&sim->streams, index);
}
// Frees the contents of the stream's object, but not the object.
void vr_sim_stream_free(struct vr_sim_stream *stream);
vr_cu_result vr_sim_stream_make(struct vr_sim *sim, uint64_t context, enum vr_sim_stream_kind kind, uint32_t *index);
// Finds the stream that `handle` means to the calling thread in its current context: 0 and 1 legacy, 2 per thread, else a created one.
vr_cu_result vr_sim_stream_find(struct vr_sim *sim, uint64_t handle, struct vr_sim_stream **stream);
// Like vr_sim_stream_find(), but in a given live context, for threads without a current one.
vr_cu_result vr_sim_stream_in(struct vr_sim *sim, uint64_t context, uint64_t handle, struct vr_sim_stream **stream);
// Appends work_ns of work. *end_ns is set to its end; end_ns may be NULL.
vr_cu_result vr_sim_enqueue(struct vr_sim *sim, struct vr_sim_stream *stream, uint64_t work_ns, uint64_t *end_ns);
// Appends a wait for a recorded event.
vr_cu_result vr_sim_enqueue_wait(struct vr_sim *sim, struct vr_sim_stream *stream, const struct vr_sim_event *event);
// Manual completion: returns whether work number `work` of the stream in slot `stream` is complete.
bool vr_sim_work_complete(const struct vr_sim *sim, uint32_t stream, uint64_t work);
// These move the clock to the end of the work and complete it.
void vr_sim_wait_work(struct vr_sim *sim, uint32_t stream, uint64_t work, uint64_t end_ns);
void vr_sim_complete_stream(struct vr_sim *sim, struct vr_sim_stream *stream);
void vr_sim_wait_stream(struct vr_sim *sim, struct vr_sim_stream *stream); // as the program's synchronization does
void vr_sim_wait_context(struct vr_sim *sim, uint64_t context);
void vr_sim_wait_device(struct vr_sim *sim, uint32_t device);
void vr_sim_wait_all(struct vr_sim *sim);
// Records `event` after the work of `stream` so far, which ends at end_ns. Its earlier record is dropped.
void vr_sim_event_set(struct vr_sim *sim, struct vr_sim_event *event, const struct vr_sim_stream *stream, uint64_t end_ns);
void vr_sim_event_forget(struct vr_sim *sim, struct vr_sim_event *event);
// Propagates the stream's last host function to its context.
void vr_sim_note_callback(struct vr_sim *sim, const struct vr_sim_stream *stream);
// Returns whether the work of the stream is complete; for the legacy stream, also that of all blocking streams.
bool vr_sim_stream_is_idle(const struct vr_sim *sim, const struct vr_sim_stream *stream);
// Frees the stream's slot once no handle, event or edge refers to it.
void vr_sim_stream_collect(struct vr_sim *sim, uint32_t index);

// --- sim_stream_calls.c, sim_event.c --------------------------------------------------------------------------------

// Creates a stream for the program in `context`, as cuStreamCreate does in the current context.
vr_cu_result vr_sim_stream_create_in(struct vr_sim *sim, uint64_t context, enum vr_sim_stream_kind kind, uint64_t *stream);

// Records an event after all work of the streams of a live context, or, unless `green` is 0, of the streams of that green context.
vr_cu_result vr_sim_context_record(struct vr_sim *sim, uint64_t context, uint64_t green, uint64_t event);
// Makes later work of these streams wait for an event.
vr_cu_result vr_sim_context_wait(struct vr_sim *sim, uint64_t context, uint64_t green, uint64_t event);

// cuStreamCreateWithPriority clamps the priority to the valid range; cuStreamGetPriority returns the clamped value.
vr_cu_result vr_sim_stream_create_with_priority(struct vr_sim *sim, uint64_t *stream, unsigned flags, int priority);
vr_cu_result vr_sim_stream_get_priority(struct vr_sim *sim, uint64_t stream, int *priority);
// Destroy the events and streams of a context; events first.
void vr_sim_end_events(struct vr_sim *sim, uint64_t context);
void vr_sim_end_streams(struct vr_sim *sim, uint64_t context);

// --- sim_work.c -----------------------------------------------------------------------------------------------------

// Returns whether `device` may read (or write) [address, address + size_bytes). An address far from all device addresses counts as host
// memory; *host (host may be NULL) is then true.
bool vr_sim_is_memory(const struct vr_sim *sim, uint64_t address, uint64_t size_bytes, uint32_t device, bool write, bool *host);
// Returns whether the range is in pinned host memory, which devices can access.
bool vr_sim_is_pinned(const struct vr_sim *sim, uint64_t address, uint64_t size_bytes);
// Returns whether `device` may read (or write) the range in place, as device memory or pinned host memory.
bool vr_sim_is_reached(const struct vr_sim *sim, uint64_t address, uint64_t size_bytes, uint32_t device, bool write);
// These make the work of copying or setting one row of bytes.
struct vr_sim_work vr_sim_copy_work(uint64_t to, uint64_t from, uint64_t size_bytes);
struct vr_sim_work vr_sim_set_work(uint64_t address, uint8_t value, uint64_t size_bytes);
// Returns whether all memory that the work uses exists, and its device can access it. True for work without memory.
bool vr_sim_work_is_valid(const struct vr_sim *sim, const struct vr_sim_work *work);
// Moves the bytes or calls the function. The work must be valid. OUT_OF_MEMORY if the host has no memory for contents that are kept.
vr_cu_result vr_sim_work_do(struct vr_sim *sim, const struct vr_sim_work *work);

// --- sim_stream.c -----------------------------------------------------------------------------------------------------

bool vr_sim_hold_is_over(const struct vr_sim *sim, const struct vr_sim_hold *hold);
// Waits in real time until the value is written, releasing the lock meanwhile.
void vr_sim_hold_wait(struct vr_sim *sim, const struct vr_sim_hold *hold);

// --- sim_stream_calls.c ---------------------------------------------------------------------------------------------------

// Gives work to a stream returned by vr_sim_stream_for_work(): it is done now, taking the stream's time, or becomes a node if the stream
// captures.
vr_cu_result vr_sim_submit(struct vr_sim *sim, struct vr_sim_stream *stream, const struct vr_sim_work *work);

// --- sim_copy.c ----------------------------------------------------------------------------------------------

// Makes the work of a three-dimensional copy, without its device. INVALID_VALUE if it exceeds an array, INVALID_HANDLE if an array does not
// exist.
vr_cu_result vr_sim_copy_shape(struct vr_sim *sim, const struct vr_cu_memcpy3d *copy, struct vr_sim_work *work);

// --- sim_stream.c ------------------------------------------------------------------------------------------------

// Returns the work's duration on the device: its cost_ns or, for copies and sets if they take time, a time that depends on their bytes.
uint64_t vr_sim_work_cost_ns(const struct vr_sim *sim, const struct vr_sim_work *work);

#endif
