// share.h: sharing memory with other devices and processes; declarations common to the files of this folder.
#ifndef VR_CORE_SHARE_SHARE_H
#define VR_CORE_SHARE_SHARE_H

#include "core/device.h"
#include "vram/share.h"

// --- the handle -------------------------------------------------------------------------------------------------------------
// The handle as it is sent: a header of VRAM_HANDLE_BYTES, then the pages. Uses the machine's byte order, because both processes run on it.
enum vr_handle_kind { VR_HANDLE_PLAIN = 1, VR_HANDLE_PAGES };
struct vr_handle {
    char magic[8];
    uint32_t version;
    uint32_t kind;
    uint64_t process, started; // of the exporting process
    struct vr_host_id host;
    unsigned char uuid[16]; // of the device
    uint64_t size_bytes, requested_bytes;
    uint64_t offset_bytes; // of the block in the shared memory
    uint64_t extent_bytes; // of the shared memory: the segment, or the pages
    uint64_t page_bytes, pages;
    struct vr_cu_ipc_handle plain; // of the segment; VR_HANDLE_PLAIN only
};
_Static_assert(sizeof(struct vr_handle) <= VRAM_HANDLE_BYTES, "the head has its size for good");
struct vr_handle_page {
    uint64_t serial;    // unique among all pages that the process exports
    int32_t descriptor; // number in the exporting process
    uint32_t units;     // length of the page in multiples of page_bytes
};

// Fills in the exporter: magic, version, process and host. UNSUPPORTED if the system cannot identify them.
enum vram_status vr_handle_sign(struct vr_handle *handle, struct vram_error *error);
// Parses untrusted bytes. *pages points into them (unaligned: copy), or is NULL for a plain handle. BAD_INPUT.
enum vram_status vr_handle_parse(const void *bytes, size_t size_bytes, struct vr_handle *handle, const unsigned char **pages,
                                 struct vram_error *error);
struct vr_handle_page vr_handle_page_at(const unsigned char *pages, uint64_t index);

// --- exports ----------------------------------------------------------------------------------------------------------------
// An exported page of an expandable segment. Guarded by the device's locks.
struct vr_exported {
    uint64_t serial; // 0: never exported
    uint32_t exports;
    int32_t descriptor; // valid while exports > 0
};
// Closes the page's descriptor and clears its entry. Call it before the page goes back to the driver. Under all locks.
void vr_exported_forget(struct vr_segment *segment, uint64_t page);
// Returns whether a page of [address, address + size) was exported since it was mapped, so that other processes may use it.
bool vr_is_exported(const struct vr_device *device, const struct vr_segment *segment, uint64_t address, uint64_t size);
// Returns the size of the table, which the first export allocates.
size_t vr_exported_bytes(const struct vr_segment *segment);
// Frees the table of the segment's pages. Call it when the segment is freed.
void vr_exported_release(struct vr_segment *segment);

// --- imports ----------------------------------------------------------------------------------------------------------------
// Imports a parsed handle. descriptors: one per page, of this process, borrowed; NULL: they are taken from the exporting process.
enum vram_status vr_import(struct vram_allocator *allocator, const struct vr_handle *handle, const unsigned char *pages,
                           const int *descriptors, struct vram_imported *imported, struct vram_error *error);
// Gives `peer` access to the device's imports. DRIVER.
enum vram_status vr_imports_allow(struct vr_device *device, uint32_t peer);
// Releases all imports, even those in use. Call it only when the allocator is destroyed.
void vr_imports_release(struct vram_allocator *allocator);

// --- errors -----------------------------------------------------------------------------------------------------------------

// Reports a failed driver call in *error: its name and its result. Returns DRIVER.
VR_INLINE enum vram_status vr_driver_failed(struct vram_error *error, const char *call, vr_cu_result result) {
    (void)vr_fail(error, VRAM_DRIVER, VRAM_NO_OFFSET, "%s: %s", call, vr_cu_result_name(result));
    if (error != NULL) error->driver_result = result;
    return VRAM_DRIVER;
}

#endif
