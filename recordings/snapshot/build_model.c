// Builds a model from the values of a machine.
#include "snapshot/formats.h"
#include "snapshot/schema.h"

enum { MAX_DEVICES = 4096 };

// Rows of a table in list order: values of one tag, with adjacent rows merged.
struct runs {
    uint64_t *items;
    size_t count;
    size_t capacity;
    size_t rows;
};

static void release_runs(struct runs *runs) { free(runs->items); }

static enum vram_status add_row_run(struct vr_machine *machine, struct runs *runs, uint64_t value) {
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

static enum vram_status add_runs(struct vr_machine *machine, struct runs *runs, const struct runs *more) {
    for (size_t i = 0; i < more->count; i++) VR_TRY(add_row_run(machine, runs, more->items[i]));
    return VRAM_OK;
}

// Returns whether the runs are all rows of the table in their order.
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

// Adds the rows of kind `kind` in the list `value`. None and an absent value are empty lists. An element counts as a segment or an event
// only if it looks like one, because otherwise any JSON would be a recording; blocks and annotations are taken from their position.
static enum vram_status collect_rows(struct vr_machine *machine, const char *key, uint64_t value, enum vr_tag kind, struct runs *runs) {
    uint64_t resolved = vr_machine_resolve(machine, value);
    vr_machine_note_items(machine, key, resolved);
    if (is_absent(resolved) || vr_tag_of(resolved) == VR_TAG_NO_ITEMS) return VRAM_OK;
    if (vr_tag_of(resolved) != VR_TAG_LIST) return not_a_list(machine, key, resolved);
    struct vr_node *node = &machine->nodes[vr_payload(resolved)];
    node->busy = true;
    enum vr_tag forced = kind == VR_TAG_SEGMENT || kind == VR_TAG_EVENT ? VR_TAG_DICT : kind;
    for (size_t i = 0; i < node->count; i++) {
        VR_TRY(vr_schema_recognise(machine, forced, &node->items[i]));
        uint64_t row = vr_machine_resolve(machine, node->items[i]);
        if (vr_tag_of(row) != kind) {
            return VR_MACHINE_FAIL(machine, VRAM_BAD_INPUT, "element %zu of `%s` is %s, not %s", i, key, vr_tag_text(vr_tag_of(row)),
                                   vr_tag_text(kind));
        }
        VR_TRY(add_row_run(machine, runs, row));
    }
    node->busy = false;
    return VRAM_OK;
}

// ---- tables

static enum vram_status gather_column(const struct vr_columns *columns, size_t index, const void *from, const struct runs *runs, void *to) {
    size_t item_bytes = columns->column[index].item_bytes;
    const char *input = vr_column_pointer(columns, from, index);
    if (input == NULL) return VRAM_OK;
    char *gathered = malloc((runs->rows + 1) * item_bytes), *next = gathered;
    if (gathered == NULL) return VRAM_NO_HOST_MEMORY;
    for (size_t i = 0; i < runs->count; i++) {
        size_t bytes = (size_t)vr_row_count(runs->items[i]) * item_bytes;
        memcpy(next, input + (size_t)vr_first_row(runs->items[i]) * item_bytes, bytes);
        next += bytes;
    }
    vr_column_set(columns, to, index, gathered);
    return VRAM_OK;
}

// Rows of one table to distribute to `count` tables, which are to_stride bytes apart; runs[i] are the rows of table i.
struct distribution {
    const struct vr_columns *columns;
    void *from;
    size_t row_count;
    const struct runs *runs;
    void *to;
    size_t to_stride;
    size_t count;
};

// Leaves *from without columns. A table that takes all rows in order is moved. Proceeds by column, so that at most one column exists twice.
static enum vram_status distribute(struct vr_machine *machine, struct distribution all) {
    const struct vr_columns *columns = all.columns;
    const struct runs *runs = all.runs;
    char *to = all.to;
    const size_t row_count = all.row_count, to_stride = all.to_stride, count = all.count;
    void *from = all.from;
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
    for (size_t i = 0; i < count; i++) VR_TRY(vr_columns_finish(columns, to + i * to_stride, runs[i].rows));
    return VRAM_OK;
}

// The parts of a recording as lists of rows.
struct parts {
    struct runs segments;
    struct runs blocks;
    struct runs tenants;
    struct runs annotations;
    struct runs *devices; // of device_traces; host memory, if any, has the last history
    size_t device_count;
    size_t host_first; // first segment row of host memory; SIZE_MAX: no host memory
};

static void release_parts(struct parts *parts) {
    release_runs(&parts->segments);
    release_runs(&parts->blocks);
    release_runs(&parts->tenants);
    release_runs(&parts->annotations);
    for (size_t i = 0; i < parts->device_count; i++) release_runs(&parts->devices[i]);
    free(parts->devices);
}

static enum vram_status collect_devices(struct vr_machine *machine, uint64_t value, struct parts *parts) {
    const uint64_t *items;
    size_t count;
    uint64_t resolved = vr_machine_resolve(machine, value);
    if (is_absent(resolved)) resolved = vr_value(VR_TAG_NO_ITEMS, 0);
    if (!vr_machine_items(machine, resolved, &items, &count)) return not_a_list(machine, "device_traces", resolved);
    vr_machine_note_items(machine, "device_traces", resolved);
    if (count > MAX_DEVICES) return VR_MACHINE_FAIL(machine, VRAM_BAD_INPUT, "`device_traces` lists %zu devices", count);
    parts->devices = calloc(count + 2, sizeof *parts->devices);
    if (parts->devices == NULL) return VRAM_NO_HOST_MEMORY;
    parts->device_count = count;
    struct vr_node *node = count == 0 ? NULL : &machine->nodes[vr_payload(resolved)];
    if (node != NULL) node->busy = true;
    for (size_t i = 0; i < count; i++) VR_TRY(collect_rows(machine, "device_traces", node->items[i], VR_TAG_EVENT, &parts->devices[i]));
    if (node != NULL) node->busy = false;
    return VRAM_OK;
}

// Records where each segment's blocks begin.
static enum vram_status collect_blocks(struct vr_machine *machine, struct parts *parts, struct vr_model *model) {
    size_t done = 0;
    VR_TRY(vr_budget_charge(&machine->builder.budget, parts->segments.rows + 1, sizeof *model->segments.first_block));
    model->segments.first_block = malloc((parts->segments.rows + 1) * sizeof *model->segments.first_block);
    if (model->segments.first_block == NULL) return VRAM_NO_HOST_MEMORY;
    model->segments.first_block[0] = 0;
    for (size_t i = 0; i < parts->segments.count; i++) {
        uint64_t run = parts->segments.items[i];
        for (uint64_t row = vr_first_row(run); row < vr_first_row(run) + vr_row_count(run); row++) {
            VR_TRY(collect_rows(machine, "blocks", machine->segment_blocks[row], VR_TAG_BLOCK, &parts->blocks));
            model->segments.first_block[++done] = parts->blocks.rows;
        }
    }
    return VRAM_OK;
}

static int by_block(const void *left, const void *right) {
    const struct vr_former *a = left, *b = right;
    return VR_ORDER(a->block, b->block);
}

static enum vram_status add_tenants(struct vr_machine *machine, const struct runs *runs, size_t block, struct vr_model *model,
                                    size_t *capacity) {
    for (size_t i = 0; i < runs->count; i++) {
        for (uint64_t row = vr_first_row(runs->items[i]); row < vr_first_row(runs->items[i]) + vr_row_count(runs->items[i]); row++) {
            void *tenants = model->tenants;
            enum vram_status status =
                vr_budget_grow(&machine->builder.budget, &tenants, capacity, model->tenant_count + 1, sizeof *model->tenants);
            model->tenants = tenants;
            VR_TRY(status);
            model->tenants[model->tenant_count] = machine->tenants[row];
            model->tenants[model->tenant_count++].block = block;
        }
    }
    return VRAM_OK;
}

// Collects the tenants of every block, in the model's block order. If a block was given several histories, the last one counts.
static enum vram_status collect_tenants(struct vr_machine *machine, struct parts *parts, struct vr_model *model) {
    size_t block = 0, capacity = 0;
    if (machine->former_count == 0) return VRAM_OK;
    qsort(machine->formers, machine->former_count, sizeof *machine->formers, by_block);
    for (size_t i = 0; i < parts->blocks.count; i++) {
        uint64_t run = parts->blocks.items[i];
        for (uint64_t row = vr_first_row(run); row < vr_first_row(run) + vr_row_count(run); row++, block++) {
            const struct vr_former wanted = {.block = row};
            const struct vr_former *former = bsearch(&wanted, machine->formers, machine->former_count, sizeof *machine->formers, by_block);
            if (former == NULL) continue;
            struct runs runs = {0};
            enum vram_status status = collect_rows(machine, "history", former->list, VR_TAG_TENANT, &runs);
            if (status == VRAM_OK) status = add_tenants(machine, &runs, block, model, &capacity);
            if (status == VRAM_OK) status = add_runs(machine, &parts->tenants, &runs);
            release_runs(&runs);
            VR_TRY(status);
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

// Fills in addresses for old files without them: a block begins where its predecessor ends (rule R2 of the data's README).
static void fill_addresses(struct vr_model *model) {
    for (size_t i = 0; i < model->segments.count; i++) {
        uint64_t next = model->segments.address[i];
        for (uint64_t block = model->segments.first_block[i]; block < model->segments.first_block[i + 1]; block++) {
            if (!(model->blocks.has[block] & (VR_HAS_ADDRESS | VR_HAS_ADDR))) model->blocks.address[block] = next;
            next = model->blocks.address[block] + model->blocks.size_bytes[block];
        }
    }
}

// ---- extras: values that no column holds

// Adds an owner's kept entries; rows are numbered in the order of the runs.
static enum vram_status add_extras(struct vr_machine *machine, enum vr_owner owner, size_t device, const struct runs *runs,
                                   struct vr_model *model, size_t *capacity) {
    uint64_t base = 0;
    for (size_t i = 0; i < runs->count; i++) {
        uint64_t row = vr_first_row(runs->items[i]), rows = vr_row_count(runs->items[i]);
        size_t first, count = vr_kept_of(machine, owner, row, rows, &first);
        void *extras = model->extras;
        enum vram_status status =
            vr_budget_grow(&machine->builder.budget, &extras, capacity, model->extra_count + count, sizeof *model->extras);
        model->extras = extras;
        VR_TRY(status);
        for (size_t k = first; k < first + count; k++) {
            const struct vr_kept *kept = &machine->kept[k];
            model->extras[model->extra_count++] = (struct vr_extra){.owner = (uint8_t)owner,
                                                                    .device = (uint32_t)device,
                                                                    .row = base + (kept->row - row),
                                                                    .key = kept->key,
                                                                    .value = kept->value};
        }
        base += rows;
    }
    return VRAM_OK;
}

// Adds the kept entries of a table whose rows keep their numbers.
static enum vram_status add_all_extras(struct vr_machine *machine, enum vr_owner owner, uint64_t rows, struct vr_model *model,
                                       size_t *capacity) {
    enum vram_status status = VRAM_OK;
    for (uint64_t row = 0; row < rows && status == VRAM_OK; row += (uint64_t)1 << VR_RUN_BITS) {
        uint64_t count = rows - row < (uint64_t)1 << VR_RUN_BITS ? rows - row : (uint64_t)1 << VR_RUN_BITS;
        uint64_t item = vr_value(VR_TAG_EVENT, row) + ((count - 1) << VR_ROW_BITS);
        const struct runs runs = {.items = &item, .count = 1, .rows = (size_t)rows};
        size_t before = model->extra_count;
        status = add_extras(machine, owner, 0, &runs, model, capacity);
        for (size_t i = before; i < model->extra_count; i++) model->extras[i].row += row;
    }
    return status;
}

static enum vram_status gather_extras(struct vr_machine *machine, const struct parts *parts, struct vr_model *model) {
    size_t capacity = 0;
    if (machine->kept_count == 0) return VRAM_OK;
    vr_keep_sort(machine);
    VR_TRY(add_all_extras(machine, VR_OWNER_TOP, 1, model, &capacity));
    VR_TRY(add_extras(machine, VR_OWNER_SEGMENT, 0, &parts->segments, model, &capacity));
    VR_TRY(add_extras(machine, VR_OWNER_BLOCK, 0, &parts->blocks, model, &capacity));
    for (size_t i = 0; i < parts->device_count; i++) {
        VR_TRY(add_extras(machine, VR_OWNER_EVENT, i, &parts->devices[i], model, &capacity));
    }
    VR_TRY(add_all_extras(machine, VR_OWNER_FRAME, machine->builder.frames.count, model, &capacity));
    VR_TRY(add_extras(machine, VR_OWNER_ANNOTATION, 0, &parts->annotations, model, &capacity));
    return add_extras(machine, VR_OWNER_TENANT, 0, &parts->tenants, model, &capacity);
}

// Frees the structures that only reading needed. Rows and annotations stay.
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
    const size_t device_count = parts->device_count;
    const uint64_t stream = machine->events.stream.common;
    const uint32_t has = machine->events.has.common;
    model->histories = calloc(device_count + 1, sizeof *model->histories);
    if (model->histories == NULL) return VRAM_NO_HOST_MEMORY;
    model->history_count = device_count;
    model->host_count = parts->host_first == SIZE_MAX ? 0 : 1;
    VR_TRY(gather_annotations(machine, &parts->annotations, model));
    VR_TRY(gather_extras(machine, parts, model));
    VR_TRY(distribute(machine, (struct distribution){&vr_history_columns, &machine->events, machine->events.count, parts->devices,
                                                     model->histories, sizeof *model->histories, device_count}));
    for (size_t i = 0; i < device_count; i++) {
        struct vr_history *history = &model->histories[i];
        history->count = parts->devices[i].rows;
        history->stream.common = stream;
        history->has.common = has;
    }
    VR_TRY(distribute(machine, (struct distribution){&vr_segment_columns, &machine->segments, machine->segments.count, &parts->segments,
                                                     &model->segments, sizeof model->segments, 1}));
    model->segments.count = parts->segments.rows;
    for (size_t i = parts->host_first; i < model->segments.count; i++) model->segments.device[i] = (uint32_t)device_count - 1;
    VR_TRY(distribute(machine, (struct distribution){&vr_block_columns, &machine->blocks, machine->blocks.count, &parts->blocks,
                                                     &model->blocks, sizeof model->blocks, 1}));
    model->blocks.count = parts->blocks.rows;
    fill_addresses(model);
    return VRAM_OK;
}

// ---- the top level

static enum vram_status add_setting(struct vr_machine *machine, struct vr_model *model, size_t *capacity, uint64_t key, uint64_t value) {
    void *settings = model->settings;
    enum vram_status status =
        vr_budget_grow(&machine->builder.budget, &settings, capacity, model->setting_count + 1, sizeof *model->settings);
    model->settings = settings;
    VR_TRY(status);
    uint32_t text;
    VR_TRY(vr_json_text_string(machine, value, &text));
    model->settings[model->setting_count++] = (struct vr_setting){(uint32_t)vr_payload(key), text};
    return VRAM_OK;
}

static bool has_setting(const struct vr_model *model, uint64_t key) {
    for (size_t i = 0; i < model->setting_count; i++) {
        if (model->settings[i].key == vr_payload(key)) return true;
    }
    return false;
}

// Returns the value of a top-level key; 0 if the key is absent.
static uint64_t value_of_key(const uint64_t *pairs, size_t count, enum vr_word word) {
    for (size_t i = 0; i < count; i++) {
        if (pairs[2 * i] == vr_value(VR_TAG_STRING, word)) return pairs[2 * i + 1];
    }
    return 0;
}

static enum vram_status keep_top(struct vr_machine *machine, uint64_t key, uint64_t value) {
    return vr_keep(machine, VR_OWNER_TOP, 0, (uint32_t)vr_payload(key), value);
}

// Reads allocator_settings, and the two settings that some versions write as top-level keys: those count unless allocator_settings has the
// key, too.
static enum vram_status read_settings(struct vr_machine *machine, const uint64_t *top, size_t top_count, struct vr_model *model) {
    static const enum vr_word top_keys[] = {VR_WORD_TRACE_ALLOC_MAX_ENTRIES, VR_WORD_TRACE_ALLOC_OVERFLOWED};
    uint64_t *settings = NULL;
    size_t count = 0, capacity = 0;
    uint64_t resolved = vr_machine_resolve(machine, value_of_key(top, top_count, VR_WORD_ALLOCATOR_SETTINGS));
    VR_TRY(vr_machine_last_values(machine, resolved, &settings, &count));
    enum vram_status status = VRAM_OK;
    for (size_t i = 0; i < count && status == VRAM_OK; i++) {
        status = add_setting(machine, model, &capacity, settings[2 * i], settings[2 * i + 1]);
    }
    free(settings);
    for (size_t i = 0; i < VR_COUNT_OF(top_keys) && status == VRAM_OK; i++) {
        uint64_t key = vr_value(VR_TAG_STRING, top_keys[i]), value = value_of_key(top, top_count, top_keys[i]);
        if (value == 0) continue;
        status = has_setting(model, key) ? keep_top(machine, key, value) : add_setting(machine, model, &capacity, key, value);
    }
    return status;
}

// Returns the string id of a key's value; 0 if it is not a string.
static uint32_t text_in(const uint64_t *pairs, size_t count, enum vr_word key) {
    uint64_t value = value_of_key(pairs, count, key);
    return vr_tag_of(value) == VR_TAG_STRING ? (uint32_t)vr_payload(value) : 0;
}

// Reads vram's own `modules` key. Returns false if vram did not write the value.
static bool read_modules(struct vr_machine *machine, uint64_t resolved, struct vr_model *model) {
    const uint64_t *items, *pairs;
    size_t count, pair_count;
    if (!vr_machine_items(machine, resolved, &items, &count)) return false;
    if (vr_budget_charge(&machine->builder.budget, count, sizeof *model->modules) != VRAM_OK) return false;
    model->modules = malloc((count + 1) * sizeof *model->modules);
    for (size_t i = 0; i < count && model->modules != NULL; i++) {
        if (!vr_machine_pairs(machine, vr_machine_resolve(machine, items[i]), &pairs, &pair_count) || pair_count != 2) {
            model->module_count = 0;
            return false;
        }
        model->modules[model->module_count++] =
            (struct vr_module){text_in(pairs, pair_count, VR_WORD_PATH), text_in(pairs, pair_count, VR_WORD_BUILD_ID)};
    }
    return model->modules != NULL;
}

// Returns whether all items of a list are rows of one kind.
static bool is_list_of(struct vr_machine *machine, uint64_t value, enum vr_tag kind) {
    uint64_t resolved = vr_machine_resolve(machine, value);
    if (vr_tag_of(resolved) == VR_TAG_NO_ITEMS) return true;
    if (vr_tag_of(resolved) != VR_TAG_LIST) return false;
    const struct vr_node *node = &machine->nodes[vr_payload(resolved)];
    for (size_t i = 0; i < node->count; i++) {
        if (vr_tag_of(vr_machine_resolve(machine, node->items[i])) != kind) return false;
    }
    return true;
}

// Gives every device with segments a history, possibly empty, so that the host's number is not a device's.
static enum vram_status reserve_devices(struct vr_machine *machine, struct parts *parts) {
    size_t count = parts->device_count;
    for (size_t i = 0; i < parts->segments.count; i++) {
        uint64_t run = parts->segments.items[i];
        for (uint64_t row = vr_first_row(run); row < vr_first_row(run) + vr_row_count(run); row++) {
            if (machine->segments.device[row] >= count) count = (size_t)machine->segments.device[row] + 1;
        }
    }
    struct runs *devices = realloc(parts->devices, (count + 2) * sizeof *devices);
    if (devices == NULL) return VRAM_NO_HOST_MEMORY;
    memset(devices + parts->device_count, 0, (count + 2 - parts->device_count) * sizeof *devices);
    parts->devices = devices;
    parts->device_count = count;
    return VRAM_OK;
}

// Collects pinned host memory, laid out like a device's: it becomes the last device. Its history is a list of events, or a list with one
// list of events; which of them is recorded for the writer. A value of any other form is kept as text.
static enum vram_status collect_host(struct vr_machine *machine, const uint64_t *top, size_t count, struct parts *parts) {
    uint64_t segments = value_of_key(top, count, VR_WORD_HOST_SEGMENTS), traces = value_of_key(top, count, VR_WORD_HOST_TRACES),
             inner = traces;
    const uint64_t *items;
    size_t item_count;
    if (segments != 0 && !is_list_of(machine, segments, VR_TAG_SEGMENT)) {
        VR_TRY(keep_top(machine, vr_value(VR_TAG_STRING, VR_WORD_HOST_SEGMENTS), segments));
        segments = 0;
    }
    bool is_nested = vr_machine_items(machine, vr_machine_resolve(machine, traces), &items, &item_count) && item_count == 1 &&
                     !is_list_of(machine, traces, VR_TAG_EVENT);
    if (is_nested) inner = items[0];
    if (traces != 0 && !is_list_of(machine, inner, VR_TAG_EVENT)) {
        VR_TRY(keep_top(machine, vr_value(VR_TAG_STRING, VR_WORD_HOST_TRACES), traces));
        traces = inner = 0;
    }
    if (segments == 0 && traces == 0) return VRAM_OK;
    VR_TRY(reserve_devices(machine, parts));
    parts->host_first = parts->segments.rows;
    VR_TRY(collect_rows(machine, "host_segments", segments, VR_TAG_SEGMENT, &parts->segments));
    if (is_nested && inner != 0) {
        VR_TRY(vr_keep(machine, VR_OWNER_TOP, 0, VR_WORD_VRAM_HOST_NESTED, vr_value(VR_TAG_BOOL, 1)));
    }
    return collect_rows(machine, "host_traces", inner, VR_TAG_EVENT, &parts->devices[parts->device_count++]);
}

// Keeps the device numbers that the file gives to segments of host memory; their position marks them as such.
static enum vram_status keep_host_devices(struct vr_machine *machine, const struct parts *parts) {
    size_t done = 0;
    for (size_t i = 0; i < parts->segments.count && parts->host_first != SIZE_MAX; i++) {
        uint64_t run = parts->segments.items[i];
        for (uint64_t row = vr_first_row(run); row < vr_first_row(run) + vr_row_count(run); row++, done++) {
            if (done < parts->host_first || machine->segments.device[row] == 0) continue;
            uint64_t device = vr_value(VR_TAG_INT, machine->segments.device[row]);
            VR_TRY(vr_keep(machine, VR_OWNER_SEGMENT, row, VR_WORD_DEVICE, device));
        }
    }
    return VRAM_OK;
}

static enum vram_status keep_unread(struct vr_machine *machine, const uint64_t *top, size_t count, struct vr_model *model) {
    for (size_t i = 0; i < count; i++) {
        uint64_t key = top[2 * i], value = vr_machine_resolve(machine, top[2 * i + 1]), word = vr_payload(key);
        bool is_known = word >= VR_WORD_FIRST_TOP && word <= VR_WORD_LAST_TOP,
             is_host = word == VR_WORD_HOST_SEGMENTS || word == VR_WORD_HOST_TRACES;
        bool is_top_setting = word == VR_WORD_TRACE_ALLOC_MAX_ENTRIES || word == VR_WORD_TRACE_ALLOC_OVERFLOWED;
        bool is_settings = word == VR_WORD_ALLOCATOR_SETTINGS && vr_tag_of(value) != VR_TAG_DICT && vr_tag_of(value) != VR_TAG_NO_KEYS;
        bool is_none = is_known && !is_top_setting && !is_host && vr_tag_of(value) == VR_TAG_NONE;
        if (word == VR_WORD_VRAM_MODULES) is_known = read_modules(machine, value, model);
        if (!is_known || is_settings || is_none) VR_TRY(keep_top(machine, key, top[2 * i + 1]));
    }
    return VRAM_OK;
}

// Restores the has-bits for pool ids. JSON has no pairs; a single key, written by vram, says that the recording had lists instead.
static void restore_pool_lists(struct vr_machine *machine) {
    struct vr_history *events = &machine->events;
    const uint32_t common = events->has.common & VR_HAS_POOL_ID ? events->has.common | VR_HAS_POOL_LIST : events->has.common;
    for (size_t i = 0; i < events->count && events->has.apart != NULL; i++) {
        const uint32_t has = vr_entry_has(events, i), with_list = has & VR_HAS_POOL_ID ? has | VR_HAS_POOL_LIST : has;
        events->has.apart[i] = with_list ^ common;
    }
    events->has.common = common;
    for (size_t i = 0; i < machine->segments.count; i++) {
        if (machine->segments.has[i] & VR_HAS_POOL_ID) machine->segments.has[i] |= VR_HAS_POOL_LIST;
    }
}

static enum vram_status collect_keys(struct vr_machine *machine, const uint64_t *top, size_t count, struct vr_model *model) {
    model->top_level_keys = malloc((count + 1) * sizeof *model->top_level_keys);
    if (model->top_level_keys == NULL) return VRAM_NO_HOST_MEMORY;
    for (size_t i = 0; i < count; i++) {
        bool is_note = machine->pairs_are_lists && top[2 * i] == vr_value(VR_TAG_STRING, VR_WORD_VRAM_POOL_ID_LISTS);
        if (is_note)
            restore_pool_lists(machine);
        else
            model->top_level_keys[model->top_level_key_count++] = (uint32_t)vr_payload(top[2 * i]);
    }
    return VRAM_OK;
}

static enum vram_status collect_dict(struct vr_machine *machine, const uint64_t *top, size_t count, struct parts *parts,
                                     struct vr_model *model) {
    model->form = VR_FORM_DICT;
    uint64_t segments = value_of_key(top, count, VR_WORD_SEGMENTS), traces = value_of_key(top, count, VR_WORD_DEVICE_TRACES);
    if (segments == 0 && traces == 0) {
        VR_TRY(vr_misplaced_dict(machine, top, count));
        return VR_MACHINE_FAIL(machine, VRAM_BAD_INPUT, "not a recording: the dictionary has neither `segments` nor `device_traces`");
    }
    VR_TRY(collect_rows(machine, "segments", segments, VR_TAG_SEGMENT, &parts->segments));
    VR_TRY(collect_devices(machine, traces, parts));
    VR_TRY(collect_rows(machine, "external_annotations", value_of_key(top, count, VR_WORD_EXTERNAL_ANNOTATIONS), VR_TAG_ANNOTATION,
                        &parts->annotations));
    VR_TRY(collect_host(machine, top, count, parts));
    VR_TRY(keep_host_devices(machine, parts));
    VR_TRY(collect_keys(machine, top, count, model));
    VR_TRY(read_settings(machine, top, count, model));
    VR_TRY(collect_blocks(machine, parts, model));
    VR_TRY(collect_tenants(machine, parts, model));
    // Do this last: keeping a value as text drops the lists and dictionaries in it, which may be those that were read.
    vr_keep_sort(machine);
    return keep_unread(machine, top, count, model);
}

static enum vram_status collect_all(struct vr_machine *machine, struct parts *parts, struct vr_model *model) {
    const uint64_t *items;
    size_t count;
    uint64_t top = machine->stack[machine->depth - 1], resolved = vr_machine_resolve(machine, top);
    if (vr_machine_pairs(machine, resolved, &items, &count)) {
        uint64_t *unique = NULL;
        VR_TRY(vr_machine_last_values(machine, resolved, &unique, &count));
        enum vram_status status = collect_dict(machine, unique, count, parts, model);
        free(unique);
        return status;
    }
    if (!vr_machine_items(machine, resolved, &items, &count))
        return VR_MACHINE_FAIL(machine, VRAM_BAD_INPUT, "not a recording: it contains %s", vr_machine_what(machine, resolved));
    VR_TRY(vr_misplaced_list(machine, items, count));
    model->form = VR_FORM_SEGMENT_LIST;
    VR_TRY(collect_rows(machine, "segments", top, VR_TAG_SEGMENT, &parts->segments));
    VR_TRY(collect_blocks(machine, parts, model));
    return collect_tenants(machine, parts, model);
}

enum vram_status vr_finish(struct vr_machine *machine, struct vr_model *model) {
    assert(model->strings.bytes == NULL && model->histories == NULL);
    struct parts parts = {.host_first = SIZE_MAX};
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
    model->loss = machine->loss;
    model->lost_key = machine->lost_key;
    vr_builder_finish(&machine->builder, model);
    return VRAM_OK;
}
