// meminfo.c: a page is told nothing of the machine's memory.
#include "os/os.h"

bool vr_os_available_memory(uint64_t *bytes) {
    (void)bytes;
    return false;
}

bool vr_os_main_memory(uint64_t *available_bytes, uint64_t *total_bytes) {
    (void)available_bytes, (void)total_bytes;
    return false;
}
