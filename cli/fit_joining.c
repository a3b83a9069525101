#include "fit_joining.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fit_failure.h"
#include "fit_run.h"
#include "vram/sim.h"

#define NAME_CAPACITY 300
#define RANKS_MOST    1024 // main processes that are looked at

// A main process of a rank. A rank has a second one if its launcher starts it again.
struct main_process {
    int64_t process, noted_by, begun_us;
    uint64_t rank, ranks;
    bool runs, joined;
};

struct notes {
    struct main_process *rows;
    size_t count;
    uint64_t ranks; // of the job that a process has joined; 0: none
};

static bool open_note(const struct fit_run *run, int64_t process, const char *end, FILE **file) {
    char path[sizeof run->folder + 60];
    (void)snprintf(path, sizeof path, "%s/%" PRId64 "%s", run->folder, process, end);
    *file = fopen(path, "r");
    return *file != NULL;
}

static bool has_note(const struct fit_run *run, int64_t process, const char *end) {
    FILE *file;
    if (!open_note(run, process, end, &file)) return false;
    (void)fclose(file);
    return true;
}

// Returns whether a process runs. One that has ended remains for its parent to read the exit code: state Z.
static bool runs(int64_t process) {
    char path[60], line[512];
    (void)snprintf(path, sizeof path, "/proc/%" PRId64 "/stat", process);
    FILE *file = fopen(path, "r");
    if (file == NULL) return kill((pid_t)process, 0) == 0 || errno != ESRCH;
    const char *end = fgets(line, sizeof line, file) == NULL ? NULL : strrchr(line, ')');
    (void)fclose(file);
    return end == NULL || (strncmp(end, ") Z", 3) != 0 && strncmp(end, ") X", 3) != 0);
}

static void read_main(const struct fit_run *run, const char *name, struct notes *notes) {
    struct main_process row = {.process = strtoll(name, NULL, 10)};
    FILE *file;
    if (row.process < 1 || notes->count == RANKS_MOST || !open_note(run, row.process, ".rank", &file)) return;
    const bool good =
        fscanf(file, "%" SCNu64 " %" SCNu64 " %" SCNd64 " %" SCNd64, &row.rank, &row.ranks, &row.noted_by, &row.begun_us) == 4;
    (void)fclose(file);
    if (!good) return;
    row.runs = runs(row.process);
    row.joined = has_note(run, row.process, ".joins");
    notes->rows[notes->count++] = row;
}

bool fit_joining_rank(const struct fit_run *run, const char *name, uint64_t *rank) {
    struct main_process row = {.process = 0};
    struct notes notes = {.rows = &row};
    read_main(run, name, &notes);
    *rank = row.rank;
    return notes.count == 1 && row.ranks > 1;
}

// Reads a process that has joined a job, and how many ranks the job has.
static bool read_join(const struct fit_run *run, const char *name, uint64_t *ranks, int64_t *process) {
    FILE *file;
    if (!open_note(run, strtoll(name, NULL, 10), ".joins", &file)) return false;
    const bool good = fscanf(file, "%" SCNu64 " %" SCNd64, ranks, process) == 2;
    (void)fclose(file);
    return good;
}

// Returns how many ranks the largest job has that a process has joined.
static uint64_t ranks_joined(const struct fit_run *run) {
    char name[NAME_CAPACITY];
    DIR *entries = NULL;
    int64_t process;
    uint64_t ranks, most = 0;
    while (fit_folder_next(run, ".joins", &entries, name, sizeof name))
        if (read_join(run, name, &ranks, &process) && ranks > most) most = ranks;
    return most;
}

// Returns the most processes that the program spawned together.
static uint64_t processes_spawned(const struct fit_run *run) {
    char name[NAME_CAPACITY];
    DIR *entries = NULL;
    uint64_t count, most = 0;
    while (fit_folder_next(run, ".spawns", &entries, name, sizeof name)) {
        FILE *file;
        if (!open_note(run, strtoll(name, NULL, 10), ".spawns", &file)) continue;
        if (fscanf(file, "%" SCNu64, &count) == 1 && count > most) most = count;
        (void)fclose(file);
    }
    return most;
}

void fit_devices_find(struct fit_run *run, uint64_t devices) {
    const uint64_t joined = ranks_joined(run), ranks = joined != 0 ? joined : fit_run_failed(run) ? processes_spawned(run) : 0;
    run->joined = joined != 0;
    if (ranks > devices && ranks <= VRAM_SIM_MOST_DEVICES) run->more_devices = ranks;
}

const char *fit_devices_text(const struct fit_run *run, char *text, size_t capacity) {
    if (run->more_devices == 0) return NULL;
    (void)snprintf(text, capacity, "--devices %" PRIu64 ": %s %" PRIu64 " %s, and saw fewer devices", run->more_devices,
                   run->joined ? "the job has" : "the program spawned", run->more_devices, run->joined ? "ranks" : "processes");
    return text;
}

// Takes the number of ranks of a job that a process has joined, if it runs.
static void take_job(const struct fit_run *run, const char *name, bool is_over, struct notes *notes) {
    uint64_t ranks;
    int64_t process;
    if (read_join(run, name, &ranks, &process) && ranks > notes->ranks && (is_over || runs(process))) notes->ranks = ranks;
}

// Returns whether the rank of a process has a main process that runs or began later.
static bool is_followed(const struct notes *notes, const struct main_process *row) {
    for (const struct main_process *other = notes->rows; other < notes->rows + notes->count; other++)
        if (other != row && other->rank == row->rank && other->ranks == row->ranks && (other->runs || other->begun_us > row->begun_us))
            return true;
    return false;
}

static enum fit_leaving how_it_left(const struct fit_run *run, const struct main_process *row) {
    if (row->noted_by != row->process) return FIT_LEFT;
    return has_note(run, row->process, ".left") || has_note(run, row->process, ".facts") ? FIT_EXITED : FIT_KILLED;
}

bool fit_joining_find(const struct fit_run *run, bool is_over, struct fit_absent *absent) {
    struct notes notes = {.rows = calloc(RANKS_MOST, sizeof *notes.rows)};
    char name[NAME_CAPACITY];
    DIR *entries = NULL;
    *absent = (struct fit_absent){.any = false};
    while (fit_folder_next(run, ".joins", &entries, name, sizeof name)) take_job(run, name, is_over, &notes);
    while (notes.rows != NULL && notes.ranks > 1 && fit_folder_next(run, ".rank", &entries, name, sizeof name))
        read_main(run, name, &notes);
    for (size_t i = 0; i < notes.count; i++) {
        const struct main_process *row = &notes.rows[i];
        if (row->runs || row->joined || row->ranks != notes.ranks || is_followed(&notes, row)) continue;
        if (absent->any && absent->rank < row->rank) continue;
        *absent = (struct fit_absent){
            .any = true, .rank = row->rank, .ranks = row->ranks, .process = row->process, .leaving = how_it_left(run, row)};
    }
    free(notes.rows);
    return absent->any;
}

void fit_launchers_word_read(const struct fit_run *run, const char *line, struct fit_launchers_word *word) {
    const char *at = strstr(line, "failed (exitcode: ");
    char name[40];
    int64_t process;
    if (word->any || at == NULL) return;
    if (sscanf(at, "failed (exitcode: %" SCNd64 ") local_rank: %*d (pid: %" SCNd64 ")", &word->exit_code, &process) != 2) return;
    word->any = true;
    (void)snprintf(name, sizeof name, "%" PRId64 ".rank", process);
    word->has_rank = fit_joining_rank(run, name, &word->rank);
}

void fit_launchers_word_append(const struct fit_launchers_word *word, char *text, size_t capacity) {
    const size_t used = strlen(text);
    char rank[40] = "a rank", how[60];
    if (word->has_rank) (void)snprintf(rank, sizeof rank, "rank %" PRIu64, word->rank);
    if (word->exit_code < 0)
        (void)snprintf(how, sizeof how, "was killed (signal %" PRId64 ")", -word->exit_code);
    else
        (void)snprintf(how, sizeof how, "ended with exit code %" PRId64, word->exit_code);
    (void)snprintf(text + used, capacity - used, ": %s %s", rank, how);
}

// Returns whether a process was started by the run: its environment has the run's folder. Another process may have got the number of one
// that has ended.
static bool is_of_run(const struct fit_run *run, int64_t process) {
    char path[60], *line = NULL;
    size_t capacity = 0;
    bool found = false;
    (void)snprintf(path, sizeof path, "/proc/%" PRId64 "/environ", process);
    FILE *file = fopen(path, "r");
    while (file != NULL && !found && getdelim(&line, &capacity, '\0', file) > 0)
        found = strncmp(line, "VRAM_FIT=", 9) == 0 && strcmp(line + 9, run->folder) == 0;
    if (file != NULL) (void)fclose(file);
    free(line);
    return found;
}

static void end_process(const struct fit_run *run, int64_t process, int64_t program, int number) {
    if (process > 1 && process != program && is_of_run(run, process)) (void)kill((pid_t)process, number);
}

void fit_joining_end(const struct fit_run *run, int64_t program, int number) {
    char name[NAME_CAPACITY];
    DIR *entries = NULL;
    while (fit_folder_next(run, ".rank", &entries, name, sizeof name)) end_process(run, strtoll(name, NULL, 10), program, number);
    while (fit_folder_next(run, ".joins", &entries, name, sizeof name)) {
        uint64_t ranks;
        int64_t process;
        if (read_join(run, name, &ranks, &process)) end_process(run, process, program, number);
    }
}

void fit_absent_text(const struct fit_run *run, char *text, size_t capacity) {
    static const char *const ways[] = {
        [FIT_LEFT] = "ended", [FIT_EXITED] = "exited without an exception", [FIT_KILLED] = "was killed, or called os._exit(),"};
    char site[FIT_SITE_MOST];
    const struct fit_absent *absent = &run->absent;
    const struct fit_failure *failure = fit_failure_of(run);
    fit_failure_site(failure, site, sizeof site);
    (void)snprintf(text, capacity, "Rank %" PRIu64 " %s before it joined the job's %" PRIu64 " ranks, which wait for it%s%s%s%s",
                   absent->rank, failure != NULL ? "failed" : ways[absent->leaving], absent->ranks, site[0] == '\0' ? "" : ", at ",
                   fit_site_short(site), failure == NULL ? "" : ": ", failure == NULL ? "" : failure->what);
}
