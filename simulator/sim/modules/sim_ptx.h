// sim_ptx.h: the words of PTX, and what a kernel's code does with the memory that its parameters point to.
#ifndef VR_SIM_MODULES_SIM_PTX_H
#define VR_SIM_MODULES_SIM_PTX_H

#include "base/base.h"

// A position in the text. Words are separated by spaces and signs.
struct vr_sim_ptx_text {
    const char *at, *end;
};

struct vr_sim_ptx_word {
    const char *start;
    size_t length;
};

VR_INLINE bool vr_sim_ptx_is_word(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.' || c == '$' || c == '%';
}

VR_INLINE void vr_sim_ptx_skip_comment(struct vr_sim_ptx_text *reader) {
    const size_t left = (size_t)(reader->end - reader->at);
    if (reader->at[1] == '/') {
        const char *end = memchr(reader->at, '\n', left);
        reader->at = end == NULL ? reader->end : end;
        return;
    }
    for (reader->at += 2; reader->end - reader->at >= 2; reader->at++) {
        if (reader->at[0] != '*' || reader->at[1] != '/') continue;
        reader->at += 2;
        return;
    }
    reader->at = reader->end;
}

VR_INLINE void vr_sim_ptx_skip_string(struct vr_sim_ptx_text *reader) {
    const char *end = memchr(reader->at + 1, '"', (size_t)(reader->end - reader->at - 1));
    reader->at = end == NULL ? reader->end : end + 1;
}

// Returns how many characters at the reader's position continue a word: one, two for the "::" inside of a name such as
// ld.global.L1::evict_last, or none.
VR_INLINE size_t vr_sim_ptx_more(const struct vr_sim_ptx_text *reader) {
    const size_t left = (size_t)(reader->end - reader->at);
    if (left >= 1 && vr_sim_ptx_is_word(reader->at[0])) return 1;
    return left >= 3 && reader->at[0] == ':' && reader->at[1] == ':' && vr_sim_ptx_is_word(reader->at[2]) ? 2 : 0;
}

// Reads the next word, or a sign of one character. Length 0 at the end of the text.
VR_INLINE struct vr_sim_ptx_word vr_sim_ptx_next(struct vr_sim_ptx_text *reader) {
    while (reader->at < reader->end) {
        const char c = *reader->at;
        if (c == '/' && reader->end - reader->at >= 2 && (reader->at[1] == '/' || reader->at[1] == '*')) {
            vr_sim_ptx_skip_comment(reader);
        } else if (c == '"') {
            vr_sim_ptx_skip_string(reader);
        } else if (c == ' ' || c == '\t' || c == '\n' || c == '\r') {
            reader->at++;
        } else {
            struct vr_sim_ptx_word word = {reader->at++, 1};
            if (vr_sim_ptx_is_word(c))
                for (size_t more; (more = vr_sim_ptx_more(reader)) > 0;) reader->at += more;
            word.length = (size_t)(reader->at - word.start);
            return word;
        }
    }
    return (struct vr_sim_ptx_word){reader->end, 0};
}

VR_INLINE bool vr_sim_ptx_equals(struct vr_sim_ptx_word word, const char *text) {
    return strlen(text) == word.length && memcmp(word.start, text, word.length) == 0;
}

// The effects of the code on the memory behind a parameter, as bits.
enum {
    VR_SIM_PTX_READS = 1,
    VR_SIM_PTX_WRITES = 2,
    VR_SIM_PTX_ESCAPES = 4, // passes its address to a function: anything
    VR_SIM_PTX_KNOWN = 8    // the code has instructions that use memory
};

#define VR_SIM_PTX_PARAMETERS 64

// Follows the parameters' values through the registers of an entry's code, which begins with the "(" of its parameters. Sets the bits of
// the first VR_SIM_PTX_PARAMETERS of them; all 0 if the code uses no memory or the host is out of memory.
void vr_sim_ptx_effects(const char *code, size_t length, uint8_t effects[VR_SIM_PTX_PARAMETERS]);

#endif
