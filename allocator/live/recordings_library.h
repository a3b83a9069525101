// recordings_library.h: the functions that a running allocator uses of libvram-recordings, which is linked, found at run time, or missing.
#ifndef VR_LIVE_RECORDINGS_LIBRARY_H
#define VR_LIVE_RECORDINGS_LIBRARY_H

#include "vram/export.h"
#include "vram/recording.h"

// Exported by libvram-recordings as `vram_recordings_library`. Members are only added at the end.
struct vr_recordings_library {
    const char *version; // VRAM_VERSION_STRING of the library
    // vram_recording_write().
    enum vram_status (*write_recording)(const struct vram_recording *recording, enum vram_recording_format format, vram_write write,
                                        void *user, struct vram_error *error);
    // Writes as text why memory ran out and what would have let the last request fit. Replays for at most two seconds. `streams`: the
    // history goes to a file of its own. Returns the statuses of vram_report_create() and of `write`.
    enum vram_status (*write_oom_report)(const struct vram_recording *recording, bool streams, vram_write write, void *user,
                                         struct vram_error *error);
};

// Gets the library: the program's, else libvram-recordings.so of this minor version as the loader finds it. UNSUPPORTED, with a message in
// *error, if it is missing or of another version. Any thread; loads only at the first call.
enum vram_status vr_recordings_library_find(const struct vr_recordings_library **library, struct vram_error *error);

#endif
