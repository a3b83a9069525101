// memory.c: address space whose pages come when they are touched.
#define _GNU_SOURCE
#include <sys/mman.h>

#include "base/base.h"
#include "os/os.h"

// Not counted against the memory that the system may promise: most of a reservation is never touched.
enum vram_status vr_os_reserve(size_t size_bytes, void **base) {
    assert(size_bytes > 0 && base != NULL);
    void *memory = mmap(NULL, size_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) return VRAM_NO_HOST_MEMORY;
    *base = memory;
    return VRAM_OK;
}

void vr_os_unreserve(void *base, size_t size_bytes) {
    if (base == NULL) return;
    const int failed = munmap(base, size_bytes);
    assert(failed == 0); // a range of vr_os_reserve(), with its size
    (void)failed;
}

// The system makes pages zero when they are given out again.
void vr_os_unreserve_touched(void *base, size_t size_bytes, size_t touched_bytes) {
    assert(touched_bytes <= size_bytes);
    (void)touched_bytes;
    vr_os_unreserve(base, size_bytes);
}
