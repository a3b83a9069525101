// Communicators: unique ids, creation, splitting, shrinking, destruction and queries.
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "nccl.h"

static _Thread_local char thread_error[512]; // of calls without a communicator

bool nccl_is_comm(const struct nccl_comm *comm) { return standin_is(comm, NCCL_COMMUNICATOR); }

// --- unique ids -----------------------------------------------------------------------------------------------------
static const char id_mark[] = "vram-nccl:";

int ncclGetUniqueId(struct nccl_unique_id *id) {
    char name[NCCL_NAME_BYTES];
    if (id == NULL) return NCCL_INVALID_ARGUMENT;
    if (!nccl_new_name(name)) return NCCL_SYSTEM_ERROR;
    memset(id, 0, sizeof *id);
    (void)snprintf(id->bytes, sizeof id->bytes, "%s%s", id_mark, name);
    return NCCL_SUCCESS;
}

// Reads an id: the name and, after a second colon, the ranks that run (*running; NULL: not given). `vram fit --fold` adds these to the ids
// of groups, or sets them in VRAM_SIM_NCCL_RUNNING=DIGITS:RANK,... for the rank that made the id and stored it for the others. Only ids
// made by ncclGetUniqueId() are valid, so that no id leads to another file.
static bool read_id(const struct nccl_unique_id *id, char name[NCCL_NAME_BYTES], const char **running) {
    enum { DIGITS = 32 };
    if (memchr(id->bytes, '\0', sizeof id->bytes) == NULL || strncmp(id->bytes, id_mark, sizeof id_mark - 1) != 0) return false;
    const char *digits = id->bytes + sizeof id_mark - 1, *after = digits + strspn(digits, "0123456789abcdef");
    if (after - digits != DIGITS || (*after != '\0' && *after != ':')) return false;
    memcpy(name, digits, DIGITS);
    name[DIGITS] = '\0';
    *running = *after == ':' ? after + 1 : NULL;
    const char *noted = getenv("VRAM_SIM_NCCL_RUNNING");
    if (*running == NULL && noted != NULL && strncmp(noted, digits, DIGITS) == 0 && noted[DIGITS] == ':') *running = noted + DIGITS + 1;
    return true;
}

// --- creation -------------------------------------------------------------------------------------------------------
static void destroy_comm(struct nccl_comm *comm) {
    nccl_give_all(comm);
    nccl_leave(comm);
    free(comm->sent);
    free(comm->received);
    free(comm->sends);
    free(comm->receives);
    free(comm->runs);
    free(comm->givers);
    (void)standin_destroy(comm, NCCL_COMMUNICATOR);
}

// Stores the error for the thread, because the caller gets no communicator.
static int fail_without(struct nccl_comm *comm, int result) {
    memcpy(thread_error, comm->last_error, sizeof thread_error);
    destroy_comm(comm);
    return result;
}

static int prepare_comm(struct nccl_comm *comm, int rank_count) {
    const struct standin_driver *driver = standin_begin();
    comm->sent = calloc((size_t)rank_count, sizeof *comm->sent);
    comm->received = calloc((size_t)rank_count, sizeof *comm->received);
    if (driver == NULL || driver->ctx_get_device(&comm->device) != 0 || driver->ctx_get_current(&comm->context) != 0)
        return nccl_fail(comm, NCCL_CUDA_ERROR, "NCCL: no current device");
    if (comm->sent == NULL || comm->received == NULL || !nccl_find_givers(comm, rank_count))
        return nccl_fail(comm, NCCL_SYSTEM_ERROR, "NCCL: not enough host memory");
    const uint64_t own = standin_size(STANDIN_NCCL_COMMUNICATOR, standin_library_version)->bytes;
    if (rank_count > 1 && !nccl_take(comm, own)) return nccl_fail(comm, NCCL_CUDA_ERROR, "NCCL: out of memory on device %d", comm->device);
    return NCCL_SUCCESS;
}

// Creates a communicator, which owns `runs`. In a group the meeting is deferred to its end, because other ranks of this process still have
// to join.
static int begin_comm(struct nccl_comm **result, const char *name, int rank, int rank_count, unsigned char *runs) {
    struct nccl_comm *comm = standin_new(NCCL_COMMUNICATOR, sizeof *comm);
    if (comm == NULL) {
        free(runs);
        return NCCL_SYSTEM_ERROR;
    }
    comm->runs = runs;
    int status = prepare_comm(comm, rank_count);
    if (status == NCCL_SUCCESS) status = nccl_join(comm, name, rank, rank_count);
    if (status == NCCL_SUCCESS) nccl_note_join(comm);
    if (status == NCCL_SUCCESS && nccl_in_group())
        nccl_meet_later(comm);
    else if (status == NCCL_SUCCESS)
        status = nccl_meet(comm);
    if (status != NCCL_SUCCESS) return fail_without(comm, status);
    *result = comm;
    return NCCL_SUCCESS;
}

int ncclCommInitRankConfig(struct nccl_comm **comm, int rank_count, struct nccl_unique_id id, int rank, void *config) {
    char name[NCCL_NAME_BYTES];
    const char *running;
    unsigned char *runs;
    if (comm == NULL || rank_count < 1 || rank_count > NCCL_MOST_RANKS || rank < 0 || rank >= rank_count) return NCCL_INVALID_ARGUMENT;
    if (!read_id(&id, name, &running)) return NCCL_INVALID_ARGUMENT;
    if (!nccl_fold(running, rank, rank_count, &runs)) {
        (void)snprintf(thread_error, sizeof thread_error, "NCCL: rank %d of %d is not among the ranks that run", rank, rank_count);
        return NCCL_INVALID_USAGE;
    }
    return begin_comm(comm, name, rank, rank_count, runs);
}

int ncclCommInitRank(struct nccl_comm **comm, int rank_count, struct nccl_unique_id id, int rank) {
    return ncclCommInitRankConfig(comm, rank_count, id, rank, NULL);
}

// All ranks get the same ids in the same order, so the first one is enough.
int ncclCommInitRankScalable(struct nccl_comm **comm, int rank_count, int rank, int id_count, struct nccl_unique_id *ids, void *config) {
    if (id_count < 1 || ids == NULL) return NCCL_INVALID_ARGUMENT;
    return ncclCommInitRankConfig(comm, rank_count, ids[0], rank, config);
}

int ncclGroupStart(void);
int ncclGroupEnd(void);

// Creates communicators for ranks in one process, one device each.
int ncclCommInitAll(struct nccl_comm **comms, int count, const int *devices) {
    const struct standin_driver *driver = standin_begin();
    struct nccl_unique_id id;
    uint64_t before = 0, context = 0;
    if (comms == NULL || count < 1 || driver == NULL) return NCCL_INVALID_ARGUMENT;
    int status = ncclGetUniqueId(&id);
    if (status == NCCL_SUCCESS && driver->ctx_get_current(&before) != 0) status = NCCL_CUDA_ERROR;
    if (status != NCCL_SUCCESS) return status;
    (void)ncclGroupStart();
    for (int i = 0; i < count && status == NCCL_SUCCESS; i++) {
        if (driver->primary_ctx_retain(&context, devices == NULL ? i : devices[i]) != 0 || driver->ctx_set_current(context) != 0)
            status = NCCL_INVALID_ARGUMENT;
        else
            status = ncclCommInitRank(&comms[i], count, id, i);
    }
    (void)driver->ctx_set_current(before);
    const int ended = ncclGroupEnd();
    return status != NCCL_SUCCESS ? status : ended;
}

// --- creation from another communicator -----------------------------------------------------------------------------

// Orders the members with this rank's color by key, then by rank. Writes each rank's place, or -1, and returns the number of members.
static int place_members(const struct nccl_member *all, int count, int rank, int *places) {
    int members = 0;
    for (int other = 0; other < count; other++) {
        places[other] = all[other].color == all[rank].color ? 0 : -1;
        if (places[other] < 0) continue;
        members++;
        for (int before = 0; before < count; before++) {
            if (all[before].color != all[rank].color) continue;
            places[other] += all[before].key < all[other].key || (all[before].key == all[other].key && before < other);
        }
    }
    return members;
}

// Creates a communicator of the ranks of `comm` that have a place.
static int begin_part(const struct nccl_comm *comm, struct nccl_comm **result, const char *name, const int *places, int members) {
    unsigned char *runs;
    if (!nccl_fold_part(comm, places, members, &runs)) return NCCL_SYSTEM_ERROR;
    return begin_comm(result, name, places[comm->rank], members, runs);
}

static int split(struct nccl_comm *comm, struct nccl_member mine, struct nccl_comm **result, struct nccl_member *all, int *places) {
    enum { NO_COLOR = -1 };
    char name[NCCL_NAME_BYTES];
    const int status = nccl_exchange_members(comm, mine, all);
    if (status != NCCL_SUCCESS) return status;
    *result = NULL;
    if (mine.color == NO_COLOR) return NCCL_SUCCESS;
    const int members = place_members(all, comm->rank_count, comm->rank, places);
    if (comm->runs != NULL && members != comm->rank_count)
        return nccl_fail(comm, NCCL_INVALID_USAGE, "NCCL: rank %d splits a communicator, but only some of its ranks run", comm->rank);
    nccl_derive_name(name, comm->name, "split", comm->posted << 32 | (uint32_t)mine.color);
    return begin_part(comm, result, name, places, members);
}

int ncclCommSplit(struct nccl_comm *comm, int color, int key, struct nccl_comm **result, void *config) {
    if (!nccl_is_comm(comm) || result == NULL || color < -1) return NCCL_INVALID_ARGUMENT;
    struct nccl_member *all = calloc((size_t)comm->rank_count, sizeof *all);
    int *places = calloc((size_t)comm->rank_count, sizeof *places);
    const int status =
        all == NULL || places == NULL ? NCCL_SYSTEM_ERROR : split(comm, (struct nccl_member){color, key}, result, all, places);
    free(all);
    free(places);
    return status;
}

// Gives the ranks that are not excluded their places. Returns how many there are, and a number that depends on who they are.
static int place_remaining(const struct nccl_comm *comm, const int *excluded, int excluded_count, int *places, uint64_t *who) {
    int members = 0;
    for (int rank = 0; rank < comm->rank_count; rank++) {
        bool is_out = false;
        for (int i = 0; i < excluded_count; i++) is_out |= excluded[i] == rank;
        *who = *who * 31 + is_out;
        places[rank] = is_out ? -1 : members++;
    }
    return members;
}

int ncclCommShrink(struct nccl_comm *comm, const int *excluded, int excluded_count, struct nccl_comm **result, void *config, int flags) {
    if (!nccl_is_comm(comm) || result == NULL || excluded == NULL || excluded_count < 1) return NCCL_INVALID_ARGUMENT;
    char name[NCCL_NAME_BYTES];
    uint64_t who = 0;
    int *places = calloc((size_t)comm->rank_count, sizeof *places), status = NCCL_INVALID_ARGUMENT;
    if (places == NULL) return NCCL_SYSTEM_ERROR;
    const int members = place_remaining(comm, excluded, excluded_count, places, &who);
    if (places[comm->rank] >= 0) {
        nccl_derive_name(name, comm->name, "shrink", ++comm->shrinks << 48 ^ who);
        status = begin_part(comm, result, name, places, members);
    }
    free(places);
    return status;
}

int ncclCommGetUniqueId(struct nccl_comm *comm, struct nccl_unique_id *id) {
    STANDIN_MISSING("ncclCommGetUniqueId");
    return NCCL_INVALID_USAGE;
}

int ncclCommGrow(void) {
    STANDIN_MISSING("ncclCommGrow");
    return NCCL_INVALID_USAGE;
}

// --- destruction ----------------------------------------------------------------------------------------------------
int ncclCommFinalize(struct nccl_comm *comm) { return nccl_is_comm(comm) ? NCCL_SUCCESS : NCCL_INVALID_ARGUMENT; }

int ncclCommDestroy(struct nccl_comm *comm) {
    if (comm == NULL) return NCCL_SUCCESS;
    if (!nccl_is_comm(comm)) return NCCL_INVALID_ARGUMENT;
    destroy_comm(comm);
    return NCCL_SUCCESS;
}

int ncclCommAbort(struct nccl_comm *comm) { return ncclCommDestroy(comm); }

int ncclCommRevoke(struct nccl_comm *comm, int flags) {
    if (!nccl_is_comm(comm)) return NCCL_INVALID_ARGUMENT;
    (void)nccl_break(comm, NCCL_INVALID_USAGE, "NCCL: rank %d revoked the communicator", comm->rank);
    return NCCL_SUCCESS;
}

// --- queries --------------------------------------------------------------------------------------------------------
#define ASK(name, type, value)                                                                                                             \
    int name(const struct nccl_comm *comm, type *result) {                                                                                 \
        if (!nccl_is_comm(comm) || result == NULL) return NCCL_INVALID_ARGUMENT;                                                           \
        *result = (value);                                                                                                                 \
        return NCCL_SUCCESS;                                                                                                               \
    }
ASK(ncclCommCount, int, comm->rank_count)
ASK(ncclCommCuDevice, int, comm->device)
ASK(ncclCommUserRank, int, comm->rank)
ASK(ncclCommGetAsyncError, int, atomic_load(&comm->shared->broken))

int ncclGetVersion(int *version) {
    if (version == NULL) return NCCL_INVALID_ARGUMENT;
    *version = standin_library_version;
    return NCCL_SUCCESS;
}

const char *ncclGetErrorString(int result) {
    static const char *const texts[NCCL_RESULTS] = {"no error",
                                                    "unhandled cuda error",
                                                    "unhandled system error",
                                                    "internal error",
                                                    "invalid argument",
                                                    "invalid usage",
                                                    "remote process exited or there was a network error",
                                                    "operation in progress",
                                                    "timeout"};
    return result >= 0 && result < NCCL_RESULTS ? texts[result] : "unknown result code";
}

const char *ncclGetLastError(struct nccl_comm *comm) {
    if (!nccl_is_comm(comm)) return thread_error;
    if (comm->last_error[0] == '\0') (void)nccl_broken(comm);
    return comm->last_error;
}

void ncclResetDebugInit(void) {}
