// columns.h: lists the columns of a model's tables, so that growing, releasing and checking are loops.
#ifndef VR_MODEL_COLUMNS_H
#define VR_MODEL_COLUMNS_H

#include "model/builder.h"

// X(type, column). Excludes first_block of struct vr_segments, which has count + 1 entries instead of one per row.
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

// A column of a table: the offset of its pointer in the table's struct, and the size of an entry. A sparse column (which includes ALIKE
// columns) may be NULL while the table grows, as long as every entry is 0, and is zero after the last row. In a finished model no column is
// NULL, and several sparse columns may share one array of zeros.
struct vr_column {
    size_t pointer_offset;
    size_t item_bytes;
    bool sparse;
};

// The columns of a table, and the bytes of a row.
struct vr_columns {
    const struct vr_column *column;
    size_t count;
    size_t row_bytes;
};

extern const struct vr_columns vr_segment_columns;
extern const struct vr_columns vr_block_columns;
extern const struct vr_columns vr_history_columns;

// Grows every column of *table, except sparse columns that are NULL, so that *capacity >= needed. LIMIT if the budget is spent,
// NO_HOST_MEMORY. On failure *capacity may still be too small; every column has room for at least *capacity rows.
enum vram_status vr_columns_grow(const struct vr_columns *columns, void *table, size_t *capacity, size_t needed, struct vr_budget *budget);
// Like vr_columns_grow(), but sizes the columns for the stated length of the input (`ahead` of struct vr_budget), so that they rarely move.
// The columns have *held rows, at least *capacity; only the first *capacity rows are charged to the budget and may be written. The caller
// must create a sparse column with *held zeroed rows.
enum vram_status vr_columns_grow_ahead(const struct vr_columns *columns, void *table, size_t *capacity, size_t *held, size_t needed,
                                       struct vr_budget *budget);
// Sets a row of a sparse column with `held` rows in a growing table. Does not overwrite a 0 with 0, so that pages of zeros stay untouched.
// Returns NO_HOST_MEMORY from the calling function.
#define VR_COLUMN_PUT_SPARSE(column, held, row, value)                                                                                     \
    do {                                                                                                                                   \
        if ((column) == NULL && (value) != 0) {                                                                                            \
            (column) = calloc((held), sizeof *(column));                                                                                   \
            if ((column) == NULL) return VRAM_NO_HOST_MEMORY;                                                                              \
        }                                                                                                                                  \
        if ((column) != NULL && (column)[row] != (value)) (column)[row] = (value);                                                         \
    } while (0)
// Sets a row of an ALIKE column; the table's first row determines the common value.
#define VR_COLUMN_PUT_ALIKE(column, held, count, row, value)                                                                               \
    do {                                                                                                                                   \
        if ((count) <= 1 && (column).apart == NULL) (column).common = (value);                                                             \
        VR_COLUMN_PUT_SPARSE((column).apart, held, row, (value) ^ (column).common);                                                        \
    } while (0)
// Ends growing at `count` rows: shrinks the columns, makes all sparse columns that are NULL share one array of zeros, and allocates dense
// columns that are NULL (of a table without rows). Do not write to sparse columns afterwards. NO_HOST_MEMORY; the rest stays as it was.
enum vram_status vr_columns_finish(const struct vr_columns *columns, void *table, size_t count);
// Frees every column, shared arrays once, and sets its pointer to NULL.
void vr_columns_release(const struct vr_columns *columns, void *table);
// Get and replace the pointer of column `index`. The caller frees the old array.
void *vr_column_pointer(const struct vr_columns *columns, const void *table, size_t index);
void vr_column_set(const struct vr_columns *columns, void *table, size_t index, void *pointer);

#endif
