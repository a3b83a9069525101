#include "os/os.h"

const char *vr_os_getenv(const char *name) {
    (void)name;
    return NULL;
}
