// vram/export.h: writes a recording: as PyTorch's own files, as vram's, and in the formats of other tools. docs/guides/convert.md shows
// each.
#ifndef VRAM_EXPORT_H
#define VRAM_EXPORT_H

#include "vram/recording.h"
#include "vram/status.h"

#ifdef __cplusplus
extern "C" {
#endif

// --- as others read recordings -----------------------------------------------------------------------------------------------------------
// Writes a recording as a file that others read.
//
// A pickle has exactly the dictionaries that PyTorch's _dump_snapshot() writes: pickle.load() gives back what the recording was read from,
// value by value, and PyTorch's own viewer reads it. It is written as a stream, with strings, frames and stacks shared, so that it is
// smaller than PyTorch's. JSON has the same keys; the viewer reads that too.

enum vram_recording_format {
    VRAM_FORMAT_PICKLE,    // protocol 4
    VRAM_FORMAT_JSON,      // strict, pure ASCII, in one line; what JSON has no word for is changed, see below
    VRAM_FORMAT_JSON_ROWS, // the same with a line for every segment, block, event and annotation
    VRAM_FORMAT_VRAM,      // vram's own recording file (docs/reference/formats/recording.md)
    VRAM_FORMAT_COUNT
};

// Writes the recording, which is borrowed, through `write` in pieces of about 64 KiB. Holds a few bytes per distinct string, frame and
// stack besides the recording. Any thread, and any number of writers of one recording at once. IO when `write` returns false,
// INVALID_ARGUMENT for a NULL recording or `write` and an unknown format, NO_HOST_MEMORY; LIMIT and BAD_INPUT where the recording's file
// says what was not read; *error (may be NULL) says what. It has a message after OK, too, where JSON could not say a value as it was:
// tuples and sets become lists, NaN and infinities null, keys strings, bytes hexadecimal digits. The pairs of pool ids are lists without a
// word.
VRAM_API VRAM_NODISCARD enum vram_status vram_recording_write(const struct vram_recording *recording, enum vram_recording_format format,
                                                              vram_write write, void *user, struct vram_error *error);

// --- in the formats of other tools -------------------------------------------------------------------------------------------------------
// A recording in the formats of other tools: spreadsheets, RMM, Perfetto, flame graphs, pprof.

enum vram_export_format {
    VRAM_EXPORT_RMM,      // the log that RMM's logging_resource_adaptor writes: Thread,Time,Action,Pointer,Size,Stream
    VRAM_EXPORT_EVENTS,   // CSV with every column of every event (RFC 4180, with a header)
    VRAM_EXPORT_PERFETTO, // a trace for ui.perfetto.dev: counters, annotations, out-of-memory marks
    VRAM_EXPORT_FOLDED,   // one line per call stack, for flame graphs: "outer;inner bytes"
    VRAM_EXPORT_PPROF,    // a profile for pprof, not compressed: alloc, inuse (at the end) and peak, as objects and space
    VRAM_EXPORT_ARROW,    // one table as an Arrow IPC file, for pandas, Polars, DuckDB, Spark and the like
    VRAM_EXPORT_COUNT
};

// What folded stacks count.
enum vram_export_measure {
    VRAM_EXPORT_PEAK,     // bytes live when the most was allocated
    VRAM_EXPORT_END,      // bytes live at the end
    VRAM_EXPORT_ALLOCATED // bytes of all allocations of the history
};

// What a recording is as tables; docs/reference/formats/arrow.md has their columns.
enum vram_export_table {
    VRAM_TABLE_EVENTS, // a row per event of the history
    VRAM_TABLE_STACKS, // a row per frame of each distinct stack
    VRAM_TABLE_PEAKS,  // a row per device: its peaks, as vram_report_create() finds them
    VRAM_TABLE_SITES   // a row per call site that held memory at the peak of a device, and what it held
};

// All-zero means every default.
struct vram_export_options {
    enum vram_export_measure measure;
    enum vram_export_table table; // of VRAM_EXPORT_ARROW
    const uint32_t *device;       // of VRAM_EXPORT_ARROW: only this one, and no column that says so; NULL: all
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
