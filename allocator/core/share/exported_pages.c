// A segment's table of exported pages. Kept apart from the export code because sources, which own the pages, call it.
#include "core/share/share.h"

size_t vr_exported_bytes(const struct vr_segment *segment) {
    return (size_t)(segment->size / segment->page_size) * sizeof *segment->exported;
}

void vr_exported_forget(struct vr_segment *segment, uint64_t page) {
    if (segment->exported == NULL) return;
    struct vr_exported *exported = &segment->exported[page];
    if (exported->exports != 0) vr_os_close_descriptor(exported->descriptor);
    *exported = (struct vr_exported){.serial = 0};
}

void vr_exported_release(struct vr_segment *segment) {
    if (segment->exported != NULL) vr_os_unreserve(segment->exported, vr_exported_bytes(segment));
    segment->exported = NULL;
}
