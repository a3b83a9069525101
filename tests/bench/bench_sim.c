// Measures calls of the simulated device: build/release/cli/vram sim -- build/release/bench/bench_sim. Uses the calling thread's CPU
// time, the minimum of several batches, so that load changes little.
#include <dlfcn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define BATCHES 15
#define CALLS   200000
#define LIVE    1000

struct dim3 {
    unsigned x, y, z;
};

// X(member, exported name, type)
#define RUNTIME(X)                                                                                                                         \
    X(register_binary, "__cudaRegisterFatBinary", void **(*)(void *))                                                                      \
    X(register_function, "__cudaRegisterFunction",                                                                                         \
      void (*)(void **, const char *, char *, const char *, int, void *, void *, void *, void *, int *))                                   \
    X(launch, "cudaLaunchKernel", int (*)(const void *, struct dim3, struct dim3, void **, size_t, void *))                                \
    X(get_device, "cudaGetDevice", int (*)(int *))                                                                                         \
    X(last_error, "cudaGetLastError", int (*)(void))                                                                                       \
    X(allocate, "cudaMalloc", int (*)(void **, size_t))                                                                                    \
    X(release, "cudaFree", int (*)(void *))                                                                                                \
    X(copy, "cudaMemcpyAsync", int (*)(void *, const void *, size_t, int, void *))                                                         \
    X(make_event, "cudaEventCreateWithFlags", int (*)(void **, unsigned))                                                                  \
    X(record, "cudaEventRecord", int (*)(void *, void *))                                                                                  \
    X(query, "cudaEventQuery", int (*)(void *))                                                                                            \
    X(wait, "cudaDeviceSynchronize", int (*)(void))

#define X(member, name, type) static __typeof__((type)NULL) member;
RUNTIME(X)
#undef X

static void load(void) {
    void *library = dlopen("libcudart.so.13", RTLD_NOW);
    bool found = library != NULL;
#define X(member, name, type) found = found && (member = __extension__(type) dlsym(library, name)) != NULL;
    RUNTIME(X)
#undef X
    if (found) return;
    (void)fprintf(stderr, "bench_sim: run it under vram sim\n");
    exit(1);
}

static double now_ns(void) {
    struct timespec time;
    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

static char kernel; // the runtime identifies it by its address
static void *device_bytes, *event;
static int failures;

static void call_launch(void) {
    const struct dim3 one = {1, 1, 1};
    uint64_t value = 0;
    void *arguments[] = {&value};
    failures += launch(&kernel, one, one, arguments, 0, NULL) != 0;
}

static void call_get_device(void) {
    int device;
    failures += get_device(&device) != 0;
}

static void call_last_error(void) { failures += last_error() != 0; }

static void call_pair(void) {
    void *block = NULL;
    failures += allocate(&block, (size_t)2 << 20) != 0 || release(block) != 0;
}

static void call_record(void) { failures += record(event, NULL) != 0; }

static void call_query(void) { (void)query(event); }

static void call_copy(void) {
    static uint64_t host;
    failures += copy(device_bytes, &host, sizeof host, 1, NULL) != 0;
}

static void measure(const char *name, void (*call)(void)) {
    double least = 1e18;
    for (int batch = 0; batch < BATCHES; batch++) {
        const double begun = now_ns();
        for (int i = 0; i < CALLS; i++) call();
        const double each = (now_ns() - begun) / CALLS;
        if (each < least) least = each;
        (void)wait();
    }
    printf("%-44s %8.1f ns\n", name, least);
}

int main(void) {
    load();
    static const char ptx[] = ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u64 p0)\n{\nret;\n}\n";
    struct {
        int magic, version;
        const void *data, *more;
    } binary = {0x466243b1, 1, ptx, NULL};
    char name[] = "k";
    register_function(register_binary(&binary), &kernel, name, name, -1, NULL, NULL, NULL, NULL, NULL);
    failures += allocate(&device_bytes, 1 << 20) != 0 || make_event(&event, 2) != 0;
    measure("launch", call_launch);
    measure("event record", call_record);
    measure("event query", call_query);
    measure("copy of 8 bytes to the device", call_copy);
    measure("current device", call_get_device);
    measure("last error", call_last_error);
    measure("allocation and its free", call_pair);
    for (int i = 0; i < LIVE; i++) {
        void *block;
        failures += allocate(&block, (size_t)2 << 20) != 0;
    }
    measure("allocation and its free, 1,000 others live", call_pair);
    if (failures != 0) printf("%d calls failed\n", failures);
    return failures != 0;
}
