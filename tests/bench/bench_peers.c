// bench_peers: compares one malloc or free with other allocators in one process, in the workloads of docs/benchmarks.md.
//
//   bench_peers                    the table: ns per call, measured in turn, the lowest of the chunks
//   bench_peers threads            only the rows of two threads
//   bench_peers warming            only a training step, by the number of steps since other allocators ran
//   bench_peers scale              growth with live blocks, pools, segments, streams and fences
//   bench_peers count WORKLOAD N   N rounds of one workload with vram alone, to count instructions:
//                                  valgrind --tool=callgrind '--toggle-collect=measured_*' ...
//
// `count` also takes workloads with a number of objects: live-COUNT, paged-COUNT, streams-COUNT, pools-COUNT and fences-COUNT. Four others
// run once, whatever N is: equals-COUNT frees equal blocks in any order, again-COUNT also requests them again, segments-COUNT frees
// blocks that each fill a segment, and release-COUNT returns free segments to the driver.
//
// Each call goes through a pointer. The harness costs 2.8 ns per pair and 18 instructions per call.
#include <string.h>
#include <unistd.h>

#include "base/base.h"
#include "peers_scaling.h"
#include "peers_threads.h"
#include "workloads.h"

// The effects of others on the processor do not count: each chunk follows uncounted ones. One suffices if calls are alike; a step of 2,000
// different calls needs about ten steps to train the branch predictor (docs/benchmarks.md).
enum { CHUNKS = 100, ROUNDS = 4000, WARM = 1, WARM_STEPS = 10, WARMING = 24 };

// Minimum duration of a row, because a shared machine is occasionally slow for a second.
#define ROW_NS 2e9

static void print_title(const char *title) { printf("%-40s", title); }

static void print_row(const char *title, const double *least) {
    print_title(title);
    for (int p = 0; p < PEERS; p++) least[p] < 1e17 ? printf(" %12.1f", least[p]) : printf(" %12s", "");
    printf("\n");
    (void)fflush(stdout);
}

// like: the template of every peer's run. knowing: the number of peers, from the first, that support the workload. warm: uncounted chunks
// before a counted one.
static void bench_warm(const char *title, workload *work, const struct workload_run *like, int knowing, int warm) {
    struct workload_run runs[PEERS];
    double least[PEERS];
    for (int p = 0; p < PEERS; p++) {
        runs[p] = *like;
        if (p != PEER_VRAM || like->peer == NULL) runs[p].peer = &peers[p];
        least[p] = 1e18;
        if (p < knowing && peers[p].take != NULL) workload_fill(&runs[p], WORKLOAD_LIVE);
    }
    const double begin = now_ns();
    for (int chunk = 0; chunk < CHUNKS || now_ns() - begin < ROW_NS; chunk++) {
        for (int p = 0; p < knowing; p++) {
            if (peers[p].take == NULL) continue;
            (void)work(&runs[p], (uint64_t)warm * ROUNDS);
            const double ns = workload_ns_per_call(&runs[p], work, ROUNDS);
            if (ns < least[p]) least[p] = ns;
        }
    }
    for (int p = 0; p < knowing; p++) {
        if (peers[p].take != NULL) workload_empty(&runs[p]);
    }
    print_row(title, least);
}

static void bench(const char *title, workload *work, const struct workload_run *like, int knowing) {
    bench_warm(title, work, like, knowing, WARM);
}

// Each stream has a live block, so the pairs make the device's peak.
static void bench_streams(uint64_t count, const char *what, workload *work) {
    char title[64];
    for (uint64_t i = 0; i < count; i++) (void)peers[PEER_VRAM].take(4096, peer_streams[i]);
    if (vram_reset_peak_stats(allocator, 0) != VRAM_OK) die("the peaks stay");
    (void)snprintf(title, sizeof title, "%" PRIu64 " streams in turn, at the peak%s", count, what);
    bench(title, work, &(struct workload_run){.size = 4096, .stream_count = count}, 1);
}

static void bench_team(const char *title, enum team_work work) {
    struct team_figure figures[PEERS];
    teams_measure(work, figures);
    print_title(title);
    for (int p = 0; p < PEERS; p++) {
        char text[32] = "";
        if (peers[p].take != NULL) (void)snprintf(text, sizeof text, "%.1f (%.0f)", figures[p].least, figures[p].median);
        printf(" %12s", text);
    }
    printf("\n");
    (void)fflush(stdout);
}

static void print_head(void) {
    print_title("ns per call, least of chunks (median)");
    for (int p = 0; p < PEERS; p++) printf(" %12s", peers[p].name);
    printf("\n");
}

// Raises the device's earlier peak, as in a program that has run for a while.
static void leave_peak_behind(void) {
    static uint64_t blocks[10000];
    for (size_t i = 0; i < VR_COUNT_OF(blocks); i++) blocks[i] = peers[PEER_VRAM].take(1024, 0);
    for (size_t i = 0; i < VR_COUNT_OF(blocks); i++) peers[PEER_VRAM].give(blocks[i]);
}

static void print_threads(void) {
    leave_peak_behind();
    bench_team("2 threads, own streams", TEAM_OWN_STREAMS);
    bench_team("2 threads, one stream", TEAM_ONE_STREAM);
    bench_team("one thread allocates, another frees", TEAM_HAND_OVER);
    bench_team("mixed to 64 KiB, one thread", TEAM_MIXED_ALONE);
    bench_team("the same, 2 threads, own streams", TEAM_MIXED);
}

static void print_table(void) {
    uint64_t *sizes = workload_sizes(512, 19);
    bench("pair of 1 KiB", measured_pairs, &(struct workload_run){.size = 1024, .stream_count = 1}, PEERS);
    bench("pair of 4 MiB", measured_pairs, &(struct workload_run){.size = 4 << 20, .stream_count = 1}, PEERS);
    bench("pair of 1 KiB in a private pool", measured_pairs, &(struct workload_run){.peer = &peer_pool, .size = 1024, .stream_count = 1},
          1);
    bench("512 B to 256 MiB, 4,096 live", measured_mixed, &(struct workload_run){.sizes = sizes}, PEERS);
    const struct workload_run steps = {.steps = workload_trace()};
    bench_warm("training step, warm", measured_trace, &steps, PEERS, WARM_STEPS);
    bench("training steps 3 and 4 after others", measured_trace, &steps, PEERS);
    bench("malloc, record_stream, free", measured_uses, &(struct workload_run){.size = 4096}, 1);
    bench_streams(2, "", measured_pairs);
    bench_streams(16, "", measured_pairs);
    bench_streams(256, "", measured_pairs);
    bench_streams(16, ", unlike", measured_unlike);
    print_threads(); // last: locks become atomic instructions with the second thread
    free(sizes);
}

// Prints each peer's steps after one chunk of each other peer.
static void print_warming(void) {
    static double least[WARMING][PEERS];
    struct workload_run runs[PEERS];
    for (int p = 0; p < PEERS; p++) {
        runs[p] = (struct workload_run){.peer = &peers[p], .steps = workload_trace()};
        workload_fill(&runs[p], WORKLOAD_LIVE);
        for (int step = 0; step < WARMING; step++) least[step][p] = 1e18;
    }
    for (int chunk = 0; chunk < CHUNKS * PEERS; chunk++) {
        const int p = chunk % PEERS;
        for (int other = 0; other < PEERS; other++) {
            if (other != p && peers[other].take != NULL) (void)measured_trace(&runs[other], ROUNDS);
        }
        for (int step = 0; step < WARMING && peers[p].take != NULL; step++) {
            const double ns = workload_ns_per_call(&runs[p], measured_trace, TRACE_STEPS);
            if (ns < least[step][p]) least[step][p] = ns;
        }
    }
    for (int step = 0; step < WARMING; step++) {
        char title[64];
        (void)snprintf(title, sizeof title, "training step %d after others", step + 1);
        print_row(title, least[step]);
    }
}

// Returns the number after a prefix ("live-1000"); 0 for another name.
static uint64_t number_after(const char *name, const char *prefix) {
    const size_t length = strlen(prefix);
    return strncmp(name, prefix, length) == 0 ? strtoull(name + length, NULL, 10) : 0;
}

// Allocates this many blocks of one size, in random order.
static void fill_equal(struct workload_run *run, uint64_t count, uint64_t size) {
    static uint64_t sizes[WORKLOAD_SIZES];
    for (int i = 0; i < WORKLOAD_SIZES; i++) sizes[i] = size;
    run->sizes = sizes;
    workload_fill(run, count);
    workload_shuffle(run->live, count);
}

// Prepares a workload with a number in its name; NULL for another name.
static workload *prepare_growing(const char *name, struct workload_run *run) {
    const uint64_t live = number_after(name, "live-"), pools = number_after(name, "pools-"), equals = number_after(name, "equals-"),
                   again = number_after(name, "again-"), segments = number_after(name, "segments-"),
                   release = number_after(name, "release-"), fences = number_after(name, "fences-"), paged = number_after(name, "paged-");
    if (paged != 0) {
        if (vram_configure(allocator, "paged:True", NULL) != VRAM_OK) die("no paged memory");
        run->sizes = workload_sizes(1 << 20, 8);
        workload_fill(run, paged);
        return measured_mixed;
    }
    if (live != 0) {
        run->sizes = workload_sizes(512, 8);
        workload_fill(run, live);
        return measured_mixed;
    }
    if (pools != 0) {
        run->peer = &peer_pool;
        pools_make(pools);
        return measured_pools;
    }
    if (equals + again != 0) fill_equal(run, equals + again, 1024);
    if (segments + release != 0) fill_equal(run, segments + release, 20 << 20);
    for (uint64_t i = 0; i < release; i++) run->peer->give(run->live[i]); // not counted
    if (fences != 0) fences_make(fences);
    if (again != 0) return measured_again;
    return equals + segments != 0 ? measured_frees : release != 0 ? measured_release : fences != 0 ? measured_pairs : NULL;
}

static workload *prepare(const char *name, struct workload_run *run) {
    const uint64_t streams = strcmp(name, "streams") == 0 ? 16 : number_after(name, "streams-");
    workload *growing = prepare_growing(name, run);
    if (growing != NULL) return growing;
    if (streams != 0 && streams <= PEER_STREAMS) {
        run->stream_count = streams;
        for (uint64_t i = 0; i < streams; i++) (void)run->peer->take(run->size, peer_streams[i]);
        if (vram_reset_peak_stats(allocator, 0) != VRAM_OK) die("the peaks stay");
        return measured_pairs;
    }
    if (strcmp(name, "pool") == 0) run->peer = &peer_pool;
    if (strcmp(name, "mixed") == 0) run->sizes = workload_sizes(512, 19);
    if (strcmp(name, "trace") == 0) run->steps = workload_trace();
    workload_fill(run, WORKLOAD_LIVE);
    if (run->sizes != NULL) return measured_mixed;
    if (run->steps != NULL) return measured_trace;
    if (strcmp(name, "record_stream") == 0) return measured_uses;
    return strcmp(name, "pair") == 0 || strcmp(name, "pool") == 0 ? measured_pairs : NULL;
}

static int count_only(const char *name, uint64_t rounds) {
    struct workload_run run = {.peer = &peers[PEER_VRAM], .size = 1024, .stream_count = 1};
    workload *work = prepare(name, &run);
    if (work == NULL) return 2;
    const double begin = now_ns();
    const uint64_t calls = work(&run, rounds);
    printf("%" PRIu64 " calls of %.1f ns\n", calls, (now_ns() - begin) / (double)calls);
    return 0;
}

int main(int argc, char **argv) {
    // jemalloc needs more static TLS than a late-loaded library gets by default.
    if (argc <= 2 && getenv("GLIBC_TUNABLES") == NULL && setenv("GLIBC_TUNABLES", "glibc.rtld.optional_static_tls=16384", 1) == 0) {
        (void)execv("/proc/self/exe", argv);
    }
    const bool scale = argc == 2 && strcmp(argv[1], "scale") == 0, threads = argc == 2 && strcmp(argv[1], "threads") == 0,
               warming = argc == 2 && strcmp(argv[1], "warming") == 0, count = argc == 4 && strcmp(argv[1], "count") == 0;
    if (argc != 1 && !scale && !threads && !warming && !count) return 2;
    peers_open();
    if (count) return count_only(argv[2], strtoull(argv[3], NULL, 10));
    peers_find();
    if (scale) {
        print_scaling();
    } else {
        print_head();
        threads ? print_threads() : warming ? print_warming() : print_table();
    }
    return 0;
}
