// host_source.h: where pinned memory comes from and how it goes back.
#ifndef VR_HOST_HOST_SOURCE_H
#define VR_HOST_HOST_SOURCE_H

#include "host/host_state.h"

// Pins `size` bytes by the options: from the reserve segment, which the first call makes where one is wanted, else from the driver.
// OUT_OF_MEMORY when the system has no more, DRIVER. Without locks.
enum vram_status vr_host_pin(struct vram_host *host, uint64_t size, uint64_t *address, enum vram_host_origin *origin);

// Moves a free or finished block out of the table and its pool, on its way to the driver. Under the state lock; the block is in no
// list, and not of the reserve segment.
void vr_host_send_out(struct vram_host *host, struct vr_host_block *block);
// Sends every free block of the pool out but those of the reserve segment. Under the state lock.
void vr_host_send_cache_out(struct vram_host *host, struct vram_host_pool *pool);
// Lets what was refused be tried again. Under the state lock.
void vr_host_send_stuck_out(struct vram_host *host);
// Gives what was sent out back to the driver, and waits for what other threads are giving back. DRIVER when it refused some of it
// (VRAM_OK with pinned_free_catch_all). Without locks.
enum vram_status vr_host_give_back(struct vram_host *host);

// The reserve segment, at the end.
void vr_host_reserve_release(struct vram_host *host);
// Frees the private pools that have neither references nor blocks. Under the state lock.
void vr_host_free_unused_pools(struct vram_host *host);

#endif
