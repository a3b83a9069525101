// vram diff: two recordings side by side.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "args.h"
#include "input.h"
#include "input_files.h"
#include "moment.h"
#include "ui.h"

int cmd_diff(int argc, char **argv);

struct settings {
    struct moment_settings moment;
    struct vram_profile_options options;
    const char *threshold; // as given, or NULL
    uint64_t threshold_bytes;
    double threshold_share; // of what the first holds; < 0: the bytes count
    bool json;
};

// "100MiB" or "5%".
static bool settle_threshold(struct settings *settings) {
    const char *text = settings->threshold;
    settings->threshold_bytes = UINT64_MAX;
    settings->threshold_share = -1;
    if (text == NULL || args_size(text, &settings->threshold_bytes)) return true;
    const size_t whole = strspn(text, "0123456789");
    const size_t digits = whole + (text[whole] == '.' ? 1 + strspn(text + whole + 1, "0123456789") : 0);
    if (whole != 0 && strcmp(text + digits, "%") == 0) {
        settings->threshold_share = strtod(text, NULL) / 100;
        return true;
    }
    ui_say("vram: --threshold: '%s' is neither a size such as 100MiB nor a share such as 5%%", text);
    return false;
}

static bool is_over(const struct settings *settings, const uint64_t bytes[2]) {
    if (bytes[1] <= bytes[0] || settings->threshold == NULL) return false;
    if (settings->threshold_share >= 0) return (double)(bytes[1] - bytes[0]) > settings->threshold_share * (double)bytes[0];
    return bytes[1] - bytes[0] > settings->threshold_bytes;
}

// Compares one pair of files.
static int compare(const struct settings *settings, const char *const paths[2]) {
    struct vram_recording *recording[2] = {NULL, NULL};
    struct input_facts facts[2];
    struct vram_error error = {.status = VRAM_OK, .offset = VRAM_NO_OFFSET};
    int code = CLI_OK;
    for (unsigned side = 0; side < 2 && code == CLI_OK; side++) {
        code = input_named_recording(paths[side], &recording[side], &facts[side]);
    }
    if (code == CLI_OK) {
        const struct vram_diff diff = {.recording = {recording[0], recording[1]},
                                       .title = {input_base_name(facts[0].name), input_base_name(facts[1].name)},
                                       .options = {settings->options, settings->options}};
        const struct vram_style style = ui_style();
        struct vram_diff_result result = {.most_grown_bytes = 0};
        const enum vram_status status = settings->json ? vram_diff_json(&diff, ui_write, NULL, &result, &error)
                                                       : vram_diff_text(&diff, &style, ui_write, NULL, &result, &error);
        const bool over = is_over(settings, result.bytes);
        if (status == VRAM_OK && settings->json) printf("\n");
        code = ui_result(status, over, NULL, &error);
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
    struct settings settings = {.threshold = NULL};
    const struct args_option options[] = {
        ARGS_JSON("folders: an array", &settings.json),
        {.name = "threshold",
         .kind = ARGS_STRING,
         .value = "SIZE|N%",
         .help = "exit code 1 when the second holds more than so much above the first, e.g. 100MiB or 5%",
         .target = &settings.threshold},
        MOMENT_OPTIONS(&settings.moment),
        GROUP_OPTIONS(&settings.moment),
        INPUT_OPTION,
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
    if (!settle_threshold(&settings) || !moment_options(&settings.moment, &settings.options)) return CLI_USAGE;
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
