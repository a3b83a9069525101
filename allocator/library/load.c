#include "library/load.h"

static void *open_one(const char *path, const char *variable, const char *const *names, const char **reason) {
    if (path == NULL) path = vr_os_getenv(variable);
    if (path != NULL) return vr_os_dlopen(path, reason);
    void *found = NULL;
    for (; found == NULL && *names != NULL; names++) found = vr_os_dlopen(*names, reason);
    return found;
}

enum vram_status vr_library_load(const char *path, const char *variable, const char *const *names, const struct vr_symbol *symbols,
                                 size_t count, void **library, struct vram_error *error) {
    const char *reason = "no name to look for";
    void *found = open_one(path, variable, names, &reason);
    if (found == NULL) return vr_fail(error, VRAM_UNSUPPORTED, VRAM_NO_OFFSET, "the library cannot be loaded: %s", reason);
    for (size_t i = 0; i < count; i++) {
        *symbols[i].address = vr_os_dlsym(found, symbols[i].name);
        if (*symbols[i].address != NULL) continue;
        vr_os_dlclose(found);
        return vr_fail(error, VRAM_UNSUPPORTED, VRAM_NO_OFFSET, "the library has no %s", symbols[i].name);
    }
    *library = found;
    return VRAM_OK;
}
