// Tests memory made of pages that may be mapped at several addresses: paged:True.
#include "support/captures.h"
#include "support/random.h"

#include "driver/abi.h"
#include "driver/fault/fault.h"
#include "vram/sim.h"

enum { MIB = 1 << 20, MILLISECOND = 1000000, MAX_LIVE = 96 };
#define GIB ((uint64_t)1 << 30)

static const char *const calls_of_memory[] = {"cuMemCreate", "cuMemRelease",   "cuMemMap",
                                              "cuMemUnmap",  "cuMemSetAccess", "cuMemAddressReserve"};

// Returns the number of driver calls for memory.
static uint64_t driver_calls(const struct vr_world *world) {
    uint64_t sum = 0, count = 0, cost = 0;
    const char *name = NULL;
    for (uint32_t i = 0; vram_sim_call_at(world->sim, i, &name, &count, &cost); i++) {
        for (size_t k = 0; k < VR_COUNT_OF(calls_of_memory); k++) sum += strcmp(name, calls_of_memory[k]) == 0 ? count : 0;
    }
    return sum;
}

static void open_world(struct vr_world *world, uint64_t memory_bytes) {
    const struct vr_world_options options = {.sim = {.memory_bytes = memory_bytes}, .conf = "paged:True"};
    EXPECT_OK(vr_world_open(world, &options));
}

static void expect_sound(struct vr_world *world) {
    struct vram_error error = {0};
    if (vram_check(world->allocator, &error) != VRAM_OK) fail_msg("%s", error.message);
}

// --- sources of memory ------------------------------------------------------------------------------------------------------------------

static void neighbours_share_a_page(void **state) {
    (void)state;
    struct vr_world world;
    open_world(&world, 0);
    const uint64_t a = expect_malloc(&world, 5 * MIB, 0), b = expect_malloc(&world, 5 * MIB, 0);
    assert_int_equal(b, a + 5 * MIB);
    EXPECT_CURRENT(&world, reserved_bytes, 10 * MIB);
    EXPECT_CURRENT(&world, allocated_bytes, 10 * MIB);
    expect_sound(&world);
    expect_free(&world, a);
    expect_free(&world, b);
    EXPECT_OK(vram_empty_cache(world.allocator));
    EXPECT_CURRENT(&world, reserved_bytes, 0);
    assert_int_equal(vram_sim_memory_used(world.sim, 0), 0);
    expect_end(&world);
}

// A request for more memory than the device has does not take page after page until nothing is left for others. A request's bytes count as
// reserved when its pages are made: the number of pages does not grow with the bytes.
static void a_large_request_has_large_pages(void **state) {
    (void)state;
    struct vr_world world;
    open_world(&world, 512 * GIB);
    const uint64_t before = driver_calls(&world);
    (void)expect_malloc(&world, 256 * GIB, 0);
    const uint64_t pages = 256 * GIB / (64 * MIB);
    assert_true(driver_calls(&world) - before < 4 * pages);
    expect_sound(&world);
    expect_end(&world);
}

static void what_does_not_fit_is_not_begun(void **state) {
    (void)state;
    struct vr_world world;
    open_world(&world, 1024ull * MIB);
    const uint64_t kept = expect_malloc(&world, 300 * MIB, 0);
    uint64_t free_bytes = 0, total_bytes = 0, address = 0;
    EXPECT_OK(vram_memory_info(world.allocator, 0, &free_bytes, &total_bytes));
    const uint64_t sizes[] = {free_bytes + 2 * MIB, total_bytes, 1ull << 42};
    for (size_t i = 0; i < VR_COUNT_OF(sizes); i++) {
        const uint64_t before = driver_calls(&world);
        assert_int_equal(vram_malloc(world.allocator, 0, sizes[i], 0, &address), VRAM_OUT_OF_MEMORY);
        assert_int_equal(driver_calls(&world), before);
    }
    // A request that fits to the last page is served.
    EXPECT_OK(vram_malloc(world.allocator, 0, free_bytes, 0, &address));
    expect_sound(&world);
    expect_free(&world, address);
    expect_free(&world, kept);
    expect_end(&world);
}

// Two blocks freed separately form a longer one, without new memory.
static void free_pages_join(void **state) {
    (void)state;
    struct vr_world world;
    open_world(&world, 0);
    uint64_t block[5];
    for (int i = 0; i < 5; i++) block[i] = expect_malloc(&world, 8 * MIB, 0);
    EXPECT_CURRENT(&world, reserved_bytes, 40 * MIB);
    expect_free(&world, block[0]);
    expect_free(&world, block[2]);
    expect_free(&world, block[4]);
    const uint64_t joined = expect_malloc(&world, 24 * MIB, 0);
    EXPECT_CURRENT(&world, reserved_bytes, 40 * MIB);
    expect_sound(&world);
    expect_free(&world, joined);
    // Both sizes have their slots now, so no further driver call is needed.
    const uint64_t before = driver_calls(&world);
    for (int round = 0; round < 10; round++) {
        for (int i = 0; i < 3; i++) block[i * 2] = expect_malloc(&world, 8 * MIB, 0);
        for (int i = 0; i < 3; i++) expect_free(&world, block[i * 2]);
        expect_free(&world, expect_malloc(&world, 24 * MIB, 0));
    }
    assert_int_equal(driver_calls(&world), before);
    expect_sound(&world);
    expect_end(&world);
}

// Remaining parts of partly used pages are also used.
static void ends_are_borrowed(void **state) {
    (void)state;
    struct vr_world world;
    open_world(&world, 0);
    const uint64_t a = expect_malloc(&world, 3 * MIB, 0), b = expect_malloc(&world, 3 * MIB, 0), c = expect_malloc(&world, 4 * MIB, 0);
    EXPECT_CURRENT(&world, reserved_bytes, 10 * MIB);
    expect_free(&world, b);
    // 3 MiB is free (a page and a half); 4 MiB needs one more page, not two.
    const uint64_t d = expect_malloc(&world, 4 * MIB, 0);
    EXPECT_CURRENT(&world, reserved_bytes, 12 * MIB);
    expect_sound(&world);
    expect_free(&world, a);
    expect_free(&world, c);
    expect_free(&world, d);
    expect_end(&world);
}

// A page larger than what is missing leaves smaller ones unused.
static void small_pages_stay_free(void **state) {
    (void)state;
    struct vr_world world;
    open_world(&world, 0);
    const uint64_t base = expect_malloc(&world, 1024 * (uint64_t)MIB, 0); // pages may have 4 MiB from now on
    uint64_t block[6];
    for (int i = 0; i < 6; i++) block[i] = expect_malloc(&world, (i < 2 ? 2 : 4) * MIB, 0);
    for (int i = 0; i < 6; i += 2) expect_free(&world, block[i]);
    EXPECT_CURRENT(&world, reserved_bytes, 1044 * (int64_t)MIB);
    EXPECT_OK(vram_set_memory_limit(world.allocator, 0, 1044 * (uint64_t)MIB));
    const uint64_t joined = expect_malloc(&world, 7 * MIB, 0), little = expect_malloc(&world, 1000, 0);
    EXPECT_CURRENT(&world, reserved_bytes, 1044 * (int64_t)MIB);
    expect_sound(&world);
    for (int i = 1; i < 6; i += 2) expect_free(&world, block[i]);
    expect_free(&world, joined);
    expect_free(&world, little);
    expect_free(&world, base);
    expect_end(&world);
}

// When memory is nearly exhausted, ends of pages are used before whole pages.
static void ends_go_first_where_memory_is_scarce(void **state) {
    (void)state;
    static const uint64_t halves[] = {5, 3, 4, 3, 5, 4, 4, 4, 4, 4, 4}; // in halves of a MiB
    static const bool freed[] = {false, true, false, true, false, true, false, true, false, true, false};
    struct vr_world world;
    open_world(&world, 22 * MIB);
    uint64_t block[VR_COUNT_OF(halves)];
    for (size_t i = 0; i < VR_COUNT_OF(halves); i++) block[i] = expect_malloc(&world, halves[i] * MIB / 2, 0);
    for (size_t i = 0; i < VR_COUNT_OF(halves); i++)
        if (freed[i]) expect_free(&world, block[i]);
    // 1.5 MiB + 2 + 1.5, not two whole pages and a piece.
    const uint64_t a = expect_malloc(&world, 5 * MIB, 0), b = expect_malloc(&world, 4 * MIB, 0);
    EXPECT_CURRENT(&world, reserved_bytes, 22 * MIB);
    expect_sound(&world);
    for (size_t i = 0; i < VR_COUNT_OF(halves); i++)
        if (!freed[i]) expect_free(&world, block[i]);
    expect_free(&world, a);
    expect_free(&world, b);
    expect_end(&world);
}

// However many slots of a size are blocked, the free one is found, and all of them once nothing blocks them.
static void blocked_slots_are_passed_by(void **state) {
    (void)state;
    enum { MANY = 200 };
    struct vr_world world;
    open_world(&world, 0);
    uint64_t block[MANY];
    for (int i = 0; i < MANY; i++) block[i] = expect_malloc(&world, 2 * MIB, 0);
    for (int i = 0; i < MANY; i++) expect_free(&world, block[i]);
    const uint64_t whole = expect_malloc(&world, (MANY - 1) * 2 * (uint64_t)MIB, 0), last = expect_malloc(&world, 2 * MIB, 0);
    expect_sound(&world);
    const uint64_t before = driver_calls(&world);
    expect_free(&world, whole);
    expect_free(&world, last);
    for (int i = 0; i < MANY; i++) block[i] = expect_malloc(&world, 2 * MIB, 0);
    EXPECT_CURRENT(&world, reserved_bytes, MANY * 2 * (int64_t)MIB);
    assert_int_equal(driver_calls(&world), before);
    expect_sound(&world);
    for (int i = 0; i < MANY; i++) expect_free(&world, block[i]);
    expect_end(&world);
}

// --- streams ----------------------------------------------------------------------------------------------------------------------------

static void pages_change_streams_behind_a_fence(void **state) {
    (void)state;
    struct vr_world world;
    open_world(&world, 100 * MIB);
    const uint64_t a = world.stream[0][1], b = world.stream[0][2];
    expect_free(&world, expect_malloc(&world, 40 * MIB, a));
    // Idle: the pages change streams without waiting.
    const uint64_t first = expect_malloc(&world, 40 * MIB, b);
    EXPECT_CURRENT(&world, reserved_bytes, 40 * MIB);
    expect_sound(&world);
    // While the stream is busy, requests get new pages as long as there are any.
    EXPECT_OK(vram_sim_busy(world.sim, 0, b, 50 * MILLISECOND));
    expect_free(&world, first);
    const uint64_t second = expect_malloc(&world, 40 * MIB, a);
    EXPECT_CURRENT(&world, reserved_bytes, 80 * MIB);
    // No more pages: the stream waits, the host does not.
    const uint64_t before = vram_sim_clock_ns(world.sim);
    const uint64_t third = expect_malloc(&world, 40 * MIB, a);
    EXPECT_CURRENT(&world, reserved_bytes, 80 * MIB);
    assert_true(vram_sim_clock_ns(world.sim) < before + 40 * MILLISECOND);
    assert_int_equal(vr_cu(world.sim, stream_query, a), VR_CU_NOT_READY);
    expect_sound(&world);
    expect_free(&world, second);
    expect_free(&world, third);
    expect_end(&world);
}

// An allocation and free through the fast path also count as a use of the pages.
static void a_use_between_two_looks_is_waited_for(void **state) {
    (void)state;
    struct vr_world world;
    open_world(&world, 0);
    const uint64_t a = world.stream[0][1], b = world.stream[0][2];
    const uint64_t first = expect_malloc(&world, 20 * MIB, a), second = expect_malloc(&world, 20 * MIB, a);
    expect_free(&world, first);
    expect_free(&world, second);
    const uint64_t moved = expect_malloc(&world, 20 * MIB, b); // the pages of one of them: all of a's work was done
    EXPECT_CURRENT(&world, reserved_bytes, 40 * MIB);
    const uint64_t again = expect_malloc(&world, 20 * MIB, a);
    assert_true(again == first || again == second);
    EXPECT_CURRENT(&world, reserved_bytes, 40 * MIB);
    EXPECT_OK(vram_sim_busy(world.sim, 0, a, 50 * MILLISECOND));
    expect_free(&world, again);
    const uint64_t other = expect_malloc(&world, 20 * MIB, b);
    EXPECT_CURRENT(&world, reserved_bytes, 60 * MIB);
    expect_free(&world, moved);
    expect_free(&world, other);
    expect_end(&world);
}

// --- limits, releases -------------------------------------------------------------------------------------------------------------------

static void a_limit_holds(void **state) {
    (void)state;
    struct vr_world world;
    open_world(&world, 0);
    EXPECT_OK(vram_set_memory_limit(world.allocator, 0, 64 * MIB));
    const uint64_t a = expect_malloc(&world, 60 * MIB, 0);
    uint64_t address = 7;
    EXPECT_STATUS(OUT_OF_MEMORY, vram_malloc(world.allocator, 0, 5 * MIB, 0, &address));
    assert_int_equal(address, 7);
    expect_free(&world, a);
    // The small pool takes free pages from the large pool.
    const uint64_t b = expect_malloc(&world, 62 * MIB, 0);
    expect_free(&world, b);
    uint64_t small[16];
    for (int i = 0; i < 16; i++) small[i] = expect_malloc(&world, MIB, 0);
    expect_sound(&world);
    for (int i = 0; i < 16; i++) expect_free(&world, small[i]);
    const uint64_t c = expect_malloc(&world, 64 * MIB, 0); // and back
    expect_free(&world, c);
    expect_end(&world);
}

// --- random operations ------------------------------------------------------------------------------------------------------------------

struct live_block {
    uint64_t address, size_bytes, pattern;
};

// The mapped memory according to the records, as a bit per 512 bytes of the simulator's addresses.
struct map_of_records {
    unsigned char *mapped;
    uint64_t base, bytes;
    bool wrong;
};

struct random_run {
    struct vr_world world;
    struct map_of_records records;
    uint64_t random;
    struct live_block live[MAX_LIVE];
    size_t live_count;
    uint32_t devices;       // 0: one
    struct vram_pool *pool; // pool of the graph captured occasionally on device 0's stream 1; NULL: none
    bool captures;
    bool faults;
    uint64_t nth; // calls until the next fault
};

static uint64_t draw(struct random_run *run, uint64_t limit) { return vr_random_below(&run->random, limit); }

static uint64_t draw_size(struct random_run *run) {
    static const uint64_t common[] = {2 * MIB, 3 * MIB + 512, 5 * MIB, 12 * MIB + 1024, 20 * MIB};
    switch (draw(run, 8)) {
    case 0: return 1 + draw(run, 40 * MIB);
    case 1: return 1 + draw(run, 300000);
    case 2: return MIB + draw(run, 3 * MIB);
    default: return common[draw(run, VR_COUNT_OF(common))];
    }
}

static bool overlaps(const struct random_run *run, uint64_t address, uint64_t size_bytes) {
    for (size_t i = 0; i < run->live_count; i++) {
        if (address < run->live[i].address + run->live[i].size_bytes && run->live[i].address < address + size_bytes) return true;
    }
    return false;
}

static void passed(struct random_run *run, enum vram_status status) {
    assert_true(status == VRAM_OK || status == VRAM_OUT_OF_MEMORY || (run->faults && status == VRAM_DRIVER));
}

static void one_malloc(struct random_run *run, unsigned streams) {
    struct live_block block = {0};
    const uint32_t device = run->devices < 2 ? 0 : (uint32_t)draw(run, run->devices);
    const enum vram_status status =
        vram_malloc(run->world.allocator, device, draw_size(run), run->world.stream[device][draw(run, streams)], &block.address);
    passed(run, status);
    if (status != VRAM_OK) return;
    block.size_bytes = expect_size(&run->world, block.address);
    assert_false(overlaps(run, block.address, block.size_bytes));
    run->live[run->live_count++] = block;
}

static void one_free(struct random_run *run) {
    const size_t index = draw(run, run->live_count);
    const enum vram_status status = vram_free(run->world.allocator, run->live[index].address);
    passed(run, status);
    if (status == VRAM_OK) run->live[index] = run->live[--run->live_count];
}

static void one_operation(struct random_run *run, unsigned streams) {
    struct vram_allocator *allocator = run->world.allocator;
    const uint64_t kind = draw(run, 200);
    if (run->faults && run->nth-- == 0) {
        EXPECT_OK(vram_driver_fault_set(run->world.driver, NULL, 1 + draw(run, 6), VR_CU_UNKNOWN));
        if (draw(run, 2) == 0) vr_fault_then(run->world.driver, 1 + draw(run, 3), VR_CU_UNKNOWN);
        run->nth = draw(run, 60);
    }
    if (run->pool != NULL && draw(run, 40) == 0) {
        if (run->captures) {
            end(&run->world, run->pool, run->world.stream[0][1]);
        } else {
            begin(run->pool, run->world.stream[0][1], VRAM_CAPTURE_RELAXED);
        }
        run->captures = !run->captures;
    } else if (kind == 0) {
        passed(run, vram_empty_cache(allocator));
    } else if (kind == 1 && !run->captures) {
        EXPECT_OK(vr_world_complete(&run->world, 0, run->world.stream[0][draw(run, streams)]));
    } else if (kind < 8 && run->live_count != 0) {
        passed(run, vram_record_stream(allocator, run->live[draw(run, run->live_count)].address, run->world.stream[0][draw(run, streams)]));
    } else if (run->live_count != 0 && (run->live_count == MAX_LIVE || draw(run, 100) < 48)) {
        one_free(run);
    } else {
        one_malloc(run, streams);
    }
}

enum { MAP_UNITS = 1 << 26 }; // 32 GiB

static void change(struct map_of_records *records, const struct vr_record *record, bool maps) {
    if (records->base == 0) records->base = record->address - (uint64_t)MAP_UNITS * 512 / 4;
    for (uint64_t at = (record->address - records->base) / 512, end = at + record->size_bytes / 512; at < end; at++) {
        if (at >= MAP_UNITS || (records->mapped[at] != 0) == maps) {
            records->wrong = true;
            return;
        }
        records->mapped[at] = maps;
    }
    records->bytes += maps ? record->size_bytes : -record->size_bytes;
}

// Checks that every byte is mapped once, and that blocks are mapped.
static void note_record(const struct vr_record *record, void *user) {
    struct map_of_records *records = user;
    if (record->action == VR_RECORD_SEGMENT_MAP) change(records, record, true);
    if (record->action == VR_RECORD_SEGMENT_UNMAP) change(records, record, false);
    if (record->action != VR_RECORD_ALLOC) return;
    for (uint64_t at = (record->address - records->base) / 512, end = at + (record->size_bytes + 511) / 512; at < end && !records->wrong;
         at++)
        records->wrong = at >= MAP_UNITS || !records->mapped[at];
}

static bool add_size(const struct vram_block_view *view, void *user) {
    *(uint64_t *)user += view->block.size_bytes;
    return true;
}

static void records_are_true(void **state) {
    (void)state;
    static struct random_run run;
    for (uint64_t seed = 400; seed < 406; seed++) {
        run = (struct random_run){.random = seed};
        run.records.mapped = calloc(MAP_UNITS, 1);
        assert_non_null(run.records.mapped);
        open_world(&run.world, (seed % 2 != 0 ? 300 : 1000) * (uint64_t)MIB);
        vr_allocator_set_recorder(run.world.allocator, note_record, &run.records);
        for (int i = 0; i < 3000; i++) {
            one_operation(&run, 1 + seed % 3);
            assert_false(run.records.wrong);
            if (i % 32 != 0) continue;
            uint64_t walked = 0;
            EXPECT_OK(vram_walk(run.world.allocator, 0, add_size, &walked));
            assert_int_equal(walked, run.records.bytes);
            EXPECT_CURRENT(&run.world, reserved_bytes, walked);
        }
        while (run.live_count != 0) one_free(&run);
        EXPECT_OK(vram_empty_cache(run.world.allocator));
        assert_int_equal(run.records.bytes, 0);
        vr_allocator_set_recorder(run.world.allocator, NULL, NULL);
        free(run.records.mapped);
        expect_end(&run.world);
    }
}

static void random_operations(uint64_t seed, unsigned streams, uint64_t memory_bytes, bool manual, bool faults, int count) {
    static struct random_run run;
    run = (struct random_run){.random = seed, .faults = faults};
    const struct vr_world_options options = {
        .sim = {.memory_bytes = memory_bytes, .manual_completion = manual}, .conf = "paged:True", .faults = faults, .without_record = true};
    EXPECT_OK(vr_world_open(&run.world, &options));
    for (int i = 0; i < count; i++) {
        one_operation(&run, streams);
        if (i % 16 == 0) expect_sound(&run.world);
    }
    if (faults) EXPECT_OK(vram_driver_fault_set(run.world.driver, NULL, 0, 0));
    while (run.live_count != 0) one_free(&run);
    EXPECT_OK(vram_empty_cache(run.world.allocator));
    EXPECT_CURRENT(&run.world, reserved_bytes, 0);
    assert_int_equal(vram_sim_memory_used(run.world.sim, 0), 0);
    expect_end(&run.world);
}

static void random_on_one_stream(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < 6; seed++) random_operations(seed, 1, 0, false, false, 3000);
    for (uint64_t seed = 0; seed < 6; seed++) random_operations(seed, 1, 200 * MIB, false, false, 3000);
}

static void random_on_streams(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < 6; seed++) random_operations(100 + seed, VR_WORLD_STREAMS, 0, seed % 2 != 0, false, 3000);
    for (uint64_t seed = 0; seed < 6; seed++) random_operations(200 + seed, VR_WORLD_STREAMS, 300 * MIB, seed % 2 != 0, false, 3000);
}

// Two devices, and graphs: captured allocations use the pool's own pages and never wait.
static void random_with_captures(void **state) {
    (void)state;
    static struct random_run run;
    for (uint64_t seed = 500; seed < 512; seed++) {
        run = (struct random_run){.random = seed, .devices = VR_WORLD_DEVICES};
        const struct vr_world_options options = {
            .sim = {.device_count = VR_WORLD_DEVICES, .memory_bytes = seed % 2 != 0 ? 400 * (uint64_t)MIB : 0},
            .conf = "paged:True",
            .without_record = true};
        EXPECT_OK(vr_world_open(&run.world, &options));
        run.pool = expect_graph_pool(&run.world);
        for (int i = 0; i < 3000; i++) {
            one_operation(&run, 3);
            if (i % 16 == 0) expect_sound(&run.world);
        }
        if (run.captures) end(&run.world, run.pool, run.world.stream[0][1]);
        while (run.live_count != 0) one_free(&run);
        vram_pool_release(run.pool);
        EXPECT_OK(vram_empty_cache(run.world.allocator));
        EXPECT_CURRENT(&run.world, reserved_bytes, 0);
        expect_end(&run.world);
    }
}

static void random_with_faults(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < 20; seed++) random_operations(300 + seed, 1 + seed % 3, seed % 2 != 0 ? 300 * MIB : 0, true, true, 2000);
}

// --- listeners --------------------------------------------------------------------------------------------------------------------------

enum { HEARD = 20000, HEARD_LIVE = 64 };

// Requests and frees on three streams, close to the device's limit. Failures are stored as address 0.
static void play(bool heard, uint64_t *addresses, struct vram_stats *stats) {
    struct vr_world world;
    uint64_t live[HEARD_LIVE] = {0}, random = 77;
    const struct vr_world_options options = {.sim = {.memory_bytes = 640 * MIB}, .conf = "paged:True", .without_record = !heard};
    EXPECT_OK(vr_world_open(&world, &options));
    for (size_t i = 0; i < HEARD; i++) {
        uint64_t *place = &live[vr_random_below(&random, HEARD_LIVE)];
        const uint64_t size_bytes = MIB + vr_random_below(&random, 40) * 512 * 1024 + 512,
                       stream = world.stream[0][vr_random_below(&random, 3)];
        addresses[i] = 0;
        if (*place != 0) {
            expect_free(&world, *place);
            *place = 0;
        } else if (vram_malloc(world.allocator, 0, size_bytes, stream, place) == VRAM_OK) {
            addresses[i] = *place;
        } else {
            *place = 0;
        }
        if (vr_random_below(&random, 50) == 0) EXPECT_OK(vram_sim_complete_all(world.sim));
    }
    *stats = expect_stats(&world);
    for (size_t i = 0; i < HEARD_LIVE; i++)
        if (live[i] != 0) expect_free(&world, live[i]);
    expect_end(&world);
}

// A listener does not change any address.
static void who_listens_changes_nothing(void **state) {
    (void)state;
    static uint64_t unheard[HEARD], heard[HEARD];
    struct vram_stats without, with;
    play(false, unheard, &without);
    play(true, heard, &with);
    assert_memory_equal(unheard, heard, sizeof heard);
    assert_memory_equal(&without, &with, sizeof with);
}

// --- sizes that do not recur -------------------------------------------------------------------------------------------------------------

static uint64_t windows_of(const struct vr_world *world) {
    return vram_sim_calls(world->sim, "cuMemMap") - vram_sim_calls(world->sim, "cuMemUnmap");
}
static uint64_t pages_of(const struct vr_world *world) {
    return vram_sim_calls(world->sim, "cuMemCreate") - vram_sim_calls(world->sim, "cuMemRelease");
}

// If every slot is new, keeping slots does not help: few windows per page stay. Repeated sizes afterwards soon need no driver call.
static void sizes_that_do_not_come_back(void **state) {
    (void)state;
    enum { LIVE = 40, ROUNDS = 48000, REPEATED = 24, PASSES = 8 };
    struct vr_world world;
    uint64_t live[LIVE] = {0}, random = 11, most = 0, calls = 0;
    open_world(&world, 0);
    for (size_t i = 0; i < ROUNDS; i++) {
        uint64_t *block = &live[vr_random_below(&random, LIVE)];
        expect_free(&world, *block);
        *block = expect_malloc(&world, 2 * MIB + 512 * vr_random_below(&random, 2 * 62 * 1024), 0);
        if (windows_of(&world) / pages_of(&world) > most) most = windows_of(&world) / pages_of(&world);
        if (i % 1500 == 0) expect_sound(&world);
    }
    assert_in_range(most, 5, 8); // many were kept at first
    assert_in_range(windows_of(&world), pages_of(&world), 2 * pages_of(&world) + 64 + 40);
    for (size_t i = 0; i < LIVE; i++) expect_free(&world, live[i]);
    for (size_t pass = 0; pass < PASSES; pass++) {
        calls = driver_calls(&world);
        for (size_t i = 0; i < REPEATED; i++) live[i] = expect_malloc(&world, (3 + 2 * i) * MIB, 0);
        for (size_t i = 0; i < REPEATED; i++) expect_free(&world, live[i]);
    }
    assert_int_equal(driver_calls(&world), calls);
    expect_sound(&world);
    expect_end(&world);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_listens_changes_nothing),
        cmocka_unit_test(sizes_that_do_not_come_back),
        cmocka_unit_test(neighbours_share_a_page),
        cmocka_unit_test(a_large_request_has_large_pages),
        cmocka_unit_test(what_does_not_fit_is_not_begun),
        cmocka_unit_test(free_pages_join),
        cmocka_unit_test(ends_are_borrowed),
        cmocka_unit_test(small_pages_stay_free),
        cmocka_unit_test(ends_go_first_where_memory_is_scarce),
        cmocka_unit_test(blocked_slots_are_passed_by),
        cmocka_unit_test(pages_change_streams_behind_a_fence),
        cmocka_unit_test(a_use_between_two_looks_is_waited_for),
        cmocka_unit_test(a_limit_holds),
        cmocka_unit_test(records_are_true),
        cmocka_unit_test(random_on_one_stream),
        cmocka_unit_test(random_on_streams),
        cmocka_unit_test(random_with_captures),
        cmocka_unit_test(random_with_faults),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
