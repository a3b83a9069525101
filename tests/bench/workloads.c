#include "workloads.h"

uint64_t measured_pairs(struct workload_run *run, uint64_t rounds) {
    uint64_t at = 0;
    for (uint64_t i = 0; i < rounds; i++) {
        run->peer->give(run->peer->take(run->size, peer_streams[at]));
        if (++at == run->stream_count) at = 0;
    }
    return 2 * rounds;
}

uint64_t measured_unlike(struct workload_run *run, uint64_t rounds) {
    uint64_t at = 0;
    for (uint64_t i = 0; i < rounds; i++) {
        run->peer->give(run->peer->take(run->size * (1 + at % 3), peer_streams[at]));
        if (++at == run->stream_count) at = 0;
    }
    return 2 * rounds;
}

uint64_t measured_mixed(struct workload_run *run, uint64_t rounds) {
    for (uint64_t i = 0; i < rounds; i++) {
        const uint64_t random = next_random(&run->random);
        uint64_t *slot = &run->live[(random & 0xffffffff) * run->live_count >> 32];
        run->peer->give(*slot);
        *slot = run->peer->take(run->sizes[(random >> 32) % WORKLOAD_SIZES], 0);
    }
    return 2 * rounds;
}

uint64_t measured_trace(struct workload_run *run, uint64_t rounds) {
    uint64_t at = 0;
    for (uint64_t i = 0; i < rounds; i++) {
        const struct trace_step *step = &run->steps[at];
        if (step->size == 0) {
            run->peer->give(run->live[step->slot]);
        } else {
            run->live[step->slot] = run->peer->take(step->size, 0);
        }
        if (++at == TRACE_STEPS) at = 0;
    }
    return rounds;
}

uint64_t measured_uses(struct workload_run *run, uint64_t rounds) {
    for (uint64_t i = 0; i < rounds; i++) {
        const uint64_t address = run->peer->take(run->size, peer_streams[0]);
        if (vram_record_stream(allocator, address, peer_streams[1]) != VRAM_OK) die("vram_record_stream failed");
        run->peer->give(address);
    }
    return 3 * rounds;
}

uint64_t measured_frees(struct workload_run *run, uint64_t rounds) {
    (void)rounds;
    for (uint64_t i = 0; i < run->live_count; i++) run->peer->give(run->live[i]);
    return run->live_count;
}

uint64_t measured_again(struct workload_run *run, uint64_t rounds) {
    const uint64_t frees = measured_frees(run, rounds);
    for (uint64_t i = 0; i < run->live_count; i++) run->live[i] = run->peer->take(run->size, 0);
    return 2 * frees;
}

uint64_t measured_release(struct workload_run *run, uint64_t rounds) {
    (void)rounds;
    if (vram_empty_cache(allocator) != VRAM_OK) die("the cache was not emptied");
    return run->live_count;
}

uint64_t *workload_sizes(uint64_t low, unsigned powers) {
    uint64_t *sizes = calloc(WORKLOAD_SIZES, sizeof *sizes), random = 1;
    if (sizes == NULL) die("no memory");
    for (int i = 0; i < WORKLOAD_SIZES; i++) {
        const uint64_t drawn = next_random(&random), floor = low << (drawn % powers);
        sizes[i] = floor + (drawn >> 16) % floor;
    }
    return sizes;
}

// --- a training step --------------------------------------------------------------------------------------------------------------------

enum { LAYERS = 40, KEPT = 8, TEMPORARIES = 10, LAST_SLOT = WORKLOAD_LIVE - 1 };

struct trace_maker {
    struct trace_step *steps;
    size_t count;
    uint64_t random;
};

static void take_step(struct trace_maker *maker, uint32_t slot, uint64_t low, unsigned powers) {
    if (maker->count == TRACE_STEPS) die("the step has too many steps");
    maker->steps[maker->count++] = (struct trace_step){slot, (low << (next_random(&maker->random) % powers)) * 3 / 2};
}

static void give_step(struct trace_maker *maker, uint32_t slot) {
    if (maker->count == TRACE_STEPS) die("the step has too many steps");
    maker->steps[maker->count++] = (struct trace_step){.slot = slot};
}

// Each layer keeps some activations and frees its temporaries.
static uint32_t make_forward(struct trace_maker *maker) {
    uint32_t slot = 0;
    for (int layer = 0; layer < LAYERS; layer++) {
        for (int i = 0; i < KEPT; i++) take_step(maker, slot++, 64 << 10, 9);
        for (int i = 0; i < TEMPORARIES; i++) {
            take_step(maker, LAST_SLOT, 512, 14);
            give_step(maker, LAST_SLOT);
        }
    }
    return slot;
}

// In reverse order, with gradients that live to the end.
static void make_backward(struct trace_maker *maker, uint32_t slot) {
    for (int layer = LAYERS; layer-- > 0;) {
        take_step(maker, slot++, 1 << 20, 5);
        for (int i = KEPT; i-- > 0;) {
            if (i % 4 == 0) {
                take_step(maker, LAST_SLOT - 1, 128 << 10, 8);
                give_step(maker, LAST_SLOT - 1);
            }
            give_step(maker, (uint32_t)(layer * KEPT + i));
        }
    }
    for (uint32_t i = LAYERS * KEPT; i < slot; i++) give_step(maker, i);
}

const struct trace_step *workload_trace(void) {
    static struct trace_step steps[TRACE_STEPS];
    struct trace_maker maker = {.steps = steps, .random = 7};
    make_backward(&maker, make_forward(&maker));
    // The rest of the step: the optimizer's small requests.
    while (maker.count + 2 <= TRACE_STEPS) {
        take_step(&maker, LAST_SLOT - 2, 512, 10);
        give_step(&maker, LAST_SLOT - 2);
    }
    return steps;
}

// --- runs -------------------------------------------------------------------------------------------------------------------------------

void workload_fill(struct workload_run *run, uint64_t count) {
    run->live = calloc(count, sizeof *run->live);
    if (run->live == NULL) die("no memory");
    run->live_count = count;
    run->random = 88172645463325252u;
    for (uint64_t i = 0; run->sizes != NULL && i < count; i++) run->live[i] = run->peer->take(run->sizes[i % WORKLOAD_SIZES], 0);
}

void workload_empty(struct workload_run *run) {
    for (uint64_t i = 0; run->sizes != NULL && i < run->live_count; i++) run->peer->give(run->live[i]);
    free(run->live);
    run->live = NULL;
}

void workload_shuffle(uint64_t *items, uint64_t count) {
    uint64_t random = 5;
    for (uint64_t i = count; i-- > 1;) {
        const uint64_t other = next_random(&random) % (i + 1), item = items[i];
        items[i] = items[other], items[other] = item;
    }
}

double workload_ns_per_call(struct workload_run *run, workload *work, uint64_t rounds) {
    const double begin = now_ns();
    const uint64_t calls = work(run, rounds);
    return (now_ns() - begin) / (double)calls;
}
