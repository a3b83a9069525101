// What a private pool on pages leaves to the next one: its records, and addresses whose windows need no driver call.
#include "core/device.h"
#include "core/hole_runs.h"
#include "core/sleep/sleepers.h"
#include "core/source/paged.h"
#include "core/source/source_ops.h"

static uint32_t chain_of(const struct vr_paged_shard *own, size_t region) {
    const struct vr_segment *segment = vr_segment_at(own->shard->device->allocator, own->regions[region].segment);
    return own->is_small ? segment->first : 0;
}

// Records and segments belong to this shard from now on. No slot is live, and of the small pool nothing is mapped.
static void rehome_records(struct vr_paged_shard *own, struct vr_shard *to) {
    struct vr_paged_device *device = own->device;
    const struct vram_allocator *allocator = device->device->allocator;
    for (size_t i = 0; i < own->region_count; i++) {
        const uint32_t hole = chain_of(own, i);
        if (hole != 0) vr_hole_remove(own->shard, hole);
        vr_segment_move(to->device, own->regions[i].segment, to);
        const uint32_t first = vr_segment_at(allocator, own->regions[i].segment)->first;
        atomic_store_explicit(&vr_block_at(allocator, first)->shard, to->number, memory_order_release);
        if (hole != 0) vr_hole_insert(to, hole);
    }
    for (size_t i = 1; i < device->slot_count; i++) {
        if (device->slots[i].own != own) continue;
        atomic_store_explicit(&vr_block_at(allocator, device->slots[i].block)->shard, to->number, memory_order_release);
    }
    own->shard = to;
}

// While they were parked they fell asleep with the default pools, which will not wake them any more.
static void wake_shard(struct vr_paged_shard *own) {
    for (size_t i = 0; own != NULL && i < own->region_count; i++) {
        struct vr_segment *segment = vr_segment_at(own->shard->device->allocator, own->regions[i].segment);
        if (segment->vacant) vr_blocks_wake(own->shard->device, segment);
    }
}

struct vr_paged_shard *vr_paged_unpark(struct vr_shard *shard) {
    struct vr_paged_shard *best = NULL;
    if (shard->owner == NULL) return NULL;
    for (struct vr_paged_shard *own = vr_paged_device(shard->device)->shards; own != NULL; own = own->next) {
        if (!own->parked || own->is_small) continue;
        if (best == NULL || own->shard->stream == shard->stream) best = own;
    }
    if (best == NULL) return NULL;
    wake_shard(best);
    wake_shard(best->small);
    rehome_records(best, shard);
    if (best->small != NULL) rehome_records(best->small, shard);
    best->parked = false;
    if (best->small != NULL) best->small->parked = false;
    return best;
}

void vr_paged_park(struct vr_shard *shard) {
    struct vr_paged_shard *own = vr_paged_of(shard);
    if (own == NULL) return;
    struct vr_shard *home = vr_shard_find(shard->device, shard->stream);
    rehome_records(own, home);
    own->parked = true;
    if (own->small != NULL) {
        rehome_records(own->small, home);
        own->small->parked = true;
    }
    if (own->device->grown == own) own->device->grown = NULL;
    shard->kept = NULL;
}
