// Tests running out of memory, in vram/allocator.h: the report of a failure, the observers, and the callbacks that free memory before new
// memory is allocated.
#include "support/expect.h"
#include "vram/sim.h"

static void report_of_a_failure(void **state) {
    (void)state;
    struct vr_world world;
    expect_world(&world, "", 200 * VR_MIB);
    const uint64_t one = world.stream[0][1], two = world.stream[0][2];
    (void)expect_malloc(&world, 3 * VR_MIB, one); // 20 MiB segment with 17 MiB free
    (void)expect_malloc(&world, 6 * VR_MIB, two); // 20 MiB segment with 14 MiB free on another stream
    (void)expect_malloc(&world, 1000, one);       // 2 MiB segment of the small pool
    (void)expect_malloc(&world, 100 * VR_MIB, one);
    uint64_t none = 0;
    EXPECT_STATUS(OUT_OF_MEMORY, vram_malloc(world.allocator, 0, 61 * VR_MIB - 5, one, &none));
    struct vram_oom oom;
    assert_true(vram_last_oom(&oom));
    assert_int_equal(oom.device, 0);
    assert_int_equal(oom.stream, one);
    assert_int_equal(oom.requested_bytes, 61 * VR_MIB - 5);
    assert_int_equal(oom.rounded_bytes, 61 * VR_MIB);
    assert_int_equal(oom.segment_bytes, 62 * VR_MIB);
    assert_int_equal(oom.device_total_bytes, 200 * VR_MIB);
    assert_int_equal(oom.device_free_bytes, 58 * VR_MIB);
    assert_int_equal(oom.limit_bytes, UINT64_MAX);
    assert_int_equal(oom.allocated_bytes, 109 * VR_MIB + 1024);
    assert_int_equal(oom.reserved_bytes, 142 * VR_MIB);
    assert_int_equal(oom.pending_bytes, 0);
    assert_int_equal(oom.cached_bytes, 33 * VR_MIB - 1024);
    assert_int_equal(oom.largest_free_bytes, 17 * VR_MIB);
    assert_int_equal(oom.other_stream_bytes, 14 * VR_MIB);
    assert_int_equal(oom.other_pool_bytes, 2 * VR_MIB - 1024);
    assert_false(oom.rejected);
    assert_false(oom.limit_hit);
    char text[2048], shorter[16];
    const size_t length = vram_oom_text(&oom, text, sizeof text);
    assert_int_equal(length, strlen(text));
    assert_non_null(strstr(text, "62.00 MiB"));
    assert_non_null(strstr(text, "58.00 MiB"));
    assert_null(strchr(text, '\n'));
    assert_int_equal(vram_oom_text(&oom, shorter, sizeof shorter), length);
    assert_int_equal(strlen(shorter), sizeof shorter - 1);
    assert_int_equal(vram_oom_text(&oom, NULL, 0), length);
    expect_end(&world);
}

struct witness {
    struct vr_world *world;
    struct vram_oom oom;
    unsigned calls, order;
    unsigned *clock;
};

static void watch(const struct vram_oom *oom, void *user) {
    struct witness *witness = user;
    witness->calls++;
    witness->order = ++*witness->clock;
    witness->oom = *oom;
    // Observers run without a lock, so they may use the allocator.
    struct vram_stats stats;
    EXPECT_OK(vram_get_stats(witness->world->allocator, 0, &stats));
    uint64_t small = 0;
    EXPECT_OK(vram_malloc(witness->world->allocator, 0, 100, 0, &small));
    EXPECT_OK(vram_free(witness->world->allocator, small));
}

static void observers(void **state) {
    (void)state;
    struct vr_world world;
    expect_world(&world, "", 50 * VR_MIB);
    unsigned clock = 0;
    struct witness first = {.world = &world, .clock = &clock}, second = {.world = &world, .clock = &clock};
    EXPECT_OK(vram_add_oom_observer(world.allocator, watch, &first));
    EXPECT_OK(vram_add_oom_observer(world.allocator, watch, &second));
    uint64_t none = 0;
    EXPECT_STATUS(OUT_OF_MEMORY, vram_malloc(world.allocator, 0, 60 * VR_MIB, 0, &none));
    assert_int_equal(first.calls, 1);
    assert_int_equal(second.calls, 1);
    assert_true(first.order < second.order);
    assert_int_equal(first.oom.requested_bytes, 60 * VR_MIB);
    struct vram_oom oom;
    assert_true(vram_last_oom(&oom));
    assert_int_equal(oom.requested_bytes, 60 * VR_MIB);
    EXPECT_OK(vram_remove_oom_observer(world.allocator, watch, &first));
    EXPECT_STATUS(INVALID_ARGUMENT, vram_remove_oom_observer(world.allocator, watch, &first));
    EXPECT_STATUS(INVALID_ARGUMENT, vram_add_oom_observer(world.allocator, NULL, NULL));
    EXPECT_STATUS(OUT_OF_MEMORY, vram_malloc(world.allocator, 0, 61 * VR_MIB, 0, &none));
    assert_int_equal(first.calls, 1);
    assert_int_equal(second.calls, 2);
    (void)expect_malloc(&world, 10 * VR_MIB, 0); // success calls no observer
    assert_int_equal(second.calls, 2);
    expect_end(&world);
}

struct hoard {
    struct vr_world *world;
    uint64_t address; // freed at the first call
    unsigned calls;
    uint64_t asked_bytes;
};

static bool give(uint32_t device, uint64_t size_bytes, void *user) {
    struct hoard *hoard = user;
    assert_int_equal(device, 0);
    hoard->calls++;
    hoard->asked_bytes = size_bytes;
    if (hoard->address == 0) return false;
    EXPECT_OK(vram_free(hoard->world->allocator, hoard->address));
    hoard->address = 0;
    return true;
}

static void free_callbacks(void **state) {
    (void)state;
    struct vr_world world;
    expect_world(&world, "", 0);
    struct hoard hoard = {.world = &world};
    hoard.address = expect_malloc(&world, 30 * VR_MIB, 0);
    const uint64_t held = hoard.address;
    EXPECT_OK(vram_add_free_callback(world.allocator, give, &hoard));
    // Memory freed by the callback is found at once, without new memory.
    const uint64_t calls = vram_sim_calls(world.sim, "cuMemAlloc");
    assert_int_equal(expect_malloc(&world, 30 * VR_MIB, 0), held);
    assert_int_equal(vram_sim_calls(world.sim, "cuMemAlloc"), calls);
    assert_int_equal(hoard.calls, 1);
    assert_true(hoard.asked_bytes >= 30 * VR_MIB);
    (void)expect_malloc(&world, 40 * VR_MIB, 0); // called again, with nothing to free
    assert_int_equal(hoard.calls, 2);
    expect_free(&world, held);
    assert_int_equal(expect_malloc(&world, 30 * VR_MIB, 0), held); // a cache hit calls no callback
    assert_int_equal(hoard.calls, 2);
    EXPECT_OK(vram_remove_free_callback(world.allocator, give, &hoard));
    EXPECT_STATUS(INVALID_ARGUMENT, vram_remove_free_callback(world.allocator, give, &hoard));
    EXPECT_STATUS(INVALID_ARGUMENT, vram_add_free_callback(world.allocator, NULL, NULL));
    (void)expect_malloc(&world, 50 * VR_MIB, 0);
    assert_int_equal(hoard.calls, 2);
    for (int i = 0; i < 16; i++) EXPECT_OK(vram_add_free_callback(world.allocator, give, &hoard));
    EXPECT_STATUS(LIMIT, vram_add_free_callback(world.allocator, give, &hoard));
    expect_end(&world);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(report_of_a_failure),
        cmocka_unit_test(observers),
        cmocka_unit_test(free_callbacks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
