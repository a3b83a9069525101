// async_ops: random operations on an allocator whose cache is the driver's (backend:cudaMallocAsync), or that has no cache (caching off),
// compared with a simple table. The driver chooses addresses: a block must not overlap another, and its reported facts must be those given.
//
// async_ops [--seed N] [--seeds COUNT] [--ops M] [--verbose]
//
// Seed n runs without a cache if n % 4 == 3. Exit status: 0 all agree, 1 a difference (with the seed), 2 usage.
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/base.h"
#include "driver/driver.h"
#include "model/conf.h"
#include "support/random.h"
#include "support/world.h"
#include "vram/pool.h"
#include "vram/sim.h"

enum { MAX_LIVE = 512, DEVICES = 2, CAPTURES = 2 };

struct entry {
    uint64_t address, size_bytes, stream;
    uint32_t device;
    bool direct;      // allocated while caching was off
    uint64_t capture; // the run's capture during which it was allocated; 0: none
    struct vram_pool_id pool;
    bool used_elsewhere;
};

struct capture {
    uint64_t number; // 0: not capturing
    uint64_t stream;
    struct vram_pool *pool;
};

// The expected statistics of a device.
struct expected {
    struct vram_stat allocation, active, allocated_bytes, active_bytes, requested_bytes;
    uint64_t limit_bytes;
};

struct run {
    uint64_t random;
    bool uncached, verbose, failed;
    uint64_t operation, memory_bytes, captures_made, target;
    uint32_t device_count;
    struct vr_world world;
    struct entry live[MAX_LIVE], postponed[MAX_LIVE];
    size_t live_count, postponed_count;
    struct capture captures[CAPTURES]; // on device 0
    struct expected expected[DEVICES];
    uint64_t told[4]; // counts: requests, first and second halves of frees, failures
};

static bool differ(struct run *run, const char *what, uint64_t found, uint64_t expected) {
    if (!run->failed)
        printf("operation %" PRIu64 ": %s: found 0x%" PRIx64 ", expected 0x%" PRIx64 "\n", run->operation, what, found, expected);
    run->failed = true;
    return false;
}

static uint64_t draw(struct run *run, uint64_t limit) { return vr_random_below(&run->random, limit); }

static void change(struct vram_stat *stat, int64_t by) {
    stat->current += by;
    if (by > 0) stat->allocated += by;
    if (by < 0) stat->freed -= by;
    if (stat->current > stat->peak) stat->peak = stat->current;
}

// --- captures ---------------------------------------------------------------------------------------------------------------

static uint64_t capture_of(const struct run *run, uint32_t device, uint64_t stream) {
    for (size_t i = 0; device == 0 && i < CAPTURES; i++)
        if (run->captures[i].number && run->captures[i].stream == stream) return run->captures[i].number;
    return 0;
}

static bool any_capture(const struct run *run) { return run->captures[0].number || run->captures[1].number; }

static bool do_capture_begin(struct run *run) {
    struct capture *capture = &run->captures[draw(run, CAPTURES)];
    const uint64_t stream = run->world.stream[0][1 + draw(run, 3)];
    if (capture->number || capture_of(run, 0, stream)) return true;
    if (run->verbose) printf("%6" PRIu64 " capture stream 0x%" PRIx64 "\n", run->operation, stream);
    if (vram_pool_create(run->world.allocator, 0, NULL, &capture->pool) != VRAM_OK) return differ(run, "pool", 0, 1);
    const enum vram_status status = vram_capture_begin(capture->pool, stream, VRAM_CAPTURE_RELAXED, NULL);
    if (status != VRAM_OK) return differ(run, "capture begin", status, VRAM_OK);
    capture->stream = stream;
    capture->number = ++run->captures_made;
    return true;
}

// Ends a capture, launches its graph or not, and destroys it.
static bool end_capture(struct run *run, struct capture *capture) {
    uint64_t graph = 0, exec = 0;
    struct vram_driver *sim = run->world.sim;
    if (run->verbose) printf("%6" PRIu64 " end capture stream 0x%" PRIx64 "\n", run->operation, capture->stream);
    struct vram_error error = {0};
    const enum vram_status status = vram_capture_end(capture->pool, capture->stream, &graph, &error);
    if (status != VRAM_OK) return differ(run, error.message, status, VRAM_OK);
    const bool launched = draw(run, 2) && vr_cu(sim, graph_instantiate, &exec, graph, 0) == VR_CU_SUCCESS;
    if (launched) {
        const vr_cu_result result = vr_cu(sim, graph_launch, exec, capture->stream);
        if (result != VR_CU_SUCCESS && result != VR_CU_OUT_OF_MEMORY) return differ(run, "launch", (uint64_t)result, 0);
        if (vr_cu(sim, graph_exec_destroy, exec) != VR_CU_SUCCESS) return differ(run, "executable graph", 0, 1);
    }
    if (vr_cu(sim, graph_destroy, graph) != VR_CU_SUCCESS) return differ(run, "graph", graph, 1);
    vram_pool_release(capture->pool);
    *capture = (struct capture){0};
    return true;
}

static bool do_capture_end(struct run *run) {
    struct capture *capture = &run->captures[draw(run, CAPTURES)];
    return capture->number == 0 || end_capture(run, capture);
}

// --- requests and frees -----------------------------------------------------------------------------------------------------

static bool overlaps(const struct entry *a, const struct entry *b) {
    return a->address < b->address + b->size_bytes && b->address < a->address + a->size_bytes;
}

static bool check_new(struct run *run, const struct entry *fresh) {
    for (size_t i = 0; i < run->live_count; i++)
        if (overlaps(fresh, &run->live[i])) return differ(run, "overlap", fresh->address, run->live[i].address);
    for (size_t i = 0; i < run->postponed_count; i++)
        if (overlaps(fresh, &run->postponed[i])) return differ(run, "overlap", fresh->address, run->postponed[i].address);
    return fresh->address % 512 == 0 || differ(run, "alignment", fresh->address, 0);
}

// Frees the postponed blocks whose streams no longer capture, at the next request on the device.
static void free_postponed(struct run *run, uint32_t device) {
    for (size_t i = 0; i < run->postponed_count;) {
        const struct entry *entry = &run->postponed[i];
        if (entry->device != device || capture_of(run, device, entry->stream) != 0) {
            i++;
            continue;
        }
        struct expected *expected = &run->expected[device];
        change(&expected->active, -1);
        change(&expected->active_bytes, -(int64_t)entry->size_bytes);
        change(&expected->requested_bytes, -(int64_t)entry->size_bytes);
        run->told[2]++;
        run->postponed[i] = run->postponed[--run->postponed_count];
    }
}

// Checks a refusal: the limit is exceeded, or the driver has no room for another chunk.
static bool check_refusal(struct run *run, const struct entry *wanted, bool limited) {
    run->told[3] += !wanted->direct;
    if (limited) return true;
    const uint64_t used = vram_sim_memory_used(run->world.sim, wanted->device), unit = wanted->direct ? 1 : 2 * VR_MIB;
    const bool full = vr_round_up(wanted->size_bytes, unit) > run->memory_bytes - used;
    return full || any_capture(run) || differ(run, "refused with memory left", run->memory_bytes - used, wanted->size_bytes);
}

static bool do_malloc(struct run *run) {
    if (run->live_count + run->postponed_count >= MAX_LIVE) return true;
    struct entry fresh = {.device = (uint32_t)draw(run, run->device_count)};
    fresh.stream = run->world.stream[fresh.device][draw(run, 4)];
    fresh.size_bytes = draw(run, 3) ? 1 + draw(run, VR_MIB) : 1 + draw(run, 60 * VR_MIB);
    fresh.direct = !vram_caching(run->world.allocator);
    fresh.capture = capture_of(run, fresh.device, fresh.stream);
    // Skip uncached requests during captures: cuMemAlloc is only allowed during a relaxed capture from a relaxed thread.
    if (fresh.direct && any_capture(run)) return true;
    struct expected *expected = &run->expected[fresh.device];
    if (!fresh.direct) free_postponed(run, fresh.device);
    const bool limited = !fresh.direct && (uint64_t)expected->active_bytes.current + fresh.size_bytes > expected->limit_bytes;
    if (run->verbose) printf("%6" PRIu64 " malloc %" PRIu64 " stream 0x%" PRIx64 "\n", run->operation, fresh.size_bytes, fresh.stream);
    const enum vram_status status = vram_malloc(run->world.allocator, fresh.device, fresh.size_bytes, fresh.stream, &fresh.address);
    if (status == VRAM_OUT_OF_MEMORY) return check_refusal(run, &fresh, limited);
    if (status != VRAM_OK || limited) return differ(run, "malloc", status, limited ? VRAM_OUT_OF_MEMORY : VRAM_OK);
    if (!check_new(run, &fresh)) return false;
    for (size_t i = 0; i < CAPTURES; i++)
        if (fresh.capture != 0 && run->captures[i].number == fresh.capture) fresh.pool = vram_get_pool_id(run->captures[i].pool);
    run->live[run->live_count++] = fresh;
    run->told[0]++;
    if (fresh.direct) return true;
    change(&expected->allocation, 1);
    change(&expected->active, 1);
    change(&expected->allocated_bytes, (int64_t)fresh.size_bytes);
    change(&expected->active_bytes, (int64_t)fresh.size_bytes);
    change(&expected->requested_bytes, (int64_t)fresh.size_bytes);
    return true;
}

static bool free_at(struct run *run, size_t index) {
    const struct entry gone = run->live[index];
    struct expected *expected = &run->expected[gone.device];
    if (gone.direct && any_capture(run)) return true;
    // Using a stream that captures or captured would require the program to order the streams.
    if (gone.used_elsewhere && any_capture(run)) return true;
    const uint64_t captures = capture_of(run, gone.device, gone.stream);
    const bool put_off = !gone.direct && captures != 0 && captures != gone.capture;
    if (run->verbose) printf("%6" PRIu64 " free 0x%" PRIx64 "%s\n", run->operation, gone.address, put_off ? ", put off" : "");
    const enum vram_status status = vram_free(run->world.allocator, gone.address);
    if (status != VRAM_OK) return differ(run, "free", status, VRAM_OK);
    run->live[index] = run->live[--run->live_count];
    run->told[1]++;
    run->told[2] += gone.direct;
    if (gone.direct) return true;
    change(&expected->allocation, -1);
    change(&expected->allocated_bytes, -(int64_t)gone.size_bytes);
    if (put_off) {
        run->postponed[run->postponed_count++] = gone;
        return true;
    }
    run->told[2]++;
    change(&expected->active, -1);
    change(&expected->active_bytes, -(int64_t)gone.size_bytes);
    change(&expected->requested_bytes, -(int64_t)gone.size_bytes);
    return true;
}

static bool do_free(struct run *run) { return run->live_count == 0 || free_at(run, draw(run, run->live_count)); }

static bool do_record_stream(struct run *run) {
    if (run->live_count == 0) return true;
    struct entry *entry = &run->live[draw(run, run->live_count)];
    const uint64_t stream = run->world.stream[entry->device][draw(run, 4)];
    const enum vram_status status = vram_record_stream(run->world.allocator, entry->address, stream);
    entry->used_elsewhere = entry->used_elsewhere || (stream != entry->stream && !entry->direct);
    return status == VRAM_OK || differ(run, "record_stream", status, VRAM_OK);
}

static bool do_bad_pointer(struct run *run) {
    const uint64_t address = run->live_count ? run->live[0].address + 1 : 1;
    const enum vram_status status = vram_free(run->world.allocator, address);
    if (run->postponed_count && vram_free(run->world.allocator, run->postponed[0].address) != VRAM_INVALID_POINTER)
        return differ(run, "free of a block that waits", 0, VRAM_INVALID_POINTER);
    return status == VRAM_INVALID_POINTER || differ(run, "bad pointer", status, VRAM_INVALID_POINTER);
}

// --- other operations -------------------------------------------------------------------------------------------------------

static bool do_empty_cache(struct run *run) {
    for (uint32_t device = 0; device < run->device_count && !run->uncached; device++) free_postponed(run, device);
    const enum vram_status status = vram_empty_cache(run->world.allocator);
    return status == VRAM_OK || differ(run, "empty_cache", status, VRAM_OK);
}

static bool do_set_limit(struct run *run) {
    const uint32_t device = (uint32_t)draw(run, run->device_count);
    run->expected[device].limit_bytes = draw(run, 2) ? UINT64_MAX : draw(run, run->memory_bytes);
    const enum vram_status status = vram_set_memory_limit(run->world.allocator, device, run->expected[device].limit_bytes);
    return status == VRAM_OK || differ(run, "limit", status, VRAM_OK);
}

static bool do_busy(struct run *run) {
    const uint32_t device = (uint32_t)draw(run, run->device_count);
    const uint64_t stream = run->world.stream[device][draw(run, 4)];
    const enum vram_status status = vram_sim_busy(run->world.sim, device, stream, draw(run, 1000000));
    return status == VRAM_OK || differ(run, "work", status, VRAM_OK);
}

static bool do_advance(struct run *run) {
    const enum vram_status status = vram_sim_advance(run->world.sim, draw(run, 1000000));
    return status == VRAM_OK || differ(run, "advance", status, VRAM_OK);
}

static bool do_toggle(struct run *run) {
    vram_set_caching(run->world.allocator, !run->uncached && draw(run, 4) != 0);
    return true;
}

static bool do_reset_peak(struct run *run) {
    const uint32_t device = (uint32_t)draw(run, run->device_count);
    struct expected *expected = &run->expected[device];
    struct vram_stat *const stats[] = {&expected->allocation, &expected->active, &expected->allocated_bytes, &expected->active_bytes,
                                       &expected->requested_bytes};
    for (size_t i = 0; i < VR_COUNT_OF(stats); i++) stats[i]->peak = stats[i]->current;
    const enum vram_status status = vram_reset_peak_stats(run->world.allocator, device);
    return status == VRAM_OK || differ(run, "reset_peak", status, VRAM_OK);
}

// --- comparing --------------------------------------------------------------------------------------------------------------

static bool equal_stat(struct run *run, const char *name, const struct vram_stat *found, const struct vram_stat *expected) {
    if (found->current != expected->current) return differ(run, name, (uint64_t)found->current, (uint64_t)expected->current);
    if (found->peak != expected->peak) return differ(run, name, (uint64_t)found->peak, (uint64_t)expected->peak);
    if (found->allocated != expected->allocated) return differ(run, name, (uint64_t)found->allocated, (uint64_t)expected->allocated);
    return found->freed == expected->freed || differ(run, name, (uint64_t)found->freed, (uint64_t)expected->freed);
}

struct walk {
    struct run *run;
    uint32_t device;
    size_t seen;
};

static bool visit(const struct vram_block_view *view, void *user) {
    struct walk *walk = user;
    const struct run *run = walk->run;
    const bool waits = view->state == VRAM_BLOCK_PENDING;
    const struct entry *entries = waits ? run->postponed : run->live;
    const size_t count = waits ? run->postponed_count : run->live_count;
    for (size_t i = 0; i < count; i++) {
        const struct entry *entry = &entries[i];
        if (entry->address != view->block.address || entry->device != walk->device) continue;
        const bool same = entry->size_bytes == view->block.size_bytes && entry->stream == view->block.stream &&
                          entry->pool.first == view->block.pool.first && entry->pool.second == view->block.pool.second;
        walk->seen++;
        return same || differ(walk->run, "facts of a block", view->block.address, entry->size_bytes);
    }
    return differ(walk->run, "a block that is none", view->block.address, 0);
}

static bool equal_device(struct run *run, uint32_t device) {
    struct vram_stats stats;
    const struct expected *expected = &run->expected[device];
    if (vram_get_stats(run->world.allocator, device, &stats) != VRAM_OK) return differ(run, "stats", 1, 0);
    struct walk walk = {.run = run, .device = device};
    if (vram_walk(run->world.allocator, device, visit, &walk) != VRAM_OK || run->failed) return false;
    size_t count = 0;
    for (size_t i = 0; i < run->live_count; i++) count += run->live[i].device == device;
    for (size_t i = 0; i < run->postponed_count; i++) count += run->postponed[i].device == device;
    if (walk.seen != count) return differ(run, "blocks of the picture", walk.seen, count);
#define EQUAL(name) equal_stat(run, #name, &stats.name[VRAM_STAT_ALL], &expected->name)
    return EQUAL(allocation) && EQUAL(active) && EQUAL(allocated_bytes) && EQUAL(active_bytes) && EQUAL(requested_bytes);
#undef EQUAL
}

static bool equal_records(struct run *run) {
    uint64_t seen[4] = {0}, begun = 0, ended = 0;
    for (size_t i = 0; i < run->world.record_count; i++) {
        const enum vr_record_action action = run->world.records[i].action;
        seen[0] += action == VR_RECORD_ALLOC;
        seen[1] += action == VR_RECORD_FREE_REQUESTED;
        seen[2] += action == VR_RECORD_FREE_COMPLETED;
        seen[3] += action == VR_RECORD_OOM;
        begun += action == VR_RECORD_SEGMENT_ALLOC;
        ended += action == VR_RECORD_SEGMENT_FREE;
    }
    if (begun != seen[0] || ended != seen[2]) return differ(run, "segments of one block", begun + ended, seen[0] + seen[2]);
    vr_world_forget(&run->world);
    for (size_t i = 0; i < 4; i++) {
        if (seen[i] != run->told[i]) return differ(run, "records", seen[i], run->told[i]);
        run->told[i] = 0;
    }
    return true;
}

static bool equal_all(struct run *run) {
    struct vram_error error = {0};
    for (uint32_t device = 0; device < run->device_count; device++)
        if (!equal_device(run, device)) return false;
    if (vram_check(run->world.allocator, &error) != VRAM_OK) return differ(run, error.message, 1, 0);
    for (size_t i = 0; i < run->live_count; i++)
        if (vram_allocated_size(run->world.allocator, run->live[i].address) != run->live[i].size_bytes)
            return differ(run, "size", vram_allocated_size(run->world.allocator, run->live[i].address), run->live[i].size_bytes);
    return true;
}

// --- a run ------------------------------------------------------------------------------------------------------------------

// X(function, weight); what is left of 1000 is malloc and free
#define OPERATIONS(X)                                                                                                                      \
    X(do_capture_begin, 8)                                                                                                                 \
    X(do_capture_end, 12)                                                                                                                  \
    X(do_record_stream, 60)                                                                                                                \
    X(do_bad_pointer, 10)                                                                                                                  \
    X(do_empty_cache, 8)                                                                                                                   \
    X(do_set_limit, 4)                                                                                                                     \
    X(do_busy, 80)                                                                                                                         \
    X(do_advance, 40)                                                                                                                      \
    X(do_toggle, 6)                                                                                                                        \
    X(do_reset_peak, 4)

static bool step(struct run *run) {
    static const struct {
        bool (*perform)(struct run *run);
        unsigned weight;
    } operations[] = {
#define OPERATION(function, weight) {function, weight},
        OPERATIONS(OPERATION)
#undef OPERATION
    };
    uint64_t at = draw(run, 1000);
    for (size_t i = 0; i < VR_COUNT_OF(operations); i++) {
        if (at < operations[i].weight) return operations[i].perform(run);
        at -= operations[i].weight;
    }
    return draw(run, 100) < (run->live_count < run->target ? 60u : 40u) ? do_malloc(run) : do_free(run);
}

static bool run_one(struct run *run, uint64_t seed, uint64_t operations, bool verbose) {
    *run = (struct run){.random = vr_mix64(seed + 1), .uncached = seed % 4 == 3, .verbose = verbose};
    run->memory_bytes = (draw(run, 2) ? 256 : 4096) * VR_MIB;
    run->target = 4 + draw(run, 120);
    run->device_count = draw(run, 3) ? 1 : 2;
    for (uint32_t device = 0; device < DEVICES; device++) run->expected[device].limit_bytes = UINT64_MAX;
    const struct vr_world_options options = {.sim = {.device_count = run->device_count, .memory_bytes = run->memory_bytes},
                                             .conf = "backend:cudaMallocAsync"};
    if (vr_world_open(&run->world, &options) != VRAM_OK) return differ(run, "no allocator", 0, 1);
    vram_set_caching(run->world.allocator, !run->uncached);
    bool equal = true;
    while (equal && run->operation < operations) {
        run->operation++;
        equal = step(run) && equal_records(run) && (run->operation % 64 != 0 || equal_all(run));
    }
    for (size_t i = 0; i < CAPTURES && equal; i++) equal = run->captures[i].number == 0 || end_capture(run, &run->captures[i]);
    while (equal && run->live_count) equal = free_at(run, 0);
    equal = equal && do_empty_cache(run) && equal_records(run) && equal_all(run);
    for (uint32_t device = 0; device < run->device_count && equal; device++) {
        const uint64_t used = vram_sim_memory_used(run->world.sim, device);
        if (used) equal = differ(run, "memory was lost", used, 0);
    }
    const uint64_t left = vr_world_close(&run->world);
    return equal && (left == 0 || differ(run, "objects left behind", left, 0));
}

static bool parse(int argc, char **argv, uint64_t numbers[3], bool *verbose) {
    static const char *const names[] = {"--seed", "--seeds", "--ops"};
    for (int i = 1; i < argc; i++) {
        char *end = NULL;
        size_t k = 0;
        if (strcmp(argv[i], "--verbose") == 0) {
            *verbose = true;
            continue;
        }
        while (k < 3 && strcmp(argv[i], names[k]) != 0) k++;
        if (k == 3 || i + 1 == argc || *argv[i + 1] < '0' || *argv[i + 1] > '9') return false;
        numbers[k] = strtoull(argv[++i], &end, 10);
        if (*end) return false;
    }
    return true;
}

int main(int argc, char **argv) {
    uint64_t numbers[3] = {1, 1, 10000};
    bool verbose = false;
    if (!parse(argc, argv, numbers, &verbose)) {
        fprintf(stderr, "usage: async_ops [--seed N] [--seeds COUNT] [--ops M] [--verbose]\n");
        return 2;
    }
    static struct run run;
    const clock_t start = clock();
    int failed = 0;
    uint64_t operations = 0;
    for (uint64_t seed = numbers[0]; seed < numbers[0] + numbers[1]; seed++) {
        const bool equal = run_one(&run, seed, numbers[2], verbose);
        operations += run.operation;
        if (equal) continue;
        failed = 1;
        printf("repeat: async_ops --seed %" PRIu64 " --ops %" PRIu64 " --verbose\n", seed, run.operation);
    }
    printf("%" PRIu64 " operations, %" PRIu64 " seeds, %.1f s: %s\n", operations, numbers[1], (double)(clock() - start) / CLOCKS_PER_SEC,
           failed ? "differences" : "all agree");
    return failed;
}
