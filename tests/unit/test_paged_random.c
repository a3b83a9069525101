// Runs random programs on paged memory with real bytes: several streams and devices, captures, pools, suspension, pages made ahead, pages
// of more than 2 MiB, single faults and pairs. No two live blocks share a byte, no byte is lost while a block is live or suspended, and no
// stream gets memory before the work of its last users is done.
//
// test_paged_random [OPERATIONS [SEED]] sets the number of operations (default: about 100,000, in make test).
#include <stdio.h>

#include "support/captures.h"
#include "support/random.h"

#include "base/hash.h"
#include "driver/abi.h"
#include "driver/fault/fault.h"
#include "sim/sim.h"
#include "vram/sim.h"
#include "vram/sleep.h"

// The thread sanitizer's shadow memory is at the device addresses.
#if defined(__SANITIZE_THREAD__)
enum { THREAD_SANITIZER = 1 };
#else
enum { THREAD_SANITIZER = 0 };
#endif

enum { MEM_POOLS = 3, DEFAULT = 0, GRAPH = 1 }; // numbers of the default pools and the captured pool; a MemPool gets the next one
enum { MIB = 1 << 20, STEP = 2 * MIB, MAX_LIVE = 96, MAX_PROMISES = 64, POINTS = 10, MAX_PAGES = 512, SIZES = 6 };

static uint64_t operations = 100000, first_seed = 1, seed_now, operation_now; // the last two are printed on failure

struct live_block {
    uint64_t address, size_bytes, pattern;
    uint64_t pool; // its number
    uint32_t device;
    unsigned stream;
    unsigned recorded; // a bit per stream that also used it
    bool asleep;
};

// An event of a stream that got memory: it may not complete before the memory's last user was done.
struct promise {
    uint64_t event, not_before_ns;
};

// The suspension state of a pool on device 0.
struct pool_state {
    struct vram_pool *pool; // NULL: the default pools, or none now
    uint64_t number;
    bool asleep;
};

struct program {
    struct vr_world world;
    uint64_t random;
    struct live_block live[MAX_LIVE];
    size_t live_count;
    unsigned streams;
    uint32_t devices;
    struct pool_state pools[2 + MEM_POOLS]; // DEFAULT; GRAPH, captured occasionally on stream 1; the user's
    uint64_t last_number;
    bool captures, faults, ahead, large, repeats;
    uint64_t sizes[SIZES]; // of requests, if they repeat
    size_t most_live;
    enum vram_sleep_level level; // of suspended pools
    bool wakes;
    uint64_t nth;                                        // calls until the next fault
    uint64_t end_ns[VR_WORLD_DEVICES][VR_WORLD_STREAMS]; // end of each stream's work
    uint64_t all_end_ns;                                 // the latest of these
    struct vr_map users;                                 // page and stream -> end of that stream's work there
    struct promise promises[MAX_PROMISES];
    size_t promise_count;
};

// Counts over all programs.
static struct { uint64_t captures, sleeps, kept_bytes, refused, faults, promises, large_pages; } seen;

static uint64_t draw(struct program *program, uint64_t limit) { return vr_random_below(&program->random, limit); }

static uint64_t draw_any_size(struct program *program) {
    static const uint64_t common[] = {2 * MIB, 3 * MIB + 512, 5 * MIB, 12 * MIB + 1024, 20 * MIB};
    const uint64_t scale = program->large ? 16 : 1;
    switch (draw(program, 8)) {
    case 0: return 1 + draw(program, 40 * MIB * scale);
    case 1: return 1 + draw(program, 300000);
    case 2: return MIB + draw(program, 3 * MIB);
    default: return common[draw(program, VR_COUNT_OF(common))] * scale;
    }
}

// A repeating program asks for the same sizes, so the cache serves nearly all of them, as in real programs.
static uint64_t draw_size(struct program *program) {
    return program->repeats ? program->sizes[draw(program, SIZES)] : draw_any_size(program);
}

// The factor by which operations with driver work are rarer.
static uint64_t seldom(const struct program *program) { return program->repeats ? 10 : 1; }

static void passed_saying(const struct program *program, enum vram_status status, const char *message) {
    if (status != VRAM_OK && status != VRAM_OUT_OF_MEMORY && !(program->faults && status == VRAM_DRIVER))
        fail_msg("%s %s", vram_status_name(status), message);
}

static void passed(const struct program *program, enum vram_status status) { passed_saying(program, status, ""); }

// --- bytes ------------------------------------------------------------------------------------------------------------------------------

// Picks the words to check: both ends, and words around some page boundaries, chosen differently in each block.
static size_t points_of(const struct live_block *block, uint64_t *points) {
    const uint64_t end = block->address + block->size_bytes, first = (block->address / STEP + 1) * STEP;
    const uint64_t borders = end > first ? (end - first + STEP - 1) / STEP : 0, apart = 1 + borders / (POINTS / 2 - 1);
    size_t count = 0;
    points[count++] = block->address;
    points[count++] = end - 8;
    for (uint64_t i = block->pattern % apart; i < borders && count + 2 <= POINTS; i += apart) {
        points[count++] = first + i * STEP;
        if (first + i * STEP - 8 > block->address) points[count++] = first + i * STEP - 8;
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

static void expect_zeros(const struct live_block *block) {
    uint64_t points[POINTS];
    for (size_t i = 0, count = points_of(block, points); i < count; i++) assert_int_equal(*(uint64_t *)(uintptr_t)points[i], 0);
}

// Reads one block and writes another in one operation: shared pages are harmless, shared bytes are not (poison_aliases).
static void copy_from_another(struct program *program, const struct live_block *block) {
    const struct live_block *other = &program->live[draw(program, program->live_count)];
    if (other->device != 0 || block->device != 0 || other->asleep || program->captures) return;
    const uint64_t most = block->size_bytes < other->size_bytes ? block->size_bytes : other->size_bytes, bytes = most < 4096 ? most : 4096;
    assert_int_equal(vr_cu(program->world.sim, memcpy_async, block->address, other->address, bytes, program->world.stream[0][2]),
                     VR_CU_SUCCESS);
    assert_memory_equal((void *)(uintptr_t)block->address, (void *)(uintptr_t)other->address, (size_t)bytes);
}

// --- fences -----------------------------------------------------------------------------------------------------------------------------

// A page of a block, by the simulator's number, and whether the block covers all of it.
struct page {
    uint64_t number;
    bool whole;
};

static size_t pages_of(const struct program *program, const struct live_block *block, struct page *pages) {
    struct vr_sim *sim = vr_sim_of(program->world.sim);
    const uint64_t end = block->address + block->size_bytes;
    size_t count = 0;
    vr_mutex_lock(&sim->lock);
    for (uint64_t at = block->address; at < end && count < MAX_PAGES;) {
        const struct vr_sim_range *mapping = vr_sim_ranges_holding(&sim->mappings, at);
        if (mapping != NULL)
            pages[count++] = (struct page){mapping->owner, mapping->base >= block->address && vr_sim_range_end(mapping) <= end};
        if (mapping != NULL && mapping->span > STEP) seen.large_pages++;
        at = mapping != NULL ? vr_sim_range_end(mapping) : (at / STEP + 1) * STEP;
    }
    vr_mutex_unlock(&sim->lock);
    return count;
}

// Notes how long the next user of these pages must wait. Other streams used only the block.
static void note_users(struct program *program, const struct live_block *block) {
    struct page pages[MAX_PAGES];
    const uint64_t now = vram_sim_clock_ns(program->world.sim);
    const unsigned users = block->recorded | 1u << block->stream;
    size_t count = 0;
    for (unsigned stream = 0; stream < program->streams; stream++) {
        const uint64_t end_ns = program->end_ns[block->device][stream];
        if ((users >> stream & 1) == 0 || end_ns <= now) continue;
        if (count == 0) count = pages_of(program, block, pages);
        for (size_t i = 0; i < count; i++)
            if (stream == block->stream || pages[i].whole)
                assert_int_equal(vr_map_set(&program->users, pages[i].number * VR_WORLD_STREAMS + stream, end_ns), VRAM_OK);
    }
}

// Returns when other streams' work on the page ends, except work that the block's own stream already waits for.
static uint64_t last_use(const struct program *program, const struct live_block *block) {
    struct page pages[MAX_PAGES];
    uint64_t last_ns = 0;
    const size_t count = pages_of(program, block, pages);
    for (size_t i = 0; i < count; i++)
        for (unsigned stream = 0; stream < program->streams; stream++) {
            const uint64_t end_ns = vr_map_get(&program->users, pages[i].number * VR_WORLD_STREAMS + stream);
            if (stream != block->stream && end_ns > last_ns) last_ns = end_ns;
        }
    return last_ns;
}

static void promise(struct program *program, const struct live_block *block) {
    const bool capturing = program->captures && block->stream == 1;
    if (capturing || program->promise_count == MAX_PROMISES || vram_sim_clock_ns(program->world.sim) >= program->all_end_ns) return;
    struct promise made = {.not_before_ns = last_use(program, block)};
    if (made.not_before_ns <= vram_sim_clock_ns(program->world.sim)) return;
    // A fault may have prevented the allocator from restoring the context.
    assert_int_equal(vr_cu(program->world.sim, ctx_set_current, program->world.context[block->device]), VR_CU_SUCCESS);
    assert_int_equal(vr_cu(program->world.sim, event_create, &made.event, VR_CU_EVENT_DISABLE_TIMING), VR_CU_SUCCESS);
    assert_int_equal(vr_cu(program->world.sim, event_record, made.event, program->world.stream[block->device][block->stream]),
                     VR_CU_SUCCESS);
    assert_int_equal(vr_cu(program->world.sim, ctx_set_current, program->world.context[0]), VR_CU_SUCCESS);
    program->promises[program->promise_count++] = made;
    seen.promises++;
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
    const uint32_t device = (uint32_t)draw(program, program->devices);
    const unsigned stream = (unsigned)draw(program, program->streams);
    if (program->captures) return;
    const uint64_t work_ns = 1 + draw(program, 3000000), now = vram_sim_clock_ns(program->world.sim);
    uint64_t *end_ns = &program->end_ns[device][stream];
    EXPECT_OK(vram_sim_busy(program->world.sim, device, program->world.stream[device][stream], work_ns));
    *end_ns = (*end_ns > now ? *end_ns : now) + work_ns;
    if (*end_ns > program->all_end_ns) program->all_end_ns = *end_ns;
}

// --- sleep ------------------------------------------------------------------------------------------------------------------------------

static size_t sleepers(const struct program *program) {
    size_t count = 0;
    EXPECT_OK(vram_sleepers(program->world.allocator, 0, NULL, 0, &count));
    return count;
}

static bool anything_sleeps(const struct program *program) {
    for (size_t i = 0; i < program->live_count; i++)
        if (program->live[i].asleep) return true;
    for (size_t i = 0; i < VR_COUNT_OF(program->pools); i++)
        if (program->pools[i].asleep) return true;
    return false;
}

// Checks the kept bytes after the pools of a number, or all, are resumed.
static void woke(struct program *program, uint64_t number, bool all) {
    for (size_t i = 0; i < VR_COUNT_OF(program->pools); i++)
        if (all || program->pools[i].number == number) program->pools[i].asleep = false;
    for (size_t i = 0; i < program->live_count; i++) {
        struct live_block *block = &program->live[i];
        if (!block->asleep || !(all || block->pool == number)) continue;
        block->asleep = false;
        assert_int_equal(expect_size(&program->world, block->address), block->size_bytes);
        if (program->level == VRAM_SLEEP_KEEP) verify(block);
        if (program->level == VRAM_SLEEP_ZERO) expect_zeros(block);
        if (program->level != VRAM_SLEEP_KEEP) fill(block);
    }
}

static void expect_all_given_back(struct program *program, const struct vram_sleep_result *result) {
    if (program->faults || program->ahead) return;
    assert_int_equal(result->held_bytes, 0);
    assert_int_equal(vram_sim_memory_used(program->world.sim, 0), 0);
}

static uint64_t live_bytes(const struct program *program) {
    uint64_t sum = 0;
    for (size_t i = 0; i < program->live_count; i++) sum += program->live[i].size_bytes;
    return sum;
}

// Suspends all of device 0, or the default pools. Keeps or zeroes bytes only if there are few.
static void fall_asleep(struct program *program) {
    const bool all = draw(program, 2) == 0, costs = live_bytes(program) > 64 * MIB;
    struct vram_sleep_result result;
    struct vram_error error = {0};
    program->level = costs ? VRAM_SLEEP_DISCARD : draw(program, 4) == 0 ? VRAM_SLEEP_ZERO : VRAM_SLEEP_KEEP;
    program->wakes = draw(program, 2) == 0;
    const struct vram_sleep_choice choice = {.default_pools = !all, .level = program->level, .wakes = program->wakes};
    const enum vram_status status = vram_sleep(program->world.allocator, 0, &choice, 1, &result, &error);
    passed_saying(program, status, error.message);
    if (status != VRAM_OK) {
        assert_int_equal(sleepers(program), 0);
        return;
    }
    for (size_t i = 0; i < VR_COUNT_OF(program->pools); i++)
        program->pools[i].asleep = i == DEFAULT || (all && program->pools[i].pool != NULL);
    for (size_t i = 0; i < program->live_count; i++)
        program->live[i].asleep = program->live[i].device == 0 && (all || program->live[i].pool == DEFAULT);
    seen.sleeps++;
    seen.kept_bytes += result.copied_bytes;
    if (all) expect_all_given_back(program, &result);
}

static void wake_up(struct program *program) {
    const size_t before = sleepers(program);
    struct vram_error error = {0};
    const enum vram_status status = vram_wake(program->world.allocator, 0, NULL, 0, NULL, &error);
    passed_saying(program, status, error.message);
    assert_int_equal(sleepers(program), status == VRAM_OK ? 0 : before);
    if (status == VRAM_OK) woke(program, 0, true);
}

static void switch_sleep(struct program *program) {
    if (program->captures) return;
    if (anything_sleeps(program) || sleepers(program) != 0) {
        wake_up(program);
    } else {
        fall_asleep(program);
    }
}

// Returns whether a request to a pool was answered according to its suspension; it may have resumed the pool and failed nevertheless.
static bool answered(struct program *program, struct pool_state *pool, enum vram_status status) {
    if (!pool->asleep) return true;
    const bool may_wake = program->wakes && !program->captures;
    if (status == VRAM_ASLEEP) seen.refused++;
    if (!may_wake) return status == VRAM_ASLEEP || (program->faults && status == VRAM_DRIVER);
    size_t count = 0;
    struct vram_sleeper list[64];
    EXPECT_OK(vram_sleepers(program->world.allocator, 0, list, VR_COUNT_OF(list), &count));
    const struct vram_pool_id id = pool->pool == NULL ? (struct vram_pool_id){0} : vram_get_pool_id(pool->pool);
    for (size_t i = 0; i < count; i++)
        if (list[i].pool.first == id.first && list[i].pool.second == id.second) return status != VRAM_OK;
    woke(program, pool->number, false);
    return true;
}

// --- operations -------------------------------------------------------------------------------------------------------------------------

// Returns the pool that serves a request on the stream.
static struct pool_state *draw_pool(struct program *program, uint32_t device, unsigned stream) {
    static struct pool_state elsewhere;
    elsewhere = (struct pool_state){0};
    if (device != 0) return &elsewhere;
    struct pool_state *mem = &program->pools[2 + draw(program, MEM_POOLS)];
    if (mem->pool != NULL && draw(program, 3 * seldom(program)) == 0) return mem;
    return &program->pools[program->captures && stream == 1 ? GRAPH : DEFAULT];
}

// A repeating program has most of its memory on one stream.
static unsigned draw_stream(struct program *program) {
    if (draw(program, seldom(program)) != 0) return program->streams / 2;
    return (unsigned)draw(program, program->streams);
}

static void one_malloc(struct program *program) {
    struct live_block block = {
        .device = (uint32_t)draw(program, program->devices), .stream = draw_stream(program), .pattern = vr_mix64(program->random)};
    struct pool_state *pool = draw_pool(program, block.device, block.stream);
    const uint64_t stream = program->world.stream[block.device][block.stream], size_bytes = draw_size(program);
    const enum vram_status status = pool->number <= GRAPH
                                        ? vram_malloc(program->world.allocator, block.device, size_bytes, stream, &block.address)
                                        : vram_pool_malloc(pool->pool, size_bytes, stream, &block.address);
    if (pool->asleep) {
        assert_true(answered(program, pool, status));
        if (status == VRAM_ASLEEP) return;
    }
    passed(program, status);
    if (status != VRAM_OK) return;
    block.pool = pool->number;
    block.size_bytes = expect_size(&program->world, block.address);
    promise(program, &block);
    if (program->live_count != 0 && draw(program, 8) == 0) copy_from_another(program, &block);
    fill(&block);
    program->live[program->live_count++] = block;
}

static void one_free(struct program *program) {
    const size_t index = draw(program, program->live_count);
    const struct live_block block = program->live[index];
    if (!block.asleep) verify(&block);
    if (!block.asleep) note_users(program, &block);
    const enum vram_status status = vram_free(program->world.allocator, block.address);
    passed(program, status);
    if (status == VRAM_OK) program->live[index] = program->live[--program->live_count];
}

static void one_record(struct program *program) {
    struct live_block *block = &program->live[draw(program, program->live_count)];
    const unsigned stream = (unsigned)draw(program, program->streams);
    if (block->asleep) return;
    const enum vram_status status =
        vram_record_stream(program->world.allocator, block->address, program->world.stream[block->device][stream]);
    passed(program, status);
    const bool captured = program->captures && block->device == 0 && stream == 1; // used by the graph, not by the stream's current work
    if (status == VRAM_OK && !captured) block->recorded |= 1u << stream;
}

static void draw_fault(struct program *program) {
    if (!program->faults || program->nth-- != 0) return;
    EXPECT_OK(vram_driver_fault_set(program->world.driver, NULL, 1 + draw(program, 6), VR_CU_UNKNOWN));
    if (draw(program, 2) == 0) vr_fault_then(program->world.driver, 1 + draw(program, 3), VR_CU_UNKNOWN);
    program->nth = draw(program, 60 * seldom(program));
    seen.faults++;
}

static void switch_mem_pool(struct program *program) {
    struct pool_state *state = &program->pools[2 + draw(program, MEM_POOLS)];
    if (state->pool == NULL) {
        struct vram_pool *pool = NULL;
        const enum vram_status status = vram_pool_create(program->world.allocator, 0, NULL, &pool);
        passed(program, status);
        if (status == VRAM_OK) *state = (struct pool_state){.pool = pool, .number = ++program->last_number};
    } else if (draw(program, 2) == 0) {
        passed(program, vram_pool_empty_cache(state->pool));
    } else {
        vram_pool_release(state->pool);
        *state = (struct pool_state){.number = ++program->last_number};
    }
}

// Ends a capture that stayed open because the driver twice refused to end it.
static void leave_capture(struct program *program) {
    const uint64_t stream = program->world.stream[0][1];
    int status = VR_CU_STREAM_CAPTURE_STATUS_NONE;
    uint64_t graph = 0;
    assert_int_equal(vr_cu(program->world.sim, ctx_set_current, program->world.context[0]), VR_CU_SUCCESS);
    assert_int_equal(vr_cu(program->world.sim, stream_is_capturing, stream, &status), VR_CU_SUCCESS);
    if (status != VR_CU_STREAM_CAPTURE_STATUS_NONE) (void)vr_cu(program->world.sim, stream_end_capture, stream, &graph);
    if (graph != 0) assert_int_equal(vr_cu(program->world.sim, graph_destroy, graph), VR_CU_SUCCESS);
}

static void switch_capture(struct program *program) {
    struct vram_pool *pool = program->pools[GRAPH].pool;
    const uint64_t stream = program->world.stream[0][1];
    uint64_t graph = 0;
    if (!program->captures) {
        if (program->pools[GRAPH].asleep) return;
        const enum vram_status status = vram_capture_begin(pool, stream, VRAM_CAPTURE_RELAXED, NULL);
        passed(program, status);
        program->captures = status == VRAM_OK;
        return;
    }
    const enum vram_status status = vram_capture_end(pool, stream, &graph, NULL);
    passed(program, status);
    if (status != VRAM_OK) leave_capture(program);
    if (graph != 0) assert_int_equal(vr_cu(program->world.sim, graph_destroy, graph), VR_CU_SUCCESS);
    program->captures = false;
    seen.captures++;
}

static void one_operation(struct program *program) {
    const uint64_t kind = draw(program, 1000);
    draw_fault(program);
    if (program->pools[GRAPH].pool != NULL && draw(program, 40 * seldom(program)) == 0) {
        switch_capture(program);
    } else if (draw(program, 150 * seldom(program)) == 0) {
        switch_mem_pool(program);
    } else if (draw(program, anything_sleeps(program) ? 60 : 1000 * seldom(program)) == 0) {
        switch_sleep(program);
    } else if (kind == 0 && draw(program, seldom(program)) == 0) {
        passed(program, vram_empty_cache(program->world.allocator));
    } else if (kind < 6) {
        EXPECT_OK(vram_sim_advance(program->world.sim, 1 + draw(program, 6000000)));
    } else if (kind < 16) {
        work(program);
    } else if (kind < 40 && program->live_count != 0) {
        one_record(program);
    } else if (program->live_count != 0 && (program->live_count == program->most_live || draw(program, 100) < 48)) {
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
    const uint64_t conf = seed / 7 % VR_COUNT_OF(confs);
    *program = (struct program){.random = seed,
                                .faults = seed % 3 == 0,
                                .ahead = conf >= 3,
                                .large = seed % 20 == 10,
                                .repeats = operations >= 1000000 ? seed % 16 != 1 : seed % 2 == 0,
                                .last_number = GRAPH,
                                .streams = 1 + seed % VR_WORLD_STREAMS,
                                .devices = 1 + seed / 2 % 2};
    const struct vr_world_options options = {.sim = {.device_count = program->devices,
                                                     .memory_bytes = memory_bytes[seed % VR_COUNT_OF(memory_bytes)],
                                                     .backed = true,
                                                     .poison_aliases = true,
                                                     .addresses = seed / 5 % 2 == 0 ? VRAM_SIM_RISING : VRAM_SIM_REUSE},
                                             .conf = confs[conf],
                                             .faults = program->faults,
                                             .without_record = true};
    EXPECT_OK(vr_world_open(&program->world, &options));
    struct pool_state *graph = &program->pools[GRAPH];
    graph->number = GRAPH;
    for (size_t i = 2; i < VR_COUNT_OF(program->pools); i++) program->pools[i].number = ++program->last_number;
    program->most_live = program->repeats ? MAX_LIVE / 3 : MAX_LIVE;
    for (size_t i = 0; i < SIZES; i++) program->sizes[i] = draw_any_size(program);
    if (seed % 2 == 0) graph->pool = expect_graph_pool(&program->world);
    if (seed % 8 == 1) EXPECT_OK(vram_pool_create(program->world.allocator, 0, NULL, &graph->pool));
}

// Wakes everything if nothing is live, no graph uses a pool, and no faults are set.
static void wake_all(struct program *program) {
    struct vram_error error = {0};
    if (vram_wake(program->world.allocator, 0, NULL, 0, NULL, &error) != VRAM_OK) fail_msg("%s", error.message);
    assert_int_equal(sleepers(program), 0);
    woke(program, 0, true);
}

static void close_program(struct program *program) {
    if (program->faults) EXPECT_OK(vram_driver_fault_set(program->world.driver, NULL, 0, 0));
    if (program->captures) switch_capture(program);
    while (program->live_count != 0) one_free(program);
    for (size_t i = GRAPH; i < VR_COUNT_OF(program->pools); i++) vram_pool_release(program->pools[i].pool);
    wake_all(program);
    EXPECT_OK(vram_sim_complete_all(program->world.sim));
    hold_promises(program);
    assert_int_equal(program->promise_count, 0);
    EXPECT_OK(vram_empty_cache(program->world.allocator));
    EXPECT_CURRENT(&program->world, reserved_bytes, 0);
    assert_int_equal(vram_sim_memory_used(program->world.sim, 0), 0);
    vr_map_release(&program->users);
    expect_end(&program->world);
}

static void show(uint64_t done, uint64_t seed) {
    printf("%llu operations, seed %llu: %llu captures, %llu sleeps, %.1f GiB kept, %llu requests refused, %llu faults, %llu fences held, "
           "%llu times a page of more than 2 MiB\n",
           (unsigned long long)done, (unsigned long long)seed, (unsigned long long)seen.captures, (unsigned long long)seen.sleeps,
           (double)seen.kept_bytes / (double)VR_GIB, (unsigned long long)seen.refused, (unsigned long long)seen.faults,
           (unsigned long long)seen.promises, (unsigned long long)seen.large_pages);
}

static void programs_keep_their_bytes(void **state) {
    (void)state;
    static struct program program;
    if (THREAD_SANITIZER) skip();
    const uint64_t each = operations < 1000000 ? 2500 : 20000, checks = operations < 1000000 ? 32 : 2000;
    for (uint64_t done = 0, seed = first_seed; done < operations; done += each, seed++) {
        seed_now = seed;
        open_program(&program, seed);
        for (uint64_t i = 0; i < each; i++) {
            operation_now = i;
            one_operation(&program);
            if (i % 16 == 0) hold_promises(&program);
            struct vram_error error = {0};
            if (i % checks == 0 && vram_check(program.world.allocator, &error) != VRAM_OK) fail_msg("%s", error.message);
        }
        close_program(&program);
        if (operations >= 1000000 && seed % 20 == 0) show(done + each, seed);
    }
    show(operations, first_seed);
    const bool enough = operations >= 100000;
    assert_true(!enough || (seen.captures != 0 && seen.sleeps != 0 && seen.kept_bytes != 0 && seen.refused != 0));
    assert_true(!enough || (seen.faults != 0 && seen.promises != 0 && seen.large_pages != 0));
}

int main(int argc, char **argv) {
    if (argc > 1) operations = strtoull(argv[1], NULL, 10);
    if (argc > 2) first_seed = strtoull(argv[2], NULL, 10);
    const struct CMUnitTest tests[] = {cmocka_unit_test(programs_keep_their_bytes)};
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    if (failed != 0) printf("seed %llu, operation %llu\n", (unsigned long long)seed_now, (unsigned long long)operation_now);
    return failed;
}
