// vram/export.h: writes a recording as a file of PyTorch, of vram, or of another tool. docs/guides/convert.md shows each format.
#ifndef VRAM_EXPORT_H
#define VRAM_EXPORT_H

#include "vram/recording.h"
#include "vram/status.h"

#ifdef __cplusplus
extern "C" {
#endif

// --- recording files ---------------------------------------------------------------------------------------------------------------------
// Recording files that PyTorch's tools and vram read.
//
// A pickle has exactly the dictionaries that PyTorch's _dump_snapshot() writes: pickle.load() returns the same values as for the original
// file, and PyTorch's own viewer reads it. It is streamed, and shares strings, frames and stacks, so it is smaller than PyTorch's. JSON has
// the same keys; the viewer reads it, too.

enum vram_recording_format {
    VRAM_FORMAT_PICKLE,    // protocol 4
    VRAM_FORMAT_JSON,      // strict, pure ASCII, one line; values that JSON cannot express are changed, see below
    VRAM_FORMAT_JSON_ROWS, // the same, with one line per segment, block, event and annotation
    VRAM_FORMAT_VRAM,      // vram's own recording file (docs/reference/formats/recording.md)
    VRAM_FORMAT_COUNT
};

// Writes the recording, which is borrowed, through `write` in pieces of about 64 KiB. Needs a few bytes per distinct string, frame and
// stack. Any thread; several writers of one recording may run at once. IO if `write` returns false, INVALID_ARGUMENT for a NULL recording
// or `write` and for an unknown format, NO_HOST_MEMORY; LIMIT and BAD_INPUT if parts of the recording's file were not read and so cannot be
// written. *error (may be NULL) explains the failure. After OK, it has a message if JSON could not express a value as it was: tuples and
// sets become lists, NaN and infinities null, keys strings, bytes hexadecimal digits. The pairs of pool ids become lists without a message.
VRAM_API VRAM_NODISCARD enum vram_status vram_recording_write(const struct vram_recording *recording, enum vram_recording_format format,
                                                              vram_write write, void *user, struct vram_error *error);

// --- in the formats of other tools -------------------------------------------------------------------------------------------------------
// A recording in the formats of other tools: spreadsheets, RMM, Perfetto, flame graphs, pprof.

enum vram_export_format {
    VRAM_EXPORT_RMM,      // the log that RMM's logging_resource_adaptor writes: Thread,Time,Action,Pointer,Size,Stream
    VRAM_EXPORT_EVENTS,   // CSV with all columns of all events (RFC 4180, with a header)
    VRAM_EXPORT_PERFETTO, // a trace for ui.perfetto.dev: counters, annotations, out-of-memory events
    VRAM_EXPORT_FOLDED,   // one line per call stack, for flame graphs: "outer;inner bytes"
    VRAM_EXPORT_PPROF,    // an uncompressed pprof profile: alloc, inuse (at the end) and peak, as objects and space
    VRAM_EXPORT_ARROW,    // one table as an Arrow IPC file, for pandas, Polars, DuckDB, Spark and others
    VRAM_EXPORT_COUNT
};

// The unit that folded stacks count.
enum vram_export_measure {
    VRAM_EXPORT_PEAK,     // bytes live at the peak of allocated bytes
    VRAM_EXPORT_END,      // bytes live at the end
    VRAM_EXPORT_ALLOCATED // bytes of all allocations of the history
};

// The tables of a recording; docs/reference/formats/arrow.md lists their columns.
enum vram_export_table {
    VRAM_TABLE_EVENTS, // one row per event of the history
    VRAM_TABLE_STACKS, // one row per frame of each distinct stack
    VRAM_TABLE_PEAKS,  // one row per device: its peaks, as found by vram_report_create()
    VRAM_TABLE_SITES   // one row per call site that held memory at a device's peak, with the bytes it held
};

// A zeroed struct selects the defaults.
struct vram_export_options {
    enum vram_export_measure measure;
    enum vram_export_table table; // for VRAM_EXPORT_ARROW
    const uint32_t *device;       // for VRAM_EXPORT_ARROW: export this device only, without a device column; NULL: all devices
};

// Writes the recording, which is borrowed, through `write` in pieces of about 64 KiB. options may be NULL. Any thread. IO if `write`
// returns false, INVALID_ARGUMENT for an unknown format, LIMIT for more events than can be numbered, NO_HOST_MEMORY; *error (may be NULL)
// explains the failure.
VRAM_API VRAM_NODISCARD enum vram_status vram_recording_export(const struct vram_recording *recording, enum vram_export_format format,
                                                               const struct vram_export_options *options, vram_write write, void *user,
                                                               struct vram_error *error);

#ifdef __cplusplus
}
#endif
#endif
