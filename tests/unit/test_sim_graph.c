// Tests the simulated driver's graphs: nodes and edges, launches on the virtual clock, and captured programs against a naive model.
#include "sim/sim.h"
#include "support/random.h"
#include "unit/sim_fixture.h"
#include "vram/sim.h"

enum { APART = VR_CU_STREAM_NON_BLOCKING, RELAXED = VR_CU_STREAM_CAPTURE_MODE_RELAXED };

static const struct vram_sim_options no_costs = {.profile = VRAM_SIM_FREE};
// At an address outside the sanitizers' reserved ranges.
static const struct vram_sim_options with_bytes = {.profile = VRAM_SIM_FREE, .backed = true, .alloc_base = 0x551000000000};

static uint64_t new_stream(struct vram_driver *driver) {
    uint64_t stream;
    assert_cu(vr_cu(driver, stream_create, &stream, APART), SUCCESS);
    return stream;
}

static uint64_t new_event(struct vram_driver *driver) {
    uint64_t event;
    assert_cu(vr_cu(driver, event_create, &event, 0), SUCCESS);
    return event;
}

static uint64_t new_graph(struct vram_driver *driver) {
    uint64_t graph;
    assert_cu(vr_cu(driver, graph_create, &graph, 0), SUCCESS);
    return graph;
}

static uint64_t empty_after(struct vram_driver *driver, uint64_t graph, const uint64_t *nodes, uint64_t count) {
    uint64_t node;
    assert_cu(vr_cu(driver, graph_add_empty_node, &node, graph, nodes, count), SUCCESS);
    return node;
}

static uint64_t instantiated(struct vram_driver *driver, uint64_t graph) {
    uint64_t exec;
    assert_cu(vr_cu(driver, graph_instantiate, &exec, graph, 0), SUCCESS);
    return exec;
}

static uint64_t begun(struct vram_driver *driver) {
    const uint64_t stream = new_stream(driver);
    assert_cu(vr_cu(driver, stream_begin_capture, stream, RELAXED), SUCCESS);
    return stream;
}

static uint64_t ended(struct vram_driver *driver, uint64_t stream) {
    uint64_t graph;
    assert_cu(vr_cu(driver, stream_end_capture, stream, &graph), SUCCESS);
    return graph;
}

static void kernel(struct vram_driver *driver, uint64_t stream, uint64_t cost_ns) {
    assert_int_equal(vram_sim_launch(driver, 0, stream, NULL, NULL, cost_ns), VRAM_OK);
}

static void order(struct vram_driver *driver, uint64_t from, uint64_t to) {
    const uint64_t event = new_event(driver);
    assert_cu(vr_cu(driver, event_record, event, from), SUCCESS);
    assert_cu(vr_cu(driver, stream_wait_event, to, event, 0), SUCCESS);
    assert_cu(vr_cu(driver, event_destroy, event), SUCCESS);
}

// --- nodes and edges ------------------------------------------------------------------------------------------------

static void graphs_are_made_by_hand(void **state) {
    struct vram_driver *driver = open_sim(&no_costs);
    const uint64_t graph = new_graph(driver), other = new_graph(driver);
    const uint64_t a = empty_after(driver, graph, NULL, 0), b = empty_after(driver, graph, &a, 1);
    const uint64_t c = empty_after(driver, graph, &a, 1), foreign = empty_after(driver, other, NULL, 0);
    uint64_t node, nodes[4] = {0}, count = 4;
    assert_cu(vr_cu(driver, graph_add_empty_node, &node, graph, &foreign, 1), INVALID_VALUE);
    assert_cu(vr_cu(driver, graph_add_empty_node, &node, graph, (const uint64_t[]){a, a}, 2), INVALID_VALUE);
    assert_cu(vr_cu(driver, graph_add_empty_node, &node, graph, NULL, 1), INVALID_VALUE);
    assert_cu(vr_cu(driver, graph_add_empty_node, &node, 12345, NULL, 0), INVALID_VALUE);
    assert_cu(vr_cu(driver, graph_get_root_nodes, graph, nodes, &count), SUCCESS);
    assert_true(count == 1 && nodes[0] == a);
    count = 4;
    assert_cu(vr_cu(driver, graph_node_get_dependent_nodes, a, nodes, &count), SUCCESS);
    assert_true(count == 2 && nodes[0] == b && nodes[1] == c);
    count = 1;
    assert_cu(vr_cu(driver, graph_get_nodes, graph, nodes, &count), SUCCESS);
    assert_true(count == 1 && nodes[0] == a && nodes[1] == c);
    // A call adds all of its edges or none
    const uint64_t from[] = {b, a}, to[] = {c, b};
    assert_cu(vr_cu(driver, graph_add_dependencies, graph, from, to, 2), INVALID_VALUE);
    assert_cu(vr_cu(driver, graph_remove_dependencies, graph, from, to, 2), INVALID_VALUE);
    assert_cu(vr_cu(driver, graph_add_dependencies, graph, &a, &a, 1), INVALID_VALUE);
    assert_cu(vr_cu(driver, graph_add_dependencies, graph, &foreign, &a, 1), INVALID_VALUE);
    count = 0;
    assert_cu(vr_cu(driver, graph_get_edges, graph, NULL, NULL, &count), SUCCESS);
    assert_int_equal(count, 2);
    assert_cu(vr_cu(driver, graph_add_dependencies, graph, from, to, 1), SUCCESS);
    assert_cu(vr_cu(driver, graph_remove_dependencies, graph, from, to, 2), SUCCESS);
    assert_cu(vr_cu(driver, graph_get_edges, graph, NULL, NULL, &count), SUCCESS);
    assert_int_equal(count, 1);
    // Destroying a node removes its edges
    assert_cu(vr_cu(driver, graph_destroy_node, a), SUCCESS);
    assert_cu(vr_cu(driver, graph_destroy_node, a), INVALID_VALUE);
    assert_cu(vr_cu(driver, graph_get_edges, graph, NULL, NULL, &count), SUCCESS);
    assert_int_equal(count, 0);
    assert_cu(vr_cu(driver, graph_destroy_node, c), SUCCESS);
    assert_cu(vr_cu(driver, graph_destroy, graph), SUCCESS);
    assert_cu(vr_cu(driver, graph_node_get_dependencies, b, NULL, &count), INVALID_VALUE);
    assert_cu(vr_cu(driver, graph_destroy, other), SUCCESS);
    assert_int_equal(vram_sim_live_objects(driver), 0);
    vram_driver_destroy(driver);
    (void)state;
}

static void circles_cannot_be_instantiated(void **state) {
    struct vram_driver *driver = open_sim(&no_costs);
    const uint64_t graph = new_graph(driver), outer = new_graph(driver);
    const uint64_t a = empty_after(driver, graph, NULL, 0), b = empty_after(driver, graph, &a, 1);
    uint64_t exec = 7, node;
    assert_cu(vr_cu(driver, graph_instantiate, &exec, graph, VR_CU_GRAPH_INSTANTIATE_UPLOAD), INVALID_VALUE);
    assert_cu(vr_cu(driver, graph_instantiate, &exec, graph, VR_CU_GRAPH_INSTANTIATE_DEVICE_LAUNCH), NOT_SUPPORTED);
    assert_cu(vr_cu(driver, graph_add_dependencies, graph, &b, &a, 1), SUCCESS);
    assert_cu(vr_cu(driver, graph_instantiate, &exec, graph, 0), INVALID_VALUE);
    assert_cu(vr_cu(driver, graph_add_child_graph_node, &node, outer, NULL, 0, graph), SUCCESS);
    assert_cu(vr_cu(driver, graph_instantiate, &exec, outer, 0), INVALID_VALUE);
    assert_int_equal(exec, 7);
    assert_int_equal(vram_sim_live_objects(driver), 3); // two graphs and the nested one
    vram_driver_destroy(driver);
    (void)state;
}

// Graphs nest to a limited depth.
static void graphs_nest(void **state) {
    struct vram_driver *driver = open_sim(&no_costs);
    const uint64_t stream = begun(driver);
    kernel(driver, stream, 100);
    uint64_t graph = ended(driver, stream), node, depth = 1;
    for (;; depth++) {
        const uint64_t outer = new_graph(driver);
        const vr_cu_result result = vr_cu(driver, graph_add_child_graph_node, &node, outer, NULL, 0, graph);
        if (result != VR_CU_SUCCESS) {
            assert_cu(result, INVALID_VALUE);
            assert_cu(vr_cu(driver, graph_destroy, outer), SUCCESS);
            break;
        }
        assert_cu(vr_cu(driver, graph_destroy, graph), SUCCESS);
        graph = outer;
    }
    assert_int_equal(depth, 64);
    const uint64_t exec = instantiated(driver, graph);
    assert_cu(vr_cu(driver, graph_destroy, graph), SUCCESS);
    assert_cu(vr_cu(driver, graph_launch, exec, stream), SUCCESS);
    assert_cu(vr_cu(driver, stream_synchronize, stream), SUCCESS);
    assert_int_equal(vram_sim_clock_ns(driver), 100);
    vram_driver_destroy(driver);
    (void)state;
}

static void clones_stand_alone(void **state) {
    struct vram_driver *driver = open_sim(&no_costs);
    const uint64_t graph = new_graph(driver), inner = new_graph(driver);
    const uint64_t a = empty_after(driver, graph, NULL, 0), b = empty_after(driver, graph, NULL, 0);
    uint64_t child, clone, found, count = 2, from[2], to[2];
    assert_cu(vr_cu(driver, graph_add_child_graph_node, &child, graph, &a, 1, inner), SUCCESS);
    assert_cu(vr_cu(driver, graph_add_dependencies, graph, &child, &b, 1), SUCCESS); // an edge to a node made earlier
    assert_cu(vr_cu(driver, graph_clone, &clone, graph), SUCCESS);
    assert_cu(vr_cu(driver, graph_node_find_in_clone, &found, child, clone), SUCCESS);
    assert_true(found != child);
    int type;
    assert_cu(vr_cu(driver, graph_node_get_type, found, &type), SUCCESS);
    assert_int_equal(type, VR_CU_GRAPH_NODE_TYPE_GRAPH);
    assert_cu(vr_cu(driver, graph_node_find_in_clone, &found, a, graph), INVALID_VALUE);
    assert_cu(vr_cu(driver, graph_destroy, graph), SUCCESS);
    assert_cu(vr_cu(driver, graph_get_edges, clone, from, to, &count), SUCCESS);
    assert_true(count == 2 && to[1] == from[0]); // ordered by the later node: child to b, a to child
    assert_cu(vr_cu(driver, graph_destroy, clone), SUCCESS);
    assert_cu(vr_cu(driver, graph_destroy, inner), SUCCESS);
    assert_int_equal(vram_sim_live_objects(driver), 0);
    vram_driver_destroy(driver);
    (void)state;
}

// --- bytes ----------------------------------------------------------------------------------------------------------

struct vector {
    uint32_t *to;
    const uint32_t *from;
    uint32_t count, factor;
    uint32_t runs;
};

// to = factor * from + to
static void multiply_add(void *argument) {
    struct vector *vector = argument;
    for (uint32_t i = 0; i < vector->count; i++) vector->to[i] += vector->factor * vector->from[i];
    vector->runs++;
}

static void *bytes_at(uint64_t address) { return (void *)(uintptr_t)address; }

static uint64_t allocate(struct vram_driver *driver, uint64_t size_bytes) {
    uint64_t address;
    assert_cu(vr_cu(driver, mem_alloc, &address, size_bytes), SUCCESS);
    return address;
}

// input -> a; b = 0; b += 3 * a; b -> output
static void launches_see_their_inputs(void **state) {
    enum { COUNT = 16 };
    struct vram_driver *driver = open_sim(&with_bytes);
    const uint64_t a = allocate(driver, COUNT * 4), b = allocate(driver, COUNT * 4), before = vram_sim_live_objects(driver);
    uint32_t input[COUNT] = {0}, output[COUNT] = {0};
    struct vector vector = {.to = bytes_at(b), .from = bytes_at(a), .count = COUNT, .factor = 3};
    const uint64_t stream = begun(driver), side = new_stream(driver);
    order(driver, stream, side);
    assert_cu(vr_cu(driver, memcpy_async, a, (uint64_t)(uintptr_t)input, sizeof input, stream), SUCCESS);
    assert_cu(vr_cu(driver, memset_d8_async, b, 0, sizeof output, side), SUCCESS);
    order(driver, side, stream);
    assert_int_equal(vram_sim_launch(driver, 0, stream, multiply_add, &vector, 50), VRAM_OK);
    assert_cu(vr_cu(driver, memcpy_async, (uint64_t)(uintptr_t)output, b, sizeof output, stream), SUCCESS);
    const uint64_t graph = ended(driver, stream), exec = instantiated(driver, graph);
    assert_cu(vr_cu(driver, graph_destroy, graph), SUCCESS);
    assert_int_equal(vector.runs, 0);
    for (uint32_t run = 0; run < 1000; run++) {
        for (uint32_t i = 0; i < COUNT; i++) input[i] = (uint32_t)vr_mix64(run * COUNT + i);
        assert_cu(vr_cu(driver, graph_launch, exec, stream), SUCCESS);
        for (uint32_t i = 0; i < COUNT; i++) assert_int_equal(output[i], 3 * input[i]);
    }
    assert_int_equal(vector.runs, 1000);
    assert_cu(vr_cu(driver, stream_synchronize, stream), SUCCESS);
    assert_int_equal(vram_sim_clock_ns(driver), 50000);
    // Freed memory stops a launch before any of it runs.
    assert_cu(vr_cu(driver, mem_free, a), SUCCESS);
    assert_cu(vr_cu(driver, graph_launch, exec, stream), ILLEGAL_ADDRESS);
    assert_int_equal(vector.runs, 1000);
    assert_cu(vr_cu(driver, graph_exec_destroy, exec), SUCCESS);
    assert_cu(vr_cu(driver, graph_launch, exec, stream), INVALID_VALUE);
    assert_int_equal(vram_sim_live_objects(driver), before - 1 + 2); // without a, with two streams
    vram_driver_destroy(driver);
    (void)state;
}

static void nodes_copy_and_set_in_three_dimensions(void **state) {
    struct vram_driver *driver = open_sim(&with_bytes);
    uint64_t context, node;
    assert_cu(vr_cu(driver, ctx_get_current, &context), SUCCESS);
    const uint64_t graph = new_graph(driver), from = allocate(driver, 4096), to = allocate(driver, 4096);
    // 3 rows of 5 elements of 2 bytes, 16 bytes apart
    const struct vr_cu_memset_node set = {.address = to + 2, .pitch_bytes = 16, .value = 0x1234, .element_bytes = 2, 5, 3};
    // 2 planes of 3 rows of 7 bytes; in `from` 8 bytes apart, 4 rows per plane, starting at (1, 1, 1)
    const struct vr_cu_memcpy3d copy = {
        .from = {.x_bytes = 1, .y = 1, .z = 1, .memory_type = VR_CU_MEMORY_TYPE_DEVICE, .device = from, .pitch_bytes = 8, .rows = 4},
        .to = {.memory_type = VR_CU_MEMORY_TYPE_UNIFIED, .device = to + 1024, .pitch_bytes = 7, .rows = 3},
        .width_bytes = 7,
        .rows = 3,
        .planes = 2};
    struct vr_cu_memcpy3d bad = copy;
    struct vr_cu_memset_node odd = set;
    assert_cu(vr_cu(driver, graph_add_memset_node, &node, graph, NULL, 0, &set, context), SUCCESS);
    assert_cu(vr_cu(driver, graph_add_memcpy_node, &node, graph, NULL, 0, &copy, context), SUCCESS);
    bad.to.memory_type = VR_CU_MEMORY_TYPE_ARRAY;
    assert_cu(vr_cu(driver, graph_add_memcpy_node, &node, graph, NULL, 0, &bad, context), INVALID_HANDLE);
    bad = copy;
    bad.to.pitch_bytes = 6;
    assert_cu(vr_cu(driver, graph_add_memcpy_node, &node, graph, NULL, 0, &bad, context), INVALID_VALUE);
    bad = copy;
    bad.from.z = UINT64_MAX / 2;
    assert_cu(vr_cu(driver, graph_add_memcpy_node, &node, graph, NULL, 0, &bad, context), INVALID_VALUE);
    bad = copy;
    bad.planes = 200; // past the end of the allocation
    assert_cu(vr_cu(driver, graph_add_memcpy_node, &node, graph, NULL, 0, &bad, context), INVALID_VALUE);
    assert_cu(vr_cu(driver, graph_add_memcpy_node, &node, graph, NULL, 0, &copy, 12345), INVALID_CONTEXT);
    odd.address++;
    assert_cu(vr_cu(driver, graph_add_memset_node, &node, graph, NULL, 0, &odd, context), INVALID_VALUE);
    odd = set;
    odd.element_bytes = 3;
    assert_cu(vr_cu(driver, graph_add_memset_node, &node, graph, NULL, 0, &odd, context), INVALID_VALUE);
    unsigned char *source = bytes_at(from);
    const unsigned char *result = bytes_at(to);
    for (int i = 0; i < 4096; i++) source[i] = (unsigned char)vr_mix64((uint64_t)i);
    const uint64_t exec = instantiated(driver, graph);
    assert_cu(vr_cu(driver, graph_launch, exec, 0), SUCCESS);
    for (uint32_t i = 0; i < 64; i++) {
        const bool in = i >= 2 && i < 48 && (i - 2) % 16 < 10;
        assert_int_equal(result[i], in ? (i % 2 == 0 ? 0x34 : 0x12) : 0);
    }
    for (uint32_t plane = 0; plane < 2; plane++)
        for (uint32_t row = 0; row < 3; row++)
            assert_memory_equal(result + 1024 + (plane * 3 + row) * 7, source + (plane + 1) * 32 + (row + 1) * 8 + 1, 7);
    assert_int_equal(result[1024 + 42], 0);
    vram_driver_destroy(driver);
    (void)state;
}

// --- time -----------------------------------------------------------------------------------------------------------

static void launches_take_the_longest_path(void **state) {
    struct vram_driver *driver = open_sim(&no_costs);
    const uint64_t a = begun(driver), b = new_stream(driver), early = new_event(driver), late = new_event(driver);
    kernel(driver, a, 10);
    order(driver, a, b);
    kernel(driver, a, 100);
    assert_cu(vr_cu(driver, event_record_with_flags, early, b, VR_CU_EVENT_RECORD_EXTERNAL), SUCCESS);
    kernel(driver, b, 300);
    order(driver, b, a);
    assert_cu(vr_cu(driver, event_record_with_flags, late, a, VR_CU_EVENT_RECORD_EXTERNAL), SUCCESS);
    const uint64_t exec = instantiated(driver, ended(driver, a));
    kernel(driver, a, 5); // a launch follows the stream's earlier work
    assert_cu(vr_cu(driver, graph_launch, exec, a), SUCCESS);
    assert_int_equal(vram_sim_advance(driver, 15), VRAM_OK);
    assert_cu(vr_cu(driver, event_query, early), SUCCESS);
    assert_cu(vr_cu(driver, event_query, late), NOT_READY);
    assert_cu(vr_cu(driver, event_synchronize, late), SUCCESS);
    assert_int_equal(vram_sim_clock_ns(driver), 315);
    // Launches of one executable graph are ordered, even on different streams.
    assert_cu(vr_cu(driver, graph_launch, exec, a), SUCCESS);
    assert_cu(vr_cu(driver, graph_launch, exec, b), SUCCESS);
    assert_cu(vr_cu(driver, stream_synchronize, b), SUCCESS);
    assert_int_equal(vram_sim_clock_ns(driver), 315 + 620);
    vram_driver_destroy(driver);
    (void)state;
}

static void launches_wait_for_external_events(void **state) {
    struct vram_driver *driver = open_sim(&no_costs);
    const uint64_t a = begun(driver), b = new_stream(driver), event = new_event(driver);
    kernel(driver, a, 50);
    assert_cu(vr_cu(driver, stream_wait_event, a, event, VR_CU_EVENT_WAIT_EXTERNAL), SUCCESS);
    kernel(driver, a, 10);
    const uint64_t exec = instantiated(driver, ended(driver, a));
    kernel(driver, b, 200);
    assert_cu(vr_cu(driver, event_record, event, b), SUCCESS);
    assert_cu(vr_cu(driver, graph_launch, exec, a), SUCCESS);
    assert_cu(vr_cu(driver, stream_synchronize, a), SUCCESS);
    assert_int_equal(vram_sim_clock_ns(driver), 210);
    assert_cu(vr_cu(driver, event_destroy, event), SUCCESS);
    assert_cu(vr_cu(driver, graph_launch, exec, a), INVALID_VALUE);
    vram_driver_destroy(driver);
    (void)state;
}

static void by_hand_launches_stay_pending(void **state) {
    struct vram_driver *driver = open_sim(&(struct vram_sim_options){.profile = VRAM_SIM_FREE, .manual_completion = true});
    const uint64_t a = begun(driver), b = new_stream(driver), c = new_stream(driver);
    const uint64_t wanted = new_event(driver), inside = new_event(driver), after = new_event(driver);
    assert_cu(vr_cu(driver, stream_wait_event, a, wanted, VR_CU_EVENT_WAIT_EXTERNAL), SUCCESS);
    assert_cu(vr_cu(driver, event_record_with_flags, inside, a, VR_CU_EVENT_RECORD_EXTERNAL), SUCCESS);
    const uint64_t exec = instantiated(driver, ended(driver, a));
    kernel(driver, b, 1);
    assert_cu(vr_cu(driver, event_record, wanted, b), SUCCESS);
    assert_cu(vr_cu(driver, graph_launch, exec, a), SUCCESS);
    assert_cu(vr_cu(driver, event_query, inside), NOT_READY);
    // The launch on c follows the one on a, which follows b's event.
    assert_cu(vr_cu(driver, graph_launch, exec, c), SUCCESS);
    assert_cu(vr_cu(driver, event_record, after, c), SUCCESS);
    assert_int_equal(vram_sim_complete(driver, c), VRAM_OK);
    assert_cu(vr_cu(driver, event_query, after), SUCCESS);
    assert_cu(vr_cu(driver, event_query, wanted), SUCCESS);
    assert_cu(vr_cu(driver, stream_query, a), SUCCESS);
    assert_cu(vr_cu(driver, stream_destroy, c), SUCCESS);
    assert_cu(vr_cu(driver, graph_launch, exec, a), SUCCESS); // the stream of the last launch is destroyed
    assert_cu(vr_cu(driver, graph_exec_destroy, exec), SUCCESS);
    vram_driver_destroy(driver);
    (void)state;
}

static void count_up(void *argument) { ++*(int *)argument; }

// A launch in a capture becomes a nested graph; its host functions run with it.
static void launches_can_be_captured(void **state) {
    struct vram_driver *driver = open_sim(&no_costs);
    int runs = 0;
    const uint64_t stream = begun(driver);
    assert_cu(vr_cu(driver, launch_host_func, stream, NULL, NULL), INVALID_VALUE);
    assert_cu(vr_cu(driver, launch_host_func, stream, count_up, &runs), SUCCESS);
    kernel(driver, stream, 10);
    const uint64_t inner = instantiated(driver, ended(driver, stream));
    assert_cu(vr_cu(driver, stream_begin_capture, stream, RELAXED), SUCCESS);
    for (int i = 0; i < 3; i++) assert_cu(vr_cu(driver, graph_launch, inner, stream), SUCCESS);
    const uint64_t graph = ended(driver, stream), outer = instantiated(driver, graph);
    uint64_t count;
    assert_cu(vr_cu(driver, graph_get_nodes, graph, NULL, &count), SUCCESS);
    assert_int_equal(count, 3);
    assert_cu(vr_cu(driver, graph_exec_destroy, inner), SUCCESS);
    assert_int_equal(runs, 0);
    assert_cu(vr_cu(driver, graph_launch, outer, stream), SUCCESS);
    assert_cu(vr_cu(driver, graph_launch, outer, stream), SUCCESS);
    assert_int_equal(runs, 6);
    assert_cu(vr_cu(driver, launch_host_func, stream, count_up, &runs), SUCCESS);
    assert_int_equal(runs, 7);
    assert_cu(vr_cu(driver, stream_synchronize, stream), SUCCESS);
    assert_int_equal(vram_sim_clock_ns(driver), 60);
    assert_int_equal(vram_sim_launch(driver, 0, stream, NULL, NULL, UINT64_MAX), VRAM_INVALID_ARGUMENT);
    vram_driver_destroy(driver);
    (void)state;
}

// --- random captured programs against a naive model -----------------------------------------------------------------

enum { STREAMS = 5, EVENTS = 8, STEPS = 120, PROGRAMS = 300, WORDS = (STEPS + 63) / 64 };

// A set of operations, by number.
struct set {
    uint64_t words[WORDS];
};

static void add_to(struct set *set, uint32_t number) { set->words[number / 64] |= (uint64_t)1 << number % 64; }
static bool has(const struct set *set, uint32_t number) { return (set->words[number / 64] >> number % 64 & 1) != 0; }
static void unite(struct set *set, const struct set *other) {
    for (size_t i = 0; i < WORDS; i++) set->words[i] |= other->words[i];
}

// The program's operations, and the model: for each stream, everything before now; for each event, everything before its record.
struct program {
    struct vram_driver *driver;
    uint64_t random;
    uint64_t streams[STREAMS], events[EVENTS];
    bool in[STREAMS], recorded[EVENTS];
    struct set past[STREAMS], at[EVENTS];
    uint64_t nodes[STEPS];
    struct set before[STEPS];
    uint64_t costs_ns[STEPS];
    uint32_t count;
};

static uint32_t choose(struct program *program, uint32_t below) { return (uint32_t)vr_random_below(&program->random, below); }

static void do_kernel(struct program *program, uint32_t s) {
    const uint32_t number = program->count++;
    program->costs_ns[number] = 1 + choose(program, 100);
    kernel(program->driver, program->streams[s], program->costs_ns[number]);
    int status;
    uint64_t id, graph, count;
    const uint64_t *frontier;
    assert_cu(vr_cu(program->driver, stream_get_capture_info, program->streams[s], &status, &id, &graph, &frontier, &count), SUCCESS);
    assert_int_equal(count, 1);
    program->nodes[number] = frontier[0];
    program->before[number] = program->past[s];
    add_to(&program->past[s], number);
}

static void do_step(struct program *program) {
    const uint32_t what = choose(program, 4), s = choose(program, STREAMS), e = choose(program, EVENTS);
    if (what == 0 && program->in[s]) {
        assert_cu(vr_cu(program->driver, event_record, program->events[e], program->streams[s]), SUCCESS);
        program->recorded[e] = true;
        program->at[e] = program->past[s];
    } else if (what == 1 && program->recorded[e]) {
        assert_cu(vr_cu(program->driver, stream_wait_event, program->streams[s], program->events[e], 0), SUCCESS);
        program->in[s] = true;
        unite(&program->past[s], &program->at[e]);
    } else if (what >= 2 && program->in[s]) {
        do_kernel(program, s);
    }
}

// Returns every operation that precedes the node, by walking the graph.
static struct set walk(const struct program *program, uint64_t node) {
    struct set past = {{0}};
    uint64_t open[STEPS], dependencies[STEPS], open_count = 1;
    open[0] = node;
    while (open_count != 0) {
        uint64_t count = STEPS;
        assert_cu(vr_cu(program->driver, graph_node_get_dependencies, open[--open_count], dependencies, &count), SUCCESS);
        for (uint64_t d = 0; d < count; d++) {
            uint32_t number = 0;
            while (number < program->count && program->nodes[number] != dependencies[d]) number++;
            assert_true(number < program->count);
            if (!has(&past, number)) open[open_count++] = dependencies[d];
            add_to(&past, number);
        }
    }
    return past;
}

// Returns when the last operation ends if each starts when all its predecessors have ended.
static uint64_t model_time_ns(const struct program *program) {
    uint64_t ends_ns[STEPS] = {0}, last_ns = 0;
    for (uint32_t i = 0; i < program->count; i++) {
        for (uint32_t j = 0; j < i; j++)
            if (has(&program->before[i], j) && ends_ns[j] > ends_ns[i]) ends_ns[i] = ends_ns[j];
        ends_ns[i] += program->costs_ns[i];
        if (ends_ns[i] > last_ns) last_ns = ends_ns[i];
    }
    return last_ns;
}

static bool are_joined(const struct program *program) {
    for (uint32_t i = 0; i < program->count; i++)
        if (!has(&program->past[0], i)) return false;
    return true;
}

static void finish_program(struct program *program, uint32_t *joined) {
    struct vram_driver *driver = program->driver;
    const bool join = choose(program, 2) == 0;
    for (uint32_t s = 1; s < STREAMS && join; s++) {
        if (!program->in[s]) continue;
        order(driver, program->streams[s], program->streams[0]);
        unite(&program->past[0], &program->past[s]);
    }
    uint64_t graph, exec;
    const vr_cu_result result = vr_cu(driver, stream_end_capture, program->streams[0], &graph);
    if (!are_joined(program)) {
        assert_cu(result, STREAM_CAPTURE_UNJOINED);
        return;
    }
    assert_cu(result, SUCCESS);
    ++*joined;
    for (uint32_t i = 0; i < program->count; i++) {
        const struct set past = walk(program, program->nodes[i]);
        assert_memory_equal(&past, &program->before[i], sizeof past);
    }
    assert_cu(vr_cu(driver, graph_instantiate, &exec, graph, 0), SUCCESS);
    const uint64_t start_ns = vram_sim_clock_ns(driver);
    assert_cu(vr_cu(driver, graph_launch, exec, program->streams[0]), SUCCESS);
    assert_cu(vr_cu(driver, stream_synchronize, program->streams[0]), SUCCESS);
    assert_int_equal(vram_sim_clock_ns(driver) - start_ns, model_time_ns(program));
    assert_cu(vr_cu(driver, graph_exec_destroy, exec), SUCCESS);
    assert_cu(vr_cu(driver, graph_destroy, graph), SUCCESS);
}

// The driver takes memory for an executable graph and for each of its kernels, on a device whose contexts take memory.
static void executable_graphs_take_memory(void **state) {
    (void)state;
    struct vram_sim_options options;
    assert_int_equal(vram_sim_parse("device=h100,context=500MiB", &options, NULL), VRAM_OK);
    struct vram_driver *driver = open_sim(&options);
    uint64_t used[3], execs[2], stream = begun(driver);
    for (int i = 0; i < 5; i++) kernel(driver, stream, 100);
    const uint64_t five = ended(driver, stream), none = new_graph(driver);
    empty_after(driver, none, NULL, 0);
    used[0] = vram_sim_memory_used(driver, 0);
    execs[0] = instantiated(driver, none);
    assert_int_equal(vram_sim_memory_used(driver, 0), used[0]);
    execs[1] = instantiated(driver, five);
    used[1] = vram_sim_memory_used(driver, 0);
    const uint64_t again = instantiated(driver, five);
    used[2] = vram_sim_memory_used(driver, 0);
    assert_in_range(used[1] - used[0], 5 * 4096, VR_MIB);
    assert_int_equal(used[2] - used[1], used[1] - used[0]);
    assert_true(vr_sim_check(vr_sim_of(driver)));
    uint64_t unused, total, address, exec = 7;
    assert_cu(vr_cu(driver, mem_get_info, &unused, &total), SUCCESS);
    assert_cu(vr_cu(driver, mem_alloc, &address, unused - 4096), SUCCESS);
    assert_cu(vr_cu(driver, graph_instantiate, &exec, five, 0), OUT_OF_MEMORY);
    assert_int_equal(exec, 7);
    assert_cu(vr_cu(driver, mem_free, address), SUCCESS);
    for (int i = 0; i < 2; i++) assert_cu(vr_cu(driver, graph_exec_destroy, execs[i]), SUCCESS);
    assert_cu(vr_cu(driver, graph_exec_destroy, again), SUCCESS);
    assert_int_equal(vram_sim_memory_used(driver, 0), used[0]);
    vram_driver_destroy(driver);
}

static uint64_t run_program(uint64_t seed, uint32_t *joined) {
    struct program *program = calloc(1, sizeof *program);
    assert_non_null(program);
    program->driver = open_sim(&no_costs);
    program->random = seed;
    for (uint32_t i = 0; i < STREAMS; i++) program->streams[i] = new_stream(program->driver);
    for (uint32_t i = 0; i < EVENTS; i++) program->events[i] = new_event(program->driver);
    assert_cu(vr_cu(program->driver, stream_begin_capture, program->streams[0], RELAXED), SUCCESS);
    program->in[0] = true;
    for (uint32_t step = 0; step < STEPS; step++) do_step(program);
    finish_program(program, joined);
    assert_int_equal(vram_sim_live_objects(program->driver), STREAMS + EVENTS);
    uint64_t sum = vram_sim_clock_ns(program->driver);
    for (uint32_t i = 0; i < program->count; i++) sum = vr_mix64(sum ^ program->nodes[i]);
    vram_driver_destroy(program->driver);
    free(program);
    return sum;
}

static void captured_order_is_the_programs(void **state) {
    uint32_t joined = 0;
    for (uint64_t seed = 0; seed < PROGRAMS; seed++) {
        const uint64_t first = run_program(vr_mix64(seed), &joined);
        if (seed % 10 == 0) assert_int_equal(run_program(vr_mix64(seed), &joined), first); // the same again
    }
    assert_true(joined > PROGRAMS / 4);
    (void)state;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(graphs_are_made_by_hand),
        cmocka_unit_test(circles_cannot_be_instantiated),
        cmocka_unit_test(graphs_nest),
        cmocka_unit_test(clones_stand_alone),
        cmocka_unit_test(launches_see_their_inputs),
        cmocka_unit_test(nodes_copy_and_set_in_three_dimensions),
        cmocka_unit_test(launches_take_the_longest_path),
        cmocka_unit_test(launches_wait_for_external_events),
        cmocka_unit_test(by_hand_launches_stay_pending),
        cmocka_unit_test(launches_can_be_captured),
        cmocka_unit_test(executable_graphs_take_memory),
        cmocka_unit_test(captured_order_is_the_programs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
