// lifetimes.h: every allocation of one device's history with its birth and death, for one of two kinds of lifetime of "live".
#ifndef VR_ANALYZE_LIFETIMES_H
#define VR_ANALYZE_LIFETIMES_H

#include "analyze/device_view.h"
#include "base/hash.h"
#include "vram/report.h"

// ---- Small numbers for the addresses of one device's allocations, so that passes over a long history index arrays.
// An allocator hands out the same addresses again and again: a history of ten million events often has some thousands of them. Finding the
// number of each event's address once is cheaper than looking the address up in every pass over the events.

#define VR_NO_ADDRESS UINT32_MAX

// All-zero is empty. Owned by the caller of vr_address_ids_build().
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

// ---- Every allocation of one device's history with its birth and death, for one of two kinds of lifetime of "live".
// The history says what changed, the final blocks say how it ended. Walking the history backwards from the end gives what was live before
// its first event; walking it forwards gives lifetimes. Where the two disagree it is counted, not guessed.

enum vr_lifetime_kind { VR_LIFETIME_ALLOCATED, VR_LIFETIME_ACTIVE };

// Birth of what was live before event 0, and death of what never died.
#define VR_BEFORE_TRACE UINT32_MAX
#define VR_NEVER        UINT32_MAX

// Rows in the order of birth: first start_count that were live before event 0 (by address), then one per alloc event. The totals are
// those after the event that has them. Plain columns, owned by whoever called vr_lifetimes_build().
struct vr_lifetimes {
    uint64_t *address;
    uint64_t *size_bytes; // as the event or, for what has none, the final block says
    uint32_t *birth;      // event, or VR_BEFORE_TRACE
    uint32_t *death;      // event, or VR_NEVER
    uint32_t *stack;      // of the alloc event; of the final block, for what lived all the time; else 0
    size_t count;
    size_t start_count;
    struct vram_report_sum start, peak, end, final_state;
    int64_t peak_event;
    uint64_t anomalies[VRAM_ANOMALY_COUNT];
    struct vr_map final_blocks; // address -> 1 + row among the view's blocks (vr_view_block()), of what is live at the end
};

// Builds the rows. totals (may be NULL) has point_count entries; entry p is set to the largest total within run p of the events
// (vr_point_first()), the state before the run included.
// LIMIT for more events and blocks than 32 bits tell apart, NO_HOST_MEMORY; *lifetimes is untouched then.
enum vram_status vr_lifetimes_build(const struct vr_view *view, enum vr_lifetime_kind kind, uint64_t *totals, size_t point_count,
                                    struct vr_lifetimes *lifetimes);
// The same for whoever builds both kinds of lifetime: `addresses` are those of the view; borrowed for the call.
enum vram_status vr_lifetimes_build_by(const struct vr_view *view, const struct vr_address_ids *addresses, enum vr_lifetime_kind kind,
                                       uint64_t *totals, size_t point_count, struct vr_lifetimes *lifetimes);
void vr_lifetimes_release(struct vr_lifetimes *lifetimes);
// Columns for `capacity` rows, for whoever makes the rows otherwise. NO_HOST_MEMORY; what there is has to be released then.
enum vram_status vr_lifetimes_allocate(struct vr_lifetimes *lifetimes, size_t capacity);

// Rows are in the order of birth, what dies dies after its birth by an event of the view at its address, and the totals are the sums of the
// rows that are live then.
bool vr_lifetimes_check(const struct vr_lifetimes *lifetimes, const struct vr_view *view);

// Was row i live after `event` (-1: before event 0)?
VR_INLINE bool vr_lifetimes_live_at(const struct vr_lifetimes *lifetimes, size_t i, int64_t event) {
    const bool born = lifetimes->birth[i] == VR_BEFORE_TRACE || (int64_t)lifetimes->birth[i] <= event;
    return born && (lifetimes->death[i] == VR_NEVER || (int64_t)lifetimes->death[i] > event);
}

#endif
