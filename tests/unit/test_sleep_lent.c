// Tests blocks that a pool lent to the default pools: the lender can only be suspended and woken together with them.
#include "support/expect.h"

#include "driver/driver.h"
#include "driver/fault/fault.h"
#include "driver/abi.h"
#include "vram/sim.h"
#include "vram/sleep.h"

// The thread sanitizer's shadow memory is at the device addresses.
#if defined(__SANITIZE_THREAD__)
enum { THREAD_SANITIZER = 1 };
#else
enum { THREAD_SANITIZER = 0 };
#endif

#define LENT (50 * VR_MIB)

struct scene {
    struct vr_world world;
    struct vram_pool *pool;
    uint64_t own, lent; // blocks of the pool's client and of the default pools' client
};

static const struct {
    const char *conf;
    bool use_on_oom;
} ways[] = {
    {"", true},
    {"sleepable:True", true},
    {"share_live_pools:True,sleepable:True", false},
    {"share_live_pools:True", false},
    {"max_split_size_mb:20,sleepable:True", true},
};

static void write_bytes(uint64_t address, uint64_t size_bytes, int byte) { memset((void *)(uintptr_t)address, byte, size_bytes); }
static bool holds(uint64_t address, uint64_t size_bytes, unsigned char byte) {
    const unsigned char *bytes = (const unsigned char *)(uintptr_t)address;
    return bytes[0] == byte && bytes[size_bytes / 2] == byte && bytes[size_bytes - 1] == byte;
}

static void expect_sound(struct scene *scene) {
    struct vram_error error = {0};
    if (vram_check(scene->world.allocator, &error) != VRAM_OK) fail_msg("%s", error.message);
    assert_int_equal(vram_sim_memory_used(scene->world.sim, 0), (uint64_t)expect_stats(&scene->world).reserved_bytes[0].current);
}

// Opens a device whose memory is exhausted except for a pool's free memory, which a request of the default pools needs. Returns the pool of
// the request's block.
static struct vram_pool_id open_scene(struct scene *scene, const char *conf, bool use_on_oom) {
    const struct vr_world_options options = {
        .sim = {.memory_bytes = 64 * VR_MIB, .backed = true}, .conf = conf, .without_record = true, .faults = true};
    const struct vram_pool_options pool = {.use_on_oom = use_on_oom, .tag = "weights"};
    EXPECT_OK(vr_world_open(&scene->world, &options));
    EXPECT_OK(vram_pool_create(scene->world.allocator, 0, &pool, &scene->pool));
    uint64_t large = 0;
    EXPECT_OK(vram_pool_malloc(scene->pool, 2048, 0, &scene->own));
    EXPECT_OK(vram_pool_malloc(scene->pool, LENT, 0, &large));
    expect_free(&scene->world, large);
    scene->lent = expect_malloc(&scene->world, LENT, 0);
    struct vram_block_info info;
    EXPECT_OK(vram_get_block_info(scene->world.allocator, scene->lent, &info));
    write_bytes(scene->lent, LENT, 0x5a);
    write_bytes(scene->own, 2048, 0x33);
    return info.pool;
}

static void close_scene(struct scene *scene) {
    expect_free(&scene->world, scene->own);
    vram_pool_release(scene->pool);
    EXPECT_OK(vram_empty_cache(scene->world.allocator));
    expect_end(&scene->world);
}

static void each_way(void (*play)(struct scene *scene)) {
    if (THREAD_SANITIZER) skip();
    for (size_t i = 0; i < VR_COUNT_OF(ways); i++) {
        struct scene scene = {0};
        const struct vram_pool_id pool = open_scene(&scene, ways[i].conf, ways[i].use_on_oom);
        if (pool.second != vram_get_pool_id(scene.pool).second) fail_msg("\"%s\": nothing was lent", ways[i].conf);
        play(&scene);
        close_scene(&scene);
    }
}

// The block's owner does not know that it is in a pool.
static void refuse_and_free(struct scene *scene) {
    for (int level = VRAM_SLEEP_KEEP; level <= VRAM_SLEEP_ZERO; level++) {
        const struct vram_sleep_choice by_pool = {.pool = scene->pool, .level = (enum vram_sleep_level)level};
        const struct vram_sleep_choice by_tag = {.tag = "weights", .level = (enum vram_sleep_level)level};
        struct vram_sleep_result result = {.pools = 9};
        struct vram_error error = {0};
        EXPECT_STATUS(UNSUPPORTED, vram_sleep(scene->world.allocator, 0, &by_pool, 1, &result, &error));
        assert_non_null(strstr(error.message, "default pools, which stay awake"));
        assert_int_equal(result.pools, 0);
        EXPECT_STATUS(UNSUPPORTED, vram_sleep(scene->world.allocator, 0, &by_tag, 1, NULL, NULL));
        expect_sound(scene);
    }
    assert_true(holds(scene->lent, LENT, 0x5a) && holds(scene->own, 2048, 0x33));
    // The pool can be suspended once the block is freed, although its own client then has the same addresses.
    expect_free(&scene->world, scene->lent);
    uint64_t again = 0;
    EXPECT_OK(vram_pool_malloc(scene->pool, LENT, 0, &again));
    const struct vram_sleep_choice choice = {.pool = scene->pool};
    EXPECT_OK(vram_sleep(scene->world.allocator, 0, &choice, 1, NULL, NULL));
    expect_sound(scene);
    EXPECT_OK(vram_wake(scene->world.allocator, 0, &choice, 1, NULL, NULL));
    assert_true(holds(scene->own, 2048, 0x33));
    expect_free(&scene->world, again);
}

static void a_lender_stays_awake(void **state) {
    (void)state;
    each_way(refuse_and_free);
}

// A pool's free pages change owners: the block belongs to the default pools, and the pool can be suspended.
static void pages_are_not_lent(void **state) {
    (void)state;
    static const struct {
        const char *conf;
        bool use_on_oom;
    } paged[] = {{"paged:True,share_live_pools:True", false}, {"paged:True,share_live_pools:True,sleepable:True", true}};
    if (THREAD_SANITIZER) skip();
    for (size_t i = 0; i < VR_COUNT_OF(paged); i++) {
        struct scene scene = {0};
        const struct vram_pool_id pool = open_scene(&scene, paged[i].conf, paged[i].use_on_oom);
        assert_int_equal(pool.second, 0);
        const struct vram_sleep_choice choice = {.pool = scene.pool};
        EXPECT_OK(vram_sleep(scene.world.allocator, 0, &choice, 1, NULL, NULL));
        expect_sound(&scene);
        assert_true(holds(scene.lent, LENT, 0x5a));
        EXPECT_OK(vram_wake(scene.world.allocator, 0, &choice, 1, NULL, NULL));
        assert_true(holds(scene.lent, LENT, 0x5a) && holds(scene.own, 2048, 0x33));
        expect_free(&scene.world, scene.lent);
        close_scene(&scene);
    }
}

static void sleep_and_wake_default(struct scene *scene) {
    struct vram_allocator *allocator = scene->world.allocator;
    struct vram_sleep_result result;
    size_t count = 0;
    EXPECT_OK(vram_sleep(allocator, 0, NULL, 0, &result, NULL));
    assert_int_equal(result.pools, 2);
    assert_int_equal(vram_sim_memory_used(scene->world.sim, 0), 0);
    expect_sound(scene);
    const struct vram_sleep_choice defaults = {.default_pools = true};
    EXPECT_OK(vram_wake(allocator, 0, &defaults, 1, &result, NULL));
    assert_int_equal(result.pools, 2); // including the lender
    EXPECT_OK(vram_sleepers(allocator, 0, NULL, 0, &count));
    assert_int_equal(count, 0);
    assert_true(holds(scene->lent, LENT, 0x5a) && holds(scene->own, 2048, 0x33));
    expect_sound(scene);
    expect_free(&scene->world, scene->lent);
    // If two pools have lent nothing, only the named one wakes.
    EXPECT_OK(vram_sleep(allocator, 0, NULL, 0, NULL, NULL));
    EXPECT_OK(vram_wake(allocator, 0, &defaults, 1, &result, NULL));
    assert_int_equal(result.pools, 1);
    EXPECT_OK(vram_wake(allocator, 0, NULL, 0, &result, NULL));
    assert_int_equal(result.pools, 1);
}

static void both_sleep_and_the_lender_wakes_too(void **state) {
    (void)state;
    each_way(sleep_and_wake_default);
}

// The block's bytes would match neither call's level.
static void refuse_two_levels(struct scene *scene) {
    struct vram_allocator *allocator = scene->world.allocator;
    struct vram_sleep_choice choices[] = {{.pool = scene->pool, .level = VRAM_SLEEP_DISCARD}, {.default_pools = true}};
    struct vram_error error = {0};
    EXPECT_STATUS(UNSUPPORTED, vram_sleep(allocator, 0, choices, 2, NULL, &error));
    assert_non_null(strstr(error.message, "sleep at another level"));
    EXPECT_OK(vram_sleep(allocator, 0, &choices[1], 1, NULL, NULL));
    EXPECT_STATUS(UNSUPPORTED, vram_sleep(allocator, 0, choices, 1, NULL, NULL));
    choices[0].level = VRAM_SLEEP_KEEP;
    EXPECT_OK(vram_sleep(allocator, 0, choices, 1, NULL, NULL)); // the default pools are already suspended
    assert_int_equal(vram_sim_memory_used(scene->world.sim, 0), 0);
    EXPECT_OK(vram_wake(allocator, 0, choices, 1, NULL, NULL)); // alone, because its addresses are its own
    assert_true(holds(scene->lent, LENT, 0x5a));
    EXPECT_OK(vram_wake(allocator, 0, NULL, 0, NULL, NULL));
    expect_free(&scene->world, scene->lent);
}

static void levels_must_agree(void **state) {
    (void)state;
    each_way(refuse_two_levels);
}

// A request wakes the default pools, and what was lent to them; on failure all stay suspended.
static void wake_by_request(struct scene *scene) {
    struct vram_allocator *allocator = scene->world.allocator;
    const struct vram_sleep_choice choice = {.wakes = true};
    size_t count = 0;
    uint64_t address = 0;
    EXPECT_OK(vram_sleep(allocator, 0, &choice, 1, NULL, NULL));
    EXPECT_OK(vram_driver_fault_set(scene->world.driver, "cuMemSetAccess", 1, VR_CU_UNKNOWN));
    EXPECT_STATUS(DRIVER, vram_malloc(allocator, 0, 512, 0, &address));
    EXPECT_OK(vram_sleepers(allocator, 0, NULL, 0, &count));
    assert_int_equal(count, 2);
    expect_sound(scene);
    address = expect_malloc(&scene->world, 512, 0);
    EXPECT_OK(vram_sleepers(allocator, 0, NULL, 0, &count));
    assert_int_equal(count, 0);
    assert_true(holds(scene->lent, LENT, 0x5a) && holds(scene->own, 2048, 0x33));
    expect_free(&scene->world, address);
    expect_free(&scene->world, scene->lent);
}

static void a_request_wakes_both(void **state) {
    (void)state;
    each_way(wake_by_request);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_lender_stays_awake),
        cmocka_unit_test(pages_are_not_lent),
        cmocka_unit_test(both_sleep_and_the_lender_wakes_too),
        cmocka_unit_test(levels_must_agree),
        cmocka_unit_test(a_request_wakes_both),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
