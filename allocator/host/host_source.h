// host_source.h: pins memory and returns it.
#ifndef VR_HOST_HOST_SOURCE_H
#define VR_HOST_HOST_SOURCE_H

#include "host/host_state.h"

// Pins `size` bytes according to the options: from the reserve segment, which the first call makes if requested, else by the driver.
// OUT_OF_MEMORY if the system has no more, DRIVER. Called without locks.
enum vram_status vr_host_pin(struct vram_host *host, uint64_t size, uint64_t *address, enum vram_host_origin *origin);

// Moves a free or finished block out of the table and its pool, before it is returned to the driver. The block must be in no list, and not
// in the reserve segment. Called with the state lock held.
void vr_host_send_out(struct vram_host *host, struct vr_host_block *block);
// Sends out every free block of the pool, except those of the reserve segment. Called with the state lock held.
void vr_host_send_cache_out(struct vram_host *host, struct vram_host_pool *pool);
// Queues refused blocks for another try. Called with the state lock held.
void vr_host_send_stuck_out(struct vram_host *host);
// Returns blocks that were sent out to the driver, and waits for other threads that are returning some. DRIVER if it refused any (VRAM_OK
// with pinned_free_catch_all). Called without locks.
enum vram_status vr_host_give_back(struct vram_host *host);

// Releases the reserve segment at the end.
void vr_host_reserve_release(struct vram_host *host);
// Frees the private pools without references and blocks. Called with the state lock held.
void vr_host_free_unused_pools(struct vram_host *host);

#endif
