// vram/export.h: a recording in the formats of other tools: spreadsheets, RMM, Perfetto, flame graphs, pprof. convert.md shows each.
#ifndef VRAM_EXPORT_H
#define VRAM_EXPORT_H

#include "vram/output.h"
#include "vram/recording.h"

#ifdef __cplusplus
extern "C" {
#endif

enum vram_export_format {
    VRAM_EXPORT_RMM,      // the log that RMM's logging_resource_adaptor writes: Thread,Time,Action,Pointer,Size,Stream
    VRAM_EXPORT_EVENTS,   // CSV with every column of every event (RFC 4180, with a header)
    VRAM_EXPORT_PERFETTO, // a trace for ui.perfetto.dev: counters, annotations, out-of-memory marks
    VRAM_EXPORT_FOLDED,   // one line per call stack, for flame graphs: "outer;inner bytes"
    VRAM_EXPORT_PPROF,    // a profile for pprof, not compressed: alloc, inuse (at the end) and peak, as objects and space
    VRAM_EXPORT_COUNT
};

// What folded stacks count.
enum vram_export_measure {
    VRAM_EXPORT_PEAK,     // bytes live when the most was allocated
    VRAM_EXPORT_END,      // bytes live at the end
    VRAM_EXPORT_ALLOCATED // bytes of all allocations of the history
};

// All-zero means every default.
struct vram_export_options {
    enum vram_export_measure measure;
};

// Writes the recording, which is borrowed, through `write` in pieces of about 64 KiB. options may be NULL. Any thread. IO when `write`
// returns false, INVALID_ARGUMENT for a format that is none, LIMIT for more events than can be told apart, NO_HOST_MEMORY; *error (may be
// NULL) says what.
VRAM_API VRAM_NODISCARD enum vram_status vram_recording_export(const struct vram_recording *recording, enum vram_export_format format,
                                                               const struct vram_export_options *options, vram_write write, void *user,
                                                               struct vram_error *error);

#ifdef __cplusplus
}
#endif
#endif
