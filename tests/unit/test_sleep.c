// Tests vram/sleep.h: what can be suspended and what is refused, levels, requests to suspended pools, frees meanwhile, graphs, and faults:
// all or nothing.
#include "support/expect.h"

#include <stdlib.h>

#include "driver/driver.h"
#include "driver/fault/fault.h"
#include "support/random.h"
#include "vram/sleep.h"
#include "vram/recordings.h"
#include "vram/sim.h"
#include "vram/vram.h"

// The thread sanitizer's shadow memory is at the device addresses.
#if defined(__SANITIZE_THREAD__)
enum { THREAD_SANITIZER = 1 };
#else
enum { THREAD_SANITIZER = 0 };
#endif

static void open_world(struct vr_world *world, const char *conf, uint64_t memory_bytes, bool faults) {
    const struct vr_world_options options = {.sim = {.memory_bytes = memory_bytes, .backed = true}, .conf = conf, .faults = faults};
    EXPECT_OK(vr_world_open(world, &options));
}

static struct vram_pool *tagged(struct vr_world *world, const char *tag) {
    const struct vram_pool_options options = {.tag = tag};
    struct vram_pool *pool = NULL;
    EXPECT_OK(vram_pool_create(world->allocator, 0, &options, &pool));
    return pool;
}

static uint64_t pool_malloc(struct vram_pool *pool, uint64_t size_bytes, uint64_t stream) {
    uint64_t address = 0;
    EXPECT_OK(vram_pool_malloc(pool, size_bytes, stream, &address));
    return address;
}

static void fill(uint64_t address, uint64_t size_bytes, uint64_t seed) {
    uint64_t *words = (uint64_t *)(uintptr_t)address;
    for (uint64_t i = 0; i < size_bytes / 8; i += 512) words[i] = vr_mix64(seed + i);
    words[size_bytes / 8 - 1] = seed;
}

static bool holds(uint64_t address, uint64_t size_bytes, uint64_t seed) {
    const uint64_t *words = (const uint64_t *)(uintptr_t)address;
    if (words[size_bytes / 8 - 1] != seed) return false;
    for (uint64_t i = 0; i < size_bytes / 8 - 1; i += 512)
        if (words[i] != vr_mix64(seed + i)) return false;
    return true;
}

static void expect_sound(struct vr_world *world) {
    struct vram_error error = {0};
    if (vram_check(world->allocator, &error) != VRAM_OK) fail_msg("%s", error.message);
    // Nothing else uses the device's memory, so reserved bytes are all the driver has allocated.
    assert_int_equal(vram_sim_memory_used(world->sim, 0), (uint64_t)expect_stats(world).reserved_bytes[VRAM_STAT_ALL].current);
}

// Two tags and the default pools: one tag is suspended, everything else continues; its addresses and bytes are restored afterwards.
static void keeps(const char *conf) {
    if (THREAD_SANITIZER) skip();
    struct vr_world world;
    open_world(&world, conf, 400 * VR_MIB, false);
    struct vram_pool *weights = tagged(&world, "weights"), *cache = tagged(&world, "kv_cache");
    const uint64_t stream = world.stream[0][1], sizes[] = {512, 40 * VR_MIB, 3 * VR_MIB, 100000};
    uint64_t of_weights[4], of_cache[4];
    for (unsigned i = 0; i < 4; i++) {
        of_weights[i] = pool_malloc(weights, sizes[i], i % 2 ? stream : 0);
        of_cache[i] = pool_malloc(cache, sizes[i], stream);
        fill(of_weights[i], sizes[i], i);
        fill(of_cache[i], sizes[i], 10 + i);
    }
    const uint64_t other = expect_malloc(&world, 5 * VR_MIB, stream);
    fill(other, 5 * VR_MIB, 99);
    const uint64_t before = vram_sim_memory_used(world.sim, 0), live = (uint64_t)expect_stats(&world).allocated_bytes[0].current;
    vr_world_forget(&world);

    const struct vram_sleep_choice choice = {.tag = "weights"};
    struct vram_sleep_result result;
    struct vram_error error;
    EXPECT_OK(vram_sleep(world.allocator, 0, &choice, 1, &result, &error));
    assert_int_equal(result.pools, 1);
    assert_true(result.bytes >= 43 * VR_MIB && result.held_bytes == 0);
    assert_int_equal(vram_sim_memory_used(world.sim, 0), before - result.bytes);
    assert_int_equal(result.copied_bytes, 512 + 40 * VR_MIB + 3 * VR_MIB + 100352);
    EXPECT_CURRENT(&world, allocated_bytes, live);
    expect_sound(&world);
    uint64_t unmapped = 0;
    for (size_t i = 0; i < world.record_count; i++)
        if (world.records[i].vacant && world.records[i].address != 0) unmapped += world.records[i].size_bytes;
    assert_int_equal(unmapped, result.bytes); // a listener gets each range
    struct vram_sleeper sleepers[2];
    size_t count = 0;
    EXPECT_OK(vram_sleepers(world.allocator, 0, sleepers, 2, &count));
    assert_int_equal(count, 1);
    assert_string_equal(sleepers[0].tag, "weights");
    assert_int_equal(sleepers[0].away_bytes, result.bytes);
    assert_int_equal(sleepers[0].live_bytes, result.copied_bytes);
    assert_int_equal(sleepers[0].host_bytes, result.copied_bytes);

    uint64_t word = 0;
    EXPECT_OK(vram_sleep_read(world.allocator, of_weights[1] + 40 * VR_MIB - 8, 8, &word));
    assert_int_equal(word, 1);
    EXPECT_STATUS(INVALID_POINTER, vram_sleep_read(world.allocator, other, 8, &word));

    // A second call does nothing; the memory serves others.
    EXPECT_OK(vram_sleep(world.allocator, 0, &choice, 1, &result, &error));
    assert_int_equal(result.pools, 0);
    assert_true(holds(of_cache[1], sizes[1], 11) && holds(other, 5 * VR_MIB, 99));
    // Paged memory has smaller pages, so more of the device is left.
    const uint64_t guest = expect_malloc(&world, (strstr(conf, "paged") != NULL ? 320 : 280) * VR_MIB, stream);
    EXPECT_STATUS(OUT_OF_MEMORY, vram_wake(world.allocator, 0, &choice, 1, &result, &error));
    assert_non_null(strstr(error.message, "waking needs"));
    expect_sound(&world);
    expect_free(&world, guest);
    EXPECT_OK(vram_wake(world.allocator, 0, &choice, 1, &result, &error)); // releases the cache for it
    assert_int_equal(result.pools, 1);
    for (unsigned i = 0; i < 4; i++) assert_true(holds(of_weights[i], sizes[i], i) && holds(of_cache[i], sizes[i], 10 + i));
    expect_sound(&world);
    EXPECT_CURRENT(&world, allocated_bytes, live);
    // The woken pool works as before.
    expect_free(&world, of_weights[2]);
    const uint64_t again = pool_malloc(weights, sizes[2], 0);
    fill(again, sizes[2], 7);
    for (unsigned i = 0; i < 4; i++) {
        expect_free(&world, i == 2 ? again : of_weights[i]);
        expect_free(&world, of_cache[i]);
    }
    expect_free(&world, other);
    vram_pool_release(weights);
    vram_pool_release(cache);
    EXPECT_OK(vram_empty_cache(world.allocator));
    EXPECT_CURRENT(&world, reserved_bytes, 0);
    expect_end(&world);
}

static void a_tag_sleeps(void **state) {
    (void)state;
    keeps("");
    keeps("expandable_segments:True");
    keeps("sleepable:True");
    keeps("paged:True");
    keeps("expandable_segments:True,pytorch:2.12");
    keeps("pytorch:2.12");
}

// Everything, including the default pools.
static void all_of(const char *conf) {
    if (THREAD_SANITIZER) skip();
    struct vr_world world;
    open_world(&world, conf, 400 * VR_MIB, false);
    struct vram_pool *pool = tagged(&world, "x");
    const uint64_t sizes[] = {700, 30 * VR_MIB, 2 * VR_MIB + 512, 9000, 11 * VR_MIB};
    uint64_t blocks[15];
    for (unsigned i = 0; i < 15; i++) {
        const uint64_t stream = world.stream[0][i % 3];
        blocks[i] = i % 5 == 4 ? pool_malloc(pool, sizes[i % 5], stream) : expect_malloc(&world, sizes[i % 5], stream);
        fill(blocks[i], sizes[i % 5] / 8 * 8, i);
    }
    for (unsigned i = 0; i < 15; i += 4) expect_free(&world, blocks[i]);
    struct vram_sleep_result result;
    EXPECT_OK(vram_sleep(world.allocator, 0, NULL, 0, &result, NULL));
    assert_int_equal(result.pools, 2);
    assert_int_equal(vram_sim_memory_used(world.sim, 0), 0);
    EXPECT_CURRENT(&world, reserved_bytes, 0);
    expect_sound(&world);
    uint64_t address = 0;
    EXPECT_STATUS(ASLEEP, vram_malloc(world.allocator, 0, 512, 0, &address));
    EXPECT_STATUS(ASLEEP, vram_malloc(world.allocator, 0, 5 * VR_MIB, world.stream[0][3], &address));
    EXPECT_STATUS(ASLEEP, vram_pool_malloc(pool, 512, 0, &address));
    EXPECT_OK(vram_empty_cache(world.allocator));
    // Frees are allowed; memory freed meanwhile need not be restored.
    expect_free(&world, blocks[1]);
    expect_free(&world, blocks[5]);
    EXPECT_OK(vram_record_stream(world.allocator, blocks[7], world.stream[0][3]));
    expect_free(&world, blocks[7]);
    expect_sound(&world);
    EXPECT_OK(vram_empty_cache(world.allocator));
    expect_sound(&world);
    EXPECT_OK(vram_wake(world.allocator, 0, NULL, 0, &result, NULL));
    expect_sound(&world);
    for (unsigned i = 0; i < 15; i++) {
        if (i % 4 == 0 || i == 1 || i == 5 || i == 7) continue;
        assert_true(holds(blocks[i], sizes[i % 5] / 8 * 8, i));
        expect_free(&world, blocks[i]);
    }
    // Suspended with nothing live.
    EXPECT_OK(vram_sleep(world.allocator, 0, NULL, 0, &result, NULL));
    EXPECT_OK(vram_wake(world.allocator, 0, NULL, 0, &result, NULL));
    blocks[0] = expect_malloc(&world, 4 * VR_MIB, 0);
    blocks[1] = pool_malloc(pool, 4 * VR_MIB, 0);
    EXPECT_OK(vram_sleep(world.allocator, 0, NULL, 0, &result, NULL));
    expect_end(&world); // destroyed while suspended
}

static void all_sleep(void **state) {
    (void)state;
    all_of("sleepable:True");
    all_of("expandable_segments:True");
    all_of("paged:True");
    all_of("sleepable:True,max_split_size_mb:25");
}

static void levels(void **state) {
    (void)state;
    if (THREAD_SANITIZER) skip();
    struct vr_world world;
    open_world(&world, "", 400 * VR_MIB, false);
    struct vram_pool *zero = tagged(&world, "zero"), *discard = tagged(&world, "discard");
    const uint64_t a = pool_malloc(zero, 30 * VR_MIB, 0), b = pool_malloc(discard, 30 * VR_MIB, 0);
    fill(a, 30 * VR_MIB, 1);
    fill(b, 30 * VR_MIB, 2);
    const struct vram_sleep_choice choices[] = {{.tag = "zero", .level = VRAM_SLEEP_ZERO, .wakes = true},
                                                {.tag = "discard", .level = VRAM_SLEEP_DISCARD}};
    struct vram_sleep_result result;
    EXPECT_OK(vram_sleep(world.allocator, 0, choices, 2, &result, NULL));
    assert_int_equal(result.copied_bytes, 0);
    assert_int_equal(vram_sim_memory_used(world.sim, 0), 0);
    // A request wakes the pool that allows it.
    const uint64_t c = pool_malloc(zero, VR_MIB, 0);
    for (uint64_t i = 0; i < 30 * VR_MIB / 8; i += 64) assert_int_equal(((const uint64_t *)(uintptr_t)a)[i], 0);
    uint64_t address = 0;
    EXPECT_STATUS(ASLEEP, vram_pool_malloc(discard, VR_MIB, 0, &address));
    expect_free(&world, b);
    vram_pool_release(discard); // ends while suspended
    expect_sound(&world);
    EXPECT_OK(vram_empty_cache(world.allocator));
    size_t count = 1;
    EXPECT_OK(vram_sleepers(world.allocator, 0, NULL, 0, &count));
    assert_int_equal(count, 0);
    expect_free(&world, a);
    expect_free(&world, c);
    vram_pool_release(zero);
    expect_end(&world);
}

static uint64_t lend(uint64_t size_bytes, uint32_t device, uint64_t stream, void *user) {
    (void)size_bytes, (void)device, (void)stream;
    return *(const uint64_t *)user;
}
static void take_back(uint64_t address, uint64_t size_bytes, uint32_t device, uint64_t stream, void *user) {
    (void)address, (void)size_bytes, (void)device, (void)stream, (void)user;
}

static void expect_refused(struct vr_world *world, const struct vram_sleep_choice *choice, enum vram_status status, const char *why) {
    struct vram_error error = {0};
    struct vram_sleep_result result = {.pools = 9};
    assert_string_equal(vram_status_name(vram_sleep(world->allocator, 0, choice, 1, &result, &error)), vram_status_name(status));
    if (strstr(error.message, why) == NULL) fail_msg("\"%s\" does not say \"%s\"", error.message, why);
    assert_int_equal(result.pools, 0);
    expect_sound(world);
}

static void what_cannot_is_refused(void **state) {
    (void)state;
    if (THREAD_SANITIZER) skip();
    struct vr_world world;
    open_world(&world, "", 400 * VR_MIB, false);
    uint64_t elsewhere = 0x700000000000;
    const struct vram_pool_options options = {.allocate = lend, .deallocate = take_back, .user = &elsewhere, .tag = "lent"};
    struct vram_pool *lent = NULL, *graph_pool = tagged(&world, "g");
    EXPECT_OK(vram_pool_create(world.allocator, 0, &options, &lent));
    const uint64_t own = expect_malloc(&world, VR_MIB, 0);
    expect_refused(&world, &(struct vram_sleep_choice){.default_pools = true}, VRAM_UNSUPPORTED, "cuMemAlloc allocated it");
    expect_refused(&world, &(struct vram_sleep_choice){.tag = "wieghts"}, VRAM_INVALID_ARGUMENT, "no pool on device 0 has the tag");
    expect_refused(&world, &(struct vram_sleep_choice){.level = (enum vram_sleep_level)3}, VRAM_INVALID_ARGUMENT, "level");
    const uint64_t stream = world.stream[0][1];
    EXPECT_OK(vram_capture_begin(graph_pool, stream, VRAM_CAPTURE_RELAXED, NULL));
    expect_refused(&world, &(struct vram_sleep_choice){.tag = "g"}, VRAM_INVALID_ARGUMENT, "capture");
    uint64_t graph = 0;
    EXPECT_OK(vram_capture_end(graph_pool, stream, &graph, NULL));
    assert_int_equal(vr_cu(world.sim, graph_destroy, graph), VR_CU_SUCCESS);
    const uint64_t theirs = pool_malloc(lent, 3 * VR_MIB, 0);
    struct vram_error error;
    EXPECT_STATUS(UNSUPPORTED, vram_sleep(world.allocator, 0, &(struct vram_sleep_choice){.tag = "lent"}, 1, NULL, &error));
    assert_non_null(strstr(error.message, "own functions allocated it"));
    expect_free(&world, theirs);
    expect_free(&world, own);
    char long_tag[VRAM_TAG_BYTES + 1];
    memset(long_tag, 'x', sizeof long_tag - 1);
    long_tag[sizeof long_tag - 1] = '\0';
    EXPECT_STATUS(INVALID_ARGUMENT, vram_pool_set_tag(lent, long_tag));
    EXPECT_OK(vram_pool_set_tag(lent, "other"));
    char tag[8];
    assert_int_equal(vram_pool_tag(lent, tag, sizeof tag), 5);
    assert_string_equal(tag, "other");
    vram_pool_release(lent);
    vram_pool_release(graph_pool);
    expect_end(&world);
}

// Memory shared with another process stays awake; suspended memory cannot be exported.
static void shared_with_others(const char *conf) {
    if (THREAD_SANITIZER) skip();
    struct vr_world world;
    open_world(&world, conf, 400 * VR_MIB, false);
    const uint64_t block = expect_malloc(&world, 5 * VR_MIB, 0);
    fill(block, 5 * VR_MIB, 3);
    size_t size = 0;
    EXPECT_OK(vram_sleep(world.allocator, 0, NULL, 0, NULL, NULL));
    EXPECT_STATUS(ASLEEP, vram_export_size(world.allocator, block, &size));
    EXPECT_OK(vram_wake(world.allocator, 0, NULL, 0, NULL, NULL));
    EXPECT_OK(vram_export_size(world.allocator, block, &size));
    void *handle = malloc(size);
    EXPECT_OK(vram_export(world.allocator, block, handle, size, &size, NULL));
    free(handle);
    struct vram_error error = {0};
    EXPECT_STATUS(UNSUPPORTED, vram_sleep(world.allocator, 0, NULL, 0, NULL, &error));
    assert_non_null(strstr(error.message, "other processes"));
    assert_true(holds(block, 5 * VR_MIB, 3));
    expect_free(&world, block);
    expect_end(&world);
}

static void shared_memory(void **state) {
    (void)state;
    shared_with_others("expandable_segments:True");
    shared_with_others("paged:True");
}

// --- reports -----------------------------------------------------------------------------------------------------------------------------

struct text {
    char *bytes;
    size_t length;
};

static bool collect(void *user, const char *bytes, size_t length) {
    struct text *text = user;
    text->bytes = realloc(text->bytes, text->length + length + 1);
    assert_non_null(text->bytes);
    memcpy(text->bytes + text->length, bytes, length);
    text->length += length;
    text->bytes[text->length] = '\0';
    return true;
}

static void snapshots_and_histories_tell(void **state) {
    (void)state;
    if (THREAD_SANITIZER) skip();
    struct vr_world world;
    const struct vr_world_options options = {
        .sim = {.memory_bytes = 400 * VR_MIB, .backed = true}, .conf = "expandable_segments:True", .without_record = true};
    EXPECT_OK(vr_world_open(&world, &options));
    EXPECT_OK(vram_history_start(world.allocator, &(struct vram_history_options){.context = VRAM_HISTORY_NONE}, NULL));
    struct vram_pool *pool = tagged(&world, "x");
    const uint64_t block = pool_malloc(pool, 30 * VR_MIB, 0), other = expect_malloc(&world, 5000, 0);
    EXPECT_OK(vram_sleep(world.allocator, 0, &(struct vram_sleep_choice){.tag = "x"}, 1, NULL, NULL));
    struct text asleep = {0}, awake = {0};
    EXPECT_OK(vram_snapshot_write(world.allocator, NULL, VRAM_FORMAT_JSON, collect, &asleep, NULL));
    assert_non_null(strstr(asleep.bytes, "\"asleep\":true"));
    assert_non_null(strstr(asleep.bytes, "asleep: pool (0, 1)"));
    assert_null(strstr(asleep.bytes, "segment_unmap"));
    struct vram_recording *recording = NULL;
    struct vram_error error;
    EXPECT_OK(vram_recording_read_memory(asleep.bytes, asleep.length, NULL, &recording, &error));
    vram_recording_destroy(recording);
    // The pool's blocks still belong to a segment, and a failing request names what is suspended.
    uint64_t address = 0;
    EXPECT_STATUS(OUT_OF_MEMORY, vram_malloc(world.allocator, 0, VR_GIB, 0, &address));
    struct vram_oom oom;
    assert_true(vram_last_oom(&oom));
    assert_int_equal(oom.asleep_bytes, 30 * VR_MIB);
    char text[1024];
    (void)vram_oom_text(&oom, text, sizeof text);
    assert_non_null(strstr(text, "30.00 MiB more is suspended"));
    EXPECT_OK(vram_wake(world.allocator, 0, NULL, 0, NULL, NULL));
    EXPECT_OK(vram_snapshot_write(world.allocator, NULL, VRAM_FORMAT_JSON, collect, &awake, NULL));
    assert_null(strstr(awake.bytes, "\"asleep\":"));
    free(asleep.bytes);
    free(awake.bytes);
    expect_free(&world, block);
    expect_free(&world, other);
    vram_pool_release(pool);
    expect_end(&world);
}

// --- graphs ------------------------------------------------------------------------------------------------------------------------------

struct kernel {
    uint64_t from, to, words;
};

static void add_one(void *argument) {
    const struct kernel *kernel = argument;
    const uint64_t *from = (const uint64_t *)(uintptr_t)kernel->from;
    uint64_t *to = (uint64_t *)(uintptr_t)kernel->to;
    for (uint64_t i = 0; i < kernel->words; i++) to[i] = from[i] + 1;
}

static void graphs_launch_after_waking(const char *conf) {
    if (THREAD_SANITIZER) skip();
    struct vr_world world;
    open_world(&world, conf, 400 * VR_MIB, false);
    struct vram_pool *pool = tagged(&world, "graph");
    const uint64_t stream = world.stream[0][1], bytes = 3 * VR_MIB;
    const uint64_t input = pool_malloc(pool, bytes, stream);
    const struct vram_graph_options options = {.pool = pool};
    struct vram_graph *graph = NULL;
    EXPECT_OK(vram_graph_begin(world.allocator, 0, stream, &options, &graph, NULL));
    const uint64_t middle = expect_malloc(&world, bytes, stream), output = expect_malloc(&world, bytes, stream);
    struct kernel first = {input, middle, bytes / 8}, second = {middle, output, bytes / 8};
    EXPECT_OK(vram_sim_launch(world.sim, 0, stream, add_one, &first, 1000));
    EXPECT_OK(vram_sim_launch(world.sim, 0, stream, add_one, &second, 1000));
    expect_free(&world, middle); // the graph keeps using it
    EXPECT_OK(vram_graph_end(graph, NULL));
    for (int round = 0; round < 5; round++) {
        for (uint64_t i = 0; i < bytes / 8; i++) ((uint64_t *)(uintptr_t)input)[i] = i + (uint64_t)round;
        EXPECT_OK(vram_sleep(world.allocator, 0, &(struct vram_sleep_choice){.tag = "graph"}, 1, NULL, NULL));
        assert_int_equal(vram_sim_memory_used(world.sim, 0), 0);
        expect_sound(&world);
        EXPECT_OK(vram_wake(world.allocator, 0, &(struct vram_sleep_choice){.tag = "graph"}, 1, NULL, NULL));
        EXPECT_OK(vram_graph_launch(graph, stream, NULL));
        assert_int_equal(vr_cu(world.sim, stream_synchronize, stream), VR_CU_SUCCESS);
        for (uint64_t i = 0; i < bytes / 8; i++) assert_int_equal(((const uint64_t *)(uintptr_t)output)[i], i + (uint64_t)round + 2);
    }
    vram_graph_destroy(graph);
    expect_free(&world, input);
    expect_free(&world, output);
    vram_pool_release(pool);
    EXPECT_OK(vram_empty_cache(world.allocator));
    expect_end(&world);
}

static void graphs(void **state) {
    (void)state;
    graphs_launch_after_waking("");
    graphs_launch_after_waking("expandable_segments:True");
    graphs_launch_after_waking("paged:True");
}

// --- faults -----------------------------------------------------------------------------------------------------------------------------

enum { BLOCKS = 7 };

// One round: blocks, suspending, frees, waking, with the nth call refused and another one after it. Returns whether a fault occurred.
static bool round_with_faults(const char *conf, uint64_t nth, int32_t result, uint64_t then, bool in_wake) {
    struct vr_world world;
    open_world(&world, conf, 400 * VR_MIB, true);
    struct vram_pool *pool = tagged(&world, "x");
    uint64_t blocks[BLOCKS], sizes[BLOCKS];
    for (unsigned i = 0; i < BLOCKS; i++) {
        sizes[i] = i % 3 == 0 ? 4096 : i % 3 == 1 ? 3 * VR_MIB : 1500 * VR_KIB;
        blocks[i] = i < 5 ? pool_malloc(pool, sizes[i], 0) : expect_malloc(&world, sizes[i], world.stream[0][1]);
        fill(blocks[i], sizes[i], i);
    }
    const uint64_t allocated = (uint64_t)expect_stats(&world).allocated_bytes[0].current;
    const struct vram_sleep_choice choices[] = {{.tag = "x"}, {.default_pools = true}};
    enum vram_status status = VRAM_OK;
    for (int step = 0; step < 2; step++) {
        if (step == (in_wake ? 1 : 0)) {
            EXPECT_OK(vram_driver_fault_set(world.driver, NULL, nth, result));
            if (then != 0) vr_fault_then(world.driver, then, VR_CU_UNKNOWN);
        }
        struct vram_error error = {0};
        size_t count = 0;
        status =
            step == 0 ? vram_sleep(world.allocator, 0, choices, 2, NULL, &error) : vram_wake(world.allocator, 0, choices, 2, NULL, &error);
        EXPECT_OK(vram_sleepers(world.allocator, 0, NULL, 0, &count));
        if (vram_check(world.allocator, &error) != VRAM_OK) fail_msg("%s, call %u: %s", conf, (unsigned)nth, error.message);
        // All or nothing, in either case.
        const bool asleep = (step == 0) == (status == VRAM_OK);
        if (count != (asleep ? 2u : 0u))
            fail_msg("%s, call %u, %s: %u sleep", conf, (unsigned)nth, vram_status_name(status), (unsigned)count);
        if (status != VRAM_OK) assert_true(error.message[0] != '\0');
        for (unsigned i = 0; i < BLOCKS && !asleep; i++)
            if (!holds(blocks[i], sizes[i], i)) fail_msg("%s, call %u: block %u lost its bytes", conf, (unsigned)nth, i);
        EXPECT_CURRENT(&world, allocated_bytes, allocated);
        if (status != VRAM_OK) break;
    }
    const bool struck = vram_driver_fault_count(world.driver) != 0;
    EXPECT_OK(vram_driver_fault_set(world.driver, NULL, 0, 0));
    // The call that failed succeeds now.
    EXPECT_OK(vram_sleep(world.allocator, 0, choices, 2, NULL, NULL));
    EXPECT_OK(vram_empty_cache(world.allocator)); // refused releases are completed
    EXPECT_OK(vram_wake(world.allocator, 0, choices, 2, NULL, NULL));
    for (unsigned i = 0; i < BLOCKS; i++) {
        if (!holds(blocks[i], sizes[i], i)) fail_msg("%s, call %u: block %u lost its bytes later", conf, (unsigned)nth, i);
        expect_free(&world, blocks[i]);
    }
    vram_pool_release(pool);
    EXPECT_OK(vram_empty_cache(world.allocator));
    EXPECT_CURRENT(&world, reserved_bytes, 0);
    assert_int_equal(vram_sim_memory_used(world.sim, 0), 0);
    expect_end(&world);
    return struck;
}

static void fail_each(const char *conf) {
    static const int32_t results[] = {VR_CU_UNKNOWN, VR_CU_OUT_OF_MEMORY};
    if (THREAD_SANITIZER) skip();
    for (unsigned i = 0; i < VR_COUNT_OF(results); i++) {
        for (int in_wake = 0; in_wake < 2; in_wake++) {
            uint64_t nth = 1;
            while (round_with_faults(conf, nth, results[i], 0, in_wake != 0)) nth++;
            assert_true(nth > 20);
            for (uint64_t then = 1; then < 3 && i == 0; then++)
                for (nth = 1; round_with_faults(conf, nth, results[i], then, in_wake != 0);) nth += 3;
        }
    }
}

static void every_call_fails(void **state) {
    (void)state;
    fail_each("sleepable:True");
    fail_each("expandable_segments:True");
    fail_each("paged:True");
}

// A failed request left a reservation without a page. It is removed while the pool is suspended, and the pool continues with its other
// segment.
static void empty_reservations_are_nothing(void **state) {
    (void)state;
    struct vr_world world;
    uint64_t refused = 0;
    open_world(&world, "expandable_segments:True", 64 * VR_MIB, false);
    struct vram_pool *pool = tagged(&world, "weights");
    const uint64_t block = pool_malloc(pool, 30 * VR_MIB, world.stream[0][1]);
    EXPECT_STATUS(OUT_OF_MEMORY, vram_pool_malloc(pool, 50 * VR_MIB, world.stream[0][2], &refused));
    const struct vram_sleep_choice choice = {.tag = "weights", .level = VRAM_SLEEP_DISCARD};
    EXPECT_OK(vram_sleep(world.allocator, 0, &choice, 1, NULL, NULL));
    EXPECT_OK(vram_wake(world.allocator, 0, &choice, 1, NULL, NULL));
    vram_pool_release(pool);
    EXPECT_OK(vram_empty_cache(world.allocator));
    EXPECT_CURRENT(&world, allocated_bytes, 30 * VR_MIB);
    EXPECT_CURRENT(&world, reserved_bytes, 40 * VR_MIB);
    expect_free(&world, block);
    EXPECT_OK(vram_empty_cache(world.allocator));
    EXPECT_CURRENT(&world, reserved_bytes, 0);
    expect_end(&world);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_tag_sleeps),
        cmocka_unit_test(all_sleep),
        cmocka_unit_test(levels),
        cmocka_unit_test(what_cannot_is_refused),
        cmocka_unit_test(shared_memory),
        cmocka_unit_test(snapshots_and_histories_tell),
        cmocka_unit_test(graphs),
        cmocka_unit_test(every_call_fails),
        cmocka_unit_test(empty_reservations_are_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
