// Exports and imports through a local socket. Sends the handle's length, the handle, and its pages' descriptors.
#include "core/share/share.h"

static const uint64_t most_bytes = (uint64_t)1 << 26; // the largest handle: 4 million pages

static enum vram_status socket_failed(struct vram_error *error, enum vram_status status) {
    const char *sentence =
        status == VRAM_IO ? "the other end of the socket is closed, or the socket is not a Unix socket" : vram_status_text(status);
    return vr_fail(error, status, VRAM_NO_OFFSET, "%s", sentence);
}

static enum vram_status send_pages(int socket, const unsigned char *pages, uint64_t count) {
    int *descriptors = malloc((size_t)count * sizeof *descriptors);
    if (descriptors == NULL) return VRAM_NO_HOST_MEMORY;
    for (uint64_t i = 0; i < count; i++) descriptors[i] = vr_handle_page_at(pages, i).descriptor;
    const enum vram_status status = vr_os_send_descriptors(socket, descriptors, (size_t)count);
    free(descriptors);
    return status;
}

static enum vram_status send_handle(int socket, const void *bytes, uint64_t size_bytes, struct vram_error *error) {
    struct vr_handle handle;
    const unsigned char *pages = NULL;
    VR_TRY(vr_handle_parse(bytes, (size_t)size_bytes, &handle, &pages, error));
    enum vram_status status = vr_os_send(socket, &size_bytes, sizeof size_bytes);
    if (status == VRAM_OK) status = vr_os_send(socket, bytes, (size_t)size_bytes);
    if (status == VRAM_OK && pages != NULL) status = send_pages(socket, pages, handle.pages);
    return status == VRAM_OK ? VRAM_OK : socket_failed(error, status);
}

enum vram_status vram_export_send(struct vram_allocator *allocator, uint64_t address, int socket, struct vram_error *error) {
    VR_REQUIRE_OR_FAIL(error, allocator);
    size_t size_bytes = 0;
    enum vram_status status = vram_export_size(allocator, address, &size_bytes);
    if (status != VRAM_OK) return socket_failed(error, status);
    void *bytes = malloc(size_bytes);
    if (bytes == NULL) return socket_failed(error, VRAM_NO_HOST_MEMORY);
    status = vram_export(allocator, address, bytes, size_bytes, &size_bytes, error);
    if (status == VRAM_OK) {
        status = send_handle(socket, bytes, size_bytes, error);
        // The message holds its own copies of the descriptors, so these can be closed.
        const enum vram_status ended = vram_export_end(allocator, address);
        if (status == VRAM_OK && ended != VRAM_OK) status = socket_failed(error, ended);
    }
    free(bytes);
    return status;
}

static enum vram_status receive_handle(int socket, void **bytes, size_t *size_bytes, struct vram_error *error) {
    uint64_t announced = 0;
    enum vram_status status = vr_os_receive(socket, &announced, sizeof announced);
    if (status != VRAM_OK) return socket_failed(error, status);
    if (announced < VRAM_HANDLE_BYTES || announced > most_bytes)
        return vr_fail(error, VRAM_BAD_INPUT, 0, "the data from the socket is not a handle of a shared block");
    void *read = malloc((size_t)announced);
    if (read == NULL) return socket_failed(error, VRAM_NO_HOST_MEMORY);
    status = vr_os_receive(socket, read, (size_t)announced);
    if (status != VRAM_OK) {
        free(read);
        return socket_failed(error, status);
    }
    *bytes = read;
    *size_bytes = (size_t)announced;
    return VRAM_OK;
}

static enum vram_status import_pages(struct vram_allocator *allocator, int socket, const struct vr_handle *handle,
                                     const unsigned char *pages, struct vram_imported *imported, struct vram_error *error) {
    int *descriptors = malloc((size_t)handle->pages * sizeof *descriptors);
    if (descriptors == NULL) return socket_failed(error, VRAM_NO_HOST_MEMORY);
    enum vram_status status = vr_os_receive_descriptors(socket, descriptors, (size_t)handle->pages);
    if (status == VRAM_OK) {
        status = vr_import(allocator, handle, pages, descriptors, imported, error);
        for (uint64_t i = 0; i < handle->pages; i++) vr_os_close_descriptor(descriptors[i]);
    } else {
        status = socket_failed(error, status);
    }
    free(descriptors);
    return status;
}

enum vram_status vram_import_receive(struct vram_allocator *allocator, int socket, struct vram_imported *imported,
                                     struct vram_error *error) {
    VR_REQUIRE_OR_FAIL(error, allocator && imported);
    void *bytes = NULL;
    size_t size_bytes = 0;
    struct vr_handle handle;
    const unsigned char *pages = NULL;
    VR_TRY(receive_handle(socket, &bytes, &size_bytes, error));
    enum vram_status status = vr_handle_parse(bytes, size_bytes, &handle, &pages, error);
    if (status == VRAM_OK && pages == NULL)
        status = vr_import(allocator, &handle, NULL, NULL, imported, error);
    else if (status == VRAM_OK)
        status = import_pages(allocator, socket, &handle, pages, imported, error);
    free(bytes);
    return status;
}
