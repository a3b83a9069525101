// Tests the simulated driver: memory, contexts, counting, determinism.
#include "unit/sim_fixture.h"
#include "vram/sim.h"

static void alloc_counts_exact_bytes(void **state) {
    struct vram_sim_options options = {.memory_bytes = 10000};
    struct vram_driver *driver = open_sim(&options);
    uint64_t a, b, free_bytes, total_bytes;
    assert_cu(vr_cu(driver, mem_alloc, &a, 6000), SUCCESS);
    assert_cu(vr_cu(driver, mem_alloc, &b, 4001), OUT_OF_MEMORY);
    assert_cu(vr_cu(driver, mem_alloc, &b, 4000), SUCCESS);
    assert_cu(vr_cu(driver, mem_get_info, &free_bytes, &total_bytes), SUCCESS);
    assert_int_equal(free_bytes, 0);
    assert_int_equal(total_bytes, 10000);
    assert_int_equal(vram_sim_memory_used(driver, 0), 10000);
    assert_cu(vr_cu(driver, mem_free, a), SUCCESS);
    assert_cu(vr_cu(driver, mem_free, a), INVALID_VALUE);
    assert_cu(vr_cu(driver, mem_free, b + 512), INVALID_VALUE);
    assert_int_equal(vram_sim_live_objects(driver), 1);
    assert_cu(vr_cu(driver, mem_free, b), SUCCESS);
    assert_int_equal(vram_sim_live_objects(driver), 0);
    assert_int_equal(vram_sim_memory_used(driver, 0), 0);
    assert_int_equal(vram_sim_calls(driver, "cuMemAlloc"), 3);
    assert_int_equal(vram_sim_calls(driver, "cuMemFrei"), 0);
    vram_driver_destroy(driver);
    (void)state;
}

static void alloc_checks_its_arguments(void **state) {
    struct vram_driver *driver = open_sim(NULL);
    uint64_t address = 7, base = 7, size = 7;
    assert_cu(vr_cu(driver, mem_alloc, &address, 0), INVALID_VALUE);
    assert_cu(vr_cu(driver, mem_alloc, NULL, 1), INVALID_VALUE);
    assert_cu(vr_cu(driver, mem_alloc, &address, UINT64_MAX), OUT_OF_MEMORY);
    assert_int_equal(address, 7);
    assert_cu(vr_cu(driver, mem_alloc, &address, 1000), SUCCESS);
    assert_cu(vr_cu(driver, mem_get_address_range, &base, &size, address + 999), SUCCESS);
    assert_int_equal(base, address);
    assert_int_equal(size, 1000);
    assert_cu(vr_cu(driver, mem_get_address_range, &base, &size, address + 1000), NOT_FOUND);
    assert_cu(vr_cu(driver, mem_get_address_range, NULL, NULL, address), SUCCESS);
    vram_driver_destroy(driver); // with a live allocation: sanitizers check that nothing is left
    (void)state;
}

static void addresses_follow_the_rule(void **state) {
    struct vram_driver *driver = open_sim(NULL);
    uint64_t a, b, c, d;
    assert_cu(vr_cu(driver, mem_alloc, &a, 100), SUCCESS);
    assert_cu(vr_cu(driver, mem_alloc, &b, 100), SUCCESS);
    assert_cu(vr_cu(driver, mem_alloc, &c, 3 * VR_MIB), SUCCESS);
    assert_cu(vr_cu(driver, mem_free, c), SUCCESS);
    assert_cu(vr_cu(driver, mem_alloc, &d, VR_MIB), SUCCESS);
    assert_int_equal(a, 0x300000000000u);
    assert_int_equal(b, a + 512);
    assert_int_equal(c, a + 2 * VR_MIB);
    assert_int_equal(d, c + 4 * VR_MIB);
    vram_driver_destroy(driver);

    driver = open_sim(&(struct vram_sim_options){.addresses = VRAM_SIM_FALLING, .alloc_base = 0x10000000});
    assert_cu(vr_cu(driver, mem_alloc, &a, 3 * VR_MIB), SUCCESS);
    assert_cu(vr_cu(driver, mem_alloc, &b, 100), SUCCESS);
    assert_int_equal(a, 0x10000000 - 4 * VR_MIB);
    assert_int_equal(b, a - 512);
    vram_driver_destroy(driver);

    driver = open_sim(&(struct vram_sim_options){.addresses = VRAM_SIM_REUSE});
    assert_cu(vr_cu(driver, mem_alloc, &a, 4 * VR_MIB), SUCCESS);
    assert_cu(vr_cu(driver, mem_alloc, &b, 4 * VR_MIB), SUCCESS);
    assert_cu(vr_cu(driver, mem_free, a), SUCCESS);
    assert_cu(vr_cu(driver, mem_alloc, &c, 6 * VR_MIB), SUCCESS);
    assert_cu(vr_cu(driver, mem_alloc, &d, 2 * VR_MIB), SUCCESS);
    assert_int_equal(c, b + 4 * VR_MIB);
    assert_int_equal(d, a);
    vram_driver_destroy(driver);
    (void)state;
}

static void queued_addresses_come_first(void **state) {
    struct vram_driver *driver = open_sim(&(struct vram_sim_options){.memory_bytes = 10 * VR_MIB});
    uint64_t a, b, c;
    assert_int_equal(vram_sim_queue_address(driver, 0x7f0000000200), VRAM_OK);
    assert_int_equal(vram_sim_queue_address(driver, 0x7f0000000400), VRAM_OK);
    assert_int_equal(vram_sim_queue_address(driver, 0x7f0000000400), VRAM_OK);
    assert_cu(vr_cu(driver, mem_alloc, &a, 20 * VR_MIB), OUT_OF_MEMORY); // takes nothing from the queue
    assert_cu(vr_cu(driver, mem_alloc, &a, 512), SUCCESS);
    assert_cu(vr_cu(driver, mem_alloc, &b, 512), SUCCESS);
    assert_int_equal(a, 0x7f0000000200);
    assert_int_equal(b, 0x7f0000000400);
    assert_cu(vr_cu(driver, mem_alloc, &c, 512), INVALID_VALUE); // overlaps b
    assert_cu(vr_cu(driver, mem_alloc, &c, 512), SUCCESS);
    assert_int_equal(c, 0x300000000000u);
    assert_int_equal(vram_sim_queue_address(driver, 0x7f0000001000), VRAM_OK);
    assert_int_equal(vram_sim_clear_queues(driver), VRAM_OK);
    assert_cu(vr_cu(driver, mem_alloc, &c, 512), SUCCESS);
    assert_int_equal(c, 0x300000000200u);
    vram_driver_destroy(driver);
    (void)state;
}

static void contexts_are_per_thread_and_device(void **state) {
    struct vram_driver *driver;
    assert_int_equal(vram_sim_create(&(struct vram_sim_options){.device_count = 2, .memory_bytes = VR_GIB}, &driver), VRAM_OK);
    uint64_t address, first, second, again, current = 7;
    int device = 7;
    assert_cu(vr_cu(driver, mem_alloc, &address, 512), INVALID_CONTEXT);
    assert_cu(vr_cu(driver, ctx_get_current, &current), SUCCESS);
    assert_int_equal(current, 0);
    assert_cu(vr_cu(driver, primary_ctx_retain, &first, 0), SUCCESS);
    assert_cu(vr_cu(driver, primary_ctx_retain, &second, 1), SUCCESS);
    assert_cu(vr_cu(driver, primary_ctx_retain, &again, 1), SUCCESS);
    assert_int_equal(second, again);
    assert_cu(vr_cu(driver, primary_ctx_retain, &again, 2), INVALID_DEVICE);
    assert_cu(vr_cu(driver, ctx_set_current, second), SUCCESS);
    assert_cu(vr_cu(driver, ctx_get_device, &device), SUCCESS);
    assert_int_equal(device, 1);
    assert_cu(vr_cu(driver, mem_alloc, &address, 512), SUCCESS);
    assert_int_equal(vram_sim_memory_used(driver, 0), 0);
    assert_int_equal(vram_sim_memory_used(driver, 1), 512);
    assert_cu(vr_cu(driver, primary_ctx_release, 1), SUCCESS);
    assert_int_equal(vram_sim_memory_used(driver, 1), 512);
    assert_cu(vr_cu(driver, primary_ctx_release, 1), SUCCESS); // the last one: destroys everything in it
    assert_cu(vr_cu(driver, primary_ctx_release, 1), INVALID_CONTEXT);
    assert_int_equal(vram_sim_memory_used(driver, 1), 0);
    assert_int_equal(vram_sim_live_objects(driver), 0);
    assert_cu(vr_cu(driver, mem_alloc, &address, 512), CONTEXT_IS_DESTROYED);
    assert_cu(vr_cu(driver, ctx_set_current, second), INVALID_CONTEXT);
    assert_cu(vr_cu(driver, ctx_set_current, first), SUCCESS);
    assert_cu(vr_cu(driver, mem_alloc, &address, 512), SUCCESS);
    vram_driver_destroy(driver);
    (void)state;
}

static void devices_describe_themselves(void **state) {
    struct vram_driver *driver = open_sim(&(struct vram_sim_options){.device_count = 3, .memory_bytes = VR_GIB});
    int count, value, version;
    uint64_t total;
    char name[64] = "", cut[5];
    assert_cu(vr_cu(driver, device_get_count, &count), SUCCESS);
    assert_int_equal(count, 3);
    assert_cu(vr_cu(driver, device_get_name, name, 64, 2), SUCCESS);
    assert_non_null(strstr(name, "device 2"));
    assert_cu(vr_cu(driver, device_get_name, cut, 5, 0), SUCCESS);
    assert_int_equal(strlen(cut), 4);
    assert_cu(vr_cu(driver, device_get_name, name, 64, 3), INVALID_DEVICE);
    assert_cu(vr_cu(driver, device_get_attribute, &value, VR_CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, 0), SUCCESS);
    assert_int_equal(value, 1);
    assert_cu(vr_cu(driver, device_get_attribute, &value, 0, 0), INVALID_VALUE);
    assert_cu(vr_cu(driver, device_total_mem, &total, 1), SUCCESS);
    assert_int_equal(total, VR_GIB);
    assert_int_equal(vram_sim_set_memory(driver, 1, 5), VRAM_OK);
    assert_cu(vr_cu(driver, device_total_mem, &total, 1), SUCCESS);
    assert_int_equal(total, 5);
    assert_cu(vr_cu(driver, driver_get_version, &version), SUCCESS);
    assert_true(version >= 11000);
    vram_driver_destroy(driver);
    (void)state;
}

static void shrunk_memory_fits_nothing(void **state) {
    struct vram_driver *driver = open_sim(&(struct vram_sim_options){.memory_bytes = VR_GIB});
    uint64_t a, b, free_bytes, total_bytes;
    assert_cu(vr_cu(driver, mem_alloc, &a, VR_MIB), SUCCESS);
    assert_int_equal(vram_sim_set_memory(driver, 0, 1000), VRAM_OK);
    assert_cu(vr_cu(driver, mem_alloc, &b, 1), OUT_OF_MEMORY);
    assert_cu(vr_cu(driver, mem_get_info, &free_bytes, &total_bytes), SUCCESS);
    assert_int_equal(free_bytes, 0);
    assert_cu(vr_cu(driver, mem_free, a), SUCCESS);
    assert_cu(vr_cu(driver, mem_alloc, &b, 1000), SUCCESS);
    vram_driver_destroy(driver);
    (void)state;
}

// Runs mixed operations; returns a digest of every address, result and clock value.
static uint64_t mixed_run(enum vram_sim_addresses addresses, uint64_t *clock_ns) {
    struct vram_sim_options options = {.addresses = addresses, .memory_bytes = VR_GIB, .alloc_base = (uint64_t)1 << 44};
    struct vram_driver *driver = open_sim(&options);
    uint64_t live[256] = {0}, digest = 0, random = 1;
    for (uint32_t i = 0; i < 20000; i++) {
        random = vr_mix64(random + i);
        uint64_t *slot = &live[random % 256], size = (uint64_t)1 << (random >> 20) % 24, address = *slot;
        vr_cu_result result;
        if (address == 0) {
            result = vr_cu(driver, mem_alloc, &address, size + (random >> 40) % size);
            *slot = address;
        } else {
            result = vr_cu(driver, mem_free, address);
            *slot = 0;
        }
        digest = vr_mix64(digest ^ address ^ (uint64_t)result ^ vram_sim_clock_ns(driver));
    }
    *clock_ns = vram_sim_clock_ns(driver);
    vram_driver_destroy(driver);
    return digest;
}

static void runs_repeat_to_the_byte(void **state) {
    for (int rule = VRAM_SIM_RISING; rule <= VRAM_SIM_REUSE; rule++) {
        uint64_t clock_a, clock_b;
        uint64_t a = mixed_run((enum vram_sim_addresses)rule, &clock_a);
        uint64_t b = mixed_run((enum vram_sim_addresses)rule, &clock_b);
        assert_int_equal(a, b);
        assert_int_equal(clock_a, clock_b);
        assert_true(clock_a > 0);
    }
    (void)state;
}

static void wrong_arguments_are_refused(void **state) {
    struct vram_driver *driver = NULL;
    assert_int_equal(vram_sim_create(&(struct vram_sim_options){.device_count = 65}, &driver), VRAM_INVALID_ARGUMENT);
    assert_int_equal(vram_sim_create(&(struct vram_sim_options){.alloc_alignment = 3}, &driver), VRAM_INVALID_ARGUMENT);
    assert_int_equal(vram_sim_create(&(struct vram_sim_options){.reserve_alignment = 4096}, &driver), VRAM_INVALID_ARGUMENT);
    assert_int_equal(vram_sim_create(&(struct vram_sim_options){.memory_bytes = UINT64_MAX}, &driver), VRAM_INVALID_ARGUMENT);
    assert_int_equal(vram_sim_create(NULL, NULL), VRAM_INVALID_ARGUMENT);
    assert_null(driver);
    driver = open_sim(NULL);
    assert_int_equal(vram_sim_set_memory(driver, 1, 5), VRAM_INVALID_ARGUMENT);
    assert_int_equal(vram_sim_queue_address(driver, 0), VRAM_INVALID_ARGUMENT);
    assert_int_equal(vram_sim_queue_reservation(driver, 4096), VRAM_INVALID_ARGUMENT);
    assert_int_equal(vram_sim_advance(driver, UINT64_MAX), VRAM_INVALID_ARGUMENT);
    assert_int_equal(vram_sim_advance(NULL, 1), VRAM_INVALID_ARGUMENT);
    assert_int_equal(vram_sim_clock_ns(NULL), 0);
    vram_driver_destroy(driver);
    vram_driver_destroy(NULL);
    (void)state;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(alloc_counts_exact_bytes),           cmocka_unit_test(alloc_checks_its_arguments),
        cmocka_unit_test(addresses_follow_the_rule),          cmocka_unit_test(queued_addresses_come_first),
        cmocka_unit_test(contexts_are_per_thread_and_device), cmocka_unit_test(devices_describe_themselves),
        cmocka_unit_test(shrunk_memory_fits_nothing),         cmocka_unit_test(runs_repeat_to_the_byte),
        cmocka_unit_test(wrong_arguments_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
