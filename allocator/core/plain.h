// plain.h: what handing out and taking back do to a pool's blocks, inlined into malloc and free, where mostly size and order alone decide
// (vr_shard.plain). Nothing here books or tells anybody.
#ifndef VR_CORE_PLAIN_H
#define VR_CORE_PLAIN_H

#include "core/pool.h"

// Whether handing out `rounded` bytes of `size` leaves a rest that is a block of its own.
VR_INLINE bool vr_plain_splits(unsigned kind, uint64_t size, uint64_t rounded) {
    return size - rounded > (kind == VR_SMALL ? VR_MIN_BLOCK - 1 : VR_SMALL_LIMIT);
}

// Takes the block out of the index, but for what it has beyond `size` bytes. A spare record must be there. Not where blocks have numbers.
VR_INLINE void vr_plain_take(struct vr_shard *shard, unsigned kind, uint32_t block, uint64_t size) {
    const struct vr_index_arena *arena = &shard->device->allocator->arena;
    struct vr_index *index = &shard->pool[kind].index;
    struct vr_block *item = &arena->blocks[block];
    vr_index_take(index, arena, block);
    if (size == item->size) return;
    assert(shard->spare_count != 0);
    const uint32_t number = shard->spare[--shard->spare_count], next = item->next;
    struct vr_block *rest = &arena->blocks[number];
    rest->address = item->address + size;
    rest->size = item->size - size;
    rest->age = item->age;
    rest->previous = block;
    rest->next = next;
    rest->segment = item->segment;
    atomic_store_explicit(&rest->shard, (uint16_t)shard->number, memory_order_release);
    rest->age_base = shard->device->clock[kind];
    rest->state = VR_FREE;
    rest->small = item->small;
    rest->expandable = item->expandable;
    if (next != 0) arena->blocks[next].previous = number;
    item->next = number;
    item->size = size;
    shard->returns = true;
    vr_index_put(index, arena, number);
}

// The free neighbours of a block; 0: that one is not free. No block has number 0, and its record is never free.
struct vr_free_beside {
    uint32_t previous, next;
};
VR_INLINE struct vr_free_beside vr_plain_beside(const struct vr_index_arena *arena, const struct vr_block *item) {
    return (struct vr_free_beside){arena->blocks[item->previous].state == VR_FREE ? item->previous : 0,
                                   arena->blocks[item->next].state == VR_FREE ? item->next : 0};
}

// What merging the block with these changes in the inactive_split families.
VR_INLINE void vr_plain_delta(const struct vr_index_arena *arena, const struct vr_block *item, struct vr_free_beside beside,
                              struct vr_delta *delta) {
    const struct vr_block *previous = &arena->blocks[beside.previous], *next = &arena->blocks[beside.next];
    uint32_t outer = beside.previous != 0 ? previous->previous : item->previous;
    outer |= beside.next != 0 ? next->next : item->next;
    const int64_t absorbed = (int64_t)((beside.previous != 0 ? previous->size : 0) + (beside.next != 0 ? next->size : 0));
    delta->of[VR_F_SPLITS] = (outer != 0) - (beside.previous != 0) - (beside.next != 0);
    delta->of[VR_F_SPLIT_BYTES] = outer != 0 ? (int64_t)item->size : -absorbed;
}

// Merges the block, which is in no index, with these, and puts the result into the index. Returns the block that stands now.
VR_INLINE uint32_t vr_plain_merge(struct vr_shard *shard, unsigned kind, uint32_t block, struct vr_free_beside beside) {
    const struct vr_index_arena *arena = &shard->device->allocator->arena;
    struct vr_index *index = &shard->pool[kind].index;
    struct vr_block *item = &arena->blocks[block];
    item->state = VR_FREE;
    if (beside.next != 0) {
        const struct vr_block *next = &arena->blocks[beside.next];
        vr_index_take(index, arena, beside.next);
        item->size += next->size;
        item->next = next->next;
        item->age = next->age;
        vr_shard_recycle(shard, beside.next);
    }
    if (beside.previous != 0) {
        struct vr_block *previous = &arena->blocks[beside.previous];
        vr_index_take(index, arena, beside.previous);
        previous->size += item->size;
        previous->next = item->next;
        vr_shard_recycle(shard, block);
        block = beside.previous;
        item = previous;
    }
    // In one segment all have one age, unless it is a number of their own.
    if ((beside.previous | beside.next) == 0 || VR_UNLIKELY(arena->order == VR_BY_SIZE_NUMBER)) item->age = vr_index_age(arena, item);
    if ((beside.previous | beside.next) != 0 && item->next != 0) arena->blocks[item->next].previous = block;
    item->age_base = shard->device->clock[kind];
    shard->returns = true;
    vr_index_put(index, arena, block);
    return block;
}

#endif
