// oom_cause.h: why a request failed, by the layout of memory at that moment.
#ifndef VR_ANALYZE_OOM_CAUSE_H
#define VR_ANALYZE_OOM_CAUSE_H

#include "analyze/device_view.h"
#include "vram/report.h"

// ---- Which address ranges of a device were mapped after a given event, and whose they were.
// The final segments and the segment events after the moment tell it: what touched an address first after the moment decides; where nothing
// did, the final segment counts. That needs no sound history and takes n log n.

// [address, end), all of one stream, size class and pool. Ranges are ascending and do not overlap.
struct vr_layout_range {
    uint64_t address;
    uint64_t end;
    uint64_t stream;
    uint64_t pool_first;
    uint64_t pool_second;
    enum vram_report_kind kind;
    bool expandable; // made of pages: neighbouring ranges of one owner are one
};

// The ranges mapped after `event` (-1: before event 0). *ranges is given to the caller (free()). NO_HOST_MEMORY.
enum vram_status vr_layout_at(const struct vr_view *view, int64_t event, struct vr_layout_range **ranges, size_t *count);

// ---- Why a request failed, by the picture of that moment, and what lies in its way.

struct vr_live_block {
    uint64_t address;
    uint64_t end;
    uint32_t stack; // of the allocation; 0: none
    bool estimated; // the block is gone by the end: its size is the rounded request
};

// Where the failing request could look.
struct vr_failed_request {
    uint64_t stream;
    uint64_t pool_first, pool_second;
    enum vram_report_kind kind;
    uint64_t size_bytes;
    uint64_t driver_bytes; // that a new segment would still have needed beyond what the driver had free
};

// What lies in the way: the least that would have to go so that enough free memory comes together.
struct vr_pins {
    uint64_t bytes;
    uint64_t blocks; // 0: there is no such set of blocks
    uint32_t stack;  // of the largest block
};

// Ranges and blocks are ascending. Two ways are weighed: the blocks of one window of the request's own free memory, and the
// blocks of the least used segments of its pool, which would go back to the driver whole. NO_HOST_MEMORY.
enum vram_status vr_pins_find(const struct vr_layout_range *ranges, size_t range_count, const struct vr_live_block *blocks,
                              size_t block_count, const struct vr_failed_request *request, struct vr_pins *pins);

// oom_cause.c: of an event whose picture is complete; UNKNOWN where it was not looked at (has_picture false).
enum vram_report_oom_cause vr_oom_cause(const struct vram_report_oom *oom);

// Of pinned host memory: whether the recording says what was available.
VR_INLINE bool vr_oom_host_is_known(const struct vram_report_oom *oom) {
    return oom->has_device_free && (oom->device_free_bytes != 0 || oom->device_total_bytes != 0);
}

#endif
