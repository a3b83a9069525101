// vram leaks: finds memory that leaks or grows from step to step.
#include <stdio.h>
#include <string.h>

#include "args.h"
#include "input.h"
#include "input_files.h"
#include "shared_options.h"
#include "ui.h"

int cmd_leaks(int argc, char **argv);

struct settings {
    struct moment_settings moment;
    struct vram_profile_options options;
    const char *step;
    uint64_t every;
    bool json;
};

static int find_leaks(const struct input_opened *opened, void *context) {
    const struct settings *settings = context;
    const struct vram_profile_options *options = &settings->options;
    struct vram_error error = {.status = VRAM_OK, .offset = VRAM_NO_OFFSET};
    const char *name = input_base_name(opened->facts.name);
    const struct vram_style style = ui_style();
    size_t leaks = 0;
    const enum vram_status status =
        settings->json ? vram_leaks_json(opened->recording, options, name, answers_write, opened->answers, &leaks, &error)
                       : vram_leaks_text(opened->recording, options, name, &style, answers_write, opened->answers, &leaks, &error);
    return ui_result(status, leaks != 0, name, &error);
}

int cmd_leaks(int argc, char **argv) {
    struct settings settings = {.step = NULL};
    const struct args_option options[] = {
        ARGS_JSON("several files: an array", &settings.json),
        {.name = "step",
         .kind = ARGS_STRING,
         .value = "NAME",
         .help = "a step begins at each mark of this name (default: detected; a wrong name lists the marks)",
         .target = &settings.step},
        {.name = "every", .kind = ARGS_COUNT, .value = "N", .help = "a step is this many events", .target = &settings.every},
        DEVICE_OPTION(&settings.moment),
        GROUP_OPTIONS(&settings.moment),
        INPUT_OPTION,
        SKIP_OPTION,
        {.name = NULL},
    };
    const struct args_command command = {
        .name = "leaks",
        .usage = "[options] FILE|FOLDER...",
        .summary = "Finds leaks: call sites whose allocations outlive their step and accumulate, step after step, until the end. "
                   "Steps\ncome from the program's marks or from repeating allocations. Says if steps are unclear or if only requests "
                   "grow.\nExit code 1 if something leaks.",
        .examples = "  vram leaks snapshot.pickle\n"
                    "  vram leaks --step train_step job/          # every rank\n"
                    "  vram leaks --json run.vram | jq '.groups[0]'\n",
        .options = options,
        .min_operands = 1,
        .max_operands = -1,
        .operand = ARGS_RECORDING,
    };
    int count, code;
    if (!args_parse(&command, argc, argv, &count, &code)) return code;
    if (!moment_options(&settings.moment, &settings.options)) return CLI_USAGE;
    settings.options.step = settings.step;
    settings.options.every_events = settings.every;
    const struct input_work work = {.answer = find_leaks, .context = &settings, .json = settings.json, .between = "\n"};
    return run_command(&work, argv + 1, count);
}
