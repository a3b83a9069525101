// Tests mutexes and condition variables of os/threads.c: a lock taken by one thread, a contended one, and waits.
#include "support/expect.h"

#include "os/os.h"

enum { THREADS = 4, ROUNDS = 20000 };

struct shared {
    struct vr_mutex mutex;
    struct vr_signal signal;
    uint64_t count;
    bool ready;
};

static void count_up(void *argument) {
    struct shared *shared = argument;
    for (int i = 0; i < ROUNDS; i++) {
        if (i % 2 == 0 || !vr_mutex_try_lock(&shared->mutex)) vr_mutex_lock(&shared->mutex);
        const uint64_t before = shared->count;
        if (i % 1000 == 0) vr_os_yield(); // so that others find it locked, and sleep
        shared->count = before + 1;
        vr_mutex_unlock(&shared->mutex);
    }
}

// Locked before a second thread exists, and unlocked when it does.
static void several_threads_count(void **state) {
    (void)state;
    struct shared shared = {.count = 0};
    struct vr_thread threads[THREADS];
    vr_mutex_init(&shared.mutex);
    assert_true(vr_mutex_try_lock(&shared.mutex));
    assert_false(vr_mutex_try_lock(&shared.mutex));
    for (int t = 0; t < THREADS; t++) assert_int_equal(vr_thread_start(&threads[t], count_up, &shared), VRAM_OK);
    vr_os_yield();
    assert_int_equal(shared.count, 0);
    vr_mutex_unlock(&shared.mutex);
    for (int t = 0; t < THREADS; t++) vr_thread_join(&threads[t]);
    assert_int_equal(shared.count, THREADS * ROUNDS);
    vr_mutex_destroy(&shared.mutex);
}

static void make_ready(void *argument) {
    struct shared *shared = argument;
    vr_mutex_lock(&shared->mutex);
    shared->ready = true;
    vr_signal_raise(&shared->signal);
    vr_mutex_unlock(&shared->mutex);
}

static void a_wait_ends_when_it_is_raised_or_over(void **state) {
    (void)state;
    struct shared shared = {.ready = false};
    struct vr_thread thread;
    vr_mutex_init(&shared.mutex);
    vr_signal_init(&shared.signal);
    vr_mutex_lock(&shared.mutex);
    vr_signal_wait(&shared.signal, &shared.mutex, 1000000);
    assert_false(shared.ready);
    assert_int_equal(vr_thread_start(&thread, make_ready, &shared), VRAM_OK);
    while (!shared.ready) vr_signal_wait(&shared.signal, &shared.mutex, UINT64_MAX);
    vr_mutex_unlock(&shared.mutex);
    vr_thread_join(&thread);
    vr_signal_destroy(&shared.signal);
    vr_mutex_destroy(&shared.mutex);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(several_threads_count),
        cmocka_unit_test(a_wait_ends_when_it_is_raised_or_over),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
