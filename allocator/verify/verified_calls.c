// verified_calls.c: the verifier's work when a block is handed out or freed, and when a call gets an address that is not a live block's.
#include "core/capture/private.h"
#include "core/source/raw.h"
#include "verify/verify.h"

static struct vr_verify *verify_of(struct vr_verifier *verifier) { return (struct vr_verify *)(void *)verifier; }

// Returns whether graphs use the shard's memory: each launch writes to it, whatever the allocator has handed out since.
static bool is_graphs(const struct vr_shard *shard) {
    return shard->owner != NULL && (shard->owner->captured || shard->owner->options.for_graph);
}

bool vr_verify_poison(struct vr_verifier *verifier, struct vr_shard *shard, uint64_t address, uint64_t size) {
    struct vr_verify *verify = verify_of(verifier);
    return !is_graphs(shard) && vr_may_touch(shard->device, shard->stream) && vr_poison_fill(shard->device, shard->stream, address, size) &&
           vr_keeps_bytes(verify, shard->device, shard->stream, address, VR_REDZONE_BYTES);
}

// Takes all locks of the device and makes its context current. Returns whether the driver made it current; if not, nothing is checked.
static bool lock_entered(struct vr_device *device, struct vr_context_guard *guard) {
    const bool entered = vr_context_insist(device, guard);
    if (entered) {
        vr_device_lock_guarded(device, guard);
    } else {
        vr_device_lock(device);
    }
    return entered;
}

static void unlock_entered(struct vr_device *device, struct vr_context_guard *guard, bool entered) {
    vr_device_unlock(device);
    if (entered) vr_context_leave(guard);
}

// --- malloc ------------------------------------------------------------------------------------------------------------------------------

// Fills a new block with the poison if it does not hold it yet. Returns whether it does now.
static bool guard_block(struct vr_verify *verify, struct vr_device *device, const struct vr_block *item) {
    const struct vr_shard *shard = vr_shard_of(device->allocator, item);
    struct vr_segment *segment = vr_segment_at(device->allocator, item->segment);
    if (is_graphs(shard) || vr_stream_is_capturing(device, shard->stream)) segment->unverified = true;
    if (segment->unverified) return false;
    if (segment->poisoned) return true;
    return vr_may_touch(device, shard->stream) && vr_poison_fill(device, shard->stream, item->address, item->size) &&
           vr_keeps_bytes(verify, device, shard->stream, item->address, item->size < VR_REDZONE_BYTES ? item->size : VR_REDZONE_BYTES);
}

// Fills in the facts of a block that was handed out. guards: whether the device's context is current, so that the driver can be called.
static void describe_block(struct vr_verify *verify, struct vr_device *device, uint64_t address, bool guards,
                           struct vr_verified_block *facts) {
    const uint32_t number = vr_address_map_find(&device->allocator->addresses, address);
    const struct vr_block *item = vr_block_at(device->allocator, number);
    struct vr_raw_block raw;
    if (number != 0 && vr_is_allocated_at(item, address, vr_shard_of(device->allocator, item))) {
        facts->requested = item->requested;
        facts->size = item->size;
        facts->stream = vr_shard_of(device->allocator, item)->stream;
        facts->guarded = guards && guard_block(verify, device, item);
    } else if (vr_raw_find(device->allocator, address, &raw)) {
        facts->raw = true;
        facts->requested = raw.size;
        facts->size = raw.size + VR_REDZONE_BYTES;
        facts->stream = raw.stream;
        const uint64_t begin = address - VR_REDZONE_BYTES;
        facts->guarded = guards && raw.capture == 0 && vr_may_touch(device, raw.stream) &&
                         vr_poison_fill(device, raw.stream, begin, facts->size + VR_REDZONE_BYTES) &&
                         vr_keeps_bytes(verify, device, raw.stream, begin, VR_REDZONE_BYTES);
    }
}

void vr_verify_handed_out(struct vr_verifier *verifier, struct vr_device *device, uint64_t address) {
    struct vr_verify *verify = verify_of(verifier);
    struct vr_verified_block facts = {.address = address, .device = device->ordinal, .allocated = vr_verify_stack(verify)};
    struct vr_context_guard guard;
    const bool entered = lock_entered(device, &guard);
    describe_block(verify, device, address, entered, &facts);
    if (facts.size != 0) (void)vr_verified_enter(verify, &facts);
    unlock_entered(device, &guard, entered);
}

// --- free --------------------------------------------------------------------------------------------------------------------------------

// Reports a free that finds no live record, with the kind of the mistake. Returns INVALID_POINTER.
static enum vram_status refuse_free(struct vr_verify *verify, uint64_t address, uint32_t stack, const struct vr_verified_block *freed) {
    struct vram_fault fault = {.kind = VRAM_FAULT_DOUBLE_FREE, .address = address, .current = stack};
    struct vr_verified_block found;
    if (freed != NULL) {
        vr_fault_report(verify, &fault, freed);
    } else if (vr_verify_find_foreign(verify, address, &found)) {
        fault.kind = VRAM_FAULT_FOREIGN_FREE;
        vr_fault_report(verify, &fault, &found);
    } else {
        const bool inside = vr_verified_containing(verify, address, &found);
        fault.kind = inside ? VRAM_FAULT_INNER_FREE : VRAM_FAULT_UNKNOWN_FREE;
        vr_fault_report(verify, &fault, inside ? &found : NULL);
    }
    return VRAM_INVALID_POINTER;
}

// Checks the block, poisons it and puts it into the quarantine, if that is possible; otherwise frees it as without the verifier. Under all
// locks, context current.
static enum vram_status free_block(struct vr_verify *verify, struct vr_device *device, struct vr_verified_block *block, uint32_t number) {
    struct vr_block *item = vr_block_at(device->allocator, number);
    struct vr_shard *shard = vr_shard_of(device->allocator, item);
    struct vr_segment *segment = vr_segment_at(device->allocator, item->segment);
    if (is_graphs(shard) || vr_stream_is_capturing(device, shard->stream)) segment->unverified = true;
    const bool held = block->guarded && !segment->unverified && !segment->vacant;
    const bool now = held && vr_may_touch(device, shard->stream);
    if (!held || (!now && item->held.uses != 0) || (item->held.uses != 0 && vr_uses_order(device, item) != VRAM_OK)) {
        segment->poisoned = false;
        VR_TRY(vr_free_locked(shard, number));
        vr_verified_retire(verify, block);
        return VRAM_OK;
    }
    if (now) vr_redzones_check(verify, device, block, item);
    block->unchecked = !now || !vr_poison_fill(device, shard->stream, item->address, item->requested);
    vr_quarantine_add(verify, device, block, number);
    return VRAM_OK;
}

static enum vram_status free_of_pool(struct vr_verify *verify, struct vr_device *device, struct vr_verified_block *block) {
    struct vr_context_guard guard;
    const bool entered = lock_entered(device, &guard);
    block->guarded &= entered;
    const uint32_t number = vr_address_map_find(&device->allocator->addresses, block->address);
    const struct vr_block *item = vr_block_at(device->allocator, number);
    enum vram_status status = VRAM_INVALID_POINTER;
    if (number != 0 && vr_is_allocated_at(item, block->address, vr_shard_of(device->allocator, item)))
        status = free_block(verify, device, block, number);
    unlock_entered(device, &guard, entered);
    return status;
}

static enum vram_status free_raw(struct vr_verify *verify, struct vr_verified_block *block) {
    struct vr_device *device = vr_device_if_used(verify->allocator, block->device);
    struct vr_context_guard guard;
    const bool entered = lock_entered(device, &guard);
    if (entered && block->guarded && vr_may_touch(device, block->stream)) vr_redzones_check(verify, device, block, NULL);
    unlock_entered(device, &guard, entered);
    VR_TRY(vr_raw_free(verify->allocator, block->address));
    vr_verified_retire(verify, block);
    return VRAM_OK;
}

// Frees a block that has no record, because it came from a checkpoint or at an address that the program chose. If there is no such block,
// reports the free.
// freed: an earlier block at the address; NULL: there was none.
static enum vram_status free_unrecorded(struct vr_verify *verify, struct vr_device *device, uint64_t address, uint32_t stack,
                                        const struct vr_verified_block *freed) {
    struct vr_device *locked = NULL;
    enum vram_status status = VRAM_INVALID_POINTER;
    const uint32_t number = device == NULL ? 0 : vr_find_and_lock_device(verify->allocator, address, &locked);
    if (number != 0) {
        const struct vr_block *item = vr_block_at(verify->allocator, number);
        vr_segment_at(verify->allocator, item->segment)->poisoned = false;
        status = vr_free_locked(vr_shard_of(verify->allocator, item), number);
        vr_device_unlock(locked);
        return status;
    }
    status = vr_raw_free(verify->allocator, address);
    return status == VRAM_INVALID_POINTER ? refuse_free(verify, address, stack, freed) : status;
}

enum vram_status vr_verify_free(struct vr_verifier *verifier, struct vr_device *device, uint64_t address) {
    struct vr_verify *verify = verify_of(verifier);
    const uint32_t stack = vr_verify_stack(verify);
    struct vr_verified_block found;
    bool known = false;
    struct vr_verified_block *block = vr_verified_claim(verify, address, stack, &found, &known);
    if (block == NULL) return free_unrecorded(verify, device, address, stack, known ? &found : NULL);
    const enum vram_status status = block->raw ? free_raw(verify, block) : free_of_pool(verify, device, block);
    // INVALID_POINTER: a checkpoint has freed the block. Any other failure: the driver refused, and the program still owns the block.
    if (status == VRAM_INVALID_POINTER) {
        vr_verified_retire(verify, block);
    } else if (status != VRAM_OK) {
        vr_verified_unclaim(verify, block);
    }
    return status;
}

void vr_verify_refused(struct vr_verifier *verifier, uint64_t address) {
    struct vr_verify *verify = verify_of(verifier);
    struct vr_verified_block found;
    if (!vr_verified_at(verify, address, &found) || found.state == VR_VERIFIED_LIVE) return;
    struct vram_fault fault = {.kind = VRAM_FAULT_USE_AFTER_FREE, .address = address, .current = vr_verify_stack(verify)};
    vr_fault_report(verify, &fault, &found);
}
