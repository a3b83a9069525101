// Tests host functions on their own thread.
#include <stdatomic.h>

#include "sim/sim.h"
#include "os/os.h"
#include "sim_fixture.h"
#include "vram/sim.h"

enum { MANY = 200 };

struct order {
    struct vram_driver *driver;
    _Atomic int calls;
    int seen[MANY];
    vr_cu_result refused;
    uint64_t thread;
    _Atomic bool go;
};

struct numbered {
    struct order *order;
    int number;
};

static void note(void *argument) {
    const struct numbered *numbered = argument;
    struct order *order = numbered->order;
    order->thread = vr_os_thread_id();
    order->refused = vr_cu(order->driver, ctx_synchronize, 0);
    order->seen[atomic_load(&order->calls)] = numbered->number;
    atomic_fetch_add(&order->calls, 1);
}

static void note_status(uint64_t stream, vr_cu_result status, void *argument) {
    if (stream != 0 && status == VR_CU_SUCCESS) note(argument);
}

static struct vram_driver *open_threaded(void) {
    struct vram_sim_options options;
    assert_int_equal(vram_sim_parse("host_thread,backed,kernel=10us", &options, NULL), VRAM_OK);
    return open_sim(&options);
}

// They run in order, over streams that wait for each other, on a thread that may not call the driver; a synchronization waits for them.
static void functions_are_called_in_order(void **state) {
    (void)state;
    struct order order = {.driver = open_threaded()};
    struct vr_sim *sim = vr_sim_of(order.driver);
    struct numbered numbers[MANY];
    uint64_t streams[2], event;
    for (int i = 0; i < 2; i++) assert_cu(vr_cu(order.driver, stream_create, &streams[i], 1), SUCCESS);
    assert_cu(vr_cu(order.driver, event_create, &event, 0), SUCCESS);
    for (int i = 0; i < MANY; i++) {
        numbers[i] = (struct numbered){&order, i};
        const uint64_t stream = streams[i % 2];
        assert_cu(vr_cu(order.driver, stream_wait_event, stream, event, 0), SUCCESS);
        if (i % 3 == 0)
            assert_cu(vr_sim_call_stream_add_callback(sim, stream, note_status, &numbers[i], 0), SUCCESS);
        else
            assert_cu(vr_cu(order.driver, launch_host_func, stream, note, &numbers[i]), SUCCESS);
        assert_cu(vr_cu(order.driver, event_record, event, stream), SUCCESS);
    }
    assert_cu(vr_cu(order.driver, event_synchronize, event), SUCCESS);
    assert_int_equal(atomic_load(&order.calls), MANY);
    for (int i = 0; i < MANY; i++) assert_int_equal(order.seen[i], i);
    assert_true(order.thread != vr_os_thread_id());
    assert_cu(order.refused, NOT_PERMITTED);
    assert_cu(vr_cu(order.driver, stream_query, streams[0]), SUCCESS);
    vram_driver_destroy(order.driver);
}

static void wait_for_go(void *argument) {
    struct order *order = argument;
    while (!atomic_load(&order->go)) vr_os_yield();
    order->seen[0] = 7;
}

// While a function runs, its stream and later events are not complete, and later copies do not happen.
static void what_comes_after_waits(void **state) {
    (void)state;
    struct order order = {.driver = open_threaded()};
    uint64_t stream, event, memory;
    int copied = 0;
    assert_cu(vr_cu(order.driver, mem_alloc, &memory, sizeof copied), SUCCESS);
    assert_cu(vr_cu(order.driver, stream_create, &stream, 1), SUCCESS);
    assert_cu(vr_cu(order.driver, event_create, &event, 0), SUCCESS);
    assert_cu(vr_cu(order.driver, launch_host_func, stream, wait_for_go, &order), SUCCESS);
    assert_cu(vr_cu(order.driver, memcpy_async, memory, (uint64_t)(uintptr_t)&order.seen[0], sizeof copied, stream), SUCCESS);
    assert_cu(vr_cu(order.driver, event_record, event, stream), SUCCESS);
    assert_int_equal(vram_sim_advance(order.driver, 1000000000), VRAM_OK);
    assert_cu(vr_cu(order.driver, event_query, event), NOT_READY);
    assert_cu(vr_cu(order.driver, stream_query, stream), NOT_READY);
    atomic_store(&order.go, true);
    assert_cu(vr_cu(order.driver, stream_synchronize, stream), SUCCESS);
    assert_cu(vr_cu(order.driver, event_query, event), SUCCESS);
    assert_cu(vr_cu(order.driver, memcpy_dtoh, &copied, memory, sizeof copied), SUCCESS);
    assert_int_equal(copied, 7);
    vram_driver_destroy(order.driver);
}

// A graph's host nodes run in order, and work after the launch waits for them.
static void graphs_call_functions(void **state) {
    (void)state;
    struct order order = {.driver = open_threaded(), .go = true};
    struct numbered numbers[4];
    uint64_t stream, graph, exec;
    assert_cu(vr_cu(order.driver, stream_create, &stream, 1), SUCCESS);
    assert_cu(vr_cu(order.driver, stream_begin_capture, stream, 0), SUCCESS);
    for (int i = 0; i < 4; i++) {
        numbers[i] = (struct numbered){&order, i};
        assert_cu(vr_cu(order.driver, launch_host_func, stream, note, &numbers[i]), SUCCESS);
    }
    assert_cu(vr_cu(order.driver, stream_end_capture, stream, &graph), SUCCESS);
    assert_cu(vr_cu(order.driver, graph_instantiate, &exec, graph, 0), SUCCESS);
    assert_int_equal(atomic_load(&order.calls), 0);
    for (int i = 0; i < 3; i++) assert_cu(vr_cu(order.driver, graph_launch, exec, stream), SUCCESS);
    assert_cu(vr_cu(order.driver, stream_synchronize, stream), SUCCESS);
    assert_int_equal(atomic_load(&order.calls), 12);
    for (int i = 0; i < 12; i++) assert_int_equal(order.seen[i], i % 4);
    vram_driver_destroy(order.driver);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(functions_are_called_in_order),
        cmocka_unit_test(what_comes_after_waits),
        cmocka_unit_test(graphs_call_functions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
