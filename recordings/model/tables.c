// Implements vram/columns.h: describes the model's columns, table by table.
#include "vram/columns.h"

#include <string.h>

#include "model/recording.h"

// The offset of a column's pointer in the struct of its table.
struct model_column {
    const char *name;
    size_t offset;
    enum vram_column_type type;
    enum vram_column_meaning meaning;
};

#define SHOWN(owner, member, type, meaning)                                                                                                \
    { #member, offsetof(owner, member), VRAM_COLUMN_##type, VRAM_COLUMN_##meaning }
#define NAMED(name, owner, member, type, meaning)                                                                                          \
    { name, offsetof(owner, member), VRAM_COLUMN_##type, VRAM_COLUMN_##meaning }

static const struct model_column events[] = {
    SHOWN(struct vr_history, action, UINT8, ACTION),
    SHOWN(struct vr_history, address, UINT64, NUMBER),
    SHOWN(struct vr_history, size_bytes, UINT64, NUMBER),
    NAMED("stream", struct vr_history, stream.apart, UINT64, NUMBER),
    SHOWN(struct vr_history, time_us, INT64, NUMBER),
    SHOWN(struct vr_history, stack, UINT32, STACK),
    SHOWN(struct vr_history, pool_first, UINT64, NUMBER),
    SHOWN(struct vr_history, pool_second, UINT64, NUMBER),
    SHOWN(struct vr_history, thread, UINT32, NUMBER),
    NAMED("category", struct vr_history, tag, UINT32, STRING),
    NAMED("compile_context", struct vr_history, context, UINT32, STRING),
    NAMED("user_metadata", struct vr_history, metadata, UINT32, STRING),
    NAMED("unknown_action", struct vr_history, unknown, UINT32, STRING),
};
static const struct model_column segments[] = {
    SHOWN(struct vr_segments, device, UINT32, NUMBER),
    SHOWN(struct vr_segments, address, UINT64, NUMBER),
    NAMED("size_bytes", struct vr_segments, total_bytes, UINT64, NUMBER),
    SHOWN(struct vr_segments, allocated_bytes, UINT64, NUMBER),
    SHOWN(struct vr_segments, active_bytes, UINT64, NUMBER),
    SHOWN(struct vr_segments, requested_bytes, UINT64, NUMBER),
    SHOWN(struct vr_segments, stream, UINT64, NUMBER),
    SHOWN(struct vr_segments, pool_first, UINT64, NUMBER),
    SHOWN(struct vr_segments, pool_second, UINT64, NUMBER),
    SHOWN(struct vr_segments, first_block, UINT64, NUMBER),
    SHOWN(struct vr_segments, stack, UINT32, STACK),
    SHOWN(struct vr_segments, kind, UINT8, KIND),
    SHOWN(struct vr_segments, expandable, UINT8, NUMBER),
};
static const struct model_column blocks[] = {
    SHOWN(struct vr_blocks, address, UINT64, NUMBER),
    SHOWN(struct vr_blocks, size_bytes, UINT64, NUMBER),
    SHOWN(struct vr_blocks, requested_bytes, UINT64, NUMBER),
    SHOWN(struct vr_blocks, stack, UINT32, STACK),
    SHOWN(struct vr_blocks, state, UINT8, STATE),
};
static const struct model_column frames[] = {
    SHOWN(struct vr_frames, name, UINT32, STRING),
    SHOWN(struct vr_frames, filename, UINT32, STRING),
    SHOWN(struct vr_frames, line, INT64, NUMBER),
};
static const struct model_column stacks[] = {NAMED("first_frame", struct vr_stacks, offset, UINT64, NUMBER)};
static const struct model_column stack_frames[] = {SHOWN(struct vr_stacks, frame, UINT32, FRAME)};

// A table: the struct with its pointers, its columns and its number of rows.
struct model_rows {
    const void *owner;
    const struct model_column *columns;
    size_t column_count;
    uint64_t rows;
};
#define TABLE(owner, columns, rows) ((struct model_rows){owner, columns, sizeof(columns) / sizeof *(columns), rows})

// Finds a table; its owner is NULL if the table does not exist.
static struct model_rows find_table(const struct vr_model *model, enum vram_rows table, uint32_t device) {
    switch (table) {
    case VRAM_ROWS_EVENTS:
        if (device >= model->history_count) return (struct model_rows){0};
        return TABLE(&model->histories[device], events, model->histories[device].count);
    case VRAM_ROWS_SEGMENTS: return TABLE(&model->segments, segments, model->segments.count);
    case VRAM_ROWS_BLOCKS: return TABLE(&model->blocks, blocks, model->blocks.count);
    case VRAM_ROWS_FRAMES: return TABLE(&model->frames, frames, model->frames.count);
    case VRAM_ROWS_STACKS: return TABLE(&model->stacks, stacks, (uint64_t)model->stacks.count + 1);
    case VRAM_ROWS_STACK_FRAMES: return TABLE(&model->stacks, stack_frames, model->stacks.offset[model->stacks.count]);
    default: return (struct model_rows){0};
    }
}

bool vram_recording_column(const struct vram_recording *recording, enum vram_rows table, uint32_t device, uint32_t index,
                           struct vram_column *column) {
    static const uint64_t nothing;
    if (recording == NULL || column == NULL) return false;
    const struct model_rows found = find_table(&recording->model, table, device);
    if (found.owner == NULL || index >= found.column_count) return false;
    const struct model_column *shown = &found.columns[index];
    const void *values;
    const bool alike = table == VRAM_ROWS_EVENTS && shown->offset == offsetof(struct vr_history, stream.apart);
    memcpy(&values, (const char *)found.owner + shown->offset, sizeof values);
    *column = (struct vram_column){
        .name = shown->name,
        .values = values == NULL ? &nothing : values,
        .count = found.rows,
        .common = alike ? recording->model.histories[device].stream.common : 0,
        .type = shown->type,
        .meaning = shown->meaning,
    };
    return true;
}

const char *vram_column_word(enum vram_column_meaning meaning, uint32_t number) {
    static const char *const kinds[] = {[VR_KIND_UNKNOWN] = "", [VR_KIND_SMALL] = "small", [VR_KIND_LARGE] = "large"};
    switch (meaning) {
    case VRAM_COLUMN_ACTION: return number < VR_ACTION_COUNT ? vr_action_name((enum vr_action)number) : NULL;
    case VRAM_COLUMN_STATE: return number < VR_STATE_COUNT ? vr_block_state_name((enum vr_block_state)number) : NULL;
    case VRAM_COLUMN_KIND: return number < sizeof kinds / sizeof *kinds ? kinds[number] : NULL;
    default: return NULL;
    }
}

uint32_t vram_recording_string_count(const struct vram_recording *recording) {
    return recording == NULL ? 0 : recording->model.strings.count;
}

const char *vram_recording_string(const struct vram_recording *recording, uint32_t number, uint64_t *length) {
    if (recording == NULL || length == NULL || number >= recording->model.strings.count) return NULL;
    *length = vr_model_string_length(&recording->model, number);
    return vr_model_string(&recording->model, number);
}
