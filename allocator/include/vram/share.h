// vram/share.h: memory shared between devices, or between processes.
//
// Peers: a device with peer access reaches every block on the other device, including pages that are mapped later.
//
// Sharing: one process exports a live block into a handle, plain bytes that it may send in any way (a pipe, a socket, a file). Another
// process on the same machine imports the handle and sees the same bytes at an address of its own, whatever kind of memory backs the block.
// The exporter must keep the block until the importer is done with it; the two programs agree on when that is, and on when the work on it
// has finished. If either process dies, the other keeps its memory. See docs/guides/sharing.md.
#ifndef VRAM_SHARE_H
#define VRAM_SHARE_H

#include "vram/allocator.h"

#ifdef __cplusplus
extern "C" {
#endif

// --- peers ------------------------------------------------------------------------------------------------------------------
// Reports whether `device` can access the memory of `peer`. A device is not its own peer but reaches its own memory: true. INVALID_ARGUMENT
// for a device that does not exist; DRIVER.
VRAM_API VRAM_NODISCARD enum vram_status vram_peer_possible(struct vram_allocator *allocator, uint32_t device, uint32_t peer,
                                                            bool *possible);
// Lets `device` reach all memory of this allocator on `peer`, present and future, in plain and expandable segments and imported blocks. One
// call is enough; the access lasts as long as the allocator. UNSUPPORTED if the hardware cannot; INVALID_ARGUMENT; DRIVER (access is then
// not guaranteed: call again). error may be NULL.
VRAM_API VRAM_NODISCARD enum vram_status vram_peer_enable(struct vram_allocator *allocator, uint32_t device, uint32_t peer,
                                                          struct vram_error *error);
// Returns whether vram_peer_enable() succeeded for the pair, or both are the same device. False for devices that do not exist.
VRAM_API bool vram_peer_enabled(struct vram_allocator *allocator, uint32_t device, uint32_t peer);

// --- export -----------------------------------------------------------------------------------------------------------------
// Bytes of a handle for a block in plain memory. A block of an expandable segment takes 16 more for each page that it touches.
#define VRAM_HANDLE_BYTES 256

// Gets the number of bytes that vram_export() will write for a live block. INVALID_POINTER otherwise.
VRAM_API VRAM_NODISCARD enum vram_status vram_export_size(struct vram_allocator *allocator, uint64_t address, size_t *size_bytes);
// Writes a handle of the live block that starts at `address` into handle[0, capacity); *size_bytes is its length. Each page of an
// expandable segment takes a file descriptor of this process until vram_export_end(), or until the page returns to the driver.
// INVALID_POINTER if there is no such live block; INVALID_ARGUMENT if capacity is too small; UNSUPPORTED with a message for a pool with its
// own functions, or a device or driver without such handles; DRIVER. error may be NULL.
VRAM_API VRAM_NODISCARD enum vram_status vram_export(struct vram_allocator *allocator, uint64_t address, void *handle, size_t capacity,
                                                     size_t *size_bytes, struct vram_error *error);
// Ends one export of a live block. Once all its exports have ended, its handles can no longer be imported and its descriptors are closed;
// earlier imports stay valid. Has no effect on a block in plain memory. INVALID_POINTER; INVALID_ARGUMENT if it is not exported.
VRAM_API VRAM_NODISCARD enum vram_status vram_export_end(struct vram_allocator *allocator, uint64_t address);

// --- import -----------------------------------------------------------------------------------------------------------------
struct vram_imported {
    uint64_t address; // of the block, in this process
    uint64_t size_bytes;
    uint64_t requested_bytes; // as its owner asked
    uint64_t reserved_bytes;  // address space reserved for it: a plain segment, or the pages that the block touches
    uint32_t device;          // the device that holds it, by this process's numbers
    bool cached;              // its memory was already mapped here by an earlier import
};
// Makes a block of another process usable here, on the same device, for that device and those that vram_peer_enable() gave access. Memory
// is imported once: the same block always has the same address. *imported is valid until vram_import_release(). BAD_INPUT if the bytes are
// not a handle; INVALID_POINTER if its owner freed it or is gone; UNSUPPORTED with a message if it was exported by this very process, on
// another machine, on a device that this process does not see, or if the kernel's permissions forbid it (see vram_export_send()); LIMIT for
// too many open files; OUT_OF_MEMORY if there is no address space; DRIVER; NO_HOST_MEMORY. error may be NULL.
VRAM_API VRAM_NODISCARD enum vram_status vram_import(struct vram_allocator *allocator, const void *handle, size_t size_bytes,
                                                     struct vram_imported *imported, struct vram_error *error);
// Releases one import. After the last release the memory is unmapped, once the device is idle (during a capture: with a later import or
// release). `address` is the one that vram_import() gave. INVALID_POINTER if it is not imported; DRIVER if the driver refuses (retried
// later and at the end).
VRAM_API VRAM_NODISCARD enum vram_status vram_import_release(struct vram_allocator *allocator, uint64_t address);

// --- by socket --------------------------------------------------------------------------------------------------------------
// vram_export() and vram_import() over a connected local (AF_UNIX) stream socket. File descriptors travel with the handle, so it works
// between containers, and where a process may not inspect another. Both wait for the other side. The export ends with the call: nothing
// stays open in the sender. IO if the socket fails.
VRAM_API VRAM_NODISCARD enum vram_status vram_export_send(struct vram_allocator *allocator, uint64_t address, int socket,
                                                          struct vram_error *error);
VRAM_API VRAM_NODISCARD enum vram_status vram_import_receive(struct vram_allocator *allocator, int socket, struct vram_imported *imported,
                                                             struct vram_error *error);

// --- figures ----------------------------------------------------------------------------------------------------------------
struct vram_share_stats {
    uint64_t descriptors;       // open for exported pages
    uint64_t imports;           // mappings of foreign memory
    uint64_t import_references; // number of vram_import_release() calls still due
    uint64_t reserved_bytes;    // address space taken by imports
    uint64_t unreleased;        // imports that the driver has not taken back yet
};
// Counts all devices. Cannot fail.
VRAM_API void vram_get_share_stats(struct vram_allocator *allocator, struct vram_share_stats *stats);

#ifdef __cplusplus
}
#endif
#endif
