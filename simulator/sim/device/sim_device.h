// sim_device.h: devices, the contexts in which programs use them, which thread has which, and what calls cost.
#ifndef VR_SIM_DEVICE_SIM_DEVICE_H
#define VR_SIM_DEVICE_SIM_DEVICE_H

#include "sim/device/sim_card.h"
#include "sim/sim_calls.h"
#include "sim/memory/sim_regions.h"
#include "sim/sim_ranges.h"
#include "sim/sim_slots.h"

#define VR_SIM_MAX_DEVICES    64 // as many as an access mask has bits
#define VR_SIM_DRIVER_VERSION 12000
#define VR_SIM_LIMITS         7 // values of CUlimit that are kept

struct vr_sim_device {
    const struct vr_sim_card *card; // what it is; never NULL
    uint32_t ordinal;               // its number among all devices of the machine, of which the program may see fewer
    uint64_t context_bytes;         // that each context takes
    struct vr_sim_regions regions;  // where its allocations lie, with addresses as the driver's
    uint64_t memory_bytes;          // capacity
    // What other processes use of it, by its ordinal; NULL: it is this process's alone. Unless `sure`, who is gone may still count.
    uint64_t (*others)(uint32_t ordinal, bool sure);
    uint64_t used_bytes;       // exact cuMemAlloc sizes and physical handles
    uint64_t small_bytes;      // of cuMemAlloc sizes below 1 MiB
    uint64_t small_held_bytes; // 2 MiB pages that the driver holds for small sizes; never given back (cost model only)
    uint64_t tail_ns;          // when the last work of all its streams ends
    uint64_t primary;          // handle of the primary context, 0 while nobody retains it
    uint32_t primary_references;
    uint32_t primary_flags; // for its primary context, set before or after it is made
    uint64_t default_pool;  // handle, 0 until somebody asks
    uint64_t pool;          // handle of the pool that asynchronous requests use; 0: the default pool
};

// What a program sets of a context and reads back; nothing is done with it.
struct vr_sim_context_settings {
    uint32_t flags; // of its creation: how a thread waits, whether host memory is mapped
    int cache_config;
    uint64_t limits[VR_SIM_LIMITS]; // by CUlimit
    uint64_t id;                    // never used again
    uint32_t attached;              // by how many more than its creator
};

// A context: a device and its implicit stream.
struct vr_sim_context {
    struct vr_sim_slot slot;
    uint32_t device;
    uint32_t legacy;            // slot of the legacy default stream
    uint64_t blocking_tail_ns;  // when the last work of all blocking streams ends; the legacy stream starts after it
    uint64_t tail_ns;           // the same of all streams
    uint64_t blocking_callback; // the last host function of all blocking streams
    bool primary;
    bool inactive;   // reset while somebody retains it: it has nothing until it is retained again, under the same handle
    uint64_t *peers; // handles of the contexts whose allocations it may use
    size_t peer_count, peers_capacity;
    struct vr_sim_context_settings settings;
};

// A green context, or the description that one is made of: some multiprocessors of a device (0 in a description: all). All else
// is its primary context's.
struct vr_sim_green {
    struct vr_sim_slot slot;
    bool is_context; // not a description, whose device is open
    uint32_t device, multiprocessors;
    uint32_t workloads; // for which it has queues of its own, and how these are shared, as told
    int32_t scope;
    uint64_t id; // of a context
};

#define VR_SIM_ANSWERS_MOST 4
#define VR_SIM_SHIELDS_MOST 32

// Operations of a thread whose results are computed on the host (streams/sim_callbacks.h).
struct vr_sim_results {
    int level; // of the numbers: enum vr_sim_level
    uint32_t count, next;
    int64_t numbers[VR_SIM_ANSWERS_MOST]; // that the thread's next copies of one number give
    uint32_t shield_count;
    struct {
        uint64_t from, end;
    } shields[VR_SIM_SHIELDS_MOST]; // what lies there its kernels leave as it is
};

// Where a captured kernel will write, and how much; UINT64_MAX: not known.
struct vr_sim_captured {
    uint64_t address, size_bytes;
};

// What one thread has set.
struct vr_sim_thread {
    struct vr_sim_results results;
    uint64_t number;    // of the thread; never used again
    uint64_t *contexts; // stack; the last is current
    size_t context_count, contexts_capacity;
    struct vr_sim_thread_stream { // the thread's default stream in one context
        uint64_t context;
        uint32_t stream; // its slot
    } * streams;
    size_t stream_count, streams_capacity;
    int capture_mode; // VR_CU_STREAM_CAPTURE_MODE_*
};

// --- sim_device.c ---------------------------------------------------------------------------------------------------

bool vr_sim_is_device(const struct vr_sim *sim, int device);
// Does it fit beside what other processes use? The device is shared.
bool vr_sim_fits_beside(const struct vr_sim_device *device, uint64_t size_bytes);
// What is left of the device.
uint64_t vr_sim_free_bytes(const struct vr_sim_device *device);
// Has the device that many bytes left?
VR_INLINE bool vr_sim_has_room(const struct vr_sim_device *device, uint64_t size_bytes) {
    if (device->used_bytes > device->memory_bytes || size_bytes > device->memory_bytes - device->used_bytes) return false;
    return VR_LIKELY(device->others == NULL) || vr_sim_fits_beside(device, size_bytes);
}

// --- sim_context.c --------------------------------------------------------------------------------------------------

// The calling thread's record, made on first use; borrowed until the lock is released. NULL when the host has no memory.
struct vr_sim_thread *vr_sim_this_thread(struct vr_sim *sim);
// The calling thread's current context: SUCCESS, INVALID_CONTEXT when it has none, or CONTEXT_IS_DESTROYED.
vr_cu_result vr_sim_current(struct vr_sim *sim, struct vr_sim_context **context);
uint64_t vr_sim_context_handle(const struct vr_sim *sim, const struct vr_sim_context *context);
// Makes a live context the calling thread's current one and keeps those before it. INVALID_CONTEXT, OUT_OF_MEMORY.
vr_cu_result vr_sim_ctx_push(struct vr_sim *sim, uint64_t context);
// Takes it away again; there is one.
void vr_sim_ctx_drop(struct vr_sim *sim);
// The handle of the calling thread's current context (0: none), without the lock. False: it is to be asked for under the lock.
bool vr_sim_ctx_cached(const struct vr_sim *sim, uint64_t *context);

// --- sim_context.c -------------------------------------------------------------------------------------------

// The settings of a context that is new.
struct vr_sim_context_settings vr_sim_context_defaults(struct vr_sim *sim, uint32_t flags);
// INVALID_VALUE for flags that cuCtxCreate does not know.
vr_cu_result vr_sim_context_flags_check(uint32_t flags);

// --- sim_context_life.c ---------------------------------------------------------------------------------------------

vr_cu_result vr_sim_context_create(struct vr_sim *sim, uint32_t device, bool primary, uint64_t *context);
// Waits for the context's work and ends everything that lives in it. `context` must be live.
void vr_sim_context_destroy(struct vr_sim *sim, uint64_t context);
// Ends all that lives in the primary context. Who retained it must still release it; who retains it again, revives it.
void vr_sim_primary_reset(struct vr_sim *sim, uint32_t device);

// --- sim_peers.c ----------------------------------------------------------------------------------------------------

// May work of `device` use the allocation `range` of a context (any kind but a reservation) where it lies?
bool vr_sim_reaches(const struct vr_sim *sim, uint32_t device, const struct vr_sim_range *range);
// Whether the hardware could: pairs of like devices whose kind can, unless the options say otherwise.
bool vr_sim_are_peers(const struct vr_sim *sim, uint32_t device, uint32_t peer);

// --- sim_device.c -----------------------------------------------------------------------------------------------------

// What `call` costs whatever its arguments.
uint64_t vr_sim_base_cost_ns(const struct vr_sim *sim, enum vr_sim_call call);
void vr_sim_charge_bytes(struct vr_sim *sim, uint64_t bytes, uint64_t ns_per_mib);
// charge_alloc and charge_free also keep count of the small allocations that share 2 MiB pages: one call each per allocation.
void vr_sim_charge_alloc(struct vr_sim *sim, struct vr_sim_device *device, uint64_t size_bytes);
void vr_sim_charge_free(struct vr_sim *sim, struct vr_sim_device *device, uint64_t size_bytes);
void vr_sim_charge_unmap(struct vr_sim *sim, uint64_t mappings);
void vr_sim_charge_create(struct vr_sim *sim, uint64_t size_bytes);
void vr_sim_charge_set_access(struct vr_sim *sim, uint64_t size_bytes, uint64_t count);
void vr_sim_charge_chunk(struct vr_sim *sim, uint64_t size_bytes);
void vr_sim_charge_record(struct vr_sim *sim, unsigned event_flags);

#endif
