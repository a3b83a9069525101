#include "fit_circle.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../simulator/standins/common/rank_calls.h"
#include "fit_failure.h"
#include "fit_run.h"
#include "base/text.h"

#define NAMED_MOST 4 // ranks of a circle

struct circle_call {
    const struct vr_rank_queued *queued;
    const struct vr_rank_calls_row *row;
    size_t queue;              // index; NO_QUEUE: it waits for no earlier call
    size_t match, match_count; // where its matching calls are in `matched`, with itself
};
#define NO_QUEUE SIZE_MAX

// The calls of a stream, of which those in [begun, begun_end) have begun and not ended: a group.
struct queue {
    size_t end, begun, begun_end;
    bool is_visited;
};

struct calls {
    struct circle_call *calls; // by process, stream and time
    size_t count;
    struct circle_call **matched; // by communicator, kind and number
    struct queue *queues;
    size_t queue_count;
};

// --- reading --------------------------------------------------------------------------------------------------------------------------

static int order_of(uint64_t a, uint64_t b) { return (a > b) - (a < b); }

static int by_stream(const void *a, const void *b) {
    const struct circle_call *one = a, *other = b;
    if (one->row->process != other->row->process) return one->row->process < other->row->process ? -1 : 1;
    if (one->queued->stream != other->queued->stream) return order_of(one->queued->stream, other->queued->stream);
    return one->queued < other->queued ? -1 : one->queued > other->queued;
}

// Messages from one rank to another are numbered on both sides; collectives by communicator.
static int compare_match(const struct circle_call *one, const struct circle_call *other) {
    const struct vr_rank_calls_row *a = one->row, *b = other->row;
    const int order = strcmp(a->communicator, b->communicator);
    const bool messages[] = {a->kind != VR_RANK_COLLECTIVES, b->kind != VR_RANK_COLLECTIVES};
    if (order != 0 || messages[0] != messages[1]) return order != 0 ? order : messages[0] ? 1 : -1;
    if (messages[0]) {
        const int from[] = {a->kind == VR_RANK_SENDS ? a->rank : a->peer, b->kind == VR_RANK_SENDS ? b->rank : b->peer};
        const int to[] = {a->kind == VR_RANK_SENDS ? a->peer : a->rank, b->kind == VR_RANK_SENDS ? b->peer : b->rank};
        if (from[0] != from[1]) return from[0] < from[1] ? -1 : 1;
        if (to[0] != to[1]) return to[0] < to[1] ? -1 : 1;
    }
    return order_of(atomic_load(&one->queued->call.number), atomic_load(&other->queued->call.number));
}

static int by_match(const void *a, const void *b) {
    return compare_match(*(struct circle_call *const *)a, *(struct circle_call *const *)b);
}

static void read_calls(const struct vr_rank_calls_file *file, struct calls *all) {
    const uint64_t used = atomic_load(&file->queued_used);
    for (size_t i = 0; i < used && i < VR_RANK_CALLS_QUEUED; i++) {
        const uint32_t row = atomic_load(&file->queued[i].row);
        if (row == 0 || row > VR_RANK_CALLS_ROWS || !fit_calls_sound(&file->rows[row - 1])) continue;
        all->calls[all->count++] = (struct circle_call){.queued = &file->queued[i], .row = &file->rows[row - 1], .queue = NO_QUEUE};
    }
    qsort(all->calls, all->count, sizeof *all->calls, by_stream);
}

static void find_matches(struct calls *all) {
    for (size_t i = 0; i < all->count; i++) all->matched[i] = &all->calls[i];
    qsort(all->matched, all->count, sizeof(struct circle_call *), by_match);
    for (size_t first = 0, end; first < all->count; first = end) {
        for (end = first; end < all->count && compare_match(all->matched[first], all->matched[end]) == 0;) end++;
        for (size_t i = first; i < end; i++) {
            all->matched[i]->match = first;
            all->matched[i]->match_count = end - first;
        }
    }
}

// --- progress -------------------------------------------------------------------------------------------------------------------------

static size_t group_end(const struct calls *all, size_t first, size_t end) {
    size_t i = first;
    while (i < end && all->calls[i].queued->group == all->calls[first].queued->group) i++;
    return i;
}

static void make_queues(struct calls *all) {
    for (size_t first = 0, end; first < all->count; first = end) {
        const struct circle_call *call = &all->calls[first];
        for (end = first; end < all->count && all->calls[end].row->process == call->row->process &&
                          all->calls[end].queued->stream == call->queued->stream;)
            end++;
        if (call->queued->stream == 0) continue;
        for (size_t i = first; i < end; i++) all->calls[i].queue = all->queue_count;
        all->queues[all->queue_count++] = (struct queue){.end = end, .begun = first, .begun_end = group_end(all, first, end)};
    }
}

static bool has_begun(const struct calls *all, const struct circle_call *call) {
    return call->queue == NO_QUEUE || (size_t)(call - all->calls) < all->queues[call->queue].begun_end;
}

// Returns a call that has not begun and that this one waits for; NULL if it can end.
static const struct circle_call *waits_for(const struct calls *all, const struct circle_call *call) {
    const int32_t wanted = call->queued->waits_for;
    if (wanted == VR_RANK_WAITS_FOR_NONE) return NULL;
    for (size_t i = call->match; i < call->match + call->match_count; i++) {
        const struct circle_call *other = all->matched[i];
        const bool is_wanted = other->row->rank != call->row->rank && (wanted == VR_RANK_WAITS_FOR_ALL || other->row->rank == wanted);
        if (is_wanted && !has_begun(all, other)) return other;
    }
    return NULL;
}

// Returns the first call of a queue that has begun and cannot end, or NULL. *on: the call that it waits for.
static const struct circle_call *stuck_call(const struct calls *all, const struct queue *queue, const struct circle_call **on) {
    for (size_t i = queue->begun; i < queue->begun_end; i++) {
        *on = waits_for(all, &all->calls[i]);
        if (*on != NULL) return &all->calls[i];
    }
    return NULL;
}

static bool advance(struct calls *all, struct queue *queue) {
    const struct circle_call *on;
    const size_t before = queue->begun;
    while (queue->begun < queue->end && stuck_call(all, queue, &on) == NULL) {
        queue->begun = queue->begun_end;
        queue->begun_end = group_end(all, queue->begun, queue->end);
    }
    return queue->begun != before;
}

static void run_queues(struct calls *all) {
    for (bool moved = true; moved;) {
        moved = false;
        for (size_t i = 0; i < all->queue_count; i++) moved |= advance(all, &all->queues[i]);
    }
}

// --- the circle -----------------------------------------------------------------------------------------------------------------------

// Returns the queue whose stuck call is the oldest, or NULL.
static struct queue *first_stuck(struct calls *all) {
    struct queue *first = NULL;
    int64_t oldest = INT64_MAX;
    for (size_t i = 0; i < all->queue_count; i++) {
        const struct circle_call *on, *call = stuck_call(all, &all->queues[i], &on);
        if (call == NULL || call->queued->call.time_us >= oldest) continue;
        oldest = call->queued->call.time_us;
        first = &all->queues[i];
    }
    return first;
}

// Follows the calls that wait for each other until a queue comes again. Each stuck queue waits for another one, so one does.
static struct queue *in_circle(struct calls *all, struct queue *queue) {
    while (!queue->is_visited) {
        const struct circle_call *on;
        queue->is_visited = true;
        if (stuck_call(all, queue, &on) == NULL) return NULL;
        queue = &all->queues[on->queue];
    }
    return queue;
}

// Appends "waits in ncclRecv of 256 float32 for rank 1". Returns false if a rank is not known.
static bool append_wait(struct vr_sink *text, const struct fit_run *run, const struct circle_call *call, const struct circle_call *on) {
    const struct vr_rank_call *it = &call->queued->call;
    const struct fit_process *process = fit_calls_process(run, on->row);
    if (process == NULL) return false;
    vr_sink_printf(text, "waits in %.23s of %" PRIu64 " %.15s for rank %" PRIu64, it->name, it->count, it->type, process->rank);
    return true;
}

static bool append_site(struct vr_sink *text, const struct vr_rank_calls_file *file, const struct circle_call *call) {
    char site[600];
    fit_calls_site(file, call->queued->call.place, site, sizeof site);
    if (site[0] == '\0') return false;
    vr_sink_printf(text, " (%s)", fit_site_short(site));
    return true;
}

// Appends a wait for each queue of the circle, with its place from the second on; the first one's is the answer's.
static bool append_circle(struct vr_sink *text, const struct fit_run *run, const struct vr_rank_calls_file *file, struct calls *all,
                          struct queue *first) {
    struct queue *queue = first;
    for (size_t number = 1;; number++) {
        const struct circle_call *on, *call = stuck_call(all, queue, &on);
        if (call == NULL || !append_wait(text, run, call, on)) return false;
        if (number > 1) (void)append_site(text, file, call);
        queue = &all->queues[on->queue];
        if (queue == first) return true;
        vr_sink_printf(text, "%s", number < NAMED_MOST ? ", which " : ", and so on in a circle");
        if (number == NAMED_MOST) return true;
    }
}

static void describe(struct fit_run *run, const struct vr_rank_calls_file *file, struct calls *all, struct queue *first) {
    struct fit_unanswered found = {.any = true};
    struct vr_sink text = vr_sink_begin(found.what, sizeof found.what);
    const struct circle_call *on, *call = stuck_call(all, first, &on);
    const struct fit_process *process = fit_calls_process(run, call->row);
    if (process == NULL) return;
    found.time_us = call->queued->call.time_us;
    vr_sink_printf(&text, "rank %" PRIu64 " ", process->rank);
    if (!append_circle(&text, run, file, all, first)) return;
    fit_calls_site(file, call->queued->call.place, found.site, sizeof found.site);
    if (!run->unanswered.any || found.time_us < run->unanswered.time_us) run->unanswered = found;
}

void fit_circle_find(struct fit_run *run, const struct vr_rank_calls_file *file) {
    const uint64_t used = atomic_load(&file->queued_used);
    const size_t most = used < VR_RANK_CALLS_QUEUED ? (size_t)used : VR_RANK_CALLS_QUEUED;
    struct calls all = {.calls = calloc(most + 1, sizeof *all.calls),
                        .matched = calloc(most + 1, sizeof *all.matched),
                        .queues = calloc(most + 1, sizeof *all.queues)};
    if (all.calls != NULL && all.matched != NULL && all.queues != NULL) {
        read_calls(file, &all);
        find_matches(&all);
        make_queues(&all);
        run_queues(&all);
        struct queue *stuck = first_stuck(&all), *first = stuck == NULL ? NULL : in_circle(&all, stuck);
        if (first != NULL) describe(run, file, &all, first);
    }
    free(all.calls);
    free(all.matched);
    free(all.queues);
}
