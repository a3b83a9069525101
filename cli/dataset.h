// dataset.h: writes a job's recordings as one folder of Arrow files, and finds the rank in a file's name.
#ifndef CLI_DATASET_H
#define CLI_DATASET_H

#include <stdbool.h>
#include <stdint.h>

#include "args.h"

// Output settings of a dataset, partitioned by job, rank and device as query engines expect.

struct dataset {
    const char *folder;      // created if missing
    const char *job;         // NULL: "job"
    struct args_list labels; // "KEY=VALUE": further partitions
};

// Returns whether each label is "KEY=VALUE", with a key of letters, digits and underscores that is unique and not the name of a built-in
// partition. Otherwise prints one line on standard error.
bool dataset_labels_are_good(const struct dataset *dataset);

// Writes FOLDER/TABLE/job=.../KEY=VALUE/rank=.../device=.../NAME.arrow for each recording among the operands, and prints what was written.
// The rank comes from the file's name, else from the recording's position. Refuses a second recording of the same name and rank, with one
// line. Returns the highest exit code.
int dataset_write(char **operands, int count, const struct dataset *dataset);

// Finds the rank in a file's name: the number after "rank" ("mem_rank3.pickle", "rank-03_host.vram", "job.rank_12.json"), else the only
// number in the name without its extension ("snapshot_7.pickle", "3.vram"). Returns false if there is no number, or more than one.
bool rank_of_path(const char *path, uint64_t *rank);

#endif
