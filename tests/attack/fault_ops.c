// Random operations on an allocator whose driver refuses calls: at random, 0 to 30 % of them, and in pairs, the second on the way back out
// of the first. Invariants hold after each refusal, no two blocks overlap, and at the end, without refusals, all memory goes back.
// fault_ops [--seed N] [--faults COUNT]: seeds from N on, until COUNT calls were refused.
#include <inttypes.h>
#include <stdio.h>
#include <time.h>

#include "driver/abi.h"
#include "driver/fault/fault.h"
#include "support/random.h"
#include "support/world.h"
#include "vram/pool.h"

enum { BLOCKS = 48, OPERATIONS = 600, TRIES = 1000 };

static const char *const confs[] = {"",
                                    "expandable_segments:True",
                                    "expandable_segments:True,large_segment_size_mb:12,expandable_segments_reserve:0.5",
                                    "max_split_size_mb:24,garbage_collection_threshold:0.6",
                                    "release_lock_on_cudamalloc:True",
                                    "backend:cudaMallocAsync"};

struct attack {
    struct vr_world world;
    uint64_t seed, random, operations;
    const char *conf;
    struct vram_pool *pool;
    uint64_t address[BLOCKS], size[BLOCKS];
    size_t count;
    const char *wrong; // what did not hold; NULL: all does
};

static uint64_t draw(struct attack *attack, uint64_t limit) { return vr_random_below(&attack->random, limit); }

static void wrong(struct attack *attack, const char *what) {
    if (attack->wrong == NULL) attack->wrong = what;
}

static bool passed(struct attack *attack, enum vram_status status) {
    if (status == VRAM_OK) return true;
    if (status != VRAM_OUT_OF_MEMORY && status != VRAM_DRIVER && status != VRAM_NO_DRIVER && status != VRAM_UNSUPPORTED)
        wrong(attack, vram_status_name(status));
    if (vram_check(attack->world.allocator, NULL) != VRAM_OK) wrong(attack, "an invariant is broken");
    return false;
}

static uint64_t stream_of(struct attack *attack) { return attack->world.stream[0][draw(attack, VR_WORLD_STREAMS)]; }

static void get(struct attack *attack) {
    if (attack->count == BLOCKS) return;
    const uint64_t size = 1 + draw(attack, draw(attack, 2) ? 2 * VR_MIB : 40 * VR_MIB), stream = stream_of(attack);
    uint64_t address = UINT64_MAX;
    const bool own = attack->pool != NULL && draw(attack, 4) == 0;
    const enum vram_status status =
        own ? vram_pool_malloc(attack->pool, size, stream, &address) : vram_malloc(attack->world.allocator, 0, size, stream, &address);
    if (!passed(attack, status)) {
        if (address != UINT64_MAX) wrong(attack, "a refused request wrote an address");
        return;
    }
    for (size_t i = 0; i < attack->count; i++)
        if (address < attack->address[i] + attack->size[i] && attack->address[i] < address + size) wrong(attack, "two blocks overlap");
    attack->address[attack->count] = address;
    attack->size[attack->count++] = size;
}

// A free of a block that several streams used takes about twenty calls of the driver: with 30 % of them refused it may well fail a thousand
// times. What must hold is that it succeeds as soon as the driver serves.
static void put(struct attack *attack) {
    if (attack->count == 0) return;
    const size_t index = draw(attack, attack->count);
    const uint64_t address = attack->address[index];
    int tries = 0;
    while (tries < TRIES && !passed(attack, vram_free(attack->world.allocator, address))) tries++;
    if (tries == TRIES) {
        vr_fault_random(attack->world.driver, 0, 0);
        if (vram_driver_fault_set(attack->world.driver, NULL, 0, 0) != VRAM_OK || vram_free(attack->world.allocator, address) != VRAM_OK)
            wrong(attack, "a block cannot be freed");
    }
    attack->address[index] = attack->address[--attack->count];
    attack->size[index] = attack->size[attack->count];
}

static void refuse_pair(struct attack *attack) {
    static const int32_t results[] = {VR_CU_OUT_OF_MEMORY, VR_CU_UNKNOWN, VR_CU_INVALID_VALUE, VR_CU_ILLEGAL_ADDRESS};
    const int32_t first = results[draw(attack, VR_COUNT_OF(results))], second = results[draw(attack, VR_COUNT_OF(results))];
    if (vram_driver_fault_set(attack->world.driver, NULL, 1 + draw(attack, 8), first) != VRAM_OK) wrong(attack, "no fault could be set");
    vr_fault_then(attack->world.driver, 1 + draw(attack, 4), second);
}

static void step(struct attack *attack) {
    struct vram_allocator *allocator = attack->world.allocator;
    const uint64_t kind = draw(attack, 100);
    attack->operations++;
    if (kind < 20)
        refuse_pair(attack);
    else if (kind < 32 && attack->count > 0)
        (void)passed(attack, vram_record_stream(allocator, attack->address[draw(attack, attack->count)], stream_of(attack)));
    else if (kind < 35)
        (void)!vram_sim_complete_all(attack->world.sim);
    else if (kind < 38)
        (void)passed(attack, vram_empty_cache(allocator));
    else if (kind < 40 && attack->pool == NULL)
        (void)passed(attack, vram_pool_create(allocator, 0, NULL, &attack->pool));
    else if (kind < 70)
        get(attack);
    else
        put(attack);
}

static void finish(struct attack *attack, uint64_t *faults) {
    struct vr_world *world = &attack->world;
    vr_fault_random(world->driver, 0, 0);
    if (vram_driver_fault_set(world->driver, NULL, 0, 0) != VRAM_OK) wrong(attack, "the fault cannot be taken back");
    while (attack->count > 0 && attack->wrong == NULL) put(attack);
    if (attack->pool != NULL) vram_pool_release(attack->pool);
    if (vram_sim_complete_all(world->sim) != VRAM_OK || vram_empty_cache(world->allocator) != VRAM_OK) wrong(attack, "the cache stays");
    if (vram_check(world->allocator, NULL) != VRAM_OK) wrong(attack, "an invariant is broken at the end");
    *faults += vram_driver_fault_count(world->driver);
    vr_world_destroy_allocator(world);
    if (vram_sim_memory_used(world->sim, 0) != 0) wrong(attack, "memory was lost");
    if (vr_world_close(world) != 0) wrong(attack, "driver objects were left behind");
}

static bool run(uint64_t seed, uint64_t *faults, uint64_t *operations) {
    static const uint32_t percents[] = {0, 1, 3, 10, 30};
    struct attack attack = {.seed = seed, .random = seed, .conf = confs[seed % VR_COUNT_OF(confs)]};
    const struct vr_world_options options = {
        .sim = {.memory_bytes = 400 * VR_MIB, .manual_completion = true}, .conf = attack.conf, .faults = true, .without_record = true};
    if (vr_world_open(&attack.world, &options) != VRAM_OK) return false;
    vr_fault_random(attack.world.driver, percents[draw(&attack, VR_COUNT_OF(percents))], seed);
    while (attack.operations < OPERATIONS && attack.wrong == NULL) step(&attack);
    finish(&attack, faults);
    *operations += attack.operations;
    if (attack.wrong == NULL) return true;
    printf("%s: \"%s\", operation %" PRIu64 "; repeat: fault_ops --seed %" PRIu64 " --faults 1\n", attack.wrong, attack.conf,
           attack.operations, seed);
    return false;
}

int main(int argc, char **argv) {
    uint64_t seed = 1, wanted = 20000, faults = 0, operations = 0, seeds = 0, failed = 0;
    for (int i = 1; i + 1 < argc; i += 2) {
        if (strcmp(argv[i], "--seed") == 0)
            seed = strtoull(argv[i + 1], NULL, 0);
        else if (strcmp(argv[i], "--faults") == 0)
            wanted = strtoull(argv[i + 1], NULL, 0);
    }
    const clock_t start = clock();
    for (; faults < wanted && failed < 10; seeds++) failed += !run(seed + seeds, &faults, &operations);
    printf("%" PRIu64 " faults in %" PRIu64 " operations, seeds %" PRIu64 " to %" PRIu64 ", %.1f s: %" PRIu64 " failed\n", faults,
           operations, seed, seed + seeds - 1, (double)(clock() - start) / CLOCKS_PER_SEC, failed);
    return failed != 0;
}
