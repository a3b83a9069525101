// Takes the first line as a query and the rest as a recording: the query is answered or refused with a message, whatever its parameters,
// and the answer's columns are inside it. Asks twice, because the first answer's preparation is kept; a refused query must not affect the
// next one.
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "vram/explorer.h"
#include "vram/recording.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { QUESTION_ROOM = 512 };

struct seen_answer {
    size_t bytes;
    uint64_t sum;
};

static uint32_t read_u32(const char *bytes) {
    const unsigned char *b = (const unsigned char *)bytes;
    return b[0] | (uint32_t)b[1] << 8 | (uint32_t)b[2] << 16 | (uint32_t)b[3] << 24;
}

static bool take_answer(void *user, const char *bytes, size_t length) {
    struct seen_answer *seen = user;
    if (length < 8) __builtin_trap();
    const uint64_t text = read_u32(bytes), columns = read_u32(bytes + 4);
    if (columns % 8 != 0 || 8 + text > length || columns < 8 + text) __builtin_trap();
    if (bytes[8] != '{' || bytes[7 + text] != '}') __builtin_trap();
    seen->bytes += length;
    for (size_t i = 0; i < length; i++) seen->sum = seen->sum * 31 + (unsigned char)bytes[i];
    return true;
}

static enum vram_status ask(struct vram_explorer *explorer, const char *question, struct seen_answer *seen) {
    struct vram_error error = {0};
    const enum vram_status status = vram_explorer_ask(explorer, question, take_answer, seen, &error);
    if (status != VRAM_OK && (seen->bytes != 0 || error.message[0] == '\0')) __builtin_trap();
    return status;
}

static void ask_all(struct vram_explorer *explorer, const char *question) {
    struct seen_answer first = {0}, again = {0}, list = {0};
    const enum vram_status status = ask(explorer, question, &first);
    if (ask(explorer, "list", &list) != VRAM_OK) __builtin_trap();
    if (ask(explorer, question, &again) != status) __builtin_trap();
    // Progress differs between answers.
    const bool works = strncmp(question, "prepare", 7) == 0;
    if (!works && (first.bytes != again.bytes || first.sum != again.sum)) __builtin_trap();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char question[QUESTION_ROOM];
    struct vram_recording *recording;
    struct vram_explorer *explorer;
    const uint8_t *end = size == 0 ? NULL : memchr(data, '\n', size);
    if (end == NULL || (size_t)(end - data) >= sizeof question) return 0;
    memcpy(question, data, (size_t)(end - data));
    question[end - data] = '\0';
    const size_t rest = size - (size_t)(end + 1 - data);
    if (vram_recording_read_memory(end + 1, rest, NULL, &recording, NULL) != VRAM_OK) return 0;
    if (vram_explorer_create(&explorer) != VRAM_OK) __builtin_trap();
    if (vram_explorer_add(explorer, recording, "file", rest, NULL) == VRAM_OK)
        ask_all(explorer, question);
    else
        vram_recording_destroy(recording);
    vram_explorer_destroy(explorer);
    return 0;
}
