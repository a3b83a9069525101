#include "ranks.h"

#include <stddef.h>
#include <string.h>

#include "input.h"

static bool is_digit(char byte) { return byte >= '0' && byte <= '9'; }

// The number at *text, of at most 18 digits; steps over it.
static bool number_at(const char **text, const char *end, uint64_t *number) {
    const char *at = *text;
    uint64_t value = 0;
    while (at < end && is_digit(*at)) value = value * 10 + (uint64_t)(*at++ - '0') % 10;
    const bool good = at != *text && at - *text <= 18;
    *text = at;
    if (good) *number = value;
    return good;
}

// Where "rank" stands in any case, or NULL.
static const char *find_word(const char *text, const char *end) {
    for (; end - text > 4; text++) {
        size_t i = 0;
        while (i < 4 && (text[i] | 0x20) == "rank"[i]) i++;
        if (i == 4) return text;
    }
    return NULL;
}

bool rank_of_path(const char *path, uint64_t *rank) {
    const char *name = input_base_name(path), *end = strchr(name, '.');
    if (end == NULL || find_word(name, end) == NULL) {
        // In "job.rank_12.json" it stands in what looks like an extension.
        const char *whole = name + strlen(name);
        if (find_word(name, whole) != NULL || end == NULL) end = whole;
    }
    for (const char *at = name; (at = find_word(at, end)) != NULL;) {
        at += 4;
        while (at < end && strchr("_-=.", *at) != NULL) at++;
        if (number_at(&at, end, rank)) return true;
    }
    uint64_t only = 0;
    int numbers = 0;
    for (const char *at = name; at < end;) {
        if (!is_digit(*at))
            at++;
        else if (number_at(&at, end, &only))
            numbers++;
        else
            return false;
    }
    if (numbers == 1) *rank = only;
    return numbers == 1;
}
