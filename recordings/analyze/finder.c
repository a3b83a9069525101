#include "analyze/finder.h"

enum { MOST_PATTERN_BYTES = 256, MOST_REPEATS = 1000 };

static char lower_ascii(char c) { return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c; }

// What all counted repetitions together multiply an expression by. Commas without an upper bound count as their lower one.
static bool repeats_are_few(const char *text) {
    uint64_t product = 1;
    for (const char *at = strchr(text, '{'); at != NULL; at = strchr(at + 1, '{')) {
        char *end;
        uint64_t times = strtoull(at + 1, &end, 10);
        if (*end == ',' && end[1] >= '0' && end[1] <= '9') times = strtoull(end + 1, NULL, 10);
        if (times > MOST_REPEATS) return false;
        product *= times == 0 ? 1 : times;
        if (product > MOST_REPEATS) return false;
    }
    return true;
}

// Back references take time that no bound holds.
static bool has_back_reference(const char *text) {
    for (; *text != '\0'; text++) {
        if (*text != '\\') continue;
        text++;
        if (*text >= '1' && *text <= '9') return true;
        if (*text == '\0') return false;
    }
    return false;
}

static enum vram_status compile_expression(struct vr_finder *finder, const char *text, struct vram_error *error) {
    if (!repeats_are_few(text))
        return vr_fail(error, VRAM_INVALID_ARGUMENT, VRAM_NO_OFFSET, "the expression repeats more than %d times", MOST_REPEATS);
    if (has_back_reference(text))
        return vr_fail(error, VRAM_INVALID_ARGUMENT, VRAM_NO_OFFSET, "expressions with back references are not supported");
    const int code = regcomp(&finder->expression, text, REG_EXTENDED | REG_ICASE);
    if (code == REG_ESPACE) return VRAM_NO_HOST_MEMORY;
    if (code != 0) {
        char reason[120];
        regerror(code, &finder->expression, reason, sizeof reason);
        return vr_fail(error, VRAM_INVALID_ARGUMENT, VRAM_NO_OFFSET, "'%.60s' is no regular expression: %s", text, reason);
    }
    finder->compiled = true;
    return VRAM_OK;
}

enum vram_status vr_finder_init(struct vr_finder *finder, const char *text, bool regex, struct vram_error *error) {
    *finder = (struct vr_finder){.words = NULL};
    finder->length = strlen(text);
    if (finder->length == 0) return vr_fail(error, VRAM_INVALID_ARGUMENT, VRAM_NO_OFFSET, "there is nothing to look for");
    if (finder->length > MOST_PATTERN_BYTES)
        return vr_fail(error, VRAM_INVALID_ARGUMENT, VRAM_NO_OFFSET, "more than %d bytes to look for", MOST_PATTERN_BYTES);
    if (regex) return compile_expression(finder, text, error);
    finder->words = malloc(finder->length + 1);
    if (finder->words == NULL) return VRAM_NO_HOST_MEMORY;
    for (size_t i = 0; i <= finder->length; i++) finder->words[i] = lower_ascii(text[i]);
    return VRAM_OK;
}

void vr_finder_release(struct vr_finder *finder) {
    free(finder->words);
    if (finder->compiled) regfree(&finder->expression);
    *finder = (struct vr_finder){.words = NULL};
}

static bool contains_text(const struct vr_finder *finder, const char *text) {
    for (size_t left = VR_FINDER_BYTES; *text != '\0' && left != 0; text++, left--) {
        if (lower_ascii(*text) != finder->words[0]) continue;
        size_t i = 1;
        while (i < finder->length && lower_ascii(text[i]) == finder->words[i]) i++;
        if (i == finder->length) return true;
    }
    return false;
}

// The text itself, or what the bound leaves of it in `room`.
static const char *bounded_text(const char *text, char room[VR_FINDER_BYTES + 1]) {
    const char *end = memchr(text, '\0', VR_FINDER_BYTES);
    if (end != NULL) return text;
    memcpy(room, text, VR_FINDER_BYTES);
    room[VR_FINDER_BYTES] = '\0';
    return room;
}

bool vr_finder_matches(const struct vr_finder *finder, const char *text) {
    char room[VR_FINDER_BYTES + 1];
    if (!finder->compiled) return contains_text(finder, text);
    return regexec(&finder->expression, bounded_text(text, room), 0, NULL, 0) == 0;
}

bool vr_finder_part(const struct vr_finder *finder, const char *text, size_t *start, size_t *length) {
    char room[VR_FINDER_BYTES + 1];
    regmatch_t match[2];
    assert(finder->compiled);
    if (regexec(&finder->expression, bounded_text(text, room), 2, match, 0) != 0) return false;
    const regmatch_t *part = finder->expression.re_nsub > 0 && match[1].rm_so >= 0 ? &match[1] : &match[0];
    *start = (size_t)part->rm_so;
    *length = (size_t)(part->rm_eo - part->rm_so);
    return true;
}
