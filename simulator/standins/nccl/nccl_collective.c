// Collectives and messages. A call is posted, compared with the other ranks' posts and launched on its stream; small payloads are
// transferred. Data written by other ranks is never trusted for places and sizes: those come from this rank's own call.
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "nccl.h"

const struct nccl_kind_facts nccl_kinds[NCCL_KINDS] = {[NCCL_ALL_REDUCE] = {"ncclAllReduce", true, false},
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

// --- payloads -------------------------------------------------------------------------------------------------------

// Returns the rank whose data a call from a root distributes. What a root that does not run would broadcast is its representative's input.
static int root_of(const struct nccl_call *call) {
    return call->kind == NCCL_BROADCAST ? nccl_stands_for(call->comm, call->root) : call->root;
}

// Returns the number of parts that a rank contributes: one per rank if every rank gets its own part.
static uint64_t parts_contributed(const struct nccl_call *call) {
    const bool is_root = root_of(call) == call->comm->rank;
    switch (call->kind) {
    case NCCL_REDUCE_SCATTER:
    case NCCL_ALL_TO_ALL: return (uint64_t)call->comm->rank_count;
    case NCCL_SCATTER: return is_root ? (uint64_t)call->comm->rank_count : 0;
    case NCCL_BROADCAST: return is_root ? 1 : 0;
    case NCCL_RECEIVE: return 0;
    default: return 1;
    }
}

static uint64_t bytes_of(const struct nccl_call *call) { return call->count * nccl_width(call->type); }

static bool is_capturing(uint64_t stream) {
    int status = 0;
    uint64_t id = 0;
    return standin_driver()->stream_get_capture_info(stream, &status, &id, NULL, NULL, NULL) == 0 && status != 0;
}

// Returns whether the payload is small enough on every rank. All ranks decide alike, except for captures, which a post reports.
static bool is_small(const struct nccl_call *call) {
    const uint64_t parts = call->kind == NCCL_REDUCE_SCATTER || call->kind == NCCL_ALL_TO_ALL || call->kind == NCCL_SCATTER
                               ? (uint64_t)call->comm->rank_count
                               : 1;
    if (call->count == 0 || call->count > NCCL_SMALL_BYTES / parts / nccl_width(call->type)) return false;
    if (!nccl_is_message(call) && parts * bytes_of(call) > NCCL_MOST_BYTES / (uint64_t)call->comm->rank_count) return false;
    return !nccl_kinds[call->kind].has_operator || nccl_can_reduce(call->type, call->operator);
}

// --- posting --------------------------------------------------------------------------------------------------------
static void fill_post(struct nccl_post *post, const struct nccl_call *call, uint32_t payload_bytes) {
    atomic_store(&post->number, 0);
    post->kind = (int32_t)call->kind;
    post->type = call->type;
    post->operator= nccl_kinds[call->kind].has_operator ? call->operator: 0;
    post->root = nccl_kinds[call->kind].has_root ? call->root : 0;
    post->count = call->count;
    post->payload_bytes = payload_bytes;
    atomic_store(&post->number, call->number);
}

static const char *name_of(const struct nccl_post *post) {
    return post->kind > 0 && post->kind <= NCCL_RECEIVE ? nccl_kinds[post->kind].name : "nothing known";
}

// Describes the call of a rank, "ncclAllReduce of 8 float32 on rank 1".
static void note_disagreement(const struct nccl_call *call, int other, const struct nccl_post *theirs) {
    char texts[2][160];
    (void)snprintf(texts[0], sizeof texts[0], "%s of %llu %s on rank %d", nccl_kinds[call->kind].name, (unsigned long long)call->count,
                   nccl_type_name(call->type), call->comm->rank);
    (void)snprintf(texts[1], sizeof texts[1], "%s of %llu %s on rank %d", name_of(theirs), (unsigned long long)theirs->count,
                   nccl_type_name(theirs->type), other);
    standin_disagreement(texts[0], texts[1]);
}

static int posts_differ(const struct nccl_call *call, int other, const struct nccl_post *posted) {
    // Copy the post, because the other rank may change it at any time.
    const struct nccl_post copy = {
        .kind = posted->kind, .type = posted->type, .root = posted->root, .operator= posted->operator, .count = posted->count };
    const struct nccl_post *theirs = &copy;
    note_disagreement(call, other, theirs);
    return nccl_break(call->comm, NCCL_INVALID_USAGE,
                      "NCCL: mismatched calls: rank %d calls %s (%llu of %s, root %d, operator %d), but rank %d calls %s (%llu of %s, root %d, operator %d), as call %llu",
                      call->comm->rank, nccl_kinds[call->kind].name, (unsigned long long)call->count, nccl_type_name(call->type),
                      nccl_kinds[call->kind].has_root ? call->root : 0, nccl_kinds[call->kind].has_operator ? call->operator : 0, other,
                      name_of(theirs),
                      (unsigned long long)theirs->count, nccl_type_name(theirs->type), theirs->root, theirs->operator,
                      (unsigned long long)call->number);
}

static bool is_alike(const struct nccl_post *a, const struct nccl_post *b) {
    return a->kind == b->kind && a->type == b->type && a->operator== b->operator&& a->root == b->root && a->count == b->count;
}

static int compare_all(const struct nccl_call *call) {
    struct nccl_comm *comm = call->comm;
    const struct nccl_post *mine = &comm->shared->ranks[comm->rank].posts[call->number % NCCL_POSTS];
    for (int other = 0; other < comm->rank_count; other++) {
        if (!nccl_runs(comm, other)) continue; // reading its row would take a page
        const struct nccl_post *theirs = &comm->shared->ranks[other].posts[call->number % NCCL_POSTS];
        if (atomic_load(&theirs->number) == call->number && !is_alike(mine, theirs)) return posts_differ(call, other, theirs);
    }
    return NCCL_SUCCESS;
}

// Waits until all ranks have finished the earlier call that used the same place.
struct behind {
    uint64_t number;
};
static bool is_free(const struct nccl_comm *comm, const void *argument) {
    const struct behind *behind = argument;
    for (int rank = 0; rank < comm->rank_count; rank++)
        if (nccl_runs(comm, rank) && atomic_load(&comm->shared->ranks[rank].finished) < behind->number) return false;
    return true;
}

static int room_for(const struct nccl_call *call, uint64_t places, bool *late) {
    const struct behind behind = {call->number > places ? call->number - places : 0};
    return nccl_wait(call->comm, &(struct nccl_wait){is_free, &behind, -1, nccl_kinds[call->kind].name}, late);
}

static int post_collective(struct nccl_call *call) {
    struct nccl_comm *comm = call->comm;
    struct nccl_rank *mine = &comm->shared->ranks[comm->rank];
    const uint64_t contributed = parts_contributed(call) * bytes_of(call);
    call->number = ++comm->posted;
    nccl_note_call(call);
    bool late = false;
    int result = room_for(call, NCCL_POSTS - 1, NULL);
    if (result == NCCL_SUCCESS && call->moves) result = room_for(call, NCCL_SLOTS, &late);
    if (result != NCCL_SUCCESS) return result;
    if (late) call->moves = false;
    if (call->moves && contributed != 0 && call->kind != NCCL_SPLIT &&
        !nccl_read_values(call, nccl_payload(comm, comm->rank, call->number), contributed))
        call->moves = false;
    if (call->moves && call->kind == NCCL_SPLIT) memcpy(nccl_payload(comm, comm->rank, call->number), call->from, contributed);
    fill_post(&mine->posts[call->number % NCCL_POSTS], call, call->moves ? (uint32_t)(contributed == 0 ? 1 : contributed) : 0);
    atomic_store(&mine->posted, call->number);
    return compare_all(call);
}

// --- finishing ------------------------------------------------------------------------------------------------------
static bool has_posted(const struct nccl_comm *comm, const void *argument) {
    const struct nccl_call *call = argument;
    const bool from_root = call->kind == NCCL_BROADCAST || call->kind == NCCL_SCATTER;
    for (int rank = 0; rank < comm->rank_count; rank++)
        if (nccl_runs(comm, rank) && (!from_root || rank == root_of(call)) && atomic_load(&comm->shared->ranks[rank].posted) < call->number)
            return false;
    return true;
}

// Returns the payload of a rank, or NULL if it posted no data, as while it captures or after a timeout.
static const unsigned char *payload_of(const struct nccl_call *call, int rank) {
    const int giver = nccl_stands_for(call->comm, rank);
    const struct nccl_post *post = &call->comm->shared->ranks[giver].posts[call->number % NCCL_POSTS];
    if (giver != rank && call->kind == NCCL_SCATTER) return NULL; // only the root has something to scatter
    return atomic_load(&post->number) == call->number && post->payload_bytes != 0 ? nccl_payload(call->comm, giver, call->number) : NULL;
}

static const unsigned char *part_of_rank(const struct nccl_call *call, int rank) {
    return nccl_payload(call->comm, nccl_stands_for(call->comm, rank), call->number);
}

static bool all_payloads(const struct nccl_call *call) {
    for (int rank = 0; rank < call->comm->rank_count; rank++)
        if (payload_of(call, rank) == NULL) return false;
    return true;
}

// Reduces part number `part` of all ranks, in the order of ranks.
static void write_reduced(const struct nccl_call *call, int part) {
    const uint64_t bytes = bytes_of(call), count = call->count;
    unsigned char *sum = all_payloads(call) ? calloc(1, bytes + count) : NULL;
    uint8_t *levels = sum + bytes;
    if (sum == NULL) return;
    for (int rank = 0; rank < call->comm->rank_count; rank++) {
        const unsigned char *slot = part_of_rank(call, rank), *theirs = slot + (uint64_t)part * bytes;
        if (rank == 0)
            memcpy(sum, theirs, bytes);
        else
            nccl_reduce(call->type, call->operator, sum, theirs, count);
        nccl_reduce_levels(levels, nccl_levels(slot) + (uint64_t)part * count, count);
    }
    if (call->operator== NCCL_AVERAGE) nccl_divide(call->type, sum, count, call->comm->rank_count);
    (void)nccl_write_values(call, call->to, sum, levels);
    free(sum);
}

static void write_part(const struct nccl_call *call, void *to, const unsigned char *slot, int part) {
    (void)nccl_write_values(call, to, slot + (uint64_t)part * bytes_of(call), nccl_levels(slot) + (uint64_t)part * call->count);
}

// Writes part number `part` of all ranks, one after the other.
static void write_gathered(const struct nccl_call *call, int part) {
    const uint64_t bytes = bytes_of(call);
    if (!all_payloads(call)) return;
    for (int rank = 0; rank < call->comm->rank_count; rank++)
        write_part(call, (unsigned char *)call->to + (uint64_t)rank * bytes, part_of_rank(call, rank), part);
}

static void write_of_root(const struct nccl_call *call, int part) {
    const unsigned char *theirs = payload_of(call, call->root);
    if (theirs != NULL) write_part(call, call->to, theirs, part);
}

static void write_results(const struct nccl_call *call) {
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

// Returns whether the rank gets data. If not, it does not wait.
static bool gets_something(const struct nccl_call *call) {
    const bool is_root = root_of(call) == call->comm->rank;
    if (call->kind == NCCL_REDUCE || call->kind == NCCL_GATHER) return is_root;
    if (call->kind == NCCL_BROADCAST) return !is_root || call->from != call->to;
    return true;
}

static void note_late(void) { STANDIN_MISSING("ncclCommGetAsyncError: data of a rank that came late"); }

static int finish_collective(struct nccl_call *call) {
    struct nccl_comm *comm = call->comm;
    bool late = false;
    int result = NCCL_SUCCESS;
    const int needed = call->kind == NCCL_BROADCAST || call->kind == NCCL_SCATTER ? root_of(call) : -1;
    if (call->moves && gets_something(call)) {
        result = nccl_wait(comm, &(struct nccl_wait){has_posted, call, needed, nccl_kinds[call->kind].name},
                           call->kind == NCCL_SPLIT ? NULL : &late);
        if (result == NCCL_SUCCESS && late) note_late();
        if (result == NCCL_SUCCESS) result = compare_all(call); // with ranks that posted meanwhile
        if (result == NCCL_SUCCESS && !late && call->kind != NCCL_SPLIT) write_results(call);
    }
    if (result == NCCL_SUCCESS && call->kind == NCCL_SPLIT) {
        for (int rank = 0; rank < comm->rank_count; rank++)
            memcpy((unsigned char *)call->to + (size_t)rank * sizeof(struct nccl_member),
                   nccl_payload(comm, nccl_stands_for(comm, rank), call->number), sizeof(struct nccl_member));
    }
    atomic_store(&comm->shared->ranks[comm->rank].finished, call->number);
    return result;
}

int nccl_exchange_members(struct nccl_comm *comm, struct nccl_member mine, struct nccl_member *all) {
    enum { INT8 = 0 };
    struct nccl_call call = {.comm = comm, .kind = NCCL_SPLIT, .from = &mine, .to = all, .count = sizeof mine, .type = INT8, .moves = true};
    const int broken = nccl_broken(comm);
    if (broken != 0) return broken;
    const int result = post_collective(&call);
    return result != NCCL_SUCCESS ? result : finish_collective(&call);
}

// --- messages -------------------------------------------------------------------------------------------------------
static bool was_received(const struct nccl_comm *comm, const void *argument) {
    const struct nccl_call *call = argument;
    return atomic_load(&nccl_pair_of(comm, comm->rank, call->root)->received) + NCCL_SLOTS >= call->number;
}

static bool was_sent(const struct nccl_comm *comm, const void *argument) {
    const struct nccl_call *call = argument;
    return atomic_load(&nccl_pair_of(comm, call->root, comm->rank)->sent) >= call->number;
}

static int compare_message(const struct nccl_call *call, const struct nccl_post *theirs) {
    if (atomic_load(&theirs->number) != call->number || (theirs->type == call->type && theirs->count == call->count)) return NCCL_SUCCESS;
    return posts_differ(call, call->root, theirs);
}

// Most bytes per peer: on a machine of eight H100s, an exchange between all took 3.28 GB for seven peers, over 32 channels for each (nccl
// issue 1685).
#define SENDS_MOST_BYTES       ((uint64_t)32 * 14 << 20)
#define SENDS_MOST_PEERS       7
#define CONNECTIONS_MOST_BYTES ((uint64_t)686 << 20) // of the sizes that have a source

// Adds an upper bound to that of the process's other communicators.
static void add_stake(enum standin_size what, _Atomic uint64_t *total_bytes, uint64_t bytes) {
    standin_size_stake(what, atomic_fetch_add(total_bytes, bytes) + bytes);
}

// Returns whether a call uses the connections for sends instead of those of the other collectives.
static bool uses_sends(const struct nccl_call *call) { return nccl_is_message(call) || call->kind == NCCL_ALL_TO_ALL; }

// Allocates what NCCL does when the ranks connect, at the first collective.
static bool take_connections(struct nccl_comm *comm) {
    static _Atomic uint64_t stake_bytes;
    if (comm->has_connections || comm->rank_count == 1) return true;
    const enum standin_size what = comm->rank_count == 2 ? STANDIN_NCCL_CONNECTIONS_OF_TWO : STANDIN_NCCL_CONNECTIONS;
    const struct standin_size_row *row = standin_size(what, standin_library_version);
    if (row->source == NULL) add_stake(what, &stake_bytes, CONNECTIONS_MOST_BYTES);
    comm->has_connections = nccl_take(comm, row->bytes);
    return comm->has_connections;
}

// Notes peers that get connections for sends, whose memory is not known.
static void note_peers(struct nccl_comm *comm, int count) {
    static _Atomic uint64_t stake_bytes;
    if (comm->peers_sent_to + count > SENDS_MOST_PEERS) count = SENDS_MOST_PEERS - comm->peers_sent_to;
    if (count <= 0) return;
    comm->peers_sent_to += count;
    (void)standin_size(STANDIN_NCCL_SENDS, standin_library_version);
    add_stake(STANDIN_NCCL_SENDS, &stake_bytes, (uint64_t)count * SENDS_MOST_BYTES);
}

static int post_message(struct nccl_call *call) {
    struct nccl_comm *comm = call->comm;
    const bool sends = call->kind == NCCL_SEND;
    struct nccl_pair *pair = sends ? nccl_pair_of(comm, comm->rank, call->root) : nccl_pair_of(comm, call->root, comm->rank);
    if (call->root != comm->rank && comm->sent[call->root] + comm->received[call->root] == 0) note_peers(comm, 1);
    call->number = sends ? ++comm->sent[call->root] : ++comm->received[call->root];
    nccl_note_call(call);
    if (pair == NULL) return NCCL_SUCCESS;
    bool late = false;
    if (sends && call->moves) {
        const int result = nccl_wait(comm, &(struct nccl_wait){was_received, call, call->root, "ncclSend"}, &late);
        if (result != NCCL_SUCCESS) return result;
        if (late || !nccl_read_values(call, nccl_pair_payload(comm, comm->rank, call->root, call->number), bytes_of(call)))
            call->moves = false;
    }
    struct nccl_post *mine = sends ? &pair->sends[call->number % NCCL_POSTS] : &pair->receives[call->number % NCCL_POSTS];
    fill_post(mine, call, call->moves ? 1 : 0);
    if (sends) atomic_store(&pair->sent, call->number);
    return compare_message(call, sends ? &pair->receives[call->number % NCCL_POSTS] : &pair->sends[call->number % NCCL_POSTS]);
}

static void write_received(const struct nccl_call *call, const unsigned char *slot) {
    write_part(call, call->to, slot, 0);
    for (const struct nccl_call *heir = call->heirs; heir != NULL; heir = heir->next_heir) write_part(heir, heir->to, slot, 0);
}

static int finish_message(struct nccl_call *call) {
    struct nccl_comm *comm = call->comm;
    struct nccl_pair *pair = call->kind == NCCL_RECEIVE ? nccl_pair_of(comm, call->root, comm->rank) : NULL;
    if (pair == NULL) return NCCL_SUCCESS;
    bool late = false;
    int result = NCCL_SUCCESS;
    if (call->moves) result = nccl_wait(comm, &(struct nccl_wait){was_sent, call, call->root, "ncclRecv"}, &late);
    if (result == NCCL_SUCCESS && late) note_late();
    const struct nccl_post *theirs = &pair->sends[call->number % NCCL_POSTS];
    if (result == NCCL_SUCCESS) result = compare_message(call, theirs);
    if (result == NCCL_SUCCESS && call->moves && !late && atomic_load(&theirs->number) == call->number && theirs->payload_bytes != 0)
        write_received(call, nccl_pair_payload(comm, call->root, comm->rank, call->number));
    atomic_store(&pair->received, call->number);
    return result;
}

// --- calls ----------------------------------------------------------------------------------------------------------

// Returns the number of parts that a rank gets.
static uint64_t parts_received(const struct nccl_call *call) {
    const bool is_root = call->root == call->comm->rank;
    switch (call->kind) {
    case NCCL_ALL_GATHER:
    case NCCL_ALL_TO_ALL: return (uint64_t)call->comm->rank_count;
    case NCCL_GATHER: return is_root ? (uint64_t)call->comm->rank_count : 0;
    case NCCL_REDUCE: return is_root ? 1 : 0;
    case NCCL_BROADCAST: return is_root && call->from == call->to ? 0 : 1;
    case NCCL_SEND: return 0;
    default: return 1;
    }
}

// Forgets what the memory held that the call overwrites. An input at its place in the output stays.
static void forget_results(const struct nccl_call *call) {
    const uint64_t bytes = parts_received(call) * bytes_of(call);
    const unsigned char *to = call->to, *own = to + (uint64_t)call->comm->rank * bytes_of(call);
    const bool gives_root = call->kind == NCCL_BROADCAST && root_of(call) == call->comm->rank && call->from == call->to;
    if (call->kind == NCCL_ALL_GATHER && call->from == own) {
        nccl_forget_values(to, (uint64_t)(own - to));
        nccl_forget_values(own + bytes_of(call), bytes - bytes_of(call) - (uint64_t)(own - to));
    } else if (!gives_root) {
        nccl_forget_values(to, bytes);
    }
}

static int launch(const struct nccl_call *call) {
    const struct standin_operand operands[] = {{call->from, parts_contributed(call) * bytes_of(call), STANDIN_READS},
                                               {call->to, parts_received(call) * bytes_of(call), STANDIN_WRITES}};
    const int error = standin_work_on(call->stream, nccl_kinds[call->kind].name, operands, sizeof operands / sizeof *operands);
    if (error == 0 && !call->captured) forget_results(call);
    return error;
}

int nccl_call_begin(struct nccl_call *call) {
    struct nccl_comm *comm = call->comm;
    (void)standin_driver()->ctx_set_current(comm->context);
    const int broken = nccl_broken(comm);
    if (broken != 0) return broken;
    if (comm->is_suspended) return nccl_fail(comm, NCCL_INVALID_USAGE, "NCCL: the communicator is suspended");
    if (call->kind == NCCL_ALL_TO_ALL) note_peers(comm, comm->rank_count - 1);
    if (!uses_sends(call) && !take_connections(comm))
        return nccl_fail(comm, NCCL_CUDA_ERROR, "NCCL: out of memory on device %d", comm->device);
    call->captured = is_capturing(call->stream);
    call->moves = is_small(call) && !call->captured;
    atomic_store(&comm->shared->ranks[comm->rank].thread, (int)syscall(SYS_gettid)); // glibc has gettid() only since 2.30
    const int result = nccl_is_message(call) ? post_message(call) : post_collective(call);
    if (result != NCCL_SUCCESS) return result;
    return launch(call) == 0 ? NCCL_SUCCESS : nccl_fail(comm, NCCL_CUDA_ERROR, "NCCL: a kernel launch failed");
}

int nccl_call_finish(struct nccl_call *call) {
    (void)standin_driver()->ctx_set_current(call->comm->context);
    return nccl_is_message(call) ? finish_message(call) : finish_collective(call);
}
