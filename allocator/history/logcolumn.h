// logcolumn.h: a column of numbers as bytes, in whichever of four ways takes the fewest.
#ifndef VR_HISTORY_LOGCOLUMN_H
#define VR_HISTORY_LOGCOLUMN_H

#include "history/logbytes.h"

// How a column is written: one byte says it, then:
enum vr_coding {
    VR_CODING_SAME,   // one varint: the value of every row
    VR_CODING_CHOICE, // a varint n of 1 to 256, n varints, then a byte for each row: which of them
    VR_CODING_PLAIN,  // a varint for each row
    VR_CODING_CHANGE, // a varint for each row: the zigzag of what the row has more than the row before (the first: than 0)
    VR_CODING_COUNT
};
enum { VR_CHOICE_MAX = 256 };

// Writes `count` values. `varied`: not as SAME, so that every row takes a byte at least. `count` 0 writes nothing.
void vr_column_write(struct vr_bytes *out, const uint64_t *values, size_t count, bool varied);
// Any number of values that are all this one.
void vr_column_write_same(struct vr_bytes *out, uint64_t value);
// Writes values of which it is known what suits them.
void vr_column_write_plain(struct vr_bytes *out, const uint64_t *values, size_t count);
void vr_column_write_change(struct vr_bytes *out, const uint64_t *values, size_t count);
// Numbers of which each is seldom less than the one before.
void vr_column_write_rising(struct vr_bytes *out, const uint64_t *values, size_t count);
// Reads `count` values and the largest of them. cursor->failed when they are not there.
void vr_column_read(struct vr_cursor *cursor, uint64_t *values, size_t count, uint64_t *largest);
// The value of a column that is one for all rows. False, and nothing is read, where the next column is not.
bool vr_column_read_same(struct vr_cursor *cursor, uint64_t *value);

#endif
