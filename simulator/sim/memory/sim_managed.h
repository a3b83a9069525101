// sim_managed.h: managed memory, host memory that migrates to devices page by page. Only prefetches tell this driver where pages go: it
// does not see accesses by kernels or the host, so only prefetched pages count on a device. They are evicted when other allocations need
// the memory.
#ifndef VR_SIM_MEMORY_SIM_MANAGED_H
#define VR_SIM_MEMORY_SIM_MANAGED_H

#include "sim/sim.h"

#define VR_SIM_MANAGED_PAGE (2 * VR_MIB)

// One allocation of cuMemAllocManaged. Its range in `hosts` has kind VR_SIM_HOST_MANAGED.
struct vr_sim_managed {
    struct vr_sim_slot slot;
    uint64_t context;
    uint64_t address, size_bytes;
    uint8_t *places;                             // per page: 0 for the host, else device + 1
    struct vr_cu_location preferred, prefetched; // type 0: not set
    uint64_t accessed_by;                        // bit per device; the top bit is the host
    bool read_mostly, by_host;                   // by_host: from the flag at allocation
};

// Returns whether the whole range is in one managed allocation.
bool vr_sim_is_managed(const struct vr_sim *sim, uint64_t address, uint64_t size_bytes);
// Frees managed memory at `address` and sets *result. Returns false if the address is not managed memory.
bool vr_sim_managed_free(struct vr_sim *sim, uint64_t address, vr_cu_result *result);
// Frees the managed memory of a context (0: of all contexts).
void vr_sim_end_managed(struct vr_sim *sim, uint64_t context);
// Evicts pages from `device` until size_bytes fit, or until no managed page is left there.
void vr_sim_managed_make_room(struct vr_sim *sim, uint32_t device, uint64_t size_bytes);
// Returns the bytes of managed pages on a device.
uint64_t vr_sim_managed_bytes(const struct vr_sim *sim, uint32_t device);

#endif
