#include "snapshot/jsontext.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/json.h"

enum { MAX_DEPTH = 500, KEY_CAPACITY = 32 };
static_assert(MAX_DEPTH < VR_JSON_DEPTH, "the writer must be able to nest as deep");

struct json_printer {
    struct vr_machine *machine;
    struct vr_json json;
    uint64_t limit_bytes;
};

static enum vram_status add_value(struct json_printer *printer, const char *key, uint64_t value, unsigned depth);

static const char *string_of(const struct vr_machine *machine, uint64_t value, size_t *length) {
    const struct vr_strings *strings = &machine->builder.strings;
    uint64_t id = vr_payload(value);
    *length = (size_t)(strings->offset[id + 1] - strings->offset[id] - 1);
    return strings->bytes + strings->offset[id];
}

static void add_whole(struct json_printer *printer, const char *key, uint64_t resolved) {
    uint64_t number = 0;
    bool negative = false;
    (void)vr_machine_number(printer->machine, resolved, &number, &negative);
    if (negative)
        vr_json_i64(&printer->json, key, (int64_t)number);
    else
        vr_json_u64(&printer->json, key, number);
}

static void add_string(struct json_printer *printer, const char *key, uint64_t resolved) {
    size_t length;
    const char *bytes = string_of(printer->machine, resolved, &length);
    vr_json_string_bytes(&printer->json, key, bytes, length);
}

static void add_pair(struct json_printer *printer, const char *key, uint64_t resolved) {
    vr_json_array(&printer->json, key);
    vr_json_u64(&printer->json, NULL, vr_payload(resolved) & (((uint64_t)1 << VR_PAIR_BITS) - 1));
    vr_json_u64(&printer->json, NULL, vr_payload(resolved) >> VR_PAIR_BITS);
    vr_json_array_end(&printer->json);
}

// A float without a fraction keeps a point, so that it is one again when it is read.
static void add_float(struct json_printer *printer, const char *key, uint64_t resolved) {
    struct vr_text *out = printer->json.out;
    vr_json_double(&printer->json, key, vr_machine_float(printer->machine, resolved));
    size_t at = out->length;
    while (at != 0 && out->bytes[at - 1] >= '0' && out->bytes[at - 1] <= '9') at--;
    bool has_digits = at != out->length;
    if (at != 0 && out->bytes[at - 1] == '-') at--;
    if (has_digits && (at == 0 || strchr(".e+", out->bytes[at - 1]) == NULL)) vr_text_puts(out, ".0");
}

static void add_frame(struct json_printer *printer, const char *key, uint32_t frame) {
    const struct vr_frames *frames = &printer->machine->builder.frames;
    vr_json_object(&printer->json, key);
    add_string(printer, "name", frames->name[frame]);
    add_string(printer, "filename", frames->filename[frame]);
    vr_json_u64(&printer->json, "line", (uint64_t)frames->line[frame]);
    vr_json_object_end(&printer->json);
}

static void add_stack(struct json_printer *printer, const char *key, uint32_t stack) {
    const struct vr_stacks *stacks = &printer->machine->builder.stacks;
    vr_json_array(&printer->json, key);
    for (uint64_t i = stacks->offset[stack]; i < stacks->offset[stack + 1]; i++) add_frame(printer, NULL, stacks->frame[i]);
    vr_json_array_end(&printer->json);
}

static enum vram_status add_list(struct json_printer *printer, const char *key, uint64_t resolved, unsigned depth) {
    const uint64_t *items = NULL;
    size_t count = 0;
    (void)vr_machine_items(printer->machine, resolved, &items, &count);
    vr_json_array(&printer->json, key);
    for (size_t i = 0; i < count; i++) VR_TRY(add_value(printer, NULL, items[i], depth + 1));
    vr_json_array_end(&printer->json);
    return VRAM_OK;
}

// Keys that are numbers become text, as Python's json does it; other keys that are no strings have no text.
static const char *key_text(const struct vr_machine *machine, uint64_t key, char *digits) {
    size_t length;
    uint64_t number;
    bool negative;
    if (vr_tag_of(key) == VR_TAG_STRING) return string_of(machine, key, &length);
    if (!vr_machine_number(machine, key, &number, &negative)) return "null";
    (void)snprintf(digits, KEY_CAPACITY, "%s%" PRIu64, negative ? "-" : "", negative ? 0 - number : number);
    return digits;
}

static enum vram_status add_dict(struct json_printer *printer, const char *key, uint64_t resolved, unsigned depth) {
    const uint64_t *pairs = NULL;
    size_t count = 0;
    char digits[KEY_CAPACITY];
    (void)vr_machine_pairs(printer->machine, resolved, &pairs, &count);
    vr_json_object(&printer->json, key);
    for (size_t i = 0; i < count; i++) {
        VR_TRY(add_value(printer, key_text(printer->machine, pairs[2 * i], digits), pairs[2 * i + 1], depth + 1));
    }
    vr_json_object_end(&printer->json);
    return VRAM_OK;
}

static enum vram_status add_value(struct json_printer *printer, const char *key, uint64_t value, unsigned depth) {
    if (depth > MAX_DEPTH) return VR_MACHINE_FAIL(printer->machine, VRAM_LIMIT, "what a key holds nests deeper than %d levels", MAX_DEPTH);
    if (printer->json.out->length > printer->limit_bytes) return VRAM_LIMIT;
    uint64_t resolved = vr_machine_resolve(printer->machine, value);
    size_t length;
    switch (vr_tag_of(resolved)) {
    case VR_TAG_BOOL: vr_json_bool(&printer->json, key, vr_payload(resolved) != 0); break;
    case VR_TAG_INT:
    case VR_TAG_WIDE:
    case VR_TAG_UNSIGNED: add_whole(printer, key, resolved); break;
    case VR_TAG_FLOAT: add_float(printer, key, resolved); break;
    case VR_TAG_STRING: add_string(printer, key, resolved); break;
    case VR_TAG_JSON: vr_json_raw(&printer->json, key, string_of(printer->machine, resolved, &length)); break;
    case VR_TAG_FRAME: add_frame(printer, key, (uint32_t)vr_payload(resolved)); break;
    case VR_TAG_STACK: add_stack(printer, key, (uint32_t)vr_payload(resolved)); break;
    case VR_TAG_PAIR: add_pair(printer, key, resolved); break;
    case VR_TAG_NO_ITEMS:
    case VR_TAG_LIST: return add_list(printer, key, resolved, depth);
    case VR_TAG_NO_KEYS:
    case VR_TAG_DICT: return add_dict(printer, key, resolved, depth);
    default: vr_json_null(&printer->json, key);
    }
    return VRAM_OK;
}

enum vram_status vr_json_text_write(struct vr_text *text, struct vr_machine *machine, uint64_t value) {
    const struct vr_budget *budget = &machine->builder.budget;
    struct json_printer printer = {.machine = machine, .limit_bytes = text->length + (budget->limit_bytes - budget->used_bytes)};
    vr_json_init(&printer.json, text, false);
    VR_TRY(add_value(&printer, NULL, value, 0));
    return vr_text_status(text);
}

enum vram_status vr_json_text_string(struct vr_machine *machine, uint64_t value, uint32_t *id) {
    struct vr_text text = {0};
    enum vram_status status = vr_json_text_write(&text, machine, value);
    if (status == VRAM_OK) status = vr_builder_string(&machine->builder, text.bytes, text.length, id);
    vr_text_release(&text);
    return status;
}
