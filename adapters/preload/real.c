// real.c: finds the functions that we replace: the C library's own dlsym() and related functions, by walking its symbol table (dlsym()
// would find ours), and the copies of libcuda.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "preload.h"
#include "real.h"
#include "vram/stack.h"

// Searching uses no function of the C library: a sanitizer that wraps them finds the originals by dlsym(), and until then strcmp() and
// others cannot be called.
bool pl_same(const char *text, const char *other) {
    while (*text != '\0' && *text == *other) {
        text++;
        other++;
    }
    return *text == *other;
}

bool pl_begins(const char *text, const char *start) {
    while (*start != '\0' && *text == *start) {
        text++;
        start++;
    }
    return *start == '\0';
}

// The dynamic section of a loaded library, as far as it describes symbols. Addresses are final: glibc relocates them at load.
struct symbols {
    const ElfW(Sym) * table;
    const char *strings;
    const uint32_t *gnu_hash;
    const uint32_t *hash;
    ElfW(Addr) base;
};

static ElfW(Addr) absolute(const struct link_map *map, ElfW(Addr) address) {
    return address < map->l_addr ? map->l_addr + address : address;
}

static bool read_dynamic(const struct link_map *map, struct symbols *symbols) {
    *symbols = (struct symbols){.base = map->l_addr};
    for (const ElfW(Dyn) *entry = map->l_ld; entry != NULL && entry->d_tag != DT_NULL; entry++) {
        const void *at = (const void *)absolute(map, entry->d_un.d_ptr);
        switch (entry->d_tag) {
        case DT_SYMTAB: symbols->table = at; break;
        case DT_STRTAB: symbols->strings = at; break;
        case DT_GNU_HASH: symbols->gnu_hash = at; break;
        case DT_HASH: symbols->hash = at; break;
        default: break;
        }
    }
    return symbols->table != NULL && symbols->strings != NULL && (symbols->gnu_hash != NULL || symbols->hash != NULL);
}

// Returns the function at this index if it has this name and is defined here. Ignores versions (dlsym@GLIBC_2.2.5 and dlsym@@GLIBC_2.34 are
// the same).
static void *take_symbol(const struct symbols *symbols, uint32_t index, const char *name) {
    const ElfW(Sym) *symbol = &symbols->table[index];
    if (symbol->st_shndx == SHN_UNDEF || (symbol->st_info & 0xf) != STT_FUNC || !pl_same(symbols->strings + symbol->st_name, name))
        return NULL;
    return (void *)(symbols->base + symbol->st_value);
}

static void *by_gnu_hash(const struct symbols *symbols, const char *name) {
    const uint32_t *head = symbols->gnu_hash;
    const uint32_t buckets = head[0], first = head[1], bloom_words = head[2];
    const uint32_t *bucket = head + 4 + bloom_words * (sizeof(ElfW(Addr)) / sizeof(uint32_t));
    const uint32_t *chain = bucket + buckets;
    uint32_t hash = 5381;
    for (const char *at = name; *at != '\0'; at++) hash = hash * 33 + (unsigned char)*at;
    uint32_t index = buckets == 0 ? 0 : bucket[hash % buckets];
    if (index < first) return NULL;
    for (;; index++) {
        const uint32_t word = chain[index - first];
        void *found = (word | 1) == (hash | 1) ? take_symbol(symbols, index, name) : NULL;
        if (found != NULL || (word & 1) != 0) return found;
    }
}

static void *by_hash(const struct symbols *symbols, const char *name) {
    const uint32_t count = symbols->hash[1]; // one chain entry per symbol
    for (uint32_t i = 0; i < count; i++) {
        void *found = take_symbol(symbols, i, name);
        if (found != NULL) return found;
    }
    return NULL;
}

static void *find_symbol(const struct symbols *symbols, const char *name) {
    return symbols->gnu_hash != NULL ? by_gnu_hash(symbols, name) : by_hash(symbols, name);
}

// Older C libraries have dlsym() in libdl.
static bool is_c_library(const char *path) {
    static const char *const starts[] = {"libc.so", "libc-", "libdl.so", "libdl-", "ld-musl", "libc.musl"};
    const char *name = path;
    for (const char *at = path; *at != '\0'; at++)
        if (*at == '/') name = at + 1;
    for (size_t i = 0; i < sizeof starts / sizeof starts[0]; i++)
        if (pl_begins(name, starts[i])) return true;
    return false;
}

static void look_at(const struct link_map *map, struct pl_libc *libc) {
    struct symbols symbols;
    if (map->l_name == NULL || !is_c_library(map->l_name) || !read_dynamic(map, &symbols)) return;
    const struct {
        const char *name;
        void *target;
    } wanted[] = {{"dlsym", &libc->dlsym},
                  {"dlvsym", &libc->dlvsym},
                  {"dlopen", &libc->dlopen},
                  {"dlmopen", &libc->dlmopen},
                  {"dlclose", &libc->dlclose}};
    for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++) {
        void *found = find_symbol(&symbols, wanted[i].name), *known;
        memcpy(&known, wanted[i].target, sizeof known);
        if (found != NULL && known == NULL) memcpy(wanted[i].target, &found, sizeof found);
    }
}

// Libraries loaded at start come first in the list and stay, so this part is walked without the loader's lock.
static struct pl_libc true_libc;
static atomic_bool libc_found;

const struct pl_libc *pl_libc(void) {
    if (atomic_load_explicit(&libc_found, memory_order_acquire)) return &true_libc;
    struct pl_libc libc = {0};
    for (const struct link_map *map = _r_debug.r_map; map != NULL && libc.dlsym == NULL; map = map->l_next) look_at(map, &libc);
    true_libc = libc; // every thread stores the same
    atomic_store_explicit(&libc_found, true, memory_order_release);
    return &true_libc;
}

// --- libraries --------------------------------------------------------------------------------------------------------------

struct holder {
    uintptr_t address;
    char *name;
    size_t capacity;
    bool first;
};

static int look_for_holder(struct dl_phdr_info *info, size_t size, void *data) {
    (void)size;
    struct holder *holder = data;
    const bool program = holder->first;
    holder->first = false;
    bool holds = false;
    for (size_t i = 0; i < info->dlpi_phnum; i++)
        holds = holds || (info->dlpi_phdr[i].p_type == PT_LOAD &&
                          holder->address - (info->dlpi_addr + info->dlpi_phdr[i].p_vaddr) < info->dlpi_phdr[i].p_memsz);
    if (!holds) return 0;
    const ssize_t length = program ? readlink("/proc/self/exe", holder->name, holder->capacity - 1) : 0;
    holder->name[length < 0 ? 0 : length] = '\0';
    if (!program) (void)snprintf(holder->name, holder->capacity, "%s", info->dlpi_name);
    return 1;
}

// Searches the list of loaded libraries, whose lock is only held briefly. dladdr() would take the lock that dlopen() holds while it runs
// constructors.
bool pl_library_of(const void *address, char *name, size_t capacity) {
    struct holder holder = {(uintptr_t)address, name, capacity, true};
    return address != NULL && dl_iterate_phdr(look_for_holder, &holder) != 0;
}

_Atomic uint64_t pl_closed_libraries;

// Counts closed libraries.
PL_EXPORT int dlclose(void *library) {
    const int result = pl_libc()->dlclose == NULL ? -1 : pl_libc()->dlclose(library);
    atomic_fetch_add_explicit(&pl_closed_libraries, 1, memory_order_relaxed);
    return result;
}

// --- drivers --------------------------------------------------------------------------------------------------------------

#define DRIVERS_MAX 16
static struct pl_driver drivers[DRIVERS_MAX]; // [0]: the next library after us
static size_t driver_count;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; // guards the drivers and the doors' slots; taken with no other lock of ours held

void pl_doors_lock(void) { (void)pthread_mutex_lock(&lock); }
void pl_doors_unlock(void) { (void)pthread_mutex_unlock(&lock); }
void pl_doors_renew(void) {
    const pthread_mutex_t fresh = PTHREAD_MUTEX_INITIALIZER;
    memcpy(&lock, &fresh, sizeof fresh);
}

static void *next_symbol(const char *name) {
    const struct pl_libc *libc = pl_libc();
    if (libc->dlsym == NULL) return NULL;
    void *found = libc->dlsym(RTLD_NEXT, name);
    if (found != NULL || libc->dlopen == NULL || libc->dlclose == NULL) return found;
    void *library = libc->dlopen("libcuda.so.1", RTLD_NOLOAD | RTLD_LAZY);
    if (library == NULL) return NULL;
    found = libc->dlsym(library, name);
    (void)libc->dlclose(library); // the program keeps it open; we must not keep it longer
    return found;
}

pl_function *pl_next(const char *name) {
    pl_depth++;
    void *found = next_symbol(name);
    pl_depth--;
    pl_function *entry;
    memcpy(&entry, &found, sizeof entry);
    return entry;
}

static void fill_driver(struct pl_driver *driver, void *library) {
    *driver = (struct pl_driver){.library = library};
    void *found;
#define FILL(member, name, parameters)                                                                                                     \
    found = library == NULL ? next_symbol(#name) : pl_libc()->dlsym(library, #name);                                                       \
    memcpy(&driver->member, &found, sizeof found);
    PL_DRIVER_CALLS(FILL)
#undef FILL
}

// Reopens the library that contains `entry`, in its own namespace. The caller closes it. Returns NULL if it is not a libcuda.
static void *open_library_of(pl_function *entry) {
    void *address;
    memcpy(&address, &entry, sizeof address);
    Dl_info info;
    struct link_map *map = NULL;
    Lmid_t space = LM_ID_BASE;
    if (dladdr1(address, &info, (void **)&map, RTLD_DL_LINKMAP) == 0 || map == NULL || pl_libc()->dlmopen == NULL ||
        pl_libc()->dlclose == NULL)
        return NULL;
    if (dlinfo(map, RTLD_DI_LMID, &space) != 0) return NULL;
    void *library = pl_libc()->dlmopen(space, map->l_name, RTLD_NOLOAD | RTLD_LAZY);
    if (library == NULL || pl_libc()->dlsym(library, "cuCtxGetDevice") != NULL) return library;
    (void)pl_libc()->dlclose(library);
    return NULL;
}

struct driver_question {
    pl_function *entry;
    const struct pl_driver *driver;
};

// Calls the loader without our lock: a thread in dlopen() may get here from a constructor and wait for that lock.
static void find_driver(void *argument) {
    struct driver_question *question = argument;
    pl_function *entry = question->entry;
    void *library = open_library_of(entry); // not kept, so that the program decides when to unload it
    struct pl_driver asked;
    fill_driver(&asked, library);
    pl_doors_lock();
    size_t at = 0;
    while (at < driver_count && drivers[at].library != library) at++;
    if (at == DRIVERS_MAX) at = 0; // more copies than expected; use the first
    // Write only changes, because others may be reading. (A library that was closed and reopened may have moved and have the same handle.)
    if (at == driver_count || memcmp(&drivers[at], &asked, sizeof asked) != 0) drivers[at] = asked;
    if (at == driver_count) driver_count++;
    pl_doors_unlock();
    if (library != NULL) (void)pl_libc()->dlclose(library);
    question->driver = &drivers[at];
}

// Once per function. The loader needs a deep stack.
const struct pl_driver *pl_driver_of(pl_function *entry) {
    struct driver_question question = {.entry = entry};
    pl_depth++;
    vram_stack_spare(find_driver, &question);
    pl_depth--;
    return question.driver;
}
