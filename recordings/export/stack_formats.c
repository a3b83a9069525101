// Exports one sample per call stack: folded lines, and profiles for pprof.
#include <inttypes.h>

#include "export/export.h"

// ---- Folded stacks: one line per call stack, outermost frame first, and a number. Read by flamegraph.pl, speedscope and inferno.

// Appends a name, replacing characters that separate frames and lines.
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

// ---- A profile for pprof (its profile.proto): a sample per call stack and device. Locations and functions are the recording's frames.

// Field numbers of profile.proto.
enum {
    PROFILE_SAMPLE_TYPE = 1,
    PROFILE_SAMPLE = 2,
    PROFILE_LOCATION = 4,
    PROFILE_FUNCTION = 5,
    PROFILE_STRING = 6,
    PROFILE_DEFAULT_TYPE = 14
};
enum { SAMPLE_LOCATION = 1, SAMPLE_VALUE = 2, SAMPLE_LABEL = 3, LABEL_KEY = 1, LABEL_NUMBER = 3 };
enum { LOCATION_ID = 1, LOCATION_LINE = 4, LINE_FUNCTION = 1, LINE_LINE = 2 };
enum { FUNCTION_ID = 1, FUNCTION_NAME = 2, FUNCTION_SYSTEM_NAME = 3, FUNCTION_FILE = 4 };

// The exporter's own strings, which precede the recording's; string 0 is "". A sample type consists of a name and a unit.
static const char *const own_strings[] = {"",           "alloc_objects", "alloc_space", "inuse_objects", "inuse_space", "peak_objects",
                                          "peak_space", "count",         "bytes",       "device"};
enum { TYPES = 6, STRING_COUNT = 7, STRING_BYTES = 8, STRING_DEVICE = 9, DEFAULT_TYPE = 6 };

static uint64_t string_index_of(uint32_t id) { return id == 0 ? 0 : id + VR_COUNT_OF(own_strings) - 1; }

static void put_head(const struct vr_exporting *from, struct vr_output *out, struct vr_text *part) {
    for (unsigned type = 1; type <= TYPES; type++) {
        vr_proto_number(part, 1, type);
        vr_proto_number(part, 2, type % 2 != 0 ? STRING_COUNT : STRING_BYTES);
        vr_proto_message(&out->text, PROFILE_SAMPLE_TYPE, part);
    }
    vr_proto_number(&out->text, PROFILE_DEFAULT_TYPE, DEFAULT_TYPE);
    for (size_t i = 0; i < VR_COUNT_OF(own_strings); i++) vr_proto_string(&out->text, PROFILE_STRING, own_strings[i]);
    for (uint32_t i = 1; i < from->model->strings.count && vr_output_flow(out); i++) {
        vr_proto_bytes(&out->text, PROFILE_STRING, vr_model_string(from->model, i), vr_model_string_length(from->model, i));
    }
}

// Writes each frame as its own function and location; pprof merges functions by name.
static void put_frames(const struct vr_model *model, struct vr_output *out, struct vr_text *part, struct vr_text *line) {
    for (uint32_t i = 0; i < model->frames.count && vr_output_flow(out); i++) {
        vr_proto_number(part, FUNCTION_ID, (uint64_t)i + 1);
        vr_proto_number(part, FUNCTION_NAME, string_index_of(model->frames.name[i]));
        vr_proto_number(part, FUNCTION_SYSTEM_NAME, string_index_of(model->frames.name[i]));
        vr_proto_number(part, FUNCTION_FILE, string_index_of(model->frames.filename[i]));
        vr_proto_message(&out->text, PROFILE_FUNCTION, part);
        vr_proto_number(line, LINE_FUNCTION, (uint64_t)i + 1);
        vr_proto_number(line, LINE_LINE, model->frames.line[i] > 0 ? (uint64_t)model->frames.line[i] : 0);
        vr_proto_number(part, LOCATION_ID, (uint64_t)i + 1);
        vr_proto_message(part, LOCATION_LINE, line);
        vr_proto_message(&out->text, PROFILE_LOCATION, part);
    }
}

static void put_sample(const struct vr_view *view, uint32_t stack, const struct vr_tally *tally, struct vr_output *out,
                       struct vr_text *part, struct vr_text *packed) {
    const struct vr_stacks *stacks = &view->model->stacks;
    const uint64_t values[TYPES] = {tally->allocated_count, tally->allocated_bytes, tally->end_count,
                                    tally->end_bytes,       tally->peak_count,      tally->peak_bytes};
    for (uint64_t i = stacks->offset[stack]; i < stacks->offset[stack + 1]; i++) vr_proto_varint(packed, (uint64_t)stacks->frame[i] + 1);
    vr_proto_message(part, SAMPLE_LOCATION, packed);
    for (size_t i = 0; i < TYPES; i++) vr_proto_varint(packed, values[i]);
    vr_proto_message(part, SAMPLE_VALUE, packed);
    vr_proto_number(packed, LABEL_KEY, STRING_DEVICE);
    vr_proto_number(packed, LABEL_NUMBER, view->device);
    vr_proto_message(part, SAMPLE_LABEL, packed);
    vr_proto_message(&out->text, PROFILE_SAMPLE, part);
}

static enum vram_status put_samples(const struct vr_view *view, struct vr_output *out, struct vr_text *part, struct vr_text *packed) {
    struct vr_tally *tallies;
    VR_TRY(vr_tally_stacks(view, &tallies));
    for (uint32_t stack = 0; stack < view->model->stacks.count && vr_output_flow(out); stack++) {
        const struct vr_tally *tally = &tallies[stack];
        if (tally->allocated_count + tally->end_count + tally->peak_count != 0) put_sample(view, stack, tally, out, part, packed);
    }
    free(tallies);
    return VRAM_OK;
}

enum vram_status vr_export_pprof(const struct vr_exporting *from, struct vr_output *out) {
    struct vr_text part = {0}, inner = {0};
    enum vram_status status = VRAM_OK;
    put_head(from, out, &part);
    put_frames(from->model, out, &part, &inner);
    for (size_t v = 0; v < from->views->count && status == VRAM_OK; v++) status = put_samples(&from->views->view[v], out, &part, &inner);
    vr_text_release(&part);
    vr_text_release(&inner);
    return status;
}
