// Makes every driver call fail once: repeats a scripted workload with the 1st, 2nd, 3rd ... call refused, until it passes without a
// refusal. After every failed operation the allocator's state must be valid; at the end nothing may be left, and the statuses must be
// plausible.
#include "support/expect.h"

#include "driver/abi.h"
#include "driver/fault/fault.h"
#include "model/recording.h"
#include "support/random.h"
#include "vram/history.h"
#include "vram/sim.h"
#include "vram/snapshot.h"

// The results of one round.
struct round {
    struct vr_world world;
    int32_t result;    // of the refused call
    unsigned failures; // operations that failed
    bool only_memory;  // every failure was OUT_OF_MEMORY
};

// Checks that a failed operation leaves a valid state, has a message, and returns one of the three statuses that a driver's refusal may
// cause.
static bool passed(struct round *round, enum vram_status status) {
    if (status == VRAM_OK) return true;
    round->failures++;
    if (status != VRAM_OUT_OF_MEMORY) round->only_memory = false;
    assert_true(status == VRAM_OUT_OF_MEMORY || status == VRAM_DRIVER || status == VRAM_NO_DRIVER);
    struct vram_error error = {0};
    if (vram_check(round->world.allocator, &error) != VRAM_OK) fail_msg("after %s: %s", vram_status_name(status), error.message);
    return false;
}

static uint64_t get(struct round *round, uint64_t size_bytes, uint64_t stream) {
    uint64_t address = UINT64_MAX;
    if (passed(round, vram_malloc(round->world.allocator, 0, size_bytes, stream, &address))) return address;
    assert_true(address == UINT64_MAX); // unchanged
    return 0;
}

static void put(struct round *round, uint64_t address) {
    // A free that could not record its event keeps the block, which can be freed until that succeeds.
    for (int i = 0; i < 1000 && !passed(round, vram_free(round->world.allocator, address)); i++) continue;
    assert_int_equal(vram_allocated_size(round->world.allocator, address), 0);
}

// A device of 300 MiB: small and large blocks, other streams, releases, an out-of-memory error, a limit, options at run time, uncached
// blocks.
static void workload(struct round *round) {
    struct vram_allocator *allocator = round->world.allocator;
    const uint64_t own = round->world.stream[0][1], other = round->world.stream[0][2];
    const uint64_t small = get(round, 1000, 0), large = get(round, 25 * VR_MIB, own), middle = get(round, 3 * VR_MIB, 0);
    (void)passed(round, vram_record_stream(allocator, large, other));
    (void)passed(round, vram_record_stream(allocator, small, other));
    (void)passed(round, vram_record_stream(allocator, small, own));
    put(round, large);
    put(round, small);
    const uint64_t second = get(round, 30 * VR_MIB, own);
    (void)passed(round, vr_world_complete(&round->world, 0, other));
    const uint64_t third = get(round, 5 * VR_MIB, own);
    (void)passed(round, vram_empty_cache(allocator));
    const uint64_t much = get(round, 120 * VR_MIB, own); // after the release
    put(round, second);
    (void)passed(round, vram_record_stream(allocator, third, other));
    put(round, third);
    const uint64_t most = get(round, 130 * VR_MIB, 0); // needs a retry, which waits for the event
    (void)passed(round, vram_set_memory_fraction(allocator, 0, 0.5));
    const uint64_t refused = get(round, 129 * VR_MIB, 0);
    if (much != 0 || most != 0) assert_int_equal(refused, 0);
    put(round, refused); // not 0 only if faults failed both `much` and `most`, whose memory was then free
    (void)passed(round, vram_set_memory_limit(allocator, 0, UINT64_MAX));
    put(round, much);
    put(round, middle);
    put(round, most);
    (void)passed(round, vram_empty_cache_device(allocator, 0));
    vram_set_caching(allocator, false);
    const uint64_t direct = get(round, 7 * VR_MIB, 0);
    vram_set_caching(allocator, true);
    put(round, direct);
    struct vram_stats stats;
    uint64_t free_bytes = 0, total_bytes = 0;
    (void)passed(round, vram_get_stats(allocator, 0, &stats));
    (void)passed(round, vram_memory_info(allocator, 0, &free_bytes, &total_bytes));
}

// Checks that the history's events add up to the statistics, whatever was refused.
static void expect_history(struct vram_allocator *allocator) {
    struct vram_recording *recording = NULL;
    struct vram_stats stats;
    EXPECT_OK(vram_snapshot(allocator, NULL, &recording, NULL));
    EXPECT_OK(vram_get_stats(allocator, 0, &stats));
    const struct vr_history *history = &vr_recording_model(recording)->histories[0];
    int64_t live = 0, reserved = 0;
    for (size_t i = 0; i < history->count; i++) {
        const int64_t size = (int64_t)history->size_bytes[i];
        switch (history->action[i]) {
        case VR_ACTION_ALLOC: live += size; break;
        case VR_ACTION_FREE_COMPLETED: live -= size; break;
        case VR_ACTION_SEGMENT_ALLOC:
        case VR_ACTION_SEGMENT_MAP: reserved += size; break;
        case VR_ACTION_SEGMENT_FREE:
        case VR_ACTION_SEGMENT_UNMAP: reserved -= size; break;
        default: break;
        }
    }
    assert_int_equal(live, stats.requested_bytes[VRAM_STAT_ALL].current);
    assert_int_equal(reserved, stats.reserved_bytes[VRAM_STAT_ALL].current);
    vram_recording_destroy(recording);
}

// The listener: a recorder, the history, or none; without one, frees with uses take another path.
static bool with_history, unheard;

// The second fault of a pair, as calls after the first; 0: none.
static uint64_t then_nth;

// Returns whether a call was refused.
static bool run_round(const char *conf, const char *call, uint64_t nth, int32_t result, unsigned *failures) {
    struct round round = {.result = result, .only_memory = true};
    const struct vr_world_options options = {.sim = {.memory_bytes = 300 * VR_MIB, .manual_completion = true},
                                             .conf = conf,
                                             .faults = true,
                                             .without_record = with_history || unheard};
    EXPECT_OK(vr_world_open(&round.world, &options));
    const struct vram_history_options history = {.context = VRAM_HISTORY_NONE};
    if (with_history) EXPECT_OK(vram_history_start(round.world.allocator, &history, NULL));
    EXPECT_OK(vram_driver_fault_set(round.world.driver, call, nth, result));
    if (then_nth != 0) vr_fault_then(round.world.driver, then_nth, VR_CU_UNKNOWN);
    workload(&round);
    const bool fault_fired = vram_driver_fault_count(round.world.driver) != 0;
    EXPECT_OK(vram_driver_fault_set(round.world.driver, NULL, 0, 0));
    if (with_history) expect_history(round.world.allocator);

    // Without faults everything works again, and all remaining memory can be released.
    uint64_t address = 0;
    EXPECT_OK(vram_malloc(round.world.allocator, 0, 200 * VR_MIB, 0, &address));
    EXPECT_OK(vram_free(round.world.allocator, address));
    EXPECT_OK(vram_empty_cache(round.world.allocator));
    EXPECT_CURRENT(&round.world, allocated_bytes, 0);
    EXPECT_CURRENT(&round.world, active_bytes, 0);
    EXPECT_CURRENT(&round.world, reserved_bytes, 0);
    *failures = round.failures;
    if (result == VR_CU_OUT_OF_MEMORY && call) assert_true(round.only_memory);
    if (vram_sim_memory_used(round.world.sim, 0) != 0)
        fail_msg("call %llu of %s: memory was lost", (unsigned long long)nth, call ? call : "any");
    const uint64_t left = vr_world_close(&round.world);
    if (left)
        fail_msg("call %llu of %s: %llu objects were left behind", (unsigned long long)nth, call ? call : "any", (unsigned long long)left);
    return fault_fired;
}

static void fail_each(const char *conf, const char *call, int32_t result, uint64_t least) {
    unsigned failures = 0;
    uint64_t nth = 1;
    while (run_round(conf, call, nth, result, &failures)) nth++;
    if (nth - 1 < least) fail_msg("only %llu calls of %s with \"%s\"", (unsigned long long)(nth - 1), call ? call : "any", conf);
    assert_int_equal(failures, 1); // without a fault only the request beyond the limit fails
}

static const char *const confs[] = {"", "expandable_segments:True", "max_split_size_mb:24,garbage_collection_threshold:0.6",
                                    "release_lock_on_cudamalloc:True"};

static void any_call_fails(void **state) {
    (void)state;
    for (size_t i = 0; i < VR_COUNT_OF(confs); i++) {
        fail_each(confs[i], NULL, VR_CU_UNKNOWN, 20);
        fail_each(confs[i], NULL, VR_CU_OUT_OF_MEMORY, 20);
    }
}

static void any_call_fails_with_pages(void **state) {
    (void)state;
    fail_each("paged:True", NULL, VR_CU_UNKNOWN, 20);
    fail_each("paged:True", NULL, VR_CU_OUT_OF_MEMORY, 20);
}

static void any_call_fails_with_a_history(void **state) {
    with_history = true;
    any_call_fails(state);
    with_history = false;
}

static void any_call_fails_with_pages_and_a_history(void **state) {
    with_history = true;
    any_call_fails_with_pages(state);
    with_history = false;
}

static void any_call_fails_unheard(void **state) {
    unheard = true;
    any_call_fails(state);
    any_call_fails_with_pages(state);
    unheard = false;
}

static void allocations_find_no_memory(void **state) {
    (void)state;
    fail_each("", "cuMemAlloc", VR_CU_OUT_OF_MEMORY, 6);
    fail_each("expandable_segments:True", "cuMemCreate", VR_CU_OUT_OF_MEMORY, 6);
    fail_each("expandable_segments:True", "cuMemAddressReserve", VR_CU_OUT_OF_MEMORY, 2);
}

static void releases_and_events_fail(void **state) {
    (void)state;
    fail_each("", "cuMemFree", VR_CU_UNKNOWN, 3);
    fail_each("", "cuEventCreate", VR_CU_UNKNOWN, 1);
    fail_each("", "cuEventRecord", VR_CU_UNKNOWN, 3);
    fail_each("", "cuEventQuery", VR_CU_UNKNOWN, 2);
    fail_each("", "cuEventSynchronize", VR_CU_UNKNOWN, 1);
    fail_each("expandable_segments:True", "cuMemMap", VR_CU_UNKNOWN, 6);
    fail_each("expandable_segments:True", "cuMemSetAccess", VR_CU_UNKNOWN, 3);
    fail_each("expandable_segments:True", "cuMemUnmap", VR_CU_UNKNOWN, 3);
    fail_each("expandable_segments:True", "cuMemRelease", VR_CU_UNKNOWN, 3);
    fail_each("expandable_segments:True", "cuStreamSynchronize", VR_CU_UNKNOWN, 1);
}

// A second call fails soon after the first, while that failure is handled.
static void pairs_of_calls_fail(void **state) {
    (void)state;
    unsigned failures = 0;
    for (size_t i = 0; i < VR_COUNT_OF(confs); i++) {
        for (then_nth = 1; then_nth <= 6; then_nth++) {
            uint64_t nth = 1;
            while (run_round(confs[i], NULL, nth, VR_CU_UNKNOWN, &failures)) nth++;
        }
    }
    then_nth = 0;
}

// Mapping fails, and so does unmapping: the remaining mappings are removed before the addresses are reused.
static void a_mapping_that_stays_is_taken_down_later(void **state) {
    (void)state;
    struct round round = {.only_memory = true};
    const struct vr_world_options options = {.sim = {.memory_bytes = 300 * VR_MIB}, .conf = "expandable_segments:True", .faults = true};
    EXPECT_OK(vr_world_open(&round.world, &options));
    EXPECT_OK(vram_driver_fault_set(round.world.driver, "cuMemSetAccess", 1, VR_CU_UNKNOWN));
    vr_fault_then(round.world.driver, 1, VR_CU_UNKNOWN);
    assert_int_equal(get(&round, 20 * VR_MIB, 0), 0);
    assert_int_equal(vram_driver_fault_count(round.world.driver), 2);
    const uint64_t address = get(&round, 20 * VR_MIB, 0);
    assert_true(address != 0);
    assert_int_equal(vram_sim_memory_used(round.world.sim, 0), 20 * VR_MIB);
    put(&round, address);
    EXPECT_OK(vram_driver_fault_set(round.world.driver, "cuMemUnmap", 1, VR_CU_UNKNOWN)); // also at the end
    expect_end(&round.world);
}

// --- random operations, random refusals ---------------------------------------------------------------------------------

enum { CHAOS_BLOCKS = 48 };

struct chaos {
    struct round round;
    uint64_t random;
    struct vram_block_info live[CHAOS_BLOCKS];
    size_t live_count;
};

static uint64_t draw(struct chaos *chaos, uint64_t limit) { return vr_random_below(&chaos->random, limit); }

static void chaos_malloc(struct chaos *chaos) {
    if (chaos->live_count == CHAOS_BLOCKS) return;
    const uint64_t size = draw(chaos, 2) ? 1 + draw(chaos, 2 * VR_MIB) : 1 + draw(chaos, 40 * VR_MIB);
    struct vram_block_info info;
    const uint64_t address = get(&chaos->round, size, chaos->round.world.stream[0][draw(chaos, 3)]);
    if (address == 0) return;
    EXPECT_OK(vram_get_block_info(chaos->round.world.allocator, address, &info));
    for (size_t i = 0; i < chaos->live_count; i++) {
        const struct vram_block_info *other = &chaos->live[i];
        assert_false(info.address < other->address + other->size_bytes && other->address < info.address + info.size_bytes);
    }
    chaos->live[chaos->live_count++] = info;
}

static void chaos_free(struct chaos *chaos) {
    if (chaos->live_count == 0) return;
    const size_t index = draw(chaos, chaos->live_count);
    const uint64_t address = chaos->live[index].address;
    chaos->live[index] = chaos->live[--chaos->live_count];
    put(&chaos->round, address);
}

static void chaos_step(struct chaos *chaos) {
    static const int32_t results[] = {VR_CU_OUT_OF_MEMORY, VR_CU_UNKNOWN, VR_CU_INVALID_VALUE, VR_CU_ILLEGAL_ADDRESS};
    struct vr_world *world = &chaos->round.world;
    const uint64_t kind = draw(chaos, 100);
    if (kind < 12) {
        EXPECT_OK(vram_driver_fault_set(world->driver, NULL, 1 + draw(chaos, 8), results[draw(chaos, VR_COUNT_OF(results))]));
    } else if (kind < 24 && chaos->live_count > 0) {
        const uint64_t address = chaos->live[draw(chaos, chaos->live_count)].address;
        (void)passed(&chaos->round, vram_record_stream(world->allocator, address, world->stream[0][draw(chaos, VR_WORLD_STREAMS)]));
    } else if (kind < 28) {
        EXPECT_OK(vram_sim_complete_all(world->sim));
    } else if (kind < 31) {
        (void)passed(&chaos->round, vram_empty_cache(world->allocator));
    } else if (kind < 68) {
        chaos_malloc(chaos);
    } else {
        chaos_free(chaos);
    }
}

// percent: share of all calls that is refused, in addition to the chosen ones.
static void run_chaos(const char *conf, uint64_t seed, uint32_t percent) {
    struct chaos chaos = {.random = seed};
    struct vr_world *world = &chaos.round.world;
    const struct vr_world_options options = {
        .sim = {.memory_bytes = 400 * VR_MIB, .manual_completion = true}, .conf = conf, .faults = true, .without_record = seed % 2 == 0};
    EXPECT_OK(vr_world_open(world, &options));
    vr_fault_random(world->driver, percent, seed);
    for (int i = 0; i < 600; i++) chaos_step(&chaos);
    vr_fault_random(world->driver, 0, 0);
    EXPECT_OK(vram_driver_fault_set(world->driver, NULL, 0, 0));
    while (chaos.live_count > 0) chaos_free(&chaos);
    EXPECT_OK(vram_empty_cache(world->allocator));
    EXPECT_CURRENT(world, active_bytes, 0);
    EXPECT_CURRENT(world, reserved_bytes, 0);
    EXPECT_CURRENT(world, segment, 0);
    assert_int_equal(vram_sim_memory_used(world->sim, 0), 0);
    expect_end(world);
}

static void random_refusals(void **state) {
    (void)state;
    for (size_t i = 0; i < VR_COUNT_OF(confs); i++)
        for (uint64_t seed = 1; seed <= 60; seed++) run_chaos(confs[i], seed, 0);
}

static void random_refusals_of_many_calls(void **state) {
    (void)state;
    static const uint32_t percents[] = {1, 3, 10, 30};
    for (size_t i = 0; i < VR_COUNT_OF(confs); i++)
        for (uint64_t seed = 1; seed <= 40; seed++) run_chaos(confs[i], seed, percents[seed % VR_COUNT_OF(percents)]);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_call_fails),
        cmocka_unit_test(any_call_fails_with_pages),
        cmocka_unit_test(any_call_fails_with_pages_and_a_history),
        cmocka_unit_test(any_call_fails_with_a_history),
        cmocka_unit_test(any_call_fails_unheard),
        cmocka_unit_test(allocations_find_no_memory),
        cmocka_unit_test(releases_and_events_fail),
        cmocka_unit_test(pairs_of_calls_fail),
        cmocka_unit_test(a_mapping_that_stays_is_taken_down_later),
        cmocka_unit_test(random_refusals),
        cmocka_unit_test(random_refusals_of_many_calls),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
