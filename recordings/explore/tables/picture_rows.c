// Selects the rows of a picture, the largest allocations of a window, and stacks them.
#include "explore/tables/picture_rows.h"

#include <math.h>

// Rows per run of the lowest level, and runs per run of the next higher one.
enum { RUN = 16, FAN = 8, MOST_LEVELS = 16, IS_ROW = -1 };

struct bound {
    float area, size; // largest in the run, rounded up
};

struct vr_largest {
    const struct vr_lifetimes *lifetimes;
    struct bound *level[MOST_LEVELS];
    size_t length[MOST_LEVELS];
    int levels;
};

// A row with its exact weight, or a run of rows with an upper bound of their weights.
struct row_candidate {
    double weight;
    uint32_t index;
    int32_t level;
};

struct picker {
    const struct vr_largest *largest;
    const struct vr_axis_span *span;
    size_t begin, end;
    double least;
    struct row_candidate *heap;
    size_t count, heap_capacity;
};

static double event_position(const struct vr_axis_span *span, size_t event) {
    return span->time_us == NULL ? (double)event : (double)(span->time_us[event] - span->time_us[0]);
}

double vr_axis_span_birth(const struct vr_axis_span *span, const struct vr_lifetimes *lifetimes, size_t row) {
    const uint32_t birth = lifetimes->birth[row];
    const double at = birth == VR_BEFORE_TRACE ? span->from : event_position(span, birth);
    return at < span->from ? span->from : at;
}

double vr_axis_span_death(const struct vr_axis_span *span, const struct vr_lifetimes *lifetimes, size_t row) {
    const uint32_t death = lifetimes->death[row];
    const double at = death == VR_NEVER ? span->to : event_position(span, death);
    return at > span->to ? span->to : at;
}

double vr_axis_span_area(const struct vr_axis_span *span, const struct vr_lifetimes *lifetimes, size_t row) {
    const double length = vr_axis_span_death(span, lifetimes, row) - vr_axis_span_birth(span, lifetimes, row);
    return (double)lifetimes->size_bytes[row] * ((length < 0 ? 0 : length) + 1);
}

// Rounds up, so that a bound stored as a float (to halve the tree) is not below what it bounds.
static float rounded_up(double value) { return nextafterf((float)value, INFINITY); }

static void widen_bound(struct bound *bound, float area, float size) {
    if (area > bound->area) bound->area = area;
    if (size > bound->size) bound->size = size;
}

static void fill_lowest(struct vr_largest *largest, const struct vr_axis_span *whole) {
    for (size_t row = 0; row < largest->lifetimes->count; row++) {
        widen_bound(&largest->level[0][row / RUN], rounded_up(vr_axis_span_area(whole, largest->lifetimes, row)),
                    rounded_up((double)largest->lifetimes->size_bytes[row]));
    }
}

static enum vram_status add_level(struct vr_largest *largest, size_t length) {
    struct bound *level = calloc(length + 1, sizeof *level);
    if (level == NULL) return VRAM_NO_HOST_MEMORY;
    const int below = largest->levels - 1;
    for (size_t i = 0; below >= 0 && i < largest->length[below]; i++)
        widen_bound(&level[i / FAN], largest->level[below][i].area, largest->level[below][i].size);
    largest->level[largest->levels] = level;
    largest->length[largest->levels++] = length;
    return VRAM_OK;
}

enum vram_status vr_largest_create(const struct vr_lifetimes *lifetimes, const struct vr_axis_span *axis, struct vr_largest **largest) {
    struct vr_largest *made = calloc(1, sizeof *made);
    if (made == NULL) return VRAM_NO_HOST_MEMORY;
    made->lifetimes = lifetimes;
    struct vr_axis_span whole = *axis;
    whole.from = 0;
    whole.to = axis->events == 0 ? 1 : event_position(axis, axis->events - 1) + 1;
    enum vram_status status = add_level(made, (lifetimes->count + RUN - 1) / RUN);
    if (status == VRAM_OK) fill_lowest(made, &whole);
    while (status == VRAM_OK && made->length[made->levels - 1] > 1)
        status = add_level(made, (made->length[made->levels - 1] + FAN - 1) / FAN);
    if (status == VRAM_OK) *largest = made;
    if (status != VRAM_OK) vr_largest_destroy(made);
    return status;
}

void vr_largest_destroy(struct vr_largest *largest) {
    if (largest == NULL) return;
    for (int level = 0; level < largest->levels; level++) free(largest->level[level]);
    free(largest);
}

// Orders rows before runs of the same weight, so that rows that tie with a bound end the search.
static bool candidate_before(const struct row_candidate *a, const struct row_candidate *b) {
    return a->weight != b->weight ? a->weight > b->weight : a->level < b->level;
}

static enum vram_status push_candidate(struct picker *picker, struct row_candidate candidate) {
    if (candidate.weight < picker->least) return VRAM_OK;
    VR_TRY(VR_GROW(picker, heap, picker->count + 1));
    size_t i = picker->count++;
    for (; i > 0 && candidate_before(&candidate, &picker->heap[(i - 1) / 2]); i = (i - 1) / 2) picker->heap[i] = picker->heap[(i - 1) / 2];
    picker->heap[i] = candidate;
    return VRAM_OK;
}

static struct row_candidate pop_candidate(struct picker *picker) {
    const struct row_candidate top = picker->heap[0], last = picker->heap[--picker->count];
    size_t i = 0;
    for (;;) {
        size_t child = 2 * i + 1;
        if (child >= picker->count) break;
        if (child + 1 < picker->count && candidate_before(&picker->heap[child + 1], &picker->heap[child])) child++;
        if (!candidate_before(&picker->heap[child], &last)) break;
        picker->heap[i] = picker->heap[child];
        i = child;
    }
    picker->heap[i] = last;
    return top;
}

static enum vram_status push_row(struct picker *picker, size_t row) {
    const double area = vr_axis_span_area(picker->span, picker->largest->lifetimes, row);
    return push_candidate(picker, (struct row_candidate){area, (uint32_t)row, IS_ROW});
}

static enum vram_status push_run(struct picker *picker, int level, size_t index) {
    const struct bound *bound = &picker->largest->level[level][index];
    const double clipped = (double)bound->size * (picker->span->to - picker->span->from + 1);
    return push_candidate(picker,
                          (struct row_candidate){clipped < (double)bound->area ? clipped : (double)bound->area, (uint32_t)index, level});
}

// Pushes the children of a run that overlap rows [begin, end).
static enum vram_status open_run(struct picker *picker, const struct row_candidate *run) {
    size_t rows = RUN;
    for (int level = 1; level < run->level; level++) rows *= FAN;
    const size_t fan = run->level == 0 ? RUN : FAN;
    if (run->level == 0) rows = 1;
    for (size_t child = run->index * fan; child < (run->index + 1) * fan; child++) {
        if ((child + 1) * rows <= picker->begin || child * rows >= picker->end) continue;
        VR_TRY(run->level == 0 ? push_row(picker, child) : push_run(picker, run->level - 1, child));
    }
    return VRAM_OK;
}

static int ascending(const void *a, const void *b) {
    const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return VR_ORDER(x, y);
}

static enum vram_status search_largest(struct picker *picker, size_t limit, uint32_t *rows, size_t *count) {
    while (picker->count != 0 && *count < limit) {
        const struct row_candidate top = pop_candidate(picker);
        if (top.level == IS_ROW)
            rows[(*count)++] = top.index;
        else
            VR_TRY(open_run(picker, &top));
    }
    return VRAM_OK;
}

enum vram_status vr_largest_pick(const struct vr_largest *largest, const struct vr_largest_choice *choice, uint32_t **rows, size_t *count) {
    assert(choice->begin <= choice->end && choice->end <= largest->lifetimes->count);
    struct picker picker = {.largest = largest, .span = choice->span, .begin = choice->begin, .end = choice->end, .least = choice->least};
    const size_t rows_in_all = choice->listed_count + (choice->end - choice->begin);
    const size_t most = rows_in_all < choice->limit ? rows_in_all : choice->limit;
    uint32_t *found = malloc((most + 1) * sizeof *found);
    size_t filled = 0;
    enum vram_status status = found == NULL ? VRAM_NO_HOST_MEMORY : VRAM_OK;
    for (size_t i = 0; i < choice->listed_count && status == VRAM_OK; i++) status = push_row(&picker, choice->listed[i]);
    if (status == VRAM_OK && choice->begin < choice->end) status = push_run(&picker, largest->levels - 1, 0);
    if (status == VRAM_OK) status = search_largest(&picker, most, found, &filled);
    free(picker.heap);
    if (status != VRAM_OK) {
        free(found);
        return status;
    }
    qsort(found, filled, sizeof *found, ascending);
    *rows = found;
    *count = filled;
    return VRAM_OK;
}

bool vr_largest_check(const struct vr_largest *largest) {
    for (size_t row = 0; row < largest->lifetimes->count; row++) {
        if ((double)largest->level[0][row / RUN].size < (double)largest->lifetimes->size_bytes[row]) return false;
    }
    for (int level = 1; level < largest->levels; level++) {
        for (size_t i = 0; i < largest->length[level - 1]; i++) {
            const struct bound *run = &largest->level[level - 1][i], *above = &largest->level[level][i / FAN];
            if (run->area > above->area || run->size > above->size) return false;
        }
    }
    return largest->length[largest->levels - 1] <= 1;
}

// A change of the picture: the beginning or end of a picked allocation.
struct stack_change {
    uint32_t event;
    uint32_t shape;
    bool begins;
    bool before; // began before the window's first event
};

struct noted_step {
    struct vr_stack_step step;
    uint32_t shape;
};

// The picture at the current moment of the walk.
struct stacker {
    const struct vr_lifetimes *lifetimes;
    struct vr_stacking *out;
    const struct vr_stack_window *window;
    uint32_t *standing; // live shapes from the bottom up
    size_t standing_count;
    uint64_t *base; // by shape
    size_t *last;   // by shape: 1 + index of its latest noted step, 0: no step yet
    struct noted_step *noted;
    size_t noted_count, noted_capacity;
};

static int by_time(const void *a, const void *b) {
    const struct stack_change *x = a, *y = b;
    if (x->before != y->before) return x->before ? -1 : 1;
    if (x->event != y->event) return x->event < y->event ? -1 : 1;
    if (x->begins != y->begins) return x->begins ? 1 : -1; // what is replaced ends first
    return (x->shape > y->shape) - (x->shape < y->shape);
}

static enum vram_status list_changes(const struct stacker *stacker, struct stack_change **changes, size_t *count) {
    const struct vr_stacking *out = stacker->out;
    struct stack_change *list = malloc((2 * out->count + 1) * sizeof *list);
    if (list == NULL) return VRAM_NO_HOST_MEMORY;
    size_t filled = 0;
    for (size_t i = 0; i < out->count; i++) {
        const uint32_t birth = stacker->lifetimes->birth[out->row[i]], death = stacker->lifetimes->death[out->row[i]];
        const bool before = birth == VR_BEFORE_TRACE || birth < stacker->window->first;
        list[filled++] = (struct stack_change){before ? (uint32_t)stacker->window->first : birth, (uint32_t)i, true, before};
        if (death != VR_NEVER && death < stacker->window->end) list[filled++] = (struct stack_change){death, (uint32_t)i, false, false};
    }
    qsort(list, filled, sizeof *list, by_time);
    *changes = list;
    *count = filled;
    return VRAM_OK;
}

// Returns the distance of two events on the axis.
static double event_distance(const struct vr_stack_window *window, uint32_t from, uint32_t to) {
    return window->time_us == NULL ? (double)(to - from) : (double)(window->time_us[to] - window->time_us[from]);
}

static enum vram_status note_change(struct stacker *stacker, uint32_t shape, uint32_t event) {
    const size_t last = stacker->last[shape];
    if (last != 0 && event_distance(stacker->window, stacker->noted[last - 1].step.event, event) < stacker->window->grain) {
        stacker->noted[last - 1].step.base_bytes = stacker->base[shape];
        return VRAM_OK;
    }
    if (stacker->noted_count == stacker->window->most_steps) return VRAM_LIMIT;
    VR_TRY(VR_GROW(stacker, noted, stacker->noted_count + 1));
    stacker->noted[stacker->noted_count++] = (struct noted_step){{event, stacker->base[shape]}, shape};
    stacker->last[shape] = stacker->noted_count;
    return VRAM_OK;
}

static uint64_t shape_size(const struct stacker *stacker, uint32_t shape) {
    return stacker->lifetimes->size_bytes[stacker->out->row[shape]];
}

static enum vram_status begin_shape(struct stacker *stacker, const struct stack_change *change) {
    const size_t below = stacker->standing_count;
    const uint32_t top = below == 0 ? 0 : stacker->standing[below - 1];
    stacker->base[change->shape] = below == 0 ? 0 : stacker->base[top] + shape_size(stacker, top);
    stacker->standing[stacker->standing_count++] = change->shape;
    return note_change(stacker, change->shape, change->event);
}

static enum vram_status end_shape(struct stacker *stacker, const struct stack_change *change) {
    size_t place = stacker->standing_count;
    while (place > 0 && stacker->standing[place - 1] != change->shape) place--;
    assert(place > 0);
    const uint64_t size = shape_size(stacker, change->shape);
    for (size_t i = place; i < stacker->standing_count; i++) {
        const uint32_t shape = stacker->standing[i];
        stacker->base[shape] -= size;
        stacker->standing[i - 1] = shape;
        VR_TRY(note_change(stacker, shape, change->event));
    }
    stacker->standing_count--;
    return VRAM_OK;
}

// Sorts the noted steps by shape.
static enum vram_status sort_steps(struct stacker *stacker) {
    struct vr_stacking *out = stacker->out;
    out->first_step = calloc(out->count + 2, sizeof *out->first_step);
    out->step = malloc((stacker->noted_count + 1) * sizeof *out->step);
    if (out->first_step == NULL || out->step == NULL) return VRAM_NO_HOST_MEMORY;
    size_t *next =
        out->first_step + 1; // first the counts, then where the next step of each shape goes, finally where the next shape begins
    for (size_t i = 0; i < stacker->noted_count; i++) next[stacker->noted[i].shape + 1]++;
    for (size_t i = 1; i <= out->count; i++) next[i] += next[i - 1];
    for (size_t i = 0; i < stacker->noted_count; i++) out->step[next[stacker->noted[i].shape]++] = stacker->noted[i].step;
    return VRAM_OK;
}

static enum vram_status run_stacking(struct stacker *stacker) {
    const size_t room = stacker->out->count + 1;
    stacker->standing = malloc(room * sizeof *stacker->standing);
    stacker->base = calloc(room, sizeof *stacker->base);
    stacker->last = calloc(room, sizeof *stacker->last);
    if (stacker->standing == NULL || stacker->base == NULL || stacker->last == NULL) return VRAM_NO_HOST_MEMORY;
    struct stack_change *changes = NULL;
    size_t count = 0;
    VR_TRY(list_changes(stacker, &changes, &count));
    enum vram_status status = VRAM_OK;
    for (size_t i = 0; i < count && status == VRAM_OK; i++) status = (changes[i].begins ? begin_shape : end_shape)(stacker, &changes[i]);
    free(changes);
    return status == VRAM_OK ? sort_steps(stacker) : status;
}

static enum vram_status copy_stacked_rows(struct vr_stacking *stacking, const uint32_t *rows, size_t count) {
    stacking->row = malloc((count + 1) * sizeof *stacking->row);
    if (stacking->row == NULL) return VRAM_NO_HOST_MEMORY;
    if (count != 0) memcpy(stacking->row, rows, count * sizeof *rows);
    stacking->count = count;
    return VRAM_OK;
}

enum vram_status vr_stacking_build(const struct vr_lifetimes *lifetimes, const uint32_t *rows, size_t count,
                                   const struct vr_stack_window *window, struct vr_stacking *stacking) {
    assert(window->first <= window->end && window->most_steps >= 2 * count);
    struct vr_stacking made = {0};
    struct stacker stacker = {.lifetimes = lifetimes, .out = &made, .window = window};
    enum vram_status status = copy_stacked_rows(&made, rows, count);
    if (status == VRAM_OK) status = run_stacking(&stacker);
    free(stacker.standing);
    free(stacker.base);
    free(stacker.last);
    free(stacker.noted);
    if (status == VRAM_OK) *stacking = made;
    if (status != VRAM_OK) vr_stacking_release(&made);
    return status;
}

void vr_stacking_release(struct vr_stacking *stacking) {
    free(stacking->row);
    free(stacking->first_step);
    free(stacking->step);
    memset(stacking, 0, sizeof *stacking);
}

bool vr_stacking_check(const struct vr_stacking *stacking) {
    if (stacking->first_step[0] != 0) return false;
    for (size_t i = 0; i < stacking->count; i++) {
        if (i != 0 && stacking->row[i] <= stacking->row[i - 1]) return false;
        if (stacking->first_step[i + 1] <= stacking->first_step[i]) return false; // each shape has at least the step where it begins
        for (size_t s = stacking->first_step[i] + 1; s < stacking->first_step[i + 1]; s++) {
            // Later steps only slide it down.
            if (stacking->step[s].event < stacking->step[s - 1].event || stacking->step[s].base_bytes > stacking->step[s - 1].base_bytes)
                return false;
        }
    }
    return true;
}
