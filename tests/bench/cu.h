// cu.h: the driver functions that these programs call directly, from the machine's libcuda.so.1: NVIDIA's, or the simulated one under `vram
// sim`.
#ifndef VR_BENCH_CU_H
#define VR_BENCH_CU_H

#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// ROW(name, symbol, parameters)
#define CU_CALLS(ROW)                                                                                                                      \
    ROW(init, "cuInit", (unsigned flags))                                                                                                  \
    ROW(driver_version, "cuDriverGetVersion", (int *version))                                                                              \
    ROW(device_name, "cuDeviceGetName", (char *name, int length, int device))                                                              \
    ROW(retain, "cuDevicePrimaryCtxRetain", (void **context, int device))                                                                  \
    ROW(set_current, "cuCtxSetCurrent", (void *context))                                                                                   \
    ROW(synchronize, "cuCtxSynchronize", (void))                                                                                           \
    ROW(stream_create, "cuStreamCreate", (void **stream, unsigned flags))                                                                  \
    ROW(stream_synchronize, "cuStreamSynchronize", (void *stream))                                                                         \
    ROW(stream_wait_event, "cuStreamWaitEvent", (void *stream, void *event, unsigned flags))                                               \
    ROW(event_create, "cuEventCreate", (void **event, unsigned flags))                                                                     \
    ROW(event_record, "cuEventRecord", (void *event, void *stream))                                                                        \
    ROW(event_query, "cuEventQuery", (void *event))                                                                                        \
    ROW(mem_info, "cuMemGetInfo_v2", (size_t * free_bytes, size_t * total_bytes))                                                          \
    ROW(mem_alloc, "cuMemAlloc_v2", (uint64_t * address, size_t bytes))                                                                    \
    ROW(mem_free, "cuMemFree_v2", (uint64_t address))                                                                                      \
    ROW(host_alloc, "cuMemHostAlloc", (void **address, size_t bytes, unsigned flags))                                                      \
    ROW(host_free, "cuMemFreeHost", (void *address))                                                                                       \
    ROW(reserve, "cuMemAddressReserve", (uint64_t * address, size_t bytes, size_t align, uint64_t at, uint64_t flags))                     \
    ROW(address_free, "cuMemAddressFree", (uint64_t address, size_t bytes))                                                                \
    ROW(create, "cuMemCreate", (uint64_t * handle, size_t bytes, const void *properties, uint64_t flags))                                  \
    ROW(release, "cuMemRelease", (uint64_t handle))                                                                                        \
    ROW(map, "cuMemMap", (uint64_t address, size_t bytes, size_t offset, uint64_t handle, uint64_t flags))                                 \
    ROW(unmap, "cuMemUnmap", (uint64_t address, size_t bytes))                                                                             \
    ROW(set_access, "cuMemSetAccess", (uint64_t address, size_t bytes, const void *access, size_t count))                                  \
    ROW(fill, "cuMemsetD32Async", (uint64_t address, unsigned value, size_t count, void *stream))                                          \
    ROW(copy, "cuMemcpyDtoDAsync_v2", (uint64_t to, uint64_t from, size_t bytes, void *stream))                                            \
    ROW(read, "cuMemcpyDtoHAsync_v2", (void *to, uint64_t from, size_t bytes, void *stream))

#define CU_MEMBER(name, symbol, parameters) int(*name) parameters;
struct cu {
    CU_CALLS(CU_MEMBER)
};
#undef CU_MEMBER

static struct cu cu;

static void cu_check(int result, const char *what) {
    if (result == 0) return;
    fprintf(stderr, "%s: the driver says %d\n", what, result);
    exit(1);
}
#define CU(call) cu_check(cu.call, #call)

// Exits with 77, which skips the test, if there is no driver or device.
static void cu_begin(void) {
    void *library = dlopen("libcuda.so.1", RTLD_NOW), *context = NULL;
    if (library == NULL) fprintf(stderr, "no libcuda.so.1\n"), exit(77);
    const struct {
        const char *symbol;
        void *place;
    } rows[] = {
#define CU_ROW(name, symbol, parameters) {symbol, &cu.name},
        CU_CALLS(CU_ROW)
#undef CU_ROW
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        void *function = dlsym(library, rows[i].symbol);
        if (function == NULL) fprintf(stderr, "libcuda.so.1 has no %s\n", rows[i].symbol), exit(1);
        memcpy(rows[i].place, &function, sizeof function);
    }
    if (cu.init(0) != 0) fprintf(stderr, "no device\n"), exit(77);
    CU(retain(&context, 0));
    CU(set_current(context));
    char name[128] = "";
    int version = 0;
    CU(device_name(name, sizeof name, 0));
    CU(driver_version(&version));
    printf("%s, CUDA %d.%d\n", name, version / 1000, version % 1000 / 10);
}

#endif
