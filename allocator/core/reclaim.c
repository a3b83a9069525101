// A free block of another stream is safe to use once that stream has passed: the streams are put in order by an event, and the host waits
// for nothing. Only whole segments move, so that every block of a segment has one stream.
#include "core/reclaim.h"
#include "core/capture/captures.h"
#include "core/source/source_ops.h"

// As the search of the pool itself would choose, among blocks that are segments.
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

// Whether the shard has a free block that may go back now or later (vr_shard.returns).
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

// Of many streams most have parts of segments only: they are looked at once, until one of their blocks grows.
static uint32_t find_on_stream(const struct vr_alloc_request *request) {
    const struct vr_device *device = request->shard->device;
    const uint32_t count = atomic_load_explicit(&device->shards.count, memory_order_relaxed);
    uint32_t best = 0;
    for (uint32_t i = 0; i < count; i++) {
        struct vr_shard *shard = device->shards.items[i];
        if (!shard->returns || shard == request->shard || shard->idle || shard->owner != request->shard->owner) continue;
        const uint32_t block = smallest_segment(shard, request);
        if (block == 0) shard->returns = shard->expandable || has_returning(shard);
        if (block != 0 && is_better(device->allocator, block, best)) best = block;
    }
    return best;
}

// The history shows a segment that goes on one stream and comes on the other: whoever follows it has the right stream for each block.
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
