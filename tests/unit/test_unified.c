// Tests devices that share the host's memory: free memory is what the system has available, not only what the page cache leaves.
#define _POSIX_C_SOURCE 200809L // mkstemp
#include <stdlib.h>
#include <unistd.h>

#include "driver/driver.h"
#include "os/os.h"
#include "support/expect.h"
#include "vram/sim.h"

static struct vram_driver *unified(uint64_t page_cache_bytes, const char *key) {
    struct vram_sim_options options = {.page_cache_bytes = page_cache_bytes, .model_count = 1};
    struct vram_sim_model model;
    for (uint32_t i = 0; vram_sim_model_at(i, &model); i++) {
        if (strcmp(model.key, key) == 0) options.models[0] = (uint8_t)(i + 1);
    }
    struct vram_driver *driver;
    assert_int_equal(vram_sim_create(&options, &driver), VRAM_OK);
    return driver;
}

static void free_is_what_is_available(void **state) {
    (void)state;
    struct vram_driver *driver = unified(40 * VR_GIB, "gb10");
    struct vram_device_facts facts;
    assert_int_equal(vram_driver_device_facts(driver, 0, &facts, NULL), VRAM_OK);
    assert_true(facts.integrated);
    assert_int_equal(facts.free_bytes, facts.total_bytes);
    struct vram_allocator *allocator;
    assert_int_equal(vram_create(&(struct vram_create_info){.driver = driver, .ignore_environment = true}, &allocator, NULL), VRAM_OK);
    uint64_t address, free_bytes, total_bytes;
    assert_int_equal(vram_malloc(allocator, 0, 60 * VR_GIB, 0, &address), VRAM_OK);
    assert_int_equal(vram_memory_info(allocator, 0, &free_bytes, &total_bytes), VRAM_OK);
    assert_int_equal(free_bytes, total_bytes - 60 * VR_GIB);
    // Memory used by files can be allocated.
    uint64_t told = 0, total = 0, more, context;
    assert_int_equal(vr_cu(driver, primary_ctx_retain, &context, 0), VR_CU_SUCCESS);
    assert_int_equal(vr_cu(driver, ctx_set_current, context), VR_CU_SUCCESS);
    assert_int_equal(vr_cu(driver, mem_get_info, &told, &total), VR_CU_SUCCESS);
    assert_int_equal(told, total - 100 * VR_GIB);
    assert_int_equal(vram_malloc(allocator, 0, 50 * VR_GIB, 0, &more), VRAM_OK);
    // The report of an out-of-memory error has these figures too.
    struct vram_oom oom;
    assert_int_equal(vram_malloc(allocator, 0, 30 * VR_GIB, 0, &more), VRAM_OUT_OF_MEMORY);
    assert_true(vram_last_oom(&oom));
    assert_int_equal(oom.device_free_bytes, total - 110 * VR_GIB);
    assert_int_equal(vr_cu(driver, primary_ctx_release, 0), VR_CU_SUCCESS);
    vram_destroy(allocator);
    vram_driver_destroy(driver);
}

// A discrete card has no page cache, whatever the machine has.
static void other_devices_are_as_the_driver_says(void **state) {
    (void)state;
    struct vram_driver *driver = unified(40 * VR_GIB, "h100");
    struct vram_device_facts facts;
    assert_int_equal(vram_driver_device_facts(driver, 0, &facts, NULL), VRAM_OK);
    assert_false(facts.integrated);
    assert_int_equal(facts.free_bytes, facts.total_bytes);
    vram_driver_destroy(driver);
}

static void the_system_is_read_with_care(void **state) {
    (void)state;
    static const struct {
        const char *text;
        bool good;
        uint64_t bytes;
    } files[] = {
        {"MemTotal: 100 kB\nMemAvailable:      64 kB\n", true, 65536},
        {"MemAvailable: 0 kB\n", true, 0},
        {"MemAvailable: many kB\n", false, 0},
        {"MemAvailable: 64 MB\n", false, 0},
        {"MemAvailable: 99999999999999999999 kB\n", false, 0},
        {"MemAvailable:", false, 0},
        {"", false, 0},
    };
    char path[] = "/tmp/vram_meminfo_XXXXXX";
    const int file = mkstemp(path);
    assert_true(file >= 0);
    assert_int_equal(setenv("VRAM_MEMINFO", path, 1), 0);
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        assert_int_equal(ftruncate(file, 0), 0);
        assert_int_equal(pwrite(file, files[i].text, strlen(files[i].text), 0), strlen(files[i].text));
        uint64_t bytes = 7;
        assert_int_equal(vr_os_available_memory(&bytes), files[i].good);
        assert_int_equal(bytes, files[i].good ? files[i].bytes : 7);
    }
    assert_int_equal(unlink(path), 0);
    uint64_t bytes = 7;
    assert_false(vr_os_available_memory(&bytes));
    assert_int_equal(unsetenv("VRAM_MEMINFO"), 0);
    assert_true(vr_os_available_memory(&bytes));
    assert_true(bytes > 1 << 20);
    (void)close(file);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(free_is_what_is_available),
        cmocka_unit_test(other_devices_are_as_the_driver_says),
        cmocka_unit_test(the_system_is_read_with_care),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
