#include "peers_scaling.h"

#include <time.h>

#include "workloads.h"
#include "vram/sim.h"

enum { CHUNKS = 20, MOST_POOLS = 4000, MOST_LIVE = 1000000, MOST_SEGMENTS = 100000, MOST_OF_PEERS = 100000, ROUNDS = 20000 };

// Prints a figure for each installed peer.
static void print_peers(const char *title, uint64_t count, const double *figures, const char *what) {
    printf("%-13s %8" PRIu64 "  ", title, count);
    for (int p = 0; p < PEERS; p++) figures[p] > 0 ? printf(" %9.1f", figures[p]) : printf(" %9s", "");
    printf("  ns %s\n", what);
    (void)fflush(stdout);
}

static double least_of_chunks(struct workload_run *run, workload *work) {
    double least = 1e18;
    for (int chunk = 0; chunk < CHUNKS; chunk++) {
        const double ns = workload_ns_per_call(run, work, ROUNDS);
        if (ns < least) least = ns;
    }
    return least;
}

// Mixed sizes among more and more blocks, for all allocators in turn, chunk by chunk. A million such blocks use 64 GB of the host's address
// space.
static void scale_live(void) {
    uint64_t *sizes = workload_sizes(512, 8);
    for (uint64_t count = 100; count <= MOST_LIVE; count *= 10) {
        struct workload_run runs[PEERS];
        double least[PEERS] = {0};
        const int knowing = count <= MOST_OF_PEERS ? PEERS : 1;
        for (int p = 0; p < knowing; p++) {
            runs[p] = (struct workload_run){.peer = &peers[p], .sizes = sizes};
            if (peers[p].take != NULL) workload_fill(&runs[p], count);
        }
        for (int chunk = 0; chunk < CHUNKS; chunk++) {
            for (int p = 0; p < knowing; p++) {
                if (peers[p].take == NULL) continue;
                const double ns = workload_ns_per_call(&runs[p], measured_mixed, ROUNDS);
                if (least[p] == 0 || ns < least[p]) least[p] = ns;
            }
        }
        for (int p = 0; p < knowing; p++) {
            if (peers[p].take != NULL) workload_empty(&runs[p]);
        }
        print_peers("live blocks", count, least, "per call, mixed");
    }
    free(sizes);
}

// Returns this process's CPU time: a one-time measurement is repeated until nothing else used the processor.
static double processor_ns(void) {
    struct timespec now;
    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

// Equal blocks: allocates all, and frees all in random order.
static void scale_equals(void) {
    uint64_t *blocks = calloc(MOST_LIVE, sizeof *blocks);
    if (blocks == NULL) die("no memory");
    for (uint64_t count = 100; count <= MOST_LIVE; count *= 10) {
        double take[PEERS] = {0}, give[PEERS] = {0};
        for (int p = 0; p < PEERS; p++) {
            if (peers[p].take == NULL) continue;
            double begin = processor_ns();
            for (uint64_t i = 0; i < count; i++) blocks[i] = peers[p].take(1024, 0);
            take[p] = (processor_ns() - begin) / (double)count;
            workload_shuffle(blocks, count);
            begin = processor_ns();
            for (uint64_t i = 0; i < count; i++) peers[p].give(blocks[i]);
            give[p] = (processor_ns() - begin) / (double)count;
        }
        print_peers("equal blocks", count, take, "each to take");
        print_peers("equal blocks", count, give, "each to free in any order");
        if (vram_empty_cache(allocator) != VRAM_OK) die("the cache was not emptied");
    }
    free(blocks);
}

static void scale_streams(void) {
    for (uint64_t count = 1; count <= PEER_STREAMS; count *= 4) {
        for (uint64_t i = 0; i < count; i++) (void)peers[PEER_VRAM].take(4096, peer_streams[i]); // so that each pair makes a new peak
        if (vram_reset_peak_stats(allocator, 0) != VRAM_OK) die("the peaks stay");
        struct workload_run run = {.peer = &peers[PEER_VRAM], .size = 4096, .stream_count = count};
        printf("streams       %8" PRIu64 "  %9.1f ns per call in turn, at the peak\n", count, least_of_chunks(&run, measured_pairs));
    }
}

static struct vram_pool *pools[MOST_POOLS];
static uint64_t kept[MOST_POOLS];
static size_t pools_made;

void pools_make(size_t count) {
    for (; pools_made < count && pools_made < MOST_POOLS; pools_made++) {
        if (vram_pool_create(allocator, 0, NULL, &pools[pools_made]) != VRAM_OK) die("no pool");
        if (vram_pool_malloc(pools[pools_made], 1024, 0, &kept[pools_made]) != VRAM_OK) die("no memory in a pool");
    }
}

uint64_t measured_pools(struct workload_run *run, uint64_t rounds) {
    for (uint64_t i = 0; i < rounds; i++) {
        private_pool = pools[i % pools_made];
        run->peer->give(run->peer->take(run->size, 0));
    }
    return 2 * rounds;
}

static void scale_pools(void) {
    for (size_t count = 1; count <= MOST_POOLS; count = count == 1 ? 40 : count * 10) {
        pools_make(count);
        struct workload_run run = {.peer = &peer_pool, .size = 1024};
        printf("private pools %8zu  %9.1f ns per call in turn\n", count, least_of_chunks(&run, measured_pools));
    }
    for (size_t i = 0; i < pools_made; i++) {
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
        double begin = processor_ns();
        for (uint64_t i = 0; i < count; i++) blocks[i] = vram->take(20 << 20, 0);
        const double take = (processor_ns() - begin) / (double)count;
        workload_shuffle(blocks, count);
        begin = processor_ns();
        for (uint64_t i = 0; i < count; i++) vram->give(blocks[i]);
        const double give = (processor_ns() - begin) / (double)count;
        begin = processor_ns();
        if (vram_empty_cache(allocator) != VRAM_OK) die("the cache was not emptied");
        printf("segments      %8" PRIu64 "  %9.1f ns each to get, %.1f to free in any order, %.1f to release\n", count, take, give,
               (processor_ns() - begin) / (double)count);
    }
    free(blocks);
}

// Makes a block wait for each of this many busy streams, while pairs continue elsewhere.
void fences_make(uint64_t count) {
    static uint64_t waiting;
    const struct peer *vram = &peers[PEER_VRAM];
    for (; waiting < count && waiting + 1 < PEER_STREAMS; waiting++) {
        const uint64_t stream = peer_streams[waiting + 1], address = vram->take(4096, 0);
        if (vram_sim_busy(simulator, 0, stream, UINT64_MAX / 8) != VRAM_OK) die("a stream has no work");
        if (vram_record_stream(allocator, address, stream) != VRAM_OK) die("vram_record_stream failed");
        vram->give(address);
    }
}

static void scale_fences(void) {
    for (uint64_t count = 1; count < PEER_STREAMS; count *= 10) {
        fences_make(count);
        struct workload_run run = {.peer = &peers[PEER_VRAM], .size = 4096, .stream_count = 1};
        printf("fences wait   %8" PRIu64 "  %9.1f ns per call of a pair\n", count, least_of_chunks(&run, measured_pairs));
    }
}

void print_scaling(void) {
    printf("%-13s %8s  ", "what", "how many");
    for (int p = 0; p < PEERS; p++) printf(" %9s", peers[p].name);
    printf("\n");
    scale_live();
    scale_equals();
    scale_pools();
    scale_segments();
    scale_streams();
    scale_fences();
}
