// Answers queries for pictures of a window: `map`, by addresses, and `lanes`, by the largest groups.
#include "explore/query/drawn_shapes.h"
#include "explore/query/group_selection.h"
#include "explore/query/selection.h"
#include "explore/tables/picture_rows.h"

// ---- `map`: addresses over time. Every allocation is a rectangle; those too small to draw are a shade of the grid behind.

// Up to COUNTED_EVENTS events, the grid is computed; for larger windows a stored grid is used. MOST_PICKS counts picks at any address.
enum { COUNTED_EVENTS = 32768, MOST_PICKS = 32768, MOST_RANGES = 4096 };

struct map {
    struct vr_shapes shapes, segments;
    const struct vr_coverage *coverage;
    double low, high; // range of places shown
};

static enum vram_status select_places(const struct vr_query *query, struct map *map) {
    const double total = (double)vr_coverage_total(map->coverage);
    VR_TRY(vr_parameter_number(query->parameters, "low", 0, &map->low));
    VR_TRY(vr_parameter_number(query->parameters, "high", total < 1 ? 1 : total, &map->high));
    if (map->low < 0) map->low = 0;
    if (map->high > total) map->high = total < 1 ? 1 : total;
    if (map->high <= map->low)
        return vr_fail(query->error, VRAM_INVALID_ARGUMENT, VRAM_NO_OFFSET,
                       "'low' and 'high' must select a range of places, and 'high' must be greater than 'low'");
    return VRAM_OK;
}

static double map_place(const struct map *map, const struct vr_shapes *shapes, size_t row) {
    return (double)vr_coverage_place(map->coverage, shapes->lifetimes->address[row]);
}

// Picks shapes at the places shown. Because vr_shapes_pick() picks at all places, picks more of them first and then drops those outside.
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

// ---- `lanes`: the bytes of each of the largest groups along a window, as curves, and the pass of a step that made them: the picture of a
// forward and a backward pass.

enum { MOST_LANES = 64, MOST_PIXELS = 4096 };

// The pass that makes an allocation, according to its stack.
enum lane_pass { PASS_NONE, PASS_FORWARD, PASS_BACKWARD, PASS_OPTIMIZER, PASS_COUNT };

struct lane_sums {
    uint64_t key;
    double area, first;              // bytes times positions; position of its first allocation
    uint64_t made_bytes, kept_bytes; // born in the window; live at its end
    uint64_t made_count;
};

// The live bytes of a lane after an event, and their maximum so far.
struct lane_level {
    uint64_t live_bytes, peak_bytes;
};

struct lanes {
    struct vr_selection selection;
    struct vr_grouping grouping;
    struct vr_window window;
    struct vr_axis_span span;
    struct vr_map known; // key -> index of the lane + 1
    struct lane_sums *lane;
    size_t count, lane_capacity;
    size_t kept; // number of lanes with their own curve; one more combines all others
    int64_t pixels;
    struct lane_level *level; // kept + 1
    double *bytes;            // (kept + 1) x (pixels + 1): first the change at each pixel, then the bytes live in it
    uint32_t *made;           // pixels x PASS_COUNT: numbers of allocations
};

static double scale_of(const struct lanes *lanes) { return (double)lanes->pixels / (lanes->window.to - lanes->window.from); }

static enum vram_status note_row(struct lanes *lanes, size_t row) {
    const struct vr_lifetimes *lifetimes = lanes->selection.lifetimes;
    const double begin = vr_axis_span_birth(&lanes->span, lifetimes, row), end = vr_axis_span_death(&lanes->span, lifetimes, row);
    uint64_t key = 0;
    if (end <= begin) return VRAM_OK;
    VR_TRY(vr_grouping_key(&lanes->grouping, row, &key));
    uint32_t number = (uint32_t)vr_map_get(&lanes->known, key);
    if (number == 0) {
        VR_TRY(VR_GROW(lanes, lane, lanes->count + 1));
        lanes->lane[lanes->count] = (struct lane_sums){.key = key, .first = begin};
        number = (uint32_t)++lanes->count;
        VR_TRY(vr_map_set(&lanes->known, key, number));
    }
    struct lane_sums *lane = &lanes->lane[number - 1];
    const uint32_t birth = lifetimes->birth[row];
    lane->area += (double)lifetimes->size_bytes[row] * (end - begin);
    if (begin < lane->first) lane->first = begin;
    if (birth != VR_BEFORE_TRACE && birth >= lanes->window.first && birth < lanes->window.end) {
        lane->made_bytes += lifetimes->size_bytes[row];
        lane->made_count++;
    }
    if (vr_lifetimes_live_at(lifetimes, row, (int64_t)lanes->window.end - 1)) lane->kept_bytes += lifetimes->size_bytes[row];
    return VRAM_OK;
}

static int larger_first(const void *a, const void *b) {
    const struct lane_sums *x = a, *y = b;
    if (x->area != y->area) return VR_ORDER(y->area, x->area);
    return VR_ORDER(x->key, y->key);
}

static double clamp_position(double value, double most) { return value < 0 ? 0 : value > most ? most : value; }

// Adds an allocation to the changes of the mean of live bytes; a partly covered pixel counts partly.
static void draw_row(struct lanes *lanes, double *curve, size_t row) {
    const struct vr_lifetimes *lifetimes = lanes->selection.lifetimes;
    const double size = (double)lifetimes->size_bytes[row], scale = scale_of(lanes);
    const double begin = (vr_axis_span_birth(&lanes->span, lifetimes, row) - lanes->window.from) * scale;
    const double end = (vr_axis_span_death(&lanes->span, lifetimes, row) - lanes->window.from) * scale;
    const double edges[2] = {clamp_position(begin, (double)lanes->pixels), clamp_position(end, (double)lanes->pixels)};
    for (unsigned side = 0; side < 2; side++) {
        const size_t pixel = (size_t)edges[side];
        const double change = side == 0 ? size : -size, part = 1 - (edges[side] - (double)pixel);
        curve[pixel] += change * part;
        if (pixel < (size_t)lanes->pixels) curve[pixel + 1] += change * (1 - part);
    }
}

static enum vram_status draw_lanes(struct lanes *lanes) {
    const size_t width = (size_t)lanes->pixels + 1;
    lanes->bytes = calloc((lanes->kept + 1) * width, sizeof *lanes->bytes);
    if (lanes->bytes == NULL) return VRAM_NO_HOST_MEMORY;
    for (size_t row = 0; row < lanes->selection.lifetimes->count; row++) {
        uint64_t key = 0;
        if (vr_axis_span_death(&lanes->span, lanes->selection.lifetimes, row) <=
            vr_axis_span_birth(&lanes->span, lanes->selection.lifetimes, row))
            continue;
        VR_TRY(vr_grouping_key(&lanes->grouping, row, &key));
        const size_t lane = (size_t)vr_map_get(&lanes->known, key) - 1;
        draw_row(lanes, lanes->bytes + (lane < lanes->kept ? lane : lanes->kept) * width, row);
    }
    for (size_t lane = 0; lane <= lanes->kept; lane++) {
        for (size_t p = 1; p < width; p++) lanes->bytes[lane * width + p] += lanes->bytes[lane * width + p - 1];
    }
    return VRAM_OK;
}

static enum vram_status lane_level_of(struct lanes *lanes, size_t row, struct lane_level **level) {
    uint64_t key = 0;
    VR_TRY(vr_grouping_key(&lanes->grouping, row, &key));
    const uint64_t number = vr_map_get(&lanes->known, key);
    *level = &lanes->level[number != 0 && number <= lanes->kept ? number - 1 : lanes->kept];
    return VRAM_OK;
}

// Applies the beginning or end of a row at an event. If the event replaces a live allocation, call this for the replaced row first.
static enum vram_status step_over(struct lanes *lanes, size_t row, size_t event) {
    const struct vr_lifetimes *lifetimes = lanes->selection.lifetimes;
    struct lane_level *level = NULL;
    VR_TRY(lane_level_of(lanes, row, &level));
    if (lifetimes->birth[row] != event) {
        level->live_bytes -= lifetimes->size_bytes[row];
        return VRAM_OK;
    }
    level->live_bytes += lifetimes->size_bytes[row];
    if (level->live_bytes > level->peak_bytes) level->peak_bytes = level->live_bytes;
    return VRAM_OK;
}

// Finds each lane's maximum over the window's events. The means per pixel hide it: a short peak is averaged away.
static enum vram_status find_peaks(struct lanes *lanes, enum vr_lifetime_kind kind) {
    const struct vr_lifetimes *lifetimes = lanes->selection.lifetimes;
    const struct vr_event_rows *rows = NULL;
    const int64_t before = (int64_t)lanes->window.first - 1;
    VR_TRY(vr_explored_rows(lanes->selection.device, kind, &rows));
    lanes->level = calloc(lanes->kept + 1, sizeof *lanes->level);
    if (lanes->level == NULL) return VRAM_NO_HOST_MEMORY;
    for (size_t row = 0; row < lifetimes->count; row++) {
        struct lane_level *level = NULL;
        if (!vr_lifetimes_live_at(lifetimes, row, before)) continue;
        VR_TRY(lane_level_of(lanes, row, &level));
        level->live_bytes += lifetimes->size_bytes[row];
    }
    for (size_t lane = 0; lane <= lanes->kept; lane++) lanes->level[lane].peak_bytes = lanes->level[lane].live_bytes;
    for (size_t event = lanes->window.first; event < lanes->window.end; event++) {
        const uint32_t ended = vr_event_replaced(rows, event), row = rows->row[event];
        if (ended != 0) VR_TRY(step_over(lanes, ended - 1, event));
        if (row != 0) VR_TRY(step_over(lanes, row - 1, event));
    }
    return VRAM_OK;
}

static enum vram_status count_passes(struct lanes *lanes) {
    const struct vr_lifetimes *lifetimes = lanes->selection.lifetimes;
    struct vr_roles *roles = NULL;
    VR_TRY(vr_select_roles(lanes->selection.device, lifetimes, VR_GROUP_ROLE, &roles));
    lanes->made = calloc((size_t)lanes->pixels * PASS_COUNT, sizeof *lanes->made);
    if (lanes->made == NULL) return VRAM_NO_HOST_MEMORY;
    if (roles == NULL) return VRAM_OK;
    for (size_t row = lifetimes->start_count; row < lifetimes->count; row++) {
        if (lifetimes->birth[row] < lanes->window.first || lifetimes->birth[row] >= lanes->window.end) continue;
        const uint32_t marks = vr_role_marks_of(&roles->marks, lifetimes->stack[row]);
        const enum lane_pass pass = (marks & VR_MARK_OPTIMIZER) != 0                         ? PASS_OPTIMIZER
                                    : (marks & (VR_MARK_BACKWARD | VR_MARK_ACCUMULATE)) != 0 ? PASS_BACKWARD
                                    : (marks & VR_MARK_FORWARD) != 0                         ? PASS_FORWARD
                                                                                             : PASS_NONE;
        const double at = (vr_window_position(&lanes->window, lifetimes->birth[row]) - lanes->window.from) * scale_of(lanes);
        if (at >= 0 && at < (double)lanes->pixels) lanes->made[(size_t)at * PASS_COUNT + pass]++;
    }
    return VRAM_OK;
}

static enum vram_status put_lane(const struct vr_query *query, const struct lanes *lanes, size_t i, struct vr_text *name) {
    struct vr_json *json = &query->answer->json;
    const struct lane_sums *lane = &lanes->lane[i];
    name->length = 0;
    vr_grouping_name(&lanes->grouping, lane->key, name);
    vr_json_object(json, NULL);
    vr_json_string_bytes(json, "name", vr_text_string(name), name->length);
    vr_json_u64(json, "made_bytes", lane->made_bytes);
    vr_json_u64(json, "made_count", lane->made_count);
    vr_json_u64(json, "kept_bytes", lane->kept_bytes);
    vr_json_u64(json, "peak_bytes", lanes->level[i].peak_bytes);
    vr_json_double(json, "first", lane->first);
    vr_json_object_end(json);
    return vr_text_status(name);
}

static enum vram_status put_lanes(const struct vr_query *query, const struct lanes *lanes) {
    struct vr_json *json = &query->answer->json;
    struct vr_text name = {0};
    enum vram_status status = VRAM_OK;
    vr_json_double(json, "from", lanes->window.from);
    vr_json_double(json, "to", lanes->window.to);
    vr_json_u64(json, "distinct", lanes->count);
    vr_json_u64(json, "others_peak_bytes", lanes->level[lanes->kept].peak_bytes);
    vr_json_array(json, "lanes");
    for (size_t i = 0; i < lanes->kept && status == VRAM_OK; i++) status = put_lane(query, lanes, i, &name);
    vr_json_array_end(json);
    vr_text_release(&name);
    const size_t bytes = vr_answer_column(query->answer, "bytes", VR_F64), pass = vr_answer_column(query->answer, "pass", VR_U8);
    for (size_t lane = 0; lane <= lanes->kept; lane++) {
        for (int64_t p = 0; p < lanes->pixels; p++)
            vr_answer_f64(query->answer, bytes,
                          clamp_position(lanes->bytes[lane * ((size_t)lanes->pixels + 1) + (size_t)p], (double)UINT64_MAX));
    }
    for (int64_t p = 0; p < lanes->pixels; p++) {
        const uint32_t *made = &lanes->made[(size_t)p * PASS_COUNT];
        uint8_t most = PASS_NONE;
        for (uint8_t i = PASS_FORWARD; i < PASS_COUNT; i++) {
            if (made[i] > 0 && (most == PASS_NONE || made[i] > made[most])) most = i;
        }
        vr_answer_u8(query->answer, pass, most);
    }
    return status;
}

static enum vram_status work_out(struct lanes *lanes, size_t top, enum vr_lifetime_kind kind) {
    const struct vr_window *window = &lanes->window;
    lanes->span = (struct vr_axis_span){
        .from = window->from, .to = window->to, .time_us = window->time_us, .events = lanes->selection.device->view->history->count};
    for (size_t row = 0; row < lanes->selection.lifetimes->count; row++) VR_TRY(note_row(lanes, row));
    if (lanes->count != 0) qsort(lanes->lane, lanes->count, sizeof *lanes->lane, larger_first);
    for (size_t i = 0; i < lanes->count; i++) VR_TRY(vr_map_set(&lanes->known, lanes->lane[i].key, (uint32_t)i + 1));
    lanes->kept = lanes->count < top ? lanes->count : top;
    VR_TRY(draw_lanes(lanes));
    VR_TRY(find_peaks(lanes, kind));
    return count_passes(lanes);
}

enum vram_status vr_query_lanes(const struct vr_query *query) {
    struct lanes lanes = {.count = 0};
    int64_t top = 24;
    enum vr_lifetime_kind kind;
    VR_TRY(vr_select_lifetime_kind(query, &kind));
    VR_TRY(vr_parameter_whole(query->parameters, "top", 1, MOST_LANES, 24, &top));
    VR_TRY(vr_parameter_whole(query->parameters, "pixels", 1, MOST_PIXELS, 1024, &lanes.pixels));
    VR_TRY(vr_select_lifetimes(query, &lanes.selection));
    VR_TRY(vr_select_window(query, lanes.selection.device, &lanes.window));
    VR_TRY(vr_select_grouping(query, &lanes.selection, &lanes.grouping));
    enum vram_status status = work_out(&lanes, (size_t)top, kind);
    if (status == VRAM_OK) status = put_lanes(query, &lanes);
    vr_grouping_release(&lanes.grouping);
    vr_map_release(&lanes.known);
    free(lanes.lane);
    free(lanes.level);
    free(lanes.bytes);
    free(lanes.made);
    return status;
}
