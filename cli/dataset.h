// dataset.h: many recordings as one folder of Arrow files, partitioned by job, rank and device, as engines for queries read it.
#ifndef CLI_DATASET_H
#define CLI_DATASET_H

#include "args.h"

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

#endif
