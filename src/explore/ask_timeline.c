// `timeline`: the allocations of a window, stacked.
#include "explore/explorer.h"
#include "explore/stacking.h"

enum { MOST_SHAPES = 20000, MOST_PIXELS = 16384 };

struct timeline {
    const struct vr_ask *ask;
    struct vr_seen_device *device;
    const struct vr_lifetimes *lifetimes;
    struct vr_window window;
    int64_t pixels, limit;
};

// What is alive somewhere in the window: what was live before it, and what is born in it; ascending.
static enum vram_status rows_in(const struct timeline *timeline, enum vr_notion notion, uint32_t **rows, size_t *count) {
    const struct vr_window *window = &timeline->window;
    uint32_t *live = NULL;
    size_t live_count = 0;
    VR_TRY(vr_seen_live(timeline->device, notion, (int64_t)window->first - 1, &live, &live_count));
    const size_t begin = vr_first_born(timeline->lifetimes, window->first), end = vr_first_born(timeline->lifetimes, window->end);
    uint32_t *grown = realloc(live, (live_count + (end - begin) + 1) * sizeof *grown);
    if (grown == NULL) {
        free(live);
        return VRAM_NO_HOST_MEMORY;
    }
    for (size_t row = begin; row < end; row++) grown[live_count++] = (uint32_t)row;
    *rows = grown;
    *count = live_count;
    return VRAM_OK;
}

static double birth_position(const struct timeline *timeline, uint32_t row) {
    const uint32_t birth = timeline->lifetimes->birth[row];
    if (birth == VR_BEFORE_TRACE || birth < timeline->window.first) return timeline->window.from;
    return vr_window_position(&timeline->window, birth);
}

static double death_position(const struct timeline *timeline, uint32_t row) {
    const uint32_t death = timeline->lifetimes->death[row];
    if (death == VR_NEVER || death >= timeline->window.end) return timeline->window.to;
    return vr_window_position(&timeline->window, death);
}

enum { LIVED_BEFORE = 1, NEVER_FREED = 2 };

static void put_shapes(const struct timeline *timeline, const struct vr_stacking *stacking) {
    struct vr_answer *answer = timeline->ask->answer;
    const struct vr_lifetimes *lifetimes = timeline->lifetimes;
    const size_t row = vr_answer_column(answer, "row", VR_U32), stack = vr_answer_column(answer, "stack", VR_U32);
    const size_t flags = vr_answer_column(answer, "flags", VR_U8), bytes = vr_answer_column(answer, "bytes", VR_F64);
    const size_t end = vr_answer_column(answer, "end", VR_F64), first = vr_answer_column(answer, "first_step", VR_U32);
    const size_t position = vr_answer_column(answer, "position", VR_F64), base = vr_answer_column(answer, "base", VR_F64);
    for (size_t i = 0; i < stacking->count; i++) {
        const uint32_t r = stacking->row[i];
        vr_answer_u32(answer, row, r);
        vr_answer_u32(answer, stack, lifetimes->stack[r]);
        vr_answer_u8(
            answer, flags,
            (uint8_t)((lifetimes->birth[r] == VR_BEFORE_TRACE ? LIVED_BEFORE : 0) | (lifetimes->death[r] == VR_NEVER ? NEVER_FREED : 0)));
        vr_answer_f64(answer, bytes, (double)lifetimes->size_bytes[r]);
        vr_answer_f64(answer, end, death_position(timeline, r));
        vr_answer_u32(answer, first, (uint32_t)stacking->first_step[i]);
        for (size_t s = stacking->first_step[i]; s < stacking->first_step[i + 1]; s++) {
            const bool begins = s == stacking->first_step[i];
            vr_answer_f64(answer, position,
                          begins ? birth_position(timeline, r) : vr_window_position(&timeline->window, stacking->step[s].event));
            vr_answer_f64(answer, base, (double)stacking->step[s].base_bytes);
        }
    }
    vr_answer_u32(answer, first, (uint32_t)stacking->first_step[stacking->count]);
}

static int by_event(const void *a, const void *b) {
    const struct vr_stack_step *x = a, *y = b;
    return (x->event > y->event) - (x->event < y->event);
}

// What all shapes together have, as changes by event; base_bytes is the total after the change.
static enum vram_status totals_of(const struct timeline *timeline, const struct vr_stacking *stacking, struct vr_stack_step **totals,
                                  size_t *count) {
    const struct vr_lifetimes *lifetimes = timeline->lifetimes;
    struct vr_stack_step *list = malloc((2 * stacking->count + 1) * sizeof *list);
    if (list == NULL) return VRAM_NO_HOST_MEMORY;
    size_t filled = 0;
    for (size_t i = 0; i < stacking->count; i++) {
        const uint32_t r = stacking->row[i];
        list[filled++] = (struct vr_stack_step){stacking->step[stacking->first_step[i]].event, lifetimes->size_bytes[r]};
        if (lifetimes->death[r] < timeline->window.end)
            list[filled++] = (struct vr_stack_step){lifetimes->death[r], 0 - lifetimes->size_bytes[r]};
    }
    qsort(list, filled, sizeof *list, by_event);
    for (size_t i = 1; i < filled; i++) list[i].base_bytes += list[i - 1].base_bytes;
    *totals = list;
    *count = filled;
    return VRAM_OK;
}

// The band of all others, at the end of each pixel: from what the shapes have to what is live.
static enum vram_status put_rest(const struct timeline *timeline, enum vr_notion notion, const struct vr_stacking *stacking) {
    struct vr_answer *answer = timeline->ask->answer;
    const struct vr_window *window = &timeline->window;
    const struct vr_curve *curve = NULL;
    struct vr_stack_step *totals = NULL;
    size_t count = 0, next = 0;
    VR_TRY(vr_seen_curve(timeline->device, (enum vr_curve_kind)notion, &curve));
    VR_TRY(totals_of(timeline, stacking, &totals, &count));
    const size_t low = vr_answer_column(answer, "rest_low", VR_F64), high = vr_answer_column(answer, "rest_high", VR_F64);
    for (int64_t p = 0; p < timeline->pixels; p++) {
        const double edge = window->from + (window->to - window->from) * (double)(p + 1) / (double)timeline->pixels;
        const size_t end = vr_window_event(window, timeline->device, edge);
        const size_t reached = end > window->first ? end : window->first + 1;
        while (next < count && totals[next].event < reached) next++;
        const double drawn = next == 0 ? 0 : (double)totals[next - 1].base_bytes;
        const double all = (double)vr_curve_at(curve, (int64_t)end - 1);
        vr_answer_f64(answer, low, drawn);
        vr_answer_f64(answer, high, all > drawn ? all : drawn);
    }
    free(totals);
    return VRAM_OK;
}

static enum vram_status answer(struct timeline *timeline, enum vr_notion notion) {
    uint32_t *rows = NULL;
    size_t count = 0;
    struct vr_stacking stacking = {0};
    VR_TRY(rows_in(timeline, notion, &rows, &count));
    const size_t grain = (timeline->window.end - timeline->window.first) / (size_t)(timeline->pixels * 2);
    enum vram_status status = vr_stacking_build(timeline->lifetimes, rows, count, timeline->window.first, timeline->window.end,
                                                (size_t)timeline->limit, grain, &stacking);
    free(rows);
    if (status != VRAM_OK) return status;
    vr_json_double(&timeline->ask->answer->json, "from", timeline->window.from);
    vr_json_double(&timeline->ask->answer->json, "to", timeline->window.to);
    vr_json_u64(&timeline->ask->answer->json, "allocations", count);
    put_shapes(timeline, &stacking);
    status = put_rest(timeline, notion, &stacking);
    vr_stacking_release(&stacking);
    return status;
}

enum vram_status vr_ask_timeline(const struct vr_ask *ask) {
    struct timeline timeline = {.ask = ask};
    struct vr_seen_recording *recording = NULL;
    enum vr_notion notion = VR_ALLOCATED;
    VR_TRY(vr_ask_device(ask, &recording, &timeline.device));
    VR_TRY(vr_ask_window(ask, timeline.device, &timeline.window));
    VR_TRY(vr_ask_notion(ask, &notion));
    VR_TRY(vr_question_whole(ask->question, "pixels", 1, MOST_PIXELS, 1024, &timeline.pixels));
    VR_TRY(vr_question_whole(ask->question, "limit", 0, MOST_SHAPES, 2000, &timeline.limit));
    VR_TRY(vr_seen_lifetimes(timeline.device, notion, &timeline.lifetimes));
    return answer(&timeline, notion);
}
