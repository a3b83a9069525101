// Tests the plan cache: order, limits, failures, plans in use, threads.
#include <stdatomic.h>

#include "library/plan_cache.h"
#include "os/os.h"
#include "support/expect.h"
#include "support/random.h"
#include "vram/workspace.h"

// A library that makes plans: a plan is its key plus 100, and needs as many KiB as the key says.
struct shop {
    _Atomic int built;
    _Atomic int destroyed;
    enum vram_status refusal;
    uint64_t last_destroyed;
};

static enum vram_status build(uint32_t device, const void *key, size_t key_bytes, uint64_t *plan, uint64_t *work_bytes, void *user) {
    struct shop *shop = user;
    (void)device;
    if (key_bytes != sizeof(uint32_t)) return VRAM_INVALID_ARGUMENT;
    if (shop->refusal != VRAM_OK) return shop->refusal;
    uint32_t number = 0;
    memcpy(&number, key, sizeof number);
    *plan = 100 + (uint64_t)number;
    *work_bytes = number * VR_KIB;
    atomic_fetch_add(&shop->built, 1);
    return VRAM_OK;
}

static void destroy(uint32_t device, uint64_t plan, void *user) {
    struct shop *shop = user;
    (void)device;
    atomic_fetch_add(&shop->destroyed, 1);
    shop->last_destroyed = plan;
}

static struct vram_plan_cache *expect_cache(struct vr_world *world, struct shop *shop) {
    struct vram_plan_cache *cache = NULL;
    const struct vram_plan_functions functions = {build, destroy, shop};
    EXPECT_OK(vram_plan_cache_create(world->allocator, &functions, &cache));
    return cache;
}

static struct vram_plan expect_plan(struct vram_plan_cache *cache, uint32_t key) {
    struct vram_plan plan;
    EXPECT_OK(vram_plan_acquire(cache, 0, 0, &key, sizeof key, &plan));
    assert_int_equal(plan.handle, 100 + (uint64_t)key);
    assert_int_equal(plan.work_bytes, key * VR_KIB);
    return plan;
}

static void use(struct vram_plan_cache *cache, uint32_t key) {
    const struct vram_plan plan = expect_plan(cache, key);
    EXPECT_OK(vram_plan_release(cache, &plan));
}

static struct vram_plan_cache_stats stats_of(struct vram_plan_cache *cache) {
    struct vram_plan_cache_stats stats;
    EXPECT_OK(vram_get_plan_cache_stats(cache, 0, &stats));
    return stats;
}

static void the_least_recently_used_goes_first(void **state) {
    (void)state;
    struct vr_world world;
    struct shop shop = {.refusal = VRAM_OK};
    expect_world(&world, "", 0);
    struct vram_plan_cache *cache = expect_cache(&world, &shop);
    assert_int_equal(stats_of(cache).max_size, 4096);
    EXPECT_OK(vram_plan_cache_set_max(cache, 0, 3));
    use(cache, 1), use(cache, 2), use(cache, 3), use(cache, 1);
    assert_int_equal(shop.built, 3);
    use(cache, 4);
    assert_int_equal(shop.last_destroyed, 102);
    use(cache, 1);
    assert_int_equal(shop.built, 4);
    use(cache, 2);
    assert_int_equal(shop.last_destroyed, 103);
    const struct vram_plan_cache_stats stats = stats_of(cache);
    assert_int_equal(stats.size, 3);
    assert_int_equal(stats.hits, 2);
    assert_int_equal(stats.misses, 5);
    assert_int_equal(stats.evictions, 2);
    EXPECT_OK(vram_plan_cache_set_max(cache, 0, 1));
    assert_int_equal(stats_of(cache).size, 1);
    assert_int_equal(shop.destroyed, 4);
    use(cache, 2);
    assert_int_equal(stats_of(cache).hits, 3);
    EXPECT_OK(vram_plan_cache_clear(cache, 0));
    assert_int_equal(stats_of(cache).size, 0);
    assert_int_equal(shop.built, shop.destroyed);
    use(cache, 5);
    vram_plan_cache_destroy(cache);
    vram_plan_cache_destroy(NULL);
    assert_int_equal(shop.built, shop.destroyed);
    EXPECT_CURRENT(&world, allocation, 0);
    expect_end(&world);
}

static void a_cache_of_none_makes_plans_for_once(void **state) {
    (void)state;
    struct vr_world world;
    struct shop shop = {.refusal = VRAM_OK};
    expect_world(&world, "", 0);
    struct vram_plan_cache *cache = expect_cache(&world, &shop);
    EXPECT_OK(vram_plan_cache_set_max(cache, 0, 0));
    use(cache, 1), use(cache, 1);
    assert_int_equal(shop.built, 2);
    assert_int_equal(shop.destroyed, 2);
    assert_int_equal(stats_of(cache).size, 0);
    vram_plan_cache_destroy(cache);
    expect_end(&world);
}

static void what_makes_no_sense_is_refused(void **state) {
    (void)state;
    struct vr_world world;
    struct shop shop = {.refusal = VRAM_OK};
    expect_world(&world, "", 0);
    struct vram_plan_cache *cache = NULL;
    struct vram_plan plan = {.handle = 7};
    struct vram_plan_cache_stats stats;
    EXPECT_STATUS(INVALID_ARGUMENT, vram_plan_cache_create(world.allocator, &(struct vram_plan_functions){.build = build}, &cache));
    cache = expect_cache(&world, &shop);
    EXPECT_STATUS(INVALID_ARGUMENT, vram_plan_cache_set_max(cache, 0, -1));
    EXPECT_STATUS(INVALID_ARGUMENT, vram_plan_cache_set_max(cache, VRAM_MAX_DEVICES, 1));
    EXPECT_STATUS(INVALID_ARGUMENT, vram_plan_cache_clear(cache, VRAM_MAX_DEVICES));
    EXPECT_STATUS(INVALID_ARGUMENT, vram_get_plan_cache_stats(cache, VRAM_MAX_DEVICES, &stats));
    EXPECT_STATUS(INVALID_ARGUMENT, vram_plan_acquire(cache, 0, 0, "", 0, &plan));
    EXPECT_STATUS(INVALID_ARGUMENT, vram_plan_acquire(cache, VRAM_MAX_DEVICES, 0, "abcd", 4, &plan));
    EXPECT_STATUS(INVALID_ARGUMENT, vram_plan_acquire(cache, 0, 0, "abc", 3, &plan)); // from build()
    EXPECT_OK(vram_plan_cache_set_max(cache, 0, INT64_MAX));
    assert_int_equal(plan.handle, 7);
    assert_int_equal(stats_of(cache).size, 0);
    vram_plan_cache_destroy(cache);
    expect_end(&world);
}

static void a_failure_leaves_the_cache_without_the_plan(void **state) {
    (void)state;
    struct vr_world world;
    struct shop shop = {.refusal = VRAM_DRIVER};
    expect_world(&world, "", 4 * VR_MIB);
    struct vram_plan_cache *cache = expect_cache(&world, &shop);
    struct vram_plan plan;
    const uint32_t small = 1, large = 8192;
    EXPECT_STATUS(DRIVER, vram_plan_acquire(cache, 0, 0, &small, sizeof small, &plan));
    assert_int_equal(stats_of(cache).size, 0);
    shop.refusal = VRAM_OK;
    use(cache, small);
    // The plan was built; only its work area is missing.
    EXPECT_STATUS(OUT_OF_MEMORY, vram_plan_acquire(cache, 0, 0, &large, sizeof large, &plan));
    assert_int_equal(stats_of(cache).size, 2);
    EXPECT_OK(vram_plan_cache_set_max(cache, 0, 0));
    EXPECT_STATUS(OUT_OF_MEMORY, vram_plan_acquire(cache, 0, 0, &large, sizeof large, &plan));
    assert_int_equal(shop.built, shop.destroyed);
    vram_plan_cache_destroy(cache);
    expect_end(&world);
}

static void a_plan_in_use_outlives_its_place(void **state) {
    (void)state;
    struct vr_world world;
    struct shop shop = {.refusal = VRAM_OK};
    expect_world(&world, "", 0);
    struct vram_plan_cache *cache = expect_cache(&world, &shop);
    EXPECT_OK(vram_plan_cache_set_max(cache, 0, 1));
    const struct vram_plan one = expect_plan(cache, 1);
    assert_int_not_equal(one.work_address, 0);
    use(cache, 2);
    assert_int_equal(shop.destroyed, 0);
    const struct vram_plan again = expect_plan(cache, 1); // the first is no longer cached, so this is another one
    assert_int_not_equal(again.work_address, one.work_address);
    EXPECT_OK(vram_plan_release(cache, &one));
    assert_int_equal(shop.last_destroyed, 101);
    EXPECT_OK(vram_plan_cache_clear(cache, 0));
    assert_int_equal(shop.destroyed, 2);
    EXPECT_OK(vram_plan_release(cache, &again));
    assert_int_equal(shop.destroyed, 3);
    vram_plan_cache_destroy(cache);
    EXPECT_CURRENT(&world, allocation, 0);
    expect_end(&world);
}

static void many_keys_are_found_again(void **state) {
    (void)state;
    struct vr_world world;
    struct shop shop = {.refusal = VRAM_OK};
    expect_world(&world, "", 0);
    struct vram_plan_cache *cache = expect_cache(&world, &shop);
    for (int round = 0; round < 2; round++) {
        for (uint32_t key = 0; key < 1000; key++) use(cache, key);
    }
    assert_int_equal(shop.built, 1000);
    assert_int_equal(stats_of(cache).hits, 1000);
    vram_plan_cache_destroy(cache);
    assert_int_equal(shop.destroyed, 1000);
    expect_end(&world);
}

// --- threads --------------------------------------------------------------------------------------------------------------------------

enum { THREADS = 4, ROUNDS = 2000, KEYS = 5 };

struct worker {
    struct vram_plan_cache *cache;
    _Atomic int *holders; // number of users of each key's plan
    uint32_t seed;
    uint64_t stream;
    bool alone; // always the only user of its plans
    bool failed;
};

static void work(void *argument) {
    struct worker *worker = argument;
    worker->alone = true;
    for (int i = 0; i < ROUNDS; i++) {
        const uint32_t key = (uint32_t)vr_mix64(worker->seed * ROUNDS + (uint64_t)i) % KEYS;
        struct vram_plan plan;
        if (vram_plan_acquire(worker->cache, 0, worker->stream, &key, sizeof key, &plan) != VRAM_OK) worker->failed = true;
        if (atomic_fetch_add(&worker->holders[key], 1) != 0) worker->alone = false;
        if (i % 64 == 0) vr_os_yield();
        atomic_fetch_sub(&worker->holders[key], 1);
        if (vram_plan_release(worker->cache, &plan) != VRAM_OK) worker->failed = true;
    }
}

static void a_plan_has_one_thread_at_a_time(void **state) {
    (void)state;
    struct vr_world world;
    struct shop shop = {.refusal = VRAM_OK};
    const struct vr_world_options options = {.without_record = true};
    EXPECT_OK(vr_world_open(&world, &options));
    struct vram_plan_cache *cache = expect_cache(&world, &shop);
    _Atomic int holders[KEYS] = {0};
    struct worker workers[THREADS];
    struct vr_thread threads[THREADS];
    for (uint32_t i = 0; i < THREADS; i++) {
        workers[i] = (struct worker){.cache = cache, .holders = holders, .seed = i, .stream = world.stream[0][i]};
        EXPECT_OK(vr_thread_start(&threads[i], work, &workers[i]));
    }
    for (uint32_t i = 0; i < THREADS; i++) {
        vr_thread_join(&threads[i]);
        assert_true(workers[i].alone);
        assert_false(workers[i].failed);
    }
    assert_int_equal(shop.built, KEYS);
    assert_int_equal(stats_of(cache).hits, THREADS * ROUNDS - KEYS);
    vram_plan_cache_destroy(cache);
    assert_int_equal(shop.destroyed, KEYS);
    EXPECT_CURRENT(&world, allocation, 0);
    expect_end(&world);
}

// Keys come and go, the limit changes, plans stay in use for a while: after each step the cache matches its statistics.
static void any_order_keeps_the_cache_whole(void **state) {
    (void)state;
    enum { ANY_KEYS = 40, IN_USE = 6, STEPS = 3000 };
    struct vr_world world;
    struct shop shop = {.refusal = VRAM_OK};
    expect_world(&world, "", 0);
    struct vram_plan_cache *cache = expect_cache(&world, &shop);
    struct vram_plan used[IN_USE];
    uint32_t used_keys[IN_USE];
    size_t count = 0;
    uint64_t seed = 7;
    for (int step = 0; step < STEPS; step++) {
        const uint32_t key = 1 + (uint32_t)vr_random_below(&seed, ANY_KEYS);
        bool busy = false;
        for (size_t i = 0; i < count; i++) busy = busy || used_keys[i] == key;
        if (step % 50 == 0) EXPECT_OK(vram_plan_cache_set_max(cache, 0, (int64_t)vr_random_below(&seed, 12)));
        if (step % 400 == 399) EXPECT_OK(vram_plan_cache_clear(cache, 0));
        if (!busy && count < IN_USE) {
            used[count] = expect_plan(cache, key);
            used_keys[count++] = key;
        } else if (count != 0) {
            const size_t which = (size_t)vr_random_below(&seed, count);
            EXPECT_OK(vram_plan_release(cache, &used[which]));
            used[which] = used[--count];
            used_keys[which] = used_keys[count];
        }
        assert_true(vr_plan_cache_check(cache));
    }
    while (count != 0) EXPECT_OK(vram_plan_release(cache, &used[--count]));
    assert_true(vr_plan_cache_check(cache));
    vram_plan_cache_destroy(cache);
    assert_int_equal(shop.built, shop.destroyed);
    expect_end(&world);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_order_keeps_the_cache_whole),
        cmocka_unit_test(the_least_recently_used_goes_first),
        cmocka_unit_test(a_cache_of_none_makes_plans_for_once),
        cmocka_unit_test(what_makes_no_sense_is_refused),
        cmocka_unit_test(a_failure_leaves_the_cache_without_the_plan),
        cmocka_unit_test(a_plan_in_use_outlives_its_place),
        cmocka_unit_test(many_keys_are_found_again),
        cmocka_unit_test(a_plan_has_one_thread_at_a_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
