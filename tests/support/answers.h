// answers.h: queries of the explorer, and parsing of its answers. For cmocka programs only.
#ifndef VR_TEST_ANSWERS_H
#define VR_TEST_ANSWERS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#include "base/base.h"
#include "vram/explorer.h"

// An answer. Release with free().
struct bytes {
    unsigned char *bytes;
    size_t length;
};

VR_INLINE bool keep(void *user, const char *bytes, size_t length) {
    struct bytes *kept = user;
    kept->bytes = realloc(kept->bytes, kept->length + length);
    memcpy(kept->bytes + kept->length, bytes, length);
    kept->length += length;
    return true;
}

// Reads a little-endian number, aligned or not.
VR_INLINE uint32_t u32(const unsigned char *bytes) {
    return (uint32_t)bytes[0] | (uint32_t)bytes[1] << 8 | (uint32_t)bytes[2] << 16 | (uint32_t)bytes[3] << 24;
}

// Opens an explorer for one recording, given as text.
VR_INLINE struct vram_explorer *open_text(const char *text) {
    struct vram_recording *recording = NULL;
    struct vram_explorer *explorer = NULL;
    struct vram_error error;
    if (vram_recording_read_memory(text, strlen(text), "made", &recording, &error) != VRAM_OK) fail_msg("%s", error.message);
    assert_int_equal(VRAM_OK, vram_explorer_create(&explorer));
    assert_int_equal(VRAM_OK, vram_explorer_add(explorer, recording, "made", strlen(text), NULL));
    return explorer;
}

VR_INLINE struct bytes ask(struct vram_explorer *explorer, const char *question) {
    struct bytes answer = {0};
    struct vram_error error;
    if (vram_explorer_ask(explorer, question, keep, &answer, &error) != VRAM_OK) fail_msg("%s: %s", question, error.message);
    assert_true(answer.length >= 8 && answer.length % 8 == 0);
    return answer;
}

// Returns the answer's JSON. Release with free().
VR_INLINE char *text_of(const struct bytes *answer) {
    char *text = calloc(1, u32(answer->bytes) + 1);
    memcpy(text, answer->bytes + 8, u32(answer->bytes));
    return text;
}

VR_INLINE void expect_text(struct vram_explorer *explorer, const char *question, const char *part) {
    struct bytes answer = ask(explorer, question);
    char *text = text_of(&answer);
    if (strstr(text, part) == NULL) fail_msg("'%s' gave %s, without %s", question, text, part);
    free(text);
    free(answer.bytes);
}

struct column {
    char type[4]; // "u8", "u32", "f64", ...
    size_t count;
    const unsigned char *bytes; // points into the answer
};

VR_INLINE struct column column_of(const struct bytes *answer, const char *name) {
    struct column column;
    char key[64], *text = text_of(answer);
    snprintf(key, sizeof key, "\"%s\": {\"type\": \"", name);
    const char *at = strstr(text, key);
    if (at == NULL) fail_msg("no column %s in %s", name, text);
    unsigned long long offset = 0, count = 0;
    assert_int_equal(sscanf(at + strlen(key), "%3[a-z0-9]\", \"offset\": %llu, \"count\": %llu", column.type, &offset, &count), 3);
    free(text);
    column.count = (size_t)count;
    column.bytes = answer->bytes + u32(answer->bytes + 4) + offset;
    return column;
}

#endif
