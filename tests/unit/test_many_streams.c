// Tests hundreds of streams on one device: counters stay correct.
#include <pthread.h>
#include <stdatomic.h>

#include "core/state.h"
#include "driver/driver.h"
#include "support/expect.h"
#include "support/random.h"
#include "vram/sim.h"

enum { STREAMS = 200, LIVE = 300, THREADS = 4, ROUNDS = 8000 };

struct machine {
    struct vr_world world;
    uint64_t streams[STREAMS];
};

static void open_machine(struct machine *machine) {
    const struct vr_world_options options = {.sim = {.memory_bytes = 64 * VR_GIB}, .conf = "", .without_record = true};
    EXPECT_OK(vr_world_open(&machine->world, &options));
    for (size_t i = 0; i < STREAMS; i++)
        assert_int_equal(vr_cu(machine->world.sim, stream_create, &machine->streams[i], VR_CU_STREAM_NON_BLOCKING), VR_CU_SUCCESS);
}

static uint64_t draw(uint64_t *random, uint64_t limit) { return vr_random_below(random, limit); }

static uint64_t draw_size(uint64_t *random) { return 512 * (1 + draw(random, draw(random, 8) == 0 ? 8192 : 64)); }

// Compares counters with separately computed sums.
static void counters_of_many_streams(void **state) {
    static struct machine machine;
    uint64_t random = 1, address[LIVE] = {0}, size[LIVE] = {0};
    int64_t bytes = 0, count = 0, peak_bytes = 0, peak_count = 0;
    (void)state;
    open_machine(&machine);
    for (int round = 0; round < ROUNDS; round++) {
        const size_t at = (size_t)draw(&random, LIVE);
        if (address[at] != 0) {
            EXPECT_OK(vram_free(machine.world.allocator, address[at]));
            bytes -= (int64_t)size[at], count--;
            address[at] = 0;
        } else {
            // All streams at first, then only a few.
            const uint64_t stream = machine.streams[draw(&random, round < ROUNDS / 2 ? STREAMS : 3)];
            size[at] = draw_size(&random);
            EXPECT_OK(vram_malloc(machine.world.allocator, 0, size[at], stream, &address[at]));
            // A remainder of a large block that is too small to split off stays in the block.
            size[at] = vram_allocated_size(machine.world.allocator, address[at]);
            bytes += (int64_t)size[at], count++;
        }
        if (bytes > peak_bytes) peak_bytes = bytes;
        if (count > peak_count) peak_count = count;
        if (round % 64 != 0) continue;
        const struct vram_stats stats = expect_stats(&machine.world);
        assert_int_equal(stats.allocated_bytes[VRAM_STAT_ALL].current, bytes);
        assert_int_equal(stats.allocated_bytes[VRAM_STAT_ALL].peak, peak_bytes);
        assert_int_equal(stats.allocation[VRAM_STAT_ALL].peak, peak_count);
        EXPECT_OK(vram_check(machine.world.allocator, NULL));
        if (draw(&random, 16) == 0) EXPECT_OK(vram_empty_cache(machine.world.allocator));
    }
    for (size_t i = 0; i < LIVE; i++) EXPECT_OK(vram_free(machine.world.allocator, address[i]));
    EXPECT_OK(vram_empty_cache(machine.world.allocator));
    assert_int_equal(expect_stats(&machine.world).reserved_bytes[VRAM_STAT_ALL].current, 0);
    assert_int_equal(vram_sim_memory_used(machine.world.sim, 0), 0);
    expect_end(&machine.world);
}

struct worker {
    struct machine *machine;
    uint64_t random;
    _Atomic uint64_t *shared; // a live block that any thread may take and free; 0: none
    atomic_uint *failures;
};

static void *work(void *argument) {
    struct worker *worker = argument;
    struct vram_allocator *allocator = worker->machine->world.allocator;
    for (int round = 0; round < ROUNDS; round++) {
        uint64_t address = 0;
        const uint64_t stream = worker->machine->streams[draw(&worker->random, STREAMS)];
        unsigned failures = vram_malloc(allocator, 0, draw_size(&worker->random), stream, &address) != VRAM_OK;
        const uint64_t taken = atomic_exchange(&worker->shared[draw(&worker->random, LIVE)], address);
        failures += vram_free(allocator, taken) != VRAM_OK;
        if (draw(&worker->random, 100) == 0) failures += vram_empty_cache(allocator) != VRAM_OK;
        atomic_fetch_add(worker->failures, failures);
    }
    return NULL;
}

// Streams are suspended and resumed while others use them.
static void threads_on_many_streams(void **state) {
    static struct machine machine;
    static _Atomic uint64_t shared[LIVE];
    atomic_uint failures = 0;
    pthread_t threads[THREADS];
    struct worker workers[THREADS];
    (void)state;
    open_machine(&machine);
    for (size_t i = 0; i < THREADS; i++) {
        workers[i] = (struct worker){&machine, 1000 * i, shared, &failures};
        assert_int_equal(pthread_create(&threads[i], NULL, work, &workers[i]), 0);
    }
    for (size_t i = 0; i < THREADS; i++) assert_int_equal(pthread_join(threads[i], NULL), 0);
    assert_int_equal(failures, 0);
    EXPECT_OK(vram_check(machine.world.allocator, NULL));
    for (size_t i = 0; i < LIVE; i++) EXPECT_OK(vram_free(machine.world.allocator, shared[i]));
    EXPECT_OK(vram_empty_cache(machine.world.allocator));
    const struct vram_stats stats = expect_stats(&machine.world);
    assert_int_equal(stats.allocated_bytes[VRAM_STAT_ALL].current, 0);
    assert_int_equal(stats.allocation[VRAM_STAT_ALL].allocated, THREADS * ROUNDS);
    assert_int_equal(stats.reserved_bytes[VRAM_STAT_ALL].current, 0);
    expect_end(&machine.world);
}

// --- peaks --------------------------------------------------------------------------------------------------------------------

enum { MOST = 150, WALK = 20000 };

struct walker {
    struct machine *machine;
    uint64_t random;
    size_t first;  // of its STREAMS / THREADS streams
    size_t common; // streams that all threads use
    uint64_t live[MOST];
    size_t count;
    bool fills;
    atomic_uint *failures;
};

static void take(struct walker *walker) {
    const uint64_t at = draw(&walker->random, STREAMS / THREADS);
    const uint64_t stream = walker->machine->streams[at < walker->common ? at : walker->first + at];
    const enum vram_status status = vram_malloc(walker->machine->world.allocator, 0, 4096, stream, &walker->live[walker->count]);
    atomic_fetch_add(walker->failures, status != VRAM_OK);
    walker->count++;
}

static void put(struct walker *walker) {
    const size_t at = (size_t)draw(&walker->random, walker->count);
    atomic_fetch_add(walker->failures, vram_free(walker->machine->world.allocator, walker->live[at]) != VRAM_OK);
    walker->live[at] = walker->live[--walker->count];
}

// Usually close to the maximum, so that threads take allowance from each other. Ends with the maximum or nothing.
static void *walk(void *argument) {
    struct walker *walker = argument;
    for (int step = 0; step < WALK; step++) {
        if (walker->count == 0 || (walker->count < MOST && draw(&walker->random, 100) < 55))
            take(walker);
        else
            put(walker);
    }
    while (walker->fills && walker->count < MOST) take(walker);
    while (!walker->fills && walker->count > 0) put(walker);
    return NULL;
}

static void walk_all(struct walker *walkers, bool fills) {
    pthread_t threads[THREADS];
    for (size_t i = 0; i < THREADS; i++) {
        walkers[i].fills = fills;
        assert_int_equal(pthread_create(&threads[i], NULL, walk, &walkers[i]), 0);
    }
    for (size_t i = 0; i < THREADS; i++) assert_int_equal(pthread_join(threads[i], NULL), 0);
}

// No thread ever has more than MOST blocks, and once all have that many, so the common peak is exactly their sum.
static void run_walkers(size_t common) {
    static struct machine machine;
    static struct walker walkers[THREADS];
    atomic_uint failures = 0;
    open_machine(&machine);
    for (size_t i = 0; i < THREADS; i++) {
        walkers[i] = (struct walker){.machine = &machine, .random = 77 * i + common, .common = common, .failures = &failures};
        walkers[i].first = i * (STREAMS / THREADS);
    }
    for (int round = 0; round < 2; round++) {
        walk_all(walkers, round == 0);
        const struct vram_stats stats = expect_stats(&machine.world);
        assert_int_equal(stats.allocation[VRAM_STAT_ALL].peak, THREADS * MOST);
        assert_int_equal(stats.active[VRAM_STAT_SMALL_POOL].peak, THREADS * MOST);
        assert_int_equal(stats.allocated_bytes[VRAM_STAT_ALL].peak, (int64_t)THREADS * MOST * 4096);
        assert_int_equal(stats.requested_bytes[VRAM_STAT_SMALL_POOL].peak, (int64_t)THREADS * MOST * 4096);
        assert_int_equal(stats.allocation[VRAM_STAT_ALL].current, round == 0 ? THREADS * MOST : 0);
        EXPECT_OK(vram_check(machine.world.allocator, NULL));
    }
    assert_int_equal(failures, 0);
    expect_end(&machine.world);
}

static void peaks_of_threads(void **state) {
    (void)state;
    run_walkers(0);
    run_walkers(STREAMS / THREADS);
    run_walkers(STREAMS / THREADS / 2);
}

// When shard numbers run out, requests of further streams are refused, and others continue.
static void numbers_of_shards_run_out(void **state) {
    (void)state;
    static struct machine machine;
    uint64_t address = 0;
    open_machine(&machine);
    struct vram_allocator *allocator = machine.world.allocator;
    expect_free(&machine.world, expect_malloc(&machine.world, 1000, machine.streams[0]));
    const uint32_t made = atomic_exchange(&allocator->shard_count, VR_MAX_SHARDS);
    for (int i = 0; i < 3; i++) {
        EXPECT_STATUS(LIMIT, vram_malloc(allocator, 0, 1000, machine.streams[1], &address));
        assert_int_equal(atomic_load(&allocator->shard_count), VR_MAX_SHARDS);
    }
    expect_free(&machine.world, expect_malloc(&machine.world, 1000, machine.streams[0]));
    atomic_store(&allocator->shard_count, made);
    expect_free(&machine.world, expect_malloc(&machine.world, 1000, machine.streams[1]));
    expect_end(&machine.world);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(counters_of_many_streams),
        cmocka_unit_test(threads_on_many_streams),
        cmocka_unit_test(peaks_of_threads),
        cmocka_unit_test(numbers_of_shards_run_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
