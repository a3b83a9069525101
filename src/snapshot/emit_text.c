// Values that the model keeps as JSON text (settings, further keys), emitted as what they say.
#include "snapshot/emit.h"
#include "snapshot/numerals.h"

enum { MAX_DEPTH = 501, LONGEST_NUMBER = 1024 };

// The text is walked twice: once without an emitter, to see that all of it is JSON, and once to emit it.
struct walker {
    struct vr_emitter *emitter; // NULL while it is only looked at
    const char *next, *end;
    char *scratch; // a string without its escapes
    unsigned depth;
};

static void skip_space(struct walker *walker) {
    while (walker->next < walker->end && strchr(" \t\r\n", *walker->next) != NULL && *walker->next != '\0') walker->next++;
}

static bool take(struct walker *walker, char byte) {
    skip_space(walker);
    if (walker->next == walker->end || *walker->next != byte) return false;
    walker->next++;
    return true;
}

// Decodes the string at walker->next (its opening quote) into the scratch.
static bool take_string(struct walker *walker, size_t *length) {
    size_t used = 0;
    if (!take(walker, '"')) return false;
    while (walker->next < walker->end && *walker->next != '"') {
        if (*walker->next != '\\')
            walker->scratch[used++] = *walker->next++;
        else if (!vr_json_unescape(&walker->next, walker->end, walker->scratch, &used))
            return false;
    }
    *length = used;
    return take(walker, '"');
}

static bool take_word(struct walker *walker, const char *word) {
    size_t length = strlen(word);
    if ((size_t)(walker->end - walker->next) < length || memcmp(walker->next, word, length) != 0) return false;
    walker->next += length;
    return true;
}

static bool walk_number(struct walker *walker) {
    const char *begin = walker->next;
    struct vr_numeral number;
    while (walker->next < walker->end && strchr("+-.0123456789eE", *walker->next) != NULL && *walker->next != '\0') walker->next++;
    size_t length = (size_t)(walker->next - begin);
    if (length > LONGEST_NUMBER || !vr_numeral_parse(begin, length, &number)) return false;
    struct vr_emitter *emitter = walker->emitter;
    if (emitter == NULL) return true;
    if (number.kind == VR_NUMERAL_FLOAT && vr_numeral_is_whole(begin, length))
        emitter->calls->digits(emitter, begin, length);
    else if (number.kind == VR_NUMERAL_FLOAT)
        emitter->calls->real(emitter, number.real);
    else if (number.negative)
        emitter->calls->signed_number(emitter, (int64_t)number.bits);
    else
        emitter->calls->number(emitter, number.bits);
    return true;
}

static bool walk_value(struct walker *walker);

static bool walk_container(struct walker *walker, bool is_dict) {
    struct vr_emitter *emitter = walker->emitter;
    const char closing = is_dict ? '}' : ']';
    size_t length = 0;
    if (++walker->depth > MAX_DEPTH) return false;
    walker->next++;
    if (emitter != NULL) emitter->calls->begin(emitter, is_dict);
    for (bool first = true; !take(walker, closing); first = false) {
        if (!first && !take(walker, ',')) return false;
        if (is_dict && (!take_string(walker, &length) || !take(walker, ':'))) return false;
        if (is_dict && emitter != NULL) emitter->calls->key_bytes(emitter, walker->scratch, length);
        if (!walk_value(walker)) return false;
    }
    if (emitter != NULL) emitter->calls->end(emitter);
    walker->depth--;
    return true;
}

static bool walk_value(struct walker *walker) {
    struct vr_emitter *emitter = walker->emitter;
    size_t length = 0;
    skip_space(walker);
    if (walker->next == walker->end) return false;
    switch (*walker->next) {
    case '{': return walk_container(walker, true);
    case '[': return walk_container(walker, false);
    case '"':
        if (!take_string(walker, &length)) return false;
        if (emitter != NULL) emitter->calls->bytes(emitter, walker->scratch, length);
        return true;
    case 't':
    case 'f': {
        bool value = *walker->next == 't';
        if (!take_word(walker, value ? "true" : "false")) return false;
        if (emitter != NULL) emitter->calls->boolean(emitter, value);
        return true;
    }
    case 'n':
        if (!take_word(walker, "null")) return false;
        if (emitter != NULL) emitter->calls->null(emitter);
        return true;
    default: return walk_number(walker);
    }
}

void vr_emit_text(struct vr_emitter *emitter, const char *text, size_t length) {
    struct walker walker = {.next = text, .end = text + length, .scratch = malloc(length + 4)};
    if (walker.scratch == NULL) {
        if (emitter->status == VRAM_OK) emitter->status = VRAM_NO_HOST_MEMORY;
        return;
    }
    bool is_json = walk_value(&walker);
    skip_space(&walker);
    is_json = is_json && walker.next == walker.end;
    if (is_json) {
        walker.emitter = emitter;
        walker.next = text;
        walker.depth = 0;
        (void)walk_value(&walker);
    } else {
        emitter->calls->bytes(emitter, text, length);
    }
    free(walker.scratch);
}
