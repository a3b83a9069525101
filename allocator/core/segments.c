// Keeps the segments of a device.
#include "core/segments.h"
#include "core/device.h"
#include "core/source/source_ops.h"

// Process-wide, so that ages compare across devices and allocators, as in PyTorch.
static _Atomic uint64_t registrations;

enum vram_stat_pool vr_stat_view(bool small) { return small ? VRAM_STAT_SMALL_POOL : VRAM_STAT_LARGE_POOL; }

void vr_reserved_add(struct vr_shard *shard, bool small, int64_t bytes) {
    VR_ASSERT_ALL_LOCKED(shard->device);
    struct vr_device *device = shard->device;
    const enum vram_stat_pool view = vr_stat_view(small);
    vr_stat_add(&device->stats.reserved[VRAM_STAT_ALL], bytes);
    vr_stat_add(&device->stats.reserved[view], bytes);
    if (shard->owner == NULL) return;
    shard->owner->counted = true;
    vr_stat_add(&shard->owner->reserved[VRAM_STAT_ALL], bytes);
    vr_stat_add(&shard->owner->reserved[view], bytes);
}

void vr_reserved_move(struct vr_shard *from, struct vr_shard *to, int64_t bytes) {
    VR_ASSERT_ALL_LOCKED(from->device);
    struct vr_shard *const sides[] = {from, to};
    for (int i = 0; i < 2; i++) {
        struct vram_pool *pool = sides[i]->owner;
        const int64_t change = i == 0 ? -bytes : bytes;
        if (pool == NULL) continue;
        pool->counted = true;
        vr_stat_add(&pool->reserved[VRAM_STAT_ALL], change);
        vr_stat_add(&pool->reserved[VRAM_STAT_LARGE_POOL], change);
    }
}

VR_INLINE uint32_t segment_of(const struct vr_device *device, uint32_t record) {
    return record != 0 ? vr_block_at(device->allocator, record)->segment : 0;
}

uint32_t vr_segment_first(const struct vr_device *device) {
    return segment_of(device, vr_tree_first(device->segments.root, &device->allocator->arena));
}

uint32_t vr_segment_after(const struct vr_device *device, uint32_t segment) {
    return segment_of(device, vr_tree_next(&device->allocator->arena, vr_segment_at(device->allocator, segment)->place));
}

// --- lists ------------------------------------------------------------------------------------------------------------------------------

static struct vr_segment_list *list_of(struct vr_device *device, struct vram_pool *owner) {
    return owner != NULL ? &owner->all_segments : &device->segments.defaults;
}

static void append_segment(struct vr_device *device, struct vr_segment_list *list, uint32_t segment) {
    struct vr_segment *entry = vr_segment_at(device->allocator, segment);
    entry->previous = list->last;
    entry->next = 0;
    *(list->last != 0 ? &vr_segment_at(device->allocator, list->last)->next : &list->first) = segment;
    list->last = segment;
}

static void take_out(struct vr_device *device, struct vr_segment_list *list, uint32_t segment) {
    const struct vr_segment *entry = vr_segment_at(device->allocator, segment);
    *(entry->previous != 0 ? &vr_segment_at(device->allocator, entry->previous)->next : &list->first) = entry->next;
    *(entry->next != 0 ? &vr_segment_at(device->allocator, entry->next)->previous : &list->last) = entry->previous;
}

uint32_t vr_segment_of_pool_after(const struct vr_device *device, const struct vram_pool *pool, uint32_t segment) {
    if (segment != 0) return vr_segment_at(device->allocator, segment)->next;
    return pool != NULL ? pool->all_segments.first : device->segments.defaults.first;
}

void vr_segment_move(struct vr_device *device, uint32_t segment, const struct vr_shard *to) {
    VR_ASSERT_ALL_LOCKED(device);
    struct vr_segment *entry = vr_segment_at(device->allocator, segment);
    const struct vr_shard *from = device->allocator->shards[entry->shard];
    entry->shard = to->number;
    if (from->owner == to->owner) return;
    take_out(device, list_of(device, from->owner), segment);
    append_segment(device, list_of(device, to->owner), segment);
}

// Adds a segment to the tree and to its pool's list. Needs a spare record.
static void enlist_segment(struct vr_shard *shard, uint32_t segment) {
    struct vr_device *device = shard->device;
    struct vr_segment *entry = vr_segment_at(device->allocator, segment);
    entry->place = shard->spare[--shard->spare_count];
    *vr_block_at(device->allocator, entry->place) = (struct vr_block){.address = entry->address, .segment = segment};
    vr_tree_insert(&device->segments.root, &device->allocator->arena, entry->place);
    append_segment(device, list_of(device, shard->owner), segment);
}

static void delist_segment(struct vr_shard *shard, uint32_t segment) {
    struct vr_device *device = shard->device;
    const uint32_t place = vr_segment_at(device->allocator, segment)->place;
    vr_tree_remove(&device->segments.root, &device->allocator->arena, place);
    vr_shard_recycle(shard, place);
    take_out(device, list_of(device, shard->owner), segment);
}

uint32_t vr_block_containing(const struct vr_device *device, uint64_t address) {
    VR_ASSERT_ALL_LOCKED(device);
    const struct vram_allocator *allocator = device->allocator;
    const uint32_t number = segment_of(device, vr_tree_at_or_before(device->segments.root, &allocator->arena, address));
    if (number == 0) return 0;
    const struct vr_segment *segment = vr_segment_at(allocator, number);
    if (address - segment->address >= segment->size) return 0;
    uint32_t at = segment->first;
    while (address - vr_block_at(allocator, at)->address >= vr_block_at(allocator, at)->size) at = vr_block_at(allocator, at)->next;
    return at;
}

enum vram_status vr_segment_register(struct vr_shard *shard, bool small, const struct vr_segment *facts, uint32_t *segment) {
    VR_ASSERT_ALL_LOCKED(shard->device);
    struct vram_allocator *allocator = shard->device->allocator;
    assert(facts->source != NULL && facts->size % VR_MIN_BLOCK == 0);
    VR_TRY(vr_shard_reserve_records(shard, 2));
    uint32_t made = 0;
    VR_TRY(vr_slab_take(&allocator->segments, 1, &made));
    struct vr_segment *entry = vr_segment_at(allocator, made);
    *entry = *facts;
    enlist_segment(shard, made);
    entry->expandable = facts->source->expandable;
    entry->counter = atomic_fetch_add_explicit(&registrations, 1, memory_order_relaxed);
    allocator->arena.ages[made] = allocator->order == VR_BY_SIZE_AGE_ADDRESS ? entry->counter : 0;
    entry->shard = shard->number;
    entry->device = shard->device->ordinal;
    entry->small = small;
    uint64_t *least = &shard->device->segments.least[small ? VR_SMALL : VR_LARGE];
    if (*least == 0 || facts->size < *least) *least = facts->size;
    entry->first = shard->spare[--shard->spare_count];
    struct vr_block *block = vr_block_at(allocator, entry->first);
    *block =
        (struct vr_block){.address = facts->address, .size = facts->size, .segment = made, .small = small, .expandable = entry->expandable};
    atomic_store_explicit(&block->shard, (uint16_t)shard->number, memory_order_release);
    block->state = entry->expandable ? VR_HOLE : VR_FREE;
    if (allocator->arena.numbers != NULL) allocator->arena.numbers[entry->first] = vr_new_number(&allocator->arena);
    *segment = made;
    return VRAM_OK;
}

static void give_gone(struct vr_device *device) {
    vr_slab_give_many(&device->allocator->segments, device->segments.gone_count, device->segments.gone);
    device->segments.gone_count = 0;
}

void vr_segment_forget(struct vr_shard *shard, uint32_t segment) {
    VR_ASSERT_ALL_LOCKED(shard->device);
    struct vram_allocator *allocator = shard->device->allocator;
    struct vr_segment *entry = vr_segment_at(allocator, segment);
    vr_shard_recycle(shard, entry->first);
    vr_stack_drop(entry->stack);
    entry->stack = 0;
    delist_segment(shard, segment);
    *entry = (struct vr_segment){0};
    struct vr_segment_books *segments = &shard->device->segments;
    if (!segments->forgetting) {
        vr_slab_give(&allocator->segments, segment);
        return;
    }
    segments->gone[segments->gone_count++] = segment;
    if (segments->gone_count == VR_FORGOTTEN_AT_ONCE) give_gone(shard->device);
}

void vr_segments_forget_many(struct vr_device *device) { device->segments.forgetting = true; }

void vr_segments_forgotten(struct vr_device *device) {
    device->segments.forgetting = false;
    give_gone(device);
}

// --- orphans -------------------------------------------------------------------------------------------------------------

enum vram_status vr_give_back(struct vr_device *device, const struct vr_driver_memory *memory) {
    if (memory->give_back(device->allocator->driver, memory->handle, memory->size) == VR_CU_SUCCESS) return VRAM_OK;
    struct vr_segment_books *segments = &device->segments;
    if (VR_GROW(segments, orphans, segments->orphan_count + 1) == VRAM_OK) segments->orphans[segments->orphan_count++] = *memory;
    return VRAM_DRIVER;
}

void vr_orphans_retry(struct vr_device *device, vr_give_back_call *only) {
    VR_ASSERT_ALL_LOCKED(device);
    struct vr_segment_books *segments = &device->segments;
    size_t kept = 0;
    for (size_t i = 0; i < segments->orphan_count; i++) {
        const struct vr_driver_memory orphan = segments->orphans[i];
        const bool wanted = only == NULL || orphan.give_back == only;
        const bool gone = wanted && orphan.give_back(device->allocator->driver, orphan.handle, orphan.size) == VR_CU_SUCCESS;
        if (!gone) segments->orphans[kept++] = orphan;
    }
    segments->orphan_count = kept;
}

void vr_segments_release(struct vr_segment_books *segments) {
    free(segments->orphans);
    *segments = (struct vr_segment_books){0};
}
