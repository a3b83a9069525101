// Writes PyTorch's dictionaries row by row. A row's has-bits say which keys it has; a value that a column cannot express is one of the
// model's extras, which then replaces the column's value.
#include "snapshot/emit.h"

#include <stdio.h>

#include "model/recording.h"
#include "snapshot/formats.h"

// The extras of one row, as a range of the model's table.
struct extras {
    size_t begin, end;
};

struct dict_writer {
    struct vr_emitter emitter;
    const struct vr_model *model;
    struct extras of_owner[VR_OWNER_COUNT];
    size_t next_tenant;
    struct vr_emit_field fields[VR_EMIT_FIELDS]; // of the current row, not yet passed to the emitter
    size_t field_count;
    bool pool_lists;      // some pool id was a list; JSON, which has no pairs, says so once
    uint32_t changed_key; // key of the first value that the format wrote as another (vr_emitter.change)
};

static uint64_t string_name(uint32_t id) { return (uint64_t)VR_WORD_COUNT + id; }

// ---- extra keys

static void find_owners(struct dict_writer *writer) {
    const struct vr_model *model = writer->model;
    size_t next = 0;
    for (unsigned owner = 0; owner < VR_OWNER_COUNT; owner++) {
        writer->of_owner[owner].begin = next;
        while (next < model->extra_count && model->extras[next].owner == owner) next++;
        writer->of_owner[owner].end = next;
    }
}

// Returns whether the extra's row comes before the given row of its owner.
static bool is_before(const struct vr_extra *extra, uint32_t device, uint64_t row) {
    return extra->device < device || (extra->device == device && extra->row < row);
}

static size_t first_not_before(const struct dict_writer *writer, struct extras range, uint32_t device, uint64_t row) {
    size_t first;
    VR_LOWER_BOUND(first, i, range.begin, range.end, is_before(&writer->model->extras[i], device, row));
    return first;
}

VR_INLINE struct extras extras_of(const struct dict_writer *writer, enum vr_owner owner, size_t device, uint64_t row) {
    struct extras range = writer->of_owner[owner];
    if (VR_LIKELY(range.begin == range.end)) return range;
    size_t begin = first_not_before(writer, range, (uint32_t)device, row);
    return (struct extras){begin, first_not_before(writer, range, (uint32_t)device, row + 1)};
}

// Returns the extra that replaces the key, or NULL.
static const struct vr_extra *find_extra(const struct dict_writer *writer, struct extras extras, const char *key) {
    for (size_t i = extras.begin; i < extras.end; i++) {
        const struct vr_extra *extra = &writer->model->extras[i];
        if (vr_model_string_length(writer->model, extra->key) == strlen(key) &&
            memcmp(vr_model_string(writer->model, extra->key), key, strlen(key)) == 0)
            return extra;
    }
    return NULL;
}

// Writes the value that the text represents.
static void put_extra_text(struct dict_writer *writer, uint32_t key, uint32_t text) {
    const enum vr_python_value before = writer->emitter.change;
    vr_emit_text(&writer->emitter, vr_model_string(writer->model, text), vr_model_string_length(writer->model, text));
    if (writer->emitter.change != before) writer->changed_key = key;
}

// ---- single keys: each function writes nothing if an extra replaces the key

static bool is_replaced(const struct dict_writer *writer, struct extras extras, enum vr_word key) {
    return VR_UNLIKELY(extras.begin != extras.end) && find_extra(writer, extras, vr_word_text(key)) != NULL;
}

static void hand_on(struct dict_writer *writer) {
    if (writer->field_count != 0) writer->emitter.calls->fields(&writer->emitter, writer->fields, writer->field_count);
    writer->field_count = 0;
}

// Writes the extras as the last keys of a row.
static void put_extras(struct dict_writer *writer, struct extras extras) {
    hand_on(writer);
    for (size_t i = extras.begin; i < extras.end; i++) {
        const struct vr_extra *extra = &writer->model->extras[i];
        // An empty text means that the key is absent.
        if (extra->value == 0) continue;
        writer->emitter.calls->key(&writer->emitter, string_name(extra->key));
        put_extra_text(writer, extra->key, extra->value);
    }
}

static bool begin_key(struct dict_writer *writer, struct extras extras, enum vr_word key) {
    if (is_replaced(writer, extras, key)) return false;
    hand_on(writer);
    writer->emitter.calls->key(&writer->emitter, key);
    return true;
}

VR_INLINE void put_field(struct dict_writer *writer, struct extras extras, enum vr_word key, enum vr_field_value kind, uint64_t value) {
    if (is_replaced(writer, extras, key)) return;
    if (writer->field_count == VR_EMIT_FIELDS) hand_on(writer);
    writer->fields[writer->field_count++] = (struct vr_emit_field){.key = key, .kind = kind, .value = value};
}

static void put_number_key(struct dict_writer *writer, struct extras extras, enum vr_word key, uint64_t number) {
    put_field(writer, extras, key, VR_FIELD_NUMBER, number);
}

static void put_signed(struct dict_writer *writer, struct extras extras, enum vr_word key, int64_t number) {
    put_field(writer, extras, key, VR_FIELD_SIGNED, (uint64_t)number);
}

static void put_name_key(struct dict_writer *writer, struct extras extras, enum vr_word key, uint64_t name) {
    put_field(writer, extras, key, VR_FIELD_NAME, name);
}

static void put_pool(struct dict_writer *writer, struct extras extras, enum vr_word key, uint64_t first, uint64_t second, bool is_list) {
    struct vr_emitter *emitter = &writer->emitter;
    if (!begin_key(writer, extras, key)) return;
    if (!is_list) {
        emitter->calls->pair(emitter, first, second);
        return;
    }
    writer->pool_lists = true;
    emitter->calls->begin(emitter, false);
    emitter->calls->number(emitter, first);
    emitter->calls->number(emitter, second);
    emitter->calls->end(emitter);
}

// ---- frames and stacks

static void put_frame_dict(struct dict_writer *writer, uint32_t frame) {
    const struct vr_frames *frames = &writer->model->frames;
    struct extras extras = extras_of(writer, VR_OWNER_FRAME, 0, frame);
    if (writer->emitter.calls->shared(&writer->emitter, VR_SHARED_FRAME, frame)) return;
    put_name_key(writer, extras, VR_WORD_NAME, string_name(frames->name[frame]));
    put_name_key(writer, extras, VR_WORD_FILENAME, string_name(frames->filename[frame]));
    put_number_key(writer, extras, VR_WORD_LINE, (uint64_t)frames->line[frame]);
    put_extras(writer, extras);
    writer->emitter.calls->end_shared(&writer->emitter, VR_SHARED_FRAME, frame);
}

static void put_stack(struct dict_writer *writer, struct extras extras, enum vr_word key, uint32_t stack) {
    const struct vr_stacks *stacks = &writer->model->stacks;
    struct vr_emitter *emitter = &writer->emitter;
    if (!begin_key(writer, extras, key)) return;
    if (stack == 0) {
        emitter->calls->begin(emitter, false);
        emitter->calls->end(emitter);
        return;
    }
    if (emitter->calls->shared(emitter, VR_SHARED_STACK, stack)) return;
    for (uint64_t i = stacks->offset[stack]; i < stacks->offset[stack + 1]; i++) put_frame_dict(writer, stacks->frame[i]);
    emitter->calls->end_shared(emitter, VR_SHARED_STACK, stack);
}

// ---- rows

static void put_tenant(struct dict_writer *writer, size_t row) {
    const struct vr_tenant *tenant = &writer->model->tenants[row];
    struct extras extras = extras_of(writer, VR_OWNER_TENANT, 0, row);
    writer->emitter.calls->begin(&writer->emitter, true);
    if (tenant->has & VR_HAS_ADDRESS) put_number_key(writer, extras, VR_WORD_ADDR, tenant->address);
    if (tenant->has & VR_HAS_SIZE) put_number_key(writer, extras, VR_WORD_REAL_SIZE, tenant->size_bytes);
    if (tenant->has & VR_HAS_FRAMES) put_stack(writer, extras, VR_WORD_FRAMES, tenant->stack);
    if (tenant->has & VR_HAS_CPP_FRAMES) put_stack(writer, extras, VR_WORD_CPP_FRAMES, tenant->cpp_stack);
    put_extras(writer, extras);
    writer->emitter.calls->end(&writer->emitter);
}

static void put_tenants(struct dict_writer *writer, struct extras extras, size_t block) {
    const struct vr_model *model = writer->model;
    while (writer->next_tenant < model->tenant_count && model->tenants[writer->next_tenant].block < block) writer->next_tenant++;
    if (!begin_key(writer, extras, VR_WORD_HISTORY)) return;
    writer->emitter.calls->begin(&writer->emitter, false);
    for (; writer->next_tenant < model->tenant_count && model->tenants[writer->next_tenant].block == block; writer->next_tenant++) {
        put_tenant(writer, writer->next_tenant);
    }
    writer->emitter.calls->end(&writer->emitter);
}

static void put_block(struct dict_writer *writer, size_t row) {
    const struct vr_blocks *blocks = &writer->model->blocks;
    const uint32_t has = blocks->has[row];
    struct extras extras = extras_of(writer, VR_OWNER_BLOCK, 0, row);
    writer->emitter.calls->begin(&writer->emitter, true);
    if (has & VR_HAS_ADDRESS) put_number_key(writer, extras, VR_WORD_ADDRESS, blocks->address[row]);
    if (has & VR_HAS_SIZE) put_number_key(writer, extras, VR_WORD_SIZE, blocks->size_bytes[row]);
    if (has & VR_HAS_REQUESTED_SIZE) put_number_key(writer, extras, VR_WORD_REQUESTED_SIZE, blocks->requested_bytes[row]);
    if (has & VR_HAS_STATE) {
        static const enum vr_word states[VR_STATE_COUNT] = {[VR_STATE_INACTIVE] = VR_WORD_INACTIVE,
                                                            [VR_STATE_ALLOCATED] = VR_WORD_ACTIVE_ALLOCATED,
                                                            [VR_STATE_PENDING_FREE] = VR_WORD_ACTIVE_PENDING_FREE,
                                                            [VR_STATE_AWAITING_FREE] = VR_WORD_ACTIVE_AWAITING_FREE};
        put_name_key(writer, extras, VR_WORD_STATE, states[blocks->state[row]]);
    }
    if (has & VR_HAS_HISTORY) put_tenants(writer, extras, row);
    if (has & VR_HAS_FRAMES) put_stack(writer, extras, VR_WORD_FRAMES, blocks->stack[row]);
    put_extras(writer, extras);
    writer->emitter.calls->end(&writer->emitter);
}

static void put_blocks(struct dict_writer *writer, struct extras extras, size_t row) {
    const struct vr_segments *segments = &writer->model->segments;
    if (!begin_key(writer, extras, VR_WORD_BLOCKS)) return;
    writer->emitter.calls->begin(&writer->emitter, false);
    for (uint64_t block = segments->first_block[row]; block < segments->first_block[row + 1]; block++) put_block(writer, (size_t)block);
    writer->emitter.calls->end(&writer->emitter);
}

static void put_segment_dict(struct dict_writer *writer, size_t row) {
    const struct vr_segments *segments = &writer->model->segments;
    const uint32_t has = segments->has[row], device = vr_model_is_host(writer->model, segments->device[row]) ? 0 : segments->device[row];
    struct extras extras = extras_of(writer, VR_OWNER_SEGMENT, 0, row);
    writer->emitter.calls->begin(&writer->emitter, true);
    if (has & VR_HAS_DEVICE) put_number_key(writer, extras, VR_WORD_DEVICE, device);
    if (has & VR_HAS_ADDRESS) put_number_key(writer, extras, VR_WORD_ADDRESS, segments->address[row]);
    if (has & VR_HAS_TOTAL_SIZE) put_number_key(writer, extras, VR_WORD_TOTAL_SIZE, segments->total_bytes[row]);
    if (has & VR_HAS_ALLOCATED_SIZE) put_number_key(writer, extras, VR_WORD_ALLOCATED_SIZE, segments->allocated_bytes[row]);
    if (has & VR_HAS_ACTIVE_SIZE) put_number_key(writer, extras, VR_WORD_ACTIVE_SIZE, segments->active_bytes[row]);
    if (has & VR_HAS_REQUESTED_SIZE) put_number_key(writer, extras, VR_WORD_REQUESTED_SIZE, segments->requested_bytes[row]);
    if (has & VR_HAS_STREAM) put_signed(writer, extras, VR_WORD_STREAM, (int64_t)segments->stream[row]);
    if (has & VR_HAS_SEGMENT_TYPE) {
        put_name_key(writer, extras, VR_WORD_SEGMENT_TYPE, segments->kind[row] == VR_KIND_SMALL ? VR_WORD_SMALL : VR_WORD_LARGE);
    }
    if (has & VR_HAS_POOL_ID) {
        put_pool(writer, extras, VR_WORD_SEGMENT_POOL_ID, segments->pool_first[row], segments->pool_second[row], has & VR_HAS_POOL_LIST);
    }
    if ((has & VR_HAS_EXPANDABLE) && begin_key(writer, extras, VR_WORD_IS_EXPANDABLE)) {
        writer->emitter.calls->boolean(&writer->emitter, segments->expandable[row] != 0);
    }
    if (has & VR_HAS_COUNTER) put_number_key(writer, extras, VR_WORD_REGISTRATION_COUNTER, segments->counter[row]);
    if (has & VR_HAS_FRAMES) put_stack(writer, extras, VR_WORD_FRAMES, segments->stack[row]);
    if (has & VR_HAS_BLOCKS) put_blocks(writer, extras, row);
    put_extras(writer, extras);
    writer->emitter.calls->end(&writer->emitter);
}

static void put_event_dict(struct dict_writer *writer, size_t device, size_t row) {
    const struct vr_history *history = &writer->model->histories[device];
    const uint32_t has = vr_entry_has(history, row);
    struct extras extras = extras_of(writer, VR_OWNER_EVENT, device, row);
    writer->emitter.calls->begin(&writer->emitter, true);
    if (has & VR_HAS_ACTION) {
        bool known = history->action[row] != VR_ACTION_UNKNOWN;
        put_name_key(writer, extras, VR_WORD_ACTION,
                     known ? (uint64_t)VR_WORD_FIRST_ACTION + history->action[row] : string_name(history->unknown[row]));
    }
    if (has & VR_HAS_ADDRESS) put_number_key(writer, extras, VR_WORD_ADDR, history->address[row]);
    if (has & VR_HAS_DEVICE_FREE) put_number_key(writer, extras, VR_WORD_DEVICE_FREE, history->address[row]);
    if (has & VR_HAS_SIZE) put_number_key(writer, extras, VR_WORD_SIZE, history->size_bytes[row]);
    if (has & VR_HAS_STREAM) put_signed(writer, extras, VR_WORD_STREAM, (int64_t)vr_entry_stream(history, row));
    if (has & VR_HAS_TIME) put_signed(writer, extras, VR_WORD_TIME_US, history->time_us[row]);
    if (has & VR_HAS_COMPILE_CONTEXT) put_name_key(writer, extras, VR_WORD_COMPILE_CONTEXT, string_name(history->context[row]));
    if (has & VR_HAS_USER_METADATA) put_name_key(writer, extras, VR_WORD_USER_METADATA, string_name(history->metadata[row]));
    if (has & VR_HAS_POOL_ID) {
        put_pool(writer, extras, VR_WORD_POOL_ID, history->pool_first[row], history->pool_second[row], has & VR_HAS_POOL_LIST);
    }
    if (has & VR_HAS_CATEGORY) put_name_key(writer, extras, VR_WORD_CATEGORY, string_name(history->tag[row]));
    if (has & VR_HAS_THREAD) put_number_key(writer, extras, VR_WORD_THREAD, history->thread[row]);
#define PUT_FIRST(...)
#define PUT_LATER(column, KEY, put, value)                                                                                                 \
    if (has & VR_HAS_##KEY) put(writer, extras, VR_WORD_##KEY, value(history->column[row]));
#define VR_FIELD(...)
#define VR_NUMBER(column, type, density, number, LOG, since, KEY) PUT_##since(column, KEY, put_number_key, )
#define VR_TEXT(column, type, density, number, LOG, since, KEY)   PUT_##since(column, KEY, put_name_key, string_name)
#include "model/entry_fields.def"
    if (has & VR_HAS_FRAMES) put_stack(writer, extras, VR_WORD_FRAMES, history->stack[row]);
    put_extras(writer, extras);
    writer->emitter.calls->end(&writer->emitter);
}

static void put_annotation(struct dict_writer *writer, size_t row) {
    const struct vr_annotation *annotation = &writer->model->annotations[row];
    struct extras extras = extras_of(writer, VR_OWNER_ANNOTATION, 0, row);
    writer->emitter.calls->begin(&writer->emitter, true);
    put_name_key(writer, extras, VR_WORD_STAGE, string_name(annotation->stage));
    put_name_key(writer, extras, VR_WORD_NAME, string_name(annotation->name));
    put_signed(writer, extras, VR_WORD_DEVICE, annotation->device);
    put_signed(writer, extras, VR_WORD_TIME_US, annotation->time_us);
    put_extras(writer, extras);
    writer->emitter.calls->end(&writer->emitter);
}

// ---- the top level

static void put_segments_of(struct dict_writer *writer, bool host) {
    const struct vr_model *model = writer->model;
    writer->emitter.calls->begin(&writer->emitter, false);
    writer->next_tenant = 0;
    for (size_t i = 0; i < model->segments.count && writer->emitter.status == VRAM_OK; i++) {
        if (vr_model_is_host(model, model->segments.device[i]) == host) put_segment_dict(writer, i);
    }
    writer->emitter.calls->end(&writer->emitter);
}

static void put_segment_list(struct dict_writer *writer) { put_segments_of(writer, false); }
static void put_host_segments(struct dict_writer *writer) { put_segments_of(writer, true); }

static void put_history(struct dict_writer *writer, size_t device) {
    writer->emitter.calls->begin(&writer->emitter, false);
    for (size_t i = 0; i < writer->model->histories[device].count && writer->emitter.status == VRAM_OK; i++)
        put_event_dict(writer, device, i);
    writer->emitter.calls->end(&writer->emitter);
}

static void put_traces(struct dict_writer *writer) {
    writer->emitter.calls->begin(&writer->emitter, false);
    for (size_t i = 0; i + writer->model->host_count < writer->model->history_count; i++) put_history(writer, i);
    writer->emitter.calls->end(&writer->emitter);
}

static void put_host_traces(struct dict_writer *writer) {
    const struct vr_model *model = writer->model;
    bool is_nested = find_extra(writer, writer->of_owner[VR_OWNER_TOP], vr_word_text(VR_WORD_VRAM_HOST_NESTED)) != NULL;
    if (is_nested) writer->emitter.calls->begin(&writer->emitter, false);
    if (model->host_count != 0) {
        put_history(writer, model->history_count - 1);
    } else {
        writer->emitter.calls->begin(&writer->emitter, false);
        writer->emitter.calls->end(&writer->emitter);
    }
    if (is_nested) writer->emitter.calls->end(&writer->emitter);
}

static bool has_top_key(const struct vr_model *model, const char *key) {
    for (size_t i = 0; i < model->top_level_key_count; i++) {
        if (strcmp(vr_model_string(model, model->top_level_keys[i]), key) == 0) return true;
    }
    return false;
}

// Returns whether the setting was a top-level key: the top level has the key, but no extra with its value.
static bool is_top_level_setting(const struct dict_writer *writer, const char *key) {
    return has_top_key(writer->model, key) && find_extra(writer, writer->of_owner[VR_OWNER_TOP], key) == NULL;
}

static void put_settings(struct dict_writer *writer) {
    const struct vr_model *model = writer->model;
    writer->emitter.calls->begin(&writer->emitter, true);
    for (size_t i = 0; i < model->setting_count; i++) {
        if (is_top_level_setting(writer, vr_model_string(model, model->settings[i].key))) continue;
        writer->emitter.calls->key(&writer->emitter, string_name(model->settings[i].key));
        put_extra_text(writer, model->settings[i].key, model->settings[i].value);
    }
    writer->emitter.calls->end(&writer->emitter);
}

static void put_annotations(struct dict_writer *writer) {
    writer->emitter.calls->begin(&writer->emitter, false);
    for (size_t i = 0; i < writer->model->annotation_count; i++) put_annotation(writer, i);
    writer->emitter.calls->end(&writer->emitter);
}

static void put_modules(struct dict_writer *writer) {
    const struct extras none = {0, 0};
    writer->emitter.calls->begin(&writer->emitter, false);
    for (size_t i = 0; i < writer->model->module_count; i++) {
        writer->emitter.calls->begin(&writer->emitter, true);
        put_name_key(writer, none, VR_WORD_PATH, string_name(writer->model->modules[i].path));
        put_name_key(writer, none, VR_WORD_BUILD_ID, string_name(writer->model->modules[i].build_id));
        hand_on(writer);
        writer->emitter.calls->end(&writer->emitter);
    }
    writer->emitter.calls->end(&writer->emitter);
}

static void put_top_level_setting(struct dict_writer *writer, enum vr_word key) {
    const char *value = vr_model_setting(writer->model, vr_word_text(key));
    if (value == NULL)
        writer->emitter.calls->null(&writer->emitter);
    else
        vr_emit_text(&writer->emitter, value, strlen(value));
}

static void put_max_entries(struct dict_writer *writer) { put_top_level_setting(writer, VR_WORD_TRACE_ALLOC_MAX_ENTRIES); }
static void put_overflowed(struct dict_writer *writer) { put_top_level_setting(writer, VR_WORD_TRACE_ALLOC_OVERFLOWED); }

static bool always_written(const struct vr_model *model) { return model != NULL; }
static bool has_host(const struct vr_model *model) { return model->host_count != 0; }
static bool has_modules(const struct vr_model *model) { return model->module_count != 0; }

// The top-level keys with tables in the model, in PyTorch's order. `wanted` says whether to write the key if the model does not list the
// file's keys.
static const struct {
    enum vr_word key;
    void (*put)(struct dict_writer *writer);
    bool (*wanted)(const struct vr_model *model);
} parts[] = {
    {VR_WORD_SEGMENTS, put_segment_list, always_written},       {VR_WORD_DEVICE_TRACES, put_traces, always_written},
    {VR_WORD_ALLOCATOR_SETTINGS, put_settings, always_written}, {VR_WORD_EXTERNAL_ANNOTATIONS, put_annotations, always_written},
    {VR_WORD_HOST_SEGMENTS, put_host_segments, has_host},       {VR_WORD_HOST_TRACES, put_host_traces, has_host},
    {VR_WORD_VRAM_MODULES, put_modules, has_modules},           {VR_WORD_TRACE_ALLOC_MAX_ENTRIES, put_max_entries, NULL},
    {VR_WORD_TRACE_ALLOC_OVERFLOWED, put_overflowed, NULL},
};

static void put_part(struct dict_writer *writer, uint32_t key) {
    const char *text = vr_model_string(writer->model, key);
    const struct vr_extra *extra = find_extra(writer, writer->of_owner[VR_OWNER_TOP], text);
    if (extra != NULL && extra->value == 0) return;
    writer->emitter.calls->key(&writer->emitter, string_name(key));
    if (extra != NULL) {
        put_extra_text(writer, extra->key, extra->value);
        return;
    }
    for (size_t i = 0; i < VR_COUNT_OF(parts); i++) {
        if (strcmp(text, vr_word_text(parts[i].key)) != 0) continue;
        parts[i].put(writer);
        return;
    }
    writer->emitter.calls->null(&writer->emitter);
}

static void put_dict(struct dict_writer *writer) {
    const struct vr_model *model = writer->model;
    const struct extras none = {0, 0};
    writer->emitter.calls->begin(&writer->emitter, true);
    for (size_t i = 0; i < model->top_level_key_count; i++) put_part(writer, model->top_level_keys[i]);
    for (size_t i = 0; i < VR_COUNT_OF(parts) && model->top_level_key_count == 0; i++) {
        if (parts[i].wanted == NULL || !parts[i].wanted(model) || !begin_key(writer, none, parts[i].key)) continue;
        parts[i].put(writer);
    }
    if (writer->pool_lists && writer->emitter.calls == &vr_emit_json && begin_key(writer, none, VR_WORD_VRAM_POOL_ID_LISTS)) {
        writer->emitter.calls->boolean(&writer->emitter, true);
    }
    writer->emitter.calls->end(&writer->emitter);
}

// Reports, in one line, the first value that was written as another.
static void name_change(const struct dict_writer *writer, struct vram_error *error) {
    static const char *const words[] = {[VR_PYTHON_KIND_TUPLE] = "tuples; `%.100s` is written as a list",
                                        [VR_PYTHON_KIND_SET] = "sets; `%.100s` is written as a list",
                                        [VR_PYTHON_KIND_FROZENSET] = "sets; `%.100s` is written as a list",
                                        [VR_PYTHON_KIND_DICT] = "keys other than strings; those of `%.100s` are written as strings",
                                        [VR_PYTHON_KIND_FLOAT] = "infinity or NaN; `%.100s` is written as null",
                                        [VR_PYTHON_KIND_BYTES] = "bytes; `%.100s` is written as hexadecimal digits",
                                        [VR_PYTHON_KIND_BYTEARRAY] = "bytes; `%.100s` is written as hexadecimal digits"};
    if (writer->emitter.change == VR_PYTHON_NONE || error == NULL) return;
    char line[160];
    (void)snprintf(line, sizeof line, words[writer->emitter.change], vr_model_string(writer->model, writer->changed_key));
    (void)vr_fail(error, VRAM_OK, VRAM_NO_OFFSET, "JSON has no %s", line);
}

static enum vram_status write_emitted(const struct vr_model *model, const struct vr_emit_calls *calls, bool rows, vram_write write,
                                      void *user, struct vram_error *error) {
    struct dict_writer *writer = calloc(1, sizeof *writer);
    if (writer == NULL) return VRAM_NO_HOST_MEMORY;
    writer->model = model;
    find_owners(writer);
    enum vram_status status = vr_emitter_init(&writer->emitter, calls, model, rows, write, user);
    if (status == VRAM_OK) {
        if (model->form == VR_FORM_DICT)
            put_dict(writer);
        else
            put_segment_list(writer);
        status = vr_emitter_finish(&writer->emitter);
    }
    if (status == VRAM_OK) name_change(writer, error);
    free(writer);
    return status;
}

// Refuses to write a model that does not have all of its file, because the output would silently differ.
static enum vram_status refuse_loss(const struct vr_model *model, struct vram_error *error) {
    static const char *const named[] = {
        [VR_LOSS_TOO_MUCH] = "the value of `%.100s` was not read, because it is too large for the size of the file",
        [VR_LOSS_NOT_A_LIST] = "`%.100s` is a tuple or a set, but would be written as a list",
        [VR_LOSS_NUMBER] = "`%.100s` has numbers that are not integers, but they would be written as integers"};
    static const char *const nameless[] = {
        [VR_LOSS_TOO_MUCH] = "a part of the file was not read, because it is too large for the size of the file",
        [VR_LOSS_NOT_A_LIST] = "a tuple or a set is in the place of a list, but would be written as a list",
        [VR_LOSS_KEY] = "a key that is not a string was not read and would be lost",
        [VR_LOSS_FRAME] =
            "frames with the same name, file and line differ in other keys; only the first were read, and the others would be lost"};
    const bool has_name = model->lost_key != 0 && (size_t)model->loss < VR_COUNT_OF(named) && named[model->loss] != NULL;
    return vr_fail(error, model->loss == VR_LOSS_TOO_MUCH ? VRAM_LIMIT : VRAM_BAD_INPUT, VRAM_NO_OFFSET,
                   has_name ? named[model->loss] : nameless[model->loss], vr_model_string(model, model->lost_key));
}

enum vram_status vr_model_write(const struct vr_model *model, enum vram_recording_format format, vram_write write, void *user,
                                struct vram_error *error) {
    assert(model->strings.count != 0 && model->stacks.count != 0); // id 0 of both exists
    enum vram_status status;
    if (model->loss != VR_LOSS_NONE) return refuse_loss(model, error);
    switch (format) {
    case VRAM_FORMAT_PICKLE: status = write_emitted(model, &vr_emit_pickle, false, write, user, error); break;
    case VRAM_FORMAT_JSON:
    case VRAM_FORMAT_JSON_ROWS: status = write_emitted(model, &vr_emit_json, format == VRAM_FORMAT_JSON_ROWS, write, user, error); break;
    case VRAM_FORMAT_VRAM: return vr_log_write_model(model, write, user, error);
    default: return vr_fail(error, VRAM_INVALID_ARGUMENT, VRAM_NO_OFFSET, "unknown format %d", (int)format);
    }
    if (status == VRAM_OK) return VRAM_OK;
    return vr_fail(error, status, VRAM_NO_OFFSET, "%s", status == VRAM_IO ? "cannot write the output" : vram_status_text(status));
}

enum vram_status vram_recording_write(const struct vram_recording *recording, enum vram_recording_format format, vram_write write,
                                      void *user, struct vram_error *error) {
    if (recording == NULL || write == NULL) {
        return vr_fail(error, VRAM_INVALID_ARGUMENT, VRAM_NO_OFFSET, "recording and write must not be NULL");
    }
    return vr_model_write(vr_recording_model(recording), format, write, user, error);
}
