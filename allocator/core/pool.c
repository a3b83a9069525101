// The policy: best fit, split, merge, and the counters that allocating and freeing a block change.
#include "core/alloc.h"
#include "core/hole_runs.h"
#include "core/source/source_ops.h"

// Counts a free block that touches unmapped address space as large as both, because allocating it would use up room to grow.
static uint64_t effective_size(const struct vram_allocator *allocator, uint32_t block) {
    const struct vr_block *candidate = vr_block_at(allocator, block);
    const struct vr_block *next = vr_block_at(allocator, candidate->next);
    return candidate->size + (candidate->next != 0 && next->state == VR_HOLE ? next->size : 0);
}

static uint32_t tightest_expandable(const struct vram_allocator *allocator, const struct vr_pool *pool, uint32_t found) {
    // A block that touches no hole is no larger than those after it.
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

// Returns whether an oversize block may serve smaller requests.
static bool reuses_oversize(const struct vr_device *device, const struct vr_block *block) {
    return device->options.reuse_oversize && block->expandable != 0;
}

uint32_t vr_pool_search(const struct vr_shard *shard, unsigned kind, uint64_t rounded, bool with_expandable) {
    VR_ASSERT_SETTLED(shard->device);
    const struct vr_device *device = shard->device;
    const struct vram_allocator *allocator = device->allocator;
    const struct vr_pool *pool = &shard->pool[kind];
    uint32_t found = vr_index_first_at_least(&pool->index, &allocator->arena, rounded);
    if (found == 0) return VR_UNLIKELY(shard->kept != NULL) && kind == VR_LARGE ? shard->kept->source->ready_slot(shard, rounded) : 0;
    const struct vr_block *item = vr_block_at(allocator, found);
    if (VR_UNLIKELY(item->expandable)) {
        found = with_expandable ? tightest_expandable(allocator, pool, found) : first_ordinary(allocator, pool, found);
        if (found == 0) return 0;
        item = vr_block_at(allocator, found);
    }
    const uint64_t limit = device->options.max_split_bytes;
    if (VR_LIKELY(rounded < limit)) return item->size >= limit && !reuses_oversize(device, item) ? 0 : found;
    return item->size - rounded >= device->options.max_non_split_rounding_bytes ? 0 : found;
}

// Takes half an array of spare records.
static enum vram_status refill_records(struct vr_shard *shard) {
    const uint32_t count = VR_COUNT_OF(shard->spare) / 2;
    assert(shard->spare_count <= count);
    VR_TRY(vr_slab_take(&shard->device->allocator->blocks, count, shard->spare + shard->spare_count));
    shard->spare_count += count;
    return VRAM_OK;
}

enum vram_status vr_shard_reserve_records(struct vr_shard *shard, uint32_t count) {
    return VR_LIKELY(shard->spare_count >= count) ? VRAM_OK : refill_records(shard);
}

// Returns half at once, so that not every merge takes the slab's lock.
void vr_shard_give_records(struct vr_shard *shard) {
    shard->spare_count /= 2;
    vr_slab_give_many(&shard->device->allocator->blocks, shard->spare_count, shard->spare + shard->spare_count);
}

uint32_t vr_block_split(struct vr_shard *shard, uint32_t block, uint64_t size) {
    VR_ASSERT_SETTLED(shard->device);
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
    // vram_free() reads the shard without a lock. The record may be an old one, whose stale number is still in the address map.
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

// Gives the rest of the next split a new number.
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
    VR_ASSERT_SETTLED(shard->device);
    const struct vram_allocator *allocator = shard->device->allocator;
    struct vr_block *low = vr_block_at(allocator, block);
    const uint32_t next = low->next;
    const struct vr_block *high = vr_block_at(allocator, next);
    low->size += high->size;
    low->next = high->next;
    if (low->next != 0) vr_block_at(allocator, low->next)->previous = block;
    vr_shard_recycle(shard, next);
}

void vr_pool_insert(struct vr_shard *shard, uint32_t block) {
    VR_ASSERT_SETTLED(shard->device);
    const struct vram_allocator *allocator = shard->device->allocator;
    struct vr_block *item = vr_block_at(allocator, block);
    item->state = VR_FREE;
    item->age_base = shard->device->clock[item->small];
    shard->may_release = true;
    vr_index_insert(&shard->pool[item->small].index, &allocator->arena, block);
    if (VR_UNLIKELY(item->expandable == VR_EXPANDABLE_CHAIN)) vr_hole_runs_freed(allocator, item);
}

void vr_pool_remove(struct vr_shard *shard, uint32_t block) {
    VR_ASSERT_SETTLED(shard->device);
    const struct vram_allocator *allocator = shard->device->allocator;
    vr_index_remove(&shard->pool[vr_block_at(allocator, block)->small].index, &allocator->arena, block);
}

// --- merging ------------------------------------------------------------------------------------------------------------------------

// Returns whether the block is free in a vacant segment, where free blocks are in no index.
static bool is_vacant(const struct vram_allocator *allocator, uint32_t block) {
    return block != 0 && vr_block_at(allocator, block)->state == VR_VACANT;
}

static uint32_t merge_vacant(struct vr_shard *shard, uint32_t block) {
    const struct vram_allocator *allocator = shard->device->allocator;
    struct vr_block *item = vr_block_at(allocator, block);
    item->state = VR_VACANT;
    if (is_vacant(allocator, item->previous)) {
        const uint32_t freed = block;
        block = item->previous;
        if (allocator->arena.numbers != NULL) allocator->arena.numbers[block] = allocator->arena.numbers[freed];
        vr_block_absorb_next(shard, block);
        item = vr_block_at(allocator, block);
    }
    if (is_vacant(allocator, item->next)) vr_block_absorb_next(shard, block);
    return block;
}

uint32_t vr_pool_merge(struct vr_shard *shard, uint32_t block) {
    VR_ASSERT_SETTLED(shard->device);
    const struct vram_allocator *allocator = shard->device->allocator;
    const struct vr_block *item = vr_block_at(allocator, block);
    if (VR_UNLIKELY(item->expandable == VR_EXPANDABLE_VACANT)) return merge_vacant(shard, block);
    if (VR_UNLIKELY(item->expandable == VR_EXPANDABLE_SLOT)) {
        vr_block_source(allocator, item)->give_slot(shard, block);
        return block;
    }
    struct vr_index *index = &shard->pool[item->small].index;
    const uint32_t previous = item->previous;
    if (vr_block_at(allocator, item->next)->state == VR_FREE) { // block 0 is never free
        vr_index_remove(index, &allocator->arena, item->next);
        vr_block_absorb_next(shard, block);
    }
    if (vr_block_at(allocator, previous)->state == VR_FREE) {
        vr_index_remove(index, &allocator->arena, previous);
        if (VR_UNLIKELY(allocator->arena.numbers != NULL)) allocator->arena.numbers[previous] = allocator->arena.numbers[block];
        vr_block_absorb_next(shard, previous);
        block = previous;
    }
    vr_pool_insert(shard, block);
    return block;
}

// --- handing out --------------------------------------------------------------------------------------------------------------------

struct vr_alloc_request vr_alloc_request_of(struct vr_shard *shard, uint64_t size_bytes) {
    const struct vr_device *device = shard->device;
    const uint64_t rounded = VR_UNLIKELY(device->divisions) ? vr_round_request(&device->options, size_bytes) : vr_round_plain(size_bytes);
    return (struct vr_alloc_request){
        .shard = shard, .size_bytes = size_bytes, .rounded = rounded, .kind = rounded <= VR_SMALL_LIMIT ? VR_SMALL : VR_LARGE};
}

// Returns how allocating `block_size` bytes of a free block changes the counters (allocator.md §counters).
VR_INLINE struct vr_delta delta_of_malloc(const struct vr_block *block, uint64_t block_size, uint64_t requested) {
    const int64_t bytes = (int64_t)block_size;
    struct vr_delta delta = {{[VR_F_COUNT] = 1, [VR_F_BYTES] = bytes, [VR_F_REQUESTED] = (int64_t)requested}};
    if (VR_UNLIKELY(block->expandable)) return delta;
    const bool was_split = (block->previous | block->next) != 0, is_split = block_size != block->size;
    delta.of[VR_F_SPLITS] = (int64_t)is_split - (int64_t)was_split;
    if (was_split) {
        delta.of[VR_F_SPLIT_BYTES] = -(int64_t)block_size;
    } else if (is_split) {
        delta.of[VR_F_SPLIT_BYTES] = (int64_t)(block->size - block_size);
    }
    return delta;
}

// Splits a free block where the request's block begins, unless both begin there. Returns the part from there on, which is in no index then.
// Inserts the part below into the index, as if it had been allocated and freed: for a moment two free blocks are neighbours.
static uint32_t begin_at_address(const struct vr_alloc_request *request, uint32_t block, bool *loose) {
    struct vr_shard *shard = request->shard;
    const struct vr_block *item = vr_block_at(shard->device->allocator, block);
    const uint64_t address = request->address != 0 ? request->address : vr_pool_address_in(shard, item, request->rounded);
    if (address == item->address) return block;
    if (!*loose) vr_pool_remove(shard, block);
    *loose = true;
    struct vr_delta delta = {{0}};
    if (!item->expandable) {
        const bool was_split = !vr_is_unsplit(item);
        delta.of[VR_F_SPLITS] = was_split ? 1 : 2;
        delta.of[VR_F_SPLIT_BYTES] = was_split ? 0 : (int64_t)item->size;
    }
    vr_totals_book(&shard->device->stats.totals, request->kind, &delta);
    const uint32_t rest = vr_block_split_numbered(shard, block, address - item->address);
    vr_pool_insert(shard, block);
    return rest;
}

// Returns how many bytes of a free block the request gets (allocator.md §splitting).
VR_INLINE uint64_t part_of(const struct vr_alloc_request *request, const struct vr_block *block) {
    const struct vr_shard *shard = request->shard;
    const uint64_t rest = block->size - request->rounded;
    if (request->exact) return request->rounded;
    if (VR_UNLIKELY(shard->whole)) return block->size;
    const bool splits = block->small || shard->expandable
                            ? rest >= VR_MIN_BLOCK
                            : rest > VR_SMALL_LIMIT && request->rounded < shard->device->options.max_split_bytes;
    return splits ? request->rounded : block->size;
}

uint32_t vr_alloc_block(const struct vr_alloc_request *request, uint32_t block, bool loose) {
    struct vr_shard *shard = request->shard;
    struct vr_device *device = shard->device;
    VR_ASSERT_SETTLED(device);
    if (VR_UNLIKELY(request->address != 0 || device->options.base_alignment_kib != 0)) block = begin_at_address(request, block, &loose);
    struct vr_block *item = vr_block_at(device->allocator, block);
    const uint64_t bytes = part_of(request, item);
    const struct vr_delta delta = delta_of_malloc(item, bytes, request->size_bytes);
    vr_totals_book(&device->stats.totals, request->kind, &delta);
    if (VR_UNLIKELY(item->expandable == VR_EXPANDABLE_SLOT)) {
        vr_block_source(device->allocator, item)->take_slot(shard, block);
    } else if (!loose) {
        vr_index_remove(&shard->pool[item->small].index, &device->allocator->arena, block);
    }
    if (bytes != item->size) {
        if (VR_UNLIKELY(device->allocator->arena.numbers != NULL)) vr_number_split(shard, block);
        vr_pool_insert(shard, vr_block_split(shard, block, bytes));
    }
    item->state = VR_ALLOCATED;
    item->requested = request->size_bytes;
    item->held.uses = item->held.pending = 0;
    item->labels = 0;
    assert(VRAM_CHECK < 2 || item->marks == 0);
    if (VR_UNLIKELY(bytes >= device->options.max_split_bytes)) {
        item->oversize = true;
        vr_stat_add(&device->stats.oversize_allocations, 1);
    }
    atomic_store_explicit(vr_address_map_place(&device->allocator->addresses, item->address), block, memory_order_release);
    if (vr_has_listener(device)) vr_notify_hand_out(shard, item);
    if (VR_UNLIKELY(item->expandable == VR_EXPANDABLE_CHAIN)) vr_hole_runs_taken(device->allocator, block);
    return block;
}

enum vram_status vr_alloc_at(const struct vr_alloc_request *request, uint32_t block) {
    const struct vr_device *device = request->shard->device;
    VR_ASSERT_ALL_LOCKED(device);
    const uint64_t bytes = request->rounded;
    // The address map requires blocks of the large pool to exceed 1 MiB.
    if (request->kind == VR_LARGE && bytes <= VR_SMALL_LIMIT) return VRAM_INVALID_ARGUMENT;
    if (request->address % VR_MIN_BLOCK != 0 || bytes % VR_MIN_BLOCK != 0) return VRAM_INVALID_ARGUMENT;
    const struct vr_block *item = vr_block_at(device->allocator, block);
    if (item->state != VR_FREE || vr_shard_of(device->allocator, item) != request->shard || item->small != request->kind ||
        !vr_block_holds(item, request->address, bytes)) // block 0 is never free
        return VRAM_INVALID_ARGUMENT;
    (void)vr_alloc_block(request, block, false);
    return VRAM_OK;
}

// --- taking back --------------------------------------------------------------------------------------------------------------------

static void clear_marks(struct vr_device *device, struct vr_block *item) {
    if (item->oversize) vr_stat_add(&device->stats.oversize_allocations, -1);
    if (item->of_graph) vr_shard_of(device->allocator, item)->owner->lending.live--;
    item->marks = 0;
}

void vr_request_free(struct vr_device *device, uint32_t block, bool held) {
    VR_ASSERT_SETTLED(device);
    struct vr_block *item = vr_block_at(device->allocator, block);
    struct vr_shard *shard = vr_shard_of(device->allocator, item);
    const int64_t size = (int64_t)item->size;
    const struct vr_delta delta = {{[VR_F_COUNT] = -1, [VR_F_BYTES] = -size}};
    assert(item->state == VR_ALLOCATED);
    vr_notify_block(shard, VR_RECORD_FREE_REQUESTED, item);
    item->state = VR_PENDING;
    vr_totals_book(&device->stats.totals, item->small, &delta);
    if (held) vr_totals_book_waiting(&device->stats.totals, item->small, 1, size);
    if (VR_UNLIKELY(item->marks != 0)) clear_marks(device, item);
}

void vr_complete_free(struct vr_device *device, uint32_t block, bool held) {
    VR_ASSERT_SETTLED(device);
    struct vram_allocator *allocator = device->allocator;
    struct vr_block *item = vr_block_at(allocator, block);
    struct vr_shard *shard = vr_shard_of(allocator, item);
    assert(item->state == VR_PENDING && item->held.pending == 0);
    vr_notify_block(shard, VR_RECORD_FREE_COMPLETED, item);
    item->stack = vr_stack_end(item->stack);
    struct vr_delta delta = vr_delta_of_free(allocator, item);
    delta.of[VR_F_COUNT] = delta.of[VR_F_BYTES] = 0; // vr_request_free() subtracted these when the wait began
    if (held) vr_totals_book_waiting(&device->stats.totals, item->small, -1, -(int64_t)item->size);
    vr_totals_book(&device->stats.totals, item->small, &delta);
    (void)vr_pool_merge(shard, block);
}

void vr_free_now(struct vr_shard *shard, uint32_t block) {
    struct vr_device *device = shard->device;
    VR_ASSERT_SETTLED(device);
    struct vr_block *item = vr_block_at(device->allocator, block);
    assert(item->state == VR_ALLOCATED && item->held.uses == 0);
    if (vr_has_listener(device)) vr_notify_freed(shard, item);
    const struct vr_delta delta = vr_delta_of_free(device->allocator, item);
    vr_totals_book(&device->stats.totals, item->small, &delta);
    if (VR_UNLIKELY(item->marks != 0)) clear_marks(device, item);
    (void)vr_pool_merge(shard, block);
}
