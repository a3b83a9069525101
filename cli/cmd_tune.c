// vram tune: finds the settings that would have needed the least memory.
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "args.h"
#include "input.h"
#include "input_files.h"
#include "ui.h"
#include "shared_options.h"
#include "vram/replay.h"

int cmd_tune(int argc, char **argv);

struct settings {
    struct whatif_settings world;
    uint64_t threads;
    bool json, each;
};

// Overwrites one line on a terminal's standard error.
static void show_progress(uint64_t done, uint64_t total, void *user) {
    (void)user;
    fprintf(stderr, "\r%3" PRIu64 " of %" PRIu64 " settings tried", done, total);
    fflush(stderr);
}

static void clear_progress(void) {
    if (isatty(STDERR_FILENO)) fprintf(stderr, "\r%*s\r", 40, "");
}

static int tune_recordings(const struct vram_recording *const *recordings, size_t count, const char *name, const struct settings *settings,
                           struct answers *answers) {
    const struct vram_tune_options options = {.memory_bytes = settings->world.memory_bytes,
                                              .threads = (unsigned)settings->threads,
                                              .start = whatif_start(&settings->world),
                                              .profile = whatif_profile(&settings->world),
                                              .progress = isatty(STDERR_FILENO) ? show_progress : NULL};
    struct vram_tune_result *result;
    struct vram_error error = {.status = VRAM_OK, .offset = VRAM_NO_OFFSET};
    enum vram_status status = vram_tune(recordings, count, &options, &result, &error);
    clear_progress();
    if (status != VRAM_OK) return ui_error(name, &error);
    const struct vram_style style = ui_style();
    status = settings->json ? vram_tune_json(result, name, answers_write, answers)
                            : vram_tune_text(result, name, &style, answers_write, answers);
    const bool fits = result->settings[result->best].fits && result->settings[result->best].needed_bytes != 0;
    vram_tune_result_destroy(result);
    return ui_result(status, !fits, name, NULL);
}

static int tune_together(char **paths, int count, const struct settings *settings) {
    struct answers answers;
    struct vram_recording **recordings = calloc((size_t)count, sizeof *recordings);
    int code = recordings == NULL ? CLI_BAD_INPUT : CLI_OK, opened = 0;
    struct input_facts facts = {0};
    for (; opened < count && code == CLI_OK; opened += code == CLI_OK) code = input_recording(paths[opened], &recordings[opened], &facts);
    char name[64];
    snprintf(name, sizeof name, "%d recordings", count);
    answers_open(&answers, settings->json, false, "");
    answers_expect(&answers);
    if (code == CLI_OK)
        code = tune_recordings((const struct vram_recording *const *)recordings, (size_t)count, count == 1 ? facts.name : name, settings,
                               &answers);
    answers_close(&answers);
    for (int i = 0; i < opened; i++) vram_recording_destroy(recordings[i]);
    free(recordings);
    return code;
}

static int tune_opened(const struct input_opened *opened, void *context) {
    const struct vram_recording *const one = opened->recording;
    return tune_recordings(&one, 1, opened->facts.name, context, opened->answers);
}

int cmd_tune(int argc, char **argv) {
    struct settings settings = {0};
    const struct args_option options[] = {
        WHATIF_OPTIONS(&settings.world, ": does it fit, and with which setting?"),
        {.name = "each",
         .kind = ARGS_FLAG,
         .help = "search for each recording separately; otherwise several recordings are ranks of one job",
         .target = &settings.each},
        {.name = "threads",
         .letter = 'j',
         .kind = ARGS_COUNT,
         .value = "N",
         .help = "number of parallel replays (default: one per processor)",
         .target = &settings.threads},
        ARGS_JSON("with --each several recordings: an array", &settings.json),
        INPUT_OPTION,
        {.name = NULL},
    };
    const struct args_command command = {
        .name = "tune",
        .usage = "[options] FILE|FOLDER...",
        .summary = "Replays a recording with many settings of PYTORCH_CUDA_ALLOC_CONF on a simulated device and shows which one needs\nthe "
                   "least memory, as a line to paste. With --memory: whether it fits, and with which setting. Several recordings "
                   "are\nranks of one job and get one setting. Exit code 1 if nothing fits.",
        .examples = "  vram tune snapshot.pickle\n"
                    "  vram tune --memory 24GiB snapshot.pickle\n"
                    "  vram tune --json job/ | jq -r .best.conf\n",
        .options = options,
        .min_operands = 1,
        .max_operands = -1,
        .operand = ARGS_RECORDING,
    };
    int count, code;
    if (!args_parse(&command, argc, argv, &count, &code)) return code;
    const struct input_work work = {.answer = tune_opened, .context = &settings, .json = settings.json, .between = "\n", .plain = true};
    if (settings.each) return run_command(&work, argv + 1, count);
    struct input_files files;
    code = input_files_open(argv + 1, count, &files);
    if (code != CLI_OK) return code;
    code = tune_together(files.paths, files.count, &settings);
    input_files_close(&files);
    return code;
}
