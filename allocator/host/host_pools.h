// host_pools.h: private pools and the routes into them. All under the state lock.
#ifndef VR_HOST_HOST_POOLS_H
#define VR_HOST_HOST_POOLS_H

#include "host/host_state.h"

// Returns the pool for a request on `stream` by this thread: that of the newest route that accepts it, or the default pool. If a route of a
// capture is open, the driver is queried under the state lock; it answers without waiting.
struct vram_host_pool *vr_host_route(struct vram_host *host, uint64_t stream);

// Add or drop a reference. Dropping the last one frees the blocks kept for graphs, which wait for their uses as after any free.
void vr_host_pool_hold(struct vram_host_pool *pool);
void vr_host_pool_drop(struct vram_host_pool *pool);

// Keeps a freed block for the graphs that know it.
void vr_host_keep(struct vram_host *host, struct vr_host_block *block);

#endif
