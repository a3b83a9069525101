// Reads JSON: either selected values, skipping the rest, or everything into a machine.
#include <math.h>

#include "snapshot/formats.h"
#include "snapshot/literals.h"
#include "snapshot/scan.h"

enum { MAX_SKIPPED_DEPTH = 200, LONGEST_WORD = 64 };

void vr_scan_release(struct vr_scan *scan) {
    free(scan->scratch);
    scan->scratch = NULL;
}

enum vram_status vr_scan_refuse(struct vr_scan *scan, const char *wanted) {
    const struct vr_input *input = scan->input;
    const bool ended = input->next == input->end;
    return vr_fail(scan->error, VRAM_BAD_INPUT, vr_input_offset(input),
                   ended ? "unexpected end of the JSON; expected %s" : "unexpected data in the JSON; expected %s", wanted);
}

enum vram_status vr_scan_peek(struct vr_scan *scan, int *byte) {
    struct vr_input *input = scan->input;
    for (;;) {
        if (input->next == input->end) VR_TRY(vr_input_fill(input, 1));
        *byte = input->next == input->end ? 0 : *input->next;
        if (input->next == input->end || (*byte != ' ' && *byte != '\n' && *byte != '\t' && *byte != '\r')) return VRAM_OK;
        input->next++;
    }
}

static enum vram_status take_expected(struct vr_scan *scan, char wanted) {
    char quoted[] = {'\'', wanted, '\'', '\0'};
    int byte;
    VR_TRY(vr_scan_peek(scan, &byte));
    if (byte != wanted) return vr_scan_refuse(scan, quoted);
    scan->input->next++;
    return VRAM_OK;
}

enum vram_status vr_scan_open(struct vr_scan *scan, char open) { return take_expected(scan, open); }

// --- strings

static enum vram_status decode_escapes(struct vr_scan *scan, struct vr_scan_value *value) {
    size_t used = 0;
    VR_TRY(VR_GROW(scan, scratch, value->length + 1));
    if (!vr_quoted_decode(value->text, value->length, scan->scratch, &used))
        return vr_fail(scan->error, VRAM_BAD_INPUT, vr_input_offset(scan->input), "a JSON string has a malformed escape");
    value->text = scan->scratch;
    value->length = used;
    return VRAM_OK;
}

static enum vram_status scan_string(struct vr_scan *scan, struct vr_scan_value *value) {
    size_t length = 0;
    bool escaped = false;
    const enum vram_status found = vr_quoted_measure(scan->input, &length, &escaped);
    if (found == VRAM_BAD_INPUT) return vr_fail(scan->error, found, vr_input_offset(scan->input), "the JSON ends inside a string");
    VR_TRY(found);
    value->kind = VR_SCAN_STRING;
    value->text = (const char *)scan->input->next + 1;
    value->length = length;
    if (escaped) VR_TRY(decode_escapes(scan, value));
    scan->input->next += length + 2;
    return VRAM_OK;
}

// --- numbers and words

static bool is_word_byte(unsigned char byte) {
    return (byte >= '0' && byte <= '9') || (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') || byte == '+' || byte == '-' ||
           byte == '.';
}

static enum vram_status scan_word(struct vr_scan *scan, struct vr_scan_value *value) {
    static const char *const words[] = {"true", "false", "null", "NaN", "Infinity", "-Infinity", "nan", "inf", "-nan", "-inf"};
    struct vr_input *input = scan->input;
    size_t length = 0;
    VR_TRY(vr_input_fill(input, LONGEST_WORD));
    const char *text = (const char *)input->next;
    while (length < LONGEST_WORD && length < vr_input_at_hand(input) && is_word_byte(input->next[length])) length++;
    value->kind = VR_SCAN_OTHER;
    bool good = false;
    for (size_t i = 0; i < VR_COUNT_OF(words) && !good; i++) good = strlen(words[i]) == length && memcmp(words[i], text, length) == 0;
    if (!good && length != 0 && length < LONGEST_WORD && text[0] != '+' && vr_numeral_parse(text, length, &value->number)) {
        value->kind = VR_SCAN_NUMBER;
        good = true;
    }
    if (!good) return vr_scan_refuse(scan, "a value");
    input->next += length;
    return VRAM_OK;
}

// --- containers

enum vram_status vr_scan_item(struct vr_scan *scan, bool *first, bool *more) {
    int byte;
    VR_TRY(vr_scan_peek(scan, &byte));
    *more = byte != ']';
    if (!*more || !*first) {
        if (*more && byte != ',') return vr_scan_refuse(scan, "',' or ']'");
        scan->input->next++;
    }
    *first = false;
    return VRAM_OK;
}

enum vram_status vr_scan_member(struct vr_scan *scan, bool *first, char *key, size_t capacity, bool *more) {
    struct vr_scan_value text;
    int byte;
    VR_TRY(vr_scan_peek(scan, &byte));
    *more = byte != '}';
    if (!*more) {
        scan->input->next++;
        return VRAM_OK;
    }
    if (!*first) {
        VR_TRY(take_expected(scan, ','));
        VR_TRY(vr_scan_peek(scan, &byte));
    }
    *first = false;
    if (byte != '"') return vr_scan_refuse(scan, "a key in quotes");
    VR_TRY(scan_string(scan, &text));
    const size_t length = text.length < capacity ? text.length : capacity - 1;
    memcpy(key, text.text, length);
    key[length] = '\0';
    return take_expected(scan, ':');
}

static enum vram_status skip_value(struct vr_scan *scan, unsigned depth) {
    struct vr_scan_value value;
    char key[1];
    bool first = true, more = true;
    int byte;
    VR_TRY(vr_scan_peek(scan, &byte));
    if (byte == '"') return scan_string(scan, &value);
    if (byte != '{' && byte != '[') return scan_word(scan, &value);
    if (depth == MAX_SKIPPED_DEPTH) {
        return vr_fail(scan->error, VRAM_LIMIT, vr_input_offset(scan->input), "the JSON nests deeper than %d levels", MAX_SKIPPED_DEPTH);
    }
    scan->input->next++;
    for (;;) {
        VR_TRY(byte == '{' ? vr_scan_member(scan, &first, key, sizeof key, &more) : vr_scan_item(scan, &first, &more));
        if (!more) return VRAM_OK;
        VR_TRY(skip_value(scan, depth + 1));
    }
}

enum vram_status vr_scan_skip(struct vr_scan *scan) { return skip_value(scan, 0); }

enum vram_status vr_scan_value(struct vr_scan *scan, struct vr_scan_value *value) {
    int byte;
    VR_TRY(vr_scan_peek(scan, &byte));
    if (byte == '"') return scan_string(scan, value);
    if (byte != '{' && byte != '[') return scan_word(scan, value);
    value->kind = VR_SCAN_OTHER;
    return skip_value(scan, 0);
}

// ---- Reads JSON into a machine.

enum { MAX_JSON_DEPTH = 500, LONGEST_NUMBER = 1024 };

struct parser {
    struct vr_input *input;
    struct vr_machine *machine;
    bool in_dict[MAX_JSON_DEPTH]; // by open container
    size_t depth;
    char *scratch; // a string after decoding its escapes
    size_t scratch_capacity;
};

// Sets *byte to the next byte, or to -1 at the end.
static enum vram_status peek_byte(struct parser *parser, int *byte) {
    if (VR_UNLIKELY(parser->input->next == parser->input->end)) VR_TRY(vr_input_fill(parser->input, 1));
    *byte = parser->input->next == parser->input->end ? -1 : *parser->input->next;
    return VRAM_OK;
}

VR_INLINE bool is_json_space(unsigned char byte) { return byte == ' ' || byte == '\n' || byte == '\r' || byte == '\t'; }

static enum vram_status skip_space(struct parser *parser, int *byte) {
    for (;;) {
        const unsigned char *next = parser->input->next, *end = parser->input->end;
        // Skip indentation eight spaces at a time.
        while (end - next >= 8 && memcmp(next, "        ", 8) == 0) next += 8;
        while (next != end && is_json_space(*next)) next++;
        parser->input->next = next;
        if (next != end) {
            *byte = *next;
            return VRAM_OK;
        }
        VR_TRY(peek_byte(parser, byte));
        if (*byte < 0) return VRAM_OK;
    }
}

static enum vram_status unexpected(struct parser *parser, const char *wanted, int byte) {
    if (byte < 0) return VR_MACHINE_FAIL(parser->machine, VRAM_BAD_INPUT, "unexpected end of the JSON; expected %s", wanted);
    if (byte < 0x20 || byte >= 0x7f) {
        return VR_MACHINE_FAIL(parser->machine, VRAM_BAD_INPUT, "unexpected byte 0x%02x in the JSON; expected %s", (unsigned)byte, wanted);
    }
    return VR_MACHINE_FAIL(parser->machine, VRAM_BAD_INPUT, "unexpected '%c' in the JSON; expected %s", byte, wanted);
}

// ---- strings

static enum vram_status push_escaped(struct parser *parser, const char *text, size_t length) {
    void *scratch = parser->scratch;
    enum vram_status status = vr_budget_grow(&parser->machine->builder.budget, &scratch, &parser->scratch_capacity, length + 1, 1);
    parser->scratch = scratch;
    VR_TRY(status);
    size_t used = 0;
    if (!vr_quoted_decode(text, length, parser->scratch, &used))
        return VR_MACHINE_FAIL(parser->machine, VRAM_BAD_INPUT, "a JSON string has a malformed escape");
    return vr_machine_push_string(parser->machine, parser->scratch, used);
}

static enum vram_status read_json_string(struct parser *parser) {
    size_t length = 0;
    bool escaped = false;
    const enum vram_status found = vr_quoted_measure(parser->input, &length, &escaped);
    if (found == VRAM_BAD_INPUT) return VR_MACHINE_FAIL(parser->machine, VRAM_BAD_INPUT, "the JSON ends inside a string");
    VR_TRY(found);
    const char *text = (const char *)parser->input->next + 1;
    VR_TRY(escaped ? push_escaped(parser, text, length) : vr_machine_push_string(parser->machine, text, length));
    parser->input->next += length + 2;
    return VRAM_OK;
}

// ---- numbers and words

VR_INLINE bool is_number_byte(char byte) {
    return (byte >= '0' && byte <= '9') || byte == '-' || byte == '+' || byte == '.' || byte == 'e' || byte == 'E';
}

static enum vram_status read_json_number(struct parser *parser) {
    struct vr_input *input = parser->input;
    if (vr_input_at_hand(input) < LONGEST_NUMBER) VR_TRY(vr_input_fill(input, LONGEST_NUMBER));
    const char *text = (const char *)input->next;
    size_t limit = vr_input_at_hand(input) < LONGEST_NUMBER ? vr_input_at_hand(input) : LONGEST_NUMBER, length = 0;
    while (length < limit && is_number_byte(text[length])) length++;
    struct vr_numeral number;
    if (length == LONGEST_NUMBER || !vr_numeral_parse(text, length, &number)) {
        return VR_MACHINE_FAIL(parser->machine, VRAM_BAD_INPUT, "a JSON number is malformed");
    }
    input->next += length;
    if (number.kind == VR_NUMERAL_FLOAT && vr_numeral_is_whole(text, length)) return vr_machine_push_digits(parser->machine, text, length);
    if (number.kind == VR_NUMERAL_FLOAT) return vr_machine_push_float(parser->machine, number.real);
    if (number.negative) return vr_machine_push_signed(parser->machine, (int64_t)number.bits);
    return vr_machine_push_unsigned(parser->machine, number.bits);
}

// Sets *found to false if the bytes at input->next are not one of the words.
static enum vram_status read_json_word(struct parser *parser, bool *found) {
    static const struct {
        const char *text;
        uint64_t value; // 0: a float
        double real;
    } words[] = {
        {"true", VR_VALUE(VR_TAG_BOOL, 1), 0},
        {"false", VR_VALUE(VR_TAG_BOOL, 0), 0},
        {"null", VR_VALUE(VR_TAG_NONE, 0), 0},
        {"NaN", 0, NAN},
        {"Infinity", 0, INFINITY},
        {"-Infinity", 0, -INFINITY},
    };
    VR_TRY(vr_input_fill(parser->input, 9));
    *found = false;
    for (size_t i = 0; i < VR_COUNT_OF(words) && !*found; i++) {
        size_t length = strlen(words[i].text);
        if (vr_input_at_hand(parser->input) < length || memcmp(parser->input->next, words[i].text, length) != 0) continue;
        *found = true;
        parser->input->next += length;
        if (words[i].value == 0) return vr_machine_push_float(parser->machine, words[i].real);
        return vr_machine_push(parser->machine, words[i].value);
    }
    return VRAM_OK;
}

static enum vram_status read_scalar(struct parser *parser, int byte) {
    if (byte == '"') return read_json_string(parser);
    if (byte >= '0' && byte <= '9') return read_json_number(parser);
    bool found = false;
    VR_TRY(read_json_word(parser, &found));
    if (found) return VRAM_OK;
    if (byte == '-') return read_json_number(parser);
    return unexpected(parser, "a value", byte);
}

// ---- containers

static enum vram_status open_container(struct parser *parser, bool is_dict) {
    if (parser->depth == MAX_JSON_DEPTH)
        return VR_MACHINE_FAIL(parser->machine, VRAM_LIMIT, "the JSON nests deeper than %d levels", MAX_JSON_DEPTH);
    parser->input->next++;
    parser->in_dict[parser->depth++] = is_dict;
    VR_TRY(vr_machine_push(parser->machine, vr_value(is_dict ? VR_TAG_NO_KEYS : VR_TAG_NO_ITEMS, 0)));
    return vr_machine_mark(parser->machine);
}

static enum vram_status add_batch(struct parser *parser) {
    return parser->in_dict[parser->depth - 1] ? vr_machine_set_items(parser->machine) : vr_machine_appends(parser->machine);
}

static enum vram_status read_key(struct parser *parser) {
    int byte = -1;
    VR_TRY(skip_space(parser, &byte));
    if (byte != '"') return unexpected(parser, "a key in quotes", byte);
    VR_TRY(read_json_string(parser));
    VR_TRY(skip_space(parser, &byte));
    if (byte != ':') return unexpected(parser, "':'", byte);
    parser->input->next++;
    return VRAM_OK;
}

// Called after a comma. Adds long containers in batches, so that the stack stays short.
static enum vram_status next_item(struct parser *parser) {
    const struct vr_machine *machine = parser->machine;
    bool is_dict = parser->in_dict[parser->depth - 1];
    parser->input->next++;
    if (machine->depth - machine->marks[machine->mark_count - 1] >= (is_dict ? 2 * VR_BATCH : VR_BATCH)) {
        VR_TRY(add_batch(parser));
        VR_TRY(vr_machine_mark(parser->machine));
    }
    return is_dict ? read_key(parser) : VRAM_OK;
}

// Called after a value. Closes the containers that end here; returns when another value must follow (*more) or all are closed.
static enum vram_status after_value(struct parser *parser, bool *more) {
    *more = false;
    while (parser->depth != 0) {
        int byte = -1;
        bool is_dict = parser->in_dict[parser->depth - 1];
        VR_TRY(skip_space(parser, &byte));
        if (byte == ',') {
            *more = true;
            return next_item(parser);
        }
        if (byte != (is_dict ? '}' : ']')) return unexpected(parser, is_dict ? "',' or '}'" : "',' or ']'", byte);
        parser->input->next++;
        VR_TRY(add_batch(parser));
        parser->depth--;
    }
    return VRAM_OK;
}

// Reads a scalar or begins a container. *complete is false if the container's first item must follow.
static enum vram_status begin_value(struct parser *parser, bool *complete) {
    int byte = -1;
    VR_TRY(skip_space(parser, &byte));
    *complete = true;
    if (byte != '{' && byte != '[') return read_scalar(parser, byte);
    bool is_dict = byte == '{';
    VR_TRY(open_container(parser, is_dict));
    VR_TRY(skip_space(parser, &byte));
    // after_value() closes an empty container.
    if (byte == (is_dict ? '}' : ']')) return VRAM_OK;
    *complete = false;
    return is_dict ? read_key(parser) : VRAM_OK;
}

static enum vram_status read_all(struct parser *parser) {
    bool more = true;
    while (more) {
        bool complete = true;
        VR_TRY(begin_value(parser, &complete));
        if (complete) VR_TRY(after_value(parser, &more));
    }
    int byte = -1;
    VR_TRY(skip_space(parser, &byte));
    return byte < 0 ? VRAM_OK : unexpected(parser, "the end of the file", byte);
}

enum vram_status vr_json_read(struct vr_input *input, struct vr_machine *machine) {
    struct parser parser = {.input = input, .machine = machine};
    machine->pairs_are_lists = true;
    enum vram_status status = read_all(&parser);
    free(parser.scratch);
    if (status != VRAM_OK) vr_machine_locate(machine, status, vr_input_offset(input));
    return status;
}
