// Recognizes bytes that a pickle repeats: lists of frames from the previous step, and keys from the previous row.
#include "snapshot/repeated_bytes.h"

#include "snapshot/opcodes.h"
#include "snapshot/row_tables.h"

const uint8_t vr_opcode_bytes[256] = {
#define OPCODE_BYTES(code, name, argument) [(code)] = 1 + (argument),
    VR_OPCODES(OPCODE_BYTES)
#undef OPCODE_BYTES
};

enum {
    MAX_BYTES = 1 << 20,
    TABLE_BYTES = VR_ECHO_RUNS * (sizeof(struct vr_echo_run) + sizeof(uint16_t)) + VR_ECHO_GUESSES * sizeof(uint16_t)
};

static size_t guess_slot(const struct vr_echo *echo) {
    return (size_t)(vr_mix64((uint64_t)echo->last << 32 | echo->last_but_one) % VR_ECHO_GUESSES);
}

void vr_echo_release(struct vr_echo *echo, struct vr_budget *budget) {
    if (echo->runs != NULL) budget->used_bytes -= TABLE_BYTES;
    budget->used_bytes -= echo->capacity;
    free(echo->bytes);
    free(echo->runs);
    free(echo->run_of);
    free(echo->guess);
    memset(echo, 0, sizeof *echo);
}

const struct vr_echo_run *vr_echo_guess(const struct vr_echo *echo, const unsigned char *bytes, const unsigned char *end) {
    if (echo->runs == NULL) return NULL;
    uint16_t guess = echo->guess[guess_slot(echo)];
    const struct vr_echo_run *run = guess == 0 ? NULL : &echo->runs[guess - 1];
    if (run == NULL || (size_t)(end - bytes) < run->length) return NULL;
    return memcmp(bytes, echo->bytes + run->offset, run->length) == 0 ? run : NULL;
}

static void remember_run(struct vr_echo *echo, uint32_t run) {
    echo->last_but_one = echo->last;
    echo->last = run;
}

void vr_echo_hit(struct vr_echo *echo, const struct vr_echo_run *run) {
    echo->hits++;
    remember_run(echo, (uint32_t)(run - echo->runs) + 1);
}

static bool allocate_tables(struct vr_echo *echo, struct vr_budget *budget) {
    if (echo->runs != NULL) return true;
    if (vr_budget_charge(budget, 1, TABLE_BYTES) != VRAM_OK) return false;
    echo->runs = malloc(VR_ECHO_RUNS * sizeof *echo->runs);
    echo->run_of = calloc(VR_ECHO_RUNS, sizeof *echo->run_of);
    echo->guess = calloc(VR_ECHO_GUESSES, sizeof *echo->guess);
    if (echo->runs != NULL && echo->run_of != NULL && echo->guess != NULL) return true;
    free(echo->runs);
    free(echo->run_of);
    free(echo->guess);
    echo->runs = NULL;
    echo->run_of = echo->guess = NULL;
    budget->used_bytes -= TABLE_BYTES;
    return false;
}

static uint16_t *run_slot(const struct vr_echo *echo, uint32_t stack) { return &echo->run_of[vr_mix64(stack) % VR_ECHO_RUNS]; }

// Sets the guess for the list that follows the last two to `run`.
static void learn_next_run(struct vr_echo *echo, uint16_t run) {
    if (run != 0) echo->guess[guess_slot(echo)] = run;
    remember_run(echo, run);
}

bool vr_echo_miss(struct vr_echo *echo, const unsigned char *bytes, size_t length, uint32_t stack) {
    echo->misses++;
    if (echo->runs == NULL) return length <= MAX_BYTES;
    uint16_t known = *run_slot(echo, stack);
    const struct vr_echo_run *run = known == 0 ? NULL : &echo->runs[known - 1];
    bool same = run != NULL && run->stack == stack && run->length == length && memcmp(echo->bytes + run->offset, bytes, length) == 0;
    bool has_room = echo->run_count < VR_ECHO_RUNS && length <= MAX_BYTES - echo->used;
    if (!same && has_room) return true;
    learn_next_run(echo, same ? known : 0);
    return false;
}

void vr_echo_keep(struct vr_echo *echo, struct vr_budget *budget, const unsigned char *bytes, size_t length, uint32_t stack) {
    if (!allocate_tables(echo, budget)) return;
    void *kept = echo->bytes;
    enum vram_status status = vr_budget_grow(budget, &kept, &echo->capacity, echo->used + length, 1);
    echo->bytes = kept;
    if (status != VRAM_OK) return;
    memcpy(echo->bytes + echo->used, bytes, length);
    echo->runs[echo->run_count++] = (struct vr_echo_run){(uint32_t)echo->used, (uint32_t)length, stack};
    echo->used += length;
    *run_slot(echo, stack) = (uint16_t)echo->run_count;
    learn_next_run(echo, (uint16_t)echo->run_count);
}

void vr_echo_renew(struct vr_echo *echo, uint64_t generation) {
    if (echo->generation == generation) return;
    echo->generation = generation;
    echo->used = echo->run_count = echo->last = echo->last_but_one = 0;
    if (echo->runs == NULL) return;
    memset(echo->run_of, 0, VR_ECHO_RUNS * sizeof *echo->run_of);
    memset(echo->guess, 0, VR_ECHO_GUESSES * sizeof *echo->guess);
}

// Upper bound for the bytes of a key and a value, without a string or a list's items: LONG_BINGET twice, LONG1 with 7 bytes (and a load
// beyond them).
enum { MARGIN = 48, MAX_MEMOS = 4, LOOKED_AT = 8 };

void vr_shape_renew(struct vr_shape *shape, uint64_t generation) {
    if (shape->generation == generation) return;
    shape->generation = generation;
    shape->count = 0;
}

// ---- learning

// Skips the gets of a list, including its end.
static const unsigned char *skip_gets(const unsigned char *next, const unsigned char *end) {
    while (next < end && vr_is_get(*next)) next += vr_opcode_bytes[*next];
    return next < end && *next == OP_APPENDS ? next + 1 : NULL;
}

// Skips a MEMOIZE if there is one.
static const unsigned char *skip_memoize(const unsigned char *next, const unsigned char *end) {
    return next < end && *next == OP_MEMOIZE ? next + 1 : next;
}

// Skips a value of the kinds that events have; returns NULL for any other.
static const unsigned char *skip_value(const unsigned char *next, const unsigned char *end) {
    switch (*next) {
    case OP_BINGET:
    case OP_LONG_BINGET:
    case OP_BININT2:
    case OP_BININT: return next + vr_opcode_bytes[*next];
    case OP_LONG1: return end - next < 2 ? NULL : next + 2 + next[1];
    case OP_SHORT_BINUNICODE: return end - next < 2 || end - next < 2 + next[1] ? NULL : skip_memoize(next + 2 + next[1], end);
    case OP_BININT1:
        // A single number, or the first of a pair.
        if (end - next >= 5 && next[2] == OP_BININT1 && next[4] == OP_TUPLE2) return skip_memoize(next + 5, end);
        return next + 2;
    case OP_EMPTY_LIST: next = skip_memoize(next + 1, end); return next < end && *next == OP_MARK ? skip_gets(next + 1, end) : next;
    default: return NULL;
    }
}

// Returns the field of the key that a get at `next` gets, or NULL if it is not a key of this kind of dictionary.
static const struct vr_field *key_field(const struct vr_machine *machine, enum vr_tag kind, const unsigned char *next,
                                        const unsigned char *end) {
    if (!vr_is_get(*next) || end - next < vr_opcode_bytes[*next]) return NULL;
    uint32_t index = vr_get_index(next);
    uint64_t word = index < machine->memo_size ? machine->memo[index] - VR_VALUE(VR_TAG_STRING, 0) : VR_WORD_COUNT;
    const struct vr_field *field = word < VR_WORD_COUNT ? &vr_row_fields[kind][word] : NULL;
    return field == NULL || field->kind == FIELD_NOTHING ? NULL : field;
}

void vr_shape_learn(struct vr_shape *shape, const struct vr_machine *machine, const unsigned char *begin, const unsigned char *end) {
    struct vr_shape learned = {.kind = shape->kind, .generation = shape->generation};
    const unsigned char *next = begin;
    uint64_t slots_used = 0;
    // Of the dictionaries that the shape does not fit, only one in LOOKED_AT is examined: most differ by a new value, not by their keys.
    if (shape->count != 0 && (shape->kind == VR_TAG_FRAME || shape->misses++ % LOOKED_AT != 0)) return;
    while (next != NULL && next < end && *next != OP_SETITEMS) {
        const struct vr_field *field = key_field(machine, shape->kind, next, end);
        // Leave repeated keys, of which one counts, to the machine.
        if (field == NULL || learned.count == VR_SHAPE_FIELDS || (slots_used & (uint64_t)1 << field->slot) != 0) return;
        slots_used |= (uint64_t)1 << field->slot;
        uint8_t length = vr_opcode_bytes[*next];
        learned.fields[learned.count].field = *field;
        learned.fields[learned.count].length = length;
        learned.fields[learned.count].mask = ((uint64_t)1 << (8 * length)) - 1;
        learned.fields[learned.count].key = vr_little_endian(next, length);
        learned.count++;
        next += length;
        next = next < end ? skip_value(next, end) : NULL;
    }
    // A single key may be the first of several.
    if (next == NULL || next + 1 != end || learned.count < shape->count || learned.count < 2) return;
    *shape = learned;
}

// ---- reading

// A row being read; nothing else changes until it is complete.
struct draft {
    const unsigned char *next;
    const unsigned char *end;
    const struct vr_echo *echo;
    const struct vr_echo_run *run; // a list that the echo guessed, to be confirmed by vr_echo_hit()
    const unsigned char *list;     // another list that was read: its items and its end
    size_t list_length;
    uint64_t slots[SLOT_COUNT];
    uint64_t memos[MAX_MEMOS]; // values to append to the memo
    size_t memo_count;
};

// Consumes a MEMOIZE after a value, if there is one. Returns false if there are too many.
VR_INLINE bool take_memoize(struct draft *draft, uint64_t value) {
    if (*draft->next != OP_MEMOIZE) return true;
    if (draft->memo_count == MAX_MEMOS) return false;
    draft->memos[draft->memo_count++] = value;
    draft->next++;
    return true;
}

VR_INLINE bool draft_number(struct draft *draft, int64_t *number) {
    const unsigned char *next = draft->next;
    switch (next[0]) {
    case OP_BININT1: *number = next[1]; break;
    case OP_BININT2: *number = next[1] | next[2] << 8; break;
    case OP_BININT: *number = (int32_t)vr_load_32(next + 1); break;
    case OP_LONG1:
        if (next[1] == 0 || next[1] > 7) return false;
        *number = vr_load_long(next + 2, next[1]);
        draft->next = next + 2 + next[1];
        return true;
    default: return false;
    }
    draft->next = next + vr_opcode_bytes[next[0]];
    return true;
}

// Returns the value that a get at draft->next gets; 0 if there is no get or its slot is unset.
VR_INLINE uint64_t draft_get(struct draft *draft, const struct vr_machine *machine) {
    if (!vr_is_get(*draft->next)) return 0;
    uint32_t index = vr_get_index(draft->next);
    draft->next += vr_opcode_bytes[*draft->next];
    return index < machine->memo_size ? machine->memo[index] : 0;
}

static bool draft_text(struct draft *draft, struct vr_machine *machine, uint64_t *slot) {
    const unsigned char *next = draft->next;
    uint64_t value;
    if (*next == OP_SHORT_BINUNICODE) {
        // A new string stays in the table, even if the machine must read it again.
        uint32_t id;
        if (draft->end - next < 2 + next[1] + MARGIN) return false;
        if (vr_builder_text(&machine->builder, (const char *)next + 2, next[1], &id) != VRAM_OK) return false;
        value = vr_value(VR_TAG_STRING, id);
        draft->next = next + 2 + next[1];
        if (!take_memoize(draft, value)) return false;
    } else {
        value = draft_get(draft, machine);
    }
    *slot = vr_payload(value);
    return vr_tag_of(value) == VR_TAG_STRING;
}

// Reads the gets of a list, including its end, into a stack. Returns false if an item is not a frame.
static bool draft_frames(struct draft *draft, struct vr_machine *machine, uint32_t *stack) {
    uint32_t frames[VR_BATCH];
    size_t count = 0;
    const unsigned char *next = draft->next;
    for (; draft->end - next >= MARGIN && vr_is_get(*next) && count < VR_BATCH - 1; count++) {
        bool is_long = *next == OP_LONG_BINGET;
        uint32_t index = is_long ? vr_load_32(next + 1) : next[1];
        if (index >= machine->memo_size || vr_tag_of(machine->memo[index]) != VR_TAG_FRAME) return false;
        frames[count] = (uint32_t)machine->memo[index];
        next += is_long ? 5 : 2;
    }
    if (*next != OP_APPENDS || vr_builder_stack(&machine->builder, frames, count, stack) != VRAM_OK) return false;
    draft->list = draft->next;
    draft->list_length = (size_t)(next + 1 - draft->next);
    draft->next = next + 1;
    return true;
}

// Reads the items and the end of a list: a list that came before, or any list of frames in the memo.
static bool draft_items(struct draft *draft, struct vr_machine *machine, uint32_t *stack) {
    if (vr_echo_listens(draft->echo)) draft->run = vr_echo_guess(draft->echo, draft->next, draft->end);
    if (draft->run == NULL) return draft_frames(draft, machine, stack);
    draft->next += draft->run->length;
    *stack = draft->run->stack;
    return true;
}

static bool draft_stack(struct draft *draft, struct vr_machine *machine, uint64_t *slot) {
    if (*draft->next != OP_EMPTY_LIST) {
        if (!vr_is_get(*draft->next)) return false;
        uint32_t index = vr_get_index(draft->next);
        uint64_t value = draft_get(draft, machine);
        *slot = vr_payload(value);
        if (value == vr_value(VR_TAG_NO_ITEMS, 0)) return true;
        if (vr_tag_of(value) != VR_TAG_STACK) return false;
        machine->memo[index] |= VR_USED;
        return true;
    }
    bool is_memoized = draft->next[1] == OP_MEMOIZE;
    draft->next += 1 + is_memoized;
    uint64_t value = vr_value(VR_TAG_NO_ITEMS, 0);
    if (*draft->next == OP_MARK) {
        uint32_t stack;
        draft->next++;
        if (!draft_items(draft, machine, &stack)) return false;
        *slot = stack;
        value = vr_value(VR_TAG_STACK, stack) | VR_USED;
    }
    if (is_memoized && draft->memo_count == MAX_MEMOS) return false;
    if (is_memoized) draft->memos[draft->memo_count++] = value;
    return true;
}

static bool draft_pool(struct draft *draft, const struct vr_machine *machine) {
    const unsigned char *next = draft->next;
    uint64_t value;
    if (next[0] == OP_BININT1 && next[2] == OP_BININT1 && next[4] == OP_TUPLE2) {
        value = vr_value(VR_TAG_PAIR, next[1] | (uint64_t)next[3] << VR_PAIR_BITS);
        draft->next = next + 5;
        if (!take_memoize(draft, value)) return false;
    } else {
        value = draft_get(draft, machine);
    }
    draft->slots[SLOT_pool_first] = vr_payload(value) & (((uint64_t)1 << VR_PAIR_BITS) - 1);
    draft->slots[SLOT_pool_second] = vr_payload(value) >> VR_PAIR_BITS;
    return vr_tag_of(value) == VR_TAG_PAIR;
}

// Returns false for a value that the machine must read.
VR_INLINE bool draft_value(struct draft *draft, struct vr_machine *machine, const struct vr_field *field) {
    uint64_t *slot = &draft->slots[field->slot], value;
    int64_t number;
    switch ((enum vr_field_kind)field->kind) {
    case FIELD_ADDRESS:
    case FIELD_STREAM:
    case FIELD_SIGNED:
    case FIELD_SIZE:
    case FIELD_THREAD:
        if (!draft_number(draft, &number)) return false;
        if (number < 0 && field->kind != FIELD_STREAM && field->kind != FIELD_SIGNED) return false;
        if (number > UINT32_MAX && field->kind == FIELD_THREAD) return false;
        *slot = (uint64_t)number;
        return true;
    case FIELD_ACTION:
        value = draft_get(draft, machine);
        vr_schema_put_action(vr_payload(value), draft->slots);
        return vr_tag_of(value) == VR_TAG_STRING;
    case FIELD_STATE:
        value = draft_get(draft, machine);
        vr_schema_put_state(vr_payload(value), draft->slots);
        return vr_tag_of(value) == VR_TAG_STRING && draft->slots[SLOT_state] != VR_STATE_UNKNOWN;
    case FIELD_NAME:
    case FIELD_TEXT: return draft_text(draft, machine, slot);
    case FIELD_STACK: return draft_stack(draft, machine, slot);
    case FIELD_POOL: return draft_pool(draft, machine);
    default: return false;
    }
}

static enum vram_status add_shaped_row(struct vr_machine *machine, enum vr_tag kind, uint64_t *slots, uint64_t *row) {
    uint32_t frame;
    if (kind == VR_TAG_EVENT) return vr_row_add_event(machine, slots, row);
    if (kind == VR_TAG_BLOCK) return vr_row_add_block(machine, slots, row);
    VR_TRY(
        vr_builder_frame(&machine->builder, (uint32_t)slots[SLOT_name], (uint32_t)slots[SLOT_filename], (int64_t)slots[SLOT_line], &frame));
    *row = vr_value(VR_TAG_FRAME, frame);
    return VRAM_OK;
}

// Turns the draft into a row, and its values into memo slots.
static bool commit_draft(struct draft *draft, enum vr_tag kind, struct vr_echo *echo, struct vr_machine *machine, uint64_t *container) {
    if (machine->memo_used != machine->memo_size || machine->memo_capacity - machine->memo_size < draft->memo_count) return false;
    uint64_t row;
    if (add_shaped_row(machine, kind, draft->slots, &row) != VRAM_OK) return false;
    for (size_t i = 0; i < draft->memo_count; i++) machine->memo[machine->memo_size++] = draft->memos[i];
    machine->memo_used = machine->memo_size;
    if (draft->run != NULL) vr_echo_hit(echo, draft->run);
    uint32_t stack = (uint32_t)draft->slots[SLOT_stack];
    if (draft->list != NULL && vr_echo_listens(echo) && vr_echo_miss(echo, draft->list, draft->list_length, stack)) {
        vr_echo_keep(echo, &machine->builder.budget, draft->list, draft->list_length, stack);
    }
    *container = row;
    return true;
}

const unsigned char *vr_shape_read(const struct vr_shape *shape, struct vr_echo *echo, struct vr_machine *machine,
                                   const unsigned char *next, const unsigned char *end, uint64_t *container) {
    assert(shape->count != 0);
    struct draft draft = {.next = next, .end = end, .echo = echo};
    size_t read = 0;
    draft.slots[SLOT_action] = VR_ACTION_UNKNOWN;
    draft.slots[SLOT_state] = VR_STATE_UNKNOWN;
    for (size_t i = 0; i < shape->count; i++, read++) {
        if (end - draft.next < MARGIN) return NULL;
        if ((vr_load_64(draft.next) & shape->fields[i].mask) != shape->fields[i].key) break;
        draft.next += shape->fields[i].length;
        if (!draft_value(&draft, machine, &shape->fields[i].field)) return NULL;
        draft.slots[SLOT_has] |= shape->fields[i].field.has;
    }
    // Keys may be missing at the end of an event, such as frames.
    if (shape->kind != VR_TAG_EVENT && read != shape->count) return NULL;
    const uint64_t frame_has = VR_HAS_ROW_NAME | VR_HAS_ROW_FILENAME | VR_HAS_ROW_LINE;
    if (shape->kind == VR_TAG_FRAME && draft.slots[SLOT_has] != frame_has) return NULL;
    if (draft.next == next || draft.next == end || *draft.next != OP_SETITEMS) return NULL;
    // One column holds both.
    const uint64_t addresses = VR_HAS_ADDRESS | VR_HAS_DEVICE_FREE;
    if ((draft.slots[SLOT_has] & addresses) == addresses) return NULL;
    return commit_draft(&draft, shape->kind, echo, machine, container) ? draft.next + 1 : NULL;
}
