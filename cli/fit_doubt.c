#include "fit_doubt.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "fit_failure.h"
#include "fit_print.h"
#include "fit_run.h"
#include "ui.h"

#define WHO_CAPACITY 40
#define WHAT_MOST    60 // bytes of an exception in the answer's first lines

// Returns whether the program completed, or was stopped between its steps. The workers of engines may fail when these are ended.
static bool went_well(const struct fit_run *run) {
    return !fit_run_failed(run) && run->ending != FIT_READY && run->ending != FIT_SERVED && run->ending != FIT_PLAYED;
}

bool fit_part_failed(const struct fit_run *run) { return went_well(run) && fit_failure_of(run) != NULL; }

static uint64_t memory_errors(const struct fit_run *run) {
    uint64_t count = 0;
    for (size_t i = 0; i < run->holding_count && went_well(run); i++) count += run->holdings[i].ooms;
    return count;
}

bool fit_adapts(const struct fit_run *run) { return memory_errors(run) > 0; }

bool fit_lacks_rank(const struct fit_run *run) { return run->behind.any || (run->left && run->ending == FIT_TIME); }

bool fit_is_general(const struct fit_run *run) {
    return !fit_run_failed(run) && !fit_part_failed(run) && !fit_adapts(run) && !fit_lacks_rank(run);
}

// --- a rank that fell behind ----------------------------------------------------------------------------------------------------------

#define BEHIND_US    5000000 // least time without a step
#define BEHIND_STEPS 3       // least number of usual steps in this time

// Returns the average time of a process's steps; 0: it has ended none.
static int64_t step_us(const struct fit_process *process) {
    return process->steps == 0 ? 0 : (process->last_step_us - process->begun_us) / (int64_t)process->steps;
}

// Ranks do not wait for each other's data here, so one may have ended fewer steps than another and go on.
static bool is_behind(const struct fit_process *process, const struct fit_process *other) {
    const int64_t since_us = process->ended_us - (process->steps == 0 ? process->begun_us : process->last_step_us);
    const int64_t usual_us = step_us(process) > step_us(other) ? step_us(process) : step_us(other);
    return process->torch[0] != '\0' && process->steps < other->steps && since_us > BEHIND_US && since_us > BEHIND_STEPS * usual_us;
}

// Finds a rank whose main process runs and has used no device.
static bool find_unused(const struct fit_run *run, uint64_t *rank) {
    char name[300];
    DIR *entries = NULL;
    bool found = false;
    while (fit_folder_next(run, ".rank", &entries, name, sizeof name)) {
        uint64_t own;
        bool used = false;
        if (!fit_joining_rank(run, name, &own) || (found && *rank < own)) continue;
        for (size_t i = 0; i < run->process_count; i++) used = used || run->processes[i].rank == own;
        if (used) continue;
        *rank = own;
        found = true;
    }
    return found;
}

void fit_behind_find(struct fit_run *run) {
    const struct fit_process *first = NULL, *last = NULL;
    struct fit_behind *behind = &run->behind;
    if (run->ending != FIT_TIME || run->holding_count == 0 || run->left) return;
    behind->any = behind->used_none = find_unused(run, &behind->rank);
    if (behind->any) return;
    for (size_t i = 0; i < run->process_count; i++)
        if (first == NULL || run->processes[i].steps > first->steps) first = &run->processes[i];
    for (size_t i = 0; i < run->process_count; i++) {
        const struct fit_process *process = &run->processes[i];
        if (process->rank == first->rank || !is_behind(process, first)) continue;
        if (last == NULL || process->steps < last->steps) last = process;
    }
    if (last == NULL) return;
    const int64_t since_us = last->ended_us - (last->steps == 0 ? last->begun_us : last->last_step_us);
    *behind = (struct fit_behind){.any = true,
                                  .rank = last->rank,
                                  .steps = last->steps,
                                  .other_rank = first->rank,
                                  .other_steps = first->steps,
                                  .seconds = (uint64_t)since_us / 1000000};
}

static void behind_text(const struct fit_run *run, char *text, size_t capacity) {
    const struct fit_behind *behind = &run->behind;
    if (run->left)
        (void)snprintf(text, capacity, "rank %" PRIu64 " had ended before it used a device, and the others may have waited for it",
                       run->left_rank);
    else if (behind->used_none)
        (void)snprintf(text, capacity, "rank %" PRIu64 " had used no device when the time of --for had passed", behind->rank);
    else
        (void)snprintf(text, capacity,
                       "rank %" PRIu64 " fell behind: it ended no step in the last %" PRIu64 " s; it had ended %" PRIu64
                       ", and rank %" PRIu64 " %" PRIu64,
                       behind->rank, behind->seconds, behind->steps, behind->other_rank, behind->other_steps);
}

// --- a part that failed -----------------------------------------------------------------------------------------------------------------

static const char *who_failed(const struct fit_run *run, const struct fit_failure *failure, char who[WHO_CAPACITY]) {
    uint64_t rank;
    if (!fit_failure_rank(run, failure, &rank)) return failure->in_thread ? "a thread" : "a child process";
    (void)snprintf(who, WHO_CAPACITY, "%srank %" PRIu64, failure->in_thread ? "a thread of " : "", rank);
    return who;
}

const char *fit_went_on_text(const struct fit_run *run, char *text, size_t capacity) {
    char site[FIT_SITE_MOST], who[WHO_CAPACITY];
    const uint64_t errors = memory_errors(run);
    if (fit_part_failed(run)) {
        const struct fit_failure *failure = fit_failure_of(run);
        fit_failure_site(failure, site, sizeof site);
        (void)snprintf(text, capacity, "%s ended with %s%s%s, and the rest went on: what it would have used later is not covered",
                       who_failed(run, failure, who), failure->what, site[0] == '\0' ? "" : ", at ", fit_site_short(site));
        return text;
    }
    if (errors == 0) return NULL;
    (void)snprintf(text, capacity,
                   "the program went on after %" PRIu64
                   " memory %s, so it may do something else where there is more or less memory (--each "
                   "runs it on each card)",
                   errors, errors == 1 ? "error" : "errors");
    return text;
}

static void raised_text(const struct fit_run *run, char *text, size_t capacity) {
    char site[FIT_SITE_MOST], who[WHO_CAPACITY];
    const struct fit_failure *failure = fit_failure_of(run);
    size_t length = strlen(failure->what);
    const bool is_long = length > WHAT_MOST;
    if (is_long) length = WHAT_MOST;
    while (length > 0 && ((unsigned char)failure->what[length] & 0xC0) == 0x80) length--; // between characters
    fit_failure_site(failure, site, sizeof site);
    (void)snprintf(text, capacity, "%s raised %.*s%s%s%s", who_failed(run, failure, who), (int)length, failure->what, is_long ? "..." : "",
                   site[0] == '\0' ? "" : ", at ", fit_site_short(site));
}

// --- the reason -------------------------------------------------------------------------------------------------------------------------

static bool is_in_doubt(const struct fit_answer *answer) {
    const struct fit_verdict *verdict = answer->verdict;
    bool any = answer->unsure;
    for (size_t i = 0; i < verdict->card_count && answer->limit_bytes == UINT64_MAX; i++)
        any = any || (verdict->cards[i].asked && verdict->cards[i].unsure);
    return any && !fit_run_failed(answer->run);
}

const char *fit_doubt_text(const struct fit_answer *answer, char *text, size_t capacity) {
    const struct fit_run *run = answer->run;
    char size[UI_SIZE_CAPACITY];
    if (!is_in_doubt(answer)) return NULL;
    if (fit_lacks_rank(run))
        behind_text(run, text, capacity);
    else if (fit_part_failed(run))
        raised_text(run, text, capacity);
    else if (fit_adapts(run))
        (void)snprintf(text, capacity, "the program caught %s", memory_errors(run) == 1 ? "a memory error" : "memory errors");
    else
        (void)snprintf(text, capacity, "sizes that are not known may take %s more", ui_size(answer->stake_bytes, size));
    return text;
}
