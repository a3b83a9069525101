// Tests pinned memory in a history: whose stack an event has, and what remains of stacks when another allocator records.
#define _POSIX_C_SOURCE 200809L
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <unistd.h>

#include "support/history.h"
#include "vram/events.h"
#include "vram/host.h"
#include "vram/report.h"

static struct vram_host *open_host(struct vr_world *world) {
    struct vram_host *host = NULL;
    OK(vram_host_create(&(struct vram_host_create_info){.driver = world->driver}, &host, NULL));
    return host;
}

static void *pin(struct vram_host *host) {
    void *pointer = NULL;
    OK(vram_host_malloc(host, 100000, 0, &pointer));
    return pointer;
}

// Pins with distinct stacks of increasing depth.
VR_NOINLINE static void pin_deep(struct vram_host *host, void **pointers, size_t count) {
    pointers[0] = pin(host);
    if (count > 1) pin_deep(host, pointers + 1, count - 1);
    VR_NO_TAIL_CALL();
}

static const struct vr_history *events_of(const struct vram_recording *recording) {
    assert_int_equal(model_of(recording)->host_count, 1);
    return &model_of(recording)->histories[model_of(recording)->history_count - 1];
}

enum { DEEP = 20 };

static size_t row_of(const struct vr_model *model, const void *pointer) {
    size_t row = 0;
    while (row < model->blocks.count && model->blocks.address[row] != (uint64_t)(uintptr_t)pointer) row++;
    assert_true(row < model->blocks.count);
    return row;
}

// Stacks of blocks known to the first allocator's history mean nothing to the second one's.
static void another_allocator_goes_on(void **state) {
    (void)state;
    struct vr_world first, second;
    void *early[DEEP], *late[DEEP];
    history_world(&first, "", 1, VR_GIB);
    history_world(&second, "", 1, VR_GIB);
    struct vram_host *host = open_host(&first);
    start(&first, &(struct vram_history_options){.host = host});
    pin_deep(host, early, DEEP);
    OK(vram_history_stop(first.allocator));
    start(&second, &(struct vram_history_options){.host = host});
    pin_deep(host, late, DEEP);
    for (size_t i = 0; i < DEEP / 2; i++) OK(vram_host_free(host, early[i]));
    struct vram_recording *recording = snap(&second, NULL);
    const struct vr_model *model = model_of(recording);
    for (size_t i = 0; i < DEEP; i++) {
        assert_int_equal(model->blocks.stack[row_of(model, early[i])], 0);
        assert_int_not_equal(model->blocks.stack[row_of(model, late[i])], 0);
    }
    vram_recording_destroy(recording);
    OK(vram_history_stop(second.allocator));
    vram_host_destroy(host);
    history_end(&first);
    history_end(&second);
}

// A trim is a call of its own: its events have its stack, not that of the thread's previous call.
static void a_trim_has_a_stack_of_its_own(void **state) {
    (void)state;
    struct vr_world world;
    history_world(&world, "", 1, VR_GIB);
    struct vram_host *host = open_host(&world);
    struct vram_host_pool *pool = NULL;
    void *pointer = NULL;
    OK(vram_host_pool_create(host, NULL, &pool));
    start(&world, &(struct vram_history_options){.host = host});
    OK(vram_host_pool_malloc(pool, 100000, 0, &pointer));
    OK(vram_host_free(host, pointer));
    OK(vram_host_pool_empty_cache(pool));
    struct vram_recording *recording = snap(&world, NULL);
    const struct vr_history *history = events_of(recording);
    assert_int_equal(history->count, 5);
    assert_int_equal(history->action[4], VR_ACTION_SEGMENT_FREE);
    assert_int_equal(history->stack[2], history->stack[3]); // the free
    assert_int_not_equal(history->stack[4], history->stack[3]);
    assert_int_not_equal(history->stack[4], history->stack[0]);
    assert_int_not_equal(history->stack[4], 0);
    vram_recording_destroy(recording);
    OK(vram_history_stop(world.allocator));
    vram_host_pool_release(pool);
    vram_host_destroy(host);
    history_end(&world);
}

// --- threads ----------------------------------------------------------------------------------------------------------------------------

struct worker {
    struct vram_host *host;
    atomic_bool over;
    atomic_uint failures;
    atomic_uint rounds;
};

static void *pin_and_free(void *user) {
    struct worker *worker = user;
    void *kept[4] = {NULL};
    for (size_t i = 0; !atomic_load(&worker->over); i++) {
        void **slot = &kept[i % VR_COUNT_OF(kept)];
        worker->failures += vram_host_free(worker->host, *slot) != VRAM_OK;
        worker->failures += vram_host_malloc(worker->host, 4096 << i % 3, 0, slot) != VRAM_OK;
        if (i % 16 == 0) worker->failures += vram_host_empty_cache(worker->host) != VRAM_OK;
        atomic_fetch_add(&worker->rounds, 1);
    }
    for (size_t i = 0; i < VR_COUNT_OF(kept); i++) worker->failures += vram_host_free(worker->host, kept[i]) != VRAM_OK;
    return NULL;
}

// Each event and each block has a stack of the recording allocator, or none.
static void allocators_take_turns_while_threads_go_on(void **state) {
    (void)state;
    enum { THREADS = 3, TURNS = 12, ROUNDS_A_TURN = 60 };
    struct vr_world worlds[2];
    for (size_t i = 0; i < 2; i++) history_world(&worlds[i], "", 1, VR_GIB);
    struct vram_host *host = open_host(&worlds[0]);
    struct worker worker = {.host = host};
    pthread_t threads[THREADS];
    for (size_t i = 0; i < THREADS; i++) assert_int_equal(pthread_create(&threads[i], NULL, pin_and_free, &worker), 0);
    for (unsigned turn = 0; turn < TURNS; turn++) {
        struct vr_world *world = &worlds[turn % 2];
        start(world, &(struct vram_history_options){.host = host});
        const unsigned until = atomic_load(&worker.rounds) + ROUNDS_A_TURN;
        while (atomic_load(&worker.rounds) < until) sched_yield();
        struct vram_recording *recording = snap(world, NULL); // checks every number in it
        assert_true(events_of(recording)->count >= ROUNDS_A_TURN);
        vram_recording_destroy(recording);
        OK(vram_history_stop(world->allocator));
    }
    atomic_store(&worker.over, true);
    for (size_t i = 0; i < THREADS; i++) assert_int_equal(pthread_join(threads[i], NULL), 0);
    assert_int_equal(worker.failures, 0);
    OK(vram_host_check(host, NULL));
    vram_host_destroy(host);
    for (size_t i = 0; i < 2; i++) history_end(&worlds[i]);
}

static unsigned ooms_told;

static void count_ooms(const struct vram_event *event, void *user) {
    (void)user;
    ooms_told += event->action == VRAM_EVENT_OOM && event->size_bytes >= 30 * VR_MIB;
}

// A failure to pin is an event of pinned memory, with the system's figures; the report does not call the device full.
static void a_refusal_is_an_event(void **state) {
    (void)state;
    static const struct {
        const char *meminfo;
        enum vram_report_oom_cause cause;
        const char *says;
    } cases[] = {
        {"MemTotal: 1048576 kB\nMemAvailable: 524288 kB\n", VRAM_OOM_LIMIT, "the system had 512.0 MiB available, enough for"},
        {"MemTotal: 51200 kB\nMemAvailable: 10240 kB\n", VRAM_OOM_FULL, "40.0 MiB was pinned, and the system had 10.0 MiB available"},
        {"nothing\n", VRAM_OOM_FULL, "does not say how much the system had available"},
    };
    char path[] = "/tmp/vram_meminfo_XXXXXX";
    const int file = mkstemp(path);
    assert_true(file >= 0);
    assert_int_equal(setenv("VRAM_MEMINFO", path, 1), 0);
    for (size_t i = 0; i < VR_COUNT_OF(cases); i++) {
        struct vr_world world;
        const struct vr_world_options options = {.sim = {.device_count = 1, .memory_bytes = VR_GIB, .pinned_bytes = 64 * VR_MIB},
                                                 .without_record = true};
        assert_int_equal(ftruncate(file, 0), 0);
        assert_int_equal(pwrite(file, cases[i].meminfo, strlen(cases[i].meminfo), 0), strlen(cases[i].meminfo));
        OK(vr_world_open(&world, &options));
        struct vram_host *host = open_host(&world);
        vram_host_set_event_listener(host, count_ooms, NULL);
        start(&world, &(struct vram_history_options){.host = host});
        void *held = NULL, *none = NULL;
        OK(vram_host_malloc(host, 40 * VR_MIB, 0, &held));
        ooms_told = 0;
        assert_int_equal(vram_host_malloc(host, 30 * VR_MIB, 0, &none), VRAM_OUT_OF_MEMORY);
        assert_int_equal(ooms_told, 1);
        struct vram_recording *recording = snap(&world, NULL);
        struct vram_report *report = NULL;
        OK(vram_report_create(recording, NULL, &report, NULL));
        const struct vram_report_device *device = &report->devices[report->device_count - 1];
        assert_true(device->is_host);
        assert_int_equal(device->oom_count, 1);
        assert_int_equal(device->ooms[0].cause, cases[i].cause);
        if (strstr(device->ooms[0].text, cases[i].says) == NULL) fail_msg("%s", device->ooms[0].text);
        assert_non_null(strstr(device->ooms[0].text, "pinned host memory ran out, not the device's: "));
        vram_report_destroy(report);
        vram_recording_destroy(recording);
        OK(vram_host_free(host, held));
        OK(vram_history_stop(world.allocator));
        vram_host_destroy(host);
        history_end(&world);
    }
    assert_int_equal(unsetenv("VRAM_MEMINFO"), 0);
    assert_int_equal(unlink(path), 0);
    (void)close(file);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_refusal_is_an_event),
        cmocka_unit_test(another_allocator_goes_on),
        cmocka_unit_test(a_trim_has_a_stack_of_its_own),
        cmocka_unit_test(allocators_take_turns_while_threads_go_on),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
