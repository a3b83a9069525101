// vram diff: compares two recordings.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "output.h"
#include "args.h"
#include "input.h"
#include "input_files.h"
#include "shared_options.h"
#include "ui.h"
#include "verdicts.h"

int cmd_diff(int argc, char **argv);

struct settings {
    struct moment_settings moment;
    struct vram_profile_options options;
    const char *fail_over; // as given, or NULL
    uint64_t fail_over_bytes;
    double fail_over_share; // as a share of the first recording's bytes; < 0: use fail_over_bytes
    bool json;
    struct verdicts verdicts;
    struct answers answers;
};

// Parses "100MiB" or "5%".
static bool settle_fail_over(struct settings *settings) {
    const char *text = settings->fail_over;
    settings->fail_over_bytes = UINT64_MAX;
    settings->fail_over_share = -1;
    if (text == NULL || args_size(text, &settings->fail_over_bytes)) return true;
    const size_t whole = strspn(text, "0123456789");
    const size_t digits = whole + (text[whole] == '.' ? 1 + strspn(text + whole + 1, "0123456789") : 0);
    if (whole != 0 && strcmp(text + digits, "%") == 0) {
        settings->fail_over_share = strtod(text, NULL) / 100;
        return true;
    }
    if (whole == strlen(text))
        args_size_say_wrong("fail-over", text);
    else
        ui_say("vram: --fail-over: '%s' is neither a size, such as 100MiB, nor a percentage, such as 5%%", text);
    return false;
}

static bool is_over(const struct settings *settings, const uint64_t bytes[2]) {
    if (bytes[1] <= bytes[0] || settings->fail_over == NULL) return false;
    if (settings->fail_over_share >= 0) return (double)(bytes[1] - bytes[0]) > settings->fail_over_share * (double)bytes[0];
    return bytes[1] - bytes[0] > settings->fail_over_bytes;
}

static void judge_growth(struct settings *settings, const char *name, const uint64_t bytes[2]) {
    char before[UI_SIZE_CAPACITY], after[UI_SIZE_CAPACITY], apart[UI_SIZE_CAPACITY];
    const bool more = bytes[1] > bytes[0];
    const uint64_t difference = more ? bytes[1] - bytes[0] : bytes[0] - bytes[1];
    verdicts_add(&settings->verdicts, name, !is_over(settings, bytes), "%s after %s: %s %s (%.2f %%), allowed increase: %s",
                 ui_size(bytes[1], after), ui_size(bytes[0], before), ui_size(difference, apart), more ? "more" : "less",
                 bytes[0] == 0 ? 0.0 : 100.0 * (double)difference / (double)bytes[0], settings->fail_over);
}

// Compares one pair of files.
static int compare_recordings(struct settings *settings, const char *const paths[2]) {
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
        answers_expect(&settings->answers);
        const enum vram_status status = settings->json ? vram_diff_json(&diff, answers_write, &settings->answers, &result, &error)
                                                       : vram_diff_text(&diff, &style, answers_write, &settings->answers, &result, &error);
        if (status == VRAM_OK && settings->fail_over != NULL) judge_growth(settings, input_base_name(facts[1].name), result.bytes);
        code = ui_result(status, false, NULL, &error);
    }
    vram_recording_destroy(recording[0]);
    vram_recording_destroy(recording[1]);
    return code;
}

// Compares two jobs rank by rank. The ranks of both are in the order of their names.
static int compare_all(struct settings *settings, const struct input_files files[2]) {
    int worst = CLI_OK;
    if (files[0].count != files[1].count) {
        ui_say("vram: %d recordings before and %d after: the numbers must match", files[0].count, files[1].count);
        return CLI_USAGE;
    }
    answers_open(&settings->answers, settings->json, files[0].count > 1, "\n");
    for (int i = 0; i < files[0].count; i++) {
        const int code = compare_recordings(settings, (const char *const[]){files[0].paths[i], files[1].paths[i]});
        if (code > worst) worst = code;
    }
    answers_close(&settings->answers);
    return worst;
}

int cmd_diff(int argc, char **argv) {
    struct settings settings = {.fail_over = NULL, .verdicts = {.suite = "vram diff"}};
    const struct args_option options[] = {
        ARGS_JSON("folders: an array", &settings.json),
        {.name = "fail-over",
         .kind = ARGS_STRING,
         .value = "SIZE|N%",
         .help = "exit code 1 if the second exceeds the first by more than this, e.g. 100MiB or 5%",
         .target = &settings.fail_over},
        VERDICT_OPTIONS(&settings.verdicts),
        MOMENT_OPTIONS(&settings.moment),
        GROUP_OPTIONS(&settings.moment),
        INPUT_OPTION,
        SKIP_OPTION,
        {.name = NULL},
    };
    const struct args_command command = {
        .name = "diff",
        .usage = "[options] BEFORE AFTER",
        .summary = "Compares the live memory at the peaks of two recordings by call site: what grew, what is new, what is gone.\nCall "
                   "sites whose line moved are matched by file and function. Two folders are compared rank by rank.",
        .examples = "  vram diff yesterday.pickle today.pickle\n"
                    "  vram diff --fail-over 2% --github base.vram pull-request.vram   # in CI\n"
                    "  vram diff --by category rank0.pickle rank7.pickle\n",
        .options = options,
        .min_operands = 2,
        .max_operands = 2,
        .operand = "two recordings (BEFORE and AFTER)",
    };
    int count, code;
    if (!args_parse(&command, argc, argv, &count, &code)) return code;
    if (!settle_fail_over(&settings) || !moment_options(&settings.moment, &settings.options)) return CLI_USAGE;
    if (settings.fail_over == NULL && (settings.verdicts.junit != NULL || settings.verdicts.github))
        return ui_usage("diff", "vram: --junit and --github need --fail-over");
    struct input_files files[2];
    code = input_files_open(argv + 1, 1, &files[0]);
    if (code != CLI_OK) return code;
    code = input_files_open(argv + 2, 1, &files[1]);
    if (code == CLI_OK) {
        code = compare_all(&settings, files);
        input_files_close(&files[1]);
    }
    input_files_close(&files[0]);
    return verdicts_end(&settings.verdicts, code);
}
