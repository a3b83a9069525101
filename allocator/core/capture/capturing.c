// Finds out which streams and threads are capturing, from the driver and from the list of known captures.
#include "core/capture/captures.h"
#include "core/device.h"

uint64_t vr_capture_id(const struct vr_device *device, uint64_t stream) {
    int status = 0;
    uint64_t id = 0, graph = 0, count = 0;
    const uint64_t *frontier = NULL;
    const vr_cu_result result = vr_cu(device->allocator->driver, stream_get_capture_info, stream, &status, &id, &graph, &frontier, &count);
    return result == VR_CU_SUCCESS && status == VR_CU_STREAM_CAPTURE_STATUS_ACTIVE ? id : 0;
}

static vr_cu_result ask_capture_status(const struct vr_device *device, uint64_t stream, bool *captures) {
    int status = VR_CU_STREAM_CAPTURE_STATUS_NONE;
    const vr_cu_result result = vr_cu(device->allocator->driver, stream_is_capturing, stream, &status);
    *captures = status != VR_CU_STREAM_CAPTURE_STATUS_NONE;
    return result;
}

// The query fails for the default stream during a capture (STREAM_CAPTURE_IMPLICIT) and for a destroyed stream; neither takes part in one.
// Any other failed query counts as capturing: a fence on a capturing stream would become part of the graph, and no host thread could wait
// for it.
bool vr_stream_is_capturing(const struct vr_device *device, uint64_t stream) {
    bool captures = false;
    const vr_cu_result result = ask_capture_status(device, stream, &captures);
    if (result == VR_CU_SUCCESS) return captures;
    return vr_any_captures(device) && result != VR_CU_STREAM_CAPTURE_IMPLICIT && !vr_stream_is_gone(result);
}

bool vr_is_capturing(const struct vr_device *device, uint64_t stream) {
    return vr_any_captures(device) && vr_stream_is_capturing(device, stream);
}

bool vr_surely_captures(const struct vr_device *device, uint64_t stream) {
    bool captures = false;
    return vr_any_captures(device) && ask_capture_status(device, stream, &captures) == VR_CU_SUCCESS && captures;
}

bool vr_device_captures(const struct vr_device *device) {
    if (device->captures.count != 0) return true;
    if (!vr_any_captures(device)) return false;
    const uint32_t count = atomic_load_explicit(&device->shards.count, memory_order_relaxed);
    for (uint32_t i = 0; i < count; i++) {
        const struct vr_shard *shard = device->shards.items[i];
        if (!shard->idle && shard->stream != 0 && vr_stream_is_capturing(device, shard->stream)) return true;
    }
    return false;
}

bool vr_request_captures(const struct vr_device *device, uint64_t stream) {
    if (device->allocator->pytorch >= VR_PYTORCH_STREAMS_CAPTURE) return vr_is_capturing(device, stream);
    return vr_device_captures(device);
}

bool vr_may_wait_for(const struct vr_device *device, uint64_t stream) {
    bool captures = false;
    return !vr_any_captures(device) || (ask_capture_status(device, stream, &captures) == VR_CU_SUCCESS && !captures);
}

// A thread that took a device's locks before the gate was set may make driver calls that invalidate the capture; locking and unlocking
// waits for it. The count changes before the gate is set, and vr_capture_gate() clears the gate before it reads the count, so the gate
// cannot stay clear during a capture.
void vr_capture_count(struct vram_allocator *allocator, bool begins) {
    atomic_fetch_add_explicit(&allocator->capture_changes, 1, memory_order_acq_rel);
    if (!begins) {
        atomic_fetch_sub_explicit(&allocator->captures, 1, memory_order_acq_rel);
        return;
    }
    atomic_fetch_add_explicit(&allocator->captures, 1, memory_order_acq_rel);
    for (uint32_t i = 0; i < VRAM_MAX_DEVICES; i++) {
        struct vr_device *device = vr_device_if_used(allocator, i);
        if (device == NULL) continue;
        vr_device_gate(device, VR_GATE_CAPTURE, true);
        vr_device_lock(device);
        vr_device_unlock(device);
    }
}

void vr_capture_gate(struct vr_device *device) {
    if (device->captures.deferred_count != 0 || vr_any_captures(device)) {
        vr_device_gate(device, VR_GATE_CAPTURE, true);
        return;
    }
    vr_device_gate(device, VR_GATE_CAPTURE, false);
    if (vr_any_captures(device)) vr_device_gate(device, VR_GATE_CAPTURE, true);
}

bool vr_same_capture(const struct vr_device *device, uint64_t stream, uint64_t other) {
    const uint64_t id = vr_capture_id(device, stream);
    return id != 0 && vr_capture_id(device, other) == id;
}

bool vr_thread_captures(const struct vr_device *device) {
    if (device->captures.count == 0) return false;
    const uint64_t thread = vr_os_thread_id();
    for (size_t i = 0; i < device->captures.count; i++) {
        if (device->captures.items[i].thread == thread) return true;
    }
    return false;
}

bool vr_use_captures(const struct vr_device *device, const struct vr_block *block, uint64_t *stream) {
    const struct vram_allocator *allocator = device->allocator;
    for (uint32_t use = block->held.uses; use != 0; use = vr_use_at(allocator, use)->next) {
        if (!vr_stream_is_capturing(device, vr_use_at(allocator, use)->stream)) continue;
        if (stream != NULL) *stream = vr_use_at(allocator, use)->stream;
        return true;
    }
    return false;
}

bool vr_must_defer(const struct vr_device *device, const struct vr_block *block) {
    const struct vram_allocator *allocator = device->allocator;
    if (allocator->pytorch < VR_PYTORCH_STREAMS_CAPTURE && device->captures.count != 0) return true;
    if (vr_thread_captures(device) || vr_is_capturing(device, vr_shard_of(allocator, block)->stream)) return true;
    return vr_use_captures(device, block, NULL);
}
