#include "history/stack_cfi.h"

// DWARF numbers of the registers used here, from each architecture's ABI.
#if defined(__aarch64__)
enum { REG_BP = 29, REG_SP = 31, REG_RA = 30, RA_BY_CALL = false };
#else
enum { REG_BP = 6, REG_SP = 7, REG_RA = 16, RA_BY_CALL = true }; // a call itself stores the return address below the CFA
#endif
enum { REMEMBERED = 8 };

static const struct vr_cfi_rule chain = {.kind = VR_CFI_CHAIN};

// A bounded reader; `bad` stays set once something was out of bounds.
struct cursor {
    const unsigned char *at;
    const unsigned char *end;
    bool bad;
};

static uint64_t take_bytes(struct cursor *cursor, size_t bytes) {
    uint64_t value = 0;
    if (cursor->bad || (size_t)(cursor->end - cursor->at) < bytes) {
        cursor->bad = true;
        return 0;
    }
    memcpy(&value, cursor->at, bytes); // little-endian, like x86-64 and aarch64
    cursor->at += bytes;
    return value;
}

static uint64_t take_uleb(struct cursor *cursor) {
    uint64_t value = 0;
    for (unsigned shift = 0; !cursor->bad; shift += 7) {
        const uint64_t byte = take_bytes(cursor, 1);
        if (shift < 64) value |= (byte & 0x7f) << shift;
        if ((byte & 0x80) == 0) break;
    }
    return value;
}

static int64_t take_sleb(struct cursor *cursor) {
    uint64_t value = 0, byte = 0x80;
    unsigned shift = 0;
    while (!cursor->bad && (byte & 0x80) != 0) {
        byte = take_bytes(cursor, 1);
        if (shift < 64) value |= (byte & 0x7f) << shift;
        shift += 7;
    }
    if (shift < 64 && (byte & 0x40) != 0) value |= ~(uint64_t)0 << shift;
    return (int64_t)value;
}

static void skip_bytes(struct cursor *cursor, uint64_t bytes) {
    if (cursor->bad || (uint64_t)(cursor->end - cursor->at) < bytes) {
        cursor->bad = true;
    } else {
        cursor->at += bytes;
    }
}

// Reads an address in one of the encodings of .eh_frame ("DW_EH_PE_"); sets `bad` for an encoding that no compiler uses for code.
static uint64_t take_encoded(struct cursor *cursor, unsigned encoding) {
    const uint64_t here = (uint64_t)(uintptr_t)cursor->at;
    uint64_t value;
    switch (encoding & 0x0f) {
    case 0x00:
    case 0x04:
    case 0x0c: value = take_bytes(cursor, 8); break;
    case 0x02: value = take_bytes(cursor, 2); break;
    case 0x03: value = take_bytes(cursor, 4); break;
    case 0x0a: value = (uint64_t)(int64_t)(int16_t)take_bytes(cursor, 2); break;
    case 0x0b: value = (uint64_t)(int64_t)(int32_t)take_bytes(cursor, 4); break;
    default: cursor->bad = true; return 0;
    }
    if ((encoding & 0x70) == 0x10) return value + here;
    if ((encoding & 0x70) != 0) cursor->bad = true;
    return value;
}

// --- the machine ---------------------------------------------------------------------------------------------------------------

enum rule_place { SAME, AT_CFA, AT_EXPRESSION, UNDEFINED, ELSEWHERE };

struct unwind_row {
    uint64_t cfa_register; // UINT64_MAX: an expression
    int64_t cfa_offset;
    struct cursor cfa_expression;
    enum rule_place bp;
    int64_t bp_offset;
    struct cursor bp_expression;
    enum rule_place ra;
    int64_t ra_offset;
};

struct machine {
    struct unwind_row row;
    struct unwind_row initial;
    struct unwind_row remembered[REMEMBERED];
    size_t depth;
    uint64_t location;
    uint64_t code_align;
    int64_t data_align;
    unsigned encoding;
    bool signal;
};

static struct cursor take_block(struct cursor *cursor) {
    const uint64_t bytes = take_uleb(cursor);
    struct cursor block = *cursor;
    skip_bytes(cursor, bytes);
    if (!cursor->bad) block.end = cursor->at;
    return block;
}

static void put_register(struct machine *machine, uint64_t number, enum rule_place place, int64_t offset) {
    if (number == REG_BP) {
        machine->row.bp = place;
        machine->row.bp_offset = offset;
    } else if (number == REG_RA) {
        machine->row.ra = RA_BY_CALL && place == AT_CFA && offset != -8 ? ELSEWHERE : place;
        machine->row.ra_offset = offset;
    }
}

static void put_expression(struct machine *machine, uint64_t number, struct cursor block) {
    put_register(machine, number, AT_EXPRESSION, 0);
    if (number == REG_BP) machine->row.bp_expression = block;
}

static void restore_rule(struct machine *machine, uint64_t number) {
    if (number == REG_BP) {
        machine->row.bp = machine->initial.bp;
        machine->row.bp_offset = machine->initial.bp_offset;
    } else if (number == REG_RA) {
        machine->row.ra = machine->initial.ra;
        machine->row.ra_offset = machine->initial.ra_offset;
    }
}

static void define_cfa(struct machine *machine, uint64_t number, int64_t offset) {
    machine->row.cfa_register = number;
    machine->row.cfa_offset = offset;
}

static void remember_row(struct machine *machine, struct cursor *cursor) {
    if (machine->depth == REMEMBERED) {
        cursor->bad = true;
    } else {
        machine->remembered[machine->depth++] = machine->row;
    }
}

static void recall_row(struct machine *machine, struct cursor *cursor) {
    if (machine->depth == 0) {
        cursor->bad = true;
    } else {
        machine->row = machine->remembered[--machine->depth];
    }
}

// Runs an instruction without operands in its first byte.
static void run_extended(struct machine *machine, struct cursor *cursor, unsigned code) {
    struct unwind_row *row = &machine->row;
    uint64_t number;
    switch (code) {
    case 0x00: break; // nop
    case 0x01: machine->location = take_encoded(cursor, machine->encoding); break;
    case 0x02: machine->location += take_bytes(cursor, 1) * machine->code_align; break;
    case 0x03: machine->location += take_bytes(cursor, 2) * machine->code_align; break;
    case 0x04: machine->location += take_bytes(cursor, 4) * machine->code_align; break;
    case 0x05: // offset_extended
        number = take_uleb(cursor);
        put_register(machine, number, AT_CFA, (int64_t)take_uleb(cursor) * machine->data_align);
        break;
    case 0x06: restore_rule(machine, take_uleb(cursor)); break;
    case 0x07: put_register(machine, take_uleb(cursor), UNDEFINED, 0); break;
    case 0x08: put_register(machine, take_uleb(cursor), SAME, 0); break;
    case 0x09: // register
        put_register(machine, take_uleb(cursor), ELSEWHERE, 0);
        (void)take_uleb(cursor);
        break;
    case 0x0a: remember_row(machine, cursor); break;
    case 0x0b: recall_row(machine, cursor); break;
    case 0x0c: // def_cfa
        number = take_uleb(cursor);
        define_cfa(machine, number, (int64_t)take_uleb(cursor));
        break;
    case 0x0d: row->cfa_register = take_uleb(cursor); break;
    case 0x0e: row->cfa_offset = (int64_t)take_uleb(cursor); break;
    case 0x0f: // def_cfa_expression
        row->cfa_expression = take_block(cursor);
        row->cfa_register = UINT64_MAX;
        break;
    case 0x10: // expression
        number = take_uleb(cursor);
        put_expression(machine, number, take_block(cursor));
        break;
    case 0x11: // offset_extended_sf
        number = take_uleb(cursor);
        put_register(machine, number, AT_CFA, take_sleb(cursor) * machine->data_align);
        break;
    case 0x12: // def_cfa_sf
        number = take_uleb(cursor);
        define_cfa(machine, number, take_sleb(cursor) * machine->data_align);
        break;
    case 0x13: row->cfa_offset = take_sleb(cursor) * machine->data_align; break;
    case 0x14: // val_offset
        put_register(machine, take_uleb(cursor), ELSEWHERE, 0);
        (void)take_uleb(cursor);
        break;
    case 0x15: // val_offset_sf
        put_register(machine, take_uleb(cursor), ELSEWHERE, 0);
        (void)take_sleb(cursor);
        break;
    case 0x16: // val_expression
        put_register(machine, take_uleb(cursor), ELSEWHERE, 0);
        (void)take_block(cursor);
        break;
    case 0x2d: cursor->bad = RA_BY_CALL; break; // AARCH64_negate_ra_state: the walk strips signatures from all return addresses
    case 0x2e: (void)take_uleb(cursor); break;  // GNU_args_size
    default: cursor->bad = true; break;
    }
}

// Runs instructions up to the first one that applies after `pc`.
static void run_program(struct machine *machine, struct cursor *cursor, uint64_t pc) {
    while (!cursor->bad && cursor->at < cursor->end && machine->location <= pc) {
        const unsigned byte = (unsigned)take_bytes(cursor, 1), low = byte & 0x3f;
        switch (byte >> 6) {
        case 1: machine->location += low * machine->code_align; break;
        case 2: put_register(machine, low, AT_CFA, (int64_t)take_uleb(cursor) * machine->data_align); break;
        case 3: restore_rule(machine, low); break;
        default: run_extended(machine, cursor, low); break;
        }
    }
}

// --- making a rule from a row ----------------------------------------------------------------------------------------------------

// Parses an expression of the form `register + offset`, dereferenced or not. Returns false for any other.
static bool simple_expression(struct cursor block, uint64_t *number, int64_t *offset, bool *dereferenced) {
    const uint64_t code = take_bytes(&block, 1);
    if (block.bad || code < 0x70 || code > 0x8f) return false; // DW_OP_breg0..31
    *number = code - 0x70;
    *offset = take_sleb(&block);
    *dereferenced = false;
    if (!block.bad && block.at < block.end) {
        if (take_bytes(&block, 1) != 0x06) return false; // DW_OP_deref
        *dereferenced = true;
    }
    return !block.bad && block.at == block.end;
}

static bool offset_fits(int64_t offset, int64_t limit) { return offset >= -limit && offset < limit; }

static bool find_cfa(const struct unwind_row *row, struct vr_cfi_rule *rule) {
    uint64_t number = row->cfa_register;
    int64_t offset = row->cfa_offset;
    bool dereferenced = false;
    if (number == UINT64_MAX && !simple_expression(row->cfa_expression, &number, &offset, &dereferenced)) return false;
    if ((number != REG_BP && number != REG_SP) || offset % 8 != 0 || !offset_fits(offset, 1 << 23)) return false;
    if (number == REG_SP) {
        rule->kind = dereferenced ? VR_CFI_DEREF_SP : VR_CFI_SP;
    } else {
        rule->kind = dereferenced ? VR_CFI_DEREF_BP : VR_CFI_BP;
    }
    rule->offset = (int32_t)offset;
    return true;
}

static bool find_saved(const struct unwind_row *row, struct vr_cfi_rule *rule) {
    int64_t offset = row->bp_offset;
    uint64_t number = REG_BP;
    bool dereferenced = false;
    switch (row->bp) {
    case SAME:
    case UNDEFINED: return true;
    case AT_CFA: rule->bp = VR_CFI_AT_CFA; break;
    case AT_EXPRESSION:
        if (!simple_expression(row->bp_expression, &number, &offset, &dereferenced) || dereferenced || number != REG_BP) return false;
        rule->bp = VR_CFI_AT_BP;
        break;
    default: return false;
    }
    rule->saved = (int32_t)offset;
    return offset % 8 == 0 && offset_fits(offset, 1 << 17);
}

static bool find_return_address(const struct unwind_row *row, struct vr_cfi_rule *rule) {
    if (RA_BY_CALL) return row->ra == AT_CFA;
    if (row->ra == SAME) {
        rule->in_link = true;
        return true;
    }
    if (row->ra != AT_CFA || row->ra_offset % 8 != 0 || !offset_fits(row->ra_offset, 1 << 17) || rule->bp == VR_CFI_AT_BP) return false;
    if (rule->bp == VR_CFI_SAME) rule->saved = (int32_t)row->ra_offset;
    rule->ra_words = ((int32_t)row->ra_offset - rule->saved) / 8;
    return offset_fits(rule->ra_words, 4); // compilers save pairs in adjacent words
}

static struct vr_cfi_rule make_rule(const struct machine *machine) {
    struct vr_cfi_rule rule = {.kind = VR_CFI_NONE};
    if (machine->signal) rule.kind = VR_CFI_SIGNAL;
    if (machine->row.ra == UNDEFINED) rule.kind = VR_CFI_END;
    if (rule.kind != VR_CFI_NONE) return rule;
    const bool found = find_cfa(&machine->row, &rule) && find_saved(&machine->row, &rule) && find_return_address(&machine->row, &rule);
    return found ? rule : chain;
}

// --- finding the entry ---------------------------------------------------------------------------------------------------------

static struct cursor cursor_at(const struct vr_cfi_tables *tables, uint64_t address) {
    struct cursor cursor = {.bad = address < tables->start || address >= tables->end};
    if (cursor.bad) return cursor;
    cursor.at = (const unsigned char *)(uintptr_t)address;
    cursor.end = (const unsigned char *)(uintptr_t)tables->end;
    return cursor;
}

static uint64_t relative_at(const unsigned char *at) {
    int32_t value;
    memcpy(&value, at, sizeof value);
    return (uint64_t)(int64_t)value;
}

// Returns the entry of .eh_frame whose code may contain `pc`, by binary search in the table of .eh_frame_hdr; 0: none.
static uint64_t find_entry(const struct vr_cfi_tables *tables, uint64_t pc) {
    struct cursor cursor = {.at = tables->header, .end = tables->header + tables->header_bytes};
    const uint64_t version = take_bytes(&cursor, 1);
    const unsigned frame_encoding = (unsigned)take_bytes(&cursor, 1), count_encoding = (unsigned)take_bytes(&cursor, 1);
    const unsigned table_encoding = (unsigned)take_bytes(&cursor, 1);
    (void)take_encoded(&cursor, frame_encoding);
    if (cursor.bad || version != 1 || count_encoding != 0x03 || table_encoding != 0x3b) return 0;
    const uint64_t count = take_bytes(&cursor, 4), base = (uint64_t)(uintptr_t)tables->header;
    if (cursor.bad || count > (uint64_t)(cursor.end - cursor.at) / 8) return 0;
    size_t above;
    VR_LOWER_BOUND(above, i, 0, (size_t)count, base + relative_at(cursor.at + i * 8) <= pc);
    return above == 0 ? 0 : base + relative_at(cursor.at + above * 8 - 4);
}

// Reads the common part of entries: alignments, encoding and the first instructions.
static bool read_common(const struct vr_cfi_tables *tables, uint64_t address, struct machine *machine, bool *augmented) {
    struct cursor cursor = cursor_at(tables, address);
    const uint64_t length = take_bytes(&cursor, 4);
    if (cursor.bad || length == 0xffffffff || length > (uint64_t)(cursor.end - cursor.at)) return false;
    cursor.end = cursor.at + length;
    if (take_bytes(&cursor, 4) != 0) return false;
    const uint64_t version = take_bytes(&cursor, 1);
    if (version != 1 && version != 3) return false;
    const char *letters = (const char *)cursor.at;
    while (!cursor.bad && take_bytes(&cursor, 1) != 0) {
    }
    if (cursor.bad || (letters[0] != '\0' && letters[0] != 'z')) return false;
    machine->code_align = take_uleb(&cursor);
    machine->data_align = take_sleb(&cursor);
    if ((version == 1 ? take_bytes(&cursor, 1) : take_uleb(&cursor)) != REG_RA) return false;
    machine->encoding = 0;
    *augmented = letters[0] == 'z';
    if (*augmented) {
        struct cursor data = take_block(&cursor);
        for (letters++; *letters != '\0' && !data.bad; letters++) {
            if (*letters == 'R') {
                machine->encoding = (unsigned)take_bytes(&data, 1);
            } else if (*letters == 'P') {
                const unsigned encoding = (unsigned)take_bytes(&data, 1);
                (void)take_encoded(&data, encoding & 0x0f);
            } else if (*letters == 'L') {
                (void)take_bytes(&data, 1);
            } else if (*letters == 'S') {
                machine->signal = true;
            } else if (RA_BY_CALL || (*letters != 'B' && *letters != 'G')) { // 'B': which key signs return addresses; 'G': tagged stacks
                return false;
            }
        }
        if (data.bad) return false;
    }
    run_program(machine, &cursor, UINT64_MAX);
    machine->initial = machine->row;
    return !cursor.bad;
}

struct vr_cfi_rule vr_cfi_find(const struct vr_cfi_tables *tables, uint64_t pc) {
#if defined(__x86_64__) || defined(__aarch64__)
    if (tables->header == NULL) return chain;
    struct cursor cursor = cursor_at(tables, find_entry(tables, pc));
    const uint64_t length = take_bytes(&cursor, 4);
    if (cursor.bad || length == 0xffffffff || length > (uint64_t)(cursor.end - cursor.at)) return chain;
    cursor.end = cursor.at + length;
    const uint64_t here = (uint64_t)(uintptr_t)cursor.at, back = take_bytes(&cursor, 4);
    struct machine machine = {.row = {.bp = SAME, .ra = SAME}};
    bool augmented;
    if (cursor.bad || back == 0 || !read_common(tables, here - back, &machine, &augmented)) return chain;
    machine.location = take_encoded(&cursor, machine.encoding);
    const uint64_t code_bytes = take_encoded(&cursor, machine.encoding & 0x0f);
    if (cursor.bad || pc < machine.location || pc - machine.location >= code_bytes) return chain;
    if (augmented) (void)take_block(&cursor);
    run_program(&machine, &cursor, pc);
    return cursor.bad ? chain : make_rule(&machine);
#else
    (void)tables;
    (void)pc;
    return chain;
#endif
}
