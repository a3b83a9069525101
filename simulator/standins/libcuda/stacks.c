#define _GNU_SOURCE
#include "stacks.h"

#include <dlfcn.h>
#include <pthread.h>
#include <string.h>

#include "libcuda.h"

static struct vr_libcuda_stacks stacks;

static void open_stacks(void) {
    const char *path = vr_os_getenv("VRAM_SIM_STACKS");
    void *library = path == NULL ? NULL : dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) return;
    enum vram_status (*create)(const struct vram_stack_options *, struct vram_stacks **);
    void *const found[] = {dlsym(library, "vram_stacks_create"), dlsym(library, "vram_stack_take"), dlsym(library, "vram_stack_frames"),
                           dlsym(library, "vram_stack_module")};
    for (size_t i = 0; i < sizeof found / sizeof *found; i++)
        if (found[i] == NULL) return;
    memcpy(&create, &found[0], sizeof create);
    memcpy(&stacks.take, &found[1], sizeof stacks.take);
    memcpy(&stacks.frames_of, &found[2], sizeof stacks.frames_of);
    memcpy(&stacks.module_of, &found[3], sizeof stacks.module_of);
    if (create(NULL, &stacks.table) != VRAM_OK) stacks.table = NULL;
}

const struct vr_libcuda_stacks *vr_libcuda_stacks(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    (void)pthread_once(&once, open_stacks);
    return &stacks;
}

bool vr_libcuda_is_api(const char *name) {
    const char first = strncmp(name, "cuda", 4) == 0 ? name[4] : strncmp(name, "cu", 2) == 0 ? name[2] : '\0';
    return first >= 'A' && first <= 'Z';
}
