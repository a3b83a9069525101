// memory.c: address space whose pages come when they are touched.
#define _GNU_SOURCE
#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "base/base.h"
#include "os/os.h"

// Ranges that wait for the thread's next reservation of their size. The first bytes of each point to the next one.
enum { KEPT_SIZES = 16 };
struct kept {
    size_t size_bytes;
    void *first;
};
static _Thread_local struct {
    bool on;
    struct kept sizes[KEPT_SIZES];
} keeping;

static struct kept *kept_of(size_t size_bytes) {
    for (size_t i = 0; i < KEPT_SIZES && keeping.on; i++) {
        struct kept *kept = &keeping.sizes[i];
        if (kept->size_bytes == 0) kept->size_bytes = size_bytes;
        if (kept->size_bytes == size_bytes) return kept;
    }
    return NULL;
}

static void *take_kept(struct kept *kept) {
    void *base = kept->first;
    memcpy(&kept->first, base, sizeof kept->first);
    memset(base, 0, sizeof kept->first);
    return base;
}

// Not counted against the memory that the system may promise: most of a reservation is never touched.
enum vram_status vr_os_reserve(size_t size_bytes, void **base) {
    assert(size_bytes > 0 && base != NULL);
    struct kept *kept = kept_of(size_bytes);
    if (kept != NULL && kept->first != NULL) {
        *base = take_kept(kept);
        return VRAM_OK;
    }
    void *memory = mmap(NULL, size_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) return VRAM_NO_HOST_MEMORY;
    *base = memory;
    return VRAM_OK;
}

// The kernel joins ranges that lie side by side. The middle of such a range cannot go where the process has as many mappings as the system
// allows: its memory goes then, and the address space stays.
void vr_os_unreserve(void *base, size_t size_bytes) {
    if (base == NULL || munmap(base, size_bytes) == 0) return;
    assert(errno == ENOMEM); // a range of vr_os_reserve(), with its size
    (void)madvise(base, size_bytes, MADV_DONTNEED);
}

// The system makes pages zero when they are given out again.
void vr_os_unreserve_touched(void *base, size_t size_bytes, size_t touched_bytes) {
    assert(touched_bytes <= size_bytes);
    struct kept *kept = base == NULL || size_bytes < sizeof kept->first ? NULL : kept_of(size_bytes);
    if (kept == NULL) {
        vr_os_unreserve(base, size_bytes);
        return;
    }
    memset(base, 0, touched_bytes);
    memcpy(base, &kept->first, sizeof kept->first);
    kept->first = base;
}

void vr_os_prefer_large_pages(void *base, size_t size_bytes) {
#ifdef MADV_HUGEPAGE
    const size_t large = (size_t)2 << 20;
    if (size_bytes > 2 * large) (void)madvise((unsigned char *)base + large, size_bytes - large, MADV_HUGEPAGE);
#else
    (void)base, (void)size_bytes;
#endif
}

void vr_os_keep_begin(void) { keeping.on = true; }

void vr_os_keep_end(void) {
    for (size_t i = 0; i < KEPT_SIZES; i++) {
        struct kept *kept = &keeping.sizes[i];
        while (kept->first != NULL) vr_os_unreserve(take_kept(kept), kept->size_bytes);
        *kept = (struct kept){0};
    }
    keeping.on = false;
}
