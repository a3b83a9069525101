// Tests where expandable segments grow: the first long enough run of free blocks and holes, against a search over all blocks.
#include "core/hole_runs.h"
#include "core/device.h"
#include "replay/drive.h"
#include "support/expect.h"
#include "support/random.h"
#include "vram/sim.h"
#include "vram/sleep.h"

enum { MOST_LIVE = 2000, STEPS = 20000, ASKED = 12 };

struct program {
    struct vr_world world;
    struct vr_device *device;
    uint64_t random, addresses[MOST_LIVE];
    size_t live;
    uint64_t runs_found, none_found;
};

static void open_program(struct program *program, const char *conf, uint64_t memory_bytes, uint64_t seed) {
    *program = (struct program){.random = seed};
    const struct vr_world_options options = {
        .sim = {.memory_bytes = memory_bytes, .profile = VRAM_SIM_FREE}, .conf = conf, .without_record = true};
    EXPECT_OK(vr_world_open(&program->world, &options));
    EXPECT_OK(vram_free(program->world.allocator, expect_malloc(&program->world, 512, 0)));
    program->device = atomic_load_explicit(&program->world.allocator->devices[0], memory_order_relaxed);
}

static uint64_t draw(struct program *program, uint64_t limit) { return vr_random_below(&program->random, limit); }

// Reimplements PyTorch's rule: a run consists of consecutive free and unmapped blocks, and counts if one of them is unmapped.
static uint32_t naive_run(const struct program *program, const struct vr_shard *shard, bool small, uint64_t rounded) {
    const struct vram_allocator *allocator = program->world.allocator;
    for (uint32_t number = vr_segment_first(program->device); number != 0; number = vr_segment_after(program->device, number)) {
        const struct vr_segment *segment = vr_segment_at(allocator, number);
        uint32_t start = 0;
        uint64_t length = 0;
        bool unmapped = false;
        if (!segment->expandable || segment->small != small || segment->shard != shard->number) continue;
        for (uint32_t at = segment->first; at != 0; at = vr_block_at(allocator, at)->next) {
            const struct vr_block *item = vr_block_at(allocator, at);
            if (item->state != VR_FREE && item->state != VR_HOLE) {
                length = start = 0;
                unmapped = false;
                continue;
            }
            if (start == 0) start = at;
            length += item->size;
            unmapped |= item->state == VR_HOLE;
            // The run continues: a hole may follow.
            const uint32_t next = item->next;
            const bool ends =
                next == 0 || (vr_block_at(allocator, next)->state != VR_FREE && vr_block_at(allocator, next)->state != VR_HOLE);
            if (ends && unmapped && length >= rounded) return start;
        }
    }
    return 0;
}

static uint64_t draw_wanted(struct program *program, bool small) {
    const uint64_t page = small ? 2 * VR_MIB : 20 * VR_MIB;
    switch (draw(program, 5)) {
    case 0: return 512 * (1 + draw(program, 4096));
    case 1: return page * (1 + draw(program, 8));
    case 2: return VR_GIB * draw(program, 80) + 512;
    case 3: return page * (1 + draw(program, 60)) + 512 * draw(program, 3) - 512;
    default: return 512 * (1 + draw(program, page / 512 * 30));
    }
}

// Checks that the bounds lead to the same place as a search over everything, for any request.
static void compare(struct program *program) {
    vr_device_lock(program->device);
    const uint32_t count = atomic_load_explicit(&program->device->shards.count, memory_order_relaxed);
    for (uint32_t i = 0; i < count; i++) {
        const struct vr_shard *shard = program->device->shards.items[i];
        for (int asked = 0; asked < ASKED; asked++) {
            const bool small = asked % 3 == 0;
            const uint64_t wanted = draw_wanted(program, small);
            const uint32_t found = vr_hole_run(shard, small, wanted);
            if (found != naive_run(program, shard, small, wanted)) fail_msg("%llu bytes: another run", (unsigned long long)wanted);
            *(found != 0 ? &program->runs_found : &program->none_found) += 1;
        }
    }
    vr_device_unlock(program->device);
}

static void forget(struct program *program, size_t at) {
    EXPECT_OK(vram_free(program->world.allocator, program->addresses[at]));
    program->addresses[at] = program->addresses[--program->live];
}

static void take_some(struct program *program) {
    static const uint64_t sizes[] = {512, 20 * VR_MIB, 13 * VR_MIB, 200 * VR_KIB, 20 * VR_MIB, 47 * VR_MIB};
    const uint64_t size = draw(program, 3) != 0 ? sizes[draw(program, VR_COUNT_OF(sizes))] : 512 * (1 + draw(program, 70000));
    const uint64_t stream = program->world.stream[0][draw(program, 2)];
    if (program->live == MOST_LIVE) return;
    if (vram_malloc(program->world.allocator, 0, size, stream, &program->addresses[program->live]) == VRAM_OK) program->live++;
}

// Allocates part of a block that was just freed, in its middle or at its end, next to free or unmapped memory.
static void take_inside(struct program *program) {
    if (program->live == 0) return;
    const size_t at = draw(program, program->live);
    const uint64_t address = program->addresses[at], size = expect_size(&program->world, address), part = 2 * VR_MIB;
    forget(program, at);
    if (size <= 4 * part) return;
    const uint64_t within = draw(program, 2) != 0 ? size - part : part * (1 + draw(program, 3));
    for (int i = 0; i < 2; i++) {
        uint64_t *taken = &program->addresses[program->live];
        *taken = address + within;
        if (vram_malloc_at(program->world.allocator, 0, part, program->world.stream[0][i], *taken) != VRAM_OK) continue;
        program->live++;
        return;
    }
}

// Memory freed meanwhile is merged and unmapped differently.
static void sleep_and_wake(struct program *program) {
    const struct vram_sleep_choice choice = {.level = VRAM_SLEEP_DISCARD};
    EXPECT_OK(vram_sleep(program->world.allocator, 0, &choice, 1, NULL, NULL));
    for (uint64_t i = draw(program, 20); i > 0 && program->live != 0; i--) forget(program, draw(program, program->live));
    EXPECT_OK(vram_wake(program->world.allocator, 0, NULL, 0, NULL, NULL));
}

static void step(struct program *program) {
    const uint64_t kind = draw(program, 100);
    if (kind < 45) {
        take_some(program);
    } else if (kind < 85) {
        if (program->live != 0) forget(program, draw(program, program->live));
    } else if (kind < 90) {
        take_inside(program);
    } else if (kind < 91) {
        sleep_and_wake(program);
    } else {
        EXPECT_OK(vram_empty_cache(program->world.allocator));
    }
}

static void random_programs(const char *conf, uint64_t memory_bytes, uint64_t seed) {
    static struct program program;
    open_program(&program, conf, memory_bytes, seed);
    for (int i = 0; i < STEPS; i++) {
        // Mostly grows, then mostly shrinks, so that there are long and short runs.
        const bool fills = i % 5000 < 2400;
        if (fills && draw(&program, 3) == 0) take_some(&program);
        if (!fills && program.live != 0 && draw(&program, 3) == 0) forget(&program, draw(&program, program.live));
        step(&program);
        if (i % 4 == 0) compare(&program);
        if (i % 50 == 0) EXPECT_OK(vram_check(program.world.allocator, NULL));
    }
    assert_true(program.runs_found > STEPS && program.none_found > STEPS / 20);
    while (program.live != 0) forget(&program, 0);
    expect_end(&program.world);
}

static void runs_are_as_a_walk_finds_them(void **state) {
    (void)state;
    random_programs("expandable_segments:True", 64 * VR_GIB, 1);
    random_programs("expandable_segments:True,expandable_segments_reserve:200MB", 64 * VR_GIB, 2);
    random_programs("expandable_segments:True,expandable_segments_reserve:1GB,pytorch:2.12", 32 * VR_GIB, 3);
    random_programs("expandable_segments:True,large_segment_size_mb:32", 48 * VR_GIB, 4);
}

// Alternating free blocks and holes form one run, which splits when one of them is taken whole, and joins again.
static void a_block_between_two_holes(void **state) {
    enum { BLOCKS = 40 };
    static struct program program;
    uint64_t blocks[2 * BLOCKS + 1];
    (void)state;
    open_program(&program, "expandable_segments:True", 64 * VR_GIB, 9);
    for (size_t i = 0; i < VR_COUNT_OF(blocks); i++) blocks[i] = expect_malloc(&program.world, 20 * VR_MIB, 0);
    for (size_t i = 1; i < VR_COUNT_OF(blocks); i += 2) EXPECT_OK(vram_free(program.world.allocator, blocks[i]));
    EXPECT_OK(vram_empty_cache(program.world.allocator));
    for (size_t i = 2; i < VR_COUNT_OF(blocks) - 1; i += 2) EXPECT_OK(vram_free(program.world.allocator, blocks[i]));
    compare(&program);
    for (int round = 0; round < 200; round++) {
        uint64_t taken[3];
        for (int i = 0; i < 3; i++) taken[i] = expect_malloc(&program.world, (12 + 8 * draw(&program, 2)) * VR_MIB, 0);
        compare(&program);
        EXPECT_OK(vram_check(program.world.allocator, NULL));
        for (int i = 0; i < 3; i++) EXPECT_OK(vram_free(program.world.allocator, taken[(i + round) % 3]));
        compare(&program);
    }
    EXPECT_OK(vram_free(program.world.allocator, blocks[0]));
    EXPECT_OK(vram_free(program.world.allocator, blocks[2 * BLOCKS]));
    expect_end(&program.world);
}

// Bounds end at 2 TiB; larger requests are still served.
static void more_than_bounds_can_say(void **state) {
    static struct program program;
    (void)state;
    open_program(&program, "expandable_segments:True", 16 * VR_GIB * 1024, 5);
    const uint64_t first = expect_malloc(&program.world, 20 * VR_MIB, 0), hole = expect_malloc(&program.world, 20 * VR_MIB, 0);
    const uint64_t last = expect_malloc(&program.world, 20 * VR_MIB, 0);
    EXPECT_OK(vram_free(program.world.allocator, hole));
    EXPECT_OK(vram_empty_cache(program.world.allocator));
    vr_device_lock(program.device);
    const struct vr_shard *shard = program.device->shards.items[0];
    const struct vram_allocator *allocator = program.world.allocator;
    assert_int_equal(vr_block_at(allocator, vr_hole_run(shard, false, 20 * VR_MIB))->address, hole);
    for (uint64_t tib = 1; tib <= 17; tib++)
        assert_int_equal(vr_block_at(allocator, vr_hole_run(shard, false, tib * 1024 * VR_GIB))->address, last + 20 * VR_MIB);
    assert_int_equal(vr_hole_run(shard, false, 18 * 1024 * VR_GIB), 0);
    vr_device_unlock(program.device);
    EXPECT_OK(vram_free(program.world.allocator, first));
    EXPECT_OK(vram_free(program.world.allocator, last));
    expect_end(&program.world);
}

// Pages inside a hole that the device has no memory for: the hole becomes whole again.
static void a_hole_that_was_cut_in_vain(void **state) {
    static struct program program;
    (void)state;
    open_program(&program, "expandable_segments:True", VR_GIB, 6);
    const uint64_t address = expect_malloc(&program.world, 20 * VR_MIB, 0);
    EXPECT_STATUS(OUT_OF_MEMORY, vr_drive_map(program.world.allocator, address + 60 * VR_MIB, 1080 * VR_MIB));
    compare(&program);
    EXPECT_OK(vram_check(program.world.allocator, NULL));
    EXPECT_OK(vram_free(program.world.allocator, address));
    expect_end(&program.world);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(runs_are_as_a_walk_finds_them),
        cmocka_unit_test(a_block_between_two_holes),
        cmocka_unit_test(more_than_bounds_can_say),
        cmocka_unit_test(a_hole_that_was_cut_in_vain),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
