#include "explore/tables/largest.h"

#include <math.h>

// Rows per run of the lowest level, runs per run of the next one.
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

// A row, whose weight is exact, or a run of rows, none of which weighs more.
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

// Bounds are floats to halve the tree; rounded up, none is below what it bounds.
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

// Rows before runs of the same weight, so that equal ones end the search.
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

// The children of a run that hold rows of [begin, end).
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
