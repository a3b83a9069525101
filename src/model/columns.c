#include "model/columns.h"

#include "model/model.h"

#define COLUMN(table, name, sparse)                                                                                                        \
    { offsetof(struct table, name), sizeof *((struct table *)0)->name, (sparse) }
#define SEGMENT_COLUMN(type, name) COLUMN(vr_segments, name, false),
#define BLOCK_COLUMN(type, name)   COLUMN(vr_blocks, name, false),
#define DENSE_COLUMN(type, name)   COLUMN(vr_history, name, false),
#define SPARSE_COLUMN(type, name)  COLUMN(vr_history, name, true),
#define COLUMN_BYTES(type, name)   +sizeof(type)

static const struct vr_column segment_columns[] = {VR_SEGMENT_COLUMNS(SEGMENT_COLUMN)};
static const struct vr_column block_columns[] = {VR_BLOCK_COLUMNS(BLOCK_COLUMN)};
static const struct vr_column history_columns[] = {VR_HISTORY_DENSE_COLUMNS(DENSE_COLUMN) VR_HISTORY_SPARSE_COLUMNS(SPARSE_COLUMN)};

const struct vr_columns vr_segment_columns = {segment_columns, VR_COUNT_OF(segment_columns), 0 VR_SEGMENT_COLUMNS(COLUMN_BYTES)};
const struct vr_columns vr_block_columns = {block_columns, VR_COUNT_OF(block_columns), 0 VR_BLOCK_COLUMNS(COLUMN_BYTES)};
const struct vr_columns vr_history_columns = {history_columns, VR_COUNT_OF(history_columns),
                                              0 VR_HISTORY_DENSE_COLUMNS(COLUMN_BYTES) VR_HISTORY_SPARSE_COLUMNS(COLUMN_BYTES)};

// Pointers of different types are read and written by memcpy: a column's own type is not known here.
void *vr_column_pointer(const struct vr_columns *columns, const void *table, size_t index) {
    void *pointer;
    memcpy(&pointer, (const char *)table + columns->column[index].pointer_offset, sizeof pointer);
    return pointer;
}

void vr_column_set(const struct vr_columns *columns, void *table, size_t index, void *pointer) {
    memcpy((char *)table + columns->column[index].pointer_offset, &pointer, sizeof pointer);
}

enum vram_status vr_columns_grow(const struct vr_columns *columns, void *table, size_t *capacity, size_t needed, struct vr_budget *budget) {
    if (needed <= *capacity) return VRAM_OK;
    size_t wanted = vr_budget_next_capacity(*capacity, needed);
    VR_TRY(vr_budget_charge(budget, wanted - *capacity, columns->row_bytes));
    for (size_t i = 0; i < columns->count; i++) {
        if (wanted > SIZE_MAX / columns->column[i].item_bytes) return VRAM_NO_HOST_MEMORY;
        void *column = vr_column_pointer(columns, table, i);
        if (column == NULL && columns->column[i].sparse) continue;
        void *grown = realloc(column, wanted * columns->column[i].item_bytes);
        if (grown == NULL) return VRAM_NO_HOST_MEMORY;
        vr_column_set(columns, table, i, grown);
    }
    *capacity = wanted;
    return VRAM_OK;
}

void vr_columns_trim(const struct vr_columns *columns, void *table, size_t count) {
    for (size_t i = 0; i < columns->count; i++) {
        void *column = vr_column_pointer(columns, table, i);
        if (column == NULL) continue;
        void *trimmed = realloc(column, (count == 0 ? 1 : count) * columns->column[i].item_bytes);
        if (trimmed != NULL) vr_column_set(columns, table, i, trimmed);
    }
}

void vr_columns_release(const struct vr_columns *columns, void *table) {
    for (size_t i = 0; i < columns->count; i++) {
        free(vr_column_pointer(columns, table, i));
        vr_column_set(columns, table, i, NULL);
    }
}
