#define _GNU_SOURCE // mkdtemp()
#include "run_environment.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "beside.h"

#define PATH_CAPACITY RUN_PATH_CAPACITY

// --- the library ------------------------------------------------------------------------------------------------------------------

// The dynamic linker splits its list at spaces and colons.
static bool can_be_preloaded(const char *path) { return path[strcspn(path, " :")] == '\0'; }

static const char *temporary_folder(void) {
    const char *folder = getenv("TMPDIR");
    return folder == NULL || folder[0] == '\0' ? "/tmp" : folder;
}

// A link of the same name, whose path the dynamic linker can read, in a folder of its own; `library` becomes its path. It stays as long as
// this program runs: a child that lives longer runs on, but what that executes is not recorded. False with errno.
static bool link_library(char library[PATH_CAPACITY], char folder[PATH_CAPACITY]) {
    char *target = realpath(library, NULL);
    const char *base = can_be_preloaded(temporary_folder()) ? temporary_folder() : "/tmp";
    bool linked = target != NULL && snprintf(folder, PATH_CAPACITY, "%s/vram-run-XXXXXX", base) < PATH_CAPACITY && mkdtemp(folder) != NULL;
    if (linked) {
        const int length = snprintf(library, PATH_CAPACITY, "%s/libvram_preload.so", folder);
        linked = length < PATH_CAPACITY && symlink(target, library) == 0;
        if (!linked) (void)rmdir(folder);
    }
    free(target);
    return linked;
}

bool run_library_find(struct run_library *library) {
    library->folder[0] = '\0';
    return beside_preload(library->path, sizeof library->path);
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

static bool put(const char *name, const char *value) { return setenv(name, value, 1) == 0; }

// The variable's value becomes `first`, the separator and what it was.
static bool put_before(const char *name, const char *first, const char *separator) {
    char value[2 * PATH_CAPACITY];
    const char *others = getenv(name);
    const bool alone = others == NULL || others[0] == '\0';
    const int length = snprintf(value, sizeof value, "%s%s%s", first, alone ? "" : separator, alone ? "" : others);
    return length > 0 && (size_t)length < sizeof value && put(name, value);
}

bool run_environment_put(const struct run_environment *environment) {
    char limit[32];
    (void)snprintf(limit, sizeof limit, "%" PRIu64, environment->limit_bytes);
    // AddressSanitizer wants to be the first library of a program. None of its functions is taken from it here.
    return put_before("LD_PRELOAD", environment->library, ":") && put_before("ASAN_OPTIONS", "verify_asan_link_order=0", ":") &&
           put("VRAM_RUN_OUT", environment->output) && put("VRAM_RUN_LIST", environment->list) && put("VRAM_RUN_LIMIT", limit) &&
           put("VRAM_RUN_STACKS", environment->stacks) && put("VRAM_RUN_ON_OOM", environment->on_oom) &&
           put("VRAM_RUN_CACHE", environment->cache ? "1" : "0") &&
           (environment->conf == NULL || put("VRAM_ALLOC_CONF", environment->conf)) &&
           (!environment->keep_deepbind || put("VRAM_RUN_DEEPBIND", "1"));
}
