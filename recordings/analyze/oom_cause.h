// oom_cause.h: why a request failed, by the layout of memory at that moment.
#ifndef VR_ANALYZE_OOM_CAUSE_H
#define VR_ANALYZE_OOM_CAUSE_H

#include "analyze/device_view.h"
#include "vram/report.h"

// ---- The address ranges of a device that were mapped after a given event, and their owners. For each address, the first segment event
// after the moment decides; without one, the final segment does. This works for inconsistent histories, too, and takes n log n.

// [address, end), of one stream, size class and pool. Ranges are ascending and disjoint.
struct vr_layout_range {
    uint64_t address;
    uint64_t end;
    uint64_t stream;
    uint64_t pool_first;
    uint64_t pool_second;
    enum vram_report_kind kind;
    bool expandable; // made of pages: adjacent ranges of one owner are joined
};

// Sets *ranges to the ranges mapped after `event` (-1: before event 0). The caller frees *ranges. NO_HOST_MEMORY.
enum vram_status vr_layout_at(const struct vr_view *view, int64_t event, struct vr_layout_range **ranges, size_t *count);

// ---- Why a request failed, by the state at that moment, and the blocks in its way.

struct vr_live_block {
    uint64_t address;
    uint64_t end;
    uint32_t stack; // of the allocation; 0: no stack
    bool estimated; // the block is gone by the end, so its size is the rounded request
};

// The part of the memory where the failed request could search.
struct vr_failed_request {
    uint64_t stream;
    uint64_t pool_first, pool_second;
    enum vram_report_kind kind;
    uint64_t size_bytes;
    uint64_t driver_bytes; // bytes that a new segment would have needed beyond the driver's free bytes
};

// The blocks in the way: the fewest bytes whose release would make enough free memory contiguous.
struct vr_pins {
    uint64_t bytes;
    uint64_t blocks; // 0: there is no such set of blocks
    uint32_t stack;  // of the largest block
};

// Finds the cheaper of two sets: the blocks in one window of the request's own free memory, or those of the least used segments of its
// pool, which could then be released to the driver. Ranges and blocks are ascending. NO_HOST_MEMORY.
enum vram_status vr_pins_find(const struct vr_layout_range *ranges, size_t range_count, const struct vr_live_block *blocks,
                              size_t block_count, const struct vr_failed_request *request, struct vr_pins *pins);

// oom_cause.c: returns the cause of an event whose state is complete; UNKNOWN if it was not rebuilt (has_picture false).
enum vram_report_oom_cause vr_oom_cause(const struct vram_report_oom *oom);

// Returns whether the recording of a failed request for pinned host memory has the memory that was available.
VR_INLINE bool vr_oom_host_is_known(const struct vram_report_oom *oom) {
    return oom->has_device_free && (oom->device_free_bytes != 0 || oom->device_total_bytes != 0);
}

#endif
