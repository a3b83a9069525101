// vram leaks: finds memory that leaks or grows from step to step, or over the hours of a server.
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
    uint64_t every, memory_bytes;
    bool json, serving;
};

static int find_leaks(const struct input_opened *opened, void *context) {
    const struct settings *settings = context;
    const struct vram_profile_options *options = &settings->options;
    struct vram_error error = {.status = VRAM_OK, .offset = VRAM_NO_OFFSET};
    const char *name = input_base_name(opened->facts.name);
    const struct vram_style style = ui_style();
    size_t leaks = 0;
    const enum vram_status status =
        settings->json ? (settings->serving ? vram_slow_leaks_json : vram_leaks_json)(opened->recording, options, name, answers_write,
                                                                                      opened->answers, &leaks, &error)
                       : (settings->serving ? vram_slow_leaks_text : vram_leaks_text)(opened->recording, options, name, &style,
                                                                                      answers_write, opened->answers, &leaks, &error);
    return ui_result(status, leaks != 0, name, &error);
}

// Refuses options of the other kind of leak.
static bool choose_options(const struct settings *settings) {
    if (settings->serving &&
        (settings->step != NULL || settings->every != 0 || settings->moment.by != NULL || settings->moment.regex != NULL))
        ui_say("vram leaks: --serving needs no steps and groups by call site; leave out --step, --every, --by and --regex");
    else if (!settings->serving && settings->memory_bytes != 0)
        ui_say("vram leaks: --memory needs --serving");
    else
        return true;
    return false;
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
        {.name = "every", .kind = ARGS_COUNT, .value = "N", .help = "a step is this many events", .target = &settings.every, .least = 1},
        {.name = "serving",
         .kind = ARGS_FLAG,
         .help = "for a recording of a server over hours, without steps: find what grows slowly",
         .target = &settings.serving},
        {.name = "memory",
         .letter = 'm',
         .kind = ARGS_SIZE,
         .value = "SIZE",
         .help = "with --serving: device memory, e.g. 80GiB, to predict when it runs out",
         .target = &settings.memory_bytes,
         .least = 1},
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
                   "grow.\nWith --serving: call sites whose old memory grows over hours. Exit code 1 if something leaks.",
        .examples = "  vram leaks snapshot.pickle\n"
                    "  vram leaks --step train_step job/          # every rank\n"
                    "  vram leaks --serving --memory 80GiB server.vram\n"
                    "  vram leaks --json run.vram | jq '.groups[0]'\n",
        .options = options,
        .min_operands = 1,
        .max_operands = -1,
        .operand = ARGS_RECORDING,
    };
    int count, code;
    if (!args_parse(&command, argc, argv, &count, &code)) return code;
    if (!moment_options(&settings.moment, &settings.options)) return CLI_USAGE;
    if (!choose_options(&settings)) return CLI_USAGE;
    settings.options.step = settings.step;
    settings.options.memory_bytes = settings.memory_bytes;
    settings.options.every_events = settings.every;
    const struct input_work work = {.answer = find_leaks, .context = &settings, .json = settings.json, .between = "\n"};
    return run_command(&work, argv + 1, count);
}
