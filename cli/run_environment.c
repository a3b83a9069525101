#define _GNU_SOURCE // mkdtemp()

#include "run_environment.h"

#include <elf.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

// Stores the folder of this executable, without a trailing slash.
static bool own_folder(char *folder, size_t capacity) {
    const ssize_t length = readlink("/proc/self/exe", folder, capacity - 1);
    if (length <= 0) return false;
    folder[length] = '\0';
    *strrchr(folder, '/') = '\0';
    return true;
}

static bool is_there(const char *folder, const char *file) {
    char path[4096];
    const int length = snprintf(path, sizeof path, "%s/%s", folder, file);
    return length > 0 && (size_t)length < sizeof path && access(path, R_OK) == 0;
}

// Finds a folder that contains `file`. A folder is absolute as configured, else relative to this executable.
static bool find_folder(const char *const *folders, size_t count, const char *file, char *path, size_t capacity) {
    char own[4096];
    if (!own_folder(own, sizeof own)) return false;
    for (size_t i = 0; i < count; i++) {
        const int length =
            folders[i][0] == '/' ? snprintf(path, capacity, "%s", folders[i]) : snprintf(path, capacity, "%s/%s", own, folders[i]);
        if (length > 0 && (size_t)length < capacity && is_there(path, file)) return true;
    }
    return false;
}

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

bool find_preload_library(char *path, size_t capacity) {
    static const char *const folders[] = {VRAM_PRELOAD_DIR, "../adapters/preload"};
    const char *wanted = getenv("VRAM_PRELOAD");
    if (wanted != NULL) return snprintf(path, capacity, "%s", wanted) < (int)capacity && access(path, R_OK) == 0;
    if (!find_folder(folders, COUNT_OF(folders), "libvram_preload.so", path, capacity)) return false;
    const size_t used = strlen(path);
    return snprintf(path + used, capacity - used, "/libvram_preload.so") < (int)(capacity - used);
}

bool find_simcuda_folder(char *path, size_t capacity) {
    static const char *const folders[] = {VRAM_SIMCUDA_DIR, "../simcuda"};
    const char *wanted = getenv("VRAM_SIMCUDA");
    if (wanted != NULL) return snprintf(path, capacity, "%s", wanted) < (int)capacity && is_there(path, "libcuda.so.1");
    return find_folder(folders, COUNT_OF(folders), "libcuda.so.1", path, capacity);
}

bool find_cudart_folder(char *path, size_t capacity) {
    static const char *const folders[] = {VRAM_SIMCUDA_DIR, "../simcudart"};
    const char *wanted = getenv("VRAM_SIMCUDART");
    if (wanted != NULL) return snprintf(path, capacity, "%s", wanted) < (int)capacity && is_there(path, "libcudart.so.13");
    return find_folder(folders, COUNT_OF(folders), "libcudart.so.13", path, capacity);
}

bool find_standins_folder(char *path, size_t capacity) {
    static const char *const folders[] = {VRAM_SIMCUDA_DIR, "../standins"};
    return find_folder(folders, COUNT_OF(folders), ".", path, capacity);
}

bool find_front_library(char *path, size_t capacity) {
    static const char *const folders[] = {VRAM_SIMCUDA_DIR, "../simfront"};
    if (!find_folder(folders, COUNT_OF(folders), "libvram_front.so", path, capacity)) return false;
    const size_t used = strlen(path);
    return snprintf(path + used, capacity - used, "/libvram_front.so") < (int)(capacity - used);
}

bool find_fit_folder(char *path, size_t capacity) {
    static const char *const folders[] = {VRAM_PRELOAD_DIR "/fit", "../adapters/fit"};
    return find_folder(folders, COUNT_OF(folders), "sitecustomize.py", path, capacity);
}

bool find_documents_folder(char *path, size_t capacity) {
    static const char *const folders[] = {VRAM_DOCUMENTS_DIR, "../../.."};
    return find_folder(folders, COUNT_OF(folders), "docs/README.md", path, capacity);
}

bool find_stacks_library(char *path, size_t capacity) {
    static const char *const folders[] = {VRAM_PRELOAD_DIR "/..", ".."};
    if (!find_folder(folders, COUNT_OF(folders), VRAM_LIBRARY_FILE, path, capacity)) return false;
    const size_t used = strlen(path);
    return snprintf(path + used, capacity - used, "/%s", VRAM_LIBRARY_FILE) < (int)(capacity - used);
}

// Programs into which nothing can be preloaded: they are static, or their dynamic linker ignores LD_PRELOAD.

// Finds the file that execvp() would run. Returns false if there is none.
static bool find_program(const char *program, char *path) {
    if (strchr(program, '/') != NULL)
        return snprintf(path, RUN_PATH_CAPACITY, "%s", program) < RUN_PATH_CAPACITY && access(path, X_OK) == 0;
    const char *folders = getenv("PATH");
    for (const char *at = folders; at != NULL && *at != '\0';) {
        const size_t length = strcspn(at, ":");
        const int wanted = snprintf(path, RUN_PATH_CAPACITY, "%.*s/%s", (int)length, at, program);
        if (wanted > 0 && wanted < RUN_PATH_CAPACITY && access(path, X_OK) == 0) return true;
        at += length + (at[length] == ':');
    }
    return false;
}

// Also returns false for scripts and other files that are not 64-bit ELF, which the kernel handles or refuses.
static bool is_static(FILE *file) {
    Elf64_Ehdr head;
    if (fread(&head, sizeof head, 1, file) != 1 || memcmp(head.e_ident, ELFMAG, SELFMAG) != 0 || head.e_ident[EI_CLASS] != ELFCLASS64 ||
        head.e_phentsize != sizeof(Elf64_Phdr) || fseek(file, (long)head.e_phoff, SEEK_SET) != 0)
        return false;
    for (unsigned i = 0; i < head.e_phnum; i++) {
        Elf64_Phdr part;
        if (fread(&part, sizeof part, 1, file) != 1) return false;
        if (part.p_type == PT_INTERP) return false;
    }
    return true;
}

static bool is_32_bit(FILE *file) {
    unsigned char ident[EI_NIDENT];
    const bool read = fread(ident, sizeof ident, 1, file) == 1;
    rewind(file);
    return read && memcmp(ident, ELFMAG, SELFMAG) == 0 && ident[EI_CLASS] == ELFCLASS32;
}

const char *run_check(const char *program) {
    char path[RUN_PATH_CAPACITY];
    struct stat facts;
    if (!find_program(program, path) || stat(path, &facts) != 0) return NULL;
    const bool other_user = (facts.st_mode & S_ISUID) != 0 && facts.st_uid != geteuid();
    const bool other_group = (facts.st_mode & S_ISGID) != 0 && facts.st_gid != getegid();
    if (other_user || other_group) return "it is a setuid program, which ignores preloaded libraries";
    FILE *file = fopen(path, "rb");
    if (file == NULL) return NULL;
    const char *why = is_32_bit(file) ? "it is a 32-bit program" : is_static(file) ? "it is linked statically" : NULL;
    (void)fclose(file);
    return why;
}

// --- the library ------------------------------------------------------------------------------------------------------------------

// Returns whether LD_PRELOAD can contain the path: the dynamic linker splits it at spaces and colons.
static bool can_be_preloaded(const char *path) { return path[strcspn(path, " :")] == '\0'; }

static const char *temporary_folder(void) {
    const char *folder = getenv("TMPDIR");
    return folder == NULL || folder[0] == '\0' ? "/tmp" : folder;
}

// Makes a link to the library in its own folder, with a path that the dynamic linker can read, and stores the link's path in `library`. The
// link lasts until this program ends: children that live longer continue, but programs they execute later are not recorded. Returns false
// with errno set.
static bool link_library(char library[RUN_PATH_CAPACITY], char folder[RUN_PATH_CAPACITY]) {
    char *target = realpath(library, NULL);
    const char *base = can_be_preloaded(temporary_folder()) ? temporary_folder() : "/tmp";
    bool linked =
        target != NULL && snprintf(folder, RUN_PATH_CAPACITY, "%s/vram-run-XXXXXX", base) < RUN_PATH_CAPACITY && mkdtemp(folder) != NULL;
    if (linked) {
        const int length = snprintf(library, RUN_PATH_CAPACITY, "%s/libvram_preload.so", folder);
        linked = length < RUN_PATH_CAPACITY && symlink(target, library) == 0;
        if (!linked) (void)rmdir(folder);
    }
    free(target);
    return linked;
}

bool run_library_find(struct run_library *library) {
    library->folder[0] = '\0';
    return find_preload_library(library->path, sizeof library->path);
}

bool run_library_open(struct run_library *library) {
    return can_be_preloaded(library->path) || link_library(library->path, library->folder);
}

void run_library_close(struct run_library *library) {
    if (library->folder[0] == '\0') return;
    (void)unlink(library->path);
    (void)rmdir(library->folder);
}

// --- the environment --------------------------------------------------------------------------------------------------------------

static bool put_variable(const char *name, const char *value) { return setenv(name, value, 1) == 0; }

// Sets the variable to `first`, the separator and its old value.
static bool put_before(const char *name, const char *first, const char *separator) {
    char value[2 * RUN_PATH_CAPACITY];
    const char *others = getenv(name);
    const bool alone = others == NULL || others[0] == '\0';
    const int length = snprintf(value, sizeof value, "%s%s%s", first, alone ? "" : separator, alone ? "" : others);
    return length > 0 && (size_t)length < sizeof value && put_variable(name, value);
}

bool run_environment_put(const struct run_environment *environment) {
    char limit[32];
    (void)snprintf(limit, sizeof limit, "%" PRIu64, environment->limit_bytes);
    // AddressSanitizer insists on being the first library. The preloaded one takes none of its functions.
    return put_before("LD_PRELOAD", environment->library, ":") && put_before("ASAN_OPTIONS", "verify_asan_link_order=0", ":") &&
           put_variable("VRAM_RUN_OUT", environment->output) && put_variable("VRAM_RUN_LIST", environment->list) &&
           put_variable("VRAM_RUN_LIMIT", limit) && put_variable("VRAM_RUN_STACKS", environment->stacks) &&
           put_variable("VRAM_RUN_ON_OOM", environment->on_oom) && put_variable("VRAM_RUN_CACHE", environment->cache ? "1" : "0") &&
           (environment->conf == NULL || put_variable("VRAM_ALLOC_CONF", environment->conf)) &&
           (!environment->keep_deepbind || put_variable("VRAM_RUN_DEEPBIND", "1"));
}
