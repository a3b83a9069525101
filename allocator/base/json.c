#include <stdio.h>

#include "base/json.h"
#include "base/text.h"

void vr_json_init(struct vr_json *json, struct vr_text *out, bool indented) { *json = (struct vr_json){.out = out, .indented = indented}; }

static bool is_plain(char byte) { return byte >= 0x20 && byte < 0x7F && byte != '"' && byte != '\\'; }

static void put_escaped(struct vr_text *out, const char *bytes, size_t length) {
    static const char names[] = "\"\"\\\\\bb\ff\nn\rr\tt";
    vr_text_append(out, "\"", 1);
    for (size_t i = 0, step; i < length; i += step) {
        // Append the plain run up to the next byte that needs escaping, in one piece.
        for (step = 0; i + step < length && is_plain(bytes[i + step]);) step++;
        if (step != 0) {
            vr_text_append(out, bytes + i, step);
            continue;
        }
        uint32_t code;
        const char *name = NULL;
        step = vr_utf8_decode(bytes + i, length - i, &code);
        for (size_t n = 0; n + 1 < sizeof names && name == NULL; n += 2) {
            if (code == (uint32_t)names[n]) name = &names[n + 1];
        }
        if (name != NULL) {
            vr_text_printf(out, "\\%c", *name);
        } else if (code == VR_UTF8_MALFORMED) {
            vr_text_puts(out, "\\ufffd");
        } else if (code < 0x10000) {
            vr_text_printf(out, "\\u%04x", (unsigned)code);
        } else {
            vr_text_printf(out, "\\u%04x\\u%04x", (unsigned)(0xD800 + ((code - 0x10000) >> 10)),
                           (unsigned)(0xDC00 + ((code - 0x10000) & 0x3FF)));
        }
    }
    vr_text_append(out, "\"", 1);
}

static void new_line(struct vr_json *json) {
    if (!json->indented) return;
    vr_text_puts(json->out, "\n");
    vr_text_repeat(json->out, " ", json->depth);
}

// Writes the comma, the new line and the key before a value.
static void begin_value(struct vr_json *json, const char *key) {
    uint64_t *filled = &json->filled[json->depth / 64 % (VR_JSON_DEPTH / 64)];
    const uint64_t bit = (uint64_t)1 << json->depth % 64;
    if (json->depth != 0) {
        if ((*filled & bit) != 0) vr_text_puts(json->out, json->indented ? "," : ", ");
        new_line(json);
    }
    *filled |= bit;
    if (key == NULL) return;
    put_escaped(json->out, key, strlen(key));
    vr_text_puts(json->out, ": ");
}

static void open_value(struct vr_json *json, const char *key, const char *bracket) {
    assert(json->depth + 1 < VR_JSON_DEPTH);
    begin_value(json, key);
    vr_text_puts(json->out, bracket);
    json->depth++;
    json->filled[json->depth / 64] &= ~((uint64_t)1 << json->depth % 64);
}

static void close_value(struct vr_json *json, const char *bracket) {
    assert(json->depth != 0);
    const bool filled = (json->filled[json->depth / 64] >> json->depth % 64 & 1) != 0;
    json->depth--;
    if (filled) new_line(json);
    vr_text_puts(json->out, bracket);
}

void vr_json_object(struct vr_json *json, const char *key) { open_value(json, key, "{"); }
void vr_json_object_end(struct vr_json *json) { close_value(json, "}"); }
void vr_json_array(struct vr_json *json, const char *key) { open_value(json, key, "["); }
void vr_json_array_end(struct vr_json *json) { close_value(json, "]"); }

// Answers contain tens of thousands of numbers; printing them with printf() would take longer than finding them.
static void put_digits(struct vr_text *out, uint64_t value) {
    char digits[20];
    size_t first = sizeof digits;
    do digits[--first] = (char)('0' + value % 10);
    while ((value /= 10) != 0);
    vr_text_append(out, digits + first, sizeof digits - first);
}

void vr_json_u64(struct vr_json *json, const char *key, uint64_t value) {
    begin_value(json, key);
    put_digits(json->out, value);
}

void vr_json_i64(struct vr_json *json, const char *key, int64_t value) {
    begin_value(json, key);
    if (value < 0) vr_text_append(json->out, "-", 1);
    put_digits(json->out, value < 0 ? 0 - (uint64_t)value : (uint64_t)value);
}

void vr_json_double(struct vr_json *json, const char *key, double value) {
    char text[40] = "null";
    begin_value(json, key);
    if (value - value == 0.0) {
        for (int digits = 15; digits <= 17; digits++) {
            (void)snprintf(text, sizeof text, "%.*g", digits, value);
            if (strtod(text, NULL) == value) break;
        }
        // The program's locale may use a comma as the decimal point.
        for (char *c = text; *c != '\0'; c++) *c = *c == ',' ? '.' : *c;
    }
    vr_text_puts(json->out, text);
}

void vr_json_bool(struct vr_json *json, const char *key, bool value) { vr_json_raw(json, key, value ? "true" : "false"); }
void vr_json_null(struct vr_json *json, const char *key) { vr_json_raw(json, key, "null"); }

void vr_json_string_bytes(struct vr_json *json, const char *key, const char *bytes, size_t length) {
    begin_value(json, key);
    put_escaped(json->out, bytes, length);
}

void vr_json_string(struct vr_json *json, const char *key, const char *string) {
    if (string == NULL) {
        vr_json_null(json, key);
    } else {
        vr_json_string_bytes(json, key, string, strlen(string));
    }
}

void vr_json_raw(struct vr_json *json, const char *key, const char *text) {
    begin_value(json, key);
    vr_text_puts(json->out, text);
}
