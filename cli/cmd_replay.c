// vram replay: drives a recording through the real allocator.
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "args.h"
#include "input.h"
#include "input_files.h"
#include "output.h"
#include "ui.h"
#include "shared_options.h"
#include "vram/options.h"
#include "vram/replay.h"

int cmd_replay(int argc, char **argv);

struct settings {
    bool exact;
    bool json;
    bool ignore_releases;
    struct args_list confs;
    struct whatif_settings world;
    uint64_t device; // NO_DEVICE: all devices
    const char *placements;
};

#define NO_DEVICE UINT64_MAX

static const char *shown_name(const struct settings *settings, const char *path) { return settings->json ? input_base_name(path) : path; }

static int write_placements(const char *path, const struct vram_exact_result *result) {
    struct output *output = output_open(path);
    if (output == NULL) return CLI_BAD_INPUT;
    const enum vram_status status = vram_exact_placements(result, output_write, output);
    const int code = output_close(output, status == VRAM_OK); // reports a failed write
    return code != CLI_OK || status == VRAM_OK ? code : exit_code_of(status);
}

static int replay_exact(const struct vram_recording *recording, const char *path, const struct settings *settings,
                        struct answers *answers) {
    struct vram_exact_result *result;
    struct vram_error error = {.status = VRAM_OK, .offset = VRAM_NO_OFFSET};
    const struct vram_exact_options options = {.keep_placements = settings->placements != NULL,
                                               .conf = settings->confs.count == 0 ? NULL : settings->confs.values[0]};
    enum vram_status status = vram_replay_exact(recording, &options, &result, &error);
    if (status != VRAM_OK) return ui_error(path, &error);
    const struct vram_style style = ui_style();
    const char *name = shown_name(settings, path);
    status = settings->json ? vram_exact_json(result, name, answers_write, answers)
                            : vram_exact_text(result, name, &style, answers_write, answers);
    int code = status != VRAM_OK || settings->placements == NULL ? CLI_OK : write_placements(settings->placements, result);
    if (code == CLI_OK) code = ui_result(status, !result->agrees, path, NULL);
    vram_exact_result_destroy(result);
    return code;
}

// Runs every --conf. The results are printed in columns.
static int run_confs(const struct vram_recording *recording, const char *path, const struct settings *settings,
                     struct vram_whatif_result **results, size_t count) {
    for (size_t i = 0; i < count; i++) {
        const struct vram_whatif_options options = {.conf = settings->confs.count == 0 ? NULL : settings->confs.values[i],
                                                    .memory_bytes = settings->world.memory_bytes,
                                                    .start = whatif_start(&settings->world),
                                                    .profile = whatif_profile(&settings->world),
                                                    .ignore_releases = settings->ignore_releases,
                                                    .one_device = settings->device != NO_DEVICE,
                                                    .device = (uint32_t)settings->device};
        struct vram_error error = {.status = VRAM_OK, .offset = VRAM_NO_OFFSET};
        const enum vram_status status = vram_replay_whatif(recording, &options, &results[i], &error);
        if (status != VRAM_OK) return ui_error(path, &error);
        if (settings->device != NO_DEVICE && (results[i]->device_count == 0 || settings->device > UINT32_MAX)) {
            ui_say("vram: %s has no device %" PRIu64, path, settings->device);
            return CLI_USAGE;
        }
    }
    return CLI_OK;
}

static int replay_whatif(const struct vram_recording *recording, const char *path, const struct settings *settings,
                         struct answers *answers) {
    struct vram_whatif_result *results[ARGS_LIST_MAX] = {NULL};
    const struct vram_whatif_result *readable[ARGS_LIST_MAX];
    const size_t count = settings->confs.count == 0 ? 1 : settings->confs.count;
    int code = run_confs(recording, path, settings, results, count);
    if (code == CLI_OK) {
        const struct vram_style style = ui_style();
        const char *name = shown_name(settings, path);
        for (size_t i = 0; i < count; i++) readable[i] = results[i];
        const enum vram_status status = settings->json ? vram_whatif_json(readable, count, name, answers_write, answers)
                                                       : vram_whatif_text(readable, count, name, &style, answers_write, answers);
        bool finished = true;
        for (size_t i = 0; i < count; i++) finished = finished && results[i]->finished;
        code = ui_result(status, !finished, path, NULL);
    }
    for (size_t i = 0; i < count; i++) vram_whatif_result_destroy(results[i]);
    return code;
}

static int replay_opened(const struct input_opened *opened, void *context) {
    const struct settings *settings = context;
    return (settings->exact ? replay_exact : replay_whatif)(opened->recording, opened->facts.name, settings, opened->answers);
}

// Checks the option strings before any recording is read. Returns true if all are valid.
static bool read_confs(const struct args_list *confs) {
    for (size_t i = 0; i < confs->count; i++) {
        struct vram_error error = {.status = VRAM_OK};
        if (vram_options_check(confs->values[i], &error) == VRAM_OK) continue;
        ui_say("vram: --conf '%s': %s", confs->values[i], error.message);
        return false;
    }
    return true;
}

// Rejects options that conflict. Returns true if there are none.
static bool options_agree(const struct settings *settings, int files) {
    const char *wrong = NULL;
    if (settings->exact && settings->confs.count > 1) wrong = "--exact takes one --conf";
    if (settings->exact && (settings->world.memory_bytes != 0 || settings->ignore_releases))
        wrong = "--exact takes no --memory and no --ignore-releases";
    if (settings->exact && settings->device != NO_DEVICE) wrong = "--exact takes no --device: it checks all devices";
    if (!settings->exact && settings->placements != NULL) wrong = "--placements needs --exact";
    if (settings->placements != NULL && files > 1) wrong = "--placements takes one recording";
    if (wrong != NULL) (void)ui_usage("replay", "vram: %s", wrong);
    return wrong == NULL;
}

int cmd_replay(int argc, char **argv) {
    struct settings settings = {.device = NO_DEVICE};
    const struct args_option options[] = {
        {.name = "exact",
         .kind = ARGS_FLAG,
         .help = "check every address, segment, release and final block against the recording",
         .target = &settings.exact},
        {.name = "conf",
         .letter = 'c',
         .kind = ARGS_STRINGS,
         .value = "STRING",
         .help = "settings as in PYTORCH_CUDA_ALLOC_CONF, '' for the defaults; repeated: one run each (default: as recorded)",
         .target = &settings.confs},
        WHATIF_OPTIONS(&settings.world, " (default: unlimited)"),
        {.name = "device",
         .kind = ARGS_COUNT,
         .value = "N",
         .help = "replay only the history of this device (default: all of them, each with the size of --memory)",
         .target = &settings.device},
        {.name = "ignore-releases",
         .kind = ARGS_FLAG,
         .help = "ignore recorded releases of the cache",
         .target = &settings.ignore_releases},
        {.name = "placements",
         .kind = ARGS_STRING,
         .value = "OUT.csv",
         .help = "with --exact: write device,event_index,address of every allocation",
         .target = &settings.placements},
        ARGS_JSON("several files: an array", &settings.json),
        INPUT_OPTION,
        {.name = NULL},
    };
    const struct args_command command = {
        .name = "replay",
        .usage = "[options] FILE|FOLDER...",
        .summary = "Replays the history of a recording through the allocator on a simulated device. With --exact it checks that "
                   "every\naddress is as recorded. Otherwise it shows how the program would run with other settings or less memory.\nExit "
                   "code 1 for any difference, or if a device runs out of memory.",
        .examples = "  vram replay --exact snapshot.pickle\n"
                    "  vram replay --conf '' --conf expandable_segments:True snapshot.pickle\n"
                    "  vram replay --memory 24GiB --conf max_split_size_mb:128 snapshot.pickle\n",
        .options = options,
        .min_operands = 1,
        .max_operands = -1,
        .operand = ARGS_RECORDING,
    };
    int count, code;
    if (!args_parse(&command, argc, argv, &count, &code)) return code;
    if (!options_agree(&settings, count) || !read_confs(&settings.confs)) return CLI_USAGE;
    const struct input_work work = {.answer = replay_opened, .context = &settings, .json = settings.json, .between = "\n", .plain = true};
    return run_command(&work, argv + 1, count);
}
