// sim_ptx.c: names of kernels and variables out of PTX, a public language of text. What a compiler would make of a kernel (registers,
// local memory) is not known; its static shared memory and its parameters stand in the text.
#include <string.h>

#include "sim/modules/sim_image.h"

// A place in the text. Words are what stands between spaces and signs.
struct reader {
    const char *at, *end;
};

struct ptx_word {
    const char *start;
    size_t length;
};

static bool is_word(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.' || c == '$' || c == '%';
}

static void skip_comment(struct reader *reader) {
    const size_t left = (size_t)(reader->end - reader->at);
    if (reader->at[1] == '/') {
        const char *end = memchr(reader->at, '\n', left);
        reader->at = end == NULL ? reader->end : end;
        return;
    }
    for (reader->at += 2; reader->end - reader->at >= 2; reader->at++) {
        if (reader->at[0] != '*' || reader->at[1] != '/') continue;
        reader->at += 2;
        return;
    }
    reader->at = reader->end;
}

static void skip_text(struct reader *reader) {
    const char *end = memchr(reader->at + 1, '"', (size_t)(reader->end - reader->at - 1));
    reader->at = end == NULL ? reader->end : end + 1;
}

// The next word, or sign of one character; length 0 at the end.
static struct ptx_word next_word(struct reader *reader) {
    while (reader->at < reader->end) {
        const char c = *reader->at;
        if (c == '/' && reader->end - reader->at >= 2 && (reader->at[1] == '/' || reader->at[1] == '*')) {
            skip_comment(reader);
        } else if (c == '"') {
            skip_text(reader);
        } else if (c == ' ' || c == '\t' || c == '\n' || c == '\r') {
            reader->at++;
        } else {
            struct ptx_word word = {reader->at++, 1};
            while (is_word(c) && reader->at < reader->end && is_word(*reader->at)) reader->at++;
            word.length = (size_t)(reader->at - word.start);
            return word;
        }
    }
    return (struct ptx_word){reader->end, 0};
}

static bool word_equals(struct ptx_word word, const char *text) {
    return strlen(text) == word.length && memcmp(word.start, text, word.length) == 0;
}

// Decimal, as sizes are written; 0 for anything else or more than a 32-bit number.
static uint64_t word_number(struct ptx_word word) {
    uint64_t number = 0;
    for (size_t i = 0; i < word.length; i++) {
        if (word.start[i] < '0' || word.start[i] > '9' || number > UINT32_MAX) return 0;
        number = number * 10 + (uint64_t)(word.start[i] - '0');
    }
    return number;
}

// Bytes of ".u32", ".b64", ".f16x2", ".v4"; 0: not a type.
static uint64_t type_bytes(struct ptx_word word) {
    if (word.length < 3 || word.start[0] != '.' || strchr("busf", word.start[1]) == NULL) return 0;
    const uint64_t bits = word_number((struct ptx_word){word.start + 2, word.length - 2});
    return bits == 8 || bits == 16 || bits == 32 || bits == 64 || bits == 128 ? bits / 8 : 0;
}

// ".align 8 .b8 name[24]" up to the sign after it, which is *end.
struct declared {
    struct ptx_word name;
    uint64_t bytes, alignment;
    bool managed;
};

// "(.managed)" and others behind ".attribute".
static bool read_attributes(struct reader *reader) {
    bool managed = false;
    for (struct ptx_word word = next_word(reader); word.length != 0 && !word_equals(word, ")"); word = next_word(reader))
        managed |= word_equals(word, ".managed");
    return managed;
}

static struct declared read_declaration(struct reader *reader, struct ptx_word *end) {
    struct declared declared = {.alignment = 1};
    uint64_t count = 1, each = 0;
    for (*end = next_word(reader); end->length != 0 && strchr(",;)={(", end->start[0]) == NULL; *end = next_word(reader)) {
        if (word_equals(*end, ".attribute"))
            declared.managed = read_attributes(reader);
        else if (word_equals(*end, ".align"))
            declared.alignment = word_number(next_word(reader));
        else if (word_equals(*end, ".v2") || word_equals(*end, ".v4"))
            count *= end->start[2] == '2' ? 2 : 4;
        else if (word_equals(*end, ".ptr"))
            continue;
        else if (end->start[0] == '[')
            count *= word_number(next_word(reader));
        else if (type_bytes(*end) != 0)
            each = type_bytes(*end);
        else if (is_word(end->start[0]) && end->start[0] != '.')
            declared.name = *end;
        if (count > UINT32_MAX) count = 0;
    }
    declared.bytes = count * each;
    if (declared.alignment == 0 || !vr_is_power_of_2(declared.alignment)) declared.alignment = each == 0 ? 1 : each;
    if (declared.alignment < each) declared.alignment = each;
    return declared;
}

static bool read_parameters(struct reader *reader, struct vr_sim_kernel *kernel) {
    uint64_t at = 0;
    kernel->has_parameters = true;
    for (uint32_t i = 0;; i++) {
        struct ptx_word end;
        const struct declared declared = read_declaration(reader, &end);
        if (declared.name.length != 0 && at <= UINT32_MAX / 2) {
            at = vr_round_up(at, declared.alignment);
            if (!vr_sim_kernel_add_parameter(kernel, i, (uint32_t)at, (uint32_t)declared.bytes)) return false;
            at += declared.bytes;
        }
        if (end.length == 0 || !word_equals(end, ",")) return true;
    }
}

// ".maxntid 128, 1, 1" and ".reqntid" bound a block.
static uint32_t read_most_threads(struct reader *reader) {
    uint64_t threads = 1;
    for (unsigned i = 0; i < 3; i++) {
        threads *= word_number(next_word(reader));
        const struct reader before = *reader;
        if (word_equals(next_word(reader), ",")) continue;
        *reader = before;
        break;
    }
    return threads <= 1024 ? (uint32_t)threads : 0;
}

// From behind the parameters to the end of the body. The shared variables of the body add up.
static void read_body(struct reader *reader, struct vr_sim_kernel *kernel) {
    unsigned depth = 0;
    uint64_t shared = 0;
    for (struct ptx_word word = next_word(reader); word.length != 0; word = next_word(reader)) {
        if (depth == 0 && (word_equals(word, ".maxntid") || word_equals(word, ".reqntid")))
            kernel->most_threads = read_most_threads(reader);
        if (depth == 0 && word_equals(word, ";")) break; // a declaration has no body
        if (word_equals(word, "{")) depth++;
        if (depth > 0 && word_equals(word, ".shared")) {
            struct ptx_word end;
            const struct declared declared = read_declaration(reader, &end);
            shared = vr_round_up(shared, declared.alignment) + declared.bytes;
            if (shared > UINT32_MAX) shared = 0;
            word = end;
        }
        if (word_equals(word, "}") && (depth == 0 || --depth == 0)) break;
    }
    kernel->shared_bytes = (uint32_t)shared;
}

static bool read_kernel(struct reader *reader, struct vr_sim_image *image) {
    const struct ptx_word name = next_word(reader);
    if (name.length == 0 || !is_word(name.start[0])) return true;
    struct vr_sim_kernel *kernel = vr_sim_image_add_kernel(image, name.start, name.length);
    if (kernel == NULL) return false;
    kernel->has_parameters = true;
    const struct reader before = *reader;
    if (!word_equals(next_word(reader), "("))
        *reader = before;
    else if (!read_parameters(reader, kernel))
        return false;
    read_body(reader, kernel);
    return true;
}

static bool read_variable(struct reader *reader, struct vr_sim_image *image) {
    struct ptx_word end;
    const struct declared declared = read_declaration(reader, &end);
    if (declared.name.length == 0 || declared.bytes == 0) return true;
    return vr_sim_image_add_variable(image, declared.name.start, declared.name.length, declared.bytes, declared.managed);
}

// A device function's body holds what looks like variables of the module.
static void skip_function(struct reader *reader) {
    unsigned depth = 0;
    for (struct ptx_word word = next_word(reader); word.length != 0; word = next_word(reader)) {
        if (word_equals(word, "{")) depth++;
        if (depth == 0 && word_equals(word, ";")) return;
        if (word_equals(word, "}") && (depth == 0 || --depth == 0)) return;
    }
}

vr_cu_result vr_sim_ptx_read(struct vr_sim_image *image, const char *text, size_t length) {
    struct reader reader = {text, text + length};
    bool fits = true;
    for (struct ptx_word word = next_word(&reader); word.length != 0 && fits; word = next_word(&reader)) {
        if (word_equals(word, ".entry")) fits = read_kernel(&reader, image);
        if (word_equals(word, ".func")) skip_function(&reader);
        if (word_equals(word, ".global") || word_equals(word, ".const")) fits = read_variable(&reader, image);
    }
    return fits ? VR_CU_SUCCESS : VR_CU_OUT_OF_MEMORY;
}

// ".target sm_90a" names it; 'a' takes the features of one architecture, 'f' those of a family.
bool vr_sim_ptx_architecture(const char *text, size_t length, uint32_t *architecture, bool *exact) {
    struct reader reader = {text, text + length};
    for (struct ptx_word word = next_word(&reader); word.length != 0; word = next_word(&reader)) {
        if (!word_equals(word, ".target")) continue;
        struct ptx_word target = next_word(&reader);
        if (target.length < 5 || memcmp(target.start, "sm_", 3) != 0) return false;
        const char last = target.start[target.length - 1];
        const bool letter = last == 'a' || last == 'f';
        const uint64_t number = word_number((struct ptx_word){target.start + 3, target.length - 3 - letter});
        *architecture = (uint32_t)number;
        *exact = last == 'a';
        return number >= 10 && number < 1000;
    }
    return false;
}
