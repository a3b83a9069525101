// sim_regions.h: where NVIDIA's driver on Linux puts what cuMemAlloc asks for. It maps regions of the host's address space, in multiples of
// 32 MiB, each as high as it fits, and serves a request from the newest region that has room, there from the tightest gap. The rule was
// derived from addresses in recordings of real programs; docs/internals/simulated-device.md says how well it holds.
//
// Requests below 1 MiB share pages of 2 MiB. NVIDIA's choice of a gap inside such a page is unknown; this uses the first.
#ifndef VR_SIM_MEMORY_SIM_REGIONS_H
#define VR_SIM_MEMORY_SIM_REGIONS_H

#include "sim/sim_ranges.h"

struct vr_sim;

struct vr_sim_gap {
    uint64_t from, end;
};

// Invariant: the gaps, in order, are the region's unused 2 MiB pages, each gap as wide as possible; there is room for one more gap than the
// region has `things`; `widest` is the widest gap. If the region contains `others`, which come and go unnoticed, this holds only after the
// table of address space was consulted. An unused region (base 0) is only in the free list, chained through `older`.
struct vr_sim_region {
    uint64_t base, end, widest;
    struct vr_sim_gap *gaps;
    size_t gap_count, gaps_capacity, things;
    uint32_t older, newer; // indices in the table; 0: none
    bool others;
};

// A page for small requests.
struct vr_sim_small_page {
    uint64_t base;
    uint64_t widest; // upper bound of its widest gap
};

// The regions of one device.
struct vr_sim_regions {
    struct vr_sim_region *items; // items[0] is unused
    size_t count, items_capacity;
    uint32_t newest, free_list;
    uint64_t widest; // upper bound of the regions' widest gaps
    struct {
        struct vr_sim_small_page *items; // in order of creation
        size_t count, items_capacity;
        uint64_t widest; // upper bound of the pages' widest gaps
    } pages;
};

void vr_sim_regions_release(struct vr_sim_regions *regions);
// Tests the invariant of each region.
bool vr_sim_regions_check(const struct vr_sim *sim);

#endif
