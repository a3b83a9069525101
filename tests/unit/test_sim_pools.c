// Tests the simulated driver's memory pools, in stream order on the virtual clock, and memory of graphs.
#include "unit/sim_fixture.h"
#include "vram/sim.h"

enum { APART = VR_CU_STREAM_NON_BLOCKING, RELAXED = VR_CU_STREAM_CAPTURE_MODE_RELAXED };

#define CHUNK (32 * VR_MIB)

static const struct vram_sim_options no_costs = {.profile = VRAM_SIM_FREE, .memory_bytes = 256 * VR_MIB, .device_count = 2};
// At an address outside the sanitizers' reserved ranges.
static const struct vram_sim_options with_bytes = {.profile = VRAM_SIM_FREE, .backed = true, .alloc_base = 0x551000000000};

static uint64_t new_stream(struct vram_driver *driver) {
    uint64_t stream;
    assert_cu(vr_cu(driver, stream_create, &stream, APART), SUCCESS);
    return stream;
}

static uint64_t get(struct vram_driver *driver, uint64_t size_bytes, uint64_t stream) {
    uint64_t address = 0;
    assert_cu(vr_cu(driver, mem_alloc_async, &address, size_bytes, stream), SUCCESS);
    return address;
}

static void put(struct vram_driver *driver, uint64_t address, uint64_t stream) {
    assert_cu(vr_cu(driver, mem_free_async, address, stream), SUCCESS);
}

static uint64_t pool_of(struct vram_driver *driver, int device) {
    uint64_t pool;
    assert_cu(vr_cu(driver, device_get_default_mem_pool, &pool, device), SUCCESS);
    return pool;
}

static uint64_t amount(struct vram_driver *driver, int attribute) {
    uint64_t value = UINT64_MAX;
    assert_cu(vr_cu(driver, mem_pool_get_attribute, pool_of(driver, 0), attribute, &value), SUCCESS);
    return value;
}

static void set_amount(struct vram_driver *driver, int attribute, uint64_t value) {
    assert_cu(vr_cu(driver, mem_pool_set_attribute, pool_of(driver, 0), attribute, &value), SUCCESS);
}

static void set_flags(struct vram_driver *driver, int follow, int opportunistic, int internal) {
    const uint64_t pool = pool_of(driver, 0);
    assert_cu(vr_cu(driver, mem_pool_set_attribute, pool, VR_CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES, &follow), SUCCESS);
    assert_cu(vr_cu(driver, mem_pool_set_attribute, pool, VR_CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC, &opportunistic), SUCCESS);
    assert_cu(vr_cu(driver, mem_pool_set_attribute, pool, VR_CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES, &internal), SUCCESS);
}

// Releases everything the pools hold, and checks that the driver ends with nothing.
static void close_sim(struct vram_driver *driver) {
    assert_cu(vr_cu(driver, ctx_synchronize, 0), SUCCESS);
    assert_cu(vr_cu(driver, mem_pool_trim_to, pool_of(driver, 0), 0), SUCCESS);
    assert_int_equal(vram_sim_memory_used(driver, 0), 0);
    vram_driver_destroy(driver);
}

static void one_stream_has_its_memory_again_at_once(void **state) {
    struct vram_driver *driver = open_sim(&no_costs);
    const uint64_t stream = new_stream(driver);
    set_amount(driver, VR_CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, UINT64_MAX);
    const uint64_t a = get(driver, 1000, stream), b = get(driver, 5 * VR_MIB, stream);
    assert_int_equal(amount(driver, VR_CU_MEMPOOL_ATTR_USED_MEM_CURRENT), 1024 + 5 * VR_MIB);
    assert_int_equal(amount(driver, VR_CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT), CHUNK);
    assert_int_equal(vram_sim_memory_used(driver, 0), CHUNK);
    assert_int_equal(vram_sim_busy(driver, 0, stream, 1000), VRAM_OK);
    put(driver, b, stream);
    assert_int_equal(get(driver, 5 * VR_MIB, stream), b);
    put(driver, a, stream);
    put(driver, b, stream);
    assert_cu(vr_cu(driver, mem_free_async, b, stream), INVALID_VALUE);
    assert_cu(vr_cu(driver, mem_free_async, a + 512, stream), INVALID_VALUE);
    assert_int_equal(get(driver, CHUNK, stream), a); // the pieces have merged
    put(driver, a, stream);
    assert_int_equal(amount(driver, VR_CU_MEMPOOL_ATTR_USED_MEM_CURRENT), 0);
    assert_int_equal(amount(driver, VR_CU_MEMPOOL_ATTR_USED_MEM_HIGH), CHUNK);
    set_amount(driver, VR_CU_MEMPOOL_ATTR_USED_MEM_HIGH, 0);
    assert_int_equal(amount(driver, VR_CU_MEMPOOL_ATTR_USED_MEM_HIGH), 0);
    close_sim(driver);
    (void)state;
}

// Which freed memory of a busy stream another stream gets, by attribute: 0 none, 1 the freed piece.
static void others_wait_as_the_attributes_say(void **state) {
    for (int flags = 0; flags < 8; flags++) {
        for (int ordered = 0; ordered < 3; ordered++) { // unordered, after waiting for an event, after the work is done
            struct vram_driver *driver = open_sim(&no_costs);
            const uint64_t one = new_stream(driver), two = new_stream(driver);
            uint64_t event;
            assert_cu(vr_cu(driver, event_create, &event, 0), SUCCESS);
            set_amount(driver, VR_CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, UINT64_MAX);
            set_flags(driver, flags & 1, flags >> 1 & 1, flags >> 2 & 1);
            const uint64_t a = get(driver, CHUNK, one);
            assert_int_equal(vram_sim_busy(driver, 0, one, 1000), VRAM_OK);
            put(driver, a, one);
            if (ordered == 1) {
                assert_cu(vr_cu(driver, event_record, event, one), SUCCESS);
                assert_cu(vr_cu(driver, stream_wait_event, two, event, 0), SUCCESS);
            }
            if (ordered == 2) assert_int_equal(vram_sim_advance(driver, 2000), VRAM_OK);
            const bool again = (flags & 4) != 0 || (ordered == 1 && (flags & 1) != 0) || (ordered == 2 && (flags & 2) != 0);
            const uint64_t b = get(driver, CHUNK, two);
            assert_int_equal(b == a, again);
            // The second stream's work follows the first's if it got its memory.
            const bool behind = ordered == 1 || (again && ordered == 0);
            assert_int_equal(vr_cu(driver, stream_query, two), behind ? VR_CU_NOT_READY : VR_CU_SUCCESS);
            put(driver, b, two);
            assert_cu(vr_cu(driver, event_destroy, event), SUCCESS);
            close_sim(driver);
        }
    }
    (void)state;
}

static void what_is_above_the_threshold_goes_at_a_synchronization(void **state) {
    struct vram_driver *driver = open_sim(&no_costs);
    const uint64_t stream = new_stream(driver);
    const uint64_t a = get(driver, 10 * VR_MIB, stream), b = get(driver, CHUNK, stream);
    put(driver, b, stream);
    assert_int_equal(vram_sim_memory_used(driver, 0), 2 * CHUNK);
    assert_cu(vr_cu(driver, stream_synchronize, stream), SUCCESS);
    assert_int_equal(vram_sim_memory_used(driver, 0), CHUNK);
    set_amount(driver, VR_CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, CHUNK);
    put(driver, a, stream);
    assert_cu(vr_cu(driver, ctx_synchronize, 0), SUCCESS);
    assert_int_equal(amount(driver, VR_CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT), CHUNK);
    close_sim(driver);
    (void)state;
}

static void memory_ends(void **state) {
    struct vram_driver *driver = open_sim(&no_costs);
    const uint64_t stream = new_stream(driver);
    uint64_t address = 7;
    assert_cu(vr_cu(driver, mem_alloc_async, &address, 257 * VR_MIB, stream), OUT_OF_MEMORY);
    assert_cu(vr_cu(driver, mem_alloc_async, &address, UINT64_MAX, stream), OUT_OF_MEMORY);
    assert_int_equal(address, 7);
    const uint64_t most = get(driver, 250 * VR_MIB, stream); // in steps of 2 MiB if 32 do not fit
    assert_cu(vr_cu(driver, mem_alloc_async, &address, 10 * VR_MIB, stream), OUT_OF_MEMORY);
    put(driver, most, stream);
    const uint64_t first = get(driver, 100 * VR_MIB, stream);
    assert_int_equal(first, most);
    assert_cu(vr_cu(driver, mem_free, first), SUCCESS); // waits, and frees at once
    close_sim(driver);
    (void)state;
}

// A pool that finds no memory takes unused memory from other pools of its device.
static void pools_give_way(void **state) {
    (void)state;
    struct vram_driver *driver = open_sim(&no_costs);
    const uint64_t stream = new_stream(driver);
    const struct vr_cu_pool_props props = {.type = VR_CU_MEM_ALLOCATION_TYPE_PINNED,
                                           .location = {.type = VR_CU_MEM_LOCATION_TYPE_DEVICE, .id = 0}};
    uint64_t pool, address;
    set_amount(driver, VR_CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, UINT64_MAX);
    assert_cu(vr_cu(driver, mem_pool_create, &pool, &props), SUCCESS);
    put(driver, get(driver, 160 * VR_MIB, stream), stream);
    assert_cu(vr_cu(driver, stream_synchronize, stream), SUCCESS);
    assert_int_equal(vram_sim_memory_used(driver, 0), 160 * VR_MIB);
    assert_cu(vr_cu(driver, mem_alloc_from_pool_async, &address, 160 * VR_MIB, pool, stream), SUCCESS);
    assert_int_equal(vram_sim_memory_used(driver, 0), 160 * VR_MIB);
    put(driver, address, stream);
    assert_cu(vr_cu(driver, mem_pool_destroy, pool), SUCCESS);
    close_sim(driver);
}

static void pools_of_their_own(void **state) {
    struct vram_driver *driver = open_sim(&no_costs);
    const uint64_t stream = new_stream(driver), standard = pool_of(driver, 0);
    const struct vr_cu_pool_props props = {
        .type = VR_CU_MEM_ALLOCATION_TYPE_PINNED, .location = {.type = VR_CU_MEM_LOCATION_TYPE_DEVICE, .id = 0}, .most_bytes = 40 * VR_MIB};
    uint64_t pool, current, address, other;
    assert_cu(vr_cu(driver, mem_pool_create, &pool, NULL), INVALID_VALUE);
    assert_cu(vr_cu(driver, mem_pool_create, &pool, &props), SUCCESS);
    assert_cu(vr_cu(driver, mem_pool_destroy, standard), INVALID_VALUE);
    assert_cu(vr_cu(driver, device_set_mem_pool, 1, pool), INVALID_VALUE);
    assert_cu(vr_cu(driver, device_set_mem_pool, 0, pool), SUCCESS);
    assert_cu(vr_cu(driver, device_get_mem_pool, &current, 0), SUCCESS);
    assert_int_equal(current, pool);
    address = get(driver, VR_MIB, stream);
    assert_int_equal(amount(driver, VR_CU_MEMPOOL_ATTR_USED_MEM_CURRENT), 0); // of the default pool
    assert_cu(vr_cu(driver, mem_alloc_from_pool_async, &other, 41 * VR_MIB, pool, stream), OUT_OF_MEMORY);
    assert_cu(vr_cu(driver, mem_alloc_from_pool_async, &other, 41 * VR_MIB, standard, stream), SUCCESS);
    // Access
    const struct vr_cu_location here = {VR_CU_MEM_LOCATION_TYPE_DEVICE, 0}, there = {VR_CU_MEM_LOCATION_TYPE_DEVICE, 1};
    const struct vr_cu_access_desc read = {.location = there, .flags = VR_CU_MEM_ACCESS_FLAGS_PROT_READ};
    const struct vr_cu_access_desc none = {.location = here, .flags = VR_CU_MEM_ACCESS_FLAGS_PROT_NONE};
    int flags = -1;
    assert_cu(vr_cu(driver, mem_pool_get_access, &flags, pool, &there), SUCCESS);
    assert_int_equal(flags, VR_CU_MEM_ACCESS_FLAGS_PROT_NONE);
    assert_cu(vr_cu(driver, mem_pool_set_access, pool, &none, 1), INVALID_VALUE);
    assert_cu(vr_cu(driver, mem_pool_set_access, pool, NULL, 1), INVALID_VALUE);
    assert_cu(vr_cu(driver, mem_pool_set_access, pool, &read, 0), INVALID_VALUE);
    assert_cu(vr_cu(driver, mem_pool_set_access, pool, &read, 1), SUCCESS);
    assert_cu(vr_cu(driver, mem_pool_get_access, &flags, pool, &there), SUCCESS);
    assert_int_equal(flags, VR_CU_MEM_ACCESS_FLAGS_PROT_READ);
    // The pool is destroyed with memory in use: that memory stays valid, and freed memory is released at the next synchronization.
    assert_cu(vr_cu(driver, mem_pool_destroy, pool), SUCCESS);
    assert_cu(vr_cu(driver, device_get_mem_pool, &current, 0), SUCCESS);
    assert_int_equal(current, standard);
    assert_cu(vr_cu(driver, mem_alloc_from_pool_async, &other, 1, pool, stream), INVALID_VALUE);
    put(driver, other, stream);
    put(driver, address, stream);
    close_sim(driver);
    (void)state;
}

static void bytes_are_real(void **state) {
    struct vram_driver *driver = open_sim(&with_bytes);
    const uint64_t stream = new_stream(driver);
    const uint64_t a = get(driver, 100, stream), b = get(driver, 100, stream);
    char out[100];
    assert_cu(vr_cu(driver, memset_d8_async, a, 1, 100, stream), SUCCESS);
    assert_cu(vr_cu(driver, memset_d8_async, b, 2, 100, stream), SUCCESS);
    assert_cu(vr_cu(driver, memset_d8_async, a, 1, 101, stream), INVALID_VALUE);
    assert_cu(vr_cu(driver, memcpy_dtoh, out, a, 100), SUCCESS);
    assert_int_equal(out[99], 1);
    uint64_t base, size;
    assert_cu(vr_cu(driver, mem_get_address_range, &base, &size, b + 50), SUCCESS);
    assert_true(base == b && size == 100);
    put(driver, a, stream);
    assert_cu(vr_cu(driver, memset_d8_async, a, 1, 100, stream), INVALID_VALUE);
    put(driver, b, stream);
    close_sim(driver);
    (void)state;
}

// --- graphs ---------------------------------------------------------------------------------------------------------

static void captured_requests_become_nodes(void **state) {
    struct vram_driver *driver = open_sim(&with_bytes);
    const uint64_t stream = new_stream(driver), out = get(driver, 100, stream);
    uint64_t graph, exec, second, nodes[4], count = 4;
    char bytes[100];
    int type = -1;
    assert_cu(vr_cu(driver, stream_begin_capture, stream, RELAXED), SUCCESS);
    const uint64_t a = get(driver, 3 * VR_MIB, stream);
    assert_cu(vr_cu(driver, memset_d8_async, a, 5, 100, stream), SUCCESS);
    assert_cu(vr_cu(driver, memcpy_async, out, a, 100, stream), SUCCESS);
    assert_cu(vr_cu(driver, mem_free_async, out, stream), INVALID_VALUE); // not part of the graph
    put(driver, a, stream);
    assert_cu(vr_cu(driver, mem_free_async, a, stream), INVALID_VALUE);
    assert_cu(vr_cu(driver, stream_end_capture, stream, &graph), SUCCESS);
    assert_cu(vr_cu(driver, graph_get_nodes, graph, nodes, &count), SUCCESS);
    assert_int_equal(count, 4);
    assert_cu(vr_cu(driver, graph_node_get_type, nodes[0], &type), SUCCESS);
    assert_int_equal(type, VR_CU_GRAPH_NODE_TYPE_MEM_ALLOC);
    assert_cu(vr_cu(driver, graph_node_get_type, nodes[3], &type), SUCCESS);
    assert_int_equal(type, VR_CU_GRAPH_NODE_TYPE_MEM_FREE);
    assert_cu(vr_cu(driver, graph_clone, &second, graph), NOT_SUPPORTED);
    assert_cu(vr_cu(driver, graph_destroy_node, nodes[3]), NOT_SUPPORTED);
    assert_cu(vr_cu(driver, graph_instantiate, &exec, graph, 0), SUCCESS);
    assert_cu(vr_cu(driver, graph_instantiate, &second, graph, 0), NOT_SUPPORTED); // one at a time
    for (int i = 0; i < 3; i++) {
        assert_cu(vr_cu(driver, memset_d8_async, out, 0, 100, stream), SUCCESS);
        assert_cu(vr_cu(driver, graph_launch, exec, stream), SUCCESS);
        assert_cu(vr_cu(driver, memcpy_dtoh, bytes, out, 100), SUCCESS);
        assert_int_equal(bytes[99], 5);
        assert_int_equal(vram_sim_memory_used(driver, 0), CHUNK);
    }
    assert_cu(vr_cu(driver, mem_free_async, a, stream), INVALID_VALUE); // freed by the graph
    assert_cu(vr_cu(driver, graph_destroy, graph), SUCCESS);
    assert_cu(vr_cu(driver, graph_exec_destroy, exec), SUCCESS);
    put(driver, out, stream);
    close_sim(driver);
    (void)state;
}

static void memory_that_a_graph_leaves(void **state) {
    struct vram_driver *driver = open_sim(&no_costs);
    const uint64_t stream = new_stream(driver);
    uint64_t graph, exec;
    assert_cu(vr_cu(driver, stream_begin_capture, stream, RELAXED), SUCCESS);
    const uint64_t a = get(driver, 100 * VR_MIB, stream);
    assert_cu(vr_cu(driver, stream_end_capture, stream, &graph), SUCCESS);
    assert_int_equal(vram_sim_memory_used(driver, 0), 0);
    assert_cu(vr_cu(driver, mem_free_async, a, stream), INVALID_VALUE); // never launched
    assert_cu(vr_cu(driver, graph_instantiate, &exec, graph, 0), SUCCESS);
    assert_cu(vr_cu(driver, graph_launch, exec, stream), SUCCESS);
    assert_int_equal(vram_sim_memory_used(driver, 0), 100 * VR_MIB);
    assert_cu(vr_cu(driver, graph_launch, exec, stream), INVALID_VALUE); // still live
    put(driver, a, stream);
    assert_int_equal(vram_sim_memory_used(driver, 0), 0);
    assert_cu(vr_cu(driver, graph_launch, exec, stream), SUCCESS);
    assert_cu(vr_cu(driver, graph_exec_destroy, exec), SUCCESS);
    assert_cu(vr_cu(driver, graph_instantiate, &exec, graph, VR_CU_GRAPH_INSTANTIATE_AUTO_FREE_ON_LAUNCH), SUCCESS);
    assert_cu(vr_cu(driver, graph_launch, exec, stream), SUCCESS);
    assert_cu(vr_cu(driver, graph_launch, exec, stream), SUCCESS);
    assert_int_equal(vram_sim_memory_used(driver, 0), 100 * VR_MIB);
    assert_cu(vr_cu(driver, graph_exec_destroy, exec), SUCCESS);
    assert_cu(vr_cu(driver, graph_destroy, graph), SUCCESS);
    put(driver, a, stream);                             // the memory outlives its graph
    assert_int_equal(vram_sim_live_objects(driver), 1); // the stream
    close_sim(driver);
    (void)state;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_stream_has_its_memory_again_at_once),
        cmocka_unit_test(others_wait_as_the_attributes_say),
        cmocka_unit_test(what_is_above_the_threshold_goes_at_a_synchronization),
        cmocka_unit_test(memory_ends),
        cmocka_unit_test(pools_give_way),
        cmocka_unit_test(pools_of_their_own),
        cmocka_unit_test(bytes_are_real),
        cmocka_unit_test(captured_requests_become_nodes),
        cmocka_unit_test(memory_that_a_graph_leaves),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
