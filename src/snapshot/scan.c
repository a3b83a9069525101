#include "snapshot/scan.h"

#include "snapshot/quoted.h"

enum { MAX_DEPTH = 200, LONGEST_WORD = 64 };

void vr_scan_release(struct vr_scan *scan) {
    free(scan->scratch);
    scan->scratch = NULL;
}

enum vram_status vr_scan_refuse(struct vr_scan *scan, const char *wanted) {
    const struct vr_source *source = scan->source;
    const bool ended = source->next == source->end;
    return vr_fail(scan->error, VRAM_BAD_INPUT, vr_source_offset(source),
                   ended ? "the JSON ends where %s is expected" : "%s is expected here in the JSON", wanted);
}

enum vram_status vr_scan_peek(struct vr_scan *scan, int *byte) {
    struct vr_source *source = scan->source;
    for (;;) {
        if (source->next == source->end) VR_TRY(vr_source_fill(source, 1));
        *byte = source->next == source->end ? 0 : *source->next;
        if (source->next == source->end || (*byte != ' ' && *byte != '\n' && *byte != '\t' && *byte != '\r')) return VRAM_OK;
        source->next++;
    }
}

static enum vram_status take(struct vr_scan *scan, char wanted) {
    char quoted[] = {'\'', wanted, '\'', '\0'};
    int byte;
    VR_TRY(vr_scan_peek(scan, &byte));
    if (byte != wanted) return vr_scan_refuse(scan, quoted);
    scan->source->next++;
    return VRAM_OK;
}

enum vram_status vr_scan_open(struct vr_scan *scan, char open) { return take(scan, open); }

// --- strings

static enum vram_status decode(struct vr_scan *scan, struct vr_scan_value *value) {
    size_t used = 0;
    VR_TRY(vr_grow((void **)&scan->scratch, &scan->scratch_capacity, value->length + 1, 1));
    if (!vr_quoted_decode(value->text, value->length, scan->scratch, &used))
        return vr_fail(scan->error, VRAM_BAD_INPUT, vr_source_offset(scan->source), "a JSON string has a malformed escape");
    value->text = scan->scratch;
    value->length = used;
    return VRAM_OK;
}

static enum vram_status read_string(struct vr_scan *scan, struct vr_scan_value *value) {
    size_t length = 0;
    bool escaped = false;
    const enum vram_status found = vr_quoted_measure(scan->source, &length, &escaped);
    if (found == VRAM_BAD_INPUT) return vr_fail(scan->error, found, vr_source_offset(scan->source), "the JSON ends inside a string");
    VR_TRY(found);
    value->kind = VR_SCAN_STRING;
    value->text = (const char *)scan->source->next + 1;
    value->length = length;
    if (escaped) VR_TRY(decode(scan, value));
    scan->source->next += length + 2;
    return VRAM_OK;
}

// --- numbers and words

static bool is_word_byte(unsigned char byte) {
    return (byte >= '0' && byte <= '9') || (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') || byte == '+' || byte == '-' ||
           byte == '.';
}

static enum vram_status read_word(struct vr_scan *scan, struct vr_scan_value *value) {
    static const char *const words[] = {"true", "false", "null", "NaN", "Infinity", "-Infinity", "nan", "inf", "-nan", "-inf"};
    struct vr_source *source = scan->source;
    size_t length = 0;
    VR_TRY(vr_source_fill(source, LONGEST_WORD));
    const char *text = (const char *)source->next;
    while (length < LONGEST_WORD && length < vr_source_at_hand(source) && is_word_byte(source->next[length])) length++;
    value->kind = VR_SCAN_OTHER;
    bool good = false;
    for (size_t i = 0; i < VR_COUNT_OF(words) && !good; i++) good = strlen(words[i]) == length && memcmp(words[i], text, length) == 0;
    if (!good && length != 0 && length < LONGEST_WORD && text[0] != '+' && vr_number_parse(text, length, &value->number)) {
        value->kind = VR_SCAN_NUMBER;
        good = true;
    }
    if (!good) return vr_scan_refuse(scan, "a value");
    source->next += length;
    return VRAM_OK;
}

// --- containers

enum vram_status vr_scan_item(struct vr_scan *scan, bool *first, bool *more) {
    int byte;
    VR_TRY(vr_scan_peek(scan, &byte));
    *more = byte != ']';
    if (!*more || !*first) {
        if (*more && byte != ',') return vr_scan_refuse(scan, "',' or ']'");
        scan->source->next++;
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
        scan->source->next++;
        return VRAM_OK;
    }
    if (!*first) {
        VR_TRY(take(scan, ','));
        VR_TRY(vr_scan_peek(scan, &byte));
    }
    *first = false;
    if (byte != '"') return vr_scan_refuse(scan, "a key in quotes");
    VR_TRY(read_string(scan, &text));
    const size_t length = text.length < capacity ? text.length : capacity - 1;
    memcpy(key, text.text, length);
    key[length] = '\0';
    return take(scan, ':');
}

static enum vram_status skip(struct vr_scan *scan, unsigned depth) {
    struct vr_scan_value value;
    char key[1];
    bool first = true, more = true;
    int byte;
    VR_TRY(vr_scan_peek(scan, &byte));
    if (byte == '"') return read_string(scan, &value);
    if (byte != '{' && byte != '[') return read_word(scan, &value);
    if (depth == MAX_DEPTH) {
        return vr_fail(scan->error, VRAM_LIMIT, vr_source_offset(scan->source), "the JSON nests deeper than %d levels", MAX_DEPTH);
    }
    scan->source->next++;
    for (;;) {
        VR_TRY(byte == '{' ? vr_scan_member(scan, &first, key, sizeof key, &more) : vr_scan_item(scan, &first, &more));
        if (!more) return VRAM_OK;
        VR_TRY(skip(scan, depth + 1));
    }
}

enum vram_status vr_scan_skip(struct vr_scan *scan) { return skip(scan, 0); }

enum vram_status vr_scan_value(struct vr_scan *scan, struct vr_scan_value *value) {
    int byte;
    VR_TRY(vr_scan_peek(scan, &byte));
    if (byte == '"') return read_string(scan, value);
    if (byte != '{' && byte != '[') return read_word(scan, value);
    value->kind = VR_SCAN_OTHER;
    return skip(scan, 0);
}
