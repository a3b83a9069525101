// nccl.h: NCCL's constants, communicators, and the data shared by the ranks of one. Ranks are processes of this machine, or threads of one.
// They meet in a file of /dev/shm whose name is the secret in the unique id. It is readable only by its owner and is unlinked as soon as
// all ranks have come, so that nothing stays behind. Each rank posts its calls there in order, with kind, type, size and root. Later ranks
// compare; if two differ, the communicator is broken: one line names both ranks, and every later call fails. Payloads up to
// NCCL_SMALL_BYTES are really transferred, so that values that programs agree on (numbers, flags, short objects) are right. For larger
// ones, only the order is kept.
#ifndef VR_STANDINS_NCCL_NCCL_NCCL_H
#define VR_STANDINS_NCCL_NCCL_NCCL_H

#include <stdatomic.h>
#include <sys/types.h>

#include "../common/common.h"
#include "nccl.h"

enum {
    NCCL_SUCCESS = 0,
    NCCL_CUDA_ERROR = 1,
    NCCL_SYSTEM_ERROR = 2,
    NCCL_INVALID_ARGUMENT = 4,
    NCCL_INVALID_USAGE = 5,
    NCCL_REMOTE_ERROR = 6,
    NCCL_TIMEOUT = 8,
    NCCL_RESULTS = 9,
};
enum { NCCL_ID_BYTES = 128, NCCL_NAME_BYTES = 40 }; // name of the file, in hexadecimal digits
enum { NCCL_SUM, NCCL_PRODUCT, NCCL_MAXIMUM, NCCL_MINIMUM, NCCL_AVERAGE, NCCL_OPERATORS };
enum { NCCL_TYPES = 12 };

enum nccl_kind {
    NCCL_ALL_REDUCE = 1,
    NCCL_ALL_GATHER,
    NCCL_REDUCE_SCATTER,
    NCCL_BROADCAST,
    NCCL_REDUCE,
    NCCL_GATHER,
    NCCL_SCATTER,
    NCCL_ALL_TO_ALL,
    NCCL_SPLIT,
    NCCL_SEND,
    NCCL_RECEIVE,
    NCCL_KINDS,
};

enum {
    NCCL_MOST_RANKS = 65536,
    NCCL_SMALL_BYTES = 64 << 10,            // limit on what a rank contributes to a collective, or sends
    NCCL_MOST_BYTES = 64 << 20,             // limit on the sum of what all ranks contribute to a collective
    NCCL_POSTS = 256,                       // how far one rank may be ahead of another
    NCCL_SLOT_BYTES = 2 * NCCL_SMALL_BYTES, // a payload, and a level for each of its elements (nccl_reduce.c)
    NCCL_SLOTS = 4,                         // payloads per rank that others may not have read yet
    NCCL_PAIR_RANKS = 64,                   // if more ranks run, messages between two transfer no payload
};

struct nccl_unique_id {
    char bytes[NCCL_ID_BYTES];
};

// A call of a rank. Sends and receives are numbered per pair of ranks.
struct nccl_post {
    _Atomic uint64_t number; // number of the call, from 1; written last
    int32_t kind, type, operator, root;
    uint64_t count;
    uint32_t payload_bytes; // 0: no payload is transferred
    uint32_t unused;
};

enum { NCCL_RANK_ABSENT, NCCL_RANK_JOINED, NCCL_RANK_LEFT };

struct nccl_rank {
    _Atomic int state;
    _Atomic int pid;
    _Atomic uint64_t posted, finished; // numbers of the last calls
    _Atomic uint64_t idle_since;       // while it waits: when a rank that it waits for was last busy (CLOCK_MONOTONIC, ns); 0: it does not
    _Atomic int thread;                // that made the last call
    struct nccl_post posts[NCCL_POSTS];
};

// Messages from one rank to another, posted by both sides.
struct nccl_pair {
    _Atomic uint64_t sent, received;
    struct nccl_post sends[NCCL_POSTS], receives[NCCL_POSTS];
};

struct nccl_shared {
    _Atomic uint64_t magic;
    _Atomic int rank_count;
    _Atomic int broken;     // a result: the communicator can no longer be used; 0: intact
    char sentence[512];     // reason; written before `broken`
    _Atomic int is_writing; // a rank is writing the message
    struct nccl_rank ranks[];
};

#define NCCL_COMMUNICATOR UINT64_C(0x6e63636c00000001)

struct nccl_taken {
    struct nccl_taken *next;
    uint64_t address, bytes;
    uint64_t handle;
};

struct nccl_comm {
    struct standin_object object;
    struct nccl_comm *next; // of this process (nccl_wait.c)
    int rank, rank_count, device;
    uint64_t context;
    char name[NCCL_NAME_BYTES];
    int descriptor; // of the file; its lock shows that this rank is alive
    struct nccl_shared *shared;
    size_t shared_bytes;
    uint64_t posted;           // number of calls of this rank
    uint64_t shrinks;          // number of shrinks of this communicator
    uint64_t *sent, *received; // number of messages by peer
    unsigned char *runs;       // by rank: its number from 1 among the ranks that are processes, 0: it is not one; NULL: all are
    int *givers;               // by rank: the rank whose data replaces its own; NULL: all run
    int running_count;
    struct nccl_taken *taken; // its device memory
    // Records of its calls (nccl_calls.c); those of messages by peer.
    struct vr_rank_calls_row *collectives, **sends, **receives;
    uint64_t taken_bytes;
    bool has_connections, is_suspended, is_joined;
    int peers_sent_to; // or received from, up to a bound
    char last_error[512];
};

// --- rendezvous.c ------------------------------------------------------------------------------------------------------------------------
// Makes a random name. Returns false if no random numbers are available.
bool nccl_new_name(char name[NCCL_NAME_BYTES]);
// Derives a name that is the same on every rank and as secret as `name`.
void nccl_derive_name(char result[NCCL_NAME_BYTES], const char *name, const char *purpose, uint64_t number);
// Joins the file and claims the rank. nccl_meet() then waits for the others.
int nccl_join(struct nccl_comm *comm, const char *name, int rank, int rank_count);
int nccl_meet(struct nccl_comm *comm);
void nccl_leave(struct nccl_comm *comm);
// Returns NULL if one of both does not run, or if too many ranks run.
struct nccl_pair *nccl_pair_of(const struct nccl_comm *comm, int from, int to);
unsigned char *nccl_payload(const struct nccl_comm *comm, int rank, uint64_t number);
unsigned char *nccl_pair_payload(const struct nccl_comm *comm, int from, int to, uint64_t number);
// Returns a rank that joined and has ended, or -1. `needed`: the rank to look at; -1: all.
int nccl_gone_rank(const struct nccl_comm *comm, int needed);

// --- nccl_wait.c -------------------------------------------------------------------------------------------------------------------------
// Adds the communicator to those of this process, or removes it.
void nccl_list(struct nccl_comm *comm);
void nccl_unlist(struct nccl_comm *comm);
// Waits until ready(argument) is true. Fails if a rank of `needed` has ended, if the communicator is broken, or at the time limit. If ranks
// only wait for each other, sets *late and returns success. With late == NULL they may wait for each other until the time limit.
struct nccl_wait {
    bool (*ready)(const struct nccl_comm *comm, const void *argument);
    const void *argument;
    int needed; // a rank; -1: all ranks
    const char *what;
};
int nccl_wait(struct nccl_comm *comm, const struct nccl_wait *wait, bool *late);
// Marks the communicator as broken, with an error message, unless it is already broken. Returns `result`.
int nccl_break(struct nccl_comm *comm, int result, const char *format, ...) __attribute__((format(printf, 3, 4)));
// Returns the result that broke the communicator and stores its message; 0 if it is intact.
int nccl_broken(struct nccl_comm *comm);
// Stores a message for ncclGetLastError() and returns `result`.
int nccl_fail(struct nccl_comm *comm, int result, const char *format, ...) __attribute__((format(printf, 3, 4)));

// --- nccl_fold.c -----------------------------------------------------------------------------------------------------------------------
// Finds out which ranks of a new communicator run: those that its id names (`of_id`), else (NULL) those of VRAM_SIM_RANKS, which counts
// for communicators of all ranks. *runs is NULL if all run; the caller owns it. Returns false if this rank is not among them or the host is
// out of memory.
bool nccl_fold(const char *of_id, int rank, int rank_count, unsigned char **runs);
// Does the same for a communicator of `count` ranks of `parent`, given the place of each of the parent's ranks in it, or -1.
bool nccl_fold_part(const struct nccl_comm *parent, const int *places, int count, unsigned char **runs);
bool nccl_runs(const struct nccl_comm *comm, int rank);
// Returns a rank's number among those that run, which it does.
int nccl_place_of(const struct nccl_comm *comm, int rank);
// Finds out, for all ranks of the communicator, what nccl_stands_for() returns. Returns false if the host is out of memory.
bool nccl_find_givers(struct nccl_comm *comm, int rank_count);
// Returns the rank whose data replaces this rank's: itself if it runs, else the next lower one that runs, else the next higher one.
int nccl_stands_for(const struct nccl_comm *comm, int rank);

// --- nccl_memory.c -----------------------------------------------------------------------------------------------------------------------
// Allocates device memory like NCCL: created and mapped, in multiples of the granularity. Returns false if the driver refuses.
bool nccl_take(struct nccl_comm *comm, uint64_t bytes);
void nccl_give_all(struct nccl_comm *comm);

// --- nccl_reduce.c -----------------------------------------------------------------------------------------------------------------------
size_t nccl_width(int type);
const char *nccl_type_name(int type);
bool nccl_can_reduce(int type, int operator);
// Computes into = into (operator) from for each element; NCCL_AVERAGE adds.
void nccl_reduce(int type, int operator, void * into, const void *from, size_t count);
void nccl_divide(int type, void *values, size_t count, int divisor);

// --- nccl_comm.c -------------------------------------------------------------------------------------------------------------------------
bool nccl_is_comm(const struct nccl_comm *comm);
// Returns whether the thread is inside a group. The end of the group then finishes its calls.
bool nccl_in_group(void);
// Defers the communicator's meeting to the end of the group.
void nccl_meet_later(struct nccl_comm *comm);
// Posts a split and waits for the color and key of every rank.
struct nccl_member {
    int32_t color, key;
};
int nccl_exchange_members(struct nccl_comm *comm, struct nccl_member mine, struct nccl_member *all);

// ---- A collective or a message in progress.

struct nccl_call {
    struct nccl_comm *comm;
    enum nccl_kind kind;
    const void *from;
    void *to;
    uint64_t count;
    int type, operator, root; // root: for a message, the other rank
    uint64_t stream;
    // Passed from nccl_call_begin() to nccl_call_finish():
    uint64_t number; // of the call, or of the message in its pair, from 1
    bool moves;
    enum { PENDING, BEGUN, DONE } state; // of a call in a group
    bool captured;                       // into a graph
    uint64_t group;                      // number of the group in the process
    // Receives from absent ranks which get the same data as this one.
    struct nccl_call *heirs, *next_heir;
};

struct nccl_kind_facts {
    const char *name;
    bool has_operator, has_root;
};
extern const struct nccl_kind_facts nccl_kinds[NCCL_KINDS];

static inline bool nccl_is_message(const struct nccl_call *call) { return call->kind == NCCL_SEND || call->kind == NCCL_RECEIVE; }

// --- nccl_reduce.c: elements and their levels -----------------------------------------------------------------------

// Reads the call's input into a slot: elements, and their levels at offset NCCL_SMALL_BYTES. Returns false if the driver refuses.
bool nccl_read_values(const struct nccl_call *call, unsigned char *slot, uint64_t bytes);
// Marks a range that a call overwrites as unknown, until the results are written.
void nccl_forget_values(const void *at, uint64_t bytes);
// Writes elements from a slot or from own memory. Levels come from another rank: an invalid one counts as unknown.
bool nccl_write_values(const struct nccl_call *call, void *to, const void *bytes, const uint8_t *levels);
static inline const uint8_t *nccl_levels(const unsigned char *slot) { return slot + NCCL_SMALL_BYTES; }
// Combines levels: the result of two elements is known as well as the less known one.
void nccl_reduce_levels(uint8_t *into, const uint8_t *from, uint64_t count);

// --- nccl_calls.c: records the calls, if `vram fit` runs the program ---
void nccl_note_join(struct nccl_comm *comm);
void nccl_note_call(const struct nccl_call *call);

// --- nccl_collective.c ---

// Posts and launches the call; the communicator must be intact. Every call that has begun must be finished.
int nccl_call_begin(struct nccl_call *call);
// Waits for the other ranks' data and writes the results.
int nccl_call_finish(struct nccl_call *call);

#endif
