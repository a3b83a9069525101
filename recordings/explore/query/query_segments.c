// Answers with stacked shapes: `segments` and `timeline`.
#include <math.h>
#include <stdio.h>

#include "base/hash.h"
#include "explore/query/drawn_shapes.h"
#include "explore/query/selection.h"
#include "explore/tables/lanes.h"

// ---- `segments`: the segments of a window, stacked: all together, or in lanes by the requests that they serve.

// Larger stream numbers are shown as addresses.
enum { MOST_COUNTED = 0xffff };

// Groups segments by pool and stream: a group's key is the first row that has both.
struct owner_groups {
    const struct vr_segment_lives *segments;
    struct vr_hash_index index; // index of those rows
};

static bool same_pool_and_stream(const struct vr_segment_lives *segments, size_t a, size_t b) {
    return segments->stream[a] == segments->stream[b] && segments->pool_first[a] == segments->pool_first[b] &&
           segments->pool_second[a] == segments->pool_second[b];
}

static enum vram_status group_key(void *user, size_t row, uint64_t *key) {
    struct owner_groups *groups = user;
    const struct vr_segment_lives *segments = groups->segments;
    const uint64_t words[] = {segments->stream[row], segments->pool_first[row], segments->pool_second[row]};
    const uint64_t hash = vr_hash_bytes(groups->index.secret, words, sizeof words);
    uint32_t first = (uint32_t)row;
    bool found;
    VR_HASH_INDEX_FIND(&groups->index, hash, first, same_pool_and_stream(segments, first, row), found);
    if (!found) {
        VR_TRY(vr_hash_index_reserve(&groups->index));
        first = (uint32_t)row;
        vr_hash_index_add(&groups->index, hash, first);
    }
    *key = first;
    return VRAM_OK;
}

static void put_stream_name(uint64_t stream, struct vr_text *text) {
    vr_text_printf(text, stream > MOST_COUNTED ? "stream 0x%llx" : "stream %llu", (unsigned long long)stream);
}

static void group_name(void *user, uint64_t key, struct vr_text *text) {
    const struct vr_segment_lives *segments = ((const struct owner_groups *)user)->segments;
    // Unknown pools have the numbers 0, 0 here.
    vr_pool_name(true, segments->pool_first[key], segments->pool_second[key], text);
    vr_text_puts(text, ", ");
    put_stream_name(segments->stream[key], text);
}

static enum vram_status put_groups(const struct vr_shapes *shapes, const struct vr_segment_lives *segments) {
    struct owner_groups groups = {.segments = segments};
    vr_hash_index_init(&groups.index);
    const enum vram_status status = vr_shapes_put_groups(shapes, &(struct vr_naming){&groups, group_key, group_name});
    vr_hash_index_release(&groups.index);
    return status;
}

// Adds the columns of the segments. Unknown events are NaN.
static void put_segment_shapes(const struct vr_shapes *shapes, const struct vr_segment_lives *segments) {
    struct vr_answer *answer = shapes->query->answer;
    const size_t mapped = vr_answer_column(answer, "mapped", VR_U8), address = vr_answer_halves(answer, "address_low", "address_high");
    const size_t birth = vr_answer_column(answer, "birth", VR_F64), death = vr_answer_column(answer, "death", VR_F64);
    for (size_t i = 0; i < shapes->count; i++) {
        const uint32_t row = shapes->row[i], born = shapes->lifetimes->birth[row], died = shapes->lifetimes->death[row];
        vr_answer_u8(answer, mapped, (segments->flags[row] & VR_SEGMENT_MAPPED) != 0);
        vr_answer_u64(answer, address, shapes->lifetimes->address[row]);
        vr_answer_f64(answer, birth, born == VR_BEFORE_TRACE ? NAN : (double)born);
        vr_answer_f64(answer, death, died == VR_NEVER ? NAN : (double)died);
    }
}

// --- lanes ---------------------------------------------------------------------------------------------------------------

// The least height of a lane in pixels, and its room relative to its peak.
#define LEAST_PIXELS 26.0
#define HEADROOM     1.08

// The positions of lanes, the first one on top. All have the same scale, except that lanes too low to see are magnified.
struct lane_plan {
    const struct vr_lanes *lanes;
    double base[VR_MOST_LANES], room[VR_MOST_LANES], scale[VR_MOST_LANES];
    double top;
};

// Computes the plan. A lane's minimum is a share of the total height, which minimums increase: a few iterations converge.
static void make_plan(const struct vr_lanes *lanes, double height, struct lane_plan *plan) {
    const double most = lanes->count == 0 ? 0 : 0.5 / (double)lanes->count;
    const double share = height > 0 && LEAST_PIXELS / height < most ? LEAST_PIXELS / height : most;
    *plan = (struct lane_plan){.lanes = lanes};
    for (unsigned turn = 0; turn < 12; turn++) {
        const double least = plan->top * share;
        double cursor = 0;
        for (size_t i = lanes->count; i-- > 0;) {
            const double room = (double)lanes->lane[i].peak_bytes * HEADROOM;
            plan->base[i] = cursor;
            plan->room[i] = room > least ? room : least;
            plan->scale[i] = room >= plan->room[i] || room <= 0 ? 1 : plan->room[i] / room;
            cursor += plan->room[i];
        }
        plan->top = cursor;
    }
    if (plan->top < 1) plan->top = 1;
}

static const char *kind_word(const struct vr_lane *lane) {
    return lane->kind == VRAM_REPORT_KIND_SMALL ? "small" : lane->kind == VRAM_REPORT_KIND_LARGE ? "large" : "unknown";
}

// Writes a name like "default pool, large, stream 7".
static enum vram_status lane_name(const struct vr_lanes *lanes, size_t i, struct vr_text *text) {
    const struct vr_lane *lane = &lanes->lane[i];
    text->length = 0;
    if (lane->others != 0) {
        vr_text_printf(text, "%zu other%s", lane->others, lane->others == 1 ? "" : "s");
        return vr_text_status(text);
    }
    vr_pool_name(lane->pool_known, lane->pool_first, lane->pool_second, text);
    if (lane->kind != VRAM_REPORT_KIND_UNKNOWN) vr_text_printf(text, ", %s", kind_word(lane));
    if (lane->expandable) vr_text_puts(text, ", expandable");
    if (lanes->several_streams) {
        vr_text_puts(text, ", ");
        put_stream_name(lane->stream, text);
    }
    return vr_text_status(text);
}

static enum vram_status put_lanes(struct vr_json *json, const struct lane_plan *plan) {
    struct vr_text name = {.bytes = NULL};
    enum vram_status status = VRAM_OK;
    vr_json_array(json, "lanes");
    for (size_t i = 0; i < plan->lanes->count && status == VRAM_OK; i++) {
        status = lane_name(plan->lanes, i, &name);
        vr_json_object(json, NULL);
        vr_json_string(json, "name", vr_text_string(&name));
        vr_json_u64(json, "peak_bytes", plan->lanes->lane[i].peak_bytes);
        vr_json_double(json, "base_bytes", plan->base[i]);
        vr_json_double(json, "room_bytes", plan->room[i]);
        vr_json_double(json, "scale", plan->scale[i]);
        vr_json_object_end(json);
    }
    vr_json_array_end(json);
    vr_text_release(&name);
    return status;
}

// Stacks of each lane; shape i is shape place[i] of its lane.
struct laned {
    struct vr_stacking stacking[VR_MOST_LANES];
    uint32_t *place;
    size_t *edge; // by pixel: the first event after it
};

static enum vram_status find_edges(const struct vr_shapes *shapes, struct laned *laned) {
    const struct vr_window *window = &shapes->window;
    size_t before = window->first;
    laned->edge = malloc((size_t)(shapes->pixels + 1) * sizeof *laned->edge);
    if (laned->edge == NULL) return VRAM_NO_HOST_MEMORY;
    for (int64_t p = 0; p < shapes->pixels; p++) {
        const double edge = window->from + (window->to - window->from) * (double)(p + 1) / (double)shapes->pixels;
        const size_t end = vr_window_event(window, shapes->device, edge);
        laned->edge[p] = before = end > before ? end : before;
    }
    return VRAM_OK;
}

static enum vram_status stack_lanes(const struct vr_shapes *shapes, const struct vr_lanes *lanes, struct laned *laned) {
    uint32_t *rows = malloc((shapes->count + 1) * sizeof *rows);
    laned->place = malloc((shapes->count + 1) * sizeof *laned->place);
    enum vram_status status = rows == NULL || laned->place == NULL ? VRAM_NO_HOST_MEMORY : VRAM_OK;
    for (size_t lane = 0; lane < lanes->count && status == VRAM_OK; lane++) {
        uint32_t count = 0;
        for (size_t i = 0; i < shapes->count; i++) {
            if (lanes->of[shapes->row[i]] != lane) continue;
            laned->place[i] = count;
            rows[count++] = shapes->row[i];
        }
        status = vr_stacked_build(shapes, rows, count, &laned->stacking[lane]);
    }
    free(rows);
    return status;
}

static void put_lane_steps(const struct vr_shapes *shapes, const struct lane_plan *plan, const struct laned *laned) {
    struct vr_answer *answer = shapes->query->answer;
    const size_t first = vr_answer_column(answer, "first_step", VR_U32), of = vr_answer_column(answer, "group", VR_U32);
    const size_t position = vr_answer_column(answer, "position", VR_F64), base = vr_answer_column(answer, "base", VR_F64);
    size_t steps = 0;
    for (size_t i = 0; i < shapes->count; i++) {
        const size_t lane = plan->lanes->of[shapes->row[i]], place = laned->place[i];
        const struct vr_stacking *stacking = &laned->stacking[lane];
        vr_answer_u32(answer, of, (uint32_t)lane);
        vr_answer_u32(answer, first, (uint32_t)steps);
        for (size_t s = stacking->first_step[place]; s < stacking->first_step[place + 1]; s++, steps++) {
            const bool begins = s == stacking->first_step[place];
            vr_answer_f64(answer, position,
                          begins ? vr_shapes_begin(shapes, i) : vr_window_position(&shapes->window, stacking->step[s].event));
            vr_answer_f64(answer, base, plan->base[lane] + (double)stacking->step[s].base_bytes * plan->scale[lane]);
        }
    }
    vr_answer_u32(answer, first, (uint32_t)steps);
}

// Computes the total of a lane's shapes after each change, by event.
static void drawn_changes(const struct vr_shapes *shapes, const struct vr_stacking *stacking, uint64_t (*changes)[2], size_t *count) {
    const struct vr_lifetimes *rows = shapes->lifetimes;
    *count = 0;
    for (size_t i = 0; i < stacking->count; i++) {
        const uint32_t row = stacking->row[i];
        changes[*count][0] = stacking->step[stacking->first_step[i]].event;
        changes[(*count)++][1] = rows->size_bytes[row];
        if (rows->death[row] >= shapes->window.end) continue;
        changes[*count][0] = rows->death[row];
        changes[(*count)++][1] = 0 - rows->size_bytes[row];
    }
    if (*count != 0) qsort(changes, *count, sizeof *changes, vr_order_u64_pair);
    for (size_t i = 1; i < *count; i++) changes[i][1] += changes[i - 1][1];
}

// Adds columns lane by lane: per pixel, the lane's largest total, and the total of its shapes at the pixel's right edge.
static enum vram_status put_lane_pixels(const struct vr_shapes *shapes, const struct lane_plan *plan, const struct laned *laned) {
    struct vr_answer *answer = shapes->query->answer;
    const struct vr_window *window = &shapes->window;
    const size_t total = vr_answer_column(answer, "lane_total", VR_F64), drawn = vr_answer_column(answer, "lane_drawn", VR_F64);
    uint64_t(*changes)[2] = malloc((2 * shapes->count + 1) * sizeof *changes);
    if (changes == NULL) return VRAM_NO_HOST_MEMORY;
    for (size_t lane = 0; lane < plan->lanes->count; lane++) {
        size_t count = 0, next = 0, first = window->first;
        drawn_changes(shapes, &laned->stacking[lane], changes, &count);
        for (int64_t p = 0; p < shapes->pixels; p++) {
            const size_t end = laned->edge[p], reached = end > window->first ? end : window->first + 1;
            while (next < count && changes[next][0] < reached) next++;
            vr_answer_f64(answer, total, (double)vr_lane_largest(&plan->lanes->lane[lane], first, end));
            vr_answer_f64(answer, drawn, next == 0 ? 0 : (double)changes[next - 1][1]);
            first = end;
        }
    }
    free(changes);
    return VRAM_OK;
}

// --- bytes in use, lane by lane ----------------------------------------------------------------------------------------------

// With more allocations, computing this takes too long for a picture.
enum { MOST_ALLOCATIONS = 2000000 };

// Returns the first pixel whose right edge is after the event.
static size_t pixel_after(const struct vr_shapes *shapes, const struct laned *laned, uint32_t event) {
    size_t pixel;
    VR_LOWER_BOUND(pixel, i, 0, (size_t)shapes->pixels, laned->edge[i] <= event);
    return pixel;
}

// Adds a column lane by lane: per pixel, the bytes allocated in the lane's segments at its right edge. Adds nothing if there are too many
// allocations.
static enum vram_status put_lane_use(const struct vr_shapes *shapes, const struct vr_segment_lives *segments, const struct lane_plan *plan,
                                     const struct laned *laned) {
    const struct vr_lifetimes *rows = NULL;
    const size_t pixels = (size_t)shapes->pixels, count = plan->lanes->count;
    VR_TRY(vr_explored_lifetimes(shapes->device, VR_LIFETIME_ALLOCATED, &rows));
    if (rows->count > MOST_ALLOCATIONS) return VRAM_OK;
    double *used = calloc(count * (pixels + 1) + 1, sizeof *used);
    if (used == NULL) return VRAM_NO_HOST_MEMORY;
    for (size_t row = 0; row < rows->count; row++) {
        const uint32_t birth = rows->birth[row], death = rows->death[row];
        if ((birth != VR_BEFORE_TRACE && birth >= shapes->window.end) || death < shapes->window.first) continue;
        const size_t segment = vr_segment_lives_find(segments, rows->address[row], birth == VR_BEFORE_TRACE ? -1 : (int64_t)birth);
        if (segment == SIZE_MAX) continue;
        double *lane = used + plan->lanes->of[segment] * (pixels + 1);
        lane[birth == VR_BEFORE_TRACE ? 0 : pixel_after(shapes, laned, birth)] += (double)rows->size_bytes[row];
        lane[death == VR_NEVER ? pixels : pixel_after(shapes, laned, death)] -= (double)rows->size_bytes[row];
    }
    const size_t column = vr_answer_column(shapes->query->answer, "lane_used", VR_F64);
    for (size_t i = 0; i < count; i++) {
        double live = 0;
        for (size_t p = 0; p < pixels; p++) vr_answer_f64(shapes->query->answer, column, live += used[i * (pixels + 1) + p]);
    }
    free(used);
    return VRAM_OK;
}

// Adds, per pixel, the largest total of all lanes together.
static enum vram_status put_reserved(const struct vr_shapes *shapes, const struct laned *laned) {
    const struct vr_curve *curve = NULL;
    VR_TRY(vr_explored_curve(shapes->device, VR_CURVE_RESERVED, &curve));
    const size_t column = vr_answer_column(shapes->query->answer, "reserved", VR_F64);
    size_t first = shapes->window.first;
    for (int64_t p = 0; p < shapes->pixels; p++) {
        const size_t end = laned->edge[p];
        int64_t low, high;
        vr_curve_extremes(curve, first, end, &low, &high);
        vr_answer_f64(shapes->query->answer, column, (double)high);
        first = end;
    }
    return VRAM_OK;
}

static enum vram_status put_laned(const struct vr_shapes *shapes, const struct vr_segment_lives *segments, const struct lane_plan *plan,
                                  const struct laned *laned) {
    VR_TRY(vr_shapes_put(shapes));
    VR_TRY(put_lanes(&shapes->query->answer->json, plan));
    put_lane_steps(shapes, plan, laned);
    VR_TRY(put_lane_pixels(shapes, plan, laned));
    VR_TRY(put_lane_use(shapes, segments, plan, laned));
    return put_reserved(shapes, laned);
}

static enum vram_status answer_in_lanes(struct vr_shapes *shapes, const struct vr_segment_lives *segments) {
    struct lane_plan plan;
    struct laned laned = {.place = NULL};
    if (shapes->device->lanes == NULL) VR_TRY(vr_lanes_create(shapes->device->view, segments, &shapes->device->lanes));
    make_plan(shapes->device->lanes, (double)shapes->height, &plan);
    vr_json_double(&shapes->query->answer->json, "top_bytes", plan.top);
    VR_TRY(vr_shapes_pick(shapes, VR_SHAPES_SEGMENTS, plan.top));
    enum vram_status status = stack_lanes(shapes, plan.lanes, &laned);
    if (status == VRAM_OK) status = find_edges(shapes, &laned);
    if (status == VRAM_OK) status = put_laned(shapes, segments, &plan, &laned);
    for (size_t i = 0; i < VR_MOST_LANES; i++) vr_stacking_release(&laned.stacking[i]);
    free(laned.place);
    free(laned.edge);
    return status;
}

enum vram_status vr_query_segments(const struct vr_query *query) {
    struct vr_shapes shapes;
    const struct vr_segment_lives *segments = NULL;
    int64_t lanes = 0;
    VR_TRY(vr_parameter_whole(query->parameters, "lanes", 0, 1, 0, &lanes));
    VR_TRY(vr_shapes_init(query, &shapes));
    enum vram_status status = vr_explored_segments(shapes.device, &segments);
    if (status == VRAM_OK)
        status = lanes == 1 ? answer_in_lanes(&shapes, segments) : vr_stacked_answer(&shapes, VR_SHAPES_SEGMENTS, VR_CURVE_RESERVED);
    if (status == VRAM_OK) put_segment_shapes(&shapes, segments);
    if (status == VRAM_OK && lanes == 0) status = put_groups(&shapes, segments);
    vr_shapes_release(&shapes);
    return status;
}

// ---- `timeline`: the allocations of a window, stacked.

enum vram_status vr_query_timeline(const struct vr_query *query) {
    struct vr_shapes shapes;
    enum vr_lifetime_kind kind = VR_LIFETIME_ALLOCATED;
    VR_TRY(vr_select_lifetime_kind(query, &kind));
    VR_TRY(vr_shapes_init(query, &shapes));
    enum vram_status status = vr_stacked_answer(&shapes, (enum vr_shape_kind)kind, (enum vr_curve_kind)kind);
    if (status == VRAM_OK) status = vr_shapes_put_keys(&shapes);
    vr_shapes_release(&shapes);
    return status;
}
