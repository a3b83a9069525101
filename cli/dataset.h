// dataset.h: many recordings of a job as one folder of Arrow files, and the rank that the name of a file tells.
#ifndef CLI_DATASET_H
#define CLI_DATASET_H

#include <stdbool.h>
#include <stdint.h>

#include "args.h"

// Many recordings as one folder of Arrow files, partitioned by job, rank and device, as engines for queries read it.

struct dataset {
    const char *folder;      // made when it is not there
    const char *job;         // NULL: "job"
    struct args_list labels; // "KEY=VALUE": further partitions
};

// Whether the labels are "KEY=VALUE" with keys of letters, digits and underscores, none twice and none of the partitions' own; else one
// line on standard error.
bool dataset_labels_are_good(const struct dataset *dataset);

// Writes FOLDER/TABLE/job=.../KEY=VALUE/rank=.../device=.../NAME.arrow for each recording that the operands name, and prints what was
// written. A recording's rank is in its file's name, else its place. Two recordings of the same name and rank are refused, the second with
// one line. The highest exit code.
int dataset_write(char **operands, int count, const struct dataset *dataset);

// Which process of a job a recording is of, as its file's name tells.

// The number after "rank" in the file's name ("mem_rank3.pickle", "rank-03_host.vram", "job.rank_12.json"), else the only number in the
// name without its extension ("snapshot_7.pickle", "3.vram"). False where there is none, or several.
bool rank_of_path(const char *path, uint64_t *rank);

#endif
