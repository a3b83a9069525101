// real.c: what lies behind us: the C library's true dlsym() and its kin, found by walking its symbol table (asking dlsym() for
// dlsym() would find ourselves), and the copies of libcuda.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <pthread.h>
#include <string.h>

#include "preload.h"

// The parts of a loaded library's dynamic section that name its symbols. Addresses are final: glibc relocates them at load.
struct symbols {
    const ElfW(Sym) * table;
    const char *strings;
    const uint32_t *gnu_hash;
    const uint32_t *hash;
    ElfW(Addr) base;
};

static ElfW(Addr) absolute(const struct dl_phdr_info *info, ElfW(Addr) address) {
    return address < info->dlpi_addr ? info->dlpi_addr + address : address;
}

static bool read_dynamic(const struct dl_phdr_info *info, struct symbols *symbols) {
    *symbols = (struct symbols){.base = info->dlpi_addr};
    const ElfW(Dyn) *entry = NULL;
    for (size_t i = 0; i < info->dlpi_phnum; i++)
        if (info->dlpi_phdr[i].p_type == PT_DYNAMIC) entry = (const void *)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr);
    for (; entry != NULL && entry->d_tag != DT_NULL; entry++) {
        const void *at = (const void *)absolute(info, entry->d_un.d_ptr);
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

// The function at this index if it is called `name` and is defined here; versions are not looked at (dlsym@GLIBC_2.2.5 and
// dlsym@@GLIBC_2.34 are the same).
static void *take(const struct symbols *symbols, uint32_t index, const char *name) {
    const ElfW(Sym) *symbol = &symbols->table[index];
    if (symbol->st_shndx == SHN_UNDEF || (symbol->st_info & 0xf) != STT_FUNC || strcmp(symbols->strings + symbol->st_name, name) != 0)
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
        void *found = (word | 1) == (hash | 1) ? take(symbols, index, name) : NULL;
        if (found != NULL || (word & 1) != 0) return found;
    }
}

static void *by_hash(const struct symbols *symbols, const char *name) {
    const uint32_t count = symbols->hash[1]; // as many chain entries as symbols
    for (uint32_t i = 0; i < count; i++) {
        void *found = take(symbols, i, name);
        if (found != NULL) return found;
    }
    return NULL;
}

static void *find(const struct symbols *symbols, const char *name) {
    return symbols->gnu_hash != NULL ? by_gnu_hash(symbols, name) : by_hash(symbols, name);
}

// Older C libraries keep dlsym() in libdl.
static bool is_c_library(const char *path) {
    const char *slash = strrchr(path, '/');
    const char *name = slash == NULL ? path : slash + 1;
    return strncmp(name, "libc.so", 7) == 0 || strncmp(name, "libc-", 5) == 0 || strncmp(name, "libdl.so", 8) == 0 ||
           strncmp(name, "libdl-", 6) == 0 || strncmp(name, "ld-musl", 7) == 0 || strncmp(name, "libc.musl", 9) == 0;
}

static int look_at(struct dl_phdr_info *info, size_t size, void *data) {
    (void)size;
    struct pl_libc *libc = data;
    struct symbols symbols;
    if (info->dlpi_name == NULL || !is_c_library(info->dlpi_name) || !read_dynamic(info, &symbols)) return 0;
    const struct {
        const char *name;
        void *target;
    } wanted[] = {{"dlsym", &libc->dlsym},
                  {"dlvsym", &libc->dlvsym},
                  {"dlopen", &libc->dlopen},
                  {"dlmopen", &libc->dlmopen},
                  {"dlclose", &libc->dlclose}};
    for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++) {
        void *found = find(&symbols, wanted[i].name), *known;
        memcpy(&known, wanted[i].target, sizeof known);
        if (found != NULL && known == NULL) memcpy(wanted[i].target, &found, sizeof found);
    }
    return 0;
}

static struct pl_libc true_libc;
static pthread_once_t libc_once = PTHREAD_ONCE_INIT;

static void find_libc(void) { (void)dl_iterate_phdr(look_at, &true_libc); }

const struct pl_libc *pl_libc(void) {
    (void)pthread_once(&libc_once, find_libc);
    return &true_libc;
}

// --- drivers --------------------------------------------------------------------------------------------------------------

#define DRIVERS_MAX 16
static struct pl_driver drivers[DRIVERS_MAX]; // [0]: whatever comes after us
static size_t driver_count;
static pthread_mutex_t driver_lock = PTHREAD_MUTEX_INITIALIZER; // taken under the lock of the doors; nothing is taken under it

static void *next_symbol(const char *name) {
    const struct pl_libc *libc = pl_libc();
    if (libc->dlsym == NULL) return NULL;
    void *found = libc->dlsym(RTLD_NEXT, name);
    if (found != NULL || libc->dlopen == NULL || libc->dlclose == NULL) return found;
    void *library = libc->dlopen("libcuda.so.1", RTLD_NOLOAD | RTLD_LAZY);
    if (library == NULL) return NULL;
    found = libc->dlsym(library, name);
    (void)libc->dlclose(library); // the program holds it; so do we, no longer than it does
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

static void fill(struct pl_driver *driver, void *library) {
    *driver = (struct pl_driver){.library = library};
    void *found;
#define FILL(member, name, parameters)                                                                                                     \
    found = library == NULL ? next_symbol(#name) : pl_libc()->dlsym(library, #name);                                                       \
    memcpy(&driver->member, &found, sizeof found);
    PL_DRIVER_CALLS(FILL)
#undef FILL
}

// Opens the library that holds `entry` once more, in its own namespace; the caller closes it. NULL when it is not a libcuda.
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

const struct pl_driver *pl_driver_of(pl_function *entry) {
    pl_depth++;
    (void)pthread_mutex_lock(&driver_lock);
    void *library = open_library_of(entry); // not kept: the program decides how long it stays
    size_t at = 0;
    while (at < driver_count && drivers[at].library != library) at++;
    if (at == DRIVERS_MAX) at = 0; // more copies than anybody has: the questions go to the first
    struct pl_driver asked;
    fill(&asked, library);
    if (library != NULL) (void)pl_libc()->dlclose(library);
    // Only what is new is written: others may be reading. (A library closed and opened again may lie elsewhere under the same handle.)
    if (at == driver_count || memcmp(&drivers[at], &asked, sizeof asked) != 0) drivers[at] = asked;
    if (at == driver_count) driver_count++;
    (void)pthread_mutex_unlock(&driver_lock);
    pl_depth--;
    return &drivers[at];
}
