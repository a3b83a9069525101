// arrow.h: a table of columns as an Arrow IPC file (docs: Apache Arrow's "Columnar Format", version 1.0 and later, metadata V5).
#ifndef VR_EXPORT_ARROW_H
#define VR_EXPORT_ARROW_H

#include "export/export.h"

enum vr_arrow_kind { VR_ARROW_INT64, VR_ARROW_UINT64, VR_ARROW_UINT32, VR_ARROW_TEXT };

// Texts by number, each once in a file: a column of texts has their numbers.
struct vr_arrow_words {
    size_t count;
    // Appends text `index` to `out`, whatever its bytes; the writer makes UTF-8 of it.
    void (*append)(const void *table, size_t index, struct vr_text *out);
};

struct vr_arrow_column {
    const char *name;
    enum vr_arrow_kind kind;
    struct vr_arrow_words words; // of VR_ARROW_TEXT
};

// A value, of a text its number.
struct vr_arrow_cell {
    uint64_t value;
    bool is_there;
};

struct vr_arrow_table {
    const struct vr_arrow_column *columns;
    size_t column_count;
    size_t row_count;
    void (*fill)(const void *table, size_t row, struct vr_arrow_cell *cells); // cells are all-zero, one per column
    const void *table;                                                        // handed to the functions
};

// LIMIT (texts of more than 2 GiB in a column), NO_HOST_MEMORY; a failure to write is the out's.
enum vram_status vr_arrow_write(const struct vr_arrow_table *table, struct vr_output *out);

#endif
