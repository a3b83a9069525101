// coverage.h: the addresses of a device without the gaps between its segments, and how full they were over the events.
//
// Folding: every address that was ever part of a segment (or of an allocation outside all known segments) has a place; what lies between
// is left out. A picture of millions of allocations is then a grid: columns are equal runs of events, cells equal parts of the places.
#ifndef VR_EXPLORE_TABLES_COVERAGE_H
#define VR_EXPLORE_TABLES_COVERAGE_H

#include "analyze/segment_lives.h"
#include "explore/tables/curve.h"

// Addresses [address, end) have the places [at, at + end - address). Ascending and apart from each other.
struct vr_fold_range {
    uint64_t address, end, at;
};

struct vr_coverage;

// Cells of a column.
enum { VR_COVERAGE_CELLS = 256 };

// Borrows all. About one byte per event at most. What is kept is not counted yet: vr_coverage_go_on(). Given to the caller:
// vr_coverage_destroy(). NO_HOST_MEMORY.
enum vram_status vr_coverage_begin(const struct vr_view *view, const struct vr_segment_lives *segments,
                                   const struct vr_lifetimes *lifetimes, const struct vr_event_rows *rows, struct vr_coverage **coverage);
// Counts about so many further events. *share: how much of all is done; what follows here wants 1. NO_HOST_MEMORY; the coverage can only
// be destroyed then.
enum vram_status vr_coverage_go_on(struct vr_coverage *coverage, size_t events, double *share);
// NULL is ignored.
void vr_coverage_destroy(struct vr_coverage *coverage);
// The ranges; borrowed.
const struct vr_fold_range *vr_coverage_ranges(const struct vr_coverage *coverage, size_t *count);
// How many places there are.
uint64_t vr_coverage_total(const struct vr_coverage *coverage);
// The place of an address; of one that has none, that of the next one above (or the end of all).
uint64_t vr_coverage_place(const struct vr_coverage *coverage, uint64_t address);

// A grid over events and places. Column c covers the events [first + c * spacing, first + (c + 1) * spacing), the last one perhaps
// fewer; full[c * VR_COVERAGE_CELLS + k] is how much of cell k of the places [low, high) was allocated on average, 255 being all.
struct vr_grid {
    size_t first, spacing, columns;
    uint64_t low, high;
    uint8_t *full;
};
// What was kept when the coverage was made, for windows of many events: at most `most` columns over all places, a little more than the
// events [first, end). grid->full is given to the caller (free()). NO_HOST_MEMORY.
enum vram_status vr_coverage_kept(const struct vr_coverage *coverage, size_t first, size_t end, size_t most, struct vr_grid *grid);
// What is counted: the events [first, end), in at most `most` columns, over the places [low, high); `live` are the rows of the lifetimes
// that are live before `first`.
struct vr_grid_window {
    const uint32_t *live;
    size_t live_count;
    size_t first, end, most;
    uint64_t low, high;
};
// Counted now, for windows of few events. As above.
enum vram_status vr_coverage_count(const struct vr_coverage *coverage, const struct vr_grid_window *window, struct vr_grid *grid);
// Ranges are ascending and do not touch, places follow each other without a gap, every level covers all events.
bool vr_coverage_check(const struct vr_coverage *coverage);

#endif
