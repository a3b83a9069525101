// Four threads record while others take snapshots, restart the history and change its limits. No event is lost or out of order within its
// device. Meant to run under the thread sanitizer too.
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

#include "support/history.h"
#include "vram/sleep.h"

// Each snapshot copies the whole history under the locks that recorders need, so a slow machine needs this limit.
enum { THREADS = 4, PAIRS = 4000, MOST_PICTURES = 200 };

struct team {
    struct vr_world world;
    atomic_int running;
    atomic_int snapshots;
};

struct member {
    struct team *team;
    uint64_t stream;
    uint64_t size;
    uint32_t device;
};

// A member's n-th request asks for size + n bytes, so that its order can be read from the history.
static void *record(void *opaque) {
    struct member *member = opaque;
    struct vr_world *world = &member->team->world;
    uint64_t held[8] = {0};
    for (uint64_t i = 0; i < PAIRS; i++) {
        uint64_t *slot = &held[i % 8];
        if (*slot != 0 && vram_free(world->allocator, *slot) != VRAM_OK) abort();
        if (vram_malloc(world->allocator, member->device, member->size + i, member->stream, slot) != VRAM_OK) abort();
    }
    for (size_t i = 0; i < 8; i++) {
        if (vram_free(world->allocator, held[i]) != VRAM_OK) abort();
    }
    atomic_fetch_sub(&member->team->running, 1);
    return NULL;
}

static void *photograph(void *opaque) {
    struct team *team = opaque;
    do {
        struct vram_recording *recording = NULL;
        if (vram_snapshot(team->world.allocator, NULL, &recording, NULL) != VRAM_OK) abort();
        if (vr_model_check(vr_recording_model(recording), NULL) != VRAM_OK) abort();
        vram_recording_destroy(recording);
    } while (atomic_fetch_add(&team->snapshots, 1) + 1 < MOST_PICTURES && atomic_load(&team->running) != 0);
    return NULL;
}

static void run_team(struct team *team, uint32_t devices, bool one_stream, void *(*other)(void *)) {
    pthread_t threads[THREADS], watcher;
    struct member members[THREADS];
    atomic_store(&team->running, THREADS);
    assert_int_equal(pthread_create(&watcher, NULL, other, team), 0);
    for (size_t i = 0; i < THREADS; i++) {
        const uint32_t device = (uint32_t)i % devices;
        members[i] = (struct member){team, team->world.stream[device][one_stream ? 1 : i % VR_WORLD_STREAMS], (i + 1) * 100000, device};
        assert_int_equal(pthread_create(&threads[i], NULL, record, &members[i]), 0);
    }
    for (size_t i = 0; i < THREADS; i++) assert_int_equal(pthread_join(threads[i], NULL), 0);
    assert_int_equal(pthread_join(watcher, NULL), 0);
}

static void expect_all_events(const struct vram_recording *recording, uint32_t devices) {
    const struct vr_model *model = model_of(recording);
    for (uint64_t m = 0; m < THREADS; m++) {
        const struct vr_history *history = &model->histories[m % devices];
        uint64_t next = 0, requested = 0, completed = 0;
        for (size_t i = 0; i < history->count; i++) {
            const uint64_t low = (m + 1) * 100000, size = history->size_bytes[i];
            if (size < low || size >= low + PAIRS) continue;
            if (history->action[i] == VR_ACTION_ALLOC) assert_int_equal(size, low + next++);
            requested += history->action[i] == VR_ACTION_FREE_REQUESTED;
            completed += history->action[i] == VR_ACTION_FREE_COMPLETED;
        }
        assert_int_equal(next, PAIRS);
        assert_int_equal(requested, PAIRS);
        assert_int_equal(completed, PAIRS);
    }
}

static void no_event_is_lost_or_out_of_order(uint32_t devices, bool one_stream, enum vram_history_level context) {
    struct team team = {.snapshots = 0};
    history_world(&team.world, "", devices, (uint64_t)8 << 30);
    start(&team.world, &(struct vram_history_options){.context = context, .stacks = VRAM_HISTORY_STACKS_C});
    // The first lookup of names may load a library under the loader's lock, which the thread sanitizer does not know.
    give(&team.world, take(&team.world, 100, 0));
    vram_recording_destroy(snap(&team.world, NULL));
    run_team(&team, devices, one_stream, photograph);
    struct vram_recording *recording = snap(&team.world, NULL);
    expect_all_events(recording, devices);
    assert_true(atomic_load(&team.snapshots) > 0);
    expect_exact(recording);
    vram_recording_destroy(recording);
    history_end(&team.world);
}

static void streams_of_one_device(void **state) {
    (void)state;
    no_event_is_lost_or_out_of_order(1, false, VRAM_HISTORY_NONE);
}
static void one_stream(void **state) {
    (void)state;
    no_event_is_lost_or_out_of_order(1, true, VRAM_HISTORY_NONE);
}
static void two_devices_with_stacks(void **state) {
    (void)state;
    no_event_is_lost_or_out_of_order(2, false, VRAM_HISTORY_ALL);
}

static void *restart(void *opaque) {
    struct team *team = opaque;
    for (uint64_t round = 0; atomic_load(&team->running) != 0; round++) {
        const struct vram_history_options options = {
            .context = (enum vram_history_level)(round % 4),
            .stacks = VRAM_HISTORY_STACKS_C,
            .max_entries = 1 + round % 1000,
            .clear_history = round % 3 == 0,
            .compile_context = round % 2 == 0,
        };
        if (vram_history_start(team->world.allocator, &options, NULL) != VRAM_OK) abort();
        struct vram_recording *recording = NULL;
        if (vram_step(team->world.allocator, 0, "round") != VRAM_OK) abort();
        if (vram_snapshot(team->world.allocator, NULL, &recording, NULL) != VRAM_OK) abort();
        vram_recording_destroy(recording);
        if (round % 2 != 0 && vram_history_stop(team->world.allocator) != VRAM_OK) abort();
    }
    return NULL;
}

// The recording of a history that starts and stops meanwhile is undefined, but it must not be damaged.
static void a_history_may_come_and_go(void **state) {
    (void)state;
    struct team team = {.snapshots = 0};
    history_world(&team.world, "", 2, (uint64_t)8 << 30);
    run_team(&team, 2, false, restart);
    struct vram_error error = {.message = ""};
    if (vram_check(team.world.allocator, &error) != VRAM_OK) fail_msg("%s", error.message);
    history_end(&team.world);
}

// Suspending a pool adds a mark to the history, whatever the history does at that moment.
static void *change_limits(void *opaque) {
    struct team *team = opaque;
    for (unsigned i = 0; atomic_load(&team->running) != 0; i++) {
        const struct vram_history_options options = {.max_entries = 5 + i % 7, .context = VRAM_HISTORY_NONE, .clear_history = i % 3 == 0};
        if (vram_history_start(team->world.allocator, &options, NULL) != VRAM_OK) abort();
    }
    return NULL;
}

static void pools_sleep_meanwhile(void **state) {
    (void)state;
    enum { ROUNDS = 400 };
    struct team team = {.running = 1};
    struct vram_pool *pool = NULL;
    const struct vram_pool_options options = {.tag = "weights"};
    uint64_t address = 0;
    history_world(&team.world, "", 1, 0);
    OK(vram_pool_create(team.world.allocator, 0, &options, &pool));
    OK(vram_pool_malloc(pool, 4096, 0, &address));
    OK(vram_history_start(team.world.allocator, NULL, NULL));
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, change_limits, &team), 0);
    const struct vram_sleep_choice choice = {.pool = pool, .level = VRAM_SLEEP_DISCARD};
    for (int i = 0; i < ROUNDS; i++) {
        OK(vram_sleep(team.world.allocator, 0, &choice, 1, NULL, NULL));
        OK(vram_wake(team.world.allocator, 0, &choice, 1, NULL, NULL));
    }
    atomic_store(&team.running, 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    OK(vram_free(team.world.allocator, address));
    vram_pool_release(pool);
    history_end(&team.world);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(streams_of_one_device),   cmocka_unit_test(one_stream),
        cmocka_unit_test(two_devices_with_stacks), cmocka_unit_test(a_history_may_come_and_go),
        cmocka_unit_test(pools_sleep_meanwhile),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
