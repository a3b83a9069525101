// driver_pools.h: in recordings of whole programs, what the driver's own pools (cudaMallocAsync) hold free.
#ifndef VR_ANALYZE_DRIVER_POOLS_H
#define VR_ANALYZE_DRIVER_POOLS_H

#include "analyze/lifetimes.h"

// After an event: what the pools had from the device, less what was allocated from them. 0 elsewhere.
uint64_t vr_driver_pools_free(const struct vr_view *view, const struct vr_lifetimes *allocated, int64_t event);

#endif
