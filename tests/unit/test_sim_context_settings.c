// Tests a context's settings, and the places of devices.
#include "sim/sim.h"
#include "unit/sim_fixture.h"
#include "vram/sim.h"

static struct vram_driver *open_devices(const char *text, struct vr_sim **sim) {
    struct vram_sim_options options = {0};
    assert_int_equal(vram_sim_parse(text, &options, NULL), VRAM_OK);
    struct vram_driver *driver = open_sim(&options);
    *sim = vr_sim_of(driver);
    return driver;
}

static void limits_are_kept_and_checked(void **state) {
    (void)state;
    struct vr_sim *sim;
    struct vram_driver *driver = open_devices("device=a100-80", &sim);
    uint64_t value = 0;
    assert_cu(vr_sim_call_ctx_get_limit(sim, &value, 0), SUCCESS);
    assert_int_equal(value, 1024);
    assert_cu(vr_sim_call_ctx_set_limit(sim, 0, 4096), SUCCESS);
    assert_cu(vr_sim_call_ctx_get_limit(sim, &value, 0), SUCCESS);
    assert_int_equal(value, 4096);
    assert_cu(vr_sim_call_ctx_get_limit(sim, &value, 3), SUCCESS); // nesting depth of kernels that synchronize
    assert_cu(vr_sim_call_ctx_set_limit(sim, 5, 1000), SUCCESS);
    assert_cu(vr_sim_call_ctx_get_limit(sim, &value, 5), SUCCESS);
    assert_int_equal(value, 128);
    assert_cu(vr_sim_call_ctx_set_limit(sim, 6, UINT64_MAX), SUCCESS);
    assert_cu(vr_sim_call_ctx_get_limit(sim, &value, 6), SUCCESS);
    assert_true(value > VR_MIB && value < 100 * VR_MIB); // the device's default
    value = 7;
    assert_cu(vr_sim_call_ctx_get_limit(sim, &value, 99), UNSUPPORTED_LIMIT);
    assert_cu(vr_sim_call_ctx_get_limit(sim, &value, -1), INVALID_VALUE);
    assert_cu(vr_sim_call_ctx_get_limit(sim, NULL, 0), INVALID_VALUE);
    assert_int_equal(value, 7);
    vram_driver_destroy(driver);
    driver = open_devices("device=h100", &sim);
    assert_cu(vr_sim_call_ctx_get_limit(sim, &value, 3), UNSUPPORTED_LIMIT);
    vram_driver_destroy(driver);
}

static void flags_are_kept_and_checked(void **state) {
    (void)state;
    struct vr_sim *sim;
    struct vram_driver *driver = open_devices("devices=2", &sim);
    unsigned flags = 99;
    assert_cu(vr_sim_call_ctx_get_flags(sim, &flags), SUCCESS);
    assert_int_equal(flags, 0);
    assert_cu(vr_sim_call_primary_ctx_set_flags(sim, 0, 4), SUCCESS);
    assert_cu(vr_sim_call_ctx_get_flags(sim, &flags), SUCCESS);
    assert_int_equal(flags, 4);
    assert_cu(vr_sim_call_primary_ctx_set_flags(sim, 1, 8), SUCCESS); // before it is created
    uint64_t other;
    assert_cu(vr_cu(driver, primary_ctx_retain, &other, 1), SUCCESS);
    assert_cu(vr_cu(driver, ctx_set_current, other), SUCCESS);
    assert_cu(vr_sim_call_ctx_get_flags(sim, &flags), SUCCESS);
    assert_int_equal(flags, 8);
    assert_cu(vr_sim_call_primary_ctx_set_flags(sim, 0, 3), INVALID_VALUE); // two scheduling flags
    assert_cu(vr_sim_call_primary_ctx_set_flags(sim, 0, 0x100), INVALID_VALUE);
    assert_cu(vr_sim_call_primary_ctx_set_flags(sim, 2, 0), INVALID_DEVICE);
    assert_cu(vr_sim_call_ctx_set_flags(sim, 2), SUCCESS);
    assert_cu(vr_sim_call_ctx_get_flags(sim, &flags), SUCCESS);
    assert_int_equal(flags, 2);
    vram_driver_destroy(driver);
}

static void contexts_are_told_apart(void **state) {
    (void)state;
    struct vr_sim *sim;
    struct vram_driver *driver = open_devices("devices=2", &sim);
    uint64_t first, second, id = 0, other_id = 0;
    unsigned version = 0;
    int device = -1;
    assert_cu(vr_cu(driver, ctx_get_current, &first), SUCCESS);
    assert_cu(vr_cu(driver, primary_ctx_retain, &second, 1), SUCCESS);
    assert_cu(vr_sim_call_ctx_get_id(sim, 0, &id), SUCCESS);
    assert_cu(vr_sim_call_ctx_get_id(sim, second, &other_id), SUCCESS);
    assert_true(id != 0 && other_id != 0 && id != other_id);
    assert_cu(vr_sim_call_ctx_get_device_of(sim, &device, second), SUCCESS);
    assert_int_equal(device, 1);
    assert_cu(vr_sim_call_ctx_get_api_version(sim, second, &version), SUCCESS);
    assert_int_equal(version, 3020);
    assert_cu(vr_sim_call_ctx_synchronize_of(sim, second), SUCCESS);
    uint64_t current;
    assert_cu(vr_cu(driver, ctx_get_current, &current), SUCCESS);
    assert_int_equal(current, first);
    assert_cu(vr_sim_call_ctx_get_id(sim, second + 16, &id), INVALID_CONTEXT);
    assert_cu(vr_sim_call_ctx_get_id(sim, first, NULL), INVALID_VALUE);
    vram_driver_destroy(driver);
}

static void devices_sit_somewhere(void **state) {
    (void)state;
    struct vr_sim *sim;
    struct vram_driver *driver = open_devices("device=h100,devices=3", &sim);
    char text[32], again[32];
    for (int device = 0; device < 3; device++) {
        int found = -1;
        assert_cu(vr_sim_call_device_get_pci_bus_id(sim, text, sizeof text, device), SUCCESS);
        assert_int_equal(strlen(text), 12);
        assert_cu(vr_sim_call_device_get_by_pci_bus_id(sim, &found, text), SUCCESS);
        assert_int_equal(found, device);
        assert_cu(vr_sim_call_device_get_by_pci_bus_id(sim, &found, text + 5), SUCCESS); // without the domain
        assert_int_equal(found, device);
        for (size_t i = 0; i <= strlen(text); i++) again[i] = text[i] >= 'A' && text[i] <= 'F' ? (char)(text[i] + 32) : text[i];
        assert_cu(vr_sim_call_device_get_by_pci_bus_id(sim, &found, again), SUCCESS);
        assert_int_equal(found, device);
    }
    int found = 7;
    static const char *const wrong[] = {"", ":", "00", "0000:", "g:0:0", "0:0:0.", "0:0:0.0x", "0:0:0:0:0", "123456789:0:0"};
    for (size_t i = 0; i < VR_COUNT_OF(wrong); i++) assert_cu(vr_sim_call_device_get_by_pci_bus_id(sim, &found, wrong[i]), INVALID_VALUE);
    assert_cu(vr_sim_call_device_get_by_pci_bus_id(sim, &found, "0000:FE:1F.0"), INVALID_DEVICE);
    assert_int_equal(found, 7);
    assert_cu(vr_sim_call_device_get_pci_bus_id(sim, text, 12, 0), INVALID_VALUE); // no room for the terminator
    assert_cu(vr_sim_call_device_get_pci_bus_id(sim, text, 13, 0), SUCCESS);
    vram_driver_destroy(driver);
}

static void peers_and_properties(void **state) {
    (void)state;
    struct vr_sim *sim;
    struct vram_driver *driver = open_devices("device=h100,devices=2", &sim);
    int value = -1;
    assert_cu(vr_sim_call_device_get_p2p_attribute(sim, &value, 2, 0, 1), SUCCESS);
    assert_int_equal(value, 1);
    assert_cu(vr_sim_call_device_get_p2p_attribute(sim, &value, 1, 0, 1), SUCCESS);
    assert_int_equal(value, 0);
    assert_cu(vr_sim_call_device_get_p2p_attribute(sim, &value, 2, 0, 0), INVALID_DEVICE);
    assert_cu(vr_sim_call_device_get_p2p_attribute(sim, &value, 99, 0, 1), INVALID_VALUE);
    struct vr_cu_device_properties properties;
    assert_cu(vr_sim_call_device_get_properties(sim, &properties, 0), SUCCESS);
    assert_int_equal(properties.threads_per_block, 1024);
    assert_int_equal(properties.warp, 32);
    assert_int_equal(properties.block[2], 64);
    assert_cu(vr_sim_call_device_get_exec_affinity_support(sim, &value, 0, 0), SUCCESS);
    assert_int_equal(value, 0);
    vram_driver_destroy(driver);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(limits_are_kept_and_checked), cmocka_unit_test(flags_are_kept_and_checked),
        cmocka_unit_test(contexts_are_told_apart),     cmocka_unit_test(devices_sit_somewhere),
        cmocka_unit_test(peers_and_properties),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
