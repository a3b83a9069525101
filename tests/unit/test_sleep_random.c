// Compares random requests, frees, suspensions and wakes with a naive model of each live block's address and bytes. After waking every
// address and every kept byte is the same, everything suspended was released, and the statistics equal the driver's memory. Usage:
// test_sleep_random [OPERATIONS [SLEEPS]], for each configuration.
#include "support/expect.h"

#include <stdio.h>
#include <stdlib.h>

#include "driver/driver.h"
#include "support/random.h"
#include "vram/sim.h"
#include "vram/sleep.h"

// The thread sanitizer's shadow memory is at the device addresses.
#if defined(__SANITIZE_THREAD__)
enum { THREAD_SANITIZER = 1 };
#else
enum { THREAD_SANITIZER = 0 };
#endif

enum { MOST_BLOCKS = 200, DOMAINS = 4, WORD_STEP = 512 };
#define MOST_LIVE (48 * VR_MIB)

static uint64_t operations = 12000, sleeps = 60;

struct block {
    uint64_t address, size, seed;
    unsigned domain; // 0: the default pools
    unsigned lender; // for a block of the default pools: the domain whose memory it uses; 0: theirs
};

struct domain {
    struct vram_pool *pool;
    bool asleep, wakes;
    enum vram_sleep_level level;
};

struct run {
    struct vr_world world;
    uint64_t random;
    struct block live[MOST_BLOCKS];
    size_t count;
    uint64_t bytes;
    struct domain domains[DOMAINS];
    bool default_sleeps; // the default pools can be suspended
    bool lends;          // the default pools borrow from others before they use the driver's memory
    uint64_t lent, kept_awake, woken_with_default;
    uint64_t sleeps, wakes, woken_by_requests, refused, copied, given_back, slept;
};

static const char *const tags[DOMAINS] = {NULL, "weights", "kv_cache", "graphs"};

static uint64_t draw(struct run *run, uint64_t limit) { return vr_random_below(&run->random, limit); }
static uint64_t *words_of(const struct block *block) { return (uint64_t *)(uintptr_t)block->address; }

static void fill(const struct block *block) {
    for (uint64_t i = 0; i < block->size / 8; i += WORD_STEP) words_of(block)[i] = block->seed + i;
    words_of(block)[block->size / 8 - 1] = ~block->seed;
}

static void verify(const struct block *block) {
    bool right = words_of(block)[block->size / 8 - 1] == ~block->seed;
    for (uint64_t i = 0; i < block->size / 8 - 1; i += WORD_STEP) right &= words_of(block)[i] == block->seed + i;
    if (!right) fail_msg("block 0x%llx of %llu bytes lost its bytes", (unsigned long long)block->address, (unsigned long long)block->size);
}

// Updates a block whose bytes were not kept. A lent block need not have been suspended.
static void renew(struct run *run, struct block *block) {
    if (run->domains[block->domain].level == VRAM_SLEEP_ZERO && block->lender == 0) {
        for (uint64_t i = 0; i < block->size / 8; i += WORD_STEP)
            if (words_of(block)[i] != 0) fail_msg("block 0x%llx is not zero", (unsigned long long)block->address);
    }
    block->seed = vr_random_next(&run->random);
    fill(block);
}

static bool has_lent(const struct run *run, unsigned domain) {
    for (size_t i = 0; i < run->count; i++)
        if (domain != 0 && run->live[i].lender == domain) return true;
    return false;
}

// Waking the default pools also wakes their lenders.
static void woke(struct run *run, unsigned domain) {
    run->domains[domain].asleep = false;
    for (unsigned i = 1; i < DOMAINS && domain == 0; i++) {
        if (!run->domains[i].asleep || !has_lent(run, i)) continue;
        run->woken_with_default++;
        woke(run, i);
    }
    for (size_t i = 0; i < run->count; i++) {
        struct block *block = &run->live[i];
        if (block->domain != domain) continue;
        if (expect_size(&run->world, block->address) != block->size) fail_msg("a block is not where it was");
        if (run->domains[domain].level == VRAM_SLEEP_KEEP) {
            verify(block);
        } else {
            renew(run, block);
        }
    }
}

static void expect_truth(struct run *run) {
    const struct vram_stats stats = expect_stats(&run->world);
    assert_int_equal(stats.allocated_bytes[VRAM_STAT_ALL].current, (int64_t)run->bytes);
    assert_int_equal((uint64_t)stats.reserved_bytes[VRAM_STAT_ALL].current, vram_sim_memory_used(run->world.sim, 0));
    struct vram_error error = {0};
    if (vram_check(run->world.allocator, &error) != VRAM_OK) fail_msg("%s", error.message);
    size_t count = 0, expected = 0;
    EXPECT_OK(vram_sleepers(run->world.allocator, 0, NULL, 0, &count));
    for (unsigned i = 0; i < DOMAINS; i++) expected += run->domains[i].asleep;
    assert_int_equal(count, expected);
}

static uint64_t draw_size(struct run *run) {
    if (run->lends && draw(run, 2) != 0) return (2 + draw(run, 3)) * VR_MIB; // with pages, exactly these bytes are lent
    switch (draw(run, 12)) {
    case 0: return 1 + draw(run, 6 * VR_MIB);
    case 1: return VR_MIB + 512 * draw(run, 4096);
    case 2: return 1 + draw(run, VR_MIB);
    default: return 1 + draw(run, 64 * VR_KIB);
    }
}

static enum vram_status ask(struct run *run, unsigned domain, uint64_t size, uint64_t stream, uint64_t *address) {
    if (domain == 0 && run->lends) {
        const uint64_t held = (uint64_t)expect_stats(&run->world).reserved_bytes[VRAM_STAT_ALL].current;
        EXPECT_OK(vram_set_memory_limit(run->world.allocator, 0, held == 0 ? 1 : held));
        const enum vram_status status = vram_malloc(run->world.allocator, 0, size, stream, address);
        EXPECT_OK(vram_set_memory_limit(run->world.allocator, 0, UINT64_MAX));
        if (status != VRAM_OUT_OF_MEMORY) return status;
    }
    if (domain == 0) return vram_malloc(run->world.allocator, 0, size, stream, address);
    return vram_pool_malloc(run->domains[domain].pool, size, stream, address);
}

// Returns the domain whose memory a block of the default pools uses.
static unsigned lender_of(struct run *run, const struct block *block) {
    struct vram_block_info info;
    if (block->domain != 0) return 0;
    EXPECT_OK(vram_get_block_info(run->world.allocator, block->address, &info));
    for (unsigned i = 1; i < DOMAINS; i++) {
        const struct vram_pool_id id = vram_get_pool_id(run->domains[i].pool);
        if (id.first != info.pool.first || id.second != info.pool.second) continue;
        run->lent++;
        return i;
    }
    return 0;
}

static void do_malloc(struct run *run) {
    struct block block = {.domain = (unsigned)draw(run, DOMAINS), .seed = vr_random_next(&run->random)};
    struct domain *domain = &run->domains[block.domain];
    const uint64_t size = draw_size(run);
    const enum vram_status status = ask(run, block.domain, size, run->world.stream[0][draw(run, 3)], &block.address);
    if (domain->asleep && !domain->wakes) {
        EXPECT_STATUS(ASLEEP, status);
        run->refused++;
        return;
    }
    EXPECT_OK(status);
    if (domain->asleep) {
        run->woken_by_requests++;
        woke(run, block.domain);
    }
    block.size = expect_size(&run->world, block.address);
    assert_true(block.size >= size);
    block.lender = lender_of(run, &block);
    for (size_t i = 0; i < run->count; i++) {
        if (block.address < run->live[i].address + run->live[i].size && run->live[i].address < block.address + block.size)
            fail_msg("two live blocks share bytes");
    }
    fill(&block);
    run->bytes += block.size;
    run->live[run->count++] = block;
}

static void do_free(struct run *run) {
    const size_t at = draw(run, run->count);
    const struct block block = run->live[at];
    run->live[at] = run->live[--run->count];
    run->bytes -= block.size;
    if (!run->domains[block.domain].asleep) verify(&block);
    if (draw(run, 16) == 0) EXPECT_OK(vram_record_stream(run->world.allocator, block.address, run->world.stream[0][3]));
    expect_free(&run->world, block.address);
}

static size_t choose(struct run *run, struct vram_sleep_choice *choices, bool *chosen) {
    size_t count = 0;
    memset(chosen, 0, DOMAINS * sizeof *chosen);
    const bool by_tag = draw(run, 2) != 0; // or one by one, so that no other pool is examined
    const bool alike = run->lends && draw(run, 3) != 0;
    for (unsigned i = run->default_sleeps ? 0 : 1; i < DOMAINS; i++) {
        if (draw(run, 2) != 0) continue;
        chosen[i] = true;
        choices[count++] = (struct vram_sleep_choice){.tag = by_tag && i % 2 ? tags[i] : NULL,
                                                      .pool = by_tag && i % 2 ? NULL : run->domains[i].pool,
                                                      .default_pools = i == 0,
                                                      .level = draw(run, 3) != 0 ? VRAM_SLEEP_KEEP : (enum vram_sleep_level)draw(run, 3),
                                                      .wakes = draw(run, 2) != 0};
        if (alike) choices[count - 1].level = VRAM_SLEEP_KEEP;
        if (run->domains[i].asleep) continue;
        run->domains[i].level = choices[count - 1].level;
        run->domains[i].wakes = choices[count - 1].wakes;
    }
    return count;
}

static uint64_t reserved_of(struct run *run, unsigned domain) {
    uint64_t others = 0;
    for (unsigned i = 1; i < DOMAINS; i++) {
        struct vram_pool_stats stats;
        EXPECT_OK(vram_get_pool_stats(run->domains[i].pool, &stats));
        if (i == domain) return (uint64_t)stats.reserved_bytes[VRAM_STAT_ALL].current;
        others += (uint64_t)stats.reserved_bytes[VRAM_STAT_ALL].current;
    }
    return (uint64_t)expect_stats(&run->world).reserved_bytes[VRAM_STAT_ALL].current - others;
}

// Returns whether a pool must stay awake because of what it lent: the default pools are not suspended, or at another level.
static bool is_refused(const struct run *run, const bool *chosen) {
    const bool default_sleeps = chosen[0] || run->domains[0].asleep;
    for (unsigned i = 1; i < DOMAINS; i++) {
        if (!chosen[i] || run->domains[i].asleep || !has_lent(run, i)) continue;
        if (!default_sleeps || run->domains[0].level != run->domains[i].level) return true;
    }
    return false;
}

static void do_sleep(struct run *run) {
    struct vram_sleep_choice choices[DOMAINS];
    bool chosen[DOMAINS];
    const size_t count = choose(run, choices, chosen);
    struct vram_sleep_result result;
    uint64_t before = 0, after = 0;
    if (count == 0) return;
    for (unsigned i = 0; i < DOMAINS; i++) before += chosen[i] ? reserved_of(run, i) : 0;
    const enum vram_status status = vram_sleep(run->world.allocator, 0, choices, count, &result, NULL);
    if (is_refused(run, chosen)) {
        EXPECT_STATUS(UNSUPPORTED, status);
        run->kept_awake++;
        expect_truth(run);
        return;
    }
    EXPECT_OK(status);
    for (unsigned i = 0; i < DOMAINS; i++) {
        if (!chosen[i]) continue;
        run->domains[i].asleep = true;
        after += reserved_of(run, i);
    }
    run->given_back += before - after;
    run->slept += before;
    run->sleeps++;
    run->copied += result.copied_bytes;
    assert_int_equal(result.held_bytes, 0);
    assert_int_equal(after, 0);
    expect_truth(run);
}

static void do_wake(struct run *run) {
    struct vram_sleep_choice choices[DOMAINS];
    size_t count = 0;
    const bool all = draw(run, 4) == 0, by_tag = draw(run, 2) != 0;
    bool chosen[DOMAINS] = {false};
    for (unsigned i = 0; i < DOMAINS; i++) {
        if (!run->domains[i].asleep || (!all && draw(run, 2) != 0)) continue;
        chosen[i] = true;
        choices[count++] = (struct vram_sleep_choice){
            .tag = by_tag ? tags[i] : NULL, .pool = by_tag ? NULL : run->domains[i].pool, .default_pools = i == 0};
    }
    if (count == 0) return;
    EXPECT_OK(vram_wake(run->world.allocator, 0, choices, count, NULL, NULL));
    run->wakes++;
    for (unsigned i = 0; i < DOMAINS; i++)
        if (chosen[i] && run->domains[i].asleep) woke(run, i);
    expect_truth(run);
}

static void step(struct run *run) {
    const uint64_t kind = draw(run, 1000);
    if (kind < 3) {
        EXPECT_OK(vram_empty_cache(run->world.allocator));
    } else if (kind < 6) {
        EXPECT_OK(vr_world_complete(&run->world, 0, run->world.stream[0][3]));
    } else if (run->count == 0 || (kind < 505 && run->count < MOST_BLOCKS && run->bytes < MOST_LIVE)) {
        do_malloc(run);
    } else {
        do_free(run);
    }
}

static void play_with(const char *conf, uint64_t seed, bool lends) {
    if (THREAD_SANITIZER) skip();
    struct run run = {.random = seed, .default_sleeps = conf[0] != '\0', .lends = lends};
    const struct vr_world_options options = {
        .sim = {.memory_bytes = VR_GIB, .manual_completion = true, .backed = true, .addresses = VRAM_SIM_REUSE},
        .conf = conf,
        .without_record = true};
    EXPECT_OK(vr_world_open(&run.world, &options));
    for (unsigned i = 1; i < DOMAINS; i++) {
        const struct vram_pool_options pool = {.tag = tags[i]};
        EXPECT_OK(vram_pool_create(run.world.allocator, 0, &pool, &run.domains[i].pool));
    }
    const uint64_t interval = operations / (sleeps == 0 ? 1 : sleeps);
    for (uint64_t i = 1; i <= operations; i++) {
        if (i % interval == 0) do_sleep(&run);
        if (i % interval == interval / 2) do_wake(&run);
        step(&run);
    }
    EXPECT_OK(vram_wake(run.world.allocator, 0, NULL, 0, NULL, NULL));
    for (unsigned i = 0; i < DOMAINS; i++)
        if (run.domains[i].asleep) woke(&run, i);
    expect_truth(&run);
    printf(
        "%-28s %llu operations, %llu sleeps, %llu wakes, %llu by requests, %llu requests refused, %.3f %% of %.1f GiB given back, %.1f GiB "
        "kept\n",
        conf[0] == '\0' ? "tags alone" : conf, (unsigned long long)operations, (unsigned long long)run.sleeps,
        (unsigned long long)run.wakes, (unsigned long long)run.woken_by_requests, (unsigned long long)run.refused,
        100 * (double)run.given_back / (double)run.slept, (double)run.slept / (double)VR_GIB, (double)run.copied / (double)VR_GIB);
    assert_true((double)run.given_back >= 0.995 * (double)run.slept);
    if (lends) {
        printf("%28s %llu requests got memory of a pool, which kept it awake %llu times and woke it %llu times\n", "",
               (unsigned long long)run.lent, (unsigned long long)run.kept_awake, (unsigned long long)run.woken_with_default);
        const bool often = strstr(conf, "paged") == NULL && operations >= 12000; // pages usually change owners instead
        assert_true(operations < 12000 || run.lent > 0);
        assert_true(!often || (run.kept_awake > 0 && run.woken_with_default > 0));
    }
    while (run.count != 0) do_free(&run);
    for (unsigned i = 1; i < DOMAINS; i++) vram_pool_release(run.domains[i].pool);
    expect_end(&run.world);
}

static void play(const char *conf, uint64_t seed) { play_with(conf, seed, false); }

static void tags_alone(void **state) {
    (void)state;
    play("", 1);
}
static void sleepable(void **state) {
    (void)state;
    play("sleepable:True", 2);
}
static void expandable_segments(void **state) {
    (void)state;
    play("expandable_segments:True", 3);
}
static void paged(void **state) {
    (void)state;
    play("paged:True", 4);
}

// A thread makes pages ahead of requests, also while pools are suspended and woken.
static void paged_ahead(void **state) {
    (void)state;
    play("paged:True,grow_ahead:True", 5);
}

// Blocks of the default pools are in pools that are suspended and woken.
static void lent(void **state) {
    (void)state;
    play_with("sleepable:True,share_live_pools:True", 6, true);
}

static void lent_pages(void **state) {
    (void)state;
    play_with("paged:True,share_live_pools:True", 7, true);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tags_alone),  cmocka_unit_test(sleepable), cmocka_unit_test(expandable_segments), cmocka_unit_test(paged),
        cmocka_unit_test(paged_ahead), cmocka_unit_test(lent),      cmocka_unit_test(lent_pages),
    };
    if (argc > 1) operations = strtoull(argv[1], NULL, 10);
    if (argc > 1) sleeps = argc > 2 ? strtoull(argv[2], NULL, 10) : operations / 1000;
    if (operations < 10) operations = 10;
    if (sleeps > operations / 2) sleeps = operations / 2;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
