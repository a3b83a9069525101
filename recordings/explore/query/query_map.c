// `map`: addresses over time. Every allocation is one rectangle; what is too small to be one is a shade of the grid behind them.
#include "explore/query/shapes.h"
#include "explore/query/window.h"

// Windows of so few events are counted, others taken from what is kept. Picks before those of other addresses are left out.
enum { COUNTED_EVENTS = 32768, MOST_PICKS = 32768, MOST_RANGES = 4096 };

struct map {
    struct vr_shapes shapes, segments;
    const struct vr_coverage *coverage;
    double low, high; // places shown
};

static enum vram_status select_places(const struct vr_query *query, struct map *map) {
    const double total = (double)vr_coverage_total(map->coverage);
    VR_TRY(vr_parameter_number(query->parameters, "low", 0, &map->low));
    VR_TRY(vr_parameter_number(query->parameters, "high", total < 1 ? 1 : total, &map->high));
    if (map->low < 0) map->low = 0;
    if (map->high > total) map->high = total < 1 ? 1 : total;
    if (map->high <= map->low)
        return vr_fail(query->error, VRAM_INVALID_ARGUMENT, VRAM_NO_OFFSET, "'high' must be greater than 'low', and both be places");
    return VRAM_OK;
}

static double map_place(const struct map *map, const struct vr_shapes *shapes, size_t row) {
    return (double)vr_coverage_place(map->coverage, shapes->lifetimes->address[row]);
}

// Picks more than asked for where only a part of the places is shown, and keeps what lies there.
static enum vram_status pick_shapes(const struct map *map, struct vr_shapes *shapes, enum vr_shape_kind kind) {
    const double shown = (map->high - map->low) / ((double)vr_coverage_total(map->coverage) + 1);
    const int64_t limit = shapes->limit;
    const double wanted = (double)limit / (shown < 1e-6 ? 1e-6 : shown);
    shapes->limit = shown > 0.999 ? limit : wanted > MOST_PICKS ? MOST_PICKS : (int64_t)wanted;
    VR_TRY(vr_shapes_pick(shapes, kind, map->high - map->low));
    shapes->limit = limit;
    size_t kept = 0;
    for (size_t i = 0; i < shapes->count && (int64_t)kept < limit; i++) {
        const uint32_t row = shapes->row[i];
        const double place = map_place(map, shapes, row);
        if (place < map->high && place + (double)shapes->lifetimes->size_bytes[row] > map->low) shapes->row[kept++] = row;
    }
    shapes->count = kept;
    return VRAM_OK;
}

static enum vram_status put_allocations(const struct map *map) {
    const struct vr_shapes *shapes = &map->shapes;
    struct vr_answer *answer = shapes->query->answer;
    const struct vr_lifetimes *active = NULL;
    VR_TRY(vr_explored_lifetimes(shapes->device, VR_LIFETIME_ACTIVE, &active));
    VR_TRY(vr_shapes_put(shapes));
    const size_t begin = vr_answer_column(answer, "begin", VR_F64), place = vr_answer_column(answer, "place", VR_F64);
    const size_t completed = vr_answer_column(answer, "completed", VR_F64);
    for (size_t i = 0; i < shapes->count; i++) {
        const size_t row = vr_other_row(shapes->lifetimes, active, shapes->row[i]);
        const double end = vr_shapes_end(shapes, i), done = row == SIZE_MAX ? end : vr_axis_span_death(&shapes->span, active, row);
        vr_answer_f64(answer, begin, vr_shapes_begin(shapes, i));
        vr_answer_f64(answer, place, map_place(map, shapes, shapes->row[i]));
        vr_answer_f64(answer, completed, done > end ? done : end);
    }
    return vr_shapes_put_keys(shapes);
}

static void put_map_segments(const struct map *map, const struct vr_segment_lives *segments) {
    const struct vr_shapes *shapes = &map->segments;
    struct vr_answer *answer = shapes->query->answer;
    const size_t row = vr_answer_column(answer, "segment_row", VR_U32), place = vr_answer_column(answer, "segment_place", VR_F64);
    const size_t bytes = vr_answer_column(answer, "segment_bytes", VR_F64), begin = vr_answer_column(answer, "segment_begin", VR_F64);
    const size_t end = vr_answer_column(answer, "segment_end", VR_F64), private = vr_answer_column(answer, "segment_private", VR_U8);
    for (size_t i = 0; i < shapes->count; i++) {
        const uint32_t r = shapes->row[i];
        vr_answer_u32(answer, row, r);
        vr_answer_f64(answer, place, map_place(map, shapes, r));
        vr_answer_f64(answer, bytes, (double)segments->lifetimes.size_bytes[r]);
        vr_answer_f64(answer, begin, vr_shapes_begin(shapes, i));
        vr_answer_f64(answer, end, vr_shapes_end(shapes, i));
        vr_answer_u8(answer, private, segments->pool_first[r] != 0 || segments->pool_second[r] != 0);
    }
}

static void put_ranges(const struct map *map) {
    struct vr_answer *answer = map->shapes.query->answer;
    size_t count = 0, put = 0;
    const struct vr_fold_range *ranges = vr_coverage_ranges(map->coverage, &count);
    vr_json_double(&answer->json, "total", (double)vr_coverage_total(map->coverage));
    vr_json_double(&answer->json, "low", map->low);
    vr_json_double(&answer->json, "high", map->high);
    const size_t place = vr_answer_column(answer, "range_place", VR_F64);
    const size_t address = vr_answer_halves(answer, "range_address_low", "range_address_high");
    for (size_t i = 0; i < count && put < MOST_RANGES; i++) {
        if ((double)ranges[i].at >= map->high || (double)(ranges[i].at + (ranges[i].end - ranges[i].address)) <= map->low) continue;
        vr_answer_f64(answer, place, (double)ranges[i].at);
        vr_answer_u64(answer, address, ranges[i].address);
        put++;
    }
}

static enum vram_status grid_of(const struct map *map, struct vr_grid *grid) {
    const struct vr_window *window = &map->shapes.window;
    const size_t most = (size_t)(map->shapes.pixels > 1024 ? 1024 : map->shapes.pixels);
    if (window->end - window->first > COUNTED_EVENTS) return vr_coverage_kept(map->coverage, window->first, window->end, most, grid);
    uint32_t *live = NULL;
    size_t count = 0;
    VR_TRY(vr_explored_live(map->shapes.device, VR_LIFETIME_ALLOCATED, (int64_t)window->first - 1, &live, &count));
    const struct vr_grid_window counted = {.live = live,
                                           .live_count = count,
                                           .first = window->first,
                                           .end = window->end,
                                           .most = most,
                                           .low = (uint64_t)map->low,
                                           .high = (uint64_t)map->high};
    const enum vram_status status = vr_coverage_count(map->coverage, &counted, grid);
    free(live);
    return status;
}

static enum vram_status put_grid(const struct map *map) {
    struct vr_answer *answer = map->shapes.query->answer;
    const struct vr_window *window = &map->shapes.window;
    const size_t events = map->shapes.device->view->history->count;
    struct vr_grid grid;
    VR_TRY(grid_of(map, &grid));
    vr_json_double(&answer->json, "grid_low", (double)grid.low);
    vr_json_double(&answer->json, "grid_high", (double)grid.high);
    const size_t edge = vr_answer_column(answer, "grid_position", VR_F64), full = vr_answer_column(answer, "grid", VR_U8);
    for (size_t c = 0; c <= grid.columns; c++) {
        const size_t event = grid.first + c * grid.spacing;
        const bool last = event >= events;
        vr_answer_f64(answer, edge,
                      !last         ? vr_window_position(window, event)
                      : events == 0 ? 0
                                    : vr_window_position(window, events - 1) + 1);
    }
    for (size_t i = 0; i < grid.columns * VR_COVERAGE_CELLS; i++) vr_answer_u8(answer, full, grid.full[i]);
    free(grid.full);
    return VRAM_OK;
}

static enum vram_status answer_map(const struct vr_query *query, struct map *map) {
    const struct vr_segment_lives *segments = NULL;
    VR_TRY(vr_explored_segments(map->shapes.device, &segments));
    VR_TRY(vr_explored_coverage(map->shapes.device, &map->coverage));
    VR_TRY(select_places(query, map));
    VR_TRY(pick_shapes(map, &map->shapes, VR_SHAPES_ALLOCATED));
    VR_TRY(pick_shapes(map, &map->segments, VR_SHAPES_SEGMENTS));
    VR_TRY(put_allocations(map));
    put_map_segments(map, segments);
    put_ranges(map);
    return put_grid(map);
}

enum vram_status vr_query_map(const struct vr_query *query) {
    struct map map = {.low = 0};
    VR_TRY(vr_shapes_init(query, &map.shapes));
    VR_TRY(vr_shapes_init(query, &map.segments));
    const enum vram_status status = answer_map(query, &map);
    vr_shapes_release(&map.shapes);
    vr_shapes_release(&map.segments);
    return status;
}
