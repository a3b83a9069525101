// Tests frees postponed by captures: uses outside the capture, abandoned captures, a thread that captures next to one that does not.
// (test_capture_reuse.c tests whether reuse within a capture is safe.)
#include <pthread.h>
#include <stdatomic.h>

#include "support/captures.h"

static const char *const confs[] = {"", "graph_capture_record_stream_reuse:True"};

// A machine with a pool for graphs, and two of its streams.
struct scene {
    struct vr_world world;
    struct vram_pool *pool;
    uint64_t a, b;
};

static int open_scene(void **state) {
    static struct scene scene;
    expect_world(&scene.world, *state, 0);
    scene.pool = expect_graph_pool(&scene.world);
    scene.a = scene.world.stream[0][1];
    scene.b = scene.world.stream[0][2];
    *state = &scene;
    return 0;
}

static int close_scene(void **state) {
    struct scene *scene = *state;
    vram_pool_release(scene->pool);
    expect_end(&scene->world);
    return 0;
}

// Runs a test in a scene, with each setting.
#define IN_SCENES(test)                                                                                                                    \
    cmocka_unit_test_prestate_setup_teardown(test, open_scene, close_scene, (void *)confs[0]),                                             \
        cmocka_unit_test_prestate_setup_teardown(test, open_scene, close_scene, (void *)confs[1])

static void expect_lost(struct vram_pool *pool, uint64_t stream) {
    uint64_t graph = 7;
    EXPECT_STATUS(DRIVER, vram_capture_end(pool, stream, &graph, NULL));
    assert_int_equal(graph, 0);
}

// --- uses outside of the capture --------------------------------------------------------------------------------------------------------

// Checks that the block waits only for `stream`.
static void expect_waits_for(struct vr_world *world, uint64_t block, uint64_t stream) {
    const uint64_t own = world->stream[0][1];
    const uint64_t other = expect_malloc(world, 30 * VR_MIB, own);
    assert_int_not_equal(other, block);
    assert_int_equal(expect_blocks_in(world, 0, VRAM_BLOCK_PENDING), 1);
    EXPECT_OK(vr_world_complete(world, 0, stream));
    const uint64_t more = expect_malloc(world, 1, own);
    assert_int_equal(expect_blocks_in(world, 0, VRAM_BLOCK_PENDING), 0);
    expect_free(world, other);
    expect_free(world, more);
}

// The graph does not order work that a stream did before it took part.
static void uses_before_the_capture_are_waited_for(void **state) {
    struct scene *scene = *state;
    struct vr_world *world = &scene->world;
    struct vram_pool *pool = scene->pool;
    const uint64_t a = scene->a, b = scene->b;
    uint64_t block = 0, again = 0;
    EXPECT_OK(vram_pool_malloc(pool, 30 * VR_MIB, a, &block));
    EXPECT_OK(vram_record_stream(world->allocator, block, b));
    kernel(world, b);
    begin(pool, a, VRAM_CAPTURE_GLOBAL);
    expect_wait_stream(world, b, a);
    EXPECT_OK(vram_record_stream(world->allocator, block, b));
    expect_free(world, block);
    expect_wait_stream(world, a, b);
    again = expect_malloc(world, 30 * VR_MIB, a);
    assert_int_not_equal(again, block);
    end(world, pool, a);
    expect_waits_for(world, block, b);
    expect_free(world, again);
}

// The graph does not order work of a stream that takes no part either.
static void uses_during_the_capture_are_waited_for(void **state) {
    struct scene *scene = *state;
    struct vr_world *world = &scene->world;
    struct vram_pool *pool = scene->pool;
    const uint64_t a = scene->a, b = scene->b;
    begin(pool, a, VRAM_CAPTURE_RELAXED);
    const uint64_t block = expect_malloc(world, 30 * VR_MIB, a);
    kernel(world, b);
    EXPECT_OK(vram_record_stream(world->allocator, block, b));
    expect_free(world, block);
    end(world, pool, a);
    expect_waits_for(world, block, b);
}

// A use recorded in one capture does not hide a later use outside from the next capture.
static void uses_between_captures_are_waited_for(void **state) {
    struct scene *scene = *state;
    struct vr_world *world = &scene->world;
    struct vram_pool *pool = scene->pool;
    const uint64_t a = scene->a, b = scene->b;
    begin(pool, a, VRAM_CAPTURE_GLOBAL);
    const uint64_t block = expect_malloc(world, 30 * VR_MIB, a);
    expect_wait_stream(world, b, a);
    EXPECT_OK(vram_record_stream(world->allocator, block, b));
    expect_wait_stream(world, a, b);
    end(world, pool, a);
    kernel(world, b);
    EXPECT_OK(vram_record_stream(world->allocator, block, b));
    begin(pool, a, VRAM_CAPTURE_GLOBAL);
    expect_free(world, block);
    end(world, pool, a);
    expect_waits_for(world, block, b);
}

// --- abandoned captures -----------------------------------------------------------------------------------------------------------------

// Postpones a free in a capture that is left open.
static uint64_t half_a_capture(struct vr_world *world, struct vram_pool *pool, uint64_t a, uint64_t b) {
    begin(pool, a, VRAM_CAPTURE_GLOBAL);
    const uint64_t block = expect_malloc(world, 30 * VR_MIB, a);
    expect_wait_stream(world, b, a);
    kernel(world, b);
    EXPECT_OK(vram_record_stream(world->allocator, block, b));
    expect_free(world, block);
    assert_int_equal(expect_blocks_in(world, 0, VRAM_BLOCK_PENDING), 1);
    return block;
}

// Checks that nothing waits, requests go to the default pool, and the pool releases everything.
static void expect_as_before(struct scene *scene, uint64_t stream) {
    struct vr_world *world = &scene->world;
    const uint64_t block = expect_malloc(world, 100, stream);
    struct vram_block_info info;
    EXPECT_OK(vram_get_block_info(world->allocator, block, &info));
    assert_int_equal(info.pool.first, 0);
    assert_int_equal(expect_blocks_in(world, 0, VRAM_BLOCK_PENDING), 0);
    assert_int_equal(vram_pool_references(scene->pool), 1);
    expect_free(world, block);
    vram_pool_release(scene->pool);
    scene->pool = NULL;
    EXPECT_OK(vram_empty_cache(world->allocator));
    EXPECT_CURRENT(world, reserved_bytes, 0);
}

static void an_invalid_capture_leaves_nothing(void **state) {
    struct scene *scene = *state;
    struct vr_world *world = &scene->world;
    struct vram_pool *pool = scene->pool;
    const uint64_t a = scene->a, b = scene->b;
    (void)half_a_capture(world, pool, a, b);
    assert_int_not_equal(vr_cu(world->sim, stream_synchronize, a), VR_CU_SUCCESS);
    // Requests and frees continue before the end of the capture is noticed.
    const uint64_t block = expect_malloc(world, 3 * VR_MIB, a);
    EXPECT_OK(vram_record_stream(world->allocator, block, b));
    expect_free(world, block);
    EXPECT_OK(vram_empty_cache(world->allocator));
    expect_lost(pool, a);
    EXPECT_STATUS(INVALID_ARGUMENT, vram_capture_end(pool, a, &(uint64_t){0}, NULL));
    expect_as_before(scene, a);
}

static void a_fork_without_join_leaves_nothing(void **state) {
    struct scene *scene = *state;
    struct vr_world *world = &scene->world;
    struct vram_pool *pool = scene->pool;
    const uint64_t a = scene->a, b = scene->b;
    (void)half_a_capture(world, pool, a, b);
    expect_lost(pool, a);
    expect_as_before(scene, a);
}

static void a_destroyed_stream_leaves_nothing(void **state) {
    struct scene *scene = *state;
    struct vr_world *world = &scene->world;
    struct vram_pool *pool = scene->pool;
    const uint64_t a = new_stream(world), b = new_stream(world);
    (void)half_a_capture(world, pool, a, b);
    assert_int_equal(vr_cu(world->sim, stream_destroy, a), VR_CU_SUCCESS);
    assert_int_equal(vr_cu(world->sim, stream_destroy, b), VR_CU_SUCCESS);
    expect_lost(pool, a);
    expect_as_before(scene, world->stream[0][1]);
}

// A stream that was used outside and is destroyed: no fence can be recorded on it, and requests must not fail because of that.
static void a_use_on_a_destroyed_stream_holds_nobody_up(void **state) {
    struct scene *scene = *state;
    struct vr_world *world = &scene->world;
    struct vram_pool *pool = scene->pool;
    const uint64_t a = scene->a, b = new_stream(world);
    begin(pool, a, VRAM_CAPTURE_RELAXED);
    const uint64_t block = expect_malloc(world, 30 * VR_MIB, a);
    kernel(world, b);
    EXPECT_OK(vram_record_stream(world->allocator, block, b));
    expect_free(world, block);
    assert_int_equal(vr_cu(world->sim, stream_destroy, b), VR_CU_SUCCESS);
    end(world, pool, a);
    expect_as_before(scene, a);
}

// The allocator is destroyed during a capture and leaves nothing behind.
static void the_end_of_all_during_a_capture(void **state) {
    (void)state;
    struct vr_world world;
    expect_world(&world, "", 0);
    const uint64_t a = new_stream(&world), b = new_stream(&world);
    struct vram_pool *pool = expect_graph_pool(&world);
    (void)half_a_capture(&world, pool, a, b);
    assert_int_equal(vr_cu(world.sim, stream_destroy, a), VR_CU_SUCCESS);
    assert_int_equal(vr_cu(world.sim, stream_destroy, b), VR_CU_SUCCESS);
    assert_int_equal(vr_world_close(&world), 0);
}

// Unmapping waits for a stream, so it must not happen while one captures.
static void a_release_does_not_disturb_a_capture(void **state) {
    (void)state;
    struct vr_world world;
    expect_world(&world, "expandable_segments:True", 0);
    const uint64_t a = world.stream[0][1];
    struct vram_pool *gone = expect_graph_pool(&world), *pool = expect_graph_pool(&world);
    uint64_t block = 0;
    EXPECT_OK(vram_pool_malloc(gone, 30 * VR_MIB, a, &block));
    expect_free(&world, block);
    vram_pool_release(gone);
    begin(pool, a, VRAM_CAPTURE_GLOBAL);
    EXPECT_OK(vram_empty_cache(world.allocator));
    kernel(&world, a);
    end(&world, pool, a);
    EXPECT_OK(vram_empty_cache(world.allocator));
    EXPECT_CURRENT(&world, reserved_bytes, 0);
    vram_pool_release(pool);
    expect_end(&world);
}

// After a capture, its postponed frees do not prevent a trim or a checkpoint.
static void a_trim_sees_what_a_capture_put_off(void **state) {
    (void)state;
    for (int checkpoint = 0; checkpoint < 2; checkpoint++) {
        struct vr_world world;
        expect_world(&world, "", 0);
        const uint64_t a = world.stream[0][1], b = world.stream[0][2];
        struct vram_pool *neighbour_pool = expect_graph_pool(&world), *pool = expect_graph_pool(&world);
        uint64_t block = 0;
        EXPECT_OK(vram_pool_malloc(neighbour_pool, 30 * VR_MIB, a, &block));
        begin(pool, a, VRAM_CAPTURE_GLOBAL);
        expect_wait_stream(&world, b, a);
        EXPECT_OK(vram_record_stream(world.allocator, block, b));
        expect_free(&world, block);
        struct vram_checkpoint *saved = NULL;
        EXPECT_OK(vram_pool_empty_cache(neighbour_pool));
        EXPECT_CURRENT(&world, reserved_bytes, 30 * VR_MIB);
        expect_wait_stream(&world, a, b);
        end(&world, pool, a);
        if (checkpoint) EXPECT_OK(vram_pool_checkpoint(neighbour_pool, &saved));
        EXPECT_OK(vram_pool_empty_cache(neighbour_pool));
        EXPECT_CURRENT(&world, reserved_bytes, 0);
        vram_checkpoint_destroy(saved);
        vram_pool_release(neighbour_pool);
        vram_pool_release(pool);
        expect_end(&world);
    }
}

// --- two threads ------------------------------------------------------------------------------------------------------------------------

enum { CAPTURES = 200, STEPS = 30 };

struct neighbour {
    struct vr_world *world;
    atomic_bool over;
    unsigned failures; // read after the thread ended
};

static void *allocate_meanwhile(void *user) {
    struct neighbour *neighbour = user;
    struct vr_world *world = neighbour->world;
    const uint64_t own = world->stream[0][3];
    uint64_t live[8] = {0};
    for (uint64_t i = 0; !atomic_load(&neighbour->over); i++) {
        uint64_t *slot = &live[i % VR_COUNT_OF(live)];
        neighbour->failures += vram_free(world->allocator, *slot) != VRAM_OK;
        *slot = 0;
        neighbour->failures += vram_malloc(world->allocator, 0, 1000 + i % 7 * VR_MIB, own, slot) != VRAM_OK;
        if (i % 3 == 0) neighbour->failures += vram_record_stream(world->allocator, *slot, 0) != VRAM_OK;
        if (i % 100 == 99) neighbour->failures += vram_empty_cache(world->allocator) != VRAM_OK;
    }
    for (size_t i = 0; i < VR_COUNT_OF(live); i++) neighbour->failures += vram_free(world->allocator, live[i]) != VRAM_OK;
    return NULL;
}

static void capture_meanwhile(struct vr_world *world) {
    const uint64_t a = world->stream[0][1], b = world->stream[0][2];
    for (int capture = 0; capture < CAPTURES; capture++) {
        struct vram_pool *pool = expect_graph_pool(world);
        begin(pool, a, VRAM_CAPTURE_THREAD_LOCAL);
        expect_wait_stream(world, b, a);
        for (int step = 0; step < STEPS; step++) {
            const uint64_t block = expect_malloc(world, (uint64_t)(1 + step % 5) * VR_MIB, a);
            struct vram_block_info info;
            EXPECT_OK(vram_get_block_info(world->allocator, block, &info));
            assert_int_equal(info.pool.first, vram_get_pool_id(pool).first);
            EXPECT_OK(vram_record_stream(world->allocator, block, b));
            kernel(world, b);
            expect_free(world, block);
            if (step % 4 == 0) expect_wait_stream(world, a, b);
        }
        expect_wait_stream(world, a, b);
        end(world, pool, a);
        vram_pool_release(pool);
    }
}

static void one_thread_captures_while_another_allocates(void **state) {
    (void)state;
    for (size_t c = 0; c < VR_COUNT_OF(confs); c++) {
        struct vr_world world;
        const struct vr_world_options options = {.conf = confs[c], .without_record = true};
        EXPECT_OK(vr_world_open(&world, &options));
        struct neighbour neighbour = {.world = &world};
        pthread_t thread;
        assert_int_equal(pthread_create(&thread, NULL, allocate_meanwhile, &neighbour), 0);
        capture_meanwhile(&world);
        atomic_store(&neighbour.over, true);
        assert_int_equal(pthread_join(thread, NULL), 0);
        assert_int_equal(neighbour.failures, 0);
        EXPECT_OK(vram_empty_cache(world.allocator));
        EXPECT_CURRENT(&world, reserved_bytes, 0);
        EXPECT_CURRENT(&world, active, 0);
        expect_end(&world);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        IN_SCENES(uses_before_the_capture_are_waited_for),
        IN_SCENES(uses_during_the_capture_are_waited_for),
        IN_SCENES(uses_between_captures_are_waited_for),
        IN_SCENES(an_invalid_capture_leaves_nothing),
        IN_SCENES(a_fork_without_join_leaves_nothing),
        IN_SCENES(a_destroyed_stream_leaves_nothing),
        IN_SCENES(a_use_on_a_destroyed_stream_holds_nobody_up),
        cmocka_unit_test(the_end_of_all_during_a_capture),
        cmocka_unit_test(a_release_does_not_disturb_a_capture),
        cmocka_unit_test(a_trim_sees_what_a_capture_put_off),
        cmocka_unit_test(one_thread_captures_while_another_allocates),
    };
    return cmocka_run_group_tests_name("capture_deferral", tests, NULL, NULL);
}
