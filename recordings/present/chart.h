// chart.h: pictures of memory made of characters.
#ifndef VR_PRESENT_CHART_H
#define VR_PRESENT_CHART_H

#include "base/text.h"
#include "vram/report.h"

// One part of a bar of several parts.
struct vr_part {
    uint64_t bytes;
    const char *mark;       // one column, in unicode
    const char *ascii_mark; // the same without
    enum vr_colour colour;
};

// The mark of a part in this style.
const char *vr_part_mark(const struct vr_part *part, const struct vram_style *style);
// A bar of exactly `columns` columns, shared by the parts; every part that is not 0 gets a column while there are any.
void vr_chart_bar(struct vr_text *text, const struct vram_style *style, const struct vr_part *parts, size_t count, unsigned columns);
// Whether what is reserved is shown: what a whole program asks the driver for is what it holds, and a log of allocations does not tell.
bool vr_shows_reserved(const struct vram_report *report, const struct vram_report_device *device);
// Allocated over reserved memory, where that is shown, along the events, with a scale, `rows` high; out-of-memory events are marked below.
void vr_chart_timeline(struct vr_text *text, const struct vram_style *style, const struct vram_report_device *device, unsigned rows,
                       unsigned indent);

#endif
