#include "model/columns.h"

#include "model/model.h"

#define COLUMN(table, type, name, sparse)                                                                                                  \
    { offsetof(struct table, name), sizeof(type), (sparse) }
#define SEGMENT_COLUMN(type, name) COLUMN(vr_segments, type, name, false),
#define BLOCK_COLUMN(type, name)   COLUMN(vr_blocks, type, name, false),
#define COLUMN_BYTES(type, name)   +sizeof(type)

static const struct vr_column segment_columns[] = {VR_SEGMENT_COLUMNS(SEGMENT_COLUMN)};
static const struct vr_column block_columns[] = {VR_BLOCK_COLUMNS(BLOCK_COLUMN)};
enum { DENSE, SPARSE, ALIKE };
static const struct vr_column history_columns[] = {
#define VR_FIELD(column, type, density, ...) COLUMN(vr_history, type, column, (density) != DENSE),
#include "model/entry_fields.def"
};
enum {
    HISTORY_ROW_BYTES = 0
#define VR_FIELD(column, type, ...) +sizeof(type)
#include "model/entry_fields.def"
};

const struct vr_columns vr_segment_columns = {segment_columns, VR_COUNT_OF(segment_columns), 0 VR_SEGMENT_COLUMNS(COLUMN_BYTES)};
const struct vr_columns vr_block_columns = {block_columns, VR_COUNT_OF(block_columns), 0 VR_BLOCK_COLUMNS(COLUMN_BYTES)};
const struct vr_columns vr_history_columns = {history_columns, VR_COUNT_OF(history_columns), HISTORY_ROW_BYTES};

// Use memcpy to access pointers, because the column's type is unknown here.
void *vr_column_pointer(const struct vr_columns *columns, const void *table, size_t index) {
    void *pointer;
    memcpy(&pointer, (const char *)table + columns->column[index].pointer_offset, sizeof pointer);
    return pointer;
}

void vr_column_set(const struct vr_columns *columns, void *table, size_t index, void *pointer) {
    memcpy((char *)table + columns->column[index].pointer_offset, &pointer, sizeof pointer);
}

// Reallocates a sparse column to more_bytes, with zeros after its old bytes. Does not write zeros, so that pages of zeros stay untouched
// and cost no memory. Returns NULL, leaving the column unchanged, if the host is out of memory.
static void *grow_sparse(char *column, size_t bytes, size_t more_bytes) {
    enum { STRETCH = 4096 };
    char *grown = calloc(more_bytes, 1);
    for (size_t at = 0; at < bytes && grown != NULL; at += STRETCH) {
        const size_t length = bytes - at < STRETCH ? bytes - at : STRETCH;
        if (column[at] != 0 || memcmp(column + at, column + at + 1, length - 1) != 0) memcpy(grown + at, column + at, length);
    }
    if (grown != NULL) free(column);
    return grown;
}

// Reallocates every column, except sparse columns that are NULL, from `held` to `rows` rows. On failure, some columns have `rows` rows and
// the others still `held`.
static enum vram_status hold_rows(const struct vr_columns *columns, void *table, size_t held, size_t rows) {
    if (rows > SIZE_MAX / sizeof(uint64_t)) return VRAM_NO_HOST_MEMORY;
    for (size_t i = 0; i < columns->count; i++) {
        void *column = vr_column_pointer(columns, table, i);
        const size_t item_bytes = columns->column[i].item_bytes;
        if (column == NULL && columns->column[i].sparse) continue;
        void *grown =
            columns->column[i].sparse ? grow_sparse(column, held * item_bytes, rows * item_bytes) : realloc(column, rows * item_bytes);
        if (grown == NULL) return VRAM_NO_HOST_MEMORY;
        vr_column_set(columns, table, i, grown);
    }
    return VRAM_OK;
}

enum vram_status vr_columns_grow(const struct vr_columns *columns, void *table, size_t *capacity, size_t needed, struct vr_budget *budget) {
    if (needed <= *capacity) return VRAM_OK;
    size_t held = *capacity;
    struct vr_budget without_ahead = *budget;
    without_ahead.ahead = 0;
    const enum vram_status status = vr_columns_grow_ahead(columns, table, capacity, &held, needed, &without_ahead);
    budget->used_bytes = without_ahead.used_bytes;
    return status;
}

enum vram_status vr_columns_grow_ahead(const struct vr_columns *columns, void *table, size_t *capacity, size_t *held, size_t needed,
                                       struct vr_budget *budget) {
    if (needed <= *capacity) return VRAM_OK;
    const size_t wanted = vr_budget_next_capacity(*capacity, needed), expected = vr_budget_expected(budget, needed);
    VR_TRY(vr_budget_charge(budget, wanted - *capacity, columns->row_bytes));
    if (wanted > *held) {
        size_t rows = expected > wanted ? expected : wanted;
        enum vram_status status = hold_rows(columns, table, *held, rows);
        if (status != VRAM_OK && rows != wanted) status = hold_rows(columns, table, *held, rows = wanted);
        if (status != VRAM_OK) {
            budget->used_bytes -= (uint64_t)(wanted - *capacity) * columns->row_bytes;
            return status;
        }
        *held = rows;
    }
    *capacity = wanted;
    return VRAM_OK;
}

static void trim_columns(const struct vr_columns *columns, void *table, size_t count) {
    for (size_t i = 0; i < columns->count; i++) {
        void *column = vr_column_pointer(columns, table, i);
        if (column == NULL) continue;
        void *trimmed = realloc(column, (count == 0 ? 1 : count) * columns->column[i].item_bytes);
        if (trimmed != NULL) vr_column_set(columns, table, i, trimmed);
    }
}

static size_t widest_sparse(const struct vr_columns *columns) {
    size_t widest = 0;
    for (size_t i = 0; i < columns->count; i++) {
        if (columns->column[i].sparse && columns->column[i].item_bytes > widest) widest = columns->column[i].item_bytes;
    }
    return widest;
}

enum vram_status vr_columns_finish(const struct vr_columns *columns, void *table, size_t count) {
    void *zeros = NULL;
    trim_columns(columns, table, count);
    for (size_t i = 0; i < columns->count; i++) {
        const bool sparse = columns->column[i].sparse;
        if (vr_column_pointer(columns, table, i) != NULL) continue;
        // calloc() gets large arrays zeroed from the system: pages that are never written cost no memory.
        void *column = sparse && zeros != NULL ? zeros : calloc(count + 1, sparse ? widest_sparse(columns) : columns->column[i].item_bytes);
        if (column == NULL) return VRAM_NO_HOST_MEMORY;
        if (sparse) zeros = column;
        vr_column_set(columns, table, i, column);
    }
    return VRAM_OK;
}

static bool is_shared_with_earlier(const struct vr_columns *columns, const void *table, size_t index) {
    for (size_t i = 0; i < index; i++) {
        if (vr_column_pointer(columns, table, i) == vr_column_pointer(columns, table, index)) return true;
    }
    return false;
}

void vr_columns_release(const struct vr_columns *columns, void *table) {
    for (size_t i = columns->count; i-- > 0;) {
        if (!is_shared_with_earlier(columns, table, i)) free(vr_column_pointer(columns, table, i));
        vr_column_set(columns, table, i, NULL);
    }
}
