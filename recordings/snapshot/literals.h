// literals.h: numbers, strings and words as text in pickles and JSON, read and written.
#ifndef VR_SNAPSHOT_LITERALS_H
#define VR_SNAPSHOT_LITERALS_H

#include "base/base.h"
#include "base/text.h"
#include "snapshot/input.h"
#include "snapshot/value.h"

// ---- Numbers and strings that stand as text in pickles and JSON.

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
// Reads `count` (at most 8) hexadecimal digits. False for any other byte.
bool vr_hex_parse(const char *text, size_t count, uint32_t *code);
// Decodes the JSON escape at *text (a backslash; not beyond `end`) to bytes[*used...] and steps over it; a pair of surrogates is one
// escape. It takes at least as many bytes as it gives. False for a bad escape.
bool vr_json_unescape(const char **text, const char *end, char *bytes, size_t *used);
// Python's raw-unicode-escape: Latin-1 with \uXXXX and \UXXXXXXXX. *bytes needs room for 3 times `length`. False for a bad escape.
bool vr_raw_unicode_decode(const char *text, size_t length, char *bytes, size_t *decoded);

// ---- Strings of JSON text, found in an input and decoded. The reader reports failures.

// The length without its quotes of the string at input->next, its opening quote. Afterwards all of it is in the buffer, the closing quote
// included. *escaped: it has a backslash. BAD_INPUT (and no message) when the text ends inside it; IO, NO_HOST_MEMORY.
VRAM_NODISCARD enum vram_status vr_quoted_measure(struct vr_input *input, size_t *length, bool *escaped);
// Decodes the escapes of `length` bytes between quotes. bytes has room for as many; *used is how many it got. False for a malformed escape.
bool vr_quoted_decode(const char *text, size_t length, char *bytes, size_t *used);

// ---- Values of Python that JSON has no word for, in text that is JSON all the same.
//
// A dictionary of one key stands for them: {"$tuple": [1, 2]}, {"$set": [...]}, {"$frozenset": [...]}, {"$float": "inf"} ("-inf", "nan"),
// {"$bytes": "6162"}, {"$bytearray": "6162"} (hexadecimal), and {"$dict": [[key, value], ...]}: a dictionary whose keys are not all strings
// without a NUL, or whose only key begins with $. So what a file has is never taken for one of these.

// X(KIND, "name"): those whose value is a list come first, in the order of enum vr_items.
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

// The name of a tuple or a set; not for a list.
const char *vr_python_text_items(enum vr_items items_of);
// Which kind the key names; NONE: it is a key like any other.
enum vr_python_value vr_python_text_kind(const char *key, size_t length);
// Bytes as text: `name` is "$bytes" or "$bytearray".
void vr_python_text_bytes(struct vr_text *text, const char *name, const unsigned char *bytes, size_t length);
// Decodes hexadecimal digits in place. False where they are none.
bool vr_python_text_unhex(char *text, size_t length);

#endif
