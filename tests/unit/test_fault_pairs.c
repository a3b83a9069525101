// Tests two refusals of the driver, the second while handling the first: contexts, graphs and routes are not lost. tests/attack/fault_ops
// attacks all kinds of operations; these are the smallest cases it found.
#include "support/expect.h"

#include "driver/abi.h"
#include "driver/driver.h"
#include "driver/fault/fault.h"
#include "vram/pool.h"
#include "vram/sim.h"
#include "vram/vram.h"

#define CONTEXT_BYTES (50 * VR_MIB)

struct machine {
    struct vram_driver *sim, *driver;
    struct vram_allocator *allocator;
};

static void open_machine(struct machine *machine, const char *conf) {
    const struct vram_sim_options options = {.memory_bytes = 200 * VR_MIB, .context_bytes = CONTEXT_BYTES};
    EXPECT_OK(vram_sim_create(&options, &machine->sim));
    EXPECT_OK(vram_driver_fault(machine->sim, &machine->driver));
    const struct vram_create_info info = {.driver = machine->driver, .conf = conf, .ignore_environment = true};
    EXPECT_OK(vram_create(&info, &machine->allocator, NULL));
}

static void refuse(struct machine *machine, uint64_t nth, uint64_t then) {
    EXPECT_OK(vram_driver_fault_set(machine->driver, NULL, nth, VR_CU_UNKNOWN));
    vr_fault_then(machine->driver, then, VR_CU_UNKNOWN);
}

static void serve(struct machine *machine) { EXPECT_OK(vram_driver_fault_set(machine->driver, NULL, 0, 0)); }

// Checks that nothing keeps a context of the device.
static void close_machine(struct machine *machine) {
    vram_destroy(machine->allocator);
    assert_int_equal(vram_sim_memory_used(machine->sim, 0), 0);
    assert_int_equal(vram_sim_live_objects(machine->sim), 0);
    vram_driver_destroy(machine->driver);
    vram_driver_destroy(machine->sim);
}

static void a_device_that_could_not_be_opened(void **state) {
    (void)state;
    for (uint64_t first = 1; first < 10; first++)
        for (uint64_t second = 1; second < 6; second++)
            for (int again = 0; again < 2; again++) {
                struct machine machine;
                uint64_t address = 0;
                open_machine(&machine, "");
                refuse(&machine, first, second);
                if (vram_malloc(machine.allocator, 0, 512, 0, &address) == VRAM_OK) EXPECT_OK(vram_free(machine.allocator, address));
                serve(&machine);
                if (again != 0) {
                    EXPECT_OK(vram_malloc(machine.allocator, 0, 512, 0, &address));
                    EXPECT_OK(vram_free(machine.allocator, address));
                }
                close_machine(&machine);
            }
}

static void an_allocator_that_ends(void **state) {
    (void)state;
    static const char *const confs[] = {"", "expandable_segments:True", "sleepable:True", "paged:True", "backend:cudaMallocAsync"};
    for (size_t conf = 0; conf < VR_COUNT_OF(confs); conf++)
        for (uint64_t first = 1; first < 20; first++)
            for (uint64_t second = 1; second < 4; second++) {
                struct machine machine;
                uint64_t address = 0;
                open_machine(&machine, confs[conf]);
                EXPECT_OK(vram_malloc(machine.allocator, 0, 30 * VR_MIB, 0, &address));
                EXPECT_OK(vram_malloc(machine.allocator, 0, 512, 0, &address));
                refuse(&machine, first, second);
                vram_destroy(machine.allocator);
                machine.allocator = NULL;
                serve(&machine);
                close_machine(&machine);
            }
}

// Ending a route closes it, and ending a capture ends it, whatever the driver returns for the postponed frees.
static void captures_and_routes_end(void **state) {
    (void)state;
    for (uint64_t first = 1; first < 12; first++)
        for (uint64_t second = 1; second < 4; second++) {
            struct vr_world world;
            const struct vr_world_options options = {
                .conf = "graph_capture_record_stream_reuse:True", .faults = true, .without_record = true};
            EXPECT_OK(vr_world_open(&world, &options));
            struct vram_pool *pool = NULL;
            const struct vram_route all = {.kind = VRAM_ROUTE_ALL};
            const uint64_t stream = world.stream[0][1];
            uint64_t graph = 0;
            int capturing = 1;
            EXPECT_OK(vram_pool_create(world.allocator, 0, NULL, &pool));
            const uint64_t used = expect_malloc(&world, 4096, stream);
            EXPECT_OK(vram_record_stream(world.allocator, used, world.stream[0][2]));
            EXPECT_OK(vram_pool_begin(pool, &all));
            EXPECT_OK(vram_capture_begin(pool, stream, VRAM_CAPTURE_RELAXED, NULL));
            expect_free(&world, used); // postponed
            EXPECT_OK(vram_capture_mark_begin(world.allocator, 0, stream));
            EXPECT_OK(vram_driver_fault_set(world.driver, NULL, first, VR_CU_UNKNOWN));
            vr_fault_then(world.driver, second, VR_CU_UNKNOWN);
            const enum vram_status ended = vram_pool_end(pool, &all);
            assert_true(ended == VRAM_OK || ended == VRAM_DRIVER);
            EXPECT_STATUS(INVALID_ARGUMENT, vram_pool_end(pool, &all));
            const enum vram_status status = vram_capture_end(pool, stream, &graph, NULL);
            assert_int_equal(status == VRAM_OK, graph != 0);
            EXPECT_OK(vram_driver_fault_set(world.driver, NULL, 0, 0));
            assert_int_equal(vr_cu(world.sim, stream_is_capturing, stream, &capturing), VR_CU_SUCCESS);
            assert_int_equal(capturing, VR_CU_STREAM_CAPTURE_STATUS_NONE);
            if (graph != 0) assert_int_equal(vr_cu(world.sim, graph_destroy, graph), VR_CU_SUCCESS);
            EXPECT_OK(vram_capture_mark_end(world.allocator, 0, stream));
            expect_free(&world, expect_malloc(&world, 512, stream));
            vram_pool_release(pool);
            expect_end(&world);
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_device_that_could_not_be_opened),
        cmocka_unit_test(an_allocator_that_ends),
        cmocka_unit_test(captures_and_routes_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
