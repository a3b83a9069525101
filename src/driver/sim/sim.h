// sim.h: the inside of the simulated driver. One struct, one lock; every vr_sim_* function below is called with it held.
//
// It is cut by what it models: device/ (devices, contexts, peers, what calls cost), memory/ (addresses, allocations, pages, pools, the
// host's memory, what other processes have), streams/ (queues of work, events, time), graphs/ (captures, graphs, their launches). These
// hold one function per row of calls.def; sim_calls.c takes the lock, counts the call and charges its cost. What a row does is the driver
// API's documentation; what it costs is device/sim_cost.c.
#ifndef VR_DRIVER_SIM_SIM_H
#define VR_DRIVER_SIM_SIM_H

#include "base/base.h"
#include "driver/driver.h"
#include "driver/sim/sim_ranges.h"
#include "driver/sim/sim_slots.h"
#include "os/os.h"
#include "vram/driver.h"

#define VR_SIM_GRANULARITY    (2 * VR_MIB)        // of cuMemCreate, cuMemMap and reservations
#define VR_SIM_LIMIT          ((uint64_t)1 << 56) // no device address at or above
#define VR_SIM_MAX_DEVICES    64                  // as many as an access mask has bits
#define VR_SIM_DRIVER_VERSION 12000
#define VR_SIM_PAGE_BYTES     4096 // host page: backed memory comes in these

enum vr_sim_call {
#define X(member, symbol, exported, version, parameters, arguments) VR_SIM_CALL_##member,
#include "driver/calls.def"
#undef X
    VR_SIM_CALL_COUNT
};

// What occupies device address space.
enum vr_sim_kind {
    VR_SIM_ALLOCATION,
    VR_SIM_RESERVATION,
    VR_SIM_IMPORT /* an allocation of another process */,
    VR_SIM_CHUNK /* of a pool */,
    VR_SIM_GRAPH_MEMORY
};
// What a range of the host is.
enum vr_sim_host_kind { VR_SIM_HOST_ALLOCATED, VR_SIM_HOST_REGISTERED };

struct vr_sim_device {
    uint64_t memory_bytes;     // capacity
    uint64_t used_bytes;       // exact cuMemAlloc sizes and physical handles
    uint64_t small_bytes;      // of cuMemAlloc sizes below 1 MiB
    uint64_t small_held_bytes; // 2 MiB pages that the driver holds for small sizes; never given back (cost model only)
    uint64_t tail_ns;          // when the last work of all its streams ends
    uint64_t primary;          // handle of the primary context, 0 while nobody retains it
    uint32_t primary_references;
    uint64_t default_pool; // handle, 0 until somebody asks
    uint64_t pool;         // handle of the pool that asynchronous requests use; 0: the default pool
};

// A context: a device and its implicit stream.
struct vr_sim_context {
    struct vr_sim_slot slot;
    uint32_t device;
    uint32_t legacy;           // slot of the legacy default stream
    uint64_t blocking_tail_ns; // when the last work of all blocking streams ends; the legacy stream starts after it
    uint64_t tail_ns;          // the same of all streams
    bool primary;
    uint64_t *peers; // handles of the contexts whose allocations it may use
    size_t peer_count, peer_capacity;
};

// In manual completion: work of a stream up to `at` cannot be complete before work `target_work` of stream `target`.
struct vr_sim_edge {
    uint64_t at;
    uint64_t target_work;
    uint32_t target;
};

// A list of handles of graph nodes.
struct vr_sim_nodes {
    uint64_t *items;
    size_t count, capacity;
};

enum vr_sim_stream_kind { VR_SIM_STREAM_BLOCKING, VR_SIM_STREAM_NON_BLOCKING, VR_SIM_STREAM_LEGACY };

// A queue of work. Work is numbered from 1; all that is known of the work before is when it ends.
struct vr_sim_stream {
    struct vr_sim_slot slot;
    uint64_t context;
    uint64_t serial; // of the stream in the instance, from 1 up, never used again
    enum vr_sim_stream_kind kind;
    bool user;                 // made by cuStreamCreate, not a default stream
    uint64_t tail_ns;          // when the last work ends
    uint64_t work;             // number of the last work
    uint64_t done_work;        // manual completion: number of the last work that is complete
    struct vr_sim_edge *edges; // manual completion: open edges, `at` rising
    size_t edge_count, edge_capacity;
    uint32_t references;               // manual completion: events and edges that name it; it outlives its handle until they are gone
    uint64_t capture;                  // handle of the capture that it takes part in, 0 for none
    struct vr_sim_nodes frontier;      // in a capture: what the next node comes after
    struct vr_cu_edge_data *edge_data; // zeros, for who asks with the frontier
    size_t edge_data_capacity;
    struct vr_sim_seen { // what its next work comes after, because the program let it wait for an event: one entry per stream
        uint64_t serial, work;
    } * seen;
    size_t seen_count, seen_capacity;
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
};

// A physical allocation of cuMemCreate. It lives while its handle or a mapping lives.
struct vr_sim_physical {
    struct vr_sim_slot slot;
    uint32_t device;
    uint64_t size_bytes;
    uint64_t mappings;
    uint64_t file_offset;   // backed: where its bytes lie in the instance's file, or in that of the other process
    uint64_t references;    // of the handle: how often it must be released
    int32_t handle_types;   // that it was asked for with
    uint64_t ticket;        // where its ticket lies in the file; 0: never exported
    uint32_t shared;        // imported: number of its struct vr_sim_shared, plus one; 0: made here
    uint8_t rdma, compress; // as asked for
};

// Memory of another process, or of this one imported again. Holds the ticket's byte in the file, so that its bytes stay.
struct vr_sim_shared {
    uint64_t references; // objects that name it; 0: unused entry
    uint32_t file;       // entry in the instance's list of foreign files
    uint64_t ticket;     // its place in that file, and of the memory
    uint64_t offset, size_bytes;
};

// A memory file of another instance.
struct vr_sim_file {
    uint64_t references; // entries of vr_sim_shared; 0: unused entry
    uint64_t volume, number;
    int file;
};

// What one thread has set.
struct vr_sim_thread {
    uint64_t number;    // of the thread; never used again
    uint64_t *contexts; // stack; the last is current
    size_t context_count, context_capacity;
    struct vr_sim_thread_stream { // the thread's default stream in one context
        uint64_t context;
        uint32_t stream; // its slot
    } * streams;
    size_t stream_count, stream_capacity;
    int capture_mode; // VR_CU_STREAM_CAPTURE_MODE_*
};

struct vr_sim_queue {
    uint64_t *items;
    size_t capacity, count, next; // items[next..count) are waiting
};

struct vr_sim {
    struct vram_driver head; // first: a struct vram_driver * is this
    struct vr_mutex lock;
    struct vram_sim_options options; // with the defaults filled in
    uint64_t serial;                 // of the instance in the process, never 0 and never used again
    uint64_t clock_ns;
    uint64_t charge_ns; // cost of the running call so far
    uint64_t counts[VR_SIM_CALL_COUNT], costs_ns[VR_SIM_CALL_COUNT];

    struct vr_sim_device devices[VR_SIM_MAX_DEVICES];
    struct vr_sim_slots contexts, streams, events, physicals, graphs, nodes, execs, captures, pools, pieces, graph_memories;
    uint64_t last_mark;            // of a walk over nodes
    uint64_t last_capture_id;      // that a program saw
    struct vr_sim_ranges spaces;   // allocations (owner: context) and reservations
    struct vr_sim_ranges mappings; // owner: handle of the physical allocation
    struct vr_sim_ranges hosts;    // owner: context
    struct vr_sim_ranges pooled;   // taken pieces of pools; owner: slot of the piece
    uint64_t last_stream_serial;
    uint64_t user_pools;                    // live handles of cuMemPoolCreate
    uint64_t user_streams;                  // live handles of cuStreamCreate
    uint64_t named_physicals;               // live handles of cuMemCreate
    uint64_t lowest_device, highest_device; // [lowest, highest): what device addresses were ever given out by the rules
    uint64_t alloc_cursor, reserve_cursor;
    struct vr_sim_queue alloc_queue, reserve_queue;

    struct vr_sim_thread *threads; // sorted by nothing; found through thread_slots
    size_t thread_count, thread_capacity;
    int file;            // backed: the memory file, -1 otherwise
    uint64_t file_bytes; // backed: its length; offsets are never used again
    struct vr_sim_shared *shared;
    size_t shared_count, shared_capacity;
    struct vr_sim_file *files;
    size_t file_count, file_capacity;
};

// --- check.c ---------------------------------------------------------------------------------------------------------
// Are the counts of the instance what its tables hold? per device used_bytes = live allocations + physical allocations + contexts,
// small_bytes = allocations below 1 MiB; per physical allocation its mappings; per stream its references (manual completion) and
// edges in rising order; handles and user streams; graphs and captures as graph.h says. Asserted by the calls themselves in builds with
// VRAM_CHECK=3.
bool vr_sim_check(const struct vr_sim *sim);

// --- the rows of calls.def: vr_sim_<member>(sim, ...) ----------------------------------------------------------------
// clang-format off
#define X(member, symbol, exported, version, parameters, arguments) vr_cu_result vr_sim_##member VR_WITH_SIM parameters;
#define VR_WITH_SIM(...) (struct vr_sim *sim, __VA_ARGS__)
#include "driver/calls.def"
#undef X
#undef VR_WITH_SIM
// clang-format on

// --- sim.c -----------------------------------------------------------------------------------------------------------
// `driver` as a simulator, or NULL when it is of another kind.
struct vr_sim *vr_sim_of(struct vram_driver *driver);
extern const struct vr_driver_calls vr_sim_calls; // entry.c
// Does a clock or queue that stands at from_ns, or at the present if that is later, have room for more_ns?
bool vr_sim_fits_in_time(const struct vr_sim *sim, uint64_t from_ns, uint64_t more_ns);
// vram_sim_parse() that keeps what the text does not name. (parse.c; needs no lock)
enum vram_status vr_sim_parse_into(const char *text, struct vram_sim_options *options, struct vram_error *error);

// --- cost.c ----------------------------------------------------------------------------------------------------------
// What `call` costs whatever its arguments.
uint64_t vr_sim_base_cost_ns(const struct vr_sim *sim, enum vr_sim_call call);
// These add to the cost of the running call; nothing in the profile FREE.
void vr_sim_charge(struct vr_sim *sim, uint64_t cost_ns);
void vr_sim_charge_bytes(struct vr_sim *sim, uint64_t bytes, uint64_t ns_per_mib);
// charge_alloc and charge_free also keep count of the small allocations that share 2 MiB pages: one call each per allocation.
void vr_sim_charge_alloc(struct vr_sim *sim, struct vr_sim_device *device, uint64_t size_bytes);
void vr_sim_charge_free(struct vr_sim *sim, struct vr_sim_device *device, uint64_t size_bytes);
void vr_sim_charge_unmap(struct vr_sim *sim, uint64_t mappings);
void vr_sim_charge_create(struct vr_sim *sim, uint64_t size_bytes);
void vr_sim_charge_set_access(struct vr_sim *sim, uint64_t size_bytes, uint64_t count);
void vr_sim_charge_chunk(struct vr_sim *sim, uint64_t size_bytes);
void vr_sim_charge_record(struct vr_sim *sim, unsigned event_flags);

// --- context.c -------------------------------------------------------------------------------------------------------
// The calling thread's record, made on first use; borrowed until the lock is released. NULL when the host has no memory.
struct vr_sim_thread *vr_sim_this_thread(struct vr_sim *sim);
// The calling thread's current context: SUCCESS, INVALID_CONTEXT when it has none, or CONTEXT_IS_DESTROYED.
vr_cu_result vr_sim_current(struct vr_sim *sim, struct vr_sim_context **context);
struct vr_sim_context *vr_sim_context_find(const struct vr_sim *sim, uint64_t context);
uint64_t vr_sim_context_handle(const struct vr_sim *sim, const struct vr_sim_context *context);
vr_cu_result vr_sim_context_create(struct vr_sim *sim, uint32_t device, bool primary, uint64_t *context);
// Waits for the context's work and ends everything that lives in it. `context` must be live.
void vr_sim_context_destroy(struct vr_sim *sim, uint64_t context);
// Makes a live context the calling thread's current one and keeps those before it. INVALID_CONTEXT, OUT_OF_MEMORY.
vr_cu_result vr_sim_ctx_push(struct vr_sim *sim, uint64_t context);

// --- stream.c, event.c -----------------------------------------------------------------------------------------------
// Gives back what the stream's object holds, not the object.
void vr_sim_stream_free(struct vr_sim_stream *stream);
vr_cu_result vr_sim_stream_make(struct vr_sim *sim, uint64_t context, enum vr_sim_stream_kind kind, uint32_t *index);
// A stream of the program's, in `context`: what cuStreamCreate makes in the current one.
vr_cu_result vr_sim_stream_create_in(struct vr_sim *sim, uint64_t context, enum vr_sim_stream_kind kind, uint64_t *stream);
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
// Manual completion: an event names, or names no more, the stream in a slot.
void vr_sim_stream_reference(struct vr_sim *sim, uint32_t stream);
void vr_sim_stream_unreference(struct vr_sim *sim, uint32_t stream);
// Ends what lives in the context; events first.
// Makes `event` the record of the work of `stream` so far, which ends at end_ns; what it was a record of before is forgotten.
void vr_sim_event_set(struct vr_sim *sim, struct vr_sim_event *event, const struct vr_sim_stream *stream, uint64_t end_ns);
void vr_sim_event_forget(struct vr_sim *sim, struct vr_sim_event *event);
void vr_sim_end_events(struct vr_sim *sim, uint64_t context);
void vr_sim_end_streams(struct vr_sim *sim, uint64_t context);

// --- memory.c, host.c ------------------------------------------------------------------------------------------------
// Frees every cuMemAlloc allocation (every host allocation and registration) of the context; 0: of every context.
void vr_sim_free_allocations(struct vr_sim *sim, uint64_t context);
void vr_sim_free_hosts(struct vr_sim *sim, uint64_t context);
// Has the device that many bytes left?
bool vr_sim_has_room(const struct vr_sim_device *device, uint64_t size_bytes);
// --- vmm.c: takes down every mapping, reservation and physical allocation, when the simulator ends.
void vr_sim_free_vmm(struct vr_sim *sim);

// --- peers.c ---------------------------------------------------------------------------------------------------------
// May work of `device` use the allocation `range` of a context (any kind but a reservation) where it lies?
bool vr_sim_reaches(const struct vr_sim *sim, uint32_t device, const struct vr_sim_range *range);
// Whether the hardware could: all pairs of different devices, unless the options say otherwise.
bool vr_sim_are_peers(const struct vr_sim *sim, uint32_t device, uint32_t peer);

// --- tickets.c: what one process tells another about memory in its file -----------------------------------------------
// A page of the file says what lies where. Whoever uses the memory (its owner, a descriptor under way, an importer) holds a byte of the
// file; who lets go last gives the memory back. A process that dies lets go.
enum vr_sim_ticket_kind { VR_SIM_TICKET_PHYSICAL = 1, VR_SIM_TICKET_ALLOCATION, VR_SIM_TICKET_EVENT };
struct vr_sim_ticket {
    char magic[8];
    uint64_t nonce; // no other ticket of this machine has it
    uint64_t offset, size_bytes;
    uint64_t within; // where in the first page an allocation starts
    uint32_t kind, device;
    int32_t handle_types;
    uint8_t rdma, compress;
    uint8_t padding[2];
};
// Writes a ticket (magic and nonce are filled in) to a new page at *place and holds it. OUT_OF_MEMORY; NOT_SUPPORTED unless backed.
vr_cu_result vr_sim_ticket_write(struct vr_sim *sim, struct vr_sim_ticket *ticket, uint64_t *place);
// A ticket of a file, checked: a lie about places in it cannot reach beyond it. INVALID_VALUE.
vr_cu_result vr_sim_ticket_read(int file, uint64_t place, enum vr_sim_ticket_kind kind, struct vr_sim_ticket *ticket);
// The owner is done: gives the bytes and the ticket back unless somebody else still holds them.
void vr_sim_ticket_end(struct vr_sim *sim, uint64_t place, uint64_t offset, uint64_t size_bytes);
// Takes part in a ticket of `file`, which is consumed also on failure. One entry per ticket, counted. *index of the entry.
vr_cu_result vr_sim_shared_take(struct vr_sim *sim, int file, uint64_t place, enum vr_sim_ticket_kind kind, uint32_t *index);
void vr_sim_shared_give(struct vr_sim *sim, uint32_t index);
int vr_sim_shared_file(const struct vr_sim *sim, uint32_t index);

// --- ipc.c -----------------------------------------------------------------------------------------------------------
// Closes what the context (0: every one) opened by cuIpcOpenMemHandle.
void vr_sim_close_imports(struct vr_sim *sim, uint64_t context);

// --- pools.c, pool_calls.c -------------------------------------------------------------------------------------------
// A synchronization: pools give back what is above their release threshold.
void vr_sim_pools_synchronized(struct vr_sim *sim);
// Frees what streams of the context took, and all chunks of its device that nothing uses.
void vr_sim_pools_end_context(struct vr_sim *sim, uint64_t context);
// May `device` read (write) that part of a chunk? Where a piece is taken, as the pool's access says.
bool vr_sim_chunk_allows(const struct vr_sim *sim, const struct vr_sim_range *chunk, uint64_t address, uint64_t size_bytes, uint32_t device,
                         bool write);
// cuMemFree of memory of a pool or a graph: false when it is neither.
bool vr_sim_pool_free_now(struct vr_sim *sim, uint64_t address, vr_cu_result *result);
// Bytes that live memory of graphs takes of a device.
uint64_t vr_sim_graph_memory_bytes(const struct vr_sim *sim, uint32_t device);

// --- place.c ---------------------------------------------------------------------------------------------------------
// Where something goes in device address space.
struct vr_sim_place {
    uint64_t address;
    uint64_t span;      // bytes that it occupies
    uint64_t alignment; // that another address would need
    bool fixed;         // the address was queued or hinted: there or nowhere
};
// SUCCESS; INVALID_VALUE when a queued address (which is used up then) overlaps something; OUT_OF_MEMORY when the address space is
// full. The address counts as given out: the next one differs. span is size_bytes for a queued address.
vr_cu_result vr_sim_place_alloc(struct vr_sim *sim, uint64_t size_bytes, struct vr_sim_place *place);
// For a chunk of a pool, which takes no queued address.
vr_cu_result vr_sim_place_chunk(struct vr_sim *sim, uint64_t size_bytes, struct vr_sim_place *place);
// alignment is a power of two; a hint (0: none) that cannot be had is ignored.
vr_cu_result vr_sim_place_reservation(struct vr_sim *sim, uint64_t size_bytes, uint64_t alignment, uint64_t hint,
                                      struct vr_sim_place *place);
vr_cu_result vr_sim_queue_push(struct vr_sim_queue *queue, uint64_t address);

// --- backing.c: bytes behind the addresses. All of it succeeds and does nothing when the simulator is not backed ------
vr_cu_result vr_sim_back_open(struct vr_sim *sim);
void vr_sim_back_close(struct vr_sim *sim);
// Puts memory (or, for a reservation, inaccessible address space) there. Moves place->address when it is not fixed and the host has
// something else at it.
vr_cu_result vr_sim_back_place(struct vr_sim *sim, struct vr_sim_place *place, bool accessible);
void vr_sim_back_remove(struct vr_sim *sim, uint64_t address, uint64_t span);
// Puts bytes of the memory file behind [address, address + span) of vr_sim_back_place(); *offset is where its first page lies there.
vr_cu_result vr_sim_back_fill(struct vr_sim *sim, uint64_t address, uint64_t span, uint64_t *offset);
// Lengthens the memory file by whole pages; *offset is where they start.
vr_cu_result vr_sim_back_extend(struct vr_sim *sim, uint64_t size_bytes, uint64_t *offset);
// Bytes of the pages that hold a range, and where the first starts.
uint64_t vr_sim_page_span(uint64_t address, uint64_t span);
uint64_t vr_sim_first_page(uint64_t address);
// Gives a physical allocation its part of the memory file, and takes the memory of it back.
vr_cu_result vr_sim_back_create(struct vr_sim *sim, struct vr_sim_physical *physical);
void vr_sim_back_discard(struct vr_sim *sim, const struct vr_sim_physical *physical);
vr_cu_result vr_sim_back_map(struct vr_sim *sim, const struct vr_sim_physical *physical, uint64_t address, uint64_t size_bytes);
vr_cu_result vr_sim_back_unmap(struct vr_sim *sim, uint64_t address, uint64_t size_bytes);
vr_cu_result vr_sim_back_protect(struct vr_sim *sim, uint64_t address, uint64_t size_bytes, bool read, bool write);

#endif
