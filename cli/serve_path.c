#include "serve_path.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

// Time does not tell how much of a guess was right.
static bool same_token(const char *a, const char *b) {
    unsigned different = 0;
    for (size_t i = 0; i < SERVE_TOKEN_LENGTH; i++) different |= (unsigned)(unsigned char)a[i] ^ (unsigned char)b[i];
    return different == 0;
}

enum serve_target serve_path(const char *token, const char *path, const char **question) {
    const size_t length = strlen(path);
    if (length < SERVE_TOKEN_LENGTH + 2 || path[0] != '/' || path[SERVE_TOKEN_LENGTH + 1] != '/' || !same_token(path + 1, token))
        return SERVE_NOTHING;
    const char *rest = path + SERVE_TOKEN_LENGTH + 2;
    if (*rest == '\0') return SERVE_PAGE;
    if (strncmp(rest, "ask?", 4) != 0) return SERVE_NOTHING;
    *question = rest + 4;
    return SERVE_QUESTION;
}
