// filter.c: tells the thunks of dlsym() and related functions whether a name is one of ours, and what to return for it.
//
// Contains a deliberate circle: the thunks (thunks_x86_64.S, thunks_aarch64.S) call the filters, and looking up "dlsym" returns the address
// of its thunk.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "preload.h"
#include "real.h"
#include "notices.h"

// The answer to a thunk, in the two registers that return a pair of pointers.
struct answer {
    void *value;
    pl_function *jump; // jump here with the program's own arguments; NULL: value is the result
};

__attribute__((visibility("hidden"))) struct answer pl_filter_dlsym(void *handle, const char *name);
__attribute__((visibility("hidden"))) struct answer pl_filter_dlvsym(void *handle, const char *name, const char *version);
struct flags_answer {
    pl_function *jump;
    uint64_t flags;
};
__attribute__((visibility("hidden"))) struct flags_answer pl_filter_dlopen(const char *file, int flags);
__attribute__((visibility("hidden"))) pl_function *pl_filter_dlmopen(long space, const char *file);

static pl_function *as_function(void *address) {
    pl_function *entry;
    memcpy(&entry, &address, sizeof entry);
    return entry;
}

static void *as_address(pl_function *entry) {
    void *address;
    memcpy(&address, &entry, sizeof address);
    return address;
}

// Returns whether the name is cuXyz or one of our functions of the C library. Does not use the C library, which may not be ready (real.c).
static bool concerns_us(const char *name) {
    if (name == NULL || pl_depth > 0) return false;
    if (name[0] == 'c' && name[1] == 'u') return pl_is_door(name) || pl_begins(name, "cuGetProcAddress");
    return name[0] == 'd' && name[1] == 'l' && (pl_same(name, "dlsym") || pl_same(name, "dlvsym") || pl_same(name, "dlopen"));
}

static void *own_of_libc(const char *name) {
    if (pl_same(name, "dlsym")) return as_address((pl_function *)dlsym);
    if (pl_same(name, "dlvsym")) return as_address((pl_function *)dlvsym);
    return as_address((pl_function *)dlopen);
}

// Returns the result for a lookup of `name` that found `found`.
static void *stand_in(const char *name, void *found) {
    if (found == NULL) return NULL;
    if (name[0] == 'd') return own_of_libc(name);
    if (strncmp(name, "cuGetProcAddress", 16) != 0) return as_address(pl_wrap(name, as_function(found)));
    pl_function *wrapped = pl_wrap_lookup(name, as_function(found));
    return wrapped == NULL ? found : as_address(wrapped);
}

// A lookup in the global scope finds our own symbols first, even if the program alone would find none.
static bool is_global(const void *handle) { return handle == RTLD_DEFAULT || handle == RTLD_NEXT; }

// Finds the first symbol of that name after ours. A failed lookup sets dlerror(), as in the C library.
static struct answer global_answer(const char *name) {
    if (name[0] == 'd') return (struct answer){own_of_libc(name), NULL};
    pl_function *next = pl_next(name);
    return (struct answer){next == NULL ? pl_libc()->dlsym(RTLD_NEXT, name) : stand_in(name, as_address(next)), NULL};
}

struct answer pl_filter_dlsym(void *handle, const char *name) {
    const struct pl_libc *libc = pl_libc();
    if (libc->dlsym == NULL) return (struct answer){NULL, NULL};
    pl_function *jump = (pl_function *)libc->dlsym;
    if (!concerns_us(name)) return (struct answer){NULL, jump};
    if (is_global(handle)) return global_answer(name);
    return (struct answer){stand_in(name, libc->dlsym(handle, name)), NULL};
}

struct answer pl_filter_dlvsym(void *handle, const char *name, const char *version) {
    const struct pl_libc *libc = pl_libc();
    if (libc->dlvsym == NULL) return (struct answer){NULL, NULL};
    pl_function *jump = (pl_function *)libc->dlvsym;
    if (!concerns_us(name)) return (struct answer){NULL, jump};
    if (!is_global(handle)) return (struct answer){stand_in(name, libc->dlvsym(handle, name, version)), NULL};
    // Search after us, so that the version is checked.
    return (struct answer){stand_in(name, libc->dlvsym(RTLD_NEXT, name, version)), NULL};
}

// Removes RTLD_DEEPBIND, which would make the library find libcuda before us.
struct flags_answer pl_filter_dlopen(const char *file, int flags) {
    struct flags_answer answer = {(pl_function *)pl_libc()->dlopen, (uint64_t)(unsigned)flags};
    if ((flags & RTLD_DEEPBIND) == 0 || pl_depth > 0) return answer;
    if (getenv("VRAM_RUN_DEEPBIND") != NULL) {
        pl_missed("not recorded, because RTLD_DEEPBIND was kept: calls of", file == NULL ? "the program" : file);
        return answer;
    }
    answer.flags &= ~(uint64_t)RTLD_DEEPBIND;
    return answer;
}

// A new namespace loads its own libraries. Their calls are not seen, except through pointers that the program gets with dlsym().
pl_function *pl_filter_dlmopen(long space, const char *file) {
    const char *slash = file == NULL ? NULL : strrchr(file, '/');
    const char *name = slash == NULL ? file : slash + 1;
    if (pl_depth == 0 && space != LM_ID_BASE && name != NULL && strncmp(name, "libcuda.so", 10) != 0)
        pl_missed("not recorded, because dlmopen loaded it into its own namespace:", file);
    return (pl_function *)pl_libc()->dlmopen;
}
