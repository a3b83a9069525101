// Tests peers, shareable handles and IPC handles of the simulated driver. Two instances in one process stand for two processes: they share
// only the system. (tests/share has two processes.)
#include "sim_fixture.h"

#include "sim/sim.h"
#include "os/os.h"
#include "vram/sim.h"

#include <stdatomic.h>

#define PAGE VR_SIM_GRANULARITY

static const struct vram_sim_options backed = {.device_count = 2, .memory_bytes = VR_GIB, .backed = true};
static const struct vr_cu_access_desc all = {{VR_CU_MEM_LOCATION_TYPE_DEVICE, 0}, VR_CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
static const struct vr_cu_access_desc from_1 = {{VR_CU_MEM_LOCATION_TYPE_DEVICE, 1}, VR_CU_MEM_ACCESS_FLAGS_PROT_READWRITE};

static uint64_t context_of(struct vram_driver *driver, int device) {
    uint64_t context;
    assert_cu(vr_cu(driver, primary_ctx_retain, &context, device), SUCCESS);
    return context;
}

static uint64_t *words(uint64_t address) { return (uint64_t *)(uintptr_t)address; }

// --- peers ------------------------------------------------------------------------------------------------------------------------

static void peers_are_enabled_and_disabled(void **state) {
    struct vram_driver *driver = open_sim(&backed);
    const uint64_t here = context_of(driver, 0), there = context_of(driver, 1);
    int can = 7;
    assert_cu(vr_cu(driver, device_can_access_peer, &can, 0, 1), SUCCESS);
    assert_int_equal(can, 1);
    assert_cu(vr_cu(driver, device_can_access_peer, &can, 1, 1), SUCCESS);
    assert_int_equal(can, 0);
    assert_cu(vr_cu(driver, device_can_access_peer, &can, 0, 2), INVALID_DEVICE);
    assert_cu(vr_cu(driver, ctx_disable_peer_access, there), PEER_ACCESS_NOT_ENABLED);
    assert_cu(vr_cu(driver, ctx_enable_peer_access, there, 1), INVALID_VALUE);
    assert_cu(vr_cu(driver, ctx_enable_peer_access, here, 0), INVALID_CONTEXT);
    assert_cu(vr_cu(driver, ctx_enable_peer_access, there + 1, 0), INVALID_CONTEXT);
    assert_cu(vr_cu(driver, ctx_enable_peer_access, there, 0), SUCCESS);
    assert_cu(vr_cu(driver, ctx_enable_peer_access, there, 0), PEER_ACCESS_ALREADY_ENABLED);
    assert_cu(vr_cu(driver, ctx_disable_peer_access, there), SUCCESS);
    assert_cu(vr_cu(driver, ctx_disable_peer_access, there), PEER_ACCESS_NOT_ENABLED);
    vram_driver_destroy(driver);
    (void)state;
}

static void a_machine_without_peers_refuses(void **state) {
    struct vram_sim_options options = backed;
    assert_int_equal(vram_sim_parse("devices=2,no_peers", &options, NULL), VRAM_OK);
    struct vram_driver *driver = open_sim(&options);
    int can = 7;
    assert_cu(vr_cu(driver, device_can_access_peer, &can, 0, 1), SUCCESS);
    assert_int_equal(can, 0);
    assert_cu(vr_cu(driver, ctx_enable_peer_access, context_of(driver, 1), 0), PEER_ACCESS_UNSUPPORTED);
    vram_driver_destroy(driver);
    (void)state;
}

// Work on a device uses another's allocation only while access is enabled; copies do not need that.
static void a_set_needs_a_peer(void **state) {
    struct vram_driver *driver = open_sim(&backed);
    const uint64_t here = context_of(driver, 0), there = context_of(driver, 1);
    uint64_t theirs, ours;
    assert_cu(vr_cu(driver, mem_alloc, &ours, PAGE), SUCCESS);
    assert_cu(vr_cu(driver, ctx_set_current, there), SUCCESS);
    assert_cu(vr_cu(driver, mem_alloc, &theirs, PAGE), SUCCESS);
    assert_cu(vr_cu(driver, memset_d8, theirs, 5, 64), SUCCESS);
    assert_cu(vr_cu(driver, ctx_set_current, here), SUCCESS);
    assert_cu(vr_cu(driver, memset_d8, theirs, 6, 64), INVALID_VALUE);
    assert_cu(vr_cu(driver, memcpy_async, ours, theirs, 64, 0), SUCCESS);
    assert_int_equal(*words(ours), 0x0505050505050505u);
    assert_cu(vr_cu(driver, ctx_enable_peer_access, there, 0), SUCCESS);
    assert_cu(vr_cu(driver, memset_d8, theirs, 6, 64), SUCCESS);
    assert_int_equal(*words(theirs), 0x0606060606060606u);
    assert_cu(vr_cu(driver, ctx_disable_peer_access, there), SUCCESS);
    assert_cu(vr_cu(driver, memset_d8, theirs, 7, 64), INVALID_VALUE);
    vram_driver_destroy(driver);
    (void)state;
}

// --- pages ------------------------------------------------------------------------------------------------------------------------

static uint64_t create(struct vram_driver *driver, int32_t handle_types) {
    const struct vr_cu_allocation_prop prop = {
        .type = VR_CU_MEM_ALLOCATION_TYPE_PINNED, .requested_handle_types = handle_types, .location = {VR_CU_MEM_LOCATION_TYPE_DEVICE, 0}};
    uint64_t handle = 0;
    assert_cu(vr_cu(driver, mem_create, &handle, PAGE, &prop, 0), SUCCESS);
    return handle;
}

static uint64_t map(struct vram_driver *driver, uint64_t handle) {
    uint64_t address;
    assert_cu(vr_cu(driver, mem_address_reserve, &address, PAGE, 0, 0, 0), SUCCESS);
    assert_cu(vr_cu(driver, mem_map, address, PAGE, 0, handle, 0), SUCCESS);
    assert_cu(vr_cu(driver, mem_set_access, address, PAGE, &all, 1), SUCCESS);
    return address;
}

static void unmap(struct vram_driver *driver, uint64_t address) {
    assert_cu(vr_cu(driver, mem_unmap, address, PAGE), SUCCESS);
    assert_cu(vr_cu(driver, mem_address_free, address, PAGE), SUCCESS);
}

static int export(struct vram_driver *driver, uint64_t handle) {
    int descriptor = -1;
    assert_cu(vr_cu(driver, mem_export_to_shareable_handle, &descriptor, handle, 1, 0), SUCCESS);
    assert_true(descriptor >= 0);
    return descriptor;
}

static vr_cu_result import(struct vram_driver *driver, int descriptor, uint64_t *handle) {
    return vr_cu(driver, mem_import_from_shareable_handle, handle, (void *)(uintptr_t)descriptor, 1);
}

static void access_to_pages_is_per_device(void **state) {
    struct vram_driver *driver = open_sim(&backed);
    const uint64_t address = map(driver, create(driver, 0));
    const struct vr_cu_location zero = {VR_CU_MEM_LOCATION_TYPE_DEVICE, 0}, one = {VR_CU_MEM_LOCATION_TYPE_DEVICE, 1};
    uint64_t flags = 9;
    assert_cu(vr_cu(driver, mem_get_access, &flags, &zero, address), SUCCESS);
    assert_int_equal(flags, VR_CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
    assert_cu(vr_cu(driver, mem_get_access, &flags, &one, address), SUCCESS);
    assert_int_equal(flags, VR_CU_MEM_ACCESS_FLAGS_PROT_NONE);
    assert_cu(vr_cu(driver, mem_set_access, address, PAGE, &from_1, 1), SUCCESS); // peer access need not be enabled
    assert_cu(vr_cu(driver, mem_get_access, &flags, &one, address), SUCCESS);
    assert_int_equal(flags, VR_CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
    vram_driver_destroy(driver);
    (void)state;
}

static void a_descriptor_is_the_same_memory(void **state) {
    struct vram_driver *here = open_sim(&backed), *there = open_sim(&backed);
    const uint64_t handle = create(here, VR_CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR), ours = map(here, handle);
    const int first = export(here, handle), second = export(here, handle);
    uint64_t theirs_1 = 0, theirs_2 = 0, none = 0;
    struct vr_cu_allocation_prop prop = {.type = 0};
    assert_cu(import(there, first, &theirs_1), SUCCESS);
    assert_cu(import(there, second, &theirs_2), SUCCESS);
    vr_os_close_descriptor(first);
    vr_os_close_descriptor(second);
    assert_cu(vr_cu(there, mem_get_allocation_properties, &prop, theirs_1), SUCCESS);
    assert_int_equal(prop.requested_handle_types, VR_CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
    assert_int_equal(vram_sim_memory_used(there, 0), 0);
    const uint64_t a = map(there, theirs_1), b = map(there, theirs_2);
    *words(ours) = 41;
    assert_int_equal(*words(a), 41);
    *words(b) = 42;
    assert_int_equal(*words(ours), 42);
    // After the owner releases it, the importers keep the bytes until the last one is gone.
    assert_cu(vr_cu(here, mem_release, handle), SUCCESS);
    unmap(here, ours);
    assert_int_equal(vram_sim_memory_used(here, 0), 0);
    assert_int_equal(*words(a), 42);
    assert_cu(vr_cu(there, mem_release, theirs_1), SUCCESS);
    unmap(there, a);
    assert_int_equal(*words(b), 42);
    const int again = export(there, theirs_2); // an importer may export it again
    assert_cu(vr_cu(there, mem_release, theirs_2), SUCCESS);
    unmap(there, b);
    assert_cu(import(here, again, &none), SUCCESS);
    const uint64_t back = map(here, none);
    assert_int_equal(*words(back), 42);
    assert_cu(vr_cu(here, mem_release, none), SUCCESS);
    unmap(here, back);
    vr_os_close_descriptor(again);
    assert_int_equal(vram_sim_live_objects(here), 0);
    assert_int_equal(vram_sim_live_objects(there), 0);
    vram_driver_destroy(there);
    vram_driver_destroy(here);
    (void)state;
}

static void the_last_user_gives_the_bytes_back(void **state) {
    struct vram_driver *here = open_sim(&backed), *there = open_sim(&backed);
    const uint64_t handle = create(here, VR_CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR), ours = map(here, handle);
    const int descriptor = export(here, handle);
    uint64_t theirs = 0, none = 0;
    struct vr_shared_facts facts;
    assert_int_equal(vr_os_shared_facts(descriptor, &facts), VRAM_OK);
    *words(ours) = 1;
    assert_cu(import(there, descriptor, &theirs), SUCCESS);
    assert_cu(vr_cu(here, mem_release, handle), SUCCESS);
    unmap(here, ours);
    // The ticket exists while the descriptor or the import does.
    struct vr_sim_ticket ticket;
    struct vr_sim *sim = vr_sim_of(here);
    assert_cu(vr_sim_ticket_read(sim->file, facts.position, VR_SIM_TICKET_PHYSICAL, &ticket), SUCCESS);
    vr_os_close_descriptor(descriptor);
    assert_cu(vr_sim_ticket_read(sim->file, facts.position, VR_SIM_TICKET_PHYSICAL, &ticket), SUCCESS);
    assert_cu(vr_cu(there, mem_release, theirs), SUCCESS);
    assert_cu(vr_sim_ticket_read(sim->file, facts.position, VR_SIM_TICKET_PHYSICAL, &ticket), INVALID_VALUE);
    uint64_t word = 7;
    assert_int_equal(vr_os_shared_read(sim->file, VR_SIM_PAGE_BYTES, &word, sizeof word), VRAM_OK);
    assert_int_equal(word, 0);
    assert_cu(import(there, 1 << 20, &none), INVALID_VALUE);
    vram_driver_destroy(there);
    vram_driver_destroy(here);
    (void)state;
}

static void handles_are_retained(void **state) {
    struct vram_driver *driver = open_sim(&backed);
    const uint64_t handle = create(driver, 0), address = map(driver, handle);
    uint64_t again = 0;
    int descriptor;
    assert_cu(vr_cu(driver, mem_retain_allocation_handle, &again, address + 4096), SUCCESS);
    assert_int_equal(again, handle);
    assert_cu(vr_cu(driver, mem_release, handle), SUCCESS);
    assert_cu(vr_cu(driver, mem_release, handle), SUCCESS);
    assert_cu(vr_cu(driver, mem_release, handle), INVALID_VALUE);
    assert_cu(vr_cu(driver, mem_retain_allocation_handle, &again, address), SUCCESS); // the mapping is still there
    assert_int_equal(again, handle);
    assert_cu(vr_cu(driver, mem_export_to_shareable_handle, &descriptor, handle, 1, 0), INVALID_VALUE); // not requested at creation
    assert_cu(vr_cu(driver, mem_export_to_shareable_handle, &descriptor, handle, VR_CU_MEM_HANDLE_TYPE_FABRIC, 0), NOT_SUPPORTED);
    assert_cu(vr_cu(driver, mem_release, handle), SUCCESS);
    assert_cu(vr_cu(driver, mem_retain_allocation_handle, &again, address + PAGE), INVALID_VALUE);
    unmap(driver, address);
    assert_int_equal(vram_sim_live_objects(driver), 0);
    vram_driver_destroy(driver);
    (void)state;
}

// --- handles of 64 bytes ----------------------------------------------------------------------------------------------------------

struct waiter {
    _Atomic uint64_t thread;
    _Atomic bool may_end;
};

static void wait_to_end(void *argument) {
    struct waiter *waiter = argument;
    atomic_store(&waiter->thread, vr_os_thread_id());
    while (!atomic_load(&waiter->may_end)) vr_os_yield();
}

// /proc has a process's files under the id of each of its threads.
static void a_handle_that_names_a_thread_is_damaged(void **state) {
    struct vram_driver *here = open_sim(&backed), *there = open_sim(&backed);
    (void)context_of(here, 0);
    (void)context_of(there, 0);
    struct vr_cu_ipc_handle handle;
    struct waiter waiter = {0};
    struct vr_thread thread;
    uint64_t ours, opened = 0;
    assert_int_equal(vr_thread_start(&thread, wait_to_end, &waiter), VRAM_OK);
    while (atomic_load(&waiter.thread) == 0) vr_os_yield();
    const uint64_t number = atomic_load(&waiter.thread), process = vr_os_process_id();
    assert_cu(vr_cu(here, mem_alloc, &ours, PAGE), SUCCESS);
    assert_cu(vr_cu(here, ipc_get_mem_handle, &handle, ours), SUCCESS);
    assert_memory_equal(handle.reserved + 8, &process, sizeof process);
    memcpy(handle.reserved + 8, &number, sizeof number);
    assert_cu(vr_cu(there, ipc_open_mem_handle, &opened, handle, 1), INVALID_VALUE);
    atomic_store(&waiter.may_end, true);
    vr_thread_join(&thread);
    assert_cu(vr_cu(here, mem_free, ours), SUCCESS);
    vram_driver_destroy(there);
    vram_driver_destroy(here);
    (void)state;
}

static void a_handle_opens_the_allocation(void **state) {
    struct vram_driver *here = open_sim(&backed), *there = open_sim(&backed);
    struct vr_cu_ipc_handle handle, damaged;
    uint64_t ours, first = 0, second = 0, none = 0;
    assert_cu(vr_cu(here, mem_alloc, &ours, 3 * PAGE), SUCCESS);
    *words(ours) = 5;
    assert_cu(vr_cu(here, ipc_get_mem_handle, &handle, ours + 8), INVALID_VALUE);
    assert_cu(vr_cu(here, ipc_get_mem_handle, &handle, ours), SUCCESS);
    assert_cu(vr_cu(here, ipc_open_mem_handle, &none, handle, 1), INVALID_CONTEXT); // its own handle
    assert_cu(vr_cu(there, ipc_open_mem_handle, &none, handle, 0), INVALID_VALUE);
    assert_cu(vr_cu(there, ipc_open_mem_handle, &first, handle, 1), SUCCESS);
    assert_cu(vr_cu(there, ipc_open_mem_handle, &second, handle, 1), SUCCESS);
    assert_int_equal(first, second);
    assert_int_equal(*words(first), 5);
    words(first)[PAGE / 8] = 6;
    assert_int_equal(words(ours)[PAGE / 8], 6);
    assert_cu(vr_cu(there, mem_free, first), INVALID_VALUE);
    assert_int_equal(vram_sim_memory_used(there, 0), 0);
    assert_cu(vr_cu(there, memset_d8, first, 1, 64), SUCCESS);
    assert_int_equal(*words(ours), 0x0101010101010101u);
    // The file's number is left out: both instances are in this process, where one has the other's file open under another number.
    for (size_t bit = 0; bit < 32 * 8; bit++) {
        damaged = handle;
        damaged.reserved[bit / 8] = (char)(damaged.reserved[bit / 8] ^ 1 << bit % 8);
        assert_true(vr_cu(there, ipc_open_mem_handle, &none, damaged, 1) != VR_CU_SUCCESS);
    }
    assert_cu(vr_cu(here, mem_free, ours), SUCCESS);
    assert_int_equal(*words(first), 0x0101010101010101u); // an importer keeps it
    assert_cu(vr_cu(there, ipc_close_mem_handle, first), SUCCESS);
    assert_cu(vr_cu(there, ipc_close_mem_handle, first), SUCCESS);
    assert_cu(vr_cu(there, ipc_close_mem_handle, first), INVALID_VALUE);
    assert_cu(vr_cu(there, ipc_open_mem_handle, &first, handle, 1), INVALID_VALUE); // the memory is freed
    assert_int_equal(vram_sim_live_objects(here), 0);
    assert_int_equal(vram_sim_live_objects(there), 0);
    vram_driver_destroy(there);
    vram_driver_destroy(here);
    (void)state;
}

// An import opened in a context ends with the context; an owner that ends leaves the imports of others.
static void ends_in_any_order(void **state) {
    struct vram_driver *here = open_sim(&backed), *there = open_sim(&backed);
    struct vr_cu_ipc_handle handle;
    uint64_t ours, theirs, context;
    assert_cu(vr_cu(here, mem_alloc, &ours, PAGE), SUCCESS);
    *words(ours) = 77;
    assert_cu(vr_cu(here, ipc_get_mem_handle, &handle, ours), SUCCESS);
    assert_cu(vr_cu(there, ipc_open_mem_handle, &theirs, handle, 1), SUCCESS);
    vram_driver_destroy(here);
    assert_int_equal(*words(theirs), 77);
    assert_int_equal(vram_sim_live_objects(there), 1);
    assert_cu(vr_cu(there, primary_ctx_release, 0), SUCCESS);
    assert_int_equal(vram_sim_live_objects(there), 0);
    assert_cu(vr_cu(there, primary_ctx_retain, &context, 0), SUCCESS);
    assert_cu(vr_cu(there, ctx_set_current, context), SUCCESS);
    assert_cu(vr_cu(there, ipc_open_mem_handle, &theirs, handle, 1), INVALID_VALUE);
    vram_driver_destroy(there);
    (void)state;
}

static void events_have_handles_too(void **state) {
    struct vram_driver *here = open_sim(&backed), *there = open_sim(&backed);
    struct vr_cu_ipc_handle handle;
    uint64_t plain, shared, opened = 0;
    assert_cu(vr_cu(here, event_create, &plain, VR_CU_EVENT_DISABLE_TIMING), SUCCESS);
    assert_cu(vr_cu(here, event_create, &shared, VR_CU_EVENT_DISABLE_TIMING | VR_CU_EVENT_INTERPROCESS), SUCCESS);
    assert_cu(vr_cu(here, ipc_get_event_handle, &handle, plain), INVALID_HANDLE);
    assert_cu(vr_cu(here, ipc_get_event_handle, &handle, shared), SUCCESS);
    assert_cu(vr_cu(here, ipc_open_event_handle, &opened, handle), INVALID_CONTEXT);
    assert_cu(vr_cu(there, ipc_open_event_handle, &opened, handle), SUCCESS);
    assert_cu(vr_cu(there, stream_wait_event, 0, opened, 0), SUCCESS);
    assert_cu(vr_cu(there, event_synchronize, opened), SUCCESS);
    uint64_t none;
    assert_cu(vr_cu(there, ipc_open_mem_handle, &none, handle, 1), INVALID_VALUE); // an event is not memory
    assert_cu(vr_cu(here, event_destroy, shared), SUCCESS);
    assert_cu(vr_cu(there, ipc_open_event_handle, &none, handle), INVALID_VALUE);
    vram_driver_destroy(there);
    vram_driver_destroy(here);
    (void)state;
}

static void without_bytes_there_is_nothing_to_share(void **state) {
    struct vram_driver *driver = open_sim(NULL);
    struct vr_cu_ipc_handle handle = {.reserved = ""};
    uint64_t address;
    int supported = 7;
    assert_cu(vr_cu(driver, device_get_attribute, &supported, VR_CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED, 0),
              SUCCESS);
    assert_int_equal(supported, 0);
    assert_cu(vr_cu(driver, mem_alloc, &address, PAGE), SUCCESS);
    assert_cu(vr_cu(driver, ipc_get_mem_handle, &handle, address), NOT_SUPPORTED);
    assert_cu(vr_cu(driver, mem_import_from_shareable_handle, &address, NULL, 1), NOT_SUPPORTED);
    vram_driver_destroy(driver);
    (void)state;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(peers_are_enabled_and_disabled),
        cmocka_unit_test(a_machine_without_peers_refuses),
        cmocka_unit_test(a_set_needs_a_peer),
        cmocka_unit_test(access_to_pages_is_per_device),
        cmocka_unit_test(a_descriptor_is_the_same_memory),
        cmocka_unit_test(the_last_user_gives_the_bytes_back),
        cmocka_unit_test(handles_are_retained),
        cmocka_unit_test(a_handle_opens_the_allocation),
        cmocka_unit_test(a_handle_that_names_a_thread_is_damaged),
        cmocka_unit_test(ends_in_any_order),
        cmocka_unit_test(events_have_handles_too),
        cmocka_unit_test(without_bytes_there_is_nothing_to_share),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
