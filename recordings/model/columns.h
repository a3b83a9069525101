// columns.h: which columns the tables of a model have, so that growing, releasing and checking are loops.
#ifndef VR_MODEL_COLUMNS_H
#define VR_MODEL_COLUMNS_H

#include "model/builder.h"

// X(type, column). first_block of struct vr_segments is no row column (it has count + 1 entries) and is not listed.
#define VR_SEGMENT_COLUMNS(X)                                                                                                              \
    X(uint32_t, device)                                                                                                                    \
    X(uint64_t, address)                                                                                                                   \
    X(uint64_t, total_bytes)                                                                                                               \
    X(uint64_t, allocated_bytes)                                                                                                           \
    X(uint64_t, active_bytes)                                                                                                              \
    X(uint64_t, requested_bytes)                                                                                                           \
    X(uint64_t, stream)                                                                                                                    \
    X(uint64_t, pool_first)                                                                                                                \
    X(uint64_t, pool_second)                                                                                                               \
    X(uint64_t, counter)                                                                                                                   \
    X(uint32_t, stack)                                                                                                                     \
    X(uint32_t, has)                                                                                                                       \
    X(uint8_t, kind)                                                                                                                       \
    X(uint8_t, expandable)

#define VR_BLOCK_COLUMNS(X)                                                                                                                \
    X(uint64_t, address)                                                                                                                   \
    X(uint64_t, size_bytes)                                                                                                                \
    X(uint64_t, requested_bytes)                                                                                                           \
    X(uint32_t, stack)                                                                                                                     \
    X(uint32_t, has)                                                                                                                       \
    X(uint8_t, state)

// One column of a table: where the table's struct keeps its pointer, and the size of an entry. A sparse column (ALIKE ones are, too) may be
// NULL while the table grows, as long as every entry is 0, and is zero behind the last row; in a finished model no column is NULL, and
// sparse ones may be the same array of zeros.
struct vr_column {
    size_t pointer_offset;
    size_t item_bytes;
    bool sparse;
};

// A table's columns and what a row of it costs.
struct vr_columns {
    const struct vr_column *column;
    size_t count;
    size_t row_bytes;
};

extern const struct vr_columns vr_segment_columns;
extern const struct vr_columns vr_block_columns;
extern const struct vr_columns vr_history_columns;

// Grows every column of *table (but sparse ones that are NULL) so that *capacity >= needed. *capacity may stay too small on failure; then
// every column still holds at least the old capacity. LIMIT when the budget is spent, NO_HOST_MEMORY.
enum vram_status vr_columns_grow(const struct vr_columns *columns, void *table, size_t *capacity, size_t needed, struct vr_budget *budget);
// The same for a table that goes on as far as the input is said to do (struct vr_budget's `ahead`). Its columns are made for *held rows, at
// least *capacity, so that they seldom move; only what may be used of them, *capacity rows, is taken from the budget and written to. A
// sparse column that the caller makes has *held rows, zeroed.
enum vram_status vr_columns_grow_ahead(const struct vr_columns *columns, void *table, size_t *capacity, size_t *held, size_t needed,
                                       struct vr_budget *budget);
// Sets a row of a sparse column of a table that grows and has `held` rows; 0 is not written where it stands already, so that pages of zeros
// are not touched. Returns NO_HOST_MEMORY from the caller's function.
#define VR_COLUMN_PUT_SPARSE(column, held, row, value)                                                                                     \
    do {                                                                                                                                   \
        if ((column) == NULL && (value) != 0) {                                                                                            \
            (column) = calloc((held), sizeof *(column));                                                                                   \
            if ((column) == NULL) return VRAM_NO_HOST_MEMORY;                                                                              \
        }                                                                                                                                  \
        if ((column) != NULL && (column)[row] != (value)) (column)[row] = (value);                                                         \
    } while (0)
// The same for an ALIKE one; the first row that a table gets says what is common.
#define VR_COLUMN_PUT_ALIKE(column, held, count, row, value)                                                                               \
    do {                                                                                                                                   \
        if ((count) <= 1 && (column).apart == NULL) (column).common = (value);                                                             \
        VR_COLUMN_PUT_SPARSE((column).apart, held, row, (value) ^ (column).common);                                                        \
    } while (0)
// Ends growing at `count` rows: gives back what the columns hold beyond, makes sparse columns that are NULL one array of zeros, dense ones
// (of a table without rows) one of their own. The sparse columns must not be written to then. NO_HOST_MEMORY; the rest stays as it is.
enum vram_status vr_columns_finish(const struct vr_columns *columns, void *table, size_t count);
// Frees every column, one that is shared once, and sets its pointer to NULL.
void vr_columns_release(const struct vr_columns *columns, void *table);
// The pointer of column `index`, and its replacement (the caller frees the old one where it has to).
void *vr_column_pointer(const struct vr_columns *columns, const void *table, size_t index);
void vr_column_set(const struct vr_columns *columns, void *table, size_t index, void *pointer);

#endif
