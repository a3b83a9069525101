#include "core/hole_runs.h"
#include "core/plain.h"

// A free block that touches unmapped address space counts as being as large as both: taking it would use up room to grow.
static uint64_t effective_size(const struct vram_allocator *allocator, uint32_t block) {
    const struct vr_block *candidate = vr_block_at(allocator, block);
    const struct vr_block *next = vr_block_at(allocator, candidate->next);
    return candidate->size + (candidate->next != 0 && next->state == VR_HOLE ? next->size : 0);
}

static uint32_t tightest_expandable(const struct vram_allocator *allocator, const struct vr_pool *pool, uint32_t found) {
    // One that touches none is no larger than those that come after it.
    while (vr_block_at(allocator, found)->expandable && effective_size(allocator, found) != vr_block_at(allocator, found)->size) {
        const uint32_t next = vr_index_next(&pool->index, &allocator->arena, found);
        if (next == 0 || effective_size(allocator, next) >= effective_size(allocator, found)) break;
        found = next;
    }
    return found;
}

static uint32_t first_ordinary(const struct vram_allocator *allocator, const struct vr_pool *pool, uint32_t found) {
    while (found != 0 && vr_block_at(allocator, found)->expandable) found = vr_index_next(&pool->index, &allocator->arena, found);
    return found;
}

// An oversize block that serves smaller requests all the same.
static bool reuses(const struct vr_device *device, const struct vr_block *block) {
    return device->options.reuse_oversize && block->expandable != 0;
}

uint32_t vr_pool_search(const struct vr_shard *shard, unsigned kind, uint64_t rounded, bool with_expandable) {
    const struct vr_device *device = shard->device;
    const struct vram_allocator *allocator = device->allocator;
    const struct vr_pool *pool = &shard->pool[kind];
    const bool has_slots = VR_UNLIKELY(shard->paged != NULL) && kind == VR_LARGE;
    if (has_slots && vr_index_is_empty(&pool->index)) return vr_paged_ready(shard, rounded);
    uint32_t found = vr_index_first_at_least(&pool->index, &allocator->arena, rounded);
    if (found == 0) return has_slots ? vr_paged_ready(shard, rounded) : 0;
    if (VR_UNLIKELY(vr_block_at(allocator, found)->expandable)) {
        found = with_expandable ? tightest_expandable(allocator, pool, found) : first_ordinary(allocator, pool, found);
        if (found == 0) return 0;
    }
    const uint64_t size = vr_block_at(allocator, found)->size, limit = device->options.max_split_bytes;
    if (rounded < limit) return size >= limit && !reuses(device, vr_block_at(allocator, found)) ? 0 : found;
    return size - rounded >= device->options.max_non_split_rounding_bytes ? 0 : found;
}

bool vr_pool_splits(const struct vr_shard *shard, const struct vr_block *block, uint64_t rounded) {
    const uint64_t rest = block->size - rounded;
    if (VR_UNLIKELY(shard->whole)) return false;
    if (block->small || shard->expandable) return rest >= VR_MIN_BLOCK;
    return rounded < shard->device->options.max_split_bytes && rest > VR_SMALL_LIMIT;
}

enum vram_status vr_shard_refill(struct vr_shard *shard) {
    const uint32_t count = VR_COUNT_OF(shard->spare) / 2;
    assert(shard->spare_count <= count);
    VR_TRY(vr_slab_take(&shard->device->allocator->blocks, count, shard->spare + shard->spare_count));
    shard->spare_count += count;
    return VRAM_OK;
}

// Half of them at once: what merges go on to give takes no lock each time.
void vr_shard_give_records(struct vr_shard *shard) {
    shard->spare_count /= 2;
    vr_slab_give_many(&shard->device->allocator->blocks, shard->spare_count, shard->spare + shard->spare_count);
}

uint32_t vr_block_split(struct vr_shard *shard, uint32_t block, uint64_t size) {
    const struct vram_allocator *allocator = shard->device->allocator;
    assert(shard->spare_count != 0);
    const uint32_t rest = shard->spare[--shard->spare_count];
    struct vr_block *low = vr_block_at(allocator, block), *high = vr_block_at(allocator, rest);
    high->address = low->address + size;
    high->size = low->size - size;
    high->requested = 0;
    high->previous = block;
    high->next = low->next;
    high->segment = low->segment;
    atomic_store_explicit(&high->shard, (uint16_t)shard->number, memory_order_release);
    high->state = low->state;
    high->small = low->small;
    high->expandable = low->expandable;
    if (low->next != 0) vr_block_at(allocator, low->next)->previous = rest;
    low->next = rest;
    low->size = size;
    return rest;
}

// PyTorch makes a new record for the low end and keeps the old one for the rest; here it is the other way round.
void vr_number_split(struct vr_shard *shard, uint32_t block) {
    struct vr_index_arena *arena = &shard->device->allocator->arena;
    assert(shard->spare_count != 0);
    arena->numbers[shard->spare[shard->spare_count - 1]] = arena->numbers[block];
    arena->numbers[block] = vr_new_number(arena);
}

// The rest that comes next is a new one.
static void number_rest(struct vr_shard *shard) {
    struct vr_index_arena *arena = &shard->device->allocator->arena;
    assert(shard->spare_count != 0);
    if (arena->numbers != NULL) arena->numbers[shard->spare[shard->spare_count - 1]] = vr_new_number(arena);
}

uint32_t vr_block_split_numbered(struct vr_shard *shard, uint32_t block, uint64_t size) {
    number_rest(shard);
    return vr_block_split(shard, block, size);
}

void vr_block_absorb_next(struct vr_shard *shard, uint32_t block) {
    const struct vram_allocator *allocator = shard->device->allocator;
    struct vr_block *low = vr_block_at(allocator, block);
    const uint32_t next = low->next;
    const struct vr_block *high = vr_block_at(allocator, next);
    low->size += high->size;
    low->next = high->next;
    if (low->next != 0) vr_block_at(allocator, low->next)->previous = block;
    vr_shard_recycle(shard, next);
}

VR_INLINE struct vr_pool *pool_of(struct vr_shard *shard, const struct vr_block *block) {
    return &shard->pool[block->small ? VR_SMALL : VR_LARGE];
}

// Of an expandable chain: a run of holes may be longer for it. Apart, so that the others take no step more.
VR_NOINLINE static void insert_chained(struct vr_shard *shard, uint32_t block) {
    const struct vram_allocator *allocator = shard->device->allocator;
    const struct vr_block *item = vr_block_at(allocator, block);
    vr_index_insert(&pool_of(shard, item)->index, &allocator->arena, block);
    vr_hole_runs_freed(allocator, item);
}

void vr_pool_insert(struct vr_shard *shard, uint32_t block) {
    const struct vram_allocator *allocator = shard->device->allocator;
    struct vr_block *item = vr_block_at(allocator, block);
    item->state = VR_FREE;
    item->age_base = shard->device->clock[item->small ? VR_SMALL : VR_LARGE];
    shard->returns = true;
    if (VR_UNLIKELY(item->expandable == VR_EXPANDABLE_CHAIN)) {
        insert_chained(shard, block);
    } else {
        vr_index_insert(&pool_of(shard, item)->index, &allocator->arena, block);
    }
}

void vr_pool_remove(struct vr_shard *shard, uint32_t block) {
    const struct vram_allocator *allocator = shard->device->allocator;
    vr_index_remove(&pool_of(shard, vr_block_at(allocator, block))->index, &allocator->arena, block);
}

void vr_delta_of_merge(const struct vram_allocator *allocator, const struct vr_block *block, struct vr_delta *delta) {
    if (!block->expandable) vr_plain_delta(&allocator->arena, block, vr_plain_beside(&allocator->arena, block), delta);
}

static bool sleeps_free(const struct vram_allocator *allocator, uint32_t block) {
    return block != 0 && vr_block_at(allocator, block)->state == VR_ASLEEP;
}

// In a segment that sleeps, where free blocks are in no index (sleep/sleepers.h).
static uint32_t merge_asleep(struct vr_shard *shard, uint32_t block) {
    const struct vram_allocator *allocator = shard->device->allocator;
    struct vr_block *item = vr_block_at(allocator, block);
    item->state = VR_ASLEEP;
    if (sleeps_free(allocator, item->previous)) {
        const uint32_t freed = block;
        block = item->previous;
        if (allocator->arena.numbers != NULL) allocator->arena.numbers[block] = allocator->arena.numbers[freed];
        vr_block_absorb_next(shard, block);
        item = vr_block_at(allocator, block);
    }
    if (sleeps_free(allocator, item->next)) vr_block_absorb_next(shard, block);
    return block;
}

VR_INLINE uint32_t merge_chain(struct vr_shard *shard, uint32_t block) {
    const struct vram_allocator *allocator = shard->device->allocator;
    const struct vr_block *item = vr_block_at(allocator, block);
    const struct vr_free_beside beside = vr_plain_beside(&allocator->arena, item);
    uint64_t *numbers = allocator->arena.numbers;
    if (VR_UNLIKELY(numbers != NULL) && beside.previous != 0) numbers[beside.previous] = numbers[block];
    return vr_plain_merge(shard, item->small ? VR_SMALL : VR_LARGE, block, beside);
}

// Of a block of an expandable segment, which may be in no index when it is free.
VR_NOINLINE static uint32_t merge_expandable(struct vr_shard *shard, uint32_t block) {
    const struct vram_allocator *allocator = shard->device->allocator;
    const uint8_t kind = vr_block_at(allocator, block)->expandable;
    if (kind == VR_EXPANDABLE_ASLEEP) return merge_asleep(shard, block);
    if (kind == VR_EXPANDABLE_CHAIN) {
        block = merge_chain(shard, block);
        vr_hole_runs_freed(allocator, vr_block_at(allocator, block));
        return block;
    }
    vr_paged_give(shard, block);
    return block;
}

uint32_t vr_pool_merge(struct vr_shard *shard, uint32_t block) {
    if (VR_UNLIKELY(vr_block_at(shard->device->allocator, block)->expandable)) return merge_expandable(shard, block);
    return merge_chain(shard, block);
}

void vr_pool_settle_now(struct vr_shard *shard, unsigned kind) {
    struct vr_pool *pool = &shard->pool[kind];
    const uint32_t lazy = pool->lazy;
    vr_pool_close_pair(shard, kind);
    pool->lazy = 0;
    if (lazy != 0) (void)vr_pool_merge(shard, lazy);
}
