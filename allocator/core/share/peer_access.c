// Peer access between devices. Access to cudaMalloc memory is enabled per context; pages of expandable segments and of imports list every
// device that may use them (allocator.md §peers-and-sharing).
#include "core/share/share.h"
#include "core/source/source_ops.h"

static bool are_devices(const struct vram_allocator *allocator, uint32_t device, uint32_t peer) {
    const uint32_t count = (uint32_t)allocator->device_count;
    return device < count && peer < count && device < VRAM_MAX_DEVICES && peer < VRAM_MAX_DEVICES;
}

enum vram_status vram_peer_possible(struct vram_allocator *allocator, uint32_t device, uint32_t peer, bool *possible) {
    VR_REQUIRE(allocator && possible);
    int can = 1;
    if (!are_devices(allocator, device, peer)) return VRAM_INVALID_ARGUMENT;
    if (device != peer) VR_TRY(vr_driver_status(vr_cu(allocator->driver, device_can_access_peer, &can, (int)device, (int)peer)));
    *possible = can != 0;
    return VRAM_OK;
}

bool vram_peer_enabled(struct vram_allocator *allocator, uint32_t device, uint32_t peer) {
    if (allocator == NULL) return false;
    if (!are_devices(allocator, device, peer)) return false;
    const struct vr_device *owner = vr_device_if_used(allocator, peer);
    const uint64_t peers = owner == NULL ? 0 : atomic_load_explicit(&owner->peers, memory_order_relaxed);
    return device == peer || (peers >> device & 1) != 0;
}

// Opens the owner's segments to the peer; pages mapped later include it. On failure some pages stay accessible to the peer, which is
// harmless.
static enum vram_status allow_segments(struct vr_device *owner, uint32_t peer) {
    struct vram_allocator *allocator = owner->allocator;
    enum vram_status status = VRAM_OK;
    vr_device_lock(owner);
    for (uint32_t number = vr_segment_first(owner); number != 0 && status == VRAM_OK; number = vr_segment_after(owner, number)) {
        const struct vr_segment *segment = vr_segment_at(allocator, number);
        if (segment->source->allow != NULL) status = segment->source->allow(owner, segment, peer);
    }
    if (status == VRAM_OK) atomic_fetch_or_explicit(&owner->peers, (uint64_t)1 << peer, memory_order_relaxed);
    vr_device_unlock(owner);
    return status;
}

static vr_cu_result enable_in_driver(struct vr_device *device, const struct vr_device *owner) {
    struct vr_context_guard guard;
    if (vr_context_enter(device, &guard) != VRAM_OK) return VR_CU_INVALID_CONTEXT;
    const vr_cu_result result = vr_cu(device->allocator->driver, ctx_enable_peer_access, owner->context, 0);
    vr_context_leave(&guard);
    return result == VR_CU_PEER_ACCESS_ALREADY_ENABLED ? VR_CU_SUCCESS : result;
}

enum vram_status vram_peer_enable(struct vram_allocator *allocator, uint32_t device, uint32_t peer, struct vram_error *error) {
    VR_REQUIRE_OR_FAIL(error, allocator);
    bool possible = false;
    struct vr_device *user = NULL, *owner = NULL;
    if (!are_devices(allocator, device, peer)) return vr_fail(error, VRAM_INVALID_ARGUMENT, VRAM_NO_OFFSET, "the device does not exist");
    if (vram_peer_enabled(allocator, device, peer)) return VRAM_OK;
    enum vram_status status = vram_peer_possible(allocator, device, peer, &possible);
    if (status == VRAM_OK && !possible)
        return vr_fail(error, VRAM_UNSUPPORTED, VRAM_NO_OFFSET, "device %u cannot access the memory of device %u", device, peer);
    if (status == VRAM_OK) status = vr_device_get(allocator, device, &user);
    if (status == VRAM_OK) status = vr_device_get(allocator, peer, &owner);
    if (status != VRAM_OK) return vr_fail(error, status, VRAM_NO_OFFSET, "%s", vram_status_text(status));
    const vr_cu_result result = enable_in_driver(user, owner);
    if (result != VR_CU_SUCCESS) return vr_driver_failed(error, "cuCtxEnablePeerAccess", result);
    struct vr_context_guard guard;
    status = vr_context_enter(owner, &guard);
    if (status == VRAM_OK) {
        status = allow_segments(owner, device);
        if (status == VRAM_OK) status = vr_imports_allow(owner, device);
        vr_context_leave(&guard);
    }
    if (status != VRAM_OK) atomic_fetch_and_explicit(&owner->peers, ~((uint64_t)1 << device), memory_order_relaxed);
    if (status != VRAM_OK)
        return vr_fail(error, status, VRAM_NO_OFFSET, "cannot give access to pages of device %u to device %u", peer, device);
    return VRAM_OK;
}
