// layout.h: which address ranges of a device were mapped after a given event, and whose they were.
//
// The final segments and the segment events after the moment tell it: what touched an address first after the moment decides; where
// nothing did, the final segment stands. That needs no sound history and takes n log n.
#ifndef VR_ANALYZE_LAYOUT_H
#define VR_ANALYZE_LAYOUT_H

#include "analyze/view.h"
#include "vram/report.h"

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

#endif
