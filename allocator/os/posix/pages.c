// pages.c: address space at places that the caller says, and memory files that can stand at several.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/base.h"
#include "os/os.h"

uint64_t vr_os_page_bytes(void) {
    static _Atomic uint64_t known; // threads that ask at once get the same answer
    uint64_t bytes = atomic_load_explicit(&known, memory_order_relaxed);
    if (bytes == 0) {
        bytes = (uint64_t)sysconf(_SC_PAGESIZE);
        atomic_store_explicit(&known, bytes, memory_order_relaxed);
    }
    return bytes;
}

static void *pointer_of(uint64_t address) { return (void *)(uintptr_t)address; }

static bool is_page_range(uint64_t address, uint64_t size_bytes) {
    return (address | size_bytes) % vr_os_page_bytes() == 0 && size_bytes > 0 && address <= UINT64_MAX - size_bytes;
}

static enum vram_status map_anywhere(uint64_t size_bytes, uint64_t alignment, int protection, uint64_t *mapped) {
    if (alignment < vr_os_page_bytes()) alignment = vr_os_page_bytes();
    if (size_bytes > UINT64_MAX - alignment) return VRAM_LIMIT;
    uint64_t extent = size_bytes + alignment;
    void *memory = mmap(NULL, extent, protection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) return VRAM_LIMIT;
    uint64_t base = (uint64_t)(uintptr_t)memory;
    uint64_t aligned = (base + alignment - 1) & ~(alignment - 1);
    if (aligned > base) (void)munmap(memory, aligned - base);
    if (base + extent > aligned + size_bytes) (void)munmap(pointer_of(aligned + size_bytes), base + extent - aligned - size_bytes);
    *mapped = aligned;
    return VRAM_OK;
}

enum vram_status vr_os_map(uint64_t address, uint64_t size_bytes, uint64_t alignment, bool accessible, uint64_t *mapped) {
    assert(is_page_range(address, size_bytes) && (alignment & (alignment - 1)) == 0 && mapped != NULL);
    int protection = accessible ? PROT_READ | PROT_WRITE : PROT_NONE;
    if (address == 0) return map_anywhere(size_bytes, alignment, protection, mapped);
    // The address is a hint, which the kernel takes when the range is free. MAP_FIXED_NOREPLACE would say the same, but ThreadSanitizer
    // moves the address and keeps the flag.
    void *memory = mmap(pointer_of(address), size_bytes, protection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) return VRAM_LIMIT;
    if (memory != pointer_of(address)) {
        (void)munmap(memory, size_bytes);
        return VRAM_LIMIT;
    }
    *mapped = address;
    return VRAM_OK;
}

void vr_os_unmap(uint64_t address, uint64_t size_bytes) {
    assert(address != 0 && is_page_range(address, size_bytes));
    vr_os_unreserve(pointer_of(address), size_bytes);
}

enum vram_status vr_os_shared_open(int *file) {
    assert(file != NULL);
    int opened = memfd_create("vram", MFD_CLOEXEC);
    if (opened < 0) return errno == ENOSYS ? VRAM_UNSUPPORTED : VRAM_NO_HOST_MEMORY;
    *file = opened;
    return VRAM_OK;
}

void vr_os_shared_close(int file) { (void)close(file); }

enum vram_status vr_os_shared_resize(int file, uint64_t size_bytes) {
    return ftruncate(file, (off_t)size_bytes) == 0 ? VRAM_OK : VRAM_NO_HOST_MEMORY;
}

void vr_os_shared_discard(int file, uint64_t offset, uint64_t size_bytes) {
    if (size_bytes == 0) return;
    assert(is_page_range(offset, size_bytes)); // parts of pages would be made zero and kept
    (void)fallocate(file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)offset, (off_t)size_bytes);
}

enum vram_status vr_os_shared_map(int file, uint64_t offset, uint64_t size_bytes, uint64_t address) {
    assert(address != 0 && is_page_range(address, size_bytes) && offset % vr_os_page_bytes() == 0); // MAP_FIXED takes whatever lies there
    void *memory = mmap(pointer_of(address), size_bytes, PROT_NONE, MAP_SHARED | MAP_FIXED, file, (off_t)offset);
    return memory == MAP_FAILED ? VRAM_NO_HOST_MEMORY : VRAM_OK;
}

enum vram_status vr_os_shared_unmap(uint64_t address, uint64_t size_bytes) {
    assert(address != 0 && is_page_range(address, size_bytes));
    int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED;
    return mmap(pointer_of(address), size_bytes, PROT_NONE, flags, -1, 0) == MAP_FAILED ? VRAM_NO_HOST_MEMORY : VRAM_OK;
}

enum vram_status vr_os_protect(uint64_t address, uint64_t size_bytes, bool read, bool write) {
    assert(address != 0 && is_page_range(address, size_bytes));
    int protection = (read ? PROT_READ : 0) | (write ? PROT_WRITE : 0);
    return mprotect(pointer_of(address), size_bytes, protection == 0 ? PROT_NONE : protection) == 0 ? VRAM_OK : VRAM_NO_HOST_MEMORY;
}
