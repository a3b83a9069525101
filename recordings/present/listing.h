// listing.h: the parts of a listing. Rows go to a buffer that is written out whenever it has grown, since a history may be long.
#ifndef VR_PRESENT_LISTING_H
#define VR_PRESENT_LISTING_H

#include "analyze/segment_sums.h"
#include "analyze/view.h"
#include "base/json.h"
#include "vram/profile.h"

struct vr_listing {
    const struct vr_view *view; // of the device in turn
    bool many_devices;
    const struct vram_style *style;
    struct vr_text text;
    struct vr_json json; // on `text`, open where rows go; only for JSON
    bool as_json;
    vram_write write;
    void *user;
};

// Hands on what is there when it is much. NO_HOST_MEMORY, IO.
enum vram_status vr_listing_flush(struct vr_listing *listing, size_t least_bytes);

// Each lists the device in turn. NO_HOST_MEMORY, LIMIT, IO.
enum vram_status vr_list_stats(struct vr_listing *listing);
enum vram_status vr_list_segments(struct vr_listing *listing);
enum vram_status vr_list_memory(struct vr_listing *listing);
enum vram_status vr_list_trace(struct vr_listing *listing);

#endif
