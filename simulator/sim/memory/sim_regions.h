// sim_regions.h: where NVIDIA's driver on Linux puts what cuMemAlloc asks for. It maps regions of the host's address space, in multiples of
// 32 MiB, each as high as it fits, and serves a request from the newest region that has room, there from the tightest gap. Read off
// addresses in recordings of real programs; simulator.md says how well it holds.
//
// Requests below 1 MiB share pages of 2 MiB. In which gap of them they go is not known: the first.
#ifndef VR_SIM_MEMORY_SIM_REGIONS_H
#define VR_SIM_MEMORY_SIM_REGIONS_H

#include "sim/sim_ranges.h"

struct vr_sim;

struct vr_sim_gap {
    uint64_t from, end;
};

// Invariant: its gaps, in order, are its pages of 2 MiB that nothing was put in, as wide as can be; there is room for one more than there
// are things in it; `widest` is the widest gap. With `others` in it, which come and go untold, all that is so only after a look at the
// table of address space. A region of no use (base 0) is in no list but that of the free ones, chained through `older`.
struct vr_sim_region {
    uint64_t base, end, widest;
    struct vr_sim_gap *gaps;
    size_t gap_count, gaps_capacity, things;
    uint32_t older, newer; // places in the table; 0: none
    bool others;
};

// A page for small requests.
struct vr_sim_small_page {
    uint64_t base;
    uint64_t widest; // no gap in it is wider; it may be less
};

// Of one device.
struct vr_sim_regions {
    struct vr_sim_region *items; // items[0] is nobody's
    size_t count, items_capacity;
    uint32_t newest, free_list;
    uint64_t widest; // no region's is more
    struct {
        struct vr_sim_small_page *items; // in the order of their birth
        size_t count, items_capacity;
        uint64_t widest; // no page's is more
    } pages;
};

void vr_sim_regions_release(struct vr_sim_regions *regions);
// Does the invariant of each region hold?
bool vr_sim_regions_check(const struct vr_sim *sim);

#endif
