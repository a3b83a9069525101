// sim_managed.h: managed memory: host memory that moves to devices page by page. The driver is told where pages go by prefetches; what a
// kernel or the host touches it does not see here, so only prefetched pages count on a device. Pages that lie on a device are driven off
// when its memory is wanted for something else.
#ifndef VR_SIM_MEMORY_SIM_MANAGED_H
#define VR_SIM_MEMORY_SIM_MANAGED_H

#include "sim/sim.h"

#define VR_SIM_MANAGED_PAGE (2 * VR_MIB)

// One allocation of cuMemAllocManaged. Its range in `hosts` has kind VR_SIM_HOST_MANAGED.
struct vr_sim_managed {
    struct vr_sim_slot slot;
    uint64_t context;
    uint64_t address, size_bytes;
    uint8_t *places;                             // per page: 0 the host, else device + 1
    struct vr_cu_location preferred, prefetched; // type 0: none
    uint64_t accessed_by;                        // bit per device; the topmost is the host
    bool read_mostly, by_host;                   // by_host: of the allocation's flag
};

// Does all of a range lie in one allocation of managed memory?
bool vr_sim_is_managed(const struct vr_sim *sim, uint64_t address, uint64_t size_bytes);
// Frees managed memory at `address`; false when there is none. *result of the free.
bool vr_sim_managed_free(struct vr_sim *sim, uint64_t address, vr_cu_result *result);
// Frees that of a context (0: of every one).
void vr_sim_end_managed(struct vr_sim *sim, uint64_t context);
// Drives pages off `device` until size_bytes have room there, or none are left.
void vr_sim_managed_make_room(struct vr_sim *sim, uint32_t device, uint64_t size_bytes);
// Bytes of managed pages on a device.
uint64_t vr_sim_managed_bytes(const struct vr_sim *sim, uint32_t device);

#endif
