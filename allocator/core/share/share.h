// share.h: memory for other devices and other processes: what the files of sharing have in common.
#ifndef VR_CORE_SHARE_SHARE_H
#define VR_CORE_SHARE_SHARE_H

#include "core/device.h"
#include "vram/share.h"

// --- the handle -------------------------------------------------------------------------------------------------------------
// As it is sent: a head of VRAM_HANDLE_BYTES, then the pages. Both ends are processes of one machine: the byte order is its own.
enum vr_handle_kind { VR_HANDLE_PLAIN = 1, VR_HANDLE_PAGES };
struct vr_handle {
    char magic[8];
    uint32_t version;
    uint32_t kind;
    uint64_t process, started; // of the exporter
    struct vr_host_id host;
    unsigned char uuid[16]; // of the device
    uint64_t size_bytes, requested_bytes;
    uint64_t offset_bytes; // of the block in what is shared
    uint64_t extent_bytes; // of what is shared: the segment, or the pages
    uint64_t page_bytes, pages;
    struct vr_cu_ipc_handle plain; // of the segment
};
_Static_assert(sizeof(struct vr_handle) <= VRAM_HANDLE_BYTES, "the head has its size for good");
struct vr_handle_page {
    uint64_t serial;    // no other page of the exporter ever has it
    int32_t descriptor; // in the exporter
    uint32_t units;     // it is so many times page_bytes long
};

// Fills in who exports: magic, version, process and host. UNSUPPORTED where the system does not tell.
enum vram_status vr_handle_sign(struct vr_handle *handle, struct vram_error *error);
// Reads foreign bytes. *pages points into them (unaligned: copy), NULL for a plain one. BAD_INPUT.
enum vram_status vr_handle_parse(const void *bytes, size_t size_bytes, struct vr_handle *handle, const unsigned char **pages,
                                 struct vram_error *error);
struct vr_handle_page vr_handle_page_at(const unsigned char *pages, uint64_t index);

// --- exports ----------------------------------------------------------------------------------------------------------------
// A page of an expandable segment as others may have it. Guarded by the device's locks.
struct vr_exported {
    uint64_t serial; // 0: never exported
    uint32_t exports;
    int32_t descriptor; // while exports > 0
};
// The page is about to go back to the driver: closes its descriptor. Under all locks.
void vr_exported_forget(struct vr_segment *segment, uint64_t page);
// Whether a page of [address, address + size) was exported since it is mapped there: other processes may have it.
bool vr_is_exported(const struct vr_device *device, const struct vr_segment *segment, uint64_t address, uint64_t size);
// The size of the table, which is made at the first export.
size_t vr_exported_bytes(const struct vr_segment *segment);
// The segment goes: so does the table of its pages.
void vr_exported_release(struct vr_segment *segment);

// --- imports ----------------------------------------------------------------------------------------------------------------
// Imports a handle that was parsed. descriptors: of this process, borrowed, one per page; NULL: they are taken from the exporter.
enum vram_status vr_import(struct vram_allocator *allocator, const struct vr_handle *handle, const unsigned char *pages,
                           const int *descriptors, struct vram_imported *imported, struct vram_error *error);
// Lets `peer` reach what is imported on the device. DRIVER.
enum vram_status vr_imports_allow(struct vr_device *device, uint32_t peer);
// At the end: takes everything down, whoever still uses it.
void vr_imports_release(struct vram_allocator *allocator);

// --- errors -----------------------------------------------------------------------------------------------------------------

// A driver call failed: the error says which and how. DRIVER.
VR_INLINE enum vram_status vr_driver_failed(struct vram_error *error, const char *call, vr_cu_result result) {
    (void)vr_fail(error, VRAM_DRIVER, VRAM_NO_OFFSET, "%s: %s", call, vr_cu_result_name(result));
    if (error != NULL) error->driver_result = result;
    return VRAM_DRIVER;
}

#endif
