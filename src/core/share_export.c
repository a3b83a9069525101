// share_export.c: handles of live blocks. Plain memory has a handle of its segment by the driver; of an expandable segment every page that
// the block touches has a file descriptor, made once and counted (allocator-behaviour 6.8).
#include "core/serve.h"
#include "core/share.h"
#include "core/source.h"

enum { PAGE_BYTES = sizeof(struct vr_handle_page) };

// A live block under all locks of its device, with the context current; a raw one needs no lock.
struct subject {
    struct vr_device *device;
    struct vr_context_guard guard;
    bool locked;
    bool foreign; // memory from functions of the user's own
    struct vr_segment *segment;
    uint64_t base, extent_bytes; // of the plain segment
    uint64_t address, size_bytes, requested_bytes;
    uint64_t first_page, pages; // expandable only
};

static void describe(struct subject *subject, struct vram_allocator *allocator, uint32_t block) {
    const struct vr_block *item = vr_block_at(allocator, block);
    const struct vram_pool *owner = vr_shard_of(allocator, item)->owner;
    struct vr_segment *segment = vr_segment_at(allocator, item->segment);
    subject->segment = segment;
    subject->address = item->address;
    subject->size_bytes = item->size;
    subject->requested_bytes = item->requested;
    subject->base = segment->address;
    subject->extent_bytes = segment->size;
    subject->foreign = owner != NULL && owner->options.allocate != NULL;
    if (!segment->expandable) return;
    const uint64_t offset = item->address - segment->address;
    subject->first_page = offset / segment->page_size;
    subject->pages = (offset + item->size - 1) / segment->page_size + 1 - subject->first_page;
    subject->base = segment->address + subject->first_page * segment->page_size;
    subject->extent_bytes = subject->pages * segment->page_size;
}

static void close_subject(struct subject *subject) {
    if (subject->locked) vr_device_unlock(subject->device);
    vr_context_leave(&subject->guard);
}

static enum vram_status open_subject(struct vram_allocator *allocator, uint64_t address, struct subject *subject) {
    struct vr_raw_block raw;
    *subject = (struct subject){.device = NULL};
    const uint32_t block = vr_find_and_lock_device(allocator, address, &subject->device);
    if (block != 0) {
        subject->locked = true;
        describe(subject, allocator, block);
    } else if (vr_raw_find(allocator, address, &raw)) {
        if (raw.driver_pool) return VRAM_UNSUPPORTED;
        subject->base = subject->address = raw.address;
        subject->extent_bytes = subject->size_bytes = subject->requested_bytes = raw.size;
        VR_TRY(vr_device_get(allocator, raw.device, &subject->device));
    } else {
        return VRAM_INVALID_POINTER;
    }
    const enum vram_status status = vr_context_enter(subject->device, &subject->guard);
    if (status != VRAM_OK && subject->locked) vr_device_unlock(subject->device);
    return status;
}

// --- pages ----------------------------------------------------------------------------------------------------------------------

static size_t table_bytes(const struct vr_segment *segment) {
    return (size_t)(segment->size / segment->page_size) * sizeof *segment->exported;
}

void vr_exported_forget(struct vr_segment *segment, uint64_t page) {
    if (segment->exported == NULL) return;
    struct vr_exported *exported = &segment->exported[page];
    if (exported->exports != 0) vr_os_close_descriptor(exported->descriptor);
    *exported = (struct vr_exported){.serial = 0};
}

void vr_exported_release(struct vr_segment *segment) {
    if (segment->exported != NULL) vr_os_unreserve(segment->exported, table_bytes(segment));
    segment->exported = NULL;
}

static enum vram_status export_page(struct subject *subject, uint64_t page, struct vram_error *error) {
    static _Atomic uint64_t serials;
    struct vr_exported *exported = &subject->segment->exported[page];
    if (exported->exports == 0) {
        int descriptor = -1;
        const vr_cu_result result = vr_cu(subject->device->allocator->driver, mem_export_to_shareable_handle, &descriptor,
                                          subject->segment->pages[page], VR_CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);
        if (result == VR_CU_OPERATING_SYSTEM) {
            (void)vr_driver_failed(error, "cuMemExportToShareableHandle (every page takes a file descriptor: see ulimit -n)", result);
            return VRAM_DRIVER;
        }
        if (result != VR_CU_SUCCESS) return vr_driver_failed(error, "cuMemExportToShareableHandle", result);
        exported->descriptor = descriptor;
        if (exported->serial == 0) exported->serial = atomic_fetch_add_explicit(&serials, 1, memory_order_relaxed) + 1;
    }
    exported->exports++;
    return VRAM_OK;
}

static void end_page(struct vr_exported *exported) {
    if (--exported->exports == 0) vr_os_close_descriptor(exported->descriptor);
}

static enum vram_status export_pages(struct subject *subject, unsigned char *to, struct vram_error *error) {
    struct vr_segment *segment = subject->segment;
    if (subject->device->handle_types == 0) {
        return vr_fail(error, VRAM_UNSUPPORTED, VRAM_NO_OFFSET,
                       "pages of expandable segments cannot be shared: the driver has no file descriptors for them on device %u, or "
                       "TORCH_CUDA_EXPANDABLE_SEGMENTS_IPC says no",
                       subject->device->ordinal);
    }
    if (segment->exported == NULL) {
        void *table = NULL;
        const enum vram_status status = vr_os_reserve(table_bytes(segment), &table);
        if (status != VRAM_OK) return vr_fail(error, status, VRAM_NO_OFFSET, "%s", vram_status_text(status));
        segment->exported = table;
    }
    for (uint64_t i = 0; i < subject->pages; i++) {
        const uint64_t page = subject->first_page + i;
        const enum vram_status status = export_page(subject, page, error);
        if (status != VRAM_OK) {
            while (i-- > 0) end_page(&segment->exported[subject->first_page + i]);
            return status;
        }
        const struct vr_handle_page sent = {.serial = segment->exported[page].serial, .descriptor = segment->exported[page].descriptor};
        memcpy(to + i * PAGE_BYTES, &sent, sizeof sent);
    }
    return VRAM_OK;
}

// --- the calls ------------------------------------------------------------------------------------------------------------------

static enum vram_status export_plain(const struct subject *subject, struct vr_handle *head, struct vram_error *error) {
    const vr_cu_result result = vr_cu(subject->device->allocator->driver, ipc_get_mem_handle, &head->plain, subject->base);
    if (result == VR_CU_SUCCESS) return VRAM_OK;
    (void)vr_driver_failed(error, "cuIpcGetMemHandle", result);
    if (result != VR_CU_NOT_SUPPORTED && result != VR_CU_INVALID_VALUE) return VRAM_DRIVER;
    (void)vr_fail(error, VRAM_UNSUPPORTED, VRAM_NO_OFFSET, "the driver cannot share this memory: %s", vr_cu_result_name(result));
    if (error != NULL) error->driver_result = result;
    return VRAM_UNSUPPORTED;
}

static size_t size_of_handle(const struct subject *subject) { return VRAM_HANDLE_BYTES + (size_t)subject->pages * PAGE_BYTES; }

static enum vram_status write_handle(struct subject *subject, unsigned char *to, size_t capacity, size_t *size_bytes,
                                     struct vram_error *error) {
    const size_t wanted = size_of_handle(subject);
    struct vr_handle head = {
        .kind = subject->pages == 0 ? VR_HANDLE_PLAIN : VR_HANDLE_PAGES,
        .size_bytes = subject->size_bytes,
        .requested_bytes = subject->requested_bytes,
        .offset_bytes = subject->address - subject->base,
        .extent_bytes = subject->extent_bytes,
        .page_bytes = subject->pages == 0 ? 0 : subject->segment->page_size,
        .pages = subject->pages,
    };
    if (subject->foreign)
        return vr_fail(error, VRAM_UNSUPPORTED, VRAM_NO_OFFSET, "memory of a pool with functions of its own cannot be shared");
    if (capacity < wanted)
        return vr_fail(error, VRAM_INVALID_ARGUMENT, VRAM_NO_OFFSET, "the handle of this block takes %llu bytes",
                       (unsigned long long)wanted);
    VR_TRY(vr_handle_sign(&head, error));
    const vr_cu_result result = vr_cu(subject->device->allocator->driver, device_get_uuid, head.uuid, (int)subject->device->ordinal);
    if (result != VR_CU_SUCCESS) return vr_driver_failed(error, "cuDeviceGetUuid", result);
    if (subject->pages == 0)
        VR_TRY(export_plain(subject, &head, error));
    else
        VR_TRY(export_pages(subject, to + VRAM_HANDLE_BYTES, error));
    memset(to, 0, VRAM_HANDLE_BYTES);
    memcpy(to, &head, sizeof head);
    *size_bytes = wanted;
    return VRAM_OK;
}

enum vram_status vram_export_size(struct vram_allocator *allocator, uint64_t address, size_t *size_bytes) {
    VR_REQUIRE(allocator && size_bytes);
    struct subject subject;
    VR_TRY(open_subject(allocator, address, &subject));
    *size_bytes = size_of_handle(&subject);
    close_subject(&subject);
    return VRAM_OK;
}

enum vram_status vram_export(struct vram_allocator *allocator, uint64_t address, void *handle, size_t capacity, size_t *size_bytes,
                             struct vram_error *error) {
    VR_REQUIRE_OR_FAIL(error, allocator && handle && size_bytes);
    struct subject subject;
    enum vram_status status = open_subject(allocator, address, &subject);
    if (status != VRAM_OK) return vr_fail(error, status, VRAM_NO_OFFSET, "%s", vram_status_text(status));
    status = write_handle(&subject, handle, capacity, size_bytes, error);
    close_subject(&subject);
    return status;
}

static enum vram_status end_pages(const struct subject *subject) {
    struct vr_exported *exported = subject->segment->exported;
    for (uint64_t i = 0; i < subject->pages; i++)
        if (exported == NULL || exported[subject->first_page + i].exports == 0) return VRAM_INVALID_ARGUMENT;
    for (uint64_t i = 0; i < subject->pages; i++) end_page(&exported[subject->first_page + i]);
    return VRAM_OK;
}

enum vram_status vram_export_end(struct vram_allocator *allocator, uint64_t address) {
    VR_REQUIRE(allocator);
    struct subject subject;
    VR_TRY(open_subject(allocator, address, &subject));
    const enum vram_status status = subject.pages == 0 ? VRAM_OK : end_pages(&subject);
    close_subject(&subject);
    return status;
}
