// dl.c: libraries that are loaded at run time.
#define _GNU_SOURCE
#include <dlfcn.h>

#include "base/base.h"
#include "os/os.h"

// Local: what it exports is asked for by name here, and stands in for nobody's symbols.
void *vr_os_dlopen(const char *name, const char **reason) {
    assert(name != NULL);
    void *library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (library == NULL && reason != NULL) *reason = dlerror();
    return library;
}

void *vr_os_dlsym(void *library, const char *symbol) {
    assert(symbol != NULL);
    return dlsym(library, symbol);
}

void vr_os_dlclose(void *library) {
    if (library != NULL) (void)dlclose(library);
}
