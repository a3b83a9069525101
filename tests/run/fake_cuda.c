// fake_cuda.c: a libcuda.so.1 with every function of doors.def. It only returns numbers, and writes each call with its result to the file
// FAKE_CUDA_LOG (an environment variable), so that a test can check that each call is recorded once, through whichever door it came.
// The library counts the memory of contexts and modules, and refuses a request of a TiB or more.
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

struct pl_allocation_prop;
struct pl_array_v1;
struct pl_array;
struct pl_array3d_v1;
struct pl_array3d;

static uint64_t next_address = 0x10000, current = 7;

static void note(const char *name) {
    const char *path = getenv("FAKE_CUDA_LOG");
    char line[100];
    const int length = snprintf(line, sizeof line, "%ld %s\n", (long)getpid(), name);
    const int file = path == NULL ? -1 : open(path, O_WRONLY | O_APPEND | O_CREAT, 0666);
    if (file < 0) return;
    if (write(file, line, (size_t)length) != length) abort();
    (void)close(file);
}

// Functions that return something store it through their first argument; those of the first binary interface store 32 bits.
static const char *const givers[] = {"cuMemAlloc_v2",
                                     "cuMemAllocPitch_v2",
                                     "cuMemAllocManaged",
                                     "cuMemAllocHost",
                                     "cuMemAllocHost_v2",
                                     "cuMemHostAlloc",
                                     "cuMemAllocAsync",
                                     "cuMemAllocAsync_ptsz",
                                     "cuMemAllocFromPoolAsync",
                                     "cuMemAllocFromPoolAsync_ptsz",
                                     "cuMemCreate",
                                     "cuArrayCreate",
                                     "cuArrayCreate_v2",
                                     "cuArray3DCreate",
                                     "cuArray3DCreate_v2",
                                     "cuMipmappedArrayCreate",
                                     "cuDevicePrimaryCtxRetain",
                                     "cuMemRetainAllocationHandle",
                                     "cuCtxCreate",
                                     "cuCtxCreate_v2",
                                     "cuCtxCreate_v3",
                                     "cuCtxCreate_v4",
                                     "cuModuleLoad",
                                     "cuModuleLoadData",
                                     "cuModuleLoadDataEx",
                                     "cuModuleLoadFatBinary",
                                     "cuLibraryLoadData",
                                     "cuLibraryLoadFromFile"};

#define MIB ((uint64_t)1 << 20)
static const struct {
    const char *start; // prefix of function names
    uint64_t taken;    // used on the device, or released
} costs[] = {{"cuCtxCreate", 300 * MIB},
             {"cuModuleLoad", 8 * MIB},
             {"cuLibraryLoad", 16 * MIB},
             {"cuModuleUnload", (uint64_t)-1 * 8 * MIB},
             {"cuLibraryUnload", (uint64_t)-1 * 16 * MIB}};
static uint64_t used = 100 * MIB;

static int call(const char *name, uint64_t first, uint64_t second) {
    note(name);
    if (strcmp(name, "cuMemAlloc_v2") == 0 && second >> 40 != 0) return 2;
    if (strcmp(name, "cuMemGetInfo_v2") == 0) {
        *(uint64_t *)(uintptr_t)first = 1024 * MIB - used;
        *(uint64_t *)(uintptr_t)second = 1024 * MIB;
    }
    for (size_t i = 0; i < sizeof costs / sizeof costs[0]; i++)
        if (strncmp(name, costs[i].start, strlen(costs[i].start)) == 0) used += costs[i].taken;
    for (size_t i = 0; i < sizeof givers / sizeof givers[0]; i++)
        if (strcmp(name, givers[i]) == 0) *(uint64_t *)(uintptr_t)first = next_address += 0x10000;
    if (strncmp(name, "cuCtxCreate", 11) == 0) current = next_address;
    if (strcmp(name, "cuMemAlloc") == 0 || strcmp(name, "cuMemAllocPitch") == 0)
        *(uint32_t *)(uintptr_t)first = (uint32_t)(next_address += 0x10000);
    if (strcmp(name, "cuMemAllocPitch") == 0) *(uint32_t *)(uintptr_t)second = 512;
    if (strcmp(name, "cuMemAllocPitch_v2") == 0) *(uint64_t *)(uintptr_t)second = 512;
    return 0;
}

// The first two arguments as numbers, whatever their types.
#define NUMBERS(...)          NUMBERS_OF(__VA_ARGS__, 0, 0)
#define NUMBERS_OF(a, b, ...) (uint64_t)(uintptr_t)(a), (uint64_t)(uintptr_t)(b)
// clang-format off
#define X(handler, symbol, exported, version, per_thread, parameters, arguments) \
    EXPORT int exported parameters;                                              \
    int exported parameters { return call(#exported, NUMBERS arguments); }
#include "../../adapters/preload/doors.def"
#undef X
// clang-format on

// --- calls that the preloaded library makes itself ------------------------------------------------------------------------

EXPORT int cuCtxGetDevice(int *device);
int cuCtxGetDevice(int *device) {
    *device = 0;
    return 0;
}

EXPORT int cuCtxGetCurrent(uint64_t *context);
int cuCtxGetCurrent(uint64_t *context) {
    *context = current;
    return 0;
}

EXPORT int cuDeviceGetUuid(unsigned char *uuid, int device);
int cuDeviceGetUuid(unsigned char *uuid, int device) {
    memset(uuid, 0x11 * (device + 1), 16);
    return 0;
}

// --- lookups ----------------------------------------------------------------------------------------------------------------

EXPORT int cuGetProcAddress(const char *symbol, void **function, int version, uint64_t flags);
EXPORT int cuGetProcAddress_v2(const char *symbol, void **function, int version, uint64_t flags, int *status);

// A newer driver's allocation with another argument, which today's table cannot know.
static int newer(uint64_t *address, uint64_t size, uint64_t kind) {
    note(size == 1 && kind == 2 ? "newer" : "newer called wrongly");
    *address = 1;
    return 0;
}

struct row {
    const char *symbol;
    int version, per_thread;
    void (*entry)(void);
};
static const struct row rows[] = {
// clang-format off
#define X(handler, symbol, exported, version, per_thread, parameters, arguments) {#symbol, version, per_thread, (void (*)(void))exported},
#include "../../adapters/preload/doors.def"
#undef X
    // clang-format on
    {"cuMemAlloc", 14000, 0, (void (*)(void))newer},
    {"cuGetProcAddress", 11030, 0, (void (*)(void))cuGetProcAddress},
    {"cuGetProcAddress", 12000, 0, (void (*)(void))cuGetProcAddress_v2},
};

int cuGetProcAddress(const char *symbol, void **function, int version, uint64_t flags) {
    const struct row *best = NULL;
    for (int per_thread = (flags & 2) != 0; per_thread >= 0 && best == NULL; per_thread--)
        for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
            if (strcmp(rows[i].symbol, symbol) == 0 && rows[i].per_thread == per_thread && rows[i].version <= version &&
                (best == NULL || rows[i].version > best->version))
                best = &rows[i];
    *function = NULL;
    if (best == NULL) return 500;
    memcpy(function, &best->entry, sizeof *function);
    return 0;
}

int cuGetProcAddress_v2(const char *symbol, void **function, int version, uint64_t flags, int *status) {
    const int result = cuGetProcAddress(symbol, function, version, flags);
    if (status != NULL) *status = result == 0 ? 0 : 1;
    return result;
}
