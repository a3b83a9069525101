// Tests the simulated driver's streams, events and virtual clock.
#include "unit/sim_fixture.h"
#include "vram/sim.h"

#define DEFAULT_FLAGS 0

static const struct vram_sim_options no_costs = {.profile = VRAM_SIM_FREE};
static const struct vram_sim_options by_hand = {.profile = VRAM_SIM_FREE, .manual_completion = true};

static uint64_t new_stream(struct vram_driver *driver, unsigned flags) {
    uint64_t stream;
    assert_cu(vr_cu(driver, stream_create, &stream, flags), SUCCESS);
    return stream;
}

// Records an event on `stream` now.
static uint64_t mark(struct vram_driver *driver, uint64_t stream) {
    uint64_t event;
    assert_cu(vr_cu(driver, event_create, &event, DEFAULT_FLAGS), SUCCESS);
    assert_cu(vr_cu(driver, event_record, event, stream), SUCCESS);
    return event;
}

static void busy(struct vram_driver *driver, uint64_t stream, uint64_t work_ns) {
    assert_int_equal(vram_sim_busy(driver, 0, stream, work_ns), VRAM_OK);
}

static void event_waits_for_the_work_before_it(void **state) {
    struct vram_driver *driver = open_sim(&no_costs);
    uint64_t stream = new_stream(driver, DEFAULT_FLAGS);
    uint64_t start = mark(driver, stream);
    busy(driver, stream, 1000);
    uint64_t end = mark(driver, stream);
    busy(driver, stream, 500);
    float elapsed_ms = 7;
    assert_cu(vr_cu(driver, event_query, start), SUCCESS);
    assert_cu(vr_cu(driver, event_query, end), NOT_READY);
    assert_cu(vr_cu(driver, stream_query, stream), NOT_READY);
    assert_cu(vr_cu(driver, event_elapsed_ms, &elapsed_ms, start, end), NOT_READY);
    assert_int_equal(vram_sim_advance(driver, 999), VRAM_OK);
    assert_cu(vr_cu(driver, event_query, end), NOT_READY);
    assert_int_equal(vram_sim_advance(driver, 1), VRAM_OK);
    assert_cu(vr_cu(driver, event_query, end), SUCCESS);
    assert_cu(vr_cu(driver, event_elapsed_ms, &elapsed_ms, start, end), SUCCESS);
    assert_true(elapsed_ms > 0.00099f && elapsed_ms < 0.00101f);
    assert_cu(vr_cu(driver, stream_synchronize, stream), SUCCESS);
    assert_int_equal(vram_sim_clock_ns(driver), 1500);
    assert_cu(vr_cu(driver, stream_query, stream), SUCCESS);
    vram_driver_destroy(driver);
    (void)state;
}

static void recording_again_forgets_the_first(void **state) {
    struct vram_driver *driver = open_sim(&no_costs);
    uint64_t stream = new_stream(driver, DEFAULT_FLAGS), event = mark(driver, stream);
    busy(driver, stream, 1000);
    assert_cu(vr_cu(driver, event_record, event, stream), SUCCESS);
    assert_cu(vr_cu(driver, event_query, event), NOT_READY);
    assert_cu(vr_cu(driver, event_synchronize, event), SUCCESS);
    assert_int_equal(vram_sim_clock_ns(driver), 1000);
    vram_driver_destroy(driver);
    (void)state;
}

static void stream_waits_for_event(void **state) {
    struct vram_driver *driver = open_sim(&no_costs);
    uint64_t a = new_stream(driver, VR_CU_STREAM_NON_BLOCKING), b = new_stream(driver, VR_CU_STREAM_NON_BLOCKING), unrecorded;
    busy(driver, a, 1000);
    uint64_t on_a = mark(driver, a);
    assert_cu(vr_cu(driver, event_create, &unrecorded, DEFAULT_FLAGS), SUCCESS);
    assert_cu(vr_cu(driver, stream_wait_event, b, unrecorded, 0), SUCCESS);
    assert_cu(vr_cu(driver, stream_query, b), SUCCESS);
    assert_cu(vr_cu(driver, stream_wait_event, b, on_a, 0), SUCCESS);
    busy(driver, b, 10);
    uint64_t on_b = mark(driver, b);
    assert_int_equal(vram_sim_advance(driver, 1009), VRAM_OK);
    assert_cu(vr_cu(driver, event_query, on_b), NOT_READY);
    assert_int_equal(vram_sim_advance(driver, 1), VRAM_OK);
    assert_cu(vr_cu(driver, event_query, on_b), SUCCESS);
    vram_driver_destroy(driver);
    (void)state;
}

static void legacy_stream_orders_blocking_streams(void **state) {
    struct vram_driver *driver = open_sim(&no_costs);
    uint64_t blocking = new_stream(driver, DEFAULT_FLAGS), apart = new_stream(driver, VR_CU_STREAM_NON_BLOCKING);
    busy(driver, blocking, 1000);
    busy(driver, 0, 100); // starts after `blocking`
    uint64_t on_legacy = mark(driver, VR_CU_STREAM_LEGACY);
    busy(driver, apart, 5);
    uint64_t on_apart = mark(driver, apart);
    busy(driver, blocking, 10); // starts after the legacy stream
    uint64_t on_blocking = mark(driver, blocking);
    assert_int_equal(vram_sim_advance(driver, 5), VRAM_OK);
    assert_cu(vr_cu(driver, event_query, on_apart), SUCCESS);
    assert_cu(vr_cu(driver, event_synchronize, on_legacy), SUCCESS);
    assert_int_equal(vram_sim_clock_ns(driver), 1100);
    assert_cu(vr_cu(driver, stream_query, 0), NOT_READY); // a blocking stream has work
    assert_cu(vr_cu(driver, event_synchronize, on_blocking), SUCCESS);
    assert_int_equal(vram_sim_clock_ns(driver), 1110);
    assert_cu(vr_cu(driver, stream_query, 0), SUCCESS);
    vram_driver_destroy(driver);
    (void)state;
}

static void free_waits_for_the_device(void **state) {
    struct vram_driver *driver = open_sim(&no_costs);
    uint64_t stream = new_stream(driver, VR_CU_STREAM_NON_BLOCKING), address, host;
    assert_cu(vr_cu(driver, mem_alloc, &address, 512), SUCCESS);
    assert_cu(vr_cu(driver, mem_host_alloc, &host, 512, 0), SUCCESS);
    busy(driver, stream, 1000);
    uint64_t event = mark(driver, stream);
    assert_cu(vr_cu(driver, mem_free, address), SUCCESS);
    assert_int_equal(vram_sim_clock_ns(driver), 1000);
    assert_cu(vr_cu(driver, event_query, event), SUCCESS);
    busy(driver, stream, 1000);
    assert_cu(vr_cu(driver, mem_free_host, host), SUCCESS);
    assert_int_equal(vram_sim_clock_ns(driver), 2000);
    vram_driver_destroy(driver);
    (void)state;
}

static void by_hand_events_stay_pending(void **state) {
    struct vram_driver *driver = open_sim(&by_hand);
    uint64_t a = new_stream(driver, VR_CU_STREAM_NON_BLOCKING), b = new_stream(driver, VR_CU_STREAM_NON_BLOCKING);
    uint64_t first = mark(driver, a), second = mark(driver, a), other = mark(driver, b);
    assert_int_equal(vram_sim_advance(driver, 1000000), VRAM_OK);
    assert_cu(vr_cu(driver, event_query, first), NOT_READY);
    assert_cu(vr_cu(driver, event_synchronize, first), SUCCESS); // completes what preceded it, and no more
    assert_cu(vr_cu(driver, event_query, first), SUCCESS);
    assert_cu(vr_cu(driver, event_query, second), NOT_READY);
    assert_int_equal(vram_sim_complete(driver, a), VRAM_OK);
    assert_cu(vr_cu(driver, event_query, second), SUCCESS);
    assert_cu(vr_cu(driver, event_query, other), NOT_READY);
    assert_int_equal(vram_sim_complete_all(driver), VRAM_OK);
    assert_cu(vr_cu(driver, event_query, other), SUCCESS);
    assert_cu(vr_cu(driver, event_record, other, b), SUCCESS);
    assert_cu(vr_cu(driver, event_query, other), NOT_READY);
    assert_cu(vr_cu(driver, ctx_synchronize, 0), SUCCESS);
    assert_cu(vr_cu(driver, event_query, other), SUCCESS);
    assert_int_equal(vram_sim_complete(driver, 12345), VRAM_INVALID_ARGUMENT);
    vram_driver_destroy(driver);
    (void)state;
}

static void by_hand_completion_follows_waits(void **state) {
    struct vram_driver *driver = open_sim(&by_hand);
    uint64_t streams[3], marks[3];
    for (int i = 0; i < 3; i++) {
        streams[i] = new_stream(driver, VR_CU_STREAM_NON_BLOCKING);
        if (i > 0) assert_cu(vr_cu(driver, stream_wait_event, streams[i], marks[i - 1], 0), SUCCESS);
        marks[i] = mark(driver, streams[i]);
    }
    uint64_t late = mark(driver, streams[0]); // not waited for
    assert_int_equal(vram_sim_complete(driver, streams[2]), VRAM_OK);
    for (int i = 0; i < 3; i++) assert_cu(vr_cu(driver, event_query, marks[i]), SUCCESS);
    assert_cu(vr_cu(driver, event_query, late), NOT_READY);
    vram_driver_destroy(driver);
    (void)state;
}

static void by_hand_legacy_stream_orders_blocking_streams(void **state) {
    struct vram_driver *driver = open_sim(&by_hand);
    uint64_t blocking = new_stream(driver, DEFAULT_FLAGS), apart = new_stream(driver, VR_CU_STREAM_NON_BLOCKING);
    uint64_t before = mark(driver, blocking), independent = mark(driver, apart), on_legacy = mark(driver, 0),
             after = mark(driver, blocking);
    assert_int_equal(vram_sim_complete(driver, apart), VRAM_OK);
    assert_cu(vr_cu(driver, event_query, independent), SUCCESS);
    assert_cu(vr_cu(driver, event_query, before), NOT_READY);
    assert_cu(vr_cu(driver, event_synchronize, on_legacy), SUCCESS);
    assert_cu(vr_cu(driver, event_query, before), SUCCESS);
    assert_cu(vr_cu(driver, event_query, after), NOT_READY);
    assert_cu(vr_cu(driver, stream_query, 0), NOT_READY);
    assert_cu(vr_cu(driver, event_record, on_legacy, 0), SUCCESS);
    assert_cu(vr_cu(driver, event_record, after, blocking), SUCCESS);
    assert_int_equal(vram_sim_complete(driver, blocking), VRAM_OK); // its work waited for the legacy stream's
    assert_cu(vr_cu(driver, event_query, on_legacy), SUCCESS);
    assert_cu(vr_cu(driver, stream_query, 0), SUCCESS);
    vram_driver_destroy(driver);
    (void)state;
}

static void by_hand_default_stream_completes_alone(void **state) {
    struct vram_driver *driver = open_sim(&by_hand);
    uint64_t blocking = new_stream(driver, DEFAULT_FLAGS), before = mark(driver, blocking), on_legacy = mark(driver, 0);
    uint64_t after = mark(driver, blocking);
    assert_int_equal(vram_sim_complete(driver, 0), VRAM_OK);
    assert_cu(vr_cu(driver, event_query, before), SUCCESS);
    assert_cu(vr_cu(driver, event_query, on_legacy), SUCCESS);
    assert_cu(vr_cu(driver, event_query, after), NOT_READY);
    assert_int_equal(vram_sim_complete(driver, VR_CU_STREAM_PER_THREAD), VRAM_OK);
    assert_cu(vr_cu(driver, ctx_set_current, 0), SUCCESS);
    assert_int_equal(vram_sim_complete(driver, 0), VRAM_INVALID_ARGUMENT); // there is no context
    assert_int_equal(vram_sim_complete(driver, blocking), VRAM_OK);
    assert_cu(vr_cu(driver, event_query, after), SUCCESS);
    vram_driver_destroy(driver);
    (void)state;
}

// --- random work, compared with a model of each piece of work and its direct dependencies -----------------------------

#define PIECES  400
#define STREAMS 4 // the legacy stream, two blocking ones, one that is not

static struct {
    size_t before[STREAMS + 1]; // pieces that precede it, as index + 1; 0: none
    bool done;
} pieces[PIECES];
static size_t piece_count, last_piece[STREAMS]; // index + 1

static void finish_piece(size_t piece) {
    if (piece == 0 || pieces[piece - 1].done) return;
    pieces[piece - 1].done = true;
    for (size_t i = 0; i <= STREAMS; i++) finish_piece(pieces[piece - 1].before[i]);
}

static size_t add_piece(size_t stream, size_t waits_for) {
    size_t piece = piece_count++;
    memset(&pieces[piece], 0, sizeof pieces[piece]);
    pieces[piece].before[stream] = last_piece[stream];
    for (size_t other = 1; stream == 0 && other < STREAMS - 1; other++) pieces[piece].before[other] = last_piece[other];
    if (stream == 1 || stream == 2) pieces[piece].before[0] = last_piece[0];
    pieces[piece].before[STREAMS] = waits_for;
    last_piece[stream] = piece + 1;
    return piece + 1;
}

// Runs random work; compares every event after every step.
static void run_against_model(uint64_t random) {
    struct vram_driver *driver = open_sim(&by_hand);
    uint64_t streams[STREAMS] = {0, new_stream(driver, DEFAULT_FLAGS), new_stream(driver, DEFAULT_FLAGS),
                                 new_stream(driver, VR_CU_STREAM_NON_BLOCKING)};
    uint64_t events[8];
    size_t recorded[8] = {0}; // piece + 1
    piece_count = 0;
    memset(last_piece, 0, sizeof last_piece);
    for (size_t i = 0; i < 8; i++) assert_cu(vr_cu(driver, event_create, &events[i], DEFAULT_FLAGS), SUCCESS);
    while (piece_count + 2 < PIECES) {
        random = vr_mix64(random + piece_count + 1);
        size_t stream = random % STREAMS, event = (random >> 8) % 8;
        switch ((random >> 16) % 8) {
        case 0:
            assert_int_equal(vram_sim_complete(driver, streams[stream]), VRAM_OK);
            finish_piece(last_piece[stream]);
            break;
        case 1:
            assert_cu(vr_cu(driver, event_synchronize, events[event]), SUCCESS);
            finish_piece(recorded[event]);
            break;
        case 2:
            assert_cu(vr_cu(driver, stream_synchronize, streams[stream]), SUCCESS);
            finish_piece(stream == 0 ? add_piece(0, 0) : last_piece[stream]);
            break;
        case 3:
        case 4:
            assert_cu(vr_cu(driver, stream_wait_event, streams[stream], events[event], 0), SUCCESS);
            if (recorded[event] != 0) (void)add_piece(stream, recorded[event]);
            break;
        default: assert_cu(vr_cu(driver, event_record, events[event], streams[stream]), SUCCESS); recorded[event] = add_piece(stream, 0);
        }
        for (size_t i = 0; i < 8; i++) {
            bool done = recorded[i] == 0 || pieces[recorded[i] - 1].done;
            assert_int_equal(vr_cu(driver, event_query, events[i]), done ? VR_CU_SUCCESS : VR_CU_NOT_READY);
        }
        random++;
    }
    vram_driver_destroy(driver);
}

static void by_hand_random_work_is_as_modelled(void **state) {
    for (uint64_t seed = 0; seed < 50; seed++) run_against_model(seed);
    (void)state;
}

static void destroyed_streams_finish_their_work(void **state) {
    struct vram_driver *driver = open_sim(&by_hand);
    uint64_t a = new_stream(driver, DEFAULT_FLAGS), b = new_stream(driver, DEFAULT_FLAGS), on_a = mark(driver, a);
    assert_cu(vr_cu(driver, stream_wait_event, b, on_a, 0), SUCCESS);
    uint64_t on_b = mark(driver, b);
    assert_cu(vr_cu(driver, stream_destroy, a), SUCCESS);
    assert_cu(vr_cu(driver, stream_destroy, b), SUCCESS);
    assert_cu(vr_cu(driver, stream_destroy, b), INVALID_HANDLE);
    assert_cu(vr_cu(driver, event_record, on_a, a), INVALID_HANDLE);
    assert_cu(vr_cu(driver, event_query, on_b), NOT_READY);
    assert_cu(vr_cu(driver, event_synchronize, on_b), SUCCESS);
    assert_cu(vr_cu(driver, event_query, on_a), SUCCESS);
    assert_cu(vr_cu(driver, event_destroy, on_a), SUCCESS);
    assert_cu(vr_cu(driver, event_destroy, on_a), INVALID_HANDLE);
    assert_cu(vr_cu(driver, event_query, on_a), INVALID_HANDLE);
    assert_cu(vr_cu(driver, event_destroy, on_b), SUCCESS);
    assert_int_equal(vram_sim_live_objects(driver), 0);
    for (int i = 0; i < 100; i++) { // slots are reused, and no old handle refers to a new object
        uint64_t stream = new_stream(driver, DEFAULT_FLAGS);
        assert_true(stream != a && stream != b);
        assert_cu(vr_cu(driver, stream_destroy, stream), SUCCESS);
    }
    vram_driver_destroy(driver);
    (void)state;
}

// A program divides by the time that it measured, even around nothing.
static void measured_time_is_not_zero(void **state) {
    for (uint64_t kernel_ns = 0; kernel_ns <= 10000; kernel_ns += 10000) {
        struct vram_driver *driver = open_sim(&(struct vram_sim_options){.profile = VRAM_SIM_FREE, .kernel_ns = kernel_ns});
        uint64_t stream = new_stream(driver, DEFAULT_FLAGS);
        busy(driver, stream, 1000000);
        const uint64_t start = mark(driver, stream), end = mark(driver, stream);
        float elapsed_ms = 7;
        assert_cu(vr_cu(driver, stream_synchronize, stream), SUCCESS);
        assert_cu(vr_cu(driver, event_elapsed_ms, &elapsed_ms, start, end), SUCCESS);
        assert_true(kernel_ns == 0 ? elapsed_ms == 0 : elapsed_ms > 0.0004f && elapsed_ms < 0.0006f);
        assert_cu(vr_cu(driver, event_elapsed_ms, &elapsed_ms, end, end), SUCCESS);
        assert_true(elapsed_ms == 0);
        vram_driver_destroy(driver);
    }
    (void)state;
}

static void events_and_streams_check_their_arguments(void **state) {
    struct vram_driver *driver = open_sim(&(struct vram_sim_options){.device_count = 2});
    uint64_t context, event, timed, stream, here;
    float elapsed_ms;
    assert_cu(vr_cu(driver, event_create, &event, 8), INVALID_VALUE);
    assert_cu(vr_cu(driver, event_create, &event, VR_CU_EVENT_INTERPROCESS), INVALID_VALUE);
    assert_cu(vr_cu(driver, stream_create, &stream, 2), INVALID_VALUE);
    assert_cu(vr_cu(driver, event_create, &event, VR_CU_EVENT_DISABLE_TIMING), SUCCESS);
    assert_cu(vr_cu(driver, event_create, &timed, 0), SUCCESS);
    assert_cu(vr_cu(driver, event_query, event), SUCCESS); // never recorded
    assert_cu(vr_cu(driver, event_elapsed_ms, &elapsed_ms, timed, timed), INVALID_HANDLE);
    assert_cu(vr_cu(driver, event_record, event, 0), SUCCESS);
    assert_cu(vr_cu(driver, event_record, timed, 0), SUCCESS);
    assert_cu(vr_cu(driver, event_elapsed_ms, &elapsed_ms, event, timed), INVALID_HANDLE);
    assert_cu(vr_cu(driver, stream_get_ctx, 0, &here), SUCCESS);
    assert_cu(vr_cu(driver, primary_ctx_retain, &context, 1), SUCCESS);
    assert_cu(vr_cu(driver, ctx_set_current, context), SUCCESS);
    assert_cu(vr_cu(driver, event_record, event, 0), INVALID_HANDLE); // the event belongs to the other context
    stream = new_stream(driver, 0);
    assert_cu(vr_cu(driver, event_record, event, stream), INVALID_HANDLE);
    assert_cu(vr_cu(driver, stream_wait_event, stream, event, 0), SUCCESS);
    assert_cu(vr_cu(driver, stream_get_ctx, stream, &context), SUCCESS);
    assert_int_not_equal(context, here);
    assert_int_equal(vram_sim_busy(driver, 0, stream, 1), VRAM_INVALID_ARGUMENT); // the stream belongs to device 1
    assert_int_equal(vram_sim_busy(driver, 2, 0, 1), VRAM_INVALID_ARGUMENT);
    assert_int_equal(vram_sim_busy(driver, 1, stream, UINT64_MAX), VRAM_INVALID_ARGUMENT);
    vram_driver_destroy(driver);
    (void)state;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(event_waits_for_the_work_before_it),
        cmocka_unit_test(recording_again_forgets_the_first),
        cmocka_unit_test(stream_waits_for_event),
        cmocka_unit_test(legacy_stream_orders_blocking_streams),
        cmocka_unit_test(free_waits_for_the_device),
        cmocka_unit_test(by_hand_events_stay_pending),
        cmocka_unit_test(by_hand_completion_follows_waits),
        cmocka_unit_test(by_hand_legacy_stream_orders_blocking_streams),
        cmocka_unit_test(by_hand_default_stream_completes_alone),
        cmocka_unit_test(by_hand_random_work_is_as_modelled),
        cmocka_unit_test(destroyed_streams_finish_their_work),
        cmocka_unit_test(measured_time_is_not_zero),
        cmocka_unit_test(events_and_streams_check_their_arguments),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
