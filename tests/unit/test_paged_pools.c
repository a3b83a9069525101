// Tests private pools with paged:True: they share the same pages, except those that a graph may contain.
#include "support/captures.h"

#include "live/device_picture.h"
#include "core/state.h"
#include "driver/abi.h"
#include "driver/fault/fault.h"
#include "vram/sim.h"
#include "vram/sleep.h"

enum { MIB = 1 << 20, MILLISECOND = 1000000 };

static void open_world(struct vr_world *world, uint64_t memory_bytes, const char *conf) {
    const struct vr_world_options options = {.sim = {.memory_bytes = memory_bytes}, .conf = conf};
    EXPECT_OK(vr_world_open(world, &options));
}

static struct vram_pool *expect_pool(struct vr_world *world, const char *tag) {
    const struct vram_pool_options options = {.tag = tag};
    struct vram_pool *pool = NULL;
    EXPECT_OK(vram_pool_create(world->allocator, 0, &options, &pool));
    return pool;
}

static uint64_t expect_pool_malloc(struct vram_pool *pool, uint64_t size_bytes, uint64_t stream) {
    uint64_t address = 0;
    EXPECT_OK(vram_pool_malloc(pool, size_bytes, stream, &address));
    return address;
}

static void expect_sound(const struct vr_world *world) {
    struct vram_error error = {0};
    if (vram_check(world->allocator, &error) != VRAM_OK) fail_msg("%s", error.message);
}

static int64_t held_by(struct vram_pool *pool) {
    struct vram_pool_stats stats;
    EXPECT_OK(vram_get_pool_stats(pool, &stats));
    return stats.reserved_bytes[VRAM_STAT_ALL].current;
}

static uint64_t driver_calls(const struct vr_world *world) {
    static const char *const calls[] = {"cuMemCreate", "cuMemRelease", "cuMemMap", "cuMemUnmap", "cuMemSetAccess", "cuMemAddressReserve"};
    uint64_t sum = 0;
    for (size_t i = 0; i < VR_COUNT_OF(calls); i++) sum += vram_sim_calls(world->sim, calls[i]);
    return sum;
}

// --- moving -----------------------------------------------------------------------------------------------------------------------------

// Pages move from a pool to the default pools, and from there to another pool.
static void pools_draw_on_the_same_pages(void **state) {
    (void)state;
    struct vr_world world;
    open_world(&world, 0, "paged:True");
    struct vram_pool *a = expect_pool(&world, NULL), *b = expect_pool(&world, NULL);
    const uint64_t first = expect_pool_malloc(a, 40 * MIB, 0);
    assert_int_equal(held_by(a), 40 * MIB);
    expect_free(&world, first);
    const uint64_t second = expect_malloc(&world, 30 * MIB, 0);
    assert_int_equal(held_by(a), 10 * MIB);
    assert_int_equal(expect_stats(&world).moved_bytes, 30 * MIB);
    expect_free(&world, second);
    const uint64_t third = expect_pool_malloc(b, 40 * MIB, 0);
    assert_int_equal(held_by(a), 0);
    assert_int_equal(held_by(b), 40 * MIB);
    EXPECT_CURRENT(&world, reserved_bytes, 40 * MIB);
    assert_int_equal(expect_stats(&world).moved_bytes, 70 * MIB);
    expect_sound(&world);
    bool equal = false;
    EXPECT_OK(vram_pool_holds_exactly(b, &third, 1, &equal));
    assert_true(equal);
    expect_free(&world, third);
    // Pages of small blocks move, too, if no others are left.
    EXPECT_OK(vram_set_memory_limit(world.allocator, 0, 40 * (uint64_t)MIB));
    const uint64_t little = expect_pool_malloc(a, 1000, 0);
    expect_free(&world, little);
    const uint64_t all = expect_malloc(&world, 40 * MIB, 0);
    EXPECT_CURRENT(&world, reserved_bytes, 40 * MIB);
    expect_sound(&world);
    expect_free(&world, all);
    vram_pool_release(a);
    vram_pool_release(b);
    EXPECT_OK(vram_empty_cache(world.allocator));
    EXPECT_CURRENT(&world, reserved_bytes, 0);
    expect_end(&world);
}

// Pages move to another pool and another stream in one step, but not before the previous stream's work is done, unless no other pages are
// left.
static void pages_of_other_streams_wait(void **state) {
    (void)state;
    struct vr_world world;
    open_world(&world, 100 * MIB, "paged:True");
    const uint64_t other = world.stream[0][1];
    struct vram_pool *pool = expect_pool(&world, NULL);
    const uint64_t address = expect_pool_malloc(pool, 60 * MIB, other);
    EXPECT_OK(vram_sim_busy(world.sim, 0, other, 10 * MILLISECOND));
    expect_free(&world, address);
    const uint64_t fresh = expect_malloc(&world, 30 * MIB, 0);
    assert_int_equal(expect_stats(&world).moved_bytes, 0);
    // Only these pages are left: the stream waits, the host does not.
    const uint64_t synchronised = vram_sim_calls(world.sim, "cuStreamSynchronize"), waits = vram_sim_calls(world.sim, "cuStreamWaitEvent");
    const uint64_t moved = expect_malloc(&world, 50 * MIB, 0);
    assert_int_equal(vram_sim_calls(world.sim, "cuStreamSynchronize"), synchronised);
    assert_true(vram_sim_calls(world.sim, "cuStreamWaitEvent") > waits);
    assert_true(expect_stats(&world).moved_bytes >= 40 * (int64_t)MIB);
    expect_sound(&world);
    expect_free(&world, moved);
    expect_free(&world, fresh);
    vram_pool_release(pool);
    EXPECT_OK(vram_sim_complete_all(world.sim));
    expect_end(&world);
}

// A stream gets its own pages back from another one, if they are free, even if other pages have been free for longer: nothing is mapped
// again.
static void a_stream_gets_its_own_pages_back(void **state) {
    (void)state;
    struct vr_world world;
    open_world(&world, 0, "paged:True");
    const uint64_t own = world.stream[0][1], other = world.stream[0][2], first = expect_malloc(&world, 10 * MIB, own);
    expect_free(&world, first);
    const uint64_t on_them = expect_malloc(&world, 12 * MIB, other), kept = expect_malloc(&world, 12 * MIB, other);
    EXPECT_CURRENT(&world, reserved_bytes, 24 * MIB);
    expect_free(&world, kept);
    expect_free(&world, on_them);
    const uint64_t calls = driver_calls(&world);
    assert_int_equal(expect_malloc(&world, 10 * MIB, own), first);
    assert_int_equal(driver_calls(&world), calls);
    expect_sound(&world);
    expect_free(&world, first);
    expect_end(&world);
}

// Which of a stream's slots are available depends on whether others are done with the pages: each other stream is queried once.
static void a_stream_that_works_on_is_asked_once(void **state) {
    (void)state;
    struct vr_world world;
    open_world(&world, 0, "paged:True");
    const uint64_t own = world.stream[0][1], other = world.stream[0][2];
    uint64_t blocks[20];
    for (size_t i = 0; i < VR_COUNT_OF(blocks); i++) blocks[i] = expect_malloc(&world, 4 * MIB, own);
    for (size_t i = 0; i < VR_COUNT_OF(blocks); i++) expect_free(&world, blocks[i]);
    const uint64_t all = expect_malloc(&world, VR_COUNT_OF(blocks) * 4 * MIB, other);
    assert_int_equal(expect_stats(&world).moved_bytes, VR_COUNT_OF(blocks) * 4 * MIB);
    EXPECT_OK(vram_sim_busy(world.sim, 0, other, 10 * MILLISECOND));
    expect_free(&world, all);
    const uint64_t queries = vram_sim_calls(world.sim, "cuEventQuery");
    const uint64_t fresh = expect_malloc(&world, 4 * MIB, own);
    assert_in_range(vram_sim_calls(world.sim, "cuEventQuery") - queries, 1, 2); // for a slot, and for any pages
    EXPECT_OK(vram_sim_complete_all(world.sim));                                // and again by the next request
    assert_int_equal(expect_malloc(&world, 4 * MIB, own), blocks[0]);
    expect_free(&world, blocks[0]);
    expect_free(&world, fresh);
    expect_end(&world);
}

// --- creation and release of pools ------------------------------------------------------------------------------------------------------

// A pool created and ended in each step costs no driver calls once its sizes repeat.
static void pools_that_end_leave_their_places(void **state) {
    (void)state;
    struct vr_world world;
    open_world(&world, 0, "paged:True");
    uint64_t before = 0;
    for (int step = 0; step < 50; step++) {
        struct vram_pool *pool = expect_pool(&world, NULL);
        const uint64_t stream = world.stream[0][step < 25 ? 0 : 1];
        uint64_t block[4];
        for (int i = 0; i < 4; i++) block[i] = expect_pool_malloc(pool, (3 + 7 * (uint64_t)i) * MIB + 512, stream);
        const uint64_t little = expect_pool_malloc(pool, 1000, stream);
        expect_sound(&world);
        for (int i = 0; i < 4; i++) expect_free(&world, block[i]);
        expect_free(&world, little);
        vram_pool_release(pool);
        EXPECT_OK(vram_sim_complete_all(world.sim));
        expect_sound(&world);
        if (step % 25 == 3) before = driver_calls(&world);
        if (step % 25 > 3) assert_int_equal(driver_calls(&world), before);
    }
    assert_true(expect_stats(&world).reserved_bytes[VRAM_STAT_ALL].peak <= 64 * (int64_t)MIB);
    // A block of an ended pool keeps its memory until it is freed.
    struct vram_pool *last = expect_pool(&world, NULL);
    const uint64_t kept = expect_pool_malloc(last, 5 * MIB, 0), gone = expect_pool_malloc(last, 6 * MIB, 0);
    expect_free(&world, gone);
    vram_pool_release(last);
    expect_sound(&world);
    expect_free(&world, expect_malloc(&world, 6 * MIB, 0));
    expect_free(&world, kept);
    EXPECT_OK(vram_empty_cache(world.allocator));
    EXPECT_CURRENT(&world, reserved_bytes, 0);
    expect_sound(&world);
    expect_end(&world);
}

static void a_trimmed_pool_gives_back(void **state) {
    (void)state;
    struct vr_world world;
    open_world(&world, 0, "paged:True");
    struct vram_pool *pool = expect_pool(&world, NULL);
    const uint64_t kept = expect_pool_malloc(pool, 10 * MIB, 0), other = expect_malloc(&world, 8 * MIB, 0);
    expect_free(&world, expect_pool_malloc(pool, 20 * MIB, 0));
    expect_free(&world, other);
    EXPECT_OK(vram_pool_empty_cache(pool));
    assert_int_equal(held_by(pool), 10 * MIB);
    EXPECT_CURRENT(&world, reserved_bytes, 18 * MIB);
    struct vram_checkpoint *checkpoint = NULL;
    assert_int_equal(vram_pool_checkpoint(pool, &checkpoint), VRAM_UNSUPPORTED);
    expect_sound(&world);
    expect_free(&world, kept);
    vram_pool_release(pool);
    expect_end(&world);
}

// --- graphs -----------------------------------------------------------------------------------------------------------------------------

// From the first capture on, a pool keeps its pages, including earlier ones, until it has no references.
static void a_graph_keeps_its_pages(void **state) {
    (void)state;
    struct vr_world world;
    open_world(&world, 64 * MIB, "paged:True");
    const uint64_t stream = world.stream[0][1];
    struct vram_pool *pool = expect_pool(&world, NULL);
    const uint64_t before = expect_pool_malloc(pool, 20 * MIB, stream);
    expect_free(&world, before);
    begin(pool, stream, VRAM_CAPTURE_RELAXED);
    const uint64_t again = expect_malloc(&world, 20 * MIB, stream), more = expect_malloc(&world, 10 * MIB, stream);
    const uint64_t little = expect_malloc(&world, 1000, stream);
    assert_int_equal(again, before);
    expect_free(&world, again);
    expect_free(&world, more);
    expect_free(&world, little);
    uint64_t graph = 0;
    EXPECT_OK(vram_capture_end(pool, stream, &graph, NULL));
    const int64_t held = held_by(pool);
    assert_true(held >= 32 * MIB);
    uint64_t address = 0;
    assert_int_equal(vram_malloc(world.allocator, 0, 40 * MIB, 0, &address), VRAM_OUT_OF_MEMORY);
    assert_int_equal(vram_malloc(world.allocator, 0, 40 * MIB, stream, &address), VRAM_OUT_OF_MEMORY);
    EXPECT_OK(vram_empty_cache(world.allocator));
    EXPECT_OK(vram_pool_empty_cache(pool));
    assert_int_equal(held_by(pool), held);
    expect_sound(&world);
    assert_int_equal(vr_cu(world.sim, graph_destroy, graph), VR_CU_SUCCESS);
    vram_pool_release(pool);
    expect_free(&world, expect_malloc(&world, 60 * MIB, 0));
    expect_sound(&world);
    expect_end(&world);
}

// Ending a pool known to a graph waits for all streams, which would invalidate another pool's capture, so it is postponed.
static void a_captured_pool_ends_during_a_capture(void **state) {
    (void)state;
    struct vr_world world;
    open_world(&world, 64 * MIB, "paged:True");
    const uint64_t stream = world.stream[0][1];
    struct vram_pool *known = expect_pool(&world, NULL);
    struct vram_pool *graphs = NULL;
    EXPECT_OK(vram_pool_create(world.allocator, 0, &(struct vram_pool_options){.for_graph = true}, &graphs));
    expect_free(&world, expect_pool_malloc(known, 20 * MIB, stream)); // it has pages
    begin(known, stream, VRAM_CAPTURE_RELAXED);
    expect_free(&world, expect_malloc(&world, 20 * MIB, stream));
    end(&world, known, stream);
    const uint64_t other = new_stream(&world);
    begin(graphs, other, VRAM_CAPTURE_RELAXED);
    vram_pool_release(known);
    end(&world, graphs, other); // it made a graph
    vram_pool_release(graphs);
    EXPECT_OK(vram_empty_cache(world.allocator));
    expect_free(&world, expect_malloc(&world, 60 * MIB, 0));
    expect_sound(&world);
    expect_end(&world);
}

// --- other options and sleep ------------------------------------------------------------------------------------------------------------

// Holes of paged memory are not those of expandable segments, when the option changes.
static void options_change(void **state) {
    (void)state;
    struct vr_world world;
    open_world(&world, 0, "paged:True");
    const uint64_t small = expect_malloc(&world, 1000, 0), large = expect_malloc(&world, 5 * MIB, 0);
    EXPECT_OK(vram_configure(world.allocator, "expandable_segments:True", NULL));
    uint64_t block[40];
    for (int i = 0; i < 40; i++) block[i] = expect_malloc(&world, i % 2 == 0 ? 500000 : 12 * MIB, 0);
    expect_sound(&world);
    for (int i = 0; i < 40; i++) expect_free(&world, block[i]);
    expect_free(&world, small);
    expect_free(&world, large);
    EXPECT_OK(vram_empty_cache(world.allocator));
    EXPECT_CURRENT(&world, reserved_bytes, 0);
    expect_end(&world);
}

// A suspended pool's unneeded pages are used by others; a pool that ends while suspended is forgotten.
static void pools_sleep(void **state) {
    (void)state;
    struct vr_world world;
    open_world(&world, 0, "paged:True");
    struct vram_pool *pool = expect_pool(&world, "weights");
    const uint64_t kept = expect_pool_malloc(pool, 20 * MIB, 0), little = expect_pool_malloc(pool, 1000, 0);
    expect_free(&world, expect_pool_malloc(pool, 11 * MIB, 0));
    const uint64_t other = expect_malloc(&world, 9 * MIB, 0); // one of its pages also has a window of the pool's
    const struct vram_sleep_choice weights = {.tag = "weights", .level = VRAM_SLEEP_DISCARD};
    EXPECT_OK(vram_sleep(world.allocator, 0, &weights, 1, NULL, NULL));
    assert_int_equal(held_by(pool), 0);
    expect_sound(&world);
    const uint64_t meanwhile = expect_malloc(&world, 30 * MIB, 0);
    expect_free(&world, meanwhile);
    EXPECT_OK(vram_wake(world.allocator, 0, &weights, 1, NULL, NULL));
    expect_sound(&world);
    EXPECT_OK(vram_sleep(world.allocator, 0, &weights, 1, NULL, NULL));
    expect_free(&world, kept);
    expect_free(&world, little);
    vram_pool_release(pool);
    expect_sound(&world);
    expect_free(&world, other);
    EXPECT_OK(vram_empty_cache(world.allocator));
    EXPECT_CURRENT(&world, reserved_bytes, 0);
    assert_int_equal(vram_sim_memory_used(world.sim, 0), 0);
    expect_end(&world);
}

// --- refusals of the driver --------------------------------------------------------------------------------------------------------------

// Snapshots contain all windows of pages, from the first to the last, with free pages in between.
static void pictures_have_every_window(void **state) {
    (void)state;
    struct vr_world world;
    open_world(&world, 0, "paged:True");
    uint64_t blocks[4], shown = 0, first = UINT64_MAX;
    for (size_t i = 0; i < VR_COUNT_OF(blocks); i++) blocks[i] = expect_malloc(&world, (10 + i) * MIB, 0);
    expect_free(&world, blocks[1]);
    struct vr_picture picture = {0};
    EXPECT_OK(vr_picture_take(atomic_load(&world.allocator->devices[0]), NULL, &picture, NULL, NULL));
    assert_int_equal(picture.active_bytes, (10 + 12 + 13) * MIB);
    for (size_t i = 0; i < picture.block_count; i++) {
        const struct vr_picture_block *block = &picture.blocks[i];
        if (block->address < first) first = block->address;
        if (block->state == VR_FREE) continue;
        for (size_t k = 0; k < VR_COUNT_OF(blocks); k++) shown |= (uint64_t)(block->address == blocks[k] && k != 1) << k;
    }
    assert_int_equal(shown, 13); // the first, the third and the fourth
    assert_int_equal(first, picture.segments[0].address);
    vr_picture_release(&picture);
    for (size_t i = 0; i < VR_COUNT_OF(blocks); i++)
        if (i != 1) expect_free(&world, blocks[i]);
    expect_end(&world);
}

static void one_round(struct vr_world *world, bool *done) {
    struct vram_pool *pool = NULL;
    uint64_t address[4] = {0};
    *done = vram_pool_create(world->allocator, 0, NULL, &pool) == VRAM_OK;
    for (int i = 0; i < 4 && *done; i++)
        *done = (i == 2 ? vram_malloc(world->allocator, 0, 24 * MIB, 0, &address[i])
                        : vram_pool_malloc(pool, i == 1 ? 900 : 12 * MIB + 512, world->stream[0][i % 2], &address[i])) == VRAM_OK;
    for (int i = 0; i < 4; i++)
        if (address[i] != 0) EXPECT_OK(vram_free(world->allocator, address[i]));
    vram_pool_release(pool);
}

// Faults at every nth call, and a second one after it.
static void any_call_fails(void **state) {
    (void)state;
    for (uint64_t second = 0; second < 3; second++) {
        for (uint64_t nth = 1;; nth++) {
            struct vr_world world;
            const struct vr_world_options options = {.sim = {.memory_bytes = 80 * MIB}, .conf = "paged:True", .faults = true};
            EXPECT_OK(vr_world_open(&world, &options));
            bool done = false;
            expect_free(&world, expect_malloc(&world, 4 * MIB, 0));
            EXPECT_OK(vram_driver_fault_set(world.driver, NULL, nth, VR_CU_UNKNOWN));
            if (second != 0) vr_fault_then(world.driver, second, VR_CU_UNKNOWN);
            one_round(&world, &done);
            const bool reached = !done;
            expect_sound(&world);
            EXPECT_OK(vram_driver_fault_set(world.driver, NULL, 0, 0));
            EXPECT_OK(vram_sim_complete_all(world.sim));
            one_round(&world, &done);
            assert_true(done);
            expect_sound(&world);
            EXPECT_OK(vram_empty_cache(world.allocator));
            EXPECT_CURRENT(&world, reserved_bytes, 0);
            expect_end(&world);
            if (!reached && nth > 200) break;
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pools_draw_on_the_same_pages),
        cmocka_unit_test(pages_of_other_streams_wait),
        cmocka_unit_test(a_stream_gets_its_own_pages_back),
        cmocka_unit_test(a_stream_that_works_on_is_asked_once),
        cmocka_unit_test(pools_that_end_leave_their_places),
        cmocka_unit_test(a_trimmed_pool_gives_back),
        cmocka_unit_test(a_graph_keeps_its_pages),
        cmocka_unit_test(a_captured_pool_ends_during_a_capture),
        cmocka_unit_test(options_change),
        cmocka_unit_test(pools_sleep),
        cmocka_unit_test(pictures_have_every_window),
        cmocka_unit_test(any_call_fails),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
