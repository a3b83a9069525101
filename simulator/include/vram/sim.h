// vram/sim.h: a simulated CUDA driver in plain C. It needs no GPU; every byte and every address is reproducible.
#ifndef VRAM_SIM_H
#define VRAM_SIM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "vram/driver.h"
#include "vram/status.h"

#ifdef __cplusplus
extern "C" {
#endif

// Time is virtual: only the cost of calls, waiting and vram_sim_advance() move the clock. A stream is a queue of work on that clock. An
// event completes when the clock has passed the work recorded before it; with manual completion, when vram_sim_complete() or a
// synchronization completes it. All functions below take a driver made by vram_sim_create() and return INVALID_ARGUMENT for any other. One
// lock protects the simulator: any thread may call any function.

// Cost of each driver call on the virtual clock. The profiles differ in mapping costs, the only figure without a published measurement.
enum vram_sim_profile { VRAM_SIM_CHEAP, VRAM_SIM_DEAR, VRAM_SIM_FREE /* every call costs 0 ns */ };

// The address of the next cuMemAlloc. RISING: upwards from alloc_base; addresses are never reused. FALLING: the same downwards. REUSE: the
// lowest free range at or above alloc_base, as a real driver reuses address space. DRIVER: like NVIDIA's driver on Linux, in 32 MiB regions
// below alloc_base, newest first. WINDOWS: like NVIDIA's driver on Windows, REUSE from a low base.
enum vram_sim_addresses { VRAM_SIM_RISING, VRAM_SIM_FALLING, VRAM_SIM_REUSE, VRAM_SIM_DRIVER, VRAM_SIM_WINDOWS };

enum { VRAM_SIM_MOST_DEVICES = 64 };
// Value for context_bytes: a context takes what the device's model says, 0 bytes on a device without a model.
#define VRAM_SIM_CONTEXT_OF_DEVICE UINT64_MAX

// The memory behind device addresses. BACKED: as `backed` says: ALL, or no bytes at all (copies and sets check their ranges and move
// nothing). ALL: host memory, so that the host can read and write device addresses directly. SPARSE: reads return the right bytes, and only
// data with content takes host memory: fills, memory never written and copies of either take none. NONE: as SPARSE, but a copy of more than
// 64 KiB from the host is not kept.
enum vram_sim_bytes { VRAM_SIM_BYTES_BACKED, VRAM_SIM_BYTES_ALL, VRAM_SIM_BYTES_SPARSE, VRAM_SIM_BYTES_NONE };

// Zero means the default in every field. Sizes are in bytes.
struct vram_sim_options {
    uint32_t device_count;         // default: the number of models, at least 1; at most 64
    uint64_t memory_bytes;         // per device; default: its model's, 80 GiB without a model
    enum vram_sim_profile profile; // default VRAM_SIM_CHEAP
    enum vram_sim_addresses addresses;
    uint64_t alloc_base;                    // default 0x300000000000; DRIVER 0x7d0000000000, WINDOWS 0x502000000
    uint64_t alloc_alignment;               // alignment of addresses and sizes from 1 MiB; default 2 MiB
    uint64_t alloc_small_alignment;         // the same for smaller sizes; default 512
    uint64_t reserve_base;                  // first cuMemAddressReserve; default 0x400000000000; DRIVER and WINDOWS 0x302000000
    uint64_t reserve_alignment;             // default 1 GiB; DRIVER and WINDOWS 32 MiB
    bool manual_completion;                 // events stay pending until completed or synchronized (cuMemFree then does not wait)
    bool backed;                            // true means VRAM_SIM_BYTES_ALL if `bytes` is VRAM_SIM_BYTES_BACKED
    bool host_thread;                       // run host functions in order on a separate thread instead of in the calling thread
    bool no_peers;                          // no device can access another's memory
    uint64_t kernel_ns;                     // duration of a kernel; if not 0, copies and sets take time by their bytes
    uint64_t context_bytes;                 // memory that the driver takes per context on its device; default 0
    uint32_t driver_version;                // CUDA version the driver reports: 13020 for 13.2; default 12000
    uint32_t model_count;                   // length of `models`; devices take the models in turn; 0: no device has a model
    uint8_t models[VRAM_SIM_MOST_DEVICES];  // index for vram_sim_model_at() plus one; 0: a device without a model
    uint32_t visible_count;                 // length of `visible`; 0: the program sees all devices
    uint8_t visible[VRAM_SIM_MOST_DEVICES]; // ordinals of the visible devices, ordered as in CUDA_VISIBLE_DEVICES, no repeats
    enum vram_sim_bytes bytes;              // default: decided by `backed`
    uint64_t page_cache_bytes; // page cache in the memory of an integrated device: reported as used, given up when memory is needed
    bool poison_aliases;       // fill bytes that one copy read and wrote through two addresses with 0xDB, in whole 512-byte lines
    uint64_t pinned_bytes;     // limit on pinned host memory (cuMemHostAlloc and cuMemHostRegister together); default: unlimited
    bool network;              // support DMA buffers and fabric handles; a DMA buffer's descriptor has no bytes to map
};

// A device model, selected by `device=h100` in an option text. Its attributes are those of the real device.
struct vram_sim_model {
    const char *key;  // "h100"; static
    const char *name; // "NVIDIA H100 80GB HBM3"
    uint64_t memory_bytes;
    uint64_t context_bytes; // memory that a context takes
    int32_t compute_major, compute_minor;
    int32_t multiprocessors;
};
// Writes the model with this index, counted from 0. Returns false past the last one. Any thread.
VRAM_API bool vram_sim_model_at(uint32_t index, struct vram_sim_model *model);
// Like vram_sim_model_at(), for AMD's models, which serve HIP programs. In vram_sim_options.models, AMD's numbers follow NVIDIA's.
VRAM_API bool vram_sim_amd_model_at(uint32_t index, struct vram_sim_model *model);
// Returns the letters of the figures that no log of a real device confirms: M memory, P multiprocessors, L L2 cache, C clocks, B memory
// bus, E copy engines. "" if a log confirms all, for an unknown key and for NULL. The string is static. Any thread.
VRAM_API const char *vram_sim_model_estimated(const char *key);

// Creates a simulated driver, which the caller owns. options may be NULL. INVALID_ARGUMENT for a value out of range; NO_HOST_MEMORY.
VRAM_API VRAM_NODISCARD enum vram_status vram_sim_create(const struct vram_sim_options *options, struct vram_driver **driver);
// Reads options from text such as `devices=2,memory=16GiB,profile=dear,addresses=reuse,manual,backed`; libcuda's variable VRAM_SIM has the
// same syntax. BAD_OPTION with the position in *error; INVALID_ARGUMENT if text or options is NULL. error may be NULL.
VRAM_API VRAM_NODISCARD enum vram_status vram_sim_parse(const char *text, struct vram_sim_options *options, struct vram_error *error);

// Completes all work recorded so far on `stream` (or on every stream of every device), and the work it depends on. The clock moves to the
// end of that work. Handles 0, 1 and 2 are the default streams of the calling thread's current context; INVALID_ARGUMENT if the thread has
// no current context.
VRAM_API VRAM_NODISCARD enum vram_status vram_sim_complete(struct vram_driver *driver, uint64_t stream);
VRAM_API VRAM_NODISCARD enum vram_status vram_sim_complete_all(struct vram_driver *driver);
// Creates a non-blocking stream (CU_STREAM_NON_BLOCKING) on `device`. It lives as long as the driver. INVALID_ARGUMENT unless the device's
// primary context is retained, which an allocator does at its first use of the device.
VRAM_API VRAM_NODISCARD enum vram_status vram_sim_stream_create(struct vram_driver *driver, uint32_t device, uint64_t *stream);
// Queues `work_ns` of work on `stream` of `device`, like a kernel; a capturing stream gets a kernel node. INVALID_ARGUMENT if `stream`
// belongs to another device, or is a default stream and the device's primary context is not retained; DRIVER if a capture forbids the call;
// NO_HOST_MEMORY.
VRAM_API VRAM_NODISCARD enum vram_status vram_sim_busy(struct vram_driver *driver, uint32_t device, uint64_t stream, uint64_t work_ns);
// Like vram_sim_busy(), but also calls `function(argument)`: once when the work is queued, and again at every launch of a graph that
// captured it. function may be NULL. It runs in the calling thread with the simulator's lock held, so it must not call this driver; with
// `backed` it may access device addresses. Both pointers are borrowed; a graph keeps them for its lifetime.
VRAM_API VRAM_NODISCARD enum vram_status vram_sim_launch(struct vram_driver *driver, uint32_t device, uint64_t stream,
                                                         void (*function)(void *argument), void *argument, uint64_t cost_ns);
// Moves the clock forward by elapsed_ns.
VRAM_API VRAM_NODISCARD enum vram_status vram_sim_advance(struct vram_driver *driver, uint64_t elapsed_ns);
// Returns the virtual clock, which starts at 0. Returns 0 for a driver of another kind.
VRAM_API uint64_t vram_sim_clock_ns(struct vram_driver *driver);

// Queues an address for cuMemAlloc on any device: each later call takes the next queued address, and once the queue is empty the options'
// rule applies again. A call that fails for lack of memory takes no address. If a queued address overlaps a live allocation or reservation,
// the call that takes it fails with an invalid value.
VRAM_API VRAM_NODISCARD enum vram_status vram_sim_queue_address(struct vram_driver *driver, uint64_t address);
// Queues an address for cuMemAddressReserve in the same way.
VRAM_API VRAM_NODISCARD enum vram_status vram_sim_queue_reservation(struct vram_driver *driver, uint64_t address);
// Drops all unused queued addresses of both kinds.
VRAM_API VRAM_NODISCARD enum vram_status vram_sim_clear_queues(struct vram_driver *driver);
// Changes the capacity of `device`. It may be less than what is in use; then nothing more fits.
VRAM_API VRAM_NODISCARD enum vram_status vram_sim_set_memory(struct vram_driver *driver, uint32_t device, uint64_t memory_bytes);
// Returns the device memory in use: live cuMemAlloc sizes, physical allocations and contexts.
VRAM_API uint64_t vram_sim_memory_used(struct vram_driver *driver, uint32_t device);
// Returns the number of live objects, which a leak test expects to be 0: allocations, physical handles, mappings, reservations, events,
// streams, host allocations, graphs (including those being captured and child graphs) and executable graphs.
VRAM_API uint64_t vram_sim_live_objects(struct vram_driver *driver);

// Returns how often a driver function ("cuMemAlloc") was called, failures included; 0 for an unknown name.
VRAM_API uint64_t vram_sim_calls(struct vram_driver *driver, const char *call);
// Gets the name (static), calls and virtual time of the driver function with this index, in a fixed order. Each output may be NULL. Returns
// false past the last index.
VRAM_API bool vram_sim_call_at(struct vram_driver *driver, uint32_t index, const char **name, uint64_t *count, uint64_t *cost_ns);

#ifdef __cplusplus
}
#endif
#endif
