#include "snapshot/scan.h"

#include "snapshot/literals.h"

enum { MAX_DEPTH = 200, LONGEST_WORD = 64 };

void vr_scan_release(struct vr_scan *scan) {
    free(scan->scratch);
    scan->scratch = NULL;
}

enum vram_status vr_scan_refuse(struct vr_scan *scan, const char *wanted) {
    const struct vr_input *input = scan->input;
    const bool ended = input->next == input->end;
    return vr_fail(scan->error, VRAM_BAD_INPUT, vr_input_offset(input),
                   ended ? "the JSON ends where %s is expected" : "%s is expected here in the JSON", wanted);
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

static enum vram_status read_string(struct vr_scan *scan, struct vr_scan_value *value) {
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
    VR_TRY(read_string(scan, &text));
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
    if (byte == '"') return read_string(scan, &value);
    if (byte != '{' && byte != '[') return scan_word(scan, &value);
    if (depth == MAX_DEPTH) {
        return vr_fail(scan->error, VRAM_LIMIT, vr_input_offset(scan->input), "the JSON nests deeper than %d levels", MAX_DEPTH);
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
    if (byte == '"') return read_string(scan, value);
    if (byte != '{' && byte != '[') return scan_word(scan, value);
    value->kind = VR_SCAN_OTHER;
    return skip_value(scan, 0);
}
