// sim.h: the inside of the simulated driver. One struct, one lock; every vr_sim_* function below is called with it held.
//
// It is cut by what it models: device/ (devices, contexts, peers, what calls cost), memory/ (addresses, allocations, pages, pools, the
// host's memory, what other processes have), streams/ (queues of work, events, time), graphs/ (captures, graphs, their launches). These
// hold one function per row of calls.def; sim_calls.c takes the lock, counts the call and charges its cost. What a row does is the driver
// API's documentation; what it costs is device/sim_device.c.
#ifndef VR_SIM_SIM_H
#define VR_SIM_SIM_H

#include <stdatomic.h>

#include "sim/device/sim_device.h"
#include "sim/memory/sim_content.h"
#include "sim/memory/sim_memory.h"
#include "sim/modules/sim_image.h"
#include "sim/device/sim_card.h"
#include "os/os.h"
#include "vram/driver.h"
#include "vram/sim.h"

// The tables of objects with handles: X(table, what it holds). Their order makes the tags of handles: new ones come last.
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

// Host functions under way (streams/sim_callbacks.h). `items` from `first` on wait to be done.
struct vr_sim_callbacks {
    struct vr_thread thread;
    struct vr_signal changed;
    bool running, ending;
    uint64_t thread_id;
    struct vr_sim_callback *items;
    size_t first, count, items_capacity;
    uint64_t posted, done; // numbers of the last entry and of the last that is done
};

struct vr_sim {
    struct vram_driver head; // first: a struct vram_driver * is this
    struct vr_mutex lock;
    struct vram_sim_options options; // with the defaults filled in
    uint64_t serial;                 // of the instance in the process, never 0 and never used again
    uint64_t clock_ns;
    uint64_t charge_ns; // cost of the running call so far
    // The driver's progress (driver.h): counts whatever may complete work or move the clock. 0: work waits for a value in memory, which
    // anybody may write.
    _Atomic uint64_t progress;
    uint64_t counts[VR_SIM_CALL_COUNT], costs_ns[VR_SIM_CALL_COUNT];

    struct vr_sim_device devices[VR_SIM_MAX_DEVICES]; // options.device_count of them: those that the program sees
    uint32_t machine_devices;                         // that there are
    _Atomic uint64_t *published; // a place per device of the machine where others read how much is used; NULL: nobody does
#define X(table, type) struct vr_sim_slots table;
    VR_SIM_TABLES(X)
#undef X
    uint64_t last_mark;            // of a walk over nodes
    uint64_t last_capture_id;      // that a program saw
    struct vr_sim_ranges spaces;   // allocations (owner: context) and reservations
    struct vr_sim_ranges mappings; // owner: handle of the physical allocation
    struct vr_sim_ranges hosts;    // owner: context
    uint64_t pinned_bytes;         // of these, what cuMemHostAlloc and cuMemHostRegister made
    struct vr_sim_ranges regions;  // of all devices, with addresses as the driver's (sim_regions.h)
    struct vr_sim_ranges pooled;   // taken pieces of pools; owner: slot of the piece
    uint64_t last_stream_serial;
    struct vr_sim_callbacks callbacks;
    uint64_t last_context_id;
    uint64_t user_pools;                      // live handles of cuMemPoolCreate
    uint64_t user_streams;                    // live handles of cuStreamCreate
    uint64_t named_physicals;                 // live handles of cuMemCreate
    struct vr_sim_extent allocated, reserved; // what device addresses were ever given out by the rules, of each kind
    uint64_t alloc_cursor, reserve_cursor;
    struct vr_sim_queue alloc_queue, reserve_queue;

    struct vr_sim_thread *threads; // sorted by nothing; found through thread_slots
    size_t thread_count, threads_capacity;
    int file;                         // the memory file, -1 where nothing is kept
    uint64_t file_bytes;              // backed: its length; offsets are never used again
    struct vr_sim_content content;    // not backed: what device memory holds, where it is kept (vr_sim_keeps())
    uint64_t *written;                // where copies and fills wrote (sim_transfer.c); NULL: nowhere, or not known
    struct vr_sim_captured *captured; // what captured kernels will write, in the order of their capture (streams/sim_callbacks.h)
    size_t captured_count, captured_capacity;
    bool captured_asked;              // somebody takes these
    uint64_t counted;                 // vr_sim_read.counted of reads to come
    struct vr_sim_read read;          // by the running call, from device memory into the host's
    struct vr_sim_reader reader;      // the running call's
    const struct vr_sim_watch *watch; // NULL: nobody asks. Set before the simulator is known to a second thread
    vr_sim_unpacking *unpack_zstd;    // of compressed code; NULL: it is not read
    struct vr_sim_shared *shared;
    size_t shared_count, shared_capacity;
    struct vr_sim_binding *bindings; // of memory to multicast objects
    size_t binding_count, bindings_capacity;
    struct vr_sim_file *files;
    size_t file_count, files_capacity;
};

// Do reads give what was written, though no bytes stand at the addresses?
VR_INLINE bool vr_sim_keeps(const struct vr_sim *sim) { return sim->file >= 0 && !sim->options.backed; }

// NULL: there is no such context. Borrowed until the next one is made.
VR_INLINE struct vr_sim_context *vr_sim_context_find(const struct vr_sim *sim, uint64_t context) {
    return vr_sim_slots_find(&sim->contexts, context);
}

// Can the device be one of a multicast object's? Cards with switches that multiply (NVLink SHARP) can, where there is another.
VR_INLINE bool vr_sim_has_multicast(const struct vr_sim *sim, uint32_t device) {
    const struct vr_sim_card *card = sim->devices[device].card;
    return card->major >= 9 && vr_sim_board_of(card)->links > 0 && sim->machine_devices > 1 && !sim->options.no_peers;
}

// --- sim_check.c ----------------------------------------------------------------------------------------------------

// Are the counts of the instance what its tables hold? per device used_bytes = live allocations + physical allocations + contexts,
// small_bytes = allocations below 1 MiB; per physical allocation its mappings; per stream its references (manual completion) and
// edges in rising order; handles (vr_sim_slots_check() of each table) and user streams; graphs and captures as sim_graphs.h says. Asserted
// by the calls themselves in builds with VRAM_CHECK=3.
bool vr_sim_check(const struct vr_sim *sim);

// --- sim.c ----------------------------------------------------------------------------------------------------------

// Tells who reads sim->published what is used now. After every call.
VR_INLINE void vr_sim_publish(struct vr_sim *sim) {
    if (VR_LIKELY(sim->published == NULL)) return;
    for (uint32_t i = 0; i < sim->options.device_count; i++)
        atomic_store_explicit(&sim->published[sim->devices[i].ordinal], sim->devices[i].used_bytes, memory_order_relaxed);
}
// Something may have completed, or is about to. Under the lock.
VR_INLINE void vr_sim_moved(struct vr_sim *sim) {
    const uint64_t progress = atomic_load_explicit(&sim->progress, memory_order_relaxed);
    if (progress != 0) atomic_store_explicit(&sim->progress, progress + 1, memory_order_release);
}
// Waits for a signal with the lock given up. The running call's own fields are its own again afterwards.
VR_INLINE void vr_sim_wait(struct vr_sim *sim, struct vr_signal *signal, uint64_t most_ns) {
    const uint64_t charge_ns = sim->charge_ns;
    const struct vr_sim_read read = sim->read;
    const struct vr_sim_reader reader = sim->reader;
    sim->read = (struct vr_sim_read){0};
    vr_signal_wait(signal, &sim->lock, most_ns);
    sim->charge_ns = charge_ns;
    sim->read = read;
    sim->reader = reader;
}
// `driver` as a simulator, or NULL when it is of another kind.
struct vr_sim *vr_sim_of(struct vram_driver *driver);

#endif
