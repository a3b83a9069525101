// front.c: substitutes the stand-ins for the libraries that a program uses, for `vram sim`. It is an LD_AUDIT library
// (rtld-audit(7)): the linker calls it for every library before it searches for it.
//
// Why LD_AUDIT: LD_LIBRARY_PATH comes after the RPATH of a wheel. LD_PRELOAD loads everything into every process, even the shell, and has
// no effect if a program opens a library by its absolute path or a wheel has renamed it (libcudart-faf08d9a.so.13). An audit library is
// called in each of these cases and loads nothing that was not requested. It does not intercept calls (la_objopen() binds nothing), so they
// cost no more. `import torch` (329 libraries) takes the same time, an exec 1 ms more, because the linker loads a second C library for it.
// Audit libraries are inherited by children, work together with others and LD_PRELOAD, and see namespaces of dlmopen(). If the linker does
// not support them (musl) or is not used (static programs), only LD_LIBRARY_PATH works.
//
// A stand-in is a file in one of the folders in VRAM_SIM_FRONT and is chosen by its name. No file of the program is changed.
#define _GNU_SOURCE
#include <dirent.h>
#include <link.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))
EXPORT unsigned la_version(unsigned version);
EXPORT char *la_objsearch(const char *name, uintptr_t *cookie, unsigned flag);
EXPORT unsigned la_objopen(struct link_map *map, Lmid_t namespace, uintptr_t *cookie);

#define MOST_STANDINS 128
#define HASH_DIGITS   8 // length of the hash that auditwheel adds to a name

// Parts of a library's name: libcudart and 11.0 in libcudart-faf08d9a.so.11.0.
struct name {
    const char *stem;
    size_t stem_length;
    const char *version; // "" if there is no version
};

static struct {
    char path[4096];
    struct name name; // points into `path`
} standins[MOST_STANDINS];
static size_t count;

static const char *file_of(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash == NULL ? path : slash + 1;
}

static size_t digits_of_hash(const char *end, size_t before) {
    size_t digits = 0;
    while (digits < before && strchr("0123456789abcdef", *(end - digits - 1)) != NULL) digits++;
    return digits;
}

// Splits the file name of a library. Returns false if it is not one.
static bool split_path(const char *path, struct name *name) {
    const char *stem = file_of(path);
    const char *so = strstr(stem, ".so");
    if (so == NULL || (so[3] != '\0' && so[3] != '.')) return false;
    size_t length = (size_t)(so - stem);
    if (length > HASH_DIGITS + 1 && digits_of_hash(so, length) == HASH_DIGITS && strchr("-.", *(so - HASH_DIGITS - 1)) != NULL)
        length -= HASH_DIGITS + 1;
    *name = (struct name){stem, length, so[3] == '.' ? so + 4 : ""};
    return length > 3;
}

static bool same_stem(const struct name *a, const struct name *b) {
    return a->stem_length == b->stem_length && memcmp(a->stem, b->stem, a->stem_length) == 0;
}

// Compares only the major version: a file's version may have more parts than the soname's, such as 12.4.5.8 for libcublas.so.12 and 11.8.89
// for libcudart.so.11.0.
static bool same_version(const char *a, const char *b) {
    const size_t major = strcspn(a, ".");
    return major == strcspn(b, ".") && memcmp(a, b, major) == 0;
}

// Returns whether it is a version of digits and dots. A build folder also contains other files, such as libcublas.so.13.map.
static bool is_number(const char *version) { return version[strspn(version, "0123456789.")] == '\0'; }

static void list_folder(const char *folder) {
    DIR *listing = opendir(folder);
    if (listing == NULL) return;
    for (const struct dirent *entry; count < MOST_STANDINS && (entry = readdir(listing)) != NULL;) {
        const int length = snprintf(standins[count].path, sizeof standins[count].path, "%s/%s", folder, entry->d_name);
        if (length > 0 && (size_t)length < sizeof standins[count].path && split_path(standins[count].path, &standins[count].name) &&
            is_number(standins[count].name.version))
            count++;
    }
    (void)closedir(listing);
}

// Lists the stand-ins, once. Needs no lock: the linker holds its own when it calls an audit library.
static void list_folders(void) {
    static bool listed;
    if (listed) return;
    listed = true;
    char folders[8192], *rest = NULL;
    const char *variable = getenv("VRAM_SIM_FRONT");
    if (variable == NULL || strlen(variable) >= sizeof folders) return;
    (void)snprintf(folders, sizeof folders, "%s", variable);
    for (char *folder = strtok_r(folders, ":", &rest); folder != NULL; folder = strtok_r(NULL, ":", &rest)) list_folder(folder);
}

// Returns the stand-in for a name, or NULL.
static const char *standin_for(const struct name *wanted) {
    const char *found = NULL;
    for (size_t i = 0; i < count; i++) {
        if (!same_stem(wanted, &standins[i].name)) continue;
        if (strcmp(wanted->version, standins[i].name.version) == 0) return standins[i].path;
        if (wanted->version[0] != '\0' && same_version(wanted->version, standins[i].name.version)) found = standins[i].path;
    }
    return found;
}

static bool is_standin(const char *path) {
    for (size_t i = 0; i < count; i++)
        if (strcmp(standins[i].path, path) == 0) return true;
    return false;
}

// Returns the stand-in for the target of a symbolic link without a version, such as /usr/local/cuda/lib64/libcudart.so.
static const char *standin_for_link(const char *path) {
    char target[4096];
    struct name name;
    const ssize_t length = readlink(path, target, sizeof target - 1);
    if (length <= 0) return NULL;
    target[length] = '\0';
    return split_path(target, &name) ? standin_for(&name) : NULL;
}

unsigned la_version(unsigned version) { return version < LAV_CURRENT ? version : LAV_CURRENT; }

// Paths that the search produced and that a stand-in replaced. The linker still reports the stand-in under these paths.
static char *passed_by[MOST_STANDINS];
static size_t passed_by_count;

static bool was_passed_by(const char *path) {
    for (size_t i = 0; i < passed_by_count; i++)
        if (strcmp(passed_by[i], path) == 0) return true;
    return false;
}

static void remember_passed_by(const char *path) {
    if (was_passed_by(path) || passed_by_count == MOST_STANDINS) return;
    char *copy = strdup(path);
    if (copy != NULL) passed_by[passed_by_count++] = copy;
}

// The linker first passes the name that the program requested and then, if that has no folder, each candidate file. A requested name that
// is not the stand-in's own is kept, and only the candidate file is replaced: the linker looks up symbol versions under the requested name
// (libtorchvision needs libcudart.faf08d9a.so.13 and symbols of that name).
char *la_objsearch(const char *name, uintptr_t *cookie, unsigned flag) {
    (void)cookie;
    struct name wanted;
    if (name == NULL || !split_path(name, &wanted)) return (char *)(uintptr_t)name;
    list_folders();
    if (is_standin(name)) return (char *)(uintptr_t)name;
    const bool has_folder = strchr(name, '/') != NULL;
    const char *found = standin_for(&wanted);
    if (found == NULL && wanted.version[0] == '\0' && has_folder) found = standin_for_link(name);
    if (found == NULL || (flag == LA_SER_ORIG && !has_folder && strcmp(file_of(found), name) != 0)) return (char *)(uintptr_t)name;
    if (flag != LA_SER_ORIG) remember_passed_by(name);
    return (char *)(uintptr_t)found;
}

// --- libraries that are not replaced --------------------------------------------------------------------------------

// Lists the versions of the available stand-ins, as in "11.0, 12, 13".
static void put_versions(const struct name *name, char *versions, size_t capacity) {
    versions[0] = '\0';
    for (size_t i = 0; i < count; i++) {
        const size_t used = strlen(versions);
        if (same_stem(name, &standins[i].name) && standins[i].name.version[0] != '\0')
            (void)snprintf(versions + used, capacity - used, "%s%s", used == 0 ? "" : ", ", standins[i].name.version);
    }
}

// Warns in one line if a driver or runtime of NVIDIA's was loaded after all: it does not reach the simulator.
unsigned la_objopen(struct link_map *map, Lmid_t namespace, uintptr_t *cookie) {
    (void)namespace;
    (void)cookie;
    static const char *const decisive[] = {"libcuda", "libcudart"};
    struct name name;
    if (map == NULL || map->l_name == NULL || !split_path(map->l_name, &name) || !is_number(name.version) || is_standin(map->l_name) ||
        was_passed_by(map->l_name))
        return 0;
    for (size_t i = 0; i < sizeof decisive / sizeof decisive[0]; i++) {
        if (name.stem_length != strlen(decisive[i]) || memcmp(name.stem, decisive[i], name.stem_length) != 0) continue;
        char versions[256];
        put_versions(&name, versions, sizeof versions);
        if (versions[0] == '\0')
            (void)dprintf(STDERR_FILENO, "vram sim: %s was loaded and does not use the simulated driver; vram has no stand-in for %s\n",
                          map->l_name, decisive[i]);
        else
            (void)dprintf(STDERR_FILENO,
                          "vram sim: %s was loaded and does not use the simulated driver; vram has stand-ins for %s %s only\n", map->l_name,
                          decisive[i], versions);
    }
    return 0; // do not intercept calls through this object
}
