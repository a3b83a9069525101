// A free of a pair that repeats finds its block by a hint (core/pair_hints.h). A hint that is out of date, or of something else, is seen to
// be that: whatever hints say, each free does what it does without them.
#include <pthread.h>

#include "core/pair_hints.h"
#include "driver/driver.h"
#include "support/expect.h"
#include "support/random.h"

static void open_world(struct vr_world *world) {
    const struct vr_world_options options = {.sim = {.memory_bytes = 64 * VR_GIB}, .conf = "", .without_record = true};
    EXPECT_OK(vr_world_open(world, &options));
}

static uint64_t hint_of(struct vr_world *world, uint64_t address) {
    const uint64_t hint = atomic_load_explicit(vr_pair_hint_place(world->allocator, address), memory_order_relaxed);
    return hint != 0 && vr_pair_hints_at(hint, address) ? hint : 0;
}

// Out and back until a hint leads there; the block is out afterwards.
static uint64_t repeat(struct vr_world *world, uint64_t size_bytes, uint64_t stream) {
    uint64_t address = expect_malloc(world, size_bytes, stream);
    for (int round = 0; round < 3; round++) {
        expect_free(world, address);
        assert_int_equal(expect_malloc(world, size_bytes, stream), address);
    }
    assert_int_not_equal(hint_of(world, address), 0);
    return address;
}

static void a_pair_is_found(void **state) {
    (void)state;
    struct vr_world world;
    open_world(&world);
    const uint64_t sizes[] = {1024, 4 * VR_MIB, 100 * VR_MIB};
    for (size_t i = 0; i < VR_COUNT_OF(sizes); i++) {
        const uint64_t address = repeat(&world, sizes[i], 0), hint = hint_of(&world, address);
        assert_int_equal(hint >> 16 & 1, sizes[i] <= VR_SMALL_LIMIT);
        for (int round = 0; round < 2 * VR_PAIR_ROUNDS_PER_HINT; round++) {
            assert_true(vr_put_back_hinted(world.allocator, address));
            assert_false(vr_put_back_hinted(world.allocator, address)); // it is back: the hint is dropped, and comes again
            assert_int_equal(expect_malloc(&world, sizes[i], 0), address);
            atomic_store(vr_pair_hint_place(world.allocator, address), hint);
        }
        EXPECT_CURRENT(&world, allocation, 1);
        expect_free(&world, address);
        EXPECT_STATUS(INVALID_POINTER, vram_free(world.allocator, address)); // twice
        EXPECT_CURRENT(&world, allocation, 0);
        EXPECT_OK(vram_check(world.allocator, NULL));
    }
    expect_end(&world);
}

// Nothing, nonsense, addresses within the block, and what has the same 47 bits.
static void no_address_is_mistaken(void **state) {
    (void)state;
    struct vr_world world;
    open_world(&world);
    EXPECT_OK(vram_free(world.allocator, 0));
    EXPECT_STATUS(INVALID_POINTER, vram_free(world.allocator, 256));
    const uint64_t address = repeat(&world, 1024, 0);
    const uint64_t others[] = {
        1, 511, address + 1, address + 256, address + 512, address | (uint64_t)1 << 56, address | (uint64_t)255 << 56, UINT64_MAX};
    for (size_t i = 0; i < VR_COUNT_OF(others); i++) {
        EXPECT_STATUS(INVALID_POINTER, vram_free(world.allocator, others[i]));
        // A hint at that address' own place, to each of the shards.
        for (uint32_t shard = 0; shard < atomic_load(&world.allocator->shard_count); shard++) {
            for (uint8_t small = 0; small < 2; small++) {
                atomic_store(vr_pair_hint_place(world.allocator, others[i]), vr_pair_hint(others[i] & ~(uint64_t)511, small, shard));
                EXPECT_STATUS(INVALID_POINTER, vram_free(world.allocator, others[i]));
            }
        }
        EXPECT_CURRENT(&world, allocation, 1);
    }
    expect_free(&world, address);
    expect_end(&world);
}

// The address is another block's by now: of another pool, of another stream, of a private pool, and one that has uses.
static void what_is_out_of_date_leads_nowhere(void **state) {
    (void)state;
    struct vr_world world;
    uint64_t stream = 0;
    struct vram_pool *pool = NULL;
    open_world(&world);
    assert_int_equal(vr_cu(world.sim, stream_create, &stream, VR_CU_STREAM_NON_BLOCKING), VR_CU_SUCCESS);
    const uint64_t address = repeat(&world, 4 * VR_MIB, 0), hint = hint_of(&world, address);
    expect_free(&world, address);
    EXPECT_OK(vram_empty_cache(world.allocator));
    atomic_store(vr_pair_hint_place(world.allocator, address), hint);
    EXPECT_STATUS(INVALID_POINTER, vram_free(world.allocator, address));

    EXPECT_OK(vram_pool_create(world.allocator, 0, NULL, &pool));
    for (int kind = 0; kind < 4; kind++) {
        uint64_t again = 0;
        switch (kind) {
        case 0: again = expect_malloc(&world, 1024, 0); break;
        case 1: again = expect_malloc(&world, 4 * VR_MIB, stream); break;
        case 2: EXPECT_OK(vram_pool_malloc(pool, 4 * VR_MIB, 0, &again)); break;
        default:
            again = repeat(&world, 4 * VR_MIB, 0);
            EXPECT_OK(vram_record_stream(world.allocator, again, stream));
            break;
        }
        atomic_store(vr_pair_hint_place(world.allocator, again), vr_pair_hint(again, 0, (uint32_t)(hint & 0xffff)));
        assert_false(vr_put_back_hinted(world.allocator, again));
        assert_int_equal(hint_of(&world, again), 0); // it is dropped
        expect_free(&world, again);
        EXPECT_OK(vram_check(world.allocator, NULL));
        EXPECT_CURRENT(&world, allocation, 0);
        EXPECT_OK(vram_empty_cache(world.allocator));
    }
    vram_pool_release(pool);
    expect_end(&world);
}

// Somebody who listens is told of every free.
static void a_listener_is_told(void **state) {
    (void)state;
    struct vr_world world;
    expect_world(&world, "", 64 * VR_GIB);
    uint64_t address = expect_malloc(&world, 1024, 0);
    const struct vr_block *item = vr_block_at(world.allocator, vr_address_map_find(&world.allocator->addresses, address));
    for (int round = 0; round < 4; round++) {
        vr_pair_hint_now(world.allocator, item);
        vr_world_forget(&world);
        expect_free(&world, address);
        EXPECT_RECORDS(&world, {VR_RECORD_FREE_REQUESTED, address, 1024}, {VR_RECORD_FREE_COMPLETED, address, 1024});
        address = expect_malloc(&world, 1024, 0);
    }
    expect_free(&world, address);
    expect_end(&world);
}

// Two pairs of one place: each goes its way, and the place is not written at each round.
static void two_pairs_at_one_place(void **state) {
    (void)state;
    struct vr_world world;
    uint64_t streams[2] = {0}, pair[2] = {0};
    open_world(&world);
    assert_int_equal(vr_cu(world.sim, stream_create, &streams[1], VR_CU_STREAM_NON_BLOCKING), VR_CU_SUCCESS);
    pair[0] = repeat(&world, VR_MIB, 0);
    do pair[1] = expect_malloc(&world, VR_MIB, streams[1]);
    while (vr_pair_hint_place(world.allocator, pair[0]) != vr_pair_hint_place(world.allocator, pair[1]));
    uint64_t last = 0, changes = 0;
    for (int round = 0; round < 4 * VR_PAIR_ROUNDS_PER_HINT; round++) {
        for (size_t i = 0; i < 2; i++) {
            expect_free(&world, pair[i]);
            assert_int_equal(expect_malloc(&world, VR_MIB, streams[i]), pair[i]);
            const uint64_t now = atomic_load(vr_pair_hint_place(world.allocator, pair[0]));
            changes += now != last;
            last = now;
        }
    }
    assert_in_range(changes, 1, 16);
    expect_free(&world, pair[0]);
    EXPECT_OK(vram_check(world.allocator, NULL));
    vr_world_close(&world);
}

// Threads that give back what others took: hints go stale while they are read.
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
        EXPECT_OK(vram_free(allocator, 0)); // also while the first shard is made
    }
    return NULL;
}

static void hints_between_threads(void **state) {
    (void)state;
    static struct passing passing;
    struct passer passers[THREADS];
    pthread_t threads[THREADS];
    open_world(&passing.world);
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
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_pair_is_found),    cmocka_unit_test(no_address_is_mistaken), cmocka_unit_test(what_is_out_of_date_leads_nowhere),
        cmocka_unit_test(a_listener_is_told), cmocka_unit_test(two_pairs_at_one_place), cmocka_unit_test(hints_between_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
