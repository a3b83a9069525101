// plugin.c: a library linked with libcuda that also looks functions up. It makes three allocations, each through another door.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <string.h>

extern int cuMemAlloc_v2(uint64_t *address, uint64_t size);
extern int cuMemFree_v2(uint64_t address);
__attribute__((visibility("default"))) int plugin_run(void);

static int through(void *alloc, void *release) {
    int (*allocate)(uint64_t *, uint64_t), (*give_back)(uint64_t);
    uint64_t address;
    if (alloc == NULL || release == NULL) return 1;
    memcpy(&allocate, &alloc, sizeof alloc);
    memcpy(&give_back, &release, sizeof release);
    return allocate(&address, 100) != 0 || give_back(address) != 0;
}

int plugin_run(void) {
    uint64_t address;
    if (cuMemAlloc_v2(&address, 100) != 0 || cuMemFree_v2(address) != 0) return 1;
    if (through(dlsym(RTLD_DEFAULT, "cuMemAlloc_v2"), dlsym(RTLD_DEFAULT, "cuMemFree_v2")) != 0) return 2;
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
    return library == NULL || through(dlsym(library, "cuMemAlloc_v2"), dlsym(library, "cuMemFree_v2")) != 0 || dlclose(library) != 0 ? 3
                                                                                                                                     : 0;
}

#ifdef CALLS_IN_CONSTRUCTOR
// Runs before main(), and before or after other libraries.
__attribute__((constructor)) static void constructed(void) {
    uint64_t address;
    if (cuMemAlloc_v2(&address, 100) == 0) (void)cuMemFree_v2(address);
}
#endif
