// paged_ops: random requests and frees on paged memory, checked by paged_oracle.h.
//
// paged_ops [SEED SEEDS OPERATIONS]
//
// Exit status: 0 all agree, 1 a difference (with the seed), 2 usage.
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "driver/abi.h"
#include "driver/driver.h"
#include "model/paged_oracle.h"
#include "support/random.h"
#include "support/world.h"
#include "vram/sim.h"
#include "vram/sleep.h"

enum { MIB = 1 << 20, MOST_LIVE = 64 };

struct run {
    uint64_t random;
    struct vr_world world;
    struct paged_oracle oracle;
    uint64_t end_ns[VR_WORLD_STREAMS]; // end of each stream's work
    const char *wrong;
};

static uint64_t draw(struct run *run, uint64_t limit) { return vr_random_below(&run->random, limit); }

static void must(struct run *run, bool holds, const char *what) {
    if (!holds && run->wrong == NULL) run->wrong = what;
}

static uint64_t draw_size(struct run *run) {
    static const uint64_t common[] = {2 * MIB, 3 * MIB + 512, 5 * MIB, 12 * MIB + 1024, 20 * MIB};
    const uint64_t kind = draw(run, 8);
    if (kind == 0) return 1 + draw(run, 40 * MIB);
    return kind == 1 ? 1 + draw(run, 300000) : common[draw(run, VR_COUNT_OF(common))];
}

// Checks that the stream's next work does not finish before that time.
static void check_fence(struct run *run, unsigned stream, uint64_t not_before_ns) {
    uint64_t event = 0;
    struct vram_driver *sim = run->world.sim;
    if (not_before_ns <= vram_sim_clock_ns(sim) + 1000) return;
    must(run, vr_cu(sim, event_create, &event, VR_CU_EVENT_DISABLE_TIMING) == VR_CU_SUCCESS, "an event");
    must(run, vr_cu(sim, event_record, event, run->world.stream[0][stream]) == VR_CU_SUCCESS, "an event's record");
    const bool pending = vr_cu(sim, event_query, event) == VR_CU_NOT_READY;
    must(run, pending || vram_sim_clock_ns(sim) + 1000 >= not_before_ns, "a stream had a page before its last user was done");
    must(run, vr_cu(sim, event_destroy, event) == VR_CU_SUCCESS, "an event's end");
}

static void one_malloc(struct run *run) {
    struct oracle_block block = {.stream = (unsigned)draw(run, VR_WORLD_STREAMS)};
    const enum vram_status status =
        vram_malloc(run->world.allocator, 0, draw_size(run), run->world.stream[0][block.stream], &block.address);
    must(run, status == VRAM_OK || status == VRAM_OUT_OF_MEMORY, "a request failed");
    if (status != VRAM_OK) return;
    block.size_bytes = vram_allocated_size(run->world.allocator, block.address);
    uint64_t not_before_ns = 0;
    oracle_take(&run->oracle, &block, &not_before_ns);
    check_fence(run, block.stream, not_before_ns);
}

static void one_free(struct run *run) {
    const size_t index = draw(run, run->oracle.live_count);
    const struct oracle_block block = run->oracle.live[index];
    oracle_give(&run->oracle, index, run->end_ns[block.stream]);
    must(run, vram_free(run->world.allocator, block.address) == VRAM_OK, "a free failed");
}

static void work(struct run *run) {
    const unsigned stream = (unsigned)draw(run, VR_WORLD_STREAMS);
    const uint64_t work_ns = 1 + draw(run, 3000000), now = vram_sim_clock_ns(run->world.sim);
    must(run, vram_sim_busy(run->world.sim, 0, run->world.stream[0][stream], work_ns) == VRAM_OK, "work");
    run->end_ns[stream] = (run->end_ns[stream] > now ? run->end_ns[stream] : now) + work_ns;
}

static void sleep_and_wake(struct run *run) {
    const enum vram_status slept = vram_sleep(run->world.allocator, 0, NULL, 0, NULL, NULL);
    must(run, slept == VRAM_OK, "no sleep");
    if (slept == VRAM_OK) must(run, vram_wake(run->world.allocator, 0, NULL, 0, NULL, NULL) == VRAM_OK, "no waking");
}

static void empty_all(struct run *run) {
    must(run, vram_sim_complete_all(run->world.sim) == VRAM_OK, "completion");
    must(run, vram_empty_cache(run->world.allocator) == VRAM_OK, "empty_cache");
    oracle_check_used(&run->oracle);
}

static void check_sums(struct run *run) {
    struct vram_stats stats;
    oracle_check_mapped(&run->oracle);
    must(run, vram_get_stats(run->world.allocator, 0, &stats) == VRAM_OK, "statistics");
    must(run, stats.allocated_bytes[VRAM_STAT_ALL].current == (int64_t)oracle_live_bytes(&run->oracle), "allocated_bytes");
    must(run, stats.reserved_bytes[VRAM_STAT_ALL].current == (int64_t)oracle_page_bytes(&run->oracle), "reserved_bytes");
    must(run, vram_sim_memory_used(run->world.sim, 0) == oracle_page_bytes(&run->oracle), "what the device says is used");
    must(run, vram_check(run->world.allocator, NULL) == VRAM_OK, "the allocator's own check");
}

static void one_operation(struct run *run) {
    const uint64_t kind = draw(run, 400);
    if (kind == 0) {
        empty_all(run);
    } else if (kind == 1) {
        sleep_and_wake(run);
    } else if (kind < 8) {
        must(run, vram_sim_advance(run->world.sim, 1 + draw(run, 2000000)) == VRAM_OK, "time");
    } else if (kind < 24) {
        work(run);
    } else if (run->oracle.live_count != 0 && (run->oracle.live_count == MOST_LIVE || draw(run, 100) < 48)) {
        one_free(run);
    } else {
        one_malloc(run);
    }
}

static bool run_seed(struct run *run, uint64_t seed, uint64_t operations) {
    static const uint64_t memory_bytes[] = {0, 200 * MIB, 500 * MIB};
    const struct vr_world_options options = {.sim = {.memory_bytes = memory_bytes[seed % VR_COUNT_OF(memory_bytes)]},
                                             .conf = seed % 2 == 0 ? "paged:True" : "paged:True,reclaim_streams:True",
                                             .without_record = true};
    *run = (struct run){.random = seed};
    if (vr_world_open(&run->world, &options) != VRAM_OK) return false;
    oracle_watch(&run->oracle, run->world.sim);
    uint64_t at = 0;
    for (; at < operations && run->wrong == NULL && run->oracle.wrong == NULL; at++) {
        one_operation(run);
        if (at % 16 == 0) check_sums(run);
    }
    while (run->oracle.live_count != 0) one_free(run);
    empty_all(run);
    oracle_leave(run->world.sim);
    must(run, vr_world_close(&run->world) == 0, "objects of the driver are left");
    if (run->oracle.wrong != NULL) run->wrong = run->oracle.wrong;
    if (run->wrong != NULL) printf("seed %" PRIu64 ", operation %" PRIu64 ": %s\n", seed, at, run->wrong);
    return run->wrong == NULL;
}

int main(int argc, char **argv) {
    static struct run run;
    if (argc != 1 && argc != 4) return 2;
    const uint64_t first = argc == 4 ? strtoull(argv[1], NULL, 10) : 1, seeds = argc == 4 ? strtoull(argv[2], NULL, 10) : 400;
    const uint64_t operations = argc == 4 ? strtoull(argv[3], NULL, 10) : 800;
    bool agree = true;
    for (uint64_t seed = first; seed < first + seeds; seed++) agree = run_seed(&run, seed, operations) && agree;
    return agree ? 0 : 1;
}
