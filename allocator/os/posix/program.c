// program.c: the program of this process: its environment, libraries loaded at run time, loaded modules, and its threads' stacks.

#define _GNU_SOURCE

#include <dlfcn.h>
#include <stdlib.h>

#include "base/base.h"
#include "os/os.h"

const char *vr_os_getenv(const char *name) {
    assert(name != NULL);
    return getenv(name);
}

// Libraries loaded at run time.

// Loads with local scope: its symbols are found only by vr_os_dlsym() and replace no other library's.
void *vr_os_dlopen(const char *name, const char **reason) {
    assert(name != NULL);
    void *library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (library == NULL && reason != NULL) *reason = dlerror();
    return library;
}

void *vr_os_dlsym(void *library, const char *symbol) {
    assert(symbol != NULL);
    return dlsym(library, symbol);
}

void vr_os_dlclose(void *library) {
    if (library != NULL) (void)dlclose(library);
}

// Modules loaded into this process, and the stacks of its threads.

#ifdef __GLIBC__
#include <gnu/libc-version.h>
#endif
#include <link.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/base.h"
#include "os/os.h"

static char program_path[4096];
static pthread_once_t program_path_once = PTHREAD_ONCE_INIT;

static void find_program_path(void) {
    const ssize_t length = readlink("/proc/self/exe", program_path, sizeof program_path - 1);
    program_path[length > 0 ? length : 0] = '\0';
}

// Finds the build id among the notes at [at, end).
static void read_notes(struct vr_os_module *module, const unsigned char *at, const unsigned char *end) {
    while ((size_t)(end - at) >= sizeof(ElfW(Nhdr))) {
        ElfW(Nhdr) note;
        memcpy(&note, at, sizeof note);
        const size_t name = ((size_t)note.n_namesz + 3) & ~(size_t)3, bytes = ((size_t)note.n_descsz + 3) & ~(size_t)3;
        at += sizeof note;
        if (name > (size_t)(end - at) || bytes > (size_t)(end - at) - name) return;
        if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 && memcmp(at, "GNU", 4) == 0) {
            module->build_id = at + name;
            module->build_id_bytes = note.n_descsz;
            return;
        }
        at += name + bytes;
    }
}

// The child of a fork() would inherit the loader's lock as held, so no thread may be inside the loader while another forks.
static _Atomic int inside_loader;
static _Atomic int forking; // number of threads in fork()
static _Thread_local bool forking_here;
static pthread_once_t fork_once = PTHREAD_ONCE_INIT;

static void fork_begins(void) {
    forking_here = true;
    atomic_fetch_add(&forking, 1);
    while (atomic_load(&inside_loader) != 0) (void)sched_yield();
}

static void fork_in_parent(void) {
    atomic_fetch_sub(&forking, 1);
    forking_here = false;
}

// Other threads that were forking or entering the loader do not exist in the child.
static void fork_in_child(void) {
    atomic_store(&forking, 0);
    atomic_store(&inside_loader, 0);
    forking_here = false;
}

static void watch_forks(void) { (void)pthread_atfork(fork_begins, fork_in_parent, fork_in_child); }

static void ask_loader(int (*visit)(struct dl_phdr_info *info, size_t size, void *data), void *data) {
    (void)pthread_once(&fork_once, watch_forks);
    atomic_fetch_add(&inside_loader, 1);
    while (atomic_load(&forking) != 0 && !forking_here) {
        atomic_fetch_sub(&inside_loader, 1);
        (void)sched_yield();
        atomic_fetch_add(&inside_loader, 1);
    }
    (void)dl_iterate_phdr(visit, data);
    atomic_fetch_sub(&inside_loader, 1);
}

struct visitor {
    bool (*visit)(void *context, const struct vr_os_module *module);
    void *context;
    bool first;
};

// Avoids looking up a symbol, which would take the lock of dlopen() under that of the list.
static uint64_t place_in_c_library(void) {
#ifdef __GLIBC__
    return (uint64_t)(uintptr_t)gnu_get_libc_version();
#else
    return (uint64_t)(uintptr_t)fork;
#endif
}

static int visit_module(struct dl_phdr_info *info, size_t size, void *data) {
    (void)size;
    struct visitor *visitor = data;
    struct vr_os_module module = {.path = visitor->first ? program_path : info->dlpi_name, .bias = info->dlpi_addr, .start = UINT64_MAX};
    const uint64_t in_library = place_in_c_library();
    const bool program = visitor->first;
    visitor->first = false;
    for (size_t i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *header = &info->dlpi_phdr[i];
        const uint64_t address = info->dlpi_addr + header->p_vaddr;
        const unsigned char *bytes = (const unsigned char *)(uintptr_t)address;
        if (header->p_type == PT_LOAD) {
            if (address < module.start) module.start = address;
            if (address + header->p_memsz > module.end) module.end = address + header->p_memsz;
        } else if (header->p_type == PT_GNU_EH_FRAME) {
            module.unwind = bytes;
            module.unwind_bytes = header->p_memsz;
        } else if (header->p_type == PT_NOTE && module.build_id == NULL) {
            read_notes(&module, bytes, bytes + header->p_memsz);
        }
    }
    module.lasting = program || (in_library >= module.start && in_library < module.end);
    return module.end == 0 || visitor->visit(visitor->context, &module) ? 0 : 1;
}

void vr_os_modules(bool (*visit)(void *context, const struct vr_os_module *module), void *context) {
    assert(visit != NULL);
    (void)pthread_once(&program_path_once, find_program_path);
    struct visitor visitor = {.visit = visit, .context = context, .first = true};
    ask_loader(visit_module, &visitor);
}

struct holder {
    void (*inside)(void *context, uint64_t loads, uint64_t unloads);
    void *context;
};

static int give_counts(struct dl_phdr_info *info, size_t size, void *data) {
    const struct holder *holder = data;
    const bool counted = size >= offsetof(struct dl_phdr_info, dlpi_subs) + sizeof info->dlpi_subs;
    holder->inside(holder->context, counted ? info->dlpi_adds : 0, counted ? info->dlpi_subs : 0);
    return 1;
}

void vr_os_modules_hold(void (*inside)(void *context, uint64_t loads, uint64_t unloads), void *context) {
    assert(inside != NULL);
    struct holder holder = {.inside = inside, .context = context};
    ask_loader(give_counts, &holder);
}

// Finds the mapping around `address` in the kernel's list.
static bool find_mapping(uint64_t address, uint64_t *low, uint64_t *high) {
    FILE *maps = fopen("/proc/self/maps", "re");
    if (maps == NULL) return false;
    char line[512];
    bool found = false;
    unsigned long long start, end;
    while (!found && fgets(line, sizeof line, maps) != NULL) {
        if (sscanf(line, "%llx-%llx", &start, &end) == 2 && address >= start && address < end) found = true;
    }
    (void)fclose(maps);
    if (!found) return false;
    *low = start;
    *high = end;
    return true;
}

static bool find_bounds(uint64_t address, uint64_t *low, uint64_t *high) {
    pthread_attr_t attributes;
    if (pthread_getattr_np(pthread_self(), &attributes) == 0) {
        void *base;
        size_t size;
        const bool known = pthread_attr_getstack(&attributes, &base, &size) == 0;
        (void)pthread_attr_destroy(&attributes);
        const uint64_t start = (uint64_t)(uintptr_t)base;
        if (known && address >= start && address - start < size) {
            *low = start;
            *high = start + size;
            return true;
        }
    }
    return find_mapping(address, low, high);
}

struct bounds {
    uint64_t address, low, high;
    bool found;
};

static void find_bounds_of(void *argument) {
    struct bounds *bounds = argument;
    bounds->found = find_bounds(bounds->address, &bounds->low, &bounds->high);
}

bool vr_os_stack_bounds(uint64_t address, uint64_t *low, uint64_t *high) {
    assert(low != NULL && high != NULL);
    struct bounds bounds = {.address = address};
    vr_os_on_spare_stack(find_bounds_of, &bounds); // the C library parses text on 3 KiB of stack
    if (!bounds.found) return false;
    *low = bounds.low;
    *high = bounds.high;
    return true;
}

bool vr_os_is_mapped(uint64_t start, uint64_t end) {
    assert(start <= end);
    start -= start % (uint64_t)sysconf(_SC_PAGESIZE);
    return msync((void *)(uintptr_t)start, end - start, MS_ASYNC) == 0; // MS_ASYNC has no other effect
}

bool vr_os_function(uint64_t address, uint64_t *start, uint64_t *end) {
    assert(start != NULL && end != NULL);
    Dl_info info;
    void *entry = NULL;
    if (dladdr1((void *)(uintptr_t)address, &info, &entry, RTLD_DL_SYMENT) == 0 || info.dli_saddr == NULL || entry == NULL) return false;
    *start = (uint64_t)(uintptr_t)info.dli_saddr;
    *end = *start + ((const ElfW(Sym) *)entry)->st_size;
    return address >= *start && address < *end;
}

void vr_os_at_fork(void (*before)(void), void (*in_parent)(void), void (*in_child)(void)) {
    // Handlers registered first run last before a fork: a thread that uses the loader under such a lock has left it by then.
    (void)pthread_once(&fork_once, watch_forks);
    (void)pthread_atfork(before, in_parent, in_child);
}
