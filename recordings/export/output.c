// What the writers of all formats share.
#include "export/export.h"

enum { PIECE_BYTES = 1 << 16 };

static bool pass_on(struct vr_output *out) {
    if (!out->refused && out->text.length != 0) out->refused = !out->write(out->user, out->text.bytes, out->text.length);
    out->text.length = 0;
    return !out->refused;
}

bool vr_output_flow(struct vr_output *out) {
    assert(out->write != NULL);
    if (out->text.failed) return false;
    return out->text.length < PIECE_BYTES ? !out->refused : pass_on(out);
}

enum vram_status vr_output_end(struct vr_output *out) {
    if (out->text.failed) return VRAM_NO_HOST_MEMORY;
    return pass_on(out) ? VRAM_OK : VRAM_IO;
}

uint32_t vr_export_actions(const struct vr_history *history) {
    uint32_t actions = 0;
    _Static_assert(VR_ACTION_COUNT <= 32, "a bit for each action");
    for (size_t i = 0; i < history->count; i++) actions |= 1u << history->action[i];
    return actions;
}
