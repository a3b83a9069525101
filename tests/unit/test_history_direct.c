// Tests blocks that come directly from the driver (caching off, and backend:cudaMallocAsync) in histories, snapshots and files: each has
// its own segment, allocated before it and freed after it.
#define _GNU_SOURCE
#include <unistd.h>

#include "driver/driver.h"
#include "support/history.h"
#include "vram/driver.h"
#include "vram/pool.h"

enum { MIB = 1 << 20 };

static void expect_segment(const struct vr_model *model, size_t row, uint64_t address, uint64_t size_bytes, uint64_t stream,
                           uint8_t state) {
    const struct vr_segments *segments = &model->segments;
    assert_true(row < segments->count);
    assert_int_equal(segments->address[row], address);
    assert_int_equal(segments->total_bytes[row], size_bytes);
    assert_int_equal(segments->allocated_bytes[row], state == VR_STATE_ALLOCATED ? size_bytes : 0);
    assert_int_equal(segments->active_bytes[row], size_bytes);
    assert_int_equal(segments->requested_bytes[row], size_bytes);
    assert_int_equal(segments->stream[row], stream);
    assert_int_equal(segments->kind[row], VR_KIND_LARGE);
    assert_false(segments->expandable[row]);
    const uint64_t block = segments->first_block[row];
    assert_int_equal(segments->first_block[row + 1], block + 1);
    assert_int_equal(model->blocks.address[block], address);
    assert_int_equal(model->blocks.size_bytes[block], size_bytes);
    assert_int_equal(model->blocks.requested_bytes[block], size_bytes);
    assert_int_equal(model->blocks.state[block], state);
}

static void test_caching_off(void **state) {
    (void)state;
    struct vr_world world;
    history_world(&world, NULL, 1, (uint64_t)1 << 30);
    vram_set_caching(world.allocator, false);
    start(&world, &(struct vram_history_options){.context = VRAM_HISTORY_NONE});
    const uint64_t stream = world.stream[0][1];
    const uint64_t a = take(&world, 5000, stream), b = take(&world, 3 * MIB, 0);
    give(&world, a);
    struct vram_recording *recording = snap(&world, NULL);
    assert_int_equal(model_of(recording)->segments.count, 1);
    expect_segment(model_of(recording), 0, b, 3 * MIB, 0, VR_STATE_ALLOCATED);
    EXPECT_EVENTS(recording, 0, {VR_ACTION_SEGMENT_ALLOC, a, 5000}, {VR_ACTION_ALLOC, a, 5000}, {VR_ACTION_SEGMENT_ALLOC, b, 3 * MIB},
                  {VR_ACTION_ALLOC, b, 3 * MIB}, {VR_ACTION_FREE_REQUESTED, a, 5000}, {VR_ACTION_FREE_COMPLETED, a, 5000},
                  {VR_ACTION_SEGMENT_FREE, a, 5000});
    assert_int_equal(vr_entry_stream(&model_of(recording)->histories[0], 1), stream);
    vram_recording_destroy(recording);
    give(&world, b);
    recording = snap(&world, NULL);
    assert_int_equal(model_of(recording)->segments.count, 0);
    vram_recording_destroy(recording);
    history_end(&world);
}

// Segments of both kinds are sorted by address, whatever came first.
static void test_both_kinds_at_once(void **state) {
    (void)state;
    struct vr_world world;
    history_world(&world, NULL, 1, (uint64_t)1 << 30);
    uint64_t addresses[20];
    for (int i = 0; i < 20; i++) {
        vram_set_caching(world.allocator, i % 2 == 0);
        addresses[i] = take(&world, (uint64_t)(i + 1) * 3 * MIB, 0);
    }
    struct vram_recording *recording = snap(&world, NULL);
    const struct vr_segments *segments = &model_of(recording)->segments;
    uint64_t allocated = 0;
    for (size_t i = 0; i < segments->count; i++) {
        allocated += segments->requested_bytes[i];
        if (i != 0) assert_true(segments->address[i] > segments->address[i - 1]);
    }
    assert_int_equal(allocated, (uint64_t)210 * 3 * MIB);
    vram_recording_destroy(recording);
    for (int i = 0; i < 20; i++) give(&world, addresses[i]);
    history_end(&world);
}

// A block that the driver refuses to free is still live, and no event says otherwise.
static void test_refused_free(void **state) {
    (void)state;
    struct vr_world world;
    const struct vr_world_options options = {
        .sim = {.device_count = 1, .memory_bytes = (uint64_t)1 << 30}, .without_record = true, .faults = true};
    OK(vr_world_open(&world, &options));
    vram_set_caching(world.allocator, false);
    start(&world, &(struct vram_history_options){.context = VRAM_HISTORY_NONE});
    const uint64_t a = take(&world, 5000, 0);
    OK(vram_driver_fault_set(world.driver, "cuMemFree", 1, 719));
    assert_int_equal(vram_free(world.allocator, a), VRAM_DRIVER);
    struct vram_recording *recording = snap(&world, NULL);
    expect_segment(model_of(recording), 0, a, 5000, 0, VR_STATE_ALLOCATED);
    EXPECT_EVENTS(recording, 0, {VR_ACTION_SEGMENT_ALLOC, a, 5000}, {VR_ACTION_ALLOC, a, 5000});
    vram_recording_destroy(recording);
    give(&world, a);
    history_end(&world);
}

static void test_the_drivers_pool(void **state) {
    (void)state;
    struct vr_world world;
    history_world(&world, "backend:cudaMallocAsync", 1, (uint64_t)1 << 30);
    start(&world, &(struct vram_history_options){.context = VRAM_HISTORY_NONE});
    const uint64_t stream = world.stream[0][1], other = world.stream[0][2];
    const uint64_t a = take(&world, 5000, stream), b = take(&world, 3 * MIB, stream), early = take(&world, 700, other);
    give(&world, b);
    // If freed while its stream captures something else, a block waits for the end of the capture.
    struct vram_pool *pool = NULL;
    uint64_t graph = 0;
    OK(vram_pool_create(world.allocator, 0, NULL, &pool));
    OK(vram_capture_begin(pool, other, VRAM_CAPTURE_GLOBAL, NULL));
    give(&world, early);
    struct vram_recording *recording = snap(&world, NULL);
    assert_int_equal(model_of(recording)->segments.count, 2);
    const bool first = a < early;
    expect_segment(model_of(recording), first ? 0 : 1, a, 5000, stream, VR_STATE_ALLOCATED);
    expect_segment(model_of(recording), first ? 1 : 0, early, 700, other, VR_STATE_PENDING_FREE);
    EXPECT_EVENTS(recording, 0, {VR_ACTION_SEGMENT_ALLOC, a, 5000}, {VR_ACTION_ALLOC, a, 5000}, {VR_ACTION_SEGMENT_ALLOC, b, 3 * MIB},
                  {VR_ACTION_ALLOC, b, 3 * MIB}, {VR_ACTION_SEGMENT_ALLOC, early, 700}, {VR_ACTION_ALLOC, early, 700},
                  {VR_ACTION_FREE_REQUESTED, b, 3 * MIB}, {VR_ACTION_FREE_COMPLETED, b, 3 * MIB}, {VR_ACTION_SEGMENT_FREE, b, 3 * MIB},
                  {VR_ACTION_FREE_REQUESTED, early, 700});
    vram_recording_destroy(recording);
    OK(vram_capture_end(pool, other, &graph, NULL));
    assert_int_equal(vr_cu(world.sim, graph_destroy, graph), VR_CU_SUCCESS);
    vram_pool_release(pool);
    OK(vram_empty_cache(world.allocator));
    recording = snap(&world, NULL);
    assert_int_equal(model_of(recording)->segments.count, 1);
    vram_recording_destroy(recording);
    give(&world, a);
    history_end(&world);
}

// The last state in a file, and the state computed for a file without one, equal a snapshot.
static void state_of_file(const char *conf, bool caching) {
    char path[] = "/tmp/vram-direct-XXXXXX";
    const int file = mkstemp(path);
    assert_true(file >= 0);
    close(file);
    struct vr_world world;
    history_world(&world, conf, 1, (uint64_t)1 << 30);
    vram_set_caching(world.allocator, caching);
    start(&world, &(struct vram_history_options){.context = VRAM_HISTORY_NONE, .file = path});
    const uint64_t a = take(&world, 5000, 0), b = take(&world, 3 * MIB, world.stream[0][1]);
    struct vram_recording *snapshot = snap(&world, NULL);
    for (int closed = 0; closed < 2; closed++) {
        struct vram_recording *recording = NULL;
        struct vram_error error = {.message = ""};
        if (closed) OK(vram_history_stop(world.allocator));
        if (vram_recording_read_file(path, &recording, &error) != VRAM_OK) fail_msg("%s", error.message);
        assert_int_equal(vram_get_recording_ending(recording), closed ? VRAM_RECORDING_WHOLE : VRAM_RECORDING_OPEN);
        const struct vr_segments *found = &model_of(recording)->segments, *wanted = &model_of(snapshot)->segments;
        assert_int_equal(found->count, wanted->count);
        for (size_t i = 0; i < found->count; i++) {
            expect_segment(model_of(recording), i, wanted->address[i], wanted->total_bytes[i], wanted->stream[i], VR_STATE_ALLOCATED);
        }
        vram_recording_destroy(recording);
    }
    vram_recording_destroy(snapshot);
    give(&world, a);
    give(&world, b);
    history_end(&world);
    assert_int_equal(unlink(path), 0);
}

static void test_files(void **state) {
    (void)state;
    state_of_file(NULL, false);
    state_of_file("backend:cudaMallocAsync", true);
}

// A block keeps the stack of its request; a block allocated without recording has no stack, whatever was recorded before.
static void test_stacks(void **state) {
    (void)state;
    struct vr_world world;
    history_world(&world, NULL, 1, (uint64_t)1 << 30);
    vram_set_caching(world.allocator, false);
    start(&world, &(struct vram_history_options){.stacks = VRAM_HISTORY_STACKS_C});
    const uint64_t a = take(&world, 5000, 0);
    struct vram_recording *recording = snap(&world, NULL);
    assert_int_not_equal(model_of(recording)->blocks.stack[0], 0);
    for (size_t i = 0; i < 2; i++) assert_int_not_equal(model_of(recording)->histories[0].stack[i], 0);
    vram_recording_destroy(recording);
    give(&world, a);
    OK(vram_history_stop(world.allocator));
    const uint64_t b = take(&world, 5000, 0);
    recording = snap(&world, NULL);
    assert_int_equal(model_of(recording)->blocks.stack[0], 0);
    vram_recording_destroy(recording);
    give(&world, b);
    history_end(&world);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_caching_off),  cmocka_unit_test(test_both_kinds_at_once),
        cmocka_unit_test(test_refused_free), cmocka_unit_test(test_the_drivers_pool),
        cmocka_unit_test(test_files),        cmocka_unit_test(test_stacks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
