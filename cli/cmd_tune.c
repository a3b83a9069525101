// vram tune: which settings would have needed the least memory.
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "args.h"
#include "input.h"
#include "input_files.h"
#include "ui.h"
#include "vram/tune.h"

int cmd_tune(int argc, char **argv);

static const char *const starts[] = {"cold", "recorded", NULL};
static const enum vram_whatif_start start_values[] = {VRAM_WHATIF_COLD, VRAM_WHATIF_RECORDED};
static const char *const profiles[] = {"cheap", "dear", NULL};
static const enum vram_sim_profile profile_values[] = {VRAM_SIM_CHEAP, VRAM_SIM_DEAR};

struct settings {
    uint64_t memory_bytes, threads;
    unsigned start, profile;
    bool json, each;
};

// One line on a terminal's standard error, written over itself.
static void show_progress(uint64_t done, uint64_t total, void *user) {
    (void)user;
    fprintf(stderr, "\r%3" PRIu64 " of %" PRIu64 " settings tried", done, total);
    fflush(stderr);
}

static void clear_progress(void) {
    if (isatty(STDERR_FILENO)) fprintf(stderr, "\r%*s\r", 40, "");
}

static int tune(const struct vram_recording *const *recordings, size_t count, const char *name, const struct settings *settings,
                const char *before) {
    const struct vram_tune_options options = {.memory_bytes = settings->memory_bytes,
                                              .threads = (unsigned)settings->threads,
                                              .start = start_values[settings->start],
                                              .profile = profile_values[settings->profile],
                                              .progress = isatty(STDERR_FILENO) ? show_progress : NULL};
    struct vram_tune_result *result;
    struct vram_error error = {.status = VRAM_OK, .offset = VRAM_NO_OFFSET};
    enum vram_status status = vram_tune(recordings, count, &options, &result, &error);
    clear_progress();
    if (status != VRAM_OK) return ui_error(name, &error);
    const struct vram_style style = ui_style();
    printf("%s", before);
    status = settings->json ? vram_tune_json(result, name, ui_write, NULL) : vram_tune_text(result, name, &style, ui_write, NULL);
    const bool fits = result->settings[result->best].fits && result->settings[result->best].needed_bytes != 0;
    vram_tune_result_destroy(result);
    return status != VRAM_OK ? CLI_BAD_INPUT : fits ? CLI_OK : CLI_FINDING;
}

static int tune_together(char **paths, int count, const struct settings *settings) {
    struct vram_recording **recordings = calloc((size_t)count, sizeof *recordings);
    int code = recordings == NULL ? CLI_BAD_INPUT : CLI_OK, opened = 0;
    struct input_facts facts = {0};
    for (; opened < count && code == CLI_OK; opened += code == CLI_OK) code = input_recording(paths[opened], &recordings[opened], &facts);
    char name[64];
    snprintf(name, sizeof name, "%d recordings", count);
    if (code == CLI_OK)
        code = tune((const struct vram_recording *const *)recordings, (size_t)count, count == 1 ? facts.name : name, settings, "");
    for (int i = 0; i < opened; i++) vram_recording_destroy(recordings[i]);
    free(recordings);
    if (settings->json && code <= CLI_FINDING) printf("\n");
    return code;
}

static int tune_each(char **paths, int count, const struct settings *settings) {
    int result = CLI_OK, printed = 0;
    if (settings->json) printf("[\n");
    for (int i = 0; i < count; i++) {
        struct vram_recording *recording;
        struct input_facts facts;
        int code = input_recording(paths[i], &recording, &facts);
        if (code == CLI_OK) {
            const struct vram_recording *const one = recording;
            code = tune(&one, 1, facts.name, settings, printed == 0 ? "" : settings->json ? ",\n" : "\n");
            vram_recording_destroy(recording);
        }
        if (code > result) result = code;
        printed += code <= CLI_FINDING;
    }
    if (settings->json) printf("\n]\n");
    return result;
}

int cmd_tune(int argc, char **argv) {
    struct settings settings = {0};
    const struct args_option options[] = {
        {.name = "memory",
         .letter = 'm',
         .kind = ARGS_SIZE,
         .value = "SIZE",
         .help = "memory of each device, e.g. 24GiB: will it fit, and with what?",
         .target = &settings.memory_bytes},
        {.name = "each",
         .kind = ARGS_FLAG,
         .help = "a search for each recording; otherwise several are ranks of one job",
         .target = &settings.each},
        {.name = "start",
         .kind = ARGS_CHOICE,
         .value = "cold|recorded",
         .help = "allocate first what lived before the history (default), or begin with the recorded segments",
         .target = &settings.start,
         .choices = starts},
        {.name = "profile",
         .kind = ARGS_CHOICE,
         .value = "cheap|dear",
         .help = "what mapping memory costs on the virtual clock (default cheap)",
         .target = &settings.profile,
         .choices = profiles},
        {.name = "threads",
         .letter = 'j',
         .kind = ARGS_COUNT,
         .value = "N",
         .help = "replays at a time (default: one per processor)",
         .target = &settings.threads},
        {.name = "json",
         .kind = ARGS_FLAG,
         .help = "one JSON object (with --each: an array); keys in docs/json.md",
         .target = &settings.json},
        {.name = NULL},
    };
    const struct args_command command = {
        .name = "tune",
        .usage = "[options] FILE|FOLDER...",
        .summary = "Replays a recording under many settings of PYTORCH_CUDA_ALLOC_CONF on a simulated device and says which one needs\n"
                   "the least memory, as a line to paste. With --memory: whether it fits, and with what. Several recordings are the\n"
                   "ranks of one job: one setting for all. Exit code 1 when nothing fits.",
        .examples = "  vram tune snapshot.pickle\n"
                    "  vram tune --memory 24GiB snapshot.pickle\n"
                    "  vram tune --json job/ | jq -r .best.conf\n",
        .options = options,
        .min_operands = 1,
        .max_operands = -1,
        .operand = "a recording (FILE, or - for standard input)",
    };
    int count, code;
    if (!args_parse(&command, argc, argv, &count, &code)) return code;
    struct input_files files;
    code = input_files_open(argv + 1, count, &files);
    if (code != CLI_OK) return code;
    code = settings.each ? tune_each(files.paths, files.count, &settings) : tune_together(files.paths, files.count, &settings);
    input_files_close(&files);
    return code;
}
