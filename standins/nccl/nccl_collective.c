// Collectives, messages and groups. A call is posted, compared with what the other ranks posted, launched on its stream, and small payloads
// move. In a group calls are posted together before they are finished, as NCCL begins them.
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "nccl.h"

struct call {
    struct nccl_comm *comm;
    enum nccl_kind kind;
    const void *from;
    void *to;
    uint64_t count;
    int type, operator, root; // root: of a message the other rank
    uint64_t stream;
    // What begin() leaves to finish():
    uint64_t number; // of the call, or of the message between the two, from 1
    bool moves;
    enum { PENDING, BEGUN, DONE } state; // of a group's call
};

static const struct {
    const char *name;
    bool has_operator, has_root;
} kinds[] = {[NCCL_ALL_REDUCE] = {"ncclAllReduce", true, false},
             [NCCL_ALL_GATHER] = {"ncclAllGather", false, false},
             [NCCL_REDUCE_SCATTER] = {"ncclReduceScatter", true, false},
             [NCCL_BROADCAST] = {"ncclBroadcast", false, true},
             [NCCL_REDUCE] = {"ncclReduce", true, true},
             [NCCL_GATHER] = {"ncclGather", false, true},
             [NCCL_SCATTER] = {"ncclScatter", false, true},
             [NCCL_ALL_TO_ALL] = {"ncclAlltoAll", false, false},
             [NCCL_SPLIT] = {"ncclCommSplit", false, false},
             [NCCL_SEND] = {"ncclSend", false, true},
             [NCCL_RECEIVE] = {"ncclRecv", false, true}};

// --- what moves
// ------------------------------------------------------------------------------------------------------------------------------ Copies
// that a rank gives: one per rank where everyone gets a part of its own.
static uint64_t parts_contributed(const struct call *call) {
    const bool is_root = call->root == call->comm->rank;
    switch (call->kind) {
    case NCCL_REDUCE_SCATTER:
    case NCCL_ALL_TO_ALL: return (uint64_t)call->comm->rank_count;
    case NCCL_SCATTER: return is_root ? (uint64_t)call->comm->rank_count : 0;
    case NCCL_BROADCAST: return is_root ? 1 : 0;
    case NCCL_RECEIVE: return 0;
    default: return 1;
    }
}

static uint64_t bytes_of(const struct call *call) { return call->count * nccl_width(call->type); }

static bool is_capturing(uint64_t stream) {
    int status = 0;
    uint64_t id = 0;
    return standin_driver()->stream_get_capture_info(stream, &status, &id, NULL, NULL, NULL) == 0 && status != 0;
}

// Whether the payload is small enough for every rank; decided alike by all but for captures, which a post tells.
static bool is_small(const struct call *call) {
    const uint64_t parts = call->kind == NCCL_REDUCE_SCATTER || call->kind == NCCL_ALL_TO_ALL || call->kind == NCCL_SCATTER
                               ? (uint64_t)call->comm->rank_count
                               : 1;
    if (call->count == 0 || bytes_of(call) > NCCL_SMALL_BYTES / parts) return false;
    return !kinds[call->kind].has_operator || nccl_can_reduce(call->type, call->operator);
}

static bool read_device(const struct call *call, void *to, const void *from, uint64_t bytes) {
    const struct standin_driver *driver = standin_driver();
    return driver->stream_synchronize(call->stream) == 0 && driver->memcpy((uint64_t)(uintptr_t)to, (uint64_t)(uintptr_t)from, bytes) == 0;
}

static bool write_device(void *to, const void *from, uint64_t bytes) {
    return standin_driver()->memcpy((uint64_t)(uintptr_t)to, (uint64_t)(uintptr_t)from, bytes) == 0;
}

// --- posting
// ---------------------------------------------------------------------------------------------------------------------------------
static void fill(struct nccl_post *post, const struct call *call, uint32_t payload_bytes) {
    atomic_store(&post->number, 0);
    post->kind = (int32_t)call->kind;
    post->type = call->type;
    post->operator= kinds[call->kind].has_operator ? call->operator: 0;
    post->root = kinds[call->kind].has_root ? call->root : 0;
    post->count = call->count;
    post->payload_bytes = payload_bytes;
    atomic_store(&post->number, call->number);
}

static int differ(const struct call *call, int other, const struct nccl_post *theirs) {
    return nccl_break(call->comm, NCCL_INVALID_USAGE,
                      "NCCL: rank %d calls %s (%llu of %s, root %d, operator %d) where rank %d calls %s (%llu of %s, root %d, operator %d), as call %llu",
                      call->comm->rank, kinds[call->kind].name, (unsigned long long)call->count, nccl_type_name(call->type),
                      kinds[call->kind].has_root ? call->root : 0, kinds[call->kind].has_operator ? call->operator : 0, other,
                      theirs->kind > 0 && theirs->kind <= NCCL_RECEIVE ? kinds[theirs->kind].name : "nothing known",
                      (unsigned long long)theirs->count, nccl_type_name(theirs->type), theirs->root, theirs->operator,
                      (unsigned long long)call->number);
}

static bool is_alike(const struct nccl_post *a, const struct nccl_post *b) {
    return a->kind == b->kind && a->type == b->type && a->operator== b->operator&& a->root == b->root && a->count == b->count;
}

static int compare_all(const struct call *call) {
    struct nccl_comm *comm = call->comm;
    const struct nccl_post *mine = &comm->shared->ranks[comm->rank].posts[call->number % NCCL_POSTS];
    for (int other = 0; other < comm->rank_count; other++) {
        const struct nccl_post *theirs = &comm->shared->ranks[other].posts[call->number % NCCL_POSTS];
        if (atomic_load(&theirs->number) == call->number && !is_alike(mine, theirs)) return differ(call, other, theirs);
    }
    return NCCL_SUCCESS;
}

// Everyone has finished the call that used the place before.
struct behind {
    uint64_t number;
};
static bool is_free(const struct nccl_comm *comm, const void *argument) {
    const struct behind *behind = argument;
    for (int rank = 0; rank < comm->rank_count; rank++)
        if (atomic_load(&comm->shared->ranks[rank].finished) < behind->number) return false;
    return true;
}

static int room_for(const struct call *call, uint64_t places, bool *late) {
    const struct behind behind = {call->number > places ? call->number - places : 0};
    return nccl_wait(call->comm, &(struct nccl_wait){is_free, &behind, -1, kinds[call->kind].name}, late);
}

static int post_collective(struct call *call) {
    struct nccl_comm *comm = call->comm;
    struct nccl_rank *mine = &comm->shared->ranks[comm->rank];
    const uint64_t contributed = parts_contributed(call) * bytes_of(call);
    call->number = ++comm->posted;
    bool late = false;
    int result = room_for(call, NCCL_POSTS - 1, NULL);
    if (result == NCCL_SUCCESS && call->moves) result = room_for(call, NCCL_SLOTS, &late);
    if (result != NCCL_SUCCESS) return result;
    if (late) call->moves = false;
    if (call->moves && contributed != 0 && call->kind != NCCL_SPLIT &&
        !read_device(call, nccl_payload(comm, comm->rank, call->number), call->from, contributed))
        call->moves = false;
    if (call->moves && call->kind == NCCL_SPLIT) memcpy(nccl_payload(comm, comm->rank, call->number), call->from, contributed);
    fill(&mine->posts[call->number % NCCL_POSTS], call, call->moves ? (uint32_t)(contributed == 0 ? 1 : contributed) : 0);
    atomic_store(&mine->posted, call->number);
    return compare_all(call);
}

// --- finishing
// -------------------------------------------------------------------------------------------------------------------------------
static bool has_posted(const struct nccl_comm *comm, const void *argument) {
    const struct call *call = argument;
    const bool from_root = call->kind == NCCL_BROADCAST || call->kind == NCCL_SCATTER;
    for (int rank = 0; rank < comm->rank_count; rank++)
        if ((!from_root || rank == call->root) && atomic_load(&comm->shared->ranks[rank].posted) < call->number) return false;
    return true;
}

// The payload of a rank, or NULL where it moves none. It posts none while it captures, or when it had to wait too long.
static const unsigned char *payload_of(const struct call *call, int rank) {
    const struct nccl_post *post = &call->comm->shared->ranks[rank].posts[call->number % NCCL_POSTS];
    return atomic_load(&post->number) == call->number && post->payload_bytes != 0 ? nccl_payload(call->comm, rank, call->number) : NULL;
}

static bool all_payloads(const struct call *call) {
    for (int rank = 0; rank < call->comm->rank_count; rank++)
        if (payload_of(call, rank) == NULL) return false;
    return true;
}

// Everyone's part number `part`, reduced in the order of ranks.
static void write_reduced(const struct call *call, int part) {
    const uint64_t bytes = bytes_of(call);
    unsigned char *sum = all_payloads(call) ? malloc(bytes) : NULL;
    if (sum == NULL) return;
    for (int rank = 0; rank < call->comm->rank_count; rank++) {
        const unsigned char *theirs = payload_of(call, rank) + (uint64_t)part * bytes;
        if (rank == 0)
            memcpy(sum, theirs, bytes);
        else
            nccl_reduce(call->type, call->operator, sum, theirs, call->count);
    }
    if (call->operator== NCCL_AVERAGE) nccl_divide(call->type, sum, call->count, call->comm->rank_count);
    (void)write_device(call->to, sum, bytes);
    free(sum);
}

// Part number `part` of every rank, one after the other.
static void write_gathered(const struct call *call, int part) {
    const uint64_t bytes = bytes_of(call);
    if (!all_payloads(call)) return;
    for (int rank = 0; rank < call->comm->rank_count; rank++)
        (void)write_device((unsigned char *)call->to + (uint64_t)rank * bytes, payload_of(call, rank) + (uint64_t)part * bytes, bytes);
}

static void write_of_root(const struct call *call, int part) {
    const unsigned char *theirs = payload_of(call, call->root);
    if (theirs != NULL) (void)write_device(call->to, theirs + (uint64_t)part * bytes_of(call), bytes_of(call));
}

static void write_results(const struct call *call) {
    const int rank = call->comm->rank;
    switch (call->kind) {
    case NCCL_ALL_REDUCE:
    case NCCL_REDUCE: write_reduced(call, 0); break;
    case NCCL_REDUCE_SCATTER: write_reduced(call, rank); break;
    case NCCL_ALL_GATHER:
    case NCCL_GATHER: write_gathered(call, 0); break;
    case NCCL_ALL_TO_ALL: write_gathered(call, rank); break;
    case NCCL_BROADCAST: write_of_root(call, 0); break;
    case NCCL_SCATTER: write_of_root(call, rank); break;
    default: break;
    }
}

// A rank that gets nothing does not wait.
static bool gets_something(const struct call *call) {
    const bool is_root = call->root == call->comm->rank;
    if (call->kind == NCCL_REDUCE || call->kind == NCCL_GATHER) return is_root;
    if (call->kind == NCCL_BROADCAST) return !is_root || call->from != call->to;
    return true;
}

static int finish_collective(struct call *call) {
    struct nccl_comm *comm = call->comm;
    bool late = false;
    int result = NCCL_SUCCESS;
    const int needed = call->kind == NCCL_BROADCAST || call->kind == NCCL_SCATTER ? call->root : -1;
    if (call->moves && gets_something(call)) {
        result =
            nccl_wait(comm, &(struct nccl_wait){has_posted, call, needed, kinds[call->kind].name}, call->kind == NCCL_SPLIT ? NULL : &late);
        if (result == NCCL_SUCCESS && late) STANDIN_MISSING("ncclCommGetAsyncError: data of a rank that came late");
        if (result == NCCL_SUCCESS) result = compare_all(call); // with those who came since
        if (result == NCCL_SUCCESS && !late && call->kind != NCCL_SPLIT) write_results(call);
    }
    if (result == NCCL_SUCCESS && call->kind == NCCL_SPLIT) {
        for (int rank = 0; rank < comm->rank_count; rank++)
            memcpy((unsigned char *)call->to + (size_t)rank * sizeof(struct nccl_member), nccl_payload(comm, rank, call->number),
                   sizeof(struct nccl_member));
    }
    atomic_store(&comm->shared->ranks[comm->rank].finished, call->number);
    return result;
}

int nccl_exchange_members(struct nccl_comm *comm, struct nccl_member mine, struct nccl_member *all) {
    enum { INT8 = 0 };
    struct call call = {.comm = comm, .kind = NCCL_SPLIT, .from = &mine, .to = all, .count = sizeof mine, .type = INT8, .moves = true};
    const int broken = atomic_load(&comm->shared->broken);
    if (broken != 0) return nccl_fail(comm, broken, "%s", comm->shared->sentence);
    const int result = post_collective(&call);
    return result != NCCL_SUCCESS ? result : finish_collective(&call);
}

// --- messages
// ----------------------------------------------------------------------------------------------------------------------------------
static bool was_received(const struct nccl_comm *comm, const void *argument) {
    const struct call *call = argument;
    return atomic_load(&nccl_pair_of(comm, comm->rank, call->root)->received) + NCCL_SLOTS >= call->number;
}

static bool was_sent(const struct nccl_comm *comm, const void *argument) {
    const struct call *call = argument;
    return atomic_load(&nccl_pair_of(comm, call->root, comm->rank)->sent) >= call->number;
}

static int compare_message(const struct call *call, const struct nccl_post *theirs) {
    if (atomic_load(&theirs->number) != call->number || (theirs->type == call->type && theirs->count == call->count)) return NCCL_SUCCESS;
    return differ(call, call->root, theirs);
}

static int post_message(struct call *call) {
    struct nccl_comm *comm = call->comm;
    const bool sends = call->kind == NCCL_SEND;
    struct nccl_pair *pair = sends ? nccl_pair_of(comm, comm->rank, call->root) : nccl_pair_of(comm, call->root, comm->rank);
    call->number = sends ? ++comm->sent[call->root] : ++comm->received[call->root];
    if (pair == NULL) return NCCL_SUCCESS; // too many ranks for a place per pair
    bool late = false;
    if (sends && call->moves) {
        const int result = nccl_wait(comm, &(struct nccl_wait){was_received, call, call->root, "ncclSend"}, &late);
        if (result != NCCL_SUCCESS) return result;
        if (late || !read_device(call, nccl_pair_payload(comm, comm->rank, call->root, call->number), call->from, bytes_of(call)))
            call->moves = false;
    }
    struct nccl_post *mine = sends ? &pair->sends[call->number % NCCL_POSTS] : &pair->receives[call->number % NCCL_POSTS];
    fill(mine, call, call->moves ? 1 : 0);
    if (sends) atomic_store(&pair->sent, call->number);
    return compare_message(call, sends ? &pair->receives[call->number % NCCL_POSTS] : &pair->sends[call->number % NCCL_POSTS]);
}

static int finish_message(struct call *call) {
    struct nccl_comm *comm = call->comm;
    struct nccl_pair *pair = call->kind == NCCL_RECEIVE ? nccl_pair_of(comm, call->root, comm->rank) : NULL;
    if (pair == NULL) return NCCL_SUCCESS;
    bool late = false;
    int result = NCCL_SUCCESS;
    if (call->moves) result = nccl_wait(comm, &(struct nccl_wait){was_sent, call, call->root, "ncclRecv"}, &late);
    const struct nccl_post *theirs = &pair->sends[call->number % NCCL_POSTS];
    if (result == NCCL_SUCCESS) result = compare_message(call, theirs);
    if (result == NCCL_SUCCESS && call->moves && !late && atomic_load(&theirs->number) == call->number && theirs->payload_bytes != 0)
        (void)write_device(call->to, nccl_pair_payload(comm, call->root, comm->rank, call->number), bytes_of(call));
    atomic_store(&pair->received, call->number);
    return result;
}

// --- groups
// --------------------------------------------------------------------------------------------------------------------------------------
struct group {
    int depth, result;
    struct call *calls;
    size_t call_count, call_capacity;
    struct nccl_comm **meetings;
    size_t meeting_count, meeting_capacity;
};
static _Thread_local struct group group;

bool nccl_in_group(void) { return group.depth > 0; }

static bool grow(void **items, size_t *capacity, size_t count, size_t width) {
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
    if (!grow(&meetings, &group.meeting_capacity, group.meeting_count, sizeof(struct nccl_comm *))) return;
    group.meetings = meetings;
    group.meetings[group.meeting_count++] = comm;
}

// Buffers are taken with the first call, as NCCL connects then.
static bool take_buffers(struct nccl_comm *comm) {
    if (comm->has_buffers || comm->rank_count == 1) return true;
    const uint64_t channels = standin_size(STANDIN_NCCL_CHANNELS, standin_library_version)->bytes;
    const uint64_t bytes = standin_size(STANDIN_NCCL_CHANNEL_BUFFER, standin_library_version)->bytes;
    for (uint64_t i = 0; i < channels; i++)
        if (!nccl_take(comm, bytes)) return false;
    comm->has_buffers = true;
    return true;
}

static bool is_message(const struct call *call) { return call->kind == NCCL_SEND || call->kind == NCCL_RECEIVE; }

static int begin(struct call *call) {
    struct nccl_comm *comm = call->comm;
    (void)standin_driver()->ctx_set_current(comm->context);
    const int broken = atomic_load(&comm->shared->broken);
    if (broken != 0) return nccl_fail(comm, broken, "%s", comm->shared->sentence);
    if (!take_buffers(comm)) return nccl_fail(comm, NCCL_CUDA_ERROR, "NCCL: out of memory on device %d", comm->device);
    call->moves = is_small(call) && !is_capturing(call->stream);
    const int result = is_message(call) ? post_message(call) : post_collective(call);
    if (result != NCCL_SUCCESS) return result;
    return standin_work(call->stream) == 0 ? NCCL_SUCCESS : nccl_fail(comm, NCCL_CUDA_ERROR, "NCCL: a launch was refused");
}

static int finish(struct call *call) {
    (void)standin_driver()->ctx_set_current(call->comm->context);
    return is_message(call) ? finish_message(call) : finish_collective(call);
}

// Calls that share places for payloads: collectives of a communicator, messages to a rank, messages from one.
static bool share_places(const struct call *a, const struct call *b) {
    if (a->comm != b->comm || is_message(a) != is_message(b)) return false;
    return !is_message(a) || (a->kind == b->kind && a->root == b->root);
}

// Whether so few calls before it wait that there is a place for its payload.
static bool fits(const struct call *calls, size_t which) {
    size_t before = 0;
    for (size_t i = 0; i < which; i++) before += calls[i].state != DONE && share_places(&calls[i], &calls[which]);
    return before < NCCL_SLOTS;
}

static int begin_those_that_fit(struct call *calls, size_t count) {
    int result = NCCL_SUCCESS;
    for (size_t i = 0; i < count && result == NCCL_SUCCESS; i++) {
        if (calls[i].state != PENDING || !fits(calls, i)) continue;
        result = begin(&calls[i]);
        calls[i].state = BEGUN;
    }
    return result;
}

static int finish_those_begun(struct call *calls, size_t count, size_t *done) {
    int result = NCCL_SUCCESS;
    for (size_t i = 0; i < count && result == NCCL_SUCCESS; i++) {
        if (calls[i].state != BEGUN) continue;
        result = finish(&calls[i]);
        calls[i].state = DONE;
        ++*done;
    }
    return result;
}

// As many as there are places for begin together, then they are finished, and so on. Ranks do so in step: a message or a collective has the
// same number everywhere, so that nobody waits for one that another begins later than its own.
static int run(struct call *calls, size_t count) {
    const struct standin_driver *driver = standin_begin();
    uint64_t context = 0;
    int result = NCCL_SUCCESS;
    size_t done = 0;
    if (driver == NULL) return NCCL_CUDA_ERROR;
    (void)driver->ctx_get_current(&context);
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
    if (result == NCCL_SUCCESS) result = run(ended.calls, ended.call_count);
    free(ended.calls);
    free(ended.meetings);
    return result;
}

int ncclGroupSimulateEnd(void *info) {
    STANDIN_MISSING("ncclGroupSimulateEnd");
    return NCCL_INVALID_USAGE;
}

static int checked(const struct call *call) {
    struct nccl_comm *comm = call->comm;
    if (!nccl_is_comm(comm)) return NCCL_INVALID_ARGUMENT;
    if (nccl_width(call->type) == 0)
        return nccl_fail(comm, NCCL_INVALID_ARGUMENT, "%s: type %d is none", kinds[call->kind].name, call->type);
    if (kinds[call->kind].has_root && (call->root < 0 || call->root >= comm->rank_count))
        return nccl_fail(comm, NCCL_INVALID_ARGUMENT, "%s: rank %d is none of %d", kinds[call->kind].name, call->root, comm->rank_count);
    return NCCL_SUCCESS;
}

static int do_call(struct call call) {
    const int result = checked(&call);
    if (result != NCCL_SUCCESS || group.depth == 0) {
        if (result != NCCL_SUCCESS && group.depth > 0) group.result = result;
        return result != NCCL_SUCCESS ? result : run(&call, 1);
    }
    void *calls = group.calls;
    if (!grow(&calls, &group.call_capacity, group.call_count, sizeof call)) return NCCL_SYSTEM_ERROR;
    group.calls = calls;
    group.calls[group.call_count++] = call;
    return NCCL_SUCCESS;
}

int ncclAllReduce(const void *from, void *to, size_t count, int type, int operator, struct nccl_comm * comm, uint64_t stream) {
    return do_call((struct call){comm, NCCL_ALL_REDUCE, from, to, count, type, operator, 0, stream, 0, false, PENDING});
}

int ncclReduce(const void *from, void *to, size_t count, int type, int operator, int root, struct nccl_comm *comm, uint64_t stream) {
    return do_call((struct call){comm, NCCL_REDUCE, from, to, count, type, operator, root, stream, 0, false, PENDING});
}

int ncclReduceScatter(const void *from, void *to, size_t count, int type, int operator, struct nccl_comm * comm, uint64_t stream) {
    return do_call((struct call){comm, NCCL_REDUCE_SCATTER, from, to, count, type, operator, 0, stream, 0, false, PENDING});
}

int ncclBroadcast(const void *from, void *to, size_t count, int type, int root, struct nccl_comm *comm, uint64_t stream) {
    return do_call((struct call){comm, NCCL_BROADCAST, from, to, count, type, 0, root, stream, 0, false, PENDING});
}

int ncclBcast(void *buffer, size_t count, int type, int root, struct nccl_comm *comm, uint64_t stream) {
    return ncclBroadcast(buffer, buffer, count, type, root, comm, stream);
}

int ncclAllGather(const void *from, void *to, size_t count, int type, struct nccl_comm *comm, uint64_t stream) {
    return do_call((struct call){comm, NCCL_ALL_GATHER, from, to, count, type, 0, 0, stream, 0, false, PENDING});
}

int ncclAlltoAll(const void *from, void *to, size_t count, int type, struct nccl_comm *comm, uint64_t stream) {
    return do_call((struct call){comm, NCCL_ALL_TO_ALL, from, to, count, type, 0, 0, stream, 0, false, PENDING});
}

int ncclGather(const void *from, void *to, size_t count, int type, int root, struct nccl_comm *comm, uint64_t stream) {
    return do_call((struct call){comm, NCCL_GATHER, from, to, count, type, 0, root, stream, 0, false, PENDING});
}

int ncclScatter(const void *from, void *to, size_t count, int type, int root, struct nccl_comm *comm, uint64_t stream) {
    return do_call((struct call){comm, NCCL_SCATTER, from, to, count, type, 0, root, stream, 0, false, PENDING});
}

int ncclSend(const void *from, size_t count, int type, int peer, struct nccl_comm *comm, uint64_t stream) {
    return do_call((struct call){comm, NCCL_SEND, from, NULL, count, type, 0, peer, stream, 0, false, PENDING});
}

int ncclRecv(void *to, size_t count, int type, int peer, struct nccl_comm *comm, uint64_t stream) {
    return do_call((struct call){comm, NCCL_RECEIVE, NULL, to, count, type, 0, peer, stream, 0, false, PENDING});
}

// --- operators of programs: a sum with a factor. No payload moves with one
// --------------------------------------------------------------------------
static atomic_int next_operator = NCCL_OPERATORS;

int ncclRedOpCreatePreMulSum(int *operator, const void * scalar, int type, int residence, const struct nccl_comm *comm) {
    if (operator== NULL || scalar == NULL || nccl_width(type) == 0 || !nccl_is_comm(comm)) return NCCL_INVALID_ARGUMENT;
    *operator= atomic_fetch_add(&next_operator, 1);
    return NCCL_SUCCESS;
}

int ncclRedOpDestroy(int operator, const struct nccl_comm * comm) {
    return operator>= NCCL_OPERATORS && nccl_is_comm(comm) ? NCCL_SUCCESS : NCCL_INVALID_ARGUMENT;
}

// --- one-sided messages and parameters are not simulated
// ----------------------------------------------------------------------------------------------
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
