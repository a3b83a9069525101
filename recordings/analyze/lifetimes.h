// lifetimes.h: every allocation of one device's history with its birth and death, by either definition of "live".
#ifndef VR_ANALYZE_LIFETIMES_H
#define VR_ANALYZE_LIFETIMES_H

#include "analyze/device_view.h"
#include "base/hash.h"
#include "vram/report.h"

// ---- Small numbers for the addresses of one device's allocations, so that passes over a long history index arrays. An allocator returns
// the same addresses repeatedly: a history of ten million events often has a few thousand. Finding the number of each event's address once
// is cheaper than looking it up in every pass.

#define VR_NO_ADDRESS UINT32_MAX

// A zeroed struct is empty. The caller of vr_address_ids_build() owns it.
struct vr_address_ids {
    uint32_t *of_event; // VR_NO_ADDRESS for an event that neither begins nor ends an allocation
    uint32_t *of_block; // by the view's blocks
    uint64_t *address;  // by number
    size_t count;
};

// Numbers the addresses. LIMIT for more events and blocks than 32 bits can number, NO_HOST_MEMORY; *addresses is then unchanged.
enum vram_status vr_address_ids_build(const struct vr_view *view, struct vr_address_ids *addresses);
// Accepts a zeroed struct.
void vr_address_ids_release(struct vr_address_ids *addresses);

// ---- Every allocation of one device's history with its birth and death, by either definition of "live". The history has the changes, and
// the final blocks have the result. Walking the history backwards yields the allocations live before its first event; walking it forwards
// yields lifetimes. Contradictions between the two are counted.

enum vr_lifetime_kind { VR_LIFETIME_ALLOCATED, VR_LIFETIME_ACTIVE };

// The birth of an allocation live before event 0, and the death of one that was never freed.
#define VR_BEFORE_TRACE UINT32_MAX
#define VR_NEVER        UINT32_MAX

// Rows in the order of birth: first start_count rows live before event 0 (by address), then one per alloc event. Event numbers of totals
// mean after that event. Plain columns, owned by the caller of vr_lifetimes_build().
struct vr_lifetimes {
    uint64_t *address;
    uint64_t *size_bytes; // from the event, otherwise from the final block
    uint32_t *birth;      // event, or VR_BEFORE_TRACE
    uint32_t *death;      // event, or VR_NEVER
    uint32_t *stack;      // of the alloc event; of the final block for allocations that were always live; otherwise 0
    size_t count;
    size_t start_count;
    struct vram_report_sum start, peak, end, final_state;
    int64_t peak_event;
    uint64_t anomalies[VRAM_ANOMALY_COUNT];
    struct vr_map final_blocks; // address -> 1 + index in the view's blocks, for blocks live at the end
};

// Builds the rows. totals (may be NULL) has point_count entries; entry p is set to the largest total within run p of the events
// (vr_point_first()), including the state before the run. LIMIT for more events and blocks than 32 bits can number, NO_HOST_MEMORY;
// *lifetimes is then unchanged.
enum vram_status vr_lifetimes_build(const struct vr_view *view, enum vr_lifetime_kind kind, uint64_t *totals, size_t point_count,
                                    struct vr_lifetimes *lifetimes);
// Like vr_lifetimes_build(), for callers that build both kinds of lifetime: `addresses` are those of the view; borrowed for the call.
enum vram_status vr_lifetimes_build_by(const struct vr_view *view, const struct vr_address_ids *addresses, enum vr_lifetime_kind kind,
                                       uint64_t *totals, size_t point_count, struct vr_lifetimes *lifetimes);
void vr_lifetimes_release(struct vr_lifetimes *lifetimes);
// Allocates columns for `capacity` rows, for callers that fill in the rows themselves. NO_HOST_MEMORY; release the columns even then.
enum vram_status vr_lifetimes_allocate(struct vr_lifetimes *lifetimes, size_t capacity);

// Checks that rows are in the order of birth, that each death follows the birth and is an event of the view at the row's address, and the
// totals: each is the sum of the rows live then.
bool vr_lifetimes_check(const struct vr_lifetimes *lifetimes, const struct vr_view *view);

// Returns whether row i is live after `event` (-1: before event 0).
VR_INLINE bool vr_lifetimes_live_at(const struct vr_lifetimes *lifetimes, size_t i, int64_t event) {
    const bool born = lifetimes->birth[i] == VR_BEFORE_TRACE || (int64_t)lifetimes->birth[i] <= event;
    return born && (lifetimes->death[i] == VR_NEVER || (int64_t)lifetimes->death[i] > event);
}

#endif
