// At the peak of the device the pair of one stream has the room that the pair of another needs: the books pass from one to the other
// (vr_take_passed()). Beside an allocator that is asked for its statistics after each call, so that nothing is put off there, all is the
// same.
#include <string.h>

#include "core/state.h"
#include "driver/driver.h"
#include "support/expect.h"
#include "support/random.h"

enum { STREAMS = VR_WORLD_STREAMS, SIZES = 5, LIVE = 24, PICTURES = 400 };

// Of one rounded size and not the same; cut from a segment with a rest behind; whole.
static const uint64_t sizes[SIZES] = {1000, 1024, 3 * VR_MIB, 3 * VR_MIB - 512, 20 * VR_MIB};

struct twins {
    struct vr_world put_off, at_once;
    uint64_t live[STREAMS][LIVE];
    size_t count[STREAMS];
    uint64_t passed; // hand-outs after which the room of a pair is elsewhere than the device's allowance
};

static void open_twins(struct twins *twins, const char *conf) {
    const struct vr_world_options options = {.sim = {.memory_bytes = 64 * VR_GIB}, .conf = conf, .without_record = true};
    memset(twins, 0, sizeof *twins);
    EXPECT_OK(vr_world_open(&twins->put_off, &options));
    EXPECT_OK(vr_world_open(&twins->at_once, &options));
}

static void close_twins(struct twins *twins) {
    expect_end(&twins->put_off);
    expect_end(&twins->at_once);
}

static const struct vr_shards *shards_of(const struct twins *twins) {
    return &atomic_load_explicit(&twins->put_off.allocator->devices[0], memory_order_relaxed)->shards;
}

static void look_away(struct twins *twins) { (void)expect_stats(&twins->at_once); }

static uint64_t take(struct twins *twins, size_t stream, uint64_t size_bytes) {
    const uint64_t address = expect_malloc(&twins->put_off, size_bytes, twins->put_off.stream[0][stream]);
    assert_int_equal(expect_malloc(&twins->at_once, size_bytes, twins->at_once.stream[0][stream]), address);
    look_away(twins);
    const struct vr_shards *shards = shards_of(twins);
    twins->passed += atomic_load(&shards->paired) != atomic_load(&shards->rich);
    return address;
}

static void put(struct twins *twins, uint64_t address) {
    expect_free(&twins->put_off, address);
    expect_free(&twins->at_once, address);
    look_away(twins);
}

static void assert_alike(struct twins *twins) {
    const struct vram_stats found = expect_stats(&twins->put_off), expected = expect_stats(&twins->at_once);
    assert_memory_equal(&found, &expected, sizeof found);
    EXPECT_OK(vram_check(twins->put_off.allocator, NULL));
}

static void reset_peaks(struct twins *twins) {
    EXPECT_OK(vram_reset_peak_stats(twins->put_off.allocator, 0));
    EXPECT_OK(vram_reset_peak_stats(twins->at_once.allocator, 0));
}

// Each size by itself, all streams in turn, as often as you like: once begun it never needs all locks.
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
        assert_in_range(twins.passed, 3 * 50, UINT64_MAX);
        assert_alike(&twins);
        for (size_t stream = 0; stream < STREAMS; stream++) put(&twins, kept[stream]);
        assert_alike(&twins);
        close_twins(&twins);
    }
}

// A peak that the two pairs make together is one: the second finds no room in the first, which is out.
static void a_pair_that_is_out_passes_nothing(void **state) {
    (void)state;
    struct twins twins;
    open_twins(&twins, "");
    for (size_t stream = 0; stream < 2; stream++) put(&twins, take(&twins, stream, 1024));
    reset_peaks(&twins);
    for (size_t stream = 0; stream < 2; stream++) put(&twins, take(&twins, stream, 1024));
    const uint64_t first = take(&twins, 0, 1024), second = take(&twins, 1, 1024);
    EXPECT_PEAK(&twins.put_off, allocation, 2);
    put(&twins, first);
    put(&twins, second);
    assert_alike(&twins);
    close_twins(&twins);
}

static uint64_t take_in(struct vram_pool *pool, uint64_t size_bytes) {
    uint64_t address = 0;
    EXPECT_OK(vram_pool_malloc(pool, size_bytes, 0, &address));
    return address;
}

// One request has two sizes, in pools whose blocks are handed out whole: such pairs pass nothing.
static void pairs_of_one_request_and_two_sizes(void **state) {
    (void)state;
    struct vr_world world;
    struct vram_pool *pools[2] = {NULL};
    const struct vr_world_options options = {.sim = {.memory_bytes = 64 * VR_GIB}, .conf = "", .without_record = true};
    EXPECT_OK(vr_world_open(&world, &options));
    for (size_t i = 0; i < 2; i++) {
        EXPECT_OK(vram_pool_create(world.allocator, 0, NULL, &pools[i]));
        vram_pool_set_no_split(pools[i], true);
        expect_free(&world, take_in(pools[i], (i == 0 ? 14 : 12) * VR_MIB));
    }
    EXPECT_OK(vram_reset_peak_stats(world.allocator, 0));
    for (int round = 0; round < 20; round++) {
        for (size_t i = 0; i < 2; i++) {
            const uint64_t address = take_in(pools[i], 12 * VR_MIB);
            assert_int_equal(expect_size(&world, address), (i == 0 ? 14 : 12) * VR_MIB);
            expect_free(&world, address);
        }
    }
    const struct vram_stats stats = expect_stats(&world);
    assert_int_equal(stats.allocated_bytes[VRAM_STAT_ALL].current, 0);
    assert_int_equal(stats.allocated_bytes[VRAM_STAT_ALL].peak, 14 * VR_MIB);
    assert_int_equal(stats.allocated_bytes[VRAM_STAT_ALL].allocated, 21 * 26 * VR_MIB);
    assert_int_equal(stats.requested_bytes[VRAM_STAT_ALL].freed, (26 + 20 * 24) * VR_MIB);
    for (size_t i = 0; i < 2; i++) vram_pool_release(pools[i]);
    expect_end(&world);
}

// One call of the many that a program makes: a pair, or something that stays, or something that goes.
static void step(struct twins *twins, uint64_t *random) {
    const size_t stream = (size_t)vr_random_below(random, STREAMS);
    const uint64_t size_bytes = sizes[vr_random_below(random, 2) == 0 ? vr_random_below(random, SIZES) : 1];
    const uint64_t kind = vr_random_below(random, 16);
    size_t *count = &twins->count[stream];
    if (kind < 13) {
        put(twins, take(twins, stream, size_bytes));
    } else if (kind == 13 && *count < LIVE) {
        twins->live[stream][(*count)++] = take(twins, stream, size_bytes);
    } else if (kind == 14 && *count > 0) {
        const size_t at = (size_t)vr_random_below(random, *count);
        put(twins, twins->live[stream][at]);
        twins->live[stream][at] = twins->live[stream][--*count];
    } else if (kind == 15 && vr_random_below(random, 8) == 0) {
        reset_peaks(twins);
    }
}

static void anything_in_any_order(void **state) {
    (void)state;
    uint64_t passed = 0;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        struct twins twins;
        uint64_t random = seed;
        open_twins(&twins, seed % 2 == 0 ? "" : "expandable_segments:True");
        for (int picture = 0; picture < PICTURES; picture++) {
            for (uint64_t calls = vr_random_below(&random, 60); calls-- > 0;) step(&twins, &random);
            assert_alike(&twins);
        }
        passed += twins.passed;
        for (size_t stream = 0; stream < STREAMS; stream++) {
            while (twins.count[stream] > 0) put(&twins, twins.live[stream][--twins.count[stream]]);
        }
        assert_alike(&twins);
        close_twins(&twins);
    }
    assert_in_range(passed, 1000, UINT64_MAX);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pairs_in_turn),
        cmocka_unit_test(a_pair_that_is_out_passes_nothing),
        cmocka_unit_test(pairs_of_one_request_and_two_sizes),
        cmocka_unit_test(anything_in_any_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
