// See option_string.h.
#include "replay/option_string.h"

#include <stdio.h>
#include <string.h>

// Where the option that begins at `at` ends: at a comma outside brackets.
static const char *option_end(const char *at) {
    int depth = 0;
    for (; *at != '\0' && (*at != ',' || depth > 0); at++) depth += (*at == '[') - (*at == ']');
    return at;
}

bool vr_option_string_with(const char *conf, const char *option, char *changed, size_t capacity) {
    const size_t key = strcspn(option, ":") + 1;
    size_t length = 0;
    for (const char *at = conf, *end; *at != '\0'; at = *end == ',' ? end + 1 : end) {
        end = option_end(at);
        if (strncmp(at, option, key) == 0) continue;
        const int added = snprintf(changed + length, capacity - length, "%.*s,", (int)(end - at), at);
        if (added < 0 || (size_t)added >= capacity - length) return false;
        length += (size_t)added;
    }
    const int added = snprintf(changed + length, capacity - length, "%s", option);
    return added >= 0 && (size_t)added < capacity - length && strcmp(changed, conf) != 0;
}
