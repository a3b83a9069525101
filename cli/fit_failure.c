#include "fit_failure.h"

#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../simulator/standins/common/own_runtime.h"
#include "../simulator/standins/common/read_values.h"
#include "fit_run.h"
#include "base/json_rows.h"
#include "ui.h"

// Reads the first frame of *stack and advances *stack to the next. Returns false at the end.
static bool fit_frame_next(const char **stack, struct fit_frame *frame) {
    static const char between[] = " at ";
    char text[FIT_FRAME_CAPACITY];
    const size_t length = strcspn(*stack, "\n");
    if (length == 0) return false;
    (void)snprintf(text, sizeof text, "%.*s", (int)length, *stack);
    *stack += length + ((*stack)[length] == '\n');
    *frame = (struct fit_frame){.line = 0};
    char *at = strstr(text, between), *colon = at == NULL ? NULL : strrchr(at, ':');
    if (colon != NULL) {
        *at = *colon = '\0';
        frame->line = (unsigned)strtoul(colon + 1, NULL, 10);
        (void)snprintf(frame->file, sizeof frame->file, "%s", at + sizeof between - 1);
    }
    (void)snprintf(frame->function, sizeof frame->function, "%s", text);
    return true;
}

// Returns whether the frame belongs to Python, a package or adapters/fit rather than to the program.
static bool fit_frame_is_installed(const struct fit_frame *frame) {
    static const char *const folders[] = {"/site-packages/", "/dist-packages/", "/lib/python", "<frozen", "/vram_fit_"};
    const char *file = frame->line != 0 ? frame->file : frame->function;
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++)
        if (strstr(file, folders[i]) != NULL) return true;
    return false;
}

bool fit_frame_of_program(const char *stack, struct fit_frame *frame) {
    while (fit_frame_next(&stack, frame))
        if (!fit_frame_is_installed(frame)) return true;
    return false;
}

bool fit_frame_own(const char *stack, struct fit_frame *frame) {
    return fit_frame_of_program(stack, frame) || fit_frame_next(&stack, frame);
}

void fit_frame_site(const struct fit_frame *frame, char *site, size_t capacity) {
    if (frame->line != 0)
        (void)snprintf(site, capacity, "%s:%u:%s", frame->file, frame->line, frame->function);
    else
        (void)snprintf(site, capacity, "%s", frame->function);
}

const char *fit_site_short(const char *site) {
    const char *start = site, *end = strchr(site, ':');
    size_t slashes = 0;
    for (const char *at = end == NULL ? site + strlen(site) : end; at > site && slashes < 2; at--)
        if (at[-1] == '/' && ++slashes == 2) start = at;
    return start;
}

#define NEAR_LINES 5 // most lines from a read to the line that failed, in one function

bool fit_failure_fact(struct fit_failure *failure, const char *line) {
    if (strncmp(line, "failed ", 7) == 0) {
        (void)snprintf(failure->what, sizeof failure->what, "%s", line + 7);
        return true;
    }
    if (sscanf(line, "failed_at %" SCNd64, &failure->time_us) == 1) return true;
    if (strcmp(line, "failed_in thread") == 0) {
        failure->in_thread = true;
        return true;
    }
    if (strncmp(line, "frame ", 6) != 0) return false;
    const size_t used = strlen(failure->frames);
    if (used + strlen(line + 6) + 2 <= sizeof failure->frames) (void)sprintf(failure->frames + used, "%s\n", line + 6);
    return true;
}

bool fit_run_failed(const struct fit_run *run) {
    return run->ending == FIT_FAILED || run->ending == FIT_INTERRUPTED || run->ending == FIT_REFUSED || run->ending == FIT_HANGS ||
           run->ending == FIT_ABSENT;
}

const struct fit_failure *fit_failure_of(const struct fit_run *run) {
    const struct fit_process *first = NULL;
    for (size_t i = 0; i < run->process_count; i++) {
        const struct fit_process *process = &run->processes[i];
        if (process->failure.what[0] == '\0' || (run->absent.any && process->rank != run->absent.rank)) continue;
        const int64_t at = process->failure.time_us;
        if (first == NULL || at < first->failure.time_us || (at == first->failure.time_us && process->rank < first->rank)) first = process;
    }
    return first == NULL ? NULL : &first->failure;
}

// --- the failure and its place ------------------------------------------------------------------------------------------------------

static bool has_steps(const struct fit_run *run) {
    for (size_t i = 0; i < run->holding_count; i++)
        if (!run->holdings[i].process->whole_program) return true;
    return run->began;
}

static void say_what(const struct fit_run *run, char *text, size_t capacity) {
    if (run->ending == FIT_TIME)
        (void)snprintf(text, capacity, "The time of --for was over");
    else if (run->signal == SIGINT)
        (void)snprintf(text, capacity, "The program was interrupted");
    else if (run->signal != 0)
        (void)snprintf(text, capacity, "The program was terminated (signal %d)", run->signal);
    else if (run->exit_code > 128 && run->exit_code < 128 + 65)
        (void)snprintf(text, capacity, "The program was killed (signal %d)", run->exit_code - 128);
    else
        (void)snprintf(text, capacity, "The program failed");
}

static void say_when(const struct fit_run *run, char *text, size_t capacity) {
    if (run->steps > 0)
        (void)snprintf(text, capacity, " after %" PRIu64 " %s", run->steps, run->steps == 1 ? "step" : "steps");
    else
        (void)snprintf(text, capacity, "%s", has_steps(run) ? " before its first step ended" : "");
}

void fit_failure_site(const struct fit_failure *failure, char *site, size_t capacity) {
    struct fit_frame frame;
    site[0] = '\0';
    if (failure != NULL && fit_frame_own(failure->frames, &frame)) fit_frame_site(&frame, site, capacity);
}

// Appends which rank ended early, for which the others may wait.
static void append_left(const struct fit_run *run, char *text, size_t capacity) {
    const size_t used = strlen(text);
    (void)snprintf(text + used, capacity - used, ". Rank %" PRIu64 " had ended before it used a device", run->left_rank);
}

// Appends the last line of output, which says more than the exit code if the program is not in Python.
static void append_last_line(const struct fit_run *run, char *text, size_t capacity) {
    const size_t used = strlen(text);
    (void)snprintf(text + used, capacity - used, ". Its last line of output: %s", run->last_line);
}

bool fit_failure_rank(const struct fit_run *run, const struct fit_failure *failure, uint64_t *rank) {
    uint64_t highest = 0;
    *rank = 0;
    for (size_t i = 0; i < run->process_count; i++) {
        if (&run->processes[i].failure == failure) *rank = run->processes[i].rank;
        if (run->processes[i].rank > highest) highest = run->processes[i].rank;
    }
    return highest > 0;
}

void fit_failure_text(const struct fit_run *run, char *text, size_t capacity) {
    uint64_t rank;
    char what[80], on_rank[40] = "", when[60], site[FIT_SITE_MOST], code[40] = "";
    const struct fit_failure *failure = fit_failure_of(run);
    if (run->ending == FIT_REFUSED) {
        (void)snprintf(text, capacity, "%s", run->refused);
        return;
    }
    if (run->ending == FIT_HANGS) {
        fit_unanswered_text(&run->unanswered, text, capacity);
        return;
    }
    if (run->ending == FIT_ABSENT) {
        fit_absent_text(run, text, capacity);
        return;
    }
    say_what(run, what, sizeof what);
    say_when(run, when, sizeof when);
    fit_failure_site(failure, site, sizeof site);
    const bool ended = run->signal != 0 || run->ending == FIT_TIME; // by a signal of ours or of the user
    const bool why = !ended && failure != NULL;
    if (why && fit_failure_rank(run, failure, &rank)) (void)snprintf(on_rank, sizeof on_rank, " on rank %" PRIu64, rank);
    const bool reported = !why && !ended && run->launchers_word.any; // more than the launcher's own exit code says
    if (!why && !ended && !reported && run->exit_code <= 128) (void)snprintf(code, sizeof code, " (exit code %d)", run->exit_code);
    (void)snprintf(text, capacity, "%s%s%s%s%s%s%s%s", what, on_rank, when, code, site[0] == '\0' ? "" : ", at ", fit_site_short(site),
                   why ? ": " : "", why ? failure->what : "");
    if (reported) fit_launchers_word_append(&run->launchers_word, text, capacity);
    if (run->left && !reported) append_left(run, text, capacity);
    if (code[0] != '\0' && run->last_line[0] != '\0') append_last_line(run, text, capacity);
}

// --- free memory ----------------------------------------------------------------------------------------------------------------------

const char *fit_free_read(const struct fit_run *run) {
    for (size_t i = 0; i < run->process_count; i++)
        if (run->processes[i].free_read[0] != '\0') return run->processes[i].free_read;
    return NULL;
}

// --- values it read -----------------------------------------------------------------------------------------------------------------

// Returns how many lines after the read the program failed; INT_MAX if it failed elsewhere. A failure inside a function counts only if the
// read is on the line that calls the function.
static int lines_between(const struct sim_read_place *place, const struct fit_failure *failure) {
    struct fit_frame own, read, failed;
    int least = INT_MAX;
    if (!fit_frame_own(failure->frames, &own)) return INT_MAX;
    for (const char *at = place->text; fit_frame_next(&at, &read);)
        for (const char *other = failure->frames; fit_frame_next(&other, &failed);) {
            if (read.line == 0 || strcmp(read.file, failed.file) != 0 || strcmp(read.function, failed.function) != 0) continue;
            const bool is_own = failed.line == own.line && strcmp(failed.file, own.file) == 0;
            const int lines = (int)failed.line - (int)read.line;
            if (lines >= 0 && lines <= (is_own ? NEAR_LINES : 0) && lines < least) least = lines;
        }
    return least;
}

static const struct sim_read_place *find_read(const struct fit_run *run) {
    const struct fit_failure *failure = fit_failure_of(run);
    const struct sim_read_place *nearest = NULL;
    int least = INT_MAX;
    for (size_t i = 0; failure != NULL && i < run->read_count; i++) {
        const int lines = lines_between(&run->reads[i], failure);
        if (lines >= least) continue;
        least = lines;
        nearest = &run->reads[i];
    }
    return nearest;
}

// Returns the value to try for a read. A read of four bytes that is not a count is usually a float.
static const char *value_of(const struct sim_read_place *place) {
    const uint64_t bytes = place->unwritten_bytes + place->passed_bytes + place->not_kept_bytes;
    return place->calls != 0 && bytes == 4 * place->calls ? "f32:1" : "1";
}

bool fit_failure_try(const struct fit_run *run, char *option, size_t capacity, char *site, size_t site_capacity) {
    const struct sim_read_place *place = run->ending == FIT_FAILED ? find_read(run) : NULL;
    struct fit_frame frame;
    if (place == NULL || !fit_frame_own(place->text, &frame) || frame.line == 0) return false;
    fit_frame_site(&frame, site, site_capacity);
    if (vr_read_operations_count(place->operation))
        (void)snprintf(option, capacity, "--nonzero 50%%");
    else
        (void)snprintf(option, capacity, "--value '%s:%u=%s'", fit_site_short(frame.file), frame.line, value_of(place));
    return true;
}

#define FIT_FAILURE_FACTS(X)                                                                                                               \
    X(TEXT, "text", text, ALWAYS, "the failure as a sentence")                                                                             \
    X(TEXT, "exception", failure == NULL ? "" : failure->what, ALWAYS, "type and message; empty: not known")                               \
    X(TEXT, "site", site, ALWAYS, "place in the program that raised it")                                                                   \
    X(I64, "signal",                                                                                                                       \
      it->signal != 0       ? it->signal                                                                                                   \
      : it->exit_code > 128 ? it->exit_code - 128                                                                                          \
                            : 0,                                                                                                           \
      ALWAYS, "signal that ended the program; 0: none")                                                                                    \
    X(TEXT, "try", tried ? option : "", ALWAYS, "option that supplies the value that the program read just before; empty: none")

void fit_failure_json(struct vr_json *json, const struct fit_run *it) {
    char site[FIT_SITE_MOST], place[sizeof site], option[FIT_FRAME_CAPACITY + 60], text[2000];
    const struct fit_failure *failure = fit_failure_of(it);
    if (!fit_run_failed(it)) {
        vr_json_null(json, "failure");
        return;
    }
    fit_failure_text(it, text, sizeof text);
    fit_failure_site(failure, site, sizeof site);
    if (it->ending == FIT_HANGS) (void)snprintf(site, sizeof site, "%s", it->unanswered.site);
    const bool tried = fit_failure_try(it, option, sizeof option, place, sizeof place);
    vr_json_object(json, "failure");
    FIT_FAILURE_FACTS(VR_FACT_JSON)
    vr_json_object_end(json);
}

const char *fit_unreached_module(const struct fit_run *run) {
    for (size_t i = 0; i < run->missing_count; i++) {
        const struct sim_wanted *row = &run->missing[i];
        if (strcmp(row->function, VR_OWN_RUNTIME_CALL) == 0 && !vr_own_runtime_needs_no_driver(row->module)) return row->module;
    }
    return NULL;
}

bool fit_unreached_text(const struct fit_run *run, bool whole, char *text, size_t capacity) {
    const char *module = fit_unreached_module(run);
    if (module == NULL) return false;
    const char *slash = strrchr(module, '/');
    const bool went_on = whole && run->exit_code == 0 && run->signal == 0;
    (void)snprintf(text, capacity,
                   "%s is linked statically against NVIDIA's runtime, which only accepts NVIDIA's driver and found no device: %s. %s",
                   slash == NULL ? module : slash + 1,
                   went_on ? "the program continued on the CPU, without a device" : "the answer does not cover what it does on a GPU",
                   vr_own_runtime_advice(module));
    return true;
}
