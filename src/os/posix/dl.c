#define _GNU_SOURCE
#include <dlfcn.h>

#include "os/os.h"

void *vr_os_dlopen(const char *name, const char **reason) {
    void *library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (library == NULL && reason != NULL) *reason = dlerror();
    return library;
}

void *vr_os_dlsym(void *library, const char *symbol) { return dlsym(library, symbol); }

void vr_os_dlclose(void *library) {
    if (library != NULL) (void)dlclose(library);
}
