// Values for `vram sim --value`: operations that read, and the values stored in their place.
#include <math.h> // only its macros: libm is not needed
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "read_values.h"

// Operations with which PyTorch itself reads the results of others.
static const char *const carriers[] = {"_local_scalar_dense", "item", "copy_", "_to_copy", "to", "is_nonzero"};

static size_t word_length(const char *text) { return strcspn(text, " "); }

static const char *next_word(const char *text) {
    text += word_length(text);
    return text + strspn(text, " ");
}

static bool is_word(const char *text, const char *word, size_t length) {
    return word_length(text) == length && memcmp(text, word, length) == 0;
}

void vr_read_operations_add(const char *function, char *text, size_t capacity) {
    static const char begin[] = "at::_ops::";
    const char *name = strstr(function, begin);
    if (name == NULL) return;
    name += sizeof begin - 1;
    const size_t length = strcspn(name, ":("), used = strlen(text);
    if (length == 0 || name[length] != ':' || memchr(name, ' ', length) != NULL || used + length + 2 > capacity) return;
    for (const char *word = text; *word != '\0'; word = next_word(word))
        if (is_word(word, name, length)) return;
    if (used > 0) text[used] = ' ';
    memcpy(text + used + (used > 0), name, length);
    text[used + (used > 0) + length] = '\0';
}

// Returns whether `word` is the operation `name`. Ignores a leading underscore (PyTorch's internal variants) and an overload, variant or
// number after the name.
static bool is_called(const char *word, const char *name, size_t length) {
    size_t rest = word_length(word);
    if (rest >= length && memcmp(word, name, length) == 0 && (rest == length || word[length] == '_')) return true;
    if (*word != '_') return false;
    word++;
    rest--;
    if (rest < length || memcmp(word, name, length) != 0) return false;
    return rest == length || word[length] == '_' || (word[length] >= '0' && word[length] <= '9');
}

bool vr_read_operations_have(const char *text, const char *name, size_t length) {
    for (; *text != '\0'; text = next_word(text))
        if (is_called(text, name, length)) return true;
    return false;
}

bool vr_read_operations_count(const char *text) {
    return vr_read_operations_have(text, "nonzero", 7) || vr_read_operations_have(text, "unique", 6) ||
           vr_read_operations_have(text, "unique_consecutive", 18);
}

static bool carries_word(const char *word) {
    for (size_t i = 0; i < sizeof carriers / sizeof *carriers; i++)
        if (is_called(word, carriers[i], strlen(carriers[i]))) return true;
    return false;
}

const char *vr_read_operations_main(const char *text, size_t *length) {
    const char *found = text;
    for (const char *word = text; *word != '\0'; word = next_word(word)) {
        found = word;
        if (!carries_word(word)) break;
    }
    *length = word_length(found);
    return found;
}

// ---- Rules for values of reads: parsing, matching, filling.

// --- numbers --------------------------------------------------------------------------------------------------------

static bool is_blank(char one) { return one == ' ' || one == '\t' || one == '\r'; }
static bool is_digit_char(char one) { return one >= '0' && one <= '9'; }

// Reads a decimal integer with an optional sign. Negative numbers down to -2^63, positive ones up to 2^64 - 1.
static bool read_integer(const char *text, size_t length, bool *negative, uint64_t *magnitude) {
    uint64_t number = 0;
    size_t at = length > 0 && (text[0] == '-' || text[0] == '+');
    const size_t first = at;
    for (; at < length; at++) {
        if (!is_digit_char(text[at])) return false;
        const uint64_t digit = (uint64_t)(text[at] - '0');
        if (number > (UINT64_MAX - digit) / 10) return false;
        number = number * 10 + digit;
    }
    *negative = text[0] == '-' && number != 0;
    *magnitude = number;
    return at > first && (!*negative || number <= UINT64_C(1) << 63);
}

// Returns whether the number fits into `width` bytes.
static bool is_in_range(bool negative, uint64_t magnitude, unsigned width) {
    if (width == 8) return true;
    return negative ? magnitude <= UINT64_C(1) << (8 * width - 1) : magnitude >> 8 * width == 0;
}

static double scale_decimal(double number, long exponent) {
    for (; exponent > 0; exponent--) number *= 10;
    for (; exponent < 0; exponent++) number /= 10;
    return number;
}

// Reads an unsigned decimal with an optional point. Returns its length, or 0 if the text does not start with one.
static size_t read_decimal(const char *text, size_t length, double *number) {
    size_t at = 0, digits = 0;
    long exponent = 0;
    double found = 0;
    bool behind = false;
    for (; at < length && (is_digit_char(text[at]) || (text[at] == '.' && !behind)); at++) {
        if (text[at] == '.') {
            behind = true;
            continue;
        }
        found = found * 10 + (text[at] - '0');
        exponent -= behind;
        digits++;
    }
    *number = scale_decimal(found, exponent);
    return digits == 0 ? 0 : at;
}

// Does not use strtod(), which depends on the program's locale.
static bool read_real(const char *text, size_t length, double *number) {
    bool negative_exponent;
    uint64_t exponent = 0;
    const bool negative = length > 0 && text[0] == '-';
    if (length > 0 && (text[0] == '-' || text[0] == '+')) text++, length--;
    if (length == 3 && (memcmp(text, "inf", 3) == 0 || memcmp(text, "nan", 3) == 0)) {
        *number = text[0] == 'n' ? NAN : negative ? -INFINITY : INFINITY;
        return true;
    }
    double found;
    const size_t used = read_decimal(text, length, &found);
    if (used == 0) return false;
    if (used < length) {
        if (text[used] != 'e' && text[used] != 'E') return false;
        if (!read_integer(text + used + 1, length - used - 1, &negative_exponent, &exponent) || exponent > 400) return false;
        found = scale_decimal(found, negative_exponent ? -(long)exponent : (long)exponent);
    }
    *number = negative ? -found : found;
    return isfinite(found);
}

// Rounds to nearest, ties to even. `drop`: how many of a float's 23 bits the format lacks.
static uint32_t round_bits(uint32_t bits, unsigned drop) { return (bits + (UINT32_C(1) << (drop - 1)) - 1 + (bits >> drop & 1)) >> drop; }

static uint32_t float_bits(double number) {
    const float single = (float)number;
    uint32_t bits;
    memcpy(&bits, &single, sizeof bits);
    return bits;
}

static uint32_t bfloat_bits(double number) { return isnan(number) ? 0x7fc0 : round_bits(float_bits(number), 16); }

static uint32_t half_bits(double number) {
    const uint32_t sign = signbit(number) ? 0x8000 : 0;
    const double size = number < 0 ? -number : number;
    if (isnan(number)) return 0x7e00;
    if (size >= 65520) return sign | 0x7c00;
    if (size < 0x1p-14) return sign | (uint32_t)(size * 0x1p24 + 0x1p52 - 0x1p52); // in multiples of the smallest subnormal
    return sign | (round_bits(float_bits(size), 13) - ((127 - 15) << 10));
}

static uint64_t double_bits(double number) {
    uint64_t bits;
    memcpy(&bits, &number, sizeof bits);
    return bits;
}

// --- values ---------------------------------------------------------------------------------------------------------

static const struct type {
    char name[8];
    uint8_t width;
    bool real;
} types[] = {
    {"i8", 1, false}, {"i16", 2, false}, {"i32", 4, false}, {"i64", 8, false},
    {"f16", 2, true}, {"bf16", 2, true}, {"f32", 4, true},  {"f64", 8, true},
};

static const struct type *find_type(const char *text, size_t length) {
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (strlen(types[i].name) == length && memcmp(types[i].name, text, length) == 0) return &types[i];
    return NULL;
}

static uint64_t real_bits(const struct type *type, double number) {
    if (type->width == 8) return double_bits(number);
    if (type->width == 4) return float_bits(number);
    return type->name[0] == 'b' ? bfloat_bits(number) : half_bits(number);
}

static bool say_wrong(struct vr_read_wrong *wrong, const char *why, const char *text, size_t length) {
    (void)snprintf(wrong->why, sizeof wrong->why, "'%.*s' %s", (int)(length < 40 ? length : 40), text, why);
    return false;
}

// Reads `NUMBER%`, from 0 to 100.
static bool read_part(const char *text, size_t length, struct vr_read_value *value, struct vr_read_wrong *wrong) {
    double percent;
    if (!read_real(text, length - 1, &percent) || !(percent >= 0 && percent <= 100))
        return say_wrong(wrong, "is not a percentage from 0% to 100%", text, length);
    *value = (struct vr_read_value){.part = true, .bits = (uint64_t)(percent * 10000 + 0.5)};
    return true;
}

// Reads `NUMBER`, `TYPE:NUMBER` or `NUMBER%`.
static bool read_value(const char *text, size_t length, struct vr_read_value *value, struct vr_read_wrong *wrong) {
    const char *colon = memchr(text, ':', length);
    const struct type *type = NULL;
    if (length > 1 && text[length - 1] == '%') return read_part(text, length, value, wrong);
    if (colon != NULL) {
        type = find_type(text, (size_t)(colon - text));
        if (type == NULL) return say_wrong(wrong, "has an unknown type; expected i8, i16, i32, i64, f16, bf16, f32 or f64", text, length);
    }
    const char *number = colon == NULL ? text : colon + 1;
    const size_t digits = length - (size_t)(number - text);
    if (type != NULL && type->real) {
        double real;
        if (!read_real(number, digits, &real)) return say_wrong(wrong, "is not a number", text, length);
        *value = (struct vr_read_value){.width = type->width, .bits = real_bits(type, real)};
        return true;
    }
    bool negative;
    uint64_t magnitude;
    if (!read_integer(number, digits, &negative, &magnitude))
        return say_wrong(wrong, type == NULL ? "is not an integer; write other values with a type, such as f32:0.5" : "is not an integer",
                         text, length);
    if (type != NULL && !is_in_range(negative, magnitude, type->width))
        return say_wrong(wrong, "is out of range for its type", text, length);
    *value = (struct vr_read_value){.width = type == NULL ? 0 : type->width, .bits = negative ? 0 - magnitude : magnitude};
    return true;
}

static void trim_blanks(const char **text, size_t *length) {
    while (*length > 0 && is_blank((*text)[0])) (*text)++, (*length)--;
    while (*length > 0 && is_blank((*text)[*length - 1])) (*length)--;
}

// --- rules ----------------------------------------------------------------------------------------------------------

static bool read_place(const char *text, size_t length, struct vr_read_rule *rule, struct vr_read_wrong *wrong) {
    static const char operation[] = "aten::";
    *rule = (struct vr_read_rule){.kind = VR_READ_FILE, .name = text, .length = length};
    if (length == 1 && text[0] == '*') rule->kind = VR_READ_ANYWHERE;
    if (length > 2 && memcmp(text + length - 2, "()", 2) == 0) {
        rule->kind = VR_READ_FUNCTION;
        rule->length -= 2;
        return true;
    }
    if (length > sizeof operation - 1 && memcmp(text, operation, sizeof operation - 1) == 0) {
        *rule = (struct vr_read_rule){
            .kind = VR_READ_OPERATION, .name = text + sizeof operation - 1, .length = length - (sizeof operation - 1)};
        return true;
    }
    size_t digits = 0;
    while (digits < length && is_digit_char(text[length - 1 - digits])) digits++;
    if (digits > 0 && digits + 1 < length && text[length - 1 - digits] == ':') {
        bool negative;
        uint64_t line;
        if (!read_integer(text + length - digits, digits, &negative, &line) || line == 0 || line > INT32_MAX)
            return say_wrong(wrong, "has an invalid line number", text, length);
        rule->kind = VR_READ_LINE;
        rule->length -= digits + 1;
        rule->line = (int64_t)line;
        return true;
    }
    if (length == 0 || strcspn(text, "()") < length || text[length - 1] == ':')
        return say_wrong(wrong, "is not a place; expected FILE:LINE, FILE, FUNCTION(), aten::NAME or *", text, length);
    return true;
}

// Reads `PLACE=VALUE[,VALUE...]`, already trimmed.
static bool read_rule(const char *text, size_t length, struct vr_read_values *made, struct vr_read_wrong *wrong) {
    size_t equals = length; // the last '=': a path may contain others
    while (equals > 0 && text[equals - 1] != '=') equals--;
    if (equals == 0) return say_wrong(wrong, "is not a rule; expected PLACE=VALUE", text, length);
    const char *place = text, *end = text + length;
    size_t place_length = equals - 1;
    trim_blanks(&place, &place_length);
    struct vr_read_rule *rule = &made->rules[made->rule_count];
    if (!read_place(place, place_length, rule, wrong)) return false;
    rule->first = made->value_count;
    for (const char *at = text + equals;; at++) {
        const char *comma = memchr(at, ',', (size_t)(end - at)), *value = at;
        at = comma == NULL ? end : comma;
        size_t value_length = (size_t)(at - value);
        trim_blanks(&value, &value_length);
        if (!read_value(value, value_length, &made->values[made->value_count], wrong)) return false;
        made->by_operation = made->by_operation || made->values[made->value_count].part || rule->kind == VR_READ_OPERATION;
        made->value_count++;
        rule->count++;
        if (at == end) break;
    }
    made->rule_count++;
    return true;
}

// Returns the length without a comment, which is `#` at the start of the line or after a blank.
static size_t without_comment(const char *line, size_t length) {
    for (size_t i = 0; i < length; i++)
        if (line[i] == '#' && (i == 0 || is_blank(line[i - 1]))) return i;
    return length;
}

static bool read_rules(struct vr_read_values *made, struct vr_read_wrong *wrong) {
    for (const char *line = made->text; *line != '\0';) {
        const size_t length = strcspn(line, "\n");
        const char *rule = line;
        size_t rule_length = without_comment(line, length);
        wrong->line++;
        trim_blanks(&rule, &rule_length);
        if (rule_length > 0 && !read_rule(rule, rule_length, made, wrong)) return false;
        line += length + (line[length] == '\n');
    }
    return true;
}

bool vr_read_values_parse(const char *text, struct vr_read_values *made, struct vr_read_wrong *wrong) {
    struct vr_read_values found = {.text = NULL};
    const size_t size = strlen(text) + 1;
    size_t lines = 1, values = 1;
    *wrong = (struct vr_read_wrong){.line = 0};
    if (size > VR_READ_VALUES_BYTES) {
        (void)snprintf(wrong->why, sizeof wrong->why, "more than %d bytes of rules", VR_READ_VALUES_BYTES - 1);
        return false;
    }
    for (const char *at = text; *at != '\0'; at++) {
        lines += *at == '\n';
        values += *at == '\n' || *at == ',';
    }
    found.text = malloc(size);
    found.rules = calloc(lines, sizeof *found.rules);
    found.values = calloc(values, sizeof *found.values);
    bool good = found.text != NULL && found.rules != NULL && found.values != NULL;
    if (good)
        good = (memcpy(found.text, text, size), read_rules(&found, wrong));
    else
        (void)snprintf(wrong->why, sizeof wrong->why, "not enough host memory");
    if (good)
        *made = found;
    else
        vr_read_values_release(&found);
    return good;
}

void vr_read_values_release(struct vr_read_values *values) {
    free(values->text);
    free(values->rules);
    free(values->values);
    *values = (struct vr_read_values){.text = NULL};
}

// --- matching and filling -------------------------------------------------------------------------------------------

// Returns whether the name is the whole text, or its end after the character `before`.
static bool ends_with(const char *text, const struct vr_read_rule *rule, char before) {
    const size_t length = strlen(text);
    if (length < rule->length || memcmp(text + length - rule->length, rule->name, rule->length) != 0) return false;
    return length == rule->length || text[length - rule->length - 1] == before || rule->name[0] == before;
}

// Matches a function with or without its class, because Python frames contain the class only since 3.11.
static bool is_function(const char *function, const struct vr_read_rule *rule) {
    if (ends_with(function, rule, '.')) return true;
    const char *own = rule->name;
    for (size_t i = 0; i < rule->length; i++)
        if (rule->name[i] == '.') own = rule->name + i + 1;
    const size_t length = rule->length - (size_t)(own - rule->name);
    return own != rule->name && strlen(function) == length && memcmp(function, own, length) == 0;
}

bool vr_read_rule_is_of(const struct vr_read_rule *rule, const char *operations) {
    return rule->kind == VR_READ_OPERATION && vr_read_operations_have(operations, rule->name, rule->length);
}

bool vr_read_rule_matches(const struct vr_read_rule *rule, const char *function, const char *filename, int64_t line) {
    switch (rule->kind) {
    case VR_READ_FUNCTION: return is_function(function, rule);
    case VR_READ_OPERATION: return false;
    case VR_READ_FILE: return ends_with(filename, rule, '/');
    case VR_READ_LINE: return line == rule->line && ends_with(filename, rule, '/');
    default: return true;
    }
}

const struct vr_read_value *vr_read_rule_next(const struct vr_read_values *values, struct vr_read_rule *rule) {
    const uint64_t turn = atomic_fetch_add_explicit(&rule->reads, 1, memory_order_relaxed);
    return &values->values[rule->first + (turn < rule->count ? (size_t)turn : rule->count - 1)];
}

static unsigned usual_width(uint64_t size_bytes) {
    if (size_bytes == 1 || size_bytes == 2 || size_bytes == 4) return (unsigned)size_bytes;
    return size_bytes % 8 == 0 ? 8 : size_bytes % 4 == 0 ? 4 : 1;
}

// Returns a part of the count. Computes it in two steps, because the product may exceed 64 bits.
static uint64_t part_of(uint64_t counted, uint64_t millionths) {
    return counted / 1000000 * millionths + counted % 1000000 * millionths / 1000000;
}

void vr_read_value_fill(const struct vr_read_value *value, uint64_t counted, void *bytes, uint64_t size_bytes) {
    const unsigned width = value->width == 0 ? usual_width(size_bytes) : value->width;
    const uint64_t bits = value->part ? part_of(counted, value->bits) : value->bits;
    unsigned char *to = bytes;
    for (uint64_t at = 0; at + width <= size_bytes; at += width) memcpy(to + at, &bits, width); // little-endian, as devices are
}
