// Runs many threads at once: own streams, one shared stream, frees of other threads' blocks, record_stream, releases, settings and queries
// in between. The order has no oracle; checks the invariants, that every block has one owner, and that all counters return to zero. Meant
// to run under the thread sanitizer too.
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#include "support/expect.h"
#include "support/random.h"
#include "vram/sim.h"

enum { THREADS = 4, MAILBOXES = 64, ROUNDS = 40000 };

struct shared {
    struct vr_world world;
    _Atomic uint64_t mailbox[MAILBOXES]; // a live block that any thread may take and free; 0: empty
    atomic_uint ready;                   // threads waiting for the others before they start
    atomic_uint finished;
    atomic_uint failures; // calls with a wrong result
    atomic_uint out_of_memory;
    bool one_stream; // every thread uses the same stream
    bool disturb;    // releases and settings in between
};

struct worker {
    struct shared *shared;
    uint64_t random;
    uint64_t stream;
    uint64_t own[64];
    size_t own_count;
};

static uint64_t draw(struct worker *worker, uint64_t limit) { return vr_random_below(&worker->random, limit); }

static void must(struct worker *worker, enum vram_status status) {
    if (status != VRAM_OK) atomic_fetch_add(&worker->shared->failures, 1);
}

static uint64_t draw_size(struct worker *worker) {
    switch (draw(worker, 4)) {
    case 0: return 1 + draw(worker, VR_MIB);
    case 1: return VR_MIB + draw(worker, 12 * VR_MIB);
    default: return 1 + draw(worker, 16 * VR_KIB);
    }
}

static void get(struct worker *worker) {
    if (worker->own_count == VR_COUNT_OF(worker->own)) return;
    uint64_t address = 0;
    const enum vram_status status = vram_malloc(worker->shared->world.allocator, 0, draw_size(worker), worker->stream, &address);
    if (status == VRAM_OUT_OF_MEMORY) {
        atomic_fetch_add(&worker->shared->out_of_memory, 1);
        return;
    }
    must(worker, status);
    if (status == VRAM_OK) worker->own[worker->own_count++] = address;
}

static void put(struct worker *worker) {
    if (worker->own_count == 0) return;
    const size_t index = draw(worker, worker->own_count);
    const uint64_t address = worker->own[index];
    worker->own[index] = worker->own[--worker->own_count];
    must(worker, vram_free(worker->shared->world.allocator, address));
}

// Leaves a block for the others, and frees the one there, usually another thread's.
static void exchange(struct worker *worker) {
    uint64_t given = 0;
    if (worker->own_count > 0) given = worker->own[--worker->own_count];
    const uint64_t taken = atomic_exchange(&worker->shared->mailbox[draw(worker, MAILBOXES)], given);
    must(worker, vram_free(worker->shared->world.allocator, taken));
}

static void use_elsewhere(struct worker *worker) {
    if (worker->own_count == 0) return;
    const uint64_t stream = worker->shared->world.stream[0][draw(worker, VR_WORLD_STREAMS)];
    must(worker, vram_record_stream(worker->shared->world.allocator, worker->own[draw(worker, worker->own_count)], stream));
}

static void ask(struct worker *worker) {
    struct vram_allocator *allocator = worker->shared->world.allocator;
    struct vram_stats stats;
    must(worker, vram_get_stats(allocator, 0, &stats));
    // Counters of one moment are consistent.
    if (stats.active_bytes[0].current < stats.allocated_bytes[0].current ||
        stats.reserved_bytes[0].current < stats.active_bytes[0].current ||
        stats.allocated_bytes[0].peak < stats.allocated_bytes[0].current ||
        stats.allocated_bytes[0].current != stats.allocated_bytes[1].current + stats.allocated_bytes[2].current)
        atomic_fetch_add(&worker->shared->failures, 1);
    if (worker->own_count == 0) return;
    struct vram_block_info info;
    const uint64_t address = worker->own[draw(worker, worker->own_count)];
    must(worker, vram_get_block_info(allocator, address, &info));
    must(worker, vram_find_block(allocator, address + info.size_bytes - 1, &info));
    if (info.address != address || vram_allocated_size(allocator, address) != info.size_bytes)
        atomic_fetch_add(&worker->shared->failures, 1);
}

static bool visit(const struct vram_block_view *view, void *user) {
    uint64_t *bytes = user;
    *bytes += view->block.size_bytes;
    return true;
}

static void disturb(struct worker *worker) {
    struct vram_allocator *allocator = worker->shared->world.allocator;
    if (!worker->shared->disturb) return;
    uint64_t bytes = 0;
    switch (draw(worker, 8)) {
    case 0: must(worker, vram_empty_cache(allocator)); break;
    case 1: must(worker, vram_empty_cache_device(allocator, 0)); break;
    case 2: must(worker, vram_reset_peak_stats(allocator, 0)); break;
    case 3: must(worker, vram_walk(allocator, 0, visit, &bytes)); break;
    case 4: must(worker, vram_set_memory_limit(allocator, 0, 100 * VR_MIB + draw(worker, 400 * VR_MIB))); break;
    case 5:
        must(worker, vram_configure(allocator, draw(worker, 2) ? "max_split_size_mb:32" : "garbage_collection_threshold:0.5", NULL));
        break;
    case 6: must(worker, vram_check(allocator, NULL)); break;
    default: vram_set_caching(allocator, draw(worker, 4) != 0); break;
    }
}

static void *work(void *argument) {
    struct worker *worker = argument;
    atomic_fetch_add(&worker->shared->ready, 1);
    while (atomic_load(&worker->shared->ready) < THREADS) sched_yield();
    for (int round = 0; round < ROUNDS; round++) {
        const uint64_t kind = draw(worker, 1000);
        if (kind < 480)
            get(worker);
        else if (kind < 800)
            put(worker);
        else if (kind < 900)
            exchange(worker);
        else if (kind < 960)
            use_elsewhere(worker);
        else if (kind < 980)
            ask(worker);
        else if (kind < 990)
            must(worker, vram_sim_complete_all(worker->shared->world.sim));
        else
            disturb(worker);
    }
    while (worker->own_count > 0) put(worker);
    atomic_fetch_add(&worker->shared->finished, 1);
    return NULL;
}

// Checks that all current values are zero after everything is freed and released.
static void expect_nothing_left(struct vr_world *world) {
    const struct vram_stats stats = expect_stats(world);
#define NOTHING(name, is_bytes, text)                                                                                                      \
    for (int pool = 0; pool < VRAM_STAT_POOLS; pool++) {                                                                                   \
        assert_int_equal(stats.name[pool].current, 0);                                                                                     \
        assert_int_equal(stats.name[pool].allocated, stats.name[pool].freed);                                                              \
    }
    VRAM_STAT_FAMILIES(NOTHING)
#undef NOTHING
    assert_int_equal(stats.num_device_alloc > 0, 1);
}

static void run(const char *conf, bool one_stream, bool disturbed) {
    struct shared *shared = calloc(1, sizeof *shared);
    assert_non_null(shared);
    const struct vr_world_options options = {
        .sim = {.memory_bytes = disturbed ? VR_GIB : 64 * VR_GIB, .manual_completion = true}, .conf = conf, .without_record = true};
    EXPECT_OK(vr_world_open(&shared->world, &options));
    shared->one_stream = one_stream;
    shared->disturb = disturbed;
    static struct worker workers[THREADS];
    pthread_t threads[THREADS];
    for (size_t i = 0; i < THREADS; i++) {
        workers[i] = (struct worker){.shared = shared, .random = 1000 * i + (one_stream ? 7 : 3)};
        workers[i].stream = shared->world.stream[0][one_stream ? 1 : i % VR_WORLD_STREAMS];
        assert_int_equal(pthread_create(&threads[i], NULL, work, &workers[i]), 0);
    }
    for (size_t i = 0; i < THREADS; i++) assert_int_equal(pthread_join(threads[i], NULL), 0);
    assert_int_equal(shared->finished, THREADS);
    assert_int_equal(shared->failures, 0);
    if (!disturbed) assert_int_equal(shared->out_of_memory, 0);
    for (size_t i = 0; i < MAILBOXES; i++) EXPECT_OK(vram_free(shared->world.allocator, shared->mailbox[i]));
    EXPECT_OK(vram_check(shared->world.allocator, NULL));
    EXPECT_OK(vram_sim_complete_all(shared->world.sim));
    EXPECT_OK(vram_empty_cache(shared->world.allocator));
    if (!disturbed) expect_nothing_left(&shared->world);
    assert_int_equal(expect_stats(&shared->world).reserved_bytes[VRAM_STAT_ALL].current, 0);
    expect_end(&shared->world);
    free(shared);
}

static void own_streams(void **state) {
    (void)state;
    run("", false, false);
    run("expandable_segments:True", false, false);
    run("release_lock_on_cudamalloc:True", false, false);
}

static void shared_stream(void **state) {
    (void)state;
    run("", true, false);
    run("expandable_segments:True", true, false);
    run("release_lock_on_cudamalloc:True", true, false);
}

static void with_releases_and_settings(void **state) {
    (void)state;
    run("", false, true);
    run("", true, true);
    run("expandable_segments:True", false, true);
    run("release_lock_on_cudamalloc:True", false, true);
}

// A device is set up once, by whichever thread is first.
static void *first_touch(void *argument) {
    struct vram_allocator *allocator = argument;
    uint64_t address = 0;
    if (vram_malloc(allocator, 0, 4096, 0, &address) != VRAM_OK) return argument;
    return vram_free(allocator, address) == VRAM_OK ? NULL : argument;
}

static void first_use_from_many_threads(void **state) {
    (void)state;
    for (int round = 0; round < 30; round++) {
        struct vr_world world;
        const struct vr_world_options options = {.without_record = true};
        EXPECT_OK(vr_world_open(&world, &options));
        pthread_t threads[THREADS];
        for (size_t i = 0; i < THREADS; i++) assert_int_equal(pthread_create(&threads[i], NULL, first_touch, world.allocator), 0);
        for (size_t i = 0; i < THREADS; i++) {
            void *failed = NULL;
            assert_int_equal(pthread_join(threads[i], &failed), 0);
            assert_null(failed);
        }
        EXPECT_CURRENT(&world, segment, 1);
        expect_end(&world);
    }
}

// --- the check while another device serves requests ------------------------------------------------------------------------------------

enum { CHECKED_BLOCKS = 1500, CHECKED_ROUNDS = 20 };

struct checked {
    struct vr_world world;
    atomic_bool stop;
    atomic_uint failures;
};

// Fills and empties the table shared by both devices, so that it grows and its blocks move.
static void *fill_and_empty(void *argument) {
    struct checked *checked = argument;
    static uint64_t held[CHECKED_BLOCKS];
    for (int round = 0; round < CHECKED_ROUNDS; round++) {
        const uint64_t stream = checked->world.stream[1][round % VR_WORLD_STREAMS];
        for (size_t i = 0; i < CHECKED_BLOCKS; i++)
            if (vram_malloc(checked->world.allocator, 1, 512, stream, &held[i]) != VRAM_OK) atomic_fetch_add(&checked->failures, 1);
        for (size_t i = 0; i < CHECKED_BLOCKS; i++)
            if (vram_free(checked->world.allocator, held[i]) != VRAM_OK) atomic_fetch_add(&checked->failures, 1);
    }
    atomic_store(&checked->stop, true);
    return NULL;
}

static void check_of_the_drivers_pool_during_requests(void **state) {
    (void)state;
    static struct checked checked;
    const struct vr_world_options options = {
        .sim = {.device_count = 2, .memory_bytes = VR_GIB}, .conf = "backend:cudaMallocAsync", .without_record = true};
    EXPECT_OK(vr_world_open(&checked.world, &options));
    static uint64_t own[CHECKED_BLOCKS];
    for (size_t i = 0; i < VR_COUNT_OF(own); i++) EXPECT_OK(vram_malloc(checked.world.allocator, 0, 4096, 0, &own[i]));
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, fill_and_empty, &checked), 0);
    unsigned mismatches = 0;
    while (!atomic_load(&checked.stop)) mismatches += vram_check(checked.world.allocator, NULL) != VRAM_OK;
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(mismatches, 0);
    assert_int_equal(checked.failures, 0);
    for (size_t i = 0; i < VR_COUNT_OF(own); i++) EXPECT_OK(vram_free(checked.world.allocator, own[i]));
    EXPECT_OK(vram_empty_cache(checked.world.allocator));
    expect_end(&checked.world);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(own_streams),
        cmocka_unit_test(shared_stream),
        cmocka_unit_test(with_releases_and_settings),
        cmocka_unit_test(first_use_from_many_threads),
        cmocka_unit_test(check_of_the_drivers_pool_during_requests),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
