// vram/sim.h: the simulated driver: a CUDA driver in plain C. No GPU is needed; every byte and every address is reproducible.
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

// Time is virtual: it moves only by the cost of calls, by waiting, and by vram_sim_advance(). A stream is a queue of work
// on that clock; an event is complete when the clock has passed the work recorded before it (or, with manual completion,
// when vram_sim_complete() says so, or when somebody synchronizes). All functions below take a driver made by
// vram_sim_create() (INVALID_ARGUMENT for another). The simulator has one lock; every function may be called from any thread.

// What each driver call costs on the virtual clock. The profiles differ in mapping costs, the one figure nobody has published.
enum vram_sim_profile { VRAM_SIM_CHEAP, VRAM_SIM_DEAR, VRAM_SIM_FREE /* every call costs 0 ns */ };

// Where the next cuMemAlloc goes. RISING: from alloc_base upwards, never used again. FALLING: the same downwards.
// REUSE: the lowest free range at or above alloc_base, as a real driver would reuse address space. DRIVER: as NVIDIA's on Linux, in regions
// of 32 MiB below alloc_base, the newest first. WINDOWS: as NVIDIA's there, REUSE from a low base.
enum vram_sim_addresses { VRAM_SIM_RISING, VRAM_SIM_FALLING, VRAM_SIM_REUSE, VRAM_SIM_DRIVER, VRAM_SIM_WINDOWS };

enum { VRAM_SIM_MOST_DEVICES = 64 };
// For context_bytes: what a context takes of the device that it names (0 of one that it does not).
#define VRAM_SIM_CONTEXT_OF_DEVICE UINT64_MAX

// What stands behind device addresses. BACKED: as `backed` says, all or nothing: copies and sets check their ranges and move nothing. ALL:
// bytes of the host, which may read and write device addresses itself. SPARSE: what is read back is right, and memory of the host is taken
// only for data with content: a fill, memory that nobody wrote, a copy of such memory take none. NONE: as SPARSE, but a copy of more than
// 64 KiB from the host is not kept.
enum vram_sim_bytes { VRAM_SIM_BYTES_BACKED, VRAM_SIM_BYTES_ALL, VRAM_SIM_BYTES_SPARSE, VRAM_SIM_BYTES_NONE };

// All-zero means every default. Sizes in bytes.
struct vram_sim_options {
    uint32_t device_count;         // default: as many as there are models, at least 1; at most 64
    uint64_t memory_bytes;         // of each device; default that of its model, 80 GiB without one
    enum vram_sim_profile profile; // default VRAM_SIM_CHEAP
    enum vram_sim_addresses addresses;
    uint64_t alloc_base;                   // default 0x300000000000; DRIVER 0x7d0000000000, WINDOWS 0x502000000
    uint64_t alloc_alignment;              // sizes of 1 MiB and more are placed and advanced by this; default 2 MiB
    uint64_t alloc_small_alignment;        // smaller sizes by this; default 512
    uint64_t reserve_base;                 // first cuMemAddressReserve; default 0x400000000000; DRIVER and WINDOWS 0x302000000
    uint64_t reserve_alignment;            // default 1 GiB; DRIVER and WINDOWS 32 MiB
    bool manual_completion;                // events stay pending until vram_sim_complete() or a synchronization (a free does not wait then)
    bool backed;                           // its way to say VRAM_SIM_BYTES_ALL, while `bytes` says nothing
    bool host_thread;                      // host functions run in order on a thread of their own, and not in the thread of the call
    bool no_peers;                         // no device can reach the memory of another
    uint64_t kernel_ns;                    // that a kernel takes on the device; not 0: copies and sets take time by their bytes, too
    uint64_t context_bytes;                // that each context takes of its device's memory, as a driver does for itself; default none
    uint32_t driver_version;               // of CUDA, that the driver says it is: 13020 for 13.2; default 12000
    uint32_t model_count;                  // of models below, which the devices take in turn; 0: no device is a known one
    uint8_t models[VRAM_SIM_MOST_DEVICES]; // numbers of vram_sim_model_at(), plus one; 0: a device of no model
    uint32_t visible_count;                // of visible below; 0: the program sees all devices
    uint8_t visible[VRAM_SIM_MOST_DEVICES]; // which of them it sees, each once, in its order: as CUDA_VISIBLE_DEVICES says it
    enum vram_sim_bytes bytes;              // what stands behind device addresses; default what `backed` says
    uint64_t page_cache_bytes; // that files take of the memory of an integrated device: told as used, and given up where it is asked for
    bool
        poison_aliases; // what a copy reads and writes of one allocation through two addresses is 0xDB afterwards, whole lines of 512 bytes
    uint64_t pinned_bytes; // of host memory that may be pinned at once, by cuMemHostAlloc and cuMemHostRegister; default any
    bool network;          // devices have DMA buffers and handles of the fabric; a descriptor of a DMA buffer has no bytes to map
};

// A device that the simulator knows: `device=h100` in the text of the options. All its attributes are a real one's.
struct vram_sim_model {
    const char *key;  // "h100"; borrowed, as long as the library is loaded
    const char *name; // "NVIDIA H100 80GB HBM3"
    uint64_t memory_bytes;
    uint64_t context_bytes; // that a context takes
    int32_t compute_major, compute_minor;
    int32_t multiprocessors;
};
// The models, by numbers from 0 up; false past the last. Any thread.
VRAM_API bool vram_sim_model_at(uint32_t index, struct vram_sim_model *model);
// The same of AMD's devices, which are for programs of HIP. Their numbers in vram_sim_options.models follow those of the others.
VRAM_API bool vram_sim_amd_model_at(uint32_t index, struct vram_sim_model *model);
// Which figures of the model with that key no log of a real one gives, by letters: M its memory, P its multiprocessors, L its L2 cache,
// C its clocks, B its memory bus, E its copy engines. "" for none, and for an unknown key or NULL. Borrowed; any thread.
VRAM_API const char *vram_sim_model_estimated(const char *key);

// options may be NULL. *driver is given to the caller. INVALID_ARGUMENT for values out of range; NO_HOST_MEMORY.
VRAM_API VRAM_NODISCARD enum vram_status vram_sim_create(const struct vram_sim_options *options, struct vram_driver **driver);
// Options from text: `devices=2,memory=16GiB,profile=dear,addresses=reuse,manual,backed,...`, the syntax of the variable VRAM_SIM
// that the shared libcuda reads. BAD_OPTION with the position in *error, INVALID_ARGUMENT for NULLs; error may be NULL.
VRAM_API VRAM_NODISCARD enum vram_status vram_sim_parse(const char *text, struct vram_sim_options *options, struct vram_error *error);

// Completes all work recorded so far on `stream` / on every stream of every device, and what that work waited for; the clock moves to
// its end. A default stream (0, 1, 2) is the one of the calling thread's current context: INVALID_ARGUMENT where it has none.
VRAM_API VRAM_NODISCARD enum vram_status vram_sim_complete(struct vram_driver *driver, uint64_t stream);
VRAM_API VRAM_NODISCARD enum vram_status vram_sim_complete_all(struct vram_driver *driver);
// A stream of its own on `device`, that waits for no other (CU_STREAM_NON_BLOCKING). It lives as long as the driver. INVALID_ARGUMENT
// while nobody retains the device's primary context: an allocator does from its first use of the device on.
VRAM_API VRAM_NODISCARD enum vram_status vram_sim_stream_create(struct vram_driver *driver, uint32_t device, uint64_t *stream);
// Queues `work_ns` of work on `stream` of `device`, as a kernel would: a stream that captures gets a kernel node. INVALID_ARGUMENT where
// `stream` is of another device, or is a default stream and nobody retains the device's primary context; DRIVER where a capture forbids
// it, NO_HOST_MEMORY.
VRAM_API VRAM_NODISCARD enum vram_status vram_sim_busy(struct vram_driver *driver, uint32_t device, uint64_t stream, uint64_t work_ns);
// A kernel: the same with `function(argument)`, which runs when the work is given to the stream, and again at every launch of a graph
// that captured it (function may be NULL). It runs in the calling thread with the simulator's lock held, so it calls no function
// of this driver; with `backed` it may read and write device addresses. The simulator borrows both pointers, a graph as long as it lives.
VRAM_API VRAM_NODISCARD enum vram_status vram_sim_launch(struct vram_driver *driver, uint32_t device, uint64_t stream,
                                                         void (*function)(void *argument), void *argument, uint64_t cost_ns);
// Moves the clock forward.
VRAM_API VRAM_NODISCARD enum vram_status vram_sim_advance(struct vram_driver *driver, uint64_t elapsed_ns);
// The virtual clock; starts at 0. 0 for a driver of another kind.
VRAM_API uint64_t vram_sim_clock_ns(struct vram_driver *driver);

// The next cuMemAlloc (of any device) returns `address`, the one after it the next queued address, and so on; when the queue is
// empty the rule of the options holds again. A call that fails for lack of memory uses no address up. No check is made that the
// range is free in the recorded program; a range that overlaps a live allocation or reservation of this simulator makes that call
// fail with an invalid value.
VRAM_API VRAM_NODISCARD enum vram_status vram_sim_queue_address(struct vram_driver *driver, uint64_t address);
// The same for cuMemAddressReserve.
VRAM_API VRAM_NODISCARD enum vram_status vram_sim_queue_reservation(struct vram_driver *driver, uint64_t address);
// Forgets what is queued and not yet used, of both kinds.
VRAM_API VRAM_NODISCARD enum vram_status vram_sim_clear_queues(struct vram_driver *driver);
// Changes the memory of `device`; less than what is in use is allowed (nothing fits then).
VRAM_API VRAM_NODISCARD enum vram_status vram_sim_set_memory(struct vram_driver *driver, uint32_t device, uint64_t memory_bytes);
// Bytes of device memory in use: live cuMemAlloc sizes, live physical handles and what contexts take.
VRAM_API uint64_t vram_sim_memory_used(struct vram_driver *driver, uint32_t device);
// What a leak test wants to be zero: live allocations + handles + mappings + reservations + events + streams + host allocations +
// graphs (those being captured, and those inside of other graphs, too) + executable graphs.
VRAM_API uint64_t vram_sim_live_objects(struct vram_driver *driver);

// How often a driver function was called with success or without ("cuMemAlloc"); 0 for an unknown name.
VRAM_API uint64_t vram_sim_calls(struct vram_driver *driver, const char *call);
// The same by index, in a fixed order: *name (static), *count and *cost_ns (virtual time spent in it; each may be NULL).
// False when index is past the last.
VRAM_API bool vram_sim_call_at(struct vram_driver *driver, uint32_t index, const char **name, uint64_t *count, uint64_t *cost_ns);

#ifdef __cplusplus
}
#endif
#endif
