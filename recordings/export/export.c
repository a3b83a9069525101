#include "export/export.h"

#include "model/recording.h"

static const struct vram_export_options defaults;
static vr_export_function *const formats[VRAM_EXPORT_COUNT] = {
    [VRAM_EXPORT_RMM] = vr_export_rmm,       [VRAM_EXPORT_EVENTS] = vr_export_events, [VRAM_EXPORT_PERFETTO] = vr_export_perfetto,
    [VRAM_EXPORT_FOLDED] = vr_export_folded, [VRAM_EXPORT_PPROF] = vr_export_pprof,   [VRAM_EXPORT_ARROW] = vr_export_arrow,
};

enum vram_status vram_recording_export(const struct vram_recording *recording, enum vram_export_format format,
                                       const struct vram_export_options *options, vram_write write, void *user, struct vram_error *error) {
    if (recording == NULL || write == NULL || (unsigned)format >= VRAM_EXPORT_COUNT) {
        return vr_fail(error, VRAM_INVALID_ARGUMENT, VRAM_NO_OFFSET, "recording, format and write must not be NULL");
    }
    const struct vr_model *model = vr_recording_model(recording);
    struct vr_output out = {.write = write, .user = user};
    struct vr_views views = {0};
    VR_TRY(vr_views_build(model, &views, error));
    const struct vr_exporting from = {recording, model, &views, options == NULL ? &defaults : options};
    enum vram_status status = formats[format](&from, &out);
    if (status == VRAM_OK) status = vr_output_end(&out);
    vr_text_release(&out.text);
    vr_views_release(&views);
    return status == VRAM_OK ? status : vr_fail(error, status, VRAM_NO_OFFSET, "%s", vram_status_text(status));
}
