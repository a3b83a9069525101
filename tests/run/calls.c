#define _GNU_SOURCE
#include "calls.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define X(base, exported, parameters) int(*call_##base) parameters;
CALLS(X)
#undef X

#ifndef CALLS_LINKED
static void check(const void *found, const char *name) {
    if (found != NULL) return;
    fprintf(stderr, "%s: not found\n", name);
    exit(99);
}
#endif

#if defined(CALLS_LINKED)
#define X(base, exported, parameters) extern int exported parameters;
CALLS(X)
#undef X
void calls_load(void) {
#define X(base, exported, parameters) call_##base = exported;
    CALLS(X)
#undef X
}
#elif defined(CALLS_PROC)
// The prototypes of calls.h are those of CUDA 12.0, with one exception.
#define VERSION(name) (strcmp(name, "cuCtxCreate") == 0 ? 3020 : 12000)

typedef int lookup(const char *symbol, void **function, int version, uint64_t flags, int *status);
void calls_load(void) {
    void *library = dlopen("libcuda.so.1", RTLD_NOW), *address;
    check(library, "libcuda.so.1");
    lookup *first, *find;
    address = dlsym(library, "cuGetProcAddress_v2");
    check(address, "cuGetProcAddress_v2");
    memcpy(&first, &address, sizeof first);
    // As in the runtime: cuGetProcAddress() is looked up through itself, and an absent function is a valid result.
    if (first("cuGetProcAddress", &address, 12000, 0, NULL) != 0) check(NULL, "cuGetProcAddress");
    memcpy(&find, &address, sizeof find);
    (void)find("", &address, 0, 0, NULL); // the result depends on the driver's version
    if (address != NULL) check(NULL, "the refusal of no name");
#define X(base, exported, parameters)                                                                                                      \
    if (find(#base, &address, VERSION(#base), 0, NULL) != 0) address = NULL;                                                               \
    check(address, #base);                                                                                                                 \
    memcpy(&call_##base, &address, sizeof address);
    CALLS(X)
#undef X
}
#else
void calls_load(void) {
    void *library = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL), *address;
    check(library, "libcuda.so.1");
#define X(base, exported, parameters)                                                                                                      \
    address = dlsym(library, #exported);                                                                                                   \
    check(address, #exported);                                                                                                             \
    memcpy(&call_##base, &address, sizeof address);
    CALLS(X)
#undef X
}
#endif

uint64_t context;

void begin(void) {
    calls_load();
    CHECK(call_cuInit(0) == 0);
    CHECK(call_cuDevicePrimaryCtxRetain(&context, 0) == 0);
    CHECK(call_cuCtxSetCurrent(context) == 0);
}
