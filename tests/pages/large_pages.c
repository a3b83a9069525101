// large_pages.c: when preloaded, emulates a system with larger pages: VRAM_TEST_PAGE_BYTES, 16 or 64 KiB, as on aarch64. Refuses what such
// a kernel refuses: an address or offset inside a page. Rounds lengths up, so that whole pages are mapped and unmapped. Mappings made by
// the C library are unchanged.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

static uintptr_t own_page_bytes(void) { return (uintptr_t)getauxval(AT_PAGESZ); } // of the real system

static uintptr_t page_bytes(void) {
    static uintptr_t known;
    uintptr_t bytes = __atomic_load_n(&known, __ATOMIC_RELAXED);
    if (bytes == 0) {
        const char *text = getenv("VRAM_TEST_PAGE_BYTES");
        bytes = text == NULL ? own_page_bytes() : (uintptr_t)strtoul(text, NULL, 10);
        __atomic_store_n(&known, bytes, __ATOMIC_RELAXED);
    }
    return bytes;
}

static bool is_at_page(uintptr_t address) { return address % page_bytes() == 0; }
static uintptr_t whole(uintptr_t bytes) { return (bytes + page_bytes() - 1) / page_bytes() * page_bytes(); }
static int refuse(void) { return errno = EINVAL, -1; }

static void *map_below(void *address, size_t bytes, int protection, int flags, int file, off_t offset) {
    return (void *)syscall(SYS_mmap, address, bytes, protection, flags, file, offset);
}
static int unmap_below(uintptr_t address, size_t bytes) { return bytes == 0 ? 0 : (int)syscall(SYS_munmap, address, bytes); }

// Finds a place of whole pages: at the hint if it is free, like the kernel, otherwise anywhere.
static uintptr_t take_place(uintptr_t hint, size_t bytes) {
    const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
    hint = whole(hint);
    if (hint != 0) {
        void *there = map_below((void *)hint, bytes, PROT_NONE, flags | MAP_FIXED_NOREPLACE, -1, 0);
        if (there != MAP_FAILED) return (uintptr_t)there;
    }
    void *made = map_below(NULL, bytes + page_bytes(), PROT_NONE, flags, -1, 0);
    if (made == MAP_FAILED) return 0;
    const uintptr_t first = (uintptr_t)made, place = whole(first), end = first + bytes + page_bytes();
    unmap_below(first, place - first);
    unmap_below(place + bytes, end - place - bytes);
    return place;
}

void *mmap(void *address, size_t bytes, int protection, int flags, int file, off_t offset) {
    const bool fixed = (flags & (MAP_FIXED | MAP_FIXED_NOREPLACE)) != 0;
    if (bytes == 0 || !is_at_page((uintptr_t)offset) || (fixed && !is_at_page((uintptr_t)address))) {
        errno = EINVAL;
        return MAP_FAILED;
    }
    bytes = whole(bytes);
    if (fixed) return map_below(address, bytes, protection, flags, file, offset);
    const uintptr_t place = take_place((uintptr_t)address, bytes);
    void *mapped = place == 0 ? MAP_FAILED : map_below((void *)place, bytes, protection, flags | MAP_FIXED, file, offset);
    if (mapped == MAP_FAILED && place != 0) {
        const int why = errno;
        unmap_below(place, bytes);
        errno = why;
    }
    return mapped;
}

void *mmap64(void *address, size_t bytes, int protection, int flags, int file, off_t offset) {
    return mmap(address, bytes, protection, flags, file, offset);
}

int munmap(void *address, size_t bytes) {
    return is_at_page((uintptr_t)address) ? unmap_below((uintptr_t)address, whole(bytes)) : refuse();
}

int mprotect(void *address, size_t bytes, int protection) {
    return is_at_page((uintptr_t)address) ? (int)syscall(SYS_mprotect, address, whole(bytes), protection) : refuse();
}

int madvise(void *address, size_t bytes, int advice) {
    return is_at_page((uintptr_t)address) ? (int)syscall(SYS_madvise, address, whole(bytes), advice) : refuse();
}

// A page exists if part of it does: the C library's mappings need not fill one.
int msync(void *address, size_t bytes, int flags) {
    if (!is_at_page((uintptr_t)address)) return refuse();
    for (uintptr_t page = (uintptr_t)address, end = page + whole(bytes); page < end; page += page_bytes()) {
        bool found = false;
        for (uintptr_t part = page; part < page + page_bytes() && !found; part += own_page_bytes())
            found = syscall(SYS_msync, part, own_page_bytes(), flags) == 0;
        if (!found) return errno = ENOMEM, -1;
    }
    return 0;
}

int getpagesize(void) { return (int)page_bytes(); }

long sysconf(int name) {
    static long (*below)(int);
    if (name == _SC_PAGESIZE) return (long)page_bytes();
    long (*ask)(int) = __atomic_load_n(&below, __ATOMIC_RELAXED);
    if (ask == NULL) {
        *(void **)&ask = dlsym(RTLD_NEXT, "sysconf");
        __atomic_store_n(&below, ask, __ATOMIC_RELAXED);
    }
    return ask(name);
}
