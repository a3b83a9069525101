// blocks.c: the records of blocks: live ones, those in the quarantine, and the last ones that left it.
#include "verify/verify.h"

static struct vr_verified_block *record_at(const struct vr_verify *verify, uint64_t address) {
    return (struct vr_verified_block *)(uintptr_t)vr_map_get(&verify->blocks, address);
}

struct vr_verified_block *vr_verified_enter(struct vr_verify *verify, const struct vr_verified_block *facts) {
    vr_mutex_lock(&verify->mutex);
    struct vr_verified_block *block = record_at(verify, facts->address);
    // A record in the quarantine stays in its list. A new block at its address comes from a source that does not wait for the quarantine.
    if (block != NULL && block->state == VR_VERIFIED_QUARANTINED) block = NULL;
    struct vr_verified_block *made = block == NULL ? malloc(sizeof *made) : block;
    if (made != NULL && block == NULL && vr_map_set(&verify->blocks, facts->address, (uint64_t)(uintptr_t)made) != VRAM_OK) {
        free(made);
        made = NULL;
    }
    if (made != NULL) *made = *facts;
    vr_mutex_unlock(&verify->mutex);
    return made;
}

struct vr_verified_block *vr_verified_claim(struct vr_verify *verify, uint64_t address, uint32_t stack, struct vr_verified_block *found,
                                            bool *known) {
    vr_mutex_lock(&verify->mutex);
    struct vr_verified_block *block = record_at(verify, address);
    *known = block != NULL;
    if (block != NULL && block->state != VR_VERIFIED_LIVE) {
        *found = *block;
        block = NULL;
    }
    if (block != NULL) {
        block->state = VR_VERIFIED_QUARANTINED;
        block->freed = stack;
        block->next = NULL;
    }
    vr_mutex_unlock(&verify->mutex);
    return block;
}

void vr_verified_unclaim(struct vr_verify *verify, struct vr_verified_block *block) {
    vr_mutex_lock(&verify->mutex);
    block->state = VR_VERIFIED_LIVE;
    vr_mutex_unlock(&verify->mutex);
}

static void forget_record(struct vr_verify *verify, const struct vr_remembered_free *oldest) {
    struct vr_verified_block *block = oldest->block;
    if (block == NULL || block->state != VR_VERIFIED_FREED || block->serial != oldest->serial) return;
    (void)vr_map_take(&verify->blocks, block->address);
    free(block);
}

void vr_verified_retire(struct vr_verify *verify, struct vr_verified_block *block) {
    vr_mutex_lock(&verify->mutex);
    struct vr_remembered_free *place = &verify->remembered[verify->frees % VR_REMEMBERED_FREES];
    forget_record(verify, place);
    block->state = VR_VERIFIED_FREED;
    block->serial = ++verify->frees;
    *place = (struct vr_remembered_free){block, block->serial};
    vr_mutex_unlock(&verify->mutex);
}

bool vr_verified_at(struct vr_verify *verify, uint64_t address, struct vr_verified_block *found) {
    vr_mutex_lock(&verify->mutex);
    const struct vr_verified_block *block = record_at(verify, address);
    if (block != NULL) *found = *block;
    vr_mutex_unlock(&verify->mutex);
    return block != NULL;
}

bool vr_verified_containing(struct vr_verify *verify, uint64_t address, struct vr_verified_block *found) {
    bool any = false;
    struct vr_map_slot entry;
    vr_mutex_lock(&verify->mutex);
    for (size_t at = 0; vr_map_next(&verify->blocks, &at, &entry);) {
        const struct vr_verified_block *block = (const struct vr_verified_block *)(uintptr_t)entry.value;
        if (address < block->address || address - block->address >= block->size) continue;
        // If several freed blocks contain it, prefers the one that was freed last.
        const bool better = !any || block->state < found->state || (block->state == found->state && block->serial > found->serial);
        if (better) *found = *block;
        any = true;
    }
    vr_mutex_unlock(&verify->mutex);
    return any;
}

static int by_address(const void *a, const void *b) {
    const struct vr_verified_block *x = a, *y = b;
    return VR_ORDER(x->address, y->address);
}

enum vram_status vr_verified_live(struct vr_verify *verify, struct vr_verified_block **blocks, size_t *count) {
    struct vr_map_slot entry;
    size_t found = 0;
    vr_mutex_lock(&verify->mutex);
    struct vr_verified_block *copy = malloc((verify->blocks.count + 1) * sizeof *copy);
    for (size_t at = 0; copy != NULL && vr_map_next(&verify->blocks, &at, &entry);) {
        const struct vr_verified_block *block = (const struct vr_verified_block *)(uintptr_t)entry.value;
        if (block->state == VR_VERIFIED_LIVE) copy[found++] = *block;
    }
    vr_mutex_unlock(&verify->mutex);
    if (copy == NULL) return VRAM_NO_HOST_MEMORY;
    qsort(copy, found, sizeof *copy, by_address);
    *blocks = copy;
    *count = found;
    return VRAM_OK;
}

void vr_verified_release(struct vr_verify *verify) {
    struct vr_map_slot entry;
    for (size_t at = 0; vr_map_next(&verify->blocks, &at, &entry);) free((void *)(uintptr_t)entry.value);
    vr_map_release(&verify->blocks);
}
