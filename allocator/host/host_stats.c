// Statistics, and queries about blocks and pools.
#include <inttypes.h>

#include "base/text.h"
#include "host/host_state.h"

void vram_get_host_stats(struct vram_host *host, struct vram_host_stats *stats) {
    if (host == NULL || stats == NULL) return;
    vr_host_lock(host);
    *stats = host->stats;
    vr_host_unlock(host);
}

// X(name)
#define STATS(X) X(active_bytes) X(active_requests) X(allocated_bytes) X(allocations) X(requested_bytes)

void vram_host_reset_peak_stats(struct vram_host *host) {
    if (host == NULL) return;
    vr_host_lock(host);
#define RESET(name) host->stats.name.peak = host->stats.name.current;
    STATS(RESET)
#undef RESET
    vr_host_unlock(host);
}

void vram_host_reset_accumulated_stats(struct vram_host *host) {
    if (host == NULL) return;
    struct vram_host_stats *stats = &host->stats;
    vr_host_lock(host);
#define RESET(name) stats->name.allocated = stats->name.freed = 0;
    STATS(RESET)
#undef RESET
    stats->host_alloc_time = stats->host_free_time = (struct vram_host_time){.count = 0};
    memset(stats->bucket_allocation, 0, sizeof stats->bucket_allocation);
    stats->num_alloc_retries = stats->num_ooms = 0;
    vr_host_unlock(host);
}

// --- JSON -----------------------------------------------------------------------------------------------------------------------

static void print_u64(struct vr_sink *sink, const char *name, uint64_t value) {
    vr_sink_printf(sink, ",\n  \"%s\": %" PRIu64, name, value);
}

static void print_stat(struct vr_sink *sink, const char *name, const struct vram_stat *stat) {
    const struct {
        const char *name;
        int64_t value;
    } fields[] = {{"allocated", stat->allocated}, {"current", stat->current}, {"freed", stat->freed}, {"peak", stat->peak}};
    for (size_t i = 0; i < VR_COUNT_OF(fields); i++) {
        vr_sink_printf(sink, "%s\n  \"%s.%s\": %" PRId64, sink->length == 1 ? "" : ",", name, fields[i].name, fields[i].value);
    }
}

static void print_time(struct vr_sink *sink, const char *name, const struct vram_host_time *time) {
    const double count = time->count == 0 ? 1 : (double)time->count;
    vr_sink_printf(sink, ",\n  \"%s.avg\": %.3f", name, (double)time->total_ns / 1e3 / count);
    vr_sink_printf(sink, ",\n  \"%s.count\": %" PRIu64, name, time->count);
    vr_sink_printf(sink, ",\n  \"%s.max\": %.3f", name, (double)time->max_ns / 1e3);
    vr_sink_printf(sink, ",\n  \"%s.min\": %.3f", name, (double)time->min_ns / 1e3);
    vr_sink_printf(sink, ",\n  \"%s.total\": %.3f", name, (double)time->total_ns / 1e3);
}

static void print_buckets(struct vr_sink *sink, const uint64_t *buckets) {
    vr_sink_printf(sink, ",\n  \"bucket_allocation\": [");
    for (unsigned i = 0; i < VRAM_HOST_BUCKETS; i++) vr_sink_printf(sink, "%s%" PRIu64, i == 0 ? "" : ",", buckets[i]);
    vr_sink_printf(sink, "]");
}

size_t vram_host_stats_json(const struct vram_host_stats *stats, char *text, size_t capacity) {
    if (stats == NULL) return vr_sink_begin(text, capacity).length;
    struct vr_sink sink = vr_sink_begin(text, capacity);
    vr_sink_printf(&sink, "{");
    print_stat(&sink, "active_bytes", &stats->active_bytes);
    print_stat(&sink, "active_requests", &stats->active_requests);
    print_stat(&sink, "allocated_bytes", &stats->allocated_bytes);
    print_stat(&sink, "allocations", &stats->allocations);
    print_buckets(&sink, stats->bucket_allocation);
    print_time(&sink, "host_alloc_time", &stats->host_alloc_time);
    print_time(&sink, "host_free_time", &stats->host_free_time);
    print_u64(&sink, "kept_bytes", stats->kept_bytes);
    print_u64(&sink, "num_alloc_retries", stats->num_alloc_retries);
    print_u64(&sink, "num_host_alloc", (uint64_t)stats->allocations.allocated);
    print_u64(&sink, "num_host_free", (uint64_t)stats->allocations.freed);
    print_u64(&sink, "num_ooms", stats->num_ooms);
    print_u64(&sink, "pending_bytes", stats->pending_bytes);
    print_stat(&sink, "requested_bytes", &stats->requested_bytes);
    print_u64(&sink, "reserve_bytes", stats->reserve_bytes);
    print_u64(&sink, "reserve_used_bytes", stats->reserve_used_bytes);
    vr_sink_printf(&sink, "\n}\n");
    return sink.length;
}

// --- queries ----------------------------------------------------------------------------------------------------------------------

static uint32_t count_uses(const struct vr_host_block *block) {
    uint32_t count = 0;
    for (const struct vr_host_use *use = block->uses; use != NULL; use = use->next) count++;
    return count;
}

enum vram_status vram_get_host_block_info(struct vram_host *host, const void *pointer, struct vram_host_block_info *info) {
    VR_REQUIRE(host && info);
    vr_host_lock(host);
    const struct vr_host_block *block = vr_host_table_find(&host->table, (uint64_t)(uintptr_t)pointer);
    const bool live = block != NULL && block->state == VR_HOST_LIVE;
    if (live) {
        *info = (struct vram_host_block_info){.pointer = (void *)(uintptr_t)block->address,
                                              .size_bytes = block->size,
                                              .requested_bytes = block->requested,
                                              .origin = block->origin,
                                              .captured = block->captured,
                                              .streams = count_uses(block),
                                              .pool = block->pool->id};
    }
    vr_host_unlock(host);
    return live ? VRAM_OK : VRAM_INVALID_POINTER;
}

uint64_t vram_host_allocated_size(struct vram_host *host, const void *pointer) {
    if (host == NULL) return 0;
    struct vram_host_block_info info;
    return vram_get_host_block_info(host, pointer, &info) == VRAM_OK ? info.size_bytes : 0;
}

static void count_block(const struct vr_host_block *block, struct vram_host_pool_stats *stats) {
    stats->blocks++;
    stats->allocated_bytes += block->size;
    switch (block->state) {
    case VR_HOST_LIVE: stats->live_blocks++, stats->live_bytes += block->size; break;
    case VR_HOST_FREE: stats->free_bytes += block->size; break;
    case VR_HOST_KEPT: stats->kept_bytes += block->size; break;
    default: stats->pending_bytes += block->size; break;
    }
}

void vram_get_host_pool_stats(struct vram_host_pool *pool, struct vram_host_pool_stats *stats) {
    if (pool == NULL || stats == NULL) return;
    struct vram_host *host = pool->host;
    *stats = (struct vram_host_pool_stats){.blocks = 0};
    vr_host_lock(host);
    size_t at = 0;
    for (const struct vr_host_block *block; (block = vr_host_table_next(&host->table, &at)) != NULL;)
        if (block->pool == pool) count_block(block, stats);
    vr_host_unlock(host);
}
