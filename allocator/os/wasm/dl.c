// dl.c: there are no libraries to load.
#include "os/os.h"

void *vr_os_dlopen(const char *name, const char **reason) {
    (void)name;
    if (reason != NULL) *reason = "WebAssembly loads no libraries";
    return NULL;
}

void *vr_os_dlsym(void *library, const char *symbol) {
    (void)library, (void)symbol;
    return NULL;
}

void vr_os_dlclose(void *library) { (void)library; }
