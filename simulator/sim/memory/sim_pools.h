// sim_pools.h: memory pools of the simulated driver (cuMemAllocAsync and its family).
//
// A pool allocates chunks of device memory and splits them into pieces. A freed piece remembers the point in its stream at which it was
// freed: later work of that stream can reuse it at once, other streams as the pool's reuse attributes allow. An allocation in a captured
// stream is of another kind: the graph owns an address for good, and memory backs it only while a launch needs it (sim_graph.c).
#ifndef VR_SIM_MEMORY_SIM_POOLS_H
#define VR_SIM_MEMORY_SIM_POOLS_H

#include "sim/streams/sim_streams.h"

#define VR_SIM_CHUNK_BYTES (32 * VR_MIB) // unit of chunks; 2 MiB when memory is short
#define VR_SIM_PIECE_BYTES 512           // unit of pieces

// A point in a stream's work. serial 0: no point, so nothing to wait for.
struct vr_sim_point {
    uint64_t serial; // of the stream
    uint64_t work;
    uint64_t end_ns;
    uint32_t stream; // its slot, while the stream lives
};

// Part of a chunk. Pieces cover their chunk without gaps. Two free ones that wait for nothing are never adjacent.
struct vr_sim_piece {
    struct vr_sim_slot slot;
    uint32_t pool;           // its slot
    uint32_t previous, next; // neighbours in the chunk: slot + 1; 0: none
    uint32_t before, after;  // in the pool's list of free pieces: slot + 1
    bool taken;
    uint64_t address, size_bytes;
    uint64_t context;          // taken: the context that allocated it
    struct vr_sim_point point; // free: when it was freed
    uint64_t ticket;           // taken: offset of its ticket in the file; 0: never exported
};

// Invariant: reserved_bytes is the sum of the pool's chunks, used_bytes that of its taken pieces, and imports the number of open pieces of
// another process's pool.
struct vr_sim_pool {
    struct vr_sim_slot slot;
    uint32_t device;
    bool standard;         // the default pool of its device
    bool follow_events;    // REUSE_FOLLOW_EVENT_DEPENDENCIES
    bool opportunistic;    // REUSE_ALLOW_OPPORTUNISTIC
    bool add_dependencies; // REUSE_ALLOW_INTERNAL_DEPENDENCIES
    uint64_t most_bytes;   // limit on its chunks; 0: unlimited
    uint64_t keep_bytes;   // RELEASE_THRESHOLD
    uint64_t reserved_bytes, reserved_high_bytes;
    uint64_t used_bytes, used_high_bytes;
    uint64_t read_mask, write_mask; // bit d: device d
    uint32_t first_free;            // slot + 1
    int32_t handle_types;           // requested at creation
    uint64_t ticket;                // offset of its ticket in the file; 0: never exported
    uint32_t shared;                // imported: index of its struct vr_sim_shared, plus one; 0: created here, or its handle was destroyed
    bool imported;                  // has no memory of its own and allocates none
    uint64_t imports;
};

// --- sim_pools.c ----------------------------------------------------------------------------------------------------

// Creates a pool on the device with default attributes. OUT_OF_MEMORY.
vr_cu_result vr_sim_pool_make(struct vr_sim *sim, uint32_t device, uint32_t *index);
struct vr_sim_pool *vr_sim_pool_at(const struct vr_sim *sim, uint64_t index);
// Allocates memory for the next work of `stream`. OUT_OF_MEMORY.
vr_cu_result vr_sim_pool_take(struct vr_sim *sim, uint32_t pool, struct vr_sim_stream *stream, uint64_t size_bytes, uint64_t *address);
// Return the taken piece that starts at an address (at) or contains it (holding), or NULL.
struct vr_sim_piece *vr_sim_piece_at(const struct vr_sim *sim, uint64_t address);
struct vr_sim_piece *vr_sim_piece_holding(const struct vr_sim *sim, uint64_t address);
// Returns the place of a piece of an exportable pool in the memory file.
uint64_t vr_sim_piece_place(const struct vr_sim *sim, const struct vr_sim_piece *piece);
void vr_sim_piece_free(struct vr_sim *sim, struct vr_sim_piece *piece, const struct vr_sim_point *point);
// Frees unused chunks, as long as at least keep_bytes remain.
void vr_sim_pool_trim(struct vr_sim *sim, uint32_t pool, uint64_t keep_bytes);
// Removes a destroyed pool once it is empty.
void vr_sim_pool_end_unused(struct vr_sim *sim, uint32_t pool);
// Called after a synchronization: trims each pool to its release threshold.
void vr_sim_pools_synchronized(struct vr_sim *sim);
// Frees the allocations of the context's streams, and all unused chunks of its device.
void vr_sim_pools_end_context(struct vr_sim *sim, uint64_t context);
// Returns whether `device` may read (or write) memory of the pool.
bool vr_sim_pool_allows(const struct vr_sim *sim, uint32_t pool, uint32_t device, bool write);
// Returns whether `device` may read (or write) this part of a chunk. Only taken pieces count; the pool's access decides.
bool vr_sim_chunk_allows(const struct vr_sim *sim, const struct vr_sim_range *chunk, uint64_t address, uint64_t size_bytes, uint32_t device,
                         bool write);
// Implements cuMemFree for memory of a pool or a graph. Returns false if the address is neither.
bool vr_sim_pool_free_now(struct vr_sim *sim, uint64_t address, vr_cu_result *result);

// --- sim_pool_calls.c -----------------------------------------------------------------------------------------------

// Closes everything that pools of the device (UINT32_MAX: of all devices) imported from other processes.
void vr_sim_pool_imports_end(struct vr_sim *sim, uint32_t device);

#endif
