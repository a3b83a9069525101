// sim_pools.h: memory pools of the simulated driver (cuMemAllocAsync and its family).
//
// A pool gets chunks of device memory and cuts them into pieces. A freed piece remembers the point of its stream at which it was freed:
// work of that stream may have it again at once, other streams as the pool's reuse attributes say. Memory that a captured stream asks for
// is of another kind: an address that the graph has for good, with memory behind it while a launch needs it (sim_graph.c).
#ifndef VR_SIM_MEMORY_SIM_POOLS_H
#define VR_SIM_MEMORY_SIM_POOLS_H

#include "sim/streams/sim_streams.h"

#define VR_SIM_CHUNK_BYTES (32 * VR_MIB) // chunks are multiples of this, of 2 MiB where memory is short
#define VR_SIM_PIECE_BYTES 512           // pieces are multiples of this

// After what work of which stream something happened. serial 0: no such point, everything may come next.
struct vr_sim_point {
    uint64_t serial; // of the stream
    uint64_t work;
    uint64_t end_ns;
    uint32_t stream; // its slot, while it lives
};

// A part of a chunk. Those of a chunk cover it without gaps; two free ones with nothing to wait for never touch.
struct vr_sim_piece {
    struct vr_sim_slot slot;
    uint32_t pool;           // its slot
    uint32_t previous, next; // neighbours in the chunk, slot + 1; 0: none
    uint32_t before, after;  // in the pool's list of free pieces, slot + 1
    bool taken;
    uint64_t address, size_bytes;
    uint64_t context;          // taken: who asked for it
    struct vr_sim_point point; // free: when
    uint64_t ticket;           // taken: where its ticket lies in the file; 0: never exported
};

// Invariant: reserved_bytes is the sum of its chunks, used_bytes that of its taken pieces, imports the pieces of another process's pool
// that are open here.
struct vr_sim_pool {
    struct vr_sim_slot slot;
    uint32_t device;
    bool standard;         // the default pool of its device
    bool follow_events;    // REUSE_FOLLOW_EVENT_DEPENDENCIES
    bool opportunistic;    // REUSE_ALLOW_OPPORTUNISTIC
    bool add_dependencies; // REUSE_ALLOW_INTERNAL_DEPENDENCIES
    uint64_t most_bytes;   // of chunks; 0: no bound
    uint64_t keep_bytes;   // RELEASE_THRESHOLD
    uint64_t reserved_bytes, reserved_high_bytes;
    uint64_t used_bytes, used_high_bytes;
    uint64_t read_mask, write_mask; // bit d: device d
    uint32_t first_free;            // slot + 1
    int32_t handle_types;           // that it was asked for with
    uint64_t ticket;                // where its ticket lies in the file; 0: never exported
    uint32_t shared;                // imported: number of its struct vr_sim_shared, plus one; 0: made here, or its handle is gone
    bool imported;                  // it has no memory of its own, and gives none
    uint64_t imports;
};

// --- sim_pools.c ----------------------------------------------------------------------------------------------------

// A new pool of the device, with the attributes that new ones have. OUT_OF_MEMORY.
vr_cu_result vr_sim_pool_make(struct vr_sim *sim, uint32_t device, uint32_t *index);
struct vr_sim_pool *vr_sim_pool_at(const struct vr_sim *sim, uint64_t index);
// Memory for work that `stream` does next. OUT_OF_MEMORY.
vr_cu_result vr_sim_pool_take(struct vr_sim *sim, uint32_t pool, struct vr_sim_stream *stream, uint64_t size_bytes, uint64_t *address);
// The taken piece that starts at (holds) an address, or NULL.
struct vr_sim_piece *vr_sim_piece_at(const struct vr_sim *sim, uint64_t address);
struct vr_sim_piece *vr_sim_piece_holding(const struct vr_sim *sim, uint64_t address);
// Where the bytes of a piece of an exportable pool lie in the memory file.
uint64_t vr_sim_piece_place(const struct vr_sim *sim, const struct vr_sim_piece *piece);
void vr_sim_piece_free(struct vr_sim *sim, struct vr_sim_piece *piece, const struct vr_sim_point *point);
// Gives chunks back that nothing uses, until no more than keep_bytes are left.
void vr_sim_pool_trim(struct vr_sim *sim, uint32_t pool, uint64_t keep_bytes);
// A pool that is destroyed and has nothing left goes.
void vr_sim_pool_end_unused(struct vr_sim *sim, uint32_t pool);
// A synchronization: pools give back what is above their release threshold.
void vr_sim_pools_synchronized(struct vr_sim *sim);
// Frees what streams of the context took, and all chunks of its device that nothing uses.
void vr_sim_pools_end_context(struct vr_sim *sim, uint64_t context);
// May `device` read (write) memory of the pool?
bool vr_sim_pool_allows(const struct vr_sim *sim, uint32_t pool, uint32_t device, bool write);
// May `device` read (write) that part of a chunk? Where a piece is taken, as the pool's access says.
bool vr_sim_chunk_allows(const struct vr_sim *sim, const struct vr_sim_range *chunk, uint64_t address, uint64_t size_bytes, uint32_t device,
                         bool write);
// cuMemFree of memory of a pool or a graph: false when it is neither.
bool vr_sim_pool_free_now(struct vr_sim *sim, uint64_t address, vr_cu_result *result);

// --- sim_pool_calls.c -----------------------------------------------------------------------------------------------

// Closes all that pools of the device (UINT32_MAX: of every device) have of other processes.
void vr_sim_pool_imports_end(struct vr_sim *sim, uint32_t device);

#endif
