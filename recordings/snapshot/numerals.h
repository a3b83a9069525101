// numerals.h: numbers and strings that stand as text in pickles and JSON.
#ifndef VR_SNAPSHOT_NUMERALS_H
#define VR_SNAPSHOT_NUMERALS_H

#include "base/base.h"

enum vr_numeral_kind { VR_NUMERAL_WHOLE, VR_NUMERAL_FLOAT };

// A whole number of 64 bits (two's complement where negative), or a floating-point number.
struct vr_numeral {
    enum vr_numeral_kind kind;
    bool negative;
    uint64_t bits;
    double real;
};

// Reads [+-]digits[.digits][e[+-]digits], all of the text, whatever the locale. A float is exact, unless its text is longer than 64
// characters: then it is right to the last digit or two. So is a whole number beyond 64 bits. False for anything else.
bool vr_numeral_parse(const char *text, size_t length, struct vr_numeral *number);

// Whether it is a whole number as JSON and Python write it, of any length: -?[1-9][0-9]*, or 0.
bool vr_numeral_is_whole(const char *text, size_t length);
// Writes a code point as UTF-8 (surrogates too, in three bytes) and returns its length, 1 to 4.
size_t vr_utf8_put(uint32_t code, char *bytes);
// `count` (at most 8) hexadecimal digits. False when one is none.
bool vr_hex_parse(const char *text, size_t count, uint32_t *code);
// Decodes the JSON escape at *text (a backslash; not beyond `end`) to bytes[*used...] and steps over it; a pair of surrogates is one
// escape. It takes at least as many bytes as it gives. False for a bad escape.
bool vr_json_unescape(const char **text, const char *end, char *bytes, size_t *used);
// Python's raw-unicode-escape: Latin-1 with \uXXXX and \UXXXXXXXX. *bytes needs room for 3 times `length`. False for a bad escape.
bool vr_raw_unicode_decode(const char *text, size_t length, char *bytes, size_t *decoded);

#endif
