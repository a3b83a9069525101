// Tests private pools without captures: routing, lifetime, user-supplied memory, loans, checkpoints, exact addresses.
#include "support/expect.h"
#include "vram/pool.h"
#include "vram/sim.h"

static struct vram_pool *expect_pool(struct vr_world *world, const struct vram_pool_options *options) {
    struct vram_pool *pool = NULL;
    EXPECT_OK(vram_pool_create(world->allocator, 0, options, &pool));
    return pool;
}

static uint64_t expect_pool_malloc(struct vram_pool *pool, uint64_t size_bytes, uint64_t stream) {
    uint64_t address = 0;
    EXPECT_OK(vram_pool_malloc(pool, size_bytes, stream, &address));
    assert_int_not_equal(address, 0);
    return address;
}

static struct vram_pool_stats expect_pool_stats(struct vram_pool *pool) {
    struct vram_pool_stats stats;
    EXPECT_OK(vram_get_pool_stats(pool, &stats));
    return stats;
}

static const struct vram_route by_thread = {.kind = VRAM_ROUTE_THREAD};

// --- identity and routing -----------------------------------------------------------------------------------------------------------

static void ids_as_pytorch_gives_them(void **state) {
    (void)state;
    struct vr_world world;
    expect_world(&world, "", 0);
    const struct vram_pool_options graph = {.for_graph = true};
    struct vram_pool *user = expect_pool(&world, NULL), *first = expect_pool(&world, &graph), *second = expect_pool(&world, &graph);
    assert_int_equal(vram_get_pool_id(user).first, 0);
    assert_int_equal(vram_get_pool_id(user).second, 1);
    assert_int_equal(vram_get_pool_id(first).first, 1);
    assert_int_equal(vram_get_pool_id(second).first, 2);
    assert_int_equal(vram_get_pool_id(second).second, 0);
    vram_pool_release(user);
    vram_pool_release(first);
    vram_pool_release(second);
    vram_pool_release(NULL);
    expect_end(&world);
}

static void the_newest_route_that_accepts_wins(void **state) {
    (void)state;
    struct vr_world world;
    expect_world(&world, "", 0);
    const uint64_t a = world.stream[0][1], b = world.stream[0][2];
    struct vram_pool *one = expect_pool(&world, NULL), *two = expect_pool(&world, NULL);
    const struct vram_route on_a = {.kind = VRAM_ROUTE_STREAM, .stream = a};
    EXPECT_OK(vram_pool_begin(one, &by_thread));
    EXPECT_OK(vram_pool_begin(two, &on_a));
    assert_int_equal(vram_pool_references(one), 2);
    struct vram_block_info info;
    const uint64_t in_two = expect_malloc(&world, 100, a), in_one = expect_malloc(&world, 100, b);
    EXPECT_OK(vram_get_block_info(world.allocator, in_two, &info));
    assert_int_equal(info.pool.second, vram_get_pool_id(two).second);
    EXPECT_OK(vram_get_block_info(world.allocator, in_one, &info));
    assert_int_equal(info.pool.second, vram_get_pool_id(one).second);
    EXPECT_STATUS(INVALID_ARGUMENT, vram_pool_end(one, &on_a));
    EXPECT_OK(vram_pool_end(two, &on_a));
    EXPECT_STATUS(INVALID_ARGUMENT, vram_pool_end(two, &on_a));
    const uint64_t also_one = expect_malloc(&world, 100, a);
    EXPECT_OK(vram_get_block_info(world.allocator, also_one, &info));
    assert_int_equal(info.pool.second, vram_get_pool_id(one).second);
    EXPECT_OK(vram_pool_end(one, &by_thread));
    const uint64_t default_pool = expect_malloc(&world, 100, a);
    EXPECT_OK(vram_get_block_info(world.allocator, default_pool, &info));
    assert_int_equal(info.pool.second, 0);
    assert_int_not_equal(default_pool, also_one);
    for (size_t i = 0; i < 4; i++) expect_free(&world, (uint64_t[]){in_two, in_one, also_one, default_pool}[i]);
    vram_pool_release(one);
    vram_pool_release(two);
    expect_end(&world);
}

// A pool may have two routes at once, and a closed route drops its reference.
static void a_pool_may_have_several_routes(void **state) {
    (void)state;
    struct vr_world world;
    expect_world(&world, "", 0);
    struct vram_pool *pool = expect_pool(&world, NULL);
    const struct vram_route all = {.kind = VRAM_ROUTE_ALL};
    EXPECT_OK(vram_pool_begin(pool, &by_thread));
    EXPECT_OK(vram_pool_begin(pool, &by_thread));
    EXPECT_OK(vram_pool_begin(pool, &all));
    assert_int_equal(vram_pool_references(pool), 4);
    EXPECT_OK(vram_pool_end(pool, &by_thread));
    EXPECT_OK(vram_pool_end(pool, &by_thread));
    EXPECT_STATUS(INVALID_ARGUMENT, vram_pool_end(pool, &by_thread));
    EXPECT_OK(vram_pool_end(pool, &all));
    assert_int_equal(vram_pool_references(pool), 1);
    vram_pool_release(pool);
    expect_end(&world);
}

// --- lifetime -------------------------------------------------------------------------------------------------------------------------

// After a pool is released, the next vram_empty_cache() returns its free segments at the latest; the segment of a live block is returned by
// the one after its free. With and without expandable segments.
static void memory_goes_when_nothing_needs_it(void **state) {
    static const char *const confs[] = {"pytorch:2.5", "pytorch:2.5,expandable_segments:True", "", "expandable_segments:True"};
    (void)state;
    for (size_t c = 0; c < VR_COUNT_OF(confs); c++) {
        struct vr_world world;
        expect_world(&world, confs[c], 0);
        struct vram_pool *pool = expect_pool(&world, NULL);
        const uint64_t live = expect_pool_malloc(pool, 40 * VR_MIB, 0), freed = expect_pool_malloc(pool, 1000, world.stream[0][1]);
        expect_free(&world, freed);
        EXPECT_OK(vram_empty_cache(world.allocator));
        EXPECT_CURRENT(&world, reserved_bytes, 42 * VR_MIB);
        assert_int_equal(expect_pool_stats(pool).segments, 2);
        assert_int_equal(expect_pool_stats(pool).reserved_bytes[VRAM_STAT_ALL].current, 42 * VR_MIB);
        vram_pool_release(pool);
        EXPECT_CURRENT(&world, reserved_bytes, c < 2 ? 42 * VR_MIB : 40 * VR_MIB);
        EXPECT_OK(vram_empty_cache(world.allocator));
        EXPECT_CURRENT(&world, reserved_bytes, 40 * VR_MIB);
        expect_free(&world, live);
        EXPECT_CURRENT(&world, reserved_bytes, 40 * VR_MIB);
        EXPECT_OK(vram_empty_cache(world.allocator));
        EXPECT_CURRENT(&world, reserved_bytes, 0);
        expect_end(&world);
    }
}

// The end of a pool waits for its own pending frees, not for others', and empties its cache; the end of a graph's pool does not.
static void a_pools_end(const char *conf, bool for_graph, bool empties) {
    struct vr_world world;
    expect_world(&world, conf, 0);
    const uint64_t other = world.stream[0][1];
    const struct vram_pool_options options = {.for_graph = for_graph};
    struct vram_pool *pool = expect_pool(&world, &options);
    const uint64_t pending = expect_pool_malloc(pool, 40 * VR_MIB, 0), outside = expect_malloc(&world, 80 * VR_MIB, 0);
    EXPECT_OK(vram_record_stream(world.allocator, outside, other));
    EXPECT_OK(vram_record_stream(world.allocator, pending, other));
    expect_free(&world, outside);
    expect_free(&world, pending);
    EXPECT_OK(vram_pool_begin(pool, &by_thread)); // holds a reference
    vram_pool_retain(pool);
    vram_pool_release(pool);
    EXPECT_OK(vram_pool_end(pool, &by_thread));
    EXPECT_SCALAR(&world, num_sync_all_streams, 0);
    EXPECT_CURRENT(&world, reserved_bytes, 120 * VR_MIB);
    vram_pool_release(pool);
    EXPECT_SCALAR(&world, num_sync_all_streams, empties ? 1 : 0);
    EXPECT_CURRENT(&world, reserved_bytes, empties ? 80 * VR_MIB : 120 * VR_MIB);
    EXPECT_CURRENT(&world, active, empties ? 1 : 2);
    EXPECT_OK(vram_check(world.allocator, NULL));
    EXPECT_OK(vram_empty_cache(world.allocator));
    EXPECT_CURRENT(&world, reserved_bytes, 0);
    expect_end(&world);
}

static void the_end_of_a_pool_empties_it(void **state) {
    (void)state;
    a_pools_end("", false, true);
    a_pools_end("expandable_segments:True", false, true);
    a_pools_end("pytorch:2.5", false, false);
    a_pools_end("", true, false);
}

static void trim_returns_what_is_free(void **state) {
    (void)state;
    struct vr_world world;
    expect_world(&world, "", 0);
    struct vram_pool *pool = expect_pool(&world, NULL);
    const uint64_t live = expect_pool_malloc(pool, 30 * VR_MIB, 0), freed = expect_pool_malloc(pool, 50 * VR_MIB, 0);
    const uint64_t other = expect_malloc(&world, 70 * VR_MIB, 0);
    expect_free(&world, freed);
    expect_free(&world, other);
    EXPECT_OK(vram_pool_empty_cache(pool));
    assert_int_equal(expect_pool_stats(pool).reserved_bytes[VRAM_STAT_LARGE_POOL].current, 30 * VR_MIB);
    EXPECT_CURRENT(&world, reserved_bytes, 100 * VR_MIB);
    expect_free(&world, live);
    vram_pool_release(pool);
    expect_end(&world);
}

// Pools that come and go reuse the same shards: a thousand of them need only a few.
static void pools_come_and_go(void **state) {
    (void)state;
    struct vr_world world;
    expect_world(&world, "", 0);
    for (int i = 0; i < 20000; i++) {
        struct vram_pool *pool = expect_pool(&world, NULL);
        const uint64_t block = expect_pool_malloc(pool, (uint64_t)(1 + i % 3) * 600 * VR_KIB, world.stream[0][i % 4]);
        vram_pool_release(pool);
        expect_free(&world, block);
        if (i % 2 == 0) EXPECT_OK(vram_empty_cache(world.allocator));
    }
    EXPECT_OK(vram_empty_cache(world.allocator));
    EXPECT_CURRENT(&world, reserved_bytes, 0);
    EXPECT_CURRENT(&world, inactive_split, 0);
    assert_int_equal(expect_stats(&world).allocation[VRAM_STAT_ALL].allocated, 20000);
    expect_end(&world);
}

// --- memory of the user's own -----------------------------------------------------------------------------------------------------------

struct own_memory {
    uint64_t next;
    uint64_t asked_bytes;
    uint64_t given_back_bytes;
    uint64_t capacity;
    uint64_t last_stream;
};

static uint64_t take_own(uint64_t size_bytes, uint32_t device, uint64_t stream, void *user) {
    struct own_memory *own = user;
    assert_int_equal(device, 0);
    if (own->asked_bytes - own->given_back_bytes + size_bytes > own->capacity) return 0;
    own->asked_bytes += size_bytes;
    own->last_stream = stream;
    own->next += size_bytes;
    return own->next - size_bytes;
}

static void give_own(uint64_t address, uint64_t size_bytes, uint32_t device, uint64_t stream, void *user) {
    (void)device, (void)stream;
    struct own_memory *own = user;
    assert_true(address >= 0x111000000000 && address < own->next);
    own->given_back_bytes += size_bytes;
}

// allocator.md §worked-examples: the ncclMemAlloc case.
static void own_functions_whole_blocks(void **state) {
    (void)state;
    struct vr_world world;
    expect_world(&world, "expandable_segments:True", 0);
    struct own_memory own = {.next = 0x111000000000, .capacity = 30 * VR_MIB};
    const struct vram_pool_options options = {.allocate = take_own, .deallocate = give_own, .user = &own, .no_split = true};
    struct vram_pool *pool = expect_pool(&world, &options);
    const uint64_t tiny = expect_pool_malloc(pool, 1, world.stream[0][2]);
    assert_int_equal(tiny, 0x111000000000);
    assert_int_equal(own.asked_bytes, 2 * VR_MIB);
    assert_int_equal(own.last_stream, world.stream[0][2]);
    EXPECT_CURRENT(&world, allocated_bytes, 2 * VR_MIB);
    EXPECT_CURRENT(&world, requested_bytes, 1);
    EXPECT_CURRENT(&world, segment, 1);
    expect_free(&world, tiny);
    assert_int_equal(expect_pool_malloc(pool, VR_MIB, world.stream[0][2]), tiny);
    assert_int_equal(own.asked_bytes, 2 * VR_MIB);
    const uint64_t large = expect_pool_malloc(pool, 20 * VR_MIB, 0);
    assert_int_equal(large, 0x111000200000);
    uint64_t none = 77;
    EXPECT_STATUS(OUT_OF_MEMORY, vram_pool_malloc(pool, 20 * VR_MIB, 0, &none));
    assert_int_equal(none, 77);
    expect_free(&world, tiny);
    expect_free(&world, large);
    vram_pool_release(pool);
    EXPECT_OK(vram_empty_cache(world.allocator));
    assert_int_equal(own.given_back_bytes, own.asked_bytes);
    const struct vram_pool_options broken = {.allocate = take_own};
    EXPECT_STATUS(INVALID_ARGUMENT, vram_pool_create(world.allocator, 0, &broken, &pool));
    expect_end(&world);
}

// Memory of such a pool that is still allocated when the allocator is destroyed goes to the pool's deallocate function, not to the driver.
static void own_memory_at_the_end(void **state) {
    (void)state;
    struct vr_world world;
    expect_world(&world, "", 0);
    struct own_memory own = {.next = 0x111000000000, .capacity = VR_GIB};
    const struct vram_pool_options options = {.allocate = take_own, .deallocate = give_own, .user = &own};
    struct vram_pool *pool = expect_pool(&world, &options);
    (void)expect_pool_malloc(pool, 5 * VR_MIB, 0);
    vr_world_destroy_allocator(&world);
    assert_int_equal(own.given_back_bytes, 20 * VR_MIB);
    assert_int_equal(vr_world_close(&world), 0);
}

// --- loans ---------------------------------------------------------------------------------------------------------------------------

// A user's function may return something that is not memory, such as MAP_FAILED: it is passed to the user's free.
struct nonsense {
    uint64_t address;
    uint64_t given_back;
};

static uint64_t give_nonsense(uint64_t size_bytes, uint32_t device, uint64_t stream, void *user) {
    (void)size_bytes, (void)device, (void)stream;
    return ((struct nonsense *)user)->address;
}

static void take_nonsense(uint64_t address, uint64_t size_bytes, uint32_t device, uint64_t stream, void *user) {
    (void)size_bytes, (void)device, (void)stream;
    ((struct nonsense *)user)->given_back = address;
}

static void own_functions_may_return_nonsense(void **state) {
    static const uint64_t addresses[] = {UINT64_MAX, UINT64_MAX - 511, 0 - 2 * VR_MIB + 512, 256, VR_GIB + 1};
    (void)state;
    struct vr_world world;
    expect_world(&world, "", 0);
    struct nonsense nonsense;
    const struct vram_pool_options options = {.allocate = give_nonsense, .deallocate = take_nonsense, .user = &nonsense};
    struct vram_pool *pool = expect_pool(&world, &options);
    for (size_t i = 0; i < VR_COUNT_OF(addresses); i++) {
        uint64_t address = 0;
        nonsense = (struct nonsense){addresses[i], 0};
        EXPECT_STATUS(UNSUPPORTED, vram_pool_malloc(pool, 100, 0, &address));
        assert_int_equal(nonsense.given_back, addresses[i]);
        EXPECT_CURRENT(&world, reserved_bytes, 0);
    }
    vram_pool_release(pool);
    expect_end(&world);
}

static void a_pool_lends_when_memory_is_short(void **state) {
    (void)state;
    struct vr_world world;
    expect_world(&world, "", 100 * VR_MIB);
    const struct vram_pool_options options = {.use_on_oom = true};
    struct vram_pool *lender = expect_pool(&world, &options), *miser = expect_pool(&world, NULL);
    const uint64_t cached = expect_pool_malloc(lender, 40 * VR_MIB, 0), kept = expect_pool_malloc(miser, 40 * VR_MIB, 0);
    expect_free(&world, cached);
    expect_free(&world, kept);
    assert_int_equal(expect_malloc(&world, 38 * VR_MIB, 0), cached);
    uint64_t none;
    EXPECT_STATUS(OUT_OF_MEMORY, vram_malloc(world.allocator, 0, 38 * VR_MIB, 0, &none));
    struct vram_oom oom;
    assert_true(vram_last_oom(&oom));
    assert_int_equal(oom.private_pool_bytes, 42 * VR_MIB);
    struct vram_block_info info;
    EXPECT_OK(vram_get_block_info(world.allocator, cached, &info));
    assert_int_equal(info.pool.second, vram_get_pool_id(lender).second);
    expect_free(&world, cached);
    vram_pool_release(lender);
    vram_pool_release(miser);
    expect_end(&world);
}

// --- checkpoints and exact addresses -------------------------------------------------------------------------------------------------

struct changes {
    uint64_t freed[16];
    uint64_t created[16];
    size_t freed_count;
    size_t created_count;
};

static void note_freed(uint64_t address, void *user) {
    struct changes *changes = user;
    changes->freed[changes->freed_count++] = address;
}
static void note_created(uint64_t address, uint64_t size_bytes, void *user) {
    struct changes *changes = user;
    assert_int_not_equal(size_bytes, 0);
    changes->created[changes->created_count++] = address;
}

static void a_pool_returns_to_its_checkpoint(void **state) {
    static const char *const confs[] = {"", "expandable_segments:True"};
    (void)state;
    for (size_t c = 0; c < VR_COUNT_OF(confs); c++) {
        struct vr_world world;
        expect_world(&world, confs[c], 0);
        struct vram_pool *pool = expect_pool(&world, NULL);
        uint64_t blocks[6];
        for (int i = 0; i < 6; i++) blocks[i] = expect_pool_malloc(pool, (uint64_t)(3 + i) * VR_MIB, 0);
        expect_free(&world, blocks[1]);
        expect_free(&world, blocks[4]);
        struct vram_checkpoint *checkpoint = NULL;
        EXPECT_OK(vram_pool_checkpoint(pool, &checkpoint));
        expect_free(&world, blocks[0]);
        expect_free(&world, blocks[5]);
        const uint64_t later = expect_pool_malloc(pool, 2 * VR_MIB, 0), grown = expect_pool_malloc(pool, 90 * VR_MIB, 0);
        struct changes changes = {.freed_count = 0};
        const struct vram_restore_observer observer = {note_freed, note_created, &changes};
        EXPECT_OK(vram_pool_restore(pool, checkpoint, &observer));
        bool equal = false;
        const uint64_t expected[] = {blocks[5], blocks[0], blocks[3], blocks[2]};
        EXPECT_OK(vram_pool_holds_exactly(pool, expected, 4, &equal));
        assert_true(equal);
        EXPECT_OK(vram_pool_holds_exactly(pool, expected, 3, &equal));
        assert_false(equal);
        assert_int_equal(changes.freed_count, 4);
        assert_int_equal(changes.created_count, 4);
        EXPECT_STATUS(INVALID_POINTER, vram_free(world.allocator, grown));
        assert_true(later != 0);
        EXPECT_OK(vram_check(world.allocator, NULL));
        for (size_t i = 0; i < 4; i++) expect_free(&world, expected[i]);
        vram_checkpoint_destroy(checkpoint);
        vram_pool_release(pool);
        expect_end(&world);
    }
}

// Every piece of the segment is allocated, then the free ones are freed: PyTorch's events, peaks and requested bytes.
static void a_restore_hands_every_piece_out(void **state) {
    (void)state;
    struct vr_world world;
    expect_world(&world, "", 0);
    struct vram_pool *pool = expect_pool(&world, NULL);
    const uint64_t a = expect_pool_malloc(pool, 3 * VR_MIB, 0), b = expect_pool_malloc(pool, 4 * VR_MIB - 100, 0);
    const uint64_t c = expect_pool_malloc(pool, 5 * VR_MIB, 0);
    expect_free(&world, a);
    struct vram_checkpoint *checkpoint = NULL;
    EXPECT_OK(vram_pool_checkpoint(pool, &checkpoint));
    expect_free(&world, b);
    expect_free(&world, c);
    const uint64_t d = expect_pool_malloc(pool, 2 * VR_MIB, 0);
    assert_int_equal(d, a);
    EXPECT_OK(vram_reset_peak_stats(world.allocator, 0));
    vr_world_forget(&world);
    EXPECT_OK(vram_pool_restore(pool, checkpoint, NULL));
    const uint64_t rest = c + 5 * VR_MIB;
    EXPECT_RECORDS(&world, {VR_RECORD_FREE_REQUESTED, d, 2 * VR_MIB}, {VR_RECORD_FREE_COMPLETED, d, 2 * VR_MIB},
                   {VR_RECORD_ALLOC, a, 3 * VR_MIB}, {VR_RECORD_ALLOC, b, 4 * VR_MIB}, {VR_RECORD_ALLOC, c, 5 * VR_MIB},
                   {VR_RECORD_ALLOC, rest, 8 * VR_MIB}, {VR_RECORD_FREE_REQUESTED, a, 3 * VR_MIB},
                   {VR_RECORD_FREE_COMPLETED, a, 3 * VR_MIB}, {VR_RECORD_FREE_REQUESTED, rest, 8 * VR_MIB},
                   {VR_RECORD_FREE_COMPLETED, rest, 8 * VR_MIB});
    EXPECT_CURRENT(&world, allocated_bytes, 9 * VR_MIB);
    EXPECT_CURRENT(&world, requested_bytes, 9 * VR_MIB); // b's whole size
    EXPECT_PEAK(&world, allocated_bytes, 20 * VR_MIB);
    EXPECT_PEAK(&world, allocation, 4);
    EXPECT_CURRENT(&world, inactive_split_bytes, 11 * VR_MIB);
    EXPECT_CURRENT(&world, inactive_split, 2);
    expect_free(&world, b);
    expect_free(&world, c);
    vram_checkpoint_destroy(checkpoint);
    vram_pool_release(pool);
    expect_end(&world);
}

static void a_checkpoint_needs_its_memory(void **state) {
    (void)state;
    struct vr_world world;
    expect_world(&world, "", 0);
    struct vram_pool *pool = expect_pool(&world, NULL);
    const uint64_t block = expect_pool_malloc(pool, 50 * VR_MIB, world.stream[0][1]);
    struct vram_checkpoint *checkpoint = NULL;
    EXPECT_OK(vram_record_stream(world.allocator, block, world.stream[0][2]));
    EXPECT_OK(vram_pool_checkpoint(pool, &checkpoint));
    expect_free(&world, block);
    EXPECT_OK(vram_sim_complete_all(world.sim));
    EXPECT_OK(vram_pool_empty_cache(pool));
    EXPECT_STATUS(INVALID_ARGUMENT, vram_pool_restore(pool, checkpoint, NULL));
    vram_checkpoint_destroy(checkpoint);
    vram_pool_release(pool);
    expect_end(&world);
}

// A block whose addresses now belong to two segments cannot be restored. The refused restore frees nothing.
static void a_checkpoint_needs_its_segments(void **state) {
    (void)state;
    struct vr_world world;
    expect_world(&world, "", 0);
    struct own_memory own = {.next = 0x111000000000, .capacity = 40 * VR_MIB};
    struct vram_pool *pool = expect_pool(&world, &(struct vram_pool_options){.allocate = take_own, .deallocate = give_own, .user = &own});
    const uint64_t whole = expect_pool_malloc(pool, 40 * VR_MIB, 0);
    struct vram_checkpoint *checkpoint = NULL;
    EXPECT_OK(vram_pool_checkpoint(pool, &checkpoint));
    expect_free(&world, whole);
    EXPECT_OK(vram_pool_empty_cache(pool));
    own.next = whole;
    const uint64_t low = expect_pool_malloc(pool, 20 * VR_MIB, 0), high = expect_pool_malloc(pool, 20 * VR_MIB, 0);
    assert_int_equal(low, whole);
    assert_int_equal(high, whole + 20 * VR_MIB);
    EXPECT_STATUS(INVALID_ARGUMENT, vram_pool_restore(pool, checkpoint, NULL));
    EXPECT_CURRENT(&world, allocated_bytes, 40 * VR_MIB);
    expect_free(&world, low);
    expect_free(&world, high);
    vram_checkpoint_destroy(checkpoint);
    vram_pool_release(pool);
    expect_end(&world);
}

// A window of pages is made for one block, so no other block can be placed in it or at its former addresses.
static void large_blocks_of_pages_have_no_exact_address(void **state) {
    (void)state;
    struct vr_world world;
    expect_world(&world, "paged:True", 0);
    const uint64_t live = expect_malloc(&world, 19 * VR_MIB, 0), freed = expect_malloc(&world, 19 * VR_MIB, 0);
    expect_free(&world, freed);
    const uint64_t addresses[] = {live, live + 5 * VR_MIB, freed, freed + 5 * VR_MIB, freed + VR_GIB};
    for (size_t i = 0; i < VR_COUNT_OF(addresses); i++)
        EXPECT_STATUS(INVALID_ARGUMENT, vram_malloc_at(world.allocator, 0, 3 * VR_MIB, 0, addresses[i]));
    EXPECT_OK(vram_check(world.allocator, NULL));
    assert_int_equal(expect_size(&world, live), 19 * VR_MIB);
    expect_free(&world, live);
    expect_end(&world);
}

static void blocks_at_exact_addresses(void **state) {
    (void)state;
    struct vr_world world;
    expect_world(&world, "", 0);
    const uint64_t base = expect_malloc(&world, 19 * VR_MIB, 0);
    expect_free(&world, base);
    EXPECT_STATUS(INVALID_ARGUMENT, vram_malloc_at(world.allocator, 0, 0, 0, base));
    EXPECT_STATUS(INVALID_ARGUMENT, vram_malloc_at(world.allocator, 0, 3 * VR_MIB, 0, base + 18 * VR_MIB));
    EXPECT_STATUS(INVALID_ARGUMENT, vram_malloc_at(world.allocator, 0, 3 * VR_MIB, 0, base + 100));
    EXPECT_STATUS(INVALID_ARGUMENT, vram_malloc_at(world.allocator, 0, 3 * VR_MIB, world.stream[0][1], base + VR_MIB));
    EXPECT_STATUS(INVALID_ARGUMENT, vram_malloc_at(world.allocator, 0, 3 * VR_MIB, 0, 512));
    EXPECT_OK(vram_malloc_at(world.allocator, 0, 3 * VR_MIB, 0, base + 5 * VR_MIB));
    assert_int_equal(expect_size(&world, base + 5 * VR_MIB), 3 * VR_MIB);
    EXPECT_STATUS(INVALID_ARGUMENT, vram_malloc_at(world.allocator, 0, 3 * VR_MIB, 0, base + 6 * VR_MIB));
    assert_int_equal(expect_malloc(&world, 5 * VR_MIB, 0), base);
    // The rest of 1 MiB is not split off.
    EXPECT_OK(vram_malloc_at(world.allocator, 0, 2 * VR_MIB, 0, base + 17 * VR_MIB));
    assert_int_equal(expect_size(&world, base + 17 * VR_MIB), 3 * VR_MIB);
    EXPECT_OK(vram_check(world.allocator, NULL));
    expect_free(&world, base + 5 * VR_MIB);
    expect_free(&world, base);
    expect_free(&world, base + 17 * VR_MIB);
    EXPECT_CURRENT(&world, inactive_split, 0);
    EXPECT_CURRENT(&world, inactive_split_bytes, 0);
    expect_end(&world);
}

struct tally {
    uint64_t blocks;
    uint64_t bytes;
};

static bool tally(const struct vram_block_view *view, void *user) {
    struct tally *sums = user;
    sums->blocks++;
    sums->bytes += view->block.size_bytes;
    return true;
}

static void one_pool_can_be_walked(void **state) {
    (void)state;
    struct vr_world world;
    expect_world(&world, "", 0);
    struct vram_pool *pool = expect_pool(&world, NULL);
    const uint64_t mine = expect_pool_malloc(pool, 5 * VR_MIB, 0), other = expect_malloc(&world, 5 * VR_MIB, 0);
    struct tally sums = {0, 0};
    EXPECT_OK(vram_pool_walk(pool, tally, &sums));
    assert_int_equal(sums.blocks, 2);
    assert_int_equal(sums.bytes, 20 * VR_MIB);
    const struct vram_pool_stats stats = expect_pool_stats(pool);
    assert_int_equal(stats.blocks, 1);
    assert_int_equal(stats.allocated_bytes, 5 * VR_MIB);
    assert_int_equal(stats.active_bytes, 5 * VR_MIB);
    assert_int_equal(stats.free_bytes, 15 * VR_MIB);
    expect_free(&world, mine);
    expect_free(&world, other);
    vram_pool_release(pool);
    expect_end(&world);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ids_as_pytorch_gives_them),
        cmocka_unit_test(the_newest_route_that_accepts_wins),
        cmocka_unit_test(a_pool_may_have_several_routes),
        cmocka_unit_test(memory_goes_when_nothing_needs_it),
        cmocka_unit_test(the_end_of_a_pool_empties_it),
        cmocka_unit_test(trim_returns_what_is_free),
        cmocka_unit_test(pools_come_and_go),
        cmocka_unit_test(own_functions_whole_blocks),
        cmocka_unit_test(own_memory_at_the_end),
        cmocka_unit_test(own_functions_may_return_nonsense),
        cmocka_unit_test(a_pool_lends_when_memory_is_short),
        cmocka_unit_test(a_pool_returns_to_its_checkpoint),
        cmocka_unit_test(a_restore_hands_every_piece_out),
        cmocka_unit_test(a_checkpoint_needs_its_memory),
        cmocka_unit_test(a_checkpoint_needs_its_segments),
        cmocka_unit_test(large_blocks_of_pages_have_no_exact_address),
        cmocka_unit_test(blocks_at_exact_addresses),
        cmocka_unit_test(one_pool_can_be_walked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
