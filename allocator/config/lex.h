// lex.h: the words of an option string, and the numbers in words. Inside the room only.
#ifndef VR_CONFIG_LEX_H
#define VR_CONFIG_LEX_H

#include "base/base.h"

// Longest word of an option string, without the NUL. PyTorch has no limit; no key or value comes near this.
#define VR_WORD_MAX 127

enum vr_token { VR_TOKEN_END, VR_TOKEN_WORD, VR_TOKEN_COMMA, VR_TOKEN_COLON, VR_TOKEN_OPEN, VR_TOKEN_CLOSE };

// A place in an option string and the token that begins there. text is borrowed and NUL-terminated.
struct vr_lexer {
    const char *text;
    size_t next;                // first character that is not read yet
    size_t offset;              // where the current token begins
    enum vr_token token;        // the current token
    char word[VR_WORD_MAX + 1]; // its characters without any white space, for WORD; else empty
    struct vram_error *error;   // where failures are told; may be NULL
};

// Starts at the first token. LIMIT for a word longer than VR_WORD_MAX.
enum vram_status vr_lex_begin(struct vr_lexer *lexer, const char *text, struct vram_error *error);
// Goes to the next token; stays at END. LIMIT as above.
enum vram_status vr_lex_next(struct vr_lexer *lexer);
// Goes on when the current token is `token`, else fails with BAD_OPTION: "expected <what>, found ...".
enum vram_status vr_lex_expect(struct vr_lexer *lexer, enum vr_token token, const char *what);
// BAD_OPTION at the current token: "<what> expected, found <the token>".
enum vram_status vr_lex_fail(const struct vr_lexer *lexer, const char *what);

// Fails at `offset`; the message gets ", at character N" (counted from 1) added. Returns `status`.
enum vram_status vr_option_fail(struct vram_error *error, enum vram_status status, size_t offset, const char *format, ...)
    VRAM_PRINTF(4, 5);

// Copies `word` for a message: at most 40 characters, what is not printable ASCII as '?'. Returns `out`, of 48 bytes.
const char *vr_word_for_message(const char *word, char out[48]);

// Decimal digits, with at most a '+' before them. *end is the first character after them. False when there are none or they
// do not fit in 64 bits.
bool vr_read_whole(const char *word, uint64_t *value, const char **end);
// A decimal number without a sign or with '+', perhaps with a fraction and an exponent, always with '.', whatever the
// locale. *end as above. False when there is none, or it is not finite.
bool vr_read_decimal(const char *word, double *value, const char **end);
// The shortest decimal number that reads back as `value` (finite, not negative), always with '.'. text gets 32 bytes.
void vr_print_decimal(double value, char text[32]);

#endif
