// Reads any rows as an RMM log: they are read, or refused with one line that names the row; the result is the same in one piece or many.
// The recording is written as an RMM log and read again, with the same numbers of allocations, frees and failures.
#include <stddef.h>
#include <stdint.h>

#include "base/text.h"
#include "model/recording.h"
#include "snapshot/formats.h"
#include "vram/export.h"
#include "pieces.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool append(void *user, const char *bytes, size_t length) {
    vr_text_append(user, bytes, length);
    return true;
}

static uint64_t count_of(const struct vram_recording *recording, enum vr_action action) {
    const struct vr_model *model = vr_recording_model(recording);
    uint64_t count = 0;
    for (size_t d = 0; d < model->history_count; d++) {
        for (size_t i = 0; i < model->histories[d].count; i++) count += model->histories[d].action[i] == action;
    }
    return count;
}

static void write_and_read(const struct vram_recording *recording) {
    struct vr_text text = {0};
    struct vram_recording *again = NULL;
    if (vram_recording_export(recording, VRAM_EXPORT_RMM, NULL, append, &text, NULL) != VRAM_OK) __builtin_trap();
    const enum vram_status status = vram_recording_read_memory(text.bytes, text.length, NULL, &again, NULL);
    if (status != VRAM_OK && status != VRAM_LIMIT) __builtin_trap();
    if (again != NULL && count_of(again, VR_ACTION_OOM) != count_of(recording, VR_ACTION_OOM)) __builtin_trap();
    if (again != NULL && count_of(again, VR_ACTION_FREE_REQUESTED) != count_of(recording, VR_ACTION_FREE_REQUESTED)) __builtin_trap();
    // Memory that is freed without an allocation existed from the start; the written log says so.
    if (again != NULL && count_of(again, VR_ACTION_ALLOC) < count_of(recording, VR_ACTION_ALLOC)) __builtin_trap();
    vram_recording_destroy(again);
    vr_text_release(&text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct vram_recording *whole = NULL, *pieced = NULL;
    struct vram_error error;
    struct vr_text text = {0};
    vr_text_puts(&text, VR_RMM_MAGIC "\n");
    vr_text_append(&text, (const char *)data, size);
    struct pieces pieces = {text.bytes, text.length};
    const struct vram_input input = pieces_input(&pieces);
    const enum vram_status status = vram_recording_read_memory(text.bytes, text.length, "log", &whole, &error);
    if (status != VRAM_OK && (error.status != status || error.message[0] == '\0')) __builtin_trap();
    if (status == VRAM_OK && vr_model_check(vr_recording_model(whole), &error) != VRAM_OK) __builtin_trap();
    const enum vram_status other = vram_recording_read(&input, &pieced, NULL);
    if (other != status && other != VRAM_LIMIT) __builtin_trap();
    if (whole != NULL) write_and_read(whole);
    vram_recording_destroy(whole);
    vram_recording_destroy(pieced);
    vr_text_release(&text);
    return 0;
}
