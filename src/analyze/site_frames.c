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
