// logtables.h: the tables of a recording file: strings, frames, stacks, segments, settings and everything else but events.
//
// The tables part of a block is a series of sections: a varint tag (enum vr_log_section), a varint length, and that many bytes: the number
// of the first row and the number of rows, as varints, and the columns. A reader skips sections with unknown tags.
#ifndef VR_HISTORY_LOGTABLES_H
#define VR_HISTORY_LOGTABLES_H

#include "history/logbytes.h"
#include "model/model.h"

enum vr_log_section {
    VR_LOG_STRINGS = 1, // dictionaries: rows continue those of earlier blocks
    VR_LOG_FRAMES,
    VR_LOG_STACKS,
    VR_LOG_MODULES,
    VR_LOG_ANNOTATIONS, // rows continue, too
    VR_LOG_SETTINGS,    // the last row of a key applies
    VR_LOG_SHAPE,       // one row: the form of the model
    VR_LOG_KEYS,        // top-level keys
    VR_LOG_EXTRAS,
    VR_LOG_SEGMENTS, // begins a state; its blocks are in the same part
    VR_LOG_BLOCKS,
    VR_LOG_TENANTS,
    VR_LOG_INDEX,
    VR_LOG_SECTION_COUNT
};

// One column: the address of the first row's value, and the distance between rows.
struct vr_log_field {
    const void *base;
    size_t stride;
    size_t item_bytes; // 1, 4 or 8
};
enum { VR_LOG_FIELDS_MAX = 16 };

// The columns of a table, in the order of the file. The column `varied` is never written as one value for all rows, so each row takes at
// least a byte.
struct vr_log_table {
    struct vr_log_field field[VR_LOG_FIELDS_MAX];
    size_t field_count;
    size_t varied;
};

// Describe the tables whose rows are plain numbers, over the arrays of a model (which may be NULL without rows).
void vr_log_table_frames(const struct vr_frames *frames, struct vr_log_table *table);
void vr_log_table_modules(const struct vr_module *modules, struct vr_log_table *table);
void vr_log_table_annotations(const struct vr_annotation *annotations, struct vr_log_table *table);
void vr_log_table_settings(const struct vr_setting *settings, struct vr_log_table *table);
void vr_log_table_keys(const uint32_t *keys, struct vr_log_table *table);
void vr_log_table_extras(const struct vr_extra *extras, struct vr_log_table *table);
// first_block is written as the number of blocks: `block_counts` has a row per segment.
void vr_log_table_segments(const struct vr_segments *segments, const uint64_t *block_counts, struct vr_log_table *table);
void vr_log_table_blocks(const struct vr_blocks *blocks, struct vr_log_table *table);
void vr_log_table_tenants(const struct vr_tenant *tenants, struct vr_log_table *table);

// The form of a model: the row of VR_LOG_SHAPE.
struct vr_log_shape {
    uint64_t form;
    uint64_t history_count;
    uint64_t host_count;
};
void vr_log_table_shape(const struct vr_log_shape *shape, struct vr_log_table *table);

// A span of blocks of the file: the row of VR_LOG_INDEX.
struct vr_log_span {
    uint64_t offset;   // of the first block
    uint64_t sequence; // its number
    uint64_t events;   // in all earlier spans
    int64_t first_us;  // of the span's events
    int64_t last_us;
};
void vr_log_table_index(const struct vr_log_span *spans, struct vr_log_table *table);

// A writer of sections: appends to `out`, uses `scratch` for one column, and counts all rows.
struct vr_log_sections {
    struct vr_bytes out;
    struct vr_bytes body;
    uint64_t *scratch;
    size_t scratch_capacity;
    uint64_t rows;
};
void vr_log_sections_release(struct vr_log_sections *sections);

// Each appends rows [first, first + count) as one section; without rows, nothing. Sets out.failed if the host is out of memory. The table's
// fields begin with row 0 or, for vr_log_write_rows(), with row `first`.
void vr_log_write_rows(struct vr_log_sections *sections, enum vr_log_section tag, const struct vr_log_table *table, uint64_t first,
                       size_t count);
void vr_log_write_table(struct vr_log_sections *sections, enum vr_log_section tag, const struct vr_log_table *table, uint64_t first,
                        size_t count);
// Appends a section without rows, which says that the table exists.
void vr_log_write_empty(struct vr_log_sections *sections, enum vr_log_section tag);
void vr_log_write_strings(struct vr_log_sections *sections, const struct vr_strings *strings, uint32_t first, uint32_t count);
void vr_log_write_stacks(struct vr_log_sections *sections, const struct vr_stacks *stacks, uint32_t first, uint32_t count);

// A section being read.
struct vr_log_reading {
    uint64_t tag;
    uint64_t first;
    uint64_t count;
    struct vr_cursor body; // from the first column on
};
// Gets the next section. Returns false at the end, and sets cursor->failed if the remaining bytes are not a section.
bool vr_log_next_section(struct vr_cursor *cursor, struct vr_log_reading *reading);
// Reads the columns into the table's arrays, which have room for count rows from `base` on (written through the fields' bases). `scratch`
// holds count numbers. Returns false for values that do not fit their column.
bool vr_log_read_table(struct vr_log_reading *reading, const struct vr_log_table *table, uint64_t *scratch);

#endif
