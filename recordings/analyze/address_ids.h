// address_ids.h: small numbers for the addresses of one device's allocations, so that passes over a long history index arrays.
//
// An allocator hands out the same addresses again and again: a history of ten million events often has some thousands of them. Finding the
// number of each event's address once is cheaper than looking the address up in every pass over the events.
#ifndef VR_ANALYZE_ADDRESS_IDS_H
#define VR_ANALYZE_ADDRESS_IDS_H

#include "analyze/view.h"

#define VR_NO_ADDRESS UINT32_MAX

// All-zero is empty. Owned by whoever called vr_address_ids_build().
struct vr_address_ids {
    uint32_t *of_event; // VR_NO_ADDRESS for an event that neither begins nor ends an allocation
    uint32_t *of_block; // by the view's blocks
    uint64_t *address;  // by number
    size_t count;
};

// LIMIT for more events and blocks than 32 bits tell apart, NO_HOST_MEMORY; *addresses is untouched then.
enum vram_status vr_address_ids_build(const struct vr_view *view, struct vr_address_ids *addresses);
// A zeroed one is fine.
void vr_address_ids_release(struct vr_address_ids *addresses);

#endif
