#define _GNU_SOURCE // processors of threads
#include "peers_threads.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>

// Chunks are short, so that in the fastest chunk both threads had a processor.
enum { CHUNKS = 400, ROUNDS = 4000, BATCHES = 16, BATCH = 50, YIELD_AFTER = 1000, LIVE = 512, MOST_BYTES = 64 << 10 };

struct team {
    enum team_work work;
    atomic_int ready; // the chunk that the second thread is ready for
    atomic_int chunk; // the current chunk; -1: the end
    atomic_int done;  // the chunk that the second thread has completed
    struct batch {
        _Alignas(64) atomic_int full;
        uint64_t blocks[BATCH];
    } batches[BATCHES]; // in transit
    double ns[PEERS][CHUNKS];
};

static void spin_or_yield(unsigned *spins) {
    if (++*spins % YIELD_AFTER == 0) (void)sched_yield();
}

// Gives each thread its own processor if possible: a busy scheduler puts both on one.
static void settle(int member) {
    cpu_set_t allowed, own;
    if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) return;
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
        if (!CPU_ISSET(cpu, &allowed) || member-- > 0) continue;
        CPU_ZERO(&own);
        CPU_SET(cpu, &own);
        (void)pthread_setaffinity_np(pthread_self(), sizeof own, &own);
        return;
    }
}

static const struct peer *peer_of_chunk(int chunk) { return &peers[chunk % PEERS]; }

static void work_in_pairs(const struct team *team, const struct peer *peer, int member) {
    const uint64_t stream = peer_streams[team->work == TEAM_OWN_STREAMS ? member : 0];
    for (int i = 0; i < ROUNDS; i++) peer->give(peer->take(1024, stream));
}

// Replaces one of LIVE blocks, of 1 byte to 64 KiB, on its own stream.
static void work_mixed(const struct peer *peer, int member) {
    uint64_t live[LIVE] = {0};
    uint32_t random = (uint32_t)member + 1;
    for (int i = 0; i < ROUNDS; i++) {
        random = random * 1664525u + 1013904223u;
        uint64_t *block = &live[(random >> 8) % LIVE];
        if (*block != 0) peer->give(*block);
        *block = peer->take((random >> 12) % MOST_BYTES + 1, peer_streams[member]);
    }
    for (int i = 0; i < LIVE; i++) {
        if (live[i] != 0) peer->give(live[i]);
    }
}

// The first thread allocates, the second frees. They synchronize once per batch, so that the harness costs little.
static void hand_over(struct team *team, const struct peer *peer, int member) {
    unsigned spins = 0;
    for (int i = 0; i < 2 * ROUNDS / BATCH; i++) {
        struct batch *batch = &team->batches[i % BATCHES];
        while (atomic_load_explicit(&batch->full, memory_order_acquire) != member) spin_or_yield(&spins);
        for (int b = 0; b < BATCH; b++) {
            if (member == 0) {
                batch->blocks[b] = peer->take(1024, peer_streams[0]);
            } else {
                peer->give(batch->blocks[b]);
            }
        }
        atomic_store_explicit(&batch->full, !member, memory_order_release);
    }
}

static void work_on_chunk(struct team *team, int chunk, int member) {
    if (team->work == TEAM_HAND_OVER) {
        hand_over(team, peer_of_chunk(chunk), member);
    } else if (team->work == TEAM_MIXED || team->work == TEAM_MIXED_ALONE) {
        if (team->work == TEAM_MIXED || member == 0) work_mixed(peer_of_chunk(chunk), member);
    } else {
        work_in_pairs(team, peer_of_chunk(chunk), member);
    }
}

static void *run_second(void *opaque) {
    struct team *team = opaque;
    unsigned spins = 0;
    settle(1);
    for (int next = PEERS;; next++) {
        atomic_store(&team->ready, next);
        int chunk;
        while ((chunk = atomic_load(&team->chunk)) != next && chunk >= 0) spin_or_yield(&spins);
        if (chunk < 0) return NULL;
        if (peer_of_chunk(chunk)->take != NULL) work_on_chunk(team, chunk, 1);
        atomic_store(&team->done, next);
    }
}

// Measures from the moment both threads can begin. If the second thread gets no processor for a while, the first one's work in that time is
// included.
static double ns_of_chunk(struct team *team, int chunk) {
    unsigned spins = 0;
    while (atomic_load(&team->ready) != chunk) spin_or_yield(&spins);
    const double begin = now_ns();
    atomic_store(&team->chunk, chunk);
    if (peer_of_chunk(chunk)->take != NULL) work_on_chunk(team, chunk, 0);
    while (atomic_load(&team->done) != chunk) spin_or_yield(&spins);
    return (now_ns() - begin) / (2 * ROUNDS);
}

static int by_size(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

void teams_measure(enum team_work work, struct team_figure figures[PEERS]) {
    static struct team team;
    pthread_t second;
    cpu_set_t before;
    const bool settles = sched_getaffinity(0, sizeof before, &before) == 0;
    memset(&team, 0, sizeof team);
    team.work = work;
    if (pthread_create(&second, NULL, run_second, &team) != 0) die("no thread");
    settle(0);
    for (int chunk = PEERS; chunk < (CHUNKS + 1) * PEERS; chunk++) {
        team.ns[chunk % PEERS][chunk / PEERS - 1] = ns_of_chunk(&team, chunk);
    }
    atomic_store(&team.chunk, -1);
    (void)pthread_join(second, NULL);
    if (settles) (void)pthread_setaffinity_np(pthread_self(), sizeof before, &before);
    for (int p = 0; p < PEERS; p++) {
        qsort(team.ns[p], CHUNKS, sizeof team.ns[p][0], by_size);
        figures[p] = (struct team_figure){team.ns[p][0], team.ns[p][CHUNKS / 2]};
    }
}
