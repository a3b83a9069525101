// memory.c: memory of the process and of the machine.

#define _GNU_SOURCE

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/base.h"
#include "os/os.h"

// Reads the file's text; returns false if it cannot. Never blocks on a terminal or a pipe.
static bool read_text(const char *path, char *text, size_t capacity) {
    const int file = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    if (file < 0) return false;
    const ssize_t length = read(file, text, capacity - 1);
    (void)close(file);
    if (length <= 0) return false;
    text[length] = '\0';
    return true;
}

static bool read_meminfo(char *text, size_t capacity) {
    const char *path = vr_os_getenv("VRAM_MEMINFO");
    return read_text(path != NULL && path[0] != '\0' ? path : "/proc/meminfo", text, capacity);
}

static bool find_row(const char *text, const char *key, uint64_t *bytes) {
    const char *row = strstr(text, key);
    if (row == NULL) return false;
    char *end = NULL;
    const unsigned long long kibibytes = strtoull(row + strlen(key), &end, 10);
    if (end == row + strlen(key) || strncmp(end, " kB", 3) != 0 || kibibytes > UINT64_MAX / 1024) return false;
    *bytes = (uint64_t)kibibytes * 1024;
    return true;
}

bool vr_os_available_memory(uint64_t *bytes) {
    char text[4096];
    return read_meminfo(text, sizeof text) && find_row(text, "MemAvailable:", bytes);
}

// Reads a number of the control group as a container sees its own (version 2). "max" is not a number.
static bool read_number(const char *path, uint64_t *number) {
    char text[64], *end = NULL;
    if (!read_text(path, text, sizeof text)) return false;
    const unsigned long long found = strtoull(text, &end, 10);
    if (end == text || text[0] == '-') return false;
    *number = found;
    return true;
}

bool vr_os_main_memory(uint64_t *available_bytes, uint64_t *total_bytes) {
    char text[4096];
    uint64_t available, total, most, used;
    if (!read_meminfo(text, sizeof text) || !find_row(text, "MemAvailable:", &available) || !find_row(text, "MemTotal:", &total))
        return false;
    if (read_number("/sys/fs/cgroup/memory.max", &most) && most < total && read_number("/sys/fs/cgroup/memory.current", &used)) {
        total = most;
        if (most - (used < most ? used : most) < available) available = most - (used < most ? used : most);
    }
    *available_bytes = available;
    *total_bytes = total;
    return true;
}

// Address space at the caller's addresses, and memory files that can be mapped at several.

uint64_t vr_os_page_bytes(void) {
    static _Atomic uint64_t known; // concurrent queries get the same answer
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
    // The address is a hint, which the kernel honours if the range is free. MAP_FIXED_NOREPLACE would do the same, but ThreadSanitizer
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
    assert(is_page_range(offset, size_bytes)); // parts of pages would be zeroed and kept
    (void)fallocate(file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)offset, (off_t)size_bytes);
}

enum vram_status vr_os_shared_map(int file, uint64_t offset, uint64_t size_bytes, uint64_t address) {
    assert(address != 0 && is_page_range(address, size_bytes) && offset % vr_os_page_bytes() == 0); // MAP_FIXED replaces any mapping there
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

// Address space whose pages appear on first touch.

// Ranges kept for the thread's next reservation of their size. The first bytes of each point to the next.
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

// Not counted against the system's overcommit limit: most of a reservation is never touched.
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

// The kernel merges adjacent ranges. If the process has as many mappings as the system allows, the middle of a merged range cannot be
// unmapped: its memory is then released, but the address space stays.
void vr_os_unreserve(void *base, size_t size_bytes) {
    if (base == NULL || munmap(base, size_bytes) == 0) return;
    assert(errno == ENOMEM); // a range of vr_os_reserve(), with its size
    (void)madvise(base, size_bytes, MADV_DONTNEED);
}

// The system zeroes pages before it hands them out again.
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
