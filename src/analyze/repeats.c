// An allocation of the same stack and size came `gap` allocations ago. In a loop of period p what is made once per turn has the gap p, and
// what is made more often has smaller ones, but nothing has a larger one. So the largest gap that many have is the period.
#include "analyze/repeats.h"

#include "analyze/map.h"

// Kinds of allocations that are told apart: what a loop makes is met early, and more would only be what never repeats.
enum { GAP_BINS = 2048, BINS_PER_DOUBLING = 48, LEAST_TURNS = 3, MOST_KINDS = 1 << 20 };

// First every gap is counted, then the turns are followed.
enum stage { TALLY, FOLLOW, FINISHED };

struct vr_repeats {
    const struct vr_history *history;
    enum stage stage;
    size_t event;             // the next one to look at
    uint32_t number;          // allocations so far
    struct vr_map last;       // stack and size -> 1 + number of the allocation
    uint64_t gaps;            // all that were counted
    size_t period;            // bin of the gap that turns have
    uint64_t anchor;          // the stack and size that every turn begins with
    bool anchored;            // whether it is known
    size_t *first;            // events
    size_t count, capacity;   // of first
    uint64_t tally[GAP_BINS]; // of gaps, by their logarithm
};

enum vram_status vr_repeats_create(const struct vr_history *history, struct vr_repeats **repeats) {
    struct vr_repeats *made = calloc(1, sizeof *made);
    if (made == NULL) return VRAM_NO_HOST_MEMORY;
    made->history = history;
    *repeats = made;
    return VRAM_OK;
}

void vr_repeats_destroy(struct vr_repeats *repeats) {
    if (repeats == NULL) return;
    vr_map_release(&repeats->last);
    free(repeats->first);
    free(repeats);
}

static uint64_t token(const struct vr_history *history, size_t event) {
    return vr_mix64(history->size_bytes[event] * 0x9e3779b97f4a7c15u + history->stack[event]);
}

static size_t bin_of(uint64_t gap) {
    const unsigned power = vr_log2_floor(gap);
    const uint64_t rest = power >= 32 ? gap >> (power - 32) : gap << (32 - power);
    const size_t bin = power * BINS_PER_DOUBLING + (size_t)(((rest - ((uint64_t)1 << 32)) * BINS_PER_DOUBLING) >> 32);
    return bin < GAP_BINS ? bin : GAP_BINS - 1;
}

// The gap that an allocation has to the one like it before; 0 without one.
static enum vram_status gap_of(struct vr_repeats *repeats, uint64_t key, uint32_t *gap) {
    const uint32_t number = ++repeats->number, before = vr_map_get(&repeats->last, key);
    *gap = before == 0 ? 0 : number - before;
    return before == 0 && repeats->last.count >= MOST_KINDS ? VRAM_OK : vr_map_set(&repeats->last, key, number);
}

// The bin in the middle of the largest gaps that many allocations have; 0 for none. Two neighbours on each side are 6 percent.
static size_t period_bin(const struct vr_repeats *repeats) {
    for (size_t bin = GAP_BINS - 3; bin > 2 + 2 * BINS_PER_DOUBLING; bin--) {
        uint64_t near = 0;
        for (size_t i = bin - 2; i <= bin + 2; i++) near += repeats->tally[i];
        if (near >= LEAST_TURNS && near * 20 >= repeats->gaps) {
            while (repeats->tally[bin - 1] > repeats->tally[bin]) bin--;
            return bin;
        }
    }
    return 0;
}

// A turn begins wherever the first allocation that has the period as its gap is made again.
static enum vram_status follow(struct vr_repeats *repeats, size_t event, uint64_t key, uint32_t gap) {
    if (gap == 0 || (repeats->anchored && key != repeats->anchor)) return VRAM_OK;
    const size_t bin = bin_of(gap);
    if (bin + 2 < repeats->period || bin > repeats->period + 2) return VRAM_OK;
    repeats->anchor = key;
    repeats->anchored = true;
    VR_TRY(vr_grow((void **)&repeats->first, &repeats->capacity, repeats->count + 1, sizeof *repeats->first));
    repeats->first[repeats->count++] = event;
    return VRAM_OK;
}

static enum vram_status look_at(struct vr_repeats *repeats, size_t event) {
    uint32_t gap = 0;
    const uint64_t key = token(repeats->history, event);
    VR_TRY(gap_of(repeats, key, &gap));
    if (repeats->stage == FOLLOW) return follow(repeats, event, key, gap);
    repeats->tally[gap == 0 ? 0 : bin_of(gap)] += gap != 0;
    repeats->gaps += gap != 0;
    return VRAM_OK;
}

static void next_stage(struct vr_repeats *repeats) {
    const bool tallied = repeats->stage == TALLY;
    repeats->event = repeats->number = 0;
    if (tallied) {
        vr_map_clear(&repeats->last);
        repeats->period = period_bin(repeats);
    }
    repeats->stage = tallied && repeats->period != 0 ? FOLLOW : FINISHED;
    if (repeats->stage == FINISHED) vr_map_release(&repeats->last);
}

enum vram_status vr_repeats_go_on(struct vr_repeats *repeats, size_t events, double *share) {
    const struct vr_history *history = repeats->history;
    while (events != 0 && repeats->stage != FINISHED) {
        const size_t end = history->count - repeats->event < events ? history->count : repeats->event + events;
        events -= end - repeats->event;
        for (; repeats->event < end; repeats->event++) {
            if (history->action[repeats->event] == VR_ACTION_ALLOC) VR_TRY(look_at(repeats, repeats->event));
        }
        if (end == history->count) next_stage(repeats);
    }
    const double stages = (double)repeats->stage + (double)repeats->event / ((double)history->count + 1);
    *share = repeats->stage == FINISHED ? 1 : stages / FINISHED;
    return VRAM_OK;
}

void vr_repeats_take(struct vr_repeats *repeats, size_t **first, size_t *count) {
    *first = repeats->first;
    *count = repeats->count;
    repeats->first = NULL;
    repeats->count = repeats->capacity = 0;
}
