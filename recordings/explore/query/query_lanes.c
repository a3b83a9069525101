// `lanes`: what each of the largest groups holds along a window, a curve for each, and in which pass of a step it was made: the picture of
// a forward and a backward pass.
#include "explore/query/holders.h"
#include "explore/query/window.h"
#include "explore/tables/largest.h"

enum { MOST_LANES = 64, MOST_PIXELS = 4096 };

// Which pass makes an allocation, as far as its stack tells.
enum lane_pass { PASS_NONE, PASS_FORWARD, PASS_BACKWARD, PASS_OPTIMIZER, PASS_COUNT };

struct lane_sums {
    uint64_t key;
    double area, first;              // bytes times positions; where it has something for the first time
    uint64_t made_bytes, kept_bytes; // born in the window; live at its end
    uint64_t made_count;
};

// What a lane has live after an event, and the most of it so far.
struct lane_level {
    uint64_t live_bytes, peak_bytes;
};

struct lanes {
    struct vr_selection selection;
    struct vr_grouping grouping;
    struct vr_window window;
    struct vr_axis_span span;
    struct vr_map known; // key -> lane + 1
    struct lane_sums *lane;
    size_t count, lane_capacity;
    size_t kept; // so many have a curve of their own, one more stands for all others
    int64_t pixels;
    struct lane_level *level; // kept + 1
    double *bytes;            // (kept + 1) x (pixels + 1): what changes at a pixel, then what is live in it
    uint32_t *made;           // pixels x PASS_COUNT: allocations
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

// Changes of the mean of what is live: a pixel that is covered in part counts in part.
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

// A row that an event begins or ends. An event that replaces what was live ends the one before it begins the other.
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

// The most that each lane has after an event of the window. A pixel's mean does not tell it: what lives for one event is a fraction of a
// pixel.
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
