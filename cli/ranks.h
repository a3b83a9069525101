// ranks.h: which process of a job a recording is of, as its file's name tells.
#ifndef CLI_RANKS_H
#define CLI_RANKS_H

#include <stdbool.h>
#include <stdint.h>

// The number after "rank" in the file's name ("mem_rank3.pickle", "rank-03_host.vram", "job.rank_12.json"), else the only number in the
// name without its extension ("snapshot_7.pickle", "3.vram"). False where there is none, or several.
bool rank_of_path(const char *path, uint64_t *rank);

#endif
