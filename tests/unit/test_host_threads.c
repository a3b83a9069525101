// Runs many threads on one allocator of pinned memory: blocks passed between threads, uses on many streams, releases, settings and queries
// in between, with and without the background thread. Checks: one owner per block, a valid state, all counters back at zero.
#include <stdatomic.h>

#include "host_fixture.h"

#include "os/os.h"
#include "support/random.h"
#include "vram/sim.h"

enum { THREADS = 4, STREAMS = 3, MAILBOXES = 16, OWN = 16, ROUNDS = 6000 };

struct shared {
    struct fixture fixture;
    uint64_t streams[STREAMS];
    struct vram_host_pool *pool;
    _Atomic(unsigned char *) mailbox[MAILBOXES]; // a live block that any thread may take and free
    atomic_uint failures;
};

struct worker {
    struct shared *shared;
    struct vr_thread thread;
    uint64_t random;
    unsigned char *own[OWN];
    size_t count;
    unsigned char mark;
};

static uint64_t draw(struct worker *worker, uint64_t limit) { return vr_random_below(&worker->random, limit); }

static void must(struct worker *worker, bool condition) {
    if (!condition) atomic_fetch_add(&worker->shared->failures, 1);
}

static void take(struct worker *worker) {
    struct shared *shared = worker->shared;
    if (worker->count == OWN) return;
    const uint64_t size = 1 + draw(worker, draw(worker, 10) == 0 ? 3 * VR_MIB : 8192);
    void *pointer = NULL;
    const enum vram_status status = draw(worker, 4) == 0 ? vram_host_pool_malloc(shared->pool, size, 0, &pointer)
                                                         : vram_host_malloc(shared->fixture.host, size, shared->streams[0], &pointer);
    must(worker, status == VRAM_OK);
    if (status != VRAM_OK) return;
    worker->own[worker->count++] = pointer;
    *(unsigned char *)pointer = worker->mark;
}

// Picks a block and checks that its bytes are still this thread's.
static unsigned char *pick(struct worker *worker) {
    const size_t index = draw(worker, worker->count);
    unsigned char *pointer = worker->own[index];
    must(worker, *pointer == worker->mark);
    worker->own[index] = worker->own[--worker->count];
    return pointer;
}

static void use(struct worker *worker) {
    struct shared *shared = worker->shared;
    if (worker->count == 0) return;
    unsigned char *pointer = worker->own[draw(worker, worker->count)];
    must(worker, vram_host_record_stream(shared->fixture.host, pointer, shared->streams[draw(worker, STREAMS)]) == VRAM_OK);
}

static void exchange(struct worker *worker) {
    unsigned char *given = worker->count == 0 ? NULL : pick(worker);
    unsigned char *taken = atomic_exchange(&worker->shared->mailbox[draw(worker, MAILBOXES)], given);
    must(worker, vram_host_free(worker->shared->fixture.host, taken) == VRAM_OK);
}

static void disturb(struct worker *worker) {
    struct shared *shared = worker->shared;
    struct vram_host *host = shared->fixture.host;
    struct vram_host_stats stats;
    switch (draw(worker, 7)) {
    case 0: must(worker, vram_host_empty_cache(host) == VRAM_OK); break;
    case 1: must(worker, vram_host_pool_empty_cache(shared->pool) == VRAM_OK); break;
    case 2: must(worker, vram_host_check(host, NULL) == VRAM_OK); break;
    case 3: must(worker, vram_host_configure(host, draw(worker, 2) ? "pinned_max_cached_size_mb:1" : "", NULL) == VRAM_OK); break;
    case 4:
        vram_get_host_stats(host, &stats);
        must(worker, stats.active_bytes.current <= stats.allocated_bytes.current && stats.active_bytes.peak >= stats.active_bytes.current);
        break;
    case 5: must(worker, vram_host_free(host, &stats) == VRAM_INVALID_POINTER); break;
    default: must(worker, vram_sim_complete_all(shared->fixture.sim) == VRAM_OK); break;
    }
}

static void work(void *argument) {
    struct worker *worker = argument;
    for (int round = 0; round < ROUNDS; round++) {
        const uint64_t kind = draw(worker, 100);
        if (kind < 40)
            take(worker);
        else if (kind < 65 && worker->count != 0)
            must(worker, vram_host_free(worker->shared->fixture.host, pick(worker)) == VRAM_OK);
        else if (kind < 80)
            use(worker);
        else if (kind < 92)
            exchange(worker);
        else
            disturb(worker);
    }
    while (worker->count != 0) must(worker, vram_host_free(worker->shared->fixture.host, pick(worker)) == VRAM_OK);
}

static void run(const char *conf) {
    struct shared *shared = calloc(1, sizeof *shared);
    struct worker *workers = calloc(THREADS, sizeof *workers);
    assert_true(shared != NULL && workers != NULL);
    open_with(&shared->fixture, NULL, conf);
    struct vram_driver *sim = shared->fixture.sim;
    uint64_t context;
    assert_cu(vr_cu(sim, primary_ctx_retain, &context, 0), SUCCESS);
    for (unsigned i = 0; i < STREAMS; i++) shared->streams[i] = new_stream(&shared->fixture, 0);
    expect_ok(vram_host_pool_create(shared->fixture.host, NULL, &shared->pool));
    for (unsigned i = 0; i < THREADS; i++) {
        workers[i] = (struct worker){.shared = shared, .random = i + 1, .mark = (unsigned char)(i + 1)};
        expect_ok(vr_thread_start(&workers[i].thread, work, &workers[i]));
    }
    for (unsigned i = 0; i < THREADS; i++) vr_thread_join(&workers[i].thread);
    assert_int_equal(atomic_load(&shared->failures), 0);
    for (unsigned i = 0; i < MAILBOXES; i++) expect_ok(vram_host_free(shared->fixture.host, atomic_load(&shared->mailbox[i])));
    vram_host_pool_release(shared->pool);
    expect_ok(vram_sim_complete_all(sim));
    expect_ok(vram_host_empty_cache(shared->fixture.host));
    const struct vram_host_stats stats = stats_of(&shared->fixture);
    assert_int_equal(stats.active_requests.current, 0);
    assert_int_equal(stats.requested_bytes.current, 0);
    assert_int_equal(stats.allocated_bytes.current, 0);
    assert_int_equal(stats.active_bytes.allocated, stats.active_bytes.freed);
    assert_cu(vr_cu(sim, primary_ctx_release, 0), SUCCESS);
    close_with(&shared->fixture);
    free(workers);
    free(shared);
}

static void threads_share_an_allocator(void **state) {
    (void)state;
    run("");
}

static void with_the_background_thread(void **state) {
    (void)state;
    run("pinned_use_background_threads:True");
}

static void with_registration(void **state) {
    (void)state;
    run("pinned_use_cuda_host_register:True,pinned_num_register_threads:4,pinned_max_cached_size_mb:1");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(threads_share_an_allocator),
        cmocka_unit_test(with_the_background_thread),
        cmocka_unit_test(with_registration),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
