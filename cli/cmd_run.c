// vram run's summary, printed after the program has ended.

#define _POSIX_C_SOURCE 200809L // getdelim()
#define _GNU_SOURCE             // mkostemp()

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "args.h"
#include "program.h"
#include "run_environment.h"
#include "ui.h"
#include "vram/driver.h"
#include "vram/oom.h"
#include "vram/options.h"
#include "vram/recording.h"
#include "vram/report.h"

#define PATH_CAPACITY 4096

static bool write_error(void *user, const char *bytes, size_t length) {
    (void)user;
    return fwrite(bytes, 1, length, stderr) == length;
}

static void print_devices(const struct vram_recording *recording, const struct vram_report *report) {
    char size[UI_SIZE_CAPACITY];
    uint64_t events = 0;
    for (size_t i = 0; i < report->device_count; i++) events += report->devices[i].events;
    fprintf(stderr, ", %" PRIu64 " event%s", events, events == 1 ? "" : "s");
    for (size_t i = 0; i < report->device_count; i++) {
        const struct vram_report_device *device = &report->devices[i];
        fprintf(stderr, i == 0 ? "; peak " : ", ");
        fprintf(stderr, "%s", ui_size(device->allocated.peak.bytes, size));
        if (vram_recording_device_is_host(recording, device->device))
            fprintf(stderr, " of pinned host memory");
        else
            fprintf(stderr, " on device %" PRIu32, device->device);
        if (device->oom_count != 0) fprintf(stderr, ", out of memory %zu time%s", device->oom_count, device->oom_count == 1 ? "" : "s");
    }
    fprintf(stderr, "\n");
}

static bool has_oom(const struct vram_report *report) {
    for (size_t i = 0; i < report->device_count; i++)
        if (report->devices[i].oom_count != 0) return true;
    return false;
}

static void print_report(const char *path, struct vram_recording *recording) {
    struct vram_report *report = NULL;
    struct vram_cures *cures = NULL;
    // Names machine code by this machine's modules. If memory runs out, the code stays unnamed.
    (void)!vram_recording_symbolize(recording, NULL, NULL);
    if (vram_report_create(recording, NULL, &report, NULL) != VRAM_OK) return;
    // Without a cure the report still explains the failure.
    (void)!vram_cures_find(recording, report, &cures, NULL);
    const struct vram_report_source source = {
        .file = path, .cures = cures == NULL ? NULL : cures->cures, .cure_count = cures == NULL ? 0 : cures->count};
    const struct vram_style style = {.columns = 100};
    if (vram_report_text(report, &source, &style, write_error, NULL) != VRAM_OK) fprintf(stderr, "\n");
    vram_cures_destroy(cures);
    vram_report_destroy(report);
}

static void summarize(const char *path, bool wants_report) {
    struct vram_recording *recording;
    struct vram_report *report;
    struct vram_error error = {.status = VRAM_OK, .offset = VRAM_NO_OFFSET};
    fprintf(stderr, "vram run: ");
    ui_put(stderr, path);
    enum vram_status status = vram_recording_read_file(path, &recording, &error);
    if (status == VRAM_OK) {
        status = vram_report_create(recording, NULL, &report, &error);
        if (status != VRAM_OK) vram_recording_destroy(recording);
    }
    if (status != VRAM_OK) {
        fprintf(stderr, "\n");
        (void)ui_error(path, &error);
        return;
    }
    print_devices(recording, report);
    if (wants_report && has_oom(report)) print_report(path, recording);
    vram_report_destroy(report);
    vram_recording_destroy(recording);
}

// Reads a record: three NUL-terminated texts. Returns false at the end of the list.
static bool read_record(FILE *list, char *fields[3]) {
    size_t capacity;
    for (size_t i = 0; i < 3; i++) {
        free(fields[i]);
        fields[i] = NULL;
        capacity = 0;
        if (getdelim(&fields[i], &capacity, '\0', list) < 0) return false;
    }
    return true;
}

// Returns the path relative to the current folder if it is inside it.
static const char *shown_path(const char *path) {
    char folder[PATH_CAPACITY];
    if (getcwd(folder, sizeof folder) == NULL) return path;
    const size_t length = strlen(folder);
    return length > 1 && strncmp(path, folder, length) == 0 && path[length] == '/' ? path + length + 1 : path;
}

// Returns whether a CUDA driver exists, including one that cannot be used for lack of a device or of permissions.
static bool has_driver(void) {
    struct vram_driver *driver = NULL;
    const enum vram_status status = vram_driver_cuda(&driver, NULL);
    vram_driver_destroy(driver);
    return status != VRAM_NO_DRIVER;
}

// Reads the list that the preloaded library wrote and prints a summary on standard error: one line per recording, one per missed thing, and
// the report after an out-of-memory error if `wants_report`. `program` names the run.
static void run_list_summary(FILE *list, const char *program, bool wants_report) {
    char *fields[3] = {NULL};
    size_t files = 0;
    while (read_record(list, fields)) {
        if (strcmp(fields[0], "file") == 0) {
            files++;
            summarize(shown_path(fields[1]), wants_report);
        } else if (strcmp(fields[0], "dump") == 0) {
            ui_say("vram run: out of memory: %s", shown_path(fields[1]));
        } else if (strcmp(fields[0], "missed") == 0) {
            ui_say("vram run: warning: %s %s", fields[1], fields[2]);
        }
    }
    for (size_t i = 0; i < 3; i++) free(fields[i]);
    if (files != 0) return;
    // A process that cannot write files cannot report that either.
    ui_say("vram run: no file was written: %s made no request that reached a CUDA driver, or it cannot write files", program);
    if (!has_driver()) ui_say("vram run: no CUDA driver found; to use a simulated one, run `vram sim -- vram run -- %s`", program);
}

// vram run: records the device memory of any CUDA program.

int cmd_run(int argc, char **argv);

enum on_oom { ON_OOM_REPORT, ON_OOM_DUMP };

struct settings {
    const char *output;
    uint64_t limit_bytes;
    bool cache;
    const char *conf;
    unsigned on_oom;
    unsigned stacks;
    bool keep_deepbind;
};

static const char *const oom_choices[] = {"report", "dump", NULL};
static const char *const stack_choices[] = {"all", "python", "c", "none", NULL};

// --- the command ----------------------------------------------------------------------------------------------------------

static int usage_problem(const char *text) { return ui_usage("run", "vram run: %s", text); }

static const char *temporary_folder(void) {
    const char *folder = getenv("TMPDIR");
    return folder == NULL || folder[0] == '\0' ? "/tmp" : folder;
}

// Creates a list file for the processes of this run. Returns it open for reading.
static FILE *make_list(char *path) {
    const char *folder = temporary_folder();
    if (snprintf(path, PATH_CAPACITY, "%s/vram-run-XXXXXX", folder) >= PATH_CAPACITY) return NULL;
    const int file = mkostemp(path, O_CLOEXEC);
    return file < 0 ? NULL : fdopen(file, "r");
}

// Makes the pattern absolute, because the program may change its folder before it allocates memory. Returns NULL, or why it cannot.
static const char *make_absolute(const char *pattern, char absolute[PATH_CAPACITY]) {
    char folder[PATH_CAPACITY];
    size_t length = 0;
    if (pattern[0] != '/') {
        if (getcwd(folder, sizeof folder - 1) == NULL) return strerror(errno);
        for (const char *at = strcat(folder, "/"); *at != '\0' && length + 2 < PATH_CAPACITY; at++) {
            absolute[length++] = *at;
            if (*at == '%') absolute[length++] = '%';
        }
    }
    const int wanted = snprintf(absolute + length, PATH_CAPACITY - length, "%s", pattern);
    return wanted < (int)(PATH_CAPACITY - length) ? NULL : strerror(ENAMETOOLONG);
}

// Removes the last run's recording if the pattern is a plain name. Returns NULL, or why no recording can be written.
static const char *make_room(const char *pattern) {
    struct stat facts;
    if (strchr(pattern, '%') != NULL || lstat(pattern, &facts) != 0) return NULL;
    if (S_ISDIR(facts.st_mode)) return "a folder";
    if (!S_ISREG(facts.st_mode)) return "not a regular file";
    return unlink(pattern) == 0 ? NULL : strerror(errno);
}

static int run_recorded(const struct settings *settings, char **arguments) {
    char list_path[PATH_CAPACITY], output[PATH_CAPACITY];
    struct run_library library;
    if (!run_library_find(&library)) {
        ui_say("vram run: cannot find libvram_preload.so; set VRAM_PRELOAD to its path");
        return CLI_DEVICE;
    }
    const char *why = make_absolute(settings->output, output);
    if (why == NULL) why = make_room(settings->output);
    if (why != NULL) {
        ui_say("vram run: --output: %s: %s", settings->output, why);
        return CLI_BAD_INPUT;
    }
    why = run_check(arguments[0]);
    if (why != NULL) ui_say("vram run: %s cannot be recorded: %s; running it anyway", arguments[0], why);
    const bool readable = run_library_open(&library);
    FILE *list = readable ? make_list(list_path) : NULL;
    if (list == NULL) {
        ui_say("vram run: cannot create a temporary file: %s", strerror(errno));
        if (readable) run_library_close(&library);
        return CLI_BAD_INPUT;
    }
    bool started = false;
    int code = PROGRAM_NO_EXECUTE;
    const struct run_environment environment = {.library = library.path,
                                                .output = output,
                                                .list = list_path,
                                                .limit_bytes = settings->limit_bytes,
                                                .stacks = stack_choices[settings->stacks],
                                                .on_oom = oom_choices[settings->on_oom],
                                                .conf = settings->conf,
                                                .cache = settings->cache,
                                                .keep_deepbind = settings->keep_deepbind};
    if (run_environment_put(&environment))
        code = program_run("run", arguments, &started);
    else
        ui_say("vram run: cannot set the program's environment");
    if (started) run_list_summary(list, arguments[0], settings->on_oom == ON_OOM_REPORT);
    (void)fclose(list);
    (void)unlink(list_path);
    run_library_close(&library);
    return code;
}

int cmd_run(int argc, char **argv) {
    struct settings settings = {.output = "vram-%p.vram"};
    const struct args_option options[] = {
        {.name = "output",
         .letter = 'o',
         .kind = ARGS_STRING,
         .value = "PATTERN",
         .help = "file (default vram-%p.vram); %p process, %r rank, %h host, %t time",
         .target = &settings.output},
        {.name = "limit",
         .kind = ARGS_SIZE,
         .value = "SIZE",
         .help = "cap memory per device; the program sees the cap as the device's size",
         .target = &settings.limit_bytes,
         .also = "memory"},
        {.name = "stacks",
         .kind = ARGS_CHOICE,
         .value = "all|python|c|none",
         .help = "the call stacks to record (default all)",
         .target = &settings.stacks,
         .choices = stack_choices},
        {.name = "on-oom",
         .kind = ARGS_CHOICE,
         .value = "report|dump",
         .help =
             "after an out-of-memory error, report (default): explain it at the end; dump: keep a copy of the recording from that moment",
         .target = &settings.on_oom,
         .choices = oom_choices},
        {.name = "cache",
         .kind = ARGS_FLAG,
         .help = "serve cudaMalloc and cudaMallocAsync from vram's caching allocator",
         .target = &settings.cache},
        {.name = "conf",
         .letter = 'c',
         .kind = ARGS_STRING,
         .value = "STRING",
         .help = "settings of that allocator, as in PYTORCH_CUDA_ALLOC_CONF",
         .target = &settings.conf},
        {.name = "keep-deepbind",
         .kind = ARGS_FLAG,
         .help = "keep RTLD_DEEPBIND where the program uses it; calls of such libraries are not recorded",
         .target = &settings.keep_deepbind},
        {.name = NULL},
    };
    const struct args_command command = {
        .name = "run",
        .usage = "[options] -- PROGRAM [ARGUMENT...]",
        .summary = "Runs a CUDA program and records the device memory it allocates and frees, by library and call stack.\n"
                   "The program is not changed; each of its processes gets a file. Its exit code is passed on (128 + n after signal n).",
        .examples = "  vram run -- python train.py\n"
                    "  vram run -o 'rank%r.vram' -- torchrun --nproc-per-node 4 train.py\n"
                    "  vram run --limit 6GiB -- ./solver input.dat\n"
                    "  vram run --cache --conf expandable_segments:True -- ./renderer\n",
        .options = options,
        .min_operands = 1,
        .max_operands = -1,
        .operand = "a program (after --)",
    };
    int count, code;
    if (!args_parse(&command, argc, argv, &count, &code)) return code;
    struct vram_error error = {.status = VRAM_OK};
    if (settings.conf != NULL && vram_options_check(settings.conf, &error) != VRAM_OK) return usage_problem(error.message);
    if (settings.output[0] == '\0') return usage_problem("--output: the name is empty");
    argv[1 + count] = NULL;
    return run_recorded(&settings, argv + 1);
}
