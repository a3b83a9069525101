// Tests nodes of every kind: added, queried and set; executable graphs that change.
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "code_fixture.h"
#include "sim/sim.h"
#include "sim_fixture.h"
#include "vram/sim.h"

struct fixture {
    struct vram_driver *driver;
    struct vr_sim *sim;
    uint64_t graph, stream, context, memory, function;
};

static struct fixture open_fixture(void) {
    const struct vram_sim_options options = {.backed = true, .kernel_ns = 10000, .profile = VRAM_SIM_FREE};
    struct fixture f = {.driver = open_sim(&options)};
    uint64_t module;
    f.sim = vr_sim_of(f.driver);
    assert_cu(vr_cu(f.driver, graph_create, &f.graph, 0), SUCCESS);
    assert_cu(vr_cu(f.driver, stream_create, &f.stream, 1), SUCCESS);
    assert_cu(vr_cu(f.driver, ctx_get_current, &f.context), SUCCESS);
    assert_cu(vr_cu(f.driver, mem_alloc, &f.memory, 4096), SUCCESS);
    assert_cu(vr_cu(f.driver, memset_d8, f.memory, 0, 4096), SUCCESS);
    assert_cu(vr_sim_call_module_load_data(f.sim, &module, some_ptx), SUCCESS);
    assert_cu(vr_sim_call_module_get_function(f.sim, &f.function, module, "add_one"), SUCCESS);
    return f;
}

static uint64_t run_for(struct fixture *f, uint64_t exec) {
    const uint64_t before = vram_sim_clock_ns(f->driver);
    assert_cu(vr_cu(f->driver, graph_launch, exec, f->stream), SUCCESS);
    assert_cu(vr_cu(f->driver, stream_synchronize, f->stream), SUCCESS);
    return vram_sim_clock_ns(f->driver) - before;
}

static void kernel_nodes_keep_parameters(void **state) {
    (void)state;
    struct fixture f = open_fixture();
    uint64_t pointer = 7, node, exec;
    uint32_t number = 3;
    char bytes[24] = "abc";
    void *parameters[] = {&pointer, &number, bytes};
    struct vr_cu_kernel_node kernel = {f.function, {4, 1, 1}, {64, 1, 1}, 0, parameters, NULL, 0, 0}, told;
    memset(&told, 0xee, sizeof told);
    assert_cu(vr_sim_call_graph_add_kernel_node(f.sim, &node, f.graph, NULL, 0, &kernel), SUCCESS);
    pointer = 9;
    assert_cu(vr_sim_call_graph_kernel_node_get_params(f.sim, node, &told), SUCCESS);
    assert_int_equal(*(uint64_t *)told.parameters[0], 7);
    assert_int_equal(told.grid[0], 4);
    assert_int_equal(told.context, 0xeeeeeeeeeeeeeeeeu); // beyond the first version's end
    kernel.grid[0] = 9;
    assert_cu(vr_sim_call_graph_kernel_node_set_params_v2(f.sim, node, &kernel), SUCCESS);
    assert_cu(vr_sim_call_graph_kernel_node_get_params_v2(f.sim, node, &told), SUCCESS);
    assert_int_equal(*(uint64_t *)told.parameters[0], 9);
    assert_int_equal(told.grid[0], 9);
    assert_cu(vr_sim_call_graph_kernel_node_set_params(f.sim, node, NULL), INVALID_VALUE);
    kernel.block[0] = 2000;
    assert_cu(vr_sim_call_graph_kernel_node_set_params_v2(f.sim, node, &kernel), INVALID_VALUE);
    unsigned char attribute[64] = {0xfb, 0xff, 0xff, 0xff}, value[64];
    assert_cu(vr_sim_call_graph_kernel_node_set_attribute(f.sim, node, VR_CU_LAUNCH_ATTRIBUTE_PRIORITY, attribute), SUCCESS);
    assert_cu(vr_sim_call_graph_kernel_node_get_attribute(f.sim, node, VR_CU_LAUNCH_ATTRIBUTE_PRIORITY, value), SUCCESS);
    assert_memory_equal(attribute, value, 64);
    assert_cu(vr_sim_call_graph_kernel_node_get_attribute(f.sim, node, 0, value), INVALID_VALUE);
    assert_cu(vr_sim_call_graph_kernel_node_get_attribute(f.sim, node, VR_CU_LAUNCH_ATTRIBUTE_MOST, value), INVALID_VALUE);
    assert_cu(vr_sim_call_graph_kernel_node_get_attribute(f.sim, node, 1, value), SUCCESS);
    assert_cu(vr_cu(f.driver, graph_instantiate, &exec, f.graph, 0), SUCCESS);
    assert_int_equal(run_for(&f, exec), 10000);
    assert_cu(vr_sim_call_graph_node_set_enabled(f.sim, exec, node, 0), SUCCESS);
    assert_int_equal(run_for(&f, exec), 0);
    vram_driver_destroy(f.driver);
}

// A memset and a copy through the generic call; the executable graph changes, the graph does not.
static void generic_nodes(void **state) {
    (void)state;
    struct fixture f = open_fixture();
    uint64_t set, copy, exec;
    uint32_t out = 0;
    struct vr_cu_node_params params = {.type = VR_CU_GRAPH_NODE_TYPE_MEMSET,
                                       .of.memset = {.set = {f.memory, 0, 5, 4, 1, 1}, .context = f.context}};
    assert_cu(vr_sim_call_graph_add_node(f.sim, &set, f.graph, NULL, 0, &params), SUCCESS);
    struct vr_cu_node_params other = {.type = VR_CU_GRAPH_NODE_TYPE_MEMCPY, .of.memcpy.context = f.context}, told;
    other.of.memcpy.copy = (struct vr_cu_memcpy3d){.from = {.memory_type = VR_CU_MEMORY_TYPE_DEVICE, .device = f.memory},
                                                   .to = {.memory_type = VR_CU_MEMORY_TYPE_HOST, .host = (uint64_t)(uintptr_t)&out},
                                                   .width_bytes = 4,
                                                   .rows = 1,
                                                   .planes = 1};
    assert_cu(vr_sim_call_graph_add_node_v2(f.sim, &copy, f.graph, &set, NULL, 1, &other), SUCCESS);
    assert_cu(vr_sim_call_graph_node_get_params(f.sim, copy, &told), SUCCESS);
    assert_int_equal(told.of.memcpy.copy.to.host, (uint64_t)(uintptr_t)&out);
    assert_cu(vr_cu(f.driver, graph_instantiate, &exec, f.graph, 0), SUCCESS);
    (void)run_for(&f, exec);
    assert_int_equal(out, 5);
    params.of.memset.set.value = 6;
    assert_cu(vr_sim_call_graph_exec_node_set_params(f.sim, exec, set, &params), SUCCESS);
    assert_cu(vr_sim_call_graph_exec_node_set_params(f.sim, exec, copy, &params), INVALID_VALUE); // another kind
    (void)run_for(&f, exec);
    assert_int_equal(out, 6);
    struct vr_cu_memset_node still;
    assert_cu(vr_sim_call_graph_memset_node_get_params(f.sim, set, &still), SUCCESS);
    assert_int_equal(still.value, 5);
    params.type = 99;
    assert_cu(vr_sim_call_graph_add_node(f.sim, &set, f.graph, NULL, 0, &params), NOT_SUPPORTED);
    assert_true(vr_sim_check(f.sim));
    vram_driver_destroy(f.driver);
}

static uint64_t graph_of_sets(struct fixture *f, unsigned count, uint32_t value) {
    uint64_t graph, last = 0;
    assert_cu(vr_cu(f->driver, graph_create, &graph, 0), SUCCESS);
    for (unsigned i = 0; i < count; i++) {
        const struct vr_cu_memset_node set = {f->memory + 4 * i, 0, value, 4, 1, 1};
        assert_cu(vr_cu(f->driver, graph_add_memset_node, &last, graph, &last, i > 0, &set, f->context), SUCCESS);
    }
    return graph;
}

static void updates_need_the_same_shape(void **state) {
    (void)state;
    struct fixture f = open_fixture();
    uint64_t exec, node;
    const uint64_t one = graph_of_sets(&f, 3, 1), two = graph_of_sets(&f, 3, 2), longer = graph_of_sets(&f, 4, 3);
    struct vr_cu_update_info info;
    int outcome;
    assert_cu(vr_cu(f.driver, graph_instantiate, &exec, one, 0), SUCCESS);
    assert_cu(vr_sim_call_graph_exec_update_v2(f.sim, exec, two, &info), SUCCESS);
    assert_int_equal(info.result, 0);
    (void)run_for(&f, exec);
    assert_int_equal(*(volatile uint32_t *)(uintptr_t)(f.memory + 8), 2);
    assert_cu(vr_sim_call_graph_exec_update_v2(f.sim, exec, longer, &info), GRAPH_EXEC_UPDATE_FAILURE);
    assert_int_equal(info.result, 2);
    uint64_t other, nodes[3];
    assert_cu(vr_cu(f.driver, graph_create, &other, 0), SUCCESS);
    for (int i = 0; i < 3; i++)
        assert_cu(vr_cu(f.driver, graph_add_empty_node, &nodes[i], other, i > 0 ? &nodes[i - 1] : NULL, i > 0), SUCCESS);
    assert_cu(vr_sim_call_graph_exec_update(f.sim, exec, other, &node, &outcome), GRAPH_EXEC_UPDATE_FAILURE);
    assert_int_equal(outcome, 3);
    assert_int_equal(node, nodes[0]);
    (void)run_for(&f, exec);
    assert_int_equal(*(volatile uint32_t *)(uintptr_t)(f.memory + 8), 2);
    assert_true(vr_sim_check(f.sim));
    vram_driver_destroy(f.driver);
}

// A memset writes whole elements of 1, 2 or 4 bytes, at their own alignment.
static void elements_of_sets(void **state) {
    (void)state;
    struct fixture f = open_fixture();
    for (uint32_t element = 0; element <= 8; element++) {
        for (uint64_t at = 0; at < 4; at++) {
            const struct vr_cu_node_params params = {.type = VR_CU_GRAPH_NODE_TYPE_MEMSET,
                                                     .of.memset = {.set = {f.memory + at, 0, 5, element, 1, 1}, .context = f.context}};
            const bool good = (element == 1 || element == 2 || element == 4) && at % element == 0;
            struct vr_cu_node_params given = params;
            uint64_t node;
            const vr_cu_result result = vr_sim_call_graph_add_node(f.sim, &node, f.graph, NULL, 0, &given);
            if ((result == VR_CU_SUCCESS) != good) fail_msg("%u bytes at %u: %s", element, (unsigned)at, vr_cu_result_name(result));
        }
    }
    vram_driver_destroy(f.driver);
}

static void batches_of_writes_are_nodes(void **state) {
    (void)state;
    struct fixture f = open_fixture();
    struct vr_cu_mem_op operation = {.operation = VR_CU_STREAM_MEM_OP_WRITE_VALUE_32, .address = f.memory, .value = 77};
    struct vr_cu_batch_node batch = {.context = f.context, .count = 1, .ops = &operation};
    uint64_t node, exec;
    assert_cu(vr_sim_call_graph_add_batch_mem_op_node(f.sim, &node, f.graph, NULL, 0, &batch), SUCCESS);
    operation.address = 64;
    assert_cu(vr_sim_call_graph_add_batch_mem_op_node(f.sim, &node, f.graph, NULL, 0, &batch), INVALID_VALUE);
    operation.address = f.memory;
    batch.context = 12345;
    assert_cu(vr_sim_call_graph_add_batch_mem_op_node(f.sim, &node, f.graph, NULL, 0, &batch), INVALID_CONTEXT);
    assert_cu(vr_cu(f.driver, graph_instantiate, &exec, f.graph, 0), SUCCESS);
    (void)run_for(&f, exec);
    assert_int_equal(*(volatile uint32_t *)(uintptr_t)f.memory, 77);
    assert_true(vr_sim_check(f.sim));
    vram_driver_destroy(f.driver);
}

// An if node has one or two bodies, a loop one, a switch many.
static void conditions_have_bodies(void **state) {
    (void)state;
    static const struct {
        int type;
        uint32_t least, most;
    } kinds[] = {{0, 1, 2}, {1, 1, 1}, {2, 1, 256}, {3, 1, 0}};
    static const uint32_t sizes[] = {0, 1, 2, 3, 256, 257};
    struct fixture f = open_fixture();
    for (size_t k = 0; k < VR_COUNT_OF(kinds); k++) {
        for (size_t i = 0; i < VR_COUNT_OF(sizes); i++) {
            uint64_t handle, node;
            assert_cu(vr_sim_call_graph_conditional_handle_create(f.sim, &handle, f.graph, f.context, 0, 1), SUCCESS);
            struct vr_cu_node_params params = {.type = VR_CU_GRAPH_NODE_TYPE_CONDITIONAL,
                                               .of.conditional = {.handle = handle, .type = kinds[k].type, .size = sizes[i]}};
            const bool good = sizes[i] >= kinds[k].least && sizes[i] <= kinds[k].most;
            const vr_cu_result result = vr_sim_call_graph_add_node(f.sim, &node, f.graph, NULL, 0, &params);
            if ((result == VR_CU_SUCCESS) != good) fail_msg("kind %d, %u bodies: %s", kinds[k].type, sizes[i], vr_cu_result_name(result));
        }
    }
    vram_driver_destroy(f.driver);
}

// Captures fill bodies; the default value decides whether they run.
static void conditions_run_by_their_default(void **state) {
    (void)state;
    for (unsigned value = 0; value < 2; value++) {
        struct fixture f = open_fixture();
        uint64_t handle, node, exec, ended, clone;
        assert_cu(vr_sim_call_graph_conditional_handle_create(f.sim, &handle, f.graph, f.context, value, 1), SUCCESS);
        struct vr_cu_node_params params = {.type = VR_CU_GRAPH_NODE_TYPE_CONDITIONAL, .of.conditional = {.handle = handle, .size = 1}};
        assert_cu(vr_sim_call_graph_add_node(f.sim, &node, f.graph, NULL, 0, &params), SUCCESS);
        const uint64_t body = params.of.conditional.bodies[0];
        assert_cu(vr_sim_call_stream_begin_capture_to_graph(f.sim, f.stream, body, NULL, NULL, 0, 0), SUCCESS);
        assert_cu(vr_cu(f.driver, memset_d8_async, f.memory, 7, 16, f.stream), SUCCESS);
        assert_cu(vr_cu(f.driver, stream_end_capture, f.stream, &ended), SUCCESS);
        assert_int_equal(ended, body);
        assert_cu(vr_cu(f.driver, graph_destroy, body), INVALID_VALUE); // it belongs to the node
        assert_cu(vr_cu(f.driver, graph_clone, &clone, f.graph), SUCCESS);
        assert_cu(vr_cu(f.driver, graph_destroy, f.graph), SUCCESS);
        assert_cu(vr_cu(f.driver, graph_instantiate, &exec, clone, 0), SUCCESS);
        assert_true(vr_sim_check(f.sim));
        (void)run_for(&f, exec);
        assert_int_equal(*(volatile unsigned char *)(uintptr_t)f.memory, value * 7);
        params.of.conditional.handle = 1;
        assert_cu(vr_sim_call_graph_add_node(f.sim, &node, clone, NULL, 0, &params), INVALID_VALUE);
        vram_driver_destroy(f.driver);
    }
}

static void memory_nodes_take_memory(void **state) {
    (void)state;
    struct fixture f = open_fixture();
    uint64_t alloc, freed, exec, address, used;
    struct vr_cu_alloc_node params = {.pool = {.type = 1, .location = {1, 0}}, .size_bytes = 1 << 20}, told;
    assert_cu(vr_sim_call_graph_add_mem_alloc_node(f.sim, &alloc, f.graph, NULL, 0, &params), SUCCESS);
    assert_cu(vr_sim_call_graph_mem_alloc_node_get_params(f.sim, alloc, &told), SUCCESS);
    assert_int_equal(told.address, params.address);
    assert_cu(vr_sim_call_graph_add_mem_free_node(f.sim, &freed, f.graph, &alloc, 1, params.address + 1), INVALID_VALUE);
    assert_cu(vr_sim_call_graph_add_mem_free_node(f.sim, &freed, f.graph, &alloc, 1, params.address), SUCCESS);
    assert_cu(vr_sim_call_graph_add_mem_free_node(f.sim, &freed, f.graph, &alloc, 1, params.address), INVALID_VALUE);
    assert_cu(vr_sim_call_graph_mem_free_node_get_params(f.sim, freed, &address), SUCCESS);
    assert_int_equal(address, params.address);
    assert_cu(vr_cu(f.driver, graph_instantiate, &exec, f.graph, 0), SUCCESS);
    (void)run_for(&f, exec);
    assert_cu(vr_sim_call_device_get_graph_mem_attribute(f.sim, 0, 0, &used), SUCCESS);
    assert_int_equal(used, 0);
    assert_true(vr_sim_check(f.sim));
    vram_driver_destroy(f.driver);
}

static void graphs_are_printed(void **state) {
    (void)state;
    struct fixture f = open_fixture();
    uint64_t node, child, inner;
    struct vr_cu_kernel_node kernel = {f.function, {4, 1, 1}, {64, 1, 1}, 0, NULL, NULL, 0, 0};
    assert_cu(vr_sim_call_graph_add_kernel_node(f.sim, &node, f.graph, NULL, 0, &kernel), SUCCESS);
    const uint64_t sets = graph_of_sets(&f, 2, 1);
    assert_cu(vr_cu(f.driver, graph_add_child_graph_node, &child, f.graph, &node, 1, sets), SUCCESS);
    assert_cu(vr_sim_call_graph_child_graph_node_get_graph(f.sim, child, &inner), SUCCESS);
    uint64_t count = 0;
    assert_cu(vr_cu(f.driver, graph_get_nodes, inner, NULL, &count), SUCCESS);
    assert_int_equal(count, 2);
    char path[] = "/tmp/sim_nodes_XXXXXX", text[4096];
    const int file = mkstemp(path);
    assert_true(file >= 0);
    assert_cu(vr_sim_call_graph_debug_dot_print(f.sim, f.graph, path, 0), SUCCESS);
    FILE *stream = fopen(path, "r");
    assert_non_null(stream);
    text[fread(text, 1, sizeof text - 1, stream)] = '\0';
    (void)fclose(stream);
    (void)close(file);
    (void)remove(path);
    assert_non_null(strstr(text, "digraph dot {"));
    assert_non_null(strstr(text, "add_one"));
    assert_non_null(strstr(text, "MEMSET"));
    assert_non_null(strstr(text, "->"));
    assert_cu(vr_sim_call_graph_debug_dot_print(f.sim, f.graph, "/nonexistent/x", 0), OPERATING_SYSTEM);
    vram_driver_destroy(f.driver);
}

// A nested graph takes the parameters of another of the same shape, and none of one that differs.
static void a_graph_inside_takes_other_parameters(void **state) {
    (void)state;
    struct fixture f = open_fixture();
    uint64_t node, exec, graphs[3], sets[4], first;
    for (uint32_t i = 0; i < 3; i++) {
        const struct vr_cu_memset_node set = {.address = f.memory, .value = 10 + i, .element_bytes = 1, .width_elements = 8, .rows = 1};
        assert_cu(vr_cu(f.driver, graph_create, &graphs[i], 0), SUCCESS);
        assert_cu(vr_cu(f.driver, graph_add_memset_node, &sets[i], graphs[i], NULL, 0, &set, f.context), SUCCESS);
        if (i == 2) assert_cu(vr_cu(f.driver, graph_add_empty_node, &sets[3], graphs[i], &sets[i], 1), SUCCESS);
    }
    assert_cu(vr_cu(f.driver, graph_add_empty_node, &first, f.graph, NULL, 0), SUCCESS);
    assert_cu(vr_cu(f.driver, graph_add_child_graph_node, &node, f.graph, &first, 1, graphs[0]), SUCCESS);
    assert_cu(vr_cu(f.driver, graph_instantiate, &exec, f.graph, 0), SUCCESS);
    unsigned char told = 0;
    (void)run_for(&f, exec);
    assert_cu(vr_cu(f.driver, memcpy_dtoh, &told, f.memory, 1), SUCCESS);
    assert_int_equal(told, 10);
    assert_cu(vr_sim_call_graph_exec_child_graph_node_set_params(f.sim, exec, node, graphs[1]), SUCCESS);
    assert_cu(vr_sim_call_graph_exec_child_graph_node_set_params(f.sim, exec, node, graphs[2]), INVALID_VALUE);
    assert_cu(vr_sim_call_graph_exec_child_graph_node_set_params(f.sim, exec, first, graphs[1]), INVALID_VALUE);
    assert_cu(vr_sim_call_graph_exec_child_graph_node_set_params(f.sim, exec, node, 0), INVALID_VALUE);
    assert_cu(vr_sim_call_graph_exec_child_graph_node_set_params(f.sim, 0, node, graphs[1]), INVALID_VALUE);
    assert_cu(vr_cu(f.driver, graph_destroy, graphs[1]), SUCCESS);
    (void)run_for(&f, exec);
    assert_cu(vr_cu(f.driver, memcpy_dtoh, &told, f.memory, 1), SUCCESS);
    assert_int_equal(told, 11);
    vram_driver_destroy(f.driver);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kernel_nodes_keep_parameters),
        cmocka_unit_test(a_graph_inside_takes_other_parameters),
        cmocka_unit_test(generic_nodes),
        cmocka_unit_test(updates_need_the_same_shape),
        cmocka_unit_test(elements_of_sets),
        cmocka_unit_test(batches_of_writes_are_nodes),
        cmocka_unit_test(conditions_have_bodies),
        cmocka_unit_test(conditions_run_by_their_default),
        cmocka_unit_test(memory_nodes_take_memory),
        cmocka_unit_test(graphs_are_printed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
