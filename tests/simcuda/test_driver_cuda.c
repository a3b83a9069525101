// Tests our loader of libcuda: with no library, with another library, and with the simulator's shared library.
#define _GNU_SOURCE // setenv
#include <stdlib.h>

#include "os/os.h"
#include "unit/sim_fixture.h"
#include "vram/sim.h"

static void none_is_said_so(void **state) {
    struct vram_driver *driver = NULL;
    struct vram_error error;
    assert_int_equal(setenv("VRAM_LIBCUDA", "/nowhere/libcuda.so.1", 1), 0);
    assert_int_equal(vram_driver_cuda(&driver, &error), VRAM_NO_DRIVER);
    assert_null(driver);
    assert_int_equal(error.status, VRAM_NO_DRIVER);
    assert_non_null(strstr(error.message, "/nowhere/libcuda.so.1"));
    assert_int_equal(vram_driver_cuda(&driver, NULL), VRAM_NO_DRIVER);
    assert_int_equal(vram_driver_cuda(NULL, NULL), VRAM_INVALID_ARGUMENT);
    assert_int_equal(setenv("VRAM_LIBCUDA", "libm.so.6", 1), 0);
    assert_int_equal(vram_driver_cuda(&driver, &error), VRAM_NO_DRIVER);
    assert_non_null(strstr(error.message, "cuInit"));
    assert_null(driver);
    (void)state;
}

static void refused_settings_are_a_driver_error(void **state) {
    struct vram_driver *driver = NULL;
    struct vram_error error;
    assert_int_equal(setenv("VRAM_LIBCUDA", SIMCUDA_PATH, 1), 0);
    assert_int_equal(setenv("VRAM_SIM", "memory=lots", 1), 0);
    assert_int_equal(vram_driver_cuda(&driver, &error), VRAM_DRIVER);
    assert_int_equal(error.driver_result, VR_CU_INVALID_VALUE);
    assert_non_null(strstr(error.message, "CUDA_ERROR_INVALID_VALUE"));
    assert_null(driver);
    (void)state;
}

// Every call below passes the loader, the exported symbol and the simulator.
static void calls_reach_the_library(void **state) {
    struct vram_driver *driver = NULL;
    struct vram_error error;
    assert_int_equal(setenv("VRAM_LIBCUDA", SIMCUDA_PATH, 1), 0);
    assert_int_equal(setenv("VRAM_SIM", "memory=1GiB,backed,driver=12040", 1), 0);
    assert_int_equal(vram_driver_cuda(&driver, &error), VRAM_OK);
    assert_string_equal(driver->kind, "cuda");
    assert_int_equal(vram_sim_clock_ns(driver), 0); // not a simulator to us
    uint64_t context, address, free_bytes, total_bytes, stream, event, base, size, host;
    int device = -1, version = 0, value = 0;
    char out[64] = "bytes that travel", in[64] = "";
    assert_cu(vr_cu(driver, driver_get_version, &version), SUCCESS);
    assert_int_equal(version, 12040);
    assert_cu(vr_cu(driver, device_get_attribute, &value, VR_CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, 0), SUCCESS);
    assert_int_equal(value, 1);
    assert_cu(vr_cu(driver, primary_ctx_retain, &context, 0), SUCCESS);
    assert_cu(vr_cu(driver, mem_alloc, &address, 64), INVALID_CONTEXT);
    assert_cu(vr_cu(driver, ctx_set_current, context), SUCCESS);
    assert_cu(vr_cu(driver, ctx_get_device, &device), SUCCESS);
    assert_int_equal(device, 0);
    assert_cu(vr_cu(driver, mem_alloc, &address, 64), SUCCESS);
    assert_cu(vr_cu(driver, mem_get_info, &free_bytes, &total_bytes), SUCCESS);
    assert_int_equal(total_bytes - free_bytes, 64);
    assert_cu(vr_cu(driver, mem_get_address_range, &base, &size, address + 63), SUCCESS);
    assert_int_equal(size, 64);
    assert_cu(vr_cu(driver, memcpy_htod, address, out, 64), SUCCESS);
    assert_cu(vr_cu(driver, memset_d8, address + 63, 0x5a, 1), SUCCESS);
    assert_cu(vr_cu(driver, memcpy_dtoh, in, address, 64), SUCCESS);
    assert_memory_equal(in, out, 63);
    assert_int_equal(in[63], 0x5a);
    assert_cu(vr_cu(driver, mem_host_alloc, &host, 64, 0), SUCCESS);
    assert_cu(vr_cu(driver, stream_create, &stream, VR_CU_STREAM_NON_BLOCKING), SUCCESS);
    assert_cu(vr_cu(driver, event_create, &event, VR_CU_EVENT_DISABLE_TIMING), SUCCESS);
    assert_cu(vr_cu(driver, memcpy_async, host, address, 64, stream), SUCCESS);
    assert_memory_equal((void *)(uintptr_t)host, in, 64);
    assert_cu(vr_cu(driver, event_record, event, stream), SUCCESS);
    assert_cu(vr_cu(driver, stream_wait_event, 0, event, 0), SUCCESS);
    assert_cu(vr_cu(driver, event_synchronize, event), SUCCESS);
    assert_cu(vr_cu(driver, event_query, event), SUCCESS);
    assert_cu(vr_cu(driver, ctx_synchronize, 0), SUCCESS);
    assert_cu(vr_cu(driver, event_destroy, event), SUCCESS);
    assert_cu(vr_cu(driver, stream_destroy, stream), SUCCESS);
    assert_cu(vr_cu(driver, mem_free_host, host), SUCCESS);
    assert_cu(vr_cu(driver, mem_free, address), SUCCESS);
    assert_cu(vr_cu(driver, primary_ctx_release, 0), SUCCESS);
    vram_driver_destroy(driver);
    (void)state;
}

// Passes a struct by value, a descriptor as a pointer, and 16 bytes of output through the exported symbols, as sharing does.
static void sharing_reaches_the_library(void **state) {
    struct vram_driver *driver = NULL;
    assert_int_equal(setenv("VRAM_LIBCUDA", SIMCUDA_PATH, 1), 0);
    assert_int_equal(vram_driver_cuda(&driver, NULL), VRAM_OK);
    uint64_t context, address, none, handle = 0, imported = 0, again = 0;
    struct vr_cu_ipc_handle shared;
    unsigned char uuid[16] = "";
    int descriptor = -1, can = 7;
    const struct vr_cu_allocation_prop prop = {.type = VR_CU_MEM_ALLOCATION_TYPE_PINNED,
                                               .requested_handle_types = VR_CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
                                               .location = {VR_CU_MEM_LOCATION_TYPE_DEVICE, 0}};
    struct vr_cu_allocation_prop found = {.type = 0};
    assert_cu(vr_cu(driver, primary_ctx_retain, &context, 0), SUCCESS);
    assert_cu(vr_cu(driver, ctx_set_current, context), SUCCESS);
    assert_cu(vr_cu(driver, device_get_uuid, uuid, 0), SUCCESS);
    assert_memory_equal(uuid, "vram simulated ", 16);
    assert_cu(vr_cu(driver, device_can_access_peer, &can, 0, 0), SUCCESS);
    assert_int_equal(can, 0);
    assert_cu(vr_cu(driver, ctx_enable_peer_access, context, 0), INVALID_CONTEXT);
    assert_cu(vr_cu(driver, ctx_disable_peer_access, context), INVALID_CONTEXT);
    assert_cu(vr_cu(driver, mem_alloc, &address, 4096), SUCCESS);
    assert_cu(vr_cu(driver, ipc_get_mem_handle, &shared, address), SUCCESS);
    assert_cu(vr_cu(driver, ipc_open_mem_handle, &none, shared, 1), INVALID_CONTEXT); // passed completely: it is its own handle
    assert_cu(vr_cu(driver, ipc_close_mem_handle, address), INVALID_VALUE);
    assert_cu(vr_cu(driver, mem_free, address), SUCCESS);
    assert_cu(vr_cu(driver, mem_create, &handle, 2 * VR_MIB, &prop, 0), SUCCESS);
    assert_cu(vr_cu(driver, mem_export_to_shareable_handle, &descriptor, handle, 1, 0), SUCCESS);
    assert_cu(vr_cu(driver, mem_import_from_shareable_handle, &imported, (void *)(uintptr_t)descriptor, 1), SUCCESS);
    assert_cu(vr_cu(driver, mem_get_allocation_properties, &found, imported), SUCCESS);
    assert_memory_equal(&found, &prop, sizeof prop);
    assert_cu(vr_cu(driver, mem_retain_allocation_handle, &again, address), INVALID_VALUE);
    assert_cu(vr_cu(driver, mem_release, imported), SUCCESS);
    assert_cu(vr_cu(driver, mem_release, handle), SUCCESS);
    vr_os_close_descriptor(descriptor);
    assert_cu(vr_cu(driver, primary_ctx_release, 0), SUCCESS);
    vram_driver_destroy(driver);
    (void)state;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(none_is_said_so),
        cmocka_unit_test(refused_settings_are_a_driver_error),
        cmocka_unit_test(calls_reach_the_library),
        cmocka_unit_test(sharing_reaches_the_library),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
