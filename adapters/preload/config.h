// config.h: what `vram run` asks for. It comes in variables of the environment, so that children have it too.
//   VRAM_RUN_OUT       pattern of the file; unset: nothing is recorded
//   VRAM_RUN_LIST      a file that gets a record per recording made and per thing that could not be seen
//   VRAM_RUN_LIMIT     bytes per device
//   VRAM_RUN_STACKS    none, python, c, all (the default)
//   VRAM_RUN_ON_OOM    dump: a copy of the recording at each out of memory
//   VRAM_RUN_CACHE     1: allocations are served by our allocator
//   VRAM_RUN_DEEPBIND  set: RTLD_DEEPBIND is left as the program has it
#ifndef PL_CONFIG_H
#define PL_CONFIG_H

#include <stdatomic.h>

#include "preload.h"
#include "vram/stack.h"

#define PL_PATH_MAX 4096

struct pl_config {
    bool watches; // at all: records, limits or caches
    bool records;
    bool takes_stacks; // while it records
    bool caches;
    bool dumps_on_oom;
    uint64_t limit_bytes; // 0: none
    enum vram_stack_kind stacks;
    char pattern[PL_PATH_MAX];
    char list[PL_PATH_MAX]; // "" none
};

// Read at the first call; the environment may change later. Never NULL.
const struct pl_config *pl_config_first(void);
extern _Atomic(const struct pl_config *) pl_config_known __attribute__((visibility("hidden")));
static inline const struct pl_config *pl_config(void) {
    const struct pl_config *known = atomic_load_explicit(&pl_config_known, memory_order_acquire);
    return known != NULL ? known : pl_config_first();
}
// The name of this process's file, as vram_expand_path() has it; `number` above 0 is put before the last suffix, for a name that is
// taken. False when it is too long, or the pattern is none.
bool pl_config_path(const char *pattern, unsigned number, char *path, size_t capacity);

#endif
