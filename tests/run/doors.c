// doors.c: calls every function of doors.def through one door, and undoes its effect.
// Usage: doors DOOR LIBCUDA [PLUGIN]. FAKE_CUDA_LOG lists the calls that reached the driver.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../adapters/preload/preload.h"

// clang-format off
#define X(handler, symbol, exported, version, per_thread, parameters, arguments) static int32_t (*p_##exported) parameters;
#include "../../adapters/preload/doors.def"
#undef X
// clang-format on

typedef int lookup_v1(const char *symbol, void **function, int version, uint64_t flags);
typedef int lookup_v2(const char *symbol, void **function, int version, uint64_t flags, int *status);
typedef void *dlsym_like(void *handle, const char *name);

static const char *door;
static void *library;
static lookup_v1 *proc_v1;
static lookup_v2 *proc_v2;

static void die(const char *what) {
    fprintf(stderr, "%s: %s\n", door, what);
    exit(96);
}

static int is(const char *name) { return strcmp(door, name) == 0; }

static void *by_proc(const char *symbol, int version, int per_thread) {
    void *found = NULL;
    const uint64_t flags = per_thread ? 2 : 0;
    if (proc_v2 != NULL ? proc_v2(symbol, &found, version, flags, NULL) != 0 : proc_v1(symbol, &found, version, flags) != 0) die(symbol);
    return found;
}

static void *find(const char *symbol, const char *exported, int version, int per_thread, size_t number) {
    if (is("handle") || is("dlmopen") || is("accounts")) return dlsym(library, exported);
    if (is("default")) return dlsym(RTLD_DEFAULT, exported);
    if (is("next")) return dlsym(RTLD_NEXT, exported);
    if (is("dlvsym")) return dlvsym(library, exported, "libcuda.so.1");
    if (is("dlsym-by-dlsym")) {
        void *address = dlsym(RTLD_DEFAULT, "dlsym");
        dlsym_like *again;
        memcpy(&again, &address, sizeof again);
        return again(library, exported);
    }
    if (is("mixed") && number % 2 == 0) return dlsym(library, exported);
    return by_proc(symbol, version, per_thread);
}

static void open_door(const char *path) {
    const int flags = is("default") || is("next") ? RTLD_NOW | RTLD_GLOBAL : RTLD_NOW | RTLD_LOCAL;
    library = is("dlmopen") ? dlmopen(LM_ID_NEWLM, path, RTLD_NOW) : dlopen(path, flags);
    if (library == NULL) die(dlerror());
    void *address = dlsym(library, is("proc1") ? "cuGetProcAddress" : "cuGetProcAddress_v2");
    if (is("proc1"))
        memcpy(&proc_v1, &address, sizeof address);
    else
        memcpy(&proc_v2, &address, sizeof address);
    if (is("proc2-by-proc2")) {
        if (proc_v2("cuGetProcAddress", &address, 13000, 0, NULL) != 0) die("cuGetProcAddress");
        memcpy(&proc_v2, &address, sizeof address);
    }
}

static void call_all(void) {
    uint64_t a, pitch;
    uint32_t b, pitch32;
    p_cuDevicePrimaryCtxRetain(&a, 0);
    p_cuCtxCreate(&a, 0, 0), p_cuCtxCreate_v2(&a, 0, 0), p_cuCtxCreate_v3(&a, NULL, 0, 0, 0), p_cuCtxCreate_v4(&a, NULL, 0, 0);
    p_cuModuleLoad(&a, ""), p_cuModuleLoadData(&a, ""), p_cuModuleLoadDataEx(&a, "", 0, NULL, NULL), p_cuModuleLoadFatBinary(&a, "");
    p_cuLibraryLoadData(&a, "", NULL, NULL, 0, NULL, NULL, 0), p_cuLibraryLoadFromFile(&a, "", NULL, NULL, 0, NULL, NULL, 0);
    p_cuModuleUnload(a), p_cuLibraryUnload(a);
    p_cuMemAlloc(&b, 100), p_cuMemFree(b);
    p_cuMemAlloc_v2(&a, 100), p_cuMemFree_v2(a);
    p_cuMemAllocPitch(&b, &pitch32, 100, 3, 4), p_cuMemFree(b);
    p_cuMemAllocPitch_v2(&a, &pitch, 100, 3, 4), p_cuMemFree_v2(a);
    p_cuMemAllocManaged(&a, 100, 1), p_cuMemFree_v2(a);
    p_cuMemAllocHost(&a, 100), p_cuMemFreeHost(a);
    p_cuMemAllocHost_v2(&a, 100), p_cuMemFreeHost(a);
    p_cuMemHostAlloc(&a, 100, 0), p_cuMemFreeHost(a);
    p_cuMemHostRegister(4096, 100, 0), p_cuMemHostUnregister(4096);
    p_cuMemHostRegister_v2(4096, 100, 0), p_cuMemHostUnregister(4096);
    p_cuMemAllocAsync(&a, 100, 0), p_cuMemFreeAsync(a, 0);
    p_cuMemAllocAsync_ptsz(&a, 100, 0), p_cuMemFreeAsync_ptsz(a, 0);
    p_cuMemAllocFromPoolAsync(&a, 100, 9, 0), p_cuMemFreeAsync(a, 0);
    p_cuMemAllocFromPoolAsync_ptsz(&a, 100, 9, 0), p_cuMemFree_v2(a);
    p_cuMemPoolTrimTo(9, 0), p_cuMemPoolDestroy(9);
    const struct pl_allocation_prop prop = {1, 0, 1, 0};
    uint64_t again;
    p_cuMemCreate(&a, 1 << 21, &prop, 0), p_cuMemMap(1 << 22, 1 << 21, 0, a, 0), p_cuMemRetainAllocationHandle(&again, 1 << 22);
    p_cuMemRelease(a), p_cuMemRelease(again), p_cuMemUnmap(1 << 22, 1 << 21);
    const struct pl_array_v1 flat32 = {10, 10, 0x20, 1};
    const struct pl_array flat = {10, 10, 0x20, 1};
    const struct pl_array3d_v1 deep32 = {10, 10, 10, 0x20, 1, 0};
    const struct pl_array3d deep = {10, 10, 10, 0x20, 1, 0};
    p_cuArrayCreate(&a, &flat32), p_cuArrayDestroy(a);
    p_cuArrayCreate_v2(&a, &flat), p_cuArrayDestroy(a);
    p_cuArray3DCreate(&a, &deep32), p_cuArrayDestroy(a);
    p_cuArray3DCreate_v2(&a, &deep), p_cuArrayDestroy(a);
    p_cuMipmappedArrayCreate(&a, &deep, 3), p_cuMipmappedArrayDestroy(a);
    p_cuMemGetInfo(&b, &pitch32), p_cuMemGetInfo_v2(&a, &pitch);
    p_cuDeviceTotalMem(&b, 0), p_cuDeviceTotalMem_v2(&a, 0);
    p_cuCtxDestroy(7), p_cuCtxDestroy_v2(7);
    p_cuDevicePrimaryCtxRelease(0), p_cuDevicePrimaryCtxRelease_v2(0), p_cuDevicePrimaryCtxReset(0), p_cuDevicePrimaryCtxReset_v2(0);
}

// A context, two modules of which one is unloaded, and a request too large for any device.
static void run_out(void) {
    uint64_t context, module, again = 0, address;
    if (p_cuCtxCreate_v2(&context, 0, 0) != 0 || p_cuModuleLoadData(&module, "") != 0 || p_cuModuleLoadData(&again, "") != 0) die("a call");
    if (p_cuModuleUnload(again) != 0) die("a call");
    if (p_cuMemAlloc_v2(&address, 1 << 20) != 0 || p_cuMemAlloc_v2(&address, (uint64_t)1 << 41) != 2) die("an answer");
}

// A newer driver: an interface missing in the table is called as the program calls it.
static void call_newer(void) {
    uint64_t address;
    int (*entry)(uint64_t *, uint64_t, uint64_t);
    void *found = by_proc("cuMemAlloc", 14000, 0);
    memcpy(&entry, &found, sizeof entry);
    if (entry(&address, 1, 2) != 0 || address != 1) die("newer");
}

// More often than there are trampolines: the library's address may differ each time.
static void reopen(const char *path) {
    for (int i = 0; i < 20; i++) {
        library = dlmopen(i % 2 == 0 ? LM_ID_BASE : LM_ID_NEWLM, path, RTLD_NOW);
        if (library == NULL) die(dlerror());
        void *alloc = dlsym(library, "cuMemAlloc_v2"), *release = dlsym(library, "cuMemFree_v2");
        memcpy(&p_cuMemAlloc_v2, &alloc, sizeof alloc);
        memcpy(&p_cuMemFree_v2, &release, sizeof release);
        uint64_t address;
        if (p_cuMemAlloc_v2(&address, 100) != 0 || p_cuMemFree_v2(address) != 0) die("a call");
        if (dlclose(library) != 0) die("dlclose");
    }
}

static void call_plugin(const char *path) {
    const int deep = is("plugin-deepbind") ? RTLD_DEEPBIND : 0;
    void *plugin = is("plugin-namespace") ? dlmopen(LM_ID_NEWLM, path, RTLD_NOW) : dlopen(path, RTLD_NOW | deep);
    if (plugin == NULL) die(dlerror());
    void *address = dlsym(plugin, "plugin_run");
    int (*entry)(void);
    memcpy(&entry, &address, sizeof entry);
    if (entry() != 0) die("plugin");
    if (dlclose(plugin) != 0) die("dlclose");
}

int main(int argc, char **argv) {
    if (argc < 3) return 95;
    door = argv[1];
    if (strncmp(door, "plugin", 6) == 0) {
        call_plugin(argv[3]);
        return 0;
    }
    if (is("absent")) { // a missing function stays missing
        dlerror();
        if (dlsym(RTLD_DEFAULT, "cuMemAlloc_v2") != NULL || dlerror() == NULL || dlsym(RTLD_NEXT, "cuMemFree_v2") != NULL) die("found");
        return 0;
    }
    if (is("reopen")) {
        reopen(argv[2]);
        return 0;
    }
    open_door(argv[2]);
    if (is("newer")) {
        call_newer();
        return 0;
    }
    size_t number = 0;
    void *address;
#define X(handler, symbol, exported, version, per_thread, parameters, arguments)                                                           \
    address = find(#symbol, #exported, version, per_thread, number++);                                                                     \
    if (address == NULL) die(#exported);                                                                                                   \
    memcpy(&p_##exported, &address, sizeof address);
#include "../../adapters/preload/doors.def"
#undef X
    if (is("accounts"))
        run_out();
    else
        call_all();
    return 0;
}
