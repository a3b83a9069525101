// Draws the allocations or segments of a window individually, at their addresses or stacked.
#include "explore/query/drawn_shapes.h"

#include "analyze/profile.h"
#include "explore/query/selection.h"

enum vram_status vr_shapes_init(const struct vr_query *query, struct vr_shapes *shapes) {
    *shapes = (struct vr_shapes){.query = query};
    VR_TRY(vr_select_device(query, &shapes->recording, &shapes->device));
    VR_TRY(vr_select_window(query, shapes->device, &shapes->window));
    VR_TRY(vr_parameter_whole(query->parameters, "pixels", 1, VR_MOST_PIXELS, 1024, &shapes->pixels));
    VR_TRY(vr_parameter_whole(query->parameters, "height", 0, VR_MOST_PIXELS, 0, &shapes->height));
    VR_TRY(vr_parameter_whole(query->parameters, "limit", 0, VR_MOST_SHAPES, 2000, &shapes->limit));
    VR_TRY(vr_parameter_whole(query->parameters, "event", -1, UINT32_MAX, -1, &shapes->event));
    const struct vr_window *window = &shapes->window;
    const size_t events = shapes->device->view->history->count;
    const double length = events == 0 ? window->to : window->by_time ? vr_window_position(window, events - 1) + 1 : (double)events;
    shapes->span = (struct vr_axis_span){.from = window->from < 0 ? 0 : window->from,
                                         .to = window->to > length ? length : window->to,
                                         .time_us = window->by_time ? window->time_us : NULL,
                                         .events = events};
    if (shapes->span.to < shapes->span.from) shapes->span.to = shapes->span.from;
    return VRAM_OK;
}

enum vram_status vr_shapes_pick(struct vr_shapes *shapes, enum vr_shape_kind kind, double top) {
    const struct vr_largest *largest = NULL;
    uint32_t *live = NULL;
    size_t live_count = 0;
    shapes->kind = kind;
    VR_TRY(vr_explored_shape_rows(shapes->device, kind, &shapes->lifetimes));
    VR_TRY(vr_explored_largest(shapes->device, kind, &shapes->span, &largest));
    VR_TRY(vr_explored_shapes_live(shapes->device, kind, (int64_t)shapes->window.first - 1, &live, &live_count));
    const size_t begin = vr_first_born(shapes->lifetimes, shapes->window.first), end = vr_first_born(shapes->lifetimes, shapes->window.end);
    shapes->in_window = live_count + (end - begin);
    // Half a pixel of the picture.
    const double pixels = (double)shapes->pixels * (double)shapes->height;
    const double least = pixels == 0 ? 0 : (shapes->window.to - shapes->window.from) * top / pixels / 2;
    const struct vr_largest_choice choice = {.span = &shapes->span,
                                             .listed = live,
                                             .listed_count = live_count,
                                             .begin = begin,
                                             .end = end,
                                             .limit = (size_t)shapes->limit,
                                             .least = least};
    const enum vram_status status = vr_largest_pick(largest, &choice, &shapes->row, &shapes->count);
    free(live);
    return status;
}

void vr_shapes_release(struct vr_shapes *shapes) {
    free(shapes->row);
    shapes->row = NULL;
    shapes->count = 0;
}

enum { LIVED_BEFORE = 1, NEVER_FREED = 2, BORN_EARLIER = 4, ENDS_LATER = 8 };

static uint8_t flags_of(const struct vr_shapes *shapes, size_t i) {
    const uint32_t birth = shapes->lifetimes->birth[shapes->row[i]], death = shapes->lifetimes->death[shapes->row[i]];
    unsigned flags = 0;
    if (birth == VR_BEFORE_TRACE) flags |= LIVED_BEFORE;
    if (death == VR_NEVER) flags |= NEVER_FREED;
    if (birth == VR_BEFORE_TRACE || birth < shapes->window.first) flags |= BORN_EARLIER;
    if (death == VR_NEVER || death >= shapes->window.end) flags |= ENDS_LATER;
    return (uint8_t)flags;
}

// Adds the position of the selected moment, after an event, on the axis.
static void put_moment(const struct vr_shapes *shapes, int64_t event) {
    const int64_t events = (int64_t)shapes->span.events;
    const bool past = event + 1 >= events;
    const double end = events == 0 ? 0 : vr_window_position(&shapes->window, (size_t)events - 1) + 1;
    vr_json_double(&shapes->query->answer->json, "event_position", past ? end : vr_window_position(&shapes->window, (size_t)(event + 1)));
}

// Converts a row of active lifetimes to the row of the allocated ones, so that row numbers in all answers mean the same; leaves other rows
// unchanged.
static uint32_t allocated_row(const struct vr_shapes *shapes, const struct vr_lifetimes *allocated, uint32_t row) {
    if (shapes->kind != VR_SHAPES_ACTIVE) return row;
    const size_t other = vr_other_row(shapes->lifetimes, allocated, row);
    return other == SIZE_MAX ? UINT32_MAX : (uint32_t)other;
}

enum vram_status vr_shapes_put(const struct vr_shapes *shapes) {
    const struct vr_lifetimes *allocated = NULL;
    VR_TRY(vr_explored_lifetimes(shapes->device, VR_LIFETIME_ALLOCATED, &allocated));
    struct vr_answer *answer = shapes->query->answer;
    if (vr_parameter_text(shapes->query->parameters, "event") != NULL) put_moment(shapes, shapes->event);
    vr_json_double(&answer->json, "from", shapes->window.from);
    vr_json_double(&answer->json, "to", shapes->window.to);
    vr_json_u64(&answer->json, "allocations", shapes->in_window);
    const size_t row = vr_answer_column(answer, "row", VR_U32), stack = vr_answer_column(answer, "stack", VR_U32);
    const size_t flags = vr_answer_column(answer, "flags", VR_U8), bytes = vr_answer_column(answer, "bytes", VR_F64);
    const size_t end = vr_answer_column(answer, "end", VR_F64);
    for (size_t i = 0; i < shapes->count; i++) {
        vr_answer_u32(answer, row, allocated_row(shapes, allocated, shapes->row[i]));
        vr_answer_u32(answer, stack, shapes->lifetimes->stack[shapes->row[i]]);
        vr_answer_u8(answer, flags, flags_of(shapes, i));
        vr_answer_f64(answer, bytes, (double)shapes->lifetimes->size_bytes[shapes->row[i]]);
        vr_answer_f64(answer, end, vr_shapes_end(shapes, i));
    }
    return VRAM_OK;
}

void vr_pool_name(bool known, uint64_t first, uint64_t second, struct vr_text *text) {
    if (!known)
        vr_text_puts(text, "pool not recorded");
    else if (first == 0 && second == 0)
        vr_text_puts(text, "default pool");
    else
        vr_text_printf(text, "private pool (%llu, %llu)", (unsigned long long)first, (unsigned long long)second);
}

struct shape_group {
    uint64_t key;
    double area;
    uint32_t number; // in the order of discovery
};

enum { MOST_GROUPS = 512 };

static int by_area(const void *a, const void *b) {
    const struct shape_group *x = a, *y = b;
    if (x->area != y->area) return VR_ORDER(y->area, x->area);
    return VR_ORDER(x->number, y->number);
}

// Groups all shapes; of[i] is the group of shape i.
static enum vram_status gather_shapes(const struct vr_shapes *shapes, const struct vr_naming *naming, struct vr_map *known,
                                      struct shape_group *groups, uint32_t *of, size_t *count) {
    for (size_t i = 0; i < shapes->count; i++) {
        uint64_t key = 0;
        VR_TRY(naming->key(naming->user, shapes->row[i], &key));
        uint32_t found = vr_map_get(known, key);
        if (found == 0) {
            groups[*count] = (struct shape_group){.key = key, .number = (uint32_t)*count};
            found = (uint32_t)++ * count;
            VR_TRY(vr_map_set(known, key, found));
        }
        groups[found - 1].area += vr_axis_span_area(&shapes->span, shapes->lifetimes, shapes->row[i]);
        of[i] = found - 1;
    }
    return VRAM_OK;
}

static enum vram_status put_shape_names(const struct vr_shapes *shapes, const struct vr_naming *naming, const struct shape_group *groups,
                                        size_t count) {
    struct vr_json *json = &shapes->query->answer->json;
    struct vr_text name = {.bytes = NULL};
    vr_json_array(json, "groups");
    for (size_t g = 0; g < count && g < MOST_GROUPS; g++) {
        name.length = 0;
        naming->name(naming->user, groups[g].key, &name);
        vr_json_string(json, NULL, vr_text_string(&name));
    }
    if (count > MOST_GROUPS) vr_json_string(json, NULL, "all others");
    vr_json_array_end(json);
    const enum vram_status status = vr_text_status(&name);
    vr_text_release(&name);
    return status;
}

enum vram_status vr_shapes_put_groups(const struct vr_shapes *shapes, const struct vr_naming *naming) {
    struct shape_group *groups = malloc((shapes->count + 1) * sizeof *groups);
    uint32_t *of = malloc((shapes->count + 1) * sizeof *of), *place = malloc((shapes->count + 1) * sizeof *place);
    struct vr_map known = {.slots = NULL};
    size_t count = 0;
    enum vram_status status = groups == NULL || of == NULL || place == NULL ? VRAM_NO_HOST_MEMORY : VRAM_OK;
    if (status == VRAM_OK) status = gather_shapes(shapes, naming, &known, groups, of, &count);
    if (status == VRAM_OK) {
        qsort(groups, count, sizeof *groups, by_area);
        for (size_t g = 0; g < count; g++) place[groups[g].number] = (uint32_t)(g < MOST_GROUPS ? g : MOST_GROUPS);
        status = put_shape_names(shapes, naming, groups, count);
        const size_t column = vr_answer_column(shapes->query->answer, "group", VR_U32);
        for (size_t i = 0; i < shapes->count; i++) vr_answer_u32(shapes->query->answer, column, place[of[i]]);
    }
    vr_map_release(&known);
    free(groups);
    free(of);
    free(place);
    return status;
}

static enum vram_status shape_key(void *user, size_t row, uint64_t *key) { return vr_grouping_key(user, row, key); }
static void shape_name(void *user, uint64_t key, struct vr_text *text) { vr_grouping_name(user, key, text); }

enum vram_status vr_shapes_put_keys(const struct vr_shapes *shapes) {
    const struct vr_query *query = shapes->query;
    const struct vr_segment_lives *segments = NULL;
    struct vr_grouping grouping;
    size_t by = VR_GROUP_SITE;
    VR_TRY(vr_parameter_word(query->parameters, "by", vr_grouping_words, VR_GROUP_SITE, &by));
    if (by == VR_GROUP_POOL || by == VR_GROUP_STREAM) VR_TRY(vr_explored_segments(shapes->device, &segments));
    struct vr_roles *roles = NULL;
    VR_TRY(vr_select_roles(shapes->device, shapes->lifetimes, by, &roles));
    const struct vr_grouped grouped = {.view = shapes->device->view,
                                       .lifetimes = shapes->lifetimes,
                                       .sites = &shapes->recording->sites,
                                       .segments = segments,
                                       .roles = roles};
    VR_TRY(vr_grouping_init(&grouping, (enum vr_group_by)by, &grouped,
                            by == VR_GROUP_REGEX ? vr_parameter_text(query->parameters, "regex") : NULL, query->error));
    const enum vram_status status = vr_shapes_put_groups(shapes, &(struct vr_naming){&grouping, shape_key, shape_name});
    vr_grouping_release(&grouping);
    return status;
}

// Maximum number of steps of all shapes together in an answer.
enum { MOST_STEPS = 200000 };

// Sets *top to the largest total in the window, including the state before it.
static enum vram_status largest_total(const struct vr_shapes *shapes, enum vr_curve_kind kind, double *top) {
    const struct vr_curve *curve = NULL;
    VR_TRY(vr_explored_curve(shapes->device, kind, &curve));
    const struct vr_window *window = &shapes->window;
    int64_t low, high;
    vr_curve_extremes(curve, window->first, window->end, &low, &high);
    *top = high < 1 ? 1 : (double)high;
    return VRAM_OK;
}

enum vram_status vr_stacked_build(const struct vr_shapes *shapes, const uint32_t *rows, size_t count, struct vr_stacking *stacking) {
    const struct vr_window *window = &shapes->window;
    struct vr_stack_window how = {.first = window->first,
                                  .end = window->end,
                                  .time_us = shapes->span.time_us,
                                  .grain = (window->to - window->from) / (double)shapes->pixels / 2,
                                  .most_steps = MOST_STEPS};
    for (;; how.grain = how.grain * 4 + 1) {
        const enum vram_status status = vr_stacking_build(shapes->lifetimes, rows, count, &how, stacking);
        if (status != VRAM_LIMIT) return status;
    }
}

static void put_stacked_steps(const struct vr_shapes *shapes, const struct vr_stacking *stacking) {
    struct vr_answer *answer = shapes->query->answer;
    const size_t first = vr_answer_column(answer, "first_step", VR_U32);
    const size_t position = vr_answer_column(answer, "position", VR_F64), base = vr_answer_column(answer, "base", VR_F64);
    for (size_t i = 0; i < stacking->count; i++) {
        vr_answer_u32(answer, first, (uint32_t)stacking->first_step[i]);
        for (size_t s = stacking->first_step[i]; s < stacking->first_step[i + 1]; s++) {
            const bool begins = s == stacking->first_step[i];
            vr_answer_f64(answer, position,
                          begins ? vr_shapes_begin(shapes, i) : vr_window_position(&shapes->window, stacking->step[s].event));
            vr_answer_f64(answer, base, (double)stacking->step[s].base_bytes);
        }
    }
    vr_answer_u32(answer, first, (uint32_t)stacking->first_step[stacking->count]);
}

static int stacked_by_event(const void *a, const void *b) {
    const struct vr_stack_step *x = a, *y = b;
    return (x->event > y->event) - (x->event < y->event);
}

// Computes the total of all shapes, as changes by event; base_bytes is the total after the change.
static enum vram_status totals_of(const struct vr_shapes *shapes, const struct vr_stacking *stacking, struct vr_stack_step **totals,
                                  size_t *count) {
    const struct vr_lifetimes *lifetimes = shapes->lifetimes;
    struct vr_stack_step *list = malloc((2 * stacking->count + 1) * sizeof *list);
    if (list == NULL) return VRAM_NO_HOST_MEMORY;
    size_t filled = 0;
    for (size_t i = 0; i < stacking->count; i++) {
        const uint32_t r = stacking->row[i];
        list[filled++] = (struct vr_stack_step){stacking->step[stacking->first_step[i]].event, lifetimes->size_bytes[r]};
        if (lifetimes->death[r] < shapes->window.end)
            list[filled++] = (struct vr_stack_step){lifetimes->death[r], 0 - lifetimes->size_bytes[r]};
    }
    qsort(list, filled, sizeof *list, stacked_by_event);
    for (size_t i = 1; i < filled; i++) list[i].base_bytes += list[i - 1].base_bytes;
    *totals = list;
    *count = filled;
    return VRAM_OK;
}

// Adds the largest value of each total in a pixel's events, including the value before them.
static void put_totals(const struct vr_curve *const *curves, const size_t *columns, struct vr_answer *answer, size_t first, size_t end) {
    for (size_t k = 0; k < VR_CURVE_COUNT; k++) {
        int64_t low, high;
        vr_curve_extremes(curves[k], first, end, &low, &high);
        vr_answer_f64(answer, columns[k], (double)high);
    }
}

// Returns the event at a pixel's end. If a pixel has many events, moves the end slightly, to where totals are stored.
static size_t pixel_end(const struct vr_shapes *shapes, int64_t pixel, size_t first) {
    const struct vr_window *window = &shapes->window;
    const double edge = window->from + (window->to - window->from) * (double)(pixel + 1) / (double)shapes->pixels;
    const size_t end = vr_window_event(window, shapes->device, edge);
    if (end < first) return first;
    if (pixel + 1 == shapes->pixels || end - first < 4 * VR_CURVE_BUCKET) return end;
    return end / VR_CURVE_BUCKET * VR_CURVE_BUCKET;
}

// Adds for each pixel the shapes' total at its end, and the largest totals in it.
static enum vram_status put_pixels(const struct vr_shapes *shapes, const struct vr_stacking *stacking) {
    static const char *const names[VR_CURVE_COUNT] = {"allocated", "active", "reserved"};
    struct vr_answer *answer = shapes->query->answer;
    const struct vr_window *window = &shapes->window;
    const struct vr_curve *curves[VR_CURVE_COUNT] = {NULL};
    size_t columns[VR_CURVE_COUNT], count = 0, next = 0;
    struct vr_stack_step *totals = NULL;
    for (size_t k = 0; k < VR_CURVE_COUNT; k++) VR_TRY(vr_explored_curve(shapes->device, (enum vr_curve_kind)k, &curves[k]));
    VR_TRY(totals_of(shapes, stacking, &totals, &count));
    const size_t drawn = vr_answer_column(answer, "drawn", VR_F64);
    for (size_t k = 0; k < VR_CURVE_COUNT; k++) columns[k] = vr_answer_column(answer, names[k], VR_F64);
    size_t first = window->first;
    for (int64_t p = 0; p < shapes->pixels; p++) {
        const size_t end = pixel_end(shapes, p, first), reached = end > window->first ? end : window->first + 1;
        while (next < count && totals[next].event < reached) next++;
        vr_answer_f64(answer, drawn, next == 0 ? 0 : (double)totals[next - 1].base_bytes);
        put_totals(curves, columns, answer, first, end);
        first = end;
    }
    free(totals);
    return VRAM_OK;
}

// Adds, for each shape, the position at which the program freed it; streams may have used it longer.
static enum vram_status put_requested(const struct vr_shapes *shapes) {
    struct vr_answer *answer = shapes->query->answer;
    const struct vr_lifetimes *allocated = NULL;
    VR_TRY(vr_explored_lifetimes(shapes->device, VR_LIFETIME_ALLOCATED, &allocated));
    const size_t requested = vr_answer_column(answer, "requested", VR_F64);
    for (size_t i = 0; i < shapes->count; i++) {
        const size_t row = vr_other_row(shapes->lifetimes, allocated, shapes->row[i]);
        vr_answer_f64(answer, requested, row == SIZE_MAX ? vr_shapes_begin(shapes, i) : vr_axis_span_death(&shapes->span, allocated, row));
    }
    return VRAM_OK;
}

static enum vram_status put_all(const struct vr_shapes *shapes, const struct vr_stacking *stacking) {
    VR_TRY(vr_shapes_put(shapes));
    put_stacked_steps(shapes, stacking);
    if (shapes->kind == VR_SHAPES_ACTIVE) VR_TRY(put_requested(shapes));
    return put_pixels(shapes, stacking);
}

enum vram_status vr_stacked_answer(struct vr_shapes *shapes, enum vr_shape_kind shape_kind, enum vr_curve_kind kind) {
    double top = 1;
    struct vr_stacking stacking = {0};
    VR_TRY(largest_total(shapes, kind, &top));
    vr_json_double(&shapes->query->answer->json, "top_bytes", top);
    VR_TRY(vr_shapes_pick(shapes, shape_kind, top));
    VR_TRY(vr_stacked_build(shapes, shapes->row, shapes->count, &stacking));
    const enum vram_status status = put_all(shapes, &stacking);
    vr_stacking_release(&stacking);
    return status;
}
