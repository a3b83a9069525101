// config.h: the options of `vram run`, in environment variables, so that children inherit them.
//   VRAM_RUN_OUT       pattern of the file; unset: nothing is recorded
//   VRAM_RUN_LIST      a file that gets an entry per recording, and per missed part of a program
//   VRAM_RUN_LIMIT     bytes per device
//   VRAM_RUN_STACKS    none, python, c, all (the default)
//   VRAM_RUN_ON_OOM    dump: copies the recording at each out-of-memory error
//   VRAM_RUN_CACHE     1: vram's allocator serves the allocations
//   VRAM_RUN_DEEPBIND  set: dlopen() keeps RTLD_DEEPBIND
#ifndef PL_CONFIG_H
#define PL_CONFIG_H

#include <stdatomic.h>

#include "preload.h"
#include "vram/stack.h"

#define PL_PATH_MAX 4096

struct pl_config {
    bool watches; // records, limits or caches
    bool records;
    bool takes_stacks; // while recording
    bool caches;
    bool dumps_on_oom;
    uint64_t limit_bytes; // 0: no limit
    enum vram_stack_kind stacks;
    char pattern[PL_PATH_MAX];
    char list[PL_PATH_MAX]; // "": no list
};

// Reads the environment at the first call; later changes have no effect. Never returns NULL.
const struct pl_config *pl_config_first(void);
extern _Atomic(const struct pl_config *) pl_config_known __attribute__((visibility("hidden")));
static inline const struct pl_config *pl_config(void) {
    const struct pl_config *known = atomic_load_explicit(&pl_config_known, memory_order_acquire);
    return known != NULL ? known : pl_config_first();
}
// Builds the name of this process's file, as vram_expand_path() does. Inserts `number`, if it is not 0, before the last suffix, in case the
// name is taken. Returns false if the name is too long or the pattern is invalid.
bool pl_config_path(const char *pattern, unsigned number, char *path, size_t capacity);

#endif
