// Tests that no byte belongs to two blocks. On a simulated device with real memory, every block is filled with its own pattern when it is
// allocated; the pattern must still be there when the block is freed, and, if another stream uses it, until that stream has passed its
// event.
#include "support/expect.h"
#include "driver/driver.h"
#include "support/random.h"
#include "vram/sim.h"

// The thread sanitizer's shadow memory is at the device addresses, so it skips these tests.
#if defined(__SANITIZE_THREAD__)
enum { THREAD_SANITIZER = 1 };
#else
enum { THREAD_SANITIZER = 0 };
#endif

enum { MAX_BLOCKS = 256 };

struct block {
    uint64_t address;
    uint64_t size_bytes; // size of the block, at least the requested size
    uint64_t pattern;
    bool used_elsewhere; // recorded on the other stream
};

struct run {
    struct vr_world world;
    uint64_t random;
    struct block live[MAX_BLOCKS];
    size_t live_count;
    struct block pending[MAX_BLOCKS]; // freed, but the other stream has not passed yet
    size_t pending_count;
    uint64_t verified_bytes;
    bool copies; // a new block first receives a copy of another
};

static uint64_t draw(struct run *run, uint64_t limit) { return vr_random_below(&run->random, limit); }

static uint64_t *words_of(const struct block *block) { return (uint64_t *)(uintptr_t)block->address; }

static void fill(const struct block *block) {
    uint64_t *words = words_of(block);
    for (uint64_t i = 0; i < block->size_bytes / sizeof *words; i++) words[i] = block->pattern + i;
}

static void verify(struct run *run, const struct block *block) {
    const uint64_t *words = words_of(block);
    for (uint64_t i = 0; i < block->size_bytes / sizeof *words; i++)
        if (words[i] != block->pattern + i)
            fail_msg("block 0x%llx of %llu bytes: byte %llu was written by another", (unsigned long long)block->address,
                     (unsigned long long)block->size_bytes, (unsigned long long)(i * sizeof *words));
    run->verified_bytes += block->size_bytes;
}

static uint64_t draw_size(struct run *run) {
    switch (draw(run, 8)) {
    case 0: return 1 + draw(run, 12 * VR_MIB);
    case 1: return 10 * VR_MIB + 512 * draw(run, 16384);
    case 2:
    case 3: return VR_MIB + draw(run, 2 * VR_MIB);
    default: return 1 + draw(run, 128 * VR_KIB);
    }
}

// Reads one block and writes another in one operation: shared pages are harmless, shared bytes are not (poison_aliases).
static void copy_from_another(struct run *run, const struct block *block) {
    const struct block *other = &run->live[draw(run, run->live_count)];
    const uint64_t bytes = block->size_bytes < other->size_bytes ? block->size_bytes : other->size_bytes;
    assert_int_equal(vr_cu(run->world.sim, memcpy_async, block->address, other->address, bytes, run->world.stream[0][1]), VR_CU_SUCCESS);
    if (memcmp(words_of(block), words_of(other), (size_t)bytes) != 0)
        fail_msg("a copy between two blocks touched bytes through two addresses");
}

static void do_malloc(struct run *run) {
    struct block block = {.pattern = vr_mix64(run->random)};
    const uint64_t stream = run->world.stream[0][draw(run, 3)];
    const enum vram_status status = vram_malloc(run->world.allocator, 0, draw_size(run), stream, &block.address);
    if (status == VRAM_OUT_OF_MEMORY) return;
    EXPECT_OK(status);
    block.size_bytes = expect_size(&run->world, block.address);
    if (run->copies && run->live_count > 0) copy_from_another(run, &block);
    fill(&block);
    run->live[run->live_count++] = block;
}

static void do_free(struct run *run) {
    if (run->live_count == 0) return;
    const size_t index = draw(run, run->live_count);
    const struct block block = run->live[index];
    run->live[index] = run->live[--run->live_count];
    verify(run, &block);
    expect_free(&run->world, block.address);
    if (block.used_elsewhere) run->pending[run->pending_count++] = block;
}

static void do_record(struct run *run) {
    if (run->live_count == 0 || run->pending_count + run->live_count >= MAX_BLOCKS) return;
    struct block *block = &run->live[draw(run, run->live_count)];
    EXPECT_OK(vram_record_stream(run->world.allocator, block->address, run->world.stream[0][3]));
    block->used_elsewhere = true;
}

// Verifies pending blocks, because releasing the whole cache waits for their events and may remove them.
static void verify_pending(struct run *run) {
    for (size_t i = 0; i < run->pending_count; i++) verify(run, &run->pending[i]);
    run->pending_count = 0;
}

static void step(struct run *run, bool may_wait) {
    const uint64_t kind = draw(run, 100);
    if (kind < 10) {
        do_record(run);
    } else if (kind < 14) {
        verify_pending(run);
        EXPECT_OK(vr_world_complete(&run->world, 0, run->world.stream[0][3]));
    } else if (kind < 16 && may_wait) {
        verify_pending(run);
        EXPECT_OK(vram_empty_cache(run->world.allocator));
    } else if (kind < 60 && run->live_count + run->pending_count < MAX_BLOCKS - 1 && run->live_count < 60) {
        do_malloc(run);
    } else {
        do_free(run);
    }
}

// Random requests use about a third of the device's memory, so that no request releases memory and waits for pending blocks.
static void patterns_survive(const char *conf, enum vram_sim_addresses addresses, uint64_t seed) {
    if (THREAD_SANITIZER) skip();
    struct run run = {.random = seed, .copies = strstr(conf, "paged") != NULL};
    const struct vr_world_options options = {
        .sim = {.memory_bytes = 2 * VR_GIB, .manual_completion = true, .backed = true, .poison_aliases = true, .addresses = addresses},
        .conf = conf,
        .without_record = true};
    EXPECT_OK(vr_world_open(&run.world, &options));
    for (int i = 0; i < 1200; i++) step(&run, true);
    EXPECT_SCALAR(&run.world, num_ooms, 0);
    EXPECT_SCALAR(&run.world, num_alloc_retries, 0);
    verify_pending(&run);
    while (run.live_count > 0) do_free(&run);
    assert_true(run.verified_bytes > 500 * VR_MIB);
    expect_end(&run.world);
}

// The device is nearly full, so requests constantly fail, release and retry; blocks are used only on their own stream.
static void patterns_survive_shortage(const char *conf, uint64_t seed) {
    if (THREAD_SANITIZER) skip();
    struct run run = {.random = seed, .copies = strstr(conf, "paged") != NULL};
    const struct vr_world_options options = {.sim = {.memory_bytes = 96 * VR_MIB,
                                                     .manual_completion = true,
                                                     .backed = true,
                                                     .poison_aliases = true,
                                                     .addresses = VRAM_SIM_REUSE},
                                             .conf = conf,
                                             .without_record = true};
    EXPECT_OK(vr_world_open(&run.world, &options));
    for (int i = 0; i < 1200; i++) {
        if (draw(&run, 5) < 3 && run.live_count < 60)
            do_malloc(&run);
        else
            do_free(&run);
    }
    assert_true(expect_stats(&run.world).num_alloc_retries > 0);
    while (run.live_count > 0) do_free(&run);
    expect_end(&run.world);
}

static void default_options(void **state) {
    (void)state;
    patterns_survive("", VRAM_SIM_RISING, 1);
    patterns_survive("", VRAM_SIM_REUSE, 2);
    patterns_survive_shortage("", 3);
}

static void expandable_segments(void **state) {
    (void)state;
    patterns_survive("expandable_segments:True", VRAM_SIM_RISING, 4);
    patterns_survive("expandable_segments:True", VRAM_SIM_REUSE, 5);
    patterns_survive_shortage("expandable_segments:True", 6);
}

static void other_options(void **state) {
    (void)state;
    patterns_survive("max_split_size_mb:24,roundup_power2_divisions:8", VRAM_SIM_REUSE, 7);
    patterns_survive_shortage("max_split_size_mb:24", 8);
    patterns_survive_shortage("expandable_segments:True,expandable_segments_reserve:0.3,large_segment_size_mb:12", 9);
}

// Pages at several addresses: the simulator's aliases are real.
static void paged(void **state) {
    (void)state;
    patterns_survive("paged:True", VRAM_SIM_RISING, 10);
    patterns_survive("paged:True", VRAM_SIM_REUSE, 11);
    patterns_survive_shortage("paged:True", 12);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(default_options),
        cmocka_unit_test(expandable_segments),
        cmocka_unit_test(other_options),
        cmocka_unit_test(paged),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
