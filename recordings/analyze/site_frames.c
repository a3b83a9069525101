#include <stdio.h>

#include "analyze/finder.h"
#include "analyze/sites.h"
#include "model/recording.h"
#include "vram/recording.h"

static_assert(VR_NO_SITE == VRAM_NO_FRAME, "handed on as it is");

enum vram_status vram_recording_sites(const struct vram_recording *recording, uint32_t *frames) {
    VR_REQUIRE(recording && frames);
    const struct vr_model *model = vr_recording_model(recording);
    struct vr_sites sites;
    VR_TRY(vr_sites_init(&sites, model));
    for (uint32_t stack = 0; stack < model->stacks.count; stack++) frames[stack] = vr_sites_frame(&sites, stack);
    vr_sites_release(&sites);
    return VRAM_OK;
}

size_t vram_site_of_frames(const struct vram_frame *frames, size_t count) {
    struct vr_site_choice choice = {.has = {false}};
    if (frames == NULL || count == 0) return SIZE_MAX;
    for (size_t i = 0; i < count; i++) {
        const struct vr_frame_text text = {.file = frames[i].filename,
                                           .file_length = strlen(frames[i].filename),
                                           .name = frames[i].name,
                                           .name_length = strlen(frames[i].name)};
        if (vr_site_choice_add(&choice, vr_frame_kind_of(&text), i)) break;
    }
    return (size_t)vr_site_choice_best(&choice);
}

static bool is_skipped(const struct vr_model *model, const struct vr_finder *finder, uint32_t frame) {
    char text[VR_FINDER_BYTES];
    (void)snprintf(text, sizeof text, "%.2000s:%lld:%.2000s", vr_model_string(model, model->frames.filename[frame]),
                   (long long)model->frames.line[frame], vr_model_string(model, model->frames.name[frame]));
    return vr_finder_matches(finder, text);
}

// Why a frame is skipped, in model->frames.skipped.
enum { FOR_GOOD = 1, FOR_NOW = 2 };

static enum vram_status skip_frames(struct vram_recording *recording, const char *expression, uint8_t keeps, uint8_t why,
                                    struct vram_error *error) {
    struct vr_model *model = &recording->model;
    const bool some = *expression != '\0';
    struct vr_finder finder;
    if (some) VR_TRY(vr_finder_init(&finder, expression, true, error));
    uint8_t *skipped = calloc((size_t)model->frames.count + 1, sizeof *skipped);
    if (skipped == NULL) {
        if (some) vr_finder_release(&finder);
        return vr_fail(error, VRAM_NO_HOST_MEMORY, VRAM_NO_OFFSET, "%s", vram_status_text(VRAM_NO_HOST_MEMORY));
    }
    for (uint32_t i = 0; i < model->frames.count; i++) {
        if (model->frames.skipped != NULL) skipped[i] = model->frames.skipped[i] & keeps;
        if (some && is_skipped(model, &finder, i)) skipped[i] |= why;
    }
    if (some) vr_finder_release(&finder);
    free(model->frames.skipped);
    model->frames.skipped = skipped;
    return VRAM_OK;
}

enum vram_status vram_recording_skip_frames(struct vram_recording *recording, const char *expression, struct vram_error *error) {
    VR_REQUIRE_OR_FAIL(error, recording && expression);
    return skip_frames(recording, expression, FOR_GOOD | FOR_NOW, FOR_GOOD, error);
}

enum vram_status vr_sites_skip_for_now(struct vram_recording *recording, const char *expression, struct vram_error *error) {
    return skip_frames(recording, expression, FOR_GOOD, FOR_NOW, error);
}
