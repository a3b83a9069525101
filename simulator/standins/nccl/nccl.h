// nccl.h: nCCL's numbers, communicators, and what the ranks of one share.
// Ranks are processes of this machine, or threads of one. They meet in a file of /dev/shm whose name is the secret of the unique id: it is
// made readable by its owner only, and unlinked as soon as all have come, so that nothing stays behind. What a rank calls it posts there:
// kind, type, size and root in the order of its calls. Whoever comes second compares; where two differ the communicator is broken, both
// ranks are named in one line, and every later call fails. Payloads up to NCCL_SMALL_BYTES really move, so that what programs agree upon
// (numbers, flags, short objects) is right; of larger ones only the order is kept.
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
enum { NCCL_ID_BYTES = 128, NCCL_NAME_BYTES = 40 }; // the name of the file, of hexadecimal digits
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
    NCCL_MOST_RANKS = 1024,
    NCCL_SMALL_BYTES = 64 << 10,            // of what a rank gives to a collective, or sends
    NCCL_POSTS = 256,                       // how far a rank may be ahead of another
    NCCL_SLOT_BYTES = 2 * NCCL_SMALL_BYTES, // a payload, and a level for each of its elements (nccl_reduce.c)
    NCCL_SLOTS = 4,                         // payloads of a rank that others may not have read yet
    NCCL_PAIR_RANKS = 64,                   // with more ranks messages between two move no payload
};

struct nccl_unique_id {
    char bytes[NCCL_ID_BYTES];
};

// What a rank calls. Of a send or receive, the order counts between the two.
struct nccl_post {
    _Atomic uint64_t number; // of the call, from 1; written last
    int32_t kind, type, operator, root;
    uint64_t count;
    uint32_t payload_bytes; // 0: none moves
    uint32_t unused;
};

enum { NCCL_RANK_ABSENT, NCCL_RANK_JOINED, NCCL_RANK_LEFT };

struct nccl_rank {
    _Atomic int state;
    _Atomic int pid;
    _Atomic uint64_t posted, finished; // calls
    struct nccl_post posts[NCCL_POSTS];
};

// Messages from one rank to another. A side each: what is sent, what is received.
struct nccl_pair {
    _Atomic uint64_t sent, received;
    struct nccl_post sends[NCCL_POSTS], receives[NCCL_POSTS];
};

struct nccl_shared {
    _Atomic uint64_t magic;
    _Atomic int rank_count;
    _Atomic int broken;     // a result: the communicator can no longer be used
    char sentence[512];     // why; written before broken
    _Atomic int is_writing; // of the sentence
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
    int rank, rank_count, device;
    uint64_t context;
    char name[NCCL_NAME_BYTES];
    int descriptor; // of the file; holds the lock that says that this rank lives
    struct nccl_shared *shared;
    size_t shared_bytes;
    uint64_t posted;           // calls of this rank
    uint64_t shrinks;          // of this communicator
    uint64_t *sent, *received; // messages by peer
    unsigned char *runs;       // by rank: a process is that; NULL: all are
    struct nccl_taken *taken;  // memory of the device
    uint64_t taken_bytes;
    bool has_buffers, is_suspended, is_joined;
    char last_error[512];
};

// --- rendezvous.c ------------------------------------------------------------------------------------------------------------------------
// A random name. False without randomness.
bool nccl_new_name(char name[NCCL_NAME_BYTES]);
// A name that every rank makes of the same parts; as secret as `name`.
void nccl_derive_name(char result[NCCL_NAME_BYTES], const char *name, const char *purpose, uint64_t number);
// Comes to the meeting: claims the rank. nccl_meet() then waits for the others.
int nccl_join(struct nccl_comm *comm, const char *name, int rank, int rank_count);
int nccl_meet(struct nccl_comm *comm);
void nccl_leave(struct nccl_comm *comm);
struct nccl_pair *nccl_pair_of(const struct nccl_comm *comm, int from, int to);
unsigned char *nccl_payload(const struct nccl_comm *comm, int rank, uint64_t number);
unsigned char *nccl_pair_payload(const struct nccl_comm *comm, int from, int to, uint64_t number);
// Waits until ready(argument), a rank of `needed` is gone or the communicator broken. *late becomes true, and the answer is success, where
// nothing of that happens in time; late NULL: that is a failure.
struct nccl_wait {
    bool (*ready)(const struct nccl_comm *comm, const void *argument);
    const void *argument;
    int needed; // a rank; -1: all
    const char *what;
};
int nccl_wait(struct nccl_comm *comm, const struct nccl_wait *wait, bool *late);
// Breaks the communicator with a sentence, unless it is; gives the result.
int nccl_break(struct nccl_comm *comm, int result, const char *format, ...) __attribute__((format(printf, 3, 4)));
// Why it is broken, with the sentence that tells; 0: it is not.
int nccl_broken(struct nccl_comm *comm);
// A result of a call, with a sentence for ncclGetLastError().
int nccl_fail(struct nccl_comm *comm, int result, const char *format, ...) __attribute__((format(printf, 3, 4)));

// --- nccl_comm.c -----------------------------------------------------------------------------------------------------------------------
// Finds which ranks of a new communicator run. False where the setting is wrong for it, or there is no memory.
bool nccl_fold(struct nccl_comm *comm, int rank, int rank_count);
bool nccl_runs(const struct nccl_comm *comm, int rank);
// The rank that gives what this one would give: itself, where it runs.
int nccl_stands_for(const struct nccl_comm *comm, int rank);

// --- nccl_memory.c -----------------------------------------------------------------------------------------------------------------------
// Memory as NCCL takes it: created, mapped, by the granularity of the device. False where the driver refuses.
bool nccl_take(struct nccl_comm *comm, uint64_t bytes);
void nccl_give_all(struct nccl_comm *comm);

// --- nccl_reduce.c -----------------------------------------------------------------------------------------------------------------------
size_t nccl_width(int type);
const char *nccl_type_name(int type);
bool nccl_can_reduce(int type, int operator);
// into = into (operator) from, element by element; with NCCL_AVERAGE a sum.
void nccl_reduce(int type, int operator, void * into, const void *from, size_t count);
void nccl_divide(int type, void *values, size_t count, int divisor);

// --- nccl_comm.c -------------------------------------------------------------------------------------------------------------------------
bool nccl_is_comm(const struct nccl_comm *comm);
// In a group, whose end finishes what was begun.
bool nccl_in_group(void);
// A communicator whose meeting waits for the end of the group.
void nccl_meet_later(struct nccl_comm *comm);
// Posts a split and waits for everyone's color and key.
struct nccl_member {
    int32_t color, key;
};
int nccl_exchange_members(struct nccl_comm *comm, struct nccl_member mine, struct nccl_member *all);

// ---- A collective or a message on its way.

struct nccl_call {
    struct nccl_comm *comm;
    enum nccl_kind kind;
    const void *from;
    void *to;
    uint64_t count;
    int type, operator, root; // root: of a message the other rank
    uint64_t stream;
    // What nccl_call_begin() leaves to nccl_call_finish():
    uint64_t number; // of the call, or of the message between the two, from 1
    bool moves;
    enum { PENDING, BEGUN, DONE } state; // of a group's call
};

struct nccl_kind_facts {
    const char *name;
    bool has_operator, has_root;
};
extern const struct nccl_kind_facts nccl_kinds[NCCL_KINDS];

static inline bool nccl_is_message(const struct nccl_call *call) { return call->kind == NCCL_SEND || call->kind == NCCL_RECEIVE; }

// --- nccl_reduce.c: elements with how far each is known ---

// Reads what the call gives into a slot: elements, and their levels behind NCCL_SMALL_BYTES. False where the driver refuses.
bool nccl_read_values(const struct nccl_call *call, unsigned char *slot, uint64_t bytes);
// Writes elements of a slot, or of one's own memory. The levels are another rank's: what is no level counts as unknown.
bool nccl_write_values(const struct nccl_call *call, void *to, const void *bytes, const uint8_t *levels);
static inline const uint8_t *nccl_levels(const unsigned char *slot) { return slot + NCCL_SMALL_BYTES; }
// An element that is made of two is as well known as the less known one.
void nccl_reduce_levels(uint8_t *into, const uint8_t *from, uint64_t count);

// --- nccl_collective.c ---

// Posts the call and launches it; of a communicator that is not broken. What began must be finished.
int nccl_call_begin(struct nccl_call *call);
// Waits for what the others give, and moves it.
int nccl_call_finish(struct nccl_call *call);

#endif
