// Tests private pools of pinned memory, blocks used by captures, and the background thread.
#include "host_fixture.h"

#include "os/os.h"
#include "vram/sim.h"

static struct vram_host_pool *new_pool(const struct fixture *fixture, bool for_graph) {
    struct vram_host_pool *pool = NULL;
    const struct vram_host_pool_options options = {.for_graph = for_graph};
    expect_ok(vram_host_pool_create(fixture->host, &options, &pool));
    return pool;
}

static uint64_t pool_of(const struct fixture *fixture, const void *pointer) {
    struct vram_host_block_info info;
    expect_ok(vram_get_host_block_info(fixture->host, pointer, &info));
    return info.pool.first != 0 ? info.pool.first : info.pool.second;
}

// Opens a stream and retains device 0's context, so that the stream outlives the allocator.
static uint64_t open_stream(const struct fixture *fixture) {
    uint64_t context;
    assert_cu(vr_cu(fixture->sim, primary_ctx_retain, &context, 0), SUCCESS);
    assert_cu(vr_cu(fixture->sim, ctx_set_current, context), SUCCESS);
    return new_stream(fixture, 0);
}

static void begin_capture(const struct fixture *fixture, uint64_t stream) {
    assert_cu(vr_cu(fixture->sim, stream_begin_capture, stream, VR_CU_STREAM_CAPTURE_MODE_GLOBAL), SUCCESS);
}

static void end_capture(const struct fixture *fixture, uint64_t stream) {
    uint64_t graph = 0;
    assert_cu(vr_cu(fixture->sim, stream_end_capture, stream, &graph), SUCCESS);
    assert_true(graph != 0);
    assert_cu(vr_cu(fixture->sim, graph_destroy, graph), SUCCESS);
}

static void close_with_context(struct fixture *fixture) {
    assert_cu(vr_cu(fixture->sim, primary_ctx_release, 0), SUCCESS);
    close_with(fixture);
}

// --- pools and routes -----------------------------------------------------------------------------------------------------------------

static void pools_keep_apart(void **state) {
    (void)state;
    struct fixture fixture;
    open_with(&fixture, NULL, "");
    struct vram_host_pool *pool = new_pool(&fixture, true), *user = new_pool(&fixture, false);
    assert_int_equal(vram_host_pool_id(pool).first, 1);
    assert_int_equal(vram_host_pool_id(user).second, 1);
    void *outside = get(&fixture, 4096), *inside = NULL;
    put(&fixture, outside);
    expect_ok(vram_host_pool_malloc(pool, 4096, 0, &inside));
    assert_true(inside != outside);
    assert_int_equal(pool_of(&fixture, inside), 1);
    put(&fixture, inside);
    assert_ptr_equal(get(&fixture, 4096), outside);
    struct vram_host_pool_stats stats;
    vram_get_host_pool_stats(pool, &stats);
    assert_int_equal(stats.blocks, 1);
    assert_int_equal(stats.free_bytes, 4096);
    expect_ok(vram_host_empty_cache(fixture.host)); // has references, so it is kept
    assert_int_equal(stats_of(&fixture).allocations.current, 2);
    expect_ok(vram_host_pool_empty_cache(pool));
    assert_int_equal(stats_of(&fixture).allocations.current, 1);
    vram_host_pool_release(user);
    vram_host_pool_release(pool);
    vram_host_pool_release(NULL);
    close_with(&fixture);
}

static void a_released_pool_goes_with_its_last_block(void **state) {
    (void)state;
    struct fixture fixture;
    open_with(&fixture, NULL, "");
    struct vram_host_pool *pool = new_pool(&fixture, false);
    void *first = NULL, *second = NULL;
    expect_ok(vram_host_pool_malloc(pool, 4096, 0, &first));
    expect_ok(vram_host_pool_malloc(pool, 4096, 0, &second));
    vram_host_pool_retain(pool);
    assert_int_equal(vram_host_pool_references(pool), 2);
    vram_host_pool_release(pool);
    vram_host_pool_release(pool);
    put(&fixture, first);
    expect_ok(vram_host_empty_cache(fixture.host));
    assert_int_equal(stats_of(&fixture).allocations.current, 1);
    memset(second, 1, 4096);
    put(&fixture, second);
    expect_ok(vram_host_empty_cache(fixture.host));
    assert_int_equal(stats_of(&fixture).allocations.current, 0);
    close_with(&fixture);
}

// The reserve segment is never released: a pool's part of it is not lost with the pool.
static void the_reserve_outlives_its_pool(void **state) {
    (void)state;
    struct fixture fixture;
    open_with(&fixture, NULL, "pinned_reserve_segment_size_mb:1");
    struct vram_host_pool *pool = new_pool(&fixture, false);
    void *pointer = NULL;
    expect_ok(vram_host_pool_malloc(pool, VR_MIB, 0, &pointer));
    put(&fixture, pointer);
    vram_host_pool_release(pool);
    expect_ok(vram_host_empty_cache(fixture.host));
    assert_ptr_equal(get(&fixture, VR_MIB), pointer);
    assert_int_equal(pool_of(&fixture, pointer), 0);
    close_with(&fixture);
}

static void the_newest_route_wins(void **state) {
    (void)state;
    struct fixture fixture;
    open_with(&fixture, NULL, "");
    struct vram_host_pool *first = new_pool(&fixture, false), *second = new_pool(&fixture, false);
    const struct vram_route all = {.kind = VRAM_ROUTE_ALL}, thread = {.kind = VRAM_ROUTE_THREAD};
    const struct vram_route stream = {.kind = VRAM_ROUTE_STREAM, .stream = 77};
    expect_ok(vram_host_pool_begin(first, &all));
    assert_int_equal(pool_of(&fixture, get(&fixture, 1)), 1);
    expect_ok(vram_host_pool_begin(second, &stream));
    assert_int_equal(pool_of(&fixture, get_on(&fixture, 1, 77)), 2);
    assert_int_equal(pool_of(&fixture, get_on(&fixture, 1, 78)), 1);
    expect_ok(vram_host_pool_begin(second, &thread));
    assert_int_equal(pool_of(&fixture, get_on(&fixture, 1, 78)), 2);
    assert_int_equal(vram_host_pool_references(second), 3);
    expect_ok(vram_host_pool_end(second, &thread));
    assert_int_equal(vram_host_pool_end(second, &thread), VRAM_INVALID_ARGUMENT);
    expect_ok(vram_host_pool_end(second, &stream));
    expect_ok(vram_host_pool_end(first, &all));
    assert_int_equal(pool_of(&fixture, get_on(&fixture, 1, 77)), 0);
    vram_host_pool_release(first);
    vram_host_pool_release(second);
    close_with(&fixture);
}

static void ask_in_thread(void *argument) {
    const struct fixture *fixture = argument;
    assert_int_equal(pool_of(fixture, get(fixture, 1)), 0);
}

static void a_route_of_a_thread_is_its_own(void **state) {
    (void)state;
    struct fixture fixture;
    open_with(&fixture, NULL, "");
    struct vram_host_pool *pool = new_pool(&fixture, false);
    expect_ok(vram_host_pool_begin(pool, &(struct vram_route){.kind = VRAM_ROUTE_THREAD}));
    struct vr_thread thread;
    expect_ok(vr_thread_start(&thread, ask_in_thread, &fixture));
    vr_thread_join(&thread);
    close_with(&fixture); // pools and routes end with the allocator
}

static void a_capture_brings_its_streams_along(void **state) {
    (void)state;
    struct fixture fixture;
    open_with(&fixture, NULL, "");
    const uint64_t origin = open_stream(&fixture), joined = new_stream(&fixture, 0), other = new_stream(&fixture, 0);
    struct vram_host_pool *pool = new_pool(&fixture, true);
    expect_ok(vram_host_pool_begin(pool, &(struct vram_route){.kind = VRAM_ROUTE_CAPTURE, .stream = origin}));
    uint64_t event = 0;
    assert_cu(vr_cu(fixture.sim, event_create, &event, VR_CU_EVENT_DISABLE_TIMING), SUCCESS);
    begin_capture(&fixture, origin);
    assert_cu(vr_cu(fixture.sim, event_record, event, origin), SUCCESS);
    assert_cu(vr_cu(fixture.sim, stream_wait_event, joined, event, 0), SUCCESS);
    assert_int_equal(pool_of(&fixture, get_on(&fixture, 1, origin)), 1);
    assert_int_equal(pool_of(&fixture, get_on(&fixture, 1, joined)), 1);
    assert_int_equal(pool_of(&fixture, get_on(&fixture, 1, other)), 0);
    assert_cu(vr_cu(fixture.sim, event_record, event, joined), SUCCESS);
    assert_cu(vr_cu(fixture.sim, stream_wait_event, origin, event, 0), SUCCESS);
    end_capture(&fixture, origin);
    assert_int_equal(pool_of(&fixture, get_on(&fixture, 1, joined)), 0);
    assert_cu(vr_cu(fixture.sim, event_destroy, event), SUCCESS);
    vram_host_pool_release(pool);
    close_with_context(&fixture);
}

// --- captures -------------------------------------------------------------------------------------------------------------------------

// Memory that a graph copies from must stay the same for every launch.
static void a_captured_block_is_kept_until_its_pool_is_released(void **state) {
    (void)state;
    struct fixture fixture;
    open_with(&fixture, NULL, "");
    const uint64_t stream = open_stream(&fixture);
    struct vram_host_pool *pool = new_pool(&fixture, true);
    void *pointer = NULL, *unused = NULL, *again = NULL;
    begin_capture(&fixture, stream);
    expect_ok(vram_host_pool_malloc(pool, 4096, stream, &pointer));
    expect_ok(vram_host_pool_malloc(pool, 4096, stream, &unused));
    expect_ok(vram_host_record_stream(fixture.host, pointer, stream));
    put(&fixture, pointer);
    put(&fixture, unused); // never used by a stream
    expect_ok(vram_host_pool_malloc(pool, 4096, stream, &again));
    assert_ptr_equal(again, unused);
    end_capture(&fixture, stream); // the allocator has not invalidated it
    expect_ok(vram_host_pool_malloc(pool, 4096, stream, &again));
    assert_true(again != pointer);
    assert_int_equal(stats_of(&fixture).kept_bytes, 4096);
    struct vram_host_pool_stats stats;
    vram_get_host_pool_stats(pool, &stats);
    assert_int_equal(stats.kept_bytes, 4096);
    expect_ok(vram_host_pool_empty_cache(pool));
    assert_int_equal(stats_of(&fixture).allocations.current, 3);
    vram_host_pool_release(pool);
    assert_int_equal(stats_of(&fixture).kept_bytes, 0);
    assert_int_equal(stats_of(&fixture).pending_bytes, 4096);
    expect_ok(vram_host_empty_cache(fixture.host)); // sets the fence
    expect_ok(vram_sim_complete(fixture.sim, stream));
    expect_ok(vram_host_empty_cache(fixture.host));
    assert_int_equal(stats_of(&fixture).allocations.current, 2);
    close_with_context(&fixture);
}

// A block from before the capture, which the capture copies from: PyTorch reuses it.
static void a_block_used_in_a_capture_is_captured(void **state) {
    (void)state;
    struct fixture fixture;
    open_with(&fixture, NULL, "");
    const uint64_t stream = open_stream(&fixture);
    void *pointer = get(&fixture, 4096);
    begin_capture(&fixture, stream);
    expect_ok(vram_host_record_stream(fixture.host, pointer, stream));
    end_capture(&fixture, stream);
    struct vram_host_block_info info;
    expect_ok(vram_get_host_block_info(fixture.host, pointer, &info));
    assert_true(info.captured);
    put(&fixture, pointer);
    expect_ok(vram_sim_complete_all(fixture.sim));
    assert_true(get(&fixture, 4096) != pointer);
    assert_int_equal(stats_of(&fixture).kept_bytes, 4096);
    close_with_context(&fixture);
}

// An event cannot be recorded outside the graph while its stream captures; the fence is set when the capture ends.
static void a_free_during_a_capture_is_fenced_after_it(void **state) {
    (void)state;
    struct fixture fixture;
    open_with(&fixture, NULL, "");
    const uint64_t stream = open_stream(&fixture);
    void *pointer = get(&fixture, 4096);
    expect_ok(vram_host_record_stream(fixture.host, pointer, stream));
    begin_capture(&fixture, stream);
    put(&fixture, pointer);
    assert_int_equal(calls(&fixture, "cuEventRecord"), 0);
    assert_true(get(&fixture, 4096) != pointer);
    end_capture(&fixture, stream);
    assert_true(get(&fixture, 4096) != pointer); // the fence is set now
    assert_int_equal(calls(&fixture, "cuEventRecord"), 1);
    expect_ok(vram_sim_complete(fixture.sim, stream));
    assert_ptr_equal(get(&fixture, 4096), pointer);
    close_with_context(&fixture);
}

// Requesting memory and events of other streams invalidates no capture of the same thread.
static void captures_are_not_disturbed(void **state) {
    (void)state;
    struct fixture fixture;
    open_with(&fixture, NULL, "");
    const uint64_t stream = open_stream(&fixture), other = new_stream(&fixture, 0);
    void *waiting = get(&fixture, 4096);
    expect_ok(vram_host_record_stream(fixture.host, waiting, other));
    begin_capture(&fixture, stream);
    put(&fixture, waiting);
    get(&fixture, 4096);
    get(&fixture, 3 * VR_MIB);
    expect_ok(vram_host_empty_cache(fixture.host));
    end_capture(&fixture, stream);
    close_with_context(&fixture);
}

// --- the background thread --------------------------------------------------------------------------------------------------------------

static void wait_until_nothing_is_pending(const struct fixture *fixture) {
    const uint64_t end_ns = vr_os_monotonic_ns() + 20000000000u;
    while (stats_of(fixture).pending_bytes != 0 && vr_os_monotonic_ns() < end_ns) vr_os_yield();
    assert_int_equal(stats_of(fixture).pending_bytes, 0);
}

static void the_background_thread_completes_frees(void **state) {
    (void)state;
    struct fixture fixture;
    open_with(&fixture, NULL, "pinned_use_background_threads:True,pinned_max_cached_size_mb:1");
    void *pointer = get(&fixture, 4096), *large = get(&fixture, 2 * VR_MIB);
    const uint64_t stream = new_stream(&fixture, 0);
    expect_ok(vram_host_record_stream(fixture.host, pointer, stream));
    expect_ok(vram_host_record_stream(fixture.host, large, stream));
    put(&fixture, pointer);
    put(&fixture, large);
    assert_true(get(&fixture, 4096) != pointer);
    expect_ok(vram_sim_complete(fixture.sim, stream));
    wait_until_nothing_is_pending(&fixture);
    assert_ptr_equal(get(&fixture, 4096), pointer);
    close_with(&fixture); // ends it
}

static void the_background_thread_can_be_switched_off(void **state) {
    (void)state;
    struct fixture fixture;
    open_with(&fixture, NULL, "pinned_use_background_threads:True");
    void *pointer = get(&fixture, 4096);
    const uint64_t stream = new_stream(&fixture, 0);
    expect_ok(vram_host_configure(fixture.host, "pinned_use_background_threads:False", NULL));
    expect_ok(vram_host_record_stream(fixture.host, pointer, stream));
    put(&fixture, pointer);
    expect_ok(vram_sim_complete(fixture.sim, stream));
    assert_ptr_equal(get(&fixture, 4096), pointer); // the request itself checks
    close_with(&fixture);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pools_keep_apart),
        cmocka_unit_test(a_released_pool_goes_with_its_last_block),
        cmocka_unit_test(the_reserve_outlives_its_pool),
        cmocka_unit_test(the_newest_route_wins),
        cmocka_unit_test(a_route_of_a_thread_is_its_own),
        cmocka_unit_test(a_capture_brings_its_streams_along),
        cmocka_unit_test(a_captured_block_is_kept_until_its_pool_is_released),
        cmocka_unit_test(a_block_used_in_a_capture_is_captured),
        cmocka_unit_test(a_free_during_a_capture_is_fenced_after_it),
        cmocka_unit_test(captures_are_not_disturbed),
        cmocka_unit_test(the_background_thread_completes_frees),
        cmocka_unit_test(the_background_thread_can_be_switched_off),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
