// Recognizes PyTorch's dictionaries, stores them as rows, and refuses data that only contains a recording.
#include "snapshot/schema.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "snapshot/row_tables.h"

// ---- The kind of a dictionary, by its keys.

#define BIT(word) ((uint64_t)1 << (VR_WORD_##word - VR_WORD_ADDR))

// The keys that identify a kind, most reliable first.
static const struct {
    uint64_t any_of;
    enum vr_tag kind;
} kinds[] = {
    {BIT(SEGMENTS) | BIT(DEVICE_TRACES), VR_TAG_DICT},
    {BIT(ACTION), VR_TAG_EVENT},
    {BIT(FILENAME) | BIT(LINE), VR_TAG_FRAME},
    {BIT(BLOCKS) | BIT(TOTAL_SIZE) | BIT(SEGMENT_TYPE), VR_TAG_SEGMENT},
    {BIT(STATE), VR_TAG_BLOCK},
    {BIT(REAL_SIZE), VR_TAG_TENANT},
    {BIT(STAGE), VR_TAG_ANNOTATION},
};

enum vr_tag vr_schema_classify(const uint64_t *pairs, size_t count) {
    static_assert(VR_WORD_COUNT - VR_WORD_ADDR <= 64, "a bit for every word");
    uint64_t keys = 0;
    // Both of PyTorch's writers put an event's action first, and no other dictionary begins with that key.
    if (count != 0 && pairs[0] == VR_VALUE(VR_TAG_STRING, VR_WORD_ACTION)) return VR_TAG_EVENT;
    for (size_t i = 0; i < count; i++) {
        uint64_t word = pairs[2 * i] - vr_value(VR_TAG_STRING, VR_WORD_ADDR);
        if (word < VR_WORD_COUNT - VR_WORD_ADDR) keys |= (uint64_t)1 << word;
    }
    for (size_t i = 0; i < VR_COUNT_OF(kinds); i++) {
        if (keys & kinds[i].any_of) return kinds[i].kind;
    }
    return VR_TAG_DICT;
}

static bool is_recording(struct vr_machine *machine, uint64_t value) {
    const uint64_t *pairs;
    size_t count;
    if (!vr_machine_pairs(machine, vr_machine_resolve(machine, value), &pairs, &count)) return false;
    for (size_t i = 0; i < count; i++) {
        if (pairs[2 * i] == vr_value(VR_TAG_STRING, VR_WORD_SEGMENTS) || pairs[2 * i] == vr_value(VR_TAG_STRING, VR_WORD_DEVICE_TRACES))
            return true;
    }
    return false;
}

enum vram_status vr_misplaced_dict(struct vr_machine *machine, const uint64_t *pairs, size_t count) {
    const struct vr_strings *strings = &machine->builder.strings;
    for (size_t i = 0; i < count; i++) {
        if (vr_tag_of(pairs[2 * i]) != VR_TAG_STRING || !is_recording(machine, pairs[2 * i + 1])) continue;
        return VR_MACHINE_FAIL(machine, VRAM_BAD_INPUT,
                               "not a recording but a dictionary that contains one in `%.40s`; save that one to its own file",
                               strings->bytes + strings->offset[vr_payload(pairs[2 * i])]);
    }
    return VRAM_OK;
}

enum vram_status vr_misplaced_list(struct vr_machine *machine, const uint64_t *items, size_t count) {
    const uint64_t *inner;
    size_t inner_count;
    if (count == 0) return VRAM_OK;
    if (is_recording(machine, items[0]))
        return VR_MACHINE_FAIL(machine, VRAM_BAD_INPUT, "not a recording but a list of %zu; save each to its own file", count);
    const uint64_t first = vr_machine_resolve(machine, items[0]);
    const bool lists = vr_machine_items(machine, first, &inner, &inner_count) && (inner_count == 0 || vr_tag_of(inner[0]) == VR_TAG_EVENT);
    if (!lists && vr_tag_of(first) != VR_TAG_EVENT) return VRAM_OK;
    return VR_MACHINE_FAIL(machine, VRAM_BAD_INPUT,
                           "events without their segments; save the whole result of torch.cuda.memory._snapshot()");
}

enum { MAX_DEVICES = 4096 };

// One column of an event holds both.
#define ADDRESSES ((uint64_t)(VR_HAS_ADDRESS | VR_HAS_DEVICE_FREE))

// ---- single values

static enum vram_status gather_stack(struct vr_machine *machine, const uint64_t *items, size_t count, uint32_t *frames) {
    for (size_t i = 0; i < count; i++) {
        uint64_t item = items[i];
        // Accept a frame here even without the keys that identify one.
        VR_TRY(vr_schema_recognise(machine, VR_TAG_FRAME, &item));
        item = vr_machine_resolve(machine, item);
        if (vr_tag_of(item) != VR_TAG_FRAME) {
            return VR_MACHINE_FAIL(machine, VRAM_BAD_INPUT, "an element of `frames` is %s, not a frame", vr_tag_text(vr_tag_of(item)));
        }
        frames[i] = (uint32_t)vr_payload(item);
    }
    return VRAM_OK;
}

// Converts a list to a stack; other references to the list now resolve to the stack.
static enum vram_status list_to_stack(struct vr_machine *machine, uint64_t value, uint32_t *id) {
    uint64_t *place = vr_machine_place(machine, value);
    size_t index = (size_t)vr_payload(vr_machine_resolve(machine, value)), count = machine->nodes[index].count;
    uint32_t *frames = malloc((count + 1) * sizeof *frames);
    if (frames == NULL) return VRAM_NO_HOST_MEMORY;
    machine->nodes[index].busy = true;
    enum vram_status status = gather_stack(machine, machine->nodes[index].items, count, frames);
    machine->nodes[index].busy = false;
    if (status == VRAM_OK) status = vr_builder_stack(&machine->builder, frames, count, id);
    free(frames);
    VR_TRY(status);
    vr_machine_drop(machine, value);
    if (place != NULL) *place = vr_value(VR_TAG_STACK, *id) | VR_USED;
    return VRAM_OK;
}

static enum vram_status read_stack(struct vr_machine *machine, uint64_t value, uint64_t *slot, bool *fits) {
    uint64_t resolved = vr_machine_resolve(machine, value), *place = vr_machine_place(machine, value);
    uint32_t id = 0;
    switch (vr_tag_of(resolved)) {
    case VR_TAG_NO_ITEMS: break;
    case VR_TAG_STACK:
        if (place != NULL) *place |= VR_USED;
        id = (uint32_t)vr_payload(resolved);
        break;
    case VR_TAG_LIST: VR_TRY(list_to_stack(machine, value, &id)); break;
    default: *fits = false;
    }
    *slot = id;
    return VRAM_OK;
}

// Sets *id to the string id of a string, or of the JSON text of any other value.
static enum vram_status schema_text(struct vr_machine *machine, uint64_t value, uint32_t *id) {
    uint64_t resolved = vr_machine_resolve(machine, value), *place = vr_machine_place(machine, value);
    if (vr_tag_of(resolved) == VR_TAG_STRING || vr_tag_of(resolved) == VR_TAG_JSON) {
        *id = (uint32_t)vr_payload(resolved);
        return VRAM_OK;
    }
    VR_TRY(vr_json_text_string(machine, value, id));
    vr_machine_drop(machine, value);
    // Other references to the container now resolve to the text.
    if (place != NULL) *place = vr_value(VR_TAG_JSON, *id);
    return VRAM_OK;
}

static bool read_pool(struct vr_machine *machine, uint64_t value, uint64_t *slots) {
    uint64_t resolved = vr_machine_resolve(machine, value);
    if (vr_tag_of(resolved) == VR_TAG_PAIR) {
        slots[SLOT_pool_first] = vr_payload(resolved) & (((uint64_t)1 << VR_PAIR_BITS) - 1);
        slots[SLOT_pool_second] = vr_payload(resolved) >> VR_PAIR_BITS;
        return true;
    }
    const uint64_t *items;
    size_t count;
    bool negative;
    if (!vr_machine_items(machine, resolved, &items, &count) || count != 2) return false;
    if (!vr_machine_number(machine, items[0], &slots[SLOT_pool_first], &negative) || negative) return false;
    if (!vr_machine_number(machine, items[1], &slots[SLOT_pool_second], &negative) || negative) return false;
    if (!machine->pairs_are_lists && vr_machine_items_of(machine, resolved) == VR_ITEMS_LIST) slots[SLOT_has] |= VR_HAS_POOL_LIST;
    if (vr_machine_place(machine, value) == NULL) vr_machine_drop(machine, value);
    return true;
}

// Keeps the list itself; converts its items to tenants.
static enum vram_status read_tenants(struct vr_machine *machine, uint64_t value, uint64_t *slot, bool *fits) {
    uint64_t resolved = vr_machine_resolve(machine, value);
    const uint64_t *items;
    size_t count;
    *slot = value;
    *fits = vr_machine_items(machine, resolved, &items, &count);
    if (!*fits || count == 0) return VRAM_OK;
    size_t index = (size_t)vr_payload(resolved);
    if (machine->nodes[index].busy) return VR_MACHINE_FAIL(machine, VRAM_BAD_INPUT, "a block's history contains itself");
    machine->nodes[index].busy = true;
    for (size_t i = 0; i < count && *fits; i++) {
        VR_TRY(vr_schema_recognise(machine, VR_TAG_TENANT, &machine->nodes[index].items[i]));
        *fits = vr_tag_of(vr_machine_resolve(machine, machine->nodes[index].items[i])) == VR_TAG_TENANT;
    }
    machine->nodes[index].busy = false;
    return VRAM_OK;
}

static uint64_t state_of(uint64_t word) {
    switch (word) {
    case VR_WORD_INACTIVE: return VR_STATE_INACTIVE;
    case VR_WORD_ACTIVE_ALLOCATED: return VR_STATE_ALLOCATED;
    case VR_WORD_ACTIVE_PENDING_FREE: return VR_STATE_PENDING_FREE;
    case VR_WORD_ACTIVE_AWAITING_FREE: return VR_STATE_AWAITING_FREE;
    default: return VR_STATE_UNKNOWN;
    }
}

static void read_action(uint64_t word, uint64_t *slots) {
    bool known = word >= VR_WORD_FIRST_ACTION && word < VR_WORD_FIRST_ACTION + VR_ACTION_UNKNOWN;
    slots[SLOT_action] = known ? word - VR_WORD_FIRST_ACTION : VR_ACTION_UNKNOWN;
    slots[SLOT_unknown] = known ? 0 : word;
}

// Reads names and the words of closed lists.
static bool read_field_word(enum vr_field_kind kind, uint64_t resolved, uint64_t *slots, uint64_t *slot) {
    if (vr_tag_of(resolved) != VR_TAG_STRING) return false;
    uint64_t word = vr_payload(resolved);
    switch (kind) {
    case FIELD_ACTION: read_action(word, slots); break;
    case FIELD_STATE: *slot = state_of(word); break;
    case FIELD_TYPE: *slot = word == VR_WORD_SMALL ? VR_KIND_SMALL : word == VR_WORD_LARGE ? VR_KIND_LARGE : VR_KIND_UNKNOWN; break;
    default: *slot = word;
    }
    return true;
}

// Reads a time, which may be fractional microseconds.
static bool read_time(const struct vr_machine *machine, uint64_t resolved, uint64_t *slot) {
    if (vr_tag_of(resolved) != VR_TAG_FLOAT) return false;
    const double number = floor(vr_machine_float(machine, resolved));
    if (!(number > -0x1p63 && number < 0x1p63)) return false;
    *slot = (uint64_t)(int64_t)number;
    return true;
}

static bool read_field_number(const struct vr_machine *machine, enum vr_field_kind kind, uint64_t resolved, uint64_t *slot) {
    uint64_t number;
    bool negative;
    if (!vr_machine_number(machine, resolved, &number, &negative)) {
        return (kind == FIELD_SIGNED || kind == FIELD_LOOSE) && read_time(machine, resolved, slot);
    }
    switch (kind) {
    case FIELD_SIZE:
        if (negative || number > INT64_MAX) return false;
        break;
    case FIELD_DEVICE:
        // Some files give host memory the device -1.
        if (negative && number == UINT64_MAX)
            number = 0;
        else if (negative || number >= MAX_DEVICES)
            return false;
        break;
    case FIELD_THREAD:
        if (negative || number > UINT32_MAX) number = 0;
        break;
    case FIELD_FLAG: number = number != 0; break;
    case FIELD_SIGNED:
    case FIELD_LOOSE:
        if (!negative && number > INT64_MAX) return false;
        break;
    default: break;
    }
    *slot = number;
    return true;
}

// Reads a number of an annotation, given as a number or as text; leaves the slot unchanged for any other text.
static bool read_loose(const struct vr_machine *machine, uint64_t resolved, uint64_t *slot) {
    if (vr_tag_of(resolved) != VR_TAG_STRING) return read_field_number(machine, FIELD_LOOSE, resolved, slot);
    const struct vr_strings *strings = &machine->builder.strings;
    const char *text = strings->bytes + strings->offset[vr_payload(resolved)];
    bool negative = *text == '-';
    uint64_t number = 0;
    const char *digit = text + negative;
    for (; *digit >= '0' && *digit <= '9' && number < (uint64_t)INT64_MAX / 10; digit++) number = number * 10 + (uint64_t)(*digit - '0');
    if (digit > text + negative && *digit == '\0') *slot = negative ? 0 - number : number;
    return true;
}

static enum vram_status read_field(struct vr_machine *machine, const struct vr_field *field, uint64_t value, uint64_t *slots, bool *fits) {
    uint64_t *slot = &slots[field->slot];
    uint32_t id;
    switch ((enum vr_field_kind)field->kind) {
    case FIELD_STACK: return read_stack(machine, value, slot, fits);
    case FIELD_TENANTS: return read_tenants(machine, value, slot, fits);
    case FIELD_TEXT:
        VR_TRY(schema_text(machine, value, &id));
        *slot = id;
        return VRAM_OK;
    case FIELD_BLOCKS: *slot = value; return VRAM_OK;
    case FIELD_POOL: *fits = read_pool(machine, value, slots); return VRAM_OK;
    case FIELD_NAME:
    case FIELD_ACTION:
    case FIELD_STATE:
    case FIELD_TYPE:
        *fits = read_field_word((enum vr_field_kind)field->kind, vr_machine_resolve(machine, value), slots, slot);
        return VRAM_OK;
    case FIELD_LOOSE: *fits = read_loose(machine, vr_machine_resolve(machine, value), slot); return VRAM_OK;
    default: *fits = read_field_number(machine, (enum vr_field_kind)field->kind, vr_machine_resolve(machine, value), slot); return VRAM_OK;
    }
}

static bool is_negative_whole(const struct vr_machine *machine, uint64_t resolved) {
    uint64_t number;
    bool negative;
    return vr_machine_number(machine, resolved, &number, &negative) && negative;
}

static enum vram_status wrong_type(struct vr_machine *machine, uint64_t key, const struct vr_field *field, uint64_t value) {
    static const char *const expected[] = {
#define FIELD_TEXT(name, text) text,
        VR_FIELD_KINDS(FIELD_TEXT)
#undef FIELD_TEXT
    };
    const struct vr_strings *strings = &machine->builder.strings;
    return VR_MACHINE_FAIL(machine, VRAM_BAD_INPUT, "`%s` is %s; expected %s", strings->bytes + strings->offset[vr_payload(key)],
                           vr_machine_what(machine, value), expected[field->kind]);
}

// Reads the most frequent values: numbers that fit in the value, and lists of frames that were read before. Returns false for any other.
VR_INLINE bool read_plain_field(struct vr_machine *machine, const struct vr_field *field, uint64_t value, uint64_t *slots) {
    switch ((enum vr_field_kind)field->kind) {
    case FIELD_STREAM:
    case FIELD_SIGNED:
        if (vr_tag_of(value) != VR_TAG_INT) return false;
        slots[field->slot] = (uint64_t)vr_int_of(value);
        return true;
    case FIELD_ADDRESS:
    case FIELD_SIZE:
        if (vr_tag_of(value) != VR_TAG_INT || vr_int_of(value) < 0) return false;
        slots[field->slot] = (uint64_t)vr_int_of(value);
        return true;
    case FIELD_STACK: {
        if (vr_tag_of(value) != VR_TAG_MEMO) return false;
        uint64_t *place = &machine->memo[vr_payload(value)];
        if (vr_tag_of(*place) != VR_TAG_STACK) return false;
        *place |= VR_USED;
        slots[field->slot] = vr_payload(*place);
        return true;
    }
    default: return false;
    }
}

// Returns whether writing the column reproduces the value in the file. A slot that was read as text has the text now.
static bool is_as_written(const struct vr_machine *machine, const struct vr_field *field, uint64_t resolved, const uint64_t *slots) {
    enum vr_tag tag = vr_tag_of(resolved);
    bool is_whole = tag == VR_TAG_INT || tag == VR_TAG_WIDE, is_negative = is_whole && is_negative_whole(machine, resolved);
    switch ((enum vr_field_kind)field->kind) {
    case FIELD_ADDRESS: return (is_whole && !is_negative) || tag == VR_TAG_UNSIGNED;
    case FIELD_OTHER_ADDRESS: return false;
    case FIELD_DEVICE: return is_whole && !is_negative;
    case FIELD_THREAD: return is_whole && !is_negative && slots[field->slot] == (uint64_t)vr_int_of(resolved);
    case FIELD_STREAM:
    case FIELD_SIZE:
    case FIELD_SIGNED:
    case FIELD_LOOSE: return is_whole;
    case FIELD_FLAG: return tag == VR_TAG_BOOL;
    case FIELD_TEXT: return tag == VR_TAG_STRING;
    case FIELD_STATE: return slots[field->slot] != VR_STATE_UNKNOWN;
    case FIELD_TYPE: return slots[field->slot] != VR_KIND_UNKNOWN;
    default: return true;
    }
}

// The row of the dictionary whose keys are being read; it owns the kept values.
struct owner {
    enum vr_owner kind;
    uint64_t row; // VR_ROW_PENDING until the row exists
    bool kept;    // a key with a column was kept
};

static bool is_whole(const struct vr_machine *machine, uint64_t value) {
    const enum vr_tag tag = vr_tag_of(vr_machine_resolve((struct vr_machine *)(uintptr_t)machine, value));
    return tag == VR_TAG_INT || tag == VR_TAG_WIDE || tag == VR_TAG_UNSIGNED;
}

// Records a loss if a value that becomes rows, a stack or a pool id was not a list, because the model does not record that.
static void note_loss(struct vr_machine *machine, const struct vr_field *field, uint64_t key, uint64_t resolved) {
    const enum vr_items items_of = vr_machine_items_of(machine, resolved);
    const uint64_t *items;
    size_t count;
    switch ((enum vr_field_kind)field->kind) {
    case FIELD_STACK:
    case FIELD_TENANTS:
    case FIELD_BLOCKS:
        if (items_of != VR_ITEMS_LIST) vr_machine_lose(machine, VR_LOSS_NOT_A_LIST, (uint32_t)vr_payload(key));
        break;
    case FIELD_POOL:
        if (items_of != VR_ITEMS_LIST && items_of != VR_ITEMS_TUPLE)
            vr_machine_lose(machine, VR_LOSS_NOT_A_LIST, (uint32_t)vr_payload(key));
        if (vr_machine_items(machine, resolved, &items, &count) && count == 2 &&
            !(is_whole(machine, items[0]) && is_whole(machine, items[1])))
            vr_machine_lose(machine, VR_LOSS_NUMBER, (uint32_t)vr_payload(key));
        break;
    default: break;
    }
}

static enum vram_status read_known(struct vr_machine *machine, struct owner *owner, const struct vr_field *field, const uint64_t *pair,
                                   uint64_t *slots) {
    uint64_t resolved = vr_machine_resolve(machine, pair[1]);
    bool fits = true, is_none = vr_tag_of(pair[1]) == VR_TAG_NONE;
    note_loss(machine, field, pair[0], resolved);
    // None means the same as an absent key.
    if (!is_none) VR_TRY(read_field(machine, field, pair[1], slots, &fits));
    if (!fits) return wrong_type(machine, pair[0], field, pair[1]);
    // For frames and annotations, the bits only say which keys are absent.
    if (!is_none || owner->kind == VR_OWNER_FRAME || owner->kind == VR_OWNER_ANNOTATION) slots[SLOT_has] |= field->has;
    if (!is_none && is_as_written(machine, field, resolved, slots)) {
        return owner->kept ? vr_keep_cancel(machine, owner->kind, owner->row, (uint32_t)vr_payload(pair[0])) : VRAM_OK;
    }
    owner->kept = machine->kept_known = true;
    // The text is already stored.
    if (!is_none && field->kind == FIELD_TEXT) {
        return vr_keep_text(machine, owner->kind, owner->row, (uint32_t)vr_payload(pair[0]), (uint32_t)slots[field->slot]);
    }
    return vr_keep(machine, owner->kind, owner->row, (uint32_t)vr_payload(pair[0]), pair[1]);
}

static enum vram_status read_pairs(struct vr_machine *machine, struct owner *owner, const struct vr_field *fields, const uint64_t *pairs,
                                   size_t count, uint64_t *slots) {
    for (; count != 0; count--, pairs += 2) {
        uint64_t word = pairs[0] - VR_VALUE(VR_TAG_STRING, 0);
        const struct vr_field *field = word < VR_WORD_COUNT ? &fields[word] : NULL;
        if (field == NULL || field->kind == FIELD_NOTHING) {
            if (vr_tag_of(pairs[0]) == VR_TAG_STRING)
                VR_TRY(vr_keep(machine, owner->kind, owner->row, (uint32_t)word, pairs[1]));
            else
                vr_machine_lose(machine, VR_LOSS_KEY, 0);
            vr_machine_drop(machine, pairs[1]);
        } else if (VR_LIKELY(!owner->kept && read_plain_field(machine, field, pairs[1], slots))) {
            slots[SLOT_has] |= field->has;
        } else {
            VR_TRY(read_known(machine, owner, field, pairs, slots));
        }
    }
    return VRAM_OK;
}

void vr_schema_put_action(uint64_t word, uint64_t *slots) { read_action(word, slots); }
void vr_schema_put_state(uint64_t word, uint64_t *slots) { slots[SLOT_state] = state_of(word); }

// Frames and annotations have no has-bits, so keep that a key is absent.
static enum vram_status keep_absences(struct vr_machine *machine, const struct owner *owner, const struct vr_field *fields, uint64_t has) {
    static const enum vr_word always[] = {VR_WORD_NAME, VR_WORD_FILENAME, VR_WORD_LINE, VR_WORD_STAGE, VR_WORD_DEVICE, VR_WORD_TIME_US};
    for (size_t i = 0; i < VR_COUNT_OF(always); i++) {
        const struct vr_field *field = &fields[always[i]];
        if (field->kind == FIELD_NOTHING || (has & field->has) != 0) continue;
        VR_TRY(vr_keep_text(machine, owner->kind, owner->row, always[i], 0));
    }
    return VRAM_OK;
}

static bool is_kept_from(const struct vr_machine *machine, size_t first, uint32_t key, uint32_t value) {
    size_t at = first;
    while (at < machine->kept_count && (machine->kept[at].key != key || machine->kept[at].value != value)) at++;
    return at < machine->kept_count;
}

// Returns whether the entries kept from `first` on equal those of frame `id`, in any order.
static bool is_kept_of_frame(const struct vr_machine *machine, uint32_t id, size_t first) {
    const uint64_t known = vr_map_get(&machine->kept_of_frame, id);
    size_t same = 0;
    if (known == 0) return first == machine->kept_count;
    for (size_t at = (size_t)known - 1; at < first && machine->kept[at].row == id && machine->kept[at].owner == VR_OWNER_FRAME;
         at++, same++) {
        if (!is_kept_from(machine, first, machine->kept[at].key, machine->kept[at].value)) return false;
    }
    return first + same == machine->kept_count;
}

// Stores a frame. Frames are identified by name, file and line; the first one determines the extra keys and values.
static enum vram_status store_frame(struct vr_machine *machine, const uint64_t *slots, size_t first_kept, uint64_t *value) {
    uint32_t id, known = machine->builder.frames.count;
    VR_TRY(vr_builder_frame(&machine->builder, (uint32_t)slots[SLOT_name], (uint32_t)slots[SLOT_filename], (int64_t)slots[SLOT_line], &id));
    if (id < known) {
        if (!is_kept_of_frame(machine, id, first_kept)) vr_machine_lose(machine, VR_LOSS_FRAME, 0);
        vr_keep_forget(machine, first_kept);
    } else if (first_kept != machine->kept_count) {
        VR_TRY(vr_map_set(&machine->kept_of_frame, id, first_kept + 1));
        vr_keep_settle(machine, first_kept, id);
    }
    *value = vr_value(VR_TAG_FRAME, id);
    return VRAM_OK;
}

// Separates an event's address from its device_free, which share a column. If the file has both and they differ, the column holds
// device_free, and the address is kept as text. before_has and before_address: the slots before the pairs were read.
static enum vram_status part_addresses(struct vr_machine *machine, const struct owner *owner, const uint64_t *pairs, size_t count,
                                       uint64_t before_has, uint64_t before_address, uint64_t *slots) {
    uint64_t address = before_address, available = before_address, number;
    char digits[24];
    uint32_t text;
    bool negative, had_both = (before_has & ADDRESSES) == ADDRESSES;
    for (; count != 0; count--, pairs += 2) {
        const bool is_address = pairs[0] == VR_VALUE(VR_TAG_STRING, VR_WORD_ADDR);
        if (!is_address && pairs[0] != VR_VALUE(VR_TAG_STRING, VR_WORD_DEVICE_FREE)) continue;
        if (!vr_machine_number(machine, vr_machine_resolve(machine, pairs[1]), &number, &negative)) continue;
        if (negative) return VRAM_OK; // kept as it is
        if (is_address) had_both = false;
        *(is_address ? &address : &available) = number;
    }
    slots[SLOT_address] = available;
    if (had_both || address == available) return VRAM_OK;
    const int length = snprintf(digits, sizeof digits, "%" PRIu64, address);
    VR_TRY(vr_builder_string(&machine->builder, digits, (size_t)length, &text));
    machine->kept_known = true;
    return vr_keep_text(machine, owner->kind, owner->row, VR_WORD_ADDR, text);
}

enum vram_status vr_schema_store(struct vr_machine *machine, enum vr_tag kind, const uint64_t *pairs, size_t count, uint64_t *value) {
    uint64_t slots[SLOT_COUNT] = {0};
    const uint64_t frame_has = VR_HAS_ROW_NAME | VR_HAS_ROW_FILENAME | VR_HAS_ROW_LINE,
                   annotation_has = VR_HAS_ROW_NAME | VR_HAS_ROW_STAGE | VR_HAS_DEVICE | VR_HAS_TIME;
    struct owner owner = {.kind = vr_row_owners[kind], .row = VR_ROW_PENDING};
    size_t first_kept = machine->kept_count, row;
    slots[SLOT_action] = VR_ACTION_UNKNOWN;
    slots[SLOT_state] = VR_STATE_UNKNOWN;
    if (kind == VR_TAG_ANNOTATION) slots[SLOT_device] = (uint64_t)(int64_t)-1;
    VR_TRY(read_pairs(machine, &owner, vr_row_fields[kind], pairs, count, slots));
    if (kind == VR_TAG_EVENT && VR_UNLIKELY((slots[SLOT_has] & ADDRESSES) == ADDRESSES))
        VR_TRY(part_addresses(machine, &owner, pairs, count, 0, 0, slots));
    bool lacks = (kind == VR_TAG_FRAME && slots[SLOT_has] != frame_has) || (kind == VR_TAG_ANNOTATION && slots[SLOT_has] != annotation_has);
    if (lacks) VR_TRY(keep_absences(machine, &owner, vr_row_fields[kind], slots[SLOT_has]));
    if (kind == VR_TAG_FRAME) return store_frame(machine, slots, first_kept, value);
    VR_TRY(vr_row_add(machine, kind, &row));
    vr_keep_settle(machine, first_kept, row);
    VR_TRY(vr_row_put(machine, kind, row, slots));
    *value = vr_value(kind, row);
    return VRAM_OK;
}

enum vram_status vr_schema_amend(struct vr_machine *machine, uint64_t value, const uint64_t *pairs, size_t count) {
    enum vr_tag kind = vr_tag_of(value);
    if (kind == VR_TAG_FRAME) return VR_MACHINE_FAIL(machine, VRAM_BAD_INPUT, "a frame is changed after it was complete");
    uint64_t slots[SLOT_COUNT] = {0};
    struct owner owner = {.kind = vr_row_owners[kind], .row = vr_first_row(value), .kept = machine->kept_known};
    vr_row_take(machine, kind, (size_t)vr_first_row(value), slots);
    const uint64_t has = slots[SLOT_has], address = slots[SLOT_address];
    VR_TRY(read_pairs(machine, &owner, vr_row_fields[kind], pairs, count, slots));
    if (kind == VR_TAG_EVENT && (slots[SLOT_has] & ADDRESSES) == ADDRESSES)
        VR_TRY(part_addresses(machine, &owner, pairs, count, has, address, slots));
    return vr_row_put(machine, kind, (size_t)vr_first_row(value), slots);
}

enum vram_status vr_schema_recognise(struct vr_machine *machine, enum vr_tag kind, uint64_t *value) {
    uint64_t *place = vr_machine_place(machine, *value);
    uint64_t *at = place == NULL ? value : place;
    const uint64_t *pairs;
    size_t count;
    if (!vr_machine_pairs(machine, *at, &pairs, &count)) return VRAM_OK;
    if (kind == VR_TAG_DICT) kind = vr_schema_classify(pairs, count);
    if (kind == VR_TAG_DICT) return VRAM_OK;
    if (vr_tag_of(*at) == VR_TAG_NO_KEYS) return vr_schema_store(machine, kind, pairs, count, at);
    size_t index = (size_t)vr_payload(*at);
    if (machine->nodes[index].busy) return VR_MACHINE_FAIL(machine, VRAM_BAD_INPUT, "a dictionary contains itself");
    machine->nodes[index].busy = true;
    VR_TRY(vr_schema_store(machine, kind, pairs, count, at));
    vr_machine_release_node(machine, index);
    return VRAM_OK;
}
