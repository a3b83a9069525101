// The values of the machine: words, numbers, containers, and the rows that dictionaries become.
#include <math.h>

#include "snapshot/pickle_vm.h"
#include "snapshot/row_tables.h"
#include "snapshot/vocabulary.h"

const char *vr_word_text(enum vr_word word) {
    static const char *const words[VR_WORD_COUNT] = {"",
#define ACTION_TEXT(name, text) text,
                                                     VR_ACTIONS(ACTION_TEXT)
#undef ACTION_TEXT
#define WORD_TEXT(name, text) text,
                                                         VR_WORDS(WORD_TEXT)
#undef WORD_TEXT
#define LATER_FIRST(column)
#define LATER_LATER(column)                                      #column,
#define VR_FIELD(column, type, density, number, LOG, since, KEY) LATER_##since(column)
#include "model/entry_fields.def"
    };
    return words[word];
}

// ---- numbers and containers

const char *vr_tag_text(enum vr_tag tag) {
    static const char *const texts[] = {
#define TAG_TEXT(name, text) text,
        VR_TAGS(TAG_TEXT)
#undef TAG_TEXT
    };
    return (size_t)tag < VR_COUNT_OF(texts) ? texts[tag] : "nothing";
}

double vr_machine_float(const struct vr_machine *machine, uint64_t resolved) {
    double number;
    memcpy(&number, &machine->wide[vr_payload(resolved)], sizeof number);
    return number;
}

// Accepts a float as an integer, because other writers of JSON write integers as 1e9 or 5.0.
static bool whole_float(double number, uint64_t *bits, bool *negative) {
    if (!(number > -0x1p63 && number < 0x1p63) || number != floor(number)) return false;
    *negative = number < 0;
    *bits = (uint64_t)(int64_t)number;
    return true;
}

bool vr_machine_number(const struct vr_machine *machine, uint64_t resolved, uint64_t *number, bool *negative) {
    switch (vr_tag_of(resolved)) {
    case VR_TAG_INT:
        *number = (uint64_t)vr_int_of(resolved);
        *negative = vr_int_of(resolved) < 0;
        return true;
    case VR_TAG_BOOL:
        *number = vr_payload(resolved);
        *negative = false;
        return true;
    case VR_TAG_WIDE:
        *number = machine->wide[vr_payload(resolved)];
        *negative = (int64_t)*number < 0;
        return true;
    case VR_TAG_UNSIGNED:
        *number = machine->wide[vr_payload(resolved)];
        *negative = false;
        return true;
    case VR_TAG_FLOAT: return whole_float(vr_machine_float(machine, resolved), number, negative);
    default: return false;
    }
}

const char *vr_machine_what(const struct vr_machine *machine, uint64_t value) {
    const uint64_t resolved = vr_machine_resolve((struct vr_machine *)(uintptr_t)machine, value);
    const struct vr_strings *strings = &machine->builder.strings;
    if (vr_tag_of(resolved) != VR_TAG_JSON) return vr_tag_text(vr_tag_of(resolved));
    const char first = strings->bytes[strings->offset[vr_payload(resolved)]];
    return first == '-' || (first >= '0' && first <= '9') ? "a number with more than 64 bits" : vr_tag_text(VR_TAG_JSON);
}

// ---- containers

bool vr_machine_items(const struct vr_machine *machine, uint64_t resolved, const uint64_t **items, size_t *count) {
    if (vr_tag_of(resolved) == VR_TAG_NO_ITEMS) {
        *items = NULL;
        *count = 0;
        return true;
    }
    if (vr_tag_of(resolved) != VR_TAG_LIST) return false;
    *items = machine->nodes[vr_payload(resolved)].items;
    *count = machine->nodes[vr_payload(resolved)].count;
    return true;
}

void vr_machine_note_items(struct vr_machine *machine, const char *key, uint64_t resolved) {
    uint32_t id = 0;
    if (vr_machine_items_of(machine, resolved) == VR_ITEMS_LIST) return;
    (void)vr_builder_find_string(&machine->builder, key, strlen(key), &id);
    vr_machine_lose(machine, VR_LOSS_NOT_A_LIST, id);
}

void vr_machine_release_node(struct vr_machine *machine, size_t index) {
    struct vr_node *node = &machine->nodes[index];
    free(node->items);
    machine->builder.budget.used_bytes -= (uint64_t)node->capacity * sizeof *node->items;
    memset(node, 0, sizeof *node);
    if (index + 1 == machine->node_count) machine->node_count--;
}

void vr_machine_drop(struct vr_machine *machine, uint64_t value) {
    uint64_t *place = vr_machine_place(machine, value);
    uint64_t resolved = vr_machine_resolve(machine, value);
    if (vr_tag_of(resolved) != VR_TAG_LIST && vr_tag_of(resolved) != VR_TAG_DICT) return;
    if (machine->nodes[vr_payload(resolved)].busy) return;
    vr_machine_release_node(machine, (size_t)vr_payload(resolved));
    if (place != NULL) *place = vr_value(VR_TAG_OPAQUE, 0);
}

enum vram_status vr_machine_last_values(struct vr_machine *machine, uint64_t resolved, uint64_t **unique, size_t *unique_count) {
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
        if (vr_tag_of(pairs[2 * i]) != VR_TAG_STRING) {
            vr_machine_lose(machine, VR_LOSS_KEY, 0);
            continue;
        }
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

// ---- Rows that dictionaries become: their keys, and how values are moved into columns and back.

// ---- keys

#define ROW(word, kind, slot, has) [VR_WORD_##word] = {FIELD_##kind, SLOT_##slot, has}

const struct vr_field vr_event_fields[VR_WORD_COUNT] = {
    ROW(ACTION, ACTION, action, VR_HAS_ACTION),
    ROW(ADDR, ADDRESS, address, VR_HAS_ADDRESS),
    ROW(DEVICE_FREE, ADDRESS, address, VR_HAS_DEVICE_FREE),
    ROW(SIZE, SIZE, size_bytes, VR_HAS_SIZE),
    ROW(STREAM, STREAM, stream, VR_HAS_STREAM),
    ROW(TIME_US, SIGNED, time_us, VR_HAS_TIME),
    ROW(FRAMES, STACK, stack, VR_HAS_FRAMES),
    ROW(POOL_ID, POOL, pool_first, VR_HAS_POOL_ID),
#define VR_FIELD(...)
#define VR_NUMBER(column, type, density, number, LOG, since, KEY) ROW(KEY, THREAD, column, VR_HAS_##KEY),
#define VR_TEXT(column, type, density, number, LOG, since, KEY)   ROW(KEY, TEXT, column, VR_HAS_##KEY),
#include "model/entry_fields.def"
};

static const struct vr_field segment_fields[VR_WORD_COUNT] = {
    ROW(DEVICE, DEVICE, device, VR_HAS_DEVICE),
    ROW(ADDRESS, ADDRESS, address, VR_HAS_ADDRESS),
    ROW(TOTAL_SIZE, SIZE, total_bytes, VR_HAS_TOTAL_SIZE),
    ROW(ALLOCATED_SIZE, SIZE, allocated_bytes, VR_HAS_ALLOCATED_SIZE),
    ROW(ACTIVE_SIZE, SIZE, active_bytes, VR_HAS_ACTIVE_SIZE),
    ROW(REQUESTED_SIZE, SIZE, requested_bytes, VR_HAS_REQUESTED_SIZE),
    ROW(STREAM, STREAM, stream, VR_HAS_STREAM),
    ROW(SEGMENT_TYPE, TYPE, kind, VR_HAS_SEGMENT_TYPE),
    ROW(SEGMENT_POOL_ID, POOL, pool_first, VR_HAS_POOL_ID),
    ROW(IS_EXPANDABLE, FLAG, expandable, VR_HAS_EXPANDABLE),
    ROW(REGISTRATION_COUNTER, ADDRESS, counter, VR_HAS_COUNTER),
    ROW(FRAMES, STACK, stack, VR_HAS_FRAMES),
    ROW(BLOCKS, BLOCKS, blocks, VR_HAS_BLOCKS),
};

static const struct vr_field block_fields[VR_WORD_COUNT] = {
    ROW(ADDR, OTHER_ADDRESS, addr, VR_HAS_ADDR),    ROW(ADDRESS, ADDRESS, address, VR_HAS_ADDRESS),
    ROW(SIZE, SIZE, size_bytes, VR_HAS_SIZE),       ROW(REQUESTED_SIZE, SIZE, requested_bytes, VR_HAS_REQUESTED_SIZE),
    ROW(STATE, STATE, state, VR_HAS_STATE),         ROW(FRAMES, STACK, stack, VR_HAS_FRAMES),
    ROW(HISTORY, TENANTS, tenants, VR_HAS_HISTORY),
};

static const struct vr_field tenant_fields[VR_WORD_COUNT] = {
    ROW(ADDR, ADDRESS, address, VR_HAS_ADDRESS),
    ROW(REAL_SIZE, SIZE, size_bytes, VR_HAS_SIZE),
    ROW(FRAMES, STACK, stack, VR_HAS_FRAMES),
    ROW(CPP_FRAMES, STACK, cpp_stack, VR_HAS_CPP_FRAMES),
};

static const struct vr_field frame_fields[VR_WORD_COUNT] = {
    ROW(NAME, NAME, name, VR_HAS_ROW_NAME),
    ROW(FILENAME, NAME, filename, VR_HAS_ROW_FILENAME),
    ROW(LINE, ADDRESS, line, VR_HAS_ROW_LINE),
};

static const struct vr_field annotation_fields[VR_WORD_COUNT] = {
    ROW(NAME, TEXT, name, VR_HAS_ROW_NAME),
    ROW(STAGE, TEXT, stage, VR_HAS_ROW_STAGE),
    ROW(DEVICE, LOOSE, device, VR_HAS_DEVICE),
    ROW(TIME_US, LOOSE, time_us, VR_HAS_TIME),
};

const struct vr_field *const vr_row_fields[VR_TAG_MEMO] = {
    [VR_TAG_EVENT] = vr_event_fields, [VR_TAG_SEGMENT] = segment_fields, [VR_TAG_BLOCK] = block_fields,
    [VR_TAG_TENANT] = tenant_fields,  [VR_TAG_FRAME] = frame_fields,     [VR_TAG_ANNOTATION] = annotation_fields,
};

const enum vr_owner vr_row_owners[VR_TAG_MEMO] = {
    [VR_TAG_EVENT] = VR_OWNER_EVENT,   [VR_TAG_SEGMENT] = VR_OWNER_SEGMENT, [VR_TAG_BLOCK] = VR_OWNER_BLOCK,
    [VR_TAG_TENANT] = VR_OWNER_TENANT, [VR_TAG_FRAME] = VR_OWNER_FRAME,     [VR_TAG_ANNOTATION] = VR_OWNER_ANNOTATION};

// ---- columns

// Store the slots in a row and load them, column by column.
#define PUT(type, name)  table->name[row] = (type)slots[SLOT_##name];
#define TAKE(type, name) slots[SLOT_##name] = (uint64_t)table->name[row];

#define PUT_DENSE(type, name)   table->name[row] = (type)slots[SLOT_##name];
#define TAKE_DENSE(type, name)  slots[SLOT_##name] = (uint64_t)table->name[row];
#define PUT_SPARSE(type, name)  VR_COLUMN_PUT_SPARSE(table->name, held, row, (type)slots[SLOT_##name]);
#define PUT_ALIKE(type, name)   VR_COLUMN_PUT_ALIKE(table->name, held, table->count, row, (type)slots[SLOT_##name]);
#define TAKE_ALIKE(type, name)  slots[SLOT_##name] = (table->name.apart == NULL ? 0 : table->name.apart[row]) ^ table->name.common;
#define TAKE_SPARSE(type, name) slots[SLOT_##name] = table->name == NULL ? 0 : table->name[row];

static enum vram_status put_event_row(struct vr_history *table, size_t held, size_t row, const uint64_t *slots) {
#define VR_FIELD(column, type, density, ...) PUT_##density(type, column)
#include "model/entry_fields.def"
    return VRAM_OK;
}
static void take_event(const struct vr_history *table, size_t row, uint64_t *slots) {
#define VR_FIELD(column, type, density, ...) TAKE_##density(type, column)
#include "model/entry_fields.def"
}
static void put_segment_row(struct vr_segments *table, size_t row, const uint64_t *slots) { VR_SEGMENT_COLUMNS(PUT) }
static void take_segment(const struct vr_segments *table, size_t row, uint64_t *slots) { VR_SEGMENT_COLUMNS(TAKE) }
static void put_block(struct vr_blocks *table, size_t row, const uint64_t *slots) { VR_BLOCK_COLUMNS(PUT) }
static void take_block(const struct vr_blocks *table, size_t row, uint64_t *slots) { VR_BLOCK_COLUMNS(TAKE) }

// Completes a block: missing values come from its newest tenant, the first of the list (rule R2 of the data's README), or else from its
// size.
static void complete_block(struct vr_machine *machine, uint64_t *slots) {
    const uint64_t *items = NULL;
    size_t count = 0;
    if (slots[SLOT_tenants] != 0) (void)vr_machine_items(machine, vr_machine_resolve(machine, slots[SLOT_tenants]), &items, &count);
    const struct vr_tenant *tenant = count == 0 ? NULL : &machine->tenants[vr_first_row(vr_machine_resolve(machine, items[0]))];
    if (tenant != NULL && !(slots[SLOT_has] & VR_HAS_FRAMES)) slots[SLOT_stack] = tenant->stack;
    if ((slots[SLOT_has] & VR_HAS_ADDR) && !(slots[SLOT_has] & VR_HAS_ADDRESS)) slots[SLOT_address] = slots[SLOT_addr];
    if (slots[SLOT_has] & VR_HAS_REQUESTED_SIZE) return;
    slots[SLOT_requested_bytes] = tenant != NULL && (tenant->has & VR_HAS_SIZE) ? tenant->size_bytes : slots[SLOT_size_bytes];
}

static enum vram_status keep_tenants(struct vr_machine *machine, size_t block, uint64_t list) {
    enum vram_status status;
    if (list == 0) return VRAM_OK;
    VR_MACHINE_GROW(machine, formers, machine->former_capacity, machine->former_count + 1, status);
    if (status == VRAM_OK) machine->formers[machine->former_count++] = (struct vr_former){block, list};
    return status;
}

enum vram_status vr_row_put(struct vr_machine *machine, enum vr_tag kind, size_t row, uint64_t *slots) {
    switch (kind) {
    case VR_TAG_EVENT: return put_event_row(&machine->events, machine->event_held, row, slots);
    case VR_TAG_SEGMENT:
        put_segment_row(&machine->segments, row, slots);
        machine->segment_blocks[row] = slots[SLOT_blocks];
        break;
    case VR_TAG_BLOCK:
        complete_block(machine, slots);
        put_block(&machine->blocks, row, slots);
        return keep_tenants(machine, row, slots[SLOT_tenants]);
    case VR_TAG_TENANT:
        machine->tenants[row] = (struct vr_tenant){.address = slots[SLOT_address],
                                                   .size_bytes = slots[SLOT_size_bytes],
                                                   .stack = (uint32_t)slots[SLOT_stack],
                                                   .cpp_stack = (uint32_t)slots[SLOT_cpp_stack],
                                                   .has = (uint32_t)slots[SLOT_has]};
        break;
    default:
        machine->annotations[row] = (struct vr_annotation){(uint32_t)slots[SLOT_name], (uint32_t)slots[SLOT_stage],
                                                           (int64_t)slots[SLOT_device], (int64_t)slots[SLOT_time_us]};
    }
    return VRAM_OK;
}

void vr_row_take(const struct vr_machine *machine, enum vr_tag kind, size_t row, uint64_t *slots) {
    switch (kind) {
    case VR_TAG_EVENT: take_event(&machine->events, row, slots); break;
    case VR_TAG_SEGMENT:
        take_segment(&machine->segments, row, slots);
        slots[SLOT_blocks] = machine->segment_blocks[row];
        break;
    case VR_TAG_BLOCK: take_block(&machine->blocks, row, slots); break;
    case VR_TAG_TENANT:
        slots[SLOT_size_bytes] = machine->tenants[row].size_bytes;
        slots[SLOT_address] = machine->tenants[row].address;
        slots[SLOT_stack] = machine->tenants[row].stack;
        slots[SLOT_cpp_stack] = machine->tenants[row].cpp_stack;
        slots[SLOT_has] = machine->tenants[row].has;
        break;
    default:
        slots[SLOT_name] = machine->annotations[row].name;
        slots[SLOT_stage] = machine->annotations[row].stage;
        slots[SLOT_device] = (uint64_t)machine->annotations[row].device;
        slots[SLOT_time_us] = (uint64_t)machine->annotations[row].time_us;
        slots[SLOT_has] = VR_HAS_ROW_NAME | VR_HAS_ROW_STAGE | VR_HAS_DEVICE | VR_HAS_TIME;
    }
}

enum vram_status vr_row_add(struct vr_machine *machine, enum vr_tag kind, size_t *row) {
    enum { FIRST_ROWS = 64 }; // enough to avoid growing small tables, because growth moves every column
    struct vr_budget *budget = &machine->builder.budget;
    enum vram_status status;
    size_t *count = kind == VR_TAG_EVENT     ? &machine->events.count
                    : kind == VR_TAG_SEGMENT ? &machine->segments.count
                    : kind == VR_TAG_BLOCK   ? &machine->blocks.count
                    : kind == VR_TAG_TENANT  ? &machine->tenant_count
                                             : &machine->annotation_count;
    if (*count >= ((uint64_t)1 << VR_ROW_BITS) - 1) return VRAM_LIMIT;
    const size_t needed = *count == 0 ? FIRST_ROWS : *count + 1;
    switch (kind) {
    case VR_TAG_EVENT:
        status =
            vr_columns_grow_ahead(&vr_history_columns, &machine->events, &machine->event_capacity, &machine->event_held, needed, budget);
        break;
    case VR_TAG_SEGMENT:
        VR_MACHINE_GROW(machine, segment_blocks, machine->segment_blocks_capacity, *count + 1, status);
        VR_TRY(status);
        status = vr_columns_grow(&vr_segment_columns, &machine->segments, &machine->segment_capacity, needed, budget);
        break;
    case VR_TAG_BLOCK: status = vr_columns_grow(&vr_block_columns, &machine->blocks, &machine->block_capacity, needed, budget); break;
    case VR_TAG_TENANT: VR_MACHINE_GROW(machine, tenants, machine->tenant_capacity, *count + 1, status); break;
    default: VR_MACHINE_GROW(machine, annotations, machine->annotation_capacity, *count + 1, status);
    }
    if (status == VRAM_OK) *row = (*count)++;
    return status;
}

enum vram_status vr_row_add_event(struct vr_machine *machine, const uint64_t *slots, uint64_t *value) {
    size_t row;
    VR_TRY(vr_row_add(machine, VR_TAG_EVENT, &row));
    VR_TRY(put_event_row(&machine->events, machine->event_held, row, slots));
    *value = vr_value(VR_TAG_EVENT, row);
    return VRAM_OK;
}

enum vram_status vr_row_add_block(struct vr_machine *machine, uint64_t *slots, uint64_t *value) {
    size_t row;
    VR_TRY(vr_row_add(machine, VR_TAG_BLOCK, &row));
    VR_TRY(vr_row_put(machine, VR_TAG_BLOCK, row, slots));
    *value = vr_value(VR_TAG_BLOCK, row);
    return VRAM_OK;
}

// ---- extras: values that no column holds

uint64_t vr_row_history(const struct vr_machine *machine, size_t block) {
    for (size_t i = machine->former_count; i-- > 0;)
        if (machine->formers[i].block == block) return machine->formers[i].list;
    return 0;
}

int vr_row_compare_kept(const struct vr_kept *a, const struct vr_kept *b) {
    return a->owner != b->owner ? VR_ORDER(a->owner, b->owner) : VR_ORDER(a->row, b->row);
}

size_t vr_row_first_kept(const struct vr_machine *machine, size_t sorted, enum vr_owner owner, uint64_t row) {
    const struct vr_kept wanted = {.owner = (uint8_t)owner, .row = row};
    size_t first;
    VR_LOWER_BOUND(first, i, 0, sorted, vr_row_compare_kept(&machine->kept[i], &wanted) < 0);
    return first;
}
