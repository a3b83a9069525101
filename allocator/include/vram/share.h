// vram/share.h: memory that more than one device, or more than one process, uses.
//
// Peers: a device that was given access reaches every block on the other device where it lies, also pages that are mapped later.
//
// Sharing: one process exports a live block into a handle, plain bytes that it sends as it likes (a pipe, a socket, a file); another
// process on the same machine imports the handle and has the same bytes at an address of its own. What backs the block makes no
// difference to either. The exporter keeps the block until the importer says that it is done with it: how is theirs to agree on, and so is
// when the work on it has finished. If either process dies, the other keeps what it has. See docs/guides/sharing.md.
#ifndef VRAM_SHARE_H
#define VRAM_SHARE_H

#include "vram/allocator.h"

#ifdef __cplusplus
extern "C" {
#endif

// --- peers ------------------------------------------------------------------------------------------------------------------
// Can `device` reach the memory of `peer`? A device is no peer of itself but reaches its memory: true. INVALID_ARGUMENT for a device that
// the driver has not; DRIVER.
VRAM_API VRAM_NODISCARD enum vram_status vram_peer_possible(struct vram_allocator *allocator, uint32_t device, uint32_t peer,
                                                            bool *possible);
// Lets `device` reach all memory of this allocator on `peer`, what is there and what comes, in plain and expandable segments and
// imported blocks. Once is enough; it lasts as long as the allocator. UNSUPPORTED where the hardware cannot; INVALID_ARGUMENT; DRIVER
// (nothing is promised then: call again). error may be NULL.
VRAM_API VRAM_NODISCARD enum vram_status vram_peer_enable(struct vram_allocator *allocator, uint32_t device, uint32_t peer,
                                                          struct vram_error *error);
// Whether vram_peer_enable() succeeded for the pair, or both are one device. False for devices that the driver has not.
VRAM_API bool vram_peer_enabled(struct vram_allocator *allocator, uint32_t device, uint32_t peer);

// --- export -----------------------------------------------------------------------------------------------------------------
// Bytes of the handle of a block in plain memory. One of an expandable segment takes 16 more for each page that the block touches.
#define VRAM_HANDLE_BYTES 256

// How many bytes vram_export() will write for a live block. INVALID_POINTER otherwise.
VRAM_API VRAM_NODISCARD enum vram_status vram_export_size(struct vram_allocator *allocator, uint64_t address, size_t *size_bytes);
// Writes a handle of the live block that starts at `address` into handle[0, capacity). *size_bytes: what it took. Each page of an
// expandable segment takes a file descriptor of this process, until vram_export_end() or until the page goes back to the driver.
// INVALID_POINTER when it is no live block; INVALID_ARGUMENT when capacity is too small; UNSUPPORTED with a sentence: a pool with functions
// of its own, a device or driver that has no such handles; DRIVER. error may be NULL.
VRAM_API VRAM_NODISCARD enum vram_status vram_export(struct vram_allocator *allocator, uint64_t address, void *handle, size_t capacity,
                                                     size_t *size_bytes, struct vram_error *error);
// Takes one export of a live block back: once each was, its handles cannot be imported any more, and its descriptors are closed. Who
// imported it before keeps it. Without effect on a block in plain memory. INVALID_POINTER; INVALID_ARGUMENT when it is not exported.
VRAM_API VRAM_NODISCARD enum vram_status vram_export_end(struct vram_allocator *allocator, uint64_t address);

// --- import -----------------------------------------------------------------------------------------------------------------
struct vram_imported {
    uint64_t address; // of the block, in this process
    uint64_t size_bytes;
    uint64_t requested_bytes; // what its owner asked for
    uint64_t reserved_bytes;  // address space behind it: a plain segment, or the pages that the block touches
    uint32_t device;          // the device that it lies on, by this process's numbers
    bool cached;              // its memory was here already, by an earlier import
};
// Makes a block of another process usable here, on the same device, for that device and those that vram_peer_enable() let reach it.
// Memory that is imported already is not imported again: the same block has the same address. *imported is good until
// vram_import_release(). BAD_INPUT for bytes that are no handle; INVALID_POINTER when its owner gave it back or is gone; UNSUPPORTED with a
// sentence: exported by this very process, on another machine, on a device that this process does not see, out of reach of the kernel's
// permissions (see vram_export_send()); LIMIT: too many open files; OUT_OF_MEMORY: no address space; DRIVER; NO_HOST_MEMORY. error may be
// NULL.
VRAM_API VRAM_NODISCARD enum vram_status vram_import(struct vram_allocator *allocator, const void *handle, size_t size_bytes,
                                                     struct vram_imported *imported, struct vram_error *error);
// Gives one import back; after the last one of its memory that is unmapped, once the device is idle (and no capture is under way: else
// with a later import or release). `address` as vram_import() gave it.
// INVALID_POINTER when it is not imported; DRIVER when the driver refuses (it is tried again later and at the end).
VRAM_API VRAM_NODISCARD enum vram_status vram_import_release(struct vram_allocator *allocator, uint64_t address);

// --- by socket --------------------------------------------------------------------------------------------------------------
// vram_export() and vram_import() through a connected local (AF_UNIX) stream socket: file descriptors travel with the handle, so that it
// works between containers, and where a process may not look into another. Both wait for the other side. The export is over when the call
// is: nothing stays open in the sender. IO when the socket fails.
VRAM_API VRAM_NODISCARD enum vram_status vram_export_send(struct vram_allocator *allocator, uint64_t address, int socket,
                                                          struct vram_error *error);
VRAM_API VRAM_NODISCARD enum vram_status vram_import_receive(struct vram_allocator *allocator, int socket, struct vram_imported *imported,
                                                             struct vram_error *error);

// --- figures ----------------------------------------------------------------------------------------------------------------
struct vram_share_stats {
    uint64_t descriptors;       // open for exported pages
    uint64_t imports;           // mappings of foreign memory
    uint64_t import_references; // how many vram_import_release() they wait for
    uint64_t reserved_bytes;    // address space that imports take
    uint64_t unreleased;        // imports that the driver would not take back yet
};
// All devices. Cannot fail.
VRAM_API void vram_get_share_stats(struct vram_allocator *allocator, struct vram_share_stats *stats);

#ifdef __cplusplus
}
#endif
#endif
