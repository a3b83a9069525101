// Tests queries to the loader while other threads fork: the lock is free in the child.
#define _POSIX_C_SOURCE 200809L
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "os/os.h"

enum { FORKS = 300, THREADS = 3 };

static atomic_bool stop;

static void note(void *context, uint64_t loads, uint64_t unloads) {
    (void)unloads;
    *(uint64_t *)context = loads;
}

static void ask(void *unused) {
    uint64_t loads;
    (void)unused;
    while (!atomic_load(&stop)) vr_os_modules_hold(note, &loads);
}

// Runs in the child, which queries and itself forks. An alarm ends a child that waits forever.
static void be_child(void) {
    uint64_t loads = UINT64_MAX;
    int state = 1;
    (void)alarm(10);
    vr_os_modules_hold(note, &loads);
    const pid_t child = fork();
    if (child == 0) _exit(loads == UINT64_MAX);
    _exit(waitpid(child, &state, 0) != child || state != 0);
}

static void children_are_free_of_threads_that_ask(void **state) {
    (void)state;
    struct vr_thread threads[THREADS];
    for (size_t i = 0; i < THREADS; i++) assert_int_equal(vr_thread_start(&threads[i], ask, NULL), VRAM_OK);
    for (int i = 0; i < FORKS; i++) {
        int ended = 1;
        const pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0) be_child();
        assert_int_equal(waitpid(child, &ended, 0), child);
        assert_int_equal(ended, 0);
    }
    atomic_store(&stop, true);
    for (size_t i = 0; i < THREADS; i++) vr_thread_join(&threads[i]);
}

struct seen {
    unsigned all, lasting;
    bool library_lasts;
};

static bool count(void *context, const struct vr_os_module *module) {
    struct seen *seen = context;
    const uint64_t in_library = (uint64_t)(uintptr_t)getpid;
    seen->all++;
    seen->lasting += module->lasting;
    if (in_library >= module->start && in_library < module->end) seen->library_lasts = module->lasting;
    return true;
}

// Looks up both without a symbol.
static void the_program_and_the_c_library_last(void **state) {
    (void)state;
    struct seen seen = {0};
    vr_os_modules(count, &seen);
    assert_true(seen.all >= 2);
    assert_true(seen.library_lasts);
    assert_in_range(seen.lasting, 1, 2);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(children_are_free_of_threads_that_ask),
        cmocka_unit_test(the_program_and_the_c_library_last),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
