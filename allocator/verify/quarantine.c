// quarantine.c: freed blocks of the pools, which are poisoned and wait before they may be reused. For the core they are pending.
#include "core/device.h"
#include "verify/verify.h"

static void report_use(struct vr_verify *verify, const struct vr_device *device, const struct vr_verified_block *block,
                       const struct vr_damage *damage) {
    struct vram_fault fault = {.kind = VRAM_FAULT_USE_AFTER_FREE,
                               .address = damage->first,
                               .wrong_bytes = damage->last - damage->first + 1,
                               .current = vr_verify_stack(verify)};
    (void)vr_poison_fill(device, block->stream, damage->first, fault.wrong_bytes);
    vr_fault_report(verify, &fault, block);
}

// Compares a quarantined block with the poison. If the block could not be checked when it was freed, checks its redzones instead and
// poisons it.
static void check_block(struct vr_verify *verify, const struct vr_device *device, struct vr_verified_block *block,
                        const struct vr_block *item) {
    struct vr_damage damage;
    if (!vr_may_touch(device, block->stream)) return;
    if (block->unchecked) {
        vr_redzones_check(verify, device, block, item);
        block->unchecked = !vr_poison_fill(device, block->stream, block->address, block->requested);
    } else if (vr_poison_differs(verify, device, block->stream, block->address, block->size, &damage)) {
        report_use(verify, device, block, &damage);
    }
}

static struct vr_block *pending_block(const struct vr_device *device, const struct vr_verified_block *block) {
    struct vr_block *item = vr_block_at(device->allocator, block->number);
    assert(item->state == VR_PENDING && item->address == block->address);
    return item;
}

// Makes a block reusable that was already removed from the list.
static void end_block(struct vr_verify *verify, struct vr_device *device, struct vr_verified_block *block) {
    const struct vr_block *item = pending_block(device, block);
    vr_trap_clear(device, block);
    check_block(verify, device, block, item);
    if (block->unchecked) vr_segment_at(device->allocator, item->segment)->poisoned = false;
    verify->devices[device->ordinal].quarantined_bytes -= block->size;
    vr_complete_free(device, block->number, true);
    vr_verified_retire(verify, block);
}

void vr_quarantine_add(struct vr_verify *verify, struct vr_device *device, struct vr_verified_block *block, uint32_t number) {
    struct vr_verified_device *own = &verify->devices[device->ordinal];
    block->number = number;
    vr_request_free(device, number, true);
    *(own->last != NULL ? &own->last->next : &own->first) = block;
    own->last = block;
    own->quarantined_bytes += block->size;
    if (!block->unchecked) vr_trap_set(device, block, pending_block(device, block));
    // During a capture nothing can be checked, so the blocks stay longer.
    while (own->first != NULL && own->quarantined_bytes > verify->quarantine_limit && vr_may_touch(device, own->first->stream)) {
        struct vr_verified_block *oldest = own->first;
        own->first = oldest->next;
        if (own->first == NULL) own->last = NULL;
        end_block(verify, device, oldest);
    }
}

static bool belongs(const struct vr_device *device, const struct vr_verified_block *block, const struct vram_pool *only) {
    return vr_shard_of(device->allocator, pending_block(device, block))->owner == only;
}

void vr_quarantine_release(struct vr_verifier *verifier, struct vr_device *device, bool all, const struct vram_pool *only) {
    struct vr_verify *verify = (struct vr_verify *)(void *)verifier;
    struct vr_verified_device *own = &verify->devices[device->ordinal];
    struct vr_context_guard guard;
    if (own->first == NULL || !vr_context_insist(device, &guard)) return;
    struct vr_verified_block *left = own->first;
    own->first = own->last = NULL;
    while (left != NULL) {
        struct vr_verified_block *block = left;
        left = block->next;
        block->next = NULL;
        if (all || belongs(device, block, only)) {
            end_block(verify, device, block);
            continue;
        }
        *(own->last != NULL ? &own->last->next : &own->first) = block;
        own->last = block;
    }
    vr_context_leave(&guard);
}

void vr_quarantine_check(struct vr_verify *verify, struct vr_device *device) {
    for (struct vr_verified_block *block = verify->devices[device->ordinal].first; block != NULL; block = block->next) {
        const struct vr_block *item = pending_block(device, block);
        if (!vr_may_touch(device, block->stream)) continue;
        const bool trapped = block->trap_low != block->trap_high;
        vr_trap_clear(device, block);
        check_block(verify, device, block, item);
        if (trapped) vr_trap_set(device, block, item);
    }
}
