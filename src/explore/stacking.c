#include "explore/stacking.h"

struct pick {
    double weight;
    uint32_t row;
};

// A change of the picture: a picked allocation begins or ends.
struct change {
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
    size_t first, end, grain;
    uint32_t *standing; // shapes alive now, from the bottom
    size_t standing_count;
    uint64_t *base; // of each shape
    size_t *last;   // 1 + its last step among the noted ones, 0 none
    struct noted_step *noted;
    size_t noted_count, noted_capacity;
};

static double weight_of(const struct vr_lifetimes *lifetimes, uint32_t row, size_t first, size_t end) {
    const uint32_t birth = lifetimes->birth[row], death = lifetimes->death[row];
    const double from = birth == VR_BEFORE_TRACE || birth < first ? (double)first : (double)birth;
    const double to = death == VR_NEVER || death > end ? (double)end : (double)death;
    return (double)lifetimes->size_bytes[row] * (to - from + 1);
}

static void sink(struct pick *heap, size_t count, size_t i) {
    for (;;) {
        size_t least = i;
        for (size_t child = 2 * i + 1; child <= 2 * i + 2 && child < count; child++) {
            if (heap[child].weight < heap[least].weight) least = child;
        }
        if (least == i) return;
        const struct pick moved = heap[i];
        heap[i] = heap[least];
        heap[least] = moved;
        i = least;
    }
}

static int by_row(const void *a, const void *b) {
    const uint32_t x = ((const struct pick *)a)->row, y = ((const struct pick *)b)->row;
    return (x > y) - (x < y);
}

// The heaviest rows, in a heap whose top is the lightest of them; ascending at the end.
static enum vram_status pick(struct stacker *stacker, const uint32_t *rows, size_t count, size_t limit) {
    const size_t most = count < limit ? count : limit;
    struct pick *heap = malloc((most + 1) * sizeof *heap);
    stacker->out->row = malloc((most + 1) * sizeof *stacker->out->row);
    if (heap == NULL || stacker->out->row == NULL) {
        free(heap);
        return VRAM_NO_HOST_MEMORY;
    }
    for (size_t i = 0; i < count; i++) {
        const struct pick item = {weight_of(stacker->lifetimes, rows[i], stacker->first, stacker->end), rows[i]};
        if (i < most) heap[i] = item;
        if (i + 1 == most) {
            for (size_t j = most / 2 + 1; j-- > 0;) sink(heap, most, j);
        }
        if (i < most || most == 0 || item.weight <= heap[0].weight) continue;
        heap[0] = item;
        sink(heap, most, 0);
    }
    qsort(heap, most, sizeof *heap, by_row);
    for (size_t i = 0; i < most; i++) stacker->out->row[i] = heap[i].row;
    stacker->out->count = most;
    free(heap);
    return VRAM_OK;
}

static int by_time(const void *a, const void *b) {
    const struct change *x = a, *y = b;
    if (x->before != y->before) return x->before ? -1 : 1;
    if (x->event != y->event) return x->event < y->event ? -1 : 1;
    if (x->begins != y->begins) return x->begins ? 1 : -1; // what is replaced goes first
    return (x->shape > y->shape) - (x->shape < y->shape);
}

static enum vram_status list_changes(const struct stacker *stacker, struct change **changes, size_t *count) {
    const struct vr_stacking *out = stacker->out;
    struct change *list = malloc((2 * out->count + 1) * sizeof *list);
    if (list == NULL) return VRAM_NO_HOST_MEMORY;
    size_t filled = 0;
    for (size_t i = 0; i < out->count; i++) {
        const uint32_t birth = stacker->lifetimes->birth[out->row[i]], death = stacker->lifetimes->death[out->row[i]];
        const bool before = birth == VR_BEFORE_TRACE || birth < stacker->first;
        list[filled++] = (struct change){before ? (uint32_t)stacker->first : birth, (uint32_t)i, true, before};
        if (death != VR_NEVER && death < stacker->end) list[filled++] = (struct change){death, (uint32_t)i, false, false};
    }
    qsort(list, filled, sizeof *list, by_time);
    *changes = list;
    *count = filled;
    return VRAM_OK;
}

static enum vram_status note(struct stacker *stacker, uint32_t shape, uint32_t event) {
    const size_t last = stacker->last[shape];
    if (last != 0 && event - stacker->noted[last - 1].step.event < stacker->grain) {
        stacker->noted[last - 1].step.base_bytes = stacker->base[shape];
        return VRAM_OK;
    }
    VR_TRY(vr_grow((void **)&stacker->noted, &stacker->noted_capacity, stacker->noted_count + 1, sizeof *stacker->noted));
    stacker->noted[stacker->noted_count++] = (struct noted_step){{event, stacker->base[shape]}, shape};
    stacker->last[shape] = stacker->noted_count;
    return VRAM_OK;
}

static uint64_t size_of(const struct stacker *stacker, uint32_t shape) { return stacker->lifetimes->size_bytes[stacker->out->row[shape]]; }

static enum vram_status begin(struct stacker *stacker, const struct change *change) {
    const size_t below = stacker->standing_count;
    const uint32_t top = below == 0 ? 0 : stacker->standing[below - 1];
    stacker->base[change->shape] = below == 0 ? 0 : stacker->base[top] + size_of(stacker, top);
    stacker->standing[stacker->standing_count++] = change->shape;
    return note(stacker, change->shape, change->event);
}

static enum vram_status end(struct stacker *stacker, const struct change *change) {
    size_t place = stacker->standing_count;
    while (place > 0 && stacker->standing[place - 1] != change->shape) place--;
    assert(place > 0);
    const uint64_t size = size_of(stacker, change->shape);
    for (size_t i = place; i < stacker->standing_count; i++) {
        const uint32_t shape = stacker->standing[i];
        stacker->base[shape] -= size;
        stacker->standing[i - 1] = shape;
        VR_TRY(note(stacker, shape, change->event));
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

static enum vram_status run(struct stacker *stacker) {
    const size_t room = stacker->out->count + 1;
    stacker->standing = malloc(room * sizeof *stacker->standing);
    stacker->base = calloc(room, sizeof *stacker->base);
    stacker->last = calloc(room, sizeof *stacker->last);
    if (stacker->standing == NULL || stacker->base == NULL || stacker->last == NULL) return VRAM_NO_HOST_MEMORY;
    struct change *changes = NULL;
    size_t count = 0;
    VR_TRY(list_changes(stacker, &changes, &count));
    enum vram_status status = VRAM_OK;
    for (size_t i = 0; i < count && status == VRAM_OK; i++) status = (changes[i].begins ? begin : end)(stacker, &changes[i]);
    free(changes);
    return status == VRAM_OK ? sort_steps(stacker) : status;
}

enum vram_status vr_stacking_build(const struct vr_lifetimes *lifetimes, const uint32_t *rows, size_t count, size_t first, size_t end_event,
                                   size_t limit, size_t grain, struct vr_stacking *stacking) {
    struct vr_stacking made = {0};
    struct stacker stacker = {.lifetimes = lifetimes, .out = &made, .first = first, .end = end_event, .grain = grain};
    enum vram_status status = pick(&stacker, rows, count, limit);
    if (status == VRAM_OK) status = run(&stacker);
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
