// Records this process's calls for the comparison of ranks (common/rank_calls.h).
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "../common/rank_calls.h"
#include "../common/shared_file.h"
#include "nccl.h"

static pthread_once_t once = PTHREAD_ONCE_INIT;
static struct vr_rank_calls_file *file; // NULL: not recording

static void open_file(void) { file = vr_shared_file("VRAM_SIM_CALLS", sizeof *file, VR_RANK_CALLS_MAGIC); }

static bool is_recording(void) {
    (void)pthread_once(&once, open_file);
    return file != NULL;
}

// --- places -------------------------------------------------------------------------------------------------------------------------
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct { uint32_t stack, place; } known[VR_RANK_CALLS_PLACES]; // of this process; guarded by `lock`
static size_t known_count;

static uint32_t new_place(uint32_t stack) {
    const uint64_t index = atomic_fetch_add(&file->places_used, 1);
    if (index >= VR_RANK_CALLS_PLACES) return 0;
    standin_stack_text(stack, file->places[index].text, sizeof file->places[index].text);
    return (uint32_t)index + 1;
}

static uint32_t place_of(uint32_t stack) {
    uint32_t place = 0;
    if (stack == 0) return 0;
    (void)pthread_mutex_lock(&lock);
    size_t i = 0;
    while (i < known_count && known[i].stack != stack) i++;
    if (i < known_count) {
        place = known[i].place;
    } else if (known_count < VR_RANK_CALLS_PLACES) {
        place = new_place(stack);
        known[known_count].stack = stack;
        known[known_count++].place = place;
    }
    (void)pthread_mutex_unlock(&lock);
    return place;
}

// --- rows ---------------------------------------------------------------------------------------------------------------------------
static struct vr_rank_calls_row *new_row(const struct nccl_comm *comm, enum vr_rank_calls_kind kind, int peer) {
    const uint64_t index = atomic_fetch_add(&file->used, 1);
    if (index >= VR_RANK_CALLS_ROWS) return NULL;
    struct vr_rank_calls_row *row = &file->rows[index];
    row->kind = (int32_t)kind;
    row->rank = comm->rank;
    row->peer = peer;
    row->process = (int32_t)getpid();
    row->rank_count = comm->rank_count;
    (void)snprintf(row->communicator, sizeof row->communicator, "%s", comm->name);
    atomic_store(&row->ready, 1);
    return row;
}

static struct vr_rank_calls_row *row_of(struct nccl_comm *comm, const struct nccl_call *call) {
    if (!nccl_is_message(call)) return comm->collectives;
    struct vr_rank_calls_row ***rows = call->kind == NCCL_SEND ? &comm->sends : &comm->receives;
    if (*rows == NULL) *rows = calloc((size_t)comm->rank_count, sizeof **rows);
    if (*rows == NULL || !nccl_runs(comm, call->root)) return NULL;
    struct vr_rank_calls_row **row = &(*rows)[call->root];
    if (*row == NULL) *row = new_row(comm, call->kind == NCCL_SEND ? VR_RANK_SENDS : VR_RANK_RECEIVES, call->root);
    return *row;
}

void nccl_note_join(struct nccl_comm *comm) {
    if (is_recording()) comm->collectives = new_row(comm, VR_RANK_COLLECTIVES, -1);
}

// --- order --------------------------------------------------------------------------------------------------------------------------
// A send can end before its receive begins if NCCL's buffers hold the message: 4 MiB for each of at most 64 channels, unless the user sets
// their size (NVIDIA's page of environment variables: NCCL_BUFFSIZE, NCCL_MAX_CTAS).
enum { MOST_CHANNELS = 64, BUFFER_BYTES = 4 << 20 };
enum { LEGACY_STREAM = 1, THREAD_STREAM = 2 }; // handles of the default streams; 0 is one of both

static bool exceeds_buffers(const struct nccl_call *call) {
    const char *text = getenv("NCCL_BUFFSIZE");
    const uint64_t buffer = text == NULL ? BUFFER_BYTES : strtoull(text, NULL, 10);
    return call->count / MOST_CHANNELS > buffer / nccl_width(call->type);
}

// Returns whose calls have to begin before this one can end. A root that only gives data may end before the others begin, and a rank that
// only gives data before the root.
static int32_t waits_for(const struct nccl_call *call) {
    const bool is_root = call->root == call->comm->rank;
    switch (call->kind) {
    case NCCL_SEND: return exceeds_buffers(call) ? call->root : VR_RANK_WAITS_FOR_NONE;
    case NCCL_RECEIVE: return call->root;
    case NCCL_BROADCAST:
    case NCCL_SCATTER: return is_root ? VR_RANK_WAITS_FOR_NONE : call->root;
    case NCCL_REDUCE:
    case NCCL_GATHER: return is_root ? VR_RANK_WAITS_FOR_ALL : VR_RANK_WAITS_FOR_NONE;
    default: return VR_RANK_WAITS_FOR_ALL;
    }
}

// Returns a number for the stream, whose calls run in their order; 0 if the call does not wait for earlier ones, or may not.
static uint64_t order_of(const struct nccl_call *call) {
    if (call->kind == NCCL_SPLIT || call->captured || call->stream == THREAD_STREAM) return 0;
    return call->stream <= LEGACY_STREAM ? call->comm->context : call->stream;
}

static void queue_call(const struct nccl_call *call, const struct vr_rank_calls_row *row, const struct vr_rank_call *noted) {
    const uint64_t index = atomic_fetch_add(&file->queued_used, 1);
    if (index >= VR_RANK_CALLS_QUEUED) return;
    struct vr_rank_queued *queued = &file->queued[index];
    queued->waits_for = waits_for(call);
    queued->stream = order_of(call);
    queued->group = call->group;
    queued->call = *noted;
    atomic_store(&queued->row, (uint32_t)(row - file->rows) + 1);
}

void nccl_note_call(const struct nccl_call *call) {
    struct vr_rank_calls_row *row = is_recording() ? row_of(call->comm, call) : NULL;
    struct timespec now;
    if (row == NULL) return;
    (void)clock_gettime(CLOCK_REALTIME, &now);
    struct vr_rank_call *noted = &row->last[call->number % VR_RANK_CALLS_LAST];
    atomic_store(&noted->number, 0);
    noted->count = call->count;
    noted->time_us = (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
    noted->place = place_of(standin_stack());
    (void)snprintf(noted->name, sizeof noted->name, "%s", nccl_kinds[call->kind].name);
    (void)snprintf(noted->type, sizeof noted->type, "%s", nccl_type_name(call->type));
    atomic_store(&noted->number, call->number);
    queue_call(call, row, noted);
    atomic_store(&row->count, call->number);
}
