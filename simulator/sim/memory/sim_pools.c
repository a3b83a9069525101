// sim_pools.c: pieces of pools: choosing, splitting and merging them, and freeing chunks.
#include "sim/memory/sim_pools.h"

struct vr_sim_pool *vr_sim_pool_at(const struct vr_sim *sim, uint64_t index) {
    return (struct vr_sim_pool *)(void *)vr_sim_slots_item(&sim->pools, (uint32_t)index);
}

vr_cu_result vr_sim_pool_make(struct vr_sim *sim, uint32_t device, uint32_t *index) {
    if (vr_sim_slots_take(&sim->pools, index) != VRAM_OK) return VR_CU_OUT_OF_MEMORY;
    struct vr_sim_pool *made = vr_sim_pool_at(sim, *index);
    made->device = device;
    made->follow_events = made->opportunistic = made->add_dependencies = true;
    made->read_mask = made->write_mask = (uint64_t)1 << device;
    return VR_CU_SUCCESS;
}

// Returns the piece of a reference, which is its slot + 1; 0 means none.
static struct vr_sim_piece *piece_at(const struct vr_sim *sim, uint32_t name) {
    return name == 0 ? NULL : (struct vr_sim_piece *)(void *)vr_sim_slots_item(&sim->pieces, name - 1);
}
static uint32_t name_of_piece(const struct vr_sim *sim, const struct vr_sim_piece *piece) {
    return vr_sim_slots_index(&sim->pieces, piece) + 1;
}

// --- points in streams ----------------------------------------------------------------------------------------------

static const struct vr_sim_stream *stream_of(const struct vr_sim *sim, const struct vr_sim_point *point) {
    const struct vr_sim_stream *stream = (const struct vr_sim_stream *)(const void *)vr_sim_slots_item(&sim->streams, point->stream);
    return stream->slot.live && stream->serial == point->serial ? stream : NULL;
}

// Returns whether the work up to the point is complete. With manual completion, work of a destroyed stream counts as complete, because
// nothing could complete it any more.
static bool has_passed(const struct vr_sim *sim, const struct vr_sim_point *point) {
    if (point->serial == 0) return true;
    if (!sim->options.manual_completion) return point->end_ns <= sim->clock_ns;
    const struct vr_sim_stream *stream = stream_of(sim, point);
    return stream == NULL || stream->done_work >= point->work;
}

// Returns whether waits made by the program order the next work of `stream` after the point.
static bool comes_after(const struct vr_sim_stream *stream, const struct vr_sim_point *point) {
    if (stream->serial == point->serial) return true;
    for (size_t i = 0; i < stream->waited_count; i++)
        if (stream->waited[i].serial == point->serial) return stream->waited[i].work >= point->work;
    return false;
}

static vr_cu_result wait_for_point(struct vr_sim *sim, struct vr_sim_stream *stream, const struct vr_sim_point *point) {
    if (has_passed(sim, point)) return VR_CU_SUCCESS;
    const struct vr_sim_event event = {
        .recorded = true, .stream = point->stream, .work = point->work, .complete_ns = point->end_ns, .serial = point->serial};
    if (stream_of(sim, point) != NULL) return vr_sim_enqueue_wait(sim, stream, &event);
    stream->tail_ns = stream->tail_ns > point->end_ns ? stream->tail_ns : point->end_ns; // a destroyed stream's work still takes time
    return VR_CU_SUCCESS;
}

// --- the list of free pieces ----------------------------------------------------------------------------------------

static void list_piece(struct vr_sim *sim, struct vr_sim_piece *piece) {
    struct vr_sim_pool *pool = vr_sim_pool_at(sim, piece->pool);
    piece->before = 0;
    piece->after = pool->first_free;
    if (piece->after != 0) piece_at(sim, piece->after)->before = name_of_piece(sim, piece);
    pool->first_free = name_of_piece(sim, piece);
}

static void unlist_piece(struct vr_sim *sim, struct vr_sim_piece *piece) {
    if (piece->before != 0)
        piece_at(sim, piece->before)->after = piece->after;
    else
        vr_sim_pool_at(sim, piece->pool)->first_free = piece->after;
    if (piece->after != 0) piece_at(sim, piece->after)->before = piece->before;
}

// --- splitting and merging ------------------------------------------------------------------------------------------

// Splits off the low part; the rest becomes a free piece with the same point. OUT_OF_MEMORY leaves the piece whole.
static vr_cu_result cut_piece(struct vr_sim *sim, uint32_t name, uint64_t size_bytes) {
    uint32_t index;
    if (vr_sim_slots_take(&sim->pieces, &index) != VRAM_OK) return VR_CU_OUT_OF_MEMORY;
    struct vr_sim_piece *piece = piece_at(sim, name), *rest = piece_at(sim, index + 1);
    rest->pool = piece->pool;
    rest->point = piece->point;
    rest->address = piece->address + size_bytes;
    rest->size_bytes = piece->size_bytes - size_bytes;
    rest->previous = name;
    rest->next = piece->next;
    if (rest->next != 0) piece_at(sim, rest->next)->previous = index + 1;
    piece->next = index + 1;
    piece->size_bytes = size_bytes;
    list_piece(sim, rest);
    return VR_CU_SUCCESS;
}

// Returns whether two free neighbours may be merged: both must wait for the same stream or for nothing. The result takes the later point.
static bool may_merge(const struct vr_sim_piece *low, const struct vr_sim_piece *high) {
    if (low == NULL || high == NULL || low->taken || high->taken) return false;
    return low->point.serial == high->point.serial;
}

static void absorb_next(struct vr_sim *sim, struct vr_sim_piece *low) {
    struct vr_sim_piece *high = piece_at(sim, low->next);
    if (low->point.serial == 0 || (low->point.serial == high->point.serial && high->point.work > low->point.work)) low->point = high->point;
    unlist_piece(sim, high);
    low->size_bytes += high->size_bytes;
    low->next = high->next;
    if (low->next != 0) piece_at(sim, low->next)->previous = name_of_piece(sim, low);
    vr_sim_slots_give(&sim->pieces, vr_sim_slots_index(&sim->pieces, high));
}

// Merges a free piece with its free neighbours.
static void merge_piece(struct vr_sim *sim, struct vr_sim_piece *piece) {
    while (may_merge(piece, piece_at(sim, piece->next))) absorb_next(sim, piece);
    while (may_merge(piece_at(sim, piece->previous), piece)) {
        piece = piece_at(sim, piece->previous);
        absorb_next(sim, piece);
    }
}

// Called before a pool grows: merges adjacent free pieces that wait for nothing or for this stream. The result waits for this stream only.
static void merge_for(struct vr_sim *sim, uint32_t pool, const struct vr_sim_stream *stream) {
    for (uint32_t at = vr_sim_pool_at(sim, pool)->first_free; at != 0;) {
        struct vr_sim_piece *piece = piece_at(sim, at), *next = piece_at(sim, piece->next);
        const bool own = piece->point.serial == 0 || piece->point.serial == stream->serial;
        const bool both = own && next != NULL && !next->taken && (next->point.serial == 0 || next->point.serial == stream->serial);
        if (both)
            absorb_next(sim, piece); // continue from the same piece
        else
            at = piece->after;
    }
}

// Drops reuse points that have passed, if the pool's reuse policy allows it.
static void settle_pool(struct vr_sim *sim, uint32_t pool) {
    if (!vr_sim_pool_at(sim, pool)->opportunistic) return;
    for (uint32_t at = vr_sim_pool_at(sim, pool)->first_free; at != 0; at = piece_at(sim, at)->after) {
        struct vr_sim_piece *piece = piece_at(sim, at);
        if (piece->point.serial != 0 && has_passed(sim, &piece->point)) piece->point = (struct vr_sim_point){0};
    }
    // A merge removes pieces from the list, maybe the next one: restart.
    for (bool merged = true; merged;) {
        merged = false;
        for (uint32_t at = vr_sim_pool_at(sim, pool)->first_free; at != 0 && !merged; at = piece_at(sim, at)->after) {
            struct vr_sim_piece *piece = piece_at(sim, at);
            merged = may_merge(piece, piece_at(sim, piece->next));
            if (merged) absorb_next(sim, piece);
        }
    }
}

// --- chunks ---------------------------------------------------------------------------------------------------------

static vr_cu_result add_chunk(struct vr_sim *sim, uint32_t pool, uint64_t size_bytes, uint32_t *name) {
    struct vr_sim_device *device = &sim->devices[vr_sim_pool_at(sim, pool)->device];
    const uint64_t most = vr_sim_pool_at(sim, pool)->most_bytes, held = vr_sim_pool_at(sim, pool)->reserved_bytes;
    if (!vr_sim_has_room(device, size_bytes) || (most != 0 && size_bytes > most - held)) return VR_CU_OUT_OF_MEMORY;
    uint32_t index;
    if (vr_sim_slots_take(&sim->pieces, &index) != VRAM_OK) return VR_CU_OUT_OF_MEMORY;
    struct vr_sim_place place;
    const bool shareable = vr_sim_pool_at(sim, pool)->handle_types != 0;
    vr_cu_result result = vr_sim_place_chunk(sim, vr_sim_pool_at(sim, pool)->device, size_bytes, &place);
    if (result == VR_CU_SUCCESS) result = vr_sim_back_place(sim, &place, true);
    struct vr_sim_range range = {.size_bytes = size_bytes, .kind = VR_SIM_CHUNK, .owner = pool};
    if (result == VR_CU_SUCCESS) {
        range.base = place.address;
        range.span = place.span;
        if (shareable)
            result = vr_sim_back_fill(sim, place.address, place.span, &range.read_mask);
        else
            range.read_mask = vr_sim_back_keep(sim, place.span);
        if (result == VR_CU_SUCCESS && vr_sim_ranges_insert(&sim->spaces, &range) != VRAM_OK) result = VR_CU_OUT_OF_MEMORY;
        if (result != VR_CU_SUCCESS) {
            vr_sim_back_remove(sim, place.address, place.span);
            vr_sim_place_lost(sim, &place);
        }
    }
    if (result != VR_CU_SUCCESS) {
        vr_sim_slots_give(&sim->pieces, index);
        return result;
    }
    struct vr_sim_piece *piece = piece_at(sim, index + 1);
    piece->pool = pool;
    piece->address = range.base;
    piece->size_bytes = size_bytes;
    list_piece(sim, piece);
    struct vr_sim_pool *owner = vr_sim_pool_at(sim, pool);
    owner->reserved_bytes += size_bytes;
    if (owner->reserved_bytes > owner->reserved_high_bytes) owner->reserved_high_bytes = owner->reserved_bytes;
    device->used_bytes += size_bytes;
    vr_sim_charge_chunk(sim, size_bytes);
    *name = index + 1;
    return VR_CU_SUCCESS;
}

static void remove_chunk(struct vr_sim *sim, struct vr_sim_piece *piece) {
    struct vr_sim_pool *pool = vr_sim_pool_at(sim, piece->pool);
    const struct vr_sim_range *range = vr_sim_ranges_at(&sim->spaces, piece->address);
    pool->reserved_bytes -= piece->size_bytes;
    sim->devices[pool->device].used_bytes -= piece->size_bytes;
    if (pool->handle_types != 0)
        vr_sim_back_give(sim, 0, range->read_mask, vr_sim_back_span(sim, range));
    else
        vr_sim_back_drop(sim, range, range->base, range->span);
    vr_sim_back_remove(sim, range->base, range->span);
    const uint64_t span = range->span;
    vr_sim_ranges_remove(&sim->spaces, piece->address);
    vr_sim_place_freed(sim, pool->device, piece->address, span);
    unlist_piece(sim, piece);
    vr_sim_slots_give(&sim->pieces, vr_sim_slots_index(&sim->pieces, piece));
}

// Merges all free pieces whose points have passed, so that whole chunks can be freed regardless of the streams that freed their pieces.
static void merge_passed(struct vr_sim *sim, uint32_t pool) {
    const bool opportunistic = vr_sim_pool_at(sim, pool)->opportunistic;
    vr_sim_pool_at(sim, pool)->opportunistic = true;
    settle_pool(sim, pool);
    vr_sim_pool_at(sim, pool)->opportunistic = opportunistic;
}

void vr_sim_pool_trim(struct vr_sim *sim, uint32_t pool, uint64_t keep_bytes) {
    if (vr_sim_pool_at(sim, pool)->reserved_bytes <= keep_bytes) return;
    merge_passed(sim, pool);
    for (uint32_t at = vr_sim_pool_at(sim, pool)->first_free, next; at != 0; at = next) {
        struct vr_sim_piece *piece = piece_at(sim, at);
        next = piece->after;
        if (piece->previous != 0 || piece->next != 0 || !has_passed(sim, &piece->point)) continue;
        if (vr_sim_pool_at(sim, pool)->reserved_bytes - piece->size_bytes >= keep_bytes) remove_chunk(sim, piece);
    }
}

void vr_sim_pool_end_unused(struct vr_sim *sim, uint32_t pool) {
    const struct vr_sim_pool *found = vr_sim_pool_at(sim, pool);
    if (!found->slot.named && found->reserved_bytes == 0 && found->imports == 0) vr_sim_slots_give(&sim->pools, pool);
}

void vr_sim_pools_synchronized(struct vr_sim *sim) {
    for (uint32_t i = 0; i < sim->pools.used; i++) {
        const struct vr_sim_pool *pool = vr_sim_pool_at(sim, i);
        if (!pool->slot.live) continue;
        vr_sim_pool_trim(sim, i, pool->slot.named ? pool->keep_bytes : 0);
        vr_sim_pool_end_unused(sim, i);
    }
}

// --- taking and freeing ---------------------------------------------------------------------------------------------

// Returns the smallest sufficient free piece that the stream can use without a wait. Failing that, and if the pool may add dependencies,
// the smallest one that needs a wait.
static uint32_t choose_piece(const struct vr_sim *sim, const struct vr_sim_pool *pool, const struct vr_sim_stream *stream,
                             uint64_t size_bytes) {
    uint32_t best = 0, best_waiting = 0;
    for (uint32_t at = pool->first_free; at != 0; at = piece_at(sim, at)->after) {
        const struct vr_sim_piece *piece = piece_at(sim, at);
        if (piece->size_bytes < size_bytes) continue;
        const struct vr_sim_point *point = &piece->point;
        const bool now = point->serial == 0 || point->serial == stream->serial || (pool->follow_events && comes_after(stream, point)) ||
                         (pool->opportunistic && has_passed(sim, point));
        uint32_t *place = now ? &best : &best_waiting;
        const struct vr_sim_piece *other = piece_at(sim, *place);
        const bool better = other == NULL || piece->size_bytes < other->size_bytes ||
                            (piece->size_bytes == other->size_bytes && piece->address < other->address);
        if (better) *place = at;
    }
    return best != 0 || !pool->add_dependencies ? best : best_waiting;
}

static vr_cu_result grow_pool(struct vr_sim *sim, uint32_t pool, uint64_t size_bytes, uint32_t *name) {
    vr_cu_result result = add_chunk(sim, pool, vr_round_up(size_bytes, VR_SIM_CHUNK_BYTES), name);
    if (result == VR_CU_OUT_OF_MEMORY) result = add_chunk(sim, pool, vr_round_up(size_bytes, VR_SIM_GRANULARITY), name);
    if (result != VR_CU_OUT_OF_MEMORY) return result;
    for (uint32_t i = 0; i < sim->pools.used; i++) { // free unused chunks of all pools of the device
        const struct vr_sim_pool *other = vr_sim_pool_at(sim, i);
        if (other->slot.live && other->device == vr_sim_pool_at(sim, pool)->device) vr_sim_pool_trim(sim, i, 0);
    }
    return add_chunk(sim, pool, vr_round_up(size_bytes, VR_SIM_GRANULARITY), name);
}

vr_cu_result vr_sim_pool_take(struct vr_sim *sim, uint32_t pool, struct vr_sim_stream *stream, uint64_t size_bytes, uint64_t *address) {
    if (size_bytes > VR_SIM_LIMIT) return VR_CU_OUT_OF_MEMORY;
    const uint64_t needed = vr_round_up(size_bytes, VR_SIM_PIECE_BYTES);
    settle_pool(sim, pool);
    uint32_t name = choose_piece(sim, vr_sim_pool_at(sim, pool), stream, needed);
    if (name == 0) {
        merge_for(sim, pool, stream);
        name = choose_piece(sim, vr_sim_pool_at(sim, pool), stream, needed);
    }
    vr_cu_result result = name == 0 ? grow_pool(sim, pool, needed, &name) : wait_for_point(sim, stream, &piece_at(sim, name)->point);
    if (result == VR_CU_SUCCESS && piece_at(sim, name)->size_bytes != needed) result = cut_piece(sim, name, needed);
    if (result != VR_CU_SUCCESS) return result;
    struct vr_sim_piece *piece = piece_at(sim, name);
    const struct vr_sim_range range = {.base = piece->address, .span = needed, .size_bytes = size_bytes, .owner = name - 1};
    if (vr_sim_ranges_insert(&sim->pooled, &range) != VRAM_OK) {
        merge_piece(sim, piece);
        return VR_CU_OUT_OF_MEMORY;
    }
    unlist_piece(sim, piece);
    piece->taken = true;
    piece->context = stream->context;
    piece->point = (struct vr_sim_point){0};
    struct vr_sim_pool *owner = vr_sim_pool_at(sim, pool);
    owner->used_bytes += needed;
    if (owner->used_bytes > owner->used_high_bytes) owner->used_high_bytes = owner->used_bytes;
    *address = piece->address;
    return VR_CU_SUCCESS;
}

struct vr_sim_piece *vr_sim_piece_at(const struct vr_sim *sim, uint64_t address) {
    const struct vr_sim_range *range = vr_sim_ranges_at(&sim->pooled, address);
    return range == NULL ? NULL : piece_at(sim, (uint32_t)range->owner + 1);
}

struct vr_sim_piece *vr_sim_piece_holding(const struct vr_sim *sim, uint64_t address) {
    const struct vr_sim_range *range = vr_sim_ranges_holding(&sim->pooled, address);
    return range == NULL || address - range->base >= range->size_bytes ? NULL : piece_at(sim, (uint32_t)range->owner + 1);
}

uint64_t vr_sim_piece_place(const struct vr_sim *sim, const struct vr_sim_piece *piece) {
    const struct vr_sim_range *chunk = vr_sim_ranges_holding(&sim->spaces, piece->address);
    return chunk->read_mask + (piece->address - chunk->base);
}

// Drops data written by other processes, so that the next user of the memory does not see it.
static void unshare_piece(struct vr_sim *sim, struct vr_sim_piece *piece) {
    if (piece->ticket == 0) return;
    if (vr_sim_keeps(sim)) (void)vr_sim_content_forget(&sim->content, vr_sim_piece_place(sim, piece), piece->size_bytes);
    vr_sim_ticket_end(sim, piece->ticket, 0, 0);
    piece->ticket = 0;
}

void vr_sim_piece_free(struct vr_sim *sim, struct vr_sim_piece *piece, const struct vr_sim_point *point) {
    vr_sim_ranges_remove(&sim->pooled, piece->address);
    unshare_piece(sim, piece);
    if (vr_sim_keeps(sim)) vr_sim_back_drop(sim, vr_sim_ranges_holding(&sim->spaces, piece->address), piece->address, piece->size_bytes);
    vr_sim_pool_at(sim, piece->pool)->used_bytes -= piece->size_bytes;
    piece->taken = false;
    piece->point = *point;
    list_piece(sim, piece);
    merge_piece(sim, piece);
}

void vr_sim_pools_end_context(struct vr_sim *sim, uint64_t context) {
    const struct vr_sim_point none = {0};
    for (uint32_t i = 0; i < sim->pieces.used; i++) {
        struct vr_sim_piece *piece = piece_at(sim, i + 1);
        if (piece->slot.live && piece->taken && piece->context == context) vr_sim_piece_free(sim, piece, &none);
    }
    const uint32_t device = vr_sim_context_find(sim, context)->device;
    for (uint32_t i = 0; i < sim->pools.used; i++) {
        const struct vr_sim_pool *pool = vr_sim_pool_at(sim, i);
        if (pool->slot.live && pool->device == device) vr_sim_pool_trim(sim, i, 0);
    }
}

bool vr_sim_pool_allows(const struct vr_sim *sim, uint32_t pool, uint32_t device, bool write) {
    const struct vr_sim_pool *found = vr_sim_pool_at(sim, pool);
    return ((write ? found->write_mask : found->read_mask) >> device & 1) != 0;
}

bool vr_sim_chunk_allows(const struct vr_sim *sim, const struct vr_sim_range *chunk, uint64_t address, uint64_t size_bytes, uint32_t device,
                         bool write) {
    const struct vr_sim_range *range = vr_sim_ranges_holding(&sim->pooled, address);
    if (!vr_sim_pool_allows(sim, (uint32_t)chunk->owner, device, write) || range == NULL) return false;
    return address - range->base <= range->size_bytes && size_bytes <= range->size_bytes - (address - range->base);
}
