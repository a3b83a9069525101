// Tests peers: access of a device to another's present and future memory, and what happens without access.
#include "support/expect.h"

#include <string.h>

#include "driver/driver.h"
#include "sim/sim.h"
#include "vram/share.h"
#include "vram/sim.h"

static const char *const confs[] = {"", "expandable_segments:True", "paged:True"};

static void open_two(struct vr_world *world, const char *conf, bool no_peers) {
    const struct vr_world_options options = {
        .sim = {.device_count = 2, .memory_bytes = VR_GIB, .no_peers = no_peers}, .conf = conf, .faults = true};
    EXPECT_OK(vr_world_open(world, &options));
}

// Returns whether work on `device` can use the whole block.
static bool reaches(struct vr_world *world, uint32_t device, uint64_t address, uint64_t size_bytes) {
    EXPECT_STATUS(OK, vr_cu(world->sim, ctx_set_current, world->context[device]) == VR_CU_SUCCESS ? VRAM_OK : VRAM_DRIVER);
    const vr_cu_result result = vr_cu(world->sim, memset_d8, address, 1, size_bytes);
    (void)vr_cu(world->sim, ctx_set_current, world->context[0]);
    return result == VR_CU_SUCCESS;
}

static uint64_t get(struct vr_world *world, uint32_t device, uint64_t size_bytes) {
    uint64_t address = 0;
    EXPECT_OK(vram_malloc(world->allocator, device, size_bytes, 0, &address));
    return address;
}

static void what_is_there_and_what_comes(void **state) {
    (void)state;
    for (size_t c = 0; c < VR_COUNT_OF(confs); c++) {
        struct vr_world world;
        struct vram_error error;
        open_two(&world, confs[c], false);
        const uint64_t before = get(&world, 1, 30 * VR_MIB), small = get(&world, 1, 1000), own = get(&world, 0, 5 * VR_MIB);
        bool possible = false;
        EXPECT_OK(vram_peer_possible(world.allocator, 0, 1, &possible));
        assert_true(possible);
        assert_false(reaches(&world, 0, before, 30 * VR_MIB));
        assert_false(vram_peer_enabled(world.allocator, 0, 1));
        EXPECT_OK(vram_peer_enable(world.allocator, 0, 1, &error));
        assert_true(vram_peer_enabled(world.allocator, 0, 1));
        assert_false(vram_peer_enabled(world.allocator, 1, 0)); // only one direction
        assert_true(reaches(&world, 0, before, 30 * VR_MIB));
        assert_true(reaches(&world, 0, small, 1000));
        assert_false(reaches(&world, 1, own, 5 * VR_MIB));
        const uint64_t after = get(&world, 1, 90 * VR_MIB);
        assert_true(reaches(&world, 0, after, 90 * VR_MIB));
        EXPECT_OK(vram_free(world.allocator, before));
        EXPECT_OK(vram_free(world.allocator, after));
        EXPECT_OK(vram_empty_cache(world.allocator));
        const uint64_t again = get(&world, 1, 60 * VR_MIB); // newly mapped pages
        assert_true(reaches(&world, 0, again, 60 * VR_MIB));
        const uint64_t calls = vram_sim_calls(world.sim, "cuCtxEnablePeerAccess");
        EXPECT_OK(vram_peer_enable(world.allocator, 0, 1, &error));
        assert_int_equal(vram_sim_calls(world.sim, "cuCtxEnablePeerAccess"), calls); // once is enough
        EXPECT_OK(vram_free(world.allocator, again));
        EXPECT_OK(vram_free(world.allocator, small));
        EXPECT_OK(vram_free(world.allocator, own));
        expect_end(&world);
    }
}

// Other code in the process already enabled it.
static void enabled_by_others_is_fine(void **state) {
    struct vr_world world;
    (void)state;
    open_two(&world, "", false);
    const uint64_t block = get(&world, 1, VR_MIB);
    assert_int_equal(vr_cu(world.sim, ctx_enable_peer_access, world.context[1], 0), VR_CU_SUCCESS);
    EXPECT_OK(vram_peer_enable(world.allocator, 0, 1, NULL));
    assert_true(reaches(&world, 0, block, VR_MIB));
    EXPECT_OK(vram_free(world.allocator, block));
    expect_end(&world);
}

static void what_cannot_be_is_refused(void **state) {
    struct vr_world world;
    struct vram_error error;
    bool possible = true;
    (void)state;
    open_two(&world, "expandable_segments:True", true);
    EXPECT_OK(vram_peer_possible(world.allocator, 0, 1, &possible));
    assert_false(possible);
    EXPECT_STATUS(UNSUPPORTED, vram_peer_enable(world.allocator, 0, 1, &error));
    assert_string_equal(error.message, "device 0 cannot access the memory of device 1");
    assert_false(vram_peer_enabled(world.allocator, 0, 1));
    EXPECT_OK(vram_peer_possible(world.allocator, 1, 1, &possible));
    assert_true(possible);
    EXPECT_OK(vram_peer_enable(world.allocator, 1, 1, &error));
    EXPECT_STATUS(INVALID_ARGUMENT, vram_peer_possible(world.allocator, 0, 2, &possible));
    EXPECT_STATUS(INVALID_ARGUMENT, vram_peer_enable(world.allocator, 64, 0, &error));
    assert_false(vram_peer_enabled(world.allocator, 64, 0));
    expect_end(&world);
}

// With each call refused once, either the function fails and a second try succeeds, or access works.
static void every_call_may_fail(void **state) {
    (void)state;
    for (size_t c = 0; c < VR_COUNT_OF(confs); c++) {
        bool fired = true;
        uint64_t nth = 1;
        for (; fired; nth++) {
            struct vr_world world;
            struct vram_error error = {.message = ""};
            open_two(&world, confs[c], false);
            const uint64_t large = get(&world, 1, 70 * VR_MIB), hole = get(&world, 1, 40 * VR_MIB), last = get(&world, 1, 70 * VR_MIB);
            EXPECT_OK(vram_free(world.allocator, hole));
            EXPECT_OK(vram_empty_cache(world.allocator)); // two runs of pages
            EXPECT_OK(vram_driver_fault_set(world.driver, NULL, nth, VR_CU_UNKNOWN));
            const enum vram_status status = vram_peer_enable(world.allocator, 0, 1, &error);
            fired = vram_driver_fault_count(world.driver) != 0;
            EXPECT_OK(vram_driver_fault_set(world.driver, NULL, 0, 0));
            assert_int_equal(vram_peer_enabled(world.allocator, 0, 1), status == VRAM_OK);
            if (status != VRAM_OK) assert_true(fired && status == VRAM_DRIVER && error.message[0] != '\0');
            (void)vr_cu(world.sim, ctx_set_current, world.context[0]);
            EXPECT_OK(vram_peer_enable(world.allocator, 0, 1, NULL));
            assert_true(reaches(&world, 0, large, 70 * VR_MIB));
            assert_true(reaches(&world, 0, last, 70 * VR_MIB));
            EXPECT_OK(vram_free(world.allocator, large));
            EXPECT_OK(vram_free(world.allocator, last));
            expect_end(&world);
        }
        assert_true(nth > 5);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_there_and_what_comes),
        cmocka_unit_test(enabled_by_others_is_fine),
        cmocka_unit_test(what_cannot_be_is_refused),
        cmocka_unit_test(every_call_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
