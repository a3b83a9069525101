#include "snapshot/quoted.h"

#include "snapshot/numerals.h"

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
            // What follows a backslash ends no string.
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
