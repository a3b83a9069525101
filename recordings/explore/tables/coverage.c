#include "explore/tables/coverage.h"

// Events per column of the finest stored grid (more for a huge history), and columns per column of the next coarser one.
enum { SPACING = 256, MOST_COLUMNS = 40000, FAN = 16, MOST_LEVELS = 8 };

struct level {
    size_t spacing, columns;
    uint8_t *full;
};

struct vr_coverage {
    const struct vr_view *view;
    const struct vr_lifetimes *lifetimes;
    const struct vr_event_rows *rows;
    struct vr_fold_range *ranges;
    size_t range_count;
    uint64_t total;
    struct level level[MOST_LEVELS];
    size_t levels;
    struct sweep *sweep; // while the finest level is being computed
};

// --- folding -----------------------------------------------------------------------------------------------------------

struct ranges {
    struct vr_fold_range *range;
    size_t count, range_capacity;
};

static enum vram_status add_covered_range(struct ranges *ranges, uint64_t address, uint64_t bytes) {
    uint64_t end;
    if (bytes == 0 || !vr_add_u64(address, bytes, &end)) return VRAM_OK;
    VR_TRY(VR_GROW(ranges, range, ranges->count + 1));
    ranges->range[ranges->count++] = (struct vr_fold_range){.address = address, .end = end};
    return VRAM_OK;
}

static int ranges_by_address(const void *a, const void *b) {
    const struct vr_fold_range *x = a, *y = b;
    return VR_ORDER(x->address, y->address);
}

// Sorts the ranges, joins those that overlap or touch (their places are consecutive in any case), and assigns places.
static void join_ranges(struct ranges *ranges) {
    size_t kept = 0;
    if (ranges->count != 0) qsort(ranges->range, ranges->count, sizeof *ranges->range, ranges_by_address);
    for (size_t i = 0; i < ranges->count; i++) {
        const struct vr_fold_range *range = &ranges->range[i];
        if (kept != 0 && range->address <= ranges->range[kept - 1].end) {
            if (range->end > ranges->range[kept - 1].end) ranges->range[kept - 1].end = range->end;
        } else {
            ranges->range[kept++] = *range;
        }
    }
    ranges->count = kept;
    uint64_t at = 0;
    for (size_t i = 0; i < kept; i++) {
        ranges->range[i].at = at;
        at += ranges->range[i].end - ranges->range[i].address;
    }
}

// Returns the first range that ends after an address.
static size_t range_of(const struct vr_fold_range *ranges, size_t count, uint64_t address) {
    size_t first;
    VR_LOWER_BOUND(first, i, 0, count, ranges[i].end <= address);
    return first;
}

static enum vram_status fold_ranges(struct vr_coverage *coverage, const struct vr_segment_lives *segments) {
    const struct vr_lifetimes *lifetimes = coverage->lifetimes;
    struct ranges ranges = {.range = NULL};
    enum vram_status status = VRAM_OK;
    for (size_t i = 0; i < segments->lifetimes.count && status == VRAM_OK; i++)
        status = add_covered_range(&ranges, segments->lifetimes.address[i], segments->lifetimes.size_bytes[i]);
    join_ranges(&ranges);
    const size_t known = ranges.count;
    for (size_t i = 0; i < lifetimes->count && status == VRAM_OK; i++) {
        const size_t found = range_of(ranges.range, known, lifetimes->address[i]);
        if (found < known && ranges.range[found].address <= lifetimes->address[i]) continue;
        status = add_covered_range(&ranges, lifetimes->address[i], lifetimes->size_bytes[i]);
    }
    join_ranges(&ranges);
    coverage->ranges = ranges.range;
    coverage->range_count = ranges.count;
    const struct vr_fold_range *last = ranges.count == 0 ? NULL : &ranges.range[ranges.count - 1];
    coverage->total = last == NULL ? 0 : last->at + (last->end - last->address);
    return status;
}

const struct vr_fold_range *vr_coverage_ranges(const struct vr_coverage *coverage, size_t *count) {
    *count = coverage->range_count;
    return coverage->ranges;
}

uint64_t vr_coverage_total(const struct vr_coverage *coverage) { return coverage->total; }

uint64_t vr_coverage_place(const struct vr_coverage *coverage, uint64_t address) {
    const size_t found = range_of(coverage->ranges, coverage->range_count, address);
    if (found == coverage->range_count) return coverage->total;
    const struct vr_fold_range *range = &coverage->ranges[found];
    return address < range->address ? range->at : range->at + (address - range->address);
}

// --- counting ----------------------------------------------------------------------------------------------------------

// A grid under construction, with the current column: each cell's present bytes and its sum since the column began.
struct sweep {
    const struct vr_coverage *coverage;
    size_t end;    // of the events
    size_t column; // the next column to compute
    struct vr_grid grid;
    double cell_bytes;
    struct {
        double bytes, sum;
        size_t since;
    } cell[VR_COVERAGE_CELLS];
};

static void settle_cell(struct sweep *sweep, size_t k, size_t event) {
    sweep->cell[k].sum += sweep->cell[k].bytes * (double)(event - sweep->cell[k].since);
    sweep->cell[k].since = event;
}

// Adds (sign 1) or removes (sign -1) an allocation at `event`.
static void change_coverage(struct sweep *sweep, size_t row, size_t event, double sign) {
    const struct vr_lifetimes *lifetimes = sweep->coverage->lifetimes;
    uint64_t begin = vr_coverage_place(sweep->coverage, lifetimes->address[row]), end;
    if (!vr_add_u64(begin, lifetimes->size_bytes[row], &end)) return;
    if (begin < sweep->grid.low) begin = sweep->grid.low;
    if (end > sweep->grid.high) end = sweep->grid.high;
    if (begin >= end) return;
    const double from = (double)(begin - sweep->grid.low) / sweep->cell_bytes, to = (double)(end - sweep->grid.low) / sweep->cell_bytes;
    for (size_t k = (size_t)from; k < VR_COVERAGE_CELLS && (double)k < to; k++) {
        const double part = (to < (double)(k + 1) ? to : (double)(k + 1)) - (from > (double)k ? from : (double)k);
        settle_cell(sweep, k, event);
        sweep->cell[k].bytes += sign * part * sweep->cell_bytes;
    }
}

static void apply_sweep_event(struct sweep *sweep, size_t event) {
    const struct vr_coverage *coverage = sweep->coverage;
    const uint32_t row = coverage->rows->row[event];
    if (row == 0) return;
    const bool born = coverage->lifetimes->birth[row - 1] == event;
    const uint32_t replaced = born && coverage->rows->replaced_count != 0 ? vr_event_replaced(coverage->rows, event) : 0;
    if (replaced != 0) change_coverage(sweep, replaced - 1, event, -1);
    change_coverage(sweep, row - 1, event, born ? 1 : -1);
}

static uint8_t shade_of_part(double part) {
    if (part <= 1e-9) return 0;
    const double shade = part * 255;
    return shade >= 255 ? 255 : shade < 1 ? 1 : (uint8_t)(shade + 0.5);
}

static void end_column(struct sweep *sweep, size_t first, size_t end, uint8_t *full) {
    for (size_t k = 0; k < VR_COVERAGE_CELLS; k++) {
        settle_cell(sweep, k, end);
        full[k] = shade_of_part(sweep->cell[k].sum / (sweep->cell_bytes * (double)(end - first)));
        sweep->cell[k].sum = 0;
    }
}

static void drop_sweep(struct sweep *sweep) {
    if (sweep == NULL) return;
    free(sweep->grid.full);
    free(sweep);
}

// Begins a sweep that has counted nothing yet, not even the allocations live before the window.
static enum vram_status begin_sweep(const struct vr_coverage *coverage, const struct vr_grid_window *window, struct sweep **sweep) {
    struct sweep *made = calloc(1, sizeof *made);
    const size_t events = window->end - window->first, spacing = events / window->most + (events % window->most != 0),
                 columns = spacing == 0 ? 0 : (events + spacing - 1) / spacing;
    if (made == NULL) return VRAM_NO_HOST_MEMORY;
    made->coverage = coverage;
    made->end = window->end;
    made->cell_bytes = (double)(window->high > window->low ? window->high - window->low : 1) / VR_COVERAGE_CELLS;
    for (size_t k = 0; k < VR_COVERAGE_CELLS; k++) made->cell[k].since = window->first;
    made->grid = (struct vr_grid){.first = window->first, .spacing = spacing, .columns = columns, .low = window->low, .high = window->high};
    made->grid.full = calloc(columns + 1, VR_COVERAGE_CELLS);
    if (made->grid.full == NULL) {
        free(made);
        return VRAM_NO_HOST_MEMORY;
    }
    *sweep = made;
    return VRAM_OK;
}

// Computes the next `columns` columns.
static void sweep_on(struct sweep *sweep, size_t columns) {
    const struct vr_grid *grid = &sweep->grid;
    for (; columns != 0 && sweep->column < grid->columns; columns--, sweep->column++) {
        const size_t begin = grid->first + sweep->column * grid->spacing;
        const size_t stop = begin + grid->spacing < sweep->end ? begin + grid->spacing : sweep->end;
        for (size_t event = begin; event < stop; event++) apply_sweep_event(sweep, event);
        end_column(sweep, begin, stop, grid->full + sweep->column * VR_COVERAGE_CELLS);
    }
}

enum vram_status vr_coverage_count(const struct vr_coverage *coverage, const struct vr_grid_window *window, struct vr_grid *grid) {
    assert(window->first <= window->end && window->end <= coverage->view->history->count && window->most != 0);
    struct sweep *sweep = NULL;
    VR_TRY(begin_sweep(coverage, window, &sweep));
    for (size_t i = 0; i < window->live_count; i++) change_coverage(sweep, window->live[i], window->first, 1);
    sweep_on(sweep, SIZE_MAX);
    *grid = sweep->grid;
    free(sweep);
    return VRAM_OK;
}

// --- stored levels -----------------------------------------------------------------------------------------------------

static enum vram_status keep_coarser(struct vr_coverage *coverage) {
    const struct level *fine = &coverage->level[coverage->levels - 1];
    const size_t columns = (fine->columns + FAN - 1) / FAN;
    uint8_t *full = calloc(columns + 1, VR_COVERAGE_CELLS);
    if (full == NULL) return VRAM_NO_HOST_MEMORY;
    for (size_t c = 0; c < columns; c++) {
        const size_t begin = c * FAN, end = begin + FAN < fine->columns ? begin + FAN : fine->columns;
        for (size_t k = 0; k < VR_COVERAGE_CELLS; k++) {
            size_t sum = 0;
            for (size_t i = begin; i < end; i++) sum += fine->full[i * VR_COVERAGE_CELLS + k];
            full[c * VR_COVERAGE_CELLS + k] = (uint8_t)((sum + (end - begin) - 1) / (end - begin));
        }
    }
    coverage->level[coverage->levels++] = (struct level){fine->spacing * FAN, columns, full};
    return VRAM_OK;
}

static enum vram_status begin_finest(struct vr_coverage *coverage) {
    const size_t events = coverage->view->history->count, columns = (events + SPACING - 1) / SPACING;
    const struct vr_grid_window all = {.end = events, .most = columns > MOST_COLUMNS ? MOST_COLUMNS : columns + 1, .high = coverage->total};
    VR_TRY(begin_sweep(coverage, &all, &coverage->sweep));
    for (size_t row = 0; row < coverage->lifetimes->start_count; row++) change_coverage(coverage->sweep, row, 0, 1);
    return VRAM_OK;
}

static enum vram_status keep_all(struct vr_coverage *coverage) {
    const struct vr_grid *grid = &coverage->sweep->grid;
    coverage->level[coverage->levels++] = (struct level){grid->spacing, grid->columns, grid->full};
    free(coverage->sweep);
    coverage->sweep = NULL;
    while (coverage->level[coverage->levels - 1].columns > 64 && coverage->levels < MOST_LEVELS) VR_TRY(keep_coarser(coverage));
    return VRAM_OK;
}

enum vram_status vr_coverage_go_on(struct vr_coverage *coverage, size_t events, double *share) {
    *share = 1;
    if (coverage->sweep == NULL) return VRAM_OK;
    const struct vr_grid *grid = &coverage->sweep->grid;
    sweep_on(coverage->sweep, events == 0 || grid->spacing == 0 ? 0 : events / grid->spacing + 1);
    *share = grid->columns == 0 ? 1 : (double)coverage->sweep->column / (double)grid->columns;
    return *share < 1 ? VRAM_OK : keep_all(coverage);
}

enum vram_status vr_coverage_begin(const struct vr_view *view, const struct vr_segment_lives *segments,
                                   const struct vr_lifetimes *lifetimes, const struct vr_event_rows *rows, struct vr_coverage **coverage) {
    struct vr_coverage *made = calloc(1, sizeof *made);
    if (made == NULL) return VRAM_NO_HOST_MEMORY;
    made->view = view;
    made->lifetimes = lifetimes;
    made->rows = rows;
    enum vram_status status = fold_ranges(made, segments);
    if (status == VRAM_OK) status = begin_finest(made);
    if (status == VRAM_OK) *coverage = made;
    if (status != VRAM_OK) vr_coverage_destroy(made);
    return status;
}

void vr_coverage_destroy(struct vr_coverage *coverage) {
    if (coverage == NULL) return;
    drop_sweep(coverage->sweep);
    for (size_t i = 0; i < coverage->levels; i++) free(coverage->level[i].full);
    free(coverage->ranges);
    free(coverage);
}

enum vram_status vr_coverage_kept(const struct vr_coverage *coverage, size_t first, size_t end, size_t most, struct vr_grid *grid) {
    assert(coverage->sweep == NULL && first <= end && end <= coverage->view->history->count);
    size_t level = 0, begin = 0, columns = 0;
    for (;; level++) {
        const size_t spacing = coverage->level[level].spacing == 0 ? 1 : coverage->level[level].spacing;
        begin = first / spacing;
        columns = (end + spacing - 1) / spacing - begin;
        if (columns <= most || level + 1 == coverage->levels) break;
    }
    uint8_t *full = malloc((columns + 1) * VR_COVERAGE_CELLS);
    if (full == NULL) return VRAM_NO_HOST_MEMORY;
    memcpy(full, coverage->level[level].full + begin * VR_COVERAGE_CELLS, columns * VR_COVERAGE_CELLS);
    const size_t spacing = coverage->level[level].spacing;
    *grid =
        (struct vr_grid){.first = begin * spacing, .spacing = spacing, .columns = columns, .low = 0, .high = coverage->total, .full = full};
    return VRAM_OK;
}

bool vr_coverage_check(const struct vr_coverage *coverage) {
    uint64_t at = 0;
    for (size_t i = 0; i < coverage->range_count; i++) {
        const struct vr_fold_range *range = &coverage->ranges[i];
        if (range->end <= range->address || range->at != at || (i != 0 && range->address <= range[-1].end)) return false;
        at += range->end - range->address;
    }
    const size_t events = coverage->view->history->count;
    for (size_t i = 0; i < coverage->levels; i++) {
        const struct level *level = &coverage->level[i];
        if (level->columns * level->spacing < events || (i != 0 && level->spacing != level[-1].spacing * FAN)) return false;
    }
    return at == coverage->total && (coverage->sweep != NULL) == (coverage->levels == 0);
}
