// Returns cached memory to the driver: for a request, for vram_empty_cache(), and as garbage collection.
#include "core/release.h"
#include "core/device.h"
#include "core/source/source_ops.h"
#include "core/capture/captures.h"

static bool is_whole_segment(const struct vram_allocator *allocator, const struct vr_block *block) {
    return vr_source_takes_back_whole(vr_block_source(allocator, block), block);
}

static enum vram_status give_back_segment(struct vr_shard *shard, uint32_t block) {
    const struct vram_allocator *allocator = shard->device->allocator;
    return vr_block_source(allocator, vr_block_at(allocator, block))->give_back(shard, block);
}

static void note_failure(enum vram_status *first, enum vram_status status) {
    if (*first == VRAM_OK) *first = status;
}

// Returns the first free block that is at least as large as the smallest segment. This skips the smaller parts of segments, which may be
// many.
static uint32_t first_of_segment_size(const struct vr_device *device, const struct vr_index *index, unsigned kind) {
    const uint64_t least = device->segments.least[kind];
    return least == 0 ? 0 : vr_index_first_at_least(index, &device->allocator->arena, least);
}

// Sets may_release for what could not be released now. A part of a segment does not count: merging it inserts it into the index again,
// which sets the flag.
static enum vram_status release_segments(struct vr_shard *shard, unsigned kind) {
    struct vr_pool *pool = &shard->pool[kind];
    const struct vram_allocator *allocator = shard->device->allocator;
    enum vram_status first = VRAM_OK;
    for (uint32_t at = first_of_segment_size(shard->device, &pool->index, kind), next; at != 0; at = next) {
        next = vr_index_next(&pool->index, &allocator->arena, at);
        const bool unsplit = vr_is_unsplit(vr_block_at(allocator, at));
        if (!is_whole_segment(allocator, vr_block_at(allocator, at))) {
            shard->may_release = shard->may_release || (unsplit && !vr_block_at(allocator, at)->expandable);
            continue;
        }
        const enum vram_status status = give_back_segment(shard, at);
        shard->may_release = shard->may_release || status != VRAM_OK;
        note_failure(&first, status);
    }
    return first;
}

// Lists the blocks first, because shrinking changes the index. A listed block keeps its record, or becomes part of a hole only by its own
// shrinking, because two free blocks never touch. Unmapping waits for streams, which a capture forbids.
static enum vram_status shrink_expandable(struct vr_shard *shard, struct vr_pool *pool) {
    const struct vram_allocator *allocator = shard->device->allocator;
    struct {
        uint32_t *items;
        size_t count, items_capacity;
    } listed = {0};
    enum vram_status first = VRAM_OK;
    if (!vr_may_wait_for(shard->device, shard->stream)) {
        shard->may_release = true;
        return VRAM_OK;
    }
    for (uint32_t at = vr_index_first_at_least(&pool->index, &allocator->arena, VR_MIN_BLOCK); at != 0;
         at = vr_index_next(&pool->index, &allocator->arena, at)) {
        if (!vr_block_at(allocator, at)->expandable) continue;
        note_failure(&first, VR_GROW(&listed, items, listed.count + 1));
        if (first != VRAM_OK) break;
        listed.items[listed.count++] = at;
    }
    for (size_t i = 0; i < listed.count; i++) note_failure(&first, give_back_segment(shard, listed.items[i]));
    shard->may_release = shard->may_release || first != VRAM_OK;
    free(listed.items);
    return first;
}

enum vram_status vr_release_kind(struct vr_shard *const *shards, size_t count, unsigned kind) {
    enum vram_status first = VRAM_OK;
    if (count != 0) vr_segments_forget_many(shards[0]->device);
    for (size_t i = 0; i < count; i++) note_failure(&first, release_segments(shards[i], kind));
    if (count != 0) vr_segments_forgotten(shards[0]->device);
    for (size_t i = 0; i < count; i++) note_failure(&first, shrink_expandable(shards[i], &shards[i]->pool[kind]));
    return first;
}

enum vram_status vr_release_default_pools(struct vr_device *device) {
    VR_ASSERT_ALL_LOCKED(device);
    enum vram_status first = vr_deferred_convert(device);
    note_failure(&first, vr_fences_wait(device));
    struct vr_shard **shards = NULL;
    size_t count = 0;
    VR_TRY(vr_device_shards_by_stream(device, true, &shards, &count));
    for (size_t i = 0; i < count; i++) shards[i]->may_release = false;
    note_failure(&first, vr_release_kind(shards, count, VR_LARGE));
    note_failure(&first, vr_release_kind(shards, count, VR_SMALL));
    free(shards);
    return first;
}

enum vram_status vr_release_pool(struct vram_pool *pool) {
    VR_ASSERT_ALL_LOCKED(pool->device);
    vr_vacant_trim(pool);
    const enum vram_status small = vr_release_kind(pool->shards, pool->shard_count, VR_SMALL);
    const enum vram_status large = vr_release_kind(pool->shards, pool->shard_count, VR_LARGE);
    const enum vram_status pages = vr_source_give_back_of_pool(pool);
    return small != VRAM_OK ? small : large != VRAM_OK ? large : pages;
}

static bool walk_kind(struct vr_shard *const *shards, size_t count, unsigned kind, vr_cached_visitor visit, void *user, size_t *walked) {
    for (size_t i = 0; i < count; i++) {
        const struct vram_allocator *allocator = shards[i]->device->allocator;
        const struct vr_index *index = &shards[i]->pool[kind].index;
        for (uint32_t at = first_of_segment_size(shards[i]->device, index, kind); at != 0;
             at = vr_index_next(index, &allocator->arena, at)) {
            const struct vr_block *block = vr_block_at(allocator, at);
            ++*walked;
            if (is_whole_segment(allocator, block) && !visit(block->address, block->size, user)) return false;
        }
    }
    return true;
}

enum vram_status vr_cached_walk(struct vr_device *device, const struct vram_pool *pool, vr_cached_visitor visit, void *user,
                                size_t *walked) {
    if (pool != NULL) {
        if (walk_kind(pool->shards, pool->shard_count, VR_SMALL, visit, user, walked))
            (void)walk_kind(pool->shards, pool->shard_count, VR_LARGE, visit, user, walked);
        return VRAM_OK;
    }
    struct vr_shard **shards = NULL;
    size_t count = 0;
    VR_TRY(vr_device_shards_by_stream(device, true, &shards, &count));
    if (walk_kind(shards, count, VR_LARGE, visit, user, walked)) (void)walk_kind(shards, count, VR_SMALL, visit, user, walked);
    free(shards);
    return VRAM_OK;
}

// Releases every pool without references and, with share_live_pools, the free memory of others. Buries the pools that then have no memory.
static enum vram_status release_freeable(struct vr_device *device) {
    enum vram_status first = VRAM_OK;
    if (device->unheld_pools == 0 && !device->options.share_live_pools) return VRAM_OK;
    for (struct vram_pool *pool = device->pools; pool != NULL; pool = pool->next)
        if (pool->references == 0 || vr_private_is_shared(pool, &device->options)) note_failure(&first, vr_release_pool(pool));
    vr_private_bury(device);
    return first;
}

enum vram_status vr_release_all(struct vr_device *device, bool everything) {
    VR_ASSERT_ALL_LOCKED(device);
    enum vram_status first = everything ? vr_release_default_pools(device) : VRAM_OK;
    note_failure(&first, release_freeable(device));
    vr_orphans_retry(device, NULL);
    return first;
}

// Lowering max_split_size at run time can leave split blocks of this size, which cannot be released.
static bool releasable_oversize(const struct vr_device *device, const struct vr_block *block) {
    return is_whole_segment(device->allocator, block) && block->size >= device->options.max_split_bytes;
}

enum vram_status vr_release_available(struct vr_shard *shard, unsigned kind, uint64_t rounded, bool *enough) {
    VR_ASSERT_ALL_LOCKED(shard->device);
    struct vr_device *device = shard->device;
    const struct vram_allocator *allocator = device->allocator;
    const struct vr_pool *pool = &shard->pool[kind];
    const uint64_t least = device->options.max_split_bytes;
    *enough = false;
    if (least == VR_UNLIMITED) return VRAM_OK;
    const uint64_t wanted = rounded > least ? rounded : least;
    uint32_t at = vr_index_first_at_least(&pool->index, &allocator->arena, wanted);
    if (at != 0 && releasable_oversize(device, vr_block_at(allocator, at))) {
        *enough = true;
        return give_back_segment(shard, at);
    }
    uint64_t released = 0;
    for (at = vr_index_previous(&pool->index, &allocator->arena, at); at != 0 && released < wanted;) {
        const struct vr_block *block = vr_block_at(allocator, at);
        if (block->size < least) break;
        const uint32_t before = vr_index_previous(&pool->index, &allocator->arena, at);
        if (releasable_oversize(device, block)) {
            released += block->size;
            VR_TRY(give_back_segment(shard, at));
        }
        at = before;
    }
    *enough = released >= wanted;
    return VRAM_OK;
}

// --- garbage collection ---------------------------------------------------------------------------------------------------

struct collection {
    uint64_t total_age;
    uint64_t count;
    uint64_t reclaimed;
    bool freed;
};

static uint32_t age_of(const struct vr_device *device, const struct vr_block *block) { return device->clock[VR_LARGE] - block->age_base; }

static enum vram_status collect_round(struct vr_device *device, struct vr_shard *const *shards, size_t shard_count,
                                      struct collection *so_far) {
    const struct vram_allocator *allocator = device->allocator;
    const double threshold = (double)so_far->total_age / (double)so_far->count;
    for (size_t i = 0; i < shard_count && so_far->count != 0; i++) {
        struct vr_pool *pool = &shards[i]->pool[VR_LARGE];
        for (uint32_t at = vr_index_first_at_least(&pool->index, &allocator->arena, VR_MIN_BLOCK), next; at != 0; at = next) {
            next = vr_index_next(&pool->index, &allocator->arena, at);
            const struct vr_block *block = vr_block_at(allocator, at);
            if (!is_whole_segment(device->allocator, block) || (double)age_of(device, block) < threshold) continue;
            so_far->reclaimed += block->size;
            so_far->total_age -= age_of(device, block);
            so_far->count--;
            so_far->freed = true;
            VR_TRY(give_back_segment(shards[i], at));
        }
    }
    return VRAM_OK;
}

static void count_candidates(const struct vr_device *device, struct vr_shard *const *shards, size_t shard_count,
                             struct collection *so_far) {
    const struct vram_allocator *allocator = device->allocator;
    for (size_t i = 0; i < shard_count; i++) {
        const struct vr_pool *pool = &shards[i]->pool[VR_LARGE];
        for (uint32_t at = vr_index_first_at_least(&pool->index, &allocator->arena, VR_MIN_BLOCK); at != 0;
             at = vr_index_next(&pool->index, &allocator->arena, at)) {
            // Counts unsplit blocks of any source: a lone block of an expandable segment adds to the average age, though it stays.
            if (!vr_is_unsplit(vr_block_at(allocator, at))) continue;
            so_far->total_age += age_of(device, vr_block_at(allocator, at));
            so_far->count++;
        }
    }
}

enum vram_status vr_collect_garbage(struct vr_device *device) {
    VR_ASSERT_ALL_LOCKED(device);
    const uint64_t held = (uint64_t)device->stats.reserved[VRAM_STAT_ALL].current;
    const uint64_t threshold = (uint64_t)(device->options.garbage_collection_threshold * (double)device->limit_bytes);
    if (held <= threshold) return VRAM_OK;
    struct collection so_far = {.freed = true};
    struct vr_shard **shards = NULL;
    size_t shard_count = 0;
    VR_TRY(vr_device_shards_by_stream(device, false, &shards, &shard_count));
    count_candidates(device, shards, shard_count, &so_far);
    enum vram_status status = VRAM_OK;
    while (status == VRAM_OK && so_far.reclaimed < held - threshold && so_far.freed && so_far.count != 0) {
        so_far.freed = false;
        status = collect_round(device, shards, shard_count, &so_far);
    }
    free(shards);
    return status;
}

// --- free segments change streams --------------------------------------------------------------------------------------------------------

// A free block of another stream is safe to use after that stream's present work. An event orders the two streams, and the host does not
// wait. Only whole segments move, so that all blocks of a segment have one stream.

// Chooses like the pool's own search, but only among blocks that are whole segments.
static uint32_t smallest_segment(const struct vr_shard *shard, const struct vr_alloc_request *request) {
    const struct vram_allocator *allocator = shard->device->allocator;
    const struct vr_options *options = &shard->device->options;
    const struct vr_index *index = &shard->pool[request->kind].index;
    const uint64_t least = request->rounded > VR_SMALL_SEGMENT ? request->rounded : VR_SMALL_SEGMENT; // no segment is smaller
    uint32_t at = vr_index_may_have(index, least) ? vr_index_first_at_least(index, &allocator->arena, least) : 0;
    for (; at != 0; at = vr_index_next(index, &allocator->arena, at)) {
        const struct vr_block *block = vr_block_at(allocator, at);
        if (!vr_source_takes_back_whole(vr_segment_at(allocator, block->segment)->source, block)) continue;
        if (request->rounded < options->max_split_bytes) return block->size >= options->max_split_bytes ? 0 : at;
        return block->size - request->rounded >= options->max_non_split_rounding_bytes ? 0 : at;
    }
    return 0;
}

// Returns whether the shard has a free block that can be released now or later (vr_shard.may_release).
static bool has_returning(const struct vr_shard *shard) {
    const struct vram_allocator *allocator = shard->device->allocator;
    for (unsigned kind = 0; kind < VR_POOLS; kind++) {
        const struct vr_index *index = &shard->pool[kind].index;
        if (!vr_index_may_have(index, VR_SMALL_SEGMENT)) continue;
        uint32_t at = vr_index_first_at_least(index, &allocator->arena, VR_SMALL_SEGMENT);
        for (; at != 0; at = vr_index_next(index, &allocator->arena, at)) {
            if (vr_block_at(allocator, at)->expandable || vr_is_unsplit(vr_block_at(allocator, at))) return true;
        }
    }
    return false;
}

static bool is_better(const struct vram_allocator *allocator, uint32_t block, uint32_t best) {
    if (best == 0) return true;
    const struct vr_block *a = vr_block_at(allocator, block), *b = vr_block_at(allocator, best);
    if (a->size != b->size) return a->size < b->size;
    return vr_segment_at(allocator, a->segment)->counter < vr_segment_at(allocator, b->segment)->counter;
}

// With many streams, most have only parts of segments. Such a shard is searched once, and skipped until one of its blocks grows.
static uint32_t find_on_stream(const struct vr_alloc_request *request) {
    const struct vr_device *device = request->shard->device;
    const uint32_t count = atomic_load_explicit(&device->shards.count, memory_order_relaxed);
    uint32_t best = 0;
    for (uint32_t i = 0; i < count; i++) {
        struct vr_shard *shard = device->shards.items[i];
        if (!shard->may_release || shard == request->shard || shard->idle || shard->owner != request->shard->owner) continue;
        const uint32_t block = smallest_segment(shard, request);
        if (block == 0) shard->may_release = shard->expandable || has_returning(shard);
        if (block != 0 && is_better(device->allocator, block, best)) best = block;
    }
    return best;
}

// Records the segment as freed on one stream and allocated on the other, so that readers know each block's stream.
static void move_block(struct vr_shard *from, struct vr_shard *to, uint32_t block) {
    struct vram_allocator *allocator = to->device->allocator;
    struct vr_block *item = vr_block_at(allocator, block);
    struct vr_segment *segment = vr_segment_at(allocator, item->segment);
    vr_pool_remove(from, block);
    to->device->stats.moved_bytes += (int64_t)item->size;
    vr_notify_range(from, VR_RECORD_SEGMENT_FREE, segment, segment->address, segment->size);
    atomic_store_explicit(&item->shard, (uint16_t)to->number, memory_order_release);
    vr_segment_move(to->device, item->segment, to);
    vr_notify_range(to, VR_RECORD_SEGMENT_ALLOC, segment, segment->address, segment->size);
}

enum vram_status vr_reclaim(const struct vr_alloc_request *request, uint32_t *block) {
    VR_ASSERT_ALL_LOCKED(request->shard->device);
    struct vr_device *device = request->shard->device;
    *block = 0;
    if (request->shard->expandable || vr_any_captures(device)) return VRAM_OK;
    const uint32_t found = find_on_stream(request);
    if (found == 0) return VRAM_OK;
    struct vr_shard *from = vr_shard_of(device->allocator, vr_block_at(device->allocator, found));
    if (vr_stream_is_capturing(device, from->stream) || vr_stream_is_capturing(device, request->shard->stream)) return VRAM_OK;
    VR_TRY(vr_streams_order(device, from->stream, request->shard->stream));
    move_block(from, request->shard, found);
    *block = found;
    return VRAM_OK;
}
