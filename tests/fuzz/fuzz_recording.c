// Reads any bytes as a recording: they are read, or refused with one line, never a crash or a hang; the resulting model is consistent.
// Reads twice, at once and in small pieces, and both must agree.
#include <stddef.h>
#include <stdint.h>

#include "model/recording.h"
#include "pieces.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool same_size(const struct vr_model *a, const struct vr_model *b) {
    return a->segments.count == b->segments.count && a->blocks.count == b->blocks.count && a->history_count == b->history_count &&
           a->stacks.count == b->stacks.count && a->frames.count == b->frames.count && a->strings.count == b->strings.count &&
           a->annotation_count == b->annotation_count && a->setting_count == b->setting_count;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct vram_recording *whole = NULL, *pieced = NULL;
    struct vram_error error;
    struct pieces pieces = {data, size};
    const struct vram_input input = pieces_input(&pieces);
    enum vram_status status = vram_recording_read_memory(data, size, "file", &whole, &error);
    if (status != VRAM_OK && (error.status != status || error.message[0] == '\0')) __builtin_trap();
    if (status != VRAM_OK && error.offset != VRAM_NO_OFFSET && error.offset > size) __builtin_trap();
    if (status == VRAM_OK && vr_model_check(vr_recording_model(whole), &error) != VRAM_OK) __builtin_trap();
    enum vram_status again = vram_recording_read(&input, &pieced, NULL);
    // In pieces, a file may be refused earlier for its unpacked size, because its size is not known yet.
    if (again != status && again != VRAM_LIMIT) __builtin_trap();
    if (whole != NULL && pieced != NULL && !same_size(vr_recording_model(whole), vr_recording_model(pieced))) __builtin_trap();
    vram_recording_destroy(whole);
    vram_recording_destroy(pieced);
    return 0;
}
