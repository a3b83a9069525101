// Tests known weaknesses of PyTorch's allocator that are not copied, and two that are, if no other test does. docs/differences.md lists
// them.
#include "driver/driver.h"
#include "support/expect.h"
#include "vram/pool.h"
#include "vram/sim.h"

static struct vram_pool *expect_pool(struct vr_world *world, const struct vram_pool_options *options) {
    struct vram_pool *pool = NULL;
    EXPECT_OK(vram_pool_create(world->allocator, 0, options, &pool));
    return pool;
}

static uint64_t expect_pool_malloc(struct vram_pool *pool, uint64_t size_bytes, uint64_t stream) {
    uint64_t address = 0;
    EXPECT_OK(vram_pool_malloc(pool, size_bytes, stream, &address));
    return address;
}

// --- nothing goes back while a graph is captured ----------------------------------------------------------------------------------------

static void nothing_is_released_during_a_capture(void **state) {
    struct vr_world world;
    (void)state;
    // Up to 2.12 a capture affects every request of its device.
    expect_world(&world, "pytorch:2.12,per_process_memory_fraction:0.5,garbage_collection_threshold:0.1,max_split_size_mb:64", VR_GIB);
    const uint64_t own = world.stream[0][1], captured = world.stream[0][2], other = world.stream[0][3];
    expect_free(&world, expect_malloc(&world, 100 * VR_MIB, own));
    struct vram_pool *pool = expect_pool(&world, NULL);
    uint64_t graph = 0, address = 0;
    EXPECT_OK(vram_capture_begin(pool, captured, VRAM_CAPTURE_GLOBAL, NULL));
    // Garbage collection would take the cached segment; so would releasing a sufficient part, or everything.
    const uint64_t small = expect_malloc(&world, 20 * VR_MIB, other);
    EXPECT_STATUS(OUT_OF_MEMORY, vram_malloc(world.allocator, 0, 450 * VR_MIB, own, &address));
    EXPECT_CURRENT(&world, reserved_bytes, 120 * VR_MIB);
    assert_int_equal(vram_sim_calls(world.sim, "cuMemFree"), 0);
    EXPECT_OK(vram_capture_end(pool, captured, &graph, NULL));
    const uint64_t large = expect_malloc(&world, 450 * VR_MIB, own);
    EXPECT_CURRENT(&world, reserved_bytes, 470 * VR_MIB);
    expect_free(&world, large);
    expect_free(&world, small);
    assert_int_equal(vr_cu(world.sim, graph_destroy, graph), VR_CU_SUCCESS);
    vram_pool_release(pool);
    expect_end(&world);
}

// --- private pools ----------------------------------------------------------------------------------------------------------------------

// A pool that requests are routed to may still lend to others.
static void a_pool_in_use_lends(void **state) {
    struct vr_world world;
    (void)state;
    expect_world(&world, "", 100 * VR_MIB);
    const struct vram_pool_options options = {.use_on_oom = true};
    const struct vram_route route = {.kind = VRAM_ROUTE_STREAM, .stream = world.stream[0][1]};
    struct vram_pool *lender = expect_pool(&world, &options);
    const uint64_t cached = expect_pool_malloc(lender, 60 * VR_MIB, 0);
    expect_free(&world, cached);
    EXPECT_OK(vram_pool_begin(lender, &route));
    assert_int_equal(expect_malloc(&world, 60 * VR_MIB, 0), cached);
    assert_int_equal(vram_pool_references(lender), 2);
    EXPECT_OK(vram_pool_end(lender, &route));
    expect_free(&world, cached);
    vram_pool_release(lender);
    expect_end(&world);
}

static bool is_pool_gone(struct vr_world *world) {
    EXPECT_OK(vram_empty_cache(world->allocator));
    return expect_stats(world).reserved_bytes[VRAM_STAT_ALL].current == 0 && vram_sim_memory_used(world->sim, 0) == 0;
}

// Pages mapped by many requests are released in one piece, and pages of one request in many: a pool lives as long as it has any.
static void a_pool_lives_as_long_as_it_holds_pages(void **state) {
    struct vr_world world;
    (void)state;
    for (int many_first = 0; many_first < 2; many_first++) {
        expect_world(&world, "expandable_segments:True", 0);
        struct vram_pool *pool = expect_pool(&world, NULL);
        uint64_t block[5];
        if (many_first == 0) expect_free(&world, expect_pool_malloc(pool, 100 * VR_MIB, 0)); // all five in one piece
        for (size_t i = 0; i < 5; i++) block[i] = expect_pool_malloc(pool, 20 * VR_MIB, 0);
        for (size_t i = 0; i < 5; i += 2) expect_free(&world, block[i]);
        EXPECT_OK(vram_pool_empty_cache(pool)); // three ranges
        EXPECT_CURRENT(&world, reserved_bytes, 40 * VR_MIB);
        vram_pool_release(pool);
        assert_false(is_pool_gone(&world));
        expect_free(&world, block[1]);
        assert_false(is_pool_gone(&world));
        expect_free(&world, block[3]);
        assert_true(is_pool_gone(&world));
        expect_end(&world);
    }
}

// --- a search after waiting for memory --------------------------------------------------------------------------------------------------

// pytorch#189504: the retry waits for 50 MiB that another stream used, which are then free in a segment that cannot be released.
static enum vram_status ask_for_what_is_waited_for(const char *conf, uint64_t *pending, uint64_t *address) {
    struct vr_world world;
    expect_world(&world, conf, 62 * VR_MIB);
    const uint64_t other = world.stream[0][1];
    const uint64_t tiny = expect_malloc(&world, 512, 0);
    expect_free(&world, expect_malloc(&world, 60 * VR_MIB, 0));
    *pending = expect_malloc(&world, 50 * VR_MIB, 0);
    const uint64_t rest = expect_malloc(&world, 10 * VR_MIB, 0);
    EXPECT_OK(vram_sim_busy(world.sim, 0, other, 1000000000));
    EXPECT_OK(vram_record_stream(world.allocator, *pending, other));
    expect_free(&world, *pending);
    const enum vram_status status = vram_malloc(world.allocator, 0, 50 * VR_MIB, 0, address);
    EXPECT_SCALAR(&world, num_alloc_retries, 1);
    EXPECT_SCALAR(&world, num_ooms, status != VRAM_OK);
    if (status != VRAM_OK) *address = expect_malloc(&world, 50 * VR_MIB, 0); // the very next request gets it
    EXPECT_CURRENT(&world, reserved_bytes, 62 * VR_MIB);
    expect_free(&world, *address);
    expect_free(&world, rest);
    expect_free(&world, tiny);
    expect_end(&world);
    return status;
}

static void a_retry_searches_again(void **state) {
    uint64_t pending = 0, address = 0;
    (void)state;
    EXPECT_OK(ask_for_what_is_waited_for("", &pending, &address));
    assert_int_equal(address, pending);
    EXPECT_STATUS(OUT_OF_MEMORY, ask_for_what_is_waited_for("search_after_wait:False", &pending, &address));
    assert_int_equal(address, pending);
}

// --- differences that stay --------------------------------------------------------------------------------------------------------------

// With a fraction below 1 the limit is reached first: the cache is released, and the failure is an ordinary one.
static void a_limit_comes_before_a_rejection(void **state) {
    struct vr_world world;
    uint64_t address = 0;
    (void)state;
    expect_world(&world, "per_process_memory_fraction:0.5,throw_on_cudamalloc_oom:True", VR_GIB);
    expect_free(&world, expect_malloc(&world, 400 * VR_MIB, 0));
    expect_free(&world, expect_malloc(&world, 500 * VR_MIB, 0));
    EXPECT_STATUS(OUT_OF_MEMORY, vram_malloc(world.allocator, 0, 600 * VR_MIB, 0, &address));
    EXPECT_SCALAR(&world, num_ooms, 1);
    EXPECT_SCALAR(&world, num_oom_rejections, 0);
    EXPECT_SCALAR(&world, num_alloc_retries, 2);
    expect_end(&world);
}

// The share is read when a device is set up, and so is the counter max_split_size.
static void some_settings_are_those_of_the_start(void **state) {
    struct vr_world world;
    double fraction = 0;
    (void)state;
    expect_world(&world, "per_process_memory_fraction:0.5,max_split_size_mb:64", VR_GIB);
    expect_free(&world, expect_malloc(&world, 100, 0));
    EXPECT_OK(vram_configure(world.allocator, "per_process_memory_fraction:0.25,max_split_size_mb:32", NULL));
    EXPECT_OK(vram_memory_fraction(world.allocator, 0, &fraction));
    assert_true(fraction == 0.5);
    EXPECT_SCALAR(&world, max_split_size, 64 * VR_MIB);
    expect_end(&world);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_is_released_during_a_capture),
        cmocka_unit_test(a_pool_in_use_lends),
        cmocka_unit_test(a_pool_lives_as_long_as_it_holds_pages),
        cmocka_unit_test(a_limit_comes_before_a_rejection),
        cmocka_unit_test(a_retry_searches_again),
        cmocka_unit_test(some_settings_are_those_of_the_start),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
