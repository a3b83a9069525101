// python_text.h: values of Python that JSON has no word for, in text that is JSON all the same.
//
// A dictionary of one key stands for them: {"$tuple": [1, 2]}, {"$set": [...]}, {"$frozenset": [...]}, {"$float": "inf"} ("-inf", "nan"),
// {"$bytes": "6162"}, {"$bytearray": "6162"} (hexadecimal), and {"$dict": [[key, value], ...]}: a dictionary whose keys are not all strings
// without a NUL, or whose only key begins with $. So what a file has is never taken for one of these.
#ifndef VR_SNAPSHOT_PYTHON_TEXT_H
#define VR_SNAPSHOT_PYTHON_TEXT_H

#include "base/text.h"
#include "snapshot/value.h"

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
