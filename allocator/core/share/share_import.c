// Imports blocks of other processes. Each segment or run of pages is imported once, however many blocks are in it, and its users are
// counted. It takes its whole size in address space.
#include "core/share/share.h"

// One import. It is taken down step by step, so that a step that the driver refuses can be retried later.
struct vr_import_entry {
    uint64_t process, started; // of the exporting process
    struct vr_device *device;
    enum vr_handle_kind kind;
    struct vr_cu_ipc_handle plain;
    uint64_t references; // 0: to be taken down
    uint64_t base;       // 0: nothing is reserved or opened
    uint64_t extent_bytes;
    uint64_t page_bytes;
    uint64_t pages;  // 0: plain
    uint64_t mapped; // the number of leading pages that are mapped
    uint64_t mapped_bytes;
    uint64_t handle; // of a page that is being mapped; 0: none
    struct {
        uint64_t serial, bytes;
    } runs[]; // the pages
};

static enum vram_status refuse_import(struct vram_error *error, enum vram_status status, const char *sentence) {
    return vr_fail(error, status, VRAM_NO_OFFSET, "%s", sentence);
}

// --- taking down ----------------------------------------------------------------------------------------------------------------

static enum vram_status release_handle(struct vr_import_entry *entry) {
    if (entry->handle == 0) return VRAM_OK;
    VR_TRY(vr_driver_status(vr_cu(entry->device->allocator->driver, mem_release, entry->handle)));
    entry->handle = 0;
    return VRAM_OK;
}

static enum vram_status unmap_pages(struct vr_import_entry *entry) {
    struct vram_driver *driver = entry->device->allocator->driver;
    VR_TRY(release_handle(entry));
    for (; entry->mapped > 0; entry->mapped--) {
        const uint64_t bytes = entry->runs[entry->mapped - 1].bytes, address = entry->base + entry->mapped_bytes - bytes;
        VR_TRY(vr_driver_status(vr_cu(driver, mem_unmap, address, bytes)));
        entry->mapped_bytes -= bytes;
    }
    return vr_driver_status(vr_cu(driver, mem_address_free, entry->base, entry->extent_bytes));
}

// Waits for the device, whose work may still use the memory, then unmaps it. REJECTED while a stream captures, because waiting is forbidden
// then; a later sweep retries.
static enum vram_status take_down(struct vr_import_entry *entry) {
    struct vr_device *device = entry->device;
    struct vr_context_guard guard;
    if (entry->base == 0) return VRAM_OK;
    if ((atomic_load_explicit(&device->gate, memory_order_relaxed) & VR_GATE_CAPTURE) != 0) return VRAM_REJECTED;
    VR_TRY(vr_context_enter(device, &guard));
    struct vram_driver *driver = device->allocator->driver;
    enum vram_status status = vr_driver_status(vr_cu(driver, ctx_synchronize, 0));
    if (status == VRAM_OK && entry->kind == VR_HANDLE_PLAIN)
        status = vr_driver_status(vr_cu(driver, ipc_close_mem_handle, entry->base));
    else if (status == VRAM_OK)
        status = unmap_pages(entry);
    if (status == VRAM_OK) entry->base = 0;
    vr_context_leave(&guard);
    return status;
}

// Takes down unreferenced imports. Returns the driver's first error, or OK.
static enum vram_status sweep_locked(struct vr_imports *imports) {
    enum vram_status first = VRAM_OK;
    for (size_t i = imports->count; i-- > 0;) {
        struct vr_import_entry *entry = imports->items[i];
        if (entry->references != 0) continue;
        const enum vram_status status = take_down(entry);
        if (status == VRAM_OK) {
            free(entry);
            imports->items[i] = imports->items[--imports->count];
        } else if (first == VRAM_OK && status != VRAM_REJECTED) {
            first = status;
        }
    }
    return first;
}

void vr_imports_release(struct vram_allocator *allocator) {
    struct vr_imports *imports = &allocator->imports;
    vr_mutex_lock(&imports->mutex);
    for (size_t i = 0; i < imports->count; i++) imports->items[i]->references = 0;
    for (int tries = 0; imports->count != 0 && tries < VR_CU_TRIES; tries++) (void)sweep_locked(imports);
    for (size_t i = 0; i < imports->count; i++) free(imports->items[i]); // the driver refused every attempt
    free(imports->items);
    imports->items = NULL;
    imports->count = imports->items_capacity = 0;
    vr_mutex_unlock(&imports->mutex);
}

// --- importing ------------------------------------------------------------------------------------------------------------------

static enum vram_status open_plain(struct vr_import_entry *entry, struct vram_error *error) {
    const vr_cu_result result =
        vr_cu(entry->device->allocator->driver, ipc_open_mem_handle, &entry->base, entry->plain, VR_CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS);
    if (result == VR_CU_SUCCESS) return VRAM_OK;
    (void)vr_driver_failed(error, "cuIpcOpenMemHandle", result);
    if (result != VR_CU_INVALID_VALUE) return VRAM_DRIVER;
    return refuse_import(error, VRAM_INVALID_POINTER, "the process that exported the block has released its memory");
}

static enum vram_status take_descriptor(const struct vr_import_entry *entry, int theirs, int *ours, struct vram_error *error) {
    const enum vram_status status = vr_os_take_descriptor(entry->process, theirs, ours);
    switch (status) {
    case VRAM_OK: return VRAM_OK;
    case VRAM_LIMIT: return refuse_import(error, status, "too many open files");
    case VRAM_REJECTED:
        return refuse_import(
            error, VRAM_UNSUPPORTED,
            "the kernel does not allow duplicating file descriptors of the process that exported the block; use vram_export_send()");
    case VRAM_UNSUPPORTED: return refuse_import(error, status, "the kernel lacks pidfd_getfd (it needs Linux 5.6); use vram_export_send()");
    default: return refuse_import(error, VRAM_INVALID_POINTER, "the process that exported the block has released it, or has ended");
    }
}

static enum vram_status map_page(struct vr_import_entry *entry, int descriptor, struct vram_error *error) {
    struct vram_driver *driver = entry->device->allocator->driver;
    vr_cu_result result = vr_cu(driver, mem_import_from_shareable_handle, &entry->handle, (void *)(uintptr_t)descriptor,
                                VR_CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
    if (result != VR_CU_SUCCESS) return vr_driver_failed(error, "cuMemImportFromShareableHandle", result);
    const uint64_t bytes = entry->runs[entry->mapped].bytes;
    result = vr_cu(driver, mem_map, entry->base + entry->mapped_bytes, bytes, 0, entry->handle, 0);
    if (result != VR_CU_SUCCESS) return vr_driver_failed(error, "cuMemMap", result);
    entry->mapped++;
    entry->mapped_bytes += bytes;
    // The mapping keeps the memory alive.
    return release_handle(entry) == VRAM_OK ? VRAM_OK : vr_driver_failed(error, "cuMemRelease", VR_CU_UNKNOWN);
}

static enum vram_status map_pages(struct vr_import_entry *entry, const unsigned char *pages, const int *descriptors,
                                  struct vram_error *error) {
    struct vram_driver *driver = entry->device->allocator->driver;
    vr_cu_result result = vr_cu(driver, mem_address_reserve, &entry->base, entry->extent_bytes, 0, 0, 0);
    if (result == VR_CU_OUT_OF_MEMORY) return refuse_import(error, VRAM_OUT_OF_MEMORY, "no address space is left for the block");
    if (result != VR_CU_SUCCESS) return vr_driver_failed(error, "cuMemAddressReserve", result);
    for (uint64_t i = 0; i < entry->pages; i++) {
        int descriptor = descriptors != NULL ? descriptors[i] : -1;
        if (descriptors == NULL) VR_TRY(take_descriptor(entry, vr_handle_page_at(pages, i).descriptor, &descriptor, error));
        const enum vram_status status = map_page(entry, descriptor, error);
        if (descriptors == NULL) vr_os_close_descriptor(descriptor);
        VR_TRY(status);
    }
    struct vr_cu_access_desc access[VRAM_MAX_DEVICES];
    uint64_t count = 0;
    vr_access_list(entry->device, access, &count);
    result = vr_cu(driver, mem_set_access, entry->base, entry->extent_bytes, access, count);
    return result == VR_CU_SUCCESS ? VRAM_OK : vr_driver_failed(error, "cuMemSetAccess", result);
}

static enum vram_status fill_in(struct vr_import_entry *entry, const unsigned char *pages, const int *descriptors,
                                struct vram_error *error) {
    struct vr_context_guard guard;
    const enum vram_status entered = vr_context_enter(entry->device, &guard);
    if (entered != VRAM_OK) return refuse_import(error, entered, vram_status_text(entered));
    const enum vram_status status = entry->kind == VR_HANDLE_PLAIN ? open_plain(entry, error) : map_pages(entry, pages, descriptors, error);
    vr_context_leave(&guard);
    return status;
}

static enum vram_status add_entry(struct vr_imports *imports, struct vr_device *device, const struct vr_handle *handle,
                                  const unsigned char *pages, struct vr_import_entry **added) {
    VR_TRY(VR_GROW(imports, items, imports->count + 1));
    struct vr_import_entry *entry = calloc(1, sizeof *entry + (size_t)handle->pages * sizeof entry->runs[0]);
    if (entry == NULL) return VRAM_NO_HOST_MEMORY;
    entry->process = handle->process;
    entry->started = handle->started;
    entry->device = device;
    entry->kind = (enum vr_handle_kind)handle->kind;
    entry->plain = handle->plain;
    entry->extent_bytes = handle->extent_bytes;
    entry->page_bytes = handle->page_bytes;
    entry->pages = handle->pages;
    for (uint64_t i = 0; i < handle->pages; i++) {
        const struct vr_handle_page page = vr_handle_page_at(pages, i);
        entry->runs[i].serial = page.serial;
        entry->runs[i].bytes = page.units * handle->page_bytes;
    }
    imports->items[imports->count++] = entry;
    *added = entry;
    return VRAM_OK;
}

// --- imports that exist already -------------------------------------------------------------------------------------------------

// Returns whether the entry contains all the handle's pages, in order. *within: their offset in bytes.
static bool holds_pages(const struct vr_import_entry *entry, const struct vr_handle *handle, const unsigned char *pages, uint64_t *within) {
    if (entry->page_bytes != handle->page_bytes || entry->pages < handle->pages) return false;
    const uint64_t first = vr_handle_page_at(pages, 0).serial;
    uint64_t before = 0;
    for (uint64_t at = 0; at <= entry->pages - handle->pages; before += entry->runs[at++].bytes) {
        uint64_t same = 0;
        if (entry->runs[at].serial != first) continue;
        while (same < handle->pages && entry->runs[at + same].serial == vr_handle_page_at(pages, same).serial) same++;
        *within = before;
        return same == handle->pages;
    }
    return false;
}

static struct vr_import_entry *find_entry(const struct vr_imports *imports, const struct vr_device *device, const struct vr_handle *handle,
                                          const unsigned char *pages, uint64_t *within) {
    *within = 0;
    for (size_t i = 0; i < imports->count; i++) {
        struct vr_import_entry *entry = imports->items[i];
        if (entry->references == 0 || entry->device != device || entry->kind != (enum vr_handle_kind)handle->kind) continue;
        if (entry->process != handle->process || entry->started != handle->started) continue;
        if (entry->kind == VR_HANDLE_PAGES && holds_pages(entry, handle, pages, within)) return entry;
        const bool same = entry->kind == VR_HANDLE_PLAIN && entry->extent_bytes == handle->extent_bytes &&
                          memcmp(&entry->plain, &handle->plain, sizeof entry->plain) == 0;
        if (same) return entry;
    }
    return NULL;
}

// --- the calls ------------------------------------------------------------------------------------------------------------------

// Checks that the exporting process can be reached from this one. The error says why not.
static enum vram_status check_origin(const struct vr_handle *handle, bool by_descriptors, struct vram_error *error) {
    struct vr_handle here = {.version = 0};
    uint64_t started = 0;
    VR_TRY(vr_handle_sign(&here, error));
    if (memcmp(here.host.boot, handle->host.boot, sizeof here.host.boot) != 0)
        return refuse_import(error, VRAM_UNSUPPORTED, "the block was exported on another machine, or before this one was rebooted");
    const bool same_space = here.host.processes == handle->host.processes;
    if (same_space && here.process == handle->process && here.started == handle->started)
        return refuse_import(error, VRAM_UNSUPPORTED, "the block was exported by this process; use its address directly");
    if (by_descriptors) return VRAM_OK;
    if (!same_space) {
        return handle->kind == VR_HANDLE_PLAIN
                   ? VRAM_OK
                   : refuse_import(error, VRAM_UNSUPPORTED, "the block was exported in another container; use vram_export_send()");
    }
    if (vr_os_process_started(handle->process, &started) != VRAM_OK || started != handle->started)
        return refuse_import(error, VRAM_INVALID_POINTER, "the process that exported the block has ended");
    return VRAM_OK;
}

static enum vram_status find_device(struct vram_allocator *allocator, const struct vr_handle *handle, struct vr_device **device,
                                    struct vram_error *error) {
    for (int ordinal = 0; ordinal < allocator->device_count && ordinal < VRAM_MAX_DEVICES; ordinal++) {
        unsigned char uuid[sizeof handle->uuid];
        const vr_cu_result result = vr_cu(allocator->driver, device_get_uuid, uuid, ordinal);
        if (result != VR_CU_SUCCESS) return vr_driver_failed(error, "cuDeviceGetUuid", result);
        if (memcmp(uuid, handle->uuid, sizeof uuid) != 0) continue;
        const enum vram_status status = vr_device_get(allocator, (uint32_t)ordinal, device);
        return status == VRAM_OK ? VRAM_OK : refuse_import(error, status, vram_status_text(status));
    }
    return refuse_import(error, VRAM_UNSUPPORTED, "the block is on a device that this process cannot see (CUDA_VISIBLE_DEVICES)");
}

static enum vram_status import_locked(struct vr_imports *imports, struct vr_device *device, const struct vr_handle *handle,
                                      const unsigned char *pages, const int *descriptors, struct vram_imported *imported,
                                      struct vram_error *error) {
    uint64_t within = 0;
    (void)sweep_locked(imports);
    struct vr_import_entry *entry = find_entry(imports, device, handle, pages, &within);
    const bool cached = entry != NULL;
    if (!cached) {
        enum vram_status status = add_entry(imports, device, handle, pages, &entry);
        if (status != VRAM_OK) return refuse_import(error, status, vram_status_text(status));
        status = fill_in(entry, pages, descriptors, error);
        if (status != VRAM_OK) {
            (void)sweep_locked(imports);
            return status;
        }
    }
    entry->references++;
    *imported = (struct vram_imported){
        .address = entry->base + within + handle->offset_bytes,
        .size_bytes = handle->size_bytes,
        .requested_bytes = handle->requested_bytes,
        .reserved_bytes = entry->extent_bytes,
        .device = device->ordinal,
        .cached = cached,
    };
    return VRAM_OK;
}

enum vram_status vr_import(struct vram_allocator *allocator, const struct vr_handle *handle, const unsigned char *pages,
                           const int *descriptors, struct vram_imported *imported, struct vram_error *error) {
    struct vr_device *device = NULL;
    VR_TRY(check_origin(handle, descriptors != NULL, error));
    VR_TRY(find_device(allocator, handle, &device, error));
    vr_mutex_lock(&allocator->imports.mutex);
    const enum vram_status status = import_locked(&allocator->imports, device, handle, pages, descriptors, imported, error);
    vr_mutex_unlock(&allocator->imports.mutex);
    return status;
}

enum vram_status vram_import(struct vram_allocator *allocator, const void *handle, size_t size_bytes, struct vram_imported *imported,
                             struct vram_error *error) {
    VR_REQUIRE_OR_FAIL(error, allocator && imported);
    struct vr_handle read;
    const unsigned char *pages = NULL;
    VR_TRY(vr_handle_parse(handle, size_bytes, &read, &pages, error));
    return vr_import(allocator, &read, pages, NULL, imported, error);
}

static enum vram_status release_locked(struct vr_imports *imports, uint64_t address) {
    for (size_t i = 0; i < imports->count; i++) {
        struct vr_import_entry *entry = imports->items[i];
        if (entry->references == 0 || address < entry->base || address - entry->base >= entry->extent_bytes) continue;
        return --entry->references == 0 ? sweep_locked(imports) : VRAM_OK;
    }
    return VRAM_INVALID_POINTER;
}

enum vram_status vram_import_release(struct vram_allocator *allocator, uint64_t address) {
    VR_REQUIRE(allocator);
    vr_mutex_lock(&allocator->imports.mutex);
    const enum vram_status status = release_locked(&allocator->imports, address);
    vr_mutex_unlock(&allocator->imports.mutex);
    return status;
}

enum vram_status vr_imports_allow(struct vr_device *device, uint32_t peer) {
    struct vr_imports *imports = &device->allocator->imports;
    const struct vr_cu_access_desc access = vr_access_of(peer);
    enum vram_status status = VRAM_OK;
    vr_mutex_lock(&imports->mutex);
    for (size_t i = 0; i < imports->count && status == VRAM_OK; i++) {
        const struct vr_import_entry *entry = imports->items[i];
        if (entry->references == 0 || entry->device != device || entry->kind != VR_HANDLE_PAGES) continue;
        status = vr_driver_status(vr_cu(device->allocator->driver, mem_set_access, entry->base, entry->extent_bytes, &access, 1));
    }
    vr_mutex_unlock(&imports->mutex);
    return status;
}

// --- figures --------------------------------------------------------------------------------------------------------------------

static uint64_t count_descriptors(struct vr_device *device) {
    uint64_t count = 0;
    vr_device_lock(device);
    for (uint32_t number = vr_segment_first(device); number != 0; number = vr_segment_after(device, number)) {
        const struct vr_segment *segment = vr_segment_at(device->allocator, number);
        if (segment->exported == NULL) continue;
        for (uint64_t page = 0; page < segment->size / segment->page_size; page++) count += segment->exported[page].exports != 0;
    }
    vr_device_unlock(device);
    return count;
}

void vram_get_share_stats(struct vram_allocator *allocator, struct vram_share_stats *stats) {
    if (allocator == NULL || stats == NULL) return;
    struct vr_imports *imports = &allocator->imports;
    *stats = (struct vram_share_stats){.descriptors = 0};
    for (uint32_t i = 0; i < VRAM_MAX_DEVICES; i++) {
        struct vr_device *device = vr_device_if_used(allocator, i);
        if (device != NULL) stats->descriptors += count_descriptors(device);
    }
    vr_mutex_lock(&imports->mutex);
    for (size_t i = 0; i < imports->count; i++) {
        stats->imports++;
        stats->import_references += imports->items[i]->references;
        stats->reserved_bytes += imports->items[i]->extent_bytes;
        stats->unreleased += imports->items[i]->references == 0;
    }
    vr_mutex_unlock(&imports->mutex);
}
