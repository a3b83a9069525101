// Random programs on paged memory whose bytes really exist: several streams and devices, captures, faults one by one and two in a row. No
// two live blocks share a byte, no byte is lost while a block lives, and no stream gets memory before the work of its last user is over.
//
// test_paged_random [OPERATIONS [SEED]] runs so many of them (default: some 100,000, in make test).
#include <stdio.h>

#include "support/captures.h"
#include "support/random.h"

#include "base/map.h"
#include "driver/abi.h"
#include "driver/fault/fault.h"

// The thread sanitizer keeps its shadow where the device addresses lie.
#if defined(__SANITIZE_THREAD__)
enum { THREAD_SANITIZER = 1 };
#else
enum { THREAD_SANITIZER = 0 };
#endif

enum { MEM_POOLS = 3 };
enum { MIB = 1 << 20, STEP = 2 * MIB, MAX_LIVE = 96, MAX_PROMISES = 64, POINTS = 24 };

static uint64_t operations = 100000, first_seed = 1;

struct live_block {
    uint64_t address, size_bytes, pattern;
    uint32_t device;
    unsigned stream;
};

// An event of a stream that got memory: it may not be over before the memory's last user was done.
struct promise {
    uint64_t event, not_before_ns;
};

struct program {
    struct vr_world world;
    uint64_t random;
    struct live_block live[MAX_LIVE];
    size_t live_count;
    unsigned streams;
    uint32_t devices;
    struct vram_pool *pool;           // of the graph that is captured now and then on device 0's stream 1; NULL: none is
    struct vram_pool *mem[MEM_POOLS]; // pools of the user on device 0; NULL: there is none now
    bool captures, faults;
    uint64_t nth;                      // calls until the next fault
    uint64_t end_ns[VR_WORLD_STREAMS]; // of what device 0's streams were given to do
    struct vr_map users;               // handle -> 1 + its last user's stream, and above that when it ends
    struct promise promises[MAX_PROMISES];
    size_t promise_count;
};

static uint64_t draw(struct program *program, uint64_t limit) { return vr_random_below(&program->random, limit); }

static uint64_t draw_size(struct program *program) {
    static const uint64_t common[] = {2 * MIB, 3 * MIB + 512, 5 * MIB, 12 * MIB + 1024, 20 * MIB};
    switch (draw(program, 8)) {
    case 0: return 1 + draw(program, 40 * MIB);
    case 1: return 1 + draw(program, 300000);
    case 2: return MIB + draw(program, 3 * MIB);
    default: return common[draw(program, VR_COUNT_OF(common))];
    }
}

static void passed(const struct program *program, enum vram_status status) {
    assert_true(status == VRAM_OK || status == VRAM_OUT_OF_MEMORY || (program->faults && status == VRAM_DRIVER));
}

// --- bytes ------------------------------------------------------------------------------------------------------------------------------

// Words at both ends and about each border of pages.
static size_t points_of(const struct live_block *block, uint64_t *points) {
    size_t count = 0;
    points[count++] = block->address;
    points[count++] = block->address + block->size_bytes - 8;
    for (uint64_t at = (block->address / STEP + 1) * STEP; at + 8 <= block->address + block->size_bytes && count + 2 <= POINTS;
         at += STEP) {
        points[count++] = at;
        if (at - 8 > block->address) points[count++] = at - 8;
    }
    return count;
}

static void fill(const struct live_block *block) {
    uint64_t points[POINTS];
    for (size_t i = 0, count = points_of(block, points); i < count; i++) *(uint64_t *)(uintptr_t)points[i] = block->pattern ^ points[i];
}

static void verify(const struct live_block *block) {
    uint64_t points[POINTS];
    for (size_t i = 0, count = points_of(block, points); i < count; i++)
        if (*(uint64_t *)(uintptr_t)points[i] != (block->pattern ^ points[i]))
            fail_msg("block 0x%llx of %llu bytes: 0x%llx was written by another", (unsigned long long)block->address,
                     (unsigned long long)block->size_bytes, (unsigned long long)points[i]);
}

// One operation reads a block and writes another: pages that both lie on are no harm, bytes would be (poison_aliases).
static void copy_from_another(struct program *program, const struct live_block *block) {
    const struct live_block *other = &program->live[draw(program, program->live_count)];
    if (other->device != 0 || block->device != 0 || program->captures) return;
    const uint64_t most = block->size_bytes < other->size_bytes ? block->size_bytes : other->size_bytes, bytes = most < 4096 ? most : 4096;
    assert_int_equal(vr_cu(program->world.sim, memcpy_async, block->address, other->address, bytes, program->world.stream[0][2]),
                     VR_CU_SUCCESS);
    assert_memory_equal((void *)(uintptr_t)block->address, (void *)(uintptr_t)other->address, (size_t)bytes);
}

// --- fences -----------------------------------------------------------------------------------------------------------------------------

static uint64_t handle_at(const struct program *program, uint64_t address) {
    uint64_t handle = 0;
    if (vr_cu(program->world.sim, mem_retain_allocation_handle, &handle, address) != VR_CU_SUCCESS) return 0;
    assert_int_equal(vr_cu(program->world.sim, mem_release, handle), VR_CU_SUCCESS);
    return handle;
}

// Whoever has these pages next has to wait until then.
static void note_user(struct program *program, const struct live_block *block) {
    if (block->device != 0 || block->size_bytes <= MIB) return;
    for (uint64_t at = block->address; at < block->address + block->size_bytes; at += STEP) {
        const uint64_t handle = handle_at(program, at);
        if (handle != 0)
            assert_int_equal(vr_map_set(&program->users, handle, program->end_ns[block->stream] << 3 | (block->stream + 1)), VRAM_OK);
    }
}

static void promise(struct program *program, const struct live_block *block) {
    const bool capturing = program->captures && block->stream == 1;
    if (block->device != 0 || block->size_bytes <= MIB || capturing || program->promise_count == MAX_PROMISES) return;
    uint64_t not_before_ns = 0;
    for (uint64_t at = block->address; at < block->address + block->size_bytes; at += STEP) {
        const uint64_t user = vr_map_get(&program->users, handle_at(program, at) + (handle_at(program, at) == 0));
        if (user != 0 && (user & 7) != block->stream + 1 && user >> 3 > not_before_ns) not_before_ns = user >> 3;
    }
    if (not_before_ns <= vram_sim_clock_ns(program->world.sim)) return;
    struct promise made = {.not_before_ns = not_before_ns};
    // A fault may have kept the allocator from leaving the context as it was.
    assert_int_equal(vr_cu(program->world.sim, ctx_set_current, program->world.context[0]), VR_CU_SUCCESS);
    assert_int_equal(vr_cu(program->world.sim, event_create, &made.event, VR_CU_EVENT_DISABLE_TIMING), VR_CU_SUCCESS);
    assert_int_equal(vr_cu(program->world.sim, event_record, made.event, program->world.stream[0][block->stream]), VR_CU_SUCCESS);
    program->promises[program->promise_count++] = made;
}

static void hold_promises(struct program *program) {
    for (size_t i = 0; i < program->promise_count;) {
        const uint64_t before_ns = vram_sim_clock_ns(program->world.sim);
        const struct promise made = program->promises[i];
        if (vr_cu(program->world.sim, event_query, made.event) == VR_CU_NOT_READY) {
            i++;
            continue;
        }
        if (before_ns + 1000 < made.not_before_ns)
            fail_msg("a stream had memory %llu ns too early", (unsigned long long)(made.not_before_ns - before_ns));
        assert_int_equal(vr_cu(program->world.sim, event_destroy, made.event), VR_CU_SUCCESS);
        program->promises[i] = program->promises[--program->promise_count];
    }
}

static void work(struct program *program) {
    const unsigned stream = (unsigned)draw(program, program->streams);
    if (program->captures) return;
    const uint64_t work_ns = 1 + draw(program, 3000000), now = vram_sim_clock_ns(program->world.sim);
    EXPECT_OK(vram_sim_busy(program->world.sim, 0, program->world.stream[0][stream], work_ns));
    program->end_ns[stream] = (program->end_ns[stream] > now ? program->end_ns[stream] : now) + work_ns;
}

// --- operations -------------------------------------------------------------------------------------------------------------------------

static void one_malloc(struct program *program) {
    struct live_block block = {.device = (uint32_t)draw(program, program->devices),
                               .stream = (unsigned)draw(program, program->streams),
                               .pattern = vr_mix64(program->random)};
    struct vram_pool *pool = block.device == 0 && draw(program, 3) == 0 ? program->mem[draw(program, MEM_POOLS)] : NULL;
    const uint64_t stream = program->world.stream[block.device][block.stream], size_bytes = draw_size(program);
    const enum vram_status status = pool == NULL ? vram_malloc(program->world.allocator, block.device, size_bytes, stream, &block.address)
                                                 : vram_pool_malloc(pool, size_bytes, stream, &block.address);
    passed(program, status);
    if (status != VRAM_OK) return;
    block.size_bytes = expect_size(&program->world, block.address);
    promise(program, &block);
    if (program->live_count != 0 && draw(program, 8) == 0) copy_from_another(program, &block);
    fill(&block);
    program->live[program->live_count++] = block;
}

static void one_free(struct program *program) {
    const size_t index = draw(program, program->live_count);
    const struct live_block block = program->live[index];
    verify(&block);
    note_user(program, &block);
    const enum vram_status status = vram_free(program->world.allocator, block.address);
    passed(program, status);
    if (status == VRAM_OK) program->live[index] = program->live[--program->live_count];
}

static void draw_fault(struct program *program) {
    if (!program->faults || program->nth-- != 0) return;
    EXPECT_OK(vram_driver_fault_set(program->world.driver, NULL, 1 + draw(program, 6), VR_CU_UNKNOWN));
    if (draw(program, 2) == 0) vr_fault_then(program->world.driver, 1 + draw(program, 3), VR_CU_UNKNOWN);
    program->nth = draw(program, 60);
}

static void switch_mem_pool(struct program *program) {
    struct vram_pool **pool = &program->mem[draw(program, MEM_POOLS)];
    if (*pool == NULL) {
        const enum vram_status status = vram_pool_create(program->world.allocator, 0, NULL, pool);
        passed(program, status);
        if (status != VRAM_OK) *pool = NULL;
    } else if (draw(program, 2) == 0) {
        passed(program, vram_pool_trim(*pool));
    } else {
        vram_pool_release(*pool);
        *pool = NULL;
    }
}

static void switch_capture(struct program *program) {
    if (program->captures) {
        end(&program->world, program->pool, program->world.stream[0][1]);
    } else {
        begin(program->pool, program->world.stream[0][1], VRAM_CAPTURE_RELAXED);
    }
    program->captures = !program->captures;
}

static void one_operation(struct program *program) {
    struct vram_allocator *allocator = program->world.allocator;
    const uint64_t kind = draw(program, 1000);
    draw_fault(program);
    if (program->pool != NULL && draw(program, 40) == 0) {
        switch_capture(program);
    } else if (draw(program, 150) == 0) {
        switch_mem_pool(program);
    } else if (kind == 0) {
        passed(program, vram_empty_cache(allocator));
    } else if (kind < 6) {
        EXPECT_OK(vram_sim_advance(program->world.sim, 1 + draw(program, 2000000)));
    } else if (kind < 16) {
        work(program);
    } else if (kind < 40 && program->live_count != 0) {
        const struct live_block *block = &program->live[draw(program, program->live_count)];
        if (block->device == 0)
            passed(program, vram_record_stream(allocator, block->address, program->world.stream[0][draw(program, program->streams)]));
    } else if (program->live_count != 0 && (program->live_count == MAX_LIVE || draw(program, 100) < 48)) {
        one_free(program);
    } else {
        one_malloc(program);
    }
}

// --- programs ---------------------------------------------------------------------------------------------------------------------------

static void open_program(struct program *program, uint64_t seed) {
    static const char *const confs[] = {"paged:True", "paged:True,reclaim_streams:True", "paged:True,share_live_pools:True",
                                        "paged:True,grow_ahead:True", "paged:True,warm:60M"};
    static const uint64_t memory_bytes[] = {0, 200 * MIB, 300 * MIB, 500 * MIB, 2000 * (uint64_t)MIB};
    *program =
        (struct program){.random = seed, .faults = seed % 3 == 0, .streams = 1 + seed % VR_WORLD_STREAMS, .devices = 1 + seed / 2 % 2};
    const struct vr_world_options options = {.sim = {.device_count = program->devices,
                                                     .memory_bytes = memory_bytes[seed % VR_COUNT_OF(memory_bytes)],
                                                     .backed = true,
                                                     .poison_aliases = true,
                                                     .addresses = seed / 5 % 2 == 0 ? VRAM_SIM_RISING : VRAM_SIM_REUSE},
                                             .conf = confs[program->faults ? 0 : seed / 7 % VR_COUNT_OF(confs)],
                                             .faults = program->faults,
                                             .without_record = true};
    EXPECT_OK(vr_world_open(&program->world, &options));
    if (!program->faults && seed % 2 == 0) program->pool = expect_graph_pool(&program->world);
    if (!program->faults && seed % 8 == 1) EXPECT_OK(vram_pool_create(program->world.allocator, 0, NULL, &program->pool));
}

static void close_program(struct program *program) {
    if (program->faults) EXPECT_OK(vram_driver_fault_set(program->world.driver, NULL, 0, 0));
    if (program->captures) switch_capture(program);
    while (program->live_count != 0) one_free(program);
    if (program->pool != NULL) vram_pool_release(program->pool);
    for (int i = 0; i < MEM_POOLS; i++) vram_pool_release(program->mem[i]);
    EXPECT_OK(vram_sim_complete_all(program->world.sim));
    hold_promises(program);
    assert_int_equal(program->promise_count, 0);
    EXPECT_OK(vram_empty_cache(program->world.allocator));
    EXPECT_CURRENT(&program->world, reserved_bytes, 0);
    assert_int_equal(vram_sim_memory_used(program->world.sim, 0), 0);
    vr_map_release(&program->users);
    expect_end(&program->world);
}

static void programs_keep_their_bytes(void **state) {
    (void)state;
    static struct program program;
    if (THREAD_SANITIZER) skip();
    const uint64_t each = operations < 1000000 ? 2500 : 20000, checks = operations < 1000000 ? 32 : 1000;
    for (uint64_t done = 0, seed = first_seed; done < operations; done += each, seed++) {
        open_program(&program, seed);
        for (uint64_t i = 0; i < each; i++) {
            one_operation(&program);
            if (i % 16 == 0) hold_promises(&program);
            struct vram_error error = {0};
            if (i % checks == 0 && vram_check(program.world.allocator, &error) != VRAM_OK)
                fail_msg("seed %llu, operation %llu: %s", (unsigned long long)seed, (unsigned long long)i, error.message);
        }
        close_program(&program);
        if (operations >= 1000000 && seed % 100 == 0)
            printf("%llu operations, seed %llu\n", (unsigned long long)(done + each), (unsigned long long)seed);
    }
}

int main(int argc, char **argv) {
    if (argc > 1) operations = strtoull(argv[1], NULL, 10);
    if (argc > 2) first_seed = strtoull(argv[2], NULL, 10);
    const struct CMUnitTest tests[] = {cmocka_unit_test(programs_keep_their_bytes)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
