// Why a request failed: one cause of a closed list.
#include "analyze/oom_cause.h"

// A few blocks pin large free memory when all of them together are at most this part of the request.
#define PIN_PART 8u
// Memory outside the allocator is the cause only where it is more than this part of the device: every process has a context.
#define OUTSIDE_PART 8u

static uint64_t driver_free(const struct vram_report_oom *oom) { return oom->has_device_free ? oom->device_free_bytes : 0; }

static bool is_limited(const struct vram_report_oom *oom) {
    if (oom->has_device_free && oom->device_free_bytes >= oom->segment_bytes) return true;
    // What was held and what was free together reach the limit, but for rounding.
    return oom->limit_bytes != 0 && oom->room_bytes >= oom->limit_bytes - oom->limit_bytes / 64;
}

static bool is_pinned(const struct vram_report_oom *oom) { return oom->pin_blocks != 0 && oom->pin_bytes <= oom->size_bytes / PIN_PART; }

// Of what was free but out of reach: the one that would have sufficed alone (the largest, if several), else the largest of all that
// would have sufficed together. FULL when they do not.
static enum vram_report_oom_cause out_of_reach(const struct vram_report_oom *oom, uint64_t missing) {
    const struct {
        enum vram_report_oom_cause cause;
        uint64_t bytes;
    } shares[] = {{VRAM_OOM_PENDING, oom->pending_bytes},
                  {VRAM_OOM_OTHER_STREAMS, oom->other_stream_bytes},
                  {VRAM_OOM_OTHER_POOLS, oom->other_pool_bytes},
                  {VRAM_OOM_PRIVATE_POOLS, oom->private_pool_bytes}};
    size_t largest = 0;
    uint64_t sum = 0;
    for (size_t i = 0; i < VR_COUNT_OF(shares); i++) {
        sum += shares[i].bytes;
        if (shares[i].bytes > shares[largest].bytes) largest = i;
    }
    if (sum >= missing && sum != 0) return shares[largest].cause;
    if (sum + oom->outside_bytes >= missing && oom->outside_bytes > oom->device_total_bytes / OUTSIDE_PART) return VRAM_OOM_OUTSIDE;
    return VRAM_OOM_FULL;
}

// The system has no memory left to pin, or a limit keeps it: of a container, of the process, of the driver.
static enum vram_report_oom_cause host_cause(const struct vram_report_oom *oom) {
    if (vr_oom_host_is_known(oom) && oom->device_free_bytes >= oom->size_bytes) return VRAM_OOM_LIMIT;
    const uint64_t pinned = oom->allocated_bytes + oom->pending_bytes, without_others = oom->device_free_bytes + oom->outside_bytes;
    return oom->outside_bytes > pinned && oom->size_bytes <= without_others ? VRAM_OOM_OUTSIDE : VRAM_OOM_FULL;
}

// A log of requests alone: what was in use leaves room for this one in all that is known of the device, or nothing is known.
static bool is_room_unknown(const struct vram_report_oom *oom) {
    const uint64_t held = oom->reserved_bytes != 0 ? oom->reserved_bytes : oom->allocated_bytes + oom->pending_bytes;
    if (oom->has_device_free || oom->limit_bytes != 0) return false;
    return oom->room_bytes == 0 || (oom->room_bytes > held && oom->room_bytes - held >= oom->size_bytes);
}

enum vram_report_oom_cause vr_oom_cause(const struct vram_report_oom *oom) {
    if (!oom->has_picture) return VRAM_OOM_UNKNOWN;
    if (oom->is_host) return host_cause(oom);
    if (oom->usable_largest_bytes >= oom->size_bytes) return VRAM_OOM_CONTRADICTORY;
    if (is_limited(oom)) return VRAM_OOM_LIMIT;
    const uint64_t in_reach = driver_free(oom) + oom->usable_bytes;
    if (in_reach >= oom->size_bytes && oom->usable_bytes != 0) return is_pinned(oom) ? VRAM_OOM_PINNED : VRAM_OOM_FRAGMENTED;
    const uint64_t wanted = in_reach >= oom->size_bytes ? oom->segment_bytes : oom->size_bytes;
    const uint64_t missing = wanted > in_reach ? wanted - in_reach : 1;
    if (oom->driver_pool_bytes >= missing) return VRAM_OOM_DRIVER_POOLS;
    const enum vram_report_oom_cause cause = out_of_reach(oom, missing);
    return cause == VRAM_OOM_FULL && is_room_unknown(oom) ? VRAM_OOM_ROOM_UNKNOWN : cause;
}
