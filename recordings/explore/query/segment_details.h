// segment_details.h: what `allocation` says of a segment.
#ifndef VR_EXPLORE_QUERY_SEGMENT_DETAILS_H
#define VR_EXPLORE_QUERY_SEGMENT_DETAILS_H

#include "explore/query/query.h"

// Whether a query is about a segment: it names a row of them (`segment`) or a label that begins with s.
bool vr_query_is_about_segment(const struct vr_query *query);
// Adds the members. INVALID_ARGUMENT for a segment that is not there, LIMIT, NO_HOST_MEMORY.
enum vram_status vr_put_segment(const struct vr_query *query, struct vr_explored_recording *recording, struct vr_explored_device *device);

#endif
