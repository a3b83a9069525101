// Keeps values that the columns of the model cannot hold as JSON text.
#include "snapshot/schema.h"

#include <math.h>

#include "base/json.h"
#include "snapshot/literals.h"
#include "snapshot/row_tables.h"

enum { MAX_DEPTH = 500 };
static_assert(MAX_DEPTH < VR_JSON_DEPTH, "the writer must be able to nest as deep");

struct json_printer {
    struct vr_machine *machine;
    struct vr_json json;
    uint64_t limit_bytes;
};

static enum vram_status add_value(struct json_printer *printer, const char *key, uint64_t value, unsigned depth);

static const char *json_string_of(const struct vr_machine *machine, uint64_t value, size_t *length) {
    const struct vr_strings *strings = &machine->builder.strings;
    uint64_t id = vr_payload(value);
    *length = (size_t)(strings->offset[id + 1] - strings->offset[id] - 1);
    return strings->bytes + strings->offset[id];
}

static void add_whole(struct json_printer *printer, const char *key, uint64_t resolved) {
    uint64_t number = 0;
    bool negative = false;
    (void)vr_machine_number(printer->machine, resolved, &number, &negative);
    if (negative)
        vr_json_i64(&printer->json, key, (int64_t)number);
    else
        vr_json_u64(&printer->json, key, number);
}

static void add_string(struct json_printer *printer, const char *key, uint64_t resolved) {
    size_t length;
    const char *bytes = json_string_of(printer->machine, resolved, &length);
    vr_json_string_bytes(&printer->json, key, bytes, length);
}

// Begins a list, or the dictionary that represents a tuple or set (literals.h).
static void begin_items(struct json_printer *printer, const char *key, enum vr_items items_of) {
    if (items_of != VR_ITEMS_LIST) vr_json_object(&printer->json, key);
    vr_json_array(&printer->json, items_of == VR_ITEMS_LIST ? key : vr_python_text_items(items_of));
}

static void end_items(struct json_printer *printer, enum vr_items items_of) {
    vr_json_array_end(&printer->json);
    if (items_of != VR_ITEMS_LIST) vr_json_object_end(&printer->json);
}

static void add_pair(struct json_printer *printer, const char *key, uint64_t first, uint64_t second, bool is_list) {
    const enum vr_items items_of = is_list ? VR_ITEMS_LIST : VR_ITEMS_TUPLE;
    begin_items(printer, key, items_of);
    vr_json_u64(&printer->json, NULL, first);
    vr_json_u64(&printer->json, NULL, second);
    end_items(printer, items_of);
}

// Adds a float; one without a fraction gets ".0", so that it is read as a float again.
static void add_float(struct json_printer *printer, const char *key, uint64_t resolved) {
    struct vr_text *out = printer->json.out;
    const double number = vr_machine_float(printer->machine, resolved);
    if (!isfinite(number)) {
        vr_json_object(&printer->json, key);
        vr_json_string(&printer->json, VR_PYTHON_FLOAT, isnan(number) ? "nan" : number > 0 ? "inf" : "-inf");
        vr_json_object_end(&printer->json);
        return;
    }
    vr_json_double(&printer->json, key, number);
    size_t at = out->length;
    while (at != 0 && out->bytes[at - 1] >= '0' && out->bytes[at - 1] <= '9') at--;
    bool has_digits = at != out->length;
    if (at != 0 && out->bytes[at - 1] == '-') at--;
    if (has_digits && (at == 0 || strchr(".e+", out->bytes[at - 1]) == NULL)) vr_text_puts(out, ".0");
}

static enum vram_status add_list(struct json_printer *printer, const char *key, uint64_t resolved, unsigned depth) {
    const uint64_t *items = NULL;
    size_t count = 0;
    const enum vr_items items_of = vr_machine_items_of(printer->machine, resolved);
    (void)vr_machine_items(printer->machine, resolved, &items, &count);
    begin_items(printer, key, items_of);
    if (items_of != VR_ITEMS_LIST) depth++;
    for (size_t i = 0; i < count; i++) {
        const uint64_t item = vr_machine_resolve(printer->machine, items[i]);
        const uint64_t rows = vr_is_row(vr_tag_of(item)) ? vr_row_count(item) : 1;
        if (rows == 1) VR_TRY(add_value(printer, NULL, items[i], depth + 1));
        for (uint64_t row = 0; rows > 1 && row < rows; row++)
            VR_TRY(add_value(printer, NULL, vr_value(vr_tag_of(item), vr_first_row(item) + row), depth + 1));
    }
    end_items(printer, items_of);
    return VRAM_OK;
}

// Returns whether all keys of the dictionary are possible in JSON, and the dictionary cannot be mistaken for one of literals.h.
static bool has_plain_keys(const struct vr_machine *machine, const uint64_t *pairs, size_t count) {
    size_t length;
    for (size_t i = 0; i < count; i++) {
        if (vr_tag_of(pairs[2 * i]) != VR_TAG_STRING) return false;
        const char *key = json_string_of(machine, pairs[2 * i], &length);
        if (memchr(key, '\0', length) != NULL || (count == 1 && *key == '$')) return false;
    }
    return true;
}

static enum vram_status add_plain_dict(struct json_printer *printer, const char *key, const uint64_t *pairs, size_t count, unsigned depth) {
    size_t length;
    vr_json_object(&printer->json, key);
    for (size_t i = 0; i < count; i++)
        VR_TRY(add_value(printer, json_string_of(printer->machine, pairs[2 * i], &length), pairs[2 * i + 1], depth + 1));
    vr_json_object_end(&printer->json);
    return VRAM_OK;
}

static enum vram_status add_dict(struct json_printer *printer, const char *key, uint64_t resolved, unsigned depth) {
    const uint64_t *pairs = NULL;
    size_t count = 0;
    (void)vr_machine_pairs(printer->machine, resolved, &pairs, &count);
    if (has_plain_keys(printer->machine, pairs, count)) return add_plain_dict(printer, key, pairs, count, depth);
    vr_json_object(&printer->json, key);
    vr_json_array(&printer->json, VR_PYTHON_DICT);
    for (size_t i = 0; i < count; i++) {
        vr_json_array(&printer->json, NULL);
        for (size_t k = 0; k < 2; k++) VR_TRY(add_value(printer, NULL, pairs[2 * i + k], depth + 3));
        vr_json_array_end(&printer->json);
    }
    vr_json_array_end(&printer->json);
    vr_json_object_end(&printer->json);
    return VRAM_OK;
}

// ---- rows, printed as the dictionaries that they were

// The kept entries of a row: the sorted ones in one range, and later ones somewhere in a second range.
struct row_keys {
    const struct vr_machine *machine;
    enum vr_owner owner;
    uint64_t row;
    size_t first, end, late_first, late_end;
};

static struct row_keys keys_of(struct vr_machine *machine, enum vr_tag kind, uint64_t row) {
    struct row_keys keys = {.machine = machine, .owner = vr_row_owners[kind], .row = row};
    keys.first = vr_row_first_kept(machine, machine->kept_sorted, keys.owner, row);
    keys.end = vr_row_first_kept(machine, machine->kept_sorted, keys.owner, row + 1);
    for (size_t i = machine->kept_sorted; i < machine->kept_count; i++) {
        if (machine->kept[i].owner != keys.owner || machine->kept[i].row != row) continue;
        if (keys.late_end == 0) keys.late_first = i;
        keys.late_end = i + 1;
    }
    machine->text_bytes += machine->kept_count - machine->kept_sorted; // bounds the total time of these searches
    return keys;
}

// Returns the last entry for a key in [first, end), or NULL.
static const struct vr_kept *last_of(const struct row_keys *keys, size_t first, size_t end, uint32_t key) {
    for (size_t i = end; i-- > first;) {
        const struct vr_kept *kept = &keys->machine->kept[i];
        if (kept->owner == keys->owner && kept->row == keys->row && kept->key == key) return kept;
    }
    return NULL;
}

static const struct vr_kept *kept_of(const struct row_keys *keys, uint32_t key) {
    const struct vr_kept *late = last_of(keys, keys->late_first, keys->late_end, key);
    return late != NULL ? late : last_of(keys, keys->first, keys->end, key);
}

static void add_word(struct json_printer *printer, const char *key, uint64_t word) {
    add_string(printer, key, vr_value(VR_TAG_STRING, word));
}

static void print_kept(struct json_printer *printer, const struct row_keys *keys, size_t first, size_t end) {
    const struct vr_machine *machine = printer->machine;
    size_t length;
    for (size_t i = first; i < end; i++) {
        const struct vr_kept *kept = &machine->kept[i];
        if (kept->owner != keys->owner || kept->row != keys->row || kept->value == VR_KEPT_CANCELLED || kept->value == 0) continue;
        if (kept_of(keys, kept->key) != kept) continue; // only the last one counts
        const char *key = json_string_of(machine, vr_value(VR_TAG_STRING, kept->key), &length);
        vr_json_raw(&printer->json, key, json_string_of(machine, vr_value(VR_TAG_STRING, kept->value), &length));
    }
}

static bool has_column(const struct row_keys *keys, enum vr_word word) {
    const struct vr_kept *kept = kept_of(keys, word);
    return kept == NULL || kept->value == VR_KEPT_CANCELLED;
}

static void add_frame(struct json_printer *printer, const char *key, uint32_t frame) {
    const struct vr_frames *frames = &printer->machine->builder.frames;
    const struct row_keys keys = keys_of(printer->machine, VR_TAG_FRAME, frame);
    vr_json_object(&printer->json, key);
    if (has_column(&keys, VR_WORD_NAME)) add_string(printer, "name", frames->name[frame]);
    if (has_column(&keys, VR_WORD_FILENAME)) add_string(printer, "filename", frames->filename[frame]);
    if (has_column(&keys, VR_WORD_LINE)) vr_json_u64(&printer->json, "line", (uint64_t)frames->line[frame]);
    print_kept(printer, &keys, keys.first, keys.end);
    print_kept(printer, &keys, keys.late_first, keys.late_end);
    vr_json_object_end(&printer->json);
}

static void add_stack(struct json_printer *printer, const char *key, uint32_t stack) {
    const struct vr_stacks *stacks = &printer->machine->builder.stacks;
    vr_json_array(&printer->json, key);
    for (uint64_t i = stacks->offset[stack]; i < stacks->offset[stack + 1]; i++) add_frame(printer, NULL, stacks->frame[i]);
    vr_json_array_end(&printer->json);
}

static enum vram_status add_column(struct json_printer *printer, const char *key, const struct vr_field *field, const uint64_t *slots,
                                   unsigned depth) {
    static const enum vr_word states[] = {[VR_STATE_INACTIVE] = VR_WORD_INACTIVE,
                                          [VR_STATE_ALLOCATED] = VR_WORD_ACTIVE_ALLOCATED,
                                          [VR_STATE_PENDING_FREE] = VR_WORD_ACTIVE_PENDING_FREE,
                                          [VR_STATE_AWAITING_FREE] = VR_WORD_ACTIVE_AWAITING_FREE};
    const uint64_t slot = slots[field->slot];
    switch ((enum vr_field_kind)field->kind) {
    case FIELD_STREAM:
    case FIELD_SIGNED:
    case FIELD_LOOSE: vr_json_i64(&printer->json, key, (int64_t)slot); break;
    case FIELD_FLAG: vr_json_bool(&printer->json, key, slot != 0); break;
    case FIELD_STACK: add_stack(printer, key, (uint32_t)slot); break;
    case FIELD_NAME:
    case FIELD_TEXT: add_word(printer, key, slot); break;
    case FIELD_ACTION:
        add_word(printer, key, slot == VR_ACTION_UNKNOWN ? slots[SLOT_unknown] : (uint64_t)VR_WORD_FIRST_ACTION + slot);
        break;
    case FIELD_STATE: add_word(printer, key, slot < VR_COUNT_OF(states) ? states[slot] : 0); break;
    case FIELD_TYPE: add_word(printer, key, slot == VR_KIND_SMALL ? VR_WORD_SMALL : VR_WORD_LARGE); break;
    case FIELD_POOL:
        add_pair(printer, key, slots[SLOT_pool_first], slots[SLOT_pool_second],
                 printer->machine->pairs_are_lists || (slots[SLOT_has] & VR_HAS_POOL_LIST) != 0);
        break;
    case FIELD_BLOCKS:
    case FIELD_TENANTS: return add_value(printer, key, slot, depth + 1);
    default: vr_json_u64(&printer->json, key, slot);
    }
    return VRAM_OK;
}

static enum vram_status add_columns(struct json_printer *printer, enum vr_tag kind, const uint64_t *slots, const struct row_keys *keys,
                                    unsigned depth) {
    const struct vr_field *fields = vr_row_fields[kind];
    for (uint32_t word = 0; word < VR_WORD_COUNT; word++) {
        if (fields[word].kind == FIELD_NOTHING || (slots[SLOT_has] & fields[word].has) == 0) continue;
        size_t length;
        const char *key = json_string_of(printer->machine, vr_value(VR_TAG_STRING, word), &length);
        if (has_column(keys, word)) VR_TRY(add_column(printer, key, &fields[word], slots, depth));
    }
    return VRAM_OK;
}

static enum vram_status print_row_object(struct json_printer *printer, const char *key, enum vr_tag kind, size_t row, unsigned depth) {
    uint64_t slots[SLOT_COUNT] = {0};
    const struct row_keys keys = keys_of(printer->machine, kind, row);
    if (printer->machine->text_bytes > printer->machine->builder.budget.limit_bytes) return VRAM_LIMIT;
    vr_row_take(printer->machine, kind, row, slots);
    if (kind == VR_TAG_BLOCK) slots[SLOT_tenants] = vr_row_history(printer->machine, row);
    vr_json_object(&printer->json, key);
    VR_TRY(add_columns(printer, kind, slots, &keys, depth));
    print_kept(printer, &keys, keys.first, keys.end);
    print_kept(printer, &keys, keys.late_first, keys.late_end);
    vr_json_object_end(&printer->json);
    return VRAM_OK;
}

static enum vram_status add_value(struct json_printer *printer, const char *key, uint64_t value, unsigned depth) {
    if (depth > MAX_DEPTH)
        return VR_MACHINE_FAIL(printer->machine, VRAM_LIMIT, "the value of a key nests deeper than %d levels", MAX_DEPTH);
    if (printer->json.out->length > printer->limit_bytes) return VRAM_LIMIT;
    uint64_t resolved = vr_machine_resolve(printer->machine, value);
    size_t length;
    switch (vr_tag_of(resolved)) {
    case VR_TAG_BOOL: vr_json_bool(&printer->json, key, vr_payload(resolved) != 0); break;
    case VR_TAG_INT:
    case VR_TAG_WIDE:
    case VR_TAG_UNSIGNED: add_whole(printer, key, resolved); break;
    case VR_TAG_FLOAT: add_float(printer, key, resolved); break;
    case VR_TAG_STRING: add_string(printer, key, resolved); break;
    case VR_TAG_JSON: vr_json_raw(&printer->json, key, json_string_of(printer->machine, resolved, &length)); break;
    case VR_TAG_FRAME: add_frame(printer, key, (uint32_t)vr_payload(resolved)); break;
    case VR_TAG_STACK: add_stack(printer, key, (uint32_t)vr_payload(resolved)); break;
    case VR_TAG_PAIR:
        add_pair(printer, key, vr_payload(resolved) & (((uint64_t)1 << VR_PAIR_BITS) - 1), vr_payload(resolved) >> VR_PAIR_BITS, false);
        break;
    case VR_TAG_NO_ITEMS:
    case VR_TAG_LIST: return add_list(printer, key, resolved, depth);
    case VR_TAG_NO_KEYS:
    case VR_TAG_DICT: return add_dict(printer, key, resolved, depth);
    case VR_TAG_EVENT:
    case VR_TAG_SEGMENT:
    case VR_TAG_BLOCK:
    case VR_TAG_TENANT:
    case VR_TAG_ANNOTATION: return print_row_object(printer, key, vr_tag_of(resolved), (size_t)vr_first_row(resolved), depth);
    case VR_TAG_OPAQUE:
        vr_machine_lose(printer->machine, VR_LOSS_TOO_MUCH, 0);
        vr_json_null(&printer->json, key);
        break;
    default: vr_json_null(&printer->json, key);
    }
    return VRAM_OK;
}

// Appends `value` to *text. Values that JSON cannot express are written as literals.h says. Values that were not kept become null. LIMIT if
// nested deeper than MAX_DEPTH (a container may contain itself) or longer than the machine's budget allows; NO_HOST_MEMORY.
static enum vram_status json_text_write(struct vr_text *text, struct vr_machine *machine, uint64_t value) {
    const struct vr_budget *budget = &machine->builder.budget;
    const uint64_t left = budget->limit_bytes > budget->used_bytes ? budget->limit_bytes - budget->used_bytes : 0;
    struct json_printer printer = {.machine = machine, .limit_bytes = text->length + left};
    vr_json_init(&printer.json, text, false);
    VR_TRY(add_value(&printer, NULL, value, 0));
    return vr_text_status(text);
}

enum vram_status vr_json_text_string(struct vr_machine *machine, uint64_t value, uint32_t *id) {
    struct vr_text text = {0};
    enum vram_status status = json_text_write(&text, machine, value);
    if (status == VRAM_OK) status = vr_builder_string(&machine->builder, text.bytes, text.length, id);
    vr_text_release(&text);
    return status;
}

static enum vram_status add_kept(struct vr_machine *machine, enum vr_owner owner, uint64_t row, uint32_t key, uint32_t value) {
    enum vram_status status;
    if (machine->kept_order == UINT32_MAX) return VRAM_LIMIT;
    VR_MACHINE_GROW(machine, kept, machine->kept_capacity, machine->kept_count + 1, status);
    VR_TRY(status);
    machine->kept[machine->kept_count] = (struct vr_kept){row, key, value, machine->kept_order++, (uint8_t)owner};
    machine->kept_count++;
    return VRAM_OK;
}

// Sets *id to the string id of a value's text. LIMIT if the text is too long, or all texts together are, which bounds the time for
// containers that contain each other.
static enum vram_status text_of_value(struct vr_machine *machine, uint64_t value, uint32_t *id) {
    uint64_t resolved = vr_machine_resolve(machine, value), *place = vr_machine_place(machine, value);
    struct vr_text text = {0};
    if (vr_tag_of(resolved) == VR_TAG_JSON) {
        *id = (uint32_t)vr_payload(resolved);
        return VRAM_OK;
    }
    if (machine->text_bytes > machine->builder.budget.limit_bytes) return VRAM_LIMIT;
    enum vram_status status = json_text_write(&text, machine, value);
    machine->text_bytes += text.length;
    if (status == VRAM_OK) status = vr_builder_string(&machine->builder, text.bytes, text.length, id);
    vr_text_release(&text);
    bool is_container = vr_tag_of(resolved) == VR_TAG_LIST || vr_tag_of(resolved) == VR_TAG_DICT;
    if (!is_container) return status;
    vr_machine_drop(machine, value);
    // Other references to the container now resolve to the text.
    if (place != NULL && vr_tag_of(*place) == VR_TAG_OPAQUE && status == VRAM_OK) *place = vr_value(VR_TAG_JSON, *id);
    return status;
}

enum vram_status vr_keep(struct vr_machine *machine, enum vr_owner owner, uint64_t row, uint32_t key, uint64_t value) {
    uint32_t id = 0;
    const bool opaque = vr_tag_of(vr_machine_resolve(machine, value)) == VR_TAG_OPAQUE;
    const enum vram_status status = opaque ? VRAM_LIMIT : text_of_value(machine, value, &id);
    // Fail for nesting that is too deep. For text that is too long, record a loss: readers can do without it, and writers report it.
    if (status == VRAM_LIMIT && machine->error->status != VRAM_LIMIT) {
        vr_machine_lose(machine, VR_LOSS_TOO_MUCH, key);
        return VRAM_OK;
    }
    VR_TRY(status);
    return add_kept(machine, owner, row, key, id);
}

enum vram_status vr_keep_text(struct vr_machine *machine, enum vr_owner owner, uint64_t row, uint32_t key, uint32_t text) {
    return add_kept(machine, owner, row, key, text);
}

enum vram_status vr_keep_cancel(struct vr_machine *machine, enum vr_owner owner, uint64_t row, uint32_t key) {
    return add_kept(machine, owner, row, key, VR_KEPT_CANCELLED);
}

void vr_keep_settle(struct vr_machine *machine, size_t first, uint64_t row) {
    for (size_t i = first; i < machine->kept_count; i++) {
        if (machine->kept[i].row == VR_ROW_PENDING) machine->kept[i].row = row;
    }
}

void vr_keep_forget(struct vr_machine *machine, size_t first) {
    size_t left = first;
    for (size_t i = first; i < machine->kept_count; i++) {
        if (machine->kept[i].row != VR_ROW_PENDING) machine->kept[left++] = machine->kept[i];
    }
    machine->kept_count = left;
}

static int by_key(const void *left, const void *right) {
    const struct vr_kept *a = left, *b = right;
    int rows = vr_row_compare_kept(a, b);
    if (rows != 0) return rows;
    return a->key != b->key ? VR_ORDER(a->key, b->key) : VR_ORDER(a->order, b->order);
}

static int by_order(const void *left, const void *right) {
    const struct vr_kept *a = left, *b = right;
    int rows = vr_row_compare_kept(a, b);
    return rows != 0 ? rows : VR_ORDER(a->order, b->order);
}

void vr_keep_sort(struct vr_machine *machine) {
    size_t left = 0;
    if (machine->kept_count == 0) return;
    qsort(machine->kept, machine->kept_count, sizeof *machine->kept, by_key);
    for (size_t i = 0; i < machine->kept_count; i++) {
        const struct vr_kept *kept = &machine->kept[i];
        bool is_last = i + 1 == machine->kept_count || vr_row_compare_kept(kept, kept + 1) != 0 || kept->key != kept[1].key;
        if (is_last && kept->value != VR_KEPT_CANCELLED) machine->kept[left++] = *kept;
    }
    machine->kept_count = machine->kept_sorted = left;
    qsort(machine->kept, left, sizeof *machine->kept, by_order);
}

size_t vr_kept_of(const struct vr_machine *machine, enum vr_owner owner, uint64_t row, uint64_t count, size_t *first) {
    *first = vr_row_first_kept(machine, machine->kept_count, owner, row);
    return vr_row_first_kept(machine, machine->kept_count, owner, row + count) - *first;
}
