#include "snapshot/finish.h"

#include "snapshot/schema.h"

enum { MAX_DEVICES = 4096 };

// Rows of a table in the order of a list: values of one tag, neighbours merged.
struct runs {
    uint64_t *items;
    size_t count;
    size_t capacity;
    size_t rows;
};

static void release_runs(struct runs *runs) { free(runs->items); }

static enum vram_status add_run(struct vr_machine *machine, struct runs *runs, uint64_t value) {
    runs->rows += (size_t)vr_row_count(value);
    uint64_t *last = runs->count == 0 ? NULL : &runs->items[runs->count - 1];
    if (last != NULL && vr_first_row(*last) + vr_row_count(*last) == vr_first_row(value) &&
        vr_row_count(*last) + vr_row_count(value) <= (uint64_t)1 << VR_RUN_BITS) {
        *last += vr_row_count(value) << VR_ROW_BITS;
        return VRAM_OK;
    }
    void *items = runs->items;
    enum vram_status status = vr_budget_grow(&machine->builder.budget, &items, &runs->capacity, runs->count + 1, sizeof value);
    runs->items = items;
    VR_TRY(status);
    runs->items[runs->count++] = value;
    return VRAM_OK;
}

// Whether the runs are all rows of the table in their order.
static bool is_whole_table(const struct runs *runs, size_t row_count) {
    uint64_t next = 0;
    for (size_t i = 0; i < runs->count; i++) {
        if (vr_first_row(runs->items[i]) != next) return false;
        next += vr_row_count(runs->items[i]);
    }
    return next == row_count;
}

static bool is_absent(uint64_t resolved) { return resolved == 0 || vr_tag_of(resolved) == VR_TAG_NONE; }

static enum vram_status not_a_list(struct vr_machine *machine, const char *key, uint64_t resolved) {
    return VR_MACHINE_FAIL(machine, VRAM_BAD_INPUT, "`%s` is %s, not a list", key, vr_tag_text(vr_tag_of(resolved)));
}

// Adds the rows of kind `kind` that the list `value` consists of. None and an absent value are empty lists. What must be a segment or an
// event has to look like one, or else any JSON would be a recording; blocks and annotations are what stands in their place.
static enum vram_status collect(struct vr_machine *machine, const char *key, uint64_t value, enum vr_tag kind, struct runs *runs) {
    uint64_t resolved = vr_machine_resolve(machine, value);
    if (is_absent(resolved) || vr_tag_of(resolved) == VR_TAG_NO_ITEMS) return VRAM_OK;
    if (vr_tag_of(resolved) != VR_TAG_LIST) return not_a_list(machine, key, resolved);
    struct vr_node *node = &machine->nodes[vr_payload(resolved)];
    node->busy = true;
    enum vr_tag forced = kind == VR_TAG_SEGMENT || kind == VR_TAG_EVENT ? VR_TAG_DICT : kind;
    for (size_t i = 0; i < node->count; i++) {
        VR_TRY(vr_machine_recognise(machine, forced, &node->items[i]));
        uint64_t row = vr_machine_resolve(machine, node->items[i]);
        if (vr_tag_of(row) != kind) {
            return VR_MACHINE_FAIL(machine, VRAM_BAD_INPUT, "element %zu of `%s` is %s, not %s", i, key, vr_tag_text(vr_tag_of(row)),
                                   vr_tag_text(kind));
        }
        VR_TRY(add_run(machine, runs, row));
    }
    node->busy = false;
    return VRAM_OK;
}

// ---- tables

static enum vram_status gather_column(const struct vr_columns *columns, size_t index, const void *from, const struct runs *runs, void *to) {
    size_t item_bytes = columns->column[index].item_bytes;
    const char *source = vr_column_pointer(columns, from, index);
    // Zeroed, for sparse columns without a value: pages that no one writes cost no memory.
    char *gathered = source == NULL ? calloc(runs->rows + 1, item_bytes) : malloc((runs->rows + 1) * item_bytes), *next = gathered;
    if (gathered == NULL) return VRAM_NO_HOST_MEMORY;
    for (size_t i = 0; i < runs->count && source != NULL; i++) {
        size_t bytes = (size_t)vr_row_count(runs->items[i]) * item_bytes;
        memcpy(next, source + (size_t)vr_first_row(runs->items[i]) * item_bytes, bytes);
        next += bytes;
    }
    vr_column_set(columns, to, index, gathered);
    return VRAM_OK;
}

// Distributes the rows of *from to `count` tables, each to_stride bytes after the other; *from is left without columns. A table that is
// wanted as it is moves. Column by column, so that never more than one column is held twice.
static enum vram_status distribute(struct vr_machine *machine, const struct vr_columns *columns, void *from, size_t row_count,
                                   const struct runs *runs, char *to, size_t to_stride, size_t count) {
    size_t rows = 0, only = SIZE_MAX;
    for (size_t i = 0; i < count; i++) {
        rows += runs[i].rows;
        if (is_whole_table(&runs[i], row_count)) only = i;
    }
    bool moves = only != SIZE_MAX && rows == row_count;
    if (!moves) VR_TRY(vr_budget_charge(&machine->builder.budget, rows > row_count ? rows - row_count : 0, columns->row_bytes));
    for (size_t column = 0; column < columns->count; column++) {
        for (size_t i = 0; i < count; i++) {
            void *whole = moves && i == only ? vr_column_pointer(columns, from, column) : NULL;
            if (whole != NULL)
                vr_column_set(columns, to + i * to_stride, column, whole);
            else
                VR_TRY(gather_column(columns, column, from, &runs[i], to + i * to_stride));
        }
        if (!moves) free(vr_column_pointer(columns, from, column));
        vr_column_set(columns, from, column, NULL);
    }
    if (moves) vr_columns_trim(columns, to + only * to_stride, row_count);
    return VRAM_OK;
}

// What the parts of a recording are, as lists of rows.
struct parts {
    struct runs segments;
    struct runs blocks;
    struct runs annotations;
    struct runs *devices;
    size_t device_count;
};

static void release_parts(struct parts *parts) {
    release_runs(&parts->segments);
    release_runs(&parts->blocks);
    release_runs(&parts->annotations);
    for (size_t i = 0; i < parts->device_count; i++) release_runs(&parts->devices[i]);
    free(parts->devices);
}

static enum vram_status collect_devices(struct vr_machine *machine, uint64_t value, struct parts *parts) {
    const uint64_t *items;
    size_t count;
    uint64_t resolved = vr_machine_resolve(machine, value);
    if (is_absent(resolved)) return VRAM_OK;
    if (!vr_machine_items(machine, resolved, &items, &count)) return not_a_list(machine, "device_traces", resolved);
    if (count > MAX_DEVICES) return VR_MACHINE_FAIL(machine, VRAM_BAD_INPUT, "`device_traces` lists %zu devices", count);
    parts->devices = calloc(count + 1, sizeof *parts->devices);
    if (parts->devices == NULL) return VRAM_NO_HOST_MEMORY;
    parts->device_count = count;
    struct vr_node *node = count == 0 ? NULL : &machine->nodes[vr_payload(resolved)];
    if (node != NULL) node->busy = true;
    for (size_t i = 0; i < count; i++) VR_TRY(collect(machine, "device_traces", node->items[i], VR_TAG_EVENT, &parts->devices[i]));
    if (node != NULL) node->busy = false;
    return VRAM_OK;
}

// Of every segment in order: where its blocks begin.
static enum vram_status collect_blocks(struct vr_machine *machine, struct parts *parts, struct vr_model *model) {
    size_t done = 0;
    VR_TRY(vr_budget_charge(&machine->builder.budget, parts->segments.rows + 1, sizeof *model->segments.first_block));
    model->segments.first_block = malloc((parts->segments.rows + 1) * sizeof *model->segments.first_block);
    if (model->segments.first_block == NULL) return VRAM_NO_HOST_MEMORY;
    model->segments.first_block[0] = 0;
    for (size_t i = 0; i < parts->segments.count; i++) {
        uint64_t run = parts->segments.items[i];
        for (uint64_t row = vr_first_row(run); row < vr_first_row(run) + vr_row_count(run); row++) {
            VR_TRY(collect(machine, "blocks", machine->segment_blocks[row], VR_TAG_BLOCK, &parts->blocks));
            model->segments.first_block[++done] = parts->blocks.rows;
        }
    }
    return VRAM_OK;
}

static enum vram_status gather_annotations(const struct vr_machine *machine, const struct runs *runs, struct vr_model *model) {
    if (runs->rows == 0) return VRAM_OK;
    model->annotations = malloc(runs->rows * sizeof *model->annotations);
    if (model->annotations == NULL) return VRAM_NO_HOST_MEMORY;
    for (size_t i = 0; i < runs->count; i++) {
        size_t count = (size_t)vr_row_count(runs->items[i]);
        memcpy(model->annotations + model->annotation_count, machine->annotations + vr_first_row(runs->items[i]),
               count * sizeof *model->annotations);
        model->annotation_count += count;
    }
    return VRAM_OK;
}

// Old files have no block addresses: a block begins where the one before it ends (R2 of the data's rules).
static void fill_addresses(struct vr_model *model) {
    for (size_t i = 0; i < model->segments.count; i++) {
        uint64_t next = model->segments.address[i];
        for (uint64_t block = model->segments.first_block[i]; block < model->segments.first_block[i + 1]; block++) {
            if (!(model->blocks.has[block] & VR_HAS_ADDRESS)) model->blocks.address[block] = next;
            next = model->blocks.address[block] + model->blocks.size_bytes[block];
        }
    }
}

// Frees what only reading needed. Rows and annotations stay.
static void release_scratch(struct vr_machine *machine) {
    size_t words = machine->stack_capacity + machine->mark_capacity + machine->memo_capacity + machine->wide_capacity;
    machine->builder.budget.used_bytes -= (uint64_t)words * sizeof(uint64_t);
    free(machine->stack);
    free(machine->marks);
    free(machine->memo);
    free(machine->wide);
    machine->stack = machine->memo = machine->wide = NULL;
    machine->marks = NULL;
    machine->depth = machine->mark_count = machine->memo_size = machine->wide_count = 0;
}

static enum vram_status build_tables(struct vr_machine *machine, struct parts *parts, struct vr_model *model) {
    size_t device_count = parts->device_count;
    model->histories = calloc(device_count + 1, sizeof *model->histories);
    if (model->histories == NULL) return VRAM_NO_HOST_MEMORY;
    model->history_count = device_count;
    VR_TRY(gather_annotations(machine, &parts->annotations, model));
    VR_TRY(distribute(machine, &vr_history_columns, &machine->events, machine->events.count, parts->devices, (char *)model->histories,
                      sizeof *model->histories, device_count));
    for (size_t i = 0; i < device_count; i++) model->histories[i].count = parts->devices[i].rows;
    VR_TRY(distribute(machine, &vr_segment_columns, &machine->segments, machine->segments.count, &parts->segments, (char *)&model->segments,
                      sizeof model->segments, 1));
    model->segments.count = parts->segments.rows;
    VR_TRY(distribute(machine, &vr_block_columns, &machine->blocks, machine->blocks.count, &parts->blocks, (char *)&model->blocks,
                      sizeof model->blocks, 1));
    model->blocks.count = parts->blocks.rows;
    fill_addresses(model);
    return VRAM_OK;
}

// ---- the top level

// The dictionary's string keys, each once, in the order of their first appearance, with their last values.
static enum vram_status last_values(struct vr_machine *machine, uint64_t resolved, uint64_t **unique, size_t *unique_count) {
    const uint64_t *pairs = NULL;
    size_t count = 0, used = 0, string_count = machine->builder.strings.count;
    (void)vr_machine_pairs(machine, resolved, &pairs, &count);
    uint64_t *made = malloc((2 * count + 1) * sizeof *made);
    uint32_t *place_of = calloc(string_count, sizeof *place_of);
    if (made == NULL || place_of == NULL) {
        free(made);
        free(place_of);
        return VRAM_NO_HOST_MEMORY;
    }
    for (size_t i = 0; i < count; i++) {
        if (vr_tag_of(pairs[2 * i]) != VR_TAG_STRING) continue;
        uint32_t *place = &place_of[vr_payload(pairs[2 * i])];
        if (*place == 0) *place = (uint32_t)++used;
        made[2 * (*place - 1)] = pairs[2 * i];
        made[2 * (*place - 1) + 1] = pairs[2 * i + 1];
    }
    free(place_of);
    *unique = made;
    *unique_count = used;
    return VRAM_OK;
}

static enum vram_status add_setting(struct vr_machine *machine, struct vr_model *model, size_t *capacity, uint64_t key, uint64_t value) {
    void *settings = model->settings;
    enum vram_status status =
        vr_budget_grow(&machine->builder.budget, &settings, capacity, model->setting_count + 1, sizeof *model->settings);
    model->settings = settings;
    VR_TRY(status);
    uint32_t text;
    VR_TRY(vr_schema_json(machine, value, &text));
    model->settings[model->setting_count++] = (struct vr_setting){(uint32_t)vr_payload(key), text};
    return VRAM_OK;
}

static bool has_setting(const struct vr_model *model, uint64_t key) {
    for (size_t i = 0; i < model->setting_count; i++) {
        if (model->settings[i].key == vr_payload(key)) return true;
    }
    return false;
}

// The value of a top-level key, or UNSET.
static uint64_t value_of(const uint64_t *pairs, size_t count, enum vr_word word) {
    for (size_t i = 0; i < count; i++) {
        if (pairs[2 * i] == vr_value(VR_TAG_STRING, word)) return pairs[2 * i + 1];
    }
    return 0;
}

// allocator_settings, and the two keys that some versions may keep beside it.
static enum vram_status read_settings(struct vr_machine *machine, const uint64_t *top, size_t top_count, struct vr_model *model) {
    static const enum vr_word beside[] = {VR_WORD_TRACE_ALLOC_MAX_ENTRIES, VR_WORD_TRACE_ALLOC_OVERFLOWED};
    uint64_t *settings = NULL;
    size_t count = 0, capacity = 0;
    uint64_t resolved = vr_machine_resolve(machine, value_of(top, top_count, VR_WORD_ALLOCATOR_SETTINGS));
    VR_TRY(last_values(machine, resolved, &settings, &count));
    enum vram_status status = VRAM_OK;
    for (size_t i = 0; i < count && status == VRAM_OK; i++) {
        status = add_setting(machine, model, &capacity, settings[2 * i], settings[2 * i + 1]);
    }
    free(settings);
    for (size_t i = 0; i < VR_COUNT_OF(beside) && status == VRAM_OK; i++) {
        uint64_t key = vr_value(VR_TAG_STRING, beside[i]), value = value_of(top, top_count, beside[i]);
        if (value != 0 && !has_setting(model, key)) status = add_setting(machine, model, &capacity, key, value);
    }
    return status;
}

static enum vram_status collect_dict(struct vr_machine *machine, const uint64_t *top, size_t count, struct parts *parts,
                                     struct vr_model *model) {
    model->form = VR_FORM_DICT;
    model->top_level_keys = malloc((count + 1) * sizeof *model->top_level_keys);
    if (model->top_level_keys == NULL) return VRAM_NO_HOST_MEMORY;
    for (size_t i = 0; i < count; i++) model->top_level_keys[i] = (uint32_t)vr_payload(top[2 * i]);
    model->top_level_key_count = count;
    uint64_t segments = value_of(top, count, VR_WORD_SEGMENTS), traces = value_of(top, count, VR_WORD_DEVICE_TRACES);
    if (segments == 0 && traces == 0) {
        return VR_MACHINE_FAIL(machine, VRAM_BAD_INPUT, "not a recording: the dictionary has neither `segments` nor `device_traces`");
    }
    VR_TRY(collect(machine, "segments", segments, VR_TAG_SEGMENT, &parts->segments));
    VR_TRY(collect_devices(machine, traces, parts));
    VR_TRY(collect(machine, "external_annotations", value_of(top, count, VR_WORD_EXTERNAL_ANNOTATIONS), VR_TAG_ANNOTATION,
                   &parts->annotations));
    return read_settings(machine, top, count, model);
}

static enum vram_status collect_all(struct vr_machine *machine, struct parts *parts, struct vr_model *model) {
    const uint64_t *items;
    size_t count;
    uint64_t top = machine->stack[machine->depth - 1], resolved = vr_machine_resolve(machine, top);
    if (vr_machine_pairs(machine, resolved, &items, &count)) {
        uint64_t *unique = NULL;
        VR_TRY(last_values(machine, resolved, &unique, &count));
        enum vram_status status = collect_dict(machine, unique, count, parts, model);
        free(unique);
        VR_TRY(status);
    } else if (vr_machine_items(machine, resolved, &items, &count)) {
        model->form = VR_FORM_SEGMENT_LIST;
        VR_TRY(collect(machine, "segments", top, VR_TAG_SEGMENT, &parts->segments));
    } else {
        return VR_MACHINE_FAIL(machine, VRAM_BAD_INPUT, "not a recording: it holds %s", vr_tag_text(vr_tag_of(resolved)));
    }
    return collect_blocks(machine, parts, model);
}

enum vram_status vr_finish(struct vr_machine *machine, struct vr_model *model) {
    struct parts parts = {0};
    memset(model, 0, sizeof *model);
    enum vram_status status = collect_all(machine, &parts, model);
    if (status == VRAM_OK) {
        release_scratch(machine);
        status = build_tables(machine, &parts, model);
    }
    release_parts(&parts);
    if (status != VRAM_OK) {
        vr_model_release(model);
        return status;
    }
    vr_builder_finish(&machine->builder, model);
    return VRAM_OK;
}
