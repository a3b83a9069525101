// A report whole: its facts, and the sentences about them.
#include "analyze/report_facts.h"
#include "model/recording.h"
#include "present/hints.h"
#include "present/notes.h"
#include "present/oom_sentence.h"

static enum vram_status put_words(const struct vr_model *model, struct vr_report_facts *facts) {
    for (size_t d = 0; d < facts->report.device_count; d++) VR_TRY(vr_oom_sentences(&facts->arena, &facts->report.devices[d]));
    VR_TRY(vr_report_hints(&facts->arena, &facts->report));
    return vr_report_notes(model, &facts->arena, &facts->report);
}

enum vram_status vram_report_create(const struct vram_recording *recording, const struct vram_report_options *options,
                                    struct vram_report **report, struct vram_error *error) {
    if (recording == NULL || report == NULL)
        return vr_fail(error, VRAM_INVALID_ARGUMENT, VRAM_NO_OFFSET, "recording and report must not be NULL");
    struct vr_report_facts *facts = calloc(1, sizeof *facts);
    if (facts == NULL) return vr_fail(error, VRAM_NO_HOST_MEMORY, VRAM_NO_OFFSET, "no host memory for the report");
    enum vram_status status = vr_report_facts_find(recording, options, facts, error);
    if (status == VRAM_OK) status = put_words(vr_recording_model(recording), facts);
    if (status != VRAM_OK) {
        vram_report_destroy(&facts->report);
        if (status == VRAM_NO_HOST_MEMORY) return vr_fail(error, status, VRAM_NO_OFFSET, "no host memory for the report");
        return status;
    }
    *report = &facts->report;
    return VRAM_OK;
}

void vram_report_destroy(struct vram_report *report) {
    if (report == NULL) return;
    struct vr_report_facts *facts = (struct vr_report_facts *)(void *)report;
    vr_arena_release(&facts->arena);
    free(facts);
}
