// load.h: libraries of NVIDIA's that are found at run time.
#ifndef VR_LIBRARY_LOAD_H
#define VR_LIBRARY_LOAD_H

#include "base/base.h"
#include "os/os.h"

// A symbol, and where its address goes.
struct vr_symbol {
    const char *name;
    void **address;
};

// Loads `path`, or for NULL what the environment variable names, or the first of the names (up to a NULL) that there is, and finds all
// symbols in it. UNSUPPORTED, with nothing loaded, where one is missing. *library is for vr_os_dlclose().
enum vram_status vr_library_load(const char *path, const char *variable, const char *const *names, const struct vr_symbol *symbols,
                                 size_t count, void **library, struct vram_error *error);

#endif
