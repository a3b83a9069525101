// host.c: creates, configures and destroys an allocator of pinned memory; vram_host_check() verifies every invariant that this room's
// comments state.

#include "base/invariant.h"
#include "host/host_bins.h"
#include "host/host_context.h"
#include "host/host_fences.h"
#include "host/host_notify.h"
#include "host/host_pools.h"
#include "host/host_source.h"

// Totals of a walk over all blocks, to compare with lists and counters.
struct census {
    int64_t blocks, bytes;
    int64_t active, active_bytes, requested_bytes;
    uint64_t pending_bytes, kept_bytes;
    size_t free, kept;
    size_t fences; // of pending blocks
    size_t uses;   // attached to blocks
};

static size_t count_hanging(const struct vr_host_block *block) {
    size_t count = 0;
    for (const struct vr_host_use *use = block->uses; use != NULL && use->block == block; use = use->next) count++;
    return count;
}

static enum vram_status check_block(const struct vram_host *host, const struct vr_host_block *block, struct census *census,
                                    struct vram_error *error) {
    const uint64_t at = block->address;
    const size_t hanging = count_hanging(block);
    VR_INVARIANT(block->pool != NULL && block->size != 0, "a block without pool or size", at);
    VR_INVARIANT(vr_host_table_find(&host->table, at) == block, "a block cannot be found by its address", at);
    VR_INVARIANT((block->state == VR_HOST_FREE) == (block->requested == 0), "an allocated block has no request", at);
    VR_INVARIANT(block->requested <= block->size, "a block is smaller than its request", at);
    VR_INVARIANT((block->state == VR_HOST_PENDING) == (block->fences != 0), "a block that is not pending has fences", at);
    VR_INVARIANT(hanging == 0 || (block->state != VR_HOST_FREE && block->state != VR_HOST_PENDING), "a free or pending block has uses", at);
    census->blocks++;
    census->bytes += (int64_t)block->size;
    census->uses += hanging;
    census->fences += block->fences;
    switch (block->state) {
    case VR_HOST_FREE: census->free++; return VRAM_OK;
    case VR_HOST_KEPT:
        census->kept++;
        census->kept_bytes += block->size;
        break;
    case VR_HOST_PENDING: census->pending_bytes += block->size; break;
    case VR_HOST_OUT: return vr_broken(error, "a block that is being removed is still in the table", at);
    default: break;
    }
    census->active++;
    census->active_bytes += (int64_t)block->size;
    census->requested_bytes += (int64_t)block->requested;
    return VRAM_OK;
}

// Subtracts what it finds from the expected totals.
static enum vram_status check_pool(const struct vram_host_pool *pool, struct census *census, struct vram_error *error) {
    for (unsigned bin = 0; bin < VR_HOST_BINS; bin++) {
        const struct vr_host_block *previous = NULL;
        for (const struct vr_host_block *block = pool->bins[bin]; block != NULL; previous = block, block = block->next) {
            VR_INVARIANT(block->state == VR_HOST_FREE && block->pool == pool && vr_host_bin(block->size) == bin,
                         "a bin contains a block of another bin", block->address);
            VR_INVARIANT(block->previous == previous && census->free-- != 0, "the list of a bin is damaged", block->address);
        }
    }
    const struct vr_host_block *previous = NULL;
    for (const struct vr_host_block *block = pool->kept; block != NULL; previous = block, block = block->next) {
        VR_INVARIANT(block->state == VR_HOST_KEPT && block->pool == pool && pool->references != 0, "a block is kept that must not be kept",
                     block->address);
        VR_INVARIANT(block->previous == previous && census->kept-- != 0, "the list of kept blocks is damaged", block->address);
    }
    return VRAM_OK;
}

static enum vram_status check_pools(const struct vram_host *host, struct census *census, struct vram_error *error) {
    VR_TRY(check_pool(&host->standard, census, error));
    size_t in_pools = host->standard.blocks;
    for (const struct vram_host_pool *pool = host->pools; pool != NULL; pool = pool->next) {
        VR_TRY(check_pool(pool, census, error));
        in_pools += pool->blocks;
    }
    VR_INVARIANT(census->free == 0, "a free block is in no bin", census->free);
    VR_INVARIANT(census->kept == 0, "a kept block is in no list", census->kept);
    VR_INVARIANT(in_pools == host->table.blocks.count && (int64_t)in_pools == census->blocks, "the pools' blocks are miscounted", in_pools);
    return VRAM_OK;
}

static enum vram_status check_uses(const struct vram_host *host, const struct census *census, struct vram_error *error) {
    size_t waiting = 0, named = 0;
    for (const struct vr_host_lane *lane = host->lanes; lane != NULL; lane = lane->next) {
        VR_INVARIANT(lane->uses != 0, "a lane has no uses", lane->stream);
        named += lane->uses;
        for (const struct vr_host_use *use = lane->first; use != NULL; use = use->next, waiting++) {
            VR_INVARIANT(use->lane == lane && use->event != 0 && use->block->state == VR_HOST_PENDING,
                         "a lane contains a use that does not wait on it", lane->stream);
            VR_INVARIANT(use->next != NULL || lane->last == use, "a lane's last use is wrong", lane->stream);
        }
    }
    for (const struct vr_host_use *use = host->deferred; use != NULL; use = use->next, waiting++)
        VR_INVARIANT(use->event == 0 && use->block->state == VR_HOST_PENDING, "a deferred use has an event", use->lane->stream);
    VR_INVARIANT(waiting == host->waiting && waiting == census->fences, "the number of waiting uses differs from the number of fences",
                 waiting);
    VR_INVARIANT(named == waiting + census->uses, "the lanes' uses are miscounted", named);
    for (const struct vr_host_context *context = host->contexts; context != NULL; context = context->next)
        VR_INVARIANT(context->idle_count <= context->made && context->made <= context->idle_capacity, "a context's events are miscounted",
                     context->handle);
    return VRAM_OK;
}

static bool is_sane(const struct vram_stat *stat, int64_t current) { return stat->current == current && stat->peak >= current; }

static enum vram_status check_counters(const struct vram_host *host, const struct census *census, struct vram_error *error) {
    const struct vram_host_stats *stats = &host->stats;
    VR_INVARIANT(is_sane(&stats->allocations, census->blocks + host->out_blocks),
                 "the counter allocations differs from the number of blocks", 0);
    VR_INVARIANT(is_sane(&stats->allocated_bytes, census->bytes + host->out_bytes),
                 "the counter allocated_bytes differs from the size of the blocks", 0);
    VR_INVARIANT(is_sane(&stats->active_requests, census->active), "the counter active_requests differs from the number of active blocks",
                 0);
    VR_INVARIANT(is_sane(&stats->active_bytes, census->active_bytes), "the counter active_bytes differs from the size of the active blocks",
                 0);
    VR_INVARIANT(is_sane(&stats->requested_bytes, census->requested_bytes),
                 "the counter requested_bytes differs from the sum of the requests", 0);
    VR_INVARIANT(stats->pending_bytes == census->pending_bytes, "the counter pending_bytes is wrong", 0);
    VR_INVARIANT(stats->kept_bytes == census->kept_bytes, "the counter kept_bytes is wrong", 0);
    VR_INVARIANT(host->reserve.used <= host->reserve.size && stats->reserve_used_bytes == host->reserve.used, "the reserve is overdrawn",
                 0);
    return VRAM_OK;
}

static enum vram_status check_locked(const struct vram_host *host, struct vram_error *error) {
    struct census census = {.blocks = 0};
    const struct vr_map *blocks = &host->table.blocks;
    size_t at = 0;
    VR_INVARIANT(vr_map_check(blocks), "the table of blocks is damaged", blocks->count);
    VR_INVARIANT(host->table.promised == 0 || blocks->count + host->table.promised <= (blocks->mask + 1) / 4 * 3,
                 "the table is smaller than what was reserved", blocks->count);
    for (const struct vr_host_block *block; (block = vr_host_table_next(&host->table, &at)) != NULL;)
        VR_TRY(check_block(host, block, &census, error));
    VR_TRY(check_pools(host, &census, error));
    VR_TRY(check_uses(host, &census, error));
    return check_counters(host, &census, error);
}

// The poll lock keeps deferred uses from moving between two lists meanwhile.
enum vram_status vram_host_check(struct vram_host *host, struct vram_error *error) {
    VR_REQUIRE_OR_FAIL(error, host);
    vr_mutex_lock(&host->poll);
    vr_host_lock(host);
    const enum vram_status status = check_locked(host, error);
    vr_host_unlock(host);
    vr_mutex_unlock(&host->poll);
    return status;
}

// Creating and destroying an allocator of pinned memory; its settings.

static enum vram_status open_driver(struct vram_host *host, struct vram_driver *driver, struct vram_error *error) {
    host->driver = driver;
    if (driver == NULL) {
        VR_TRY(vram_driver_system(&host->driver, error));
        host->owns_driver = true;
    }
    return VRAM_OK;
}

enum vram_status vram_host_create(const struct vram_host_create_info *info, struct vram_host **host, struct vram_error *error) {
    VR_REQUIRE_OR_FAIL(error, host);
    static const struct vram_host_create_info defaults;
    if (info == NULL) info = &defaults;
    struct vram_host *made = calloc(1, sizeof *made);
    if (made == NULL) return vr_fail(error, VRAM_NO_HOST_MEMORY, VRAM_NO_OFFSET, "not enough host memory for an allocator");
    vr_mutex_init(&made->poll);
    vr_mutex_init(&made->giving);
    vr_mutex_init(&made->setup);
    vr_mutex_init(&made->mutex);
    vr_signal_init(&made->work);
    made->device = info->device;
    made->standard.host = made;
    made->standard.references = 1;
    vr_options_init(&made->options);
    const char *variable = NULL;
    const char *conf = info->conf != NULL ? info->conf : info->ignore_environment ? NULL : vr_options_environment(&variable);
    enum vram_status status = vr_options_parse(&made->options, conf, error);
    if (status == VRAM_OK) status = open_driver(made, info->driver, error);
    if (status != VRAM_OK) {
        vram_host_destroy(made);
        return status;
    }
    *host = made;
    return VRAM_OK;
}

enum vram_status vram_host_configure(struct vram_host *host, const char *conf, struct vram_error *error) {
    VR_REQUIRE_OR_FAIL(error, host);
    vr_host_lock(host);
    struct vr_options options = host->options;
    const enum vram_status status = vr_options_parse(&options, conf, error);
    if (status == VRAM_OK) host->options = options;
    vr_host_background_wake(host);
    vr_host_unlock(host);
    return status;
}

// --- the end ------------------------------------------------------------------------------------------------------------------------

static int by_address(const void *left, const void *right) {
    const struct vr_host_block *a = *(struct vr_host_block *const *)left, *b = *(struct vr_host_block *const *)right;
    return VR_ORDER(b->address, a->address);
}

static void send_one_out(struct vram_host *host, struct vr_host_block *block) {
    vr_host_uses_drop(host, block);
    if (block->origin == VRAM_HOST_RESERVED) {
        free(block);
        return;
    }
    block->next = host->outgoing;
    host->outgoing = block;
}

// Sends every block out, in whatever state; blocks of the reserve segment go with the segment. Sorts by address, so that every run of a
// program returns memory in the same order; without memory for that, any order.
static void send_everything_out(struct vram_host *host) {
    struct vr_host_block **sorted = malloc((host->table.blocks.count + 1) * sizeof *sorted), *block;
    size_t at = 0, count = 0;
    while ((block = vr_host_table_next(&host->table, &at)) != NULL) {
        if (sorted == NULL)
            send_one_out(host, block);
        else
            sorted[count++] = block;
    }
    if (count != 0) qsort(sorted, count, sizeof(struct vr_host_block *), by_address);
    for (size_t i = 0; i < count; i++) send_one_out(host, sorted[i]);
    free(sorted);
    vr_map_release(&host->table.blocks);
}

// Leaves blocks that the driver still refuses to the driver: memory that it may have mapped must not be unmapped.
static void forget_stuck(struct vram_host *host) {
    vr_host_send_stuck_out(host);
    while (host->outgoing != NULL) {
        struct vr_host_block *block = host->outgoing;
        host->outgoing = block->next;
        free(block);
    }
}

static void free_pools(struct vram_host *host) {
    while (host->pools != NULL) {
        struct vram_host_pool *next = host->pools->next;
        free(host->pools);
        host->pools = next;
    }
    free(host->routes);
}

static void give_everything_back(struct vram_host *host) {
    (void)vr_host_poll(host, VR_HOST_POLL_WAIT);
    (void)vr_host_poll(host, VR_HOST_POLL_WAIT); // uses that had no event before have one now
    send_everything_out(host);
    vr_host_fences_release(host);
    for (int attempt = 0; attempt < VR_CU_TRIES; attempt++) {
        vr_host_send_stuck_out(host);
        (void)vr_host_give_back(host);
    }
    forget_stuck(host);
    vr_host_reserve_release(host);
    vr_host_leave_home(host);
}

void vram_host_destroy(struct vram_host *host) {
    if (host == NULL) return;
    vr_host_background_end(host);
    if (host->driver != NULL) give_everything_back(host);
    free_pools(host);
    if (host->owns_driver) vram_driver_destroy(host->driver);
    vr_signal_destroy(&host->work);
    vr_mutex_destroy(&host->mutex);
    vr_mutex_destroy(&host->setup);
    vr_mutex_destroy(&host->giving);
    vr_mutex_destroy(&host->poll);
    free(host);
}
