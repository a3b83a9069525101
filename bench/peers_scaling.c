#include "peers_scaling.h"

#include "workloads.h"

enum { CHUNKS = 20, MOST_POOLS = 4000, MOST_LIVE = 1000000, MOST_SEGMENTS = 100000, ROUNDS = 20000 };

static double least_of_chunks(struct workload_run *run, workload *work) {
    double least = 1e18;
    for (int chunk = 0; chunk < CHUNKS; chunk++) {
        const double ns = workload_ns_per_call(run, work, ROUNDS);
        if (ns < least) least = ns;
    }
    return least;
}

static void shuffle(uint64_t *items, uint64_t count) {
    uint64_t random = 5;
    for (uint64_t i = count; i-- > 1;) {
        const uint64_t other = next_random(&random) % (i + 1), item = items[i];
        items[i] = items[other], items[other] = item;
    }
}

// Mixed sizes among more and more blocks.
static void scale_live(void) {
    uint64_t *sizes = workload_sizes(512, 8);
    for (uint64_t count = 100; count <= MOST_LIVE; count *= 10) {
        struct workload_run run = {.peer = &peers[PEER_VRAM], .sizes = sizes};
        workload_fill(&run, count);
        printf("live blocks   %8" PRIu64 "  %9.1f ns per call, mixed\n", count, least_of_chunks(&run, measured_mixed));
        workload_empty(&run);
    }
    free(sizes);
}

// Equal blocks, all taken, and all given back in any order.
static void scale_equals(void) {
    const struct peer *vram = &peers[PEER_VRAM];
    uint64_t *blocks = calloc(MOST_LIVE, sizeof *blocks);
    if (blocks == NULL) die("no memory");
    for (uint64_t count = 100; count <= MOST_LIVE; count *= 10) {
        double begin = now_ns();
        for (uint64_t i = 0; i < count; i++) blocks[i] = vram->take(1024, 0);
        const double take = (now_ns() - begin) / (double)count;
        shuffle(blocks, count);
        begin = now_ns();
        for (uint64_t i = 0; i < count; i++) vram->give(blocks[i]);
        printf("equal blocks  %8" PRIu64 "  %9.1f ns each to take, %.1f to free in any order\n", count, take,
               (now_ns() - begin) / (double)count);
        if (vram_empty_cache(allocator) != VRAM_OK) die("the cache was not emptied");
    }
    free(blocks);
}

static void scale_streams(void) {
    for (uint64_t count = 1; count <= PEER_STREAMS; count *= 4) {
        for (uint64_t i = 0; i < count; i++) (void)peers[PEER_VRAM].take(4096, peer_streams[i]); // so that each pair is the most there was
        if (vram_reset_peak_stats(allocator, 0) != VRAM_OK) die("the peaks stay");
        struct workload_run run = {.peer = &peers[PEER_VRAM], .size = 4096, .stream_count = count};
        printf("streams       %8" PRIu64 "  %9.1f ns per call in turn, at the peak\n", count, least_of_chunks(&run, measured_pairs));
    }
}

static void scale_pools(void) {
    static struct vram_pool *pools[MOST_POOLS];
    static uint64_t kept[MOST_POOLS];
    size_t made = 0;
    for (size_t count = 1; count <= MOST_POOLS; count = count == 1 ? 40 : count * 10) {
        for (; made < count; made++) {
            if (vram_pool_create(allocator, 0, NULL, &pools[made]) != VRAM_OK) die("no pool");
            if (vram_pool_malloc(pools[made], 1024, 0, &kept[made]) != VRAM_OK) die("no memory in a pool");
        }
        double least = 1e18;
        for (int chunk = 0; chunk < CHUNKS; chunk++) {
            const double begin = now_ns();
            for (size_t i = 0; i < ROUNDS; i++) {
                private_pool = pools[i % count];
                peer_pool.give(peer_pool.take(1024, 0));
            }
            const double ns = (now_ns() - begin) / (2 * ROUNDS);
            if (ns < least) least = ns;
        }
        printf("private pools %8zu  %9.1f ns per call in turn\n", count, least);
    }
    for (size_t i = 0; i < made; i++) {
        peer_pool.give(kept[i]);
        vram_pool_release(pools[i]);
    }
}

static void scale_segments(void) {
    const struct peer *vram = &peers[PEER_VRAM];
    uint64_t *blocks = calloc(MOST_SEGMENTS, sizeof *blocks);
    if (blocks == NULL) die("no memory");
    for (uint64_t count = 1; count <= MOST_SEGMENTS; count *= 10) {
        if (vram_empty_cache(allocator) != VRAM_OK) die("the cache was not emptied");
        double begin = now_ns();
        for (uint64_t i = 0; i < count; i++) blocks[i] = vram->take(20 << 20, 0);
        const double take = (now_ns() - begin) / (double)count;
        shuffle(blocks, count);
        begin = now_ns();
        for (uint64_t i = 0; i < count; i++) vram->give(blocks[i]);
        const double give = (now_ns() - begin) / (double)count;
        begin = now_ns();
        if (vram_empty_cache(allocator) != VRAM_OK) die("the cache was not emptied");
        printf("segments      %8" PRIu64 "  %9.1f ns each to get, %.1f to free in any order, %.1f to release\n", count, take, give,
               (now_ns() - begin) / (double)count);
    }
    free(blocks);
}

// A block waits for each of so many streams, which are busy, while pairs go on elsewhere.
static void scale_fences(void) {
    const struct peer *vram = &peers[PEER_VRAM];
    uint64_t waiting = 0;
    for (uint64_t count = 1; count < PEER_STREAMS; count *= 10) {
        for (; waiting < count; waiting++) {
            const uint64_t stream = peer_streams[waiting + 1], address = vram->take(4096, 0);
            if (vram_sim_busy(simulator, 0, stream, UINT64_MAX / 8) != VRAM_OK) die("a stream has no work");
            if (vram_record_stream(allocator, address, stream) != VRAM_OK) die("vram_record_stream failed");
            vram->give(address);
        }
        struct workload_run run = {.peer = vram, .size = 4096, .stream_count = 1};
        printf("fences wait   %8" PRIu64 "  %9.1f ns per call of a pair\n", count, least_of_chunks(&run, measured_pairs));
    }
}

void print_scaling(void) {
    scale_live();
    scale_equals();
    scale_pools();
    scale_segments();
    scale_streams();
    scale_fences();
}
