// Runs a program for `vram fit`. In the run's folder, PID.begun exists from a process's first use of a device, PID.facts once its recording
// is written.

#define _GNU_SOURCE

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <regex.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "args.h"
#include "run_environment.h"
#include "fit_ready.h"
#include "fit_requests.h"
#include "fit_run.h"
#include "input.h"
#include "output.h"
#include "program.h"
#include "sim_counts.h"
#include "sim_environment.h"
#include "ui.h"
#include "vram/driver.h"
#include "vram/recording.h"
#include "vram/sim.h"

#define FIT_CONTROL_MAGIC UINT64_C(0x316c72746e6f6366) // "fcontrl1"
#define FIT_CONTROL_ROWS  1024

// One rank's row; only that rank writes to it.
struct fit_control_row {
    _Atomic uint64_t steps; // ended
    _Atomic uint64_t process;
    _Atomic uint64_t reserved_bytes; // the device's maximum so far
    _Atomic uint64_t ready;          // the step after which the steps repeat; 0 until known
    uint64_t unused[4];
};

struct fit_control {
    _Atomic uint64_t magic;
    _Atomic uint64_t alone;    // not 0: ranks no longer wait for each other
    _Atomic uint64_t finished; // not 0: a process has recorded enough, so the command ends all processes
    _Atomic uint64_t ending;   // not 0: the command ends the run; each process writes its recording
    _Atomic uint64_t playing;  // not 0: an engine plays the requests
    uint64_t unused[3];
    struct fit_control_row rows[FIT_CONTROL_ROWS];
};

#define NAME_CAPACITY 300

// Returns whether a process of the program has begun to use a device.
static bool fit_end_began(const struct fit_run *run) {
    char name[NAME_CAPACITY];
    DIR *entries = NULL;
    const bool any = fit_folder_next(run, ".begun", &entries, name, sizeof name);
    if (entries != NULL) (void)closedir(entries);
    return any;
}

static bool is_written(const struct fit_run *run, long process) {
    char path[sizeof run->folder + 40];
    (void)snprintf(path, sizeof path, "%s/%ld.facts", run->folder, process);
    return access(path, F_OK) == 0 || (kill((pid_t)process, 0) != 0 && errno == ESRCH);
}

// Returns whether each of those processes has written its recording or exited.
static bool fit_end_written(const struct fit_run *run) {
    char name[NAME_CAPACITY];
    DIR *entries = NULL;
    bool all = true;
    while (fit_folder_next(run, ".begun", &entries, name, sizeof name)) all = is_written(run, strtol(name, NULL, 10)) && all;
    return all;
}

// Sends the signal `number` to those processes and to all ranks, except `program`.
static void fit_end_processes(const struct fit_run *run, int64_t program, int number) {
    char name[NAME_CAPACITY];
    DIR *entries = NULL;
    while (fit_folder_next(run, ".begun", &entries, name, sizeof name)) {
        const long process = strtol(name, NULL, 10);
        if (process > 1 && process != program) (void)kill((pid_t)process, number);
    }
    fit_joining_end(run, program, number);
}

// Prints which files the program looked for and did not find.
static void fit_end_wanted(const struct fit_run *run) {
    char name[NAME_CAPACITY], path[sizeof run->folder + NAME_CAPACITY], line[4096], last[4096] = "";
    DIR *entries = NULL;
    while (fit_folder_next(run, ".wanted", &entries, name, sizeof name)) {
        (void)snprintf(path, sizeof path, "%s/%s", run->folder, name);
        FILE *file = fopen(path, "r");
        while (file != NULL && fgets(line, sizeof line, file) != NULL) {
            line[strcspn(line, "\n")] = '\0';
            const char *what = strchr(line, ' ');
            if (what == NULL || strcmp(line, last) == 0) continue;
            ui_say("vram fit: cannot find %s (%.*s)%s", what + 1, (int)(what - line), line,
                   strncmp(line, "from_pretrained ", 16) == 0 ? ": --dummy-weights generates weights" : "");
            (void)strcpy(last, line);
        }
        if (file != NULL) (void)fclose(file);
    }
}

// Starts the program with the simulated device and the recorders loaded, and watches it.

const char *const fit_ending_names[FIT_ENDING_COUNT] = {
#define FIT_ENDING(constant, name, sentence) #name,
    FIT_ENDINGS(FIT_ENDING)
#undef FIT_ENDING
};
const char *const fit_ending_sentences[FIT_ENDING_COUNT] = {
#define FIT_ENDING(constant, name, sentence) sentence,
    FIT_ENDINGS(FIT_ENDING)
#undef FIT_ENDING
};

#define KEPT_BYTES 4000 // of hidden output

// The state of a run.
struct running {
    const struct fit_plan *plan;
    struct fit_run *run;
    struct sim_counts control, reads, missing, calls;
    struct run_library library;
    regex_t until, printed;
    bool looking, found, time_over, reads_numbers;
    struct fit_ready ready;
    bool finished, serves; // a process has recorded enough; it is a server that answers
    unsigned ready_ticks;  // since it first answered
    unsigned ticks;
    unsigned absent_looks; // in a row that found a rank that ended before it joined the others
    unsigned ending_ticks; // since it began to end
    struct timespec begin;
    char line[4096]; // the current, incomplete line of output
    size_t line_used;
    char kept[KEPT_BYTES]; // the last part of hidden output, without a launcher's report
    size_t kept_used;
    bool launcher_reports;
    bool progress; // a progress line is on the terminal
};

static double seconds_since(const struct timespec *begin) {
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)(now.tv_sec - begin->tv_sec) + (double)(now.tv_nsec - begin->tv_nsec) / 1e9;
}

// --- in the child -------------------------------------------------------------------------------------------------------------------

static bool put_first(const char *name, const char *first) {
    const char *before = getenv(name);
    char value[8192];
    const bool alone = before == NULL || before[0] == '\0';
    const int length = snprintf(value, sizeof value, "%s%s%s", first, alone ? "" : ":", alone ? "" : before);
    return length > 0 && (size_t)length < sizeof value && setenv(name, value, 1) == 0;
}

static bool put_requests(const struct running *running) {
    char path[sizeof running->run->folder + 20];
    (void)snprintf(path, sizeof path, "%s/requests", running->run->folder);
    struct output *output = output_open(path);
    const bool good = output != NULL && fit_requests_write(running->plan->requests, output_write, output);
    return output_close(output, good) == CLI_OK && good;
}

// Sets the variables by which the program is recorded: a Python module records PyTorch's allocator; the library of `vram run` records calls
// to the driver.
static bool put_recorders(const struct running *running) {
    char output[4200], list[4200], module[4096];
    (void)snprintf(output, sizeof output, "%s/%%p.vram", running->run->folder);
    (void)snprintf(list, sizeof list, "%s/list", running->run->folder);
    const struct run_environment environment = {
        .library = running->library.path, .output = output, .list = list, .stacks = "all", .on_oom = "report"};
    if (running->library.path[0] != '\0' && !run_environment_put(&environment)) return false;
    if (running->plan->requests != NULL && !put_requests(running)) return false;
    return setenv("VRAM_FIT", running->run->folder, 1) == 0 && setenv("VRAM_FIT_STEPS", running->plan->steps, 1) == 0 &&
           (!running->plan->dummy_weights || setenv("VRAM_FIT_DUMMY", "1", 1) == 0) &&
           (!running->plan->keeps_plan || setenv("VRAM_FIT_PLAN", "1", 1) == 0) &&
           (!find_fit_folder(module, sizeof module) || put_first("PYTHONPATH", module));
}

static bool prepare_child(void *user) {
    const struct running *running = user;
    char values[4096], wrong[400];
    if (!sim_settings_text(&running->plan->sim, values, sizeof values, wrong, sizeof wrong)) {
        ui_say("vram fit: %s", wrong);
        return false;
    }
    sim_session_put();
    if (setenv("VRAM_SIM", values, 1) == 0 && put_recorders(running)) return sim_front_put(false) == CLI_OK;
    ui_say("vram fit: cannot set the program's environment: %s", strerror(errno));
    return false;
}

// --- watching -----------------------------------------------------------------------------------------------------------------------

static void clear_progress(struct running *running) {
    if (running->progress) fprintf(stderr, "\r%*s\r", 60, "");
    running->progress = false;
}

// Returns whether a line begins a launcher's report of failed ranks: torchrun's and accelerate's, then DeepSpeed's. It follows the ranks'
// own errors, is longer than them, and says only that they failed.
static bool is_launchers(const char *line) {
    static const char *const reports[] = {"torch/distributed/elastic/multiprocessing/api.py", "[launch.py:", "] Killing subprocess"};
    for (size_t i = 0; i < sizeof reports / sizeof *reports; i++)
        if (strstr(line, reports[i]) != NULL) return true;
    return false;
}

static bool hides_output(const struct fit_plan *plan) { return plan->quiet || plan->silent; }

// Keeps the number that a line of output has for plan->printed.
static void read_number(struct running *running) {
    regmatch_t found[2];
    if (!running->reads_numbers || regexec(&running->printed, running->line, 2, found, 0) != 0 || found[1].rm_so < 0) return;
    char *end;
    const double number = strtod(running->line + found[1].rm_so, &end);
    if (end == running->line + found[1].rm_so || !isfinite(number)) return;
    running->run->printed = number;
    running->run->has_printed = true;
}

// Keeps the last line of output that is neither empty nor a launcher's. It often says why a program fails.
static void keep_last_line(struct running *running) {
    running->launcher_reports = running->launcher_reports || is_launchers(running->line);
    if (running->launcher_reports) fit_launchers_word_read(running->run, running->line, &running->run->launchers_word);
    if (running->launcher_reports || strstr(running->line, "torch/distributed/run.py:") != NULL ||
        running->line[strspn(running->line, " \t\r")] == '\0')
        return;
    (void)snprintf(running->run->last_line, sizeof running->run->last_line, "%.*s", (int)sizeof running->run->last_line - 1, running->line);
}

static void end_line(struct running *running) {
    running->line[running->line_used] = '\0';
    read_number(running);
    keep_last_line(running);
    if (running->looking && !running->found) running->found = regexec(&running->until, running->line, 0, NULL, 0) == 0;
    fit_ready_line(&running->ready, running->line);
    if (hides_output(running->plan) && !running->launcher_reports) {
        program_keep_last(running->kept, &running->kept_used, KEPT_BYTES, running->line, running->line_used);
        program_keep_last(running->kept, &running->kept_used, KEPT_BYTES, "\n", 1);
    }
    running->line_used = 0;
}

static void look_for(struct running *running, const char *bytes, size_t length) {
    for (size_t i = 0; i < length; i++) {
        if (bytes[i] == '\n')
            end_line(running);
        else if (running->line_used + 1 < sizeof running->line)
            running->line[running->line_used++] = bytes[i];
    }
}

static void pass_output(void *user, const char *bytes, size_t length) {
    struct running *running = user;
    look_for(running, bytes, length);
    if (hides_output(running->plan) || (running->plan->folds && running->finished))
        return; // a program that is ended: ranks would look failed
    clear_progress(running);
    (void)fwrite(bytes, 1, length, stderr);
    (void)fflush(stderr);
}

static void show_progress(struct running *running) {
    const struct fit_control *control = running->control.file;
    uint64_t steps = 0, reserved = 0, ranks = 0;
    for (size_t i = 0; i < FIT_CONTROL_ROWS; i++) {
        const uint64_t done = atomic_load(&control->rows[i].steps), bytes = atomic_load(&control->rows[i].reserved_bytes);
        if (done > steps) steps = done;
        if (bytes > reserved) reserved = bytes;
        ranks += done > 0;
    }
    char size[UI_SIZE_CAPACITY], text[80];
    if (steps == 0)
        (void)snprintf(text, sizeof text, "vram fit: %.0f s", seconds_since(&running->begin));
    else
        (void)snprintf(text, sizeof text, "vram fit: %.0f s, step %" PRIu64 ", %s%s", seconds_since(&running->begin), steps,
                       ui_size(reserved, size), ranks > 1 ? " on a rank" : "");
    fprintf(stderr, "\r%-58s", text);
    (void)fflush(stderr);
    running->progress = true;
}

#define READY_TICKS   10  // time for an answering server to make its first allocations
#define LATE_TICKS    100 // the same, if none of its processes is known to use a device
#define WRITING_TICKS 300 // for processes to write their recordings

// Returns whether the program is a server that has answered long enough to settle.
static bool program_serves(struct running *running) {
    if (strcmp(running->plan->steps, "auto") != 0 || !fit_ready_is(&running->ready)) return false;
    return ++running->ready_ticks >= (fit_end_began(running->run) ? READY_TICKS : LATE_TICKS);
}

// Returns whether requests are to be played but the server that answers does not play them.
static bool program_refuses_requests(struct running *running) {
    const struct fit_control *control = running->control.file;
    if (running->plan->requests == NULL || atomic_load(&control->playing) != 0 || !fit_ready_is(&running->ready)) return false;
    return ++running->ready_ticks >= LATE_TICKS;
}

#define LOOK_TICKS   10 // between looks for a rank that ended before it joined the others
#define ABSENT_LOOKS 7  // until the run ends: launchers first end the other ranks or start it again (torchrun looks each 5 seconds or less)

// Returns whether ranks wait for one that ended before it joined them.
static bool waits_for_absent(struct running *running) {
    struct fit_run *run = running->run;
    if (running->ticks++ % LOOK_TICKS != 0) return running->absent_looks >= ABSENT_LOOKS;
    running->absent_looks = fit_joining_find(run, false, &run->absent) ? running->absent_looks + 1 : 0;
    return running->absent_looks >= ABSENT_LOOKS;
}

static bool is_over(struct running *running) {
    const struct fit_control *control = running->control.file;
    running->time_over = running->plan->most_seconds != 0 && seconds_since(&running->begin) >= (double)running->plan->most_seconds;
    running->finished = running->finished || atomic_load(&control->finished) != 0;
    running->serves = running->serves || program_serves(running) || program_refuses_requests(running);
    return running->time_over || running->found || running->finished || running->serves || waits_for_absent(running);
}

// Lets each process with device memory write its recording, then ends them all. program.c ends the program itself.
static bool watch_tick(void *user, int64_t process) {
    struct running *running = user;
    struct fit_control *control = running->control.file;
    if (hides_output(running->plan) || running->line_used == 0)
        if (isatty(STDERR_FILENO)) show_progress(running);
    if (running->ending_ticks == 0 && !is_over(running)) return true;
    atomic_store(&control->ending, 1);
    if (!fit_end_written(running->run) && running->ending_ticks++ < WRITING_TICKS) return true;
    fit_end_processes(running->run, process, SIGTERM);
    return false;
}

// Adds the context's bytes to recordings made at driver level, which do not include it.
static void add_contexts(struct running *running) {
    struct vram_sim_model model;
    uint32_t i = 0;
    while (vram_sim_model_at(i, &model) && strcmp(model.key, running->plan->sim.models) != 0) i++;
    for (size_t j = 0; j < running->run->holding_count; j++)
        if (running->run->holdings[j].process->whole_program) running->run->holdings[j].outside_bytes = model.context_bytes;
}

// Returns the signal that ended the program. A program interrupted from the terminal also shows it in its exit code.
static int ending_signal(const struct fit_run *run) {
    const struct fit_failure *failure = fit_failure_of(run);
    if (program_signal() != 0) return program_signal();
    if (run->exit_code == 128 + SIGINT) return SIGINT;
    return run->exit_code != 0 && failure != NULL && strcmp(failure->what, "KeyboardInterrupt") == 0 ? SIGINT : 0;
}

// Reads what the control file says about a process that left no recording.
static void take_last_step(struct running *running) {
    const struct fit_control *control = running->control.file;
    struct fit_run *run = running->run;
    run->began = fit_end_began(run);
    for (size_t i = 0; i < FIT_CONTROL_ROWS; i++) {
        const uint64_t done = atomic_load(&control->rows[i].steps), bytes = atomic_load(&control->rows[i].reserved_bytes);
        if (run->holding_count == 0 && done > run->steps) run->steps = done;
        if (bytes > run->least_bytes) run->least_bytes = bytes;
    }
}

// --- a run --------------------------------------------------------------------------------------------------------------------------

static enum fit_ending ending_of(const struct running *running) {
    const struct fit_run *run = running->run;
    bool repeats = false, plateau = false, asked = false, calls = false, served = running->finished, oom = false;
    for (size_t i = 0; i < run->process_count; i++) {
        repeats = repeats || strcmp(run->processes[i].ended, "steps") == 0;
        // Its recording ends there, even if the program exited before it was ended.
        served = served || strcmp(run->processes[i].ended, "served") == 0;
        calls = calls || strcmp(run->processes[i].ended, "calls") == 0;
        plateau = plateau || strcmp(run->processes[i].ended, "plateau") == 0;
        asked = asked || strcmp(run->processes[i].ended, "asked") == 0;
    }
    for (size_t i = 0; i < run->holding_count; i++) oom = oom || run->holdings[i].ooms > 0;
    if (run->refused[0] != '\0') return FIT_REFUSED;
    if (run->absent.any) return FIT_ABSENT;
    if (run->played.any) return FIT_PLAYED;
    if (running->found) return FIT_UNTIL;
    if (running->time_over) return FIT_TIME;
    if (running->serves) return FIT_READY;
    if (served) return FIT_SERVED;
    if (run->signal != 0) return FIT_INTERRUPTED;
    if (run->exit_code != 0) return oom ? FIT_OUT_OF_MEMORY : FIT_FAILED;
    return plateau ? FIT_PLATEAU : calls ? FIT_CALLS : repeats ? FIT_REPEATS : asked ? FIT_STEPS : FIT_ENDED;
}

// Keeps the rank that ended before it joined the others, if these waited for it until the run ended. A program that ended by itself did
// not wait here, but would on GPUs.
static void settle_absent(struct running *running) {
    struct fit_run *run = running->run;
    const bool by_itself = running->ending_ticks == 0 && run->exit_code == 0 && run->signal == 0;
    if (by_itself)
        (void)fit_joining_find(run, true, &run->absent);
    else
        run->absent.any = run->signal == 0 && running->absent_looks >= (running->time_over ? 2 : ABSENT_LOOKS);
}

// Reads why the program cannot run with some of its ranks only (adapters/fit/vram_fit_fold.py).
static void read_refusal(struct fit_run *run) {
    char path[sizeof run->folder + 20];
    (void)snprintf(path, sizeof path, "%s/refused", run->folder);
    FILE *file = fopen(path, "r");
    if (file == NULL) return;
    if (fgets(run->refused, sizeof run->refused, file) != NULL) run->refused[strcspn(run->refused, "\n")] = '\0';
    (void)fclose(file);
}

static int run_program(struct running *running) {
    struct fit_run *run = running->run;
    const struct program_watch watch = {.prepare = prepare_child, .output = pass_output, .tick = watch_tick, .user = running};
    bool started = false;
    fit_ready_begin(&running->ready, running->plan->program);
    (void)clock_gettime(CLOCK_MONOTONIC, &running->begin);
    char **replaced = running->plan->dummy_weights ? fit_gguf_replace(running->plan->program, run->folder) : NULL;
    if (running->plan->dummy_weights && replaced == NULL) return CLI_BAD_INPUT;
    run->exit_code = program_run_watched("fit", replaced != NULL ? replaced : running->plan->program, &watch, &started);
    fit_gguf_release(replaced);
    run->seconds = seconds_since(&running->begin);
    if (running->line_used > 0) end_line(running);
    clear_progress(running);
    if (running->ending_ticks > 0 || running->absent_looks >= ABSENT_LOOKS || running->serves || running->finished)
        fit_end_processes(run, 0, SIGKILL); // those that outlive it
    run->memory_bytes = running->plan->sim.memory_bytes == SIM_UNSET ? 0 : running->plan->sim.memory_bytes;
    if (!started) {
        (void)fwrite(running->kept, 1, running->kept_used, stderr); // the reason
        return CLI_BAD_INPUT;
    }
    run->read_count = sim_reads_list(&running->reads, &run->reads);
    run->missing_count = sim_missing_list(&running->missing, false, &run->missing);
    run->size_count = sim_missing_list(&running->missing, true, &run->sizes);
    const int code = fit_folder_read(run);
    if (code != CLI_OK) return code;
    char played[sizeof run->folder + 20];
    (void)snprintf(played, sizeof played, "%s/played", run->folder);
    const bool was_played = fit_played_read(&run->played, played);
    read_refusal(run);
    add_contexts(running);
    take_last_step(running);
    run->signal = ending_signal(run);
    settle_absent(running);
    run->ending = ending_of(running);
    fit_behind_find(run);
    if (!running->plan->has_devices && !running->plan->folds) fit_devices_find(run, running->plan->sim.devices);
    if (fit_unanswered_find(running->run, &running->calls)) run->ending = FIT_HANGS;
    if (running->plan->requests != NULL && !was_played && !fit_run_failed(run))
        ui_say("vram fit: --requests: no engine accepted the requests; vLLM's does, unless it uses data parallelism or runs in the "
               "script's own process; SGLang's does, unless it uses data or pipeline parallelism, a draft model or disaggregation");
    if (run->ending != FIT_FAILED || running->plan->silent) return CLI_OK;
    (void)fwrite(running->kept, 1, running->kept_used, stderr);
    if (run->exit_code != 0) fit_end_wanted(run);
    return CLI_OK;
}

static bool compile_until(struct running *running) {
    const char *until = running->plan->until;
    if (until == NULL) return true;
    running->looking = regcomp(&running->until, until, REG_EXTENDED | REG_NOSUB) == 0;
    if (!running->looking) (void)ui_usage("fit", "vram: --until: invalid regular expression '%s'", until);
    return running->looking;
}

static bool compile_printed(struct running *running) {
    const char *printed = running->plan->printed;
    if (printed == NULL) return true;
    running->reads_numbers = regcomp(&running->printed, printed, REG_EXTENDED) == 0;
    if (running->reads_numbers && running->printed.re_nsub > 0) return true;
    (void)ui_usage("fit",
                   running->reads_numbers ? "vram: --printed: '%s' has no group in parentheses for the number"
                                          : "vram: --printed: invalid regular expression '%s'",
                   printed);
    return false;
}

static void release_patterns(struct running *running) {
    if (running->looking) regfree(&running->until);
    if (running->reads_numbers) regfree(&running->printed);
}

static bool make_counts(struct running *running) {
    return sim_counts_make(&running->control, "fit", "VRAM_FIT_CONTROL", sizeof(struct fit_control), FIT_CONTROL_MAGIC) &&
           sim_reads_begin(&running->reads) && sim_missing_begin(&running->missing) && sim_calls_begin(&running->calls);
}

int fit_run(const struct fit_plan *plan, struct fit_run *run) {
    struct running running = {.plan = plan, .run = run};
    *run = (struct fit_run){.ending = FIT_ENDED};
    int code = CLI_BAD_INPUT;
    if (!compile_until(&running) || !compile_printed(&running)) {
        release_patterns(&running);
        return CLI_USAGE;
    }
    if (!run_library_find(&running.library)) running.library.path[0] = '\0'; // without it, PyTorch is still recorded
    if (!fit_folder_make(run) || (running.library.path[0] != '\0' && !run_library_open(&running.library)))
        ui_say("vram fit: cannot create a temporary folder: %s", strerror(errno));
    else if (make_counts(&running))
        code = run_program(&running);
    sim_counts_end(&running.control);
    sim_counts_end(&running.reads);
    sim_counts_end(&running.missing);
    sim_counts_end(&running.calls);
    run_library_close(&running.library);
    release_patterns(&running);
    if (code != CLI_OK) fit_run_release(run);
    return code;
}

void fit_run_release(struct fit_run *run) {
    fit_folder_remove(run);
    for (size_t i = 0; i < run->process_count; i++) free(run->processes[i].path);
    free(run->processes);
    free(run->holdings);
    free(run->contexts);
    free(run->reads);
    free(run->missing);
    free(run->sizes);
    *run = (struct fit_run){.ending = FIT_ENDED};
}

int fit_run_recording(const struct fit_process *process, struct vram_recording **recording) {
    struct input_facts facts = {0};
    return process->whole_program ? input_named_recording(process->path, recording, &facts)
                                  : input_recording(process->path, recording, &facts);
}
