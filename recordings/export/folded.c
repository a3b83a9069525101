// Folded stacks: a line per call stack, from the outermost frame to the innermost, and a number. flamegraph.pl, speedscope and inferno read
// it.
#include <inttypes.h>

#include "export/export.h"
#include "export/tally.h"

// What separates frames and lines may not stand in a name.
static void put_folded_name(struct vr_text *out, const char *text) {
    const size_t start = out->length;
    vr_text_puts(out, text);
    if (out->failed) return;
    for (char *at = out->bytes + start; *at != '\0'; at++) {
        if (*at == ';') *at = ':';
        if ((unsigned char)*at < ' ') *at = ' ';
    }
}

static void put_folded_frame(struct vr_text *out, const struct vr_model *model, uint32_t frame) {
    const char *filename = vr_model_string(model, model->frames.filename[frame]);
    put_folded_name(out, vr_model_string(model, model->frames.name[frame]));
    if (filename[0] == '\0') return;
    vr_text_puts(out, " (");
    put_folded_name(out, filename);
    if (model->frames.line[frame] > 0) vr_text_printf(out, ":%" PRId64, model->frames.line[frame]);
    vr_text_puts(out, ")");
}

static void put_stack(struct vr_text *out, const struct vr_model *model, uint32_t stack) {
    const struct vr_stacks *stacks = &model->stacks;
    for (uint64_t i = stacks->offset[stack + 1]; i-- > stacks->offset[stack];) {
        put_folded_frame(out, model, stacks->frame[i]);
        if (i != stacks->offset[stack]) vr_text_puts(out, ";");
    }
    if (stacks->offset[stack + 1] == stacks->offset[stack]) vr_text_puts(out, "<no frames>");
}

static uint64_t measure_of_tally(const struct vr_tally *tally, enum vram_export_measure what) {
    return what == VRAM_EXPORT_PEAK ? tally->peak_bytes : what == VRAM_EXPORT_END ? tally->end_bytes : tally->allocated_bytes;
}

enum vram_status vr_export_folded(const struct vr_exporting *from, struct vr_output *out) {
    for (size_t v = 0; v < from->views->count; v++) {
        struct vr_tally *tallies;
        VR_TRY(vr_tally_stacks(&from->views->view[v], &tallies));
        for (uint32_t stack = 0; stack < from->model->stacks.count && vr_output_flow(out); stack++) {
            const uint64_t bytes = measure_of_tally(&tallies[stack], from->options->measure);
            if (bytes == 0) continue;
            if (from->views->count > 1) vr_text_printf(&out->text, "device %" PRIu32 ";", from->views->view[v].device);
            put_stack(&out->text, from->model, stack);
            vr_text_printf(&out->text, " %" PRIu64 "\n", bytes);
        }
        free(tallies);
    }
    return VRAM_OK;
}
