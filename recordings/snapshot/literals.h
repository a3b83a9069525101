// literals.h: reads and writes numbers, strings and words as text in pickles and JSON.
#ifndef VR_SNAPSHOT_LITERALS_H
#define VR_SNAPSHOT_LITERALS_H

#include "base/base.h"
#include "base/text.h"
#include "snapshot/input.h"
#include "snapshot/value.h"

// ---- Numbers and strings as text in pickles and JSON.

enum vr_numeral_kind { VR_NUMERAL_WHOLE, VR_NUMERAL_FLOAT };

// A 64-bit integer (two's complement if negative), or a floating-point number.
struct vr_numeral {
    enum vr_numeral_kind kind;
    bool negative;
    uint64_t bits;
    double real;
};

// Parses the whole text as [+-]digits[.digits][e[+-]digits], independently of the locale. A float is exact unless its text is longer than
// 64 characters: then it is correct to the last digit or two, as is an integer beyond 64 bits. Returns false for any other text.
bool vr_numeral_parse(const char *text, size_t length, struct vr_numeral *number);

// Returns whether the text is an integer of any length as JSON and Python write it: -?[1-9][0-9]*, or 0.
bool vr_numeral_is_whole(const char *text, size_t length);
// Parses `count` (at most 8) hexadecimal digits. Returns false for any other byte.
bool vr_hex_parse(const char *text, size_t count, uint32_t *code);
// Decodes the JSON escape at *text (a backslash; not beyond `end`) to bytes[*used...] and advances *text; a pair of surrogates is one
// escape. Never writes more bytes than it consumes. Returns false for an invalid escape.
bool vr_json_unescape(const char **text, const char *end, char *bytes, size_t *used);
// Decodes Python's raw-unicode-escape: Latin-1 with \uXXXX and \UXXXXXXXX. *bytes needs room for 3 times `length`. Returns false for an
// invalid escape.
bool vr_raw_unicode_decode(const char *text, size_t length, char *bytes, size_t *decoded);

// ---- Strings of JSON text, found in an input and decoded. The reader reports failures.

// Measures the string at input->next (its opening quote), without quotes. Afterwards the buffer has all of it, including the closing quote.
// *escaped: it contains a backslash. BAD_INPUT (without a message) if the text ends inside the string; IO, NO_HOST_MEMORY.
VRAM_NODISCARD enum vram_status vr_quoted_measure(struct vr_input *input, size_t *length, bool *escaped);
// Decodes the escapes in `length` bytes between quotes. `bytes` has room for as many; *used receives the decoded length. Returns false for
// an invalid escape.
bool vr_quoted_decode(const char *text, size_t length, char *bytes, size_t *used);

// ---- Python values that JSON cannot express, as JSON text.
//
// A dictionary of one key represents them: {"$tuple": [1, 2]}, {"$set": [...]}, {"$frozenset": [...]}, {"$float": "inf"} ("-inf", "nan"),
// {"$bytes": "6162"}, {"$bytearray": "6162"} (hexadecimal), and {"$dict": [[key, value], ...]}: a dictionary with a key that is not a
// string or has a NUL, or whose only key begins with $. Therefore no dictionary of a file is mistaken for one of these.

// X(KIND, "name"). Kinds whose value is a list come first, in the order of enum vr_items.
#define VR_PYTHON_KINDS(X)                                                                                                                 \
    X(TUPLE, "$tuple")                                                                                                                     \
    X(SET, "$set")                                                                                                                         \
    X(FROZENSET, "$frozenset")                                                                                                             \
    X(DICT, "$dict")                                                                                                                       \
    X(FLOAT, "$float")                                                                                                                     \
    X(BYTES, "$bytes")                                                                                                                     \
    X(BYTEARRAY, "$bytearray")

enum vr_python_value {
#define VR_PYTHON_ENUM(kind, name) VR_PYTHON_KIND_##kind,
    VR_PYTHON_KINDS(VR_PYTHON_ENUM)
#undef VR_PYTHON_ENUM
        VR_PYTHON_NONE
};

#define VR_PYTHON_DICT  "$dict"
#define VR_PYTHON_FLOAT "$float"

// Returns the name of a tuple or a set; not for a list.
const char *vr_python_text_items(enum vr_items items_of);
// Returns the kind that the key names; NONE for any other key.
enum vr_python_value vr_python_text_kind(const char *key, size_t length);
// Appends bytes as text: `name` is "$bytes" or "$bytearray".
void vr_python_text_bytes(struct vr_text *text, const char *name, const unsigned char *bytes, size_t length);
// Decodes hexadecimal digits in place. Returns false for other characters.
bool vr_python_text_unhex(char *text, size_t length);

#endif
