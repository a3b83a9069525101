// Names stacks while one allocation after another is refused, including libdw's: frames stay unnamed, and nothing crashes.
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "model/recording.h"
#include "support/expect.h"
#include "vram/log.h"
#include "vram/recording.h"
#include "vram/stack.h"

// Wraps every allocation of the process, including libraries'.
#define STANDS_IN __attribute__((visibility("default")))
extern void *__libc_malloc(size_t size_bytes);
extern void *__libc_calloc(size_t count, size_t size_bytes);
extern void *__libc_realloc(void *old, size_t size_bytes);

static long to_go = -1; // allocations granted before one is refused; -1: all
static bool goes_on;    // refuse all later ones too

static bool refused(void) {
    if (to_go < 0) return false;
    if (to_go > 0) {
        to_go--;
        return false;
    }
    if (!goes_on) to_go = -1;
    return true;
}

STANDS_IN void *malloc(size_t size_bytes) { return refused() ? NULL : __libc_malloc(size_bytes); }
STANDS_IN void *calloc(size_t count, size_t size_bytes) { return refused() ? NULL : __libc_calloc(count, size_bytes); }
STANDS_IN void *realloc(void *old, size_t size_bytes) { return refused() ? NULL : __libc_realloc(old, size_bytes); }

static char path[64];

VR_NOINLINE static void record(void) {
    struct vram_stacks *stacks;
    struct vram_log *log;
    (void)snprintf(path, sizeof path, "test_symbolize_memory.%d.vram", (int)getpid());
    EXPECT_OK(vram_stacks_create(NULL, &stacks));
    EXPECT_OK(vram_log_create(path, NULL, &log, NULL));
    struct vram_log_event event = {.address = 4096, .size_bytes = 512, .action = VRAM_LOG_ALLOC, .time_ns = 1000000};
    EXPECT_OK(vram_stack_log(stacks, vram_stack_take(stacks, VRAM_STACK_C, 0), log, &event.stack));
    EXPECT_OK(vram_log_append(log, &event, 1));
    EXPECT_OK(vram_log_close(log));
    vram_stacks_destroy(stacks);
}

static bool has_name(const struct vram_recording *recording, const char *name) {
    const struct vr_model *model = vr_recording_model(recording);
    for (uint32_t i = 0; i < model->frames.count; i++)
        if (strcmp(vr_model_string(model, model->frames.name[i]), name) == 0) return true;
    return false;
}

static void *sleeps(void *unused) {
    for (;;) (void)pause();
    return unused;
}

enum { AS_MUCH = 100 };
static uint64_t all_lined; // frames that have a line if there is memory

// Names the recording's frames while memory runs out, in its own process, with or without a second thread. Returns 0 if all went as it
// should, and AS_MUCH if all frames also have their lines.
static int name_frames(bool threads, long granted, bool for_good) {
    struct vram_recording *recording;
    struct vram_symbols_counts counts;
    pthread_t thread;
    if (threads && pthread_create(&thread, NULL, sleeps, NULL) != 0) return 1;
    if (vram_recording_read_file(path, &recording, NULL) != VRAM_OK) return 2;
    goes_on = for_good;
    to_go = granted;
    const enum vram_status status = vram_recording_symbolize(recording, NULL, &counts);
    to_go = -1;
    if (status != VRAM_OK && status != VRAM_NO_HOST_MEMORY) return 3;
    if (vr_model_check(vr_recording_model(recording), NULL) != VRAM_OK) return 4;
    const bool as_much = status == VRAM_OK && counts.lined == all_lined;
    // The missing memory is available again.
    if (vram_recording_symbolize(recording, NULL, &counts) != VRAM_OK || !has_name(recording, "record")) return 5;
    vram_recording_destroy(recording);
    return as_much ? AS_MUCH : 0;
}

// Returns the status as wait() gives it.
static int in_a_process(bool threads, long granted, bool for_good) {
    int state = -1;
    const pid_t child = fork();
    if (child == 0) {
        const struct rlimit none = {0, 0};
        (void)setrlimit(RLIMIT_CORE, &none);
        (void)alarm(60);
        _exit(name_frames(threads, granted, for_good));
    }
    assert_true(child > 0 && waitpid(child, &state, 0) == child);
    return state;
}

static uint64_t lined(void) {
    struct vram_recording *recording;
    struct vram_symbols_counts counts;
    EXPECT_OK(vram_recording_read_file(path, &recording, NULL));
    EXPECT_OK(vram_recording_symbolize(recording, NULL, &counts));
    assert_true(has_name(recording, "record"));
    vram_recording_destroy(recording);
    return counts.lined;
}

static void try_all(bool threads) {
    record();
    all_lined = lined();
    assert_true(all_lined > 0);
    bool as_much = false;
    for (long granted = 0; !as_much; granted += 1 + granted / 10) {
        for (int for_good = 0; for_good < 2; for_good++) {
            const int state = in_a_process(threads, granted, for_good != 0);
            if (state != 0 && state != AS_MUCH << 8)
                printf("after %ld allocations%s: ended with %x\n", granted, for_good ? ", for good" : "", (unsigned)state);
            assert_true(state == 0 || state == AS_MUCH << 8);
            as_much = for_good != 0 && state != 0;
        }
    }
    assert_int_equal(unlink(path), 0);
}

static void alone(void **state) {
    (void)state;
    try_all(false);
}

static void with_another_thread(void **state) {
    (void)state;
    try_all(true);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(alone), cmocka_unit_test(with_another_thread)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
