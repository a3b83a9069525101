// vram symbolize: names the machine code in a recording.
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "output.h"
#include "args.h"
#include "input.h"
#include "ui.h"
#include "vram/export.h"
#include "vram/recording.h"

int cmd_symbolize(int argc, char **argv);

struct settings {
    const char *path;
    struct args_list debug_dirs;
    bool names_only;
    bool json;
};

// File extensions and their formats.
static const struct {
    const char *extension;
    enum vram_recording_format format;
} formats[] = {{".pickle", VRAM_FORMAT_PICKLE}, {".pkl", VRAM_FORMAT_PICKLE}, {".json", VRAM_FORMAT_JSON}, {".vram", VRAM_FORMAT_VRAM}};

static bool format_of(const char *path, enum vram_recording_format *format) {
    const size_t length = output_plain_length(path);
    for (size_t i = 0; i < sizeof formats / sizeof formats[0]; i++) {
        const size_t extension = strlen(formats[i].extension);
        if (length < extension || memcmp(path + length - extension, formats[i].extension, extension) != 0) continue;
        *format = formats[i].format;
        return true;
    }
    ui_say("vram: cannot infer a format from '%s'; use .vram, .pickle or .json", path);
    return false;
}

static int write_file(const struct vram_recording *recording, const char *path, enum vram_recording_format format, const char *name) {
    struct output *output = output_open(path);
    if (output == NULL) return CLI_BAD_INPUT;
    struct vram_error error = {.status = VRAM_OK, .offset = VRAM_NO_OFFSET};
    const enum vram_status status = vram_recording_write(recording, format, output_write, output, &error);
    return output_end(output, status, name, &error);
}

static int print_json(const struct vram_symbols_counts *counts) {
    struct answer_json answer;
    struct vr_json *json = answer_json_begin(&answer);
    vr_json_object(json, NULL);
    vr_json_u64(json, "frames", counts->frames);
    vr_json_u64(json, "named", counts->named);
    vr_json_u64(json, "lined", counts->lined);
    vr_json_u64(json, "modules", counts->modules);
    vr_json_u64(json, "modules_missing", counts->modules_missing);
    vr_json_object_end(json);
    return answer_json_end(&answer, NULL);
}

static int print_counts(const struct vram_symbols_counts *counts) {
    printf("%" PRIu64 " frame%s in %" PRIu64 " module%s: %" PRIu64 " named, %" PRIu64 " with a line", counts->frames,
           counts->frames == 1 ? "" : "s", counts->modules, counts->modules == 1 ? "" : "s", counts->named, counts->lined);
    if (counts->modules_missing != 0)
        printf("; no file found for the build id of %" PRIu64 " module%s", counts->modules_missing,
               counts->modules_missing == 1 ? "" : "s");
    printf("\n");
    return CLI_OK;
}

static int symbolize(const char *input, const struct settings *settings) {
    enum vram_recording_format format;
    struct vram_recording *recording;
    struct input_facts facts;
    struct vram_symbols_counts counts;
    if (!format_of(settings->path, &format)) return CLI_USAGE;
    if (output_is_input(settings->path, input)) {
        ui_say("vram: %s: the output would replace the input", settings->path);
        return CLI_USAGE;
    }
    int code = input_recording(input, &recording, &facts);
    if (code != CLI_OK) return code;
    const struct vram_symbols_options options = {
        .debug_dirs = settings->debug_dirs.values, .debug_dir_count = settings->debug_dirs.count, .names_only = settings->names_only};
    const enum vram_status status = vram_recording_symbolize(recording, &options, &counts);
    if (status != VRAM_OK) {
        struct vram_error error = {.status = status, .offset = VRAM_NO_OFFSET};
        (void)snprintf(error.message, sizeof error.message, "%s", vram_status_text(status));
        code = ui_error(facts.name, &error);
    } else {
        code = write_file(recording, settings->path, format, facts.name);
    }
    vram_recording_destroy(recording);
    if (code == CLI_OK) code = settings->json ? print_json(&counts) : print_counts(&counts);
    return code;
}

int cmd_symbolize(int argc, char **argv) {
    struct settings settings = {.path = NULL};
    const struct args_option options[] = {
        {.name = "output",
         .letter = 'o',
         .kind = ARGS_STRING,
         .value = "OUT",
         .help = "the file to write: .vram, .pickle or .json (.gz, .zst and .xz compress)",
         .target = &settings.path},
        {.name = "debug-dir",
         .kind = ARGS_STRINGS,
         .value = "DIR",
         .help = "a folder with .build-id/, searched before /usr/lib/debug; may be repeated",
         .target = &settings.debug_dirs},
        {.name = "names-only",
         .kind = ARGS_FLAG,
         .help = "use symbol tables only, without lines and inlined functions; faster",
         .target = &settings.names_only},
        {.name = "json", .kind = ARGS_FLAG, .help = "one JSON object; keys in docs/reference/json.md", .target = &settings.json},
        INPUT_OPTION,
        {.name = NULL},
    };
    const struct args_command command = {
        .name = "symbolize",
        .usage = "FILE -o OUT [options]",
        .summary = "Finds names, source lines and inlined functions for machine code in a recording: frames that were recorded as "
                   "an\noffset in a module. Modules are found by path and build id; lines need debug information and libdw. Frames "
                   "that\ncannot be named stay as they are.",
        .examples = "  vram symbolize run.vram -o run.pickle\n"
                    "  vram symbolize --debug-dir ./symbols run.vram -o named.vram\n",
        .options = options,
        .min_operands = 1,
        .max_operands = 1,
        .operand = ARGS_RECORDING,
    };
    int count, code;
    if (!args_parse(&command, argc, argv, &count, &code)) return code;
    if (settings.path == NULL) return ui_usage("symbolize", "vram: -o OUT is required");
    return symbolize(argv[1], &settings);
}
