// Compares the simulated driver's cost model with measurements on GPUs. Every expected value is a published figure, not a constant of the
// model; docs/internals/simulated-device.md names the sources, and the figures that no profile reproduces.
#include "unit/sim_fixture.h"
#include "vram/sim.h"

#define PAGE  (2 * VR_MIB)
#define MICRO 1000u

static const struct vr_cu_allocation_prop on_device_0 = {
    .type = VR_CU_MEM_ALLOCATION_TYPE_PINNED,
    .location = {VR_CU_MEM_LOCATION_TYPE_DEVICE, 0},
};
static const struct vr_cu_access_desc read_write = {{VR_CU_MEM_LOCATION_TYPE_DEVICE, 0}, VR_CU_MEM_ACCESS_FLAGS_PROT_READWRITE};

static void assert_within_tenth(double simulated, double measured) {
    if (simulated < measured * 0.9 || simulated > measured * 1.1) fail_msg("%.3f is not within 10 %% of %.3f", simulated, measured);
}

// Returns the average nanoseconds of the calls of that name so far.
static double average_ns(struct vram_driver *driver, const char *call) {
    const char *name;
    uint64_t count, cost_ns;
    for (uint32_t i = 0; vram_sim_call_at(driver, i, &name, &count, &cost_ns); i++)
        if (strcmp(name, call) == 0 && count > 0) return (double)cost_ns / (double)count;
    fail_msg("%s was not called", call);
    return 0;
}

// 4096 pages of 2 MiB, one by one, on an A100.
static void pages_one_by_one(void **state) {
    for (int profile = VRAM_SIM_CHEAP; profile <= VRAM_SIM_DEAR; profile++) {
        struct vram_driver *driver = open_sim(&(struct vram_sim_options){.profile = (enum vram_sim_profile)profile});
        uint64_t address, handle;
        assert_cu(vr_cu(driver, mem_address_reserve, &address, 4096 * PAGE, 0, 0, 0), SUCCESS);
        for (uint64_t i = 0; i < 4096; i++) {
            assert_cu(vr_cu(driver, mem_create, &handle, PAGE, &on_device_0, 0), SUCCESS);
            assert_cu(vr_cu(driver, mem_map, address + i * PAGE, PAGE, 0, handle, 0), SUCCESS);
            assert_cu(vr_cu(driver, mem_set_access, address + i * PAGE, PAGE, &read_write, 1), SUCCESS);
            assert_cu(vr_cu(driver, mem_unmap, address + i * PAGE, PAGE), SUCCESS);
        }
        assert_within_tenth(average_ns(driver, "cuMemMap"), 1450);
        assert_within_tenth(average_ns(driver, "cuMemSetAccess"), 35990);
        assert_within_tenth(average_ns(driver, "cuMemUnmap"), 25600);
        vram_driver_destroy(driver);
    }
    (void)state;
}

static uint64_t allocate(struct vram_driver *driver, uint64_t size) {
    uint64_t address;
    assert_cu(vr_cu(driver, mem_alloc, &address, size), SUCCESS);
    return address;
}

static void allocations(void **state) {
    struct vram_driver *driver = open_sim(NULL);
    uint64_t before = vram_sim_clock_ns(driver), address = allocate(driver, 2 * VR_GIB);
    assert_within_tenth((double)(vram_sim_clock_ns(driver) - before), 840 * MICRO);
    assert_cu(vr_cu(driver, mem_free, address), SUCCESS);

    before = vram_sim_clock_ns(driver); // a pair of 2 MiB, like random pairs up to that size
    address = allocate(driver, PAGE);
    assert_cu(vr_cu(driver, mem_free, address), SUCCESS);
    assert_within_tenth((double)(vram_sim_clock_ns(driver) - before), 66 * MICRO);

    address = allocate(driver, 1000); // now the driver has a page for small sizes
    assert_cu(vr_cu(driver, mem_free, address), SUCCESS);
    before = vram_sim_clock_ns(driver); // small malloc, launch, free
    address = allocate(driver, 1000);
    assert_cu(vr_cu(driver, memset_d8_async, address, 0, 1000, 0), SUCCESS);
    assert_cu(vr_cu(driver, mem_free, address), SUCCESS);
    assert_within_tenth((double)(vram_sim_clock_ns(driver) - before), 14 * MICRO);
    vram_driver_destroy(driver);
    (void)state;
}

static void free_under_a_running_kernel(void **state) {
    struct vram_driver *driver = open_sim(NULL);
    uint64_t address = allocate(driver, 1000);
    assert_int_equal(vram_sim_busy(driver, 0, 0, 1650 * MICRO), VRAM_OK); // the rest of the kernel
    uint64_t before = vram_sim_clock_ns(driver);
    assert_cu(vr_cu(driver, mem_free, address), SUCCESS);
    assert_within_tenth((double)(vram_sim_clock_ns(driver) - before), 1650 * MICRO);
    vram_driver_destroy(driver);
    (void)state;
}

static void events_and_queries(void **state) {
    struct vram_driver *driver = open_sim(NULL);
    uint64_t event, timed, free_bytes, total_bytes;
    assert_cu(vr_cu(driver, event_create, &event, VR_CU_EVENT_DISABLE_TIMING), SUCCESS);
    assert_cu(vr_cu(driver, event_create, &timed, 0), SUCCESS);
    uint64_t before = vram_sim_clock_ns(driver);
    assert_cu(vr_cu(driver, event_record, event, 0), SUCCESS);
    assert_cu(vr_cu(driver, event_query, event), SUCCESS);
    assert_within_tenth((double)(vram_sim_clock_ns(driver) - before), 466);
    before = vram_sim_clock_ns(driver);
    assert_cu(vr_cu(driver, event_record, timed, 0), SUCCESS);
    assert_within_tenth((double)(vram_sim_clock_ns(driver) - before), 2500);
    assert_cu(vr_cu(driver, mem_get_info, &free_bytes, &total_bytes), SUCCESS);
    assert_within_tenth(average_ns(driver, "cuMemGetInfo"), 6000);
    vram_driver_destroy(driver);
    (void)state;
}

static void host_memory(void **state) {
    struct vram_driver *driver = open_sim(NULL);
    uint64_t host, before = vram_sim_clock_ns(driver);
    assert_cu(vr_cu(driver, mem_host_alloc, &host, 8 * VR_GIB, 0), SUCCESS); // never touched
    assert_within_tenth((double)(vram_sim_clock_ns(driver) - before), 2.79e9);
    before = vram_sim_clock_ns(driver);
    assert_cu(vr_cu(driver, mem_host_alloc, &host, 512, 0), SUCCESS);
    assert_within_tenth((double)(vram_sim_clock_ns(driver) - before), 5.7 * MICRO); // 5.2 at least
    vram_driver_destroy(driver);
    (void)state;
}

// The profiles differ only in setting access to a range in one call.
static void profiles_differ_in_range_access(void **state) {
    uint64_t costs_ns[3];
    for (int profile = VRAM_SIM_CHEAP; profile <= VRAM_SIM_FREE; profile++) {
        struct vram_driver *driver = open_sim(&(struct vram_sim_options){.profile = (enum vram_sim_profile)profile});
        uint64_t address, handle;
        assert_cu(vr_cu(driver, mem_address_reserve, &address, 256 * PAGE, 0, 0, 0), SUCCESS);
        assert_cu(vr_cu(driver, mem_create, &handle, 256 * PAGE, &on_device_0, 0), SUCCESS);
        assert_cu(vr_cu(driver, mem_map, address, 256 * PAGE, 0, handle, 0), SUCCESS);
        uint64_t before = vram_sim_clock_ns(driver);
        assert_cu(vr_cu(driver, mem_set_access, address, 256 * PAGE, &read_write, 1), SUCCESS);
        costs_ns[profile] = vram_sim_clock_ns(driver) - before;
        vram_driver_destroy(driver);
    }
    assert_int_equal(costs_ns[VRAM_SIM_CHEAP], 36000 + 255 * 500);
    assert_int_equal(costs_ns[VRAM_SIM_DEAR], 256 * 36000);
    assert_int_equal(costs_ns[VRAM_SIM_FREE], 0);
    (void)state;
}

static void free_profile_moves_no_clock(void **state) {
    struct vram_driver *driver = open_sim(&(struct vram_sim_options){.profile = VRAM_SIM_FREE});
    uint64_t address = allocate(driver, VR_GIB), event, host;
    assert_cu(vr_cu(driver, event_create, &event, 0), SUCCESS);
    assert_cu(vr_cu(driver, event_record, event, 0), SUCCESS);
    assert_cu(vr_cu(driver, mem_host_alloc, &host, VR_MIB, 0), SUCCESS);
    assert_cu(vr_cu(driver, mem_free_host, host), SUCCESS);
    assert_cu(vr_cu(driver, mem_free, address), SUCCESS);
    assert_int_equal(vram_sim_clock_ns(driver), 0);
    vram_driver_destroy(driver);
    (void)state;
}

static void costs_add_up_to_the_clock(void **state) {
    struct vram_driver *driver = open_sim(NULL);
    for (int i = 0; i < 100; i++) {
        uint64_t address = allocate(driver, 4096u << i % 16);
        if (i % 3 != 0) assert_cu(vr_cu(driver, mem_free, address), SUCCESS);
    }
    uint64_t sum_ns = 0, cost_ns;
    for (uint32_t i = 0; vram_sim_call_at(driver, i, NULL, NULL, &cost_ns); i++) sum_ns += cost_ns;
    assert_int_equal(sum_ns, vram_sim_clock_ns(driver));
    vram_driver_destroy(driver);
    (void)state;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pages_one_by_one),
        cmocka_unit_test(allocations),
        cmocka_unit_test(free_under_a_running_kernel),
        cmocka_unit_test(events_and_queries),
        cmocka_unit_test(host_memory),
        cmocka_unit_test(profiles_differ_in_range_access),
        cmocka_unit_test(free_profile_moves_no_clock),
        cmocka_unit_test(costs_add_up_to_the_clock),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
