// Reads and writes numbers, strings and words as text in pickles and JSON.
#include "snapshot/literals.h"

enum { MAX_EXPONENT = 9999, EXACT_EXPONENT = 22, MANTISSA_DIGITS = 19 };

// The parts of a decimal number: a mantissa of up to 19 digits, and an exponent that accounts for further digits.
struct decimal {
    uint64_t mantissa;
    int digits;
    int exponent;
    bool cut; // nonzero digits were left out
    bool whole;
    bool any;
};

static const char *read_digits(const char *p, const char *end, bool after_point, struct decimal *decimal) {
    for (; p < end && *p >= '0' && *p <= '9'; p++) {
        decimal->any = true;
        if (decimal->digits < MANTISSA_DIGITS) {
            decimal->mantissa = decimal->mantissa * 10 + (uint64_t)(*p - '0');
            if (decimal->mantissa != 0) decimal->digits++;
            if (after_point) decimal->exponent--;
        } else {
            if (*p != '0') decimal->cut = true;
            if (!after_point && decimal->exponent < MAX_EXPONENT) decimal->exponent++;
        }
    }
    return p;
}

static const char *read_exponent(const char *p, const char *end, struct decimal *decimal) {
    bool negative = false;
    int exponent = 0;
    if (p < end && (*p == '+' || *p == '-')) negative = *p++ == '-';
    const char *first = p;
    for (; p < end && *p >= '0' && *p <= '9'; p++) {
        if (exponent < MAX_EXPONENT) exponent = exponent * 10 + (*p - '0');
    }
    decimal->exponent += negative ? -exponent : exponent;
    return p == first ? NULL : p;
}

// Parses by the C library, which is exact, allowing for a locale with a decimal comma. Returns false if the text is too long.
static bool read_exactly(const char *text, size_t length, double *number) {
    enum { LONGEST = 64 };
    char copy[LONGEST + 1], *stopped;
    if (length > LONGEST) return false;
    memcpy(copy, text, length);
    copy[length] = '\0';
    *number = strtod(copy, &stopped);
    if (*stopped == '.') {
        *stopped = ',';
        *number = strtod(copy, &stopped);
    }
    return *stopped == '\0';
}

// Computes mantissa * 10^exponent, correct to the last digit or two; sets *is_exact if the result is exact, which holds for up to 15 digits
// and exponents up to 22.
static double scale_by_power(uint64_t mantissa, int exponent, bool *is_exact) {
    long double value = (long double)mantissa, power = 10.0L;
    bool divide = exponent < 0;
    unsigned steps = (unsigned)(divide ? -exponent : exponent);
    *is_exact = true;
    if (mantissa == 0) return 0.0;
    if (mantissa < (uint64_t)1 << 53 && steps <= EXACT_EXPONENT) {
        double exact = 1.0;
        for (; steps != 0; steps--) exact *= 10.0;
        return divide ? (double)mantissa / exact : (double)mantissa * exact;
    }
    *is_exact = false;
    for (; steps != 0; steps >>= 1, power *= power) {
        if (steps & 1) value = divide ? value / power : value * power;
    }
    return (double)value;
}

// Parses an integer of more than 19 digits. Returns false if it does not fit in 64 bits.
static bool read_whole(const char *p, const char *end, bool negative, uint64_t *bits) {
    uint64_t number = 0;
    for (; p < end; p++) {
        if (!vr_mul_u64(number, 10, &number) || !vr_add_u64(number, (uint64_t)(*p - '0'), &number)) return false;
    }
    if (negative && number > (uint64_t)1 << 63) return false;
    *bits = negative ? 0 - number : number;
    return true;
}

bool vr_numeral_is_whole(const char *text, size_t length) {
    const bool negative = length != 0 && text[0] == '-';
    if (length - negative == 0 || (text[negative] == '0' && length != 1)) return false;
    for (size_t i = negative; i < length; i++)
        if (text[i] < '0' || text[i] > '9') return false;
    return true;
}

bool vr_numeral_parse(const char *text, size_t length, struct vr_numeral *number) {
    const char *p = text, *end = text + length;
    struct decimal decimal = {.whole = true};
    bool negative = false;
    if (p < end && (*p == '-' || *p == '+')) negative = *p++ == '-';
    const char *first = p;
    p = read_digits(p, end, false, &decimal);
    if (p < end && *p == '.') {
        decimal.whole = false;
        p = read_digits(p + 1, end, true, &decimal);
    }
    if (!decimal.any) return false;
    if (p < end && (*p == 'e' || *p == 'E')) {
        decimal.whole = false;
        p = read_exponent(p + 1, end, &decimal);
    }
    if (p != end) return false;
    *number = (struct vr_numeral){.kind = VR_NUMERAL_WHOLE};
    if (decimal.whole && read_whole(first, end, negative, &number->bits)) {
        number->negative = negative && number->bits != 0;
        return true;
    }
    number->kind = VR_NUMERAL_FLOAT;
    bool is_exact;
    double real = scale_by_power(decimal.mantissa, decimal.exponent, &is_exact);
    number->real = negative ? -real : real;
    if (!is_exact || decimal.cut) (void)read_exactly(text, length, &number->real);
    return true;
}

// Writes a code point as UTF-8 (surrogates too, in three bytes) and returns its length, 1 to 4.
static size_t utf8_put(uint32_t code, char *bytes) {
    if (code < 0x80) {
        bytes[0] = (char)code;
        return 1;
    }
    if (code < 0x800) {
        bytes[0] = (char)(0xc0 | code >> 6);
        bytes[1] = (char)(0x80 | (code & 0x3f));
        return 2;
    }
    if (code < 0x10000) {
        bytes[0] = (char)(0xe0 | code >> 12);
        bytes[1] = (char)(0x80 | (code >> 6 & 0x3f));
        bytes[2] = (char)(0x80 | (code & 0x3f));
        return 3;
    }
    bytes[0] = (char)(0xf0 | code >> 18);
    bytes[1] = (char)(0x80 | (code >> 12 & 0x3f));
    bytes[2] = (char)(0x80 | (code >> 6 & 0x3f));
    bytes[3] = (char)(0x80 | (code & 0x3f));
    return 4;
}

bool vr_hex_parse(const char *text, size_t count, uint32_t *code) {
    uint32_t number = 0;
    for (size_t i = 0; i < count; i++) {
        char c = text[i];
        uint32_t digit;
        if (c >= '0' && c <= '9')
            digit = (uint32_t)(c - '0');
        else if (c >= 'a' && c <= 'f')
            digit = (uint32_t)(c - 'a') + 10;
        else if (c >= 'A' && c <= 'F')
            digit = (uint32_t)(c - 'A') + 10;
        else
            return false;
        number = number << 4 | digit;
    }
    *code = number;
    return true;
}

bool vr_json_unescape(const char **text, const char *end, char *bytes, size_t *used) {
    static const char plain[] = "\"\\/bfnrt", meaning[] = "\"\\/\b\f\n\r\t";
    const char *at = *text;
    if (end - at < 2) return false;
    const char *found = at[1] == '\0' ? NULL : strchr(plain, at[1]);
    if (found != NULL) {
        bytes[(*used)++] = meaning[found - plain];
        *text = at + 2;
        return true;
    }
    uint32_t code, low;
    if (at[1] != 'u' || end - at < 6 || !vr_hex_parse(at + 2, 4, &code)) return false;
    at += 6;
    bool pair = code >= 0xd800 && code < 0xdc00 && end - at >= 6 && at[0] == '\\' && at[1] == 'u' && vr_hex_parse(at + 2, 4, &low) &&
                low >= 0xdc00 && low < 0xe000;
    if (pair) {
        code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
        at += 6;
    }
    *used += utf8_put(code, bytes + *used);
    *text = at;
    return true;
}

bool vr_raw_unicode_decode(const char *text, size_t length, char *bytes, size_t *decoded) {
    size_t used = 0;
    for (size_t i = 0; i < length;) {
        uint32_t code = (unsigned char)text[i];
        size_t digits = i + 1 < length && text[i] == '\\' ? (text[i + 1] == 'u' ? 4 : text[i + 1] == 'U' ? 8 : 0) : 0;
        if (digits != 0) {
            if (length - i - 2 < digits || !vr_hex_parse(text + i + 2, digits, &code) || code > 0x10ffff) return false;
            i += 1 + digits;
        }
        i++;
        used += utf8_put(code, bytes + used);
    }
    *decoded = used;
    return true;
}

enum vram_status vr_quoted_measure(struct vr_input *input, size_t *length, bool *escaped) {
    bool backslash = false;
    for (size_t at = 1;;) {
        const unsigned char *text = input->next;
        const size_t count = vr_input_at_hand(input);
        while (at < count && text[at] != '"' && text[at] != '\\') at++;
        if (at < count && text[at] == '"') {
            *length = at - 1;
            *escaped = backslash;
            return VRAM_OK;
        }
        if (at < count) {
            // A byte after a backslash does not end the string.
            backslash = true;
            at += 2;
        } else if (input->ended) {
            return VRAM_BAD_INPUT;
        } else {
            VR_TRY(vr_input_fill(input, (uint64_t)at + 1));
        }
    }
}

bool vr_quoted_decode(const char *text, size_t length, char *bytes, size_t *used) {
    size_t count = 0;
    for (const char *end = text + length; text < end;) {
        if (*text != '\\')
            bytes[count++] = *text++;
        else if (!vr_json_unescape(&text, end, bytes, &count))
            return false;
    }
    *used = count;
    return true;
}

static const char *const names[] = {
#define NAME(kind, name) name,
    VR_PYTHON_KINDS(NAME)
#undef NAME
};

const char *vr_python_text_items(enum vr_items items_of) {
    assert(items_of != VR_ITEMS_LIST);
    return names[items_of - VR_ITEMS_TUPLE];
}

enum vr_python_value vr_python_text_kind(const char *key, size_t length) {
    if (length == 0 || *key != '$') return VR_PYTHON_NONE;
    size_t kind = 0;
    while (kind < VR_COUNT_OF(names) && (strlen(names[kind]) != length || memcmp(names[kind], key, length) != 0)) kind++;
    return (enum vr_python_value)kind;
}

void vr_python_text_bytes(struct vr_text *text, const char *name, const unsigned char *bytes, size_t length) {
    static const char digits[] = "0123456789abcdef";
    vr_text_printf(text, "{\"%s\":\"", name);
    for (size_t i = 0; i < length; i++) vr_text_append(text, (const char[]){digits[bytes[i] >> 4], digits[bytes[i] & 15]}, 2);
    vr_text_puts(text, "\"}");
}

static int digit_of(char c) {
    if (c >= '0' && c <= '9') return c - '0';
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

bool vr_python_text_unhex(char *text, size_t length) {
    if (length % 2 != 0) return false;
    for (size_t i = 0; i < length; i += 2) {
        const int high = digit_of(text[i]), low = digit_of(text[i + 1]);
        if (high < 0 || low < 0) return false;
        text[i / 2] = (char)(high << 4 | low);
    }
    return true;
}
