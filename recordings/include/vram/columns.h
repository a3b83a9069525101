// vram/columns.h: a recording's tables as arrays, for programs that compute over whole columns (Python's `vram` module, data frames).
//
// Nothing is copied: a column is the recording's own array and lives as long as the recording. Strings, stacks and frames are numbers that
// index tables of their own. vram/recording.h reads the same rows one by one. Safe from any number of threads at once.
#ifndef VRAM_COLUMNS_H
#define VRAM_COLUMNS_H

#include "vram/recording.h"

#ifdef __cplusplus
extern "C" {
#endif

enum vram_rows {
    VRAM_ROWS_EVENTS,       // the events of one device, in order
    VRAM_ROWS_SEGMENTS,     // the segments of all devices, in the file's order
    VRAM_ROWS_BLOCKS,       // the blocks of all segments, segment by segment
    VRAM_ROWS_FRAMES,       // distinct frames
    VRAM_ROWS_STACKS,       // distinct stacks: the index of each one's first frame in the next table, plus a final row with the total
    VRAM_ROWS_STACK_FRAMES, // the frames of all stacks, innermost first
    VRAM_ROWS_TABLES
};

enum vram_column_type { VRAM_COLUMN_UINT8, VRAM_COLUMN_UINT32, VRAM_COLUMN_UINT64, VRAM_COLUMN_INT64 };

// The meaning of a column's numbers.
enum vram_column_meaning {
    VRAM_COLUMN_NUMBER,
    VRAM_COLUMN_STRING, // pass to vram_recording_string()
    VRAM_COLUMN_ACTION, // pass to vram_column_word()
    VRAM_COLUMN_STATE,  // a block's state; pass to vram_column_word()
    VRAM_COLUMN_KIND,   // a segment's kind; pass to vram_column_word()
    VRAM_COLUMN_STACK,  // a row of VRAM_ROWS_STACKS; 0: no stack
    VRAM_COLUMN_FRAME,  // a row of VRAM_ROWS_FRAMES
};

struct vram_column {
    const char *name;   // named as in the recording: "address", "size_bytes", ...
    const void *values; // aligned array of `type`, borrowed from the recording; never NULL
    uint64_t count;     // rows
    uint64_t common;    // row i has the value values[i] ^ common; not 0 only if most rows have the same value
    enum vram_column_type type;
    enum vram_column_meaning meaning;
};

// Describes column `index` (from 0) of a table. `device` matters for events only. Returns false, leaving *column unchanged, if the device,
// column or table does not exist.
VRAM_API VRAM_EXPERIMENTAL bool vram_recording_column(const struct vram_recording *recording, enum vram_rows table, uint32_t device,
                                                      uint32_t index, struct vram_column *column);
// Returns the word for an action, state or kind number; NULL for an unknown number or any other meaning.
VRAM_API VRAM_EXPERIMENTAL const char *vram_column_word(enum vram_column_meaning meaning, uint32_t number);
// Access distinct strings; string 0 is "". A string is NUL-terminated, borrowed from the recording, and may contain any bytes, NULs too;
// *length excludes the terminator. Returns NULL, leaving *length unchanged, if the number is out of range.
VRAM_API VRAM_EXPERIMENTAL uint32_t vram_recording_string_count(const struct vram_recording *recording);
VRAM_API VRAM_EXPERIMENTAL const char *vram_recording_string(const struct vram_recording *recording, uint32_t number, uint64_t *length);

#ifdef __cplusplus
}
#endif
#endif
