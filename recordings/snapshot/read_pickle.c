// Runs the opcodes of Python's pickles.
#include "snapshot/literals.h"
#include "snapshot/opcodes.h"
#include "snapshot/formats.h"
#include "snapshot/repeated_bytes.h"

enum {
    MOST_DIGITS = 255,        // bytes of an integer; longer ones exceed every floating-point number
    MOST_BYTES_KEPT = 1 << 20 // per value; recordings have no such values
};

static const char *opcode_name(unsigned char code) {
    static const char *const names[256] = {
#define OPCODE_NAME(code, name, argument) [(code)] = #name,
        VR_OPCODES(OPCODE_NAME)
#undef OPCODE_NAME
    };
    return names[code];
}

static enum vram_status cut_short(struct vr_machine *machine) {
    return VR_MACHINE_FAIL(machine, VRAM_BAD_INPUT, "the pickle is incomplete: the file was cut short");
}

static enum vram_status refuse_opcode(struct vr_machine *machine, unsigned char code) {
    const char *name = opcode_name(code);
    if (name == NULL) return VR_MACHINE_FAIL(machine, VRAM_BAD_INPUT, "the pickle is damaged: 0x%02x is not an opcode", code);
    return VR_MACHINE_FAIL(machine, VRAM_BAD_INPUT,
                           "the pickle contains more than plain data: opcode %s is refused, because it could run code or build objects",
                           name);
}

// Makes `length` bytes available at input->next.
static enum vram_status need_bytes(struct vr_input *input, struct vr_machine *machine, uint64_t length) {
    if (VR_LIKELY(vr_input_at_hand(input) >= length)) return VRAM_OK;
    VR_TRY(vr_input_fill(input, length));
    return vr_input_at_hand(input) < length ? cut_short(machine) : VRAM_OK;
}

static enum vram_status read_string(struct vr_input *input, struct vr_machine *machine, uint64_t length) {
    VR_TRY(need_bytes(input, machine, length));
    VR_TRY(vr_machine_push_string(machine, (const char *)input->next, (size_t)length));
    input->next += length;
    return VRAM_OK;
}

static enum vram_status skip_bytes(struct vr_input *input, struct vr_machine *machine, uint64_t length) {
    while (length != 0) {
        VR_TRY(need_bytes(input, machine, 1));
        size_t step = vr_input_at_hand(input) < length ? vr_input_at_hand(input) : (size_t)length;
        input->next += step;
        length -= step;
    }
    return vr_machine_push(machine, vr_value(VR_TAG_OPAQUE, 0));
}

// Reads bytes, kept as the text of literals.h. Skips them if there are too many.
static enum vram_status read_bytes(struct vr_input *input, struct vr_machine *machine, uint64_t length, const char *name) {
    if (length > MOST_BYTES_KEPT) return skip_bytes(input, machine, length);
    VR_TRY(need_bytes(input, machine, length));
    struct vr_text text = {0};
    vr_python_text_bytes(&text, name, input->next, (size_t)length);
    uint32_t id;
    enum vram_status status = vr_text_status(&text);
    if (status == VRAM_OK) status = vr_builder_string(&machine->builder, text.bytes, text.length, &id);
    vr_text_release(&text);
    if (status != VRAM_OK && status != VRAM_LIMIT) return status;
    input->next += length;
    return vr_machine_push(machine, status == VRAM_OK ? vr_value(VR_TAG_JSON, id) : vr_value(VR_TAG_OPAQUE, 0));
}

// Pushes a two's complement number of more than 64 bits as text.
static enum vram_status push_huge(struct vr_machine *machine, const unsigned char *bytes, size_t length) {
    unsigned char left[MOST_DIGITS];
    char text[3 * MOST_DIGITS + 1];
    size_t at = sizeof text;
    const bool negative = bytes[length - 1] >> 7 != 0;
    unsigned carry = negative;
    for (size_t i = 0; i < length; i++) {
        carry += negative ? (unsigned)(unsigned char)~bytes[i] : bytes[i];
        left[i] = (unsigned char)carry;
        carry >>= 8;
    }
    while (length != 0 || at == sizeof text) {
        unsigned rest = 0;
        for (size_t i = length; i-- > 0;) {
            rest = rest << 8 | left[i];
            left[i] = (unsigned char)(rest / 10);
            rest %= 10;
        }
        text[--at] = (char)('0' + rest);
        while (length != 0 && left[length - 1] == 0) length--;
    }
    if (negative) text[--at] = '-';
    return vr_machine_push_digits(machine, text + at, sizeof text - at);
}

// Reads a two's complement number of `length` bytes. Addresses of 2^63 and above need nine bytes.
static enum vram_status read_long(struct vr_input *input, struct vr_machine *machine, uint64_t length) {
    if (length > MOST_DIGITS) return skip_bytes(input, machine, length);
    VR_TRY(need_bytes(input, machine, length));
    const unsigned char *bytes = input->next;
    uint64_t low = vr_little_endian(bytes, length < 8 ? (size_t)length : 8);
    input->next += length;
    if (length == 0) return vr_machine_push_signed(machine, 0);
    if (length == 9 && bytes[8] == 0) return vr_machine_push_unsigned(machine, low);
    if (length > 9 || (length == 9 && (bytes[8] != 0xff || low >> 63 == 0))) return push_huge(machine, bytes, (size_t)length);
    unsigned unused = length < 8 ? 64 - 8 * (unsigned)length : 0;
    return vr_machine_push_signed(machine, (int64_t)(low << unused) >> unused);
}

static enum vram_status read_binfloat(struct vr_machine *machine, const unsigned char *argument) {
    uint64_t bits = 0;
    double number;
    for (int i = 0; i < 8; i++) bits = bits << 8 | argument[i];
    memcpy(&number, &bits, sizeof number);
    return vr_machine_push_float(machine, number);
}

// Reads the rest of the line without its newline; input->next is after it.
static enum vram_status read_line(struct vr_input *input, struct vr_machine *machine, const char **text, size_t *length) {
    const unsigned char *newline;
    while ((newline = memchr(input->next, '\n', vr_input_at_hand(input))) == NULL) {
        if (input->ended) return cut_short(machine);
        VR_TRY(vr_input_fill(input, (uint64_t)vr_input_at_hand(input) * 2 + 1));
    }
    *text = (const char *)input->next;
    *length = (size_t)(newline - input->next);
    input->next = newline + 1;
    return VRAM_OK;
}

static enum vram_status bad_number(struct vr_machine *machine) {
    return VR_MACHINE_FAIL(machine, VRAM_BAD_INPUT, "the pickle is damaged: a number written as text is malformed or too large");
}

static enum vram_status push_text_number(struct vr_machine *machine, unsigned char code, const char *text, size_t length) {
    struct vr_numeral number;
    if (code == OP_INT && length == 2 && text[0] == '0' && (text[1] == '0' || text[1] == '1')) {
        return vr_machine_push(machine, vr_value(VR_TAG_BOOL, text[1] == '1'));
    }
    if (code == OP_LONG && length != 0 && text[length - 1] == 'L') length--;
    const bool parsed = vr_numeral_parse(text, length, &number);
    if (parsed && code != OP_FLOAT && number.kind == VR_NUMERAL_FLOAT && vr_numeral_is_whole(text, length) && length <= 3 * MOST_DIGITS)
        return vr_machine_push_digits(machine, text, length);
    if (!parsed || (code != OP_FLOAT && number.kind == VR_NUMERAL_FLOAT)) return bad_number(machine);
    if (number.kind == VR_NUMERAL_FLOAT) return vr_machine_push_float(machine, number.real);
    if (code == OP_FLOAT) return vr_machine_push_float(machine, number.negative ? (double)(int64_t)number.bits : (double)number.bits);
    return number.negative ? vr_machine_push_signed(machine, (int64_t)number.bits) : vr_machine_push_unsigned(machine, number.bits);
}

// Reads the text forms of protocols 0 and 1, one line each. Does not read strings with Python escapes.
static enum vram_status read_pickle_text(struct vr_input *input, struct vr_machine *machine, unsigned char code) {
    const char *text = "";
    size_t length = 0;
    struct vr_numeral number;
    VR_TRY(read_line(input, machine, &text, &length));
    switch (code) {
    case OP_GET:
    case OP_PUT:
        if (!vr_numeral_parse(text, length, &number) || number.kind != VR_NUMERAL_WHOLE || number.negative || number.bits > UINT32_MAX) {
            return bad_number(machine);
        }
        return code == OP_GET ? vr_machine_get(machine, (size_t)number.bits) : vr_machine_put(machine, (size_t)number.bits);
    case OP_UNICODE: {
        size_t decoded;
        char *bytes = malloc(length * 3 + 1);
        if (bytes == NULL) return VRAM_NO_HOST_MEMORY;
        enum vram_status status = VRAM_OK;
        if (!vr_raw_unicode_decode(text, length, bytes, &decoded)) {
            status = VR_MACHINE_FAIL(machine, VRAM_BAD_INPUT, "the pickle is damaged: a string has a malformed escape");
        }
        if (status == VRAM_OK) status = vr_machine_push_string(machine, bytes, decoded);
        free(bytes);
        return status;
    }
    default: return push_text_number(machine, code, text, length);
    }
}

// Facts learned from earlier lists and dictionaries, and where the current ones began.
struct listening {
    struct vr_echo echo;
    struct vr_shape events, blocks, frames;
    uint64_t begin;      // file offset of the list's first item; VRAM_NO_OFFSET: no list
    uint64_t dict_begin; // file offset of the dictionary's first key; VRAM_NO_OFFSET: no dictionary
};

// The variables that the loop of run_pushes() keeps in registers.
struct fast {
    const unsigned char *next;
    const unsigned char *last; // opcodes up to here have all of their arguments in memory
    uint64_t *top;
    uint64_t *limit;
};

// Runs a sequence of BINGET and LONG_BINGET, as in lists of frames, without a branch on which of them it is. Stops before an opcode that
// needs a closer look; returns false if that is the first one.
VR_INLINE bool run_gets(struct fast *fast, const struct vr_machine *machine) {
    const unsigned char *next = fast->next;
    const uint64_t *const memo = machine->memo;
    const size_t memo_size = machine->memo_size;
    uint64_t *top = fast->top;
    do {
        uint64_t word = vr_load_64(next);
        // The two opcodes differ in one bit.
        if (!vr_is_get((unsigned char)word)) break;
        bool is_long = (word & 2) != 0;
        uint32_t index = (uint32_t)(word >> 8) & (is_long ? UINT32_MAX : 0xff);
        if (VR_UNLIKELY(index >= memo_size || !vr_is_plain(memo[index]))) break;
        *top++ = memo[index];
        next += is_long ? 5 : 2;
    } while (next <= fast->last && top < fast->limit);
    bool some = next != fast->next;
    fast->next = next;
    fast->top = top;
    return some;
}
// Gets a list or dictionary from the memo. Returns false if the slot is unset.
static bool run_shared_get(struct fast *fast, const struct vr_machine *machine) {
    uint32_t index = vr_get_index(fast->next);
    if (index >= machine->memo_size || machine->memo[index] == 0) return false;
    *fast->top++ = vr_value(VR_TAG_MEMO, index);
    fast->next += vr_opcode_bytes[fast->next[0]];
    return true;
}

// Appends to the memo if its slots were filled in order and there is room.
VR_INLINE bool run_memoize(struct fast *fast, struct vr_machine *machine) {
    size_t index = machine->memo_used;
    if (index != machine->memo_size || index == machine->memo_capacity) return false;
    size_t above = machine->mark_count == 0 ? 0 : machine->marks[machine->mark_count - 1];
    if ((size_t)(fast->top - machine->stack) <= above) return false;
    uint64_t *top = fast->top - 1;
    machine->memo[index] = *top;
    machine->memo_used = machine->memo_size = index + 1;
    if (vr_is_mutable(*top)) *top = vr_value(VR_TAG_MEMO, index);
    fast->next++;
    return true;
}

// Called at a mark. If it opens a list that was read before, completes the list.
static bool run_echo(struct fast *fast, const struct vr_input *input, struct vr_machine *machine, struct listening *listening) {
    if ((size_t)(fast->top - machine->stack) <= machine->marks[machine->mark_count - 1]) return false;
    uint64_t *place = vr_machine_place(machine, fast->top[-1]), *container = place == NULL ? fast->top - 1 : place;
    if (vr_tag_of(*container) != VR_TAG_NO_ITEMS || !vr_echo_listens(&listening->echo)) return false;
    const unsigned char *items = fast->next + 1;
    listening->begin = input->start_offset + (uint64_t)(items - input->start);
    vr_echo_renew(&listening->echo, machine->memo_generation);
    const struct vr_echo_run *run = vr_echo_guess(&listening->echo, items, input->end);
    if (run == NULL) return false;
    vr_echo_hit(&listening->echo, run);
    *container = vr_value(VR_TAG_STACK, run->stack);
    fast->next = items + run->length;
    listening->begin = VRAM_NO_OFFSET;
    return true;
}

static const unsigned char *read_shaped(struct vr_shape *shape, const struct vr_input *input, struct vr_machine *machine,
                                        struct listening *listening, const unsigned char *keys, uint64_t *container) {
    vr_shape_renew(shape, machine->memo_generation);
    if (!vr_shape_begins(shape, keys, input->end)) return NULL;
    return vr_shape_read(shape, &listening->echo, machine, keys, input->end, container);
}

// Called at a mark. If it opens an event, block or frame with the shape of the previous one, completes it.
static bool run_shaped(struct fast *fast, const struct vr_input *input, struct vr_machine *machine, struct listening *listening) {
    if ((size_t)(fast->top - machine->stack) <= machine->marks[machine->mark_count - 1]) return false;
    uint64_t *place = vr_machine_place(machine, fast->top[-1]), *container = place == NULL ? fast->top - 1 : place;
    // With only one mark open, this may be the single item of an unread key; vr_machine_mark() checks for that.
    if (vr_tag_of(*container) != VR_TAG_NO_KEYS || machine->skipping || machine->mark_count < 2) return false;
    const unsigned char *keys = fast->next + 1;
    listening->dict_begin = input->start_offset + (uint64_t)(keys - input->start);
    vr_echo_renew(&listening->echo, machine->memo_generation);
    const unsigned char *after = read_shaped(&listening->events, input, machine, listening, keys, container);
    if (after == NULL) after = read_shaped(&listening->frames, input, machine, listening, keys, container);
    if (after == NULL) after = read_shaped(&listening->blocks, input, machine, listening, keys, container);
    if (after == NULL) return false;
    fast->next = after;
    listening->dict_begin = VRAM_NO_OFFSET;
    return true;
}

// Called after SETITEMS. Learns the shape of this dictionary for the following ones of its kind.
static void end_dict(const struct vr_input *input, struct vr_machine *machine, struct listening *listening) {
    uint64_t value = vr_machine_resolve(machine, machine->stack[machine->depth - 1]), begin = listening->dict_begin;
    listening->dict_begin = VRAM_NO_OFFSET;
    struct vr_shape *shape = vr_tag_of(value) == VR_TAG_EVENT   ? &listening->events
                             : vr_tag_of(value) == VR_TAG_BLOCK ? &listening->blocks
                             : vr_tag_of(value) == VR_TAG_FRAME ? &listening->frames
                                                                : NULL;
    if (shape == NULL || begin == VRAM_NO_OFFSET || begin < input->start_offset) return;
    vr_shape_renew(shape, machine->memo_generation);
    vr_shape_learn(shape, machine, input->start + (begin - input->start_offset), input->next);
}

// Returns whether the bytes are only BINGETs and LONG_BINGETs, followed by the end of the list.
static bool only_gets(const unsigned char *bytes, size_t length) {
    size_t at = 0;
    while (at < length && vr_is_get(bytes[at])) at += vr_opcode_bytes[bytes[at]];
    return at + 1 == length;
}

// Called after APPENDS. Remembers a new list, because it may come again.
static void end_list(const struct vr_input *input, struct vr_machine *machine, struct listening *listening) {
    uint64_t value = vr_machine_resolve(machine, machine->stack[machine->depth - 1]), begin = listening->begin;
    listening->begin = VRAM_NO_OFFSET;
    if (vr_tag_of(value) != VR_TAG_STACK || begin == VRAM_NO_OFFSET || begin < input->start_offset) return;
    const unsigned char *bytes = input->start + (begin - input->start_offset);
    size_t length = (size_t)(input->next - bytes);
    vr_echo_renew(&listening->echo, machine->memo_generation);
    uint32_t stack = (uint32_t)vr_payload(value);
    if (!vr_echo_miss(&listening->echo, bytes, length, stack) || !only_gets(bytes, length)) return;
    vr_echo_keep(&listening->echo, &machine->builder.budget, bytes, length, stack);
}

// Runs the frequent opcodes that only push, until another opcode comes or room or bytes run short.
static void run_pushes(struct vr_input *input, struct vr_machine *machine, struct listening *listening) {
    enum { LONGEST = 10 }; // LONG1 with a length and 8 bytes
    if (input->end - input->next < LONGEST) return;
    struct fast fast = {input->next, input->end - LONGEST, machine->stack + machine->depth, machine->stack + machine->stack_capacity};
    while (fast.next <= fast.last && fast.top < fast.limit) {
        const unsigned char *next = fast.next;
        switch (next[0]) {
        case OP_BINGET:
        case OP_LONG_BINGET:
            if (!run_gets(&fast, machine) && !run_shared_get(&fast, machine)) goto done;
            break;
        case OP_MEMOIZE:
            if (!run_memoize(&fast, machine)) goto done;
            break;
        case OP_MARK:
            // The outermost marks decide what is skipped.
            if (machine->mark_count < 2 || machine->mark_count == machine->mark_capacity) goto done;
            if (run_echo(&fast, input, machine, listening) || run_shaped(&fast, input, machine, listening)) break;
            machine->marks[machine->mark_count++] = (size_t)(fast.top - machine->stack);
            fast.next = next + 1;
            break;
        case OP_BININT1:
            *fast.top++ = vr_value(VR_TAG_INT, next[1]);
            fast.next = next + 2;
            break;
        case OP_BININT2:
            *fast.top++ = vr_value(VR_TAG_INT, (uint64_t)next[1] | (uint64_t)next[2] << 8);
            fast.next = next + 3;
            break;
        case OP_BININT:
            *fast.top++ = vr_value(VR_TAG_INT, (uint64_t)(int64_t)(int32_t)vr_load_32(next + 1) & VR_PAYLOAD_MASK);
            fast.next = next + 5;
            break;
        case OP_LONG1:
            if (next[1] == 0 || 8 * next[1] > VR_PAYLOAD_BITS) goto done;
            *fast.top++ = vr_value(VR_TAG_INT, (uint64_t)vr_load_long(next + 2, next[1]) & VR_PAYLOAD_MASK);
            fast.next = next + 2 + next[1];
            break;
        case OP_NEWTRUE:
        case OP_NEWFALSE:
            *fast.top++ = vr_value(VR_TAG_BOOL, next[0] == OP_NEWTRUE);
            fast.next = next + 1;
            break;
        case OP_EMPTY_DICT:
            *fast.top++ = vr_value(VR_TAG_NO_KEYS, 0);
            fast.next = next + 1;
            break;
        case OP_EMPTY_LIST:
            *fast.top++ = vr_value(VR_TAG_NO_ITEMS, 0);
            fast.next = next + 1;
            break;
        default: goto done;
        }
    }
done:
    input->next = fast.next;
    machine->depth = (size_t)(fast.top - machine->stack);
}

// Runs the opcodes that are neither frequent nor refused.
static enum vram_status run_rare(struct vr_input *input, struct vr_machine *machine, unsigned char code, const unsigned char *argument) {
    switch (code) {
    case OP_PROTO:
        if (argument[0] <= 5) return VRAM_OK;
        return VR_MACHINE_FAIL(machine, VRAM_BAD_INPUT, "pickle protocol %u is not supported; the newest supported one is 5", argument[0]);
    case OP_FRAME: return VRAM_OK;
    case OP_NONE: return vr_machine_push(machine, vr_value(VR_TAG_NONE, 0));
    case OP_BINFLOAT: return read_binfloat(machine, argument);
    case OP_BINUNICODE8: return read_string(input, machine, vr_little_endian(argument, 8));
    case OP_BINSTRING: return read_string(input, machine, vr_load_32(argument));
    case OP_SHORT_BINSTRING: return read_string(input, machine, argument[0]);
    case OP_SHORT_BINBYTES: return read_bytes(input, machine, argument[0], "$bytes");
    case OP_BINBYTES: return read_bytes(input, machine, vr_load_32(argument), "$bytes");
    case OP_BINBYTES8: return read_bytes(input, machine, vr_little_endian(argument, 8), "$bytes");
    case OP_BYTEARRAY8: return read_bytes(input, machine, vr_little_endian(argument, 8), "$bytearray");
    case OP_LONG4: return read_long(input, machine, vr_load_32(argument));
    case OP_EMPTY_SET: return vr_machine_push(machine, vr_value(VR_TAG_NO_ITEMS, VR_ITEMS_SET));
    case OP_ADDITEMS: return vr_machine_appends(machine);
    case OP_EMPTY_TUPLE: return vr_machine_push(machine, vr_value(VR_TAG_NO_ITEMS, VR_ITEMS_TUPLE));
    case OP_TUPLE: return vr_machine_tuple(machine);
    case OP_TUPLE1: return vr_machine_tuple_of(machine, 1);
    case OP_TUPLE3: return vr_machine_tuple_of(machine, 3);
    case OP_LIST: return vr_machine_list(machine);
    case OP_FROZENSET: return vr_machine_frozenset(machine);
    case OP_DICT: return vr_machine_dict(machine);
    case OP_POP: return vr_machine_pop(machine);
    case OP_POP_MARK: return vr_machine_pop_mark(machine);
    case OP_DUP: return vr_machine_dup(machine);
    case OP_INT:
    case OP_LONG:
    case OP_FLOAT:
    case OP_UNICODE:
    case OP_GET:
    case OP_PUT: return read_pickle_text(input, machine, code);
    default: return refuse_opcode(machine, code);
    }
}

static enum vram_status run_one(struct vr_input *input, struct vr_machine *machine, unsigned char code, const unsigned char *argument) {
    switch (code) {
    case OP_BINGET: return vr_machine_get(machine, argument[0]);
    case OP_LONG_BINGET: return vr_machine_get(machine, vr_load_32(argument));
    case OP_MEMOIZE: return vr_machine_memoize(machine);
    case OP_BINPUT: return vr_machine_put(machine, argument[0]);
    case OP_LONG_BINPUT: return vr_machine_put(machine, vr_load_32(argument));
    case OP_BININT1: return vr_machine_push(machine, vr_value(VR_TAG_INT, argument[0]));
    case OP_BININT2: return vr_machine_push(machine, vr_value(VR_TAG_INT, (uint64_t)argument[0] | (uint64_t)argument[1] << 8));
    case OP_BININT: return vr_machine_push_signed(machine, (int32_t)vr_load_32(argument));
    case OP_LONG1: return read_long(input, machine, argument[0]);
    case OP_SHORT_BINUNICODE: return read_string(input, machine, argument[0]);
    case OP_BINUNICODE: return read_string(input, machine, vr_load_32(argument));
    case OP_NEWTRUE: return vr_machine_push(machine, vr_value(VR_TAG_BOOL, 1));
    case OP_NEWFALSE: return vr_machine_push(machine, vr_value(VR_TAG_BOOL, 0));
    case OP_EMPTY_DICT: return vr_machine_push(machine, vr_value(VR_TAG_NO_KEYS, 0));
    case OP_EMPTY_LIST: return vr_machine_push(machine, vr_value(VR_TAG_NO_ITEMS, 0));
    case OP_MARK: return vr_machine_mark(machine);
    case OP_SETITEMS: return vr_machine_set_items(machine);
    case OP_SETITEM: return vr_machine_set_item(machine);
    case OP_APPENDS: return vr_machine_appends(machine);
    case OP_APPEND: return vr_machine_append(machine);
    case OP_TUPLE2: return vr_machine_tuple_of(machine, 2);
    default: return run_rare(input, machine, code, argument);
    }
}

static enum vram_status run_opcodes(struct vr_input *input, struct vr_machine *machine, struct listening *listening,
                                    uint64_t *opcode_offset) {
    for (;;) {
        run_pushes(input, machine, listening);
        *opcode_offset = vr_input_offset(input);
        VR_TRY(need_bytes(input, machine, 1));
        unsigned char code = *input->next;
        size_t bytes = vr_opcode_bytes[code];
        if (VR_UNLIKELY(bytes == 0)) return refuse_opcode(machine, code);
        VR_TRY(need_bytes(input, machine, bytes));
        const unsigned char *argument = input->next + 1;
        input->next += bytes;
        if (VR_UNLIKELY(code == OP_STOP)) return VRAM_OK;
        VR_TRY(run_one(input, machine, code, argument));
        if (code == OP_APPENDS) end_list(input, machine, listening);
        if (code == OP_SETITEMS) end_dict(input, machine, listening);
    }
}

enum vram_status vr_pickle_read(struct vr_input *input, struct vr_machine *machine) {
    uint64_t offset = vr_input_offset(input);
    struct listening listening = {.events.kind = VR_TAG_EVENT,
                                  .blocks.kind = VR_TAG_BLOCK,
                                  .frames.kind = VR_TAG_FRAME,
                                  .begin = VRAM_NO_OFFSET,
                                  .dict_begin = VRAM_NO_OFFSET};
    enum vram_status status = run_opcodes(input, machine, &listening, &offset);
    vr_echo_release(&listening.echo, &machine->builder.budget);
    if (status == VRAM_OK && machine->depth == 0) {
        status = VR_MACHINE_FAIL(machine, VRAM_BAD_INPUT, "the pickle is damaged: it ends without a value");
    }
    if (status != VRAM_OK) vr_machine_locate(machine, status, offset);
    return status;
}
