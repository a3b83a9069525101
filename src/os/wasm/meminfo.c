// meminfo.c: a page is told nothing of the machine's memory.
#include "os/os.h"

bool vr_os_available_memory(uint64_t *bytes) {
    (void)bytes;
    return false;
}
