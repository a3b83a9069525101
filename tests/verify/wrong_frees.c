// Frees of an address that is no live block, frees of the wrong block, and blocks that are never freed.
#include "verify/seeded.h"

#define STREAM(world) ((world)->stream[0][1])
enum { KIB = 1 << 10, MIB = 1 << 20 };

static void expect_refused(enum vram_status status) { assert_int_equal(status, VRAM_INVALID_POINTER); }

static void twice(struct vr_world *world, bool wrong) {
    const uint64_t buffer = allocate_buffer(world, 4 * KIB, STREAM(world));
    EXPECT_OK(free_buffer(world, buffer));
    if (wrong) expect_refused(free_once_more(world, buffer));
}

static void large_twice(struct vr_world *world, bool wrong) {
    const uint64_t buffer = allocate_buffer(world, 40 * MIB, STREAM(world));
    EXPECT_OK(free_buffer(world, buffer));
    if (wrong) expect_refused(free_once_more(world, buffer));
}

// The block left the quarantine, and its segment went back to the driver.
static void twice_after_release(struct vr_world *world, bool wrong) {
    const uint64_t buffer = allocate_buffer(world, 4 * MIB, STREAM(world));
    EXPECT_OK(free_buffer(world, buffer));
    EXPECT_OK(vram_empty_cache(world->allocator));
    if (wrong) expect_refused(free_once_more(world, buffer));
}

static void twice_in_pool(struct vr_world *world, bool wrong) {
    struct vram_pool *pool = NULL;
    EXPECT_OK(vram_pool_create(world->allocator, 0, NULL, &pool));
    const uint64_t buffer = allocate_in_pool(pool, 3000, STREAM(world));
    EXPECT_OK(free_buffer(world, buffer));
    if (wrong) expect_refused(free_once_more(world, buffer));
    vram_pool_release(pool);
}

static void twice_while_used(struct vr_world *world, bool wrong) {
    const uint64_t buffer = allocate_buffer(world, 8 * KIB, STREAM(world));
    EXPECT_OK(vram_record_stream(world->allocator, buffer, world->stream[0][2]));
    EXPECT_OK(vram_sim_busy(world->sim, 0, world->stream[0][2], 1000000));
    EXPECT_OK(free_buffer(world, buffer));
    if (wrong) expect_refused(free_once_more(world, buffer));
}

static void twice_without_cache(struct vr_world *world, bool wrong) {
    vram_set_caching(world->allocator, false);
    twice(world, wrong);
}

static void twice_after_reuse_of_part(struct vr_world *world, bool wrong) {
    const uint64_t first = allocate_buffer(world, 4 * KIB, STREAM(world)), second = allocate_buffer(world, 4 * KIB, STREAM(world));
    EXPECT_OK(free_buffer(world, first));
    EXPECT_OK(free_buffer(world, second));
    if (wrong) expect_refused(free_once_more(world, second));
}

static void inside(struct vr_world *world, bool wrong) {
    const uint64_t buffer = allocate_buffer(world, 16 * KIB, STREAM(world));
    if (wrong) expect_refused(free_once_more(world, buffer + 4 * KIB));
    EXPECT_OK(free_buffer(world, buffer));
}

static void inside_large(struct vr_world *world, bool wrong) {
    const uint64_t buffer = allocate_buffer(world, 64 * MIB, STREAM(world));
    if (wrong) expect_refused(free_once_more(world, buffer + 8));
    EXPECT_OK(free_buffer(world, buffer));
}

static void of_other_allocator(struct vr_world *world, bool wrong) {
    const struct vram_create_info info = {.driver = world->driver, .conf = "verify:True"};
    struct vram_allocator *other = NULL, *own = world->allocator;
    EXPECT_OK(vram_create(&info, &other, NULL));
    world->allocator = other;
    const uint64_t buffer = allocate_buffer(world, 4 * KIB, STREAM(world));
    world->allocator = own;
    if (wrong) expect_refused(free_once_more(world, buffer));
    world->allocator = other;
    EXPECT_OK(free_buffer(world, buffer));
    world->allocator = own;
    vram_destroy(other);
}

static void of_driver(struct vr_world *world, bool wrong) {
    uint64_t foreign = 0;
    const uint64_t buffer = allocate_buffer(world, 4 * KIB, STREAM(world));
    assert_int_equal(vr_cu(world->sim, mem_alloc, &foreign, 4 * KIB), VR_CU_SUCCESS);
    if (wrong) expect_refused(free_once_more(world, foreign));
    assert_int_equal(vr_cu(world->sim, mem_free, foreign), VR_CU_SUCCESS);
    EXPECT_OK(free_buffer(world, buffer));
}

static void of_host(struct vr_world *world, bool wrong) {
    uint64_t value = allocate_buffer(world, 4 * KIB, STREAM(world));
    if (wrong) expect_refused(free_once_more(world, VRAM_ADDRESS(&value)));
    EXPECT_OK(free_buffer(world, value));
}

static void leaked(struct vr_world *world, bool wrong) {
    const uint64_t buffer = allocate_buffer(world, 4 * KIB, STREAM(world));
    if (!wrong) EXPECT_OK(free_buffer(world, buffer));
}

static void leaked_many(struct vr_world *world, bool wrong) {
    for (int i = 0; i < 10; i++) {
        const uint64_t buffer = allocate_buffer(world, 1 * MIB, STREAM(world));
        if (!wrong || i % 2 == 0) EXPECT_OK(free_buffer(world, buffer));
    }
}

const struct seeded wrong_frees[] = {
    {"freed twice", VRAM_FAULT_DOUBLE_FREE, NULL, twice, {"allocate_buffer", "free_buffer", "free_once_more"}},
    {"large, freed twice", VRAM_FAULT_DOUBLE_FREE, NULL, large_twice, {"allocate_buffer", "free_buffer", "free_once_more"}},
    {"freed again after the cache was emptied",
     VRAM_FAULT_DOUBLE_FREE,
     NULL,
     twice_after_release,
     {"allocate_buffer", "free_buffer", "free_once_more"}},
    {"of a pool, freed twice", VRAM_FAULT_DOUBLE_FREE, NULL, twice_in_pool, {"allocate_in_pool", "free_buffer", "free_once_more"}},
    {"freed again while it is used", VRAM_FAULT_DOUBLE_FREE, NULL, twice_while_used, {"allocate_buffer", "free_buffer", "free_once_more"}},
    {"without the cache, freed twice",
     VRAM_FAULT_DOUBLE_FREE,
     NULL,
     twice_without_cache,
     {"allocate_buffer", "free_buffer", "free_once_more"}},
    {"expandable, freed twice", VRAM_FAULT_DOUBLE_FREE, "expandable_segments:True", twice, {"allocate_buffer", "free_buffer"}},
    {"from the driver's pool, freed twice", VRAM_FAULT_DOUBLE_FREE, "backend:cudaMallocAsync", twice, {"allocate_buffer", "free_buffer"}},
    {"freed again next to a free block",
     VRAM_FAULT_DOUBLE_FREE,
     "verify_quarantine_mb:0",
     twice_after_reuse_of_part,
     {"allocate_buffer", "free_buffer", "free_once_more"}},
    {"inside of a block", VRAM_FAULT_INNER_FREE, NULL, inside, {"allocate_buffer", "free_once_more"}},
    {"inside of a large block", VRAM_FAULT_INNER_FREE, NULL, inside_large, {"allocate_buffer", "free_once_more"}},
    {"of another allocator", VRAM_FAULT_FOREIGN_FREE, NULL, of_other_allocator, {"allocate_buffer", "free_once_more"}},
    {"of the driver", VRAM_FAULT_UNKNOWN_FREE, NULL, of_driver, {"free_once_more"}},
    {"of the host", VRAM_FAULT_UNKNOWN_FREE, NULL, of_host, {"free_once_more"}},
    {"never freed", VRAM_FAULT_LEAK, "verify_leaks:True", leaked, {"allocate_buffer"}},
    {"some never freed", VRAM_FAULT_LEAK, "verify_leaks:True", leaked_many, {"5242880 bytes in 5 blocks", "allocate_buffer"}},
};
const size_t wrong_free_count = VR_COUNT_OF(wrong_frees);
