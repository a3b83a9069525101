// Sets up devices at their first use.
#include "core/device.h"
#include "core/source/backend.h"

// Gets whether the device has an attribute. An attribute unknown to the driver counts as absent. Any other failure is returned: the answer
// would stay with the device for good, so a later request must set the device up instead.
static enum vram_status ask_attribute(const struct vr_device *device, int attribute, bool *has) {
    int value = 0;
    const vr_cu_result result = vr_cu(device->allocator->driver, device_get_attribute, &value, attribute, (int)device->ordinal);
    *has = result == VR_CU_SUCCESS && value != 0;
    return result == VR_CU_INVALID_VALUE || result == VR_CU_NOT_SUPPORTED ? VRAM_OK : vr_driver_status(result);
}

// PyTorch's switch (allocator.md §peers-and-sharing). On unless the variable turns it off.
static bool sharing_is_wanted(void) {
    static const char *const no[] = {"0", "false", "False", "no"};
    const char *value = vr_os_getenv("TORCH_CUDA_EXPANDABLE_SEGMENTS_IPC");
    for (size_t i = 0; value != NULL && i < VR_COUNT_OF(no); i++)
        if (strcmp(value, no[i]) == 0) return false;
    return true;
}

static enum vram_status ask_granularity(struct vr_device *device) {
    struct vram_driver *driver = device->allocator->driver;
    bool maps = false, shares = false, rdma = false;
    VR_TRY(ask_attribute(device, VR_CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, &maps));
    if (!maps) return VRAM_OK;
    if (sharing_is_wanted()) VR_TRY(ask_attribute(device, VR_CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED, &shares));
    VR_TRY(ask_attribute(device, VR_CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED, &rdma));
    if (shares) device->physical.handle_types = VR_CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    device->physical.rdma = rdma;
    const struct vr_cu_allocation_prop prop = vr_device_allocation_prop(device);
    return vr_driver_status(
        vr_cu(driver, mem_get_allocation_granularity, &device->physical.granularity, &prop, VR_CU_MEM_GRANULARITY_MINIMUM));
}

// Retains the primary context, or reuses the one left by an earlier setup that failed and could not release it.
static enum vram_status take_context(struct vr_device *device) {
    uint64_t *left = &device->allocator->left_contexts[device->ordinal];
    if (*left == 0) return vr_driver_status(vr_cu(device->allocator->driver, primary_ctx_retain, &device->context, (int)device->ordinal));
    device->context = *left;
    *left = 0;
    return VRAM_OK;
}

static void leave_context(const struct vr_device *device) {
    struct vram_allocator *allocator = device->allocator;
    if (vr_cu(allocator->driver, primary_ctx_release, (int)device->ordinal) != VR_CU_SUCCESS)
        allocator->left_contexts[device->ordinal] = device->context;
}

static enum vram_status open_device(struct vr_device *device) {
    struct vram_allocator *allocator = device->allocator;
    const int ordinal = (int)device->ordinal;
    VR_TRY(take_context(device));
    enum vram_status status = vr_driver_status(vr_cu(allocator->driver, device_total_mem, &device->total_bytes, ordinal));
    if (status == VRAM_OK) status = ask_granularity(device);
    if (status == VRAM_OK && allocator->backend->open != NULL) status = allocator->backend->open(device);
    if (status != VRAM_OK) {
        leave_context(device);
        return status;
    }
    const struct vr_options *options = &allocator->options;
    device->limit_bytes = vr_limit_of_fraction(device->total_bytes, options->per_process_memory_fraction);
    device->stats.max_split_at_start = options->max_split_bytes == VR_UNLIMITED ? -1 : (int64_t)options->max_split_bytes;
    vr_device_apply_options(device, options);
    vr_device_listen(device);
    vr_device_gate(device, VR_GATE_NUMBERS, allocator->arena.numbers != NULL);
    vr_device_gate(device, VR_GATE_VERIFY, allocator->verifier != NULL);
    vr_device_gate(device, VR_GATE_RAW,
                   !allocator->backend->has_blocks || !atomic_load_explicit(&allocator->caching, memory_order_relaxed));
    return VRAM_OK;
}

static enum vram_status make_device_locked(struct vram_allocator *allocator, uint32_t ordinal, struct vr_device **device) {
    struct vr_device *made = calloc(1, sizeof *made);
    if (made == NULL) return VRAM_NO_HOST_MEMORY;
    made->allocator = allocator;
    made->ordinal = ordinal;
    void *slots = NULL;
    enum vram_status status = vr_os_reserve(VR_SHARD_SLOTS * sizeof *made->shards.slots, &slots);
    if (status == VRAM_OK) {
        made->shards.slots = slots;
        status = open_device(made);
        if (status != VRAM_OK) vr_os_unreserve(slots, VR_SHARD_SLOTS * sizeof *made->shards.slots);
    }
    if (status != VRAM_OK) {
        free(made);
        return status;
    }
    vr_mutex_init(&made->mutex);
    vr_fences_init(made);
    atomic_store_explicit(&allocator->devices[ordinal], made, memory_order_release);
    *device = made;
    return VRAM_OK;
}

// Sets the capture gate if a capture began on another device before this one was visible.
static void gate_new(struct vr_device *device) {
    // An atomic read-modify-write comes either before the capture is counted, which then sees this device, or after it.
    if (atomic_fetch_add_explicit(&device->allocator->captures, 0, memory_order_acq_rel) != 0)
        vr_device_gate(device, VR_GATE_CAPTURE, true);
}

enum vram_status vr_device_get(struct vram_allocator *allocator, uint32_t ordinal, struct vr_device **device) {
    *device = vr_device_if_used(allocator, ordinal);
    if (VR_LIKELY(*device != NULL)) return VRAM_OK;
    if (ordinal >= (uint32_t)allocator->device_count || ordinal >= VRAM_MAX_DEVICES) return VRAM_INVALID_ARGUMENT;
    vr_mutex_lock(&allocator->mutex);
    enum vram_status status = VRAM_OK;
    *device = vr_device_if_used(allocator, ordinal);
    if (*device == NULL) status = make_device_locked(allocator, ordinal, device);
    if (status == VRAM_OK) gate_new(*device);
    vr_mutex_unlock(&allocator->mutex);
    return status;
}

// --- whose stream it is --------------------------------------------------------------------------------------------------------------

static bool is_known(struct vram_allocator *allocator, uint64_t stream) {
    for (uint32_t i = 0; i < VRAM_MAX_DEVICES; i++) {
        const struct vr_device *device = vr_device_if_used(allocator, i);
        if (device != NULL && vr_shard_find(device, stream) != NULL) return true;
    }
    return false;
}

// Gets the ordinal of the stream's device. On success, leaves the stream's context current.
static enum vram_status ordinal_of_stream(struct vram_driver *driver, uint64_t stream, int *ordinal) {
    uint64_t context = 0;
    VR_TRY(vr_driver_status(vr_cu(driver, stream_get_ctx, stream, &context)));
    VR_TRY(vr_driver_status(vr_cu(driver, ctx_set_current, context)));
    return vr_driver_status(vr_cu(driver, ctx_get_device, ordinal));
}

static struct vr_device *any_device(struct vram_allocator *allocator) {
    struct vr_device *device = NULL;
    for (uint32_t i = 0; i < VRAM_MAX_DEVICES && device == NULL; i++) device = vr_device_if_used(allocator, i);
    return device;
}

enum vram_status vr_ensure_stream_device(struct vram_allocator *allocator, uint64_t stream) {
    if (stream == 0 || allocator->device_count == 1) return VRAM_OK;
    _Atomic uint64_t *hint = &allocator->known_streams[vr_mix64(stream) % VR_COUNT_OF(allocator->known_streams)];
    if (atomic_load_explicit(hint, memory_order_relaxed) == stream || is_known(allocator, stream)) return VRAM_OK;
    struct vr_device *device = any_device(allocator);
    if (device == NULL) return VRAM_OK;
    struct vr_context_guard guard;
    VR_TRY(vr_context_enter(device, &guard));
    int ordinal = 0;
    const enum vram_status status = ordinal_of_stream(allocator->driver, stream, &ordinal);
    guard.changed = true;
    vr_context_leave(&guard);
    VR_TRY(status);
    VR_TRY(vr_device_get(allocator, (uint32_t)ordinal, &device));
    atomic_store_explicit(hint, stream, memory_order_relaxed);
    return VRAM_OK;
}
