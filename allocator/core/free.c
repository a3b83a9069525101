// vram_free() and vram_record_stream(), under the device's lock.
#include "core/alloc.h"
#include "core/capture/captures.h"
#include "core/front.h"
#include "core/source/backend.h"
#include "core/verifier.h"

// Frees a block with uses. The block waits for fences or, during a capture, until the capture shows that the uses have completed. No fence
// can be recorded on a destroyed stream: then the host waits, after the captures have ended.
VR_NOINLINE static enum vram_status free_used(struct vr_device *device, uint32_t block) {
    struct vr_block *item = vr_block_at(device->allocator, block);
    struct vr_context_guard guard;
    VR_TRY(vr_context_enter(device, &guard));
    bool put_off = vr_must_defer(device, item), gone = false;
    enum vram_status status = put_off ? VRAM_OK : vr_fences_record(device, block, &gone);
    put_off |= gone && vr_any_captures(device);
    if (put_off) status = vr_defer(device, block);
    const bool held = put_off || !gone;
    if (!held) status = vr_uses_wait(device->allocator, item);
    vr_context_leave(&guard);
    VR_TRY(status);
    vr_request_free(device, block, held);
    if (!held) vr_complete_free(device, block, false);
    return VRAM_OK;
}

// Handles an address that is not a pool's block. The public function calls this directly: see the depth passed to vr_gather().
VR_NOINLINE static enum vram_status free_outside(struct vram_allocator *allocator, uint64_t address) {
    struct vr_verifier *verifier = allocator->verifier;
    const enum vram_status status = verifier == NULL ? vr_raw_free(allocator, address) : verifier->free(verifier, NULL, address);
    VR_NO_TAIL_CALL();
    return vr_verify_if_enabled(allocator, status);
}

enum vram_status vr_free_locked(struct vr_shard *shard, uint32_t block) {
    VR_ASSERT_SETTLED(shard->device);
    if (VR_UNLIKELY(vr_block_at(shard->device->allocator, block)->held.uses != 0)) return free_used(shard->device, block);
    vr_free_now(shard, block);
    return VRAM_OK;
}

VR_NOINLINE static enum vram_status free_verified(struct vr_device *device, uint64_t address) {
    struct vr_verifier *verifier = device->allocator->verifier;
    const enum vram_status status = verifier->free(verifier, device, address);
    VR_NO_TAIL_CALL();
    return vr_verify_if_enabled(device->allocator, status);
}

enum vram_status vram_free(struct vram_allocator *allocator, uint64_t address) {
    const uint32_t block = vr_address_map_find(&allocator->addresses, address);
    if (VR_UNLIKELY(block == 0)) return address == 0 ? VRAM_OK : free_outside(allocator, address); // no block starts at 0
    struct vr_block *item = vr_block_at(allocator, block);
    struct vr_shard *shard = vr_shard_of(allocator, item);
    struct vr_device *device = shard->device;
    enum vram_status status = VRAM_OK;
    const uint32_t gate = atomic_load_explicit(&device->gate, memory_order_relaxed);
    if (VR_UNLIKELY((gate & (VR_GATE_LISTENER | VR_GATE_VERIFY)) != 0)) {
        if (vr_has_listener(device)) vr_gather(device, VR_LEVEL_ALL, 0);
        if ((gate & VR_GATE_VERIFY) != 0) return free_verified(device, address);
    }
    vr_device_lock_short(device);
    const bool found = vr_is_allocated_at(item, address, shard);
    struct vr_pool *pool = &shard->pool[item->small];
    if (VR_LIKELY(found) && !vr_front_free(shard, pool, item, block)) {
        vr_front_settle(device, pool);
        status = vr_free_locked(shard, block);
    }
    vr_device_unlock_short(device);
    if (VR_UNLIKELY(!found)) return free_outside(allocator, address);
    return vr_verify_if_enabled(allocator, status);
}

// Handles an address outside of the pools' blocks. Raw blocks need no fence, because the driver's free waits for the device.
static enum vram_status record_outside(struct vram_allocator *allocator, uint64_t address, uint64_t stream) {
    struct vr_raw_block raw;
    const enum vram_status status = allocator->backend->record_stream != NULL
                                        ? allocator->backend->record_stream(allocator, address, stream)
                                    : vr_raw_find(allocator, address, &raw) ? VRAM_OK
                                                                            : VRAM_INVALID_POINTER;
    if (status == VRAM_INVALID_POINTER && allocator->verifier != NULL) allocator->verifier->refused(allocator->verifier, address);
    return status;
}

enum vram_status vram_record_stream(struct vram_allocator *allocator, uint64_t address, uint64_t stream) {
    VR_REQUIRE(allocator);
    if (address == 0) return VRAM_OK;
    VR_TRY(vr_ensure_stream_device(allocator, stream));
    struct vr_shard *shard = NULL;
    const uint32_t block = vr_find_and_lock(allocator, address, &shard);
    if (block == 0) return record_outside(allocator, address, stream);
    enum vram_status status = VRAM_OK;
    // If the stream takes part in the capture, the use completes when the capture ends. If that is unknown, the use gets a fence after the
    // stream stops capturing.
    if (shard->stream != stream)
        status = vr_uses_add(allocator, vr_block_at(allocator, block), stream, vr_surely_captures(shard->device, stream));
    vr_device_unlock_short(shard->device);
    return status;
}
