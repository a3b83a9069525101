// Tests the driver that makes chosen calls fail.
#include "unit/sim_fixture.h"
#include "vram/sim.h"

static void the_nth_call_fails_once(void **state) {
    struct vram_driver *sim = open_sim(NULL), *driver;
    uint64_t address = 0;
    assert_int_equal(vram_driver_fault(sim, &driver), VRAM_OK);
    assert_cu(vr_cu(driver, mem_alloc, &address, 512), SUCCESS);
    assert_int_equal(vram_driver_fault_set(driver, "cuMemAlloc", 2, VR_CU_OUT_OF_MEMORY), VRAM_OK);
    uint64_t before = vram_sim_calls(sim, "cuMemAlloc"), kept = 7;
    assert_cu(vr_cu(driver, mem_alloc, &address, 512), SUCCESS);
    assert_cu(vr_cu(driver, mem_free, address), SUCCESS); // other functions do not count
    assert_cu(vr_cu(driver, mem_alloc, &kept, 512), OUT_OF_MEMORY);
    assert_int_equal(kept, 7);
    assert_cu(vr_cu(driver, mem_alloc, &address, 512), SUCCESS);
    assert_int_equal(vram_sim_calls(sim, "cuMemAlloc"), before + 2);
    assert_int_equal(vram_driver_fault_count(driver), 1);
    vram_driver_destroy(driver);
    vram_driver_destroy(sim);
    (void)state;
}

static void any_call_counts_without_a_name(void **state) {
    struct vram_driver *sim = open_sim(NULL), *driver;
    int count;
    uint64_t event, stream;
    assert_int_equal(vram_driver_fault(sim, &driver), VRAM_OK);
    assert_int_equal(vram_driver_fault_set(driver, NULL, 3, VR_CU_UNKNOWN), VRAM_OK);
    assert_cu(vr_cu(driver, device_get_count, &count), SUCCESS);
    assert_cu(vr_cu(driver, event_create, &event, 0), SUCCESS);
    assert_cu(vr_cu(driver, stream_create, &stream, 0), UNKNOWN);
    assert_cu(vr_cu(driver, stream_create, &stream, 0), SUCCESS);
    assert_int_equal(vram_driver_fault_set(driver, NULL, 1, VR_CU_UNKNOWN), VRAM_OK);
    assert_int_equal(vram_driver_fault_set(driver, NULL, 0, 0), VRAM_OK); // cancelled
    assert_cu(vr_cu(driver, event_record, event, stream), SUCCESS);
    assert_int_equal(vram_driver_fault_count(driver), 1);
    vram_driver_destroy(driver);
    vram_driver_destroy(sim);
    (void)state;
}

// Every row of calls.def reaches its own function: only that call sees a failure set by its name.
static void every_name_is_known(void **state) {
    struct vram_driver *sim = open_sim(NULL), *driver;
    assert_int_equal(vram_driver_fault(sim, &driver), VRAM_OK);
    static const char *const names[] = {
#define X(member, symbol, exported, version, parameters, arguments) #symbol,
#include "driver/calls.def"
#undef X
    };
    for (size_t i = 0; i < VR_COUNT_OF(names); i++) assert_int_equal(vram_driver_fault_set(driver, names[i], 1, VR_CU_UNKNOWN), VRAM_OK);
    // Functions that only programs call bypass the fault driver.
    assert_int_equal(vram_driver_fault_set(driver, "cuModuleLoad", 1, VR_CU_UNKNOWN), VRAM_INVALID_ARGUMENT);
    assert_int_equal(vram_driver_fault_set(driver, "cuMemAlloc_v2", 1, VR_CU_UNKNOWN), VRAM_INVALID_ARGUMENT);
    assert_int_equal(vram_driver_fault_set(driver, "cuMemAlloc", 1, VR_CU_SUCCESS), VRAM_INVALID_ARGUMENT);
    assert_int_equal(vram_driver_fault_set(sim, "cuMemAlloc", 1, VR_CU_UNKNOWN), VRAM_INVALID_ARGUMENT);
    assert_int_equal(vram_driver_fault_count(sim), 0);
    assert_int_equal(vram_driver_fault(NULL, &driver), VRAM_INVALID_ARGUMENT);
    vram_driver_destroy(driver);
    vram_driver_destroy(sim);
    (void)state;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_nth_call_fails_once),
        cmocka_unit_test(any_call_counts_without_a_name),
        cmocka_unit_test(every_name_is_known),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
