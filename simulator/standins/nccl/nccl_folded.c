// Ranks that a program believes in and that do not run: VRAM_SIM_RANKS=COUNT:RANK,... (`vram fit --fold`) says how many there are and which
// of them are processes. In a communicator of COUNT ranks the others are never waited for; what they would give is what the next lower one
// that runs gives.
#include <stdlib.h>

#include "nccl.h"

// The number at *text, which goes on behind it; -1: none of ranks.
static int read_rank(const char **text, int count) {
    char *end;
    const long number = strtol(*text, &end, 10);
    if (end == *text || number < 0 || number >= count) return -1;
    *text = end;
    return (int)number;
}

static bool read_ranks(const char *text, int count, unsigned char *runs) {
    for (;; text++) {
        const int rank = read_rank(&text, count);
        if (rank < 0) return false;
        runs[rank] = 1;
        if (*text != ',') return *text == '\0' && runs[0] != 0;
    }
}

bool nccl_fold(struct nccl_comm *comm, int rank, int rank_count) {
    const char *text = getenv("VRAM_SIM_RANKS");
    if (text == NULL) return true;
    char *end;
    const long count = strtol(text, &end, 10);
    if (*end != ':' || count != rank_count) return true; // another communicator: all of it runs
    comm->runs = calloc((size_t)rank_count, 1);
    return comm->runs != NULL && read_ranks(end + 1, rank_count, comm->runs) && comm->runs[rank] != 0;
}

bool nccl_runs(const struct nccl_comm *comm, int rank) { return comm->runs == NULL || comm->runs[rank] != 0; }

int nccl_stands_for(const struct nccl_comm *comm, int rank) {
    while (rank > 0 && !nccl_runs(comm, rank)) rank--;
    return rank;
}
