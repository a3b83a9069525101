// vram/network.h: device memory for network cards: mappings, DMA buffers, and pools whose segments have one handle each.
//
// A network card, or a library that registers memory with one (verbs, UCX, NCCL, NVSHMEM), keeps the memory that was at an address when it
// was registered. An allocator's memory comes and goes at an address, so a cached registration is valid only while the same memory is
// mapped. A watching driver sits between an allocator and its driver and sees every piece of memory that is mapped. It notifies observers
// before memory is unmapped, and numbers each mapping with a generation, unique in the process, which shows whether a cached registration
// is stale. It is exact for every kind of segment (plain, expandable, paged, asleep and awake), because it sees the driver calls
// themselves. The watching driver does not see memory that the driver's own pools hand out (backend:cudaMallocAsync).
//
// All functions take a driver made by vram_driver_watch() (INVALID_ARGUMENT for another) and may be called from any thread. Inside an
// observer only vram_watch_mappings(), vram_watch_dma_buf() and vram_watch_fabric() may be called. See docs/guides/network.md.
#ifndef VRAM_NETWORK_H
#define VRAM_NETWORK_H

#include "vram/pool.h"

#ifdef __cplusplus
extern "C" {
#endif

// --- mappings ---------------------------------------------------------------------------------------------------------------------
// Wraps `inner` (borrowed; must outlive the wrapper) for vram_create(). The caller owns *driver and ends it with vram_driver_destroy(),
// after the allocators made on it. NO_HOST_MEMORY.
VRAM_API VRAM_EXPERIMENTAL VRAM_NODISCARD enum vram_status vram_driver_watch(struct vram_driver *inner, struct vram_driver **driver);

// One physical allocation, or a part of one, at an address: a plain segment, or a page of an expandable one.
struct vram_mapping {
    uint64_t address, size_bytes;
    uint64_t generation; // from 1, in order of mapping
    uint32_t device;
    bool physical; // made by cuMemCreate, so vram_watch_fabric() works; false: made by cuMemAlloc
};
// Called one at a time, on the thread whose call maps or unmaps, under locks of the allocator: an observer must not call the allocator.
struct vram_mapping_observer {
    // Memory is mapped from now on. Access is set after this call: a card registers it later, or by vram_watch_dma_buf(). May be NULL.
    void (*mapped)(const struct vram_mapping *mapping, void *user);
    // Memory is about to be unmapped: end its registrations before returning. If the driver keeps it after all, `mapped` is called for it
    // with a new generation. May be NULL.
    void (*unmapping)(const struct vram_mapping *mapping, void *user);
    void *user;
};
// Adds an observer, which is copied. It is first called for existing mappings, by ascending address. NO_HOST_MEMORY.
VRAM_API VRAM_EXPERIMENTAL VRAM_NODISCARD enum vram_status vram_watch_add(struct vram_driver *driver,
                                                                          const struct vram_mapping_observer *observer);
// Removes an observer, which is not called after the return. INVALID_ARGUMENT if no observer has these functions and user.
VRAM_API VRAM_EXPERIMENTAL VRAM_NODISCARD enum vram_status vram_watch_remove(struct vram_driver *driver,
                                                                             const struct vram_mapping_observer *observer);
// Writes the mappings behind [address, address + size_bytes), by ascending address, into mappings[0, capacity); *count is their number,
// which may exceed capacity. A count of 1 means that the range is in one handle. A registration of the range is valid as long as these
// generations are the same. INVALID_POINTER if a byte of it is not mapped, or is on another device than the first; INVALID_ARGUMENT for 0
// bytes.
VRAM_API VRAM_EXPERIMENTAL VRAM_NODISCARD enum vram_status vram_watch_mappings(struct vram_driver *driver, uint64_t address,
                                                                               uint64_t size_bytes, struct vram_mapping *mappings,
                                                                               size_t capacity, size_t *count);

// --- descriptors --------------------------------------------------------------------------------------------------------------------
// A range in the form that a network card takes.
struct vram_dma_buf {
    int descriptor;       // owned by the caller, who closes it; keeps the memory, not its addresses
    uint64_t offset;      // of the range in the buffer
    uint64_t size_bytes;  // of the buffer: whole pages of the host
    uint64_t generations; // largest generation of the mappings behind it; a larger one later means other memory
};
// Makes a DMA buffer of the pages that hold [address, address + size_bytes), even across handles. INVALID_POINTER as above; UNSUPPORTED
// with a message if the device or driver has no DMA buffers; DRIVER. error may be NULL.
VRAM_API VRAM_EXPERIMENTAL VRAM_NODISCARD enum vram_status vram_watch_dma_buf(struct vram_driver *driver, uint64_t address,
                                                                              uint64_t size_bytes, struct vram_dma_buf *buffer,
                                                                              struct vram_error *error);

#define VRAM_FABRIC_BYTES 64
// A handle of one whole physical allocation, which other processes can import, even on other machines of the same NVLink domain.
struct vram_fabric_handle {
    unsigned char bytes[VRAM_FABRIC_BYTES];
    uint64_t allocation_bytes; // of the physical allocation
    uint64_t offset;           // of the address in the allocation
};
// Writes the handle of the physical allocation at `address`. If the device has fabric handles, a watching driver makes every physical
// allocation with one. INVALID_POINTER as above; UNSUPPORTED with a message for memory from cuMemAlloc or a device without fabric handles;
// DRIVER. error may be NULL.
VRAM_API VRAM_EXPERIMENTAL VRAM_NODISCARD enum vram_status vram_watch_fabric(struct vram_driver *driver, uint64_t address,
                                                                             struct vram_fabric_handle *handle, struct vram_error *error);
// Maps the allocation of a handle for `device`; *address is the one at the handle's offset, valid until vram_fabric_release(). UNSUPPORTED,
// OUT_OF_MEMORY, DRIVER. error may be NULL.
VRAM_API VRAM_EXPERIMENTAL VRAM_NODISCARD enum vram_status vram_fabric_import(struct vram_driver *driver, uint32_t device,
                                                                              const struct vram_fabric_handle *handle, uint64_t *address,
                                                                              struct vram_error *error);
// Unmaps an import of `handle` at `address`, once the caller's work on it has finished. On DRIVER it stays mapped.
VRAM_API VRAM_EXPERIMENTAL VRAM_NODISCARD enum vram_status vram_fabric_release(struct vram_driver *driver,
                                                                               const struct vram_fabric_handle *handle, uint64_t address);

// --- pools with one handle per segment -------------------------------------------------------------------------------------------------
// Sets the options of a pool (vram_pool_create() on an allocator of this driver) so that each segment is one physical allocation, suitable
// for network cards if the device supports it. Every block is then in one handle, whatever kind of segments the allocator otherwise
// makes. Segments are accessible to the pool's device and to the devices that are its peers when the segment is made. Other fields of
// *options stay.
VRAM_API VRAM_EXPERIMENTAL void vram_watch_one_handle(struct vram_driver *driver, struct vram_pool_options *options);

#ifdef __cplusplus
}
#endif
#endif
