// Exports handles of live blocks. For plain memory, the driver makes a handle of the segment. In a segment of pages, every page that the
// block touches has a counted file descriptor, made at the first export (allocator.md §peers-and-sharing).
#include "core/source/raw.h"
#include "core/share/share.h"
#include "core/source/source_ops.h"
#include "core/verifier.h"

enum { PAGE_BYTES = sizeof(struct vr_handle_page) };

// A live block, with all locks of its device held and the device's context current. A raw block needs no lock.
struct shared_block {
    struct vr_device *device;
    struct vr_context_guard guard;
    bool locked;
    const char *refusal; // why this source's memory cannot be shared; NULL: it can
    struct vr_segment *segment;
    uint64_t base, extent_bytes; // of the shared memory: the segment, or the block's pages
    uint64_t address, size_bytes, requested_bytes;
    uint64_t pages; // 0: plain
};

// A mapped page: its handle, its index in the table of exports, and its length.
struct mapped_page {
    uint64_t handle, entry, bytes;
};

static struct mapped_page mapped_at(const struct vr_device *device, const struct vr_segment *segment, uint64_t address) {
    uint64_t base = address - (address - segment->address) % segment->page_size, bytes = segment->page_size;
    if (segment->source->page_at != NULL) {
        const uint64_t handle = segment->source->page_at(device, segment, address, &base, &bytes);
        return (struct mapped_page){handle, (base - segment->address) / segment->page_size, bytes};
    }
    const uint64_t page = (base - segment->address) / segment->page_size;
    return (struct mapped_page){segment->pages[page], page, bytes};
}

bool vr_is_exported(const struct vr_device *device, const struct vr_segment *segment, uint64_t address, uint64_t size) {
    if (segment->exported == NULL) return false;
    for (uint64_t at = address; at < address + size;) {
        const struct mapped_page page = mapped_at(device, segment, at);
        if (segment->exported[page.entry].serial != 0) return true;
        at = segment->address + page.entry * segment->page_size + page.bytes;
    }
    return false;
}

static const char *refusal_of(const struct vr_source_ops *source) {
    if (source->sharing != VR_SHARING_NONE) return NULL;
    return source->vacate != NULL ? "segments that can sleep (sleepable:True, pools with a tag) cannot be shared; with "
                                    "expandable_segments:True or paged:True their pages can be shared until they sleep"
                                  : "memory from a pool's own allocation functions cannot be shared";
}

static void describe_shared(struct shared_block *shared, struct vram_allocator *allocator, uint32_t block) {
    const struct vr_block *item = vr_block_at(allocator, block);
    struct vr_segment *segment = vr_segment_at(allocator, item->segment);
    shared->segment = segment;
    shared->address = item->address;
    shared->size_bytes = item->size;
    shared->requested_bytes = item->requested;
    const uint64_t front = segment->front ? VR_REDZONE_BYTES : 0;
    shared->base = segment->address - front;
    shared->extent_bytes = segment->size + front;
    shared->refusal = refusal_of(segment->source);
    if (segment->source->sharing != VR_SHARING_PAGES) return;
    uint64_t at = segment->address + mapped_at(shared->device, segment, item->address).entry * segment->page_size;
    shared->base = at;
    for (; at < item->address + item->size; at += mapped_at(shared->device, segment, at).bytes) shared->pages++;
    shared->extent_bytes = at - shared->base;
}

static void close_shared(struct shared_block *shared) {
    if (shared->locked) vr_device_unlock(shared->device);
    vr_context_leave(&shared->guard);
}

static enum vram_status open_shared(struct vram_allocator *allocator, uint64_t address, struct shared_block *shared) {
    struct vr_raw_block raw;
    *shared = (struct shared_block){.device = NULL};
    const uint32_t block = vr_find_and_lock_device(allocator, address, &shared->device);
    if (block != 0) {
        if (vr_segment_at(allocator, vr_block_at(allocator, block)->segment)->vacant) {
            vr_device_unlock(shared->device);
            return VRAM_ASLEEP;
        }
        shared->locked = true;
        describe_shared(shared, allocator, block);
    } else if (vr_raw_find(allocator, address, &raw)) {
        if (raw.driver_pool) return VRAM_UNSUPPORTED;
        shared->address = raw.address;
        shared->base = raw.address - allocator->front_redzone;
        shared->size_bytes = shared->requested_bytes = raw.size;
        shared->extent_bytes = raw.size + 2 * allocator->front_redzone;
        VR_TRY(vr_device_get(allocator, raw.device, &shared->device));
    } else {
        return VRAM_INVALID_POINTER;
    }
    const enum vram_status status = vr_context_enter(shared->device, &shared->guard);
    if (status != VRAM_OK && shared->locked) vr_device_unlock(shared->device);
    return status;
}

// --- pages ----------------------------------------------------------------------------------------------------------------------

static enum vram_status export_page(struct shared_block *shared, const struct mapped_page *page, struct vram_error *error) {
    static _Atomic uint64_t serials;
    struct vr_exported *exported = &shared->segment->exported[page->entry];
    if (exported->exports == 0) {
        int descriptor = -1;
        const vr_cu_result result = vr_cu(shared->device->allocator->driver, mem_export_to_shareable_handle, &descriptor, page->handle,
                                          VR_CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);
        if (result == VR_CU_OPERATING_SYSTEM) {
            (void)vr_driver_failed(error, "cuMemExportToShareableHandle (each page needs a file descriptor; see ulimit -n)", result);
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

// Ends one export of each of the block's first `count` pages.
static void end_first(const struct shared_block *shared, uint64_t count) {
    uint64_t at = shared->base;
    for (uint64_t i = 0; i < count; i++) {
        const struct mapped_page page = mapped_at(shared->device, shared->segment, at);
        end_page(&shared->segment->exported[page.entry]);
        at += page.bytes;
    }
}

static enum vram_status export_pages(struct shared_block *shared, unsigned char *to, struct vram_error *error) {
    struct vr_segment *segment = shared->segment;
    if (shared->device->physical.handle_types == 0) {
        return vr_fail(error, VRAM_UNSUPPORTED, VRAM_NO_OFFSET,
                       "pages of expandable segments cannot be shared: the driver provides no file descriptors for them on device %u, or "
                       "TORCH_CUDA_EXPANDABLE_SEGMENTS_IPC disables them",
                       shared->device->ordinal);
    }
    if (segment->exported == NULL) {
        void *table = NULL;
        const enum vram_status status = vr_os_reserve(vr_exported_bytes(segment), &table);
        if (status != VRAM_OK) return vr_fail(error, status, VRAM_NO_OFFSET, "%s", vram_status_text(status));
        segment->exported = table;
    }
    uint64_t at = shared->base;
    for (uint64_t i = 0; i < shared->pages; i++) {
        const struct mapped_page page = mapped_at(shared->device, segment, at);
        const enum vram_status status = export_page(shared, &page, error);
        if (status != VRAM_OK) {
            end_first(shared, i);
            return status;
        }
        const struct vr_exported *exported = &segment->exported[page.entry];
        const struct vr_handle_page sent = {
            .serial = exported->serial, .descriptor = exported->descriptor, .units = (uint32_t)(page.bytes / segment->page_size)};
        memcpy(to + i * PAGE_BYTES, &sent, sizeof sent);
        at += page.bytes;
    }
    return VRAM_OK;
}

// --- the calls ------------------------------------------------------------------------------------------------------------------

static enum vram_status export_plain(const struct shared_block *shared, struct vr_handle *head, struct vram_error *error) {
    const vr_cu_result result = vr_cu(shared->device->allocator->driver, ipc_get_mem_handle, &head->plain, shared->base);
    if (result == VR_CU_SUCCESS) return VRAM_OK;
    (void)vr_driver_failed(error, "cuIpcGetMemHandle", result);
    if (result != VR_CU_NOT_SUPPORTED && result != VR_CU_INVALID_VALUE) return VRAM_DRIVER;
    (void)vr_fail(error, VRAM_UNSUPPORTED, VRAM_NO_OFFSET, "the driver cannot share this memory: %s", vr_cu_result_name(result));
    if (error != NULL) error->driver_result = result;
    return VRAM_UNSUPPORTED;
}

static size_t size_of_handle(const struct shared_block *shared) { return VRAM_HANDLE_BYTES + (size_t)shared->pages * PAGE_BYTES; }

static enum vram_status write_handle(struct shared_block *shared, unsigned char *to, size_t capacity, size_t *size_bytes,
                                     struct vram_error *error) {
    const size_t wanted = size_of_handle(shared);
    struct vr_handle head = {
        .kind = shared->pages == 0 ? VR_HANDLE_PLAIN : VR_HANDLE_PAGES,
        .size_bytes = shared->size_bytes,
        .requested_bytes = shared->requested_bytes,
        .offset_bytes = shared->address - shared->base,
        .extent_bytes = shared->extent_bytes,
        .page_bytes = shared->pages == 0 ? 0 : shared->segment->page_size,
        .pages = shared->pages,
    };
    if (shared->refusal != NULL) return vr_fail(error, VRAM_UNSUPPORTED, VRAM_NO_OFFSET, "%s", shared->refusal);
    if (capacity < wanted)
        return vr_fail(error, VRAM_INVALID_ARGUMENT, VRAM_NO_OFFSET, "the handle of this block needs %llu bytes",
                       (unsigned long long)wanted);
    VR_TRY(vr_handle_sign(&head, error));
    const vr_cu_result result = vr_cu(shared->device->allocator->driver, device_get_uuid, head.uuid, (int)shared->device->ordinal);
    if (result != VR_CU_SUCCESS) return vr_driver_failed(error, "cuDeviceGetUuid", result);
    if (shared->pages == 0)
        VR_TRY(export_plain(shared, &head, error));
    else
        VR_TRY(export_pages(shared, to + VRAM_HANDLE_BYTES, error));
    memset(to, 0, VRAM_HANDLE_BYTES);
    memcpy(to, &head, sizeof head);
    *size_bytes = wanted;
    return VRAM_OK;
}

enum vram_status vram_export_size(struct vram_allocator *allocator, uint64_t address, size_t *size_bytes) {
    VR_REQUIRE(allocator && size_bytes);
    struct shared_block shared;
    VR_TRY(open_shared(allocator, address, &shared));
    *size_bytes = size_of_handle(&shared);
    close_shared(&shared);
    return VRAM_OK;
}

enum vram_status vram_export(struct vram_allocator *allocator, uint64_t address, void *handle, size_t capacity, size_t *size_bytes,
                             struct vram_error *error) {
    VR_REQUIRE_OR_FAIL(error, allocator && handle && size_bytes);
    struct shared_block shared;
    enum vram_status status = open_shared(allocator, address, &shared);
    if (status != VRAM_OK) return vr_fail(error, status, VRAM_NO_OFFSET, "%s", vram_status_text(status));
    status = write_handle(&shared, handle, capacity, size_bytes, error);
    close_shared(&shared);
    return status;
}

static enum vram_status end_pages(const struct shared_block *shared) {
    const struct vr_exported *exported = shared->segment->exported;
    uint64_t at = shared->base;
    for (uint64_t i = 0; i < shared->pages; i++) {
        const struct mapped_page page = mapped_at(shared->device, shared->segment, at);
        if (exported == NULL || exported[page.entry].exports == 0) return VRAM_INVALID_ARGUMENT;
        at += page.bytes;
    }
    end_first(shared, shared->pages);
    return VRAM_OK;
}

enum vram_status vram_export_end(struct vram_allocator *allocator, uint64_t address) {
    VR_REQUIRE(allocator);
    struct shared_block shared;
    VR_TRY(open_shared(allocator, address, &shared));
    const enum vram_status status = shared.pages == 0 ? VRAM_OK : end_pages(&shared);
    close_shared(&shared);
    return status;
}
