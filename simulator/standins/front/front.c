// front.c: puts the stand-ins in front of the libraries that a program brings, for `vram sim`. It is an auditor of the dynamic linker
// (rtld-audit(7), LD_AUDIT), which is asked for every library before it is looked for.
//
// Why an auditor: LD_LIBRARY_PATH comes after the RPATH of a wheel. LD_PRELOAD loads everything into every process, the shell's, too, and
// is passed by where a program opens a library by its absolute path or a wheel carries it under a name of its own
// (libcudart-faf08d9a.so.13). An auditor is asked in each of these cases and loads nothing that was not asked for. It sees no calls
// (la_objopen() binds nothing), so they cost what they cost without it; `import torch` (329 libraries) takes as long, an exec 1 ms more:
// the linker loads a second C library for it. It goes on in children, beside other auditors and LD_PRELOAD, and in namespaces of dlmopen().
// Where the linker knows no auditors (musl) or is not there (static programs) LD_LIBRARY_PATH is all there is.
//
// A stand-in is a file of the folders in VRAM_SIM_FRONT, and its name decides. Nobody's file is changed.
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
#define HASH_DIGITS   8 // that auditwheel puts into a name

// A library's name in pieces: libcudart | 11.0 of libcudart-faf08d9a.so.11.0.
struct name {
    const char *stem;
    size_t stem_length;
    const char *version; // "" where there is none
};

static struct {
    char path[4096];
    struct name name; // into path
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

// False: no library's name.
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

// A file has more of the version in its name than what is linked with: libcublas.so.12 stands for 12.4.5.8, libcudart.so.11.0 for 11.8.89.
static bool same_version(const char *a, const char *b) {
    const size_t major = strcspn(a, ".");
    return major == strcspn(b, ".") && memcmp(a, b, major) == 0;
}

// Of parts with dots between. A build folder holds more than libraries: libcublas.so.13.map.
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

// Once; the dynamic linker's lock is held whenever an auditor is asked.
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

// The stand-in for a name; NULL: there is none.
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

// What a library without a number in its name is, if it is a link: /usr/local/cuda/lib64/libcudart.so.
static const char *standin_for_link(const char *path) {
    char target[4096];
    struct name name;
    const ssize_t length = readlink(path, target, sizeof target - 1);
    if (length <= 0) return NULL;
    target[length] = '\0';
    return split_path(target, &name) ? standin_for(&name) : NULL;
}

unsigned la_version(unsigned version) { return version < LAV_CURRENT ? version : LAV_CURRENT; }

// Files that were looked for and whose stand-in was opened: the linker calls the stand-in by their paths.
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

// What the linker asks for first is the name that the program gave; then, where that has no folder, each file that it might be. A name
// that is not the stand-in's own is left to it, and only the file is another one: versions of symbols are looked up under that name in
// whoever needs it (libtorchvision needs libcudart.faf08d9a.so.13, and its symbols of it).
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

// --- what is not replaced -------------------------------------------------------------------------------------------------

// The versions that there are stand-ins of, "11.0, 12, 13".
static void put_versions(const struct name *name, char *versions, size_t capacity) {
    versions[0] = '\0';
    for (size_t i = 0; i < count; i++) {
        const size_t used = strlen(versions);
        if (same_stem(name, &standins[i].name) && standins[i].name.version[0] != '\0')
            (void)snprintf(versions + used, capacity - used, "%s%s", used == 0 ? "" : ", ", standins[i].name.version);
    }
}

// A driver or runtime of NVIDIA's that came all the same: the program does not reach the simulator by it. One line.
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
        (void)dprintf(STDERR_FILENO,
                      "vram sim: %s is loaded, which does not reach the simulated driver; %s %s are there to stand in for it\n",
                      map->l_name, decisive[i], versions[0] == '\0' ? "(none)" : versions);
    }
    return 0; // no call through this object is watched
}
