// Tests multicast objects: sizes and errors as CUDA documents them, bindings and their lifetime, and objects of another process.
#include <unistd.h>

#include "sim/sim.h"
#include "sim/sim_abi.h"
#include "unit/sim_fixture.h"
#include "vram/sim.h"

#define PAGE (2 * VR_MIB)

static const struct vr_cu_allocation_prop memory_of_1 = {.type = VR_CU_MEM_ALLOCATION_TYPE_PINNED,
                                                         .requested_handle_types = VR_CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
                                                         .location = {VR_CU_MEM_LOCATION_TYPE_DEVICE, 1}};
static const struct vr_cu_multicast_prop of_2 = {
    .device_count = 2, .size_bytes = 4 * PAGE, .handle_types = VR_CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR};

static struct vram_driver *open_device(const char *text, struct vr_sim **sim) {
    struct vram_sim_options options = {0};
    assert_int_equal(vram_sim_parse(text, &options, NULL), VRAM_OK);
    struct vram_driver *driver = open_sim(&options);
    *sim = vr_sim_of(driver);
    return driver;
}

static struct vr_cu_allocation_prop memory_of(int device) {
    struct vr_cu_allocation_prop prop = memory_of_1;
    prop.location.id = device;
    return prop;
}

static uint64_t create(struct vr_sim *sim) {
    uint64_t object = 0;
    assert_cu(vr_sim_call_multicast_create(sim, &object, &of_2), SUCCESS);
    return object;
}

static void a_card_with_switches_and_a_peer_has_it(void **state) {
    (void)state;
    static const struct {
        const char *options;
        int supported;
    } cases[] = {
        {"device=h100,devices=2", 1},         {"device=b200,devices=8", 1},      {"device=h100", 0}, {"device=a100-80,devices=2", 0},
        {"device=l40s,devices=2", 0},         {"device=h100-pcie,devices=2", 0}, {"devices=2", 0},   {"device=gb200,devices=4", 1},
        {"device=h100,devices=2,no_peers", 0}};
    for (size_t i = 0; i < VR_COUNT_OF(cases); i++) {
        struct vr_sim *sim;
        struct vram_driver *driver = open_device(cases[i].options, &sim);
        const struct vr_cu_multicast_prop prop = {.device_count = 2, .size_bytes = PAGE};
        uint64_t granularity = 7, object = 7;
        int value = -1;
        assert_cu(vr_cu(driver, device_get_attribute, &value, VR_CU_DEVICE_ATTRIBUTE_MULTICAST_SUPPORTED, 0), SUCCESS);
        assert_int_equal(value, cases[i].supported);
        const vr_cu_result wanted = cases[i].supported ? VR_CU_SUCCESS : VR_CU_NOT_SUPPORTED;
        assert_int_equal(vr_sim_call_multicast_get_granularity(sim, &granularity, &prop, 0), wanted);
        assert_int_equal(vr_sim_call_multicast_create(sim, &object, &prop), wanted);
        assert_int_equal(granularity, cases[i].supported ? PAGE : 7);
        if (cases[i].supported) assert_cu(vr_cu(driver, mem_release, object), SUCCESS);
        vram_driver_destroy(driver);
    }
}

static void what_an_object_is_asked_to_be(void **state) {
    (void)state;
    struct vr_sim *sim;
    struct vram_driver *driver = open_device("device=h100,devices=2,bytes=sparse", &sim);
    uint64_t object, granularity;
    assert_cu(vr_sim_call_multicast_get_granularity(sim, &granularity, &of_2, VR_CU_MULTICAST_GRANULARITY_RECOMMENDED), SUCCESS);
    assert_int_equal(granularity, 512 * VR_MIB);
    assert_cu(vr_sim_call_multicast_get_granularity(sim, &granularity, &of_2, 2), INVALID_VALUE);
    assert_cu(vr_sim_call_multicast_get_granularity(sim, NULL, &of_2, 0), INVALID_VALUE);
    assert_cu(vr_sim_call_multicast_get_granularity(sim, &granularity, NULL, 0), INVALID_VALUE);
    const struct vr_cu_multicast_prop wrong[] = {{.device_count = 0, .size_bytes = PAGE},
                                                 {.device_count = 2, .size_bytes = 0},
                                                 {.device_count = 2, .size_bytes = PAGE + 4096},
                                                 {.device_count = 2, .size_bytes = PAGE, .flags = 1}};
    for (size_t i = 0; i < VR_COUNT_OF(wrong); i++) assert_cu(vr_sim_call_multicast_create(sim, &object, &wrong[i]), INVALID_VALUE);
    const struct vr_cu_multicast_prop fabric = {.device_count = 2, .size_bytes = PAGE, .handle_types = VR_CU_MEM_HANDLE_TYPE_FABRIC};
    assert_cu(vr_sim_call_multicast_create(sim, &object, &fabric), NOT_SUPPORTED);
    assert_cu(vr_sim_call_multicast_create(sim, NULL, &of_2), INVALID_VALUE);
    // A multicast object uses no device memory.
    object = create(sim);
    assert_int_equal(vram_sim_memory_used(driver, 0) + vram_sim_memory_used(driver, 1), 0);
    struct vr_cu_allocation_prop told;
    assert_cu(vr_cu(driver, mem_get_allocation_properties, &told, object), INVALID_VALUE);
    assert_cu(vr_sim_call_multicast_add_device(sim, object, 2), INVALID_DEVICE);
    assert_cu(vr_sim_call_multicast_add_device(sim, object, 1), SUCCESS);
    assert_cu(vr_sim_call_multicast_add_device(sim, object, 1), INVALID_VALUE);
    assert_cu(vr_sim_call_multicast_add_device(sim, object + 1, 0), INVALID_VALUE);
    assert_cu(vr_cu(driver, mem_release, object), SUCCESS);
    assert_cu(vr_cu(driver, mem_release, object), INVALID_VALUE);
    vram_driver_destroy(driver);
}

static void what_may_be_bound(void **state) {
    (void)state;
    struct vr_sim *sim;
    struct vram_driver *driver = open_device("device=h100,devices=2,bytes=sparse", &sim);
    const struct vr_cu_allocation_prop of_0 = memory_of(0),
                                       private = {.type = VR_CU_MEM_ALLOCATION_TYPE_PINNED, .location = memory_of_1.location};
    const uint64_t object = create(sim);
    uint64_t memory, other, alone;
    assert_cu(vr_cu(driver, mem_create, &memory, 2 * PAGE, &memory_of_1, 0), SUCCESS);
    assert_cu(vr_cu(driver, mem_create, &other, PAGE, &of_0, 0), SUCCESS);
    assert_cu(vr_cu(driver, mem_create, &alone, PAGE, &private, 0), SUCCESS);
    assert_cu(vr_sim_call_multicast_bind_mem(sim, object, 0, memory, 0, PAGE, 0), INVALID_DEVICE); // not added yet
    assert_cu(vr_sim_call_multicast_add_device(sim, object, 1), SUCCESS);
    assert_cu(vr_sim_call_multicast_bind_mem(sim, object, 0, other, 0, PAGE, 0), INVALID_DEVICE);
    assert_cu(vr_sim_call_multicast_bind_mem(sim, object, 0, alone, 0, PAGE, 0),
              INVALID_VALUE); // a shareable object needs shareable memory
    assert_cu(vr_sim_call_multicast_bind_mem(sim, object, 0, memory, PAGE, 2 * PAGE, 0), INVALID_VALUE);
    assert_cu(vr_sim_call_multicast_bind_mem(sim, object, 3 * PAGE, memory, 0, 2 * PAGE, 0), INVALID_VALUE);
    assert_cu(vr_sim_call_multicast_bind_mem(sim, object, 4096, memory, 0, PAGE, 0), INVALID_VALUE);
    assert_cu(vr_sim_call_multicast_bind_mem(sim, object, 0, memory, 0, 4096, 0), INVALID_VALUE);
    assert_cu(vr_sim_call_multicast_bind_mem(sim, object, 0, memory, 0, 0, 0), INVALID_VALUE);
    assert_cu(vr_sim_call_multicast_bind_mem(sim, object, 0, memory, 0, PAGE, 1), INVALID_VALUE);
    assert_cu(vr_sim_call_multicast_bind_mem(sim, object, UINT64_MAX - PAGE + 1, memory, 0, PAGE, 0), INVALID_VALUE);
    assert_cu(vr_sim_call_multicast_bind_mem(sim, object, 0, object, 0, PAGE, 0), INVALID_VALUE);
    assert_cu(vr_sim_call_multicast_bind_mem(sim, memory, 0, memory, 0, PAGE, 0), INVALID_VALUE);
    assert_cu(vr_sim_call_multicast_bind_mem_on(sim, object, 0, 0, memory, 0, PAGE, 0), INVALID_DEVICE);
    assert_cu(vr_sim_call_multicast_bind_mem_on(sim, object, 2, 0, memory, 0, PAGE, 0), INVALID_DEVICE);
    assert_cu(vr_sim_call_multicast_bind_mem_on(sim, object, 1, PAGE, memory, 0, 2 * PAGE, 0), SUCCESS);
    assert_cu(vr_sim_call_multicast_bind_mem(sim, object, 2 * PAGE, memory, 0, PAGE, 0), INVALID_VALUE); // already bound there
    assert_cu(vr_sim_call_multicast_bind_mem(sim, object, 0, memory, PAGE, PAGE, 0), SUCCESS);
    assert_true(vr_sim_check(sim));
    vram_driver_destroy(driver); // with all of it
}

static void memory_stays_while_it_is_bound(void **state) {
    (void)state;
    struct vr_sim *sim;
    struct vram_driver *driver = open_device("device=h100,devices=2,bytes=sparse", &sim);
    const uint64_t object = create(sim);
    uint64_t memory, second;
    assert_cu(vr_sim_call_multicast_add_device(sim, object, 1), SUCCESS);
    assert_cu(vr_cu(driver, mem_create, &memory, 2 * PAGE, &memory_of_1, 0), SUCCESS);
    assert_cu(vr_cu(driver, mem_create, &second, PAGE, &memory_of_1, 0), SUCCESS);
    assert_cu(vr_sim_call_multicast_bind_mem(sim, object, 0, memory, 0, 2 * PAGE, 0), SUCCESS);
    assert_cu(vr_sim_call_multicast_bind_mem(sim, object, 2 * PAGE, second, 0, PAGE, 0), SUCCESS);
    assert_cu(vr_cu(driver, mem_release, memory), SUCCESS);
    assert_cu(vr_cu(driver, mem_release, second), SUCCESS);
    assert_int_equal(vram_sim_memory_used(driver, 1), 3 * PAGE);
    assert_cu(vr_sim_call_multicast_unbind(sim, object, 0, 0, PAGE), INVALID_DEVICE);
    assert_cu(vr_sim_call_multicast_unbind(sim, object, 1, 4096, PAGE), INVALID_VALUE);
    assert_cu(vr_sim_call_multicast_unbind(sim, object, 1, 0, 5 * PAGE), INVALID_VALUE);
    assert_cu(vr_sim_call_multicast_unbind(sim, object, 1, 0, 2 * PAGE), SUCCESS);
    assert_int_equal(vram_sim_memory_used(driver, 1), PAGE);
    assert_cu(vr_cu(driver, mem_release, object), SUCCESS); // the last binding ends with the object
    assert_int_equal(vram_sim_memory_used(driver, 1), 0);
    assert_true(vr_sim_check(sim));
    vram_driver_destroy(driver);
}

// As PyTorch's symmetric memory: the object is mapped, and the bound memory is mapped elsewhere.
static void it_is_mapped_where_its_devices_reach_it(void **state) {
    (void)state;
    struct vr_sim *sim;
    struct vram_driver *driver = open_device("device=h100,devices=3,bytes=sparse", &sim);
    const struct vr_cu_access_desc one = {{VR_CU_MEM_LOCATION_TYPE_DEVICE, 1}, VR_CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    const struct vr_cu_access_desc two = {{VR_CU_MEM_LOCATION_TYPE_DEVICE, 2}, VR_CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    const uint64_t object = create(sim);
    uint64_t memory, address, own;
    assert_cu(vr_sim_call_multicast_add_device(sim, object, 1), SUCCESS);
    assert_cu(vr_cu(driver, mem_create, &memory, 2 * PAGE, &memory_of_1, 0), SUCCESS);
    assert_cu(vr_cu(driver, mem_address_reserve, &own, 2 * PAGE, 0, 0, 0), SUCCESS);
    assert_cu(vr_cu(driver, mem_map, own, 2 * PAGE, 0, memory, 0), SUCCESS);
    assert_cu(vr_sim_call_multicast_bind_addr(sim, object, 0, own + PAGE, 2 * PAGE, 0), INVALID_VALUE);
    assert_cu(vr_sim_call_multicast_bind_addr(sim, object, 0, 4096, PAGE, 0), INVALID_VALUE);
    assert_cu(vr_sim_call_multicast_bind_addr_on(sim, object, 2, 0, own, PAGE, 0), INVALID_DEVICE);
    assert_cu(vr_sim_call_multicast_bind_addr(sim, object, 0, own + PAGE, PAGE, 0), SUCCESS);
    assert_cu(vr_cu(driver, mem_address_reserve, &address, 4 * PAGE, 0, 0, 0), SUCCESS);
    assert_cu(vr_cu(driver, mem_map, address, 4 * PAGE, 0, object, 0), SUCCESS);
    assert_cu(vr_cu(driver, mem_set_access, address, 4 * PAGE, &two, 1), INVALID_DEVICE);
    assert_cu(vr_cu(driver, mem_set_access, address, 4 * PAGE, &one, 1), SUCCESS);
    assert_cu(vr_cu(driver, mem_release, object), SUCCESS); // the mapping keeps it
    assert_cu(vr_cu(driver, mem_unmap, own, 2 * PAGE), SUCCESS);
    assert_cu(vr_cu(driver, mem_release, memory), SUCCESS);
    assert_int_equal(vram_sim_memory_used(driver, 1), 2 * PAGE);
    assert_cu(vr_cu(driver, mem_unmap, address, 4 * PAGE), SUCCESS);
    assert_int_equal(vram_sim_memory_used(driver, 1), 0);
    vram_driver_destroy(driver);
}

// Two instances in one process stand for two processes.
static void an_object_of_another_process_is_one(void **state) {
    (void)state;
    struct vr_sim *here, *there;
    struct vram_driver *first = open_device("device=h100,devices=2,bytes=sparse", &here);
    struct vram_driver *second = open_device("device=h100,devices=2,bytes=sparse", &there);
    const uint64_t object = create(here);
    uint64_t taken, memory;
    int descriptor = -1;
    assert_cu(vr_cu(first, mem_export_to_shareable_handle, &descriptor, object, VR_CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0), SUCCESS);
    assert_cu(
        vr_cu(second, mem_import_from_shareable_handle, &taken, (void *)(intptr_t)descriptor, VR_CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR),
        SUCCESS);
    (void)close(descriptor);
    assert_cu(vr_cu(second, mem_create, &memory, PAGE, &memory_of_1, 0), SUCCESS);
    assert_cu(vr_sim_call_multicast_add_device(there, taken, 1), SUCCESS);
    assert_cu(vr_sim_call_multicast_bind_mem(there, taken, 3 * PAGE, memory, 0, PAGE, 0), SUCCESS);
    assert_cu(vr_cu(first, mem_release, object), SUCCESS);
    assert_cu(vr_cu(second, mem_release, taken), SUCCESS);
    assert_cu(vr_cu(second, mem_release, memory), SUCCESS);
    assert_int_equal(vram_sim_memory_used(second, 1), 0);
    assert_true(vr_sim_check(there));
    vram_driver_destroy(first);
    vram_driver_destroy(second);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_card_with_switches_and_a_peer_has_it),
        cmocka_unit_test(what_an_object_is_asked_to_be),
        cmocka_unit_test(what_may_be_bound),
        cmocka_unit_test(memory_stays_while_it_is_bound),
        cmocka_unit_test(it_is_mapped_where_its_devices_reach_it),
        cmocka_unit_test(an_object_of_another_process_is_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
