// Tests memory made before it is requested: grow_ahead and warm, with paged:True.
#define _GNU_SOURCE
#include <sys/wait.h>
#include <unistd.h>

#include "core/allocator.h"
#include "core/device.h"
#include "core/source/paged.h"
#include "driver/abi.h"
#include "support/captures.h"
#include "support/random.h"
#include "vram/sim.h"

enum { MIB = 1 << 20 };

static void open_world(struct vr_world *world, const char *conf, uint64_t memory_bytes) {
    const struct vr_world_options options = {.sim = {.memory_bytes = memory_bytes}, .conf = conf, .without_record = true};
    EXPECT_OK(vr_world_open(world, &options));
}

static uint64_t creations(const struct vr_world *world) { return vram_sim_calls(world->sim, "cuMemCreate"); }
static uint64_t mappings(const struct vr_world *world) { return vram_sim_calls(world->sim, "cuMemSetAccess"); }

static int64_t reserved(struct vr_world *world) { return expect_stats(world).reserved_bytes[VRAM_STAT_ALL].current; }

// Waits until the thread is idle: it makes nothing for 300 ms, long enough to get a processor on a busy machine.
static void let_it_work(struct vr_world *world) {
    int64_t before = -1;
    for (int still = 0; still < 30;) {
        const int64_t now = reserved(world);
        still = now == before ? still + 1 : 0;
        before = now;
        (void)usleep(10000);
    }
}

static void expect_sound(struct vr_world *world) {
    struct vram_error error = {0};
    if (vram_check(world->allocator, &error) != VRAM_OK) fail_msg("%s", error.message);
}

// --- growth ahead -----------------------------------------------------------------------------------------------------------------------

static void what_was_made_ahead_costs_no_call(void **state) {
    (void)state;
    struct vr_world world;
    open_world(&world, "paged:True,grow_ahead:True", 0);
    const uint64_t first = expect_malloc(&world, 2048 * (uint64_t)MIB, 0);
    let_it_work(&world);
    assert_true(reserved(&world) > 2048 * (int64_t)MIB && reserved(&world) < 2300 * (int64_t)MIB);
    expect_sound(&world);
    const uint64_t created = creations(&world), mapped = mappings(&world);
    const uint64_t second = expect_malloc(&world, 5 * MIB, 0), third = expect_malloc(&world, 5 * MIB, 0);
    assert_int_equal(second, first + 2048 * (uint64_t)MIB); // the address it would have had anyway
    assert_int_equal(third, second + 5 * MIB);
    let_it_work(&world);
    assert_int_equal(creations(&world), created); // enough is left
    assert_int_equal(mappings(&world), mapped);
    expect_free(&world, first);
    expect_free(&world, second);
    expect_free(&world, third);
    EXPECT_OK(vram_empty_cache(world.allocator));
    let_it_work(&world);
    assert_int_equal(reserved(&world), 0);
    assert_int_equal(vram_sim_memory_used(world.sim, 0), 0);
    expect_end(&world);
}

// The small pool needs one unit; memory made ahead may have several, and is already counted.
static void the_small_pool_takes_a_large_page(void **state) {
    (void)state;
    struct vr_world world;
    open_world(&world, "paged:True,grow_ahead:True", 0);
    const uint64_t large = expect_malloc(&world, 2048 * (uint64_t)MIB, 0);
    let_it_work(&world);
    const int64_t before = reserved(&world);
    assert_true(before > 2048 * (int64_t)MIB);
    const uint64_t small = expect_malloc(&world, 1000, 0);
    assert_int_equal(reserved(&world), before);
    expect_sound(&world);
    expect_free(&world, small);
    expect_free(&world, large);
    expect_end(&world);
}

// If memory is short, no pages are made ahead, and those already made serve any request.
static void it_takes_from_nobody(void **state) {
    (void)state;
    struct vr_world world;
    open_world(&world, "paged:True,grow_ahead:True", 1200 * (uint64_t)MIB);
    const uint64_t a = world.stream[0][1], b = world.stream[0][2];
    const uint64_t first = expect_malloc(&world, 800 * (uint64_t)MIB, a);
    let_it_work(&world);
    assert_true(reserved(&world) > 800 * (int64_t)MIB);
    const uint64_t second = expect_malloc(&world, 400 * (uint64_t)MIB, b);
    let_it_work(&world);
    assert_int_equal(reserved(&world), 1200 * (int64_t)MIB);
    expect_sound(&world);
    expect_free(&world, second);
    EXPECT_OK(vram_set_memory_limit(world.allocator, 0, 1000 * (uint64_t)MIB));
    EXPECT_OK(vram_empty_cache(world.allocator));
    const uint64_t third = expect_malloc(&world, 200 * (uint64_t)MIB, b);
    assert_int_equal(reserved(&world), 1000 * (int64_t)MIB);
    expect_free(&world, first);
    expect_free(&world, third);
    expect_end(&world);
}

// No pages are allocated ahead during a capture of any mode, and no capture fails because of pages allocated before it.
static void captures_go_on(void **state) {
    (void)state;
    struct vr_world world;
    open_world(&world, "paged:True,grow_ahead:True", 0);
    struct vram_pool *pool = expect_graph_pool(&world);
    uint64_t live[60];
    for (int round = 0; round < 60; round++) {
        live[round] = expect_malloc(&world, 50 * MIB, 0); // the thread begins
        begin(pool, world.stream[0][1], (enum vram_capture_mode)(round % 3));
        const uint64_t inside = expect_malloc(&world, 30 * MIB, world.stream[0][1]);
        kernel(&world, world.stream[0][1]);
        expect_free(&world, inside);
        end(&world, pool, world.stream[0][1]);
    }
    for (int round = 0; round < 60; round++) expect_free(&world, live[round]);
    vram_pool_release(pool);
    expect_end(&world);
}

// The child of a fork has no such thread and does not wait for one; its parent's continues.
static void a_child_ends(void **state) {
    (void)state;
    struct vr_world world;
    open_world(&world, "paged:True,grow_ahead:True", 0);
    uint64_t live[20];
    for (int round = 0; round < 20; round++) {
        live[round] = expect_malloc(&world, 60 * MIB, 0);
        const pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0) {
            (void)alarm(20);
            vr_world_destroy_allocator(&world);
            _exit(0);
        }
        int status = 0;
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_int_equal(status, 0);
    }
    let_it_work(&world);
    assert_true(reserved(&world) > 1200 * (int64_t)MIB);
    for (int round = 0; round < 20; round++) expect_free(&world, live[round]);
    expect_end(&world);
}

// A replay or benchmark makes pages by hand, without starting the thread.
static void it_can_be_done_by_hand(void **state) {
    (void)state;
    struct vr_world world;
    open_world(&world, "paged:True,grow_ahead:True", 0);
    vr_allocator_without_threads(world.allocator);
    const uint64_t first = expect_malloc(&world, 512 * MIB, 0);
    let_it_work(&world);
    assert_int_equal(reserved(&world), 512 * MIB);
    while (vr_paged_ahead_step(vr_device_if_used(world.allocator, 0))) continue;
    assert_true(reserved(&world) > 512 * MIB);
    expect_sound(&world);
    expect_free(&world, first);
    expect_end(&world);
}

// --- warm memory ------------------------------------------------------------------------------------------------------------------------

static void warm_memory_is_made_at_once(void **state) {
    (void)state;
    static const char *const confs[] = {"paged:True,warm:1G", "paged:True,warm:1G,grow_ahead:True", "paged:True,warm:0.0125"};
    for (size_t i = 0; i < VR_COUNT_OF(confs); i++) {
        struct vr_world world;
        open_world(&world, confs[i], 0);
        uint64_t live[100];
        live[0] = expect_malloc(&world, 10 * MIB, 0);
        let_it_work(&world);
        assert_true(reserved(&world) >= 1020 * MIB && reserved(&world) <= 1100 * MIB);
        const uint64_t created = creations(&world);
        for (int k = 1; k < 100; k++) live[k] = expect_malloc(&world, 10 * MIB, 0);
        if (i != 1) assert_int_equal(creations(&world), created);
        expect_sound(&world);
        for (int k = 0; k < 100; k++) expect_free(&world, live[k]);
        EXPECT_OK(vram_empty_cache(world.allocator));
        expect_end(&world);
    }
}

// If warm exceeds the limit, it makes as much as fits.
static void warm_stops_at_the_limit(void **state) {
    (void)state;
    struct vr_world world;
    open_world(&world, "paged:True,warm:4G", 300 * MIB);
    EXPECT_OK(vram_set_memory_limit(world.allocator, 0, 200 * MIB));
    const uint64_t first = expect_malloc(&world, 100 * MIB, 0), second = expect_malloc(&world, 100 * MIB, world.stream[0][1]);
    assert_int_equal(reserved(&world), 200 * MIB);
    expect_sound(&world);
    expect_free(&world, first);
    expect_free(&world, second);
    expect_end(&world);
}

// Pages made by a batch before the driver refused the rest are released, with any compiler: the driver's memory equals the statistics, and
// all of it is released.
static void a_refused_batch_goes_back(void **state) {
    (void)state;
    static const char *const calls[] = {"cuMemCreate", "cuMemMap", "cuMemSetAccess"};
    for (uint64_t i = 0; i < 3 * 12; i++) {
        struct vr_world world;
        const struct vr_world_options options = {
            .sim = {.memory_bytes = 1024 * (uint64_t)MIB}, .conf = "paged:True,warm:64MiB", .without_record = true, .faults = true};
        EXPECT_OK(vr_world_open(&world, &options));
        EXPECT_OK(vram_driver_fault_set(world.driver, calls[i % 3], 1 + i / 3, VR_CU_OUT_OF_MEMORY));
        uint64_t address = 0;
        const enum vram_status status = vram_malloc(world.allocator, 0, 3 * MIB, 0, &address);
        assert_int_equal(vram_sim_memory_used(world.sim, 0), reserved(&world));
        expect_sound(&world);
        EXPECT_OK(vram_driver_fault_set(world.driver, NULL, 0, 0));
        if (status == VRAM_OK) expect_free(&world, address);
        expect_free(&world, expect_malloc(&world, 10 * MIB, 0));
        EXPECT_OK(vram_empty_cache(world.allocator));
        assert_int_equal(vram_sim_memory_used(world.sim, 0), 0);
        expect_end(&world);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_made_ahead_costs_no_call),
        cmocka_unit_test(the_small_pool_takes_a_large_page),
        cmocka_unit_test(it_takes_from_nobody),
        cmocka_unit_test(captures_go_on),
        cmocka_unit_test(a_child_ends),
        cmocka_unit_test(it_can_be_done_by_hand),
        cmocka_unit_test(warm_memory_is_made_at_once),
        cmocka_unit_test(warm_stops_at_the_limit),
        cmocka_unit_test(a_refused_batch_goes_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
