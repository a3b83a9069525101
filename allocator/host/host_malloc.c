// Requests, frees and declared uses.
#include "host/host_bins.h"
#include "host/host_context.h"
#include "host/host_fences.h"
#include "host/host_notify.h"
#include "host/host_pools.h"
#include "host/host_source.h"

enum { LEGACY = VR_CU_STREAM_LEGACY, PER_THREAD = VR_CU_STREAM_PER_THREAD };

// --- requests -----------------------------------------------------------------------------------------------------------------------

struct request {
    struct vram_host_pool *pool; // with a reference
    uint64_t requested;
    uint64_t size;
    uint64_t stream;
    bool captured;
    struct vr_host_block *block; // the block found; NULL: none so far
};

static void hand_out(struct vram_host *host, struct request *request, struct vr_host_block *block) {
    block->state = VR_HOST_LIVE;
    block->requested = request->requested;
    block->captured = request->captured;
    block->stream = request->stream;
    block->stack = 0;
    vr_host_notify_hand_out(host, block);
    request->block = block;
    vr_stat_add(&host->stats.active_requests, 1);
    vr_stat_add(&host->stats.active_bytes, (int64_t)block->size);
    vr_stat_add(&host->stats.requested_bytes, (int64_t)block->requested);
    if (host->stats.requested_bytes.current > host->most_requested) host->most_requested = host->stats.requested_bytes.current;
}

static bool serve_from_cache(struct vram_host *host, struct request *request) {
    struct vr_host_block *block = vr_host_bins_find(request->pool, request->size);
    if (block == NULL) return false;
    vr_host_bins_remove(block);
    hand_out(host, request, block);
    return true;
}

static void adopt_block(struct vram_host *host, struct request *request, struct vr_host_block *block) {
    vr_host_table_insert(&host->table, block->address, block);
    block->pool = request->pool;
    block->pool->blocks++;
    vr_stat_add(&host->stats.allocations, 1);
    vr_stat_add(&host->stats.allocated_bytes, (int64_t)block->size);
    host->stats.bucket_allocation[vr_host_bucket(block->size)]++;
    block->stream = request->stream;
    vr_host_notify(host, VR_HOST_ACTION_SEGMENT_ALLOC, block);
    hand_out(host, request, block);
}

static enum vram_status serve_from_driver(struct vram_host *host, struct request *request) {
    struct vr_host_block *block = calloc(1, sizeof *block);
    if (block == NULL) return VRAM_NO_HOST_MEMORY;
    vr_host_lock(host);
    enum vram_status status = vr_host_table_promise(&host->table);
    vr_host_unlock(host);
    if (status != VRAM_OK) {
        free(block);
        return status;
    }
    block->size = request->size;
    status = vr_host_pin(host, block->size, &block->address, &block->origin);
    vr_host_lock(host);
    if (status == VRAM_OK)
        adopt_block(host, request, block);
    else
        vr_host_table_forgo(&host->table);
    vr_host_unlock(host);
    if (status != VRAM_OK) free(block);
    return status;
}

// Limits the sum of cached large sizes. Before another block is pinned, returns cached blocks of the default pool, smallest first, until
// the pinned bytes are at most twice the maximum ever in use. With thresholds set by the user, PyTorch's rule applies, which has no such
// limit.
static void make_room(struct vram_host *host, const struct request *request) {
    vr_host_lock(host);
    const int64_t wanted = host->stats.requested_bytes.current + (int64_t)request->requested;
    const int64_t most = 2 * (wanted > host->most_requested ? wanted : host->most_requested);
    const bool bounded = host->options.pinned_max_round_threshold_bytes == VR_UNLIMITED && request->size > VR_HOST_ROUND_LIMIT;
    while (bounded && host->stats.allocated_bytes.current - host->out_bytes + (int64_t)request->size > most) {
        struct vr_host_block *block = vr_host_bins_find_large(&host->standard);
        if (block == NULL) break;
        vr_host_bins_remove(block);
        vr_host_send_out(host, block);
    }
    vr_host_unlock(host);
    (void)vr_host_give_back(host); // vram_host_empty_cache() reports a refusal
}

static bool look_again(struct vram_host *host, struct request *request, enum vr_host_poll how) {
    (void)vr_host_poll(host, how);
    vr_host_lock(host);
    const bool served = serve_from_cache(host, request);
    vr_host_unlock(host);
    return served;
}

static enum vram_status release_cache(struct vram_host *host) {
    vr_host_lock(host);
    vr_host_send_cache_out(host, &host->standard);
    for (struct vram_host_pool *pool = host->pools; pool != NULL; pool = pool->next) {
        if (pool->references == 0) vr_host_send_cache_out(host, pool);
    }
    vr_host_send_stuck_out(host);
    vr_host_unlock(host);
    return vr_host_give_back(host);
}

static void count_up(struct vram_host *host, uint64_t *counter) {
    vr_host_lock(host);
    ++*counter;
    vr_host_unlock(host);
}

// Serves a request that the driver refused. Completes the frees that have passed and looks in the cache; then releases the cache and asks
// the driver again. If that fails, waits for pending frees and does the same.
static enum vram_status serve_after_refusal(struct vram_host *host, struct request *request) {
    static const enum vr_host_poll ways[] = {VR_HOST_POLL_NOW, VR_HOST_POLL_WAIT};
    count_up(host, &host->stats.num_alloc_retries);
    enum vram_status status = VRAM_OUT_OF_MEMORY;
    for (size_t i = 0; i < VR_COUNT_OF(ways) && status == VRAM_OUT_OF_MEMORY; i++) {
        if (look_again(host, request, ways[i])) return VRAM_OK;
        (void)release_cache(host); // a failed release cannot help; the driver's next answer decides
        status = serve_from_driver(host, request);
    }
    return status;
}

static void count_oom(struct vram_host *host, const struct request *request) {
    struct vr_host_block none = {.size = request->size, .requested = request->requested, .stream = request->stream, .pool = request->pool};
    uint64_t total_bytes;
    if (!vr_os_main_memory(&none.address, &total_bytes)) none.address = 0;
    vr_host_lock(host);
    host->stats.num_ooms++;
    vr_host_notify(host, VR_HOST_ACTION_OOM, &none);
    vr_host_unlock(host);
}

// Also takes the reference to the pool that the request holds until its end.
static bool begin_request(struct vram_host *host, struct request *request, uint64_t stream) {
    vr_host_lock(host);
    if (request->pool == NULL) request->pool = vr_host_route(host, stream);
    vr_host_pool_hold(request->pool);
    const bool leave_it = request->pool == &host->standard && vr_host_background_serves(host);
    const bool polls = host->waiting != 0 && !leave_it;
    const bool served = !polls && serve_from_cache(host, request);
    vr_host_unlock(host);
    return served || (polls && look_again(host, request, VR_HOST_POLL_IF_FREE));
}

static void end_request(struct vram_host *host, struct request *request) {
    vr_host_lock(host);
    vr_host_pool_drop(request->pool);
    const bool returns = host->outgoing != NULL;
    vr_host_unlock(host);
    if (returns) (void)vr_host_give_back(host); // not this request's failure: vram_host_empty_cache() reports it
}

// Returns whether the request's stream is capturing; false if the stream cannot be queried. A context must be current.
static bool is_capturing(struct vram_host *host, uint64_t stream) {
    bool capturing = false;
    return stream > PER_THREAD && vr_host_is_capturing(host, stream, &capturing, NULL) == VRAM_OK && capturing;
}

static enum vram_status serve_request(struct vram_host *host, struct vram_host_pool *pool, uint64_t size_bytes, uint64_t stream,
                                      void **pointer) {
    struct request request = {.pool = pool, .requested = size_bytes, .stream = stream};
    struct vr_host_guard guard;
    VR_TRY(vr_host_enter_any(host, &guard));
    vr_host_lock(host);
    request.size = vr_host_round(&host->options, size_bytes);
    vr_host_unlock(host);
    request.captured = is_capturing(host, stream);
    enum vram_status status = VRAM_OK;
    if (!begin_request(host, &request, stream)) {
        vr_host_background_start(host);
        make_room(host, &request);
        status = serve_from_driver(host, &request);
        if (status == VRAM_OUT_OF_MEMORY) status = serve_after_refusal(host, &request);
        if (status == VRAM_OUT_OF_MEMORY) count_oom(host, &request);
    }
    if (status == VRAM_OK) *pointer = (void *)(uintptr_t)request.block->address;
    end_request(host, &request);
    vr_host_leave(&guard);
    return vr_host_checked(host, status);
}

static enum vram_status host_malloc(struct vram_host *host, struct vram_host_pool *pool, uint64_t size_bytes, uint64_t stream,
                                    void **pointer) {
    if (size_bytes == 0) {
        *pointer = NULL;
        return VRAM_OK;
    }
    if (size_bytes <= VR_HOST_REQUEST_LIMIT) return serve_request(host, pool, size_bytes, stream, pointer);
    count_up(host, &host->stats.num_ooms);
    return VRAM_OUT_OF_MEMORY;
}

enum vram_status vram_host_malloc(struct vram_host *host, uint64_t size_bytes, uint64_t stream, void **pointer) {
    VR_REQUIRE(host && pointer);
    vr_host_gather(host, false);
    return host_malloc(host, NULL, size_bytes, stream, pointer);
}

enum vram_status vram_host_pool_malloc(struct vram_host_pool *pool, uint64_t size_bytes, uint64_t stream, void **pointer) {
    VR_REQUIRE(pool && pointer);
    vr_host_gather(pool->host, false);
    return host_malloc(pool->host, pool, size_bytes, stream, pointer);
}

enum vram_status vram_host_empty_cache(struct vram_host *host) {
    VR_REQUIRE(host);
    vr_host_gather(host, true);
    const enum vram_status polled = vr_host_poll(host, VR_HOST_POLL_NOW);
    const enum vram_status released = release_cache(host);
    return vr_host_checked(host, polled != VRAM_OK ? polled : released);
}

// --- frees --------------------------------------------------------------------------------------------------------------------------

static struct vr_host_block *find_live(struct vram_host *host, const void *pointer) {
    struct vr_host_block *block = vr_host_table_find(&host->table, (uint64_t)(uintptr_t)pointer);
    return block != NULL && block->state == VR_HOST_LIVE ? block : NULL;
}

// No other thread touches the block: this one is freeing it.
static enum vram_status free_used(struct vram_host *host, struct vr_host_block *block) {
    enum vram_status status = vr_host_uses_fence(host, block);
    vr_host_lock(host);
    if (host->options.pinned_free_catch_all) status = VRAM_OK;
    if (status == VRAM_OK) {
        vr_host_notify(host, VR_HOST_ACTION_FREE_REQUESTED, block);
        vr_host_uses_queue(host, block);
        vr_host_background_wake(host);
    } else {
        vr_host_uses_unfence(block);
        block->state = VR_HOST_LIVE;
    }
    vr_host_unlock(host);
    return status;
}

enum vram_status vram_host_free(struct vram_host *host, void *pointer) {
    VR_REQUIRE(host);
    if (pointer == NULL) return VRAM_OK;
    bool fences = false;
    vr_host_gather(host, true);
    vr_host_lock(host);
    struct vr_host_block *block = find_live(host, pointer);
    if (block != NULL && block->uses == NULL) {
        vr_host_notify(host, VR_HOST_ACTION_FREE_REQUESTED, block);
        vr_host_finish(host, block);
    } else if (block != NULL && block->captured && block->pool->references != 0) {
        vr_host_notify(host, VR_HOST_ACTION_FREE_REQUESTED, block);
        vr_host_keep(host, block);
    } else if (block != NULL) {
        block->state = VR_HOST_FREEING;
        fences = true;
    }
    const bool returns = host->outgoing != NULL;
    vr_host_unlock(host);
    if (block == NULL) return VRAM_INVALID_POINTER;
    const enum vram_status returned = returns ? vr_host_give_back(host) : VRAM_OK;
    return vr_host_checked(host, fences ? free_used(host, block) : returned);
}

// --- uses ---------------------------------------------------------------------------------------------------------------------------

// Gets the context of a stream (for a default stream: the caller's current one, or the home context), and whether it is capturing now.
static enum vram_status ask_about(struct vram_host *host, uint64_t stream, uint64_t *context, bool *capturing) {
    struct vr_host_guard guard;
    VR_TRY(vr_host_enter_any(host, &guard));
    enum vram_status status = VRAM_OK;
    if (stream == 0) {
        *context = guard.previous != 0 ? guard.previous : atomic_load_explicit(&host->home, memory_order_relaxed);
    } else {
        status = vr_host_status(vr_cu(host->driver, stream_get_ctx, stream, context));
        if (status == VRAM_OK) status = vr_host_is_capturing(host, stream, capturing, NULL);
    }
    vr_host_leave(&guard);
    return status;
}

enum vram_status vram_host_record_stream(struct vram_host *host, void *pointer, uint64_t stream) {
    VR_REQUIRE(host);
    if (pointer == NULL) return VRAM_OK;
    if (stream == PER_THREAD) return VRAM_INVALID_ARGUMENT;
    if (stream == LEGACY) stream = 0;
    uint64_t context = 0;
    bool capturing = false;
    VR_TRY(ask_about(host, stream, &context, &capturing));
    vr_host_lock(host);
    struct vr_host_block *block = find_live(host, pointer);
    const enum vram_status status = block == NULL ? VRAM_INVALID_POINTER : vr_host_use_add(host, block, context, stream);
    if (status == VRAM_OK && capturing) block->captured = true;
    vr_host_unlock(host);
    return vr_host_checked(host, status);
}
