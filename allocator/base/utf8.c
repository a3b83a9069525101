#include "base/utf8.h"

size_t vr_utf8_decode(const char *bytes, size_t length, uint32_t *code) {
    // By the number of leading ones: bits of the first byte that count, and the smallest code point that may need this length.
    static const struct {
        unsigned char mask, lead, value;
        uint32_t least;
    } forms[] = {{0x80, 0x00, 0x7F, 0}, {0xE0, 0xC0, 0x1F, 0x80}, {0xF0, 0xE0, 0x0F, 0x800}, {0xF8, 0xF0, 0x07, 0x10000}};
    const unsigned char *p = (const unsigned char *)bytes;
    for (size_t form = 0; form < VR_COUNT_OF(forms); form++) {
        if ((p[0] & forms[form].mask) != forms[form].lead) continue;
        if (length < form + 1) break;
        uint32_t value = p[0] & forms[form].value;
        bool good = true;
        for (size_t i = 1; i <= form; i++) {
            good = good && (p[i] & 0xC0) == 0x80;
            value = value << 6 | (p[i] & 0x3F);
        }
        if (!good || value < forms[form].least || value > 0x10FFFF) break;
        *code = value;
        return form + 1;
    }
    *code = VR_UTF8_MALFORMED;
    return 1;
}
