#include "host/host_source.h"
#include "host/host_bins.h"
#include "host/host_context.h"
#include "host/host_fences.h"
#include "host/host_notify.h"
#include "host/host_pools.h"

enum { CUT_BYTES = 4096 /* of the reserve segment, as in PyTorch */, MOST_THREADS = 128 };

// The way to pin, copied from the options under the lock.
struct method {
    enum vram_host_origin origin;
    uint32_t threads;
};

// --- first touch ------------------------------------------------------------------------------------------------------------------

struct share {
    volatile unsigned char *first;
    uint64_t pages, page_bytes;
};

static void touch_share(void *argument) {
    const struct share *share = argument;
    for (uint64_t i = 0; i < share->pages; i++) share->first[i * share->page_bytes] = 0;
}

// Touches pages before they are registered, so that registration holds the driver's lock for a shorter time. The calling thread takes the
// last share, and every share whose thread could not be started.
static void touch_pages(uint64_t address, uint64_t size_bytes, uint32_t threads) {
    struct vr_thread started[MOST_THREADS];
    struct share shares[MOST_THREADS];
    const uint64_t page = vr_os_page_bytes(), pages = size_bytes / page;
    const uint32_t count = threads > MOST_THREADS ? MOST_THREADS : pages < threads ? 1 : threads;
    bool runs[MOST_THREADS] = {false};
    for (uint32_t i = 0; i < count; i++) {
        const uint64_t from = pages * i / count;
        shares[i] = (struct share){(volatile unsigned char *)(uintptr_t)(address + from * page), pages * (i + 1) / count - from, page};
        if (i + 1 < count) runs[i] = vr_thread_start(&started[i], touch_share, &shares[i]) == VRAM_OK;
        if (!runs[i]) touch_share(&shares[i]);
    }
    for (uint32_t i = 0; i < count; i++) {
        if (runs[i]) vr_thread_join(&started[i]);
    }
}

// --- the driver ---------------------------------------------------------------------------------------------------------------------

static enum vram_status of_result(vr_cu_result result) {
    return result == VR_CU_OUT_OF_MEMORY ? VRAM_OUT_OF_MEMORY : vr_host_status(result);
}

// Uses whole pages: two registered ranges must not share a page.
static enum vram_status pin_registered(struct vram_host *host, uint64_t size, uint32_t threads, uint64_t *address) {
    const uint64_t page = vr_os_page_bytes(), bytes = vr_round_up(size, page);
    // Not vr_os_reserve(): the system must refuse memory it does not have before the pages are touched.
    void *memory = bytes > SIZE_MAX / 2 ? NULL : aligned_alloc((size_t)page, (size_t)bytes);
    if (memory == NULL) return VRAM_OUT_OF_MEMORY;
    touch_pages((uint64_t)(uintptr_t)memory, bytes, threads);
    const uint64_t base = (uint64_t)(uintptr_t)memory;
    const enum vram_status status = of_result(vr_cu(host->driver, mem_host_register, base, bytes, VR_CU_MEM_HOST_REGISTER_PORTABLE));
    if (status == VRAM_OK)
        *address = base;
    else
        free(memory);
    return status;
}

static void book_time(struct vram_host_time *time, uint64_t elapsed_ns) {
    if (time->count == 0 || elapsed_ns < time->min_ns) time->min_ns = elapsed_ns;
    if (elapsed_ns > time->max_ns) time->max_ns = elapsed_ns;
    time->total_ns += elapsed_ns;
    time->count++;
}

static enum vram_status pin_memory(struct vram_host *host, uint64_t size, struct method method, uint64_t *address) {
    uint64_t home = 0;
    VR_TRY(vr_host_home(host, &home));
    struct vr_host_guard guard;
    VR_TRY(vr_host_enter(host, home, &guard));
    const uint64_t start_ns = vr_host_now_ns(host);
    enum vram_status status = VRAM_OK;
    if (method.origin == VRAM_HOST_REGISTERED)
        status = pin_registered(host, size, method.threads, address);
    else
        status = of_result(vr_cu(host->driver, mem_host_alloc, address, size, VR_CU_MEM_HOST_ALLOC_PORTABLE));
    const uint64_t elapsed_ns = vr_host_now_ns(host) - start_ns;
    vr_host_leave(&guard);
    if (status != VRAM_OK) return status;
    vr_host_lock(host);
    book_time(&host->stats.host_alloc_time, elapsed_ns);
    vr_host_unlock(host);
    return VRAM_OK;
}

// Unpins memory the way it was pinned, whatever the options say now. The home context must be current.
static enum vram_status unpin_memory(struct vram_host *host, uint64_t address, enum vram_host_origin origin) {
    if (origin == VRAM_HOST_ALLOCATED) return vr_host_status(vr_cu(host->driver, mem_free_host, address));
    VR_TRY(vr_host_status(vr_cu(host->driver, mem_host_unregister, address)));
    free((void *)(uintptr_t)address);
    return VRAM_OK;
}

// --- the reserve segment --------------------------------------------------------------------------------------------------------------

// Tries to make the reserve segment, once. If the driver refuses it, requests go to the driver one by one.
static void make_reserve(struct vram_host *host, struct method method) {
    vr_mutex_lock(&host->setup);
    vr_host_lock(host);
    const uint64_t size = host->reserve.tried ? 0 : host->options.pinned_reserve_segment_bytes;
    vr_host_unlock(host);
    uint64_t address = 0;
    const bool made = size != 0 && pin_memory(host, size, method, &address) == VRAM_OK;
    vr_host_lock(host);
    if (size != 0) host->reserve.tried = true;
    if (made) {
        host->reserve.address = address;
        host->reserve.size = host->stats.reserve_bytes = size;
        host->reserve.origin = method.origin;
    }
    vr_host_unlock(host);
    vr_mutex_unlock(&host->setup);
}

static bool cut_from_reserve(struct vram_host *host, uint64_t size, uint64_t *address) {
    struct vr_host_reserve *reserve = &host->reserve;
    const uint64_t bytes = vr_round_up(size, CUT_BYTES);
    vr_host_lock(host);
    const bool fits = reserve->address != 0 && bytes <= reserve->size - reserve->used;
    if (fits) {
        *address = reserve->address + reserve->used;
        reserve->used += bytes;
        host->stats.reserve_used_bytes = reserve->used;
    }
    vr_host_unlock(host);
    return fits;
}

void vr_host_reserve_release(struct vram_host *host) {
    const struct vr_host_reserve *reserve = &host->reserve;
    if (reserve->address == 0) return;
    struct vr_host_guard guard;
    enum vram_status status = VRAM_DRIVER;
    for (int attempt = 0; attempt < VR_CU_TRIES && status != VRAM_OK; attempt++) {
        if (vr_host_enter(host, atomic_load_explicit(&host->home, memory_order_relaxed), &guard) != VRAM_OK) continue;
        status = unpin_memory(host, reserve->address, reserve->origin);
        vr_host_leave(&guard);
    }
}

// --- both ---------------------------------------------------------------------------------------------------------------------------

enum vram_status vr_host_pin(struct vram_host *host, uint64_t size, uint64_t *address, enum vram_host_origin *origin) {
    vr_host_lock(host);
    const struct vr_options *options = &host->options;
    const struct method method = {options->pinned_use_host_register ? VRAM_HOST_REGISTERED : VRAM_HOST_ALLOCATED,
                                  options->pinned_register_threads};
    const bool wants_reserve = options->pinned_reserve_segment_bytes != 0 && !host->reserve.tried;
    vr_host_unlock(host);
    if (wants_reserve) {
        VR_TRY(vr_host_home(host, NULL));
        make_reserve(host, method);
    }
    if (cut_from_reserve(host, size, address)) {
        *origin = VRAM_HOST_RESERVED;
        return VRAM_OK;
    }
    VR_TRY(pin_memory(host, size, method, address));
    *origin = method.origin;
    return VRAM_OK;
}

void vr_host_send_out(struct vram_host *host, struct vr_host_block *block) {
    assert(block->origin != VRAM_HOST_RESERVED);
    vr_host_notify(host, VR_HOST_ACTION_SEGMENT_FREE, block);
    vr_host_table_remove(&host->table, block->address);
    block->pool->blocks--;
    block->pool = NULL;
    block->state = VR_HOST_OUT;
    host->out_blocks++;
    host->out_bytes += (int64_t)block->size;
    block->next = host->outgoing;
    host->outgoing = block;
}

// Keeps a block of the reserve segment; if its pool has ended, moves it to the default pool.
static void keep_reserved(struct vram_host *host, struct vr_host_block *block) {
    if (block->pool->references != 0) return;
    vr_host_bins_remove(block);
    block->pool->blocks--;
    block->pool = &host->standard;
    block->pool->blocks++;
    vr_host_bins_insert(block);
}

static struct vr_host_block *last_of(struct vr_host_block *list) {
    while (list != NULL && list->next != NULL) list = list->next;
    return list;
}

// In each bin, sends the block that was freed first out first, as in PyTorch.
void vr_host_send_cache_out(struct vram_host *host, struct vram_host_pool *pool) {
    for (unsigned bin = 0; bin < VR_HOST_BINS; bin++) {
        for (struct vr_host_block *block = last_of(pool->bins[bin]), *before = NULL; block != NULL; block = before) {
            before = block->previous;
            if (block->origin == VRAM_HOST_RESERVED) {
                keep_reserved(host, block);
                continue;
            }
            vr_host_bins_remove(block);
            vr_host_send_out(host, block);
        }
    }
}

void vr_host_send_stuck_out(struct vram_host *host) {
    while (host->stuck != NULL) {
        struct vr_host_block *block = host->stuck;
        host->stuck = block->next;
        block->next = host->outgoing;
        host->outgoing = block;
    }
}

static struct vr_host_block *next_out(struct vram_host *host) {
    vr_host_lock(host);
    struct vr_host_block *block = host->outgoing;
    if (block != NULL) {
        host->outgoing = block->next;
        host->with_driver++;
    }
    vr_host_unlock(host);
    return block;
}

// Blocks that the driver refused stay in the statistics: they are still pinned.
static void settle_out(struct vram_host *host, struct vr_host_block *block, enum vram_status status, uint64_t elapsed_ns) {
    vr_host_lock(host);
    host->with_driver--;
    if (status == VRAM_OK) {
        vr_stat_add(&host->stats.allocations, -1);
        vr_stat_add(&host->stats.allocated_bytes, -(int64_t)block->size);
        host->out_blocks--;
        host->out_bytes -= (int64_t)block->size;
        book_time(&host->stats.host_free_time, elapsed_ns);
    } else {
        block->next = host->stuck;
        host->stuck = block;
    }
    vr_host_unlock(host);
    if (status == VRAM_OK) free(block);
}

static enum vram_status give_all(struct vram_host *host) {
    struct vr_host_guard guard;
    VR_TRY(vr_host_enter(host, atomic_load_explicit(&host->home, memory_order_acquire), &guard));
    enum vram_status first = VRAM_OK;
    for (struct vr_host_block *block = next_out(host); block != NULL; block = next_out(host)) {
        const uint64_t start_ns = vr_host_now_ns(host);
        const enum vram_status status = unpin_memory(host, block->address, block->origin);
        settle_out(host, block, status, vr_host_now_ns(host) - start_ns);
        if (first == VRAM_OK) first = status;
    }
    vr_host_leave(&guard);
    return first;
}

void vr_host_free_unused_pools(struct vram_host *host) {
    for (struct vram_host_pool **at = &host->pools; *at != NULL;) {
        struct vram_host_pool *pool = *at;
        if (pool->references != 0 || pool->blocks != 0) {
            at = &pool->next;
            continue;
        }
        *at = pool->next;
        free(pool);
    }
}

enum vram_status vr_host_give_back(struct vram_host *host) {
    vr_host_lock(host);
    const bool nothing = host->outgoing == NULL && host->with_driver == 0;
    const bool tolerant = host->options.pinned_free_catch_all;
    vr_host_free_unused_pools(host);
    vr_host_unlock(host);
    if (nothing) return VRAM_OK;
    vr_mutex_lock(&host->giving);
    const enum vram_status status = give_all(host);
    vr_mutex_unlock(&host->giving);
    return tolerant ? VRAM_OK : status;
}
