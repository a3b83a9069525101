// program.c: an ordinary program, independent of this project, that allocates memory in every way the simulated driver has.
// Usage: program WHAT [ARGUMENT]; exits with 0 if the driver answered as it should.
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "calls.h"

#define MIB        ((uint64_t)1 << 20)
#define LIVE       24
#define THREAD_MAX 8

// A generator of its own, because this program does not use the project.
static uint64_t next(uint64_t *state) {
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return *state >> 33;
}

static void use_pages(uint64_t size) {
    const struct {
        int32_t type, handles, location_type, location;
        uint64_t rest[2];
    } prop = {.type = 1, .location_type = 1};
    uint64_t range, handle;
    CHECK(call_cuMemAddressReserve(&range, 4 * size, 0, 0, 0) == 0);
    CHECK(call_cuMemCreate(&handle, size, &prop, 0) == 0);
    CHECK(call_cuMemMap(range, size, 0, handle, 0) == 0);
    CHECK(call_cuMemMap(range + size, size, 0, handle, 0) == 0);
    CHECK(call_cuMemRelease(handle) == 0);
    CHECK(call_cuMemUnmap(range, 2 * size) == 0);
    CHECK(call_cuMemAddressFree(range, 4 * size) == 0);
}

static void use_host(uint64_t size) {
    uint64_t first, second;
    CHECK(call_cuMemHostAlloc(&first, size, 0) == 0);
    CHECK(call_cuMemAllocHost(&second, 2 * size) == 0);
    CHECK(call_cuMemFreeHost(first) == 0);
    CHECK(call_cuMemFreeHost(second) == 0);
    void *own = aligned_alloc(4096, 65536);
    CHECK(call_cuMemHostRegister((uint64_t)(uintptr_t)own, 65536, 0) == 0);
    CHECK(call_cuMemHostUnregister((uint64_t)(uintptr_t)own) == 0);
    free(own);
}

// Random allocations and frees; what is live at the end stays.
static void churn(uint64_t seed, unsigned steps) {
    uint64_t live[LIVE] = {0}, pitch;
    for (unsigned i = 0; i < steps; i++) {
        uint64_t *slot = &live[next(&seed) % LIVE];
        if (*slot != 0) {
            CHECK(call_cuMemFree(*slot) == 0);
            *slot = 0;
        } else if (next(&seed) % 8 == 0) {
            CHECK(call_cuMemAllocPitch(slot, &pitch, 1000, 64, 4) == 0);
        } else {
            CHECK(call_cuMemAlloc(slot, 1 + next(&seed) % (4 * MIB)) == 0);
        }
        if (i % 16 == 3) use_pages(2 * MIB);
        if (i % 16 == 7) use_host(4096);
    }
}

static void basic(void) {
    begin();
    churn(1, 100);
    CHECK(call_cuMemFree(0x1234) != 0); // an error, which is not an event
    uint64_t address = 0;
    CHECK(call_cuMemAlloc(&address, 0) != 0); // another
    CHECK(call_cuMemAlloc(&address, (uint64_t)1 << 45) == 2);
}

static void *thread_main(void *argument) {
    CHECK(call_cuCtxSetCurrent(context) == 0);
    churn((uint64_t)(uintptr_t)argument, 200);
    return NULL;
}

static void threads(void) {
    begin();
    pthread_t all[THREAD_MAX];
    for (uintptr_t i = 0; i < THREAD_MAX; i++) CHECK(pthread_create(&all[i], NULL, thread_main, (void *)(i + 1)) == 0);
    for (size_t i = 0; i < THREAD_MAX; i++) CHECK(pthread_join(all[i], NULL) == 0);
}

// A driver does not survive in a forked child; a child with a new one works. The simulator does survive and is used as it is.
static void forks(void) {
    begin();
    churn(2, 20);
    const pid_t child = fork();
    CHECK(child >= 0);
    churn(child == 0 ? 3 : 4, 30);
    if (child == 0) _exit(0);
    int state;
    CHECK(waitpid(child, &state, 0) == child && state == 0);
    churn(5, 10);
}

// Threads allocate while others fork.
static void fork_storm(void) {
    begin();
    pthread_t all[2];
    for (uintptr_t i = 0; i < 2; i++) CHECK(pthread_create(&all[i], NULL, thread_main, (void *)(i + 1)) == 0);
    for (int i = 0; i < 20; i++) {
        const pid_t child = fork();
        CHECK(child >= 0);
        if (child == 0) _exit(0);
        int state;
        CHECK(waitpid(child, &state, 0) == child && state == 0);
    }
    for (size_t i = 0; i < 2; i++) CHECK(pthread_join(all[i], NULL) == 0);
}

static void killed(void) {
    begin();
    churn(6, 100);
    (void)kill(getpid(), SIGKILL);
}

static void contexts(void) {
    begin();
    uint64_t mine, address;
    CHECK(call_cuMemAlloc(&address, MIB) == 0); // stays
    CHECK(call_cuCtxCreate(&mine, 0, 0) == 0);
    CHECK(call_cuMemAlloc(&address, 2 * MIB) == 0);
    CHECK(call_cuMemHostAlloc(&address, 4096, 0) == 0);
    CHECK(call_cuCtxDestroy(mine) == 0);
    CHECK(call_cuDevicePrimaryCtxRelease(0) == 0);
}

// A capture's memory is a node, not an event; neither is its free, in any form.
static void use_capture(uint64_t stream) {
    uint64_t node, graph;
    CHECK(call_cuStreamBeginCapture(stream, 0) == 0);
    CHECK(call_cuMemAllocAsync(&node, MIB, stream) == 0);
    CHECK(call_cuMemFreeAsync(node, stream) == 0);
    CHECK(call_cuStreamEndCapture(stream, &graph) == 0);
}

static void use_shared_pages(void) {
    const struct {
        int32_t type, handles, location_type, location;
        uint64_t rest[2];
    } prop = {.type = 1, .location_type = 1};
    uint64_t range, handle, again;
    CHECK(call_cuMemAddressReserve(&range, 2 * MIB, 0, 0, 0) == 0);
    CHECK(call_cuMemCreate(&handle, 2 * MIB, &prop, 0) == 0);
    CHECK(call_cuMemMap(range, 2 * MIB, 0, handle, 0) == 0);
    CHECK(call_cuMemRetainAllocationHandle(&again, range) == 0);
    CHECK(call_cuMemRelease(handle) == 0 && call_cuMemUnmap(range, 2 * MIB) == 0);
    CHECK(call_cuMemRelease(again) == 0); // ends here
    CHECK(call_cuMemAddressFree(range, 2 * MIB) == 0);
}

// Memory of every kind, freed by its own call, by another kind's, by the end of its context, or not at all.
static void families(void) {
    begin();
    const struct {
        uint64_t width, height;
        uint32_t format, channels;
    } what = {64, 32, 0x20, 4};
    uint64_t stream, managed, first, second, array, kept, pinned, mine;
    CHECK(call_cuStreamCreate(&stream, 0) == 0);
    CHECK(call_cuMemAllocManaged(&managed, 3 * MIB, 1) == 0);
    CHECK(call_cuMemAllocAsync(&first, MIB, stream) == 0 && call_cuMemAllocAsync(&second, 2 * MIB, stream) == 0);
    CHECK(call_cuMemFreeAsync(first, stream) == 0 && call_cuMemFree(second) == 0);
    use_capture(stream);
    use_shared_pages();
    CHECK(call_cuArrayCreate(&array, &what) == 0 && call_cuArrayCreate(&kept, &what) == 0);
    CHECK(call_cuArrayDestroy(array) == 0 && call_cuMemFree(managed) == 0);
    CHECK(call_cuCtxCreate(&mine, 0, 0) == 0);
    CHECK(call_cuMemAlloc(&first, MIB) == 0 && call_cuMemAllocManaged(&managed, MIB, 1) == 0 && call_cuArrayCreate(&array, &what) == 0);
    CHECK(call_cuMemHostAlloc(&pinned, 4096, 0) == 0);
    CHECK(call_cuCtxDestroy(mine) == 0);
}

// Prints the driver's figures under a limit of `limit` bytes, then those after the limit is exceeded.
static void limited(uint64_t limit) {
    begin();
    uint64_t total, free_bytes, first, second;
    CHECK(call_cuDeviceTotalMem(&total, 0) == 0 && total == limit);
    CHECK(call_cuMemGetInfo(&free_bytes, &total) == 0 && free_bytes == limit && total == limit);
    CHECK(call_cuMemAlloc(&first, limit / 2) == 0);
    CHECK(call_cuMemGetInfo(&free_bytes, &total) == 0 && free_bytes == limit - limit / 2 && total == limit);
    CHECK(call_cuMemAlloc(&second, limit) == 2);
    CHECK(call_cuMemAlloc(&second, limit - limit / 2) == 0);
    CHECK(call_cuMemGetInfo(&free_bytes, &total) == 0 && free_bytes == 0);
    CHECK(call_cuMemFree(first) == 0 && call_cuMemFree(second) == 0);
    use_pages(limit);
    CHECK(call_cuMemGetInfo(&free_bytes, &total) == 0 && free_bytes == limit);
}

static void *limited_thread(void *argument) {
    uint64_t *taken = argument, address;
    CHECK(call_cuCtxSetCurrent(context) == 0);
    while (call_cuMemAlloc(&address, MIB) == 0) (*taken)++;
    return NULL;
}

// Threads compete for the last byte: together they get exactly the limit.
static void race(uint64_t limit) {
    begin();
    pthread_t all[THREAD_MAX];
    uint64_t taken[THREAD_MAX] = {0}, sum = 0;
    for (size_t i = 0; i < THREAD_MAX; i++) CHECK(pthread_create(&all[i], NULL, limited_thread, &taken[i]) == 0);
    for (size_t i = 0; i < THREAD_MAX; i++) {
        CHECK(pthread_join(all[i], NULL) == 0);
        sum += taken[i];
    }
    CHECK(sum == limit / MIB);
}

static void execs(char *self, int clean) {
    begin();
    churn(7, 10);
    static char what[] = "basic";
    char *const arguments[] = {self, what, NULL};
    char library_path[4200];
    (void)snprintf(library_path, sizeof library_path, "LD_LIBRARY_PATH=%s", getenv("LD_LIBRARY_PATH"));
    char log[4200];
    (void)snprintf(log, sizeof log, "VRAM_SIM_LOG=%s", getenv("VRAM_SIM_LOG") == NULL ? "" : getenv("VRAM_SIM_LOG"));
    char *const nothing[] = {library_path, log, NULL};
    (void)execve(self, arguments, clean ? nothing : environ);
    CHECK(0);
}

// Stream-ordered allocation; in a capture the same calls make nodes.
static void async(void) {
    begin();
    uint64_t stream, first, second, node, graph;
    CHECK(call_cuStreamCreate(&stream, 0) == 0);
    CHECK(call_cuMemAllocAsync(&first, 3 * MIB, stream) == 0 && call_cuMemAllocAsync(&second, 5 * MIB, stream) == 0);
    CHECK(call_cuMemFreeAsync(first, stream) == 0);
    CHECK(call_cuStreamBeginCapture(stream, 2) == 0);
    CHECK(call_cuMemAllocAsync(&node, 7 * MIB, stream) == 0 && call_cuMemFreeAsync(node, stream) == 0);
    CHECK(call_cuStreamEndCapture(stream, &graph) == 0);
    CHECK(call_cuMemFree(second) == 0); // the other way to free it
    CHECK(call_cuStreamSynchronize(stream) == 0);
}

// For measuring: `count` allocations, each freed at once.
static void loop(uint64_t count) {
    begin();
    for (uint64_t i = 0; i < count; i++) {
        uint64_t address;
        CHECK(call_cuMemAlloc(&address, MIB) == 0 && call_cuMemFree(address) == 0);
    }
}

// Device addresses are real: they must not overlap, whichever allocator serves them.
static void touches(void) {
    begin();
    uint64_t first, second;
    CHECK(call_cuMemAlloc(&first, MIB) == 0 && call_cuMemAlloc(&second, MIB) == 0);
    memset((void *)(uintptr_t)first, 1, MIB);
    memset((void *)(uintptr_t)second, 2, MIB);
    CHECK(*(unsigned char *)(uintptr_t)(first + MIB - 1) == 1);
    CHECK(call_cuMemFree(first) == 0);
    uint64_t third;
    CHECK(call_cuMemAlloc(&third, MIB) == 0);
    printf("%s\n", third == first ? "same" : "other");
    CHECK(call_cuMemFree(second) == 0 && call_cuMemFree(third) == 0);
    CHECK(call_cuMemFree(third) != 0);
}

int main(int argc, char **argv) {
    const char *what = argc > 1 ? argv[1] : "";
    const uint64_t number = argc > 2 ? strtoull(argv[2], NULL, 0) : 0;
    if (strcmp(what, "basic") == 0)
        basic();
    else if (strcmp(what, "threads") == 0)
        threads();
    else if (strcmp(what, "fork") == 0)
        forks();
    else if (strcmp(what, "fork-storm") == 0)
        fork_storm();
    else if (strcmp(what, "kill") == 0)
        killed();
    else if (strcmp(what, "contexts") == 0)
        contexts();
    else if (strcmp(what, "families") == 0)
        families();
    else if (strcmp(what, "limit") == 0)
        limited(number);
    else if (strcmp(what, "race") == 0)
        race(number);
    else if (strcmp(what, "exec") == 0)
        execs(argv[0], 0);
    else if (strcmp(what, "exec-clean") == 0)
        execs(argv[0], 1);
    else if (strcmp(what, "loop") == 0)
        loop(number);
    else if (strcmp(what, "async") == 0)
        async();
    else if (strcmp(what, "touch") == 0)
        touches();
    else
        return 97;
    return 0;
}
