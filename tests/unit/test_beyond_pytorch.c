// Tests options that PyTorch lacks: reclaim_streams, share_live_pools, expandable_segments_reuse_oversize.
#include "support/captures.h"
#include "support/random.h"
#include "vram/sim.h"

enum { MIB = 1 << 20, MILLISECOND = 1000000 };

static void timed_world(struct vr_world *world, const char *conf, uint64_t memory_bytes) {
    const struct vr_world_options options = {.sim = {.memory_bytes = memory_bytes}, .conf = conf};
    EXPECT_OK(vr_world_open(world, &options));
}

static bool is_idle(struct vr_world *world, uint64_t stream) { return vr_cu(world->sim, stream_query, stream) == VR_CU_SUCCESS; }

// --- reclaim_streams --------------------------------------------------------------------------------------------------------------------

static void a_segment_changes_streams(void **state) {
    (void)state;
    struct vr_world world;
    timed_world(&world, "reclaim_streams:True", 0);
    const uint64_t a = world.stream[0][1], b = world.stream[0][2];
    const uint64_t large = expect_malloc(&world, 60 * MIB, a), fits = expect_malloc(&world, 40 * MIB, a),
                   held = expect_malloc(&world, 1000, a);
    EXPECT_OK(vram_sim_busy(world.sim, 0, a, 50 * MILLISECOND));
    expect_free(&world, large);
    expect_free(&world, fits);
    vr_world_forget(&world);
    const int64_t asked = expect_stats(&world).num_device_alloc;
    const uint64_t before = vram_sim_clock_ns(world.sim);
    assert_int_equal(expect_malloc(&world, 30 * MIB, b), fits); // the smallest that fits
    EXPECT_RECORDS(&world, {VR_RECORD_SEGMENT_FREE, fits, 40 * MIB}, {VR_RECORD_SEGMENT_ALLOC, fits, 40 * MIB},
                   {VR_RECORD_ALLOC, fits, 30 * MIB});
    EXPECT_SCALAR(&world, num_device_alloc, asked);
    EXPECT_CURRENT(&world, reserved_bytes, 102 * MIB);
    assert_true(vram_sim_clock_ns(world.sim) < before + 50 * MILLISECOND); // the host does not wait
    assert_false(is_idle(&world, b));                                      // the new owner's stream waits
    EXPECT_OK(vram_sim_advance(world.sim, 51 * MILLISECOND));
    assert_true(is_idle(&world, b));
    struct vram_block_info info;
    EXPECT_OK(vram_get_block_info(world.allocator, fits, &info));
    assert_int_equal(info.stream, b);
    // A segment with a live piece stays, and the other size class has its own.
    (void)expect_malloc(&world, 1000, b);
    EXPECT_SCALAR(&world, num_device_alloc, asked + 1);
    expect_free(&world, fits);
    assert_int_equal(expect_malloc(&world, 35 * MIB, a), large); // its own stream's segment first, although it is larger
    expect_free(&world, held);
    EXPECT_OK(vram_check(world.allocator, NULL));
    expect_end(&world);
}

static void what_does_not_change_streams(void **state) {
    (void)state;
    struct vr_world world;
    timed_world(&world, "", 0);
    const uint64_t a = world.stream[0][1], b = world.stream[0][2];
    const uint64_t block = expect_malloc(&world, 40 * MIB, a);
    expect_free(&world, block);
    assert_int_not_equal(expect_malloc(&world, 40 * MIB, b), block); // without the option
    EXPECT_OK(vram_configure(world.allocator, "reclaim_streams:True", NULL));
    struct vram_pool *pool = expect_graph_pool(&world);
    uint64_t in_pool = 0;
    EXPECT_OK(vram_pool_malloc(pool, 40 * MIB, b, &in_pool));
    assert_int_not_equal(in_pool, block); // of another pool
    begin(pool, b, VRAM_CAPTURE_GLOBAL);
    assert_int_not_equal(expect_malloc(&world, 40 * MIB, world.stream[0][3]), block); // during a capture
    end(&world, pool, b);
    assert_int_equal(expect_malloc(&world, 40 * MIB, world.stream[0][3]), block);
    vram_pool_release(pool);
    expect_end(&world);
}

static void of_a_stream_that_is_gone(void **state) {
    (void)state;
    struct vr_world world;
    timed_world(&world, "reclaim_streams:True", 0);
    const uint64_t gone = new_stream(&world);
    const uint64_t block = expect_malloc(&world, 40 * MIB, gone);
    EXPECT_OK(vram_sim_busy(world.sim, 0, gone, 50 * MILLISECOND));
    expect_free(&world, block);
    assert_int_equal(vr_cu(world.sim, stream_destroy, gone), VR_CU_SUCCESS);
    assert_int_equal(expect_malloc(&world, 40 * MIB, world.stream[0][1]), block);
    assert_true(vram_sim_clock_ns(world.sim) >= 50 * MILLISECOND); // without an event to wait for, the host waits
    expect_end(&world);
}

// --- share_live_pools -------------------------------------------------------------------------------------------------------------------

static void a_live_pool_gives_back(void **state) {
    (void)state;
    for (int shared = 0; shared < 2; shared++) {
        struct vr_world world;
        expect_world(&world, shared ? "share_live_pools:True" : "", 64 * MIB);
        struct vram_pool *pool = NULL, *graph = expect_graph_pool(&world);
        uint64_t address = 0, of_graph = 0;
        EXPECT_OK(vram_pool_create(world.allocator, 0, NULL, &pool));
        EXPECT_OK(vram_pool_malloc(graph, 12 * MIB, 0, &of_graph));
        expect_free(&world, of_graph);
        const struct vram_route all = {.kind = VRAM_ROUTE_ALL};
        EXPECT_OK(vram_pool_begin(pool, &all));
        expect_free(&world, expect_malloc(&world, 40 * MIB, 0));
        EXPECT_OK(vram_empty_cache(world.allocator)); // even while it is the active one
        EXPECT_CURRENT(&world, reserved_bytes, shared ? 12 * MIB : 52 * MIB);
        expect_free(&world, expect_malloc(&world, 30 * MIB, 0));
        EXPECT_OK(vram_pool_end(pool, &all));
        // When memory is short, its cached blocks are lent, or released for requests they are too small for.
        if (shared) {
            EXPECT_OK(vram_malloc(world.allocator, 0, 28 * MIB, 0, &address));
            struct vram_block_info info;
            EXPECT_OK(vram_get_block_info(world.allocator, address, &info));
            assert_int_equal(info.pool.second, vram_get_pool_id(pool).second);
            expect_free(&world, address);
            EXPECT_OK(vram_malloc(world.allocator, 0, 50 * MIB, 0, &address));
            expect_free(&world, address);
            EXPECT_STATUS(OUT_OF_MEMORY, vram_malloc(world.allocator, 0, 60 * MIB, 0, &address)); // a graph's pool keeps its memory
        } else {
            EXPECT_STATUS(OUT_OF_MEMORY, vram_malloc(world.allocator, 0, 28 * MIB, 0, &address));
        }
        vram_pool_release(pool);
        vram_pool_release(graph);
        expect_end(&world);
    }
}

// --- both with paged memory -------------------------------------------------------------------------------------------------------------

static void free_pages_are_reclaimed(void **state) {
    (void)state;
    struct vr_world world;
    timed_world(&world, "paged:True,reclaim_streams:True", 0);
    const uint64_t a = world.stream[0][1], b = world.stream[0][2];
    const uint64_t block = expect_malloc(&world, 40 * MIB, a);
    assert_int_equal(expect_stats(&world).moved_bytes, 0);
    EXPECT_OK(vram_sim_busy(world.sim, 0, a, 50 * MILLISECOND));
    expect_free(&world, block);
    const uint64_t created = vram_sim_calls(world.sim, "cuMemCreate"), before = vram_sim_clock_ns(world.sim);
    const uint64_t moved = expect_malloc(&world, 30 * MIB, b);
    assert_int_equal(vram_sim_calls(world.sim, "cuMemCreate"), created);
    EXPECT_CURRENT(&world, reserved_bytes, 40 * MIB);
    assert_true(vram_sim_clock_ns(world.sim) < before + 50 * MILLISECOND); // the host does not wait
    assert_false(is_idle(&world, b));                                      // the new owner's stream waits
    const struct vram_stats stats = expect_stats(&world);
    assert_int_equal(stats.moved_bytes, 30 * MIB);
    char text[8192];
    assert_true(vram_stats_json(&stats, text, sizeof text) < sizeof text);
    assert_non_null(strstr(text, "\"moved_bytes\": 31457280"));
    expect_free(&world, moved);
    // During a capture no stream is made to wait.
    EXPECT_OK(vram_sim_busy(world.sim, 0, b, 50 * MILLISECOND));
    struct vram_pool *pool = expect_graph_pool(&world);
    begin(pool, world.stream[0][3], VRAM_CAPTURE_RELAXED);
    expect_free(&world, expect_malloc(&world, 40 * MIB, a));
    assert_true(vram_sim_calls(world.sim, "cuMemCreate") > created);
    end(&world, pool, world.stream[0][3]);
    vram_pool_release(pool);
    expect_end(&world);
}

// All pools share the same pages: pages free in one serve another that needs them.
static void a_live_pool_gives_its_pages(void **state) {
    (void)state;
    struct vr_world world;
    timed_world(&world, "paged:True,share_live_pools:True", 64 * MIB);
    struct vram_pool *pool = NULL;
    uint64_t address = 0;
    EXPECT_OK(vram_pool_create(world.allocator, 0, NULL, &pool));
    EXPECT_OK(vram_pool_malloc(pool, 40 * MIB, 0, &address));
    expect_free(&world, address);
    const uint64_t created = vram_sim_calls(world.sim, "cuMemCreate");
    const uint64_t lent = expect_malloc(&world, 28 * MIB, 0);
    assert_int_equal(vram_sim_calls(world.sim, "cuMemCreate"), created);
    struct vram_block_info info;
    EXPECT_OK(vram_get_block_info(world.allocator, lent, &info));
    assert_int_equal(info.pool.second, 0);
    assert_int_equal(expect_stats(&world).moved_bytes, 28 * MIB);
    struct vram_pool_stats figures;
    EXPECT_OK(vram_get_pool_stats(pool, &figures));
    assert_int_equal(figures.reserved_bytes[VRAM_STAT_ALL].current, 12 * MIB);
    assert_int_equal(figures.free_bytes, 12 * MIB);
    EXPECT_OK(vram_check(world.allocator, NULL));
    expect_free(&world, lent);
    expect_free(&world, expect_malloc(&world, 60 * MIB, 0));
    EXPECT_OK(vram_pool_malloc(pool, 40 * MIB, 0, &address));
    expect_free(&world, address);
    vram_pool_release(pool);
    expect_end(&world);
}

static struct vram_pool_id pool_of(const struct vr_world *world, uint64_t address) {
    struct vram_block_info info;
    EXPECT_OK(vram_get_block_info(world->allocator, address, &info));
    return info.pool;
}

// A pool whose blocks are handed out whole has no pages. It lends before new pages are made, but not if some stream has enough free pages.
static void free_pages_go_before_a_loan(void **state) {
    (void)state;
    struct vr_world world;
    timed_world(&world, "paged:True,share_live_pools:True", 200 * MIB);
    const struct vram_pool_options whole = {.no_split = true};
    const uint64_t other = world.stream[0][1];
    struct vram_pool *pool = NULL;
    uint64_t lendable = 0;
    EXPECT_OK(vram_pool_create(world.allocator, 0, &whole, &pool));
    EXPECT_OK(vram_pool_malloc(pool, 30 * MIB, 0, &lendable));
    expect_free(&world, lendable);
    expect_free(&world, expect_malloc(&world, 40 * MIB, other));
    const uint64_t paged = expect_malloc(&world, 28 * MIB, 0);
    assert_int_equal(pool_of(&world, paged).second, 0);
    // 12 MiB of pages are left, which is not enough.
    const uint64_t lent = expect_malloc(&world, 28 * MIB, 0);
    assert_int_equal(pool_of(&world, lent).second, vram_get_pool_id(pool).second);
    EXPECT_OK(vram_check(world.allocator, NULL));
    expect_free(&world, paged);
    expect_free(&world, lent);
    vram_pool_release(pool);
    expect_end(&world);
}

// A pool whose requests show that another library's capture used it keeps its memory.
static void a_captured_pool_keeps_its_own(void **state) {
    (void)state;
    struct vr_world world;
    expect_world(&world, "share_live_pools:True", 64 * MIB);
    const uint64_t stream = world.stream[0][1];
    struct vram_pool *pool = NULL;
    uint64_t address = 0, graph = 0;
    EXPECT_OK(vram_pool_create(world.allocator, 0, NULL, &pool));
    const struct vram_route route = {.kind = VRAM_ROUTE_STREAM, .stream = stream};
    EXPECT_OK(vram_capture_mark_begin(world.allocator, 0, stream));
    EXPECT_OK(vram_pool_begin(pool, &route));
    assert_int_equal(vr_cu(world.sim, stream_begin_capture, stream, VR_CU_STREAM_CAPTURE_MODE_RELAXED), VR_CU_SUCCESS);
    expect_free(&world, expect_malloc(&world, 40 * MIB, stream));
    assert_int_equal(vr_cu(world.sim, stream_end_capture, stream, &graph), VR_CU_SUCCESS);
    assert_int_equal(vr_cu(world.sim, graph_destroy, graph), VR_CU_SUCCESS);
    EXPECT_OK(vram_pool_end(pool, &route));
    EXPECT_OK(vram_capture_mark_end(world.allocator, 0, stream));
    EXPECT_OK(vram_empty_cache(world.allocator));
    EXPECT_CURRENT(&world, reserved_bytes, 40 * MIB);
    EXPECT_STATUS(OUT_OF_MEMORY, vram_malloc(world.allocator, 0, 40 * MIB, stream, &address));
    vram_pool_release(pool);
    expect_end(&world);
}

// --- expandable_segments_reuse_oversize -------------------------------------------------------------------------------------------------

static void oversize_pages_are_used_again(void **state) {
    (void)state;
    for (int reuse = 0; reuse < 2; reuse++) {
        struct vr_world world;
        const char *conf = reuse ? "expandable_segments:True,max_split_size_mb:64,expandable_segments_reuse_oversize:True"
                                 : "expandable_segments:True,max_split_size_mb:64";
        expect_world(&world, conf, 0);
        const uint64_t large = expect_malloc(&world, 200 * MIB, 0), wall = expect_malloc(&world, 20 * MIB, 0);
        expect_free(&world, large);
        const uint64_t small = expect_malloc(&world, 40 * MIB, 0);
        EXPECT_CURRENT(&world, reserved_bytes, reuse ? 220 * MIB : 260 * MIB);
        assert_int_equal(small == large, reuse);
        expect_free(&world, small);
        expect_free(&world, wall);
        expect_end(&world);
    }
}

// --- all options, at random -------------------------------------------------------------------------------------------------------------

enum { LIVE = 64, STEPS = 4000 };

static void whatever_comes_the_state_is_sound(void **state) {
    (void)state;
    static const char *const confs[] = {
        "reclaim_streams:True,share_live_pools:True",
        "reclaim_streams:True,max_split_size_mb:64,max_non_split_rounding_mb:32",
        "reclaim_streams:True,garbage_collection_threshold:0.5,per_process_memory_fraction:0.8",
        "expandable_segments:True,max_split_size_mb:40,expandable_segments_reuse_oversize:True,share_live_pools:True",
    };
    for (size_t c = 0; c < VR_COUNT_OF(confs); c++) {
        struct vr_world world;
        expect_world(&world, confs[c], (uint64_t)2 << 30);
        uint64_t random = 77 + c;
        struct vram_pool *pool = NULL;
        EXPECT_OK(vram_pool_create(world.allocator, 0, NULL, &pool));
        uint64_t live[LIVE] = {0};
        for (int step = 0; step < STEPS; step++) {
            uint64_t *slot = &live[vr_random_below(&random, LIVE)];
            const uint64_t stream = world.stream[0][vr_random_below(&random, VR_WORLD_STREAMS)];
            const uint64_t size = 1 + vr_random_below(&random, vr_random_below(&random, 3) == 0 ? 200 * MIB : 3 * MIB);
            if (*slot != 0) {
                if (vr_random_below(&random, 4) == 0) EXPECT_OK(vram_record_stream(world.allocator, *slot, stream));
                expect_free(&world, *slot);
                *slot = 0;
            } else {
                const enum vram_status status = vr_random_below(&random, 4) == 0 ? vram_pool_malloc(pool, size, stream, slot)
                                                                                 : vram_malloc(world.allocator, 0, size, stream, slot);
                assert_true(status == VRAM_OK || status == VRAM_OUT_OF_MEMORY);
            }
            if (vr_random_below(&random, 50) == 0) EXPECT_OK(vr_world_complete(&world, 0, stream));
            if (vr_random_below(&random, 400) == 0) EXPECT_OK(vram_empty_cache(world.allocator));
            if (step % 16 == 0) EXPECT_OK(vram_check(world.allocator, NULL));
        }
        EXPECT_OK(vram_sim_complete_all(world.sim));
        for (int i = 0; i < LIVE; i++) expect_free(&world, live[i]);
        vram_pool_release(pool);
        EXPECT_OK(vram_empty_cache(world.allocator));
        EXPECT_CURRENT(&world, reserved_bytes, 0);
        EXPECT_CURRENT(&world, inactive_split_bytes, 0);
        expect_end(&world);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_segment_changes_streams),     cmocka_unit_test(what_does_not_change_streams),
        cmocka_unit_test(of_a_stream_that_is_gone),      cmocka_unit_test(free_pages_are_reclaimed),
        cmocka_unit_test(a_live_pool_gives_its_pages),   cmocka_unit_test(free_pages_go_before_a_loan),
        cmocka_unit_test(a_live_pool_gives_back),        cmocka_unit_test(a_captured_pool_keeps_its_own),
        cmocka_unit_test(oversize_pages_are_used_again), cmocka_unit_test(whatever_comes_the_state_is_sound),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
