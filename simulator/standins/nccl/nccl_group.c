// Groups, and the exported calls. In a group, all calls are posted before any is finished, as in NCCL.
#include <stdlib.h>

#include "nccl.h"

// --- groups ---------------------------------------------------------------------------------------------------------
struct group {
    int depth, result;
    struct nccl_call *calls;
    size_t call_count, call_capacity;
    struct nccl_comm **meetings;
    size_t meeting_count, meeting_capacity;
};
static _Thread_local struct group group;

bool nccl_in_group(void) { return group.depth > 0; }

static bool grow_calls(void **items, size_t *capacity, size_t count, size_t width) {
    if (count < *capacity) return true;
    const size_t more = *capacity == 0 ? 16 : 2 * *capacity;
    void *grown = realloc(*items, more * width);
    if (grown == NULL) return false;
    *items = grown;
    *capacity = more;
    return true;
}

void nccl_meet_later(struct nccl_comm *comm) {
    void *meetings = group.meetings;
    if (!grow_calls(&meetings, &group.meeting_capacity, group.meeting_count, sizeof(struct nccl_comm *))) return;
    group.meetings = meetings;
    group.meetings[group.meeting_count++] = comm;
}

// Returns whether two calls use the same places for payloads: those of a communicator's collectives, of messages to a rank, or of messages
// from a rank do.
static bool share_places(const struct nccl_call *a, const struct nccl_call *b) {
    if (a->comm != b->comm || nccl_is_message(a) != nccl_is_message(b)) return false;
    return !nccl_is_message(a) || (a->kind == b->kind && a->root == b->root);
}

// Returns whether there is a place for the call's payload, given the unfinished calls before it.
static bool call_fits(const struct nccl_call *calls, size_t which) {
    size_t before = 0;
    for (size_t i = 0; i < which; i++) before += calls[i].state != DONE && share_places(&calls[i], &calls[which]);
    return before < NCCL_SLOTS;
}

static int begin_those_that_fit(struct nccl_call *calls, size_t count) {
    int result = NCCL_SUCCESS;
    for (size_t i = 0; i < count && result == NCCL_SUCCESS; i++) {
        if (calls[i].state != PENDING || !call_fits(calls, i)) continue;
        result = nccl_call_begin(&calls[i]);
        calls[i].state = BEGUN;
    }
    return result;
}

static int finish_those_begun(struct nccl_call *calls, size_t count, size_t *done) {
    int result = NCCL_SUCCESS;
    for (size_t i = 0; i < count && result == NCCL_SUCCESS; i++) {
        if (calls[i].state != BEGUN) continue;
        result = nccl_call_finish(&calls[i]);
        calls[i].state = DONE;
        ++*done;
    }
    return result;
}

// If the root of a broadcast does not run, uses the input of its representative's own broadcast in the group. An all-gather may be a group
// of broadcasts, one from each rank, into the output itself.
static void give_for_absent_root(struct nccl_call *call, const struct nccl_call *calls, size_t count) {
    const struct nccl_comm *comm = call->comm;
    if (call->kind != NCCL_BROADCAST || nccl_runs(comm, call->root) || nccl_stands_for(comm, call->root) != comm->rank) return;
    for (size_t i = 0; i < count; i++) {
        const struct nccl_call *own = &calls[i];
        if (own->comm != comm || own->kind != NCCL_BROADCAST || own->root != comm->rank) continue;
        if (own->type == call->type && own->count == call->count) call->from = own->from;
    }
}

// If the sender of a receive does not run, the receive gets what its representative sends to this rank in the group: an all-to-all may be a
// group of messages between all ranks.
static bool gives_to(const struct nccl_call *giver, const struct nccl_call *heir) {
    return giver->kind == NCCL_RECEIVE && giver->comm == heir->comm && giver->root == nccl_stands_for(heir->comm, heir->root) &&
           giver->type == heir->type && giver->count == heir->count;
}

static void receive_for_absent_senders(struct nccl_call *calls, size_t count) {
    struct nccl_call *giver = calls; // usually also that of the next receive
    for (size_t i = 0; i < count; i++) {
        struct nccl_call *call = &calls[i];
        if (call->kind != NCCL_RECEIVE || nccl_runs(call->comm, call->root)) continue;
        for (size_t other = 0; !gives_to(giver, call) && other < count; other++) giver = &calls[other];
        if (!gives_to(giver, call)) continue;
        call->next_heir = giver->heirs;
        giver->heirs = call;
    }
}

static _Atomic uint64_t last_group;

// Begins as many calls as there are places for, finishes them, and repeats. Ranks stay in step: a message or collective has the same number
// on every rank, so that no rank waits for a call that another one begins only later.
static int run_calls(struct nccl_call *calls, size_t count) {
    const struct standin_driver *driver = standin_begin();
    uint64_t context = 0;
    int result = NCCL_SUCCESS;
    size_t done = 0;
    if (driver == NULL) return NCCL_CUDA_ERROR;
    (void)driver->ctx_get_current(&context);
    const uint64_t number = atomic_fetch_add(&last_group, 1) + 1;
    for (size_t i = 0; i < count; i++) {
        calls[i].group = number;
        give_for_absent_root(&calls[i], calls, count);
    }
    receive_for_absent_senders(calls, count);
    while (done < count && result == NCCL_SUCCESS) {
        result = begin_those_that_fit(calls, count);
        if (result == NCCL_SUCCESS) result = finish_those_begun(calls, count, &done);
    }
    (void)driver->ctx_set_current(context);
    return result;
}

int ncclGroupStart(void) {
    group.depth++;
    return NCCL_SUCCESS;
}

int ncclGroupEnd(void) {
    if (group.depth == 0) return NCCL_INVALID_USAGE;
    if (--group.depth > 0) return NCCL_SUCCESS;
    struct group ended = group;
    group = (struct group){0};
    int result = ended.result;
    for (size_t i = 0; i < ended.meeting_count; i++) {
        const int met = nccl_meet(ended.meetings[i]);
        if (result == NCCL_SUCCESS) result = met;
    }
    if (result == NCCL_SUCCESS) result = run_calls(ended.calls, ended.call_count);
    free(ended.calls);
    free(ended.meetings);
    return result;
}

int ncclGroupSimulateEnd(void *info) {
    STANDIN_MISSING("ncclGroupSimulateEnd");
    return NCCL_INVALID_USAGE;
}

static int check_call(const struct nccl_call *call) {
    struct nccl_comm *comm = call->comm;
    if (!nccl_is_comm(comm)) return NCCL_INVALID_ARGUMENT;
    if (nccl_width(call->type) == 0)
        return nccl_fail(comm, NCCL_INVALID_ARGUMENT, "%s: unknown data type %d", nccl_kinds[call->kind].name, call->type);
    if (nccl_kinds[call->kind].has_root && (call->root < 0 || call->root >= comm->rank_count))
        return nccl_fail(comm, NCCL_INVALID_ARGUMENT, "%s: rank %d is out of range for %d ranks", nccl_kinds[call->kind].name, call->root,
                         comm->rank_count);
    return NCCL_SUCCESS;
}

static int do_call(struct nccl_call call) {
    const int result = check_call(&call);
    if (result != NCCL_SUCCESS || group.depth == 0) {
        if (result != NCCL_SUCCESS && group.depth > 0) group.result = result;
        return result != NCCL_SUCCESS ? result : run_calls(&call, 1);
    }
    void *calls = group.calls;
    if (!grow_calls(&calls, &group.call_capacity, group.call_count, sizeof call)) return NCCL_SYSTEM_ERROR;
    group.calls = calls;
    group.calls[group.call_count++] = call;
    return NCCL_SUCCESS;
}

int ncclAllReduce(const void *from, void *to, size_t count, int type, int operator, struct nccl_comm * comm, uint64_t stream) {
    return do_call(
        (struct nccl_call){comm, NCCL_ALL_REDUCE, from, to, count, type, operator, 0, stream, 0, false, PENDING, false, 0, NULL, NULL});
}

int ncclReduce(const void *from, void *to, size_t count, int type, int operator, int root, struct nccl_comm *comm, uint64_t stream) {
    return do_call(
        (struct nccl_call){comm, NCCL_REDUCE, from, to, count, type, operator, root, stream, 0, false, PENDING, false, 0, NULL, NULL});
}

int ncclReduceScatter(const void *from, void *to, size_t count, int type, int operator, struct nccl_comm * comm, uint64_t stream) {
    return do_call(
        (struct nccl_call){comm, NCCL_REDUCE_SCATTER, from, to, count, type, operator, 0, stream, 0, false, PENDING, false, 0, NULL, NULL});
}

int ncclBroadcast(const void *from, void *to, size_t count, int type, int root, struct nccl_comm *comm, uint64_t stream) {
    return do_call(
        (struct nccl_call){comm, NCCL_BROADCAST, from, to, count, type, 0, root, stream, 0, false, PENDING, false, 0, NULL, NULL});
}

int ncclBcast(void *buffer, size_t count, int type, int root, struct nccl_comm *comm, uint64_t stream) {
    return ncclBroadcast(buffer, buffer, count, type, root, comm, stream);
}

int ncclAllGather(const void *from, void *to, size_t count, int type, struct nccl_comm *comm, uint64_t stream) {
    return do_call((struct nccl_call){comm, NCCL_ALL_GATHER, from, to, count, type, 0, 0, stream, 0, false, PENDING, false, 0, NULL, NULL});
}

int ncclAlltoAll(const void *from, void *to, size_t count, int type, struct nccl_comm *comm, uint64_t stream) {
    return do_call((struct nccl_call){comm, NCCL_ALL_TO_ALL, from, to, count, type, 0, 0, stream, 0, false, PENDING, false, 0, NULL, NULL});
}

int ncclGather(const void *from, void *to, size_t count, int type, int root, struct nccl_comm *comm, uint64_t stream) {
    return do_call((struct nccl_call){comm, NCCL_GATHER, from, to, count, type, 0, root, stream, 0, false, PENDING, false, 0, NULL, NULL});
}

int ncclScatter(const void *from, void *to, size_t count, int type, int root, struct nccl_comm *comm, uint64_t stream) {
    return do_call((struct nccl_call){comm, NCCL_SCATTER, from, to, count, type, 0, root, stream, 0, false, PENDING, false, 0, NULL, NULL});
}

int ncclSend(const void *from, size_t count, int type, int peer, struct nccl_comm *comm, uint64_t stream) {
    return do_call((struct nccl_call){comm, NCCL_SEND, from, NULL, count, type, 0, peer, stream, 0, false, PENDING, false, 0, NULL, NULL});
}

int ncclRecv(void *to, size_t count, int type, int peer, struct nccl_comm *comm, uint64_t stream) {
    return do_call((struct nccl_call){comm, NCCL_RECEIVE, NULL, to, count, type, 0, peer, stream, 0, false, PENDING, false, 0, NULL, NULL});
}

// --- operators that a program creates: a sum with a factor. They transfer no payload. -----------------------------------------
static atomic_int next_operator = NCCL_OPERATORS;

int ncclRedOpCreatePreMulSum(int *operator, const void * scalar, int type, int residence, const struct nccl_comm *comm) {
    if (operator== NULL || scalar == NULL || nccl_width(type) == 0 || !nccl_is_comm(comm)) return NCCL_INVALID_ARGUMENT;
    *operator= atomic_fetch_add(&next_operator, 1);
    return NCCL_SUCCESS;
}

int ncclRedOpDestroy(int operator, const struct nccl_comm * comm) {
    return operator>= NCCL_OPERATORS && nccl_is_comm(comm) ? NCCL_SUCCESS : NCCL_INVALID_ARGUMENT;
}

// --- one-sided messages and parameters: not simulated ---------------------------------------------------------------
#define ABSENT(name)                                                                                                                       \
    int name(void) {                                                                                                                       \
        STANDIN_MISSING(#name);                                                                                                            \
        return NCCL_INVALID_USAGE;                                                                                                         \
    }
ABSENT(ncclPutSignal)
ABSENT(ncclSignal)
ABSENT(ncclWaitSignal)
ABSENT(ncclParamBind)
ABSENT(ncclParamGet)
ABSENT(ncclParamGetAllParameterKeys)
ABSENT(ncclParamGetParameter)
ABSENT(ncclParamGetStr)
ABSENT(ncclParamGetI8)
ABSENT(ncclParamGetI16)
ABSENT(ncclParamGetI32)
ABSENT(ncclParamGetI64)
ABSENT(ncclParamGetU8)
ABSENT(ncclParamGetU16)
ABSENT(ncclParamGetU32)
ABSENT(ncclParamGetU64)
void ncclParamDumpAll(void) {}
