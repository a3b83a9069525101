// logcolumn.h: a column of numbers as bytes, in the shortest of four encodings.
#ifndef VR_HISTORY_LOGCOLUMN_H
#define VR_HISTORY_LOGCOLUMN_H

#include "history/logbytes.h"

// The encoding of a column: one byte names it, followed by:
enum vr_coding {
    VR_CODING_SAME,   // one varint: the value of all rows
    VR_CODING_CHOICE, // a varint n of 1 to 256, n varints, then for each row a byte that selects one of them
    VR_CODING_PLAIN,  // a varint for each row
    VR_CODING_CHANGE, // a varint per row: the zigzag of its difference from the row before (first row: from 0)
    VR_CODING_COUNT
};
enum { VR_CHOICE_MAX = 256 };

// Writes `count` values. `varied` excludes SAME, so that every row takes at least a byte. A `count` of 0 writes nothing.
void vr_column_write(struct vr_bytes *out, const uint64_t *values, size_t count, bool varied);
// Writes a column of any number of equal values.
void vr_column_write_same(struct vr_bytes *out, uint64_t value);
// Write values whose best encoding is known.
void vr_column_write_plain(struct vr_bytes *out, const uint64_t *values, size_t count);
void vr_column_write_change(struct vr_bytes *out, const uint64_t *values, size_t count);
// Writes numbers that rarely decrease.
void vr_column_write_rising(struct vr_bytes *out, const uint64_t *values, size_t count);
// Reads `count` values and finds their largest. Sets cursor->failed if they are not there.
void vr_column_read(struct vr_cursor *cursor, uint64_t *values, size_t count, uint64_t *largest);
// Reads a column that has one value for all rows. Returns false, reading nothing, if the next column is of another kind.
bool vr_column_read_same(struct vr_cursor *cursor, uint64_t *value);

#endif
