// env.c: variables of the environment.
#include <stdlib.h>

#include "base/base.h"
#include "os/os.h"

const char *vr_os_getenv(const char *name) {
    assert(name != NULL);
    return getenv(name);
}
