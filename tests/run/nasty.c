// nasty.c: a program with bad but allowed habits. Usage: nasty HABIT [NUMBER]. It must print the same and end the same way under
// `vram run`, and every allocation must be in the recording.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#include "calls.h"

static const char *self;
// Allocations that are freed at once.
static void pairs(uint64_t count) {
    for (uint64_t i = 0; i < count; i++) {
        uint64_t address;
        CHECK(call_cuMemAlloc(&address, 1 + i * 977 % 100000) == 0 && call_cuMemFree(address) == 0);
    }
}

static void wait_for(pid_t child) {
    int state;
    CHECK(waitpid(child, &state, 0) == child);
    printf("child %x\n", (unsigned)state);
}

// --- descriptors and files ------------------------------------------------------------------------------------------------------

#define FILES 64

// Closes all unknown descriptors, as daemons do, and reuses the numbers for its own files; so does the child.
static void closes_all(uint64_t count) {
    int files[FILES];
    begin();
    pairs(10);
    CHECK(close_range(3, ~0u, 0) == 0);
    for (int i = 0; i < FILES; i++) {
        char name[32];
        (void)snprintf(name, sizeof name, "own%d", i);
        files[i] = open(name, O_RDWR | O_CREAT | O_TRUNC, 0666);
        CHECK(files[i] == 3 + i && write(files[i], "hello", 5) == 5);
    }
    CHECK(dup2(files[0], 900) == 900 && dup2(files[0], 901) == 901);
    pairs(count);
    (void)fflush(stdout);
    const pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        for (int i = 0; i < FILES; i++) CHECK(write(files[i], "x", 1) == 1);
        CHECK(write(900, "", 0) == 0 && write(901, "", 0) == 0);
        _exit(0);
    }
    wait_for(child);
    for (int i = 0; i < FILES; i++) {
        struct stat facts;
        CHECK(fstat(files[i], &facts) == 0 && facts.st_size == 6);
    }
}

// Makes the next opened files standard input, output, error.
static void closes_standard(void) {
    for (int i = 0; i < 3; i++) (void)close(i);
    begin();
    pairs(10);
    const int first = open("out", O_RDWR | O_CREAT | O_TRUNC, 0666);
    const int second = dup(first), third = dup(first);
    CHECK(dprintf(first, "%d %d %d\n", first, second, third) > 0);
    fprintf(stderr, "to standard error\n");
    printf("to standard output\n");
    pairs(10);
}

// Truncates the recording, as a shell's `> file` does.
static void cuts_recordings(int number) {
    begin();
    pairs(10);
    CHECK(system("for file in *.vram; do [ ! -e \"$file\" ] || : >\"$file\"; done") == 0);
    pairs(number);
    printf("to the end\n");
}

static void counts_descriptors(void) {
    begin();
    pairs(3);
    const int next = open("/dev/null", O_RDONLY);
    for (int i = 0; i <= next; i++) printf("%d %s\n", i, fcntl(i, F_GETFD) < 0 ? "free" : "open");
}

static void limits(int resource, uint64_t value) {
    const struct rlimit limit = {value, value};
    CHECK(setrlimit(resource, &limit) == 0);
}

// --- ends -----------------------------------------------------------------------------------------------------------------------

// A thread to be cancelled at its next cancellation point; memory calls are not such points.
static void *is_cancelled(void *unused) {
    CHECK(call_cuCtxSetCurrent(context) == 0);
    (void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
    (void)pthread_cancel(pthread_self());
    (void)pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, NULL);
    pairs(20);
    printf("not inside\n");
    pthread_testcancel();
    return unused;
}

static void run_threads(size_t count, void *(*function)(void *argument), void *argument, const pthread_attr_t *attributes) {
    pthread_t threads[16];
    for (size_t i = 0; i < count; i++) CHECK(pthread_create(&threads[i], attributes, function, argument) == 0);
    for (size_t i = 0; i < count; i++) CHECK(pthread_join(threads[i], NULL) == 0);
}

static void leave(int number) { exit(number == SIGALRM ? 7 : 8); }

// Most handlers of Ctrl-C end the program wherever it is.
static void ends_from_a_handler(uint64_t after_us) {
    begin();
    const struct itimerval timer = {.it_value.tv_usec = (suseconds_t)after_us};
    CHECK(signal(SIGALRM, leave) != SIG_ERR && setitimer(ITIMER_REAL, &timer, NULL) == 0);
    for (;;) pairs(1000);
}

static pthread_key_t key;
static void give_back(void *address) { CHECK(call_cuMemFree((uint64_t)(uintptr_t)address) == 0); }

static void *keeps_in_a_key(void *unused) {
    uint64_t address;
    CHECK(call_cuCtxSetCurrent(context) == 0 && call_cuMemAlloc(&address, 5000) == 0);
    CHECK(pthread_setspecific(key, (void *)(uintptr_t)address) == 0);
    pairs(20);
    return unused;
}

static void ends_threads(void) {
    begin();
    CHECK(pthread_key_create(&key, give_back) == 0);
    for (int i = 0; i < 10; i++) run_threads(8, keeps_in_a_key, NULL, NULL);
}

static uint64_t late;
static void give_back_late(void) { CHECK(call_cuMemFree(late) == 0); }
__attribute__((destructor)) static void give_back_last(void) {
    if (late != 0) pairs(1);
}

static void frees_at_the_end(void) {
    begin();
    CHECK(atexit(give_back_late) == 0 && call_cuMemAlloc(&late, 1 << 20) == 0);
}

// --- processes --------------------------------------------------------------------------------------------------------------------

static void spawns(void) {
    char command[4200], habit[] = "pairs";
    char *const arguments[] = {(char *)(uintptr_t)self, habit, NULL};
    pid_t child;
    begin();
    pairs(5);
    CHECK(posix_spawn(&child, self, NULL, NULL, arguments, environ) == 0);
    wait_for(child);
    child = vfork();
    if (child == 0) {
        (void)execv(self, arguments);
        _exit(9);
    }
    wait_for(child);
    (void)snprintf(command, sizeof command, "'%s' pairs", self);
    (void)fflush(stdout);
    CHECK(system(command) == 0);
    FILE *pipe = popen(command, "r");
    CHECK(pipe != NULL && pclose(pipe) == 0);
    pairs(5);
}

// Bypasses the C library, so no fork hook runs.
static void forks_raw(void) {
    begin();
    pairs(10);
    const pid_t child = (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
    CHECK(child >= 0);
    pairs(500);
    if (child == 0) _exit(0);
    wait_for(child);
}

static void becomes_a_daemon(void) {
    begin();
    pairs(5);
    CHECK(daemon(1, 0) == 0);
    pairs(50);
    const int done = open("done", O_WRONLY | O_CREAT, 0666);
    CHECK(done >= 0);
}

// --- libraries --------------------------------------------------------------------------------------------------------------------

static atomic_bool stop;

static void *allocates(void *unused) {
    CHECK(call_cuCtxSetCurrent(context) == 0);
    while (!atomic_load(&stop)) pairs(40);
    return unused;
}

// Libraries whose constructors allocate are loaded and unloaded while others allocate: plugin0.so, plugin1.so, ...
static void loads(uint64_t count) {
    begin();
    pthread_t threads[2];
    for (size_t i = 0; i < 2; i++) CHECK(pthread_create(&threads[i], NULL, allocates, NULL) == 0);
    for (uint64_t i = 0; i < count; i++) {
        char name[64];
        (void)snprintf(name, sizeof name, "./plugin%llu.so", (unsigned long long)i);
        void *library = dlopen(name, RTLD_NOW);
        CHECK(library != NULL);
        if (i % 2 == 0) CHECK(dlclose(library) == 0);
    }
    atomic_store(&stop, true);
    for (size_t i = 0; i < 2; i++) CHECK(pthread_join(threads[i], NULL) == 0);
}

// --- stacks -----------------------------------------------------------------------------------------------------------------------

static void *runs_on_little(void *unused) {
    CHECK(call_cuCtxSetCurrent(context) == 0);
    pairs(5000);
    return unused;
}

// The program's first allocation, and the first of a block, on the smallest possible stack.
static void small_stacks(uint64_t bytes) {
    pthread_attr_t attributes;
    begin();
    CHECK(pthread_attr_init(&attributes) == 0);
    const bool is_enough = pthread_attr_setstacksize(&attributes, (size_t)bytes) == 0; // aarch64 needs at least 128 KiB
    CHECK(is_enough || pthread_attr_setstacksize(&attributes, (size_t)sysconf(_SC_THREAD_STACK_MIN)) == 0);
    run_threads(1, runs_on_little, NULL, &attributes);
}

static ucontext_t home, away;

static void coroutine(void) {
    for (;;) {
        pairs(1);
        (void)swapcontext(&away, &home);
    }
}

static void coroutines(uint64_t bytes) {
    begin();
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    char *stack = mmap(NULL, bytes + 2 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(stack != MAP_FAILED && mprotect(stack + page, bytes, PROT_READ | PROT_WRITE) == 0 && getcontext(&away) == 0);
    away.uc_stack = (stack_t){.ss_sp = stack + page, .ss_size = bytes};
    makecontext(&away, coroutine, 0);
    for (int i = 0; i < 500; i++) {
        CHECK(swapcontext(&home, &away) == 0);
        pairs(1);
    }
}

__attribute__((noinline)) static uint64_t deep(uint64_t frames) {
    volatile uint64_t kept = frames;
    if (frames == 0)
        pairs(1);
    else
        kept += deep(frames - 1);
    return kept;
}

static void on_own_stack(int number, void (*handler)(int number)) {
    const stack_t stack = {.ss_sp = malloc(65536), .ss_size = 65536};
    const struct sigaction action = {.sa_handler = handler, .sa_flags = SA_ONSTACK};
    CHECK(stack.ss_sp != NULL && sigaltstack(&stack, NULL) == 0 && sigaction(number, &action, NULL) == 0);
}

// Measures a handler's stack use for this many pairs of calls; the first time includes one-time work.
#define TOO_MUCH UINT64_MAX // instead: a request too large for any device
static volatile uint64_t pairs_here;
static void allocate_counted(int number) {
    (void)number;
    uint64_t address;
    if (pairs_here == TOO_MUCH)
        CHECK(call_cuMemAlloc(&address, UINT64_C(1) << 45) == 2);
    else
        pairs(pairs_here);
}

static uint64_t stack_of_a_handler(unsigned char *stack, size_t size, uint64_t count) {
    size_t untouched = 0;
    pairs_here = count;
    memset(stack, 0xa5, size);
    CHECK(raise(SIGUSR1) == 0);
    while (untouched < size && stack[untouched] == 0xa5) untouched++;
    return size - untouched;
}

static void measures_handlers(void) {
    enum { SIZE = 65536 };
    static unsigned char memory[SIZE] __attribute__((aligned(4096)));
    const stack_t stack = {.ss_sp = memory, .ss_size = SIZE};
    const struct sigaction action = {.sa_handler = allocate_counted, .sa_flags = SA_ONSTACK};
    begin();
    CHECK(sigaltstack(&stack, NULL) == 0 && sigaction(SIGUSR1, &action, NULL) == 0);
    const uint64_t frame = stack_of_a_handler(memory, SIZE, 0), first = stack_of_a_handler(memory, SIZE, 1);
    const uint64_t usual = stack_of_a_handler(memory, SIZE, 20000), refused = stack_of_a_handler(memory, SIZE, TOO_MUCH);
    printf("%llu %llu %llu\n", (unsigned long long)(first - frame), (unsigned long long)(usual - frame),
           (unsigned long long)(refused - frame));
}

static void allocate_here(int number) { pairs(number == SIGUSR1 ? 2 : 3); }

static void allocates_in_handlers(void) {
    begin();
    on_own_stack(SIGUSR1, allocate_here);
    for (int i = 0; i < 100; i++) {
        CHECK(raise(SIGUSR1) == 0);
        pairs(1);
    }
}

static volatile int *volatile nowhere;
static sigjmp_buf back;
static void jump_back(int number) {
    pairs(1);
    siglongjmp(back, number);
}

static void recovers(void) {
    begin();
    on_own_stack(SIGSEGV, jump_back);
    for (int i = 0; i < 10; i++)
        if (sigsetjmp(back, 1) == 0) *nowhere = 1;
    pairs(5);
    printf("alive\n");
}

static void aborts(void) {
    begin();
    on_own_stack(SIGABRT, allocate_here);
    pairs(3);
    abort();
}

// --- the choice -------------------------------------------------------------------------------------------------------------------

int main(int argc, char **argv) {
    const char *habit = argc > 1 ? argv[1] : "";
    const uint64_t number = argc > 2 ? strtoull(argv[2], NULL, 0) : 0;
    self = argv[0];
#define HABIT(name, actions)                                                                                                               \
    if (strcmp(habit, name) == 0) {                                                                                                        \
        actions;                                                                                                                           \
        return 0;                                                                                                                          \
    }
    HABIT("pairs", (begin(), pairs(10)))
    HABIT("closes-all", closes_all(number))
    HABIT("closes-standard", closes_standard())
    HABIT("cuts-recordings", cuts_recordings(number))
    HABIT("counts-descriptors", counts_descriptors())
    HABIT("elsewhere", (begin(), (void)!chdir("/"), pairs(10)))
    HABIT("small-files", (limits(RLIMIT_FSIZE, number), begin(), pairs(50000), puts("alive")))
    HABIT("measures-handlers", measures_handlers())
    HABIT("few-files-at-first", (limits(RLIMIT_NOFILE, number), begin(), pairs(10), puts("alive")))
    HABIT("few-files", (begin(), limits(RLIMIT_NOFILE, 3), pairs(10), puts("alive")))
    HABIT("is-cancelled", (begin(), run_threads(2, is_cancelled, NULL, NULL), pairs(10)))
    HABIT("ends-from-a-handler", ends_from_a_handler(number))
    HABIT("ends-threads", ends_threads())
    HABIT("frees-at-the-end", frees_at_the_end())
    HABIT("spawns", spawns())
    HABIT("forks-raw", forks_raw())
    HABIT("daemon", becomes_a_daemon())
    HABIT("loads", loads(number))
    HABIT("small-stacks", small_stacks(number))
    HABIT("coroutines", coroutines(number))
    HABIT("deep", (begin(), deep(number)))
    HABIT("handlers", allocates_in_handlers())
    HABIT("recovers", recovers())
    HABIT("aborts", aborts())
    return 97;
}
