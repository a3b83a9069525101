// Communicators of which only some ranks run (`vram fit --fold`). The absent ranks are never waited for; running ones supply their data.
#define _GNU_SOURCE
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "nccl.h"

// Reads a rank at *text and moves *text past it. Returns -1 if it is not a valid rank.
static int read_rank(const char **text, int count) {
    char *end;
    if (**text < '0' || **text > '9') return -1;
    const long number = strtol(*text, &end, 10);
    if (number >= count) return -1;
    *text = end;
    return (int)number;
}

// Reads ranks with commas between them.
static bool read_ranks(const char *text, int count, unsigned char *runs) {
    for (;; text++) {
        const int rank = read_rank(&text, count);
        if (rank < 0) return false;
        runs[rank] = 1;
        if (*text != ',') return *text == '\0';
    }
}

// Returns the running ranks that VRAM_SIM_RANKS=COUNT:RANK,... sets for a communicator of all COUNT ranks; NULL if it sets none.
static const char *ranks_of_world(int rank_count) {
    const char *text = getenv("VRAM_SIM_RANKS");
    if (text == NULL) return NULL;
    char *end;
    const long count = strtol(text, &end, 10);
    return *end == ':' && count == rank_count ? end + 1 : NULL;
}

// Numbers the ranks that run, at most 255 (--fold allows 64).
static void number_ranks(unsigned char *runs, int count) {
    unsigned char last = 0;
    for (int rank = 0; rank < count; rank++)
        if (runs[rank] != 0 && last < UCHAR_MAX) runs[rank] = ++last;
}

bool nccl_fold(const char *of_id, int rank, int rank_count, unsigned char **runs) {
    const char *ranks = of_id != NULL ? of_id : ranks_of_world(rank_count);
    *runs = NULL;
    if (ranks == NULL) return true;
    unsigned char *read = calloc((size_t)rank_count, 1);
    if (read != NULL && read_ranks(ranks, rank_count, read) && read[rank] != 0) {
        number_ranks(read, rank_count);
        *runs = read;
        return true;
    }
    free(read);
    return false;
}

bool nccl_fold_part(const struct nccl_comm *parent, const int *places, int count, unsigned char **runs) {
    *runs = NULL;
    if (parent->runs == NULL) return true;
    *runs = calloc((size_t)count, 1);
    if (*runs == NULL) return false;
    for (int rank = 0; rank < parent->rank_count; rank++)
        if (places[rank] >= 0) (*runs)[places[rank]] = parent->runs[rank];
    number_ranks(*runs, count);
    return true;
}

bool nccl_runs(const struct nccl_comm *comm, int rank) { return comm->runs == NULL || comm->runs[rank] != 0; }

int nccl_place_of(const struct nccl_comm *comm, int rank) { return comm->runs == NULL ? rank : comm->runs[rank] - 1; }

bool nccl_find_givers(struct nccl_comm *comm, int rank_count) {
    int giver = 0;
    comm->running_count = rank_count;
    if (comm->runs == NULL) return true;
    comm->givers = calloc((size_t)rank_count, sizeof *comm->givers);
    if (comm->givers == NULL) return false;
    comm->running_count = 0;
    while (!nccl_runs(comm, giver)) giver++; // this rank runs, so the search ends
    for (int rank = 0; rank < rank_count; rank++) {
        if (nccl_runs(comm, rank)) giver = rank;
        comm->givers[rank] = giver;
        comm->running_count += nccl_runs(comm, rank);
    }
    return true;
}

int nccl_stands_for(const struct nccl_comm *comm, int rank) { return comm->givers == NULL ? rank : comm->givers[rank]; }
