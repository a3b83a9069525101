#define _GNU_SOURCE // mkdtemp()
#include "fit_run.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "input.h"
#include "ui.h"
#include "vram/report.h"

static bool ends_with(const char *name, const char *end) {
    const size_t length = strlen(name), tail = strlen(end);
    return length > tail && strcmp(name + length - tail, end) == 0;
}

bool fit_folder_make(struct fit_run *run) {
    const char *folder = getenv("TMPDIR");
    if (folder == NULL || folder[0] == '\0') folder = "/tmp";
    const int length = snprintf(run->folder, sizeof run->folder, "%s/vram-fit-XXXXXX", folder);
    if (length > 0 && (size_t)length < sizeof run->folder && mkdtemp(run->folder) != NULL) return true;
    run->folder[0] = '\0';
    return false;
}

// Removes the files of a folder and those of its subfolders, which contain only files (dummy weights).
static void remove_entries(int folder) {
    DIR *entries = folder < 0 ? NULL : fdopendir(folder);
    if (entries == NULL) return;
    for (const struct dirent *entry; (entry = readdir(entries)) != NULL;) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0 || unlinkat(folder, entry->d_name, 0) == 0) continue;
        remove_entries(openat(folder, entry->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
        (void)unlinkat(folder, entry->d_name, AT_REMOVEDIR);
    }
    (void)closedir(entries);
}

void fit_folder_remove(struct fit_run *run) {
    if (run->folder[0] == '\0') return;
    remove_entries(open(run->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    (void)rmdir(run->folder);
    run->folder[0] = '\0';
}

bool fit_folder_next(const struct fit_run *run, const char *end, DIR **entries, char *name, size_t capacity) {
    if (*entries == NULL) *entries = opendir(run->folder);
    for (const struct dirent *entry; *entries != NULL && (entry = readdir(*entries)) != NULL;)
        if (ends_with(entry->d_name, end) && snprintf(name, capacity, "%s", entry->d_name) < (int)capacity) return true;
    if (*entries != NULL) (void)closedir(*entries);
    *entries = NULL;
    return false;
}

static struct fit_process *add_process(struct fit_run *run, const char *name) {
    struct fit_process *rows = realloc(run->processes, (run->process_count + 1) * sizeof *rows);
    if (rows == NULL) return NULL;
    run->processes = rows;
    const size_t capacity = strlen(run->folder) + strlen(name) + 2;
    struct fit_process process = {.path = malloc(capacity)};
    if (process.path == NULL) return NULL;
    (void)snprintf(process.path, capacity, "%s/%s", run->folder, name);
    rows[run->process_count] = process;
    return &rows[run->process_count++];
}

static bool add_holding(struct fit_run *run, const struct fit_holding *holding) {
    struct fit_holding *rows = realloc(run->holdings, (run->holding_count + 1) * sizeof *rows);
    if (rows == NULL) return false;
    run->holdings = rows;
    rows[run->holding_count++] = *holding;
    return true;
}

static bool add_context(struct fit_run *run, const struct fit_context *context) {
    struct fit_context *rows = realloc(run->contexts, (run->context_count + 1) * sizeof *rows);
    if (rows == NULL) return false;
    run->contexts = rows;
    rows[run->context_count++] = *context;
    return true;
}

// --- files of the Python start-up module -------------------------------------------------------------------------------------------------

// Reads a line of facts. Holdings and contexts store their process's index as the pointer until all processes are read.
static bool read_fact(struct fit_run *run, struct fit_process *process, const char *line) {
    struct fit_holding holding = {.process = NULL};
    struct fit_context context = {.process = NULL};
    if (sscanf(line, "process %" SCNd64, &process->id) == 1 || sscanf(line, "rank %" SCNu64, &process->rank) == 1 ||
        sscanf(line, "torch %31s", process->torch) == 1 || sscanf(line, "ended %15s", process->ended) == 1 ||
        sscanf(line, "steps %" SCNu64, &process->steps) == 1 || sscanf(line, "stepped %" SCNd64, &process->stepped_us) == 1 ||
        sscanf(line, "last_step %" SCNd64, &process->last_step_us) == 1 ||
        sscanf(line, "used %" SCNd64 " %" SCNd64, &process->begun_us, &process->ended_us) == 2)
        return true;
    if (fit_served_fact(&process->served, &process->host, line) || fit_failure_fact(&process->failure, line)) return true;
    if (fit_route_fact(&process->routed, line)) return true;
    if (strncmp(line, "free_read ", 10) == 0) (void)snprintf(process->free_read, sizeof process->free_read, "%s", line + 10);
    if (strncmp(line, "built ", 6) == 0) (void)snprintf(run->kernels, sizeof run->kernels, "%s", line + 6);
    run->no_kernels = run->no_kernels || strcmp(line, "kernels none") == 0;
    if (strncmp(line, "note ", 5) == 0) ui_say("vram fit: the recorder: %s", line + 5);
    if (sscanf(line, "context %" SCNu32 " %" SCNu64, &context.ordinal, &context.outside_bytes) == 2) {
        context.process = (const struct fit_process *)(uintptr_t)process->id;
        return add_context(run, &context);
    }
    if (sscanf(line, "device %" SCNu32 " %" SCNu32 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64, &holding.device,
               &holding.ordinal, &holding.allocated_bytes, &holding.reserved_bytes, &holding.outside_bytes, &holding.ooms,
               &holding.retries) != 7)
        return true;
    holding.process = (const struct fit_process *)(uintptr_t)process->id;
    return add_holding(run, &holding);
}

static bool read_facts(struct fit_run *run, const char *name) {
    char recording[300], line[512];
    (void)snprintf(recording, sizeof recording, "%.*s.pickle", (int)(strlen(name) - strlen(".facts")), name);
    struct fit_process *process = add_process(run, name);
    FILE *file = process == NULL ? NULL : fopen(process->path, "r");
    if (file == NULL) return false;
    bool good = true;
    while (good && fgets(line, sizeof line, file) != NULL) {
        line[strcspn(line, "\n")] = '\0';
        good = read_fact(run, process, line);
    }
    (void)fclose(file);
    // The recording's name is the facts' name with another extension, one character longer.
    char *path = good ? realloc(process->path, strlen(process->path) + 2) : NULL;
    if (path == NULL) return false;
    process->path = path;
    memcpy(path + strlen(path) - strlen(".facts"), ".pickle", sizeof ".pickle");
    return true;
}

// --- files of `vram run`'s recorder -----------------------------------------------------------------------------------------------------

static bool has_facts(const struct fit_run *run, int64_t id) {
    for (size_t i = 0; i < run->process_count; i++)
        if (run->processes[i].id == id && run->processes[i].torch[0] != '\0') return true;
    return false;
}

static bool add_device(struct fit_run *run, struct fit_process *process, const struct vram_report_device *device) {
    const struct fit_holding holding = {.process = (const struct fit_process *)(uintptr_t)process->id,
                                        .device = device->device,
                                        .ordinal = device->device,
                                        .allocated_bytes = device->allocated.peak.bytes,
                                        .reserved_bytes = device->allocated.peak.bytes,
                                        .ooms = device->oom_count};
    return device->is_host || device->events == 0 || add_holding(run, &holding);
}

static int read_whole_program(struct fit_run *run, const char *name) {
    const int64_t id = strtoll(name, NULL, 10);
    if (has_facts(run, id)) return CLI_OK;
    struct fit_process *process = add_process(run, name);
    struct vram_recording *recording;
    struct vram_report *report;
    struct vram_error error = {.status = VRAM_OK, .offset = VRAM_NO_OFFSET};
    if (process == NULL) return CLI_BAD_INPUT;
    process->id = id;
    process->whole_program = true;
    (void)strcpy(process->ended, "exit");
    int code = fit_run_recording(process, &recording);
    if (code != CLI_OK) return code;
    const size_t before = run->holding_count;
    bool good = vram_report_create(recording, NULL, &report, &error) == VRAM_OK;
    vram_recording_destroy(recording);
    if (!good) return ui_error(process->path, &error);
    for (size_t i = 0; i < report->device_count && good; i++) good = add_device(run, process, &report->devices[i]);
    vram_report_destroy(report);
    if (run->holding_count == before) free(run->processes[--run->process_count].path);
    return good ? CLI_OK : CLI_BAD_INPUT;
}

// --- all recordings of a folder -----------------------------------------------------------------------------------------------------

static int by_rank(const void *a, const void *b) {
    const struct fit_holding *one = a, *other = b;
    if (one->process->rank != other->process->rank) return one->process->rank < other->process->rank ? -1 : 1;
    if (one->process->id != other->process->id) return one->process->id < other->process->id ? -1 : 1;
    return one->device < other->device ? -1 : one->device > other->device;
}

static const struct fit_process *process_of(const struct fit_run *run, const struct fit_process *stored) {
    const int64_t id = (int64_t)(uintptr_t)stored;
    for (size_t i = 0; i < run->process_count; i++)
        if (run->processes[i].id == id) return &run->processes[i];
    return stored;
}

// Turns the stored indexes into pointers. The array of processes does not move after this.
static void link_holdings(struct fit_run *run) {
    for (size_t i = 0; i < run->holding_count; i++) run->holdings[i].process = process_of(run, run->holdings[i].process);
    for (size_t i = 0; i < run->context_count; i++) run->contexts[i].process = process_of(run, run->contexts[i].process);
    if (run->holding_count > 0) qsort(run->holdings, run->holding_count, sizeof *run->holdings, by_rank);
    for (size_t i = 0; i < run->process_count; i++)
        if (run->processes[i].steps > run->steps) run->steps = run->processes[i].steps;
}

// If a process was killed, uses PID.early and PID.early.pickle, which it wrote when it was ready to serve.
static void take_early(const struct fit_run *run) {
    char name[300], from[sizeof run->folder + 340], to[sizeof run->folder + 340];
    DIR *entries = NULL;
    while (fit_folder_next(run, ".early", &entries, name, sizeof name)) {
        const int length = (int)(strlen(name) - strlen(".early"));
        (void)snprintf(to, sizeof to, "%s/%.*s.facts", run->folder, length, name);
        if (access(to, F_OK) == 0) continue;
        (void)snprintf(from, sizeof from, "%s/%s.pickle", run->folder, name);
        (void)snprintf(to, sizeof to, "%s/%.*s.pickle", run->folder, length, name);
        if (rename(from, to) != 0) continue;
        (void)snprintf(from, sizeof from, "%s/%s", run->folder, name);
        (void)snprintf(to, sizeof to, "%s/%.*s.facts", run->folder, length, name);
        if (rename(from, to) == 0)
            ui_say("vram fit: process %.*s was killed: its recording ends at the point where it was ready to serve", length, name);
    }
}

static bool has_rank(const struct fit_run *run, uint64_t rank) {
    for (size_t i = 0; i < run->process_count; i++)
        if (run->processes[i].rank == rank) return true;
    return false;
}

// Finds a rank that ended early: PID.left has its number. Another process of that rank may have used a device, such as its parent.
static void find_left(struct fit_run *run) {
    char name[300], path[sizeof run->folder + 340];
    DIR *entries = NULL;
    while (fit_folder_next(run, ".left", &entries, name, sizeof name)) {
        uint64_t rank;
        (void)snprintf(path, sizeof path, "%s/%s", run->folder, name);
        FILE *file = fopen(path, "r");
        const bool read = file != NULL && fscanf(file, "%" SCNu64, &rank) == 1;
        if (file != NULL) (void)fclose(file);
        if (!read || has_rank(run, rank) || (run->left && run->left_rank < rank)) continue;
        run->left = true;
        run->left_rank = rank;
    }
}

int fit_folder_read(struct fit_run *run) {
    int code = CLI_OK;
    take_early(run);
    for (int recorder = 0; recorder < 2 && code == CLI_OK; recorder++) {
        DIR *entries = opendir(run->folder);
        if (entries == NULL) return CLI_BAD_INPUT;
        for (const struct dirent *entry; code == CLI_OK && (entry = readdir(entries)) != NULL;) {
            if (recorder == 0 && ends_with(entry->d_name, ".facts")) code = read_facts(run, entry->d_name) ? CLI_OK : CLI_BAD_INPUT;
            if (recorder == 1 && ends_with(entry->d_name, ".vram")) code = read_whole_program(run, entry->d_name);
        }
        (void)closedir(entries);
    }
    if (code == CLI_OK) link_holdings(run);
    find_left(run);
    return code;
}
