// Reads any bytes as a recording and writes it as a pickle and as JSON, each of which is read again. After two rounds, the third gives the
// same bytes (in the first, frames that differ only in unknown keys are merged).
#include <stddef.h>
#include <stdint.h>

#include "base/text.h"
#include "model/recording.h"
#include "vram/export.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MOST_BYTES = 1 << 26 };

static bool append(void *user, const char *bytes, size_t length) {
    struct vr_text *text = user;
    // JSON repeats every stack.
    if (text->length + length > MOST_BYTES) return false;
    vr_text_append(text, bytes, length);
    return !text->failed;
}

// Reads the written text. Returns NULL if nothing was written for lack of memory or budget.
static struct vram_recording *read_again(const struct vr_text *text, bool is_json) {
    struct vram_recording *recording = NULL;
    struct vram_error error;
    enum vram_status status = vram_recording_read_memory(text->bytes, text->length, NULL, &recording, &error);
    if (status == VRAM_LIMIT || status == VRAM_NO_HOST_MEMORY) return NULL;
    // Without the keys that identify a recording, its JSON may not be recognized as one.
    if (status != VRAM_OK && !is_json) __builtin_trap();
    if (status == VRAM_OK && vr_model_check(vr_recording_model(recording), &error) != VRAM_OK) __builtin_trap();
    return recording;
}

static bool write_as(const struct vram_recording *recording, enum vram_recording_format format, struct vr_text *text) {
    struct vram_error error;
    *text = (struct vr_text){0};
    enum vram_status status = vram_recording_write(recording, format, append, text, &error);
    const bool is_refused = status == VRAM_LIMIT || status == VRAM_BAD_INPUT;
    if (is_refused != (vr_recording_model(recording)->loss != VR_LOSS_NONE)) __builtin_trap();
    if (status != VRAM_OK && status != VRAM_IO && status != VRAM_NO_HOST_MEMORY && !is_refused) __builtin_trap();
    return status == VRAM_OK;
}

// Reads the pickle and writes it again. Returns false if memory or the budget ran out.
static bool rewrite(const struct vr_text *from, struct vr_text *to) {
    struct vram_recording *again = read_again(from, false);
    *to = (struct vr_text){0};
    // The text has everything in its model.
    if (again != NULL && vr_recording_model(again)->loss > VR_LOSS_TOO_MUCH) __builtin_trap();
    bool good = again != NULL && write_as(again, VRAM_FORMAT_PICKLE, to);
    vram_recording_destroy(again);
    return good;
}

static void check_pickle(const struct vr_text *first) {
    struct vr_text second, third = {0};
    if (rewrite(first, &second) && rewrite(&second, &third)) {
        if (third.length != second.length || memcmp(third.bytes, second.bytes, second.length) != 0) __builtin_trap();
    }
    vr_text_release(&second);
    vr_text_release(&third);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct vram_recording *recording = NULL;
    struct vr_text pickle, json;
    if (vram_recording_read_memory(data, size, NULL, &recording, NULL) != VRAM_OK) return 0;
    if (write_as(recording, VRAM_FORMAT_PICKLE, &pickle)) check_pickle(&pickle);
    vr_text_release(&pickle);
    if (write_as(recording, size % 2 == 0 ? VRAM_FORMAT_JSON : VRAM_FORMAT_JSON_ROWS, &json)) {
        struct vram_recording *again = read_again(&json, true);
        vram_recording_destroy(again);
    }
    vr_text_release(&json);
    vram_recording_destroy(recording);
    return 0;
}
