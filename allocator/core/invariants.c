// vram_check(): checks every invariant that the comments of this folder state. For tests, and for builds with VRAM_CHECK=3.
#include "base/invariant.h"
#include "core/capture/captures.h"
#include "core/hole_runs.h"
#include "core/alloc.h"
#include "core/source/backend.h"
#include "core/source/source_ops.h"
#include "core/source/source_ops.h"

// The totals of one walk over a device's blocks, to compare with the counters.
struct block_census {
    int64_t count[VR_POOLS];
    int64_t bytes[VR_POOLS];
    int64_t requested[VR_POOLS];
    int64_t splits[VR_POOLS];
    int64_t split_bytes[VR_POOLS];
    int64_t pending[VR_POOLS];
    int64_t pending_bytes[VR_POOLS];
    int64_t mapped[VR_POOLS];
    int64_t segments[VR_POOLS];
    size_t free;
    int64_t oversize;
    int64_t oversize_segments;
};

static bool is_a_hole_of(const struct vram_allocator *allocator, uint32_t root, uint32_t block) {
    return vr_tree_at_or_before(root, &allocator->arena, vr_block_at(allocator, block)->address) == block;
}

static bool in_index(const struct vram_allocator *allocator, const struct vr_pool *pool, uint32_t block) {
    const uint64_t size = vr_block_at(allocator, block)->size;
    uint32_t at = vr_index_first_at_least(&pool->index, &allocator->arena, size);
    while (at != 0 && at != block && vr_block_at(allocator, at)->size == size) at = vr_index_next(&pool->index, &allocator->arena, at);
    return at == block;
}

static enum vram_status check_block(const struct vram_allocator *allocator, const struct vr_segment *segment, uint32_t number,
                                    struct vram_error *error) {
    const struct vr_block *block = vr_block_at(allocator, number);
    const struct vr_shard *shard = vr_shard_of(allocator, block);
    const struct vr_pool *pool = &shard->pool[block->small];
    const uint64_t at = block->address;
    VR_INVARIANT(block->size != 0 && block->size % 512 == 0, "a block's size is not a multiple of 512", at);
    VR_INVARIANT(!shard->idle, "a block belongs to a destroyed pool", at);
    VR_INVARIANT(block->state == VR_ALLOCATED || !block->marks, "a block that is not allocated is counted as oversize or lent", at);
    VR_INVARIANT(!block->lent || shard->owner != NULL, "a block of the default pools is lent", at);
    VR_INVARIANT(!block->of_graph || (block->lent && shard->lends && shard->owner->lending.live != 0), "a loan is not counted", at);
    VR_INVARIANT(shard->number == segment->shard && block->small == segment->small &&
                     block->expandable == (segment->vacant ? VR_EXPANDABLE_VACANT : segment->expandable),
                 "a block and its segment disagree", at);
    switch (block->state) {
    case VR_FREE:
        VR_INVARIANT(!segment->vacant, "a block of a vacant segment is in the index of free blocks", at);
        VR_INVARIANT(in_index(allocator, pool, number), "a free block is not in its pool's index", at);
        VR_INVARIANT(!vr_is_free(allocator, block->next), "two adjacent free blocks are not merged", at);
        VR_INVARIANT(shard->may_release || block->expandable || !vr_is_unsplit(block),
                     "a free segment is kept although its pool cannot reuse it", at);
        break;
    case VR_HOLE:
        VR_INVARIANT(block->expandable && (at - segment->address) % segment->page_size == 0 && block->size % segment->page_size == 0,
                     "a hole does not consist of whole pages", at);
        VR_INVARIANT(is_a_hole_of(allocator, pool->holes, number), "a hole is missing from its pool's set", at);
        VR_INVARIANT(block->next == 0 || vr_block_at(allocator, block->next)->state != VR_HOLE, "two adjacent holes are not merged", at);
        break;
    case VR_ALLOCATED:
        VR_INVARIANT(vr_address_map_find(&allocator->addresses, at) == number, "an allocated block cannot be found by its address", at);
        break;
    case VR_VACANT:
        VR_INVARIANT(segment->vacant && shard->vacant, "a vacant block is in a segment that is not vacant", at);
        VR_INVARIANT(block->next == 0 || vr_block_at(allocator, block->next)->state != VR_VACANT, "two adjacent free blocks are not merged",
                     at);
        break;
    case VR_PENDING:
        VR_INVARIANT(block->held.uses == 0 || vr_is_deferred(shard->device, number), "a waiting block still has uses", at);
        break;
    default: VR_INVARIANT(false, "a block in a segment has an invalid state", at);
    }
    return VRAM_OK;
}

static void count_block(const struct vr_block *block, struct block_census *census) {
    const unsigned pool = block->small;
    const int64_t size = (int64_t)block->size;
    if (block->state == VR_HOLE) return;
    census->mapped[pool] += size;
    census->free += block->state == VR_FREE;
    census->oversize += block->oversize;
    if (block->state == VR_ALLOCATED) census->count[pool]++, census->bytes[pool] += size;
    if (block->state == VR_PENDING) census->pending[pool]++, census->pending_bytes[pool] += size;
    if (block->state == VR_VACANT) return;
    if (block->state != VR_FREE) census->requested[pool] += (int64_t)block->requested;
    if (block->state == VR_FREE && !block->expandable && (block->previous != 0 || block->next != 0)) {
        census->splits[pool]++;
        census->split_bytes[pool] += size;
    }
}

struct slot_census {
    const struct vram_allocator *allocator;
    struct block_census *census;
    struct vram_error *error;
};

static enum vram_status check_slot(uint32_t number, void *user) {
    const struct slot_census *slots = user;
    const struct vr_block *block = vr_block_at(slots->allocator, number);
    struct vram_error *error = slots->error;
    VR_INVARIANT(block->state != VR_ALLOCATED || vr_address_map_find(&slots->allocator->addresses, block->address) == number,
                 "an allocated block cannot be found by its address", block->address);
    count_block(block, slots->census);
    slots->census->mapped[VR_LARGE] -= (int64_t)block->size;
    return VRAM_OK;
}

// Checks the sources' own state. The statistics count the memory below slots, not the slots, so the census is adjusted.
static enum vram_status check_kept(struct vr_device *device, struct block_census *census, struct vram_error *error) {
    struct slot_census slots = {device->allocator, census, error};
    struct vr_held_bytes held;
    VR_TRY(vr_source_check_device(device, error));
    VR_TRY(vr_source_each_slot(device, NULL, check_slot, &slots));
    vr_source_count_held(device, NULL, &held);
    census->mapped[VR_LARGE] += (int64_t)held.there[VR_LARGE];
    census->mapped[VR_SMALL] -= (int64_t)held.away[VR_SMALL];
    return VRAM_OK;
}

static enum vram_status check_segment(const struct vram_allocator *allocator, const struct vr_segment *segment, struct block_census *census,
                                      struct vram_error *error) {
    if (segment->source->has_slots) return VRAM_OK;
    uint64_t address = segment->address, mapped = 0;
    uint32_t previous = 0;
    for (uint32_t at = segment->first; at != 0; at = vr_block_at(allocator, at)->next) {
        const struct vr_block *block = vr_block_at(allocator, at);
        VR_INVARIANT(block->address == address, "the blocks of a segment are not contiguous", address);
        VR_INVARIANT(block->previous == previous, "a block's links are inconsistent", address);
        VR_TRY(check_block(allocator, segment, at, error));
        count_block(block, census);
        if (block->state != VR_HOLE) mapped += block->size;
        address += block->size;
        previous = at;
    }
    VR_INVARIANT(address == segment->address + segment->size, "the sizes of the blocks do not sum to the size of their segment",
                 segment->address);
    VR_INVARIANT(mapped == segment->mapped, "the mapped bytes of a segment are miscounted", segment->address);
    VR_INVARIANT(segment->away <= mapped && (segment->vacant || segment->away == 0), "the suspended bytes of a segment are miscounted",
                 segment->address);
    census->mapped[segment->small ? VR_SMALL : VR_LARGE] -= (int64_t)segment->away;
    if (segment->source->check != NULL) VR_TRY(segment->source->check(allocator, segment, error));
    if (segment->expandable) return VRAM_OK;
    census->segments[segment->small ? VR_SMALL : VR_LARGE]++;
    census->oversize_segments += segment->oversize;
    return VRAM_OK;
}

static enum vram_status check_counters(const struct vr_device *device, const struct block_census *census, struct vram_error *error) {
    for (unsigned p = 0; p < VR_POOLS; p++) {
        const struct vr_totals *totals = &device->stats.totals;
        const enum vram_stat_pool view = p == VR_SMALL ? VRAM_STAT_SMALL_POOL : VRAM_STAT_LARGE_POOL;
        VR_INVARIANT(vr_totals_current(totals, p, VR_F_COUNT) == census->count[p] &&
                         vr_totals_current(totals, p, VR_F_BYTES) == census->bytes[p],
                     "allocated blocks are miscounted", p);
        VR_INVARIANT(vr_totals_current(totals, p, VR_F_REQUESTED) == census->requested[p], "requested bytes are miscounted", p);
        VR_INVARIANT(vr_totals_current(totals, p, VR_F_SPLITS) == census->splits[p] &&
                         vr_totals_current(totals, p, VR_F_SPLIT_BYTES) == census->split_bytes[p],
                     "inactive splits are miscounted", p);
        VR_INVARIANT(totals->waiting[VR_F_COUNT].current[p] == census->pending[p] &&
                         totals->waiting[VR_F_BYTES].current[p] == census->pending_bytes[p],
                     "waiting blocks are miscounted", p);
        VR_INVARIANT(device->stats.reserved[view].current == census->mapped[p], "reserved bytes are miscounted", p);
        VR_INVARIANT(device->stats.segment[view].current == census->segments[p], "segments are miscounted", p);
    }
    VR_INVARIANT(device->stats.oversize_allocations.current == census->oversize &&
                     device->stats.oversize_segments.current == census->oversize_segments,
                 "oversize blocks or segments are miscounted", 0);
    return VRAM_OK;
}

static enum vram_status check_peaks(const struct vr_device *device, struct vram_error *error) {
    struct vram_stats stats = {.max_split_size = -1};
    vr_totals_report(&device->stats.totals, &stats);
    for (int v = 0; v < VRAM_STAT_POOLS; v++) {
#define CHECK(family) VR_INVARIANT(stats.family[v].current <= stats.family[v].peak, "a peak of " #family " was missed", (uint64_t)v);
        CHECK(allocation)
        CHECK(allocated_bytes)
        CHECK(active)
        CHECK(active_bytes)
        CHECK(requested_bytes)
        CHECK(inactive_split)
        CHECK(inactive_split_bytes)
#undef CHECK
    }
    return VRAM_OK;
}

static enum vram_status check_fences(const struct vr_device *device, struct vram_error *error) {
    VR_INVARIANT(vr_fences_check(&device->fences), "a queue of fences cannot be found by its stream, or an empty queue was kept",
                 device->fences.count);
    for (size_t i = 0; i < device->fences.count; i++) {
        const struct vr_fence_queue *queue = &device->fences.queues[i];
        for (size_t k = 0; k < queue->count; k++) {
            const struct vr_block *block = vr_block_at(device->allocator, queue->fences[(queue->head + k) & (queue->capacity - 1)].block);
            VR_INVARIANT(block->state == VR_PENDING && block->held.pending != 0, "a fence belongs to a block that is not waiting",
                         block->address);
        }
    }
    const bool gated = (atomic_load_explicit(&device->gate, memory_order_relaxed) & VR_GATE_FENCES) != 0;
    VR_INVARIANT(gated == vr_fences_wait_for_any(&device->fences), "the gate disagrees with the number of pending fences", 0);
    return VRAM_OK;
}

// The walk has shown that each free block is in its index; this shows that no index contains another block.
static enum vram_status check_indices(const struct vr_device *device, const struct block_census *census, struct vram_error *error) {
    const uint32_t count = atomic_load_explicit(&device->shards.count, memory_order_relaxed);
    size_t all = 0;
    for (uint32_t i = 0; i < count; i++) {
        for (unsigned p = 0; p < VR_POOLS; p++) {
            size_t found = 0;
            const bool sound = vr_index_check(&device->shards.items[i]->pool[p].index, &device->allocator->arena, &found);
            VR_INVARIANT(sound, "the index of a pool is not sorted", device->shards.items[i]->stream);
            all += found;
        }
    }
    VR_INVARIANT(all == census->free, "the indices contain blocks that are in no segment", all);
    return VRAM_OK;
}

// Returns whether a list contains only segments of its pool. Adds their number to *count.
static bool check_list(const struct vr_device *device, const struct vram_pool *pool, size_t *count) {
    const struct vram_allocator *allocator = device->allocator;
    for (uint32_t number = 0; (number = vr_segment_of_pool_after(device, pool, number)) != 0; ++*count)
        if (allocator->shards[vr_segment_at(allocator, number)->shard]->owner != pool) return false;
    return true;
}

static enum vram_status check_segment_lists(const struct vr_device *device, struct vram_error *error) {
    size_t all = 0, listed = 0;
    for (uint32_t number = vr_segment_first(device); number != 0; number = vr_segment_after(device, number)) all++;
    bool sound = check_list(device, NULL, &listed);
    for (const struct vram_pool *pool = device->pools; pool != NULL && sound; pool = pool->next) sound = check_list(device, pool, &listed);
    VR_INVARIANT(sound && listed == all, "a segment is missing from the list of its pool", listed);
    return VRAM_OK;
}

static enum vram_status check_holes(const struct vr_device *device, struct vram_error *error) {
    const uint32_t count = atomic_load_explicit(&device->shards.count, memory_order_relaxed);
    for (uint32_t i = 0; i < count; i++) {
        const struct vr_shard *shard = device->shards.items[i];
        for (unsigned p = 0; p < VR_POOLS && !shard->vacant; p++)
            VR_INVARIANT(vr_hole_runs_check(device->allocator, shard->pool[p].holes), "a run of holes is longer than its recorded maximum",
                         shard->stream);
    }
    return VRAM_OK;
}

enum vram_status vr_native_check(const struct vr_device *device, struct vram_error *error) {
    const struct vram_allocator *allocator = device->allocator;
    struct block_census census = {0};
    for (uint32_t number = vr_segment_first(device); number != 0; number = vr_segment_after(device, number)) {
        const struct vr_segment *segment = vr_segment_at(allocator, number);
        VR_TRY(check_segment(allocator, segment, &census, error));
    }
    VR_TRY(check_kept(vr_device_if_used(device->allocator, device->ordinal), &census, error));
    VR_TRY(check_counters(device, &census, error));
    VR_TRY(check_indices(device, &census, error));
    VR_TRY(check_holes(device, error));
    VR_TRY(check_segment_lists(device, error));
    VR_TRY(check_peaks(device, error));
    return check_fences(device, error);
}

enum vram_status vram_check(struct vram_allocator *allocator, struct vram_error *error) {
    VR_REQUIRE_OR_FAIL(error, allocator);
    for (uint32_t i = 0; i < VRAM_MAX_DEVICES; i++) {
        struct vr_device *device = vr_device_if_used(allocator, i);
        if (device == NULL) continue;
        vr_device_lock(device);
        const enum vram_status status = allocator->backend->check(device, error);
        vr_device_unlock(device);
        VR_TRY(status);
    }
    return VRAM_OK;
}
