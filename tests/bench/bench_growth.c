// bench_growth: measures a step while more and more other things exist: pools, segments, streams, devices, holes, postponed frees.
//
//   bench_growth                     the table: ns of CPU time, the lowest of the chunks
//   bench_growth count NAME-COUNT N  N steps of one row with COUNT things, to count instructions:
//                                    valgrind --tool=callgrind --toggle-collect=measured_steps ...
//
// All figures include the simulator's share.
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/base.h"
#include "driver/driver.h"
#include "vram/sim.h"
#include "vram/sleep.h"
#include "vram/vram.h"

#define MIB (1ull << 20)
enum { CHUNKS = 7, DEVICES = 64, COUNTS = 6, LARGE = 20 };

#ifdef __clang__ // Clang lacks noipa; instructions are counted with GCC
#define MEASURED __attribute__((noinline))
#else
#define MEASURED __attribute__((noinline, noipa))
#endif

struct run {
    struct vram_driver *driver;
    struct vram_allocator *allocator;
    uint64_t count; // number of these objects
    uint64_t *items, *streams;
    struct vram_pool **pools;
    uint64_t random, next;
};

struct growth {
    const char *name, *there, *step; // the row's name, the objects, and a step
    const char *conf;
    uint32_t devices;
    uint64_t counts[COUNTS];
    unsigned steps; // per chunk
    void (*prepare)(struct run *run);
    void (*take_step)(struct run *run);
};

static void must(enum vram_status status, const char *what) {
    if (status == VRAM_OK) return;
    fprintf(stderr, "bench_growth: %s: %s\n", what, vram_status_name(status));
    exit(4);
}

static uint64_t take_on(struct run *run, uint32_t device, uint64_t size, uint64_t stream) {
    uint64_t address = 0;
    must(vram_malloc(run->allocator, device, size, stream, &address), "vram_malloc");
    return address;
}
static uint64_t take(struct run *run, uint64_t size) { return take_on(run, 0, size, 0); }
static void give(struct run *run, uint64_t address) { must(vram_free(run->allocator, address), "vram_free"); }
static void release(struct run *run) { must(vram_empty_cache(run->allocator), "vram_empty_cache"); }

static uint64_t random_below(struct run *run, uint64_t limit) {
    run->random ^= run->random << 13;
    run->random ^= run->random >> 7;
    run->random ^= run->random << 17;
    return (run->random >> 16) % limit;
}

static void make_streams(struct run *run) {
    for (uint64_t i = 0; i < run->count; i++) must(vram_sim_stream_create(run->driver, 0, &run->streams[i]), "a stream");
}

// --- private pools ----------------------------------------------------------------------------------------------------------------------

static void make_pools(struct run *run) {
    for (uint64_t i = 0; i < run->count; i++) {
        must(vram_pool_create(run->allocator, 0, NULL, &run->pools[i]), "a pool");
        must(vram_pool_malloc(run->pools[i], MIB, 0, &run->items[i]), "a block of a pool");
    }
}

// A pool's whole life, as for a graph that is captured, used and dropped.
static void live_in_pool(struct run *run) {
    struct vram_pool *pool = NULL;
    uint64_t address = 0;
    must(vram_pool_create(run->allocator, 0, NULL, &pool), "a pool");
    must(vram_pool_malloc(pool, MIB, 0, &address), "a block of a pool");
    give(run, address);
    vram_pool_release(pool);
}

static void end_pools(struct run *run) {
    for (uint64_t i = 0; i < run->count; i++) live_in_pool(run);
}

static void find_pool(struct run *run) {
    struct vram_pool *pool = NULL;
    must(vram_pool_find(run->allocator, 0, vram_get_pool_id(run->pools[random_below(run, run->count)]), &pool), "a pool");
    vram_pool_release(pool);
}

// Suspends and wakes one of them, while all others stay awake.
static void sleep_one(struct run *run) {
    const struct vram_sleep_choice one = {.pool = run->pools[run->next++ % run->count], .level = VRAM_SLEEP_DISCARD};
    must(vram_sleep(run->allocator, 0, &one, 1, NULL, NULL), "vram_sleep");
    must(vram_wake(run->allocator, 0, &one, 1, NULL, NULL), "vram_wake");
}

// --- segments ---------------------------------------------------------------------------------------------------------------------------

static void make_segments(struct run *run) {
    for (uint64_t i = 0; i < run->count; i++) run->items[i] = take(run, LARGE * MIB);
}

// Releases one of them, and allocates another.
static void replace_segment(struct run *run) {
    uint64_t *item = &run->items[random_below(run, run->count)];
    give(run, *item);
    release(run);
    *item = take(run, LARGE * MIB);
}

// Makes free segments too large to be split. A step takes one of them, and frees it.
static void make_oversize(struct run *run) {
    for (uint64_t i = 0; i < run->count; i++) run->items[i] = take(run, (100 + 2 * i) * MIB);
    for (uint64_t i = 0; i < run->count; i++) give(run, run->items[i]);
}

static void take_oversize(struct run *run) { give(run, take(run, (99 + 2 * random_below(run, run->count)) * MIB)); }

// --- expandable segments ----------------------------------------------------------------------------------------------------------------

// Unmaps and maps this many pages in a row.
static void map_pages(struct run *run) {
    give(run, take(run, run->count * LARGE * MIB));
    release(run);
}

// Makes pages with holes between them, all too small for the next request.
static void make_holes(struct run *run) {
    for (uint64_t i = 0; i < 2 * run->count; i++) run->items[i] = take(run, LARGE * MIB);
    for (uint64_t i = 1; i < 2 * run->count; i += 2) give(run, run->items[i]);
    release(run);
}

static void grow_beyond_holes(struct run *run) {
    give(run, take(run, 2 * LARGE * MIB));
    release(run);
}

// --- streams, devices, captures ---------------------------------------------------------------------------------------------------------

static void use_on_streams(struct run *run) {
    const uint64_t address = take(run, 4096);
    for (uint64_t i = 0; i < run->count; i++) must(vram_record_stream(run->allocator, address, run->streams[i]), "vram_record_stream");
    give(run, address);
}

static void use_devices(struct run *run) {
    for (uint32_t i = 0; i < run->count; i++) give(run, take_on(run, i, 4096, 0));
}

static void take_pair_on_device(struct run *run) { give(run, take_on(run, (uint32_t)(run->next++ % run->count), 4096, 0)); }

// A stream captures, and this many frees wait for its end, while pairs on another stream query each time.
static void put_off_frees(struct run *run) {
    must(vram_sim_stream_create(run->driver, 0, &run->streams[0]), "a stream");
    must(vram_pool_create(run->allocator, 0, NULL, &run->pools[0]), "a pool");
    for (uint64_t i = 0; i < run->count; i++) run->items[i] = take(run, 4096);
    must(vram_capture_begin(run->pools[0], run->streams[0], VRAM_CAPTURE_RELAXED, NULL), "a capture");
    for (uint64_t i = 0; i < run->count; i++) {
        must(vram_record_stream(run->allocator, run->items[i], run->streams[0]), "vram_record_stream");
        give(run, run->items[i]);
    }
}

static void take_pair(struct run *run) { give(run, take(run, 4096)); }

static void must_drive(vr_cu_result result) { must(result == VR_CU_SUCCESS ? VRAM_OK : VRAM_DRIVER, "the driver"); }

// A capture in which this many blocks wait for a stream that has not joined. Requests outside continue.
static void capture_waiting_frees(struct run *run, uint64_t frees) {
    uint64_t event = 0, context = 0, streams[2];
    must_drive(vr_cu(run->driver, primary_ctx_retain, &context, 0));
    must_drive(vr_cu(run->driver, ctx_set_current, context));
    for (int i = 0; i < 2; i++) must(vram_sim_stream_create(run->driver, 0, &streams[i]), "a stream");
    run->streams[0] = streams[0];
    must(vram_pool_create(run->allocator, 0, NULL, &run->pools[0]), "a pool");
    must(vram_capture_begin(run->pools[0], streams[0], VRAM_CAPTURE_RELAXED, NULL), "a capture");
    must_drive(vr_cu(run->driver, event_create, &event, 0));
    must_drive(vr_cu(run->driver, event_record, event, streams[0]));
    must_drive(vr_cu(run->driver, stream_wait_event, streams[1], event, 0));
    for (uint64_t i = 0; i < frees; i++) {
        const uint64_t address = take_on(run, 0, 4096, streams[0]);
        must_drive(vr_cu(run->driver, memset_d8_async, address, 0, 4096, streams[1]));
        must(vram_record_stream(run->allocator, address, streams[1]), "vram_record_stream");
        give(run, address);
    }
}

static void wait_in_capture(struct run *run) { capture_waiting_frees(run, run->count); }

// One waiting block, and this many nodes.
static void capture_nodes(struct run *run) {
    capture_waiting_frees(run, 1);
    const uint64_t address = take_on(run, 0, 4096, run->streams[0]);
    for (uint64_t i = 0; i < run->count; i++) must_drive(vr_cu(run->driver, memset_d8_async, address, 0, 4096, run->streams[0]));
}

static void take_captured_pair(struct run *run) { give(run, take_on(run, 0, 4096, run->streams[0])); }

// --- out of memory ----------------------------------------------------------------------------------------------------------------------

static void fail_to_take(struct run *run) {
    uint64_t address = 0;
    if (vram_malloc(run->allocator, 0, 64 * (MIB << 20), 0, &address) != VRAM_OUT_OF_MEMORY) must(VRAM_LIMIT, "no out-of-memory error");
}

// --- the table --------------------------------------------------------------------------------------------------------------------------

static const struct growth growths[] = {
    {"pools", "private pools", "a pool's life", "", 1, {1, 10, 100, 1000, 4000}, 500, make_pools, live_in_pool},
    {"ended", "private pools that ended", "a pool's life", "", 1, {1, 10, 100, 1000, 10000}, 500, end_pools, live_in_pool},
    {"found", "private pools", "one found by its id", "", 1, {1, 10, 100, 1000, 4000}, 2000, make_pools, find_pool},
    {"emptied", "private pools", "a segment given back and got", "", 1, {1, 10, 100, 1000, 4000}, 500, make_pools, grow_beyond_holes},
    {"asleep", "private pools", "one put to sleep and woken", "sleepable:True", 1, {1, 10, 100, 1000, 4000}, 100, make_pools, sleep_one},
    {"segments", "segments", "one given back, one got", "", 1, {1, 100, 1000, 10000, 100000}, 500, make_segments, replace_segment},
    {"oversize",
     "free segments above max_split_size",
     "one taken and freed",
     "max_split_size_mb:64",
     1,
     {1, 10, 100, 1000, 10000},
     2000,
     make_oversize,
     take_oversize},
    {"pages",
     "pages in a row",
     "all mapped and unmapped",
     "expandable_segments:True",
     1,
     {1, 10, 100, 1000, 10000, 100000},
     1,
     NULL,
     map_pages},
    {"holes",
     "holes between pages",
     "two pages mapped and unmapped",
     "expandable_segments:True",
     1,
     {1, 10, 100, 1000, 10000, 100000},
     50,
     make_holes,
     grow_beyond_holes},
    {"uses", "streams that use a block", "used and freed", "", 1, {1, 4, 16, 64, 256, 1024}, 50, make_streams, use_on_streams},
    {"devices", "devices in turn", "a pair", "", DEVICES, {1, 4, 16, 64}, 4000, use_devices, take_pair_on_device},
    {"nodes",
     "nodes of a capture that reuses",
     "a pair in it",
     "graph_capture_record_stream_reuse:True",
     1,
     {1, 10, 100, 1000, 10000},
     50,
     capture_nodes,
     take_captured_pair},
    {"waiting",
     "frees that wait in a capture that reuses",
     "a pair in it",
     "graph_capture_record_stream_reuse:True",
     1,
     {1, 10, 100, 1000, 10000},
     50,
     wait_in_capture,
     take_captured_pair},
    {"oom", "private pools", "a request that fails", "", 1, {1, 10, 100, 1000, 4000}, 50, make_pools, fail_to_take},
    {"deferred", "frees put off by a capture", "a pair on another stream", "", 1, {1, 10, 100, 1000, 10000}, 500, put_off_frees, take_pair},
};

static void begin(struct run *run, const struct growth *growth, uint64_t count) {
    const struct vram_sim_options options = {
        .profile = VRAM_SIM_FREE, .memory_bytes = (uint64_t)16 << 40, .device_count = growth->devices, .addresses = VRAM_SIM_REUSE};
    *run = (struct run){.count = count, .random = 88172645463325252u};
    must(vram_sim_create(&options, &run->driver), "a simulator");
    must(vram_create(&(struct vram_create_info){.driver = run->driver, .conf = growth->conf}, &run->allocator, NULL), "an allocator");
    run->items = calloc(2 * count, sizeof *run->items);
    run->streams = calloc(count, sizeof *run->streams);
    run->pools = calloc(count, sizeof *run->pools);
    if (run->items == NULL || run->streams == NULL || run->pools == NULL) must(VRAM_NO_HOST_MEMORY, "the benchmark");
    give(run, take(run, 4096)); // sets the device up
    if (growth->prepare != NULL) growth->prepare(run);
}

static void end(struct run *run) {
    vram_destroy(run->allocator);
    vram_driver_destroy(run->driver);
    free(run->items);
    free(run->streams);
    free(run->pools);
}

void measured_steps(struct run *run, void (*take_step)(struct run *run), uint64_t steps);
MEASURED void measured_steps(struct run *run, void (*take_step)(struct run *run), uint64_t steps) {
    for (uint64_t i = 0; i < steps; i++) take_step(run);
}

static double processor_ns(void) {
    struct timespec now;
    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static double least_ns(struct run *run, const struct growth *growth) {
    double least = 1e18;
    for (int chunk = 0; chunk < CHUNKS; chunk++) {
        const double start = processor_ns();
        measured_steps(run, growth->take_step, growth->steps);
        const double ns = (processor_ns() - start) / growth->steps;
        if (ns < least) least = ns;
    }
    return least;
}

static void print_growth(const struct growth *growth) {
    printf("%s: %s\n ", growth->there, growth->step);
    for (int i = 0; i < COUNTS && growth->counts[i] != 0; i++) {
        struct run run;
        begin(&run, growth, growth->counts[i]);
        printf(" %" PRIu64 ": %.0f ns", growth->counts[i], least_ns(&run, growth));
        (void)fflush(stdout);
        end(&run);
    }
    printf("\n");
}

static int count_only(const char *name, uint64_t steps) {
    const char *dash = strchr(name, '-');
    for (size_t i = 0; dash != NULL && i < VR_COUNT_OF(growths); i++) {
        if (strncmp(growths[i].name, name, (size_t)(dash - name)) != 0 || growths[i].name[dash - name] != '\0') continue;
        struct run run;
        begin(&run, &growths[i], strtoull(dash + 1, NULL, 10));
        measured_steps(&run, growths[i].take_step, steps);
        end(&run);
        return 0;
    }
    return 2;
}

int main(int argc, char **argv) {
    if (argc == 4 && strcmp(argv[1], "count") == 0) return count_only(argv[2], strtoull(argv[3], NULL, 10));
    for (size_t i = 0; i < VR_COUNT_OF(growths); i++) {
        if (argc == 1 || (argc == 2 && strcmp(argv[1], growths[i].name) == 0)) print_growth(&growths[i]);
    }
    return argc <= 2 ? 0 : 2;
}
