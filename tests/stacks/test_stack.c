// Stacks of C code: the same frames and addresses as backtrace() at the same place; modules loaded and unloaded; depth; threads; forks.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <execinfo.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#include "history/stack_modules.h"
#include "history/stack_python_code.h"
#include "history/stack_table.h"
#include "support/expect.h"
#include "support/random.h"

static struct vram_stacks *stacks;

static int make_table(void **state) {
    (void)state;
    return vram_stacks_create(NULL, &stacks) == VRAM_OK ? 0 : 1;
}
static int drop_table(void **state) {
    (void)state;
    vram_stacks_destroy(stacks);
    return 0;
}

// Checks that two stacks are equal below the frame that captured them.
static void assert_same_callers(uint32_t id, void *const *addresses, int count) {
    const struct vr_stack *stack = vr_stacks_get(stacks, id);
    assert_non_null(stack);
    // A sanitizer's backtrace() has its own frames in front.
    const int more = count - (int)stack->count;
    assert_in_range(more, 0, 2);
    for (int i = 1; i + more < count; i++) assert_int_equal(vr_code_address(stack->words[i]), (uint64_t)(uintptr_t)addresses[i + more]);
}

VR_NOINLINE static int compare(const void *left, const void *right) {
    void *addresses[64];
    const int count = backtrace(addresses, 64);
    assert_same_callers(vram_stack_take(stacks, VRAM_STACK_C, 0), addresses, count);
    return *(const int *)left - *(const int *)right;
}

static void same_frames_as_backtrace(void **state) {
    (void)state;
    int numbers[] = {3, 1, 2};
    qsort(numbers, 3, sizeof numbers[0], compare); // through frames of the C library
    assert_int_equal(numbers[0], 1);
}

// Captures from calls below the function whose caller is wanted.
VR_NOINLINE static uint32_t take_deeper(const void *frame, unsigned depth) {
    const uint32_t id = depth == 0 ? vram_stack_take_at(stacks, VRAM_STACK_C, frame) : take_deeper(frame, depth - 1);
    VR_NO_TAIL_CALL();
    return id;
}

VR_NOINLINE static uint32_t take_for_caller(unsigned depth) {
    const uint32_t id = take_deeper(__builtin_frame_address(0), depth);
    VR_NO_TAIL_CALL();
    return id;
}

static void a_frame_further_out_begins_the_stack(void **state) {
    (void)state;
    uint32_t ids[4];
    for (volatile unsigned i = 0; i < 4; i++) ids[i] = take_for_caller(i); // volatile: one call in a loop
    for (unsigned i = 1; i < 4; i++) assert_int_equal(ids[i], ids[0]);
    struct vram_frame frame;
    assert_true(vram_stack_frames(stacks, ids[0], &frame, 1) >= 1);
    assert_string_equal(frame.name, __func__);
    const uint32_t here = vram_stack_take_at(stacks, VRAM_STACK_C, NULL);
    assert_true(vram_stack_frames(stacks, here, &frame, 1) >= 1);
    assert_string_equal(frame.name, __func__);
    assert_int_equal(vr_stacks_get(stacks, ids[0])->words[1], vr_stacks_get(stacks, here)->words[1]);
    assert_int_equal(vram_stack_take_at(stacks, VRAM_STACK_NONE, NULL), 0);
}

VR_NOINLINE static uint32_t recurse(unsigned depth, uint32_t *kept) {
    volatile uint32_t here = depth;
    if (depth == 0) return vram_stack_take(stacks, VRAM_STACK_C, 0);
    const uint32_t id = recurse(depth - 1, kept);
    *kept += here;
    return id;
}

static void deep_recursion_keeps_the_innermost(void **state) {
    (void)state;
    uint32_t sum = 0;
    const uint32_t id = recurse(10000, &sum);
    const struct vr_stack *stack = vr_stacks_get(stacks, id);
    assert_int_equal(stack->count, 128);
    struct vram_frame frame[2];
    assert_true(vram_stack_frames(stacks, id, frame, 2) >= 128);
    assert_string_equal(frame[0].name, "recurse");
    assert_string_equal(frame[1].name, "recurse");

    struct vram_stacks *large;
    assert_int_equal(vram_stacks_create(&(struct vram_stack_options){.max_frames = 100000}, &large), VRAM_OK);
    struct vram_stacks *small = stacks;
    stacks = large;
    assert_int_equal(vr_stacks_get(stacks, recurse(10000, &sum))->count, 1024);
    stacks = small;
    vram_stacks_destroy(large);
}

VR_NOINLINE static uint32_t take_skipping(uint32_t skip) {
    const uint32_t id = vram_stack_take(stacks, VRAM_STACK_C, skip);
    VR_NO_TAIL_CALL();
    return id;
}

static void equal_stacks_have_one_number(void **state) {
    (void)state;
    uint32_t ids[3];
    for (volatile uint32_t i = 0; i < 3; i++) ids[i] = take_skipping(i / 2); // volatile: one call in a loop, not three
    assert_int_not_equal(ids[0], 0);
    assert_int_equal(ids[0], ids[1]);
    assert_int_equal(vr_stacks_get(stacks, ids[0])->words[1], vr_stacks_get(stacks, ids[2])->words[0]);
    assert_int_equal(vram_stack_take(stacks, VRAM_STACK_NONE, 0), 0);
    assert_int_equal(vram_stack_take(stacks, VRAM_STACK_C, 100000), 0);
    assert_int_equal(vram_stack_take(stacks, VRAM_STACK_PYTHON, 0), 0); // there is no Python here
    struct vram_stacks_counts counts;
    vram_get_stacks_counts(stacks, &counts);
    assert_true(counts.stacks >= 2 && counts.frames > 2 && counts.bytes > 1000);
}

VR_NOINLINE static uint32_t named_function(unsigned *line) {
    *line = __LINE__ + 1;
    const uint32_t id = vram_stack_take(stacks, VRAM_STACK_C, 0);
    VR_NO_TAIL_CALL();
    return id;
}

static void frames_have_names(void **state) {
    (void)state;
    unsigned line;
    struct vram_frame frames[64], again[64];
    const uint32_t id = named_function(&line);
    const size_t count = vram_stack_frames(stacks, id, frames, 64);
    assert_true(count > 3 && count < 64);
    assert_string_equal(frames[0].name, "named_function");
    assert_string_equal(frames[1].name, "frames_have_names");
    if (dlopen("libdw.so.1", RTLD_NOW) != NULL) {
        assert_int_equal(frames[0].line, line);
        assert_non_null(strstr(frames[0].filename, "test_stack.c"));
    }
    assert_int_equal(vram_stack_frames(stacks, id, again, 2), count);
    assert_ptr_equal(frames[1].name, again[1].name);
    assert_int_equal(vram_stack_frames(stacks, 12345678, frames, 64), 0);
    assert_memory_equal(vram_stack_module(stacks, id, NULL, 0), "test_stack", strlen("test_stack"));
    static const char *const skip[] = {"test_stack"};
    assert_non_null(strstr(vram_stack_module(stacks, id, skip, 1), "libc"));
}

// --- signals, other stacks -----------------------------------------------------------------------------------------------------

static volatile uint32_t handled;
static void handler(int number) {
    (void)number;
    handled = vram_stack_take(stacks, VRAM_STACK_C, 0);
}

VR_NOINLINE static void interrupted(void) {
    (void)raise(SIGUSR1);
    VR_NO_TAIL_CALL();
}

static bool has_name(uint32_t id, const char *name) {
    struct vram_frame frames[200];
    const size_t count = vram_stack_frames(stacks, id, frames, 200);
    for (size_t i = 0; i < count && i < 200; i++) {
        if (strcmp(frames[i].name, name) == 0) return true;
    }
    return false;
}

static void through_a_signal_handler(void **state) {
    (void)state;
#ifdef __SANITIZE_THREAD__
    skip(); // the other stack's bounds come from a file, which ThreadSanitizer rejects in a handler
#endif
    static char alternate[65536];
    const stack_t other = {.ss_sp = alternate, .ss_size = sizeof alternate};
    struct sigaction action = {.sa_handler = handler};
    assert_int_equal(sigaltstack(&other, NULL), 0);
    for (int on_other = 0; on_other < 2; on_other++) {
        action.sa_flags = on_other ? SA_ONSTACK : 0;
        assert_int_equal(sigaction(SIGUSR1, &action, NULL), 0);
        handled = 0;
        interrupted();
        assert_true(has_name(handled, "handler"));
        assert_true(has_name(handled, "interrupted"));
        assert_true(has_name(handled, "through_a_signal_handler"));
    }
    const stack_t none = {.ss_flags = SS_DISABLE};
    assert_int_equal(sigaltstack(&none, NULL), 0);
}

// --- stacks recorded by a program -------------------------------------------------------------------------------------------------

static ucontext_t home, away;
static uint32_t taken_away;

static void coroutine(void) {
    for (;;) {
        taken_away = vram_stack_take(stacks, VRAM_STACK_C, 0);
        (void)swapcontext(&away, &home);
    }
}

// Runs more coroutines than are remembered, each twice; then a smaller one at the address of a finished one.
static void on_coroutines(void **state) {
    (void)state;
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
    skip(); // sanitizers must be notified of such stacks
#endif
    enum { COROUTINES = 7, BYTES = 65536 };
    char *memory[COROUTINES];
    for (int i = 0; i < 2 * COROUTINES + 1; i++) {
        const int which = i % COROUTINES;
        const size_t bytes = i < 2 * COROUTINES ? BYTES : BYTES / 2;
        if (i == 2 * COROUTINES) assert_int_equal(munmap(memory[which], BYTES), 0);
        void *place = i < COROUTINES ? NULL : memory[which];
        if (i % (2 * COROUTINES) < COROUTINES)
            memory[which] = mmap(place, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        assert_true(memory[which] != MAP_FAILED && (place == NULL || memory[which] == place));
        assert_int_equal(getcontext(&away), 0);
        away.uc_stack = (stack_t){.ss_sp = memory[which], .ss_size = bytes};
        makecontext(&away, coroutine, 0);
        taken_away = 0;
        assert_int_equal(swapcontext(&home, &away), 0);
        assert_true(has_name(taken_away, "coroutine"));
        assert_true(has_name(vram_stack_take(stacks, VRAM_STACK_C, 0), "on_coroutines"));
    }
    const uint64_t start = (uint64_t)(uintptr_t)memory[0];
    assert_true(vr_os_is_mapped(start + 100, start + BYTES / 2));
    assert_int_equal(munmap(memory[0] + BYTES / 4, BYTES / 4), 0);
    assert_true(vr_os_is_mapped(start + 100, start + BYTES / 4));
    assert_false(vr_os_is_mapped(start + 100, start + BYTES / 2));
    for (int i = 0; i < COROUTINES; i++) assert_int_equal(munmap(memory[i], i == 0 ? BYTES / 4 : BYTES), 0);
}

// --- modules that come and go --------------------------------------------------------------------------------------------------

struct called {
    uint32_t id;
    uint64_t place;
};

static void take_here(void *data) {
    struct called *called = data;
    called->id = vram_stack_take(stacks, VRAM_STACK_C, 0);
    VR_NO_TAIL_CALL();
}

static struct called through_module(const char *path, const char *function) {
    struct called called = {0};
    void *module = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    assert_non_null(module);
    void (*call)(void (*)(void *), void *);
    void *symbol = dlsym(module, function);
    assert_non_null(symbol);
    memcpy(&call, &symbol, sizeof call);
    call(take_here, &called);
    called.place = (uint64_t)(uintptr_t)symbol;
    assert_int_equal(dlclose(module), 0);
    return called;
}

static void an_address_stands_for_its_module_at_the_time(void **state) {
    (void)state;
    for (int round = 0; round < 3; round++) {
        const struct called first = through_module(VRAM_STACK_MODULES "/libvram_stack_one.so", "module_one");
        const struct called second = through_module(VRAM_STACK_MODULES "/libvram_stack_two.so", "module_two");
        // The point of the test: both functions had the same address.
        if (first.place != second.place) print_message("the system put the modules at different places\n");
        assert_int_not_equal(first.id, second.id);
        assert_true(has_name(first.id, "module_one"));
        assert_false(has_name(first.id, "module_two"));
        assert_true(has_name(second.id, "module_two"));
        assert_false(has_name(second.id, "module_one"));
    }
}

// --- threads and forks ---------------------------------------------------------------------------------------------------------

enum { THREADS = 4, DEPTHS = 60, ROUNDS = 30 };

static void *take_many(void *data) {
    uint32_t *ids = data, sum = 0;
    for (int round = 0; round < ROUNDS; round++) {
        for (unsigned depth = 0; depth < DEPTHS; depth++) {
            const uint32_t id = recurse(depth, &sum);
            if (round == 0) ids[depth] = id;
            if (id == 0 || id != ids[depth]) ids[depth] = UINT32_MAX;
        }
        struct vram_frame frame;
        if (round % 10 == 0 && vram_stack_frames(stacks, ids[3], &frame, 1) == 0) ids[3] = UINT32_MAX;
    }
    return NULL;
}

static void threads_agree(void **state) {
    (void)state;
    pthread_t threads[THREADS];
    static uint32_t ids[THREADS][DEPTHS];
    for (int i = 0; i < THREADS; i++) assert_int_equal(pthread_create(&threads[i], NULL, take_many, ids[i]), 0);
    for (int i = 0; i < THREADS; i++) assert_int_equal(pthread_join(threads[i], NULL), 0);
    for (int i = 0; i < THREADS; i++) {
        for (int depth = 0; depth < DEPTHS; depth++) {
            assert_int_equal(ids[i][depth], ids[0][depth]);
            assert_int_not_equal(ids[i][depth], UINT32_MAX);
        }
    }
}

static _Atomic bool stop;
static void *take_new(void *data) {
    uint32_t sum = 0;
    for (unsigned depth = 0; !atomic_load(&stop); depth = (depth + 1) % 100) (void)recurse(depth, &sum);
    return data;
}

static void a_child_can_take_stacks(void **state) {
    (void)state;
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, take_new, NULL), 0);
    for (int i = 0; i < 200; i++) {
        const pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0) {
            uint32_t sum = 0;
            (void)alarm(20); // a lock that stays held ends here
            for (unsigned depth = 0; depth < 50; depth++) {
                if (recurse(100 + depth, &sum) == 0) _exit(1);
            }
            _exit(0);
        }
        int status;
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_int_equal(status, 0);
    }
    atomic_store(&stop, true);
    assert_int_equal(pthread_join(thread, NULL), 0);
}

// --- lines of Python -----------------------------------------------------------------------------------------------------------

static void lines_of_the_three_tables(void **state) {
    (void)state;
    // As CPython's documentation describes each form: two bytes per step.
    static const unsigned char lnotab[] = {0, 1, 6, 1, 44, 5}, pep626[] = {6, 1, 4, (unsigned char)-128, 4, 2, 2, (unsigned char)-1};
    const struct vr_python_code old = {.lines = lnotab, .line_bytes = sizeof lnotab, .first_line = 10, .form = VR_PYTHON_LNOTAB};
    assert_int_equal(vr_python_line(&old, 0), 11);
    assert_int_equal(vr_python_line(&old, 5), 11);
    assert_int_equal(vr_python_line(&old, 6), 12);
    assert_int_equal(vr_python_line(&old, 50), 17);
    const struct vr_python_code middle = {.lines = pep626, .line_bytes = sizeof pep626, .first_line = 10, .form = VR_PYTHON_PEP626};
    assert_int_equal(vr_python_line(&middle, 0), 11);
    assert_int_equal(vr_python_line(&middle, 6), 0);
    assert_int_equal(vr_python_line(&middle, 10), 13);
    assert_int_equal(vr_python_line(&middle, 14), 12);
    assert_int_equal(vr_python_line(&middle, 16), 0);
    // Form 11: one line on. 15: no line. 14, the long form: lines -2 (svarint, end line, columns). 13: no columns, with +1.
    static const unsigned char pep657[] = {128 | 11 << 3 | 1, 1, 2, 128 | 15 << 3 | 0, 128 | 14 << 3 | 0, 5, 0, 1, 2, 128 | 13 << 3 | 2, 2};
    const struct vr_python_code now = {.lines = pep657, .line_bytes = sizeof pep657, .first_line = 10, .form = VR_PYTHON_PEP657};
    assert_int_equal(vr_python_line(&now, 0), 11);
    assert_int_equal(vr_python_line(&now, 3), 11);
    assert_int_equal(vr_python_line(&now, 4), 0);
    assert_int_equal(vr_python_line(&now, 6), 9);
    assert_int_equal(vr_python_line(&now, 8), 10);
    assert_int_equal(vr_python_line(&now, 13), 10);
    assert_int_equal(vr_python_line(&now, 14), 0);
}

// --- memoized walks ------------------------------------------------------------------------------------------------------------

// A call tree of two functions that call each other, one with a frame pointer. All frames of each are alike, so only return addresses tell
// which path was taken.
typedef uint32_t descent(struct vram_stacks *table, uint32_t way, unsigned depth);
#define DESCEND_BY(number, other)                                                                                                          \
    case number:                                                                                                                           \
        id = other(table, way >> 2, depth - 1);                                                                                            \
        __asm__ volatile("" : "+r"(id) : "i"(number));                                                                                     \
        break
#define DESCEND(other)                                                                                                                     \
    uint32_t id = 0;                                                                                                                       \
    switch (depth == 0 ? 4 : way & 3) {                                                                                                    \
        DESCEND_BY(0, other);                                                                                                              \
        DESCEND_BY(1, other);                                                                                                              \
        DESCEND_BY(2, other);                                                                                                              \
        DESCEND_BY(3, other);                                                                                                              \
    default: id = vram_stack_take(table, VRAM_STACK_C, 0);                                                                                 \
    }                                                                                                                                      \
    VR_NO_TAIL_CALL();                                                                                                                     \
    return id

static descent descend;
VR_NOINLINE static uint32_t descend_by_frame_pointer(struct vram_stacks *table, uint32_t way, unsigned depth) {
    volatile size_t bytes = 32; // unknown to the compiler, so the stack pointer alone does not locate the frame
    volatile unsigned char *room = __builtin_alloca(bytes);
    room[0] = 1;
    DESCEND(descend);
}
VR_NOINLINE static uint32_t descend(struct vram_stacks *table, uint32_t way, unsigned depth) { DESCEND(descend_by_frame_pointer); }

// Every path is taken often and in random order, at the same stack addresses; a table without knowledge walks each time.
static void a_walk_by_heart_is_the_walk(void **state) {
    (void)state;
    enum { WAYS = 256 };
    uint32_t known[WAYS] = {0};
    uint64_t random = 7;
    for (volatile unsigned i = 0; i < 4 * WAYS; i++) {
        const uint32_t way = (uint32_t)vr_random_below(&random, WAYS);
        struct vram_stacks *fresh;
        assert_int_equal(vram_stacks_create(NULL, &fresh), VRAM_OK);
        uint32_t ids[2];
        for (volatile unsigned k = 0; k < 2; k++) ids[k] = descend(k == 0 ? fresh : stacks, way, 4); // one call, so its address is the same
        const struct vr_stack *walked = vr_stacks_get(fresh, ids[0]), *told = vr_stacks_get(stacks, ids[1]);
        assert_non_null(walked);
        assert_non_null(told);
        assert_int_equal(walked->count, told->count);
        assert_memory_equal(walked->words, told->words, walked->count * sizeof walked->words[0]);
        assert_true(known[way] == 0 || known[way] == ids[1]);
        known[way] = ids[1];
        vram_stacks_destroy(fresh);
    }
    for (size_t a = 0; a < WAYS; a++) {
        for (size_t b = 0; b < a; b++) assert_true(known[a] == 0 || known[a] != known[b]);
    }
}

// Each table has its own numbers, even one at the address of a destroyed table.
static void what_a_table_knew_goes_with_it(void **state) {
    (void)state;
    for (volatile unsigned i = 0; i < 20; i++) {
        struct vram_stacks *table;
        assert_int_equal(vram_stacks_create(NULL, &table), VRAM_OK);
        for (unsigned k = 0; k < i; k++) assert_int_equal(descend(table, k, 3), k + 1); // stacks of other paths come first
        for (volatile unsigned k = 0; k < 2; k++) assert_int_equal(descend(table, 63, 3), i + 1);
        vram_stacks_destroy(table);
    }
}

// Many threads at once, whose stacks are at different places and share cache entries.
static void *descend_often(void *argument) {
    const uint32_t way = *(const uint32_t *)argument;
    uint32_t first = 0;
    for (volatile unsigned i = 0; i < 20000; i++) {
        const uint32_t id = descend(stacks, way + (i & 1), 4);
        if ((i & 1) != 0) continue;
        if (first != 0 && id != first) return argument;
        first = id;
    }
    return NULL;
}

static void threads_know_their_own(void **state) {
    (void)state;
    enum { DESCENDING = 8 };
    pthread_t threads[DESCENDING];
    uint32_t ways[DESCENDING];
    for (uint32_t i = 0; i < DESCENDING; i++) {
        ways[i] = i * 8;
        assert_int_equal(pthread_create(&threads[i], NULL, descend_often, &ways[i]), 0);
    }
    for (uint32_t i = 0; i < DESCENDING; i++) {
        void *wrong;
        assert_int_equal(pthread_join(threads[i], &wrong), 0);
        assert_null(wrong);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(same_frames_as_backtrace),
        cmocka_unit_test(a_frame_further_out_begins_the_stack),
        cmocka_unit_test(deep_recursion_keeps_the_innermost),
        cmocka_unit_test(equal_stacks_have_one_number),
        cmocka_unit_test(frames_have_names),
        cmocka_unit_test(through_a_signal_handler),
        cmocka_unit_test(on_coroutines),
        cmocka_unit_test(an_address_stands_for_its_module_at_the_time),
        cmocka_unit_test(threads_agree),
        cmocka_unit_test(a_walk_by_heart_is_the_walk),
        cmocka_unit_test(what_a_table_knew_goes_with_it),
        cmocka_unit_test(threads_know_their_own),
        cmocka_unit_test(a_child_can_take_stacks),
        cmocka_unit_test(lines_of_the_three_tables),
    };
    return cmocka_run_group_tests(tests, make_table, drop_table);
}
