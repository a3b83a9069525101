// Tests the simulated driver's stream capture: forks and joins, and every call that a capture forbids.
#include <pthread.h>

#include "unit/sim_fixture.h"
#include "vram/sim.h"

enum {
    GLOBAL = VR_CU_STREAM_CAPTURE_MODE_GLOBAL,
    LOCAL = VR_CU_STREAM_CAPTURE_MODE_THREAD_LOCAL,
    RELAXED = VR_CU_STREAM_CAPTURE_MODE_RELAXED,
    APART = VR_CU_STREAM_NON_BLOCKING,
    BLOCKING = 0,
};

static const struct vram_sim_options no_costs = {.profile = VRAM_SIM_FREE};

static uint64_t new_stream(struct vram_driver *driver, unsigned flags) {
    uint64_t stream;
    assert_cu(vr_cu(driver, stream_create, &stream, flags), SUCCESS);
    return stream;
}

static uint64_t new_event(struct vram_driver *driver) {
    uint64_t event;
    assert_cu(vr_cu(driver, event_create, &event, VR_CU_EVENT_DISABLE_TIMING), SUCCESS);
    return event;
}

static uint64_t capturing(struct vram_driver *driver, unsigned flags, int mode) {
    const uint64_t stream = new_stream(driver, flags);
    assert_cu(vr_cu(driver, stream_begin_capture, stream, mode), SUCCESS);
    return stream;
}

static int state_of(struct vram_driver *driver, uint64_t stream) {
    int status = -1;
    assert_cu(vr_cu(driver, stream_is_capturing, stream, &status), SUCCESS);
    return status;
}

#define assert_state(driver, stream, name) assert_int_equal(state_of(driver, stream), VR_CU_STREAM_CAPTURE_STATUS_##name)

static void kernel(struct vram_driver *driver, uint64_t stream) {
    assert_int_equal(vram_sim_launch(driver, 0, stream, NULL, NULL, 10), VRAM_OK);
}

// Makes `to` wait for the current work of `from`.
static void order(struct vram_driver *driver, uint64_t from, uint64_t to) {
    const uint64_t event = new_event(driver);
    assert_cu(vr_cu(driver, event_record, event, from), SUCCESS);
    assert_cu(vr_cu(driver, stream_wait_event, to, event, 0), SUCCESS);
    assert_cu(vr_cu(driver, event_destroy, event), SUCCESS);
}

static uint64_t frontier_count(struct vram_driver *driver, uint64_t stream, const uint64_t **nodes) {
    int status;
    uint64_t id, graph, count;
    assert_cu(vr_cu(driver, stream_get_capture_info, stream, &status, &id, &graph, nodes, &count), SUCCESS);
    assert_int_equal(status, VR_CU_STREAM_CAPTURE_STATUS_ACTIVE);
    return count;
}

// Returns the node that the stream captured last.
static uint64_t last_node(struct vram_driver *driver, uint64_t stream) {
    const uint64_t *nodes;
    assert_int_equal(frontier_count(driver, stream, &nodes), 1);
    return nodes[0];
}

static void assert_after(struct vram_driver *driver, uint64_t node, const uint64_t *expected, uint64_t expected_count) {
    uint64_t nodes[8], count = 8;
    assert_cu(vr_cu(driver, graph_node_get_dependencies, node, nodes, &count), SUCCESS);
    assert_int_equal(count, expected_count);
    for (uint64_t i = 0; i < count; i++) assert_int_equal(nodes[i], expected[i]);
    for (uint64_t i = count; i < 8; i++) assert_int_equal(nodes[i], 0);
    count = 0;
    assert_cu(vr_cu(driver, graph_node_get_dependencies, node, NULL, &count), SUCCESS);
    assert_int_equal(count, expected_count);
}

// Ends a capture and checks that it gives no graph.
static void assert_lost(struct vram_driver *driver, uint64_t stream) {
    uint64_t graph = 7;
    assert_state(driver, stream, INVALIDATED);
    assert_cu(vr_cu(driver, stream_end_capture, stream, &graph), STREAM_CAPTURE_INVALIDATED);
    assert_int_equal(graph, 0);
    assert_state(driver, stream, NONE);
}

static uint64_t ended(struct vram_driver *driver, uint64_t stream) {
    uint64_t graph = 0;
    assert_cu(vr_cu(driver, stream_end_capture, stream, &graph), SUCCESS);
    assert_state(driver, stream, NONE);
    return graph;
}

// --- captured nodes -------------------------------------------------------------------------------------------------

static void a_diamond_keeps_its_shape(void **state) {
    struct vram_driver *driver = open_sim(&no_costs);
    const uint64_t a = capturing(driver, APART, GLOBAL), b = new_stream(driver, APART);
    kernel(driver, a);
    const uint64_t top = last_node(driver, a);
    order(driver, a, b);
    assert_state(driver, b, ACTIVE);
    kernel(driver, a);
    kernel(driver, b);
    const uint64_t left = last_node(driver, a), right = last_node(driver, b);
    order(driver, b, a);
    const uint64_t *frontier;
    assert_int_equal(frontier_count(driver, a, &frontier), 2);
    assert_true(frontier[0] == left && frontier[1] == right);
    kernel(driver, a);
    const uint64_t bottom = last_node(driver, a);
    assert_after(driver, top, NULL, 0);
    assert_after(driver, left, &top, 1);
    assert_after(driver, right, &top, 1);
    assert_after(driver, bottom, (const uint64_t[]){left, right}, 2);
    const uint64_t graph = ended(driver, a);
    assert_state(driver, b, NONE);
    uint64_t nodes[4], from[8], to[8], count = 4;
    assert_cu(vr_cu(driver, graph_get_nodes, graph, nodes, &count), SUCCESS);
    assert_true(count == 4 && nodes[0] == top && nodes[3] == bottom);
    count = 8;
    assert_cu(vr_cu(driver, graph_get_edges, graph, from, to, &count), SUCCESS);
    assert_int_equal(count, 4);
    assert_true(from[3] == right && to[3] == bottom && from[4] == 0 && to[4] == 0);
    assert_int_equal(vram_sim_clock_ns(driver), 0);
    assert_cu(vr_cu(driver, stream_query, a), SUCCESS); // nothing was executed
    vram_driver_destroy(driver);
    (void)state;
}

static void captures_are_told_apart(void **state) {
    struct vram_driver *driver = open_sim(&no_costs);
    const uint64_t a = capturing(driver, APART, RELAXED), b = capturing(driver, APART, RELAXED), c = new_stream(driver, APART);
    int status = -1;
    uint64_t ids[2] = {0}, graphs[2] = {0}, count = 7;
    const uint64_t *nodes = NULL;
    assert_cu(vr_cu(driver, stream_get_capture_info, a, &status, &ids[0], &graphs[0], &nodes, &count), SUCCESS);
    assert_int_equal(count, 0);
    assert_cu(vr_cu(driver, stream_get_capture_info, b, &status, &ids[1], &graphs[1], NULL, NULL), SUCCESS);
    assert_true(ids[0] != 0 && ids[1] != 0 && ids[0] != ids[1] && graphs[0] != graphs[1]);
    assert_cu(vr_cu(driver, stream_get_capture_info, c, &status, NULL, NULL, NULL, NULL), SUCCESS);
    assert_int_equal(status, VR_CU_STREAM_CAPTURE_STATUS_NONE);
    assert_cu(vr_cu(driver, stream_get_capture_info, a, NULL, NULL, NULL, NULL, NULL), INVALID_VALUE);
    assert_cu(vr_cu(driver, graph_destroy, graphs[0]), INVALID_VALUE); // its capture needs it
    assert_int_equal(ended(driver, a), graphs[0]);
    assert_cu(vr_cu(driver, graph_destroy, graphs[0]), SUCCESS);
    assert_cu(vr_cu(driver, graph_destroy, graphs[0]), INVALID_VALUE);
    assert_int_equal(ended(driver, b), graphs[1]);
    assert_cu(vr_cu(driver, graph_destroy, graphs[1]), SUCCESS);
    vram_driver_destroy(driver);
    (void)state;
}

static void dependencies_can_be_changed(void **state) {
    struct vram_driver *driver = open_sim(&no_costs);
    const uint64_t a = capturing(driver, APART, GLOBAL), b = new_stream(driver, APART);
    kernel(driver, a);
    const uint64_t first = last_node(driver, a);
    order(driver, a, b);
    kernel(driver, b);
    const uint64_t apart = last_node(driver, b);
    kernel(driver, a);
    const uint64_t second = last_node(driver, a);
    const int add = VR_CU_STREAM_ADD_CAPTURE_DEPENDENCIES, set = VR_CU_STREAM_SET_CAPTURE_DEPENDENCIES;
    const uint64_t unknown = 12345, both[] = {first, second}, twice[] = {first, first};
    const uint64_t *nodes;
    assert_cu(vr_cu(driver, stream_update_capture_dependencies, a, both, 2, add), SUCCESS);
    assert_int_equal(frontier_count(driver, a, &nodes), 2);
    assert_cu(vr_cu(driver, stream_update_capture_dependencies, a, &unknown, 1, add), INVALID_VALUE);
    assert_cu(vr_cu(driver, stream_update_capture_dependencies, a, twice, 2, add), INVALID_VALUE);
    assert_cu(vr_cu(driver, stream_update_capture_dependencies, a, &first, 1, 2), INVALID_VALUE);
    assert_int_equal(frontier_count(driver, a, &nodes), 2);
    // Work removed from the dependencies need not be joined.
    assert_cu(vr_cu(driver, stream_update_capture_dependencies, b, &first, 1, set), SUCCESS);
    assert_int_equal(last_node(driver, b), first);
    assert_true(apart != first);
    (void)ended(driver, a);
    assert_cu(vr_cu(driver, stream_update_capture_dependencies, a, NULL, 0, add), ILLEGAL_STATE);
    vram_driver_destroy(driver);
    (void)state;
}

static void external_events_are_nodes(void **state) {
    struct vram_driver *driver = open_sim(&no_costs);
    const uint64_t outside = new_stream(driver, APART), event = new_event(driver);
    assert_cu(vr_cu(driver, event_record_with_flags, event, outside, VR_CU_EVENT_RECORD_EXTERNAL), INVALID_VALUE);
    assert_cu(vr_cu(driver, stream_wait_event, outside, event, VR_CU_EVENT_WAIT_EXTERNAL), INVALID_VALUE);
    const uint64_t a = capturing(driver, APART, RELAXED);
    assert_cu(vr_cu(driver, stream_wait_event, a, event, VR_CU_EVENT_WAIT_EXTERNAL), SUCCESS);
    int type;
    assert_cu(vr_cu(driver, graph_node_get_type, last_node(driver, a), &type), SUCCESS);
    assert_int_equal(type, VR_CU_GRAPH_NODE_TYPE_WAIT_EVENT);
    assert_cu(vr_cu(driver, event_record_with_flags, event, a, VR_CU_EVENT_RECORD_EXTERNAL), SUCCESS);
    assert_cu(vr_cu(driver, graph_node_get_type, last_node(driver, a), &type), SUCCESS);
    assert_int_equal(type, VR_CU_GRAPH_NODE_TYPE_EVENT_RECORD);
    assert_cu(vr_cu(driver, event_query, event), SUCCESS); // not a captured event
    (void)ended(driver, a);
    vram_driver_destroy(driver);
    (void)state;
}

// --- forbidden calls ------------------------------------------------------------------------------------------------

static void a_capture_begins_and_ends_on_one_stream(void **state) {
    struct vram_driver *driver = open_sim(&no_costs);
    uint64_t graph = 7;
    const uint64_t a = new_stream(driver, APART), b = new_stream(driver, APART);
    assert_cu(vr_cu(driver, stream_begin_capture, a, 3), INVALID_VALUE);
    assert_cu(vr_cu(driver, stream_begin_capture, 12345, GLOBAL), INVALID_HANDLE);
    assert_cu(vr_cu(driver, stream_begin_capture, 0, RELAXED), STREAM_CAPTURE_UNSUPPORTED);
    assert_cu(vr_cu(driver, stream_end_capture, a, &graph), ILLEGAL_STATE);
    assert_cu(vr_cu(driver, stream_begin_capture, a, GLOBAL), SUCCESS);
    assert_cu(vr_cu(driver, stream_begin_capture, a, GLOBAL), ILLEGAL_STATE);
    assert_cu(vr_cu(driver, stream_end_capture, a, NULL), INVALID_VALUE);
    assert_int_equal(graph, 7);
    order(driver, a, b);
    assert_cu(vr_cu(driver, stream_end_capture, b, &graph), STREAM_CAPTURE_UNMATCHED);
    assert_state(driver, b, INVALIDATED);
    assert_cu(vr_cu(driver, stream_begin_capture, b, GLOBAL), STREAM_CAPTURE_INVALIDATED);
    assert_int_equal(vram_sim_busy(driver, 0, b, 1), VRAM_DRIVER);
    assert_lost(driver, a);
    assert_state(driver, b, NONE);
    assert_cu(vr_cu(driver, stream_begin_capture, VR_CU_STREAM_PER_THREAD, GLOBAL), SUCCESS);
    kernel(driver, VR_CU_STREAM_PER_THREAD);
    (void)ended(driver, VR_CU_STREAM_PER_THREAD);
    vram_driver_destroy(driver);
    (void)state;
}

static void a_fork_must_be_joined(void **state) {
    struct vram_driver *driver = open_sim(&no_costs);
    const uint64_t a = capturing(driver, APART, GLOBAL), b = new_stream(driver, APART), c = new_stream(driver, APART);
    uint64_t graph = 7;
    kernel(driver, a);
    order(driver, a, b);
    order(driver, b, c);
    kernel(driver, c);
    order(driver, c, a);
    kernel(driver, b);
    assert_cu(vr_cu(driver, stream_end_capture, a, &graph), STREAM_CAPTURE_UNJOINED);
    assert_int_equal(graph, 0);
    assert_state(driver, a, NONE);
    assert_state(driver, b, NONE);
    // A stream without work of its own needs no join; a destroyed stream with work still does.
    assert_cu(vr_cu(driver, stream_begin_capture, a, GLOBAL), SUCCESS);
    order(driver, a, b);
    (void)ended(driver, a);
    assert_cu(vr_cu(driver, stream_begin_capture, a, GLOBAL), SUCCESS);
    order(driver, a, b);
    kernel(driver, b);
    assert_cu(vr_cu(driver, stream_destroy, b), SUCCESS);
    assert_state(driver, a, ACTIVE);
    assert_cu(vr_cu(driver, stream_end_capture, a, &graph), STREAM_CAPTURE_UNJOINED);
    vram_driver_destroy(driver);
    (void)state;
}

// Each of these calls invalidates the capture that `a` began, in any mode.
static void states_cannot_be_asked_for(void **state) {
    struct vram_driver *driver = open_sim(&no_costs);
    const uint64_t a = new_stream(driver, APART);
    for (int call = 0; call < 5; call++) {
        assert_cu(vr_cu(driver, stream_begin_capture, a, RELAXED), SUCCESS);
        const uint64_t event = new_event(driver);
        assert_cu(vr_cu(driver, event_record, event, a), SUCCESS);
        if (call == 0) assert_cu(vr_cu(driver, stream_query, a), STREAM_CAPTURE_UNSUPPORTED);
        if (call == 1) assert_cu(vr_cu(driver, stream_synchronize, a), STREAM_CAPTURE_UNSUPPORTED);
        if (call == 2) assert_cu(vr_cu(driver, ctx_synchronize, 0), STREAM_CAPTURE_UNSUPPORTED);
        if (call == 3) assert_cu(vr_cu(driver, event_query, event), CAPTURED_EVENT);
        if (call == 4) assert_cu(vr_cu(driver, event_synchronize, event), CAPTURED_EVENT);
        assert_cu(vr_cu(driver, stream_synchronize, a), STREAM_CAPTURE_INVALIDATED);
        assert_cu(vr_cu(driver, event_record, event, a), STREAM_CAPTURE_INVALIDATED);
        assert_lost(driver, a);
        assert_cu(vr_cu(driver, event_query, event), CAPTURED_EVENT);
        float elapsed_ms;
        assert_cu(vr_cu(driver, event_elapsed_ms, &elapsed_ms, event, event), CAPTURED_EVENT);
        assert_cu(vr_cu(driver, event_record, event, a), SUCCESS);
        assert_cu(vr_cu(driver, event_query, event), SUCCESS);
    }
    vram_driver_destroy(driver);
    (void)state;
}

static void events_cross_no_border(void **state) {
    struct vram_driver *driver = open_sim(&no_costs);
    const uint64_t a = new_stream(driver, APART), b = new_stream(driver, APART), plain = new_stream(driver, APART);
    const uint64_t outside = new_event(driver), inside = new_event(driver), never = new_event(driver);
    assert_cu(vr_cu(driver, event_record, outside, plain), SUCCESS);
    // An event recorded outside
    assert_cu(vr_cu(driver, stream_begin_capture, a, RELAXED), SUCCESS);
    assert_cu(vr_cu(driver, stream_wait_event, a, never, 0), SUCCESS);
    assert_cu(vr_cu(driver, stream_wait_event, a, outside, 0), STREAM_CAPTURE_ISOLATION);
    assert_lost(driver, a);
    // An event recorded by another capture
    assert_cu(vr_cu(driver, stream_begin_capture, a, RELAXED), SUCCESS);
    assert_cu(vr_cu(driver, stream_begin_capture, b, RELAXED), SUCCESS);
    assert_cu(vr_cu(driver, event_record, inside, a), SUCCESS);
    assert_cu(vr_cu(driver, stream_wait_event, b, inside, 0), STREAM_CAPTURE_MERGE);
    assert_cu(vr_cu(driver, stream_wait_event, plain, inside, 0), INVALID_VALUE); // an invalidated capture accepts no other stream
    assert_lost(driver, a);
    assert_lost(driver, b);
    // An event of an ended capture
    assert_cu(vr_cu(driver, stream_wait_event, plain, inside, 0), CAPTURED_EVENT);
    assert_cu(vr_cu(driver, stream_begin_capture, b, RELAXED), SUCCESS);
    assert_cu(vr_cu(driver, stream_wait_event, b, inside, 0), STREAM_CAPTURE_ISOLATION);
    assert_lost(driver, b);
    // The legacy stream cannot take part in a capture
    assert_cu(vr_cu(driver, stream_begin_capture, a, RELAXED), SUCCESS);
    assert_cu(vr_cu(driver, event_record, inside, a), SUCCESS);
    assert_cu(vr_cu(driver, stream_wait_event, 0, inside, 0), STREAM_CAPTURE_UNSUPPORTED);
    assert_lost(driver, a);
    vram_driver_destroy(driver);
    (void)state;
}

static void the_legacy_stream_waits_for_no_capture(void **state) {
    struct vram_driver *driver = open_sim(&no_costs);
    const uint64_t a = new_stream(driver, BLOCKING), event = new_event(driver);
    uint64_t address, host = 0;
    int status;
    assert_cu(vr_cu(driver, mem_alloc, &address, 512), SUCCESS);
    for (int call = 0; call < 7; call++) {
        assert_cu(vr_cu(driver, stream_begin_capture, a, RELAXED), SUCCESS);
        assert_cu(vr_cu(driver, stream_is_capturing, 0, &status), STREAM_CAPTURE_IMPLICIT);
        assert_state(driver, a, ACTIVE); // a query is harmless
        if (call == 0) assert_cu(vr_cu(driver, memset_d8, address, 0, 512), STREAM_CAPTURE_IMPLICIT);
        if (call == 1) assert_cu(vr_cu(driver, memcpy_htod, address, &host, 8), STREAM_CAPTURE_IMPLICIT);
        if (call == 2) assert_cu(vr_cu(driver, memcpy_dtoh, &host, address, 8), STREAM_CAPTURE_IMPLICIT);
        if (call == 3) assert_cu(vr_cu(driver, event_record, event, 0), STREAM_CAPTURE_IMPLICIT);
        if (call == 4) assert_cu(vr_cu(driver, stream_wait_event, VR_CU_STREAM_LEGACY, event, 0), STREAM_CAPTURE_IMPLICIT);
        if (call == 5) assert_cu(vr_cu(driver, stream_synchronize, 0), STREAM_CAPTURE_IMPLICIT);
        if (call == 6) assert_cu(vr_cu(driver, stream_query, 0), STREAM_CAPTURE_IMPLICIT);
        assert_lost(driver, a);
        assert_cu(vr_cu(driver, memset_d8, address, 0, 512), SUCCESS);
    }
    // During the capture of a stream that does not wait for it, the legacy stream works as usual.
    const uint64_t b = capturing(driver, APART, RELAXED);
    assert_cu(vr_cu(driver, memset_d8, address, 0, 512), SUCCESS);
    assert_cu(vr_cu(driver, memcpy_htod, address, &host, 8), SUCCESS);
    (void)ended(driver, b);
    vram_driver_destroy(driver);
    (void)state;
}

// --- threads and modes ----------------------------------------------------------------------------------------------

// Makes one of the unsafe calls. Returns true if it was refused.
static bool refuses(struct vram_driver *driver, int call, uint64_t event, uint64_t stream) {
    static char bytes[4096];
    uint64_t address = 0;
    vr_cu_result result = VR_CU_SUCCESS;
    if (call == 0) result = vr_cu(driver, mem_alloc, &address, 512);
    if (call == 1) result = vr_cu(driver, mem_free, 1);
    if (call == 2) result = vr_cu(driver, mem_host_alloc, &address, 512, 0);
    if (call == 3) result = vr_cu(driver, mem_free_host, 1);
    if (call == 4) result = vr_cu(driver, mem_host_register, (uint64_t)(uintptr_t)bytes, sizeof bytes, 0);
    if (call == 5) result = vr_cu(driver, mem_host_unregister, (uint64_t)(uintptr_t)bytes);
    if (call == 6) result = vr_cu(driver, memcpy_htod, 1, bytes, 1);
    if (call == 7) result = vr_cu(driver, memcpy_dtoh, bytes, 1, 1);
    if (call == 8) result = vr_cu(driver, event_query, event);
    if (call == 9) result = vr_cu(driver, event_synchronize, event);
    if (call == 10) result = vr_cu(driver, stream_query, stream);
    if (call == 11) result = vr_cu(driver, stream_synchronize, stream);
    return result == VR_CU_STREAM_CAPTURE_UNSUPPORTED;
}

enum { UNSAFE_CALLS = 12 };

struct try_out {
    struct vram_driver *driver;
    uint64_t context, event, stream;
    int mode; // of the thread
    int call;
    bool refused;
};

static void try_call(struct try_out *try) {
    int mode = try->mode;
    (void)vr_cu(try->driver, thread_exchange_capture_mode, &mode);
    try->refused = refuses(try->driver, try->call, try->event, try->stream);
    (void)vr_cu(try->driver, thread_exchange_capture_mode, &mode);
}

static void *try_elsewhere(void *opaque) {
    struct try_out *try = opaque;
    (void)vr_cu(try->driver, ctx_set_current, try->context);
    try_call(try);
    return NULL;
}

// Returns whether the thread's mode forbids the call during a capture of that mode, begun by the same thread or another.
static bool is_forbidden(int thread_mode, int capture_mode, bool same) {
    if (thread_mode == RELAXED || capture_mode == RELAXED) return false;
    return same || (thread_mode == GLOBAL && capture_mode == GLOBAL);
}

static void check_call(struct try_out *try, uint64_t stream, int mode, bool same) {
    struct vram_driver *driver = try->driver;
    assert_cu(vr_cu(driver, stream_begin_capture, stream, mode), SUCCESS);
    pthread_t thread;
    if (same)
        try_call(try);
    else
        assert_true(pthread_create(&thread, NULL, try_elsewhere, try) == 0 && pthread_join(thread, NULL) == 0);
    assert_int_equal(try->refused, is_forbidden(try->mode, mode, same));
    if (try->refused)
        assert_lost(driver, stream);
    else
        assert_cu(vr_cu(driver, graph_destroy, ended(driver, stream)), SUCCESS);
}

static void modes_say_who_may_call(void **state) {
    struct vram_driver *driver = open_sim(&no_costs);
    struct try_out try = {.driver = driver, .event = new_event(driver), .stream = new_stream(driver, APART)};
    assert_cu(vr_cu(driver, ctx_get_current, &try.context), SUCCESS);
    const uint64_t stream = new_stream(driver, APART);
    for (try.call = 0; try.call < UNSAFE_CALLS; try.call++)
        for (try.mode = GLOBAL; try.mode <= RELAXED; try.mode++)
            for (int mode = GLOBAL; mode <= RELAXED; mode++) {
                check_call(&try, stream, mode, true);
                check_call(&try, stream, mode, false);
            }
    vram_driver_destroy(driver);
    (void)state;
}

static void modes_are_the_threads_own(void **state) {
    struct vram_driver *driver = open_sim(&no_costs);
    int mode = RELAXED;
    assert_cu(vr_cu(driver, thread_exchange_capture_mode, &mode), SUCCESS);
    assert_int_equal(mode, GLOBAL);
    mode = LOCAL;
    assert_cu(vr_cu(driver, thread_exchange_capture_mode, &mode), SUCCESS);
    assert_int_equal(mode, RELAXED);
    mode = 3;
    assert_cu(vr_cu(driver, thread_exchange_capture_mode, &mode), INVALID_VALUE);
    assert_int_equal(mode, 3);
    assert_cu(vr_cu(driver, thread_exchange_capture_mode, NULL), INVALID_VALUE);
    mode = GLOBAL;
    assert_cu(vr_cu(driver, thread_exchange_capture_mode, &mode), SUCCESS);
    assert_int_equal(mode, LOCAL);
    vram_driver_destroy(driver);
    (void)state;
}

// A call that two captures forbid ends both; a relaxed capture is not affected.
static void one_call_harms_many(void **state) {
    struct vram_driver *driver = open_sim(&no_costs);
    const uint64_t a = capturing(driver, APART, GLOBAL), b = capturing(driver, APART, LOCAL), c = capturing(driver, APART, RELAXED);
    uint64_t address;
    assert_cu(vr_cu(driver, mem_alloc, &address, 512), STREAM_CAPTURE_UNSUPPORTED);
    assert_lost(driver, a);
    assert_cu(vr_cu(driver, mem_alloc, &address, 512), STREAM_CAPTURE_UNSUPPORTED); // until it is ended
    assert_lost(driver, b);
    assert_cu(vr_cu(driver, mem_alloc, &address, 512), SUCCESS);
    (void)ended(driver, c);
    vram_driver_destroy(driver);
    (void)state;
}

struct ending {
    struct vram_driver *driver;
    uint64_t context, stream, graph;
    vr_cu_result result;
};

static void *end_elsewhere(void *opaque) {
    struct ending *ending = opaque;
    (void)vr_cu(ending->driver, ctx_set_current, ending->context);
    ending->result = vr_cu(ending->driver, stream_end_capture, ending->stream, &ending->graph);
    return NULL;
}

static void only_relaxed_captures_change_threads(void **state) {
    struct vram_driver *driver = open_sim(&no_costs);
    struct ending ending = {.driver = driver};
    assert_cu(vr_cu(driver, ctx_get_current, &ending.context), SUCCESS);
    for (int mode = GLOBAL; mode <= RELAXED; mode++) {
        ending.stream = capturing(driver, APART, mode);
        pthread_t thread;
        assert_true(pthread_create(&thread, NULL, end_elsewhere, &ending) == 0 && pthread_join(thread, NULL) == 0);
        if (mode == RELAXED) {
            assert_cu(ending.result, SUCCESS);
        } else {
            assert_cu(ending.result, STREAM_CAPTURE_WRONG_THREAD);
            assert_state(driver, ending.stream, ACTIVE);
            (void)ended(driver, ending.stream);
        }
    }
    vram_driver_destroy(driver);
    (void)state;
}

struct worker {
    struct vram_driver *driver;
    uint64_t context;
    int failures;
};

// Captures and launches on its own streams; the captures are local, so that others may allocate meanwhile.
static void *capture_alone(void *opaque) {
    struct worker *worker = opaque;
    struct vram_driver *driver = worker->driver;
    uint64_t stream, side, event, graph, exec, address;
    int mode = RELAXED;
    worker->failures += vr_cu(driver, ctx_set_current, worker->context) != VR_CU_SUCCESS;
    worker->failures += vr_cu(driver, stream_create, &stream, APART) != VR_CU_SUCCESS;
    worker->failures += vr_cu(driver, stream_create, &side, APART) != VR_CU_SUCCESS;
    worker->failures += vr_cu(driver, event_create, &event, 0) != VR_CU_SUCCESS;
    for (int i = 0; i < 200; i++) {
        worker->failures += vr_cu(driver, stream_begin_capture, stream, LOCAL) != VR_CU_SUCCESS;
        worker->failures += vram_sim_launch(driver, 0, stream, NULL, NULL, 5) != VRAM_OK;
        worker->failures += vr_cu(driver, event_record, event, stream) != VR_CU_SUCCESS;
        worker->failures += vr_cu(driver, stream_wait_event, side, event, 0) != VR_CU_SUCCESS;
        worker->failures += vram_sim_launch(driver, 0, side, NULL, NULL, 5) != VRAM_OK;
        worker->failures += vr_cu(driver, event_record, event, side) != VR_CU_SUCCESS;
        worker->failures += vr_cu(driver, stream_wait_event, stream, event, 0) != VR_CU_SUCCESS;
        worker->failures += vr_cu(driver, stream_end_capture, stream, &graph) != VR_CU_SUCCESS;
        worker->failures += vr_cu(driver, graph_instantiate, &exec, graph, 0) != VR_CU_SUCCESS;
        worker->failures += vr_cu(driver, graph_launch, exec, stream) != VR_CU_SUCCESS;
        worker->failures += vr_cu(driver, mem_alloc, &address, 4096) != VR_CU_SUCCESS;
        worker->failures += vr_cu(driver, mem_free, address) != VR_CU_SUCCESS;
        worker->failures += vr_cu(driver, graph_exec_destroy, exec) != VR_CU_SUCCESS;
        worker->failures += vr_cu(driver, graph_destroy, graph) != VR_CU_SUCCESS;
    }
    worker->failures += vr_cu(driver, thread_exchange_capture_mode, &mode) != VR_CU_SUCCESS || mode != GLOBAL;
    return NULL;
}

static void threads_capture_at_once(void **state) {
    struct vram_driver *driver = open_sim(&no_costs);
    struct worker workers[4];
    pthread_t threads[4];
    uint64_t context;
    assert_cu(vr_cu(driver, ctx_get_current, &context), SUCCESS);
    for (int i = 0; i < 4; i++) {
        workers[i] = (struct worker){.driver = driver, .context = context};
        assert_int_equal(pthread_create(&threads[i], NULL, capture_alone, &workers[i]), 0);
    }
    for (int i = 0; i < 4; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
        assert_int_equal(workers[i].failures, 0);
    }
    assert_int_equal(vram_sim_live_objects(driver), 4 * 3); // two streams and an event each
    vram_driver_destroy(driver);
    (void)state;
}

// --- leaks ----------------------------------------------------------------------------------------------------------

static void an_abandoned_capture_leaves_nothing(void **state) {
    struct vram_driver *driver = open_sim(&no_costs);
    const uint64_t b = new_stream(driver, APART), before = vram_sim_live_objects(driver);
    const uint64_t a = capturing(driver, APART, GLOBAL), event = new_event(driver);
    kernel(driver, a);
    order(driver, a, b);
    kernel(driver, b);
    assert_cu(vr_cu(driver, event_record, event, b), SUCCESS);
    assert_int_equal(vram_sim_live_objects(driver), before + 3);
    assert_cu(vr_cu(driver, stream_destroy, a), SUCCESS);
    assert_state(driver, b, NONE);
    assert_cu(vr_cu(driver, event_destroy, event), SUCCESS);
    assert_int_equal(vram_sim_live_objects(driver), before);
    kernel(driver, b); // works as usual
    uint64_t address;
    assert_cu(vr_cu(driver, mem_alloc, &address, 512), SUCCESS);
    // Destroying the context, or the driver, ends captures.
    (void)capturing(driver, APART, GLOBAL);
    assert_cu(vr_cu(driver, primary_ctx_release, 0), SUCCESS);
    assert_int_equal(vram_sim_live_objects(driver), 0);
    uint64_t context;
    assert_cu(vr_cu(driver, primary_ctx_retain, &context, 0), SUCCESS);
    assert_cu(vr_cu(driver, ctx_set_current, context), SUCCESS);
    kernel(driver, capturing(driver, APART, GLOBAL));
    vram_driver_destroy(driver);
    (void)state;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_diamond_keeps_its_shape),
        cmocka_unit_test(captures_are_told_apart),
        cmocka_unit_test(dependencies_can_be_changed),
        cmocka_unit_test(external_events_are_nodes),
        cmocka_unit_test(a_capture_begins_and_ends_on_one_stream),
        cmocka_unit_test(a_fork_must_be_joined),
        cmocka_unit_test(states_cannot_be_asked_for),
        cmocka_unit_test(events_cross_no_border),
        cmocka_unit_test(the_legacy_stream_waits_for_no_capture),
        cmocka_unit_test(modes_say_who_may_call),
        cmocka_unit_test(modes_are_the_threads_own),
        cmocka_unit_test(one_call_harms_many),
        cmocka_unit_test(only_relaxed_captures_change_threads),
        cmocka_unit_test(threads_capture_at_once),
        cmocka_unit_test(an_abandoned_capture_leaves_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
