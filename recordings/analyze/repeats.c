// Finds the period of a loop of allocations. The gap of an allocation is the number of allocations since the last one with the same stack
// and size, or with the same stack. In a loop of period p, allocations made once per iteration have the gap p, those made more often have
// smaller gaps, and none has a larger one. So the period is the largest gap that many allocations have.
//
// Sizes may repeat only every few iterations (such as with eight batch lengths), or never: the period of stacks alone is then shorter, and
// its iterations are tried first. If they are not steps (such as a model's layers, which have the same stacks), the iterations of stacks
// and sizes may be.
//
// Repetitions may be the layers of a model, in one pass that keeps or frees what every layer makes. In a training loop, memory rises and
// falls in every iteration by nearly as much as over all iterations, apart from a steady growth; a iteration ends near where it began; and
// memory does not move much more before and after the loop.
#include "analyze/steps.h"

#include <math.h>

#include "base/hash.h"

// Maximum number of allocation kinds that are distinguished. Those of a loop occur early; later ones would never repeat.
enum { GAP_BINS = 2048, BINS_PER_DOUBLING = 48, LEAST_TURNS = 3, MOST_KINDS = 1 << 20, NO_PERIOD = GAP_BINS };

// First counts all gaps, then follows the iterations, then looks at memory within the iterations.
enum repeats_stage { TALLY, FOLLOW, WEIGH, FINISHED };

// Live bytes relative to the beginning of the history: when a iteration begins, and the minimum and maximum in it.
struct iteration {
    int64_t start, low, high;
};

// A loop may be small compared with the weights loaded before it.
enum { MOST_OUTSIDE = 16 };

struct vr_repeats {
    const struct vr_history *history;
    enum repeats_stage stage;
    size_t event;       // next event to process
    uint32_t number;    // number of allocations so far
    struct vr_map last; // kind -> 1 + number of its last allocation
    struct vr_map last_of_stack;
    bool by_stack; // kinds are stacks, without sizes
    bool again;    // the iterations of stacks were not steps; following those of stacks and sizes
    uint64_t gaps; // number of gaps counted
    uint64_t stack_gaps;
    size_t period;               // bin of the iterations' gap
    size_t other_period;         // with by_stack: the bin for stacks and sizes
    uint64_t anchor;             // the stack and size that begin every iteration
    bool anchored;               // `anchor` is known
    size_t *first;               // events that begin iterations
    size_t count, capacity;      // of `first`
    struct iteration *iteration; // the time before the first iteration, the iterations, and the time after them: count + 1
    size_t iteration_count;      // number of iterations begun
    int64_t live;
    bool loop;
    uint64_t tally[GAP_BINS]; // of gaps, by their logarithm
    uint64_t stack_tally[GAP_BINS];
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
    vr_map_release(&repeats->last_of_stack);
    free(repeats->first);
    free(repeats->iteration);
    free(repeats);
}

// Returns a token for an allocation's stack and size. A crafted file can make two kinds collide, which only leads to other steps. The map's
// secret determines the slots.
static uint64_t event_token(const struct vr_history *history, size_t event) {
    return vr_mix64(history->size_bytes[event] * 0x9e3779b97f4a7c15u + history->stack[event]);
}

static size_t bin_of(uint64_t gap) {
    const unsigned power = vr_log2_floor(gap);
    const uint64_t rest = power >= 32 ? gap >> (power - 32) : gap << (32 - power);
    const size_t bin = power * BINS_PER_DOUBLING + (size_t)(((rest - ((uint64_t)1 << 32)) * BINS_PER_DOUBLING) >> 32);
    return bin < GAP_BINS ? bin : GAP_BINS - 1;
}

// Computes an allocation's gap; 0 if there is no earlier one of its kind.
static enum vram_status gap_of(struct vr_map *last, uint32_t number, uint64_t key, uint32_t *gap) {
    const uint32_t before = (uint32_t)vr_map_get(last, key);
    *gap = before == 0 ? 0 : number - before;
    return before == 0 && last->count >= MOST_KINDS ? VRAM_OK : vr_map_set(last, key, number);
}

// Returns the bin in the middle of the largest gaps that many allocations have; NO_PERIOD if none exists. Two adjacent bins on each side
// cover 6 percent.
static size_t period_bin(const uint64_t *tally, uint64_t gaps) {
    for (size_t bin = GAP_BINS - 2; bin-- > 0;) {
        uint64_t near = 0;
        for (size_t i = bin < 2 ? 0 : bin - 2; i <= bin + 2; i++) near += tally[i];
        if (near >= LEAST_TURNS && near * 20 >= gaps) {
            while (bin != 0 && tally[bin - 1] > tally[bin]) bin--;
            return bin;
        }
    }
    return NO_PERIOD;
}

// Follows iterations: one begins at each repetition of the first allocation whose gap is the period.
static enum vram_status follow_repeat(struct vr_repeats *repeats, size_t event, uint64_t key, uint32_t gap) {
    if (gap == 0 || (repeats->anchored && key != repeats->anchor)) return VRAM_OK;
    const size_t bin = bin_of(gap);
    if (bin + 2 < repeats->period || bin > repeats->period + 2) return VRAM_OK;
    repeats->anchor = key;
    repeats->anchored = true;
    VR_TRY(vr_grow((void **)&repeats->first, &repeats->capacity, repeats->count + 1, sizeof *repeats->first));
    repeats->first[repeats->count++] = event;
    return VRAM_OK;
}

static void count_gap(uint64_t *tally, uint64_t *gaps, uint32_t gap) {
    if (gap == 0) return;
    tally[bin_of(gap)]++;
    ++*gaps;
}

static enum vram_status look_for_repeat(struct vr_repeats *repeats, size_t event) {
    uint32_t gap = 0, stack_gap = 0;
    const uint64_t stack = repeats->history->stack[event], key = repeats->by_stack ? vr_mix64(stack) : event_token(repeats->history, event);
    const uint32_t number = ++repeats->number;
    VR_TRY(gap_of(&repeats->last, number, key, &gap));
    if (repeats->stage == FOLLOW) return follow_repeat(repeats, event, key, gap);
    VR_TRY(gap_of(&repeats->last_of_stack, number, stack, &stack_gap));
    count_gap(repeats->tally, &repeats->gaps, gap);
    count_gap(repeats->stack_tally, &repeats->stack_gaps, stack_gap);
    return VRAM_OK;
}

static void weigh_repeat(struct vr_repeats *repeats, size_t event) {
    const struct vr_history *history = repeats->history;
    const uint8_t action = history->action[event];
    if (repeats->iteration_count <= repeats->count && event == repeats->first[repeats->iteration_count - 1])
        repeats->iteration[repeats->iteration_count++] = (struct iteration){repeats->live, repeats->live, repeats->live};
    if (action == VR_ACTION_ALLOC) repeats->live = (int64_t)((uint64_t)repeats->live + history->size_bytes[event]);
    if (action == VR_ACTION_FREE_REQUESTED || action == VR_ACTION_FREE)
        repeats->live = (int64_t)((uint64_t)repeats->live - history->size_bytes[event]);
    struct iteration *iteration = &repeats->iteration[repeats->iteration_count - 1];
    iteration->low = repeats->live < iteration->low ? repeats->live : iteration->low;
    iteration->high = repeats->live > iteration->high ? repeats->live : iteration->high;
}

static double swing_of(const struct iteration *iteration) { return (double)iteration->high - (double)iteration->low; }

// Returns whether the iterations cover most of the history, and most of them look like those of a training loop (see above).
static bool is_loop(const struct vr_repeats *repeats) {
    const size_t iterations = repeats->count - 1;
    const struct iteration *iteration = repeats->iteration + 1, *before = repeats->iteration, *after = iteration + iterations;
    if ((repeats->first[iterations] - repeats->first[0]) * 2 < repeats->history->count) return false;
    const double slope = ((double)after->start - (double)iteration->start) / (double)iterations;
    double low = INFINITY, high = -INFINITY;
    for (size_t i = 0; i < iterations; i++) {
        const double trend = slope * (double)i;
        if ((double)iteration[i].low - trend < low) low = (double)iteration[i].low - trend;
        if ((double)iteration[i].high - trend > high) high = (double)iteration[i].high - trend;
    }
    size_t good = 0;
    for (size_t i = 0; i < iterations; i++) {
        const double swing = swing_of(&iteration[i]), net = (double)iteration[i + 1].start - (double)iteration[i].start;
        good += swing * 2 >= high - low && fabs(net) * 2 <= swing;
    }
    return good * 2 >= iterations && swing_of(before) <= MOST_OUTSIDE * (high - low) && swing_of(after) <= MOST_OUTSIDE * (high - low);
}

// Chooses the period to follow. The periods differ if one is at least half as long again.
static void choose_period(struct vr_repeats *repeats) {
    const size_t of_stacks = period_bin(repeats->stack_tally, repeats->stack_gaps), usual = period_bin(repeats->tally, repeats->gaps);
    const bool shorter = of_stacks != NO_PERIOD && (usual == NO_PERIOD || of_stacks + BINS_PER_DOUBLING / 2 < usual);
    repeats->by_stack = shorter;
    repeats->period = shorter ? of_stacks : usual;
    repeats->other_period = usual;
}

// Starts over with stacks and sizes, because the iterations of stacks alone were not steps.
static void follow_again(struct vr_repeats *repeats) {
    free(repeats->iteration);
    repeats->iteration = NULL;
    repeats->count = repeats->iteration_count = 0;
    repeats->live = 0;
    repeats->anchored = repeats->by_stack = false;
    repeats->again = true;
    repeats->period = repeats->other_period;
    repeats->stage = repeats->period != NO_PERIOD ? FOLLOW : FINISHED;
}

static enum vram_status next_stage(struct vr_repeats *repeats) {
    repeats->event = repeats->number = 0;
    vr_map_clear(&repeats->last);
    if (repeats->stage == TALLY) {
        vr_map_release(&repeats->last_of_stack);
        choose_period(repeats);
        repeats->stage = repeats->period != NO_PERIOD ? FOLLOW : FINISHED;
    } else if (repeats->stage == FOLLOW && repeats->count >= LEAST_TURNS) {
        repeats->iteration = calloc(repeats->count + 1, sizeof *repeats->iteration);
        if (repeats->iteration == NULL) return VRAM_NO_HOST_MEMORY;
        repeats->iteration_count = 1;
        repeats->stage = WEIGH;
    } else {
        repeats->loop = repeats->stage == WEIGH && is_loop(repeats);
        repeats->stage = FINISHED;
        if (!repeats->loop && repeats->by_stack) follow_again(repeats);
    }
    if (repeats->stage == FINISHED) vr_map_release(&repeats->last);
    return VRAM_OK;
}

enum vram_status vr_repeats_go_on(struct vr_repeats *repeats, size_t events, double *share) {
    const struct vr_history *history = repeats->history;
    while (events != 0 && repeats->stage != FINISHED) {
        const size_t end = history->count - repeats->event < events ? history->count : repeats->event + events;
        events -= end - repeats->event;
        for (; repeats->event < end; repeats->event++) {
            if (repeats->stage == WEIGH)
                weigh_repeat(repeats, repeats->event);
            else if (history->action[repeats->event] == VR_ACTION_ALLOC)
                VR_TRY(look_for_repeat(repeats, repeats->event));
        }
        if (end == history->count) VR_TRY(next_stage(repeats));
    }
    const double passes = (double)repeats->stage + (repeats->again ? WEIGH : 0) + (double)repeats->event / ((double)history->count + 1);
    *share = repeats->stage == FINISHED ? 1 : passes / (FINISHED + WEIGH);
    return VRAM_OK;
}

void vr_repeats_take(struct vr_repeats *repeats, size_t **first, size_t *count, bool *loop) {
    *loop = repeats->loop;
    *first = repeats->first;
    *count = repeats->count;
    repeats->first = NULL;
    repeats->count = repeats->capacity = 0;
}
