#include "snapshot/emit.h"

static void release_emitter(struct vr_emitter *emitter) {
    free(emitter->chunk);
    free(emitter->memo);
    for (size_t i = 0; i < VR_SHARED_COUNT; i++) free(emitter->known[i]);
    free(emitter->pieces);
    free(emitter->piece_end);
}

enum vram_status vr_emitter_init(struct vr_emitter *emitter, const struct vr_emit_calls *calls, const struct vr_model *model, bool rows,
                                 vram_write write, void *user) {
    *emitter = (struct vr_emitter){.calls = calls, .model = model, .rows = rows, .change = VR_PYTHON_NONE, .write = write, .user = user};
    emitter->chunk = malloc(VR_EMIT_CHUNK);
    emitter->memo = calloc((size_t)VR_WORD_COUNT + model->strings.count, sizeof *emitter->memo);
    emitter->known[VR_SHARED_FRAME] = calloc((size_t)model->frames.count + 1, sizeof *emitter->memo);
    emitter->known[VR_SHARED_STACK] = calloc((size_t)model->stacks.count + 1, sizeof *emitter->memo);
    bool complete = emitter->chunk != NULL && emitter->memo != NULL && emitter->known[0] != NULL && emitter->known[1] != NULL;
    if (!complete) {
        release_emitter(emitter);
        return VRAM_NO_HOST_MEMORY;
    }
    calls->start(emitter);
    return VRAM_OK;
}

enum vram_status vr_emitter_finish(struct vr_emitter *emitter) {
    emitter->calls->finish(emitter);
    vr_emitter_flush(emitter);
    release_emitter(emitter);
    return emitter->status;
}

void vr_emitter_write(struct vr_emitter *emitter, const void *bytes, size_t length) {
    if (length == 0 || emitter->status != VRAM_OK) return;
    if (!emitter->write(emitter->user, bytes, length)) emitter->status = VRAM_IO;
}

void vr_emitter_flush(struct vr_emitter *emitter) {
    if (emitter->used == emitter->begin) return;
    emitter->calls->seal(emitter);
    vr_emitter_write(emitter, emitter->chunk, emitter->used);
    emitter->used = emitter->begin;
}
