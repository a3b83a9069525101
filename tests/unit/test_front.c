// Tests pending frees: the free of a pool's last block stays pending, and the same request takes it again (core/front.h). A second
// allocator, whose statistics are queried after each call so that nothing stays pending, must behave the same.
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "core/front.h"
#include "driver/driver.h"
#include "support/expect.h"
#include "support/random.h"

enum { STREAMS = VR_WORLD_STREAMS, SIZES = 5, LIVE = 24, PICTURES = 100 };

// Sizes with the same and with different rounded sizes; blocks cut from a segment with a remainder after them; and a whole segment.
static const uint64_t sizes[SIZES] = {1000, 1024, 3 * VR_MIB, 3 * VR_MIB - 512, 20 * VR_MIB};

struct twins {
    struct vr_world front, settled;
    uint64_t live[STREAMS][LIVE];
    size_t count[STREAMS];
    uint64_t undone; // pending frees
};

// A fence waits until the test completes its stream.
static void open_twins(struct twins *twins, const char *conf) {
    const struct vr_world_options options = {
        .sim = {.memory_bytes = 64 * VR_GIB, .manual_completion = true}, .conf = conf, .without_record = true};
    memset(twins, 0, sizeof *twins);
    EXPECT_OK(vr_world_open(&twins->front, &options));
    EXPECT_OK(vr_world_open(&twins->settled, &options));
}

static void close_twins(struct twins *twins) {
    expect_end(&twins->front);
    expect_end(&twins->settled);
}

static uint8_t state_at(const struct vr_world *world, uint64_t address) {
    return vr_block_at(world->allocator, vr_address_map_find(&world->allocator->addresses, address))->state;
}

static uint64_t take(struct twins *twins, size_t stream, uint64_t size_bytes) {
    const uint64_t address = expect_malloc(&twins->front, size_bytes, twins->front.stream[0][stream]);
    assert_int_equal(expect_malloc(&twins->settled, size_bytes, twins->settled.stream[0][stream]), address);
    (void)expect_stats(&twins->settled);
    return address;
}

static void put(struct twins *twins, uint64_t address) {
    expect_free(&twins->front, address);
    expect_free(&twins->settled, address);
    twins->undone += state_at(&twins->front, address) == VR_AT_FRONT;
    (void)expect_stats(&twins->settled);
}

static void assert_alike(struct twins *twins) {
    const struct vram_stats found = expect_stats(&twins->front), expected = expect_stats(&twins->settled);
    assert_memory_equal(&found, &expected, sizeof found);
    EXPECT_OK(vram_check(twins->front.allocator, NULL));
    EXPECT_OK(vram_check(twins->settled.allocator, NULL));
}

static void reset_peaks(struct twins *twins) {
    EXPECT_OK(vram_reset_peak_stats(twins->front.allocator, 0));
    EXPECT_OK(vram_reset_peak_stats(twins->settled.allocator, 0));
}

// Uses each size separately, on all streams in turn, with the device at its peak.
static void pairs_in_turn(void **state) {
    (void)state;
    for (size_t i = 0; i < SIZES; i++) {
        struct twins twins;
        open_twins(&twins, "");
        uint64_t kept[STREAMS];
        for (size_t stream = 0; stream < STREAMS; stream++) kept[stream] = take(&twins, stream, sizes[i]);
        reset_peaks(&twins);
        for (int round = 0; round < 50; round++) {
            for (size_t stream = 0; stream < STREAMS; stream++) {
                for (int again = round % 3; again >= 0; again--) put(&twins, take(&twins, stream, sizes[i]));
            }
        }
        // All except each stream's first, which allocates a new segment if the size is a segment's.
        assert_in_range(twins.undone, (99 - 1) * STREAMS, 99 * STREAMS);
        assert_alike(&twins);
        for (size_t stream = 0; stream < STREAMS; stream++) put(&twins, kept[stream]);
        assert_alike(&twins);
        close_twins(&twins);
    }
}

// Two pairs together make one peak.
static void two_pairs_that_are_out_at_once(void **state) {
    (void)state;
    struct twins twins;
    open_twins(&twins, "");
    for (int round = 0; round < 3; round++) {
        for (size_t stream = 0; stream < 2; stream++) put(&twins, take(&twins, stream, 1024));
        if (round == 1) reset_peaks(&twins);
    }
    const uint64_t first = take(&twins, 0, 1024), second = take(&twins, 1, 1024);
    EXPECT_PEAK(&twins.front, allocation, 2);
    put(&twins, first);
    put(&twins, second);
    assert_alike(&twins);
    close_twins(&twins);
}

// The peak of a split segment's free bytes with the block free: others were freed since it was allocated.
static void a_peak_while_the_block_is_back(void **state) {
    (void)state;
    struct twins twins;
    open_twins(&twins, "");
    const uint64_t kept = take(&twins, 0, 512), first = take(&twins, 1, 4096), second = take(&twins, 1, 512);
    put(&twins, take(&twins, 0, 1024));
    reset_peaks(&twins);
    const uint64_t address = take(&twins, 0, 1024);
    put(&twins, first);
    put(&twins, address);
    assert_int_equal(take(&twins, 0, 1024), address);
    assert_alike(&twins);
    put(&twins, address);
    put(&twins, second);
    put(&twins, kept);
    assert_alike(&twins);
    close_twins(&twins);
}

static void use(struct twins *twins, uint64_t address, size_t stream) {
    EXPECT_OK(vram_record_stream(twins->front.allocator, address, twins->front.stream[0][stream]));
    EXPECT_OK(vram_record_stream(twins->settled.allocator, address, twins->settled.stream[0][stream]));
}

static void complete(struct twins *twins, size_t stream) {
    EXPECT_OK(vr_world_complete(&twins->front, 0, twins->front.stream[0][stream]));
    EXPECT_OK(vr_world_complete(&twins->settled, 0, twins->settled.stream[0][stream]));
}

// One of a program's calls: a pair, an allocation that stays, or a free.
static void step(struct twins *twins, uint64_t *random) {
    const size_t stream = (size_t)vr_random_below(random, STREAMS);
    const uint64_t size_bytes = sizes[vr_random_below(random, 2) == 0 ? vr_random_below(random, SIZES) : 1];
    const uint64_t kind = vr_random_below(random, 16);
    size_t *count = &twins->count[stream];
    const size_t other = (stream + 1) % STREAMS;
    if (kind < 3 && twins->count[other] > 0) { // frees another block while this one is live
        const uint64_t address = take(twins, stream, size_bytes);
        put(twins, twins->live[other][--twins->count[other]]);
        put(twins, address);
        put(twins, take(twins, stream, size_bytes));
    } else if (kind < 13) {
        for (uint64_t rounds = 1 + vr_random_below(random, 3); rounds > 0; rounds--) put(twins, take(twins, stream, size_bytes));
    } else if (kind == 13 && *count < LIVE) {
        twins->live[stream][(*count)++] = take(twins, stream, size_bytes);
    } else if (kind == 14 && *count > 0) {
        const size_t at = (size_t)vr_random_below(random, *count);
        put(twins, twins->live[stream][at]);
        twins->live[stream][at] = twins->live[stream][--*count];
    } else if (kind == 15 && vr_random_below(random, 8) == 0) {
        reset_peaks(twins);
    } else if (kind == 15) { // a block that waits for another stream, or no longer does
        const uint64_t address = take(twins, stream, size_bytes);
        use(twins, address, other);
        put(twins, address);
        if (vr_random_below(random, 2) == 0) complete(twins, (size_t)vr_random_below(random, STREAMS));
    }
}

static void anything_in_any_order(void **state) {
    (void)state;
    static const char *const confs[] = {"", "expandable_segments:True", "paged:True", "max_split_size_mb:20"};
    uint64_t undone = 0;
    for (uint64_t seed = 1; seed <= 24; seed++) {
        struct twins twins;
        uint64_t random = seed;
        open_twins(&twins, confs[seed % VR_COUNT_OF(confs)]);
        for (int picture = 0; picture < PICTURES; picture++) {
            for (uint64_t calls = vr_random_below(&random, 60); calls-- > 0;) step(&twins, &random);
            assert_alike(&twins);
        }
        undone += twins.undone;
        for (size_t stream = 0; stream < STREAMS; stream++) {
            while (twins.count[stream] > 0) put(&twins, twins.live[stream][--twins.count[stream]]);
        }
        assert_alike(&twins);
        close_twins(&twins);
    }
    assert_in_range(undone, 20000, UINT64_MAX);
}

// A freed block is not a block, even if its free is pending; and the free of a block with uses does not stay pending.
static void what_is_back_is_free(void **state) {
    (void)state;
    struct twins twins;
    open_twins(&twins, "");
    for (size_t i = 0; i < SIZES; i++) {
        put(&twins, take(&twins, 0, sizes[i]));
        const uint64_t address = take(&twins, 0, sizes[i]);
        put(&twins, address);
        assert_int_equal(state_at(&twins.front, address), VR_AT_FRONT);
        EXPECT_STATUS(INVALID_POINTER, vram_free(twins.front.allocator, address));
        EXPECT_STATUS(INVALID_POINTER, vram_record_stream(twins.front.allocator, address, twins.front.stream[0][1]));
        EXPECT_CURRENT(&twins.front, allocation, 0);
        assert_int_equal(state_at(&twins.front, address), VR_FREE);
        assert_int_equal(take(&twins, 0, sizes[i]), address);
        EXPECT_OK(vram_record_stream(twins.front.allocator, address, twins.front.stream[0][1]));
        EXPECT_OK(vram_record_stream(twins.settled.allocator, address, twins.settled.stream[0][1]));
        put(&twins, address);
        assert_int_equal(state_at(&twins.front, address), VR_PENDING);
        EXPECT_OK(vram_empty_cache(twins.front.allocator));
        EXPECT_OK(vram_empty_cache(twins.settled.allocator));
    }
    assert_alike(&twins);
    close_twins(&twins);
}

// Pairs go on while blocks wait for fences. One that has passed by the time of a request is free after it: in the pair's own pool, where it
// is the pair's neighbour, and in another one.
static void pairs_go_on_while_fences_wait(void **state) {
    (void)state;
    for (size_t owner = 0; owner < 2; owner++) {
        struct twins twins;
        open_twins(&twins, "");
        const uint64_t kept = take(&twins, 0, 1024), waiting = take(&twins, owner, 1024);
        put(&twins, take(&twins, 0, 1024));
        use(&twins, waiting, 2);
        put(&twins, waiting);
        assert_int_equal(state_at(&twins.front, waiting), VR_PENDING);
        put(&twins, take(&twins, 0, 1024));
        const uint64_t undone = twins.undone;
        for (int round = 0; round < 10; round++) put(&twins, take(&twins, 0, 1024));
        assert_int_equal(twins.undone, undone + 10);
        assert_int_equal(state_at(&twins.front, waiting), VR_PENDING);
        complete(&twins, 2);
        const uint64_t address = take(&twins, 0, 1024);
        assert_int_not_equal(state_at(&twins.front, waiting), VR_PENDING);
        assert_alike(&twins);
        put(&twins, address);
        put(&twins, kept);
        assert_alike(&twins);
        close_twins(&twins);
    }
}

// A listener receives every call with all its facts.
static void a_listener_is_told(void **state) {
    (void)state;
    struct vr_world world;
    expect_world(&world, "", 64 * VR_GIB);
    uint64_t address = expect_malloc(&world, 1024, 0);
    expect_free(&world, address);
    for (int round = 0; round < 4; round++) {
        vr_world_forget(&world);
        address = expect_malloc(&world, 1024, 0);
        EXPECT_RECORDS(&world, {VR_RECORD_ALLOC, address, 1024});
        vr_world_forget(&world);
        expect_free(&world, address);
        EXPECT_RECORDS(&world, {VR_RECORD_FREE_REQUESTED, address, 1024}, {VR_RECORD_FREE_COMPLETED, address, 1024});
        assert_int_equal(state_at(&world, address), VR_AT_FRONT);
    }
    expect_end(&world);
}

// --- threads --------------------------------------------------------------------------------------------------------------------------

enum { THREADS = 4, ROUNDS = 20000, SHARED = 8 };

struct passing {
    struct vr_world world;
    uint64_t streams[THREADS];
    _Atomic uint64_t shared[SHARED];
};
struct passer {
    struct passing *passing;
    uint64_t random;
    uint64_t stream;
};

static void *pass(void *argument) {
    struct passer *own = argument;
    struct vram_allocator *allocator = own->passing->world.allocator;
    for (int round = 0; round < ROUNDS; round++) {
        uint64_t address = 0;
        const uint64_t size_bytes = vr_random_below(&own->random, 2) == 0 ? 1024 : 3 * VR_MIB;
        for (uint64_t times = vr_random_below(&own->random, 6); times-- > 0;) {
            EXPECT_OK(vram_malloc(allocator, 0, size_bytes, own->stream, &address));
            EXPECT_OK(vram_free(allocator, address));
        }
        EXPECT_OK(vram_malloc(allocator, 0, size_bytes, own->stream, &address));
        address = atomic_exchange(&own->passing->shared[vr_random_below(&own->random, SHARED)], address);
        EXPECT_OK(vram_free(allocator, address));
        EXPECT_OK(vram_free(allocator, 0)); // even while the first shard is created
    }
    return NULL;
}

// Threads free blocks that other threads allocated.
static void pairs_of_many_threads(void **state) {
    (void)state;
    static struct passing passing;
    struct passer passers[THREADS];
    pthread_t threads[THREADS];
    const struct vr_world_options options = {.sim = {.memory_bytes = 64 * VR_GIB}, .conf = "", .without_record = true};
    EXPECT_OK(vr_world_open(&passing.world, &options));
    for (size_t i = 0; i < THREADS; i++) {
        if (i != 0)
            assert_int_equal(vr_cu(passing.world.sim, stream_create, &passing.streams[i], VR_CU_STREAM_NON_BLOCKING), VR_CU_SUCCESS);
        passers[i] = (struct passer){&passing, i + 1, passing.streams[i]};
        assert_int_equal(pthread_create(&threads[i], NULL, pass, &passers[i]), 0);
    }
    for (size_t i = 0; i < THREADS; i++) assert_int_equal(pthread_join(threads[i], NULL), 0);
    for (size_t i = 0; i < SHARED; i++) EXPECT_OK(vram_free(passing.world.allocator, atomic_load(&passing.shared[i])));
    EXPECT_OK(vram_check(passing.world.allocator, NULL));
    EXPECT_CURRENT(&passing.world, allocation, 0);
    EXPECT_CURRENT(&passing.world, allocated_bytes, 0);
    expect_end(&passing.world);
}

int main(void) {
    if (!VRAM_FRONT) {
        print_message("built without the front\n");
        return 77;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pairs_in_turn),
        cmocka_unit_test(two_pairs_that_are_out_at_once),
        cmocka_unit_test(a_peak_while_the_block_is_back),
        cmocka_unit_test(anything_in_any_order),
        cmocka_unit_test(what_is_back_is_free),
        cmocka_unit_test(pairs_go_on_while_fences_wait),
        cmocka_unit_test(a_listener_is_told),
        cmocka_unit_test(pairs_of_many_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
