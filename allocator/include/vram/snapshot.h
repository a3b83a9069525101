// vram/snapshot.h: the state of a live allocator with its history, as a recording or a file.
//
// The counterpart of torch.cuda.memory._snapshot() and _dump_snapshot(). A snapshot is consistent although other threads go on: each
// device's state is copied under its locks, along with the position up to which its history counts. Everything else happens without locks.
#ifndef VRAM_SNAPSHOT_H
#define VRAM_SNAPSHOT_H

#include "vram/allocator.h"
#include "vram/history.h"
#include "vram/pool.h"
#include "vram/recording.h"
#include "vram/export.h"

#ifdef __cplusplus
extern "C" {
#endif

// A zeroed struct means everything.
struct vram_snapshot_options {
    const struct vram_pool *pool; // only this pool's segments (and device); NULL: all
    uint64_t devices;             // bit n: device n is included; 0: all
    bool without_history;         // no events or annotations (include_traces=False)
    bool segments_only;           // a bare list of segments, as torch.cuda.memory_snapshot() returns
};

// Makes a recording of the allocator's state. options may be NULL. Afterwards each device's history gets a `snapshot` event, which the next
// snapshot shows. The caller owns *recording and ends it with vram_recording_destroy(). NO_HOST_MEMORY; *error may be NULL. Any thread.
VRAM_API VRAM_NODISCARD enum vram_status vram_snapshot(struct vram_allocator *allocator, const struct vram_snapshot_options *options,
                                                       struct vram_recording **recording, struct vram_error *error);
// Writes the snapshot with libvram-recordings, which is linked or found at run time. Returns the statuses of vram_recording_write();
// UNSUPPORTED, with a message, if that library is missing or of another version.
VRAM_API VRAM_NODISCARD enum vram_status vram_snapshot_write(struct vram_allocator *allocator, const struct vram_snapshot_options *options,
                                                             enum vram_recording_format format, vram_write write, void *user,
                                                             struct vram_error *error);
// Writes the snapshot into a file. `path` is a pattern (vram_expand_path()) whose end sets the format: ".json", ".vram", else a pickle. The
// file appears whole or not at all, and replaces an existing one. IO, INVALID_ARGUMENT for the pattern, UNSUPPORTED as above.
VRAM_API VRAM_NODISCARD enum vram_status vram_snapshot_save(struct vram_allocator *allocator, const struct vram_snapshot_options *options,
                                                            const char *path, struct vram_error *error);

#ifdef __cplusplus
}
#endif
#endif
