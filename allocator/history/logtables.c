#include "history/logtables.h"

#include "history/logcolumn.h"

static void add_field(struct vr_log_table *table, const void *base, size_t stride, size_t item_bytes) {
    table->field[table->field_count++] = (struct vr_log_field){base, stride, item_bytes};
}

// COLUMN adds an array of its own; MEMBER adds a member of an array of structs (NULL if the array is).
#define COLUMN(table, array)         add_field((table), (array), sizeof *(array), sizeof *(array))
#define MEMBER(table, items, member) add_field((table), (items) == NULL ? NULL : &(items)->member, sizeof *(items), sizeof(items)->member)

static void begin_table(struct vr_log_table *table, size_t varied) {
    table->field_count = 0;
    table->varied = varied;
}

void vr_log_table_frames(const struct vr_frames *frames, struct vr_log_table *table) {
    begin_table(table, 2);
    COLUMN(table, frames->name);
    COLUMN(table, frames->filename);
    COLUMN(table, frames->line);
}

void vr_log_table_modules(const struct vr_module *modules, struct vr_log_table *table) {
    begin_table(table, 0);
    MEMBER(table, modules, path);
    MEMBER(table, modules, build_id);
}

void vr_log_table_annotations(const struct vr_annotation *annotations, struct vr_log_table *table) {
    begin_table(table, 0);
    MEMBER(table, annotations, time_us);
    MEMBER(table, annotations, name);
    MEMBER(table, annotations, stage);
    MEMBER(table, annotations, device);
}

void vr_log_table_settings(const struct vr_setting *settings, struct vr_log_table *table) {
    begin_table(table, 0);
    MEMBER(table, settings, key);
    MEMBER(table, settings, value);
}

void vr_log_table_keys(const uint32_t *keys, struct vr_log_table *table) {
    begin_table(table, 0);
    COLUMN(table, keys);
}

void vr_log_table_extras(const struct vr_extra *extras, struct vr_log_table *table) {
    begin_table(table, 0);
    MEMBER(table, extras, row);
    MEMBER(table, extras, owner);
    MEMBER(table, extras, device);
    MEMBER(table, extras, key);
    MEMBER(table, extras, value);
}

void vr_log_table_segments(const struct vr_segments *segments, const uint64_t *block_counts, struct vr_log_table *table) {
    begin_table(table, 1);
    COLUMN(table, segments->device);
    COLUMN(table, segments->address);
    COLUMN(table, segments->total_bytes);
    COLUMN(table, segments->allocated_bytes);
    COLUMN(table, segments->active_bytes);
    COLUMN(table, segments->requested_bytes);
    COLUMN(table, segments->stream);
    COLUMN(table, segments->pool_first);
    COLUMN(table, segments->pool_second);
    COLUMN(table, segments->counter);
    COLUMN(table, segments->stack);
    COLUMN(table, segments->has);
    COLUMN(table, segments->kind);
    COLUMN(table, segments->expandable);
    COLUMN(table, block_counts);
}

void vr_log_table_blocks(const struct vr_blocks *blocks, struct vr_log_table *table) {
    begin_table(table, 0);
    COLUMN(table, blocks->address);
    COLUMN(table, blocks->size_bytes);
    COLUMN(table, blocks->requested_bytes);
    COLUMN(table, blocks->stack);
    COLUMN(table, blocks->has);
    COLUMN(table, blocks->state);
}

void vr_log_table_tenants(const struct vr_tenant *tenants, struct vr_log_table *table) {
    begin_table(table, 0);
    MEMBER(table, tenants, address);
    MEMBER(table, tenants, block);
    MEMBER(table, tenants, size_bytes);
    MEMBER(table, tenants, stack);
    MEMBER(table, tenants, cpp_stack);
    MEMBER(table, tenants, has);
}

void vr_log_table_shape(const struct vr_log_shape *shape, struct vr_log_table *table) {
    begin_table(table, 0);
    MEMBER(table, shape, form);
    MEMBER(table, shape, history_count);
    MEMBER(table, shape, host_count);
}

void vr_log_table_index(const struct vr_log_span *spans, struct vr_log_table *table) {
    begin_table(table, 0);
    MEMBER(table, spans, offset);
    MEMBER(table, spans, sequence);
    MEMBER(table, spans, events);
    MEMBER(table, spans, first_us);
    MEMBER(table, spans, last_us);
}

// ---- writing

void vr_log_sections_release(struct vr_log_sections *sections) {
    vr_bytes_release(&sections->out);
    vr_bytes_release(&sections->body);
    free(sections->scratch);
    memset(sections, 0, sizeof *sections);
}

// Makes room for `count` numbers in the scratch column. Returns NULL, with out.failed set, if the host is out of memory.
static uint64_t *reserve_scratch(struct vr_log_sections *sections, size_t count) {
    void *scratch = sections->scratch;
    if (vr_grow(&scratch, &sections->scratch_capacity, count, sizeof *sections->scratch) != VRAM_OK) sections->out.failed = true;
    sections->scratch = scratch;
    return sections->out.failed ? NULL : sections->scratch;
}

static void begin_section(struct vr_log_sections *sections, uint64_t first, uint64_t count) {
    sections->body.count = 0;
    sections->rows += count;
    vr_bytes_varint(&sections->body, first);
    vr_bytes_varint(&sections->body, count);
}

static void end_section(struct vr_log_sections *sections, enum vr_log_section tag) {
    vr_bytes_varint(&sections->out, tag);
    vr_bytes_varint(&sections->out, sections->body.count);
    vr_bytes_add(&sections->out, sections->body.data, sections->body.count);
    if (sections->body.failed) sections->out.failed = true;
}

static void gather_column(const struct vr_log_field *field, size_t count, uint64_t *values) {
    const unsigned char *at = field->base;
    for (size_t i = 0; i < count; i++, at += field->stride) {
        values[i] = field->item_bytes == 1 ? *at : field->item_bytes == 4 ? vr_load32(at) : vr_load64(at);
    }
}

void vr_log_write_rows(struct vr_log_sections *sections, enum vr_log_section tag, const struct vr_log_table *table, uint64_t first,
                       size_t count) {
    uint64_t *values = count == 0 ? NULL : reserve_scratch(sections, count);
    if (values == NULL) return;
    begin_section(sections, first, count);
    for (size_t i = 0; i < table->field_count; i++) {
        gather_column(&table->field[i], count, values);
        vr_column_write(&sections->body, values, count, i == table->varied);
    }
    end_section(sections, tag);
}

void vr_log_write_table(struct vr_log_sections *sections, enum vr_log_section tag, const struct vr_log_table *table, uint64_t first,
                        size_t count) {
    struct vr_log_table moved = *table;
    for (size_t i = 0; i < moved.field_count && count != 0; i++) {
        struct vr_log_field *field = &moved.field[i];
        field->base = (const unsigned char *)field->base + first * field->stride;
    }
    vr_log_write_rows(sections, tag, &moved, first, count);
}

void vr_log_write_empty(struct vr_log_sections *sections, enum vr_log_section tag) {
    begin_section(sections, 0, 0);
    end_section(sections, tag);
}

void vr_log_write_strings(struct vr_log_sections *sections, const struct vr_strings *strings, uint32_t first, uint32_t count) {
    uint64_t *values = count == 0 ? NULL : reserve_scratch(sections, count);
    if (values == NULL) return;
    begin_section(sections, first, count);
    for (uint32_t i = 0; i < count; i++) values[i] = strings->offset[first + i + 1] - strings->offset[first + i] - 1;
    vr_column_write(&sections->body, values, count, true);
    for (uint32_t i = 0; i < count; i++) {
        vr_bytes_add(&sections->body, strings->bytes + strings->offset[first + i], (size_t)values[i]);
    }
    end_section(sections, VR_LOG_STRINGS);
}

void vr_log_write_stacks(struct vr_log_sections *sections, const struct vr_stacks *stacks, uint32_t first, uint32_t count) {
    uint64_t begin_frame = stacks->offset[first];
    size_t frame_count = (size_t)(stacks->offset[first + count] - begin_frame), most = frame_count > count ? frame_count : count;
    uint64_t *values = count == 0 ? NULL : reserve_scratch(sections, most);
    if (values == NULL) return;
    begin_section(sections, first, count);
    for (uint32_t i = 0; i < count; i++) values[i] = stacks->offset[first + i + 1] - stacks->offset[first + i];
    vr_column_write(&sections->body, values, count, true);
    for (size_t i = 0; i < frame_count; i++) values[i] = stacks->frame[begin_frame + i];
    vr_column_write(&sections->body, values, frame_count, true);
    end_section(sections, VR_LOG_STACKS);
}

// ---- reading

bool vr_log_next_section(struct vr_cursor *cursor, struct vr_log_reading *reading) {
    if (cursor->next == cursor->end || cursor->failed) return false;
    reading->tag = vr_cursor_varint(cursor);
    uint64_t length = vr_cursor_varint(cursor);
    const unsigned char *body = vr_cursor_take(cursor, length);
    if (cursor->failed) return false;
    reading->body = (struct vr_cursor){body, body + length, false};
    reading->first = vr_cursor_varint(&reading->body);
    reading->count = vr_cursor_varint(&reading->body);
    // Every row takes at least a byte of some column.
    if (reading->body.failed || reading->count > vr_cursor_left(&reading->body)) cursor->failed = true;
    return !cursor->failed;
}

static void scatter_column(const struct vr_log_field *field, size_t count, const uint64_t *values) {
    unsigned char *at = (unsigned char *)(uintptr_t)field->base;
    for (size_t i = 0; i < count; i++, at += field->stride) {
        uint32_t narrow = (uint32_t)values[i];
        if (field->item_bytes == 1)
            *at = (unsigned char)values[i];
        else if (field->item_bytes == 4)
            memcpy(at, &narrow, sizeof narrow);
        else
            memcpy(at, &values[i], sizeof values[i]);
    }
}

bool vr_log_read_table(struct vr_log_reading *reading, const struct vr_log_table *table, uint64_t *scratch) {
    size_t count = (size_t)reading->count;
    for (size_t i = 0; i < table->field_count; i++) {
        const struct vr_log_field *field = &table->field[i];
        uint64_t largest, limit = field->item_bytes == 8 ? UINT64_MAX : ((uint64_t)1 << (8 * field->item_bytes)) - 1;
        vr_column_read(&reading->body, scratch, count, &largest);
        if (reading->body.failed || largest > limit) return false;
        scatter_column(field, count, scratch);
    }
    return true;
}
