#include "fit_unanswered.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fit_circle.h"
#include "fit_failure.h"
#include "fit_run.h"

// A rank's row, the row of the rank that should answer, and the processes of both.
struct pair {
    const struct vr_rank_calls_row *mine, *theirs; // theirs: NULL if that rank never made such a call
    const struct fit_process *caller, *other;
};

// The rows of the file, by communicator, kind, rank and peer.
struct rows {
    const struct vr_rank_calls_file *file;
    const struct vr_rank_calls_row **sorted;
    size_t count;
};

static int by_place(const void *a, const void *b) {
    const struct vr_rank_calls_row *one = *(const struct vr_rank_calls_row *const *)a, *other = *(const struct vr_rank_calls_row *const *)b;
    const int order = strcmp(one->communicator, other->communicator);
    if (order != 0) return order;
    if (one->kind != other->kind) return one->kind < other->kind ? -1 : 1;
    if (one->rank != other->rank) return one->rank < other->rank ? -1 : 1;
    return one->peer < other->peer ? -1 : one->peer > other->peer;
}

bool fit_calls_sound(const struct vr_rank_calls_row *row) {
    return atomic_load(&row->ready) != 0 && row->kind >= VR_RANK_COLLECTIVES && row->kind <= VR_RANK_RECEIVES &&
           memchr(row->communicator, '\0', sizeof row->communicator) != NULL;
}

static bool sort_rows(const struct vr_rank_calls_file *file, struct rows *rows) {
    const uint64_t used = atomic_load(&file->used);
    *rows = (struct rows){.file = file, .sorted = calloc(VR_RANK_CALLS_ROWS, sizeof *rows->sorted)};
    for (size_t i = 0; rows->sorted != NULL && i < used && i < VR_RANK_CALLS_ROWS; i++)
        if (fit_calls_sound(&file->rows[i])) rows->sorted[rows->count++] = &file->rows[i];
    if (rows->count > 0) qsort(rows->sorted, rows->count, sizeof *rows->sorted, by_place);
    return rows->sorted != NULL;
}

static const struct vr_rank_calls_row *find_row(const struct rows *rows, const struct vr_rank_calls_row *of, int kind, int rank, int peer) {
    struct vr_rank_calls_row wanted = {.kind = kind, .rank = rank, .peer = peer};
    memcpy(wanted.communicator, of->communicator, sizeof wanted.communicator);
    const struct vr_rank_calls_row *key = &wanted;
    const struct vr_rank_calls_row **found =
        rows->count == 0 ? NULL : bsearch(&key, rows->sorted, rows->count, sizeof *rows->sorted, by_place);
    return found == NULL ? NULL : *found;
}

const struct fit_process *fit_calls_process(const struct fit_run *run, const struct vr_rank_calls_row *row) {
    for (size_t i = 0; row != NULL && i < run->process_count; i++)
        if (run->processes[i].id == row->process) return &run->processes[i];
    return NULL;
}

static bool is_whole(const struct fit_run *run, const struct fit_process *process) {
    return run->ending == FIT_ENDED && strcmp(process->ended, "exit") == 0;
}

// Returns whether the other rank will not answer a call any more: it has ended, or ended the step of the call and a further one. Ranks do
// not wait for each other's data here, so their clocks say nothing.
static bool is_final(const struct fit_run *run, const struct pair *pair, int64_t time_us) {
    return is_whole(run, pair->other) || (time_us < pair->caller->stepped_us && pair->other->steps >= pair->caller->steps);
}

// Returns the first call that the other rank did not answer, or NULL if it answered all or the call is no longer recorded.
static const struct vr_rank_call *first_unanswered(const struct pair *pair) {
    const uint64_t mine = atomic_load(&pair->mine->count), theirs = pair->theirs == NULL ? 0 : atomic_load(&pair->theirs->count);
    if (mine <= theirs) return NULL;
    const uint64_t oldest = mine > VR_RANK_CALLS_LAST ? mine - VR_RANK_CALLS_LAST + 1 : 1;
    const uint64_t number = theirs + 1 > oldest ? theirs + 1 : oldest;
    const struct vr_rank_call *call = &pair->mine->last[number % VR_RANK_CALLS_LAST];
    return atomic_load(&call->number) == number ? call : NULL;
}

void fit_calls_site(const struct vr_rank_calls_file *file, uint32_t place, char *site, size_t capacity) {
    struct fit_frame frame;
    char text[sizeof file->places[0].text];
    site[0] = '\0';
    if (place == 0 || place > VR_RANK_CALLS_PLACES) return;
    memcpy(text, file->places[place - 1].text, sizeof text);
    text[sizeof text - 1] = '\0';
    if (fit_frame_of_program(text, &frame)) fit_frame_site(&frame, site, capacity);
}

static void describe(const struct vr_rank_calls_file *file, const struct pair *pair, const struct vr_rank_call *call,
                     struct fit_unanswered *found) {
    static const char *const never[] = {"which never calls it", "which never receives them", "which never sends them"};
    *found = (struct fit_unanswered){.any = true, .time_us = call->time_us};
    (void)snprintf(found->what, sizeof found->what, "rank %" PRIu64 " waits in %.23s of %" PRIu64 " %.15s for rank %" PRIu64 ", %s",
                   pair->caller->rank, call->name, call->count, call->type, pair->other->rank, never[pair->mine->kind]);
    fit_calls_site(file, call->place, found->site, sizeof found->site);
}

static void compare(struct fit_run *run, const struct rows *rows, const struct pair *pair) {
    const struct vr_rank_call *call = pair->caller == NULL || pair->other == NULL ? NULL : first_unanswered(pair);
    if (call == NULL || !is_final(run, pair, call->time_us)) return;
    if (!run->unanswered.any || call->time_us < run->unanswered.time_us) describe(rows->file, pair, call, &run->unanswered);
}

static void compare_messages(struct fit_run *run, const struct rows *rows, const struct vr_rank_calls_row *row) {
    const int opposite = row->kind == VR_RANK_SENDS ? VR_RANK_RECEIVES : VR_RANK_SENDS;
    const struct vr_rank_calls_row *joined = find_row(rows, row, VR_RANK_COLLECTIVES, row->peer, -1);
    const struct pair pair = {row, find_row(rows, row, opposite, row->peer, row->rank), fit_calls_process(run, row),
                              fit_calls_process(run, joined)};
    compare(run, rows, &pair);
}

// Compares the collectives of all ranks of a communicator with those of the rank that called the fewest. Returns the number of rows.
static size_t compare_collectives(struct fit_run *run, const struct rows *rows, size_t first) {
    size_t end = first, fewest = first;
    for (; end < rows->count && rows->sorted[end]->kind == VR_RANK_COLLECTIVES &&
           strcmp(rows->sorted[end]->communicator, rows->sorted[first]->communicator) == 0;
         end++)
        if (atomic_load(&rows->sorted[end]->count) < atomic_load(&rows->sorted[fewest]->count)) fewest = end;
    for (size_t i = first; i < end; i++) {
        const struct pair pair = {rows->sorted[i], rows->sorted[fewest], fit_calls_process(run, rows->sorted[i]),
                                  fit_calls_process(run, rows->sorted[fewest])};
        compare(run, rows, &pair);
    }
    return end - first;
}

static bool is_compared(const struct fit_run *run) {
    return run->ending == FIT_ENDED || run->ending == FIT_REPEATS || run->ending == FIT_PLATEAU || run->ending == FIT_STEPS;
}

bool fit_unanswered_find(struct fit_run *run, const struct sim_counts *calls) {
    struct vr_rank_calls_file *file = is_compared(run) && run->process_count > 1 ? sim_calls_read(calls) : NULL;
    struct rows rows;
    if (file != NULL && sort_rows(file, &rows)) {
        for (size_t i = 0; i < rows.count;) {
            if (rows.sorted[i]->kind == VR_RANK_COLLECTIVES)
                i += compare_collectives(run, &rows, i);
            else
                compare_messages(run, &rows, rows.sorted[i++]);
        }
        free(rows.sorted);
    }
    if (file != NULL) fit_circle_find(run, file);
    free(file);
    return run->unanswered.any;
}

void fit_unanswered_text(const struct fit_unanswered *unanswered, char *text, size_t capacity) {
    (void)snprintf(text, capacity, "On GPUs the program would hang: %s%s%s", unanswered->what, unanswered->site[0] == '\0' ? "" : ", at ",
                   fit_site_short(unanswered->site));
}
