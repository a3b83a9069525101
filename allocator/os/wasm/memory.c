// memory.c: memory without an operating system.

#include <stdlib.h>
#include <string.h>

#include "os/os.h"

bool vr_os_available_memory(uint64_t *bytes) {
    (void)bytes;
    return false;
}

bool vr_os_main_memory(uint64_t *available_bytes, uint64_t *total_bytes) {
    (void)available_bytes, (void)total_bytes;
    return false;
}

// WebAssembly has only the module's own address space: simulated device memory has addresses here, but no bytes.

uint64_t vr_os_page_bytes(void) { return 4096; }

enum vram_status vr_os_map(uint64_t address, uint64_t size_bytes, uint64_t alignment, bool accessible, uint64_t *mapped) {
    (void)address, (void)size_bytes, (void)alignment, (void)accessible, (void)mapped;
    return VRAM_UNSUPPORTED;
}

void vr_os_unmap(uint64_t address, uint64_t size_bytes) { (void)address, (void)size_bytes; }

enum vram_status vr_os_shared_open(int *file) {
    (void)file;
    return VRAM_UNSUPPORTED;
}

void vr_os_shared_close(int file) { (void)file; }

enum vram_status vr_os_shared_resize(int file, uint64_t size_bytes) {
    (void)file, (void)size_bytes;
    return VRAM_UNSUPPORTED;
}

void vr_os_shared_discard(int file, uint64_t offset, uint64_t size_bytes) { (void)file, (void)offset, (void)size_bytes; }

enum vram_status vr_os_shared_map(int file, uint64_t offset, uint64_t size_bytes, uint64_t address) {
    (void)file, (void)offset, (void)size_bytes, (void)address;
    return VRAM_UNSUPPORTED;
}

enum vram_status vr_os_shared_unmap(uint64_t address, uint64_t size_bytes) {
    (void)address, (void)size_bytes;
    return VRAM_UNSUPPORTED;
}

enum vram_status vr_os_protect(uint64_t address, uint64_t size_bytes, bool read, bool write) {
    (void)address, (void)size_bytes, (void)read, (void)write;
    return VRAM_UNSUPPORTED;
}

// Address space that costs nothing until touched, on top of a linear memory that only grows.
//
// memory.grow returns zeroed memory, which the host provides on first touch. A released range is kept for the next reservation, so it must
// be zeroed: only pages that are not yet zero are written, because reading a page costs little.

enum { WASM_PAGE = 65536, HOST_PAGE = 4096, LEAST_SHIFT = 20, MOST_SHIFT = 26 };

// Released ranges, by the power of two that is their size.
struct range {
    void *base;
    struct range *next;
};
static struct range *spare[MOST_SHIFT + 1];

// Returns the power of two that fits the size; 0 for sizes that malloc() serves better.
static unsigned shift_of(size_t size_bytes) {
    unsigned shift = LEAST_SHIFT;
    if (size_bytes <= (size_t)1 << (LEAST_SHIFT - 4)) return 0;
    while (((size_t)1 << shift) < size_bytes && shift <= MOST_SHIFT) shift++;
    return shift;
}

// A caller that can use less retries with less (allocator/core/slab.c). The whole memory is 4 GiB; one range has at most 64 MiB.
enum vram_status vr_os_reserve(size_t size_bytes, void **base) {
    const unsigned shift = shift_of(size_bytes);
    if (shift > MOST_SHIFT) return VRAM_NO_HOST_MEMORY;
    if (shift == 0) {
        void *made = calloc(1, size_bytes);
        if (made == NULL) return VRAM_NO_HOST_MEMORY;
        *base = made;
        return VRAM_OK;
    }
    struct range *kept = spare[shift];
    if (kept != NULL) {
        spare[shift] = kept->next;
        *base = kept->base;
        free(kept);
        return VRAM_OK;
    }
    const size_t grown = __builtin_wasm_memory_grow(0, ((size_t)1 << shift) / WASM_PAGE);
    if (grown == SIZE_MAX) return VRAM_NO_HOST_MEMORY;
    *base = (void *)(grown * WASM_PAGE);
    return VRAM_OK;
}

// Zeroes whole pages: bytes past the last one belong to the same range.
static void make_zero(unsigned char *base, size_t size_bytes) {
    for (size_t at = 0; at < size_bytes; at += HOST_PAGE) {
        const uint64_t *words = (const uint64_t *)(const void *)(base + at);
        uint64_t any = 0;
        for (size_t i = 0; i < HOST_PAGE / sizeof *words; i++) any |= words[i];
        if (any != 0) memset(base + at, 0, HOST_PAGE);
    }
}

void vr_os_unreserve_touched(void *base, size_t size_bytes, size_t touched_bytes) {
    if (base == NULL) return;
    const unsigned shift = shift_of(size_bytes);
    struct range *range = shift == 0 ? NULL : malloc(sizeof *range);
    if (shift == 0) free(base);
    if (range == NULL) return; // without memory for the list entry, the range is lost
    make_zero(base, touched_bytes);
    *range = (struct range){.base = base, .next = spare[shift]};
    spare[shift] = range;
}

// Released ranges are always kept.
void vr_os_keep_begin(void) {}
void vr_os_keep_end(void) {}

void vr_os_prefer_large_pages(void *base, size_t size_bytes) { (void)base, (void)size_bytes; }

void vr_os_unreserve(void *base, size_t size_bytes) { vr_os_unreserve_touched(base, size_bytes, size_bytes); }
