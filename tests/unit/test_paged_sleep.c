// Tests suspending paged memory: frees meanwhile, addresses that wait for a pool, pages mapped only elsewhere.
#include "support/captures.h"

#include "driver/abi.h"
#include "driver/fault/fault.h"
#include "vram/sim.h"
#include "vram/sleep.h"

// The thread sanitizer's shadow memory is at the device addresses.
#if defined(__SANITIZE_THREAD__)
enum { THREAD_SANITIZER = 1 };
#else
enum { THREAD_SANITIZER = 0 };
#endif

enum { MIB = 1 << 20 };

static void open_world(struct vr_world *world) {
    const struct vr_world_options options = {.conf = "paged:True"};
    EXPECT_OK(vr_world_open(world, &options));
}

static struct vram_pool *expect_pool(struct vr_world *world) {
    struct vram_pool *pool = NULL;
    EXPECT_OK(vram_pool_create(world->allocator, 0, NULL, &pool));
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
    assert_int_equal(expect_stats(world).reserved_bytes[VRAM_STAT_ALL].current, vram_sim_memory_used(world->sim, 0));
}

static void fall_asleep(struct vr_world *world, bool all) {
    const struct vram_sleep_choice choice = {.default_pools = !all, .level = VRAM_SLEEP_DISCARD};
    EXPECT_OK(vram_sleep(world->allocator, 0, &choice, 1, NULL, NULL));
}

static void wake_up(struct vr_world *world) { EXPECT_OK(vram_wake(world->allocator, 0, NULL, 0, NULL, NULL)); }

// Freed memory, large or small, needs no memory on waking: a device filled meanwhile has room for the rest.
static void pages_of_freed_blocks_do_not_come_back(void **state) {
    (void)state;
    struct vr_world world;
    open_world(&world);
    const uint64_t large = expect_malloc(&world, 40 * MIB, 0), stays = expect_malloc(&world, 20 * MIB, 0);
    uint64_t small[9];
    for (size_t i = 0; i < VR_COUNT_OF(small); i++) small[i] = expect_malloc(&world, MIB / 2, 0);
    EXPECT_CURRENT(&world, reserved_bytes, 66 * MIB);
    fall_asleep(&world, false);
    assert_int_equal(vram_sim_memory_used(world.sim, 0), 0);
    expect_free(&world, large);
    for (size_t i = 0; i + 1 < VR_COUNT_OF(small); i++) expect_free(&world, small[i]);
    wake_up(&world);
    assert_int_equal(vram_sim_memory_used(world.sim, 0), 22 * MIB);
    expect_sound(&world);
    const uint64_t again = expect_malloc(&world, MIB / 2, 0);
    EXPECT_CURRENT(&world, reserved_bytes, 22 * MIB);
    expect_free(&world, again);
    expect_free(&world, stays);
    expect_free(&world, small[VR_COUNT_OF(small) - 1]);
    expect_end(&world);
}

// A pool that ended left its addresses to the next one. They are not part of the default pools, although they were suspended with them.
static void addresses_of_an_ended_pool_are_awake_for_the_next(void **state) {
    (void)state;
    struct vr_world world;
    open_world(&world);
    const uint64_t stays = expect_malloc(&world, 6 * MIB, 0);
    struct vram_pool *first = expect_pool(&world);
    expect_free(&world, expect_pool_malloc(first, 1000, 0));
    expect_free(&world, expect_pool_malloc(first, 6 * MIB, 0));
    vram_pool_release(first);
    fall_asleep(&world, false);
    struct vram_pool *second = expect_pool(&world);
    const uint64_t small = expect_pool_malloc(second, 1000, 0), large = expect_pool_malloc(second, 6 * MIB, 0);
    expect_sound(&world);
    wake_up(&world);
    expect_sound(&world);
    expect_free(&world, small);
    expect_free(&world, large);
    expect_free(&world, stays);
    vram_pool_release(second);
    expect_end(&world);
}

// A pool's last blocks are freed while suspended. The default pools, which inherit from an ended pool, are suspended too, so its pages,
// which have no memory, are removed.
static void a_pool_that_nobody_holds_ends_while_all_sleep(void **state) {
    (void)state;
    struct vr_world world;
    open_world(&world);
    const uint64_t stays = expect_malloc(&world, 6 * MIB, 0);
    struct vram_pool *first = expect_pool(&world), *other = expect_pool(&world);
    const uint64_t large = expect_pool_malloc(first, 6 * MIB, 0), small = expect_pool_malloc(first, 1000, 0);
    fall_asleep(&world, true);
    vram_pool_release(first);
    expect_free(&world, large);
    expect_free(&world, small);
    vram_pool_release(other); // examines unreferenced pools
    expect_sound(&world);
    struct vram_pool *next = expect_pool(&world);
    const uint64_t next_large = expect_pool_malloc(next, 6 * MIB, 0), next_small = expect_pool_malloc(next, 1000, 0);
    expect_sound(&world);
    wake_up(&world);
    expect_sound(&world);
    EXPECT_CURRENT(&world, reserved_bytes, 14 * MIB);
    expect_free(&world, next_large);
    expect_free(&world, next_small);
    expect_free(&world, stays);
    vram_pool_release(next);
    expect_end(&world);
}

// The second request takes two pages of the default pools, and the rest of the first one's saves one of them: the pool has a page that only
// the default pools map.
static void pages_that_only_others_show_go_and_come(void **state) {
    (void)state;
    struct vr_world world;
    open_world(&world);
    struct vram_pool *pool = expect_pool(&world);
    const uint64_t a = expect_pool_malloc(pool, 3 * MIB, 0);
    const uint64_t left = expect_malloc(&world, 2 * MIB, 0), right = expect_malloc(&world, 2 * MIB, 0);
    expect_free(&world, left);
    expect_free(&world, right);
    const uint64_t b = expect_pool_malloc(pool, 3 * MIB, 0);
    EXPECT_CURRENT(&world, reserved_bytes, 8 * MIB);
    expect_sound(&world);
    fall_asleep(&world, true);
    assert_int_equal(vram_sim_memory_used(world.sim, 0), 0);
    expect_sound(&world);
    wake_up(&world);
    expect_sound(&world);
    expect_free(&world, a);
    expect_free(&world, b);
    vram_pool_release(pool);
    expect_end(&world);
}

static void expect_written(struct vr_world *world, struct vram_pool *pool, uint64_t size_bytes) {
    const uint64_t address = expect_pool_malloc(pool, size_bytes, 0);
    for (uint64_t at = 0; at < size_bytes; at += MIB) *(volatile uint64_t *)(uintptr_t)(address + at) = at;
    expect_free(world, address);
}

// A pool ends while suspended, and the driver kept some of its pages: they serve others only when all their windows are mapped.
static void pages_that_the_driver_kept_in_part_are_nobodys(void **state) {
    (void)state;
    for (uint64_t kept = 1; kept <= 5 && !THREAD_SANITIZER; kept++) {
        for (uint64_t again = 1; again <= 9; again++) {
            const struct vr_world_options options = {.sim = {.backed = true}, .conf = "paged:True", .faults = true};
            struct vr_world world;
            EXPECT_OK(vr_world_open(&world, &options));
            struct vram_pool *pool = expect_pool(&world);
            const uint64_t left = expect_pool_malloc(pool, 2 * MIB, 0), middle = expect_pool_malloc(pool, 2 * MIB, 0);
            const uint64_t right = expect_pool_malloc(pool, 2 * MIB, 0);
            expect_free(&world, left);
            expect_free(&world, right);
            const uint64_t wide = expect_pool_malloc(pool, 4 * MIB, 0); // uses pages of both, which then have two windows each
            EXPECT_CURRENT(&world, reserved_bytes, 6 * MIB);
            struct vram_sleep_result result;
            const struct vram_sleep_choice choice = {.pool = pool, .level = VRAM_SLEEP_DISCARD};
            EXPECT_OK(vram_driver_fault_set(world.driver, "cuMemUnmap", kept, VR_CU_UNKNOWN));
            EXPECT_OK(vram_sleep(world.allocator, 0, &choice, 1, &result, NULL));
            assert_int_equal(result.held_bytes, 2 * MIB);
            EXPECT_OK(vram_driver_fault_set(world.driver, "cuMemUnmap", again, VR_CU_UNKNOWN));
            expect_free(&world, middle);
            expect_free(&world, wide);
            vram_pool_release(pool);
            EXPECT_OK(vram_driver_fault_set(world.driver, NULL, 0, 0));
            expect_sound(&world);
            struct vram_pool *next = expect_pool(&world); // reuses the ended pool's addresses
            expect_written(&world, next, 4 * MIB);
            expect_written(&world, next, 2 * MIB);
            vram_pool_release(next);
            expect_sound(&world);
            wake_up(&world);
            EXPECT_OK(vram_empty_cache(world.allocator));
            EXPECT_CURRENT(&world, reserved_bytes, 0);
            expect_end(&world);
        }
    }
}

// A pool known to a graph also keeps its free memory, but not the pages in its windows that others have taken.
static void pages_of_others_are_left_alone(void **state) {
    (void)state;
    static const enum vram_sleep_level levels[] = {VRAM_SLEEP_KEEP, VRAM_SLEEP_ZERO};
    for (size_t i = 0; i < VR_COUNT_OF(levels) && !THREAD_SANITIZER; i++) {
        const struct vr_world_options options = {.sim = {.backed = true}, .conf = "paged:True"};
        struct vr_world world;
        EXPECT_OK(vr_world_open(&world, &options));
        const uint64_t stream = world.stream[0][1];
        struct vram_pool *pool = expect_pool(&world);
        const uint64_t first = expect_pool_malloc(pool, 4 * MIB, stream), stays = expect_pool_malloc(pool, 2 * MIB, stream);
        expect_free(&world, first);
        const uint64_t other = expect_malloc(&world, 5 * MIB / 2, stream); // the rest of its pages is mapped where it was
        EXPECT_CURRENT(&world, reserved_bytes, 6 * MIB);                   // the pool's pages
        begin(pool, stream, VRAM_CAPTURE_RELAXED);
        end(&world, pool, stream);
        const struct vram_sleep_choice choice = {.pool = pool, .level = levels[i]}, all = {.level = levels[i]};
        EXPECT_OK(vram_sleep(world.allocator, 0, &all, 1, NULL, NULL)); // the others' pages have no memory when this pool wakes
        wake_up(&world);
        EXPECT_OK(vram_sleep(world.allocator, 0, &choice, 1, NULL, NULL));
        const uint64_t rest = expect_malloc(&world, 5 * MIB / 4, stream);
        *(volatile uint64_t *)(uintptr_t)rest = 2;
        EXPECT_CURRENT(&world, reserved_bytes, 4 * MIB);
        wake_up(&world);
        assert_int_equal(*(volatile uint64_t *)(uintptr_t)rest, 2);
        expect_sound(&world);
        expect_free(&world, other);
        expect_free(&world, rest);
        expect_free(&world, stays);
        vram_pool_release(pool);
        expect_end(&world);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pages_of_freed_blocks_do_not_come_back),
        cmocka_unit_test(addresses_of_an_ended_pool_are_awake_for_the_next),
        cmocka_unit_test(a_pool_that_nobody_holds_ends_while_all_sleep),
        cmocka_unit_test(pages_that_only_others_show_go_and_come),
        cmocka_unit_test(pages_that_the_driver_kept_in_part_are_nobodys),
        cmocka_unit_test(pages_of_others_are_left_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
