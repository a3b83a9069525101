#include "live/recordings_library.h"

#include <stdatomic.h>
#include <string.h>

#include "base/base.h"
#include "os/os.h"
#include "vram/vram.h"

#define TEXT_OF(number)       #number
#define FILE_OF(major, minor) "libvram-recordings.so." TEXT_OF(major) "." TEXT_OF(minor)
#define LIBRARY               FILE_OF(VRAM_VERSION_MAJOR, VRAM_VERSION_MINOR)

// Defined in programs linked with the library; otherwise its address is NULL.
extern VRAM_API const struct vr_recordings_library vram_recordings_library __attribute__((weak));

// Loads the library, which stays until the process ends. Two threads that load it at once get the same library from the loader.
static const struct vr_recordings_library *load_recordings_library(const char **reason) {
    static _Atomic(const struct vr_recordings_library *) loaded;
    const struct vr_recordings_library *library = atomic_load_explicit(&loaded, memory_order_acquire);
    if (library != NULL) return library;
    void *handle = vr_os_dlopen(LIBRARY, reason);
    if (handle == NULL) return NULL;
    library = vr_os_dlsym(handle, "vram_recordings_library");
    if (library == NULL) *reason = "another library has this name";
    atomic_store_explicit(&loaded, library, memory_order_release);
    return library;
}

enum vram_status vr_recordings_library_find(const struct vr_recordings_library **library, struct vram_error *error) {
    const char *reason = "";
    const struct vr_recordings_library *found = &vram_recordings_library;
    if (found == NULL) found = load_recordings_library(&reason);
    if (found == NULL) return vr_fail(error, VRAM_UNSUPPORTED, VRAM_NO_OFFSET, "cannot load libvram-recordings: %s", reason);
    if (strcmp(found->version, VRAM_VERSION_STRING) != 0)
        return vr_fail(error, VRAM_UNSUPPORTED, VRAM_NO_OFFSET, "libvram-recordings is version %s, libvram is version %s", found->version,
                       VRAM_VERSION_STRING);
    *library = found;
    return VRAM_OK;
}
