// Uses of blocks after their free.
#include "verify/seeded.h"

#define STREAM(world) ((world)->stream[0][1])
enum { KIB = 1 << 10, MIB = 1 << 20 };

static void write_after_free(struct vr_world *world, uint64_t size, bool wrong) {
    const uint64_t buffer = allocate_buffer(world, size, STREAM(world));
    write_bytes(world, buffer, size, STREAM(world));
    EXPECT_OK(free_buffer(world, buffer));
    if (wrong) write_bytes(world, buffer + size / 2, 4, STREAM(world));
}

// Found when the allocator ends.
static void small(struct vr_world *world, bool wrong) { write_after_free(world, 2 * KIB, wrong); }

static void large(struct vr_world *world, bool wrong) {
    write_after_free(world, 50 * MIB, wrong);
    verify_all(world);
}

// Found when the block leaves the quarantine.
static void pushed_out(struct vr_world *world, bool wrong) {
    write_after_free(world, 700 * KIB, wrong);
    for (int i = 0; i < 4; i++) EXPECT_OK(free_once_more(world, allocate_buffer(world, 700 * KIB, STREAM(world))));
}

// Written by a stream that nothing ordered before the free.
static void other_stream(struct vr_world *world, bool wrong) {
    const uint64_t buffer = allocate_buffer(world, 3 * MIB, STREAM(world));
    if (!wrong) write_bytes(world, buffer, 3 * MIB, world->stream[0][2]);
    if (!wrong) EXPECT_OK(vram_record_stream(world->allocator, buffer, world->stream[0][2]));
    EXPECT_OK(free_buffer(world, buffer));
    if (wrong) write_bytes(world, buffer, 3 * MIB, world->stream[0][2]);
    EXPECT_OK(vram_empty_cache(world->allocator));
}

// Written long after the block left the quarantine: free memory holds the poison, too.
static void in_free_memory(struct vr_world *world, bool wrong) {
    const uint64_t buffer = allocate_buffer(world, 4 * KIB, STREAM(world)), kept = allocate_buffer(world, 4 * KIB, STREAM(world));
    EXPECT_OK(free_buffer(world, buffer));
    if (wrong) write_bytes(world, buffer, 16, STREAM(world));
    verify_all(world);
    EXPECT_OK(free_once_more(world, kept));
}

static void recorded(struct vr_world *world, bool wrong) {
    const uint64_t buffer = allocate_buffer(world, 4 * KIB, STREAM(world));
    if (!wrong) EXPECT_OK(vram_record_stream(world->allocator, buffer, world->stream[0][2]));
    EXPECT_OK(free_buffer(world, buffer));
    if (wrong) assert_int_equal(vram_record_stream(world->allocator, buffer, world->stream[0][2]), VRAM_INVALID_POINTER);
}

const struct seeded late_uses[] = {
    {"small", VRAM_FAULT_USE_AFTER_FREE, NULL, small, {"allocate_buffer", "free_buffer", "vram_destroy"}},
    {"large", VRAM_FAULT_USE_AFTER_FREE, NULL, large, {"allocate_buffer", "free_buffer", "verify_all"}},
    {"found at the end of the quarantine",
     VRAM_FAULT_USE_AFTER_FREE,
     "verify_quarantine_mb:2",
     pushed_out,
     {"allocate_buffer", "free_buffer", "free_once_more"}},
    {"by another stream", VRAM_FAULT_USE_AFTER_FREE, NULL, other_stream, {"allocate_buffer", "free_buffer", "vram_empty_cache"}},
    {"in free memory",
     VRAM_FAULT_USE_AFTER_FREE,
     "verify_quarantine_mb:0",
     in_free_memory,
     {"allocate_buffer", "free_buffer", "verify_all"}},
    {"recorded on a stream", VRAM_FAULT_USE_AFTER_FREE, NULL, recorded, {"allocate_buffer", "free_buffer", "recorded"}},
};
const size_t late_use_count = VR_COUNT_OF(late_uses);
