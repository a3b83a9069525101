// sim_device.h: devices, their contexts, each thread's current context, and the cost of calls.
#ifndef VR_SIM_DEVICE_SIM_DEVICE_H
#define VR_SIM_DEVICE_SIM_DEVICE_H

#include "sim/device/sim_card.h"
#include "sim/sim_calls.h"
#include "sim/memory/sim_regions.h"
#include "sim/sim_ranges.h"
#include "sim/sim_slots.h"

#define VR_SIM_MAX_DEVICES    64 // the number of bits in an access mask
#define VR_SIM_DRIVER_VERSION 12000
#define VR_SIM_LIMITS         7 // values of CUlimit that a context keeps
#define VR_SIM_LIMIT_STACK    0
#define VR_SIM_STACK_BYTES    1024 // of a thread in a new context

struct vr_sim_device {
    const struct vr_sim_card *card; // never NULL
    uint32_t ordinal;               // number among all devices of the machine, including those the program does not see
    uint64_t context_bytes;         // memory that each context takes
    struct vr_sim_regions regions;  // places of its allocations if addresses follow NVIDIA's driver
    uint64_t memory_bytes;          // capacity
    // Memory that other processes use on the device with this ordinal; NULL if only this process uses it. Ended processes may still count
    // unless `sure` is set.
    uint64_t (*others)(uint32_t ordinal, bool sure);
    uint64_t used_bytes;       // exact sizes of cuMemAlloc and of physical allocations
    uint64_t small_bytes;      // sum of cuMemAlloc sizes below 1 MiB
    uint64_t small_held_bytes; // 2 MiB pages held for small sizes, never given back (cost model only)
    uint64_t tail_ns;          // end of the last work of all its streams
    uint64_t primary;          // handle of the primary context, 0 while it is not retained
    uint32_t primary_references;
    uint32_t primary_flags; // of the primary context; may be set before it exists
    uint64_t default_pool;  // handle, 0 until first used
    uint64_t pool;          // handle of the pool for asynchronous allocations; 0: the default pool
};

// Settings of a context that the simulator stores and returns but does not act on.
struct vr_sim_context_settings {
    uint32_t flags; // from its creation: how a thread waits, whether host memory is mapped
    int cache_config;
    uint64_t limits[VR_SIM_LIMITS]; // by CUlimit
    uint64_t id;                    // never reused
    uint32_t attached;              // attachments in addition to its creator's
};

// A context: a device and its implicit stream.
struct vr_sim_context {
    struct vr_sim_slot slot;
    uint32_t device;
    uint32_t legacy;            // slot of its legacy default stream
    uint64_t blocking_tail_ns;  // end of the last work of all blocking streams; the legacy stream starts after it
    uint64_t tail_ns;           // end of the last work of all its streams
    uint64_t blocking_callback; // number of the last host function of all blocking streams
    bool primary;
    bool inactive;   // reset while still retained: empty until it is retained again under the same handle
    uint64_t *peers; // handles of the contexts whose allocations it may access
    size_t peer_count, peers_capacity;
    struct vr_sim_context_settings settings;
    uint64_t stacks_bytes; // for larger stacks than those of a new context, which are part of its own memory
};

// A green context, or the resource description it is made from: part of a device's multiprocessors (0 in a description: all). Everything
// else belongs to the primary context.
struct vr_sim_green {
    struct vr_sim_slot slot;
    bool is_context; // false: a description, whose device is not set
    uint32_t device, multiprocessors;
    uint32_t workloads; // number of concurrent workloads and their sharing scope, stored as given
    int32_t scope;
    uint64_t id; // of a context; 0 in a description
};

#define VR_SIM_ANSWERS_MOST 4
#define VR_SIM_SHIELDS_MOST 32

// State of a thread whose kernel results are computed on the host (streams/sim_callbacks.h).
struct vr_sim_results {
    int level; // numeric level: enum vr_sim_level
    uint32_t count, next;
    int64_t numbers[VR_SIM_ANSWERS_MOST]; // results of the thread's next copies of one number
    uint32_t shield_count;
    struct {
        uint64_t from, end;
    } shields[VR_SIM_SHIELDS_MOST]; // address ranges that the thread's kernels leave unchanged
};

// The address range that a captured kernel will write; size UINT64_MAX: unknown.
struct vr_sim_captured {
    uint64_t address, size_bytes;
};

// State of one thread.
struct vr_sim_thread {
    struct vr_sim_results results;
    uint64_t number;    // of the thread; never reused
    uint64_t *contexts; // stack; the last is current
    size_t context_count, contexts_capacity;
    struct vr_sim_thread_stream { // the thread's default stream in one context
        uint64_t context;
        uint32_t stream; // its slot
    } * streams;
    size_t stream_count, streams_capacity;
    int capture_mode; // VR_CU_STREAM_CAPTURE_MODE_*
};

bool vr_sim_is_device(const struct vr_sim *sim, int device);
// Returns whether size_bytes fits on a shared device, given what other processes use.
bool vr_sim_fits_with_others(const struct vr_sim_device *device, uint64_t size_bytes);
// Returns the bytes left on the device.
uint64_t vr_sim_free_bytes(const struct vr_sim_device *device);
// Returns whether the device has that many bytes left.
VR_INLINE bool vr_sim_has_room(const struct vr_sim_device *device, uint64_t size_bytes) {
    if (device->used_bytes > device->memory_bytes || size_bytes > device->memory_bytes - device->used_bytes) return false;
    return VR_LIKELY(device->others == NULL) || vr_sim_fits_with_others(device, size_bytes);
}

// --- sim_context.c --------------------------------------------------------------------------------------------------

// Returns the calling thread's record, created at first use and borrowed until the lock is released. NULL if the host is out of memory.
struct vr_sim_thread *vr_sim_this_thread(struct vr_sim *sim);
// Gets the calling thread's current context: SUCCESS, INVALID_CONTEXT if no context is current, or CONTEXT_IS_DESTROYED.
vr_cu_result vr_sim_current(struct vr_sim *sim, struct vr_sim_context **context);
uint64_t vr_sim_context_handle(const struct vr_sim *sim, const struct vr_sim_context *context);
// Pushes a live context onto the calling thread's stack, making it current. INVALID_CONTEXT, OUT_OF_MEMORY.
vr_cu_result vr_sim_ctx_push(struct vr_sim *sim, uint64_t context);
// Pops the current context; the stack must not be empty.
void vr_sim_ctx_drop(struct vr_sim *sim);
// Gets the handle of the calling thread's current context (0: not set) without the lock. Returns false if the answer needs the lock.
bool vr_sim_ctx_cached(const struct vr_sim *sim, uint64_t *context);

// Returns the settings of a new context.
struct vr_sim_context_settings vr_sim_context_defaults(struct vr_sim *sim, uint32_t flags);
// Sets the size of a thread's stack (CU_LIMIT_STACK_SIZE). The context has a stack for each thread that the device can hold at the same
// time, and gets or gives back that memory. OUT_OF_MEMORY.
vr_cu_result vr_sim_context_set_stack(struct vr_sim *sim, struct vr_sim_context *context, uint64_t stack_bytes);
// Enlarges the stacks for a kernel that needs more. As NVIDIA documents for that limit, the driver does so at a launch, and does not reset
// the size after it.
VR_INLINE vr_cu_result vr_sim_context_need_stack(struct vr_sim *sim, struct vr_sim_context *context, uint64_t stack_bytes) {
    return VR_LIKELY(stack_bytes <= context->settings.limits[VR_SIM_LIMIT_STACK]) ? VR_CU_SUCCESS
                                                                                  : vr_sim_context_set_stack(sim, context, stack_bytes);
}
// Returns INVALID_VALUE for flags that cuCtxCreate does not know.
vr_cu_result vr_sim_context_flags_check(uint32_t flags);

// --- sim_context_life.c ---------------------------------------------------------------------------------------------

vr_cu_result vr_sim_context_create(struct vr_sim *sim, uint32_t device, bool primary, uint64_t *context);
// Waits for the context's work and destroys everything in it. `context` must be live.
void vr_sim_context_destroy(struct vr_sim *sim, uint64_t context);
// Destroys everything in the primary context. Holders must still release it; retaining it again revives it.
void vr_sim_primary_reset(struct vr_sim *sim, uint32_t device);

// --- sim_peers.c ----------------------------------------------------------------------------------------------------

// Returns whether work of `device` may access the allocation `range` in place. `range` is owned by a context and is not a reservation.
bool vr_sim_reaches(const struct vr_sim *sim, uint32_t device, const struct vr_sim_range *range);
// Returns whether the hardware lets one device access the other's memory: for pairs of like cards whose class supports it, unless the
// options disable peers.
bool vr_sim_are_peers(const struct vr_sim *sim, uint32_t device, uint32_t peer);

// --- sim_device.c -----------------------------------------------------------------------------------------------------

// Returns what `call` costs regardless of its arguments.
uint64_t vr_sim_base_cost_ns(const struct vr_sim *sim, enum vr_sim_call call);
void vr_sim_charge_bytes(struct vr_sim *sim, uint64_t bytes, uint64_t ns_per_mib);
// charge_alloc and charge_free also count the small allocations that share 2 MiB pages: make one call per allocation.
void vr_sim_charge_alloc(struct vr_sim *sim, struct vr_sim_device *device, uint64_t size_bytes);
void vr_sim_charge_free(struct vr_sim *sim, struct vr_sim_device *device, uint64_t size_bytes);
void vr_sim_charge_unmap(struct vr_sim *sim, uint64_t mappings);
void vr_sim_charge_create(struct vr_sim *sim, uint64_t size_bytes);
void vr_sim_charge_set_access(struct vr_sim *sim, uint64_t size_bytes, uint64_t count);
void vr_sim_charge_chunk(struct vr_sim *sim, uint64_t size_bytes);
void vr_sim_charge_record(struct vr_sim *sim, unsigned event_flags);

#endif
