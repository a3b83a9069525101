// Tests statements in PyTorch's guides about memory outside of graphs that no other test covers. tests/coverage.md lists every statement
// with its test.
#define _POSIX_C_SOURCE 200809L // setenv
#include <stdlib.h>

#include "driver/driver.h"
#include "support/expect.h"
#include "vram/sim.h"
#include "vram/workspace.h"

enum { MILLISECOND = 1000000 };

// Opens a machine whose work ends by the clock, not by hand.
static void timed_world(struct vr_world *world, const char *conf, uint64_t memory_bytes) {
    const struct vr_world_options options = {.sim = {.memory_bytes = memory_bytes}, .conf = conf};
    EXPECT_OK(vr_world_open(world, &options));
}

// --- a steady state -------------------------------------------------------------------------------------------------------------------

static uint64_t all_driver_calls(const struct vr_world *world) {
    uint64_t sum = 0, count = 0;
    const char *name = NULL;
    for (uint32_t i = 0; vram_sim_call_at(world->sim, i, &name, &count, NULL); i++) sum += count;
    return sum;
}

enum { LAYERS = 30 };

// A training step: the forward pass accumulates activations; the backward pass allocates a gradient per layer, then frees the activation
// and the gradient.
static void train_step(struct vr_world *world, uint64_t stream) {
    uint64_t activation[LAYERS];
    for (uint64_t layer = 0; layer < LAYERS; layer++) {
        const uint64_t scratch = expect_malloc(world, 700 * VR_KIB + layer * 1000, stream);
        activation[layer] = expect_malloc(world, (1 + layer * 7 % 5) * VR_MIB + 12345 * layer, stream);
        expect_free(world, scratch);
    }
    for (uint64_t layer = LAYERS; layer-- > 0;) {
        const uint64_t gradient = expect_malloc(world, 2 * VR_MIB + 999 * layer, stream);
        expect_free(world, activation[layer]);
        expect_free(world, gradient);
    }
}

static void a_steady_state_asks_the_driver_for_nothing(void **state) {
    static const char *const confs[] = {"", "expandable_segments:True", "roundup_power2_divisions:8"};
    (void)state;
    for (size_t c = 0; c < VR_COUNT_OF(confs); c++) {
        struct vr_world world;
        expect_world(&world, confs[c], 0);
        train_step(&world, world.stream[0][1]);
        const uint64_t calls = all_driver_calls(&world);
        const int64_t reserved = expect_stats(&world).reserved_bytes[VRAM_STAT_ALL].current;
        for (int step = 0; step < 20; step++) train_step(&world, world.stream[0][1]);
        assert_int_equal(all_driver_calls(&world), calls);
        EXPECT_CURRENT(&world, reserved_bytes, reserved);
        expect_end(&world);
    }
}

// Memory used once stays in use, as other programs see it, until it is released by hand; live memory stays even then.
static void cached_memory_is_used_memory_to_others(void **state) {
    (void)state;
    struct vr_world world;
    expect_world(&world, "", VR_GIB);
    const uint64_t kept = expect_malloc(&world, 100 * VR_MIB, 0), gone = expect_malloc(&world, 300 * VR_MIB, 0);
    uint64_t free_bytes = 0, total_bytes = 0;
    expect_free(&world, gone);
    EXPECT_CURRENT(&world, allocated_bytes, 100 * VR_MIB);
    EXPECT_PEAK(&world, allocated_bytes, 400 * VR_MIB);
    EXPECT_OK(vram_memory_info(world.allocator, 0, &free_bytes, &total_bytes));
    assert_int_equal(free_bytes, VR_GIB - 400 * VR_MIB);
    EXPECT_OK(vram_empty_cache(world.allocator));
    EXPECT_OK(vram_memory_info(world.allocator, 0, &free_bytes, &total_bytes));
    assert_int_equal(free_bytes, VR_GIB - 100 * VR_MIB);
    EXPECT_CURRENT(&world, reserved_bytes, 100 * VR_MIB);
    EXPECT_PEAK(&world, reserved_bytes, 400 * VR_MIB);
    expect_free(&world, kept);
    expect_end(&world);
}

static void the_smallest_block_that_fits_is_taken(void **state) {
    static const uint64_t sizes_mib[] = {30, 12, 20, 14, 16};
    (void)state;
    struct vr_world world;
    expect_world(&world, "", 0);
    uint64_t block[VR_COUNT_OF(sizes_mib)];
    for (size_t i = 0; i < VR_COUNT_OF(sizes_mib); i++) block[i] = expect_malloc(&world, sizes_mib[i] * VR_MIB, 0);
    for (size_t i = 0; i < VR_COUNT_OF(sizes_mib); i++) expect_free(&world, block[i]);
    assert_int_equal(expect_malloc(&world, 13 * VR_MIB, 0), block[3]);
    assert_int_equal(expect_malloc(&world, 13 * VR_MIB, 0), block[4]);
    assert_int_equal(expect_malloc(&world, 13 * VR_MIB, 0), block[2]);
    assert_int_equal(expect_malloc(&world, 12 * VR_MIB, 0), block[1]);
    assert_int_equal(expect_malloc(&world, 13 * VR_MIB, 0), block[0]);
    expect_end(&world);
}

static void the_environment_turns_caching_off(void **state) {
    static const char *const names[] = {"PYTORCH_NO_CUDA_MEMORY_CACHING", "VRAM_NO_CACHING"};
    (void)state;
    for (size_t i = 0; i < VR_COUNT_OF(names); i++) {
        struct vram_driver *sim = NULL;
        struct vram_allocator *allocator = NULL;
        EXPECT_OK(vram_sim_create(NULL, &sim));
        assert_int_equal(setenv(names[i], "1", 1), 0);
        EXPECT_OK(vram_create(&(struct vram_create_info){.driver = sim, .conf = ""}, &allocator, NULL));
        assert_int_equal(unsetenv(names[i]), 0);
        assert_false(vram_caching(allocator));
        for (uint64_t round = 1; round <= 3; round++) {
            uint64_t address = 0;
            EXPECT_OK(vram_malloc(allocator, 0, 1000, 0, &address));
            EXPECT_OK(vram_free(allocator, address));
            assert_int_equal(vram_sim_calls(sim, "cuMemAlloc"), round);
            assert_int_equal(vram_sim_calls(sim, "cuMemFree"), round);
        }
        vram_destroy(allocator);
        vram_driver_destroy(sim);
    }
}

// --- streams --------------------------------------------------------------------------------------------------------------------------

// The next user on the same stream runs after the last one anyway: nothing waits, and the new block may have pending work of the old one.
static void memory_comes_back_before_its_work_is_done(void **state) {
    (void)state;
    struct vr_world world;
    timed_world(&world, "", 0);
    const uint64_t stream = world.stream[0][1], block = expect_malloc(&world, 30 * VR_MIB, stream);
    EXPECT_OK(vram_sim_busy(world.sim, 0, stream, 1000 * (uint64_t)MILLISECOND));
    const uint64_t before_ns = vram_sim_clock_ns(world.sim);
    expect_free(&world, block);
    EXPECT_CURRENT(&world, active, 0);
    assert_int_equal(expect_malloc(&world, 30 * VR_MIB, stream), block);
    assert_int_equal(vram_sim_clock_ns(world.sim), before_ns);
    assert_int_equal(vr_cu(world.sim, stream_query, stream), VR_CU_NOT_READY);
    expect_end(&world);
}

static void a_block_returns_to_the_stream_it_came_from(void **state) {
    (void)state;
    struct vr_world world;
    expect_world(&world, "", 0);
    const uint64_t creator = world.stream[0][1], user = world.stream[0][2];
    const uint64_t block = expect_malloc(&world, 30 * VR_MIB, creator);
    EXPECT_OK(vram_record_stream(world.allocator, block, user));
    expect_free(&world, block);
    EXPECT_OK(vr_world_complete(&world, 0, user));
    assert_int_not_equal(expect_malloc(&world, 30 * VR_MIB, user), block);
    assert_int_equal(expect_malloc(&world, 30 * VR_MIB, creator), block);
    expect_end(&world);
}

static void every_stream_that_used_it_must_pass(void **state) {
    (void)state;
    struct vr_world world;
    expect_world(&world, "", 0);
    const uint64_t own = world.stream[0][1], block = expect_malloc(&world, 30 * VR_MIB, own);
    const uint64_t users[] = {world.stream[0][3], 0, world.stream[0][2]};
    for (size_t i = 0; i < VR_COUNT_OF(users); i++) EXPECT_OK(vram_record_stream(world.allocator, block, users[i]));
    const uint64_t events = vram_sim_calls(world.sim, "cuEventRecord");
    expect_free(&world, block);
    assert_int_equal(vram_sim_calls(world.sim, "cuEventRecord"), events + VR_COUNT_OF(users));
    for (size_t i = 0; i < VR_COUNT_OF(users); i++) {
        expect_free(&world, expect_malloc(&world, 1, own));
        EXPECT_CURRENT(&world, active_bytes, 30 * VR_MIB);
        EXPECT_OK(vr_world_complete(&world, 0, users[i]));
    }
    expect_free(&world, expect_malloc(&world, 1, own));
    EXPECT_CURRENT(&world, active_bytes, 0);
    assert_int_equal(expect_malloc(&world, 30 * VR_MIB, own), block);
    expect_end(&world);
}

// --- out of memory ------------------------------------------------------------------------------------------------------------------

static void a_retry_waits_for_other_streams(void **state) {
    (void)state;
    struct vr_world world;
    timed_world(&world, "", 100 * VR_MIB);
    const uint64_t own = world.stream[0][1], other = world.stream[0][2];
    const uint64_t pending = expect_malloc(&world, 40 * VR_MIB, own), cached = expect_malloc(&world, 40 * VR_MIB, world.stream[0][3]);
    EXPECT_OK(vram_record_stream(world.allocator, pending, other));
    EXPECT_OK(vram_sim_busy(world.sim, 0, other, 50 * MILLISECOND));
    expect_free(&world, pending);
    expect_free(&world, cached);
    EXPECT_CURRENT(&world, active_bytes, 40 * VR_MIB);
    (void)expect_malloc(&world, 90 * VR_MIB, own);
    assert_true(vram_sim_clock_ns(world.sim) >= 50 * MILLISECOND);
    EXPECT_SCALAR(&world, num_alloc_retries, 1);
    EXPECT_SCALAR(&world, num_sync_all_streams, 1);
    EXPECT_SCALAR(&world, num_ooms, 0);
    EXPECT_CURRENT(&world, reserved_bytes, 90 * VR_MIB);
    expect_end(&world);
}

// There are enough bytes, but a small block is between them. Without that block the program succeeds.
static void a_small_block_holds_a_segment_back(void **state) {
    (void)state;
    struct vr_world world;
    expect_world(&world, "", 100 * VR_MIB);
    expect_free(&world, expect_malloc(&world, 80 * VR_MIB, 0));
    const uint64_t temporary = expect_malloc(&world, 2 * VR_MIB, 0);
    EXPECT_CURRENT(&world, inactive_split_bytes, 78 * VR_MIB);
    uint64_t none = 0;
    for (int attempt = 1; attempt <= 3; attempt++) {
        EXPECT_STATUS(OUT_OF_MEMORY, vram_malloc(world.allocator, 0, 90 * VR_MIB, 0, &none));
        EXPECT_SCALAR(&world, num_alloc_retries, attempt);
        EXPECT_SCALAR(&world, num_ooms, attempt);
    }
    EXPECT_CURRENT(&world, reserved_bytes, 80 * VR_MIB);
    struct vram_oom oom;
    assert_true(vram_last_oom(&oom));
    assert_int_equal(oom.cached_bytes + oom.device_free_bytes, 98 * VR_MIB);
    expect_free(&world, temporary);
    (void)expect_malloc(&world, 90 * VR_MIB, 0);
    EXPECT_CURRENT(&world, reserved_bytes, 90 * VR_MIB);
    expect_end(&world);
}

// --- plans of a library -------------------------------------------------------------------------------------------------------------

static enum vram_status build(uint32_t device, const void *key, size_t key_bytes, uint64_t *plan, uint64_t *work_bytes, void *user) {
    (void)key, (void)key_bytes, (void)user;
    *plan = device;
    *work_bytes = 0;
    return VRAM_OK;
}

static void destroy(uint32_t device, uint64_t plan, void *user) { (void)device, (void)plan, (void)user; }

static uint64_t plans_on(struct vram_plan_cache *cache, uint32_t device) {
    struct vram_plan_cache_stats stats;
    EXPECT_OK(vram_get_plan_cache_stats(cache, device, &stats));
    return (uint64_t)stats.size;
}

static void each_device_has_its_own_plans(void **state) {
    (void)state;
    struct vr_world world;
    const struct vr_world_options options = {.sim = {.device_count = 2}};
    const struct vram_plan_functions functions = {build, destroy, NULL};
    struct vram_plan_cache *cache = NULL;
    EXPECT_OK(vr_world_open(&world, &options));
    EXPECT_OK(vram_plan_cache_create(world.allocator, &functions, &cache));
    EXPECT_OK(vram_plan_cache_set_max(cache, 1, 10));
    for (uint32_t device = 0; device < 2; device++) {
        for (uint32_t key = 0; key < 20; key++) {
            struct vram_plan plan;
            EXPECT_OK(vram_plan_acquire(cache, device, 0, &key, sizeof key, &plan));
            assert_int_equal(plan.handle, device);
            EXPECT_OK(vram_plan_release(cache, &plan));
        }
    }
    assert_int_equal(plans_on(cache, 0), 20);
    assert_int_equal(plans_on(cache, 1), 10);
    EXPECT_OK(vram_plan_cache_clear(cache, 0));
    assert_int_equal(plans_on(cache, 0), 0);
    assert_int_equal(plans_on(cache, 1), 10);
    vram_plan_cache_destroy(cache);
    expect_end(&world);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_steady_state_asks_the_driver_for_nothing),
        cmocka_unit_test(cached_memory_is_used_memory_to_others),
        cmocka_unit_test(the_smallest_block_that_fits_is_taken),
        cmocka_unit_test(the_environment_turns_caching_off),
        cmocka_unit_test(memory_comes_back_before_its_work_is_done),
        cmocka_unit_test(a_block_returns_to_the_stream_it_came_from),
        cmocka_unit_test(a_retry_waits_for_other_streams),
        cmocka_unit_test(a_small_block_holds_a_segment_back),
        cmocka_unit_test(every_stream_that_used_it_must_pass),
        cmocka_unit_test(each_device_has_its_own_plans),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
