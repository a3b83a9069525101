#include "replay/drive.h"
#include "core/release.h"
#include "core/alloc.h"
#include "core/source/source_ops.h"

// One operation under all locks, with the device's context current.
struct session {
    struct vr_device *device;
    struct vr_shard *shard;
    struct vr_context_guard guard;
};

// Chooses the shard of the pool to which a request of this thread would be routed.
static enum vram_status choose_shard(struct session *session, uint64_t stream) {
    struct vram_pool *pool = session->device->routes.count == 0 ? NULL : vr_route(session->device, stream);
    if (pool != NULL) VR_TRY(vr_shard_of_pool(pool, stream, &session->shard));
    return vr_shard_reserve_records(session->shard, 8);
}

static enum vram_status open_session(struct vram_allocator *allocator, uint32_t ordinal, uint64_t stream, struct session *session) {
    VR_TRY(vr_device_get(allocator, ordinal, &session->device));
    VR_TRY(vr_shard_get(session->device, stream, &session->shard));
    VR_TRY(vr_context_enter(session->device, &session->guard));
    vr_device_lock_guarded(session->device, &session->guard);
    const enum vram_status status = choose_shard(session, stream);
    if (status == VRAM_OK) return VRAM_OK;
    vr_device_unlock(session->device);
    vr_context_leave(&session->guard);
    return status;
}

static void close_session(struct session *session) {
    vr_device_unlock(session->device);
    vr_context_leave(&session->guard);
}

// Returns the source of whole segments for the shard, even if the shard grows by another source.
static const struct vr_source_ops *whole_source(const struct vr_shard *shard) {
    return shard->source->take != NULL ? shard->source : &vr_source_cu_mem_alloc;
}

enum vram_status vr_drive_add_segment(struct vram_allocator *allocator, uint32_t device, uint64_t stream, bool small_pool,
                                      uint64_t segment_bytes, uint64_t *address) {
    if (segment_bytes == 0 || segment_bytes % VR_MIN_BLOCK != 0) return VRAM_INVALID_ARGUMENT;
    struct session session;
    VR_TRY(open_session(allocator, device, stream, &session));
    uint32_t block = 0;
    const enum vram_status status = vr_whole_make(session.shard, whole_source(session.shard), small_pool, segment_bytes, &block);
    if (status == VRAM_OK) {
        vr_pool_insert(session.shard, block);
        *address = vr_block_at(allocator, block)->address;
    }
    close_session(&session);
    return status;
}

enum vram_status vr_drive_add_expandable(struct vram_allocator *allocator, uint32_t device, uint64_t stream, bool small_pool,
                                         uint64_t reserve_bytes, uint64_t *address) {
    struct session session;
    VR_TRY(open_session(allocator, device, stream, &session));
    uint32_t segment = 0;
    const enum vram_status status = vr_expandable_reserve(session.shard, small_pool, reserve_bytes, &segment);
    if (status == VRAM_OK) *address = vr_segment_at(allocator, segment)->address;
    close_session(&session);
    return status;
}

// Maps a range of a hole. Holes are mapped from their low end, so the part below the range is split off first and stays a hole.
static enum vram_status map_in_hole(struct session *session, uint32_t hole, uint64_t address, uint64_t size) {
    struct vram_allocator *allocator = session->device->allocator;
    const struct vr_block *item = vr_block_at(allocator, hole);
    const struct vr_segment *segment = vr_segment_at(allocator, item->segment);
    if (!vr_block_holds(item, address, size) || (address - segment->address) % segment->page_size != 0 || size % segment->page_size != 0) {
        return VRAM_INVALID_ARGUMENT;
    }
    return vr_expandable_map_at(session->shard, hole, address, size);
}

// Opens a session on the device and shard of the block, in any state, that contains the address.
static enum vram_status open_session_at(struct vram_allocator *allocator, uint64_t address, struct session *session, uint32_t *block) {
    for (uint32_t i = 0; i < VRAM_MAX_DEVICES; i++) {
        if (vr_device_if_used(allocator, i) == NULL) continue;
        VR_TRY(open_session(allocator, i, 0, session));
        *block = vr_block_containing(session->device, address);
        if (*block != 0) {
            session->shard = vr_shard_of(allocator, vr_block_at(allocator, *block));
            const enum vram_status status = vr_shard_reserve_records(session->shard, 8);
            if (status != VRAM_OK) close_session(session);
            return status;
        }
        close_session(session);
    }
    return VRAM_INVALID_ARGUMENT;
}

enum vram_status vr_drive_map(struct vram_allocator *allocator, uint64_t address, uint64_t size_bytes) {
    struct session session;
    uint32_t hole = 0;
    VR_TRY(open_session_at(allocator, address, &session, &hole));
    enum vram_status status = VRAM_INVALID_ARGUMENT;
    if (vr_block_at(allocator, hole)->state == VR_HOLE) status = map_in_hole(&session, hole, address, size_bytes);
    close_session(&session);
    return status;
}

enum vram_status vr_drive_release(struct vram_allocator *allocator, uint64_t address) {
    struct session session;
    uint32_t block = 0;
    VR_TRY(open_session_at(allocator, address, &session, &block));
    const struct vr_block *item = vr_block_at(allocator, block);
    enum vram_status status = VRAM_INVALID_ARGUMENT;
    const struct vr_source_ops *source = vr_segment_at(allocator, item->segment)->source;
    if (item->state == VR_FREE && item->address == address && vr_source_takes_back_whole(source, item)) {
        status = source->give_back(session.shard, block);
    }
    close_session(&session);
    return status;
}

enum vram_status vr_drive_empty_default_pools(struct vram_allocator *allocator, uint32_t device) {
    struct session session;
    VR_TRY(open_session(allocator, device, 0, &session));
    const enum vram_status status = vr_release_default_pools(session.device);
    close_session(&session);
    return status;
}

enum vram_status vr_drive_unmap(struct vram_allocator *allocator, uint64_t address) {
    struct session session;
    uint32_t block = 0;
    VR_TRY(open_session_at(allocator, address, &session, &block));
    const struct vr_block *item = vr_block_at(allocator, block);
    enum vram_status status = VRAM_INVALID_ARGUMENT;
    const struct vr_source_ops *source = vr_segment_at(allocator, item->segment)->source;
    if (item->state == VR_FREE && source->expandable) status = source->give_back(session.shard, block);
    close_session(&session);
    return status;
}

enum vram_status vr_drive_malloc_at(struct vram_allocator *allocator, uint32_t device, uint64_t stream, bool small_pool, uint64_t address,
                                    uint64_t size_bytes, uint64_t requested_bytes) {
    struct session session;
    VR_TRY(open_session(allocator, device, stream, &session));
    const struct vr_alloc_request request = {.shard = session.shard,
                                             .size_bytes = requested_bytes,
                                             .rounded = size_bytes,
                                             .kind = small_pool ? VR_SMALL : VR_LARGE,
                                             .exact = true,
                                             .address = address};
    const enum vram_status status = vr_alloc_at(&request, vr_block_containing(session.device, address));
    close_session(&session);
    return status;
}

enum vram_status vr_drive_malloc_past_cache(struct vram_allocator *allocator, uint32_t device, uint64_t size_bytes, uint64_t stream,
                                            uint64_t *address) {
    if (size_bytes == 0 || size_bytes >= VR_REQUEST_LIMIT) return VRAM_INVALID_ARGUMENT;
    struct session session;
    VR_TRY(open_session(allocator, device, stream, &session));
    const struct vr_alloc_request request = vr_alloc_request_of(session.shard, size_bytes);
    uint32_t block = 0;
    enum vram_status status = session.shard->source->grow(session.shard, request.kind == VR_SMALL, request.rounded, &block);
    if (status == VRAM_OK) *address = vr_block_at(allocator, vr_alloc_block(&request, block, true))->address;
    close_session(&session);
    return status;
}

enum vram_status vr_drive_free_request(struct vram_allocator *allocator, uint64_t address) {
    struct vr_device *device = NULL;
    const uint32_t block = vr_find_and_lock_device(allocator, address, &device);
    if (block == 0) return VRAM_INVALID_POINTER;
    vr_uses_clear(allocator, vr_block_at(allocator, block));
    vr_request_free(device, block, true);
    vr_device_unlock(device);
    return VRAM_OK;
}

enum vram_status vr_drive_free_complete(struct vram_allocator *allocator, uint64_t address) {
    const uint32_t block = vr_address_map_find(&allocator->addresses, address);
    if (block == 0) return VRAM_INVALID_POINTER;
    const struct vr_block *item = vr_block_at(allocator, block);
    struct vr_device *device = vr_shard_of(allocator, item)->device;
    vr_device_lock(device);
    // A block with fences is completed by them instead.
    const bool mine = item->state == VR_PENDING && item->address == address && item->held.pending == 0;
    if (mine) vr_complete_free(device, block, true);
    vr_device_unlock(device);
    return mine ? VRAM_OK : VRAM_INVALID_POINTER;
}

enum vram_status vr_drive_walk_cached(struct vram_allocator *allocator, uint32_t device, const struct vram_pool *pool,
                                      bool (*visit)(uint64_t address, uint64_t size_bytes, void *user), void *user, size_t *walked) {
    struct vr_device *walking = NULL;
    VR_TRY(vr_device_get(allocator, device, &walking));
    vr_device_lock(walking);
    const enum vram_status status = vr_cached_walk(walking, pool, visit, user, walked);
    vr_device_unlock(walking);
    return status;
}

static uint32_t search_cache(const struct vr_alloc_request *request) {
    return vr_pool_search(request->shard, request->kind, request->rounded, request->shard->expandable);
}

static uint32_t search_mapped(const struct vr_alloc_request *request) {
    const struct vr_source_ops *source = request->shard->source;
    return source->ready != NULL ? source->ready(request->shard, request->kind == VR_SMALL, request->rounded) : 0;
}

static enum vram_status peek_cache(struct vram_allocator *allocator, uint32_t device, uint64_t size_bytes, uint64_t stream,
                                   uint32_t (*search)(const struct vr_alloc_request *request), uint64_t *address) {
    if (size_bytes == 0 || size_bytes >= VR_REQUEST_LIMIT) return VRAM_INVALID_ARGUMENT;
    struct session session;
    VR_TRY(open_session(allocator, device, stream, &session));
    const struct vr_alloc_request request = vr_alloc_request_of(session.shard, size_bytes);
    const uint32_t block = search(&request);
    *address = block == 0 ? 0 : vr_pool_address_in(session.shard, vr_block_at(allocator, block), request.rounded);
    close_session(&session);
    return VRAM_OK;
}

enum vram_status vr_drive_peek(struct vram_allocator *allocator, uint32_t device, uint64_t size_bytes, uint64_t stream, uint64_t *address) {
    return peek_cache(allocator, device, size_bytes, stream, search_cache, address);
}

enum vram_status vr_drive_peek_mapped(struct vram_allocator *allocator, uint32_t device, uint64_t size_bytes, uint64_t stream,
                                      uint64_t *address) {
    return peek_cache(allocator, device, size_bytes, stream, search_mapped, address);
}

enum vram_status vr_drive_walk_rivals(struct vram_allocator *allocator, uint32_t device, uint64_t size_bytes, uint64_t stream,
                                      bool (*visit)(uint64_t address, uint64_t segment_address, void *user), void *user) {
    if (size_bytes == 0 || size_bytes >= VR_REQUEST_LIMIT) return VRAM_INVALID_ARGUMENT;
    struct session session;
    VR_TRY(open_session(allocator, device, stream, &session));
    const struct vr_alloc_request request = vr_alloc_request_of(session.shard, size_bytes);
    const struct vr_index *index = &session.shard->pool[request.kind].index;
    uint32_t block = vr_index_first_at_least(index, &allocator->arena, request.rounded);
    const uint64_t size = block == 0 ? 0 : vr_block_at(allocator, block)->size;
    for (bool on = true; on && block != 0 && vr_block_at(allocator, block)->size == size;) {
        const struct vr_block *item = vr_block_at(allocator, block);
        on = visit(vr_pool_address_in(session.shard, item, request.rounded), vr_segment_at(allocator, item->segment)->address, user);
        block = vr_index_next(index, &allocator->arena, block);
    }
    close_session(&session);
    return VRAM_OK;
}
