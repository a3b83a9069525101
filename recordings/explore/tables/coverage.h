// coverage.h: the addresses of a device without the gaps between segments, and how full they were over the events.
//
// Folding: every address that was ever part of a segment (or of an allocation outside all known segments) has a place; addresses in between
// have none. A picture of millions of allocations is then a grid: a column is a run of events, a cell a range of places, all of equal size.
#ifndef VR_EXPLORE_TABLES_COVERAGE_H
#define VR_EXPLORE_TABLES_COVERAGE_H

#include "analyze/segment_lives.h"
#include "explore/tables/curve.h"

// Addresses [address, end) have the places [at, at + end - address). Ranges are ascending and disjoint.
struct vr_fold_range {
    uint64_t address, end, at;
};

struct vr_coverage;

// Number of cells in a column.
enum { VR_COVERAGE_CELLS = 256 };

// Prepares a coverage; vr_coverage_go_on() then computes the stored grids. Borrows all arguments. Takes at most about one byte per event.
// The caller owns *coverage: vr_coverage_destroy(). NO_HOST_MEMORY.
enum vram_status vr_coverage_begin(const struct vr_view *view, const struct vr_segment_lives *segments,
                                   const struct vr_lifetimes *lifetimes, const struct vr_event_rows *rows, struct vr_coverage **coverage);
// Processes about `events` more events. *share is the completed share of the work; the functions below require 1. NO_HOST_MEMORY; the
// coverage can then only be destroyed.
enum vram_status vr_coverage_go_on(struct vr_coverage *coverage, size_t events, double *share);
// NULL is ignored.
void vr_coverage_destroy(struct vr_coverage *coverage);
// Returns the ranges; borrowed.
const struct vr_fold_range *vr_coverage_ranges(const struct vr_coverage *coverage, size_t *count);
// Returns the number of places.
uint64_t vr_coverage_total(const struct vr_coverage *coverage);
// Returns the place of an address; for an address without a place, that of the next higher one that has a place (or the total).
uint64_t vr_coverage_place(const struct vr_coverage *coverage, uint64_t address);

// A grid over events and places. Column c covers the events [first + c * spacing, first + (c + 1) * spacing), the last one perhaps fewer;
// full[c * VR_COVERAGE_CELLS + k] is the average share of cell k of the places [low, high) that was allocated; 255 is all of it.
struct vr_grid {
    size_t first, spacing, columns;
    uint64_t low, high;
    uint8_t *full;
};
// Fills in *grid from a stored one, for windows of many events: at most `most` columns over all places, covering slightly more than the
// events [first, end). The caller frees grid->full. NO_HOST_MEMORY.
enum vram_status vr_coverage_kept(const struct vr_coverage *coverage, size_t first, size_t end, size_t most, struct vr_grid *grid);
// The window to compute: the events [first, end) in at most `most` columns, over the places [low, high); `live` are the rows of the
// lifetimes that are live before `first`.
struct vr_grid_window {
    const uint32_t *live;
    size_t live_count;
    size_t first, end, most;
    uint64_t low, high;
};
// Computes a grid, for windows of few events. Status and ownership are as for vr_coverage_kept().
enum vram_status vr_coverage_count(const struct vr_coverage *coverage, const struct vr_grid_window *window, struct vr_grid *grid);
// Checks that ranges are ascending and do not touch, places are consecutive, and every level covers all events.
bool vr_coverage_check(const struct vr_coverage *coverage);

#endif
