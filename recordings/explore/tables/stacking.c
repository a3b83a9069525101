#include "explore/tables/stacking.h"

// A change of the picture: a picked allocation begins or ends.
struct stack_change {
    uint32_t event;
    uint32_t shape;
    bool begins;
    bool before; // it was there before the window's first event
};

struct noted_step {
    struct vr_stack_step step;
    uint32_t shape;
};

// The picture while time goes on.
struct stacker {
    const struct vr_lifetimes *lifetimes;
    struct vr_stacking *out;
    const struct vr_stack_window *window;
    uint32_t *standing; // shapes alive now, from the bottom
    size_t standing_count;
    uint64_t *base; // of each shape
    size_t *last;   // 1 + its last step among the noted ones, 0 none
    struct noted_step *noted;
    size_t noted_count, noted_capacity;
};

static int by_time(const void *a, const void *b) {
    const struct stack_change *x = a, *y = b;
    if (x->before != y->before) return x->before ? -1 : 1;
    if (x->event != y->event) return x->event < y->event ? -1 : 1;
    if (x->begins != y->begins) return x->begins ? 1 : -1; // what is replaced goes first
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

// How far on the axis one event lies after another.
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

// The noted steps, by shape.
static enum vram_status sort_steps(struct stacker *stacker) {
    struct vr_stacking *out = stacker->out;
    out->first_step = calloc(out->count + 2, sizeof *out->first_step);
    out->step = malloc((stacker->noted_count + 1) * sizeof *out->step);
    if (out->first_step == NULL || out->step == NULL) return VRAM_NO_HOST_MEMORY;
    size_t *next = out->first_step + 1; // counts, then where the next step of a shape goes, then where the next shape begins
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
        if (stacking->first_step[i + 1] <= stacking->first_step[i]) return false; // each has a step: where it begins
        for (size_t s = stacking->first_step[i] + 1; s < stacking->first_step[i + 1]; s++) {
            // Later it only slides down.
            if (stacking->step[s].event < stacking->step[s - 1].event || stacking->step[s].base_bytes > stacking->step[s - 1].base_bytes)
                return false;
        }
    }
    return true;
}
