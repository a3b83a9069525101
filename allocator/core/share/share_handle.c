// Signs and parses handles.
#include "core/share/share.h"

static const char magic[8] = "vramshr";
enum { VERSION = 2 };
// More memory than any device has. Keeps every product of page counts and sizes within 64 bits.
static const uint64_t most_bytes = (uint64_t)1 << 56;

enum vram_status vr_handle_sign(struct vr_handle *handle, struct vram_error *error) {
    memcpy(handle->magic, magic, sizeof magic);
    handle->version = VERSION;
    handle->process = vr_os_process_id();
    if (vr_os_host_id(&handle->host) == VRAM_OK && vr_os_process_started(handle->process, &handle->started) == VRAM_OK) return VRAM_OK;
    return vr_fail(error, VRAM_UNSUPPORTED, VRAM_NO_OFFSET, "cannot identify this process: /proc is missing");
}

static const char *fault_of(const struct vr_handle *handle, size_t size_bytes) {
    const size_t rest = size_bytes - VRAM_HANDLE_BYTES;
    if (handle->version != VERSION) return "the handle was created by another version of this library";
    if (handle->kind != VR_HANDLE_PLAIN && handle->kind != VR_HANDLE_PAGES) return "the handle has an unknown kind";
    if (handle->extent_bytes > most_bytes || handle->size_bytes == 0 || handle->size_bytes > handle->extent_bytes ||
        handle->offset_bytes > handle->extent_bytes - handle->size_bytes)
        return "the handle's block is outside its segment";
    if (handle->kind == VR_HANDLE_PLAIN) return handle->pages == 0 && rest == 0 ? NULL : "the handle has the wrong length";
    if (rest / sizeof(struct vr_handle_page) != handle->pages || rest % sizeof(struct vr_handle_page) != 0 || handle->pages == 0)
        return "the handle has the wrong length";
    if (handle->page_bytes == 0 || handle->extent_bytes % handle->page_bytes != 0) return "the handle's pages do not cover its segment";
    return NULL;
}

static bool makes_up(const struct vr_handle *handle, const unsigned char *pages) {
    uint64_t left = handle->extent_bytes / handle->page_bytes;
    for (uint64_t i = 0; i < handle->pages; i++) {
        const uint32_t units = vr_handle_page_at(pages, i).units;
        if (units == 0 || units > left) return false;
        left -= units;
    }
    return left == 0;
}

enum vram_status vr_handle_parse(const void *bytes, size_t size_bytes, struct vr_handle *handle, const unsigned char **pages,
                                 struct vram_error *error) {
    struct vr_handle read;
    if (size_bytes < VRAM_HANDLE_BYTES) return vr_fail(error, VRAM_BAD_INPUT, size_bytes, "not a handle of a shared block");
    memcpy(&read, bytes, sizeof read);
    if (memcmp(read.magic, magic, sizeof magic) != 0) return vr_fail(error, VRAM_BAD_INPUT, 0, "not a handle of a shared block");
    const char *fault = fault_of(&read, size_bytes);
    if (fault != NULL) return vr_fail(error, VRAM_BAD_INPUT, 0, "%s", fault);
    const unsigned char *listed = read.kind == VR_HANDLE_PAGES ? (const unsigned char *)bytes + VRAM_HANDLE_BYTES : NULL;
    if (listed != NULL && !makes_up(&read, listed)) return vr_fail(error, VRAM_BAD_INPUT, 0, "the handle's pages do not cover its segment");
    *handle = read;
    *pages = listed;
    return VRAM_OK;
}

struct vr_handle_page vr_handle_page_at(const unsigned char *pages, uint64_t index) {
    struct vr_handle_page page;
    memcpy(&page, pages + (size_t)index * sizeof page, sizeof page);
    return page;
}
