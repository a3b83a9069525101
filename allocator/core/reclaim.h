// reclaim.h: the option reclaim_streams: free segments change streams.
#ifndef VR_CORE_RECLAIM_H
#define VR_CORE_RECLAIM_H

#include "core/alloc.h"

// The smallest free segment of another stream, of the same pools and size class, that may serve the request; of equal ones the oldest. It
// belongs to the request's stream from now on, which waits for all that the other stream has now: *block, free and in no index; 0 when
// there is none, or while a capture is under way, whose graph the waiting would change. DRIVER. Under all locks, context current.
enum vram_status vr_reclaim(const struct vr_alloc_request *request, uint32_t *block);

#endif
