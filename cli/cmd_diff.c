// vram diff: two recordings side by side.
#include <stdio.h>
#include <string.h>

#include "args.h"
#include "input.h"
#include "input_files.h"
#include "moment.h"
#include "ui.h"
#include "vram/symbols.h"

int cmd_diff(int argc, char **argv);

struct settings {
    struct moment_settings moment;
    struct vram_profile_options options;
    uint64_t threshold;
    bool json;
};

// Compares one pair of files.
static int compare(const struct settings *settings, const char *const paths[2]) {
    struct vram_recording *recording[2] = {NULL, NULL};
    struct input_facts facts[2];
    struct vram_error error = {.status = VRAM_OK, .offset = VRAM_NO_OFFSET};
    int code = CLI_OK;
    for (unsigned side = 0; side < 2 && code == CLI_OK; side++) {
        code = input_recording(paths[side], &recording[side], &facts[side]);
        if (code == CLI_OK) (void)!vram_recording_symbolize(recording[side], NULL, NULL);
    }
    if (code == CLI_OK) {
        const struct vram_diff diff = {.recording = {recording[0], recording[1]},
                                       .title = {input_base_name(facts[0].name), input_base_name(facts[1].name)},
                                       .options = {settings->options, settings->options}};
        const struct vram_style style = ui_style();
        struct vram_diff_result result = {.most_grown_bytes = 0};
        const enum vram_status status = settings->json ? vram_diff_json(&diff, ui_write, NULL, &result, &error)
                                                       : vram_diff_text(&diff, &style, ui_write, NULL, &result, &error);
        const bool over = result.bytes[1] > result.bytes[0] && result.bytes[1] - result.bytes[0] > settings->threshold;
        if (status == VRAM_OK && settings->json) printf("\n");
        code = status == VRAM_IO ? CLI_BAD_INPUT : status != VRAM_OK ? ui_error(NULL, &error) : over ? CLI_FINDING : CLI_OK;
    }
    vram_recording_destroy(recording[0]);
    vram_recording_destroy(recording[1]);
    return code;
}

// A rank of the one job against the same rank, by order of names, of the other.
static int compare_all(const struct settings *settings, const struct input_files files[2]) {
    int worst = CLI_OK;
    if (files[0].count != files[1].count) {
        ui_say("vram: %d recordings before and %d after: each needs its partner", files[0].count, files[1].count);
        return CLI_USAGE;
    }
    if (settings->json && files[0].count > 1) printf("[");
    for (int i = 0; i < files[0].count; i++) {
        if (i != 0) printf(settings->json ? "," : "\n");
        const int code = compare(settings, (const char *const[]){files[0].paths[i], files[1].paths[i]});
        if (code > worst) worst = code;
    }
    if (settings->json && files[0].count > 1) printf("]\n");
    return worst;
}

int cmd_diff(int argc, char **argv) {
    struct settings settings = {.threshold = UINT64_MAX};
    const struct args_option options[] = {
        ARGS_JSON("folders: an array", &settings.json),
        {.name = "threshold",
         .kind = ARGS_SIZE,
         .value = "SIZE",
         .help = "exit code 1 when the second holds more than so much above the first, e.g. 100MiB",
         .target = &settings.threshold},
        MOMENT_OPTIONS(&settings.moment),
        GROUP_OPTIONS(&settings.moment),
        {.name = NULL},
    };
    const struct args_command command = {
        .name = "diff",
        .usage = "[options] BEFORE AFTER",
        .summary = "Puts what is live at the peaks of two recordings side by side, by call site: what grew, what is new, what is gone.\n"
                   "Call sites whose line moved are found by file and function. Two folders: rank by rank.",
        .examples = "  vram diff yesterday.pickle today.pickle\n"
                    "  vram diff --threshold 100MiB base.vram pull-request.vram   # in CI\n"
                    "  vram diff --by category rank0.pickle rank7.pickle\n",
        .options = options,
        .min_operands = 2,
        .max_operands = 2,
        .operand = "two recordings (BEFORE and AFTER)",
    };
    int count, code;
    if (!args_parse(&command, argc, argv, &count, &code)) return code;
    if (!moment_options(&settings.moment, &settings.options)) return CLI_USAGE;
    struct input_files files[2];
    code = input_files_open(argv + 1, 1, &files[0]);
    if (code != CLI_OK) return code;
    code = input_files_open(argv + 2, 1, &files[1]);
    if (code == CLI_OK) {
        code = compare_all(&settings, files);
        input_files_close(&files[1]);
    }
    input_files_close(&files[0]);
    return code;
}
