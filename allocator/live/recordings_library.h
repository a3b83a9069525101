// recordings_library.h: what a running allocator asks of libvram-recordings, which is linked, found at run time, or missing.
#ifndef VR_LIVE_RECORDINGS_LIBRARY_H
#define VR_LIVE_RECORDINGS_LIBRARY_H

#include "vram/export.h"
#include "vram/recording.h"

// What libvram-recordings exports as `vram_recordings_library`. Members are only added at the end.
struct vr_recordings_library {
    const char *version; // VRAM_VERSION_STRING of the library
    // vram_recording_write().
    enum vram_status (*write_recording)(const struct vram_recording *recording, enum vram_recording_format format, vram_write write,
                                        void *user, struct vram_error *error);
    // Writes why memory ran out and what would have let the last request fit, as text. Replays for at most two seconds. `streams`: the
    // history goes to a file of its own. Statuses of vram_report_create() and of `write`.
    enum vram_status (*write_oom_report)(const struct vram_recording *recording, bool streams, vram_write write, void *user,
                                         struct vram_error *error);
};

// The library: of the program, else libvram-recordings.so of this minor version as the loader finds it. UNSUPPORTED, with a sentence in
// *error, where there is none or where it has another version. Any thread; loads at the first call only.
enum vram_status vr_recordings_library_find(const struct vr_recordings_library **library, struct vram_error *error);

#endif
