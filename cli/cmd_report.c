// vram report: explains a recording.
#include <stdio.h>
#include <string.h>

#include "args.h"
#include "input.h"
#include "input_files.h"
#include "shared_options.h"
#include "report_sections.h"
#include "ui.h"
#include "verdicts.h"
#include "vram/oom.h"
#include "vram/profile.h"
#include "vram/recording.h"
#include "vram/replay.h"
#include "vram/report.h"

int cmd_report(int argc, char **argv);

// Time limit per device for comparing with paged:True. The comparison is bounded by events (vram/replay.h); this only stops histories with
// slow events, and is wide enough that a busy machine does not change a report.
#define PAGED_PATIENCE_NS UINT64_C(60000000000)

struct settings {
    bool json, check, no_cure, plain_sites, summary, full;
    bool many; // several recordings: replaying each to find the savings of paged memory takes too long
    uint64_t top, memory_bytes;
    unsigned list;            // enum vram_listing; VRAM_LISTING_COUNT means the report
    uint64_t fail_over_bytes; // UINT64_MAX if not given
    struct verdicts verdicts;
    struct report_profile profile;
    struct report_ranks *ranks; // for text reports
};

static bool has_oom(const struct vram_report *report) {
    for (size_t i = 0; i < report->device_count; i++) {
        if (report->devices[i].oom_count != 0) return true;
    }
    return false;
}

// Returns the device memory needed: the reserved peak, or the allocated peak if the recording has no reserved bytes.
static uint64_t needed_bytes(const struct vram_report_device *device, bool *is_reserved) {
    *is_reserved = device->reserved.peak_bytes > 0 && !device->whole_program;
    return *is_reserved ? (uint64_t)device->reserved.peak_bytes : device->allocated.peak.bytes;
}

static void judge_peak(struct settings *settings, const char *name, const struct vram_report *report) {
    char needed[UI_SIZE_CAPACITY], limit[UI_SIZE_CAPACITY], most[UI_SIZE_CAPACITY], title[1024];
    for (size_t i = 0; i < report->device_count; i++) {
        const struct vram_report_device *device = &report->devices[i];
        if (device->is_host) continue;
        bool is_reserved;
        const uint64_t bytes = needed_bytes(device, &is_reserved);
        const struct vram_report_live *live = &device->allocated;
        (void)snprintf(title, sizeof title, report->device_count == 1 ? "%s" : "%s, device %u", name, (unsigned)device->device);
        verdicts_add(&settings->verdicts, title, bytes <= settings->fail_over_bytes, "%s %s at the peak, limit %s%s%s%s%s",
                     ui_size(bytes, needed), is_reserved ? "reserved" : "allocated", ui_size(settings->fail_over_bytes, limit),
                     live->site_count == 0 ? "" : "; largest call site: ", live->site_count == 0 ? "" : live->sites[0].name,
                     live->site_count == 0 ? "" : ", ", live->site_count == 0 ? "" : ui_size(live->sites[0].bytes, most));
    }
}

// One file's report, and the replays that find what would have helped.
struct reported {
    const struct settings *settings;
    struct vram_recording *recording;
    struct vram_report *report;
    struct vram_cures *cures;
    struct vram_paged_savings *savings;
    struct vram_report_source source;
};

// Returns the replays for the report. If no replay accepts the history, the report is printed without them.
static const struct vram_report_source *replay_source(void *user) {
    struct reported *reported = user;
    struct vram_report_source *source = &reported->source;
    (void)fflush(stdout); // show the facts first: the replays are slow
    if (has_oom(reported->report) && vram_cures_find(reported->recording, reported->report, &reported->cures, NULL) == VRAM_OK) {
        source->cures = reported->cures->cures;
        source->cure_count = reported->cures->count;
    }
    if (!reported->settings->many &&
        vram_paged_savings_find(reported->recording, reported->report, PAGED_PATIENCE_NS, &reported->savings, NULL) == VRAM_OK) {
        source->savings = reported->savings->savings;
        source->saving_count = reported->savings->count;
    }
    return source;
}

static enum vram_status print_report(struct reported *reported, struct answers *answers) {
    const struct vram_style style = ui_style();
    if (!reported->settings->json) return vram_report_text(reported->report, &reported->source, &style, answers_write, answers);
    if (reported->source.replay != NULL) (void)replay_source(reported);
    return vram_report_json(reported->report, &reported->source, answers_write, answers);
}

static void release_reported(struct reported *reported) {
    vram_cures_destroy(reported->cures);
    vram_paged_savings_destroy(reported->savings);
    vram_report_destroy(reported->report);
}

static int report_opened(const struct input_opened *opened, void *context) {
    struct settings *settings = context;
    const char *path = opened->facts.name;
    struct reported reported = {.settings = settings, .recording = opened->recording};
    struct vram_error error = {.status = VRAM_OK, .offset = VRAM_NO_OFFSET};
    const struct vram_report_options options = {.top = settings->top > 10000 ? 10000 : (unsigned)settings->top,
                                                .memory_bytes = settings->memory_bytes,
                                                .plain_sites = settings->plain_sites};
    enum vram_status status = vram_report_create(opened->recording, &options, &reported.report, &error);
    if (status != VRAM_OK) return ui_error(path, &error);
    reported.source = (struct vram_report_source){.file = settings->json ? input_base_name(path) : path, .bytes = opened->facts.bytes};
    if (!settings->no_cure) {
        reported.source.replay = replay_source;
        reported.source.replay_user = &reported;
    }
    if (!settings->summary) status = print_report(&reported, opened->answers);
    if (!settings->json && status == VRAM_OK) report_ranks_add(settings->ranks, path, reported.report);
    if (settings->fail_over_bytes != UINT64_MAX) judge_peak(settings, reported.source.file, reported.report);
    const bool found = settings->check && has_oom(reported.report);
    release_reported(&reported);
    return ui_result(status, found, path, NULL);
}

// Prints a list from the recording.
static int list_opened(const struct input_opened *opened, void *context) {
    const struct settings *settings = context;
    const enum vram_listing listing = (enum vram_listing)settings->list;
    const char *path = opened->facts.name;
    const struct vram_style style = ui_style();
    struct vram_error error = {.status = VRAM_OK, .offset = VRAM_NO_OFFSET};
    const enum vram_status status =
        settings->json ? vram_listing_json(opened->recording, listing, input_base_name(path), answers_write, opened->answers, &error)
                       : vram_listing_text(opened->recording, listing, &style, answers_write, opened->answers, &error);
    return ui_result(status, false, path, &error);
}

// With this many files or more, full reports are too long to read.
enum { FILES_OF_SUMMARY = 9 };

// Chooses how much to report about each recording, by their number.
static void settle_count(struct settings *settings, const struct input_files *files) {
    settings->many = files->count > 1;
    settings->summary = !settings->json && !settings->full && files->count > 1 && (settings->summary || files->count >= FILES_OF_SUMMARY);
}

static int report_each(struct settings *settings, char **operands, int count) {
    struct input_files files;
    const int code = input_files_open(operands, count, &files);
    if (code != CLI_OK) return code;
    const bool lists = settings->list < VRAM_LISTING_COUNT;
    if (!lists) settle_count(settings, &files);
    struct report_ranks ranks = {.rows = NULL, .only_table = settings->summary};
    settings->ranks = &ranks;
    const struct input_work work = {
        .answer = lists ? list_opened : report_opened, .context = settings, .json = settings->json, .between = "\n\n"};
    const int result = input_files_run(&files, &work);
    report_ranks_end(&ranks);
    input_files_close(&files);
    return result;
}

int cmd_report(int argc, char **argv) {
    static const char *const listings[] = {"stats", "segments", "memory", "trace", NULL};
    struct settings settings = {.top = 10, .list = VRAM_LISTING_COUNT, .fail_over_bytes = UINT64_MAX, .verdicts = {.suite = "vram report"}};
    const struct args_option options[] = {
        ARGS_JSON("several files: an array", &settings.json),
        {.name = "top",
         .letter = 'n',
         .kind = ARGS_COUNT,
         .value = "N",
         .help = "rows of the lists of call sites (default 10)",
         .target = &settings.top},
        {.name = "memory",
         .letter = 'm',
         .kind = ARGS_SIZE,
         .value = "SIZE",
         .help = "memory of each device, e.g. 80GiB, if the recording lacks it; adds what other processes held",
         .target = &settings.memory_bytes},
        {.name = "no-cure",
         .kind = ARGS_FLAG,
         .help =
             "do not replay the history with other settings: show no cure after an out-of-memory error and no comparison with paged:True",
         .target = &settings.no_cure},
        {.name = "summary",
         .kind = ARGS_FLAG,
         .help = "print only the table of several files: which stands out, which ran out of memory and why (default from 9 files)",
         .target = &settings.summary},
        {.name = "full", .kind = ARGS_FLAG, .help = "print the report of each file, however many there are", .target = &settings.full},
        {.name = "plain-sites",
         .kind = ARGS_FLAG,
         .help = "choose call sites as other tools do: the innermost Python frame outside torch, else the innermost frame",
         .target = &settings.plain_sites},
        {.name = "check", .kind = ARGS_FLAG, .help = "exit code 1 if the recording has an out-of-memory error", .target = &settings.check},
        {.name = "fail-over",
         .kind = ARGS_SIZE,
         .value = "SIZE",
         .help = "exit code 1 if a device held more than this, e.g. 22GiB: reserved memory, or allocated memory if that is not known",
         .target = &settings.fail_over_bytes},
        VERDICT_OPTIONS(&settings.verdicts),
        {.name = "list",
         .kind = ARGS_CHOICE,
         .value = "stats|segments|memory|trace",
         .help = "row by row, as PyTorch's _memory_viz does; memory: folded stacks",
         .target = &settings.list,
         .choices = listings},
        REPORT_PROFILE_OPTIONS(&settings.profile),
        INPUT_OPTION,
        SKIP_OPTION,
        {.name = NULL},
    };
    const struct args_command command = {
        .name = "report",
        .usage = "[options] FILE|FOLDER...",
        .summary = "Explains a recording of GPU memory: how high memory went and when, where the reserved bytes are, which call\n"
                   "sites held the peak, and what the recording lacks. After an out-of-memory error: why it failed, and which setting\n"
                   "would have made it fit, found by replaying the history on a simulated device.\n"
                   "Sizes of allocations are what the program requested, so peaks are below torch.cuda.max_memory_allocated(),\n"
                   "which counts whole blocks.",
        .examples = "  vram report snapshot.pickle\n"
                    "  vram report --top 30 snapshot.pickle.zst\n"
                    "  vram report --site --at end snapshot.pickle   # what holds the remaining memory\n"
                    "  vram report --by role snapshot.pickle         # parameters, gradients, activations, ...\n"
                    "  vram report --by category job/\n"
                    "  vram report --timeline snapshot.pickle\n"
                    "  ssh node cat snapshot.pickle | vram report -\n"
                    "  vram report --fail-over 22GiB --junit memory.xml job/   # in CI\n"
                    "  vram report --json job/ | jq '.[].devices[].allocated.peak_bytes'\n",
        .options = options,
        .min_operands = 1,
        .max_operands = -1,
        .operand = ARGS_RECORDING,
    };
    int count, code;
    if (!args_parse(&command, argc, argv, &count, &code)) return code;
    if (settings.top == 0) settings.top = 1;
    settings.profile.json = settings.json;
    settings.profile.moment.top = settings.top;
    if (!report_profile_settle(&settings.profile)) return CLI_USAGE;
    const bool lists = settings.list < VRAM_LISTING_COUNT || settings.profile.wanted;
    if (settings.fail_over_bytes == UINT64_MAX ? settings.verdicts.junit != NULL || settings.verdicts.github : lists)
        return ui_usage("report", "vram: %s",
                        lists ? "--fail-over works with the report, not with a list" : "--junit and --github need --fail-over");
    if (settings.profile.wanted) return report_profiles(&settings.profile, argv + 1, count);
    if (settings.summary && (settings.full || settings.json))
        return ui_usage("report", "vram: --summary cannot be combined with --full or --json");
    code = report_each(&settings, argv + 1, count);
    return verdicts_end(&settings.verdicts, code);
}
