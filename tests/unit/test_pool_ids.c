// Tests private pools as frameworks use them: external ids, routes by a function, marked captures, options changed later, statistics that
// outlive their pool.
#include "support/captures.h"

enum { MIB = 1 << 20 };

static struct vram_pool *pool_with_id(struct vr_world *world, uint64_t first, uint64_t second) {
    const struct vram_pool_options options = {.id = {first, second}, .keep_cache = true};
    struct vram_pool *pool = NULL;
    EXPECT_OK(vram_pool_create(world->allocator, 0, &options, &pool));
    return pool;
}

static void ids_from_outside(void **state) {
    (void)state;
    struct vr_world world;
    expect_world(&world, "", 0);
    struct vram_pool *seven = pool_with_id(&world, 0, 7), *next = NULL, *found = NULL;
    const struct vram_pool_options again = {.id = {0, 7}};
    EXPECT_STATUS(INVALID_ARGUMENT, vram_pool_create(world.allocator, 0, &again, &next));
    EXPECT_OK(vram_pool_create(world.allocator, 0, NULL, &next));
    assert_int_equal(vram_get_pool_id(next).second, 8); // above the given ids
    EXPECT_OK(vram_pool_find(world.allocator, 0, (struct vram_pool_id){0, 7}, &found));
    assert_ptr_equal(found, seven);
    assert_int_equal(vram_pool_references(seven), 2);
    vram_pool_release(found);
    EXPECT_STATUS(INVALID_ARGUMENT, vram_pool_find(world.allocator, 0, (struct vram_pool_id){7, 0}, &found));
    vram_pool_release(next);
    // keep_cache: the memory stays until it is released by request, and keeps the id in use.
    uint64_t address = 0;
    EXPECT_OK(vram_pool_malloc(seven, 1000, 0, &address));
    expect_free(&world, address);
    vram_pool_release(seven);
    EXPECT_CURRENT(&world, reserved_bytes, 2 * MIB);
    EXPECT_STATUS(INVALID_ARGUMENT, vram_pool_find(world.allocator, 0, (struct vram_pool_id){0, 7}, &found));
    EXPECT_STATUS(INVALID_ARGUMENT, vram_pool_create(world.allocator, 0, &again, &next));
    int64_t waits = expect_stats(&world).num_sync_all_streams;
    EXPECT_OK(vram_empty_cache_pool(world.allocator, 0, (struct vram_pool_id){0, 6})); // one that ended empty is only counted
    EXPECT_SCALAR(&world, num_sync_all_streams, ++waits);
    EXPECT_CURRENT(&world, reserved_bytes, 2 * MIB);
    EXPECT_OK(vram_empty_cache_pool(world.allocator, 0, (struct vram_pool_id){0, 7}));
    EXPECT_CURRENT(&world, reserved_bytes, 0);
    EXPECT_SCALAR(&world, num_sync_all_streams, waits + 1);
    seven = pool_with_id(&world, 0, 7);
    vram_pool_release(seven);
    expect_end(&world);
}

struct filter {
    uint64_t stream;
    unsigned asked;
};

static bool is_stream(uint64_t stream, void *user) {
    struct filter *filter = user;
    filter->asked++;
    return stream == filter->stream;
}

static uint64_t pool_of(struct vr_world *world, uint64_t address) {
    struct vram_block_info info;
    EXPECT_OK(vram_get_block_info(world->allocator, address, &info));
    return info.pool.second;
}

static void a_route_by_a_function(void **state) {
    (void)state;
    struct vr_world world;
    expect_world(&world, "", 0);
    const uint64_t a = world.stream[0][1], b = world.stream[0][2];
    struct vram_pool *pool = pool_with_id(&world, 0, 3);
    struct filter filter = {.stream = a}, other = {.stream = b};
    const struct vram_route route = {.kind = VRAM_ROUTE_FILTER, .accepts = is_stream, .user = &filter};
    const struct vram_route others = {.kind = VRAM_ROUTE_FILTER, .accepts = is_stream, .user = &other};
    EXPECT_STATUS(INVALID_ARGUMENT, vram_pool_begin(pool, &(struct vram_route){.kind = VRAM_ROUTE_FILTER}));
    EXPECT_OK(vram_pool_begin(pool, &route));
    const uint64_t in = expect_malloc(&world, 100, a), out = expect_malloc(&world, 100, b);
    assert_int_equal(pool_of(&world, in), 3);
    assert_int_equal(pool_of(&world, out), 0);
    assert_int_equal(filter.asked, 2);
    EXPECT_STATUS(INVALID_ARGUMENT, vram_pool_end(pool, &others));
    EXPECT_OK(vram_pool_end(pool, &route));
    EXPECT_STATUS(INVALID_ARGUMENT, vram_pool_end(pool, &route));
    expect_free(&world, in);
    expect_free(&world, out);
    vram_pool_release(pool);
    expect_end(&world);
}

static void options_switched_later(void **state) {
    (void)state;
    struct vr_world world;
    expect_world(&world, "", 64 * MIB);
    struct vram_pool *pool = pool_with_id(&world, 0, 1);
    uint64_t address = 0;
    EXPECT_OK(vram_pool_malloc(pool, 12 * MIB, 0, &address));
    expect_free(&world, address);
    vram_pool_set_no_split(pool, true);
    EXPECT_OK(vram_pool_malloc(pool, 3 * MIB, 0, &address));
    assert_int_equal(expect_size(&world, address), 12 * MIB);
    expect_free(&world, address);
    vram_pool_set_no_split(pool, false);
    EXPECT_OK(vram_pool_malloc(pool, 3 * MIB, 0, &address));
    assert_int_equal(expect_size(&world, address), 3 * MIB);
    expect_free(&world, address);
    // A pool's cache helps only while that is allowed.
    const uint64_t rest = expect_malloc(&world, 52 * MIB, 0);
    EXPECT_STATUS(OUT_OF_MEMORY, vram_malloc(world.allocator, 0, 12 * MIB, 0, &address));
    vram_pool_set_use_on_oom(pool, true);
    EXPECT_OK(vram_malloc(world.allocator, 0, 12 * MIB, 0, &address));
    expect_free(&world, address);
    vram_pool_set_use_on_oom(pool, false);
    EXPECT_STATUS(OUT_OF_MEMORY, vram_malloc(world.allocator, 0, 12 * MIB, 0, &address));
    expect_free(&world, rest);
    vram_pool_release(pool);
    expect_end(&world);
}

// Another library's capture without a pool: the free of a block used by another stream is postponed, and nothing is released.
static void a_mark_is_a_capture(void **state) {
    (void)state;
    struct vr_world world;
    expect_world(&world, "", 0);
    const uint64_t a = world.stream[0][1], b = world.stream[0][2];
    const uint64_t block = expect_malloc(&world, 1000, a);
    EXPECT_STATUS(INVALID_ARGUMENT, vram_capture_mark_end(world.allocator, 0, a));
    EXPECT_OK(vram_capture_mark_begin(world.allocator, 0, a));
    EXPECT_OK(vram_capture_mark_begin(world.allocator, 0, 0)); // marks nest
    assert_int_equal(vr_cu(world.sim, stream_begin_capture, a, VR_CU_STREAM_CAPTURE_MODE_RELAXED), VR_CU_SUCCESS);
    const uint64_t inside = expect_malloc(&world, 1000, a);
    assert_int_equal(pool_of(&world, inside), 0); // routes decide where memory comes from, not the mark
    EXPECT_OK(vram_record_stream(world.allocator, block, b));
    expect_free(&world, block);
    expect_free(&world, inside);
    uint64_t graph = 0;
    assert_int_equal(vr_cu(world.sim, stream_end_capture, a, &graph), VR_CU_SUCCESS);
    assert_int_equal(vr_cu(world.sim, graph_destroy, graph), VR_CU_SUCCESS);
    assert_int_equal(expect_blocks_in(&world, 0, VRAM_BLOCK_PENDING), 1);
    EXPECT_OK(vram_capture_mark_end(world.allocator, 0, 0));
    EXPECT_STATUS(INVALID_ARGUMENT, vram_capture_mark_end(world.allocator, 0, b));
    EXPECT_OK(vram_capture_mark_end(world.allocator, 0, a));
    expect_free(&world, expect_malloc(&world, 1000, a));
    EXPECT_OK(vram_empty_cache(world.allocator));
    EXPECT_CURRENT(&world, reserved_bytes, 0);
    expect_end(&world);
}

// Ends a capture as PyTorch does: the driver first, then the mark and the route (before 2.13 the other way round). With reuse in captures,
// postponed frees complete then.
static void end_mark_and_route(struct vr_world *world, struct vram_pool *pool, const struct vram_route *route, bool mark_first) {
    if (mark_first) EXPECT_OK(vram_capture_mark_end(world->allocator, 0, 0));
    EXPECT_OK(vram_pool_end(pool, route));
    if (!mark_first) EXPECT_OK(vram_capture_mark_end(world->allocator, 0, 0));
}

static void marked_capture(bool mark_first) {
    struct vr_world world;
    expect_world(&world, "graph_capture_record_stream_reuse:True", 0);
    const uint64_t a = world.stream[0][1], b = world.stream[0][2];
    struct vram_pool *pool = pool_with_id(&world, 1, 0);
    const struct vram_route everything = {.kind = VRAM_ROUTE_ALL};
    uint64_t addresses[2], graph = 0;
    for (int i = 0; i < 2; i++) {
        EXPECT_OK(vram_capture_mark_begin(world.allocator, 0, 0));
        EXPECT_OK(vram_pool_begin(pool, &everything));
        assert_int_equal(vr_cu(world.sim, stream_begin_capture, a, VR_CU_STREAM_CAPTURE_MODE_RELAXED), VR_CU_SUCCESS);
        addresses[i] = expect_malloc(&world, 8 * MIB, a);
        expect_wait_stream(&world, b, a);
        EXPECT_OK(vram_record_stream(world.allocator, addresses[i], b));
        kernel(&world, b); // not part of the next capture's graph
        expect_wait_stream(&world, a, b);
        expect_free(&world, addresses[i]);
        assert_int_equal(vr_cu(world.sim, stream_end_capture, a, &graph), VR_CU_SUCCESS);
        assert_int_equal(vr_cu(world.sim, graph_destroy, graph), VR_CU_SUCCESS);
        end_mark_and_route(&world, pool, &everything, mark_first);
    }
    assert_int_equal(addresses[0], addresses[1]);
    vram_pool_release(pool);
    EXPECT_OK(vram_empty_cache(world.allocator));
    EXPECT_CURRENT(&world, reserved_bytes, 0);
    expect_end(&world);
}

static void the_end_of_a_marked_capture_settles(void **state) {
    (void)state;
    marked_capture(true);
    marked_capture(false);
}

static void statistics_outlive_their_pool(void **state) {
    (void)state;
    struct vr_world world;
    expect_world(&world, "", 0);
    struct vram_pool_stats stats[4];
    size_t count = 9;
    EXPECT_OK(vram_get_all_pool_stats(world.allocator, 0, stats, 4, &count));
    assert_int_equal(count, 0);
    struct vram_pool *two = pool_with_id(&world, 0, 2), *graph = pool_with_id(&world, 1, 0);
    uint64_t address = 0;
    EXPECT_OK(vram_pool_malloc(two, 30 * MIB, 0, &address));
    expect_free(&world, address);
    EXPECT_OK(vram_get_all_pool_stats(world.allocator, 0, stats, 1, &count));
    assert_int_equal(count, 1); // the other never had memory
    EXPECT_OK(vram_pool_malloc(graph, 100, 0, &address));
    expect_free(&world, address);
    EXPECT_OK(vram_get_all_pool_stats(world.allocator, 0, stats, 1, &count));
    assert_int_equal(count, 2);
    assert_int_equal(stats[0].id.second, 2); // (0, 2) sorts before (1, 0)
    assert_int_equal(stats[0].reserved_bytes[VRAM_STAT_ALL].current, 30 * MIB);
    assert_int_equal(stats[0].free_bytes, 30 * MIB);
    assert_false(stats[0].ended);
    vram_pool_release(two);
    vram_pool_release(graph);
    EXPECT_OK(vram_empty_cache(world.allocator));
    EXPECT_OK(vram_get_all_pool_stats(world.allocator, 0, stats, 4, &count));
    assert_int_equal(count, 2);
    assert_true(stats[0].ended);
    assert_int_equal(stats[0].reserved_bytes[VRAM_STAT_LARGE_POOL].current, 0);
    assert_int_equal(stats[0].reserved_bytes[VRAM_STAT_LARGE_POOL].peak, 30 * MIB);
    assert_int_equal(stats[0].reserved_bytes[VRAM_STAT_LARGE_POOL].freed, 30 * MIB);
    // A pool with the same id continues the statistics.
    two = pool_with_id(&world, 0, 2);
    EXPECT_OK(vram_get_all_pool_stats(world.allocator, 0, stats, 4, &count));
    assert_int_equal(count, 2);
    assert_false(stats[0].ended);
    assert_int_equal(stats[0].reserved_bytes[VRAM_STAT_ALL].peak, 30 * MIB);
    vram_pool_release(two);
    EXPECT_OK(vram_reset_peak_stats(world.allocator, 0));
    EXPECT_OK(vram_reset_accumulated_stats(world.allocator, 0));
    EXPECT_OK(vram_get_all_pool_stats(world.allocator, 0, stats, 4, &count));
    assert_int_equal(count, 2); // they stay, with zeros
    assert_true(stats[0].ended);
    assert_int_equal(stats[0].reserved_bytes[VRAM_STAT_ALL].peak, 0);
    expect_end(&world);
}

static void expandable_segments_and_the_cache(void **state) {
    (void)state;
    struct vr_world world;
    expect_world(&world, "expandable_segments:True", (uint64_t)1 << 30);
    const uint64_t a = expect_malloc(&world, 30 * MIB, world.stream[0][1]), b = expect_malloc(&world, 1000, 0);
    assert_true(vram_is_expandable(world.allocator, a));
    assert_false(vram_is_expandable(world.allocator, a + 512));
    struct vram_expandable_segment segments[2];
    size_t count = 0;
    EXPECT_OK(vram_expandable_segments(world.allocator, 0, segments, 2, &count));
    assert_int_equal(count, 2);
    const struct vram_expandable_segment *large = &segments[segments[0].small_pool ? 1 : 0];
    assert_int_equal(large->address, a);
    assert_int_equal(large->stream, world.stream[0][1]);
    assert_int_equal(large->mapped_bytes, 40 * MIB);
    assert_true(large->reserved_bytes >= (uint64_t)1 << 30);
    struct vram_cache_info info;
    EXPECT_OK(vram_get_cache_info(world.allocator, 0, &info));
    assert_int_equal(info.largest_free_bytes, 10 * MIB);
    assert_int_equal(info.cached_bytes, 12 * MIB - 1024);
    assert_int_equal(info.free_blocks, 2);
    EXPECT_OK(vram_configure(world.allocator, "expandable_segments:False", NULL));
    const uint64_t c = expect_malloc(&world, 12 * MIB, world.stream[0][2]);
    assert_false(vram_is_expandable(world.allocator, c));
    expect_free(&world, a);
    expect_free(&world, b);
    expect_free(&world, c);
    expect_end(&world);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ids_from_outside),
        cmocka_unit_test(a_route_by_a_function),
        cmocka_unit_test(options_switched_later),
        cmocka_unit_test(a_mark_is_a_capture),
        cmocka_unit_test(the_end_of_a_marked_capture_settles),
        cmocka_unit_test(statistics_outlive_their_pool),
        cmocka_unit_test(expandable_segments_and_the_cache),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
