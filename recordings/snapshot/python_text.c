#include "snapshot/python_text.h"

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
