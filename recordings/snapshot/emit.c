// Emits values as bytes in any format, including values that the model keeps as JSON text.
#include "snapshot/emit.h"

#include <math.h>

#include "snapshot/literals.h"

static void release_emitter(struct vr_emitter *emitter) {
    free(emitter->chunk);
    free(emitter->memo);
    for (size_t i = 0; i < VR_SHARED_COUNT; i++) free(emitter->known[i]);
    free(emitter->pieces);
    free(emitter->piece_end);
}

enum vram_status vr_emitter_init(struct vr_emitter *emitter, const struct vr_emit_calls *calls, const struct vr_model *model, bool rows,
                                 vram_write write, void *user) {
    *emitter = (struct vr_emitter){.calls = calls, .model = model, .rows = rows, .change = VR_PYTHON_NONE, .write = write, .user = user};
    emitter->chunk = malloc(VR_EMIT_CHUNK);
    emitter->memo = calloc((size_t)VR_WORD_COUNT + model->strings.count, sizeof *emitter->memo);
    emitter->known[VR_SHARED_FRAME] = calloc((size_t)model->frames.count + 1, sizeof *emitter->memo);
    emitter->known[VR_SHARED_STACK] = calloc((size_t)model->stacks.count + 1, sizeof *emitter->memo);
    bool complete = emitter->chunk != NULL && emitter->memo != NULL && emitter->known[0] != NULL && emitter->known[1] != NULL;
    if (!complete) {
        release_emitter(emitter);
        return VRAM_NO_HOST_MEMORY;
    }
    calls->start(emitter);
    return VRAM_OK;
}

enum vram_status vr_emitter_finish(struct vr_emitter *emitter) {
    emitter->calls->finish(emitter);
    vr_emitter_flush(emitter);
    release_emitter(emitter);
    return emitter->status;
}

void vr_emitter_write(struct vr_emitter *emitter, const void *bytes, size_t length) {
    if (length == 0 || emitter->status != VRAM_OK) return;
    if (!emitter->write(emitter->user, bytes, length)) emitter->status = VRAM_IO;
}

void vr_emitter_flush(struct vr_emitter *emitter) {
    if (emitter->used == emitter->begin) return;
    emitter->calls->seal(emitter);
    vr_emitter_write(emitter, emitter->chunk, emitter->used);
    emitter->used = emitter->begin;
}

// ---- Values that the model keeps as JSON text (settings, extra keys), emitted as values.

enum { MAX_DEPTH = 501, LONGEST_NUMBER = 1024 };

// Walks a text, first without an emitter, to check that all of it is JSON, then to emit it.
struct walker {
    struct vr_emitter *emitter; // NULL during the check
    const char *next, *end;
    char *scratch; // an unescaped string
    unsigned depth;
};

static void skip_space(struct walker *walker) {
    while (walker->next < walker->end && strchr(" \t\r\n", *walker->next) != NULL && *walker->next != '\0') walker->next++;
}

static bool take_byte(struct walker *walker, char byte) {
    skip_space(walker);
    if (walker->next == walker->end || *walker->next != byte) return false;
    walker->next++;
    return true;
}

// Decodes the string whose opening quote is at walker->next into the scratch buffer.
static bool take_string(struct walker *walker, size_t *length) {
    size_t used = 0;
    if (!take_byte(walker, '"')) return false;
    while (walker->next < walker->end && *walker->next != '"') {
        if (*walker->next != '\\')
            walker->scratch[used++] = *walker->next++;
        else if (!vr_json_unescape(&walker->next, walker->end, walker->scratch, &used))
            return false;
    }
    *length = used;
    return take_byte(walker, '"');
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

// --- values that only Python has (literals.h) ----------------------------------------------------------------------------------------

// Returns whether the format can express the value; records the first kind that it cannot.
static bool expresses(const struct walker *walker, enum vr_python_value kind) {
    struct vr_emitter *emitter = walker->emitter;
    if (emitter->calls->begin_python != NULL) return true;
    if (emitter->change == VR_PYTHON_NONE) emitter->change = kind;
    return false;
}

static void begin_python(const struct walker *walker, enum vr_python_value kind) {
    if (walker->emitter == NULL) return;
    if (expresses(walker, kind))
        walker->emitter->calls->begin_python(walker->emitter, kind);
    else
        walker->emitter->calls->begin(walker->emitter, kind == VR_PYTHON_KIND_DICT);
}

static void end_python(const struct walker *walker, enum vr_python_value kind) {
    if (walker->emitter == NULL) return;
    if (expresses(walker, kind))
        walker->emitter->calls->end_python(walker->emitter, kind);
    else
        walker->emitter->calls->end(walker->emitter);
}

// Emits a key of any kind. If the format allows only strings as keys, emits the string, or the JSON text of another key.
static bool walk_any_key(struct walker *walker) {
    struct vr_emitter *emitter = walker->emitter;
    if (emitter == NULL || expresses(walker, VR_PYTHON_KIND_DICT)) return walk_value(walker);
    skip_space(walker);
    const char *begin = walker->next;
    size_t length = 0;
    if (begin < walker->end && *begin == '"') {
        if (!take_string(walker, &length)) return false;
        emitter->calls->key_bytes(emitter, walker->scratch, length);
        return true;
    }
    walker->emitter = NULL;
    const bool is_value = walk_value(walker);
    walker->emitter = emitter;
    if (is_value) emitter->calls->key_bytes(emitter, begin, (size_t)(walker->next - begin));
    return is_value;
}

static bool walk_any_pair(struct walker *walker) {
    return take_byte(walker, '[') && walk_any_key(walker) && take_byte(walker, ',') && walk_value(walker) && take_byte(walker, ']');
}

// Emits a tuple, a set or a dictionary, given as a list.
static bool walk_python_items(struct walker *walker, enum vr_python_value kind) {
    if (!take_byte(walker, '[')) return false;
    begin_python(walker, kind);
    for (bool first = true; !take_byte(walker, ']'); first = false) {
        if (!first && !take_byte(walker, ',')) return false;
        if (kind == VR_PYTHON_KIND_DICT ? !walk_any_pair(walker) : !walk_value(walker)) return false;
    }
    end_python(walker, kind);
    return true;
}

static bool walk_python_float(struct walker *walker) {
    static const struct {
        const char *text;
        double number;
    } words[] = {{"inf", INFINITY}, {"-inf", -INFINITY}, {"nan", NAN}};
    size_t length = 0, i = 0;
    if (!take_string(walker, &length)) return false;
    while (i < VR_COUNT_OF(words) && (strlen(words[i].text) != length || memcmp(words[i].text, walker->scratch, length) != 0)) i++;
    if (i == VR_COUNT_OF(words)) return false;
    if (walker->emitter == NULL) return true;
    (void)expresses(walker, VR_PYTHON_KIND_FLOAT);
    walker->emitter->calls->real(walker->emitter, words[i].number);
    return true;
}

static bool walk_python_bytes(struct walker *walker, enum vr_python_value kind) {
    size_t length = 0;
    if (!take_string(walker, &length)) return false;
    struct vr_emitter *emitter = walker->emitter;
    if (emitter != NULL && !expresses(walker, kind)) {
        emitter->calls->bytes(emitter, walker->scratch, length);
        return true;
    }
    if (!vr_python_text_unhex(walker->scratch, length)) return false;
    if (emitter != NULL) emitter->calls->python_bytes(emitter, kind, walker->scratch, length / 2);
    return true;
}

// Walks the value after {"$name":, and the closing brace.
static bool walk_python(struct walker *walker, enum vr_python_value kind) {
    bool good;
    switch (kind) {
    case VR_PYTHON_KIND_FLOAT: good = walk_python_float(walker); break;
    case VR_PYTHON_KIND_BYTES:
    case VR_PYTHON_KIND_BYTEARRAY: good = walk_python_bytes(walker, kind); break;
    default: good = walk_python_items(walker, kind);
    }
    return good && take_byte(walker, '}');
}

// Returns the kind of Python value that begins here, and consumes its name and colon. NONE: an ordinary dictionary begins.
static enum vr_python_value take_python(struct walker *walker) {
    const char *begin = walker->next;
    size_t length = 0;
    if (take_byte(walker, '{') && take_string(walker, &length)) {
        const enum vr_python_value kind = vr_python_text_kind(walker->scratch, length);
        if (kind != VR_PYTHON_NONE && take_byte(walker, ':')) return kind;
    }
    walker->next = begin;
    return VR_PYTHON_NONE;
}

// --- containers -------------------------------------------------------------------------------------------------------------------------

static bool walk_container(struct walker *walker, bool is_dict) {
    struct vr_emitter *emitter = walker->emitter;
    const char closing = is_dict ? '}' : ']';
    size_t length = 0;
    if (++walker->depth > MAX_DEPTH) return false;
    const enum vr_python_value kind = is_dict ? take_python(walker) : VR_PYTHON_NONE;
    if (kind != VR_PYTHON_NONE) {
        const bool good = walk_python(walker, kind);
        walker->depth--;
        return good;
    }
    walker->next++;
    if (emitter != NULL) emitter->calls->begin(emitter, is_dict);
    for (bool first = true; !take_byte(walker, closing); first = false) {
        if (!first && !take_byte(walker, ',')) return false;
        if (is_dict && (!take_string(walker, &length) || !take_byte(walker, ':'))) return false;
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
