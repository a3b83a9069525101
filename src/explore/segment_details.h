// segment_details.h: what `allocation` tells about a segment.
#ifndef VR_EXPLORE_SEGMENT_DETAILS_H
#define VR_EXPLORE_SEGMENT_DETAILS_H

#include "explore/explorer.h"

// Whether a question is about a segment: it names a row of them (`segment`) or a label that begins with s.
bool vr_asks_segment(const struct vr_ask *ask);
// Adds the members. INVALID_ARGUMENT for a segment that is not there, LIMIT, NO_HOST_MEMORY.
enum vram_status vr_put_segment(const struct vr_ask *ask, struct vr_seen_recording *recording, struct vr_seen_device *device);

#endif
