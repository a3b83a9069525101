#include <stdlib.h>

#include "os/os.h"

const char *vr_os_getenv(const char *name) { return getenv(name); }
