#include "config/lex.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>

static bool is_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }
static bool is_digit(char c) { return c >= '0' && c <= '9'; }

static enum vr_token separator(char c) {
    switch (c) {
    case ',': return VR_TOKEN_COMMA;
    case ':': return VR_TOKEN_COLON;
    case '[': return VR_TOKEN_OPEN;
    case ']': return VR_TOKEN_CLOSE;
    case '\0': return VR_TOKEN_END;
    default: return VR_TOKEN_WORD;
    }
}

const char *vr_word_for_message(const char *word, char out[48]) {
    size_t length = 0;
    for (; word[length] != '\0' && length < 40; length++) out[length] = word[length] >= ' ' && word[length] <= '~' ? word[length] : '?';
    memcpy(out + length, word[length] == '\0' ? "" : "...", word[length] == '\0' ? 1 : 4);
    return out;
}

enum vram_status vr_option_fail(struct vram_error *error, enum vram_status status, size_t offset, const char *format, ...) {
    if (error == NULL) return status;
    char text[400];
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    return vr_fail(error, status, offset, "%s, at character %zu of the option string", text, offset + 1);
}

enum vram_status vr_lex_next(struct vr_lexer *lexer) {
    const char *text = lexer->text;
    size_t at = lexer->next;
    while (is_space(text[at])) at++;
    const size_t offset = at;
    const enum vr_token token = separator(text[at]);
    size_t length = 0;
    if (token != VR_TOKEN_WORD) {
        at += token != VR_TOKEN_END;
    } else {
        // White space inside a word is dropped, as in PyTorch.
        for (; separator(text[at]) == VR_TOKEN_WORD; at++) {
            if (is_space(text[at])) continue;
            if (length == VR_WORD_MAX)
                return vr_option_fail(lexer->error, VRAM_LIMIT, offset, "a word is longer than %d characters", VR_WORD_MAX);
            lexer->word[length++] = text[at];
        }
    }
    lexer->word[length] = '\0';
    lexer->token = token;
    lexer->offset = offset;
    lexer->next = at;
    return VRAM_OK;
}

enum vram_status vr_lex_begin(struct vr_lexer *lexer, const char *text, struct vram_error *error) {
    lexer->text = text;
    lexer->next = 0;
    lexer->error = error;
    return vr_lex_next(lexer);
}

enum vram_status vr_lex_fail(const struct vr_lexer *lexer, const char *key, const char *what) {
    static const char *const names[] = {"the end", "", "','", "':'", "'['", "']'"};
    char word[48], quoted[52];
    (void)snprintf(quoted, sizeof quoted, "'%s'", vr_word_for_message(lexer->word, word));
    return vr_option_fail(lexer->error, VRAM_BAD_OPTION, lexer->offset, "%s%sexpected %s, found %s", key == NULL ? "" : key,
                          key == NULL ? "" : ": ", what, lexer->token == VR_TOKEN_WORD ? quoted : names[lexer->token]);
}

enum vram_status vr_lex_expect(struct vr_lexer *lexer, enum vr_token token, const char *what) {
    if (lexer->token != token) return vr_lex_fail(lexer, NULL, what);
    return vr_lex_next(lexer);
}

bool vr_read_whole(const char *word, uint64_t *value, const char **end) {
    const char *at = word + (*word == '+');
    if (!is_digit(*at)) return false;
    uint64_t sum = 0;
    for (; is_digit(*at); at++) {
        if (!vr_mul_u64(sum, 10, &sum) || !vr_add_u64(sum, (uint64_t)(*at - '0'), &sum)) return false;
    }
    *value = sum;
    *end = at;
    return true;
}

static size_t digits_at(const char *text) {
    size_t count = 0;
    while (is_digit(text[count])) count++;
    return count;
}

// Returns the length of the decimal number at `text`, or 0. *point is the index of its '.', or the length without one.
static size_t decimal_length(const char *text, size_t *point) {
    const size_t whole = digits_at(text);
    const bool has_point = text[whole] == '.';
    const size_t fraction = has_point ? digits_at(text + whole + 1) : 0;
    if (whole + fraction == 0) return 0;
    size_t length = whole + has_point + fraction;
    if (text[length] == 'e' || text[length] == 'E') {
        const size_t sign = text[length + 1] == '+' || text[length + 1] == '-';
        const size_t exponent = digits_at(text + length + 1 + sign);
        if (exponent != 0) length += 1 + sign + exponent;
    }
    *point = has_point ? whole : length;
    return length;
}

// Writes the current locale's decimal point: at most 7 bytes and a NUL. localeconv() would not be thread-safe.
static void locale_point(char point[8]) {
    char half[16];
    (void)snprintf(half, sizeof half, "%.1f", 0.5);
    const size_t bytes = strcspn(half + 1, "5");
    const bool fits = bytes > 0 && bytes < 8;
    (void)snprintf(point, 8, "%.*s", fits ? (int)bytes : 1, fits ? half + 1 : ".");
}

bool vr_read_decimal(const char *word, double *value, const char **end) {
    const char *start = word + (*word == '+');
    char text[VR_WORD_MAX + 9], point[8];
    size_t at;
    const size_t length = decimal_length(start, &at);
    if (length == 0 || length > VR_WORD_MAX) return false;
    locale_point(point);
    const bool has_point = at < length;
    (void)snprintf(text, sizeof text, "%.*s%s%.*s", (int)at, start, has_point ? point : "", has_point ? (int)(length - at - 1) : 0,
                   start + at + has_point);
    const double number = strtod(text, NULL);
    if (!isfinite(number)) return false;
    *value = number;
    *end = start + length;
    return true;
}

void vr_print_decimal(double value, char text[32]) {
    char point[8];
    locale_point(point);
    for (int digits = 1; digits <= 17; digits++) {
        (void)snprintf(text, 32, "%.*g", digits, value);
        if (strtod(text, NULL) == value) break;
    }
    char *found = strstr(text, point);
    if (found == NULL) return;
    *found = '.';
    const char *rest = found + strlen(point);
    memmove(found + 1, rest, strlen(rest) + 1);
}
