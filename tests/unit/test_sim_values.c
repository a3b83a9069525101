// Tests values in memory that streams write and wait for, user objects, limits and attributes, on the simulated driver.
#include "sim/sim.h"
#include "sim_fixture.h"
#include "vram/sim.h"

static struct vram_driver *open_backed(uint64_t *memory, uint64_t size_bytes) {
    const struct vram_sim_options options = {.backed = true, .device_count = 2};
    struct vram_driver *driver = open_sim(&options);
    assert_cu(vr_cu(driver, mem_alloc, memory, size_bytes), SUCCESS);
    assert_cu(vr_cu(driver, memset_d8, *memory, 0, size_bytes), SUCCESS);
    return driver;
}

enum { GEQ = 0, EQ = 1, AND = 2 };

// A stream waits for a value that the host or another stream writes.
static void streams_wait_for_values(void **state) {
    (void)state;
    uint64_t memory, streams[2], event;
    struct vram_driver *driver = open_backed(&memory, 4096);
    struct vr_sim *sim = vr_sim_of(driver);
    for (int i = 0; i < 2; i++) assert_cu(vr_cu(driver, stream_create, &streams[i], 1), SUCCESS);
    assert_cu(vr_cu(driver, event_create, &event, 0), SUCCESS);
    assert_cu(vr_sim_call_stream_wait_value32(sim, streams[0], memory, 5, GEQ), SUCCESS);
    assert_cu(vr_cu(driver, event_record, event, streams[0]), SUCCESS);
    assert_cu(vr_cu(driver, event_query, event), NOT_READY);
    assert_cu(vr_cu(driver, stream_query, streams[0]), NOT_READY);
    assert_cu(vr_cu(driver, stream_query, streams[1]), SUCCESS);
    assert_cu(vr_cu(driver, stream_wait_event, streams[1], event, 0), SUCCESS);
    assert_cu(vr_cu(driver, stream_query, streams[1]), NOT_READY);
    assert_cu(vr_sim_call_stream_write_value32(sim, 0, memory, 4, 0), SUCCESS);
    assert_cu(vr_cu(driver, stream_query, streams[0]), NOT_READY);
    assert_cu(vr_sim_call_stream_write_value32(sim, 0, memory, 6, 0), SUCCESS);
    assert_cu(vr_cu(driver, stream_query, streams[0]), SUCCESS);
    assert_cu(vr_cu(driver, stream_query, streams[1]), SUCCESS);
    assert_cu(vr_cu(driver, event_synchronize, event), SUCCESS);
    assert_cu(vr_sim_call_stream_wait_value64(sim, streams[0], memory + 8, UINT64_C(1) << 40, AND), SUCCESS);
    assert_cu(vr_cu(driver, stream_query, streams[0]), NOT_READY);
    *(volatile uint64_t *)(uintptr_t)(memory + 8) = UINT64_C(3) << 40;
    assert_cu(vr_cu(driver, stream_synchronize, streams[0]), SUCCESS);
    assert_cu(vr_sim_call_stream_wait_value32(sim, streams[0], memory + 2, 5, EQ), INVALID_VALUE);
    assert_cu(vr_sim_call_stream_write_value64(sim, streams[0], memory + 16, UINT64_C(0x0102030405060708), 0), SUCCESS);
    assert_memory_equal((void *)(uintptr_t)(memory + 16), "\10\7\6\5\4\3\2\1", 8);
    vram_driver_destroy(driver);
}

// In a capture they form one node, which writes at its launch.
static void captured_writes_are_a_node(void **state) {
    (void)state;
    uint64_t memory, stream, graph, exec, node, count = 1;
    struct vram_driver *driver = open_backed(&memory, 4096);
    struct vr_sim *sim = vr_sim_of(driver);
    int type;
    assert_cu(vr_cu(driver, stream_create, &stream, 1), SUCCESS);
    assert_cu(vr_cu(driver, stream_begin_capture, stream, 0), SUCCESS);
    assert_cu(vr_sim_call_stream_write_value32(sim, stream, memory, 9, 0), SUCCESS);
    assert_cu(vr_cu(driver, stream_end_capture, stream, &graph), SUCCESS);
    assert_cu(vr_cu(driver, graph_get_nodes, graph, &node, &count), SUCCESS);
    assert_cu(vr_cu(driver, graph_node_get_type, node, &type), SUCCESS);
    assert_int_equal(type, VR_CU_GRAPH_NODE_TYPE_BATCH_MEM_OP);
    assert_cu(vr_cu(driver, graph_instantiate, &exec, graph, 0), SUCCESS);
    assert_int_equal(*(volatile int *)(uintptr_t)memory, 0);
    assert_cu(vr_cu(driver, graph_launch, exec, stream), SUCCESS);
    assert_int_equal(*(volatile int *)(uintptr_t)memory, 9);
    vram_driver_destroy(driver);
}

static void count_one(void *number) { ++*(int *)number; }

static void user_objects_live_with_graphs(void **state) {
    (void)state;
    struct vram_driver *driver = open_sim(NULL);
    struct vr_sim *sim = vr_sim_of(driver);
    uint64_t object, graph, clone, exec;
    int ended = 0;
    assert_cu(vr_sim_call_user_object_create(sim, &object, &ended, count_one, 2, 0), INVALID_VALUE);
    assert_cu(vr_sim_call_user_object_create(sim, &object, &ended, count_one, 2, 1), SUCCESS);
    assert_cu(vr_cu(driver, graph_create, &graph, 0), SUCCESS);
    assert_cu(vr_sim_call_graph_retain_user_object(sim, graph, object, 1, 1), SUCCESS); // moved
    assert_cu(vr_sim_call_user_object_release(sim, object, 1), SUCCESS);
    assert_cu(vr_cu(driver, graph_clone, &clone, graph), SUCCESS);
    assert_cu(vr_cu(driver, graph_instantiate, &exec, graph, 0), SUCCESS);
    assert_cu(vr_cu(driver, graph_destroy, graph), SUCCESS);
    assert_cu(vr_sim_call_graph_release_user_object(sim, clone, object, 2), INVALID_VALUE);
    assert_cu(vr_sim_call_graph_release_user_object(sim, clone, object, 1), SUCCESS);
    assert_int_equal(ended, 0);
    assert_cu(vr_cu(driver, graph_exec_destroy, exec), SUCCESS);
    assert_int_equal(ended, 1);
    assert_cu(vr_sim_call_user_object_retain(sim, object, 1), INVALID_VALUE);
    vram_driver_destroy(driver);
}

static void limits_and_attributes_are_kept(void **state) {
    (void)state;
    struct vram_driver *driver = open_sim(NULL);
    struct vr_sim *sim = vr_sim_of(driver);
    uint64_t value, stream;
    unsigned flags;
    unsigned char attribute[64] = {5}, told[64] = {0};
    assert_cu(vr_sim_call_ctx_get_limit(sim, &value, 0), SUCCESS);
    assert_int_equal(value, 1024);
    assert_cu(vr_sim_call_ctx_set_limit(sim, 0, 4096), SUCCESS);
    assert_cu(vr_sim_call_ctx_get_limit(sim, &value, 0), SUCCESS);
    assert_int_equal(value, 4096);
    assert_cu(vr_sim_call_ctx_get_limit(sim, &value, 99), UNSUPPORTED_LIMIT);
    assert_cu(vr_cu(driver, stream_create, &stream, 1), SUCCESS);
    assert_cu(vr_sim_call_stream_get_flags(sim, stream, &flags), SUCCESS);
    assert_int_equal(flags, 1);
    assert_cu(vr_sim_call_stream_set_attribute(sim, stream, 1, attribute), SUCCESS);
    assert_cu(vr_sim_call_stream_get_attribute(sim, stream, 1, told), SUCCESS);
    assert_int_equal(told[0], 5);
    assert_cu(vr_sim_call_stream_get_attribute(sim, stream, 2, told), INVALID_VALUE);
    vram_driver_destroy(driver);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(streams_wait_for_values),
        cmocka_unit_test(captured_writes_are_a_node),
        cmocka_unit_test(user_objects_live_with_graphs),
        cmocka_unit_test(limits_and_attributes_are_kept),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
