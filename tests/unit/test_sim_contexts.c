// What contexts of the simulated driver take of the device.
#include "unit/sim_fixture.h"

static void a_context_takes_its_memory_and_gives_it_back(void **state) {
    (void)state;
    struct vram_sim_options options = {0};
    assert_int_equal(vram_sim_parse("memory=10MiB,context=3MiB", &options, NULL), VRAM_OK);
    assert_int_equal(options.context_bytes, 3 * VR_MIB);
    struct vram_driver *driver = open_sim(&options);
    uint64_t address, free_bytes, total_bytes, again;
    assert_cu(vr_cu(driver, mem_get_info, &free_bytes, &total_bytes), SUCCESS);
    assert_int_equal(free_bytes, 7 * VR_MIB);
    assert_int_equal(total_bytes, 10 * VR_MIB);
    assert_cu(vr_cu(driver, primary_ctx_retain, &again, 0), SUCCESS); // the same context: nothing more
    assert_int_equal(vram_sim_memory_used(driver, 0), 3 * VR_MIB);
    assert_cu(vr_cu(driver, mem_alloc, &address, 7 * VR_MIB + 1), OUT_OF_MEMORY);
    assert_cu(vr_cu(driver, mem_alloc, &address, 7 * VR_MIB), SUCCESS);
    assert_cu(vr_cu(driver, primary_ctx_release, 0), SUCCESS);
    assert_cu(vr_cu(driver, primary_ctx_release, 0), SUCCESS);
    assert_int_equal(vram_sim_memory_used(driver, 0), 0);
    vram_driver_destroy(driver);
}

static void a_context_that_does_not_fit_is_not_made(void **state) {
    (void)state;
    const struct vram_sim_options options = {.memory_bytes = VR_MIB, .context_bytes = 2 * VR_MIB};
    struct vram_driver *driver = NULL;
    uint64_t context = 7;
    assert_int_equal(vram_sim_create(&options, &driver), VRAM_OK);
    assert_cu(vr_cu(driver, primary_ctx_retain, &context, 0), OUT_OF_MEMORY);
    assert_int_equal(context, 7);
    assert_int_equal(vram_sim_memory_used(driver, 0), 0);
    assert_cu(vr_cu(driver, primary_ctx_release, 0), INVALID_CONTEXT);
    vram_driver_destroy(driver);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_context_takes_its_memory_and_gives_it_back),
        cmocka_unit_test(a_context_that_does_not_fit_is_not_made),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
