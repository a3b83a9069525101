// Waiting for other ranks.
//
// NCCL's calls return before the data have come, so two ranks may each call first what the other calls second. Here they would wait for
// each other forever. A rank is busy if one of its threads is runnable. A rank that waits publishes `idle_since` in all communicators of
// its process: the latest time at which a rank that it waits for, directly or through others, was busy. If ranks only wait for each other,
// that time stays.
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "nccl.h"

// Ranks that wait for each other give up after a part of the time, those that wait for a busy rank after a multiple: a pipeline's stages
// may compile one after the other.
enum { WAITING_SECONDS = 600, STUCK_PART = 30, BUSY_TIMES = 6 };
enum { SHORTEST_NS = 20000, LONGEST_NS = 1000000, LOOKING_NS = 20000000 };

// --- the process's communicators ----------------------------------------------------------------------------------------------------
static pthread_mutex_t list_lock = PTHREAD_MUTEX_INITIALIZER;
static struct nccl_comm *listed;
static int waiting_threads;

void nccl_list(struct nccl_comm *comm) {
    (void)pthread_mutex_lock(&list_lock);
    comm->next = listed;
    listed = comm;
    (void)pthread_mutex_unlock(&list_lock);
}

void nccl_unlist(struct nccl_comm *comm) {
    (void)pthread_mutex_lock(&list_lock);
    for (struct nccl_comm **at = &listed; *at != NULL; at = &(*at)->next) {
        if (*at != comm) continue;
        *at = comm->next;
        break;
    }
    (void)pthread_mutex_unlock(&list_lock);
}

// `change` is 1 if a thread begins to wait, -1 if it ends.
static void publish_idle(uint64_t since, int change) {
    (void)pthread_mutex_lock(&list_lock);
    waiting_threads += change;
    for (struct nccl_comm *comm = listed; comm != NULL; comm = comm->next)
        atomic_store(&comm->shared->ranks[comm->rank].idle_since, waiting_threads == 0 ? 0 : since);
    (void)pthread_mutex_unlock(&list_lock);
}

static uint64_t monotonic_ns(void) {
    struct timespec time;
    (void)clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * UINT64_C(1000000000) + (uint64_t)time.tv_nsec;
}

// --- which ranks are busy -----------------------------------------------------------------------------------------------------------
// Returns whether a thread is runnable, even if other processes have the processors, or reads a disk.
static bool is_runnable(int process, int thread) {
    char path[64], text[200];
    (void)snprintf(path, sizeof path, "/proc/%d/task/%d/stat", process, thread);
    const int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) return false;
    const ssize_t length = read(file, text, sizeof text - 1);
    (void)close(file);
    text[length < 0 ? 0 : length] = '\0';
    const char *name_end = strrchr(text, ')'); // "PID (NAME) STATE ..."
    return name_end != NULL && (strncmp(name_end, ") R", 3) == 0 || strncmp(name_end, ") D", 3) == 0);
}

static bool is_busy(const struct nccl_rank *rank) {
    const int process = atomic_load(&rank->pid);
    return is_runnable(process, process) || is_runnable(process, atomic_load(&rank->thread));
}

// Returns the latest time at which a rank of `needed` was busy, or `since` if that is later.
static uint64_t last_busy(const struct nccl_comm *comm, int needed, uint64_t since, uint64_t now) {
    for (int rank = needed < 0 ? 0 : needed; rank < (needed < 0 ? comm->rank_count : needed + 1); rank++) {
        if (rank == comm->rank || !nccl_runs(comm, rank)) continue;
        const uint64_t theirs = atomic_load(&comm->shared->ranks[rank].idle_since);
        if (theirs == 0 && is_busy(&comm->shared->ranks[rank])) return now;
        if (theirs > since && theirs <= now) since = theirs;
    }
    return since;
}

// --- waiting ------------------------------------------------------------------------------------------------------------------------
static uint64_t waiting_limit_ns(void) {
    const char *text = getenv("VRAM_SIM_NCCL_SECONDS");
    const double wanted = text == NULL ? 0 : strtod(text, NULL);
    return (uint64_t)((wanted > 0 && wanted < 1e9 ? wanted : WAITING_SECONDS) * 1e9);
}

// Returns a failure if the wait cannot succeed any more, else 0.
static int waits_in_vain(struct nccl_comm *comm, const struct nccl_wait *wait) {
    const int broken = nccl_broken(comm);
    if (broken != 0) return broken;
    const int gone = nccl_gone_rank(comm, wait->needed);
    // Check again: the rank may have done its part just before it ended.
    if (gone < 0 || wait->ready(comm, wait->argument)) return 0;
    return nccl_break(comm, NCCL_REMOTE_ERROR, "NCCL: rank %d waits in %s for rank %d, which has ended (process %d)", comm->rank,
                      wait->what, gone, atomic_load(&comm->shared->ranks[gone].pid));
}

static int timed_out(struct nccl_comm *comm, const struct nccl_wait *wait, uint64_t limit_ns, bool of_data) {
    const double seconds = (double)limit_ns / 1e9;
    if (!of_data) return nccl_fail(comm, NCCL_TIMEOUT, "NCCL: rank %d timed out in %s", comm->rank, wait->what);
    if (wait->needed < 0)
        return nccl_break(comm, NCCL_TIMEOUT, "NCCL: rank %d waited %g s in %s for ranks that run but do not call it", comm->rank, seconds,
                          wait->what);
    return nccl_break(comm, NCCL_TIMEOUT, "NCCL: rank %d waited %g s in %s for rank %d, which runs but does not call it", comm->rank,
                      seconds, wait->what, wait->needed);
}

// Waits for the condition and returns the result. Sets *late if ranks wait for each other.
static int wait_on(struct nccl_comm *comm, const struct nccl_wait *wait, bool *late) {
    const uint64_t begin = monotonic_ns(), stuck_ns = waiting_limit_ns() / STUCK_PART;
    const uint64_t limit_ns = waiting_limit_ns() * (late != NULL ? BUSY_TIMES : 1);
    uint64_t idle_since = begin, looked = 0;
    for (long pause_ns = SHORTEST_NS; !wait->ready(comm, wait->argument); pause_ns *= pause_ns < LONGEST_NS ? 2 : 1) {
        const int failed = waits_in_vain(comm, wait);
        if (failed != 0) return failed;
        const uint64_t now = monotonic_ns();
        (void)nanosleep(&(struct timespec){.tv_nsec = pause_ns}, NULL);
        if (now - begin > limit_ns) return timed_out(comm, wait, limit_ns, late != NULL);
        if (now - looked < LOOKING_NS) continue;
        looked = now;
        idle_since = last_busy(comm, wait->needed, idle_since, now);
        publish_idle(idle_since, 0);
        if (late == NULL || now - idle_since <= stuck_ns) continue;
        *late = true;
        return NCCL_SUCCESS;
    }
    return NCCL_SUCCESS;
}

int nccl_wait(struct nccl_comm *comm, const struct nccl_wait *wait, bool *late) {
    if (wait->ready(comm, wait->argument)) return NCCL_SUCCESS;
    publish_idle(monotonic_ns(), 1);
    const int result = wait_on(comm, wait, late);
    publish_idle(monotonic_ns(), -1);
    return result;
}
