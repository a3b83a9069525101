// The file shared by the ranks of a communicator: joining and detecting ended ranks.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "nccl.h"

#define MAGIC UINT64_C(0x766e63636c303031)

// --- names -------------------------------------------------------------------------------------------------------------------------------
static void write_name(char name[NCCL_NAME_BYTES], uint64_t high, uint64_t low) {
    (void)snprintf(name, NCCL_NAME_BYTES, "%016llx%016llx", (unsigned long long)high, (unsigned long long)low);
}

bool nccl_new_name(char name[NCCL_NAME_BYTES]) {
    uint64_t random[2];
    if (getrandom(random, sizeof random, 0) != (ssize_t)sizeof random) return false;
    write_name(name, random[0], random[1]);
    return true;
}

static uint64_t mix_bits(uint64_t value) {
    value = (value ^ (value >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    value = (value ^ (value >> 27)) * UINT64_C(0x94d049bb133111eb);
    return value ^ (value >> 31);
}

void nccl_derive_name(char result[NCCL_NAME_BYTES], const char *name, const char *purpose, uint64_t number) {
    uint64_t high = mix_bits(number + 1), low = mix_bits(~number);
    for (const char *c = name; *c != '\0'; c++) {
        high = mix_bits(high * 31 + (unsigned char)*c);
        low = mix_bits(low * 131 + (unsigned char)*c);
    }
    for (const char *c = purpose; *c != '\0'; c++) {
        high = mix_bits(high ^ (unsigned char)*c);
        low = mix_bits(low + (unsigned char)*c);
    }
    write_name(result, high, low);
}

// --- the file ----------------------------------------------------------------------------------------------------------------------------
// The head with ranks, the payloads of collectives, then pairs with their payloads. Untouched parts take no memory.
static size_t round_to_page(size_t bytes) { return (bytes + 4095) & ~(size_t)4095; }
static size_t head_bytes(int count) { return round_to_page(sizeof(struct nccl_shared) + (size_t)count * sizeof(struct nccl_rank)); }
static size_t payloads_bytes(int count) { return (size_t)count * NCCL_SLOTS * NCCL_SLOT_BYTES; }
static size_t pair_bytes(void) { return round_to_page(sizeof(struct nccl_pair)) + (size_t)NCCL_SLOTS * NCCL_SLOT_BYTES; }
static size_t pairs_bytes(int count) { return count > NCCL_PAIR_RANKS ? 0 : (size_t)count * (size_t)count * pair_bytes(); }

unsigned char *nccl_payload(const struct nccl_comm *comm, int rank, uint64_t number) {
    const size_t slot = (size_t)rank * NCCL_SLOTS + number % NCCL_SLOTS;
    return (unsigned char *)comm->shared + head_bytes(comm->rank_count) + slot * NCCL_SLOT_BYTES;
}

struct nccl_pair *nccl_pair_of(const struct nccl_comm *comm, int from, int to) {
    if (comm->running_count > NCCL_PAIR_RANKS || !nccl_runs(comm, from) || !nccl_runs(comm, to)) return NULL;
    const size_t pair = (size_t)nccl_place_of(comm, from) * (size_t)comm->running_count + (size_t)nccl_place_of(comm, to);
    unsigned char *pairs = (unsigned char *)comm->shared + head_bytes(comm->rank_count) + payloads_bytes(comm->rank_count);
    return (struct nccl_pair *)(void *)(pairs + pair * pair_bytes());
}

unsigned char *nccl_pair_payload(const struct nccl_comm *comm, int from, int to, uint64_t number) {
    unsigned char *pair = (unsigned char *)nccl_pair_of(comm, from, to);
    return pair + round_to_page(sizeof(struct nccl_pair)) + number % NCCL_SLOTS * NCCL_SLOT_BYTES;
}

static void path_of(const char *name, char path[64]) { (void)snprintf(path, 64, "/dev/shm/vram-nccl-%s", name); }

// Accepts only a regular file of this user, private, and of the right size once a rank has set it: another user could have put a file
// there.
static bool is_ours(int descriptor, off_t bytes) {
    struct stat facts;
    if (fstat(descriptor, &facts) != 0 || !S_ISREG(facts.st_mode) || facts.st_uid != geteuid() || (facts.st_mode & 077) != 0) return false;
    return facts.st_size == bytes || (facts.st_size == 0 && ftruncate(descriptor, bytes) == 0);
}

static bool map_rendezvous(struct nccl_comm *comm) {
    char path[64];
    path_of(comm->name, path);
    comm->descriptor = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (comm->descriptor < 0) return false;
    comm->shared_bytes = head_bytes(comm->rank_count) + payloads_bytes(comm->rank_count) + pairs_bytes(comm->running_count);
    if (is_ours(comm->descriptor, (off_t)comm->shared_bytes)) {
        void *mapped = mmap(NULL, comm->shared_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, comm->descriptor, 0);
        if (mapped != MAP_FAILED) comm->shared = mapped;
    }
    if (comm->shared == NULL) (void)close(comm->descriptor);
    return comm->shared != NULL;
}

// --- detection of ended ranks ---------------------------------------------------------------------------------------
// A rank locks the byte of its number. The kernel releases the lock when the process ends, and a forked child does not inherit it.
static bool hold_lock(const struct nccl_comm *comm) {
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = comm->rank, .l_len = 1};
    return fcntl(comm->descriptor, F_SETLK, &lock) == 0;
}

static bool is_alive(const struct nccl_comm *comm, int rank) {
    if (atomic_load(&comm->shared->ranks[rank].pid) == (int)getpid()) return true; // F_GETLK does not report own locks
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = rank, .l_len = 1};
    return fcntl(comm->descriptor, F_GETLK, &lock) != 0 || lock.l_type != F_UNLCK;
}

int nccl_gone_rank(const struct nccl_comm *comm, int needed) {
    for (int rank = needed < 0 ? 0 : needed; rank < (needed < 0 ? comm->rank_count : needed + 1); rank++) {
        if (rank == comm->rank || !nccl_runs(comm, rank)) continue; // reading the row of a rank that does not run would take a page
        const int state = atomic_load(&comm->shared->ranks[rank].state);
        if (state == NCCL_RANK_ABSENT) continue;
        if (state == NCCL_RANK_LEFT || !is_alive(comm, rank)) return rank;
    }
    return -1;
}

// --- failing -----------------------------------------------------------------------------------------------------------------------------
static void note_sentence(struct nccl_comm *comm, const char *sentence) {
    (void)snprintf(comm->last_error, sizeof comm->last_error, "%s", sentence);
}

int nccl_fail(struct nccl_comm *comm, int result, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(comm->last_error, sizeof comm->last_error, format, arguments);
    va_end(arguments);
    return result;
}

// Bounds the message, because any rank may write the file and the NUL may be missing.
int nccl_broken(struct nccl_comm *comm) {
    const int broken = atomic_load(&comm->shared->broken);
    if (broken == 0) return 0;
    const bool is_result = broken > 0 && broken < NCCL_RESULTS;
    return nccl_fail(comm, is_result ? broken : NCCL_REMOTE_ERROR, "%.*s", (int)sizeof comm->shared->sentence - 1, comm->shared->sentence);
}

int nccl_break(struct nccl_comm *comm, int result, const char *format, ...) {
    char sentence[sizeof comm->shared->sentence];
    int not_writing = 0;
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(sentence, sizeof sentence, format, arguments);
    va_end(arguments);
    note_sentence(comm, sentence);
    if (!atomic_compare_exchange_strong(&comm->shared->is_writing, &not_writing, 1)) return result;
    memcpy(comm->shared->sentence, sentence, sizeof sentence);
    atomic_store(&comm->shared->broken, result);
    (void)fprintf(stderr, "vram: %s\n", sentence);
    return result;
}

// --- meeting -----------------------------------------------------------------------------------------------------------------------------
static int claim_rank(struct nccl_comm *comm) {
    struct nccl_shared *shared = comm->shared;
    int count = 0, absent = NCCL_RANK_ABSENT;
    if (!atomic_compare_exchange_strong(&shared->rank_count, &count, comm->rank_count) && count != comm->rank_count)
        return nccl_fail(comm, NCCL_INVALID_ARGUMENT, "NCCL: the ranks disagree on their number: rank %d has %d, another rank has %d",
                         comm->rank, comm->rank_count, count);
    struct nccl_rank *mine = &shared->ranks[comm->rank];
    int owner_pid = 0;
    if (!atomic_compare_exchange_strong(&mine->pid, &owner_pid, (int)getpid()) || atomic_load(&mine->state) != absent || !hold_lock(comm))
        return nccl_fail(comm, NCCL_INVALID_ARGUMENT, "NCCL: two processes have rank %d (processes %d and %d)", comm->rank, owner_pid,
                         (int)getpid());
    atomic_store(&shared->magic, MAGIC);
    atomic_store(&mine->state, NCCL_RANK_JOINED);
    return NCCL_SUCCESS;
}

int nccl_join(struct nccl_comm *comm, const char *name, int rank, int rank_count) {
    comm->rank = rank;
    comm->rank_count = rank_count;
    (void)snprintf(comm->name, sizeof comm->name, "%s", name);
    if (!map_rendezvous(comm))
        return nccl_fail(comm, NCCL_SYSTEM_ERROR, "NCCL: cannot create the ranks' shared memory in /dev/shm: %s", strerror(errno));
    const int result = claim_rank(comm);
    if (result != NCCL_SUCCESS) {
        (void)munmap(comm->shared, comm->shared_bytes);
        (void)close(comm->descriptor);
        comm->shared = NULL;
    }
    if (result == NCCL_SUCCESS) nccl_list(comm);
    return result;
}

static bool all_came(const struct nccl_comm *comm, const void *unused) {
    (void)unused;
    for (int rank = 0; rank < comm->rank_count; rank++)
        if (nccl_runs(comm, rank) && atomic_load(&comm->shared->ranks[rank].state) == NCCL_RANK_ABSENT) return false;
    return true;
}

// Waits for all ranks. The first that sees all of them unlinks the name; the others find it gone.
int nccl_meet(struct nccl_comm *comm) {
    char path[64];
    path_of(comm->name, path);
    const int result = nccl_wait(comm, &(struct nccl_wait){all_came, NULL, -1, "the start of a communicator"}, NULL);
    (void)unlink(path);
    comm->is_joined = result == NCCL_SUCCESS;
    if (result == NCCL_TIMEOUT) {
        int came = 0;
        for (int rank = 0; rank < comm->rank_count; rank++)
            came += nccl_runs(comm, rank) && atomic_load(&comm->shared->ranks[rank].state) != NCCL_RANK_ABSENT;
        return nccl_break(comm, result, "NCCL: rank %d timed out waiting for %d ranks; %d joined", comm->rank, comm->rank_count, came);
    }
    return result;
}

static bool shares_process(const struct nccl_comm *comm) {
    for (int rank = 0; rank < comm->rank_count; rank++) {
        if (rank == comm->rank || !nccl_runs(comm, rank)) continue;
        const struct nccl_rank *other = &comm->shared->ranks[rank];
        if (atomic_load(&other->pid) == (int)getpid() && atomic_load(&other->state) == NCCL_RANK_JOINED) return true;
    }
    return false;
}

// Closing a descriptor releases all locks that the process has on the file, so it stays open while another rank of the process needs them.
void nccl_leave(struct nccl_comm *comm) {
    if (comm->shared == NULL) return;
    if (!comm->is_joined) {
        char path[64];
        path_of(comm->name, path);
        (void)unlink(path);
    }
    atomic_store(&comm->shared->ranks[comm->rank].state, NCCL_RANK_LEFT);
    const bool stays = shares_process(comm);
    nccl_unlist(comm);
    (void)munmap(comm->shared, comm->shared_bytes);
    if (!stays) (void)close(comm->descriptor);
    comm->shared = NULL;
}
