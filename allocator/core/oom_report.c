#include "core/oom_report.h"
#include "core/source/source_ops.h"

#include "base/text.h"

static _Thread_local struct vram_oom last_oom;
static _Thread_local bool has_last_oom;

// Returns the sum of one pool's free blocks. *largest: the largest that a request could use now.
static uint64_t free_bytes_of(const struct vr_shard *shard, unsigned kind, uint64_t *largest) {
    const struct vram_allocator *allocator = shard->device->allocator;
    const struct vr_pool *pool = &shard->pool[kind];
    uint64_t sum = 0;
    uint32_t at = vr_index_first_at_least(&pool->index, &allocator->arena, VR_MIN_BLOCK);
    for (; at != 0; at = vr_index_next(&pool->index, &allocator->arena, at)) {
        sum += vr_block_at(allocator, at)->size;
        if (shard->expandable || !vr_block_at(allocator, at)->expandable) *largest = vr_block_at(allocator, at)->size;
    }
    return sum;
}

void vr_oom_describe(const struct vr_alloc_request *request, uint64_t segment_bytes, bool rejected, bool limit_hit, struct vram_oom *oom) {
    VR_ASSERT_ALL_LOCKED(request->shard->device);
    struct vr_device *device = request->shard->device;
    const struct vram_allocator *allocator = device->allocator;
    *oom = (struct vram_oom){
        .device = device->ordinal,
        .stream = request->shard->stream,
        .requested_bytes = request->size_bytes,
        .rounded_bytes = request->rounded,
        .segment_bytes = segment_bytes,
        .device_total_bytes = device->total_bytes,
        .limit_bytes = device->limit_bytes,
        .reserved_bytes = (uint64_t)device->stats.reserved[VRAM_STAT_ALL].current,
        .rejected = rejected,
        .limit_hit = limit_hit,
    };
    uint64_t total = 0, free_bytes = 0;
    if (vr_driver_memory_info(allocator->driver, &free_bytes, &total) == VR_CU_SUCCESS) oom->device_free_bytes = free_bytes;
    const struct vr_totals *totals = &request->shard->device->stats.totals;
    for (unsigned p = 0; p < VR_POOLS; p++) {
        oom->allocated_bytes += (uint64_t)vr_totals_current(totals, p, VR_F_BYTES);
        oom->pending_bytes += (uint64_t)totals->waiting[VR_F_BYTES].current[p];
    }
    oom->asleep_bytes = vr_vacant_live(device);
    const uint32_t count = atomic_load_explicit(&device->shards.count, memory_order_relaxed);
    for (uint32_t i = 0; i < count; i++) {
        for (unsigned p = 0; p < VR_POOLS; p++) {
            uint64_t largest = 0;
            const struct vr_shard *shard = device->shards.items[i];
            const uint64_t bytes = free_bytes_of(shard, p, &largest);
            oom->cached_bytes += bytes;
            if (shard->owner != request->shard->owner) {
                oom->private_pool_bytes += bytes;
            } else if (shard != request->shard) {
                oom->other_stream_bytes += bytes;
            } else if (p != request->kind) {
                oom->other_pool_bytes += bytes;
            } else {
                oom->largest_free_bytes = largest;
            }
        }
    }
}

void vr_oom_announce(struct vram_allocator *allocator, const struct vram_oom *oom) {
    static _Thread_local bool announcing;
    last_oom = *oom;
    has_last_oom = true;
    if (announcing) return; // an observer's own request failed; notifying it would recurse without end
    vr_mutex_lock(&allocator->mutex);
    const size_t count = allocator->observer_count;
    struct vr_observer *observers = count == 0 ? NULL : malloc(count * sizeof *observers);
    if (observers != NULL) memcpy(observers, allocator->observers, count * sizeof *observers);
    vr_mutex_unlock(&allocator->mutex);
    announcing = true;
    for (size_t i = 0; observers != NULL && i < count; i++) observers[i].function(oom, observers[i].user);
    announcing = false;
    free(observers);
    last_oom = *oom; // observers may have changed it: replays, which make the page, run out of memory themselves
}

bool vram_last_oom(struct vram_oom *oom) {
    if (oom == NULL) return false;
    if (has_last_oom) *oom = last_oom;
    return has_last_oom;
}

// --- text -------------------------------------------------------------------------------------------------------------------

struct shown {
    double value;
    const char *unit;
};

// Formats like PyTorch: two decimals, and the next unit above 1024 of the one below.
static struct shown shown_bytes(uint64_t bytes) {
    if (bytes <= VR_KIB) return (struct shown){(double)bytes, "bytes"};
    if (bytes <= VR_MIB) return (struct shown){(double)bytes / (double)VR_KIB, "KiB"};
    if (bytes <= VR_GIB) return (struct shown){(double)bytes / (double)VR_MIB, "MiB"};
    return (struct shown){(double)bytes / (double)VR_GIB, "GiB"};
}

static void put_size(struct vr_sink *sink, const char *before, uint64_t bytes, const char *after) {
    const struct shown shown = shown_bytes(bytes);
    vr_sink_printf(sink, "%s%.2f %s%s", before, shown.value, shown.unit, after);
}

static void put_reserved(struct vr_sink *sink, const struct vram_oom *oom) {
    put_size(sink, " This allocator holds ", oom->reserved_bytes, ": ");
    put_size(sink, "", oom->allocated_bytes - oom->asleep_bytes, " in live blocks");
    if (oom->asleep_bytes != 0) put_size(sink, " (", oom->asleep_bytes, " more is suspended)");
    if (oom->pending_bytes != 0) put_size(sink, ", ", oom->pending_bytes, " freed but still waiting for other streams");
    put_size(sink, ", ", oom->cached_bytes, " free");
    if (oom->cached_bytes == 0) {
        vr_sink_printf(sink, ".");
        return;
    }
    put_size(sink, " (largest usable piece ", oom->largest_free_bytes, "");
    if (oom->other_stream_bytes != 0) put_size(sink, "; ", oom->other_stream_bytes, " belongs to other streams");
    if (oom->other_pool_bytes != 0) put_size(sink, "; ", oom->other_pool_bytes, " is in the other size class");
    if (oom->private_pool_bytes != 0) put_size(sink, "; ", oom->private_pool_bytes, " belongs to other pools");
    vr_sink_printf(sink, ").");
}

size_t vram_oom_text(const struct vram_oom *oom, char *text, size_t capacity) {
    if (oom == NULL) return vr_sink_begin(text, capacity).length;
    struct vr_sink sink = vr_sink_begin(text, capacity);
    put_size(&sink, oom->rejected ? "Refused before any driver call: tried to allocate " : "Out of memory: tried to allocate ",
             oom->segment_bytes, "");
    put_size(&sink, " for a request of ", oom->requested_bytes, "");
    vr_sink_printf(&sink, " on device %u (stream 0x%llx).", (unsigned)oom->device, (unsigned long long)oom->stream);
    put_size(&sink, " The device has ", oom->device_total_bytes, ", ");
    put_size(&sink, "", oom->device_free_bytes, " of it free.");
    if (oom->limit_bytes != UINT64_MAX)
        put_size(&sink, " The allocator may hold ", oom->limit_bytes, oom->limit_hit ? "; this limit refused the request." : ".");
    put_reserved(&sink, oom);
    return sink.length;
}
