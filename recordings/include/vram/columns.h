// vram/columns.h: a recording's tables as arrays, for programs that compute over whole columns (Python's `vram` module, data frames).
//
// Nothing is copied: a column is the array that the recording itself holds, and lives as long as it does. Strings, stacks and frames are
// numbers; what they stand for are tables of their own. vram/recording.h has the same rows one by one. Any number of threads at once.
#ifndef VRAM_COLUMNS_H
#define VRAM_COLUMNS_H

#include "vram/recording.h"

#ifdef __cplusplus
extern "C" {
#endif

enum vram_rows {
    VRAM_ROWS_EVENTS,       // of one device, in order
    VRAM_ROWS_SEGMENTS,     // of all devices, in the file's order
    VRAM_ROWS_BLOCKS,       // of all segments, one segment after the other
    VRAM_ROWS_FRAMES,       // distinct frames
    VRAM_ROWS_STACKS,       // distinct stacks: where the frames of each begin in the next table; one row more, which ends the last
    VRAM_ROWS_STACK_FRAMES, // the frames of all stacks, innermost first
    VRAM_ROWS_TABLES
};

enum vram_column_type { VRAM_COLUMN_UINT8, VRAM_COLUMN_UINT32, VRAM_COLUMN_UINT64, VRAM_COLUMN_INT64 };

// What a column's numbers say.
enum vram_column_meaning {
    VRAM_COLUMN_NUMBER,
    VRAM_COLUMN_STRING, // vram_recording_string()
    VRAM_COLUMN_ACTION, // vram_column_word()
    VRAM_COLUMN_STATE,  // of a block: vram_column_word()
    VRAM_COLUMN_KIND,   // of a segment: vram_column_word()
    VRAM_COLUMN_STACK,  // a row of VRAM_ROWS_STACKS; 0: none
    VRAM_COLUMN_FRAME,  // a row of VRAM_ROWS_FRAMES
};

struct vram_column {
    const char *name;   // the recording's own words: "address", "size_bytes", ...
    const void *values; // of the type, aligned for it; borrowed from the recording; never NULL
    uint64_t count;     // rows
    uint64_t common;    // the value of row i is values[i] ^ common: 0 but where most rows have the same
    enum vram_column_type type;
    enum vram_column_meaning meaning;
};

// Column `index` of a table, counted from 0. `device` is looked at for events only. False, with *column untouched, for a column, table or
// device that is not there.
VRAM_API VRAM_EXPERIMENTAL bool vram_recording_column(const struct vram_recording *recording, enum vram_rows table, uint32_t device,
                                                      uint32_t index, struct vram_column *column);
// The word of a number of an action, state or kind; NULL for a number that has none, and for other meanings.
VRAM_API VRAM_EXPERIMENTAL const char *vram_column_word(enum vram_column_meaning meaning, uint32_t number);
// Distinct strings; number 0 is "". A string is NUL-terminated, borrowed from the recording, and may have any bytes; *length is its own
// without the NUL. NULL, with *length untouched, for a number that is not there.
VRAM_API VRAM_EXPERIMENTAL uint32_t vram_recording_string_count(const struct vram_recording *recording);
VRAM_API VRAM_EXPERIMENTAL const char *vram_recording_string(const struct vram_recording *recording, uint32_t number, uint64_t *length);

#ifdef __cplusplus
}
#endif
#endif
