// vram/network.h: device memory for network cards: what is mapped where, descriptors for it, memory of one handle.
//
// A card, and a library that registers memory with one (verbs, UCX, NCCL, NVSHMEM), keeps what stood at an address when it was told. Memory
// of an allocator comes and goes there: a cached registration is good only as long as the same memory is mapped. A watching driver stands
// between an allocator and its driver and knows every piece of memory that is mapped: who registers is told before a piece goes, and each
// mapping has a generation, a number that no other mapping of the process has, by which a cached registration is known to be stale. It is
// exact for every kind of segment (plain, expandable, paged, asleep and awake), for it sees the driver's calls themselves; what the
// driver's own pools hand out (backend:cudaMallocAsync) it does not see.
//
// All functions take a driver made by vram_driver_watch() (INVALID_ARGUMENT for another) and may be called from any thread, but inside of
// an observer only vram_watch_mappings(), vram_watch_dma_buf() and vram_watch_fabric(). docs/guides/network.md.
#ifndef VRAM_NETWORK_H
#define VRAM_NETWORK_H

#include "vram/pool.h"

#ifdef __cplusplus
extern "C" {
#endif

// --- what is mapped ---------------------------------------------------------------------------------------------------------------
// Wraps `inner` (borrowed; it must outlive the wrapper) for vram_create(). *driver is given to the caller: vram_driver_destroy(), after the
// allocators made on it. NO_HOST_MEMORY.
VRAM_API VRAM_EXPERIMENTAL VRAM_NODISCARD enum vram_status vram_driver_watch(struct vram_driver *inner, struct vram_driver **driver);

// One physical allocation, or a part of one, at an address: a plain segment, a page of an expandable one.
struct vram_mapping {
    uint64_t address, size_bytes;
    uint64_t generation; // 1 and up, in the order of mapping
    uint32_t device;
    bool physical; // made by cuMemCreate: vram_watch_fabric() is possible; else by cuMemAlloc
};
// Called on the thread whose call maps or unmaps, under locks of its allocator, which it must not call; one call at a time.
struct vram_mapping_observer {
    // Memory stands there from now on. Access is set after it: a card registers it later, or by vram_watch_dma_buf(). May be NULL.
    void (*mapped)(const struct vram_mapping *mapping, void *user);
    // It is about to go: registrations of it end before this returns. Where the driver keeps it after all, it is told as mapped again, with
    // a new generation. May be NULL.
    void (*unmapping)(const struct vram_mapping *mapping, void *user);
    void *user;
};
// From now on the observer, which is copied, is told; of what is mapped already first, by ascending address. NO_HOST_MEMORY.
VRAM_API VRAM_EXPERIMENTAL VRAM_NODISCARD enum vram_status vram_watch_add(struct vram_driver *driver,
                                                                          const struct vram_mapping_observer *observer);
// Takes it out: after the return it is not called any more. INVALID_ARGUMENT when no observer has these functions and user.
VRAM_API VRAM_EXPERIMENTAL VRAM_NODISCARD enum vram_status vram_watch_remove(struct vram_driver *driver,
                                                                             const struct vram_mapping_observer *observer);
// Writes the mappings behind [address, address + size_bytes), by ascending address, into mappings[0, capacity); *count is how many there
// are, which may be more: 1 where the range lies in one handle. A registration of the range is good as long as these generations are the
// same. INVALID_POINTER where a byte of it is not mapped, or belongs to another device than the first; INVALID_ARGUMENT for 0 bytes.
VRAM_API VRAM_EXPERIMENTAL VRAM_NODISCARD enum vram_status vram_watch_mappings(struct vram_driver *driver, uint64_t address,
                                                                               uint64_t size_bytes, struct vram_mapping *mappings,
                                                                               size_t capacity, size_t *count);

// --- descriptors --------------------------------------------------------------------------------------------------------------------
// A range as a network card takes it.
struct vram_dma_buf {
    int descriptor;       // given to the caller, who closes it; it keeps the memory, not its addresses
    uint64_t offset;      // of the range in it
    uint64_t size_bytes;  // of what it stands for: whole pages of the host
    uint64_t generations; // of the mappings behind it, the largest: a later one is other memory
};
// Makes a DMA buffer of the pages that hold [address, address + size_bytes), whichever handles they are of. INVALID_POINTER as above;
// UNSUPPORTED with a sentence where the device or the driver has none; DRIVER. error may be NULL.
VRAM_API VRAM_EXPERIMENTAL VRAM_NODISCARD enum vram_status vram_watch_dma_buf(struct vram_driver *driver, uint64_t address,
                                                                              uint64_t size_bytes, struct vram_dma_buf *buffer,
                                                                              struct vram_error *error);

#define VRAM_FABRIC_BYTES 64
// A handle that other processes, also on other machines of one NVLink domain, import: of the whole physical allocation.
struct vram_fabric_handle {
    unsigned char bytes[VRAM_FABRIC_BYTES];
    uint64_t allocation_bytes; // of the physical allocation
    uint64_t offset;           // of the address in it
};
// Writes the handle of the physical allocation that stands at `address`. Where the device has fabric handles, every physical allocation of
// a watching driver is made so that it has one. INVALID_POINTER as above; UNSUPPORTED with a sentence: memory by cuMemAlloc, a device
// without fabric handles; DRIVER. error may be NULL.
VRAM_API VRAM_EXPERIMENTAL VRAM_NODISCARD enum vram_status vram_watch_fabric(struct vram_driver *driver, uint64_t address,
                                                                             struct vram_fabric_handle *handle, struct vram_error *error);
// Maps the allocation of a handle for `device`; *address is that of the handle's offset, good until vram_fabric_release(). UNSUPPORTED,
// OUT_OF_MEMORY, DRIVER. error may be NULL.
VRAM_API VRAM_EXPERIMENTAL VRAM_NODISCARD enum vram_status vram_fabric_import(struct vram_driver *driver, uint32_t device,
                                                                              const struct vram_fabric_handle *handle, uint64_t *address,
                                                                              struct vram_error *error);
// Unmaps what `handle` was mapped as at `address`, once the caller's work on it has finished. DRIVER, and it stays.
VRAM_API VRAM_EXPERIMENTAL VRAM_NODISCARD enum vram_status vram_fabric_release(struct vram_driver *driver,
                                                                               const struct vram_fabric_handle *handle, uint64_t address);

// --- memory of one handle --------------------------------------------------------------------------------------------------------------
// Makes these the options of a pool (vram_pool_create() on an allocator of this driver) each of whose segments is one physical allocation,
// for network cards where the device can: every block of it lies in one handle, whatever kind of segments the allocator makes else. For the
// pool's own device, and those that are peers of it when a segment is made. Other fields of *options stay.
VRAM_API VRAM_EXPERIMENTAL void vram_watch_one_handle(struct vram_driver *driver, struct vram_pool_options *options);

#ifdef __cplusplus
}
#endif
#endif
