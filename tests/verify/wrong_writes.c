// Writes outside of a live block: 16 mistakes.
#include "verify/seeded.h"

#define STREAM(world) ((world)->stream[0][1])
enum { KIB = 1 << 10, MIB = 1 << 20 };

// One buffer, a write of `bytes` at an offset from its begin or end, and its free.
static void write_around(struct vr_world *world, uint64_t size, uint64_t at, uint64_t bytes, uint64_t stream, bool free_it) {
    const uint64_t buffer = allocate_buffer(world, size, stream);
    write_bytes(world, buffer + at, bytes, stream);
    if (free_it) {
        EXPECT_OK(free_buffer(world, buffer));
    } else {
        verify_all(world);
    }
}

static void one_element_behind(struct vr_world *world, bool wrong) {
    write_around(world, 4000, 0, wrong ? 4004 : 4000, STREAM(world), true);
}

static void one_byte_behind(struct vr_world *world, bool wrong) { write_around(world, 511, 0, wrong ? 512 : 511, STREAM(world), true); }

static void behind_whole_granule(struct vr_world *world, bool wrong) {
    write_around(world, 512, 0, wrong ? 516 : 512, STREAM(world), true);
}

static void behind_on_demand(struct vr_world *world, bool wrong) {
    write_around(world, 10 * KIB, 0, 10 * KIB + (wrong ? 128 : 0), STREAM(world), false);
}

static void behind_on_legacy_stream(struct vr_world *world, bool wrong) {
    write_around(world, 3 * MIB, 0, 3 * MIB + (wrong ? 8 : 0), 0, true);
}

static void behind_own_segment(struct vr_world *world, bool wrong) {
    write_around(world, 24 * MIB, 0, 24 * MIB + (wrong ? 64 : 0), STREAM(world), true);
}

static void far_behind(struct vr_world *world, bool wrong) { write_around(world, 700, wrong ? 1100 : 600, 20, STREAM(world), true); }

static void first_in_segment_in_front(struct vr_world *world, bool wrong) {
    const uint64_t buffer = allocate_buffer(world, 2000, STREAM(world));
    write_bytes(world, wrong ? buffer - 4 : buffer, 4, STREAM(world));
    EXPECT_OK(free_buffer(world, buffer));
}

static void large_in_front(struct vr_world *world, bool wrong) {
    const uint64_t buffer = allocate_buffer(world, 30 * MIB, STREAM(world));
    write_bytes(world, wrong ? buffer - 256 : buffer, 256, STREAM(world));
    EXPECT_OK(free_buffer(world, buffer));
}

static void second_in_segment_in_front(struct vr_world *world, bool wrong) {
    const uint64_t first = allocate_buffer(world, 1000, STREAM(world)), second = allocate_buffer(world, 1000, STREAM(world));
    write_bytes(world, wrong ? second - 8 : second, 8, STREAM(world));
    EXPECT_OK(free_buffer(world, second));
    EXPECT_OK(free_buffer(world, first));
}

// The free of the second block finds the redzone between two blocks changed; the first one is blamed.
static void found_by_neighbour(struct vr_world *world, bool wrong) {
    const uint64_t first = allocate_buffer(world, 1000, STREAM(world)), second = allocate_buffer(world, 1000, STREAM(world));
    write_bytes(world, first, wrong ? 1032 : 1000, STREAM(world));
    EXPECT_OK(free_buffer(world, second));
    EXPECT_OK(free_buffer(world, first));
}

static void in_private_pool(struct vr_world *world, bool wrong) {
    struct vram_pool *pool = NULL;
    EXPECT_OK(vram_pool_create(world->allocator, 0, NULL, &pool));
    const uint64_t buffer = allocate_in_pool(pool, 5000, STREAM(world));
    write_bytes(world, buffer, wrong ? 5001 : 5000, STREAM(world));
    EXPECT_OK(free_buffer(world, buffer));
    vram_pool_release(pool);
}

static void never_freed(struct vr_world *world, bool wrong) {
    const uint64_t buffer = allocate_buffer(world, 6000, STREAM(world));
    write_bytes(world, buffer, wrong ? 6016 : 6000, STREAM(world)); // found when the allocator ends
}

static void by_other_stream(struct vr_world *world, bool wrong) {
    const uint64_t buffer = allocate_buffer(world, 9000, STREAM(world));
    EXPECT_OK(vram_record_stream(world->allocator, buffer, world->stream[0][2]));
    write_bytes(world, buffer, wrong ? 9100 : 9000, world->stream[0][2]);
    EXPECT_OK(free_buffer(world, buffer));
}

static void without_cache(struct vr_world *world, bool wrong) {
    vram_set_caching(world->allocator, false);
    one_element_behind(world, wrong);
}

const struct seeded wrong_writes[] = {
    {"one element behind", VRAM_FAULT_OVERFLOW, NULL, one_element_behind, {"allocate_buffer", "free_buffer"}},
    {"one byte behind", VRAM_FAULT_OVERFLOW, NULL, one_byte_behind, {"allocate_buffer", "free_buffer"}},
    {"behind a whole granule", VRAM_FAULT_OVERFLOW, NULL, behind_whole_granule, {"allocate_buffer", "free_buffer"}},
    {"behind, found on demand", VRAM_FAULT_OVERFLOW, NULL, behind_on_demand, {"allocate_buffer", "verify_all"}},
    {"behind, on the legacy stream", VRAM_FAULT_OVERFLOW, NULL, behind_on_legacy_stream, {"allocate_buffer", "free_buffer"}},
    {"behind a segment of its own", VRAM_FAULT_OVERFLOW, NULL, behind_own_segment, {"allocate_buffer", "free_buffer"}},
    {"far behind", VRAM_FAULT_OVERFLOW, NULL, far_behind, {"allocate_buffer", "free_buffer"}},
    {"in front of the first block of a segment", VRAM_FAULT_UNDERFLOW, NULL, first_in_segment_in_front, {"allocate_buffer", "free_buffer"}},
    {"in front of a large block", VRAM_FAULT_UNDERFLOW, NULL, large_in_front, {"allocate_buffer", "free_buffer"}},
    {"in front of a second block", VRAM_FAULT_UNDERFLOW, NULL, second_in_segment_in_front, {"allocate_buffer", "free_buffer"}},
    {"behind, found by the neighbour", VRAM_FAULT_OVERFLOW, NULL, found_by_neighbour, {"allocate_buffer", "free_buffer"}},
    {"in a private pool", VRAM_FAULT_OVERFLOW, NULL, in_private_pool, {"allocate_in_pool", "free_buffer"}},
    {"behind a block that is never freed", VRAM_FAULT_OVERFLOW, NULL, never_freed, {"allocate_buffer", "vram_destroy"}},
    {"by another stream", VRAM_FAULT_OVERFLOW, NULL, by_other_stream, {"allocate_buffer", "free_buffer"}},
    {"without the cache", VRAM_FAULT_OVERFLOW, NULL, without_cache, {"allocate_buffer", "free_buffer"}},
    {"in an expandable segment", VRAM_FAULT_OVERFLOW, "expandable_segments:True", one_element_behind, {"allocate_buffer", "free_buffer"}},
    {"in paged memory", VRAM_FAULT_OVERFLOW, "paged:True", behind_own_segment, {"allocate_buffer", "free_buffer"}},
    {"from the driver's pool", VRAM_FAULT_OVERFLOW, "backend:cudaMallocAsync", one_element_behind, {"allocate_buffer", "free_buffer"}},
};
const size_t wrong_write_count = VR_COUNT_OF(wrong_writes);
