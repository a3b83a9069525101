// Tests the simulated driver's virtual memory management, real bytes, host memory and copies.
#include "unit/sim_fixture.h"
#include "vram/sim.h"

#define PAGE (2 * VR_MIB)

static const struct vr_cu_allocation_prop on_device_0 = {
    .type = VR_CU_MEM_ALLOCATION_TYPE_PINNED,
    .location = {VR_CU_MEM_LOCATION_TYPE_DEVICE, 0},
};
static const struct vr_cu_access_desc read_write = {{VR_CU_MEM_LOCATION_TYPE_DEVICE, 0}, VR_CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
static const struct vr_cu_access_desc read_only = {{VR_CU_MEM_LOCATION_TYPE_DEVICE, 0}, VR_CU_MEM_ACCESS_FLAGS_PROT_READ};

static uint64_t reserve(struct vram_driver *driver, uint64_t size) {
    uint64_t address;
    assert_cu(vr_cu(driver, mem_address_reserve, &address, size, 0, 0, 0), SUCCESS);
    return address;
}

static uint64_t create(struct vram_driver *driver, uint64_t size) {
    uint64_t handle;
    assert_cu(vr_cu(driver, mem_create, &handle, size, &on_device_0, 0), SUCCESS);
    return handle;
}

static void memory_lives_while_handle_or_mapping_lives(void **state) {
    struct vram_driver *driver = open_sim(&(struct vram_sim_options){.memory_bytes = 4 * PAGE});
    uint64_t address = reserve(driver, 8 * PAGE), handle = create(driver, PAGE), other;
    assert_int_equal(address, 0x400000000000u);
    assert_int_equal(vram_sim_memory_used(driver, 0), PAGE);
    assert_cu(vr_cu(driver, mem_map, address, PAGE, 0, handle, 0), SUCCESS);
    assert_cu(vr_cu(driver, mem_map, address + 4 * PAGE, PAGE, 0, handle, 0), SUCCESS);
    assert_int_equal(vram_sim_live_objects(driver), 4);
    assert_cu(vr_cu(driver, mem_release, handle), SUCCESS);
    assert_cu(vr_cu(driver, mem_release, handle), INVALID_VALUE);
    assert_cu(vr_cu(driver, mem_map, address + PAGE, PAGE, 0, handle, 0), INVALID_VALUE);
    assert_int_equal(vram_sim_memory_used(driver, 0), PAGE);
    assert_cu(vr_cu(driver, mem_unmap, address, PAGE), SUCCESS);
    assert_int_equal(vram_sim_memory_used(driver, 0), PAGE);
    assert_cu(vr_cu(driver, mem_create, &other, 4 * PAGE, &on_device_0, 0), OUT_OF_MEMORY);
    assert_cu(vr_cu(driver, mem_address_free, address, 8 * PAGE), INVALID_VALUE); // still mapped
    assert_cu(vr_cu(driver, mem_unmap, address + 4 * PAGE, PAGE), SUCCESS);
    assert_int_equal(vram_sim_memory_used(driver, 0), 0);
    other = create(driver, 4 * PAGE);
    assert_cu(vr_cu(driver, mem_release, other), SUCCESS);
    assert_cu(vr_cu(driver, mem_address_free, address, 8 * PAGE), SUCCESS);
    assert_int_equal(vram_sim_live_objects(driver), 0);
    vram_driver_destroy(driver);
    (void)state;
}

// An operation that reads and writes through two addresses does not see its own writes through the other; the next operation does.
static void aliases_are_seen_from_the_next_operation_on(void **state) {
    (void)state;
    for (int keeps = 0; keeps < 2; keeps++) {
        const enum vram_sim_bytes bytes = keeps != 0 ? VRAM_SIM_BYTES_SPARSE : VRAM_SIM_BYTES_ALL;
        struct vram_driver *driver = open_sim(&(struct vram_sim_options){.memory_bytes = 8 * PAGE, .poison_aliases = true, .bytes = bytes});
        const uint64_t a = reserve(driver, 4 * PAGE), b = a + 2 * PAGE, handle = create(driver, PAGE);
        unsigned char out[2048], in[2048];
        memset(in, 7, sizeof in);
        assert_cu(vr_cu(driver, mem_map, a, PAGE, 0, handle, 0), SUCCESS);
        assert_cu(vr_cu(driver, mem_map, b, PAGE, 0, handle, 0), SUCCESS);
        assert_cu(vr_cu(driver, mem_set_access, a, PAGE, &read_write, 1), SUCCESS);
        assert_cu(vr_cu(driver, mem_set_access, b, PAGE, &read_write, 1), SUCCESS);
        assert_cu(vr_cu(driver, memcpy_htod, a, in, sizeof in), SUCCESS);
        assert_cu(vr_cu(driver, memcpy_dtoh, out, b, sizeof out), SUCCESS); // the next operation
        assert_int_equal(out[0] + out[2047], 14);
        assert_cu(vr_cu(driver, memcpy_async, b + 65536, a, 2048, 0), SUCCESS); // other bytes of the page
        assert_cu(vr_cu(driver, memcpy_dtoh, out, a + 65536, sizeof out), SUCCESS);
        assert_int_equal(out[0] + out[2047], 14);
        assert_cu(vr_cu(driver, memcpy_async, b + 1024, a, 2048, 0), SUCCESS); // bytes 1024 to 2048 through both
        assert_cu(vr_cu(driver, memcpy_dtoh, out, a, sizeof out), SUCCESS);
        assert_int_equal(out[0], 7);
        assert_int_equal(out[1024], 0xDB);
        assert_int_equal(out[2047], 0xDB);
        vram_driver_destroy(driver);
    }
}

static void arguments_are_checked_as_the_driver_does(void **state) {
    struct vram_driver *driver = open_sim(NULL);
    struct vr_cu_allocation_prop prop = on_device_0;
    uint64_t address = 7, handle = 7, granularity;
    assert_cu(vr_cu(driver, mem_get_allocation_granularity, &granularity, &prop, VR_CU_MEM_GRANULARITY_RECOMMENDED), SUCCESS);
    assert_int_equal(granularity, PAGE);
    assert_cu(vr_cu(driver, mem_create, &handle, PAGE - 1, &prop, 0), INVALID_VALUE);
    assert_cu(vr_cu(driver, mem_create, &handle, 0, &prop, 0), INVALID_VALUE);
    assert_cu(vr_cu(driver, mem_create, &handle, PAGE, &prop, 1), INVALID_VALUE);
    assert_cu(vr_cu(driver, mem_create, &handle, PAGE, NULL, 0), INVALID_VALUE);
    prop.location.id = 1;
    assert_cu(vr_cu(driver, mem_create, &handle, PAGE, &prop, 0), INVALID_DEVICE);
    prop.location.id = 0;
    prop.type = 0;
    assert_cu(vr_cu(driver, mem_create, &handle, PAGE, &prop, 0), INVALID_VALUE);
    assert_cu(vr_cu(driver, mem_address_reserve, &address, PAGE, 3, 0, 0), INVALID_VALUE);
    assert_cu(vr_cu(driver, mem_address_reserve, &address, PAGE + 1, 0, 0, 0), INVALID_VALUE);
    assert_cu(vr_cu(driver, mem_address_reserve, &address, 0, 0, 0, 0), INVALID_VALUE);
    assert_cu(vr_cu(driver, mem_address_reserve, &address, (uint64_t)1 << 60, 0, 0, 0), OUT_OF_MEMORY);
    assert_int_equal(address, 7);
    assert_int_equal(handle, 7);

    address = reserve(driver, 4 * PAGE);
    handle = create(driver, 2 * PAGE);
    assert_cu(vr_cu(driver, mem_map, address + 1, PAGE, 0, handle, 0), INVALID_VALUE);
    assert_cu(vr_cu(driver, mem_map, address, PAGE - 512, 0, handle, 0), INVALID_VALUE);
    assert_cu(vr_cu(driver, mem_map, address, PAGE, PAGE, handle, 0), INVALID_VALUE);               // offsets are not supported
    assert_cu(vr_cu(driver, mem_map, address, 3 * PAGE, 0, handle, 0), INVALID_VALUE);              // larger than the handle's memory
    assert_cu(vr_cu(driver, mem_map, address + 3 * PAGE, 2 * PAGE, 0, handle, 0), INVALID_VALUE);   // past the reservation
    assert_cu(vr_cu(driver, mem_map, address + 100 * PAGE, 2 * PAGE, 0, handle, 0), INVALID_VALUE); // outside
    assert_cu(vr_cu(driver, mem_map, address, 2 * PAGE, 0, handle, 0), SUCCESS);
    assert_cu(vr_cu(driver, mem_map, address + PAGE, 2 * PAGE, 0, handle, 0), INVALID_VALUE); // mapped already
    assert_cu(vr_cu(driver, mem_map, address + 2 * PAGE, 2 * PAGE, 0, handle, 0), SUCCESS);
    assert_cu(vr_cu(driver, mem_unmap, address, PAGE), INVALID_VALUE); // part of a mapping
    assert_cu(vr_cu(driver, mem_unmap, address, 3 * PAGE), INVALID_VALUE);
    assert_cu(vr_cu(driver, mem_set_access, address, PAGE, &read_write, 1), INVALID_VALUE);
    assert_cu(vr_cu(driver, mem_set_access, address, 4 * PAGE, &read_write, 0), INVALID_VALUE);
    struct vr_cu_access_desc wrong = read_write;
    wrong.flags = 2;
    assert_cu(vr_cu(driver, mem_set_access, address, 4 * PAGE, &wrong, 1), INVALID_VALUE);
    wrong = read_write;
    wrong.location.id = 1;
    assert_cu(vr_cu(driver, mem_set_access, address, 4 * PAGE, &wrong, 1), INVALID_DEVICE);
    assert_cu(vr_cu(driver, mem_set_access, address, 4 * PAGE, &read_write, 1), SUCCESS);
    assert_cu(vr_cu(driver, mem_unmap, address, 4 * PAGE), SUCCESS); // two whole mappings at once
    assert_cu(vr_cu(driver, mem_unmap, address, 4 * PAGE), INVALID_VALUE);
    assert_cu(vr_cu(driver, mem_address_free, address, PAGE), INVALID_VALUE);
    assert_cu(vr_cu(driver, mem_address_free, address + PAGE, PAGE), INVALID_VALUE);
    assert_cu(vr_cu(driver, mem_free, address), INVALID_VALUE);
    assert_cu(vr_cu(driver, mem_address_free, address, 4 * PAGE), SUCCESS);
    vram_driver_destroy(driver); // with a live handle
    (void)state;
}

static void reservations_follow_rule_hint_and_queue(void **state) {
    struct vram_driver *driver = open_sim(NULL);
    uint64_t a = reserve(driver, PAGE), b = reserve(driver, PAGE), c, d;
    assert_int_equal(b, a + VR_GIB);
    assert_cu(vr_cu(driver, mem_address_reserve, &c, PAGE, 0, a + 8 * VR_GIB, 0), SUCCESS);
    assert_int_equal(c, a + 8 * VR_GIB);
    assert_cu(vr_cu(driver, mem_address_reserve, &d, PAGE, 0, a, 0), SUCCESS); // an unavailable hint
    assert_int_equal(d, a + 2 * VR_GIB);
    assert_int_equal(vram_sim_queue_reservation(driver, 0x7e0000200000), VRAM_OK);
    assert_int_equal(reserve(driver, 3 * PAGE), 0x7e0000200000);
    assert_cu(vr_cu(driver, mem_address_reserve, &d, PAGE, (uint64_t)1 << 40, 0, 0), SUCCESS);
    assert_int_equal(d % ((uint64_t)1 << 40), 0);
    vram_driver_destroy(driver);
    (void)state;
}

static void allocations_step_over_reservations(void **state) {
    for (int rule = VRAM_SIM_RISING; rule <= VRAM_SIM_REUSE; rule++) {
        bool falling = rule == VRAM_SIM_FALLING;
        struct vram_sim_options options = {
            .addresses = (enum vram_sim_addresses)rule, .reserve_base = 1024 * PAGE, .reserve_alignment = PAGE};
        options.alloc_base = falling ? 1034 * PAGE : 1022 * PAGE;
        struct vram_driver *driver = open_sim(&options);
        uint64_t reserved = reserve(driver, 8 * PAGE), first, second, third;
        assert_int_equal(reserved, 1024 * PAGE);
        assert_cu(vr_cu(driver, mem_alloc, &first, 2 * PAGE), SUCCESS);
        assert_cu(vr_cu(driver, mem_alloc, &second, PAGE), SUCCESS);
        assert_int_equal(first, falling ? 1032 * PAGE : 1022 * PAGE);
        assert_int_equal(second, falling ? 1023 * PAGE : 1032 * PAGE);
        assert_int_equal(vram_sim_queue_address(driver, reserved + PAGE), VRAM_OK);
        assert_cu(vr_cu(driver, mem_alloc, &third, 1), INVALID_VALUE);
        assert_cu(vr_cu(driver, mem_address_free, reserved, 8 * PAGE), SUCCESS);
        reserved = reserve(driver, 8 * PAGE);
        assert_true(rule == VRAM_SIM_REUSE ? reserved == 1024 * PAGE : reserved >= 1032 * PAGE);
        vram_driver_destroy(driver);
    }
    (void)state;
}

static void two_mappings_of_one_handle_are_the_same_bytes(void **state) {
    struct vram_driver *driver = open_sim(&(struct vram_sim_options){.backed = true, .memory_bytes = 16 * PAGE});
    uint64_t address = reserve(driver, 8 * PAGE), handle = create(driver, 2 * PAGE), second = create(driver, PAGE);
    assert_cu(vr_cu(driver, mem_map, address, 2 * PAGE, 0, handle, 0), SUCCESS);
    assert_cu(vr_cu(driver, mem_map, address + 4 * PAGE, 2 * PAGE, 0, handle, 0), SUCCESS);
    assert_cu(vr_cu(driver, mem_map, address + 6 * PAGE, PAGE, 0, second, 0), SUCCESS);
    assert_cu(vr_cu(driver, mem_set_access, address, 2 * PAGE, &read_write, 1), SUCCESS);
    assert_cu(vr_cu(driver, mem_set_access, address + 4 * PAGE, 3 * PAGE, &read_write, 1), SUCCESS);
    volatile uint32_t *one = (volatile uint32_t *)(uintptr_t)(address + 3 * VR_MIB);
    volatile uint32_t *two = (volatile uint32_t *)(uintptr_t)(address + 4 * PAGE + 3 * VR_MIB);
    volatile uint32_t *apart = (volatile uint32_t *)(uintptr_t)(address + 6 * PAGE);
    *one = 0xabcd;
    assert_int_equal(*two, 0xabcd);
    *two = 0x1234;
    *apart = 0x9999;
    assert_int_equal(*one, 0x1234);
    assert_cu(vr_cu(driver, mem_unmap, address, 2 * PAGE), SUCCESS);
    assert_cu(vr_cu(driver, mem_map, address, PAGE, 0, second, 0), SUCCESS);
    assert_cu(vr_cu(driver, mem_set_access, address, PAGE, &read_only, 1), SUCCESS);
    assert_int_equal(*(volatile uint32_t *)(uintptr_t)address, 0x9999);
    assert_int_equal(*two, 0x1234);
    vram_driver_destroy(driver);
    (void)state;
}

static void copies_move_bytes_and_check_ranges(void **state) {
    for (int backed = 0; backed <= 1; backed++) {
        struct vram_driver *driver = open_sim(&(struct vram_sim_options){.backed = backed != 0});
        unsigned char out[300], in[300];
        for (size_t i = 0; i < sizeof out; i++) out[i] = (unsigned char)(i * 7 + 1);
        memset(in, 0, sizeof in);
        uint64_t a, b, host;
        assert_cu(vr_cu(driver, mem_alloc, &a, 300), SUCCESS);
        assert_cu(vr_cu(driver, mem_alloc, &b, 5 * VR_MIB), SUCCESS);
        assert_cu(vr_cu(driver, mem_host_alloc, &host, 300, VR_CU_MEM_HOST_ALLOC_PORTABLE), SUCCESS);
        assert_cu(vr_cu(driver, memcpy_htod, a, out, 300), SUCCESS);
        assert_cu(vr_cu(driver, memcpy_async, b + 5 * VR_MIB - 300, a, 300, 0), SUCCESS);
        assert_cu(vr_cu(driver, memset_d8, b + 5 * VR_MIB - 1, 0xee, 1), SUCCESS);
        assert_cu(vr_cu(driver, memcpy_async, host, b + 5 * VR_MIB - 300, 300, 0), SUCCESS);
        assert_cu(vr_cu(driver, memcpy_dtoh, in, b + 5 * VR_MIB - 300, 300), SUCCESS);
        if (backed != 0) {
            assert_memory_equal(in, out, 299);
            assert_int_equal(in[299], 0xee);
            assert_memory_equal((void *)(uintptr_t)host, in, 300);
        }
        assert_cu(vr_cu(driver, memcpy_htod, a + 1, out, 300), INVALID_VALUE);
        assert_cu(vr_cu(driver, memcpy_dtoh, in, b, 5 * VR_MIB + 1), INVALID_VALUE);
        assert_cu(vr_cu(driver, memcpy_htod, (uint64_t)(uintptr_t)in, out, 300), INVALID_VALUE);
        assert_cu(vr_cu(driver, memset_d8_async, a, 0, 301, 0), INVALID_VALUE);
        assert_cu(vr_cu(driver, memset_d8_async, a, 0, UINT64_MAX, 0), INVALID_VALUE);
        assert_cu(vr_cu(driver, mem_free, a), SUCCESS);
        assert_cu(vr_cu(driver, memset_d8, a, 0, 1), INVALID_VALUE);
        assert_cu(vr_cu(driver, mem_free_host, host), SUCCESS);
        vram_driver_destroy(driver);
    }
    (void)state;
}

static void mapped_memory_needs_access(void **state) {
    struct vram_driver *driver = open_sim(&(struct vram_sim_options){.backed = true});
    uint64_t address = reserve(driver, 2 * PAGE), handle = create(driver, PAGE), other = create(driver, PAGE);
    unsigned char byte = 1;
    assert_cu(vr_cu(driver, mem_map, address, PAGE, 0, handle, 0), SUCCESS);
    assert_cu(vr_cu(driver, mem_map, address + PAGE, PAGE, 0, other, 0), SUCCESS);
    assert_cu(vr_cu(driver, memset_d8, address, 1, 1), INVALID_VALUE);
    assert_cu(vr_cu(driver, mem_set_access, address, 2 * PAGE, &read_only, 1), SUCCESS);
    assert_cu(vr_cu(driver, memset_d8, address, 1, 1), INVALID_VALUE);
    assert_cu(vr_cu(driver, memcpy_dtoh, &byte, address, 1), SUCCESS);
    assert_int_equal(byte, 0);
    assert_cu(vr_cu(driver, mem_set_access, address, 2 * PAGE, &read_write, 1), SUCCESS);
    assert_cu(vr_cu(driver, memset_d8, address, 1, 2 * PAGE), SUCCESS); // across both mappings
    assert_cu(vr_cu(driver, memset_d8, address + PAGE, 1, PAGE + 1), INVALID_VALUE);
    uint64_t base, size;
    assert_cu(vr_cu(driver, mem_get_address_range, &base, &size, address + PAGE + 5), SUCCESS);
    assert_int_equal(base, address + PAGE);
    assert_int_equal(size, PAGE);
    vram_driver_destroy(driver);
    (void)state;
}

static void live_backed_blocks_share_no_byte(void **state) {
    struct vram_driver *driver = open_sim(&(struct vram_sim_options){.backed = true, .addresses = VRAM_SIM_REUSE});
    uint64_t live[64] = {0}, sizes[64] = {0}, random = 3;
    for (uint32_t i = 0; i < 2000; i++) {
        random = vr_mix64(random + i);
        size_t at = random % 64;
        if (live[at] != 0) {
            const unsigned char *bytes = (const unsigned char *)(uintptr_t)live[at];
            assert_int_equal(bytes[0], at);
            assert_int_equal(bytes[sizes[at] - 1], at);
            assert_cu(vr_cu(driver, mem_free, live[at]), SUCCESS);
            live[at] = 0;
        } else {
            sizes[at] = 1 + (random >> 8) % ((uint64_t)1 << (random >> 40) % 23);
            assert_cu(vr_cu(driver, mem_alloc, &live[at], sizes[at]), SUCCESS);
            assert_cu(vr_cu(driver, memset_d8, live[at], (uint8_t)at, sizes[at]), SUCCESS);
        }
    }
    vram_driver_destroy(driver);
    (void)state;
}

static void host_memory_is_allocated_and_registered(void **state) {
    struct vram_driver *driver = open_sim(NULL);
    static unsigned char own[10000];
    uint64_t host, address = (uint64_t)(uintptr_t)own;
    assert_cu(vr_cu(driver, mem_host_alloc, &host, 0, 0), INVALID_VALUE);
    assert_cu(vr_cu(driver, mem_host_alloc, &host, 100, 64), INVALID_VALUE);
    assert_cu(vr_cu(driver, mem_host_alloc, &host, 100, 0), SUCCESS);
    memset((void *)(uintptr_t)host, 1, 100);
    assert_cu(vr_cu(driver, mem_host_register, address, 10000, 0), SUCCESS);
    assert_cu(vr_cu(driver, mem_host_register, address + 5000, 10000, 0), HOST_MEMORY_ALREADY_REGISTERED);
    assert_int_equal(vram_sim_live_objects(driver), 2);
    assert_cu(vr_cu(driver, mem_free_host, address), INVALID_VALUE);
    assert_cu(vr_cu(driver, mem_host_unregister, host), HOST_MEMORY_NOT_REGISTERED);
    assert_cu(vr_cu(driver, mem_host_unregister, address), SUCCESS);
    assert_cu(vr_cu(driver, mem_host_unregister, address), HOST_MEMORY_NOT_REGISTERED);
    assert_cu(vr_cu(driver, mem_free_host, host), SUCCESS);
    assert_int_equal(vram_sim_live_objects(driver), 0);
    vram_driver_destroy(driver);
    (void)state;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_lives_while_handle_or_mapping_lives),
        cmocka_unit_test(aliases_are_seen_from_the_next_operation_on),
        cmocka_unit_test(arguments_are_checked_as_the_driver_does),
        cmocka_unit_test(reservations_follow_rule_hint_and_queue),
        cmocka_unit_test(two_mappings_of_one_handle_are_the_same_bytes),
        cmocka_unit_test(allocations_step_over_reservations),
        cmocka_unit_test(copies_move_bytes_and_check_ranges),
        cmocka_unit_test(mapped_memory_needs_access),
        cmocka_unit_test(live_backed_blocks_share_no_byte),
        cmocka_unit_test(host_memory_is_allocated_and_registered),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
