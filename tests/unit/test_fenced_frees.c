// Tests frees of blocks used by other streams, and their effect on later requests, against an allocator with a listener, which must behave
// the same.
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "core/state.h"
#include "driver/driver.h"
#include "support/expect.h"
#include "support/random.h"
#include "vram/pool.h"
#include "vram/sim.h"

enum { STREAMS = VR_WORLD_STREAMS, SIZES = 6, LIVE = 24, PICTURES = 300 };

// Sizes with the same and with different rounded sizes; blocks cut from a segment with a remainder after them; and whole segments.
static const uint64_t sizes[SIZES] = {1000, 1024, 300 * VR_KIB, 3 * VR_MIB, 3 * VR_MIB - 512, 20 * VR_MIB};

struct twins {
    struct vr_world bare, heard;
    struct vram_pool *pools[2]; // one for each allocator; NULL: use the default pools
    uint64_t live[STREAMS][LIVE];
    size_t count[STREAMS];
};

// timed: driver calls take time, so that a fence may pass after any of them.
static void open_twins(struct twins *twins, const char *conf, bool timed) {
    struct vr_world_options options = {.sim = {.memory_bytes = 64 * VR_GIB, .manual_completion = true}, .conf = conf};
    if (!timed) options.sim.profile = VRAM_SIM_FREE;
    memset(twins, 0, sizeof *twins);
    EXPECT_OK(vr_world_open(&twins->heard, &options));
    options.without_record = true;
    EXPECT_OK(vr_world_open(&twins->bare, &options));
}

static void open_pools(struct twins *twins) {
    EXPECT_OK(vram_pool_create(twins->bare.allocator, 0, NULL, &twins->pools[0]));
    EXPECT_OK(vram_pool_create(twins->heard.allocator, 0, NULL, &twins->pools[1]));
}

static void close_twins(struct twins *twins) {
    for (size_t i = 0; i < 2; i++) vram_pool_release(twins->pools[i]);
    expect_end(&twins->bare);
    expect_end(&twins->heard);
}

static const struct vr_block *block_at(const struct vr_world *world, uint64_t address) {
    return vr_block_at(world->allocator, vr_address_map_find(&world->allocator->addresses, address));
}

static uint64_t take_in_pools(struct twins *twins, size_t stream, uint64_t size_bytes) {
    uint64_t address = 0, expected = 0;
    EXPECT_OK(vram_pool_malloc(twins->pools[0], size_bytes, twins->bare.stream[0][stream], &address));
    EXPECT_OK(vram_pool_malloc(twins->pools[1], size_bytes, twins->heard.stream[0][stream], &expected));
    assert_int_equal(address, expected);
    vr_world_forget(&twins->heard);
    return address;
}

static uint64_t take(struct twins *twins, size_t stream, uint64_t size_bytes) {
    if (twins->pools[0] != NULL) return take_in_pools(twins, stream, size_bytes);
    const uint64_t address = expect_malloc(&twins->bare, size_bytes, twins->bare.stream[0][stream]);
    assert_int_equal(expect_malloc(&twins->heard, size_bytes, twins->heard.stream[0][stream]), address);
    vr_world_forget(&twins->heard);
    return address;
}

static void put(struct twins *twins, uint64_t address) {
    expect_free(&twins->bare, address);
    expect_free(&twins->heard, address);
}

static void use(struct twins *twins, uint64_t address, size_t stream) {
    EXPECT_OK(vram_record_stream(twins->bare.allocator, address, twins->bare.stream[0][stream]));
    EXPECT_OK(vram_record_stream(twins->heard.allocator, address, twins->heard.stream[0][stream]));
}

static void complete(struct twins *twins, size_t stream) {
    EXPECT_OK(vr_world_complete(&twins->bare, 0, twins->bare.stream[0][stream]));
    EXPECT_OK(vr_world_complete(&twins->heard, 0, twins->heard.stream[0][stream]));
}

static void assert_alike(struct twins *twins) {
    const struct vram_stats found = expect_stats(&twins->bare), expected = expect_stats(&twins->heard);
    assert_memory_equal(&found, &expected, sizeof found);
    EXPECT_OK(vram_check(twins->bare.allocator, NULL));
}

static void reset_peaks(struct twins *twins) {
    EXPECT_OK(vram_reset_peak_stats(twins->bare.allocator, 0));
    EXPECT_OK(vram_reset_peak_stats(twins->heard.allocator, 0));
}

// The block that a program's step passes to another stream, repeatedly.
static void the_same_block_again_and_again(void **state) {
    (void)state;
    for (size_t i = 0; i < 2 * SIZES; i++) {
        const uint64_t size_bytes = sizes[i / 2];
        struct twins twins;
        open_twins(&twins, "", false);
        if (i % 2 != 0) open_pools(&twins);
        uint64_t first = 0;
        for (int round = 0; round < 50; round++) {
            for (int pairs = round % 3; pairs > 0; pairs--) put(&twins, take(&twins, 1, size_bytes));
            const uint64_t address = take(&twins, 1, size_bytes);
            if (round == 0) first = address;
            assert_int_equal(address, first);
            use(&twins, address, 2);
            if (round % 5 == 0) use(&twins, address, 3);
            put(&twins, address);
            complete(&twins, 2);
            complete(&twins, 3);
        }
        assert_alike(&twins);
        close_twins(&twins);
    }
}

// Requests while the block waits: of its size, which must be served elsewhere, of another size, and of one that takes the same bytes once
// it is free.
static void requests_around_a_block_that_waits(void **state) {
    (void)state;
    for (size_t i = 0; i < SIZES; i++) {
        for (size_t k = 0; k < SIZES; k++) {
            struct twins twins;
            open_twins(&twins, "", false);
            for (int when = 0; when < 4; when++) {
                const uint64_t address = take(&twins, 1, sizes[i]);
                use(&twins, address, 2);
                put(&twins, address);
                uint64_t during = 0;
                if ((when & 1) != 0) during = take(&twins, 1, sizes[k]);
                complete(&twins, 2);
                const uint64_t after = take(&twins, (when & 2) != 0 ? 1 : 3, sizes[k]);
                if (during != 0) put(&twins, during);
                put(&twins, take(&twins, 1, sizes[i]));
                put(&twins, after);
                assert_alike(&twins);
            }
            close_twins(&twins);
        }
    }
}

// Another stream's request completes the block.
static void completed_by_another_stream(void **state) {
    (void)state;
    struct twins twins;
    open_twins(&twins, "", false);
    const uint64_t first = take(&twins, 1, 1024), stays = take(&twins, 3, 1024);
    put(&twins, take(&twins, 3, 1024)); // so that what follows is not a peak
    put(&twins, first);
    const uint64_t address = take(&twins, 1, 1024);
    use(&twins, address, 2);
    put(&twins, address);
    complete(&twins, 2);
    put(&twins, take(&twins, 3, 1024));
    assert_int_equal(block_at(&twins.bare, address)->state, VR_FREE);
    assert_int_equal(take(&twins, 1, 1000), address);
    put(&twins, address);
    put(&twins, stays);
    assert_alike(&twins);
    close_twins(&twins);
}

// A block that becomes free between two others adds one inactive_split.
static void a_block_whose_return_is_a_peak(void **state) {
    (void)state;
    struct twins twins;
    uint64_t address[3];
    open_twins(&twins, "", false);
    const uint64_t stays = take(&twins, 3, 1024);
    for (size_t i = 0; i < 3; i++) address[i] = take(&twins, 1, 1024);
    use(&twins, address[1], 2);
    put(&twins, address[1]);
    reset_peaks(&twins);
    complete(&twins, 2);
    const uint64_t before = expect_stats(&twins.bare).inactive_split[VRAM_STAT_ALL].peak;
    put(&twins, take(&twins, 3, 1024));
    EXPECT_PEAK(&twins.bare, inactive_split, before + 1);
    assert_alike(&twins);
    put(&twins, address[0]);
    put(&twins, address[2]);
    put(&twins, stays);
    assert_alike(&twins);
    close_twins(&twins);
}

static void begin_capture(struct vr_world *world) {
    assert_int_equal(vr_cu(world->sim, stream_begin_capture, world->stream[0][2], VR_CU_STREAM_CAPTURE_MODE_RELAXED), VR_CU_SUCCESS);
}

static void end_capture(struct vr_world *world) {
    uint64_t graph = 0;
    assert_int_equal(vr_cu(world->sim, stream_end_capture, world->stream[0][2], &graph), VR_CU_SUCCESS);
    assert_int_equal(vr_cu(world->sim, graph_destroy, graph), VR_CU_SUCCESS);
}

// A stream that used the block is captured by the program itself: a fence there would become part of the graph.
static void a_use_that_somebody_captures(void **state) {
    (void)state;
    struct twins twins;
    open_twins(&twins, "", false);
    const uint64_t address = take(&twins, 1, 1024);
    use(&twins, address, 2);
    begin_capture(&twins.bare), begin_capture(&twins.heard);
    put(&twins, address);
    assert_int_not_equal(take(&twins, 1, 1024), address);
    end_capture(&twins.bare), end_capture(&twins.heard);
    complete(&twins, 2);
    for (int i = 0; i < 3; i++) (void)take(&twins, 1, 1024);
    assert_alike(&twins);
    close_twins(&twins);
}

// Makes one of a program's many calls.
static void step(struct twins *twins, uint64_t *random) {
    const size_t stream = (size_t)vr_random_below(random, STREAMS);
    const uint64_t size_bytes = sizes[vr_random_below(random, 2) == 0 ? vr_random_below(random, SIZES) : 1];
    const uint64_t kind = vr_random_below(random, 16);
    size_t *count = &twins->count[stream];
    if (kind < 3) {
        put(twins, take(twins, stream, size_bytes));
    } else if (kind < 9) {
        const uint64_t address = take(twins, stream, size_bytes);
        for (uint64_t uses = 1 + vr_random_below(random, 2); uses > 0; uses--)
            use(twins, address, (size_t)vr_random_below(random, STREAMS));
        put(twins, address);
    } else if (kind < 12) {
        complete(twins, stream);
    } else if (kind == 12 && *count < LIVE) {
        twins->live[stream][(*count)++] = take(twins, stream, size_bytes);
    } else if (kind <= 14 && *count > 0) {
        const size_t at = (size_t)vr_random_below(random, *count);
        if (kind == 14) use(twins, twins->live[stream][at], (stream + 1) % STREAMS);
        put(twins, twins->live[stream][at]);
        twins->live[stream][at] = twins->live[stream][--*count];
    } else if (kind == 15 && vr_random_below(random, 8) == 0) {
        reset_peaks(twins);
    }
}

static void anything_in_any_order(void **state) {
    (void)state;
    static const char *const confs[] = {"", "expandable_segments:True", "max_split_size_mb:20"};
    for (uint64_t seed = 1; seed <= 24; seed++) {
        struct twins twins;
        uint64_t random = seed;
        open_twins(&twins, confs[seed % VR_COUNT_OF(confs)], seed % 4 < 2);
        if (seed % 8 < 2) open_pools(&twins);
        for (int picture = 0; picture < PICTURES; picture++) {
            for (uint64_t calls = vr_random_below(&random, 60); calls-- > 0;) step(&twins, &random);
            assert_alike(&twins);
        }
        for (size_t stream = 0; stream < STREAMS; stream++) {
            while (twins.count[stream] > 0) put(&twins, twins.live[stream][--twins.count[stream]]);
        }
        for (size_t stream = 0; stream < STREAMS; stream++) complete(&twins, stream);
        assert_alike(&twins);
        close_twins(&twins);
    }
}

// If the driver refuses, the call returns an error and nothing has changed.
static void a_driver_that_refuses(void **state) {
    (void)state;
    const struct {
        const char *call;
        uint64_t nth;
    } refused[] = {{"cuEventCreate", 1}, {"cuEventCreate", 2}, {"cuEventRecord", 1}, {"cuEventRecord", 2}, {"cuCtxGetCurrent", 1}};
    struct vr_world world;
    const struct vr_world_options options = {.sim = {.manual_completion = true}, .faults = true, .without_record = true};
    EXPECT_OK(vr_world_open(&world, &options));
    const uint64_t address = expect_malloc(&world, 1024, world.stream[0][1]);
    for (size_t stream = 2; stream <= 3; stream++) EXPECT_OK(vram_record_stream(world.allocator, address, world.stream[0][stream]));
    const struct vram_stats before = expect_stats(&world);
    for (size_t i = 0; i < VR_COUNT_OF(refused); i++) {
        EXPECT_OK(vram_driver_fault_set(world.driver, refused[i].call, refused[i].nth, VR_CU_UNKNOWN));
        EXPECT_STATUS(DRIVER, vram_free(world.allocator, address));
        assert_int_equal(expect_size(&world, address), 1024);
        const struct vram_stats after = expect_stats(&world);
        assert_memory_equal(&after, &before, sizeof after);
        EXPECT_OK(vram_check(world.allocator, NULL));
    }
    expect_free(&world, address);
    EXPECT_CURRENT(&world, active, 1);
    for (size_t stream = 2; stream <= 3; stream++) {
        uint64_t again = 0;
        EXPECT_OK(vr_world_complete(&world, 0, world.stream[0][stream]));
        EXPECT_OK(vram_driver_fault_set(world.driver, "cuEventQuery", 1, VR_CU_UNKNOWN));
        EXPECT_STATUS(DRIVER, vram_malloc(world.allocator, 0, 1024, world.stream[0][1], &again));
        EXPECT_CURRENT(&world, active, 1);
    }
    assert_int_equal(expect_malloc(&world, 1024, world.stream[0][1]), address);
    expect_free(&world, address);
    expect_end(&world);
}

// A thread without a context can still query; a driver that needs one is queried again with one.
static void a_look_without_a_context(void **state) {
    (void)state;
    struct vr_world world;
    const struct vr_world_options options = {.sim = {.manual_completion = true}, .faults = true, .without_record = true};
    EXPECT_OK(vr_world_open(&world, &options));
    const uint64_t own = world.stream[0][1], other = world.stream[0][2];
    for (int32_t result = 0; result <= VR_CU_INVALID_CONTEXT; result += VR_CU_INVALID_CONTEXT) {
        uint64_t address = 0;
        const uint64_t first = expect_malloc(&world, 1024, own);
        EXPECT_OK(vram_record_stream(world.allocator, first, other));
        expect_free(&world, first);
        EXPECT_OK(vr_world_complete(&world, 0, other));
        assert_int_equal(vr_cu(world.sim, ctx_set_current, 0), VR_CU_SUCCESS);
        if (result != 0) EXPECT_OK(vram_driver_fault_set(world.driver, "cuEventQuery", 1, result));
        EXPECT_OK(vram_malloc(world.allocator, 0, 1024, own, &address));
        assert_int_equal(vr_cu(world.sim, ctx_set_current, world.context[0]), VR_CU_SUCCESS);
        assert_int_equal(address, first);
        expect_free(&world, address);
    }
    assert_int_equal(vram_driver_fault_count(world.driver), 1);
    expect_end(&world);
}

// --- threads --------------------------------------------------------------------------------------------------------------------

enum { THREADS = 4, ROUNDS = 4000, SHARED = 16 };

struct worker {
    struct vr_world *world;
    size_t number;
    uint64_t random;
    _Atomic uint64_t *shared; // live blocks that any thread may take and free; 0: none
    atomic_uint *failures;
};

static void *work(void *argument) {
    struct worker *worker = argument;
    struct vram_allocator *allocator = worker->world->allocator;
    for (int round = 0; round < ROUNDS; round++) {
        uint64_t address = 0;
        const uint64_t drawn = vr_random_below(&worker->random, 64);
        const uint64_t *streams = worker->world->stream[0];
        unsigned failures = vram_malloc(allocator, 0, sizes[drawn % 3], streams[worker->number], &address) != VRAM_OK;
        failures += vram_record_stream(allocator, address, streams[(worker->number + 1 + drawn % 2) % STREAMS]) != VRAM_OK;
        if (drawn < 8) address = atomic_exchange(&worker->shared[drawn], address);
        failures += vram_free(allocator, address) != VRAM_OK;
        if (drawn == 63) {
            struct vram_stats stats;
            failures += vram_get_stats(allocator, 0, &stats) != VRAM_OK;
        }
        if (drawn == 62) failures += vram_sim_complete_all(worker->world->sim) != VRAM_OK;
        atomic_fetch_add(worker->failures, failures);
    }
    return NULL;
}

static void threads_that_share_streams_and_blocks(void **state) {
    (void)state;
    for (int manual = 0; manual < 2; manual++) {
        struct vr_world world;
        _Atomic uint64_t shared[SHARED] = {0};
        atomic_uint failures = 0;
        pthread_t threads[THREADS];
        struct worker workers[THREADS];
        const struct vr_world_options options = {.sim = {.memory_bytes = 64 * VR_GIB, .manual_completion = manual != 0},
                                                 .without_record = true};
        EXPECT_OK(vr_world_open(&world, &options));
        for (size_t i = 0; i < THREADS; i++) {
            workers[i] = (struct worker){&world, i / 2 + 1, 1000 * i + 1, shared, &failures};
            assert_int_equal(pthread_create(&threads[i], NULL, work, &workers[i]), 0);
        }
        for (size_t i = 0; i < THREADS; i++) assert_int_equal(pthread_join(threads[i], NULL), 0);
        assert_int_equal(failures, 0);
        for (size_t i = 0; i < SHARED; i++) EXPECT_OK(vram_free(world.allocator, shared[i]));
        EXPECT_OK(vram_sim_complete_all(world.sim));
        EXPECT_OK(vram_empty_cache(world.allocator));
        const struct vram_stats stats = expect_stats(&world);
        assert_int_equal(stats.active_bytes[VRAM_STAT_ALL].current, 0);
        assert_int_equal(stats.allocation[VRAM_STAT_ALL].allocated, THREADS * ROUNDS);
        assert_int_equal(stats.active[VRAM_STAT_ALL].freed, THREADS * ROUNDS);
        assert_int_equal(stats.reserved_bytes[VRAM_STAT_ALL].current, 0);
        expect_end(&world);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_same_block_again_and_again),
        cmocka_unit_test(requests_around_a_block_that_waits),
        cmocka_unit_test(completed_by_another_stream),
        cmocka_unit_test(a_block_whose_return_is_a_peak),
        cmocka_unit_test(a_use_that_somebody_captures),
        cmocka_unit_test(anything_in_any_order),
        cmocka_unit_test(a_driver_that_refuses),
        cmocka_unit_test(a_look_without_a_context),
        cmocka_unit_test(threads_that_share_streams_and_blocks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
