// on_demand.c: vram_verify(): checks the redzones of all live blocks, the quarantine and free memory, at once.
#include "verify/verify.h"

// Checks the free memory of a poisoned segment. If it does not hold the poison, something wrote to it long after a free, or far outside a
// block.
static void check_free_memory(struct vr_verify *verify, struct vr_device *device, const struct vr_segment *segment) {
    const uint64_t stream = device->allocator->shards[segment->shard]->stream;
    for (uint32_t number = segment->first; number != 0; number = vr_block_at(device->allocator, number)->next) {
        const struct vr_block *item = vr_block_at(device->allocator, number);
        struct vr_damage damage;
        struct vr_verified_block found;
        if (item->state != VR_FREE || !vr_poison_differs(verify, device, stream, item->address, item->size, &damage)) continue;
        struct vram_fault fault = {.kind = VRAM_FAULT_USE_AFTER_FREE,
                                   .address = damage.first,
                                   .wrong_bytes = damage.last - damage.first + 1,
                                   .current = vr_verify_stack(verify)};
        (void)vr_poison_fill(device, stream, damage.first, fault.wrong_bytes);
        vr_fault_report(verify, &fault, vr_verified_containing(verify, damage.first, &found) ? &found : NULL);
    }
}

static void check_segments(struct vr_verify *verify, struct vr_device *device) {
    for (uint32_t number = vr_segment_first(device); number != 0; number = vr_segment_after(device, number)) {
        const struct vr_segment *segment = vr_segment_at(device->allocator, number);
        if (segment->poisoned && !segment->unverified && !segment->vacant &&
            vr_may_touch(device, device->allocator->shards[segment->shard]->stream))
            check_free_memory(verify, device, segment);
    }
}

// Checks the redzones of a live block. The records were copied before the lock was taken, so the block may be gone.
static void check_live(struct vr_verify *verify, const struct vr_device *device, const struct vr_verified_block *block) {
    struct vr_verified_block now;
    const uint32_t number = block->raw ? 0 : vr_address_map_find(&device->allocator->addresses, block->address);
    const struct vr_block *item = number == 0 ? NULL : vr_block_at(device->allocator, number);
    if (!vr_verified_at(verify, block->address, &now) || now.state != VR_VERIFIED_LIVE || !now.guarded) return;
    if (!now.raw && (item == NULL || !vr_is_allocated_at(item, now.address, vr_shard_of(device->allocator, item)))) return;
    if (item != NULL && vr_segment_at(device->allocator, item->segment)->unverified) return;
    if (vr_may_touch(device, now.stream)) vr_redzones_check(verify, device, &now, item);
}

static void check_device(struct vr_verify *verify, struct vr_device *device, const struct vr_verified_block *blocks, size_t count) {
    struct vr_context_guard guard;
    if (vr_context_enter(device, &guard) != VRAM_OK) return;
    vr_device_lock_guarded(device, &guard);
    for (size_t i = 0; i < count; i++)
        if (blocks[i].device == device->ordinal) check_live(verify, device, &blocks[i]);
    vr_quarantine_check(verify, device);
    check_segments(verify, device);
    vr_device_unlock(device);
    vr_context_leave(&guard);
}

void vr_verify_all(struct vr_verify *verify) {
    struct vr_verified_block *blocks = NULL;
    size_t count = 0;
    if (vr_verified_live(verify, &blocks, &count) != VRAM_OK) return;
    for (uint32_t i = 0; i < VRAM_MAX_DEVICES; i++) {
        struct vr_device *device = vr_device_if_used(verify->allocator, i);
        if (device != NULL) check_device(verify, device, blocks, count);
    }
    free(blocks);
}

enum vram_status vram_verify(struct vram_allocator *allocator, uint64_t *faults) {
    VR_REQUIRE(allocator);
    struct vr_verify *verify = vr_verify_of(allocator);
    if (verify == NULL) return VRAM_UNSUPPORTED;
    const uint64_t before = atomic_load_explicit(&verify->faults, memory_order_relaxed);
    vr_verify_all(verify);
    if (faults != NULL) *faults = atomic_load_explicit(&verify->faults, memory_order_relaxed) - before;
    return VRAM_OK;
}

enum vram_status vram_get_verify_counts(struct vram_allocator *allocator, struct vram_verify_counts *counts) {
    VR_REQUIRE(allocator && counts);
    struct vr_verify *verify = vr_verify_of(allocator);
    if (verify == NULL) return VRAM_UNSUPPORTED;
    struct vr_verified_block *blocks = NULL;
    size_t count = 0;
    VR_TRY(vr_verified_live(verify, &blocks, &count));
    *counts = (struct vram_verify_counts){.faults = atomic_load_explicit(&verify->faults, memory_order_relaxed), .live_blocks = count};
    for (size_t i = 0; i < count; i++) counts->unguarded_blocks += !blocks[i].guarded;
    free(blocks);
    for (uint32_t i = 0; i < VRAM_MAX_DEVICES; i++) {
        struct vr_device *device = vr_device_if_used(allocator, i);
        if (device == NULL) continue;
        vr_device_lock(device);
        counts->quarantined_bytes += verify->devices[i].quarantined_bytes;
        vr_device_unlock(device);
    }
    return VRAM_OK;
}
