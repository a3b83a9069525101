// sim_regions.h: where NVIDIA's driver on Linux puts what cuMemAlloc asks for. It maps regions of the host's address space, in multiples of
// 32 MiB, each as high as it fits, and serves a request from the newest region that has room, there from the tightest gap. Read off
// addresses in recordings of real programs; simulator.md says how well it holds.
//
// Requests below 1 MiB share pages of 2 MiB. In which gap of them they go is not known: the first.
#ifndef VR_DRIVER_SIM_MEMORY_SIM_REGIONS_H
#define VR_DRIVER_SIM_MEMORY_SIM_REGIONS_H

#include "driver/sim/sim_ranges.h"

struct vr_sim;

struct vr_sim_region {
    uint64_t base, end;
    uint64_t widest; // no gap in it is wider; it may be less
};

// In the order of their birth.
struct vr_sim_region_list {
    struct vr_sim_region *items;
    size_t count, items_capacity;
    uint64_t widest; // no region's is more
};

// Of one device.
struct vr_sim_regions {
    struct vr_sim_region_list whole, pages; // regions, and pages of 2 MiB in them for small requests
};

void vr_sim_regions_release(struct vr_sim_regions *regions);
// Where `span` bytes of `device` go: 0 when there is no place, or no memory of the host. A span of 1 MiB and more is a multiple of 2 MiB.
uint64_t vr_sim_regions_place(struct vr_sim *sim, uint32_t device, uint64_t span, uint64_t alignment);
// What lay at `address` is gone. A region in which nothing lies any more is given back.
void vr_sim_regions_freed(struct vr_sim *sim, uint32_t device, uint64_t address);

#endif
