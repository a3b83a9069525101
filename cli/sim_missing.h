// sim_missing.h: what a program wanted of the simulated driver and the stand-ins and did not get.
#ifndef CLI_SIM_MISSING_H
#define CLI_SIM_MISSING_H

#include "sim_counts.h"

// A function that was wanted and is not simulated, or a size that was used and is not known.
struct sim_wanted {
    uint64_t count;
    uint64_t bytes; // of a size: what it may come to at most; 0: not known
    char function[96], library[32], module[240];
};

// Makes the program to come and its children count. False after a line on standard error.
bool sim_missing_begin(struct sim_counts *counts);
// Says on standard error what they wanted.
void sim_missing_report(const struct sim_counts *counts);

// The functions, or the sizes (by their names in simulator/standins/common/size_names.def, as functions), most first. Returns how many;
// *wanted is to be freed, and NULL where there is no memory.
size_t sim_missing_list(const struct sim_counts *counts, bool sizes, struct sim_wanted **wanted);

#endif
