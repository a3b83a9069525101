// expect.h: one-line checks for unit tests of the allocator. For cmocka programs only.
#ifndef VR_TEST_EXPECT_H
#define VR_TEST_EXPECT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/base.h"
#include "support/world.h"

#define EXPECT_OK(expression)             assert_string_equal(vram_status_name(expression), "VRAM_OK")
#define EXPECT_STATUS(status, expression) assert_string_equal(vram_status_name(expression), "VRAM_" #status)

// Check one field of one counter of device 0, for all pools.
#define EXPECT_CURRENT(world, family, value) assert_int_equal(expect_stats(world).family[VRAM_STAT_ALL].current, (int64_t)(value))
#define EXPECT_PEAK(world, family, value)    assert_int_equal(expect_stats(world).family[VRAM_STAT_ALL].peak, (int64_t)(value))
#define EXPECT_SCALAR(world, name, value)    assert_int_equal(expect_stats(world).name, (int64_t)(value))

// Checks the records since the last check, exactly, as {action, address, size}, and drops them.
#define EXPECT_RECORDS(world, ...)                                                                                                         \
    do {                                                                                                                                   \
        const struct expected_record expected_[] = {__VA_ARGS__};                                                                          \
        expect_records(world, expected_, VR_COUNT_OF(expected_), __FILE__, __LINE__);                                                      \
    } while (0)
#define EXPECT_NO_RECORDS(world) expect_records(world, NULL, 0, __FILE__, __LINE__)

struct expected_record {
    enum vr_record_action action;
    uint64_t address;
    uint64_t size_bytes;
};

VR_INLINE struct vram_stats expect_stats(const struct vr_world *world) {
    struct vram_stats stats;
    EXPECT_OK(vram_get_stats(world->allocator, 0, &stats));
    return stats;
}

// Opens a machine with one device whose events stay pending until completed by hand.
VR_INLINE void expect_world(struct vr_world *world, const char *conf, uint64_t memory_bytes) {
    const struct vr_world_options options = {.sim = {.memory_bytes = memory_bytes, .manual_completion = true}, .conf = conf};
    EXPECT_OK(vr_world_open(world, &options));
}

// Allocates on device 0; must succeed.
VR_INLINE uint64_t expect_malloc(struct vr_world *world, uint64_t size_bytes, uint64_t stream) {
    uint64_t address = 0;
    EXPECT_OK(vram_malloc(world->allocator, 0, size_bytes, stream, &address));
    assert_int_not_equal(address, 0);
    return address;
}

VR_INLINE void expect_free(struct vr_world *world, uint64_t address) { EXPECT_OK(vram_free(world->allocator, address)); }

VR_INLINE uint64_t expect_size(struct vr_world *world, uint64_t address) { return vram_allocated_size(world->allocator, address); }

// Checks that the allocator's state is valid, and that it leaves nothing behind.
VR_INLINE void expect_end(struct vr_world *world) {
    struct vram_error error = {0};
    if (vram_check(world->allocator, &error) != VRAM_OK) fail_msg("%s", error.message);
    assert_false(world->record_lost);
    assert_int_equal(vr_world_close(world), 0);
}

struct expected_blocks {
    enum vram_block_state state;
    size_t count;
};

VR_INLINE bool expect_count_block(const struct vram_block_view *view, void *user) {
    struct expected_blocks *blocks = user;
    blocks->count += view->state == blocks->state;
    return true;
}

// Counts the blocks of a device in a state.
VR_INLINE size_t expect_blocks_in(struct vr_world *world, uint32_t device, enum vram_block_state state) {
    struct expected_blocks blocks = {.state = state};
    EXPECT_OK(vram_walk(world->allocator, device, expect_count_block, &blocks));
    return blocks.count;
}

VR_INLINE void expect_records(struct vr_world *world, const struct expected_record *expected, size_t count, const char *file, int line) {
    for (size_t i = 0; i < count || i < world->record_count; i++) {
        const struct vr_record *found = i < world->record_count ? &world->records[i] : NULL;
        if (found && i < count && found->action == expected[i].action && found->address == expected[i].address &&
            found->size_bytes == expected[i].size_bytes)
            continue;
        print_error("record %u: found action %d 0x%llx %llu, expected action %d 0x%llx %llu\n", (unsigned)i,
                    found ? (int)found->action : -1, found ? (unsigned long long)found->address : 0,
                    found ? (unsigned long long)found->size_bytes : 0, i < count ? (int)expected[i].action : -1,
                    i < count ? (unsigned long long)expected[i].address : 0, i < count ? (unsigned long long)expected[i].size_bytes : 0);
        _fail(file, line);
    }
    vr_world_forget(world);
}

#endif
