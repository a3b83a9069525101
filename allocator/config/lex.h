// lex.h: splits an option string into words, and reads numbers in words. Only used inside this room.
#ifndef VR_CONFIG_LEX_H
#define VR_CONFIG_LEX_H

#include "base/base.h"

// Longest word of an option string, without the NUL. PyTorch has no limit; keys and values are much shorter.
#define VR_WORD_MAX 127

enum vr_token { VR_TOKEN_END, VR_TOKEN_WORD, VR_TOKEN_COMMA, VR_TOKEN_COLON, VR_TOKEN_OPEN, VR_TOKEN_CLOSE };

// A position in an option string and the token that begins there. text is borrowed and NUL-terminated.
struct vr_lexer {
    const char *text;
    size_t next;                // first unread character
    size_t offset;              // start of the current token
    enum vr_token token;        // the current token
    char word[VR_WORD_MAX + 1]; // its characters without white space, for WORD; else empty
    struct vram_error *error;   // receives failures; may be NULL
};

// Starts at the first token. LIMIT for a word longer than VR_WORD_MAX.
enum vram_status vr_lex_begin(struct vr_lexer *lexer, const char *text, struct vram_error *error);
// Moves to the next token; stays at END. LIMIT as above.
enum vram_status vr_lex_next(struct vr_lexer *lexer);
// Moves on if the current token is `token`, else fails with BAD_OPTION: "expected <what>, found ...".
enum vram_status vr_lex_expect(struct vr_lexer *lexer, enum vr_token token, const char *what);
// Returns BAD_OPTION at the current token: "<key>: expected <what>, found <the token>"; without the key where it is NULL.
enum vram_status vr_lex_fail(const struct vr_lexer *lexer, const char *key, const char *what);

// Fails at `offset`; appends ", at character N" (counted from 1) to the message. Returns `status`.
enum vram_status vr_option_fail(struct vram_error *error, enum vram_status status, size_t offset, const char *format, ...)
    VRAM_PRINTF(4, 5);

// Copies `word` for a message: at most 40 characters, with '?' for all but printable ASCII. Returns `out`, of 48 bytes.
const char *vr_word_for_message(const char *word, char out[48]);

// Reads decimal digits, optionally after a '+'. *end is the first character after them. Returns false without digits, or if they do not fit
// in 64 bits.
bool vr_read_whole(const char *word, uint64_t *value, const char **end);
// Reads a decimal number, optionally with '+', a fraction and an exponent, always with '.' in any locale. *end as above. Returns false
// without a number, or if it is not finite.
bool vr_read_decimal(const char *word, double *value, const char **end);
// Writes the shortest decimal number that reads back as `value` (finite, not negative), always with '.'. text has 32 bytes.
void vr_print_decimal(double value, char text[32]);

#endif
