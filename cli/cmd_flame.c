// vram flame: draws the call stacks of live memory, or prints them as lines.
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "args.h"
#include "input.h"
#include "shared_options.h"
#include "output.h"
#include "ui.h"

int cmd_flame(int argc, char **argv);

struct settings {
    struct moment_settings moment;
    const char *output, *before;
    bool bottom_up, all_frames;
};

static bool wants_lines(const char *path) {
    const size_t length = output_plain_length(path);
    const char ending[] = ".folded";
    return length >= sizeof ending - 1 && memcmp(path + length - (sizeof ending - 1), ending, sizeof ending - 1) == 0;
}

static int draw_flames(const struct settings *settings, const struct vram_profile_options *options, const struct vram_recording *recording,
                       const struct vram_recording *before, const char *title) {
    struct vram_error error = {.status = VRAM_OK, .offset = VRAM_NO_OFFSET};
    struct output *output = output_open(settings->output);
    if (output == NULL) return CLI_BAD_INPUT;
    const enum vram_status status = wants_lines(settings->output)
                                        ? vram_flame_folded(recording, before, options, output_write, output, &error)
                                        : vram_flame_svg(recording, before, options, title, output_write, output, &error);
    return output_end(output, status, title, &error);
}

static bool is_folder(const char *path) {
    struct stat facts;
    return stat(path, &facts) == 0 && S_ISDIR(facts.st_mode);
}

static int run_file(const struct settings *settings, const struct vram_profile_options *options, const char *path) {
    struct vram_recording *recording = NULL, *before = NULL;
    struct input_facts facts, before_facts;
    int code = input_named_recording(path, &recording, &facts);
    if (code == CLI_OK && settings->before != NULL) code = input_named_recording(settings->before, &before, &before_facts);
    if (code == CLI_OK) code = draw_flames(settings, options, recording, before, input_base_name(facts.name));
    vram_recording_destroy(before);
    vram_recording_destroy(recording);
    return code;
}

int cmd_flame(int argc, char **argv) {
    struct settings settings = {.output = NULL};
    const struct args_option options[] = {
        {.name = "output",
         .letter = 'o',
         .kind = ARGS_STRING,
         .value = "FILE",
         .help = "the file to write: a picture (.svg) or folded stacks (.folded), optionally with .gz, .zst or .xz; - for standard output",
         .target = &settings.output},
        {.name = "before",
         .kind = ARGS_STRING,
         .value = "FILE",
         .help = "show the difference from this recording: orange grew, blue shrank, grey is unchanged",
         .target = &settings.before},
        {.name = "all-frames",
         .kind = ARGS_FLAG,
         .help = "include frames of PyTorch, interpreters and allocators",
         .target = &settings.all_frames},
        {.name = "bottom-up", .kind = ARGS_FLAG, .help = "innermost frames first", .target = &settings.bottom_up},
        MOMENT_OPTIONS(&settings.moment),
        INPUT_OPTION,
        SKIP_OPTION,
        {.name = NULL},
    };
    const struct args_command command = {
        .name = "flame",
        .usage = "[options] -o FILE RECORDING",
        .summary = "Draws the call stacks of the memory that is live at the peak, or at another moment, as a flame graph: one SVG\nfile "
                   "that zooms and searches in any browser, without a network.",
        .examples = "  vram flame snapshot.pickle -o peak.svg\n"
                    "  vram flame snapshot.pickle --at end -o end.svg\n"
                    "  vram flame new.pickle --before old.pickle -o grown.svg\n"
                    "  vram flame snapshot.pickle -o peak.folded && flamegraph.pl peak.folded\n",
        .options = options,
        .min_operands = 1,
        .max_operands = 1,
        .operand = ARGS_RECORDING,
    };
    int count, code;
    struct vram_profile_options profile;
    if (!args_parse(&command, argc, argv, &count, &code)) return code;
    if (settings.output == NULL) return ui_usage("flame", "vram: -o FILE is required, for example -o peak.svg");
    if (!moment_options(&settings.moment, &profile)) return CLI_USAGE;
    profile.bottom_up = settings.bottom_up;
    profile.all_frames = settings.all_frames;
    if (is_folder(argv[1])) {
        ui_say("vram: %s is a folder; a flame graph shows one recording. `vram report --summary %s` shows which one stands out", argv[1],
               argv[1]);
        return CLI_BAD_INPUT;
    }
    if (output_is_input(settings.output, argv[1])) {
        ui_say("vram: %s: the output would replace the input", settings.output);
        return CLI_USAGE;
    }
    return run_file(&settings, &profile, argv[1]);
}
