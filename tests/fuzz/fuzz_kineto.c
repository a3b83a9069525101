// Reads any bytes as the events of a profiler's trace: they are read, or refused with one line; the result is the same in one piece or
// many. The recording is written in every format of other tools.
#include <stddef.h>
#include <stdint.h>

#include "base/text.h"
#include "model/recording.h"
#include "vram/export.h"
#include "pieces.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool ignore(void *user, const char *bytes, size_t length) {
    (void)user, (void)bytes, (void)length;
    return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct vram_recording *whole = NULL, *pieced = NULL;
    struct vram_error error;
    struct vr_text text = {0};
    vr_text_puts(&text, "{\"schemaVersion\": 1, \"traceEvents\": ");
    vr_text_append(&text, (const char *)data, size);
    struct pieces pieces = {text.bytes, text.length};
    const struct vram_input input = pieces_input(&pieces);
    const enum vram_status status = vram_recording_read_memory(text.bytes, text.length, "trace", &whole, &error);
    if (status != VRAM_OK && (error.status != status || error.message[0] == '\0')) __builtin_trap();
    if (status == VRAM_OK && vr_model_check(vr_recording_model(whole), &error) != VRAM_OK) __builtin_trap();
    const enum vram_status other = vram_recording_read(&input, &pieced, NULL);
    if (other != status && other != VRAM_LIMIT) __builtin_trap();
    for (int format = 0; whole != NULL && format < VRAM_EXPORT_COUNT; format++) {
        if (vram_recording_export(whole, (enum vram_export_format)format, NULL, ignore, NULL, NULL) != VRAM_OK) __builtin_trap();
    }
    vram_recording_destroy(whole);
    vram_recording_destroy(pieced);
    vr_text_release(&text);
    return 0;
}
