// JSON output: strict, pure ASCII, without spaces; every number is written so that Python's json reads the same number. Stacks are written
// out at each occurrence; the text of a frame is made once and copied.
#include <stdio.h>

#include "base/text.h"
#include "snapshot/emit.h"

enum { ROW_DEPTH = 3 };

// Copies the output to a piece. Without memory it stops keeping the piece, and the frame is written out again next time.
static void keep_json(struct vr_emitter *emitter, const char *bytes, size_t length) {
    size_t needed = emitter->piece_bytes + length;
    void *pieces = emitter->pieces;
    if (needed > emitter->piece_capacity && vr_grow(&pieces, &emitter->piece_capacity, needed, 1) != VRAM_OK) {
        emitter->keeping = false;
        return;
    }
    emitter->pieces = pieces;
    memcpy(emitter->pieces + emitter->piece_bytes, bytes, length);
    emitter->piece_bytes += length;
}

static void put_json_bytes(struct vr_emitter *emitter, const char *bytes, size_t length) {
    if (VR_UNLIKELY(emitter->keeping)) keep_json(emitter, bytes, length);
    if (VR_LIKELY(length <= VR_EMIT_CHUNK / 2)) {
        memcpy(vr_emitter_room(emitter, length), bytes, length);
        emitter->used += length;
        return;
    }
    vr_emitter_flush(emitter);
    vr_emitter_write(emitter, bytes, length);
}

static void put_char(struct vr_emitter *emitter, char c) { put_json_bytes(emitter, &c, 1); }

// Returns whether each item of the current container goes on its own line: the keys of the top level, and the items of lists at most three
// levels deep, as the events in {"device_traces": [[ event.
static bool has_lines(const struct vr_emitter *emitter) {
    return emitter->rows && (emitter->depth == 1 || (emitter->depth <= ROW_DEPTH && !emitter->levels[emitter->depth].is_dict));
}

static void put_line_break(struct vr_emitter *emitter, unsigned depth) {
    static const char spaces[] = "\n   ";
    put_json_bytes(emitter, spaces, 1 + depth);
}

static void next_item(struct vr_emitter *emitter) {
    if (emitter->levels[emitter->depth].items++ != 0) put_char(emitter, ',');
    if (has_lines(emitter)) put_line_break(emitter, emitter->depth);
}

static void before_value(struct vr_emitter *emitter) {
    if (emitter->depth != 0 && !emitter->levels[emitter->depth].is_dict) next_item(emitter);
}

// Writes one escaped code point.
static void put_escape(struct vr_emitter *emitter, uint32_t code) {
    static const char names[] = "\"\"\\\\\bb\ff\nn\rr\tt";
    char text[16];
    for (size_t n = 0; n + 1 < sizeof names; n += 2) {
        if (code != (uint32_t)(unsigned char)names[n]) continue;
        put_json_bytes(emitter, (const char[]){'\\', names[n + 1]}, 2);
        return;
    }
    if (code == VR_UTF8_MALFORMED) code = 0xFFFD;
    int length = code < 0x10000 ? snprintf(text, sizeof text, "\\u%04x", (unsigned)code)
                                : snprintf(text, sizeof text, "\\u%04x\\u%04x", (unsigned)(0xD800 + ((code - 0x10000) >> 10)),
                                           (unsigned)(0xDC00 + ((code - 0x10000) & 0x3FF)));
    put_json_bytes(emitter, text, (size_t)length);
}

VR_INLINE bool is_plain_byte(char byte) { return byte >= 0x20 && byte < 0x7F && byte != '"' && byte != '\\'; }

static void put_quoted(struct vr_emitter *emitter, const char *bytes, size_t length) {
    put_char(emitter, '"');
    for (size_t i = 0; i < length;) {
        size_t run = i;
        while (run < length && is_plain_byte(bytes[run])) run++;
        put_json_bytes(emitter, bytes + i, run - i);
        i = run;
        if (i == length) break;
        uint32_t code;
        i += vr_utf8_decode(bytes + i, length - i, &code);
        put_escape(emitter, code);
    }
    put_char(emitter, '"');
}

static void json_start(struct vr_emitter *emitter) { emitter->begin = emitter->used = 0; }

static void json_begin(struct vr_emitter *emitter, bool is_dict) {
    before_value(emitter);
    put_char(emitter, is_dict ? '{' : '[');
    emitter->depth++;
    emitter->levels[emitter->depth].is_dict = is_dict;
    emitter->levels[emitter->depth].items = 0;
}

static void json_end(struct vr_emitter *emitter) {
    const bool is_dict = emitter->levels[emitter->depth].is_dict;
    if (has_lines(emitter) && emitter->levels[emitter->depth].items != 0) put_line_break(emitter, emitter->depth - 1);
    put_char(emitter, is_dict ? '}' : ']');
    emitter->depth--;
}

static void json_key_bytes(struct vr_emitter *emitter, const char *bytes, size_t length) {
    next_item(emitter);
    put_quoted(emitter, bytes, length);
    put_char(emitter, ':');
}

static void json_key(struct vr_emitter *emitter, uint64_t name) {
    size_t length;
    const char *bytes = vr_emitter_name(emitter, name, &length);
    json_key_bytes(emitter, bytes, length);
}

static void json_bytes(struct vr_emitter *emitter, const char *bytes, size_t length) {
    before_value(emitter);
    put_quoted(emitter, bytes, length);
}

static void json_name(struct vr_emitter *emitter, uint64_t name) {
    size_t length;
    const char *bytes = vr_emitter_name(emitter, name, &length);
    json_bytes(emitter, bytes, length);
}

static void json_number(struct vr_emitter *emitter, uint64_t number) {
    char text[20];
    size_t at = sizeof text;
    before_value(emitter);
    do {
        text[--at] = (char)('0' + number % 10);
        number /= 10;
    } while (number != 0);
    put_json_bytes(emitter, text + at, sizeof text - at);
}

static void json_signed(struct vr_emitter *emitter, int64_t number) {
    char text[24];
    if (number >= 0) {
        json_number(emitter, (uint64_t)number);
        return;
    }
    before_value(emitter);
    put_json_bytes(emitter, text, (size_t)snprintf(text, sizeof text, "%lld", (long long)number));
}

static void json_null(struct vr_emitter *emitter) {
    before_value(emitter);
    put_json_bytes(emitter, "null", 4);
}

static void json_digits(struct vr_emitter *emitter, const char *text, size_t length) {
    before_value(emitter);
    put_json_bytes(emitter, text, length);
}

// Writes the shortest text that reads as the same number, with a point or an exponent, so that it stays a float.
static void json_real(struct vr_emitter *emitter, double number) {
    char text[40];
    if (number - number != 0.0) {
        json_null(emitter);
        return;
    }
    before_value(emitter);
    for (int digits = 15; digits <= 17; digits++) {
        (void)snprintf(text, sizeof text - 2, "%.*g", digits, number);
        if (strtod(text, NULL) == number) break;
    }
    // The program may have set a locale whose decimal point is a comma.
    for (char *c = text; *c != '\0'; c++) *c = *c == ',' ? '.' : *c;
    if (strpbrk(text, ".e") == NULL) memcpy(text + strlen(text), ".0", 3);
    put_json_bytes(emitter, text, strlen(text));
}

static void json_boolean(struct vr_emitter *emitter, bool value) {
    before_value(emitter);
    put_json_bytes(emitter, value ? "true" : "false", value ? 4 : 5);
}

static void json_pair(struct vr_emitter *emitter, uint64_t first, uint64_t second) {
    json_begin(emitter, false);
    json_number(emitter, first);
    json_number(emitter, second);
    json_end(emitter);
}

static bool json_shared(struct vr_emitter *emitter, enum vr_shared kind, uint32_t id) {
    uint64_t piece = kind == VR_SHARED_FRAME ? emitter->known[kind][id] : 0;
    if (piece != 0) {
        uint64_t begin = piece == 1 ? 0 : emitter->piece_end[piece - 2];
        before_value(emitter);
        put_json_bytes(emitter, emitter->pieces + begin, (size_t)(emitter->piece_end[piece - 1] - begin));
        return true;
    }
    if (kind != VR_SHARED_FRAME) {
        json_begin(emitter, false);
        return false;
    }
    before_value(emitter);
    emitter->keeping = true;
    // Drop the piece of a previous frame that was not completed.
    emitter->piece_bytes = emitter->piece_count == 0 ? 0 : (size_t)emitter->piece_end[emitter->piece_count - 1];
    put_char(emitter, '{');
    emitter->depth++;
    emitter->levels[emitter->depth].is_dict = true;
    emitter->levels[emitter->depth].items = 0;
    return false;
}

static void json_end_shared(struct vr_emitter *emitter, enum vr_shared kind, uint32_t id) {
    json_end(emitter);
    if (kind != VR_SHARED_FRAME || !emitter->keeping) return;
    emitter->keeping = false;
    void *ends = emitter->piece_end;
    if (vr_grow(&ends, &emitter->piece_end_capacity, emitter->piece_count + 1, sizeof *emitter->piece_end) != VRAM_OK) return;
    emitter->piece_end = ends;
    emitter->piece_end[emitter->piece_count++] = emitter->piece_bytes;
    emitter->known[kind][id] = emitter->piece_count;
}

static void json_fields(struct vr_emitter *emitter, const struct vr_emit_field *fields, size_t count) {
    for (size_t i = 0; i < count; i++) {
        json_key(emitter, fields[i].key);
        switch ((enum vr_field_value)fields[i].kind) {
        case VR_FIELD_NUMBER: json_number(emitter, fields[i].value); break;
        case VR_FIELD_SIGNED: json_signed(emitter, (int64_t)fields[i].value); break;
        case VR_FIELD_NAME: json_name(emitter, fields[i].value); break;
        }
    }
}

static void json_seal(struct vr_emitter *emitter) { (void)emitter; }

static void json_finish(struct vr_emitter *emitter) { put_char(emitter, '\n'); }

const struct vr_emit_calls vr_emit_json = {
    .start = json_start,
    .begin = json_begin,
    .end = json_end,
    .fields = json_fields,
    .key = json_key,
    .key_bytes = json_key_bytes,
    .name = json_name,
    .bytes = json_bytes,
    .number = json_number,
    .signed_number = json_signed,
    .digits = json_digits,
    .real = json_real,
    .boolean = json_boolean,
    .null = json_null,
    .pair = json_pair,
    .shared = json_shared,
    .end_shared = json_end_shared,
    .seal = json_seal,
    .finish = json_finish,
};
