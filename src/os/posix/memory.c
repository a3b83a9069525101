#define _GNU_SOURCE
#include <sys/mman.h>

#include "os/os.h"

enum vram_status vr_os_reserve(size_t size_bytes, void **base) {
    void *memory = mmap(NULL, size_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) return VRAM_NO_HOST_MEMORY;
    *base = memory;
    return VRAM_OK;
}

void vr_os_unreserve(void *base, size_t size_bytes) {
    if (base != NULL) (void)munmap(base, size_bytes);
}

// The system makes pages zero when they are given out again.
void vr_os_unreserve_touched(void *base, size_t size_bytes, size_t touched_bytes) {
    (void)touched_bytes;
    vr_os_unreserve(base, size_bytes);
}
