// One function for each level of the grammar. Each computes its value while it reads, so there is no tree.
#include "fit_expression.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { DEPTH_MOST = 50, SHOWN_MOST = 60 };

struct reader {
    const char *at, *end;
    const struct fit_name *names;
    size_t name_count;
    unsigned depth;
    unsigned skipped; // not 0: what is read is not needed, so it may have no value
    bool failed;
    char *wrong;
};

static struct fit_value of_number(double value) { return (struct fit_value){.number = value}; }

static struct fit_value fail(struct reader *reader, const char *format, ...) VRAM_PRINTF(2, 3);
static struct fit_value fail(struct reader *reader, const char *format, ...) {
    va_list values;
    va_start(values, format);
    if (!reader->failed) (void)vsnprintf(reader->wrong, FIT_EXPRESSION_WRONG, format, values);
    va_end(values);
    reader->failed = true;
    return of_number(0);
}

// --- words --------------------------------------------------------------------------------------------------------------------------

static bool is_digit(char letter) { return letter >= '0' && letter <= '9'; }
static bool begins_name(char letter) { return (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z') || letter == '_'; }

static void skip_spaces(struct reader *reader) {
    while (reader->at < reader->end && (*reader->at == ' ' || *reader->at == '\t')) reader->at++;
}

static size_t name_length(const char *at, const char *end) {
    size_t length = 0;
    while (at + length < end && (begins_name(at[length]) || is_digit(at[length]))) length++;
    return length;
}

// Takes a sign or a word if it comes next. A word is not the beginning of a longer one.
static bool take(struct reader *reader, const char *token) {
    const size_t length = strlen(token);
    skip_spaces(reader);
    if ((size_t)(reader->end - reader->at) < length || memcmp(reader->at, token, length) != 0) return false;
    if (begins_name(token[0]) && name_length(reader->at, reader->end) != length) return false;
    reader->at += length;
    return true;
}

static struct fit_value unexpected(struct reader *reader) {
    skip_spaces(reader);
    const size_t left = (size_t)(reader->end - reader->at);
    if (left == 0) return fail(reader, "it ends where a value is expected");
    return fail(reader, "'%.*s' is not expected there", (int)(left < SHOWN_MOST ? left : SHOWN_MOST), reader->at);
}

// --- values -------------------------------------------------------------------------------------------------------------------------

// Reads digits with at most one point. Returns the number of characters, 0 if it is not a number.
static size_t read_digits(const char *text, size_t length, double *value) {
    double scale = 1;
    size_t at = 0, digits = 0;
    bool fraction = false;
    *value = 0;
    for (; at < length && (is_digit(text[at]) || (text[at] == '.' && !fraction)); at++) {
        if (text[at] == '.') {
            fraction = true;
            continue;
        }
        digits++;
        *value = *value * 10 + (text[at] - '0');
        if (fraction) scale *= 10;
    }
    *value /= scale;
    return digits == 0 ? 0 : at;
}

struct fit_value fit_value_of(const char *text, size_t length) {
    double value;
    const size_t sign = length > 1 && text[0] == '-';
    if (length > 0 && length < 40 && read_digits(text + sign, length - sign, &value) == length - sign)
        return of_number(sign ? -value : value);
    return (struct fit_value){.text = text, .length = length};
}

bool fit_value_is_true(const struct fit_value *value) { return value->text != NULL ? value->length > 0 : value->number != 0; }

// Returns the number of a value that must be one.
static double number_of(struct reader *reader, const struct fit_value *value) {
    if (value->text != NULL && reader->skipped == 0)
        (void)fail(reader, "'%.*s' is not a number", (int)(value->length < SHOWN_MOST ? value->length : SHOWN_MOST), value->text);
    return value->text != NULL ? 0 : value->number;
}

// Returns a computed number, which has to be finite.
static struct fit_value computed(struct reader *reader, double value) {
    if (!isfinite(value)) return reader->skipped > 0 ? of_number(0) : fail(reader, "a number is too large");
    return of_number(value);
}

// --- the grammar --------------------------------------------------------------------------------------------------------------------

static struct fit_value read_any(struct reader *reader);

static struct fit_value read_extreme(struct reader *reader, bool most) {
    if (!take(reader, "(")) return fail(reader, "min and max need parentheses");
    struct fit_value value = read_any(reader);
    double best = number_of(reader, &value);
    while (!reader->failed && take(reader, ",")) {
        value = read_any(reader);
        const double other = number_of(reader, &value);
        best = most == (other > best) ? other : best;
    }
    return take(reader, ")") ? of_number(best) : unexpected(reader);
}

static struct fit_value read_name(struct reader *reader) {
    const size_t length = name_length(reader->at, reader->end);
    const char *name = reader->at;
    for (size_t i = 0; i < reader->name_count; i++) {
        if (strlen(reader->names[i].name) != length || memcmp(reader->names[i].name, name, length) != 0) continue;
        reader->at += length;
        return reader->names[i].value;
    }
    return fail(reader, "there is no '%.*s': --vary gives the names", (int)(length < SHOWN_MOST ? length : SHOWN_MOST), name);
}

static struct fit_value read_text(struct reader *reader, char quote) {
    const char *begin = ++reader->at;
    while (reader->at < reader->end && *reader->at != quote) reader->at++;
    if (reader->at == reader->end) return fail(reader, "a quote is not closed");
    return (struct fit_value){.text = begin, .length = (size_t)(reader->at++ - begin)};
}

static struct fit_value read_value(struct reader *reader) {
    double value;
    if (take(reader, "(")) {
        const struct fit_value inner = read_any(reader);
        return take(reader, ")") ? inner : unexpected(reader);
    }
    if (take(reader, "min")) return read_extreme(reader, false);
    if (take(reader, "max")) return read_extreme(reader, true);
    if (reader->at == reader->end) return unexpected(reader);
    if (*reader->at == '\'' || *reader->at == '"') return read_text(reader, *reader->at);
    if (begins_name(*reader->at)) return read_name(reader);
    const size_t length = read_digits(reader->at, (size_t)(reader->end - reader->at), &value);
    if (length == 0) return unexpected(reader);
    reader->at += length;
    if (reader->at < reader->end && begins_name(*reader->at)) return unexpected(reader);
    return computed(reader, value);
}

static struct fit_value read_signed(struct reader *reader) {
    if (reader->failed) return of_number(0);
    if (++reader->depth > DEPTH_MOST) return fail(reader, "it is nested too deeply");
    struct fit_value value;
    if (take(reader, "-")) {
        value = read_signed(reader);
        value = of_number(-number_of(reader, &value));
    } else {
        value = read_value(reader);
    }
    reader->depth--;
    return value;
}

static struct fit_value divided(struct reader *reader, char sign, double a, double b) {
    if (b == 0) return reader->skipped > 0 ? of_number(0) : fail(reader, "it divides by 0");
    return computed(reader, sign == '/' ? a / b : sign == '%' ? a - b * floor(a / b) : floor(a / b));
}

static struct fit_value read_product(struct reader *reader) {
    struct fit_value value = read_signed(reader);
    for (;;) {
        const char sign = take(reader, "*") ? '*' : take(reader, "//") ? 'f' : take(reader, "/") ? '/' : take(reader, "%") ? '%' : '\0';
        if (sign == '\0' || reader->failed) return value;
        const struct fit_value other = read_signed(reader);
        const double a = number_of(reader, &value), b = number_of(reader, &other);
        value = sign == '*' ? computed(reader, a * b) : divided(reader, sign, a, b);
    }
}

static struct fit_value read_sum(struct reader *reader) {
    struct fit_value value = read_product(reader);
    for (;;) {
        const bool adds = take(reader, "+");
        if ((!adds && !take(reader, "-")) || reader->failed) return value;
        const struct fit_value other = read_product(reader);
        const double a = number_of(reader, &value), b = number_of(reader, &other);
        value = computed(reader, adds ? a + b : a - b);
    }
}

enum comparison { NONE, EQUAL, UNEQUAL, AT_MOST, AT_LEAST, LESS, MORE };

static enum comparison take_comparison(struct reader *reader) {
    static const struct {
        const char *sign;
        enum comparison comparison;
    } signs[] = {{"==", EQUAL}, {"!=", UNEQUAL}, {"<=", AT_MOST}, {">=", AT_LEAST}, {"<", LESS}, {">", MORE}, {"=", EQUAL}};
    for (size_t i = 0; i < sizeof signs / sizeof *signs; i++)
        if (take(reader, signs[i].sign)) return signs[i].comparison;
    return NONE;
}

static bool are_equal(const struct fit_value *a, const struct fit_value *b) {
    if ((a->text == NULL) != (b->text == NULL)) return false;
    return a->text == NULL ? a->number == b->number : a->length == b->length && memcmp(a->text, b->text, a->length) == 0;
}

static bool compare(struct reader *reader, enum comparison by, const struct fit_value *one, const struct fit_value *other) {
    if (by == EQUAL || by == UNEQUAL) return are_equal(one, other) == (by == EQUAL);
    const double a = number_of(reader, one), b = number_of(reader, other);
    return by == AT_MOST ? a <= b : by == AT_LEAST ? a >= b : by == LESS ? a < b : a > b;
}

static struct fit_value read_comparison(struct reader *reader) {
    struct fit_value value = read_sum(reader);
    bool all = true, any = false;
    for (enum comparison by; !reader->failed && (by = take_comparison(reader)) != NONE;) {
        const struct fit_value other = read_sum(reader);
        all = compare(reader, by, &value, &other) && all;
        any = true;
        value = other;
    }
    return any ? of_number(all) : value;
}

static struct fit_value read_not(struct reader *reader) {
    bool negates = false, any = false;
    while (take(reader, "not")) negates = !negates, any = true;
    const struct fit_value value = read_comparison(reader);
    return any ? of_number(fit_value_is_true(&value) != negates) : value;
}

static struct fit_value read_and(struct reader *reader) {
    struct fit_value value = read_not(reader);
    while (!reader->failed && take(reader, "and")) {
        const bool first = fit_value_is_true(&value);
        reader->skipped += !first;
        value = read_not(reader);
        reader->skipped -= !first;
        value = of_number(first && fit_value_is_true(&value));
    }
    return value;
}

static struct fit_value read_any(struct reader *reader) {
    struct fit_value value = read_and(reader);
    while (!reader->failed && take(reader, "or")) {
        const bool first = fit_value_is_true(&value);
        reader->skipped += first;
        value = read_and(reader);
        reader->skipped -= first;
        value = of_number(first || fit_value_is_true(&value));
    }
    return value;
}

// --- the whole ----------------------------------------------------------------------------------------------------------------------

static bool compute(struct reader *reader, struct fit_value *value) {
    const struct fit_value result = read_any(reader);
    skip_spaces(reader);
    if (!reader->failed && reader->at != reader->end) (void)unexpected(reader);
    if (!reader->failed) *value = result;
    return !reader->failed;
}

bool fit_expression(const char *text, size_t length, const struct fit_name *names, size_t count, struct fit_value *value,
                    char wrong[FIT_EXPRESSION_WRONG]) {
    struct reader reader = {.at = text, .end = text + length, .names = names, .name_count = count, .wrong = wrong};
    return compute(&reader, value);
}

bool fit_expression_check(const char *text, size_t length, const struct fit_name *names, size_t count, char wrong[FIT_EXPRESSION_WRONG]) {
    struct reader reader = {.at = text, .end = text + length, .names = names, .name_count = count, .skipped = 1, .wrong = wrong};
    struct fit_value unused;
    return compute(&reader, &unused);
}

bool fit_expression_names(const char *text, size_t length, const char *name) {
    const char *end = text + length;
    for (const char *at = text; at < end;) {
        const size_t found = name_length(at, end);
        if (found == strlen(name) && memcmp(at, name, found) == 0) return true;
        at += found == 0 ? 1 : found;
        if (at < end && (at[-1] == '\'' || at[-1] == '"')) { // a text
            const char *closed = memchr(at, at[-1], (size_t)(end - at));
            at = closed == NULL ? end : closed + 1;
        }
    }
    return false;
}
