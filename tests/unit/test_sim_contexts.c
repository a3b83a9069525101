// Tests the memory that contexts use on the device, resetting a primary context, and calls that need no current context.
#include "sim/sim.h"
#include "sim/streams/sim_streams.h"
#include "unit/sim_fixture.h"
#include "vram/sim.h"

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
    assert_cu(vr_cu(driver, primary_ctx_retain, &again, 0), SUCCESS); // the same context: no more memory
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

static void reset(struct vram_driver *driver) {
    struct vr_sim *sim = vr_sim_of(driver);
    vr_mutex_lock(&sim->lock);
    vr_sim_primary_reset(sim, 0);
    assert_true(vr_sim_check(sim));
    vr_mutex_unlock(&sim->lock);
}

static void a_reset_context_lives_again_under_its_handle(void **state) {
    (void)state;
    const struct vram_sim_options options = {.memory_bytes = VR_GIB, .context_bytes = VR_MIB};
    struct vram_driver *driver = open_sim(&options);
    uint64_t address, before, after, stream;
    assert_cu(vr_cu(driver, ctx_get_current, &before), SUCCESS);
    assert_cu(vr_cu(driver, mem_alloc, &address, VR_MIB), SUCCESS);
    assert_cu(vr_cu(driver, stream_create, &stream, 0), SUCCESS);
    reset(driver);
    assert_int_equal(vram_sim_memory_used(driver, 0), 0);
    assert_int_equal(vram_sim_live_objects(driver), 0);
    assert_cu(vr_cu(driver, mem_alloc, &address, VR_MIB), CONTEXT_IS_DESTROYED);
    assert_int_equal(vram_sim_busy(driver, 0, 0, 1), VRAM_INVALID_ARGUMENT);
    reset(driver); // nothing is left to destroy
    assert_cu(vr_cu(driver, primary_ctx_retain, &after, 0), SUCCESS);
    assert_int_equal(after, before);
    assert_cu(vr_cu(driver, mem_alloc, &address, VR_MIB), SUCCESS);
    assert_int_equal(vram_sim_memory_used(driver, 0), 2 * VR_MIB);
    assert_cu(vr_cu(driver, primary_ctx_release, 0), SUCCESS);
    assert_int_equal(vram_sim_memory_used(driver, 0), 2 * VR_MIB); // the first retain still holds it
    reset(driver);
    assert_cu(vr_cu(driver, primary_ctx_release, 0), SUCCESS); // inactive once released
    assert_cu(vr_cu(driver, primary_ctx_release, 0), INVALID_CONTEXT);
    vram_driver_destroy(driver);
}

static void frees_need_no_current_context(void **state) {
    (void)state;
    struct vram_driver *driver = open_sim(NULL);
    uint64_t address, host;
    assert_cu(vr_cu(driver, mem_alloc, &address, VR_MIB), SUCCESS);
    assert_cu(vr_cu(driver, mem_host_alloc, &host, 4096, 0), SUCCESS);
    assert_cu(vr_cu(driver, ctx_set_current, 0), SUCCESS);
    assert_cu(vr_cu(driver, mem_free, address), SUCCESS);
    assert_cu(vr_cu(driver, mem_free_host, host), SUCCESS);
    assert_cu(vr_cu(driver, mem_free, address), INVALID_VALUE);
    vram_driver_destroy(driver);
}

static void pinned_memory_has_device_addresses(void **state) {
    (void)state;
    struct vram_driver *driver = open_sim(NULL);
    uint64_t host, base = 0, size = 0;
    const char text[] = "pinned";
    char back[sizeof text] = "";
    assert_cu(vr_cu(driver, mem_host_alloc, &host, 5000, 0), SUCCESS);
    assert_cu(vr_cu(driver, mem_get_address_range, &base, &size, host + 4999), SUCCESS);
    assert_true(base == host && size == 5000);
    assert_cu(vr_cu(driver, mem_get_address_range, &base, &size, host + 5000), NOT_FOUND);
    assert_cu(vr_cu(driver, memset_d8, host + 10, 7, 20), SUCCESS);
    assert_int_equal(((unsigned char *)(uintptr_t)host)[29], 7);
    assert_cu(vr_cu(driver, memset_d8, host + 4990, 7, 11), INVALID_VALUE); // past its end
    assert_cu(vr_cu(driver, memcpy_htod, host, text, sizeof text), SUCCESS);
    assert_cu(vr_cu(driver, memcpy_dtoh, back, host, sizeof text), SUCCESS);
    assert_string_equal(back, text);
    assert_cu(vr_cu(driver, memcpy_htod, (uint64_t)(uintptr_t)back, text, sizeof text), INVALID_VALUE); // ordinary host memory
    vram_driver_destroy(driver);
}

static void priorities_are_remembered(void **state) {
    (void)state;
    static const int asked[] = {0, -1, -5, -9, 3}, told[] = {0, -1, -5, -5, 0};
    struct vram_driver *driver = open_sim(NULL);
    struct vr_sim *sim = vr_sim_of(driver);
    for (size_t i = 0; i < VR_COUNT_OF(asked); i++) {
        uint64_t stream;
        int priority = 9;
        vr_mutex_lock(&sim->lock);
        assert_cu(vr_sim_stream_create_with_priority(sim, &stream, VR_CU_STREAM_NON_BLOCKING, asked[i]), SUCCESS);
        assert_cu(vr_sim_stream_get_priority(sim, stream, &priority), SUCCESS);
        vr_mutex_unlock(&sim->lock);
        assert_int_equal(priority, told[i]);
    }
    vram_driver_destroy(driver);
}

static void no_time_passes_between_two_devices(void **state) {
    (void)state;
    const struct vram_sim_options options = {.device_count = 2};
    struct vram_driver *driver = open_sim(&options);
    uint64_t context, first, second, third;
    float elapsed_ms = 0;
    assert_cu(vr_cu(driver, event_create, &first, 0), SUCCESS);
    assert_cu(vr_cu(driver, event_create, &second, 0), SUCCESS);
    assert_cu(vr_cu(driver, event_record, first, 0), SUCCESS);
    assert_cu(vr_cu(driver, event_record, second, 0), SUCCESS);
    assert_cu(vr_cu(driver, primary_ctx_retain, &context, 1), SUCCESS);
    assert_cu(vr_cu(driver, ctx_set_current, context), SUCCESS);
    assert_cu(vr_cu(driver, event_create, &third, 0), SUCCESS);
    assert_cu(vr_cu(driver, event_record, third, 0), SUCCESS);
    assert_cu(vr_cu(driver, event_elapsed_ms, &elapsed_ms, first, second), SUCCESS);
    assert_cu(vr_cu(driver, event_elapsed_ms, &elapsed_ms, first, third), INVALID_HANDLE);
    vram_driver_destroy(driver);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_context_takes_its_memory_and_gives_it_back), cmocka_unit_test(a_context_that_does_not_fit_is_not_made),
        cmocka_unit_test(a_reset_context_lives_again_under_its_handle), cmocka_unit_test(frees_need_no_current_context),
        cmocka_unit_test(pinned_memory_has_device_addresses),           cmocka_unit_test(priorities_are_remembered),
        cmocka_unit_test(no_time_passes_between_two_devices),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
