// Which generation of files a recording is of, by what it has.
#include "analyze/generation.h"

static uint32_t any_event_has(const struct vr_model *model) {
    uint32_t has = 0;
    for (size_t d = 0; d < model->history_count; d++) {
        const struct vr_history *history = &model->histories[d];
        // A key that one of the events has: in what is common unless it is apart from that in all of them.
        const bool alike = vr_entries_alike(history);
        uint32_t apart = 0, always = alike ? 0 : UINT32_MAX;
        for (size_t i = 0; i < history->count && !alike; i++) {
            apart |= history->has.apart[i];
            always &= history->has.apart[i];
        }
        if (history->count != 0) has |= (history->has.common & ~always) | (~history->has.common & apart);
    }
    return has;
}

static bool has_top_level_key(const struct vr_model *model, const char *key) {
    for (size_t i = 0; i < model->top_level_key_count; i++) {
        if (strcmp(vr_model_string(model, model->top_level_keys[i]), key) == 0) return true;
    }
    return false;
}

// Segments that were made up of live blocks are of no kind.
static bool any_segment_known(const struct vr_model *model) {
    for (size_t i = 0; i < model->segments.count; i++) {
        if (model->segments.kind[i] != VR_KIND_UNKNOWN) return true;
    }
    return false;
}

void vr_report_generation(const struct vr_model *model, const char **generation, const char **era) {
    uint32_t picture = 0;
    for (size_t i = 0; i < model->segments.count; i++) picture |= model->segments.has[i];
    for (size_t i = 0; i < model->blocks.count; i++) picture |= model->blocks.has[i];
    const uint32_t events = any_event_has(model);
    const struct {
        bool matches;
        const char *generation, *era;
    } rows[] = {
        {model->form == VR_FORM_SEGMENT_LIST, "list", ""},
        // Both keys came at once to PyTorch's snapshots; logs and traces of others are read into the first one alone.
        {has_top_level_key(model, "external_annotations") && !has_top_level_key(model, "allocator_settings") && !any_segment_known(model),
         VR_EVENTS_ALONE, ""},
        {(events & VR_HAS_POOL_ID) != 0, "G7", "about PyTorch 2.12+"},
        {(events & VR_HAS_USER_METADATA) != 0, "G6", "about PyTorch 2.10 to 2.11"},
        {(events & VR_HAS_COMPILE_CONTEXT) != 0, "G5", "about PyTorch 2.7 to 2.9"},
        {has_top_level_key(model, "external_annotations"), "G4", "about PyTorch 2.5+"},
        {has_top_level_key(model, "allocator_settings"), "G3", "about PyTorch 2.3 to 2.4"},
        {(events & VR_HAS_TIME) != 0, "G2b", "about PyTorch 2.2"},
        {(picture & VR_HAS_FRAMES) != 0, "G2", "about PyTorch 2.1+"},
        {true, "G1", "PyTorch 2.0 or older"},
    };
    size_t row = 0;
    while (!rows[row].matches) row++;
    *generation = rows[row].generation;
    // A file of vram's own has no keys of a snapshot, unless it was made of one; a whole program need not have PyTorch.
    const bool own = model->form != VR_FORM_SEGMENT_LIST && model->top_level_key_count == 0;
    *era = own || vr_model_setting(model, "vram_run_process") != NULL ? "" : rows[row].era;
}

bool vr_report_has_settings(const struct vr_model *model) {
    return has_top_level_key(model, "allocator_settings") || vr_model_setting(model, "PYTORCH_CUDA_ALLOC_CONF") != NULL;
}

const char *vr_report_form(const struct vr_model *model) { return model->form == VR_FORM_SEGMENT_LIST ? "segment_list" : "dict"; }
