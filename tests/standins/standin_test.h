// standin_test.h: calls stand-ins as a program does, by function names.
#ifndef STANDIN_TEST_H
#define STANDIN_TEST_H

#include <dlfcn.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *library; // where CALL looks functions up
static void *driver;

static inline void *found_in(void *where, const char *name) {
    void *function = dlsym(where, name);
    if (function == NULL) {
        printf("no %s\n", name);
        exit(1);
    }
    return function;
}

static inline void *opened(const char *folder, const char *file) {
    char path[4096];
    (void)snprintf(path, sizeof path, "%s/%s", folder, file);
    void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (handle == NULL) {
        printf("%s\n", dlerror());
        exit(1);
    }
    return handle;
}

#define CALL(name, parameters, ...)   ((int(*) parameters)found_in(library, name))(__VA_ARGS__)
#define DRIVER(name, parameters, ...) ((int(*) parameters)found_in(driver, name))(__VA_ARGS__)
#define EXPECT(condition)                                                                                                                  \
    do {                                                                                                                                   \
        if (!(condition)) {                                                                                                                \
            printf("%s:%d: not so: %s\n", __FILE__, __LINE__, #condition);                                                                 \
            exit(1);                                                                                                                       \
        }                                                                                                                                  \
    } while (0)

// Makes a context of device 0 current and allocates device memory.
static inline void begin_driver(void) {
    void *context = NULL;
    driver = dlopen("libcuda.so.1", RTLD_NOW);
    EXPECT(driver != NULL);
    EXPECT(DRIVER("cuInit", (unsigned), 0) == 0);
    EXPECT(DRIVER("cuDevicePrimaryCtxRetain", (void **, int), &context, 0) == 0);
    EXPECT(DRIVER("cuCtxSetCurrent", (void *), context) == 0);
}

static inline uint64_t device_memory(size_t bytes) {
    uint64_t address = 0;
    EXPECT(DRIVER("cuMemAlloc_v2", (uint64_t *, size_t), &address, bytes) == 0);
    return address;
}

static inline size_t free_memory(void) {
    size_t free_bytes = 0, total_bytes = 0;
    EXPECT(DRIVER("cuMemGetInfo_v2", (size_t *, size_t *), &free_bytes, &total_bytes) == 0);
    return free_bytes;
}

static inline uint64_t new_stream(void) {
    uint64_t stream = 0;
    EXPECT(DRIVER("cuStreamCreate", (uint64_t *, unsigned), &stream, 1) == 0);
    return stream;
}

// Returns the number of nodes that a function's work on a stream makes in a capture.
static inline size_t captured_nodes(uint64_t stream, void (*body)(void *), void *argument) {
    uint64_t graph = 0;
    size_t nodes = 0;
    EXPECT(DRIVER("cuStreamBeginCapture_v2", (uint64_t, int), stream, 0) == 0);
    body(argument);
    EXPECT(DRIVER("cuStreamEndCapture", (uint64_t, uint64_t *), stream, &graph) == 0);
    EXPECT(DRIVER("cuGraphGetNodes", (uint64_t, uint64_t *, size_t *), graph, NULL, &nodes) == 0);
    EXPECT(DRIVER("cuGraphDestroy", (uint64_t), graph) == 0);
    return nodes;
}

#endif
