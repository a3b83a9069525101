// sim.h: internals of the simulated driver. One struct, one lock; every vr_sim_* function below is called with the lock held.
//
// Folders by model: device/ (devices, contexts, peers, costs of calls), memory/ (addresses, allocations, pages, pools, host memory, memory
// of other processes), streams/ (queues of work, events, time), graphs/ (captures, graphs and their launches). They hold one function per
// row of calls.def; sim_calls.c takes the lock, counts the call and charges its cost. The driver API's documentation says what a row does,
// device/sim_device.c what it costs.
#ifndef VR_SIM_SIM_H
#define VR_SIM_SIM_H

#include <stdatomic.h>

#include "check/check.h"
#include "sim/device/sim_device.h"
#include "sim/memory/sim_content.h"
#include "sim/memory/sim_memory.h"
#include "sim/modules/sim_image.h"
#include "sim/modules/sim_tensor_lists.h"
#include "sim/device/sim_card.h"
#include "os/os.h"
#include "vram/driver.h"
#include "vram/sim.h"

// Tables of objects with handles: X(table, type of object). A table's position is the tag of its handles: append new ones.
#define VR_SIM_TABLES(X)                                                                                                                   \
    X(contexts, struct vr_sim_context)                                                                                                     \
    X(streams, struct vr_sim_stream)                                                                                                       \
    X(events, struct vr_sim_event)                                                                                                         \
    X(physicals, struct vr_sim_physical)                                                                                                   \
    X(graphs, struct vr_sim_graph)                                                                                                         \
    X(nodes, struct vr_sim_node)                                                                                                           \
    X(execs, struct vr_sim_exec)                                                                                                           \
    X(captures, struct vr_sim_capture)                                                                                                     \
    X(pools, struct vr_sim_pool)                                                                                                           \
    X(pieces, struct vr_sim_piece)                                                                                                         \
    X(graph_memories, struct vr_sim_graph_memory)                                                                                          \
    X(modules, struct vr_sim_module)                                                                                                       \
    X(libraries, struct vr_sim_library)                                                                                                    \
    X(functions, struct vr_sim_function)                                                                                                   \
    X(links, struct vr_sim_link)                                                                                                           \
    X(arrays, struct vr_sim_array)                                                                                                         \
    X(views, struct vr_sim_view)                                                                                                           \
    X(managed, struct vr_sim_managed)                                                                                                      \
    X(user_objects, struct vr_sim_user_object)                                                                                             \
    X(conditions, struct vr_sim_condition)                                                                                                 \
    X(greens, struct vr_sim_green)

// Host functions in progress (streams/sim_callbacks.h). The pending ones are `items` from `first` on.
struct vr_sim_callbacks {
    struct vr_thread thread;
    struct vr_signal changed;
    bool running, ending;
    uint64_t thread_id;
    struct vr_sim_callback *items;
    size_t first, count, items_capacity;
    uint64_t posted, done; // numbers of the last entry and of the last completed one
};

// The host's access to a page: none, reads, or reads and writes.
enum vr_sim_page_access { VR_SIM_PAGE_CLOSED, VR_SIM_PAGE_READABLE, VR_SIM_PAGE_OPEN };

#define VR_SIM_STACK_HIDDEN UINT32_MAX // a library made the call for its own purposes: the checker does not get it

// The checker that gets what the program does (sim_checking.h).
struct vr_sim_checking {
    struct vr_check *check;
    bool unwritten; // it finds reads of uninitialized memory
    bool moving;    // an allocator moves its memory now
    // Returns the calling thread's stack, or VR_SIM_STACK_HIDDEN if the call is not the program's. Called without the lock.
    uint32_t (*take_stack)(void);
    // Gets the name of work whose memory is not known. May be called often with the same name, with the lock held.
    void (*unseen)(const char *work);
    // Protects pages of pinned memory (streams/sim_guards.h); NULL: they are not guarded.
    void (*protect)(uint64_t address, uint64_t size_bytes, enum vr_sim_page_access access);
};

// Pinned memory that a copy uses.
struct vr_sim_guard {
    uint64_t from, end;
    uint64_t position; // of the copy, as vr_check_position() returns it
    bool written;      // by the copy
};

// CUprocessState.
enum vr_sim_process_state { VR_SIM_PROCESS_RUNNING, VR_SIM_PROCESS_LOCKED, VR_SIM_PROCESS_CHECKPOINTED };

// Whether the process's calls are locked, and its memory is given back (device/sim_checkpoint.c).
struct vr_sim_process {
    enum vr_sim_process_state state;
    struct vr_signal changed;                // raised when the process runs again
    uint64_t away_bytes[VR_SIM_MAX_DEVICES]; // while checkpointed: memory that objects of the device have, beyond used_bytes
};

struct vr_sim {
    struct vram_driver head; // first, so that a struct vram_driver * can be cast to this
    struct vr_mutex lock;
    struct vram_sim_options options; // with the defaults filled in
    uint64_t serial;                 // of the instance within the process; never 0, never reused
    uint64_t clock_ns;
    uint64_t charge_ns; // cost of the running call so far
    // Progress of the driver (driver.h): incremented by everything that may complete work or move the clock. 0 once work waits for a value
    // in memory, which any write may change.
    _Atomic uint64_t progress;
    uint64_t counts[VR_SIM_CALL_COUNT], costs_ns[VR_SIM_CALL_COUNT];

    struct vr_sim_process process;
    struct vr_sim_device devices[VR_SIM_MAX_DEVICES]; // the devices that the program sees: options.device_count of them
    uint32_t machine_devices;                         // devices of the machine
    _Atomic uint64_t *published; // one entry per device of the machine, where other processes read its used bytes; NULL: not published
#define X(table, type) struct vr_sim_slots table;
    VR_SIM_TABLES(X)
#undef X
    uint64_t last_mark;            // of a walk over nodes
    uint64_t last_capture_id;      // last id given to a program
    struct vr_sim_ranges spaces;   // allocations (owner: context) and reservations
    struct vr_sim_ranges mappings; // owner: handle of the physical allocation
    struct vr_sim_ranges hosts;    // owner: context
    uint64_t pinned_bytes;         // those of cuMemHostAlloc and cuMemHostRegister
    struct vr_sim_ranges regions;  // of all devices if addresses follow NVIDIA's driver (sim_regions.h)
    struct vr_sim_ranges pooled;   // allocated pieces of pools; owner: slot of the piece
    uint64_t last_stream_serial;
    struct vr_sim_callbacks callbacks;
    uint64_t last_context_id;
    uint64_t user_pools;                      // live handles of cuMemPoolCreate
    uint64_t user_streams;                    // live handles of cuStreamCreate
    uint64_t named_physicals;                 // live handles of cuMemCreate
    struct vr_sim_extent allocated, reserved; // all device addresses ever given out by the rules, of each kind
    uint64_t alloc_cursor, reserve_cursor;
    struct vr_sim_queue alloc_queue, reserve_queue;

    struct vr_sim_thread *threads; // unsorted
    size_t thread_count, threads_capacity;
    int file;                         // the memory file; -1 if the simulator keeps no contents
    uint64_t file_bytes;              // backed: its length; offsets are never reused
    struct vr_sim_content content;    // not backed: the contents of device memory, if kept (vr_sim_keeps())
    uint64_t *written;                // bitmap of where copies and fills wrote (sim_transfer.c); NULL: nowhere, or unknown
    struct vr_sim_captured *captured; // outputs of captured kernels, in order of capture (streams/sim_callbacks.h)
    size_t captured_count, captured_capacity;
    bool captured_asked;                    // collect `captured`
    uint64_t counted;                       // vr_sim_read.counted of the next reads
    struct vr_sim_read read;                // device memory that the running call copied to the host
    struct vr_sim_reader reader;            // of the running call
    const struct vr_sim_watch *watch;       // NULL: reads are not reported. Set before a second thread can use the simulator
    const struct vr_sim_checking *checking; // NULL: off. Set before a second thread can use the simulator
    struct vr_sim_accesses accesses;        // of the last launch, for `checking`
    struct vr_sim_guard *guards;
    size_t guard_count, guards_capacity;
    uint32_t stack;                // of the running call, if `checking` is set and the call uses memory
    vr_sim_unpacking *unpack_zstd; // decompresses code; NULL: Zstandard is not supported
    struct vr_sim_shared *shared;
    size_t shared_count, shared_capacity;
    struct vr_sim_binding *bindings; // bindings of memory to multicast objects
    size_t binding_count, bindings_capacity;
    struct vr_sim_file *files;
    size_t file_count, files_capacity;
};

// Returns whether reads return the written bytes although no host memory is mapped at device addresses.
VR_INLINE bool vr_sim_keeps(const struct vr_sim *sim) { return sim->file >= 0 && !sim->options.backed; }

// Returns NULL if the context does not exist. Borrowed until the next one is created.
VR_INLINE struct vr_sim_context *vr_sim_context_find(const struct vr_sim *sim, uint64_t context) {
    return vr_sim_slots_find(&sim->contexts, context);
}

// Returns whether the device can join a multicast object. It can if its card has switches with NVLink SHARP and the machine has another
// device.
VR_INLINE bool vr_sim_has_multicast(const struct vr_sim *sim, uint32_t device) {
    const struct vr_sim_card *card = sim->devices[device].card;
    return card->major >= 9 && vr_sim_board_of(card)->links > 0 && sim->machine_devices > 1 && !sim->options.no_peers;
}

// --- sim_check.c ----------------------------------------------------------------------------------------------------

// Returns whether the counts of the instance match its tables. Per device, used_bytes = live allocations + physical allocations + contexts
// and small_bytes = allocations below 1 MiB. Per physical allocation, the number of mappings. Per stream, references (manual completion)
// and edges in rising order. Also handles (vr_sim_slots_check() of each table), user streams, and graphs and captures as in sim_graphs.h.
// Builds with VRAM_CHECK=3 assert it in the calls.
bool vr_sim_check(const struct vr_sim *sim);

// --- sim.c ----------------------------------------------------------------------------------------------------------

// Publishes the used bytes of each device in sim->published. Called after every call.
VR_INLINE void vr_sim_publish(struct vr_sim *sim) {
    if (VR_LIKELY(sim->published == NULL)) return;
    for (uint32_t i = 0; i < sim->options.device_count; i++)
        atomic_store_explicit(&sim->published[sim->devices[i].ordinal], sim->devices[i].used_bytes, memory_order_relaxed);
}
// Notes that something has completed or may complete soon. Called with the lock held.
VR_INLINE void vr_sim_moved(struct vr_sim *sim) {
    const uint64_t progress = atomic_load_explicit(&sim->progress, memory_order_relaxed);
    if (progress != 0) atomic_store_explicit(&sim->progress, progress + 1, memory_order_release);
}
// Releases the lock, waits for a signal and locks again. The running call's fields are saved meanwhile.
VR_INLINE void vr_sim_wait(struct vr_sim *sim, struct vr_signal *signal, uint64_t most_ns) {
    const uint64_t charge_ns = sim->charge_ns;
    const struct vr_sim_read read = sim->read;
    const struct vr_sim_reader reader = sim->reader;
    const uint32_t stack = sim->stack;
    sim->read = (struct vr_sim_read){0};
    vr_signal_wait(signal, &sim->lock, most_ns);
    sim->charge_ns = charge_ns;
    sim->read = read;
    sim->reader = reader;
    sim->stack = stack;
}
// Waits, with the lock released, until the process's calls are not locked. Called with the lock held, at the beginning of a call.
void vr_sim_wait_until_running(struct vr_sim *sim);
// Counts the memory of a checkpoint as used again.
void vr_sim_process_take_back(struct vr_sim *sim);
// Returns `driver` as a simulator, or NULL if it is of another kind.
struct vr_sim *vr_sim_of(struct vram_driver *driver);

#endif
